// Routing resources and what they cost now: the colours of routers, which are limited, and the load of links, which is
// balanced. Private to the router.
#pragma once
#include "ir/fabric/fabric.h"

enum {
  WEFT_ROUTER_HOP = 1024,    // cost of a hop over an idle link into a router with free colours
  WEFT_ROUTER_CROWDED = 256, // level of a link whose load is `crowded`
  WEFT_ROUTER_LEVEL_MAX = 4 * WEFT_ROUTER_CROWDED,
  WEFT_ROUTER_PENALTY_MAX = 1 << 26 // of one router or link; keeps the cost of the longest path within 47 bits
};

typedef struct weft_router_tile_t {
  uint32_t usage;                       // entries of all nets
  uint32_t history;                     // cost that grows while the router is overused
  uint16_t links;                       // bit d: the link in direction d is live
  uint16_t level[WEFT_DIRECTION_COUNT]; // of the load of each link, rounded up
  uint32_t unused_;                     // 32 bytes
} weft_router_tile_t;

typedef struct weft_router_mesh_t {
  weft_allocator_t allocator;
  int32_t width, height, tiles, colours;
  bool diagonal;
  int32_t step[WEFT_DIRECTION_COUNT]; // tile index of the neighbour minus one's own
  weft_router_tile_t* tile;
  int64_t* load;    // [tile * WEFT_DIRECTION_COUNT + direction] wavelets
  int64_t crowded;  // load that no link should exceed
  int32_t steep;    // how much it pays to go round links that would; 0: loads decide between ways of equal length
  int64_t present;  // cost of each colour above the router's
  int32_t overused; // routers with more entries than colours
} weft_router_mesh_t;

weft_status_t weft_router_mesh_initialize(weft_allocator_t allocator, const weft_machine_t* machine,
                                          const weft_defects_t* defects, weft_router_mesh_t* out_mesh);
void weft_router_mesh_deinitialize(weft_router_mesh_t* mesh);

// One entry more (+1) or less (-1) in a router; `wavelets` more (or, negative, less) on a link.
void weft_router_mesh_use(weft_router_mesh_t* mesh, int32_t tile, int32_t entries);
void weft_router_mesh_load(weft_router_mesh_t* mesh, int32_t tile, weft_direction_e direction, int64_t wavelets);
// Levels are in parts of `crowded` from now on.
void weft_router_mesh_crowd(weft_router_mesh_t* mesh, int64_t crowded);
// Overused routers get dearer for good.
void weft_router_mesh_age(weft_router_mesh_t* mesh);
void weft_router_mesh_maxima(const weft_router_mesh_t* mesh, int32_t* out_colours, int64_t* out_load);

// Hops between two tiles on a mesh without defects.
static inline int32_t weft_router_mesh_hops(const weft_router_mesh_t* mesh, int32_t dx, int32_t dy) {
  if (dx < 0) dx = -dx;
  if (dy < 0) dy = -dy;
  return mesh->diagonal ? (dx > dy ? dx : dy) : dx + dy;
}
static inline int32_t weft_router_mesh_distance(const weft_router_mesh_t* mesh, int32_t a, int32_t b) {
  return weft_router_mesh_hops(mesh, a % mesh->width - b % mesh->width, a / mesh->width - b / mesh->width);
}

// Loads in parts of `crowded`.
static inline int32_t weft_router_mesh_level(const weft_router_mesh_t* mesh, int64_t load) {
  if (load >= 4 * mesh->crowded) return WEFT_ROUTER_LEVEL_MAX;
  return (int32_t)((load * WEFT_ROUTER_CROWDED + mesh->crowded - 1) / mesh->crowded);
}

// What a link of this level costs beside the hop, for a net that adds the level `own`. With z in parts of `crowded`:
// z / 32 + z^2 / 64 hops, which decides between ways of equal length, and, as often as it is steep, 16 (z + own)^4 less
// the 16 own^4 that the net has on every link: the lowest maximum is what the sum of high powers is least for.
static inline int32_t weft_router_mesh_link_cost(const weft_router_mesh_t* mesh, int32_t level, int32_t own) {
  int64_t z = level, sum = z + own;
  int64_t rise = (sum * sum * sum * sum - (int64_t)own * own * own * own) >> 18;
  int64_t cost = z / 8 + z * z / 4096 + mesh->steep * rise;
  return cost < WEFT_ROUTER_PENALTY_MAX ? (int32_t)cost : WEFT_ROUTER_PENALTY_MAX;
}

// What one more entry in the router costs beside its hop.
static inline int64_t weft_router_mesh_penalty(const weft_router_mesh_t* mesh, int32_t tile) {
  const weft_router_tile_t* t = &mesh->tile[tile];
  int64_t penalty = t->history;
  if (t->usage >= (uint32_t)mesh->colours) penalty += mesh->present * ((int64_t)t->usage + 1 - mesh->colours);
  return penalty < WEFT_ROUTER_PENALTY_MAX ? penalty : WEFT_ROUTER_PENALTY_MAX;
}
