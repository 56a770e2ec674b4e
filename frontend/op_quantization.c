// Quantised numbers.
#include "frontend/quantization.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/minifloat.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// p: the result's lowest and highest value. Rounds half to even, adds the zero point, saturates.
BODY(quantize) {
  scalar_t steps = weft_onnx_scalar_unary(b, WEFT_ONNX_RINT, s_div(b, x[0], x[1]));
  return s_clamp(b, s_add(b, steps, s_cast(b, x[2], x[0].dtype)), b->p[0], b->p[1]);
}
BODY(dequantize) {
  weft_dtype_e dtype = x[1].dtype;
  return s_mul(b, s_sub(b, s_cast(b, x[0], dtype), s_cast(b, x[2], dtype)), x[1]);
}

weft_status_t weft_onnx_as_scalar(node_t* node, value_t* value, value_t** out) {
  *out = value;
  return value && weft_onnx_count(value) == 1 ? weft_onnx_reshape(node, value, &(shape_t){0}, out) : weft_ok();
}

// --- Between the two forms

weft_status_t weft_onnx_dequantize(node_t* node, value_t* value, value_t* scale, value_t* zero, value_t** out) {
  if (!zero) TRY(weft_onnx_number(node, value->dtype, 0, &zero));
  return weft_onnx_pointwise(node, dequantize, NULL, scale->dtype, 3, (value_t*[]){value, scale, zero}, out);
}

// To a float: x, scale, zero point; p: the lowest and highest number, where it saturates.
BODY(quantize_to_float) {
  return s_clamp(b, s_add(b, s_div(b, x[0], x[1]), s_cast(b, x[2], x[0].dtype)), b->p[0], b->p[1]);
}

static weft_status_t quantize_to(node_t* node, value_t* value, value_t* scale, value_t* zero, weft_dtype_e dtype,
                                 int32_t bits, weft_onnx_minifloat_e minifloat, value_t** out) {
  double p[2];
  weft_onnx_range(dtype, bits, &p[0], &p[1]);
  TRY(weft_onnx_cast(node, value, WEFT_DTYPE_F32, &value));
  TRY(weft_onnx_cast(node, scale, WEFT_DTYPE_F32, &scale));
  bool to_float = weft_dtype_is_float(dtype);
  if (minifloat) {
    p[0] = -(p[1] = weft_onnx_minifloat_highest(minifloat));
    TRY(weft_onnx_pointwise(node, quantize_to_float, p, WEFT_DTYPE_F32, 3, (value_t*[]){value, scale, zero}, out));
    return weft_onnx_minifloat_round(node, *out, minifloat, out);
  }
  if (to_float) p[0] = -(p[1] = dtype == WEFT_DTYPE_F8E4M3FN ? 448 : 57344);
  TRY(weft_onnx_pointwise(node, to_float ? quantize_to_float : quantize, p, dtype, 3, (value_t*[]){value, scale, zero},
                          out));
  (*out)->bits = bits;
  return weft_ok();
}

weft_status_t weft_onnx_quantize(node_t* node, value_t* value, value_t* scale, value_t* zero, value_t** out) {
  return quantize_to(node, value, scale, zero, zero->dtype, zero->bits, zero->minifloat, out);
}

// --- QuantizeLinear, DequantizeLinear

// One scale for `block` elements along an axis: each is repeated.
static weft_status_t repeat_blocks(node_t* node, value_t* value, const shape_t* shape, int32_t axis, int64_t block,
                                   value_t** out) {
  shape_t expected = *shape, wide, merged = *shape;
  expected.extent[axis] = weft_ceil_div(shape->extent[axis], block);
  NODE_REQUIRE(node, weft_onnx_shape_equal(&value->shape, &expected), INVALID_INPUT,
               "a scale or zero point has shape %s, expected %s for blocks of %lld",
               weft_onnx_shape_format(&value->shape).text, weft_onnx_shape_format(&expected).text, (long long)block);
  TRY(weft_onnx_unsqueeze(node, value, axis + 1, &value));
  wide = value->shape;
  wide.extent[axis + 1] = block;
  merged.extent[axis] = expected.extent[axis] * block;
  TRY(weft_onnx_expand(node, value, &wide, &value));
  TRY(weft_onnx_reshape(node, value, &merged, &value));
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, step[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < shape->rank; ++i) step[i] = 1;
  return weft_onnx_slice(node, value, offset, shape->extent, step, out);
}

