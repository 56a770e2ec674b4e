// The scalar side of an operator, written once: the same C function makes the body of a linalg.generic and folds
// constants. A scalar is known (a number) or a value of the body's block; operations on known scalars fold as the
// operation's type would compute them.
#pragma once
#include <mlir-c/IR.h>

#include "base/dtype.h"

typedef struct weft_onnx_scalar_t {
  weft_dtype_e dtype;
  bool is_known;
  double real;     // known floats
  int64_t integer; // known integers and bools; u64 as its bits
  MlirValue value; // unknown
} weft_onnx_scalar_t;

typedef struct weft_onnx_body_t {
  MlirContext context;
  MlirLocation location;
  MlirBlock block; // where unknown scalars are computed
  const double* p; // the operator's parameters
} weft_onnx_body_t;

// name, float operation, signed, unsigned, folded on doubles, folded on int64_t (u: as uint64_t)
#define WEFT_ONNX_BINARIES(X)                                                                                          \
  X(ADD, "arith.addf", "arith.addi", "arith.addi", x + y, ux + uy)                                                     \
  X(SUB, "arith.subf", "arith.subi", "arith.subi", x - y, ux - uy)                                                     \
  X(MUL, "arith.mulf", "arith.muli", "arith.muli", x* y, ux* uy)                                                       \
  X(DIV, "arith.divf", "arith.divsi", "arith.divui", x / y, divide(is_signed, ux, uy))                                 \
  X(REM, "arith.remf", "arith.remsi", "arith.remui", fmod(x, y), remainder_of(is_signed, ux, uy))                      \
  X(MAX, "arith.maximumf", "arith.maxsi", "arith.maxui", larger(x, y), less(is_signed, ux, uy) ? uy : ux)              \
  X(MIN, "arith.minimumf", "arith.minsi", "arith.minui", smaller(x, y), less(is_signed, ux, uy) ? ux : uy)             \
  X(POW, "math.powf", "math.ipowi", "math.ipowi", pow(x, y), integer_power(is_signed, ux, uy))                         \
  X(AND, NULL, "arith.andi", "arith.andi", 0, ux& uy)                                                                  \
  X(OR, NULL, "arith.ori", "arith.ori", 0, ux | uy)                                                                    \
  X(XOR, NULL, "arith.xori", "arith.xori", 0, ux ^ uy)                                                                 \
  X(SHL, NULL, "arith.shli", "arith.shli", 0, uy < 64 ? ux << uy : 0)                                                  \
  X(SHR, NULL, "arith.shrui", "arith.shrui", 0, uy < 64 ? ux >> uy : 0)

// name, float operation, integer operation (NULL: floats only), folded
#define WEFT_ONNX_UNARIES(X)                                                                                           \
  X(ABS, "math.absf", "math.absi", fabs(x))                                                                            \
  X(NEG, "arith.negf", NULL, -x)                                                                                       \
  X(SQRT, "math.sqrt", NULL, sqrt(x))                                                                                  \
  X(EXP, "math.exp", NULL, exp(x))                                                                                     \
  X(LOG, "math.log", NULL, log(x))                                                                                     \
  X(LOG1P, "math.log1p", NULL, log1p(x))                                                                               \
  X(TANH, "math.tanh", NULL, tanh(x))                                                                                  \
  X(ERF, "math.erf", NULL, erf(x))                                                                                     \
  X(SIN, "math.sin", NULL, sin(x))                                                                                     \
  X(COS, "math.cos", NULL, cos(x))                                                                                     \
  X(TAN, "math.tan", NULL, tan(x))                                                                                     \
  X(ASIN, "math.asin", NULL, asin(x))                                                                                  \
  X(ACOS, "math.acos", NULL, acos(x))                                                                                  \
  X(ATAN, "math.atan", NULL, atan(x))                                                                                  \
  X(SINH, "math.sinh", NULL, sinh(x))                                                                                  \
  X(COSH, "math.cosh", NULL, cosh(x))                                                                                  \
  X(ASINH, "math.asinh", NULL, asinh(x))                                                                               \
  X(ACOSH, "math.acosh", NULL, acosh(x))                                                                               \
  X(ATANH, "math.atanh", NULL, atanh(x))                                                                               \
  X(FLOOR, "math.floor", NULL, floor(x))                                                                               \
  X(CEIL, "math.ceil", NULL, ceil(x))                                                                                  \
  X(TRUNC, "math.trunc", NULL, trunc(x))                                                                               \
  X(RINT, "math.roundeven", NULL, rint(x))

// name, float predicate of arith.cmpf, signed and unsigned predicate of arith.cmpi, C operator
#define WEFT_ONNX_COMPARISONS(X)                                                                                       \
  X(EQ, 1, 0, 0, ==)                                                                                                   \
  X(NE, 13, 1, 1, !=)                                                                                                  \
  X(LT, 4, 2, 6, <)                                                                                                    \
  X(LE, 5, 3, 7, <=)                                                                                                   \
  X(GT, 2, 4, 8, >)                                                                                                    \
  X(GE, 3, 5, 9, >=)

