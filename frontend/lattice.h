// Index lists that walk through a box: nested loops, each of which adds its step to some coordinates.
#pragma once
#include "frontend/value.h"

typedef struct weft_onnx_digit_t {
  int64_t extent;
  int64_t step[WEFT_ONNX_MAX_RANK]; // along each coordinate
} weft_onnx_digit_t;
typedef struct weft_onnx_lattice_t {
  int32_t digit_count;
  weft_onnx_digit_t digit[WEFT_ONNX_MAX_RANK]; // the last one is the fastest; extents above 1
} weft_onnx_lattice_t;

// Of `count` > 0 points with `width` coordinates each: point i is point 0 plus each digit of i times the digit's step.
// False: the list is none of these.
bool weft_onnx_lattice_find(int64_t count, int32_t width, const int64_t* point, weft_onnx_lattice_t* out_lattice);
