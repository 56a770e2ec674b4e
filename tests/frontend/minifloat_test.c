// Floats of few bits: a cast gives the nearest number that there is.
#include "text_model.h"
// text_model.h needs its own order
#include <math.h>

#include "frontend/minifloat.h"

enum { COUNT = 600 };
static const struct {
  int data_type;
  weft_onnx_minifloat_e format;
  int32_t codes;
} formats[] = {{18, WEFT_ONNX_F8E4M3FNUZ, 256}, {20, WEFT_ONNX_F8E5M2FNUZ, 256}, {23, WEFT_ONNX_F4E2M1, 16}};

// Of the two nearest the one with an even code.
static double nearest(weft_onnx_minifloat_e format, int32_t codes, double x) {
  double best = 0, distance = (double)INFINITY;
  int32_t best_code = 0;
  for (int32_t code = 0; code < codes; ++code) {
    double value = weft_onnx_minifloat_decode(format, (uint8_t)code), d = fabs(value - x);
    if (isnan(value) || d > distance || (d == distance && (code & 1) >= (best_code & 1))) continue;
    best = value;
    best_code = code;
    distance = d;
  }
  return best;
}

static void cast(text_model_t* t, int data_type, bool saturates, const float* x) {
  char nodes[128];
  snprintf(nodes, sizeof(nodes), "c = Cast(x) to:i=%d saturate:i=%d ; y = Cast(c) to:i=1", data_type, saturates);
  text_begin(t, 19);
  text_main(t, "x:f32[600]", nodes, "y:f32");
  text_run(t, (const void*[]){x});
}

static void test_casts_round_to_nearest(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 61);
  for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); ++f) {
    float x[COUNT];
    for (int i = 0; i < COUNT; ++i) { // all numbers of the format, halves between them, others of all sizes
      double value = weft_onnx_minifloat_decode(formats[f].format, (uint8_t)(i % formats[f].codes));
      double next = weft_onnx_minifloat_decode(formats[f].format, (uint8_t)((i + 1) % formats[f].codes));
      double other = ldexp(weft_rng_unit(&rng) * 4 - 2, (int)weft_rng_below(&rng, 24) - 18);
      x[i] = (float)(i < formats[f].codes ? value : i < 2 * formats[f].codes ? (value + next) / 2 : other);
      if (isnan(x[i])) x[i] = 0;
    }
    x[COUNT - 1] = INFINITY;
    x[COUNT - 2] = -1e30F;
    text_model_t t;
    cast(&t, formats[f].data_type, true, x);
    for (size_t i = 0; i < COUNT; ++i) {
      double limit = weft_onnx_minifloat_highest(formats[f].format);
      double inside = fmin(fmax((double)x[i], -limit), limit);
      double expected = nearest(formats[f].format, formats[f].codes, inside);
      if (text_at(&t, 0, i) != expected)
        fail_msg("type %d: %g becomes %g, expected %g", formats[f].data_type, (double)x[i], text_at(&t, 0, i),
                 expected);
    }
    text_end(&t);
  }
}

static void test_what_is_too_large(void** state) {
  (void)state;
  float x[COUNT] = {240, 247, 249, 1e30F, -1e30F, INFINITY, NAN, -249};
  text_model_t t;
  cast(&t, 18, false, x);
  assert_true(text_at(&t, 0, 0) == 240 && text_at(&t, 0, 1) == 240);
  for (size_t i = 2; i < 8; ++i) assert_true(isnan(text_at(&t, 0, i)));
  text_end(&t);
  cast(&t, 18, true, x);
  assert_true(text_at(&t, 0, 3) == 240 && text_at(&t, 0, 4) == -240 && isnan(text_at(&t, 0, 6)));
  text_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_casts_round_to_nearest),
                                     cmocka_unit_test(test_what_is_too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
