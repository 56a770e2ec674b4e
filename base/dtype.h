// Element types and their conversions.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// name, text, bits, class (F float, S signed, U unsigned). The order is the encoding in images and stage files.
#define WEFT_DTYPES(X)                                                                                                 \
  X(F32, "f32", 32, F)                                                                                                 \
  X(F16, "f16", 16, F)                                                                                                 \
  X(BF16, "bf16", 16, F)                                                                                               \
  X(F8E4M3FN, "f8E4M3FN", 8, F)                                                                                        \
  X(F8E5M2, "f8E5M2", 8, F)                                                                                            \
  X(F64, "f64", 64, F)                                                                                                 \
  X(I8, "i8", 8, S)                                                                                                    \
  X(I16, "i16", 16, S)                                                                                                 \
  X(I32, "i32", 32, S)                                                                                                 \
  X(I64, "i64", 64, S)                                                                                                 \
  X(U8, "u8", 8, U)                                                                                                    \
  X(U16, "u16", 16, U)                                                                                                 \
  X(U32, "u32", 32, U)                                                                                                 \
  X(U64, "u64", 64, U)                                                                                                 \
  X(BOOL, "bool", 8, U)

typedef enum weft_dtype_e {
#define X(name, text, bits, cls) WEFT_DTYPE_##name,
  WEFT_DTYPES(X)
#undef X
  WEFT_DTYPE_COUNT
} weft_dtype_e;

const char* weft_dtype_name(weft_dtype_e dtype);
// False when no type has this name.
bool weft_dtype_parse(const char* text, weft_dtype_e* out_dtype);
size_t weft_dtype_size(weft_dtype_e dtype); // bytes
bool weft_dtype_is_float(weft_dtype_e dtype);
bool weft_dtype_is_signed(weft_dtype_e dtype); // floats and signed integers
// The same type, or integers of the same width: signedness is a matter of operations, not of the bits that travel.
bool weft_dtype_same_bits(weft_dtype_e a, weft_dtype_e b);

// One element <-> double. Exact for all types but i64/u64 beyond 2^53. Floats round to nearest even; f8E4M3FN saturates
// to 448 (OCP FP8 1.0, section 5.2.1), the others overflow to infinity. Integers truncate toward zero and saturate; NaN is 0.
// A bool is 1 for everything but zero, so for NaN too, as ONNX casts.
double weft_dtype_load(weft_dtype_e dtype, const void* source);
void weft_dtype_store(weft_dtype_e dtype, double value, void* target);

float weft_f16_to_f32(uint16_t bits);
uint16_t weft_f32_to_f16(float value);
float weft_bf16_to_f32(uint16_t bits);
uint16_t weft_f32_to_bf16(float value);
