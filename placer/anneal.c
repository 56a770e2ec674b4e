#include "placer/anneal.h"

#include <math.h>
#include <string.h>

typedef struct annealer_t {
  const weft_placer_problem_t* problem;
  const weft_placer_grid_t* grid;
  const weft_placer_incidence_t* incidence;
  weft_rng_t* rng;
  weft_placer_spot_t* spots;
  double time, wire;
  double range; // moves reach this far, tiles
} annealer_t;

static bool overlap(const weft_placer_spot_t* s, const weft_placer_spot_t* t) {
  return s->x < t->x + t->width && t->x < s->x + s->width && s->y < t->y + t->height && t->y < s->y + s->height;
}

static bool free_for(const annealer_t* a, const weft_placer_spot_t* s, int32_t except, int32_t except_too) {
  for (int32_t b = 0; b < a->problem->block_count; ++b) {
    if (b != except && b != except_too && overlap(s, &a->spots[b])) return false;
  }
  return true;
}

static void centre(const annealer_t* a, int32_t end, double* out_x, double* out_y) {
  if (end < 0) {
    *out_x = a->problem->anchor[-1 - end].x;
    *out_y = a->problem->anchor[-1 - end].y;
  } else {
    *out_x = a->spots[end].x + a->spots[end].width / 2.0;
    *out_y = a->spots[end].y + a->spots[end].height / 2.0;
  }
}

// Wire of the edges at `block`; those to `other` only when count_other, so that a pair's common edges count once.
static double wire_at(const annealer_t* a, int32_t block, int32_t other, bool count_other) {
  double wire = 0;
  for (int32_t i = a->incidence->start[block]; i < a->incidence->start[block + 1]; ++i) {
    const weft_placer_edge_t* edge = &a->problem->edge[a->incidence->index[i]];
    if (!count_other && other >= 0 && (edge->from == other || edge->to == other)) continue;
    double x0, y0, x1, y1;
    centre(a, edge->from, &x0, &y0);
    centre(a, edge->to, &x1, &y1);
    wire += edge->weight * (fabs(x0 - x1) + fabs(y0 - y1));
  }
  return wire;
}

static double slowest(const annealer_t* a) {
  double time = 0;
  for (int32_t b = 0; b < a->problem->block_count; ++b) {
    time = fmax(time, a->problem->block[b].shape[a->spots[b].shape].time);
  }
  return time;
}

static double objective(const annealer_t* a) {
  return a->problem->weight_time * a->time + a->problem->weight_wire * a->wire;
}

// Puts `shape` at (x, y) into *spot. False: it does not fit there.
static bool fit(const annealer_t* a, int32_t block, int32_t shape, bool transposed, int32_t x, int32_t y,
                weft_placer_spot_t* spot) {
  *spot = (weft_placer_spot_t){.shape = shape, .transposed = transposed, .x = x, .y = y};
  return weft_placer_grid_fit(a->grid, &a->problem->block[block].shape[shape], transposed, x, y, &spot->width,
                              &spot->height);
}

static int32_t offset(annealer_t* a) {
  int64_t reach = (int64_t)fmax(1, a->range);
  return (int32_t)((int64_t)weft_rng_below(a->rng, (uint64_t)(2 * reach + 1)) - reach);
}

// Proposes a move of one block, or of two (a swap): fills what they would become. False: not legal.
static bool propose(annealer_t* a, int32_t* out_first, int32_t* out_second, weft_placer_spot_t* first,
                    weft_placer_spot_t* second) {
  uint64_t blocks = (uint64_t)a->problem->block_count;
  int32_t b = (int32_t)weft_rng_below(a->rng, blocks);
  const weft_placer_block_t* block = &a->problem->block[b];
  const weft_placer_spot_t* spot = &a->spots[b];
  bool fixed = block->fixed_x >= 0;
  *out_first = b;
  *out_second = -1;
  uint64_t kind = weft_rng_below(a->rng, 10);
  if (kind < 5 && !fixed) { // translate
    return fit(a, b, spot->shape, spot->transposed, spot->x + offset(a), spot->y + offset(a), first) &&
           free_for(a, first, b, -1);
  }
  if (kind < 7 && !fixed && blocks > 1) { // swap corners with another block
    int32_t o = (int32_t)weft_rng_below(a->rng, blocks - 1);
    o += o >= b;
    if (a->problem->block[o].fixed_x >= 0) return false;
    const weft_placer_spot_t* other = &a->spots[o];
    *out_second = o;
    return fit(a, b, spot->shape, spot->transposed, other->x, other->y, first) &&
           fit(a, o, other->shape, other->transposed, spot->x, spot->y, second) && !overlap(first, second) &&
           free_for(a, first, b, o) && free_for(a, second, b, o);
  }
  int32_t shape = spot->shape;
  bool transposed = spot->transposed;
  if (kind == 9) {
    transposed = !transposed;
  } else {
    shape = (int32_t)weft_rng_below(a->rng, (uint64_t)block->shape_count);
  }
  if (shape == spot->shape && transposed == spot->transposed) return false;
  int32_t x = spot->x, y = spot->y;
  if (!fixed) { // about the centre, so that the wire does not decide alone
    const weft_placer_shape_t* s = &block->shape[shape];
    x += (spot->width - (transposed ? s->height : s->width)) / 2;
    y += (spot->height - (transposed ? s->width : s->height)) / 2;
  }
  return fit(a, b, shape, transposed, x, y, first) && free_for(a, first, b, -1);
}

