// Slicing trees for weft_placer_solve: from a legal placement to lower target times, as far as trees that fit are
// found.
#pragma once
#include "placer/pack.h"

// Replaces `spots`, which must be legal, when it finds a placement that costs less. By number of moves, so
// deterministic. Does nothing where trees can't do what is asked: fixed blocks and constraints.
weft_status_t weft_slicing_improve(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                   const weft_placer_incidence_t* incidence, const weft_placer_options_t* options,
                                   weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                   weft_placer_spot_t* spots);
