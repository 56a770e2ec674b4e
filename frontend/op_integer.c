// Products of quantised operands: integers are multiplied and summed in i32.
#include <string.h>

#include "frontend/operators.h"
#include "frontend/quantization.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

BODY(difference) {
  return s_sub(b, s_cast(b, x[0], WEFT_DTYPE_I32), s_cast(b, x[1], WEFT_DTYPE_I32));
}
BODY(product) {
  return s_mul(b, s_cast(b, x[0], WEFT_DTYPE_I32), s_cast(b, x[1], WEFT_DTYPE_I32));
}

static bool is_zero(const value_t* zero) {
  if (!zero) return true;
  if (!zero->data) return false;
  for (int64_t i = 0; i < weft_onnx_count(zero); ++i)
    if (weft_onnx_load_int(zero, i) != 0) return false;
  return true;
}

// The narrowest signed type that holds known numbers.
static weft_dtype_e narrowest(const value_t* value) {
  int64_t low = 0, high = 0;
  for (int64_t i = 0; i < weft_onnx_count(value); ++i) {
    int64_t number = weft_onnx_load_int(value, i);
    if (number < low) low = number;
    if (number > high) high = number;
  }
  return low >= INT8_MIN && high <= INT8_MAX     ? WEFT_DTYPE_I8
         : low >= INT16_MIN && high <= INT16_MAX ? WEFT_DTYPE_I16
                                                 : WEFT_DTYPE_I32;
}

// Less its zero point. Without one it stays as narrow as it is, and known ones become as narrow as they can be.
static weft_status_t centered(node_t* node, value_t* value, value_t* zero, value_t** out) {
  *out = value;
  if (is_zero(zero)) return weft_ok();
  TRY(weft_onnx_pointwise(node, difference, NULL, WEFT_DTYPE_I32, 2, (value_t*[]){value, zero}, out));
  return (*out)->data ? weft_onnx_cast(node, *out, narrowest(*out), out) : weft_ok();
}

typedef struct integer_product_t {
  weft_status_t (*multiply)(node_t* node, value_t* a, value_t* b, double fill, value_t** out);
  value_t *a, *a_zero, *b, *b_zero; // zero points in a shape that broadcasts against their operand; or NULL
  // Sums of b that one element of the result is made of, in a shape that broadcasts against it; NULL: no such sum.
  weft_status_t (*sum)(node_t* node, value_t* b, value_t** out);
} integer_product_t;

// sum (a - za) * (b - zb). With known weights a keeps its type: sum a * b' - za * sum b', whose second part is known.
static weft_status_t multiply(node_t* node, const integer_product_t* p, value_t** out) {
  value_t *a, *b, *correction;
  TRY(centered(node, p->b, p->b_zero, &b));
  bool folds = p->sum && b->data && p->a_zero && p->a_zero->data && weft_onnx_count(p->a_zero) == 1;
  if (!folds || is_zero(p->a_zero)) {
    TRY(centered(node, p->a, p->a_zero, &a));
    return p->multiply(node, a, b, 0, out);
  }
  TRY(p->multiply(node, p->a, b, (double)weft_onnx_load_int(p->a_zero, 0), out));
  TRY(weft_onnx_cast(node, b, WEFT_DTYPE_I32, &b));
  TRY(p->sum(node, b, &correction));
  TRY(weft_onnx_pointwise(node, product, NULL, WEFT_DTYPE_I32, 2, (value_t*[]){correction, p->a_zero}, &correction));
  return weft_onnx_binary(node, weft_onnx_body_sub, *out, correction, out);
}

// --- Matrix products

static weft_status_t matrix_product(node_t* node, value_t* a, value_t* b, double fill, value_t** out) {
  (void)fill;
  return weft_onnx_matmul_in(node, a, b, WEFT_DTYPE_I32, out);
}

static weft_status_t sum_of_columns(node_t* node, value_t* b, value_t** out) {
  return weft_onnx_reduce(node, weft_onnx_body_sum, 0, b, 1u << (b->shape.rank - 2), true, out);
}

// A parameter of a: one number, or one for each row.
static weft_status_t per_row(node_t* node, value_t* value, value_t** out) {
  *out = value;
  if (!value || weft_onnx_count(value) == 1) return weft_onnx_as_scalar(node, value, out);
  return value->shape.rank == 1 ? weft_onnx_unsqueeze(node, value, 1, out) : weft_ok();
}

