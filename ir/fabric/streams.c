// Which streams carry what: for each operand piece, its consumer tiles in groups, each group one stream from all owners
// of what the group needs.
#include "ir/fabric/streams.h"

#include <string.h>

#include "base/array.h"
#include "base/checked.h"

// A rectangle of a kernel's logical grid, ends included.
typedef struct span_t {
  int32_t y0, y1, x0, x1;
} span_t;
// Consumer tiles whose needs can't differ: the digits of the split that don't appear in the operand's index map are
// dropped. Row and column count the digits that remain on the two axes.
typedef struct cell_t {
  bool used;        // some tile there takes part
  span_t span;      // of its tiles in the consumer's grid
  int64_t elements; // that each of its tiles takes
  weft_box_t need;  // in tensor coordinates
} cell_t;
typedef struct sink_t {
  int32_t logical;
  int32_t cell;
  int32_t group; // once the grouping is chosen
} sink_t;
typedef struct source_load_t {
  int64_t wavelets;
  int32_t streams;
} source_load_t;

// One operand piece of one kernel, or of an output.
typedef struct edge_t {
  int32_t sink_kernel, sink_buffer, sink_piece;
  const weft_piece_t* piece;
  const weft_tensor_t* tensor;
  int32_t source_kernel;
  weft_walk_t walk; // of the whole tensor
  int32_t rows, columns;
} edge_t;
// Consecutive rows and columns of cells, in row_groups * column_groups blocks.
typedef struct grouping_t {
  int32_t row_groups, column_groups;
  int32_t row_block, column_block;
  int64_t time; // wavelets of the longest stream or of the busiest source, whichever is more
} grouping_t;

typedef struct builder_t {
  weft_fabric_t* fabric;
  const weft_machine_t* machine;
  weft_allocator_t allocator;
  double share;   // of the colours
  int64_t target; // cycles of the slowest kernel: a stream that is faster than that is fast enough
  WEFT_ARRAY(weft_stream_t) streams;
  WEFT_ARRAY(sink_t) sinks;
  WEFT_ARRAY(cell_t) cells;
  WEFT_ARRAY(source_load_t) loads;
  int32_t *edges_in, *edges_out; // [kernels] that end and begin at the kernel
  int32_t* room;                 // [kernels] streams of one edge that may pass a router in the kernel's region
  WEFT_ARRAY(int32_t) cover;     // of places of a grid by spans
  // [WEFT_STREAMS_PER_EDGE_MOST], by group
  weft_box_t* box;
  span_t* span;
  bool* used;
  bool* known;
} builder_t;

static bool depends_on(const weft_buffer_t* buffer, int32_t dim) {
  for (int32_t r = 0; r < buffer->rank; ++r)
    if (buffer->row[r].coefficient[dim] != 0) return true;
  return false;
}

// Mixed radix over the digits of an axis index that the buffer depends on.
static int32_t reduced_index(const weft_buffer_t* buffer, const weft_axis_factor_t* factor, int32_t count,
                             int32_t index, int32_t* out_extent) {
  int32_t reduced = 0, extent = 1;
  for (int32_t i = count - 1; i >= 0; --i) {
    if (depends_on(buffer, factor[i].dim)) {
      reduced += index % factor[i].parts * extent;
      extent *= factor[i].parts;
    }
    index /= factor[i].parts;
  }
  *out_extent = extent;
  return reduced;
}

static const weft_split_t* chosen_split(const weft_kernel_t* kernel) {
  return &kernel->alternative[kernel->chosen].split;
}

static void grow_span(span_t* span, span_t by) {
  if (by.y0 < span->y0) span->y0 = by.y0;
  if (by.y1 > span->y1) span->y1 = by.y1;
  if (by.x0 < span->x0) span->x0 = by.x0;
  if (by.x1 > span->x1) span->x1 = by.x1;
}

