#include "base/dtype.h"

#include <math.h>
#include <string.h>

enum { CLASS_F, CLASS_S, CLASS_U };

static const struct {
  const char* name;
  uint8_t bits, class;
} dtype_table[WEFT_DTYPE_COUNT] = {
#define X(name, text, bits, cls) {text, bits, CLASS_##cls},
    WEFT_DTYPES(X)
#undef X
};

const char* weft_dtype_name(weft_dtype_e dtype) {
  return dtype < WEFT_DTYPE_COUNT ? dtype_table[dtype].name : "?";
}

bool weft_dtype_parse(const char* text, weft_dtype_e* out_dtype) {
  for (int i = 0; i < WEFT_DTYPE_COUNT; ++i) {
    if (strcmp(text, dtype_table[i].name) == 0) {
      *out_dtype = (weft_dtype_e)i;
      return true;
    }
  }
  return false;
}

size_t weft_dtype_size(weft_dtype_e dtype) {
  return dtype_table[dtype].bits / 8;
}
bool weft_dtype_is_float(weft_dtype_e dtype) {
  return dtype_table[dtype].class == CLASS_F;
}
bool weft_dtype_is_signed(weft_dtype_e dtype) {
  return dtype_table[dtype].class != CLASS_U;
}
static bool is_integer(weft_dtype_e dtype) {
  return dtype_table[dtype].class != CLASS_F && dtype != WEFT_DTYPE_BOOL;
}
bool weft_dtype_same_bits(weft_dtype_e a, weft_dtype_e b) {
  return a == b || (is_integer(a) && is_integer(b) && dtype_table[a].bits == dtype_table[b].bits);
}

static uint32_t bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// A NaN becomes the positive quiet NaN of the narrow type: its sign and payload differ between processors.
enum { F16_INFINITY = 0x7C00, F16_NAN = 0x7E00, BF16_NAN = 0x7FC0 };

float weft_f16_to_f32(uint16_t bits) {
  // Exponent and mantissa move to their f32 places; the multiplication corrects the bias, exactly and also for
  // subnormals.
  float magnitude = f32_of_bits((uint32_t)(bits & 0x7FFF) << 13) * 0x1p112f;
  uint32_t result = bits_of_f32(magnitude);
  if (magnitude >= 65536.0f) result |= 0x7F800000;
  return f32_of_bits(result | (uint32_t)(bits & 0x8000) << 16);
}

