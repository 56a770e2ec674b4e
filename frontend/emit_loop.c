// scf.for over the rows of a sequence.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "frontend/emit.h"
#include "frontend/mlir_build.h"
#include "ir/tensor/tensor.h"

static MlirValue append(node_t* node, MlirOperation op) {
  mlirBlockAppendOwnedOperation(node->builder->block, op);
  return mlirOperationGetResult(op, 0);
}

static weft_status_t as_value(node_t* node, const value_t* like, const shape_t* shape, MlirValue mlir, value_t** out) {
  TRY(weft_onnx_known(node, like->dtype, shape, NULL, out));
  (*out)->mlir = mlir;
  return weft_ok();
}

static MlirValue index_constant(node_t* node, int64_t number) {
  MlirType type = mlirIndexTypeGet(node->builder->context);
  weft_onnx_attribute_t value = {"value", mlirIntegerAttrGet(type, number)};
  return append(node, weft_onnx_create_op(node->location, "arith.constant", &type, 0, NULL, 1, &value));
}

weft_status_t weft_onnx_hoist(node_t* node, value_t* value) {
  MlirValue ignored;
  return value ? weft_onnx_materialize(node->builder, node->location, value, &ignored) : weft_ok();
}

static shape_t shape_of_rows(const weft_onnx_loop_t* loop, const shape_t* row) {
  shape_t shape = {.rank = row->rank + 1, .extent = {loop->trips}};
  memcpy(shape.extent + 1, row->extent, (size_t)row->rank * sizeof(int64_t));
  return shape;
}

// The part of [trips, ...] that is this trip's row, as tensor.extract_slice and tensor.insert_slice want it: `operands`
// tensors come before the row's index.
static MlirOperation make_slice(node_t* node, const weft_onnx_loop_t* loop, const char* name, const shape_t* rows,
                                int32_t operands, const MlirValue* operand, MlirType result) {
  MlirContext context = node->builder->context;
  shape_t offset = {0}, size = *rows, stride = {0};
  offset.extent[0] = mlirShapedTypeGetDynamicStrideOrOffset();
  size.extent[0] = 1;
  for (int32_t i = 0; i < rows->rank; ++i) stride.extent[i] = 1;
  int32_t segment[] = {1, 1, 1, 0, 0}; // tensors and the index, then no sizes and strides
  MlirValue all[] = {operand[0], operands > 1 ? operand[1] : loop->row, loop->row};
  weft_onnx_attribute_t attributes[] = {
      {"static_offsets", weft_onnx_i64_array(context, rows->rank, offset.extent)},
      {"static_sizes", weft_onnx_i64_array(context, rows->rank, size.extent)},
      {"static_strides", weft_onnx_i64_array(context, rows->rank, stride.extent)},
      {"operandSegmentSizes", weft_onnx_segments(context, 3 + operands, operands > 1 ? segment : segment + 1)}};
  return weft_onnx_create_op(node->location, name, &result, operands + 1, all, 4, attributes);
}

weft_status_t weft_onnx_loop_row(node_t* node, const weft_onnx_loop_t* loop, value_t* value, value_t** out) {
  shape_t row = weft_onnx_shape_make(value->shape.rank - 1, value->shape.extent + 1);
  if (!loop->row.ptr) return weft_onnx_reshape(node, value, &row, out);
  MlirValue source;
  TRY(weft_onnx_materialize(node->builder, node->location, value, &source));
  MlirType type = weft_onnx_tensor_type(node->builder->context, value->dtype, &row);
  MlirOperation op = make_slice(node, loop, "tensor.extract_slice", &value->shape, 1, &source, type);
  return as_value(node, value, &row, append(node, op), out);
}

static weft_status_t run_in_place(node_t* node, weft_onnx_loop_t* loop, value_t** out_state, value_t** out_rows) {
  value_t* row = NULL;
  TRY(loop->step(node, loop, loop->state, out_state, &row));
  return loop->collects ? weft_onnx_unsqueeze(node, row, 0, out_rows) : weft_ok();
}

