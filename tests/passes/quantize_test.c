// Quantised networks before and after they become integers. All scales are powers of two, so real numbers are exact and
// both have to agree in every bit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "base/rng.h"
#include "ir/tensor/eval.h"
#include "passes/passes.h"
#include "tests/passes/context.h"
#include "tests/passes/interpret.h"

// --- Text of modules

typedef struct writer_t {
  weft_text_t text;
  weft_rng_t rng;
  int32_t next;
} writer_t;
#define EMIT(...) check(weft_text_printf(&w->text, __VA_ARGS__))

typedef struct type_t {
  const char* shape; // "1x3x8x8x"
  int32_t rank;
} type_t;

static const char* dims(int32_t rank) {
  static const char* const list[] = {"", "d0", "d0,d1", "d0,d1,d2", "d0,d1,d2,d3"};
  return list[rank];
}
static void maps(writer_t* w, int32_t rank, int32_t same, const char* other) {
  EMIT("{indexing_maps = [");
  for (int32_t i = 0; i < same - 1; ++i) EMIT("affine_map<(%s)->(%s)>, ", dims(rank), dims(rank));
  if (other) EMIT("affine_map<(%s)->(%s)>, ", dims(rank), other);
  EMIT("affine_map<(%s)->(%s)>], iterator_types = [", dims(rank), dims(rank));
  for (int32_t d = 0; d < rank; ++d) EMIT("%s\"parallel\"", d ? ", " : "");
  EMIT("]}");
}

// A pointwise op over one tensor; %a is its element, %r has to be what it yields.
static int32_t pointwise(writer_t* w, type_t type, int32_t x, const char* from, const char* to, const char* body) {
  int32_t at = w->next++;
  EMIT("%%e%d = tensor.empty() : tensor<%s%s>\n%%v%d = linalg.generic ", at, type.shape, to, at);
  maps(w, type.rank, 2, NULL);
  EMIT(" ins(%%v%d : tensor<%s%s>) outs(%%e%d : tensor<%s%s>) {\n^bb0(%%a: %s, %%o: %s):\n%s linalg.yield %%r : %s\n"
       "} -> tensor<%s%s>\n",
       x, type.shape, from, at, type.shape, to, from, to, body, to, type.shape, to);
  return at;
}
static int32_t quantize(writer_t* w, type_t type, int32_t x, bool is_unsigned, double scale, int32_t zero) {
  char body[1024];
  snprintf(body, sizeof(body),
           "%%s = arith.constant %e : f32 %%z = arith.constant %e : f32 %%l = arith.constant %e : f32 %%h = "
           "arith.constant %e : f32\n%%d = arith.divf %%a, %%s : f32 %%n = math.roundeven %%d : f32 %%p = arith.addf "
           "%%n, %%z : f32 %%q = arith.maximumf %%p, %%l : f32 %%m = arith.minimumf %%q, %%h : f32 %%r = arith.fpto%ci "
           "%%m : f32 to i8\n",
           scale, (double)zero, is_unsigned ? 0.0 : -128.0, is_unsigned ? 255.0 : 127.0, is_unsigned ? 'u' : 's');
  return pointwise(w, type, x, "f32", "i8", body);
}
static int32_t dequantize(writer_t* w, type_t type, int32_t x, bool is_unsigned, double scale, int32_t zero) {
  char body[512];
  snprintf(body, sizeof(body),
           "%%s = arith.constant %e : f32 %%z = arith.constant %e : f32 %%n = arith.%citofp %%a : i8 to f32 %%d = "
           "arith.subf %%n, %%z : f32 %%r = arith.mulf %%d, %%s : f32\n",
           scale, (double)zero, is_unsigned ? 'u' : 's');
  return pointwise(w, type, x, "i8", "f32", body);
}
static int32_t relu(writer_t* w, type_t type, int32_t x) {
  return pointwise(w, type, x, "f32", "f32", "%z = arith.constant 0.0 : f32 %r = arith.maximumf %a, %z : f32\n");
}

