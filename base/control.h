// What long work listens to and reports to: cancellation, time limit, threads, progress. Passed down, never global.
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// Receives progress: `done` of `total` units of `stage` (total 0: unknown). Called from one thread, at most some times a second.
typedef void (*weft_progress_fn)(void* self, const char* stage, uint64_t done, uint64_t total);
// Receives a table line (annealing temperatures, routing iterations), without newline.
typedef void (*weft_table_fn)(void* self, const char* stage, const char* line);

typedef struct weft_control_t {
  const volatile sig_atomic_t* cancelled; // non-zero: stop soon and keep the best so far; may be NULL
  double deadline;                        // weft_control_now() value after which to stop; 0: none
  int32_t threads;                        // 0: as many as cores. Never changes results
  void* self;                             // passed to the functions below; each may be NULL
  weft_progress_fn progress;
  weft_table_fn table;
} weft_control_t;

double weft_control_now(void); // seconds, monotonic
bool weft_control_should_stop(const weft_control_t* control); // cancelled or past the deadline; NULL: never
// INTERRUPTED or TIME_LIMIT naming `stage` when it should stop, else OK.
weft_status_t weft_control_check(const weft_control_t* control, const char* stage);
void weft_control_progress(const weft_control_t* control, const char* stage, uint64_t done, uint64_t total);
void weft_control_table(const weft_control_t* control, const char* stage, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
