// Annealing of rectangles with coordinates: translate, swap, reshape, turn; every state on the way is legal.
#pragma once
#include "placer/pack.h"

typedef struct weft_placer_annealed_t {
  double cost; // of the best placement, recomputed, with the penalty for constraints that are missed
  weft_placer_parts_t parts;
  int64_t moves;
  double drift; // largest relative difference between the running cost and a full recomputation
} weft_placer_annealed_t;

// Improves `spots` in place and leaves the best that it came by. Stops early, with the best so far, when `control` says
// so. INTERNAL when the running cost drifted from the recomputed one by more than 1e-6.
weft_status_t weft_placer_anneal(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                 const weft_placer_incidence_t* incidence, const weft_placer_options_t* options,
                                 weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                 weft_placer_spot_t* spots, weft_placer_annealed_t* out_annealed);
// The weight of a tile of violation, so that no gain elsewhere is worth one; `cost` is that of the first placement.
double weft_placer_penalty(const weft_placer_problem_t* problem, double cost);
