#include "placer/slicing_peel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_STRIP = 64, GROWTH = 4, TOO_LONG = 1 << 20 };

// Some blocks laid: where from, by which strip, what is left.
typedef struct state_t {
  int32_t parent;              // in the list of the level before it
  int16_t count;               // of blocks in the strip
  int8_t side;                 // 0 left, 1 right, 2 below, 3 above
  bool reversed;               // the strip runs towards lower coordinates
  int32_t thick;               // of the strip
  int32_t x, y, width, height; // left free
  double wire, score;
} state_t;

typedef struct level_t {
  state_t* state;
  int32_t count;
  double worst; // score that the beam has for sure no room for any more
} level_t;

// An edge from a block that is still to be laid to one that lies, or to an anchor.
typedef struct crossing_t {
  int32_t rank, block, other;
  double weight;
} crossing_t;

// A strip of the next blocks in a room: how thick it gets and its own wire. The same for all states of a level.
typedef struct strip_t {
  int32_t level, thick; // 0: it doesn't fit
  double wire;
} strip_t;

typedef struct peeler_t {
  weft_slicing_tree_t* tree;
  const weft_slicing_peel_t* peel;
  weft_rng_t* rng;
  int32_t blocks, window; // levels whose places are at hand
  int32_t *order, *rank;  // rank: place in the order
  int32_t* length[2];     // [(blocks + 1) * (most + 1)] sums over the order: length of the blocks before at a thickness
  int32_t lines[2];       // most thickness + 1: of columns, of rows
  double* area;           // [blocks + 1] sums of the least areas
  level_t* level;         // [blocks + 1]
  int32_t* place;         // [window][beam][blocks][2] twice the centres
  crossing_t* crossing;   // of the present level, by rank
  int32_t crossing_count;
  strip_t* strip[2]; // [lines of the room][LONGEST_STRIP + 1] found in this level
} peeler_t;

void weft_slicing_dataflow_order(const weft_slicing_tree_t* t, int32_t* scratch, int32_t* order) {
  const weft_placer_problem_t* p = t->problem;
  int32_t *missing = scratch, *stack = scratch + p->block_count, count = 0, depth = 0;
  for (int32_t b = 0; b < p->block_count; ++b) missing[b] = 0;
  for (int32_t e = 0; e < p->edge_count; ++e) {
    if (p->edge[e].from >= 0 && p->edge[e].to >= 0 && p->edge[e].from != p->edge[e].to) ++missing[p->edge[e].to];
  }
  for (int32_t start = 0; start < p->block_count; ++start) {
    if (missing[start] != 0) continue;
    stack[depth++] = start;
    missing[start] = -1;
    while (depth) {
      int32_t b = stack[--depth];
      order[count++] = b;
      for (int32_t i = t->incidence->start[b]; i < t->incidence->start[b + 1]; ++i) {
        const weft_placer_edge_t* edge = &p->edge[t->incidence->index[i]];
        if (edge->from != b || edge->to < 0 || edge->to == b || --missing[edge->to]) continue;
        missing[edge->to] = -1;
        stack[depth++] = edge->to;
      }
    }
  }
  for (int32_t b = 0; b < p->block_count; ++b) { // on a cycle
    if (missing[b] >= 0) order[count++] = b;
  }
}

// Length of a block in a strip of a thickness; columns (side 0) are as thick as they are wide.
static int32_t block_length(const peeler_t* p, int side, int32_t at, int32_t thick) {
  const int32_t* sums = p->length[side] + (size_t)at * (size_t)p->lines[side] + thick;
  return sums[p->lines[side]] - sums[0];
}

static int32_t strip_length(const peeler_t* p, int side, int32_t at, int32_t count, int32_t thick) {
  const int32_t* sums = p->length[side] + (size_t)at * (size_t)p->lines[side] + thick;
  return sums[(size_t)count * (size_t)p->lines[side]] - sums[0];
}