static weft_status_t clear_cells(builder_t* b, const edge_t* edge) {
  b->sinks.count = 0;
  b->cells.count = 0;
  size_t count = (size_t)edge->rows * (size_t)edge->columns;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->cells, count));
  b->cells.count = count;
  memset(b->cells.data, 0, count * sizeof(cell_t));
  return weft_ok();
}

static weft_status_t collect_sinks(builder_t* b, edge_t* edge) {
  const weft_kernel_t* kernel = &b->fabric->kernel[edge->sink_kernel];
  const weft_buffer_t* buffer = &kernel->buffer[edge->sink_buffer];
  const weft_split_t* split = chosen_split(kernel);
  int32_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count);
  reduced_index(buffer, split->y, split->y_count, 0, &edge->rows);
  reduced_index(buffer, split->x, split->x_count, 0, &edge->columns);
  WEFT_RETURN_IF_ERROR(clear_cells(b, edge));
  for (int32_t logical = 0; logical < gy * gx; ++logical) {
    if (!weft_split_needs_buffer(kernel, split, edge->sink_buffer, logical)) continue;
    int32_t extent, row = reduced_index(buffer, split->y, split->y_count, logical / gx, &extent);
    int32_t index = row * edge->columns + reduced_index(buffer, split->x, split->x_count, logical % gx, &extent);
    cell_t* cell = &b->cells.data[index];
    span_t at = {logical / gx, logical / gx, logical % gx, logical % gx};
    if (cell->used) {
      grow_span(&cell->span, at);
    } else {
      cell->used = true;
      cell->span = at;
      weft_iteration_box_t box = weft_split_box(kernel, split, logical);
      weft_box_t filter = weft_split_buffer_box(kernel, buffer, &box);
      cell->elements = weft_view_count(&edge->piece->view, &filter);
      if (cell->elements > 0) cell->need = weft_view_preimage(&edge->piece->view, &edge->tensor->shape, &filter);
    }
    if (cell->elements > 0) WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->sinks, (sink_t){logical, index, 0}));
  }
  return weft_ok();
}

// The host takes everything, in rows as the owners have it along the dimension that is split into most blocks.
static weft_status_t collect_host_sink(builder_t* b, edge_t* edge) {
  const weft_walk_level_t* level = NULL;
  for (int32_t k = 0; k < edge->walk.source_levels; ++k)
    if (!level || edge->walk.level[k].extent > level->extent) level = &edge->walk.level[k];
  edge->rows = level ? (int32_t)level->extent : 1;
  edge->columns = 1;
  WEFT_RETURN_IF_ERROR(clear_cells(b, edge));
  weft_box_t image = weft_view_image(&edge->piece->view);
  int64_t elements = weft_view_count(&edge->piece->view, &image);
  if (elements == 0) return weft_ok();
  weft_box_t need = weft_view_preimage(&edge->piece->view, &edge->tensor->shape, &image);
  for (int32_t row = 0; row < edge->rows; ++row) {
    cell_t* cell = &b->cells.data[row];
    *cell = (cell_t){.used = true, .elements = elements, .need = need};
    if (level) {
      int64_t lo = row * level->step;
      cell->need.lo[level->dim] = weft_max_i64(need.lo[level->dim], lo);
      cell->need.hi[level->dim] = weft_min_i64(need.hi[level->dim], lo + level->step);
    }
    if (weft_box_is_empty(&cell->need)) cell->elements = 0;
    if (cell->elements > 0) WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->sinks, (sink_t){0, row, 0}));
  }
  return weft_ok();
}

// The segments of a walk whose owners hold something of `box`, in stream order.
typedef struct segment_t {
  const weft_walk_t* walk;
  weft_box_t box;
  int64_t first[WEFT_MAX_LEVELS], last[WEFT_MAX_LEVELS], digit[WEFT_MAX_LEVELS];
  int64_t unsplit; // elements of the box along the dimensions that are whole at each owner
  bool done;
  int64_t source_index, elements; // after segment_next
} segment_t;

