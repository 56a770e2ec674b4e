// A weft.kernel op, or a copy, as a kernel of the fabric.
#include <inttypes.h>
#include <string.h>

#include "passes/lowering.h"

// --- Copies

weft_status_t weft_lower_copy_named(weft_lowering_t* lowering, const char* name, const weft_source_t* source,
                                    const weft_index_row_t* rows, const weft_shape_t* shape,
                                    weft_source_t* out_source) {
  weft_draft_t draft = {.lowering = lowering, .space = {.allocator = lowering->allocator}};
  weft_buffer_t from = {.kind = WEFT_BUFFER_OPERAND,
                        .dtype = source->dtype,
                        .rank = source->shape.rank,
                        .has_fill = source->has_fill,
                        .fill = source->fill,
                        .piece_count = source->piece_count,
                        .piece = source->piece,
                        .tensor = -1};
  weft_buffer_t to = {.kind = WEFT_BUFFER_RESULT,
                      .dtype = source->dtype,
                      .rank = shape->rank,
                      .tensor = (int32_t)lowering->tensor.count};
  weft_operation_t operation = {.op = WEFT_OP_MOV, .dtype = source->dtype, .source = {-1, -1, -1}};
  operation.immediate[0] = source->value;
  for (int32_t d = 0; d < shape->rank; ++d) {
    if (shape->extent[d] == 1) continue;
    int32_t dim = draft.space.dim_count++;
    draft.space.extent[dim] = shape->extent[d];
    operation.loops |= 1u << dim;
    to.row[d].coefficient[dim] = 1;
    for (int32_t r = 0; r < from.rank; ++r) from.row[r].coefficient[dim] = rows[r].coefficient[d];
  }
  weft_tensor_t tensor = {.kind = WEFT_TENSOR_RESULT, .dtype = source->dtype, .shape = *shape};
  weft_status_t status = WEFT_ARRAY_PUSH(lowering->allocator, &lowering->tensor, tensor);
  if (!status && !source->splat) status = weft_draft_add_buffer(&draft, &from, &operation.source[0]);
  if (!status) status = weft_draft_add_buffer(&draft, &to, &operation.destination);
  if (!status) status = weft_draft_add_operation(&draft, &operation);
  if (!status) status = weft_draft_finish(&draft, name, name);
  if (!status) status = weft_lower_whole(lowering, to.tensor, out_source);
  weft_draft_deinitialize(&draft);
  return status;
}

weft_status_t weft_lower_copy(weft_lowering_t* lowering, MlirOperation op, const weft_source_t* source,
                              const weft_index_row_t* rows, const weft_shape_t* shape, weft_source_t* out_source) {
  weft_text_t name;
  weft_text_initialize(lowering->allocator, &name);
  weft_status_t status = weft_tensor_location_name(mlirOperationGetLocation(op), &name);
  if (!status) status = weft_lower_copy_named(lowering, name.data, source, rows, shape, out_source);
  weft_text_deinitialize(&name);
  return status;
}

// --- Kernels

weft_status_t weft_lower_add_node(weft_text_t* nodes, MlirOperation op) {
  weft_text_t name;
  weft_text_initialize(nodes->allocator, &name);
  weft_status_t status = weft_tensor_location_name(mlirOperationGetLocation(op), &name);
  for (size_t i = 0; i < name.count && !status; ++i)
    if (name.data[i] == ' ') name.data[i] = '_'; // spaces separate names
  bool known = false;
  for (const char* at = nodes->data; !status && at && *at;) {
    size_t length = strcspn(at, " ");
    known |= length == name.count && memcmp(at, name.data, length) == 0;
    at += length + (at[length] == ' ');
  }
  if (!status && !known) status = weft_text_printf(nodes, "%s%s", nodes->count ? " " : "", name.data);
  weft_text_deinitialize(&name);
  return status;
}

typedef struct region_t {
  MlirBlock body;
  MlirOperation yield;
  const bool* result_is_live;
  WEFT_ARRAY(MlirOperation) op; // the generics that matter, in order
} region_t;

static bool is_yielded(const region_t* region, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(region->yield); ++i)
    if (region->result_is_live[i] && mlirValueEqual(mlirOperationGetOperand(region->yield, i), value)) return true;
  return false;
}

// Whether some live result depends on the value, directly or through the ops of the region that use it.
static bool matters(const region_t* region, MlirValue value) {
  if (is_yielded(region, value)) return true;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation owner = mlirOpOperandGetOwner(use);
    if (mlirOperationEqual(owner, region->yield)) continue;
    for (size_t i = 0; i < region->op.count; ++i)
      if (mlirOperationEqual(region->op.data[i], owner)) return true;
  }
  return false;
}

