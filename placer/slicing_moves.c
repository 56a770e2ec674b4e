#include "placer/slicing_moves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COMPACTED_AWAY = 8 }; // tiles of overflow that compaction can be hoped to take away

weft_status_t weft_slicing_walk_create(weft_slicing_tree_t* tree, weft_arena_t* arena, weft_slicing_walk_t* out_walk) {
  size_t nodes = (size_t)tree->nodes + 1;
  *out_walk = (weft_slicing_walk_t){.tree = tree, .found_cost = INFINITY};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->before));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->best));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->spot_before));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->mark));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->changed));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &out_walk->shown));
  if (tree->problem->weight_overload > 0) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 1, &out_walk->demand));
    weft_placer_demand_initialize(tree->problem, out_walk->demand);
  }
  return WEFT_ARENA_NEW(arena, nodes, &out_walk->found);
}

static int32_t draw(weft_rng_t* rng, int32_t bound) {
  return (int32_t)weft_rng_below(rng, (uint64_t)bound);
}

static void mark_up(weft_slicing_walk_t* w, int32_t n) {
  for (; n >= 0 && w->mark[n] != w->stamp; n = w->tree->node[n].parent) w->mark[n] = w->stamp;
}

static void combine_marked(weft_slicing_walk_t* w, int32_t n) {
  if (w->mark[n] != w->stamp || w->tree->node[n].child[0] < 0) return;
  combine_marked(w, w->tree->node[n].child[0]);
  combine_marked(w, w->tree->node[n].child[1]);
  weft_slicing_combine(w->tree, n);
  w->changed[w->changed_count++] = n;
}

static bool is_above(const weft_slicing_tree_t* t, int32_t above, int32_t n) {
  for (; n >= 0; n = t->node[n].parent) {
    if (n == above) return true;
  }
  return false;
}

static int32_t* slot_of(weft_slicing_tree_t* t, int32_t n) {
  int32_t parent = t->node[n].parent;
  if (parent < 0) return &t->root;
  return &t->node[parent].child[t->node[parent].child[1] == n];
}

// From a leaf up by a few levels: small subtrees are drawn more often.
static int32_t climb(const weft_slicing_tree_t* t, int32_t n, double chance, weft_rng_t* rng) {
  while (t->node[n].parent >= 0 && weft_rng_unit(rng) < chance) n = t->node[n].parent;
  return n;
}

// A leaf that `b` has an edge with, or any other.
static int32_t partner(const weft_slicing_tree_t* t, int32_t b, double chance, weft_rng_t* rng) {
  int32_t start = t->incidence->start[b], count = t->incidence->start[b + 1] - start;
  if (count && weft_rng_unit(rng) < chance) {
    const weft_placer_edge_t* edge = &t->problem->edge[t->incidence->index[start + draw(rng, count)]];
    int32_t other = edge->from == b ? edge->to : edge->from;
    if (other >= 0 && other != b) return other;
  }
  int32_t other = draw(rng, t->problem->block_count - 1);
  return other + (other >= b);
}

// A leaf one or two edges away, or any other: `chance` for each edge.
static int32_t neighbour(const weft_slicing_tree_t* t, int32_t b, double chance, weft_rng_t* rng) {
  int32_t other = partner(t, b, chance, rng);
  if (weft_rng_unit(rng) < 0.5) return other;
  int32_t further = partner(t, other, chance, rng);
  return further == b ? other : further;
}

static bool swap_subtrees(weft_slicing_walk_t* w, int32_t a, int32_t b) {
  weft_slicing_tree_t* t = w->tree;
  if (a == b || is_above(t, a, b) || is_above(t, b, a)) return false;
  int32_t *slot_a = slot_of(t, a), *slot_b = slot_of(t, b), parent = t->node[a].parent;
  *slot_a = b;
  *slot_b = a;
  t->node[a].parent = t->node[b].parent;
  t->node[b].parent = parent;
  mark_up(w, t->node[a].parent);
  mark_up(w, t->node[b].parent);
  return true;
}

