#include "machine/op.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct op_row_t {
  const char* mnemonic;
  uint8_t sources;
  uint8_t op_class;
} op_row_t;

static const op_row_t ROWS[WEFT_OP_COUNT] = {
#define X(name, mnemonic, sources, cls, text) {mnemonic, sources, WEFT_OP_CLASS_##cls},
    WEFT_OPS(X)
#undef X
};

const char* weft_op_mnemonic(weft_op_e op) {
  return op < WEFT_OP_COUNT ? ROWS[op].mnemonic : "?";
}

bool weft_op_parse(const char* mnemonic, weft_op_e* out_op) {
  for (int i = 0; i < WEFT_OP_COUNT; ++i) {
    if (strcmp(mnemonic, ROWS[i].mnemonic) != 0) continue;
    *out_op = (weft_op_e)i;
    return true;
  }
  return false;
}

int32_t weft_op_source_count(weft_op_e op) {
  return op < WEFT_OP_COUNT ? ROWS[op].sources : 0;
}

weft_op_class_e weft_op_class(weft_op_e op) {
  return op < WEFT_OP_COUNT ? (weft_op_class_e)ROWS[op].op_class : WEFT_OP_CLASS_MOVE;
}

bool weft_op_is_combiner(weft_op_e op) {
  return op == WEFT_OP_ADD || op == WEFT_OP_MAX || op == WEFT_OP_MIN || op == WEFT_OP_MUL;
}

// The largest value of a type. That of 64-bit integers isn't a double; the nearest one above saturates to it on store.
static double dtype_highest(weft_dtype_e dtype) {
  if (dtype == WEFT_DTYPE_BOOL) return 1;
  if (dtype == WEFT_DTYPE_F8E4M3FN) return 448; // has no infinities
  if (weft_dtype_is_float(dtype)) return INFINITY;
  int bits = (int)weft_dtype_size(dtype) * 8 - weft_dtype_is_signed(dtype);
  return bits < 53 ? ldexp(1, bits) - 1 : ldexp(1, bits);
}

static double dtype_lowest(weft_dtype_e dtype) {
  if (weft_dtype_is_float(dtype)) return -dtype_highest(dtype);
  return weft_dtype_is_signed(dtype) ? -ldexp(1, (int)weft_dtype_size(dtype) * 8 - 1) : 0;
}

double weft_op_neutral(weft_op_e op, weft_dtype_e dtype) {
  switch (op) {
  case WEFT_OP_MUL:
    return 1;
  case WEFT_OP_MAX:
    return dtype_lowest(dtype);
  case WEFT_OP_MIN:
    return dtype_highest(dtype);
  default:
    return 0;
  }
}
