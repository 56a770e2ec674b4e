#include "ir/fabric/cost.h"

#include "base/checked.h"
#include "ir/fabric/streams.h"

// Upper bounds of a tile's code, in words of 32 bits, from the encoding in backend/isa.h. Which streams there will be
// is known only after placement, so each edge counts with as many sends as a tile may have.
enum {
  HEADER_WORDS = 2,
  PROLOGUE_WORDS = 32, // steps, end of steps, halt, and room for what a program may add once
  RING_WORDS = 2,
  WAIT_WORDS = 3, // wait.send, wait.recv, again.recv
  DEPTH = 2       // buffers of an operand or result, when doubled
};

static int64_t tensor_words(int32_t operands, int32_t loops) {
  return HEADER_WORDS + (1 + RING_WORDS) * operands + loops * (1 + operands);
}

static int64_t send_words(int32_t rank) {
  return HEADER_WORDS + 3 + RING_WORDS + 2 * rank + 2 * WAIT_WORDS;
}

static int64_t receive_words(const weft_view_t* view, int32_t tensor_rank) {
  return HEADER_WORDS + 4 + RING_WORDS + 3 * WEFT_MAX_LEVELS + 3 * tensor_rank + 5 * view->factor_count +
         4 * view->rank + (1 + DEPTH) * WAIT_WORDS;
}

static int32_t consumers(const weft_fabric_t* fabric, int32_t tensor) {
  int32_t count = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    for (int32_t b = 0; b < kernel->buffer_count; ++b)
      for (int32_t p = 0; kernel->buffer[b].kind == WEFT_BUFFER_OPERAND && p < kernel->buffer[b].piece_count; ++p)
        count += kernel->buffer[b].piece[p].tensor == tensor;
  }
  for (int32_t o = 0; o < fabric->output_count; ++o)
    for (int32_t p = 0; p < fabric->output[o].piece_count; ++p) count += fabric->output[o].piece[p].tensor == tensor;
  return count;
}

static int64_t code_words(const weft_fabric_t* fabric, const weft_kernel_t* kernel) {
  int64_t words = PROLOGUE_WORDS;
  for (int32_t i = 0; i < kernel->operation_count; ++i)
    words +=
        tensor_words(1 + weft_op_source_count(kernel->operation[i].op), __builtin_popcount(kernel->operation[i].loops));
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &kernel->buffer[b];
    if (buffer->kind == WEFT_BUFFER_RESULT)
      words += (int64_t)consumers(fabric, buffer->tensor) * WEFT_STREAMS_PER_TILE * send_words(buffer->rank);
    if (buffer->kind != WEFT_BUFFER_OPERAND) continue;
    if (buffer->has_fill) words += tensor_words(2, 1 + buffer->rank);
    for (int32_t p = 0; p < buffer->piece_count; ++p) {
      const weft_tensor_t* tensor = &fabric->tensor[buffer->piece[p].tensor];
      if (tensor->kind != WEFT_TENSOR_CONSTANT) words += receive_words(&buffer->piece[p].view, tensor->shape.rank);
    }
  }
  if (kernel->reduce_operation >= 0) {
    int32_t rank = kernel->buffer[kernel->operation[kernel->reduce_operation].destination].rank;
    words += send_words(rank) + tensor_words(2, rank); // the chain, and the accumulator's first value
  }
  return words;
}

