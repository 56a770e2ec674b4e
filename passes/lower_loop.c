// scf.for: a recurrence, as one kernel that works through its trips one after the other. The trip number is the
// kernel's outermost dimension. State that a trip needs at its own coordinates only stays in a buffer; what it needs
// elsewhere, too, becomes a result that the kernel also has as an operand: a stream back to itself.
#include <inttypes.h>
#include <string.h>

#include "passes/lowering.h"

enum { TRIP = 0, MAX_CARRIED = 8, MAX_WHOLE = 16 };

// A value that trips hand on: a state, or rows that they collect.
typedef struct carried_t {
  MlirValue initial, argument, yielded, result;
  MlirOperation put; // of rows: the tensor.insert_slice; null for a state
  bool live;         // its value after the last trip is used
  int32_t buffer;    // where a state stays, or rows are collected
  bool is_read;      // a state's buffer, by the trips
} carried_t;

// A value of the loop that is needed as a whole: the buffer it comes back in.
typedef struct whole_t {
  MlirValue value;
  weft_map_t rows;
  int32_t buffer;
} whole_t;

struct weft_loop_t {
  weft_draft_t* draft;
  MlirOperation op;
  MlirBlock body;
  int64_t trips;
  weft_shape_t shape; // of every state and every value in the loop
  int32_t dim[WEFT_MAX_RANK];
  uint32_t summed; // dimensions of sums
  int32_t carried_count, whole_count;
  carried_t carried[MAX_CARRIED];
  whole_t whole[MAX_WHOLE];
};

static weft_status_t unsupported(const weft_loop_t* loop, const char* why) {
  return weft_ir_error(WEFT_STATUS_UNSUPPORTED, loop->op, "%s", why);
}

// --- Values of the loop

// The dimensions of the loop's values, as rows.
static weft_map_t own_rows(const weft_loop_t* loop) {
  weft_map_t rows = {.rank = loop->shape.rank};
  for (int32_t r = 0; r < rows.rank; ++r)
    if (loop->dim[r] >= 0) rows.row[r].coefficient[loop->dim[r]] = 1;
  return rows;
}

static bool same_rows(const weft_map_t* a, const weft_map_t* b) {
  return a->rank == b->rank && memcmp(a->row, b->row, (size_t)a->rank * sizeof(a->row[0])) == 0;
}

static bool is_constant_index(MlirValue value, int64_t* out) {
  MlirOperation op = weft_ir_producer(value);
  if (!weft_ir_is(op, "arith.constant") || !mlirTypeIsAIndex(mlirValueGetType(value))) return false;
  *out = mlirIntegerAttrGetValueInt(weft_ir_attribute(op, "value"));
  return true;
}

// The row of a sequence that a trip works on: the trip number, or what is left to a constant.
static bool read_row_index(const weft_loop_t* loop, MlirValue value, weft_index_row_t* out) {
  *out = (weft_index_row_t){0};
  MlirValue trip = mlirBlockGetArgument(loop->body, 0);
  if (mlirValueEqual(value, trip)) return out->coefficient[TRIP] = 1, true;
  MlirOperation op = weft_ir_producer(value);
  if (!weft_ir_is(op, "arith.subi") || !mlirValueEqual(mlirOperationGetOperand(op, 1), trip)) return false;
  out->coefficient[TRIP] = -1;
  return is_constant_index(mlirOperationGetOperand(op, 0), &out->offset);
}

// Whether a slice is one whole row of its first dimension, found at run time.
static bool is_row_slice(MlirOperation op, MlirValue sequence) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  MlirAttribute offset = weft_ir_attribute(op, "static_offsets"), size = weft_ir_attribute(op, "static_sizes");
  if (!weft_ir_shape(sequence, &shape, &dtype) || mlirDenseArrayGetNumElements(offset) != shape.rank) return false;
  for (int32_t r = 0; r < shape.rank; ++r) {
    int64_t from = mlirDenseI64ArrayGetElement(offset, r), count = mlirDenseI64ArrayGetElement(size, r);
    if (r == 0 ? from != mlirShapedTypeGetDynamicStrideOrOffset() || count != 1 : from != 0 || count != shape.extent[r])
      return false;
  }
  return true;
}

