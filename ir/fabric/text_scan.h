// The scanner under the reader of the text form: the source is untrusted. The first failure sticks and names path:line;
// after it everything reads as zero, nothing advances and lists end.
#pragma once
#include "base/array.h"
#include "base/text.h"

typedef struct weft_scan_t {
  const char* path; // for messages
  const char *at, *end;
  int64_t line;
  weft_status_t status; // the caller's to take
  weft_text_t string;   // the last quoted string
} weft_scan_t;

void weft_scan_initialize(weft_allocator_t allocator, const char* path, const char* data, size_t size,
                          weft_scan_t* out_scan);
void weft_scan_deinitialize(weft_scan_t* scan); // frees the status, if it is still there
void weft_scan_fail(weft_scan_t* scan, const char* format, ...) __attribute__((format(printf, 2, 3)));
void weft_scan_keep(weft_scan_t* scan, weft_status_t status); // a failure from elsewhere, noted with path:line

bool weft_scan_is(weft_scan_t* scan, const char* word);     // is this the next word or mark? Takes nothing
bool weft_scan_accept(weft_scan_t* scan, const char* word); // takes it if it is
void weft_scan_expect(weft_scan_t* scan, const char* word);
void weft_scan_end(weft_scan_t* scan);                        // nothing may follow
bool weft_scan_accept_letter(weft_scan_t* scan, char letter); // takes it if a digit follows: the d of d0
int64_t weft_scan_integer(weft_scan_t* scan, const char* what, int64_t lo, int64_t hi); // lo..hi inclusive
int32_t weft_scan_index(weft_scan_t* scan, const char* what, int64_t count);            // in [0, count)
// A number of items still to come, each at least `bytes` bytes of text long: it can't be more than the file has room
// for.
int32_t weft_scan_count(weft_scan_t* scan, const char* what, size_t bytes);
uint64_t weft_scan_unsigned(weft_scan_t* scan, const char* what);
double weft_scan_real(weft_scan_t* scan, const char* what);
int32_t weft_scan_word(weft_scan_t* scan, const char* what, const char* const* words, int32_t count); // which of them
// Copies the next bare word (letters, digits, `_`, `.`) into out_word, cut at its size.
void weft_scan_name(weft_scan_t* scan, const char* what, char* out_word, size_t size);
const char* weft_scan_string(weft_scan_t* scan, const char* what); // never NULL; valid until the next one
// for (n = 0; weft_scan_item(scan, n, limit, what); ++n): the items of `[a, b, ..]`, the brackets included.
bool weft_scan_item(weft_scan_t* scan, int64_t index, int64_t limit, const char* what);
