// Private to ir/tensor: 8-bit floats on the host, which LLVM has no arithmetic for.
#pragma once
#include <mlir-c/ExecutionEngine.h>

#include "ir/tensor/tensor.h"

// Turns conversions from and to f8 into calls of functions that narrow_float.c exports to the JIT.
weft_status_t weft_tensor_call_f8(weft_allocator_t allocator, MlirModule module);
void weft_tensor_export_f8(MlirExecutionEngine engine);
