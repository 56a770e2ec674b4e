// Control flow and functions are resolved while importing: the module has no trace of them, and computes the same.
#include "text_model.h"

static const float one_two_three[] = {1, 2, 3};

static void assert_numbers(const text_model_t* t, int32_t output, int count, const double* expected) {
  assert_int_equal(t->output[output].size, (size_t)count * weft_dtype_size(t->output[output].dtype));
  for (int i = 0; i < count; ++i) assert_true(text_at(t, output, (size_t)i) == expected[i]);
}
#define ASSERT_NUMBERS(t, output, ...)                                                                                 \
  assert_numbers(t, output, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static void assert_refused(text_model_t* t, weft_status_code_e code, const char* text) {
  weft_status_t status = text_import(t);
  assert_int_equal(weft_status_code(status), code);
  if (!strstr(weft_status_message(status), text)) fail_msg("'%s' lacks '%s'", weft_status_message(status), text);
  weft_status_free(status);
  text_end(t);
}

static void define_branches(text_model_t* t, const char* otherwise) {
  text_body(t, "yes", "", "r = Add(x, x)", "r"); // x is the outer graph's
  text_body(t, "no", "", otherwise, "r");
}

static void test_known_condition_takes_a_branch(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  define_branches(&t, "r = Mystery(x)"); // not looked at
  text_main(&t, "x:f32[3]",
            "s = Size(x) ; n = Size(s) ; c = Greater(s, n) ; y = If(c) then_branch:g=yes else_branch:g=no", "y:f32[3]");
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 2, 4, 6);
  text_end(&t);
}

static void test_unknown_condition_computes_both(void** state) {
  (void)state;
  for (int c = 0; c < 2; ++c) {
    text_model_t t;
    text_begin(&t, 18);
    define_branches(&t, "r = Neg(x)");
    text_main(&t, "x:f32[3] c:bool[]", "y = If(c) then_branch:g=yes else_branch:g=no", "y:f32[3]");
    uint8_t condition = (uint8_t)c;
    text_run(&t, (const void*[]){one_two_three, &condition});
    if (c)
      ASSERT_NUMBERS(&t, 0, 2, 4, 6);
    else
      ASSERT_NUMBERS(&t, 0, -1, -2, -3);
    text_end(&t);
  }
}

static void test_branches_of_two_shapes(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  define_branches(&t, "s = Shape(x) ; r = ReduceMax(x) keepdims:i=0");
  text_main(&t, "x:f32[3] c:bool[]", "y = If(c) then_branch:g=yes else_branch:g=no", "y:f32");
  assert_refused(&t, WEFT_STATUS_UNSUPPORTED, "run time");
}

// A node that only a body uses comes before the body's node, whatever the file's order.
static void test_bodies_order_the_nodes_around_them(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_body(&t, "yes", "", "r = Add(late, x)", "r");
  text_body(&t, "no", "", "r = Identity(x)", "r");
  text_main(&t, "x:f32[3]",
            "s = Size(x) ; c = Equal(s, s) ; y = If(c) then_branch:g=yes else_branch:g=no ; late = Neg(x)", "y:f32[3]");
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 0, 0, 0);
  text_end(&t);
}

static void define_loop(text_model_t* t, const char* nodes) {
  text_body(t, "loop", "i:i64[] go:bool[] sum:f32[3]", nodes, "goes_on next row:f32[3]");
}

static void test_loop_is_unrolled(void** state) {
  (void)state;
  text_model_t t;
  int64_t trips = 3;
  text_begin(&t, 18);
  define_loop(&t, "goes_on = Identity(go) ; f = Cast(i) to:i=1 ; p = Mul(x, f) ; next = Add(sum, p) ; row = Neg(next)");
  text_main(&t, "x:f32[3]", "last, rows = Loop(trips, -, x) body:g=loop", "last:f32[3] rows:f32[3,3]");
  text_tensor(&t, t.proto.graph, "trips", 7, 0, NULL, &trips, sizeof(trips));
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 4, 8, 12); // x * (1 + 0 + 1 + 2)
  ASSERT_NUMBERS(&t, 1, -1, -2, -3, -2, -4, -6, -4, -8, -12);
  text_end(&t);
}

