// A growable array with stable indices: struct { T* data; size_t count, capacity; }.
//   WEFT_ARRAY(int32_t) ids = {0};
//   WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(allocator, &ids, 7));
//   WEFT_ARRAY_FREE(allocator, &ids);
#pragma once
#include <string.h>

#include "base/allocator.h"

#define WEFT_ARRAY(T)                                                                                                  \
  struct {                                                                                                             \
    T* data;                                                                                                           \
    size_t count, capacity;                                                                                            \
  }

// Grows *data so that it holds `needed` elements of `size` bytes; doubles; does not clear.
weft_status_t weft_array_reserve(weft_allocator_t allocator, void** data, size_t* capacity, size_t needed, size_t size);

#define WEFT_ARRAY_RESERVE(allocator, array, needed)                                                                   \
  weft_array_reserve((allocator), (void**)&(array)->data, &(array)->capacity, (needed), sizeof(*(array)->data))
// A GNU statement expression: yields a status. The value is evaluated after the growth and before the count changes.
#define WEFT_ARRAY_PUSH(allocator, array, ...)                                                                         \
  __extension__({                                                                                                      \
    weft_status_t push_status_ = WEFT_ARRAY_RESERVE(allocator, array, (array)->count + 1);                             \
    if (!push_status_) {                                                                                               \
      (array)->data[(array)->count] = (__VA_ARGS__);                                                                   \
      ++(array)->count;                                                                                                \
    }                                                                                                                  \
    push_status_;                                                                                                      \
  })
#define WEFT_ARRAY_FREE(allocator, array)                                                                              \
  do {                                                                                                                 \
    weft_allocator_free((allocator), (array)->data);                                                                   \
    memset((array), 0, sizeof(*(array)));                                                                              \
  } while (0)
