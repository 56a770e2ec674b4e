// Where links will be busy, estimated before anything is routed.
#pragma once
#include "base/arena.h"

// Wavelets that a mean link of each bin carries in a step. Bins are squares of `bin` tiles; those at the right and
// lower edges may be narrower.
typedef struct weft_congestion_t {
  int32_t width, height; // of the mesh
  int32_t bin, columns, rows;
  double* load; // [rows * columns]
} weft_congestion_t;
typedef struct weft_congestion_box_t {
  double x0, y0, x1, y1; // tiles; the end is not in it
} weft_congestion_box_t;
// What goes from one box of tiles to another, and there to `sinks` tiles (0: none of the mesh, the host).
typedef struct weft_congestion_flow_t {
  weft_congestion_box_t from, to;
  double wavelets;
  int64_t sinks;
} weft_congestion_flow_t;

weft_status_t weft_congestion_create(int32_t width, int32_t height, int32_t bin, weft_arena_t* arena,
                                     weft_congestion_t* out_congestion);
// Between the centres of its boxes a flow spreads evenly over a corridor that is as wide as the boxes are where it
// meets them: the uniform wire density of RUDY (Spindler and Johannes, "Fast and accurate routing demand estimation for
// efficient routability-driven placement", DATE 2007), with a trapezium for the bounding box. A tree then hands it out
// to the sinks: as long as there are tiles, or as a Steiner tree over so many random points, 0.76 sqrt(points * area)
// (Gilbert and Pollak, "Steiner minimal trees", SIAM J. Appl. Math. 16, 1968), whichever is more.
void weft_congestion_add(weft_congestion_t* congestion, const weft_congestion_flow_t* flow);
// Adds as much to the bins of a box, evenly; wavelets times tiles.
void weft_congestion_spread(weft_congestion_t* congestion, weft_congestion_box_t box, double hops);
// From sums to means over the links of live tiles, four a tile. live[rows * columns]; bins without any stay 0.
void weft_congestion_finish(weft_congestion_t* congestion, const int32_t* live);

// Spearman's rank correlation of two series of `count` values, ties at their mean rank; 0 when one is constant.
weft_status_t weft_rank_correlation(weft_allocator_t allocator, const double* a, const double* b, size_t count,
                                    double* out_correlation);
