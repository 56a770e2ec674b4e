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
  return (weft_onnx_axis_map_t){out_dim, kernel_dim, window->stride[axis], window->dilation[axis], 0};
}

// --- Convolution

// Groups are one more parallel dimension: input [N, G, C/G, ..], weights [G, M/G, C/G, ..], result [N, G, M/G, ..].
static weft_status_t convolve(node_t* node, value_t* input, value_t* weights, int64_t groups, const window_t* window,
                              weft_dtype_e dtype, value_t** out) {
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
  weft_onnx_generic_t generic = {.rank = k + rank, .operand_count = 2, .dtype = dtype, .body = weft_onnx_body_mul_add};
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

static weft_status_t conv_operands(node_t* node, const value_t* x, const value_t* w, int64_t* out_groups,
                                   window_t* window) {
  TRY(spatial_rank(node, x));
  NODE_REQUIRE(node, w->shape.rank == x->shape.rank, INVALID_INPUT, "weights have shape %s, expected rank %d",
               weft_onnx_shape_format(&w->shape).text, x->shape.rank);
  TRY(weft_onnx_attribute_int(node, "group", 1, out_groups));
  NODE_REQUIRE(node, *out_groups > 0 && x->shape.extent[1] % *out_groups == 0, INVALID_INPUT,
               "%lld channels do not split into %lld groups", (long long)x->shape.extent[1], (long long)*out_groups);
  return kernel_from_weights(node, w, window);
}

weft_status_t weft_onnx_conv(node_t* node, value_t* x, value_t* w, weft_dtype_e dtype, double fill, value_t** out) {
  window_t window = {0};
  int64_t groups;
  TRY(conv_operands(node, x, w, &groups, &window));
  NODE_REQUIRE(node, w->shape.extent[1] == x->shape.extent[1] / groups && w->shape.extent[0] % groups == 0,
               INVALID_INPUT, "weights have shape %s, expected %lld channels and a multiple of %lld filters",
               weft_onnx_shape_format(&w->shape).text, (long long)(x->shape.extent[1] / groups), (long long)groups);
  TRY(resolve_window(node, &x->shape, false, &window));
  TRY(pad_spatial(node, x, &window, fill, &x));
  return convolve(node, x, w, groups, &window, dtype, out);
}

static weft_status_t require_one_type(node_t* node) {
  const value_t *x = node->input[0], *w = node->input[1];
  NODE_REQUIRE(node, w->dtype == x->dtype, INVALID_INPUT, "weights are %s, expected %s", weft_dtype_name(w->dtype),
               weft_dtype_name(x->dtype));
  return weft_ok();
}

static weft_status_t emit_conv(node_t* node) {
  value_t *x = node->input[0], *result;
  TRY(require_one_type(node));
  TRY(weft_onnx_conv(node, x, node->input[1], weft_onnx_accumulator(x->dtype), 0, &result));
  return finish(node, result, weft_onnx_input(node, 2), x->dtype);
}

static scalar_t silu(body_t* b, const scalar_t* x) {
  scalar_t one = s_const(x[0], 1), negative = weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, x[0]);
  return s_div(b, x[0], s_add(b, one, s_exp(b, negative)));
}

