// Networks from outside: on a damaged 32 x 32 mesh they give what ONNX Runtime gave. Five seeds, five defect maps each.
#include "tests/cli/command.h"

#ifdef __SANITIZE_ADDRESS__
enum { SEEDS = 1, MAPS = 2 }; // the same code in a slower build
#else
enum { SEEDS = 5, MAPS = 5 };
#endif

static const char* data_folder(void) {
  const char* folder = getenv("WEFT_TEST_DATA");
  return folder ? folder : WEFT_SOURCE_DIR "/../shared/data";
}

static void matches(const char* model, const char* dims, const char* input, const char* output) {
  char path[512];
  snprintf(path, sizeof path, "%s/models/%s", data_folder(), model);
  if (access(path, R_OK)) {
    print_message("skipped: no %s\n", path);
    skip();
  }
  for (int seed = 1; seed <= SEEDS; ++seed) {
    for (int map = 1; map <= MAPS; ++map) {
      assert_weft(0,
                  "compile -q %s/model.onnx %s -o m.wafer --machine mesh:32x32 --defects rate=0.03,seed=%d --seed %d",
                  path, dims, map, seed);
      assert_weft(0,
                  "run m.wafer --input '%s=%s/test_data_set_0/input_0.pb' --expect '%s=%s/test_data_set_0/output_0.pb' "
                  "--rtol 1e-3 --atol 1e-4",
                  input, path, output, path);
      assert_prints("matches");
    }
  }
}

// Three in ten tiles dead: corridors one tile wide and pockets everywhere. The network still finds its place and ways,
// with fewer streams or away from the narrowest ways where it takes that.
static void nearly_a_third_dead(void** state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/models/mnist", data_folder());
  if (access(path, R_OK)) skip();
  for (int map = 1; map <= 2 * MAPS; ++map) {
    assert_weft(0, "compile -q %s/model.onnx -o t.wafer --machine mesh:40x40 --defects rate=0.%d,seed=%d", path,
                map % 2 ? 30 : 35, map);
    assert_weft(0,
                "run t.wafer --input Input3=%s/test_data_set_0/input_0.pb --expect "
                "Plus214_Output_0=%s/test_data_set_0/output_0.pb --rtol 1e-3 --atol 1e-4",
                path, path);
    assert_prints("matches");
  }
}

static void mnist(void** state) {
  (void)state;
  matches("mnist", "", "Input3", "Plus214_Output_0");
}
static void cifar10_resnet_4b(void** state) {
  (void)state;
  matches("cifar10_resnet_4b", "", "input.1", "54");
}

static void lstm_gru(void** state) { // two layers of LSTM in both directions, then a GRU in both
  (void)state;
  matches("lstm_gru", "--dim b=2 --dim t=20", "x", "y");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mnist), cmocka_unit_test(nearly_a_third_dead),
                                     cmocka_unit_test(cifar10_resnet_4b), cmocka_unit_test(lstm_gru)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
