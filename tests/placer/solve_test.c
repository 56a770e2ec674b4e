// Properties of placements of random problems: always legal, cost as recomputed, deterministic, better than where they
// started.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "placer/placer.h"

enum { MAX_BLOCKS = 24, SHAPES = 4 };

typedef struct fixture_t {
  weft_arena_t arena;
  weft_placer_problem_t problem;
  weft_placer_block_t block[MAX_BLOCKS];
  weft_placer_shape_t shape[MAX_BLOCKS][SHAPES];
  weft_placer_edge_t edge[2 * MAX_BLOCKS];
  uint8_t blocked[128 * 128];
  char name[MAX_BLOCKS][24];
} fixture_t;

// A chain of blocks with some skips; each can trade tiles for time; a part of the grid is dead.
static void make(fixture_t* f, uint64_t seed, int32_t width, int32_t height, int32_t blocks, int32_t tiles,
                 double dead) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  memset(f, 0, sizeof *f);
  weft_arena_initialize(weft_allocator_system(), &f->arena);
  for (int32_t b = 0; b < blocks; ++b) {
    snprintf(f->name[b], sizeof f->name[b], "block%d", b);
    for (int32_t s = 0; s < SHAPES; ++s) {
      int32_t w = 1 + (int32_t)weft_rng_below(&rng, (uint64_t)tiles),
              h = 1 + (int32_t)weft_rng_below(&rng, (uint64_t)tiles);
      f->shape[b][s] = (weft_placer_shape_t){.width = w,
                                             .height = h,
                                             .tiles = (int64_t)w * h,
                                             .lines = h,
                                             .line_tiles = s % 2 ? w : 0,
                                             .time = 1000.0 / (w * h)};
    }
    f->block[b] = (weft_placer_block_t){
        .name = f->name[b], .shape_count = SHAPES, .shape = f->shape[b], .fixed_x = -1, .fixed_y = -1};
  }
  int32_t edges = 0;
  for (int32_t b = 1; b < blocks; ++b) {
    f->edge[edges++] = (weft_placer_edge_t){.from = b - 1, .to = b, .weight = 1 + (double)weft_rng_below(&rng, 100)};
    if (b > 2 && weft_rng_below(&rng, 3) == 0)
      f->edge[edges++] = (weft_placer_edge_t){.from = b - 3, .to = b, .weight = 7};
  }
  for (int32_t t = 0; t < width * height; ++t) f->blocked[t] = weft_rng_unit(&rng) < dead;
  f->problem = (weft_placer_problem_t){.width = width,
                                       .height = height,
                                       .blocked = f->blocked,
                                       .block_count = blocks,
                                       .edge_count = edges,
                                       .block = f->block,
                                       .edge = f->edge,
                                       .weight_time = 1,
                                       .weight_wire = 0.01};
}

static void random_problems_are_legal_and_cost_what_is_said(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    fixture_t f;
    make(&f, seed, 17 + (int32_t)(seed % 5) * 9, 41 - (int32_t)(seed % 3) * 8, 1 + (int32_t)(seed % MAX_BLOCKS), 6,
         0.02 * (double)(seed % 6));
    weft_placer_options_t options = {.seed = seed, .effort = 0.3, .seeds = 1};
    weft_placer_result_t result;
    assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
    assert_null(weft_placer_legal(&f.problem, result.spot));
    weft_placer_parts_t parts;
    double cost = weft_placer_cost(&f.problem, result.spot, &parts);
    assert_true(cost == result.cost && parts.time == result.parts.time && parts.wire == result.parts.wire);
    assert_true(result.drift < 1e-9);
    weft_arena_deinitialize(&f.arena);
  }
}

static void the_same_seed_gives_the_same_placement(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 5, 40, 23, 12, 6, 0.05);
  weft_placer_options_t options = {.seed = 9, .effort = 0.5, .seeds = 4};
  weft_placer_result_t a, b;
  weft_control_t one = {.threads = 1}, three = {.threads = 3};
  options.control = &one;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &a));
  options.control = &three;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &b));
  assert_memory_equal(a.spot, b.spot, sizeof *a.spot * 12);
  assert_true(a.cost <= a.worst_seed_cost);
  weft_arena_deinitialize(&f.arena);
}

// Two blocks with a heavy edge and room around them end up side by side; far apart costs at least the distance.
static void partners_come_together(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 3, 64, 64, 6, 5, 0);
  for (int32_t e = 0; e < f.problem.edge_count; ++e)
    f.edge[e].weight = f.edge[e].from == 0 && f.edge[e].to == 1 ? 1000 : 1;
  weft_placer_options_t options = {.seed = 1, .effort = 1, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
  const weft_placer_spot_t* a = &result.spot[0];
  const weft_placer_spot_t* b = &result.spot[1];
  bool touch =
      a->x <= b->x + b->width && b->x <= a->x + a->width && a->y <= b->y + b->height && b->y <= a->y + a->height;
  assert_true(touch);
  weft_arena_deinitialize(&f.arena);
}

