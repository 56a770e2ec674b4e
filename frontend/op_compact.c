// Results whose length depends on the elements. Known elements decide it while importing. At run time the model has to
// declare the result's length, or --dim gives it: so many are kept, and what is left of them is filled.
#include <string.h>

#include "frontend/io.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

BODY(is_non_zero) {
  return s_compare(b, WEFT_ONNX_NE, x[0], s_const(x[0], 0));
}
scalar_t weft_onnx_body_below(body_t* b, const scalar_t* x) {
  return s_compare(b, WEFT_ONNX_LT, x[0], s_const(x[0], b->p[0]));
}
// x: flag, its position, another position, accumulator.
BODY(flags_before) {
  scalar_t counts = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x[0], s_compare(b, WEFT_ONNX_LT, x[1], x[2]));
  return s_add(b, x[3], s_select(b, counts, s_const(x[3], 1), s_const(x[3], 0)));
}
// x: flag, flags before it, position asked for, element, accumulator.
BODY(kept) {
  scalar_t is_it = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x[0], s_compare(b, WEFT_ONNX_EQ, x[1], x[2]));
  return s_add(b, x[4], s_select(b, is_it, s_cast(b, x[3], x[4].dtype), s_const(x[4], 0)));
}
BODY(less_one) {
  return s_sub(b, x[0], s_const(x[0], 1));
}
BODY(plus_one) {
  return s_add(b, x[0], s_const(x[0], 1));
}

// How many flags are set, or the declared extent.
static weft_status_t length_of(node_t* node, const value_t* flags, int32_t rank, int32_t axis, int64_t* out) {
  if (!flags->data) return weft_onnx_declared_extent(node, rank, axis, out);
  *out = 0;
  for (int64_t i = 0; i < weft_onnx_count(flags); ++i) *out += weft_onnx_load_int(flags, i) != 0;
  return weft_ok();
}

static weft_status_t flagged_positions(node_t* node, const value_t* flags, int64_t length, int64_t** out) {
  int64_t at = 0;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)length + 1, out));
  for (int64_t i = 0; i < weft_onnx_count(flags); ++i)
    if (weft_onnx_load_int(flags, i)) (*out)[at++] = i;
  return weft_ok();
}

static weft_status_t count_before(node_t* node, value_t* flags, value_t** out) {
  int64_t count = weft_onnx_count(flags);
  value_t* position;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, count, &position));
  weft_onnx_generic_t generic = {.rank = 2,
                                 .extent = {count, count},
                                 .reduction = 2,
                                 .operand_count = 3,
                                 .operand = {{flags, 1, {weft_onnx_along(1)}},
                                             {position, 1, {weft_onnx_along(1)}},
                                             {position, 1, {weft_onnx_along(0)}}},
                                 .dtype = WEFT_DTYPE_I32,
                                 .body = flags_before};
  return weft_onnx_generic(node, &generic, out);
}

weft_status_t weft_onnx_keep_flagged(node_t* node, value_t* flags, value_t* before, value_t* value, int64_t length,
                                     value_t** out) {
  value_t* position;
  const int64_t* extent = value->shape.extent;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, length, &position));
  weft_onnx_generic_t generic = {.rank = 4,
                                 .extent = {extent[0], length, extent[2], extent[1]},
                                 .reduction = 1u << 3,
                                 .operand_count = 4,
                                 .operand = {{flags, 1, {weft_onnx_along(3)}},
                                             {before, 1, {weft_onnx_along(3)}},
                                             {position, 1, {weft_onnx_along(1)}},
                                             {value, 3, {weft_onnx_along(0), weft_onnx_along(3), weft_onnx_along(2)}}},
                                 .dtype = value->dtype,
                                 .body = kept};
  return weft_onnx_generic(node, &generic, out);
}

