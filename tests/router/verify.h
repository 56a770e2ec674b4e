// Legality of routes, derived from the entries alone, and random nets for the tests of the router.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "router/router.h"

static inline void assert_ok(weft_status_t status) {
  if (!status) return;
  print_error("%s\n", weft_status_message(status));
  weft_status_free(status);
  fail();
}

// A mesh with its defects, nets in an arena and what the router made of them.
typedef struct bed_t {
  weft_machine_t machine;
  weft_defects_t defects;
  weft_arena_t arena;
  int32_t net_count;
  weft_router_net_t* net;
  int64_t interval;
  weft_router_route_t* route;
  weft_router_report_t report;
} bed_t;

static inline void bed_open(bed_t* bed, int32_t width, int32_t height, double rate, uint64_t seed) {
  memset(bed, 0, sizeof(*bed));
  weft_allocator_t allocator = weft_allocator_system();
  // What the router looks at; the presets have more.
  bed->machine = (weft_machine_t){.name = "test",
                                  .width = width,
                                  .height = height,
                                  .hop_cycles = 1,
                                  .wavelet_bits = 32,
                                  .colours = 24,
                                  .ports_per_side = {width, height, width, height},
                                  .host_rate = 1};
  char spec[64];
  snprintf(spec, sizeof(spec), "rate=%.6f,seed=%llu", rate, (unsigned long long)seed);
  assert_ok(weft_defects_load(allocator, rate > 0 ? spec : "none", &bed->machine, &bed->defects));
  weft_arena_initialize(allocator, &bed->arena);
}
static inline void bed_close(bed_t* bed) {
  weft_arena_deinitialize(&bed->arena);
  weft_defects_deinitialize(&bed->defects);
}
static inline weft_status_t bed_solve(bed_t* bed, const weft_control_t* control) {
  return weft_router_solve(&bed->machine, &bed->defects, bed->net_count, bed->net, bed->interval, control, &bed->arena,
                           &bed->route, &bed->report);
}
static inline int32_t bed_tile(const bed_t* bed, int32_t x, int32_t y) {
  return y * bed->machine.width + x;
}

// A net whose sources have segments of different lengths, some of them empty.
static inline weft_router_net_t bed_net(bed_t* bed, const char* name, int32_t sources, int32_t sinks,
                                        const weft_router_terminal_t* source, const weft_router_terminal_t* sink,
                                        int64_t wavelets) {
  int64_t *segment = NULL, left = wavelets;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)sources, &segment));
  for (int32_t k = 0; k < sources; ++k) left -= segment[k] = left / (sources - k) * (k % 3) / 2;
  segment[sources / 2] += left;
  return (weft_router_net_t){name, sources, sinks, source, sink, segment, wavelets};
}

// Labels of connected tiles by repeated relaxation: slow and simple. Returns the label of the largest part.
static inline int32_t bed_parts(const bed_t* bed, int32_t* label) {
  int32_t tiles = weft_machine_tiles(&bed->machine);
  for (int32_t t = 0; t < tiles; ++t) label[t] = weft_defects_live(&bed->defects, t) ? t : -1;
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t t = 0; t < tiles; ++t)
      for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
        if (d == WEFT_DIRECTION_RAMP || !weft_defects_link_live(&bed->machine, &bed->defects, t, d)) continue;
        int32_t next = weft_machine_neighbour(&bed->machine, t, d);
        if (label[next] < label[t]) {
          label[t] = label[next];
          changed = true;
        }
      }
  }
  int32_t best = -1, most = 0;
  for (int32_t t = 0; t < tiles; ++t) {
    int32_t n = 0;
    for (int32_t u = 0; label[t] == t && u < tiles; ++u) n += label[u] == t;
    if (n > most) {
      most = n;
      best = t;
    }
  }
  return best;
}

// A side of an edge tile that looks off the mesh; RAMP for inner tiles.
static inline weft_direction_e bed_outward(const bed_t* bed, int32_t tile) {
  int32_t x = tile % bed->machine.width, y = tile / bed->machine.width;
  if (y == 0) return WEFT_DIRECTION_N;
  if (x == bed->machine.width - 1) return WEFT_DIRECTION_E;
  if (y == bed->machine.height - 1) return WEFT_DIRECTION_S;
  return x == 0 ? WEFT_DIRECTION_W : WEFT_DIRECTION_RAMP;
}