// A buffer of this kind that has an element for each of the loop's values.
static weft_status_t add_own_buffer(weft_loop_t* loop, weft_buffer_kind_e kind, weft_dtype_e dtype, int32_t* out) {
  weft_map_t rows = own_rows(loop);
  weft_buffer_t buffer = {.kind = kind, .dtype = dtype, .rank = rows.rank, .tensor = -1};
  memcpy(buffer.row, rows.row, sizeof(buffer.row));
  return weft_draft_add_buffer(loop->draft, &buffer, out);
}

static weft_status_t add_move(weft_loop_t* loop, const weft_scalar_t* from, int32_t to, uint32_t loops) {
  weft_operation_t operation = {.op = WEFT_OP_MOV,
                                .dtype = from->dtype,
                                .loops = weft_buffer_dims(&loop->draft->buffer.data[to]) | loops,
                                .destination = to,
                                .source = {from->buffer, -1, -1}};
  operation.immediate[0] = from->buffer < 0 ? from->immediate : 0;
  return weft_draft_add_operation(loop->draft, &operation);
}

// Makes a buffer a result, with a tensor of this shape.
static weft_status_t make_result(weft_loop_t* loop, int32_t index, const weft_shape_t* shape) {
  weft_lowering_t* lowering = loop->draft->lowering;
  weft_buffer_t* buffer = &loop->draft->buffer.data[index];
  if (buffer->kind == WEFT_BUFFER_RESULT) return weft_ok();
  weft_tensor_t tensor = {.kind = WEFT_TENSOR_RESULT, .dtype = buffer->dtype, .shape = *shape};
  buffer->kind = WEFT_BUFFER_RESULT;
  buffer->tensor = (int32_t)lowering->tensor.count;
  return WEFT_ARRAY_PUSH(lowering->allocator, &lowering->tensor, tensor);
}

// The buffer in which the whole of result `from` comes back, to be read at `rows`.
static weft_status_t bring_back(weft_loop_t* loop, MlirValue value, int32_t from, const weft_map_t* rows,
                                weft_scalar_t* out) {
  if (loop->whole_count == MAX_WHOLE) return unsupported(loop, "it needs too many values as a whole");
  WEFT_RETURN_IF_ERROR(make_result(loop, from, &loop->shape));
  const weft_buffer_t* result = &loop->draft->buffer.data[from];
  weft_source_t source;
  WEFT_RETURN_IF_ERROR(weft_lower_whole(loop->draft->lowering, result->tensor, &source));
  weft_buffer_t buffer = {.kind = WEFT_BUFFER_OPERAND,
                          .dtype = result->dtype,
                          .rank = rows->rank,
                          .piece_count = source.piece_count,
                          .piece = source.piece,
                          .tensor = -1};
  memcpy(buffer.row, rows->row, sizeof(buffer.row));
  *out = (weft_scalar_t){.dtype = buffer.dtype};
  WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(loop->draft, &buffer, &out->buffer));
  loop->whole[loop->whole_count++] = (whole_t){value, *rows, out->buffer};
  return weft_ok();
}

static const whole_t* find_whole(const weft_loop_t* loop, MlirValue value, const weft_map_t* rows) {
  for (int32_t i = 0; i < loop->whole_count; ++i)
    if (mlirValueEqual(loop->whole[i].value, value) && same_rows(&loop->whole[i].rows, rows)) return &loop->whole[i];
  return NULL;
}

static weft_status_t read_state(weft_loop_t* loop, carried_t* state, const weft_map_t* rows, weft_scalar_t* out) {
  weft_map_t own = own_rows(loop);
  *out = (weft_scalar_t){.buffer = state->buffer, .dtype = loop->draft->buffer.data[state->buffer].dtype};
  if (!same_rows(rows, &own)) return bring_back(loop, state->argument, state->buffer, rows, out);
  state->is_read = true;
  return weft_ok();
}

static weft_status_t read_made(weft_loop_t* loop, const weft_made_t* made, const weft_map_t* rows, weft_scalar_t* out) {
  weft_map_t own = own_rows(loop);
  *out = made->scalar;
  if (same_rows(rows, &own) || made->scalar.buffer < 0) return weft_ok();
  int32_t published;
  WEFT_RETURN_IF_ERROR(add_own_buffer(loop, WEFT_BUFFER_TEMPORARY, made->scalar.dtype, &published));
  WEFT_RETURN_IF_ERROR(add_move(loop, &made->scalar, published, 0));
  return bring_back(loop, made->value, published, rows, out);
}

