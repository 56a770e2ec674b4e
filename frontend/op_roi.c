// Regions of images, given at run time, in a fixed number of cells: RoiAlign reads between the elements, MaxRoiPool
// takes the largest of those inside of a cell. Along each axis every element has a weight for each cell, or is in it or
// not.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

static scalar_t both(body_t* b, scalar_t x, scalar_t y) {
  return weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x, y);
}
static scalar_t either(body_t* b, scalar_t x, scalar_t y) {
  return weft_onnx_scalar_binary(b, WEFT_ONNX_OR, x, y);
}
static scalar_t round_down(body_t* b, scalar_t x) {
  return weft_onnx_scalar_unary(b, WEFT_ONNX_FLOOR, x);
}

// A sample point of a cell along one axis. p: elements, cells, samples of a cell (0: as many as it has elements),
// spatial scale, whether half a pixel is taken off. x: region's low end, high end, cell, sample.
typedef struct sample_t {
  scalar_t at; // inside of the image
  scalar_t is_inside, is_sample, samples;
} sample_t;
static sample_t sample_point(body_t* b, const scalar_t* x) {
  double count = b->p[0], half = b->p[4] != 0 ? 0.5 : 0;
  scalar_t start = s_sub(b, s_mul(b, x[0], s_const(x[0], b->p[3])), s_const(x[0], half));
  scalar_t end = s_sub(b, s_mul(b, x[1], s_const(x[1], b->p[3])), s_const(x[1], half));
  scalar_t length = s_sub(b, end, start);
  if (half == 0) length = s_max(b, length, s_const(length, 1)); // as it was before half a pixel was taken off
  scalar_t cell = s_div(b, length, s_const(length, b->p[1]));
  scalar_t samples = b->p[2] != 0 ? s_const(cell, b->p[2]) : weft_onnx_scalar_unary(b, WEFT_ONNX_CEIL, cell);
  samples = s_max(b, samples, s_const(samples, 1));
  scalar_t within = s_div(b, s_mul(b, s_add(b, x[3], s_const(x[3], 0.5)), cell), samples);
  scalar_t at = s_add(b, s_add(b, start, s_mul(b, x[2], cell)), within);
  scalar_t is_inside =
      both(b, s_compare(b, WEFT_ONNX_GE, at, s_const(at, -1)), s_compare(b, WEFT_ONNX_LE, at, s_const(at, count)));
  scalar_t is_sample = s_compare(b, WEFT_ONNX_LT, x[3], samples);
  return (sample_t){s_clamp(b, at, 0, count - 1), is_inside, is_sample, samples};
}
static scalar_t weight_at(body_t* b, sample_t sample, scalar_t position) {
  scalar_t distance = s_abs(b, s_sub(b, position, sample.at)), zero = s_const(distance, 0);
  scalar_t weight = s_max(b, s_sub(b, s_const(distance, 1), distance), zero);
  return s_select(b, both(b, sample.is_inside, sample.is_sample), weight, zero);
}
// x: as above, element's position.
BODY(sample_weight) {
  return weight_at(b, sample_point(b, x), x[4]);
}
// x: as above, accumulator.
BODY(cell_weight) {
  sample_t sample = sample_point(b, x);
  return s_add(b, x[5], s_div(b, weight_at(b, sample, x[4]), sample.samples));
}
// Of the two elements around a sample: 1 when one weighs nothing, -1 when there is no such sample.
BODY(sample_kind) {
  sample_t sample = sample_point(b, x);
  scalar_t is_whole = s_compare(b, WEFT_ONNX_EQ, sample.at, round_down(b, sample.at));
  scalar_t outside = s_compare(b, WEFT_ONNX_EQ, s_cast(b, sample.is_inside, WEFT_DTYPE_I32),
                               weft_onnx_scalar_constant(WEFT_DTYPE_I32, 0));
  scalar_t kind = s_select(b, either(b, is_whole, outside), s_const(sample.at, 1), s_const(sample.at, 0));
  return s_select(b, sample.is_sample, kind, s_const(kind, -1));
}
// x: element, its weights in y and x, of the image, kinds of the sample in y and x, accumulator. The largest of the
// weighted elements around the samples.
BODY(largest_product) {
  scalar_t zero = s_const(x[1], 0), lowest = s_const(x[6], weft_onnx_lowest(x[6].dtype));
  scalar_t counts = both(b, s_compare(b, WEFT_ONNX_GT, x[3], zero),
                         both(b, s_compare(b, WEFT_ONNX_GT, x[1], zero), s_compare(b, WEFT_ONNX_GT, x[2], zero)));
  scalar_t product = s_mul(b, s_cast(b, x[0], x[6].dtype), s_cast(b, s_mul(b, x[1], x[2]), x[6].dtype));
  scalar_t is_sample = both(b, s_compare(b, WEFT_ONNX_GE, x[4], zero), s_compare(b, WEFT_ONNX_GE, x[5], zero));
  scalar_t has_zero = either(b, s_compare(b, WEFT_ONNX_GT, x[4], zero), s_compare(b, WEFT_ONNX_GT, x[5], zero));
  scalar_t none = s_select(b, both(b, is_sample, has_zero), s_const(lowest, 0), lowest);
  return s_max(b, x[6], s_max(b, s_select(b, counts, product, lowest), none));
}
BODY(is_image) { // x: region's image, image
  return s_compare(b, WEFT_ONNX_EQ, s_cast(b, x[0], x[1].dtype), x[1]);
}