// Scale and zero point: one element, one per position of an axis, or one per block of it.
static weft_status_t along_axis(node_t* node, value_t* value, const value_t* like, value_t** out) {
  int64_t axis, block;
  int32_t at;
  TRY(weft_onnx_attribute_int(node, "axis", 1, &axis));
  TRY(weft_onnx_attribute_int(node, "block_size", 0, &block));
  NODE_REQUIRE(node, block >= 0 && block < INT32_MAX, INVALID_INPUT, "block_size is %lld", (long long)block);
  if (weft_onnx_count(value) == 1) return weft_onnx_reshape(node, value, &(shape_t){0}, out);
  TRY(weft_onnx_normalize_axis(node, axis, like->shape.rank, &at));
  if (block) return repeat_blocks(node, value, &like->shape, at, block, out);
  shape_t shape = {.rank = like->shape.rank - at, .extent = {value->shape.extent[0]}};
  NODE_REQUIRE(node, value->shape.rank == 1 && shape.extent[0] == like->shape.extent[at], INVALID_INPUT,
               "a scale or zero point has shape %s, expected [%lld]", weft_onnx_shape_format(&value->shape).text,
               (long long)like->shape.extent[at]);
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  return weft_onnx_reshape(node, value, &shape, out);
}

static weft_status_t quantization_operands(node_t* node, weft_dtype_e zero_dtype, value_t** operands) {
  operands[0] = node->input[0];
  operands[1] = node->input[1];
  operands[2] = weft_onnx_input(node, 2);
  if (!operands[2]) TRY(weft_onnx_number(node, zero_dtype, 0, &operands[2]));
  TRY(along_axis(node, operands[1], operands[0], &operands[1]));
  return along_axis(node, operands[2], operands[0], &operands[2]);
}

static weft_status_t emit_quantize(node_t* node) {
  value_t *operands[3], *zero = weft_onnx_input(node, 2);
  int64_t type;
  int32_t bits = zero ? zero->bits : 0;
  weft_onnx_minifloat_e minifloat = zero ? zero->minifloat : WEFT_ONNX_NO_MINIFLOAT;
  weft_dtype_e dtype = zero ? zero->dtype : WEFT_DTYPE_U8;
  TRY(weft_onnx_attribute_int(node, "output_dtype", 0, &type));
  NODE_REQUIRE(node, !type || weft_onnx_dtype(type, &dtype), UNSUPPORTED, "it quantises to %s",
               weft_onnx_dtype_text(type));
  if (type) {
    bits = weft_onnx_bits(type);
    minifloat = weft_onnx_minifloat(type);
  }
  NODE_REQUIRE(node, minifloat || !weft_dtype_is_float(dtype) || weft_dtype_size(dtype) == 1, INVALID_INPUT,
               "it quantises to %s", weft_dtype_name(dtype));
  TRY(quantization_operands(node, dtype, operands));
  return quantize_to(node, operands[0], operands[1], operands[2], dtype, bits, minifloat, &node->output[0]);
}

// Weights stay bytes, for products of integers; the passes calculate what turns out to be wanted as real numbers.
static bool are_weights(const value_t* value, const value_t* scale, weft_dtype_e dtype) {
  bool are = value->data && weft_dtype_size(value->dtype) == 1 && value->shape.rank >= 2 &&
             weft_onnx_count(value) > 1 && dtype == WEFT_DTYPE_F32 && scale->dtype == WEFT_DTYPE_F32 && scale->data;
  for (int64_t i = 0; are && i < weft_onnx_count(scale); ++i)
    are = ((const float*)scale->data)[i] > 0 && ((const float*)scale->data)[i] < INFINITY;
  return are;
}

