// Tensors in host memory, and NumPy's .npy files.
#pragma once
#include "base/arena.h"
#include "base/dtype.h"

typedef struct weft_host_tensor_t {
  const char* name;
  weft_dtype_e dtype;
  int32_t rank;
  int64_t extent[8];
  void* data;  // row-major, little-endian
  size_t size; // bytes
} weft_host_tensor_t;

// Reads an array into the arena: format versions 1 and 2, C order, little-endian. Errors name the file and what it has.
weft_status_t weft_npy_read(weft_arena_t* arena, const char* path, weft_host_tensor_t* out_tensor);
// Writes version 1. UNSUPPORTED for types that NumPy lacks (bf16, f8).
weft_status_t weft_npy_write(weft_allocator_t allocator, const char* path, const weft_host_tensor_t* tensor);
