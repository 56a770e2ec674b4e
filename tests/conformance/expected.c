#include "tests/conformance/expected.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

weft_status_t expected_read(weft_arena_t* arena, const char* path, expected_t* out_expected) {
  *out_expected = (expected_t){0};
  weft_mapping_t mapping;
  weft_status_t status = weft_file_map(path, &mapping);
  if (weft_status_code(status) == WEFT_STATUS_NOT_FOUND) {
    weft_status_free(status);
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(status);
  char* text = NULL;
  status = weft_arena_allocate(arena, mapping.size + 1, 1, (void**)&text);
  if (!status) memcpy(text, mapping.data, mapping.size);
  weft_file_unmap(&mapping);
  WEFT_RETURN_IF_ERROR(status);
  size_t lines = 0;
  for (const char* at = text; *at; ++at) lines += *at == '\n';
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, lines + 1, &out_expected->name));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, lines + 1, &out_expected->reason));
  char* rest = NULL;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char* tab = strchr(line, '\t');
    if (line[0] == '#' || !tab) continue;
    *tab = 0;
    out_expected->name[out_expected->count] = line;
    out_expected->reason[out_expected->count++] = tab + 1;
  }
  return weft_ok();
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

const char* expected_find(const expected_t* expected, const char* name) {
  if (!expected->count) return NULL;
  const char** found = bsearch(&name, expected->name, (size_t)expected->count, sizeof *expected->name, compare_names);
  return found ? expected->reason[found - expected->name] : NULL;
}

weft_status_t expected_reason(weft_arena_t* arena, const record_t* record, const char** out_reason) {
  *out_reason = "";
  if (record->verdict == VERDICT_PASSED) return weft_ok();
  return weft_arena_printf(arena, out_reason, "%s%s%s", verdict_text[record->verdict], record->subject[0] ? " " : "",
                           record->subject);
}

weft_status_t expected_append(weft_text_t* list, const char* name, const char* reason) {
  return reason[0] ? weft_text_printf(list, "%s\t%s\n", name, reason) : weft_ok();
}
