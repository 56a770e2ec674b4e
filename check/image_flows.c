// Elements along the routes: what the sources of a stream send for one input of the run is what each of its sinks
// takes.
#include <inttypes.h>

#include "base/checked.h"
#include "check/image_parts.h"

// The host's flow through the port at this side of a tile, on this colour; NULL: it has none.
static const weft_check_flow_t* host_flow(const weft_check_image_t* c, const weft_check_flow_t* flows, int32_t tile,
                                          int32_t direction, uint32_t colour) {
  int32_t port = weft_links_port(&c->machine, tile, direction);
  for (size_t i = 0; port >= 0 && i < c->image->host_colours_count; ++i) {
    const weft_image_host_colour_t* host = &c->image->host_colours[i];
    if (host->port == port && host->colour == colour && flows[i].instructions) return &flows[i];
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

// An entry's turn comes when all that feeds it has passed.
typedef enum turn_e { TURN_NEW, TURN_WAITS, TURN_DONE, TURN_STUCK } turn_e;

typedef struct follower_t {
  const weft_check_image_t* check;
  uint8_t* turn;              // of each entry
  int32_t* stack;             // of entries that wait, each for the one above it
  weft_check_flow_t* passing; // what passes each entry
  bool* host_used;            // of each host colour: by a source; then by a sink
} follower_t;

// What comes in from cores and from the host.
static void enter_all(const follower_t* f) {
  const weft_check_image_t* c = f->check;
  for (int32_t i = 0; i < c->links.count; ++i) {
    for (int32_t s = 0; s < c->entry[i].input_count; ++s) {
      int32_t upstream = c->links.upstream[i][s];
      if (upstream != WEFT_LINKS_RAMP && upstream != WEFT_LINKS_PORT) continue;
      const weft_check_flow_t* flow = source_flow(c, i, c->entry[i].input[s]);
      if (flow && upstream == WEFT_LINKS_PORT) f->host_used[flow - c->host_sent] = true;
      enter(c, i, c->entry[i].input[s], &f->passing[i]);
    }
  }
}

// Outputs to the core and to the host.
static void leave_all(const follower_t* f, int32_t index) {
  const weft_check_image_t* c = f->check;
  const weft_router_entry_t* entry = &c->entry[index];
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
    if (!(entry->outputs >> d & 1)) continue;
    bool ramp = d == WEFT_DIRECTION_RAMP;
    if (!ramp && (weft_machine_neighbour(&c->machine, entry->tile, (weft_direction_e)d) >= 0 ||
                  weft_links_port(&c->machine, entry->tile, d) < 0))
      continue;
    const weft_check_flow_t* flow = sink_flow(c, index, d);
    if (flow && !ramp) f->host_used[c->image->host_colours_count + (size_t)(flow - c->host_taken)] = true;
    leave(c, index, d, &f->passing[index]);
  }
}

// The first entry that feeds this one and hasn't been looked at, or -1.
static int32_t next_upstream(const follower_t* f, int32_t index) {
  for (int32_t s = 0; s < f->check->entry[index].input_count; ++s) {
    int32_t upstream = f->check->links.upstream[index][s];
    if (upstream >= 0 && f->turn[upstream] == TURN_NEW) return upstream;
  }
  return -1;
}

// All that feeds it was looked at; what still waits, waits for this one.
static void take_turn(const follower_t* f, int32_t index) {
  const weft_check_image_t* c = f->check;
  turn_e turn = TURN_DONE;
  for (int32_t s = 0; s < c->entry[index].input_count; ++s) {
    int32_t upstream = c->links.upstream[index][s];
    if (upstream < 0) continue;
    if (f->turn[upstream] != TURN_DONE) turn = TURN_STUCK;
    merge(c, index, &f->passing[upstream], &f->passing[index]);
  }
  f->turn[index] = (uint8_t)turn;
  if (turn == TURN_DONE)
    leave_all(f, index);
  else
    weft_faults_add(c->faults, "colour %d on %s lies on a loop, or behind one", c->entry[index].colour,
                    weft_check_place(&c->machine, c->entry[index].tile).text);
}

// From each entry back to the sources; so the entries are passed in the order of a route, which is where they lie near
// each other.
static void follow(const follower_t* f) {
  enter_all(f);
  for (int32_t i = 0; i < f->check->links.count; ++i) {
    if (f->turn[i] != TURN_NEW) continue;
    int32_t depth = 0;
    f->stack[depth++] = i;
    f->turn[i] = TURN_WAITS;
    while (depth > 0) {
      int32_t upstream = next_upstream(f, f->stack[depth - 1]);
      if (upstream >= 0) {
        f->turn[upstream] = TURN_WAITS;
        f->stack[depth++] = upstream;
      } else {
        take_turn(f, f->stack[--depth]);
      }
    }
  }
  check_host(f->check, f->host_used);
}

weft_status_t weft_check_image_flows(weft_check_image_t* c) {
  follower_t f = {.check = c};
  size_t count = (size_t)c->links.count, colours = 2 * c->image->host_colours_count;
  weft_status_t status = weft_allocator_calloc(c->allocator, count, sizeof(*f.turn), (void**)&f.turn);
  if (!status) status = weft_allocator_calloc(c->allocator, count, sizeof(*f.stack), (void**)&f.stack);
  if (!status) status = weft_allocator_calloc(c->allocator, count, sizeof(*f.passing), (void**)&f.passing);
  if (!status) status = weft_allocator_calloc(c->allocator, colours, sizeof(*f.host_used), (void**)&f.host_used);
  if (!status) follow(&f);
  void* owned[] = {f.turn, f.stack, f.passing, f.host_used};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) weft_allocator_free(c->allocator, owned[i]);
  return status;
}