typedef struct cells_t { // of a region, along one axis
  int32_t axis;          // 0: y, 1: x
  int64_t count, elements;
  int64_t regions, samples;
  value_t *low, *high; // [regions]
  double p[5];
} cells_t;

// [regions, cells, samples] and, after them, what the body asks for.
static weft_onnx_generic_t over_samples(const cells_t* cells, value_t* cell, value_t* sample, int32_t sample_dim) {
  return (weft_onnx_generic_t){.extent = {cells->regions, cells->count},
                               .operand = {{cells->low, 1, {weft_onnx_along(0)}},
                                           {cells->high, 1, {weft_onnx_along(0)}},
                                           {cell, 1, {weft_onnx_along(1)}},
                                           {sample, 1, {weft_onnx_along(sample_dim)}}},
                               .operand_count = 4,
                               .dtype = cells->low->dtype,
                               .p = cells->p};
}

enum { AVERAGED, EACH, KIND };
// AVERAGED: [regions, cells, elements]; EACH: [regions, cells, samples, elements]; KIND: [regions, cells, samples].
static weft_status_t weigh(node_t* node, const cells_t* cells, int32_t what, value_t** out) {
  value_t *cell, *sample, *position;
  weft_dtype_e dtype = cells->low->dtype;
  TRY(weft_onnx_iota(node, dtype, cells->count, &cell));
  TRY(weft_onnx_iota(node, dtype, cells->samples, &sample));
  TRY(weft_onnx_iota(node, dtype, cells->elements, &position));
  int32_t sample_dim = what == AVERAGED ? 3 : 2, position_dim = what == AVERAGED ? 2 : 3;
  weft_onnx_generic_t generic = over_samples(cells, cell, sample, sample_dim);
  generic.body = what == AVERAGED ? cell_weight : what == EACH ? sample_weight : sample_kind;
  generic.extent[sample_dim] = cells->samples;
  generic.rank = 3;
  if (what == AVERAGED) generic.reduction = 1u << sample_dim;
  if (what != KIND) {
    generic.rank = 4;
    generic.extent[position_dim] = cells->elements;
    generic.operand[generic.operand_count++] = (weft_onnx_operand_t){position, 1, {weft_onnx_along(position_dim)}};
  }
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t roi_column(node_t* node, int64_t column, weft_dtype_e dtype, value_t** out) {
  value_t* rois = node->input[1];
  TRY(weft_onnx_take(node, rois, 1, 1, &column, out));
  TRY(weft_onnx_reshape(node, *out, &(shape_t){1, {rois->shape.extent[0]}}, out));
  return weft_onnx_cast(node, *out, dtype, out);
}

// How many samples the largest known region needs in a cell; one more, which never counts, covers rounding.
static int64_t most_samples(const cells_t* cells, double scale) {
  size_t width = weft_dtype_size(cells->low->dtype);
  double most = 1;
  for (int64_t i = 0; i < cells->regions; ++i) {
    double length = weft_dtype_load(cells->low->dtype, (const uint8_t*)cells->high->data + (size_t)i * width) -
                    weft_dtype_load(cells->low->dtype, (const uint8_t*)cells->low->data + (size_t)i * width);
    most = fmax(most, ceil(length * scale / (double)cells->count) + 1);
  }
  return most < 4096 ? (int64_t)most : 4096;
}

static weft_status_t read_cells(node_t* node, const char* attribute, bool half, cells_t* cells) {
  weft_dtype_e dtype = weft_onnx_accumulator(node->input[1]->dtype);
  int64_t samples;
  double scale;
  TRY(weft_onnx_attribute_int(node, attribute, 1, &cells->count));
  TRY(weft_onnx_attribute_int(node, "sampling_ratio", 0, &samples));
  TRY(weft_onnx_attribute_float(node, "spatial_scale", 1, &scale));
  TRY(roi_column(node, 1 - cells->axis, dtype, &cells->low));
  TRY(roi_column(node, 3 - cells->axis, dtype, &cells->high));
  cells->regions = node->input[1]->shape.extent[0];
  cells->elements = node->input[0]->shape.extent[2 + cells->axis];
  NODE_REQUIRE(node, cells->count > 0 && cells->count < INT32_MAX && samples >= 0 && samples < 4096, INVALID_INPUT,
               "%s is %lld, sampling_ratio %lld", attribute, (long long)cells->count, (long long)samples);
  NODE_REQUIRE(node, samples > 0 || (cells->low->data && cells->high->data), UNSUPPORTED,
               "sampling_ratio 0 with regions of run time: how many samples a cell has is not known%s",
               weft_onnx_bind_hint(node, node->input[1]));
  cells->samples = samples > 0 ? samples : most_samples(cells, scale);
  memcpy(cells->p, (double[]){(double)cells->elements, (double)cells->count, (double)samples, scale, half ? 1.0 : 0.0},
         sizeof(cells->p));
  return weft_ok();
}

// [regions, images]: whether a region is of an image.
static weft_status_t images_of(node_t* node, value_t* image, value_t** out) {
  value_t* position;
  TRY(weft_onnx_iota(node, image->dtype, node->input[0]->shape.extent[0], &position));
  TRY(weft_onnx_unsqueeze(node, image, 1, &image));
  return weft_onnx_pointwise(node, is_image, NULL, WEFT_DTYPE_BOOL, 2, (value_t*[]){image, position}, out);
}

// Dimensions: region, channel, cell row, cell column; image, row, column; samples.
enum { REGION, CHANNEL, CELL_Y, CELL_X, IMAGE, ROW, COLUMN, SAMPLE_Y, SAMPLE_X };
#define ALONG(dim)                                                                                                     \
  { dim, -1, 1, 0, 0 }

// Every cell over all elements of all images. rows, columns: [regions, cells, elements]; image: [regions, images].
static weft_onnx_generic_t over_cells(value_t* value, value_t* rows, value_t* columns, value_t* image) {
  const int64_t *in = value->shape.extent, *y = rows->shape.extent, *x = columns->shape.extent;
  return (weft_onnx_generic_t){.rank = 7,
                               .extent = {y[0], in[1], y[1], x[1], in[0], in[2], in[3]},
                               .reduction = 7u << IMAGE,
                               .operand_count = 4,
                               .operand = {{value, 4, {ALONG(IMAGE), ALONG(CHANNEL), ALONG(ROW), ALONG(COLUMN)}},
                                           {rows, 3, {ALONG(REGION), ALONG(CELL_Y), ALONG(ROW)}},
                                           {columns, 3, {ALONG(REGION), ALONG(CELL_X), ALONG(COLUMN)}},
                                           {image, 2, {ALONG(REGION), ALONG(IMAGE)}}}};
}

static weft_status_t align(node_t* node, const cells_t* y, const cells_t* x, value_t* image, bool is_max,
                           value_t** out) {
  value_t *value = node->input[0], *rows, *columns, *row_kind, *column_kind;
  weft_dtype_e dtype = weft_onnx_accumulator(value->dtype);
  TRY(weft_onnx_cast(node, image, dtype, &image));
  TRY(weigh(node, y, is_max ? EACH : AVERAGED, &rows));
  TRY(weigh(node, x, is_max ? EACH : AVERAGED, &columns));
  double p[] = {4};
  weft_onnx_generic_t generic = over_cells(value, rows, columns, image);
  generic.dtype = dtype;
  generic.body = weft_onnx_body_sum_of_products;
  generic.p = p;
  if (is_max) {
    TRY(weigh(node, y, KIND, &row_kind));
    TRY(weigh(node, x, KIND, &column_kind));
    generic.rank = 9;
    generic.extent[SAMPLE_Y] = y->samples;
    generic.extent[SAMPLE_X] = x->samples;
    generic.reduction = 31u << IMAGE;
    generic.operand_count = 6;
    generic.operand[1] = (weft_onnx_operand_t){rows, 4, {ALONG(REGION), ALONG(CELL_Y), ALONG(SAMPLE_Y), ALONG(ROW)}};
    generic.operand[2] =
        (weft_onnx_operand_t){columns, 4, {ALONG(REGION), ALONG(CELL_X), ALONG(SAMPLE_X), ALONG(COLUMN)}};
    generic.operand[4] = (weft_onnx_operand_t){row_kind, 3, {ALONG(REGION), ALONG(CELL_Y), ALONG(SAMPLE_Y)}};
    generic.operand[5] = (weft_onnx_operand_t){column_kind, 3, {ALONG(REGION), ALONG(CELL_X), ALONG(SAMPLE_X)}};
    generic.initial = weft_onnx_lowest(dtype);
    generic.body = largest_product;
  }
  TRY(weft_onnx_generic(node, &generic, out));
  return weft_onnx_cast(node, *out, value->dtype, out);
}

static weft_status_t check_regions(node_t* node, int64_t columns) {
  const value_t *value = node->input[0], *rois = node->input[1];
  NODE_REQUIRE(node,
               value->shape.rank == 4 && weft_dtype_is_float(value->dtype) && rois->shape.rank == 2 &&
                   rois->shape.extent[1] == columns && weft_dtype_is_float(rois->dtype),
               INVALID_INPUT, "input has shape %s and rois %s, expected floats of [N, C, H, W] and [R, %lld]",
               weft_onnx_shape_format(&value->shape).text, weft_onnx_shape_format(&rois->shape).text,
               (long long)columns);
  return weft_ok();
}

static weft_status_t emit_roi_align(node_t* node) {
  value_t* image = node->input[2];
  const char *mode, *transformation;
  cells_t y = {.axis = 0}, x = {.axis = 1};
  TRY(check_regions(node, 4));
  NODE_REQUIRE(node, image->shape.rank == 1 && image->shape.extent[0] == node->input[1]->shape.extent[0], INVALID_INPUT,
               "batch_indices has shape %s, expected one for each of %lld regions",
               weft_onnx_shape_format(&image->shape).text, (long long)node->input[1]->shape.extent[0]);
  TRY(weft_onnx_attribute_string(node, "mode", "avg", &mode));
  TRY(weft_onnx_attribute_string(node, "coordinate_transformation_mode",
                                 node->opset < 16 ? "output_half_pixel" : "half_pixel", &transformation));
  bool half = strcmp(transformation, "half_pixel") == 0, is_max = strcmp(mode, "max") == 0;
  NODE_REQUIRE(node, is_max || strcmp(mode, "avg") == 0, INVALID_INPUT, "mode is '%s', expected avg or max", mode);
  TRY(read_cells(node, "output_height", half, &y));
  TRY(read_cells(node, "output_width", half, &x));
  TRY(images_of(node, image, &image));
  return align(node, &y, &x, image, is_max, &node->output[0]);
}

// --- MaxRoiPool

// p: elements, cells, spatial scale. x: region's low end, high end, cell, element's position.
BODY(is_in_cell) {
  scalar_t half = s_const(x[0], 0.5), scale = s_const(x[0], b->p[2]), one = s_const(x[0], 1);
  scalar_t start = round_down(b, s_add(b, s_mul(b, x[0], scale), half));
  scalar_t end = round_down(b, s_add(b, s_mul(b, x[1], scale), half));
  scalar_t length = s_max(b, s_add(b, s_sub(b, end, start), one), one);
  scalar_t cell = s_div(b, length, s_const(x[0], b->p[1]));
  scalar_t first = s_add(b, round_down(b, s_mul(b, x[2], cell)), start);
  scalar_t last = weft_onnx_scalar_unary(b, WEFT_ONNX_CEIL, s_mul(b, s_add(b, x[2], one), cell));
  return both(b, s_compare(b, WEFT_ONNX_GE, x[3], first), s_compare(b, WEFT_ONNX_LT, x[3], s_add(b, last, start)));
}
// x: element, whether it is in the cell's rows, columns, whether it is of the image, accumulator.
BODY(largest_inside) {
  return s_max(b, x[4],
               s_select(b, both(b, x[3], both(b, x[1], x[2])), x[0], s_const(x[0], weft_onnx_lowest(x[0].dtype))));
}
BODY(zero_if_empty) {
  scalar_t is_empty = s_compare(b, WEFT_ONNX_EQ, x[0], s_const(x[0], weft_onnx_lowest(x[0].dtype)));
  return s_select(b, is_empty, s_const(x[0], 0), x[0]);
}

// [regions, cells, elements]
static weft_status_t inside(node_t* node, int32_t axis, int64_t count, double scale, value_t** out) {
  value_t *low, *high, *cell, *position;
  weft_dtype_e dtype = weft_onnx_accumulator(node->input[1]->dtype);
  int64_t elements = node->input[0]->shape.extent[2 + axis];
  double p[] = {(double)elements, (double)count, scale};
  TRY(roi_column(node, 2 - axis, dtype, &low));
  TRY(roi_column(node, 4 - axis, dtype, &high));
  TRY(weft_onnx_iota(node, dtype, count, &cell));
  TRY(weft_onnx_iota(node, dtype, elements, &position));
  weft_onnx_generic_t generic = {
      .rank = 3,
      .extent = {low->shape.extent[0], count, elements},
      .operand_count = 4,
      .operand = {{low, 1, {ALONG(0)}}, {high, 1, {ALONG(0)}}, {cell, 1, {ALONG(1)}}, {position, 1, {ALONG(2)}}},
      .dtype = WEFT_DTYPE_BOOL,
      .body = is_in_cell,
      .p = p};
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t emit_max_roi_pool(node_t* node) {
  value_t *value = node->input[0], *image, *rows, *columns;
  int64_t cells[2];
  double scale;
  TRY(check_regions(node, 5));
  NODE_REQUIRE(node, weft_onnx_has_attribute(node, "pooled_shape"), INVALID_INPUT,
               "attribute 'pooled_shape' is missing");
  TRY(weft_onnx_attribute_ints(node, "pooled_shape", 2, 1, cells));
  TRY(weft_onnx_attribute_float(node, "spatial_scale", 1, &scale));
  NODE_REQUIRE(node, cells[0] > 0 && cells[1] > 0 && cells[0] < INT32_MAX && cells[1] < INT32_MAX, INVALID_INPUT,
               "pooled_shape is %lld, %lld", (long long)cells[0], (long long)cells[1]);
  TRY(inside(node, 0, cells[0], scale, &rows));
  TRY(inside(node, 1, cells[1], scale, &columns));
  TRY(roi_column(node, 0, WEFT_DTYPE_I32, &image));
  TRY(images_of(node, image, &image));
  weft_onnx_generic_t generic = over_cells(value, rows, columns, image);
  generic.dtype = value->dtype;
  generic.initial = weft_onnx_lowest(value->dtype);
  generic.body = largest_inside;
  TRY(weft_onnx_generic(node, &generic, &node->output[0]));
  return weft_onnx_unary(node, zero_if_empty, NULL, node->output[0], &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("MaxRoiPool", 1, 2, 2, 1, emit_max_roi_pool, "costs a pass over the image for each cell"),
    OPERATOR("RoiAlign", 10, 3, 3, 1, emit_roi_align,
             "sampling_ratio 0 with constant regions only; costs a pass over the image for each cell"),
    {0}};

const weft_onnx_family_t weft_onnx_family_roi = {"Regions", operators};
