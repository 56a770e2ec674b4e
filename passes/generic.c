#include "passes/generic.h"

#include <inttypes.h>
#include <mlir-c/AffineMap.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}

bool weft_ir_is(MlirOperation op, const char* name) {
  return !mlirOperationIsNull(op) && mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), str(name));
}

MlirAttribute weft_ir_attribute(MlirOperation op, const char* name) {
  return mlirOperationGetAttributeByName(op, str(name));
}

MlirOperation weft_ir_producer(MlirValue value) {
  return mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value) : (MlirOperation){NULL};
}

bool weft_ir_is_tensor(MlirValue value) {
  return mlirTypeIsARankedTensor(mlirValueGetType(value));
}

bool weft_ir_shape(MlirValue value, weft_shape_t* out_shape, weft_dtype_e* out_dtype) {
  MlirType type = mlirValueGetType(value);
  if (!mlirTypeIsARankedTensor(type) || !mlirShapedTypeHasStaticShape(type)) return false;
  int64_t rank = mlirShapedTypeGetRank(type);
  if (rank > WEFT_MAX_RANK || !weft_tensor_dtype(mlirShapedTypeGetElementType(type), out_dtype)) return false;
  *out_shape = (weft_shape_t){.rank = (int32_t)rank};
  for (int64_t d = 0; d < rank; ++d) out_shape->extent[d] = mlirShapedTypeGetDimSize(type, d);
  return true;
}

weft_status_t weft_ir_error(weft_status_code_e code, MlirOperation op, const char* format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  weft_text_t name;
  weft_text_initialize(weft_allocator_system(), &name);
  weft_status_t status = weft_tensor_location_name(mlirOperationGetLocation(op), &name);
  MlirStringRef kind = mlirIdentifierStr(mlirOperationGetName(op));
  if (!status)
    status = weft_status_make(code, __FILE__, __LINE__, "%s: %.*s: %s", name.data ? name.data : "?", (int)kind.length,
                              kind.data, message);
  weft_text_deinitialize(&name);
  return status;
}

// Adds scale * expression to the row. False: not linear.
static bool read_row(MlirAffineExpr expression, int64_t scale, weft_index_row_t* row) {
  if (mlirAffineExprIsADim(expression)) {
    intptr_t dim = mlirAffineDimExprGetPosition(expression);
    int64_t sum = row->coefficient[dim] + scale;
    if (sum < INT32_MIN || sum > INT32_MAX) return false;
    row->coefficient[dim] = (int32_t)sum;
    return true;
  }
  if (mlirAffineExprIsAConstant(expression)) {
    row->offset += scale * mlirAffineConstantExprGetValue(expression);
    return true;
  }
  if (mlirAffineExprIsAAdd(expression))
    return read_row(mlirAffineBinaryOpExprGetLHS(expression), scale, row) &&
           read_row(mlirAffineBinaryOpExprGetRHS(expression), scale, row);
  if (mlirAffineExprIsAMul(expression)) {
    MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expression), right = mlirAffineBinaryOpExprGetRHS(expression);
    if (mlirAffineExprIsAConstant(left)) {
      MlirAffineExpr swap = left;
      left = right;
      right = swap;
    }
    int64_t factor = mlirAffineExprIsAConstant(right) ? mlirAffineConstantExprGetValue(right) : INT64_MAX;
    return factor >= INT32_MIN && factor <= INT32_MAX && scale >= INT32_MIN && scale <= INT32_MAX &&
           read_row(left, scale * factor, row);
  }
  return false;
}

static bool single_dim(const weft_index_row_t* row, int32_t loop_count, int32_t* out_dim) {
  int32_t found = -1;
  for (int32_t d = 0; d < loop_count; ++d) {
    if (!row->coefficient[d]) continue;
    if (found >= 0 || row->coefficient[d] != 1) return false;
    found = d;
  }
  *out_dim = found;
  return found >= 0 && row->offset == 0;
}

static weft_status_t read_maps(MlirOperation op, weft_generic_t* out) {
  MlirAttribute maps = weft_ir_attribute(op, "indexing_maps");
  for (int32_t d = 0; d < out->loop_count; ++d) out->extent[d] = -1;
  for (int32_t i = 0; i < out->operand_count; ++i) {
    MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, i));
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    intptr_t rank = mlirAffineMapGetNumResults(map);
    if (rank > WEFT_MAX_RANK)
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "operand %d has rank %" PRIdPTR ", at most %d works", i, rank,
                           (int)WEFT_MAX_RANK);
    if (mlirTypeIsAShaped(type) && !mlirShapedTypeHasStaticShape(type))
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "operand %d has a dynamic shape", i);
    out->map[i].rank = (int32_t)rank;
    for (intptr_t r = 0; r < rank; ++r) {
      weft_index_row_t* row = &out->map[i].row[r];
      int32_t dim;
      if (!read_row(mlirAffineMapGetResult(map, r), 1, row))
        return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "dimension %" PRIdPTR " of operand %d is not linear", r, i);
      if (single_dim(row, out->loop_count, &dim) && mlirTypeIsAShaped(type))
        out->extent[dim] = mlirShapedTypeGetDimSize(type, r);
    }
  }
  for (int32_t d = 0; d < out->loop_count; ++d)
    if (out->extent[d] < 0)
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no operand gives the extent of loop d%d", d);
  return weft_ok();
}

