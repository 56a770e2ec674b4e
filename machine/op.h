// The operations of a tile's tensor engine: one table, from which the ISA, the cost function, the simulator and docs/isa.md
// are made. An operation is applied to every point of a loop nest, in loop order: dst[p] = op(a[p], b[p], c[p]). A stride of
// 0 on dst accumulates when dst is also an operand.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

// Cost classes: how many elements a cycle (machine.xml, <rates>).
typedef enum weft_op_class_e {
  WEFT_OP_CLASS_MOVE,    // copies, fills, conversions: bound by memory ports
  WEFT_OP_CLASS_SIMPLE,  // add, max, compare, select
  WEFT_OP_CLASS_MULADD,  // multiply and multiply-accumulate
  WEFT_OP_CLASS_SPECIAL, // division, roots, transcendentals
  WEFT_OP_CLASS_COUNT
} weft_op_class_e;

// name, mnemonic, number of sources, class, what it computes. MLA is the only one that reads dst.
// The computation is in the instruction's dtype: f16/bf16/f8 compute in f32 and round once on store; MLA with a wider dst
// dtype accumulates in that type. Integer arithmetic wraps; integer division truncates, by zero gives 0.
#define WEFT_OPS(X)                                                                                                    \
  X(MOV, "mov", 1, MOVE, "a, converted to the destination's type")                                                    \
  X(ADD, "add", 2, SIMPLE, "a + b")                                                                                    \
  X(SUB, "sub", 2, SIMPLE, "a - b")                                                                                    \
  X(MUL, "mul", 2, MULADD, "a * b")                                                                                    \
  X(DIV, "div", 2, SPECIAL, "a / b")                                                                                   \
  X(REM, "rem", 2, SPECIAL, "remainder of a / b with the sign of a")                                                   \
  X(MAX, "max", 2, SIMPLE, "the larger; NaN if either is NaN")                                                         \
  X(MIN, "min", 2, SIMPLE, "the smaller; NaN if either is NaN")                                                        \
  X(POW, "pow", 2, SPECIAL, "a to the power b")                                                                        \
  X(ATAN2, "atan2", 2, SPECIAL, "angle of (b, a)")                                                                     \
  X(MLA, "mla", 2, MULADD, "dst + a * b")                                                                              \
  X(NEG, "neg", 1, SIMPLE, "-a")                                                                                       \
  X(ABS, "abs", 1, SIMPLE, "|a|")                                                                                      \
  X(SQRT, "sqrt", 1, SPECIAL, "square root")                                                                           \
  X(RSQRT, "rsqrt", 1, SPECIAL, "1 / sqrt(a)")                                                                         \
  X(EXP, "exp", 1, SPECIAL, "e^a")                                                                                     \
  X(LOG, "log", 1, SPECIAL, "natural logarithm")                                                                       \
  X(LOG1P, "log1p", 1, SPECIAL, "log(1 + a)")                                                                          \
  X(EXPM1, "expm1", 1, SPECIAL, "e^a - 1")                                                                             \
  X(TANH, "tanh", 1, SPECIAL, "hyperbolic tangent")                                                                    \
  X(ERF, "erf", 1, SPECIAL, "error function")                                                                          \
  X(SIN, "sin", 1, SPECIAL, "sine")                                                                                    \
  X(COS, "cos", 1, SPECIAL, "cosine")                                                                                  \
  X(TAN, "tan", 1, SPECIAL, "tangent")                                                                                 \
  X(ASIN, "asin", 1, SPECIAL, "arc sine")                                                                              \
  X(ACOS, "acos", 1, SPECIAL, "arc cosine")                                                                            \
  X(ATAN, "atan", 1, SPECIAL, "arc tangent")                                                                           \
  X(SINH, "sinh", 1, SPECIAL, "hyperbolic sine")                                                                       \
  X(COSH, "cosh", 1, SPECIAL, "hyperbolic cosine")                                                                     \
  X(ASINH, "asinh", 1, SPECIAL, "inverse hyperbolic sine")                                                             \
  X(ACOSH, "acosh", 1, SPECIAL, "inverse hyperbolic cosine")                                                           \
  X(ATANH, "atanh", 1, SPECIAL, "inverse hyperbolic tangent")                                                          \
  X(FLOOR, "floor", 1, SIMPLE, "round down")                                                                           \
  X(CEIL, "ceil", 1, SIMPLE, "round up")                                                                               \
  X(TRUNC, "trunc", 1, SIMPLE, "round toward zero")                                                                    \
  X(ROUND, "round", 1, SIMPLE, "round half away from zero")                                                            \
  X(RINT, "rint", 1, SIMPLE, "round half to even")                                                                     \
  X(AND, "and", 2, SIMPLE, "bitwise and (integers, bool)")                                                             \
  X(OR, "or", 2, SIMPLE, "bitwise or (integers, bool)")                                                                \
  X(XOR, "xor", 2, SIMPLE, "bitwise exclusive or (integers, bool)")                                                    \
  X(SHL, "shl", 2, SIMPLE, "a << b (integers)")                                                                        \
  X(SHR, "shr", 2, SIMPLE, "a >> b; arithmetic for signed types")                                                      \
  X(EQ, "eq", 2, SIMPLE, "a == b; the destination is bool")                                                            \
  X(NE, "ne", 2, SIMPLE, "a != b; the destination is bool")                                                            \
  X(LT, "lt", 2, SIMPLE, "a < b; the destination is bool")                                                             \
  X(LE, "le", 2, SIMPLE, "a <= b; the destination is bool")                                                            \
  X(GT, "gt", 2, SIMPLE, "a > b; the destination is bool")                                                             \
  X(GE, "ge", 2, SIMPLE, "a >= b; the destination is bool")                                                            \
  X(SELECT, "select", 3, SIMPLE, "c ? a : b; c is bool")

typedef enum weft_op_e {
#define X(name, mnemonic, sources, cls, text) WEFT_OP_##name,
  WEFT_OPS(X)
#undef X
  WEFT_OP_COUNT
} weft_op_e;

const char* weft_op_mnemonic(weft_op_e op);
bool weft_op_parse(const char* mnemonic, weft_op_e* out_op);
int32_t weft_op_source_count(weft_op_e op); // not counting dst
weft_op_class_e weft_op_class(weft_op_e op);
// ADD, MAX, MIN, MUL: may combine partial results along a reduce chain.
bool weft_op_is_combiner(weft_op_e op);
// The value that a combiner leaves unchanged (0, -inf or the type's lowest, +inf or highest, 1).
double weft_op_neutral(weft_op_e op, weft_dtype_e dtype);
