// Builds the streams: who takes part in each, in which order, and how much each of them has.
#include "ir/fabric/grouping.h"

#include <string.h>

#include "base/checked.h"

// The digits of an axis index that the buffer depends on.
static weft_digits_t reduced_digits(const weft_buffer_t* buffer, const weft_axis_factor_t* factor, int32_t count) {
  weft_digits_t digits = {0};
  for (int32_t i = 0; i < count; ++i)
    if (weft_split_depends_on(buffer, factor[i].dim)) digits.parts[digits.count++] = factor[i].parts;
  return digits;
}

static int32_t digits_extent(const weft_digits_t* digits) {
  int32_t extent = 1;
  for (int32_t i = 0; i < digits->count; ++i) extent *= digits->parts[i];
  return extent;
}

// Their mixed radix.
static int32_t reduced_index(const weft_buffer_t* buffer, const weft_axis_factor_t* factor, int32_t count,
                             int32_t index) {
  int32_t reduced = 0, extent = 1;
  for (int32_t i = count - 1; i >= 0; --i) {
    if (weft_split_depends_on(buffer, factor[i].dim)) {
      reduced += index % factor[i].parts * extent;
      extent *= factor[i].parts;
    }
    index /= factor[i].parts;
  }
  return reduced;
}

static weft_status_t clear_cells(weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  b->sinks.count = 0;
  b->cells.count = 0;
  size_t count = (size_t)edge->rows * (size_t)edge->columns;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->cells, count));
  b->cells.count = count;
  memset(b->cells.data, 0, count * sizeof(weft_stream_cell_t));
  return weft_ok();
}

static weft_status_t collect_sinks(weft_stream_builder_t* b, weft_stream_edge_t* edge) {
  const weft_kernel_t* kernel = &b->fabric->kernel[edge->sink_kernel];
  const weft_buffer_t* buffer = &kernel->buffer[edge->sink_buffer];
  const weft_split_t* split = weft_chosen_split(kernel);
  int32_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count);
  edge->row_digits = reduced_digits(buffer, split->y, split->y_count);
  edge->column_digits = reduced_digits(buffer, split->x, split->x_count);
  edge->rows = digits_extent(&edge->row_digits);
  edge->columns = digits_extent(&edge->column_digits);
  WEFT_RETURN_IF_ERROR(clear_cells(b, edge));
  for (int32_t logical = 0; logical < gy * gx; ++logical) {
    if (!weft_split_needs_buffer(kernel, split, edge->sink_buffer, logical)) continue;
    int32_t row = reduced_index(buffer, split->y, split->y_count, logical / gx);
    int32_t index = row * edge->columns + reduced_index(buffer, split->x, split->x_count, logical % gx);
    weft_stream_cell_t* cell = &b->cells.data[index];
    weft_span_t at = {logical / gx, logical / gx, logical % gx, logical % gx};
    if (cell->used) {
      weft_span_grow(&cell->span, at);
    } else {
      cell->used = true;
      cell->span = at;
      weft_iteration_box_t box = weft_split_box(kernel, split, logical);
      weft_box_t filter = weft_split_buffer_box(kernel, buffer, &box);
      cell->elements = weft_view_count(&edge->piece->view, &filter);
      if (cell->elements > 0) cell->need = weft_view_preimage(&edge->piece->view, &edge->tensor->shape, &filter);
    }
    if (cell->elements > 0)
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->sinks, (weft_stream_sink_t){logical, index, 0}));
  }
  return weft_ok();
}

// The host takes everything, in rows as the owners have it along the dimension that is split into most blocks.
static weft_status_t collect_host_sink(weft_stream_builder_t* b, weft_stream_edge_t* edge) {
  const weft_walk_level_t* level = NULL;
  for (int32_t k = 0; k < edge->walk.source_levels; ++k)
    if (!level || edge->walk.level[k].extent > level->extent) level = &edge->walk.level[k];
  edge->rows = level ? (int32_t)level->extent : 1;
  edge->columns = 1;
  edge->row_digits = (weft_digits_t){1, {edge->rows}};
  edge->column_digits = (weft_digits_t){0};
  WEFT_RETURN_IF_ERROR(clear_cells(b, edge));
  weft_box_t image = weft_view_image(&edge->piece->view);
  int64_t elements = weft_view_count(&edge->piece->view, &image);
  if (elements == 0) return weft_ok();
  weft_box_t need = weft_view_preimage(&edge->piece->view, &edge->tensor->shape, &image);
  for (int32_t row = 0; row < edge->rows; ++row) {
    weft_stream_cell_t* cell = &b->cells.data[row];
    *cell = (weft_stream_cell_t){.used = true, .elements = elements, .need = need};
    if (level) {
      int64_t lo = row * level->step;
      cell->need.lo[level->dim] = weft_max_i64(need.lo[level->dim], lo);
      cell->need.hi[level->dim] = weft_min_i64(need.hi[level->dim], lo + level->step);
    }
    if (weft_box_is_empty(&cell->need)) cell->elements = 0;
    if (cell->elements > 0)
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->sinks, (weft_stream_sink_t){0, row, 0}));
  }
  return weft_ok();
}

