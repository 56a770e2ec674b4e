// First trees: a beam search that takes strips off the sides of the free rectangle, each filled with the next blocks
// in the order of the dataflow, so that the chain winds inwards.
#pragma once
#include "placer/slicing_tree.h"

typedef struct weft_slicing_peel_t {
  int32_t beam;                  // states kept for each number of blocks laid
  bool backwards;                // from the last block of the dataflow
  double waste_weight;           // cost of wasting an area as large as one line of tiles across the grid
  double noise;                  // relative, on the cost of a state: other seeds find other trees
  const weft_control_t* control; // gives up when it says so; may be NULL
} weft_slicing_peel_t;

// Sets the tree to the best one found; its shapes are those that the tree aims at. False: none fits.
weft_status_t weft_slicing_peel(weft_slicing_tree_t* tree, const weft_slicing_peel_t* peel, weft_rng_t* rng,
                                weft_arena_t* arena, bool* out_found);
// The blocks depth first along the edges, from those that nothing comes into. scratch: [2 * block_count].
void weft_slicing_dataflow_order(const weft_slicing_tree_t* tree, int32_t* scratch, int32_t* out_order);
