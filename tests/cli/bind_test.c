// Inputs that are given as constants: shapes, repeats and pads then may come from them.
#include "tests/frontend/text_model.h"
// text_model.h needs its own order
#include "tests/cli/command.h"

static text_model_t model;

// Two parameters: the new shape directly, the repeats by way of a sum.
static void begin(void) {
  text_begin(&model, 18);
  text_main(&model, "x:f32[2,6] s:i64[2] k:i64[2]", "r = Reshape(x, s) ; n = Add(k, k) ; y = Tile(r, n)", "y:f32");
  assert_null(text_save(&model));
}

static void errors_name_the_option(void** state) {
  (void)state;
  begin();
  assert_weft(1, "compile %s -o y.wafer", model.path);
  assert_prints("node 'r': Reshape", "input 1 (shape, 's')", "--bind s=VALUE");
  assert_weft(1, "compile %s -o y.wafer --bind 's=2xi64=3 4'", model.path);
  assert_prints("node 'y': Tile", "--bind k=VALUE");
  assert_weft(1, "eval %s --bind 't=2xi64=3 4'", model.path);
  assert_prints("no input of this name", "x, s, k");
  assert_weft(1, "eval %s --bind 's=2xi32=3 4'", model.path);
  assert_prints("--bind s: the value is i32, the model declares int64");
  assert_weft(1, "eval %s --bind 's=3xi64=3 4 1'", model.path);
  assert_prints("--bind s: the value has shape [3], the model declares [2]");
  assert_weft(1, "eval %s --bind 's=2xi64=3 4' --bind 's=2xi64=4 3'", model.path);
  assert_prints("--bind s is given twice");
  assert_weft(1, "eval %s --bind s=random", model.path);
  assert_prints("s: cannot read 'random'");
  assert_weft(1, "eval %s --bind s", model.path);
  text_end(&model);
}

static void bound_inputs_are_none_any_more(void** state) {
  (void)state;
  begin();
  const char* x = "x='2x6xf32=1 2 3 4 5 6 7 8 9 10 11 12'";
  const char* bound = "--bind 's=2xi64=4 3' --bind k=k.npy";
  weft_host_tensor_t k = {
      .name = "k", .dtype = WEFT_DTYPE_I64, .rank = 1, .extent = {2}, .data = (int64_t[]){1, 1}, .size = 16};
  assert_null(weft_npy_write(weft_allocator_system(), "k.npy", &k));
  assert_weft(0, "eval %s %s --input %s --output y=y.npy", model.path, bound, x);
  assert_weft(0, "compile %s %s -o y.wafer --machine mesh:8x8", model.path, bound);
  assert_weft(0, "run y.wafer --input %s --expect y=y.npy", x);
  assert_prints("y matches");
  assert_weft(1, "eval %s %s --input %s --input 's=2xi64=4 3'", model.path, bound, x);
  assert_prints("no input 's'");
  weft_host_tensor_t y;
  assert_null(weft_npy_read(&model.arena, "y.npy", &y));
  assert_int_equal(y.rank, 2);
  assert_int_equal(y.extent[0], 8);
  assert_int_equal(y.extent[1], 6);
  for (int i = 0; i < 48; ++i) assert_true((double)((float*)y.data)[i] == (double)(i / 6 % 4 * 3 + i % 3 + 1));
  text_end(&model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(errors_name_the_option),
                                     cmocka_unit_test(bound_inputs_are_none_any_more)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
