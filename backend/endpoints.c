#include "backend/endpoints.h"

#include <inttypes.h>
#include <string.h>

enum { NO_COLOUR = -1 };

// A stream whose ends are being entered: the colour that its entries give to the cores of each tile.
typedef struct colouring_t {
  int16_t* in;  // [tiles] of the entry with RAMP in its outputs
  int16_t* out; // [tiles] of the entry with RAMP in its inputs
} colouring_t;

static const char* stream_name(const weft_fabric_t* fabric, const weft_stream_t* stream) {
  return stream->tensor >= 0 ? fabric->tensor[stream->tensor].name : "reduce chain";
}

static bool enters_from(const weft_router_entry_t* entry, weft_direction_e direction) {
  for (int32_t i = 0; i < entry->input_count; ++i)
    if (entry->input[i] == direction) return true;
  return false;
}

const weft_router_entry_t* weft_endpoints_entry(const weft_stream_t* stream, int32_t tile, weft_direction_e direction,
                                                bool sink) {
  for (int32_t e = 0; e < stream->entry_count; ++e) {
    const weft_router_entry_t* entry = &stream->entry[e];
    if (entry->tile != tile) continue;
    if (sink ? (entry->outputs >> direction & 1) != 0 : enters_from(entry, direction)) return entry;
  }
  return NULL;
}

int32_t weft_endpoints_tile(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_stream_t* stream,
                            bool sink) {
  int32_t kernel = sink ? stream->sink_kernel : stream->source_kernel;
  int32_t port = sink ? stream->sink_port : stream->source_port;
  if (kernel == WEFT_HOST_KERNEL)
    return port >= 0 && port < weft_machine_port_count(machine) ? weft_machine_port(machine, port).tile : -1;
  if (!(sink ? stream->sink_count : stream->source_count)) return -1;
  return fabric->kernel[kernel].tile[(sink ? stream->sink : stream->source)[0].logical];
}

static void mark(const weft_stream_t* stream, const colouring_t* colouring, bool set) {
  for (int32_t e = 0; e < stream->entry_count; ++e) {
    const weft_router_entry_t* entry = &stream->entry[e];
    int16_t colour = (int16_t)(set ? entry->colour : NO_COLOUR);
    if (entry->outputs >> WEFT_DIRECTION_RAMP & 1) colouring->in[entry->tile] = colour;
    if (enters_from(entry, WEFT_DIRECTION_RAMP)) colouring->out[entry->tile] = colour;
  }
}

// The host colour of a stream's end: its port and the colour on the wires between port and edge router.
static weft_status_t add_host_colour(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                     const weft_stream_t* stream, bool sink, weft_endpoints_t* endpoints,
                                     int32_t* out_colour) {
  int32_t index = sink ? stream->sink_port : stream->source_port;
  if (index < 0 || index >= weft_machine_port_count(machine))
    return weft_error(INVALID_INPUT, "stream of '%s': it has no host port", stream_name(fabric, stream));
  weft_host_port_t port = weft_machine_port(machine, index);
  const weft_router_entry_t* entry = weft_endpoints_entry(stream, port.tile, port.direction, sink);
  if (!entry)
    return weft_error(INVALID_INPUT, "stream of '%s': its route doesn't reach host port %" PRId32 " at tile %" PRId32,
                      stream_name(fabric, stream), index, port.tile);
  *out_colour = (int32_t)endpoints->host_count;
  endpoints->host[endpoints->host_count].port = index;
  endpoints->host[endpoints->host_count++].colour = sink ? entry->output_colour[port.direction] : entry->colour;
  return weft_ok();
}

static size_t slot_of(const weft_endpoints_t* endpoints, int32_t kernel, int32_t logical) {
  return kernel == WEFT_HOST_KERNEL ? 0 : endpoints->kernel_slot[kernel] + (size_t)logical;
}

