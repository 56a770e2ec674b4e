// A rough first tree.
#include <math.h>

#include "placer/slicing_peel.h"

enum { STARTS = 40 };

typedef struct starter_t {
  weft_slicing_tree_t* tree;
  weft_rng_t* rng;
  int32_t* order;
  int32_t next; // inner node
} starter_t;

static double least_area(const weft_slicing_tree_t* t, int32_t b) {
  double least = INFINITY;
  for (int32_t s = 0; s < t->problem->block[b].shape_count; ++s) {
    const weft_placer_shape_t* shape = &t->problem->block[b].shape[s];
    if (shape->time <= t->target) least = fmin(least, (double)shape->width * shape->height);
  }
  return least;
}

// Blocks order[from .. to) in a rectangle of about this size.
static int32_t halve(starter_t* s, int32_t from, int32_t to, double width, double height) {
  weft_slicing_tree_t* t = s->tree;
  if (to - from == 1) return s->order[from];
  double total = 0, first = 0;
  for (int32_t i = from; i < to; ++i) total += least_area(t, s->order[i]);
  double share = total * (0.35 + 0.3 * weft_rng_unit(s->rng));
  int32_t middle = from;
  while (middle < to - 1 && (middle == from || first < share)) first += least_area(t, s->order[middle++]);
  double part = first / total;
  int32_t n = s->next++;
  bool stacked = height > width;
  int32_t a = halve(s, from, middle, stacked ? width : width * part, stacked ? height * part : height);
  int32_t b = halve(s, middle, to, stacked ? width : width * (1 - part), stacked ? height * (1 - part) : height);
  t->node[n] = (weft_slicing_node_t){.parent = -1, .child = {a, b}, .stacked = stacked};
  t->node[a].parent = t->node[b].parent = n;
  return n;
}

static int64_t least_of_curve(const weft_slicing_curve_t* curve) {
  int64_t least = INT64_MAX;
  for (int32_t i = 0; i < curve->count; ++i) {
    int64_t area = (int64_t)curve->corner[i].width * curve->corner[i].height;
    if (area < least) least = area;
  }
  return least;
}

// Bottom up, each cut the way that wastes less.
static void turn_cuts(weft_slicing_tree_t* t, int32_t n) {
  weft_slicing_node_t* node = &t->node[n];
  if (node->child[0] < 0) return;
  turn_cuts(t, node->child[0]);
  turn_cuts(t, node->child[1]);
  weft_slicing_combine(t, n);
  int64_t area = least_of_curve(weft_slicing_curve(t, n));
  node->stacked = !node->stacked;
  weft_slicing_combine(t, n);
  if (least_of_curve(weft_slicing_curve(t, n)) < area) return;
  node->stacked = !node->stacked;
  weft_slicing_combine(t, n);
}

bool weft_slicing_start(weft_slicing_tree_t* t, weft_rng_t* rng) {
  int32_t blocks = t->problem->block_count;
  int32_t* order = t->most;
  weft_slicing_dataflow_order(t, t->stack, order);
  for (int32_t b = 0; b < blocks; ++b) t->node[b].spare = 0;
  for (int try = 0; try < 2 * STARTS; ++try) {
    starter_t s = {.tree = t, .rng = rng, .order = order, .next = blocks};
    t->root = halve(&s, 0, blocks, t->width, t->height);
    t->node[t->root].parent = -1;
    if (try < STARTS)
      weft_slicing_combine_all(t);
    else // blocks are too long and thin to be cut by the room that there is
      turn_cuts(t, t->root);
    if (weft_slicing_curve(t, t->root)->count) return true;
  }
  return false;
}
