// Resize: separable, one axis after the other. Nearest is movement; linear and cubic are products with a constant
// matrix.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

enum { NEAREST, LINEAR, CUBIC };
typedef struct resize_t {
  int32_t mode;
  const char *transformation, *nearest;
  double cubic_a;
  bool exclude_outside;
} resize_t;

static double coordinate(const resize_t* resize, int64_t x, double scale, int64_t in, int64_t out) {
  const char* mode = resize->transformation;
  double half_pixel = ((double)x + 0.5) / scale - 0.5;
  if (strcmp(mode, "asymmetric") == 0) return (double)x / scale;
  // The resized length is not rounded here: scale * in.
  if (strcmp(mode, "align_corners") == 0) return out == 1 ? 0 : (double)x * (double)(in - 1) / (scale * (double)in - 1);
  if (strcmp(mode, "pytorch_half_pixel") == 0) return out > 1 ? half_pixel : 0;
  if (strcmp(mode, "half_pixel_symmetric") == 0)
    return (double)in / 2 * (1 - (double)out / (scale * (double)in)) + half_pixel;
  return half_pixel;
}

static int64_t clamp_index(double x, int64_t in) {
  return x < 0 ? 0 : x > (double)(in - 1) ? in - 1 : (int64_t)x;
}

static int64_t nearest_index(const resize_t* resize, double x, int64_t in) {
  if (strcmp(resize->nearest, "floor") == 0) return clamp_index(floor(x), in);
  if (strcmp(resize->nearest, "ceil") == 0) return clamp_index(ceil(x), in);
  if (strcmp(resize->nearest, "round_prefer_ceil") == 0) return clamp_index(floor(x + 0.5), in);
  return clamp_index(ceil(x - 0.5), in);
}

// Every element `factor` times in a row: a new axis that is expanded.
static weft_status_t repeat(node_t* node, value_t* value, int32_t axis, int64_t factor, value_t** out) {
  shape_t merged = value->shape;
  merged.extent[axis] *= factor;
  TRY(weft_onnx_unsqueeze(node, value, axis + 1, &value));
  shape_t repeated = value->shape;
  repeated.extent[axis + 1] = factor;
  TRY(weft_onnx_expand(node, value, &repeated, &value));
  return weft_onnx_reshape(node, value, &merged, out);
}

static weft_status_t resize_nearest(node_t* node, const resize_t* resize, value_t* value, int32_t axis,
                                    int64_t out_extent, double scale, value_t** out) {
  int64_t in = value->shape.extent[axis], *index, factor = in ? out_extent / in : 0;
  bool repeats = factor >= 1 && out_extent == factor * in;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)out_extent + 1, &index));
  for (int64_t o = 0; o < out_extent; ++o) {
    index[o] = nearest_index(resize, coordinate(resize, o, scale, in, out_extent), in);
    repeats = repeats && index[o] == o / factor;
  }
  if (repeats && value->shape.rank < WEFT_ONNX_MAX_RANK) return repeat(node, value, axis, factor, out);
  return weft_onnx_take(node, value, axis, out_extent, index, out);
}

// The taps around x: positions from *first on. Returns their number.
static int32_t taps(const resize_t* resize, double x, int64_t in, int64_t* first, double* weight) {
  double whole = floor(x), s = x - whole, a = resize->cubic_a, total = 0;
  int32_t count = resize->mode == LINEAR ? 2 : 4;
  *first = (int64_t)whole - (resize->mode == LINEAR ? 0 : 1);
  if (resize->mode == LINEAR) {
    weight[0] = 1 - s;
    weight[1] = s;
  } else {
    weight[0] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
    weight[1] = ((a + 2) * s - (a + 3)) * s * s + 1;
    weight[2] = ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1;
    weight[3] = ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a;
  }
  if (!resize->exclude_outside) return count;
  for (int32_t i = 0; i < count; ++i) {
    if (*first + i < 0 || *first + i >= in) weight[i] = 0;
    total += weight[i];
  }
  for (int32_t i = 0; i < count; ++i) weight[i] /= total;
  return count;
}

static weft_status_t resize_weighted(node_t* node, const resize_t* resize, value_t* value, int32_t axis,
                                     int64_t out_extent, double scale, value_t** out) {
  int64_t in = value->shape.extent[axis], count;
  shape_t shape = {2, {out_extent, in}};
  weft_dtype_e dtype = weft_onnx_accumulator(value->dtype);
  NODE_REQUIRE(node, weft_dtype_is_float(dtype), UNSUPPORTED, "only nearest is supported for %s",
               weft_dtype_name(dtype));
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 26), UNSUPPORTED,
               "resizing %lld elements to %lld is too large", (long long)in, (long long)out_extent);
  double* sums;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, &sums));
  for (int64_t o = 0; o < out_extent; ++o) {
    int64_t first;
    double weight[4];
    int32_t tap_count = taps(resize, coordinate(resize, o, scale, in, out_extent), in, &first, weight);
    for (int32_t t = 0; t < tap_count; ++t) sums[o * in + clamp_index((double)(first + t), in)] += weight[t];
  }
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(dtype, sums[i], data + (size_t)i * width);
  value_t* matrix;
  TRY(weft_onnx_known(node, dtype, &shape, data, &matrix));
  return weft_onnx_apply_matrix(node, matrix, value, axis, out);
}

