#include "tests/router/verify.h"

static const struct { int32_t width, height; } sizes[] = {{1, 1}, {7, 1}, {1, 9}, {5, 3}, {9, 7}, {13, 19}, {31, 17}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
static const double rates[] = {0, 0.015, 0.05, 0.1, 0.2, 0.3};
enum { RATES = sizeof(rates) / sizeof(rates[0]) };

static void solve_random(int32_t width, int32_t height, double rate, uint64_t seed, int32_t nets, int32_t sources,
                         int32_t sinks, bed_t* bed) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  bed_open(bed, width, height, rate, seed);
  int32_t* label = NULL;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)(width * height), &label));
  int32_t part = bed_parts(bed, label);
  if (part >= 0) bed_random_nets(bed, &rng, label, part, nets, sources, sinks);
  assert_ok(bed_solve(bed, NULL));
}

// One to three nets of any shape: everything that is connected gets routed.
static void test_random_nets_small(void** state) {
  (void)state;
  for (int s = 3; s < SIZES; ++s)
    for (int r = 0; r < RATES; ++r)
      for (uint64_t seed = 0; seed < 6; ++seed) {
        bed_t bed;
        solve_random(sizes[s].width, sizes[s].height, rates[r], 100 * seed + (uint64_t)r, 1 + (int32_t)seed / 2, 4, 8,
                     &bed);
        bed_verify(&bed);
        bed_close(&bed);
      }
}

static void test_random_nets_crowded(void** state) {
  (void)state;
  for (int r = 0; r < RATES; ++r)
    for (uint64_t seed = 0; seed < 4; ++seed) {
      bed_t bed;
      // With many tiles dead, few ways are left: fewer nets fit.
      solve_random(31, 17, rates[r], 7 + seed, rates[r] > 0.1 ? 8 : 40, 5, 6, &bed);
      bed_verify(&bed);
      bed_close(&bed);
    }
}

// On a line of tiles there is no way round: a net whose sources are out of order passes a router several times.
static void test_lines(void** state) {
  (void)state;
  for (int s = 0; s < 3; ++s)
    for (uint64_t seed = 0; seed < 8; ++seed) {
      bed_t bed;
      solve_random(sizes[s].width, sizes[s].height, 0, seed, 3, 4, 20, &bed);
      bed_verify(&bed);
      bed_close(&bed);
    }
}

static void test_sources_out_of_order_in_a_corridor(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 6, 1, 0, 0);
  static const int32_t at[] = {0, 3, 1, 4};
  weft_router_terminal_t source[4], sink = {5, WEFT_DIRECTION_E};
  for (int i = 0; i < 4; ++i) source[i] = (weft_router_terminal_t){at[i], WEFT_DIRECTION_RAMP};
  weft_router_net_t net = bed_net(&bed, "a -> b", 4, 1, source, &sink, 10);
  bed.net = &net;
  bed.net_count = 1;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  assert_int_equal(bed.report.hops, 3 + 2 + 3 + 1); // 0 to 3, back to 1, on to 4, out at 5
  bed_close(&bed);
}

// Where a stream gathers, a link carries what comes from upstream, and never the last source's own segment.
static void test_gather_is_charged_by_segment(void** state) {
  (void)state;
  enum { SOURCES = 9 };
  for (int turn = 0; turn < 2; ++turn) {
    bed_t bed;
    bed_open(&bed, 11, 3, 0, 0);
    weft_router_terminal_t source[SOURCES],
        sink = {bed_tile(&bed, 1 + (turn ? 0 : SOURCES - 1), 1), WEFT_DIRECTION_RAMP};
    int64_t segment[SOURCES], sum = 0;
    for (int32_t k = 0; k < SOURCES; ++k) {
      source[k] = (weft_router_terminal_t){bed_tile(&bed, 1 + (turn ? SOURCES - 1 - k : k), 1), WEFT_DIRECTION_RAMP};
      sum += segment[k] = 100 + k;
    }
    weft_router_net_t net = {"row -> its end", SOURCES, 1, source, &sink, segment, sum};
    bed.net = &net;
    bed.net_count = 1;
    assert_ok(bed_solve(&bed, NULL));
    bed_verify(&bed);
    assert_int_equal(bed.report.hops, SOURCES - 1);
    assert_int_equal(bed.report.link_wavelets_max, sum - segment[SOURCES - 1]);
    bed_close(&bed);
  }
}

