#include "router/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

// Where a net is being built: everything that the steps below need.
typedef struct build_t {
  weft_router_mesh_t* mesh;
  weft_router_search_t* search;
  weft_router_builder_t* nodes;
  const weft_router_net_t* net;
  weft_router_query_t query;
  bool chain;      // each source joins at the router of the next one: always possible, seldom short
  bool stuck;      // a source found no free port on the way of the next one
  int64_t passing; // wavelets that may pass the nodes that are added now
} build_t;

struct weft_router_order_t {
  int32_t distance, index;
};

void weft_router_builder_deinitialize(weft_router_builder_t* builder, weft_allocator_t allocator) {
  weft_allocator_free(allocator, builder->data);
  weft_allocator_free(allocator, builder->order);
  weft_allocator_free(allocator, builder->own);
  *builder = (weft_router_builder_t){0};
}

// Adds (sign 1) or takes back (-1) what a node uses.
static void claim_links(weft_router_mesh_t* mesh, const weft_router_node_t* node, int32_t sign) {
  for (uint32_t links = node->outputs & mesh->tile[node->tile].links; links; links &= links - 1)
    weft_router_mesh_load(mesh, node->tile, __builtin_ctz(links), sign * node->wavelets);
}
static void claim(weft_router_mesh_t* mesh, const weft_router_node_t* node, int32_t sign) {
  weft_router_mesh_use(mesh, node->tile, sign);
  claim_links(mesh, node, sign);
}

static weft_status_t add_node(build_t* b, int32_t tile, int32_t link, weft_direction_e direction, int32_t* out_node) {
  if (b->nodes->count >= INT32_MAX) return weft_error(OUT_OF_MEMORY, "out of memory: route of %s", b->net->name);
  *out_node = (int32_t)b->nodes->count;
  WEFT_RETURN_IF_ERROR(weft_array_reserve(b->mesh->allocator, (void**)&b->nodes->own, &b->nodes->own_capacity,
                                          b->nodes->count + 1, sizeof(*b->nodes->own)));
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(
      b->mesh->allocator, b->nodes,
      (weft_router_node_t){.wavelets = b->passing, .tile = tile, .link = link, .direction = (uint8_t)direction}));
  b->nodes->own[*out_node] = 0;
  weft_router_mesh_use(b->mesh, tile, 1);
  return weft_ok();
}

static void add_output(build_t* b, int32_t node, weft_direction_e direction) {
  weft_router_node_t* n = &b->nodes->data[node];
  n->outputs |= (uint16_t)(1u << direction);
  if (b->mesh->tile[n->tile].links >> direction & 1) weft_router_mesh_load(b->mesh, n->tile, direction, n->wavelets);
}

// What comes from there now comes before everything else that the node passes on.
static void prepend_input(build_t* b, int32_t node, weft_direction_e direction) {
  weft_router_node_t* n = &b->nodes->data[node];
  memmove(n->input + 1, n->input, n->input_count);
  n->input[0] = (uint8_t)direction;
  ++n->input_count;
}

static void set_mark(build_t* b, int32_t tile, weft_router_mark_kind_e kind, int32_t node) {
  weft_router_mark_t* mark = weft_router_search_mark(b->search, tile);
  mark->kind = (uint8_t)kind;
  mark->node = node;
  mark->ports = 0;
}

static void grow_box(build_t* b, int32_t tile) {
  weft_router_query_t* q = &b->query;
  int32_t x = tile % b->mesh->width, y = tile / b->mesh->width;
  if (x < q->x0) q->x0 = x;
  if (x > q->x1) q->x1 = x;
  if (y < q->y0) q->y0 = y;
  if (y > q->y1) q->y1 = y;
}
static void start_box(build_t* b, int32_t tile) {
  b->query.x0 = b->query.x1 = tile % b->mesh->width;
  b->query.y0 = b->query.y1 = tile / b->mesh->width;
}

