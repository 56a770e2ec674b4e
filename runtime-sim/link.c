// When a link carries a segment. Links serve segments in the order of arrival, and that isn't the order in which these
// start: one that starts later may have a shorter way. So a link that more than one stream uses remembers the last
// pauses between the segments that it is reserved for, and whoever fits in goes first.
#include "base/checked.h"
#include "runtime-sim/internal.h"

enum { SHARED = -2 };

static void note_user(weft_sim_t* sim, int32_t link, int32_t stream) {
  int32_t* user = &sim->link[link].pauses;
  *user = *user == WEFT_SIM_NONE || *user == stream ? stream : SHARED;
}

static void note_stream(weft_sim_t* sim, int32_t index) {
  const weft_sim_stream_t* stream = &sim->stream[index];
  for (int32_t s = 0; s < stream->source_count; ++s) {
    const weft_sim_source_t* source = &sim->source[stream->first_source + s];
    note_user(sim, source->in_link, index);
    for (int32_t e = source->entry; e != stream->root; e = sim->entry_next[e]) {
      if (sim->link[sim->entry_link[e]].pauses == index) break; // a source before it took the same way
      note_user(sim, sim->entry_link[e], index);
    }
  }
  for (int32_t h = 0; h < stream->hop_count; ++h) {
    int32_t link = sim->hop[stream->first_hop + h].link;
    if (sim->link[link].pauses == index) sim->link[link].pauses = SHARED; // it has gathered over this link before
    note_user(sim, link, index);
  }
}

static bool is_stop(const weft_sim_t* sim, const weft_sim_hop_t* hop) {
  return hop->leaves || sim->link[hop->link].pauses >= 0;
}

// The stops of a multicast tree. `stop` and `gap` have room for the stream's hops: of each the last stop up to it, and
// the hops after that.
static void list_stops(weft_sim_t* sim, weft_sim_stream_t* stream, int32_t* stop, int32_t* gap, int32_t* inout_count) {
  stream->first_stop = *inout_count;
  for (int32_t h = 0; h < stream->hop_count; ++h) {
    const weft_sim_hop_t* hop = &sim->hop[stream->first_hop + h];
    int32_t parent = hop->parent < 0 ? WEFT_SIM_NONE : stop[hop->parent];
    int32_t between = hop->parent < 0 ? 0 : gap[hop->parent];
    stop[h] = parent;
    gap[h] = between + 1;
    if (!is_stop(sim, hop)) continue;
    sim->stop[stream->first_stop + stream->stop_count] =
        (weft_sim_stop_t){parent, between, hop->link, sim->link[hop->link].pauses, hop->leaves};
    stop[h] = stream->stop_count++;
    gap[h] = 0;
  }
  *inout_count += stream->stop_count;
  for (int32_t s = 0; s < stream->sink_count; ++s) {
    weft_sim_sink_t* sink = &sim->sink[stream->first_sink + s];
    sink->stop = sink->hop < 0 ? WEFT_SIM_NONE : stop[sink->hop];
    sink->gap = sink->hop < 0 ? 0 : gap[sink->hop];
  }
}

// Of entries on the way to a root, while the joins are listed.
typedef struct ways_t {
  int32_t* stop; // the next entry from here on whose link is shared, or NONE
  int32_t* gap;  // hops to there, or to the root; negative: not known yet
  int32_t* join; // what became of a stop; negative: nothing yet
} ways_t;

// From where another source has come before, the stops are known.
static void find_gather_stops(const weft_sim_t* sim, const weft_sim_stream_t* stream, const weft_sim_source_t* source,
                              const ways_t* ways) {
  ways->gap[stream->root] = 0;
  ways->stop[stream->root] = WEFT_SIM_NONE;
  int32_t ahead = source->entry, distance = 0; // the next stop or known entry from `e` on, and how far it is
  for (int32_t e = source->entry; ways->gap[e] < 0; e = sim->entry_next[e], --distance) {
    if (distance < 0) { // the one before was a stop
      distance = 0;
      ahead = e;
    }
    while (ways->gap[ahead] < 0 && sim->link[sim->entry_link[ahead]].pauses < 0) {
      ahead = sim->entry_next[ahead];
      ++distance;
    }
    bool known = ways->gap[ahead] >= 0;
    ways->stop[e] = known ? ways->stop[ahead] : ahead;
    ways->gap[e] = distance + (known ? ways->gap[ahead] : 0);
  }
}

