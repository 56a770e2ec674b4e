#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "machine/op.h"

static void test_mnemonics_are_unique_and_parse_back(void** state) {
  (void)state;
  for (int i = 0; i < WEFT_OP_COUNT; ++i) {
    weft_op_e op = WEFT_OP_COUNT;
    assert_true(weft_op_parse(weft_op_mnemonic((weft_op_e)i), &op));
    assert_int_equal(op, i);
    assert_in_range(weft_op_source_count(op), 1, 3);
    assert_in_range(weft_op_class(op), 0, WEFT_OP_CLASS_COUNT - 1);
  }
  weft_op_e op = WEFT_OP_SUB;
  assert_false(weft_op_parse("fma", &op));
  assert_false(weft_op_parse("", &op));
  assert_false(weft_op_parse("addx", &op));
  assert_int_equal(op, WEFT_OP_SUB);
}

static void test_table_rows_stay_in_step(void** state) {
  (void)state;
  assert_string_equal(weft_op_mnemonic(WEFT_OP_MLA), "mla");
  assert_int_equal(weft_op_class(WEFT_OP_MLA), WEFT_OP_CLASS_MULADD);
  assert_int_equal(weft_op_class(WEFT_OP_MOV), WEFT_OP_CLASS_MOVE);
  assert_int_equal(weft_op_class(WEFT_OP_ERF), WEFT_OP_CLASS_SPECIAL);
  assert_int_equal(weft_op_source_count(WEFT_OP_SELECT), 3);
  assert_int_equal(weft_op_source_count(WEFT_OP_NEG), 1);
}

static double combine(weft_op_e op, double a, double b) {
  switch (op) {
  case WEFT_OP_ADD:
    return a + b;
  case WEFT_OP_MUL:
    return a * b;
  case WEFT_OP_MAX:
    return a > b ? a : b;
  case WEFT_OP_MIN:
    return a < b ? a : b;
  default:
    fail_msg("%s is no combiner that this test knows", weft_op_mnemonic(op));
    return 0;
  }
}

// For every combiner and type: combining the stored neutral value with any stored value gives that value.
static void test_neutral_changes_nothing(void** state) {
  (void)state;
  int combiners = 0;
  static const double VALUES[] = {-INFINITY, -1e300, -3e38, -448, -128,  -1.5, -0.25, 0,       1,
                                  2,         127,    255,   448,  65504, 1e9,  1e300, INFINITY};
  for (int o = 0; o < WEFT_OP_COUNT; ++o) {
    weft_op_e op = (weft_op_e)o;
    combiners += weft_op_is_combiner(op);
    if (!weft_op_is_combiner(op)) continue;
    for (int d = 0; d < WEFT_DTYPE_COUNT; ++d) {
      weft_dtype_e dtype = (weft_dtype_e)d;
      uint64_t bits = 0;
      weft_dtype_store(dtype, weft_op_neutral(op, dtype), &bits);
      double neutral = weft_dtype_load(dtype, &bits);
      for (size_t i = 0; i < sizeof(VALUES) / sizeof(VALUES[0]); ++i) {
        weft_dtype_store(dtype, VALUES[i], &bits);
        double value = weft_dtype_load(dtype, &bits);
        if (combine(op, neutral, value) != value) {
          fail_msg("%s %s: %g with %g is not %g", weft_op_mnemonic(op), weft_dtype_name(dtype), neutral, value, value);
        }
      }
    }
  }
  assert_int_equal(combiners, 4);
}

static void test_neutral_of_64_bit_integers_is_their_limit(void** state) {
  (void)state;
  int64_t lowest, highest;
  uint64_t unsigned_highest;
  weft_dtype_store(WEFT_DTYPE_I64, weft_op_neutral(WEFT_OP_MAX, WEFT_DTYPE_I64), &lowest);
  weft_dtype_store(WEFT_DTYPE_I64, weft_op_neutral(WEFT_OP_MIN, WEFT_DTYPE_I64), &highest);
  weft_dtype_store(WEFT_DTYPE_U64, weft_op_neutral(WEFT_OP_MIN, WEFT_DTYPE_U64), &unsigned_highest);
  assert_true(lowest == INT64_MIN);
  assert_true(highest == INT64_MAX);
  assert_true(unsigned_highest == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mnemonics_are_unique_and_parse_back),
      cmocka_unit_test(test_table_rows_stay_in_step),
      cmocka_unit_test(test_neutral_changes_nothing),
      cmocka_unit_test(test_neutral_of_64_bit_integers_is_their_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