#define X(name, ...) WEFT_ONNX_##name,
typedef enum weft_onnx_binary_e { WEFT_ONNX_BINARIES(X) } weft_onnx_binary_e;
typedef enum weft_onnx_unary_e { WEFT_ONNX_UNARIES(X) } weft_onnx_unary_e;
typedef enum weft_onnx_comparison_e { WEFT_ONNX_COMPARISONS(X) } weft_onnx_comparison_e;
#undef X

// Operands of binary operations and comparisons have one type.
weft_onnx_scalar_t weft_onnx_scalar_binary(weft_onnx_body_t* body, weft_onnx_binary_e op, weft_onnx_scalar_t a,
                                           weft_onnx_scalar_t b);
weft_onnx_scalar_t weft_onnx_scalar_unary(weft_onnx_body_t* body, weft_onnx_unary_e op, weft_onnx_scalar_t a);
weft_onnx_scalar_t weft_onnx_scalar_compare(weft_onnx_body_t* body, weft_onnx_comparison_e op, weft_onnx_scalar_t a,
                                            weft_onnx_scalar_t b); // a bool
weft_onnx_scalar_t weft_onnx_scalar_select(weft_onnx_body_t* body, weft_onnx_scalar_t condition, weft_onnx_scalar_t a,
                                           weft_onnx_scalar_t b);
// ONNX Cast: floats to integers truncate, to bool compares with zero.
weft_onnx_scalar_t weft_onnx_scalar_cast(weft_onnx_body_t* body, weft_onnx_scalar_t a, weft_dtype_e dtype);
// The same bits read as another type of the same size.
weft_onnx_scalar_t weft_onnx_scalar_bitcast(weft_onnx_body_t* body, weft_onnx_scalar_t a, weft_dtype_e dtype);
weft_onnx_scalar_t weft_onnx_scalar_constant(weft_dtype_e dtype, double value);
weft_onnx_scalar_t weft_onnx_scalar_load(weft_dtype_e dtype, const void* source); // known, exact
void weft_onnx_scalar_store(weft_onnx_scalar_t scalar, void* target);             // of a known one
// The scalar as a value of the body's block.
MlirValue weft_onnx_scalar_materialize(weft_onnx_body_t* body, weft_onnx_scalar_t scalar);

// Short forms for operator bodies.
typedef weft_onnx_scalar_t scalar_t;
typedef weft_onnx_body_t body_t;
#define WEFT_ONNX_SHORT2(name, op)                                                                                     \
  static inline scalar_t name(body_t* b, scalar_t x, scalar_t y) {                                                     \
    return weft_onnx_scalar_binary(b, op, x, y);                                                                       \
  }
#define WEFT_ONNX_SHORT1(name, op)                                                                                     \
  static inline scalar_t name(body_t* b, scalar_t x) {                                                                 \
    return weft_onnx_scalar_unary(b, op, x);                                                                           \
  }
WEFT_ONNX_SHORT2(s_add, WEFT_ONNX_ADD)
WEFT_ONNX_SHORT2(s_sub, WEFT_ONNX_SUB)
WEFT_ONNX_SHORT2(s_mul, WEFT_ONNX_MUL)
WEFT_ONNX_SHORT2(s_div, WEFT_ONNX_DIV)
WEFT_ONNX_SHORT2(s_max, WEFT_ONNX_MAX)
WEFT_ONNX_SHORT2(s_min, WEFT_ONNX_MIN)
WEFT_ONNX_SHORT1(s_exp, WEFT_ONNX_EXP)
WEFT_ONNX_SHORT1(s_log, WEFT_ONNX_LOG)
WEFT_ONNX_SHORT1(s_sqrt, WEFT_ONNX_SQRT)
WEFT_ONNX_SHORT1(s_tanh, WEFT_ONNX_TANH)
WEFT_ONNX_SHORT1(s_erf, WEFT_ONNX_ERF)
WEFT_ONNX_SHORT1(s_abs, WEFT_ONNX_ABS)
#undef WEFT_ONNX_SHORT1
#undef WEFT_ONNX_SHORT2
// A constant of x's type.
static inline scalar_t s_const(scalar_t x, double value) {
  return weft_onnx_scalar_constant(x.dtype, value);
}
static inline scalar_t s_compare(body_t* b, weft_onnx_comparison_e op, scalar_t x, scalar_t y) {
  return weft_onnx_scalar_compare(b, op, x, y);
}
static inline scalar_t s_select(body_t* b, scalar_t condition, scalar_t x, scalar_t y) {
  return weft_onnx_scalar_select(b, condition, x, y);
}
static inline scalar_t s_cast(body_t* b, scalar_t x, weft_dtype_e dtype) {
  return weft_onnx_scalar_cast(b, x, dtype);
}
static inline scalar_t s_clamp(body_t* b, scalar_t x, double low, double high) {
  return s_min(b, s_max(b, x, s_const(x, low)), s_const(x, high));
}
