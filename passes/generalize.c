// Named linalg ops (matmul, conv_2d, ..) become linalg.generic, the only form that kernels are made from. Fills keep
// their name, for they are easier to read: a module that has nothing else to change is left alone.
#include "passes/form_kernels.h"

#include <string.h>

static MlirWalkResult find_named(MlirOperation op, void* found) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  static const char* const kept[] = {"linalg.generic", "linalg.fill", "linalg.yield", "linalg.index"};
  if (name.length < 7 || memcmp(name.data, "linalg.", 7) != 0) return MlirWalkResultAdvance;
  for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); ++i)
    if (weft_ir_is(op, kept[i])) return MlirWalkResultAdvance;
  *(bool*)found = true;
  return MlirWalkResultInterrupt;
}

weft_status_t weft_pass_generalize(weft_tensor_context_t* context, MlirOperation module) {
  bool found = false;
  mlirOperationWalk(module, find_named, &found, MlirWalkPreOrder);
  if (!found) return weft_ok();
  return weft_tensor_run_pipeline(context, mlirModuleFromOperation(module), "linalg-generalize-named-ops", NULL);
}
