// Which streams carry what: for each operand piece, its consumer tiles in groups, each group one stream from all owners
// of what the group needs. Private to ir/fabric; streams.c makes the streams.
#pragma once
#include "base/array.h"
#include "ir/fabric/streams.h"

// A rectangle of a kernel's logical grid, ends included.
typedef struct weft_span_t {
  int32_t y0, y1, x0, x1;
} weft_span_t;
// Consumer tiles whose needs can't differ: the digits of the split that don't appear in the operand's index map are
// dropped. Row and column count the digits that remain on the two axes.
typedef struct weft_stream_cell_t {
  bool used;        // some tile there takes part
  weft_span_t span; // of its tiles in the consumer's grid
  int64_t elements; // that each of its tiles takes
  weft_box_t need;  // in tensor coordinates
} weft_stream_cell_t;
typedef struct weft_stream_sink_t {
  int32_t logical;
  int32_t cell;
  int32_t group; // once the grouping is chosen
} weft_stream_sink_t;
typedef struct weft_source_load_t {
  int64_t wavelets;
  int32_t streams;
} weft_source_load_t;

// Parts along an axis of a kernel's grid, the outermost first: the index is their mixed radix.
typedef struct weft_digits_t {
  int32_t count;
  int32_t parts[WEFT_MAX_AXIS_FACTORS];
} weft_digits_t;
// Consecutive rows and columns of cells, in row_groups * column_groups blocks: a stream for each.
typedef struct weft_grouping_t {
  int32_t row_groups, column_groups;
  int32_t row_block, column_block;
  int64_t time; // cycles: of the longest stream, the busiest source, or the links around, whatever takes longest
  int32_t source_colours; // streams that pass the place of the producer's grid where most do
  double sink_colours;    // streams that pass a place of the consumer's grid, in the mean
} weft_grouping_t;

// One operand piece of one kernel, or of an output.
typedef struct weft_stream_edge_t {
  int32_t sink_kernel, sink_buffer, sink_piece;
  const weft_piece_t* piece;
  const weft_tensor_t* tensor;
  int32_t source_kernel;
  weft_walk_t walk; // of the whole tensor
  weft_digits_t row_digits, column_digits;
  int32_t rows, columns;              // of cells
  int32_t first_option, option_count; // groupings to choose from, the coarsest first; none: nobody needs anything
  int32_t chosen;
} weft_stream_edge_t;

typedef struct weft_stream_builder_t {
  weft_fabric_t* fabric;
  const weft_machine_t* machine;
  weft_allocator_t allocator;
  double share;   // of the colours
  int64_t target; // cycles of the slowest kernel: a stream that is faster than that is fast enough
  WEFT_ARRAY(weft_stream_edge_t) edges; // in the order of their streams
  WEFT_ARRAY(weft_grouping_t) options;
  WEFT_ARRAY(weft_stream_t) streams;
  // Of one edge
  WEFT_ARRAY(weft_stream_sink_t) sinks;
  WEFT_ARRAY(weft_stream_cell_t) cells;
  WEFT_ARRAY(weft_source_load_t) loads;
  WEFT_ARRAY(int32_t) cover; // of places of a grid by spans
  // [WEFT_STREAMS_PER_EDGE_MOST], by group
  weft_box_t* box;
  weft_span_t* span;
  bool* used;
  bool* known;
} weft_stream_builder_t;

// The segments of a walk whose owners hold something of `box`, in stream order.
typedef struct weft_segment_t {
  const weft_walk_t* walk;
  weft_box_t box;
  int64_t first[WEFT_MAX_LEVELS], last[WEFT_MAX_LEVELS], digit[WEFT_MAX_LEVELS];
  int64_t unsplit; // elements of the box along the dimensions that are whole at each owner
  bool done;
  int64_t source_index, elements; // after weft_segment_next
} weft_segment_t;

void weft_segments_begin(const weft_walk_t* walk, const weft_box_t* box, weft_segment_t* out_segment);
// False: there are no more.
bool weft_segment_next(weft_segment_t* segment);

static inline const weft_split_t* weft_chosen_split(const weft_kernel_t* kernel) {
  return &kernel->alternative[kernel->chosen].split;
}

static inline void weft_span_grow(weft_span_t* span, weft_span_t by) {
  if (by.y0 < span->y0) span->y0 = by.y0;
  if (by.y1 > span->y1) span->y1 = by.y1;
  if (by.x0 < span->x0) span->x0 = by.x0;
  if (by.x1 > span->x1) span->x1 = by.x1;
}

// The group of a cell; fills box and used with what each group needs.
int32_t weft_grouping_of(const weft_stream_edge_t* edge, const weft_grouping_t* grouping, int32_t cell);
void weft_grouping_boxes(weft_stream_builder_t* builder, const weft_stream_edge_t* edge,
                         const weft_grouping_t* grouping);
// Appends the edge's options: groupings of its cells (collected in the builder, with loads for its sources) of which
// none is both faster and cheaper in colours than another, the slowest first.
weft_status_t weft_grouping_options(weft_stream_builder_t* builder, weft_stream_edge_t* edge);
// Chooses an option for every edge. A kernel's colours, less some for chains and for streams that pass by, go to the
// edges that begin or end there: the slowest streams of all get theirs first.
weft_status_t weft_grouping_allot(weft_stream_builder_t* builder);
