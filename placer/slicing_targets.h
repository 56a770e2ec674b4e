// Target times worth trying, and what no placement can beat.
#pragma once
#include "placer/placer.h"

typedef struct weft_slicing_target_t {
  double time;
  // By weft_slicing_target_measure:
  double fill;       // least area of all blocks in time, as a part of the live tiles
  double least_wire; // proven: no placement with this slowest time has less
} weft_slicing_target_t;

// All times of shapes at which the least area fits, ascending.
weft_status_t weft_slicing_targets(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                   weft_slicing_target_t** out_target, int32_t* out_count);
// The least wire that blocks with shapes of at most this time can have: two blocks lie apart by at least half of their
// sides in one direction, so every edge costs at least half of both short sides; long thin shapes that waste area are
// weighed against the area there is by a Lagrange multiplier.

double weft_slicing_least_wire(const weft_placer_problem_t* problem, double time);
// Fills in fill and least_wire.
void weft_slicing_target_measure(const weft_placer_problem_t* problem, weft_slicing_target_t* target);
