#include "machine/parts.h"

#include <string.h>

#include "base/arena.h"
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

// Depth-first search with its stack on the heap: a path may be as long as the mesh has tiles.
typedef struct search_t {
  const weft_machine_t* machine;
  const weft_defects_t* defects;
  int32_t* order;     // [tiles] when a tile was met; 0: not yet
  int32_t* low;       // [tiles] the earliest tile that its subtree has a link to
  int32_t* parent;    // [tiles]
  int32_t* open;      // tiles met whose piece is not known, in order
  int32_t* piece;     // [tiles] the piece that a tile was closed with; -1: none
  uint8_t* direction; // [tiles] the next to look at
  int32_t met, open_count, pieces;
  const uint8_t* port;               // [tiles] whether a host port is there
  int32_t best, best_top, best_size; // the largest piece with a port, and the tile that it hangs on
} search_t;

// The subtree of `tile` is done: when it has no link past `parent`, the open tiles from `tile` on and `parent` are a
// piece.
static void close_tile(search_t* s, int32_t tile, int32_t parent) {
  if (s->low[tile] < s->low[parent]) s->low[parent] = s->low[tile];
  if (s->low[tile] < s->order[parent]) return;
  bool port = s->port[parent];
  int32_t size = 1, closed;
  do {
    closed = s->open[--s->open_count];
    s->piece[closed] = s->pieces;
    port |= s->port[closed];
    ++size;
  } while (closed != tile);
  if (port && size > s->best_size) {
    s->best = s->pieces;
    s->best_top = parent;
    s->best_size = size;
  }
  ++s->pieces;
}

static void search_from(search_t* s, int32_t root) {
  s->order[root] = s->low[root] = ++s->met;
  s->parent[root] = -1;
  for (int32_t tile = root; tile >= 0;) {
    if (s->direction[tile] == WEFT_DIRECTION_COUNT) {
      int32_t parent = s->parent[tile];
      if (parent >= 0) close_tile(s, tile, parent);
      tile = parent;
      continue;
    }
    weft_direction_e d = (weft_direction_e)s->direction[tile]++;
    if (d == WEFT_DIRECTION_RAMP || !weft_defects_link_live(s->machine, s->defects, tile, d)) continue;
    int32_t next = weft_machine_neighbour(s->machine, tile, d);
    if (next == s->parent[tile]) continue;
    if (s->order[next]) {
      if (s->order[next] < s->low[tile]) s->low[tile] = s->order[next];
      continue;
    }
    s->order[next] = s->low[next] = ++s->met;
    s->parent[next] = tile;
    s->open[s->open_count++] = next;
    tile = next;
  }
}

weft_status_t weft_parts_core(const weft_parts_t* parts, const weft_machine_t* machine, const weft_defects_t* defects,
                              uint8_t* out_core, int32_t* out_tiles) {
  size_t tiles = (size_t)weft_machine_tiles(machine);
  weft_arena_t arena;
  weft_arena_initialize(parts->allocator, &arena);
  search_t s = {.machine = machine, .defects = defects, .best = -1};
  uint8_t* port = NULL;
  weft_status_t status = WEFT_ARENA_NEW(&arena, tiles, &s.order);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &s.low);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &s.parent);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &s.open);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &s.piece);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &s.direction);
  if (!status) status = WEFT_ARENA_NEW(&arena, tiles, &port);
  *out_tiles = 0;
  int32_t root = -1, chosen = weft_parts_main(parts, machine);
  for (size_t t = 0; t < tiles && !status; ++t) {
    s.piece[t] = -1;
    if (root < 0 && chosen >= 0 && parts->label[t] == chosen) root = (int32_t)t;
  }
  for (int32_t i = 0; i < weft_machine_port_count(machine) && !status; ++i)
    port[weft_machine_port(machine, i).tile] = 1;
  s.port = port;
  if (!status && root >= 0) {
    search_from(&s, root);
    for (size_t t = 0; t < tiles; ++t) {
      out_core[t] = s.best >= 0 && (s.piece[t] == s.best || (int32_t)t == s.best_top);
      *out_tiles += out_core[t];
    }
  }
  weft_arena_deinitialize(&arena);
  return status;
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
