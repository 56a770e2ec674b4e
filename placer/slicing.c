#include "placer/slicing.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "placer/slicing_targets.h"

enum {
  SCRATCH,
  FORWARDS,
  BACKWARDS,
  STARTS,
  FIRST_TARGETS = 8,
  MOST_ARMS = 120,
  MOST_JOBS = 64,
  ROUNDS = 5,
  MOST_MIXED = 40,
  TEMPERATURES = 100,
  MOST_TRIES = 12,
  NOISY_PEELS = 3
};
static const double MOST_FILL = 0.985;     // of the least areas: beyond it nothing was ever packed
static const double NOISE = 0.05;          // of the beam searches after the first
static const double SCARCE = 0.8;          // fill from which on area is what counts
static const double LEAST_GAIN = 0.0015;   // of area, for a target to be worth trying after a lower one
static const double OVERFLOW_PRICE = 80;   // wire of a mean edge that a tile of overflow costs
static const double DEARER = 3;            // when a tree is annealed again
static const double HOT = 0.6, COLD = 1.5; // temperature of a rough start, by the grid's side; the last one, in tiles
static const double BEAM_PLACES = 20000;   // beam times blocks
// A run has to have some moves a block to be worth it, and a move takes time in the number of blocks.
static const double MOVES_A_BLOCK = 4000, BLOCK_MOVES_A_SECOND = 6e6;

// A target with a way to start, and what came of it.
typedef struct arm_t {
  int32_t target;
  int start;
  int32_t runs;
  double hopeful;    // least cost so far, overflow included
  double found_cost; // least cost of a legal layout; INFINITY: none
  bool has_first, has_tree;
  weft_slicing_node_t *first, *tree; // of the beam search, and of the best run
  int32_t first_root, root;
  weft_placer_spot_t* spot;
} arm_t;

// One annealing run of an arm.
typedef struct job_t {
  int32_t arm;
  bool peel;  // only the beam search
  bool again; // from the arm's tree rather than its start
  bool first; // from the first beam search's tree, when not again, though there were runs before
  double hot; // in tiles of a mean edge
  uint64_t seed;
  double seconds;
  int64_t moves;
  weft_status_t status;
  // Results:
  bool done;
  double cost, found_cost;
  int64_t moves_made;
  double drift;
  weft_slicing_node_t* tree;
  int32_t root;
  weft_placer_spot_t* spot;
} job_t;

// What a thread needs to run jobs.
typedef struct worker_t {
  weft_arena_t arena;
  weft_slicing_tree_t tree;
  weft_slicing_walk_t walk;
} worker_t;

typedef struct searcher_t {
  const weft_placer_problem_t* problem;
  const weft_placer_grid_t* grid;
  const weft_placer_incidence_t* incidence;
  const weft_slicing_search_t* search;
  weft_arena_t* arena;
  weft_slicing_target_t* target;
  int32_t target_count;
  double edge; // cost of a tile of a mean edge
  arm_t arm[MOST_ARMS];
  int32_t arm_count;
  job_t job[MOST_JOBS];
  int32_t job_count;
  worker_t* worker;
  int32_t worker_count;
  double started;
  weft_slicing_found_t* found;
} searcher_t;

static size_t node_bytes(const searcher_t* s) {
  return sizeof(weft_slicing_node_t) * (size_t)(2 * s->problem->block_count);
}

static weft_status_t add_arm(searcher_t* s, int32_t target, int start) {
  if (s->arm_count == MOST_ARMS) return weft_ok();
  for (int32_t a = 0; a < s->arm_count; ++a) {
    if (s->arm[a].target == target && s->arm[a].start == start) return weft_ok();
  }
  arm_t* arm = &s->arm[s->arm_count++];
  *arm = (arm_t){.target = target, .start = start, .hopeful = INFINITY, .found_cost = INFINITY};
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(s->arena, 1, node_bytes(s), (void**)&arm->tree));
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(s->arena, 1, node_bytes(s), (void**)&arm->first));
  return WEFT_ARENA_NEW(s->arena, (size_t)s->problem->block_count + 1, &arm->spot);
}

