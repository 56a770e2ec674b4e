#include "backend/program.h"

#include <inttypes.h>
#include <string.h>

#include "backend/isa_fields.h"
#include "backend/nest.h"
#include "backend/transfer.h"

weft_status_t weft_writer_append(weft_writer_t* writer, const weft_instruction_t* instruction) {
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(writer->allocator, &writer->words, writer->words.count + WEFT_ISA_MAX_WORDS));
  return weft_isa_encode(instruction, writer->words.data, writer->words.capacity, &writer->words.count);
}

weft_status_t weft_writer_append_simple(weft_writer_t* writer, weft_opcode_e opcode, int32_t colour) {
  weft_instruction_t instruction;
  weft_isa_clear(&instruction);
  instruction.opcode = opcode;
  instruction.colour = colour;
  return weft_writer_append(writer, &instruction);
}

// The last of the first `count` operations that touches a buffer, or -1.
static int32_t find_last_use(const weft_kernel_t* kernel, int32_t count, int32_t buffer) {
  for (int32_t o = count - 1; o >= 0; --o) {
    const weft_operation_t* operation = &kernel->operation[o];
    if (operation->destination == buffer) return o;
    for (int32_t i = 0; i < weft_op_source_count(operation->op); ++i)
      if (operation->source[i] == buffer) return o;
  }
  return -1;
}

weft_status_t weft_tile_plan_prepare(weft_tile_plan_t* plan, weft_arena_t* arena) {
  const weft_kernel_t* kernel = plan->kernel;
  size_t buffers = (size_t)kernel->buffer_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, buffers, &plan->box));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, buffers, &plan->needed));
  for (int32_t owner = 0; owner < 2; ++owner) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, buffers, &plan->last_use[owner]));
    int32_t count = owner ? kernel->operation_count : kernel->reduce_operation + 1;
    for (int32_t b = 0; b < kernel->buffer_count; ++b) plan->last_use[owner][b] = find_last_use(kernel, count, b);
  }
  return weft_ok();
}

static void set_iteration(weft_tile_plan_t* plan, int32_t logical) {
  plan->logical = logical;
  plan->iteration = weft_split_box(plan->kernel, plan->split, logical);
  plan->owner = weft_split_is_owner(plan->kernel, plan->split, logical);
}

static void set_buffer(weft_tile_plan_t* plan, int32_t b) {
  plan->box[b] = weft_split_buffer_box(plan->kernel, &plan->kernel->buffer[b], &plan->iteration);
  plan->needed[b] = plan->last_use[plan->owner][b] >= 0;
}

void weft_tile_plan_set(weft_tile_plan_t* plan, int32_t logical) {
  set_iteration(plan, logical);
  for (int32_t b = 0; b < plan->kernel->buffer_count; ++b) set_buffer(plan, b);
  plan->in = weft_endpoints_of(plan->endpoints, &plan->endpoints->in, plan->kernel_index, logical);
  plan->out = weft_endpoints_of(plan->endpoints, &plan->endpoints->out, plan->kernel_index, logical);
}

void weft_tile_plan_set_loaded(weft_tile_plan_t* plan, int32_t logical) {
  set_iteration(plan, logical);
  for (int32_t b = 0; b < plan->kernel->buffer_count; ++b)
    if (plan->loaded[b]) set_buffer(plan, b);
}

// A tile's program while it is written.
typedef struct state_t {
  const weft_tile_plan_t* plan;
  weft_writer_t* writer;
  uint64_t* waited; // bits: plan->in, then plan->out; in this step, this end was waited for
} state_t;

// Whether an operation runs on this tile.
static bool runs(const state_t* s, int32_t operation) {
  return s->plan->owner || operation <= s->plan->kernel->reduce_operation;
}

static const weft_stream_t* stream_of(const state_t* s, const weft_end_t* end) {
  return &s->plan->fabric->stream[end->stream];
}

static weft_placement_t placement_of(const state_t* s, int32_t buffer) {
  weft_placement_t placement = {.address = s->plan->layout->address[buffer], .rank = s->plan->box[buffer].rank};
  memcpy(placement.lo, s->plan->box[buffer].lo, sizeof(placement.lo));
  memcpy(placement.stride, s->plan->layout->stride[buffer], sizeof(placement.stride));
  return placement;
}

