#include "placer/slicing_tree.h"

#include <stdlib.h>
#include <string.h>

#include "placer/wire.h"

// A leaf's corner has the lower bits of the shape's number in `first`, in `second` the others and whether it is turned.
enum { LOW_SHAPES = 1 << 15, MOST_SHAPES = LOW_SHAPES * (1 << 14) };
static weft_slicing_corner_t leaf_corner(int32_t width, int32_t height, int32_t shape, bool transposed) {
  return (weft_slicing_corner_t){(int16_t)width, (int16_t)height, (int16_t)(shape % LOW_SHAPES),
                                 (int16_t)(2 * (shape / LOW_SHAPES) + transposed)};
}
static int32_t shape_of(const weft_slicing_corner_t* corner) {
  return corner->first + corner->second / 2 * LOW_SHAPES;
}
static bool is_transposed(const weft_slicing_corner_t* corner) {
  return corner->second % 2;
}

enum { GROWTH_SAMPLES = 5 };
enum { MARGIN = 8 };                                     // curves go on beyond the grid by this part of its sides
enum { MOST_COMPACTED = 16 };                            // tiles of overflow that compaction is tried on
static const double MOST_SAVED = 0.2, MORE_SAVED = 0.03; // of the wire, by sliding

// The edges at every block in rows; an edge from a block to itself has no length.
static weft_status_t list_partners(weft_slicing_tree_t* t, weft_arena_t* arena) {
  const weft_placer_problem_t* p = t->problem;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->block_count + 1, &t->partner_start));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 2 * (size_t)p->edge_count + 1, &t->partner));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->anchor_count + 1, &t->anchor));
  for (int32_t a = 0; a < p->anchor_count; ++a) {
    t->anchor[a][0] = (int32_t)lrint(2 * (p->anchor[a].x - t->left));
    t->anchor[a][1] = (int32_t)lrint(2 * (p->anchor[a].y - t->top));
  }
  int32_t count = 0;
  for (int32_t b = 0; b < p->block_count; ++b) {
    t->partner_start[b] = count;
    for (int32_t i = t->incidence->start[b]; i < t->incidence->start[b + 1]; ++i) {
      const weft_placer_edge_t* edge = &p->edge[t->incidence->index[i]];
      int32_t other = edge->from == b ? edge->to : edge->from;
      if (other != b) t->partner[count++] = (weft_slicing_partner_t){other, t->incidence->index[i], edge->weight};
      t->lanes |= edge->joint != NULL;
    }
  }
  t->partner_start[p->block_count] = count;
  return weft_ok();
}

// How large a shape gets at random places, on the average, as it steps over dead tiles.
static void grow(const weft_slicing_tree_t* t, const weft_placer_shape_t* shape, bool transposed, weft_rng_t* rng,
                 int16_t out_extent[2]) {
  int32_t size[2] = {transposed ? shape->height : shape->width, transposed ? shape->width : shape->height};
  int32_t room[2] = {t->width - size[0], t->height - size[1]}, sum[2] = {0, 0}, count = 0;
  for (int i = 0; i < GROWTH_SAMPLES && room[0] >= 0 && room[1] >= 0; ++i) {
    int32_t width = 0, height = 0, x = t->left + (int32_t)weft_rng_below(rng, (uint64_t)room[0] + 1),
            y = t->top + (int32_t)weft_rng_below(rng, (uint64_t)room[1] + 1);
    if (!weft_placer_grid_fit(t->grid, shape, transposed, x, y, &width, &height)) continue;
    sum[0] += width;
    sum[1] += height;
    ++count;
  }
  for (int i = 0; i < 2; ++i) {
    int32_t mean = count ? (2 * sum[i] + count) / (2 * count) : size[i], most = INT16_MAX / 2;
    out_extent[i] = (int16_t)(mean < most ? mean : most);
  }
}

