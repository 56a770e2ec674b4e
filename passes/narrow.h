// Private to passes: the types that products are calculated in.
#pragma once
#include "ir/tensor/tensor.h"

// Factors of contractions in f32 become narrower ones; sums and everything else stay in f32.
weft_status_t weft_pass_narrow_f16(weft_tensor_context_t* context, MlirOperation module);
weft_status_t weft_pass_narrow_bf16(weft_tensor_context_t* context, MlirOperation module);
