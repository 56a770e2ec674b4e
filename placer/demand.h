// How busy a placement's links will be, estimated from its edges alone, over bins that are coarse enough to follow
// every move of the annealer.
#pragma once
#include "placer/congestion.h"
#include "placer/placer.h"

enum {
  WEFT_PLACER_BIN = 8,  // tiles along the side of a bin, at least
  WEFT_PLACER_BINS = 24 // along the longer side of the grid, at most
};
typedef struct weft_placer_demand_t {
  const weft_placer_problem_t* problem;
  int32_t bin, columns, rows;
  double load[WEFT_PLACER_BINS * WEFT_PLACER_BINS];  // wavelets times tiles
  double links[WEFT_PLACER_BINS * WEFT_PLACER_BINS]; // that leave live tiles: four each
} weft_placer_demand_t;

// No edges yet. `problem` is borrowed.
void weft_placer_demand_initialize(const weft_placer_problem_t* problem, weft_placer_demand_t* out_demand);
// An edge with its ends at these spots (not read where an end is an anchor), `sign` times: from rectangle to rectangle,
// and in each of them what its joint says.
void weft_placer_demand_add(weft_placer_demand_t* demand, const weft_placer_edge_t* edge,
                            const weft_placer_spot_t* from, const weft_placer_spot_t* to, double sign);
// All edges and no others.
void weft_placer_demand_fill(weft_placer_demand_t* demand, const weft_placer_spot_t* spots);
// What goes beyond a wavelet a cycle and link in `time` cycles, summed over the bins: wavelets times tiles.
double weft_placer_demand_over(const weft_placer_demand_t* demand, double time);
