// Fourier transforms: contractions with constant matrices. Windows and filter banks: constants.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static const double pi = 3.14159265358979323846;

// --- The matrix of a transform: out[o, r] = sum over i, c of matrix[o, i, c, r] * in[i, c]; c and r are the real and
// the imaginary part.
typedef struct transform_t {
  int64_t in, out, length; // elements of the input that are used, of the result, and the transform's length
  int32_t in_parts, out_parts;
  bool is_inverse;
  bool in_is_half; // the input is the first half of a spectrum whose second half mirrors it
} transform_t;

// What the input's part c at i adds to the result's part r at o.
static double transform_element(const transform_t* transform, int64_t o, int64_t i, int32_t c, int32_t r) {
  double turns = (double)(o * i % transform->length) / (double)transform->length;
  double angle = (transform->is_inverse ? 2 : -2) * pi * turns, re = cos(angle), im = sin(angle);
  double scale = transform->is_inverse ? 1 / (double)transform->length : 1;
  bool is_mirrored = transform->in_is_half && i != 0 && 2 * i != transform->length;
  double element = c == 0 ? (r == 0 ? re : im) : (r == 0 ? -im : re);
  return element * scale * (is_mirrored ? 2 : 1); // the mirror image adds the same real part
}

static weft_status_t transform_matrix(node_t* node, const transform_t* transform, weft_dtype_e dtype, value_t** out) {
  shape_t shape = {4, {transform->out, transform->in, transform->in_parts, transform->out_parts}};
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 24) && transform->length < INT32_MAX,
               UNSUPPORTED, "a transform of %lld elements is too long", (long long)transform->length);
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  uint8_t* at = data;
  for (int64_t o = 0; o < transform->out; ++o)
    for (int64_t i = 0; i < transform->in; ++i)
      for (int32_t c = 0; c < transform->in_parts; ++c)
        for (int32_t r = 0; r < transform->out_parts; ++r, at += width)
          weft_dtype_store(dtype, transform_element(transform, o, i, c, r), at);
  return weft_onnx_known(node, dtype, &shape, data, out);
}

static weft_status_t dft_axis(node_t* node, int32_t rank, int32_t* out) {
  double given;
  int64_t attribute;
  TRY(weft_onnx_attribute_int(node, "axis", 1, &attribute));
  given = (double)attribute;
  if (node->opset >= 20) TRY(weft_onnx_known_number(node, 2, "axis", -2, &given));
  TRY(weft_onnx_normalize_axis(node, (int64_t)given, rank, out));
  NODE_REQUIRE(node, *out != rank - 1, INVALID_INPUT, "axis %d is that of the real and imaginary parts", *out);
  return weft_ok();
}

static weft_status_t emit_dft(node_t* node) {
  value_t *value = node->input[0], *matrix;
  int32_t rank = value->shape.rank, axis;
  int64_t inverse, one_sided;
  double length;
  NODE_REQUIRE(node, rank >= 2 && value->shape.extent[rank - 1] >= 1 && value->shape.extent[rank - 1] <= 2,
               INVALID_INPUT, "input has shape %s, expected 1 or 2 on its last axis",
               weft_onnx_shape_format(&value->shape).text);
  NODE_REQUIRE(node, weft_dtype_is_float(value->dtype), INVALID_INPUT, "input is %s, expected a float type",
               weft_dtype_name(value->dtype));
  TRY(dft_axis(node, rank, &axis));
  TRY(weft_onnx_attribute_int(node, "inverse", 0, &inverse));
  TRY(weft_onnx_attribute_int(node, "onesided", 0, &one_sided));
  int64_t extent = value->shape.extent[axis];
  bool to_real = inverse && one_sided; // from half of a spectrum
  TRY(weft_onnx_known_number(node, 1, "dft_length", (double)(to_real ? 2 * (extent - 1) : extent), &length));
  NODE_REQUIRE(node, length >= 1 && length < INT32_MAX, INVALID_INPUT, "dft_length is %g", length);
  transform_t transform = {.length = (int64_t)length, .is_inverse = inverse != 0, .in_is_half = to_real};
  int64_t half = transform.length / 2 + 1;
  transform.in = weft_min_i64(extent, to_real ? half : transform.length); // beyond: cut, or zeros, which add nothing
  transform.out = one_sided && !inverse ? half : transform.length;
  transform.in_parts = (int32_t)value->shape.extent[rank - 1];
  transform.out_parts = to_real ? 1 : 2;
  weft_dtype_e dtype = weft_onnx_accumulator(value->dtype);
  TRY(transform_matrix(node, &transform, dtype, &matrix));
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  high[axis] = transform.in - extent;
  TRY(weft_onnx_pad(node, value, low, high, 0, &value));

  int32_t part = rank - 1, i = rank, c = rank + 1; // dimensions: the result's, then the transformed axis and the parts
  weft_onnx_generic_t generic = {
      .rank = rank + 2,
      .reduction = 3u << rank,
      .operand_count = 2,
      .operand = {{value, rank, {{0}}},
                  {matrix, 4, {weft_onnx_along(axis), weft_onnx_along(i), weft_onnx_along(c), weft_onnx_along(part)}}},
      .dtype = dtype,
      .body = weft_onnx_body_mul_add};
  for (int32_t d = 0; d < rank; ++d) {
    generic.extent[d] = value->shape.extent[d];
    generic.operand[0].axis[d] = weft_onnx_along(d == axis ? i : d == part ? c : d);
  }
  generic.extent[axis] = transform.out;
  generic.extent[part] = transform.out_parts;
  generic.extent[i] = transform.in;
  generic.extent[c] = transform.in_parts;
  TRY(weft_onnx_generic(node, &generic, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], node->input[0]->dtype, &node->output[0]);
}

