// The map itself: which tiles and links are dead. A link of a dead tile is never marked, so that equal maps have equal
// bits whatever order they were made in.
#include "machine/defects.h"

#include <string.h>

weft_status_t weft_defects_create(weft_allocator_t allocator, const weft_machine_t* machine,
                                  weft_defects_t* out_defects) {
  *out_defects = (weft_defects_t){.width = machine->width, .height = machine->height, .allocator = allocator};
  size_t tiles = (size_t)weft_machine_tiles(machine);
  weft_status_t status =
      weft_allocator_calloc(allocator, tiles, sizeof(*out_defects->dead_tile), (void**)&out_defects->dead_tile);
  if (!status) {
    status =
        weft_allocator_calloc(allocator, tiles, sizeof(*out_defects->dead_links), (void**)&out_defects->dead_links);
  }
  if (status) weft_defects_deinitialize(out_defects);
  return status;
}

void weft_defects_deinitialize(weft_defects_t* defects) {
  if (defects->dead_tile) weft_allocator_free(defects->allocator, defects->dead_tile);
  if (defects->dead_links) weft_allocator_free(defects->allocator, defects->dead_links);
  memset(defects, 0, sizeof(*defects));
}

void weft_defects_kill_tile(weft_defects_t* defects, int32_t tile) {
  if (defects->dead_tile[tile]) return;
  defects->dead_tile[tile] = 1;
  ++defects->dead_tile_count;
  // A bit is only ever set where there is a neighbour, so no edge needs a check.
  for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
    if (!(defects->dead_links[tile] >> d & 1)) continue;
    int32_t neighbour = tile + weft_direction_dy[d] * defects->width + weft_direction_dx[d];
    defects->dead_links[neighbour] &= (uint16_t) ~(1u << weft_direction_opposite((weft_direction_e)d));
    --defects->dead_link_count;
  }
  defects->dead_links[tile] = 0;
}

void weft_defects_kill_link(const weft_machine_t* machine, weft_defects_t* defects, int32_t tile,
                            weft_direction_e direction) {
  if (direction == WEFT_DIRECTION_RAMP || !weft_defects_link_live(machine, defects, tile, direction)) return;
  int32_t neighbour = weft_machine_neighbour(machine, tile, direction);
  defects->dead_links[tile] |= (uint16_t)(1u << direction);
  defects->dead_links[neighbour] |= (uint16_t)(1u << weft_direction_opposite(direction));
  ++defects->dead_link_count;
}

bool weft_defects_link_live(const weft_machine_t* machine, const weft_defects_t* defects, int32_t tile,
                            weft_direction_e direction) {
  if (defects->dead_tile[tile]) return false;
  if (direction == WEFT_DIRECTION_RAMP) return true;
  int32_t neighbour = weft_machine_neighbour(machine, tile, direction);
  return neighbour >= 0 && !defects->dead_tile[neighbour] && !(defects->dead_links[tile] >> direction & 1);
}

// A chain of digests over pieces of the map, the size first: no copy of the map, and the same on any byte order.
weft_digest_t weft_defects_digest(const weft_defects_t* defects) {
  enum { TILES_A_PIECE = 1024, BYTES_A_TILE = 3 };
  uint8_t piece[sizeof(weft_digest_t) + (size_t)TILES_A_PIECE * BYTES_A_TILE];
  uint8_t* body = piece + sizeof(weft_digest_t);
  for (int i = 0; i < 4; ++i) {
    body[i] = (uint8_t)((uint32_t)defects->width >> 8 * i);
    body[4 + i] = (uint8_t)((uint32_t)defects->height >> 8 * i);
  }
  weft_digest_t digest = weft_digest_of(body, 8);
  int64_t tiles = (int64_t)defects->width * defects->height;
  for (int64_t first = 0; first < tiles; first += TILES_A_PIECE) {
    int64_t count = tiles - first < TILES_A_PIECE ? tiles - first : TILES_A_PIECE;
    memcpy(piece, &digest, sizeof(digest));
    for (int64_t i = 0; i < count; ++i) {
      uint16_t links = defects->dead_links[first + i];
      body[i * BYTES_A_TILE] = defects->dead_tile[first + i];
      body[i * BYTES_A_TILE + 1] = (uint8_t)links;
      body[i * BYTES_A_TILE + 2] = (uint8_t)(links >> 8);
    }
    digest = weft_digest_of(piece, sizeof(digest) + (size_t)count * BYTES_A_TILE);
  }
  return digest;
}
