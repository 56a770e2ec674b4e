#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weft_status_impl_t {
  weft_status_code_e code;
  const char* file; // a string literal of the caller
  int line;
  char* message;
};

// Const, so that nothing is shared that can change: it is returned, never written to and never freed.
static const struct weft_status_impl_t out_of_memory = {WEFT_STATUS_OUT_OF_MEMORY, __FILE__, __LINE__,
                                                        (char*)"out of memory"};

static weft_status_t static_out_of_memory(void) {
  return (weft_status_t)&out_of_memory;
}

static bool is_static(weft_status_t status) {
  return status == static_out_of_memory();
}

weft_status_t weft_status_make(weft_status_code_e code, const char* file, int line, const char* format, ...) {
  weft_status_t status = malloc(sizeof(*status));
  if (!status) return static_out_of_memory();
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&status->message, format, arguments);
  va_end(arguments);
  if (length < 0) {
    free(status);
    return static_out_of_memory();
  }
  status->code = code == WEFT_STATUS_OK ? WEFT_STATUS_INTERNAL : code; // a failure without a code is a fault itself
  status->file = file;
  status->line = line;
  return status;
}

// Adds "\n" + text. Without memory for it the status stays as it was: the failure matters more than its context.
static void append_line(weft_status_t status, const char* text) {
  if (is_static(status)) return;
  size_t old_length = strlen(status->message), length = strlen(text);
  char* message = realloc(status->message, old_length + length + 2);
  if (!message) return;
  message[old_length] = '\n';
  memcpy(message + old_length + 1, text, length + 1);
  status->message = message;
}

weft_status_t weft_status_annotate(weft_status_t status, const char* format, ...) {
  if (!status) return status;
  char* note = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&note, format, arguments);
  va_end(arguments);
  if (length < 0) return status;
  append_line(status, note);
  free(note);
  return status;
}

weft_status_t weft_status_join(weft_status_t first, weft_status_t second) {
  if (!first) return second;
  if (!second) return first;
  append_line(first, second->message);
  weft_status_free(second);
  return first;
}

void weft_status_free(weft_status_t status) {
  if (!status || is_static(status)) return;
  free(status->message);
  free(status);
}

bool weft_status_consume(weft_status_t status) {
  bool is_ok = weft_is_ok(status);
  weft_status_free(status);
  return is_ok;
}

weft_status_code_e weft_status_code(weft_status_t status) {
  return status ? status->code : WEFT_STATUS_OK;
}

static const struct {
  const char* text;
  int exit_code;
} code_table[] = {
#define X(name, text, exit_code) {text, exit_code},
    WEFT_STATUS_CODES(X)
#undef X
};

static bool is_known(weft_status_code_e code) {
  return (size_t)code < sizeof(code_table) / sizeof(code_table[0]);
}

const char* weft_status_code_text(weft_status_code_e code) {
  return is_known(code) ? code_table[code].text : "unknown error";
}

int weft_status_code_exit(weft_status_code_e code) {
  return code_table[is_known(code) ? code : WEFT_STATUS_INTERNAL].exit_code;
}

const char* weft_status_message(weft_status_t status) {
  return status ? status->message : "ok";
}
const char* weft_status_origin_file(weft_status_t status) {
  return status ? status->file : "";
}
int weft_status_origin_line(weft_status_t status) {
  return status ? status->line : 0;
}
