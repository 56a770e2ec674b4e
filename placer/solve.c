// The engine: target time by bisection over packings, then annealing from the best packing, for each seed.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/anneal.h"

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

typedef struct run_t {
  weft_placer_spot_t* spot;
  weft_placer_annealed_t annealed;
} run_t;

static weft_status_t run_seed(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                              const weft_placer_incidence_t* incidence, const double* times, size_t time_count,
                              uint64_t seed, const weft_placer_options_t* options, weft_arena_t* arena,
                              run_t* out_run) {
  size_t blocks = (size_t)problem->block_count;
  weft_placer_spot_t* trial = NULL;
  int32_t* scratch = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 1, &trial));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 1, &out_run->spot));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks * 3 + 3, &scratch));
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  // The largest target admits every shape: if that can't be packed, nothing can. Then bisect down.
  size_t low = 0, high = time_count - 1;
  int32_t failed = 0;
  if (!weft_placer_pack(problem, grid, incidence, times[high], PACKING_TRIES * 4, &rng, scratch, out_run->spot,
                        &failed)) {
    return does_not_fit(problem, grid, failed);
  }
  while (low < high && !weft_control_should_stop(options->control)) {
    size_t middle = low + (high - low) / 2;
    if (weft_placer_pack(problem, grid, incidence, times[middle], PACKING_TRIES, &rng, scratch, trial, &failed)) {
      high = middle;
      memcpy(out_run->spot, trial, sizeof *trial * blocks);
    } else {
      low = middle + 1;
    }
  }
  return weft_placer_anneal(problem, grid, incidence, options->effort, &rng, options->control, arena, out_run->spot,
                            &out_run->annealed);
}

weft_status_t weft_placer_solve(const weft_placer_problem_t* problem, const weft_placer_options_t* options,
                                weft_arena_t* arena, weft_placer_result_t* out_result) {
  *out_result = (weft_placer_result_t){0};
  WEFT_RETURN_IF_ERROR(check_problem(problem));
  weft_placer_grid_t grid;
  weft_placer_incidence_t incidence;
  double* times = NULL;
  size_t time_count = 0;
  WEFT_RETURN_IF_ERROR(weft_placer_grid_create(problem, arena, &grid));
  WEFT_RETURN_IF_ERROR(weft_placer_incidence_create(problem, arena, &incidence));
  WEFT_RETURN_IF_ERROR(list_times(problem, arena, &times, &time_count));
  if (!problem->block_count) return WEFT_ARENA_NEW(arena, 1, &out_result->spot);
  for (int32_t s = 0; s < options->seeds; ++s) {
    if (s && weft_control_should_stop(options->control)) break;
    run_t run = {0};
    WEFT_RETURN_IF_ERROR(
        run_seed(problem, &grid, &incidence, times, time_count, options->seed + (uint64_t)s, options, arena, &run));
    out_result->moves += run.annealed.moves;
    out_result->drift = fmax(out_result->drift, run.annealed.drift);
    out_result->worst_seed_cost = s ? fmax(out_result->worst_seed_cost, run.annealed.cost) : run.annealed.cost;
    if (s && run.annealed.cost >= out_result->cost) continue;
    out_result->spot = run.spot;
    out_result->cost = run.annealed.cost;
    out_result->time = run.annealed.time;
    out_result->wire = run.annealed.wire;
  }
  return weft_placer_legal(problem, out_result->spot);
}
