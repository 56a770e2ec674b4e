// One net's route: a gather in-tree to the last source's router and a multicast out-tree from there. Private to the
// router.
#pragma once
#include "router/router.h"
#include "router/search.h"

typedef struct weft_router_node_t {
  int64_t wavelets; // that pass: the load on the links of its outputs
  int32_t tile;
  int32_t link;      // gather: the node downstream; multicast: the node upstream; root: -1
  uint16_t outputs;  // bit per direction
  uint8_t direction; // gather: of the output; multicast: where its wavelets come from
  uint8_t input_count;
  uint8_t input[WEFT_DIRECTION_COUNT]; // the switch
} weft_router_node_t;

enum { WEFT_ROUTER_GATHER = 1, WEFT_ROUTER_MULTICAST = 2 }; // parts of a tree

// Node 0 is the root; then the gather nodes, each after the one downstream; then the multicast nodes, each after the
// one upstream.
typedef struct weft_router_tree_t {
  weft_router_node_t* node;
  int32_t count, gather_count;
} weft_router_tree_t;

// Room to build a tree in, reused from net to net.
typedef struct weft_router_builder_t {
  weft_router_node_t* data;
  size_t count, capacity;
  int32_t first; // node where the wavelets start that come first so far
  int64_t* own;  // [count] wavelets of the source that starts at each node
  size_t own_capacity;
  struct weft_router_order_t* order;
  size_t order_capacity;
} weft_router_builder_t;
void weft_router_builder_deinitialize(weft_router_builder_t* builder, weft_allocator_t allocator);

// Routes parts of a net anew at today's costs, for the tree that it has; all parts when that is empty. Their resources
// are given back first, and claimed again. The net's ends must be in one part of the mesh.
weft_status_t weft_router_tree_route(weft_router_mesh_t* mesh, weft_router_search_t* search,
                                     weft_router_builder_t* builder, const weft_router_net_t* net, uint32_t parts,
                                     weft_router_tree_t* tree);
// Takes what the tree's nodes use again, after a rip of whatever the net had instead.
void weft_router_tree_claim(weft_router_mesh_t* mesh, const weft_router_tree_t* tree);
// Gives the resources back; the tree is empty then.
void weft_router_tree_rip(weft_router_mesh_t* mesh, weft_router_tree_t* tree);
