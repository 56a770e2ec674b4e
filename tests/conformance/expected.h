// The committed list of cases that do not pass, with the reason: what a run is compared with.
#pragma once
#include "base/text.h"
#include "tests/conformance/case.h"

typedef struct expected_t {
  int32_t count;
  const char** name; // sorted
  const char** reason;
} expected_t;
// "NAME<tab>REASON" lines; # comments. A missing file is an empty list.
weft_status_t expected_read(weft_arena_t* arena, const char* path, expected_t* out_expected);
// The reason that the list has for a case, or NULL.
const char* expected_find(const expected_t* expected, const char* name);
// A record's reason as the list has it, "" for a case that passed.
weft_status_t expected_reason(weft_arena_t* arena, const record_t* record, const char** out_reason);
// A list's line, or nothing for a case that passed.
weft_status_t expected_append(weft_text_t* list, const char* name, const char* reason);
