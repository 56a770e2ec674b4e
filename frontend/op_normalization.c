// Normalisations.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
BODY(square) {
  return s_mul(b, x[0], x[0]);
}
BODY(reciprocal_root) {
  return s_div(b, s_const(x[0], 1), s_sqrt(b, s_add(b, x[0], s_const(x[0], b->p[0]))));
}
BODY(scale_and_shift) {
  return s_add(b, s_mul(b, x[0], x[1]), x[2]);
}

// [C] -> [C, 1, ..], which broadcasts along axis 1 of a tensor of `rank`.
static weft_status_t per_channel(node_t* node, value_t* value, const value_t* like, weft_dtype_e dtype, value_t** out) {
  NODE_REQUIRE(node, value->shape.rank == 1 && value->shape.extent[0] == like->shape.extent[1], INVALID_INPUT,
               "a parameter has shape %s, expected [%lld]", weft_onnx_shape_format(&value->shape).text,
               (long long)like->shape.extent[1]);
  shape_t shape = {.rank = like->shape.rank - 1, .extent = {value->shape.extent[0]}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_cast(node, value, dtype, &value));
  return weft_onnx_reshape(node, value, &shape, out);
}

static weft_status_t require_channels(node_t* node) {
  NODE_REQUIRE(node, node->input[0]->shape.rank >= 2, INVALID_INPUT, "input has shape %s, expected batch and channels",
               weft_onnx_shape_format(&node->input[0]->shape).text);
  return weft_ok();
}

BODY(running) { // p: momentum. x: before, now
  scalar_t old = s_mul(b, x[0], s_const(x[0], b->p[0]));
  return s_add(b, old, s_mul(b, s_cast(b, x[1], x[0].dtype), s_const(x[0], 1 - b->p[0])));
}

// Mean and variance of each channel in this batch, of shape [C, 1, ..], and the running ones as outputs 1 and 2.
static weft_status_t batch_statistics(node_t* node, value_t* x, const double* momentum, value_t** out) {
  uint32_t axes = ((1u << x->shape.rank) - 1) & ~2u;
  shape_t shape = {.rank = x->shape.rank - 1, .extent = {x->shape.extent[1]}};
  value_t* distance;
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_cast(node, x, weft_onnx_accumulator(x->dtype), &x));
  TRY(weft_onnx_mean(node, x, axes, true, &out[0]));
  TRY(weft_onnx_binary(node, weft_onnx_body_sub, x, out[0], &distance));
  TRY(weft_onnx_unary(node, square, NULL, distance, &distance));
  TRY(weft_onnx_mean(node, distance, axes, true, &out[1]));
  for (int32_t i = 0; i < 2; ++i) {
    value_t *now, *before = node->input[3 + i];
    TRY(weft_onnx_reshape(node, out[i], &shape, &out[i]));
    TRY(weft_onnx_reshape(node, out[i], &(shape_t){1, {shape.extent[0]}}, &now));
    if (node->output_count > 1 + i)
      TRY(weft_onnx_pointwise(node, running, momentum, before->dtype, 2, (value_t*[]){before, now},
                              &node->output[1 + i]));
  }
  return weft_ok();
}

// x * a + b with a = scale / sqrt(var + epsilon), b = bias - mean * a, which fold for constant parameters.
static weft_status_t emit_batch_norm(node_t* node) {
  TRY(require_channels(node));
  double p[1];
  int64_t training, spatial;
  double momentum;
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-5, &p[0]));
  TRY(weft_onnx_attribute_int(node, "training_mode", 0, &training));
  TRY(weft_onnx_attribute_int(node, "spatial", 1, &spatial));
  TRY(weft_onnx_attribute_float(node, "momentum", 0.9F, &momentum));
  NODE_REQUIRE(node, training || node->output_count == 1, UNSUPPORTED,
               "training mode as it was before opset 14 is not supported");
  NODE_REQUIRE(node, spatial, UNSUPPORTED, "spatial = 0 is not supported");
  value_t *x = node->input[0], *parameter[4], *factor, *offset;
  weft_dtype_e dtype = weft_onnx_accumulator(x->dtype);
  if (training) TRY(batch_statistics(node, x, &momentum, parameter + 2));
  for (int32_t i = 0; i < (training ? 2 : 4); ++i) TRY(per_channel(node, node->input[1 + i], x, dtype, &parameter[i]));
  TRY(weft_onnx_unary(node, reciprocal_root, p, parameter[3], &factor));
  TRY(weft_onnx_binary(node, weft_onnx_body_mul, factor, parameter[0], &factor));
  TRY(weft_onnx_binary(node, weft_onnx_body_mul, parameter[2], factor, &offset));
  TRY(weft_onnx_binary(node, weft_onnx_body_sub, parameter[1], offset, &offset));
  TRY(weft_onnx_cast(node, x, dtype, &x));
  return weft_onnx_pointwise(node, scale_and_shift, NULL, node->input[0]->dtype, 3, (value_t*[]){x, factor, offset},
                             &node->output[0]);
}