static void sum_lengths(peeler_t* p) {
  for (int side = 0; side < 2; ++side) {
    for (int32_t i = 0; i < p->blocks; ++i) {
      const weft_slicing_curve_t* curve = weft_slicing_curve(p->tree, p->order[i]);
      const int32_t* before = p->length[side] + (size_t)i * (size_t)p->lines[side];
      int32_t* after = p->length[side] + (size_t)(i + 1) * (size_t)p->lines[side];
      double least = INFINITY;
      for (int32_t line = 0; line < p->lines[side]; ++line) after[line] = before[line] + TOO_LONG;
      for (int32_t c = 0; c < curve->count; ++c) {
        int32_t thick = side ? curve->corner[c].height : curve->corner[c].width;
        int32_t length = side ? curve->corner[c].width : curve->corner[c].height;
        least = fmin(least, (double)thick * length);
        for (int32_t line = thick; line < p->lines[side] && after[line] - before[line] > length; ++line)
          after[line] = before[line] + length;
      }
      p->area[i + 1] = p->area[i] + least;
    }
  }
}

static int32_t* places(const peeler_t* p, int32_t level, int32_t state) {
  size_t row = (size_t)(level % p->window) * (size_t)p->peel->beam + (size_t)state;
  return p->place + row * 2 * (size_t)p->blocks;
}

// Twice the centre of the block at `i` in the order, in a strip that begins at `at`.
static void centre_in_strip(const peeler_t* p, const state_t* before, const state_t* strip, int32_t at, int32_t i,
                            int32_t out_centre[2]) {
  int side = strip->side / 2;
  int32_t across = side ? before->y : before->x, along = side ? before->x : before->y;
  if (strip->side & 1) across += (side ? before->height : before->width) - strip->thick;
  int32_t passed = strip_length(p, side, at, i - at, strip->thick), length = block_length(p, side, i, strip->thick);
  if (strip->reversed)
    along += (side ? before->width : before->height) - passed - length;
  else
    along += passed;
  out_centre[side] = 2 * across + strip->thick;
  out_centre[1 - side] = 2 * along + length;
}

static void lay_strip(const peeler_t* p, const state_t* before, const state_t* strip, int32_t at, int32_t* place) {
  for (int32_t i = at; i < at + strip->count; ++i) centre_in_strip(p, before, strip, at, i, &place[2 * p->order[i]]);
}

// Wire of a strip's blocks to what lies already.
static double crossing_wire(const peeler_t* p, const state_t* before, const state_t* strip, int32_t at,
                            const int32_t* place) {
  double wire = 0;
  int32_t centre[2] = {0, 0}, last = -1;
  for (int32_t c = 0; c < p->crossing_count && p->crossing[c].rank < at + strip->count; ++c) {
    const crossing_t* crossing = &p->crossing[c];
    if (crossing->rank != last) centre_in_strip(p, before, strip, at, crossing->rank, centre);
    last = crossing->rank;
    const int32_t* end = crossing->other < 0 ? p->tree->anchor[-1 - crossing->other] : &place[2 * crossing->other];
    wire += crossing->weight * (abs(end[0] - centre[0]) + abs(end[1] - centre[1])) / 2;
  }
  return wire;
}

static void list_crossings(peeler_t* p, int32_t at) {
  const weft_slicing_tree_t* t = p->tree;
  p->crossing_count = 0;
  for (int32_t i = at; i < p->blocks && i < at + LONGEST_STRIP; ++i) {
    int32_t b = p->order[i];
    for (int32_t e = t->partner_start[b]; e < t->partner_start[b + 1]; ++e) {
      int32_t other = t->partner[e].other;
      if (other >= 0 && p->rank[other] >= at) continue;
      p->crossing[p->crossing_count++] = (crossing_t){i, b, other, t->partner[e].weight};
    }
  }
}