// One move at a temperature; negative: take every legal one. True when taken; *out_delta is set when it was legal.
static bool step(annealer_t* a, double temperature, double* out_delta, bool* out_legal) {
  int32_t b = 0, o = 0;
  weft_placer_spot_t first, second;
  *out_legal = propose(a, &b, &o, &first, &second);
  if (!*out_legal) return false;
  weft_placer_spot_t old_first = a->spots[b], old_second = o >= 0 ? a->spots[o] : old_first;
  double wire = wire_at(a, b, -1, true) + (o >= 0 ? wire_at(a, o, b, false) : 0);
  a->spots[b] = first;
  if (o >= 0) a->spots[o] = second;
  double new_wire = a->wire - wire + wire_at(a, b, -1, true) + (o >= 0 ? wire_at(a, o, b, false) : 0);
  double new_time = first.shape != old_first.shape ? slowest(a) : a->time;
  double delta = a->problem->weight_time * (new_time - a->time) + a->problem->weight_wire * (new_wire - a->wire);
  *out_delta = delta;
  if (delta <= 0 || temperature < 0 || weft_rng_unit(a->rng) < exp(-delta / temperature)) {
    a->time = new_time;
    a->wire = new_wire;
    return true;
  }
  a->spots[b] = old_first;
  if (o >= 0) a->spots[o] = old_second;
  return false;
}

static void restart_from(annealer_t* a, const weft_placer_spot_t* spots) {
  memcpy(a->spots, spots, sizeof *spots * (size_t)a->problem->block_count);
  weft_placer_cost(a->problem, a->spots, &a->time, &a->wire);
}

// The running cost against a full recomputation; also takes the recomputed one, so that rounding does not build up.
static void recompute(annealer_t* a, double* drift) {
  double running = objective(a);
  double full = weft_placer_cost(a->problem, a->spots, &a->time, &a->wire);
  *drift = fmax(*drift, fabs(running - full) / fmax(1e-12, fabs(full)));
}

weft_status_t weft_placer_anneal(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                 const weft_placer_incidence_t* incidence, double effort, weft_rng_t* rng,
                                 const weft_control_t* control, weft_arena_t* arena, weft_placer_spot_t* spots,
                                 weft_placer_annealed_t* out_annealed) {
  size_t blocks = (size_t)problem->block_count;
  annealer_t a = {.problem = problem, .grid = grid, .incidence = incidence, .rng = rng, .spots = spots};
  weft_placer_spot_t* best = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 1, &best));
  memcpy(best, spots, sizeof *best * blocks);
  *out_annealed = (weft_placer_annealed_t){0};
  double best_cost = weft_placer_cost(problem, spots, &a.time, &a.wire);
  double full_range = problem->width > problem->height ? problem->width : problem->height;
  a.range = full_range;

  int64_t moves = (int64_t)(effort * 40.0 * pow((double)blocks, 4.0 / 3.0)) + 40;
  // The spread of the cost over random legal moves sets the first temperature.
  double sum = 0, squares = 0;
  int64_t sampled = 0;
  for (int64_t i = 0; i < moves && blocks; ++i) {
    double delta = 0;
    bool legal = false;
    step(&a, -1, &delta, &legal);
    if (!legal) continue;
    double cost = objective(&a);
    sum += cost;
    squares += cost * cost;
    ++sampled;
  }
  double mean = sampled ? sum / (double)sampled : 0;
  double temperature = sampled ? 20 * sqrt(fmax(0, squares / (double)sampled - mean * mean)) : 0;
  restart_from(&a, best);

  int32_t edges = problem->edge_count > 0 ? problem->edge_count : 1;
  for (int32_t round = 0; round < 500 && temperature > 0.002 * best_cost / edges; ++round) {
    int64_t taken = 0;
    for (int64_t i = 0; i < moves; ++i) {
      if (i % 256 == 0 && weft_control_should_stop(control)) break;
      double delta = 0;
      bool legal = false;
      if (!step(&a, temperature, &delta, &legal)) continue;
      ++taken;
      double cost = objective(&a);
      if (cost < best_cost) {
        best_cost = cost;
        memcpy(best, spots, sizeof *best * blocks);
      }
    }
    out_annealed->moves += moves;
    recompute(&a, &out_annealed->drift);
    double rate = (double)taken / (double)moves;
    weft_control_table(control, "place",
                       "T %11.4g  cost %11.5g  time %10.5g  wire %11.5g  accepted %5.1f %%  range %6.1f  moves %lld",
                       temperature, objective(&a), a.time, a.wire, 100 * rate, a.range, (long long)out_annealed->moves);
    if (weft_control_should_stop(control)) break;
    a.range = fmin(full_range, fmax(1, a.range * (1 - 0.44 + rate)));
    temperature *= rate > 0.96 ? 0.5 : rate > 0.8 ? 0.9 : rate > 0.15 || a.range > 1 ? 0.95 : 0.8;
  }
  memcpy(spots, best, sizeof *best * blocks);
  out_annealed->cost = weft_placer_cost(problem, spots, &out_annealed->time, &out_annealed->wire);
  if (out_annealed->drift > 1e-6) {
    return weft_error(INTERNAL, "the annealer's running cost drifted by %.3g from the recomputed one",
                      out_annealed->drift);
  }
  return weft_ok();
}
