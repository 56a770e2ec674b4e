// Many pieces into a kernel, many readers of a result: copies keep both within a router's colours, and change no value.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ir/tensor/eval.h"
#include "passes/lowering.h"
#include "tests/passes/context.h"
#include "tests/passes/interpret.h"

static void product(weft_text_t* text, const char* name, const char* from, int rows, int weight) {
  check(weft_text_printf(
      text,
      "  %%w%s = arith.constant dense<%d.5> : tensor<5x5xf32>\n"
      "  %%e%s = tensor.empty() : tensor<%dx5xf32>\n"
      "  %%f%s = linalg.fill ins(%%zero : f32) outs(%%e%s : tensor<%dx5xf32>) -> tensor<%dx5xf32>\n"
      "  %%%s = linalg.matmul ins(%%%s, %%w%s : tensor<%dx5xf32>, tensor<5x5xf32>) outs(%%f%s : tensor<%dx5xf32>) -> "
      "tensor<%dx5xf32>\n",
      name, weight, name, rows, name, name, rows, rows, name, from, name, rows, name, rows, rows));
}

// `count` products of one product, put one below the other and multiplied twice: by two kernels that read the same
// pieces.
static void make_module(weft_text_t* text, int count) {
  char name[16];
  check(weft_text_printf(text,
                         "func.func @main(%%x: tensor<3x5xf32>) -> (tensor<%dx5xf32>, tensor<%dx5xf32>) {\n"
                         "  %%zero = arith.constant 0.0 : f32\n",
                         3 * count, 3 * count));
  product(text, "first", "x", 3, 1);
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "p%d", i);
    product(text, name, "first", 3, i);
  }
  check(weft_text_printf(text, "  %%all = tensor.concat dim(0) "));
  for (int i = 0; i < count; ++i) check(weft_text_printf(text, "%s%%p%d", i ? ", " : "", i));
  check(weft_text_printf(text, " : ("));
  for (int i = 0; i < count; ++i) check(weft_text_printf(text, "%stensor<3x5xf32>", i ? ", " : ""));
  check(weft_text_printf(text, ") -> tensor<%dx5xf32>\n", 3 * count));
  product(text, "y", "all", 3 * count, 2);
  product(text, "z", "all", 3 * count, 3);
  check(weft_text_printf(text, "  return %%y, %%z : tensor<%dx5xf32>, tensor<%dx5xf32>\n}\n", 3 * count, 3 * count));
}

// Pieces of a kernel, and readers of each result, counted from the fabric alone.
static void check_limits(const weft_fabric_t* fabric) {
  int32_t readers[512] = {0};
  assert_true(fabric->tensor_count <= 512);
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    int32_t pieces = 0;
    for (int32_t b = 0; b < fabric->kernel[k].buffer_count; ++b) {
      const weft_buffer_t* buffer = &fabric->kernel[k].buffer[b];
      for (int32_t p = 0; buffer->kind == WEFT_BUFFER_OPERAND && p < buffer->piece_count; ++p) {
        pieces += fabric->tensor[buffer->piece[p].tensor].kind != WEFT_TENSOR_CONSTANT;
        ++readers[buffer->piece[p].tensor];
      }
    }
    assert_true(pieces <= WEFT_MOST_INFLOW);
  }
  for (int32_t t = 0; t < fabric->tensor_count; ++t)
    if (fabric->tensor[t].kind == WEFT_TENSOR_RESULT) assert_true(readers[t] <= WEFT_MOST_OUTFLOW);
}

static int32_t run(int count) {
  weft_text_t text;
  weft_eval_t* eval;
  weft_fabric_t fabric;
  weft_text_initialize(weft_allocator_system(), &text);
  make_module(&text, count);
  MlirModule module =
      mlirModuleCreateParse(weft_tensor_context_mlir(context), mlirStringRefCreateFromCString(text.data));
  if (mlirModuleIsNull(module)) print_error("%s\n", weft_tensor_take_diagnostics(context));
  assert_false(mlirModuleIsNull(module));
  check(weft_eval_create(context, module, weft_allocator_system(), &eval));
  check(weft_tensor_run_pipeline(context, module, weft_passes_default_pipeline(), NULL));
  weft_fabric_initialize(weft_allocator_system(), &fabric);
  check(weft_passes_lower_to_fabric(context, module, NULL, &fabric));
  check_limits(&fabric);

  enum { MOST = 3 * 64 * 5 };
  static float x[15], want[2][MOST], got[2][MOST];
  weft_rng_t rng;
  weft_rng_seed(&rng, (uint64_t)count);
  for (int i = 0; i < 15; ++i) x[i] = (float)weft_rng_unit(&rng);
  weft_host_tensor_t input = {.name = "", .rank = 2, .extent = {3, 5}, .data = x, .size = sizeof x}, output[2];
  for (int o = 0; o < 2; ++o)
    output[o] = (weft_host_tensor_t){
        .name = "", .rank = 2, .extent = {3 * count, 5}, .data = want[o], .size = (size_t)(count * 15) * sizeof(float)};
  check(weft_eval_run(eval, &input, 1, output, 2));
  interpret(&fabric, (void*[]){x}, (void*[]){got[0], got[1]});
  for (int o = 0; o < 2; ++o)
    for (int i = 0; i < count * 15; ++i) assert_true(fabs(want[o][i] - got[o][i]) <= 1e-5 * (1 + fabs(want[o][i])));
  int32_t kernels = fabric.kernel_count;
  weft_eval_destroy(eval);
  weft_fabric_deinitialize(&fabric);
  mlirModuleDestroy(module);
  weft_text_deinitialize(&text);
  return kernels;
}

static void few_need_no_copies(void** state) {
  (void)state;
  for (int count = 1; count <= WEFT_MOST_OUTFLOW; ++count) assert_int_equal(run(count), count + 3);
}

static void many_are_gathered_and_handed_on(void** state) {
  (void)state;
  static const int counts[] = {WEFT_MOST_OUTFLOW + 1, WEFT_MOST_INFLOW, WEFT_MOST_INFLOW + 1, 20, 33, 64};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) assert_true(run(counts[i]) > counts[i] + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_need_no_copies),
                                     cmocka_unit_test(many_are_gathered_and_handed_on)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
