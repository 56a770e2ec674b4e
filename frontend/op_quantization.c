// Quantised numbers.
#include <string.h>

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

// Scale and zero point: one element, or one per position of an axis.
static weft_status_t along_axis(node_t* node, value_t* value, const value_t* like, value_t** out) {
  int64_t axis, block;
  int32_t at;
  TRY(weft_onnx_attribute_int(node, "axis", 1, &axis));
  TRY(weft_onnx_attribute_int(node, "block_size", 0, &block));
  NODE_REQUIRE(node, block == 0, UNSUPPORTED, "block_size = %lld is not supported", (long long)block);
  if (weft_onnx_count(value) == 1) return weft_onnx_reshape(node, value, &(shape_t){0}, out);
  TRY(weft_onnx_normalize_axis(node, axis, like->shape.rank, &at));
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
  weft_dtype_e dtype = zero ? zero->dtype : WEFT_DTYPE_U8;
  TRY(weft_onnx_attribute_int(node, "output_dtype", 0, &type));
  NODE_REQUIRE(node, !type || weft_onnx_dtype(type, &dtype), UNSUPPORTED, "it quantises to %s",
               weft_onnx_dtype_text(type));
  NODE_REQUIRE(node, !weft_dtype_is_float(dtype), UNSUPPORTED, "it quantises to %s", weft_dtype_name(dtype));
  TRY(quantization_operands(node, dtype, operands));
  TRY(weft_onnx_cast(node, operands[0], WEFT_DTYPE_F32, &operands[0]));
  TRY(weft_onnx_cast(node, operands[1], WEFT_DTYPE_F32, &operands[1]));
  double p[] = {weft_onnx_lowest(dtype), weft_onnx_highest(dtype)};
  return weft_onnx_pointwise(node, quantize, p, dtype, 3, operands, &node->output[0]);
}

static weft_status_t emit_dequantize(node_t* node) {
  value_t* operands[3];
  int64_t type;
  weft_dtype_e dtype = node->input[1]->dtype;
  TRY(weft_onnx_attribute_int(node, "output_dtype", 0, &type));
  NODE_REQUIRE(node, !type || weft_onnx_dtype(type, &dtype), UNSUPPORTED, "output_dtype is %s",
               weft_onnx_dtype_text(type));
  TRY(quantization_operands(node, node->input[0]->dtype, operands));
  return weft_onnx_pointwise(node, dequantize, NULL, dtype, 3, operands, &node->output[0]);
}

BODY(difference) {
  return s_sub(b, s_cast(b, x[0], WEFT_DTYPE_I32), s_cast(b, x[1], WEFT_DTYPE_I32));
}

// An operand less its zero point, as i32. `axis`: where a zero point per row or column lies.
static weft_status_t centered(node_t* node, value_t* value, value_t* zero, bool per_row, value_t** out) {
  if (!zero) return weft_onnx_cast(node, value, WEFT_DTYPE_I32, out);
  if (per_row && zero->shape.rank == 1 && weft_onnx_count(zero) > 1) TRY(weft_onnx_unsqueeze(node, zero, 1, &zero));
  if (weft_onnx_count(zero) == 1) TRY(weft_onnx_reshape(node, zero, &(shape_t){0}, &zero));
  return weft_onnx_pointwise(node, difference, NULL, WEFT_DTYPE_I32, 2, (value_t*[]){value, zero}, out);
}

static weft_status_t emit_matmul_integer(node_t* node) {
  value_t *a, *b;
  TRY(centered(node, node->input[0], weft_onnx_input(node, 2), true, &a));
  TRY(centered(node, node->input[1], weft_onnx_input(node, 3), false, &b));
  return weft_onnx_matmul(node, a, b, &node->output[0]);
}

// p: lowest and highest. x: i32 product, a scale, b scale, y scale, y zero point.
BODY(requantize) {
  weft_dtype_e dtype = WEFT_DTYPE_F32;
  scalar_t factor = s_div(b, s_mul(b, s_cast(b, x[1], dtype), s_cast(b, x[2], dtype)), s_cast(b, x[3], dtype));
  scalar_t steps = weft_onnx_scalar_unary(b, WEFT_ONNX_RINT, s_mul(b, s_cast(b, x[0], dtype), factor));
  return s_clamp(b, s_add(b, steps, s_cast(b, x[4], dtype)), b->p[0], b->p[1]);
}

static weft_status_t emit_qlinear_matmul(node_t* node) {
  value_t *a, *b, *product, **in = node->input;
  TRY(centered(node, in[0], in[2], true, &a));
  TRY(centered(node, in[3], in[5], false, &b));
  TRY(weft_onnx_matmul(node, a, b, &product));
  weft_dtype_e dtype = in[7]->dtype;
  double p[] = {weft_onnx_lowest(dtype), weft_onnx_highest(dtype)};
  value_t* operands[] = {product, in[1], in[4], in[6], in[7]};
  for (int32_t i = 1; i < 5; ++i)
    if (weft_onnx_count(operands[i]) == 1) TRY(weft_onnx_reshape(node, operands[i], &(shape_t){0}, &operands[i]));
  if (operands[1]->shape.rank == 1) TRY(weft_onnx_unsqueeze(node, operands[1], 1, &operands[1]));
  return weft_onnx_pointwise(node, requantize, p, dtype, 5, operands, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("DequantizeLinear", 10, 2, 3, 1, emit_dequantize, "per tensor or axis"),
    OPERATOR("MatMulInteger", 10, 2, 4, 1, emit_matmul_integer, ""),
    OPERATOR("QLinearMatMul", 10, 8, 8, 1, emit_qlinear_matmul, ""),
    OPERATOR("QuantizeLinear", 10, 2, 3, 1, emit_quantize, "per tensor or axis, to 8 and 16-bit integers"),
    {0}};

const weft_onnx_family_t weft_onnx_family_quantization = {"Quantisation", operators};
