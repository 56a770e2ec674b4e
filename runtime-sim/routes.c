// Streams, derived again from the routes alone: for every component of router entries the order in which its sources
// append, its multicast tree and its distances. A component is a tree in which nothing joins after the first fork; so
// every sink gets what every source sends, in the order of the switches.
#include <stdlib.h>

#include "runtime-sim/internal.h"

typedef struct port_key_t {
  int32_t tile, direction, colour, host_colour;
} port_key_t;

typedef struct builder_t {
  weft_sim_t* sim;
  const weft_image_t* image;
  weft_arena_t scratch;
  int32_t entry_count;
  port_key_t* port; // sorted
  int32_t port_count;
  int32_t* tile_entry;    // [tile] its first entry, or the next one after it
  uint64_t* tile_colours; // [tile] bit per colour that its entries have
  int32_t* tile_slot;     // [tile] or NONE
  int32_t* input_base;    // [entry] first of its inputs in the arrays below
  int32_t* predecessor;   // [input] entry that feeds it, or NONE
  int32_t* input_port;    // [input] host colour that feeds it, or NONE
  int32_t* stream_of;     // [entry]
  int32_t* depth;         // [entry] hops to the root
  int32_t* entry_source;  // [entry] that the ramp feeds
  int32_t* entry_sink;
  int32_t* host_source; // [host colour]
  int32_t* host_sink;
  int32_t* stack;
  int32_t* stack_hop;
} builder_t;

static int compare_ports(const void* a, const void* b) {
  const port_key_t *p = a, *q = b;
  if (p->tile != q->tile) return p->tile < q->tile ? -1 : 1;
  if (p->direction != q->direction) return p->direction < q->direction ? -1 : 1;
  if (p->colour != q->colour) return p->colour < q->colour ? -1 : 1;
  return 0;
}

// A total order, so that the sorted list is always the same.
static int compare_port_records(const void* a, const void* b) {
  int order = compare_ports(a, b);
  return order ? order : ((const port_key_t*)a)->host_colour - ((const port_key_t*)b)->host_colour;
}

static int32_t find_port(const builder_t* b, int32_t tile, int32_t direction, int32_t colour) {
  port_key_t key = {tile, direction, colour, 0};
  const port_key_t* found =
      b->port_count ? bsearch(&key, b->port, (size_t)b->port_count, sizeof(key), compare_ports) : NULL;
  return found ? found->host_colour : WEFT_SIM_NONE;
}

#define ROUTE_FAULT(b, entry, text, ...)                                                                               \
  weft_error(INVALID_INPUT, "route of tile (%d,%d) colour %d: " text,                                                  \
             (b)->image->routes[entry].tile % (b)->sim->machine.width,                                                 \
             (b)->image->routes[entry].tile / (b)->sim->machine.width,                                                 \
             (b)->image->routes[entry].colour __VA_OPT__(, ) __VA_ARGS__)

static weft_status_t verify_entry(const builder_t* b, int32_t e) {
  const weft_machine_t* machine = &b->sim->machine;
  const weft_image_route_t* route = &b->image->routes[e];
  if (route->tile < 0 || route->tile >= weft_sim_tile_count(b->sim))
    return weft_error(INVALID_INPUT, "route %d: tile %d is not on the %dx%d mesh", e, route->tile, machine->width,
                      machine->height);
  if (!weft_defects_live(&b->sim->defects, route->tile)) return ROUTE_FAULT(b, e, "the tile is dead");
  if (route->colour >= machine->colours) return ROUTE_FAULT(b, e, "a router has %d colours", machine->colours);
  if (e > 0) {
    const weft_image_route_t* before = route - 1;
    if (before->tile > route->tile || (before->tile == route->tile && before->colour >= route->colour))
      return ROUTE_FAULT(b, e, "not in ascending order, or there twice");
  }
  if (route->input_count < 1 || route->input_count > WEFT_DIRECTION_COUNT)
    return ROUTE_FAULT(b, e, "%d inputs; a router has 1 to %d", route->input_count, WEFT_DIRECTION_COUNT);
  uint32_t seen = 0;
  for (int32_t i = 0; i < route->input_count; ++i) {
    if (route->input[i] >= WEFT_DIRECTION_COUNT) return ROUTE_FAULT(b, e, "no input direction %d", route->input[i]);
    if (seen >> route->input[i] & 1)
      return ROUTE_FAULT(b, e, "input %s is there twice", weft_direction_name((weft_direction_e)route->input[i]));
    seen |= 1u << route->input[i];
  }
  if (route->outputs == 0 || route->outputs >> WEFT_DIRECTION_COUNT)
    return ROUTE_FAULT(b, e, "no output, or one that a router doesn't have (0x%x)", route->outputs);
  return weft_ok();
}