static void test_loop_ends_when_its_condition_does(void** state) {
  (void)state;
  text_model_t t;
  bool go = true;
  text_begin(&t, 18);
  define_loop(&t, "s = Size(x) ; goes_on = Less(i, s) ; next = Add(sum, x) ; row = Identity(next)");
  text_main(&t, "x:f32[3]", "last, rows = Loop(-, go, x) body:g=loop", "last:f32[3] rows:f32");
  text_tensor(&t, t.proto.graph, "go", 9, 0, NULL, &go, 1);
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 5, 10, 15); // i = 0, 1, 2 and, the last, 3
  assert_int_equal(t.output[1].extent[0], 4);
  text_end(&t);
}

static void test_loop_without_a_trip(void** state) {
  (void)state;
  text_model_t t;
  int64_t trips = 0;
  text_begin(&t, 18);
  define_loop(&t, "goes_on = Identity(go) ; next = Add(sum, x) ; row = Identity(next)");
  text_main(&t, "x:f32[3]", "last, rows = Loop(trips, -, x) body:g=loop ; n = Shape(rows)", "last:f32[3] n:i64[2]");
  text_tensor(&t, t.proto.graph, "trips", 7, 0, NULL, &trips, sizeof(trips));
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 1, 2, 3);
  ASSERT_NUMBERS(&t, 1, 0, 3);
  text_end(&t);
}

static void test_loop_of_run_time(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  define_loop(&t, "goes_on = Identity(go) ; next = Add(sum, x) ; row = Identity(next)");
  text_main(&t, "x:f32[3] trips:i64[]", "last, rows = Loop(trips, -, x) body:g=loop", "last:f32[3] rows:f32");
  assert_refused(&t, WEFT_STATUS_UNSUPPORTED, "'trips'");
}

static void test_unsupported_in_a_body_is_named(void** state) {
  (void)state;
  text_model_t t;
  int64_t trips = 2;
  text_begin(&t, 18);
  define_loop(&t, "goes_on = Identity(go) ; next = Mystery(sum) ; row = Identity(next)");
  text_main(&t, "x:f32[3]", "last, rows = Loop(trips, -, x) body:g=loop", "last:f32[3] rows:f32");
  text_tensor(&t, t.proto.graph, "trips", 7, 0, NULL, &trips, sizeof(trips));
  assert_refused(&t, WEFT_STATUS_UNSUPPORTED, "'last/next': Mystery");
}

static void test_scan_in_both_directions(void** state) {
  (void)state;
  text_model_t t;
  static const float rows[] = {1, 10, 100, 2, 20, 200}; // [2, 3]; scanned along axis 1, from its end
  float start[] = {0, 0};
  text_begin(&t, 18);
  text_body(&t, "step", "sum:f32[2] column:f32[2]", "next = Add(sum, column) ; seen = Identity(next)", "next seen");
  text_main(&t, "start:f32[2] x:f32[2,3]",
            "last, all = Scan(start, x) body:g=step num_scan_inputs:i=1 scan_input_axes:I=1 scan_input_directions:I=1 "
            "scan_output_axes:I=1",
            "last:f32[2] all:f32[2,3]");
  text_run(&t, (const void*[]){start, rows});
  ASSERT_NUMBERS(&t, 0, 111, 222);
  ASSERT_NUMBERS(&t, 1, 100, 110, 111, 200, 220, 222);
  text_end(&t);
}

// --- Functions

static void test_function_is_inlined(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_function(&t, "Leak", "x", "y = LeakyRelu(x) alpha:r=slope", "y");
  text_function(&t, "Twice", "a b", "c = local:Leak(a) slope:r=slope ; d = Add(c, c) ; y = Add(d, b)", "y c");
  text_main(&t, "x:f32[3]", "m = Neg(x) ; y, c = local:Twice(m, x) slope:f=0.5 ; z = local:Twice(m, x) slope:f=0.25",
            "y:f32[3] c:f32[3] z:f32[3]");
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, 0, 0, 0);
  ASSERT_NUMBERS(&t, 1, -0.5, -1, -1.5);
  ASSERT_NUMBERS(&t, 2, 0.5, 1, 1.5);
  text_end(&t);
}

