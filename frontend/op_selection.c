// Picking elements: by constant indices that is movement; by indices of run time it is a product with a one-hot matrix,
// which is never stored: each element is compared with its index.
#include <string.h>

#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// p: the axis' extent, so that negative indices count from its end. x: data, index, position, accumulator.
BODY(pick) {
  scalar_t index = s_cast(b, x[1], WEFT_DTYPE_I64), position = x[2];
  scalar_t from_end = s_sub(b, position, s_const(position, b->p[0]));
  scalar_t hit = weft_onnx_scalar_binary(b, WEFT_ONNX_OR, s_compare(b, WEFT_ONNX_EQ, index, position),
                                         s_compare(b, WEFT_ONNX_EQ, index, from_end));
  return s_add(b, x[3], s_select(b, hit, x[0], s_const(x[0], 0)));
}

static weft_status_t gather_known(node_t* node, value_t* data, const value_t* index, int32_t axis, value_t** out) {
  int64_t count = weft_onnx_count(index), extent = data->shape.extent[axis], *list;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, &list));
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = weft_onnx_load_int(index, i);
    NODE_REQUIRE(node, at >= -extent && at < extent, INVALID_INPUT,
                 "index %lld is outside of axis %d with %lld elements", (long long)at, axis, (long long)extent);
    list[i] = at < 0 ? at + extent : at;
  }
  return weft_onnx_take(node, data, axis, count, list, out);
}

static weft_status_t gather_at_run_time(node_t* node, value_t* data, value_t* index, int32_t axis, value_t** out) {
  int32_t rank = data->shape.rank, picked = index->shape.rank, k = rank - 1 + picked;
  double p[] = {(double)data->shape.extent[axis]};
  value_t* position;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, data->shape.extent[axis], &position));
  weft_onnx_generic_t generic = {
      .rank = k + 1, .reduction = 1u << k, .operand_count = 3, .dtype = data->dtype, .body = pick, .p = p};
  NODE_REQUIRE(node, k <= WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the result has more than %d dimensions",
               WEFT_ONNX_MAX_RANK);
  generic.operand[0] = (weft_onnx_operand_t){.value = data, .rank = rank};
  generic.operand[1] = (weft_onnx_operand_t){.value = index, .rank = picked};
  generic.operand[2] = (weft_onnx_operand_t){.value = position, .rank = 1, .axis = {weft_onnx_along(k)}};
  for (int32_t i = 0; i < rank; ++i) {
    int32_t dim = i == axis ? k : i < axis ? i : i - 1 + picked;
    generic.operand[0].axis[i] = weft_onnx_along(dim);
    generic.extent[dim] = data->shape.extent[i];
  }
  for (int32_t i = 0; i < picked; ++i) {
    generic.operand[1].axis[i] = weft_onnx_along(axis + i);
    generic.extent[axis + i] = index->shape.extent[i];
  }
  return weft_onnx_generic(node, &generic, out);
}

weft_status_t weft_onnx_gather(node_t* node, value_t* data, value_t* index, int32_t axis, value_t** out) {
  NODE_REQUIRE(node, index->dtype == WEFT_DTYPE_I64 || index->dtype == WEFT_DTYPE_I32, INVALID_INPUT,
               "indices are %s, expected i32 or i64", weft_dtype_name(index->dtype));
  if (!index->data) return gather_at_run_time(node, data, index, axis, out);
  shape_t shape = {.rank = data->shape.rank - 1 + index->shape.rank};
  NODE_REQUIRE(node, shape.rank <= WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the result has more than %d dimensions",
               WEFT_ONNX_MAX_RANK);
  for (int32_t i = 0; i < shape.rank; ++i) {
    int32_t past = i - axis - index->shape.rank;
    shape.extent[i] = i < axis   ? data->shape.extent[i]
                      : past < 0 ? index->shape.extent[i - axis]
                                 : data->shape.extent[axis + 1 + past];
  }
  TRY(gather_known(node, data, index, axis, out));
  return weft_onnx_reshape(node, *out, &shape, out);
}

