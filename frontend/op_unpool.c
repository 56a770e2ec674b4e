// From windows back to the image: Col2Im adds what windows share, MaxUnpool puts maxima back where they were.
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

enum { MAX_SPATIAL = 3 };

// --- Col2Im: one axis after the other, a product with the matrix that says which window element covers which place.
typedef struct fold_axis_t {
  int64_t image, block, windows, stride, dilation, low, high;
} fold_axis_t;

static weft_status_t cover_matrix(node_t* node, const fold_axis_t* axis, weft_dtype_e dtype, value_t** out) {
  shape_t shape = {2, {axis->image, axis->block * axis->windows}};
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 26), UNSUPPORTED,
               "an axis of %lld elements with %lld windows is too large", (long long)axis->image,
               (long long)axis->windows);
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t k = 0; k < axis->block; ++k)
    for (int64_t w = 0; w < axis->windows; ++w) {
      int64_t place = w * axis->stride + k * axis->dilation - axis->low;
      if (place >= 0 && place < axis->image)
        weft_dtype_store(dtype, 1, data + (size_t)(place * shape.extent[1] + k * axis->windows + w) * width);
    }
  return weft_onnx_known(node, dtype, &shape, data, out);
}

static weft_status_t read_folds(node_t* node, fold_axis_t* axes, int32_t* out_count) {
  int64_t image[MAX_SPATIAL], block[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pads[2 * MAX_SPATIAL];
  int32_t count, block_count;
  TRY(weft_onnx_known_ints(node, 1, "image_shape", MAX_SPATIAL, image, &count));
  TRY(weft_onnx_known_ints(node, 2, "block_shape", MAX_SPATIAL, block, &block_count));
  NODE_REQUIRE(node, count == block_count && count >= 1, INVALID_INPUT, "image_shape has %d entries, block_shape %d",
               count, block_count);
  TRY(weft_onnx_attribute_ints(node, "strides", count, 1, stride));
  TRY(weft_onnx_attribute_ints(node, "dilations", count, 1, dilation));
  TRY(weft_onnx_attribute_ints(node, "pads", 2 * count, 0, pads));
  for (int32_t i = 0; i < count; ++i) {
    axes[i] = (fold_axis_t){image[i], block[i], 0, stride[i], dilation[i], pads[i], pads[count + i]};
    const int64_t* number = &axes[i].image;
    for (int32_t k = 0; k < 7; ++k)
      NODE_REQUIRE(node, k == 2 || (number[k] >= (k < 5 ? 1 : 0) && number[k] < INT32_MAX), INVALID_INPUT,
                   "axis %d: %lld is out of range", i, (long long)number[k]);
    int64_t room = image[i] + axes[i].low + axes[i].high - (block[i] - 1) * dilation[i] - 1;
    NODE_REQUIRE(node, room >= 0, INVALID_INPUT, "a block is larger than the image on axis %d", i);
    axes[i].windows = room / stride[i] + 1;
  }
  *out_count = count;
  return weft_ok();
}

static weft_status_t emit_col2im(node_t* node) {
  value_t* value = node->input[0];
  fold_axis_t axes[MAX_SPATIAL];
  int32_t count, permutation[WEFT_ONNX_MAX_RANK] = {0};
  int64_t blocks = 1, windows = 1;
  TRY(read_folds(node, axes, &count));
  for (int32_t i = 0; i < count; ++i)
    NODE_REQUIRE(
        node, weft_checked_mul(blocks, axes[i].block, &blocks) && weft_checked_mul(windows, axes[i].windows, &windows),
        INVALID_INPUT, "image_shape and block_shape are too large");
  NODE_REQUIRE(node,
               value->shape.rank == 3 && value->shape.extent[1] > 0 && value->shape.extent[1] % blocks == 0 &&
                   value->shape.extent[2] == windows,
               INVALID_INPUT, "input has shape %s, expected a multiple of %lld and %lld",
               weft_onnx_shape_format(&value->shape).text, (long long)blocks, (long long)windows);
  int64_t batch = value->shape.extent[0], channels = value->shape.extent[1] / blocks;
  shape_t split = {1 + 2 * count, {batch * channels}}, paired = {1 + count, {batch * channels}};
  shape_t result = {2 + count, {batch, channels}};
  for (int32_t i = 0; i < count; ++i) {
    split.extent[1 + i] = axes[i].block;
    split.extent[1 + count + i] = axes[i].windows;
    paired.extent[1 + i] = axes[i].block * axes[i].windows;
    permutation[1 + 2 * i] = 1 + i;
    permutation[2 + 2 * i] = 1 + count + i;
    result.extent[2 + i] = axes[i].image;
  }
  weft_dtype_e dtype = weft_onnx_accumulator(value->dtype);
  TRY(weft_onnx_reshape(node, value, &split, &value));
  TRY(weft_onnx_transpose(node, value, permutation, &value));
  TRY(weft_onnx_reshape(node, value, &paired, &value));
  for (int32_t i = 0; i < count; ++i) {
    value_t* matrix;
    TRY(cover_matrix(node, &axes[i], dtype, &matrix));
    TRY(weft_onnx_apply_matrix(node, matrix, value, 1 + i, &value));
  }
  TRY(weft_onnx_reshape(node, value, &result, &value));
  return weft_onnx_cast(node, value, node->input[0]->dtype, &node->output[0]);
}

// --- MaxUnpool

// x: element, its index, first index of the plane, place in it, accumulator.
static scalar_t put_back(body_t* b, const scalar_t* x) {
  scalar_t is_here = s_compare(b, WEFT_ONNX_EQ, x[1], s_add(b, x[2], x[3]));
  return s_add(b, x[4], s_select(b, is_here, x[0], s_const(x[0], 0)));
}

static weft_status_t emit_max_unpool(node_t* node) {
  value_t *value = node->input[0], *index = node->input[1], *plane, *place, *scale;
  int32_t rank = value->shape.rank - 2, size_count;
  int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], pads[2 * MAX_SPATIAL], size[WEFT_ONNX_MAX_RANK];
  NODE_REQUIRE(node,
               rank >= 1 && rank <= MAX_SPATIAL && weft_onnx_shape_equal(&value->shape, &index->shape) &&
                   index->dtype == WEFT_DTYPE_I64,
               INVALID_INPUT, "input has shape %s and indices are %s of shape %s",
               weft_onnx_shape_format(&value->shape).text, weft_dtype_name(index->dtype),
               weft_onnx_shape_format(&index->shape).text);
  TRY(weft_onnx_attribute_ints(node, "kernel_shape", rank, 1, kernel));
  TRY(weft_onnx_attribute_ints(node, "strides", rank, 1, stride));
  TRY(weft_onnx_attribute_ints(node, "pads", 2 * rank, 0, pads));
  TRY(weft_onnx_known_ints(node, 2, "output_shape", WEFT_ONNX_MAX_RANK, size, &size_count));
  NODE_REQUIRE(node, size_count < 0 || size_count == rank + 2, INVALID_INPUT,
               "output_shape has %d entries, expected %d", size_count, rank + 2);
  int64_t planes = value->shape.extent[0] * value->shape.extent[1], each = 1, places = 1;
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  shape_t pooled = {.rank = rank + 2, .extent = {value->shape.extent[0], value->shape.extent[1]}};
  for (int32_t i = 0; i < rank; ++i) { // the indices are those of the image that was pooled without a given size
    int64_t in = value->shape.extent[2 + i], full = 0;
    NODE_REQUIRE(node,
                 weft_checked_mul(in - 1, stride[i], &full) && kernel[i] > 0 && kernel[i] < INT32_MAX && pads[i] >= 0 &&
                     pads[rank + i] >= 0 && full < INT32_MAX && full + kernel[i] - pads[i] - pads[rank + i] > 0,
                 INVALID_INPUT, "kernel_shape, strides and pads do not fit axis %d", 2 + i);
    pooled.extent[2 + i] = full + kernel[i] - pads[i] - pads[rank + i];
    high[2 + i] = size_count < 0 ? 0 : size[2 + i] - pooled.extent[2 + i];
    each *= in;
    NODE_REQUIRE(node, weft_checked_mul(places, pooled.extent[2 + i], &places), INVALID_INPUT,
                 "the result is too large");
  }
  TRY(weft_onnx_reshape(node, value, &(shape_t){2, {planes, each}}, &value));
  TRY(weft_onnx_reshape(node, index, &(shape_t){2, {planes, each}}, &index));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, planes, &plane));
  TRY(weft_onnx_number(node, WEFT_DTYPE_I64, (double)places, &scale));
  TRY(weft_onnx_binary(node, weft_onnx_body_mul, plane, scale, &plane));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, places, &place));
  weft_onnx_generic_t generic = {.rank = 3,
                                 .extent = {planes, places, each},
                                 .reduction = 1u << 2,
                                 .operand_count = 4,
                                 .operand = {{value, 2, {weft_onnx_along(0), weft_onnx_along(2)}},
                                             {index, 2, {weft_onnx_along(0), weft_onnx_along(2)}},
                                             {plane, 1, {weft_onnx_along(0)}},
                                             {place, 1, {weft_onnx_along(1)}}},
                                 .dtype = value->dtype,
                                 .body = put_back};
  TRY(weft_onnx_generic(node, &generic, &value));
  TRY(weft_onnx_reshape(node, value, &pooled, &value));
  return weft_onnx_pad(node, value, low, high, 0, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Col2Im", 18, 3, 3, 1, emit_col2im, "constant shapes, 1 to 3 spatial axes"),
    OPERATOR("MaxUnpool", 9, 2, 3, 1, emit_max_unpool, "constant output shape; costs a pass over the plane each"),
    {0}};

const weft_onnx_family_t weft_onnx_family_unpool = {"From windows to images", operators};
