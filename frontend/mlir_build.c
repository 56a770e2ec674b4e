#include "frontend/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "ir/tensor/tensor.h"

MlirOperation weft_onnx_create_op_with_region(MlirLocation location, const char* name, const MlirType* result,
                                              intptr_t operand_count, const MlirValue* operands,
                                              intptr_t attribute_count, const weft_onnx_attribute_t* attributes,
                                              MlirRegion region) {
  MlirOperationState state = mlirOperationStateGet(mlirStringRefCreateFromCString(name), location);
  MlirContext context = mlirLocationGetContext(location);
  if (result) mlirOperationStateAddResults(&state, 1, result);
  mlirOperationStateAddOperands(&state, operand_count, operands);
  for (intptr_t i = 0; i < attribute_count; ++i) {
    MlirIdentifier identifier = mlirIdentifierGet(context, mlirStringRefCreateFromCString(attributes[i].name));
    MlirNamedAttribute named = mlirNamedAttributeGet(identifier, attributes[i].value);
    mlirOperationStateAddAttributes(&state, 1, &named);
  }
  if (region.ptr) mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return mlirOperationCreate(&state);
}

MlirOperation weft_onnx_create_op(MlirLocation location, const char* name, const MlirType* result,
                                  intptr_t operand_count, const MlirValue* operands, intptr_t attribute_count,
                                  const weft_onnx_attribute_t* attributes) {
  return weft_onnx_create_op_with_region(location, name, result, operand_count, operands, attribute_count, attributes,
                                         (MlirRegion){NULL});
}

MlirType weft_onnx_tensor_type(MlirContext context, weft_dtype_e dtype, const weft_onnx_shape_t* shape) {
  return mlirRankedTensorTypeGet(shape->rank, shape->extent, weft_tensor_type(context, dtype), mlirAttributeGetNull());
}

MlirAttribute weft_onnx_i64_array(MlirContext context, int64_t count, const int64_t* values) {
  return mlirDenseI64ArrayGet(context, count, values);
}

MlirAttribute weft_onnx_segments(MlirContext context, int32_t count, const int32_t* sizes) {
  return mlirDenseI32ArrayGet(context, count, sizes);
}

MlirLocation weft_onnx_location(MlirContext context, const char* text) {
  return mlirLocationNameGet(context, mlirStringRefCreateFromCString(text), mlirLocationUnknownGet(context));
}
