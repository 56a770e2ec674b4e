// Rows of any operation and type. Elements are widened into one of four domains, computed there and rounded once on the
// way out: floats of up to 32 bits in f32, f64 in itself, integers in 64 bits, where arithmetic wraps as in the narrow
// type.
#include <math.h>
#include <string.h>

#include "runtime-sim/half.h"
#include "runtime-sim/nest.h"

enum { STRIP = 64 };

typedef enum domain_e { DOMAIN_F32, DOMAIN_F64, DOMAIN_SIGNED, DOMAIN_UNSIGNED } domain_e;
typedef union strip_t {
  float f[STRIP];
  double d[STRIP];
  int64_t s[STRIP];
  uint64_t u[STRIP];
} strip_t;

static domain_e domain_of(weft_dtype_e dtype) {
  if (dtype == WEFT_DTYPE_F64) return DOMAIN_F64;
  if (weft_dtype_is_float(dtype)) return DOMAIN_F32;
  return weft_dtype_is_signed(dtype) ? DOMAIN_SIGNED : DOMAIN_UNSIGNED;
}

#define EACH(...)                                                                                                      \
  do {                                                                                                                 \
    const uint8_t* p = source;                                                                                         \
    for (int32_t i = 0; i < count; ++i, p += stride) {                                                                 \
      __VA_ARGS__;                                                                                                     \
    }                                                                                                                  \
    return;                                                                                                            \
  } while (0)

static int64_t load_integer(weft_dtype_e dtype, const uint8_t* p) {
#define RAW(T)                                                                                                         \
  {                                                                                                                    \
    T raw;                                                                                                             \
    memcpy(&raw, p, sizeof(raw));                                                                                      \
    return (int64_t)raw;                                                                                               \
  }
  switch (dtype) {
  case WEFT_DTYPE_I8:
    RAW(int8_t)
  case WEFT_DTYPE_I16:
    RAW(int16_t)
  case WEFT_DTYPE_I32:
    RAW(int32_t)
  case WEFT_DTYPE_I64:
    RAW(int64_t)
  case WEFT_DTYPE_U8:
    RAW(uint8_t)
  case WEFT_DTYPE_U16:
    RAW(uint16_t)
  case WEFT_DTYPE_U32:
    RAW(uint32_t)
  case WEFT_DTYPE_U64:
    RAW(uint64_t)
  default:
    return *p != 0;
  }
#undef RAW
}

static void load(domain_e domain, weft_dtype_e dtype, const uint8_t* source, int64_t stride, int32_t count,
                 strip_t* out) {
  if (domain == DOMAIN_F64) EACH(out->d[i] = weft_dtype_load(dtype, p));
  if (domain != DOMAIN_F32) {
    int32_t word;
    switch (dtype) {
    case WEFT_DTYPE_I64:
      EACH(memcpy(&out->s[i], p, sizeof(int64_t)));
    case WEFT_DTYPE_I32:
      EACH(memcpy(&word, p, sizeof(word)), out->s[i] = word);
    case WEFT_DTYPE_I8:
      EACH(out->s[i] = (int8_t)*p);
    case WEFT_DTYPE_U8:
      EACH(out->s[i] = *p);
    case WEFT_DTYPE_BOOL:
      EACH(out->s[i] = *p != 0);
    default:
      EACH(out->s[i] = load_integer(dtype, p));
    }
  }
  if (weft_sim_is_half(dtype) && stride == (int64_t)weft_dtype_size(dtype)) {
    weft_sim_half_widen(dtype, source, count, out->f);
    return;
  }
  uint16_t bits;
  switch (dtype) {
  case WEFT_DTYPE_F32:
    EACH(memcpy(&out->f[i], p, sizeof(float)));
  case WEFT_DTYPE_F16:
    EACH(memcpy(&bits, p, sizeof(bits)), out->f[i] = weft_f16_to_f32(bits));
  case WEFT_DTYPE_BF16:
    EACH(memcpy(&bits, p, sizeof(bits)), out->f[i] = weft_bf16_to_f32(bits));
  default:
    EACH(out->f[i] = (float)weft_dtype_load(dtype, p));
  }
}
#undef EACH

static void store_integer(weft_dtype_e dtype, uint64_t value, uint8_t* p) {
  if (dtype == WEFT_DTYPE_BOOL) value = value != 0;
  memcpy(p, &value, weft_dtype_size(dtype)); // little-endian: the low bytes, so that it wraps
}