// A straight line to the only target. When it costs less than the two hops that any way round takes more, nothing is
// cheaper.
static bool straight_way(build_t* b, int32_t target) {
  const weft_router_mesh_t* mesh = b->mesh;
  int32_t width = mesh->width, tile = b->query.start;
  int32_t dx = target % width - tile % width, dy = target / width - tile / width;
  if ((dx != 0) == (dy != 0) || mesh->diagonal) return false;
  weft_direction_e d = dx > 0   ? WEFT_DIRECTION_E
                       : dx < 0 ? WEFT_DIRECTION_W
                       : dy > 0 ? WEFT_DIRECTION_S
                                : WEFT_DIRECTION_N;
  int64_t surplus = 0;
  for (int32_t next; tile != target; tile = next) {
    if (!(mesh->tile[tile].links >> d & 1)) return false;
    next = tile + mesh->step[d];
    surplus += weft_router_query_link_cost(mesh, &b->query, tile, d);
    if (next != target) surplus += weft_router_mesh_penalty(mesh, next);
    if (surplus >= (int64_t)2 * WEFT_ROUTER_HOP) return false;
    b->search->at[next].seen.from = (uint8_t)d;
  }
  return true;
}

// A target next door: whatever isn't adjacent takes a hop more.
static int32_t adjacent_target(const build_t* b) {
  const weft_router_mesh_t* mesh = b->mesh;
  int32_t start = b->query.start, best = -1, least = WEFT_ROUTER_HOP;
  for (uint32_t links = mesh->tile[start].links; links; links &= links - 1) {
    int d = __builtin_ctz(links);
    int32_t next = start + mesh->step[d];
    const weft_router_mark_t* mark = &b->search->at[next].mark;
    if (mark->stamp != b->search->stamp || mark->kind != WEFT_ROUTER_MARK_TARGET) continue;
    if (!weft_router_query_accepts(&b->query, mark, d)) continue;
    int32_t cost = weft_router_query_link_cost(mesh, &b->query, start, d);
    if (cost >= least) continue;
    least = cost;
    best = next;
    b->search->at[next].seen.from = (uint8_t)d;
  }
  return best;
}

// Gather
// ---------------------------------------------------------------------------------------------------------------

// The way found becomes nodes, from where it joins up to the source.
static weft_status_t add_gather_way(build_t* b, int32_t hit) {
  int32_t node = b->search->at[hit].mark.node;
  for (int32_t tile = hit; tile != b->query.start;) {
    weft_direction_e d = b->search->at[tile].seen.from, back = weft_direction_opposite(d);
    tile -= b->mesh->step[d];
    prepend_input(b, node, back);
    b->search->at[b->nodes->data[node].tile].mark.ports |= (uint16_t)(1u << back);
    WEFT_RETURN_IF_ERROR(add_node(b, tile, node, d, &node));
    add_output(b, node, d);
    set_mark(b, tile, WEFT_ROUTER_MARK_TARGET, node);
  }
  return weft_ok();
}

// What lies upstream of the place of joining is behind the new source now: nothing may be put before it any more.
static void retire(build_t* b, int32_t from, int32_t join) {
  for (int32_t n = from; n != join; n = b->nodes->data[n].link) {
    weft_router_mark_t* mark = &b->search->at[b->nodes->data[n].tile].mark;
    if (mark->node == n) mark->kind = WEFT_ROUTER_MARK_BLOCKED;
  }
}

// Twice the way there, and some to go round what is in between.
static int64_t longest_way(const build_t* b) {
  enum { ROUND = 96 };
  const weft_router_query_t* q = &b->query;
  int32_t x = q->start % b->mesh->width, y = q->start / b->mesh->width;
  int32_t dx = x < q->x0   ? q->x0 - x
               : x > q->x1 ? x - q->x1
                           : 0,
          dy = y < q->y0   ? q->y0 - y
               : y > q->y1 ? y - q->y1
                           : 0;
  return (int64_t)(2 * weft_router_mesh_hops(b->mesh, dx, dy) + ROUND) * WEFT_ROUTER_HOP;
}

static void box_first_path(build_t* b) {
  start_box(b, b->nodes->data[0].tile);
  for (int32_t n = b->nodes->first; n > 0; n = b->nodes->data[n].link) grow_box(b, b->nodes->data[n].tile);
}