static void begin(weft_instruction_t* out, weft_opcode_e opcode, weft_op_e op, weft_dtype_e dtype,
                  weft_dtype_e destination_dtype) {
  weft_isa_clear(out);
  out->opcode = opcode;
  out->op = op;
  out->dtype = dtype;
  out->destination_dtype = destination_dtype;
}

// The whole box of a buffer, row-major.
static void push_box(const state_t* s, int32_t buffer, weft_nest_t* nest) {
  const weft_box_t* box = &s->plan->box[buffer];
  for (int32_t r = 0; r < box->rank; ++r) {
    int64_t strides[WEFT_NEST_OPERANDS] = {s->plan->layout->stride[buffer][r]};
    weft_nest_push(nest, box->hi[r] - box->lo[r], strides);
  }
}

static weft_status_t set_immediate(const state_t* s, double value, int32_t source, weft_instruction_t* i) {
  int64_t address = 0;
  if (weft_layout_immediate(s->plan->layout, i->dtype, value, &i->base[1 + source], &address)) {
    i->flags |= (uint8_t)(1 << source);
    return weft_ok();
  }
  return weft_nest_narrow(address, "the address", &i->base[1 + source]);
}

// The ring that an operand's buffer is, if it is one.
static void set_ring(const state_t* s, int32_t buffer, int32_t operand, weft_instruction_t* i) {
  const weft_layout_t* layout = s->plan->layout;
  i->ring[operand] = (weft_isa_ring_t){0, 1};
  if (buffer < 0 || layout->depth[buffer] == 1) return;
  i->ring[operand] = (weft_isa_ring_t){(int32_t)layout->place[buffer], layout->depth[buffer]};
  i->flags |= WEFT_ISA_FLAG_RING;
}

// Padding that no piece covers: set once, in every place of the buffer's ring, as nothing writes there.
static weft_status_t write_fills(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (int32_t b = 0; b < plan->kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &plan->kernel->buffer[b];
    if (buffer->kind != WEFT_BUFFER_OPERAND || !buffer->has_fill || !plan->needed[b] || plan->loaded[b]) continue;
    uint8_t bytes[8] = {0}, zeros[8] = {0};
    weft_dtype_store(buffer->dtype, buffer->fill, bytes);
    if (!memcmp(bytes, zeros, sizeof(bytes))) continue; // memory starts zeroed
    weft_instruction_t i;
    begin(&i, WEFT_OPCODE_TENSOR, WEFT_OP_MOV, buffer->dtype, buffer->dtype);
    weft_nest_t nest;
    weft_nest_initialize(2, &nest);
    weft_nest_push(&nest, plan->layout->depth[b], (int64_t[WEFT_NEST_OPERANDS]){plan->layout->place[b]});
    push_box(s, b, &nest);
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(plan->layout->address[b], "the address", &i.base[0]));
    WEFT_RETURN_IF_ERROR(set_immediate(s, buffer->fill, 0, &i));
    WEFT_RETURN_IF_ERROR(weft_nest_store(&nest, &i));
    if (!nest.empty) WEFT_RETURN_IF_ERROR(weft_writer_append(s->writer, &i));
  }
  return weft_ok();
}

// From another kernel or to one; what comes back to its own does so within a step.
static bool carries_data(const state_t* s, const weft_end_t* end) {
  return stream_of(s, end)->kind == WEFT_STREAM_DATA && !weft_stream_is_feedback(stream_of(s, end));
}

static weft_status_t write_receive(const state_t* s, const weft_end_t* end) {
  const weft_tile_plan_t* plan = s->plan;
  const weft_stream_t* stream = stream_of(s, end);
  const weft_buffer_t* buffer = &plan->kernel->buffer[stream->sink_buffer];
  weft_placement_t placement = placement_of(s, stream->sink_buffer);
  weft_instruction_t i;
  begin(&i, WEFT_OPCODE_RECV, WEFT_OP_MOV, stream->dtype, 0);
  i.colour = end->colour;
  set_ring(s, stream->sink_buffer, 0, &i);
  weft_status_t status =
      weft_transfer_recv(&stream->walk, &plan->fabric->tensor[stream->tensor].shape,
                         &buffer->piece[stream->sink_piece].view, &plan->box[stream->sink_buffer], &placement, &i);
  if (!status) status = weft_writer_append(s->writer, &i);
  return weft_status_annotate(status, "receiving '%s'", plan->fabric->tensor[stream->tensor].name);
}

