// Convolution and pooling: windows that slide over the spatial axes.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

enum { MAX_SPATIAL = 3 };
typedef struct window_t {
  int32_t rank; // spatial axes
  int64_t in[MAX_SPATIAL], kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
  int64_t low[MAX_SPATIAL], high[MAX_SPATIAL]; // pads
  int64_t extra[MAX_SPATIAL];                  // more on the high side, where ceil_mode lets a window hang over
  int64_t out[MAX_SPATIAL];
} window_t;

static const int64_t max_attribute = INT32_MAX; // strides, dilations, pads: products stay within 64 bits

static weft_status_t check_range(node_t* node, const char* name, const window_t* window, const int64_t* values,
                                 int64_t least) {
  for (int32_t i = 0; i < window->rank; ++i)
    NODE_REQUIRE(node, values[i] >= least && values[i] < max_attribute, INVALID_INPUT,
                 "%s has %lld, expected at least %lld", name, (long long)values[i], (long long)least);
  return weft_ok();
}

static weft_status_t resolve_pads(node_t* node, window_t* window) {
  const char* automatic;
  int64_t pads[2 * MAX_SPATIAL];
  TRY(weft_onnx_attribute_string(node, "auto_pad", "NOTSET", &automatic));
  bool upper = strcmp(automatic, "SAME_UPPER") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
  bool valid = strcmp(automatic, "VALID") == 0;
  NODE_REQUIRE(node, upper || lower || valid || strcmp(automatic, "NOTSET") == 0, INVALID_INPUT,
               "auto_pad is '%s', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", automatic);
  TRY(weft_onnx_attribute_ints(node, "pads", 2 * window->rank, 0, pads));
  for (int32_t i = 0; i < window->rank; ++i) {
    window->low[i] = valid ? 0 : pads[i];
    window->high[i] = valid ? 0 : pads[window->rank + i];
    if (!upper && !lower) continue;
    int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
    int64_t out = weft_ceil_div(window->in[i], window->stride[i]);
    int64_t total = weft_max_i64((out - 1) * window->stride[i] + reach - window->in[i], 0);
    window->low[i] = upper ? total / 2 : total - total / 2;
    window->high[i] = total - window->low[i];
  }
  TRY(check_range(node, "pads", window, window->low, 0));
  return check_range(node, "pads", window, window->high, 0);
}

// kernel is set; everything else comes from the attributes.
static weft_status_t resolve_window(node_t* node, const shape_t* shape, bool ceil_mode, window_t* window) {
  window->rank = shape->rank - 2;
  for (int32_t i = 0; i < window->rank; ++i) window->in[i] = shape->extent[2 + i];
  TRY(weft_onnx_attribute_ints(node, "strides", window->rank, 1, window->stride));
  TRY(weft_onnx_attribute_ints(node, "dilations", window->rank, 1, window->dilation));
  TRY(check_range(node, "kernel_shape", window, window->kernel, 1));
  TRY(check_range(node, "strides", window, window->stride, 1));
  TRY(check_range(node, "dilations", window, window->dilation, 1));
  TRY(resolve_pads(node, window));
  for (int32_t i = 0; i < window->rank; ++i) {
    int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
    int64_t padded = window->in[i] + window->low[i] + window->high[i], room = padded - reach;
    NODE_REQUIRE(node, room >= 0, INVALID_INPUT,
                 "a window of %lld elements is larger than the padded input of %lld on spatial axis %d",
                 (long long)reach, (long long)padded, i);
    window->out[i] = room / window->stride[i] + 1;
    if (ceil_mode && room % window->stride[i] != 0 &&
        window->out[i] * window->stride[i] < window->in[i] + window->low[i])
      window->out[i]++; // a last window that starts inside of the input may hang over
    int64_t used = (window->out[i] - 1) * window->stride[i] + reach;
    window->extra[i] = weft_max_i64(used - padded, 0);
  }
  return weft_ok();
}

static weft_status_t spatial_rank(node_t* node, const value_t* value) {
  int32_t rank = value->shape.rank;
  NODE_REQUIRE(node, rank >= 3, INVALID_INPUT, "input has shape %s, expected batch, channels and spatial axes",
               weft_onnx_shape_format(&value->shape).text);
  NODE_REQUIRE(node, rank - 2 <= MAX_SPATIAL, UNSUPPORTED, "it has %d spatial axes, at most %d are supported", rank - 2,
               MAX_SPATIAL);
  return weft_ok();
}

