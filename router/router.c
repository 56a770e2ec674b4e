#include "router/router.h"

#include <string.h>

#include "base/checked.h"
#include "router/colour.h"
#include "router/limits.h"

enum {
  ITERATIONS = 60,
  SLOW = 3,         // iterations in which hardly a router got free
  PATIENCE = 8,     // iterations that try to lower the load of the busiest link without success, ...
  WORTHWHILE = 100, // which is less than a hundredth
  // Tiles that may be looked at until colours suffice: so many times what the first iteration took, so many for each
  // tile of the mesh, and so many.
  COLOUR_WORK = 3,
  COLOUR_TILES = 50,
  COLOUR_LEAST = 20000000,
  BALANCE_TILES = 5000000, // then, beside as many as the first iteration took, for a lower load: a second or two
  NETS_PER_CHECK = 64,     // between looks at the clock
  // A ceiling: among routers that are all full, what each has cost so far decides, and the nets give way evenly.
  PRESENT_MAX = 8 * WEFT_ROUTER_HOP
};

typedef struct solver_t {
  weft_router_mesh_t mesh;
  weft_router_search_t search;
  weft_router_builder_t builder;
  weft_parts_t parts;
  weft_router_tree_t* tree; // [net_count]
  weft_router_tree_t* best; // [net_count] of the iteration with the lowest load that had colours enough
  int64_t best_load;        // of its busiest link
  int32_t net_count;
  const weft_router_net_t* net;
  int64_t interval;
  int64_t budget; // tiles that may be looked at
  int64_t enough; // load of the busiest link from which on less wouldn't help
  const weft_control_t* control;
} solver_t;

// What passes between the busiest tile and its router, in or out.
static weft_status_t busiest_ramp(const solver_t* s, int64_t* out_wavelets) {
  int64_t(*passing)[2] = NULL; // [tiles]
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(s->mesh.allocator, (size_t)s->mesh.tiles, sizeof(*passing), (void**)&passing));
  for (int32_t n = 0; n < s->net_count; ++n) {
    const weft_router_net_t* net = &s->net[n];
    for (int32_t i = 0; i < net->sink_count; ++i)
      if (net->sink[i].direction == WEFT_DIRECTION_RAMP) passing[net->sink[i].tile][0] += net->wavelets;
    for (int32_t k = 0; k < net->source_count; ++k)
      if (net->source[k].direction == WEFT_DIRECTION_RAMP) passing[net->source[k].tile][1] += net->segment[k];
  }
  *out_wavelets = 0;
  for (int32_t t = 0; t < s->mesh.tiles; ++t)
    *out_wavelets = weft_max_i64(*out_wavelets, weft_max_i64(passing[t][0], passing[t][1]));
  weft_allocator_free(s->mesh.allocator, passing);
  return weft_ok();
}

// No routes make a step shorter than what the busiest ramp or the largest net takes, or the mean that the shortest
// routes would put on every link, which is less on all but crowded meshes.
static weft_status_t set_enough(solver_t* s) {
  int64_t total = 0, largest = 1;
  double wavelet_hops = 0;
  for (int32_t n = 0; n < s->net_count; ++n) {
    const weft_router_net_t* net = &s->net[n];
    if (net->wavelets > largest) largest = net->wavelets;
    // A net uses a link at most once an entry; that the sum of any number of uses is exact follows from this bound.
    int64_t uses;
    if (!weft_checked_mul(net->wavelets, (int64_t)4 * s->mesh.tiles, &uses) || !weft_checked_add(total, uses, &total))
      return weft_error(INVALID_ARGUMENT, "%s: %lld wavelets are more than can be counted", net->name,
                        (long long)net->wavelets);
    int32_t root = net->source[net->source_count - 1].tile, furthest = 0;
    for (int32_t i = 0; i < net->sink_count; ++i) {
      int32_t hops = weft_router_mesh_distance(&s->mesh, root, net->sink[i].tile);
      if (hops > furthest) furthest = hops;
    }
    wavelet_hops += (double)net->wavelets * furthest;
  }
  int64_t links = 1;
  for (int32_t t = 0; t < s->mesh.tiles; ++t) links += __builtin_popcount(s->mesh.tile[t].links);
  int64_t mean = (int64_t)(wavelet_hops / (double)links);
  int64_t ramp = 0;
  WEFT_RETURN_IF_ERROR(busiest_ramp(s, &ramp));
  s->enough = weft_max_i64(weft_max_i64(mean, largest), weft_max_i64(ramp, s->interval));
  weft_router_mesh_crowd(&s->mesh, s->enough);
  return weft_ok();
}