// The cheapest way for source k to come first. A way that crosses the net's own needs one more colour where it does; so
// only when there is no other, or only one so long that looking for it and keeping to it costs more than that colour: a
// source that its own net has walled in would have the whole mesh searched. If that is too long too, it ends at the
// router of source k + 1 itself, past whatever is in between; and where there is no port left, anywhere.
static weft_status_t find_way(build_t* b, bool passed, int32_t* out_hit) {
  b->query.cross = b->chain;
  b->query.only = b->chain ? b->nodes->first : -1;
  *out_hit = adjacent_target(b);
  if (*out_hit >= 0) return weft_ok();
  if (!b->chain) {
    box_first_path(b);
    b->query.limit = longest_way(b);
    if (!passed) WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, out_hit));
    b->query.cross = true;
    if (*out_hit < 0) WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, out_hit));
    b->query.limit = 0;
    b->query.only = b->nodes->first;
  }
  if (*out_hit >= 0) return weft_ok();
  start_box(b, b->nodes->data[b->nodes->first].tile);
  WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, out_hit));
  if (*out_hit >= 0 || b->chain) return weft_ok();
  box_first_path(b);
  b->query.only = -1;
  return weft_router_search_run(b->search, &b->query, out_hit);
}

// From now on source k comes first: the node's wavelets start there.
static void start_at(build_t* b, int32_t node, int32_t k) {
  b->nodes->first = node;
  b->nodes->own[node] += b->net->segment[k];
  prepend_input(b, node, b->net->source[k].direction);
}

static weft_status_t join_source(build_t* b, int32_t k) {
  weft_router_terminal_t source = b->net->source[k];
  b->query.start = source.tile;
  b->query.next_source = k - 1;
  b->query.own = weft_router_mesh_level(b->mesh, b->passing);
  weft_router_mark_t* mark = weft_router_search_mark(b->search, source.tile);
  int32_t first = b->nodes->first;
  if (mark->kind == WEFT_ROUTER_MARK_TARGET && (!b->chain || mark->node == first)) {
    retire(b, first, mark->node);
    start_at(b, mark->node, k);
    return weft_ok();
  }
  int32_t hit;
  WEFT_RETURN_IF_ERROR(find_way(b, mark->kind == WEFT_ROUTER_MARK_BLOCKED, &hit));
  b->stuck = hit < 0;
  if (b->stuck) return weft_ok();
  retire(b, first, b->search->at[hit].mark.node);
  WEFT_RETURN_IF_ERROR(add_gather_way(b, hit));
  start_at(b, (int32_t)b->nodes->count - 1, k);
  return weft_ok();
}

// While the tree grew, each node was charged with all sources that could still join upstream of it. Now it is known
// which did; nodes stand downstream before upstream.
static void settle_loads(build_t* b) {
  weft_router_node_t* node = b->nodes->data;
  int64_t* passing = b->nodes->own;
  for (size_t i = b->nodes->count - 1; i > 0; --i) {
    passing[node[i].link] += passing[i];
    if (passing[i] == node[i].wavelets) continue;
    weft_router_mesh_load(b->mesh, node[i].tile, node[i].direction, passing[i] - node[i].wavelets);
    node[i].wavelets = passing[i];
  }
}

static weft_status_t gather(build_t* b) {
  const weft_router_net_t* net = b->net;
  int32_t last = net->source_count - 1, root = 0;
  b->query.upstream = false;
  b->passing = net->wavelets;
  weft_router_search_clear_marks(b->search);
  for (int32_t k = 0; k < last; ++k) set_mark(b, net->source[k].tile, WEFT_ROUTER_MARK_SOURCE, k);
  WEFT_RETURN_IF_ERROR(add_node(b, net->source[last].tile, -1, WEFT_DIRECTION_RAMP, &root));
  start_at(b, root, last);
  set_mark(b, net->source[last].tile, WEFT_ROUTER_MARK_TARGET, root);
  for (int32_t k = last - 1; k >= 0 && !b->stuck; --k) {
    b->passing -= net->segment[k + 1];
    WEFT_RETURN_IF_ERROR(join_source(b, k));
  }
  if (!b->stuck) settle_loads(b);
  b->passing = net->wavelets;
  return weft_ok();
}

