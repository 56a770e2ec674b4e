// Operators that work on each element for itself, with broadcasting.
#include <math.h>
#include <string.h>

#include "frontend/minifloat.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
#define UNARY_BODY(name, op)                                                                                           \
  BODY(name) {                                                                                                         \
    return weft_onnx_scalar_unary(b, op, x[0]);                                                                        \
  }
#define BINARY_BODY(name, op)                                                                                          \
  BODY(name) {                                                                                                         \
    return weft_onnx_scalar_binary(b, op, x[0], x[1]);                                                                 \
  }
#define COMPARE_BODY(name, op)                                                                                         \
  BODY(name) {                                                                                                         \
    return weft_onnx_scalar_compare(b, op, x[0], x[1]);                                                                \
  }

scalar_t weft_onnx_body_add(body_t* body, const scalar_t* argument) {
  return s_add(body, argument[0], argument[1]);
}
scalar_t weft_onnx_body_sub(body_t* body, const scalar_t* argument) {
  return s_sub(body, argument[0], argument[1]);
}
scalar_t weft_onnx_body_mul(body_t* body, const scalar_t* argument) {
  return s_mul(body, argument[0], argument[1]);
}
scalar_t weft_onnx_body_div(body_t* body, const scalar_t* argument) {
  return s_div(body, argument[0], argument[1]);
}
scalar_t weft_onnx_body_exp(body_t* body, const scalar_t* argument) {
  return s_exp(body, argument[0]);
}
BINARY_BODY(larger, WEFT_ONNX_MAX)
BINARY_BODY(smaller, WEFT_ONNX_MIN)
BINARY_BODY(bit_and, WEFT_ONNX_AND)
BINARY_BODY(bit_or, WEFT_ONNX_OR)
BINARY_BODY(bit_xor, WEFT_ONNX_XOR)
BINARY_BODY(shift_left, WEFT_ONNX_SHL)
BINARY_BODY(shift_right, WEFT_ONNX_SHR)
COMPARE_BODY(equal, WEFT_ONNX_EQ)
COMPARE_BODY(less, WEFT_ONNX_LT)
COMPARE_BODY(less_equal, WEFT_ONNX_LE)
COMPARE_BODY(greater, WEFT_ONNX_GT)
COMPARE_BODY(greater_equal, WEFT_ONNX_GE)
UNARY_BODY(negative, WEFT_ONNX_NEG)
UNARY_BODY(absolute, WEFT_ONNX_ABS)
UNARY_BODY(root, WEFT_ONNX_SQRT)
UNARY_BODY(logarithm, WEFT_ONNX_LOG)
UNARY_BODY(hyperbolic_tangent, WEFT_ONNX_TANH)
UNARY_BODY(error_function, WEFT_ONNX_ERF)
UNARY_BODY(sine, WEFT_ONNX_SIN)
UNARY_BODY(cosine, WEFT_ONNX_COS)
UNARY_BODY(tangent, WEFT_ONNX_TAN)
UNARY_BODY(arc_sine, WEFT_ONNX_ASIN)
UNARY_BODY(arc_cosine, WEFT_ONNX_ACOS)
UNARY_BODY(arc_tangent, WEFT_ONNX_ATAN)
UNARY_BODY(hyperbolic_sine, WEFT_ONNX_SINH)
UNARY_BODY(hyperbolic_cosine, WEFT_ONNX_COSH)
UNARY_BODY(area_sine, WEFT_ONNX_ASINH)
UNARY_BODY(area_cosine, WEFT_ONNX_ACOSH)
UNARY_BODY(area_tangent, WEFT_ONNX_ATANH)
UNARY_BODY(round_down, WEFT_ONNX_FLOOR)
UNARY_BODY(round_up, WEFT_ONNX_CEIL)
UNARY_BODY(round_even, WEFT_ONNX_RINT)
BODY(reciprocal) {
  return s_div(b, s_const(x[0], 1), x[0]);
}
BODY(sign) {
  scalar_t zero = s_const(x[0], 0), one = s_const(x[0], 1);
  scalar_t below = s_compare(b, WEFT_ONNX_LT, x[0], zero), above = s_compare(b, WEFT_ONNX_GT, x[0], zero);
  return s_select(b, above, one, s_select(b, below, s_const(x[0], -1), zero));
}
BODY(relu) {
  return s_max(b, x[0], s_const(x[0], 0));
}
// negative branch where x < 0, x elsewhere
static scalar_t where_negative(body_t* b, scalar_t x, scalar_t negative_branch, scalar_t positive_branch) {
  return s_select(b, s_compare(b, WEFT_ONNX_LT, x, s_const(x, 0)), negative_branch, positive_branch);
}
BODY(leaky_relu) {
  return where_negative(b, x[0], s_mul(b, x[0], s_const(x[0], b->p[0])), x[0]);
}
BODY(prelu) {
  return where_negative(b, x[0], s_mul(b, x[0], x[1]), x[0]);
}
static scalar_t exp_minus_one(body_t* b, scalar_t x) {
  return s_sub(b, s_exp(b, x), s_const(x, 1));
}
BODY(elu) {
  return where_negative(b, x[0], s_mul(b, exp_minus_one(b, x[0]), s_const(x[0], b->p[0])), x[0]);
}
BODY(selu) {
  scalar_t negative_branch = s_mul(b, exp_minus_one(b, x[0]), s_const(x[0], b->p[0]));
  return s_mul(b, where_negative(b, x[0], negative_branch, x[0]), s_const(x[0], b->p[1]));
}
BODY(celu) {
  scalar_t alpha = s_const(x[0], b->p[0]), zero = s_const(x[0], 0);
  scalar_t low = s_mul(b, alpha, exp_minus_one(b, s_div(b, x[0], alpha)));
  return s_add(b, s_max(b, x[0], zero), s_min(b, low, zero));
}
static scalar_t sigmoid_of(body_t* b, scalar_t x) {
  scalar_t one = s_const(x, 1);
  return s_div(b, one, s_add(b, one, s_exp(b, weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, x))));
}
BODY(sigmoid) {
  return sigmoid_of(b, x[0]);
}
BODY(swish) {
  return s_mul(b, x[0], sigmoid_of(b, s_mul(b, x[0], s_const(x[0], b->p[0]))));
}
BODY(hard_sigmoid) {
  return s_clamp(b, s_add(b, s_mul(b, x[0], s_const(x[0], b->p[0])), s_const(x[0], b->p[1])), 0, 1);
}
BODY(hard_swish) {
  scalar_t gate = s_add(b, s_mul(b, x[0], s_const(x[0], 1.0 / 6)), s_const(x[0], 0.5));
  return s_mul(b, x[0], s_clamp(b, gate, 0, 1));
}
// max(x, 0) + log(1 + e^-|x|): does not overflow for large x.
static scalar_t softplus_of(body_t* b, scalar_t x) {
  scalar_t minus = weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, s_abs(b, x));
  return s_add(b, s_max(b, x, s_const(x, 0)), weft_onnx_scalar_unary(b, WEFT_ONNX_LOG1P, s_exp(b, minus)));
}
BODY(softplus) {
  return softplus_of(b, x[0]);
}
BODY(mish) {
  return s_mul(b, x[0], s_tanh(b, softplus_of(b, x[0])));
}
BODY(softsign) {
  return s_div(b, x[0], s_add(b, s_abs(b, x[0]), s_const(x[0], 1)));
}
BODY(thresholded_relu) {
  return s_select(b, s_compare(b, WEFT_ONNX_GT, x[0], s_const(x[0], b->p[0])), x[0], s_const(x[0], 0));
}
BODY(shrink) {
  scalar_t lambda = s_const(x[0], b->p[1]), bias = s_const(x[0], b->p[0]), zero = s_const(x[0], 0);
  scalar_t below = s_compare(b, WEFT_ONNX_LT, x[0], weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, lambda));
  scalar_t above = s_compare(b, WEFT_ONNX_GT, x[0], lambda);
  return s_select(b, below, s_add(b, x[0], bias), s_select(b, above, s_sub(b, x[0], bias), zero));
}
scalar_t weft_onnx_body_gelu(body_t* b, const scalar_t* x) {
  scalar_t half = s_const(x[0], 0.5), one = s_const(x[0], 1);
  return s_mul(b, s_mul(b, half, x[0]), s_add(b, one, s_erf(b, s_mul(b, x[0], s_const(x[0], sqrt(0.5))))));
}
scalar_t weft_onnx_body_gelu_tanh(body_t* b, const scalar_t* x) {
  scalar_t cube = s_mul(b, s_mul(b, x[0], x[0]), s_mul(b, x[0], s_const(x[0], 0.044715)));
  scalar_t inner = s_mul(b, s_add(b, x[0], cube), s_const(x[0], 0.7978845608028654)); // sqrt(2 / pi)
  return s_mul(b, s_mul(b, s_const(x[0], 0.5), x[0]), s_add(b, s_const(x[0], 1), s_tanh(b, inner)));
}
BODY(is_nan) {
  return s_compare(b, WEFT_ONNX_NE, x[0], x[0]);
}
BODY(is_infinite) { // p: detect_negative, detect_positive
  double high = b->p[1] != 0 ? (double)INFINITY : (double)NAN, low = b->p[0] != 0 ? -(double)INFINITY : (double)NAN;
  return weft_onnx_scalar_binary(b, WEFT_ONNX_OR, s_compare(b, WEFT_ONNX_EQ, x[0], s_const(x[0], high)),
                                 s_compare(b, WEFT_ONNX_EQ, x[0], s_const(x[0], low)));
}
BODY(logical_not) {
  return weft_onnx_scalar_binary(b, WEFT_ONNX_XOR, x[0], s_const(x[0], 1));
}
BODY(bit_not) {
  scalar_t zero = s_const(x[0], 0), ones = s_sub(b, zero, s_const(x[0], 1));
  return weft_onnx_scalar_binary(b, WEFT_ONNX_XOR, x[0], ones);
}
BODY(where) {
  return s_select(b, x[0], x[1], x[2]);
}
BODY(remainder_c) {
  return weft_onnx_scalar_binary(b, WEFT_ONNX_REM, x[0], x[1]);
}
// The remainder with the divisor's sign.
BODY(remainder_floor) {
  scalar_t zero = s_const(x[0], 0), rest = weft_onnx_scalar_binary(b, WEFT_ONNX_REM, x[0], x[1]);
  if (!weft_dtype_is_signed(x[0].dtype)) return rest;
  scalar_t differ = weft_onnx_scalar_binary(b, WEFT_ONNX_XOR, s_compare(b, WEFT_ONNX_LT, rest, zero),
                                            s_compare(b, WEFT_ONNX_LT, x[1], zero));
  scalar_t fixed = s_select(b, differ, s_add(b, rest, x[1]), rest);
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, rest, zero), rest, fixed);
}
BODY(power) {
  weft_dtype_e base = x[0].dtype, exponent = x[1].dtype;
  if (x[1].is_known && weft_dtype_is_float(base)) { // exponents that need no pow
    double value = weft_dtype_is_float(exponent) ? x[1].real : (double)x[1].integer;
    if (value == 1) return x[0];
    if (value == 2) return s_mul(b, x[0], x[0]);
    if (value == 3) return s_mul(b, s_mul(b, x[0], x[0]), x[0]);
    if (value == 0.5) return s_sqrt(b, x[0]);
    if (value == -1) return s_div(b, s_const(x[0], 1), x[0]);
  }
  weft_dtype_e common = weft_dtype_is_float(base) || !weft_dtype_is_float(exponent) ? base : exponent;
  scalar_t result = weft_onnx_scalar_binary(b, WEFT_ONNX_POW, s_cast(b, x[0], common), s_cast(b, x[1], common));
  return s_cast(b, result, base);
}
BODY(clip) { // p: has a low bound, has a high one
  scalar_t result = x[0];
  int32_t at = 1;
  if (b->p[0] != 0) result = s_max(b, result, x[at++]);
  return b->p[1] != 0 ? s_min(b, result, x[at]) : result;
}
BODY(scale) {
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}

