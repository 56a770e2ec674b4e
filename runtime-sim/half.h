// Half-width floats and f32, many at a time: bit for bit what weft_f16_to_f32, weft_f32_to_f16 and their like for bf16
// make of one.
#pragma once
#include "base/dtype.h"

// Whether the type is one of the two, f16 and bf16.
static inline bool weft_sim_is_half(weft_dtype_e dtype) {
  return dtype == WEFT_DTYPE_F16 || dtype == WEFT_DTYPE_BF16;
}
// Neighbours in memory, of any alignment.
void weft_sim_half_widen(weft_dtype_e dtype, const uint8_t* source, int64_t count, float* out);
void weft_sim_half_narrow(weft_dtype_e dtype, const float* source, int64_t count, uint8_t* out);