static weft_status_t matmul(node_t* node, value_t* a, value_t* a_zero, value_t* b, value_t* b_zero, value_t** out) {
  bool are_matrices = a->shape.rank >= 2 && b->shape.rank >= 2;
  integer_product_t p = {matrix_product, a, NULL, b, NULL, are_matrices ? sum_of_columns : NULL};
  TRY(per_row(node, a_zero, &p.a_zero));
  TRY(weft_onnx_as_scalar(node, b_zero, &p.b_zero));
  return multiply(node, &p, out);
}

static weft_status_t emit_matmul_integer(node_t* node) {
  return matmul(node, node->input[0], weft_onnx_input(node, 2), node->input[1], weft_onnx_input(node, 3),
                &node->output[0]);
}

// p: lowest and highest. x: i32 product, a scale, b scale, y scale, y zero point.
BODY(requantize) {
  weft_dtype_e dtype = WEFT_DTYPE_F32;
  scalar_t factor = s_div(b, s_mul(b, s_cast(b, x[1], dtype), s_cast(b, x[2], dtype)), s_cast(b, x[3], dtype));
  scalar_t steps = weft_onnx_scalar_unary(b, WEFT_ONNX_RINT, s_mul(b, s_cast(b, x[0], dtype), factor));
  return s_clamp(b, s_add(b, steps, s_cast(b, x[4], dtype)), b->p[0], b->p[1]);
}

static weft_status_t requantized(node_t* node, value_t* product, value_t* a_scale, value_t* b_scale, value_t* y_scale,
                                 value_t* y_zero, value_t** out) {
  weft_dtype_e dtype = y_zero->dtype;
  double p[] = {weft_onnx_lowest(dtype), weft_onnx_highest(dtype)};
  value_t* operands[] = {product, a_scale, b_scale, y_scale, y_zero};
  for (int32_t i = 1; i < 5; ++i) TRY(weft_onnx_as_scalar(node, operands[i], &operands[i]));
  return weft_onnx_pointwise(node, requantize, p, dtype, 5, operands, out);
}

static weft_status_t emit_qlinear_matmul(node_t* node) {
  value_t *product, *scale, **in = node->input;
  TRY(matmul(node, in[0], in[2], in[3], in[5], &product));
  TRY(per_row(node, in[1], &scale));
  return requantized(node, product, scale, in[4], in[6], in[7], &node->output[0]);
}

// --- Convolution

static weft_status_t convolution(node_t* node, value_t* a, value_t* b, double fill, value_t** out) {
  return weft_onnx_conv(node, a, b, WEFT_DTYPE_I32, fill, out);
}

// [filters] -> [filters, 1, ..] of a rank; one number stays one.
static weft_status_t per_filter(node_t* node, value_t* value, int32_t rank, value_t** out) {
  *out = value;
  if (!value || weft_onnx_count(value) == 1) return weft_onnx_as_scalar(node, value, out);
  shape_t shape = {.rank = rank, .extent = {weft_onnx_count(value)}};
  for (int32_t i = 1; i < rank; ++i) shape.extent[i] = 1;
  return weft_onnx_reshape(node, value, &shape, out);
}

static weft_status_t sum_of_filters(node_t* node, value_t* b, value_t** out) {
  int32_t rank = b->shape.rank;
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, b, ((1u << rank) - 1) & ~1u, false, out));
  return per_filter(node, *out, rank - 1, out);
}

static weft_status_t conv(node_t* node, value_t* x, value_t* x_zero, value_t* w, value_t* w_zero, value_t** out) {
  integer_product_t p = {convolution, x, NULL, w, NULL, sum_of_filters};
  TRY(weft_onnx_as_scalar(node, x_zero, &p.a_zero));
  TRY(per_filter(node, w_zero, w->shape.rank, &p.b_zero));
  return multiply(node, &p, out);
}

static weft_status_t emit_conv_integer(node_t* node) {
  return conv(node, node->input[0], weft_onnx_input(node, 2), node->input[1], weft_onnx_input(node, 3),
              &node->output[0]);
}

