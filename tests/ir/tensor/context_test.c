#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/tensor/tensor.h"

static weft_tensor_context_t* context;

static int setup(void** state) {
  (void)state;
  return weft_status_consume(weft_tensor_context_create(weft_allocator_system(), &context)) ? 0 : -1;
}
static int teardown(void** state) {
  (void)state;
  weft_tensor_context_destroy(context);
  return 0;
}

static MlirModule parse(const char* text) {
  return mlirModuleCreateParse(weft_tensor_context_mlir(context), mlirStringRefCreateFromCString(text));
}

static const char kernel_text[] =
    "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %r = \"weft.kernel\"() ({\n    vector.yield %a : tensor<4xf32>\n  }) {name = \"relu\"} : "
    "() -> tensor<4xf32>\n  return %r : tensor<4xf32>\n}\n";

static void dialect(void** state) {
  (void)state;
  MlirModule module = parse(kernel_text);
  assert_false(mlirModuleIsNull(module));
  assert_true(mlirOperationVerify(mlirModuleGetOperation(module)));
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_true(weft_is_ok(weft_tensor_print(module, &text)));
  assert_non_null(strstr(text.data, "weft.kernel"));
  weft_text_deinitialize(&text);
  mlirModuleDestroy(module);

  module =
      parse("func.func @main() {\n  \"weft.kernel\"() ({\n    vector.yield\n  }) : () -> ()\n  return\n}\n"); // no name
  assert_true(mlirModuleIsNull(module));
  assert_non_null(strstr(weft_tensor_take_diagnostics(context), "name"));
}

static void diagnostics_are_collected_with_locations(void** state) {
  (void)state;
  MlirModule module = parse("func.func @main() {\n  %0 = nothing.at_all : f32\n  return\n}\n");
  assert_true(mlirModuleIsNull(module));
  const char* text = weft_tensor_take_diagnostics(context);
  assert_non_null(strstr(text, ":2:"));
  assert_non_null(strstr(text, "nothing"));
  assert_string_equal(weft_tensor_take_diagnostics(context), "");

  weft_status_t status = weft_tensor_parse(context, "/nonexistent/file.mlir", &module);
  assert_false(weft_is_ok(status));
  assert_non_null(strstr(weft_status_message(status), "/nonexistent/file.mlir"));
  weft_status_free(status);
}

static int runs;
static weft_status_t count_run(weft_tensor_context_t* self, MlirOperation module) {
  (void)self;
  (void)module;
  ++runs;
  return weft_ok();
}
static weft_status_t fail_run(weft_tensor_context_t* self, MlirOperation module) {
  (void)self;
  (void)module;
  return weft_error(UNSUPPORTED, "no such layer");
}

static void pipelines(void** state) {
  (void)state;
  static const weft_tensor_pass_t table[] = {{"weft-count", "counts", count_run}, {"weft-fail", "fails", fail_run}};
  weft_tensor_register_passes(context, table, 2);
  MlirModule module = parse(kernel_text);
  char directory[] = "/tmp/weft-pipeline-XXXXXX";
  assert_non_null(mkdtemp(directory));
  runs = 0;
  weft_status_t status = weft_tensor_run_pipeline(
      context, module,
      "builtin.module(canonicalize{max-iterations=2},weft-count,func.func(cse,canonicalize),weft-count)", directory);
  assert_true(weft_is_ok(status));
  assert_int_equal(runs, 2);
  static const char* const dumps[] = {"00-canonicalize", "01-weft-count", "02-func-func-cse-canonicalize",
                                      "03-weft-count"};
  for (size_t i = 0; i < 4; ++i) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s.mlir", directory, dumps[i]);
    assert_int_equal(access(path, R_OK), 0);
    unlink(path);
  }
  rmdir(directory);

  static const struct {
    const char *pipeline, *expect;
    weft_status_code_e code;
  } bad[] = {{"builtin.module(no-such-pass)", "no-such-pass", WEFT_STATUS_INVALID_ARGUMENT},
             {"builtin.module(cse(", "unbalanced", WEFT_STATUS_INVALID_ARGUMENT},
             {"builtin.module(weft-fail)", "no such layer", WEFT_STATUS_UNSUPPORTED}};
  for (size_t i = 0; i < 3; ++i) {
    status = weft_tensor_run_pipeline(context, module, bad[i].pipeline, NULL);
    assert_int_equal(weft_status_code(status), bad[i].code);
    assert_non_null(strstr(weft_status_message(status), bad[i].expect));
    weft_status_free(status);
  }
  mlirModuleDestroy(module);
}

static void dtypes(void** state) {
  (void)state;
  MlirContext mlir = weft_tensor_context_mlir(context);
  for (int i = 0; i < WEFT_DTYPE_COUNT; ++i) {
    weft_dtype_e back;
    assert_true(weft_tensor_dtype(weft_tensor_type(mlir, (weft_dtype_e)i), &back));
    assert_int_equal(weft_dtype_size(back), weft_dtype_size((weft_dtype_e)i));
    assert_int_equal(weft_dtype_is_float(back), weft_dtype_is_float((weft_dtype_e)i));
  }
  weft_dtype_e none;
  assert_false(weft_tensor_dtype(mlirTypeParseGet(mlir, mlirStringRefCreateFromCString("i7")), &none));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dialect),
                                     cmocka_unit_test(diagnostics_are_collected_with_locations),
                                     cmocka_unit_test(pipelines), cmocka_unit_test(dtypes)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