uint16_t weft_f32_to_f16(float value) {
  uint32_t bits = bits_of_f32(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return F16_NAN;
  if (magnitude >= 0x47800000) return (uint16_t)(sign | F16_INFINITY); // 65536 and more
  // Below the smallest normal 2^-14: one unit in the last place of 0.5 is the smallest f16, so the addition rounds.
  if (magnitude < 0x38800000)
    return (uint16_t)(sign | (bits_of_f32(f32_of_bits(magnitude) + 0.5f) - bits_of_f32(0.5f)));
  uint32_t odd = magnitude >> 13 & 1;
  return (uint16_t)(sign | (magnitude - ((127 - 15) << 23) + 0xFFF + odd) >> 13); // a carry reaches infinity by itself
}

float weft_bf16_to_f32(uint16_t bits) {
  return f32_of_bits((uint32_t)bits << 16);
}

uint16_t weft_f32_to_bf16(float value) {
  uint32_t bits = bits_of_f32(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return BF16_NAN;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float f8e4m3fn_to_f32(uint8_t bits) {
  float magnitude = (bits & 0x7F) == 0x7F ? NAN : f32_of_bits((uint32_t)(bits & 0x7F) << 20) * 0x1p120f;
  return bits & 0x80 ? -magnitude : magnitude;
}

// The magnitude's code in a format with these field widths, rounded once to nearest even, as if the exponent field had
// no end: the caller decides what codes past its largest mean. Infinity gives a code past every format's largest.
// Rounding through f32 first would round twice.
static uint32_t round_magnitude(double value, int exponent_bits, int mantissa_bits) {
  enum { DOUBLE_MANTISSA_BITS = 52, DOUBLE_BIAS = 1023 };
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  int exponent = (int)(bits >> DOUBLE_MANTISSA_BITS & 0x7FF) - DOUBLE_BIAS;
  uint64_t mantissa = (bits & ((UINT64_C(1) << DOUBLE_MANTISSA_BITS) - 1)) | UINT64_C(1) << DOUBLE_MANTISSA_BITS;
  int smallest_exponent = 2 - (1 << (exponent_bits - 1));
  int shift = DOUBLE_MANTISSA_BITS - mantissa_bits;
  if (exponent < smallest_exponent) { // subnormal, or a zero (whose exponent is far below)
    shift += smallest_exponent - exponent;
    exponent = smallest_exponent;
    if (shift > DOUBLE_MANTISSA_BITS + 1) return 0;
  }
  uint64_t kept = mantissa >> shift, odd = kept & 1;
  kept = (mantissa + (UINT64_C(1) << (shift - 1)) - 1 + odd) >> shift;
  // The leading one of a normal number adds the exponent's last unit; a carry goes the same way.
  return (uint32_t)(((uint64_t)(exponent - smallest_exponent) << mantissa_bits) + kept);
}

static uint32_t narrow(double value, int exponent_bits, int mantissa_bits, uint32_t largest_code, uint32_t nan_code) {
  if (isnan(value)) return nan_code;
  uint32_t code = round_magnitude(value, exponent_bits, mantissa_bits);
  if (code > largest_code) code = largest_code;
  return code | (uint32_t)(signbit(value) != 0) << (exponent_bits + mantissa_bits);
}

static int64_t to_signed(double value, int bits) {
  double end = (double)(UINT64_C(1) << (bits - 1));
  int64_t largest = INT64_MAX >> (64 - bits);
  if (isnan(value)) return 0;
  if (value >= end) return largest;
  if (value <= -end) return -largest - 1;
  return (int64_t)value;
}

static uint64_t to_unsigned(double value, int bits) {
  double end = 2 * (double)(UINT64_C(1) << (bits - 1));
  if (!(value > 0)) return 0; // also NaN
  if (value >= end) return UINT64_MAX >> (64 - bits);
  return (uint64_t)value;
}

double weft_dtype_load(weft_dtype_e dtype, const void* source) {
#define LOAD(T, expression)                                                                                            \
  {                                                                                                                    \
    T raw;                                                                                                             \
    memcpy(&raw, source, sizeof(raw));                                                                                 \
    return (double)(expression);                                                                                       \
  }
  switch (dtype) {
  case WEFT_DTYPE_F32:
    LOAD(float, raw)
  case WEFT_DTYPE_F16:
    LOAD(uint16_t, weft_f16_to_f32(raw))
  case WEFT_DTYPE_BF16:
    LOAD(uint16_t, weft_bf16_to_f32(raw))
  case WEFT_DTYPE_F8E4M3FN:
    LOAD(uint8_t, f8e4m3fn_to_f32(raw))
  case WEFT_DTYPE_F8E5M2:
    LOAD(uint8_t, weft_f16_to_f32((uint16_t)(raw << 8))) // the upper half of an f16
  case WEFT_DTYPE_F64:
    LOAD(double, raw)
  case WEFT_DTYPE_I8:
    LOAD(int8_t, raw)
  case WEFT_DTYPE_I16:
    LOAD(int16_t, raw)
  case WEFT_DTYPE_I32:
    LOAD(int32_t, raw)
  case WEFT_DTYPE_I64:
    LOAD(int64_t, raw)
  case WEFT_DTYPE_U8:
    LOAD(uint8_t, raw)
  case WEFT_DTYPE_U16:
    LOAD(uint16_t, raw)
  case WEFT_DTYPE_U32:
    LOAD(uint32_t, raw)
  case WEFT_DTYPE_U64:
    LOAD(uint64_t, raw)
  case WEFT_DTYPE_BOOL:
    LOAD(uint8_t, raw != 0)
  case WEFT_DTYPE_COUNT:
    break;
  }
#undef LOAD
  return NAN;
}

void weft_dtype_store(weft_dtype_e dtype, double value, void* target) {
#define STORE(T, expression)                                                                                           \
  {                                                                                                                    \
    T raw = (T)(expression);                                                                                           \
    memcpy(target, &raw, sizeof(raw));                                                                                 \
    return;                                                                                                            \
  }
  switch (dtype) {
  case WEFT_DTYPE_F32:
    STORE(float, value)
  case WEFT_DTYPE_F16:
    STORE(uint16_t, narrow(value, 5, 10, F16_INFINITY, F16_NAN))
  case WEFT_DTYPE_BF16:
    STORE(uint16_t, narrow(value, 8, 7, 0x7F80, BF16_NAN))
  case WEFT_DTYPE_F8E4M3FN:
    STORE(uint8_t, narrow(value, 4, 3, 0x7E, 0x7F)) // 0x7E is 448
  case WEFT_DTYPE_F8E5M2:
    STORE(uint8_t, narrow(value, 5, 2, 0x7C, 0x7E)) // 0x7C is infinity
  case WEFT_DTYPE_F64:
    STORE(double, value)
  case WEFT_DTYPE_I8:
    STORE(int8_t, to_signed(value, 8))
  case WEFT_DTYPE_I16:
    STORE(int16_t, to_signed(value, 16))
  case WEFT_DTYPE_I32:
    STORE(int32_t, to_signed(value, 32))
  case WEFT_DTYPE_I64:
    STORE(int64_t, to_signed(value, 64))
  case WEFT_DTYPE_U8:
    STORE(uint8_t, to_unsigned(value, 8))
  case WEFT_DTYPE_U16:
    STORE(uint16_t, to_unsigned(value, 16))
  case WEFT_DTYPE_U32:
    STORE(uint32_t, to_unsigned(value, 32))
  case WEFT_DTYPE_U64:
    STORE(uint64_t, to_unsigned(value, 64))
  case WEFT_DTYPE_BOOL:
    STORE(uint8_t, value != 0)
  case WEFT_DTYPE_COUNT:
    break;
  }
#undef STORE
}
