// Private to the image: what writer, loader and verifier share.
#pragma once
#include "backend/image.h"

#define WEFT_IMAGE_HEADER_SECTION ".weft.header"
#define WEFT_IMAGE_MACHINE_SECTION ".weft.machine"
#define WEFT_IMAGE_DEFECTS_SECTION ".weft.defects"
enum { WEFT_IMAGE_ALIGNMENT = 8 };

// Records are written as they lie in memory: no padding, little-endian host.
_Static_assert(sizeof(weft_image_header_t) == 128, "no padding");
_Static_assert(sizeof(weft_image_tile_t) == 32, "no padding");
_Static_assert(sizeof(weft_image_program_t) == 16, "no padding");
_Static_assert(sizeof(weft_image_segment_t) == 16, "no padding");
_Static_assert(sizeof(weft_image_route_t) == 28, "no padding");
_Static_assert(sizeof(weft_image_host_colour_t) == 8, "no padding");
_Static_assert(sizeof(weft_image_kernel_t) == 56, "no padding");
_Static_assert(sizeof(weft_image_io_t) == 104, "no padding");
_Static_assert(sizeof(weft_image_stream_t) == 32, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "images are little-endian");

// Everything that weft_image_map promises about the tables (image.h); the ELF container is already taken apart.
weft_status_t weft_image_verify(weft_allocator_t allocator, const weft_image_t* image);
// The part of it that decodes every program with each tile's parameters.
weft_status_t weft_image_verify_programs(weft_allocator_t allocator, const weft_image_t* image, int32_t colours);
