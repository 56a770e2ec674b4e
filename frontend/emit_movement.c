// Movement of data: reshape, transpose, slice, pad, concatenation.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "frontend/emit.h"
#include "frontend/mlir_build.h"
#include "ir/tensor/tensor.h"

static weft_status_t append(node_t* node, MlirOperation op, weft_dtype_e dtype, const shape_t* shape, value_t** out) {
  mlirBlockAppendOwnedOperation(node->builder->block, op);
  TRY(weft_onnx_known(node, dtype, shape, NULL, out));
  (*out)->mlir = mlirOperationGetResult(op, 0);
  return weft_ok();
}

static weft_status_t new_data(node_t* node, weft_dtype_e dtype, const shape_t* shape, uint8_t** out) {
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(shape, &count), INVALID_INPUT, "a tensor of shape %s is too large",
               weft_onnx_shape_format(shape).text);
  return weft_arena_allocate(node->builder->arena, (size_t)count + 1, weft_dtype_size(dtype), (void**)out);
}

static bool is_empty(const shape_t* shape) {
  for (int32_t i = 0; i < shape->rank; ++i)
    if (shape->extent[i] == 0) return true;
  return false;
}

// --- Reshape

// Pairs the axes of two shapes into the smallest groups of equal products; ends[g] is where group g ends. Returns the
// number of groups. Shapes have equal counts, no extent is 0.
static int32_t common_groups(const shape_t* a, const shape_t* b, int32_t* a_end, int32_t* b_end) {
  int32_t i = 0, j = 0, groups = 0;
  while (i < a->rank && j < b->rank) {
    int64_t x = a->extent[i++], y = b->extent[j++];
    while (x != y)
      if (x < y)
        x *= a->extent[i++];
      else
        y *= b->extent[j++];
    a_end[groups] = i;
    b_end[groups++] = j;
  }
  if (groups) { // extents of 1 that are left over
    a_end[groups - 1] = a->rank;
    b_end[groups - 1] = b->rank;
  }
  return groups;
}

static MlirAttribute reassociation(MlirContext context, int32_t groups, const int32_t* ends) {
  MlirAttribute group[WEFT_ONNX_MAX_RANK];
  for (int32_t g = 0, at = 0; g < groups; ++g) {
    MlirAttribute axes[WEFT_ONNX_MAX_RANK];
    int32_t count = 0;
    for (; at < ends[g]; ++at) axes[count++] = mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), at);
    group[g] = mlirArrayAttrGet(context, count, axes);
  }
  return mlirArrayAttrGet(context, groups, group);
}

static weft_status_t collapse(node_t* node, value_t* value, const shape_t* shape, int32_t groups, const int32_t* ends,
                              value_t** out) {
  MlirContext context = node->builder->context;
  MlirValue source;
  TRY(weft_onnx_materialize(node->builder, node->location, value, &source));
  MlirType type = weft_onnx_tensor_type(context, value->dtype, shape);
  weft_onnx_attribute_t attribute = {"reassociation", reassociation(context, groups, ends)};
  return append(node, weft_onnx_create_op(node->location, "tensor.collapse_shape", &type, 1, &source, 1, &attribute),
                value->dtype, shape, out);
}

static weft_status_t expand(node_t* node, value_t* value, const shape_t* shape, int32_t groups, const int32_t* ends,
                            value_t** out) {
  MlirContext context = node->builder->context;
  MlirValue source;
  TRY(weft_onnx_materialize(node->builder, node->location, value, &source));
  MlirType type = weft_onnx_tensor_type(context, value->dtype, shape);
  weft_onnx_attribute_t attributes[] = {
      {"reassociation", reassociation(context, groups, ends)},
      {"static_output_shape", weft_onnx_i64_array(context, shape->rank, shape->extent)}};
  return append(node, weft_onnx_create_op(node->location, "tensor.expand_shape", &type, 1, &source, 2, attributes),
                value->dtype, shape, out);
}

