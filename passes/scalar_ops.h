// Private to passes: how scalar ops of MLIR become operations of a tile, one to one. What needs more than that is in
// body.c.
#pragma once

// MLIR's op, the operation, how integers are read (S signed, U unsigned)
#define WEFT_SCALAR_OPS(X)                                                                                             \
  X("arith.addf", ADD, S)                                                                                              \
  X("arith.addi", ADD, S)                                                                                              \
  X("arith.subf", SUB, S)                                                                                              \
  X("arith.subi", SUB, S)                                                                                              \
  X("arith.mulf", MUL, S)                                                                                              \
  X("arith.muli", MUL, S)                                                                                              \
  X("arith.divf", DIV, S)                                                                                              \
  X("arith.divsi", DIV, S)                                                                                             \
  X("arith.divui", DIV, U)                                                                                             \
  X("arith.remf", REM, S)                                                                                              \
  X("arith.remsi", REM, S)                                                                                             \
  X("arith.remui", REM, U)                                                                                             \
  X("arith.maximumf", MAX, S)                                                                                          \
  X("arith.maxsi", MAX, S)                                                                                             \
  X("arith.maxui", MAX, U)                                                                                             \
  X("arith.minimumf", MIN, S)                                                                                          \
  X("arith.minsi", MIN, S)                                                                                             \
  X("arith.minui", MIN, U)                                                                                             \
  X("arith.negf", NEG, S)                                                                                              \
  X("arith.andi", AND, S)                                                                                              \
  X("arith.ori", OR, S)                                                                                                \
  X("arith.xori", XOR, S)                                                                                              \
  X("arith.shli", SHL, S)                                                                                              \
  X("arith.shrsi", SHR, S)                                                                                             \
  X("arith.shrui", SHR, U)                                                                                             \
  X("math.absf", ABS, S)                                                                                               \
  X("math.absi", ABS, S)                                                                                               \
  X("math.ipowi", POW, S)                                                                                              \
  X("math.powf", POW, S)                                                                                               \
  X("math.atan2", ATAN2, S)                                                                                            \
  X("math.sqrt", SQRT, S)                                                                                              \
  X("math.rsqrt", RSQRT, S)                                                                                            \
  X("math.exp", EXP, S)                                                                                                \
  X("math.log", LOG, S)                                                                                                \
  X("math.log1p", LOG1P, S)                                                                                            \
  X("math.expm1", EXPM1, S)                                                                                            \
  X("math.tanh", TANH, S)                                                                                              \
  X("math.erf", ERF, S)                                                                                                \
  X("math.sin", SIN, S)                                                                                                \
  X("math.cos", COS, S)                                                                                                \
  X("math.tan", TAN, S)                                                                                                \
  X("math.asin", ASIN, S)                                                                                              \
  X("math.acos", ACOS, S)                                                                                              \
  X("math.atan", ATAN, S)                                                                                              \
  X("math.sinh", SINH, S)                                                                                              \
  X("math.cosh", COSH, S)                                                                                              \
  X("math.asinh", ASINH, S)                                                                                            \
  X("math.acosh", ACOSH, S)                                                                                            \
  X("math.atanh", ATANH, S)                                                                                            \
  X("math.floor", FLOOR, S)                                                                                            \
  X("math.ceil", CEIL, S)                                                                                              \
  X("math.trunc", TRUNC, S)                                                                                            \
  X("math.round", ROUND, S)                                                                                            \
  X("math.roundeven", RINT, S)

// Conversions: a MOV from the source's type, read as given, to the result's, written as given.
#define WEFT_SCALAR_CASTS(X)                                                                                           \
  X("arith.extf", S, S)                                                                                                \
  X("arith.truncf", S, S)                                                                                              \
  X("arith.extsi", S, S)                                                                                               \
  X("arith.extui", U, S)                                                                                               \
  X("arith.sitofp", S, S)                                                                                              \
  X("arith.uitofp", U, S)                                                                                              \
  X("arith.fptosi", S, S)                                                                                              \
  X("arith.fptoui", S, U)                                                                                              \
  X("arith.index_cast", S, S)                                                                                          \
  X("arith.index_castui", S, S)

// Predicates, in the order of MLIR's enumerations: the comparison, how integers are read, and whether the outcome is
// turned around (unordered float predicates are the negation of the opposite ordered one).
#define WEFT_INTEGER_PREDICATES(X)                                                                                     \
  X(EQ, S) X(NE, S) X(LT, S) X(LE, S) X(GT, S) X(GE, S) X(LT, U) X(LE, U) X(GT, U) X(GE, U)