static weft_status_t read_mode(node_t* node, resize_t* resize) {
  const char* mode;
  bool old = node->opset < 11 || node->op->kind; // Upsample, and Resize as it was at first
  int64_t antialias, exclude;
  const char* policy;
  TRY(weft_onnx_attribute_string(node, "mode", "nearest", &mode));
  TRY(weft_onnx_attribute_string(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                                 &resize->transformation));
  TRY(weft_onnx_attribute_string(node, "nearest_mode", old ? "floor" : "round_prefer_floor", &resize->nearest));
  TRY(weft_onnx_attribute_string(node, "keep_aspect_ratio_policy", "stretch", &policy));
  TRY(weft_onnx_attribute_float(node, "cubic_coeff_a", -0.75, &resize->cubic_a));
  TRY(weft_onnx_attribute_int(node, "antialias", 0, &antialias));
  TRY(weft_onnx_attribute_int(node, "exclude_outside", 0, &exclude));
  resize->exclude_outside = exclude != 0;
  resize->mode = strcmp(mode, "nearest") == 0 ? NEAREST : strcmp(mode, "cubic") == 0 ? CUBIC : LINEAR;
  NODE_REQUIRE(node, !antialias || resize->mode == NEAREST, UNSUPPORTED, "antialias is not supported");
  NODE_REQUIRE(node, strcmp(policy, "stretch") == 0, UNSUPPORTED, "keep_aspect_ratio_policy '%s' is not supported",
               policy);
  NODE_REQUIRE(node, strncmp(resize->transformation, "tf_", 3) != 0, UNSUPPORTED,
               "coordinate_transformation_mode '%s' is not supported", resize->transformation);
  return weft_ok();
}

// Scales from input `index` or Upsample's old attribute; *out_count 0 when there are none.
static weft_status_t read_scales(node_t* node, int32_t index, double* scale, int32_t* out_count) {
  const Onnx__AttributeProto* attribute = NULL;
  const value_t* value = weft_onnx_input(node, index);
  *out_count = 0;
  if (!value) TRY(weft_onnx_attribute_proto(node, "scales", &attribute));
  NODE_REQUIRE(node, !value || value->data, UNSUPPORTED, "scales are computed at run time");
  int64_t count = attribute ? (int64_t)attribute->n_floats : value ? weft_onnx_count(value) : 0;
  NODE_REQUIRE(node, count <= WEFT_ONNX_MAX_RANK, INVALID_INPUT, "there are %lld scales", (long long)count);
  for (int64_t i = 0; i < count; ++i) {
    scale[i] = attribute ? (double)attribute->floats[i]
                         : weft_dtype_load(value->dtype,
                                           (const uint8_t*)value->data + (size_t)i * weft_dtype_size(value->dtype));
    NODE_REQUIRE(node, scale[i] > 0 && scale[i] < 1e6, INVALID_INPUT, "scale %g", scale[i]);
  }
  *out_count = (int32_t)count;
  return weft_ok();
}

static weft_status_t emit_resize(node_t* node) {
  value_t* value = node->input[0];
  resize_t resize;
  double scale[WEFT_ONNX_MAX_RANK];
  int64_t size[WEFT_ONNX_MAX_RANK], axes[WEFT_ONNX_MAX_RANK];
  int32_t scale_count, size_count = -1, axis_count, rank = value->shape.rank;
  uint32_t mask;
  bool old = node->opset < 11 || node->op->kind;
  TRY(read_mode(node, &resize));
  TRY(read_scales(node, old ? 1 : 2, scale, &scale_count));
  if (!old) TRY(weft_onnx_known_ints(node, 3, "sizes", WEFT_ONNX_MAX_RANK, size, &size_count));
  TRY(weft_onnx_attribute_list(node, "axes", WEFT_ONNX_MAX_RANK, axes, &axis_count));
  if (axis_count < 0)
    for (axis_count = 0; axis_count < rank; ++axis_count) axes[axis_count] = axis_count;
  NODE_REQUIRE(node, (scale_count == 0 ? size_count : scale_count) == axis_count, INVALID_INPUT,
               "it has %d scales and %d sizes for %d axes", scale_count, size_count, axis_count);
  TRY(weft_onnx_axis_mask(node, axis_count, axes, rank, &mask));
  for (int32_t i = 0; i < axis_count; ++i) {
    int32_t axis;
    TRY(weft_onnx_normalize_axis(node, axes[i], rank, &axis));
    double in = (double)value->shape.extent[axis];
    int64_t out_extent = scale_count ? (int64_t)floor(in * scale[i]) : size[i];
    NODE_REQUIRE(node, out_extent > 0 && out_extent < INT32_MAX, INVALID_INPUT, "axis %d would have %lld elements",
                 axis, (long long)out_extent);
    double factor = scale_count ? scale[i] : (double)out_extent / in;
    if (factor == 1) continue;
    TRY((resize.mode == NEAREST ? resize_nearest : resize_weighted)(node, &resize, value, axis, out_extent, factor,
                                                                    &value));
  }
  return weft_onnx_cast(node, value, node->input[0]->dtype, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Resize", 10, 1, 4, 1, emit_resize, "constant scales or sizes; no antialias, cropping or aspect policies"),
    OPERATOR("Upsample", 7, 1, 2, 1, emit_resize, "constant scales", .kind = 1, .until = 9),
    {0}};

const weft_onnx_family_t weft_onnx_family_resampling = {"Resampling", operators};