// Posts a receive for each place that a step's operands can arrive in; each is posted again when its place is read.
static weft_status_t write_receives(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (size_t e = 0; e < plan->in.count; ++e)
    if (carries_data(s, &plan->in.end[e])) WEFT_RETURN_IF_ERROR(write_receive(s, &plan->in.end[e]));
  for (size_t e = 0; e < plan->in.count; ++e)
    for (int32_t p = 1;
         carries_data(s, &plan->in.end[e]) && p < plan->layout->depth[stream_of(s, &plan->in.end[e])->sink_buffer]; ++p)
      WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_AGAIN, plan->in.end[e].colour));
  return weft_ok();
}

static bool mark_waited(const state_t* s, size_t bit) {
  bool before = s->waited[bit / 64] >> bit % 64 & 1;
  s->waited[bit / 64] |= UINT64_C(1) << bit % 64;
  return before;
}

// Waits for what arrives in a buffer.
static weft_status_t await_receives(const state_t* s, int32_t buffer) {
  for (size_t e = 0; e < s->plan->in.count; ++e) {
    const weft_end_t* end = &s->plan->in.end[e];
    if (!carries_data(s, end) || stream_of(s, end)->sink_buffer != buffer) continue;
    if (!mark_waited(s, e))
      WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_RECV, end->colour));
  }
  return weft_ok();
}

// The buffer was read for the last time in this step: what arrived there may be overwritten by a later step's.
static weft_status_t release_buffer(const state_t* s, int32_t buffer) {
  WEFT_RETURN_IF_ERROR(await_receives(s, buffer));
  for (size_t e = 0; e < s->plan->in.count; ++e) {
    const weft_end_t* end = &s->plan->in.end[e];
    if (carries_data(s, end) && stream_of(s, end)->sink_buffer == buffer)
      WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_AGAIN, end->colour));
  }
  return weft_ok();
}

static weft_status_t release_after(const state_t* s, int32_t operation) {
  for (int32_t b = 0; b < s->plan->kernel->buffer_count; ++b)
    if (s->plan->kernel->buffer[b].kind == WEFT_BUFFER_OPERAND && s->plan->last_use[s->plan->owner][b] == operation)
      WEFT_RETURN_IF_ERROR(release_buffer(s, b));
  return weft_ok();
}

// A chain carries the partial results on; its head is the only one that sends them asynchronously.
static bool is_chain_head(const state_t* s) {
  return weft_split_chain_length(s->plan->kernel, s->plan->split) > 1 &&
         weft_split_chain_position(s->plan->kernel, s->plan->split, s->plan->logical) == 0;
}

// The buffer that an end of this tile sends asynchronously, or -1.
static int32_t sent_buffer(const state_t* s, const weft_end_t* end) {
  const weft_stream_t* stream = stream_of(s, end);
  if (stream->kind == WEFT_STREAM_DATA)
    return carries_data(s, end) ? s->plan->fabric->tensor[stream->tensor].buffer : -1;
  return is_chain_head(s) ? s->plan->kernel->operation[s->plan->kernel->reduce_operation].destination : -1;
}

// Before a send from a ring, the one of the step before has to be through; then none is left in the place of the next
// step. A buffer that is no ring is waited for when it is to be overwritten.
static weft_status_t await_send(const state_t* s, int32_t buffer, int32_t colour) {
  if (s->plan->layout->depth[buffer] == 1) return weft_ok();
  return weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_SEND, colour);
}

// Waits until a buffer has left memory, -1: all of them.
static weft_status_t await_sends(const state_t* s, int32_t buffer) {
  for (size_t e = 0; e < s->plan->out.count; ++e) {
    int32_t sent = sent_buffer(s, &s->plan->out.end[e]);
    if (sent < 0 || (buffer >= 0 && sent != buffer)) continue;
    if (buffer < 0 || !mark_waited(s, s->plan->in.count + e))
      WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_SEND, s->plan->out.end[e].colour));
  }
  return weft_ok();
}