static void segments_begin(const weft_walk_t* walk, const weft_box_t* box, segment_t* out_segment) {
  *out_segment = (segment_t){.walk = walk, .box = *box, .unsplit = 1, .done = weft_box_is_empty(box)};
  bool split[WEFT_MAX_RANK] = {false};
  for (int32_t k = 0; k < walk->source_levels; ++k) {
    const weft_walk_level_t* level = &walk->level[k];
    split[level->dim] = true;
    out_segment->first[k] = out_segment->digit[k] = box->lo[level->dim] / level->step;
    out_segment->last[k] = (box->hi[level->dim] - 1) / level->step;
  }
  for (int32_t d = 0; d < box->rank; ++d)
    if (!split[d]) out_segment->unsplit *= box->hi[d] - box->lo[d];
}

static bool segment_next(segment_t* segment) {
  if (segment->done) return false;
  segment->source_index = 0;
  segment->elements = segment->unsplit;
  for (int32_t k = 0; k < segment->walk->source_levels; ++k) {
    const weft_walk_level_t* level = &segment->walk->level[k];
    int64_t lo = segment->digit[k] * level->step;
    segment->source_index = segment->source_index * level->extent + segment->digit[k];
    segment->elements *=
        weft_min_i64(segment->box.hi[level->dim], lo + level->step) - weft_max_i64(segment->box.lo[level->dim], lo);
  }
  int32_t k = segment->walk->source_levels - 1;
  for (; k >= 0 && segment->digit[k]++ == segment->last[k]; --k) segment->digit[k] = segment->first[k];
  segment->done = k < 0;
  return true;
}

static int32_t group_of(const edge_t* edge, const grouping_t* grouping, int32_t cell) {
  return cell / edge->columns / grouping->row_block * grouping->column_groups +
         cell % edge->columns / grouping->column_block;
}

// What each group needs.
static void group_boxes(builder_t* b, const edge_t* edge, const grouping_t* grouping) {
  memset(b->used, 0, WEFT_STREAMS_PER_EDGE_MOST * sizeof(*b->used));
  for (size_t i = 0; i < b->cells.count; ++i) {
    const cell_t* cell = &b->cells.data[i];
    if (cell->elements == 0) continue;
    int32_t group = group_of(edge, grouping, (int32_t)i);
    b->box[group] = b->used[group] ? weft_box_hull(&b->box[group], &cell->need) : cell->need;
    b->used[group] = true;
  }
}

// More than `room` of the groups' spans cover one place of a gy x gx grid: second differences, summed up.
static bool is_crowded(builder_t* b, int32_t groups, int32_t gy, int32_t gx, int32_t room) {
  int32_t pitch = gx + 1, *cover = b->cover.data; // [gy + 1][pitch]
  memset(cover, 0, (size_t)(gy + 1) * (size_t)pitch * sizeof(*cover));
  for (int32_t g = 0; g < groups; ++g) {
    const span_t* span = &b->span[g];
    if (!b->used[g]) continue;
    ++cover[span->y0 * pitch + span->x0];
    --cover[span->y0 * pitch + span->x1 + 1];
    --cover[(span->y1 + 1) * pitch + span->x0];
    ++cover[(span->y1 + 1) * pitch + span->x1 + 1];
  }
  for (int32_t y = 0; y < gy; ++y) {
    for (int32_t x = 0; x < gx; ++x) {
      int32_t* here = &cover[y * pitch + x];
      if (x) *here += here[-1];
      if (y) *here += here[-pitch];
      if (x && y) *here -= here[-pitch - 1];
      if (*here > room) return true;
    }
  }
  return false;
}

