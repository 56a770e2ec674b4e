// Slicing trees: shape curves against all choices of shapes, moves that can be taken back, layouts that are legal,
// targets and bounds that hold, and searches that give the same whatever the number of threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "placer/slicing.h"
#include "placer/slicing_improve.h"
#include "placer/slicing_targets.h"
#include "tests/placer/random_problem.h"

typedef struct fixture_t {
  random_problem_t random;
  weft_arena_t arena;
  weft_placer_grid_t grid;
  weft_placer_incidence_t incidence;
  weft_slicing_tree_t tree;
  weft_slicing_walk_t walk;
  weft_rng_t rng;
} fixture_t;

static fixture_t fixture;

static fixture_t* make(uint64_t seed, const random_kind_t* kind) {
  fixture_t* f = &fixture;
  random_problem(seed, kind, &f->random);
  weft_arena_initialize(weft_allocator_system(), &f->arena);
  const weft_placer_problem_t* p = &f->random.problem;
  assert_null(weft_placer_grid_create(p, &f->arena, &f->grid));
  assert_null(weft_placer_incidence_create(p, &f->arena, &f->incidence));
  assert_null(weft_slicing_create(p, &f->grid, &f->incidence, &f->arena, &f->tree));
  assert_null(weft_slicing_walk_create(&f->tree, &f->arena, &f->walk));
  weft_rng_seed(&f->rng, seed);
  f->tree.overflow_weight = 10;
  return f;
}

static void unmake(fixture_t* f) {
  weft_arena_deinitialize(&f->arena);
}

// Extents of a subtree when leaf b has choice[b] = 2 * shape + transposed.
static void extents(const weft_slicing_tree_t* t, const int* choice, int32_t n, int32_t out[2]) {
  if (t->node[n].child[0] < 0) {
    const weft_placer_shape_t* s = &t->problem->block[n].shape[choice[n] / 2];
    out[0] = choice[n] & 1 ? s->height : s->width;
    out[1] = choice[n] & 1 ? s->width : s->height;
    return;
  }
  int32_t a[2], b[2];
  extents(t, choice, t->node[n].child[0], a);
  extents(t, choice, t->node[n].child[1], b);
  int along = t->node[n].stacked;
  out[along] = a[along] + b[along];
  out[1 - along] = a[1 - along] > b[1 - along] ? a[1 - along] : b[1 - along];
}

static int32_t least_width(const weft_slicing_curve_t* curve, int32_t height) {
  int32_t width = INT32_MAX;
  for (int32_t i = 0; i < curve->count && curve->corner[i].height <= height; ++i) width = curve->corner[i].width;
  return width;
}

static void curves_are_the_best_of_all_choices(void** state) {
  (void)state;
  const random_kind_t kind = {.width = 23, .height = 31, .blocks = 5, .largest = 7, .whole = true};
  int32_t compared = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    fixture_t* f = make(seed, &kind);
    assert_true(weft_slicing_aim(&f->tree, 1e9));
    assert_true(weft_slicing_start(&f->tree, &f->rng));
    weft_placer_moves_t moves = weft_slicing_walk_moves(&f->walk);
    moves.recompute(moves.self);
    double delta = 0;
    for (int i = 0; i < 40; ++i) { // some other tree
      if (moves.propose(moves.self, &f->rng, 1, INFINITY, &delta)) moves.keep(moves.self);
    }
    int32_t least[64];
    for (int h = 0; h < 64; ++h) least[h] = INT32_MAX;
    int choices = 1;
    for (int32_t b = 0; b < kind.blocks; ++b) choices *= 2 * RANDOM_SHAPES;
    for (int c = 0; c < choices; ++c) {
      int choice[8];
      for (int32_t b = 0, rest = c; b < kind.blocks; ++b, rest /= 2 * RANDOM_SHAPES)
        choice[b] = rest % (2 * RANDOM_SHAPES);
      int32_t size[2];
      extents(&f->tree, choice, f->tree.root, size);
      for (int32_t h = size[1]; h < 64; ++h) least[h] = size[0] < least[h] ? size[0] : least[h];
    }
    const weft_slicing_curve_t* curve = weft_slicing_curve(&f->tree, f->tree.root);
    for (int32_t h = 0; h <= f->tree.most_height; ++h) {
      int32_t expected = least[h] <= f->tree.most_width ? least[h] : INT32_MAX;
      assert_int_equal(least_width(curve, h), expected);
      compared += expected != INT32_MAX;
    }
    unmake(f);
  }
  assert_true(compared > 20);
}

