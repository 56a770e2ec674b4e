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
  bool chain; // each source joins at the router of the next one: always possible, seldom short
  bool stuck; // a source found no free port on the way of the next one
} build_t;

struct weft_router_order_t {
  int32_t distance, index;
};

void weft_router_builder_deinitialize(weft_router_builder_t* builder, weft_allocator_t allocator) {
  weft_allocator_free(allocator, builder->data);
  weft_allocator_free(allocator, builder->order);
  *builder = (weft_router_builder_t){0};
}

// Adds (sign 1) or takes back (-1) what a node uses.
static void claim(weft_router_mesh_t* mesh, const weft_router_node_t* node, int32_t sign, int64_t wavelets) {
  weft_router_mesh_use(mesh, node->tile, sign);
  for (uint32_t links = node->outputs & mesh->tile[node->tile].links; links; links &= links - 1)
    weft_router_mesh_load(mesh, node->tile, __builtin_ctz(links), sign * wavelets);
}

static weft_status_t add_node(build_t* b, int32_t tile, int32_t link, weft_direction_e direction, int32_t* out_node) {
  if (b->nodes->count >= INT32_MAX) return weft_error(OUT_OF_MEMORY, "out of memory: route of %s", b->net->name);
  *out_node = (int32_t)b->nodes->count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(
      b->mesh->allocator, b->nodes, (weft_router_node_t){.tile = tile, .link = link, .direction = (uint8_t)direction}));
  weft_router_mesh_use(b->mesh, tile, 1);
  return weft_ok();
}

static void add_output(build_t* b, int32_t node, weft_direction_e direction) {
  weft_router_node_t* n = &b->nodes->data[node];
  n->outputs |= (uint16_t)(1u << direction);
  if (b->mesh->tile[n->tile].links >> direction & 1)
    weft_router_mesh_load(b->mesh, n->tile, direction, b->net->wavelets);
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
    b->search->seen[next].from = (uint8_t)d;
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
    const weft_router_mark_t* mark = &b->search->mark[next];
    if (mark->stamp != b->search->stamp || mark->kind != WEFT_ROUTER_MARK_TARGET) continue;
    if (!weft_router_query_accepts(&b->query, mark, d)) continue;
    int32_t cost = weft_router_query_link_cost(mesh, &b->query, start, d);
    if (cost >= least) continue;
    least = cost;
    best = next;
    b->search->seen[next].from = (uint8_t)d;
  }
  return best;
}

// Gather
// ---------------------------------------------------------------------------------------------------------------

// The way found becomes nodes, from where it joins up to the source.
static weft_status_t add_gather_way(build_t* b, int32_t hit) {
  int32_t node = b->search->mark[hit].node;
  for (int32_t tile = hit; tile != b->query.start;) {
    weft_direction_e d = b->search->seen[tile].from, back = weft_direction_opposite(d);
    tile -= b->mesh->step[d];
    prepend_input(b, node, back);
    b->search->mark[b->nodes->data[node].tile].ports |= (uint16_t)(1u << back);
    WEFT_RETURN_IF_ERROR(add_node(b, tile, node, d, &node));
    add_output(b, node, d);
    set_mark(b, tile, WEFT_ROUTER_MARK_TARGET, node);
  }
  return weft_ok();
}

// What lies upstream of the place of joining is behind the new source now: nothing may be put before it any more.
static void retire(build_t* b, int32_t from, int32_t join) {
  for (int32_t n = from; n != join; n = b->nodes->data[n].link) {
    weft_router_mark_t* mark = &b->search->mark[b->nodes->data[n].tile];
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
// source that its own net has walled in would have the whole mesh searched. The last resort is to end at the router of
// source k + 1 itself, past whatever is in between.
static weft_status_t find_way(build_t* b, bool passed, int32_t* out_hit) {
  b->query.cross = b->chain;
  b->query.only = b->chain ? b->nodes->first : -1;
  *out_hit = adjacent_target(b);
  if (*out_hit >= 0) return weft_ok();
  if (!b->chain) {
    box_first_path(b);
    b->query.limit = longest_way(b);
    if (!passed) WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, out_hit));
    b->query.limit = 0;
    b->query.cross = true;
    if (*out_hit < 0) WEFT_RETURN_IF_ERROR(weft_router_search_run(b->search, &b->query, out_hit));
    b->query.only = b->nodes->first;
  }
  if (*out_hit >= 0) return weft_ok();
  start_box(b, b->nodes->data[b->nodes->first].tile);
  return weft_router_search_run(b->search, &b->query, out_hit);
}