// The call leaves an attribute out: the function's default, a field newer than the schema, or else the operator's.
static void test_function_defaults(void** state) {
  (void)state;
  for (int has_default = 0; has_default < 2; ++has_default) {
    text_model_t t;
    uint8_t bytes[64];
    ProtobufCMessageUnknownField field = {11, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 0, bytes};
    text_begin(&t, 18);
    text_function(&t, "Leak", "x", "y = LeakyRelu(x) alpha:r=slope", "y");
    const char* text = "slope:f=0.125";
    bytes[0] = (uint8_t)onnx__attribute_proto__pack(text_attribute(&t, &text), bytes + 1);
    field.len = bytes[0] + 1u;
    t.proto.functions[0]->base.n_unknown_fields = (unsigned)has_default;
    t.proto.functions[0]->base.unknown_fields = &field;
    text_main(&t, "x:f32[3]", "m = Neg(x) ; y = local:Leak(m)", "y:f32[3]");
    text_run(&t, (const void*[]){one_two_three});
    assert_true(text_at(&t, 0, 1) == (has_default ? -0.25 : (double)(-2 * 0.01f)));
    text_end(&t);
  }
}

static void test_function_without_an_input(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_function(&t, "Limit", "x low high", "y = Clip(x, low, high)", "y");
  text_main(&t, "x:f32[3] high:f32[]", "y = local:Limit(x, -, high)", "y:f32[3]");
  float high = 2;
  text_run(&t, (const void*[]){one_two_three, &high});
  ASSERT_NUMBERS(&t, 0, 1, 2, 2);
  text_end(&t);
}

static void test_function_comes_before_an_operator(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_function(&t, "Relu", "x", "y = Neg(x)", "y");
  t.proto.functions[0]->domain = (char*)"";
  text_main(&t, "x:f32[3]", "y = Relu(x)", "y:f32[3]");
  text_run(&t, (const void*[]){one_two_three});
  ASSERT_NUMBERS(&t, 0, -1, -2, -3);
  text_end(&t);
}

static void test_function_that_calls_itself(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_function(&t, "Again", "x", "y = local:Again(x)", "y");
  text_main(&t, "x:f32[3]", "y = local:Again(x)", "y:f32[3]");
  assert_refused(&t, WEFT_STATUS_INVALID_INPUT, "nest deeper");
}

static void test_function_that_sees_only_its_inputs(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_function(&t, "Peek", "x", "y = Add(x, outside)", "y");
  text_main(&t, "x:f32[3]", "outside = Neg(x) ; y = local:Peek(x)", "y:f32[3]");
  assert_refused(&t, WEFT_STATUS_INVALID_INPUT, "'outside'");
}

static void test_reasons_for_what_has_no_form(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[3]", "s = StringNormalizer(x) ; y = RandomNormalLike(x)", "y:f32[3]");
  assert_refused(&t, WEFT_STATUS_UNSUPPORTED, "strings are not supported");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_condition_takes_a_branch),
                                     cmocka_unit_test(test_unknown_condition_computes_both),
                                     cmocka_unit_test(test_branches_of_two_shapes),
                                     cmocka_unit_test(test_bodies_order_the_nodes_around_them),
                                     cmocka_unit_test(test_loop_is_unrolled),
                                     cmocka_unit_test(test_loop_ends_when_its_condition_does),
                                     cmocka_unit_test(test_loop_without_a_trip),
                                     cmocka_unit_test(test_loop_of_run_time),
                                     cmocka_unit_test(test_unsupported_in_a_body_is_named),
                                     cmocka_unit_test(test_scan_in_both_directions),
                                     cmocka_unit_test(test_function_is_inlined),
                                     cmocka_unit_test(test_function_defaults),
                                     cmocka_unit_test(test_function_without_an_input),
                                     cmocka_unit_test(test_function_comes_before_an_operator),
                                     cmocka_unit_test(test_function_that_calls_itself),
                                     cmocka_unit_test(test_function_that_sees_only_its_inputs),
                                     cmocka_unit_test(test_reasons_for_what_has_no_form)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
