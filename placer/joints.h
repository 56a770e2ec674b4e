// Joints of an edge between two kernels: for each pair of splits, how the parts of the tensor lie at both ends and how
// far they go there. From the splits alone, before there are streams.
#pragma once
#include "ir/fabric/split.h"
#include "placer/placer.h"

// A piece of an operand that another kernel makes.
typedef struct weft_joints_piece_t {
  int32_t sink, buffer, piece;
} weft_joints_piece_t;

// (*out_joint)[shapes of the producer][shapes of the consumer], in `arena`; shape s of block k is alternative[k][s] of
// its kernel. `streams`: how many the edge should have; it gets no more than there are different needs at the consumer.
weft_status_t weft_joints_of_piece(const weft_fabric_t* fabric, const weft_joints_piece_t* piece,
                                   const weft_placer_block_t* block, int32_t* const* alternative, double streams,
                                   weft_arena_t* arena, const weft_placer_joint_t** out_joint);
