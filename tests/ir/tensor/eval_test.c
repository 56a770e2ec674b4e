#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ir/tensor/eval.h"

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

static void check(weft_status_t status) {
  if (status) print_error("%s\n", weft_status_message(status));
  assert_true(weft_is_ok(status));
}

static weft_eval_t* compile(const char* text) {
  MlirModule module = mlirModuleCreateParse(weft_tensor_context_mlir(context), mlirStringRefCreateFromCString(text));
  if (mlirModuleIsNull(module)) print_error("%s\n", weft_tensor_take_diagnostics(context));
  assert_false(mlirModuleIsNull(module));
  weft_eval_t* eval;
  check(weft_eval_create(context, module, weft_allocator_system(), &eval));
  mlirModuleDestroy(module);
  return eval;
}

static weft_host_tensor_t tensor_f32(float* data, int32_t rank, const int64_t* extent) {
  weft_host_tensor_t tensor = {.name = "t", .dtype = WEFT_DTYPE_F32, .rank = rank, .data = data, .size = 4};
  for (int32_t d = 0; d < rank; ++d) {
    tensor.extent[d] = extent[d];
    tensor.size *= (size_t)extent[d];
  }
  return tensor;
}

static void fill(float* data, size_t count, uint64_t seed) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  for (size_t i = 0; i < count; ++i) data[i] = (float)(2 * weft_rng_unit(&rng) - 1);
}

// Convolution with padding, stride 2 and dilation, against loops written out here. The weights are an input.
static void convolution(void** state) {
  (void)state;
  weft_eval_t* eval =
      compile("func.func @main(%x: tensor<1x3x7x9xf32>, %w: tensor<5x3x3x2xf32>) -> tensor<1x5x4x5xf32> {\n"
              "  %z = arith.constant 0.0 : f32\n"
              "  %p = tensor.pad %x low[0,0,1,1] high[0,0,1,1] { ^bb0(%a: index,%b: index,%c: index,%d: index): "
              "tensor.yield %z "
              ": f32 } : tensor<1x3x7x9xf32> to tensor<1x3x9x11xf32>\n"
              "  %e = tensor.empty() : tensor<1x5x4x5xf32>\n"
              "  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x5x4x5xf32>) -> tensor<1x5x4x5xf32>\n"
              "  %r = linalg.generic {indexing_maps = [affine_map<(n,f,y,x,c,i,j)->(n,c,y*2+i,x*2+j*2)>,\n"
              "    affine_map<(n,f,y,x,c,i,j)->(f,c,i,j)>, affine_map<(n,f,y,x,c,i,j)->(n,f,y,x)>],\n"
              "    iterator_types = "
              "[\"parallel\",\"parallel\",\"parallel\",\"parallel\",\"reduction\",\"reduction\",\"reduction\"]}\n"
              "    ins(%p, %w : tensor<1x3x9x11xf32>, tensor<5x3x3x2xf32>) outs(%f : tensor<1x5x4x5xf32>) {\n"
              "    ^bb0(%a: f32, %b: f32, %o: f32):\n"
              "      %m = arith.mulf %a, %b : f32\n      %s = arith.addf %o, %m : f32\n      linalg.yield %s : f32\n"
              "  } -> tensor<1x5x4x5xf32>\n"
              "  return %r : tensor<1x5x4x5xf32>\n}\n");
  float x[3][7][9], w[5][3][3][2], y[5][4][5];
  fill(&x[0][0][0], sizeof(x) / 4, 1);
  fill(&w[0][0][0][0], sizeof(w) / 4, 2);
  weft_host_tensor_t inputs[2] = {tensor_f32(&x[0][0][0], 4, (int64_t[]){1, 3, 7, 9}),
                                  tensor_f32(&w[0][0][0][0], 4, (int64_t[]){5, 3, 3, 2})};
  weft_host_tensor_t output = tensor_f32(&y[0][0][0], 4, (int64_t[]){1, 5, 4, 5});
  check(weft_eval_run(eval, inputs, 2, &output, 1));
  for (int f = 0; f < 5; ++f)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 5; ++j) {
        float sum = 0;
        for (int c = 0; c < 3; ++c)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 2; ++b) {
              int row = 2 * i + a - 1, column = 2 * j + 2 * b - 1;
              float value = row < 0 || row >= 7 || column < 0 || column >= 9 ? 0 : x[c][row][column];
              sum += value * w[f][c][a][b];
            }
        assert_float_equal(y[f][i][j], sum, 1e-6);
      }
  weft_eval_destroy(eval);
}