weft_status_t weft_onnx_binary(node_t* node, weft_onnx_body_fn body, value_t* a, value_t* b, value_t** out) {
  NODE_REQUIRE(node, a->dtype == b->dtype, INVALID_INPUT, "operands are %s and %s, expected one type",
               weft_dtype_name(a->dtype), weft_dtype_name(b->dtype));
  return weft_onnx_pointwise(node, body, NULL, a->dtype, 2, (value_t*[]){a, b}, out);
}

weft_status_t weft_onnx_unary(node_t* node, weft_onnx_body_fn body, const double* p, value_t* a, value_t** out) {
  return weft_onnx_pointwise(node, body, p, a->dtype, 1, &a, out);
}

static weft_status_t unary(node_t* node) {
  double p[WEFT_ONNX_MAX_PARAMETERS];
  TRY(weft_onnx_parameters(node, p));
  return weft_onnx_unary(node, node->op->body, p, node->input[0], &node->output[0]);
}

static weft_status_t float_unary(node_t* node) {
  NODE_REQUIRE(node, weft_dtype_is_float(node->input[0]->dtype), INVALID_INPUT, "input is %s, expected a float type",
               weft_dtype_name(node->input[0]->dtype));
  return unary(node);
}

// Before opset 7 broadcasting was asked for, and `axis` said where the second operand's axes start.
static weft_status_t align_old_broadcast(node_t* node, const value_t* a, value_t** b) {
  int64_t broadcast, axis;
  TRY(weft_onnx_attribute_int(node, "broadcast", 0, &broadcast));
  TRY(weft_onnx_attribute_int(node, "axis", -1, &axis));
  if (!broadcast || axis < 0) return weft_ok();
  NODE_REQUIRE(node, axis <= a->shape.rank - (*b)->shape.rank, INVALID_INPUT, "axis %lld does not fit %s into %s",
               (long long)axis, weft_onnx_shape_format(&(*b)->shape).text, weft_onnx_shape_format(&a->shape).text);
  shape_t shape = (*b)->shape;
  while (shape.rank < a->shape.rank - axis) shape.extent[shape.rank++] = 1;
  return weft_onnx_reshape(node, *b, &shape, b);
}

