#include "passes/build.h"

#include <mlir-c/AffineMap.h>
#include <mlir-c/Dialect/Linalg.h>
#include <string.h>

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}

static MlirContext context_of(const weft_build_t* build) {
  return mlirLocationGetContext(build->location);
}

static MlirNamedAttribute named(MlirContext context, const char* name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, str(name)), value);
}

static MlirValue insert(const weft_build_t* build, MlirOperationState* state) {
  MlirOperation op = mlirOperationCreate(state);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(build->before), build->before, op);
  return mlirOperationGetResult(op, 0);
}

MlirType weft_build_tensor_type(MlirContext context, weft_dtype_e dtype, const weft_shape_t* shape) {
  return mlirRankedTensorTypeGet(shape->rank, shape->extent, weft_tensor_type(context, dtype), mlirAttributeGetNull());
}

static MlirValue constant(const weft_build_t* build, MlirType type, MlirAttribute value) {
  MlirOperationState state = mlirOperationStateGet(str("arith.constant"), build->location);
  MlirNamedAttribute attribute = named(context_of(build), "value", value);
  mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddAttributes(&state, 1, &attribute);
  return insert(build, &state);
}

MlirValue weft_build_scalar(const weft_build_t* build, weft_dtype_e dtype, double value) {
  MlirType type = weft_tensor_type(context_of(build), dtype);
  MlirAttribute attribute = weft_dtype_is_float(dtype) ? mlirFloatAttrDoubleGet(context_of(build), type, value)
                                                       : mlirIntegerAttrGet(type, (int64_t)value);
  return constant(build, type, attribute);
}

MlirValue weft_build_constant(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape,
                              const void* bytes) {
  MlirType type = weft_build_tensor_type(context_of(build), dtype, shape);
  size_t size = (size_t)weft_shape_elements(shape) * weft_dtype_size(dtype);
  return constant(build, type, mlirDenseElementsAttrRawBufferGet(type, size, bytes));
}

MlirValue weft_build_empty(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape) {
  MlirOperationState state = mlirOperationStateGet(str("tensor.empty"), build->location);
  MlirType type = weft_build_tensor_type(context_of(build), dtype, shape);
  mlirOperationStateAddResults(&state, 1, &type);
  return insert(build, &state);
}

MlirValue weft_build_filled(const weft_build_t* build, weft_dtype_e dtype, const weft_shape_t* shape, double value) {
  MlirValue operands[] = {weft_build_scalar(build, dtype, value), weft_build_empty(build, dtype, shape)};
  MlirType type = mlirValueGetType(operands[1]);
  MlirRegion region = mlirRegionCreate();
  MlirNamedAttribute segments =
      named(context_of(build), "operandSegmentSizes", mlirDenseI32ArrayGet(context_of(build), 2, (int32_t[]){1, 1}));
  MlirOperationState state = mlirOperationStateGet(str("linalg.fill"), build->location);
  mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddOperands(&state, 2, operands);
  mlirOperationStateAddAttributes(&state, 1, &segments);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  MlirValue filled = insert(build, &state);
  mlirLinalgFillBuiltinNamedOpRegion(mlirOpResultGetOwner(filled));
  return filled;
}

static void add_attributes_of(MlirOperation op, MlirOperationState* state) {
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirNamedAttribute attribute = mlirOperationGetAttribute(op, i);
    mlirOperationStateAddAttributes(state, 1, &attribute);
  }
}

MlirValue weft_build_scalar_op(const weft_build_t* build, MlirBlock block, const char* name, MlirType type, MlirValue a,
                               MlirValue b) {
  MlirOperationState state = mlirOperationStateGet(str(name), build->location);
  MlirValue operands[] = {a, b};
  if (type.ptr) mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddOperands(&state, b.ptr ? 2 : 1, operands);
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(block, op);
  return type.ptr ? mlirOperationGetResult(op, 0) : (MlirValue){NULL};
}

