// Tensors in and out: .npy files, ONNX TensorProto files, literals, random data; and their comparison.
#pragma once
#include "base/arena.h"
#include "base/npy.h"

// What a network expects of a tensor that is read for it.
typedef struct weft_tensor_spec_t {
  const char* name;
  weft_dtype_e dtype;
  int32_t rank;
  int64_t extent[8];
} weft_tensor_spec_t;

// Reads FILE.npy, FILE.pb or a literal "2x2xf32=1 2 3 4" as it is; `name` becomes the tensor's and stands in errors.
weft_status_t weft_tensor_io_load(weft_arena_t* arena, const char* name, const char* source,
                                  weft_host_tensor_t* out_tensor);
// Reads `source`: FILE.npy, FILE.pb, "random" or "random:SEED", or a literal "2x2xf32=1 2 3 4". The result has `spec`'s
// type, and its shape for each of *inout_steps inputs: a file whose first extent is a multiple of the spec's (or has
// one more dimension in front) holds several. *inout_steps 0: set from it. Errors show both shapes.
weft_status_t weft_tensor_io_read(weft_arena_t* arena, const char* source, const weft_tensor_spec_t* spec,
                                  int64_t* inout_steps, weft_host_tensor_t* out_tensor);
// By ending: .npy or .pb. steps > 1 makes the first extent (or a new one) larger.
weft_status_t weft_tensor_io_write(weft_arena_t* arena, const char* path, const weft_tensor_spec_t* spec, int64_t steps,
                                   const void* data);
int64_t weft_tensor_spec_elements(const weft_tensor_spec_t* spec);

typedef struct weft_difference_t {
  int64_t elements, wrong; // |got - wanted| > atol + rtol * |wanted|, or only one is NaN
  int64_t worst;           // index of the largest excess
  double worst_got, worst_wanted, largest_absolute, largest_relative;
} weft_difference_t;
void weft_tensor_io_compare(weft_dtype_e dtype, const void* got, const void* wanted, int64_t elements, double rtol,
                            double atol, weft_difference_t* out_difference);
// MISMATCH that shows the worst element, unless nothing is wrong.
weft_status_t weft_tensor_io_verdict(const char* name, const weft_difference_t* difference, const char* reference,
                                     double rtol, double atol);
