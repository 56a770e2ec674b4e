#include "placer/slicing_targets.h"

#include <math.h>
#include <stdlib.h>

static double live_tiles(const weft_placer_problem_t* p) {
  double live = 0;
  for (int64_t i = 0; i < (int64_t)p->width * p->height; ++i) live += !(p->blocked && p->blocked[i]);
  return live;
}

static bool admits(const weft_placer_problem_t* p, const weft_placer_shape_t* shape, double time) {
  return shape->time <= time && ((shape->width <= p->width && shape->height <= p->height) ||
                                 (shape->height <= p->width && shape->width <= p->height));
}

// The Lagrangian for one multiplier: every block takes the shape with the least sum of its part of the wire and its
// area's price.
static double relaxed(const weft_placer_problem_t* p, double time, const double* pull, double price, double live) {
  double sum = -price * live;
  for (int32_t b = 0; b < p->block_count; ++b) {
    double least = INFINITY;
    for (int32_t s = 0; s < p->block[b].shape_count; ++s) {
      const weft_placer_shape_t* shape = &p->block[b].shape[s];
      if (!admits(p, shape, time)) continue;
      double side = shape->width < shape->height ? shape->width : shape->height;
      least = fmin(least, pull[b] * side / 2 + price * (double)shape->tiles);
    }
    sum += least;
  }
  return sum;
}

static double least_wire(const weft_placer_problem_t* p, double time, double* pull, double live) {
  for (int32_t b = 0; b < p->block_count; ++b) pull[b] = 0;
  for (int32_t e = 0; e < p->edge_count; ++e) {
    const weft_placer_edge_t* edge = &p->edge[e];
    if (edge->from < 0 || edge->to < 0 || edge->from == edge->to) continue; // an anchor may lie on its block
    pull[edge->from] += edge->weight;
    pull[edge->to] += edge->weight;
  }
  // The relaxed bound is concave in the price.
  double low = 0, high = 1e-6, best = relaxed(p, time, pull, 0, live);
  for (int i = 0; i < 60 && relaxed(p, time, pull, high * 2, live) > relaxed(p, time, pull, high, live); ++i) high *= 2;
  high *= 2;
  for (int i = 0; i < 60; ++i) {
    double a = low + (high - low) / 3, b = high - (high - low) / 3;
    double at_a = relaxed(p, time, pull, a, live), at_b = relaxed(p, time, pull, b, live);
    best = fmax(best, fmax(at_a, at_b));
    if (at_a < at_b)
      low = a;
    else
      high = b;
  }
  return fmax(0, best);
}

double weft_slicing_least_wire(const weft_placer_problem_t* problem, double time) {
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  double *pull = NULL, wire = 0;
  weft_status_t status = WEFT_ARENA_NEW(&arena, (size_t)problem->block_count + 1, &pull);
  if (!status) wire = least_wire(problem, time, pull, live_tiles(problem));
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  return wire;
}

static int compare_times(const void* a, const void* b) {
  double x = ((const weft_slicing_target_t*)a)->time, y = ((const weft_slicing_target_t*)b)->time;
  return (x > y) - (x < y);
}

// Least area of all blocks; INFINITY when one has no shape.
static double least_area(const weft_placer_problem_t* p, double time) {
  double sum = 0;
  for (int32_t b = 0; b < p->block_count; ++b) {
    double least = INFINITY;
    for (int32_t s = 0; s < p->block[b].shape_count; ++s) {
      const weft_placer_shape_t* shape = &p->block[b].shape[s];
      if (admits(p, shape, time)) least = fmin(least, (double)shape->tiles);
    }
    sum += least;
  }
  return sum;
}

weft_status_t weft_slicing_targets(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                   weft_slicing_target_t** out_target, int32_t* out_count) {
  size_t count = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) count += (size_t)problem->block[b].shape_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count + 1, out_target));
  double* pull = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)problem->block_count + 1, &pull));
  weft_slicing_target_t* target = *out_target;
  count = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    for (int32_t s = 0; s < problem->block[b].shape_count; ++s) target[count++].time = problem->block[b].shape[s].time;
  }
  qsort(target, count, sizeof *target, compare_times);
  size_t times = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!times || target[i].time > target[times - 1].time) target[times++].time = target[i].time;
  }
  // The least area falls with the time: the first that fits by bisection.
  double live = live_tiles(problem);
  size_t low = 0, high = times;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (least_area(problem, target[middle].time) <= live)
      high = middle;
    else
      low = middle + 1;
  }
  *out_count = (int32_t)(times - low);
  for (int32_t i = 0; i < *out_count; ++i) target[i].time = target[low + (size_t)i].time;
  return weft_ok();
}

void weft_slicing_target_measure(const weft_placer_problem_t* problem, weft_slicing_target_t* target) {
  target->fill = least_area(problem, target->time) / live_tiles(problem);
  target->least_wire = weft_slicing_least_wire(problem, target->time);
}