// Where the tiles of a group stand in the consumer's grid decides how much of it the group's tree takes: branches along
// its rows and a trunk across them, or the other way round. Trunks find their own ways, so the mean counts. True: the
// trees of all groups together take more than the routers there have room for.
static bool sinks_are_crowded(builder_t* b, const edge_t* edge, const grouping_t* grouping) {
  if (edge->sink_kernel == WEFT_HOST_KERNEL) return false;
  const weft_split_t* split = chosen_split(&b->fabric->kernel[edge->sink_kernel]);
  int64_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count), taken = 0;
  span_t* span = b->span;
  bool* known = b->known;
  int32_t groups = grouping->row_groups * grouping->column_groups;
  memset(known, 0, (size_t)groups * sizeof(*known));
  for (size_t i = 0; i < b->cells.count; ++i) {
    if (!b->cells.data[i].used) continue;
    int32_t group = group_of(edge, grouping, (int32_t)i);
    if (known[group])
      grow_span(&span[group], b->cells.data[i].span);
    else
      span[group] = b->cells.data[i].span;
    known[group] = true;
  }
  int64_t rows = grouping->row_block * (gy / edge->rows), columns = grouping->column_block * (gx / edge->columns);
  for (int32_t g = 0; g < groups; ++g) {
    if (!b->used[g] || !known[g]) continue;
    int64_t height = span[g].y1 - span[g].y0 + 1, width = span[g].x1 - span[g].x0 + 1;
    int64_t by_rows = weft_min_i64(rows, height) * width + height;
    int64_t by_columns = weft_min_i64(columns, width) * height + width;
    taken += weft_min_i64(by_rows, by_columns);
  }
  return groups > 1 && taken > (b->room[edge->sink_kernel] + 1) * gy * gx;
}

// Fills grouping->time. False: some source would need more colours than it may have, or the routers around the sources
// or the sinks.
static bool evaluate(builder_t* b, const edge_t* edge, grouping_t* grouping) {
  span_t* span = b->span;
  const bool *used = b->used, host = edge->source_kernel == WEFT_HOST_KERNEL;
  const weft_kernel_t* kernel = host ? NULL : &b->fabric->kernel[edge->source_kernel];
  int32_t gx = host ? 1 : weft_split_grid(chosen_split(kernel)->x, chosen_split(kernel)->x_count);
  int32_t gy = host ? 1 : weft_split_grid(chosen_split(kernel)->y, chosen_split(kernel)->y_count);
  int32_t groups = grouping->row_groups * grouping->column_groups;
  group_boxes(b, edge, grouping);
  if (sinks_are_crowded(b, edge, grouping)) return false;
  memset(b->loads.data, 0, b->loads.count * sizeof(source_load_t));
  grouping->time = 0;
  for (int32_t group = 0; group < groups; ++group) {
    if (!used[group]) continue;
    int64_t stream = 0;
    segment_t segment;
    span[group] = (span_t){INT32_MAX, 0, INT32_MAX, 0};
    for (segments_begin(&edge->walk, &b->box[group], &segment); segment_next(&segment);) {
      source_load_t* load = &b->loads.data[segment.source_index];
      int64_t wavelets = weft_machine_wavelets(b->machine, edge->tensor->dtype, segment.elements);
      stream += wavelets;
      if (host) continue; // which has a port, not a ramp, for each stream
      int32_t owner = weft_split_owner(kernel, chosen_split(kernel), segment.source_index);
      grow_span(&span[group], (span_t){owner / gx, owner / gx, owner % gx, owner % gx});
      load->wavelets += wavelets;
      grouping->time = weft_max_i64(grouping->time, load->wavelets);
      if (++load->streams > WEFT_STREAMS_PER_TILE) return false;
    }
    grouping->time = weft_max_i64(grouping->time, stream);
  }
  return host || groups == 1 || !is_crowded(b, groups, gy, gx, b->room[edge->source_kernel]);
}

// How many blocks `extent` lines fall into when about `wanted` are asked for; *out_block: lines of each.
static int32_t blocks(int32_t extent, int32_t wanted, int32_t* out_block) {
  *out_block = (extent + wanted - 1) / wanted;
  return (extent + *out_block - 1) / *out_block;
}

// More streams pay when each doubling of their number makes them this much faster: the least value is best.
static double value_of(const grouping_t* grouping) {
  double value = (double)grouping->time;
  for (int32_t n = 1; n < grouping->row_groups * grouping->column_groups; n *= 2) value *= 1.3;
  return value;
}

