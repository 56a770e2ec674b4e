// The documents name everything that the tables have.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/image.h"
#include "backend/isa.h"

static void expect_in(const weft_mapping_t* document, const char* format, const char* name) {
  char text[128];
  snprintf(text, sizeof(text), format, name);
  if (!memmem(document->data, document->size, text, strlen(text))) fail_msg("'%s' is not documented", text);
}

static void test_isa(void** state) {
  (void)state;
  weft_mapping_t document;
  assert_null(weft_file_map(WEFT_SOURCE_DIR "/docs/isa.md", &document));
#define X(name, mnemonic, text) expect_in(&document, "**%s**", mnemonic);
  WEFT_OPCODES(X)
#undef X
#define X(name, mnemonic, sources, cls, text) expect_in(&document, "| `" mnemonic "` | " #sources " | %s", "");
  WEFT_OPS(X)
#undef X
  weft_file_unmap(&document);
}

static void test_image(void** state) {
  (void)state;
  weft_mapping_t document;
  assert_null(weft_file_map(WEFT_SOURCE_DIR "/docs/image.md", &document));
#define X(field, type, section) expect_in(&document, "| `%s` |", section);
  WEFT_IMAGE_TABLES(X)
#undef X
  weft_file_unmap(&document);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_isa), cmocka_unit_test(test_image)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
