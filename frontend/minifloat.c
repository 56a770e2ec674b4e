#include "frontend/minifloat.h"

#include <math.h>
#include <string.h>

#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

static const struct {
  weft_dtype_e dtype;                         // that keeps it
  int32_t bits, mantissa, bias, not_a_number; // not_a_number: its bits, -1: there is none
  bool is_signed;
  double highest;
} formats[] = {[WEFT_ONNX_F8E4M3FNUZ] = {WEFT_DTYPE_F16, 8, 3, 8, 0x80, true, 240},
               [WEFT_ONNX_F8E5M2FNUZ] = {WEFT_DTYPE_F16, 8, 2, 16, 0x80, true, 57344},
               [WEFT_ONNX_F4E2M1] = {WEFT_DTYPE_F16, 4, 1, 1, -1, true, 6},
               [WEFT_ONNX_F8E8M0] = {WEFT_DTYPE_F32, 8, 0, 127, 0xFF, false, 0x1p127}};

int32_t weft_onnx_minifloat_bits(weft_onnx_minifloat_e format) {
  return formats[format].bits;
}

double weft_onnx_minifloat_highest(weft_onnx_minifloat_e format) {
  return formats[format].highest;
}

double weft_onnx_minifloat_decode(weft_onnx_minifloat_e format, uint8_t bits) {
  int32_t mantissa_bits = formats[format].mantissa, bias = formats[format].bias;
  if (bits == formats[format].not_a_number) return (double)NAN;
  if (!formats[format].is_signed) return ldexp(1, bits - bias);
  int32_t magnitude = bits & ((1 << (formats[format].bits - 1)) - 1);
  int32_t exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1 << mantissa_bits) - 1);
  double value = exponent ? ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
                          : ldexp(mantissa, 1 - bias - mantissa_bits);
  return bits >> (formats[format].bits - 1) & 1 ? -value : value;
}

// The power of two in a number: its exponent alone.
static scalar_t power_of(body_t* b, scalar_t magnitude) {
  scalar_t bits = weft_onnx_scalar_bitcast(b, magnitude, WEFT_DTYPE_I32);
  bits = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, bits, s_const(bits, 0x7F800000));
  return weft_onnx_scalar_bitcast(b, bits, WEFT_DTYPE_F32);
}

// p: the least step, steps in a power of two, the highest number, whether larger ones become it (else they are no
// number), whether what is no number becomes 0.
BODY(rounded) {
  scalar_t value = b->p[3] != 0 ? s_clamp(b, x[0], -b->p[2], b->p[2]) : x[0];
  scalar_t step = s_mul(b, power_of(b, s_abs(b, value)), s_const(value, 1 / b->p[1]));
  step = s_max(b, step, s_const(value, b->p[0]));
  scalar_t near = s_mul(b, weft_onnx_scalar_unary(b, WEFT_ONNX_RINT, s_div(b, value, step)), step);
  scalar_t is_large = s_compare(b, WEFT_ONNX_GT, s_abs(b, near), s_const(near, b->p[2]));
  if (b->p[3] == 0) near = s_select(b, is_large, s_const(near, (double)NAN), near);
  if (b->p[4] == 0) return near;
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, near, near), near, s_const(near, 0));
}

// p: which share of the way to the next power is rounded up from. Powers of two, positive ones.
BODY(power) {
  scalar_t low = s_max(b, power_of(b, s_abs(b, x[0])), s_const(x[0], 0x1p-127));
  scalar_t turn = s_mul(b, low, s_const(low, 1 + b->p[0]));
  weft_onnx_comparison_e is_above = b->p[0] == 0 ? WEFT_ONNX_GT : WEFT_ONNX_GE;
  scalar_t high = s_min(b, s_mul(b, low, s_const(low, 2)), s_const(low, 0x1p127));
  scalar_t near = s_select(b, s_compare(b, is_above, x[0], turn), high, low);
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, x[0], x[0]), near, x[0]);
}

static weft_status_t round_to_power(node_t* node, value_t* value, value_t** out) {
  const char* mode;
  double p[1];
  TRY(weft_onnx_attribute_string(node, "round_mode", "up", &mode));
  p[0] = strcmp(mode, "up") == 0 ? 0 : strcmp(mode, "nearest") == 0 ? 0.5 : 1;
  NODE_REQUIRE(node, p[0] < 1 || strcmp(mode, "down") == 0, INVALID_INPUT,
               "round_mode is '%s', expected up, down or nearest", mode);
  return weft_onnx_unary(node, power, p, value, out);
}

weft_status_t weft_onnx_minifloat_round(node_t* node, value_t* value, weft_onnx_minifloat_e format, value_t** out) {
  int64_t saturates;
  TRY(weft_onnx_attribute_int(node, "saturate", 1, &saturates));
  TRY(weft_onnx_cast(node, value, WEFT_DTYPE_F32, &value));
  int32_t mantissa = formats[format].mantissa;
  bool has_nan = formats[format].not_a_number >= 0;
  double p[] = {ldexp(1, 1 - formats[format].bias - mantissa), ldexp(1, mantissa), formats[format].highest,
                saturates || !has_nan, !has_nan};
  if (format == WEFT_ONNX_F8E8M0)
    TRY(round_to_power(node, value, out));
  else
    TRY(weft_onnx_unary(node, rounded, p, value, out));
  TRY(weft_onnx_cast(node, *out, formats[format].dtype, out));
  value_t* tagged; // a value of its own, as the number may be known under another type
  TRY(WEFT_ARENA_NEW(node->builder->arena, 1, &tagged));
  *tagged = **out;
  tagged->name = NULL;
  tagged->minifloat = format;
  *out = tagged;
  return weft_ok();
}
