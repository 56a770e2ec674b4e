// Memory through one user-supplied function, as in Lua. Nothing in the library calls malloc directly.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Reallocates `pointer` (NULL: allocates) to `size` bytes; size 0 frees and returns NULL. NULL means out of memory.
typedef void* (*weft_allocate_fn)(void* self, void* pointer, size_t size);
typedef struct weft_allocator_t {
  void* self;
  weft_allocate_fn allocate;
} weft_allocator_t;

// malloc/realloc/free.
weft_allocator_t weft_allocator_system(void);

// Zeroed array of `count` elements of `size` bytes; the product is checked. *out is NULL for count 0.
weft_status_t weft_allocator_calloc(weft_allocator_t allocator, size_t count, size_t size, void** out);
// Resizes; new bytes are not cleared. The product is checked.
weft_status_t weft_allocator_realloc(weft_allocator_t allocator, size_t count, size_t size, void** inout);
void weft_allocator_free(weft_allocator_t allocator, void* pointer);

// An allocator that forwards to the system and fails on the n-th request (0: the first), for tests of error paths.
typedef struct weft_failing_allocator_t {
  uint64_t countdown; // requests that still succeed
  uint64_t live;      // blocks that are allocated now
} weft_failing_allocator_t;
weft_allocator_t weft_allocator_failing(weft_failing_allocator_t* state);