// Each channel for itself over what came before: the past's last elements, or zeros, are in front of the input.
static weft_status_t emit_causal_conv(node_t* node) {
  value_t *x = node->input[0], *w = node->input[1], *past = weft_onnx_input(node, 3), *result;
  const char* activation;
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  TRY(weft_onnx_attribute_string(node, "activation", "none", &activation));
  bool is_silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  NODE_REQUIRE(node, is_silu || strcmp(activation, "none") == 0, INVALID_INPUT,
               "activation is '%s', expected none, silu or swish", activation);
  NODE_REQUIRE(node,
               x->shape.rank == 3 && w->shape.rank == 3 && w->shape.extent[0] == x->shape.extent[1] &&
                   w->shape.extent[1] == 1 && w->shape.extent[2] >= 1 && w->dtype == x->dtype,
               INVALID_INPUT, "input has shape %s and weights %s, expected [N, C, L] and [C, 1, K]",
               weft_onnx_shape_format(&x->shape).text, weft_onnx_shape_format(&w->shape).text);
  int64_t before = w->shape.extent[2] - 1, length = x->shape.extent[2];
  low[2] = before;
  if (past && before)
    TRY(weft_onnx_concat(node, 2, 2, (value_t*[]){past, x}, &x));
  else
    TRY(weft_onnx_pad(node, x, low, high, 0, &x));
  NODE_REQUIRE(node, x->shape.extent[2] == before + length, INVALID_INPUT, "the past has shape %s, expected %lld of it",
               past ? weft_onnx_shape_format(&past->shape).text : "", (long long)before);
  window_t window = {
      .rank = 1, .kernel = {before + 1}, .stride = {1}, .dilation = {1}, .in = {before + length}, .out = {length}};
  TRY(convolve(node, x, w, x->shape.extent[1], &window, weft_onnx_accumulator(x->dtype), &result));
  TRY(finish(node, result, weft_onnx_input(node, 2), x->dtype));
  if (is_silu) TRY(weft_onnx_unary(node, silu, NULL, node->output[0], &node->output[0]));
  if (node->output_count < 2) return weft_ok();
  low[2] = -length;
  return weft_onnx_pad(node, x, low, high, 0, &node->output[1]);
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
  TRY(require_one_type(node));
  TRY(conv_operands(node, x, w, &groups, &window));
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
  TRY(convolve(node, x, w, groups, &window, weft_onnx_accumulator(x->dtype), &result));
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

// x: element, its place, the window's maximum, the window, accumulator.
static scalar_t place_of_max(body_t* b, const scalar_t* x) {
  return s_min(b, x[4], s_select(b, s_compare(b, WEFT_ONNX_EQ, x[0], x[2]), x[1], s_const(x[1], b->p[0])));
}
// p: rows and columns, or more. From the place by rows to that by columns.
static scalar_t place_by_columns(body_t* b, const scalar_t* x) {
  scalar_t rest = x[0], place = s_const(rest, 0);
  double strides[MAX_SPATIAL] = {1};
  int32_t rank = (int32_t)b->p[0];
  for (int32_t i = 1; i < rank; ++i) strides[i] = strides[i - 1] * b->p[i];
  for (int32_t i = rank - 1; i >= 0; --i) {
    scalar_t extent = s_const(rest, b->p[1 + i]);
    scalar_t along = weft_onnx_scalar_binary(b, WEFT_ONNX_REM, rest, extent);
    place = s_add(b, place, s_mul(b, along, s_const(place, strides[i])));
    rest = s_div(b, rest, extent);
  }
  return place;
}

// The places of the padded image's elements in the image, padded with what is no place.
static weft_status_t padded_places(node_t* node, const window_t* window, double nowhere, value_t** out) {
  int64_t low[MAX_SPATIAL], high[MAX_SPATIAL], count;
  shape_t shape = weft_onnx_shape_make(window->rank, window->in);
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count), INVALID_INPUT, "the input is too large");
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, count, out));
  TRY(weft_onnx_reshape(node, *out, &shape, out));
  for (int32_t i = 0; i < window->rank; ++i) {
    low[i] = window->low[i];
    high[i] = window->high[i] + window->extra[i];
  }
  return weft_onnx_pad(node, *out, low, high, nowhere, out);
}