static weft_status_t emit_qlinear_conv(node_t* node) {
  value_t *product, *scale, *bias = weft_onnx_input(node, 8), **in = node->input;
  int32_t rank = in[0]->shape.rank - 1; // of what broadcasts from the filters on
  TRY(conv(node, in[0], in[2], in[3], in[5], &product));
  if (bias) {
    NODE_REQUIRE(node, bias->dtype == WEFT_DTYPE_I32 && weft_onnx_count(bias) == product->shape.extent[1],
                 INVALID_INPUT, "bias is %s of shape %s, expected i32 of shape [%lld]", weft_dtype_name(bias->dtype),
                 weft_onnx_shape_format(&bias->shape).text, (long long)product->shape.extent[1]);
    TRY(per_filter(node, bias, rank, &bias));
    TRY(weft_onnx_binary(node, weft_onnx_body_add, product, bias, &product));
  }
  TRY(per_filter(node, in[4], rank, &scale));
  return requantized(node, product, in[1], scale, in[6], in[7], &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("ConvInteger", 10, 2, 4, 1, emit_conv_integer, "1 to 3 spatial axes"),
    OPERATOR("MatMulInteger", 10, 2, 4, 1, emit_matmul_integer, ""),
    OPERATOR("QLinearConv", 10, 8, 9, 1, emit_qlinear_conv, "1 to 3 spatial axes"),
    OPERATOR("QLinearMatMul", 10, 8, 8, 1, emit_qlinear_matmul, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_integer = {"Integer products", operators};

// --- Of com.microsoft

// x: i32 product, a scale, b scale, bias
BODY(scaled) {
  scalar_t result = s_mul(b, s_cast(b, x[0], WEFT_DTYPE_F32), s_mul(b, x[1], x[2]));
  return b->p[0] != 0 ? s_add(b, result, x[3]) : result;
}

static weft_status_t scaled_product(node_t* node, value_t* product, value_t* a_scale, value_t* b_scale, value_t* bias) {
  double p[] = {bias != NULL};
  value_t* operands[] = {product, a_scale, b_scale, bias};
  TRY(per_row(node, a_scale, &operands[1]));
  TRY(weft_onnx_as_scalar(node, b_scale, &operands[2]));
  return weft_onnx_pointwise(node, scaled, p, WEFT_DTYPE_F32, bias ? 4 : 3, operands, &node->output[0]);
}

// A, B, A scale, B scale, A zero, B zero, bias
static weft_status_t emit_matmul_to_float(node_t* node) {
  value_t *product, **in = node->input;
  TRY(matmul(node, in[0], weft_onnx_input(node, 4), in[1], weft_onnx_input(node, 5), &product));
  return scaled_product(node, product, in[2], in[3], weft_onnx_input(node, 6));
}

// A in float, B, B scale, B zero, bias
static weft_status_t emit_dynamic_matmul(node_t* node) {
  value_t *quantized, *scale, *zero, *product, **in = node->input;
  TRY(weft_onnx_quantize_dynamically(node, in[0], &quantized, &scale, &zero));
  TRY(matmul(node, quantized, zero, in[1], weft_onnx_input(node, 3), &product));
  return scaled_product(node, product, scale, in[2], weft_onnx_input(node, 4));
}

BODY(times) { // p: factor
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}

static weft_status_t transposed_matrix(node_t* node, const char* attribute, value_t* value, value_t** out) {
  int64_t is_wanted;
  *out = value;
  NODE_REQUIRE(node, value->shape.rank == 2, INVALID_INPUT, "an operand has shape %s, expected a matrix",
               weft_onnx_shape_format(&value->shape).text);
  TRY(weft_onnx_attribute_int(node, attribute, 0, &is_wanted));
  return is_wanted ? weft_onnx_transpose(node, value, (int32_t[]){1, 0}, out) : weft_ok();
}

// A, A scale, A zero, B, B scale, B zero, C in i32, y scale, y zero; without y scale the result is in float.
static weft_status_t emit_qgemm(node_t* node) {
  value_t *a, *b, *product, *scale, **in = node->input, *c = weft_onnx_input(node, 6), *y_scale;
  double p[1];
  TRY(weft_onnx_attribute_float(node, "alpha", 1, &p[0]));
  TRY(transposed_matrix(node, "transA", in[0], &a));
  TRY(transposed_matrix(node, "transB", in[3], &b));
  TRY(matmul(node, a, in[2], b, in[5], &product));
  if (c) TRY(weft_onnx_binary(node, weft_onnx_body_add, product, c, &product));
  TRY(weft_onnx_unary(node, times, p, in[1], &scale));
  y_scale = weft_onnx_input(node, 7);
  if (!y_scale) return scaled_product(node, product, scale, in[4], NULL);
  NODE_REQUIRE(node, weft_onnx_input(node, 8), INVALID_INPUT, "y_scale comes without a zero point");
  return requantized(node, product, scale, in[4], y_scale, in[8], &node->output[0]);
}

static const weft_onnx_operator_t microsoft[] = {OPERATOR("DynamicQuantizeMatMul", 1, 3, 5, 1, emit_dynamic_matmul, ""),
                                                 OPERATOR("MatMulIntegerToFloat", 1, 4, 7, 1, emit_matmul_to_float, ""),
                                                 OPERATOR("QGemm", 1, 6, 9, 1, emit_qgemm, ""),
                                                 {0}};

const weft_onnx_family_t weft_onnx_family_microsoft_integer = {"com.microsoft: integer products", microsoft};