// Makes joins of the stops from a source on, as far as nobody has come there before.
static void list_joins(weft_sim_t* sim, weft_sim_source_t* source, const ways_t* ways, int32_t* inout_count) {
  int32_t* link_to_here = &source->join;
  source->gap = ways->gap[source->entry];
  for (int32_t e = ways->stop[source->entry], next; e >= 0; e = ways->stop[next]) {
    bool known = ways->join[e] >= 0;
    if (!known) ways->join[e] = (*inout_count)++;
    *link_to_here = ways->join[e];
    if (known) return;
    next = sim->entry_next[e];
    int32_t link = sim->entry_link[e];
    sim->join[ways->join[e]] = (weft_sim_join_t){link, sim->link[link].pauses, ways->gap[next], WEFT_SIM_NONE};
    link_to_here = &sim->join[ways->join[e]].next;
  }
  *link_to_here = WEFT_SIM_NONE;
}

static weft_status_t build_joins(weft_sim_t* sim, const ways_t* ways) {
  size_t entries = sim->image->routes_count, joins = 0;
  for (size_t e = 0; e < entries; ++e) {
    ways->gap[e] = ways->join[e] = -1;
    joins += sim->entry_next[e] >= 0 && sim->link[sim->entry_link[e]].pauses >= 0;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, joins, &sim->join));
  int32_t count = 0;
  for (int32_t s = 0; s < sim->stream_count; ++s) {
    const weft_sim_stream_t* stream = &sim->stream[s];
    for (int32_t i = 0; i < stream->source_count; ++i) {
      weft_sim_source_t* source = &sim->source[stream->first_source + i];
      find_gather_stops(sim, stream, source, ways);
      list_joins(sim, source, ways, &count);
    }
  }
  return weft_ok();
}

static weft_status_t build_stops(weft_sim_t* sim) {
  size_t hops = (size_t)sim->hop_count, entries = sim->image->routes_count, most = entries;
  for (int32_t s = 0; s < sim->stream_count; ++s)
    if ((size_t)sim->stream[s].hop_count > most) most = (size_t)sim->stream[s].hop_count;
  ways_t ways = {0};
  int32_t count = 0, stops = 0;
  for (size_t h = 0; h < hops; ++h) stops += is_stop(sim, &sim->hop[h]);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)stops, &sim->stop));
  weft_status_t status = weft_allocator_calloc(sim->allocator, most, sizeof(*ways.stop), (void**)&ways.stop);
  if (!status) status = weft_allocator_calloc(sim->allocator, most, sizeof(*ways.gap), (void**)&ways.gap);
  if (!status) status = weft_allocator_calloc(sim->allocator, entries, sizeof(*ways.join), (void**)&ways.join);
  for (int32_t s = 0; !status && s < sim->stream_count; ++s)
    list_stops(sim, &sim->stream[s], ways.stop, ways.gap, &count);
  if (!status) status = build_joins(sim, &ways);
  weft_allocator_free(sim->allocator, ways.stop);
  weft_allocator_free(sim->allocator, ways.gap);
  weft_allocator_free(sim->allocator, ways.join);
  return status;
}

weft_status_t weft_sim_links_build(weft_sim_t* sim) {
  size_t links = (size_t)sim->link_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, links, &sim->link));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, links, &sim->link_wavelets));
  for (int64_t l = 0; l < sim->link_count; ++l) sim->link[l].pauses = WEFT_SIM_NONE;
  for (int32_t s = 0; s < sim->stream_count; ++s) note_stream(sim, s);
  for (int64_t l = 0; l < sim->link_count; ++l) {
    bool shared = sim->link[l].pauses == SHARED;
    sim->link[l].pauses = shared ? (int32_t)sim->pause_count : WEFT_SIM_NONE;
    if (shared) sim->pause_count += WEFT_SIM_PAUSES;
    if (sim->pause_count > INT32_MAX) return weft_error(INVALID_INPUT, "too many links that streams share");
  }
  // The pauses of a link are looked at together: they lie in one line of the cache.
  weft_sim_pause_t* pauses;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)sim->pause_count + WEFT_SIM_PAUSES, &pauses));
  size_t group = WEFT_SIM_PAUSES * sizeof(*pauses);
  sim->pause = (weft_sim_pause_t*)(((uintptr_t)pauses + group - 1) / group * group);
  return build_stops(sim);
}

