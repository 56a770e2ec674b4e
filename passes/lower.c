// main -> fabric: inputs, kernels in order, outputs. What no output depends on is left out.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "passes/lowering.h"

typedef struct live_t { // ops of main, and whether an output depends on them
  MlirOperation op;
  bool live;
} live_t;

static int compare_live(const void* a, const void* b) {
  uintptr_t left = (uintptr_t)((const live_t*)a)->op.ptr, right = (uintptr_t)((const live_t*)b)->op.ptr;
  return (left > right) - (left < right);
}

static live_t* find_live(live_t* sorted, size_t count, MlirOperation op) {
  return bsearch(&(live_t){.op = op}, sorted, count, sizeof(*sorted), compare_live);
}

static MlirOperation in_block(MlirOperation op, MlirBlock block) {
  while (!mlirOperationIsNull(op) && !mlirBlockEqual(mlirOperationGetBlock(op), block))
    op = mlirOperationGetParentOperation(op);
  return op;
}

static bool is_empty(MlirValue value) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  return weft_ir_shape(value, &shape, &dtype) && weft_shape_elements(&shape) == 0;
}

static bool has_live_use(MlirValue value, live_t* sorted, size_t count, MlirBlock block) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    const live_t* user = find_live(sorted, count, in_block(mlirOpOperandGetOwner(use), block));
    if (user && user->live) return true;
  }
  return false;
}

// What the tensor IR says, unless the model says it better.
static weft_status_t refine_dtype(const weft_dtype_e* list, intptr_t index, const char* name,
                                  weft_dtype_e* inout_dtype) {
  if (!list) return weft_ok();
  if (!weft_dtype_same_bits(list[index], *inout_dtype))
    return weft_error(INVALID_ARGUMENT, "%s is %s in the model, %s in the tensor IR", name,
                      weft_dtype_name(list[index]), weft_dtype_name(*inout_dtype));
  *inout_dtype = list[index];
  return weft_ok();
}

static weft_status_t lower_inputs(weft_lowering_t* lowering, MlirBlock block, const weft_passes_names_t* names) {
  weft_fabric_t* fabric = lowering->fabric;
  intptr_t count = mlirBlockGetNumArguments(block);
  fabric->input_count = (int32_t)count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&fabric->arena, (size_t)count + 1, &fabric->input));
  for (intptr_t i = 0; i < count; ++i) {
    MlirValue value = mlirBlockGetArgument(block, i);
    weft_tensor_t tensor = {.kind = WEFT_TENSOR_INPUT, .kernel = -1, .buffer = -1};
    weft_source_t source;
    if (names && names->input)
      WEFT_RETURN_IF_ERROR(weft_arena_strdup(&fabric->arena, names->input[i], &tensor.name));
    else
      WEFT_RETURN_IF_ERROR(weft_arena_printf(&fabric->arena, &tensor.name, "input%" PRIdPTR, i));
    if (!weft_ir_shape(value, &tensor.shape, &tensor.dtype))
      return weft_error(UNSUPPORTED, "input %s is no static tensor of at most %d dimensions", tensor.name,
                        (int)WEFT_MAX_RANK);
    WEFT_RETURN_IF_ERROR(refine_dtype(names ? names->input_dtype : NULL, i, tensor.name, &tensor.dtype));
    fabric->input[i] = (int32_t)lowering->tensor.count;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &lowering->tensor, tensor));
    WEFT_RETURN_IF_ERROR(weft_lower_whole(lowering, fabric->input[i], &source));
    WEFT_RETURN_IF_ERROR(weft_lower_remember(lowering, value, &source));
  }
  return weft_ok();
}

static weft_status_t lower_kernels(weft_lowering_t* lowering, MlirBlock block, live_t* order, size_t count) {
  live_t* sorted = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(lowering->allocator, count + 1, sizeof(*sorted), (void**)&sorted));
  memcpy(sorted, order, count * sizeof(*sorted));
  qsort(sorted, count, sizeof(*sorted), compare_live);
  if (count > 0) find_live(sorted, count, order[count - 1].op)->live = true; // func.return
  for (size_t i = count; i-- > 0;) {
    live_t* at = find_live(sorted, count, order[i].op);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(at->op) && !at->live; ++r)
      at->live = has_live_use(mlirOperationGetResult(at->op, r), sorted, count, block);
  }
  weft_status_t status = weft_ok();
  for (size_t i = 0; i < count && !status; ++i) {
    MlirOperation op = order[i].op;
    if (weft_ir_role(op) != WEFT_ROLE_KERNEL || !find_live(sorted, count, op)->live) continue;
    size_t results = (size_t)mlirOperationGetNumResults(op);
    bool* result_is_live = NULL;
    status = weft_allocator_calloc(lowering->allocator, results + 1, sizeof(bool), (void**)&result_is_live);
    bool any = false; // result with elements; the others need no work
    for (size_t r = 0; r < results && !status; ++r) {
      MlirValue result = mlirOperationGetResult(op, (intptr_t)r);
      result_is_live[r] = has_live_use(result, sorted, count, block) && !is_empty(result);
      any |= result_is_live[r];
    }
    if (!status && any)
      status = weft_ir_is(op, "scf.for") ? weft_lower_loop(lowering, op, result_is_live)
                                         : weft_lower_kernel(lowering, op, result_is_live);
    weft_allocator_free(lowering->allocator, result_is_live);
  }
  weft_allocator_free(lowering->allocator, sorted);
  return status;
}

