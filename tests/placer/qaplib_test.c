// Grids of QAPLIB: the reader of bench/qaplib, the evaluation from the raw matrices, and costs near the best known, by
// number of moves. The data is public, not shipped: WEFT_TEST_DATA or ../shared/data.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/qaplib/instance.h"
#include "placer/placer.h"

static char data[512];

static const char* const names[] = {"nug12", "nug14",   "nug15",   "nug16a",  "nug16b",  "nug17",   "nug18",   "nug20",
                                    "nug21", "nug22",   "nug24",   "nug25",   "nug27",   "nug28",   "nug30",   "scr12",
                                    "scr15", "scr20",   "sko42",   "sko49",   "sko56",   "sko64",   "sko72",   "sko81",
                                    "sko90", "sko100a", "sko100b", "sko100c", "sko100d", "sko100e", "sko100f", "tho30",
                                    "tho40", "tho150",  "wil50",   "wil100"};
enum { NAMES = sizeof names / sizeof *names };

// Best known costs come out of the .sln files by the raw matrices: the reader refuses a file where they don't.
static void every_instance_is_read_and_checked(void** state) {
  (void)state;
  for (int i = 0; i < NAMES; ++i) {
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    qap_instance_t q;
    assert_null(qap_instance_read(data, names[i], &arena, &q));
    assert_non_null(q.solution);
    assert_true(qap_cost(&q, q.solution) == q.best_known);
    assert_true(q.columns * q.rows >= q.n && q.columns * (q.rows - 1) < q.n);
    weft_arena_deinitialize(&arena);
  }
}

static void faults_are_named(void** state) {
  (void)state;
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  qap_instance_t q;
  weft_status_t status = qap_instance_read(data, "nowhere", &arena, &q);
  assert_non_null(strstr(weft_status_message(status), "nowhere.dat"));
  weft_status_free(status);
  char folder[] = "/tmp/qaplib-XXXXXX", path[600];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/odd.dat", folder);
  static const char* const texts[] = {"2\n0 1 1 0\n0 5 5", "2\n0 2 2 0\n0 5 5 0", "1", "x"};
  static const char* const words[] = {"number 7 of 8", "none of its matrices", "2 to", "number 0 of 1"};
  for (int i = 0; i < 4; ++i) {
    FILE* file = fopen(path, "w");
    fputs(texts[i], file);
    fclose(file);
    status = qap_instance_read(folder, "odd", &arena, &q);
    assert_non_null(status);
    if (!strstr(weft_status_message(status), words[i])) print_error("%s\n", weft_status_message(status));
    assert_non_null(strstr(weft_status_message(status), words[i]));
    weft_status_free(status);
  }
  unlink(path);
  rmdir(folder);
  weft_arena_deinitialize(&arena);
}

// The best of some seeds, per cent above the best known.
static double gap_of(const char* name, int32_t seeds, double effort) {
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  qap_instance_t q;
  weft_placer_problem_t problem;
  assert_null(qap_instance_read(data, name, &arena, &q));
  assert_null(qap_problem(&q, &arena, &problem));
  weft_placer_options_t options = {.seed = 1, .effort = effort, .seeds = seeds};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&problem, &options, &arena, &result));
  assert_null(weft_placer_legal(&problem, result.spot));
  assert_true(result.drift == 0); // whole numbers
  int64_t cost = 0;
  assert_null(qap_evaluate(&q, &result, &arena, &cost));
  weft_arena_deinitialize(&arena);
  return 100.0 * (double)(cost - q.best_known) / (double)q.best_known;
}

static void small_grids_come_out_at_the_best_known(void** state) {
  (void)state;
  static const char* const small[] = {"nug12", "nug15", "nug16a", "nug17", "nug18", "nug20", "scr15"};
  for (size_t i = 0; i < sizeof small / sizeof *small; ++i) {
    double gap = gap_of(small[i], 2, 0.4);
    if (gap != 0) print_error("%s: %.3f %%\n", small[i], gap);
    assert_true(gap == 0);
  }
}

static void larger_grids_come_near(void** state) {
  (void)state;
  static const char* const larger[] = {"nug30", "tho30", "sko42", "wil50"};
  for (size_t i = 0; i < sizeof larger / sizeof *larger; ++i) {
    double gap = gap_of(larger[i], 2, 0.25);
    print_message("%s: %.3f %%\n", larger[i], gap);
    assert_true(gap >= 0 && gap < 0.5);
  }
}

int main(void) {
  const char* folder = getenv("WEFT_TEST_DATA");
  snprintf(data, sizeof data, "%s/qaplib", folder ? folder : WEFT_SOURCE_DIR "/../shared/data");
  char path[600];
  snprintf(path, sizeof path, "%s/INDEX.tsv", data);
  if (access(path, R_OK)) {
    printf("skipped: no %s\n", path);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_instance_is_read_and_checked),
      cmocka_unit_test(faults_are_named),
      cmocka_unit_test(small_grids_come_out_at_the_best_known),
      cmocka_unit_test(larger_grids_come_near),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// The reader belongs to the bench program, which is no library.
#include "bench/qaplib/instance.c" // NOLINT(bugprone-suspicious-include)
#include "bench/qaplib/problem.c"  // NOLINT(bugprone-suspicious-include)
