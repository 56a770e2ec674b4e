#include "placer/slicing_improve.h"

#include <math.h>
#include <string.h>

#include "placer/slicing_moves.h"
#include "placer/slicing_peel.h"
#include "placer/slicing_targets.h"

enum { TRIALS = 10, TEMPERATURES = 60 };
// Moves a block of a trial and of the last run; and how many at least, of a few blocks, on a grid of so many tiles: on
// larger ones a move takes longer.
enum {
  TRIAL_MOVES = 60,
  WIRE_MOVES = 240,
  FEWEST_TRIAL_MOVES = 40000,
  FEWEST_WIRE_MOVES = 60000,
  FEWEST_TILES = 40000
};
static const double OVERFLOW_PRICE = 80, HOT = 0.1, COLD = 0.003; // in wire of a mean edge; by the grid's side
static const double BEAM_PLACES = 6000;                           // beam times blocks

typedef struct improver_t {
  const weft_placer_problem_t* problem;
  const weft_control_t* control;
  weft_rng_t* rng;
  weft_arena_t arena;
  weft_slicing_tree_t tree;
  weft_slicing_walk_t walk;
  double edge; // cost of a tile of a mean edge
  const weft_placer_options_t* options;
  double effort;
  int64_t moves;
} improver_t;

static bool can_slice(const weft_placer_problem_t* p) {
  if (p->block_count < 2 || p->constraint_count) return false;
  for (int32_t b = 0; b < p->block_count; ++b) {
    if (p->block[b].fixed_x >= 0 || p->block[b].shape_count >= INT16_MAX) return false;
  }
  return p->width < INT16_MAX / 4 && p->height < INT16_MAX / 4;
}

static int64_t moves_of(const improver_t* i, double a_block, double fewest) {
  double tiles = (double)i->problem->width * i->problem->height;
  return (int64_t)(i->effort * fmax(fewest * fmin(1, FEWEST_TILES / tiles), a_block * i->problem->block_count));
}

static weft_status_t anneal(improver_t* i, int64_t moves, bool stop_when_found) {
  double side = sqrt((double)i->problem->width * i->problem->height);
  double hot = HOT * side * i->edge, cold = COLD * side * i->edge;
  weft_placer_schedule_t schedule = {.moves_per_temperature = moves / TEMPERATURES + 1,
                                     .hot = hot,
                                     .cold = cold,
                                     .cooling = pow(cold / hot, 1.0 / TEMPERATURES),
                                     .most_moves = moves};
  weft_control_t control = {.deadline = i->control ? i->control->deadline : 0, .cancelled = &i->walk.stop};
  i->walk.stop_when_found = stop_when_found;
  i->walk.stop = 0;
  i->walk.outer = i->control;
  weft_placer_moves_t table = weft_slicing_walk_moves(&i->walk);
  weft_placer_annealing_t annealing;
  WEFT_RETURN_IF_ERROR(weft_placer_schedule_run(&schedule, &table, i->rng, &control, &annealing));
  i->moves += annealing.moves;
  return weft_ok();
}

// Looks for a tree that fits at a target time: from the beam search both ways, then from a rough start.
static weft_status_t try_target(improver_t* i, double time, bool* out_found) {
  *out_found = false;
  i->walk.found_cost = INFINITY;
  if (!weft_slicing_aim(&i->tree, time)) return weft_ok();
  for (int start = 0; start < 3 && !*out_found && !weft_control_should_stop(i->control); ++start) {
    bool ready = true;
    if (start < 2) {
      weft_slicing_peel_t peel = {.beam = (int32_t)fmin(200, fmax(20, BEAM_PLACES / i->problem->block_count)),
                                  .backwards = start == 1,
                                  .waste_weight = i->edge * OVERFLOW_PRICE,
                                  .control = i->control};
      WEFT_RETURN_IF_ERROR(weft_slicing_peel(&i->tree, &peel, i->rng, &i->arena, &ready));
    } else {
      ready = weft_slicing_start(&i->tree, i->rng);
    }
    if (!ready || !weft_slicing_realise(&i->tree, INFINITY)) continue;
    WEFT_RETURN_IF_ERROR(anneal(i, moves_of(i, TRIAL_MOVES, FEWEST_TRIAL_MOVES), true));
    *out_found = i->walk.found_cost < INFINITY;
  }
  return weft_ok();
}