static weft_status_t emit_dequantize(node_t* node) {
  value_t* operands[3];
  int64_t type;
  weft_dtype_e dtype = node->input[1]->dtype;
  TRY(weft_onnx_attribute_int(node, "output_dtype", 0, &type));
  NODE_REQUIRE(node, !type || weft_onnx_dtype(type, &dtype), UNSUPPORTED, "output_dtype is %s",
               weft_onnx_dtype_text(type));
  TRY(quantization_operands(node, node->input[0]->dtype, operands));
  if (are_weights(operands[0], operands[1], dtype) && operands[2]->data) {
    value_t* bytes;
    TRY(WEFT_ARENA_NEW(node->builder->arena, 1, &bytes));
    *bytes = *operands[0];
    TRY(weft_onnx_materialize(node->builder, node->location, operands[0], &bytes->mlir));
    bytes->data = NULL; // not known, or it would be folded
    operands[0] = bytes;
  }
  return weft_onnx_pointwise(node, dequantize, NULL, dtype, 3, operands, &node->output[0]);
}

// --- DynamicQuantizeLinear

// x: lowest, highest. The range has 0 in it.
BODY(scale_of_range) {
  scalar_t zero = s_const(x[0], 0), range = s_sub(b, s_max(b, x[1], zero), s_min(b, x[0], zero));
  return s_div(b, range, s_const(x[0], 255));
}
// x: lowest, scale
BODY(zero_of_range) {
  scalar_t low = s_min(b, x[0], s_const(x[0], 0));
  scalar_t steps = s_div(b, weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, low), x[1]);
  return weft_onnx_scalar_unary(b, WEFT_ONNX_RINT, s_clamp(b, steps, 0, 255));
}

weft_status_t weft_onnx_quantize_dynamically(node_t* node, value_t* value, value_t** out, value_t** out_scale,
                                             value_t** out_zero) {
  value_t *lowest, *highest;
  weft_dtype_e dtype = value->dtype;
  uint32_t all = (1u << value->shape.rank) - 1;
  NODE_REQUIRE(node, dtype == WEFT_DTYPE_F32, INVALID_INPUT, "input is %s, expected f32", weft_dtype_name(dtype));
  TRY(weft_onnx_reduce(node, weft_onnx_body_min, weft_onnx_highest(dtype), value, all, false, &lowest));
  TRY(weft_onnx_reduce(node, weft_onnx_body_max, weft_onnx_lowest(dtype), value, all, false, &highest));
  TRY(weft_onnx_binary(node, scale_of_range, lowest, highest, out_scale));
  TRY(weft_onnx_pointwise(node, zero_of_range, NULL, WEFT_DTYPE_U8, 2, (value_t*[]){lowest, *out_scale}, out_zero));
  return weft_onnx_quantize(node, value, *out_scale, *out_zero, out);
}

static weft_status_t emit_dynamic(node_t* node) {
  value_t *scale, *zero;
  TRY(weft_onnx_quantize_dynamically(node, node->input[0], &node->output[0], &scale, &zero));
  if (node->output_count > 1) node->output[1] = scale;
  if (node->output_count > 2) node->output[2] = zero;
  return weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("DequantizeLinear", 10, 2, 3, 1, emit_dequantize, "per tensor, axis or block"),
    OPERATOR("DynamicQuantizeLinear", 11, 1, 1, 3, emit_dynamic, ""),
    OPERATOR("QuantizeLinear", 10, 2, 3, 1, emit_quantize, "per tensor, axis or block"),
    {0}};

const weft_onnx_family_t weft_onnx_family_quantization = {"Quantisation", operators};

// --- Of com.microsoft: numbers in their quantised form, parameters per tensor.

static weft_status_t dequantized(node_t* node, int32_t first, value_t** out) {
  value_t *scale, *zero;
  NODE_REQUIRE(node, weft_onnx_input(node, first) && weft_onnx_input(node, first + 1), INVALID_INPUT,
               "inputs %d and %d are a tensor and its scale: one is missing", first, first + 1);
  TRY(weft_onnx_as_scalar(node, node->input[first + 1], &scale));
  TRY(weft_onnx_as_scalar(node, weft_onnx_input(node, first + 2), &zero));
  return weft_onnx_dequantize(node, node->input[first], scale, zero, out);
}

