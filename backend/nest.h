// Loop nests while they are being made: unit loops fall away, adjacent loops that are one loop for every operand become
// one. The order of the points never changes, so neither does the order in which a sum is accumulated.
#pragma once
#include "backend/isa.h"

enum { WEFT_NEST_OPERANDS = 4 };
typedef struct weft_nest_t {
  int32_t operand_count, loop_count;
  bool empty; // some loop has no points
  int64_t extent[WEFT_ISA_MAX_LEVELS];
  int64_t stride[WEFT_ISA_MAX_LEVELS][WEFT_NEST_OPERANDS];
} weft_nest_t;

void weft_nest_initialize(int32_t operand_count, weft_nest_t* out_nest);
// Adds the next inner loop; at most WEFT_ISA_MAX_LEVELS of them.
void weft_nest_push(weft_nest_t* nest, int64_t extent, const int64_t* strides);
int64_t weft_nest_points(const weft_nest_t* nest);
// Writes the loops into an instruction. UNSUPPORTED when there are too many or a number exceeds 32 bits.
weft_status_t weft_nest_store(const weft_nest_t* nest, weft_instruction_t* inout_instruction);

// UNSUPPORTED naming `what` when the value exceeds the signed 32 bits of an instruction word.
weft_status_t weft_nest_narrow(int64_t value, const char* what, int32_t* out);
