// Placement by slicing trees: a target time is chosen, which fixes the shapes that blocks may have; then a tree is
// annealed for its wire, from a beam search's tree or from a rough one. The search tries target times side by side and
// gives more to those that do well.
#pragma once
#include "placer/slicing_moves.h"
#include "placer/slicing_peel.h"

typedef struct weft_slicing_search_t {
  uint64_t seed;
  int32_t threads;               // >= 1. Changes results only when there is a time limit
  double seconds;                // > 0: as long as this; else by moves
  int64_t moves;                 // together
  const weft_control_t* control; // deadline, cancellation: keeps the best so far
} weft_slicing_search_t;

typedef struct weft_slicing_found_t {
  bool found;
  double cost, target;
  weft_placer_parts_t parts;
  int64_t moves;
  double drift;
  weft_placer_spot_t* spot; // [block_count], in the arena
} weft_slicing_found_t;

weft_status_t weft_slicing_search(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                  const weft_placer_incidence_t* incidence, const weft_slicing_search_t* search,
                                  weft_arena_t* arena, weft_slicing_found_t* out_found);
