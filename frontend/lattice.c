#include "frontend/lattice.h"

#include <string.h>

// How many of the points 0, stride, 2 * stride, .. are point 0 plus multiples of what leads to the second one.
static int64_t run_of(int64_t count, int64_t stride, int32_t width, const int64_t* point, const int64_t* step) {
  int64_t length = 1;
  for (; length * stride < count; ++length)
    for (int32_t c = 0; c < width; ++c)
      if (point[length * stride * width + c] != point[c] + length * step[c]) return length;
  return length;
}

static bool agrees(int64_t count, int32_t width, const int64_t* point, const weft_onnx_lattice_t* lattice) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t expected[WEFT_ONNX_MAX_RANK], rest = i;
    memcpy(expected, point, (size_t)width * sizeof(*point));
    for (int32_t d = lattice->digit_count - 1; d >= 0; --d) {
      int64_t digit = rest % lattice->digit[d].extent;
      rest /= lattice->digit[d].extent;
      for (int32_t c = 0; c < width; ++c) expected[c] += digit * lattice->digit[d].step[c];
    }
    if (memcmp(expected, point + i * width, (size_t)width * sizeof(*point)) != 0) return false;
  }
  return true;
}

bool weft_onnx_lattice_find(int64_t count, int32_t width, const int64_t* point, weft_onnx_lattice_t* out_lattice) {
  weft_onnx_digit_t found[WEFT_ONNX_MAX_RANK]; // the fastest first
  int32_t digits = 0;
  for (int64_t stride = 1; stride < count; ++digits) {
    if (digits == WEFT_ONNX_MAX_RANK) return false;
    for (int32_t c = 0; c < width; ++c) found[digits].step[c] = point[stride * width + c] - point[c];
    found[digits].extent = run_of(count, stride, width, point, found[digits].step);
    stride *= found[digits].extent;
    if (count % stride != 0) return false;
  }
  out_lattice->digit_count = digits;
  for (int32_t d = 0; d < digits; ++d) out_lattice->digit[d] = found[digits - 1 - d];
  return agrees(count, width, point, out_lattice);
}
