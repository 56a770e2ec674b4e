// The sample fabric on its machine, and how to expect a named fault.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/check.h"
#include "tests/ir/fabric/sample.h"

typedef struct checking_t {
  weft_machine_t machine;
  weft_defects_t defects;
  weft_fabric_t fabric;
} checking_t;

static inline int checking_setup(void** state) {
  checking_t* t = calloc(1, sizeof(*t));
  if (!t) return 1;
  sample_must(weft_machine_load(weft_allocator_system(), "mesh:6x5", &t->machine));
  sample_must(weft_defects_create(weft_allocator_system(), &t->machine, &t->defects));
  sample_fabric(&t->fabric);
  *state = t;
  return 0;
}

static inline int checking_teardown(void** state) {
  checking_t* t = *state;
  weft_fabric_deinitialize(&t->fabric);
  weft_defects_deinitialize(&t->defects);
  free(t);
  return 0;
}

static inline void expect_legal(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

static inline void expect_fault(weft_status_t status, const char* part) {
  if (!status) fail_msg("expected '%s', but it is accepted", part);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  if (!strstr(weft_status_message(status), part)) fail_msg("expected '%s' in:\n%s", part, weft_status_message(status));
  weft_status_free(status);
}

#define CHECK(t) weft_check_fabric(&(t)->fabric, &(t)->machine, &(t)->defects)
// Sets `place` to `value`, expects the fault, sets it back.
#define BROKEN(t, place, value, part)                                                                                  \
  do {                                                                                                                 \
    __auto_type kept_ = (place);                                                                                       \
    (place) = (value);                                                                                                 \
    expect_fault(CHECK(t), (part));                                                                                    \
    (place) = kept_;                                                                                                   \
    expect_legal(CHECK(t));                                                                                            \
  } while (0)
#define TEST(name) cmocka_unit_test_setup_teardown(name, checking_setup, checking_teardown)
