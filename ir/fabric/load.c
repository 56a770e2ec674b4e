#include "ir/fabric/load.h"

#include <string.h>

#include "base/array.h"
#include "base/checked.h"

enum { NONE = -1 };

// Arrays over tiles hold what the stream at hand has there and are put back behind it, as most streams pass few tiles.
typedef struct scratch_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  weft_allocator_t allocator;
  int32_t* entry_at;   // [tiles] last of the stream's entries there
  int64_t* segment_at; // [tiles] wavelets of the stream's source there
  int32_t* before;     // of each entry, the one before it at the same tile
  size_t before_capacity;
  int64_t* passing; // of each entry
  size_t passing_capacity;
} scratch_t;

// Across the link in direction `d`, or NONE: to the core or the host.
static int32_t next_tile(const scratch_t* s, int32_t tile, int d) {
  return d == WEFT_DIRECTION_RAMP ? NONE : weft_machine_neighbour(s->machine, tile, (weft_direction_e)d);
}

static int32_t source_tile(const scratch_t* s, const weft_stream_t* stream, int32_t source) {
  if (stream->source_kernel == WEFT_HOST_KERNEL) return weft_machine_port(s->machine, stream->source_port).tile;
  return s->fabric->kernel[stream->source_kernel].tile[stream->source[source].logical];
}

// A stage may have been read from a file that was made for another machine.
static weft_status_t check_stream(const scratch_t* s, const weft_stream_t* stream) {
  int32_t tiles = weft_machine_tiles(s->machine), ports = weft_machine_port_count(s->machine);
  if (stream->source_kernel == WEFT_HOST_KERNEL && (stream->source_port < 0 || stream->source_port >= ports))
    return weft_error(INVALID_INPUT, "a stream enters by host port %d of the machine's %d", stream->source_port, ports);
  int64_t furthest = 0;
  for (int32_t e = 0; e < stream->entry_count; ++e) furthest = weft_max_i64(furthest, stream->entry[e].tile);
  for (int32_t k = 0; k < stream->source_count; ++k) furthest = weft_max_i64(furthest, source_tile(s, stream, k));
  if (furthest >= tiles)
    return weft_error(INVALID_INPUT, "a stream passes tile %lld of the machine's %d", (long long)furthest, tiles);
  return weft_ok();
}

static weft_status_t enter_stream(scratch_t* s, const weft_stream_t* stream) {
  WEFT_RETURN_IF_ERROR(check_stream(s, stream));
  size_t count = (size_t)stream->entry_count;
  WEFT_RETURN_IF_ERROR(
      weft_array_reserve(s->allocator, (void**)&s->before, &s->before_capacity, count, sizeof(*s->before)));
  WEFT_RETURN_IF_ERROR(
      weft_array_reserve(s->allocator, (void**)&s->passing, &s->passing_capacity, count, sizeof(*s->passing)));
  for (int32_t e = 0; e < stream->entry_count; ++e) {
    s->before[e] = s->entry_at[stream->entry[e].tile];
    s->entry_at[stream->entry[e].tile] = e;
    s->passing[e] = 0;
  }
  for (int32_t k = 0; k < stream->source_count; ++k)
    s->segment_at[source_tile(s, stream, k)] =
        weft_machine_wavelets(s->machine, stream->dtype, stream->source[k].elements);
  return weft_ok();
}

static void leave_stream(scratch_t* s, const weft_stream_t* stream) {
  for (int32_t e = 0; e < stream->entry_count; ++e) s->entry_at[stream->entry[e].tile] = NONE;
  for (int32_t k = 0; k < stream->source_count; ++k) s->segment_at[source_tile(s, stream, k)] = 0;
}

// Entries stand upstream before downstream, so each one's own wavelets are complete when its turn comes.
static void add_stream(scratch_t* s, const weft_stream_t* stream, int64_t* wavelets) {
  for (int32_t e = 0; e < stream->entry_count; ++e) {
    const weft_router_entry_t* entry = &stream->entry[e];
    for (int k = 0; k < entry->input_count; ++k)
      if (next_tile(s, entry->tile, entry->input[k]) < 0) s->passing[e] += s->segment_at[entry->tile];
    for (uint32_t outputs = entry->outputs; outputs; outputs &= outputs - 1) {
      int d = __builtin_ctz(outputs);
      wavelets[(size_t)entry->tile * WEFT_DIRECTION_COUNT + (size_t)d] += s->passing[e];
      int32_t next = next_tile(s, entry->tile, d);
      if (next < 0) continue;
      int32_t to = s->entry_at[next];
      while (to != NONE && stream->entry[to].colour != entry->output_colour[d]) to = s->before[to];
      if (to != NONE) s->passing[to] += s->passing[e];
    }
  }
}

static weft_status_t add_streams(scratch_t* s, int64_t* wavelets) {
  size_t tiles = (size_t)weft_machine_tiles(s->machine);
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(s->allocator, tiles, sizeof(*s->entry_at), (void**)&s->entry_at));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(s->allocator, tiles, sizeof(*s->segment_at), (void**)&s->segment_at));
  memset(s->entry_at, 0xFF, tiles * sizeof(*s->entry_at));
  for (int32_t i = 0; i < s->fabric->stream_count; ++i) {
    const weft_stream_t* stream = &s->fabric->stream[i];
    WEFT_RETURN_IF_ERROR(enter_stream(s, stream));
    add_stream(s, stream, wavelets);
    leave_stream(s, stream);
  }
  return weft_ok();
}

weft_status_t weft_load_links(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_allocator_t allocator,
                              int64_t* out_wavelets) {
  scratch_t s = {.fabric = fabric, .machine = machine, .allocator = allocator};
  memset(out_wavelets, 0, (size_t)weft_machine_tiles(machine) * WEFT_DIRECTION_COUNT * sizeof(*out_wavelets));
  weft_status_t status = add_streams(&s, out_wavelets);
  weft_allocator_free(s.allocator, s.entry_at);
  weft_allocator_free(s.allocator, s.segment_at);
  weft_allocator_free(s.allocator, s.before);
  weft_allocator_free(s.allocator, s.passing);
  return status;
}