static int32_t random_bytes(writer_t* w, type_t type, int32_t count, int32_t lo, int32_t hi) {
  EMIT("%%v%d = arith.constant dense<\"0x", w->next);
  for (int32_t i = 0; i < count; ++i)
    EMIT("%02X", (uint8_t)(lo + (int32_t)weft_rng_below(&w->rng, (uint32_t)(hi - lo + 1))));
  EMIT("\"> : tensor<%si8>\n", type.shape);
  return w->next++;
}
// With a scale for each position of the first dimension.
static int32_t dequantize_channels(writer_t* w, type_t type, int32_t x, int32_t channels) {
  int32_t at = w->next++;
  EMIT("%%c%d = arith.constant dense<[", at);
  for (int32_t i = 0; i < channels; ++i) EMIT("%s%e", i ? ", " : "", ldexp(1, -4 - i % 3));
  EMIT("]> : tensor<%dxf32>\n%%e%d = tensor.empty() : tensor<%sf32>\n%%v%d = linalg.generic ", channels, at, type.shape,
       at);
  maps(w, type.rank, 2, "d0");
  EMIT(" ins(%%v%d, %%c%d : tensor<%si8>, tensor<%dxf32>) outs(%%e%d : tensor<%sf32>) {\n^bb0(%%a: i8, %%s: f32, %%o: "
       "f32):\n%%n = arith.sitofp %%a : i8 to f32 %%r = arith.mulf %%n, %%s : f32 linalg.yield %%r : f32\n} -> "
       "tensor<%sf32>\n",
       x, at, type.shape, channels, at, type.shape, type.shape);
  return at;
}
static int32_t add(writer_t* w, type_t type, int32_t x, int32_t y) {
  int32_t at = w->next++;
  EMIT("%%e%d = tensor.empty() : tensor<%sf32>\n%%v%d = linalg.generic ", at, type.shape, at);
  maps(w, type.rank, 3, NULL);
  EMIT(" ins(%%v%d, %%v%d : tensor<%sf32>, tensor<%sf32>) outs(%%e%d : tensor<%sf32>) {\n^bb0(%%a: f32, %%b: f32, %%o: "
       "f32):\n%%r = arith.addf %%a, %%b : f32 linalg.yield %%r : f32\n} -> tensor<%sf32>\n",
       x, y, type.shape, type.shape, at, type.shape, type.shape);
  return at;
}
static int32_t add_channels(writer_t* w, type_t type, int32_t x, int32_t channels) {
  int32_t at = w->next++;
  EMIT("%%c%d = arith.constant dense<[", at);
  for (int32_t i = 0; i < channels; ++i)
    EMIT("%s%e", i ? ", " : "", ldexp((double)weft_rng_below(&w->rng, 4000) - 2000, -11));
  EMIT("]> : tensor<%dxf32>\n%%e%d = tensor.empty() : tensor<%sf32>\n%%v%d = linalg.generic ", channels, at, type.shape,
       at);
  maps(w, type.rank, 2, "d1");
  EMIT(
      " ins(%%v%d, %%c%d : tensor<%sf32>, tensor<%dxf32>) outs(%%e%d : tensor<%sf32>) {\n^bb0(%%a: f32, %%b: f32, %%o: "
      "f32):\n%%r = arith.addf %%a, %%b : f32 linalg.yield %%r : f32\n} -> tensor<%sf32>\n",
      x, at, type.shape, channels, at, type.shape, type.shape);
  return at;
}
static int32_t pad(writer_t* w, type_t from, type_t to, int32_t x, const char* value) {
  int32_t at = w->next++;
  EMIT("%%p%d = arith.constant %s : f32\n%%v%d = tensor.pad %%v%d low[0,0,1,1] high[0,0,1,1] {\n^bb0(%%a: index, %%b: "
       "index, %%c: index, %%d: index):\ntensor.yield %%p%d : f32\n} : tensor<%sf32> to tensor<%sf32>\n",
       at, value, at, x, at, from.shape, to.shape);
  return at;
}
// body: of %a, (%b,) %o to %r.
static int32_t reduce(writer_t* w, const char* attributes, const char* inputs, const char* arguments, type_t to,
                      const char* initial, const char* body) {
  int32_t at = w->next++;
  EMIT("%%i%d = arith.constant %s : f32\n%%e%d = tensor.empty() : tensor<%sf32>\n%%f%d = linalg.fill ins(%%i%d : f32) "
       "outs(%%e%d : tensor<%sf32>) -> tensor<%sf32>\n%%v%d = linalg.generic {%s} ins(%s) outs(%%f%d : tensor<%sf32>) "
       "{\n^bb0(%s, %%o: f32):\n%s linalg.yield %%r : f32\n} -> tensor<%sf32>\n",
       at, initial, at, to.shape, at, at, at, to.shape, to.shape, at, attributes, inputs, at, to.shape, arguments, body,
       to.shape);
  return at;
}

static const char multiply_add[] = "%m = arith.mulf %a, %b : f32 %r = arith.addf %o, %m : f32\n";
static const char convolution[] =
    "indexing_maps = [affine_map<(n,f,y,x,c,i,j)->(n,c,y+i,x+j)>, affine_map<(n,f,y,x,c,i,j)->(f,c,i,j)>, "
    "affine_map<(n,f,y,x,c,i,j)->(n,f,y,x)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", "
    "\"parallel\", \"reduction\", \"reduction\", \"reduction\"]";
