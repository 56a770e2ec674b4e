// The digits network from ONNX to classes on the simulator, with everything that a user does on the way.
#include "tests/cli/command.h"

#define COMPILE "compile -q " DIGITS "digits.onnx --machine mesh:24x24 --defects " DIGITS "defects.txt "

static void it_runs_and_matches(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o d.wafer --report c.json --dump-dir dumps");
  assert_weft(0, "check d.wafer");
  assert_weft(0, "run d.wafer --input image=" DIGITS "images.npy --expect probabilities=" DIGITS
                 "expected.npy --output probabilities=p.npy --report r.json");
  assert_prints("360 inputs", "matches");
  assert_weft(0, "run d.wafer --input image=random:4 --steps 3 --compare " DIGITS "digits.onnx");
  assert_prints("matches the reference");
  assert_weft(0, "eval " DIGITS "digits.onnx --input image=" DIGITS "images.npy --expect probabilities=" DIGITS
                 "expected.npy");
  // What differs is exit code 4, and says where.
  assert_weft(4, "run d.wafer --input image=" DIGITS
                 "images.npy --expect probabilities=p.npy --rtol 0 --atol 0 --expect probabilities=" DIGITS
                 "expected.npy");
  assert_prints("differs from", "expected", "element");
}

static void equal_input_gives_equal_bytes_whatever_the_threads(void** state) {
  (void)state;
  static const int threads[] = {3, 1, 2};
  size_t size[4];
  uint8_t* image[4];
  for (int i = 0; i < 3; ++i) {
    assert_weft(0, COMPILE "-o same.wafer --seeds 3 --threads %d", threads[i]);
    image[i] = read_file("same.wafer", &size[i]);
  }
  assert_weft(0, COMPILE "-o same.wafer --seeds 3 --seed 9");
  image[3] = read_file("same.wafer", &size[3]);
  for (int i = 1; i < 3; ++i) {
    assert_int_equal(size[i], size[0]);
    assert_memory_equal(image[i], image[0], size[0]);
  }
  assert_true(size[3] != size[0] || memcmp(image[3], image[0], size[0]));
  for (int i = 0; i < 4; ++i) free(image[i]);
}

static void stages_stop_and_go_on(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o whole.wafer");
  static const char* const stages[] = {"kernels", "placed", "routed"};
  size_t a = 0, b = 0;
  uint8_t* whole = read_file("whole.wafer", &a);
  for (int i = 0; i < 3; ++i) {
    assert_weft(0, COMPILE "-o stage.fabric --stop-after %s", stages[i]);
    assert_weft(0, "compile -q stage.fabric --machine mesh:24x24 --defects " DIGITS "defects.txt -o resumed.wafer");
    uint8_t* resumed = read_file("resumed.wafer", &b);
    assert_int_equal(a, b);
    assert_memory_equal(whole, resumed, a);
    free(resumed);
  }
  free(whole);
  assert_weft(0, COMPILE "-o tensor.mlir --stop-after tensor");
  assert_weft(1, "compile -q stage.fabric --machine mesh:24x24 --defects rate=0.02,seed=1 -o x.wafer");
  assert_prints("defect");
  assert_int_not_equal(access("x.wafer", F_OK), 0);
}

static void pictures_of_every_metric(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o pic.wafer");
  static const char* const metrics[] = {"place", "memory",  "cycles", "utilisation",
                                        "links", "colours", "energy", "defects"};
  static const char* const endings[] = {"png", "svg", "csv"};
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; ++m) {
    for (size_t e = 0; e < 3; ++e) {
      assert_weft(0, "heatmap pic.wafer --metric %s -o p.%s", metrics[m], endings[e]);
      char path[16];
      snprintf(path, sizeof path, "p.%s", endings[e]);
      size_t size = 0;
      free(read_file(path, &size));
      assert_true(size > 100);
    }
    assert_weft(0, "heatmap pic.wafer --metric %s", metrics[m]);
  }
  assert_weft(1, "heatmap pic.wafer --metric beauty");
  assert_prints("place, memory");
  assert_weft(1, "heatmap pic.wafer -o p.jpeg");
  assert_prints(".png");
}

// The estimate of a placed stage, and how well it ranks what routing did then.
static void congestion_is_forecast(void** state) {
  (void)state;
  assert_weft(0, COMPILE "--stop-after placed -o f.placed");
  assert_weft(0, "heatmap f.placed --machine mesh:24x24 --defects " DIGITS "defects.txt --metric congestion");
  assert_prints("congestion, estimated");
  assert_weft(0, COMPILE "-o f.wafer --report f.json");
  assert_weft(1, "heatmap f.wafer --metric congestion");
  assert_prints("--metric links");
  size_t size = 0;
  char* report = (char*)read_file("f.json", &size);
  report[size - 1] = 0;
  const char* at = strstr(report, "\"congestion_rank_correlation\": ");
  assert_non_null(at);
  assert_true(atof(at + strlen("\"congestion_rank_correlation\": ")) > 0.5);
  free(report);
}