static void store(domain_e domain, weft_dtype_e dtype, const strip_t* in, int32_t count, uint8_t* p, int64_t stride) {
  bool to_integer = !weft_dtype_is_float(dtype);
  if (dtype == WEFT_DTYPE_BOOL && domain >= DOMAIN_SIGNED) {
    for (int32_t i = 0; i < count; ++i, p += stride) *p = in->u[i] != 0;
    return;
  }
  if (domain == DOMAIN_F32 && weft_sim_is_half(dtype) && stride == (int64_t)weft_dtype_size(dtype)) {
    weft_sim_half_narrow(dtype, in->f, count, p);
    return;
  }
  for (int32_t i = 0; i < count; ++i, p += stride) {
    switch (domain) {
    case DOMAIN_F32:
      if (dtype == WEFT_DTYPE_F32) {
        memcpy(p, &in->f[i], sizeof(float));
      } else if (dtype == WEFT_DTYPE_F16) {
        uint16_t bits = weft_f32_to_f16(in->f[i]);
        memcpy(p, &bits, sizeof(bits));
      } else {
        weft_dtype_store(dtype, (double)in->f[i], p);
      }
      break;
    case DOMAIN_F64:
      weft_dtype_store(dtype, in->d[i], p);
      break;
    case DOMAIN_SIGNED:
    case DOMAIN_UNSIGNED: {
      bool is_signed = domain == DOMAIN_SIGNED;
      if (to_integer) {
        store_integer(dtype, in->u[i], p);
      } else if (dtype == WEFT_DTYPE_F32) { // through f64 it would round twice
        float value = is_signed ? (float)in->s[i] : (float)in->u[i];
        memcpy(p, &value, sizeof(value));
      } else {
        weft_dtype_store(dtype, is_signed ? (double)in->s[i] : (double)in->u[i], p);
      }
      break;
    }
    }
  }
}

static int64_t power_i64(int64_t base, int64_t exponent, bool is_signed) {
  if (is_signed && exponent < 0) // a fraction, truncated
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (uint64_t left = (uint64_t)exponent; left; left >>= 1, square *= square)
    if (left & 1) result *= square;
  return (int64_t)result;
}

static double reciprocal_root(double a) {
  return 1 / sqrt(a);
}

// Functions of one argument that are computed in f64 and rounded, whatever the type: a processor's own f32 functions
// differ.
static double special(weft_op_e op, double a) {
  switch (op) {
  case WEFT_OP_SQRT:
    return sqrt(a);
  case WEFT_OP_RSQRT:
    return reciprocal_root(a);
  case WEFT_OP_EXP:
    return exp(a);
  case WEFT_OP_LOG:
    return log(a);
  case WEFT_OP_LOG1P:
    return log1p(a);
  case WEFT_OP_EXPM1:
    return expm1(a);
  case WEFT_OP_TANH:
    return tanh(a);
  case WEFT_OP_ERF:
    return erf(a);
  case WEFT_OP_SIN:
    return sin(a);
  case WEFT_OP_COS:
    return cos(a);
  case WEFT_OP_TAN:
    return tan(a);
  case WEFT_OP_ASIN:
    return asin(a);
  case WEFT_OP_ACOS:
    return acos(a);
  case WEFT_OP_ATAN:
    return atan(a);
  case WEFT_OP_SINH:
    return sinh(a);
  case WEFT_OP_COSH:
    return cosh(a);
  case WEFT_OP_ASINH:
    return asinh(a);
  case WEFT_OP_ACOSH:
    return acosh(a);
  case WEFT_OP_ATANH:
    return atanh(a);
  default:
    return NAN;
  }
}

#define CASE(name, expression)                                                                                         \
  case WEFT_OP_##name:                                                                                                 \
    for (int32_t i = 0; i < count; ++i) r[i] = (expression);                                                           \
    break;
#define COMPARISONS                                                                                                    \
  CASE(EQ, a[i] == b[i])                                                                                               \
  CASE(NE, a[i] != b[i]) CASE(LT, a[i] < b[i]) CASE(LE, a[i] <= b[i]) CASE(GT, a[i] > b[i]) CASE(GE, a[i] >= b[i])