static weft_status_t emit_gather(node_t* node) {
  int32_t axis;
  TRY(weft_onnx_axis(node, 0, node->input[0]->shape.rank, &axis));
  return weft_onnx_gather(node, node->input[0], node->input[1], axis, &node->output[0]);
}

// out[i, j] = data[index[i, j], j] for axis 0: as pick, but the other axes are the index's own.
static weft_status_t emit_gather_elements(node_t* node) {
  value_t *data = node->input[0], *index = node->input[1], *position;
  int32_t rank = data->shape.rank, axis;
  TRY(weft_onnx_axis(node, 0, rank, &axis));
  NODE_REQUIRE(node, index->shape.rank == rank, INVALID_INPUT, "indices have shape %s, expected rank %d",
               weft_onnx_shape_format(&index->shape).text, rank);
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    size[i] = i == axis ? data->shape.extent[i] : index->shape.extent[i];
    step[i] = 1;
    NODE_REQUIRE(node, size[i] <= data->shape.extent[i], INVALID_INPUT, "indices have shape %s, data has %s",
                 weft_onnx_shape_format(&index->shape).text, weft_onnx_shape_format(&data->shape).text);
  }
  TRY(weft_onnx_slice(node, data, offset, size, step, &data));
  double p[] = {(double)data->shape.extent[axis]};
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, data->shape.extent[axis], &position));
  weft_onnx_generic_t generic = {
      .rank = rank + 1,
      .reduction = 1u << rank,
      .operand_count = 3,
      .operand = {{data, rank, {{0}}}, {index, rank, {{0}}}, {position, 1, {weft_onnx_along(rank)}}},
      .dtype = data->dtype,
      .body = pick,
      .p = p};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = index->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i == axis ? rank : i);
    generic.operand[1].axis[i] = weft_onnx_along(i);
  }
  generic.extent[rank] = data->shape.extent[axis];
  return weft_onnx_generic(node, &generic, &node->output[0]);
}

BODY(masked) {
  return s_select(b, x[1], x[0], s_const(x[0], 0));
}

static weft_status_t emit_trilu(node_t* node) {
  value_t *value = node->input[0], *mask;
  int64_t upper;
  double k;
  int32_t rank = value->shape.rank;
  TRY(weft_onnx_attribute_int(node, "upper", 1, &upper));
  TRY(weft_onnx_known_number(node, 1, "k", 0, &k));
  NODE_REQUIRE(node, rank >= 2, INVALID_INPUT, "input has rank %d, expected at least 2", rank);
  shape_t shape = weft_onnx_shape_make(2, value->shape.extent + rank - 2);
  uint8_t* data;
  TRY(weft_arena_allocate(node->builder->arena, (size_t)(shape.extent[0] * shape.extent[1]) + 1, 1, (void**)&data));
  for (int64_t i = 0; i < shape.extent[0]; ++i)
    for (int64_t j = 0; j < shape.extent[1]; ++j)
      data[i * shape.extent[1] + j] = upper ? (double)(j - i) >= k : (double)(j - i) <= k;
  TRY(weft_onnx_known(node, WEFT_DTYPE_BOOL, &shape, data, &mask));
  return weft_onnx_pointwise(node, masked, NULL, value->dtype, 2, (value_t*[]){value, mask}, &node->output[0]);
}

// p: depth. x: index, position, off value, on value.
BODY(one_hot) {
  scalar_t index = s_cast(b, x[0], WEFT_DTYPE_I64), from_end = s_sub(b, x[1], s_const(x[1], b->p[0]));
  scalar_t hit = weft_onnx_scalar_binary(b, WEFT_ONNX_OR, s_compare(b, WEFT_ONNX_EQ, index, x[1]),
                                         s_compare(b, WEFT_ONNX_EQ, index, from_end));
  return s_select(b, hit, x[3], x[2]);
}