// Scale and zero point of the result: inputs `first` and `first` + 1.
static weft_status_t requantized(node_t* node, value_t* value, int32_t first, weft_dtype_e dtype) {
  value_t *scale, *zero = weft_onnx_input(node, first + 1);
  NODE_REQUIRE(node, weft_onnx_input(node, first), INVALID_INPUT, "input %d (scale) is missing", first);
  if (!zero) TRY(weft_onnx_number(node, dtype, 0, &zero));
  TRY(weft_onnx_as_scalar(node, node->input[first], &scale));
  TRY(weft_onnx_as_scalar(node, zero, &zero));
  return weft_onnx_quantize(node, value, scale, zero, &node->output[0]);
}

static weft_status_t emit_qlinear_binary(node_t* node) {
  value_t *a, *b;
  TRY(dequantized(node, 0, &a));
  TRY(dequantized(node, 3, &b));
  TRY(weft_onnx_binary(node, node->op->body, a, b, &a));
  return requantized(node, a, 6, node->input[0]->dtype);
}

// The operator of the same name without "QLinear", on the numbers themselves.
static weft_status_t emit_qlinear_unary(node_t* node) {
  value_t *x, *result = NULL;
  int64_t channels_last;
  const char* name = node->op->name + strlen("QLinear");
  TRY(weft_onnx_attribute_int(node, "channels_last", 0, &channels_last));
  TRY(dequantized(node, 0, &x));
  int32_t rank = x->shape.rank, to_first[WEFT_ONNX_MAX_RANK], to_last[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    to_first[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    to_last[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
  }
  if (channels_last) TRY(weft_onnx_transpose(node, x, to_first, &x));
  node_t inner = *node;
  inner.op = weft_onnx_operator_find(name);
  inner.input = &x;
  inner.output = &result;
  inner.input_count = inner.output_count = 1;
  TRY(inner.op->emit(&inner));
  if (channels_last) TRY(weft_onnx_transpose(node, result, to_last, &result));
  return requantized(node, result, 3, node->input[0]->dtype);
}

// Scale and zero point of the result, then each part with its own.
static weft_status_t emit_qlinear_concat(node_t* node) {
  int32_t parts = (node->input_count - 2) / 3, axis;
  value_t **values, *result;
  NODE_REQUIRE(node, parts > 0 && parts * 3 + 2 == node->input_count, INVALID_INPUT,
               "it has %d inputs, expected two and three for each part", node->input_count);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)parts, &values));
  for (int32_t i = 0; i < parts; ++i) TRY(dequantized(node, 2 + 3 * i, &values[i]));
  TRY(weft_onnx_axis(node, 0, values[0]->shape.rank, &axis));
  TRY(weft_onnx_concat(node, axis, parts, values, &result));
  return requantized(node, result, 0, node->input[2]->dtype);
}

static const weft_onnx_operator_t microsoft[] = {
    OPERATOR("DequantizeLinear", 1, 2, 3, 1, emit_dequantize, "per tensor, axis or block"),
    OPERATOR("QLinearAdd", 1, 7, 8, 1, emit_qlinear_binary, "", .body = weft_onnx_body_add, .has_gaps = true),
    OPERATOR("QLinearAveragePool", 1, 4, 5, 1, emit_qlinear_unary, "", .has_gaps = true),
    OPERATOR("QLinearConcat", 1, 4, WEFT_ONNX_ANY, 1, emit_qlinear_concat, "", .has_gaps = true),
    OPERATOR("QLinearGlobalAveragePool", 1, 5, 5, 1, emit_qlinear_unary, ""),
    OPERATOR("QLinearLeakyRelu", 1, 4, 5, 1, emit_qlinear_unary, "", .has_gaps = true),
    OPERATOR("QLinearMul", 1, 7, 8, 1, emit_qlinear_binary, "", .body = weft_onnx_body_mul, .has_gaps = true),
    OPERATOR("QLinearSigmoid", 1, 4, 5, 1, emit_qlinear_unary, "", .has_gaps = true),
    OPERATOR("QLinearSoftmax", 1, 5, 5, 1, emit_qlinear_unary, ""),
    OPERATOR("QuantizeLinear", 1, 2, 3, 1, emit_quantize, "per tensor, axis or block"),
    {0}};

const weft_onnx_family_t weft_onnx_family_microsoft_quantization = {"com.microsoft: quantised numbers", microsoft};