// Whether a target can still beat the best found.
static bool hopeful(searcher_t* s, weft_slicing_target_t* target) {
  const weft_placer_problem_t* p = s->problem;
  if (target->fill == 0) weft_slicing_target_measure(p, target);
  return p->weight_time * target->time + p->weight_wire * target->least_wire < s->found->cost;
}

static weft_status_t open_target(searcher_t* s, int32_t target) {
  for (int start = 0; start < STARTS; ++start) WEFT_RETURN_IF_ERROR(add_arm(s, target, start));
  return weft_ok();
}

// Opens some targets from `*from` on, and sets it to where to go on. Where area is scarce each has to bring some;
// elsewhere the times lie close together, and strides double.
static weft_status_t open_targets(searcher_t* s, int32_t* from) {
  double fill = INFINITY;
  int32_t opened = 0, stride = 1, next = *from;
  while (next < s->target_count && opened < FIRST_TARGETS) {
    int32_t i = next++;
    if (!hopeful(s, &s->target[i])) continue;
    double its = s->target[i].fill;
    bool last = i + 1 == s->target_count;
    if (!last && (its > MOST_FILL || (its > SCARCE && its > fill - LEAST_GAIN))) continue;
    fill = its;
    WEFT_RETURN_IF_ERROR(open_target(s, i));
    ++opened;
    if (its > SCARCE) continue;
    next += stride - 1;
    stride *= 2;
  }
  *from = next;
  return weft_ok();
}

// Opens the targets halfway from the best one to those tried on both sides of it.
static weft_status_t open_near_best(searcher_t* s) {
  int32_t best = -1, below = -1, above = s->target_count;
  for (int32_t i = 0; i < s->target_count; ++i) {
    if (s->found->found && s->target[i].time == s->found->target) best = i;
  }
  if (best < 0) return weft_ok();
  for (int32_t a = 0; a < s->arm_count; ++a) {
    int32_t target = s->arm[a].target;
    if (target < best && target > below) below = target;
    if (target > best && target < above) above = target;
  }
  int32_t between[2] = {(below + best) / 2, (best + above + 1) / 2};
  for (int i = 0; i < 2; ++i) {
    int32_t target = between[i];
    if (target <= below || target >= above || target == best || s->target[best].fill > SCARCE) continue;
    if (hopeful(s, &s->target[target])) WEFT_RETURN_IF_ERROR(open_target(s, target));
  }
  return weft_ok();
}

static int32_t beam_of(const searcher_t* s) {
  double beam = BEAM_PLACES / s->problem->block_count;
  return (int32_t)fmin(1000, fmax(50, beam));
}

static void set_tree(weft_slicing_tree_t* tree, const weft_slicing_node_t* node, int32_t root) {
  memcpy(tree->node, node, sizeof *tree->node * (size_t)tree->nodes);
  tree->root = root;
  weft_slicing_combine_all(tree);
}

// The best tree of some beam searches; the first of all is without noise.
static weft_status_t peel_best(searcher_t* s, worker_t* worker, job_t* job, weft_rng_t* rng,
                               const weft_control_t* control, bool* out_ready) {
  const arm_t* arm = &s->arm[job->arm];
  weft_slicing_tree_t* tree = &worker->tree;
  double best = INFINITY;
  for (int i = 0; i < (job->peel ? 1 : NOISY_PEELS); ++i) {
    weft_slicing_peel_t peel = {.beam = beam_of(s),
                                .backwards = arm->start == BACKWARDS,
                                .waste_weight = s->edge * OVERFLOW_PRICE / 2,
                                .noise = job->peel ? 0 : NOISE,
                                .control = control};
    if (!job->peel) peel.waste_weight *= 0.5 + 0.5 * weft_rng_unit(rng);
    bool found = false;
    WEFT_RETURN_IF_ERROR(weft_slicing_peel(tree, &peel, rng, s->arena, &found));
    if (!found || !weft_slicing_realise(tree, INFINITY) || weft_slicing_cost(tree) >= best) continue;
    best = weft_slicing_cost(tree);
    job->root = tree->root;
    memcpy(job->tree, tree->node, sizeof *job->tree * (size_t)tree->nodes);
  }
  *out_ready = best < INFINITY;
  if (*out_ready) set_tree(tree, job->tree, job->root);
  return weft_ok();
}