weft_status_t weft_loop_operand(weft_loop_t* loop, MlirValue value, const weft_map_t* rows, weft_scalar_t* out) {
  const whole_t* whole = find_whole(loop, value, rows);
  if (whole) {
    *out = (weft_scalar_t){.buffer = whole->buffer, .dtype = loop->draft->buffer.data[whole->buffer].dtype};
    return weft_ok();
  }
  for (size_t i = 0; i < loop->draft->made.count; ++i)
    if (mlirValueEqual(loop->draft->made.data[i].value, value))
      return read_made(loop, &loop->draft->made.data[i], rows, out);
  for (int32_t i = 0; i < loop->carried_count; ++i)
    if (mlirValueEqual(loop->carried[i].argument, value)) {
      if (loop->carried[i].put.ptr) return unsupported(loop, "a trip reads the rows of others");
      return read_state(loop, &loop->carried[i], rows, out);
    }
  MlirOperation op = weft_ir_producer(value);
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), loop->body) ||
      weft_ir_role(op) == WEFT_ROLE_FILL)
    return weft_draft_operand(loop->draft, value, rows, out);
  MlirValue sequence = mlirOperationGetOperand(op, 0);
  weft_map_t at = {.rank = rows->rank + 1};
  if (!weft_ir_is(op, "tensor.extract_slice") || mlirOperationGetNumOperands(op) != 2 || !is_row_slice(op, sequence) ||
      !read_row_index(loop, mlirOperationGetOperand(op, 1), &at.row[0]))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "in a loop a slice has to be the row of the trip");
  memcpy(at.row + 1, rows->row, (size_t)rows->rank * sizeof(rows->row[0]));
  return weft_draft_operand(loop->draft, sequence, &at, out);
}

// --- Operations of a trip

static weft_status_t add_dim(weft_loop_t* loop, int64_t extent, int32_t* out) {
  weft_space_t* space = &loop->draft->space;
  if (space->dim_count == WEFT_MAX_DIMS) return unsupported(loop, "it has too many dimensions");
  *out = space->dim_count++;
  space->extent[*out] = extent;
  return weft_ok();
}

// Parallel loops walk the dimensions of the result, which has the shape of the states; sums have dimensions of their
// own, which those of equal extents share.
static weft_status_t map_loops(weft_loop_t* loop, const weft_generic_t* generic, int32_t out[WEFT_MAX_DIMS]) {
  uint32_t used = 0;
  const weft_map_t* result = &generic->map[generic->input_count];
  bool fits = result->rank == loop->shape.rank;
  for (int32_t l = 0; l < generic->loop_count; ++l) out[l] = WEFT_NO_DIM;
  for (int32_t r = 0; r < result->rank && fits; ++r) {
    int32_t along = weft_generic_row_loop(generic, &result->row[r]);
    fits = along >= 0 ? generic->extent[along] == loop->shape.extent[r] : along == -1 && loop->shape.extent[r] == 1;
    if (along >= 0) out[along] = loop->dim[r];
  }
  if (!fits)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, generic->op, "in a loop its result has to be shaped like the states");
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    if (generic->extent[l] == 1 || !generic->reduction[l]) continue;
    for (int32_t d = 0; d < loop->draft->space.dim_count && out[l] < 0; ++d)
      if ((loop->summed & ~used) >> d & 1 && loop->draft->space.extent[d] == generic->extent[l]) out[l] = d;
    if (out[l] < 0) WEFT_RETURN_IF_ERROR(add_dim(loop, generic->extent[l], &out[l]));
    loop->summed |= 1u << out[l];
    used |= 1u << out[l];
  }
  return weft_ok();
}

