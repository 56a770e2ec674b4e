#include "backend/intern.h"

#include <string.h>

#include "base/rng.h"

enum { FIRST_CAPACITY = 64 };

void weft_intern_initialize(weft_allocator_t allocator, weft_intern_t* out_intern) {
  *out_intern = (weft_intern_t){.allocator = allocator};
}

void weft_intern_deinitialize(weft_intern_t* intern) {
  weft_allocator_free(intern->allocator, intern->slot);
  *intern = (weft_intern_t){.allocator = intern->allocator};
}

uint64_t weft_intern_hash(uint64_t hash, const void* data, size_t size) {
  const uint8_t* bytes = data;
  hash = weft_rng_mix(hash ^ size);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  memcpy(&rest, bytes, size);
  return weft_rng_mix(hash ^ rest);
}

bool weft_intern_find(const weft_intern_t* intern, uint64_t hash, weft_intern_equal_fn equal, const void* self,
                      uint32_t* out_index) {
  if (!intern->capacity) return false;
  size_t mask = intern->capacity - 1;
  for (size_t s = hash & mask; intern->slot[s].used; s = (s + 1) & mask) {
    if (intern->slot[s].hash != hash || !equal(self, intern->slot[s].index)) continue;
    *out_index = intern->slot[s].index;
    return true;
  }
  return false;
}

static void place(weft_intern_slot_t* slots, size_t capacity, weft_intern_slot_t slot) {
  size_t s = slot.hash & (capacity - 1);
  while (slots[s].used) s = (s + 1) & (capacity - 1);
  slots[s] = slot;
}

weft_status_t weft_intern_add(weft_intern_t* intern, uint64_t hash, uint32_t index) {
  if (intern->count * 2 >= intern->capacity) { // at most half full
    size_t capacity = intern->capacity ? intern->capacity * 2 : FIRST_CAPACITY;
    weft_intern_slot_t* slots;
    WEFT_RETURN_IF_ERROR(weft_allocator_calloc(intern->allocator, capacity, sizeof(*slots), (void**)&slots));
    for (size_t s = 0; s < intern->capacity; ++s)
      if (intern->slot[s].used) place(slots, capacity, intern->slot[s]);
    weft_allocator_free(intern->allocator, intern->slot);
    intern->slot = slots;
    intern->capacity = capacity;
  }
  place(intern->slot, intern->capacity, (weft_intern_slot_t){.hash = hash, .index = index, .used = 1});
  ++intern->count;
  return weft_ok();
}
