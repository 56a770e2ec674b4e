// Unique: the slices along an axis, or the elements, that are there, each once. Known ones are compared while
// importing; at run time the model has to declare how many there are at most, or --dim does.
#include <string.h>

#include "frontend/io.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// --- Known elements

typedef struct slices_t {
  const value_t* value;
  int64_t outer, count, inner; // the axis is in the middle
} slices_t;

static int compare_slices(const slices_t* slices, int64_t a, int64_t b) {
  size_t width = weft_dtype_size(slices->value->dtype);
  const uint8_t* data = slices->value->data;
  for (int64_t o = 0; o < slices->outer; ++o)
    for (int64_t i = 0; i < slices->inner; ++i) {
      int64_t base = o * slices->count * slices->inner + i;
      double x = weft_dtype_load(slices->value->dtype, data + (size_t)(base + a * slices->inner) * width);
      double y = weft_dtype_load(slices->value->dtype, data + (size_t)(base + b * slices->inner) * width);
      if (x != y) return x < y ? -1 : 1;
    }
  return 0;
}

// first[u]: where the u-th different slice occurs first; group[i]: which one slice i is. Returns how many there are.
static int64_t find_unique(const slices_t* slices, bool sorted, int64_t* first, int64_t* group) {
  int64_t count = 0;
  for (int64_t i = 0; i < slices->count; ++i) { // insertion: first[] stays in order
    int64_t at = 0;
    int order = 1;
    while (at < count && (order = compare_slices(slices, i, first[at])) != 0 && (!sorted || order > 0)) ++at;
    if (at < count && order == 0) continue;
    memmove(first + at + 1, first + at, (size_t)(count - at) * sizeof(*first));
    first[at] = i;
    ++count;
  }
  for (int64_t i = 0; i < slices->count; ++i)
    for (int64_t u = 0; u < count; ++u)
      if (compare_slices(slices, i, first[u]) == 0) group[i] = u;
  return count;
}

static weft_status_t unique_known(node_t* node, const slices_t* slices, value_t* value, int32_t axis, bool sorted) {
  int64_t *first, *group, *repeats;
  NODE_REQUIRE(node, slices->count <= 1 << 14, UNSUPPORTED, "%lld elements are too many", (long long)slices->count);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)slices->count + 1, &first));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)slices->count + 1, &group));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)slices->count + 1, &repeats));
  int64_t count = find_unique(slices, sorted, first, group);
  for (int64_t i = 0; i < slices->count; ++i) ++repeats[group[i]];
  const int64_t* lists[] = {first, group, repeats};
  TRY(weft_onnx_take(node, value, axis, count, first, &node->output[0]));
  for (int32_t i = 1; i < node->output_count; ++i)
    TRY(weft_onnx_known_list(node, (int32_t)(i == 2 ? slices->count : count), lists[i - 1], &node->output[i]));
  return weft_ok();
}

// --- At run time: all pairs are compared.

// x: an element of slice i, that of slice j, how they compare by what comes later. -1, 0 or 1.
BODY(order_of) {
  scalar_t minus = s_const(x[2], -1), one = s_const(x[2], 1);
  return s_select(b, s_compare(b, WEFT_ONNX_LT, x[0], x[1]), minus,
                  s_select(b, s_compare(b, WEFT_ONNX_GT, x[0], x[1]), one, x[2]));
}
// x: order of i and j, j, accumulator.
BODY(first_equal) {
  return s_min(b, x[2], s_select(b, s_compare(b, WEFT_ONNX_EQ, x[0], s_const(x[0], 0)), x[1], x[2]));
}
BODY(are_equal) {
  return s_compare(b, WEFT_ONNX_EQ, x[0], x[1]);
}
// x: order of i and j, whether j is the first of its kind, j, the first of i's kind, accumulator. p: sorted
BODY(firsts_before) {
  scalar_t is_before =
      b->p[0] != 0 ? s_compare(b, WEFT_ONNX_GT, x[0], s_const(x[0], 0)) : s_compare(b, WEFT_ONNX_LT, x[2], x[3]);
  scalar_t counts = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x[1], is_before);
  return s_add(b, x[4], s_select(b, counts, s_const(x[4], 1), s_const(x[4], 0)));
}
// x: the kind of i, the kind asked for, accumulator.
BODY(of_kind) {
  scalar_t is_it = s_compare(b, WEFT_ONNX_EQ, x[0], x[1]);
  return s_add(b, x[2], s_select(b, is_it, s_const(x[2], 1), s_const(x[2], 0)));
}
BODY(plus_one) {
  return s_add(b, x[0], s_const(x[0], 1));
}
BODY(less_one) {
  return s_sub(b, x[0], s_const(x[0], 1));
}

// [count, count]: of slices i and j, by their first elements that differ.
static weft_status_t compare_pairs(node_t* node, const slices_t* slices, value_t* value, value_t** out) {
  enum { MOST = 256 };
  int64_t length = slices->outer * slices->inner, count = slices->count;
  NODE_REQUIRE(node, length <= MOST, UNSUPPORTED,
               "slices of %lld elements are compared at run time, at most %d are supported", (long long)length, MOST);
  TRY(weft_onnx_reshape(node, value, &(shape_t){3, {slices->outer, count, slices->inner}}, &value));
  TRY(weft_onnx_number(node, WEFT_DTYPE_I32, 0, out));
  for (int64_t l = length - 1; l >= 0; --l) {
    value_t *column, *row;
    TRY(weft_onnx_slice(node, value, (int64_t[]){l / slices->inner, 0, l % slices->inner}, (int64_t[]){1, count, 1},
                        (int64_t[]){1, 1, 1}, &column));
    TRY(weft_onnx_reshape(node, column, &(shape_t){1, {count}}, &row));
    TRY(weft_onnx_reshape(node, column, &(shape_t){2, {count, 1}}, &column));
    TRY(weft_onnx_pointwise(node, order_of, NULL, WEFT_DTYPE_I32, 3, (value_t*[]){column, row, *out}, out));
  }
  return weft_ok();
}

