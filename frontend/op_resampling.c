// Resize: separable, one axis after the other. Nearest is movement; linear and cubic are products with a constant
// matrix.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

enum { NEAREST, LINEAR, CUBIC };
typedef struct resize_t {
  int32_t mode;
  const char *transformation, *nearest, *policy;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
  bool crops; // tf_crop_and_resize: positions come from a region, and may lie outside of the input
} resize_t;
typedef struct axis_t { // what happens to one axis
  int32_t axis;
  int64_t in, out;
  double scale, start, end; // start, end: of the region, in parts of the input
} axis_t;

static double coordinate(const resize_t* resize, const axis_t* axis, int64_t x) {
  const char* mode = resize->transformation;
  double in = (double)axis->in, out = (double)axis->out, scale = axis->scale;
  double half_pixel = ((double)x + 0.5) / scale - 0.5;
  if (resize->crops)
    return axis->out == 1 ? 0.5 * (axis->start + axis->end) * (in - 1)
                          : axis->start * (in - 1) + (double)x * (axis->end - axis->start) * (in - 1) / (out - 1);
  if (strcmp(mode, "asymmetric") == 0) return (double)x / scale;
  // The resized length is not rounded here: scale * in.
  if (strcmp(mode, "align_corners") == 0) return axis->out == 1 ? 0 : (double)x * (in - 1) / (scale * in - 1);
  if (strcmp(mode, "tf_half_pixel_for_nn") == 0) return ((double)x + 0.5) / scale;
  if (strcmp(mode, "pytorch_half_pixel") == 0) return axis->out > 1 ? half_pixel : 0;
  if (strcmp(mode, "half_pixel_symmetric") == 0) return in / 2 * (1 - out / (scale * in)) + half_pixel;
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

static weft_status_t resize_nearest(node_t* node, const resize_t* resize, const axis_t* axis, value_t* value,
                                    value_t** out) {
  int64_t *index, factor = axis->in ? axis->out / axis->in : 0;
  bool repeats = factor >= 1 && axis->out == factor * axis->in;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)axis->out + 1, &index));
  for (int64_t o = 0; o < axis->out; ++o) {
    index[o] = nearest_index(resize, coordinate(resize, axis, o), axis->in);
    repeats = repeats && index[o] == o / factor;
  }
  if (repeats && value->shape.rank < WEFT_ONNX_MAX_RANK) return repeat(node, value, axis->axis, factor, out);
  return weft_onnx_take(node, value, axis->axis, axis->out, index, out);
}

// How much an element at a distance counts.
static double filter(const resize_t* resize, double distance) {
  double x = fabs(distance), a = resize->cubic_a;
  if (resize->mode == LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// One row of the matrix: the elements around x, those beyond an end on that end. To shrink without aliasing the filter
// is as much wider as the result is smaller.
static void weights_around(const resize_t* resize, const axis_t* axis, double x, double* row) {
  double narrow = resize->antialias && axis->scale < 1 ? axis->scale : 1, total = 0;
  double reach = (resize->mode == LINEAR ? 1 : 2) / narrow;
  int64_t first = (int64_t)floor(x - reach), last = (int64_t)ceil(x + reach);
  for (int64_t i = first; i <= last; ++i) {
    double weight = filter(resize, ((double)i - x) * narrow);
    if (resize->exclude_outside && (i < 0 || i >= axis->in)) continue;
    row[clamp_index((double)i, axis->in)] += weight;
    total += weight;
  }
  if (!resize->exclude_outside && !resize->antialias) return; // they add up to 1
  for (int64_t i = 0; i < axis->in; ++i) row[i] /= total;
}

static weft_status_t resize_weighted(node_t* node, const resize_t* resize, const axis_t* axis, value_t* value,
                                     value_t** out) {
  int64_t count;
  shape_t shape = {2, {axis->out, axis->in}};
  weft_dtype_e dtype = weft_onnx_accumulator(value->dtype);
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 26), UNSUPPORTED,
               "resizing %lld elements to %lld is too large", (long long)axis->in, (long long)axis->out);
  double* sums;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, &sums));
  for (int64_t o = 0; o < axis->out; ++o)
    weights_around(resize, axis, coordinate(resize, axis, o), sums + o * axis->in);
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(dtype, sums[i], data + (size_t)i * width);
  value_t* matrix;
  TRY(weft_onnx_known(node, dtype, &shape, data, &matrix));
  return weft_onnx_apply_matrix(node, matrix, value, axis->axis, out);
}

