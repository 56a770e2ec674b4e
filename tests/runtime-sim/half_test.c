// Half-width floats many at a time against one at a time, bit for bit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "runtime-sim/half.h"

enum { ALL = 1 << 16, MOST = 200 };

static const weft_dtype_e TYPES[] = {WEFT_DTYPE_F16, WEFT_DTYPE_BF16};

static float widened(weft_dtype_e dtype, uint16_t bits) {
  return dtype == WEFT_DTYPE_F16 ? weft_f16_to_f32(bits) : weft_bf16_to_f32(bits);
}

static uint16_t narrowed(weft_dtype_e dtype, float value) {
  return dtype == WEFT_DTYPE_F16 ? weft_f32_to_f16(value) : weft_f32_to_bf16(value);
}

static void test_every_value_widens(void** state) {
  (void)state;
  static uint16_t bits[ALL];
  static float got[ALL];
  for (int32_t i = 0; i < ALL; ++i) bits[i] = (uint16_t)i;
  for (int32_t t = 0; t < 2; ++t) {
    weft_sim_half_widen(TYPES[t], (const uint8_t*)bits, ALL, got);
    for (int32_t i = 0; i < ALL; ++i) {
      float expected = widened(TYPES[t], bits[i]);
      assert_memory_equal(&got[i], &expected, sizeof(expected));
    }
  }
}

// Around the ends of the f16 range, between two of its values, and anywhere.
static uint32_t random_f32_bits(weft_rng_t* rng) {
  static const uint32_t EDGES[] = {0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FF001, 0x47800000, 0x38800000,
                                   0x387FFFFF, 0x33000000, 0x33000001, 0x33800000, 0x32FFFFFF, 0,
                                   0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x7F7FFFFF, 0x00000001};
  uint64_t draw = weft_rng_next(rng);
  uint32_t sign = (uint32_t)(draw >> 32) & 0x80000000;
  switch (draw % 4) {
  case 0:
    return sign | EDGES[(draw >> 8) % (sizeof(EDGES) / sizeof(EDGES[0]))];
  case 1: // halfway, or nearly
    return sign | (0x33000000 + ((uint32_t)(draw >> 8) % 0x14800000 & 0xFFFFE000)) |
           (0x0FFF + (uint32_t)(draw >> 40) % 3);
  case 2:
    return sign | (0x33000000 + (uint32_t)(draw >> 8) % 0x14800000);
  default:
    return (uint32_t)(draw >> 8);
  }
}

// Odd numbers of elements at odd addresses; nothing behind them is touched.
static void test_rows(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 17);
  for (int32_t n = 0; n < 4000; ++n) {
    weft_dtype_e dtype = TYPES[n % 2];
    int64_t count = (int64_t)(weft_rng_next(&rng) % MOST);
    float values[MOST], wide[MOST + 1] = {0};
    uint8_t narrow[2 * MOST + 3];
    memset(narrow, 0xA5, sizeof(narrow));
    for (int64_t i = 0; i < count; ++i) {
      // Most rows have no NaN, so that both ways are taken.
      uint32_t bits;
      do {
        bits = random_f32_bits(&rng);
      } while (n % 3 && (bits & 0x7FFFFFFF) > 0x7F800000);
      memcpy(&values[i], &bits, sizeof(bits));
    }
    uint8_t* out = narrow + 1;
    weft_sim_half_narrow(dtype, values, count, out);
    for (int64_t i = 0; i < count; ++i) {
      uint16_t expected = narrowed(dtype, values[i]);
      assert_memory_equal(out + 2 * i, &expected, sizeof(expected));
    }
    assert_int_equal(narrow[0], 0xA5);
    assert_int_equal(out[2 * count], 0xA5);
    wide[count] = 1;
    weft_sim_half_widen(dtype, out, count, wide);
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      memcpy(&bits, out + 2 * i, sizeof(bits));
      float expected = widened(dtype, bits);
      assert_memory_equal(&wide[i], &expected, sizeof(expected));
    }
    assert_true(wide[count] == 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_value_widens), cmocka_unit_test(test_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
