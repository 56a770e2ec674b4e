// What follows from a split, a walk and a view, derived here a second time: the rest of Weft has its own.
#pragma once
#include "ir/fabric/fabric.h"

// The chosen alternative of a placed kernel.
const weft_alternative_t* weft_check_chosen(const weft_kernel_t* kernel);
int32_t weft_check_tile_count(const weft_kernel_t* kernel);
// Of the chosen split: the coordinates of buffer `buffer` that a logical tile's iteration box touches.
weft_box_t weft_check_buffer_box(const weft_kernel_t* kernel, int32_t buffer, int32_t logical);
bool weft_check_is_owner(const weft_kernel_t* kernel, int32_t logical);
int32_t weft_check_chain_next(const weft_kernel_t* kernel, int32_t logical); // -1 at an owner
// Whether an operation that runs on this tile touches the buffer.
bool weft_check_uses_buffer(const weft_kernel_t* kernel, int32_t buffer, int32_t logical);
// What a tile holds of a tensor: of a result its owners, of an input the host (logical 0).
weft_box_t weft_check_held_box(const weft_fabric_t* fabric, int32_t tensor, int32_t logical);
int64_t weft_check_box_elements(const weft_box_t* box);

// Sums of `step[i] * index`, 0 <= index < extent[i], that fall into [lo, hi): how many combinations, the least and the
// largest sum. Steps are >= 0. False when that would take more than about a million steps.
typedef struct weft_check_sums_t {
  int64_t count, least, most; // least and most only when count > 0
} weft_check_sums_t;
typedef struct weft_check_term_t {
  int64_t extent, step;
} weft_check_term_t;
bool weft_check_sums(const weft_check_term_t* term, int32_t count, int64_t base, int64_t lo, int64_t hi,
                     weft_check_sums_t* out_sums);
