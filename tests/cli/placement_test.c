// Placement as the user steers and watches it: constraints, seeds, the film, Ctrl-C.
#include "tests/cli/command.h"

#define PLACE "compile " DIGITS "digits.onnx --machine mesh:24x24 --defects " DIGITS "defects.txt "

static char* read_text(const char* path) {
  size_t size = 0;
  uint8_t* data = read_file(path, &size);
  char* text = realloc(data, size + 1);
  assert_non_null(text);
  text[size] = 0;
  return text;
}

static void constraints_hold_or_say_why_not(void** state) {
  (void)state;
  static const char good[] = "fix *stem* 0,0,8x8 # near the port\nkeep-out 0,20,24x4\nadjacent *stem* *body*\n";
  write_file("good.txt", good, sizeof good - 1);
  assert_weft(0, PLACE "-o placed.fabric --stop-after placed --constraints good.txt");
  assert_weft(0, "check placed.fabric --machine mesh:24x24 --defects " DIGITS "defects.txt");
  static const char small[] = "fix * 3,3,2x1\n";
  write_file("small.txt", small, sizeof small - 1);
  assert_weft(2, PLACE "-o no.fabric --stop-after placed --constraints small.txt");
  assert_prints("small.txt:1", "4 kernels have to lie in 2x1", "would do");
  static const char unknown[] = "keep-out 0,0,2x2 Conv:/stem/Comv\n";
  write_file("unknown.txt", unknown, sizeof unknown - 1);
  assert_weft(1, PLACE "-o no.fabric --stop-after placed --constraints unknown.txt");
  assert_prints("unknown.txt:1", "did you mean 'Conv:/stem/Conv'");
  assert_weft(1, PLACE "-o no.fabric --stop-after placed --constraints nowhere.txt");
  assert_prints("nowhere.txt");
  // They are for placement.
  assert_weft(1, "compile placed.fabric -o no.wafer --machine mesh:24x24 --defects " DIGITS
                 "defects.txt --constraints good.txt");
  assert_prints("--constraints", "has behind it");
  assert_weft(1, PLACE "-o no.fabric --stop-after kernels --placement-animation film.svg");
  assert_prints("--placement-animation", "--stop-after");
  assert_int_not_equal(access("no.fabric", F_OK), 0);
}

static void seeds_and_tables_and_films(void** state) {
  (void)state;
  assert_weft(0, PLACE "-o a.fabric --stop-after placed --seeds 4 --threads 2 --verbose --placement-animation film.svg "
                       "--report report.json");
  assert_prints("best of 4 seeds is", "the worst has", "accepted", "range", "moves", " T ", "wire");
  char* film = read_text("film.svg");
  assert_non_null(strstr(film, "placement of 4 kernels"));
  assert_non_null(strstr(film, "<animate"));
  free(film);
  char* report = read_text("report.json");
  static const char* const words[] = {"\"seeds\": 4", "\"best_seed\"", "\"worst_seed_cost\"", "\"spread_per_cent\""};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) assert_non_null(strstr(report, words[i]));
  free(report);
  // Watching changes nothing.
  assert_weft(0, PLACE "-o b.fabric --stop-after placed --seeds 4 --threads 1 --quiet");
  size_t sizes[2];
  uint8_t *a = read_file("a.fabric", &sizes[0]), *b = read_file("b.fabric", &sizes[1]);
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(a, b, sizes[0]);
  free(a);
  free(b);
}

// The first Ctrl-C ends placement, not the command: it goes on with the best so far.
static void one_interrupt_ends_placement_only(void** state) {
  (void)state;
  char command[1024];
  snprintf(command, sizeof command,
           "timeout --foreground --preserve-status -s INT 1 %s " PLACE "-o d.wafer --effort 1e6 2>out.txt", WEFT_BIN);
  int status = system(command);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  char* said = read_text("out.txt");
  assert_non_null(strstr(said, "interrupted: goes on with the best placement so far"));
  free(said);
  assert_weft(0, "check d.wafer");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constraints_hold_or_say_why_not),
      cmocka_unit_test(seeds_and_tables_and_films),
      cmocka_unit_test(one_interrupt_ends_placement_only),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
