#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "placer/congestion.h"

static void expect_ok(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

static double total(const weft_congestion_t* map) {
  double sum = 0;
  for (int32_t b = 0; b < map->columns * map->rows; ++b) sum += map->load[b];
  return sum;
}

static weft_congestion_box_t tile(int32_t x, int32_t y) {
  return (weft_congestion_box_t){x, y, x + 1, y + 1};
}

// Nothing is lost: whatever the bins, a flow between two tiles adds wavelets times hops, and to many sinks a link for
// each.
static void loads_add_up_to_the_wire(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  for (int32_t round = 0; round < 500; ++round) {
    int32_t width = 1 + (int32_t)weft_rng_below(&rng, 70), height = 1 + (int32_t)weft_rng_below(&rng, 70);
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    weft_congestion_t map;
    expect_ok(weft_congestion_create(width, height, 1 + (int32_t)weft_rng_below(&rng, 20), &arena, &map));
    int32_t x0 = (int32_t)weft_rng_below(&rng, (uint64_t)width), y0 = (int32_t)weft_rng_below(&rng, (uint64_t)height);
    int32_t x1 = (int32_t)weft_rng_below(&rng, (uint64_t)width), y1 = (int32_t)weft_rng_below(&rng, (uint64_t)height);
    weft_congestion_flow_t flow = {tile(x0, y0), tile(x1, y1), 7, 0};
    weft_congestion_add(&map, &flow);
    assert_true(fabs(total(&map) - 7.0 * (abs(x1 - x0) + abs(y1 - y0))) < 1e-6);
    // A block of sinks, all of its tiles: as many links as tiles, besides the way there.
    flow.to = (weft_congestion_box_t){0, 0, width, height};
    flow.sinks = (int64_t)width * height;
    double before = total(&map);
    weft_congestion_add(&map, &flow);
    double way = fabs(x0 + 0.5 - width / 2.0) + fabs(y0 + 0.5 - height / 2.0);
    assert_true(fabs(total(&map) - before - 7 * (way + (double)flow.sinks)) < 1e-6 * total(&map));
    weft_arena_deinitialize(&arena);
  }
}

// A flow along a row is where the row is, and nowhere else; the bin's load is the mean over the links of its live
// tiles.
static void a_flow_is_where_it_goes(void** state) {
  (void)state;
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  weft_congestion_t map;
  expect_ok(weft_congestion_create(16, 12, 4, &arena, &map));
  weft_congestion_add(&map, &(weft_congestion_flow_t){tile(0, 5), tile(10, 5), 100, 0});
  int32_t live[12];
  for (int b = 0; b < 12; ++b) live[b] = b == 5 ? 8 : 16;
  live[11] = 0;
  weft_congestion_finish(&map, live);
  for (int b = 0; b < 12; ++b) {
    double expected = b == 4 ? 350 / 64.0 : b == 5 ? 400 / 32.0 : b == 6 ? 250 / 64.0 : 0;
    assert_true(fabs(map.load[b] - expected) < 1e-9);
  }
  weft_arena_deinitialize(&arena);
}

static void ranks(void** state) {
  (void)state;
  static const double a[] = {1, 2, 3, 4, 5}, down[] = {50, 40, 30, 20, 10}, squares[] = {1, 4, 9, 16, 25},
                      ties[] = {1, 2, 2, 4, 5}, flat[] = {3, 3, 3, 3, 3}, mixed[] = {2, 1, 4, 3, 5};
  const struct {
    const double* b;
    double expected;
  } cases[] = {{squares, 1}, {down, -1}, {flat, 0}, {mixed, 0.8}, {ties, 9.5 / sqrt(10 * 9.5)}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    double correlation = 7;
    expect_ok(weft_rank_correlation(weft_allocator_system(), a, cases[i].b, 5, &correlation));
    assert_true(fabs(correlation - cases[i].expected) < 1e-12);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loads_add_up_to_the_wire),
      cmocka_unit_test(a_flow_is_where_it_goes),
      cmocka_unit_test(ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
