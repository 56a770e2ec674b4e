#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

enum { ALIGNMENT = 16, FIRST_BLOCK_BYTES = 4096, LARGEST_BLOCK_BYTES = 1 << 20 };

struct weft_arena_block_t {
  weft_arena_block_t* next;
  size_t capacity; // bytes behind this header
  size_t used;
};

void weft_arena_initialize(weft_allocator_t allocator, weft_arena_t* out_arena) {
  *out_arena = (weft_arena_t){.allocator = allocator};
}

void weft_arena_deinitialize(weft_arena_t* arena) {
  for (weft_arena_block_t* block = arena->head; block;) {
    weft_arena_block_t* next = block->next;
    weft_allocator_free(arena->allocator, block);
    block = next;
  }
  arena->head = NULL;
  arena->bytes = 0;
}

// The next aligned `bytes` of the block, or NULL when they don't fit. Aligns the address, not the offset: a user's
// allocator may align less than malloc does.
static void* take(weft_arena_block_t* block, size_t bytes) {
  uint8_t* free_bytes = (uint8_t*)(block + 1) + block->used; // NOLINT(clang-analyzer-core.NullDereference)
  size_t padding = -(uintptr_t)free_bytes % ALIGNMENT;
  size_t left = block->capacity - block->used;
  if (padding > left || bytes > left - padding) return NULL;
  block->used += padding + bytes;
  return free_bytes + padding;
}

static weft_status_t add_block(weft_arena_t* arena, size_t bytes, weft_arena_block_t** out_block) {
  weft_arena_block_t* head = arena->head;
  size_t capacity = head ? head->capacity : FIRST_BLOCK_BYTES / 2;
  capacity = capacity < LARGEST_BLOCK_BYTES / 2 ? capacity * 2 : LARGEST_BLOCK_BYTES;
  size_t needed, size;
  if (!weft_checked_add(bytes, (size_t)ALIGNMENT, &needed) ||
      !weft_checked_add(needed > capacity ? needed : capacity, sizeof(weft_arena_block_t), &size))
    return weft_error(OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
  void* memory = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(arena->allocator, 1, size, &memory));
  weft_arena_block_t* block = memory;
  block->capacity = size - sizeof(*block);
  block->used = 0;
  // A block for one large array goes behind the head, whose free bytes would be lost otherwise.
  if (head && needed > capacity) {
    block->next = head->next;
    head->next = block;
  } else {
    block->next = head;
    arena->head = block;
  }
  *out_block = block;
  return weft_ok();
}

weft_status_t weft_arena_allocate(weft_arena_t* arena, size_t count, size_t size, void** out) {
  *out = NULL;
  size_t bytes;
  if (!weft_checked_mul(count, size, &bytes))
    return weft_error(OUT_OF_MEMORY, "out of memory: %zu elements of %zu bytes", count, size);
  // An empty array has an address too, so that it can be passed to memcpy and the like.
  size_t taken = bytes ? bytes : 1;
  void* result = arena->head ? take(arena->head, taken) : NULL;
  if (!result) {
    weft_arena_block_t* block = NULL;
    WEFT_RETURN_IF_ERROR(add_block(arena, taken, &block));
    result = take(block, taken);
  }
  memset(result, 0, taken);
  arena->bytes += bytes;
  *out = result;
  return weft_ok();
}

weft_status_t weft_arena_copy(weft_arena_t* arena, const void* data, size_t bytes, void** out) {
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, bytes, 1, out));
  if (bytes) memcpy(*out, data, bytes); // NOLINT(clang-analyzer-core.NonNullParamChecker)
  return weft_ok();
}

weft_status_t weft_arena_strdup(weft_arena_t* arena, const char* text, const char** out_text) {
  void* copy = NULL;
  weft_status_t status = weft_arena_copy(arena, text, strlen(text) + 1, &copy);
  *out_text = copy;
  return status;
}

weft_status_t weft_arena_printf(weft_arena_t* arena, const char** out_text, const char* format, ...) {
  *out_text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0) return weft_error(INTERNAL, "cannot format '%s'", format);
  char* text = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)length + 1, &text));
  va_start(arguments, format);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  va_end(arguments);
  *out_text = text;
  return weft_ok();
}
