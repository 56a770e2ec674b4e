// What the importer knows about an ONNX value: its type, and its elements when they are known while importing.
#pragma once
#include <mlir-c/IR.h>

#include "base/arena.h"
#include "base/dtype.h"

enum { WEFT_ONNX_MAX_RANK = 8 };

typedef struct weft_onnx_shape_t {
  int32_t rank;
  int64_t extent[WEFT_ONNX_MAX_RANK];
} weft_onnx_shape_t;

typedef enum weft_onnx_kind_e {
  WEFT_ONNX_TENSOR,
  WEFT_ONNX_SEQUENCE, // a list of values that is known while importing
  WEFT_ONNX_NONE      // an optional value that is none
} weft_onnx_kind_e;
typedef enum weft_onnx_minifloat_e {
  WEFT_ONNX_NO_MINIFLOAT,
  WEFT_ONNX_F8E4M3FNUZ,
  WEFT_ONNX_F8E5M2FNUZ,
  WEFT_ONNX_F4E2M1,
  WEFT_ONNX_F8E8M0
} weft_onnx_minifloat_e;
typedef struct weft_onnx_value_t {
  weft_onnx_kind_e kind;
  const char* name; // of the ONNX value; NULL for intermediate steps of an operator
  weft_dtype_e dtype;
  int32_t bits;                    // of 2 and 4-bit integers, which are kept in 8; 0: all of the type's
  weft_onnx_minifloat_e minifloat; // whose numbers it has: see minifloat.h
  weft_onnx_shape_t shape;
  const void* data;   // row-major elements when known, else NULL. A tensor without elements is always known
  MlirValue mlir;     // null until a known value is needed at run time
  int32_t item_count; // of a sequence
  struct weft_onnx_value_t** item;
} weft_onnx_value_t;

typedef struct weft_onnx_shape_text_t {
  char text[200];
} weft_onnx_shape_text_t;
// "[2, 3, 4]", for messages.
weft_onnx_shape_text_t weft_onnx_shape_format(const weft_onnx_shape_t* shape);
// False when an extent is negative, or the count or its bytes in any type do not fit into 62 bits.
bool weft_onnx_shape_count(const weft_onnx_shape_t* shape, int64_t* out_count);
bool weft_onnx_shape_equal(const weft_onnx_shape_t* a, const weft_onnx_shape_t* b);
// Elements of a shape that was checked when its value was made.
int64_t weft_onnx_count(const weft_onnx_value_t* value);
// Row-major strides.
void weft_onnx_strides(const weft_onnx_shape_t* shape, int64_t* out_strides);
weft_onnx_shape_t weft_onnx_shape_make(int32_t rank, const int64_t* extent);
// The element at a flat index of known data; exact.
int64_t weft_onnx_load_int(const weft_onnx_value_t* value, int64_t index);