static weft_status_t pad_spatial(node_t* node, value_t* value, const window_t* window, double fill, value_t** out) {
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  for (int32_t i = 0; i < window->rank; ++i) {
    low[2 + i] = window->low[i];
    high[2 + i] = window->high[i] + window->extra[i];
  }
  return weft_onnx_pad(node, value, low, high, fill, out);
}

static weft_onnx_axis_map_t sliding(const window_t* window, int32_t axis, int32_t out_dim, int32_t kernel_dim) {
  return (weft_onnx_axis_map_t){out_dim, kernel_dim, window->stride[axis], window->dilation[axis]};
}

// --- Convolution

// Groups are one more parallel dimension: input [N, G, C/G, ..], weights [G, M/G, C/G, ..], result [N, G, M/G, ..].
static weft_status_t convolve(node_t* node, value_t* input, value_t* weights, int64_t groups, const window_t* window,
                              value_t** out) {
  int32_t rank = window->rank, grouped = groups > 1;
  int64_t batch = input->shape.extent[0], channels = input->shape.extent[1] / groups;
  int64_t filters = weights->shape.extent[0] / groups;
  if (grouped) {
    shape_t split = {3 + rank, {batch, groups, channels}}, split_weights = {3 + rank, {groups, filters, channels}};
    for (int32_t i = 0; i < rank; ++i) {
      split.extent[3 + i] = input->shape.extent[2 + i];
      split_weights.extent[3 + i] = weights->shape.extent[2 + i];
    }
    TRY(weft_onnx_reshape(node, input, &split, &input));
    TRY(weft_onnx_reshape(node, weights, &split_weights, &weights));
  }
  // Dimensions: n, (g), m, out.., c, kernel..
  int32_t g = 1, m = 1 + grouped, o = m + 1, c = o + rank, k = c + 1;
  weft_onnx_generic_t generic = {.rank = k + rank,
                                 .operand_count = 2,
                                 .dtype = weft_onnx_accumulator(input->dtype),
                                 .body = weft_onnx_body_mul_add};
  weft_onnx_operand_t *x = &generic.operand[0], *w = &generic.operand[1];
  *x = (weft_onnx_operand_t){.value = input, .rank = input->shape.rank};
  *w = (weft_onnx_operand_t){.value = weights, .rank = weights->shape.rank};
  generic.extent[0] = batch;
  x->axis[0] = weft_onnx_along(0);
  if (grouped) {
    generic.extent[g] = groups;
    x->axis[1] = w->axis[0] = weft_onnx_along(g);
  }
  generic.extent[m] = filters;
  generic.extent[c] = channels;
  w->axis[grouped] = weft_onnx_along(m);
  x->axis[1 + grouped] = w->axis[1 + grouped] = weft_onnx_along(c);
  generic.reduction = 1u << c;
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[o + i] = window->out[i];
    generic.extent[k + i] = window->kernel[i];
    generic.reduction |= 1u << (k + i);
    x->axis[2 + grouped + i] = sliding(window, i, o + i, k + i);
    w->axis[2 + grouped + i] = weft_onnx_along(k + i);
  }
  TRY(weft_onnx_generic(node, &generic, out));
  if (!grouped) return weft_ok();
  shape_t merged = {2 + rank, {batch, groups * filters}};
  memcpy(merged.extent + 2, window->out, (size_t)rank * sizeof(int64_t));
  return weft_onnx_reshape(node, *out, &merged, out);
}

static scalar_t add_bias(body_t* b, const scalar_t* x) {
  return s_add(b, x[0], s_cast(b, x[1], x[0].dtype));
}

