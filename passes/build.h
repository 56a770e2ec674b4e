// Private to passes: appends ops to the tensor IR.
#pragma once
#include "passes/field.h"

typedef struct weft_build_t { // where new ops go, and whose they are
  MlirOperation before;
  MlirLocation location;
} weft_build_t;
static inline weft_build_t weft_build_before(MlirOperation op) {
  return (weft_build_t){op, mlirOperationGetLocation(op)};
}

MlirType weft_build_tensor_type(MlirContext context, weft_dtype_e dtype, const weft_shape_t* shape);
MlirValue weft_build_scalar(const weft_build_t* build, weft_dtype_e dtype, double value); // arith.constant
MlirValue weft_build_constant(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape,
                              const void* bytes); // copied
MlirValue weft_build_filled(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape, double value);
// A movement of another value of the same shape: `op` again with its first operand replaced. fill: of a tensor.pad.
MlirValue weft_build_moved(const weft_build_t* build, MlirOperation op, int32_t count, const MlirValue* operands,
                           weft_dtype_e dtype, double fill);

// --- A pointwise generic over a shape, or one with the loops of another. Values in between are scalars of its body.
enum { WEFT_POINT_OPERANDS = 8 };
typedef struct weft_point_t {
  const weft_build_t* build;
  weft_arena_t* arena;
  weft_shape_t shape;
  MlirBlock body;
  int32_t count;
  MlirValue operand[WEFT_POINT_OPERANDS];
  MlirAttribute map[WEFT_POINT_OPERANDS + 1];
} weft_point_t;
void weft_point_begin(const weft_build_t* build, weft_arena_t* arena, const weft_shape_t* shape, weft_point_t* out);
// The element of a tensor of the shape.
MlirValue weft_point_input(weft_point_t* point, MlirValue tensor);
// The element of a tensor along some dimensions of the shape, a mask.
MlirValue weft_point_part(weft_point_t* point, MlirValue tensor, uint32_t dims);
// The element of a field: a constant of this type.
weft_status_t weft_point_field(weft_point_t* point, const weft_field_t* field, weft_dtype_e dtype, MlirValue* out);
MlirValue weft_point_number(weft_point_t* point, weft_dtype_e dtype, double value);
// An op of the body: `b` may be null.
MlirValue weft_point_op(weft_point_t* point, const char* name, weft_dtype_e dtype, MlirValue a, MlirValue b);
MlirValue weft_point_end(weft_point_t* point, MlirValue yielded, weft_dtype_e dtype);

// A reduction with the maps and loops of `like` over other operands. body(arguments) -> next accumulator.
typedef MlirValue (*weft_build_body_fn)(const weft_build_t* build, MlirBlock body);
MlirValue weft_build_reduction(const weft_build_t* build, MlirOperation like, int32_t count, const MlirValue* inputs,
                               MlirValue init, weft_build_body_fn body);
// The same over loops and maps of its own.
MlirValue weft_build_reduction_over(const weft_build_t* build, MlirAttribute maps, MlirAttribute iterators,
                                    int32_t count, const MlirValue* inputs, MlirValue init, weft_build_body_fn body);
MlirValue weft_build_empty(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape);
// One op with one result at the end of a block.
MlirValue weft_build_scalar_op(const weft_build_t* build, MlirBlock block, const char* name, MlirType type, MlirValue a,
                               MlirValue b);
