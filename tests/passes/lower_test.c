// Small modules through the default pipeline and the lowering; the kernels, interpreted, against the host reference.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ir/tensor/eval.h"
#include "passes/passes.h"
#include "tests/passes/context.h"
#include "tests/passes/interpret.h"
#include "tests/passes/modules.h"

enum { MAX_PORTS = 6 };
typedef struct lowered_t {
  MlirModule module;
  weft_eval_t* eval;
  weft_fabric_t fabric;
} lowered_t;

static lowered_t lower(const char* text) {
  lowered_t out;
  out.module = mlirModuleCreateParse(weft_tensor_context_mlir(context), mlirStringRefCreateFromCString(text));
  if (mlirModuleIsNull(out.module)) print_error("%s\n", weft_tensor_take_diagnostics(context));
  assert_false(mlirModuleIsNull(out.module));
  check(weft_eval_create(context, out.module, weft_allocator_system(),
                         &out.eval)); // before the passes: independent of them
  check(weft_tensor_run_pipeline(context, out.module, weft_passes_default_pipeline(), NULL));
  weft_fabric_initialize(weft_allocator_system(), &out.fabric);
  check(weft_passes_lower_to_fabric(context, out.module, NULL, &out.fabric));
  if (getenv("WEFT_TEST_PRINT")) { // to look at a case
    weft_text_t printed;
    weft_text_initialize(weft_allocator_system(), &printed);
    check(weft_tensor_print(out.module, &printed));
    check(weft_fabric_print(&out.fabric, &printed));
    fputs(printed.data, stdout);
    weft_text_deinitialize(&printed);
  }
  return out;
}

static void drop(lowered_t* lowered) {
  weft_eval_destroy(lowered->eval);
  weft_fabric_deinitialize(&lowered->fabric);
  mlirModuleDestroy(lowered->module);
}

static weft_host_tensor_t host(weft_dtype_e dtype, const weft_shape_t* shape) {
  weft_host_tensor_t tensor = {.name = "", .dtype = dtype, .rank = shape->rank};
  memcpy(tensor.extent, shape->extent, sizeof(tensor.extent));
  tensor.size = (size_t)weft_shape_elements(shape) * weft_dtype_size(dtype);
  tensor.data = calloc(1, tensor.size);
  return tensor;
}

static void run_case(const module_case_t* module, uint64_t seed) {
  lowered_t lowered = lower(module->text);
  const weft_fabric_t* fabric = &lowered.fabric;
  assert_true(fabric->input_count <= MAX_PORTS && fabric->output_count <= MAX_PORTS);
  if (module->kernels >= 0) assert_int_equal(fabric->kernel_count, module->kernels);
  weft_host_tensor_t input[MAX_PORTS], want[MAX_PORTS], got[MAX_PORTS];
  void *input_data[MAX_PORTS], *got_data[MAX_PORTS];
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  for (int32_t i = 0; i < fabric->input_count; ++i) {
    const weft_tensor_t* tensor = &fabric->tensor[fabric->input[i]];
    input[i] = host(tensor->dtype, &tensor->shape);
    bool is_float = weft_dtype_is_float(tensor->dtype);
    size_t width = weft_dtype_size(tensor->dtype);
    for (size_t at = 0; at < input[i].size; at += width)
      weft_dtype_store(tensor->dtype, is_float ? 2 * weft_rng_unit(&rng) - 1 : (double)weft_rng_below(&rng, 200) - 100,
                       (uint8_t*)input[i].data + at);
    input_data[i] = input[i].data;
  }
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    want[o] = host(fabric->output[o].dtype, &fabric->output[o].shape);
    got[o] = host(fabric->output[o].dtype, &fabric->output[o].shape);
    got_data[o] = got[o].data;
  }
  check(weft_eval_run(lowered.eval, input, fabric->input_count, want, fabric->output_count));
  interpret(fabric, input_data, got_data);
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    size_t width = weft_dtype_size(want[o].dtype);
    for (size_t at = 0; at < want[o].size; at += width) {
      double a = weft_dtype_load(want[o].dtype, (uint8_t*)want[o].data + at);
      double b = weft_dtype_load(got[o].dtype, (uint8_t*)got[o].data + at);
      if (!(fabs(a - b) <= 2e-5 * (1 + fabs(a))) && !(isnan(a) && isnan(b)) && a != b)
        fail_msg("%s: output %d, element %zu: host %g, kernels %g", module->name, o, at / width, a, b);
    }
    free(want[o].data);
    free(got[o].data);
  }
  for (int32_t i = 0; i < fabric->input_count; ++i) free(input[i].data);
  drop(&lowered);
}