// --- Short-time transform: a window that slides over the signal, each place transformed.

static scalar_t windowed_mul_add(body_t* b, const scalar_t* x) {
  weft_dtype_e dtype = x[3].dtype;
  scalar_t product = s_mul(b, s_cast(b, x[0], dtype), s_cast(b, x[1], dtype));
  return s_add(b, x[3], s_mul(b, product, s_cast(b, x[2], dtype)));
}
// Matrix [o, i, c, r] times window [i].
static weft_status_t window_matrix(node_t* node, value_t* window, value_t** matrix) {
  TRY(weft_onnx_cast(node, window, (*matrix)->dtype, &window));
  TRY(weft_onnx_reshape(node, window, &(shape_t){3, {window->shape.extent[0], 1, 1}}, &window));
  return weft_onnx_binary(node, weft_onnx_body_mul, *matrix, window, matrix);
}

static weft_status_t emit_stft(node_t* node) {
  value_t *signal = node->input[0], *window = weft_onnx_input(node, 2), *matrix;
  const shape_t* shape = &signal->shape;
  double step, length;
  int64_t one_sided;
  TRY(weft_onnx_known_number(node, 1, "frame_step", 0, &step));
  TRY(weft_onnx_attribute_int(node, "onesided", 1, &one_sided));
  NODE_REQUIRE(node, shape->rank >= 2 && shape->rank <= 3 && weft_dtype_is_float(signal->dtype), INVALID_INPUT,
               "signal is %s of shape %s, expected floats of [batch, length, 1 or 2]", weft_dtype_name(signal->dtype),
               weft_onnx_shape_format(shape).text);
  if (shape->rank == 2) TRY(weft_onnx_unsqueeze(node, signal, 2, &signal));
  shape = &signal->shape;
  NODE_REQUIRE(node, !window || window->shape.rank == 1, INVALID_INPUT, "window has shape %s",
               weft_onnx_shape_format(&window->shape).text);
  int64_t otherwise = window ? window->shape.extent[0] : shape->extent[1];
  TRY(weft_onnx_known_number(node, 3, "frame_length", (double)otherwise, &length));
  NODE_REQUIRE(node, step >= 1 && step < INT32_MAX && length >= 1 && length <= (double)shape->extent[1], INVALID_INPUT,
               "frames of %g elements every %g do not fit a signal of %lld", length, step, (long long)shape->extent[1]);
  NODE_REQUIRE(node, !window || window->shape.extent[0] == (int64_t)length, INVALID_INPUT,
               "the window has %lld elements, a frame %g", window ? (long long)window->shape.extent[0] : 0, length);
  transform_t transform = {.in = (int64_t)length,
                           .length = (int64_t)length,
                           .out = one_sided ? (int64_t)length / 2 + 1 : (int64_t)length,
                           .in_parts = (int32_t)shape->extent[2],
                           .out_parts = 2};
  NODE_REQUIRE(node, transform.in_parts >= 1 && transform.in_parts <= 2, INVALID_INPUT,
               "signal has shape %s, expected 1 or 2 on its last axis", weft_onnx_shape_format(shape).text);
  int64_t stride = (int64_t)step, frames = (shape->extent[1] - transform.length) / stride + 1;
  weft_dtype_e dtype = weft_onnx_accumulator(signal->dtype);
  TRY(transform_matrix(node, &transform, dtype, &matrix));
  bool apart = window && !window->data;
  if (window && !apart) TRY(window_matrix(node, window, &matrix));
  // Dimensions: batch, frame, out, out part; in, in part.
  weft_onnx_generic_t generic = {
      .rank = 6,
      .extent = {shape->extent[0], frames, transform.out, 2, transform.in, transform.in_parts},
      .reduction = 3u << 4,
      .operand_count = apart ? 3 : 2,
      .operand = {{signal, 3, {weft_onnx_along(0), {1, 4, stride, 1}, weft_onnx_along(5)}},
                  {matrix, 4, {weft_onnx_along(2), weft_onnx_along(4), weft_onnx_along(5), weft_onnx_along(3)}},
                  {window, 1, {weft_onnx_along(4)}}},
      .dtype = dtype,
      .body = apart ? windowed_mul_add : weft_onnx_body_mul_add};
  TRY(weft_onnx_generic(node, &generic, &node->output[0]));
  return weft_onnx_cast(node, node->output[0], node->input[0]->dtype, &node->output[0]);
}

