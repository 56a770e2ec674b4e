// Reading between the elements, at positions that are computed at run time: along each axis every element has a weight,
// which is zero but next to the position, and the result is the sum of the products.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

scalar_t weft_onnx_body_sum_of_products(body_t* b, const scalar_t* x) {
  int32_t count = (int32_t)b->p[0];
  weft_dtype_e dtype = x[count].dtype;
  scalar_t product = s_cast(b, x[0], dtype);
  for (int32_t i = 1; i < count; ++i) product = s_mul(b, product, s_cast(b, x[i], dtype));
  return s_add(b, x[count], product);
}

static scalar_t unary(body_t* b, weft_onnx_unary_e op, scalar_t x) {
  return weft_onnx_scalar_unary(b, op, x);
}

// Falls from 1 at the position to 0 at the next element.
static scalar_t tent(body_t* b, scalar_t distance) {
  return s_max(b, s_sub(b, s_const(distance, 1), s_abs(b, distance)), s_const(distance, 0));
}

// --- GridSample

enum { ZEROS, BORDER, REFLECTION };
enum { NEAREST, LINEAR, CUBIC };
typedef struct grid_t {
  int32_t padding, mode;
  bool align;
} grid_t;

// The position reflected at both ends until it is inside.
static scalar_t reflect(body_t* b, scalar_t x, double low, double high) {
  double range = high - low;
  if (range <= 0) return s_const(x, low);
  scalar_t from_low = s_abs(b, s_sub(b, x, s_const(x, low))), period = s_const(x, 2 * range);
  scalar_t turns = unary(b, WEFT_ONNX_FLOOR, s_div(b, from_low, period));
  scalar_t rest = s_sub(b, from_low, s_mul(b, turns, period));
  return s_add(b, s_const(x, low), s_min(b, rest, s_sub(b, period, rest)));
}

// Keys' cubic with a = -0.75, as GridSample has it.
static scalar_t cubic(body_t* b, scalar_t distance) {
  scalar_t x = s_abs(b, distance);
  const double a = -0.75;
  scalar_t near = s_sub(b, s_mul(b, s_const(x, a + 2), x), s_const(x, a + 3));
  near = s_add(b, s_mul(b, s_mul(b, near, x), x), s_const(x, 1));
  scalar_t far = s_sub(b, s_mul(b, s_const(x, a), x), s_const(x, 5 * a));
  far = s_add(b, s_mul(b, far, x), s_const(x, 8 * a));
  far = s_sub(b, s_mul(b, far, x), s_const(x, 4 * a));
  scalar_t outer = s_select(b, s_compare(b, WEFT_ONNX_LT, x, s_const(x, 2)), far, s_const(x, 0));
  return s_select(b, s_compare(b, WEFT_ONNX_LE, x, s_const(x, 1)), near, outer);
}

// p: elements, padding, mode, align. x: grid coordinate, element's position. The element's weight.
BODY(grid_weight) {
  double count = b->p[0], low = b->p[3] != 0 ? 0 : -0.5, high = b->p[3] != 0 ? count - 1 : count - 0.5;
  scalar_t from_left = s_add(b, x[0], s_const(x[0], 1));
  scalar_t at = s_mul(b, from_left, s_const(x[0], (b->p[3] != 0 ? count - 1 : count) / 2));
  if (b->p[3] == 0) at = s_sub(b, at, s_const(at, 0.5));
  if (b->p[2] == NEAREST) at = unary(b, WEFT_ONNX_RINT, at);
  scalar_t is_outside = weft_onnx_scalar_binary(b, WEFT_ONNX_OR, s_compare(b, WEFT_ONNX_LT, at, s_const(at, low)),
                                                s_compare(b, WEFT_ONNX_GT, at, s_const(at, high)));
  if (b->p[1] == BORDER) at = s_select(b, is_outside, s_clamp(b, at, 0, count - 1), at);
  if (b->p[1] == REFLECTION) at = s_select(b, is_outside, reflect(b, at, low, high), at);
  scalar_t distance = s_sub(b, x[1], at);
  if (b->p[2] == LINEAR) return tent(b, distance);
  if (b->p[2] == CUBIC) return cubic(b, distance);
  scalar_t is_nearest = s_compare(b, WEFT_ONNX_EQ, x[1], unary(b, WEFT_ONNX_TRUNC, at));
  return s_select(b, is_nearest, s_const(at, 1), s_const(at, 0));
}

static double fold_back(double x, double low, double high) {
  double range = high - low, rest;
  if (range <= 0) return low;
  rest = fmod(fabs(x - low), 2 * range);
  return low + (rest > range ? 2 * range - rest : rest);
}

// Positions reach beyond the ends by as much as the filter; there, elements repeat those inside.
enum { MARGIN = 2 };
static weft_status_t extend(node_t* node, const grid_t* grid, int32_t axis, value_t** value) {
  int64_t count = (*value)->shape.extent[axis], *index;
  double low = grid->align ? 0 : -0.5, high = grid->align ? (double)count - 1 : (double)count - 0.5;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 2 * MARGIN, &index));
  for (int64_t i = 0; i < count + 2 * MARGIN; ++i) {
    double at = (double)(i - MARGIN);
    if (grid->padding == REFLECTION && (at < low || at > high)) at = trunc(fold_back(at, low, high));
    index[i] = at < 0 ? 0 : at > (double)(count - 1) ? count - 1 : (int64_t)at;
  }
  return weft_onnx_take(node, *value, axis, count + 2 * MARGIN, index, value);
}