enum { SAME_TYPE, TO_BOOL, ANY_TYPES };
static weft_status_t binary(node_t* node) {
  value_t *a = node->input[0], *b = node->input[1];
  NODE_REQUIRE(node, node->op->kind == ANY_TYPES || a->dtype == b->dtype, INVALID_INPUT,
               "operands are %s and %s, expected one type", weft_dtype_name(a->dtype), weft_dtype_name(b->dtype));
  if (node->opset < 7) TRY(align_old_broadcast(node, a, &b));
  weft_dtype_e dtype = node->op->kind == TO_BOOL ? WEFT_DTYPE_BOOL : a->dtype;
  return weft_onnx_pointwise(node, node->op->body, NULL, dtype, 2, (value_t*[]){a, b}, &node->output[0]);
}

// Before opset 7 the slopes are those of the channels.
static weft_status_t emit_prelu(node_t* node) {
  value_t *value = node->input[0], *slope = node->input[1];
  bool per_channel = node->opset < 7 && slope->shape.rank == 1 && value->shape.rank > 2;
  if (per_channel && slope->shape.extent[0] == value->shape.extent[1]) {
    shape_t shape = {.rank = value->shape.rank - 1, .extent = {slope->shape.extent[0]}};
    for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
    TRY(weft_onnx_reshape(node, slope, &shape, &slope));
  }
  return weft_onnx_binary(node, prelu, value, slope, &node->output[0]);
}

