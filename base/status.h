// Status values: every fallible function returns one, and only cli/ turns it into text and an exit code.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

// name, text, process exit code. The exit codes are those of `weft --help`.
#define WEFT_STATUS_CODES(X)                                                                                           \
  X(OK, "ok", 0)                                                                                                       \
  X(INVALID_ARGUMENT, "invalid argument", 1)                                                                           \
  X(INVALID_INPUT, "invalid input", 1)                                                                                 \
  X(NOT_FOUND, "not found", 1)                                                                                         \
  X(UNSUPPORTED, "unsupported", 1)                                                                                     \
  X(IO, "input/output error", 1)                                                                                       \
  X(DOES_NOT_FIT, "does not fit", 2)                                                                                   \
  X(UNROUTABLE, "cannot be routed", 2)                                                                                 \
  X(INTERRUPTED, "interrupted", 3)                                                                                     \
  X(TIME_LIMIT, "time limit", 3)                                                                                       \
  X(MISMATCH, "output differs", 4)                                                                                     \
  X(DEADLOCK, "no progress", 70)                                                                                       \
  X(OUT_OF_MEMORY, "out of memory", 70)                                                                                \
  X(INTERNAL, "internal error", 70)

typedef enum weft_status_code_e {
#define X(name, text, exit_code) WEFT_STATUS_##name,
  WEFT_STATUS_CODES(X)
#undef X
} weft_status_code_e;

// NULL is OK and costs nothing. Anything else is owned by the holder, who returns it, joins it or frees it.
typedef struct weft_status_impl_t* weft_status_t;

// Makes a status with a printf-formatted message. When memory runs out the result is a static out-of-memory status.
weft_status_t weft_status_make(weft_status_code_e code, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5), returns_nonnull, warn_unused_result));
// Adds a line of context on the way up; takes and returns ownership; OK stays OK.
weft_status_t weft_status_annotate(weft_status_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
// Keeps the first failure and appends the second one's text to it. Consumes both.
weft_status_t weft_status_join(weft_status_t first, weft_status_t second) __attribute__((warn_unused_result));
void weft_status_free(weft_status_t status);
// Frees the status and says whether it was OK.
bool weft_status_consume(weft_status_t status);

weft_status_code_e weft_status_code(weft_status_t status);
const char* weft_status_code_text(weft_status_code_e code);
int weft_status_code_exit(weft_status_code_e code);
// The message with its notes, a line each, no final newline. Valid while the status lives. "ok" for OK.
const char* weft_status_message(weft_status_t status);
// Where the status was made (a source file name and line of Weft); for internal errors only.
const char* weft_status_origin_file(weft_status_t status);
int weft_status_origin_line(weft_status_t status);

#define weft_ok() ((weft_status_t)NULL)
#define weft_is_ok(status) ((status) == NULL)
#define weft_error(code, ...) weft_status_make(WEFT_STATUS_##code, __FILE__, __LINE__, __VA_ARGS__)
#define WEFT_RETURN_IF_ERROR(expr)                                                                                     \
  do {                                                                                                                 \
    weft_status_t weft_status_ = (expr);                                                                               \
    if (weft_status_) return weft_status_;                                                                             \
  } while (0)
