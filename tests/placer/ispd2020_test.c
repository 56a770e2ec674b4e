// The programs of bench/ispd2020 and bench/ispd2020-score: a solution costs what both say, illegal solutions are
// refused with a message that says why, and the contest's own samples score what they should.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char bench[2048], folder[64] = "/tmp/weft-ispd2020-XXXXXX", printed[1 << 14];

__attribute__((format(printf, 1, 2))) static int run(const char* format, ...) {
  char command[8192];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(command, sizeof command - 8, format, arguments);
  va_end(arguments);
  assert_true(length > 0 && (size_t)length < sizeof command - 8);
  strcat(command, " 2>&1");
  FILE* pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t size = fread(printed, 1, sizeof printed - 1, pipe);
  printed[size] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void write_text(const char* name, const char* text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

// The description's example, with the traps of the published files: spaces in brackets, tabs, a name twice, shapes that
// don't match, no newline at the end.
static const char problem[] =
    "(*\ntest=example\nwidth=633\nheight=633\nwdeltat=1\nwlength=2\nwadapter=0\nmemlimit=24576\n*)\n"
    "(* Node Definitions *)\n"
    "output[0] n=[28 28 512] name='y'\n"
    "input[1] n=[ 56 56 256 ] name='x' name='k1'\n"
    "cblock[ 2] f=512 h=56 w=56\n"
    "dblock[3] f=512 h=28 w=28\n"
    "conv[4] W=56 H=56 R=3 S=3 C=64 K=64 T=2 U=2 name='k4'\n"
    "(* Connectivity *)\n"
    "input[1]:_\t->\tconv[4]:x, shape:[56][56][256]\n"
    "cblock[ 2]:y   -> dblock[3]:x, shape:[28][28][512]\n"
    "dblock[3]:y -> output[0]:_, shape:[28][28][512]\n"
    "conv[4]:y -> cblock[2]:x, shape:[7][7][7]";

#define CONV "k4 = conv( 56 56 64 64 3 3 2 2 4 4 8 16 )\nk4 : place(0 0 R0)\n"
#define CBLOCK "k2 = cblock( 56 56 512 4 4 8 8 8 8 32 32 8 19 )\nk2 : name('k2)\nk2 : place(150 0 R0)\n"
#define DBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\nk3 : place(0 200 R90)\n"

static int score(const char* solution) {
  write_text("s.paint", solution);
  return run("'%s/ispd2020-score' '%s/p.kgraph' '%s/s.paint'", bench, folder, folder);
}

static void scores_are_those_of_the_description(void** state) {
  (void)state;
  write_text("p.kgraph", problem);
  assert_int_equal(score("include \"common.paint\"\n" CONV CBLOCK DBLOCK "kmap = union( k4 k2 k3 )"), 0);
  // By hand: conv 48x144, time 14 14 8 4 9 / 4; cblock 273x144, its 3x3 14 14 16 4 9 / 4 and its last 14 14 32 27 / 4;
  // dblock 144x144 turned, its first 7 7 64 16 = 50176. Centres (24,72), (286.5,72), (72,272).
  assert_non_null(strstr(printed, "time 50176  wire 677  score 51530 "));
}

static void illegal_solutions_are_refused(void** state) {
  (void)state;
  static const struct {
    const char *solution, *message;
  } cases[] = {
      {CONV CBLOCK, "k3: the solution doesn't size it"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\n", "k3: the solution doesn't place it"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\nk3 : place(400 0 R0)\n", "k2 and k3 overlap"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\nk3 : place(0 500 R0)\n", "is not inside 633x633"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\nk3 : place(-1 200 R0)\n", "is not inside 633x633"},
      {CONV CBLOCK "k3 = dblock( 28 28 256 4 4 8 8 8 8 32 8 )\nk3 : place(0 200 R0)\n", "formal argument 3 is 256"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 29 4 8 8 8 8 32 8 )\nk3 : place(0 200 R0)\n", "h' = 29"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 0 8 32 8 )\nk3 : place(0 200 R0)\n", "c' = 0 of convolution 3"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 129 32 8 )\nk3 : place(0 200 R0)\n", "k' = 129 of convolution 1"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 1 1 1 1 1 1 1 1 )\nk3 : place(0 200 R0)\n", "a tile has 24576"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 )\nk3 : place(0 200 R0)\n", "expected 11 whole numbers"},
      {CONV CBLOCK "k3 = cblock( 28 28 512 4 4 8 8 8 8 32 32 8 19 )\n", "makes it a cblock"},
      {CONV CBLOCK DBLOCK "k3 : place(0 200 R0)\n", "placed twice"},
      {CONV CBLOCK DBLOCK DBLOCK, "twice"},
      {CONV CBLOCK "k3 = dblock( 28 28 512 4 4 8 8 8 8 32 8 )\nk3 : place(0 200 R45)\n", "can't be turned so"},
      {CONV CBLOCK DBLOCK "k9 : place(0 0 R0)\n", "there is no kernel k9"},
  };
  write_text("p.kgraph", problem);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int code = score(cases[i].solution);
    if (code != 1 || !strstr(printed, cases[i].message)) fail_msg("case %zu: exit code %d: %s", i, code, printed);
  }
}