// Lines of a kernel's grid, counted along the side that has more.
static int32_t long_side(const builder_t* b, int32_t kernel) {
  const weft_split_t* split = chosen_split(&b->fabric->kernel[kernel]);
  int32_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count);
  return gy > gx ? gy : gx;
}

static int32_t most_streams(const builder_t* b, const edge_t* edge) {
  if (edge->source_kernel == WEFT_HOST_KERNEL || edge->sink_kernel == WEFT_HOST_KERNEL) {
    int32_t ports = weft_machine_port_count(b->machine);
    return ports > WEFT_STREAMS_PER_EDGE ? WEFT_STREAMS_PER_EDGE : ports;
  }
  int32_t source = long_side(b, edge->source_kernel), sink = long_side(b, edge->sink_kernel);
  int32_t lines = source < sink ? source : sink;
  if (lines > WEFT_STREAMS_PER_EDGE_MOST) return WEFT_STREAMS_PER_EDGE_MOST;
  return lines < WEFT_STREAMS_PER_EDGE ? WEFT_STREAMS_PER_EDGE : lines;
}

static int32_t stream_limit(const builder_t* b, const edge_t* edge) {
  int32_t limit = (int32_t)(b->share * most_streams(b, edge));
  return limit > 1 ? limit : 1;
}

// The edges that end at a kernel share the ramps and links of its tiles, and so do those that begin there: all of them
// together have the time of the slowest kernel. What comes back to its own kernel does so once a trip.
static int64_t target_of(const builder_t* b, const edge_t* edge) {
  if (edge->source_kernel < 0 || edge->source_kernel != edge->sink_kernel) {
    int32_t sharing = 1;
    if (edge->source_kernel >= 0) sharing = b->edges_out[edge->source_kernel];
    if (edge->sink_kernel >= 0 && b->edges_in[edge->sink_kernel] > sharing) sharing = b->edges_in[edge->sink_kernel];
    return weft_max_i64(1, b->target / sharing);
  }
  const weft_kernel_t* kernel = &b->fabric->kernel[edge->source_kernel];
  int64_t trips = 1;
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) trips = kernel->dim[d].extent;
  return weft_max_i64(1, b->target / trips);
}

static grouping_t choose_grouping(builder_t* b, const edge_t* edge) {
  int32_t limit = stream_limit(b, edge);
  int64_t target = target_of(b, edge);
  grouping_t chosen = {1, 1, edge->rows, edge->columns, 0};
  evaluate(b, edge, &chosen);
  if (chosen.time <= target) return chosen;
  for (int32_t streams = 2; streams <= limit; ++streams) {
    grouping_t best = {.time = INT64_MAX};
    for (int32_t rows = 1; rows <= streams; ++rows) {
      grouping_t candidate;
      candidate.row_groups = blocks(edge->rows, rows, &candidate.row_block);
      candidate.column_groups = blocks(edge->columns, streams / rows, &candidate.column_block);
      // Halvings, and every line by itself; what lies between gives uneven blocks and little else.
      bool row_ok = (rows & (rows - 1)) == 0 || rows == edge->rows;
      bool column_ok = ((streams / rows) & (streams / rows - 1)) == 0 || streams / rows == edge->columns;
      if (streams % rows != 0 || !row_ok || !column_ok) continue;
      if (candidate.row_groups * candidate.column_groups != streams) continue;
      if (evaluate(b, edge, &candidate) && candidate.time < best.time) best = candidate;
    }
    if (best.time == INT64_MAX) continue;
    if (best.time <= target) return best;
    if (value_of(&best) < value_of(&chosen)) chosen = best;
  }
  return chosen;
}

static weft_status_t count_run(void* self, int64_t position, int64_t count, int64_t target, int64_t target_step) {
  (void)position, (void)target, (void)target_step;
  *(int64_t*)self += count;
  return weft_ok();
}