weft_status_t weft_onnx_reshape(node_t* node, value_t* value, const shape_t* shape, value_t** out) {
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(shape, &count) && count == weft_onnx_count(value), INVALID_INPUT,
               "%s cannot be reshaped to %s: %lld elements", weft_onnx_shape_format(&value->shape).text,
               weft_onnx_shape_format(shape).text, (long long)weft_onnx_count(value));
  if (weft_onnx_shape_equal(&value->shape, shape)) {
    *out = value;
    return weft_ok();
  }
  if (value->data) return weft_onnx_known(node, value->dtype, shape, value->data, out);
  if (shape->rank == 0) return collapse(node, value, shape, 0, NULL, out);
  if (value->shape.rank == 0) return expand(node, value, shape, 0, NULL, out);
  int32_t from[WEFT_ONNX_MAX_RANK], to[WEFT_ONNX_MAX_RANK];
  int32_t groups = common_groups(&value->shape, shape, from, to);
  shape_t middle = {.rank = groups};
  for (int32_t g = 0, at = 0; g < groups; ++g)
    for (middle.extent[g] = 1; at < to[g]; ++at) middle.extent[g] *= shape->extent[at];
  if (groups < value->shape.rank) TRY(collapse(node, value, &middle, groups, from, &value));
  *out = value;
  return groups < shape->rank ? expand(node, value, shape, groups, to, out) : weft_ok();
}

weft_status_t weft_onnx_unsqueeze(node_t* node, value_t* value, int32_t axis, value_t** out) {
  NODE_REQUIRE(node, value->shape.rank < WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the result has more than %d dimensions",
               WEFT_ONNX_MAX_RANK);
  shape_t shape = {.rank = value->shape.rank + 1};
  for (int32_t i = 0; i < shape.rank; ++i) shape.extent[i] = i == axis ? 1 : value->shape.extent[i < axis ? i : i - 1];
  return weft_onnx_reshape(node, value, &shape, out);
}

// --- Transpose

weft_status_t weft_onnx_transpose(node_t* node, value_t* value, const int32_t* permutation, value_t** out) {
  int32_t rank = value->shape.rank, last_long = -1;
  weft_onnx_generic_t generic = {.rank = rank, .operand_count = 1, .dtype = value->dtype};
  generic.operand[0] = (weft_onnx_operand_t){.value = value, .rank = rank};
  shape_t shape = {.rank = rank};
  bool moves = false; // extents of 1 may move without the elements moving
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = shape.extent[i] = value->shape.extent[permutation[i]];
    generic.operand[0].axis[permutation[i]] = weft_onnx_along(i);
    if (shape.extent[i] == 1) continue;
    moves |= permutation[i] < last_long;
    last_long = permutation[i];
  }
  return moves ? weft_onnx_generic(node, &generic, out) : weft_onnx_reshape(node, value, &shape, out);
}

// --- Slice, pad, concat: known elements are copied box by box.

typedef struct box_copy_t {
  int32_t rank;
  size_t width;
  const int64_t *extent, *source_stride, *target_stride; // strides in elements
} box_copy_t;

static void copy_box(const box_copy_t* copy, int32_t axis, const uint8_t* source, uint8_t* target) {
  if (axis == copy->rank) {
    memcpy(target, source, copy->width);
    return;
  }
  int64_t source_step = copy->source_stride[axis] * (int64_t)copy->width;
  int64_t target_step = copy->target_stride[axis] * (int64_t)copy->width;
  if (axis == copy->rank - 1 && copy->source_stride[axis] == 1 && copy->target_stride[axis] == 1) {
    memcpy(target, source, (size_t)copy->extent[axis] * copy->width);
    return;
  }
  for (int64_t i = 0; i < copy->extent[axis]; ++i)
    copy_box(copy, axis + 1, source + i * source_step, target + i * target_step);
}

static weft_status_t slice_known(node_t* node, value_t* value, const shape_t* shape, const int64_t* offset,
                                 const int64_t* step, value_t** out) {
  uint8_t* data;
  TRY(new_data(node, value->dtype, shape, &data));
  int64_t from[WEFT_ONNX_MAX_RANK], to[WEFT_ONNX_MAX_RANK], start = 0;
  weft_onnx_strides(&value->shape, from);
  weft_onnx_strides(shape, to);
  for (int32_t i = 0; i < shape->rank; ++i) {
    start += offset[i] * from[i];
    from[i] *= step[i];
  }
  size_t width = weft_dtype_size(value->dtype);
  box_copy_t copy = {shape->rank, width, shape->extent, from, to};
  if (!is_empty(shape)) copy_box(&copy, 0, (const uint8_t*)value->data + (size_t)start * width, data);
  return weft_onnx_known(node, value->dtype, shape, data, out);
}