static weft_status_t join_source(build_t* b, int32_t k) {
  weft_router_terminal_t source = b->net->source[k];
  b->query.start = source.tile;
  b->query.next_source = k - 1;
  weft_router_mark_t* mark = weft_router_search_mark(b->search, source.tile);
  int32_t first = b->nodes->first;
  if (mark->kind == WEFT_ROUTER_MARK_TARGET && (!b->chain || mark->node == first)) {
    retire(b, first, mark->node);
    b->nodes->first = mark->node;
    prepend_input(b, mark->node, source.direction);
    return weft_ok();
  }
  int32_t hit;
  WEFT_RETURN_IF_ERROR(find_way(b, mark->kind == WEFT_ROUTER_MARK_BLOCKED, &hit));
  b->stuck = hit < 0;
  if (b->stuck) return weft_ok();
  retire(b, first, b->search->mark[hit].node);
  WEFT_RETURN_IF_ERROR(add_gather_way(b, hit));
  b->nodes->first = (int32_t)b->nodes->count - 1;
  prepend_input(b, b->nodes->first, source.direction);
  return weft_ok();
}

static weft_status_t gather(build_t* b) {
  const weft_router_net_t* net = b->net;
  int32_t last = net->source_count - 1, root = 0;
  b->query.upstream = false;
  weft_router_search_clear_marks(b->search);
  for (int32_t k = 0; k < last; ++k) set_mark(b, net->source[k].tile, WEFT_ROUTER_MARK_SOURCE, k);
  WEFT_RETURN_IF_ERROR(add_node(b, net->source[last].tile, -1, WEFT_DIRECTION_RAMP, &root));
  prepend_input(b, root, net->source[last].direction);
  set_mark(b, net->source[last].tile, WEFT_ROUTER_MARK_TARGET, root);
  b->nodes->first = root;
  for (int32_t k = last - 1; k >= 0 && !b->stuck; --k) WEFT_RETURN_IF_ERROR(join_source(b, k));
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
  int32_t node = b->search->mark[hit].node;
  for (int32_t tile = hit; tile != b->query.start;) {
    weft_direction_e from = b->search->seen[tile].from; // from the sink's side, so where the wavelets will come from
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
  b->query.cross = false;
  b->query.only = -1;
  for (size_t i = 0; i < sinks; ++i) WEFT_RETURN_IF_ERROR(reach_sink(b, net->sink[nodes->order[i].index]));
  return weft_ok();
}

static void abandon(build_t* b) {
  for (size_t i = 0; i < b->nodes->count; ++i) claim(b->mesh, &b->nodes->data[i], -1, b->net->wavelets);
  b->nodes->count = 0;
}

weft_status_t weft_router_tree_route(weft_router_mesh_t* mesh, weft_router_search_t* search,
                                     weft_router_builder_t* builder, const weft_router_net_t* net,
                                     weft_router_tree_t* out_tree) {
  build_t b = {.mesh = mesh, .search = search, .nodes = builder, .net = net};
  builder->count = 0;
  weft_status_t status = gather(&b);
  if (!status && b.stuck) {
    abandon(&b);
    b.chain = true;
    b.stuck = false;
    status = gather(&b);
    if (!status && b.stuck)
      status = weft_error(INTERNAL, "%s: sources not joined within their part of the mesh", net->name);
  }
  int32_t gather_count = (int32_t)builder->count - 1;
  if (!status) status = multicast(&b);
  void* copy = NULL;
  if (!status) status = weft_allocator_realloc(mesh->allocator, builder->count, sizeof(*builder->data), &copy);
  if (status) {
    abandon(&b);
    return status;
  }
  memcpy(copy, builder->data, builder->count * sizeof(*builder->data));
  *out_tree = (weft_router_tree_t){copy, (int32_t)builder->count, gather_count};
  return weft_ok();
}

void weft_router_tree_claim(weft_router_mesh_t* mesh, const weft_router_net_t* net, const weft_router_tree_t* tree) {
  for (int32_t i = 0; i < tree->count; ++i) claim(mesh, &tree->node[i], 1, net->wavelets);
}

void weft_router_tree_rip(weft_router_mesh_t* mesh, const weft_router_net_t* net, weft_router_tree_t* tree) {
  for (int32_t i = 0; i < tree->count; ++i) claim(mesh, &tree->node[i], -1, net->wavelets);
  weft_allocator_free(mesh->allocator, tree->node);
  *tree = (weft_router_tree_t){0};
}