static weft_status_t verify_entries(builder_t* b) {
  if (b->image->routes_count > INT32_MAX / WEFT_DIRECTION_COUNT) return weft_error(INVALID_INPUT, "too many routes");
  b->entry_count = (int32_t)b->image->routes_count;
  for (int32_t e = 0; e < b->entry_count; ++e) WEFT_RETURN_IF_ERROR(verify_entry(b, e));
  int32_t tiles = weft_sim_tile_count(b->sim);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->scratch, (size_t)tiles, &b->tile_entry));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->scratch, (size_t)tiles, &b->tile_colours));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->scratch, (size_t)tiles, &b->tile_slot));
  for (int32_t tile = 0, e = 0, slot = 0; tile < tiles; ++tile) {
    b->tile_entry[tile] = e;
    for (; e < b->entry_count && b->image->routes[e].tile == tile; ++e)
      b->tile_colours[tile] |= UINT64_C(1) << b->image->routes[e].colour;
    while (slot < b->sim->slot_count && slot != b->sim->host_slot && b->sim->slot[slot].tile->tile < tile) ++slot;
    bool here = slot < b->sim->slot_count && b->sim->slot[slot].tile->tile == tile;
    b->tile_slot[tile] = here ? slot : WEFT_SIM_NONE;
  }
  return weft_ok();
}

static weft_status_t new_indices(weft_arena_t* arena, int32_t count, int32_t** out_indices) {
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)count, out_indices));
  for (int32_t i = 0; i < count; ++i) (*out_indices)[i] = WEFT_SIM_NONE;
  return weft_ok();
}

static weft_status_t build_ports(builder_t* b) {
  const weft_machine_t* machine = &b->sim->machine;
  if (b->image->host_colours_count > INT32_MAX) return weft_error(INVALID_INPUT, "too many host colours");
  b->port_count = (int32_t)b->image->host_colours_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->scratch, (size_t)b->port_count, &b->port));
  for (int32_t h = 0; h < b->port_count; ++h) {
    const weft_image_host_colour_t* host = &b->image->host_colours[h];
    if (host->port < 0 || host->port >= weft_machine_port_count(machine))
      return weft_error(INVALID_INPUT, "host colour %d: port %d, the machine has %d", h, host->port,
                        weft_machine_port_count(machine));
    if (host->colour >= (uint32_t)machine->colours)
      return weft_error(INVALID_INPUT, "host colour %d: colour %u, a router has %d", h, host->colour, machine->colours);
    weft_host_port_t port = weft_machine_port(machine, host->port);
    b->port[h] = (port_key_t){port.tile, (int32_t)port.direction, (int32_t)host->colour, h};
  }
  if (b->port_count) qsort(b->port, (size_t)b->port_count, sizeof(*b->port), compare_port_records);
  // One that stands for a stream in and one for a stream out may be the same port and colour: then they share an
  // endpoint.
  WEFT_RETURN_IF_ERROR(new_indices(&b->sim->arena, b->port_count, &b->sim->host_colour));
  int32_t kept = 0;
  for (int32_t p = 0; p < b->port_count; ++p) {
    if (kept == 0 || compare_ports(&b->port[kept - 1], &b->port[p]) != 0) b->port[kept++] = b->port[p];
    b->sim->host_colour[b->port[p].host_colour] = b->port[kept - 1].host_colour;
  }
  b->port_count = kept;
  return weft_ok();
}

