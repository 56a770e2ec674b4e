#include "placer/slicing_tree.h"

static weft_slicing_span_t span_of(const weft_slicing_spot_t* spot, int axis) {
  if (axis == 0)
    return (weft_slicing_span_t){spot->x - spot->width, 2 * spot->width, spot->y - spot->height,
                                 spot->y + spot->height};
  return (weft_slicing_span_t){spot->y - spot->height, 2 * spot->height, spot->x - spot->width, spot->x + spot->width};
}

int32_t weft_slicing_compact(weft_slicing_tree_t* t, int axis) {
  int32_t blocks = t->problem->block_count, limit = 2 * (axis ? t->height : t->width), end = 0;
  weft_slicing_span_t* span = t->span;
  int32_t *order = t->stack, *least = t->stack + blocks, *most = t->most;
  for (int32_t b = 0; b < blocks; ++b) {
    span[b] = span_of(&t->spot[b], axis);
    int32_t at = b; // insertion sort by coordinate
    for (; at > 0 && span[order[at - 1]].low > span[b].low; --at) order[at] = order[at - 1];
    order[at] = b;
  }
  for (int32_t i = 0; i < blocks; ++i) {
    const weft_slicing_span_t* s = &span[order[i]];
    int32_t low = 0;
    for (int32_t j = 0; j < i; ++j) {
      const weft_slicing_span_t* o = &span[order[j]];
      int32_t after = least[j] + o->extent;
      if (o->across_low < s->across_high && s->across_low < o->across_high && after > low) low = after;
    }
    least[i] = low;
    if (low + s->extent > end) end = low + s->extent;
  }
  if (end < limit) end = limit;
  for (int32_t i = blocks; i-- > 0;) {
    const weft_slicing_span_t* s = &span[order[i]];
    int32_t high = end - s->extent;
    for (int32_t j = i + 1; j < blocks; ++j) {
      const weft_slicing_span_t* o = &span[order[j]];
      int32_t before = most[j] - s->extent;
      if (o->across_low < s->across_high && s->across_low < o->across_high && before < high) high = before;
    }
    most[i] = high;
  }
  for (int32_t i = 0; i < blocks; ++i) {
    weft_slicing_span_t* s = &span[order[i]];
    int32_t low = s->low < most[i] ? s->low : most[i];
    for (int32_t j = 0; j < i; ++j) {
      const weft_slicing_span_t* o = &span[order[j]];
      int32_t after = o->low + o->extent;
      if (o->across_low < s->across_high && s->across_low < o->across_high && after > low) low = after;
    }
    s->low = low;
    *(axis ? &t->spot[order[i]].y : &t->spot[order[i]].x) = low + s->extent / 2;
  }
  return (end - limit) / 2;
}