// One long net and many short ones want the same row: the long one goes round, which is fewer hops in all.
static void test_long_segments_give_way(void** state) {
  (void)state;
  enum { SHORT = 12 };
  bed_t bed;
  bed_open(&bed, 40, 9, 0, 0);
  weft_router_terminal_t source[SHORT + 1], sink[SHORT + 1];
  weft_router_net_t net[SHORT + 1];
  for (int32_t i = 0; i <= SHORT; ++i) {
    source[i] = (weft_router_terminal_t){bed_tile(&bed, i, 4), WEFT_DIRECTION_RAMP};
    sink[i] = (weft_router_terminal_t){bed_tile(&bed, 39 - i, 4), WEFT_DIRECTION_RAMP};
    net[i] = bed_net(&bed, i ? "short" : "long", 1, 1, &source[i], &sink[i], i ? 10 : 120);
  }
  bed.net = net;
  bed.net_count = SHORT + 1;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  assert_in_range(bed.report.link_wavelets_max, 120, 120);
  int64_t shorts = 0, straight = 0;
  for (int32_t i = 1; i <= SHORT; ++i) {
    shorts += bed.route[i].entry_count - 1;
    straight += 39 - 2 * i;
  }
  assert_true(bed.route[0].entry_count - 1 > 39);
  assert_int_equal(shorts, straight);
  bed_close(&bed);
}

// All tiles of a region in row-major order to all tiles of another: the combs that layers make.
static void test_region_to_region(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 23, 15, 0, 0);
  weft_router_terminal_t *source = NULL, *sink = NULL;
  enum { GX = 7, GY = 6 };
  assert_ok(WEFT_ARENA_NEW(&bed.arena, GX * GY, &source));
  assert_ok(WEFT_ARENA_NEW(&bed.arena, GX * GY, &sink));
  for (int32_t i = 0; i < GX * GY; ++i) {
    source[i] = (weft_router_terminal_t){bed_tile(&bed, 2 + i % GX, 3 + i / GX), WEFT_DIRECTION_RAMP};
    sink[i] = (weft_router_terminal_t){bed_tile(&bed, 12 + i % GX, 5 + i / GX), WEFT_DIRECTION_RAMP};
  }
  weft_router_net_t net = bed_net(&bed, "a -> b", GX * GY, GX * GY, source, sink, 100);
  bed.net = &net;
  bed.net_count = 1;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  // A spanning tree of each region and the four hops in between: no shorter tree exists.
  assert_int_equal(bed.report.hops, 2 * (GX * GY - 1) + 4);
  assert_int_equal(bed.report.iterations, 1);
  bed_close(&bed);
}

// A row of dead tiles with a gap of one: everything goes through it, and there is room for just that.
static void test_gap(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 17, 11, 0, 0);
  int32_t colours = bed.machine.colours;
  for (int32_t x = 0; x < 17; ++x)
    if (x != 12) weft_defects_kill_tile(&bed.defects, bed_tile(&bed, x, 5));
  weft_router_terminal_t* end = NULL;
  assert_ok(WEFT_ARENA_NEW(&bed.arena, 2 * (size_t)colours, &end));
  assert_ok(WEFT_ARENA_NEW(&bed.arena, (size_t)colours, &bed.net));
  bed.net_count = colours;
  for (int32_t i = 0; i < colours; ++i) {
    end[2 * i] = (weft_router_terminal_t){bed_tile(&bed, i % 17, i / 17), WEFT_DIRECTION_RAMP};
    end[2 * i + 1] = (weft_router_terminal_t){bed_tile(&bed, 16 - i % 17, 10 - i / 17), WEFT_DIRECTION_RAMP};
    bed.net[i] = bed_net(&bed, "through", 1, 1, &end[2 * i + i % 2], &end[2 * i + 1 - i % 2], 10);
  }
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  assert_int_equal(bed.report.colours_max, colours);
  bed_close(&bed);
}

// Many nets between two columns compete for the straight ways; the load must be spread over the rows, close to the
// mean.
static void test_balance(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 24, 16, 0, 0);
  enum { NETS = 64 };
  weft_router_terminal_t end[2 * NETS];
  weft_router_net_t net[NETS];
  for (int32_t i = 0; i < NETS; ++i) {
    end[2 * i] = (weft_router_terminal_t){bed_tile(&bed, i % 4, 6 + i / 4 % 4), WEFT_DIRECTION_RAMP};
    end[2 * i + 1] = (weft_router_terminal_t){bed_tile(&bed, 20 + i % 4, 6 + i / 4 % 4), WEFT_DIRECTION_RAMP};
    net[i] = bed_net(&bed, "across", 1, 1, &end[2 * i], &end[2 * i + 1], 100);
  }
  bed.net = net;
  bed.net_count = NETS;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  // Along the four rows alone it would be 1600.
  assert_in_range(bed.report.link_wavelets_max, 400, 1000);
  bed_close(&bed);
}

