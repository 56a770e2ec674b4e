// Private to passes: the iteration space of a kernel, and how the loops of further ops lie in it. The first op's loops
// are the dimensions; a later op fits when each of its loops walks a dimension that it inherits from a value of the
// kernel.
#pragma once
#include "base/array.h"
#include "passes/generic.h"

enum {
  // A stream that ends or begins at a tile has a colour there; together, and with chains and what passes by, these stay
  // below a router's 24.
  WEFT_MOST_INFLOW = 12, // tensors that a kernel reads
  WEFT_MOST_OUTFLOW = 8, // operands that read a kernel's results
  WEFT_NO_DIM = -1,       // extent 1
  WEFT_BROADCAST_DIM = -2 // made by a broadcast on the way from the value
};
typedef struct weft_space_value_t {
  MlirValue value;
  bool made;                  // by an op of the kernel; else read from outside
  int32_t dim[WEFT_MAX_RANK]; // the kernel's dimension along each of the value's
} weft_space_value_t;
typedef struct weft_space_t {
  weft_allocator_t allocator;
  int32_t dim_count; // extents above 1 only
  int64_t extent[WEFT_MAX_DIMS];
  WEFT_ARRAY(weft_space_value_t) value;
} weft_space_t;

void weft_space_deinitialize(weft_space_t* space);
// The value of the space that `value` is, seen through transposes, broadcasts and reshapes by extents of 1; NULL: none.
// out_dim: the kernel's dimension along each dimension of `value`.
const weft_space_value_t* weft_space_find(const weft_space_t* space, MlirValue value, int32_t out_dim[WEFT_MAX_RANK]);
// Starts the space with an op's loops. out_loop[l]: the dimension of loop l or WEFT_NO_DIM.
void weft_space_start(weft_allocator_t allocator, const weft_generic_t* generic, weft_space_t* out_space,
                      int32_t out_loop[WEFT_MAX_DIMS]);
// Whether the op, which reads at least one value made in the kernel, lies in the space.
bool weft_space_map(const weft_space_t* space, const weft_generic_t* generic, int32_t out_loop[WEFT_MAX_DIMS]);
// Makes the op's results and what it reads known to later ops.
weft_status_t weft_space_add(weft_space_t* space, const weft_generic_t* generic, const int32_t loop[WEFT_MAX_DIMS]);

// Whether an operand (an input, or an init whose value counts) is used by the body; a pooling window isn't.
bool weft_generic_uses(const weft_generic_t* generic, int32_t operand);
// Whether a movement op keeps the order of elements and its extents but for ones: out_to[r] is the dimension of the
// result that dimension r of the input becomes, -1 for an extent of 1.
bool weft_movement_is_unit_reshape(MlirOperation op, int32_t out_to[WEFT_MAX_RANK]);