// Parts of the tree that pass a router with `entries` or more, or a crowded link.
static uint32_t parts_in_the_way(const weft_router_mesh_t* mesh, const weft_router_tree_t* tree, uint32_t entries) {
  uint32_t parts = 0;
  for (int32_t i = 0; i < tree->count; ++i) {
    uint32_t part = i > tree->gather_count ? WEFT_ROUTER_MULTICAST : WEFT_ROUTER_GATHER;
    if (parts & part) {
      if (part == WEFT_ROUTER_MULTICAST) break;
      i = tree->gather_count;
      continue;
    }
    const weft_router_tile_t* tile = &mesh->tile[tree->node[i].tile];
    if (tile->usage >= entries) parts |= part;
    for (uint32_t links = tree->node[i].outputs & tile->links; links; links &= links - 1)
      if (tile->level[__builtin_ctz(links)] > WEFT_ROUTER_CROWDED) parts |= i ? part : WEFT_ROUTER_MULTICAST;
  }
  return parts;
}

// Routes nets: all of them at first, then what is in the way of others.
static weft_status_t route_nets(solver_t* s, int32_t iteration, uint32_t entries) {
  for (int32_t n = 0; n < s->net_count; ++n) {
    if (n % NETS_PER_CHECK == 0) {
      WEFT_RETURN_IF_ERROR(weft_control_check(s->control, "routing"));
      if (iteration == 1) weft_control_progress(s->control, "routing", (uint64_t)n, (uint64_t)s->net_count);
    }
    uint32_t parts = WEFT_ROUTER_GATHER | WEFT_ROUTER_MULTICAST;
    if (iteration > 1) parts = parts_in_the_way(&s->mesh, &s->tree[n], entries);
    if (!parts) continue;
    if (s->best) {
      if (s->search.looked_at > s->budget) break;
      // Few nets are left, and a whole one has more ways to go.
      parts = WEFT_ROUTER_GATHER | WEFT_ROUTER_MULTICAST;
    }
    WEFT_RETURN_IF_ERROR(weft_router_tree_route(&s->mesh, &s->search, &s->builder, &s->net[n], parts, &s->tree[n]));
  }
  return weft_ok();
}

static weft_status_t keep_best(solver_t* s, int64_t load) {
  weft_allocator_t allocator = s->mesh.allocator;
  if (!s->best)
    WEFT_RETURN_IF_ERROR( // one more, as no nets are a solution, too
        weft_allocator_calloc(allocator, (size_t)s->net_count + 1, sizeof(*s->best), (void**)&s->best));
  for (int32_t n = 0; n < s->net_count; ++n) {
    const weft_router_tree_t* tree = &s->tree[n];
    weft_router_tree_t* best = &s->best[n];
    WEFT_RETURN_IF_ERROR(
        weft_allocator_realloc(allocator, (size_t)tree->count, sizeof(*best->node), (void**)&best->node));
    memcpy(best->node, tree->node, (size_t)tree->count * sizeof(*best->node));
    best->count = tree->count;
    best->gather_count = tree->gather_count;
  }
  s->best_load = load;
  return weft_ok();
}

static void restore_best(solver_t* s) {
  for (int32_t n = 0; n < s->net_count; ++n) weft_router_tree_rip(&s->mesh, &s->tree[n]);
  for (int32_t n = 0; n < s->net_count; ++n) {
    s->tree[n] = s->best[n];
    s->best[n] = (weft_router_tree_t){0};
    weft_router_tree_claim(&s->mesh, &s->tree[n]);
  }
}

static int64_t count_hops(const solver_t* s) {
  int64_t hops = 0;
  for (int32_t n = 0; n < s->net_count; ++n) hops += s->tree[n].count - 1; // each node but the root has its link
  return hops;
}

static void report_state(const solver_t* s, weft_router_report_t* report) {
  report->hops = count_hops(s);
  weft_router_mesh_maxima(&s->mesh, &report->colours_max, &report->link_wavelets_max);
}

