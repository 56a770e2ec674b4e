#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/rng.h"

// A narrow float format by its definition: value = (-1)^s * 2^(e - bias) * 1.m, or 2^(1 - bias) * 0.m for e = 0.
typedef struct format_t {
  weft_dtype_e dtype;
  int exponent_bits, mantissa_bits;
  uint32_t largest_finite; // code; the ones above are infinity (when has_infinity) and NaN
  bool has_infinity;
} format_t;

static const format_t formats[] = {
    {WEFT_DTYPE_F16, 5, 10, 0x7BFF, true},
    {WEFT_DTYPE_BF16, 8, 7, 0x7F7F, true},
    {WEFT_DTYPE_F8E4M3FN, 4, 3, 0x7E, false},
    {WEFT_DTYPE_F8E5M2, 5, 2, 0x7B, true},
};
enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

static uint32_t sign_bit(const format_t* format) {
  return 1u << (format->exponent_bits + format->mantissa_bits);
}

// The value of a magnitude's code, also for the code after the largest finite one, as if the format went on: rounding
// overflows half-way to it.
static double reference_value(const format_t* format, uint32_t code) {
  int bias = (1 << (format->exponent_bits - 1)) - 1;
  int exponent = (int)(code >> format->mantissa_bits);
  int mantissa = (int)(code & ((1u << format->mantissa_bits) - 1));
  if (exponent == 0) return ldexp(mantissa, 1 - bias - format->mantissa_bits);
  return ldexp((1 << format->mantissa_bits) + mantissa, exponent - bias - format->mantissa_bits);
}

static uint32_t store_code(const format_t* format, double value) {
  uint8_t bytes[8] = {0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE};
  weft_dtype_store(format->dtype, value, bytes);
  size_t size = weft_dtype_size(format->dtype);
  assert_int_equal(bytes[size], 0xEE);
  uint16_t code = bytes[0];
  if (size == 2) memcpy(&code, bytes, 2);
  return code;
}

static double load_code(const format_t* format, uint32_t code) {
  uint8_t narrow = (uint8_t)code;
  uint16_t wide = (uint16_t)code;
  return weft_dtype_load(format->dtype, weft_dtype_size(format->dtype) == 1 ? (void*)&narrow : (void*)&wide);
}

static void assert_same(double actual, double expected) {
  if (actual != expected || signbit(actual) != signbit(expected)) fail_msg("%a instead of %a", actual, expected);
}

static void test_load_every_code(void** state) {
  (void)state;
  for (int f = 0; f < FORMAT_COUNT; ++f) {
    const format_t* format = &formats[f];
    for (uint32_t code = 0; code < sign_bit(format); ++code) {
      double positive = load_code(format, code), negative = load_code(format, code | sign_bit(format));
      if (code <= format->largest_finite) {
        assert_same(positive, reference_value(format, code));
        assert_same(negative, -reference_value(format, code));
      } else if (format->has_infinity && code == format->largest_finite + 1) {
        assert_same(positive, INFINITY);
        assert_same(negative, -INFINITY);
      } else {
        assert_true(isnan(positive) && isnan(negative));
      }
    }
  }
  assert_same(load_code(&formats[0], 0x7BFF), 65504);
  assert_same(load_code(&formats[2], 0x7E), 448);
  assert_same(load_code(&formats[3], 0x7B), 57344);
}

// Checks both signs; also the direct f32 conversions when the value is an f32.
static void assert_stored(const format_t* format, double value, uint32_t expected) {
  for (int negative = 0; negative < 2; ++negative) {
    double signed_value = negative ? -value : value;
    uint32_t signed_expected = negative ? expected | sign_bit(format) : expected;
    uint32_t code = store_code(format, signed_value);
    if (code != signed_expected)
      fail_msg("%s: %a gives %#x instead of %#x", weft_dtype_name(format->dtype), signed_value, code, signed_expected);
    if ((double)(float)value != value) continue;
    if (format->dtype == WEFT_DTYPE_F16) assert_int_equal(weft_f32_to_f16((float)signed_value), signed_expected);
    if (format->dtype == WEFT_DTYPE_BF16) assert_int_equal(weft_f32_to_bf16((float)signed_value), signed_expected);
  }
}

