// A growable text buffer.
#pragma once
#include "base/allocator.h"

typedef struct weft_text_t {
  weft_allocator_t allocator;
  char* data; // zero-terminated once something was appended; may be NULL before
  size_t count, capacity;
} weft_text_t;

void weft_text_initialize(weft_allocator_t allocator, weft_text_t* out_text);
void weft_text_deinitialize(weft_text_t* text);
weft_status_t weft_text_append(weft_text_t* text, const char* data, size_t count);
weft_status_t weft_text_printf(weft_text_t* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
