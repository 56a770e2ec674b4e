// What a run cost: sums, and maps over the mesh.
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

static double hop_energy(const weft_sim_t* sim, int64_t link) {
  bool inwards = link % 2, ramp = link / 2 % WEFT_DIRECTION_COUNT == WEFT_DIRECTION_RAMP;
  return inwards || ramp ? 0 : (double)sim->link_wavelets[link] * sim->machine.energy.hop;
}

// Hops of the longest way from any source to any sink.
static int64_t longest_route(const weft_sim_t* sim) {
  int64_t longest = 0;
  for (int32_t s = 0; s < sim->stream_count; ++s) {
    const weft_sim_stream_t* stream = &sim->stream[s];
    int64_t gather = 0;
    for (int32_t i = 0; i < stream->source_count; ++i)
      gather = weft_max_i64(gather, sim->source[stream->first_source + i].distance);
    for (int32_t i = 0; i < stream->sink_count; ++i) {
      int64_t hops = 0;
      for (int32_t h = sim->sink[stream->first_sink + i].hop; h >= 0; h = sim->hop[stream->first_hop + h].parent)
        ++hops;
      longest = weft_max_i64(longest, gather + hops);
    }
  }
  return longest;
}

void weft_sim_report(const weft_sim_t* sim, weft_sim_report_t* out_report) {
  *out_report = sim->report;
  out_report->energy_pj = 0;
  int64_t end = 0;
  for (int32_t s = 0; s < sim->slot_count; ++s) {
    out_report->energy_pj += sim->slot[s].energy;
    end = weft_max_i64(end, sim->slot[s].time);
  }
  for (int64_t l = 0; l < sim->link_count; ++l) out_report->energy_pj += hop_energy(sim, l);
  if (out_report->cycles == 0) out_report->cycles = out_report->first_cycles = end; // nothing goes to the host
  out_report->cycles_per_step = sim->steps > 1
                                    ? (double)(out_report->cycles - out_report->first_cycles) / (double)(sim->steps - 1)
                                    : (double)out_report->cycles;
  out_report->longest_route = longest_route(sim);
}

weft_status_t weft_sim_tile_metric(const weft_sim_t* sim, weft_sim_metric_e metric, double* out_values) {
  size_t tiles = (size_t)weft_sim_tile_count(sim);
  switch (metric) {
  case WEFT_SIM_BUSY_CYCLES:
  case WEFT_SIM_ENERGY:
    memset(out_values, 0, tiles * sizeof(*out_values));
    for (int32_t s = 0; s < sim->slot_count; ++s) {
      const weft_sim_slot_t* slot = &sim->slot[s];
      if (weft_sim_is_host(sim, s)) continue;
      out_values[slot->tile->tile] = metric == WEFT_SIM_ENERGY ? slot->energy : (double)slot->busy;
    }
    for (int64_t l = 0; metric == WEFT_SIM_ENERGY && l < sim->link_count; ++l)
      out_values[sim->router_tile[l / (2 * WEFT_DIRECTION_COUNT)]] += hop_energy(sim, l);
    return weft_ok();
  case WEFT_SIM_LINK_WAVELETS:
    memset(out_values, 0, tiles * 4 * sizeof(*out_values));
    for (int32_t r = 0; r < sim->router_count; ++r)
      for (int32_t d = WEFT_DIRECTION_N; d <= WEFT_DIRECTION_W; ++d)
        out_values[(size_t)sim->router_tile[r] * 4 + (size_t)d] =
            (double)sim->link_wavelets[((int64_t)r * WEFT_DIRECTION_COUNT + d) * 2];
    return weft_ok();
  }
  return weft_error(INVALID_ARGUMENT, "no metric %d", (int)metric);
}
