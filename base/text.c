#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

void weft_text_initialize(weft_allocator_t allocator, weft_text_t* out_text) {
  *out_text = (weft_text_t){.allocator = allocator};
}

void weft_text_deinitialize(weft_text_t* text) {
  weft_allocator_free(text->allocator, text->data);
  text->data = NULL;
  text->count = text->capacity = 0;
}

// Room for `count` more bytes and the terminating zero.
static weft_status_t reserve(weft_text_t* text, size_t count) {
  size_t needed;
  if (!weft_checked_add(text->count, count, &needed) || !weft_checked_add(needed, (size_t)1, &needed))
    return weft_error(OUT_OF_MEMORY, "out of memory: a text of %zu more bytes", count);
  void* data = text->data;
  WEFT_RETURN_IF_ERROR(weft_array_reserve(text->allocator, &data, &text->capacity, needed, 1));
  text->data = data;
  return weft_ok();
}

weft_status_t weft_text_append(weft_text_t* text, const char* data, size_t count) {
  WEFT_RETURN_IF_ERROR(reserve(text, count));
  if (count) memcpy(text->data + text->count, data, count);
  text->count += count;
  text->data[text->count] = '\0';
  return weft_ok();
}

weft_status_t weft_text_printf(weft_text_t* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0) return weft_error(INTERNAL, "cannot format '%s'", format);
  WEFT_RETURN_IF_ERROR(reserve(text, (size_t)length));
  va_start(arguments, format);
  vsnprintf(text->data + text->count, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->count += (size_t)length;
  return weft_ok();
}
