// Usage, help and exit codes, as a newcomer meets them.
#include "tests/cli/command.h"

static void help_lists_commands_and_exit_codes(void** state) {
  (void)state;
  assert_weft(0, "--help");
  assert_prints("compile", "run", "heatmap", "inspect", "check", "eval", "opt", "ops", "machine", "exit codes:", "0 ",
                "1 ", "2 ", "3 ", "4 ", "70 ");
  static const char* const commands[] = {"compile", "run", "heatmap", "inspect", "check",
                                         "eval",    "opt", "ops",     "machine"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) {
    assert_weft(0, "%s --help", commands[i]);
    assert_prints("usage: weft", commands[i], "options:");
  }
  assert_weft(0, "--version");
  assert_prints("weft ");
}

static void slips_get_the_nearest_word(void** state) {
  (void)state;
  assert_weft(1, " ");
  assert_prints("a command is missing");
  assert_weft(1, "complie x");
  assert_prints("did you mean 'compile'?");
  assert_weft(1, "compile x.onnx --mashine wse2");
  assert_prints("did you mean --machine?");
  assert_weft(1, "compile");
  assert_prints("usage: weft compile");
  assert_weft(1, "compile " DIGITS "digits.onnx");
  assert_prints("give -o");
  assert_weft(1, "compile x -o y --seed minus");
  assert_prints("--seed takes a whole number", "'minus'");
  assert_weft(1, "compile " DIGITS "digits.onnx -o y --stop-after plased");
  assert_prints("tensor, kernels, placed, routed");
  assert_weft(1, "compile nowhere.onnx -o y");
  assert_prints("nowhere.onnx");
  assert_weft(1, "run nowhere.wafer");
  assert_prints("nowhere.wafer");
}

static void machines_are_shown_checked_and_refused(void** state) {
  (void)state;
  static const char* const presets[][2] = {{"wse1", "633"}, {"wse2", "757"}, {"wse3", "762"}, {"mesh:5x3", "5"}};
  for (size_t i = 0; i < 4; ++i) {
    assert_weft(0, "machine show %s", presets[i][0]);
    assert_prints("<?xml", presets[i][1]);
    assert_weft(0, "machine show %s -o m.xml", presets[i][0]);
    assert_weft(0, "machine check m.xml");
    assert_prints("fine");
  }
  write_file("bad.xml", "<machine name='x'>\n  <mesh width='5'/>\n</machine>\n", 49);
  assert_weft(1, "machine check bad.xml");
  assert_prints("bad.xml:");
  write_file("bad.xml", "<machine\n  <", 12);
  assert_weft(1, "machine check bad.xml");
  assert_prints("bad.xml:");
  assert_weft(1, "machine show mesh:0x4");
  assert_weft(1, "machine show wse9");
  assert_prints("wse1");
  assert_weft(0, "machine defects mesh:9x9 --defects rate=0.2,seed=3 -o d.txt");
  assert_weft(0, "machine defects mesh:9x9 --defects d.txt -o d2.txt");
  size_t a = 0, b = 0;
  uint8_t* first = read_file("d.txt", &a);
  uint8_t* second = read_file("d2.txt", &b);
  assert_int_equal(a, b);
  assert_memory_equal(first, second, a);
  free(first);
  free(second);
  write_file("bad.txt", "tile 1 1\ntile 99 1\n", 19);
  assert_weft(1, "machine defects mesh:9x9 --defects bad.txt");
  assert_prints("bad.txt:2");
}

static void operators_are_listed(void** state) {
  (void)state;
  assert_weft(0, "ops");
  static const char* const needed[] = {"Conv",
                                       "Gemm",
                                       "MatMul",
                                       "Add",
                                       "Sub",
                                       "Mul",
                                       "Div",
                                       "Relu",
                                       "Sigmoid",
                                       "Tanh",
                                       "Clip",
                                       "MaxPool",
                                       "AveragePool",
                                       "GlobalAveragePool",
                                       "BatchNormalization",
                                       "Softmax",
                                       "Reshape",
                                       "Flatten",
                                       "Transpose",
                                       "Concat",
                                       "Identity",
                                       "Constant",
                                       "Dropout"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; ++i) assert_prints(needed[i]);
  // The committed page is what the command prints.
  assert_weft(0, "ops --markdown -o operators.md");
  size_t a = 0, b = 0;
  uint8_t* made = read_file("operators.md", &a);
  uint8_t* kept = read_file(WEFT_SOURCE_DIR "/docs/operators.md", &b);
  assert_int_equal(a, b);
  assert_memory_equal(made, kept, a);
  free(made);
  free(kept);
}

static void models_that_are_none_are_refused(void** state) {
  (void)state;
  write_file("text.onnx", "this is no model\n", 17);
  assert_weft(1, "compile text.onnx -o x.wafer");
  assert_prints("text.onnx");
  size_t size = 0;
  uint8_t* digits = read_file(DIGITS "digits.onnx", &size);
  for (size_t part = 0; part < 4; ++part) {
    write_file("cut.onnx", digits, size * part / 4);
    assert_weft(1, "compile cut.onnx -o x.wafer");
    assert_prints("cut.onnx");
  }
  free(digits);
  assert_int_not_equal(access("x.wafer", F_OK), 0);
  assert_weft(1, "compile " DIGITS "digits.onnx -o x.wafer --dim batch=many");
  assert_prints("--dim batch", "'many'");
}

// Every file and function that the page names exists.
static void the_architecture_page_names_what_there_is(void** state) {
  (void)state;
  size_t size = 0, files = 0;
  char* page = (char*)read_file(WEFT_SOURCE_DIR "/docs/architecture.md", &size);
  page[size] = 0;
  for (char* at = strchr(page, '`'); at; at = strchr(at, '`')) {
    char* end = strchr(++at, '`');
    if (!end) break;
    *end = 0;
    size_t length = strlen(at);
    if (length > 2 && strchr(at, '/') && at[length - 2] == '.' && (at[length - 1] == 'c' || at[length - 1] == 'h')) {
      char path[256];
      snprintf(path, sizeof path, WEFT_SOURCE_DIR "/%s", at);
      if (access(path, R_OK)) print_error("docs/architecture.md names %s\n", at);
      assert_int_equal(access(path, R_OK), 0);
      ++files;
    }
    at = end + 1;
  }
  free(page);
  assert_true(files > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(help_lists_commands_and_exit_codes),
      cmocka_unit_test(slips_get_the_nearest_word),
      cmocka_unit_test(machines_are_shown_checked_and_refused),
      cmocka_unit_test(operators_are_listed),
      cmocka_unit_test(models_that_are_none_are_refused),
      cmocka_unit_test(the_architecture_page_names_what_there_is),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
