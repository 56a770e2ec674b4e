#include "router/router.h"

#include "base/checked.h"
#include "router/colour.h"
#include "router/limits.h"

enum {
  ITERATIONS = 60,
  BALANCE = 2,         // iteration that looks again at the nets on crowded links; later ones only at overused routers
  NETS_PER_CHECK = 64, // between looks at the clock
  // A low ceiling: among routers that are all full, what each has cost so far decides, and the nets give way evenly.
  PRESENT_MAX = WEFT_ROUTER_HOP
};

typedef struct solver_t {
  weft_router_mesh_t mesh;
  weft_router_search_t search;
  weft_router_builder_t builder;
  weft_parts_t parts;
  weft_router_tree_t* tree; // [net_count]
  int32_t net_count;
  const weft_router_net_t* net;
  const weft_control_t* control;
} solver_t;

// The largest net's wavelets are on some link whatever the routes; so is the mean that the shortest routes would put on
// every link, which is less on all but crowded meshes.
static weft_status_t set_reference(solver_t* s) {
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
  s->mesh.reference = mean > largest ? mean : largest;
  return weft_ok();
}

// Whether the net passes a router that has `entries` or more.
static bool passes_full(const weft_router_mesh_t* mesh, const weft_router_tree_t* tree, uint32_t entries) {
  for (int32_t i = 0; i < tree->count; ++i)
    if (mesh->tile[tree->node[i].tile].usage >= entries) return true;
  return false;
}

// Whether the net is on a link that carries more than it would have to.
static bool passes_crowded(const weft_router_mesh_t* mesh, const weft_router_tree_t* tree) {
  for (int32_t i = 0; i < tree->count; ++i)
    for (uint32_t links = tree->node[i].outputs & mesh->tile[tree->node[i].tile].links; links; links &= links - 1)
      if (mesh->load[(size_t)tree->node[i].tile * WEFT_DIRECTION_COUNT + (size_t)__builtin_ctz(links)] >
          mesh->reference)
        return true;
  return false;
}

// Routes nets: all of them at first, then those on crowded links, then those through routers with `entries` or more.
static weft_status_t route_nets(solver_t* s, int32_t iteration, uint32_t entries) {
  for (int32_t n = 0; n < s->net_count; ++n) {
    if (n % NETS_PER_CHECK == 0) {
      WEFT_RETURN_IF_ERROR(weft_control_check(s->control, "routing"));
      if (iteration == 1) weft_control_progress(s->control, "routing", (uint64_t)n, (uint64_t)s->net_count);
    }
    bool again = iteration == 1 || passes_full(&s->mesh, &s->tree[n], entries) ||
                 (iteration == BALANCE && passes_crowded(&s->mesh, &s->tree[n]));
    if (!again) continue;
    weft_router_tree_rip(&s->mesh, &s->net[n], &s->tree[n]);
    WEFT_RETURN_IF_ERROR(weft_router_tree_route(&s->mesh, &s->search, &s->builder, &s->net[n], &s->tree[n]));
  }
  return weft_ok();
}

static int64_t count_hops(const solver_t* s) {
  int64_t hops = 0;
  for (int32_t n = 0; n < s->net_count; ++n) hops += s->tree[n].count - 1; // each node but the root has its link
  return hops;
}

static weft_status_t negotiate(solver_t* s, const weft_machine_t* machine, const weft_defects_t* defects,
                               weft_router_report_t* report) {
  weft_router_mesh_t* mesh = &s->mesh;
  int32_t before = INT32_MAX;
  uint32_t entries = (uint32_t)mesh->colours + 1;
  mesh->present = WEFT_ROUTER_HOP / 2;
  for (int32_t iteration = 1; iteration <= ITERATIONS; ++iteration) {
    WEFT_RETURN_IF_ERROR(route_nets(s, iteration, entries));
    report->iterations = iteration;
    report->hops = count_hops(s);
    weft_router_mesh_maxima(mesh, &report->colours_max, &report->link_wavelets_max);
    weft_control_table(
        s->control, "routing", "iteration %2d  overused routers %6d  colours %3d  hops %9lld  link wavelets %9lld",
        iteration, mesh->overused, report->colours_max, (long long)report->hops, (long long)report->link_wavelets_max);
    // Once everybody's routes are known, a second look evens out the links, if there is anything to gain.
    bool balanced = iteration >= BALANCE || report->link_wavelets_max <= mesh->reference;
    if (!mesh->overused && balanced) return weft_ok();
    weft_router_mesh_age(mesh);
    if (mesh->present < PRESENT_MAX) mesh->present += mesh->present / 4;
    // When it goes slowly, those who fill the routers around have to make room too.
    bool slow = mesh->overused > before - before / 8;
    entries = (uint32_t)mesh->colours + !slow;
    before = mesh->overused;
  }
  return weft_router_limits_overused(mesh, machine, defects, s->net_count, s->net, s->tree, report->iterations);
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
  WEFT_RETURN_IF_ERROR(set_reference(s));
  WEFT_RETURN_IF_ERROR(weft_router_search_initialize(&s->mesh, &s->search));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, (size_t)s->net_count, sizeof(*s->tree), (void**)&s->tree));
  WEFT_RETURN_IF_ERROR(negotiate(s, machine, defects, report));
  WEFT_RETURN_IF_ERROR(measure(s, report));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)s->net_count, out_routes));
  return weft_router_colour(&s->mesh, s->net_count, s->tree, arena, *out_routes);
}

weft_status_t weft_router_solve(const weft_machine_t* machine, const weft_defects_t* defects, int32_t net_count,
                                const weft_router_net_t* net, const weft_control_t* control, weft_arena_t* arena,
                                weft_router_route_t** out_routes, weft_router_report_t* out_report) {
  solver_t s = {.net_count = net_count, .net = net, .control = control};
  *out_routes = NULL;
  *out_report = (weft_router_report_t){.stretch = 1};
  weft_status_t status = solve(&s, machine, defects, arena, out_routes, out_report);
  for (int32_t n = 0; s.tree && n < net_count; ++n) weft_allocator_free(s.mesh.allocator, s.tree[n].node);
  weft_allocator_t allocator = arena->allocator;
  weft_allocator_free(allocator, s.tree);
  weft_router_builder_deinitialize(&s.builder, allocator);
  weft_router_search_deinitialize(&s.search);
  if (s.parts.label) weft_parts_deinitialize(&s.parts);
  if (s.mesh.tile) weft_router_mesh_deinitialize(&s.mesh);
  return status;
}