// The host is one sink of all groups, and has of each what its part of the tensor brings.
static weft_status_t host_sink(const edge_t* edge, weft_stream_t* stream) {
  const weft_shape_t* shape = &edge->tensor->shape;
  weft_box_t whole = weft_view_image(&edge->piece->view);
  int64_t strides[WEFT_MAX_RANK] = {0};
  stream->sink_count = 1;
  *stream->sink = (weft_endpoint_t){0};
  return weft_walk_runs(&stream->walk, shape, &edge->piece->view, &whole, strides, count_run, &stream->sink->elements);
}

static weft_status_t emit_group(builder_t* b, const edge_t* edge, int32_t group, const weft_box_t* box) {
  weft_stream_t stream = {.kind = WEFT_STREAM_DATA,
                          .tensor = edge->piece->tensor,
                          .source_kernel = edge->source_kernel,
                          .sink_kernel = edge->sink_kernel,
                          .sink_buffer = edge->sink_buffer,
                          .sink_piece = edge->sink_piece,
                          .dtype = edge->tensor->dtype,
                          .walk = edge->walk,
                          .source_port = -1,
                          .sink_port = -1};
  stream.walk.box = *box;
  segment_t segment;
  for (segments_begin(&edge->walk, box, &segment); segment_next(&segment);) ++stream.source_count;
  for (size_t i = 0; i < b->sinks.count; ++i) stream.sink_count += b->sinks.data[i].group == group;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, (size_t)stream.source_count, &stream.source));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, (size_t)stream.sink_count, &stream.sink));
  weft_endpoint_t* source = stream.source;
  for (segments_begin(&edge->walk, box, &segment); segment_next(&segment); ++source) {
    source->elements = segment.elements;
    if (edge->source_kernel != WEFT_HOST_KERNEL) {
      const weft_kernel_t* kernel = &b->fabric->kernel[edge->source_kernel];
      source->logical = weft_split_owner(kernel, chosen_split(kernel), segment.source_index);
    }
    stream.elements += segment.elements;
    stream.wavelets += weft_machine_wavelets(b->machine, stream.dtype, segment.elements);
  }
  weft_endpoint_t* sink = stream.sink;
  if (edge->sink_kernel == WEFT_HOST_KERNEL) {
    WEFT_RETURN_IF_ERROR(host_sink(edge, &stream));
    if (stream.sink->elements == 0) return weft_ok();
    return WEFT_ARRAY_PUSH(b->allocator, &b->streams, stream);
  }
  for (size_t i = 0; i < b->sinks.count; ++i) {
    const sink_t* s = &b->sinks.data[i];
    if (s->group == group) *sink++ = (weft_endpoint_t){s->logical, b->cells.data[s->cell].elements};
  }
  return WEFT_ARRAY_PUSH(b->allocator, &b->streams, stream);
}

static weft_status_t build_edge(builder_t* b, edge_t* edge) {
  edge->tensor = &b->fabric->tensor[edge->piece->tensor];
  edge->source_kernel = edge->tensor->kind == WEFT_TENSOR_RESULT ? edge->tensor->kernel : WEFT_HOST_KERNEL;
  WEFT_RETURN_IF_ERROR(weft_split_walk(b->fabric, edge->piece->tensor, &edge->walk));
  if (edge->sink_kernel == WEFT_HOST_KERNEL)
    WEFT_RETURN_IF_ERROR(collect_host_sink(b, edge));
  else
    WEFT_RETURN_IF_ERROR(collect_sinks(b, edge));
  if (b->sinks.count == 0) return weft_ok();

  size_t sources = 1;
  for (int32_t k = 0; k < edge->walk.source_levels; ++k) sources *= (size_t)edge->walk.level[k].extent;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->loads, sources));
  b->loads.count = sources;
  grouping_t grouping = choose_grouping(b, edge);
  group_boxes(b, edge, &grouping);
  for (size_t i = 0; i < b->sinks.count; ++i) b->sinks.data[i].group = group_of(edge, &grouping, b->sinks.data[i].cell);
  for (int32_t group = 0; group < grouping.row_groups * grouping.column_groups; ++group)
    if (b->used[group]) WEFT_RETURN_IF_ERROR(emit_group(b, edge, group, &b->box[group]));
  return weft_ok();
}

