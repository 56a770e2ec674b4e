// Operators that only move data.
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

static weft_status_t emit_identity(node_t* node) {
  node->output[0] = node->input[0];
  return weft_ok();
}

static weft_status_t emit_dropout(node_t* node) {
  double training, ratio;
  int64_t is_test;
  TRY(weft_onnx_known_number(node, 2, "training_mode", 0, &training));
  TRY(weft_onnx_attribute_int(node, "is_test", node->opset < 7 ? 0 : 1, &is_test));
  if (training != 0) { // a ratio of 0 drops nothing
    TRY(weft_onnx_known_number(node, 1, "ratio", 0.5, &ratio));
    NODE_REQUIRE(node, ratio == 0, UNSUPPORTED, "training mode is not supported");
  }
  node->output[0] = node->input[0];
  if (node->output_count < 2) return weft_ok();
  value_t* one;
  TRY(weft_onnx_number(node, node->opset < 10 ? node->input[0]->dtype : WEFT_DTYPE_BOOL, 1, &one));
  return weft_onnx_expand(node, one, &node->input[0]->shape, &node->output[1]);
}

// 0 copies the input's extent (unless allowzero), -1 is what is left.
static weft_status_t resolve_reshape(node_t* node, const value_t* value, bool allow_zero, shape_t* shape) {
  int64_t known = 1, total = weft_onnx_count(value);
  int32_t inferred = -1;
  for (int32_t i = 0; i < shape->rank; ++i) {
    int64_t* extent = &shape->extent[i];
    if (*extent == 0 && !allow_zero) {
      NODE_REQUIRE(node, i < value->shape.rank, INVALID_INPUT, "extent %d of the new shape copies axis %d of %s", i, i,
                   weft_onnx_shape_format(&value->shape).text);
      *extent = value->shape.extent[i];
    }
    NODE_REQUIRE(node, *extent >= -1 && (*extent != -1 || inferred < 0), INVALID_INPUT,
                 "the new shape %s has more than one -1 or other negative extents", weft_onnx_shape_format(shape).text);
    if (*extent == -1)
      inferred = i;
    else
      NODE_REQUIRE(node, weft_checked_mul(known, *extent, &known), INVALID_INPUT, "the new shape %s is too large",
                   weft_onnx_shape_format(shape).text);
  }
  if (inferred < 0) return weft_ok();
  NODE_REQUIRE(node, known > 0 && total % known == 0, INVALID_INPUT, "%s does not reshape to %s: %lld elements",
               weft_onnx_shape_format(&value->shape).text, weft_onnx_shape_format(shape).text, (long long)total);
  shape->extent[inferred] = total / known;
  return weft_ok();
}

static weft_status_t emit_reshape(node_t* node) {
  shape_t shape = {0};
  int64_t allow_zero;
  TRY(weft_onnx_ints_since(node, 5, 1, "shape", WEFT_ONNX_MAX_RANK, shape.extent, &shape.rank));
  TRY(weft_onnx_attribute_int(node, "allowzero", 0, &allow_zero));
  NODE_REQUIRE(node, shape.rank >= 0, INVALID_INPUT, "the new shape is missing");
  TRY(resolve_reshape(node, node->input[0], allow_zero != 0, &shape));
  return weft_onnx_reshape(node, node->input[0], &shape, &node->output[0]);
}

static weft_status_t emit_flatten(node_t* node) {
  const shape_t* shape = &node->input[0]->shape;
  int64_t axis;
  TRY(weft_onnx_attribute_int(node, "axis", 1, &axis));
  NODE_REQUIRE(node, axis >= -shape->rank && axis <= shape->rank, INVALID_INPUT, "axis %lld is outside of [%d, %d]",
               (long long)axis, -shape->rank, shape->rank);
  if (axis < 0) axis += shape->rank;
  shape_t flat = {2, {1, 1}};
  for (int32_t i = 0; i < shape->rank; ++i) flat.extent[i >= axis] *= shape->extent[i];
  return weft_onnx_reshape(node, node->input[0], &flat, &node->output[0]);
}

