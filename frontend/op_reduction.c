// Reductions over axes, and softmax and arg-max, which are made of them.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
BODY(scale) {
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}
BODY(divide) {
  return s_div(b, x[0], s_const(x[0], b->p[0]));
}
BODY(absolute) {
  return s_abs(b, x[0]);
}
BODY(square) {
  return s_mul(b, x[0], x[0]);
}
BODY(root) {
  return s_sqrt(b, x[0]);
}
BODY(logarithm) {
  return s_log(b, x[0]);
}
BODY(shifted_exp) {
  return s_exp(b, s_sub(b, x[0], x[1]));
}
BODY(shifted_log) {
  return s_add(b, s_log(b, x[0]), x[1]);
}

static int64_t reduced_count(const value_t* value, uint32_t axes) {
  int64_t count = 1;
  for (int32_t i = 0; i < value->shape.rank; ++i)
    if (axes >> i & 1) count *= value->shape.extent[i];
  return count;
}

weft_status_t weft_onnx_mean(node_t* node, value_t* value, uint32_t axes, bool keep, value_t** out) {
  weft_dtype_e dtype = value->dtype;
  double count = (double)reduced_count(value, axes), p[] = {weft_dtype_is_float(dtype) ? 1 / count : count};
  value_t* sum;
  TRY(weft_onnx_cast(node, value, weft_onnx_accumulator(dtype), &value));
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, value, axes, keep, &sum));
  return weft_onnx_pointwise(node, weft_dtype_is_float(dtype) ? scale : divide, p, dtype, 1, &sum, out);
}

enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP };

static weft_status_t sum(node_t* node, value_t* value, uint32_t axes, bool keep, value_t** out) {
  return weft_onnx_reduce(node, weft_onnx_body_sum, 0, value, axes, keep, out);
}

// log(sum(exp(x - m))) + m with m the largest x: does not overflow.
static weft_status_t log_sum_exp(node_t* node, value_t* value, uint32_t axes, bool keep, value_t** out) {
  value_t *largest, *shifted, *flat;
  TRY(weft_onnx_reduce(node, weft_onnx_body_max, weft_onnx_lowest(value->dtype), value, axes, true, &largest));
  TRY(weft_onnx_binary(node, shifted_exp, value, largest, &shifted));
  TRY(sum(node, shifted, axes, keep, &shifted));
  TRY(weft_onnx_reshape(node, largest, &shifted->shape, &flat));
  return weft_onnx_binary(node, shifted_log, shifted, flat, out);
}

static weft_status_t reduce_kind(node_t* node, int32_t kind, value_t* value, uint32_t axes, bool keep, value_t** out) {
  weft_dtype_e dtype = value->dtype;
  switch (kind) {
  case MEAN:
    return weft_onnx_mean(node, value, axes, keep, out);
  case MAX:
    return weft_onnx_reduce(node, weft_onnx_body_max, weft_onnx_lowest(dtype), value, axes, keep, out);
  case MIN:
    return weft_onnx_reduce(node, weft_onnx_body_min, weft_onnx_highest(dtype), value, axes, keep, out);
  case PROD:
    return weft_onnx_reduce(node, weft_onnx_body_product, 1, value, axes, keep, out);
  case LOG_SUM_EXP:
    return log_sum_exp(node, value, axes, keep, out);
  default:
    break;
  }
  weft_onnx_body_fn before = kind == L1 ? absolute : kind == L2 || kind == SUM_SQUARE ? square : NULL;
  weft_onnx_body_fn after = kind == L2 ? root : kind == LOG_SUM ? logarithm : NULL;
  NODE_REQUIRE(node, !after || weft_dtype_is_float(dtype), UNSUPPORTED, "it is not supported for %s",
               weft_dtype_name(dtype));
  if (before) TRY(weft_onnx_unary(node, before, NULL, value, &value));
  TRY(sum(node, value, axes, keep, out));
  return after ? weft_onnx_unary(node, after, NULL, *out, out) : weft_ok();
}