// The thinnest strip of the next `count` blocks in a room at most `most` thick.
static const strip_t* find_strip(peeler_t* p, int side, int32_t at, int32_t count, int32_t room) {
  strip_t* strip = &p->strip[side][(size_t)room * (LONGEST_STRIP + 1) + (size_t)count];
  if (strip->level == at + 1) return strip;
  *strip = (strip_t){.level = at + 1};
  int32_t low = 0, high = p->lines[side] - 1;
  if (strip_length(p, side, at, count, high) > room) return strip;
  while (high - low > 1) {
    int32_t middle = (low + high) / 2;
    if (strip_length(p, side, at, count, middle) <= room)
      high = middle;
    else
      low = middle;
  }
  strip->thick = high;
  const weft_slicing_tree_t* t = p->tree;
  for (int32_t i = at; i < at + count; ++i) {
    int32_t b = p->order[i];
    int32_t centre = 2 * strip_length(p, side, at, i - at, high) + block_length(p, side, i, high);
    for (int32_t e = t->partner_start[b]; e < t->partner_start[b + 1]; ++e) {
      int32_t other = t->partner[e].other, rank = other < 0 ? -1 : p->rank[other];
      if (rank < at || rank >= i) continue;
      int32_t end = 2 * strip_length(p, side, at, rank - at, high) + block_length(p, side, rank, high);
      strip->wire += t->partner[e].weight * abs(centre - end) / 2;
    }
  }
  return strip;
}

static int compare_states(const void* a, const void* b) {
  const state_t *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
  if (x->side != y->side) return x->side - y->side;
  return x->reversed - y->reversed;
}

// Keeps the best ones, no two of them with the same score and rectangle: those are mirror images.
static void thin_out(const peeler_t* p, level_t* level) {
  qsort(level->state, (size_t)level->count, sizeof *level->state, compare_states);
  int32_t kept = 0;
  for (int32_t i = 0; i < level->count && kept < p->peel->beam; ++i) {
    const state_t *s = &level->state[i], *last = kept ? &level->state[kept - 1] : NULL;
    if (last && last->wire == s->wire && last->width == s->width && last->height == s->height) continue;
    level->state[kept++] = *s;
  }
  level->count = kept;
  level->worst = kept == p->peel->beam ? level->state[kept - 1].score : INFINITY;
}

static void try_strips(peeler_t* p, int32_t at, int32_t parent, int32_t count, int axis) {
  const state_t* before = &p->level[at].state[parent];
  const weft_placer_problem_t* problem = p->tree->problem;
  const strip_t* strip = find_strip(p, axis, at, count, axis ? before->width : before->height);
  if (!strip->thick || strip->thick > (axis ? before->height : before->width)) return;
  state_t next = {.parent = parent, .count = (int16_t)count, .thick = strip->thick};
  next.width = before->width - (axis ? 0 : strip->thick);
  next.height = before->height - (axis ? strip->thick : 0);
  bool last = at + count == p->blocks;
  double free_area = (double)next.width * next.height;
  if (!last && free_area < p->area[p->blocks] - p->area[at + count]) return;
  double waste = (double)p->tree->width * p->tree->height - free_area - p->area[at + count];
  if (last) waste = 0;
  double price = p->peel->waste_weight * waste / sqrt((double)p->tree->width * p->tree->height);
  level_t* level = &p->level[at + count];
  for (int variant = 0; variant < 4; ++variant) {
    next.side = (int8_t)(2 * axis + (variant & 1));
    next.reversed = variant >> 1;
    next.x = before->x + (next.side == 0 ? strip->thick : 0);
    next.y = before->y + (next.side == 2 ? strip->thick : 0);
    next.wire = before->wire + strip->wire + crossing_wire(p, before, &next, at, places(p, at, parent));
    next.score = problem->weight_wire * next.wire + price;
    if (p->peel->noise > 0) next.score *= 1 + p->peel->noise * weft_rng_unit(p->rng);
    if (level->count >= p->peel->beam && next.score >= level->worst) continue;
    if (level->count == GROWTH * p->peel->beam) thin_out(p, level);
    level->state[level->count++] = next;
  }
}

static void search(peeler_t* p) {
  p->level[0].state[0] = (state_t){.parent = -1, .width = p->tree->width, .height = p->tree->height};
  p->level[0].count = 1;
  for (int32_t at = 0; at < p->blocks && !weft_control_should_stop(p->peel->control); ++at) {
    level_t* level = &p->level[at];
    thin_out(p, level);
    list_crossings(p, at);
    for (int32_t s = 0; s < level->count; ++s) {
      const state_t* state = &level->state[s];
      int32_t* place = places(p, at, s);
      if (at) {
        int32_t from = at - state->count;
        memcpy(place, places(p, from, state->parent), sizeof *place * 2 * (size_t)p->blocks);
        lay_strip(p, &p->level[from].state[state->parent], state, from, place);
      }
      for (int32_t count = 1; count <= LONGEST_STRIP && at + count <= p->blocks; ++count) {
        try_strips(p, at, s, count, 0);
        try_strips(p, at, s, count, 1);
      }
    }
  }
  thin_out(p, &p->level[p->blocks]);
}

