#include "base/digest.h"

#include <nettle/sha2.h>
#include <string.h>

weft_digest_t weft_digest_of(const void* data, size_t size) {
  struct sha256_ctx context;
  weft_digest_t digest;
  sha256_init(&context);
  if (size) sha256_update(&context, size, data);
  sha256_digest(&context, sizeof(digest.bytes), digest.bytes);
  return digest;
}

int weft_digest_compare(const weft_digest_t* a, const weft_digest_t* b) {
  return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void weft_digest_format(const weft_digest_t* digest, char out_text[65]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < 32; ++i) {
    out_text[2 * i] = digits[digest->bytes[i] >> 4];
    out_text[2 * i + 1] = digits[digest->bytes[i] & 15];
  }
  out_text[64] = '\0';
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int weft_digest_parse(const char* text, weft_digest_t* out_digest) {
  weft_digest_t digest;
  for (size_t i = 0; i < 32; ++i) {
    int high = digit_value(text[2 * i]);
    if (high < 0) return 0; // before the next digit is read: the text may end here
    int low = digit_value(text[2 * i + 1]);
    if (low < 0) return 0;
    digest.bytes[i] = (uint8_t)(high << 4 | low);
  }
  *out_digest = digest;
  return 1;
}