static void test_round_at_every_boundary(void** state) {
  (void)state;
  for (int f = 0; f < FORMAT_COUNT; ++f) {
    const format_t* format = &formats[f];
    for (uint32_t code = 0; code <= format->largest_finite; ++code) {
      double low = reference_value(format, code), high = reference_value(format, code + 1);
      double middle = low + (high - low) / 2; // exact in double
      uint32_t above = code + 1;
      if (code == format->largest_finite && !format->has_infinity) above = code; // saturates
      assert_stored(format, low, code);
      assert_stored(format, middle, code % 2 == 0 ? code : above);
      // The nearest neighbours in double and in f32: rounding twice would get the first ones wrong.
      assert_stored(format, nextafter(middle, 0), code);
      assert_stored(format, nextafter(middle, INFINITY), above);
      assert_stored(format, nextafterf((float)middle, 0), code);
      assert_stored(format, nextafterf((float)middle, INFINITY), above);
      assert_stored(format, low + (high - low) * 0.25, code);
      assert_stored(format, low + (high - low) * 0.75, above);
    }
  }
}

static void test_round_random_values(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  for (int f = 0; f < FORMAT_COUNT; ++f) {
    const format_t* format = &formats[f];
    double top = reference_value(format, format->largest_finite);
    for (int i = 0; i < 200000; ++i) {
      double value = ldexp(1 + weft_rng_unit(&rng), (int)weft_rng_below(&rng, 300) - 150);
      if (value > top) continue;
      // Binary search for the codes around the value.
      uint32_t low = 0, high = format->largest_finite;
      while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(reference_value(format, middle) <= value ? &low : &high) = middle;
      }
      double below = value - reference_value(format, low), above = reference_value(format, high) - value;
      bool up = above < below || (above == below && high % 2 == 0);
      assert_stored(format, value, up ? high : low);
    }
  }
}

static void test_zero_infinity_nan(void** state) {
  (void)state;
  const uint32_t infinity[] = {0x7C00, 0x7F80, 0x7E /* saturates */, 0x7C};
  const uint32_t quiet_nan[] = {0x7E00, 0x7FC0, 0x7F, 0x7E};
  const double far[] = {INFINITY, 1e300, DBL_MAX, 0x1p200};
  for (int f = 0; f < FORMAT_COUNT; ++f) {
    const format_t* format = &formats[f];
    assert_stored(format, 0.0, 0);
    assert_stored(format, 0x1p-1074, 0); // the smallest double
    assert_stored(format, 0x1p-1022, 0);
    assert_stored(format, 0x1p-200, 0);
    for (int i = 0; i < 4; ++i) assert_stored(format, far[i], infinity[f]);
    assert_int_equal(store_code(format, NAN), quiet_nan[f]);
    assert_int_equal(store_code(format, -NAN), quiet_nan[f]);
  }
  assert_stored(&formats[0], 65519, 0x7BFF);
  assert_stored(&formats[0], 65520, 0x7C00);
  assert_stored(&formats[2], 464, 0x7E);
  assert_stored(&formats[2], 465, 0x7E);
  assert_stored(&formats[3], 61439, 0x7B);
  assert_stored(&formats[3], 61440, 0x7C);
}

static void test_f32_nan_of_any_payload(void** state) {
  (void)state;
  for (uint32_t payload = 1; payload < 0x800000; payload += payload < 0x4000 ? 1 : 997) {
    for (uint32_t sign = 0; sign < 2; ++sign) {
      uint32_t bits = sign << 31 | 0x7F800000 | payload;
      float value;
      memcpy(&value, &bits, sizeof(value));
      assert_int_equal(weft_f32_to_f16(value), 0x7E00);
      assert_int_equal(weft_f32_to_bf16(value), 0x7FC0);
    }
  }
}

