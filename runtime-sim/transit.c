// When the wavelets of a segment get where. A link carries one wavelet a cycle and is reserved for a whole segment; in
// front of a busy link the head waits, and everything behind it.
#include "base/checked.h"
#include "runtime-sim/internal.h"

enum {
  BURSTS = 16, // of a stream in a step, about
  AHEAD = 4    // stops whose links are fetched before their turn: they lie anywhere in memory
};

static void fetch_ahead(const weft_sim_t* sim, int32_t link, int32_t pauses) {
  __builtin_prefetch(&sim->link[link], 1);
  if (pauses >= 0) __builtin_prefetch(&sim->pause[pauses], 1);
}

static int64_t entry_cycles(const weft_sim_t* sim, const weft_sim_source_t* source) {
  return weft_sim_is_host(sim, source->slot) ? sim->machine.port_latency : sim->machine.ramp_cycles;
}

int64_t weft_sim_transit_earliest(const weft_sim_t* sim, const weft_sim_stream_t* stream,
                                  const weft_sim_source_t* source) {
  return stream->root_time - entry_cycles(sim, source) - (int64_t)sim->machine.hop_cycles * source->distance;
}

int64_t weft_sim_transit_arrival(const weft_sim_t* sim, const weft_sim_sink_t* sink) {
  int64_t head = sink->stop < 0 ? sim->root_head : sim->head_time[sink->stop];
  head += (int64_t)sim->machine.hop_cycles * sink->gap;
  return weft_sim_is_host(sim, sink->slot) ? head : head + sim->machine.ramp_cycles;
}

// A stream of very many sources takes its links a burst at a time, several segments long: what they would all wait for
// is worked out with the last of them.
static bool ends_burst(const weft_sim_stream_t* stream) {
  int32_t segments = (stream->source_count + BURSTS - 1) / BURSTS, index = stream->next_source;
  return index == 0 || index + 1 == stream->source_count || (index + 1) % segments == 0;
}

// From the core to the root. `held`: wavelets just ahead, which have not been given their links yet.
static int64_t gather(weft_sim_t* sim, const weft_sim_source_t* source, int64_t head, int64_t held, int64_t n) {
  int64_t hop_cycles = sim->machine.hop_cycles;
  int32_t fetched = source->join, ahead = 0;
  head += hop_cycles * source->gap;
  for (int32_t j = source->join; j >= 0; j = sim->join[j].next, --ahead) {
    for (; fetched >= 0 && ahead <= AHEAD; fetched = sim->join[fetched].next, ++ahead)
      fetch_ahead(sim, sim->join[fetched].link, sim->join[fetched].pauses);
    head = weft_sim_link_reserve(sim, sim->join[j].link, head - held, held + n) + held;
    head += hop_cycles * (1 + sim->join[j].gap);
  }
  return head;
}

// From the root to the sinks; returns by how much the slowest branch is late.
static int64_t scatter(weft_sim_t* sim, const weft_sim_stream_t* stream, int64_t head, int64_t held, int64_t n) {
  int64_t hop_cycles = sim->machine.hop_cycles, latest = 0;
  int64_t all = weft_ceil_div(held + n, sim->machine.host_rate),
          before = all - weft_ceil_div(n, sim->machine.host_rate);
  for (int32_t i = 0; i < stream->stop_count; ++i) {
    const weft_sim_stop_t* stop = &sim->stop[stream->first_stop + i];
    if (i + AHEAD < stream->stop_count) fetch_ahead(sim, stop[AHEAD].link, stop[AHEAD].pauses);
    int64_t at = (stop->parent < 0 ? head : sim->head_time[stop->parent]) + hop_cycles * stop->gap;
    int64_t late = stop->parent < 0 ? 0 : sim->late_time[stop->parent];
    int64_t ahead = stop->leaves ? before : held;
    int64_t start = weft_sim_link_reserve(sim, stop->link, at - ahead, stop->leaves ? all : held + n) + ahead;
    sim->head_time[i] = start + (stop->leaves ? sim->machine.port_latency : hop_cycles);
    sim->late_time[i] = late + start - at;
    latest = weft_max_i64(latest, sim->late_time[i]);
  }
  return latest;
}

void weft_sim_transit(weft_sim_t* sim, weft_sim_stream_t* stream, weft_sim_source_t* source,
                      weft_sim_transit_t* transit) {
  int64_t n = transit->wavelets, way = (int64_t)sim->machine.hop_cycles * source->distance, latest = 0;
  int64_t in = weft_sim_is_host(sim, source->slot) ? weft_ceil_div(n, sim->machine.host_rate) : n;
  int64_t entry = entry_cycles(sim, source), ideal = transit->start + entry + way;
  int64_t head = weft_sim_link_reserve(sim, source->in_link, transit->start, in) + entry;
  bool burst = ends_burst(stream);
  head = weft_max_i64(burst ? gather(sim, source, head, stream->held, n) : head + way, stream->root_time);
  sim->root_head = head;
  if (burst) latest = scatter(sim, stream, head, stream->held, n);
  stream->held = burst ? 0 : stream->held + n;
  // Queues are short: the source and whoever follows it through the root wait until the slowest branch has taken all.
  stream->root_time = head + n + latest + transit->tail;
  transit->free = transit->start + n + (head - ideal) + latest + transit->tail;
  source->passed += n;
  stream->passed += n;
  sim->report.wavelets_sent += n;
  sim->report.wavelet_hops += n * (source->distance + stream->hop_count);
}
