// The program of one tile.
#pragma once
#include "backend/endpoints.h"
#include "backend/image.h"
#include "backend/isa.h"
#include "backend/layout.h"
#include "base/array.h"

// Words that instructions are appended to.
typedef struct weft_writer_t {
  weft_allocator_t allocator;
  WEFT_ARRAY(uint32_t) words;
} weft_writer_t;
weft_status_t weft_writer_append(weft_writer_t* writer, const weft_instruction_t* instruction);
// HALT, STEPS, END_STEPS (colour 0) and WAIT_*.
weft_status_t weft_writer_append_simple(weft_writer_t* writer, weft_opcode_e opcode, int32_t colour);

// One tile of one kernel. Boxes are those of its buffers; a buffer that is loaded holds its fill already.
typedef struct weft_tile_plan_t {
  const weft_fabric_t* fabric;
  const weft_kernel_t* kernel;
  const weft_split_t* split;
  const weft_layout_t* layout;
  const weft_endpoints_t* endpoints;
  const bool* loaded;   // [buffers]
  int32_t* last_use[2]; // [buffers] the last operation that touches it, or -1: on tiles that own no results, on owners
  int32_t kernel_index, logical;
  weft_iteration_box_t iteration;
  weft_box_t* box; // [buffers]
  bool* needed;    // [buffers]
  bool owner;      // of results
  weft_end_list_t in, out;
} weft_tile_plan_t;
// Fills what is the same for all tiles.
weft_status_t weft_tile_plan_prepare(weft_tile_plan_t* plan, weft_arena_t* arena);
// Fills what depends on the tile, into arrays that the caller has made.
void weft_tile_plan_set(weft_tile_plan_t* plan, int32_t logical);
void weft_tile_plan_set_loaded(weft_tile_plan_t* plan, int32_t logical); // only `box` and `needed` of loaded buffers
weft_status_t weft_program_tile(const weft_tile_plan_t* plan, weft_writer_t* writer);

// The program of the host, whose colours are indices of host colours and whose addresses are those of the inputs and
// outputs.
weft_status_t weft_program_host(const weft_fabric_t* fabric, const weft_endpoints_t* endpoints,
                                const weft_image_io_t* io, weft_writer_t* writer);
