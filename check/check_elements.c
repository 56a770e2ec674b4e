// Arrivals element by element: every walk is run through, every element put through the view and looked for in every
// sink's box, and what arrives where is counted in an array.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "check/arrivals.h"

enum { MOST_HULL = 100000000 }; // bytes

// Of every coordinate of `hull`: how many elements the pieces put there, at most 3, in bits 0-1 those that
// travel and in bits 2-3 those of constants, which are in memory already. Of every element of every tile: how many
// arrived.
typedef struct count_t {
  const weft_check_arrivals_t* arrivals;
  const weft_check_operand_t* operand;
  weft_box_t hull;
  weft_box_t* box; // [tiles]
  bool* needed;    // [tiles]
  int64_t* first;  // [tiles + 1] of a tile's elements in `arrived`
  uint8_t *expected, *arrived;
  int64_t* taken; // [tiles] of the current stream
} count_t;

static bool box_has(const weft_box_t* box, const int64_t* coordinate) {
  for (int32_t d = 0; d < box->rank; ++d)
    if (coordinate[d] < box->lo[d] || coordinate[d] >= box->hi[d]) return false;
  return true;
}

static int64_t box_index(const weft_box_t* box, const int64_t* coordinate) {
  int64_t index = 0;
  for (int32_t d = 0; d < box->rank; ++d) index = index * (box->hi[d] - box->lo[d]) + coordinate[d] - box->lo[d];
  return index;
}

// Row-major; false after the last one.
static bool box_advance(const weft_box_t* box, int64_t* coordinate) {
  for (int32_t d = box->rank - 1; d >= 0; --d) {
    if (++coordinate[d] < box->hi[d]) return true;
    coordinate[d] = box->lo[d];
  }
  return false;
}

// The formula of view.h, read literally.
static bool view_coordinate(const weft_view_t* view, int64_t flat, int64_t* out_coordinate) {
  memcpy(out_coordinate, view->offset, sizeof(view->offset));
  for (int32_t j = view->factor_count - 1; j >= 0; --j) {
    const weft_view_factor_t* f = &view->factor[j];
    int64_t digit = flat % f->extent;
    flat /= f->extent;
    if (digit < f->lo || digit >= f->hi) return false;
    if (f->dim >= 0) out_coordinate[f->dim] += digit * f->step;
  }
  return true;
}

static int64_t tensor_elements(const weft_shape_t* shape) {
  int64_t elements = 1;
  for (int32_t d = 0; d < shape->rank; ++d) elements *= shape->extent[d];
  return elements;
}

static void count_expected(const count_t* c) {
  const weft_fabric_t* fabric = c->arrivals->check->fabric;
  for (int32_t p = 0; p < c->operand->piece_count; ++p) {
    const weft_tensor_t* tensor = &fabric->tensor[c->operand->piece[p].tensor];
    int32_t shift = tensor->kind == WEFT_TENSOR_CONSTANT ? 2 : 0;
    int64_t elements = tensor_elements(&tensor->shape), coordinate[WEFT_MAX_RANK];
    for (int64_t flat = 0; flat < elements; ++flat) {
      if (!view_coordinate(&c->operand->piece[p].view, flat, coordinate) || !box_has(&c->hull, coordinate)) continue;
      uint8_t* expected = &c->expected[box_index(&c->hull, coordinate)];
      if ((*expected >> shift & 3) < 3) *expected = (uint8_t)(*expected + (1 << shift));
    }
  }
}

static void count_element(const count_t* c, const weft_stream_t* stream, int64_t flat) {
  int64_t coordinate[WEFT_MAX_RANK];
  if (!view_coordinate(&c->operand->piece[stream->sink_piece].view, flat, coordinate)) return;
  for (int32_t i = 0; i < stream->sink_count; ++i) {
    int32_t tile = stream->sink[i].logical;
    if (!c->needed[tile] || !box_has(&c->box[tile], coordinate)) continue;
    uint8_t* arrived = &c->arrived[c->first[tile] + box_index(&c->box[tile], coordinate)];
    if (*arrived < UINT8_MAX) ++*arrived;
    c->taken[tile]++;
  }
}

// The levels as nested loops.
static void count_walk(const count_t* c, const weft_stream_t* stream) {
  const weft_walk_t* walk = &stream->walk;
  const weft_shape_t* shape = &c->arrivals->check->fabric->tensor[stream->tensor].shape;
  int64_t index[WEFT_MAX_LEVELS] = {0};
  for (int32_t level = 0; level >= 0;) {
    int64_t coordinate[WEFT_MAX_RANK] = {0}, flat = 0;
    for (int32_t i = 0; i < walk->level_count; ++i) coordinate[walk->level[i].dim] += index[i] * walk->level[i].step;
    if (box_has(&walk->box, coordinate)) {
      for (int32_t d = 0; d < shape->rank; ++d) flat = flat * shape->extent[d] + coordinate[d];
      count_element(c, stream, flat);
    }
    for (level = walk->level_count - 1; level >= 0 && ++index[level] == walk->level[level].extent; --level)
      index[level] = 0;
  }
}

static void check_stream(const count_t* c, const weft_stream_t* stream) {
  const weft_check_t* check = c->arrivals->check;
  memset(c->taken, 0, (size_t)c->operand->tiles * sizeof(*c->taken));
  count_walk(c, stream);
  for (int32_t i = 0; i < stream->sink_count; ++i)
    if (c->taken[stream->sink[i].logical] != stream->sink[i].elements)
      weft_faults_add(check->faults, "%s: %s takes %" PRId64 " elements of '%s', it says %" PRId64,
                      WEFT_CHECK_LABEL(check, stream),
                      weft_check_operand_place(c->arrivals, c->operand, stream->sink[i].logical).text,
                      c->taken[stream->sink[i].logical], c->operand->name, stream->sink[i].elements);
}