static const char matrices[] =
    "indexing_maps = [affine_map<(m,n,k)->(m,k)>, affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>], "
    "iterator_types = [\"parallel\", \"parallel\", \"reduction\"]";
static const char window[] =
    "indexing_maps = [affine_map<(n,c,y,x,i,j)->(n,c,y*2+i,x*2+j)>, affine_map<(n,c,y,x,i,j)->(i,j)>, "
    "affine_map<(n,c,y,x,i,j)->(n,c,y,x)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\", "
    "\"reduction\", \"reduction\"]";

// --- Networks

// Convolution of padded unsigned bytes that have a zero point, weights with a scale for each filter, bias and relu.
// has_far_zero: weights that do not fit a byte without their zero point, in place of a scale for each filter.
static void conv(writer_t* w, bool is_unsigned, int32_t zero, bool has_far_zero) {
  type_t x = {"1x3x6x5x", 4}, padded = {"1x3x8x7x", 4}, k = {"4x3x3x3x", 4}, y = {"1x4x6x5x", 4};
  char inputs[128];
  EMIT("func.func @main(%%v0: tensor<1x3x6x5xf32>) -> tensor<1x4x6x5xf32> {\n");
  w->next = 1;
  int32_t q = quantize(w, x, 0, is_unsigned, 0.03125, zero), real = dequantize(w, x, q, is_unsigned, 0.03125, zero);
  int32_t p = pad(w, x, padded, real, "0.0");
  int32_t bytes = random_bytes(w, k, 4 * 27, has_far_zero ? 0 : -128, has_far_zero ? 255 : 127);
  int32_t weights = has_far_zero ? dequantize(w, k, bytes, true, 0.125, 90) : dequantize_channels(w, k, bytes, 4);
  snprintf(inputs, sizeof(inputs), "%%v%d, %%v%d : tensor<1x3x8x7xf32>, tensor<4x3x3x3xf32>", p, weights);
  int32_t r = reduce(w, convolution, inputs, "%a: f32, %b: f32", y, "0.0", multiply_add);
  r = relu(w, y, add_channels(w, y, r, 4));
  r = quantize(w, y, r, is_unsigned, 0.25, is_unsigned ? 0 : -128);
  r = dequantize(w, y, r, is_unsigned, 0.25, is_unsigned ? 0 : -128);
  EMIT("return %%v%d : tensor<1x4x6x5xf32>\n}\n", r);
}
static void conv_unsigned(writer_t* w) {
  conv(w, true, 117, false);
}
static void conv_signed(writer_t* w) {
  conv(w, false, -9, false);
}
static void conv_far(writer_t* w) {
  conv(w, true, 117, true);
}

// Largest and mean values of windows between the two forms: the first is exact, the second has ties. The pads of the
// maximum are lower than everything.
static void pools(writer_t* w) {
  type_t x = {"1x2x4x6x", 4}, padded = {"1x2x6x8x", 4}, y = {"1x2x2x3x", 4}, z = {"1x2x1x1x", 4};
  char inputs[128];
  EMIT("func.func @main(%%v0: tensor<1x2x4x6xi8>) -> (tensor<1x2x2x3xi8>, tensor<1x2x1x1xi8>) {\n"
       "%%w = tensor.empty() : tensor<3x3xf32>\n%%u = tensor.empty() : tensor<2x2xf32>\n");
  w->next = 1;
  int32_t real = dequantize(w, x, 0, true, 0.0625, 100);
  int32_t p = pad(w, x, padded, relu(w, x, real), "0xFF800000");
  snprintf(inputs, sizeof(inputs), "%%v%d, %%w : tensor<1x2x6x8xf32>, tensor<3x3xf32>", p);
  int32_t r = reduce(w, window, inputs, "%a: f32, %b: f32", y, "0xFF800000", "%r = arith.maximumf %o, %a : f32\n");
  int32_t largest = quantize(w, y, r, true, 0.0625, 100);
  r = dequantize(w, y, largest, true, 0.0625, 100);
  snprintf(inputs, sizeof(inputs), "%%v%d, %%u : tensor<1x2x2x3xf32>, tensor<2x2xf32>", r);
  r = reduce(w, window, inputs, "%a: f32, %b: f32", z, "0.0", "%r = arith.addf %o, %a : f32\n");
  r = pointwise(w, z, r, "f32", "f32", "%s = arith.constant 0.25 : f32 %r = arith.mulf %a, %s : f32\n");
  r = quantize(w, z, r, true, 0.0625, 100);
  EMIT("return %%v%d, %%v%d : tensor<1x2x2x3xi8>, tensor<1x2x1x1xi8>\n}\n", largest, r);
}

