// Length of routes round dead tiles, and speed. The lengths are asserted, the speed is only printed.
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
    bed->net[i] = (weft_router_net_t){"net", 1, 1, &end[2 * i], &end[2 * i + 1], 100};
    ++i;
  }
  bed->net_count = count;
}

static double measure(int32_t size, double rate, int32_t nets, int32_t reach) {
  bed_t bed;
  bed_open(&bed, size, size, rate, 11);
  two_point_nets(&bed, nets, reach, 3);
  double start = weft_control_now();
  assert_ok(bed_solve(&bed, NULL));
  double seconds = weft_control_now() - start;
  print_message(
      "%dx%d, %4.1f %% dead, %d nets, reach %d: stretch %.3f %%, hops %lld, iterations %d, colours %d, link wavelets "
      "%lld, %.0f nets/s\n",
      size, size, 100 * rate, nets, reach, 100 * (bed.report.stretch - 1), (long long)bed.report.hops,
      bed.report.iterations, bed.report.colours_max, (long long)bed.report.link_wavelets_max, nets / seconds);
  double stretch = bed.report.stretch;
  if (size <= 64) bed_verify(&bed);
  bed_close(&bed);
  return stretch;
}

static void test_stretch(void** state) {
  (void)state;
  assert_true(measure(64, 0, 500, 63) == 1.0);
  assert_true(measure(64, 0.015, 500, 63) < 1.01);
  assert_true(measure(64, 0.10, 500, 63) < 1.03);
  assert_true(measure(64, 0.015, 500, 12) < 1.01);
}

static void test_speed(void** state) {
  (void)state;
  measure(512, 0.015, 500, 511);
  measure(512, 0.015, 5000, 16);
  measure(512, 0, 20000, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stretch), cmocka_unit_test(test_speed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