// (x - mean) / sqrt(variance + epsilon) over the axes; optionally what it was divided by.
static weft_status_t standardize(node_t* node, value_t* x, uint32_t axes, double epsilon, bool center, value_t** out,
                                 value_t** out_mean, value_t** out_factor) {
  double p[] = {epsilon};
  value_t *mean = NULL, *variance, *factor;
  if (center) {
    TRY(weft_onnx_mean(node, x, axes, true, &mean));
    TRY(weft_onnx_binary(node, weft_onnx_body_sub, x, mean, &x));
  }
  TRY(weft_onnx_unary(node, square, NULL, x, &variance));
  TRY(weft_onnx_mean(node, variance, axes, true, &variance));
  TRY(weft_onnx_unary(node, reciprocal_root, p, variance, &factor));
  if (out_mean) *out_mean = mean;
  if (out_factor) *out_factor = factor;
  return weft_onnx_binary(node, weft_onnx_body_mul, x, factor, out);
}

static weft_status_t scale_shift(node_t* node, value_t* x, value_t* scale, value_t* bias, weft_dtype_e dtype,
                                 value_t** out) {
  if (scale) TRY(weft_onnx_binary(node, weft_onnx_body_mul, x, scale, &x));
  if (bias) TRY(weft_onnx_binary(node, weft_onnx_body_add, x, bias, &x));
  return weft_onnx_cast(node, x, dtype, out);
}

weft_status_t weft_onnx_layer_norm(node_t* node, value_t* x, uint32_t axes, double epsilon, bool center, value_t* scale,
                                   value_t* bias, value_t** out, value_t** out_mean, value_t** out_factor) {
  weft_dtype_e own = x->dtype, dtype = weft_onnx_accumulator(own);
  TRY(weft_onnx_cast(node, x, dtype, &x));
  if (scale) TRY(weft_onnx_cast(node, scale, dtype, &scale));
  if (bias) TRY(weft_onnx_cast(node, bias, dtype, &bias));
  TRY(standardize(node, x, axes, epsilon, center, &x, out_mean, out_factor));
  return scale_shift(node, x, scale, bias, own, out);
}

// LayerNormalization and RMSNormalization.
static weft_status_t emit_layer_norm(node_t* node) {
  value_t *x = node->input[0], *scale = node->input[1], *bias = weft_onnx_input(node, 2), *mean, *factor;
  int32_t axis;
  double epsilon;
  bool center = node->op->kind == 0;
  TRY(weft_onnx_axis(node, -1, x->shape.rank, &axis));
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-5, &epsilon));
  uint32_t axes = ((1u << x->shape.rank) - 1) & ~((1u << axis) - 1);
  TRY(weft_onnx_layer_norm(node, x, axes, epsilon, center, scale, bias, &node->output[0], &mean, &factor));
  if (node->output_count > 1) node->output[1] = center ? mean : factor; // Y, Mean, InvStdDev; RMS: Y, InvStdDev
  if (node->output_count > 2) node->output[2] = factor;
  return weft_ok();
}

static weft_status_t emit_instance_norm(node_t* node) {
  TRY(require_channels(node));
  value_t *x = node->input[0], *scale, *bias;
  double epsilon;
  weft_dtype_e dtype = weft_onnx_accumulator(x->dtype);
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-5, &epsilon));
  TRY(per_channel(node, node->input[1], x, dtype, &scale));
  TRY(per_channel(node, node->input[2], x, dtype, &bias));
  TRY(weft_onnx_cast(node, x, dtype, &x));
  TRY(standardize(node, x, ((1u << x->shape.rank) - 1) & ~3u, epsilon, true, &x, NULL, NULL));
  return scale_shift(node, x, scale, bias, node->input[0]->dtype, &node->output[0]);
}

static weft_status_t emit_group_norm(node_t* node) {
  TRY(require_channels(node));
  value_t *x = node->input[0], *scale, *bias;
  double epsilon;
  int64_t groups;
  weft_dtype_e dtype = weft_onnx_accumulator(x->dtype);
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-5, &epsilon));
  TRY(weft_onnx_attribute_int(node, "num_groups", 0, &groups));
  NODE_REQUIRE(node, groups > 0 && x->shape.extent[1] % groups == 0, INVALID_INPUT,
               "%lld channels do not split into num_groups = %lld", (long long)x->shape.extent[1], (long long)groups);
  NODE_REQUIRE(node, x->shape.rank < WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the input has too many dimensions");
  TRY(per_channel(node, node->input[1], x, dtype, &scale));
  TRY(per_channel(node, node->input[2], x, dtype, &bias));
  shape_t split = {x->shape.rank + 1, {x->shape.extent[0], groups, x->shape.extent[1] / groups}};
  for (int32_t i = 2; i < x->shape.rank; ++i) split.extent[i + 1] = x->shape.extent[i];
  TRY(weft_onnx_cast(node, x, dtype, &x));
  TRY(weft_onnx_reshape(node, x, &split, &x));
  TRY(standardize(node, x, ((1u << split.rank) - 1) & ~3u, epsilon, true, &x, NULL, NULL));
  TRY(weft_onnx_reshape(node, x, &node->input[0]->shape, &x));
  return scale_shift(node, x, scale, bias, node->input[0]->dtype, &node->output[0]);
}

