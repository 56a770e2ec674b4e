#include "frontend/value.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

weft_onnx_shape_text_t weft_onnx_shape_format(const weft_onnx_shape_t* shape) {
  weft_onnx_shape_text_t out = {"["};
  size_t at = 1;
  for (int32_t i = 0; i < shape->rank; ++i)
    at += (size_t)snprintf(out.text + at, sizeof(out.text) - at, i ? ", %lld" : "%lld", (long long)shape->extent[i]);
  snprintf(out.text + at, sizeof(out.text) - at, "]");
  return out;
}

bool weft_onnx_shape_count(const weft_onnx_shape_t* shape, int64_t* out_count) {
  int64_t count = 1;
  bool is_empty = false;
  for (int32_t i = 0; i < shape->rank; ++i) {
    if (shape->extent[i] < 0) return false;
    if (shape->extent[i] == 0)
      is_empty = true;
    else if (!weft_checked_mul(count, shape->extent[i], &count))
      return false;
  }
  if (count > INT64_MAX / 16) return false;
  *out_count = is_empty ? 0 : count;
  return true;
}

bool weft_onnx_shape_equal(const weft_onnx_shape_t* a, const weft_onnx_shape_t* b) {
  return a->rank == b->rank && memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(int64_t)) == 0;
}

int64_t weft_onnx_count(const weft_onnx_value_t* value) {
  int64_t count = 0;
  return weft_onnx_shape_count(&value->shape, &count) ? count : 0;
}

void weft_onnx_strides(const weft_onnx_shape_t* shape, int64_t* out_strides) {
  int64_t stride = 1;
  for (int32_t i = shape->rank - 1; i >= 0; --i) {
    out_strides[i] = stride;
    stride *= shape->extent[i];
  }
}

weft_onnx_shape_t weft_onnx_shape_make(int32_t rank, const int64_t* extent) {
  weft_onnx_shape_t shape = {.rank = rank};
  for (int32_t i = 0; i < rank; ++i) shape.extent[i] = extent[i];
  return shape;
}

int64_t weft_onnx_load_int(const weft_onnx_value_t* value, int64_t index) {
  const char* at = (const char*)value->data + (size_t)index * weft_dtype_size(value->dtype);
  if (value->dtype != WEFT_DTYPE_I64 && value->dtype != WEFT_DTYPE_U64)
    return (int64_t)weft_dtype_load(value->dtype, at);
  int64_t wide;
  memcpy(&wide, at, sizeof(wide));
  return wide;
}