// Blocks order[from .. from + count) in a row along one direction; `next` is the first unused inner node.
static int32_t build_row(peeler_t* p, int32_t from, int32_t count, bool stacked, bool turned, int32_t* next) {
  if (count == 1) return p->order[from];
  int32_t a = build_row(p, from, count / 2, stacked, turned, next);
  int32_t b = build_row(p, from + count / 2, count - count / 2, stacked, turned, next);
  int32_t n = (*next)++;
  p->tree->node[n] =
      (weft_slicing_node_t){.parent = -1, .child = {a, b}, .stacked = stacked, .turned = turned, .spare = turned};
  p->tree->node[a].parent = p->tree->node[b].parent = n;
  return n;
}

static void build(peeler_t* p) {
  weft_slicing_tree_t* t = p->tree;
  int32_t at = p->blocks, state = 0, rest = -1, next = p->blocks;
  for (int32_t b = 0; b < p->blocks; ++b) t->node[b].spare = 0;
  while (at) { // from the innermost strip out
    const state_t* s = &p->level[at].state[state];
    at -= s->count;
    state = s->parent;
    int32_t strip = build_row(p, at, s->count, s->side < 2, s->reversed, &next);
    if (rest < 0) {
      rest = strip;
      continue;
    }
    int32_t n = next++;
    t->node[n] = (weft_slicing_node_t){
        .parent = -1, .child = {strip, rest}, .stacked = s->side >= 2, .turned = s->side & 1, .spare = 1};
    t->node[strip].parent = t->node[rest].parent = n;
    rest = n;
  }
  t->root = rest;
  t->node[rest].parent = -1;
  weft_slicing_combine_all(t);
}

static weft_status_t prepare(peeler_t* p, weft_arena_t* arena) {
  size_t blocks = (size_t)p->blocks, beam = (size_t)p->peel->beam;
  int32_t* scratch = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 2 * blocks, &scratch));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &p->order));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &p->rank));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 1, &p->area));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 1, &p->level));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->window * beam * 2 * blocks, &p->place));
  for (size_t l = 0; l <= blocks; ++l)
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, GROWTH * beam + 2, &p->level[l].state));
  p->lines[0] = p->tree->width + 1;
  p->lines[1] = p->tree->height + 1;
  for (int side = 0; side < 2; ++side) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (blocks + 1) * (size_t)p->lines[side], &p->length[side]));
    size_t rooms = (size_t)(side ? p->tree->width : p->tree->height) + 1;
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, rooms * (LONGEST_STRIP + 1), &p->strip[side]));
  }
  for (size_t l = 0; l <= blocks; ++l) p->level[l].worst = INFINITY;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->tree->partner_start[blocks] + 1, &p->crossing));
  weft_slicing_dataflow_order(p->tree, scratch, p->order);
  for (size_t i = 0; p->peel->backwards && i < blocks / 2; ++i) {
    int32_t swap = p->order[i];
    p->order[i] = p->order[blocks - 1 - i];
    p->order[blocks - 1 - i] = swap;
  }
  for (size_t i = 0; i < blocks; ++i) p->rank[p->order[i]] = (int32_t)i;
  sum_lengths(p);
  return weft_ok();
}

weft_status_t weft_slicing_peel(weft_slicing_tree_t* tree, const weft_slicing_peel_t* peel, weft_rng_t* rng,
                                weft_arena_t* arena, bool* out_found) {
  *out_found = false;
  peeler_t p = {
      .tree = tree, .peel = peel, .rng = rng, .blocks = tree->problem->block_count, .window = LONGEST_STRIP + 1};
  if (!p.blocks) return weft_ok();
  weft_arena_t own;
  weft_arena_initialize(arena->allocator, &own);
  weft_status_t status = prepare(&p, &own);
  if (!status) search(&p);
  if (!status && p.level[p.blocks].count) {
    build(&p);
    *out_found = true;
  }
  weft_arena_deinitialize(&own);
  return status;
}
