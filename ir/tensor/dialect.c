// The weft dialect, declared in IRDL: what upstream MLIR lacks. IRDL checks counts, types and attributes; rules across
// ops are the passes'. IRDL cannot declare a terminator, so a kernel's region ends with the upstream vector.yield, the
// one value-carrying terminator that asks nothing of the op around it.
#include <mlir-c/Dialect/IRDL.h>

#include "ir/tensor/context.h"

#define ANY_8                                                                                                          \
  "    %t0 = irdl.any\n    %t1 = irdl.any\n    %t2 = irdl.any\n    %t3 = irdl.any\n"                                   \
  "    %t4 = irdl.any\n    %t5 = irdl.any\n    %t6 = irdl.any\n    %t7 = irdl.any\n"
#define OPTIONAL_8                                                                                                     \
  "v0: optional %t0, v1: optional %t1, v2: optional %t2, v3: optional %t3, "                                           \
  "v4: optional %t4, v5: optional %t5, v6: optional %t6, v7: optional %t7"

static const char dialect_text[] =
    "irdl.dialect @weft {\n"
    // A cluster of ops that share tiles. The region captures values from above and yields the results.
    "  irdl.operation @kernel {\n"
    "    %string = irdl.base \"#builtin.string\"\n"
    "    %any = irdl.any\n"
    "    irdl.attributes {\"name\" = %string}\n"
    "    irdl.results(result: variadic %any)\n"
    "    %body = irdl.region\n"
    "    irdl.regions(body: %body)\n"
    "  }\n"
    // The same with results of different types: IRDL gives one type to a whole variadic group.
    "  irdl.operation @mixed_kernel {\n"
    "    %string = irdl.base \"#builtin.string\"\n" ANY_8 "    irdl.attributes {\"name\" = %string}\n"
    "    irdl.results(" OPTIONAL_8 ")\n"
    "    %body = irdl.region\n"
    "    irdl.regions(body: %body)\n"
    "  }\n"
    // An op that only the host tile can run: sort, unique, non-maximum suppression.
    "  irdl.operation @host {\n"
    "    %string = irdl.base \"#builtin.string\"\n" ANY_8 "    %any = irdl.any\n"
    "    irdl.attributes {\"function\" = %string}\n"
    "    irdl.operands(" OPTIONAL_8 ")\n"
    "    irdl.results(result: variadic %any)\n"
    "  }\n"
    // A tensor that stays on the wafer between runs: its value, and what it becomes at the end of the run.
    "  irdl.operation @state {\n"
    "    %string = irdl.base \"#builtin.string\"\n"
    "    %any = irdl.any\n"
    "    irdl.attributes {\"name\" = %string}\n"
    "    irdl.operands(next: optional %any)\n"
    "    irdl.results(value: optional %any)\n"
    "  }\n"
    // Random bits of the tile's generator, from the model's seed.
    "  irdl.operation @rand {\n"
    "    %any = irdl.any\n"
    "    irdl.results(value: %any)\n"
    "  }\n"
    "}\n";

weft_status_t weft_tensor_load_dialect(weft_tensor_context_t* context) {
  MlirModule module = mlirModuleCreateParse(context->mlir, mlirStringRefCreateFromCString(dialect_text));
  if (mlirModuleIsNull(module))
    return weft_tensor_diagnosed(context, WEFT_STATUS_INTERNAL, "the weft dialect's text does not parse");
  MlirLogicalResult result = mlirLoadIRDLDialects(module);
  mlirModuleDestroy(module);
  if (mlirLogicalResultIsFailure(result))
    return weft_tensor_diagnosed(context, WEFT_STATUS_INTERNAL, "the weft dialect does not load");
  return weft_ok();
}