static weft_status_t start(searcher_t* s, worker_t* worker, job_t* job, weft_rng_t* rng, const weft_control_t* control,
                           bool* out_ready) {
  const arm_t* arm = &s->arm[job->arm];
  weft_slicing_tree_t* tree = &worker->tree;
  *out_ready = weft_slicing_aim(tree, s->target[arm->target].time);
  if (!*out_ready) return weft_ok();
  if (job->again && arm->has_tree) {
    set_tree(tree, arm->tree, arm->root);
  } else if (!job->peel && arm->has_first && (job->first || arm->runs < 2)) {
    set_tree(tree, arm->first, arm->first_root);
  } else if (arm->start == SCRATCH) {
    *out_ready = weft_slicing_start(tree, rng);
  } else {
    WEFT_RETURN_IF_ERROR(peel_best(s, worker, job, rng, control, out_ready));
  }
  *out_ready = *out_ready && weft_slicing_realise(tree, INFINITY);
  return weft_ok();
}

static weft_status_t run_job(searcher_t* s, worker_t* worker, job_t* job, const weft_control_t* control) {
  weft_rng_t rng;
  weft_rng_seed(&rng, job->seed);
  double began = weft_control_now();
  weft_slicing_walk_t* walk = &worker->walk;
  walk->found_cost = INFINITY;
  bool ready = false;
  // A tree that has almost fitted is made to.
  worker->tree.overflow_weight = s->edge * OVERFLOW_PRICE * (job->again ? DEARER : 1);
  WEFT_RETURN_IF_ERROR(start(s, worker, job, &rng, control, &ready));
  if (!ready) return weft_ok();
  job->root = worker->tree.root;
  memcpy(job->tree, worker->tree.node, sizeof *job->tree * (size_t)worker->tree.nodes);
  if (job->peel) {
    job->done = true;
    job->cost = weft_slicing_cost(&worker->tree);
    if (worker->tree.overflow > 0) return weft_ok();
    job->found_cost = job->cost;
    weft_slicing_export(&worker->tree, job->spot);
    return weft_ok();
  }
  weft_placer_moves_t moves = weft_slicing_walk_moves(walk);
  double cold = COLD * s->edge, hot = fmax(job->hot * s->edge, 2 * cold);
  weft_placer_schedule_t schedule = {.moves_per_temperature = 1000, .hot = hot, .cold = cold};
  if (s->search->seconds > 0) {
    schedule.seconds = fmax(0.01, job->seconds - (weft_control_now() - began));
  } else {
    schedule.moves_per_temperature = job->moves / TEMPERATURES + 1;
    schedule.cooling = pow(cold / hot, 1.0 / TEMPERATURES);
    schedule.most_moves = job->moves;
  }
  weft_placer_annealing_t annealing;
  WEFT_RETURN_IF_ERROR(weft_placer_schedule_run(&schedule, &moves, &rng, control, &annealing));
  job->done = true;
  job->cost = annealing.cost;
  job->found_cost = walk->found_cost;
  job->moves_made = annealing.moves;
  job->drift = annealing.drift;
  job->root = worker->tree.root;
  memcpy(job->tree, worker->tree.node, sizeof *job->tree * (size_t)worker->tree.nodes);
  memcpy(job->spot, walk->found, sizeof *job->spot * (size_t)s->problem->block_count);
  return weft_ok();
}

static void take_layout(searcher_t* s, arm_t* arm, const job_t* job) {
  size_t bytes = sizeof *arm->spot * (size_t)s->problem->block_count;
  if (job->found_cost < arm->found_cost) {
    arm->found_cost = job->found_cost;
    memcpy(arm->spot, job->spot, bytes);
  }
  if (arm->found_cost >= s->found->cost) return;
  s->found->found = true;
  s->found->target = s->target[arm->target].time;
  s->found->cost = arm->found_cost;
  memcpy(s->found->spot, arm->spot, bytes);
}

