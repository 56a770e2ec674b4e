// DeformConv: a convolution whose taps are moved by offsets that are computed at run time. The taps are read between
// the elements, as in op_sampling.c, then contracted with the weights.
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

typedef struct deform_t {
  int64_t batch, channels, filters, groups, offset_groups;
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pads[4];
  int64_t taps; // of the kernel
} deform_t;

static weft_status_t read_deform(node_t* node, deform_t* deform) {
  const shape_t *x = &node->input[0]->shape, *w = &node->input[1]->shape, *offset = &node->input[2]->shape;
  NODE_REQUIRE(node, x->rank == 4 && w->rank == 4 && offset->rank == 4, UNSUPPORTED,
               "input has shape %s; only two spatial axes are supported", weft_onnx_shape_format(x).text);
  TRY(weft_onnx_attribute_int(node, "group", 1, &deform->groups));
  TRY(weft_onnx_attribute_int(node, "offset_group", 1, &deform->offset_groups));
  TRY(weft_onnx_attribute_ints(node, "strides", 2, 1, deform->stride));
  TRY(weft_onnx_attribute_ints(node, "dilations", 2, 1, deform->dilation));
  TRY(weft_onnx_attribute_ints(node, "pads", 4, 0, deform->pads));
  deform->batch = x->extent[0];
  deform->channels = x->extent[1];
  deform->filters = w->extent[0];
  for (int32_t i = 0; i < 2; ++i) {
    deform->in[i] = x->extent[2 + i];
    deform->kernel[i] = w->extent[2 + i];
    deform->out[i] = offset->extent[2 + i];
    int64_t low = deform->pads[i], high = deform->pads[2 + i];
    NODE_REQUIRE(node,
                 deform->stride[i] > 0 && deform->dilation[i] > 0 && deform->stride[i] < INT32_MAX &&
                     deform->dilation[i] < INT32_MAX && low >= 0 && high >= 0 && low < INT32_MAX && high < INT32_MAX,
                 INVALID_INPUT, "stride %lld, dilation %lld, pads %lld and %lld", (long long)deform->stride[i],
                 (long long)deform->dilation[i], (long long)low, (long long)high);
    int64_t room = deform->in[i] + low + high - (deform->kernel[i] - 1) * deform->dilation[i] - 1;
    int64_t expected = room < 0 ? 0 : room / deform->stride[i] + 1;
    NODE_REQUIRE(node, deform->out[i] == expected, INVALID_INPUT, "offsets have %lld on axis %d, expected %lld",
                 (long long)deform->out[i], 2 + i, (long long)expected);
  }
  deform->taps = deform->kernel[0] * deform->kernel[1];
  int64_t groups = deform->groups, offset_groups = deform->offset_groups;
  NODE_REQUIRE(node,
               groups > 0 && offset_groups > 0 && deform->channels > 0 && deform->channels % groups == 0 &&
                   deform->channels % offset_groups == 0 && deform->filters % groups == 0 &&
                   w->extent[1] == deform->channels / groups && offset->extent[1] == offset_groups * deform->taps * 2 &&
                   offset->extent[0] == deform->batch,
               INVALID_INPUT, "input has shape %s, weights %s, offsets %s for %lld groups and %lld of offsets",
               weft_onnx_shape_format(x).text, weft_onnx_shape_format(w).text, weft_onnx_shape_format(offset).text,
               (long long)groups, (long long)offset_groups);
  return weft_ok();
}

// x: offset, place of the tap without it, element's position.
static scalar_t tap_weight(body_t* b, const scalar_t* x) {
  scalar_t distance = s_abs(b, s_sub(b, x[2], s_add(b, x[1], x[0])));
  return s_max(b, s_sub(b, s_const(distance, 1), distance), s_const(distance, 0));
}

// [batch, offset group, tap, out y, out x, elements of the axis]
static weft_status_t tap_weights(node_t* node, const deform_t* deform, int32_t axis, value_t** out) {
  value_t *offset = node->input[2], *place, *position;
  const int64_t* to = deform->out;
  shape_t split = {6, {deform->batch, deform->offset_groups, deform->taps, 2, to[0], to[1]}};
  shape_t merged = {6, {deform->batch, deform->offset_groups, deform->taps, to[0], to[1], 1}};
  shape_t places = {4, {deform->taps, to[0], to[1], 1}};
  int64_t at = axis;
  weft_dtype_e dtype = weft_onnx_accumulator(offset->dtype);
  size_t width = weft_dtype_size(dtype);
  TRY(weft_onnx_cast(node, offset, dtype, &offset));
  TRY(weft_onnx_reshape(node, offset, &split, &offset));
  TRY(weft_onnx_take(node, offset, 3, 1, &at, &offset));
  TRY(weft_onnx_reshape(node, offset, &merged, &offset));
  uint8_t* data;
  TRY(weft_arena_allocate(node->builder->arena, (size_t)(deform->taps * to[0] * to[1]) + 1, width, (void**)&data));
  for (int64_t i = 0; i < deform->taps * to[0] * to[1]; ++i) {
    int64_t tap = i / (to[0] * to[1]), k = axis ? tap % deform->kernel[1] : tap / deform->kernel[1];
    int64_t o = axis ? i % to[1] : i / to[1] % to[0];
    double where = (double)(o * deform->stride[axis] - deform->pads[axis] + k * deform->dilation[axis]);
    weft_dtype_store(dtype, where, data + (size_t)i * width);
  }
  TRY(weft_onnx_known(node, dtype, &places, data, &place));
  TRY(weft_onnx_iota(node, dtype, deform->in[axis], &position));
  return weft_onnx_pointwise(node, tap_weight, NULL, dtype, 3, (value_t*[]){offset, place, position}, out);
}