static weft_status_t emit_reduce(node_t* node) {
  value_t* value = node->input[0];
  int64_t axes[WEFT_ONNX_MAX_RANK], keep, noop;
  int32_t count, rank = value->shape.rank;
  uint32_t mask;
  TRY(weft_onnx_ints_since(node, node->op->kind == SUM ? 13 : 18, 1, "axes", WEFT_ONNX_MAX_RANK, axes, &count));
  TRY(weft_onnx_attribute_int(node, "keepdims", 1, &keep));
  TRY(weft_onnx_attribute_int(node, "noop_with_empty_axes", 0, &noop));
  TRY(weft_onnx_axis_mask(node, count < 0 ? 0 : count, axes, rank, &mask));
  if (count <= 0 && !noop) mask = (1u << rank) - 1;
  weft_dtype_e dtype = value->dtype;
  TRY(weft_onnx_cast(node, value, weft_onnx_accumulator(dtype), &value));
  TRY(reduce_kind(node, node->op->kind, value, mask, keep != 0, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], dtype, &node->output[0]);
}

// Over one axis; before opset 13 over all axes from `axis` on, as the input was flattened to a matrix.
static weft_status_t softmax_axes(node_t* node, uint32_t* out_mask) {
  int32_t rank = node->input[0]->shape.rank, axis;
  if (node->opset >= 13) {
    TRY(weft_onnx_axis(node, -1, rank, &axis));
    *out_mask = 1u << axis;
    return weft_ok();
  }
  TRY(weft_onnx_axis(node, 1, rank, &axis));
  *out_mask = ((1u << rank) - 1) & ~((1u << axis) - 1);
  return weft_ok();
}

// Of softmax: the exponents less the largest, and the sum of their powers.
static weft_status_t shifted_and_total(node_t* node, value_t* value, uint32_t axes, value_t** shifted, value_t** powers,
                                       value_t** total) {
  value_t* largest;
  weft_dtype_e dtype = value->dtype;
  TRY(weft_onnx_reduce(node, weft_onnx_body_max, weft_onnx_lowest(dtype), value, axes, true, &largest));
  TRY(weft_onnx_binary(node, weft_onnx_body_sub, value, largest, shifted));
  TRY(weft_onnx_unary(node, weft_onnx_body_exp, NULL, *shifted, powers));
  return sum(node, *powers, axes, true, total);
}

weft_status_t weft_onnx_log_softmax(node_t* node, value_t* value, uint32_t axes, value_t** out) {
  value_t *shifted, *powers, *total;
  weft_dtype_e dtype = value->dtype;
  TRY(weft_onnx_cast(node, value, weft_onnx_accumulator(dtype), &value));
  TRY(shifted_and_total(node, value, axes, &shifted, &powers, &total));
  TRY(weft_onnx_unary(node, logarithm, NULL, total, &total));
  return weft_onnx_pointwise(node, weft_onnx_body_sub, NULL, dtype, 2, (value_t*[]){shifted, total}, out);
}

weft_status_t weft_onnx_softmax(node_t* node, value_t* value, uint32_t axes, value_t** out) {
  value_t *shifted, *powers, *total;
  weft_dtype_e dtype = value->dtype;
  TRY(weft_onnx_cast(node, value, weft_onnx_accumulator(dtype), &value));
  TRY(shifted_and_total(node, value, axes, &shifted, &powers, &total));
  return weft_onnx_pointwise(node, weft_onnx_body_div, NULL, dtype, 2, (value_t*[]){powers, total}, out);
}

static weft_status_t emit_softmax(node_t* node) {
  uint32_t axes;
  value_t* value = node->input[0];
  TRY(softmax_axes(node, &axes));
  NODE_REQUIRE(node, weft_dtype_is_float(value->dtype), INVALID_INPUT, "input is %s, expected a float type",
               weft_dtype_name(value->dtype));
  return (node->op->kind ? weft_onnx_log_softmax : weft_onnx_softmax)(node, value, axes, &node->output[0]);
}

weft_status_t weft_onnx_iota(node_t* node, weft_dtype_e dtype, int64_t count, value_t** out) {
  uint8_t* data;
  shape_t shape = {1, {count}};
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(dtype, (double)i, data + (size_t)i * width);
  return weft_onnx_known(node, dtype, &shape, data, out);
}

// Where x is the extremum its index, elsewhere p[0].
BODY(index_of_equal) {
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, x[0], x[1]), x[2], s_const(x[2], b->p[0]));
}

