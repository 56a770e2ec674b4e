// SHA-256 digests (libnettle) that bind stage files and images to what they were made from.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct weft_digest_t {
  uint8_t bytes[32];
} weft_digest_t;

weft_digest_t weft_digest_of(const void* data, size_t size);
int weft_digest_compare(const weft_digest_t* a, const weft_digest_t* b); // as memcmp
// 64 hex digits and a terminating zero.
void weft_digest_format(const weft_digest_t* digest, char out_text[65]);
// False unless `text` starts with 64 hex digits.
int weft_digest_parse(const char* text, weft_digest_t* out_digest);
