#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/text.h"

static void test_append_and_printf(void** state) {
  (void)state;
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(text.data);
  assert_null(weft_text_append(&text, "abcdef", 3));
  assert_null(weft_text_printf(&text, "[%d %s]", -5, "x"));
  assert_null(weft_text_append(&text, NULL, 0));
  assert_null(weft_text_printf(&text, "%s", ""));
  assert_string_equal(text.data, "abc[-5 x]");
  assert_int_equal(text.count, 9);
  weft_text_deinitialize(&text);
  assert_null(text.data);
  assert_int_equal(text.count, 0);
}

static void test_bytes_may_be_zero(void** state) {
  (void)state;
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_text_append(&text, "a\0b", 3));
  assert_null(weft_text_printf(&text, "c"));
  assert_int_equal(text.count, 4);
  assert_memory_equal(text.data, "a\0bc", 5);
  weft_text_deinitialize(&text);
}

static void test_grows_at_every_length(void** state) {
  (void)state;
  // Short steps meet every boundary of the capacity; the terminating zero needs its byte too.
  weft_text_t appended, printed;
  weft_text_initialize(weft_allocator_system(), &appended);
  weft_text_initialize(weft_allocator_system(), &printed);
  for (size_t i = 0; i < 3000; ++i) {
    char c = (char)('a' + i % 26);
    assert_null(weft_text_append(&appended, &c, 1));
    assert_null(weft_text_printf(&printed, "%c", c));
    assert_int_equal(strlen(appended.data), i + 1);
    assert_int_equal(strlen(printed.data), i + 1);
  }
  assert_string_equal(appended.data, printed.data);
  weft_text_deinitialize(&appended);
  weft_text_deinitialize(&printed);
}

static void test_sizes_are_checked(void** state) {
  (void)state;
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_text_printf(&text, "x"));
  const size_t cases[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2};
  for (int i = 0; i < 3; ++i) {
    weft_status_t status = weft_text_append(&text, "", cases[i]);
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
  }
  assert_string_equal(text.data, "x");
  weft_text_deinitialize(&text);
}

static void test_every_allocation_may_fail(void** state) {
  (void)state;
  uint64_t failures = 0;
  for (bool done = false; !done; ++failures) {
    weft_failing_allocator_t memory = {.countdown = failures};
    weft_text_t text;
    weft_text_initialize(weft_allocator_failing(&memory), &text);
    weft_status_t status = weft_ok();
    size_t length = 0;
    for (int i = 0; i < 200 && weft_is_ok(status); ++i) {
      status = i % 2 ? weft_text_append(&text, "12345", 5) : weft_text_printf(&text, "%05d", 12345);
      if (weft_is_ok(status)) length += 5;
    }
    done = weft_is_ok(status);
    if (!done) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    assert_int_equal(text.count, length);
    if (text.data) assert_int_equal(strlen(text.data), length);
    weft_text_deinitialize(&text);
    assert_int_equal(memory.live, 0);
  }
  assert_true(failures > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_append_and_printf),         cmocka_unit_test(test_bytes_may_be_zero),
      cmocka_unit_test(test_grows_at_every_length),     cmocka_unit_test(test_sizes_are_checked),
      cmocka_unit_test(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