// Four 4x4 blocks with one shape each fill an 8x8 grid exactly; a fifth one does not fit, and the message says the
// numbers.
static void full_grids_pack_and_overfull_ones_say_so(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 1, 8, 8, 5, 1, 0);
  for (int32_t b = 0; b < 5; ++b) {
    f.shape[b][0] =
        (weft_placer_shape_t){.width = 4, .height = 4, .tiles = 16, .lines = 4, .line_tiles = 4, .time = 10};
    f.block[b].shape_count = 1;
  }
  f.problem.block_count = 4;
  f.problem.edge_count = 0;
  weft_placer_options_t options = {.seed = 1, .effort = 0.1, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
  f.problem.block_count = 5;
  weft_status_t status = weft_placer_solve(&f.problem, &options, &f.arena, &result);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DOES_NOT_FIT);
  assert_non_null(strstr(weft_status_message(status), "at least 80 tiles"));
  assert_non_null(strstr(weft_status_message(status), "64 live"));
  weft_status_free(status);
  weft_arena_deinitialize(&f.arena);
}

// A dead column through the middle: lines of 6 can't cross it without a seventh tile.
static void dead_tiles_are_stepped_over(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 1, 9, 6, 1, 1, 0);
  f.shape[0][0] = (weft_placer_shape_t){.width = 6, .height = 6, .tiles = 36, .lines = 6, .line_tiles = 6, .time = 1};
  f.block[0].shape_count = 1;
  for (int32_t y = 0; y < 6; ++y) f.blocked[y * 9 + 4] = 1;
  weft_placer_options_t options = {.seed = 1, .effort = 1, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
  assert_int_equal(result.spot[0].width + result.spot[0].height, 13);
  weft_arena_deinitialize(&f.arena);
}

static void fixed_blocks_stay(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 11, 30, 30, 8, 4, 0);
  f.block[3].fixed_x = 20;
  f.block[3].fixed_y = 13;
  weft_placer_options_t options = {.seed = 2, .effort = 0.5, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
  assert_int_equal(result.spot[3].x, 20);
  assert_int_equal(result.spot[3].y, 13);
  weft_arena_deinitialize(&f.arena);
}

// legal() finds what solve() never does.
static void illegal_placements_are_named(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 2, 20, 20, 2, 3, 0);
  weft_placer_spot_t spots[2] = {{.shape = 0, .x = 0, .y = 0, .width = 3, .height = 3},
                                 {.shape = 0, .x = 2, .y = 2, .width = 3, .height = 3}};
  weft_status_t status = weft_placer_legal(&f.problem, spots);
  assert_non_null(strstr(weft_status_message(status), "overlap"));
  weft_status_free(status);
  spots[1].x = 18;
  status = weft_placer_legal(&f.problem, spots);
  assert_non_null(strstr(weft_status_message(status), "outside"));
  weft_status_free(status);
  spots[1].x = 10;
  f.shape[1][0].tiles = 10;
  status = weft_placer_legal(&f.problem, spots);
  assert_non_null(strstr(weft_status_message(status), "too few live"));
  weft_status_free(status);
  weft_arena_deinitialize(&f.arena);
}

// The annealed wire is well below that of the same blocks at random places (mean of many).
static void annealing_beats_random_places(void** state) {
  (void)state;
  fixture_t f;
  make(&f, 21, 60, 60, 16, 5, 0.02);
  weft_placer_options_t options = {.seed = 4, .effort = 1, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&f.problem, &options, &f.arena, &result));
  weft_rng_t rng;
  weft_rng_seed(&rng, 77);
  double sum = 0;
  for (int trial = 0; trial < 200; ++trial) {
    weft_placer_spot_t spots[MAX_BLOCKS];
    memcpy(spots, result.spot, sizeof *spots * 16);
    for (int32_t b = 0; b < 16; ++b) {
      spots[b].x = (int32_t)weft_rng_below(&rng, (uint64_t)(60 - spots[b].width));
      spots[b].y = (int32_t)weft_rng_below(&rng, (uint64_t)(60 - spots[b].height));
    }
    weft_placer_parts_t parts;
    weft_placer_cost(&f.problem, spots, &parts);
    sum += parts.wire;
  }
  print_message("annealed wire %.0f, random %.0f\n", result.parts.wire, sum / 200);
  assert_true(result.parts.wire * 3 < sum / 200);
  weft_arena_deinitialize(&f.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_problems_are_legal_and_cost_what_is_said),
      cmocka_unit_test(the_same_seed_gives_the_same_placement),
      cmocka_unit_test(partners_come_together),
      cmocka_unit_test(full_grids_pack_and_overfull_ones_say_so),
      cmocka_unit_test(dead_tiles_are_stepped_over),
      cmocka_unit_test(fixed_blocks_stay),
      cmocka_unit_test(illegal_placements_are_named),
      cmocka_unit_test(annealing_beats_random_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