static void take_results(searcher_t* s) {
  for (int32_t j = 0; j < s->job_count; ++j) {
    const job_t* job = &s->job[j];
    arm_t* arm = &s->arm[job->arm];
    ++arm->runs;
    if (!job->done) continue;
    take_layout(s, arm, job);
    if (job->peel) {
      arm->hopeful = job->cost;
      arm->has_first = true;
      arm->first_root = job->root;
      memcpy(arm->first, job->tree, node_bytes(s));
      continue;
    }
    s->found->moves += job->moves_made;
    s->found->drift = fmax(s->found->drift, job->drift);
    if (job->cost > arm->hopeful && arm->has_tree) continue;
    arm->hopeful = job->cost;
    arm->has_tree = true;
    arm->root = job->root;
    memcpy(arm->tree, job->tree, node_bytes(s));
  }
}

static weft_status_t run_round(searcher_t* s, double share, uint64_t round) {
  if (!s->job_count) return weft_ok();
  // Jobs a thread gets, one after the other.
  int32_t turns = (s->job_count + s->worker_count - 1) / s->worker_count;
  for (int32_t j = 0; j < s->job_count; ++j) {
    job_t* job = &s->job[j];
    if (s->search->seconds > 0) job->seconds = share * s->search->seconds / turns;
    job->moves = (int64_t)(share * (double)s->search->moves / s->job_count);
    job->seed = weft_rng_mix(weft_rng_mix(s->search->seed) ^ (round * MOST_JOBS + (uint64_t)j));
    job->done = false;
    job->status = weft_ok();
    job->found_cost = INFINITY;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->worker_count)
  for (int32_t j = 0; j < s->job_count; ++j) {
    weft_control_t control = s->search->control ? *s->search->control : (weft_control_t){0};
    if (j) control.table = NULL, control.progress = NULL; // called from one thread only
    if (weft_control_should_stop(&control)) continue;
    s->job[j].status = run_job(s, &s->worker[omp_get_thread_num()], &s->job[j], &control);
  }
  weft_status_t status = weft_ok();
  for (int32_t j = 0; j < s->job_count; ++j) status = weft_status_join(status, s->job[j].status);
  if (!status) take_results(s);
  return status;
}

static double rank_of(const searcher_t* s, int32_t a, bool hopeful) {
  return hopeful ? s->arm[a].hopeful : s->arm[a].found_cost;
}

// The arms in the order of what they found, or hope for.
static void rank_arms(const searcher_t* s, bool hopeful, int32_t* order) {
  for (int32_t a = 0; a < s->arm_count; ++a) {
    int32_t at = a;
    for (; at > 0 && rank_of(s, order[at - 1], hopeful) > rank_of(s, a, hopeful); --at) order[at] = order[at - 1];
    order[at] = a;
  }
}

static void add_job(searcher_t* s, int32_t arm, bool peel, bool again, double hot) {
  if (s->job_count == MOST_JOBS) return;
  job_t* job = &s->job[s->job_count++];
  job->arm = arm;
  job->peel = peel;
  job->first = false;
  job->again = again;
  job->hot = hot;
}

static double first_hot(const searcher_t* s, const arm_t* arm) {
  double side = sqrt((double)s->problem->width * s->problem->height);
  return arm->start == SCRATCH ? HOT * side : HOT * side / 12;
}