typedef struct kinds_t {
  value_t *order, *position; // of pairs; 0, 1, ..
  value_t *first, *is_first; // of i's kind; whether that is i
  value_t* kind;             // which one i is, in the order of the result
} kinds_t;

static weft_status_t find_kinds(node_t* node, int64_t count, bool sorted, kinds_t* kinds) {
  double p[] = {sorted};
  const weft_onnx_axis_map_t i = weft_onnx_along(0), j = weft_onnx_along(1);
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, count, &kinds->position));
  weft_onnx_generic_t firsts = {.rank = 2,
                                .extent = {count, count},
                                .reduction = 2,
                                .operand_count = 2,
                                .operand = {{kinds->order, 2, {i, j}}, {kinds->position, 1, {j}}},
                                .dtype = WEFT_DTYPE_I32,
                                .initial = (double)count,
                                .body = first_equal};
  TRY(weft_onnx_generic(node, &firsts, &kinds->first));
  TRY(weft_onnx_pointwise(node, are_equal, NULL, WEFT_DTYPE_BOOL, 2, (value_t*[]){kinds->first, kinds->position},
                          &kinds->is_first));
  weft_onnx_generic_t places = {.rank = 2,
                                .extent = {count, count},
                                .reduction = 2,
                                .operand_count = 4,
                                .operand = {{kinds->order, 2, {i, j}},
                                            {kinds->is_first, 1, {j}},
                                            {kinds->position, 1, {j}},
                                            {kinds->first, 1, {i}}},
                                .dtype = WEFT_DTYPE_I32,
                                .body = firsts_before,
                                .p = p};
  return weft_onnx_generic(node, &places, &kinds->kind);
}

static weft_status_t count_kinds(node_t* node, const kinds_t* kinds, int64_t count, int64_t length, value_t** out) {
  value_t* wanted;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, length, &wanted));
  weft_onnx_generic_t generic = {.rank = 2,
                                 .extent = {length, count},
                                 .reduction = 2,
                                 .operand_count = 2,
                                 .operand = {{kinds->kind, 1, {weft_onnx_along(1)}}, {wanted, 1, {weft_onnx_along(0)}}},
                                 .dtype = WEFT_DTYPE_I64,
                                 .body = of_kind};
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t unique_at_run_time(node_t* node, const slices_t* slices, value_t* value, int32_t axis,
                                        bool sorted) {
  int64_t length, count = slices->count;
  kinds_t kinds;
  shape_t result = value->shape;
  NODE_REQUIRE(node, count > 0 && count < INT32_MAX && slices->outer * slices->inner > 0, UNSUPPORTED,
               "an input of shape %s is not supported", weft_onnx_shape_format(&value->shape).text);
  TRY(weft_onnx_declared_extent(node, value->shape.rank, axis, &length));
  TRY(compare_pairs(node, slices, value, &kinds.order));
  TRY(find_kinds(node, count, sorted, &kinds));
  TRY(weft_onnx_reshape(node, value, &(shape_t){3, {slices->outer, count, slices->inner}}, &value));
  TRY(weft_onnx_keep_flagged(node, kinds.is_first, kinds.kind, value, length, &value));
  result.extent[axis] = length;
  TRY(weft_onnx_reshape(node, value, &result, &node->output[0]));
  if (node->output_count > 1) { // 0 would be an index; so they count from 1 until they are kept
    value_t* index;
    TRY(weft_onnx_cast(node, kinds.position, WEFT_DTYPE_I64, &index));
    TRY(weft_onnx_unary(node, plus_one, NULL, index, &index));
    TRY(weft_onnx_reshape(node, index, &(shape_t){3, {1, count, 1}}, &index));
    TRY(weft_onnx_keep_flagged(node, kinds.is_first, kinds.kind, index, length, &index));
    TRY(weft_onnx_unary(node, less_one, NULL, index, &index));
    TRY(weft_onnx_reshape(node, index, &(shape_t){1, {length}}, &node->output[1]));
  }
  if (node->output_count > 2) TRY(weft_onnx_cast(node, kinds.kind, WEFT_DTYPE_I64, &node->output[2]));
  return node->output_count > 3 ? count_kinds(node, &kinds, count, length, &node->output[3]) : weft_ok();
}

static weft_status_t emit_unique(node_t* node) {
  value_t* value = node->input[0];
  int64_t sorted;
  int32_t axis = 0;
  TRY(weft_onnx_attribute_int(node, "sorted", 1, &sorted));
  if (weft_onnx_has_attribute(node, "axis"))
    TRY(weft_onnx_axis(node, 0, value->shape.rank, &axis));
  else
    TRY(weft_onnx_reshape(node, value, &(shape_t){1, {weft_onnx_count(value)}}, &value));
  slices_t slices = {value, 1, value->shape.extent[axis], 1};
  for (int32_t i = 0; i < axis; ++i) slices.outer *= value->shape.extent[i];
  for (int32_t i = axis + 1; i < value->shape.rank; ++i) slices.inner *= value->shape.extent[i];
  return value->data ? unique_known(node, &slices, value, axis, sorted != 0)
                     : unique_at_run_time(node, &slices, value, axis, sorted != 0);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR(
        "Unique", 11, 1, 1, 4, emit_unique,
        "at run time the model or --dim has to fix the result's length, filled with 0 and indices of -1; costs the "
        "square of the axis"),
    {0}};

const weft_onnx_family_t weft_onnx_family_unique = {"Unique elements", operators};
