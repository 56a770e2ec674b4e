#include "router/ports.h"

#include "base/checked.h"
#include "router/route.h"

typedef struct port_t {
  weft_host_port_t at;
  int64_t wavelets; // of the streams that use it so far
  int32_t streams;  // at its tile, which a port on the other side of a corner shares
} port_t;

typedef struct chooser_t {
  weft_fabric_t* fabric;
  const weft_machine_t* machine;
  const weft_parts_t* parts;
  port_t* port;
  int32_t count;
} chooser_t;

// The middle of the tiles of a stream's ends, and the part of the mesh that they are in.
typedef struct middle_t {
  int32_t x, y, part;
} middle_t;
static middle_t middle_of(const chooser_t* c, int32_t kernel, const weft_endpoint_t* end, int32_t count) {
  const int32_t* tile = c->fabric->kernel[kernel].tile;
  int64_t x = 0, y = 0;
  for (int32_t i = 0; i < count; ++i) {
    x += tile[end[i].logical] % c->machine->width;
    y += tile[end[i].logical] / c->machine->width;
  }
  return (middle_t){(int32_t)(x / count), (int32_t)(y / count), c->parts->label[tile[end[0].logical]]};
}

// In cycles: until the port has passed what it already carries and this stream, and the way to the middle. Many small
// streams don't fill a port, but they do fill the colours of its router, of which some are left to the streams that
// pass by: beyond that number a port counts as far off.
static int64_t cost_of_port(const chooser_t* c, const port_t* port, const middle_t* middle, int64_t wavelets) {
  const weft_machine_t* m = c->machine;
  int64_t rate = m->host_rate > 0 ? m->host_rate : 1;
  int64_t dx = port->at.tile % m->width - middle->x, dy = port->at.tile / m->width - middle->y;
  int64_t distance = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
  int64_t crowd = port->streams - (m->colours / 2);
  int64_t far = crowd < 0 ? 0 : (crowd + 1) * ((int64_t)1 << 48);
  return weft_min_i64((port->wavelets + wavelets) / rate, (int64_t)1 << 47) + distance * m->hop_cycles + far;
}

static weft_status_t no_port(const chooser_t* c, const weft_stream_t* stream, const middle_t* middle) {
  int32_t dead = 0;
  for (int32_t p = 0; p < c->count; ++p) dead += c->parts->label[c->port[p].at.tile] < 0;
  const char* what = stream->tensor >= 0 ? c->fabric->tensor[stream->tensor].name : "chain";
  return weft_error(
      UNROUTABLE,
      "stream of %s %s the host: no host port can be reached from (%d, %d): of the machine's %d ports %d are at "
      "dead tiles and %d in other parts of the mesh; a machine with more ports a side would do",
      what, stream->source_kernel == WEFT_HOST_KERNEL ? "from" : "to", middle->x, middle->y, c->count, dead,
      c->count - dead);
}

// `other`: a port better not used, or -1; what enters and leaves by one port shares its name in the image.
static weft_status_t choose(chooser_t* c, const weft_stream_t* stream, const middle_t* middle, int32_t other,
                            int32_t* out_port) {
  int32_t best = -1;
  int64_t least = 0;
  for (int32_t p = 0; p < c->count; ++p) {
    int32_t part = c->parts->label[c->port[p].at.tile];
    if (part < 0 || (middle->part >= 0 && part != middle->part) || p == other) continue;
    int64_t cost = cost_of_port(c, &c->port[p], middle, stream->wavelets);
    if (best >= 0 && cost >= least) continue;
    best = p;
    least = cost;
  }
  if (best < 0 && other >= 0) best = other;
  if (best < 0) return no_port(c, stream, middle);
  c->port[best].wavelets += weft_min_i64(stream->wavelets, (int64_t)1 << 40);
  for (int32_t p = 0; p < c->count; ++p) c->port[p].streams += c->port[p].at.tile == c->port[best].at.tile;
  *out_port = best;
  return weft_ok();
}

static weft_status_t choose_all(chooser_t* c) {
  for (int32_t p = 0; p < c->count; ++p) c->port[p].at = weft_machine_port(c->machine, p);
  for (int32_t i = 0; i < c->fabric->stream_count; ++i) {
    weft_stream_t* s = &c->fabric->stream[i];
    bool in = s->source_kernel == WEFT_HOST_KERNEL, out = s->sink_kernel == WEFT_HOST_KERNEL;
    s->source_port = s->sink_port = -1;
    // From the host to the host: both ends are free, so anywhere near the middle.
    middle_t middle = {c->machine->width / 2, c->machine->height / 2, -1};
    if (!in) middle = middle_of(c, s->source_kernel, s->source, s->source_count);
    if (!out) middle = middle_of(c, s->sink_kernel, s->sink, s->sink_count);
    if (in) WEFT_RETURN_IF_ERROR(choose(c, s, &middle, -1, &s->source_port));
    if (!out) continue;
    if (in) {
      int32_t tile = c->port[s->source_port].at.tile;
      middle = (middle_t){tile % c->machine->width, tile / c->machine->width, c->parts->label[tile]};
    }
    WEFT_RETURN_IF_ERROR(choose(c, s, &middle, s->source_port, &s->sink_port));
  }
  return weft_ok();
}

weft_status_t weft_router_ports_choose(weft_fabric_t* fabric, const weft_machine_t* machine,
                                       const weft_parts_t* parts) {
  chooser_t c = {.fabric = fabric, .machine = machine, .parts = parts, .count = weft_machine_port_count(machine)};
  weft_allocator_t allocator = parts->allocator;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, (size_t)c.count, sizeof(*c.port), (void**)&c.port));
  weft_status_t status = choose_all(&c);
  weft_allocator_free(allocator, c.port);
  return status;
}