// Address of the first iteration point in a buffer, and the stride of each iteration dimension, in bytes.
static int64_t locate(const state_t* s, int32_t b, int64_t strides[WEFT_MAX_DIMS]) {
  const weft_buffer_t* buffer = &s->plan->kernel->buffer[b];
  int64_t address = s->plan->layout->address[b];
  memset(strides, 0, sizeof(*strides) * WEFT_MAX_DIMS);
  for (int32_t r = 0; r < buffer->rank; ++r) {
    int64_t coordinate = buffer->row[r].offset, stride = s->plan->layout->stride[b][r];
    for (int32_t d = 0; d < s->plan->kernel->dim_count; ++d) {
      coordinate += buffer->row[r].coefficient[d] * s->plan->iteration.lo[d];
      strides[d] += buffer->row[r].coefficient[d] * stride;
    }
    address += (coordinate - s->plan->box[b].lo[r]) * stride;
  }
  return address;
}

// The loop over the sequential dimension is around all of its operations.
static weft_status_t set_advance(int32_t operands, int32_t dim, int64_t (*strides)[WEFT_MAX_DIMS],
                                 weft_instruction_t* i) {
  for (int32_t o = 0; o < operands; ++o) {
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(strides[o][dim], "the stride", &i->advance[o]));
    if (i->advance[o]) i->flags |= WEFT_ISA_FLAG_ADVANCE;
  }
  return weft_ok();
}

static weft_status_t make_tensor(const state_t* s, const weft_operation_t* operation, weft_instruction_t* i,
                                 bool* out_empty) {
  const weft_kernel_t* kernel = s->plan->kernel;
  int32_t operands = 1 + weft_op_source_count(operation->op);
  int64_t strides[WEFT_NEST_OPERANDS][WEFT_MAX_DIMS];
  for (int32_t o = 0; o < operands; ++o) {
    int32_t buffer = o ? operation->source[o - 1] : operation->destination;
    if (o > 0 && buffer < 0) {
      memset(strides[o], 0, sizeof(strides[o]));
      set_ring(s, -1, o, i);
      WEFT_RETURN_IF_ERROR(set_immediate(s, operation->immediate[o - 1], o - 1, i));
      continue;
    }
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(locate(s, buffer, strides[o]), "the address", &i->base[o]));
    set_ring(s, buffer, o, i);
  }
  weft_nest_t nest;
  weft_nest_initialize(operands, &nest);
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    if (!(operation->loops >> d & 1)) continue;
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) {
      WEFT_RETURN_IF_ERROR(set_advance(operands, d, strides, i));
      continue;
    }
    int64_t along[WEFT_NEST_OPERANDS];
    for (int32_t o = 0; o < operands; ++o) along[o] = strides[o][d];
    weft_nest_push(&nest, s->plan->iteration.hi[d] - s->plan->iteration.lo[d], along);
  }
  *out_empty = nest.empty;
  return weft_nest_store(&nest, i);
}

static weft_status_t write_operation(const state_t* s, int32_t index) {
  const weft_operation_t* operation = &s->plan->kernel->operation[index];
  weft_instruction_t i;
  begin(&i, WEFT_OPCODE_TENSOR, operation->op, operation->dtype, s->plan->kernel->buffer[operation->destination].dtype);
  bool empty = false;
  WEFT_RETURN_IF_ERROR(make_tensor(s, operation, &i, &empty));
  if (empty) return weft_ok();
  for (int32_t o = 0; o < weft_op_source_count(operation->op); ++o)
    if (operation->source[o] >= 0) WEFT_RETURN_IF_ERROR(await_receives(s, operation->source[o]));
  if (s->plan->layout->depth[operation->destination] == 1) WEFT_RETURN_IF_ERROR(await_sends(s, operation->destination));
  return weft_writer_append(s->writer, &i);
}