static weft_status_t emit_squeeze(node_t* node) {
  const shape_t* shape = &node->input[0]->shape;
  int64_t axes[WEFT_ONNX_MAX_RANK];
  int32_t count;
  uint32_t mask;
  TRY(weft_onnx_ints_since(node, 13, 1, "axes", WEFT_ONNX_MAX_RANK, axes, &count));
  TRY(weft_onnx_axis_mask(node, count < 0 ? 0 : count, axes, shape->rank, &mask));
  shape_t kept = {0};
  for (int32_t i = 0; i < shape->rank; ++i) {
    bool drops = count < 0 ? shape->extent[i] == 1 : (mask >> i & 1) != 0;
    NODE_REQUIRE(node, !drops || shape->extent[i] == 1, INVALID_INPUT, "axis %d of %s is not 1", i,
                 weft_onnx_shape_format(shape).text);
    if (!drops) kept.extent[kept.rank++] = shape->extent[i];
  }
  return weft_onnx_reshape(node, node->input[0], &kept, &node->output[0]);
}

static weft_status_t emit_unsqueeze(node_t* node) {
  const shape_t* shape = &node->input[0]->shape;
  int64_t axes[WEFT_ONNX_MAX_RANK];
  int32_t count;
  uint32_t mask;
  TRY(weft_onnx_ints_since(node, 13, 1, "axes", WEFT_ONNX_MAX_RANK, axes, &count));
  NODE_REQUIRE(node, count >= 0, INVALID_INPUT, "the axes are missing");
  NODE_REQUIRE(node, shape->rank + count <= WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the result has more than %d dimensions",
               WEFT_ONNX_MAX_RANK);
  shape_t result = {.rank = shape->rank + count};
  TRY(weft_onnx_axis_mask(node, count, axes, result.rank, &mask));
  for (int32_t i = 0, from = 0; i < result.rank; ++i) result.extent[i] = mask >> i & 1 ? 1 : shape->extent[from++];
  return weft_onnx_reshape(node, node->input[0], &result, &node->output[0]);
}

static weft_status_t emit_transpose(node_t* node) {
  int32_t rank = node->input[0]->shape.rank, count, permutation[WEFT_ONNX_MAX_RANK];
  int64_t given[WEFT_ONNX_MAX_RANK];
  uint32_t mask;
  TRY(weft_onnx_attribute_list(node, "perm", WEFT_ONNX_MAX_RANK, given, &count));
  for (int32_t i = 0; i < rank && count < 0; ++i) given[i] = rank - 1 - i;
  NODE_REQUIRE(node, count < 0 || count == rank, INVALID_INPUT, "perm has %d entries, expected %d", count, rank);
  TRY(weft_onnx_axis_mask(node, rank, given, rank, &mask));
  for (int32_t i = 0; i < rank; ++i) permutation[i] = (int32_t)(given[i] < 0 ? given[i] + rank : given[i]);
  return weft_onnx_transpose(node, node->input[0], permutation, &node->output[0]);
}

static weft_status_t emit_concat(node_t* node) {
  int32_t axis;
  NODE_REQUIRE(node, node->opset < 4 || weft_onnx_has_attribute(node, "axis"), INVALID_INPUT,
               "attribute 'axis' is missing");
  NODE_REQUIRE(node, node->input[0]->shape.rank > 0, INVALID_INPUT, "input 0 is a scalar");
  TRY(weft_onnx_axis(node, 1, node->input[0]->shape.rank, &axis));
  return weft_onnx_concat(node, axis, node->input_count, node->input, &node->output[0]);
}

static weft_status_t slice_axis(node_t* node, value_t* value, int32_t axis, int64_t offset, int64_t size,
                                value_t** out) {
  int64_t offsets[WEFT_ONNX_MAX_RANK] = {0}, sizes[WEFT_ONNX_MAX_RANK], steps[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    sizes[i] = value->shape.extent[i];
    steps[i] = 1;
  }
  offsets[axis] = offset;
  sizes[axis] = size;
  return weft_onnx_slice(node, value, offsets, sizes, steps, out);
}