// Bias per channel, then the model's type.
static weft_status_t finish(node_t* node, value_t* result, value_t* bias, weft_dtype_e dtype) {
  if (!bias) return weft_onnx_cast(node, result, dtype, &node->output[0]);
  NODE_REQUIRE(node, bias->dtype == dtype && bias->shape.rank == 1 && bias->shape.extent[0] == result->shape.extent[1],
               INVALID_INPUT, "bias is %s of shape %s, expected %s of shape [%lld]", weft_dtype_name(bias->dtype),
               weft_onnx_shape_format(&bias->shape).text, weft_dtype_name(dtype), (long long)result->shape.extent[1]);
  shape_t shape = {.rank = result->shape.rank - 1, .extent = {bias->shape.extent[0]}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = 1;
  TRY(weft_onnx_reshape(node, bias, &shape, &bias));
  return weft_onnx_pointwise(node, add_bias, NULL, dtype, 2, (value_t*[]){result, bias}, &node->output[0]);
}

static weft_status_t kernel_from_weights(node_t* node, const value_t* weights, window_t* window) {
  window->rank = weights->shape.rank - 2;
  int64_t kernel[MAX_SPATIAL];
  TRY(weft_onnx_attribute_ints(node, "kernel_shape", window->rank, -1, kernel));
  for (int32_t i = 0; i < window->rank; ++i) {
    window->kernel[i] = weights->shape.extent[2 + i];
    NODE_REQUIRE(node, kernel[i] == window->kernel[i] || kernel[i] == -1, INVALID_INPUT,
                 "kernel_shape has %lld on spatial axis %d, but the weights have shape %s", (long long)kernel[i], i,
                 weft_onnx_shape_format(&weights->shape).text);
  }
  return weft_ok();
}

static weft_status_t conv_operands(node_t* node, int64_t* out_groups, window_t* window) {
  const value_t *x = node->input[0], *w = node->input[1];
  TRY(spatial_rank(node, x));
  NODE_REQUIRE(node, w->shape.rank == x->shape.rank && w->dtype == x->dtype, INVALID_INPUT,
               "weights are %s of shape %s, expected %s of rank %d", weft_dtype_name(w->dtype),
               weft_onnx_shape_format(&w->shape).text, weft_dtype_name(x->dtype), x->shape.rank);
  TRY(weft_onnx_attribute_int(node, "group", 1, out_groups));
  NODE_REQUIRE(node, *out_groups > 0 && x->shape.extent[1] % *out_groups == 0, INVALID_INPUT,
               "%lld channels do not split into %lld groups", (long long)x->shape.extent[1], (long long)*out_groups);
  return kernel_from_weights(node, w, window);
}

static weft_status_t emit_conv(node_t* node) {
  value_t *x = node->input[0], *w = node->input[1];
  window_t window = {0};
  int64_t groups;
  TRY(conv_operands(node, &groups, &window));
  NODE_REQUIRE(node, w->shape.extent[1] == x->shape.extent[1] / groups && w->shape.extent[0] % groups == 0,
               INVALID_INPUT, "weights have shape %s, expected %lld channels and a multiple of %lld filters",
               weft_onnx_shape_format(&w->shape).text, (long long)(x->shape.extent[1] / groups), (long long)groups);
  TRY(resolve_window(node, &x->shape, false, &window));
  value_t* result;
  TRY(pad_spatial(node, x, &window, 0, &x));
  TRY(convolve(node, x, w, groups, &window, &result));
  return finish(node, result, weft_onnx_input(node, 2), node->input[0]->dtype);
}

// --- Transposed convolution: a convolution of the input with zeros between its elements and the mirrored weights.

// [.., E, ..] -> [.., (E - 1) * stride + 1, ..]
static weft_status_t stuff_zeros(node_t* node, value_t* value, int32_t axis, int64_t stride, value_t** out) {
  if (stride == 1) {
    *out = value;
    return weft_ok();
  }
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  shape_t merged = value->shape;
  TRY(weft_onnx_unsqueeze(node, value, axis + 1, &value));
  high[axis + 1] = stride - 1;
  TRY(weft_onnx_pad(node, value, low, high, 0, &value));
  merged.extent[axis] *= stride;
  TRY(weft_onnx_reshape(node, value, &merged, &value));
  high[axis + 1] = 0;
  high[axis] = 1 - stride;
  return weft_onnx_pad(node, value, low, high, 0, out);
}

// [C, M/G, k..] -> [M, C/G, k.. mirrored]
static weft_status_t transpose_weights(node_t* node, value_t* w, int64_t groups, value_t** out) {
  int32_t rank = w->shape.rank;
  int64_t channels = w->shape.extent[0] / groups, filters = w->shape.extent[1];
  shape_t split = {rank + 1, {groups, channels, filters}}, merged = {rank, {groups * filters, channels}};
  int32_t permutation[WEFT_ONNX_MAX_RANK] = {0, 2, 1};
  for (int32_t i = 2; i < rank; ++i) {
    split.extent[i + 1] = merged.extent[i] = w->shape.extent[i];
    permutation[i + 1] = i + 1;
    int64_t extent = w->shape.extent[i], *mirrored;
    TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)extent, &mirrored));
    for (int64_t j = 0; j < extent; ++j) mirrored[j] = extent - 1 - j;
    TRY(weft_onnx_take(node, w, i, extent, mirrored, &w));
  }
  TRY(weft_onnx_reshape(node, w, &split, &w));
  TRY(weft_onnx_transpose(node, w, permutation, &w));
  return weft_onnx_reshape(node, w, &merged, out);
}

