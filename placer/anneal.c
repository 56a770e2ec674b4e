#include "placer/anneal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "placer/demand.h"
#include "placer/schedule.h"
#include "placer/wire.h"

typedef struct annealer_t {
  const weft_placer_problem_t* problem;
  const weft_placer_grid_t* grid;
  const weft_placer_incidence_t* incidence;
  const weft_placer_options_t* options;
  weft_placer_spot_t *spots, *best;
  weft_placer_parts_t parts;
  double violation;
  double penalty; // cost of a tile of violation
  // The proposed move: what stood there before, for undo.
  int32_t first, second; // blocks; second < 0: only one moves
  weft_placer_spot_t old_first, old_second;
  weft_placer_parts_t old_parts;
  double old_violation;
  // Where overload has a weight; else NULL.
  weft_placer_demand_t* demand;
  double* old_load;
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

// Adds the edges at `block`, `sign` times; those to `other` only when count_other, so that a pair's common edges count
// once.
static void add_edges(annealer_t* a, int32_t block, int32_t other, bool count_other, double sign) {
  for (int32_t i = a->incidence->start[block]; i < a->incidence->start[block + 1]; ++i) {
    const weft_placer_edge_t* edge = &a->problem->edge[a->incidence->index[i]];
    if (!count_other && other >= 0 && (edge->from == other || edge->to == other)) continue;
    const weft_placer_spot_t *from = weft_placer_end_spot(a->spots, edge->from),
                             *to = weft_placer_end_spot(a->spots, edge->to);
    a->parts.wire += sign * weft_placer_edge_wire(a->problem, edge, from, to);
    if (a->demand) weft_placer_demand_add(a->demand, edge, from, to, sign);
  }
}

static double slowest(const annealer_t* a) {
  double time = 0;
  for (int32_t b = 0; b < a->problem->block_count; ++b) {
    time = fmax(time, a->problem->block[b].shape[a->spots[b].shape].time);
  }
  return time;
}

static double objective(const annealer_t* a) {
  return weft_placer_weigh(a->problem, &a->parts) + a->penalty * a->violation;
}

// Puts `shape` at (x, y) into *spot. False: it does not fit there.
static bool fit(const annealer_t* a, int32_t block, int32_t shape, bool transposed, int32_t x, int32_t y,
                weft_placer_spot_t* spot) {
  *spot = (weft_placer_spot_t){.shape = shape, .transposed = transposed, .x = x, .y = y};
  return weft_placer_grid_fit(a->grid, &a->problem->block[block].shape[shape], transposed, x, y, &spot->width,
                              &spot->height);
}

// A step of at most `range` of the longer side, either way, but at least one tile.
static int32_t offset(const annealer_t* a, weft_rng_t* rng, double range) {
  int32_t longer = a->problem->width > a->problem->height ? a->problem->width : a->problem->height;
  int64_t reach = (int64_t)fmax(1, range * longer);
  return (int32_t)((int64_t)weft_rng_below(rng, (uint64_t)(2 * reach + 1)) - reach);
}

// Draws a move: what `first` and perhaps `second` would become. False: no legal move.
static bool draw(annealer_t* a, weft_rng_t* rng, double range, weft_placer_spot_t* first, weft_placer_spot_t* second) {
  uint64_t blocks = (uint64_t)a->problem->block_count;
  int32_t b = a->first = (int32_t)weft_rng_below(rng, blocks);
  a->second = -1;
  const weft_placer_block_t* block = &a->problem->block[b];
  const weft_placer_spot_t* spot = &a->spots[b];
  bool fixed = block->fixed_x >= 0;
  uint64_t kind = weft_rng_below(rng, 10);
  if (kind < 5 && !fixed) { // translate
    int32_t x = spot->x + offset(a, rng, range), y = spot->y + offset(a, rng, range);
    return fit(a, b, spot->shape, spot->transposed, x, y, first) && free_for(a, first, b, -1);
  }
  if (kind < 7 && !fixed && blocks > 1) { // swap corners with another block
    int32_t o = (int32_t)weft_rng_below(rng, blocks - 1);
    o += o >= b;
    if (a->problem->block[o].fixed_x >= 0) return false;
    const weft_placer_spot_t* other = &a->spots[o];
    a->second = o;
    return fit(a, b, spot->shape, spot->transposed, other->x, other->y, first) &&
           fit(a, o, other->shape, other->transposed, spot->x, spot->y, second) && !overlap(first, second) &&
           free_for(a, first, b, o) && free_for(a, second, b, o);
  }
  int32_t shape = spot->shape;
  bool transposed = spot->transposed;
  if (kind == 9) {
    transposed = !transposed;
  } else {
    shape = (int32_t)weft_rng_below(rng, (uint64_t)block->shape_count);
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

static void add_moved(annealer_t* a, double sign) {
  add_edges(a, a->first, -1, true, sign);
  if (a->second >= 0) add_edges(a, a->second, a->first, false, sign);
}

static size_t load_bytes(const annealer_t* a) {
  return sizeof *a->old_load * (size_t)a->demand->columns * (size_t)a->demand->rows;
}

static bool propose(void* self, weft_rng_t* rng, double range, double limit, double* out_delta) {
  (void)limit; // the wire of a few edges is quickly summed
  annealer_t* a = self;
  weft_placer_spot_t first, second;
  if (!draw(a, rng, range, &first, &second)) return false;
  double before = objective(a);
  a->old_first = a->spots[a->first];
  if (a->second >= 0) a->old_second = a->spots[a->second];
  a->old_parts = a->parts;
  a->old_violation = a->violation;
  if (a->demand) memcpy(a->old_load, a->demand->load, load_bytes(a));
  add_moved(a, -1);
  a->spots[a->first] = first;
  if (a->second >= 0) a->spots[a->second] = second;
  add_moved(a, 1);
  if (first.shape != a->old_first.shape) a->parts.time = slowest(a);
  if (a->demand) a->parts.overload = weft_placer_demand_over(a->demand, a->parts.time);
  if (a->problem->constraint_count) a->violation = weft_placer_violation(a->problem, a->spots);
  *out_delta = objective(a) - before;
  return true;
}

static void keep(void* self) {
  (void)self; // the move is made already
}

static void undo(void* self) {
  annealer_t* a = self;
  a->spots[a->first] = a->old_first;
  if (a->second >= 0) a->spots[a->second] = a->old_second;
  if (a->demand) memcpy(a->demand->load, a->old_load, load_bytes(a));
  a->parts = a->old_parts;
  a->violation = a->old_violation;
}

static double recompute(void* self) {
  annealer_t* a = self;
  weft_placer_cost(a->problem, a->spots, &a->parts);
  if (a->demand) weft_placer_demand_fill(a->demand, a->spots);
  a->violation = weft_placer_violation(a->problem, a->spots);
  return objective(a);
}

static void save_best(void* self) {
  annealer_t* a = self;
  memcpy(a->best, a->spots, sizeof *a->best * (size_t)a->problem->block_count);
}

static void restore_best(void* self) {
  annealer_t* a = self;
  memcpy(a->spots, a->best, sizeof *a->best * (size_t)a->problem->block_count);
}

static void describe(void* self, char* text, int size) {
  const annealer_t* a = self;
  int length = snprintf(text, (size_t)size, "time %10.5g  wire %11.5g", a->parts.time, a->parts.wire);
  if (a->demand && length < size) {
    length += snprintf(text + length, (size_t)(size - length), "  overload %10.4g", a->parts.overload);
  }
  if (a->problem->constraint_count && length < size) {
    snprintf(text + length, (size_t)(size - length), "  missed %3.0f", a->violation);
  }
}

static void frame(void* self, double temperature) {
  const annealer_t* a = self;
  a->options->frame(a->options->frame_self, a->spots, temperature, objective(a));
}

double weft_placer_penalty(const weft_placer_problem_t* problem, double cost) {
  if (!problem->constraint_count) return 0;
  // A shape that fits where it has to may be by far the slowest.
  double slowest = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    for (int32_t s = 0; s < problem->block[b].shape_count; ++s)
      slowest = fmax(slowest, problem->block[b].shape[s].time);
  }
  return fmax(1, fabs(cost) + problem->weight_time * slowest);
}

// Whether the start is one that shouldn't be given up for a random one: slicing trees made it, unless blocks are fixed
// or constrained, or packing that kept to the constraints; and there is little room to move about in.
static bool is_good_start(const annealer_t* a) {
  const weft_placer_problem_t* p = a->problem;
  if (p->constraint_count) return true;
  bool free = p->block_count > 1;
  int64_t taken = 0, live = weft_placer_grid_live(a->grid, 0, 0, p->width, p->height);
  for (int32_t b = 0; b < p->block_count && free; ++b) {
    free = p->block[b].fixed_x < 0;
    taken += (int64_t)a->spots[b].width * a->spots[b].height;
  }
  return free && 2 * taken > live;
}

weft_status_t weft_placer_anneal(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                 const weft_placer_incidence_t* incidence, const weft_placer_options_t* options,
                                 weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                 weft_placer_spot_t* spots, weft_placer_annealed_t* out_annealed) {
  size_t blocks = (size_t)problem->block_count;
  *out_annealed = (weft_placer_annealed_t){0};
  if (!blocks) return weft_ok();
  annealer_t a = {.problem = problem, .grid = grid, .incidence = incidence, .options = options, .spots = spots};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &a.best));
  double cost = weft_placer_cost(problem, spots, NULL);
  if (problem->weight_overload > 0) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 1, &a.demand));
    weft_placer_demand_initialize(problem, a.demand);
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)a.demand->columns * (size_t)a.demand->rows, &a.old_load));
  }
  a.penalty = weft_placer_penalty(problem, cost);
  weft_placer_moves_t moves = {.self = &a,
                               .propose = propose,
                               .keep = keep,
                               .undo = undo,
                               .recompute = recompute,
                               .save_best = save_best,
                               .restore_best = restore_best,
                               .describe = describe,
                               .frame = options->frame ? frame : NULL};
  // The last temperature is VPR's: a small part of what an edge costs. From a good start the first is no more than lets
  // blocks slip past each other; elsewhere, and where that leaves constraints missed, the schedule measures one.
  bool good = is_good_start(&a);
  weft_placer_schedule_t schedule = {
      .moves_per_temperature = (int64_t)(options->effort * 40.0 * pow((double)blocks, 4.0 / 3.0)) + 40,
      .hot = good ? 0.003 * cost : 0,
      .cold = 0.002 * cost / (problem->edge_count > 0 ? problem->edge_count : 1),
      .seconds = options->seconds,
      .least_range = 1.0 / (problem->width > problem->height ? problem->width : problem->height)};
  weft_placer_annealing_t annealing;
  WEFT_RETURN_IF_ERROR(weft_placer_schedule_run(&schedule, &moves, rng, control, &annealing));
  *out_annealed = (weft_placer_annealed_t){.moves = annealing.moves, .drift = annealing.drift};
  if (good && a.violation > 0 && !weft_control_should_stop(control)) {
    schedule.hot = 0;
    WEFT_RETURN_IF_ERROR(weft_placer_schedule_run(&schedule, &moves, rng, control, &annealing));
    out_annealed->moves += annealing.moves;
    out_annealed->drift = fmax(out_annealed->drift, annealing.drift);
  }
  out_annealed->cost = annealing.cost;
  out_annealed->parts = a.parts;
  return weft_ok();
}