static void moves_can_be_taken_back_and_costs_are_those_recomputed(void** state) {
  (void)state;
  static const random_kind_t kinds[] = {{.width = 40, .height = 27, .blocks = 19, .largest = 8, .whole = true},
                                        {.width = 27, .height = 40, .blocks = 12, .largest = 8, .dead = 0.05},
                                        {.width = 64, .height = 63, .blocks = 40, .largest = 12},
                                        {.width = 27, .height = 40, .blocks = 12, .largest = 8, .joints = true}};
  for (int k = 0; k < 4; ++k) {
    fixture_t* f = make(7 + (uint64_t)k, &kinds[k]);
    size_t spots = sizeof(weft_slicing_spot_t) * (size_t)kinds[k].blocks;
    assert_true(weft_slicing_aim(&f->tree, 1e9));
    assert_true(weft_slicing_start(&f->tree, &f->rng));
    weft_placer_moves_t moves = weft_slicing_walk_moves(&f->walk);
    double cost = moves.recompute(moves.self), delta = 0;
    int32_t taken = 0;
    for (int i = 0; i < 3000; ++i) {
      weft_slicing_spot_t before[RANDOM_BLOCKS];
      memcpy(before, f->tree.spot, spots);
      bool proposed = moves.propose(moves.self, &f->rng, 1, 8000, &delta);
      if (proposed && weft_rng_below(&f->rng, 2)) {
        moves.keep(moves.self);
        cost += delta;
        ++taken;
      } else {
        if (proposed) moves.undo(moves.self);
        assert_memory_equal(before, f->tree.spot, spots);
      }
      if (i % 100 == 0) {
        assert_true(fabs(moves.recompute(moves.self) - cost) < 1e-6 * cost);
      }
    }
    assert_true(taken > 300);
    unmake(f);
  }
}

// Of shapes that differ only in their times, the last two are fast enough, and a turned one is needed.
static void a_block_may_have_any_number_of_shapes(void** state) {
  (void)state;
  enum { SHAPES = 70001, FAST = SHAPES - 2 };
  static weft_placer_shape_t shape[SHAPES];
  for (int32_t i = 0; i < SHAPES; ++i)
    shape[i] = (weft_placer_shape_t){.width = 2, .height = 5, .tiles = 10, .time = i < FAST ? 9 : 1};
  weft_placer_block_t block = {.name = "b", .shape_count = SHAPES, .shape = shape, .fixed_x = -1, .fixed_y = -1};
  weft_placer_problem_t problem = {.width = 5, .height = 2, .block_count = 1, .block = &block, .weight_time = 1};
  fixture_t* f = &fixture;
  weft_arena_initialize(weft_allocator_system(), &f->arena);
  weft_rng_seed(&f->rng, 1);
  assert_null(weft_placer_grid_create(&problem, &f->arena, &f->grid));
  assert_null(weft_placer_incidence_create(&problem, &f->arena, &f->incidence));
  assert_null(weft_slicing_create(&problem, &f->grid, &f->incidence, &f->arena, &f->tree));
  assert_true(weft_slicing_aim(&f->tree, 1));
  assert_true(weft_slicing_start(&f->tree, &f->rng));
  assert_true(weft_slicing_realise(&f->tree, INFINITY));
  weft_placer_spot_t spot;
  weft_slicing_export(&f->tree, &spot);
  assert_int_equal(spot.shape, FAST);
  assert_true(spot.transposed);
  assert_null(weft_placer_legal(&problem, &spot));
  unmake(f);
}

