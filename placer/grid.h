// The grid of a problem: prefix sums over its live tiles, and the rectangle that a shape takes at a place.
#pragma once
#include "placer/placer.h"

typedef struct weft_placer_grid_t {
  int32_t width, height;
  int32_t* live;     // [(height + 1) * (width + 1)] live tiles above and left
  int32_t left, top; // the first column and row with a live tile; 0 when there is none
} weft_placer_grid_t;

weft_status_t weft_placer_grid_create(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                      weft_placer_grid_t* out_grid);
// Live tiles in a rectangle that lies inside the grid.
int32_t weft_placer_grid_live(const weft_placer_grid_t* grid, int32_t x, int32_t y, int32_t width, int32_t height);
// The smallest rectangle at (x, y) that gives `shape` what it needs: its own size where nothing is dead, else deeper or
// with a few lines more until weft_region_map finds the tiles for its lines there, or, where that takes more room than
// there is, until there are enough live tiles at all. False: not inside the grid.
bool weft_placer_grid_fit(const weft_placer_grid_t* grid, const weft_placer_shape_t* shape, bool transposed, int32_t x,
                          int32_t y, int32_t* out_width, int32_t* out_height);
