// Bump allocation with one release: everything that lives as long as its owner.
#pragma once
#include "base/allocator.h"

typedef struct weft_arena_block_t weft_arena_block_t;
typedef struct weft_arena_t {
  weft_allocator_t allocator;
  weft_arena_block_t* head;
  size_t bytes; // handed out so far
} weft_arena_t;

void weft_arena_initialize(weft_allocator_t allocator, weft_arena_t* out_arena);
void weft_arena_deinitialize(weft_arena_t* arena);
// Zeroed, 16-byte aligned memory for count elements of `size` bytes; the product is checked.
weft_status_t weft_arena_allocate(weft_arena_t* arena, size_t count, size_t size, void** out);
weft_status_t weft_arena_strdup(weft_arena_t* arena, const char* text, const char** out_text);
weft_status_t weft_arena_printf(weft_arena_t* arena, const char** out_text, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
weft_status_t weft_arena_copy(weft_arena_t* arena, const void* data, size_t bytes, void** out);

// WEFT_ARENA_NEW(arena, count, &pointer): typed by the pointer.
#define WEFT_ARENA_NEW(arena, count, out_pointer)                                                                      \
  weft_arena_allocate((arena), (count), sizeof(**(out_pointer)), (void**)(out_pointer))