static void layouts_that_fit_are_legal(void** state) {
  (void)state;
  static const random_kind_t kinds[] = {{.width = 40, .height = 27, .blocks = 19, .largest = 8, .whole = true},
                                        {.width = 40, .height = 27, .blocks = 15, .largest = 8, .dead = 0.04},
                                        {.width = 40, .height = 27, .blocks = 19, .largest = 8, .joints = true}};
  int32_t fitting = 0, compacted = 0;
  for (int k = 0; k < 3; ++k) {
    fixture_t* f = make(3, &kinds[k]);
    assert_true(weft_slicing_aim(&f->tree, 1e9));
    assert_true(weft_slicing_start(&f->tree, &f->rng));
    weft_placer_moves_t moves = weft_slicing_walk_moves(&f->walk);
    moves.recompute(moves.self);
    for (int i = 0; i < 4000; ++i) {
      double delta = 0;
      if (!moves.propose(moves.self, &f->rng, 1, 60, &delta)) continue;
      moves.keep(moves.self);
      if (f->tree.overflow > 0) continue;
      int32_t corner = 0;
      compacted += !f->tree.dead && weft_slicing_overflow(&f->tree, &corner) > 0;
      weft_placer_spot_t spots[RANDOM_BLOCKS];
      weft_slicing_export(&f->tree, spots);
      assert_null(weft_placer_legal(&f->random.problem, spots));
      weft_placer_parts_t parts;
      weft_placer_cost(&f->random.problem, spots, &parts);
      // Anchors are rounded to half tiles.
      if (!f->tree.dead) assert_true(fabs(parts.wire - f->tree.wire) < 1e-6 * parts.wire + 40);
      ++fitting;
    }
    unmake(f);
  }
  assert_true(fitting > 500 && compacted > 5);
}

static void strips_are_peeled_in_both_directions(void** state) {
  (void)state;
  const random_kind_t kind = {.width = 45, .height = 33, .blocks = 17, .largest = 9, .whole = true};
  for (int backwards = 0; backwards < 2; ++backwards) {
    fixture_t* f = make(11, &kind);
    assert_true(weft_slicing_aim(&f->tree, 1e9));
    weft_slicing_peel_t peel = {.beam = 60, .backwards = backwards, .waste_weight = 20};
    bool found = false;
    assert_null(weft_slicing_peel(&f->tree, &peel, &f->rng, &f->arena, &found));
    assert_true(found);
    assert_true(weft_slicing_realise(&f->tree, INFINITY));
    assert_true(f->tree.overflow == 0);
    weft_placer_spot_t spots[RANDOM_BLOCKS];
    weft_slicing_export(&f->tree, spots);
    assert_null(weft_placer_legal(&f->random.problem, spots));
    // Every block is once in the order.
    int32_t scratch[2 * RANDOM_BLOCKS], order[RANDOM_BLOCKS], seen[RANDOM_BLOCKS] = {0};
    weft_slicing_dataflow_order(&f->tree, scratch, order);
    for (int32_t i = 0; i < kind.blocks; ++i) assert_int_equal(seen[order[i]]++, 0);
    unmake(f);
  }
}

// A rectangle cut into blocks of one shape each fits only back into it.
static int32_t cut(fixture_t* f, int32_t width, int32_t height, int32_t first, int32_t count) {
  random_problem_t* r = &f->random;
  if (count == 1) {
    r->shape[first][0] =
        (weft_placer_shape_t){.width = width, .height = height, .tiles = (int64_t)width * height, .time = 1};
    return first + 1;
  }
  int32_t half = count / 2, side = width > height ? width : height;
  int32_t at = side / 3 + (int32_t)weft_rng_below(&f->rng, (uint64_t)side / 3 + 1);
  bool across = width > height;
  first = cut(f, across ? at : width, across ? height : at, first, half);
  return cut(f, across ? width - at : width, across ? height : height - at, first, count - half);
}

