// Private to passes: real tensors that are known to be integers on a scale, and the pointwise bodies that keep them so.
#pragma once
#include "passes/build.h"

// real = scale * (q + shift). q is i8 or i32, both signed: a zero point of unsigned bytes is moved by 128.
typedef struct weft_scaled_t {
  MlirValue real, q;
  weft_dtype_e dtype; // of q
  weft_field_t scale, shift;
  bool is_clipped; // max(.., 0) of that
  bool is_floored; // padded with the type's lowest value in place of -inf: only a maximum may look at it
} weft_scaled_t;

// What a pointwise body makes of one of its operands.
typedef struct weft_linear_t {
  weft_field_t scale, shift;
  bool is_clipped; // max(.., 0) of it
} weft_linear_t;
// A body of one result that is linear in operand `x` with constants for the others, given what x is. `is_integer`: x is
// an integer that the body converts, unsigned when *out_is_unsigned.
weft_status_t weft_linear_match(weft_arena_t* arena, const weft_generic_t* generic, int32_t x, bool is_integer,
                                const weft_linear_t* before, weft_linear_t* out, bool* out_is_unsigned,
                                bool* out_matches);

// Round(x / scale) + zero, saturated to a byte.
typedef struct weft_quantizer_t {
  weft_linear_t steps; // of x, before rounding
  double zero;         // of the signed byte
  bool is_unsigned;
  MlirValue rounded; // in the body
} weft_quantizer_t;
weft_status_t weft_quantizer_match(weft_arena_t* arena, const weft_generic_t* generic, const weft_linear_t* before,
                                   weft_quantizer_t* out, bool* out_matches);

// acc + a * b from 0: the inputs 0 and 1 are a and b.
bool weft_is_contraction(const weft_generic_t* generic);
// acc + x from 0, or max(acc, x) from the lowest value, of input 0; other inputs are windows.
bool weft_is_sum(const weft_generic_t* generic);
bool weft_is_maximum(const weft_generic_t* generic);

// The real tensor of integers: the generic that calculates it.
weft_status_t weft_scaled_to_real(const weft_build_t* build, weft_arena_t* arena, const weft_scaled_t* scaled,
                                  MlirValue* out);
// Signed bytes of round(real) + zero, where scale is that of the real tensor over that of the bytes.
weft_status_t weft_scaled_to_bytes(const weft_build_t* build, weft_arena_t* arena, const weft_scaled_t* scaled,
                                   double zero, MlirValue* out);
// max(real, 0): of bytes, if they can show it, else is_clipped.
weft_status_t weft_scaled_clip(const weft_build_t* build, weft_arena_t* arena, weft_scaled_t* scaled);
// The shift as integers, if it is that but for rounding errors. A bias is given in steps of a scale that the model's
// author multiplied in another precision.
weft_status_t weft_scaled_whole_shift(weft_arena_t* arena, const weft_field_t* shift, weft_field_t* out,
                                      bool* out_is_whole);