// The region of a movement of another element type: it yields the fill, or the element that it gets.
static MlirRegion movement_region(const weft_build_t* build, MlirOperation op, weft_dtype_e dtype, double fill) {
  MlirRegion region = mlirRegionCreate();
  if (mlirOperationGetNumRegions(op) == 0) return region;
  bool pads = weft_ir_is(op, "tensor.pad");
  MlirBlock old = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)), body = mlirBlockCreate(0, NULL, NULL);
  mlirRegionAppendOwnedBlock(region, body);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old); ++i) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(old, i));
    mlirBlockAddArgument(body, pads ? type : weft_tensor_type(context_of(build), dtype), build->location);
  }
  MlirValue yielded = pads ? weft_build_scalar(build, dtype, fill) : mlirBlockGetArgument(body, 0);
  weft_build_scalar_op(build, body, pads ? "tensor.yield" : "linalg.yield", (MlirType){NULL}, yielded,
                       (MlirValue){NULL});
  return region;
}

MlirValue weft_build_moved(const weft_build_t* build, MlirOperation op, int32_t count, const MlirValue* operands,
                           weft_dtype_e dtype, double fill) {
  weft_shape_t shape;
  weft_dtype_e old;
  weft_ir_shape(mlirOperationGetResult(op, 0), &shape, &old);
  MlirOperationState state = mlirOperationStateGet(mlirIdentifierStr(mlirOperationGetName(op)), build->location);
  MlirType type = weft_build_tensor_type(context_of(build), dtype, &shape);
  mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddOperands(&state, count, operands);
  bool generic = weft_ir_is(op, "linalg.generic");
  MlirValue init = generic ? weft_build_empty(build, dtype, &shape) : (MlirValue){NULL};
  if (generic) mlirOperationStateAddOperands(&state, 1, &init);
  add_attributes_of(op, &state);
  MlirRegion region = movement_region(build, op, dtype, fill);
  if (mlirOperationGetNumRegions(op) > 0)
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
  else
    mlirRegionDestroy(region);
  return insert(build, &state);
}

// --- Pointwise

void weft_point_begin(const weft_build_t* build, weft_arena_t* arena, const weft_shape_t* shape, weft_point_t* out) {
  *out = (weft_point_t){.build = build, .arena = arena, .shape = *shape, .body = mlirBlockCreate(0, NULL, NULL)};
}

MlirValue weft_point_part(weft_point_t* point, MlirValue tensor, uint32_t dims) {
  MlirContext context = context_of(point->build);
  MlirAffineExpr expression[WEFT_MAX_RANK];
  intptr_t rank = 0;
  for (int32_t d = 0; d < point->shape.rank; ++d)
    if (dims >> d & 1) expression[rank++] = mlirAffineDimExprGet(context, d);
  point->map[point->count] = mlirAffineMapAttrGet(mlirAffineMapGet(context, point->shape.rank, 0, rank, expression));
  point->operand[point->count++] = tensor;
  MlirType type = mlirShapedTypeGetElementType(mlirValueGetType(tensor));
  return mlirBlockAddArgument(point->body, type, point->build->location);
}

MlirValue weft_point_input(weft_point_t* point, MlirValue tensor) {
  return weft_point_part(point, tensor, (1u << point->shape.rank) - 1);
}

weft_status_t weft_point_field(weft_point_t* point, const weft_field_t* field, weft_dtype_e dtype, MlirValue* out) {
  double number;
  if (weft_field_is_number(field, &number)) return *out = weft_point_number(point, dtype, number), weft_ok();
  weft_shape_t shape = {0};
  uint32_t dims = 0;
  for (int32_t d = 0; d < field->shape.rank; ++d) {
    if (field->shape.extent[d] == 1) continue;
    dims |= 1u << d;
    shape.extent[shape.rank++] = field->shape.extent[d];
  }
  uint8_t* bytes;
  size_t width = weft_dtype_size(dtype);
  int64_t count = weft_shape_elements(&shape);
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(point->arena, (size_t)count, width, (void**)&bytes));
  for (int64_t i = 0; i < count; ++i) weft_dtype_store(dtype, field->data[i], bytes + (size_t)i * width);
  *out = weft_point_part(point, weft_build_constant(point->build, dtype, &shape, bytes), dims);
  return weft_ok();
}

