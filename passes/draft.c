// A kernel while it is being made.
#include <inttypes.h>
#include <string.h>

#include "passes/lowering.h"

void weft_draft_deinitialize(weft_draft_t* draft) {
  weft_allocator_t allocator = draft->lowering->allocator;
  weft_space_deinitialize(&draft->space);
  WEFT_ARRAY_FREE(allocator, &draft->buffer);
  WEFT_ARRAY_FREE(allocator, &draft->operation);
  WEFT_ARRAY_FREE(allocator, &draft->operand);
  WEFT_ARRAY_FREE(allocator, &draft->made);
}

static uint32_t row_dims(const weft_index_row_t* row) {
  uint32_t mask = 0;
  for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d) mask |= row->coefficient[d] ? 1u << d : 0;
  return mask;
}

uint32_t weft_buffer_dims(const weft_buffer_t* buffer) {
  uint32_t mask = 0;
  for (int32_t r = 0; r < buffer->rank; ++r) mask |= row_dims(&buffer->row[r]);
  return mask;
}

bool weft_buffer_same_layout(const weft_buffer_t* a, const weft_buffer_t* b) {
  int32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && !row_dims(&a->row[i])) ++i;
    while (j < b->rank && !row_dims(&b->row[j])) ++j;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (memcmp(&a->row[i++], &b->row[j++], sizeof(weft_index_row_t)) != 0) return false;
  }
}

weft_status_t weft_draft_add_buffer(weft_draft_t* draft, const weft_buffer_t* buffer, int32_t* out_index) {
  *out_index = (int32_t)draft->buffer.count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(draft->lowering->allocator, &draft->operand, (MlirValue){NULL}));
  return WEFT_ARRAY_PUSH(draft->lowering->allocator, &draft->buffer, *buffer);
}

weft_status_t weft_draft_add_operation(weft_draft_t* draft, const weft_operation_t* operation) {
  return WEFT_ARRAY_PUSH(draft->lowering->allocator, &draft->operation, *operation);
}

// Reads the movement's input instead of its result where that only renames dimensions.
static bool peel(MlirValue* value, weft_map_t* rows) {
  MlirOperation op = weft_ir_producer(*value);
  if (mlirOperationIsNull(op) || weft_ir_role(op) != WEFT_ROLE_MOVEMENT) return false;
  weft_map_t pulled = {0};
  int32_t to[WEFT_MAX_RANK];
  weft_shape_t shape;
  weft_dtype_e dtype;
  if (!weft_ir_shape(mlirOperationGetOperand(op, 0), &shape, &dtype)) return false;
  pulled.rank = shape.rank;
  if (weft_movement_is_unit_reshape(op, to)) {
    for (int32_t r = 0; r < shape.rank; ++r)
      if (to[r] >= 0) pulled.row[r] = rows->row[to[r]];
  } else {
    weft_generic_t generic;
    if (!weft_ir_is(op, "linalg.generic") || !weft_status_consume(weft_generic_read(op, &generic))) return false;
    for (int32_t r = 0; r < shape.rank; ++r) {
      int32_t loop = weft_generic_row_loop(&generic, &generic.map[0].row[r]);
      for (int32_t o = 0; o < generic.map[1].rank && loop >= 0; ++o)
        if (weft_generic_row_loop(&generic, &generic.map[1].row[o]) == loop) pulled.row[r] = rows->row[o];
    }
  }
  *value = mlirOperationGetOperand(op, 0);
  *rows = pulled;
  return true;
}

weft_status_t weft_draft_operand(weft_draft_t* draft, MlirValue value, const weft_map_t* rows,
                                 weft_scalar_t* out_scalar) {
  weft_map_t at = *rows;
  weft_source_t source;
  while (peel(&value, &at)) {
  }
  *out_scalar = (weft_scalar_t){.buffer = -1};
  for (size_t i = 0; i < draft->operand.count; ++i) {
    const weft_buffer_t* buffer = &draft->buffer.data[i];
    if (!mlirValueEqual(draft->operand.data[i], value) || buffer->kind != WEFT_BUFFER_OPERAND ||
        buffer->rank != at.rank || memcmp(buffer->row, at.row, (size_t)at.rank * sizeof(at.row[0])) != 0)
      continue;
    out_scalar->buffer = (int32_t)i;
    out_scalar->dtype = buffer->dtype;
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(weft_lower_source(draft->lowering, value, &source));
  out_scalar->dtype = source.dtype;
  if (source.splat) {
    out_scalar->immediate = source.value;
    return weft_ok();
  }
  weft_buffer_t buffer = {.kind = WEFT_BUFFER_OPERAND,
                          .dtype = source.dtype,
                          .rank = at.rank,
                          .has_fill = source.has_fill,
                          .fill = source.fill,
                          .piece_count = source.piece_count,
                          .piece = source.piece,
                          .tensor = -1};
  memcpy(buffer.row, at.row, sizeof(buffer.row));
  WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(draft, &buffer, &out_scalar->buffer));
  draft->operand.data[out_scalar->buffer] = value;
  return weft_ok();
}

