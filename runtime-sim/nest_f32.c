// Rows of aligned f32 for the operations that networks spend their time in. Same results as the generic rows.
#include <stdint.h>

#include "runtime-sim/nest.h"

typedef struct view_t {
  int64_t count, d, a, b; // strides in elements
  float* destination;
  const float *first, *second;
} view_t;

static view_t view_of(const weft_sim_row_t* row, bool two_sources) {
  enum { SIZE = sizeof(float) };
  return (view_t){.count = row->count,
                  .d = row->stride[0] / SIZE,
                  .a = row->stride[1] / SIZE,
                  .b = two_sources ? row->stride[2] / SIZE : 0,
                  .destination = (float*)(void*)row->pointer[0],
                  .first = (const float*)(const void*)row->pointer[1],
                  .second = two_sources ? (const float*)(const void*)row->pointer[2] : NULL};
}

// Fixed strides let the compiler vectorise; it checks for overlap by itself.
#define STRIDED(D, A, B, EXPRESSION)                                                                                   \
  for (int64_t i = 0; i < v.count; ++i) {                                                                              \
    float a = v.first[i * (A)], b = v.second[i * (B)];                                                                 \
    (void)a, (void)b;                                                                                                  \
    v.destination[i * (D)] = (EXPRESSION);                                                                             \
  }
#define BINARY(name, EXPRESSION)                                                                                       \
  static void name(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {                                           \
    (void)nest;                                                                                                        \
    view_t v = view_of(row, true);                                                                                     \
    if (v.d == 1 && v.a == 1 && v.b == 1) {                                                                            \
      STRIDED(1, 1, 1, EXPRESSION)                                                                                     \
    } else if (v.d == 1 && v.a == 1 && v.b == 0) {                                                                     \
      STRIDED(1, 1, 0, EXPRESSION)                                                                                     \
    } else if (v.d == 1 && v.a == 0 && v.b == 1) {                                                                     \
      STRIDED(1, 0, 1, EXPRESSION)                                                                                     \
    } else {                                                                                                           \
      STRIDED(v.d, v.a, v.b, EXPRESSION)                                                                               \
    }                                                                                                                  \
  }
BINARY(row_add, a + b)
BINARY(row_sub, a - b)
BINARY(row_mul, a* b)
BINARY(row_max, a > b || a != a ? a : b)
BINARY(row_min, a < b || a != a ? a : b)

static void row_mla(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  (void)nest;
  view_t v = view_of(row, true);
  // The destination overlaps no source here: see weft_sim_row_f32.
  float* restrict d = v.destination;
  if (v.d == 0) {
    float sum = *d;
    if (v.a == 1 && v.b == 1)
      for (int64_t i = 0; i < v.count; ++i) sum += v.first[i] * v.second[i];
    else
      for (int64_t i = 0; i < v.count; ++i) sum += v.first[i * v.a] * v.second[i * v.b];
    *d = sum;
  } else if (v.d == 1 && v.b == 0) {
    float b = *v.second;
    if (v.a == 1)
      for (int64_t i = 0; i < v.count; ++i) d[i] += v.first[i] * b;
    else
      for (int64_t i = 0; i < v.count; ++i) d[i] += v.first[i * v.a] * b;
  } else if (v.d == 1 && v.a == 0) {
    float a = *v.first;
    if (v.b == 1)
      for (int64_t i = 0; i < v.count; ++i) d[i] += a * v.second[i];
    else
      for (int64_t i = 0; i < v.count; ++i) d[i] += a * v.second[i * v.b];
  } else {
    for (int64_t i = 0; i < v.count; ++i) d[i * v.d] += v.first[i * v.a] * v.second[i * v.b];
  }
}

static void row_mov(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  (void)nest;
  view_t v = view_of(row, false);
  if (v.d == 1 && v.a == 1)
    for (int64_t i = 0; i < v.count; ++i) v.destination[i] = v.first[i];
  else
    for (int64_t i = 0; i < v.count; ++i) v.destination[i * v.d] = v.first[i * v.a];
}

// The condition is bytes, of any stride.
static void row_select(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  (void)nest;
  view_t v = view_of(row, true);
  const uint8_t* condition = row->pointer[3];
  int64_t step = row->stride[3];
  for (int64_t i = 0; i < v.count; ++i)
    v.destination[i * v.d] = condition[i * step] ? v.first[i * v.a] : v.second[i * v.b];
}

static bool is_aligned(const weft_sim_nest_t* nest) {
  uintptr_t bits = 0;
  int32_t floats = nest->op == WEFT_OP_SELECT ? 3 : nest->operands;
  for (int32_t o = 0; o < floats; ++o) {
    bits |= (uintptr_t)nest->pointer[o];
    for (int32_t l = 0; l < nest->loop_count; ++l) bits |= (uintptr_t)nest->stride[o][l];
  }
  return bits % sizeof(float) == 0;
}

weft_sim_row_fn weft_sim_row_f32(const weft_sim_nest_t* nest) {
  if (nest->dtype != WEFT_DTYPE_F32 || nest->destination_dtype != WEFT_DTYPE_F32 || !is_aligned(nest)) return NULL;
  switch (nest->op) {
  case WEFT_OP_ADD:
    return row_add;
  case WEFT_OP_SUB:
    return row_sub;
  case WEFT_OP_MUL:
    return row_mul;
  case WEFT_OP_MAX:
    return row_max;
  case WEFT_OP_MIN:
    return row_min;
  case WEFT_OP_MLA:
    return nest->hazard || nest->in_place ? NULL : row_mla;
  case WEFT_OP_MOV:
    return row_mov;
  case WEFT_OP_SELECT:
    return row_select;
  default:
    return NULL;
  }
}
