// Order by counting: an element's rank is how many come before it, and the element of rank r is the sum over all that
// have rank r. So sorting is two reductions, with no data-dependent control.
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// p: whether the largest is first. x: the element, another, their positions, accumulator. Equals keep their order.
BODY(count_before) {
  scalar_t is_ahead = s_compare(b, b->p[0] != 0 ? WEFT_ONNX_GT : WEFT_ONNX_LT, x[1], x[0]);
  scalar_t is_equal = s_compare(b, WEFT_ONNX_EQ, x[1], x[0]), is_earlier = s_compare(b, WEFT_ONNX_LT, x[3], x[2]);
  scalar_t before = weft_onnx_scalar_binary(b, WEFT_ONNX_OR, is_ahead,
                                            weft_onnx_scalar_binary(b, WEFT_ONNX_AND, is_equal, is_earlier));
  return s_add(b, x[4], s_select(b, before, s_const(x[4], 1), s_const(x[4], 0)));
}
// x: element, its rank, the rank asked for, accumulator.
BODY(of_rank) {
  scalar_t element = s_cast(b, x[0], x[3].dtype);
  return s_add(b, x[3], s_select(b, s_compare(b, WEFT_ONNX_EQ, x[1], x[2]), element, s_const(x[3], 0)));
}

// Along one axis of `value`; position is 0, 1, ..
static weft_status_t ranks(node_t* node, value_t* value, value_t* position, int32_t axis, bool largest, value_t** out) {
  int32_t rank = value->shape.rank;
  double p[] = {largest};
  weft_onnx_generic_t generic = {.rank = rank + 1,
                                 .reduction = 1u << rank,
                                 .operand_count = 4,
                                 .operand = {{value, rank, {{0}}},
                                             {value, rank, {{0}}},
                                             {position, 1, {weft_onnx_along(axis)}},
                                             {position, 1, {weft_onnx_along(rank)}}},
                                 .dtype = WEFT_DTYPE_I32,
                                 .body = count_before,
                                 .p = p};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = value->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i);
    generic.operand[1].axis[i] = weft_onnx_along(i == axis ? rank : i);
  }
  generic.extent[rank] = value->shape.extent[axis];
  return weft_onnx_generic(node, &generic, out);
}

// The first `count` of `value` (of the ranks' shape, or one axis: the same for all) in the ranks' order.
static weft_status_t in_order(node_t* node, value_t* value, value_t* rank_of, int32_t axis, int64_t count,
                              weft_dtype_e dtype, value_t** out) {
  int32_t rank = rank_of->shape.rank;
  value_t* wanted;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, count, &wanted));
  weft_onnx_generic_t generic = {
      .rank = rank + 1,
      .reduction = 1u << rank,
      .operand_count = 3,
      .operand = {{value, value->shape.rank, {{0}}}, {rank_of, rank, {{0}}}, {wanted, 1, {weft_onnx_along(axis)}}},
      .dtype = dtype,
      .body = of_rank};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = i == axis ? count : rank_of->shape.extent[i];
    generic.operand[1].axis[i] = weft_onnx_along(i == axis ? rank : i);
    generic.operand[0].axis[i] = generic.operand[1].axis[i];
  }
  if (value->shape.rank == 1) // positions
    generic.operand[0].axis[0] = weft_onnx_along(rank);
  generic.extent[rank] = rank_of->shape.extent[axis];
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t emit_top_k(node_t* node) {
  value_t *value = node->input[0], *position, *rank_of;
  int64_t largest, attribute;
  double k;
  int32_t axis;
  TRY(weft_onnx_axis(node, -1, value->shape.rank, &axis));
  TRY(weft_onnx_attribute_int(node, "largest", 1, &largest));
  TRY(weft_onnx_attribute_int(node, "k", -1, &attribute));
  k = (double)attribute;
  if (node->opset >= 10) TRY(weft_onnx_known_number(node, 1, "k", -1, &k));
  int64_t extent = value->shape.extent[axis];
  NODE_REQUIRE(node, k >= 0 && k <= (double)extent && extent < INT32_MAX, INVALID_INPUT,
               "k is %g, expected at most the %lld elements of axis %d", k, (long long)extent, axis);
  int64_t count = (int64_t)k;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, extent, &position));
  TRY(ranks(node, value, position, axis, largest != 0, &rank_of));
  TRY(in_order(node, value, rank_of, axis, count, value->dtype, &node->output[0]));
  if (node->output_count < 2) return weft_ok();
  return in_order(node, position, rank_of, axis, count, WEFT_DTYPE_I64, &node->output[1]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("TopK", 1, 1, 2, 2, emit_top_k, "constant k; costs the square of the axis"), {0}};

const weft_onnx_family_t weft_onnx_family_sort = {"Order", operators};
