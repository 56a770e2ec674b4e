// SEND and RECV from walks and views: what a source sends of a tensor, and what a sink takes of it.
#pragma once
#include "backend/nest.h"
#include "ir/fabric/fabric.h"

// A box of coordinates as it lies in memory: coordinate lo is at `address`.
typedef struct weft_placement_t {
  int64_t address;
  int32_t rank;
  int64_t lo[WEFT_MAX_RANK];
  int64_t stride[WEFT_MAX_RANK]; // bytes
} weft_placement_t;

// Fills base and loops of a SEND: the elements of `owned` (tensor coordinates) in walk order, as far as they are in the
// walk's box. *out_points: how many, 0 when there is nothing to send.
weft_status_t weft_transfer_send(const weft_walk_t* walk, const weft_box_t* owned, const weft_placement_t* memory,
                                 weft_instruction_t* inout_instruction, int64_t* out_points);
// Fills base, levels, tensor, factors and operand of a RECV: of a tensor that travels in walk order, the elements that
// the view takes into `filter` (operand coordinates), stored as `memory` says.
weft_status_t weft_transfer_recv(const weft_walk_t* walk, const weft_shape_t* tensor_shape, const weft_view_t* view,
                                 const weft_box_t* filter, const weft_placement_t* memory,
                                 weft_instruction_t* inout_instruction);