// Takes a subtree out and sets it beside another node; more often than not into the row that this lies in.
static bool regraft(weft_slicing_walk_t* w, int32_t moved, int32_t to, weft_rng_t* rng) {
  weft_slicing_tree_t* t = w->tree;
  int32_t joint = t->node[moved].parent;
  if (joint < 0) return false;
  int32_t sibling = t->node[joint].child[t->node[joint].child[0] == moved];
  if (to == joint) to = sibling;
  if (is_above(t, moved, to)) return false;
  *slot_of(t, joint) = sibling;
  t->node[sibling].parent = t->node[joint].parent;
  mark_up(w, t->node[joint].parent);
  int32_t row = t->node[to].parent;
  *slot_of(t, to) = joint;
  t->node[joint].parent = t->node[to].parent;
  t->node[to].parent = joint;
  uint64_t bits = weft_rng_next(rng) >> 60;
  int first = bits & 1;
  bool stacked = bits >> 1 & 1;
  if (row >= 0 && bits >> 2) stacked = t->node[row].stacked;
  t->node[joint].child[first] = moved;
  t->node[joint].child[1 - first] = to;
  t->node[joint].stacked = stacked;
  mark_up(w, joint);
  return true;
}

// ((a b) c) <-> (a (b c)), with the two cuts where they were or exchanged.
static bool rotate(weft_slicing_walk_t* w, int32_t upper, bool exchange) {
  weft_slicing_tree_t* t = w->tree;
  weft_slicing_node_t* u = &t->node[upper];
  int side = t->node[u->child[0]].child[0] >= 0 ? 0 : 1; // where the inner child is
  int32_t lower = u->child[side];
  weft_slicing_node_t* l = &t->node[lower];
  if (l->child[0] < 0) return false;
  int32_t a = l->child[side], b = l->child[1 - side], c = u->child[1 - side];
  u->child[side] = a;
  u->child[1 - side] = lower;
  l->child[side] = b;
  l->child[1 - side] = c;
  t->node[a].parent = upper;
  t->node[c].parent = lower;
  if (exchange) {
    bool stacked = u->stacked;
    u->stacked = l->stacked;
    l->stacked = stacked;
  }
  mark_up(w, lower);
  return true;
}

// Turns a subtree round in x or in y.
static void mirror(weft_slicing_tree_t* t, int32_t n, bool stacked) {
  weft_slicing_node_t* node = &t->node[n];
  if (node->child[0] < 0) return;
  node->turned ^= node->stacked == stacked;
  mirror(t, node->child[0], stacked);
  mirror(t, node->child[1], stacked);
}

// Turns a subtree by a quarter: every cut the other way.
static void turn(weft_slicing_walk_t* w, int32_t n) {
  weft_slicing_node_t* node = &w->tree->node[n];
  if (node->child[0] < 0) return;
  node->stacked = !node->stacked;
  mark_up(w, n);
  turn(w, node->child[0]);
  turn(w, node->child[1]);
}

static bool change(weft_slicing_walk_t* w, weft_rng_t* rng) {
  weft_slicing_tree_t* t = w->tree;
  int32_t blocks = t->problem->block_count, kind = draw(rng, 100);
  int32_t leaf = draw(rng, blocks), inner = blocks + draw(rng, blocks - 1);
  if (kind < 30) return swap_subtrees(w, leaf, neighbour(t, leaf, 0.8, rng));
  if (kind < 40) return swap_subtrees(w, climb(t, leaf, 0.5, rng), climb(t, neighbour(t, leaf, 0.8, rng), 0.5, rng));
  if (kind < 76) {
    int32_t to = climb(t, neighbour(t, leaf, 0.85, rng), 0.4, rng);
    return regraft(w, climb(t, leaf, 0.25, rng), to, rng);
  }
  if (kind < 84) return rotate(w, inner, draw(rng, 2));
  if (kind < 86) {
    t->node[inner].stacked = !t->node[inner].stacked;
    mark_up(w, inner);
    return true;
  }
  if (kind < 91) {
    mirror(t, inner, draw(rng, 2));
    return true;
  }
  if (kind < 97) {
    t->node[inner].turned = !t->node[inner].turned;
    return true;
  }
  if (kind < 98) {
    turn(w, climb(t, t->node[leaf].parent, 0.4, rng));
    return true;
  }
  if (kind < 99) {
    t->node[inner].spare = (uint8_t)((t->node[inner].spare + 1 + draw(rng, 2)) % 3);
    return true;
  }
  t->node[leaf].spare ^= 1;
  return true;
}

static void take_back(weft_slicing_walk_t* w) {
  weft_slicing_tree_t* t = w->tree;
  memcpy(t->node, w->before, sizeof *t->node * (size_t)t->nodes);
  t->root = w->before_root;
  for (int32_t i = 0; i < w->changed_count; ++i) t->present[w->changed[i]] ^= 1;
}