static weft_status_t build_chain(builder_t* b, int32_t index) {
  const weft_kernel_t* kernel = &b->fabric->kernel[index];
  const weft_split_t* split = chosen_split(kernel);
  if (weft_split_chain_length(kernel, split) == 1) return weft_ok();
  if (kernel->reduce_operation < 0)
    return weft_error(INVALID_INPUT, "kernel '%s': a reduction is split, but no operation reduces over it",
                      kernel->name);
  int32_t accumulator = kernel->operation[kernel->reduce_operation].destination;
  const weft_buffer_t* buffer = &kernel->buffer[accumulator];
  int32_t tiles = weft_split_grid(split->y, split->y_count) * weft_split_grid(split->x, split->x_count);
  for (int32_t logical = 0; logical < tiles; ++logical) {
    int32_t next = weft_split_chain_next(kernel, split, logical);
    if (next < 0) continue;
    weft_iteration_box_t box = weft_split_box(kernel, split, logical);
    weft_box_t held = weft_split_buffer_box(kernel, buffer, &box);
    weft_stream_t stream = {.kind = WEFT_STREAM_CHAIN,
                            .tensor = -1,
                            .source_kernel = index,
                            .sink_kernel = index,
                            .sink_buffer = accumulator,
                            .sink_piece = -1,
                            .dtype = buffer->dtype,
                            .source_count = 1,
                            .sink_count = 1,
                            .elements = weft_box_elements(&held),
                            .source_port = -1,
                            .sink_port = -1};
    stream.wavelets = weft_machine_wavelets(b->machine, stream.dtype, stream.elements);
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, 1, &stream.source));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, 1, &stream.sink));
    *stream.source = (weft_endpoint_t){logical, stream.elements};
    *stream.sink = (weft_endpoint_t){next, stream.elements};
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->streams, stream));
  }
  return weft_ok();
}

static void count_edges(builder_t* b) {
  weft_fabric_t* fabric = b->fabric;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    for (int32_t i = 0; i < kernel->buffer_count; ++i) {
      for (int32_t p = 0; kernel->buffer[i].kind == WEFT_BUFFER_OPERAND && p < kernel->buffer[i].piece_count; ++p) {
        const weft_tensor_t* tensor = &fabric->tensor[kernel->buffer[i].piece[p].tensor];
        if (tensor->kind == WEFT_TENSOR_RESULT) ++b->edges_out[tensor->kernel];
        if (tensor->kind != WEFT_TENSOR_CONSTANT) ++b->edges_in[k];
      }
    }
  }
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    for (int32_t p = 0; p < fabric->output[o].piece_count; ++p) {
      const weft_tensor_t* tensor = &fabric->tensor[fabric->output[o].piece[p].tensor];
      if (tensor->kind == WEFT_TENSOR_RESULT) ++b->edges_out[tensor->kernel];
    }
  }
}

// A router's colours, less some for chains and for streams that pass by, are shared by the edges that begin or end in a
// kernel's region.
static void share_colours(builder_t* b) {
  enum { PASSING = 9, LEAST = 2 };
  for (int32_t k = 0; k < b->fabric->kernel_count; ++k) {
    int32_t edges = b->edges_in[k] + b->edges_out[k];
    int32_t room = (b->machine->colours - PASSING) / (edges > 0 ? edges : 1);
    room = (int32_t)(b->share * (room > LEAST ? room : LEAST));
    b->room[k] = room > 1 ? room : 1;
  }
}