weft_status_t weft_onnx_slice(node_t* node, value_t* value, const int64_t* offset, const int64_t* size,
                              const int64_t* step, value_t** out) {
  shape_t shape = weft_onnx_shape_make(value->shape.rank, size);
  if (weft_onnx_shape_equal(&shape, &value->shape)) { // nothing is left out, so offsets are 0 and steps 1
    *out = value;
    return weft_ok();
  }
  if (value->data || is_empty(&shape)) return slice_known(node, value, &shape, offset, step, out);
  MlirContext context = node->builder->context;
  MlirValue source;
  TRY(weft_onnx_materialize(node->builder, node->location, value, &source));
  MlirType type = weft_onnx_tensor_type(context, value->dtype, &shape);
  weft_onnx_attribute_t attributes[] = {
      {"static_offsets", weft_onnx_i64_array(context, shape.rank, offset)},
      {"static_sizes", weft_onnx_i64_array(context, shape.rank, size)},
      {"static_strides", weft_onnx_i64_array(context, shape.rank, step)},
      {"operandSegmentSizes", weft_onnx_segments(context, 4, (int32_t[]){1, 0, 0, 0})}};
  return append(node, weft_onnx_create_op(node->location, "tensor.extract_slice", &type, 1, &source, 4, attributes),
                value->dtype, &shape, out);
}

static weft_status_t crop(node_t* node, value_t* value, const int64_t* low, const int64_t* high, value_t** out) {
  int64_t offset[WEFT_ONNX_MAX_RANK], size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    int64_t left = low[i] < 0 ? -low[i] : 0, right = high[i] < 0 ? -high[i] : 0, extent = value->shape.extent[i];
    NODE_REQUIRE(node, left <= extent && right <= extent - left, INVALID_INPUT,
                 "pads of %lld and %lld on axis %d remove more than its %lld elements", (long long)low[i],
                 (long long)high[i], i, (long long)extent);
    offset[i] = left;
    size[i] = extent - left - right;
    step[i] = 1;
  }
  return weft_onnx_slice(node, value, offset, size, step, out);
}

static weft_status_t pad_known(node_t* node, value_t* value, const shape_t* shape, const int64_t* low, double fill,
                               value_t** out) {
  uint8_t* data;
  TRY(new_data(node, value->dtype, shape, &data));
  int64_t count, from[WEFT_ONNX_MAX_RANK], to[WEFT_ONNX_MAX_RANK], start = 0;
  weft_onnx_shape_count(shape, &count);
  size_t width = weft_dtype_size(value->dtype);
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(value->dtype, fill, data + (size_t)i * width);
  weft_onnx_strides(&value->shape, from);
  weft_onnx_strides(shape, to);
  for (int32_t i = 0; i < shape->rank; ++i) start += low[i] * to[i];
  box_copy_t copy = {shape->rank, width, value->shape.extent, from, to};
  if (!is_empty(&value->shape)) copy_box(&copy, 0, value->data, data + (size_t)start * width);
  return weft_onnx_known(node, value->dtype, shape, data, out);
}

