// Regions, tiles and memory of placed kernels.
#include <inttypes.h>

#include "base/checked.h"
#include "check/check_parts.h"

static bool region_inside(const weft_check_t* c, const weft_kernel_t* kernel) {
  const weft_region_t* r = &kernel->region;
  if (r->x <= c->machine->width - r->width && r->y <= c->machine->height - r->height) return true;
  weft_faults_add(c->faults,
                  "kernel '%s': its region of %" PRId32 "x%" PRId32 " tiles at (%" PRId32 ", %" PRId32
                  ") is not inside the mesh of %" PRId32 "x%" PRId32,
                  kernel->name, r->width, r->height, r->x, r->y, c->machine->width, c->machine->height);
  return false;
}

static void check_disjoint(const weft_check_t* c, int32_t index) {
  const weft_kernel_t* kernel = &c->fabric->kernel[index];
  const weft_region_t* a = &kernel->region;
  for (int32_t other = 0; other < index; ++other) {
    const weft_region_t* b = &c->fabric->kernel[other].region;
    int64_t left = weft_max_i64(a->x, b->x), top = weft_max_i64(a->y, b->y);
    bool apart = left >= weft_min_i64((int64_t)a->x + a->width, (int64_t)b->x + b->width) ||
                 top >= weft_min_i64((int64_t)a->y + a->height, (int64_t)b->y + b->height);
    if (!apart)
      weft_faults_add(c->faults, "kernels '%s' and '%s': their regions overlap at tile (%" PRId64 ", %" PRId64 ")",
                      c->fabric->kernel[other].name, kernel->name, left, top);
  }
}

static void check_tiles(const weft_check_t* c, int32_t index, int32_t* user) {
  const weft_kernel_t* kernel = &c->fabric->kernel[index];
  const weft_region_t* r = &kernel->region;
  int32_t count = weft_check_tile_count(kernel);
  for (int32_t i = 0; i < count; ++i) {
    int32_t tile = kernel->tile[i], x = tile % c->machine->width, y = tile / c->machine->width;
    if (x < r->x || x - r->x >= r->width || y < r->y || y - r->y >= r->height) {
      weft_faults_add(c->faults, "kernel '%s': logical tile %" PRId32 " is on %s, outside its region", kernel->name, i,
                      weft_check_place(c->machine, tile).text);
      continue;
    }
    if (!weft_defects_live(c->defects, tile))
      weft_faults_add(c->faults, "kernel '%s': logical tile %" PRId32 " is on %s, which is dead", kernel->name, i,
                      weft_check_place(c->machine, tile).text);
    if (user[tile])
      weft_faults_add(c->faults, "kernel '%s': logical tile %" PRId32 " is on %s, which kernel '%s' uses already",
                      kernel->name, i, weft_check_place(c->machine, tile).text, c->fabric->kernel[user[tile] - 1].name);
    user[tile] = index + 1;
  }
}

// Copies of a buffer that the steps take in turn: of what comes from the host or another kernel, and of results.
static int64_t copies(const weft_check_t* c, int32_t index, int32_t b) {
  const weft_kernel_t* kernel = &c->fabric->kernel[index];
  const weft_buffer_t* buffer = &kernel->buffer[b];
  bool arrives = buffer->kind == WEFT_BUFFER_RESULT;
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    const weft_tensor_t* tensor = &c->fabric->tensor[buffer->piece[p].tensor];
    arrives |= tensor->kind == WEFT_TENSOR_INPUT || (tensor->kind == WEFT_TENSOR_RESULT && tensor->kernel != index);
  }
  return arrives ? 1 + weft_check_chosen(kernel)->doubled + buffer->spare : 1;
}

// Operands and results are in memory at the same time: the next step's operands arrive while results are sent.
static void check_memory(const weft_check_t* c, int32_t index) {
  const weft_kernel_t* kernel = &c->fabric->kernel[index];
  int64_t available = c->machine->tile_memory, estimate = weft_check_chosen(kernel)->bytes, most = 0;
  int32_t fullest = 0, count = weft_check_tile_count(kernel);
  if (estimate > available)
    weft_faults_add(c->faults, "kernel '%s': a tile needs %" PRId64 " bytes of its %" PRId64, kernel->name, estimate,
                    available);
  for (int32_t i = 0; i < count; ++i) {
    int64_t bytes = 0;
    for (int32_t b = 0; b < kernel->buffer_count; ++b) {
      if (kernel->buffer[b].kind == WEFT_BUFFER_TEMPORARY || !weft_check_uses_buffer(kernel, b, i)) continue;
      weft_box_t box = weft_check_buffer_box(kernel, b, i);
      bytes += weft_check_box_elements(&box) * (int64_t)weft_dtype_size(kernel->buffer[b].dtype) * copies(c, index, b);
    }
    if (bytes > most) fullest = i;
    most = weft_max_i64(most, bytes);
  }
  if (most > available)
    weft_faults_add(c->faults, "kernel '%s': operands and results take %" PRId64 " bytes of the %" PRId64 " of %s",
                    kernel->name, most, available, weft_check_place(c->machine, kernel->tile[fullest]).text);
  if (most > estimate)
    weft_faults_add(c->faults,
                    "kernel '%s': operands and results take %" PRId64 " bytes on %s, but the alternative says %" PRId64,
                    kernel->name, most, weft_check_place(c->machine, kernel->tile[fullest]).text, estimate);
}

weft_status_t weft_check_placed(const weft_check_t* c) {
  int32_t* user = NULL; // of each tile: kernel + 1
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(c->allocator, (size_t)weft_machine_tiles(c->machine), sizeof(*user), (void**)&user));
  for (int32_t k = 0; k < c->fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &c->fabric->kernel[k];
    check_memory(c, k);
    if (!region_inside(c, kernel)) continue;
    check_disjoint(c, k);
    check_tiles(c, k, user);
  }
  weft_allocator_free(c->allocator, user);
  return weft_ok();
}
