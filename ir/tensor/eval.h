// The reference: the tensor IR compiled for the host by MLIR's own lowering and JIT. Shares no code with the mesh path.
#pragma once
#include "ir/tensor/tensor.h"

typedef struct weft_eval_t weft_eval_t;
// Lowers a clone of the module's function `main` (one-shot-bufferize, linalg to loops, LLVM) and compiles it.
weft_status_t weft_eval_create(weft_tensor_context_t* context, MlirModule module, weft_allocator_t allocator,
                               weft_eval_t** out_eval);
void weft_eval_destroy(weft_eval_t* eval);
// inputs: in the order of main's arguments, dtype and shape must match; outputs: caller gives name, dtype, extents,
// data, size as the function's results have them.
weft_status_t weft_eval_run(weft_eval_t* eval, const weft_host_tensor_t* inputs, int32_t input_count,
                            weft_host_tensor_t* outputs, int32_t output_count);