static weft_status_t lower_outputs(weft_lowering_t* lowering, MlirOperation terminator,
                                   const weft_passes_names_t* names) {
  weft_fabric_t* fabric = lowering->fabric;
  intptr_t count = mlirOperationGetNumOperands(terminator);
  fabric->output_count = (int32_t)count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&fabric->arena, (size_t)count + 1, &fabric->output));
  for (intptr_t i = 0; i < count; ++i) {
    weft_output_t* output = &fabric->output[i];
    MlirValue value = mlirOperationGetOperand(terminator, i);
    weft_source_t source;
    if (names && names->output)
      WEFT_RETURN_IF_ERROR(weft_arena_strdup(&fabric->arena, names->output[i], &output->name));
    else
      WEFT_RETURN_IF_ERROR(weft_arena_printf(&fabric->arena, &output->name, "output%" PRIdPTR, i));
    weft_status_t status = weft_lower_source(lowering, value, &source);
    if (status) return weft_status_annotate(status, "output %s", output->name);
    bool made_on_wafer = !source.splat;
    for (int32_t p = 0; p < source.piece_count; ++p)
      made_on_wafer = made_on_wafer && lowering->tensor.data[source.piece[p].tensor].kind == WEFT_TENSOR_RESULT;
    if (!made_on_wafer) { // only tiles send to the host
      weft_index_row_t rows[WEFT_MAX_RANK] = {0};
      for (int32_t r = 0; r < source.shape.rank; ++r) rows[r].coefficient[r] = 1;
      MlirOperation producer = weft_ir_producer(value);
      MlirOperation op = mlirOperationIsNull(producer) ? terminator : producer;
      weft_source_t copy;
      WEFT_RETURN_IF_ERROR(weft_lower_copy(lowering, op, &source, rows, &source.shape, &copy));
      source = copy;
    }
    output->dtype = source.dtype;
    WEFT_RETURN_IF_ERROR(refine_dtype(names ? names->output_dtype : NULL, i, output->name, &output->dtype));
    output->shape = source.shape;
    output->has_fill = source.has_fill;
    output->fill = source.fill;
    output->piece_count = source.piece_count;
    output->piece = source.piece;
  }
  return weft_ok();
}

static weft_status_t lower_main(weft_lowering_t* lowering, MlirOperation main, const weft_passes_names_t* names) {
  weft_fabric_t* fabric = lowering->fabric;
  MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  WEFT_ARRAY(live_t) order = {0};
  weft_status_t status = weft_ok();
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op) && !status;
       op = mlirOperationGetNextInBlock(op))
    status = WEFT_ARRAY_PUSH(lowering->allocator, &order, (live_t){.op = op});
  if (!status) status = lower_inputs(lowering, block, names);
  if (!status) status = lower_kernels(lowering, block, order.data, order.count);
  if (!status) status = lower_outputs(lowering, order.data[order.count - 1].op, names);
  if (!status) status = weft_lower_relays(lowering);
  WEFT_ARRAY_FREE(lowering->allocator, &order);
  void* copy;
  if (!status)
    status =
        weft_arena_copy(&fabric->arena, lowering->tensor.data, lowering->tensor.count * sizeof(weft_tensor_t), &copy);
  if (!status) {
    fabric->tensor = copy;
    fabric->tensor_count = (int32_t)lowering->tensor.count;
    status =
        weft_arena_copy(&fabric->arena, lowering->kernel.data, lowering->kernel.count * sizeof(weft_kernel_t), &copy);
  }
  if (!status) {
    fabric->kernel = copy;
    fabric->kernel_count = (int32_t)lowering->kernel.count;
    fabric->stage = WEFT_STAGE_KERNELS;
  }
  return status;
}

weft_status_t weft_passes_lower_to_fabric(weft_tensor_context_t* context, MlirModule module,
                                          const weft_passes_names_t* names, weft_fabric_t* fabric) {
  (void)context;
  MlirOperation main = weft_tensor_find_main(module);
  if (mlirOperationIsNull(main)) return weft_error(INVALID_INPUT, "the module has no function main");
  weft_lowering_t lowering = {.allocator = fabric->arena.allocator, .fabric = fabric};
  weft_status_t status = lower_main(&lowering, main, names);
  WEFT_ARRAY_FREE(lowering.allocator, &lowering.tensor);
  WEFT_ARRAY_FREE(lowering.allocator, &lowering.kernel);
  WEFT_ARRAY_FREE(lowering.allocator, &lowering.known);
  if (!status) status = weft_fabric_verify(fabric);
  return weft_status_annotate(status, "lowering to the fabric");
}
