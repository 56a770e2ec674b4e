#include "machine/parts.h"

#include <string.h>

#include "base/array.h"

// Labels everything that is connected to `start`. `queue` has room for all tiles.
static int32_t flood(const weft_machine_t* machine, const weft_defects_t* defects, int32_t start, int32_t part,
                     int32_t* label, int32_t* queue) {
  int32_t head = 0, tail = 0;
  queue[tail++] = start;
  label[start] = part;
  while (head < tail) {
    int32_t tile = queue[head++];
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
      if (d == WEFT_DIRECTION_RAMP || !weft_defects_link_live(machine, defects, tile, d)) continue;
      int32_t next = weft_machine_neighbour(machine, tile, d);
      if (label[next] >= 0) continue;
      label[next] = part;
      queue[tail++] = next;
    }
  }
  return tail;
}

weft_status_t weft_parts_find(weft_allocator_t allocator, const weft_machine_t* machine, const weft_defects_t* defects,
                              weft_parts_t* out_parts) {
  *out_parts = (weft_parts_t){.allocator = allocator};
  weft_parts_t* parts = out_parts;
  int32_t tiles = weft_machine_tiles(machine);
  int32_t* queue = NULL;
  size_t capacity = 0;
  weft_status_t status = weft_allocator_realloc(allocator, (size_t)tiles, sizeof(*parts->label), (void**)&parts->label);
  if (!status) status = weft_allocator_realloc(allocator, (size_t)tiles, sizeof(*queue), (void**)&queue);
  if (!status) memset(parts->label, 0xFF, (size_t)tiles * sizeof(*parts->label));
  for (int32_t tile = 0; !status && tile < tiles; ++tile) {
    if (parts->label[tile] >= 0 || !weft_defects_live(defects, tile)) continue;
    status =
        weft_array_reserve(allocator, (void**)&parts->size, &capacity, (size_t)parts->count + 1, sizeof(*parts->size));
    if (status) break;
    parts->size[parts->count] = flood(machine, defects, tile, parts->count, parts->label, queue);
    ++parts->count;
  }
  weft_allocator_free(allocator, queue);
  if (status) weft_parts_deinitialize(parts);
  return status;
}

int32_t weft_parts_main(const weft_parts_t* parts, const weft_machine_t* machine) {
  int32_t best = -1;
  for (int32_t i = 0; i < weft_machine_port_count(machine); ++i) {
    int32_t part = parts->label[weft_machine_port(machine, i).tile];
    if (part < 0) continue;
    if (best < 0 || parts->size[part] > parts->size[best] || (parts->size[part] == parts->size[best] && part < best))
      best = part;
  }
  return best;
}

void weft_parts_deinitialize(weft_parts_t* parts) {
  weft_allocator_free(parts->allocator, parts->label);
  weft_allocator_free(parts->allocator, parts->size);
  memset(parts, 0, sizeof(*parts));
}

weft_status_t weft_parts_describe(const weft_parts_t* parts, weft_text_t* text) {
  enum { SHOWN = 6 };
  int32_t shown = parts->count < SHOWN ? parts->count : SHOWN, largest[SHOWN];
  for (int32_t i = 0; i < shown; ++i) {
    largest[i] = -1;
    for (int32_t p = 0; p < parts->count; ++p) {
      bool taken = false;
      for (int32_t j = 0; j < i; ++j) taken |= largest[j] == p;
      if (!taken && (largest[i] < 0 || parts->size[p] > parts->size[largest[i]])) largest[i] = p;
    }
  }
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%d parts of ", parts->count));
  for (int32_t i = 0; i < shown; ++i)
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s%d",
                                          !i                      ? ""
                                          : i + 1 == parts->count ? " and "
                                                                  : ", ",
                                          parts->size[largest[i]]));
  return weft_text_printf(text, "%s tiles", shown < parts->count ? ", .." : "");
}
