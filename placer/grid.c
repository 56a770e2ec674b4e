#include "placer/grid.h"

enum { EXTRA_LINES_DIVISOR = 8 }; // lines may grow by this part of their length before any live tiles will do

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
  return weft_ok();
}

int32_t weft_placer_grid_live(const weft_placer_grid_t* grid, int32_t x, int32_t y, int32_t width, int32_t height) {
  size_t pitch = (size_t)grid->width + 1;
  const int32_t* top = grid->live + (size_t)y * pitch;
  const int32_t* bottom = grid->live + (size_t)(y + height) * pitch;
  return bottom[x + width] - bottom[x] - top[x + width] + top[x];
}

static bool lines_suffice(const weft_placer_grid_t* grid, const weft_placer_shape_t* shape, bool transposed, int32_t x,
                          int32_t y, int32_t width, int32_t height) {
  int32_t lines = transposed ? width : height, good = 0;
  for (int32_t i = 0; i < lines; ++i) {
    int32_t live =
        transposed ? weft_placer_grid_live(grid, x + i, y, 1, height) : weft_placer_grid_live(grid, x, y + i, width, 1);
    good += live >= shape->line_tiles;
  }
  return good >= shape->lines;
}

bool weft_placer_grid_fit(const weft_placer_grid_t* grid, const weft_placer_shape_t* shape, bool transposed, int32_t x,
                          int32_t y, int32_t* out_width, int32_t* out_height) {
  int32_t w = transposed ? shape->height : shape->width, h = transposed ? shape->width : shape->height;
  if (x < 0 || y < 0 || x + w > grid->width || y + h > grid->height) return false;
  int32_t* growing = transposed ? &h : &w; // along the lines
  int32_t start = *growing, limit = start + 1 + start / EXTRA_LINES_DIVISOR;
  int32_t room = transposed ? grid->height - y : grid->width - x;
  int32_t enough = 0; // the first length with enough live tiles at all
  for (; *growing <= room && (*growing <= limit || !enough); ++*growing) {
    int32_t live = weft_placer_grid_live(grid, x, y, w, h);
    if (live < shape->tiles) continue;
    if (!enough) enough = *growing;
    if (!shape->line_tiles || (*growing <= limit && lines_suffice(grid, shape, transposed, x, y, w, h))) {
      *out_width = w;
      *out_height = h;
      return true;
    }
  }
  if (!enough) return false;
  *growing = enough;
  *out_width = w;
  *out_height = h;
  return true;
}