static weft_status_t lower_trip(weft_loop_t* loop, weft_text_t* nodes) {
  static const bool leaves[WEFT_MAX_OPERANDS] = {false};
  for (MlirOperation op = mlirBlockGetFirstOperation(loop->body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (weft_ir_role(op) != WEFT_ROLE_COMPUTE) continue; // is looked at by those that use it
    weft_generic_t generic;
    int32_t dims[WEFT_MAX_DIMS];
    WEFT_RETURN_IF_ERROR(weft_generic_read(op, &generic));
    WEFT_RETURN_IF_ERROR(map_loops(loop, &generic, dims));
    WEFT_RETURN_IF_ERROR(weft_draft_generic(loop->draft, &generic, dims, leaves));
    WEFT_RETURN_IF_ERROR(weft_lower_add_node(nodes, op));
  }
  return weft_ok();
}

// What the trip hands on: rows first, as a state's old value may be among them.
static weft_status_t hand_on(weft_loop_t* loop) {
  weft_map_t own = own_rows(loop);
  weft_scalar_t value[MAX_CARRIED];
  for (int32_t i = 0; i < loop->carried_count; ++i) {
    carried_t* c = &loop->carried[i];
    if (c->put.ptr && !c->live) continue;
    MlirValue from = c->put.ptr ? mlirOperationGetOperand(c->put, 0) : c->yielded;
    WEFT_RETURN_IF_ERROR(weft_loop_operand(loop, from, &own, &value[i]));
    if (c->put.ptr) WEFT_RETURN_IF_ERROR(add_move(loop, &value[i], c->buffer, 0));
  }
  for (int32_t i = 0; i < loop->carried_count; ++i) {
    const carried_t* c = &loop->carried[i];
    if (c->put.ptr) continue;
    for (int32_t j = 0; j < i; ++j)
      if (!loop->carried[j].put.ptr && value[i].buffer == loop->carried[j].buffer && value[i].buffer >= 0)
        return unsupported(loop, "a state becomes another state");
    WEFT_RETURN_IF_ERROR(add_move(loop, &value[i], c->buffer, 0));
  }
  return weft_ok();
}

// The states' first values, before the trips: in the buffers where they stay and in those that they come back in.
static weft_status_t start(weft_loop_t* loop, size_t first) {
  weft_map_t own = own_rows(loop);
  size_t trips = loop->draft->operation.count - first;
  weft_scalar_t value;
  for (int32_t i = 0; i < loop->carried_count; ++i) {
    const carried_t* c = &loop->carried[i];
    if (c->put.ptr) continue;
    if (c->is_read) {
      WEFT_RETURN_IF_ERROR(weft_draft_operand(loop->draft, c->initial, &own, &value));
      WEFT_RETURN_IF_ERROR(add_move(loop, &value, c->buffer, 0));
    }
    for (int32_t w = 0; w < loop->whole_count; ++w) {
      if (!mlirValueEqual(loop->whole[w].value, c->argument)) continue;
      WEFT_RETURN_IF_ERROR(weft_draft_operand(loop->draft, c->initial, &loop->whole[w].rows, &value));
      WEFT_RETURN_IF_ERROR(add_move(loop, &value, loop->whole[w].buffer, 0));
    }
  }
  // They were added last, because only the trips show what is needed; they come first.
  weft_operation_t* operation = loop->draft->operation.data + first;
  for (size_t at = trips, to = 0; at < loop->draft->operation.count - first; ++at, ++to) {
    weft_operation_t moved = operation[at];
    memmove(operation + to + 1, operation + to, (at - to) * sizeof(*operation));
    operation[to] = moved;
  }
  return weft_ok();
}

// --- The loop

static weft_status_t read_carried(weft_loop_t* loop, const bool* result_is_live) {
  intptr_t count = mlirOperationGetNumResults(loop->op);
  MlirOperation yield = mlirBlockGetTerminator(loop->body);
  if (count > MAX_CARRIED) return unsupported(loop, "it hands on too many values");
  loop->carried_count = (int32_t)count;
  bool has_shape = false;
  for (intptr_t i = 0; i < count; ++i) {
    carried_t* c = &loop->carried[i];
    *c = (carried_t){.initial = mlirOperationGetOperand(loop->op, 3 + i),
                     .argument = mlirBlockGetArgument(loop->body, 1 + i),
                     .yielded = mlirOperationGetOperand(yield, i),
                     .result = mlirOperationGetResult(loop->op, i),
                     .live = result_is_live[i],
                     .buffer = -1};
    MlirOperation op = weft_ir_producer(c->yielded);
    weft_shape_t shape;
    weft_dtype_e dtype;
    if (!weft_ir_shape(c->argument, &shape, &dtype)) return unsupported(loop, "it hands on what is no static tensor");
    if (weft_ir_is(op, "tensor.insert_slice") && mlirValueEqual(mlirOperationGetOperand(op, 1), c->argument)) {
      c->put = op;
      continue;
    }
    if (has_shape && memcmp(&shape, &loop->shape, sizeof(shape)) != 0)
      return unsupported(loop, "its states differ in shape");
    loop->shape = shape;
    has_shape = true;
  }
  return has_shape ? weft_ok() : unsupported(loop, "it has no state");
}

static weft_status_t add_carried_buffers(weft_loop_t* loop) {
  for (int32_t i = 0; i < loop->carried_count; ++i) {
    carried_t* c = &loop->carried[i];
    weft_shape_t shape;
    weft_dtype_e dtype;
    weft_ir_shape(c->argument, &shape, &dtype);
    if (!c->put.ptr) {
      WEFT_RETURN_IF_ERROR(add_own_buffer(loop, WEFT_BUFFER_TEMPORARY, dtype, &c->buffer));
    } else if (c->live) {
      weft_map_t own = own_rows(loop);
      weft_buffer_t rows = {.kind = WEFT_BUFFER_TEMPORARY, .dtype = dtype, .rank = shape.rank, .tensor = -1};
      if (shape.rank != own.rank + 1 || shape.extent[0] != loop->trips ||
          memcmp(shape.extent + 1, loop->shape.extent, (size_t)own.rank * sizeof(int64_t)) != 0 ||
          mlirOperationGetNumOperands(c->put) != 3 || !is_row_slice(c->put, c->argument) ||
          !read_row_index(loop, mlirOperationGetOperand(c->put, 2), &rows.row[0]))
        return weft_ir_error(WEFT_STATUS_UNSUPPORTED, c->put, "in a loop a trip has to write its own row");
      memcpy(rows.row + 1, own.row, (size_t)own.rank * sizeof(own.row[0]));
      WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(loop->draft, &rows, &c->buffer));
    }
    if (c->live) WEFT_RETURN_IF_ERROR(make_result(loop, c->buffer, &shape));
  }
  return weft_ok();
}

