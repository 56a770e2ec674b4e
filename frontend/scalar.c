#include "frontend/scalar.h"

#include <math.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "frontend/mlir_build.h"
#include "ir/tensor/tensor.h"

typedef struct number_ops_t {
  const char *real, *sint, *uint;
} number_ops_t;
#define X(name, real, sint, uint, ...) {real, sint, uint},
static const number_ops_t binary_ops[] = {WEFT_ONNX_BINARIES(X)};
#undef X
#define X(name, real, integer, ...) {real, integer, integer},
static const number_ops_t unary_ops[] = {WEFT_ONNX_UNARIES(X)};
#undef X
#define X(name, real, sint, uint, op) {real, sint, uint},
static const int64_t predicates[][3] = {WEFT_ONNX_COMPARISONS(X)};
#undef X

static bool less(bool is_signed, uint64_t a, uint64_t b) {
  return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

// Division by zero gives 0 and INT64_MIN / -1 wraps, as the machine computes them.
static uint64_t divide(bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  if (!is_signed) return a / b;
  return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(bool is_signed, uint64_t a, uint64_t b) {
  return a - b * divide(is_signed, a, b);
}

static double larger(double x, double y) {
  return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

static double smaller(double x, double y) {
  return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
}

static uint64_t integer_power(bool is_signed, uint64_t base, uint64_t exponent) {
  if (is_signed && (int64_t)exponent < 0) return base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? base : 1) : 0;
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

static double round_to(weft_dtype_e dtype, double value) {
  if (dtype == WEFT_DTYPE_F32) return (double)(float)value;
  if (dtype == WEFT_DTYPE_F64) return value;
  uint64_t bits = 0;
  weft_dtype_store(dtype, value, &bits);
  return weft_dtype_load(dtype, &bits);
}

static int64_t wrap_to(weft_dtype_e dtype, uint64_t value) {
  if (dtype == WEFT_DTYPE_BOOL) return (int64_t)(value & 1);
  int shift = 64 - 8 * (int)weft_dtype_size(dtype);
  return weft_dtype_is_signed(dtype) ? (int64_t)(value << shift) >> shift : (int64_t)((value << shift) >> shift);
}

static scalar_t known_real(weft_dtype_e dtype, double value) {
  return (scalar_t){.dtype = dtype, .is_known = true, .real = round_to(dtype, value)};
}

static scalar_t known_integer(weft_dtype_e dtype, uint64_t value) {
  return (scalar_t){.dtype = dtype, .is_known = true, .integer = wrap_to(dtype, value)};
}

static const char* pick(const number_ops_t* ops, weft_dtype_e dtype) {
  return weft_dtype_is_float(dtype) ? ops->real : weft_dtype_is_signed(dtype) ? ops->sint : ops->uint;
}

static scalar_t emit(body_t* body, const char* name, weft_dtype_e dtype, int32_t count, const scalar_t* operands,
                     const weft_onnx_attribute_t* attribute) {
  MlirValue values[3];
  for (int32_t i = 0; i < count; ++i) values[i] = weft_onnx_scalar_materialize(body, operands[i]);
  MlirType type = weft_tensor_type(body->context, dtype);
  MlirOperation op = weft_onnx_create_op(body->location, name, &type, count, values, attribute ? 1 : 0, attribute);
  mlirBlockAppendOwnedOperation(body->block, op);
  return (scalar_t){.dtype = dtype, .value = mlirOperationGetResult(op, 0)};
}

scalar_t weft_onnx_scalar_binary(body_t* body, weft_onnx_binary_e op, scalar_t a, scalar_t b) {
  if (!a.is_known || !b.is_known)
    return emit(body, pick(&binary_ops[op], a.dtype), a.dtype, 2, (scalar_t[]){a, b}, NULL);
  if (weft_dtype_is_float(a.dtype)) {
    double x = a.real, y = b.real;
    switch (op) {
#define X(name, real_op, sint_op, uint_op, real_fold, integer_fold)                                                    \
  case WEFT_ONNX_##name:                                                                                               \
    return known_real(a.dtype, real_fold);
      WEFT_ONNX_BINARIES(X)
#undef X
    }
  }
  bool is_signed = weft_dtype_is_signed(a.dtype);
  uint64_t ux = (uint64_t)a.integer, uy = (uint64_t)b.integer;
  switch (op) {
#define X(name, real_op, sint_op, uint_op, real_fold, integer_fold)                                                    \
  case WEFT_ONNX_##name:                                                                                               \
    return known_integer(a.dtype, integer_fold);
    WEFT_ONNX_BINARIES(X)
#undef X
  }
  (void)is_signed;
  return a;
}

scalar_t weft_onnx_scalar_unary(body_t* body, weft_onnx_unary_e op, scalar_t a) {
  if (!weft_dtype_is_float(a.dtype)) {
    scalar_t zero = s_const(a, 0), negative = s_sub(body, zero, a);
    if (op == WEFT_ONNX_NEG) return negative;
    if (op != WEFT_ONNX_ABS || !weft_dtype_is_signed(a.dtype)) return a; // rounding: integers are whole already
    return s_max(body, a, negative);
  }
  if (!a.is_known) return emit(body, pick(&unary_ops[op], a.dtype), a.dtype, 1, &a, NULL);
  double x = a.real;
  switch (op) {
#define X(name, real_op, integer_op, fold)                                                                             \
  case WEFT_ONNX_##name:                                                                                               \
    return known_real(a.dtype, fold);
    WEFT_ONNX_UNARIES(X)
#undef X
  }
  return a;
}

scalar_t weft_onnx_scalar_compare(body_t* body, weft_onnx_comparison_e op, scalar_t a, scalar_t b) {
  bool is_float = weft_dtype_is_float(a.dtype), is_signed = weft_dtype_is_signed(a.dtype);
  if (!a.is_known || !b.is_known) {
    MlirAttribute predicate =
        mlirIntegerAttrGet(mlirIntegerTypeGet(body->context, 64), predicates[op][is_float    ? 0
                                                                                 : is_signed ? 1
                                                                                             : 2]);
    return emit(body, is_float ? "arith.cmpf" : "arith.cmpi", WEFT_DTYPE_BOOL, 2, (scalar_t[]){a, b},
                &(weft_onnx_attribute_t){"predicate", predicate});
  }
  bool result = false;
  switch (op) {
#define X(name, float_predicate, signed_predicate, unsigned_predicate, operator)                                       \
  case WEFT_ONNX_##name:                                                                                               \
    result = is_float ? a.real operator b.real : is_signed                                                             \
        ? a.integer operator b.integer : (uint64_t)a.integer operator(uint64_t) b.integer;                             \
    break;
    WEFT_ONNX_COMPARISONS(X)
#undef X
  }
  return known_integer(WEFT_DTYPE_BOOL, result);
}

scalar_t weft_onnx_scalar_select(body_t* body, scalar_t condition, scalar_t a, scalar_t b) {
  if (condition.is_known) return condition.integer ? a : b;
  return emit(body, "arith.select", a.dtype, 3, (scalar_t[]){condition, a, b}, NULL);
}

static scalar_t cast_known(scalar_t a, weft_dtype_e dtype) {
  bool from_float = weft_dtype_is_float(a.dtype);
  if (dtype == WEFT_DTYPE_BOOL) return known_integer(dtype, from_float ? a.real != 0 : a.integer != 0);
  if (weft_dtype_is_float(dtype)) {
    double wide = a.dtype == WEFT_DTYPE_U64 ? (double)(uint64_t)a.integer : (double)a.integer;
    return known_real(dtype, from_float ? a.real : wide);
  }
  if (!from_float) return known_integer(dtype, (uint64_t)a.integer);
  uint64_t bits = 0;
  weft_dtype_store(dtype, a.real, &bits);
  return known_integer(dtype, bits);
}

// The conversion operation between two different types; sizes differ between two floats or two integers.
static const char* cast_operation(weft_dtype_e from, weft_dtype_e to) {
  bool from_float = weft_dtype_is_float(from), to_float = weft_dtype_is_float(to);
  bool is_wider = weft_dtype_size(to) > weft_dtype_size(from) || (from == WEFT_DTYPE_BOOL && to != WEFT_DTYPE_BOOL);
  if (from_float && to_float) return is_wider ? "arith.extf" : "arith.truncf";
  if (from_float) return weft_dtype_is_signed(to) ? "arith.fptosi" : "arith.fptoui";
  if (to_float) return weft_dtype_is_signed(from) ? "arith.sitofp" : "arith.uitofp";
  return !is_wider ? "arith.trunci" : weft_dtype_is_signed(from) ? "arith.extsi" : "arith.extui";
}

scalar_t weft_onnx_scalar_cast(body_t* body, scalar_t a, weft_dtype_e dtype) {
  if (a.dtype == dtype) return a;
  if (a.is_known) return cast_known(a, dtype);
  if (dtype == WEFT_DTYPE_BOOL) return s_compare(body, WEFT_ONNX_NE, a, s_const(a, 0));
  bool same_size = weft_dtype_size(a.dtype) == weft_dtype_size(dtype) && a.dtype != WEFT_DTYPE_BOOL;
  bool both_float = weft_dtype_is_float(a.dtype) && weft_dtype_is_float(dtype);
  if (same_size && both_float) return s_cast(body, s_cast(body, a, WEFT_DTYPE_F32), dtype);
  if (same_size && !weft_dtype_is_float(a.dtype) && !weft_dtype_is_float(dtype)) { // signless: only the reading changes
    a.dtype = dtype;
    return a;
  }
  return emit(body, cast_operation(a.dtype, dtype), dtype, 1, &a, NULL);
}

scalar_t weft_onnx_scalar_bitcast(body_t* body, scalar_t a, weft_dtype_e dtype) {
  bool from_float = weft_dtype_is_float(a.dtype), to_float = weft_dtype_is_float(dtype);
  if (a.dtype == dtype) return a;
  if (a.dtype == WEFT_DTYPE_BOOL || dtype == WEFT_DTYPE_BOOL) return s_cast(body, a, dtype);
  if (a.is_known) {
    uint64_t bits = 0;
    weft_onnx_scalar_store(a, &bits);
    return weft_onnx_scalar_load(dtype, &bits);
  }
  if (!from_float && !to_float) { // signless: only the reading changes
    a.dtype = dtype;
    return a;
  }
  return emit(body, "arith.bitcast", dtype, 1, &a, NULL);
}

scalar_t weft_onnx_scalar_constant(weft_dtype_e dtype, double value) {
  if (weft_dtype_is_float(dtype)) return known_real(dtype, value);
  uint64_t bits = 0;
  weft_dtype_store(dtype, value, &bits);
  return known_integer(dtype, bits);
}

scalar_t weft_onnx_scalar_load(weft_dtype_e dtype, const void* source) {
  if (weft_dtype_is_float(dtype))
    return (scalar_t){.dtype = dtype, .is_known = true, .real = weft_dtype_load(dtype, source)};
  uint64_t bits = 0;
  memcpy(&bits, source, weft_dtype_size(dtype));
  return known_integer(dtype, dtype == WEFT_DTYPE_BOOL ? bits != 0 : bits);
}

void weft_onnx_scalar_store(scalar_t scalar, void* target) {
  if (weft_dtype_is_float(scalar.dtype))
    weft_dtype_store(scalar.dtype, scalar.real, target);
  else
    memcpy(target, &scalar.integer, weft_dtype_size(scalar.dtype));
}

MlirValue weft_onnx_scalar_materialize(body_t* body, scalar_t scalar) {
  if (!scalar.is_known) return scalar.value;
  MlirType type = weft_tensor_type(body->context, scalar.dtype);
  MlirAttribute value = weft_dtype_is_float(scalar.dtype) ? mlirFloatAttrDoubleGet(body->context, type, scalar.real)
                                                          : mlirIntegerAttrGet(type, scalar.integer);
  MlirOperation op = weft_onnx_create_op(body->location, "arith.constant", &type, 0, NULL, 1,
                                         &(weft_onnx_attribute_t){"value", value});
  mlirBlockAppendOwnedOperation(body->block, op);
  return mlirOperationGetResult(op, 0);
}
