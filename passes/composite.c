// Scalar ops that take several operations of a tile.
#include <math.h>

#include "passes/body.h"
#include "passes/scalar_ops.h"

enum { S = 0, U = 1 };

static weft_scalar_t immediate(double value, weft_dtype_e dtype) {
  return (weft_scalar_t){.buffer = -1, .immediate = value, .dtype = dtype};
}

static weft_status_t compare(weft_body_t* body, weft_op_e op, weft_dtype_e dtype, weft_scalar_t a, weft_scalar_t b,
                             weft_scalar_t* out) {
  return weft_body_emit(body, op, dtype, WEFT_DTYPE_BOOL, 2, (weft_scalar_t[]){a, b}, out);
}

static weft_status_t join(weft_body_t* body, weft_op_e op, weft_scalar_t a, weft_scalar_t b, weft_scalar_t* out) {
  return weft_body_emit(body, op, WEFT_DTYPE_BOOL, WEFT_DTYPE_BOOL, 2, (weft_scalar_t[]){a, b}, out);
}

static weft_status_t operands(weft_body_t* body, MlirOperation op, int32_t count, weft_scalar_t* out) {
  for (int32_t i = 0; i < count; ++i)
    WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, mlirOperationGetOperand(op, i), &out[i]));
  return weft_ok();
}

static weft_status_t compare_integers(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  static const struct {
    weft_op_e op;
    bool is_unsigned;
  } predicate[] = {
#define X(op, sign) {WEFT_OP_##op, sign},
      WEFT_INTEGER_PREDICATES(X)
#undef X
  };
  int64_t at = mlirIntegerAttrGetValueInt(weft_ir_attribute(op, "predicate"));
  weft_scalar_t a[2];
  weft_dtype_e dtype;
  if (at < 0 || at >= (int64_t)(sizeof(predicate) / sizeof(predicate[0])) ||
      !weft_body_dtype(mlirOperationGetOperand(op, 0), predicate[at].is_unsigned, &dtype))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such comparison on a tile");
  WEFT_RETURN_IF_ERROR(operands(body, op, 2, a));
  return compare(body, predicate[at].op, dtype, a[0], a[1], out);
}

// A tile's comparisons are false for NaN, but for NE: MLIR's ordered predicates and une. The unordered ones are the
// negation of the opposite ordered one.
static weft_status_t compare_floats(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  enum { FALSE, OEQ, OGT, OGE, OLT, OLE, ONE, ORD, UEQ, UGT, UGE, ULT, ULE, UNE, UNO, TRUE };
  int64_t predicate = mlirIntegerAttrGetValueInt(weft_ir_attribute(op, "predicate"));
  weft_scalar_t a[2], left, right;
  weft_dtype_e dtype;
  if (!weft_body_dtype(mlirOperationGetOperand(op, 0), false, &dtype))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  WEFT_RETURN_IF_ERROR(operands(body, op, 2, a));
  const weft_scalar_t one = immediate(1, WEFT_DTYPE_BOOL);
  switch (predicate) {
  case FALSE:
    return *out = immediate(0, WEFT_DTYPE_BOOL), weft_ok();
  case TRUE:
    return *out = one, weft_ok();
  case OEQ:
    return compare(body, WEFT_OP_EQ, dtype, a[0], a[1], out);
  case OGT:
    return compare(body, WEFT_OP_GT, dtype, a[0], a[1], out);
  case OGE:
    return compare(body, WEFT_OP_GE, dtype, a[0], a[1], out);
  case OLT:
    return compare(body, WEFT_OP_LT, dtype, a[0], a[1], out);
  case OLE:
    return compare(body, WEFT_OP_LE, dtype, a[0], a[1], out);
  case UNE:
    return compare(body, WEFT_OP_NE, dtype, a[0], a[1], out);
  case UGT:
  case UGE:
  case ULT:
  case ULE: {
    static const weft_op_e opposite[] = {WEFT_OP_LE, WEFT_OP_LT, WEFT_OP_GE, WEFT_OP_GT};
    WEFT_RETURN_IF_ERROR(compare(body, opposite[predicate - UGT], dtype, a[0], a[1], &left));
    return join(body, WEFT_OP_XOR, left, one, out);
  }
  case ONE:
  case UEQ:
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_LT, dtype, a[0], a[1], &left));
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_GT, dtype, a[0], a[1], &right));
    if (predicate == ONE) return join(body, WEFT_OP_OR, left, right, out);
    WEFT_RETURN_IF_ERROR(join(body, WEFT_OP_OR, left, right, &left));
    return join(body, WEFT_OP_XOR, left, one, out);
  case ORD:
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_EQ, dtype, a[0], a[0], &left));
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_EQ, dtype, a[1], a[1], &right));
    return join(body, WEFT_OP_AND, left, right, out);
  case UNO:
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_NE, dtype, a[0], a[0], &left));
    WEFT_RETURN_IF_ERROR(compare(body, WEFT_OP_NE, dtype, a[1], a[1], &right));
    return join(body, WEFT_OP_OR, left, right, out);
  default:
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such comparison on a tile");
  }
}

static weft_status_t select_value(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  weft_scalar_t a[3];
  weft_dtype_e dtype;
  if (!weft_body_dtype(mlirOperationGetResult(op, 0), false, &dtype))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  WEFT_RETURN_IF_ERROR(operands(body, op, 3, a));
  return weft_body_emit(body, WEFT_OP_SELECT, dtype, dtype, 3, (weft_scalar_t[]){a[1], a[2], a[0]}, out);
}