static weft_status_t emit_split(node_t* node) {
  value_t* value = node->input[0];
  int64_t *sizes, parts = node->output_count;
  int32_t axis, count;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)parts, &sizes));
  TRY(weft_onnx_axis(node, 0, value->shape.rank, &axis));
  TRY(weft_onnx_ints_since(node, 13, 1, "split", (int32_t)parts, sizes, &count));
  int64_t extent = value->shape.extent[axis], each = weft_ceil_div(extent, parts), at = 0;
  if (count < 0 && node->opset >= 18) {
    int64_t num_outputs;
    TRY(weft_onnx_attribute_int(node, "num_outputs", parts, &num_outputs));
    NODE_REQUIRE(node, num_outputs == parts, INVALID_INPUT, "num_outputs is %lld, but it has %lld outputs",
                 (long long)num_outputs, (long long)parts);
  } else {
    NODE_REQUIRE(node, count >= 0 || extent % parts == 0, INVALID_INPUT, "%lld elements do not split into %lld parts",
                 (long long)extent, (long long)parts);
  }
  NODE_REQUIRE(node, count < 0 || count == parts, INVALID_INPUT, "split has %d sizes, but it has %lld outputs", count,
               (long long)parts);
  for (int64_t i = 0; i < parts; ++i) {
    int64_t size = count < 0 ? weft_max_i64(weft_min_i64(each, extent - at), 0) : sizes[i];
    NODE_REQUIRE(node, size >= 0 && size <= extent - at, INVALID_INPUT,
                 "part %lld of %lld elements does not fit: axis %d has %lld", (long long)i, (long long)size, axis,
                 (long long)extent);
    TRY(slice_axis(node, value, axis, at, size, &node->output[i]));
    at += size;
  }
  NODE_REQUIRE(node, at == extent, INVALID_INPUT, "the parts have %lld elements, axis %d has %lld", (long long)at, axis,
               (long long)extent);
  return weft_ok();
}

// One axis of Slice: clamps, then how many elements.
static int64_t slice_bounds(int64_t extent, int64_t step, int64_t* start, int64_t end) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  if (*start < 0) *start = *start < -extent ? low : *start + extent;
  if (end < 0) end = end < -extent ? low : end + extent;
  *start = step > 0 ? weft_min_i64(*start, extent) : weft_min_i64(*start, extent - 1);
  if (*start < 0 && step > 0) *start = 0;
  end = weft_max_i64(weft_min_i64(end, high), low);
  if (step > 0) return end > *start ? (end - *start - 1) / step + 1 : 0;
  return *start > end ? (*start - end - 1) / -step + 1 : 0;
}

static weft_status_t emit_slice(node_t* node) {
  value_t* value = node->input[0];
  int64_t starts[WEFT_ONNX_MAX_RANK], ends[WEFT_ONNX_MAX_RANK], axes[WEFT_ONNX_MAX_RANK], steps[WEFT_ONNX_MAX_RANK];
  int32_t count, end_count, axis_count, step_count = -1;
  uint32_t mask;
  TRY(weft_onnx_ints_since(node, 10, 1, "starts", WEFT_ONNX_MAX_RANK, starts, &count));
  TRY(weft_onnx_ints_since(node, 10, 2, "ends", WEFT_ONNX_MAX_RANK, ends, &end_count));
  TRY(weft_onnx_ints_since(node, 10, 3, "axes", WEFT_ONNX_MAX_RANK, axes, &axis_count));
  if (node->opset >= 10) TRY(weft_onnx_known_ints(node, 4, "steps", WEFT_ONNX_MAX_RANK, steps, &step_count));
  NODE_REQUIRE(node,
               count >= 0 && end_count == count && (axis_count < 0 || axis_count == count) &&
                   (step_count < 0 || step_count == count),
               INVALID_INPUT, "starts, ends, axes and steps have %d, %d, %d and %d entries, expected one count", count,
               end_count, axis_count, step_count);
  for (int32_t i = 0; i < count && axis_count < 0; ++i) axes[i] = i;
  TRY(weft_onnx_axis_mask(node, count, axes, value->shape.rank, &mask));
  for (int32_t i = 0; i < count; ++i) {
    int32_t axis;
    int64_t step = step_count < 0 ? 1 : steps[i], start = starts[i];
    TRY(weft_onnx_normalize_axis(node, axes[i], value->shape.rank, &axis));
    NODE_REQUIRE(node, step != 0 && step > -INT64_MAX, INVALID_INPUT, "step %lld on axis %d", (long long)step, axis);
    int64_t size = slice_bounds(value->shape.extent[axis], step, &start, ends[i]);
    if (size == 0 || step == 1) {
      TRY(slice_axis(node, value, axis, size ? start : 0, size, &value));
      continue;
    }
    int64_t* index;
    TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)size, &index));
    for (int64_t j = 0; j < size; ++j) index[j] = start + j * step;
    TRY(weft_onnx_take(node, value, axis, size, index, &value));
  }
  node->output[0] = value;
  return weft_ok();
}

