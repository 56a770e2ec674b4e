#include "ir/tensor/prepare.h"

#include <mlir-c/AffineMap.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

enum { HOIST_FROM_BYTES = 1024, MAX_LOOPS = 32 };

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}
static bool is_op(MlirOperation op, const char* name) {
  return mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), str(name));
}

MlirOperation weft_tensor_find_main(MlirModule module) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!is_op(op, "func.func")) continue;
    MlirAttribute name = mlirOperationGetAttributeByName(op, str("sym_name"));
    if (mlirAttributeIsAString(name) && mlirStringRefEqual(mlirStringAttrGetValue(name), str("main"))) return op;
  }
  return (MlirOperation){NULL};
}

// Moves a kernel's ops before it and lets what it yields stand for its results.
static void inline_kernel(MlirOperation kernel) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(kernel, 0));
  MlirOperation op = mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (mlirOperationIsNull(next)) {
      intptr_t results = mlirOperationGetNumResults(kernel);
      for (intptr_t i = 0; i < results; ++i)
        mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(kernel, i), mlirOperationGetOperand(op, i));
    } else {
      mlirOperationMoveBefore(op, kernel);
    }
    op = next;
  }
  mlirOperationDestroy(kernel);
}

typedef struct found_t {
  weft_allocator_t allocator;
  WEFT_ARRAY(MlirOperation) op;
  const char* name;
  weft_status_t status;
} found_t;
static MlirWalkResult find(MlirOperation op, void* self) {
  found_t* found = self;
  if (is_op(op, found->name)) found->status = WEFT_ARRAY_PUSH(found->allocator, &found->op, op);
  return found->status ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}
static weft_status_t find_all(weft_allocator_t allocator, MlirOperation root, const char* name, found_t* out_found) {
  *out_found = (found_t){.allocator = allocator, .name = name};
  mlirOperationWalk(root, find, out_found, MlirWalkPostOrder);
  return out_found->status;
}

static bool is_large(MlirAttribute value) {
  if (!mlirAttributeIsADenseElements(value) && !mlirAttributeIsADenseResourceElements(value)) return false;
  if (mlirAttributeIsADenseElements(value) && mlirDenseElementsAttrIsSplat(value)) return false;
  MlirType type = mlirAttributeGetType(value);
  weft_dtype_e dtype;
  if (!weft_tensor_dtype(mlirShapedTypeGetElementType(type), &dtype)) return false;
  return mlirElementsAttrGetNumElements(value) * (int64_t)weft_dtype_size(dtype) >= HOIST_FROM_BYTES;
}

static weft_status_t hoist_constants(weft_allocator_t allocator, MlirOperation main,
                                     weft_tensor_constants_t* constants) {
  MlirBlock entry = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  found_t found;
  weft_status_t status = find_all(allocator, main, "arith.constant", &found);
  for (size_t i = 0; i < found.op.count && !status; ++i) {
    MlirOperation op = found.op.data[i];
    MlirAttribute value = mlirOperationGetAttributeByName(op, str("value"));
    if (!is_large(value)) continue;
    void* bytes = NULL;
    size_t size;
    status = weft_tensor_constant_bytes(allocator, value, &bytes, &size);
    if (!status) status = WEFT_ARRAY_PUSH(allocator, &constants->bytes, bytes);
    if (status) {
      weft_allocator_free(allocator, bytes);
      break;
    }
    MlirValue argument = mlirBlockAddArgument(entry, mlirAttributeGetType(value), mlirOperationGetLocation(op));
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), argument);
    mlirOperationDestroy(op);
  }
  WEFT_ARRAY_FREE(allocator, &found.op);
  return status;
}

// main's type follows its block's arguments; each of them is read only.
static weft_status_t retype_main(weft_allocator_t allocator, MlirOperation main) {
  MlirContext context = mlirOperationGetContext(main);
  MlirBlock entry = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  MlirType old = mlirTypeAttrGetValue(mlirOperationGetAttributeByName(main, str("function_type")));
  intptr_t inputs = mlirBlockGetNumArguments(entry), results = mlirFunctionTypeGetNumResults(old);
  MlirType* type = NULL;
  MlirAttribute* attribute = NULL;
  weft_status_t status = weft_allocator_calloc(allocator, (size_t)(inputs + results + 1), sizeof(*type), (void**)&type);
  if (!status) status = weft_allocator_calloc(allocator, (size_t)inputs + 1, sizeof(*attribute), (void**)&attribute);
  if (!status) {
    MlirNamedAttribute fixed =
        mlirNamedAttributeGet(mlirIdentifierGet(context, str("bufferization.writable")), mlirBoolAttrGet(context, 0));
    for (intptr_t i = 0; i < inputs; ++i) {
      type[i] = mlirValueGetType(mlirBlockGetArgument(entry, i));
      attribute[i] = mlirDictionaryAttrGet(context, 1, &fixed);
    }
    for (intptr_t i = 0; i < results; ++i) type[inputs + i] = mlirFunctionTypeGetResult(old, i);
    MlirType function = mlirFunctionTypeGet(context, inputs, type, results, type + inputs);
    mlirOperationSetAttributeByName(main, str("function_type"), mlirTypeAttrGet(function));
    mlirOperationSetAttributeByName(main, str("arg_attrs"), mlirArrayAttrGet(context, inputs, attribute));
    mlirOperationRemoveAttributeByName(main, str("res_attrs"));
    mlirOperationSetAttributeByName(main, str("llvm.emit_c_interface"), mlirUnitAttrGet(context));
  }
  weft_allocator_free(allocator, attribute);
  weft_allocator_free(allocator, type);
  return status;
}