// The jobs of a round: `count` of the best arms, by what they found and by what they hope for in turn.
static void choose_jobs(searcher_t* s, int32_t round, int32_t count) {
  int32_t by_found[MOST_ARMS], by_hope[MOST_ARMS];
  bool taken[MOST_ARMS] = {false};
  rank_arms(s, false, by_found);
  rank_arms(s, true, by_hope);
  s->job_count = 0;
  double side = sqrt((double)s->problem->width * s->problem->height);
  int32_t chosen = 0;
  // With few blocks long runs from a rough start beat all others in the end: two of them at the best target.
  for (int32_t a = 0; a < s->arm_count && round && round < ROUNDS - 1 && s->problem->block_count <= MOST_MIXED; ++a) {
    if (s->arm[a].start != SCRATCH || !s->found->found || s->target[s->arm[a].target].time != s->found->target)
      continue;
    taken[a] = true;
    for (int twice = 0; twice < 2; ++twice, ++chosen) add_job(s, a, false, false, first_hot(s, &s->arm[a]));
  }
  for (int32_t i = 0; i < 3 * s->arm_count && chosen < count; ++i) {
    int32_t at = i % 3 == 2 ? i / 3 : i / 3 * 2 + i % 3;
    if (at >= s->arm_count) continue;
    int32_t a = round && i % 3 < 2 ? by_found[at] : by_hope[at];
    if (taken[a]) continue;
    taken[a] = true;
    ++chosen;
    const arm_t* arm = &s->arm[a];
    bool again = arm->has_tree && round > 1 && (round == ROUNDS - 1 || (chosen % 2 && arm->start != SCRATCH));
    add_job(s, a, false, again, again ? HOT * side / (chosen % 4 < 2 ? 12 : 30) : first_hot(s, arm));
  }
  // Room for more runs than arms: the best ones again.
  for (int32_t i = 0; chosen && chosen < count && i < count; ++i, ++chosen)
    add_job(s, by_found[i % 2], false, s->arm[by_found[i % 2]].has_tree && i % 2 == 0, HOT * side / (12 + 6 * i));
}

// The same with many blocks, where a run takes long and the beam search's tree decides: the best arm over and over, at
// times the second.
static void choose_jobs_of_many(searcher_t* s, int32_t round, int32_t count) {
  int32_t by_found[MOST_ARMS], by_hope[MOST_ARMS];
  rank_arms(s, false, by_found);
  rank_arms(s, true, by_hope);
  const int32_t* order = s->found->found ? by_found : by_hope;
  s->job_count = 0;
  for (int32_t i = 0; i < count && s->arm_count; ++i) {
    int32_t a = order[i % 4 == 3 && s->arm_count > 1];
    const arm_t* arm = &s->arm[a];
    bool again = arm->has_tree && round > 1 && (i == 0 || round == ROUNDS - 1);
    double hot = first_hot(s, arm) * (again && i % 2 == 0 ? 0.4 : 1);
    add_job(s, a, false, again, hot);
    s->job[s->job_count - 1].first = i % 3 < 2;
  }
}

// How many runs of a sensible length a share of the budget pays for.
static int32_t runs_in(const searcher_t* s, double share, int32_t most) {
  double blocks = s->problem->block_count, moves = (double)s->search->moves;
  if (s->search->seconds > 0) moves = s->search->seconds * s->worker_count * BLOCK_MOVES_A_SECOND / blocks;
  double runs = share * moves / (MOVES_A_BLOCK * blocks);
  int32_t least = s->search->seconds > 0 ? s->worker_count : 2;
  return runs < least ? least : runs < most ? (int32_t)runs : most;
}

// The beam search for the arms that are new, which tells what can be hoped of them.
static weft_status_t peel_new(searcher_t* s, uint64_t round) {
  s->job_count = 0;
  for (int32_t a = 0; a < s->arm_count; ++a) {
    if (s->arm[a].start != SCRATCH && !s->arm[a].runs) add_job(s, a, true, false, 0);
  }
  WEFT_RETURN_IF_ERROR(run_round(s, 1, round));
  // A rough start hopes for what the better beam search of its target has, while annealing can still mix so many
  // blocks.
  for (int32_t a = 0; a < s->arm_count; ++a) {
    arm_t* arm = &s->arm[a];
    for (int32_t b = 0; b < s->arm_count && arm->start == SCRATCH; ++b) {
      bool same = s->arm[b].target == arm->target && s->problem->block_count <= MOST_MIXED;
      if (same && s->arm[b].hopeful < arm->hopeful) arm->hopeful = s->arm[b].hopeful;
    }
  }
  return weft_ok();
}

