// Moves of a slicing tree, for weft_placer_schedule_run.
#pragma once
#include "placer/demand.h"
#include "placer/schedule.h"
#include "placer/slicing_tree.h"

typedef struct weft_slicing_walk_t {
  weft_slicing_tree_t* tree;
  weft_slicing_node_t *before, *best; // [nodes]
  int32_t before_root, best_root;
  weft_slicing_spot_t* spot_before; // the tree's spots and these change places when a move is taken back
  double wire_before, overflow_before, saved_before;
  uint32_t* mark; // [nodes] equal to `stamp`: to be combined again
  uint32_t stamp;
  int32_t* changed; // nodes combined in this move
  int32_t changed_count;
  weft_placer_spot_t* found;    // the best layout that fits
  double found_cost;            // INFINITY: none yet. The whole objective: the tree's cost has no overload
  weft_placer_demand_t* demand; // where overload has a weight; else NULL
  const weft_control_t* outer;  // its cancellation sets `stop` too; may be NULL
  bool stop_when_found;
  volatile sig_atomic_t stop;         // set then; for weft_control_t.cancelled
  const weft_placer_options_t* watch; // its `frame` sees the tree once a temperature; may be NULL
  weft_placer_spot_t* shown;          // [blocks] for that
} weft_slicing_walk_t;

weft_status_t weft_slicing_walk_create(weft_slicing_tree_t* tree, weft_arena_t* arena, weft_slicing_walk_t* out_walk);
weft_placer_moves_t weft_slicing_walk_moves(weft_slicing_walk_t* walk);
