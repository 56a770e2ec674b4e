#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"

typedef struct pair_t {
  int32_t x, y;
} pair_t;

static void test_push(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  WEFT_ARRAY(pair_t) pairs = {0};
  for (int32_t i = 0; i < 1000; ++i)
    assert_null(WEFT_ARRAY_PUSH(allocator, &pairs, (pair_t){.x = i, .y = (int32_t)pairs.count}));
  assert_int_equal(pairs.count, 1000);
  for (int32_t i = 0; i < 1000; ++i) {
    assert_int_equal(pairs.data[i].x, i);
    assert_int_equal(pairs.data[i].y, i);
  }
  WEFT_ARRAY_FREE(allocator, &pairs);
  assert_null(pairs.data);
  assert_int_equal(pairs.count, 0);
  assert_int_equal(pairs.capacity, 0);
}

static void test_an_element_can_be_pushed_again(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  WEFT_ARRAY(int64_t) values = {0};
  assert_null(WEFT_ARRAY_PUSH(allocator, &values, 42));
  // The value is read after the array has moved.
  for (int i = 0; i < 100; ++i) assert_null(WEFT_ARRAY_PUSH(allocator, &values, values.data[0]));
  assert_int_equal(values.data[100], 42);
  WEFT_ARRAY_FREE(allocator, &values);
}

static void test_growth_doubles(void** state) {
  (void)state;
  weft_failing_allocator_t memory = {.countdown = 1000};
  weft_allocator_t allocator = weft_allocator_failing(&memory);
  WEFT_ARRAY(uint8_t) bytes = {0};
  for (int i = 0; i < 100000; ++i) assert_null(WEFT_ARRAY_PUSH(allocator, &bytes, (uint8_t)i));
  assert_true(1000 - memory.countdown < 20);
  size_t capacity = bytes.capacity;
  assert_null(WEFT_ARRAY_RESERVE(allocator, &bytes, capacity)); // fits: no request
  assert_int_equal(bytes.capacity, capacity);
  assert_null(WEFT_ARRAY_RESERVE(allocator, &bytes, 10 * capacity));
  assert_true(bytes.capacity >= 10 * capacity);
  assert_int_equal(bytes.count, 100000);
  WEFT_ARRAY_FREE(allocator, &bytes);
  assert_int_equal(memory.live, 0);
}

static void test_sizes_are_checked(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  WEFT_ARRAY(pair_t) pairs = {0};
  assert_null(WEFT_ARRAY_PUSH(allocator, &pairs, (pair_t){1, 2}));
  pair_t* data = pairs.data;
  size_t capacity = pairs.capacity;
  const size_t cases[] = {SIZE_MAX, SIZE_MAX / sizeof(pair_t) + 1, SIZE_MAX / 2 + 1};
  for (size_t i = 0; i < 3; ++i) {
    weft_status_t status = WEFT_ARRAY_RESERVE(allocator, &pairs, cases[i]);
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    assert_ptr_equal(pairs.data, data);
    assert_int_equal(pairs.capacity, capacity);
  }
  WEFT_ARRAY_FREE(allocator, &pairs);
}

static void test_every_allocation_may_fail(void** state) {
  (void)state;
  uint64_t failures = 0;
  for (bool done = false; !done; ++failures) {
    weft_failing_allocator_t memory = {.countdown = failures};
    weft_allocator_t allocator = weft_allocator_failing(&memory);
    WEFT_ARRAY(int32_t) values = {0};
    weft_status_t status = weft_ok();
    int32_t pushed = 0;
    while (pushed < 500 && weft_is_ok(status)) {
      status = WEFT_ARRAY_PUSH(allocator, &values, pushed);
      if (weft_is_ok(status)) ++pushed;
    }
    done = weft_is_ok(status);
    if (!done) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    assert_int_equal(values.count, pushed); // what was there before the failure is still there
    for (int32_t i = 0; i < pushed; ++i) assert_int_equal(values.data[i], i);
    WEFT_ARRAY_FREE(allocator, &values);
    assert_int_equal(memory.live, 0);
  }
  assert_true(failures > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_push),
      cmocka_unit_test(test_an_element_can_be_pushed_again),
      cmocka_unit_test(test_growth_doubles),
      cmocka_unit_test(test_sizes_are_checked),
      cmocka_unit_test(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