static weft_status_t grow_all(weft_slicing_tree_t* t, weft_arena_t* arena) {
  const weft_placer_problem_t* p = t->problem;
  if (!t->dead) return weft_ok();
  weft_rng_t rng;
  weft_rng_seed(&rng, 1);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->block_count + 1, &t->grown));
  for (int32_t b = 0; b < p->block_count; ++b) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->block[b].shape_count + 1, &t->grown[b]));
    for (int32_t s = 0; s < p->block[b].shape_count; ++s) {
      for (int turned = 0; turned < 2; ++turned) grow(t, &p->block[b].shape[s], turned, &rng, t->grown[b][s][turned]);
    }
  }
  return weft_ok();
}

// Where the live tiles end, and whether there are dead ones among them.
static void measure_grid(weft_slicing_tree_t* t) {
  const weft_placer_problem_t* p = t->problem;
  int32_t width = p->width - t->left, height = p->height - t->top;
  while (width > 1 && !weft_placer_grid_live(t->grid, t->left + width - 1, t->top, 1, height)) --width;
  while (height > 1 && !weft_placer_grid_live(t->grid, t->left, t->top + height - 1, width, 1)) --height;
  t->width = width;
  t->height = height;
  t->dead = weft_placer_grid_live(t->grid, t->left, t->top, width, height) < width * height;
}

weft_status_t weft_slicing_create(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                  const weft_placer_incidence_t* incidence, weft_arena_t* arena,
                                  weft_slicing_tree_t* out_tree) {
  int32_t blocks = problem->block_count;
  *out_tree = (weft_slicing_tree_t){.problem = problem,
                                    .grid = grid,
                                    .incidence = incidence,
                                    .nodes = blocks ? 2 * blocks - 1 : 0,
                                    .left = grid->left,
                                    .top = grid->top};
  weft_slicing_tree_t* t = out_tree;
  measure_grid(t);
  t->most_width = t->width + t->width / MARGIN + 1;
  t->most_height = t->height + t->height / MARGIN + 1;
  if (t->most_width >= INT16_MAX / 2 || t->most_height >= INT16_MAX / 2)
    return weft_error(UNSUPPORTED, "a grid of %dx%d is too large", problem->width, problem->height);
  for (int32_t b = 0; b < blocks; ++b) {
    if (problem->block[b].shape_count > MOST_SHAPES)
      return weft_error(UNSUPPORTED, "%s has more than %d shapes", problem->block[b].name, MOST_SHAPES);
  }
  size_t nodes = (size_t)t->nodes + 1;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->node));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->curve));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->present));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->stack));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->box));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->span));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->most));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, nodes, &t->spot));
  WEFT_RETURN_IF_ERROR(list_partners(t, arena));
  size_t length = (size_t)(t->most_width < t->most_height ? t->most_width : t->most_height) + 2;
  t->corners = (int32_t)length;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)blocks * length + 1, &t->other));
  weft_slicing_corner_t* memory = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 2 * nodes * length, &memory));
  for (size_t n = 0; n < nodes; ++n) {
    t->node[n] = (weft_slicing_node_t){.parent = -1, .child = {-1, -1}};
    t->curve[n][0].corner = memory + 2 * n * length;
    t->curve[n][1].corner = memory + (2 * n + 1) * length;
  }
  return grow_all(t, arena);
}

static const weft_slicing_corner_t last_corner = {.width = -1, .height = INT16_MAX};

// Puts a corner into a leaf's curve unless one there is as good; takes out those that it beats.
static void add_corner(const weft_slicing_tree_t* t, int32_t block, int32_t index, bool transposed) {
  weft_slicing_curve_t* curve = &t->curve[block][0];
  const weft_placer_shape_t* shape = &t->problem->block[block].shape[index];
  int32_t width = transposed ? shape->height : shape->width, height = transposed ? shape->width : shape->height;
  if (t->dead) width = t->grown[block][index][transposed][0], height = t->grown[block][index][transposed][1];
  if (width > t->width || height > t->height) return;
  int32_t at = 0, from = 0;
  while (at < curve->count && curve->corner[at].height <= height) ++at;
  if (at && curve->corner[at - 1].width <= width) return;
  from = at; // [from, at) of the same height and at .. of no less width go
  while (from && curve->corner[from - 1].height == height) --from;
  while (at < curve->count && curve->corner[at].width >= width) ++at;
  memmove(curve->corner + from + 1, curve->corner + at, sizeof *curve->corner * (size_t)(curve->count - at));
  curve->corner[from] = leaf_corner(width, height, index, transposed);
  curve->count += 1 - (at - from);
}

