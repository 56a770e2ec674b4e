// A slicing tree: blocks at the leaves, cuts inside; a cut sets its two children side by side or one above the other.
// Each node has a shape curve (Otten 1983, Stockmeyer 1983): the least width for every height and the least height for
// every width, over all shapes of all its blocks. So a tree stands for its best choice of shapes, and whether a tree
// fits is known exactly, bottom up; where everything lies follows top down.
#pragma once
#include "placer/pack.h"

typedef struct weft_slicing_node_t {
  int32_t parent;   // -1: the root
  int32_t child[2]; // -1: a leaf, whose index is its block
  bool stacked;     // the second child above the first (in y), else beside it (in x);
  bool turned;      // or the first above or beside the second: as a mirror image has it, with the same curve
  uint8_t
      spare; // who gets what is left over along the cut: 0, 1 a child, 2 both. A leaf: 1 prefers to be short to narrow
} weft_slicing_node_t;

// A corner of a shape curve: this height suffices from this width on. first and second are the corners of the children
// it is made of; of a leaf, they say shape and whether transposed.
typedef struct weft_slicing_corner_t {
  int16_t width, height, first, second;
} weft_slicing_corner_t;
// Corners by growing height and falling width; a last one, not counted, has width -1 and height INT16_MAX.
typedef struct weft_slicing_curve_t {
  int32_t count;
  weft_slicing_corner_t* corner;
} weft_slicing_curve_t;

typedef struct weft_slicing_spot_t {
  int32_t shape, width, height;
  int32_t other[2]; // shapes that are a little longer along x, or along y, by an odd number of tiles; -1: none
  int32_t least_x, least_y, room_x, room_y; // twice the centre: where its box lets it be at least, and how much further
  int32_t x, y;                             // twice the centre
  bool transposed;
} weft_slicing_spot_t;

// An edge as its end sees it.
typedef struct weft_slicing_partner_t {
  int32_t other; // a block, or < 0: the anchor -1 - other
  int32_t edge;
  double weight;
} weft_slicing_partner_t;

// A block along one axis and across it, in twice the coordinates.
typedef struct weft_slicing_span_t {
  int32_t low, extent, across_low, across_high;
} weft_slicing_span_t;

typedef struct weft_slicing_box_t {
  int32_t x, y, width, height, corner; // corner of the curve that it is for
} weft_slicing_box_t;

typedef struct weft_slicing_tree_t {
  const weft_placer_problem_t* problem;
  const weft_placer_grid_t* grid;
  const weft_placer_incidence_t* incidence;
  int32_t nodes, root;
  int32_t left, top, width, height; // the part of the grid around its live tiles; all coordinates are in it
  int32_t most_width, most_height;  // of corners: beyond the grid by a margin, so that an overflow has a size
  weft_slicing_node_t* node;        // leaves first
  weft_slicing_curve_t (*curve)[2]; // [node] two of them: the present one and the one of a trial
  uint8_t* present;                 // [node] which
  bool lanes;                       // edges have them
  bool dead;                        // there are dead tiles: leaves are as large as where they come to lie asks
  int16_t (**grown)[2][2];   // [block][shape][transposed] mean width and height over places; NULL without dead tiles
  double target;             // slowest time that shapes may have
  double overflow_weight;    // cost of a tile that the tree is too wide or too high
  weft_slicing_spot_t* spot; // [block]
  int32_t (*other)[2];       // [block * corners + corner] as in a spot
  int32_t corners;           // that a curve has room for
  int32_t* partner_start;    // [block + 1] rows of partner
  weft_slicing_partner_t* partner;
  int32_t (*anchor)[2];      // twice the place of each
  int32_t* stack;            // scratch
  weft_slicing_span_t* span; // scratch, [block]
  int32_t* most;             // scratch, [block]
  weft_slicing_box_t* box;   // scratch, [node]
  double saved;              // by sliding, as a part of the wire before
  double overflow, wire;     // of the spots
} weft_slicing_tree_t;

weft_status_t weft_slicing_create(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                                  const weft_placer_incidence_t* incidence, weft_arena_t* arena,
                                  weft_slicing_tree_t* out_tree);
// Admits the shapes with at most this time. False: a block has none. The curves of inner nodes are out of date then.
bool weft_slicing_aim(weft_slicing_tree_t* tree, double target);
// A tree in the order of the dataflow, halved again and again by area, cuts across the longer side. False: of a few
// none was small enough for the curves.
bool weft_slicing_start(weft_slicing_tree_t* tree, weft_rng_t* rng);

static inline const weft_slicing_curve_t* weft_slicing_curve(const weft_slicing_tree_t* tree, int32_t node) {
  return &tree->curve[node][tree->present[node]];
}
// The curve of an inner node from its children's, into the one that is not present, which becomes so.
void weft_slicing_combine(weft_slicing_tree_t* tree, int32_t node);
void weft_slicing_combine_all(weft_slicing_tree_t* tree);
// Lays the tree out: spots, overflow, wire. False: too large for the curves, or its cost is clearly above `limit`.
bool weft_slicing_realise(weft_slicing_tree_t* tree, double limit);
// How far the tree exceeds the grid, in tiles of width and height together, and at which corner; negative: too large.
int32_t weft_slicing_overflow(const weft_slicing_tree_t* tree, int32_t* out_corner);
// Pushes the blocks together along x (axis 0) or y (1), each only as far from another as their rectangles ask, not the
// cuts; then back towards where they were. What a tree is too wide or too high by often vanishes so. Returns by how
// much they exceed the grid.
int32_t weft_slicing_compact(weft_slicing_tree_t* tree, int axis);
double weft_slicing_cost(const weft_slicing_tree_t* tree);
// The layout as spots of the problem.
void weft_slicing_export(const weft_slicing_tree_t* tree, weft_placer_spot_t* out_spots);