static weft_status_t pad_emitted(node_t* node, value_t* value, const shape_t* shape, const int64_t* low,
                                 const int64_t* high, double fill, value_t** out) {
  MlirContext context = node->builder->context;
  MlirValue source;
  TRY(weft_onnx_materialize(node->builder, node->location, value, &source));
  body_t body = {.context = context, .location = node->location, .block = node->builder->block};
  MlirValue constant = weft_onnx_scalar_materialize(&body, weft_onnx_scalar_constant(value->dtype, fill));
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  for (int32_t i = 0; i < shape->rank; ++i) mlirBlockAddArgument(block, mlirIndexTypeGet(context), node->location);
  mlirBlockAppendOwnedOperation(block,
                                weft_onnx_create_op(node->location, "tensor.yield", NULL, 1, &constant, 0, NULL));
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  MlirType type = weft_onnx_tensor_type(context, value->dtype, shape);
  weft_onnx_attribute_t attributes[] = {{"static_low", weft_onnx_i64_array(context, shape->rank, low)},
                                        {"static_high", weft_onnx_i64_array(context, shape->rank, high)},
                                        {"operandSegmentSizes", weft_onnx_segments(context, 3, (int32_t[]){1, 0, 0})}};
  return append(node,
                weft_onnx_create_op_with_region(node->location, "tensor.pad", &type, 1, &source, 3, attributes, region),
                value->dtype, shape, out);
}

weft_status_t weft_onnx_pad(node_t* node, value_t* value, const int64_t* low, const int64_t* high, double fill,
                            value_t** out) {
  shape_t shape = {.rank = value->shape.rank};
  int64_t left[WEFT_ONNX_MAX_RANK], right[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < shape.rank; ++i) {
    NODE_REQUIRE(node, low[i] > INT32_MIN && low[i] < INT32_MAX && high[i] > INT32_MIN && high[i] < INT32_MAX,
                 INVALID_INPUT, "pads of %lld and %lld on axis %d", (long long)low[i], (long long)high[i], i);
    left[i] = low[i] > 0 ? low[i] : 0;
    right[i] = high[i] > 0 ? high[i] : 0;
  }
  TRY(crop(node, value, low, high, &value));
  for (int32_t i = 0; i < shape.rank; ++i) shape.extent[i] = value->shape.extent[i] + left[i] + right[i];
  if (weft_onnx_shape_equal(&shape, &value->shape)) {
    *out = value;
    return weft_ok();
  }
  return value->data ? pad_known(node, value, &shape, left, fill, out)
                     : pad_emitted(node, value, &shape, left, right, fill, out);
}

static weft_status_t concat_known(node_t* node, int32_t axis, const shape_t* shape, int32_t count,
                                  value_t* const* inputs, value_t** out) {
  weft_dtype_e dtype = inputs[0]->dtype;
  uint8_t* data;
  TRY(new_data(node, dtype, shape, &data));
  size_t width = weft_dtype_size(dtype);
  int64_t from[WEFT_ONNX_MAX_RANK], to[WEFT_ONNX_MAX_RANK], at = 0;
  weft_onnx_strides(shape, to);
  for (int32_t i = 0; i < count; ++i) {
    weft_onnx_strides(&inputs[i]->shape, from);
    box_copy_t copy = {shape->rank, width, inputs[i]->shape.extent, from, to};
    copy_box(&copy, 0, inputs[i]->data, data + (size_t)(at * to[axis]) * width);
    at += inputs[i]->shape.extent[axis];
  }
  return weft_onnx_known(node, dtype, shape, data, out);
}

weft_status_t weft_onnx_concat(node_t* node, int32_t axis, int32_t count, value_t* const* inputs, value_t** out) {
  value_t** kept; // those with elements
  MlirValue* values;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count, &kept));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count, &values));
  int32_t kept_count = 0;
  bool all_known = true;
  shape_t shape = inputs[0]->shape;
  shape.extent[axis] = 0;
  for (int32_t i = 0; i < count; ++i) {
    shape_t expected = shape;
    expected.extent[axis] = inputs[i]->shape.extent[axis];
    NODE_REQUIRE(node, weft_onnx_shape_equal(&expected, &inputs[i]->shape), INVALID_INPUT,
                 "input %d has shape %s, expected %s outside of axis %d", i,
                 weft_onnx_shape_format(&inputs[i]->shape).text, weft_onnx_shape_format(&inputs[0]->shape).text, axis);
    NODE_REQUIRE(node, inputs[i]->dtype == inputs[0]->dtype, INVALID_INPUT, "input %d is %s, expected %s", i,
                 weft_dtype_name(inputs[i]->dtype), weft_dtype_name(inputs[0]->dtype));
    NODE_REQUIRE(node, expected.extent[axis] <= INT64_MAX - shape.extent[axis], INVALID_INPUT,
                 "the result is too large");
    shape.extent[axis] += expected.extent[axis];
    if (is_empty(&expected)) continue;
    kept[kept_count++] = inputs[i];
    all_known &= inputs[i]->data != NULL;
  }
  if (kept_count == 0) return weft_onnx_known(node, inputs[0]->dtype, &shape, inputs[0]->data, out);
  if (kept_count == 1) {
    *out = kept[0];
    return weft_ok();
  }
  if (all_known) return concat_known(node, axis, &shape, kept_count, kept, out);
  MlirContext context = node->builder->context;
  for (int32_t i = 0; i < kept_count; ++i)
    TRY(weft_onnx_materialize(node->builder, node->location, kept[i], &values[i]));
  MlirType type = weft_onnx_tensor_type(context, inputs[0]->dtype, &shape);
  weft_onnx_attribute_t attribute = {"dim", mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), axis)};
  return append(node, weft_onnx_create_op(node->location, "tensor.concat", &type, kept_count, values, 1, &attribute),
                inputs[0]->dtype, &shape, out);
}