// A product with weights that have a zero point, behind a transpose; then a sum that has to stay real.
static void product(writer_t* w, int32_t lo, int32_t hi) {
  type_t x = {"7x5x", 2}, turned = {"5x7x", 2}, k = {"7x6x", 2}, y = {"5x6x", 2};
  char inputs[128];
  EMIT("func.func @main(%%v0: tensor<7x5xi8>, %%v1: tensor<5x6xi8>) -> (tensor<5x6xi8>, tensor<5x6xf32>) {\n");
  w->next = 2;
  int32_t real = dequantize(w, x, 0, false, 0.125, 4), other = dequantize(w, y, 1, true, 0.25, 128);
  int32_t at = w->next++;
  EMIT("%%e%d = tensor.empty() : tensor<%sf32>\n%%v%d = linalg.generic {indexing_maps = [affine_map<(d0,d1)->(d1,d0)>, "
       "affine_map<(d0,d1)->(d0,d1)>], iterator_types = [\"parallel\", \"parallel\"]} ins(%%v%d : tensor<7x5xf32>) "
       "outs(%%e%d : tensor<5x7xf32>) {\n^bb0(%%a: f32, %%o: f32):\nlinalg.yield %%a : f32\n} -> tensor<5x7xf32>\n",
       at, turned.shape, at, real, at);
  int32_t weights = dequantize(w, k, random_bytes(w, k, 42, lo, hi), true, 0.0625, 140);
  snprintf(inputs, sizeof(inputs), "%%v%d, %%v%d : tensor<5x7xf32>, tensor<7x6xf32>", at, weights);
  int32_t r = reduce(w, matrices, inputs, "%a: f32, %b: f32", y, "0.0", multiply_add);
  int32_t q = quantize(w, y, r, false, 4, 11);
  int32_t sum = add(w, y, dequantize(w, y, q, false, 4, 11), other);
  EMIT("return %%v%d, %%v%d : tensor<5x6xi8>, tensor<5x6xf32>\n}\n", q, sum);
}
static void product_near(writer_t* w) {
  product(w, 20, 255);
}
// Weights less their zero point don't fit a byte: it is multiplied with the sums of rows.
static void product_far(writer_t* w) {
  product(w, 0, 255);
}

// Of two tensors that are both no constants, with zero points.
static void product_of_inputs(writer_t* w) {
  type_t x = {"5x7x", 2}, k = {"7x6x", 2}, y = {"5x6x", 2};
  char inputs[128];
  EMIT("func.func @main(%%v0: tensor<5x7xi8>, %%v1: tensor<7x6xi8>) -> tensor<5x6xi8> {\n");
  w->next = 2;
  int32_t a = dequantize(w, x, 0, false, 0.125, -7), b = dequantize(w, k, 1, true, 0.25, 101);
  snprintf(inputs, sizeof(inputs), "%%v%d, %%v%d : tensor<5x7xf32>, tensor<7x6xf32>", a, b);
  int32_t r = reduce(w, matrices, inputs, "%a: f32, %b: f32", y, "0.0", multiply_add);
  EMIT("return %%v%d : tensor<5x6xi8>\n}\n", quantize(w, y, r, false, 16, -20));
}

typedef struct network_t {
  const char* name;
  void (*write)(writer_t* w);
  int32_t products, reals; // reductions of bytes; of real numbers
  weft_dtype_e input[2];
} network_t;
static const network_t networks[] = {
    {"convolution of unsigned bytes", conv_unsigned, 1, 0, {WEFT_DTYPE_F32}},
    {"convolution of signed bytes", conv_signed, 1, 0, {WEFT_DTYPE_F32}},
    {"convolution with a far zero point", conv_far, 2, 0, {WEFT_DTYPE_F32}},
    {"pooling", pools, 2, 0, {WEFT_DTYPE_U8}},
    {"product", product_near, 1, 0, {WEFT_DTYPE_I8, WEFT_DTYPE_U8}},
    {"product with a far zero point", product_far, 2, 0, {WEFT_DTYPE_I8, WEFT_DTYPE_U8}},
    {"product of inputs", product_of_inputs, 3, 0, {WEFT_DTYPE_I8, WEFT_DTYPE_U8}}};

// --- Runs

