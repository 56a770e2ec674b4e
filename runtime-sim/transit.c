// When the wavelets of a segment get where. A link carries one wavelet a cycle and is reserved first come, first served
// for a whole segment; in front of a busy link the head waits, and everything behind it.
#include "base/checked.h"
#include "runtime-sim/internal.h"

static int64_t reserve(weft_sim_t* sim, int32_t link, int64_t head, int64_t cycles, int64_t wavelets) {
  int64_t start = weft_max_i64(head, sim->link_free[link]);
  sim->link_free[link] = start + cycles;
  sim->link_wavelets[link] += wavelets;
  return start;
}

static int64_t entry_cycles(const weft_sim_t* sim, const weft_sim_source_t* source) {
  return weft_sim_is_host(sim, source->slot) ? sim->machine.port_latency : sim->machine.ramp_cycles;
}

int64_t weft_sim_transit_earliest(const weft_sim_t* sim, const weft_sim_stream_t* stream,
                                  const weft_sim_source_t* source) {
  return stream->root_time - entry_cycles(sim, source) - (int64_t)sim->machine.hop_cycles * source->distance;
}

int64_t weft_sim_transit_arrival(const weft_sim_t* sim, const weft_sim_sink_t* sink) {
  int64_t head = sink->hop < 0 ? sim->root_head : sim->head_time[sink->hop];
  return weft_sim_is_host(sim, sink->slot) ? head : head + sim->machine.ramp_cycles;
}

void weft_sim_transit(weft_sim_t* sim, weft_sim_stream_t* stream, const weft_sim_source_t* source,
                      weft_sim_transit_t* transit) {
  int64_t n = transit->wavelets, hop_cycles = sim->machine.hop_cycles, port = weft_ceil_div(n, sim->machine.host_rate);
  int64_t in = weft_sim_is_host(sim, source->slot) ? port : n;
  int64_t entry = entry_cycles(sim, source), ideal = transit->start + entry;
  int64_t head = reserve(sim, source->in_link, transit->start, in, n) + entry;
  for (int32_t e = source->entry; e != stream->root; e = sim->entry_next[e]) {
    head = reserve(sim, sim->entry_link[e], head, n, n) + hop_cycles;
    ideal += hop_cycles;
  }
  head = weft_max_i64(head, stream->root_time);
  sim->root_head = head;
  int64_t latest = 0;
  for (int32_t h = 0; h < stream->hop_count; ++h) {
    const weft_sim_hop_t* hop = &sim->hop[stream->first_hop + h];
    int64_t at = hop->parent < 0 ? head : sim->head_time[hop->parent];
    int64_t late = hop->parent < 0 ? 0 : sim->late_time[hop->parent];
    int64_t start = reserve(sim, hop->link, at, hop->leaves ? port : n, n);
    sim->head_time[h] = start + (hop->leaves ? sim->machine.port_latency : hop_cycles);
    sim->late_time[h] = late + start - at;
    latest = weft_max_i64(latest, sim->late_time[h]);
  }
  // Queues are short: the source and whoever follows it through the root wait until the slowest branch has taken all.
  stream->root_time = head + n + latest + transit->tail;
  transit->free = transit->start + n + (head - ideal) + latest + transit->tail;
  sim->report.wavelets_sent += n;
  sim->report.wavelet_hops += n * (source->distance + stream->hop_count);
}