// One fault a tile: the first element that is wrong.
static void check_tile(const count_t* c, int32_t tile) {
  const weft_check_operand_t* o = c->operand;
  weft_faults_t* faults = c->arrivals->check->faults;
  const weft_box_t* box = &c->box[tile];
  int64_t coordinate[WEFT_MAX_RANK];
  if (!c->needed[tile]) return;
  memcpy(coordinate, box->lo, sizeof(coordinate));
  const uint8_t* arrived = &c->arrived[c->first[tile]];
  do {
    uint8_t expected = c->expected[box_index(&c->hull, coordinate)], streamed = expected & 3;
    if (streamed + (expected >> 2) > 1) {
      weft_faults_add(faults, "%s, operand '%s': more than one piece covers element %s", o->kernel_name, o->name,
                      weft_check_point(coordinate, o->rank).text);
      return;
    }
    if (!expected && !o->has_fill) {
      weft_faults_add(faults, "%s, operand '%s': no piece covers element %s, which %s needs, and there is no fill",
                      o->kernel_name, o->name, weft_check_point(coordinate, o->rank).text,
                      weft_check_operand_place(c->arrivals, o, tile).text);
      return;
    }
    if (*arrived != streamed) {
      weft_faults_add(faults, "%s, operand '%s': element %s arrives %d times at %s, expected %d", o->kernel_name,
                      o->name, weft_check_point(coordinate, o->rank).text, *arrived,
                      weft_check_operand_place(c->arrivals, o, tile).text, streamed);
      return;
    }
    ++arrived;
  } while (box_advance(box, coordinate));
}

// What it would take; false: more than is left, or than fits an int64.
static bool affordable(weft_check_arrivals_t* a, const weft_check_operand_t* o) {
  int64_t visits = 0, term;
  const weft_stream_t* stream;
  for (int32_t p = 0; p < o->piece_count; ++p)
    visits += tensor_elements(&a->check->fabric->tensor[o->piece[p].tensor].shape);
  for (size_t at = 0; visits <= a->visits_left && (stream = weft_check_operand_stream(a, o, &at));) {
    term = 1 + stream->sink_count;
    for (int32_t i = 0; i < stream->walk.level_count; ++i)
      if (!weft_checked_mul(term, stream->walk.level[i].extent, &term)) return false;
    if (!weft_checked_add(visits, term, &visits)) return false;
  }
  for (int32_t t = 0; t < o->tiles && visits <= a->visits_left; ++t) {
    weft_box_t box = weft_check_operand_box(a, o, t);
    visits += weft_check_box_elements(&box);
  }
  if (visits > a->visits_left) return false;
  a->visits_left -= visits;
  return true;
}

// Each tile's box, and their hull; false: the hull is too large for an array.
static bool make_boxes(const count_t* c, weft_box_t* out_hull) {
  const weft_check_operand_t* o = c->operand;
  weft_box_t hull = {.rank = o->rank};
  bool any = false;
  for (int32_t t = 0; t < o->tiles; ++t) {
    c->first[t + 1] = c->first[t];
    c->needed[t] = weft_check_operand_needs(c->arrivals, o, t);
    if (!c->needed[t]) continue;
    c->box[t] = weft_check_operand_box(c->arrivals, o, t);
    c->first[t + 1] += weft_check_box_elements(&c->box[t]);
    for (int32_t d = 0; d < o->rank; ++d) {
      hull.lo[d] = any ? weft_min_i64(hull.lo[d], c->box[t].lo[d]) : c->box[t].lo[d];
      hull.hi[d] = any ? weft_max_i64(hull.hi[d], c->box[t].hi[d]) : c->box[t].hi[d];
    }
    any = true;
  }
  *out_hull = hull;
  int64_t elements = 1;
  for (int32_t d = 0; d < hull.rank; ++d)
    if (!weft_checked_mul(elements, hull.hi[d] - hull.lo[d], &elements)) return false;
  return elements <= MOST_HULL;
}

static weft_status_t count_all(count_t* c) {
  const weft_check_operand_t* o = c->operand;
  weft_allocator_t allocator = c->arrivals->check->allocator;
  const weft_stream_t* stream;
  size_t tiles = (size_t)o->tiles;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, tiles, sizeof(*c->box), (void**)&c->box));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, tiles, sizeof(*c->needed), (void**)&c->needed));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, tiles, sizeof(*c->taken), (void**)&c->taken));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, tiles + 1, sizeof(*c->first), (void**)&c->first));
  if (!make_boxes(c, &c->hull)) return weft_ok();
  size_t hull = (size_t)weft_check_box_elements(&c->hull);
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, hull, 1, (void**)&c->expected));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, (size_t)c->first[tiles], 1, (void**)&c->arrived));
  count_expected(c);
  for (size_t at = 0; (stream = weft_check_operand_stream(c->arrivals, o, &at));) check_stream(c, stream);
  for (int32_t t = 0; t < o->tiles; ++t) check_tile(c, t);
  return weft_ok();
}

weft_status_t weft_check_arrival_elements(weft_check_arrivals_t* a, const weft_check_operand_t* o) {
  if (!affordable(a, o)) return weft_ok();
  weft_allocator_t allocator = a->check->allocator;
  count_t count = {.arrivals = a, .operand = o};
  weft_status_t status = count_all(&count);
  void* owned[] = {count.box, count.needed, count.taken, count.first, count.expected, count.arrived};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) weft_allocator_free(allocator, owned[i]);
  return status;
}