// The shortest shape that is as a corner's across an axis and longer along it by an odd number of tiles.
static int32_t find_other(const weft_slicing_tree_t* t, int32_t b, const weft_slicing_corner_t* corner, int axis) {
  int32_t extent[2] = {corner->width, corner->height}, best = -1, least = INT32_MAX;
  for (int32_t s = 0; s < t->problem->block[b].shape_count; ++s) {
    const weft_placer_shape_t* shape = &t->problem->block[b].shape[s];
    bool turned = is_transposed(corner);
    int32_t its[2] = {turned ? shape->height : shape->width, turned ? shape->width : shape->height};
    int32_t more = its[axis] - extent[axis];
    if (shape->time > t->target || its[1 - axis] != extent[1 - axis] || more <= 0 || more % 2 == 0 || more >= least)
      continue;
    least = more;
    best = s;
  }
  return best;
}

bool weft_slicing_aim(weft_slicing_tree_t* t, double target) {
  t->target = target;
  for (int32_t b = 0; b < t->problem->block_count; ++b) {
    const weft_placer_block_t* block = &t->problem->block[b];
    weft_slicing_curve_t* curve = &t->curve[b][0];
    t->present[b] = 0;
    curve->count = 0;
    for (int32_t s = 0; s < block->shape_count; ++s) {
      if (block->shape[s].time > target) continue;
      add_corner(t, b, s, false);
      add_corner(t, b, s, true);
    }
    if (!curve->count) return false;
    curve->corner[curve->count] = last_corner;
    for (int32_t i = 0; i < 2 * curve->count; ++i)
      t->other[(size_t)b * (size_t)t->corners + (size_t)i / 2][i % 2] =
          t->dead ? -1 : find_other(t, b, &curve->corner[i / 2], i % 2);
  }
  return true;
}

// Side by side: at every height the narrowest of both.
static int32_t combine_beside(const weft_slicing_curve_t* a, const weft_slicing_curve_t* b, int32_t most_width,
                              weft_slicing_corner_t* out) {
  const weft_slicing_corner_t *p = a->corner, *q = b->corner;
  int32_t height = p->height > q->height ? p->height : q->height, count = 0;
  while (p[1].height <= height) ++p;
  while (q[1].height <= height) ++q;
  while (height < INT16_MAX) {
    int32_t width = p->width + q->width;
    out[count] =
        (weft_slicing_corner_t){(int16_t)width, (int16_t)height, (int16_t)(p - a->corner), (int16_t)(q - b->corner)};
    count += width <= most_width;
    height = p[1].height < q[1].height ? p[1].height : q[1].height;
    p += p[1].height == height;
    q += q[1].height == height;
  }
  return count;
}

// One above the other: at every width the lowest of both.
static int32_t combine_stacked(const weft_slicing_curve_t* a, const weft_slicing_curve_t* b, int32_t most_height,
                               weft_slicing_corner_t* out) {
  const weft_slicing_corner_t *p = a->corner, *q = b->corner;
  int32_t count = 0;
  while (p->width >= 0 && q->width >= 0) {
    int32_t width = p->width > q->width ? p->width : q->width, height = p->height + q->height;
    if (height > most_height) break;
    out[count++] =
        (weft_slicing_corner_t){(int16_t)width, (int16_t)height, (int16_t)(p - a->corner), (int16_t)(q - b->corner)};
    p += p->width == width;
    q += q->width == width;
  }
  return count;
}

void weft_slicing_combine(weft_slicing_tree_t* t, int32_t n) {
  const weft_slicing_node_t* node = &t->node[n];
  const weft_slicing_curve_t *a = weft_slicing_curve(t, node->child[0]), *b = weft_slicing_curve(t, node->child[1]);
  t->present[n] ^= 1;
  weft_slicing_curve_t* out = &t->curve[n][t->present[n]];
  if (!a->count || !b->count) {
    out->count = 0;
  } else {
    out->count = node->stacked ? combine_stacked(a, b, t->most_height, out->corner)
                               : combine_beside(a, b, t->most_width, out->corner);
  }
  out->corner[out->count] = last_corner;
}