weft_status_t weft_onnx_compact(node_t* node, value_t* flags, int32_t count, value_t* const* columns,
                                weft_dtype_e dtype, int32_t axis, value_t** out) {
  value_t *before, *part[WEFT_ONNX_MAX_RANK];
  int64_t length, *index;
  TRY(length_of(node, flags, 2, 1 - axis, &length));
  shape_t shape = axis ? (shape_t){2, {length, 1}} : (shape_t){2, {1, length}};
  if (flags->data)
    TRY(flagged_positions(node, flags, length, &index));
  else
    TRY(count_before(node, flags, &before));
  for (int32_t i = 0; i < count; ++i) {
    TRY(weft_onnx_cast(node, columns[i], dtype, &part[i]));
    if (flags->data) {
      TRY(weft_onnx_take(node, part[i], 0, length, index, &part[i]));
    } else { // 0 would be an index; so they count from 1 until they are kept
      TRY(weft_onnx_unary(node, plus_one, NULL, part[i], &part[i]));
      TRY(weft_onnx_reshape(node, part[i], &(shape_t){3, {1, weft_onnx_count(flags), 1}}, &part[i]));
      TRY(weft_onnx_keep_flagged(node, flags, before, part[i], length, &part[i]));
      TRY(weft_onnx_unary(node, less_one, NULL, part[i], &part[i]));
    }
    TRY(weft_onnx_reshape(node, part[i], &shape, &part[i]));
  }
  return weft_onnx_concat(node, axis, count, part, out);
}

static weft_status_t emit_non_zero(node_t* node) {
  value_t *value = node->input[0], *flags, *column[WEFT_ONNX_MAX_RANK];
  const shape_t* shape = &value->shape;
  int64_t count = weft_onnx_count(value), *index;
  int32_t rank = shape->rank ? shape->rank : 1;
  NODE_REQUIRE(node, count < INT32_MAX, UNSUPPORTED, "%lld elements are too many", (long long)count);
  TRY(weft_onnx_pointwise(node, is_non_zero, NULL, WEFT_DTYPE_BOOL, 1, &value, &flags));
  TRY(weft_onnx_reshape(node, flags, &(shape_t){1, {count}}, &flags));
  for (int32_t d = 0; d < rank; ++d) {
    int64_t inner = 1;
    for (int32_t i = d + 1; i < shape->rank; ++i) inner *= shape->extent[i];
    TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, &index));
    for (int64_t i = 0; i < count; ++i) index[i] = shape->rank ? i / inner % shape->extent[d] : 0;
    TRY(weft_onnx_known_list(node, (int32_t)count, index, &column[d]));
  }
  return weft_onnx_compact(node, flags, rank, column, WEFT_DTYPE_I64, 0, &node->output[0]);
}

static weft_status_t emit_compress(node_t* node) {
  value_t *value = node->input[0], *flags = node->input[1], *before;
  int32_t axis = 0;
  if (weft_onnx_has_attribute(node, "axis"))
    TRY(weft_onnx_axis(node, 0, value->shape.rank, &axis));
  else
    TRY(weft_onnx_reshape(node, value, &(shape_t){1, {weft_onnx_count(value)}}, &value));
  int64_t given = weft_onnx_count(flags), length, *index, low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  NODE_REQUIRE(node, flags->shape.rank == 1 && given <= value->shape.extent[axis] && flags->dtype == WEFT_DTYPE_BOOL,
               INVALID_INPUT, "the condition is %s of shape %s, axis %d has %lld elements",
               weft_dtype_name(flags->dtype), weft_onnx_shape_format(&flags->shape).text, axis,
               (long long)value->shape.extent[axis]);
  TRY(length_of(node, flags, value->shape.rank, axis, &length));
  if (flags->data) { // movement
    TRY(flagged_positions(node, flags, length, &index));
    return weft_onnx_take(node, value, axis, length, index, &node->output[0]);
  }
  high[axis] = given - value->shape.extent[axis]; // a shorter condition leaves out what is behind it
  TRY(weft_onnx_pad(node, value, low, high, 0, &value));
  shape_t flat = {3, {1, given, 1}}, result = value->shape;
  for (int32_t i = 0; i < value->shape.rank; ++i)
    if (i != axis) flat.extent[i < axis ? 0 : 2] *= value->shape.extent[i];
  result.extent[axis] = length;
  TRY(count_before(node, flags, &before));
  TRY(weft_onnx_reshape(node, value, &flat, &value));
  TRY(weft_onnx_keep_flagged(node, flags, before, value, length, &value));
  return weft_onnx_reshape(node, value, &result, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Compress", 9, 2, 2, 1, emit_compress,
             "with a condition of run time the model or --dim has to fix the result's length"),
    OPERATOR("NonZero", 9, 1, 1, 1, emit_non_zero,
             "with an input of run time the model or --dim has to fix the result's length, filled with -1"),
    {0}};

const weft_onnx_family_t weft_onnx_family_compact = {"Lengths that depend on elements", operators};
