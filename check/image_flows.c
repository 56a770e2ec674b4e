// Elements along the routes: what the sources of a stream send for one input of the run is what each of its sinks
// takes.
#include <inttypes.h>

#include "base/checked.h"
#include "check/image_parts.h"

// The host's flow through the port at this side of a tile, on this colour; NULL: it has none.
static const weft_check_flow_t* host_flow(const weft_check_image_t* c, const weft_check_flow_t* flows, int32_t tile,
                                          int32_t direction, uint32_t colour) {
  int32_t ports = weft_machine_port_count(&c->machine);
  for (size_t i = 0; i < c->image->host_colours_count; ++i) {
    const weft_image_host_colour_t* host = &c->image->host_colours[i];
    if (host->port < 0 || host->port >= ports || host->colour != colour || !flows[i].instructions) continue;
    weft_host_port_t port = weft_machine_port(&c->machine, host->port);
    if (port.tile == tile && (int32_t)port.direction == direction) return &flows[i];
  }
  return NULL;
}

// What comes in at an entry from the core or from the host, and what they take there.
static const weft_check_flow_t* source_flow(const weft_check_image_t* c, int32_t index, int32_t direction) {
  const weft_router_entry_t* entry = &c->entry[index];
  if (direction == WEFT_DIRECTION_RAMP) return &c->sent[index];
  return host_flow(c, c->host_sent, entry->tile, direction, entry->colour);
}

static const weft_check_flow_t* sink_flow(const weft_check_image_t* c, int32_t index, int32_t direction) {
  const weft_router_entry_t* entry = &c->entry[index];
  if (direction == WEFT_DIRECTION_RAMP) return &c->taken[index];
  return host_flow(c, c->host_taken, entry->tile, direction, entry->output_colour[direction]);
}

static void merge(const weft_check_image_t* c, int32_t index, const weft_check_flow_t* from, weft_check_flow_t* into) {
  if (into->instructions && from->instructions && into->dtype != from->dtype)
    weft_faults_add(c->faults, "colour %d on %s carries both %s and %s", c->entry[index].colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text, weft_dtype_name(into->dtype),
                    weft_dtype_name(from->dtype));
  if (from->instructions) into->dtype = from->dtype;
  into->instructions |= from->instructions;
  if (!weft_checked_add(into->elements, from->elements, &into->elements)) into->elements = INT64_MAX;
}

static const char* end_text(int32_t direction) {
  return direction == WEFT_DIRECTION_RAMP ? "its core" : "the host";
}

static void enter(const weft_check_image_t* c, int32_t index, int32_t direction, weft_check_flow_t* into) {
  const weft_check_flow_t* flow = source_flow(c, index, direction);
  if (!flow || !flow->instructions)
    weft_faults_add(c->faults, "colour %d on %s expects wavelets from %s, which sends none", c->entry[index].colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text, end_text(direction));
  else
    merge(c, index, flow, into);
}

static void leave(const weft_check_image_t* c, int32_t index, int32_t direction, const weft_check_flow_t* passing) {
  const weft_check_flow_t* flow = sink_flow(c, index, direction);
  int32_t colour = c->entry[index].colour;
  if (!flow || !flow->instructions)
    weft_faults_add(c->faults, "colour %d on %s leads to %s, which takes nothing", colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text, end_text(direction));
  else if (passing->instructions && flow->elements != passing->elements)
    weft_faults_add(c->faults, "colour %d on %s brings %" PRId64 " elements to %s, which takes %" PRId64, colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text, passing->elements, end_text(direction),
                    flow->elements);
  else if (passing->instructions && flow->dtype != passing->dtype)
    weft_faults_add(c->faults, "colour %d on %s brings %s to %s, which takes %s", colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text, weft_dtype_name(passing->dtype),
                    end_text(direction), weft_dtype_name(flow->dtype));
}

// The host's instructions whose colour no route has.
static void check_host(const weft_check_image_t* c, const bool* host_used) {
  size_t count = c->image->host_colours_count;
  for (size_t i = 0; i < count; ++i) {
    if (c->host_sent[i].instructions && !host_used[i])
      weft_faults_add(c->faults, "the host sends on host colour %zu, which has no route", i);
    if (c->host_taken[i].instructions && !host_used[count + i])
      weft_faults_add(c->faults, "the host takes from host colour %zu, to which no route leads", i);
  }
}

// From the sources on: an entry's turn comes when all that feeds it has passed. What never gets its turn is on a loop.
static void follow(const weft_check_image_t* c, int32_t* waits, int32_t* queue, weft_check_flow_t* passing,
                   bool* host_used) {
  int32_t queued = 0, count = c->links.count;
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t s = 0; s < c->entry[i].input_count; ++s) {
      int32_t upstream = c->links.upstream[i][s];
      waits[i] += upstream >= 0;
      if (upstream == WEFT_LINKS_RAMP || upstream == WEFT_LINKS_PORT) {
        const weft_check_flow_t* flow = source_flow(c, i, c->entry[i].input[s]);
        if (flow && upstream == WEFT_LINKS_PORT) host_used[flow - c->host_sent] = true;
        enter(c, i, c->entry[i].input[s], &passing[i]);
      }
    }
    if (!waits[i]) queue[queued++] = i;
  }
  for (int32_t done = 0; done < queued; ++done) {
    int32_t i = queue[done];
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
      if (!(c->entry[i].outputs >> d & 1)) continue;
      int32_t target = weft_links_target(&c->links, &c->entry[i], d);
      if (target == WEFT_LINKS_PORT || target == WEFT_LINKS_RAMP) {
        const weft_check_flow_t* flow = sink_flow(c, i, d);
        if (flow && target == WEFT_LINKS_PORT)
          host_used[c->image->host_colours_count + (size_t)(flow - c->host_taken)] = true;
        leave(c, i, d, &passing[i]);
      }
      bool joined = false; // else it was reported
      for (int32_t s = 0; target >= 0 && s < c->entry[target].input_count; ++s)
        joined = joined || (c->links.upstream[target][s] == i &&
                            c->entry[target].input[s] == (int32_t)weft_direction_opposite((weft_direction_e)d));
      if (!joined) continue;
      merge(c, target, &passing[i], &passing[target]);
      if (--waits[target] == 0) queue[queued++] = target;
    }
  }
  for (int32_t i = 0; i < count; ++i)
    if (waits[i] > 0)
      weft_faults_add(c->faults, "colour %d on %s lies on a loop, or behind one", c->entry[i].colour,
                      weft_check_place(&c->machine, c->entry[i].tile).text);
  check_host(c, host_used);
}

weft_status_t weft_check_image_flows(weft_check_image_t* c) {
  int32_t *waits = NULL, *queue = NULL;
  weft_check_flow_t* passing = NULL;
  bool* host_used = NULL; // of each host colour: by a source; then by a sink
  size_t count = (size_t)c->links.count;
  weft_status_t status = weft_allocator_calloc(c->allocator, count, sizeof(*waits), (void**)&waits);
  if (!status) status = weft_allocator_calloc(c->allocator, count, sizeof(*queue), (void**)&queue);
  if (!status) status = weft_allocator_calloc(c->allocator, count, sizeof(*passing), (void**)&passing);
  if (!status)
    status =
        weft_allocator_calloc(c->allocator, 2 * c->image->host_colours_count, sizeof(*host_used), (void**)&host_used);
  if (!status) follow(c, waits, queue, passing, host_used);
  void* owned[] = {waits, queue, passing, host_used};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) weft_allocator_free(c->allocator, owned[i]);
  return status;
}
