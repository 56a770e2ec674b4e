// Length of routes round dead tiles, load of links, and speed. Lengths and loads are asserted, speed is only printed.
#include "base/control.h"
#include "tests/router/verify.h"

// Two-point nets between random live tiles of the largest part.
static void two_point_nets(bed_t* bed, int32_t count, int32_t reach, uint64_t seed) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  int32_t width = bed->machine.width, height = bed->machine.height;
  weft_router_terminal_t* end = NULL;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, 2 * (size_t)count, &end));
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)count, &bed->net));
  for (int32_t i = 0; i < count;) {
    int32_t x0 = (int32_t)weft_rng_below(&rng, (uint64_t)width), y0 = (int32_t)weft_rng_below(&rng, (uint64_t)height);
    int32_t x1 = x0 + (int32_t)weft_rng_below(&rng, 2 * (uint64_t)reach + 1) - reach;
    int32_t y1 = y0 + (int32_t)weft_rng_below(&rng, 2 * (uint64_t)reach + 1) - reach;
    if (x1 < 0 || y1 < 0 || x1 >= width || y1 >= height || (x0 == x1 && y0 == y1)) continue;
    int32_t a = bed_tile(bed, x0, y0), b = bed_tile(bed, x1, y1), links = 0;
    for (int d = 0; d < 4; ++d) // tiles that defects cut off entirely can't be ends
      links |= weft_defects_link_live(&bed->machine, &bed->defects, a, d) |
               weft_defects_link_live(&bed->machine, &bed->defects, b, d) << 1;
    if (links != 3) continue;
    end[2 * i] = (weft_router_terminal_t){a, WEFT_DIRECTION_RAMP};
    end[2 * i + 1] = (weft_router_terminal_t){b, WEFT_DIRECTION_RAMP};
    bed->net[i] = bed_net(bed, "net", 1, 1, &end[2 * i], &end[2 * i + 1], 100);
    ++i;
  }
  bed->net_count = count;
}

typedef struct measured_t {
  double stretch;
  int64_t link_wavelets;
} measured_t;

static measured_t measure(int32_t size, double rate, int32_t nets, int32_t reach, int64_t interval) {
  bed_t bed;
  bed_open(&bed, size, size, rate, 11);
  bed.interval = interval;
  two_point_nets(&bed, nets, reach, 3);
  double start = weft_control_now();
  assert_ok(bed_solve(&bed, NULL));
  double seconds = weft_control_now() - start;
  print_message(
      "%dx%d, %4.1f %% dead, %d nets, reach %d: stretch %.3f %%, hops %lld, iterations %d, colours %d, link wavelets "
      "%lld, %.0f nets/s\n",
      size, size, 100 * rate, nets, reach, 100 * (bed.report.stretch - 1), (long long)bed.report.hops,
      bed.report.iterations, bed.report.colours_max, (long long)bed.report.link_wavelets_max, nets / seconds);
  measured_t measured = {bed.report.stretch, bed.report.link_wavelets_max};
  if (size <= 64) bed_verify(&bed);
  bed_close(&bed);
  return measured;
}

// A step that takes long anyhow: no link is worth a detour.
enum { LONG = 1 << 30 };

static void test_stretch(void** state) {
  (void)state;
  assert_true(measure(64, 0, 500, 63, LONG).stretch == 1.0);
  assert_true(measure(64, 0.015, 500, 63, LONG).stretch < 1.01);
  assert_true(measure(64, 0.10, 500, 63, LONG).stretch < 1.03);
  assert_true(measure(64, 0.015, 500, 12, LONG).stretch < 1.01);
}

// Sixteen nets along one row: the straight ways all share its links, the balanced ones take the rows beside it too.
static measured_t one_row(int64_t interval) {
  enum { NETS = 16 };
  bed_t bed;
  bed_open(&bed, 64, 40, 0, 0);
  bed.interval = interval;
  weft_router_terminal_t end[2 * NETS];
  weft_router_net_t net[NETS];
  for (int32_t i = 0; i < NETS; ++i) {
    end[2 * i] = (weft_router_terminal_t){bed_tile(&bed, i, 20), WEFT_DIRECTION_RAMP};
    end[2 * i + 1] = (weft_router_terminal_t){bed_tile(&bed, 40 + i, 20), WEFT_DIRECTION_RAMP};
    net[i] = bed_net(&bed, "net", 1, 1, &end[2 * i], &end[2 * i + 1], 100);
  }
  bed.net = net;
  bed.net_count = NETS;
  assert_ok(bed_solve(&bed, NULL));
  bed_verify(&bed);
  measured_t measured = {bed.report.stretch, bed.report.link_wavelets_max};
  bed_close(&bed);
  return measured;
}

// Where links bound the step, the busiest carries less, for ways that are somewhat longer; no less than asked for.
static void test_balance(void** state) {
  (void)state;
  measured_t straight = one_row(LONG), balanced = one_row(0), enough = one_row(400);
  print_message("one row: %lld, %lld, %lld wavelets, stretch %.3f, %.3f, %.3f\n", (long long)straight.link_wavelets,
                (long long)enough.link_wavelets, (long long)balanced.link_wavelets, straight.stretch, enough.stretch,
                balanced.stretch);
  assert_true(2 * balanced.link_wavelets <= straight.link_wavelets);
  assert_in_range(enough.link_wavelets, balanced.link_wavelets, 400);
  assert_true(straight.stretch <= enough.stretch && enough.stretch <= balanced.stretch && balanced.stretch < 1.3);
}

static void test_speed(void** state) {
  (void)state;
  measure(512, 0.015, 500, 511, LONG);
  measure(512, 0.015, 5000, 16, LONG);
  measure(512, 0, 20000, 1, LONG);
  measure(512, 0.015, 5000, 16, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stretch), cmocka_unit_test(test_balance),
                                     cmocka_unit_test(test_speed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
