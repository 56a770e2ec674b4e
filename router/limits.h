// What can be said without routing, and why routing failed: ends of nets that can't be reached, routers and lines of
// the mesh that can't hold what must pass them. Private to the router.
#pragma once
#include "machine/parts.h"
#include "router/mesh.h"
#include "router/tree.h"

// INVALID_ARGUMENT for nets that are malformed.
weft_status_t weft_router_limits_validate(const weft_machine_t* machine, int32_t net_count,
                                          const weft_router_net_t* net);
// UNROUTABLE, naming net and terminal, unless all ends of each net are live and in one part of the mesh.
weft_status_t weft_router_limits_reach(const weft_router_mesh_t* mesh, const weft_parts_t* parts, int32_t net_count,
                                       const weft_router_net_t* net);
// INVALID_ARGUMENT for a net with the same source twice. UNROUTABLE when a router can't hold the ends of nets that lie
// there, or a row or column the nets that must cross it: whatever the routes.
weft_status_t weft_router_limits_colours(const weft_router_mesh_t* mesh, const weft_parts_t* parts, int32_t net_count,
                                         const weft_router_net_t* net);
// UNROUTABLE after `iterations`: the fullest router, with the nets that hold it, and the cut that the full ones make.
// `net[i]` has `tree[i]`.
weft_status_t weft_router_limits_overused(const weft_router_mesh_t* mesh, const weft_machine_t* machine,
                                          const weft_defects_t* defects, int32_t net_count,
                                          const weft_router_net_t* net, const weft_router_tree_t* tree,
                                          int32_t iterations);
