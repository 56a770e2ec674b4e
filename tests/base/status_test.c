#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

// Statuses take no allocator, so the implementation is compiled in here with allocations that can be made to fail.
static int allocations_left = -1; // negative: without end

static int allocation_fails(void) {
  if (allocations_left == 0) return 1;
  if (allocations_left > 0) --allocations_left;
  return 0;
}
static void* test_allocate(size_t size) {
  return allocation_fails() ? NULL : malloc(size);
}
static void* test_reallocate(void* pointer, size_t size) {
  return allocation_fails() ? NULL : realloc(pointer, size);
}
static int test_format(char** out, const char* format, va_list arguments) {
  return allocation_fails() ? -1 : vasprintf(out, format, arguments);
}
#define malloc test_allocate
#define realloc test_reallocate
#define vasprintf test_format
#include "base/status.c" // NOLINT(bugprone-suspicious-include)
#undef malloc
#undef realloc
#undef vasprintf

static void test_ok(void** state) {
  (void)state;
  weft_status_t ok = weft_ok();
  assert_true(weft_is_ok(ok));
  assert_int_equal(weft_status_code(ok), WEFT_STATUS_OK);
  assert_string_equal(weft_status_message(ok), "ok");
  assert_null(weft_status_annotate(ok, "context"));
  assert_null(weft_status_join(weft_ok(), weft_ok()));
  assert_true(weft_status_consume(ok));
  weft_status_free(ok);
}

static void test_make(void** state) {
  (void)state;
  int line = __LINE__ + 1;
  weft_status_t status = weft_error(DOES_NOT_FIT, "%d tiles for %s", 7, "conv1");
  assert_false(weft_is_ok(status));
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DOES_NOT_FIT);
  assert_string_equal(weft_status_message(status), "7 tiles for conv1");
  assert_string_equal(weft_status_origin_file(status), __FILE__);
  assert_int_equal(weft_status_origin_line(status), line);
  assert_false(weft_status_consume(status));
}

static void test_a_failure_is_never_ok(void** state) {
  (void)state;
  weft_status_t status = weft_error(OK, "no code");
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INTERNAL);
  assert_string_equal(weft_status_message(status), "no code");
  weft_status_free(status);
}

static void test_annotate_adds_lines(void** state) {
  (void)state;
  weft_status_t status = weft_error(IO, "disk gone");
  status = weft_status_annotate(status, "while reading %s", "model.onnx");
  status = weft_status_annotate(status, "while compiling");
  assert_string_equal(weft_status_message(status), "disk gone\nwhile reading model.onnx\nwhile compiling");
  assert_int_equal(weft_status_code(status), WEFT_STATUS_IO);
  weft_status_free(status);
}

static void test_join(void** state) {
  (void)state;
  weft_status_t first = weft_error(UNROUTABLE, "first"), second = weft_error(IO, "second");
  weft_status_t joined = weft_status_join(first, second);
  assert_ptr_equal(joined, first);
  assert_int_equal(weft_status_code(joined), WEFT_STATUS_UNROUTABLE);
  assert_string_equal(weft_status_message(joined), "first\nsecond");
  assert_ptr_equal(weft_status_join(joined, weft_ok()), joined);
  assert_ptr_equal(weft_status_join(weft_ok(), joined), joined);
  assert_string_equal(weft_status_message(joined), "first\nsecond");
  weft_status_free(joined);
}

static weft_status_t pass(weft_status_t status, int* count) {
  WEFT_RETURN_IF_ERROR(status);
  ++*count;
  return weft_ok();
}

static void test_propagates(void** state) {
  (void)state;
  int calls = 0;
  weft_status_t failure = weft_error(MISMATCH, "differs");
  assert_ptr_equal(pass(failure, &calls), failure);
  assert_int_equal(calls, 0);
  assert_null(pass(weft_ok(), &calls));
  assert_int_equal(calls, 1);
  weft_status_free(failure);
}

static void test_exit_codes(void** state) {
  (void)state;
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_OK), 0);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_NOT_FOUND), 1);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_DOES_NOT_FIT), 2);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_UNROUTABLE), 2);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_TIME_LIMIT), 3);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_MISMATCH), 4);
  assert_int_equal(weft_status_code_exit(WEFT_STATUS_INTERNAL), 70);
  assert_string_equal(weft_status_code_text(WEFT_STATUS_UNROUTABLE), "cannot be routed");
  assert_int_equal(weft_status_code_exit((weft_status_code_e)999), 70);
  assert_string_equal(weft_status_code_text((weft_status_code_e)999), "unknown error");
}

static void test_make_without_memory(void** state) {
  (void)state;
  for (int n = 0; n < 2; ++n) {
    allocations_left = n;
    weft_status_t status = weft_error(IO, "lost");
    allocations_left = -1;
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    assert_string_equal(weft_status_message(status), "out of memory");
    assert_ptr_equal(weft_status_annotate(status, "note"), status);
    assert_ptr_equal(weft_status_join(status, weft_error(IO, "later")), status);
    assert_string_equal(weft_status_message(status), "out of memory");
    weft_status_free(status); // static: the second round finds it as it was
  }
  allocations_left = 0;
  weft_status_t status = weft_error(IO, "lost");
  allocations_left = -1;
  weft_status_t joined = weft_status_join(weft_error(IO, "first"), status);
  assert_string_equal(weft_status_message(joined), "first\nout of memory");
  weft_status_free(joined);
}

static void test_notes_without_memory_keep_the_failure(void** state) {
  (void)state;
  weft_status_t status = weft_error(IO, "first");
  for (int n = 0; n < 2; ++n) {
    allocations_left = n;
    status = weft_status_annotate(status, "note");
    allocations_left = -1;
    assert_string_equal(weft_status_message(status), "first");
  }
  weft_status_t second = weft_error(INTERNAL, "second");
  allocations_left = 0;
  status = weft_status_join(status, second);
  allocations_left = -1;
  assert_int_equal(weft_status_code(status), WEFT_STATUS_IO);
  assert_string_equal(weft_status_message(status), "first");
  weft_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ok),
      cmocka_unit_test(test_make),
      cmocka_unit_test(test_a_failure_is_never_ok),
      cmocka_unit_test(test_annotate_adds_lines),
      cmocka_unit_test(test_join),
      cmocka_unit_test(test_propagates),
      cmocka_unit_test(test_exit_codes),
      cmocka_unit_test(test_make_without_memory),
      cmocka_unit_test(test_notes_without_memory_keep_the_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