static weft_status_t emit_one_hot(node_t* node) {
  value_t *index = node->input[0], *values = node->input[2], *position, *pair[2];
  double depth;
  int64_t given;
  int32_t axis;
  TRY(weft_onnx_known_number(node, 1, "depth", 0, &depth));
  TRY(weft_onnx_attribute_int(node, "axis", -1, &given));
  TRY(weft_onnx_normalize_axis(node, given, index->shape.rank + 1, &axis));
  NODE_REQUIRE(node, depth >= 1 && depth < INT32_MAX && weft_onnx_count(values) == 2, INVALID_INPUT,
               "depth is %g and values have shape %s, expected at least 1 and [2]", depth,
               weft_onnx_shape_format(&values->shape).text);
  for (int64_t i = 0; i < 2; ++i) {
    TRY(weft_onnx_take(node, values, 0, 1, &i, &pair[i]));
    TRY(weft_onnx_reshape(node, pair[i], &(shape_t){0}, &pair[i]));
  }
  TRY(weft_onnx_unsqueeze(node, index, axis, &index));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, (int64_t)depth, &position));
  shape_t shape = {.rank = index->shape.rank - axis, .extent = {(int64_t)depth}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_reshape(node, position, &shape, &position));
  return weft_onnx_pointwise(node, one_hot, &depth, values->dtype, 4, (value_t*[]){index, position, pair[0], pair[1]},
                             &node->output[0]);
}

weft_status_t weft_onnx_apply_matrix(node_t* node, value_t* matrix, value_t* value, int32_t axis, value_t** out) {
  int32_t rank = value->shape.rank;
  weft_onnx_generic_t generic = {
      .rank = rank + 1,
      .reduction = 1u << rank,
      .operand_count = 2,
      .operand = {{value, rank, {{0}}}, {matrix, 2, {weft_onnx_along(axis), weft_onnx_along(rank)}}},
      .dtype = weft_onnx_accumulator(value->dtype),
      .body = weft_onnx_body_mul_add};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = i == axis ? matrix->shape.extent[0] : value->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i == axis ? rank : i);
  }
  generic.extent[rank] = value->shape.extent[axis];
  return weft_onnx_generic(node, &generic, out);
}

// A product with a triangle of ones.
static weft_status_t emit_cumsum(node_t* node) {
  value_t *value = node->input[0], *matrix;
  double given;
  int64_t exclusive, reverse;
  int32_t axis;
  TRY(weft_onnx_known_number(node, 1, "axis", 0, &given));
  TRY(weft_onnx_normalize_axis(node, (int64_t)given, value->shape.rank, &axis));
  TRY(weft_onnx_attribute_int(node, "exclusive", 0, &exclusive));
  TRY(weft_onnx_attribute_int(node, "reverse", 0, &reverse));
  int64_t extent = value->shape.extent[axis];
  size_t width = weft_dtype_size(value->dtype);
  shape_t shape = {2, {extent, extent}};
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 24), UNSUPPORTED,
               "an axis of %lld elements is too long", (long long)extent);
  uint8_t* data;
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t o = 0; o < extent; ++o)
    for (int64_t i = 0; i < extent; ++i) {
      int64_t behind = reverse ? i - o : o - i;
      weft_dtype_store(value->dtype, behind >= (exclusive ? 1 : 0), data + (size_t)(o * extent + i) * width);
    }
  TRY(weft_onnx_known(node, value->dtype, &shape, data, &matrix));
  TRY(weft_onnx_apply_matrix(node, matrix, value, axis, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], value->dtype, &node->output[0]);
}

// p: 1 when the element itself is left out, 1 from the end on. x: element, position of the result, of the element,
// accumulator.
BODY(product_so_far) {
  scalar_t from = b->p[1] != 0 ? x[1] : x[2], to = b->p[1] != 0 ? x[2] : x[1];
  scalar_t counts = s_compare(b, b->p[0] != 0 ? WEFT_ONNX_LT : WEFT_ONNX_LE, from, to);
  return s_mul(b, x[3], s_select(b, counts, s_cast(b, x[0], x[3].dtype), s_const(x[3], 1)));
}