static weft_status_t count_run(void* self, int64_t position, int64_t count, int64_t target, int64_t target_step) {
  (void)position, (void)target, (void)target_step;
  *(int64_t*)self += count;
  return weft_ok();
}

// The host is one sink of all groups, and has of each what its part of the tensor brings.
static weft_status_t host_sink(const weft_stream_edge_t* edge, weft_stream_t* stream) {
  const weft_shape_t* shape = &edge->tensor->shape;
  weft_box_t whole = weft_view_image(&edge->piece->view);
  int64_t strides[WEFT_MAX_RANK] = {0};
  stream->sink_count = 1;
  *stream->sink = (weft_endpoint_t){0};
  return weft_walk_runs(&stream->walk, shape, &edge->piece->view, &whole, strides, count_run, &stream->sink->elements);
}

static weft_status_t emit_group(weft_stream_builder_t* b, const weft_stream_edge_t* edge, int32_t group,
                                const weft_box_t* box) {
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
  weft_segment_t segment;
  for (weft_segments_begin(&edge->walk, box, &segment); weft_segment_next(&segment);) ++stream.source_count;
  for (size_t i = 0; i < b->sinks.count; ++i) stream.sink_count += b->sinks.data[i].group == group;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, (size_t)stream.source_count, &stream.source));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->fabric->arena, (size_t)stream.sink_count, &stream.sink));
  weft_endpoint_t* source = stream.source;
  for (weft_segments_begin(&edge->walk, box, &segment); weft_segment_next(&segment); ++source) {
    source->elements = segment.elements;
    if (edge->source_kernel != WEFT_HOST_KERNEL) {
      const weft_kernel_t* kernel = &b->fabric->kernel[edge->source_kernel];
      source->logical = weft_split_owner(kernel, weft_chosen_split(kernel), segment.source_index);
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
    const weft_stream_sink_t* s = &b->sinks.data[i];
    if (s->group == group) *sink++ = (weft_endpoint_t){s->logical, b->cells.data[s->cell].elements};
  }
  return WEFT_ARRAY_PUSH(b->allocator, &b->streams, stream);
}

// Who needs what of the edge, in the builder.
static weft_status_t collect(weft_stream_builder_t* b, weft_stream_edge_t* edge) {
  if (edge->sink_kernel == WEFT_HOST_KERNEL) return collect_host_sink(b, edge);
  return collect_sinks(b, edge);
}

static weft_status_t add_edge(weft_stream_builder_t* b, weft_stream_edge_t edge) {
  edge.tensor = &b->fabric->tensor[edge.piece->tensor];
  if (edge.tensor->kind == WEFT_TENSOR_CONSTANT) return weft_ok();
  edge.source_kernel = edge.tensor->kind == WEFT_TENSOR_RESULT ? edge.tensor->kernel : WEFT_HOST_KERNEL;
  WEFT_RETURN_IF_ERROR(weft_split_walk(b->fabric, edge.piece->tensor, &edge.walk));
  WEFT_RETURN_IF_ERROR(collect(b, &edge));
  if (b->sinks.count == 0) return weft_ok();
  size_t sources = 1;
  for (int32_t k = 0; k < edge.walk.source_levels; ++k) sources *= (size_t)edge.walk.level[k].extent;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->loads, sources));
  b->loads.count = sources;
  WEFT_RETURN_IF_ERROR(weft_grouping_options(b, &edge));
  return WEFT_ARRAY_PUSH(b->allocator, &b->edges, edge);
}

static weft_status_t emit_edge(weft_stream_builder_t* b, weft_stream_edge_t* edge) {
  const weft_grouping_t* grouping = &b->options.data[edge->first_option + edge->chosen];
  WEFT_RETURN_IF_ERROR(collect(b, edge));
  weft_grouping_boxes(b, edge, grouping);
  for (size_t i = 0; i < b->sinks.count; ++i)
    b->sinks.data[i].group = weft_grouping_of(edge, grouping, b->sinks.data[i].cell);
  for (int32_t group = 0; group < grouping->row_groups * grouping->column_groups; ++group)
    if (b->used[group]) WEFT_RETURN_IF_ERROR(emit_group(b, edge, group, &b->box[group]));
  return weft_ok();
}

