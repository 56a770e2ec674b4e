#include "tests/router/verify.h"

static weft_router_terminal_t ramp(const bed_t* bed, int32_t x, int32_t y) {
  return (weft_router_terminal_t){bed_tile(bed, x, y), WEFT_DIRECTION_RAMP};
}

// Solves, expects UNROUTABLE with all of the texts in its message.
static void expect_message(bed_t* bed, const char* const* texts) {
  weft_status_t status = bed_solve(bed, NULL);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNROUTABLE);
  const char* message = weft_status_message(status);
  for (; *texts; ++texts)
    if (!strstr(message, *texts)) {
      print_error("no '%s' in: %s\n", *texts, message);
      fail();
    }
  assert_null(bed->route);
  weft_status_free(status);
}
#define EXPECT_MESSAGE(bed, ...) expect_message((bed), (const char* const[]){__VA_ARGS__, NULL})

static void test_split_mesh(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 9, 7, 0, 0);
  for (int32_t x = 0; x < 9; ++x) weft_defects_kill_tile(&bed.defects, bed_tile(&bed, x, 2));
  weft_router_terminal_t source = ramp(&bed, 3, 1), sinks[] = {ramp(&bed, 5, 0), ramp(&bed, 4, 6)};
  weft_router_net_t net = bed_net(&bed, "conv1 -> conv2 (x)", 1, 2, &source, sinks, 5);
  bed.net = &net;
  bed.net_count = 1;
  EXPECT_MESSAGE(&bed, "conv1 -> conv2 (x)", "sink at (4, 6)", "(3, 1)", "2 parts of 36 and 18 tiles");
  bed_close(&bed);
}

static void test_dead_end_tile(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 5, 3, 0, 0);
  weft_defects_kill_tile(&bed.defects, bed_tile(&bed, 1, 1));
  weft_router_terminal_t sources[] = {ramp(&bed, 1, 1), ramp(&bed, 2, 2)}, sink = ramp(&bed, 0, 0);
  weft_router_net_t net = bed_net(&bed, "a -> b (t)", 2, 1, sources, &sink, 5);
  bed.net = &net;
  bed.net_count = 1;
  EXPECT_MESSAGE(&bed, "a -> b (t)", "source at (1, 1)", "dead");
  bed_close(&bed);
}

// One stream too many begins at a tile.
static void test_too_many_at_a_tile(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 9, 9, 0, 0);
  enum { COUNT = 25 };
  weft_router_terminal_t source = ramp(&bed, 4, 3), sink[COUNT];
  weft_router_net_t net[COUNT];
  for (int32_t i = 0; i < COUNT; ++i) {
    sink[i] = ramp(&bed, i % 9, 6 + i / 9);
    net[i] = bed_net(&bed, i == 3 ? "fourth" : "other", 1, 1, &source, &sink[i], 1);
  }
  bed.net = net;
  bed.net_count = COUNT;
  EXPECT_MESSAGE(&bed, "router (4, 3)", "needs 25 colours", "has 24", "fourth", "and 20 more");
  --bed.net_count;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  bed_close(&bed);
}

// A dead column with two gaps holds 2 * 24 streams and not one more.
static void test_full_column(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 11, 13, 0, 0);
  for (int32_t y = 0; y < 13; ++y)
    if (y != 4 && y != 9) weft_defects_kill_tile(&bed.defects, bed_tile(&bed, 6, y));
  enum { COUNT = 49 };
  weft_router_terminal_t source[COUNT], sink[COUNT];
  weft_router_net_t net[COUNT];
  for (int32_t i = 0; i < COUNT; ++i) {
    source[i] = ramp(&bed, i / 13, i % 13);
    sink[i] = ramp(&bed, 7 + i / 13, 12 - i % 13);
    net[i] = bed_net(&bed, "over", 1, 1, &source[i], &sink[i], 1);
  }
  bed.net = net;
  bed.net_count = COUNT;
  EXPECT_MESSAGE(&bed, "column 6", "(6, 4)", "(6, 9)", "48 colours", "49 streams", "25 colours a router");
  --bed.net_count;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  bed_close(&bed);
}

// No line of the mesh is full, but the two routers that lead into a corner are.
static void test_full_corner(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 12, 12, 0, 0);
  bed.machine.colours = 4;
  weft_defects_kill_tile(&bed.defects, bed_tile(&bed, 3, 0));
  weft_defects_kill_tile(&bed.defects, bed_tile(&bed, 3, 1));
  weft_defects_kill_tile(&bed.defects, bed_tile(&bed, 3, 2));
  for (int32_t x = 0; x < 3; ++x)
    if (x != 1) weft_defects_kill_tile(&bed.defects, bed_tile(&bed, x, 3));
  enum { COUNT = 5 };
  weft_router_terminal_t source[COUNT], sink[COUNT];
  weft_router_net_t net[COUNT];
  static const char* const names[COUNT] = {"one", "two", "three", "four", "five"};
  for (int32_t i = 0; i < COUNT; ++i) {
    source[i] = ramp(&bed, i % 3, i / 3);
    sink[i] = ramp(&bed, 11, 11 - i);
    net[i] = bed_net(&bed, names[i], 1, 1, &source[i], &sink[i], 1);
  }
  bed.net = net;
  bed.net_count = COUNT;
  EXPECT_MESSAGE(&bed, "router (1, 2) is full: 5 entries", "its 4 colours", "one", "five", "5 streams cannot avoid");
  --bed.net_count;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  bed_close(&bed);
}

static void test_malformed(void** state) {
  (void)state;
  bed_t bed;
  bed_open(&bed, 5, 4, 0, 0);
  weft_router_terminal_t good = {0, WEFT_DIRECTION_RAMP};
  const weft_router_terminal_t bad[] = {{-1, WEFT_DIRECTION_RAMP}, {20, WEFT_DIRECTION_RAMP},
                                        {0, WEFT_DIRECTION_E},     {6, WEFT_DIRECTION_N},
                                        {0, WEFT_DIRECTION_NW},    {0, WEFT_DIRECTION_COUNT}};
  const int64_t negative[] = {3, -2};
  weft_router_net_t net;
  bed.net = &net;
  bed.net_count = 1;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]) + 6; ++i) {
    size_t n = sizeof(bad) / sizeof(bad[0]);
    net = bed_net(&bed, "net", 1, 1, i < n ? &bad[i] : &good, &good, 1);
    const weft_router_terminal_t twice[] = {good, good}, ends[] = {good, {1, WEFT_DIRECTION_RAMP}};
    if (i == n) net.source_count = 0;
    if (i == n + 1) net.sink_count = 0;
    if (i == n + 2) net.wavelets = -1;
    if (i == n + 3) net = bed_net(&bed, "net", 2, 1, twice, &good, 1);
    if (i == n + 4) net.wavelets = 2; // the segment says 1
    if (i == n + 5) net = (weft_router_net_t){"net", 2, 1, ends, &good, negative, 1};
    weft_status_t status = bed_solve(&bed, NULL);
    assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
    weft_status_free(status);
  }
  bed_close(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_split_mesh),         cmocka_unit_test(test_dead_end_tile),
      cmocka_unit_test(test_too_many_at_a_tile), cmocka_unit_test(test_full_column),
      cmocka_unit_test(test_full_corner),        cmocka_unit_test(test_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
