// Cheapest way from a tile to the nearest part of a net: A* over live routers. Private to the router.
#pragma once
#include "router/mesh.h"

// What a tile is to the net that is being routed.
typedef enum weft_router_mark_kind_e {
  WEFT_ROUTER_MARK_NONE,
  WEFT_ROUTER_MARK_TARGET,  // part of the net where the way may end: `node` is its node
  WEFT_ROUTER_MARK_BLOCKED, // part of the net where it may not
  WEFT_ROUTER_MARK_SOURCE   // a source, number `node`, that joins later
} weft_router_mark_kind_e;
typedef struct weft_router_mark_t {
  uint32_t stamp; // valid when the search's stamp
  int32_t node;
  uint16_t ports; // TARGET: directions from which nothing more can come
  uint8_t kind;
} weft_router_mark_t;

typedef struct weft_router_seen_t {
  int64_t cost;   // from the start
  uint32_t epoch; // valid when the search's epoch
  uint8_t from;   // direction of the step into this tile
  bool closed;
} weft_router_seen_t;
// Side by side: a step looks at both.
typedef struct weft_router_place_t {
  weft_router_seen_t seen;
  weft_router_mark_t mark;
} weft_router_place_t;
typedef struct weft_router_heap_item_t {
  uint64_t key;
  int32_t tile;
} weft_router_heap_item_t;

// One array over all tiles, never cleared between searches: stamps tell what is valid.
typedef struct weft_router_search_t {
  const weft_router_mesh_t* mesh;
  weft_router_place_t* at; // [tiles]
  uint32_t stamp, epoch;
  int64_t looked_at; // tiles, in all searches: what they cost
  weft_router_heap_item_t* heap;
  size_t heap_count, heap_capacity;
} weft_router_search_t;

weft_status_t weft_router_search_initialize(const weft_router_mesh_t* mesh, weft_router_search_t* out_search);
void weft_router_search_deinitialize(weft_router_search_t* search);

void weft_router_search_clear_marks(weft_router_search_t* search);
// The mark to write to; NONE until it was written since the last clear.
static inline weft_router_mark_t* weft_router_search_mark(weft_router_search_t* search, int32_t tile) {
  weft_router_mark_t* mark = &search->at[tile].mark;
  if (mark->stamp != search->stamp) *mark = (weft_router_mark_t){.stamp = search->stamp};
  return mark;
}

typedef struct weft_router_query_t {
  int32_t start;
  bool upstream;          // wavelets will flow towards the start: links are taken against the way
  bool cross;             // tiles of the net where the way may not end may be passed, by one more entry
  int32_t only;           // the way may only end at this node; -1: at any TARGET
  int32_t next_source;    // SOURCE tiles other than this one are avoided where it costs nothing
  int32_t x0, y0, x1, y1; // every TARGET lies in this box
  int32_t own;            // level of what the net adds to the links
  int64_t limit;          // gives up beyond this cost; 0: none
} weft_router_query_t;
// Whether the way may end with a step in direction `d` into a tile with this mark.
static inline bool weft_router_query_accepts(const weft_router_query_t* query, const weft_router_mark_t* mark, int d) {
  return (query->only < 0 || mark->node == query->only) && !(mark->ports >> weft_direction_opposite(d) & 1);
}
// What the load costs on the link that the step uses: against the step when wavelets flow towards the start.
static inline int32_t weft_router_query_link_cost(const weft_router_mesh_t* mesh, const weft_router_query_t* query,
                                                  int32_t tile, int d) {
  int32_t level =
      query->upstream ? mesh->tile[tile + mesh->step[d]].level[weft_direction_opposite(d)] : mesh->tile[tile].level[d];
  return level ? weft_router_mesh_link_cost(mesh, level, query->own) : 0;
}
// *out_hit is the target's tile, or -1: none can be reached. The way back: while (tile != start) tile -=
// step[seen[tile].from].
weft_status_t weft_router_search_run(weft_router_search_t* search, const weft_router_query_t* query, int32_t* out_hit);
