// A context with Weft's passes, for the group of tests of a program; and a status that has to be OK.
#pragma once
#include "passes/passes.h"

static weft_tensor_context_t* context;

static int setup(void** state) {
  (void)state;
  bool made = weft_status_consume(weft_tensor_context_create(weft_allocator_system(), &context));
  return made && weft_status_consume(weft_passes_register(context)) ? 0 : -1;
}
static int teardown(void** state) {
  (void)state;
  weft_tensor_context_destroy(context);
  return 0;
}

static void check(weft_status_t status) {
  if (status) print_error("%s\n", weft_status_message(status));
  assert_true(weft_is_ok(status));
}