// r holds dst before (for MLA) and after.
#define FLOAT_DOMAIN(T, fn)                                                                                            \
  static void fn(weft_op_e op, int32_t count, const T* a, const T* b, const uint64_t* c, T* r) {                       \
    switch (op) {                                                                                                      \
      CASE(MOV, a[i])                                                                                                  \
      CASE(ADD, a[i] + b[i])                                                                                           \
      CASE(SUB, a[i] - b[i])                                                                                           \
      CASE(MUL, a[i] * b[i])                                                                                           \
      CASE(DIV, a[i] / b[i])                                                                                           \
      CASE(REM, (T)fmod((double)a[i], (double)b[i]))                                                                   \
      CASE(MAX, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])                                                             \
      CASE(MIN, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])                                                             \
      CASE(POW, (T)pow((double)a[i], (double)b[i]))                                                                    \
      CASE(ATAN2, (T)atan2((double)a[i], (double)b[i]))                                                                \
      CASE(MLA, r[i] + a[i] * b[i])                                                                                    \
      CASE(NEG, -a[i])                                                                                                 \
      CASE(ABS, (T)fabs((double)a[i]))                                                                                 \
      CASE(FLOOR, (T)floor((double)a[i]))                                                                              \
      CASE(CEIL, (T)ceil((double)a[i]))                                                                                \
      CASE(TRUNC, (T)trunc((double)a[i]))                                                                              \
      CASE(ROUND, (T)round((double)a[i]))                                                                              \
      CASE(RINT, (T)rint((double)a[i]))                                                                                \
      CASE(SELECT, c[i] ? a[i] : b[i])                                                                                 \
      COMPARISONS                                                                                                      \
    default:                                                                                                           \
      for (int32_t i = 0; i < count; ++i) r[i] = (T)special(op, (double)a[i]);                                         \
    }                                                                                                                  \
  }
FLOAT_DOMAIN(float, compute_f32)
FLOAT_DOMAIN(double, compute_f64)

static int64_t integer_special(weft_op_e op, double a, double b) {
  int64_t result;
  weft_dtype_store(WEFT_DTYPE_I64, op == WEFT_OP_ATAN2 ? atan2(a, b) : special(op, a), &result);
  return result;
}

static int64_t divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static int64_t remainder_of(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

// What is the same for both, because it wraps or looks at bits only.
#define INTEGER_CASES                                                                                                  \
  CASE(MOV, a[i])                                                                                                      \
  CASE(FLOOR, a[i])                                                                                                    \
  CASE(CEIL, a[i])                                                                                                     \
  CASE(TRUNC, a[i])                                                                                                    \
  CASE(ROUND, a[i])                                                                                                    \
  CASE(RINT, a[i])                                                                                                     \
  CASE(AND, a[i] & b[i])                                                                                               \
  CASE(OR, a[i] | b[i])                                                                                                \
  CASE(XOR, a[i] ^ b[i])                                                                                               \
  CASE(MAX, a[i] > b[i] ? a[i] : b[i])                                                                                 \
  CASE(MIN, a[i] < b[i] ? a[i] : b[i])                                                                                 \
  CASE(SELECT, c[i] ? a[i] : b[i])                                                                                     \
  COMPARISONS
#define WRAP(x) ((uint64_t)(x))

static void compute_signed(weft_op_e op, int32_t bits, int32_t count, const int64_t* a, const int64_t* b,
                           const uint64_t* c, int64_t* r) {
  switch (op) {
    INTEGER_CASES
    CASE(ADD, (int64_t)(WRAP(a[i]) + WRAP(b[i])))
    CASE(SUB, (int64_t)(WRAP(a[i]) - WRAP(b[i])))
    CASE(MUL, (int64_t)(WRAP(a[i]) * WRAP(b[i])))
    CASE(MLA, (int64_t)(WRAP(r[i]) + WRAP(a[i]) * WRAP(b[i])))
    CASE(DIV, divide(a[i], b[i]))
    CASE(REM, remainder_of(a[i], b[i]))
    CASE(POW, power_i64(a[i], b[i], true))
    CASE(NEG, (int64_t)(0 - WRAP(a[i])))
    CASE(ABS, a[i] < 0 ? (int64_t)(0 - WRAP(a[i])) : a[i])
    CASE(SHL, WRAP(b[i]) < (uint64_t)bits ? (int64_t)(WRAP(a[i]) << b[i]) : 0)
    CASE(SHR, a[i] >> (WRAP(b[i]) < (uint64_t)bits ? b[i] : 63))
  default:
    for (int32_t i = 0; i < count; ++i) r[i] = integer_special(op, (double)a[i], b ? (double)b[i] : 0);
  }
}

static void compute_unsigned(weft_op_e op, int32_t bits, int32_t count, const uint64_t* a, const uint64_t* b,
                             const uint64_t* c, uint64_t* r) {
  switch (op) {
    INTEGER_CASES
    CASE(ADD, a[i] + b[i])
    CASE(SUB, a[i] - b[i])
    CASE(MUL, a[i] * b[i])
    CASE(MLA, r[i] + a[i] * b[i])
    CASE(DIV, b[i] ? a[i] / b[i] : 0)
    CASE(REM, b[i] ? a[i] % b[i] : 0)
    CASE(POW, WRAP(power_i64((int64_t)a[i], (int64_t)b[i], false)))
    CASE(NEG, 0 - a[i])
    CASE(ABS, a[i])
    CASE(SHL, b[i] < (uint64_t)bits ? a[i] << b[i] : 0)
    CASE(SHR, b[i] < (uint64_t)bits ? a[i] >> b[i] : 0)
  default:
    for (int32_t i = 0; i < count; ++i) r[i] = WRAP(integer_special(op, (double)a[i], b ? (double)b[i] : 0));
  }
}

static domain_e computing_domain(const weft_sim_nest_t* nest) {
  bool accumulates_wider = nest->op == WEFT_OP_MLA && nest->destination_dtype == WEFT_DTYPE_F64;
  return accumulates_wider ? DOMAIN_F64 : domain_of(nest->dtype);
}

// How many points may be read before the first of them is written.
static int32_t points_at_once(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  if (nest->hazard) return 1;
  bool reads_destination = nest->in_place || nest->op == WEFT_OP_MLA;
  int64_t step = row->stride[0] < 0 ? -row->stride[0] : row->stride[0];
  return reads_destination && step < (int64_t)weft_dtype_size(nest->destination_dtype) ? 1 : STRIP;
}

// Integer results into the range of the type they are computed in, before they are converted to another.
static void wrap(weft_dtype_e dtype, strip_t* strip, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    uint8_t element[sizeof(uint64_t)];
    store_integer(dtype, strip->u[i], element);
    strip->s[i] = load_integer(dtype, element);
  }
}

