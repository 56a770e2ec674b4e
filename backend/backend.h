// Routed fabric IR -> per-tile microcode and the wafer image.
#pragma once
#include "backend/image.h"
#include "backend/isa.h"
#include "ir/fabric/streams.h"

// Memory of a tile: code, constants, buffers; what is laid out is what weft_cost_alternative estimated, or less.
// DOES_NOT_FIT names kernel, tile, needed and available bytes. The image's arrays live in `arena`.
weft_status_t weft_backend_emit(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                const weft_defects_t* defects, weft_arena_t* arena, const weft_control_t* control,
                                weft_image_t* out_image);

// What `weft inspect` prints: header, tables, and the disassembly of programs. tile: only that one, with its parameters
// filled in (INT32_MIN: all programs, as templates); kernel, stream: only that name (NULL: all).
weft_status_t weft_backend_inspect(const weft_image_t* image, int32_t tile, const char* kernel, const char* stream,
                                   weft_text_t* text);
