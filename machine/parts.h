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
// The largest two-connected piece of that part with a host port: between any two of its tiles there are two ways that
// share no other tile. What hangs on it by a single tile is left out, as all that goes there has to pass that one
// router. Sets out_core[tiles] to 1 there, else 0, and counts them. Biconnected components: Hopcroft and Tarjan,
// "Efficient algorithms for graph manipulation", CACM 16 (1973). 0 tiles: no port, or nothing but a tree.
weft_status_t weft_parts_core(const weft_parts_t* parts, const weft_machine_t* machine, const weft_defects_t* defects,
                              uint8_t* out_core, int32_t* out_tiles);
void weft_parts_deinitialize(weft_parts_t* parts);
// "3 parts of 120, 7 and 1 tiles", the largest first, at most a few of them.
weft_status_t weft_parts_describe(const weft_parts_t* parts, weft_text_t* text);
