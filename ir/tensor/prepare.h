// Private to ir/tensor: readies a copy of a module for the host's JIT.
#pragma once
#include "base/array.h"
#include "ir/tensor/tensor.h"

typedef struct weft_tensor_constants_t {
  WEFT_ARRAY(void*) bytes; // of the constants that became arguments behind main's own, in that order
} weft_tensor_constants_t;

// Rewrites the module in place: kernels are inlined, large constants become arguments of main (a 100 MB literal would
// pass through the compiler as an LLVM constant), main's arguments are marked as not to be written, and the loops of
// every generic are put in an order that suits the host. Every result element still sums in the same order.
weft_status_t weft_tensor_prepare(weft_allocator_t allocator, MlirOperation main,
                                  weft_tensor_constants_t* out_constants);
