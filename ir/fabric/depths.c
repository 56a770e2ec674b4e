#include "ir/fabric/depths.h"

#include <string.h>

#include "base/checked.h"
#include "ir/fabric/split.h"

enum {
  STEPS_IN_KERNEL = 2,              // one arrives while one is worked on
  STEPS_IN_PORT = 1,                // on the long way from the host
  MOST_PLACES = WEFT_MAX_SPARE + 1, // of a ring, whatever the path
  AGAIN_WORDS = 3                   // of code, to post a receive for one more place
};

typedef struct ring_t {
  int32_t buffer, depth, needed;
  int64_t bytes; // of one more place
} ring_t;

// path[k]: kernels on the longest path from `from` to k, k included; 0: there is none.
static void find_paths(const weft_fabric_t* fabric, int32_t from, int32_t to, int32_t* path) {
  memset(path, 0, (size_t)fabric->kernel_count * sizeof(*path));
  for (int32_t k = from + 1; k <= to; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    for (int32_t b = 0; b < kernel->buffer_count; ++b)
      for (int32_t p = 0; p < kernel->buffer[b].piece_count; ++p) {
        const weft_tensor_t* tensor = &fabric->tensor[kernel->buffer[b].piece[p].tensor];
        if (tensor->kind != WEFT_TENSOR_RESULT || tensor->kernel >= k) continue; // not what comes back to it
        int32_t before = path[tensor->kernel];
        if ((before > 0 || tensor->kernel == from) && path[k] < before + 1) path[k] = before + 1;
      }
  }
}

static ring_t ring_of(const weft_fabric_t* fabric, int32_t k, int32_t b, int32_t* path) {
  const weft_kernel_t* kernel = &fabric->kernel[k];
  const weft_alternative_t* chosen = &kernel->alternative[kernel->chosen];
  const weft_buffer_t* buffer = &kernel->buffer[b];
  ring_t ring = {.buffer = b, .depth = weft_split_depth(fabric, chosen, buffer), .bytes = 0};
  weft_shape_t extents = weft_split_buffer_extents(kernel, &chosen->split, b);
  int64_t size = weft_shape_elements(&extents) * (int64_t)weft_dtype_size(buffer->dtype);
  ring.bytes = weft_ceil_div(size, 8) * 8;
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    const weft_tensor_t* tensor = &fabric->tensor[buffer->piece[p].tensor];
    if (tensor->kind == WEFT_TENSOR_CONSTANT) continue;
    ring.bytes += (int64_t)sizeof(int32_t) * AGAIN_WORDS;
    int64_t needed = STEPS_IN_KERNEL + STEPS_IN_PORT; // the host sends each stream as fast as it is taken
    if (tensor->kind == WEFT_TENSOR_RESULT) {
      find_paths(fabric, tensor->kernel, k, path);
      needed = (int64_t)path[k] * STEPS_IN_KERNEL;
    }
    ring.needed = (int32_t)weft_min_i64(MOST_PLACES, weft_max_i64(ring.needed, needed));
  }
  return ring;
}

// The ring that lacks the largest part of its places, among those that have room for one more. NULL: none.
static ring_t* neediest(ring_t* rings, int32_t count, int64_t room) {
  ring_t* best = NULL;
  for (int32_t i = 0; i < count; ++i) {
    ring_t* ring = &rings[i];
    if (ring->depth >= ring->needed || ring->bytes > room) continue;
    if (!best || (int64_t)ring->needed * best->depth > (int64_t)best->needed * ring->depth) best = ring;
  }
  return best;
}

static void choose(weft_fabric_t* fabric, int32_t k, int64_t memory, ring_t* rings, int32_t* path) {
  weft_kernel_t* kernel = &fabric->kernel[k];
  weft_alternative_t* chosen = &kernel->alternative[kernel->chosen];
  int32_t count = 0;
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    weft_buffer_t* buffer = &kernel->buffer[b];
    if (buffer->kind != WEFT_BUFFER_OPERAND || !weft_split_is_streamed(fabric, buffer)) continue;
    int32_t spare = buffer->spare;
    buffer->spare = 0;
    rings[count] = ring_of(fabric, k, b, path);
    chosen->bytes -= spare * rings[count++].bytes;
  }
  for (ring_t* ring; (ring = neediest(rings, count, memory - chosen->bytes));) {
    ++ring->depth;
    ++kernel->buffer[ring->buffer].spare;
    chosen->bytes += ring->bytes;
  }
}

weft_status_t weft_depths_choose(weft_fabric_t* fabric, const weft_machine_t* machine) {
  weft_allocator_t allocator = fabric->arena.allocator;
  int32_t *path = NULL, most = 0;
  ring_t* rings = NULL;
  for (int32_t k = 0; k < fabric->kernel_count; ++k)
    if (fabric->kernel[k].buffer_count > most) most = fabric->kernel[k].buffer_count;
  weft_status_t status = weft_allocator_calloc(allocator, (size_t)fabric->kernel_count, sizeof(*path), (void**)&path);
  if (!status) status = weft_allocator_calloc(allocator, (size_t)most, sizeof(*rings), (void**)&rings);
  for (int32_t k = 0; !status && k < fabric->kernel_count; ++k) choose(fabric, k, machine->tile_memory, rings, path);
  weft_allocator_free(allocator, path);
  weft_allocator_free(allocator, rings);
  return status;
}