static scalar_t outside_or_inside(body_t* b, const scalar_t* x) {
  return s_select(b, x[1], s_const(x[0], b->p[0]), x[0]);
}

// Positions of the result that a region places outside of the input have one value.
static weft_status_t extrapolate(node_t* node, const resize_t* resize, const axis_t* axis, value_t** value) {
  uint8_t* outside;
  bool any = false;
  value_t* mask;
  TRY(weft_arena_allocate(node->builder->arena, (size_t)axis->out, 1, (void**)&outside));
  for (int64_t o = 0; o < axis->out; ++o) {
    double x = coordinate(resize, axis, o);
    outside[o] = x < 0 || x > (double)(axis->in - 1);
    any |= outside[o];
  }
  if (!any) return weft_ok();
  shape_t shape = {.rank = (*value)->shape.rank - axis->axis, .extent = {axis->out}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_known(node, WEFT_DTYPE_BOOL, &shape, outside, &mask));
  return weft_onnx_pointwise(node, outside_or_inside, &resize->extrapolation, (*value)->dtype, 2,
                             (value_t*[]){*value, mask}, value);
}

static weft_status_t read_mode(node_t* node, resize_t* resize) {
  const char* mode;
  bool old = node->opset < 11 || node->op->kind; // Upsample, and Resize as it was at first
  int64_t antialias, exclude;
  TRY(weft_onnx_attribute_string(node, "mode", "nearest", &mode));
  TRY(weft_onnx_attribute_string(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                                 &resize->transformation));
  TRY(weft_onnx_attribute_string(node, "nearest_mode", old ? "floor" : "round_prefer_floor", &resize->nearest));
  TRY(weft_onnx_attribute_string(node, "keep_aspect_ratio_policy", "stretch", &resize->policy));
  TRY(weft_onnx_attribute_float(node, "cubic_coeff_a", -0.75, &resize->cubic_a));
  TRY(weft_onnx_attribute_int(node, "antialias", 0, &antialias));
  TRY(weft_onnx_attribute_int(node, "exclude_outside", 0, &exclude));
  TRY(weft_onnx_attribute_float(node, "extrapolation_value", 0, &resize->extrapolation));
  resize->exclude_outside = exclude != 0;
  resize->mode = strcmp(mode, "nearest") == 0 ? NEAREST : strcmp(mode, "cubic") == 0 ? CUBIC : LINEAR;
  resize->antialias = antialias && resize->mode != NEAREST;
  resize->crops = strcmp(resize->transformation, "tf_crop_and_resize") == 0;
  static const char* const known[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
                                      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  bool is_known = false;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
    is_known |= strcmp(resize->transformation, known[i]) == 0;
  NODE_REQUIRE(node, is_known, INVALID_INPUT, "coordinate_transformation_mode is '%s', which is none",
               resize->transformation);
  return weft_ok();
}

// Numbers from input `index` or Upsample's old attribute; *out_count 0 when there are none.
static weft_status_t read_floats(node_t* node, int32_t index, const char* name, int32_t max, double* out,
                                 int32_t* out_count) {
  const Onnx__AttributeProto* attribute = NULL;
  const value_t* value = weft_onnx_input(node, index);
  *out_count = 0;
  if (!value) TRY(weft_onnx_attribute_proto(node, name, &attribute));
  NODE_REQUIRE(node, !value || value->data, UNSUPPORTED, "%s are known at run time only%s", name,
               weft_onnx_bind_hint(node, value));
  int64_t count = attribute ? (int64_t)attribute->n_floats : value ? weft_onnx_count(value) : 0;
  NODE_REQUIRE(node, count <= max, INVALID_INPUT, "there are %lld %s", (long long)count, name);
  for (int64_t i = 0; i < count; ++i)
    out[i] = attribute ? (double)attribute->floats[i]
                       : weft_dtype_load(value->dtype,
                                         (const uint8_t*)value->data + (size_t)i * weft_dtype_size(value->dtype));
  *out_count = (int32_t)count;
  return weft_ok();
}

// With an aspect policy all axes have one scale: the smallest or the largest that the sizes ask for.
static void keep_aspect(const resize_t* resize, int32_t count, axis_t* axes) {
  bool larger = strcmp(resize->policy, "not_smaller") == 0;
  double scale = axes[0].scale;
  for (int32_t i = 1; i < count; ++i) scale = larger ? fmax(scale, axes[i].scale) : fmin(scale, axes[i].scale);
  for (int32_t i = 0; i < count; ++i) {
    axes[i].scale = scale;
    axes[i].out = (int64_t)floor(scale * (double)axes[i].in + 0.5);
  }
}

static weft_status_t read_axes(node_t* node, const resize_t* resize, axis_t* axes, int32_t* out_count) {
  const shape_t* shape = &node->input[0]->shape;
  bool old = node->opset < 11 || node->op->kind;
  double scale[WEFT_ONNX_MAX_RANK], region[2 * WEFT_ONNX_MAX_RANK];
  int64_t size[WEFT_ONNX_MAX_RANK], given[WEFT_ONNX_MAX_RANK];
  int32_t scale_count, size_count = -1, region_count = 0, count;
  uint32_t mask;
  TRY(read_floats(node, old ? 1 : 2, "scales", WEFT_ONNX_MAX_RANK, scale, &scale_count));
  if (!old) TRY(weft_onnx_known_ints(node, 3, "sizes", WEFT_ONNX_MAX_RANK, size, &size_count));
  if (resize->crops) TRY(read_floats(node, 1, "roi", 2 * WEFT_ONNX_MAX_RANK, region, &region_count));
  TRY(weft_onnx_attribute_list(node, "axes", WEFT_ONNX_MAX_RANK, given, &count));
  if (count < 0)
    for (count = 0; count < shape->rank; ++count) given[count] = count;
  NODE_REQUIRE(node, (scale_count == 0 ? size_count : scale_count) == count, INVALID_INPUT,
               "it has %d scales and %d sizes for %d axes", scale_count, size_count, count);
  NODE_REQUIRE(node, !resize->crops || region_count == 2 * count, INVALID_INPUT, "roi has %d numbers for %d axes",
               region_count, count);
  TRY(weft_onnx_axis_mask(node, count, given, shape->rank, &mask));
  for (int32_t i = 0; i < count; ++i) {
    axis_t* axis = &axes[i];
    *axis = (axis_t){.end = 1};
    TRY(weft_onnx_normalize_axis(node, given[i], shape->rank, &axis->axis));
    axis->in = shape->extent[axis->axis];
    NODE_REQUIRE(node, !scale_count || (scale[i] > 0 && scale[i] < 1e6), INVALID_INPUT, "scale %g", scale[i]);
    axis->scale = scale_count ? scale[i] : (double)size[i] / (double)axis->in;
    axis->out = scale_count ? (int64_t)floor((double)axis->in * scale[i]) : size[i];
    if (!resize->crops) continue;
    axis->start = region[i];
    axis->end = region[count + i];
    NODE_REQUIRE(node, fabs(axis->start) < 1e6 && fabs(axis->end) < 1e6, INVALID_INPUT, "roi has %g and %g",
                 axis->start, axis->end);
  }
  if (count && !scale_count && strcmp(resize->policy, "stretch") != 0) keep_aspect(resize, count, axes);
  *out_count = count;
  return weft_ok();
}

static weft_status_t emit_resize(node_t* node) {
  value_t* value = node->input[0];
  weft_dtype_e dtype = value->dtype;
  resize_t resize = {0};
  axis_t axes[WEFT_ONNX_MAX_RANK];
  int32_t count;
  TRY(read_mode(node, &resize));
  TRY(read_axes(node, &resize, axes, &count));
  if (resize.mode != NEAREST && !weft_dtype_is_float(dtype)) {
    NODE_REQUIRE(node, weft_dtype_size(dtype) <= 2, UNSUPPORTED, "only nearest is supported for %s",
                 weft_dtype_name(dtype));
    TRY(weft_onnx_cast(node, value, WEFT_DTYPE_F32, &value));
  }
  for (int32_t i = 0; i < count; ++i) {
    const axis_t* axis = &axes[i];
    NODE_REQUIRE(node, axis->in > 0 && axis->out > 0 && axis->out < INT32_MAX, INVALID_INPUT,
                 "axis %d of %lld elements would have %lld", axis->axis, (long long)axis->in, (long long)axis->out);
    bool is_whole = axis->start == 0 && axis->end == 1;
    if (axis->scale == 1 && axis->in == axis->out && is_whole) continue;
    TRY((resize.mode == NEAREST ? resize_nearest : resize_weighted)(node, &resize, axis, value, &value));
    if (resize.crops) TRY(extrapolate(node, &resize, axis, &value));
  }
  return weft_onnx_cast(node, value, dtype, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Resize", 10, 1, 4, 1, emit_resize, "constant scales, sizes and region"),
    OPERATOR("Upsample", 7, 1, 2, 1, emit_resize, "constant scales", .kind = 1, .until = 9),
    {0}};

const weft_onnx_family_t weft_onnx_family_resampling = {"Resampling", operators};
