// The objective and legality of a placement, from the problem alone.
#include <math.h>

#include "base/allocator.h"
#include "placer/demand.h"
#include "placer/wire.h"

double weft_placer_cost(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots,
                        weft_placer_parts_t* out_parts) {
  weft_placer_parts_t parts = {0};
  for (int32_t b = 0; b < problem->block_count; ++b)
    parts.time = fmax(parts.time, problem->block[b].shape[spots[b].shape].time);
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &problem->edge[e];
    parts.wire += weft_placer_edge_wire(problem, edge, weft_placer_end_spot(spots, edge->from),
                                        weft_placer_end_spot(spots, edge->to));
  }
  if (problem->weight_overload > 0) {
    weft_placer_demand_t demand;
    weft_placer_demand_initialize(problem, &demand);
    weft_placer_demand_fill(&demand, spots);
    parts.overload = weft_placer_demand_over(&demand, parts.time);
  }
  if (out_parts) *out_parts = parts;
  return weft_placer_weigh(problem, &parts);
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
