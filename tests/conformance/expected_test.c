// The list of expected failures: what is written is what is found again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/conformance/expected.h"

static void a_list_reads_back(void** state) {
  (void)state;
  static const struct {
    const char* name;
    record_t record;
    const char* reason;
  } cases[] = {
      {"test_a", {.verdict = VERDICT_UNSUPPORTED_OPERATOR, .subject = "Gradient"}, "unsupported operator Gradient"},
      {"test_b", {.verdict = VERDICT_PASSED}, NULL},
      {"test_b_2", {.verdict = VERDICT_PASSED_BOUND}, "passed, parameters bound"},
      {"test_c", {.verdict = VERDICT_MISMATCH, .detail = "not part of it"}, "mismatch on the mesh"}};
  weft_arena_t arena;
  weft_text_t list;
  expected_t expected;
  char path[64];
  snprintf(path, sizeof path, "/tmp/weft-expected-%d.txt", (int)getpid());
  weft_arena_initialize(weft_allocator_system(), &arena);
  weft_text_initialize(weft_allocator_system(), &list);
  assert_null(weft_text_printf(&list, "# a comment\twith a tab\n"));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const char* reason = NULL;
    assert_null(expected_reason(&arena, &cases[i].record, &reason));
    assert_null(expected_append(&list, cases[i].name, reason));
  }
  assert_null(weft_file_write(weft_allocator_system(), path, list.data, list.count));
  assert_null(expected_read(&arena, path, &expected));
  assert_int_equal(expected.count, 3);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const char* found = expected_find(&expected, cases[i].name);
    if (cases[i].reason)
      assert_string_equal(found, cases[i].reason);
    else
      assert_null(found);
  }
  assert_null(expected_find(&expected, "test"));
  unlink(path);
  assert_null(expected_read(&arena, path, &expected)); // no list: everything is expected to pass
  assert_int_equal(expected.count, 0);
  weft_text_deinitialize(&list);
  weft_arena_deinitialize(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_reads_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