static weft_status_t emit_cumprod(node_t* node) {
  value_t *value = node->input[0], *position;
  double given;
  int64_t exclusive, reverse;
  int32_t rank = value->shape.rank, axis;
  TRY(weft_onnx_known_number(node, 1, "axis", 0, &given));
  TRY(weft_onnx_normalize_axis(node, (int64_t)given, rank, &axis));
  TRY(weft_onnx_attribute_int(node, "exclusive", 0, &exclusive));
  TRY(weft_onnx_attribute_int(node, "reverse", 0, &reverse));
  double p[] = {(double)exclusive, (double)reverse};
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, value->shape.extent[axis], &position));
  weft_onnx_generic_t generic = {
      .rank = rank + 1,
      .reduction = 1u << rank,
      .operand_count = 3,
      .operand = {{value, rank, {{0}}}, {position, 1, {weft_onnx_along(axis)}}, {position, 1, {weft_onnx_along(rank)}}},
      .dtype = weft_onnx_accumulator(value->dtype),
      .initial = 1,
      .body = product_so_far,
      .p = p};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = value->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i == axis ? rank : i);
  }
  generic.extent[rank] = value->shape.extent[axis];
  TRY(weft_onnx_generic(node, &generic, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], value->dtype, &node->output[0]);
}

// x: length, position. Where the element at a position comes from.
BODY(reversed_position) {
  scalar_t length = s_cast(b, x[0], WEFT_DTYPE_I64);
  scalar_t mirrored = s_sub(b, s_sub(b, length, s_const(length, 1)), x[1]);
  return s_select(b, s_compare(b, WEFT_ONNX_LT, x[1], length), mirrored, x[1]);
}

// Each sequence of a batch is read from its end, as far as it is long.
static weft_status_t emit_reverse_sequence(node_t* node) {
  value_t *value = node->input[0], *length = node->input[1], *position;
  int32_t rank = value->shape.rank;
  int64_t batch, time;
  TRY(weft_onnx_attribute_int(node, "batch_axis", 1, &batch));
  TRY(weft_onnx_attribute_int(node, "time_axis", 0, &time));
  NODE_REQUIRE(node, rank >= 2 && batch + time == 1 && (batch == 0 || batch == 1), INVALID_INPUT,
               "batch_axis is %lld and time_axis %lld for an input of rank %d, expected 0 and 1", (long long)batch,
               (long long)time, rank);
  int64_t steps = value->shape.extent[time];
  NODE_REQUIRE(node, length->shape.rank == 1 && length->shape.extent[0] == value->shape.extent[batch], INVALID_INPUT,
               "sequence_lens has shape %s, expected [%lld]", weft_onnx_shape_format(&length->shape).text,
               (long long)value->shape.extent[batch]);
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, steps, &position));
  TRY(weft_onnx_unsqueeze(node, length, 1, &length));
  TRY(weft_onnx_pointwise(node, reversed_position, NULL, WEFT_DTYPE_I64, 2, (value_t*[]){length, position}, &length));
  double p[] = {(double)steps};
  weft_onnx_generic_t generic = {
      .rank = rank + 1,
      .reduction = 1u << rank,
      .operand_count = 3,
      .operand = {{value, rank, {{0}}},
                  {length, 2, {weft_onnx_along((int32_t)batch), weft_onnx_along((int32_t)time)}},
                  {position, 1, {weft_onnx_along(rank)}}},
      .dtype = value->dtype,
      .body = pick,
      .p = p};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = value->shape.extent[i];
    generic.operand[0].axis[i] = weft_onnx_along(i == time ? rank : i);
  }
  generic.extent[rank] = steps;
  return weft_onnx_generic(node, &generic, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("CumProd", 26, 2, 2, 1, emit_cumprod, "constant axis"),
    OPERATOR("CumSum", 11, 2, 2, 1, emit_cumsum, "constant axis"),
    OPERATOR("Gather", 1, 2, 2, 1, emit_gather, "indices of run time cost a pass over the axis each"),
    OPERATOR("GatherElements", 11, 2, 2, 1, emit_gather_elements, "indices cost a pass over the axis each"),
    OPERATOR("OneHot", 9, 3, 3, 1, emit_one_hot, "constant depth"),
    OPERATOR("ReverseSequence", 10, 2, 2, 1, emit_reverse_sequence, "costs a pass over the time axis for each element"),
    OPERATOR("Trilu", 14, 1, 2, 1, emit_trilu, "constant k"),
    {0}};

const weft_onnx_family_t weft_onnx_family_selection = {"Selection", operators};