// `count` different tiles of the list, in random order; now and then as a host port.
static inline weft_router_terminal_t* bed_terminals(bed_t* bed, weft_rng_t* rng, int32_t* tiles, int32_t tile_count,
                                                    int32_t count) {
  weft_router_terminal_t* terminal = NULL;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)count, &terminal));
  for (int32_t i = 0; i < count; ++i) {
    int32_t j = i + (int32_t)weft_rng_below(rng, (uint64_t)(tile_count - i));
    int32_t tile = tiles[j];
    tiles[j] = tiles[i];
    tiles[i] = tile;
    bool host = weft_rng_below(rng, 3) == 0;
    terminal[i] = (weft_router_terminal_t){tile, host ? bed_outward(bed, tile) : WEFT_DIRECTION_RAMP};
  }
  return terminal;
}

// Random nets on the live tiles of one part of the mesh, of up to so many sources and sinks.
static inline void bed_random_nets(bed_t* bed, weft_rng_t* rng, const int32_t* label, int32_t part, int32_t count,
                                   int32_t sources, int32_t sinks) {
  int32_t tiles = weft_machine_tiles(&bed->machine), n = 0;
  int32_t* list = NULL;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)tiles, &list));
  for (int32_t t = 0; t < tiles; ++t)
    if (label[t] == part) list[n++] = t;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)count, &bed->net));
  bed->net_count = count;
  for (int32_t i = 0; i < count; ++i) {
    weft_router_net_t* net = &bed->net[i];
    int32_t source_count = 1 + (int32_t)weft_rng_below(rng, (uint64_t)(sources < n ? sources : n));
    int32_t sink_count = 1 + (int32_t)weft_rng_below(rng, (uint64_t)(sinks < n ? sinks : n));
    weft_router_terminal_t* source = bed_terminals(bed, rng, list, n, source_count);
    weft_router_terminal_t* sink = bed_terminals(bed, rng, list, n, sink_count);
    *net = bed_net(bed, NULL, source_count, sink_count, source, sink, 1 + (int64_t)weft_rng_below(rng, 1000));
    assert_ok(weft_arena_printf(&bed->arena, &net->name, "net%d", i));
  }
}

// Verification
// ---------------------------------------------------------------------------------------------------------

typedef struct verifier_t {
  const bed_t* bed;
  int32_t net;
  int32_t* owner;      // [tile * colours + colour] net that has the entry, -1: none
  int32_t* index;      // which of its entries
  int64_t* load;       // [tile * WEFT_DIRECTION_COUNT + direction]
  int64_t* passing;    // [entries of the net] wavelets, -1 before anybody asked
  int32_t next_source; // that must be the next to come
} verifier_t;

static inline bool on_mesh(const verifier_t* v, int32_t tile, int d) {
  return d != WEFT_DIRECTION_RAMP && weft_machine_neighbour(&v->bed->machine, tile, d) >= 0;
}
static inline const weft_router_entry_t* entry_at(const verifier_t* v, int32_t tile, int32_t colour) {
  size_t at = (size_t)tile * (size_t)v->bed->machine.colours + (size_t)colour;
  assert_int_equal(v->owner[at], v->net);
  return &v->bed->route[v->net].entry[v->index[at]];
}

// Walks against the flow in the order of the switches, checks off the sources and adds up what they send.
static inline int64_t deliver(verifier_t* v, const weft_router_entry_t* entry) {
  const weft_router_net_t* net = &v->bed->net[v->net];
  int64_t passing = 0;
  assert_in_range(entry->input_count, 1, WEFT_DIRECTION_COUNT);
  for (int k = 0; k < entry->input_count; ++k) {
    int d = entry->input[k];
    for (int j = 0; j < k; ++j) assert_int_not_equal(entry->input[j], d);
    if (!on_mesh(v, entry->tile, d)) {
      assert_true(v->next_source < net->source_count);
      assert_int_equal(net->source[v->next_source].tile, entry->tile);
      assert_int_equal(net->source[v->next_source].direction, d);
      passing += net->segment[v->next_source++];
      continue;
    }
    assert_true(weft_defects_link_live(&v->bed->machine, &v->bed->defects, entry->tile, d));
    int32_t from = weft_machine_neighbour(&v->bed->machine, entry->tile, d);
    weft_direction_e back = weft_direction_opposite(d);
    const weft_router_entry_t* upstream = NULL;
    for (int32_t i = 0; i < v->bed->route[v->net].entry_count; ++i) {
      const weft_router_entry_t* e = &v->bed->route[v->net].entry[i];
      if (e->tile != from || !(e->outputs >> back & 1) || e->output_colour[back] != entry->colour) continue;
      assert_null(upstream); // two senders on one switch position would mix
      upstream = e;
    }
    assert_non_null(upstream);
    assert_true(upstream < entry); // upstream before downstream, so there is no ring either
    passing += deliver(v, upstream);
  }
  v->passing[entry - v->bed->route[v->net].entry] = passing;
  return passing;
}