// Pads of the result: output = (in - 1) * stride + reach + output_padding - pads.
static weft_status_t transposed_pads(node_t* node, const window_t* window, const int64_t* extra, int64_t* low,
                                     int64_t* high) {
  int64_t pads[2 * MAX_SPATIAL], wanted[MAX_SPATIAL];
  int32_t wanted_count;
  const char* automatic;
  TRY(weft_onnx_attribute_ints(node, "pads", 2 * window->rank, 0, pads));
  TRY(weft_onnx_attribute_string(node, "auto_pad", "NOTSET", &automatic));
  TRY(weft_onnx_attribute_list(node, "output_shape", MAX_SPATIAL, wanted, &wanted_count));
  NODE_REQUIRE(node, wanted_count <= 0 || wanted_count == window->rank, INVALID_INPUT,
               "output_shape has %d entries, expected %d", wanted_count, window->rank);
  bool same = strncmp(automatic, "SAME_", 5) == 0, upper = strcmp(automatic, "SAME_UPPER") == 0;
  for (int32_t i = 0; i < window->rank; ++i) {
    low[i] = pads[i];
    high[i] = pads[window->rank + i];
    int64_t full =
        (window->in[i] - 1) * window->stride[i] + (window->kernel[i] - 1) * window->dilation[i] + 1 + extra[i];
    if (wanted_count <= 0 && !same) continue;
    int64_t total = full - (wanted_count > 0 ? wanted[i] : window->in[i] * window->stride[i]);
    int64_t half = (total - (total < 0)) / 2; // rounds down: a result larger than the full one grows at its end
    low[i] = upper ? half : total - half;
    high[i] = total - low[i];
  }
  TRY(check_range(node, "pads", window, low, -max_attribute));
  return check_range(node, "pads", window, high, -max_attribute);
}

static weft_status_t emit_conv_transpose(node_t* node) {
  value_t *x = node->input[0], *w = node->input[1];
  window_t window = {0};
  int64_t groups, extra[MAX_SPATIAL], low[MAX_SPATIAL], high[MAX_SPATIAL];
  TRY(conv_operands(node, &groups, &window));
  NODE_REQUIRE(node, w->shape.extent[0] == x->shape.extent[1], INVALID_INPUT,
               "weights have shape %s, expected %lld on axis 0", weft_onnx_shape_format(&w->shape).text,
               (long long)x->shape.extent[1]);
  int32_t rank = window.rank;
  TRY(weft_onnx_attribute_ints(node, "strides", rank, 1, window.stride));
  TRY(weft_onnx_attribute_ints(node, "dilations", rank, 1, window.dilation));
  TRY(weft_onnx_attribute_ints(node, "output_padding", rank, 0, extra));
  for (int32_t i = 0; i < rank; ++i) window.in[i] = x->shape.extent[2 + i];
  TRY(check_range(node, "kernel_shape", &window, window.kernel, 1));
  TRY(check_range(node, "strides", &window, window.stride, 1));
  TRY(check_range(node, "dilations", &window, window.dilation, 1));
  TRY(check_range(node, "output_padding", &window, extra, 0));
  TRY(transposed_pads(node, &window, extra, low, high));
  for (int32_t i = 0; i < rank; ++i) {
    TRY(stuff_zeros(node, x, 2 + i, window.stride[i], &x));
    int64_t reach = (window.kernel[i] - 1) * window.dilation[i];
    window.low[i] = reach - low[i];
    window.high[i] = reach - high[i] + extra[i];
    window.out[i] = x->shape.extent[2 + i] + window.low[i] + window.high[i] - reach;
    window.stride[i] = 1;
    NODE_REQUIRE(node, window.out[i] > 0, INVALID_INPUT, "pads leave nothing of spatial axis %d", i);
  }
  value_t* result;
  TRY(transpose_weights(node, w, groups, &w));
  TRY(pad_spatial(node, x, &window, 0, &x));
  TRY(convolve(node, x, w, groups, &window, &result));
  return finish(node, result, weft_onnx_input(node, 2), node->input[0]->dtype);
}