static const weft_end_t* find_chain_end(const state_t* s, const weft_end_list_t* list) {
  for (size_t e = 0; e < list->count; ++e)
    if (stream_of(s, &list->end[e])->kind == WEFT_STREAM_CHAIN) return &list->end[e];
  return NULL;
}

// Head: sends its partial results. Middle: adds its own to what passes. Owner: adds what arrives to its own.
static weft_status_t write_chain(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  if (weft_split_chain_length(plan->kernel, plan->split) <= 1) return weft_ok();
  int32_t buffer = plan->kernel->operation[plan->kernel->reduce_operation].destination;
  const weft_end_t *in = find_chain_end(s, &plan->in), *out = find_chain_end(s, &plan->out);
  bool head = is_chain_head(s), owner = plan->owner;
  if ((!head && !in) || (!owner && !out))
    return weft_error(INVALID_INPUT, "the reduce chain is broken: no stream %s", !head && !in ? "arrives" : "leaves");
  weft_instruction_t i;
  begin(&i, head ? WEFT_OPCODE_SEND : WEFT_OPCODE_CHAIN, head ? WEFT_OP_MOV : plan->kernel->combiner,
        plan->kernel->buffer[buffer].dtype, 0);
  i.colour = head ? out->colour : in->colour;
  i.out_colour = head ? 0 : owner ? -1 : out->colour;
  weft_nest_t nest;
  weft_nest_initialize(1, &nest);
  push_box(s, buffer, &nest);
  if (nest.empty) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_nest_narrow(plan->layout->address[buffer], "the address", &i.base[0]));
  WEFT_RETURN_IF_ERROR(weft_nest_store(&nest, &i));
  set_ring(s, buffer, 0, &i);
  if (head) WEFT_RETURN_IF_ERROR(await_send(s, buffer, i.colour));
  return weft_writer_append(s->writer, &i);
}

static weft_status_t write_send(const state_t* s, const weft_end_t* end) {
  const weft_tile_plan_t* plan = s->plan;
  const weft_stream_t* stream = stream_of(s, end);
  const weft_tensor_t* tensor = &plan->fabric->tensor[stream->tensor];
  weft_box_t owned = weft_split_owned_box(plan->fabric, stream->tensor, plan->logical);
  weft_placement_t placement = placement_of(s, tensor->buffer);
  weft_instruction_t i;
  begin(&i, WEFT_OPCODE_SEND, WEFT_OP_MOV, stream->dtype, 0);
  i.colour = end->colour;
  int64_t points = 0;
  weft_status_t status = weft_transfer_send(&stream->walk, &owned, &placement, &i, &points);
  if (!status && points != stream->source[end->index].elements)
    status = weft_error(INVALID_INPUT, "it holds %" PRId64 " elements of the stream, not %" PRId64, points,
                        stream->source[end->index].elements);
  set_ring(s, tensor->buffer, 0, &i);
  if (!status && carries_data(s, end)) status = await_send(s, tensor->buffer, i.colour);
  if (!status) status = weft_writer_append(s->writer, &i);
  return weft_status_annotate(status, "sending '%s'", tensor->name);
}

static weft_status_t write_sends(const state_t* s) {
  for (size_t e = 0; e < s->plan->out.count; ++e)
    if (carries_data(s, &s->plan->out.end[e])) WEFT_RETURN_IF_ERROR(write_send(s, &s->plan->out.end[e]));
  return weft_ok();
}

// Loops

static bool in_loop(const state_t* s, int32_t operation) {
  const weft_kernel_t* kernel = s->plan->kernel;
  return operation >= 0 && operation < kernel->operation_count &&
         (kernel->operation[operation].loops & weft_split_sequential(kernel));
}

// What the trips read has arrived and what they overwrite has left before the first of them.
static weft_status_t begin_loop(const state_t* s, int32_t first) {
  const weft_kernel_t* kernel = s->plan->kernel;
  for (int32_t o = first; in_loop(s, o); ++o) {
    const weft_operation_t* operation = &kernel->operation[o];
    for (int32_t i = 0; i < weft_op_source_count(operation->op); ++i)
      if (operation->source[i] >= 0) WEFT_RETURN_IF_ERROR(await_receives(s, operation->source[i]));
    if (s->plan->layout->depth[operation->destination] == 1)
      WEFT_RETURN_IF_ERROR(await_sends(s, operation->destination));
  }
  weft_instruction_t loop;
  begin(&loop, WEFT_OPCODE_LOOP, WEFT_OP_MOV, 0, 0);
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL)
      WEFT_RETURN_IF_ERROR(weft_nest_narrow(kernel->dim[d].extent, "the number of trips", &loop.trips));
  return weft_writer_append(s->writer, &loop);
}