static void combine_below(weft_slicing_tree_t* t, int32_t n) {
  if (t->node[n].child[0] < 0) return;
  combine_below(t, t->node[n].child[0]);
  combine_below(t, t->node[n].child[1]);
  weft_slicing_combine(t, n);
}

void weft_slicing_combine_all(weft_slicing_tree_t* t) {
  if (t->nodes) combine_below(t, t->root);
}

// The lowest corner that is at most so wide, or the narrowest that is at most so high; there must be one.
static int32_t find_corner(const weft_slicing_curve_t* curve, bool by_width, int32_t limit) {
  int32_t low = 0, high = curve->count - 1;
  while (low < high) {
    int32_t middle = (low + high + !by_width) / 2;
    bool up = by_width ? curve->corner[middle].width > limit : curve->corner[middle].height <= limit;
    if (by_width) {
      if (up)
        low = middle + 1;
      else
        high = middle;
    } else {
      if (up)
        low = middle;
      else
        high = middle - 1;
    }
  }
  return low;
}

int32_t weft_slicing_overflow(const weft_slicing_tree_t* t, int32_t* out_corner) {
  const weft_slicing_curve_t* curve = weft_slicing_curve(t, t->root);
  int32_t width = t->width, height = t->height, best = -1;
  // Past the first corner that is narrow enough only the height grows.
  for (int32_t i = 0; i < curve->count; ++i) {
    int32_t wider = curve->corner[i].width - width, higher = curve->corner[i].height - height;
    int32_t over = (wider > 0 ? wider : 0) + (higher > 0 ? higher : 0);
    if (best >= 0 && over >= best) continue;
    best = over;
    *out_corner = i;
    if (wider <= 0) break;
  }
  return best;
}

static void lay_leaf(weft_slicing_tree_t* t, int32_t b) {
  const weft_slicing_box_t* box = &t->box[b];
  const weft_slicing_curve_t* curve = weft_slicing_curve(t, b);
  bool short_first = t->node[b].spare;
  const weft_slicing_corner_t* corner = &curve->corner[box->corner];
  if (short_first ? corner->width != box->width : corner->height != box->height)
    corner = &curve->corner[find_corner(curve, short_first, short_first ? box->width : box->height)];
  int32_t room_x = box->width - corner->width, room_y = box->height - corner->height;
  const int32_t* other = t->other[(size_t)b * (size_t)t->corners + (size_t)(corner - curve->corner)];
  t->spot[b] = (weft_slicing_spot_t){.shape = shape_of(corner),
                                     .width = corner->width,
                                     .height = corner->height,
                                     .other = {other[0], other[1]},
                                     .least_x = 2 * box->x + corner->width,
                                     .least_y = 2 * box->y + corner->height,
                                     .room_x = 2 * room_x,
                                     .room_y = 2 * room_y,
                                     .x = 2 * (box->x + room_x / 2) + corner->width,
                                     .y = 2 * (box->y + room_y / 2) + corner->height,
                                     .transposed = is_transposed(corner)};
}