static weft_status_t allocate(builder_t* b) {
  weft_sim_t* sim = b->sim;
  int32_t inputs = 0, host_colours = (int32_t)b->image->host_colours_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&b->scratch, (size_t)b->entry_count + 1, &b->input_base));
  for (int32_t e = 0; e < b->entry_count; ++e) {
    b->input_base[e] = inputs;
    inputs += b->image->routes[e].input_count;
    for (uint32_t outputs = b->image->routes[e].outputs; outputs; outputs &= outputs - 1) ++sim->hop_count;
  }
  b->input_base[b->entry_count] = inputs;
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, inputs, &b->predecessor));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, inputs, &b->input_port));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, b->entry_count, &b->stream_of));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, b->entry_count, &b->depth));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, b->entry_count, &b->entry_source));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, b->entry_count, &b->entry_sink));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, host_colours, &b->host_source));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, host_colours, &b->host_sink));
  int32_t stack = inputs > sim->hop_count ? inputs : sim->hop_count;
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, stack + 1, &b->stack));
  WEFT_RETURN_IF_ERROR(new_indices(&b->scratch, stack + 1, &b->stack_hop));
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, b->entry_count, &sim->entry_router));
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, b->entry_count, &sim->entry_next));
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, b->entry_count, &sim->entry_link));
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, b->entry_count, &sim->router_tile));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)sim->hop_count, &sim->hop));
  for (int32_t e = 0; e < b->entry_count; ++e) {
    int32_t tile = b->image->routes[e].tile;
    if (sim->router_count == 0 || sim->router_tile[sim->router_count - 1] != tile)
      sim->router_tile[sim->router_count++] = tile;
    sim->entry_router[e] = sim->router_count - 1;
  }
  sim->link_count = (int64_t)sim->router_count * WEFT_DIRECTION_COUNT * 2;
  if (sim->link_count > INT32_MAX) return weft_error(INVALID_INPUT, "too many routers");
  sim->hop_count = 0;
  return weft_ok();
}

static int32_t find_entry(const builder_t* b, int32_t tile, int32_t colour) {
  uint64_t colours = b->tile_colours[tile], bit = colour < WEFT_MAX_COLOURS ? UINT64_C(1) << colour : 0;
  return colours & bit ? b->tile_entry[tile] + __builtin_popcountll(colours & (bit - 1)) : WEFT_SIM_NONE;
}

static int32_t find_input(const weft_image_route_t* route, weft_direction_e direction) {
  for (int32_t i = 0; i < route->input_count; ++i)
    if (route->input[i] == direction) return i;
  return WEFT_SIM_NONE;
}

static int32_t link_of(const builder_t* b, int32_t entry, int32_t direction, bool inwards) {
  return (b->sim->entry_router[entry] * WEFT_DIRECTION_COUNT + direction) * 2 + inwards;
}

static int32_t successor(const builder_t* b, int32_t entry, weft_direction_e direction) {
  const weft_image_route_t* route = &b->image->routes[entry];
  int32_t neighbour = weft_machine_neighbour(&b->sim->machine, route->tile, direction);
  return neighbour < 0 ? WEFT_SIM_NONE : find_entry(b, neighbour, route->output_colour[direction]);
}

static weft_status_t connect_output(builder_t* b, int32_t e, weft_direction_e direction) {
  const weft_image_route_t* route = &b->image->routes[e];
  if (direction == WEFT_DIRECTION_RAMP) return weft_ok();
  const char* name = weft_direction_name(direction);
  int32_t colour = route->output_colour[direction];
  if (weft_machine_neighbour(&b->sim->machine, route->tile, direction) < 0) {
    if (find_port(b, route->tile, (int32_t)direction, colour) >= 0) return weft_ok();
    return ROUTE_FAULT(b, e, "output %s with colour %d leaves the mesh where no host port takes it", name, colour);
  }
  if (!weft_defects_link_live(&b->sim->machine, &b->sim->defects, route->tile, direction))
    return ROUTE_FAULT(b, e, "output %s goes over a dead link", name);
  int32_t next = successor(b, e, direction);
  int32_t input = next < 0 ? WEFT_SIM_NONE : find_input(&b->image->routes[next], weft_direction_opposite(direction));
  if (input < 0)
    return ROUTE_FAULT(b, e, "output %s dangles: the router there expects nothing from here on colour %d", name,
                       colour);
  int32_t* predecessor = &b->predecessor[b->input_base[next] + input];
  if (*predecessor >= 0)
    return ROUTE_FAULT(b, next, "reached twice from %s, by colours %d and %d there",
                       weft_direction_name(weft_direction_opposite(direction)), b->image->routes[*predecessor].colour,
                       route->colour);
  *predecessor = e;
  return weft_ok();
}

