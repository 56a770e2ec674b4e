#include "tests/conformance/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 64, WALL_FACTOR = 10 };

typedef struct job_t {
  pid_t child; // 0: free
  int32_t index;
} job_t;

static void run_child(weft_tensor_context_t* context, const pool_options_t* options, const char* folder,
                      const char* name, record_t* record) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Processor time, not wall time: a busy computer must not change results. The alarm is for a case that sleeps.
  rlim_t seconds = (rlim_t)ceil(options->seconds);
  setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds + 1});
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)options->bytes, (rlim_t)options->bytes});
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  alarm((unsigned)(seconds * WALL_FACTOR));
  if (!options->is_verbose) {
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  }
  wafer_run_case(context, &options->wafer, folder, name, record);
  _exit(0); // the parent's buffers and handlers are not this child's to run
}

static void judge_end(int status, record_t* record) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  bool is_late = number == SIGXCPU || number == SIGALRM || number == SIGKILL;
  record->verdict = is_late ? VERDICT_TIME_LIMIT : VERDICT_CRASH;
  snprintf(record->detail, sizeof record->detail, "in step %s: %s %d", step_text[record->step],
           number ? "signal" : "exit code", number ? number : WEXITSTATUS(status));
}

// Waits for one child to end.
static weft_status_t reap(const pool_options_t* options, job_t* jobs, record_t* records, bool* ended) {
  int status = 0;
  struct rusage usage;
  pid_t child;
  do child = wait4(-1, &status, 0, &usage);
  while (child < 0 && errno == EINTR);
  if (child < 0) return weft_error(INTERNAL, "wait: %s", strerror(errno));
  for (int32_t i = 0; i < MAX_JOBS; ++i) {
    if (jobs[i].child != child) continue;
    record_t* record = &records[jobs[i].index];
    judge_end(status, record);
    wafer_clean(&options->wafer, (int)child);
    record->seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                      ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e-6;
    ended[jobs[i].index] = true;
    jobs[i].child = 0;
  }
  return weft_ok();
}

static weft_status_t run_all(weft_tensor_context_t* context, const pool_options_t* options, const char* folder,
                             const case_names_t* names, record_t* records, bool* ended, pool_done_fn done, void* self) {
  job_t jobs[MAX_JOBS] = {0};
  int32_t limit = options->jobs < MAX_JOBS ? options->jobs : MAX_JOBS, running = 0, shown = 0;
  for (int32_t next = 0; next < names->count || running;) {
    if (next < names->count && running < limit) {
      int32_t free_job = 0;
      while (jobs[free_job].child) ++free_job;
      fflush(NULL);
      pid_t child = fork();
      if (child < 0) return weft_error(INTERNAL, "fork: %s", strerror(errno));
      if (child == 0) run_child(context, options, folder, names->name[next], &records[next]);
      jobs[free_job] = (job_t){child, next++};
      ++running;
      continue;
    }
    WEFT_RETURN_IF_ERROR(reap(options, jobs, records, ended));
    --running;
    for (; shown < names->count && ended[shown]; ++shown) done(self, names->name[shown], &records[shown]);
  }
  return weft_ok();
}

weft_status_t pool_run(weft_tensor_context_t* context, const pool_options_t* options, const char* folder,
                       const case_names_t* names, pool_done_fn done, void* self) {
  size_t size = ((size_t)names->count + 1) * sizeof(record_t);
  bool* ended = NULL;
  weft_allocator_t allocator = weft_allocator_system();
  record_t* records = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (records == MAP_FAILED) return weft_error(OUT_OF_MEMORY, "no memory for %d records", names->count);
  weft_status_t status = weft_allocator_calloc(allocator, (size_t)names->count + 1, sizeof *ended, (void**)&ended);
  if (!status) status = run_all(context, options, folder, names, records, ended, done, self);
  weft_allocator_free(allocator, ended);
  munmap(records, size);
  return status;
}