// Positions of the elements: from `first` on.
static weft_status_t positions(node_t* node, weft_dtype_e dtype, int64_t first, int64_t count, value_t** out) {
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(dtype, (double)(first + i), data + (size_t)i * width);
  return weft_onnx_known(node, dtype, &(shape_t){1, {count}}, data, out);
}

// grid: [N, o.., s]; its number `from` -> [N, o.., elements].
static weft_status_t grid_weights(node_t* node, const grid_t* grid, int32_t from, int64_t count, int64_t margin,
                                  value_t** out) {
  value_t *coordinates = node->input[1], *position;
  int32_t last = coordinates->shape.rank - 1;
  int64_t index = from;
  double p[] = {(double)count, grid->padding, grid->mode, grid->align};
  TRY(weft_onnx_take(node, coordinates, last, 1, &index, &coordinates));
  TRY(weft_onnx_cast(node, coordinates, weft_onnx_accumulator(coordinates->dtype), &coordinates));
  TRY(positions(node, coordinates->dtype, -margin, count + 2 * margin, &position));
  return weft_onnx_pointwise(node, grid_weight, p, coordinates->dtype, 2, (value_t*[]){coordinates, position}, out);
}

static weft_status_t read_grid(node_t* node, grid_t* grid) {
  const char *mode, *padding;
  int64_t align;
  const shape_t *shape = &node->input[0]->shape, *coordinates = &node->input[1]->shape;
  TRY(weft_onnx_attribute_string(node, "mode", "linear", &mode));
  TRY(weft_onnx_attribute_string(node, "padding_mode", "zeros", &padding));
  TRY(weft_onnx_attribute_int(node, "align_corners", 0, &align));
  bool is_cubic = strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0;
  *grid = (grid_t){.align = align != 0,
                   .mode = is_cubic                       ? CUBIC
                           : strcmp(mode, "nearest") == 0 ? NEAREST
                                                          : LINEAR,
                   .padding = strcmp(padding, "border") == 0       ? BORDER
                              : strcmp(padding, "reflection") == 0 ? REFLECTION
                                                                   : ZEROS};
  NODE_REQUIRE(node,
               shape->rank >= 3 && shape->rank <= 5 && coordinates->rank == shape->rank &&
                   coordinates->extent[0] == shape->extent[0] &&
                   coordinates->extent[shape->rank - 1] == shape->rank - 2,
               INVALID_INPUT, "input has shape %s and grid %s, expected [N, C, 1 to 3 axes] and [N, .., axes]",
               weft_onnx_shape_format(shape).text, weft_onnx_shape_format(coordinates).text);
  NODE_REQUIRE(node, weft_dtype_is_float(node->input[1]->dtype), INVALID_INPUT, "grid is %s, expected a float type",
               weft_dtype_name(node->input[1]->dtype));
  return weft_ok();
}

static weft_status_t emit_grid_sample(node_t* node) {
  grid_t grid;
  TRY(read_grid(node, &grid));
  value_t* value = node->input[0];
  const shape_t* coordinates = &node->input[1]->shape;
  int32_t rank = value->shape.rank - 2, in = 2 + rank; // dimensions: n, c, o..; elements
  double p[] = {1.0 + rank};
  weft_onnx_generic_t generic = {.rank = 2 + 2 * rank,
                                 .extent = {value->shape.extent[0], value->shape.extent[1]},
                                 .operand_count = 1 + rank,
                                 .dtype = weft_onnx_accumulator(value->dtype),
                                 .body = weft_onnx_body_sum_of_products,
                                 .p = p};
  int64_t margin = grid.padding == ZEROS ? 0 : MARGIN;
  for (int32_t i = 0; i < rank; ++i) {
    weft_onnx_operand_t* weights = &generic.operand[1 + i];
    TRY(grid_weights(node, &grid, rank - 1 - i, value->shape.extent[2 + i], margin, &weights->value));
    if (margin) TRY(extend(node, &grid, 2 + i, &value));
    weights->rank = rank + 2;
    weights->axis[0] = weft_onnx_along(0);
    for (int32_t k = 0; k < rank; ++k) weights->axis[1 + k] = weft_onnx_along(2 + k);
    weights->axis[1 + rank] = weft_onnx_along(in + i);
    generic.extent[2 + i] = coordinates->extent[1 + i];
    generic.extent[in + i] = value->shape.extent[2 + i];
    generic.reduction |= 1u << (in + i);
  }
  generic.operand[0] = (weft_onnx_operand_t){value, 2 + rank, {weft_onnx_along(0), weft_onnx_along(1)}};
  for (int32_t i = 0; i < rank; ++i) generic.operand[0].axis[2 + i] = weft_onnx_along(in + i);
  TRY(weft_onnx_generic(node, &generic, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], value->dtype, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("GridSample", 16, 2, 2, 1, emit_grid_sample, "1 to 3 spatial axes; costs a pass over the image each"),
    {0}};

const weft_onnx_family_t weft_onnx_family_sampling = {"Sampling", operators};
