#include "ir/fabric/grouping.h"

#include <string.h>

#include "base/checked.h"

void weft_segments_begin(const weft_walk_t* walk, const weft_box_t* box, weft_segment_t* out_segment) {
  *out_segment = (weft_segment_t){.walk = walk, .box = *box, .unsplit = 1, .done = weft_box_is_empty(box)};
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

bool weft_segment_next(weft_segment_t* segment) {
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

static void count_edges(weft_stream_builder_t* b) {
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

void weft_grouping_share_colours(weft_stream_builder_t* b) {
  enum { PASSING = 9, LEAST = 2 };
  count_edges(b);
  for (int32_t k = 0; k < b->fabric->kernel_count; ++k) {
    int32_t edges = b->edges_in[k] + b->edges_out[k];
    int32_t room = (b->machine->colours - PASSING) / (edges > 0 ? edges : 1);
    room = (int32_t)(b->share * (room > LEAST ? room : LEAST));
    b->room[k] = room > 1 ? room : 1;
  }
}

int32_t weft_grouping_of(const weft_stream_edge_t* edge, const weft_grouping_t* grouping, int32_t cell) {
  return cell / edge->columns / grouping->row_block * grouping->column_groups +
         cell % edge->columns / grouping->column_block;
}

void weft_grouping_boxes(weft_stream_builder_t* b, const weft_stream_edge_t* edge, const weft_grouping_t* grouping) {
  memset(b->used, 0, WEFT_STREAMS_PER_EDGE_MOST * sizeof(*b->used));
  for (size_t i = 0; i < b->cells.count; ++i) {
    const weft_stream_cell_t* cell = &b->cells.data[i];
    if (cell->elements == 0) continue;
    int32_t group = weft_grouping_of(edge, grouping, (int32_t)i);
    b->box[group] = b->used[group] ? weft_box_hull(&b->box[group], &cell->need) : cell->need;
    b->used[group] = true;
  }
}

// More than `room` of the groups' spans cover one place of a gy x gx grid: second differences, summed up.
static bool is_crowded(weft_stream_builder_t* b, int32_t groups, int32_t gy, int32_t gx, int32_t room) {
  int32_t pitch = gx + 1, *cover = b->cover.data; // [gy + 1][pitch]
  memset(cover, 0, (size_t)(gy + 1) * (size_t)pitch * sizeof(*cover));
  for (int32_t g = 0; g < groups; ++g) {
    const weft_span_t* span = &b->span[g];
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
static bool sinks_are_crowded(weft_stream_builder_t* b, const weft_stream_edge_t* edge,
                              const weft_grouping_t* grouping) {
  if (edge->sink_kernel == WEFT_HOST_KERNEL) return false;
  const weft_split_t* split = weft_chosen_split(&b->fabric->kernel[edge->sink_kernel]);
  int64_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count), taken = 0;
  weft_span_t* span = b->span;
  bool* known = b->known;
  int32_t groups = grouping->row_groups * grouping->column_groups;
  memset(known, 0, (size_t)groups * sizeof(*known));
  for (size_t i = 0; i < b->cells.count; ++i) {
    if (!b->cells.data[i].used) continue;
    int32_t group = weft_grouping_of(edge, grouping, (int32_t)i);
    if (known[group])
      weft_span_grow(&span[group], b->cells.data[i].span);
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
static bool evaluate(weft_stream_builder_t* b, const weft_stream_edge_t* edge, weft_grouping_t* grouping) {
  weft_span_t* span = b->span;
  const bool *used = b->used, host = edge->source_kernel == WEFT_HOST_KERNEL;
  const weft_kernel_t* kernel = host ? NULL : &b->fabric->kernel[edge->source_kernel];
  int32_t gx = host ? 1 : weft_split_grid(weft_chosen_split(kernel)->x, weft_chosen_split(kernel)->x_count);
  int32_t gy = host ? 1 : weft_split_grid(weft_chosen_split(kernel)->y, weft_chosen_split(kernel)->y_count);
  int32_t groups = grouping->row_groups * grouping->column_groups;
  weft_grouping_boxes(b, edge, grouping);
  if (sinks_are_crowded(b, edge, grouping)) return false;
  memset(b->loads.data, 0, b->loads.count * sizeof(weft_source_load_t));
  grouping->time = 0;
  for (int32_t group = 0; group < groups; ++group) {
    if (!used[group]) continue;
    int64_t stream = 0;
    weft_segment_t segment;
    span[group] = (weft_span_t){INT32_MAX, 0, INT32_MAX, 0};
    for (weft_segments_begin(&edge->walk, &b->box[group], &segment); weft_segment_next(&segment);) {
      weft_source_load_t* load = &b->loads.data[segment.source_index];
      int64_t wavelets = weft_machine_wavelets(b->machine, edge->tensor->dtype, segment.elements);
      stream += wavelets;
      if (host) continue; // which has a port, not a ramp, for each stream
      int32_t owner = weft_split_owner(kernel, weft_chosen_split(kernel), segment.source_index);
      weft_span_grow(&span[group], (weft_span_t){owner / gx, owner / gx, owner % gx, owner % gx});
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
static double value_of(const weft_grouping_t* grouping) {
  double value = (double)grouping->time;
  for (int32_t n = 1; n < grouping->row_groups * grouping->column_groups; n *= 2) value *= 1.3;
  return value;
}

// Lines of a kernel's grid, counted along the side that has more.
static int32_t long_side(const weft_stream_builder_t* b, int32_t kernel) {
  const weft_split_t* split = weft_chosen_split(&b->fabric->kernel[kernel]);
  int32_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count);
  return gy > gx ? gy : gx;
}

static int32_t most_streams(const weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  if (edge->source_kernel == WEFT_HOST_KERNEL || edge->sink_kernel == WEFT_HOST_KERNEL) {
    int32_t ports = weft_machine_port_count(b->machine);
    return ports > WEFT_STREAMS_PER_EDGE ? WEFT_STREAMS_PER_EDGE : ports;
  }
  int32_t source = long_side(b, edge->source_kernel), sink = long_side(b, edge->sink_kernel);
  int32_t lines = source < sink ? source : sink;
  if (lines > WEFT_STREAMS_PER_EDGE_MOST) return WEFT_STREAMS_PER_EDGE_MOST;
  return lines < WEFT_STREAMS_PER_EDGE ? WEFT_STREAMS_PER_EDGE : lines;
}

static int32_t stream_limit(const weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  int32_t limit = (int32_t)(b->share * most_streams(b, edge));
  return limit > 1 ? limit : 1;
}

// The edges that end at a kernel share the ramps and links of its tiles, and so do those that begin there: all of them
// together have the time of the slowest kernel. What comes back to its own kernel does so once a trip.
static int64_t target_of(const weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
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

weft_grouping_t weft_grouping_choose(weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  int32_t limit = stream_limit(b, edge);
  int64_t target = target_of(b, edge);
  weft_grouping_t chosen = {1, 1, edge->rows, edge->columns, 0};
  evaluate(b, edge, &chosen);
  if (chosen.time <= target) return chosen;
  for (int32_t streams = 2; streams <= limit; ++streams) {
    weft_grouping_t best = {.time = INT64_MAX};
    for (int32_t rows = 1; rows <= streams; ++rows) {
      weft_grouping_t candidate;
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