static weft_status_t to_bool(node_t* node) {
  double p[WEFT_ONNX_MAX_PARAMETERS];
  int64_t negative, positive;
  TRY(weft_onnx_attribute_int(node, "detect_negative", 1, &negative));
  TRY(weft_onnx_attribute_int(node, "detect_positive", 1, &positive));
  p[0] = (double)negative;
  p[1] = (double)positive;
  return weft_onnx_pointwise(node, node->op->body, p, WEFT_DTYPE_BOOL, 1, node->input, &node->output[0]);
}

// Max, Min, Sum: any number of operands, two at a time.
static weft_status_t variadic(node_t* node) {
  value_t* result = node->input[0];
  for (int32_t i = 1; i < node->input_count; ++i)
    TRY(weft_onnx_binary(node, node->op->body, result, node->input[i], &result));
  if (node->op->kind && node->input_count > 1) { // Mean
    double p[] = {1.0 / node->input_count};
    TRY(weft_onnx_unary(node, scale, p, result, &result));
  }
  node->output[0] = result;
  return weft_ok();
}

static weft_status_t emit_where(node_t* node) {
  NODE_REQUIRE(node, node->input[0]->dtype == WEFT_DTYPE_BOOL && node->input[1]->dtype == node->input[2]->dtype,
               INVALID_INPUT, "inputs are %s, %s, %s, expected bool and one type twice",
               weft_dtype_name(node->input[0]->dtype), weft_dtype_name(node->input[1]->dtype),
               weft_dtype_name(node->input[2]->dtype));
  return weft_onnx_pointwise(node, where, NULL, node->input[1]->dtype, 3, node->input, &node->output[0]);
}