// Enters one side of a stream. next[slot] is where the slot's next end goes.
static weft_status_t enter_ends(const weft_fabric_t* fabric, const weft_machine_t* machine, int32_t index, bool sink,
                                const int16_t* colours, size_t* next, weft_endpoints_t* endpoints) {
  const weft_stream_t* stream = &fabric->stream[index];
  int32_t kernel = sink ? stream->sink_kernel : stream->source_kernel;
  int32_t count = sink ? stream->sink_count : stream->source_count;
  const weft_endpoint_t* ends = sink ? stream->sink : stream->source;
  weft_end_table_t* table = sink ? &endpoints->in : &endpoints->out;
  for (int32_t e = 0; e < count; ++e) {
    weft_end_t end = {index, e, 0};
    if (kernel == WEFT_HOST_KERNEL) {
      WEFT_RETURN_IF_ERROR(add_host_colour(fabric, machine, stream, sink, endpoints, &end.colour));
    } else {
      int32_t tile = fabric->kernel[kernel].tile[ends[e].logical];
      end.colour = colours[tile];
      if (end.colour == NO_COLOUR)
        return weft_error(INVALID_INPUT,
                          "stream of '%s': its route has no %s at tile %" PRId32 ",%" PRId32 " of kernel '%s'",
                          stream_name(fabric, stream), sink ? "way out to the core" : "way in from the core",
                          tile % machine->width, tile / machine->width, fabric->kernel[kernel].name);
    }
    table->end[next[slot_of(endpoints, kernel, ends[e].logical)]++] = end;
  }
  return weft_ok();
}

static void count_ends(const weft_fabric_t* fabric, weft_endpoints_t* endpoints, bool sink, size_t* first) {
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    const weft_stream_t* stream = &fabric->stream[s];
    int32_t kernel = sink ? stream->sink_kernel : stream->source_kernel;
    int32_t count = sink ? stream->sink_count : stream->source_count;
    if (kernel == WEFT_HOST_KERNEL) endpoints->host_count += (size_t)count;
    for (int32_t e = 0; e < count; ++e)
      ++first[slot_of(endpoints, kernel, (sink ? stream->sink : stream->source)[e].logical) + 1];
  }
  for (size_t s = 0; s < endpoints->slot_count; ++s) first[s + 1] += first[s];
}

static weft_status_t number_slots(const weft_fabric_t* fabric, weft_arena_t* arena, weft_endpoints_t* endpoints) {
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)fabric->kernel_count, &endpoints->kernel_slot));
  endpoints->slot_count = 1;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_alternative_t* chosen = &fabric->kernel[k].alternative[fabric->kernel[k].chosen];
    endpoints->kernel_slot[k] = endpoints->slot_count;
    endpoints->slot_count += (size_t)chosen->gy * (size_t)chosen->gx;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, endpoints->slot_count + 1, &endpoints->in.first));
  return WEFT_ARENA_NEW(arena, endpoints->slot_count + 1, &endpoints->out.first);
}

weft_status_t weft_endpoints_create(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                    weft_endpoints_t* out_endpoints) {
  weft_endpoints_t* e = out_endpoints;
  memset(e, 0, sizeof(*e));
  WEFT_RETURN_IF_ERROR(number_slots(fabric, arena, e));
  count_ends(fabric, e, true, e->in.first);
  count_ends(fabric, e, false, e->out.first);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, e->in.first[e->slot_count], &e->in.end));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, e->out.first[e->slot_count], &e->out.end));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, e->host_count, &e->host));
  e->host_count = 0; // counts again while they are entered
  size_t *next_in, *next_out, slots = e->slot_count * sizeof(*next_in);
  WEFT_RETURN_IF_ERROR(weft_arena_copy(arena, e->in.first, slots, (void**)&next_in));
  WEFT_RETURN_IF_ERROR(weft_arena_copy(arena, e->out.first, slots, (void**)&next_out));
  colouring_t colouring;
  size_t tiles = (size_t)weft_machine_tiles(machine);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &colouring.in));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &colouring.out));
  for (size_t t = 0; t < tiles; ++t) colouring.in[t] = colouring.out[t] = NO_COLOUR;
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    mark(&fabric->stream[s], &colouring, true);
    WEFT_RETURN_IF_ERROR(enter_ends(fabric, machine, s, true, colouring.in, next_in, e));
    WEFT_RETURN_IF_ERROR(enter_ends(fabric, machine, s, false, colouring.out, next_out, e));
    mark(&fabric->stream[s], &colouring, false);
  }
  return weft_ok();
}

weft_end_list_t weft_endpoints_of(const weft_endpoints_t* endpoints, const weft_end_table_t* table, int32_t kernel,
                                  int32_t logical) {
  size_t slot = slot_of(endpoints, kernel, logical);
  return (weft_end_list_t){table->end + table->first[slot], table->first[slot + 1] - table->first[slot]};
}
