#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

static void test_splitmix_known_answers(void** state) {
  (void)state;
  // The i-th output of splitmix64 is one step from seed + i increments.
  const uint64_t increment = 0x9E3779B97F4A7C15;
  const uint64_t from_zero[] = {0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC};
  const uint64_t from_1234567[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                   4593380528125082431u, 16408922859458223821u};
  for (uint64_t i = 0; i < 4; ++i) assert_true(weft_rng_mix(i * increment) == from_zero[i]);
  for (uint64_t i = 0; i < 5; ++i) assert_true(weft_rng_mix(1234567 + i * increment) == from_1234567[i]);
}

static void test_xoshiro_known_answers(void** state) {
  (void)state;
  weft_rng_t rng = {{1, 2, 3, 4}};
  const uint64_t expected[] = {11520u,
                               0u,
                               1509978240u,
                               1215971899390074240u,
                               1216172134540287360u,
                               607988272756665600u,
                               16172922978634559625u,
                               8476171486693032832u,
                               10595114339597558777u,
                               2904607092377533576u};
  for (int i = 0; i < 10; ++i) assert_true(weft_rng_next(&rng) == expected[i]);
}

static void test_seed_uses_splitmix(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 0);
  assert_true(rng.state[0] == 0xE220A8397B1DCDAF);
  assert_true(rng.state[1] == 0x6E789E6AA1B965F4);
  assert_true(rng.state[2] == 0x06C45D188009454F);
  assert_true(rng.state[3] == 0xF88BB8A8724C81EC);
  weft_rng_t again;
  weft_rng_seed(&again, 0);
  for (int i = 0; i < 100; ++i) assert_true(weft_rng_next(&rng) == weft_rng_next(&again));
}

static void test_below_is_uniform(void** state) {
  (void)state;
  enum { DRAWS = 70000 };
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  int counts[7] = {0};
  for (int i = 0; i < DRAWS; ++i) {
    uint64_t value = weft_rng_below(&rng, 7);
    assert_true(value < 7);
    ++counts[value];
  }
  // Six standard deviations: sqrt(70000 * 1/7 * 6/7) is 93.
  for (int i = 0; i < 7; ++i) assert_true(abs(counts[i] - DRAWS / 7) < 6 * 93);
  for (int i = 0; i < 100; ++i) assert_int_equal(weft_rng_below(&rng, 1), 0);
}

static void test_below_has_no_bias_for_large_bounds(void** state) {
  (void)state;
  // The 2^64 draws fall on 3 * 2^62 values: without rejection every third value, those of one remainder modulo 3, has
  // double weight.
  enum { DRAWS = 60000 };
  weft_rng_t rng;
  weft_rng_seed(&rng, 4);
  uint64_t bound = UINT64_C(3) << 62;
  int counts[3] = {0};
  for (int i = 0; i < DRAWS; ++i) {
    uint64_t value = weft_rng_below(&rng, bound);
    assert_true(value < bound);
    ++counts[value % 3];
  }
  for (int i = 0; i < 3; ++i) assert_true(abs(counts[i] - DRAWS / 3) < 6 * 116);
}

static void test_unit(void** state) {
  (void)state;
  enum { DRAWS = 100000 };
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  double sum = 0;
  for (int i = 0; i < DRAWS; ++i) {
    double value = weft_rng_unit(&rng);
    assert_true(value >= 0 && value < 1);
    assert_true(ldexp(value, 53) == floor(ldexp(value, 53)));
    sum += value;
  }
  assert_true(fabs(sum / DRAWS - 0.5) < 6 * 0.2887 / sqrt(DRAWS));
  weft_rng_t zero = {{0, 0, 0, 0}};
  assert_true(weft_rng_unit(&zero) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_splitmix_known_answers),
      cmocka_unit_test(test_xoshiro_known_answers),
      cmocka_unit_test(test_seed_uses_splitmix),
      cmocka_unit_test(test_below_is_uniform),
      cmocka_unit_test(test_below_has_no_bias_for_large_bounds),
      cmocka_unit_test(test_unit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