static weft_status_t read_bounds(weft_loop_t* loop) {
  int64_t bound[3];
  for (intptr_t i = 0; i < 3; ++i)
    if (!is_constant_index(mlirOperationGetOperand(loop->op, i), &bound[i]))
      return unsupported(loop, "its number of trips is not known");
  loop->trips = bound[1];
  return bound[0] == 0 && bound[2] == 1 && bound[1] > 0 ? weft_ok()
                                                        : unsupported(loop, "it does not count from 0 by 1");
}

static weft_status_t build(weft_loop_t* loop, const bool* result_is_live, weft_text_t* nodes) {
  weft_draft_t* draft = loop->draft;
  int32_t trip = TRIP;
  WEFT_RETURN_IF_ERROR(read_bounds(loop));
  WEFT_RETURN_IF_ERROR(read_carried(loop, result_is_live));
  WEFT_RETURN_IF_ERROR(add_dim(loop, loop->trips, &trip));
  draft->sequential = 1u << trip;
  for (int32_t r = 0; r < loop->shape.rank; ++r) {
    loop->dim[r] = WEFT_NO_DIM;
    if (loop->shape.extent[r] > 1) WEFT_RETURN_IF_ERROR(add_dim(loop, loop->shape.extent[r], &loop->dim[r]));
  }
  WEFT_RETURN_IF_ERROR(add_carried_buffers(loop));
  WEFT_RETURN_IF_ERROR(lower_trip(loop, nodes));
  WEFT_RETURN_IF_ERROR(hand_on(loop));
  for (size_t i = 0; i < draft->operation.count; ++i) draft->operation.data[i].loops |= draft->sequential;
  WEFT_RETURN_IF_ERROR(start(loop, 0));
  for (int32_t i = 0; i < loop->carried_count; ++i) {
    const carried_t* c = &loop->carried[i];
    if (!c->live) continue;
    weft_source_t source;
    WEFT_RETURN_IF_ERROR(weft_lower_whole(draft->lowering, draft->buffer.data[c->buffer].tensor, &source));
    WEFT_RETURN_IF_ERROR(weft_lower_remember(draft->lowering, c->result, &source));
  }
  return weft_ok();
}

weft_status_t weft_lower_loop(weft_lowering_t* lowering, MlirOperation op, const bool* result_is_live) {
  weft_loop_t loop = {.op = op, .body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0))};
  weft_draft_t draft = {.lowering = lowering, .space = {.allocator = lowering->allocator}, .loop = &loop};
  loop.draft = &draft;
  weft_text_t name, nodes;
  weft_text_initialize(lowering->allocator, &name);
  weft_text_initialize(lowering->allocator, &nodes);
  weft_status_t status = weft_tensor_location_name(mlirOperationGetLocation(op), &name);
  if (!status) status = build(&loop, result_is_live, &nodes);
  if (!status) status = weft_draft_finish(&draft, name.data ? name.data : "loop", nodes.data ? nodes.data : "");
  weft_draft_deinitialize(&draft);
  weft_text_deinitialize(&name);
  weft_text_deinitialize(&nodes);
  return status;
}
