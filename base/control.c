#include "base/control.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

double weft_control_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_cancelled(const weft_control_t* control) {
  return control->cancelled && *control->cancelled;
}

static bool is_late(const weft_control_t* control) {
  return control->deadline != 0 && weft_control_now() >= control->deadline;
}

bool weft_control_should_stop(const weft_control_t* control) {
  return control && (is_cancelled(control) || is_late(control));
}

weft_status_t weft_control_check(const weft_control_t* control, const char* stage) {
  if (!control) return weft_ok();
  if (is_cancelled(control)) return weft_error(INTERRUPTED, "%s: interrupted", stage);
  if (is_late(control)) return weft_error(TIME_LIMIT, "%s: the time limit was reached", stage);
  return weft_ok();
}

void weft_control_progress(const weft_control_t* control, const char* stage, uint64_t done, uint64_t total) {
  if (control && control->progress) control->progress(control->self, stage, done, total);
}

void weft_control_table(const weft_control_t* control, const char* stage, const char* format, ...) {
  if (!control || !control->table) return;
  char line[1024]; // far wider than a table; longer lines are cut
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (length >= 0) control->table(control->self, stage, line);
}
