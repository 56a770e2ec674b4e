// Private to passes: the body of one linalg.generic on its way to operations.
#pragma once
#include "passes/lowering.h"

enum { WEFT_MAX_BODY = 256 }; // values of a body

typedef struct weft_body_t {
  weft_draft_t* draft;
  const weft_generic_t* generic;
  const int32_t* loop;  // the generic's loops -> dimensions
  int32_t first_buffer; // buffers from here on were made for this body
  int32_t value_count;
  weft_made_t value[WEFT_MAX_BODY];
} weft_body_t;

// The scalar behind a value of the body: evaluates what is needed, once.
weft_status_t weft_body_evaluate(weft_body_t* body, MlirValue value, weft_scalar_t* out_scalar);
// op over every point that its sources depend on, into a fresh temporary.
weft_status_t weft_body_emit(weft_body_t* body, weft_op_e op, weft_dtype_e dtype, weft_dtype_e result, int32_t count,
                             const weft_scalar_t* source, weft_scalar_t* out_scalar);
// The element type of a scalar value; index counts as i32. An integer is read as unsigned when asked to.
bool weft_body_dtype(MlirValue value, bool is_unsigned, weft_dtype_e* out_dtype);
// The value before a widening conversion (extf, extsi, extui) and the type to read it as. False: none.
bool weft_body_before_widening(MlirValue value, MlirValue* out_narrow, weft_dtype_e* out_dtype);
// math.* and arith.* ops that take several operations. *out_known is false for an op that isn't one of them.
weft_status_t weft_body_composite(weft_body_t* body, MlirOperation op, weft_scalar_t* out_scalar, bool* out_known);