MlirValue weft_point_number(weft_point_t* point, weft_dtype_e dtype, double value) {
  return weft_build_scalar(point->build, dtype, value);
}

MlirValue weft_point_op(weft_point_t* point, const char* name, weft_dtype_e dtype, MlirValue a, MlirValue b) {
  return weft_build_scalar_op(point->build, point->body, name, weft_tensor_type(context_of(point->build), dtype), a, b);
}

static MlirValue generic(const weft_build_t* build, int32_t inputs, const MlirValue* input, MlirValue init,
                         MlirAttribute maps, MlirAttribute iterators, MlirBlock body) {
  MlirContext context = context_of(build);
  MlirType type = mlirValueGetType(init);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  MlirNamedAttribute attributes[] = {
      named(context, "indexing_maps", maps), named(context, "iterator_types", iterators),
      named(context, "operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, (int32_t[]){inputs, 1}))};
  MlirOperationState state = mlirOperationStateGet(str("linalg.generic"), build->location);
  mlirOperationStateAddResults(&state, 1, &type);
  mlirOperationStateAddOperands(&state, inputs, input);
  mlirOperationStateAddOperands(&state, 1, &init);
  mlirOperationStateAddAttributes(&state, 3, attributes);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return insert(build, &state);
}

MlirValue weft_point_end(weft_point_t* point, MlirValue yielded, weft_dtype_e dtype) {
  MlirContext context = context_of(point->build);
  MlirAttribute parallel = mlirAttributeParseGet(context, str("#linalg.iterator_type<parallel>"));
  MlirAttribute iterator[WEFT_MAX_RANK];
  for (int32_t d = 0; d < point->shape.rank; ++d) iterator[d] = parallel;
  MlirValue init = weft_build_empty(point->build, dtype, &point->shape);
  int32_t inputs = point->count;
  point->map[inputs] = mlirAffineMapAttrGet(mlirAffineMapMultiDimIdentityGet(context, point->shape.rank));
  mlirBlockAddArgument(point->body, weft_tensor_type(context, dtype), point->build->location);
  weft_build_scalar_op(point->build, point->body, "linalg.yield", (MlirType){NULL}, yielded, (MlirValue){NULL});
  return generic(point->build, inputs, point->operand, init, mlirArrayAttrGet(context, inputs + 1, point->map),
                 mlirArrayAttrGet(context, point->shape.rank, iterator), point->body);
}

MlirValue weft_build_reduction_over(const weft_build_t* build, MlirAttribute maps, MlirAttribute iterators,
                                    int32_t count, const MlirValue* inputs, MlirValue init, weft_build_body_fn body) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  for (int32_t i = 0; i <= count; ++i) {
    MlirType type = mlirValueGetType(i < count ? inputs[i] : init);
    mlirBlockAddArgument(block, mlirShapedTypeGetElementType(type), build->location);
  }
  MlirValue yielded = body(build, block);
  weft_build_scalar_op(build, block, "linalg.yield", (MlirType){NULL}, yielded, (MlirValue){NULL});
  return generic(build, count, inputs, init, maps, iterators, block);
}

MlirValue weft_build_reduction(const weft_build_t* build, MlirOperation like, int32_t count, const MlirValue* inputs,
                               MlirValue init, weft_build_body_fn body) {
  return weft_build_reduction_over(build, weft_ir_attribute(like, "indexing_maps"),
                                   weft_ir_attribute(like, "iterator_types"), count, inputs, init, body);
}
