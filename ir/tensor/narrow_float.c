#include "ir/tensor/narrow_float.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "base/array.h"

// type, dtype, name of the function that widens to f32, of the one that narrows from it
#define F8_TYPES(X)                                                                                                    \
  X(Float8E4M3FN, F8E4M3FN, "weft_widen_f8e4m3fn", "weft_narrow_f8e4m3fn")                                             \
  X(Float8E5M2, F8E5M2, "weft_widen_f8e5m2", "weft_narrow_f8e5m2")

#define X(type, dtype, widen, narrow)                                                                                  \
  static float widen_##dtype(uint8_t bits) {                                                                           \
    return (float)weft_dtype_load(WEFT_DTYPE_##dtype, &bits);                                                          \
  }                                                                                                                    \
  static uint8_t narrow_##dtype(float value) {                                                                         \
    uint8_t bits;                                                                                                      \
    weft_dtype_store(WEFT_DTYPE_##dtype, value, &bits);                                                                \
    return bits;                                                                                                       \
  }
F8_TYPES(X)
#undef X

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}
static bool is_op(MlirOperation op, const char* name) {
  return mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), str(name));
}
static MlirNamedAttribute named(MlirContext context, const char* name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, str(name)), value);
}

void weft_tensor_export_f8(MlirExecutionEngine engine) {
#define X(type, dtype, widen, narrow)                                                                                  \
  mlirExecutionEngineRegisterSymbol(engine, str(widen), (void*)widen_##dtype);                                         \
  mlirExecutionEngineRegisterSymbol(engine, str(narrow), (void*)narrow_##dtype);
  F8_TYPES(X)
#undef X
}

// The functions that convert this type from and to f32; false for other types.
static bool is_f8(MlirType type, const char** out_widen, const char** out_narrow) {
#define X(name, dtype, widen, narrow)                                                                                  \
  if (mlirTypeIsA##name(type)) return *out_widen = widen, *out_narrow = narrow, true;
  F8_TYPES(X)
#undef X
  return false;
}

static MlirValue insert(MlirOperation before, const char* name, MlirValue operand, MlirType result,
                        const char* callee) {
  MlirContext context = mlirOperationGetContext(before);
  MlirOperationState state = mlirOperationStateGet(str(name), mlirOperationGetLocation(before));
  mlirOperationStateAddOperands(&state, 1, &operand);
  mlirOperationStateAddResults(&state, 1, &result);
  if (callee) {
    MlirNamedAttribute attribute = named(context, "callee", mlirFlatSymbolRefAttrGet(context, str(callee)));
    mlirOperationStateAddAttributes(&state, 1, &attribute);
  }
  MlirOperation op = mlirOperationCreate(&state);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return mlirOperationGetResult(op, 0);
}

static void declare(MlirModule module, const char* name, MlirType from, MlirType to) {
  MlirContext context = mlirModuleGetContext(module);
  MlirOperation at = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(at); at = mlirOperationGetNextInBlock(at)) {
    MlirAttribute known = mlirOperationGetAttributeByName(at, str("sym_name"));
    if (!mlirAttributeIsNull(known) && mlirStringRefEqual(mlirStringAttrGetValue(known), str(name))) return;
  }
  MlirType type = mlirFunctionTypeGet(context, 1, &from, 1, &to);
  MlirNamedAttribute attribute[] = {named(context, "sym_name", mlirStringAttrGet(context, str(name))),
                                    named(context, "function_type", mlirTypeAttrGet(type)),
                                    named(context, "sym_visibility", mlirStringAttrGet(context, str("private")))};
  MlirRegion region = mlirRegionCreate();
  MlirOperationState state = mlirOperationStateGet(str("func.func"), mlirLocationUnknownGet(context));
  mlirOperationStateAddAttributes(&state, sizeof(attribute) / sizeof(attribute[0]), attribute);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), mlirOperationCreate(&state));
}

static void replace_conversion(MlirModule module, MlirOperation op) {
  MlirContext context = mlirModuleGetContext(module);
  MlirType f32 = mlirF32TypeGet(context), i8 = mlirIntegerTypeGet(context, 8);
  MlirValue value = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  MlirType from = mlirValueGetType(value), to = mlirValueGetType(result);
  const char *widen, *narrow;
  if (is_f8(from, &widen, &narrow)) {
    declare(module, widen, i8, f32);
    value = insert(op, "func.call", insert(op, "arith.bitcast", value, i8, NULL), f32, widen);
  } else if (mlirFloatTypeGetWidth(from) < 32) {
    value = insert(op, "arith.extf", value, f32, NULL);
  } else if (mlirFloatTypeGetWidth(from) > 32) {
    value = insert(op, "arith.truncf", value, f32, NULL);
  }
  if (is_f8(to, &widen, &narrow)) {
    declare(module, narrow, f32, i8);
    value = insert(op, "arith.bitcast", insert(op, "func.call", value, i8, narrow), to, NULL);
  } else if (mlirFloatTypeGetWidth(to) != 32) {
    value = insert(op, mlirFloatTypeGetWidth(to) < 32 ? "arith.truncf" : "arith.extf", value, to, NULL);
  }
  mlirValueReplaceAllUsesOfWith(result, value);
  mlirOperationDestroy(op);
}

typedef struct found_t {
  weft_allocator_t allocator;
  WEFT_ARRAY(MlirOperation) op;
  weft_status_t status;
} found_t;
static MlirWalkResult find(MlirOperation op, void* self) {
  found_t* found = self;
  const char *widen, *narrow;
  if (!is_op(op, "arith.extf") && !is_op(op, "arith.truncf")) return MlirWalkResultAdvance;
  if (is_f8(mlirValueGetType(mlirOperationGetOperand(op, 0)), &widen, &narrow) ||
      is_f8(mlirValueGetType(mlirOperationGetResult(op, 0)), &widen, &narrow))
    found->status = WEFT_ARRAY_PUSH(found->allocator, &found->op, op);
  return found->status ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

weft_status_t weft_tensor_call_f8(weft_allocator_t allocator, MlirModule module) {
  found_t found = {.allocator = allocator};
  mlirOperationWalk(mlirModuleGetOperation(module), find, &found, MlirWalkPostOrder);
  for (size_t i = 0; i < found.op.count && !found.status; ++i) replace_conversion(module, found.op.data[i]);
  WEFT_ARRAY_FREE(allocator, &found.op);
  return found.status;
}