// The longest run from index[0] with one step; one that goes backwards or stays costs a copy, and has to be worth it.
static int64_t run_length(int64_t count, const int64_t* index, int64_t* out_step) {
  enum { WORTH_A_COPY = 6 };
  *out_step = count > 1 ? index[1] - index[0] : 1;
  int64_t length = 1;
  while (length < count && index[length] - index[length - 1] == *out_step) ++length;
  if (*out_step > 0 || length >= WORTH_A_COPY) return length;
  *out_step = 1;
  return 1;
}

static weft_status_t take_known(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                                value_t** out) {
  uint8_t* data;
  shape_t shape = value->shape;
  int64_t outer = 1, extent = shape.extent[axis];
  size_t inner = weft_dtype_size(value->dtype);
  for (int32_t i = 0; i < axis; ++i) outer *= shape.extent[i];
  for (int32_t i = axis + 1; i < shape.rank; ++i) inner *= (size_t)shape.extent[i];
  shape.extent[axis] = count;
  TRY(new_data(node, value->dtype, &shape, &data));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      memcpy(data + (size_t)(o * count + i) * inner,
             (const uint8_t*)value->data + (size_t)(o * extent + index[i]) * inner, inner);
  return weft_onnx_known(node, value->dtype, &shape, data, out);
}

weft_status_t weft_onnx_take(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                             value_t** out) {
  enum { FEW_RUNS = 8, MAX_RUNS = 4096 };
  if (value->data) return take_known(node, value, axis, count, index, out);
  value_t** runs;
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK], along;
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    size[i] = value->shape.extent[i];
    step[i] = 1;
  }
  int32_t run_count = 0;
  int64_t run_total = 0;
  bool is_done = false;
  for (int64_t at = 0; at < count; ++run_total) at += run_length(count - at, index + at, &along);
  if (run_total > 1) TRY(weft_onnx_take_box(node, value, axis, count, index, out, &is_done));
  if (!is_done && run_total > FEW_RUNS) TRY(weft_onnx_take_walk(node, value, axis, count, index, out, &is_done));
  if (is_done) return weft_ok();
  NODE_REQUIRE(node, run_total <= MAX_RUNS, UNSUPPORTED,
               "it picks %lld separate slices along axis %d, at most %d are supported", (long long)run_total, axis,
               MAX_RUNS);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)run_total + 1, &runs));
  for (int64_t at = 0; at < count; at += size[axis]) {
    size[axis] = run_length(count - at, index + at, &along);
    offset[axis] = index[at];
    step[axis] = along;
    if (along > 0)
      TRY(weft_onnx_slice(node, value, offset, size, step, &runs[run_count++]));
    else
      TRY(weft_onnx_take_walk(node, value, axis, size[axis], index + at, &runs[run_count++], &is_done));
  }
  if (count == 0) {
    size[axis] = 0;
    return weft_onnx_slice(node, value, offset, size, step, out);
  }
  return weft_onnx_concat(node, axis, run_count, runs, out);
}
