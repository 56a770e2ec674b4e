// A case that crashes, hangs or is killed is a result of its own and disturbs no other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/pool.h"

// Stands in for the whole path: what a case does is its name.
void wafer_run_case(weft_tensor_context_t* context, const wafer_options_t* options, const char* folder,
                    const char* name, record_t* record) {
  (void)context;
  (void)options;
  (void)folder;
  record->step = STEP_ROUTE;
  record->kernels = (int32_t)strlen(name);
  if (!strcmp(name, "crash")) raise(SIGSEGV);
  if (!strcmp(name, "abort")) abort();
  if (!strcmp(name, "exit")) _exit(3);
  for (volatile int turn = 0; !strcmp(name, "spin");) turn = turn + 1;
  if (!strcmp(name, "late")) usleep(200000);
  if (!strcmp(name, "mismatch")) record->verdict = VERDICT_MISMATCH;
}
void wafer_clean(const wafer_options_t* options, int process) {
  (void)options;
  (void)process;
}

typedef struct seen_t {
  int32_t count;
  const char* name[16];
  record_t record[16];
} seen_t;
static void on_done(void* self, const char* name, const record_t* record) {
  seen_t* seen = self;
  seen->name[seen->count] = name;
  seen->record[seen->count++] = *record;
}

static void every_end_is_a_verdict(void** state) {
  (void)state;
  static const char* names[] = {"late", "crash", "pass", "abort", "exit", "spin", "mismatch", "pass too"};
  static const verdict_e wanted[] = {VERDICT_PASSED, VERDICT_CRASH,      VERDICT_PASSED,   VERDICT_CRASH,
                                     VERDICT_CRASH,  VERDICT_TIME_LIMIT, VERDICT_MISMATCH, VERDICT_PASSED};
  enum { COUNT = sizeof names / sizeof *names };
  for (int32_t jobs = 1; jobs <= 3; ++jobs) {
    seen_t seen = {0};
    pool_options_t options = {.jobs = jobs, .seconds = 1, .bytes = INT64_C(1) << 60};
    case_names_t list = {COUNT, names};
    assert_null(pool_run(NULL, &options, "", &list, on_done, &seen));
    assert_int_equal(seen.count, COUNT);
    for (int32_t i = 0; i < COUNT; ++i) { // in the order of the names, whoever ended first
      assert_string_equal(seen.name[i], names[i]);
      assert_int_equal(seen.record[i].verdict, wanted[i]);
      assert_int_equal(seen.record[i].kernels, strlen(names[i]));
    }
    assert_non_null(strstr(seen.record[1].detail, "ROUTE")); // how far it came
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_end_is_a_verdict)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