static weft_status_t build_chain(weft_stream_builder_t* b, int32_t index) {
  const weft_kernel_t* kernel = &b->fabric->kernel[index];
  const weft_split_t* split = weft_chosen_split(kernel);
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

static weft_status_t make_room(weft_stream_builder_t* b) {
  enum { GROUPS = WEFT_STREAMS_PER_EDGE_MOST };
  size_t places = 1;
  for (int32_t k = 0; k < b->fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &b->fabric->kernel[k];
    if (kernel->chosen < 0 || kernel->chosen >= kernel->alternative_count)
      return weft_error(INVALID_ARGUMENT, "kernel '%s' has no alternative chosen yet", kernel->name);
    const weft_split_t* split = weft_chosen_split(kernel);
    size_t gy = (size_t)weft_split_grid(split->y, split->y_count),
           gx = (size_t)weft_split_grid(split->x, split->x_count);
    if ((gy + 1) * (gx + 1) > places) places = (gy + 1) * (gx + 1);
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->cover, places));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->box), (void**)&b->box));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->span), (void**)&b->span));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->used), (void**)&b->used));
  return weft_allocator_calloc(b->allocator, GROUPS, sizeof(*b->known), (void**)&b->known);
}

static weft_status_t collect_edges(weft_stream_builder_t* b) {
  const weft_fabric_t* fabric = b->fabric;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    for (int32_t i = 0; i < kernel->buffer_count; ++i) {
      const weft_buffer_t* buffer = &kernel->buffer[i];
      for (int32_t p = 0; buffer->kind == WEFT_BUFFER_OPERAND && p < buffer->piece_count; ++p) {
        weft_stream_edge_t edge = {.sink_kernel = k, .sink_buffer = i, .sink_piece = p, .piece = &buffer->piece[p]};
        WEFT_RETURN_IF_ERROR(weft_status_annotate(add_edge(b, edge), "streams into kernel '%s', buffer '%s'",
                                                  kernel->name, buffer->name));
      }
    }
  }
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    for (int32_t p = 0; p < fabric->output[o].piece_count; ++p) {
      weft_stream_edge_t edge = {
          .sink_kernel = WEFT_HOST_KERNEL, .sink_buffer = o, .sink_piece = p, .piece = &fabric->output[o].piece[p]};
      WEFT_RETURN_IF_ERROR(weft_status_annotate(add_edge(b, edge), "streams of output '%s'", fabric->output[o].name));
    }
  }
  return weft_ok();
}

static weft_status_t build_all(weft_stream_builder_t* b) {
  weft_fabric_t* fabric = b->fabric;
  WEFT_RETURN_IF_ERROR(make_room(b));
  b->target = 1;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    b->target = weft_max_i64(b->target, kernel->alternative[kernel->chosen].cycles);
  }
  WEFT_RETURN_IF_ERROR(collect_edges(b));
  WEFT_RETURN_IF_ERROR(weft_grouping_allot(b));
  size_t next = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (; next < b->edges.count && b->edges.data[next].sink_kernel == k; ++next)
      WEFT_RETURN_IF_ERROR(emit_edge(b, &b->edges.data[next]));
    WEFT_RETURN_IF_ERROR(build_chain(b, k));
  }
  for (; next < b->edges.count; ++next) WEFT_RETURN_IF_ERROR(emit_edge(b, &b->edges.data[next]));
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
  weft_stream_builder_t b = {
      .fabric = fabric, .machine = machine, .allocator = fabric->arena.allocator, .share = share};
  weft_status_t status = build_all(&b);
  WEFT_ARRAY_FREE(b.allocator, &b.edges);
  WEFT_ARRAY_FREE(b.allocator, &b.options);
  WEFT_ARRAY_FREE(b.allocator, &b.streams);
  WEFT_ARRAY_FREE(b.allocator, &b.sinks);
  WEFT_ARRAY_FREE(b.allocator, &b.cells);
  WEFT_ARRAY_FREE(b.allocator, &b.loads);
  WEFT_ARRAY_FREE(b.allocator, &b.cover);
  weft_allocator_free(b.allocator, b.box);
  weft_allocator_free(b.allocator, b.span);
  weft_allocator_free(b.allocator, b.used);
  weft_allocator_free(b.allocator, b.known);
  return status;
}