// The first place in each window that has its maximum, counted through all planes of the input.
static weft_status_t max_indices(node_t* node, const window_t* window, value_t* padded, value_t* maxima,
                                 value_t** out) {
  int64_t by_columns, planes = padded->shape.extent[0] * padded->shape.extent[1], count = 1;
  for (int32_t i = 0; i < window->rank; ++i) count *= window->in[i];
  int32_t rank = window->rank, k = 2 + rank;
  double p[] = {(double)count}, q[1 + MAX_SPATIAL] = {rank};
  value_t *place, *first, *scale;
  TRY(weft_onnx_attribute_int(node, "storage_order", 0, &by_columns));
  TRY(padded_places(node, window, p[0], &place));
  weft_onnx_generic_t generic = {.rank = 2 + 2 * rank,
                                 .extent = {padded->shape.extent[0], padded->shape.extent[1]},
                                 .operand_count = 4,
                                 .operand = {{padded, 2 + rank, {weft_onnx_along(0), weft_onnx_along(1)}},
                                             {place, rank, {{0}}},
                                             {maxima, 2 + rank, {weft_onnx_along(0), weft_onnx_along(1)}},
                                             {NULL, rank, {{0}}}},
                                 .dtype = WEFT_DTYPE_I64,
                                 .initial = p[0],
                                 .body = place_of_max,
                                 .p = p};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[2 + i] = window->out[i];
    generic.extent[k + i] = window->kernel[i];
    generic.reduction |= 1u << (k + i);
    generic.operand[0].axis[2 + i] = generic.operand[1].axis[i] = sliding(window, i, 2 + i, k + i);
    generic.operand[2].axis[2 + i] = weft_onnx_along(2 + i);
    generic.operand[3].axis[i] = weft_onnx_along(k + i);
    q[1 + i] = (double)window->in[i];
  }
  TRY(weft_onnx_generic(node, &generic, out));
  if (by_columns) TRY(weft_onnx_unary(node, place_by_columns, q, *out, out));
  shape_t shape = {.rank = 2 + rank, .extent = {padded->shape.extent[0], padded->shape.extent[1]}};
  for (int32_t i = 0; i < rank; ++i) shape.extent[2 + i] = 1;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, planes, &first));
  TRY(weft_onnx_number(node, WEFT_DTYPE_I64, p[0], &scale));
  TRY(weft_onnx_binary(node, weft_onnx_body_mul, first, scale, &first));
  TRY(weft_onnx_reshape(node, first, &shape, &first));
  return weft_onnx_binary(node, weft_onnx_body_add, *out, first, out);
}

static weft_status_t emit_max_pool(node_t* node) {
  window_t window = {0};
  value_t *x = node->input[0], *maxima;
  TRY(pool_window(node, &window));
  TRY(pad_spatial(node, x, &window, weft_onnx_lowest(x->dtype), &x));
  TRY(pool(node, x, &window, pool_max, weft_onnx_lowest(x->dtype), x->dtype, &maxima));
  node->output[0] = maxima;
  return node->output_count < 2 ? weft_ok() : max_indices(node, &window, x, maxima, &node->output[1]);
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

static weft_status_t emit_global_lp(node_t* node) {
  value_t *x = node->input[0], *sum;
  int64_t exponent;
  TRY(spatial_rank(node, x));
  TRY(weft_onnx_attribute_int(node, "p", 2, &exponent));
  NODE_REQUIRE(node, exponent > 0, INVALID_INPUT, "p is %lld, expected at least 1", (long long)exponent);
  double p[] = {(double)exponent};
  uint32_t axes = ((1u << x->shape.rank) - 1) & ~3u;
  TRY(weft_onnx_pointwise(node, abs_power, p, weft_onnx_accumulator(x->dtype), 1, &x, &x));
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, x, axes, true, &sum));
  return weft_onnx_pointwise(node, p_root, p, node->input[0]->dtype, 1, &sum, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("AveragePool", 1, 1, 1, 1, emit_average_pool, "1 to 3 spatial axes"),
    OPERATOR("CausalConvWithState", 27, 2, 4, 2, emit_causal_conv, ""),
    OPERATOR("Conv", 1, 2, 3, 1, emit_conv, "1 to 3 spatial axes; types below 32 bits accumulate in f32"),
    OPERATOR("ConvTranspose", 1, 2, 3, 1, emit_conv_transpose, "1 to 3 spatial axes"),
    OPERATOR("GlobalAveragePool", 1, 1, 1, 1, emit_global_average, "1 to 3 spatial axes"),
    OPERATOR("GlobalLpPool", 2, 1, 1, 1, emit_global_lp, "1 to 3 spatial axes"),
    OPERATOR("GlobalMaxPool", 1, 1, 1, 1, emit_global_max, "1 to 3 spatial axes"),
    OPERATOR("LpPool", 2, 1, 1, 1, emit_lp_pool, "1 to 3 spatial axes"),
    OPERATOR("MaxPool", 1, 1, 1, 2, emit_max_pool, "1 to 3 spatial axes"),
    {0}};

const weft_onnx_family_t weft_onnx_family_window = {"Convolution and pooling", operators};
