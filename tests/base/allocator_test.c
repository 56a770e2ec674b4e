#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/allocator.h"

static void assert_out_of_memory(weft_status_t status) {
  assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
  weft_status_free(status);
}

static void test_calloc_clears(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  for (int round = 0; round < 8; ++round) { // later rounds get used memory back
    uint8_t* bytes = NULL;
    assert_null(weft_allocator_calloc(allocator, 33, 7, (void**)&bytes));
    for (int i = 0; i < 33 * 7; ++i) assert_int_equal(bytes[i], 0);
    memset(bytes, 0xA5, (size_t)33 * 7);
    weft_allocator_free(allocator, bytes);
  }
}

static void test_realloc_keeps_content(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  uint32_t* words = NULL;
  assert_null(weft_allocator_realloc(allocator, 3, sizeof(*words), (void**)&words));
  for (uint32_t i = 0; i < 3; ++i) words[i] = i * 11;
  assert_null(weft_allocator_realloc(allocator, 1000, sizeof(*words), (void**)&words));
  for (uint32_t i = 0; i < 3; ++i) assert_int_equal(words[i], i * 11);
  words[999] = 1;
  assert_null(weft_allocator_realloc(allocator, 0, sizeof(*words), (void**)&words));
  assert_null(words);
}

static void test_empty(void** state) {
  (void)state;
  weft_failing_allocator_t failing = {0};
  void* pointer = &failing;
  assert_null(weft_allocator_calloc(weft_allocator_failing(&failing), 0, 8, &pointer));
  assert_null(pointer);
  pointer = &failing;
  assert_null(weft_allocator_calloc(weft_allocator_failing(&failing), 8, 0, &pointer));
  assert_null(pointer);
  weft_allocator_free(weft_allocator_failing(&failing), NULL);
  assert_int_equal(failing.live, 0);
}

static void test_sizes_are_checked(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  void* pointer = &allocator;
  assert_out_of_memory(weft_allocator_calloc(allocator, SIZE_MAX / 2, 3, &pointer));
  assert_null(pointer);
  assert_out_of_memory(weft_allocator_calloc(allocator, (size_t)1 << 32, (size_t)1 << 32, &pointer)); // wraps to 0
  assert_out_of_memory(weft_allocator_calloc(allocator, (size_t)PTRDIFF_MAX + 1, 1, &pointer));
  assert_null(weft_allocator_calloc(allocator, 1, 1, &pointer));
  void* before = pointer;
  assert_out_of_memory(weft_allocator_realloc(allocator, SIZE_MAX, 2, &pointer));
  assert_ptr_equal(pointer, before);
  weft_allocator_free(allocator, pointer);
}

static void test_failing(void** state) {
  (void)state;
  weft_failing_allocator_t failing = {.countdown = 2};
  weft_allocator_t allocator = weft_allocator_failing(&failing);
  void *first = NULL, *second = NULL;
  assert_null(weft_allocator_calloc(allocator, 4, 4, &first));
  assert_int_equal(failing.live, 1);
  assert_null(weft_allocator_realloc(allocator, 40, 4, &first)); // growing is a request, but no new block
  assert_int_equal(failing.live, 1);
  assert_int_equal(failing.countdown, 0);
  assert_out_of_memory(weft_allocator_calloc(allocator, 1, 1, &second));
  void* before = first;
  assert_out_of_memory(weft_allocator_realloc(allocator, 400, 4, &first));
  assert_ptr_equal(first, before);
  assert_int_equal(failing.live, 1);
  weft_allocator_free(allocator, first);
  assert_int_equal(failing.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calloc_clears), cmocka_unit_test(test_realloc_keeps_content),
      cmocka_unit_test(test_empty),         cmocka_unit_test(test_sizes_are_checked),
      cmocka_unit_test(test_failing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