static weft_status_t emit_mod(node_t* node) {
  int64_t fmod_semantics;
  TRY(weft_onnx_attribute_int(node, "fmod", 0, &fmod_semantics));
  return weft_onnx_binary(node, fmod_semantics ? remainder_c : remainder_floor, node->input[0], node->input[1],
                          &node->output[0]);
}

static weft_status_t emit_shift(node_t* node) {
  const char* direction;
  TRY(weft_onnx_attribute_string(node, "direction", "", &direction));
  bool left = strcmp(direction, "LEFT") == 0;
  NODE_REQUIRE(node, left || strcmp(direction, "RIGHT") == 0, INVALID_INPUT,
               "direction is '%s', expected LEFT or RIGHT", direction);
  return weft_onnx_binary(node, left ? shift_left : shift_right, node->input[0], node->input[1], &node->output[0]);
}

static weft_status_t emit_gelu(node_t* node) {
  const char* approximate;
  TRY(weft_onnx_attribute_string(node, "approximate", "none", &approximate));
  return weft_onnx_unary(node, strcmp(approximate, "tanh") == 0 ? weft_onnx_body_gelu_tanh : weft_onnx_body_gelu, NULL,
                         node->input[0], &node->output[0]);
}

// Stores of f8E4M3FN saturate and those of f8E5M2 overflow to infinity; this makes a cast do the other.
BODY(saturated) {
  return s_clamp(b, x[0], -57344, 57344);
}
BODY(overflown) { // 464 still rounds to the largest number
  scalar_t is_large = s_compare(b, WEFT_ONNX_GT, s_abs(b, x[0]), s_const(x[0], 464));
  return s_select(b, is_large, s_const(x[0], (double)NAN), x[0]);
}

static weft_status_t cast_to_f8(node_t* node, weft_dtype_e dtype, value_t** out) {
  value_t* value = node->input[0];
  int64_t saturate;
  TRY(weft_onnx_attribute_int(node, "saturate", 1, &saturate));
  weft_onnx_body_fn body = dtype == WEFT_DTYPE_F8E5M2 ? (saturate ? saturated : NULL) : (saturate ? NULL : overflown);
  if (weft_dtype_size(value->dtype) == 1) body = NULL; // another f8 or few integers
  if (body && !weft_dtype_is_float(value->dtype)) TRY(weft_onnx_cast(node, value, WEFT_DTYPE_F32, &value));
  if (body) TRY(weft_onnx_unary(node, body, NULL, value, &value));
  return weft_onnx_cast(node, value, dtype, out);
}