static void test_deterministic(void** state) {
  (void)state;
  bed_t a, b;
  solve_random(31, 17, 0.1, 5, 60, 4, 5, &a);
  solve_random(31, 17, 0.1, 5, 60, 4, 5, &b);
  assert_memory_equal(&a.report, &b.report, sizeof(a.report));
  for (int32_t n = 0; n < a.net_count; ++n) {
    assert_int_equal(a.route[n].entry_count, b.route[n].entry_count);
    for (int32_t i = 0; i < a.route[n].entry_count; ++i) {
      const weft_router_entry_t *p = &a.route[n].entry[i], *q = &b.route[n].entry[i];
      assert_int_equal(p->tile, q->tile);
      assert_int_equal(p->colour, q->colour);
      assert_int_equal(p->outputs, q->outputs);
      assert_memory_equal(p->input, q->input, sizeof(p->input));
      assert_memory_equal(p->output_colour, q->output_colour, sizeof(p->output_colour));
    }
  }
  bed_close(&a);
  bed_close(&b);
}

static void count_line(void* self, const char* stage, const char* line) {
  assert_string_equal(stage, "routing");
  assert_non_null(strstr(line, "overused"));
  ++*(int*)self;
}
static void test_table(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 5, 5, 0, 0);
  weft_router_terminal_t source = {0, WEFT_DIRECTION_N}, sink = {24, WEFT_DIRECTION_S};
  weft_router_net_t net = bed_net(&bed, "corner -> corner", 1, 1, &source, &sink, 7);
  bed.net = &net;
  bed.net_count = 1;
  int lines = 0;
  weft_control_t control = {.self = &lines, .table = count_line};
  assert_ok(bed_solve(&bed, &control));
  bed_verify(&bed);
  assert_int_equal(lines, bed.report.iterations);
  assert_int_equal(bed.report.longest_hops, 8);
  assert_true(bed.report.stretch == 1.0);
  bed_close(&bed);
}

static void test_cancelled(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 5, 5, 0, 0);
  weft_router_terminal_t source = {0, WEFT_DIRECTION_RAMP}, sink = {24, WEFT_DIRECTION_RAMP};
  weft_router_net_t net = bed_net(&bed, "a -> b", 1, 1, &source, &sink, 7);
  bed.net = &net;
  bed.net_count = 1;
  volatile sig_atomic_t cancelled = 1;
  weft_status_t status = bed_solve(&bed, &(weft_control_t){.cancelled = &cancelled});
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INTERRUPTED);
  weft_status_free(status);
  bed_close(&bed);
}

// Every allocation fails once: an error and no leak.
static void test_out_of_memory(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 6, 5, 0, 0);
  weft_router_terminal_t source[] = {{0, WEFT_DIRECTION_RAMP}, {17, WEFT_DIRECTION_RAMP}};
  weft_router_terminal_t sink[] = {{29, WEFT_DIRECTION_RAMP}, {4, WEFT_DIRECTION_N}};
  weft_router_net_t net = bed_net(&bed, "a -> b", 2, 2, source, sink, 7);
  bool done = false;
  for (uint64_t n = 0; !done; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_failing(&failing), &arena);
    weft_status_t status =
        weft_router_solve(&bed.machine, &bed.defects, 1, &net, 0, NULL, &arena, &bed.route, &bed.report);
    done = weft_is_ok(status);
    if (!done) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    weft_arena_deinitialize(&arena);
    assert_int_equal(failing.live, 0);
    assert_true(n < 1000);
  }
  bed_close(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_nets_small),
      cmocka_unit_test(test_random_nets_crowded),
      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_gather_is_charged_by_segment),
      cmocka_unit_test(test_long_segments_give_way),
      cmocka_unit_test(test_region_to_region),
      cmocka_unit_test(test_sources_out_of_order_in_a_corridor),
      cmocka_unit_test(test_gap),
      cmocka_unit_test(test_balance),
      cmocka_unit_test(test_deterministic),
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_cancelled),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