weft_status_t weft_cost_model_initialize(const weft_fabric_t* fabric, int32_t kernel, const weft_machine_t* machine,
                                         weft_cost_model_t* out_model) {
  weft_cost_model_t model = {
      .kernel = &fabric->kernel[kernel], .machine = machine, .allocator = fabric->arena.allocator};
  model.code_bytes = 4 * code_words(fabric, model.kernel);
  weft_status_t status = weft_allocator_calloc(model.allocator, (size_t)model.kernel->buffer_count,
                                               sizeof(*model.buffer), (void**)&model.buffer);
  for (int32_t b = 0; b < model.kernel->buffer_count && !status; ++b) {
    const weft_buffer_t* buffer = &model.kernel->buffer[b];
    model.buffer[b].streamed = weft_split_is_streamed(fabric, buffer);
    model.buffer[b].feedback = weft_split_is_feedback(fabric, kernel, b);
    if (buffer->kind == WEFT_BUFFER_RESULT) model.buffer[b].consumers = consumers(fabric, buffer->tensor);
    model.transfers += model.buffer[b].consumers;
    if (model.buffer[b].feedback) continue;
    for (int32_t p = 0; buffer->kind == WEFT_BUFFER_OPERAND && p < buffer->piece_count && !status; ++p) {
      if (fabric->tensor[buffer->piece[p].tensor].kind == WEFT_TENSOR_CONSTANT) continue;
      weft_box_t image = weft_view_image(&buffer->piece[p].view);
      weft_cost_arrival_t arrival = {.buffer = b, .landing = {.rank = image.rank}};
      for (int32_t d = 0; d < image.rank; ++d) arrival.landing.extent[d] = image.hi[d] - image.lo[d];
      ++model.transfers;
      status = WEFT_ARRAY_PUSH(model.allocator, &model.arrivals, arrival);
    }
  }
  if (status) weft_cost_model_deinitialize(&model);
  *out_model = model;
  return status;
}

void weft_cost_model_deinitialize(weft_cost_model_t* model) {
  WEFT_ARRAY_FREE(model->allocator, &model->arrivals);
  weft_allocator_free(model->allocator, model->buffer);
}

// Extent of a buffer row over blocks of these sizes.
static int64_t row_extent(const weft_kernel_t* kernel, const weft_index_row_t* row, const int64_t* block) {
  int64_t extent = 1;
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    int64_t c = row->coefficient[d];
    extent += (c < 0 ? -c : c) * (block[d] - 1);
  }
  return extent;
}

static int64_t buffer_elements(const weft_kernel_t* kernel, int32_t b, const int64_t* block) {
  int64_t elements = 1;
  for (int32_t r = 0; r < kernel->buffer[b].rank; ++r) elements *= row_extent(kernel, &kernel->buffer[b].row[r], block);
  return elements;
}

static int64_t compute_cycles(const weft_cost_model_t* model, const int64_t* block) {
  const weft_kernel_t* kernel = model->kernel;
  int64_t cycles = 0;
  for (int32_t i = 0; i < kernel->operation_count; ++i) {
    int64_t points = 1;
    int64_t trips = 1;
    for (int32_t d = 0; d < kernel->dim_count; ++d)
      if (kernel->operation[i].loops >> d & 1)
        *(kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL ? &trips : &points) *= block[d];
    cycles +=
        trips * weft_machine_op_cycles(model->machine, kernel->operation[i].op, kernel->operation[i].dtype, points);
  }
  return cycles;
}

// What a kernel waits for in all trips of its loop while results come back to it: each is gathered from all of the
// tiles that have the same operand, and then handed out to them, there and back along the longer side of the grid.
static int64_t feedback_cycles(const weft_cost_model_t* model, const int64_t* block) {
  const weft_kernel_t* kernel = model->kernel;
  const weft_machine_t* machine = model->machine;
  int64_t trips = 1, side = 1, cycles = 0;
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL)
      trips = kernel->dim[d].extent;
    else
      side = weft_max_i64(side, weft_ceil_div(kernel->dim[d].extent, block[d]));
  }
  int64_t latency = 2 * machine->ramp_cycles + 2 * side * machine->hop_cycles + 4 * machine->issue_cycles;
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (model->buffer[b].feedback)
      cycles += latency + weft_machine_wavelets(machine, kernel->buffer[b].dtype, buffer_elements(kernel, b, block));
  return trips * cycles;
}

// Accumulators that pass each tile of a reduce chain; 0: there is none.
static int64_t chain_wavelets(const weft_cost_model_t* model, const int64_t* block, int32_t chain_length) {
  const weft_kernel_t* kernel = model->kernel;
  if (chain_length <= 1 || kernel->reduce_operation < 0) return 0;
  int32_t accumulator = kernel->operation[kernel->reduce_operation].destination;
  return weft_machine_wavelets(model->machine, kernel->buffer[accumulator].dtype,
                               buffer_elements(kernel, accumulator, block));
}

