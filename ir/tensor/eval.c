#include "ir/tensor/eval.h"

#include <inttypes.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/ExecutionEngine.h>
#include <string.h>

#include "base/checked.h"
#include "ir/tensor/context.h"
#include "ir/tensor/narrow_float.h"
#include "ir/tensor/outline.h"
#include "ir/tensor/prepare.h"

enum { MAX_RANK = 8, OPTIMISATION = 2 };

// Results become destination arguments, so every buffer that crosses the boundary is the caller's.
static const char to_loops[] =
    "builtin.module("
    "one-shot-bufferize{allow-return-allocs-from-loops bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{hoist-static-allocs=true modify-public-functions=true},"
    "canonicalize,cse,buffer-deallocation-pipeline,"
    "func.func(convert-linalg-to-affine-loops),convert-bufferization-to-memref,lower-affine)";
static const char to_llvm[] =
    "builtin.module("
    "convert-math-to-funcs,convert-scf-to-cf,"
    "expand-strided-metadata,lower-affine,arith-expand{include-bf16=true},convert-math-to-llvm,convert-math-to-libm,"
    "convert-index-to-llvm,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts)";

typedef struct port_t { // an argument or result of main
  weft_dtype_e dtype;
  int32_t rank;
  int64_t extent[MAX_RANK];
} port_t;
typedef struct descriptor_t { // MLIR's ranked memref: extents and strides follow each other, `rank` of each
  void* allocated;
  void* aligned;
  int64_t offset;
  int64_t extents_and_strides[2 * MAX_RANK];
} descriptor_t;

struct weft_eval_t {
  weft_allocator_t allocator;
  MlirExecutionEngine engine;
  int32_t input_count, output_count, port_count; // port_count: inputs, constants, outputs
  port_t* port;
  weft_tensor_constants_t constants;
};