static weft_status_t emit_mean_variance(node_t* node) {
  value_t* x = node->input[0];
  int64_t axes[WEFT_ONNX_MAX_RANK];
  int32_t count;
  uint32_t mask;
  TRY(weft_onnx_attribute_list(node, "axes", WEFT_ONNX_MAX_RANK, axes, &count));
  if (count < 0) memcpy(axes, (int64_t[]){0, 2, 3}, (size_t)(count = 3) * sizeof(int64_t));
  TRY(weft_onnx_axis_mask(node, count, axes, x->shape.rank, &mask));
  return standardize(node, x, mask, 1e-9, true, &node->output[0], NULL, NULL);
}

BODY(absolute) {
  return s_abs(b, x[0]);
}
BODY(root) {
  return s_sqrt(b, x[0]);
}
BODY(safe_divide) { // 0 where the norm is 0
  scalar_t zero = s_const(x[1], 0);
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, x[1], zero), zero, s_div(b, x[0], x[1]));
}

static weft_status_t emit_lp_norm(node_t* node) {
  value_t *x = node->input[0], *norm;
  int64_t exponent;
  int32_t axis;
  TRY(weft_onnx_axis(node, -1, x->shape.rank, &axis));
  TRY(weft_onnx_attribute_int(node, "p", 2, &exponent));
  NODE_REQUIRE(node, exponent == 1 || exponent == 2, INVALID_INPUT, "p is %lld, expected 1 or 2", (long long)exponent);
  TRY(weft_onnx_unary(node, exponent == 1 ? absolute : square, NULL, x, &norm));
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, norm, 1u << axis, true, &norm));
  if (exponent == 2) TRY(weft_onnx_unary(node, root, NULL, norm, &norm));
  return weft_onnx_binary(node, safe_divide, x, norm, &node->output[0]);
}

// p: bias, alpha / size, beta
BODY(lrn_divide) {
  scalar_t base = s_add(b, s_const(x[1], b->p[0]), s_mul(b, x[1], s_const(x[1], b->p[1])));
  return s_div(b, x[0], weft_onnx_scalar_binary(b, WEFT_ONNX_POW, base, s_const(x[1], b->p[2])));
}
BODY(window_sum) {
  return s_add(b, x[2], x[0]);
}

// The sum of squares over `size` neighbouring channels: a window along axis 1.
static weft_status_t emit_lrn(node_t* node) {
  TRY(require_channels(node));
  value_t *x = node->input[0], *squares;
  int64_t size, low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  double p[3], alpha;
  int32_t rank = x->shape.rank;
  TRY(weft_onnx_attribute_int(node, "size", 0, &size));
  TRY(weft_onnx_attribute_float(node, "alpha", 0.0001, &alpha));
  TRY(weft_onnx_attribute_float(node, "beta", 0.75, &p[2]));
  TRY(weft_onnx_attribute_float(node, "bias", 1, &p[0]));
  NODE_REQUIRE(node, size > 0 && size < INT32_MAX, INVALID_INPUT, "size is %lld, expected at least 1", (long long)size);
  p[1] = alpha / (double)size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  TRY(weft_onnx_unary(node, square, NULL, x, &squares));
  TRY(weft_onnx_pad(node, squares, low, high, 0, &squares));
  weft_onnx_generic_t generic = {.rank = rank + 1,
                                 .reduction = 1u << rank,
                                 .operand_count = 2,
                                 .operand = {{squares, rank, {{0}}}, {NULL, 1, {weft_onnx_along(rank)}}},
                                 .dtype = x->dtype,
                                 .body = window_sum};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = x->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i);
  }
  generic.extent[rank] = size;
  generic.operand[0].axis[1] = (weft_onnx_axis_map_t){1, rank, 1, 1, 0};
  TRY(weft_onnx_generic(node, &generic, &squares));
  return weft_onnx_pointwise(node, lrn_divide, p, x->dtype, 2, (value_t*[]){x, squares}, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("BatchNormalization", 1, 5, 5, 5, emit_batch_norm, "training mode from opset 14 on"),
    OPERATOR("GroupNormalization", 21, 3, 3, 1, emit_group_norm, "scale and bias per channel"),
    OPERATOR("InstanceNormalization", 1, 3, 3, 1, emit_instance_norm, ""),
    OPERATOR("LRN", 1, 1, 1, 1, emit_lrn, ""),
    OPERATOR("LayerNormalization", 17, 2, 3, 3, emit_layer_norm, ""),
    OPERATOR("LpNormalization", 1, 1, 1, 1, emit_lp_norm, ""),
    OPERATOR("MeanVarianceNormalization", 9, 1, 1, 1, emit_mean_variance, ""),
    OPERATOR("RMSNormalization", 23, 2, 2, 1, emit_layer_norm, "", .kind = 1),
    OPERATOR("SimplifiedLayerNormalization", 1, 2, 2, 2, emit_layer_norm, "as ONNX Runtime writes it", .kind = 1),
    {0}};

const weft_onnx_family_t weft_onnx_family_normalization = {"Normalisation", operators};