// --- Pooling

static weft_status_t pool(node_t* node, value_t* input, const window_t* window, weft_onnx_body_fn body, double initial,
                          weft_dtype_e dtype, value_t** out) {
  int32_t rank = window->rank, k = 2 + rank;
  weft_onnx_generic_t generic = {.rank = 2 + 2 * rank,
                                 .extent = {input->shape.extent[0], input->shape.extent[1]},
                                 .operand_count = 2,
                                 .dtype = dtype,
                                 .initial = initial,
                                 .body = body};
  weft_onnx_operand_t *x = &generic.operand[0], *shape = &generic.operand[1];
  *x = (weft_onnx_operand_t){input, 2 + rank, {weft_onnx_along(0), weft_onnx_along(1)}};
  *shape = (weft_onnx_operand_t){.rank = rank};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[2 + i] = window->out[i];
    generic.extent[k + i] = window->kernel[i];
    generic.reduction |= 1u << (k + i);
    x->axis[2 + i] = sliding(window, i, 2 + i, k + i);
    shape->axis[i] = weft_onnx_along(k + i);
  }
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t pool_window(node_t* node, window_t* window) {
  const value_t* x = node->input[0];
  int64_t ceil_mode;
  TRY(spatial_rank(node, x));
  NODE_REQUIRE(node, weft_onnx_has_attribute(node, "kernel_shape"), INVALID_INPUT,
               "attribute 'kernel_shape' is missing");
  TRY(weft_onnx_attribute_ints(node, "kernel_shape", x->shape.rank - 2, 1, window->kernel));
  TRY(weft_onnx_attribute_int(node, "ceil_mode", 0, &ceil_mode));
  return resolve_window(node, &x->shape, ceil_mode != 0, window);
}

static scalar_t pool_max(body_t* b, const scalar_t* x) {
  return s_max(b, x[2], x[0]);
}
static scalar_t pool_sum(body_t* b, const scalar_t* x) {
  return s_add(b, x[2], s_cast(b, x[0], x[2].dtype));
}

static weft_status_t emit_max_pool(node_t* node) {
  NODE_REQUIRE(node, node->output_count < 2, UNSUPPORTED, "the output Indices is not supported");
  window_t window = {0};
  value_t* x = node->input[0];
  TRY(pool_window(node, &window));
  TRY(pad_spatial(node, x, &window, weft_onnx_lowest(x->dtype), &x));
  return pool(node, x, &window, pool_max, weft_onnx_lowest(x->dtype), x->dtype, &node->output[0]);
}

// Elements of a window that count, along one axis: those of the input, or of the padded input.
static int64_t counted(const window_t* window, int32_t axis, int64_t out, bool include_pads) {
  int64_t first = include_pads ? -window->low[axis] : 0;
  int64_t end = window->in[axis] + (include_pads ? window->high[axis] : 0), count = 0;
  for (int64_t k = 0; k < window->kernel[axis]; ++k) {
    int64_t at = out * window->stride[axis] + k * window->dilation[axis] - window->low[axis];
    count += at >= first && at < end;
  }
  return count;
}

// 1 / (elements a window counts), for each window.
static weft_status_t reciprocal_counts(node_t* node, const window_t* window, bool include_pads, weft_dtype_e dtype,
                                       value_t** out) {
  shape_t shape = weft_onnx_shape_make(window->rank, window->out);
  int64_t total, most = 1;
  bool uniform = true;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &total), INVALID_INPUT, "the result is too large");
  for (int32_t i = 0; i < window->rank; ++i) {
    int64_t first = counted(window, i, 0, include_pads);
    most *= first;
    for (int64_t o = 1; o < window->out[i]; ++o) uniform &= counted(window, i, o, include_pads) == first;
  }
  if (uniform) return weft_onnx_number(node, dtype, 1.0 / (double)most, out);
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)total, width, (void**)&data));
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat, count = 1;
    for (int32_t i = window->rank - 1; i >= 0; rest /= window->out[i--])
      count *= counted(window, i, rest % window->out[i], include_pads);
    weft_dtype_store(dtype, count ? 1.0 / (double)count : 0, data + (size_t)flat * width);
  }
  return weft_onnx_known(node, dtype, &shape, data, out);
}

