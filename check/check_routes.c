// Routes: every stream goes from all its sources, in their order, to all its sinks.
#include <inttypes.h>

#include "base/array.h"
#include "check/check_parts.h"
#include "check/links.h"

// What passes an entry: the segments first .. first + count - 1 of the stream, in order. Or it isn't known, after a
// fault.
typedef struct passing_t {
  int32_t first, count;
  bool known;
} passing_t;

typedef struct routes_t {
  const weft_check_t* check;
  weft_links_t links;
  const weft_stream_t* stream; // the current one
  uint64_t* used;              // of each tile: bit per colour
  int32_t* source_at;          // of each tile: 1 + which source of the current stream it is, or 0
  int32_t* sink_at;            // of each tile: 1: a sink; 2: reached
  WEFT_ARRAY(passing_t) passing;
} routes_t;

static const char* tile_text(const routes_t* r, int32_t tile, weft_check_place_t* place) {
  *place = weft_check_place(r->check->machine, tile);
  return place->text;
}

// The ends of the stream by tile; the host's are the tiles of its ports.
static int32_t end_tile(const routes_t* r, int32_t kernel, int32_t port, int32_t logical) {
  if (kernel != WEFT_HOST_KERNEL) return r->check->fabric->kernel[kernel].tile[logical];
  return weft_machine_port(r->check->machine, port).tile;
}

static bool ports_exist(const routes_t* r) {
  int32_t count = weft_machine_port_count(r->check->machine);
  if (r->stream->source_port < count && r->stream->sink_port < count) return true;
  weft_faults_add(r->check->faults, "%s: host port %" PRId32 ", the machine has %" PRId32, r->links.name,
                  r->stream->source_port < count ? r->stream->sink_port : r->stream->source_port, count);
  return false;
}

static void mark_ends(routes_t* r, bool set) {
  const weft_stream_t* stream = r->stream;
  weft_check_place_t place;
  for (int32_t i = 0; i < stream->source_count; ++i) {
    int32_t tile = end_tile(r, stream->source_kernel, stream->source_port, stream->source[i].logical);
    if (set && r->source_at[tile])
      weft_faults_add(r->check->faults, "%s: %s is a source twice", r->links.name, tile_text(r, tile, &place));
    r->source_at[tile] = set ? i + 1 : 0;
  }
  for (int32_t i = 0; i < stream->sink_count; ++i) {
    int32_t tile = end_tile(r, stream->sink_kernel, stream->sink_port, stream->sink[i].logical);
    if (set && r->sink_at[tile])
      weft_faults_add(r->check->faults, "%s: %s is a sink twice", r->links.name, tile_text(r, tile, &place));
    r->sink_at[tile] = set ? 1 : 0;
  }
}

// Each colour of a router belongs to one stream.
static void mark_colours(routes_t* r) {
  weft_check_place_t place;
  for (int32_t i = 0; i < r->stream->entry_count; ++i) {
    const weft_router_entry_t* entry = &r->stream->entry[i];
    uint64_t bit = (uint64_t)1 << entry->colour;
    if (entry->tile >= weft_machine_tiles(r->check->machine)) continue;
    // Its own second use was reported when its entries were joined.
    if (r->used[entry->tile] & bit && weft_links_find(&r->links, entry->tile, entry->colour) == i)
      weft_faults_add(r->check->faults, "%s: colour %d on %s belongs to another stream already", r->links.name,
                      entry->colour, tile_text(r, entry->tile, &place));
    r->used[entry->tile] |= bit;
  }
}

// Whether this way in or out of the mesh is the right one: the core's ramp for kernels, the stream's port for the host.
static bool is_end(const routes_t* r, int32_t kernel, int32_t port, int32_t tile, int32_t direction) {
  if (kernel != WEFT_HOST_KERNEL) return direction == WEFT_DIRECTION_RAMP;
  weft_host_port_t p = weft_machine_port(r->check->machine, port);
  return p.tile == tile && (int32_t)p.direction == direction;
}

// What comes in by one input of an entry's switch.
static passing_t incoming(const routes_t* r, int32_t index, int32_t slot) {
  const weft_router_entry_t* entry = &r->stream->entry[index];
  weft_check_place_t place;
  int32_t upstream = r->links.upstream[index][slot];
  if (upstream == WEFT_LINKS_NOWHERE) return (passing_t){0}; // reported
  if (upstream >= 0) {
    if (upstream < index) return r->passing.data[upstream];
    weft_faults_add(r->check->faults, "%s: colour %d on %s is listed before the one that feeds it, or feeds itself",
                    r->links.name, entry->colour, tile_text(r, entry->tile, &place));
    return (passing_t){0};
  }
  int32_t source = r->source_at[entry->tile] - 1;
  if (source < 0 || !is_end(r, r->stream->source_kernel, r->stream->source_port, entry->tile, entry->input[slot])) {
    weft_faults_add(r->check->faults, "%s: enters at %s from %s, where it has no source", r->links.name,
                    tile_text(r, entry->tile, &place), weft_direction_name((weft_direction_e)entry->input[slot]));
    return (passing_t){0};
  }
  return (passing_t){.first = source, .count = 1, .known = true};
}

