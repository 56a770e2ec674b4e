// Sequences and optional values, which exist while importing only.
#include "text_model.h"

static void expect_floats(text_model_t* t, int32_t output, const float* expected, size_t count) {
  assert_int_equal(t->output[output].size, count * sizeof(float));
  for (size_t i = 0; i < count; ++i) assert_true(text_at(t, output, i) == (double)expected[i]);
}

static void expect_error(text_model_t* t, const char* words) {
  weft_status_t status = text_import(t);
  assert_non_null(status);
  if (!strstr(weft_status_message(status), words)) fail_msg("%s", weft_status_message(status));
  weft_status_free(status);
  text_end(t);
}

static const float data[] = {1, 2, 3, 4, 5, 6};

static void test_lists(void** state) {
  (void)state;
  static const int64_t one = 1, minus_one = -1, zero = 0, sizes[] = {2, 1};
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]",
            "s = SplitToSequence(x, sizes) ; a = SequenceAt(s, last) ; n = SequenceLength(s) ; "
            "r = SequenceInsert(s, a, first) ; e = SequenceErase(r, one) ; y = ConcatFromSequence(e) axis:i=0 ; "
            "p = SplitToSequence(x) axis:i=1 keepdims:i=0 ; q = SequenceErase(p) ; c = SequenceConstruct(a, a) ; "
            "z = ConcatFromSequence(c) axis:i=-1 new_axis:i=1 ; w = ConcatFromSequence(q) axis:i=0",
            "y:f32 n:i64 z:f32 w:f32");
  text_tensor(&t, t.proto.graph, "sizes", 7, 1, (int64_t[]){2}, sizes, sizeof(sizes));
  text_tensor(&t, t.proto.graph, "last", 7, 0, NULL, &minus_one, 8);
  text_tensor(&t, t.proto.graph, "first", 7, 0, NULL, &zero, 8);
  text_tensor(&t, t.proto.graph, "one", 7, 0, NULL, &one, 8);
  text_run(&t, (const void*[]){data});
  expect_floats(&t, 0, (float[]){5, 6, 5, 6}, 4);
  assert_true(text_at(&t, 1, 0) == 2);
  expect_floats(&t, 2, (float[]){5, 5, 6, 6}, 4);
  expect_floats(&t, 3, (float[]){1, 3, 5}, 3);
  text_end(&t);
}

// A list grows in a loop, and is mapped.
static void test_loop_and_map(void** state) {
  (void)state;
  static const int64_t trips = 3;
  text_model_t t;
  text_begin(&t, 18);
  text_body(&t, "grow", "i:i64[] go:bool[] list",
            "g = Identity(go) ; row = Gather(x, i) ; longer = SequenceInsert(list, row)", "g longer");
  text_body(&t, "each", "item other factor", "p = Mul(item, factor) ; q = Add(p, other)", "q");
  text_main(&t, "x:f32[3,2] f:f32[]",
            "none = SequenceEmpty() ; all = Loop(trips, -, none) body:g=grow ; "
            "m = SequenceMap(all, all, f) body:g=each ; y = ConcatFromSequence(m) axis:i=0 ; "
            "o = Optional(y) ; h = OptionalHasElement(o) ; z = OptionalGetElement(o) ; k = OptionalHasElement()",
            "z:f32 h:bool k:bool");
  text_tensor(&t, t.proto.graph, "trips", 7, 0, NULL, &trips, 8);
  text_run(&t, (const void*[]){data, (float[]){2}});
  expect_floats(&t, 0, (float[]){3, 6, 9, 12, 15, 18}, 6);
  assert_true(text_at(&t, 1, 0) == 1 && text_at(&t, 2, 0) == 0);
  text_end(&t);
}

static void test_errors(void** state) {
  (void)state;
  static const int64_t three = 3;
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]", "s = SequenceConstruct(x, x) ; y = Relu(s)", "y:f32");
  expect_error(&t, "input 0 is a sequence, expected a tensor");
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]", "s = SequenceConstruct(x, x) ; y = SequenceAt(s, p)", "y:f32");
  text_tensor(&t, t.proto.graph, "p", 7, 0, NULL, &three, 8);
  expect_error(&t, "position 3 in a sequence of 2");
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2] p:i64[]", "s = SequenceConstruct(x, x) ; y = SequenceAt(s, p)", "y:f32");
  expect_error(&t, "--bind p=VALUE");
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]", "y = SequenceConstruct(x, x)", "y:f32");
  expect_error(&t, "sequence");
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]", "o = Optional() ; y = OptionalGetElement(o)", "y:f32");
  expect_error(&t, "no element");
  text_begin(&t, 18);
  text_main(&t, "x:f32[3,2]", "y = SequenceLength(x)", "y:i64");
  expect_error(&t, "input 0 is no sequence");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_loop_and_map),
                                     cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