static weft_status_t emit_average_pool(node_t* node) {
  window_t window = {0};
  value_t *x = node->input[0], *sum, *scale;
  int64_t include_pads;
  TRY(weft_onnx_attribute_int(node, "count_include_pad", 0, &include_pads));
  NODE_REQUIRE(node, weft_dtype_is_float(x->dtype), INVALID_INPUT, "input is %s, expected a float type",
               weft_dtype_name(x->dtype));
  TRY(pool_window(node, &window));
  TRY(pad_spatial(node, x, &window, 0, &x));
  TRY(pool(node, x, &window, pool_sum, 0, weft_onnx_accumulator(x->dtype), &sum));
  TRY(reciprocal_counts(node, &window, include_pads != 0, sum->dtype, &scale));
  return weft_onnx_pointwise(node, weft_onnx_body_mul, NULL, x->dtype, 2, (value_t*[]){sum, scale}, &node->output[0]);
}

static scalar_t abs_power(body_t* b, const scalar_t* x) {
  scalar_t magnitude = s_abs(b, x[0]);
  if (b->p[0] == 1) return magnitude;
  if (b->p[0] == 2) return s_mul(b, x[0], x[0]);
  return weft_onnx_scalar_binary(b, WEFT_ONNX_POW, magnitude, s_const(x[0], b->p[0]));
}
static scalar_t p_root(body_t* b, const scalar_t* x) {
  if (b->p[0] == 1) return x[0];
  if (b->p[0] == 2) return s_sqrt(b, x[0]);
  return weft_onnx_scalar_binary(b, WEFT_ONNX_POW, x[0], s_const(x[0], 1 / b->p[0]));
}

static weft_status_t emit_lp_pool(node_t* node) {
  window_t window = {0};
  int64_t exponent;
  value_t *x = node->input[0], *sum;
  TRY(weft_onnx_attribute_int(node, "p", 2, &exponent));
  NODE_REQUIRE(node, exponent > 0, INVALID_INPUT, "p is %lld, expected at least 1", (long long)exponent);
  double p[] = {(double)exponent};
  TRY(pool_window(node, &window));
  TRY(weft_onnx_pointwise(node, abs_power, p, weft_onnx_accumulator(x->dtype), 1, &x, &x));
  TRY(pad_spatial(node, x, &window, 0, &x));
  TRY(pool(node, x, &window, pool_sum, 0, x->dtype, &sum));
  return weft_onnx_pointwise(node, p_root, p, node->input[0]->dtype, 1, &sum, &node->output[0]);
}

// --- Pooling over everything

static weft_status_t emit_global_average(node_t* node) {
  TRY(spatial_rank(node, node->input[0]));
  uint32_t axes = ((1u << node->input[0]->shape.rank) - 1) & ~3u;
  return weft_onnx_mean(node, node->input[0], axes, true, &node->output[0]);
}

static weft_status_t emit_global_max(node_t* node) {
  TRY(spatial_rank(node, node->input[0]));
  uint32_t axes = ((1u << node->input[0]->shape.rank) - 1) & ~3u;
  return weft_onnx_reduce(node, weft_onnx_body_max, weft_onnx_lowest(node->input[0]->dtype), node->input[0], axes, true,
                          &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("AveragePool", 1, 1, 1, 1, emit_average_pool, "1 to 3 spatial axes"),
    OPERATOR("Conv", 1, 2, 3, 1, emit_conv, "1 to 3 spatial axes; types below 32 bits accumulate in f32"),
    OPERATOR("ConvTranspose", 1, 2, 3, 1, emit_conv_transpose, "1 to 3 spatial axes"),
    OPERATOR("GlobalAveragePool", 1, 1, 1, 1, emit_global_average, "1 to 3 spatial axes"),
    OPERATOR("GlobalMaxPool", 1, 1, 1, 1, emit_global_max, "1 to 3 spatial axes"),
    OPERATOR("LpPool", 2, 1, 1, 1, emit_lp_pool, "1 to 3 spatial axes"),
    OPERATOR("MaxPool", 1, 1, 1, 2, emit_max_pool, "1 to 3 spatial axes; no output Indices"),
    {0}};

const weft_onnx_family_t weft_onnx_family_window = {"Convolution and pooling", operators};