// The body: operations of one trip, then scf.yield. builder->block is the body's.
static weft_status_t make_trip(node_t* node, weft_onnx_loop_t* loop, MlirValue last, const shape_t* rows) {
  MlirBlock body = node->builder->block;
  MlirValue yielded[WEFT_ONNX_MAX_STATES + 1];
  value_t *state[WEFT_ONNX_MAX_STATES], *next[WEFT_ONNX_MAX_STATES], *row = NULL;
  for (int32_t i = 0; i < loop->state_count; ++i)
    TRY(as_value(node, loop->state[i], &loop->state[i]->shape, mlirBlockGetArgument(body, i + 1), &state[i]));
  loop->row = mlirBlockGetArgument(body, 0);
  if (loop->backwards) {
    MlirType type = mlirIndexTypeGet(node->builder->context);
    loop->row = append(
        node, weft_onnx_create_op(node->location, "arith.subi", &type, 2, (MlirValue[]){last, loop->row}, 0, NULL));
  }
  TRY(loop->step(node, loop, state, next, &row));
  for (int32_t i = 0; i < loop->state_count; ++i)
    TRY(weft_onnx_materialize(node->builder, node->location, next[i], &yielded[i]));
  int32_t count = loop->state_count;
  if (loop->collects) {
    MlirValue operand[2] = {{NULL}, mlirBlockGetArgument(body, count + 1)};
    TRY(weft_onnx_materialize(node->builder, node->location, row, &operand[0]));
    MlirOperation op = make_slice(node, loop, "tensor.insert_slice", rows, 2, operand, mlirValueGetType(operand[1]));
    yielded[count++] = append(node, op);
  }
  mlirBlockAppendOwnedOperation(body, weft_onnx_create_op(node->location, "scf.yield", NULL, count, yielded, 0, NULL));
  return weft_ok();
}

weft_status_t weft_onnx_loop(node_t* node, weft_onnx_loop_t* loop, value_t** out_state, value_t** out_rows) {
  loop->row.ptr = NULL;
  if (loop->trips == 1) return run_in_place(node, loop, out_state, out_rows);
  weft_onnx_builder_t* builder = node->builder;
  MlirBlock outside = builder->block;
  MlirValue operand[3 + WEFT_ONNX_MAX_STATES + 1] = {index_constant(node, 0), index_constant(node, loop->trips),
                                                     index_constant(node, 1)};
  MlirValue last = index_constant(node, loop->trips - 1);
  shape_t rows = shape_of_rows(loop, &loop->state[0]->shape);
  int32_t count = 0;
  for (; count < loop->state_count; ++count)
    TRY(weft_onnx_materialize(builder, node->location, loop->state[count], &operand[3 + count]));
  if (loop->collects) {
    MlirType type = weft_onnx_tensor_type(builder->context, loop->state[0]->dtype, &rows);
    operand[3 + count++] = append(node, weft_onnx_create_op(node->location, "tensor.empty", &type, 0, NULL, 0, NULL));
  }
  MlirType type[1 + WEFT_ONNX_MAX_STATES + 1] = {mlirIndexTypeGet(builder->context)};
  MlirLocation location[1 + WEFT_ONNX_MAX_STATES + 1] = {node->location};
  for (int32_t i = 0; i < count; ++i) {
    type[1 + i] = mlirValueGetType(operand[3 + i]);
    location[1 + i] = node->location;
  }
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, mlirBlockCreate(1 + count, type, location));
  builder->block = mlirRegionGetFirstBlock(region);
  weft_status_t status = make_trip(node, loop, last, &rows);
  builder->block = outside;
  if (status) {
    mlirRegionDestroy(region);
    return status;
  }
  MlirOperationState state = mlirOperationStateGet(mlirStringRefCreateFromCString("scf.for"), node->location);
  mlirOperationStateAddResults(&state, count, type + 1);
  mlirOperationStateAddOperands(&state, 3 + count, operand);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(outside, op);
  for (int32_t i = 0; i < loop->state_count; ++i)
    TRY(as_value(node, loop->state[i], &loop->state[i]->shape, mlirOperationGetResult(op, i), &out_state[i]));
  if (!loop->collects) return weft_ok();
  return as_value(node, loop->state[0], &rows, mlirOperationGetResult(op, loop->state_count), out_rows);
}
