#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/control.h"

static void assert_code(weft_status_t status, weft_status_code_e code, const char* stage) {
  assert_int_equal(weft_status_code(status), code);
  if (code != WEFT_STATUS_OK) assert_non_null(strstr(weft_status_message(status), stage));
  weft_status_free(status);
}

static void test_without_limits(void** state) {
  (void)state;
  weft_control_t control = {0};
  assert_false(weft_control_should_stop(NULL));
  assert_false(weft_control_should_stop(&control));
  assert_code(weft_control_check(NULL, "place"), WEFT_STATUS_OK, "");
  assert_code(weft_control_check(&control, "place"), WEFT_STATUS_OK, "");
}

static void test_cancelled(void** state) {
  (void)state;
  volatile sig_atomic_t cancelled = 0;
  weft_control_t control = {.cancelled = &cancelled};
  assert_false(weft_control_should_stop(&control));
  assert_code(weft_control_check(&control, "route"), WEFT_STATUS_OK, "");
  cancelled = 1;
  assert_true(weft_control_should_stop(&control));
  assert_code(weft_control_check(&control, "route"), WEFT_STATUS_INTERRUPTED, "route");
}

static void test_deadline(void** state) {
  (void)state;
  double now = weft_control_now();
  assert_true(now > 0);
  weft_control_t control = {.deadline = now + 3600};
  assert_false(weft_control_should_stop(&control));
  assert_code(weft_control_check(&control, "place"), WEFT_STATUS_OK, "");
  control.deadline = now;
  assert_true(weft_control_should_stop(&control));
  assert_code(weft_control_check(&control, "place"), WEFT_STATUS_TIME_LIMIT, "place");
  control.deadline = now + 0.005;
  while (!weft_control_should_stop(&control)) {
  }
  assert_true(weft_control_now() >= now + 0.005);
}

typedef struct record_t {
  int calls;
  uint64_t done, total;
  char stage[32], line[2048];
} record_t;

static void record_progress(void* self, const char* stage, uint64_t done, uint64_t total) {
  record_t* record = self;
  ++record->calls;
  record->done = done;
  record->total = total;
  snprintf(record->stage, sizeof(record->stage), "%s", stage);
}

static void record_table(void* self, const char* stage, const char* line) {
  record_t* record = self;
  ++record->calls;
  snprintf(record->stage, sizeof(record->stage), "%s", stage);
  snprintf(record->line, sizeof(record->line), "%s", line);
}

static void test_progress(void** state) {
  (void)state;
  record_t record = {0};
  weft_control_t control = {.self = &record, .progress = record_progress};
  weft_control_progress(&control, "route", 3, 10);
  assert_int_equal(record.calls, 1);
  assert_int_equal(record.done, 3);
  assert_int_equal(record.total, 10);
  assert_string_equal(record.stage, "route");
  weft_control_table(&control, "route", "no one listens");
  assert_int_equal(record.calls, 1);
  weft_control_progress(NULL, "route", 1, 1);
}

static void test_table(void** state) {
  (void)state;
  record_t record = {0};
  weft_control_t control = {.self = &record, .table = record_table};
  weft_control_table(&control, "place", "%5d %.2f", 12, 0.5);
  assert_int_equal(record.calls, 1);
  assert_string_equal(record.stage, "place");
  assert_string_equal(record.line, "   12 0.50");
  weft_control_table(&control, "place", "%05000d", 1);
  assert_int_equal(strlen(record.line), 1023);
  weft_control_progress(&control, "place", 1, 1);
  assert_int_equal(record.calls, 2);
  weft_control_table(NULL, "place", "nothing");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_limits), cmocka_unit_test(test_cancelled), cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_progress),       cmocka_unit_test(test_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
