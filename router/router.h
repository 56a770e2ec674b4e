// Routing: ordered gather trees and multicast trees over live links by negotiated congestion (McMurchie & Ebeling,
// PathFinder, FPGA 1995). The core knows nets, tiles and colours; route.h is the adapter for the fabric.
#pragma once
#include "base/arena.h"
#include "base/control.h"
#include "ir/fabric/fabric.h"

// A terminal: a tile, and the direction by which wavelets enter or leave its router: RAMP, or outward at an edge (a
// host port).
typedef struct weft_router_terminal_t {
  int32_t tile;
  weft_direction_e direction;
} weft_router_terminal_t;
// The segment of source 0 comes first, then that of source 1, ... Every sink gets all of them.
typedef struct weft_router_net_t {
  const char* name; // "producer -> consumer" for messages
  int32_t source_count, sink_count;
  const weft_router_terminal_t* source;
  const weft_router_terminal_t* sink;
  const int64_t* segment; // [source_count] wavelets of each source; the load on a link is what passes it
  int64_t wavelets;       // the sum of the segments
} weft_router_net_t;
typedef struct weft_router_route_t {
  int32_t entry_count;
  weft_router_entry_t* entry; // upstream before downstream
} weft_router_route_t;
typedef struct weft_router_report_t {
  int32_t iterations;
  int64_t hops, longest_hops; // links used; longest source-to-sink path of any net
  int64_t link_wavelets_max;
  int32_t colours_max;
  double stretch; // hops against the sum of shortest paths on a mesh without defects
} weft_router_report_t;

// The gather part is an in-tree: source k joins the path of source k + 1, before it in the switch, so that the segments
// arrive in order; the multicast part an out-tree from the last source's router. A net may pass a router twice (gather,
// multicast) with two colours (more often only where, in its order, its own gather part leaves no other way). At most
// machine->colours entries a router. Link load (wavelets) is balanced: between ways of equal length always, and by
// going further where some link carries more than `interval`, the cycles that a step takes anyhow (0: whatever it
// takes). UNROUTABLE names the net, the cut or router that is full, demand against capacity, and the nets that hold it;
// or the terminal that can't be reached.
weft_status_t weft_router_solve(const weft_machine_t* machine, const weft_defects_t* defects, int32_t net_count,
                                const weft_router_net_t* net, int64_t interval, const weft_control_t* control,
                                weft_arena_t* arena, weft_router_route_t** out_routes,
                                weft_router_report_t* out_report);