static void every_module(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(module_cases) / sizeof(module_cases[0]); ++i) {
    print_message("  %s\n", module_cases[i].name);
    for (uint64_t seed = 1; seed <= 2; ++seed) run_case(&module_cases[i], seed);
  }
}

static const module_case_t* find_case(const char* name) {
  for (size_t i = 0; i < sizeof(module_cases) / sizeof(module_cases[0]); ++i)
    if (strcmp(module_cases[i].name, name) == 0) return &module_cases[i];
  fail_msg("no case %s", name);
  return NULL;
}

static int32_t count_kind(const weft_kernel_t* kernel, weft_dim_kind_e kind) {
  int32_t count = 0;
  for (int32_t d = 0; d < kernel->dim_count; ++d) count += kernel->dim[d].kind == kind;
  return count;
}

static void kinds_of_dimensions(void** state) {
  (void)state;
  lowered_t conv = lower(find_case("convolution with bias, relu and a skip")->text);
  const weft_kernel_t* kernel = &conv.fabric.kernel[0];
  assert_int_equal(count_kind(kernel, WEFT_DIM_PARALLEL), 3);  // f, y, x; the batch of one is no dimension
  assert_int_equal(count_kind(kernel, WEFT_DIM_REDUCTION), 3); // c, i, j
  assert_int_equal(kernel->combiner, WEFT_OP_ADD);
  assert_int_equal(kernel->operation[kernel->reduce_operation].op, WEFT_OP_MLA);
  assert_string_equal(kernel->name, "Conv:c1");
  assert_string_equal(kernel->nodes, "Conv:c1 Relu:r1 Add:skip");
  int32_t temporaries = 0; // everything happens in the result
  for (int32_t b = 0; b < kernel->buffer_count; ++b) temporaries += kernel->buffer[b].kind == WEFT_BUFFER_TEMPORARY;
  assert_int_equal(temporaries, 0);
  drop(&conv);

  lowered_t softmax = lower(find_case("softmax")->text);
  kernel = &softmax.fabric.kernel[0];
  assert_int_equal(count_kind(kernel, WEFT_DIM_PARALLEL), 1);
  assert_int_equal(count_kind(kernel, WEFT_DIM_INTERNAL), 1);
  assert_int_equal(kernel->reduce_operation, -1);
  drop(&softmax);

  lowered_t loop = lower(find_case("a recurrence, the last row first")->text);
  kernel = &loop.fabric.kernel[0];
  assert_int_equal(kernel->dim[0].kind, WEFT_DIM_SEQUENTIAL);
  assert_int_equal(kernel->dim[0].extent, 4);
  assert_int_equal(count_kind(kernel, WEFT_DIM_SEQUENTIAL), 1);
  assert_int_equal(count_kind(kernel, WEFT_DIM_PARALLEL), 2);
  assert_int_equal(count_kind(kernel, WEFT_DIM_INTERNAL), 1); // both sums run over the same
  assert_string_equal(kernel->name, "Rec:n");
  drop(&loop);

  lowered_t mean = lower(find_case("mean of squares")->text);
  kernel = &mean.fabric.kernel[0];
  assert_int_equal(count_kind(kernel, WEFT_DIM_REDUCTION), 1);
  assert_true(kernel->reduce_operation >= 0);
  drop(&mean);
}