// Gives the children of an inner node their parts of its box.
static void divide(weft_slicing_tree_t* t, int32_t n) {
  const weft_slicing_node_t* node = &t->node[n];
  const weft_slicing_box_t* box = &t->box[n];
  weft_slicing_box_t *a = &t->box[node->child[0]], *b = &t->box[node->child[1]];
  const weft_slicing_curve_t* curve = weft_slicing_curve(t, n);
  const weft_slicing_corner_t* corner = &curve->corner[box->corner];
  // A box with more room than its corner across the cut may allow a corner that needs less along it.
  if (node->stacked ? box->width > corner->width : box->height > corner->height)
    corner = &curve->corner[find_corner(curve, node->stacked, node->stacked ? box->width : box->height)];
  *a = *b = *box;
  a->corner = corner->first;
  b->corner = corner->second;
  const weft_slicing_corner_t* first = &weft_slicing_curve(t, node->child[0])->corner[a->corner];
  const weft_slicing_corner_t* second = &weft_slicing_curve(t, node->child[1])->corner[b->corner];
  int32_t spare =
      node->stacked ? box->height - first->height - second->height : box->width - first->width - second->width;
  int32_t more = node->spare == 0 ? spare : node->spare == 1 ? 0 : spare / 2;
  weft_slicing_box_t* later = node->turned ? a : b;
  if (node->stacked) {
    a->height = first->height + more;
    b->height = box->height - a->height;
    later->y += (node->turned ? b : a)->height;
  } else {
    a->width = first->width + more;
    b->width = box->width - a->width;
    later->x += (node->turned ? b : a)->width;
  }
}

enum { MOST_PARTNERS = 16 }; // that a block slides towards

// The end nearest to `now` of the range in which the weighted sum of distances to `at` is least, or `now` inside it.
static int32_t median(const int32_t* at, const weft_slicing_partner_t* partner, int32_t count, int32_t now) {
  int32_t low = at[0], high = at[0];
  if (count == 2 && partner[0].weight == partner[1].weight) {
    low = at[0] < at[1] ? at[0] : at[1];
    high = at[0] < at[1] ? at[1] : at[0];
  } else if (count > 1) {
    low = INT32_MIN;
    high = INT32_MAX;
    for (int32_t i = 0; i < count; ++i) {
      double balance_low = 0, balance_high = 0;
      for (int32_t j = 0; j < count; ++j) {
        balance_low += at[j] >= at[i] ? partner[j].weight : -partner[j].weight;
        balance_high += at[j] <= at[i] ? partner[j].weight : -partner[j].weight;
      }
      // At least half of the weight is there or above: below it the sum falls.
      if (balance_low >= 0 && at[i] > low) low = at[i];
      if (balance_high >= 0 && at[i] < high) high = at[i];
    }
    if (low > high) { // both middle ones
      int32_t swap = low;
      low = high;
      high = swap;
    }
  }
  return now < low ? low : now > high ? high : now;
}

// The place nearest to `goal` that a block can have: from `least` in whole tiles, up to `room` further.
static int32_t reach(int32_t goal, int32_t least, int32_t room) {
  int32_t further = goal - least;
  return least + (further <= 0 ? 0 : further >= room ? room : further & ~1);
}

// Centres of widths of different parity can't meet: where that costs half a tile to more weight than it saves, and
// there is room, the block takes the other shape along the axis.
static void match_parity(weft_slicing_tree_t* t, int32_t b, int axis, const int32_t* at,
                         const weft_slicing_partner_t* partner, int32_t count) {
  weft_slicing_spot_t* spot = &t->spot[b];
  int32_t shape = spot->other[axis], now = axis ? spot->y : spot->x;
  if (shape < 0) return;
  double gain = 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t off = abs(at[i] - now);
    if (off <= 1) gain += off ? partner[i].weight : -partner[i].weight * (1 + 1e-6 * (partner[i].other > b));
  }
  if (gain <= 0) return;
  const weft_placer_shape_t* its = &t->problem->block[b].shape[shape];
  int32_t *extent = axis ? &spot->height : &spot->width, *least = axis ? &spot->least_y : &spot->least_x;
  int32_t *room = axis ? &spot->room_y : &spot->room_x,
          length = (axis == 0) != spot->transposed ? its->width : its->height;
  int32_t more = length - *extent;
  if (2 * more > *room) return;
  int32_t before = 0, goal = now; // the partner that is off by one
  for (int32_t i = 0; i < count; ++i) {
    if (abs(at[i] - now) == 1) goal = at[i], ++before;
  }
  if (!before || goal < *least + more || goal > *least + *room - more) return;
  *extent = length;
  *least += more;
  *room -= 2 * more;
  spot->other[axis] = spot->shape;
  spot->other[1 - axis] = -1;
  spot->shape = shape;
  *(axis ? &spot->y : &spot->x) = goal;
}