// --- The finished kernel

// Dimensions that no operation loops over any more are left out.
static void compact_dims(weft_draft_t* draft, weft_kernel_t* kernel) {
  int32_t to[WEFT_MAX_DIMS];
  uint32_t used = 0;
  for (size_t i = 0; i < draft->operation.count; ++i) used |= draft->operation.data[i].loops;
  for (int32_t d = 0; d < draft->space.dim_count; ++d) {
    to[d] = used >> d & 1 ? kernel->dim_count++ : -1;
    if (to[d] < 0) continue;
    kernel->dim[to[d]].extent = draft->space.extent[d];
    if (draft->sequential >> d & 1) kernel->dim[to[d]].kind = WEFT_DIM_SEQUENTIAL;
  }
  for (size_t b = 0; b < draft->buffer.count; ++b) {
    weft_buffer_t* buffer = &draft->buffer.data[b];
    for (int32_t r = 0; r < buffer->rank; ++r) {
      weft_index_row_t row = {.offset = buffer->row[r].offset};
      for (int32_t d = 0; d < draft->space.dim_count; ++d)
        if (to[d] >= 0) row.coefficient[to[d]] = buffer->row[r].coefficient[d];
      buffer->row[r] = row;
    }
  }
  for (size_t i = 0; i < draft->operation.count; ++i) {
    uint32_t loops = 0;
    for (int32_t d = 0; d < draft->space.dim_count; ++d)
      if (draft->operation.data[i].loops >> d & 1) loops |= 1u << to[d];
    draft->operation.data[i].loops = loops;
  }
}

static weft_status_t name_buffers(weft_draft_t* draft) {
  static const char* const prefix[] = {"in", "t", "out"};
  int32_t count[3] = {0};
  for (size_t b = 0; b < draft->buffer.count; ++b) {
    weft_buffer_t* buffer = &draft->buffer.data[b];
    WEFT_RETURN_IF_ERROR(weft_arena_printf(&draft->lowering->fabric->arena, &buffer->name, "%s%" PRId32,
                                           prefix[buffer->kind], count[buffer->kind]++));
  }
  return weft_ok();
}

static weft_status_t unique_name(const weft_lowering_t* lowering, const char* wanted, const char** out_name) {
  int32_t same = 0;
  size_t length = strlen(wanted);
  for (size_t i = 0; i < lowering->kernel.count; ++i) {
    const char* name = lowering->kernel.data[i].name;
    same += strncmp(name, wanted, length) == 0 && (name[length] == 0 || name[length] == '#');
  }
  return same ? weft_arena_printf(&lowering->fabric->arena, out_name, "%s#%" PRId32, wanted, same + 1)
              : weft_arena_strdup(&lowering->fabric->arena, wanted, out_name);
}

// buffer.tensor of a RESULT is the tensor that the caller reserved shape for: its index in lowering->tensor.
weft_status_t weft_draft_finish(weft_draft_t* draft, const char* name, const char* nodes) {
  weft_lowering_t* lowering = draft->lowering;
  weft_arena_t* arena = &lowering->fabric->arena;
  weft_kernel_t kernel = {.reduce_operation = -1, .combiner = WEFT_OP_ADD, .chosen = -1};
  WEFT_RETURN_IF_ERROR(weft_draft_share_storage(draft));
  compact_dims(draft, &kernel);
  WEFT_RETURN_IF_ERROR(name_buffers(draft));
  WEFT_RETURN_IF_ERROR(unique_name(lowering, name, &kernel.name));
  WEFT_RETURN_IF_ERROR(weft_arena_strdup(arena, nodes, &kernel.nodes));
  void* copy;
  kernel.buffer_count = (int32_t)draft->buffer.count;
  WEFT_RETURN_IF_ERROR(weft_arena_copy(arena, draft->buffer.data, draft->buffer.count * sizeof(weft_buffer_t), &copy));
  kernel.buffer = copy;
  kernel.operation_count = (int32_t)draft->operation.count;
  WEFT_RETURN_IF_ERROR(
      weft_arena_copy(arena, draft->operation.data, draft->operation.count * sizeof(weft_operation_t), &copy));
  kernel.operation = copy;
  weft_kernel_classify(&kernel);
  int32_t results = 0;
  for (int32_t b = 0; b < kernel.buffer_count; ++b) {
    if (kernel.buffer[b].kind != WEFT_BUFFER_RESULT) continue;
    weft_tensor_t* tensor = &lowering->tensor.data[kernel.buffer[b].tensor];
    tensor->kernel = (int32_t)lowering->kernel.count;
    tensor->buffer = b;
    tensor->dtype = kernel.buffer[b].dtype;
    if (results == 0)
      tensor->name = kernel.name;
    else
      WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &tensor->name, "%s.%" PRId32, kernel.name, results));
    ++results;
  }
  return WEFT_ARRAY_PUSH(lowering->allocator, &lowering->kernel, kernel);
}