static weft_status_t end_loop(const state_t* s, int32_t last) {
  WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_END_LOOP, 0));
  for (int32_t o = last; in_loop(s, o); --o) WEFT_RETURN_IF_ERROR(release_after(s, o));
  return weft_ok();
}

// Whether the operation is the last of a trip that writes the buffer.
static bool completes(const state_t* s, int32_t operation, int32_t buffer) {
  const weft_kernel_t* kernel = s->plan->kernel;
  if (kernel->operation[operation].destination != buffer) return false;
  for (int32_t o = operation + 1; in_loop(s, o); ++o)
    if (kernel->operation[o].destination == buffer) return false;
  return true;
}

// Sends the result that the operation completes back to the tiles of the kernel. The receive is posted first, as what
// it overwrites was read by then; so all of them get posted, whatever the order of the tiles.
static weft_status_t feed_back(const state_t* s, int32_t operation) {
  enum { RECEIVE, SEND, AWAIT_RECEIVE, AWAIT_SEND, PHASES };
  for (int32_t phase = 0; phase < PHASES; ++phase) {
    const weft_end_list_t* ends = phase == RECEIVE || phase == AWAIT_RECEIVE ? &s->plan->in : &s->plan->out;
    for (size_t e = 0; e < ends->count; ++e) {
      const weft_end_t* end = &ends->end[e];
      const weft_stream_t* stream = stream_of(s, end);
      if (!weft_stream_is_feedback(stream) || !completes(s, operation, s->plan->fabric->tensor[stream->tensor].buffer))
        continue;
      weft_status_t status = phase == RECEIVE ? write_receive(s, end)
                             : phase == SEND  ? write_send(s, end)
                             : phase == AWAIT_RECEIVE
                                 ? weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_RECV, end->colour)
                                 : weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_SEND, end->colour);
      WEFT_RETURN_IF_ERROR(status);
    }
  }
  return weft_ok();
}

static weft_status_t write_step(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (int32_t o = 0; o < plan->kernel->operation_count; ++o) {
    if (in_loop(s, o) && !in_loop(s, o - 1)) WEFT_RETURN_IF_ERROR(begin_loop(s, o));
    if (runs(s, o)) {
      weft_status_t status = write_operation(s, o);
      if (status)
        return weft_status_annotate(status, "operation %" PRId32 " (%s)", o,
                                    weft_op_mnemonic(plan->kernel->operation[o].op));
      if (!in_loop(s, o)) WEFT_RETURN_IF_ERROR(release_after(s, o));
    }
    if (in_loop(s, o)) WEFT_RETURN_IF_ERROR(feed_back(s, o));
    if (in_loop(s, o) && !in_loop(s, o + 1)) WEFT_RETURN_IF_ERROR(end_loop(s, o));
    if (o == plan->kernel->reduce_operation) WEFT_RETURN_IF_ERROR(write_chain(s));
  }
  WEFT_RETURN_IF_ERROR(release_after(s, -1)); // what nobody reads
  return write_sends(s);
}

weft_status_t weft_program_tile(const weft_tile_plan_t* plan, weft_writer_t* writer) {
  state_t state = {.plan = plan, .writer = writer};
  size_t words = (plan->in.count + plan->out.count) / 64 + 1;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(writer->allocator, words, sizeof(uint64_t), (void**)&state.waited));
  weft_status_t status = write_fills(&state);
  if (!status) status = write_receives(&state);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_STEPS, 0);
  if (!status) status = write_step(&state);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_END_STEPS, 0);
  if (!status) status = await_sends(&state, -1);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_HALT, 0);
  weft_allocator_free(writer->allocator, state.waited);
  return status;
}
