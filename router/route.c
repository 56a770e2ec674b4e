#include "router/route.h"

#include "base/checked.h"
#include "ir/fabric/streams.h"
#include "machine/parts.h"
#include "router/ports.h"

static const char* kernel_name(const weft_fabric_t* fabric, int32_t kernel) {
  return kernel == WEFT_HOST_KERNEL ? "host" : fabric->kernel[kernel].name;
}

static weft_status_t make_terminals(const weft_fabric_t* fabric, const weft_machine_t* machine, int32_t kernel,
                                    int32_t port, const weft_endpoint_t* end, int32_t count, weft_arena_t* arena,
                                    const weft_router_terminal_t** out_terminals) {
  weft_router_terminal_t* terminal = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)count, &terminal));
  for (int32_t i = 0; i < count; ++i) terminal[i] = (weft_router_terminal_t){.direction = WEFT_DIRECTION_RAMP};
  if (kernel == WEFT_HOST_KERNEL) {
    weft_host_port_t at = weft_machine_port(machine, port);
    for (int32_t i = 0; i < count; ++i) terminal[i] = (weft_router_terminal_t){at.tile, at.direction};
  } else {
    for (int32_t i = 0; i < count; ++i) terminal[i].tile = fabric->kernel[kernel].tile[end[i].logical];
  }
  *out_terminals = terminal;
  return weft_ok();
}

static weft_status_t make_net(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_stream_t* stream,
                              weft_arena_t* arena, weft_router_net_t* out_net) {
  *out_net = (weft_router_net_t){
      .source_count = stream->source_count, .sink_count = stream->sink_count, .wavelets = stream->wavelets};
  int64_t* segment = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)stream->source_count, &segment));
  for (int32_t k = 0; k < stream->source_count; ++k)
    segment[k] = weft_machine_wavelets(machine, stream->dtype, stream->source[k].elements);
  out_net->segment = segment;
  const char* what = stream->tensor >= 0 ? fabric->tensor[stream->tensor].name : "reduce chain";
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &out_net->name, "%s -> %s (%s)",
                                         kernel_name(fabric, stream->source_kernel),
                                         kernel_name(fabric, stream->sink_kernel), what));
  WEFT_RETURN_IF_ERROR(make_terminals(fabric, machine, stream->source_kernel, stream->source_port, stream->source,
                                      stream->source_count, arena, &out_net->source));
  return make_terminals(fabric, machine, stream->sink_kernel, stream->sink_port, stream->sink, stream->sink_count,
                        arena, &out_net->sink);
}

static weft_status_t choose_ports(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects) {
  weft_parts_t parts;
  WEFT_RETURN_IF_ERROR(weft_parts_find(fabric->arena.allocator, machine, defects, &parts));
  weft_status_t status = weft_router_ports_choose(fabric, machine, &parts);
  weft_parts_deinitialize(&parts);
  return status;
}

// Nets live in `scratch`, routes in the fabric.
static weft_status_t route(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                           const weft_control_t* control, weft_arena_t* scratch, weft_router_report_t* out_report) {
  weft_router_net_t* net = NULL;
  weft_router_route_t* routes = NULL;
  size_t count = (size_t)fabric->stream_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(scratch, count, &net));
  for (size_t i = 0; i < count; ++i)
    WEFT_RETURN_IF_ERROR(make_net(fabric, machine, &fabric->stream[i], scratch, &net[i]));
  int64_t interval = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    if (kernel->chosen >= 0 && kernel->chosen < kernel->alternative_count)
      interval = weft_max_i64(interval, kernel->alternative[kernel->chosen].step_cycles);
  }
  WEFT_RETURN_IF_ERROR(weft_router_solve(machine, defects, fabric->stream_count, net, interval, control, &fabric->arena,
                                         &routes, out_report));
  for (size_t i = 0; i < count; ++i) {
    fabric->stream[i].entry_count = routes[i].entry_count;
    fabric->stream[i].entry = routes[i].entry;
  }
  return weft_ok();
}

static weft_status_t route_once(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                                const weft_control_t* control, weft_router_report_t* out_report) {
  WEFT_RETURN_IF_ERROR(choose_ports(fabric, machine, defects));
  weft_arena_t scratch;
  weft_arena_initialize(fabric->arena.allocator, &scratch);
  weft_status_t status = route(fabric, machine, defects, control, &scratch, out_report);
  weft_arena_deinitialize(&scratch);
  return status;
}

weft_status_t weft_route(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_control_t* control, weft_router_report_t* out_report) {
  static const double shares[] = {0.5, 0.25, 0};
  if (fabric->stage != WEFT_STAGE_PLACED)
    return weft_error(INVALID_ARGUMENT, "routing needs a placed fabric that isn't routed yet");
  for (int32_t i = 0; i < fabric->stream_count; ++i)
    if (fabric->stream[i].source_count < 1 || fabric->stream[i].sink_count < 1)
      return weft_error(INVALID_ARGUMENT, "stream %d has %d sources and %d sinks; both are needed", i,
                        fabric->stream[i].source_count, fabric->stream[i].sink_count);
  weft_status_t status = route_once(fabric, machine, defects, control, out_report);
  for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i) {
    if (weft_status_code(status) != WEFT_STATUS_UNROUTABLE) break;
    int32_t streams = fabric->stream_count;
    weft_status_t built = weft_streams_build(fabric, machine, shares[i]);
    if (built) return weft_status_join(status, built);
    if (fabric->stream_count >= streams) continue;
    weft_control_table(control, "route", "%d streams find no way; again with %d, each of which carries more", streams,
                       fabric->stream_count);
    weft_status_free(status);
    status = route_once(fabric, machine, defects, control, out_report);
  }
  if (!status) fabric->stage = WEFT_STAGE_ROUTED;
  return status;
}
