// From chosen alternatives to streams, and from regions to tiles.
#pragma once
#include "ir/fabric/split.h"

enum {
  // An edge (operand piece) gets at most this many streams, or one for each line along the longer side of either grid at its ends,
  // whichever has fewer, if that is more; to and from the host, one for each port.
  WEFT_STREAMS_PER_EDGE = 16,
  WEFT_STREAMS_PER_EDGE_MOST = 1024, // past this many, routing costs more time than streams save
  // A third of a router's colours: what one edge may ask of a source tile, which mostly feeds more than one consumer. Bounds the
  // sends in a tile's program, too.
  WEFT_STREAMS_PER_TILE = 8
};

// Logical -> physical tiles of a region. When gy of the region's lines each have gx live tiles, logical line i takes the live
// tiles of the i-th such line. Else the tiles along the grid's longer side are stacks, and each line across takes the next live
// tile of the stacks that have most left: enough when the sum over the stacks of min(live tiles, lines across) reaches gy * gx,
// and the stacks are three quarters as deep as there are lines across at the least.
// Else the live tiles in boustrophedon order. False: too few live tiles. Writes gy * gx.
bool weft_region_map(const weft_machine_t* machine, const weft_defects_t* defects, const weft_region_t* region, int32_t gy,
                     int32_t gx, int32_t* out_tiles);

// Builds fabric->stream from the chosen alternatives (replacing what was there). Every operand piece of every kernel and
// every output gets its streams: as coarse a grouping of sinks as meets the slowest kernel's time, or else the fastest
// that the colours at both ends allow; plus one CHAIN stream a hop. Every needed element arrives exactly once.
// `share`: how much of the routers' colours the grouping plans with, 1: as much as it finds worth it; towards 0: one
// stream an edge, for a mesh in which routing finds no way for more.
weft_status_t weft_streams_build(weft_fabric_t* fabric, const weft_machine_t* machine, double share);

// Calls back for every element of the walk that the sink's filter takes, in stream order, as runs: `count` elements from
// stream position `position` on, at element offset `target` in the sink's buffer, growing by target_step. Reference
// semantics of RECV in docs/isa.md; subtrees of the walk outside the filter are skipped.
typedef weft_status_t (*weft_stream_run_fn)(void* self, int64_t position, int64_t count, int64_t target, int64_t target_step);
weft_status_t weft_walk_runs(const weft_walk_t* walk, const weft_shape_t* tensor_shape, const weft_view_t* view,
                             const weft_box_t* filter, const int64_t* strides, weft_stream_run_fn run, void* self);
