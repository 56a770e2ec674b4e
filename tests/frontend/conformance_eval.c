// How many of the given test cases import and match: conformance_eval FOLDER... prints a line each and a summary. Each
// case runs in a process of its own, so that one that crashes the JIT is counted as such. Not part of ctest.
#include <sys/wait.h>

#include "case.h"

static const char* const names[] = {"match",      "MISMATCH", "unsupported", "import-error",
                                    "eval-error", "crash",    "match-bound"};
// BOUND: matches once inputs are constants: the parameters, or else all of them.
enum { CRASH = CASE_EVAL_ERROR + 1, BOUND, RESULT_COUNT };

static int run_child(const char* folder) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    case_report_t report = run_case(folder, 1e-3, 1e-4, BIND_NOTHING);
    int result = (int)report.result;
    for (case_bind_e bind = BIND_PARAMETERS; result == CASE_UNSUPPORTED && bind <= BIND_ALL; ++bind) {
      case_report_t bound = run_case(folder, 1e-3, 1e-4, bind);
      if (bound.result == CASE_MATCH) result = BOUND;
      if (bound.result == CASE_MISMATCH) result = CASE_MISMATCH;
      if (bound.result != CASE_UNSUPPORTED && bound.result != CASE_IMPORT_ERROR) report = bound;
    }
    for (char* at = report.message; *at; ++at)
      if (*at == '\n') *at = ' ';
    const char* slash = strrchr(folder, '/');
    printf("%s %s %s\n", names[result], slash ? slash + 1 : folder, report.message);
    fflush(stdout);
    _exit(result);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return CRASH;
  if (WIFEXITED(status) && WEXITSTATUS(status) < RESULT_COUNT) return WEXITSTATUS(status);
  printf("crash %s\n", folder);
  return CRASH;
}

int main(int count, char** folders) {
  int totals[RESULT_COUNT] = {0};
  for (int i = 1; i < count; ++i) totals[run_child(folders[i])]++;
  printf("total %d:", count - 1);
  for (int i = 0; i < RESULT_COUNT; ++i) printf(" %s %d", names[i], totals[i]);
  printf("\n");
  return 0;
}