// A leaf whose box has room moves towards its partners.
static void slide(weft_slicing_tree_t* t, int32_t b) {
  weft_slicing_spot_t* spot = &t->spot[b];
  if (!(spot->room_x | spot->room_y)) return;
  const weft_slicing_partner_t* partner = &t->partner[t->partner_start[b]];
  int32_t count = t->partner_start[b + 1] - t->partner_start[b], x[MOST_PARTNERS], y[MOST_PARTNERS];
  if (!count) return;
  if (count > MOST_PARTNERS) count = MOST_PARTNERS;
  for (int32_t i = 0; i < count; ++i) {
    int32_t other = partner[i].other;
    x[i] = other < 0 ? t->anchor[-1 - other][0] : t->spot[other].x;
    y[i] = other < 0 ? t->anchor[-1 - other][1] : t->spot[other].y;
  }
  if (spot->room_x) spot->x = reach(median(x, partner, count, spot->x), spot->least_x, spot->room_x);
  if (spot->room_y) spot->y = reach(median(y, partner, count, spot->y), spot->least_y, spot->room_y);
  if (spot->room_x) match_parity(t, b, 0, x, partner, count);
  if (spot->room_y) match_parity(t, b, 1, y, partner, count);
}

// As wire_of, for edges that may have lanes.
static double wire_of_lanes(const weft_slicing_tree_t* t) {
  double wire = 0;
  for (int32_t b = 0; b < t->problem->block_count; ++b) {
    const weft_slicing_spot_t* mine = &t->spot[b];
    for (int32_t i = t->partner_start[b]; i < t->partner_start[b + 1]; ++i) {
      const weft_slicing_partner_t* partner = &t->partner[i];
      int32_t other = partner->other;
      if (other > b) continue; // counted there
      const weft_placer_edge_t* edge = &t->problem->edge[partner->edge];
      const weft_slicing_spot_t* its = &t->spot[other < 0 ? b : other];
      double off[2] = {mine->x - (other < 0 ? t->anchor[-1 - other][0] : its->x),
                       mine->y - (other < 0 ? t->anchor[-1 - other][1] : its->y)};
      double shear[2] = {0, 0};
      if (edge->joint) {
        bool out = edge->from == b;
        const weft_slicing_spot_t *from = out ? mine : its, *to = out ? its : mine;
        const weft_placer_joint_t* joint = weft_placer_joint_of(t->problem, edge, from->shape, to->shape);
        weft_placer_add_lanes(joint->lanes[0], from->transposed, from->width, from->height, 2, shear);
        weft_placer_add_lanes(joint->lanes[1], to->transposed, to->width, to->height, -2, shear);
        if (!out) shear[0] = -shear[0], shear[1] = -shear[1];
      }
      wire += partner->weight * (weft_placer_axis_wire(off[0], shear[0]) + weft_placer_axis_wire(off[1], shear[1]));
    }
  }
  return wire / 2;
}

static double wire_of(const weft_slicing_tree_t* t) {
  if (t->lanes) return wire_of_lanes(t);
  double wire = 0;
  for (int32_t b = 0; b < t->problem->block_count; ++b) {
    int32_t x = t->spot[b].x, y = t->spot[b].y;
    for (int32_t i = t->partner_start[b]; i < t->partner_start[b + 1]; ++i) {
      int32_t other = t->partner[i].other;
      if (other > b) continue; // counted there
      int32_t dx = x - (other < 0 ? t->anchor[-1 - other][0] : t->spot[other].x);
      int32_t dy = y - (other < 0 ? t->anchor[-1 - other][1] : t->spot[other].y);
      wire += t->partner[i].weight * (abs(dx) + abs(dy));
    }
  }
  return wire / 2;
}

