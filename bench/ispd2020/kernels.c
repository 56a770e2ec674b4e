#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

int32_t ispd2020_parts(const ispd2020_node_t* node, ispd2020_conv_t out_parts[ISPD2020_PARTS]) {
  int64_t h = node->h, w = node->w, f = node->f;
  switch (node->kind) {
  case ISPD2020_CONV:
    out_parts[0] = (ispd2020_conv_t){h, w, node->r, node->s, node->c, node->k, node->t};
    return 1;
  case ISPD2020_DBLOCK:
    out_parts[0] = (ispd2020_conv_t){h, w, 1, 1, f, f / 4, 1};
    out_parts[1] = (ispd2020_conv_t){h, w, 3, 3, f / 4, f / 4, 1};
    out_parts[2] = (ispd2020_conv_t){h, w, 1, 1, f / 4, f, 1};
    return 3;
  case ISPD2020_CBLOCK:
    out_parts[0] = (ispd2020_conv_t){h, w, 1, 1, f / 2, f / 4, 1};
    out_parts[1] = (ispd2020_conv_t){h, w, 3, 3, f / 4, f / 4, 2};
    out_parts[2] = (ispd2020_conv_t){h / 2, w / 2, 1, 1, f / 4, f, 1};
    out_parts[3] = (ispd2020_conv_t){h, w, 1, 1, f / 2, f, 2};
    return 4;
  default:
    return 0;
  }
}

// Time of a convolution apart from its stride: time = rounds * r * s / t / t.
static double per_round(const ispd2020_conv_t* conv) {
  return (double)(conv->r * conv->s) / (double)conv->t / (double)conv->t;
}

int64_t ispd2020_time_unit(const ispd2020_graph_t* graph) {
  int64_t unit = 1;
  for (int32_t n = 0; n < graph->node_count; ++n) {
    ispd2020_conv_t part[ISPD2020_PARTS];
    for (int32_t p = ispd2020_parts(&graph->node[n], part); p-- > 0;) {
      if (unit % (part[p].t * part[p].t)) unit *= part[p].t * part[p].t;
    }
  }
  return unit;
}

// The kernel with h', w' and the channels a tile column takes (c') fixed: what is left to choose is k' of each part.
typedef struct column_t {
  const ispd2020_conv_t* part;
  int32_t parts, h, w, c;
  double memory;
} column_t;

// Rounds over rows, columns and input channels.
static int64_t outer_rounds(const column_t* column, const ispd2020_conv_t* conv) {
  int64_t c = column->c < conv->c ? column->c : conv->c;
  return weft_ceil_div(conv->h, column->h) * weft_ceil_div(conv->w, column->w) * weft_ceil_div(conv->c, c);
}

// The least k' that keeps to the time and the memory; 0: none does.
static int64_t least_k(const column_t* column, const ispd2020_conv_t* conv, double time) {
  double rounds = floor(time / per_round(conv) / (double)outer_rounds(column, conv) + 1e-9);
  if (rounds < 1) return 0;
  int64_t k = rounds >= (double)conv->k ? 1 : weft_ceil_div(conv->k, (int64_t)rounds);
  double c = column->c < conv->c ? column->c : (double)conv->c;
  double held = (double)conv->c / c * (double)(conv->r * conv->s) +
                (double)(conv->w + conv->s - 1) / column->w * (double)(conv->h + conv->r - 1) / column->h;
  int64_t by_memory = (int64_t)ceil((double)conv->k * held / column->memory - 1e-12);
  while ((double)conv->k / (double)(by_memory > 0 ? by_memory : 1) * held > column->memory) ++by_memory;
  if (by_memory > k) k = by_memory;
  return k <= conv->k ? k : 0;
}

// Width of the kernel when every part takes at most `time`; 0: it can't.
static int64_t width_at(const column_t* column, double time) {
  int64_t width = 0;
  for (int32_t p = 0; p < column->parts; ++p) {
    int64_t k = least_k(column, &column->part[p], time);
    if (!k) return 0;
    width += 3 * k;
  }
  return width;
}

typedef weft_status_t (*visit_fn)(void* self, const column_t* column);

// Only h' = ceil(H / p) matters, and the same for w'. Of those with the same product h' w' (height and memory are then
// the same) the ones that need fewer rounds are kept.
static bool beaten(const column_t* column, const uint8_t* steps, int32_t h, int32_t w) {
  int32_t product = h * w;
  for (int32_t other = 1; other <= product; ++other) {
    if (product % other || other == h || !(steps[other] & 1) || !(steps[product / other] & 2)) continue;
    bool better = true, same = true;
    for (int32_t p = 0; p < column->parts; ++p) {
      const ispd2020_conv_t* conv = &column->part[p];
      int64_t mine = weft_ceil_div(conv->h, h) * weft_ceil_div(conv->w, w);
      int64_t its = weft_ceil_div(conv->h, other) * weft_ceil_div(conv->w, product / other);
      better = better && its <= mine;
      same = same && its == mine;
    }
    if (better && (!same || other < h)) return true;
  }
  return false;
}