// The position of the extremum along an axis as i64 with extent 1 there.
static weft_status_t arg_extremum(node_t* node, value_t* value, int32_t axis, bool largest, bool last, value_t** out) {
  value_t *extremum, *index, *position;
  int64_t count = value->shape.extent[axis];
  weft_onnx_body_fn body = largest ? weft_onnx_body_max : weft_onnx_body_min;
  double initial = largest ? weft_onnx_lowest(value->dtype) : weft_onnx_highest(value->dtype);
  TRY(weft_onnx_reduce(node, body, initial, value, 1u << axis, true, &extremum));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, count, &index));
  shape_t shape = {.rank = value->shape.rank - axis, .extent = {count}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_reshape(node, index, &shape, &index));
  double p[] = {last ? -1 : (double)count};
  TRY(weft_onnx_pointwise(node, index_of_equal, p, WEFT_DTYPE_I64, 3, (value_t*[]){value, extremum, index}, &position));
  return weft_onnx_reduce(node, last ? weft_onnx_body_max : weft_onnx_body_min, p[0], position, 1u << axis, true, out);
}

static weft_status_t emit_arg(node_t* node) {
  value_t* value = node->input[0];
  int64_t keep, last;
  int32_t axis;
  TRY(weft_onnx_axis(node, 0, value->shape.rank, &axis));
  TRY(weft_onnx_attribute_int(node, "keepdims", 1, &keep));
  TRY(weft_onnx_attribute_int(node, "select_last_index", 0, &last));
  TRY(arg_extremum(node, value, axis, node->op->kind == MAX, last != 0, &node->output[0]));
  if (keep) return weft_ok();
  shape_t shape = {0};
  for (int32_t i = 0; i < value->shape.rank; ++i)
    if (i != axis) shape.extent[shape.rank++] = value->shape.extent[i];
  return weft_onnx_reshape(node, node->output[0], &shape, &node->output[0]);
}

BODY(one_where_equal) {
  return s_compare(b, WEFT_ONNX_EQ, x[0], x[1]);
}

static weft_status_t emit_hardmax(node_t* node) {
  value_t *value = node->input[0], *position, *index;
  int32_t axis;
  TRY(weft_onnx_axis(node, node->opset >= 13 ? -1 : 1, value->shape.rank, &axis));
  NODE_REQUIRE(node, node->opset >= 13 || axis == value->shape.rank - 1, UNSUPPORTED,
               "before opset 13 only the last axis is supported");
  TRY(arg_extremum(node, value, axis, true, false, &position));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, value->shape.extent[axis], &index));
  shape_t shape = {.rank = value->shape.rank - axis, .extent = {value->shape.extent[axis]}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_reshape(node, index, &shape, &index));
  return weft_onnx_pointwise(node, one_where_equal, NULL, value->dtype, 2, (value_t*[]){position, index},
                             &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("ArgMax", 1, 1, 1, 1, emit_arg, "", .kind = MAX),
    OPERATOR("ArgMin", 1, 1, 1, 1, emit_arg, "", .kind = MIN),
    OPERATOR("Hardmax", 1, 1, 1, 1, emit_hardmax, "before opset 13 the last axis only"),
    OPERATOR("LogSoftmax", 1, 1, 1, 1, emit_softmax, "", .kind = 1),
    OPERATOR("ReduceL1", 1, 1, 2, 1, emit_reduce, "", .kind = L1),
    OPERATOR("ReduceL2", 1, 1, 2, 1, emit_reduce, "floats", .kind = L2),
    OPERATOR("ReduceLogSum", 1, 1, 2, 1, emit_reduce, "floats", .kind = LOG_SUM),
    OPERATOR("ReduceLogSumExp", 1, 1, 2, 1, emit_reduce, "floats", .kind = LOG_SUM_EXP),
    OPERATOR("ReduceMax", 1, 1, 2, 1, emit_reduce, "", .kind = MAX),
    OPERATOR("ReduceMean", 1, 1, 2, 1, emit_reduce, "", .kind = MEAN),
    OPERATOR("ReduceMin", 1, 1, 2, 1, emit_reduce, "", .kind = MIN),
    OPERATOR("ReduceProd", 1, 1, 2, 1, emit_reduce, "", .kind = PROD),
    OPERATOR("ReduceSum", 1, 1, 2, 1, emit_reduce, "", .kind = SUM),
    OPERATOR("ReduceSumSquare", 1, 1, 2, 1, emit_reduce, "", .kind = SUM_SQUARE),
    OPERATOR("Softmax", 1, 1, 1, 1, emit_softmax, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_reduction = {"Reductions", operators};
