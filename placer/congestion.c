#include "placer/congestion.h"

#include <math.h>
#include <stdlib.h>

weft_status_t weft_congestion_create(int32_t width, int32_t height, int32_t bin, weft_arena_t* arena,
                                     weft_congestion_t* out_congestion) {
  *out_congestion = (weft_congestion_t){.width = width,
                                        .height = height,
                                        .bin = bin,
                                        .columns = (width + bin - 1) / bin,
                                        .rows = (height + bin - 1) / bin};
  return WEFT_ARENA_NEW(arena, (size_t)out_congestion->columns * (size_t)out_congestion->rows, &out_congestion->load);
}

// Not fmax and fmin: they would be calls, as they look after values that aren't numbers.
static inline double greater(double a, double b) {
  return a > b ? a : b;
}

static inline double lesser(double a, double b) {
  return a < b ? a : b;
}

// Adds `density` a tile, by how much of each bin the box covers.
static void add_density(weft_congestion_t* map, weft_congestion_box_t box, double density) {
  double size = map->bin;
  box.x0 = greater(box.x0, 0), box.y0 = greater(box.y0, 0);
  box.x1 = lesser(box.x1, map->width), box.y1 = lesser(box.y1, map->height);
  for (int32_t row = (int32_t)(box.y0 / size); row < map->rows && row * size < box.y1; ++row) {
    double high = lesser(box.y1, (row + 1) * size) - greater(box.y0, row * size);
    for (int32_t column = (int32_t)(box.x0 / size); column < map->columns && column * size < box.x1; ++column) {
      double wide = lesser(box.x1, (column + 1) * size) - greater(box.x0, column * size);
      map->load[(size_t)row * (size_t)map->columns + (size_t)column] += density * high * wide;
    }
  }
}

// One direction of a flow: along x from centre to centre, bin by bin; with `along_y` the axes change places.
static void add_corridor(weft_congestion_t* map, weft_congestion_box_t from, weft_congestion_box_t to, double wavelets,
                         bool along_y) {
  if (along_y) {
    from = (weft_congestion_box_t){from.y0, from.x0, from.y1, from.x1};
    to = (weft_congestion_box_t){to.y0, to.x0, to.y1, to.x1};
  }
  double start = (from.x0 + from.x1) / 2, end = (to.x0 + to.x1) / 2, size = map->bin;
  double last = greater(start, end);
  for (double at = lesser(start, end); at < last;) {
    double next = lesser(last, (floor(at / size + 1e-9) + 1) * size);
    double share = ((at + next) / 2 - start) / (end - start);
    double low = from.y0 + share * (to.y0 - from.y0), high = from.y1 + share * (to.y1 - from.y1);
    weft_congestion_box_t part = {at, low, next, high};
    if (along_y) part = (weft_congestion_box_t){low, at, high, next};
    add_density(map, part, wavelets / (high - low));
    at = next;
  }
}

void weft_congestion_add(weft_congestion_t* congestion, const weft_congestion_flow_t* flow) {
  add_corridor(congestion, flow->from, flow->to, flow->wavelets, false);
  add_corridor(congestion, flow->from, flow->to, flow->wavelets, true);
  double tiles = (flow->to.x1 - flow->to.x0) * (flow->to.y1 - flow->to.y0), sinks = (double)flow->sinks;
  if (tiles > 0) add_density(congestion, flow->to, greater(sinks, 0.76 * sqrt(sinks * tiles)) * flow->wavelets / tiles);
}

void weft_congestion_spread(weft_congestion_t* congestion, weft_congestion_box_t box, double hops) {
  double tiles = (box.x1 - box.x0) * (box.y1 - box.y0);
  if (tiles > 0) add_density(congestion, box, hops / tiles);
}

void weft_congestion_finish(weft_congestion_t* congestion, const int32_t* live) {
  for (size_t b = 0; b < (size_t)congestion->rows * (size_t)congestion->columns; ++b)
    congestion->load[b] = live[b] ? congestion->load[b] / (4.0 * live[b]) : 0;
}

typedef struct ranked_t {
  double value;
  size_t index;
} ranked_t;

static int compare_ranked(const void* a, const void* b) {
  const ranked_t *x = a, *y = b;
  if (x->value != y->value) return (x->value > y->value) - (x->value < y->value);
  return (x->index > y->index) - (x->index < y->index);
}

static void rank(const double* value, size_t count, ranked_t* scratch, double* out_rank) {
  for (size_t i = 0; i < count; ++i) scratch[i] = (ranked_t){value[i], i};
  qsort(scratch, count, sizeof *scratch, compare_ranked);
  for (size_t first = 0; first < count;) {
    size_t end = first + 1;
    while (end < count && scratch[end].value == scratch[first].value) ++end;
    for (size_t i = first; i < end; ++i) out_rank[scratch[i].index] = (double)(first + end - 1) / 2;
    first = end;
  }
}

weft_status_t weft_rank_correlation(weft_allocator_t allocator, const double* a, const double* b, size_t count,
                                    double* out_correlation) {
  *out_correlation = 0;
  ranked_t* scratch = NULL;
  double* ranks = NULL;
  weft_status_t status = weft_allocator_calloc(allocator, count + 1, sizeof *scratch, (void**)&scratch);
  if (!status) status = weft_allocator_calloc(allocator, 2 * count + 1, sizeof *ranks, (void**)&ranks);
  if (!status) {
    rank(a, count, scratch, ranks);
    rank(b, count, scratch, ranks + count);
    double mean = ((double)count - 1) / 2, together = 0, of_a = 0, of_b = 0;
    for (size_t i = 0; i < count; ++i) {
      double x = ranks[i] - mean, y = ranks[count + i] - mean;
      together += x * y, of_a += x * x, of_b += y * y;
    }
    if (of_a > 0 && of_b > 0) *out_correlation = together / sqrt(of_a * of_b);
  }
  weft_allocator_free(allocator, scratch);
  weft_allocator_free(allocator, ranks);
  return status;
}
