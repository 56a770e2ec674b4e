#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"

static void test_add(void** state) {
  (void)state;
  size_t size = 0;
  assert_true(weft_checked_add(SIZE_MAX - 1, (size_t)1, &size));
  assert_true(size == SIZE_MAX);
  assert_false(weft_checked_add(SIZE_MAX, (size_t)1, &size));
  int32_t narrow = 0;
  assert_true(weft_checked_add(INT64_C(1) << 40, -(INT64_C(1) << 40) + 5, &narrow)); // exact in the result's type
  assert_int_equal(narrow, 5);
  assert_false(weft_checked_add(INT32_MAX, 1, &narrow));
  assert_false(weft_checked_add(INT32_MIN, -1, &narrow));
}

static void test_mul(void** state) {
  (void)state;
  size_t size = 0;
  assert_true(weft_checked_mul((size_t)1 << 31, (size_t)1 << 32, &size));
  assert_true(size == (size_t)1 << 63);
  assert_false(weft_checked_mul((size_t)1 << 32, (size_t)1 << 32, &size));
  int64_t product = 0;
  assert_true(weft_checked_mul(INT64_MAX, INT64_C(-1), &product));
  assert_true(product == -INT64_MAX);
  assert_false(weft_checked_mul(INT64_MIN, INT64_C(-1), &product));
}

static void test_ceil_div(void** state) {
  (void)state;
  for (int64_t a = 0; a < 200; ++a)
    for (int64_t b = 1; b < 30; ++b) {
      int64_t quotient = 0;
      while (quotient * b < a) ++quotient;
      assert_int_equal(weft_ceil_div(a, b), quotient);
    }
  assert_true(weft_ceil_div(INT64_MAX, 1) == INT64_MAX);
  assert_true(weft_ceil_div(INT64_MAX, 2) == (INT64_C(1) << 62));
  assert_true(weft_ceil_div(1, INT64_MAX) == 1);
}

static void test_min_max(void** state) {
  (void)state;
  assert_true(weft_min_i64(INT64_MIN, INT64_MAX) == INT64_MIN);
  assert_true(weft_max_i64(INT64_MIN, INT64_MAX) == INT64_MAX);
  assert_true(weft_min_i64(2, -3) == -3);
  assert_true(weft_max_i64(2, -3) == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add),
      cmocka_unit_test(test_mul),
      cmocka_unit_test(test_ceil_div),
      cmocka_unit_test(test_min_max),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