// Which element a padded position copies.
static int64_t mirrored(const char* mode, int64_t at, int64_t extent) {
  if (strcmp(mode, "edge") == 0) return weft_max_i64(weft_min_i64(at, extent - 1), 0);
  if (strcmp(mode, "wrap") == 0) return ((at % extent) + extent) % extent;
  int64_t period = extent > 1 ? 2 * (extent - 1) : 1; // reflect
  at = ((at % period) + period) % period;
  return at < extent ? at : period - at;
}

static weft_status_t pad_copying(node_t* node, const char* mode, const int64_t* low, const int64_t* high) {
  value_t* value = node->input[0];
  for (int32_t axis = 0; axis < value->shape.rank; ++axis) {
    int64_t extent = value->shape.extent[axis], *index;
    int64_t count = extent + low[axis] + high[axis];
    if (low[axis] == 0 && high[axis] == 0) continue;
    NODE_REQUIRE(node, count >= 0 && count < INT32_MAX && extent > 0, INVALID_INPUT,
                 "pads of %lld and %lld on axis %d of %s", (long long)low[axis], (long long)high[axis], axis,
                 weft_onnx_shape_format(&value->shape).text);
    TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count, &index));
    for (int64_t i = 0; i < count; ++i) index[i] = mirrored(mode, i - low[axis], extent);
    TRY(weft_onnx_take(node, value, axis, count, index, &value));
  }
  node->output[0] = value;
  return weft_ok();
}

static weft_status_t emit_pad(node_t* node) {
  value_t* value = node->input[0];
  int32_t rank = value->shape.rank, count, axis_count = -1;
  int64_t pads[2 * WEFT_ONNX_MAX_RANK], axes[WEFT_ONNX_MAX_RANK];
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  uint32_t mask;
  const char* mode;
  double fill;
  TRY(weft_onnx_attribute_string(node, "mode", "constant", &mode));
  TRY(weft_onnx_ints_since(node, 11, 1, node->opset < 2 ? "paddings" : "pads", 2 * WEFT_ONNX_MAX_RANK, pads, &count));
  if (node->opset < 11)
    TRY(weft_onnx_attribute_float(node, "value", 0, &fill));
  else
    TRY(weft_onnx_known_number(node, 2, "constant_value", 0, &fill));
  if (node->opset >= 18) TRY(weft_onnx_known_ints(node, 3, "axes", WEFT_ONNX_MAX_RANK, axes, &axis_count));
  if (axis_count < 0)
    for (axis_count = 0; axis_count < rank; ++axis_count) axes[axis_count] = axis_count;
  NODE_REQUIRE(node, count == 2 * axis_count, INVALID_INPUT, "pads has %d entries, expected %d", count, 2 * axis_count);
  TRY(weft_onnx_axis_mask(node, axis_count, axes, rank, &mask));
  for (int32_t i = 0; i < axis_count; ++i) {
    int32_t axis;
    TRY(weft_onnx_normalize_axis(node, axes[i], rank, &axis));
    low[axis] = pads[i];
    high[axis] = pads[axis_count + i];
    NODE_REQUIRE(node,
                 low[axis] > -INT32_MAX && low[axis] < INT32_MAX && high[axis] > -INT32_MAX && high[axis] < INT32_MAX,
                 INVALID_INPUT, "pads of %lld and %lld on axis %d", (long long)low[axis], (long long)high[axis], axis);
  }
  if (strcmp(mode, "constant") == 0) return weft_onnx_pad(node, value, low, high, fill, &node->output[0]);
  NODE_REQUIRE(node, strcmp(mode, "edge") == 0 || strcmp(mode, "reflect") == 0 || strcmp(mode, "wrap") == 0,
               INVALID_INPUT, "mode is '%s', expected constant, edge, reflect or wrap", mode);
  return pad_copying(node, mode, low, high);
}

static weft_status_t emit_expand(node_t* node) {
  shape_t shape = {0};
  TRY(weft_onnx_known_ints(node, 1, "shape", WEFT_ONNX_MAX_RANK, shape.extent, &shape.rank));
  return weft_onnx_expand(node, node->input[0], &shape, &node->output[0]);
}

