// The tables of an image that describe rather than run: kernels, inputs and outputs, streams, routes, names.
#pragma once
#include "backend/endpoints.h"
#include "backend/image.h"

// Fills kernels, nodes, io, host_colours, streams, routes, strings, header (but for the machine) and *out_host_bytes,
// the host memory of one step. Arrays live in `arena`. DOES_NOT_FIT when the inputs and outputs exceed the host's
// addresses.
weft_status_t weft_tables_create(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                 const weft_endpoints_t* endpoints, weft_arena_t* arena, weft_image_t* inout_image,
                                 uint32_t* out_host_bytes);