static void searches_fill_a_grid_and_do_not_depend_on_threads(void** state) {
  (void)state;
  const random_kind_t kind = {.width = 52, .height = 37, .blocks = 9, .largest = 5, .whole = true};
  fixture_t* f = make(5, &kind);
  cut(f, kind.width, kind.height, 0, kind.blocks);
  for (int32_t b = 0; b < kind.blocks; ++b) f->random.block[b].shape_count = 1;
  weft_slicing_found_t found[2];
  for (int i = 0; i < 2; ++i) {
    weft_slicing_search_t search = {.seed = 4, .threads = i ? 3 : 1, .moves = 60000};
    assert_null(weft_slicing_search(&f->random.problem, &f->grid, &f->incidence, &search, &f->arena, &found[i]));
    assert_true(found[i].found);
    assert_null(weft_placer_legal(&f->random.problem, found[i].spot));
  }
  assert_memory_equal(found[0].spot, found[1].spot, sizeof *found[0].spot * (size_t)kind.blocks);
  assert_true(found[0].cost == found[1].cost);
  assert_true(found[0].parts.wire >= weft_slicing_least_wire(&f->random.problem, 1) - 1e-6);
  unmake(f);
}

static void targets_begin_where_the_area_fits(void** state) {
  (void)state;
  const random_kind_t kind = {.width = 30, .height = 20, .blocks = 24, .largest = 7, .whole = true};
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    fixture_t* f = make(seed, &kind);
    weft_slicing_target_t* target = NULL;
    int32_t count = 0;
    assert_null(weft_slicing_targets(&f->random.problem, &f->arena, &target, &count));
    for (int32_t i = 0; i < count; ++i) {
      weft_slicing_target_measure(&f->random.problem, &target[i]);
      assert_true(target[i].fill > 0 && target[i].fill <= 1);
      if (i) assert_true(target[i].time > target[i - 1].time && target[i].fill <= target[i - 1].fill + 1e-12);
      // Slower shapes are more shapes: the bound can only fall.
      if (i) assert_true(target[i].least_wire <= target[i - 1].least_wire + 1e-6);
    }
    unmake(f);
  }
}

static void improving_keeps_a_placement_legal_and_no_dearer(void** state) {
  (void)state;
  static const random_kind_t kinds[] = {{.width = 40, .height = 27, .blocks = 19, .largest = 8, .whole = true},
                                        {.width = 40, .height = 27, .blocks = 15, .largest = 8, .dead = 0.04},
                                        {.width = 40, .height = 27, .blocks = 15, .largest = 8, .joints = true}};
  int32_t better = 0;
  for (int k = 0; k < 3; ++k) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      fixture_t* f = make(seed, &kinds[k]);
      const weft_placer_problem_t* p = &f->random.problem;
      weft_placer_spot_t spots[RANDOM_BLOCKS];
      int32_t scratch[3 * RANDOM_BLOCKS], failed = 0;
      assert_true(weft_placer_pack(p, &f->grid, &f->incidence, 1e9, 200, &f->rng, scratch, spots, &failed));
      double before = weft_placer_cost(p, spots, NULL);
      assert_null(weft_slicing_improve(p, &f->grid, &f->incidence, &(weft_placer_options_t){.effort = 1}, &f->rng, NULL,
                                       &f->arena, spots));
      assert_null(weft_placer_legal(p, spots));
      double after = weft_placer_cost(p, spots, NULL);
      assert_true(after <= before);
      better += after < before;
      unmake(f);
    }
  }
  assert_true(better >= 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(curves_are_the_best_of_all_choices),
      cmocka_unit_test(moves_can_be_taken_back_and_costs_are_those_recomputed),
      cmocka_unit_test(a_block_may_have_any_number_of_shapes),
      cmocka_unit_test(layouts_that_fit_are_legal),
      cmocka_unit_test(strips_are_peeled_in_both_directions),
      cmocka_unit_test(searches_fill_a_grid_and_do_not_depend_on_threads),
      cmocka_unit_test(targets_begin_where_the_area_fits),
      cmocka_unit_test(improving_keeps_a_placement_legal_and_no_dearer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