static weft_status_t run(searcher_t* s) {
  for (int32_t j = 0; j < MOST_JOBS; ++j) {
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(s->arena, 1, node_bytes(s), (void**)&s->job[j].tree));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->arena, (size_t)s->problem->block_count + 1, &s->job[j].spot));
  }
  static const double share[ROUNDS] = {0.28, 0.24, 0.2, 0.16, 0.12};
  static const int32_t most[ROUNDS] = {MOST_JOBS, 10, 4, 4, 4};
  int32_t next = 0;
  for (int32_t round = 0, tries = 0; round < ROUNDS; ++round) {
    if (!round)
      WEFT_RETURN_IF_ERROR(open_targets(s, &next));
    else
      WEFT_RETURN_IF_ERROR(open_near_best(s));
    uint64_t salt = 2 * (uint64_t)(round + tries * ROUNDS);
    WEFT_RETURN_IF_ERROR(peel_new(s, salt));
    // Of the time that is left, as the rounds to come share it.
    double left = 1, rest = 0;
    if (s->search->seconds > 0) left = fmax(0.01, 1 - (weft_control_now() - s->started) / s->search->seconds);
    for (int32_t r = round; r < ROUNDS; ++r) rest += share[r];
    double part = s->search->seconds > 0 ? left * share[round] / rest : share[round];
    (s->problem->block_count > MOST_MIXED ? choose_jobs_of_many : choose_jobs)(
        s, round, runs_in(s, part, round || s->arm_count > MOST_JOBS ? most[round] : s->arm_count));
    WEFT_RETURN_IF_ERROR(run_round(s, part, salt + 1));
    weft_control_table(s->search->control, "place", "round %d: %d runs, best %.7g at target %.6g", round, s->job_count,
                       s->found->cost, s->found->target);
    if (weft_control_should_stop(s->search->control)) break;
    if (!s->found->found && next < s->target_count && tries < MOST_TRIES) --round, ++tries;
  }
  return weft_ok();
}

weft_status_t weft_slicing_search(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                  const weft_placer_incidence_t* incidence, const weft_slicing_search_t* search,
                                  weft_arena_t* arena, weft_slicing_found_t* out_found) {
  *out_found = (weft_slicing_found_t){.cost = INFINITY};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)problem->block_count + 1, &out_found->spot));
  if (problem->block_count < 1) {
    out_found->found = true;
    out_found->cost = 0;
    return weft_ok();
  }
  weft_arena_t own;
  weft_arena_initialize(arena->allocator, &own);
  searcher_t* s = NULL;
  weft_status_t status = WEFT_ARENA_NEW(&own, 1, &s);
  if (!status) {
    *s = (searcher_t){.problem = problem,
                      .grid = grid,
                      .incidence = incidence,
                      .search = search,
                      .arena = &own,
                      .found = out_found,
                      .worker_count = search->threads,
                      .started = weft_control_now()};
    double weight = 0;
    for (int32_t e = 0; e < problem->edge_count; ++e) weight += problem->edge[e].weight;
    s->edge = problem->edge_count ? problem->weight_wire * weight / problem->edge_count : 0;
    if (s->edge <= 0) s->edge = 1;
    status = weft_slicing_targets(problem, &own, &s->target, &s->target_count);
  }
  if (!status) status = WEFT_ARENA_NEW(&own, (size_t)search->threads, &s->worker);
  for (int32_t w = 0; w < search->threads && !status; ++w) {
    status = weft_slicing_create(problem, grid, incidence, &own, &s->worker[w].tree);
    if (!status) status = weft_slicing_walk_create(&s->worker[w].tree, &own, &s->worker[w].walk);
  }
  if (!status) status = run(s);
  weft_arena_deinitialize(&own);
  if (!status && out_found->found) {
    out_found->cost = weft_placer_cost(problem, out_found->spot, &out_found->parts);
  }
  return status;
}
