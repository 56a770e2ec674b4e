// The engine: target time by bisection over packings, then annealing from the best packing, for each seed.
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "placer/anneal.h"
#include "placer/slicing_improve.h"
#include "placer/units.h"

enum { PACKING_TRIES = 24 };

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static weft_status_t check_problem(const weft_placer_problem_t* problem) {
  for (int32_t b = 0; b < problem->block_count; ++b) {
    if (problem->block[b].shape_count < 1)
      return weft_error(INVALID_ARGUMENT, "%s has no shape", problem->block[b].name);
  }
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &problem->edge[e];
    int32_t ends[2] = {edge->from, edge->to};
    for (int i = 0; i < 2; ++i) {
      if (ends[i] >= problem->block_count || -1 - ends[i] >= problem->anchor_count) {
        return weft_error(INVALID_ARGUMENT, "edge %d ends at block or anchor %d, which there isn't", e, ends[i]);
      }
    }
  }
  return weft_ok();
}

// All times that some shape has, ascending, without repetition.
static weft_status_t list_times(const weft_placer_problem_t* problem, weft_arena_t* arena, double** out_times,
                                size_t* out_count) {
  size_t count = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) count += (size_t)problem->block[b].shape_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count + 1, out_times));
  size_t at = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    for (int32_t s = 0; s < problem->block[b].shape_count; ++s) (*out_times)[at++] = problem->block[b].shape[s].time;
  }
  qsort(*out_times, count, sizeof **out_times, compare_doubles);
  *out_count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!i || (*out_times)[i] != (*out_times)[*out_count - 1]) (*out_times)[(*out_count)++] = (*out_times)[i];
  }
  return weft_ok();
}

static weft_status_t does_not_fit(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                  int32_t failed) {
  int64_t need = 0, largest = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    int64_t least = problem->block[b].shape[0].tiles;
    for (int32_t s = 1; s < problem->block[b].shape_count; ++s) {
      if (problem->block[b].shape[s].tiles < least) least = problem->block[b].shape[s].tiles;
    }
    need += least;
    if (least > largest) largest = least;
  }
  int64_t live = weft_placer_grid_live(grid, 0, 0, grid->width, grid->height);
  if (need > live) {
    int64_t side = (int64_t)ceil(sqrt((double)need));
    return weft_error(DOES_NOT_FIT,
                      "the network needs at least %lld tiles, the mesh %dx%d has %lld live ones; the smallest square "
                      "mesh that could hold it "
                      "is about %lldx%lld",
                      (long long)need, problem->width, problem->height, (long long)live, (long long)side,
                      (long long)side);
  }
  return weft_error(DOES_NOT_FIT,
                    "no legal placement found: %s finds no free rectangle; the blocks need at least %lld tiles of %lld "
                    "live ones on %dx%d, and "
                    "the gaps between them and the dead tiles take the rest; a larger mesh helps",
                    problem->block[failed].name, (long long)need, (long long)live, problem->width, problem->height);
}

// One seed's run, in an arena of its own: seeds run side by side.
typedef struct run_t {
  weft_arena_t arena;
  weft_placer_spot_t* spot;
  weft_placer_annealed_t annealed;
  weft_status_t status;
  bool done;
} run_t;

// What all seeds read.
typedef struct shared_t {
  const weft_placer_problem_t* problem;
  const weft_placer_options_t* options;
  weft_placer_grid_t grid;
  weft_placer_incidence_t incidence;
  double* times;
  size_t time_count;
} shared_t;