static inline void check_outputs(verifier_t* v, const weft_router_entry_t* entry) {
  const weft_router_net_t* net = &v->bed->net[v->net];
  assert_int_not_equal(entry->outputs, 0);
  for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
    if (!(entry->outputs >> d & 1)) continue;
    if (!on_mesh(v, entry->tile, d)) {
      bool wanted = false;
      for (int32_t i = 0; i < net->sink_count; ++i)
        wanted |= net->sink[i].tile == entry->tile && (int)net->sink[i].direction == d;
      assert_true(wanted);
      assert_int_equal(entry->output_colour[d], entry->colour);
      continue;
    }
    assert_true(weft_defects_link_live(&v->bed->machine, &v->bed->defects, entry->tile, d));
    int32_t to = weft_machine_neighbour(&v->bed->machine, entry->tile, d);
    const weft_router_entry_t* next = entry_at(v, to, entry->output_colour[d]);
    bool expected = false;
    for (int k = 0; k < next->input_count; ++k) expected |= next->input[k] == weft_direction_opposite(d);
    assert_true(expected);
  }
}

// Every entry lies upstream of a sink, so the walks from there have passed it.
static inline void add_loads(verifier_t* v) {
  const weft_router_route_t* route = &v->bed->route[v->net];
  for (int32_t i = 0; i < route->entry_count; ++i) {
    assert_true(v->passing[i] >= 0);
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (route->entry[i].outputs >> d & 1 && on_mesh(v, route->entry[i].tile, d))
        v->load[(size_t)route->entry[i].tile * WEFT_DIRECTION_COUNT + (size_t)d] += v->passing[i];
  }
}

static inline void check_sinks(verifier_t* v) {
  const weft_router_net_t* net = &v->bed->net[v->net];
  const weft_router_route_t* route = &v->bed->route[v->net];
  for (int32_t s = 0; s < net->sink_count; ++s) {
    int32_t found = 0;
    for (int32_t i = 0; i < route->entry_count; ++i) {
      const weft_router_entry_t* e = &route->entry[i];
      if (e->tile != net->sink[s].tile || !(e->outputs >> net->sink[s].direction & 1)) continue;
      ++found;
      v->next_source = 0;
      assert_int_equal(deliver(v, e), net->wavelets);
      assert_int_equal(v->next_source, net->source_count);
    }
    assert_int_equal(found, 1);
  }
}

// All that router.h promises. `sinks`: also walk from every sink (slow for large nets).
static inline void bed_verify(const bed_t* bed) {
  size_t colours = (size_t)bed->machine.colours, tiles = (size_t)weft_machine_tiles(&bed->machine);
  verifier_t v = {.bed = bed};
  v.owner = malloc(tiles * colours * sizeof(int32_t));
  v.index = malloc(tiles * colours * sizeof(int32_t));
  v.load = calloc(tiles * WEFT_DIRECTION_COUNT, sizeof(int64_t));
  assert_true(v.owner && v.index && v.load);
  memset(v.owner, 0xFF, tiles * colours * sizeof(int32_t));
  for (int32_t n = 0; n < bed->net_count; ++n)
    for (int32_t i = 0; i < bed->route[n].entry_count; ++i) {
      const weft_router_entry_t* e = &bed->route[n].entry[i];
      assert_in_range(e->tile, 0, tiles - 1);
      assert_true(weft_defects_live(&bed->defects, e->tile));
      assert_in_range(e->colour, 0, colours - 1);
      size_t at = (size_t)e->tile * colours + e->colour;
      assert_int_equal(v.owner[at], -1);
      v.owner[at] = n;
      v.index[at] = i;
    }
  int64_t hops = 0, load = 0;
  int32_t most = 0;
  for (v.net = 0; v.net < bed->net_count; ++v.net) {
    for (int32_t i = 0; i < bed->route[v.net].entry_count; ++i) check_outputs(&v, &bed->route[v.net].entry[i]);
    v.passing = realloc(v.passing, (size_t)bed->route[v.net].entry_count * sizeof(int64_t));
    assert_non_null(v.passing);
    memset(v.passing, 0xFF, (size_t)bed->route[v.net].entry_count * sizeof(int64_t));
    check_sinks(&v);
    add_loads(&v);
    hops += bed->route[v.net].entry_count - 1;
  }
  for (size_t i = 0; i < tiles * WEFT_DIRECTION_COUNT; ++i)
    if (v.load[i] > load) load = v.load[i];
  for (size_t t = 0; t < tiles; ++t) {
    int32_t used = 0;
    for (size_t c = 0; c < colours; ++c) used += v.owner[t * colours + c] >= 0;
    if (used > most) most = used;
  }
  assert_int_equal(bed->report.hops, hops);
  assert_int_equal(bed->report.link_wavelets_max, load);
  assert_int_equal(bed->report.colours_max, most);
  free(v.owner);
  free(v.index);
  free(v.passing);
  free(v.load);
}
