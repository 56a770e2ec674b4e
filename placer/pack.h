// Packing: the first legal placement, for a target time.
#pragma once
#include "placer/grid.h"

// The blocks with incident edges in compressed rows: edges of block b are index[start[b] .. start[b + 1]).
typedef struct weft_placer_incidence_t {
  int32_t* start;
  int32_t* index;
} weft_placer_incidence_t;
weft_status_t weft_placer_incidence_create(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                           weft_placer_incidence_t* out_incidence);

// Places all blocks in shapes with time <= target, one after the other at corners of those placed before, near their
// partners. A bounded number of tries with different orders and shapes, drawn from `rng`. False: none was legal;
// *out_failed is then the block that found no room in the best try.
bool weft_placer_pack(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                      const weft_placer_incidence_t* incidence, double target, int32_t tries, weft_rng_t* rng,
                      int32_t* scratch, weft_placer_spot_t* out_spots, int32_t* out_failed);