// What MLIR's lowering calls for a copy between strided buffers.
typedef struct unranked_t {
  int64_t rank;
  descriptor_t* descriptor;
} unranked_t;
static void copy_strided(int64_t element_size, unranked_t* source, unranked_t* target) {
  int64_t rank = source->rank;
  const descriptor_t *from = source->descriptor, *to = target->descriptor;
  const int64_t* extent = from->extents_and_strides;
  const char* read = (const char*)from->aligned + from->offset * element_size;
  char* write = (char*)to->aligned + to->offset * element_size;
  int64_t index[MAX_RANK] = {0};
  for (int64_t d = 0; d < rank; ++d)
    if (extent[d] == 0) return;
  bool rows = rank > 0 && extent[2 * rank - 1] == 1 && to->extents_and_strides[2 * rank - 1] == 1;
  int64_t loops = rows ? rank - 1 : rank;
  size_t run = (size_t)(rows ? extent[rank - 1] * element_size : element_size);
  for (;;) {
    memcpy(write, read, run);
    int64_t d = loops - 1;
    for (; d >= 0; --d) {
      int64_t from_step = extent[rank + d] * element_size, to_step = to->extents_and_strides[rank + d] * element_size;
      read += from_step;
      write += to_step;
      if (++index[d] < extent[d]) break;
      read -= from_step * extent[d];
      write -= to_step * extent[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

static weft_status_t read_port(MlirType type, const char* what, int64_t index, port_t* port) {
  if (!mlirTypeIsARankedTensor(type) || !mlirShapedTypeHasStaticShape(type) || mlirShapedTypeGetRank(type) > MAX_RANK ||
      !weft_tensor_dtype(mlirShapedTypeGetElementType(type), &port->dtype))
    return weft_error(UNSUPPORTED, "%s %" PRId64 " of main is not a static tensor of at most %d dimensions", what,
                      index, (int)MAX_RANK);
  port->rank = (int32_t)mlirShapedTypeGetRank(type);
  for (int32_t d = 0; d < port->rank; ++d) port->extent[d] = mlirShapedTypeGetDimSize(type, d);
  return weft_ok();
}

static weft_status_t read_ports(weft_eval_t* eval, MlirOperation main) {
  MlirType type =
      mlirTypeAttrGetValue(mlirOperationGetAttributeByName(main, mlirStringRefCreateFromCString("function_type")));
  int64_t arguments = mlirFunctionTypeGetNumInputs(type), results = mlirFunctionTypeGetNumResults(type);
  eval->output_count = (int32_t)results;
  eval->port_count = (int32_t)(arguments + results);
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(eval->allocator, (size_t)(arguments + results), sizeof(port_t), (void**)&eval->port));
  for (int64_t i = 0; i < arguments; ++i)
    WEFT_RETURN_IF_ERROR(read_port(mlirFunctionTypeGetInput(type, i), "argument", i, &eval->port[i]));
  for (int64_t i = 0; i < results; ++i)
    WEFT_RETURN_IF_ERROR(read_port(mlirFunctionTypeGetResult(type, i), "result", i, &eval->port[arguments + i]));
  return weft_ok();
}

static weft_status_t compile(weft_eval_t* eval, weft_tensor_context_t* context, MlirModule module) {
  MlirOperation main = weft_tensor_find_main(module);
  if (mlirOperationIsNull(main)) return weft_error(INVALID_INPUT, "the module has no function main");
  MlirBlock entry = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  if (mlirBlockIsNull(entry)) return weft_error(INVALID_INPUT, "the function main has no body");
  eval->input_count = (int32_t)mlirBlockGetNumArguments(entry);
  WEFT_RETURN_IF_ERROR(weft_tensor_prepare(eval->allocator, main, &eval->constants));
  WEFT_RETURN_IF_ERROR(weft_tensor_call_f8(eval->allocator, module));
  WEFT_RETURN_IF_ERROR(read_ports(eval, main));
  WEFT_RETURN_IF_ERROR(weft_tensor_run_pipeline(context, module, to_loops, NULL));
  WEFT_RETURN_IF_ERROR(weft_tensor_outline_loops(eval->allocator, module, weft_tensor_find_main(module)));
  WEFT_RETURN_IF_ERROR(weft_tensor_run_pipeline(context, module, to_llvm, NULL));
  eval->engine = mlirExecutionEngineCreate(module, OPTIMISATION, 0, NULL, false, false);
  if (mlirExecutionEngineIsNull(eval->engine))
    return weft_tensor_diagnosed(context, WEFT_STATUS_INTERNAL, "the JIT refuses the lowered module");
  mlirExecutionEngineRegisterSymbol(eval->engine, mlirStringRefCreateFromCString("memrefCopy"), (void*)copy_strided);
  weft_tensor_export_f8(eval->engine);
  mlirExecutionEngineInitialize(eval->engine);
  return weft_ok();
}

weft_status_t weft_eval_create(weft_tensor_context_t* context, MlirModule module, weft_allocator_t allocator,
                               weft_eval_t** out_eval) {
  *out_eval = NULL;
  weft_eval_t* eval = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, 1, sizeof(*eval), (void**)&eval));
  eval->allocator = allocator;
  MlirModule clone = mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(module)));
  weft_status_t status = compile(eval, context, clone);
  mlirModuleDestroy(clone);
  if (status) {
    weft_eval_destroy(eval);
    return weft_status_annotate(status, "in the host reference");
  }
  *out_eval = eval;
  return weft_ok();
}

void weft_eval_destroy(weft_eval_t* eval) {
  if (!eval) return;
  if (!mlirExecutionEngineIsNull(eval->engine)) mlirExecutionEngineDestroy(eval->engine);
  for (size_t i = 0; i < eval->constants.bytes.count; ++i)
    weft_allocator_free(eval->allocator, eval->constants.bytes.data[i]);
  WEFT_ARRAY_FREE(eval->allocator, &eval->constants.bytes);
  weft_allocator_free(eval->allocator, eval->port);
  weft_allocator_free(eval->allocator, eval);
}