static weft_status_t emit_clip(node_t* node) {
  value_t* operands[3] = {node->input[0]};
  int32_t count = 1;
  double p[2] = {0};
  static const char* const bounds[] = {"min", "max"};
  for (int32_t i = 0; i < 2; ++i) {
    value_t* bound = weft_onnx_input(node, i + 1);
    if (node->opset < 11 && weft_onnx_has_attribute(node, bounds[i])) {
      double number;
      TRY(weft_onnx_attribute_float(node, bounds[i], 0, &number));
      TRY(weft_onnx_number(node, node->input[0]->dtype, number, &bound));
    }
    if (!bound) continue;
    NODE_REQUIRE(node, weft_onnx_count(bound) == 1 && bound->dtype == node->input[0]->dtype, INVALID_INPUT,
                 "%s is %s of shape %s, expected one %s", bounds[i], weft_dtype_name(bound->dtype),
                 weft_onnx_shape_format(&bound->shape).text, weft_dtype_name(node->input[0]->dtype));
    operands[count++] = bound;
    p[i] = 1;
  }
  return weft_onnx_pointwise(node, clip, p, node->input[0]->dtype, count, operands, &node->output[0]);
}

// p: the lowest and highest value of a narrow integer. Truncates, then wraps.
BODY(narrow) {
  scalar_t number = s_cast(b, x[0], WEFT_DTYPE_I32), low = s_const(number, b->p[0]);
  scalar_t mask = s_const(number, b->p[1] - b->p[0]);
  return s_add(b, weft_onnx_scalar_binary(b, WEFT_ONNX_AND, s_sub(b, number, low), mask), low);
}

static weft_status_t emit_cast(node_t* node) {
  weft_dtype_e dtype;
  int32_t bits = 0;
  weft_onnx_minifloat_e minifloat;
  double p[2];
  if (node->op->kind) { // CastLike
    dtype = node->input[1]->dtype;
    bits = node->input[1]->bits;
    minifloat = node->input[1]->minifloat;
  } else {
    int64_t to;
    TRY(weft_onnx_attribute_int(node, "to", 0, &to));
    NODE_REQUIRE(node, weft_onnx_dtype(to, &dtype), UNSUPPORTED, "it casts to %s", weft_onnx_dtype_text(to));
    bits = weft_onnx_bits(to);
    minifloat = weft_onnx_minifloat(to);
  }
  if (minifloat) return weft_onnx_minifloat_round(node, node->input[0], minifloat, &node->output[0]);
  bool is_f8 = dtype == WEFT_DTYPE_F8E4M3FN || dtype == WEFT_DTYPE_F8E5M2;
  if (!bits && is_f8) return cast_to_f8(node, dtype, &node->output[0]);
  if (!bits) return weft_onnx_cast(node, node->input[0], dtype, &node->output[0]);
  weft_onnx_range(dtype, bits, &p[0], &p[1]);
  TRY(weft_onnx_pointwise(node, narrow, p, dtype, 1, node->input, &node->output[0]));
  node->output[0]->bits = bits;
  return weft_ok();
}

BODY(same_bits) { // p: the result's type
  return weft_onnx_scalar_bitcast(b, x[0], (weft_dtype_e)b->p[0]);
}