static void test_f32_agrees_with_double_path(void** state) {
  (void)state;
  // An odd stride through all of f32: every exponent and many mantissas.
  for (uint64_t wide = 0; wide < UINT64_C(1) << 32; wide += 4099) {
    uint32_t bits = (uint32_t)wide;
    float value;
    memcpy(&value, &bits, sizeof(value));
    assert_int_equal(weft_f32_to_f16(value), store_code(&formats[0], value));
    assert_int_equal(weft_f32_to_bf16(value), store_code(&formats[1], value));
  }
}

static void test_f32_f64(void** state) {
  (void)state;
  const double values[] = {0.0, -0.0, 1.5, -0x1p-149, 0x1.fffffep127, INFINITY, -INFINITY, 1e-310, 0.1};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    double wide = 0;
    weft_dtype_store(WEFT_DTYPE_F64, values[i], &wide);
    assert_same(wide, values[i]);
    assert_same(weft_dtype_load(WEFT_DTYPE_F64, &wide), values[i]);
    float narrow = 0;
    weft_dtype_store(WEFT_DTYPE_F32, values[i], &narrow);
    assert_same(narrow, (float)values[i]);
    assert_same(weft_dtype_load(WEFT_DTYPE_F32, &narrow), (float)values[i]);
  }
  float narrow = 0;
  weft_dtype_store(WEFT_DTYPE_F32, 1e39, &narrow);
  assert_same(narrow, INFINITY);
  weft_dtype_store(WEFT_DTYPE_F32, NAN, &narrow);
  assert_true(isnan(narrow));
}

typedef struct integer_t {
  weft_dtype_e dtype;
  double smallest, end; // values are in [smallest, end)
} integer_t;

static void test_integers_saturate_and_truncate(void** state) {
  (void)state;
  const integer_t types[] = {
      {WEFT_DTYPE_I8, -0x1p7, 0x1p7},    {WEFT_DTYPE_I16, -0x1p15, 0x1p15}, {WEFT_DTYPE_I32, -0x1p31, 0x1p31},
      {WEFT_DTYPE_I64, -0x1p63, 0x1p63}, {WEFT_DTYPE_U8, 0, 0x1p8},         {WEFT_DTYPE_U16, 0, 0x1p16},
      {WEFT_DTYPE_U32, 0, 0x1p32},       {WEFT_DTYPE_U64, 0, 0x1p64},
  };
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    const integer_t* type = &types[i];
    double largest = type->end > 0x1p53 ? type->end : type->end - 1; // a load of the largest 64-bit integer rounds up
    const double cases[][2] = {
        {0, 0},
        {-0.0, 0},
        {0.99, 0},
        {-0.99, 0},
        {1.99, 1},
        {-1.99, type->smallest < 0 ? -1 : 0},
        {100.5, 100},
        {-100.5, type->smallest < 0 ? -100 : 0},
        {type->end - 1, largest},
        {type->end - 0.5, largest},
        {type->end, largest},
        {type->end * 2, largest},
        {1e300, largest},
        {INFINITY, largest},
        {type->smallest, type->smallest},
        {type->smallest - 0.5, type->smallest},
        {type->smallest - 1, type->smallest},
        {type->smallest * 2 - 3, type->smallest},
        {-1e300, type->smallest},
        {-INFINITY, type->smallest},
        {NAN, 0},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
      uint8_t bytes[16];
      memset(bytes, 0xEE, sizeof(bytes));
      weft_dtype_store(type->dtype, cases[c][0], bytes + 1); // unaligned on purpose
      assert_int_equal(bytes[0], 0xEE);
      assert_int_equal(bytes[1 + weft_dtype_size(type->dtype)], 0xEE);
      double loaded = weft_dtype_load(type->dtype, bytes + 1);
      if (loaded != cases[c][1])
        fail_msg("%s: %g gives %g instead of %g", weft_dtype_name(type->dtype), cases[c][0], loaded, cases[c][1]);
    }
  }
  int64_t signed_value = 0;
  uint64_t unsigned_value = 0;
  weft_dtype_store(WEFT_DTYPE_I64, 1e30, &signed_value);
  assert_true(signed_value == INT64_MAX);
  weft_dtype_store(WEFT_DTYPE_I64, -1e30, &signed_value);
  assert_true(signed_value == INT64_MIN);
  weft_dtype_store(WEFT_DTYPE_U64, 1e30, &unsigned_value);
  assert_true(unsigned_value == UINT64_MAX);
  weft_dtype_store(WEFT_DTYPE_U64, 0x1.8p63, &unsigned_value);
  assert_true(unsigned_value == UINT64_C(3) << 62);
}

