// Results whose length depends on elements of run time: as long as the model or --dim says.
#include "text_model.h"

static int64_t random_below(weft_rng_t* rng, int64_t range) {
  return (int64_t)weft_rng_below(rng, (uint64_t)range);
}

typedef struct slices_t {
  const float* data;
  int64_t outer, count, inner;
} slices_t;

static int compare(const slices_t* s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s->outer; ++o)
    for (int64_t i = 0; i < s->inner; ++i) {
      float x = s->data[(o * s->count + a) * s->inner + i], y = s->data[(o * s->count + b) * s->inner + i];
      if (x != y) return x < y ? -1 : 1;
    }
  return 0;
}

// The first slice of each kind, in order. Returns how many there are.
static int64_t find_firsts(const slices_t* s, bool sorted, int64_t* first) {
  int64_t count = 0;
  for (int64_t i = 0; i < s->count; ++i) {
    bool is_new = true;
    for (int64_t j = 0; j < i; ++j) is_new &= compare(s, i, j) != 0;
    if (!is_new) continue;
    int64_t at = count++;
    for (; sorted && at > 0 && compare(s, i, first[at - 1]) < 0; --at) first[at] = first[at - 1];
    first[at] = i;
  }
  return count;
}

static void test_unique(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 51);
  for (int round = 0; round < 24; ++round) {
    int64_t a = 1 + random_below(&rng, 6), b = 1 + random_below(&rng, 6), first[36];
    int axis = round % 3 - 1; // -1: the elements
    bool sorted = round / 3 % 2;
    float data[36];
    for (int64_t i = 0; i < a * b; ++i) data[i] = (float)random_below(&rng, axis < 0 ? 8 : 2);
    slices_t s = {data, axis == 1 ? a : 1, axis < 0 ? a * b : axis ? b : a, axis == 0 ? b : 1};
    int64_t kinds = find_firsts(&s, sorted, first), length = kinds + random_below(&rng, 3);
    char inputs[64], nodes[128];
    snprintf(inputs, sizeof(inputs), "x:f32[%lld,%lld]", (long long)a, (long long)b);
    int at = snprintf(nodes, sizeof(nodes), "y, i, v, c = Unique(x) sorted:i=%d", sorted);
    if (axis >= 0) snprintf(nodes + at, sizeof(nodes) - (size_t)at, " axis:i=%d", axis);
    text_model_t t;
    text_begin(&t, 18);
    text_main(&t, inputs, nodes, "y:f32 i:i64 v:i64 c:i64");
    weft_frontend_dim_t dim = {axis == 1 ? "y.1" : "y.0", length};
    t.dims = &dim;
    t.dim_count = 1;
    text_run(&t, (const void*[]){data});
    for (int64_t k = 0; k < length; ++k) {
      int64_t repeats = 0;
      for (int64_t i = 0; i < s.count && k < kinds; ++i) {
        if (compare(&s, i, first[k]) != 0) continue;
        ++repeats;
        assert_true(text_at(&t, 2, (size_t)i) == (double)k);
      }
      assert_true(text_at(&t, 1, (size_t)k) == (double)(k < kinds ? first[k] : -1));
      assert_true(text_at(&t, 3, (size_t)k) == (double)repeats);
      for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t i = 0; i < s.inner; ++i) {
          float expected = k < kinds ? data[(o * s.count + first[k]) * s.inner + i] : 0;
          assert_true(text_at(&t, 0, (size_t)((o * length + k) * s.inner + i)) == (double)expected);
        }
    }
    text_end(&t);
  }
}

static void test_non_zero(void** state) {
  (void)state;
  static const float data[] = {0, 3, 0, 0, 5, 6};
  static const double expected[] = {0, 1, 1, -1, -1, 1, 1, 2, -1, -1};
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[2,3]", "y = NonZero(x)", "y:i64");
  weft_frontend_dim_t dim = {"y.1", 5};
  t.dims = &dim;
  t.dim_count = 1;
  text_run(&t, (const void*[]){data});
  for (size_t i = 0; i < 10; ++i) assert_true(text_at(&t, 0, i) == expected[i]);
  text_end(&t);
}

static void expect_error(text_model_t* t, const char* first, const char* second) {
  weft_status_t status = text_import(t);
  assert_non_null(status);
  const char* message = weft_status_message(status);
  if (!strstr(message, first) || !strstr(message, second)) fail_msg("%s", message);
  weft_status_free(status);
  text_end(t);
}

static void test_errors(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[2,3]", "y = NonZero(x)", "y:i64");
  expect_error(&t, "NonZero", "--dim y.1=N");
  text_begin(&t, 18);
  text_main(&t, "x:f32[2,3]", "y = Unique(x)", "y:f32");
  expect_error(&t, "Unique", "--dim y.0=N");
  text_begin(&t, 18);
  text_main(&t, "x:f32[2,3]", "y = Relu(x)", "y:f32");
  weft_frontend_dim_t dim = {"y.1", 5};
  t.dims = &dim;
  t.dim_count = 1;
  expect_error(&t, "--dim y.1", "no input has an open dimension");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_unique), cmocka_unit_test(test_non_zero),
                                     cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