static weft_status_t emit_bit_cast(node_t* node) {
  weft_dtype_e dtype, from = node->input[0]->dtype;
  int64_t to;
  TRY(weft_onnx_attribute_int(node, "to", 0, &to));
  NODE_REQUIRE(node,
               weft_onnx_dtype(to, &dtype) && !weft_onnx_bits(to) && !node->input[0]->bits &&
                   !weft_onnx_minifloat(to) && !node->input[0]->minifloat,
               UNSUPPORTED, "it casts to %s", weft_onnx_dtype_text(to));
  NODE_REQUIRE(node, weft_dtype_size(dtype) == weft_dtype_size(from), INVALID_INPUT,
               "it casts %s to %s, expected types of one size", weft_dtype_name(from), weft_dtype_name(dtype));
  double p[] = {(double)dtype};
  return weft_onnx_pointwise(node, same_bits, p, dtype, 1, node->input, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Abs", 1, 1, 1, 1, unary, "", .body = absolute),
    OPERATOR("Acos", 7, 1, 1, 1, float_unary, "", .body = arc_cosine),
    OPERATOR("Acosh", 9, 1, 1, 1, float_unary, "", .body = area_cosine),
    OPERATOR("Add", 1, 2, 2, 1, binary, "", .body = weft_onnx_body_add),
    OPERATOR("And", 1, 2, 2, 1, binary, "", .body = bit_and),
    OPERATOR("Asin", 7, 1, 1, 1, float_unary, "", .body = arc_sine),
    OPERATOR("Asinh", 9, 1, 1, 1, float_unary, "", .body = area_sine),
    OPERATOR("Atan", 7, 1, 1, 1, float_unary, "", .body = arc_tangent),
    OPERATOR("Atanh", 9, 1, 1, 1, float_unary, "", .body = area_tangent),
    OPERATOR("BitCast", 26, 1, 1, 1, emit_bit_cast, "between types of one size; no strings or 4-bit types"),
    OPERATOR("BitShift", 11, 2, 2, 1, emit_shift, ""),
    OPERATOR("BitwiseAnd", 18, 2, 2, 1, binary, "", .body = bit_and),
    OPERATOR("BitwiseNot", 18, 1, 1, 1, unary, "", .body = bit_not),
    OPERATOR("BitwiseOr", 18, 2, 2, 1, binary, "", .body = bit_or),
    OPERATOR("BitwiseXor", 18, 2, 2, 1, binary, "", .body = bit_xor),
    OPERATOR("Cast", 6, 1, 1, 1, emit_cast, "between numbers and bool; no strings"),
    OPERATOR("CastLike", 15, 2, 2, 1, emit_cast, "as Cast", .kind = 1),
    OPERATOR("Ceil", 1, 1, 1, 1, float_unary, "", .body = round_up),
    OPERATOR("Celu", 12, 1, 1, 1, float_unary, "", .body = celu, .parameter = {{"alpha", 1}}),
    OPERATOR("Clip", 6, 1, 3, 1, emit_clip, ""),
    OPERATOR("Cos", 7, 1, 1, 1, float_unary, "", .body = cosine),
    OPERATOR("Cosh", 9, 1, 1, 1, float_unary, "", .body = hyperbolic_cosine),
    OPERATOR("Div", 1, 2, 2, 1, binary, "", .body = weft_onnx_body_div),
    OPERATOR("Elu", 1, 1, 1, 1, float_unary, "", .body = elu, .parameter = {{"alpha", 1}}),
    OPERATOR("Equal", 1, 2, 2, 1, binary, "", .body = equal, .kind = TO_BOOL),
    OPERATOR("Erf", 9, 1, 1, 1, float_unary, "", .body = error_function),
    OPERATOR("Exp", 1, 1, 1, 1, float_unary, "", .body = weft_onnx_body_exp),
    OPERATOR("Floor", 1, 1, 1, 1, float_unary, "", .body = round_down),
    OPERATOR("Gelu", 20, 1, 1, 1, emit_gelu, ""),
    OPERATOR("Greater", 1, 2, 2, 1, binary, "", .body = greater, .kind = TO_BOOL),
    OPERATOR("GreaterOrEqual", 12, 2, 2, 1, binary, "", .body = greater_equal, .kind = TO_BOOL),
    OPERATOR("HardSigmoid", 1, 1, 1, 1, float_unary, "", .body = hard_sigmoid,
             .parameter = {{"alpha", 0.2}, {"beta", 0.5}}),
    OPERATOR("HardSwish", 14, 1, 1, 1, float_unary, "", .body = hard_swish),
    OPERATOR("IsInf", 10, 1, 1, 1, to_bool, "", .body = is_infinite),
    OPERATOR("IsNaN", 9, 1, 1, 1, to_bool, "", .body = is_nan),
    OPERATOR("LeakyRelu", 1, 1, 1, 1, float_unary, "", .body = leaky_relu, .parameter = {{"alpha", 0.01}}),
    OPERATOR("Less", 1, 2, 2, 1, binary, "", .body = less, .kind = TO_BOOL),
    OPERATOR("LessOrEqual", 12, 2, 2, 1, binary, "", .body = less_equal, .kind = TO_BOOL),
    OPERATOR("Log", 1, 1, 1, 1, float_unary, "", .body = logarithm),
    OPERATOR("Max", 1, 1, WEFT_ONNX_ANY, 1, variadic, "", .body = larger),
    OPERATOR("Mean", 1, 1, WEFT_ONNX_ANY, 1, variadic, "", .body = weft_onnx_body_add, .kind = 1),
    OPERATOR("Min", 1, 1, WEFT_ONNX_ANY, 1, variadic, "", .body = smaller),
    OPERATOR("Mish", 18, 1, 1, 1, float_unary, "", .body = mish),
    OPERATOR("Mod", 10, 2, 2, 1, emit_mod, ""),
    OPERATOR("Mul", 1, 2, 2, 1, binary, "", .body = weft_onnx_body_mul),
    OPERATOR("Neg", 1, 1, 1, 1, unary, "", .body = negative),
    OPERATOR("Not", 1, 1, 1, 1, unary, "", .body = logical_not),
    OPERATOR("Or", 1, 2, 2, 1, binary, "", .body = bit_or),
    OPERATOR("PRelu", 1, 2, 2, 1, emit_prelu, ""),
    OPERATOR("Pow", 1, 2, 2, 1, binary, "", .body = power, .kind = ANY_TYPES),
    OPERATOR("Reciprocal", 1, 1, 1, 1, float_unary, "", .body = reciprocal),
    OPERATOR("Relu", 1, 1, 1, 1, unary, "", .body = relu),
    OPERATOR("Round", 11, 1, 1, 1, float_unary, "", .body = round_even),
    OPERATOR("Selu", 1, 1, 1, 1, float_unary, "", .body = selu,
             .parameter = {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}),
    OPERATOR("Shrink", 9, 1, 1, 1, unary, "", .body = shrink, .parameter = {{"bias", 0}, {"lambd", 0.5}}),
    OPERATOR("Sigmoid", 1, 1, 1, 1, float_unary, "", .body = sigmoid),
    OPERATOR("Sign", 9, 1, 1, 1, unary, "", .body = sign),
    OPERATOR("Sin", 7, 1, 1, 1, float_unary, "", .body = sine),
    OPERATOR("Sinh", 9, 1, 1, 1, float_unary, "", .body = hyperbolic_sine),
    OPERATOR("Softplus", 1, 1, 1, 1, float_unary, "", .body = softplus),
    OPERATOR("Softsign", 1, 1, 1, 1, float_unary, "", .body = softsign),
    OPERATOR("Sqrt", 1, 1, 1, 1, float_unary, "", .body = root),
    OPERATOR("Sub", 1, 2, 2, 1, binary, "", .body = weft_onnx_body_sub),
    OPERATOR("Sum", 1, 1, WEFT_ONNX_ANY, 1, variadic, "", .body = weft_onnx_body_add),
    OPERATOR("Swish", 24, 1, 1, 1, float_unary, "", .body = swish, .parameter = {{"alpha", 1}}),
    OPERATOR("Tan", 7, 1, 1, 1, float_unary, "", .body = tangent),
    OPERATOR("Tanh", 1, 1, 1, 1, float_unary, "", .body = hyperbolic_tangent),
    OPERATOR("ThresholdedRelu", 10, 1, 1, 1, float_unary, "", .body = thresholded_relu, .parameter = {{"alpha", 1}}),
    OPERATOR("Where", 9, 3, 3, 1, emit_where, ""),
    OPERATOR("Xor", 1, 2, 2, 1, binary, "", .body = bit_xor),
    {0}};

const weft_onnx_family_t weft_onnx_family_pointwise = {"Pointwise", operators};