static void copy_row(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  size_t size = weft_dtype_size(nest->dtype);
  uint8_t* target = row->pointer[0];
  const uint8_t* source = row->pointer[1];
  for (int64_t i = 0; i < row->count; ++i, target += row->stride[0], source += row->stride[1])
    memmove(target, source, size);
}

void weft_sim_row_generic(const weft_sim_nest_t* nest, const weft_sim_row_t* row) {
  weft_op_e op = nest->op;
  if (op == WEFT_OP_MOV && nest->dtype == nest->destination_dtype && nest->dtype != WEFT_DTYPE_BOOL) {
    copy_row(nest, row); // every bit, also of a NaN
    return;
  }
  domain_e domain = computing_domain(nest);
  int32_t strip = points_at_once(nest, row), bits = (int32_t)weft_dtype_size(nest->dtype) * 8;
  bool binary = nest->operands > 2;
  bool narrows = domain >= DOMAIN_SIGNED && nest->dtype != nest->destination_dtype && op != WEFT_OP_MLA;
  strip_t a, b, c, r;
  for (int64_t done = 0; done < row->count; done += strip) {
    int32_t count = (int32_t)(row->count - done < strip ? row->count - done : strip);
    const uint64_t* condition = NULL;
    load(domain, nest->dtype, row->pointer[1] + done * row->stride[1], row->stride[1], count, &a);
    if (binary) load(domain, nest->dtype, row->pointer[2] + done * row->stride[2], row->stride[2], count, &b);
    if (op == WEFT_OP_SELECT) {
      load(DOMAIN_UNSIGNED, WEFT_DTYPE_BOOL, row->pointer[3] + done * row->stride[3], row->stride[3], count, &c);
      condition = c.u;
    }
    uint8_t* target = row->pointer[0] + done * row->stride[0];
    if (op == WEFT_OP_MLA) load(domain, nest->destination_dtype, target, row->stride[0], count, &r);
    switch (domain) {
    case DOMAIN_F32:
      compute_f32(op, count, a.f, b.f, condition, r.f);
      break;
    case DOMAIN_F64:
      compute_f64(op, count, a.d, b.d, condition, r.d);
      break;
    case DOMAIN_SIGNED:
      compute_signed(op, bits, count, a.s, binary ? b.s : NULL, condition, r.s);
      break;
    case DOMAIN_UNSIGNED:
      compute_unsigned(op, bits, count, a.u, binary ? b.u : NULL, condition, r.u);
      break;
    }
    if (narrows) wrap(nest->dtype, &r, count);
    store(domain, nest->destination_dtype, &r, count, target, row->stride[0]);
  }
}