static void describe(const port_t* port, void* data, descriptor_t* descriptor) {
  *descriptor = (descriptor_t){.allocated = data, .aligned = data};
  int64_t stride = 1;
  for (int32_t d = port->rank - 1; d >= 0; --d) {
    descriptor->extents_and_strides[d] = port->extent[d];
    descriptor->extents_and_strides[port->rank + d] = stride;
    stride *= port->extent[d];
  }
}

// Shapes must agree; so must the element's width and whether it is a float (MLIR's integers have no sign).
static weft_status_t match(const port_t* port, const weft_host_tensor_t* tensor, const char* what, int32_t index) {
  const char* name = tensor->name ? tensor->name : "";
  int64_t elements = 1;
  bool same = port->rank == tensor->rank;
  for (int32_t d = 0; d < port->rank; ++d) {
    same = same && port->extent[d] == tensor->extent[d];
    elements *= port->extent[d];
  }
  size_t width = weft_dtype_size(port->dtype);
  if (!same) {
    weft_status_t status = weft_error(INVALID_INPUT, "%s %d %s has the wrong shape", what, index, name);
    for (int32_t d = 0; d < port->rank; ++d)
      status = weft_status_annotate(status, "dimension %d: needed %" PRId64 ", given %" PRId64, d, port->extent[d],
                                    d < tensor->rank ? tensor->extent[d] : 0);
    return weft_status_annotate(status, "rank: needed %d, given %d", port->rank, tensor->rank);
  }
  if (width != weft_dtype_size(tensor->dtype) || weft_dtype_is_float(port->dtype) != weft_dtype_is_float(tensor->dtype))
    return weft_error(INVALID_INPUT, "%s %d %s has the wrong element type: needed %s, given %s", what, index, name,
                      weft_dtype_name(port->dtype), weft_dtype_name(tensor->dtype));
  if (tensor->size != (size_t)elements * width)
    return weft_error(INVALID_INPUT, "%s %d %s has %zu bytes, needed %zu", what, index, name, tensor->size,
                      (size_t)elements * width);
  return weft_ok();
}

weft_status_t weft_eval_run(weft_eval_t* eval, const weft_host_tensor_t* inputs, int32_t input_count,
                            weft_host_tensor_t* outputs, int32_t output_count) {
  if (input_count != eval->input_count || output_count != eval->output_count)
    return weft_error(INVALID_ARGUMENT, "main has %d inputs and %d outputs, %d and %d were given", eval->input_count,
                      eval->output_count, input_count, output_count);
  int32_t first_output = eval->port_count - output_count;
  for (int32_t i = 0; i < input_count; ++i) WEFT_RETURN_IF_ERROR(match(&eval->port[i], &inputs[i], "input", i));
  for (int32_t i = 0; i < output_count; ++i)
    WEFT_RETURN_IF_ERROR(match(&eval->port[first_output + i], &outputs[i], "output", i));

  struct call_t {
    descriptor_t descriptor;
    descriptor_t* pointer;
  }* call = NULL;
  void** arguments = NULL;
  size_t count = (size_t)eval->port_count + 1;
  weft_status_t status = weft_allocator_calloc(eval->allocator, count, sizeof(*call), (void**)&call);
  if (!status) status = weft_allocator_calloc(eval->allocator, count, sizeof(void*), (void**)&arguments);
  for (int32_t i = 0; i < eval->port_count && !status; ++i) {
    void* data = i < input_count    ? inputs[i].data
                 : i < first_output ? eval->constants.bytes.data[i - input_count]
                                    : outputs[i - first_output].data;
    describe(&eval->port[i], data, &call[i].descriptor);
    call[i].pointer = &call[i].descriptor;
    arguments[i] = &call[i].pointer;
  }
  if (!status && mlirLogicalResultIsFailure(
                     mlirExecutionEngineInvokePacked(eval->engine, mlirStringRefCreateFromCString("main"), arguments)))
    status = weft_error(INTERNAL, "the JIT lost the function main");
  weft_allocator_free(eval->allocator, arguments);
  weft_allocator_free(eval->allocator, call);
  return status;
}