// What a source sent goes on with what joins it, once all of that is there.
static void settle_gather(weft_sim_t* sim, const weft_sim_source_t* source, int32_t* missing, int64_t* passed) {
  int32_t e = source->entry;
  passed[e] += source->passed;
  while (--missing[e] == 0 && sim->entry_next[e] >= 0) {
    sim->link_wavelets[sim->entry_link[e]] += passed[e];
    passed[sim->entry_next[e]] += passed[e];
    e = sim->entry_next[e];
  }
}

weft_status_t weft_sim_links_settle(weft_sim_t* sim) {
  for (int32_t s = 0; s < sim->stream_count; ++s) {
    const weft_sim_stream_t* stream = &sim->stream[s];
    for (int32_t h = 0; h < stream->hop_count; ++h)
      sim->link_wavelets[sim->hop[stream->first_hop + h].link] += stream->passed;
  }
  for (int32_t s = 0; s < sim->source_count; ++s) sim->link_wavelets[sim->source[s].in_link] += sim->source[s].passed;
  size_t entries = sim->image->routes_count;
  int32_t* missing = NULL; // of what feeds an entry
  int64_t* passed = NULL;
  weft_status_t status = weft_allocator_calloc(sim->allocator, entries, sizeof(*missing), (void**)&missing);
  if (!status) status = weft_allocator_calloc(sim->allocator, entries, sizeof(*passed), (void**)&passed);
  if (!status) {
    for (int32_t s = 0; s < sim->source_count; ++s) ++missing[sim->source[s].entry];
    for (size_t e = 0; e < entries; ++e)
      if (sim->entry_next[e] >= 0) ++missing[sim->entry_next[e]];
    for (int32_t s = 0; s < sim->source_count; ++s) settle_gather(sim, &sim->source[s], missing, passed);
  }
  weft_allocator_free(sim->allocator, missing);
  weft_allocator_free(sim->allocator, passed);
  return status;
}

void weft_sim_links_reset(weft_sim_t* sim) {
  for (int64_t l = 0; l < sim->link_count; ++l) sim->link[l].free = sim->link_wavelets[l] = 0;
  for (int64_t p = 0; p < sim->pause_count; ++p) sim->pause[p] = (weft_sim_pause_t){0, 0};
}

// In the place of the pause that ends first, unless the new one ends before it.
static void remember(weft_sim_pause_t* pauses, int64_t start, int64_t end) {
  weft_sim_pause_t* first = pauses;
  for (int32_t p = 1; p < WEFT_SIM_PAUSES; ++p)
    if (pauses[p].end < first->end) first = &pauses[p];
  if (start < end && first->end < end) *first = (weft_sim_pause_t){start, end};
}

// The first pause that has room for `cycles` from `head` on. NULL: none.
static weft_sim_pause_t* find_pause(weft_sim_pause_t* pauses, int64_t head, int64_t cycles) {
  weft_sim_pause_t* found = NULL;
  for (int32_t p = 0; p < WEFT_SIM_PAUSES; ++p)
    if (pauses[p].end - weft_max_i64(pauses[p].start, head) >= cycles && (!found || pauses[p].start < found->start))
      found = &pauses[p];
  return found;
}

int64_t weft_sim_link_reserve(weft_sim_t* sim, int32_t link, int64_t head, int64_t cycles) {
  weft_sim_link_t* record = &sim->link[link];
  int64_t free = record->free, start = weft_max_i64(head, free);
  if (record->pauses >= 0) {
    weft_sim_pause_t* pauses = &sim->pause[record->pauses];
    weft_sim_pause_t* found = head < free ? find_pause(pauses, head, cycles) : NULL;
    if (found) {
      int64_t end = found->end;
      start = weft_max_i64(found->start, head);
      *found = start > found->start ? (weft_sim_pause_t){found->start, start} : (weft_sim_pause_t){0, 0};
      remember(pauses, start + cycles, end);
      return start;
    }
    remember(pauses, free, start);
  }
  record->free = start + cycles;
  return start;
}
