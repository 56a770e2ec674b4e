#include "placer/usable.h"

#include <string.h>

weft_status_t weft_usable_initialize(const weft_machine_t* machine, const weft_defects_t* defects, weft_arena_t* arena,
                                     weft_usable_t* out_usable) {
  *out_usable = (weft_usable_t){.map = *defects};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)weft_machine_tiles(machine), &out_usable->map.dead_tile));
  WEFT_RETURN_IF_ERROR(weft_parts_find(arena->allocator, machine, defects, &out_usable->parts));
  out_usable->main = weft_parts_main(&out_usable->parts, machine);
  if (out_usable->main >= 0) return weft_ok();
  weft_parts_deinitialize(&out_usable->parts);
  return weft_error(DOES_NOT_FIT, "no host port can reach a live tile: all %d ports of the machine are at dead tiles",
                    weft_machine_port_count(machine));
}

weft_status_t weft_usable_core(const weft_machine_t* machine, const weft_defects_t* defects, weft_usable_t* usable,
                               bool* out_smaller) {
  int32_t tiles = weft_machine_tiles(machine), core = 0;
  uint8_t* dead = usable->map.dead_tile;
  WEFT_RETURN_IF_ERROR(weft_parts_core(&usable->parts, machine, defects, dead, &core));
  for (int32_t t = 0; t < tiles; ++t) dead[t] = !dead[t];
  *out_smaller = core < usable->parts.size[usable->main];
  return weft_ok();
}

weft_status_t weft_usable_wide(const weft_machine_t* machine, weft_arena_t* arena, weft_usable_t* usable) {
  int32_t w = machine->width, h = machine->height, best = 0;
  uint8_t* dead = usable->map.dead_tile;
  weft_defects_t open = usable->map;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)w * (size_t)h, &open.dead_tile));
  memset(open.dead_tile, 1, (size_t)w * (size_t)h);
  for (int32_t y = 0; y + 1 < h; ++y) {
    for (int32_t x = 0; x + 1 < w; ++x) {
      int32_t t = y * w + x;
      if (dead[t] || dead[t + 1] || dead[t + w] || dead[t + w + 1]) continue;
      open.dead_tile[t] = open.dead_tile[t + 1] = open.dead_tile[t + w] = open.dead_tile[t + w + 1] = 0;
    }
  }
  weft_parts_t parts;
  WEFT_RETURN_IF_ERROR(weft_parts_find(arena->allocator, machine, &open, &parts));
  for (int32_t p = 1; p < parts.count; ++p)
    if (parts.size[p] > parts.size[best]) best = p;
  for (int32_t t = 0; t < w * h; ++t) dead[t] = parts.label[t] != best;
  weft_parts_deinitialize(&parts);
  return weft_ok();
}

void weft_usable_main_part(const weft_machine_t* machine, weft_usable_t* usable) {
  int32_t tiles = weft_machine_tiles(machine);
  for (int32_t t = 0; t < tiles; ++t) usable->map.dead_tile[t] = usable->parts.label[t] != usable->main;
}

weft_status_t weft_usable_explain(weft_status_t status, const weft_usable_t* usable, weft_allocator_t allocator) {
  if (weft_status_code(status) != WEFT_STATUS_DOES_NOT_FIT || usable->parts.count < 2) return status;
  weft_text_t text;
  weft_text_initialize(allocator, &text);
  weft_status_t described = weft_parts_describe(&usable->parts, &text);
  if (!described) {
    status = weft_status_annotate(status,
                                  "dead tiles and links split the mesh into %s; the network has to lie in one, and the "
                                  "largest with a host port has %d",
                                  text.data, usable->parts.size[usable->main]);
  }
  weft_text_deinitialize(&text);
  return weft_status_join(status, described);
}

void weft_usable_deinitialize(weft_usable_t* usable) {
  weft_parts_deinitialize(&usable->parts);
}