static weft_status_t connect_input(builder_t* b, int32_t e, int32_t input) {
  const weft_image_route_t* route = &b->image->routes[e];
  weft_direction_e direction = (weft_direction_e)route->input[input];
  if (direction == WEFT_DIRECTION_RAMP) return weft_ok();
  int32_t at = b->input_base[e] + input;
  if (weft_machine_neighbour(&b->sim->machine, route->tile, direction) < 0)
    b->input_port[at] = find_port(b, route->tile, (int32_t)direction, route->colour);
  if (b->predecessor[at] < 0 && b->input_port[at] < 0)
    return ROUTE_FAULT(b, e, "nobody feeds input %s", weft_direction_name(direction));
  return weft_ok();
}

static weft_status_t connect_entries(builder_t* b) {
  for (int32_t e = 0; e < b->entry_count; ++e)
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (b->image->routes[e].outputs >> d & 1) WEFT_RETURN_IF_ERROR(connect_output(b, e, (weft_direction_e)d));
  for (int32_t e = 0; e < b->entry_count; ++e)
    for (int32_t i = 0; i < b->image->routes[e].input_count; ++i) WEFT_RETURN_IF_ERROR(connect_input(b, e, i));
  return weft_ok();
}

// Room for what begins and ends at ramps and ports: far less than there are entries. Each stream has a source.
static weft_status_t allocate_endpoints(builder_t* b) {
  weft_sim_t* sim = b->sim;
  size_t sources = 0, sinks = 0;
  for (int32_t i = 0; i < b->input_base[b->entry_count]; ++i) sources += b->predecessor[i] < 0;
  for (int32_t e = 0; e < b->entry_count; ++e) {
    const weft_image_route_t* route = &b->image->routes[e];
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (route->outputs >> d & 1)
        sinks +=
            d == WEFT_DIRECTION_RAMP || weft_machine_neighbour(&sim->machine, route->tile, (weft_direction_e)d) < 0;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, sources, &sim->source));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, sinks, &sim->sink));
  return WEFT_ARENA_NEW(&sim->arena, sources, &sim->stream);
}

// The next entry when there is only one way on and it stays on the mesh.
static int32_t only_successor(const builder_t* b, int32_t e) {
  uint32_t outputs = b->image->routes[e].outputs;
  if (outputs & (outputs - 1)) return WEFT_SIM_NONE;
  weft_direction_e direction = (weft_direction_e)__builtin_ctz(outputs);
  return direction == WEFT_DIRECTION_RAMP ? WEFT_SIM_NONE : successor(b, e, direction);
}

static void add_source(builder_t* b, int32_t e, int32_t input, int32_t stream) {
  weft_sim_t* sim = b->sim;
  const weft_image_route_t* route = &b->image->routes[e];
  weft_direction_e direction = (weft_direction_e)route->input[input];
  int32_t host = b->input_port[b->input_base[e] + input], index = sim->source_count++;
  sim->source[index] = (weft_sim_source_t){.slot = host >= 0 ? sim->host_slot : b->tile_slot[route->tile],
                                           .colour = host >= 0 ? host : route->colour,
                                           .stream = stream,
                                           .entry = e,
                                           .in_link = link_of(b, e, (int32_t)direction, true),
                                           .distance = b->depth[e]};
  *(host >= 0 ? &b->host_source[host] : &b->entry_source[e]) = index;
}

static weft_status_t claim(builder_t* b, int32_t e, int32_t stream) {
  if (b->stream_of[e] >= 0) return ROUTE_FAULT(b, e, "the route loops, or is reached twice");
  b->stream_of[e] = stream;
  return weft_ok();
}

static void push_inputs(builder_t* b, int32_t e, int32_t* count) {
  for (int32_t i = b->image->routes[e].input_count - 1; i >= 0; --i) {
    b->stack_hop[*count] = i;
    b->stack[(*count)++] = e;
  }
}

// Sources in the order of the switches, depth first from the root upstream.
static weft_status_t gather(builder_t* b, int32_t stream) {
  weft_sim_t* sim = b->sim;
  int32_t count = 0;
  push_inputs(b, sim->stream[stream].root, &count);
  while (count > 0) {
    int32_t e = b->stack[--count], input = b->stack_hop[count];
    int32_t before = b->predecessor[b->input_base[e] + input];
    if (before < 0) {
      add_source(b, e, input, stream);
      continue;
    }
    uint32_t outputs = b->image->routes[before].outputs;
    if (outputs & (outputs - 1)) return ROUTE_FAULT(b, before, "forks before the stream's last source has joined");
    WEFT_RETURN_IF_ERROR(claim(b, before, stream));
    b->depth[before] = b->depth[e] + 1;
    sim->entry_next[before] = e;
    sim->entry_link[before] = link_of(b, before, __builtin_ctz(outputs), false);
    push_inputs(b, before, &count);
  }
  return weft_ok();
}

