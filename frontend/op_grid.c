// Places in images: the grid that an affine map makes, and the middle of an image.
#include <string.h>

#include "frontend/operators.h"

// [places, axes + 1]: the coordinates of each element of an image in [-1, 1], the last axis first, and 1.
static weft_status_t places(node_t* node, weft_dtype_e dtype, int32_t axes, const int64_t* size, bool align_corners,
                            value_t** out) {
  uint8_t* data;
  int64_t count;
  shape_t image = weft_onnx_shape_make(axes, size);
  size_t width = weft_dtype_size(dtype);
  NODE_REQUIRE(node, weft_onnx_shape_count(&image, &count) && count < INT32_MAX, INVALID_INPUT, "size is %s",
               weft_onnx_shape_format(&image).text);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count * (size_t)(axes + 1) + 1, width, (void**)&data));
  uint8_t* at = data;
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat;
    for (int32_t a = axes - 1; a >= 0; rest /= size[a--]) {
      double i = (double)(rest % size[a]), extent = (double)size[a];
      double place = !align_corners ? (2 * i + 1) / extent - 1 : size[a] > 1 ? 2 * i / (extent - 1) - 1 : 0;
      weft_dtype_store(dtype, place, at);
      at += width;
    }
    weft_dtype_store(dtype, 1, at);
    at += width;
  }
  return weft_onnx_known(node, dtype, &(shape_t){2, {count, axes + 1}}, data, out);
}

// theta [N, axes, axes + 1], size (N, C, D, H, W) -> [N, D, H, W, axes]
static weft_status_t emit_affine_grid(node_t* node) {
  value_t *theta = node->input[0], *grid;
  int64_t size[WEFT_ONNX_MAX_RANK], align;
  int32_t count;
  TRY(weft_onnx_known_ints(node, 1, "size", WEFT_ONNX_MAX_RANK, size, &count));
  TRY(weft_onnx_attribute_int(node, "align_corners", 0, &align));
  int32_t axes = count - 2;
  const int64_t* e = theta->shape.extent;
  NODE_REQUIRE(
      node, axes >= 2 && axes <= 3 && theta->shape.rank == 3 && e[1] == axes && e[2] == axes + 1 && e[0] == size[0],
      INVALID_INPUT, "theta has shape %s, size has %d entries", weft_onnx_shape_format(&theta->shape).text, count);
  TRY(places(node, theta->dtype, axes, size + 2, align != 0, &grid));
  enum { BATCH, PLACE, AXIS, TERM };
  weft_onnx_generic_t generic = {
      .rank = 4,
      .extent = {e[0], grid->shape.extent[0], axes, axes + 1},
      .reduction = 1u << TERM,
      .operand_count = 2,
      .operand = {{grid, 2, {weft_onnx_along(PLACE), weft_onnx_along(TERM)}},
                  {theta, 3, {weft_onnx_along(BATCH), weft_onnx_along(AXIS), weft_onnx_along(TERM)}}},
      .dtype = weft_onnx_accumulator(theta->dtype),
      .body = weft_onnx_body_mul_add};
  shape_t shape = {.rank = count, .extent = {e[0]}};
  memcpy(shape.extent + 1, size + 2, (size_t)axes * sizeof(int64_t));
  shape.extent[count - 1] = axes;
  TRY(weft_onnx_generic(node, &generic, &grid));
  TRY(weft_onnx_cast(node, grid, theta->dtype, &grid));
  return weft_onnx_reshape(node, grid, &shape, &node->output[0]);
}

static weft_status_t emit_center_crop_pad(node_t* node) {
  value_t* x = node->input[0];
  int64_t wanted[WEFT_ONNX_MAX_RANK], axes[WEFT_ONNX_MAX_RANK];
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  int32_t count, given;
  uint32_t seen;
  TRY(weft_onnx_known_ints(node, 1, "shape", WEFT_ONNX_MAX_RANK, wanted, &count));
  TRY(weft_onnx_attribute_list(node, "axes", WEFT_ONNX_MAX_RANK, axes, &given));
  if (given < 0)
    for (given = 0; given < x->shape.rank; ++given) axes[given] = given;
  NODE_REQUIRE(node, given == count, INVALID_INPUT, "shape has %d entries, for %d axes", count, given);
  TRY(weft_onnx_axis_mask(node, given, axes, x->shape.rank, &seen));
  for (int32_t i = 0; i < given; ++i) {
    int32_t axis;
    TRY(weft_onnx_normalize_axis(node, axes[i], x->shape.rank, &axis));
    int64_t more = wanted[i] - x->shape.extent[axis]; // what is removed or added at the front is rounded down
    NODE_REQUIRE(node, wanted[i] >= 0, INVALID_INPUT, "shape has %lld", (long long)wanted[i]);
    low[axis] = more < 0 ? -(-more / 2) : more / 2;
    high[axis] = more - low[axis];
  }
  return weft_onnx_pad(node, x, low, high, 0, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("AffineGrid", 20, 2, 2, 1, emit_affine_grid, "constant size"),
    OPERATOR("CenterCropPad", 18, 2, 2, 1, emit_center_crop_pad, "constant shape"),
    {0}};

const weft_onnx_family_t weft_onnx_family_grid = {"Places in images", operators};
