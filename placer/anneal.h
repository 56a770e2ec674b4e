// Simulated annealing of a legal placement: translate, swap, reshape, turn. The schedule is VPR's (Betz, Rose,
// Marquardt, "Architecture and CAD for Deep-Submicron FPGAs", 1999, section 3.2): start at 20 standard deviations, cool
// by the acceptance rate, shrink the range of moves so that 44 % are accepted.
#pragma once
#include "placer/pack.h"

typedef struct weft_placer_annealed_t {
  double cost, time, wire; // of the best placement, recomputed
  int64_t moves;
  double drift; // largest relative difference between the running cost and a full recomputation
} weft_placer_annealed_t;

// Improves `spots` in place; every state on the way is legal, the best is kept. Stops early, with the best so far, when
// `control` says so. INTERNAL when the running cost drifted from the recomputed one by more than 1e-6.
weft_status_t weft_placer_anneal(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                 const weft_placer_incidence_t* incidence, double effort, weft_rng_t* rng,
                                 const weft_control_t* control, weft_arena_t* arena, weft_placer_spot_t* spots,
                                 weft_placer_annealed_t* out_annealed);
