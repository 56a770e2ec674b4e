// The objective and legality of a placement, from the problem alone.
#include <math.h>

#include "base/allocator.h"
#include "placer/placer.h"

static weft_placer_point_t centre(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots, int32_t end) {
  if (end < 0) return problem->anchor[-1 - end];
  const weft_placer_spot_t* s = &spots[end];
  return (weft_placer_point_t){s->x + s->width / 2.0, s->y + s->height / 2.0};
}

double weft_placer_cost(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots, double* out_time,
                        double* out_wire) {
  double time = 0, wire = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) time = fmax(time, problem->block[b].shape[spots[b].shape].time);
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    weft_placer_point_t from = centre(problem, spots, problem->edge[e].from),
                        to = centre(problem, spots, problem->edge[e].to);
    wire += problem->edge[e].weight * (fabs(from.x - to.x) + fabs(from.y - to.y));
  }
  if (out_time) *out_time = time;
  if (out_wire) *out_wire = wire;
  return problem->weight_time * time + problem->weight_wire * wire;
}

static int64_t live_tiles(const weft_placer_problem_t* problem, const weft_placer_spot_t* s) {
  int64_t live = 0;
  for (int32_t y = s->y; y < s->y + s->height; ++y) {
    for (int32_t x = s->x; x < s->x + s->width; ++x) {
      live += !(problem->blocked && problem->blocked[(size_t)y * (size_t)problem->width + (size_t)x]);
    }
  }
  return live;
}

weft_status_t weft_placer_legal(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots) {
  for (int32_t b = 0; b < problem->block_count; ++b) {
    const weft_placer_spot_t* s = &spots[b];
    const weft_placer_block_t* block = &problem->block[b];
    if (s->x < 0 || s->y < 0 || s->width < 1 || s->height < 1 || s->x + s->width > problem->width ||
        s->y + s->height > problem->height) {
      return weft_error(INTERNAL, "%s lies outside the grid", block->name);
    }
    if (live_tiles(problem, s) < block->shape[s->shape].tiles) {
      return weft_error(INTERNAL, "%s has too few live tiles in its rectangle", block->name);
    }
    if (block->fixed_x >= 0 && (s->x != block->fixed_x || s->y != block->fixed_y)) {
      return weft_error(INTERNAL, "%s is not where it is fixed", block->name);
    }
    for (int32_t o = 0; o < b; ++o) {
      const weft_placer_spot_t* t = &spots[o];
      if (s->x < t->x + t->width && t->x < s->x + s->width && s->y < t->y + t->height && t->y < s->y + s->height) {
        return weft_error(INTERNAL, "%s and %s overlap", block->name, problem->block[o].name);
      }
    }
  }
  return weft_ok();
}
