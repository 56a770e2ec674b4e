// The report of a compilation: every node of the model is accounted for, every kernel has its figures.
#include <jansson.h>

#include "tests/frontend/text_model.h"
// text_model.h needs its own order
#include "tests/cli/command.h"

static json_t* read_report(void) {
  json_error_t error;
  json_t* root = json_load_file("r.json", 0, &error);
  if (!root) fail_msg("r.json:%d: %s", error.line, error.text);
  return root;
}

static json_t* find(json_t* root, const char* list, const char* key, const char* name) {
  size_t index;
  json_t* entry;
  json_array_foreach(json_object_get(root, list), index, entry) {
    if (strcmp(json_string_value(json_object_get(entry, key)), name) == 0) return entry;
  }
  fail_msg("%s has no %s", list, name);
  return NULL;
}

static int64_t number(json_t* entry, const char* key) {
  json_t* value = json_object_get(entry, key);
  if (!json_is_integer(value)) fail_msg("no number %s", key);
  return json_integer_value(value);
}

static void expect_fate(json_t* root, const char* node, const char* becomes) {
  json_t* entry = find(root, "nodes", "node", node);
  const char* got = json_string_value(json_object_get(entry, "becomes"));
  if (strcmp(got, becomes) != 0) fail_msg("%s becomes %s, expected %s", node, got, becomes);
  assert_int_equal(json_array_size(json_object_get(entry, "kernels")) > 0, strcmp(becomes, "kernels") == 0);
}

static void every_node_has_a_fate(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 18);
  text_body(&t, "yes", "", "p = Exp(m)", "p:f32");
  text_body(&t, "no", "", "q = Neg(m)", "q:f32");
  text_main(&t, "x:f32[4,6] c:bool[]",
            "s = Shape(x) ; i = Identity(x) ; m = MatMul(i, w) ; r = Relu(m) ; t = Transpose(r) ; z = Size(s) ; "
            "b = If(c) then_branch:g=yes else_branch:g=no ; u = Reshape(b, k)",
            "t:f32 u:f32 z:i64");
  float w[30];
  for (int i = 0; i < 30; ++i) w[i] = (float)i / 8;
  text_tensor(&t, t.proto.graph, "w", 1, 2, (int64_t[]){6, 5}, w, sizeof(w));
  text_tensor(&t, t.proto.graph, "k", 7, 1, (int64_t[]){1}, (int64_t[]){20}, 8);
  assert_null(text_save(&t));
  assert_weft(0, "compile %s -o y.wafer --machine mesh:8x8 --report r.json", t.path);
  assert_prints("import", "place", "emit");
  json_t* root = read_report();
  assert_int_equal(json_array_size(json_object_get(root, "nodes")), 8);
  expect_fate(root, "Shape:s", "constant");
  expect_fate(root, "Size:z", "constant");
  expect_fate(root, "Identity:i", "nothing");
  expect_fate(root, "MatMul:m", "kernels");
  expect_fate(root, "Relu:r", "kernels");
  expect_fate(root, "Transpose:t", "movement");
  expect_fate(root, "If:b", "kernels"); // by way of the nodes of its branches
  expect_fate(root, "Reshape:u", "movement");
  size_t index;
  json_t* entry;
  int64_t tiles = 0;
  json_array_foreach(json_object_get(root, "kernels"), index, entry) {
    tiles += number(entry, "tiles");
    assert_int_equal(number(entry, "tiles"), number(entry, "grid_width") * number(entry, "grid_height"));
    assert_true(number(entry, "step_cycles") >= number(entry, "compute_cycles"));
    assert_true(number(entry, "bytes_per_tile") > 0 && number(entry, "bytes_per_tile") <= 49152);
    const char* bound = json_string_value(json_object_get(entry, "bound_by"));
    assert_true(strcmp(bound, "compute") == 0 || strcmp(bound, "link") == 0 || strcmp(bound, "memory") == 0);
  }
  assert_int_equal(number(json_object_get(root, "placement"), "tiles_used"), tiles);
  static const char* const stages[] = {"import", "passes", "kernels", "place", "route", "emit"};
  for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); ++i)
    assert_true(number(find(root, "stages", "stage", stages[i]), "peak_bytes") > 0);
  json_decref(root);
  text_end(&t);
}

static void a_stage_file_knows_the_nodes_of_its_kernels(void** state) {
  (void)state;
  assert_weft(0,
              "compile -q " DIGITS "digits.onnx --machine mesh:24x24 -o k.fabric --stop-after kernels --report r.json");
  json_t *whole = read_report(), *resumed;
  assert_weft(0, "compile -q k.fabric --machine mesh:24x24 -o d.wafer --report r.json");
  resumed = read_report();
  json_t* conv = find(resumed, "nodes", "node", "Conv:/body/Conv");
  assert_null(json_object_get(conv, "becomes"));
  assert_true(number(conv, "step_cycles") > 0);
  assert_int_equal(json_array_size(json_object_get(conv, "kernels")), 1);
  // Not placed: no figures.
  conv = find(whole, "nodes", "node", "Conv:/body/Conv");
  assert_null(json_object_get(conv, "step_cycles"));
  assert_int_equal(json_array_size(json_object_get(conv, "kernels")), 1);
  json_decref(whole);
  json_decref(resumed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_node_has_a_fate),
                                     cmocka_unit_test(a_stage_file_knows_the_nodes_of_its_kernels)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
