#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

static void assert_digest(const void* data, size_t size, const char* expected) {
  weft_digest_t digest = weft_digest_of(data, size);
  char text[65];
  weft_digest_format(&digest, text);
  assert_string_equal(text, expected);
}

static void test_known_answers(void** state) {
  (void)state;
  // FIPS 180-2, appendix B, and the empty message.
  assert_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const char* two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  assert_digest(two_blocks, strlen(two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  char* million = malloc(1000000);
  assert_non_null(million);
  memset(million, 'a', 1000000);
  assert_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(million);
  const char* empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  assert_digest("", 0, empty);
  assert_digest(NULL, 0, empty);
}

static void test_parse_inverts_format(void** state) {
  (void)state;
  weft_digest_t digest = weft_digest_of("weft", 4), parsed;
  char text[80];
  weft_digest_format(&digest, text);
  assert_true(weft_digest_parse(text, &parsed));
  assert_int_equal(weft_digest_compare(&digest, &parsed), 0);
  snprintf(text + 64, sizeof(text) - 64, " and more");
  assert_true(weft_digest_parse(text, &parsed));
  for (int i = 0; i < 64; ++i)
    if (text[i] >= 'a') text[i] = (char)(text[i] - 'a' + 'A');
  memset(&parsed, 0, sizeof(parsed));
  assert_true(weft_digest_parse(text, &parsed));
  assert_int_equal(weft_digest_compare(&digest, &parsed), 0);
}

static void test_parse_refuses(void** state) {
  (void)state;
  weft_digest_t digest = weft_digest_of("weft", 4), parsed = digest;
  char text[65], damaged[65];
  weft_digest_format(&digest, text);
  for (size_t i = 0; i < 64; ++i) {
    // Exact-sized heap copy, so that reading past a short text is noticed.
    char* cut = strndup(text, i);
    assert_false(weft_digest_parse(cut, &parsed));
    free(cut);
    for (const char* wrong = "g:/@G` -"; *wrong; ++wrong) {
      memcpy(damaged, text, sizeof(damaged));
      damaged[i] = *wrong;
      assert_false(weft_digest_parse(damaged, &parsed));
    }
  }
  assert_int_equal(weft_digest_compare(&digest, &parsed), 0); // left alone
}

static void test_compare_orders_as_memcmp(void** state) {
  (void)state;
  weft_digest_t a = {{0}}, b = {{0}};
  assert_int_equal(weft_digest_compare(&a, &b), 0);
  b.bytes[31] = 0x80;
  assert_true(weft_digest_compare(&a, &b) < 0);
  a.bytes[0] = 1;
  assert_true(weft_digest_compare(&a, &b) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_parse_inverts_format),
      cmocka_unit_test(test_parse_refuses),
      cmocka_unit_test(test_compare_orders_as_memcmp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
