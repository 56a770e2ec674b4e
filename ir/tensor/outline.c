#include "ir/tensor/outline.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdio.h>

#include "base/array.h"

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}
static bool is_op(MlirOperation op, const char* name) {
  return mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), str(name));
}
static MlirNamedAttribute named(MlirContext context, const char* name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, str(name)), value);
}

typedef struct capture_t { // a value of main's block that a nest uses
  MlirValue outside;
  bool constant;
} capture_t;
typedef struct nest_t {
  weft_allocator_t allocator;
  MlirBlock block; // main's
  WEFT_ARRAY(capture_t) capture;
  weft_status_t status;
} nest_t;

static bool is_of_block(MlirValue value, MlirBlock block) {
  if (mlirValueIsABlockArgument(value)) return mlirBlockEqual(mlirBlockArgumentGetOwner(value), block);
  return mlirBlockEqual(mlirOperationGetBlock(mlirOpResultGetOwner(value)), block);
}

static MlirWalkResult find_captures(MlirOperation op, void* self) {
  nest_t* nest = self;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !nest->status; ++i) {
    MlirValue value = mlirOperationGetOperand(op, i);
    bool known = !is_of_block(value, nest->block);
    for (size_t c = 0; c < nest->capture.count && !known; ++c)
      known = mlirValueEqual(nest->capture.data[c].outside, value);
    if (known) continue;
    bool constant = mlirValueIsAOpResult(value) && is_op(mlirOpResultGetOwner(value), "arith.constant");
    nest->status = WEFT_ARRAY_PUSH(nest->allocator, &nest->capture, (capture_t){value, constant});
  }
  return nest->status ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

typedef struct rewire_t {
  MlirValue from, to;
} rewire_t;
static MlirWalkResult rewire(MlirOperation op, void* self) {
  const rewire_t* values = self;
  mlirOperationReplaceUsesOfWith(op, values->from, values->to);
  return MlirWalkResultAdvance;
}

static MlirOperation make_function(MlirModule module, MlirLocation location, const char* name, MlirType type,
                                   MlirBlock body) {
  MlirContext context = mlirModuleGetContext(module);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  MlirAttribute never = mlirStringAttrGet(context, str("noinline"));
  MlirNamedAttribute attribute[] = {named(context, "sym_name", mlirStringAttrGet(context, str(name))),
                                    named(context, "function_type", mlirTypeAttrGet(type)),
                                    named(context, "sym_visibility", mlirStringAttrGet(context, str("private"))),
                                    named(context, "passthrough", mlirArrayAttrGet(context, 1, &never))};
  MlirOperationState state = mlirOperationStateGet(str("func.func"), location);
  mlirOperationStateAddAttributes(&state, sizeof(attribute) / sizeof(attribute[0]), attribute);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  MlirOperation function = mlirOperationCreate(&state);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), function);
  return function;
}

static weft_status_t outline(nest_t* nest, MlirModule module, MlirOperation loop, int32_t index) {
  MlirContext context = mlirModuleGetContext(module);
  MlirLocation location = mlirOperationGetLocation(loop);
  MlirBlock body = mlirBlockCreate(0, NULL, NULL);
  WEFT_ARRAY(MlirValue) argument = {0};
  WEFT_ARRAY(MlirType) type = {0};
  weft_status_t status = weft_ok();
  for (size_t i = 0; i < nest->capture.count && !status; ++i) {
    MlirValue value = nest->capture.data[i].outside;
    if (nest->capture.data[i].constant) continue;
    status = WEFT_ARRAY_PUSH(nest->allocator, &argument, value);
    if (!status) status = WEFT_ARRAY_PUSH(nest->allocator, &type, mlirValueGetType(value));
  }
  if (status) {
    mlirBlockDestroy(body);
  } else {
    char name[48];
    snprintf(name, sizeof(name), "weft_nest_%d", index);
    MlirType function = mlirFunctionTypeGet(context, (intptr_t)type.count, type.data, 0, NULL);
    MlirAttribute callee = mlirFlatSymbolRefAttrGet(context, str(name));
    MlirNamedAttribute attribute = named(context, "callee", callee);
    MlirOperationState call = mlirOperationStateGet(str("func.call"), location);
    mlirOperationStateAddOperands(&call, (intptr_t)argument.count, argument.data);
    mlirOperationStateAddAttributes(&call, 1, &attribute);
    mlirBlockInsertOwnedOperationBefore(nest->block, loop, mlirOperationCreate(&call));
    mlirOperationRemoveFromParent(loop);
    for (size_t i = 0; i < nest->capture.count; ++i) {
      rewire_t values = {.from = nest->capture.data[i].outside};
      if (nest->capture.data[i].constant) {
        MlirOperation copy = mlirOperationClone(mlirOpResultGetOwner(values.from));
        mlirBlockAppendOwnedOperation(body, copy);
        values.to = mlirOperationGetResult(copy, 0);
      } else {
        values.to = mlirBlockAddArgument(body, mlirValueGetType(values.from), location);
      }
      mlirOperationWalk(loop, rewire, &values, MlirWalkPreOrder);
    }
    mlirBlockAppendOwnedOperation(body, loop);
    MlirOperationState leave = mlirOperationStateGet(str("func.return"), location);
    mlirBlockAppendOwnedOperation(body, mlirOperationCreate(&leave));
    make_function(module, location, name, function, body);
  }
  WEFT_ARRAY_FREE(nest->allocator, &argument);
  WEFT_ARRAY_FREE(nest->allocator, &type);
  return status;
}

weft_status_t weft_tensor_outline_loops(weft_allocator_t allocator, MlirModule module, MlirOperation main) {
  nest_t nest = {.allocator = allocator, .block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0))};
  weft_status_t status = weft_ok();
  int32_t index = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(nest.block), next; !mlirOperationIsNull(op) && !status;
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (!is_op(op, "scf.for") || mlirOperationGetNumResults(op) != 0) continue;
    nest.capture.count = 0;
    mlirOperationWalk(op, find_captures, &nest, MlirWalkPreOrder);
    status = nest.status;
    if (!status) status = outline(&nest, module, op, index++);
  }
  WEFT_ARRAY_FREE(allocator, &nest.capture);
  return status;
}