// How the negotiation gets on.
typedef struct pace_t {
  int32_t overused; // routers, in the iteration before
  int32_t slow;     // iterations in a row in which hardly a router got free
  int32_t patience; // what is left of it
  int64_t first;    // tiles looked at in the first iteration
} pace_t;

static weft_status_t judge(solver_t* s, int64_t load, pace_t* pace) {
  if (!pace->first) {
    pace->first = weft_max_i64(1, s->search.looked_at);
    s->budget = COLOUR_LEAST + COLOUR_WORK * pace->first + COLOUR_TILES * (int64_t)s->mesh.tiles;
  }
  pace->slow = s->mesh.overused > pace->overused - pace->overused / 8 ? pace->slow + 1 : 0;
  pace->overused = s->mesh.overused;
  if (s->best) --pace->patience;
  if (s->mesh.overused || (s->best && load >= s->best_load)) return weft_ok();
  if (!s->best) s->budget = s->search.looked_at + pace->first + BALANCE_TILES;
  if (!s->best || load < s->best_load - s->best_load / WORTHWHILE) pace->patience = PATIENCE;
  return keep_best(s, load);
}

// Colours and loads are negotiated together: routes that have one without the other are seldom near to both. Links that
// carry nearly what the busiest does are crowded, but fewer are as long as colours are hard to come by. When nothing
// gets better, crowded links cost more.
static void raise_costs(solver_t* s, int64_t load, const pace_t* pace) {
  weft_router_mesh_t* mesh = &s->mesh;
  int64_t crowded = weft_max_i64(s->enough, load - load / 20);
  if (!s->best && pace->slow >= SLOW) crowded = weft_max_i64(crowded, mesh->crowded + mesh->crowded / 4);
  mesh->steep = 1 + PATIENCE - pace->patience;
  weft_router_mesh_crowd(mesh, crowded);
  weft_router_mesh_age(mesh);
  if (mesh->present < PRESENT_MAX) mesh->present += mesh->present / 4;
}

// Until no router has more entries than colours, and from then on as long as the busiest link's load falls: it is what
// bounds the rate of a stream of inputs.
static weft_status_t negotiate(solver_t* s, const weft_machine_t* machine, const weft_defects_t* defects,
                               weft_router_report_t* report) {
  weft_router_mesh_t* mesh = &s->mesh;
  pace_t pace = {.overused = INT32_MAX, .patience = PATIENCE};
  mesh->present = WEFT_ROUTER_HOP / 2;
  for (int32_t iteration = 1; iteration <= ITERATIONS; ++iteration) {
    // When it goes slowly, those who fill the routers around have to make room too.
    WEFT_RETURN_IF_ERROR(route_nets(s, iteration, (uint32_t)mesh->colours + (pace.slow < SLOW)));
    report->iterations = iteration;
    report_state(s, report);
    weft_control_table(
        s->control, "routing", "iteration %2d  overused routers %6d  colours %3d  hops %9lld  link wavelets %9lld",
        iteration, mesh->overused, report->colours_max, (long long)report->hops, (long long)report->link_wavelets_max);
    WEFT_RETURN_IF_ERROR(judge(s, report->link_wavelets_max, &pace));
    if (s->best && (pace.patience <= 0 || s->best_load <= s->enough)) break;
    if (s->search.looked_at > s->budget) break;
    raise_costs(s, report->link_wavelets_max, &pace);
  }
  if (!s->best)
    return weft_router_limits_overused(mesh, machine, defects, s->net_count, s->net, s->tree, report->iterations);
  restore_best(s);
  report_state(s, report);
  return weft_ok();
}