static void test_bool(void** state) {
  (void)state;
  const double truths[] = {1, -1, 0.5, 1e-300, INFINITY, 256, NAN};
  uint8_t byte;
  for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); ++i) {
    byte = 0xEE;
    weft_dtype_store(WEFT_DTYPE_BOOL, truths[i], &byte);
    assert_int_equal(byte, 1);
  }
  weft_dtype_store(WEFT_DTYPE_BOOL, -0.0, &byte);
  assert_int_equal(byte, 0);
  for (int i = 0; i < 256; ++i) {
    byte = (uint8_t)i;
    assert_same(weft_dtype_load(WEFT_DTYPE_BOOL, &byte), i != 0);
  }
}

static void test_names_and_properties(void** state) {
  (void)state;
  for (int i = 0; i < WEFT_DTYPE_COUNT; ++i) {
    weft_dtype_e parsed = WEFT_DTYPE_COUNT;
    assert_true(weft_dtype_parse(weft_dtype_name((weft_dtype_e)i), &parsed));
    assert_int_equal(parsed, i);
  }
  weft_dtype_e dtype = WEFT_DTYPE_I8;
  assert_false(weft_dtype_parse("f8", &dtype));
  assert_false(weft_dtype_parse("", &dtype));
  assert_false(weft_dtype_parse("F32", &dtype));
  assert_int_equal(dtype, WEFT_DTYPE_I8);
  assert_string_equal(weft_dtype_name(WEFT_DTYPE_F8E4M3FN), "f8E4M3FN");
  assert_int_equal(weft_dtype_size(WEFT_DTYPE_F8E5M2), 1);
  assert_int_equal(weft_dtype_size(WEFT_DTYPE_BF16), 2);
  assert_int_equal(weft_dtype_size(WEFT_DTYPE_U32), 4);
  assert_int_equal(weft_dtype_size(WEFT_DTYPE_F64), 8);
  assert_int_equal(weft_dtype_size(WEFT_DTYPE_BOOL), 1);
  assert_true(weft_dtype_is_float(WEFT_DTYPE_F8E4M3FN) && weft_dtype_is_signed(WEFT_DTYPE_F8E4M3FN));
  assert_true(!weft_dtype_is_float(WEFT_DTYPE_I16) && weft_dtype_is_signed(WEFT_DTYPE_I16));
  assert_true(!weft_dtype_is_float(WEFT_DTYPE_U16) && !weft_dtype_is_signed(WEFT_DTYPE_U16));
  assert_true(!weft_dtype_is_float(WEFT_DTYPE_BOOL) && !weft_dtype_is_signed(WEFT_DTYPE_BOOL));
  assert_true(weft_dtype_same_bits(WEFT_DTYPE_U8, WEFT_DTYPE_I8) &&
              weft_dtype_same_bits(WEFT_DTYPE_F16, WEFT_DTYPE_F16));
  assert_true(!weft_dtype_same_bits(WEFT_DTYPE_U8, WEFT_DTYPE_BOOL) &&
              !weft_dtype_same_bits(WEFT_DTYPE_I8, WEFT_DTYPE_I16));
  assert_true(!weft_dtype_same_bits(WEFT_DTYPE_I32, WEFT_DTYPE_F32) &&
              !weft_dtype_same_bits(WEFT_DTYPE_F16, WEFT_DTYPE_BF16));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_load_every_code),
      cmocka_unit_test(test_round_at_every_boundary),
      cmocka_unit_test(test_round_random_values),
      cmocka_unit_test(test_zero_infinity_nan),
      cmocka_unit_test(test_f32_nan_of_any_payload),
      cmocka_unit_test(test_f32_agrees_with_double_path),
      cmocka_unit_test(test_f32_f64),
      cmocka_unit_test(test_integers_saturate_and_truncate),
      cmocka_unit_test(test_bool),
      cmocka_unit_test(test_names_and_properties),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