// Takes over what was found when it costs less.
static void take(improver_t* i, weft_placer_spot_t* spots, double* cost) {
  if (!(i->walk.found_cost < INFINITY)) return;
  double found = weft_placer_cost(i->problem, i->walk.found, NULL);
  if (found >= *cost) return;
  weft_status_t legal = weft_placer_legal(i->problem, i->walk.found);
  if (!weft_status_consume(legal)) return;
  *cost = found;
  memcpy(spots, i->walk.found, sizeof *spots * (size_t)i->problem->block_count);
}

static weft_status_t improve(improver_t* i, weft_placer_spot_t* spots) {
  weft_slicing_target_t* target = NULL;
  int32_t count = 0, low = 0, high = 0;
  weft_placer_parts_t parts;
  double cost = weft_placer_cost(i->problem, spots, &parts), best = INFINITY;
  WEFT_RETURN_IF_ERROR(weft_slicing_targets(i->problem, &i->arena, &target, &count));
  while (high < count && target[high].time < parts.time) ++high;
  bool found = false;
  for (int trial = 0; trial < TRIALS && low < high && !weft_control_should_stop(i->control); ++trial) {
    weft_control_progress(i->control, "place", (uint64_t)trial, TRIALS + 2);
    int32_t middle = low + (high - low) / 2;
    WEFT_RETURN_IF_ERROR(try_target(i, target[middle].time, &found));
    weft_control_table(i->control, "place", "slicing  target %11.5g  %s  moves %lld", target[middle].time,
                       found ? "fits" : "does not fit", (long long)i->moves);
    if (found) {
      high = middle;
      best = target[middle].time;
      take(i, spots, &cost);
    } else {
      low = middle + 1;
    }
  }
  if (weft_control_should_stop(i->control)) return weft_ok();
  // Once more at the lowest time that fits, for the wire.
  WEFT_RETURN_IF_ERROR(try_target(i, best < INFINITY ? best : parts.time, &found));
  if (!found) return weft_ok();
  i->walk.watch = i->options->frame ? i->options : NULL; // the trials before have states like it again and again
  WEFT_RETURN_IF_ERROR(anneal(i, moves_of(i, WIRE_MOVES, FEWEST_WIRE_MOVES), false));
  take(i, spots, &cost);
  weft_control_table(i->control, "place", "slicing  cost %11.5g  moves %lld", cost, (long long)i->moves);
  return weft_ok();
}

weft_status_t weft_slicing_improve(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                   const weft_placer_incidence_t* incidence, const weft_placer_options_t* options,
                                   weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                   weft_placer_spot_t* spots) {
  if (!can_slice(problem)) return weft_ok();
  improver_t i = {.problem = problem, .control = control, .rng = rng, .options = options, .effort = options->effort};
  weft_arena_initialize(arena->allocator, &i.arena);
  double weight = 0;
  for (int32_t e = 0; e < problem->edge_count; ++e) weight += problem->edge[e].weight;
  i.edge = problem->edge_count ? problem->weight_wire * weight / problem->edge_count : 0;
  if (i.edge <= 0) i.edge = 1;
  weft_status_t status = weft_slicing_create(problem, grid, incidence, &i.arena, &i.tree);
  if (!status) status = weft_slicing_walk_create(&i.tree, &i.arena, &i.walk);
  i.tree.overflow_weight = i.edge * OVERFLOW_PRICE;
  if (!status) status = improve(&i, spots);
  weft_arena_deinitialize(&i.arena);
  return status;
}