// --- Windows: a sum of cosines.

enum { HANN, HAMMING, BLACKMAN };
static const double cosines[][3] = {{0.5, -0.5, 0}, {25.0 / 46.0, -21.0 / 46.0, 0}, {0.42, -0.5, 0.08}};

static weft_status_t output_type(node_t* node, const char* attribute, weft_dtype_e* out) {
  int64_t type;
  TRY(weft_onnx_attribute_int(node, attribute, 1, &type));
  NODE_REQUIRE(node, weft_onnx_dtype(type, out), UNSUPPORTED, "%s is %s", attribute, weft_onnx_dtype_text(type));
  return weft_ok();
}

static weft_status_t emit_window(node_t* node) {
  double size;
  int64_t periodic;
  weft_dtype_e dtype;
  TRY(weft_onnx_known_number(node, 0, "size", 0, &size));
  TRY(weft_onnx_attribute_int(node, "periodic", 1, &periodic));
  TRY(output_type(node, "output_datatype", &dtype));
  NODE_REQUIRE(node, size >= 0 && size < (1 << 26), INVALID_INPUT, "size is %g", size);
  int64_t count = (int64_t)size;
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  const double* a = cosines[node->op->kind];
  double period = periodic ? size : size > 1 ? size - 1 : 1;
  for (int64_t i = 0; i < count; ++i) {
    double angle = 2 * pi * (double)i / period;
    weft_dtype_store(dtype, a[0] + a[1] * cos(angle) + a[2] * cos(2 * angle), data + (size_t)i * width);
  }
  return weft_onnx_known(node, dtype, &(shape_t){1, {count}}, data, &node->output[0]);
}

// --- Triangles over the bins of a spectrum, evenly spaced in mel.

static double mel_of(double hertz) {
  return 2595 * log10(1 + hertz / 700);
}

static weft_status_t emit_mel_weights(node_t* node) {
  static const char* const names[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                      "upper_edge_hertz"};
  double given[5];
  weft_dtype_e dtype;
  for (int32_t i = 0; i < 5; ++i) TRY(weft_onnx_known_number(node, i, names[i], 0, &given[i]));
  TRY(output_type(node, "output_datatype", &dtype));
  bool fits = given[0] >= 1 && given[0] < (1 << 16) && given[1] >= 1 && given[1] < (1 << 20) && given[2] > 0;
  fits = fits && given[3] >= 0 && given[3] < 1e9 && given[4] >= 0 && given[4] < 1e9;
  NODE_REQUIRE(node, fits, INVALID_INPUT, "num_mel_bins %g, dft_length %g, sample_rate %g, edges %g and %g", given[0],
               given[1], given[2], given[3], given[4]);
  int64_t bins = (int64_t)given[0], rows = (int64_t)given[1] / 2 + 1, *edge;
  double low = mel_of(given[3]), step = (mel_of(given[4]) - low) / (double)(bins + 2);
  shape_t shape = {2, {rows, bins}};
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)(rows * bins), width, (void**)&data));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)bins + 2, &edge));
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
    edge[i] = (int64_t)floor((given[1] + 1) * hertz / given[2]);
    NODE_REQUIRE(node, edge[i] >= 0 && edge[i] <= rows, INVALID_INPUT, "an edge of %g Hz is outside of the spectrum",
                 hertz);
  }
  for (int64_t bin = 0; bin < bins; ++bin) {
    int64_t first = edge[bin], centre = edge[bin + 1], last = edge[bin + 2];
    for (int64_t row = first; row < rows && (row <= centre || row < last); ++row) {
      double rise = (double)(row - first) / (double)(centre - first);
      double fall = (double)(last - row) / (double)(last - centre);
      double weight = row == centre ? 1 : row < centre ? rise : fall;
      weft_dtype_store(dtype, weight, data + (size_t)(row * bins + bin) * width);
    }
  }
  return weft_onnx_known(node, dtype, &shape, data, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("BlackmanWindow", 17, 1, 1, 1, emit_window, "constant size", .kind = BLACKMAN),
    OPERATOR("DFT", 17, 1, 3, 1, emit_dft, "constant length and axis; a product with a matrix"),
    OPERATOR("HammingWindow", 17, 1, 1, 1, emit_window, "constant size", .kind = HAMMING),
    OPERATOR("HannWindow", 17, 1, 1, 1, emit_window, "constant size", .kind = HANN),
    OPERATOR("MelWeightMatrix", 17, 5, 5, 1, emit_mel_weights, "constant inputs"),
    OPERATOR("STFT", 17, 2, 4, 1, emit_stft, "constant frame step and length; a product with a matrix"),
    {0}};

const weft_onnx_family_t weft_onnx_family_signal = {"Signals", operators};
