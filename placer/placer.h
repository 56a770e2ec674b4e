// The placement engine: blocks with alternatives on a grid with obstacles, weighted edges between them; simulated
// annealing. It knows nothing of neural networks or of Weft's kernels; thin adapters do.
#pragma once
#include "base/arena.h"
#include "base/control.h"
#include "base/rng.h"

typedef struct weft_placer_shape_t {
  int32_t width, height; // tiles, at least
  int64_t tiles;         // live tiles that the block needs inside its rectangle
  int32_t lines;         // of its height, as many lines ...
  int32_t line_tiles;    // ... need this many live tiles each; 0: any live tiles will do
  double time;           // cost of the block in this shape (cycles)
} weft_placer_shape_t;
typedef struct weft_placer_block_t {
  const char* name;
  int32_t shape_count;
  const weft_placer_shape_t* shape;
  int32_t fixed_x, fixed_y; // -1: free
} weft_placer_block_t;
// Which side of its upright shape the lanes of an edge are spread over at one of its ends.
typedef enum weft_placer_lanes_e {
  WEFT_PLACER_LANES_NONE, // all of them at the centre
  WEFT_PLACER_LANES_WIDTH,
  WEFT_PLACER_LANES_HEIGHT,
  WEFT_PLACER_LANES_COUNT
} weft_placer_lanes_e;
// What an edge is like when its ends have a certain pair of shapes.
typedef struct weft_placer_joint_t {
  uint8_t lanes[2]; // weft_placer_lanes_e, of from and of to
  float hops[2];    // that a wavelet takes inside the rectangle of from, where streams gather, and inside that of to
} weft_placer_joint_t;
typedef struct weft_placer_edge_t {
  int32_t from, to;                 // blocks; to or from < 0: the anchor point -1 - index
  double weight;                    // wavelets
  const weft_placer_joint_t* joint; // [shapes of from][shapes of to]; NULL: no lanes, no hops; so at anchors
} weft_placer_edge_t;
typedef struct weft_placer_point_t {
  double x, y;
} weft_placer_point_t;
// What the user wants of a placement. Names, files and globs are the adapter's business.
typedef enum weft_placer_constraint_e {
  WEFT_PLACER_INSIDE,   // `block` lies inside the rectangle
  WEFT_PLACER_KEEP_OUT, // `block` has no tile in the rectangle
  WEFT_PLACER_ADJACENT  // `block` and `other` share a part of a side
} weft_placer_constraint_e;
typedef struct weft_placer_constraint_t {
  weft_placer_constraint_e kind;
  int32_t block, other;
  int32_t x, y, width, height;
  int32_t rule; // that it comes from: weft_placer_rules_t
} weft_placer_constraint_t;
typedef struct weft_placer_problem_t {
  int32_t width, height;
  const uint8_t* blocked; // [height * width] 1: no tile there; may be NULL
  int32_t block_count, edge_count, anchor_count;
  const weft_placer_block_t* block;
  const weft_placer_edge_t* edge;
  const weft_placer_point_t* anchor; // where host ports are
  // objective = weight_time * slowest block + weight_wire * wire + weight_overload * overload.
  // The wire of an edge is its weight times the mean way of its lanes: lane t in [0, 1] goes from the point at t along
  // its side of one rectangle to that of the other, L1; without lanes, from centre to centre. Overload is what the
  // links in parts of the grid would have to carry beyond a wavelet a cycle each within the time of the slowest block
  // (demand.h), in wavelets times tiles, as wire is.
  double weight_time, weight_wire, weight_overload;
  int32_t constraint_count;
  const weft_placer_constraint_t* constraint;
} weft_placer_problem_t;

typedef struct weft_placer_spot_t {
  int32_t shape;
  bool transposed;
  int32_t x, y, width, height; // the rectangle; larger than the shape where dead tiles are stepped over
} weft_placer_spot_t;
typedef struct weft_placer_options_t {
  uint64_t seed;
  double effort;                 // moves, relative; 1: default
  int32_t seeds;                 // independent runs, seed, seed + 1, ..; the best is kept; >= 1
  const weft_control_t* control; // deadline, cancellation: keeps the best so far if it is legal
  double seconds;                // > 0: annealing follows the clock for as long, whatever `effort`; results then vary
  // Sees the placement of the first seed once a temperature; may be NULL.
  void (*frame)(void* self, const weft_placer_spot_t* spots, double temperature, double cost);
  void* frame_self;
} weft_placer_options_t;
// The objective's, before they are weighted; overload is 0 where it has no weight.
typedef struct weft_placer_parts_t {
  double time, wire, overload;
} weft_placer_parts_t;
static inline double weft_placer_weigh(const weft_placer_problem_t* problem, const weft_placer_parts_t* parts) {
  return problem->weight_time * parts->time + problem->weight_wire * parts->wire +
         problem->weight_overload * parts->overload;
}
typedef struct weft_placer_result_t {
  weft_placer_spot_t* spot; // [block_count], in the arena
  double cost;
  weft_placer_parts_t parts;
  double worst_seed_cost;
  uint64_t best_seed;
  int64_t moves;
  double drift; // |incremental - recomputed| cost, relative; the engine fails when it exceeds 1e-6
} weft_placer_result_t;

// Packs and anneals. DOES_NOT_FIT says how many live tiles the blocks need at the least against how many there are, and
// the block that found no room.
weft_status_t weft_placer_solve(const weft_placer_problem_t* problem, const weft_placer_options_t* options,
                                weft_arena_t* arena, weft_placer_result_t* out_result);
// By how many tiles a constraint is missed; all of them, 0 when they hold. The annealers weigh that as a penalty.
int32_t weft_placer_missed(const weft_placer_constraint_t* constraint, const weft_placer_spot_t* spots);
double weft_placer_violation(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots);
// Whether a block may lie there as far as that depends on it alone: constraints on regions.
bool weft_placer_may_lie(const weft_placer_problem_t* problem, int32_t block, const weft_placer_spot_t* spot);
// Recomputes the objective and its parts (may be NULL); legal: disjoint, inside, enough live tiles.
double weft_placer_cost(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots,
                        weft_placer_parts_t* out_parts);
weft_status_t weft_placer_legal(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots);