// Movement, a resource constant, an input handed through; inputs stay as they were.
static void movement(void** state) {
  (void)state;
  weft_eval_t* eval =
      compile("func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> (tensor<4x7xf32>, tensor<3x2xf32>, "
              "tensor<2x3xf32>) {\n"
              "  %c = tensor.concat dim(1) %a, %b : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>\n"
              "  %z = arith.constant 5.0 : f32\n"
              "  %p = tensor.pad %c low[1,0] high[1,0] { ^bb0(%i: index, %j: index): tensor.yield %z : f32 } : "
              "tensor<2x7xf32> to "
              "tensor<4x7xf32>\n"
              "  %k = arith.constant dense_resource<w> : tensor<2x3xf32>\n"
              "  %e = tensor.empty() : tensor<2x3xf32>\n"
              "  %s = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>, "
              "affine_map<(i,j)->(i,j)>], iterator_types = [\"parallel\",\"parallel\"]} ins(%a, %k : tensor<2x3xf32>, "
              "tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {\n"
              "    ^bb0(%x: f32, %y: f32, %o: f32):\n      %q = arith.addf %x, %y : f32\n      %t = math.erf %q : f32\n"
              "      linalg.yield %t : f32 } -> tensor<2x3xf32>\n"
              "  %f = tensor.collapse_shape %s [[0,1]] : tensor<2x3xf32> into tensor<6xf32>\n"
              "  %g = tensor.expand_shape %f [[0,1]] output_shape [3,2] : tensor<6xf32> into tensor<3x2xf32>\n"
              "  return %p, %g, %a : tensor<4x7xf32>, tensor<3x2xf32>, tensor<2x3xf32>\n}\n"
              "{-# dialect_resources: { builtin: { w: \"0x040000000000803f000000400000803f0000803f0000803f0000803f\" } "
              "} #-}\n");
  float a[6], b[8], before[6], p[28], g[6], through[6];
  fill(a, 6, 3);
  fill(b, 8, 4);
  memcpy(before, a, sizeof(a));
  weft_host_tensor_t inputs[2] = {tensor_f32(a, 2, (int64_t[]){2, 3}), tensor_f32(b, 2, (int64_t[]){2, 4})};
  weft_host_tensor_t outputs[3] = {tensor_f32(p, 2, (int64_t[]){4, 7}), tensor_f32(g, 2, (int64_t[]){3, 2}),
                                   tensor_f32(through, 2, (int64_t[]){2, 3})};
  check(weft_eval_run(eval, inputs, 2, outputs, 3));
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 7; ++j) {
      float want = i == 0 || i == 3 ? 5.0f : j < 3 ? a[3 * (i - 1) + j] : b[4 * (i - 1) + j - 3];
      assert_float_equal(p[7 * i + j], want, 0);
    }
  for (int i = 0; i < 6; ++i) assert_float_equal(g[i], erff(a[i] + (i == 1 ? 2 : 1)), 1e-6);
  assert_memory_equal(a, before, sizeof(a));
  assert_memory_equal(through, before, sizeof(a));

  inputs[1].extent[1] = 5; // and a wrong shape is refused
  weft_status_t status = weft_eval_run(eval, inputs, 2, outputs, 3);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_non_null(strstr(weft_status_message(status), "needed 4, given 5"));
  weft_status_free(status);
  weft_eval_destroy(eval);
}