static void add_sink(builder_t* b, int32_t e, int32_t host, int32_t hop, int32_t stream) {
  weft_sim_t* sim = b->sim;
  const weft_image_route_t* route = &b->image->routes[e];
  int32_t index = sim->sink_count++;
  sim->sink[index] = (weft_sim_sink_t){.slot = host >= 0 ? sim->host_slot : b->tile_slot[route->tile],
                                       .colour = host >= 0 ? host : route->colour,
                                       .stream = stream,
                                       .hop = hop,
                                       .depth = 1,
                                       .walk_pc = UINT32_MAX};
  *(host >= 0 ? &b->host_sink[host] : &b->entry_sink[e]) = index;
}

// The multicast tree, from the root downstream.
static weft_status_t scatter(builder_t* b, int32_t stream_index) {
  weft_sim_t* sim = b->sim;
  weft_sim_stream_t* stream = &sim->stream[stream_index];
  int32_t count = 0;
  b->stack_hop[count] = WEFT_SIM_NONE;
  b->stack[count++] = stream->root;
  while (count > 0) {
    int32_t e = b->stack[--count], parent = b->stack_hop[count];
    const weft_image_route_t* route = &b->image->routes[e];
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
      if (!(route->outputs >> d & 1)) continue;
      if (d == WEFT_DIRECTION_RAMP) {
        add_sink(b, e, WEFT_SIM_NONE, parent, stream_index);
        continue;
      }
      int32_t hop = stream->hop_count++;
      int32_t next = successor(b, e, (weft_direction_e)d);
      sim->hop[stream->first_hop + hop] = (weft_sim_hop_t){parent, link_of(b, e, d, false), next < 0};
      if (next < 0) {
        int32_t host = find_port(b, route->tile, d, route->output_colour[d]);
        if (b->host_sink[host] >= 0) return ROUTE_FAULT(b, e, "another route leaves by the same port and colour");
        add_sink(b, e, host, hop, stream_index);
        continue;
      }
      if (b->image->routes[next].input_count != 1)
        return ROUTE_FAULT(b, next, "a source joins after the stream has forked");
      WEFT_RETURN_IF_ERROR(claim(b, next, stream_index));
      b->stack_hop[count] = hop;
      b->stack[count++] = next;
    }
  }
  return weft_ok();
}

static weft_status_t build_stream(builder_t* b, int32_t start) {
  weft_sim_t* sim = b->sim;
  int32_t root = start, steps = 0;
  for (int32_t next = only_successor(b, root); next >= 0; next = only_successor(b, root)) {
    root = next;
    if (++steps > b->entry_count) return ROUTE_FAULT(b, start, "the route loops");
  }
  int32_t index = sim->stream_count++;
  weft_sim_stream_t* stream = &sim->stream[index];
  *stream = (weft_sim_stream_t){.first_source = sim->source_count,
                                .first_sink = sim->sink_count,
                                .first_hop = sim->hop_count,
                                .root = root,
                                .dtype = WEFT_SIM_NONE};
  b->depth[root] = 0;
  WEFT_RETURN_IF_ERROR(claim(b, root, index));
  WEFT_RETURN_IF_ERROR(gather(b, index));
  WEFT_RETURN_IF_ERROR(scatter(b, index));
  stream->source_count = sim->source_count - stream->first_source;
  stream->sink_count = sim->sink_count - stream->first_sink;
  sim->hop_count += stream->hop_count;
  return weft_ok();
}

static bool is_source(const builder_t* b, int32_t e) {
  const weft_image_route_t* route = &b->image->routes[e];
  for (int32_t i = 0; i < route->input_count; ++i)
    if (b->predecessor[b->input_base[e] + i] < 0) return true;
  return false;
}

