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
  weft_instruction_t instruction = {.opcode = opcode, .colour = colour};
  return weft_writer_append(writer, &instruction);
}

void weft_tile_plan_set(weft_tile_plan_t* plan, int32_t logical) {
  plan->logical = logical;
  plan->iteration = weft_split_box(plan->kernel, plan->split, logical);
  for (int32_t b = 0; b < plan->kernel->buffer_count; ++b) {
    plan->box[b] = weft_split_buffer_box(plan->kernel, &plan->kernel->buffer[b], &plan->iteration);
    plan->needed[b] = weft_split_needs_buffer(plan->kernel, plan->split, b, logical);
  }
  plan->in = weft_endpoints_of(plan->endpoints, &plan->endpoints->in, plan->kernel_index, logical);
  plan->out = weft_endpoints_of(plan->endpoints, &plan->endpoints->out, plan->kernel_index, logical);
}

// A tile's program while it is written.
typedef struct state_t {
  const weft_tile_plan_t* plan;
  weft_writer_t* writer;
  uint64_t* waited; // bits: plan->in, then plan->out; in this step, this end was waited for
} state_t;

static const weft_stream_t* stream_of(const state_t* s, const weft_end_t* end) {
  return &s->plan->fabric->stream[end->stream];
}

static weft_placement_t placement_of(const state_t* s, int32_t buffer) {
  weft_placement_t placement = {.address = s->plan->layout->address[buffer], .rank = s->plan->box[buffer].rank};
  memcpy(placement.lo, s->plan->box[buffer].lo, sizeof(placement.lo));
  memcpy(placement.stride, s->plan->layout->stride[buffer], sizeof(placement.stride));
  return placement;
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

// Padding that no piece covers: set once, as nothing writes there.
static weft_status_t write_fills(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (int32_t b = 0; b < plan->kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &plan->kernel->buffer[b];
    if (buffer->kind != WEFT_BUFFER_OPERAND || !buffer->has_fill || !plan->needed[b] || plan->loaded[b]) continue;
    uint8_t bytes[8] = {0}, zeros[8] = {0};
    weft_dtype_store(buffer->dtype, buffer->fill, bytes);
    if (!memcmp(bytes, zeros, sizeof(bytes))) continue; // memory starts zeroed
    weft_instruction_t i = {
        .opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_MOV, .dtype = buffer->dtype, .destination_dtype = buffer->dtype};
    weft_nest_t nest;
    weft_nest_initialize(2, &nest);
    push_box(s, b, &nest);
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(plan->layout->address[b], "the address", &i.base[0]));
    WEFT_RETURN_IF_ERROR(set_immediate(s, buffer->fill, 0, &i));
    WEFT_RETURN_IF_ERROR(weft_nest_store(&nest, &i));
    if (!nest.empty) WEFT_RETURN_IF_ERROR(weft_writer_append(s->writer, &i));
  }
  return weft_ok();
}

static weft_status_t write_receives(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (size_t e = 0; e < plan->in.count; ++e) {
    const weft_end_t* end = &plan->in.end[e];
    const weft_stream_t* stream = stream_of(s, end);
    if (stream->kind == WEFT_STREAM_CHAIN) continue;
    const weft_buffer_t* buffer = &plan->kernel->buffer[stream->sink_buffer];
    weft_placement_t placement = placement_of(s, stream->sink_buffer);
    weft_instruction_t i = {.opcode = WEFT_OPCODE_RECV, .dtype = stream->dtype, .colour = end->colour};
    weft_status_t status =
        weft_transfer_recv(&stream->walk, &plan->fabric->tensor[stream->tensor].shape,
                           &buffer->piece[stream->sink_piece].view, &plan->box[stream->sink_buffer], &placement, &i);
    if (!status) status = weft_writer_append(s->writer, &i);
    if (status) return weft_status_annotate(status, "receiving '%s'", plan->fabric->tensor[stream->tensor].name);
  }
  return weft_ok();
}

static bool mark_waited(const state_t* s, size_t bit) {
  bool before = s->waited[bit / 64] >> bit % 64 & 1;
  s->waited[bit / 64] |= UINT64_C(1) << bit % 64;
  return before;
}

// Waits for what arrives in a buffer. -1: in any.
static weft_status_t await_receives(const state_t* s, int32_t buffer) {
  for (size_t e = 0; e < s->plan->in.count; ++e) {
    const weft_end_t* end = &s->plan->in.end[e];
    const weft_stream_t* stream = stream_of(s, end);
    if (stream->kind == WEFT_STREAM_CHAIN || (buffer >= 0 && stream->sink_buffer != buffer)) continue;
    if (!mark_waited(s, e))
      WEFT_RETURN_IF_ERROR(weft_writer_append_simple(s->writer, WEFT_OPCODE_WAIT_RECV, end->colour));
  }
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
  if (stream->kind == WEFT_STREAM_DATA) return s->plan->fabric->tensor[stream->tensor].buffer;
  return is_chain_head(s) ? s->plan->kernel->operation[s->plan->kernel->reduce_operation].destination : -1;
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

static weft_status_t make_tensor(const state_t* s, const weft_operation_t* operation, weft_instruction_t* i,
                                 bool* out_empty) {
  const weft_kernel_t* kernel = s->plan->kernel;
  int32_t operands = 1 + weft_op_source_count(operation->op);
  int64_t strides[WEFT_NEST_OPERANDS][WEFT_MAX_DIMS] = {{0}};
  for (int32_t o = 0; o < operands; ++o) {
    int32_t buffer = o ? operation->source[o - 1] : operation->destination;
    if (o > 0 && buffer < 0) {
      WEFT_RETURN_IF_ERROR(set_immediate(s, operation->immediate[o - 1], o - 1, i));
      continue;
    }
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(locate(s, buffer, strides[o]), "the address", &i->base[o]));
  }
  weft_nest_t nest;
  weft_nest_initialize(operands, &nest);
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    if (!(operation->loops >> d & 1)) continue;
    int64_t along[WEFT_NEST_OPERANDS];
    for (int32_t o = 0; o < operands; ++o) along[o] = strides[o][d];
    weft_nest_push(&nest, s->plan->iteration.hi[d] - s->plan->iteration.lo[d], along);
  }
  *out_empty = nest.empty;
  return weft_nest_store(&nest, i);
}