// A constant large enough to become an argument.
static void large_constant(void** state) {
  (void)state;
  enum { N = 640 };
  static int32_t weights[N];
  for (int i = 0; i < N; ++i) weights[i] = 3 * i - 7;
  char text[16000];
  int used = snprintf(text, sizeof(text),
                      "func.func @main(%%a: tensor<640xi32>) -> tensor<640xi32> {\n  %%k = arith.constant dense<[");
  for (int i = 0; i < N; ++i)
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%d", i ? "," : "", weights[i]);
  snprintf(
      text + used, sizeof(text) - (size_t)used,
      "]> : tensor<640xi32>\n  %%e = tensor.empty() : tensor<640xi32>\n"
      "  %%s = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>, affine_map<(i)->(i)>], "
      "iterator_types = [\"parallel\"]} ins(%%a, %%k : tensor<640xi32>, tensor<640xi32>) outs(%%e : tensor<640xi32>) {"
      "\n    ^bb0(%%x: i32, %%y: i32, %%o: i32):\n      %%q = arith.muli %%x, %%y : i32\n      linalg.yield %%q : i32 }"
      " -> tensor<640xi32>\n  return %%s : tensor<640xi32>\n}\n");
  weft_eval_t* eval = compile(text);
  static int32_t x[N], y[N];
  for (int i = 0; i < N; ++i) x[i] = i - 100;
  weft_host_tensor_t input = {.dtype = WEFT_DTYPE_I32, .rank = 1, .extent = {N}, .data = x, .size = sizeof(x)};
  weft_host_tensor_t output = input;
  output.data = y;
  check(weft_eval_run(eval, &input, 1, &output, 1));
  for (int i = 0; i < N; ++i) assert_int_equal(y[i], x[i] * weights[i]);
  weft_eval_destroy(eval);
}

// Types that LLVM has no arithmetic for: rounded as base/dtype.h rounds.
static void narrow_floats(void** state) {
  (void)state;
  static const struct {
    const char* type;
    weft_dtype_e dtype;
  } narrow[] = {{"f8E4M3FN", WEFT_DTYPE_F8E4M3FN}, {"f8E5M2", WEFT_DTYPE_F8E5M2}, {"bf16", WEFT_DTYPE_BF16}};
  enum { N = 33 };
  for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); ++i) {
    char text[1200];
    snprintf(
        text, sizeof(text),
        "#m = affine_map<(i) -> (i)>\n"
        "func.func @main(%%x: tensor<33xf32>) -> tensor<33xf32> {\n  %%e = tensor.empty() : tensor<33xf32>\n"
        "  %%r = linalg.generic {indexing_maps = [#m, #m], iterator_types = [\"parallel\"]} ins(%%x : tensor<33xf32>) "
        "outs(%%e : tensor<33xf32>) {\n  ^bb0(%%a: f32, %%o: f32):\n    %%n = arith.truncf %%a : f32 to %s\n"
        "    %%w = arith.extf %%n : %s to f32\n    linalg.yield %%w : f32\n  } -> tensor<33xf32>\n"
        "  return %%r : tensor<33xf32>\n}\n",
        narrow[i].type, narrow[i].type);
    weft_eval_t* eval = compile(text);
    float x[N], y[N];
    fill(x, N, 5 + i);
    weft_host_tensor_t input = tensor_f32(x, 1, (int64_t[]){N}), output = tensor_f32(y, 1, (int64_t[]){N});
    check(weft_eval_run(eval, &input, 1, &output, 1));
    for (int j = 0; j < N; ++j) {
      uint64_t bits = 0;
      weft_dtype_store(narrow[i].dtype, x[j], &bits);
      assert_float_equal(y[j], weft_dtype_load(narrow[i].dtype, &bits), 0);
    }
    weft_eval_destroy(eval);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(convolution), cmocka_unit_test(movement),
                                     cmocka_unit_test(large_constant), cmocka_unit_test(narrow_floats)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
