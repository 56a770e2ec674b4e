// From trees to router entries: a colour for every entry. Private to the router.
#pragma once
#include "base/arena.h"
#include "router/tree.h"

// Entries of a router get different colours; along a net the colour changes only where it must. No router may be
// overused.
weft_status_t weft_router_colour(const weft_router_mesh_t* mesh, int32_t net_count, const weft_router_tree_t* tree,
                                 weft_arena_t* arena, weft_router_route_t* out_route);