static void errors_name_the_node(void** state) {
  (void)state;
  MlirModule module = mlirModuleCreateParse(
      weft_tensor_context_mlir(context),
      mlirStringRefCreateFromCString(
          "#m = affine_map<(i) -> (i)>\n"
          "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %e = tensor.empty() : tensor<4xf32>\n"
          "  %r = linalg.generic {indexing_maps = [#m, #m], iterator_types = [\"parallel\"]} ins(%x : tensor<4xf32>) "
          "outs(%e : tensor<4xf32>) {\n  ^bb0(%a: f32, %o: f32):\n    %c = math.cbrt %a : f32 loc(\"Cbrt:the_root\")\n"
          "    linalg.yield %c : f32\n  } -> tensor<4xf32> loc(\"Cbrt:the_root\")\n  return %r : tensor<4xf32>\n}\n"));
  assert_false(mlirModuleIsNull(module));
  weft_fabric_t fabric;
  weft_fabric_initialize(weft_allocator_system(), &fabric);
  weft_status_t status = weft_passes_lower_to_fabric(context, module, NULL, &fabric);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNSUPPORTED);
  assert_non_null(strstr(weft_status_message(status), "weft-form-kernels"));
  weft_status_free(status);
  check(weft_tensor_run_pipeline(context, module, weft_passes_default_pipeline(), NULL));
  status = weft_passes_lower_to_fabric(context, module, NULL, &fabric);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNSUPPORTED);
  assert_non_null(strstr(weft_status_message(status), "Cbrt:the_root"));
  assert_non_null(strstr(weft_status_message(status), "math.cbrt"));
  weft_status_free(status);
  weft_fabric_deinitialize(&fabric);
  mlirModuleDestroy(module);
}

// A loop that no kernel can work through: a trip reads a row that isn't its own.
static void loops_that_do_not_fit(void** state) {
  (void)state;
  MlirModule module = mlirModuleCreateParse(
      weft_tensor_context_mlir(context),
      mlirStringRefCreateFromCString(
          "#m = affine_map<(i) -> (i)>\n"
          "func.func @main(%x: tensor<4x5xf32>, %h0: tensor<5xf32>) -> tensor<5xf32> {\n"
          "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c4 = arith.constant 4 : index\n"
          "  %e = tensor.empty() : tensor<5xf32>\n"
          "  %r = scf.for %t = %c0 to %c4 step %c1 iter_args(%h = %h0) -> (tensor<5xf32>) {\n"
          "    %i = arith.remui %t, %c4 : index\n"
          "    %row = tensor.extract_slice %x[%i, 0] [1, 5] [1, 1] : tensor<4x5xf32> to tensor<5xf32> loc(\"Rec:n\")\n"
          "    %s = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = [\"parallel\"]} ins(%h, %row : "
          "tensor<5xf32>, tensor<5xf32>) outs(%e : tensor<5xf32>) {\n    ^bb0(%a: f32, %b: f32, %o: f32):\n"
          "      %1 = arith.addf %a, %b : f32\n      linalg.yield %1 : f32\n    } -> tensor<5xf32>\n"
          "    scf.yield %s : tensor<5xf32>\n  }\n  return %r : tensor<5xf32>\n}\n"));
  assert_false(mlirModuleIsNull(module));
  weft_fabric_t fabric;
  weft_fabric_initialize(weft_allocator_system(), &fabric);
  check(weft_tensor_run_pipeline(context, module, weft_passes_default_pipeline(), NULL));
  weft_status_t status = weft_passes_lower_to_fabric(context, module, NULL, &fabric);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNSUPPORTED);
  assert_non_null(strstr(weft_status_message(status), "Rec:n"));
  assert_non_null(strstr(weft_status_message(status), "row of the trip"));
  weft_status_free(status);
  weft_fabric_deinitialize(&fabric);
  mlirModuleDestroy(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_module), cmocka_unit_test(kinds_of_dimensions),
                                     cmocka_unit_test(errors_name_the_node), cmocka_unit_test(loops_that_do_not_fit)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
