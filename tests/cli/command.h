// Runs the built `weft` in a temporary folder and keeps what it printed.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DIGITS WEFT_SOURCE_DIR "/examples/digits/"

static char printed[1 << 16]; // stdout and stderr of the last command

// Runs `weft` with shell-quoted arguments; returns the exit code, or 128 + signal.
__attribute__((format(printf, 1, 2))) static int weft(const char* format, ...) {
  char command[4096] = WEFT_BIN " ";
  size_t at = strlen(command);
  va_list arguments;
  va_start(arguments, format);
  at += (size_t)vsnprintf(command + at, sizeof command - at, format, arguments);
  va_end(arguments);
  assert_true(at + 8 < sizeof command);
  strcat(command, " 2>&1");
  FILE* pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t count = fread(printed, 1, sizeof printed - 1, pipe);
  printed[count] = 0;
  while (fgetc(pipe) != EOF) {
  }
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The last command printed all of these words (a NULL ends them); shows what it did print if not.
#define assert_prints(...) check_prints(__LINE__, (const char*[]){__VA_ARGS__, NULL})
static void check_prints(int line, const char** words) {
  for (; *words; ++words) {
    if (strstr(printed, *words)) continue;
    print_error("line %d: '%s' is missing from:\n%s\n", line, *words, printed);
    fail();
  }
}
#define assert_weft(code, ...)                                                                                         \
  do {                                                                                                                 \
    int code_ = weft(__VA_ARGS__);                                                                                     \
    if (code_ != (code)) {                                                                                             \
      print_error("line %d: exit code %d, expected %d:\n%s\n", __LINE__, code_, (code), printed);                      \
      fail();                                                                                                          \
    }                                                                                                                  \
  } while (0)

__attribute__((unused)) static void write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

__attribute__((unused)) static uint8_t* read_file(const char* path, size_t* out_size) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  uint8_t* data = malloc((size_t)size + 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, (size_t)size, file), (size_t)size);
  fclose(file);
  *out_size = (size_t)size;
  return data;
}

static int enter_folder(void** state) {
  static char folder[] = "/tmp/weft_cli_XXXXXX";
  *state = mkdtemp(folder);
  return *state && !chdir(folder) ? 0 : -1;
}
static int leave_folder(void** state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", (const char*)*state);
  return chdir("/") || system(command);
}