static weft_status_t visit_columns(const ispd2020_graph_t* graph, const ispd2020_node_t* node, visit_fn visit,
                                   void* self) {
  ispd2020_conv_t part[ISPD2020_PARTS];
  column_t column = {.part = part, .parts = ispd2020_parts(node, part), .memory = (double)graph->memory};
  int32_t side = graph->width > graph->height ? graph->width : graph->height;
  uint8_t steps[(1 << 13) + 1] = {0}; // bit 0: worth taking as h', bit 1: as w'
  int64_t channels = 1;
  for (int32_t p = 0; p < column.parts; ++p) {
    if (part[p].h < 1 || part[p].w < 1 || part[p].c < 1 || part[p].k < 1)
      return weft_error(INVALID_INPUT, "kernel %d is too small for its kind", node->id);
    for (int64_t i = 1; i <= part[p].h; ++i) {
      int64_t h = weft_ceil_div(part[p].h, i);
      if (h <= side) steps[h] |= 1;
    }
    for (int64_t i = 1; i <= part[p].w; ++i) {
      int64_t w = weft_ceil_div(part[p].w, i);
      if (w <= side) steps[w] |= 2;
    }
    channels = weft_max_i64(channels, part[p].c);
  }
  for (int32_t h = 1; 2 * h <= side; ++h) {
    for (int32_t w = 1; (steps[h] & 1) && 2 * h * w <= side; ++w) {
      if (!(steps[w] & 2) || beaten(&column, steps, h, w)) continue;
      column.h = h;
      column.w = w;
      for (column.c = 1; column.c <= channels && (int64_t)h * w * (column.c + 1) <= side; ++column.c)
        WEFT_RETURN_IF_ERROR(visit(self, &column));
    }
  }
  return weft_ok();
}

static bool inside(const ispd2020_graph_t* graph, int64_t width, int64_t height) {
  return (width <= graph->width && height <= graph->height) || (height <= graph->width && width <= graph->height);
}

typedef struct least_t {
  const ispd2020_graph_t* graph;
  double time;
  int64_t area;
} least_t;

static weft_status_t visit_least(void* self, const column_t* column) {
  least_t* least = self;
  int64_t width = width_at(column, least->time), height = (int64_t)column->h * column->w * (column->c + 1);
  if (width && inside(least->graph, width, height) && (!least->area || width * height < least->area))
    least->area = width * height;
  return weft_ok();
}

int64_t ispd2020_least_area(const ispd2020_graph_t* graph, const ispd2020_node_t* node, double time) {
  least_t least = {.graph = graph, .time = time};
  return weft_status_consume(visit_columns(graph, node, visit_least, &least)) ? least.area : 0;
}

// A rectangle for a time: what visit_shapes collects.
typedef struct candidate_t {
  double time; // counted
  weft_placer_shape_t shape;
  ispd2020_execution_t execution;
} candidate_t;
typedef struct collector_t {
  const ispd2020_graph_t* graph;
  double low, high;
  weft_allocator_t allocator;
  candidate_t* data;
  size_t count, capacity;
} collector_t;

static weft_status_t collect_at(collector_t* collector, const column_t* column, double time) {
  candidate_t candidate = {.execution = {.h = column->h, .w = column->w}};
  int64_t width = 0, height = (int64_t)column->h * column->w * (column->c + 1);
  double slowest = 0;
  for (int32_t p = 0; p < column->parts; ++p) {
    const ispd2020_conv_t* conv = &column->part[p];
    int64_t k = least_k(column, conv, time);
    if (!k) return weft_ok();
    width += 3 * k;
    candidate.execution.c[p] = (int32_t)(column->c < conv->c ? column->c : conv->c);
    candidate.execution.k[p] = (int32_t)k;
    slowest = fmax(slowest, (double)(outer_rounds(column, conv) * weft_ceil_div(conv->k, k)) * per_round(conv));
  }
  if (!inside(collector->graph, width, height)) return weft_ok();
  candidate.shape = (weft_placer_shape_t){
      .width = (int32_t)width, .height = (int32_t)height, .tiles = width * height, .time = slowest};
  candidate.time = fmax(slowest, collector->low);
  WEFT_RETURN_IF_ERROR(weft_array_reserve(collector->allocator, (void**)&collector->data, &collector->capacity,
                                          collector->count + 1, sizeof candidate));
  collector->data[collector->count++] = candidate;
  return weft_ok();
}

