#include "ir/fabric/text_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

void weft_scan_initialize(weft_allocator_t allocator, const char* path, const char* data, size_t size,
                          weft_scan_t* out_scan) {
  *out_scan = (weft_scan_t){.path = path, .at = data, .end = data + size, .line = 1};
  weft_text_initialize(allocator, &out_scan->string);
}

void weft_scan_deinitialize(weft_scan_t* scan) {
  weft_status_free(scan->status);
  scan->status = NULL;
  weft_text_deinitialize(&scan->string);
}

void weft_scan_fail(weft_scan_t* scan, const char* format, ...) {
  if (scan->status) return;
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  scan->status = weft_error(INVALID_INPUT, "%s:%" PRId64 ": %s", scan->path, scan->line, message);
}

void weft_scan_keep(weft_scan_t* scan, weft_status_t status) {
  status = weft_status_annotate(status, "at %s:%" PRId64, scan->path, scan->line);
  scan->status = weft_status_join(scan->status, status);
}

// ASCII, whatever the locale.
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_word(char c) {
  return is_alphanumeric(c) || c == '_' || c == '.';
}
static bool is_printable(char c) {
  return c > ' ' && c <= '~';
}

static void skip(weft_scan_t* scan) {
  for (; scan->at < scan->end; ++scan->at) {
    if (*scan->at == '#') {
      while (scan->at < scan->end && *scan->at != '\n') ++scan->at;
      if (scan->at == scan->end) return;
    }
    if (*scan->at == '\n')
      ++scan->line;
    else if (*scan->at != ' ' && *scan->at != '\t' && *scan->at != '\r')
      return;
  }
}

// What stands there, for messages: printable, cut.
static const char* found(const weft_scan_t* scan, char out_text[40]) {
  if (scan->at == scan->end) return "the end of the file";
  size_t count = 0;
  out_text[count++] = '\'';
  for (const char* c = scan->at; c < scan->end && count < 32 && *c != ' ' && (*c < '\t' || *c > '\r'); ++c)
    out_text[count++] = is_printable(*c) ? *c : '?';
  memcpy(out_text + count, "'", 2);
  return out_text;
}

static void fail_expected(weft_scan_t* scan, const char* what) {
  char text[40];
  weft_scan_fail(scan, "expected %s, found %s", what, found(scan, text));
}

// Behind the word, if it is the next one; else NULL.
static const char* match(weft_scan_t* scan, const char* word) {
  if (scan->status) return NULL;
  skip(scan);
  const char *at = scan->at, *w = word;
  for (; *w; ++w, ++at)
    if (at == scan->end || *at != *w) return NULL;
  // A word ends where its letters end; a mark may be followed by anything.
  return !is_alphanumeric(w[-1]) || at == scan->end || !is_word(*at) ? at : NULL;
}

bool weft_scan_is(weft_scan_t* scan, const char* word) {
  return match(scan, word) != NULL;
}

bool weft_scan_accept(weft_scan_t* scan, const char* word) {
  const char* end = match(scan, word);
  if (end) scan->at = end;
  return end != NULL;
}

void weft_scan_expect(weft_scan_t* scan, const char* word) {
  char text[40];
  if (!weft_scan_accept(scan, word)) weft_scan_fail(scan, "expected '%s', found %s", word, found(scan, text));
}

// Digits without sign; false when there are none or they overflow.
static bool digits(weft_scan_t* scan, uint64_t* out_value) {
  const char* begin = scan->at;
  *out_value = 0;
  for (; scan->at < scan->end && is_digit(*scan->at); ++scan->at)
    if (!weft_checked_mul(*out_value, (uint64_t)10, out_value) ||
        !weft_checked_add(*out_value, (uint64_t)(*scan->at - '0'), out_value))
      return false;
  return scan->at > begin;
}

void weft_scan_end(weft_scan_t* scan) {
  if (scan->status) return;
  skip(scan);
  if (scan->at < scan->end) fail_expected(scan, "the end of the file");
}

bool weft_scan_accept_letter(weft_scan_t* scan, char letter) {
  if (scan->status) return false;
  skip(scan);
  if (scan->end - scan->at < 2 || scan->at[0] != letter || !is_digit(scan->at[1])) return false;
  ++scan->at;
  return true;
}

int64_t weft_scan_integer(weft_scan_t* scan, const char* what, int64_t lo, int64_t hi) {
  if (scan->status) return 0;
  skip(scan);
  const char* begin = scan->at;
  bool negative = weft_scan_accept(scan, "-");
  uint64_t size;
  bool valid = digits(scan, &size) && size <= (uint64_t)INT64_MAX + negative;
  int64_t value = negative ? (int64_t)-size : (int64_t)size;
  if (valid && value >= lo && value <= hi) return value;
  scan->at = begin;
  char text[40];
  weft_scan_fail(scan, "expected %s in %" PRId64 "..%" PRId64 ", found %s", what, lo, hi, found(scan, text));
  return 0;
}