static void lay_out(weft_slicing_tree_t* t, int32_t corner) {
  const weft_slicing_corner_t* root = &weft_slicing_curve(t, t->root)->corner[corner];
  t->box[t->root] = (weft_slicing_box_t){.width = root->width > t->width ? root->width : t->width,
                                         .height = root->height > t->height ? root->height : t->height,
                                         .corner = corner};
  int32_t depth = 0;
  t->stack[depth++] = t->root;
  while (depth) {
    int32_t n = t->stack[--depth];
    if (t->node[n].child[0] < 0) {
      lay_leaf(t, n);
    } else {
      divide(t, n);
      t->stack[depth++] = t->node[n].child[1];
      t->stack[depth++] = t->node[n].child[0];
    }
  }
}

// Lays a subtree from (x, y) on with every leaf as large as the dead tiles there make it. Overflow is by how much
// leaves stick out.
static void step_over(weft_slicing_tree_t* t, int32_t n, int32_t x, int32_t y, int32_t* out_width,
                      int32_t* out_height) {
  const weft_slicing_node_t* node = &t->node[n];
  if (node->child[0] >= 0) {
    int32_t width = 0, height = 0;
    step_over(t, node->child[node->turned], x, y, out_width, out_height);
    if (node->stacked)
      step_over(t, node->child[!node->turned], x, y + *out_height, &width, &height);
    else
      step_over(t, node->child[!node->turned], x + *out_width, y, &width, &height);
    if (node->stacked) {
      *out_height += height;
      if (width > *out_width) *out_width = width;
    } else {
      *out_width += width;
      if (height > *out_height) *out_height = height;
    }
    return;
  }
  weft_slicing_spot_t* spot = &t->spot[n];
  const weft_placer_shape_t* shape = &t->problem->block[n].shape[spot->shape];
  if (!weft_placer_grid_fit(t->grid, shape, spot->transposed, t->left + x, t->top + y, &spot->width, &spot->height)) {
    int32_t over_x = x + spot->width - t->width, over_y = y + spot->height - t->height;
    t->overflow += (over_x > 0 ? over_x : 0) + (over_y > 0 ? over_y : 0) + (over_x <= 0 && over_y <= 0);
  }
  spot->x = 2 * x + spot->width;
  spot->y = 2 * y + spot->height;
  *out_width = spot->width;
  *out_height = spot->height;
}

bool weft_slicing_realise(weft_slicing_tree_t* t, double limit) {
  int32_t corner = 0, overflow = weft_slicing_overflow(t, &corner);
  if (overflow < 0) return false;
  bool close = overflow && overflow <= MOST_COMPACTED;
  t->overflow = close ? 0 : overflow;
  lay_out(t, corner);
  if (t->dead) {
    int32_t width = 0, height = 0;
    t->overflow = 0;
    step_over(t, t->root, 0, 0, &width, &height);
    t->wire = wire_of(t);
    return true;
  }
  t->wire = wire_of(t);
  // Sliding saves about as much as in the layout before this one.
  double before = t->wire, saved = fmin(MOST_SAVED, t->saved + MORE_SAVED) * t->problem->weight_wire * before;
  if (weft_slicing_cost(t) - saved > limit) return false;
  int32_t blocks = t->problem->block_count;
  for (int32_t b = 0; b < blocks; ++b) slide(t, b);
  for (int32_t b = blocks; b-- > 0;) slide(t, b);
  if (close) t->overflow = weft_slicing_compact(t, 0) + weft_slicing_compact(t, 1);
  t->wire = wire_of(t);
  t->saved = before > 0 ? fmax(0, 1 - t->wire / before) : 0;
  return true;
}

double weft_slicing_cost(const weft_slicing_tree_t* t) {
  return t->problem->weight_time * t->target + t->problem->weight_wire * t->wire + t->overflow_weight * t->overflow;
}

void weft_slicing_export(const weft_slicing_tree_t* t, weft_placer_spot_t* out_spots) {
  for (int32_t b = 0; b < t->problem->block_count; ++b) {
    const weft_slicing_spot_t* spot = &t->spot[b];
    out_spots[b] = (weft_placer_spot_t){.shape = spot->shape,
                                        .transposed = spot->transposed,
                                        .x = t->left + (spot->x - spot->width) / 2,
                                        .y = t->top + (spot->y - spot->height) / 2,
                                        .width = spot->width,
                                        .height = spot->height};
  }
}
