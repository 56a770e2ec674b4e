#include "backend/layout.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

// The operations between which a temporary holds something; `whole`: through the whole step and beyond.
typedef struct live_t {
  int32_t first, last;
  bool whole;
} live_t;

static void touch(live_t* live, int32_t operation, bool reads_first) {
  if (live->first < 0) {
    live->first = operation;
    live->whole |= reads_first; // what an earlier step or the loader left there
  }
  live->last = operation;
}

static void find_live_ranges(const weft_kernel_t* kernel, const weft_split_t* split, live_t* live) {
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    live[b] = (live_t){-1, -1, kernel->buffer[b].kind != WEFT_BUFFER_TEMPORARY};
  for (int32_t o = 0; o < kernel->operation_count; ++o) {
    const weft_operation_t* operation = &kernel->operation[o];
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s)
      if (operation->source[s] >= 0) touch(&live[operation->source[s]], o, true);
    touch(&live[operation->destination], o, operation->op == WEFT_OP_MLA);
  }
  // What a trip of a loop reads of an earlier one lives through all of them.
  uint32_t sequential = weft_split_sequential(kernel);
  for (int32_t b = 0; b < kernel->buffer_count && sequential; ++b)
    live[b].whole |= weft_split_is_carried(kernel->operation, kernel->operation_count, sequential, b);
  // The head of a chain sends its partial results while the next step begins.
  if (kernel->reduce_operation >= 0 && weft_split_chain_length(kernel, split) > 1)
    live[kernel->operation[kernel->reduce_operation].destination].whole = true;
}

static bool overlap(const live_t* a, const live_t* b) {
  return a->whole || b->whole || (a->first <= b->last && b->first <= a->last);
}

// First fit, in the order of the buffers: the lowest address where nothing lies that is alive at the same time.
static void place_buffers(int32_t count, const live_t* live, weft_layout_t* layout) {
  const int64_t* place = layout->place;
  for (int32_t b = 0; b < count; ++b) {
    if (live[b].first < 0 && !live[b].whole) continue; // never used
    int64_t address = 0;
    for (int32_t other = 0; other < b; ++other) {
      int64_t size = place[other] * layout->depth[other];
      bool clashes = size > 0 && overlap(&live[b], &live[other]) &&
                     layout->address[other] < address + place[b] * layout->depth[b] &&
                     address < layout->address[other] + size;
      if (!clashes) continue;
      address = layout->address[other] + size;
      other = -1; // the address only grows, so this ends
    }
    layout->address[b] = address;
    layout->bytes = weft_max_i64(layout->bytes, address + place[b] * layout->depth[b]);
  }
}

static weft_status_t size_buffers(const weft_fabric_t* fabric, const weft_kernel_t* kernel,
                                  const weft_alternative_t* chosen, weft_layout_t* layout) {
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    weft_shape_t extents = weft_split_buffer_extents(kernel, &chosen->split, b);
    int64_t bytes = (int64_t)weft_dtype_size(kernel->buffer[b].dtype);
    for (int32_t r = extents.rank - 1; r >= 0; --r) {
      layout->stride[b][r] = bytes;
      if (!weft_checked_mul(bytes, extents.extent[r], &bytes) || bytes > INT32_MAX)
        return weft_error(DOES_NOT_FIT, "buffer '%s' takes more than 2 GiB of a tile's memory", kernel->buffer[b].name);
    }
    layout->place[b] = weft_ceil_div(bytes, WEFT_LAYOUT_ALIGNMENT) * WEFT_LAYOUT_ALIGNMENT;
    layout->depth[b] = weft_split_depth(fabric, chosen, &kernel->buffer[b]);
  }
  return weft_ok();
}

// The word of an immediate, which the engine reads as an f32 for float types and as an integer for the others.
static bool immediate_word(weft_dtype_e dtype, const uint8_t bytes[8], int32_t* out_word) {
  double value = weft_dtype_load(dtype, bytes);
  if (weft_dtype_is_float(dtype)) {
    float single = (float)value;
    if ((double)single != value && !isnan(value)) return false;
    memcpy(out_word, &single, sizeof(single));
    return true;
  }
  if (value < INT32_MIN || value > INT32_MAX) return false;
  *out_word = (int32_t)value;
  return true;
}

static int32_t find_scalar(const weft_layout_t* layout, weft_dtype_e dtype, const uint8_t bytes[8]) {
  for (int32_t s = 0; s < layout->scalar_count; ++s)
    if (layout->scalar[s].dtype == dtype && !memcmp(layout->scalar[s].bytes, bytes, 8)) return s;
  return -1;
}

static void add_scalar(weft_layout_t* layout, weft_dtype_e dtype, double value) {
  weft_layout_scalar_t scalar = {.dtype = dtype};
  int32_t word;
  weft_dtype_store(dtype, value, scalar.bytes);
  if (!immediate_word(dtype, scalar.bytes, &word) && find_scalar(layout, dtype, scalar.bytes) < 0)
    layout->scalar[layout->scalar_count++] = scalar;
}

static weft_status_t collect_scalars(const weft_kernel_t* kernel, weft_arena_t* arena, weft_layout_t* layout) {
  size_t most = (size_t)kernel->operation_count * WEFT_MAX_SOURCES + (size_t)kernel->buffer_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, most, &layout->scalar));
  for (int32_t o = 0; o < kernel->operation_count; ++o) {
    const weft_operation_t* operation = &kernel->operation[o];
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s)
      if (operation->source[s] < 0) add_scalar(layout, operation->dtype, operation->immediate[s]);
  }
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (kernel->buffer[b].has_fill) add_scalar(layout, kernel->buffer[b].dtype, kernel->buffer[b].fill);
  layout->scalars = layout->bytes;
  layout->bytes += (int64_t)layout->scalar_count * 8;
  return weft_ok();
}

weft_status_t weft_layout_create(const weft_fabric_t* fabric, const weft_kernel_t* kernel, weft_arena_t* arena,
                                 weft_layout_t* out_layout) {
  memset(out_layout, 0, sizeof(*out_layout));
  const weft_alternative_t* chosen = &kernel->alternative[kernel->chosen];
  live_t* live;
  size_t count = (size_t)kernel->buffer_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count, &live));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count, &out_layout->place));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count, &out_layout->depth));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count, &out_layout->address));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, count, &out_layout->stride));
  WEFT_RETURN_IF_ERROR(size_buffers(fabric, kernel, chosen, out_layout));
  find_live_ranges(kernel, &chosen->split, live);
  place_buffers(kernel->buffer_count, live, out_layout);
  return collect_scalars(kernel, arena, out_layout);
}

bool weft_layout_immediate(const weft_layout_t* layout, weft_dtype_e dtype, double value, int32_t* out_word,
                           int64_t* out_address) {
  uint8_t bytes[8] = {0};
  weft_dtype_store(dtype, value, bytes);
  if (immediate_word(dtype, bytes, out_word)) return true;
  *out_address = layout->scalars + (int64_t)find_scalar(layout, dtype, bytes) * 8;
  return false;
}
