// Private to passes: what is known while a network is turned into integers.
#pragma once
#include "base/array.h"
#include "passes/scaled.h"

typedef struct weft_twin_t { // unsigned bytes, and the signed ones that are 128 less
  MlirValue bytes, flipped;
} weft_twin_t;
typedef struct weft_quantize_t {
  weft_allocator_t allocator;
  weft_arena_t arena; // fields
  MlirBlock block;
  WEFT_ARRAY(weft_scaled_t) scaled;
  WEFT_ARRAY(weft_twin_t) twin;
  WEFT_ARRAY(MlirOperation) of_constant; // ops that dequantise a constant
  WEFT_ARRAY(MlirOperation) order;       // of main's ops, for the way back
} weft_quantize_t;

weft_scaled_t* weft_quantize_find(weft_quantize_t* self, MlirValue real); // NULL: not known to be integers
bool weft_quantize_is_constant(MlirValue value);
weft_status_t weft_quantize_settle(weft_quantize_t* self, MlirOperation op, weft_scaled_t* scaled);

// acc + shift * (the sum of factor `operand` over the loops that the contraction reduces), for a factor that is no
// constant. `shift` is a field of the result.
weft_status_t weft_quantize_add_sum(weft_quantize_t* self, const weft_generic_t* generic, int32_t operand, MlirValue q,
                                    const weft_field_t* shift, MlirValue* acc);
MlirValue weft_quantize_add_element(const weft_build_t* build, MlirBlock body); // the last argument plus the first

// An op of main, done on integers if it can be.
weft_status_t weft_quantize_movement(weft_quantize_t* self, MlirOperation op);
weft_status_t weft_quantize_reduction(weft_quantize_t* self, const weft_generic_t* generic);

weft_status_t weft_pass_quantize(weft_tensor_context_t* context, MlirOperation module);
