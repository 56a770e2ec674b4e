// Products in a narrower type: fewer tiles, fewer cycles, results near those of f32.
#include <jansson.h>

#include "tests/cli/command.h"

static int64_t report_number(const char* file, const char* part, const char* key) {
  json_t* root = json_load_file(file, 0, NULL);
  assert_non_null(root);
  json_t* holder = part ? json_object_get(root, part) : root;
  json_t* value = json_object_get(holder, key);
  assert_non_null(value);
  int64_t number = json_is_real(value) ? (int64_t)json_real_value(value) : json_integer_value(value);
  json_decref(root);
  return number;
}

static void narrow_products_take_less(void** state) {
  (void)state;
  static const char* const types[] = {"f32", "f16", "bf16"};
  int64_t tiles[3], cycles[3];
  for (int i = 0; i < 3; ++i) {
    assert_weft(0, "compile -q " DIGITS "digits.onnx --machine mesh:24x24 --precision %s -o %s.wafer --report c.json",
                types[i], types[i]);
    assert_weft(0,
                "run -q %s.wafer --input image=random:3 --steps 2 --compare " DIGITS "digits.onnx --rtol 0.05 "
                "--atol 0.02 --report r.json",
                types[i]);
    tiles[i] = report_number("c.json", "placement", "tiles_used");
    cycles[i] = report_number("c.json", "placement", "slowest_kernel_cycles");
  }
  for (int i = 1; i < 3; ++i) {
    assert_true(tiles[i] < tiles[0]);
    assert_true(cycles[i] < cycles[0]);
  }
  // It does round: what f32 meets, bf16 does not.
  assert_weft(0, "run -q f32.wafer --input image=random:3 --compare " DIGITS "digits.onnx --rtol 1e-5 --atol 1e-5");
  assert_weft(4, "run -q bf16.wafer --input image=random:3 --compare " DIGITS "digits.onnx --rtol 1e-5 --atol 1e-5");
}

static void other_types_are_refused(void** state) {
  (void)state;
  assert_weft(1, "compile " DIGITS "digits.onnx -o x.wafer --precision f64");
  assert_prints("--precision takes f32, f16 or bf16", "'f64'");
  assert_weft(1, "compile " DIGITS "digits.onnx -o x.wafer --precision half");
  assert_weft(1, "compile " DIGITS "digits.onnx -o x.wafer --precision f16 --passes 'builtin.module(cse)'");
  assert_prints("give one of them");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(narrow_products_take_less),
                                     cmocka_unit_test(other_types_are_refused)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
