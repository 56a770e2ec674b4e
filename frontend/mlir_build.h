// Operations through MLIR's C API, in the shape the importer needs.
#pragma once
#include <mlir-c/IR.h>

#include "frontend/value.h"

typedef struct weft_onnx_attribute_t {
  const char* name;
  MlirAttribute value;
} weft_onnx_attribute_t;

// An operation of the given name without regions; result may be NULL for none. The caller appends it to a block.
MlirOperation weft_onnx_create_op(MlirLocation location, const char* name, const MlirType* result,
                                  intptr_t operand_count, const MlirValue* operands, intptr_t attribute_count,
                                  const weft_onnx_attribute_t* attributes);
// The same with one region, which the operation then owns.
MlirOperation weft_onnx_create_op_with_region(MlirLocation location, const char* name, const MlirType* result,
                                              intptr_t operand_count, const MlirValue* operands,
                                              intptr_t attribute_count, const weft_onnx_attribute_t* attributes,
                                              MlirRegion region);
MlirType weft_onnx_tensor_type(MlirContext context, weft_dtype_e dtype, const weft_onnx_shape_t* shape);
// [count x i64] and [count x i32] as DenseArrayAttr.
MlirAttribute weft_onnx_i64_array(MlirContext context, int64_t count, const int64_t* values);
MlirAttribute weft_onnx_segments(MlirContext context, int32_t count, const int32_t* sizes);
// "op_type:node_name".
MlirLocation weft_onnx_location(MlirContext context, const char* text);