// [batch, offset group, channel of it, tap, out y, out x]
static weft_status_t read_taps(node_t* node, const deform_t* deform, value_t** out) {
  value_t *x = node->input[0], *mask = weft_onnx_input(node, 4), *rows, *columns;
  const int64_t *to = deform->out, *in = deform->in;
  int64_t each = deform->channels / deform->offset_groups;
  TRY(tap_weights(node, deform, 0, &rows));
  TRY(tap_weights(node, deform, 1, &columns));
  TRY(weft_onnx_reshape(node, x, &(shape_t){5, {deform->batch, deform->offset_groups, each, in[0], in[1]}}, &x));
  static const weft_onnx_axis_map_t n = {0, -1, 1, 0, 0}, g = {1, -1, 1, 0, 0}, c = {2, -1, 1, 0, 0},
                                    k = {3, -1, 1, 0, 0}, oy = {4, -1, 1, 0, 0}, ox = {5, -1, 1, 0, 0},
                                    iy = {6, -1, 1, 0, 0}, ix = {7, -1, 1, 0, 0};
  double p[] = {3};
  weft_onnx_generic_t generic = {
      .rank = 8,
      .extent = {deform->batch, deform->offset_groups, each, deform->taps, to[0], to[1], in[0], in[1]},
      .reduction = 3u << 6,
      .operand_count = 3,
      .operand = {{x, 5, {n, g, c, iy, ix}}, {rows, 6, {n, g, k, oy, ox, iy}}, {columns, 6, {n, g, k, oy, ox, ix}}},
      .dtype = weft_onnx_accumulator(x->dtype),
      .body = weft_onnx_body_sum_of_products,
      .p = p};
  TRY(weft_onnx_generic(node, &generic, out));
  if (!mask) return weft_ok();
  TRY(weft_onnx_cast(node, mask, generic.dtype, &mask));
  TRY(weft_onnx_reshape(node, mask,
                        &(shape_t){6, {deform->batch, deform->offset_groups, 1, deform->taps, to[0], to[1]}}, &mask));
  return weft_onnx_binary(node, weft_onnx_body_mul, *out, mask, out);
}

static weft_status_t emit_deform_conv(node_t* node) {
  deform_t deform = {0};
  value_t *taps, *w = node->input[1], *bias = weft_onnx_input(node, 3), *result;
  weft_dtype_e dtype = node->input[0]->dtype;
  TRY(read_deform(node, &deform));
  NODE_REQUIRE(node, w->dtype == dtype && (!bias || bias->dtype == dtype), INVALID_INPUT, "weights are %s, input is %s",
               weft_dtype_name(w->dtype), weft_dtype_name(dtype));
  TRY(read_taps(node, &deform, &taps));
  int64_t groups = deform.groups, channels = deform.channels / groups, filters = deform.filters / groups;
  const int64_t* to = deform.out;
  TRY(weft_onnx_reshape(node, taps, &(shape_t){6, {deform.batch, groups, channels, deform.taps, to[0], to[1]}}, &taps));
  TRY(weft_onnx_reshape(node, w, &(shape_t){4, {groups, filters, channels, deform.taps}}, &w));
  // Dimensions: batch, group, filter, out y, out x; channel, tap.
  weft_onnx_generic_t generic = {
      .rank = 7,
      .extent = {deform.batch, groups, filters, to[0], to[1], channels, deform.taps},
      .reduction = 3u << 5,
      .operand_count = 2,
      .operand = {{taps,
                   6,
                   {weft_onnx_along(0), weft_onnx_along(1), weft_onnx_along(5), weft_onnx_along(6), weft_onnx_along(3),
                    weft_onnx_along(4)}},
                  {w, 4, {weft_onnx_along(1), weft_onnx_along(2), weft_onnx_along(5), weft_onnx_along(6)}}},
      .dtype = taps->dtype,
      .body = weft_onnx_body_mul_add};
  TRY(weft_onnx_generic(node, &generic, &result));
  TRY(weft_onnx_reshape(node, result, &(shape_t){4, {deform.batch, deform.filters, to[0], to[1]}}, &result));
  if (bias) {
    TRY(weft_onnx_cast(node, bias, result->dtype, &bias));
    TRY(weft_onnx_reshape(node, bias, &(shape_t){3, {deform.filters, 1, 1}}, &bias));
    TRY(weft_onnx_binary(node, weft_onnx_body_add, result, bias, &result));
  }
  return weft_onnx_cast(node, result, dtype, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("DeformConv", 19, 3, 5, 1, emit_deform_conv, "two spatial axes; costs a pass over the image for each tap"),
    {0}};

const weft_onnx_family_t weft_onnx_family_deform = {"Deformable convolution", operators};
