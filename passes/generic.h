// Private to passes: a linalg.generic read into plain numbers, and the questions that clustering and lowering ask about
// ops.
#pragma once
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "ir/fabric/fabric.h"
#include "ir/tensor/tensor.h"

enum { WEFT_MAX_OPERANDS = 10 };

// An index map: row r of the operand's coordinates in terms of the op's loops.
typedef struct weft_map_t {
  int32_t rank;
  weft_index_row_t row[WEFT_MAX_RANK];
} weft_map_t;

typedef struct weft_generic_t {
  MlirOperation op;
  MlirBlock body;
  int32_t loop_count;
  int64_t extent[WEFT_MAX_DIMS];
  bool reduction[WEFT_MAX_DIMS];
  int32_t input_count, operand_count; // operands: inputs, then one init for each result
  weft_map_t map[WEFT_MAX_OPERANDS];
} weft_generic_t;

bool weft_ir_is(MlirOperation op, const char* name);
MlirAttribute weft_ir_attribute(MlirOperation op, const char* name);
// The op that makes a value; null for block arguments.
MlirOperation weft_ir_producer(MlirValue value);
// False: not a static tensor of a known element type and at most WEFT_MAX_RANK dimensions.
bool weft_ir_shape(MlirValue value, weft_shape_t* out_shape, weft_dtype_e* out_dtype);
bool weft_ir_is_tensor(MlirValue value);
// An error of this code that starts with the op's node name.
weft_status_t weft_ir_error(weft_status_code_e code, MlirOperation op, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

// UNSUPPORTED, naming the op, when its maps are not linear with constant coefficients or it is larger than a kernel can
// be.
weft_status_t weft_generic_read(MlirOperation op, weft_generic_t* out_generic);
// The loop that row `row` walks with coefficient 1 and offset 0, -1 when it is constantly 0, -2 for anything else.
// Loops of extent 1 count as 0.
int32_t weft_generic_row_loop(const weft_generic_t* generic, const weft_index_row_t* row);
bool weft_generic_reduces(const weft_generic_t* generic);

typedef enum weft_ir_role_e {
  WEFT_ROLE_COMPUTE,  // a linalg.generic that calculates
  WEFT_ROLE_MOVEMENT, // reshape, pad, slice, concat, or a generic that only transposes or broadcasts
  WEFT_ROLE_FILL,     // tensor.empty, linalg.fill and its general form, constants: no data of their own
  WEFT_ROLE_KERNEL,   // weft.kernel, and scf.for, which is one by itself
  WEFT_ROLE_OTHER
} weft_ir_role_e;
weft_ir_role_e weft_ir_role(MlirOperation op);
// The scalar that a value is known to hold everywhere (splat constants, fills; 0 for tensor.empty, whose elements
// nobody reads).
bool weft_ir_splat(MlirValue value, double* out_value);