enum { MAX_PORTS = 4 };
typedef struct counts_t {
  int32_t bytes, reals;
} counts_t;
static MlirWalkResult count(MlirOperation op, void* data) {
  counts_t* counts = data;
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (!mlirStringRefEqual(name, mlirStringRefCreateFromCString("linalg.generic"))) return MlirWalkResultAdvance;
  MlirAttribute iterators = mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("iterator_types"));
  MlirAttribute reduction = mlirAttributeParseGet(mlirOperationGetContext(op),
                                                  mlirStringRefCreateFromCString("#linalg.iterator_type<reduction>"));
  bool reduces = false;
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(iterators); ++i)
    reduces |= mlirAttributeEqual(mlirArrayAttrGetElement(iterators, i), reduction);
  MlirType type = mlirShapedTypeGetElementType(mlirValueGetType(mlirOperationGetResult(op, 0)));
  if (reduces) *(mlirTypeIsAF32(type) ? &counts->reals : &counts->bytes) += 1;
  return MlirWalkResultAdvance;
}

static weft_host_tensor_t host(weft_dtype_e dtype, const weft_shape_t* shape) {
  weft_host_tensor_t tensor = {.name = "", .dtype = dtype, .rank = shape->rank};
  memcpy(tensor.extent, shape->extent, sizeof(tensor.extent));
  tensor.size = (size_t)weft_shape_elements(shape) * weft_dtype_size(dtype);
  tensor.data = calloc(1, tensor.size);
  return tensor;
}

static void run(const network_t* network, uint64_t seed) {
  writer_t w = {0};
  weft_eval_t* eval;
  weft_fabric_t fabric;
  counts_t counts = {0};
  weft_host_tensor_t input[MAX_PORTS], want[MAX_PORTS], got[MAX_PORTS];
  void *input_data[MAX_PORTS], *got_data[MAX_PORTS];
  weft_text_initialize(weft_allocator_system(), &w.text);
  weft_rng_seed(&w.rng, seed);
  network->write(&w);
  MlirModule module =
      mlirModuleCreateParse(weft_tensor_context_mlir(context), mlirStringRefCreateFromCString(w.text.data));
  if (mlirModuleIsNull(module)) fail_msg("%s\n%s", weft_tensor_take_diagnostics(context), w.text.data);
  check(weft_eval_create(context, module, weft_allocator_system(), &eval));
  check(weft_tensor_run_pipeline(context, module, weft_passes_default_pipeline(), NULL));
  mlirOperationWalk(mlirModuleGetOperation(module), count, &counts, MlirWalkPreOrder);
  assert_int_equal(counts.bytes, network->products);
  assert_int_equal(counts.reals, network->reals);
  weft_fabric_initialize(weft_allocator_system(), &fabric);
  const char* const name[MAX_PORTS] = {"a", "b", "c", "d"};
  const weft_passes_names_t names = {.input = name, .output = name, .input_dtype = network->input};
  check(weft_passes_lower_to_fabric(context, module, &names, &fabric));
  for (int32_t i = 0; i < fabric.input_count; ++i) {
    const weft_tensor_t* tensor = &fabric.tensor[fabric.input[i]];
    input[i] = host(tensor->dtype, &tensor->shape);
    size_t width = weft_dtype_size(tensor->dtype);
    for (size_t at = 0; at < input[i].size; at += width)
      weft_dtype_store(tensor->dtype,
                       weft_dtype_is_float(tensor->dtype)
                           ? 10 * weft_rng_unit(&w.rng) - 5
                           : (double)weft_rng_below(&w.rng, 256) - (weft_dtype_is_signed(tensor->dtype) ? 128 : 0),
                       (uint8_t*)input[i].data + at);
    input_data[i] = input[i].data;
  }
  for (int32_t o = 0; o < fabric.output_count; ++o) {
    want[o] = host(fabric.output[o].dtype, &fabric.output[o].shape);
    got[o] = host(fabric.output[o].dtype, &fabric.output[o].shape);
    got_data[o] = got[o].data;
  }
  check(weft_eval_run(eval, input, fabric.input_count, want, fabric.output_count));
  interpret(&fabric, input_data, got_data);
  for (int32_t o = 0; o < fabric.output_count; ++o) {
    assert_memory_equal(want[o].data, got[o].data, want[o].size);
    free(want[o].data);
    free(got[o].data);
  }
  for (int32_t i = 0; i < fabric.input_count; ++i) free(input[i].data);
  weft_eval_destroy(eval);
  weft_fabric_deinitialize(&fabric);
  mlirModuleDestroy(module);
  weft_text_deinitialize(&w.text);
}

static void integers_agree_with_real_numbers(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); ++i) {
    print_message("  %s\n", networks[i].name);
    for (uint64_t seed = 1; seed <= 3; ++seed) run(&networks[i], seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(integers_agree_with_real_numbers)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
