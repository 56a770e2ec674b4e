#include "base/allocator.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static void* system_allocate(void* self, void* pointer, size_t size) {
  (void)self;
  if (size == 0) {
    free(pointer);
    return NULL;
  }
  return realloc(pointer, size);
}

weft_allocator_t weft_allocator_system(void) {
  return (weft_allocator_t){NULL, system_allocate};
}

weft_status_t weft_allocator_calloc(weft_allocator_t allocator, size_t count, size_t size, void** out) {
  *out = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(allocator, count, size, out));
  if (*out) memset(*out, 0, count * size);
  return weft_ok();
}

weft_status_t weft_allocator_realloc(weft_allocator_t allocator, size_t count, size_t size, void** inout) {
  size_t bytes;
  // No object is larger than PTRDIFF_MAX; sanitizers' allocators abort when asked for one.
  if (!weft_checked_mul(count, size, &bytes) || bytes > PTRDIFF_MAX)
    return weft_error(OUT_OF_MEMORY, "out of memory: %zu elements of %zu bytes", count, size);
  if (bytes == 0) {
    weft_allocator_free(allocator, *inout);
    *inout = NULL;
    return weft_ok();
  }
  void* pointer = allocator.allocate(allocator.self, *inout, bytes);
  if (!pointer) return weft_error(OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
  *inout = pointer;
  return weft_ok();
}

void weft_allocator_free(weft_allocator_t allocator, void* pointer) {
  if (pointer) allocator.allocate(allocator.self, pointer, 0);
}

static void* failing_allocate(void* self, void* pointer, size_t size) {
  weft_failing_allocator_t* state = self;
  if (size == 0) {
    if (pointer) --state->live;
    free(pointer);
    return NULL;
  }
  // Stays at zero: once memory has run out, it stays out.
  if (state->countdown == 0) return NULL;
  --state->countdown;
  void* result = realloc(pointer, size);
  if (result && !pointer) ++state->live;
  return result;
}

weft_allocator_t weft_allocator_failing(weft_failing_allocator_t* state) {
  return (weft_allocator_t){state, failing_allocate};
}