static weft_status_t collect(weft_lowering_t* lowering, region_t* region) {
  WEFT_ARRAY(MlirOperation) all = {0};
  weft_status_t status = weft_ok();
  for (MlirOperation op = mlirBlockGetFirstOperation(region->body); !mlirOperationIsNull(op) && !status;
       op = mlirOperationGetNextInBlock(op)) {
    region->yield = op;
    status = WEFT_ARRAY_PUSH(lowering->allocator, &all, op);
  }
  for (size_t i = all.count; i-- > 1 && !status;) { // backwards, without the terminator
    MlirOperation op = all.data[i - 1];
    bool live = false;
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op) && !live; ++r)
      live = matters(region, mlirOperationGetResult(op, r));
    if (live) status = WEFT_ARRAY_PUSH(lowering->allocator, &region->op, op);
  }
  for (size_t i = 0, j = region->op.count; i + 1 < j; ++i) { // forwards again
    MlirOperation swap = region->op.data[i];
    region->op.data[i] = region->op.data[--j];
    region->op.data[j] = swap;
  }
  WEFT_ARRAY_FREE(lowering->allocator, &all);
  return status;
}

static weft_status_t lower_compute(weft_draft_t* draft, const region_t* region, MlirOperation op) {
  weft_generic_t generic;
  int32_t loop[WEFT_MAX_DIMS];
  bool leaves[WEFT_MAX_OPERANDS];
  WEFT_RETURN_IF_ERROR(weft_generic_read(op, &generic));
  for (int32_t l = 0; l < generic.loop_count; ++l)
    if (generic.extent[l] == 0)
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "loop d%" PRId32 " has no iterations", l);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    leaves[i] = is_yielded(region, mlirOperationGetResult(op, i));
  if (draft->made.count == 0) {
    weft_space_start(draft->lowering->allocator, &generic, &draft->space, loop);
  } else if (!weft_space_map(&draft->space, &generic, loop)) {
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "its loops are not those of the kernel that it is in");
  }
  WEFT_RETURN_IF_ERROR(weft_draft_generic(draft, &generic, loop, leaves));
  return weft_space_add(&draft->space, &generic, loop);
}

static weft_status_t lower_results(weft_draft_t* draft, const region_t* region, MlirOperation kernel) {
  weft_lowering_t* lowering = draft->lowering;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(kernel); ++i) {
    if (!region->result_is_live[i]) continue;
    MlirValue value = mlirOperationGetOperand(region->yield, i);
    int32_t buffer = -1;
    for (size_t m = 0; m < draft->made.count; ++m)
      if (mlirValueEqual(draft->made.data[m].value, value)) buffer = draft->made.data[m].scalar.buffer;
    if (buffer < 0 || draft->buffer.data[buffer].kind != WEFT_BUFFER_RESULT)
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, kernel, "result %" PRIdPTR " is not calculated in the kernel", i);
    weft_source_t source;
    weft_tensor_t tensor = {.kind = WEFT_TENSOR_RESULT};
    if (draft->buffer.data[buffer].tensor < 0) {
      draft->buffer.data[buffer].tensor = (int32_t)lowering->tensor.count;
      weft_ir_shape(value, &tensor.shape, &tensor.dtype);
      tensor.dtype = draft->buffer.data[buffer].dtype;
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &lowering->tensor, tensor));
    }
    WEFT_RETURN_IF_ERROR(weft_lower_whole(lowering, draft->buffer.data[buffer].tensor, &source));
    WEFT_RETURN_IF_ERROR(weft_lower_remember(lowering, mlirOperationGetResult(kernel, i), &source));
  }
  return weft_ok();
}

weft_status_t weft_lower_kernel(weft_lowering_t* lowering, MlirOperation kernel, const bool* result_is_live) {
  weft_draft_t draft = {.lowering = lowering, .space = {.allocator = lowering->allocator}};
  region_t region = {.body = mlirRegionGetFirstBlock(mlirOperationGetRegion(kernel, 0)),
                     .result_is_live = result_is_live};
  weft_text_t nodes, name;
  weft_text_initialize(lowering->allocator, &nodes);
  weft_text_initialize(lowering->allocator, &name);
  weft_status_t status = collect(lowering, &region);
  for (size_t i = 0; i < region.op.count && !status; ++i) {
    MlirOperation op = region.op.data[i];
    weft_ir_role_e role = weft_ir_role(op);
    if (role == WEFT_ROLE_FILL || role == WEFT_ROLE_MOVEMENT) continue;
    if (role != WEFT_ROLE_COMPUTE) {
      status = weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "it has no place in a kernel");
      break;
    }
    status = lower_compute(&draft, &region, op);
    if (!status) status = weft_lower_add_node(&nodes, op);
  }
  if (!status) status = lower_results(&draft, &region, kernel);
  MlirStringRef text = mlirStringAttrGetValue(weft_ir_attribute(kernel, "name"));
  if (!status) status = weft_text_append(&name, text.data, text.length);
  if (!status) status = weft_text_append(&name, "", 0);
  if (!status) status = weft_draft_finish(&draft, name.data ? name.data : "", nodes.data ? nodes.data : "");
  weft_draft_deinitialize(&draft);
  WEFT_ARRAY_FREE(lowering->allocator, &region.op);
  weft_text_deinitialize(&nodes);
  weft_text_deinitialize(&name);
  return status;
}