weft_status_t weft_generic_read(MlirOperation op, weft_generic_t* out) {
  memset(out, 0, sizeof(*out));
  out->op = op;
  out->body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  MlirAttribute iterators = weft_ir_attribute(op, "iterator_types");
  intptr_t loops = mlirArrayAttrGetNumElements(iterators), operands = mlirOperationGetNumOperands(op);
  if (loops > WEFT_MAX_DIMS)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "%" PRIdPTR " loops, at most %d work", loops, (int)WEFT_MAX_DIMS);
  if (operands > WEFT_MAX_OPERANDS)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "%" PRIdPTR " operands, at most %d work", operands,
                         (int)WEFT_MAX_OPERANDS);
  out->loop_count = (int32_t)loops;
  out->operand_count = (int32_t)operands;
  out->input_count = (int32_t)(operands - mlirOperationGetNumResults(op));
  MlirAttribute reduction = mlirAttributeParseGet(mlirOperationGetContext(op), str("#linalg.iterator_type<reduction>"));
  for (intptr_t d = 0; d < loops; ++d)
    out->reduction[d] = mlirAttributeEqual(mlirArrayAttrGetElement(iterators, d), reduction);
  return read_maps(op, out);
}

int32_t weft_generic_row_loop(const weft_generic_t* generic, const weft_index_row_t* row) {
  int32_t found = -1;
  if (row->offset != 0) return -2;
  for (int32_t d = 0; d < generic->loop_count; ++d) {
    if (!row->coefficient[d] || generic->extent[d] == 1) continue;
    if (found >= 0 || row->coefficient[d] != 1) return -2;
    found = d;
  }
  return found;
}

bool weft_generic_reduces(const weft_generic_t* generic) {
  for (int32_t d = 0; d < generic->loop_count; ++d)
    if (generic->reduction[d]) return true;
  return false;
}

// A generic whose body hands its only input through.
static bool only_yields_input(MlirOperation op) {
  if (mlirOperationGetNumResults(op) != 1 || mlirOperationGetNumOperands(op) != 2) return false;
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  MlirOperation first = mlirBlockGetFirstOperation(body);
  if (!weft_ir_is(first, "linalg.yield")) return false;
  return mlirValueEqual(mlirOperationGetOperand(first, 0), mlirBlockGetArgument(body, 0));
}

weft_ir_role_e weft_ir_role(MlirOperation op) {
  static const char* const movements[] = {"tensor.expand_shape",  "tensor.collapse_shape", "tensor.pad",
                                          "tensor.extract_slice", "tensor.concat",         "tensor.cast"};
  static const char* const fills[] = {"tensor.empty", "linalg.fill", "arith.constant"};
  for (size_t i = 0; i < sizeof(movements) / sizeof(movements[0]); ++i)
    if (weft_ir_is(op, movements[i])) return WEFT_ROLE_MOVEMENT;
  for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); ++i)
    if (weft_ir_is(op, fills[i])) return WEFT_ROLE_FILL;
  if (weft_ir_is(op, "weft.kernel") || weft_ir_is(op, "weft.mixed_kernel") || weft_ir_is(op, "scf.for"))
    return WEFT_ROLE_KERNEL;
  if (!weft_ir_is(op, "linalg.generic")) return WEFT_ROLE_OTHER;
  if (!only_yields_input(op)) return WEFT_ROLE_COMPUTE;
  if (!weft_ir_is_tensor(mlirOperationGetOperand(op, 0))) return WEFT_ROLE_FILL;
  // Rows that walk a window or reduce by overwriting are no movement; they are calculated as any other generic.
  weft_generic_t generic;
  if (!weft_status_consume(weft_generic_read(op, &generic)) || weft_generic_reduces(&generic)) return WEFT_ROLE_COMPUTE;
  for (int32_t i = 0; i < 2; ++i)
    for (int32_t r = 0; r < generic.map[i].rank; ++r)
      if (weft_generic_row_loop(&generic, &generic.map[i].row[r]) == -2) return WEFT_ROLE_COMPUTE;
  return WEFT_ROLE_MOVEMENT;
}

bool weft_ir_splat(MlirValue value, double* out_value) {
  MlirOperation op = weft_ir_producer(value);
  if (mlirOperationIsNull(op)) return false;
  if (weft_ir_is(op, "arith.constant")) return weft_tensor_constant_splat(weft_ir_attribute(op, "value"), out_value);
  if (weft_ir_is(op, "tensor.empty")) return *out_value = 0, true;
  bool fill = weft_ir_is(op, "linalg.fill") || (weft_ir_is(op, "linalg.generic") && weft_ir_role(op) == WEFT_ROLE_FILL);
  return fill && weft_ir_splat(mlirOperationGetOperand(op, 0), out_value);
}
