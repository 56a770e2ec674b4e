// The one way to split any layer: boxes and owners follow from index maps (design: kernels).
#pragma once
#include "ir/fabric/fabric.h"

// Iteration box of logical tile (ly, lx) under a split: rank = dim_count.
typedef struct weft_iteration_box_t {
  int64_t lo[WEFT_MAX_DIMS], hi[WEFT_MAX_DIMS];
} weft_iteration_box_t;
weft_iteration_box_t weft_split_box(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical);
int64_t weft_split_block(const weft_kernel_t* kernel, const weft_split_t* split, int32_t dim); // block size along a dimension
int32_t weft_split_grid(const weft_axis_factor_t* factor, int32_t count); // product of parts

// Image of an iteration box in a buffer's coordinates.
weft_box_t weft_split_buffer_box(const weft_kernel_t* kernel, const weft_buffer_t* buffer, const weft_iteration_box_t* box);
// The largest extents that any tile's box has in this buffer: the buffer's layout in tile memory is row-major over these,
// the same on all tiles of the kernel.
weft_shape_t weft_split_buffer_extents(const weft_kernel_t* kernel, const weft_split_t* split, int32_t buffer);

// Length of the reduce chain (1: none), position of a tile in its chain (0: first), and its successor (-1 at the owner).
int32_t weft_split_chain_length(const weft_kernel_t* kernel, const weft_split_t* split);
int32_t weft_split_chain_position(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical);
int32_t weft_split_chain_next(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical);
bool weft_split_is_owner(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical);
// Whether operation `operation` runs on this tile (see weft_kernel_t.reduce_operation), and whether a buffer is used there.
bool weft_split_runs(const weft_kernel_t* kernel, const weft_split_t* split, int32_t operation, int32_t logical);
bool weft_split_needs_buffer(const weft_kernel_t* kernel, const weft_split_t* split, int32_t buffer, int32_t logical);

// Whether streams end or begin in a buffer, and how many copies of it a tile has, which the steps take in turn.
bool weft_split_is_streamed(const weft_fabric_t* fabric, const weft_buffer_t* buffer);
int32_t weft_split_depth(const weft_fabric_t* fabric, const weft_alternative_t* alternative, const weft_buffer_t* buffer);

// The SEQUENTIAL dimension as a mask, 0: the kernel has none.
uint32_t weft_split_sequential(const weft_kernel_t* kernel);
// Whether an index of the SEQUENTIAL dimension (mask) reads what an earlier one left in a buffer.
bool weft_split_is_carried(const weft_operation_t* operation, int32_t count, uint32_t sequential, int32_t buffer);
// Whether a buffer of a kernel is an operand made of one of the kernel's own results, which comes back to all tiles that
// need it: right after the last operation of each index of the SEQUENTIAL dimension that writes the result, so that
// operations behind that see it, and those before it what the index before left (at first: what operations before the loop
// put there).
bool weft_split_is_feedback(const weft_fabric_t* fabric, int32_t kernel, int32_t buffer);

// Whether a buffer's box depends on the box along an iteration dimension; where it doesn't, tiles that differ there have the same.
bool weft_split_depends_on(const weft_buffer_t* buffer, int32_t dim);
// The order in which tiles send: along the lines of the grid's longer side, which dead tiles leave straight (weft_region_map), so
// that what comes together takes few detours. True: column by column; else row by row.
bool weft_split_by_columns(const weft_split_t* split);
// The owner tile that sends segment `source_index` of a result's walk (mixed radix of the walk's source levels).
int32_t weft_split_owner(const weft_kernel_t* kernel, const weft_split_t* split, int64_t source_index);
// The only coordinate of a result that depends on `dim`, if that coordinate is `dim` itself, else -1. A PARALLEL dimension may
// be split iff each result of the kernel has such a coordinate.
int32_t weft_split_result_row(const weft_kernel_t* kernel, const weft_buffer_t* buffer, int32_t dim);

// The box of the result tensor that an owner tile holds (tensor coordinates; clipped to the shape).
weft_box_t weft_split_owned_box(const weft_fabric_t* fabric, int32_t tensor, int32_t logical);
// The walk over a whole tensor as its owners hold it. Inputs: one source (the host), row-major.
weft_status_t weft_split_walk(const weft_fabric_t* fabric, int32_t tensor, weft_walk_t* out_walk);
// Elements of the walk inside its box; and of the segment of one source (source_index: mixed radix of the source levels).
int64_t weft_walk_elements(const weft_walk_t* walk);
int64_t weft_walk_segment_elements(const weft_walk_t* walk, int64_t source_index);

// One cost function. Fills the figures of alternative->split: all that follows it in the struct.
weft_status_t weft_cost_alternative(const weft_fabric_t* fabric, int32_t kernel, const weft_machine_t* machine,
                                    weft_alternative_t* inout_alternative);
// Enumerates the useful splits of every kernel (Pareto: cycles, tiles, shape; memory within the tile) up to the machine's
// size, deterministic order: fewest tiles first. What an earlier choice left (spare places) is taken back. DOES_NOT_FIT names the kernel, its least bytes a tile and the tile's memory.
weft_status_t weft_cost_enumerate(weft_fabric_t* fabric, const weft_machine_t* machine);