// Lengths of the ways from the sources to the root and from there to the sinks, and what they would be without defects.
// `depth` has room for the tree's nodes.
static void measure_net(const solver_t* s, int32_t n, int64_t* depth, int64_t* inout_way, int64_t* inout_shortest,
                        int64_t* inout_longest) {
  const weft_router_tree_t* tree = &s->tree[n];
  int32_t root = tree->node[0].tile;
  int64_t longest[2] = {0, 0};
  depth[0] = 0;
  for (int32_t i = 0; i < tree->count; ++i) {
    const weft_router_node_t* node = &tree->node[i];
    if (i) depth[i] = depth[node->link] + 1;
    bool multicast = i > tree->gather_count;
    int32_t ends = 0;
    uint32_t links = s->mesh.tile[node->tile].links;
    if (!multicast && i > 0)
      for (int k = 0; k < node->input_count; ++k) ends += !(links >> node->input[k] & 1);
    if (multicast) ends = __builtin_popcount(node->outputs & ~links);
    if (!ends) continue;
    *inout_way += ends * depth[i];
    *inout_shortest += (int64_t)ends * weft_router_mesh_distance(&s->mesh, root, node->tile);
    if (depth[i] > longest[multicast]) longest[multicast] = depth[i];
  }
  if (longest[0] + longest[1] > *inout_longest) *inout_longest = longest[0] + longest[1];
}

static weft_status_t measure(const solver_t* s, weft_router_report_t* report) {
  int64_t way = 0, shortest = 0, largest = 1;
  for (int32_t n = 0; n < s->net_count; ++n) largest = weft_max_i64(largest, s->tree[n].count);
  int64_t* depth = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(s->mesh.allocator, (size_t)largest, sizeof(*depth), (void**)&depth));
  for (int32_t n = 0; n < s->net_count; ++n) measure_net(s, n, depth, &way, &shortest, &report->longest_hops);
  weft_allocator_free(s->mesh.allocator, depth);
  report->stretch = shortest ? (double)way / (double)shortest : 1;
  return weft_ok();
}

static weft_status_t solve(solver_t* s, const weft_machine_t* machine, const weft_defects_t* defects,
                           weft_arena_t* arena, weft_router_route_t** out_routes, weft_router_report_t* report) {
  weft_allocator_t allocator = arena->allocator;
  WEFT_RETURN_IF_ERROR(weft_router_limits_validate(machine, s->net_count, s->net));
  WEFT_RETURN_IF_ERROR(weft_router_mesh_initialize(allocator, machine, defects, &s->mesh));
  WEFT_RETURN_IF_ERROR(weft_parts_find(allocator, machine, defects, &s->parts));
  WEFT_RETURN_IF_ERROR(weft_router_limits_reach(&s->mesh, &s->parts, s->net_count, s->net));
  WEFT_RETURN_IF_ERROR(weft_router_limits_colours(&s->mesh, &s->parts, s->net_count, s->net));
  WEFT_RETURN_IF_ERROR(set_enough(s));
  WEFT_RETURN_IF_ERROR(weft_router_search_initialize(&s->mesh, &s->search));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, (size_t)s->net_count, sizeof(*s->tree), (void**)&s->tree));
  WEFT_RETURN_IF_ERROR(negotiate(s, machine, defects, report));
  WEFT_RETURN_IF_ERROR(measure(s, report));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)s->net_count, out_routes));
  return weft_router_colour(&s->mesh, s->net_count, s->tree, arena, *out_routes);
}

weft_status_t weft_router_solve(const weft_machine_t* machine, const weft_defects_t* defects, int32_t net_count,
                                const weft_router_net_t* net, int64_t interval, const weft_control_t* control,
                                weft_arena_t* arena, weft_router_route_t** out_routes,
                                weft_router_report_t* out_report) {
  solver_t s = {.net_count = net_count, .net = net, .interval = interval, .control = control};
  *out_routes = NULL;
  *out_report = (weft_router_report_t){.stretch = 1};
  weft_status_t status = solve(&s, machine, defects, arena, out_routes, out_report);
  for (int32_t n = 0; s.tree && n < net_count; ++n) weft_allocator_free(s.mesh.allocator, s.tree[n].node);
  for (int32_t n = 0; s.best && n < net_count; ++n) weft_allocator_free(s.mesh.allocator, s.best[n].node);
  weft_allocator_t allocator = arena->allocator;
  weft_allocator_free(allocator, s.best);
  weft_allocator_free(allocator, s.tree);
  weft_router_builder_deinitialize(&s.builder, allocator);
  weft_router_search_deinitialize(&s.search);
  if (s.parts.label) weft_parts_deinitialize(&s.parts);
  if (s.mesh.tile) weft_router_mesh_deinitialize(&s.mesh);
  return status;
}