// The times at which the width of a column changes are those of its parts.
static weft_status_t visit_shapes(void* self, const column_t* column) {
  collector_t* collector = self;
  WEFT_RETURN_IF_ERROR(collect_at(collector, column, collector->low));
  for (int32_t p = 0; p < column->parts; ++p) {
    const ispd2020_conv_t* conv = &column->part[p];
    double round = (double)outer_rounds(column, conv) * per_round(conv);
    int64_t k = 1;
    while (k <= conv->k) { // from one k' to the next that needs fewer rounds
      int64_t rounds = weft_ceil_div(conv->k, k);
      double time = (double)rounds * round;
      if (time <= collector->low) break;
      if (time <= collector->high) WEFT_RETURN_IF_ERROR(collect_at(collector, column, time));
      if (rounds == 1) break;
      k = weft_ceil_div(conv->k, rounds - 1);
    }
  }
  return weft_ok();
}

static int compare_candidates(const void* a, const void* b) {
  const candidate_t *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  if (x->shape.tiles != y->shape.tiles) return x->shape.tiles < y->shape.tiles ? -1 : 1;
  if (x->shape.width != y->shape.width) return x->shape.width < y->shape.width ? -1 : 1;
  return memcmp(&x->execution, &y->execution, sizeof x->execution);
}

// The same with one more k' in a part, or one more c' where that changes the height's parity. False: there is no such.
static bool widen(const ispd2020_node_t* node, const weft_placer_shape_t* shape, const ispd2020_execution_t* execution,
                  bool higher, weft_placer_shape_t* out_shape, ispd2020_execution_t* out_execution) {
  ispd2020_conv_t part[ISPD2020_PARTS];
  int32_t parts = ispd2020_parts(node, part), c = 0;
  bool grown = false;
  *out_shape = *shape;
  *out_execution = *execution;
  for (int32_t p = 0; p < parts; ++p) c = execution->c[p] > c ? execution->c[p] : c;
  for (int32_t p = 0; p < parts && !(grown && !higher); ++p) {
    int32_t* value = higher ? &out_execution->c[p] : &out_execution->k[p];
    if (*value == (higher ? part[p].c : part[p].k) || (higher && *value < c)) continue;
    ++*value;
    grown = true;
  }
  int32_t step = execution->h * execution->w;
  if (!grown || (higher && step % 2 == 0)) return false;
  if (higher)
    out_shape->height += step;
  else
    out_shape->width += 3;
  out_shape->tiles = (int64_t)out_shape->width * out_shape->height;
  return true;
}

weft_status_t ispd2020_shapes(const ispd2020_graph_t* graph, const ispd2020_node_t* node, double low, double high,
                              weft_arena_t* arena, weft_placer_shape_t** out_shape,
                              ispd2020_execution_t** out_execution, int32_t* out_count) {
  collector_t collector = {.graph = graph, .low = low, .high = high, .allocator = arena->allocator};
  int32_t side = graph->width > graph->height ? graph->width : graph->height;
  int32_t* least = NULL; // [height] the least width of the shapes so far with at most this height
  weft_status_t status = visit_columns(graph, node, visit_shapes, &collector);
  if (!status) status = WEFT_ARENA_NEW(arena, (size_t)side + 1, &least);
  if (!status) status = WEFT_ARENA_NEW(arena, 3 * collector.count + 1, out_shape);
  if (!status) status = WEFT_ARENA_NEW(arena, 3 * collector.count + 1, out_execution);
  *out_count = 0;
  for (int32_t h = 0; h <= side && !status; ++h) least[h] = side + 1;
  if (!status && collector.count) qsort(collector.data, collector.count, sizeof *collector.data, compare_candidates);
  // In the order of time and area whoever is beaten is beaten by one before it.
  for (size_t i = 0; i < collector.count && !status; ++i) {
    const candidate_t* candidate = &collector.data[i];
    int32_t w = candidate->shape.width, h = candidate->shape.height;
    if (least[h] <= w) continue;
    (*out_shape)[*out_count] = candidate->shape;
    (*out_execution)[(*out_count)++] = candidate->execution;
    for (int32_t y = h; y <= side && least[y] > w; ++y) least[y] = w;
    for (int32_t y = w; y <= side && least[y] > h; ++y) least[y] = h;
  }
  weft_allocator_free(arena->allocator, collector.data);
  int32_t points = status ? 0 : *out_count;
  for (int32_t i = 0; i < 2 * points; ++i) {
    int32_t at = *out_count;
    *out_count +=
        widen(node, &(*out_shape)[i / 2], &(*out_execution)[i / 2], i % 2, &(*out_shape)[at], &(*out_execution)[at]) &&
        inside(graph, (*out_shape)[at].width, (*out_shape)[at].height);
  }
  return status;
}
