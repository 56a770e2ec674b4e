// Properties of placements of random problems, with and without dead tiles: always legal, the running cost is the
// recomputed one, where the grid lies doesn't matter, and time limits are kept.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/placer/random_problem.h"

static const random_kind_t kinds[] = {
    {.width = 13, .height = 29, .blocks = 9, .largest = 5, .whole = true},
    {.width = 41, .height = 17, .blocks = 17, .largest = 6, .whole = false, .dead = 0.015},
    {.width = 31, .height = 33, .blocks = 23, .largest = 5, .whole = true, .dead = 0.1},
    {.width = 50, .height = 50, .blocks = 12, .largest = 7, .whole = false, .dead = 0.3},
    {.width = 7, .height = 5, .blocks = 31, .largest = 1, .whole = true},
    {.width = 7, .height = 5, .blocks = 31, .largest = 1, .whole = false},
    {.width = 11, .height = 3, .blocks = 20, .largest = 1, .whole = true, .dead = 0.2},
    {.width = 1, .height = 40, .blocks = 40, .largest = 1, .whole = true},
    {.width = 6, .height = 9, .blocks = 25, .largest = 1, .whole = false, .dead = 0.1},
    {.width = 13, .height = 29, .blocks = 9, .largest = 5, .whole = false, .joints = true},
    {.width = 31, .height = 33, .blocks = 17, .largest = 7, .whole = true, .joints = true, .dead = 0.05},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static random_problem_t first, second;

static void always_legal_and_worth_what_is_said(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      random_problem(seed * 97 + (uint64_t)k, &kinds[k], &first);
      weft_arena_t arena;
      weft_arena_initialize(weft_allocator_system(), &arena);
      weft_placer_options_t options = {.seed = seed, .effort = 0.05, .seeds = 1};
      weft_placer_result_t result;
      assert_null(weft_placer_solve(&first.problem, &options, &arena, &result));
      assert_null(weft_placer_legal(&first.problem, result.spot));
      weft_placer_parts_t parts;
      double cost = weft_placer_cost(&first.problem, result.spot, &parts);
      assert_true(fabs(cost - result.cost) <= 1e-9 * cost);
      assert_true(parts.time == result.parts.time && fabs(parts.wire - result.parts.wire) <= 1e-9 * parts.wire);
      assert_true(fabs(parts.overload - result.parts.overload) <= 1e-9 * parts.overload);
      assert_true(result.drift < 1e-9);
      assert_true(result.moves > 0);
      weft_arena_deinitialize(&arena);
    }
  }
}

typedef struct range_t {
  double best, worst;
} range_t;

static range_t solve_seeds(const weft_placer_problem_t* problem, double effort) {
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  weft_placer_options_t options = {.seed = 1, .effort = effort, .seeds = 5};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(problem, &options, &arena, &result));
  weft_arena_deinitialize(&arena);
  return (range_t){result.cost, result.worst_seed_cost};
}

// `from` seen in a mirror, or moved by (dx, dy) into a grid with a dead margin.
static void transform(const random_problem_t* from, bool mirror, int32_t dx, int32_t dy, random_problem_t* to) {
  *to = *from;
  int32_t w = from->problem.width, h = from->problem.height;
  int32_t wide = w + 2 * dx, high = h + 2 * dy;
  assert_true(wide * high <= RANDOM_TILES);
  memset(to->blocked, 1, sizeof to->blocked);
  for (int32_t y = 0; y < h; ++y) {
    for (int32_t x = 0; x < w; ++x) {
      to->blocked[(y + dy) * wide + dx + (mirror ? w - 1 - x : x)] = from->blocked[y * w + x];
    }
  }
  for (int32_t i = 0; i < RANDOM_ANCHORS; ++i) {
    to->anchor[i].x = dx + (mirror ? w - from->anchor[i].x : from->anchor[i].x);
    to->anchor[i].y = dy + from->anchor[i].y;
  }
  to->problem.width = wide;
  to->problem.height = high;
  to->problem.blocked = to->blocked;
  to->problem.block = to->block;
  to->problem.edge = to->edge;
  to->problem.anchor = to->anchor;
  for (int32_t e = 0; e < from->problem.edge_count; ++e)
    if (from->edge[e].joint) to->edge[e].joint = to->joint[e];
  for (int32_t b = 0; b < from->problem.block_count; ++b) {
    to->block[b].name = to->name[b];
    to->block[b].shape = to->shape[b];
  }
}

// The best cost over some seeds differs by no more than the seeds do among themselves.
static void check_same(const random_problem_t* a, const random_problem_t* b, int kind) {
  range_t one = solve_seeds(&a->problem, 0.2), other = solve_seeds(&b->problem, 0.2);
  double spread = fmax(one.worst - one.best, other.worst - other.best);
  if (fabs(one.best - other.best) <= spread + 0.01 * one.best) return;
  print_error("kind %d: best %g (worst %g) against %g (worst %g)\n", kind, one.best, one.worst, other.best,
              other.worst);
  fail();
}

static void where_the_grid_lies_does_not_matter(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    if (kinds[k].width * kinds[k].height > 800) continue; // room for the margin
    random_problem(5 + (uint64_t)k, &kinds[k], &first);
    transform(&first, true, 0, 0, &second);
    check_same(&first, &second, k);
    transform(&first, false, 3, 2, &second);
    check_same(&first, &second, k);
  }
}

static void time_limits_are_kept(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    if (kinds[k].largest > 1) continue;
    random_problem(31 + (uint64_t)k, &kinds[k], &first);
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    weft_placer_options_t options = {.seed = 1, .effort = 1, .seeds = 1, .seconds = 0.4};
    weft_placer_result_t result;
    double started = weft_control_now();
    assert_null(weft_placer_solve(&first.problem, &options, &arena, &result));
    double took = weft_control_now() - started;
    weft_arena_deinitialize(&arena);
    // 5 %, and a slice of the scheduler where other work runs.
    assert_true(took >= 0.38 && took <= 0.42 + 0.1);
  }
}

// A deadline that is over gives a legal placement all the same, at once.
static void a_past_deadline_still_gives_a_placement(void** state) {
  (void)state;
  for (int k = 0; k < KINDS; ++k) {
    random_problem(77 + (uint64_t)k, &kinds[k], &first);
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    weft_control_t control = {.deadline = weft_control_now() - 1};
    weft_placer_options_t options = {.seed = 1, .effort = 100, .seeds = 3, .control = &control};
    weft_placer_result_t result;
    double started = weft_control_now();
    assert_null(weft_placer_solve(&first.problem, &options, &arena, &result));
    assert_true(weft_control_now() - started < 2);
    assert_null(weft_placer_legal(&first.problem, result.spot));
    weft_arena_deinitialize(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(always_legal_and_worth_what_is_said),
      cmocka_unit_test(where_the_grid_lies_does_not_matter),
      cmocka_unit_test(time_limits_are_kept),
      cmocka_unit_test(a_past_deadline_still_gives_a_placement),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
