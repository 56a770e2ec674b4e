// One loop nest of the tensor engine on plain memory. Private to the simulator.
#pragma once
#include "backend/isa.h"
#include "base/control.h"

enum { WEFT_SIM_OPERANDS = 4 }; // destination and up to three sources

// Loop 0 is the outermost. Operand 0 is the destination. Strides are bytes.
typedef struct weft_sim_nest_t {
  weft_op_e op;
  weft_dtype_e dtype, destination_dtype;
  int32_t loop_count, operands;
  int64_t extent[WEFT_ISA_MAX_LOOPS];
  int64_t stride[WEFT_SIM_OPERANDS][WEFT_ISA_MAX_LOOPS];
  uint8_t* pointer[WEFT_SIM_OPERANDS];
  // Set by weft_sim_nest_execute.
  bool hazard;   // the destination overlaps a source and not point by point: strictly one point after the other
  bool in_place; // a source is the destination itself, point by point
} weft_sim_nest_t;

// The innermost loop, cut into pieces that are worth a call.
typedef struct weft_sim_row_t {
  int64_t count;
  uint8_t* pointer[WEFT_SIM_OPERANDS];
  int64_t stride[WEFT_SIM_OPERANDS];
} weft_sim_row_t;
typedef void (*weft_sim_row_fn)(const weft_sim_nest_t* nest, const weft_sim_row_t* row);

// Type of an operand in memory.
weft_dtype_e weft_sim_operand_dtype(weft_op_e op, weft_dtype_e dtype, weft_dtype_e destination_dtype, int32_t operand);
// NULL, or why the operation doesn't exist for these types.
const char* weft_sim_nest_fault(weft_op_e op, weft_dtype_e dtype, weft_dtype_e destination_dtype);

// Runs the nest in loop order. The memory of every point must be valid. Stops early when `control` says so. The
// nest is changed on the way.
weft_status_t weft_sim_nest_execute(weft_sim_nest_t* nest, const weft_control_t* control);

// nest_widen.c: makes a contraction of f16 or bf16 into one of f32, whose factors are in `room`. False: it is left as
// it is.
enum { WEFT_SIM_WIDEN_ROOM = 1 << 15 };
bool weft_sim_nest_widen(weft_sim_nest_t* nest, float* room);

// Whether a simplified nest is a contraction of aligned f32 that nest_contract.c runs as a whole; and that.
bool weft_sim_nest_is_contraction(const weft_sim_nest_t* nest);
weft_status_t weft_sim_nest_contract(const weft_sim_nest_t* nest, const weft_control_t* control);

// Whether points with different indices of the loops that move the destination have destinations apart from each other.
bool weft_sim_nest_is_injective(const weft_sim_nest_t* nest);
void weft_sim_nest_remove_loop(weft_sim_nest_t* nest, int32_t at);

// nest_block.c: rows * lanes destinations of a contraction. Strides are elements.
typedef struct weft_sim_term_t {
  int64_t first, second; // offsets of the two factors
} weft_sim_term_t;
typedef struct weft_sim_block_t {
  int64_t rows, lanes;
  float* d;
  const float *along, *across;          // the factor that moves with the lanes, and the other
  int64_t d_row, along_row, across_row; // from row to row
  int64_t along_lane;                   // from lane to lane; of `d` it is 1
  bool swapped;                         // `along` is the second factor of the terms
} weft_sim_block_t;
// Whether this processor can do it, by the strides of the lanes.
bool weft_sim_block_applies(int64_t d_lane, int64_t first_lane, int64_t second_lane);
void weft_sim_block_add(const weft_sim_block_t* block, const weft_sim_term_t* term, int64_t count);

// Rows for any operation and type; and for the frequent ones on aligned f32 (NULL: none for this nest).
void weft_sim_row_generic(const weft_sim_nest_t* nest, const weft_sim_row_t* row);
weft_sim_row_fn weft_sim_row_f32(const weft_sim_nest_t* nest);
