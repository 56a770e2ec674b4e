#include "base/array.h"

#include "base/checked.h"

weft_status_t weft_array_reserve(weft_allocator_t allocator, void** data, size_t* capacity, size_t needed,
                                 size_t size) {
  if (needed <= *capacity) return weft_ok();
  size_t grown;
  if (!weft_checked_mul(*capacity, (size_t)2, &grown)) grown = needed;
  if (grown < 8) grown = 8;
  if (grown < needed) grown = needed;
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(allocator, grown, size, data));
  *capacity = grown;
  return weft_ok();
}