static weft_status_t run_seed(const shared_t* shared, const weft_placer_options_t* options,
                              const weft_control_t* control, run_t* run) {
  const weft_placer_problem_t* problem = shared->problem;
  size_t blocks = (size_t)problem->block_count;
  weft_placer_spot_t* trial = NULL;
  int32_t* scratch = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&run->arena, blocks + 1, &trial));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&run->arena, blocks + 1, &run->spot));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&run->arena, blocks * 3 + 3, &scratch));
  weft_rng_t rng;
  weft_rng_seed(&rng, options->seed);
  if (weft_placer_units_apply(problem)) {
    return weft_placer_units_anneal(problem, options, &rng, control, &run->arena, run->spot, &run->annealed);
  }
  // The largest target admits every shape: if that can't be packed, nothing can. Then bisect down.
  size_t low = 0, high = shared->time_count - 1;
  int32_t failed = 0;
  bool packed = weft_placer_pack(problem, &shared->grid, &shared->incidence, shared->times[high], PACKING_TRIES * 4,
                                 &rng, scratch, run->spot, &failed);
  if (!packed && problem->constraint_count) { // annealing may yet find what holds the constraints
    weft_placer_problem_t loose = *problem;
    loose.constraint_count = 0;
    packed = weft_placer_pack(&loose, &shared->grid, &shared->incidence, shared->times[high], PACKING_TRIES * 4, &rng,
                              scratch, run->spot, &failed);
    low = high;
  }
  if (!packed) return does_not_fit(problem, &shared->grid, failed);
  while (low < high && !weft_control_should_stop(control)) {
    size_t middle = low + (high - low) / 2;
    if (weft_placer_pack(problem, &shared->grid, &shared->incidence, shared->times[middle], PACKING_TRIES, &rng,
                         scratch, trial, &failed)) {
      high = middle;
      memcpy(run->spot, trial, sizeof *trial * blocks);
    } else {
      low = middle + 1;
    }
  }
  WEFT_RETURN_IF_ERROR(
      weft_slicing_improve(problem, &shared->grid, &shared->incidence, options, &rng, control, &run->arena, run->spot));
  return weft_placer_anneal(problem, &shared->grid, &shared->incidence, options, &rng, control, &run->arena, run->spot,
                            &run->annealed);
}

// Picks the best run; the lowest seed among equals, so that the number of threads does not matter.
static weft_status_t collect(const shared_t* shared, run_t* runs, weft_arena_t* arena,
                             weft_placer_result_t* out_result) {
  size_t blocks = (size_t)shared->problem->block_count;
  const run_t* best = NULL;
  for (int32_t s = 0; s < shared->options->seeds; ++s) {
    const run_t* run = &runs[s];
    if (!run->done) continue;
    out_result->moves += run->annealed.moves;
    out_result->drift = fmax(out_result->drift, run->annealed.drift);
    out_result->worst_seed_cost = best ? fmax(out_result->worst_seed_cost, run->annealed.cost) : run->annealed.cost;
    if (best && run->annealed.cost >= best->annealed.cost) continue;
    best = run;
    out_result->best_seed = shared->options->seed + (uint64_t)s;
  }
  out_result->cost = best->annealed.cost;
  out_result->parts = best->annealed.parts;
  WEFT_RETURN_IF_ERROR(weft_arena_copy(arena, best->spot, sizeof *best->spot * blocks, (void**)&out_result->spot));
  return weft_placer_legal(shared->problem, out_result->spot);
}

weft_status_t weft_placer_solve(const weft_placer_problem_t* problem, const weft_placer_options_t* options,
                                weft_arena_t* arena, weft_placer_result_t* out_result) {
  *out_result = (weft_placer_result_t){0};
  WEFT_RETURN_IF_ERROR(check_problem(problem));
  shared_t shared = {.problem = problem, .options = options};
  WEFT_RETURN_IF_ERROR(weft_placer_grid_create(problem, arena, &shared.grid));
  WEFT_RETURN_IF_ERROR(weft_placer_incidence_create(problem, arena, &shared.incidence));
  WEFT_RETURN_IF_ERROR(list_times(problem, arena, &shared.times, &shared.time_count));
  if (!problem->block_count) return WEFT_ARENA_NEW(arena, 1, &out_result->spot);
  run_t* runs = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)options->seeds, &runs));
  int threads = options->control && options->control->threads > 0 ? options->control->threads : omp_get_num_procs();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int32_t s = 0; s < options->seeds; ++s) {
    weft_arena_initialize(arena->allocator, &runs[s].arena);
    if (s && weft_control_should_stop(options->control)) continue;
    // Only the first seed reports: the callbacks are called from one thread.
    weft_control_t control = options->control ? *options->control : (weft_control_t){0};
    weft_placer_options_t own = *options;
    own.seed += (uint64_t)s;
    if (s) control.table = NULL, control.progress = NULL, own.frame = NULL;
    runs[s].status = run_seed(&shared, &own, &control, &runs[s]);
    runs[s].done = true;
  }
  weft_status_t status = weft_ok();
  for (int32_t s = 0; s < options->seeds; ++s) status = weft_status_join(status, runs[s].status);
  if (!status) status = collect(&shared, runs, arena, out_result);
  for (int32_t s = 0; s < options->seeds; ++s) weft_arena_deinitialize(&runs[s].arena);
  return status;
}