// Multicast
// ------------------------------------------------------------------------------------------------------------

static int by_distance(const void* a, const void* b) {
  const struct weft_router_order_t *p = a, *q = b;
  if (p->distance != q->distance) return p->distance < q->distance ? -1 : 1;
  return (p->index > q->index) - (p->index < q->index);
}

// The way found becomes nodes, from where it leaves the tree down to the sink.
static weft_status_t add_multicast_way(build_t* b, int32_t hit) {
  int32_t node = b->search->at[hit].mark.node;
  for (int32_t tile = hit; tile != b->query.start;) {
    weft_direction_e from = b->search->at[tile].seen.from; // from the sink's side, so where the wavelets will come from
    tile -= b->mesh->step[from];
    add_output(b, node, weft_direction_opposite(from));
    WEFT_RETURN_IF_ERROR(add_node(b, tile, node, from, &node));
    prepend_input(b, node, from);
    set_mark(b, tile, WEFT_ROUTER_MARK_TARGET, node);
    grow_box(b, tile);
  }
  return weft_ok();
}

static weft_status_t reach_sink(build_t* b, weft_router_terminal_t sink) {
  weft_router_mark_t* mark = weft_router_search_mark(b->search, sink.tile);
  b->query.start = sink.tile;
  if (mark->kind != WEFT_ROUTER_MARK_TARGET) {
    int32_t root = b->nodes->data[0].tile;
    int32_t hit = adjacent_target(b);
    if (hit < 0 && b->query.x0 == b->query.x1 && b->query.y0 == b->query.y1 && straight_way(b, root)) hit = root;
    if (hit < 0) WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, &hit));
    if (hit < 0)
      return weft_error(INTERNAL, "%s: sink at (%d, %d) not reached within its part of the mesh", b->net->name,
                        sink.tile % b->mesh->width, sink.tile / b->mesh->width);
    WEFT_RETURN_IF_ERROR(add_multicast_way(b, hit));
  }
  add_output(b, mark->node, sink.direction);
  return weft_ok();
}

static weft_status_t multicast(build_t* b) {
  const weft_router_net_t* net = b->net;
  weft_router_builder_t* nodes = b->nodes;
  size_t sinks = (size_t)net->sink_count;
  int32_t root = nodes->data[0].tile;
  WEFT_RETURN_IF_ERROR(weft_array_reserve(b->mesh->allocator, (void**)&nodes->order, &nodes->order_capacity, sinks,
                                          sizeof(*nodes->order)));
  for (int32_t i = 0; i < net->sink_count; ++i)
    nodes->order[i] = (struct weft_router_order_t){weft_router_mesh_distance(b->mesh, root, net->sink[i].tile), i};
  qsort(nodes->order, sinks, sizeof(*nodes->order), by_distance);
  weft_router_search_clear_marks(b->search);
  set_mark(b, root, WEFT_ROUTER_MARK_TARGET, 0);
  start_box(b, root);
  b->query.upstream = true;
  b->query.own = weft_router_mesh_level(b->mesh, b->passing);
  b->query.cross = false;
  b->query.only = -1;
  for (size_t i = 0; i < sinks; ++i) WEFT_RETURN_IF_ERROR(reach_sink(b, net->sink[nodes->order[i].index]));
  return weft_ok();
}

static void abandon(build_t* b) {
  for (size_t i = 0; i < b->nodes->count; ++i) claim(b->mesh, &b->nodes->data[i], -1);
  b->nodes->count = 0;
}

static weft_status_t route_gather(build_t* b) {
  WEFT_RETURN_IF_ERROR(gather(b));
  if (!b->stuck) return weft_ok();
  abandon(b);
  b->chain = true;
  b->stuck = false;
  WEFT_RETURN_IF_ERROR(gather(b));
  if (b->stuck) return weft_error(INTERNAL, "%s: sources not joined within their part of the mesh", b->net->name);
  return weft_ok();
}

