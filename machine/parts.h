// The parts into which defects split the mesh: tiles that live links connect.
#pragma once
#include "machine/defects.h"

typedef struct weft_parts_t {
  weft_allocator_t allocator;
  int32_t* label; // [tiles] which part; -1: dead tile
  int32_t count;
  int32_t* size; // [count] tiles, numbered by their lowest tile index
} weft_parts_t;

weft_status_t weft_parts_find(weft_allocator_t allocator, const weft_machine_t* machine, const weft_defects_t* defects,
                              weft_parts_t* out_parts);
// The largest part that a host port is attached to (the first of equals); -1 when no port can reach a live tile.
int32_t weft_parts_main(const weft_parts_t* parts, const weft_machine_t* machine);
void weft_parts_deinitialize(weft_parts_t* parts);
// "3 parts of 120, 7 and 1 tiles", the largest first, at most a few of them.
weft_status_t weft_parts_describe(const weft_parts_t* parts, weft_text_t* text);
