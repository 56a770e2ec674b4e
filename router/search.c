#include "router/search.h"

#include <string.h>

#include "base/array.h"

weft_status_t weft_router_search_initialize(const weft_router_mesh_t* mesh, weft_router_search_t* out_search) {
  *out_search = (weft_router_search_t){.mesh = mesh, .stamp = 1, .epoch = 0};
  weft_router_search_t* search = out_search;
  size_t tiles = (size_t)mesh->tiles;
  weft_status_t status = weft_allocator_calloc(mesh->allocator, tiles, sizeof(*search->at), (void**)&search->at);
  if (status) weft_router_search_deinitialize(search);
  return status;
}

void weft_router_search_deinitialize(weft_router_search_t* search) {
  if (!search->mesh) return;
  weft_allocator_t allocator = search->mesh->allocator;
  weft_allocator_free(allocator, search->at);
  weft_allocator_free(allocator, search->heap);
  memset(search, 0, sizeof(*search));
}

void weft_router_search_clear_marks(weft_router_search_t* search) {
  if (++search->stamp) return;
  for (int32_t t = 0; t < search->mesh->tiles; ++t) search->at[t].mark.stamp = 0;
  search->stamp = 1;
}

static void next_epoch(weft_router_search_t* search) {
  search->heap_count = 0;
  if (++search->epoch) return;
  for (int32_t t = 0; t < search->mesh->tiles; ++t) search->at[t].seen.epoch = 0;
  search->epoch = 1;
}

// Total order on (key, tile), so that the result doesn't depend on the heap's shape.
static inline bool item_before(weft_router_heap_item_t a, weft_router_heap_item_t b) {
  return a.key < b.key || (a.key == b.key && a.tile < b.tile);
}

static weft_status_t heap_push(weft_router_search_t* search, weft_router_heap_item_t item) {
  if (search->heap_count == search->heap_capacity)
    WEFT_RETURN_IF_ERROR(weft_array_reserve(search->mesh->allocator, (void**)&search->heap, &search->heap_capacity,
                                            search->heap_count + 1, sizeof(*search->heap)));
  weft_router_heap_item_t* heap = search->heap;
  size_t i = search->heap_count++;
  for (size_t up; i && item_before(item, heap[up = (i - 1) / 4]); i = up) heap[i] = heap[up];
  heap[i] = item;
  return weft_ok();
}

static weft_router_heap_item_t heap_pop(weft_router_search_t* search) {
  weft_router_heap_item_t* heap = search->heap;
  weft_router_heap_item_t top = heap[0], last = heap[--search->heap_count];
  size_t i = 0, n = search->heap_count;
  for (;;) {
    size_t child = 4 * i + 1, best = child;
    if (child >= n) break;
    for (size_t c = child + 1; c < child + 4 && c < n; ++c)
      if (item_before(heap[c], heap[best])) best = c;
    if (!item_before(heap[best], last)) break;
    heap[i] = heap[best];
    i = best;
  }
  heap[i] = last;
  return top;
}

// Hops to the box of the targets: never more than to a target.
static inline int32_t bound(const weft_router_mesh_t* mesh, const weft_router_query_t* query, int32_t x, int32_t y) {
  int32_t dx = x < query->x0 ? query->x0 - x : x > query->x1 ? x - query->x1 : 0;
  int32_t dy = y < query->y0 ? query->y0 - y : y > query->y1 ? y - query->y1 : 0;
  return weft_router_mesh_hops(mesh, dx, dy);
}

// Hops still to go count a thirty-second more than they cost on an idle mesh, up to 32 hops, as links there will have
// some load: the way found may cost as much more than the cheapest, but far fewer tiles are looked at. (With an eighth
// there are fewer still, but ways go straight through what is full.) Equal estimates: nearer to the target first.
static inline uint64_t key_of(int64_t cost, int32_t hops) {
  enum { SLACK = 32 };
  int64_t slack = hops < 32 * SLACK ? hops * (WEFT_ROUTER_HOP / 32) : SLACK * WEFT_ROUTER_HOP;
  return (uint64_t)(cost + (int64_t)hops * WEFT_ROUTER_HOP + slack) << 16 | (uint64_t)(hops < 65535 ? hops : 65535);
}

// Cost of the step from `tile` in direction `d` into `next`; -1: not allowed.
static inline int64_t step_cost(const weft_router_search_t* search, const weft_router_query_t* query, int32_t tile,
                                int d, int32_t next) {
  const weft_router_mesh_t* mesh = search->mesh;
  int64_t cost = WEFT_ROUTER_HOP + weft_router_query_link_cost(mesh, query, tile, d);
  const weft_router_mark_t* mark = &search->at[next].mark;
  if (mark->stamp == search->stamp) switch (mark->kind) {
    case WEFT_ROUTER_MARK_TARGET:
      if (weft_router_query_accepts(query, mark, d)) return cost;
      if (query->only < 0 || mark->node == query->only) return -1;
      break;
    case WEFT_ROUTER_MARK_BLOCKED:
      if (!query->cross) return -1;
      break;
    // Less than the two hops that a way round takes: a detour for this alone would cost more colours than it saves.
    case WEFT_ROUTER_MARK_SOURCE:
      cost += mark->node == query->next_source ? 0 : WEFT_ROUTER_HOP;
      break;
    default:
      break;
    }
  return cost + weft_router_mesh_penalty(mesh, next);
}

weft_status_t weft_router_search_run(weft_router_search_t* search, const weft_router_query_t* query, int32_t* out_hit) {
  const weft_router_mesh_t* mesh = search->mesh;
  int32_t width = mesh->width;
  next_epoch(search);
  *out_hit = -1;
  int32_t start = query->start;
  search->at[start].seen = (weft_router_seen_t){.epoch = search->epoch};
  int32_t hops = bound(mesh, query, start % width, start / width);
  WEFT_RETURN_IF_ERROR(heap_push(search, (weft_router_heap_item_t){key_of(0, hops), start}));
  while (search->heap_count) {
    weft_router_heap_item_t top = heap_pop(search);
    int32_t tile = top.tile;
    if (query->limit && (int64_t)(top.key >> 16) > query->limit) break;
    weft_router_seen_t* here = &search->at[tile].seen;
    if (here->closed) continue;
    here->closed = true;
    ++search->looked_at;
    const weft_router_mark_t* mark = &search->at[tile].mark;
    if (tile != start && mark->stamp == search->stamp && mark->kind == WEFT_ROUTER_MARK_TARGET &&
        (query->only < 0 || mark->node == query->only)) {
      *out_hit = tile;
      break;
    }
    int32_t x = tile % width, y = tile / width;
    for (uint32_t links = mesh->tile[tile].links; links; links &= links - 1) {
      int d = __builtin_ctz(links);
      int32_t next = tile + mesh->step[d];
      weft_router_seen_t* there = &search->at[next].seen;
      bool known = there->epoch == search->epoch;
      if (known && there->closed) continue;
      int64_t cost = step_cost(search, query, tile, d, next);
      if (cost < 0) continue;
      cost += here->cost;
      if (known && there->cost <= cost) continue;
      *there = (weft_router_seen_t){.cost = cost, .epoch = search->epoch, .from = (uint8_t)d};
      hops = bound(mesh, query, x + weft_direction_dx[d], y + weft_direction_dy[d]);
      WEFT_RETURN_IF_ERROR(heap_push(search, (weft_router_heap_item_t){key_of(cost, hops), next}));
    }
  }
  return weft_ok();
}