// Endpoints by (slot, colour): entries are sorted by tile and colour, and slots by tile, so one pass each does it.
static weft_status_t list_by_slot(builder_t* b) {
  weft_sim_t* sim = b->sim;
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, sim->source_count, &sim->slot_sources));
  WEFT_RETURN_IF_ERROR(new_indices(&sim->arena, sim->sink_count, &sim->slot_sinks));
  int32_t sources = 0, sinks = 0;
  for (int32_t slot = 0, e = 0; slot < sim->slot_count; ++slot) {
    weft_sim_slot_t* s = &sim->slot[slot];
    s->first_source = sources;
    s->first_sink = sinks;
    s->router = WEFT_SIM_NONE;
    if (slot == sim->host_slot) {
      for (int32_t h = 0; h < (int32_t)b->image->host_colours_count; ++h) {
        if (b->host_source[h] >= 0) sim->slot_sources[sources++] = b->host_source[h];
        if (b->host_sink[h] >= 0) sim->slot_sinks[sinks++] = b->host_sink[h];
      }
    } else {
      while (e < b->entry_count && b->image->routes[e].tile < s->tile->tile) ++e;
      for (; e < b->entry_count && b->image->routes[e].tile == s->tile->tile; ++e) {
        s->router = sim->entry_router[e];
        if (b->entry_source[e] >= 0) sim->slot_sources[sources++] = b->entry_source[e];
        if (b->entry_sink[e] >= 0) sim->slot_sinks[sinks++] = b->entry_sink[e];
      }
    }
    s->source_count = sources - s->first_source;
    s->sink_count = sinks - s->first_sink;
  }
  return weft_ok();
}

static weft_status_t build(builder_t* b) {
  weft_sim_t* sim = b->sim;
  WEFT_RETURN_IF_ERROR(verify_entries(b));
  WEFT_RETURN_IF_ERROR(build_ports(b));
  WEFT_RETURN_IF_ERROR(allocate(b));
  WEFT_RETURN_IF_ERROR(connect_entries(b));
  WEFT_RETURN_IF_ERROR(allocate_endpoints(b));
  for (int32_t e = 0; e < b->entry_count; ++e)
    if (b->stream_of[e] < 0 && is_source(b, e)) WEFT_RETURN_IF_ERROR(build_stream(b, e));
  for (int32_t e = 0; e < b->entry_count; ++e)
    if (b->stream_of[e] < 0) return ROUTE_FAULT(b, e, "the route loops: no source leads to it");
  WEFT_RETURN_IF_ERROR(list_by_slot(b));
  int32_t most_hops = 0;
  for (int32_t s = 0; s < sim->stream_count; ++s)
    if (sim->stream[s].hop_count > most_hops) most_hops = sim->stream[s].hop_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)most_hops + 1, &sim->head_time));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)most_hops + 1, &sim->late_time));
  return weft_sim_links_build(sim);
}

weft_status_t weft_sim_routes_build(weft_sim_t* sim) {
  builder_t builder = {.sim = sim, .image = sim->image};
  weft_arena_initialize(sim->allocator, &builder.scratch);
  weft_status_t status = build(&builder);
  weft_arena_deinitialize(&builder.scratch);
  return status;
}

// The host's colours that are the same port and colour count as one.
static int32_t canonical_colour(const weft_sim_t* sim, int32_t slot, int32_t colour) {
  if (!weft_sim_is_host(sim, slot)) return colour;
  return (size_t)colour < sim->image->host_colours_count ? sim->host_colour[colour] : WEFT_SIM_NONE;
}

int32_t weft_sim_find_source(const weft_sim_t* sim, int32_t slot, int32_t colour) {
  const weft_sim_slot_t* s = &sim->slot[slot];
  int32_t low = s->first_source, end = s->first_source + s->source_count, high = end;
  colour = canonical_colour(sim, slot, colour);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (sim->source[sim->slot_sources[middle]].colour < colour)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && sim->source[sim->slot_sources[low]].colour == colour ? sim->slot_sources[low] : WEFT_SIM_NONE;
}

int32_t weft_sim_find_sink(const weft_sim_t* sim, int32_t slot, int32_t colour) {
  const weft_sim_slot_t* s = &sim->slot[slot];
  int32_t low = s->first_sink, end = s->first_sink + s->sink_count, high = end;
  colour = canonical_colour(sim, slot, colour);
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (sim->sink[sim->slot_sinks[middle]].colour < colour)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && sim->sink[sim->slot_sinks[low]].colour == colour ? sim->slot_sinks[low] : WEFT_SIM_NONE;
}