static weft_status_t write_operation(const state_t* s, int32_t index) {
  const weft_operation_t* operation = &s->plan->kernel->operation[index];
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR,
                          .op = operation->op,
                          .dtype = operation->dtype,
                          .destination_dtype = s->plan->kernel->buffer[operation->destination].dtype};
  bool empty = false;
  WEFT_RETURN_IF_ERROR(make_tensor(s, operation, &i, &empty));
  if (empty) return weft_ok();
  for (int32_t o = 0; o < weft_op_source_count(operation->op); ++o)
    if (operation->source[o] >= 0) WEFT_RETURN_IF_ERROR(await_receives(s, operation->source[o]));
  WEFT_RETURN_IF_ERROR(await_sends(s, operation->destination));
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
  bool head = is_chain_head(s), owner = weft_split_is_owner(plan->kernel, plan->split, plan->logical);
  if ((!head && !in) || (!owner && !out))
    return weft_error(INVALID_INPUT, "the reduce chain is broken: no stream %s", !head && !in ? "arrives" : "leaves");
  weft_instruction_t i = {.opcode = head ? WEFT_OPCODE_SEND : WEFT_OPCODE_CHAIN,
                          .op = head ? WEFT_OP_MOV : plan->kernel->combiner,
                          .dtype = plan->kernel->buffer[buffer].dtype,
                          .colour = head ? out->colour : in->colour,
                          .out_colour = head    ? 0
                                        : owner ? -1
                                                : out->colour};
  weft_nest_t nest;
  weft_nest_initialize(1, &nest);
  push_box(s, buffer, &nest);
  if (nest.empty) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_nest_narrow(plan->layout->address[buffer], "the address", &i.base[0]));
  WEFT_RETURN_IF_ERROR(weft_nest_store(&nest, &i));
  return weft_writer_append(s->writer, &i);
}

static weft_status_t write_sends(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  for (size_t e = 0; e < plan->out.count; ++e) {
    const weft_end_t* end = &plan->out.end[e];
    const weft_stream_t* stream = stream_of(s, end);
    if (stream->kind == WEFT_STREAM_CHAIN) continue;
    const weft_tensor_t* tensor = &plan->fabric->tensor[stream->tensor];
    weft_box_t owned = weft_split_owned_box(plan->fabric, stream->tensor, plan->logical);
    weft_placement_t placement = placement_of(s, tensor->buffer);
    weft_instruction_t i = {.opcode = WEFT_OPCODE_SEND, .dtype = stream->dtype, .colour = end->colour};
    int64_t points = 0;
    weft_status_t status = weft_transfer_send(&stream->walk, &owned, &placement, &i, &points);
    if (!status && points != stream->source[end->index].elements)
      status = weft_error(INVALID_INPUT, "it holds %" PRId64 " elements of the stream, not %" PRId64, points,
                          stream->source[end->index].elements);
    if (!status) status = weft_writer_append(s->writer, &i);
    if (status) return weft_status_annotate(status, "sending '%s'", tensor->name);
  }
  return weft_ok();
}

static weft_status_t write_step(const state_t* s) {
  const weft_tile_plan_t* plan = s->plan;
  WEFT_RETURN_IF_ERROR(write_receives(s));
  for (int32_t o = 0; o < plan->kernel->operation_count; ++o) {
    if (weft_split_runs(plan->kernel, plan->split, o, plan->logical)) {
      weft_status_t status = write_operation(s, o);
      if (status)
        return weft_status_annotate(status, "operation %" PRId32 " (%s)", o,
                                    weft_op_mnemonic(plan->kernel->operation[o].op));
    }
    if (o == plan->kernel->reduce_operation) WEFT_RETURN_IF_ERROR(write_chain(s));
  }
  WEFT_RETURN_IF_ERROR(await_receives(s, -1)); // before the next step posts them again
  return write_sends(s);
}

weft_status_t weft_program_tile(const weft_tile_plan_t* plan, weft_writer_t* writer) {
  state_t state = {.plan = plan, .writer = writer};
  size_t words = (plan->in.count + plan->out.count) / 64 + 1;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(writer->allocator, words, sizeof(uint64_t), (void**)&state.waited));
  weft_status_t status = write_fills(&state);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_STEPS, 0);
  if (!status) status = write_step(&state);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_END_STEPS, 0);
  if (!status) status = await_sends(&state, -1);
  if (!status) status = weft_writer_append_simple(writer, WEFT_OPCODE_HALT, 0);
  weft_allocator_free(writer->allocator, state.waited);
  return status;
}