// Moves the loop over the result's last dimension innermost: there the accumulators are independent and usually
// contiguous, so that LLVM vectorises a sum without reordering it.
static void interchange(MlirOperation generic) {
  MlirContext context = mlirOperationGetContext(generic);
  MlirAttribute maps = mlirOperationGetAttributeByName(generic, str("indexing_maps"));
  MlirAttribute iterators = mlirOperationGetAttributeByName(generic, str("iterator_types"));
  intptr_t operands = mlirArrayAttrGetNumElements(maps), loops = mlirArrayAttrGetNumElements(iterators);
  MlirAffineMap result = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, operands - 1));
  intptr_t rank = mlirAffineMapGetNumResults(result);
  if (rank == 0 || loops < 2 || loops > MAX_LOOPS || operands > MAX_LOOPS) return;
  MlirAffineExpr last = mlirAffineMapGetResult(result, rank - 1);
  if (!mlirAffineExprIsADim(last)) return;
  intptr_t inner = mlirAffineDimExprGetPosition(last);
  if (inner == loops - 1) return;

  MlirAffineExpr moved[MAX_LOOPS]; // old loop -> new loop
  MlirAttribute iterator[MAX_LOOPS], map[MAX_LOOPS];
  for (intptr_t d = 0; d < loops; ++d) {
    intptr_t to = d == inner ? loops - 1 : d - (d > inner);
    moved[d] = mlirAffineDimExprGet(context, to);
    iterator[to] = mlirArrayAttrGetElement(iterators, d);
  }
  MlirAffineMap permutation = mlirAffineMapGet(context, loops, 0, loops, moved);
  for (intptr_t i = 0; i < operands; ++i) {
    MlirAffineMap old = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, i));
    MlirAffineExpr expression[MAX_LOOPS];
    intptr_t count = mlirAffineMapGetNumResults(old);
    if (count > MAX_LOOPS) return;
    for (intptr_t r = 0; r < count; ++r)
      expression[r] = mlirAffineExprCompose(mlirAffineMapGetResult(old, r), permutation);
    map[i] = mlirAffineMapAttrGet(mlirAffineMapGet(context, loops, 0, count, expression));
  }
  mlirOperationSetAttributeByName(generic, str("indexing_maps"), mlirArrayAttrGet(context, operands, map));
  mlirOperationSetAttributeByName(generic, str("iterator_types"), mlirArrayAttrGet(context, loops, iterator));
}

// linalg.index would have to be renumbered.
static MlirWalkResult is_index(MlirOperation op, void* found) {
  if (is_op(op, "linalg.index")) *(bool*)found = true;
  return MlirWalkResultAdvance;
}

weft_status_t weft_tensor_prepare(weft_allocator_t allocator, MlirOperation main,
                                  weft_tensor_constants_t* out_constants) {
  static const char* const kernels[] = {"weft.kernel", "weft.mixed_kernel"};
  found_t found;
  weft_status_t status = weft_ok();
  for (size_t k = 0; k < 2 && !status; ++k) {
    status = find_all(allocator, main, kernels[k], &found);
    for (size_t i = 0; i < found.op.count && !status; ++i) inline_kernel(found.op.data[i]);
    WEFT_ARRAY_FREE(allocator, &found.op);
  }
  if (!status) status = find_all(allocator, main, "linalg.generic", &found);
  for (size_t i = 0; i < found.op.count && !status; ++i) {
    bool indexed = false;
    mlirOperationWalk(found.op.data[i], is_index, &indexed, MlirWalkPreOrder);
    if (!indexed) interchange(found.op.data[i]);
  }
  WEFT_ARRAY_FREE(allocator, &found.op);
  if (!status) status = hoist_constants(allocator, main, out_constants);
  if (!status) status = retype_main(allocator, main);
  return status;
}
