#include "placer/forecast.h"

#include <math.h>

#include "base/checked.h"
#include "ir/fabric/load.h"

static weft_congestion_box_t tile_box(const weft_machine_t* machine, int32_t tile) {
  int32_t x = tile % machine->width, y = tile / machine->width;
  return (weft_congestion_box_t){x, y, x + 1, y + 1};
}

// The box around the tiles at one end of a stream.
static weft_congestion_box_t box_of(const weft_machine_t* machine, const weft_kernel_t* kernel,
                                    const weft_endpoint_t* end, int32_t count) {
  weft_congestion_box_t box = tile_box(machine, kernel->tile[end[0].logical]);
  for (int32_t i = 1; i < count; ++i) {
    weft_congestion_box_t at = tile_box(machine, kernel->tile[end[i].logical]);
    box = (weft_congestion_box_t){fmin(box.x0, at.x0), fmin(box.y0, at.y0), fmax(box.x1, at.x1), fmax(box.y1, at.y1)};
  }
  return box;
}

// The host port nearest to a box: where its own streams most likely come from or go to.
static weft_congestion_box_t nearest_port(const weft_machine_t* machine, weft_congestion_box_t to) {
  weft_congestion_box_t best = to;
  double least = INFINITY;
  for (int32_t i = 0; i < weft_machine_port_count(machine); ++i) {
    weft_congestion_box_t at = tile_box(machine, weft_machine_port(machine, i).tile);
    double way = fabs(at.x0 + at.x1 - to.x0 - to.x1) + fabs(at.y0 + at.y1 - to.y0 - to.y1);
    if (way >= least) continue;
    least = way;
    best = at;
  }
  return best;
}

// The segments of a stream gather from source to source in their order; the last source hands them all out.
static void add_stream(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_stream_t* stream,
                       weft_congestion_t* map) {
  bool from = stream->source_kernel >= 0, to = stream->sink_kernel >= 0;
  if (!from && !to) return;
  weft_congestion_flow_t flow = {0};
  for (int32_t i = 0; i < stream->source_count && from; ++i) {
    flow.to = tile_box(machine, fabric->kernel[stream->source_kernel].tile[stream->source[i].logical]);
    if (i) weft_congestion_add(map, &flow);
    flow.from = flow.to;
    flow.wavelets +=
        (double)stream->source[i].elements * (double)stream->wavelets / (double)weft_max_i64(1, stream->elements);
  }
  if (to) {
    flow.to = box_of(machine, &fabric->kernel[stream->sink_kernel], stream->sink, stream->sink_count);
    if (stream->sink_count > 1) flow.sinks = stream->sink_count;
  }
  if (!from) flow.from = nearest_port(machine, flow.to);
  if (!to) flow.to = nearest_port(machine, flow.from);
  flow.wavelets = (double)stream->wavelets;
  weft_congestion_add(map, &flow);
}

static int32_t bin_of(const weft_congestion_t* map, int32_t tile) {
  return tile / map->width / map->bin * map->columns + tile % map->width / map->bin;
}

static weft_status_t add_routes(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_allocator_t allocator,
                                weft_congestion_t* map) {
  int32_t tiles = weft_machine_tiles(machine);
  int64_t* wavelets = NULL;
  WEFT_RETURN_IF_ERROR(
      weft_allocator_realloc(allocator, (size_t)tiles * WEFT_DIRECTION_COUNT, sizeof(*wavelets), (void**)&wavelets));
  weft_status_t status = weft_load_links(fabric, machine, allocator, wavelets);
  for (int32_t t = 0; t < tiles && !status; ++t)
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (d != WEFT_DIRECTION_RAMP)
        map->load[bin_of(map, t)] += (double)wavelets[(size_t)t * WEFT_DIRECTION_COUNT + (size_t)d];
  weft_allocator_free(allocator, wavelets);
  return status;
}

weft_status_t weft_place_forecast(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                  const weft_defects_t* defects, int32_t bin, weft_arena_t* arena,
                                  weft_place_forecast_t* out_forecast) {
  *out_forecast = (weft_place_forecast_t){0};
  if (fabric->stage < WEFT_STAGE_PLACED) return weft_error(INVALID_ARGUMENT, "the fabric has no places yet");
  weft_congestion_t *estimated = &out_forecast->estimated, *routed = &out_forecast->routed;
  WEFT_RETURN_IF_ERROR(weft_congestion_create(machine->width, machine->height, bin, arena, estimated));
  WEFT_RETURN_IF_ERROR(weft_congestion_create(machine->width, machine->height, bin, arena, routed));
  size_t bins = (size_t)estimated->columns * (size_t)estimated->rows, count = 0;
  int32_t* live = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, bins, &live));
  for (int32_t t = 0; t < weft_machine_tiles(machine); ++t) live[bin_of(estimated, t)] += weft_defects_live(defects, t);
  for (int32_t s = 0; s < fabric->stream_count; ++s) add_stream(fabric, machine, &fabric->stream[s], estimated);
  if (fabric->stage >= WEFT_STAGE_ROUTED) WEFT_RETURN_IF_ERROR(add_routes(fabric, machine, arena->allocator, routed));
  weft_congestion_finish(estimated, live);
  weft_congestion_finish(routed, live);
  double* pair = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 2 * bins, &pair));
  for (size_t b = 0; b < bins; ++b) {
    if (!live[b]) continue;
    pair[count] = estimated->load[b];
    pair[bins + count++] = routed->load[b];
  }
  return weft_rank_correlation(arena->allocator, pair, pair + bins, count, &out_forecast->correlation);
}
