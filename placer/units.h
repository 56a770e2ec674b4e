// Annealing of blocks that are one tile each: a quadratic assignment of blocks to live tiles. A move takes a block to
// another tile and brings back whoever was there; what it changes is summed in one pass over dense rows of weights.
#pragma once
#include "placer/anneal.h"

// Whether a problem is of this kind, without constraints, has the tiles, and is small enough for rows of weights.
bool weft_placer_units_apply(const weft_placer_problem_t* problem);
// As weft_placer_anneal, but needs no placement to start from.
weft_status_t weft_placer_units_anneal(const weft_placer_problem_t* problem, const weft_placer_options_t* options,
                                       weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                       weft_placer_spot_t* spots, weft_placer_annealed_t* out_annealed);