// Nodes of an earlier tree that stay; those that link to its node `first` or later are `shift` further on now.
static weft_status_t keep_nodes(build_t* b, const weft_router_node_t* node, int32_t count, int32_t first,
                                int32_t shift) {
  weft_router_builder_t* nodes = b->nodes;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->mesh->allocator, nodes, nodes->count + (size_t)count));
  for (int32_t i = 0; i < count; ++i) {
    weft_router_node_t* n = &nodes->data[nodes->count++];
    *n = node[i];
    if (n->link >= first) n->link += shift;
  }
  return weft_ok();
}

// The root's entry belongs to the gather part, its outputs to the multicast part.
static weft_status_t route_parts(build_t* b, const weft_router_tree_t* old, uint32_t parts, int32_t* out_gather_count) {
  weft_router_builder_t* nodes = b->nodes;
  uint16_t outputs = old->count ? old->node[0].outputs : 0;
  if (parts & WEFT_ROUTER_GATHER) {
    WEFT_RETURN_IF_ERROR(route_gather(b));
  } else {
    WEFT_RETURN_IF_ERROR(keep_nodes(b, old->node, old->gather_count + 1, 0, 0));
    nodes->data[0].outputs = 0;
    b->passing = b->net->wavelets;
  }
  *out_gather_count = (int32_t)nodes->count - 1;
  if (parts & WEFT_ROUTER_MULTICAST) return multicast(b);
  nodes->data[0].outputs = outputs;
  return keep_nodes(b, old->node + old->gather_count + 1, old->count - old->gather_count - 1, old->gather_count + 1,
                    *out_gather_count - old->gather_count);
}

static void claim_parts(weft_router_mesh_t* mesh, const weft_router_tree_t* tree, uint32_t parts, int32_t sign) {
  if (!tree->count) return;
  weft_router_node_t root = tree->node[0];
  if (parts & WEFT_ROUTER_GATHER) weft_router_mesh_use(mesh, root.tile, sign);
  if (parts & WEFT_ROUTER_MULTICAST) claim_links(mesh, &root, sign);
  int32_t from = parts & WEFT_ROUTER_GATHER ? 1 : tree->gather_count + 1;
  int32_t to = parts & WEFT_ROUTER_MULTICAST ? tree->count : tree->gather_count + 1;
  for (int32_t i = from; i < to; ++i) claim(mesh, &tree->node[i], sign);
}

weft_status_t weft_router_tree_route(weft_router_mesh_t* mesh, weft_router_search_t* search,
                                     weft_router_builder_t* builder, const weft_router_net_t* net, uint32_t parts,
                                     weft_router_tree_t* tree) {
  build_t b = {.mesh = mesh, .search = search, .nodes = builder, .net = net};
  builder->count = 0;
  claim_parts(mesh, tree, parts, -1);
  int32_t gather_count = 0;
  WEFT_RETURN_IF_ERROR(route_parts(&b, tree, parts, &gather_count));
  WEFT_RETURN_IF_ERROR(
      weft_allocator_realloc(mesh->allocator, builder->count, sizeof(*tree->node), (void**)&tree->node));
  memcpy(tree->node, builder->data, builder->count * sizeof(*tree->node));
  tree->count = (int32_t)builder->count;
  tree->gather_count = gather_count;
  return weft_ok();
}

void weft_router_tree_claim(weft_router_mesh_t* mesh, const weft_router_tree_t* tree) {
  claim_parts(mesh, tree, WEFT_ROUTER_GATHER | WEFT_ROUTER_MULTICAST, 1);
}

void weft_router_tree_rip(weft_router_mesh_t* mesh, weft_router_tree_t* tree) {
  claim_parts(mesh, tree, WEFT_ROUTER_GATHER | WEFT_ROUTER_MULTICAST, -1);
  weft_allocator_free(mesh->allocator, tree->node);
  *tree = (weft_router_tree_t){0};
}