int32_t weft_scan_index(weft_scan_t* scan, const char* what, int64_t count) {
  if (!scan->status && count <= 0) fail_expected(scan, "nothing to refer to");
  return (int32_t)weft_scan_integer(scan, what, 0, weft_min_i64(count - 1, INT32_MAX));
}

int32_t weft_scan_count(weft_scan_t* scan, const char* what, size_t bytes) {
  int64_t value = weft_scan_integer(scan, what, 0, INT32_MAX);
  size_t room = (size_t)(scan->end - scan->at) / bytes;
  if (scan->status || (uint64_t)value <= room) return scan->status ? 0 : (int32_t)value;
  weft_scan_fail(scan, "%" PRId64 " %s, but the rest of the file has room for at most %zu", value, what, room);
  return 0;
}

uint64_t weft_scan_unsigned(weft_scan_t* scan, const char* what) {
  uint64_t value = 0;
  if (scan->status) return 0;
  skip(scan);
  const char* begin = scan->at;
  if (digits(scan, &value)) return value;
  scan->at = begin;
  fail_expected(scan, what);
  return 0;
}

double weft_scan_real(weft_scan_t* scan, const char* what) {
  if (scan->status) return 0;
  skip(scan);
  char number[64], *end = number;
  size_t count = 0, left = (size_t)(scan->end - scan->at);
  while (count < left && count + 1 < sizeof(number) &&
         (is_word(scan->at[count]) || scan->at[count] == '-' || scan->at[count] == '+')) {
    number[count] = scan->at[count];
    ++count;
  }
  number[count] = '\0';
  double value = strtod(number, &end);
  if (count == 0 || *end != '\0') {
    fail_expected(scan, what);
    return 0;
  }
  scan->at += count;
  return value;
}

void weft_scan_name(weft_scan_t* scan, const char* what, char* out_word, size_t size) {
  out_word[0] = '\0';
  if (scan->status) return;
  skip(scan);
  size_t count = 0, left = (size_t)(scan->end - scan->at);
  while (count < left && is_word(scan->at[count])) ++count;
  if (count == 0) {
    fail_expected(scan, what);
    return;
  }
  size_t kept = count < size ? count : size - 1;
  memcpy(out_word, scan->at, kept);
  out_word[kept] = '\0';
  scan->at += count;
}

int32_t weft_scan_word(weft_scan_t* scan, const char* what, const char* const* words, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (weft_scan_accept(scan, words[i])) return i;
  if (scan->status) return 0;
  char list[256], text[40];
  size_t used = 0;
  list[0] = '\0';
  for (int32_t i = 0; i < count && used < sizeof(list); ++i)
    used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", words[i]);
  weft_scan_fail(scan, "expected %s (%s), found %s", what, list, found(scan, text));
  return 0;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The character after a backslash; 0 when it is none of ours.
static char escaped(weft_scan_t* scan) {
  if (scan->at == scan->end) return '\0';
  char c = *scan->at++;
  if (c == '"' || c == '\\') return c;
  if (c != 'x' || scan->end - scan->at < 2) return '\0';
  int high = hex_value(scan->at[0]), low = hex_value(scan->at[1]);
  scan->at += 2;
  return high < 0 || low < 0 ? '\0' : (char)(high << 4 | low);
}

const char* weft_scan_string(weft_scan_t* scan, const char* what) {
  scan->string.count = 0;
  if (scan->status) return "";
  skip(scan);
  if (scan->at == scan->end || *scan->at != '"') fail_expected(scan, what);
  if (scan->status) return "";
  const char* begin = scan->at++;
  weft_status_t status = weft_text_append(&scan->string, "", 0);
  while (!status && scan->at < scan->end && *scan->at != '"' && *scan->at != '\n' && *scan->at != '\0') {
    char c = *scan->at++;
    if (c == '\\' && !(c = escaped(scan))) {
      weft_scan_fail(scan, "expected \\\", \\\\ or \\xNN (01..ff) in %s", what);
      return "";
    }
    status = weft_text_append(&scan->string, &c, 1);
  }
  if (status) {
    weft_scan_keep(scan, status);
  } else if (scan->at == scan->end || *scan->at != '"') {
    scan->at = begin;
    weft_scan_fail(scan, "%s is not closed by a quote on its line", what);
  } else {
    ++scan->at;
  }
  return scan->status ? "" : scan->string.data;
}

bool weft_scan_item(weft_scan_t* scan, int64_t index, int64_t limit, const char* what) {
  if (index == 0) {
    weft_scan_expect(scan, "[");
    if (weft_scan_accept(scan, "]")) return false;
  } else {
    if (weft_scan_accept(scan, "]")) return false;
    weft_scan_expect(scan, ",");
  }
  if (!scan->status && index >= limit) weft_scan_fail(scan, "more than %" PRId64 " %s", limit, what);
  return !scan->status;
}
