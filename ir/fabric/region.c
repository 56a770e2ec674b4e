#include "ir/fabric/streams.h"

// The tile at `place` of `line`: lines are rows of the region, or its columns when logical y runs along physical x.
static int32_t tile_at(const weft_machine_t* machine, const weft_region_t* region, int32_t line, int32_t place) {
  int32_t x = region->x + (region->transposed ? line : place), y = region->y + (region->transposed ? place : line);
  return y * machine->width + x;
}

bool weft_region_map(const weft_machine_t* machine, const weft_defects_t* defects, const weft_region_t* region,
                     int32_t gy, int32_t gx, int32_t* out_tiles) {
  if (region->x < 0 || region->y < 0 || region->width < 0 || region->height < 0 ||
      region->width > machine->width - region->x || region->height > machine->height - region->y)
    return false;
  int32_t lines = region->transposed ? region->width : region->height;
  int32_t places = region->transposed ? region->height : region->width;

  int32_t mapped = 0; // lines that have gx live tiles
  for (int32_t line = 0; line < lines && mapped < gy; ++line) {
    int32_t found = 0;
    for (int32_t place = 0; place < places && found < gx; ++place) {
      int32_t tile = tile_at(machine, region, line, place);
      if (weft_defects_live(defects, tile)) out_tiles[(int64_t)mapped * gx + found++] = tile;
    }
    mapped += found == gx;
  }
  if (mapped == gy) return true;

  int64_t needed = (int64_t)gy * gx, found = 0;
  for (int32_t line = 0; line < lines && found < needed; ++line) {
    for (int32_t i = 0; i < places && found < needed; ++i) {
      int32_t tile = tile_at(machine, region, line, line % 2 ? places - 1 - i : i);
      if (weft_defects_live(defects, tile)) out_tiles[found++] = tile;
    }
  }
  return found == needed;
}