static double number_after(const char* text, const char* word) {
  const char* at = strstr(text, word);
  assert_non_null(at);
  return strtod(at + strlen(word), NULL);
}

static void solutions_cost_what_both_programs_say(void** state) {
  (void)state;
  write_text("p.kgraph", problem);
  static const char* const limits[] = {"--time 4", "--moves 4000"};
  for (int i = 0; i < 2; ++i) {
    int code = run("'%s/ispd2020' '%s/p.kgraph' -o '%s/o.paint' %s --seed 3", bench, folder, folder, limits[i]);
    if (code) fail_msg("%s: exit code %d: %s", limits[i], code, printed);
    double time = number_after(printed, "time "), wire = number_after(printed, "wire "),
           total = number_after(printed, "score "), bound = number_after(printed, "bound on score ");
    assert_true(total == time + 2 * wire && bound <= total && bound > 0);
    if (!i) assert_true(number_after(printed, "seconds ") < 5);
    assert_int_equal(run("'%s/ispd2020-score' '%s/p.kgraph' '%s/o.paint'", bench, folder, folder), 0);
    assert_true(number_after(printed, "time ") == time && number_after(printed, "wire ") == wire &&
                number_after(printed, "score ") == total);
  }
}

static void malformed_problems_are_named_by_line(void** state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {{"(* width=9\nheight=9 *)\nconv[1] W=1 H=1 R=1 S=1 C=1 K=1\n", ":3: a formal argument"},
               {"(* width=9\nheight=9 *)\nblob[1] W=1\n", ":3: unknown kind"},
               {"(* width=9\nheight=9 *)\ndblock[1] h=2 w=2 f=8\ndblock[1]:y -> dblock[7]:x", ":4: a connection names"},
               {"(* width=9\nheight=9", "the comment has no end"},
               {"dblock[1] h=2 w=2 f=8", "width and height must be set"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    write_text("bad.kgraph", cases[i].text);
    int code = run("'%s/ispd2020' '%s/bad.kgraph' --time 1", bench, folder);
    if (code != 1 || !strstr(printed, cases[i].message)) fail_msg("case %zu: exit code %d: %s", i, code, printed);
  }
}

static void published_samples_score_what_they_should(void** state) {
  static const struct {
    const char *problem, *solution, *score;
  } samples[] = {{"C", "C1", "time 144384  wire 10209.5  score 154593.5 "},
                 {"C", "C5", "time 144256  wire 10415.5  score 154671.5 "},
                 {"C", "C_placement", "time 144384  wire 10213.5  score 154597.5 "},
                 {"A", "C9", "time 72576  wire 2041.5  score 74617.5 "},
                 {"D", "ex_placement", "time 56448  wire 5443.5  score 61891.5 "}};
  const char* data = *state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; ++i) {
    assert_int_equal(run("'%s/ispd2020-score' '%s/%s.kgraph' '%s/%s.paint'", bench, data, samples[i].problem, data,
                         samples[i].solution),
                     0);
    if (!strstr(printed, samples[i].score)) fail_msg("%s: %s", samples[i].solution, printed);
  }
  assert_int_equal(run("'%s/ispd2020-score' '%s/B.kgraph' '%s/C1.paint'", bench, data, data), 1);
}

int main(void) {
  // The programs lie in the build folder's bench/.
  ssize_t length = readlink("/proc/self/exe", bench, sizeof bench - 32);
  if (length < 0) return 1;
  bench[length] = 0;
  for (int up = 0; up < 2; ++up) *strrchr(bench, '/') = 0;
  strcat(bench, "/bench");
  char path[4096];
  snprintf(path, sizeof path, "%s/ispd2020-score", bench);
  if (access(path, X_OK) != 0) {
    printf("skipped: no %s\n", path);
    return 77;
  }
  if (!mkdtemp(folder)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scores_are_those_of_the_description),
      cmocka_unit_test(illegal_solutions_are_refused),
      cmocka_unit_test(solutions_cost_what_both_programs_say),
      cmocka_unit_test(malformed_problems_are_named_by_line),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  const char* data = getenv("WEFT_TEST_DATA");
  snprintf(path, sizeof path, "%s/ispd2020", data ? data : WEFT_SOURCE_DIR "/../shared/data");
  bool found = access(path, R_OK) == 0;
  if (found) {
    const struct CMUnitTest published[] = {
        {"published_samples_score_what_they_should", published_samples_score_what_they_should, NULL, NULL, path}};
    failed += cmocka_run_group_tests_name("published", published, NULL, NULL);
  } else {
    printf("skipped: published samples: no %s; set WEFT_TEST_DATA\n", path);
  }
  run("rm -r '%s'", folder);
  return failed ? 1 : found ? 0 : 77;
}
