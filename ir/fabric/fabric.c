#include "ir/fabric/fabric.h"

#include <string.h>

void weft_fabric_initialize(weft_allocator_t allocator, weft_fabric_t* out_fabric) {
  memset(out_fabric, 0, sizeof(*out_fabric));
  weft_arena_initialize(allocator, &out_fabric->arena);
}

void weft_fabric_deinitialize(weft_fabric_t* fabric) {
  weft_arena_deinitialize(&fabric->arena); // which owns everything that the fabric points to
  memset(fabric, 0, sizeof(*fabric));
}