static weft_status_t make_room(builder_t* b) {
  enum { GROUPS = WEFT_STREAMS_PER_EDGE_MOST };
  size_t places = 1;
  for (int32_t k = 0; k < b->fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &b->fabric->kernel[k];
    if (kernel->chosen < 0 || kernel->chosen >= kernel->alternative_count)
      return weft_error(INVALID_ARGUMENT, "kernel '%s' has no alternative chosen yet", kernel->name);
    const weft_split_t* split = chosen_split(kernel);
    size_t gy = (size_t)weft_split_grid(split->y, split->y_count),
           gx = (size_t)weft_split_grid(split->x, split->x_count);
    if ((gy + 1) * (gx + 1) > places) places = (gy + 1) * (gx + 1);
  }
  size_t kernels = (size_t)b->fabric->kernel_count + 1;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, kernels, sizeof(*b->room), (void**)&b->room));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, kernels, sizeof(*b->edges_in), (void**)&b->edges_in));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, kernels, sizeof(*b->edges_out), (void**)&b->edges_out));
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->cover, places));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->box), (void**)&b->box));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->span), (void**)&b->span));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->used), (void**)&b->used));
  return weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->known), (void**)&b->known);
}

static weft_status_t build_all(builder_t* b) {
  weft_fabric_t* fabric = b->fabric;
  WEFT_RETURN_IF_ERROR(make_room(b));
  count_edges(b);
  share_colours(b);
  b->target = 1;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    b->target = weft_max_i64(b->target, kernel->alternative[kernel->chosen].cycles);
  }
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    for (int32_t i = 0; i < kernel->buffer_count; ++i) {
      const weft_buffer_t* buffer = &kernel->buffer[i];
      for (int32_t p = 0; buffer->kind == WEFT_BUFFER_OPERAND && p < buffer->piece_count; ++p) {
        if (fabric->tensor[buffer->piece[p].tensor].kind == WEFT_TENSOR_CONSTANT) continue;
        edge_t edge = {.sink_kernel = k, .sink_buffer = i, .sink_piece = p, .piece = &buffer->piece[p]};
        WEFT_RETURN_IF_ERROR(weft_status_annotate(build_edge(b, &edge), "streams into kernel '%s', buffer '%s'",
                                                  kernel->name, buffer->name));
      }
    }
    WEFT_RETURN_IF_ERROR(build_chain(b, k));
  }
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    for (int32_t p = 0; p < fabric->output[o].piece_count; ++p) {
      edge_t edge = {
          .sink_kernel = WEFT_HOST_KERNEL, .sink_buffer = o, .sink_piece = p, .piece = &fabric->output[o].piece[p]};
      WEFT_RETURN_IF_ERROR(
          weft_status_annotate(build_edge(b, &edge), "streams of output '%s'", fabric->output[o].name));
    }
  }
  if (b->streams.count > INT32_MAX)
    return weft_error(DOES_NOT_FIT, "%zu streams; at most %d can be numbered", b->streams.count, INT32_MAX);
  weft_stream_t* streams;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&fabric->arena, b->streams.count, &streams));
  if (b->streams.count) memcpy(streams, b->streams.data, b->streams.count * sizeof(*streams));
  fabric->stream = streams;
  fabric->stream_count = (int32_t)b->streams.count;
  return weft_ok();
}

weft_status_t weft_streams_build(weft_fabric_t* fabric, const weft_machine_t* machine, double share) {
  builder_t b = {.fabric = fabric, .machine = machine, .allocator = fabric->arena.allocator, .share = share};
  weft_status_t status = build_all(&b);
  WEFT_ARRAY_FREE(b.allocator, &b.streams);
  WEFT_ARRAY_FREE(b.allocator, &b.sinks);
  WEFT_ARRAY_FREE(b.allocator, &b.cells);
  WEFT_ARRAY_FREE(b.allocator, &b.loads);
  WEFT_ARRAY_FREE(b.allocator, &b.cover);
  weft_allocator_free(b.allocator, b.room);
  weft_allocator_free(b.allocator, b.edges_in);
  weft_allocator_free(b.allocator, b.edges_out);
  weft_allocator_free(b.allocator, b.box);
  weft_allocator_free(b.allocator, b.span);
  weft_allocator_free(b.allocator, b.used);
  weft_allocator_free(b.allocator, b.known);
  return status;
}