// Narrowing keeps the low bits; a tile's conversion saturates. Shifting up and down first leaves only what fits.
static weft_status_t truncate_integer(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  weft_scalar_t source;
  weft_dtype_e from, to;
  if (!weft_body_dtype(mlirOperationGetOperand(op, 0), false, &from) ||
      !weft_body_dtype(mlirOperationGetResult(op, 0), false, &to))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  WEFT_RETURN_IF_ERROR(operands(body, op, 1, &source));
  if (to == WEFT_DTYPE_BOOL) {
    WEFT_RETURN_IF_ERROR(
        weft_body_emit(body, WEFT_OP_AND, from, from, 2, (weft_scalar_t[]){source, immediate(1, from)}, &source));
  } else {
    const weft_scalar_t distance = immediate(8.0 * (double)(weft_dtype_size(from) - weft_dtype_size(to)), from);
    WEFT_RETURN_IF_ERROR(
        weft_body_emit(body, WEFT_OP_SHL, from, from, 2, (weft_scalar_t[]){source, distance}, &source));
    WEFT_RETURN_IF_ERROR(
        weft_body_emit(body, WEFT_OP_SHR, from, from, 2, (weft_scalar_t[]){source, distance}, &source));
  }
  return weft_body_emit(body, WEFT_OP_MOV, from, to, 1, &source, out);
}

// The bits as they lie in memory, read as what they become.
static weft_status_t reinterpret(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  weft_scalar_t source;
  weft_dtype_e to;
  if (!weft_body_dtype(mlirOperationGetResult(op, 0), false, &to))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  WEFT_RETURN_IF_ERROR(operands(body, op, 1, &source));
  if (source.buffer < 0) return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "its operand is a number, not in memory");
  return weft_body_emit(body, WEFT_OP_MOV, to, to, 1, &source, out);
}

// f(scale * x) or scale * f(x).
static weft_status_t scaled(weft_body_t* body, MlirOperation op, weft_op_e function, double before, double after,
                            weft_scalar_t* out) {
  weft_scalar_t x;
  WEFT_RETURN_IF_ERROR(operands(body, op, 1, &x));
  weft_dtype_e dtype = x.dtype;
  if (before != 1)
    WEFT_RETURN_IF_ERROR(
        weft_body_emit(body, WEFT_OP_MUL, dtype, dtype, 2, (weft_scalar_t[]){x, immediate(before, dtype)}, &x));
  WEFT_RETURN_IF_ERROR(weft_body_emit(body, function, dtype, dtype, 1, &x, after == 1 ? out : &x));
  if (after == 1) return weft_ok();
  return weft_body_emit(body, WEFT_OP_MUL, dtype, dtype, 2, (weft_scalar_t[]){x, immediate(after, dtype)}, out);
}

static weft_status_t multiply_add(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  weft_scalar_t a[3], product;
  WEFT_RETURN_IF_ERROR(operands(body, op, 3, a));
  weft_dtype_e dtype = a[0].dtype;
  WEFT_RETURN_IF_ERROR(weft_body_emit(body, WEFT_OP_MUL, dtype, dtype, 2, a, &product));
  return weft_body_emit(body, WEFT_OP_ADD, dtype, dtype, 2, (weft_scalar_t[]){product, a[2]}, out);
}

static weft_status_t test_magnitude(weft_body_t* body, MlirOperation op, weft_op_e test, weft_scalar_t* out) {
  weft_scalar_t x;
  WEFT_RETURN_IF_ERROR(operands(body, op, 1, &x));
  weft_dtype_e dtype = x.dtype;
  WEFT_RETURN_IF_ERROR(weft_body_emit(body, WEFT_OP_ABS, dtype, dtype, 1, &x, &x));
  return compare(body, test, dtype, x, immediate(INFINITY, dtype), out);
}

weft_status_t weft_body_composite(weft_body_t* body, MlirOperation op, weft_scalar_t* out, bool* out_known) {
  *out_known = true;
  if (weft_ir_is(op, "arith.cmpi")) return compare_integers(body, op, out);
  if (weft_ir_is(op, "arith.cmpf")) return compare_floats(body, op, out);
  if (weft_ir_is(op, "arith.select")) return select_value(body, op, out);
  if (weft_ir_is(op, "arith.trunci")) return truncate_integer(body, op, out);
  if (weft_ir_is(op, "arith.bitcast")) return reinterpret(body, op, out);
  if (weft_ir_is(op, "math.fma")) return multiply_add(body, op, out);
  if (weft_ir_is(op, "math.exp2")) return scaled(body, op, WEFT_OP_EXP, M_LN2, 1, out);
  if (weft_ir_is(op, "math.log2")) return scaled(body, op, WEFT_OP_LOG, 1, 1 / M_LN2, out);
  if (weft_ir_is(op, "math.log10")) return scaled(body, op, WEFT_OP_LOG, 1, 1 / M_LN10, out);
  if (weft_ir_is(op, "math.isinf")) return test_magnitude(body, op, WEFT_OP_EQ, out);
  if (weft_ir_is(op, "math.isfinite")) return test_magnitude(body, op, WEFT_OP_LT, out);
  if (weft_ir_is(op, "math.isnan")) {
    weft_scalar_t x;
    WEFT_RETURN_IF_ERROR(operands(body, op, 1, &x));
    return compare(body, WEFT_OP_NE, x.dtype, x, x, out);
  }
  *out_known = false;
  return weft_ok();
}