static void undo(void* self) {
  weft_slicing_walk_t* w = self;
  take_back(w);
  weft_slicing_spot_t* spot = w->tree->spot;
  w->tree->spot = w->spot_before;
  w->spot_before = spot;
  w->tree->wire = w->wire_before;
  w->tree->overflow = w->overflow_before;
  w->tree->saved = w->saved_before;
}

static bool propose(void* self, weft_rng_t* rng, double range, double limit, double* out_delta) {
  (void)range;
  weft_slicing_walk_t* w = self;
  weft_slicing_tree_t* t = w->tree;
  if (t->problem->block_count < 2) return false;
  if (w->outer && w->outer->cancelled && *w->outer->cancelled) w->stop = 1;
  memcpy(w->before, t->node, sizeof *t->node * (size_t)t->nodes);
  w->before_root = t->root;
  w->changed_count = 0;
  ++w->stamp;
  double cost = weft_slicing_cost(t);
  w->wire_before = t->wire;
  w->overflow_before = t->overflow;
  w->saved_before = t->saved;
  if (!change(w, rng)) {
    take_back(w);
    return false;
  }
  combine_marked(w, t->root);
  int32_t corner = 0, overflow = weft_slicing_overflow(t, &corner);
  // A single move seldom saves a third of the wire: what is hopeless by its overflow alone is not laid out.
  double least = t->problem->weight_time * t->target + 0.67 * t->problem->weight_wire * t->wire +
                 t->overflow_weight * (overflow - MOST_COMPACTED_AWAY);
  if (overflow < 0 || least - cost > limit) {
    take_back(w);
    return false;
  }
  weft_slicing_spot_t* spot = t->spot;
  t->spot = w->spot_before;
  w->spot_before = spot;
  if (!weft_slicing_realise(t, cost + limit)) {
    undo(w);
    return false;
  }
  *out_delta = weft_slicing_cost(t) - cost;
  return true;
}

static void keep(void* self) {
  weft_slicing_walk_t* w = self;
  if (w->tree->overflow > 0) return;
  double cost = weft_slicing_cost(w->tree);
  if (cost >= w->found_cost) return;
  if (w->demand) {
    weft_slicing_export(w->tree, w->shown);
    weft_placer_demand_fill(w->demand, w->shown);
    cost += w->tree->problem->weight_overload * weft_placer_demand_over(w->demand, w->tree->target);
    if (cost >= w->found_cost) return;
  }
  w->found_cost = cost;
  w->stop = w->stop_when_found;
  weft_slicing_export(w->tree, w->found);
}

static double recompute(void* self) {
  weft_slicing_walk_t* w = self;
  weft_slicing_combine_all(w->tree);
  if (!weft_slicing_realise(w->tree, INFINITY)) return INFINITY;
  keep(w);
  return weft_slicing_cost(w->tree);
}

static void save_best(void* self) {
  weft_slicing_walk_t* w = self;
  memcpy(w->best, w->tree->node, sizeof *w->best * (size_t)w->tree->nodes);
  w->best_root = w->tree->root;
}

static void restore_best(void* self) {
  weft_slicing_walk_t* w = self;
  memcpy(w->tree->node, w->best, sizeof *w->best * (size_t)w->tree->nodes);
  w->tree->root = w->best_root;
}

static void describe(void* self, char* text, int size) {
  const weft_slicing_walk_t* w = self;
  snprintf(text, (size_t)size, "time %.6g  wire %.6g  over %g  found %.7g", w->tree->target, w->tree->wire,
           w->tree->overflow, w->found_cost);
}

static void frame(void* self, double temperature) {
  const weft_slicing_walk_t* w = self;
  weft_slicing_export(w->tree, w->shown);
  w->watch->frame(w->watch->frame_self, w->shown, temperature, weft_slicing_cost(w->tree));
}

weft_placer_moves_t weft_slicing_walk_moves(weft_slicing_walk_t* walk) {
  return (weft_placer_moves_t){.self = walk,
                               .propose = propose,
                               .keep = keep,
                               .undo = undo,
                               .recompute = recompute,
                               .save_best = save_best,
                               .restore_best = restore_best,
                               .describe = describe,
                               .frame = walk->watch ? frame : NULL};
}
