// Streams of the text form: walks, ends and routes, which are most of a routed file.
#include <inttypes.h>

#include "ir/fabric/text_reader.h"

static int32_t read_levels(weft_reader_t* r, weft_walk_t* walk) {
  weft_scan_t* scan = &r->scan;
  int32_t count = 0, room = WEFT_MAX_LEVELS - walk->level_count;
  for (; weft_scan_item(scan, count, room, "levels"); ++count) {
    weft_walk_level_t* level = &walk->level[walk->level_count + count];
    level->extent = weft_reader_size(r, "an extent");
    weft_scan_expect(scan, "of");
    level->dim = weft_scan_index(scan, "a tensor dimension", WEFT_MAX_RANK);
    weft_scan_expect(scan, "by");
    level->step = weft_reader_size(r, "a step");
  }
  walk->level_count += count;
  return count;
}

static void read_walk(weft_reader_t* r, weft_walk_t* walk) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "walk");
  walk->source_levels = read_levels(r, walk);
  read_levels(r, walk);
  weft_scan_expect(scan, "box");
  for (; weft_scan_item(scan, walk->box.rank, WEFT_MAX_RANK, "dimensions"); ++walk->box.rank) {
    walk->box.lo[walk->box.rank] = weft_reader_size(r, "a bound");
    weft_scan_expect(scan, "..");
    walk->box.hi[walk->box.rank] = weft_reader_size(r, "a bound");
  }
}

static void read_endpoints(weft_reader_t* r, const char* what, int32_t* out_count, weft_endpoint_t** out_endpoints) {
  weft_scan_t* scan = &r->scan;
  int32_t from, to;
  r->endpoints.count = 0;
  weft_scan_expect(scan, what);
  for (int64_t n = 0; weft_scan_item(scan, n, WEFT_READER_MOST_RANGE_ITEMS, what) && weft_reader_range(r, &from, &to);
       ++n) {
    weft_scan_expect(scan, ":");
    int64_t elements = weft_reader_size(r, "a number of elements");
    if (to < from) weft_scan_fail(scan, "expected an ascending range, found %" PRId32 "..%" PRId32, from, to);
    for (int64_t tile = from; tile <= to && !scan->status; ++tile) {
      weft_endpoint_t endpoint = {.logical = (int32_t)tile, .elements = elements};
      weft_scan_keep(scan, WEFT_ARRAY_PUSH(r->allocator, &r->endpoints, endpoint));
    }
  }
  if (scan->status) return;
  void* copy = NULL;
  size_t bytes = r->endpoints.count * sizeof(weft_endpoint_t);
  weft_scan_keep(scan, weft_arena_copy(&r->fabric->arena, r->endpoints.data, bytes, &copy));
  *out_count = (int32_t)r->endpoints.count;
  *out_endpoints = copy;
}

static int32_t read_direction(weft_reader_t* r) {
  return weft_scan_word(&r->scan, "a direction", r->direction, WEFT_DIRECTION_COUNT);
}

static uint8_t read_colour(weft_reader_t* r) {
  return (uint8_t)weft_scan_index(&r->scan, "a colour", WEFT_MAX_COLOURS);
}

static void read_entry(weft_reader_t* r, weft_router_entry_t* entry) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "@");
  entry->tile = weft_scan_index(scan, "a tile", INT32_MAX);
  weft_scan_expect(scan, ":");
  entry->colour = read_colour(r);
  for (; weft_scan_item(scan, entry->input_count, WEFT_DIRECTION_COUNT, "inputs"); ++entry->input_count)
    entry->input[entry->input_count] = (uint8_t)read_direction(r);
  weft_scan_expect(scan, "->");
  for (int64_t n = 0; weft_scan_item(scan, n, WEFT_DIRECTION_COUNT, "outputs"); ++n) {
    int32_t direction = read_direction(r);
    if (entry->outputs >> direction & 1) weft_scan_fail(scan, "an output stands twice");
    entry->outputs |= (uint16_t)(1u << direction);
    entry->output_colour[direction] = read_colour(r);
  }
}

static int32_t read_kernel_or_host(weft_reader_t* r) {
  if (weft_scan_accept(&r->scan, "host")) return WEFT_HOST_KERNEL;
  return weft_scan_index(&r->scan, "a kernel or host", r->fabric->kernel_count);
}

static int32_t read_port(weft_reader_t* r) {
  return weft_scan_accept(&r->scan, "none") ? -1 : weft_scan_index(&r->scan, "a host port or none", INT32_MAX);
}

static void read_stream(weft_reader_t* r, weft_stream_t* stream) {
  weft_scan_t* scan = &r->scan;
  stream->tensor = stream->sink_buffer = stream->sink_piece = -1;
  stream->source_port = stream->sink_port = -1;
  stream->kind = (weft_stream_kind_e)weft_scan_word(scan, "a kind of stream", weft_stream_kind_names, 2);
  stream->dtype = weft_reader_dtype(r);
  bool is_data = stream->kind == WEFT_STREAM_DATA;
  if (is_data) {
    weft_scan_expect(scan, "tensor");
    stream->tensor = weft_scan_index(scan, "a tensor", r->fabric->tensor_count);
  }
  weft_scan_expect(scan, "from");
  stream->source_kernel = read_kernel_or_host(r);
  weft_scan_expect(scan, "to");
  stream->sink_kernel = read_kernel_or_host(r);
  if (is_data) {
    weft_scan_expect(scan, "buffer");
    stream->sink_buffer = weft_scan_index(scan, "a buffer", INT32_MAX);
    weft_scan_expect(scan, "piece");
    stream->sink_piece = weft_scan_index(scan, "a piece", INT32_MAX);
    read_walk(r, &stream->walk);
  }
  read_endpoints(r, "sources", &stream->source_count, &stream->source);
  read_endpoints(r, "sinks", &stream->sink_count, &stream->sink);
  stream->elements = weft_reader_figure(r, "elements");
  stream->wavelets = weft_reader_figure(r, "wavelets");
  if (r->fabric->stage < WEFT_STAGE_ROUTED) return;
  weft_scan_expect(scan, "ports");
  stream->source_port = read_port(r);
  stream->sink_port = read_port(r);
  weft_scan_expect(scan, "entries");
  stream->entry_count = weft_scan_count(scan, "entries", sizeof("@0:0[W]->[E 0]") - 1);
  WEFT_READER_NEW(r, stream->entry_count, &stream->entry);
  for (int32_t i = 0; i < stream->entry_count && !scan->status; ++i) read_entry(r, &stream->entry[i]);
}

void weft_reader_streams(weft_reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  if (fabric->stage < WEFT_STAGE_PLACED) return;
  weft_scan_expect(&r->scan, "streams");
  fabric->stream_count = weft_scan_count(&r->scan, "streams", sizeof("stream 0 data i8 sources [] sinks []"));
  WEFT_READER_NEW(r, fabric->stream_count, &fabric->stream);
  WEFT_READER_NUMBERED(r, i, fabric->stream_count, "stream") read_stream(r, &fabric->stream[i]);
}
