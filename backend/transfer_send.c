#include "backend/transfer.h"

#include "base/checked.h"

// Of one tensor dimension: the coordinate that is fixed so far, and the interval that coordinates may lie in.
typedef struct cursor_t {
  int64_t at, lo, hi;
} cursor_t;

// The farthest that the levels from `first` on reach along a dimension.
static int64_t reach_of(const weft_walk_t* walk, int32_t first, int32_t dim) {
  int64_t reach = 0;
  for (int32_t l = first; l < walk->level_count; ++l)
    if (walk->level[l].dim == dim) reach += (walk->level[l].extent - 1) * walk->level[l].step;
  return reach;
}

// Cuts a level to the indices [*out_first, *out_first + *out_count) that meet the interval. False: the ones at the rim
// meet it only in part, so that what is left is no loop nest.
static bool cut_level(const weft_walk_level_t* level, int64_t reach, const cursor_t* c, int64_t* out_first,
                      int64_t* out_count) {
  int64_t first = 0, end = level->extent, step = level->step;
  if (step > 0) {
    // index i covers [at + i * step, at + i * step + reach]
    int64_t below = c->lo - reach - c->at, above = c->hi - c->at;
    if (below > 0) first = weft_ceil_div(below, step);
    end = above > 0 ? weft_min_i64(end, weft_ceil_div(above, step)) : 0;
  } else if (c->at + reach < c->lo || c->at >= c->hi) {
    end = 0;
  }
  *out_first = first;
  *out_count = end > first ? end - first : 0;
  if (*out_count <= 1) return true; // the inner levels are cut in turn
  return c->at + first * step >= c->lo && c->at + (end - 1) * step + reach < c->hi;
}

weft_status_t weft_transfer_send(const weft_walk_t* walk, const weft_box_t* owned, const weft_placement_t* memory,
                                 weft_instruction_t* inout_instruction, int64_t* out_points) {
  weft_box_t box = weft_box_intersect(&walk->box, owned);
  *out_points = 0;
  if (weft_box_is_empty(&box)) return weft_ok();
  cursor_t cursor[WEFT_MAX_RANK];
  for (int32_t d = 0; d < box.rank; ++d) cursor[d] = (cursor_t){0, box.lo[d], box.hi[d]};
  weft_nest_t nest;
  weft_nest_initialize(1, &nest);
  int64_t address = memory->address;
  for (int32_t l = 0; l < walk->level_count; ++l) {
    const weft_walk_level_t* level = &walk->level[l];
    cursor_t* c = &cursor[level->dim];
    int64_t first, count, stride = level->step * memory->stride[level->dim];
    if (!cut_level(level, reach_of(walk, l + 1, level->dim), c, &first, &count))
      return weft_error(UNSUPPORTED, "the part of the tensor that is sent is no loop nest (dimension %d)",
                        (int)level->dim);
    c->at += first * level->step;
    weft_nest_push(&nest, count, &stride);
  }
  if (nest.empty) return weft_ok();
  for (int32_t d = 0; d < box.rank; ++d) {
    if (cursor[d].at < box.lo[d] || cursor[d].at >= box.hi[d]) return weft_ok(); // no level reaches into the box
    address += (cursor[d].at - memory->lo[d]) * memory->stride[d];
  }
  *out_points = weft_nest_points(&nest);
  WEFT_RETURN_IF_ERROR(weft_nest_narrow(address, "the address", &inout_instruction->base[0]));
  return weft_nest_store(&nest, inout_instruction);
}
