#include "placer/grid.h"

enum { TILES_PER_SPARE = 64 }; // one stack more than needed, and another for as many as this

int32_t weft_placer_grid_live(const weft_placer_grid_t* grid, int32_t x, int32_t y, int32_t width, int32_t height) {
  size_t pitch = (size_t)grid->width + 1;
  const int32_t* top = grid->live + (size_t)y * pitch;
  const int32_t* bottom = grid->live + (size_t)(y + height) * pitch;
  return bottom[x + width] - bottom[x] - top[x + width] + top[x];
}

weft_status_t weft_placer_grid_create(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                      weft_placer_grid_t* out_grid) {
  int32_t w = problem->width, h = problem->height;
  *out_grid = (weft_placer_grid_t){.width = w, .height = h};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)(w + 1) * (size_t)(h + 1), &out_grid->live));
  for (int32_t y = 0; y < h; ++y) {
    int32_t row = 0;
    for (int32_t x = 0; x < w; ++x) {
      row += !(problem->blocked && problem->blocked[(size_t)y * (size_t)w + (size_t)x]);
      out_grid->live[(size_t)(y + 1) * (size_t)(w + 1) + (size_t)x + 1] =
          out_grid->live[(size_t)y * (size_t)(w + 1) + (size_t)x + 1] + row;
    }
  }
  if (!weft_placer_grid_live(out_grid, 0, 0, w, h)) return weft_ok();
  while (!weft_placer_grid_live(out_grid, out_grid->left, 0, 1, h)) ++out_grid->left;
  while (!weft_placer_grid_live(out_grid, 0, out_grid->top, w, 1)) ++out_grid->top;
  return weft_ok();
}

// Stacks of live tiles along one side of a rectangle at (x, y), `width` of them needed in each of `rounds` rounds: how
// many tiles the rounds can take of `stacks` stacks of this depth. It is what weft_region_map finds room for.
static int64_t stacked(const weft_placer_grid_t* grid, bool along_y, int32_t x, int32_t y, int32_t stacks,
                       int32_t depth, int32_t rounds) {
  int64_t usable = 0;
  for (int32_t i = 0; i < stacks; ++i) {
    int32_t live =
        along_y ? weft_placer_grid_live(grid, x + i, y, 1, depth) : weft_placer_grid_live(grid, x, y + i, depth, 1);
    usable += live < rounds ? live : rounds;
  }
  return usable;
}

// The least area in which `rounds` rounds of `width` stacks find their tiles, with few stacks more than needed.
static bool fit_stacks(const weft_placer_grid_t* grid, bool along_y, int32_t x, int32_t y, int32_t width,
                       int32_t rounds, int32_t* out_stacks, int32_t* out_depth) {
  int32_t most_stacks = along_y ? grid->width - x : grid->height - y;
  int32_t most_depth = along_y ? grid->height - y : grid->width - x;
  int64_t needed = (int64_t)width * rounds, least = INT64_MAX;
  int32_t limit = width + 1 + width / TILES_PER_SPARE;
  for (int32_t stacks = width; stacks <= most_stacks && stacks <= limit; ++stacks) {
    int32_t depth = (int32_t)((needed + stacks - 1) / stacks);
    if (4 * (int64_t)depth < 3 * (int64_t)rounds) break; // weft_region_map takes no stacks as shallow as these
    while (depth <= most_depth && (int64_t)stacks * depth < least) {
      int64_t missing = needed - stacked(grid, along_y, x, y, stacks, depth, rounds);
      if (missing <= 0) {
        least = (int64_t)stacks * depth;
        *out_stacks = stacks;
        *out_depth = depth;
        break;
      }
      depth += (int32_t)((missing + stacks - 1) / stacks);
    }
  }
  return least < INT64_MAX;
}

bool weft_placer_grid_fit(const weft_placer_grid_t* grid, const weft_placer_shape_t* shape, bool transposed, int32_t x,
                          int32_t y, int32_t* out_width, int32_t* out_height) {
  int32_t w = transposed ? shape->height : shape->width, h = transposed ? shape->width : shape->height;
  if (x < 0 || y < 0 || x + w > grid->width || y + h > grid->height) return false;
  *out_width = w;
  *out_height = h;
  if (weft_placer_grid_live(grid, x, y, w, h) == w * h) return true;
  if (shape->line_tiles) {
    // Stacks run along the longer side of the shape.
    int32_t across = transposed ? shape->lines : shape->line_tiles,
            down = transposed ? shape->line_tiles : shape->lines;
    bool found = down >= across ? fit_stacks(grid, true, x, y, across, down, out_width, out_height)
                                : fit_stacks(grid, false, x, y, down, across, out_height, out_width);
    if (found) return true;
  }
  // Any live tiles: along the lines until there are enough.
  int32_t* growing = transposed ? &h : &w;
  int32_t room = transposed ? grid->height - y : grid->width - x;
  for (; *growing <= room; ++*growing) {
    if (weft_placer_grid_live(grid, x, y, w, h) < shape->tiles) continue;
    *out_width = w;
    *out_height = h;
    return true;
  }
  return false;
}