// One after the other, as the switch lets them pass.
static passing_t gather(const routes_t* r, int32_t index) {
  const weft_router_entry_t* entry = &r->stream->entry[index];
  weft_check_place_t place;
  passing_t passing = {.known = entry->input_count > 0};
  for (int32_t i = 0; i < entry->input_count; ++i) {
    passing_t next = incoming(r, index, i);
    if (passing.count && passing.known && next.known && next.first != passing.first + passing.count) {
      weft_faults_add(r->check->faults, "%s: on %s, segment %" PRId32 " comes after segment %" PRId32 ": out of order",
                      r->links.name, tile_text(r, entry->tile, &place), next.first, passing.first + passing.count - 1);
      passing.known = false;
    }
    if (!passing.count) passing.first = next.first;
    passing.count += next.count;
    passing.known = passing.known && next.known;
  }
  return passing;
}

// An output that leaves the mesh: to a core or to the host.
static void arrive(const routes_t* r, int32_t index, int32_t direction, const passing_t* passing) {
  const weft_router_entry_t* entry = &r->stream->entry[index];
  weft_check_place_t place;
  const char* at = tile_text(r, entry->tile, &place);
  const char* way = weft_direction_name((weft_direction_e)direction);
  int32_t* sink = &r->sink_at[entry->tile];
  if (!*sink || !is_end(r, r->stream->sink_kernel, r->stream->sink_port, entry->tile, direction)) {
    weft_faults_add(r->check->faults, "%s: leaves %s by %s, where it has no sink", r->links.name, at, way);
    return;
  }
  if (*sink == 2) weft_faults_add(r->check->faults, "%s: reaches %s twice", r->links.name, at);
  *sink = 2;
  if (passing->known && passing->count != r->stream->source_count)
    weft_faults_add(r->check->faults, "%s: reaches %s with the segments of %" PRId32 " of its %" PRId32 " sources",
                    r->links.name, at, passing->count, r->stream->source_count);
}

static weft_status_t follow(routes_t* r) {
  const weft_stream_t* stream = r->stream;
  weft_check_place_t place;
  r->passing.count = 0;
  for (int32_t i = 0; i < r->links.count; ++i) {
    passing_t passing = gather(r, i);
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(r->check->allocator, &r->passing, passing));
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (stream->entry[i].outputs >> d & 1 && weft_links_target(&r->links, &stream->entry[i], d) < WEFT_LINKS_NOWHERE)
        arrive(r, i, d, &passing);
  }
  for (int32_t i = 0; i < stream->sink_count; ++i) {
    int32_t tile = end_tile(r, stream->sink_kernel, stream->sink_port, stream->sink[i].logical);
    if (r->sink_at[tile] == 1)
      weft_faults_add(r->check->faults, "%s: does not reach %s", r->links.name, tile_text(r, tile, &place));
  }
  return weft_ok();
}

static weft_status_t check_stream(routes_t* r, const weft_stream_t* stream) {
  weft_check_label_t label = weft_check_stream_label(r->check->fabric, stream);
  r->stream = stream;
  r->links.name = label.text;
  WEFT_RETURN_IF_ERROR(weft_links_join(&r->links, stream->entry_count, stream->entry));
  mark_colours(r);
  if (!ports_exist(r)) return weft_ok();
  mark_ends(r, true);
  weft_status_t status = follow(r);
  mark_ends(r, false);
  return status;
}

weft_status_t weft_check_routes(const weft_check_t* c) {
  routes_t r = {
      .check = c,
      .links = {.machine = c->machine, .defects = c->defects, .allocator = c->allocator, .faults = c->faults}};
  size_t tiles = (size_t)weft_machine_tiles(c->machine);
  weft_status_t status = weft_allocator_calloc(c->allocator, tiles, sizeof(*r.used), (void**)&r.used);
  if (!status) status = weft_allocator_calloc(c->allocator, tiles, sizeof(*r.source_at), (void**)&r.source_at);
  if (!status) status = weft_allocator_calloc(c->allocator, tiles, sizeof(*r.sink_at), (void**)&r.sink_at);
  for (int32_t i = 0; !status && i < c->fabric->stream_count; ++i) status = check_stream(&r, &c->fabric->stream[i]);
  weft_allocator_free(c->allocator, r.used);
  weft_allocator_free(c->allocator, r.source_at);
  weft_allocator_free(c->allocator, r.sink_at);
  WEFT_ARRAY_FREE(c->allocator, &r.passing);
  weft_links_deinitialize(&r.links);
  return status;
}