static int64_t arriving_wavelets(const weft_cost_model_t* model, const int64_t* block) {
  int64_t wavelets = 0;
  for (size_t i = 0; i < model->arrivals.count; ++i) {
    const weft_cost_arrival_t* arrival = &model->arrivals.data[i];
    const weft_buffer_t* buffer = &model->kernel->buffer[arrival->buffer];
    int64_t elements = 1;
    for (int32_t r = 0; r < buffer->rank; ++r)
      elements *= weft_min_i64(arrival->landing.extent[r], row_extent(model->kernel, &buffer->row[r], block));
    wavelets += weft_machine_wavelets(model->machine, buffer->dtype, elements);
  }
  return wavelets;
}

static int64_t leaving_wavelets(const weft_cost_model_t* model, const int64_t* block) {
  const weft_kernel_t* kernel = model->kernel;
  int64_t wavelets = 0;
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    wavelets += model->buffer[b].consumers *
                weft_machine_wavelets(model->machine, kernel->buffer[b].dtype, buffer_elements(kernel, b, block));
  return wavelets;
}

// Streamed buffers count `depth` times.
static int64_t tile_bytes(const weft_cost_model_t* model, const int64_t* block, int32_t depth) {
  const weft_kernel_t* kernel = model->kernel;
  int64_t bytes = model->code_bytes + 8;
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    int64_t size = buffer_elements(kernel, b, block) * (int64_t)weft_dtype_size(kernel->buffer[b].dtype);
    bytes += weft_ceil_div(size, 8) * 8 * (model->buffer[b].streamed ? depth : 1);
  }
  return bytes;
}

void weft_cost_evaluate(const weft_cost_model_t* model, const int64_t* block, int32_t chain_length,
                        weft_alternative_t* inout_alternative) {
  const weft_machine_t* machine = model->machine;
  weft_alternative_t* a = inout_alternative;
  // A chain is cut-through: the accumulators pass once, and each hop adds its latency: out by the ramp, over the link,
  // in by the ramp, and a cycle to combine (Luczynski et al., HPDC 2024). From step to step a tile sees only its own
  // hop, as each of them begins that much later than the one before.
  int64_t compute = compute_cycles(model, block) + feedback_cycles(model, block);
  int64_t chain = chain_wavelets(model, block, chain_length);
  int64_t hop = 2 * machine->ramp_cycles + machine->hop_cycles + 1;
  a->chain_cycles = chain > 0 ? chain + hop * (chain_length - 1) : 0;
  a->cycles = compute + a->chain_cycles;
  a->stream_cycles = weft_max_i64(arriving_wavelets(model, block), leaving_wavelets(model, block));
  // Two instructions for each transfer: it is waited for, and posted.
  int64_t core = compute + 2 * model->transfers * machine->issue_cycles;
  if (chain > 0) core += chain + machine->issue_cycles + hop;
  int64_t doubled_bytes = tile_bytes(model, block, DEPTH);
  a->doubled = doubled_bytes <= machine->tile_memory;
  a->bytes = a->doubled ? doubled_bytes : tile_bytes(model, block, 1);
  a->step_cycles = a->doubled ? weft_max_i64(core, a->stream_cycles) : core + a->stream_cycles;
}

weft_status_t weft_cost_alternative(const weft_fabric_t* fabric, int32_t kernel, const weft_machine_t* machine,
                                    weft_alternative_t* inout_alternative) {
  const weft_kernel_t* k = &fabric->kernel[kernel];
  const weft_split_t* split = &inout_alternative->split;
  int64_t block[WEFT_MAX_DIMS] = {0};
  weft_cost_model_t model;
  WEFT_RETURN_IF_ERROR(weft_cost_model_initialize(fabric, kernel, machine, &model));
  for (int32_t d = 0; d < k->dim_count; ++d) block[d] = weft_split_block(k, split, d);
  inout_alternative->gy = weft_split_grid(split->y, split->y_count);
  inout_alternative->gx = weft_split_grid(split->x, split->x_count);
  weft_cost_evaluate(&model, block, weft_split_chain_length(k, split), inout_alternative);
  weft_cost_model_deinitialize(&model);
  return weft_ok();
}