static void an_image_stays_with_its_wafer(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o bound.wafer");
  assert_weft(0, "run bound.wafer --input image=random --defects " DIGITS "defects.txt");
  assert_weft(1, "run bound.wafer --input image=random --defects rate=0.01,seed=4");
  assert_prints("another wafer", "compile again");
  assert_weft(1, "run bound.wafer");
  assert_prints("input 'image' is missing");
  assert_weft(1, "run bound.wafer --input picture=random");
  assert_prints("no input 'picture'", "image");
  assert_weft(1, "run bound.wafer --input 'image=2x2xf32=1 2 3 4'");
  assert_prints("2x2xf32", "1x1x8x8xf32");
}

static void too_small_a_mesh_says_how_many_tiles(void** state) {
  (void)state;
  assert_weft(2, "compile -q " DIGITS "digits.onnx --machine mesh:2x1 -o small.wafer");
  assert_prints("needs at least", "tiles");
  assert_int_not_equal(access("small.wafer", F_OK), 0);
}

// Split meshes: the network goes where the host and all of its kernels can reach each other, or it is said why not.
static void meshes_that_fall_apart(void** state) {
  (void)state;
  static const char* const maps[] = {"row 11\n", "row 11\ncolumn 11\n", "rate 0.3 seed 2\n"};
  for (size_t i = 0; i < 3; ++i) {
    write_file("apart.txt", maps[i], strlen(maps[i]));
    assert_weft(0, "compile -q " DIGITS "digits.onnx --machine mesh:%s --defects apart.txt -o apart.wafer",
                i < 2 ? "24x24" : "32x32");
    assert_weft(0, "run apart.wafer --input image=" DIGITS "images.npy --expect probabilities=" DIGITS "expected.npy");
  }
  assert_weft(2, "compile -q " DIGITS "digits.onnx --machine mesh:24x24 --defects rate=1,seed=1 -o apart.wafer");
  assert_prints("no host port can reach a live tile");
  write_file("apart.txt", "row 1\ncolumn 1\ncolumn 3\n", 24); // one live tile at each port
  assert_weft(2, "compile -q " DIGITS "digits.onnx --machine mesh:5x2 --defects apart.txt -o apart.wafer");
  assert_prints("needs at least", "split the mesh into 3 parts of 1, 1 and 1 tiles");
}

static void a_time_limit_is_exit_code_3_and_leaves_nothing(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o t.wafer");
  assert_weft(3, "run t.wafer --input image=random --steps 100000 --time-limit 0.2");
  assert_prints("time limit");
}

// Every byte of the image flipped in turn: refused or run, never a crash. A stride keeps it short; the offset moves it
// along.
static void corrupted_images_never_crash(void** state) {
  (void)state;
  assert_weft(0, COMPILE "-o whole2.wafer");
  size_t size = 0;
  uint8_t* image = read_file("whole2.wafer", &size);
  size_t stride = size / 60 + 1;
  for (size_t at = 0; at < size; at += stride) {
    image[at] ^= 0xff;
    write_file("bad.wafer", image, size);
    image[at] ^= 0xff;
    int code = weft("run bad.wafer --input image=random --time-limit 5 -q");
    if (code == 0 || code == 1 || code == 3 || code == 70) continue;
    print_error("byte %zu: exit code %d\n%s\n", at, code, printed);
    fail();
  }
  for (size_t keep = 0; keep < size; keep += size / 17 + 1) {
    write_file("bad.wafer", image, keep);
    assert_weft(1, "run bad.wafer --input image=random");
  }
  free(image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_runs_and_matches),
      cmocka_unit_test(equal_input_gives_equal_bytes_whatever_the_threads),
      cmocka_unit_test(stages_stop_and_go_on),
      cmocka_unit_test(pictures_of_every_metric),
      cmocka_unit_test(congestion_is_forecast),
      cmocka_unit_test(an_image_stays_with_its_wafer),
      cmocka_unit_test(too_small_a_mesh_says_how_many_tiles),
      cmocka_unit_test(meshes_that_fall_apart),
      cmocka_unit_test(a_time_limit_is_exit_code_3_and_leaves_nothing),
      cmocka_unit_test(corrupted_images_never_crash),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