// Each repeated axis becomes (repeats, extent): an extent of 1 that is expanded, then merged.
static weft_status_t emit_tile(node_t* node) {
  value_t* value = node->input[0];
  int64_t repeats[WEFT_ONNX_MAX_RANK];
  int32_t count;
  TRY(weft_onnx_known_ints(node, 1, "repeats", WEFT_ONNX_MAX_RANK, repeats, &count));
  NODE_REQUIRE(node, count == value->shape.rank, INVALID_INPUT, "repeats has %d entries, expected %d", count,
               value->shape.rank);
  for (int32_t axis = 0; axis < count; ++axis) {
    if (repeats[axis] == 1) continue;
    shape_t merged = value->shape;
    NODE_REQUIRE(node, repeats[axis] >= 0 && weft_checked_mul(merged.extent[axis], repeats[axis], &merged.extent[axis]),
                 INVALID_INPUT, "repeats has %lld on axis %d", (long long)repeats[axis], axis);
    TRY(weft_onnx_unsqueeze(node, value, axis, &value));
    shape_t repeated = value->shape;
    repeated.extent[axis] = repeats[axis];
    TRY(weft_onnx_expand(node, value, &repeated, &value));
    TRY(weft_onnx_reshape(node, value, &merged, &value));
  }
  node->output[0] = value;
  return weft_ok();
}

// reshape, transpose, reshape: blocks between the channel axis and the two spatial ones.
static weft_status_t emit_depth_space(node_t* node) {
  value_t* value = node->input[0];
  int64_t block;
  const char* mode;
  bool to_space = node->op->kind == 0;
  TRY(weft_onnx_attribute_int(node, "blocksize", 0, &block));
  TRY(weft_onnx_attribute_string(node, "mode", "DCR", &mode));
  NODE_REQUIRE(node, value->shape.rank == 4 && block > 0 && block < INT32_MAX, INVALID_INPUT,
               "input has shape %s and blocksize is %lld, expected rank 4 and at least 1",
               weft_onnx_shape_format(&value->shape).text, (long long)block);
  int64_t n = value->shape.extent[0], c = value->shape.extent[1], h = value->shape.extent[2],
          w = value->shape.extent[3];
  bool divides = to_space ? c % (block * block) == 0 : h % block == 0 && w % block == 0;
  NODE_REQUIRE(node, divides, INVALID_INPUT, "shape %s does not divide by blocksize %lld",
               weft_onnx_shape_format(&value->shape).text, (long long)block);
  static const int32_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3}, to_depth[] = {0, 3, 5, 1, 2, 4};
  bool columns_first = strcmp(mode, "CRD") == 0;
  int64_t inner = c / (block * block);
  shape_t split =
      columns_first ? (shape_t){6, {n, inner, block, block, h, w}} : (shape_t){6, {n, block, block, inner, h, w}};
  shape_t merged = {4, {n, inner, h * block, w * block}};
  if (!to_space) {
    split = (shape_t){6, {n, c, h / block, block, w / block, block}};
    merged = (shape_t){4, {n, c * block * block, h / block, w / block}};
  }
  TRY(weft_onnx_reshape(node, value, &split, &value));
  TRY(weft_onnx_transpose(node, value, !to_space ? to_depth : columns_first ? crd : dcr, &value));
  return weft_onnx_reshape(node, value, &merged, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Concat", 1, 1, WEFT_ONNX_ANY, 1, emit_concat, ""),
    OPERATOR("DepthToSpace", 1, 1, 1, 1, emit_depth_space, ""),
    OPERATOR("Dropout", 1, 1, 3, 2, emit_dropout, "inference only: the input itself"),
    OPERATOR("Expand", 8, 2, 2, 1, emit_expand, "constant shape"),
    OPERATOR("Flatten", 1, 1, 1, 1, emit_flatten, ""),
    OPERATOR("Identity", 1, 1, 1, 1, emit_identity, "", .takes_sequences = true),
    OPERATOR("Pad", 1, 1, 4, 1, emit_pad, "constant pads and value"),
    OPERATOR("Reshape", 1, 1, 2, 1, emit_reshape, "constant shape"),
    OPERATOR("Slice", 1, 1, 5, 1, emit_slice, "constant bounds"),
    OPERATOR("SpaceToDepth", 1, 1, 1, 1, emit_depth_space, "", .kind = 1),
    OPERATOR("Split", 2, 1, 2, WEFT_ONNX_ANY, emit_split, "constant sizes"),
    OPERATOR("Squeeze", 1, 1, 2, 1, emit_squeeze, "constant axes"),
    OPERATOR("Tile", 6, 2, 2, 1, emit_tile, "constant repeats"),
    OPERATOR("Transpose", 1, 1, 1, 1, emit_transpose, ""),
    OPERATOR("Unsqueeze", 1, 1, 2, 1, emit_unsqueeze, "constant axes"),
    {0}};

const weft_onnx_family_t weft_onnx_family_movement = {"Movement", operators};
