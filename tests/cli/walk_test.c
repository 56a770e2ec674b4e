// Picking in long regular walks on the mesh: backwards, overlapping, repeated, to and fro. Each is a handful of pieces,
// whose receives a tile has room for.
#include "tests/frontend/text_model.h"
// text_model.h needs its own order
#include "tests/cli/command.h"

static void run_on_mesh(const char* inputs, const char* nodes, int64_t count, const int64_t* index) {
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, inputs, nodes, "y:f32");
  text_tensor(&t, t.proto.graph, "i", 7, 1, &count, index, (size_t)count * sizeof(int64_t));
  assert_null(text_save(&t));
  assert_weft(0, "compile -q %s -o y.wafer --machine mesh:12x12 --defects rate=0.05,seed=2 --effort 0.1", t.path);
  assert_weft(0, "run y.wafer --input x=random:5 --steps 2 --compare %s --rtol 0 --atol 0", t.path);
  assert_prints("y matches");
  text_end(&t);
}

static void walks_match(void** state) {
  (void)state;
  int64_t index[1200];
  for (int i = 0; i < 300; ++i) index[i] = 299 - i;
  run_on_mesh("x:f32[2,300]", "r = Relu(x) ; y = Gather(r, i) axis:i=1", 300, index);
  for (int i = 0; i < 1200; ++i) index[i] = i / 20 * 4 + i % 20; // 60 frames of 20, 4 apart
  run_on_mesh("x:f32[300,2]", "r = Relu(x) ; y = Gather(r, i) axis:i=0", 1200, index);
  for (int i = 0; i < 300; ++i) index[i] = 17;
  run_on_mesh("x:f32[300]", "r = Relu(x) ; y = Gather(r, i) axis:i=0", 300, index);
  for (int i = 0; i < 300; ++i) index[i] = i % 60 * 5 + 4 - i / 60; // columns of [60, 5], the last first
  run_on_mesh("x:f32[300]", "r = Relu(x) ; y = Gather(r, i) axis:i=0", 300, index);
  static const int64_t pads[] = {100, 120};
  run_on_mesh("x:f32[200]", "r = Relu(x) ; y = Pad(r, i) mode:s=reflect", 2, pads);
  run_on_mesh("x:f32[200]", "r = Relu(x) ; y = Pad(r, i) mode:s=edge", 2, pads);
  run_on_mesh("x:f32[200]", "r = Relu(x) ; y = Pad(r, i) mode:s=wrap", 2, pads);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(walks_match)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
