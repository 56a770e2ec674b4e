// Finding equal things: a table from hashes to the caller's indices. The order of its slots never shows.
#pragma once
#include "base/allocator.h"

typedef struct weft_intern_slot_t {
  uint64_t hash;
  uint32_t index, used;
} weft_intern_slot_t;
typedef struct weft_intern_t {
  weft_allocator_t allocator;
  weft_intern_slot_t* slot;
  size_t capacity, count;
} weft_intern_t;
// Whether the thing with this index is the one that is looked for.
typedef bool (*weft_intern_equal_fn)(const void* self, uint32_t index);

void weft_intern_initialize(weft_allocator_t allocator, weft_intern_t* out_intern);
void weft_intern_deinitialize(weft_intern_t* intern);
// Continues `hash` (0: begins) over `size` bytes.
uint64_t weft_intern_hash(uint64_t hash, const void* data, size_t size);
// The index that was added with this hash and is equal; false: none.
bool weft_intern_find(const weft_intern_t* intern, uint64_t hash, weft_intern_equal_fn equal, const void* self,
                      uint32_t* out_index);
weft_status_t weft_intern_add(weft_intern_t* intern, uint64_t hash, uint32_t index);
