// Streams at run time: when a segment may start, what it carries, and what is due once a step of a stream is through.
// A segment starts when its send is posted, the segments before it are through the root, and every sink has posted its
// receive for this step. The elements of a step are collected, and handed to the sinks with the last segment: until
// their receives are complete nobody looks.
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "runtime-sim/internal.h"

weft_status_t weft_sim_stream_consider(weft_sim_t* sim, int32_t index) {
  weft_sim_stream_t* stream = &sim->stream[index];
  if (stream->launching || stream->posted_sinks < stream->sink_count) return weft_ok();
  const weft_sim_source_t* source = &sim->source[stream->first_source + stream->next_source];
  if (!source->pending) return weft_ok();
  int64_t time = weft_max_i64(source->post_time, stream->sinks_time);
  time = weft_max_i64(time, weft_sim_transit_earliest(sim, stream, source));
  stream->launching = true;
  return weft_sim_queue_push(sim, time, WEFT_SIM_EVENT_LAUNCH, index);
}

weft_status_t weft_sim_post_send(weft_sim_t* sim, int32_t index, const weft_instruction_t* instruction, uint32_t pc) {
  weft_sim_source_t* source = &sim->source[index];
  source->pending = true;
  source->staged = false;
  source->repeats = (instruction->flags & WEFT_ISA_FLAG_REPEAT) != 0;
  source->post_time = sim->slot[source->slot].time;
  source->pc = pc;
  source->step = sim->slot[source->slot].step;
  return weft_sim_stream_consider(sim, source->stream);
}

static weft_status_t compile_walk(weft_sim_t* sim, weft_sim_sink_t* sink, const weft_instruction_t* recv, uint32_t pc) {
  if (sink->walk_pc == pc) return weft_ok();
  sink->walk_pc = UINT32_MAX;
  int64_t size;
  int32_t io;
  weft_sim_address_exists(sim, sink->slot, recv->base[0], 0, 0, &size, &io);
  weft_status_t status = weft_sim_walk_cache_get(&sim->walks, recv, size / (int64_t)weft_dtype_size(recv->dtype),
                                                 sim->control, &sink->walk);
  if (status)
    return weft_status_annotate(status, "receive of %s on colour %d", weft_sim_place(sim, sink->slot).text,
                                sink->colour);
  sink->walk_pc = pc;
  sink->base = recv->base[0];
  sink->ring = recv->flags & WEFT_ISA_FLAG_RING ? recv->ring[0] : (weft_isa_ring_t){0, 1};
  return weft_ok();
}

static weft_status_t post(weft_sim_t* sim, weft_sim_sink_t* sink) {
  int64_t time = sim->slot[sink->slot].time;
  bool first = !weft_sim_is_posted(sink);
  *weft_sim_receive_time(sink, sink->posts) = time;
  sink->posts += sink->repeats ? sim->steps : 1;
  if (!sink->repeats) sink->waited = weft_max_i64(sink->waited, sink->posts - sink->depth); // what is forgotten
  if (!first) return weft_ok(); // its turn comes when those before it are complete
  weft_sim_stream_t* stream = &sim->stream[sink->stream];
  ++stream->posted_sinks;
  stream->sinks_time = weft_max_i64(stream->sinks_time, time);
  return weft_sim_stream_consider(sim, sink->stream);
}

weft_status_t weft_sim_post_recv(weft_sim_t* sim, int32_t index, const weft_instruction_t* instruction, uint32_t pc) {
  weft_sim_sink_t* sink = &sim->sink[index];
  sink->chained = instruction->opcode == WEFT_OPCODE_CHAIN;
  if (sink->chained)
    sink->chain_elements = weft_sim_loop_points(instruction);
  else
    WEFT_RETURN_IF_ERROR(compile_walk(sim, sink, instruction, pc));
  sink->repeats = (instruction->flags & WEFT_ISA_FLAG_REPEAT) != 0;
  sink->pc = pc;
  sink->step = sim->slot[sink->slot].step;
  return post(sim, sink);
}

weft_status_t weft_sim_post_again(weft_sim_t* sim, int32_t index) {
  weft_sim_sink_t* sink = &sim->sink[index];
  sink->chained = sink->repeats = false;
  sink->pc = sink->walk_pc;
  return post(sim, sink);
}

static void move_loops(const weft_instruction_t* instruction, int32_t operand, weft_sim_nest_t* nest) {
  for (int32_t l = 0; l < nest->loop_count; ++l) nest->stride[operand][l] = instruction->loop[l].stride[0];
}

static void packed_loops(const weft_instruction_t* instruction, int32_t operand, weft_sim_nest_t* nest) {
  int64_t stride = (int64_t)weft_dtype_size(instruction->dtype);
  for (int32_t l = nest->loop_count - 1; l >= 0; --l) {
    nest->stride[operand][l] = stride;
    stride *= instruction->loop[l].extent;
  }
}

static void begin_nest(const weft_instruction_t* instruction, weft_op_e op, weft_sim_nest_t* nest) {
  nest->op = op;
  nest->dtype = nest->destination_dtype = instruction->dtype;
  nest->loop_count = instruction->loop_count;
  nest->operands = 1 + weft_op_source_count(op);
  for (int32_t l = 0; l < nest->loop_count; ++l) nest->extent[l] = instruction->loop[l].extent;
}

static weft_status_t give_copy(weft_sim_t* sim, weft_sim_buffer_t* from, size_t bytes, weft_sim_buffer_t* to,
                               size_t offset) {
  weft_sim_job_t* job;
  WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_COPY, WEFT_SIM_NONE, &job));
  job->needs = from;
  job->writes = to;
  job->move.source = from->data;
  job->move.target = to->data + offset;
  job->move.bytes = bytes;
  return weft_sim_work_submit(sim);
}

static int64_t expected_elements(const weft_sim_sink_t* sink) {
  return sink->chained ? sink->chain_elements : sink->walk->elements;
}

// Room for `bytes` behind the first `used`. What its sinks expect is only a hint: an image may say anything.
static weft_status_t make_room(weft_sim_t* sim, weft_sim_stream_t* stream, size_t used, size_t bytes) {
  enum { MOST_AHEAD = 1 << 20 };
  if (stream->data && stream->data->capacity - used >= bytes) return weft_ok();
  int64_t expected = weft_min_i64(expected_elements(&sim->sink[stream->first_sink]), MOST_AHEAD);
  size_t capacity = (size_t)expected * weft_dtype_size((weft_dtype_e)stream->dtype);
  if (capacity < used + bytes) capacity = stream->data ? 2 * (used + bytes) : used + bytes;
  weft_sim_buffer_t *grown, *before = stream->data;
  WEFT_RETURN_IF_ERROR(weft_sim_buffer_new(sim, capacity, &grown));
  stream->data = grown;
  if (!before) return weft_ok();
  weft_status_t status = give_copy(sim, before, used, grown, 0);
  return weft_status_join(status, weft_sim_work_release(sim, before));
}

static weft_status_t append_staged(weft_sim_t* sim, weft_sim_stream_t* stream, weft_sim_source_t* source, size_t used,
                                   size_t bytes) {
  weft_sim_buffer_t* staged = source->data;
  source->data = NULL;
  if (!stream->data) { // the stream's first: it takes the whole buffer over
    stream->data = staged;
    return weft_ok();
  }
  weft_status_t status = make_room(sim, stream, used, bytes);
  if (!status) status = give_copy(sim, staged, bytes, stream->data, used);
  return weft_status_join(status, weft_sim_work_release(sim, staged));
}

// Appends what the source sends to the stream's data.
static weft_status_t collect(weft_sim_t* sim, weft_sim_stream_t* stream, weft_sim_source_t* source,
                             int64_t* out_elements) {
  weft_instruction_t instruction;
  int64_t size = (int64_t)weft_dtype_size((weft_dtype_e)stream->dtype);
  if (!source->staged) WEFT_RETURN_IF_ERROR(weft_sim_fetch(sim, source->slot, source->pc, &instruction));
  int64_t elements = source->staged ? source->data_elements : weft_sim_loop_points(&instruction);
  if (elements > WEFT_SIM_MAX_SEND_BYTES / size - stream->elements)
    return weft_error(INVALID_INPUT, "%s, colour %d: the stream has more than %" PRId64 " bytes a step",
                      weft_sim_place(sim, source->slot).text, source->colour, WEFT_SIM_MAX_SEND_BYTES);
  size_t used = (size_t)(stream->elements * size), bytes = (size_t)(elements * size);
  *out_elements = elements;
  if (source->staged) return append_staged(sim, stream, source, used, bytes);
  WEFT_RETURN_IF_ERROR(make_room(sim, stream, used, bytes));
  WEFT_RETURN_IF_ERROR(weft_sim_memory_ready(sim, source->slot));
  weft_sim_job_t* job;
  WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_NEST, source->slot, &job));
  begin_nest(&instruction, WEFT_OP_MOV, &job->nest);
  move_loops(&instruction, 1, &job->nest);
  packed_loops(&instruction, 0, &job->nest);
  job->writes = stream->data;
  job->nest.pointer[0] = stream->data->data + used;
  job->nest.pointer[1] =
      weft_sim_address(sim, source->slot, weft_isa_address(&instruction, 0, source->step), 0, 0, source->step);
  if (!job->nest.pointer[1])
    return weft_error(INTERNAL, "%s: no memory to send from", weft_sim_place(sim, source->slot).text);
  sim->slot[source->slot].energy += (double)bytes / 4 * sim->machine.energy.sram_word;
  return weft_sim_work_submit(sim);
}

static weft_status_t count_mismatch(const weft_sim_t* sim, const weft_sim_stream_t* stream, const weft_sim_sink_t* sink,
                                    int64_t expected) {
  const weft_sim_source_t* source = &sim->source[stream->first_source];
  return weft_error(INVALID_INPUT,
                    "%s expects %" PRId64 " elements on colour %d, the stream of %d sources that starts at %s, colour "
                    "%d, has %" PRId64,
                    weft_sim_place(sim, sink->slot).text, expected, sink->colour, stream->source_count,
                    weft_sim_place(sim, source->slot).text, source->colour, stream->elements);
}

static weft_status_t deliver_recv(weft_sim_t* sim, const weft_sim_stream_t* stream, weft_sim_sink_t* sink,
                                  int64_t last) {
  weft_sim_slot_t* slot = &sim->slot[sink->slot];
  const weft_sim_walk_t* walk = sink->walk;
  if (walk->elements != stream->elements) return count_mismatch(sim, stream, sink, walk->elements);
  weft_dtype_e dtype = (weft_dtype_e)stream->dtype;
  size_t size = weft_dtype_size(dtype);
  if (walk->taken > 0 && !weft_sim_memory_is_over(sim, sink->slot)) {
    WEFT_RETURN_IF_ERROR(weft_sim_memory_ready(sim, sink->slot));
    int64_t address = sink->base + sink->done % sink->ring.depth * sink->ring.stride;
    uint8_t* memory = weft_sim_address(sim, sink->slot, address, 0, 0, sink->step);
    if (!memory) return weft_error(INTERNAL, "%s: no memory to receive in", weft_sim_place(sim, sink->slot).text);
    weft_sim_job_t* job;
    WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_STORE, sink->slot, &job));
    job->needs = stream->data;
    job->move.source = stream->data->data;
    job->move.target = memory;
    job->move.bytes = size;
    job->move.walk = walk;
    WEFT_RETURN_IF_ERROR(weft_sim_work_submit(sim));
  }
  slot->energy += (double)walk->taken * (double)size / 4 * sim->machine.energy.sram_word;
  if (!weft_sim_is_host(sim, sink->slot)) { // streams that come at the same time share the ramp
    int64_t taken = weft_machine_wavelets(&sim->machine, dtype, walk->taken);
    slot->ramp_time = weft_max_i64(slot->ramp_time, sink->first_time) + taken;
    last = weft_max_i64(last, slot->ramp_time);
  }
  *weft_sim_receive_time(sink, sink->done) = last;
  return weft_ok();
}

// out-stream or memory <- op(in-stream, memory), one wavelet a cycle behind the arriving ones.
static weft_status_t deliver_chain(weft_sim_t* sim, const weft_sim_stream_t* stream, weft_sim_sink_t* sink,
                                   int64_t last) {
  weft_sim_slot_t* slot = &sim->slot[sink->slot];
  weft_instruction_t chain;
  WEFT_RETURN_IF_ERROR(weft_sim_fetch(sim, sink->slot, sink->pc, &chain));
  int64_t points = weft_sim_loop_points(&chain), size = (int64_t)weft_dtype_size(chain.dtype);
  if (points != stream->elements) return count_mismatch(sim, stream, sink, points);
  weft_sim_source_t* out = NULL;
  WEFT_RETURN_IF_ERROR(weft_sim_memory_ready(sim, sink->slot));
  uint8_t* memory = weft_sim_address(sim, sink->slot, weft_isa_address(&chain, 0, slot->step), 0, 0, 0);
  if (!memory) return weft_error(INTERNAL, "%s: no memory for a chain", weft_sim_place(sim, sink->slot).text);
  if (chain.out_colour >= 0) {
    out = &sim->source[weft_sim_find_source(sim, sink->slot, chain.out_colour)];
    WEFT_RETURN_IF_ERROR(weft_sim_buffer_new(sim, (size_t)(points * size), &out->data));
  }
  weft_sim_job_t* job;
  WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_NEST, sink->slot, &job));
  begin_nest(&chain, chain.op, &job->nest);
  packed_loops(&chain, 1, &job->nest);
  move_loops(&chain, 2, &job->nest);
  if (out)
    packed_loops(&chain, 0, &job->nest);
  else
    move_loops(&chain, 0, &job->nest);
  job->needs = stream->data;
  job->writes = out ? out->data : NULL;
  job->nest.pointer[0] = out ? out->data->data : memory;
  job->nest.pointer[1] = stream->data->data;
  job->nest.pointer[2] = memory;
  WEFT_RETURN_IF_ERROR(weft_sim_work_submit(sim));
  weft_sim_core_account(sim, sink->slot, &chain, points);
  int64_t wavelets = weft_machine_wavelets(&sim->machine, chain.dtype, points);
  int64_t start = weft_max_i64(slot->time, sink->first_time) + 1;
  slot->busy += wavelets;
  *weft_sim_receive_time(sink, sink->done) = weft_max_i64(start + wavelets, last + 1);
  if (!out) return weft_ok();
  out->pending = out->staged = true;
  out->repeats = false;
  out->post_time = start;
  out->end_time = last + 1;
  out->data_elements = points;
  out->pc = sink->pc;
  slot->wait = WEFT_SIM_WAITS_SEND;
  slot->waits_for = (int32_t)(out - sim->source);
  return weft_sim_stream_consider(sim, out->stream);
}

static weft_status_t deliver(weft_sim_t* sim, weft_sim_stream_t* stream, int32_t index,
                             const weft_sim_transit_t* transit) {
  weft_sim_sink_t* sink = &sim->sink[index];
  int64_t last = weft_sim_transit_arrival(sim, sink) + transit->wavelets + transit->tail;
  WEFT_RETURN_IF_ERROR(sink->chained ? deliver_chain(sim, stream, sink, last) : deliver_recv(sim, stream, sink, last));
  int64_t complete = *weft_sim_receive_time(sink, sink->done++);
  if (sink->repeats) ++sink->step;
  if (weft_sim_is_host(sim, sink->slot)) {
    sim->report.cycles = weft_max_i64(sim->report.cycles, complete);
    if (sink->done == 1) sim->report.first_cycles = weft_max_i64(sim->report.first_cycles, complete);
  }
  const weft_sim_slot_t* slot = &sim->slot[sink->slot];
  if (slot->wait != WEFT_SIM_WAITS_RECV || slot->waits_for != index || sink->done < slot->waits_until) return weft_ok();
  return weft_sim_core_wake(sim, sink->slot, complete);
}

static weft_status_t complete_step(weft_sim_t* sim, weft_sim_stream_t* stream, const weft_sim_transit_t* transit) {
  // First, so that what a chain sends on as a source of this very stream waits for the next step.
  stream->next_source = stream->posted_sinks = 0;
  stream->sinks_time = 0;
  for (int32_t s = 0; s < stream->sink_count; ++s)
    WEFT_RETURN_IF_ERROR(deliver(sim, stream, stream->first_sink + s, transit));
  stream->elements = 0;
  weft_sim_buffer_t* data = stream->data;
  stream->data = NULL;
  WEFT_RETURN_IF_ERROR(weft_sim_work_release(sim, data));
  for (int32_t s = 0; s < stream->sink_count; ++s) {
    const weft_sim_sink_t* sink = &sim->sink[stream->first_sink + s];
    if (!weft_sim_is_posted(sink)) continue;
    ++stream->posted_sinks;
    if (sink->repeats) continue; // all of its steps were posted at once
    stream->sinks_time = weft_max_i64(stream->sinks_time, *weft_sim_receive_time(sink, sink->done));
  }
  weft_sim_progress(sim);
  return weft_ok();
}

static weft_status_t release_source(weft_sim_t* sim, int32_t index, int64_t free_time) {
  weft_sim_source_t* source = &sim->source[index];
  source->free_time = free_time;
  ++source->step;
  source->pending = source->repeats && source->step < sim->steps;
  source->post_time = free_time;
  const weft_sim_slot_t* slot = &sim->slot[source->slot];
  if (source->pending || slot->wait != WEFT_SIM_WAITS_SEND || slot->waits_for != index) return weft_ok();
  return weft_sim_core_wake(sim, source->slot, free_time);
}

weft_status_t weft_sim_stream_launch(weft_sim_t* sim, int32_t index) {
  weft_sim_stream_t* stream = &sim->stream[index];
  int32_t source_index = stream->first_source + stream->next_source;
  weft_sim_source_t* source = &sim->source[source_index];
  int64_t elements = 0;
  stream->launching = false;
  WEFT_RETURN_IF_ERROR(collect(sim, stream, source, &elements));
  stream->elements += elements;
  weft_sim_transit_t transit = {
      .start = sim->now, .wavelets = weft_machine_wavelets(&sim->machine, (weft_dtype_e)stream->dtype, elements)};
  if (source->staged) transit.tail = weft_max_i64(0, source->end_time - (transit.start + transit.wavelets));
  weft_sim_transit(sim, stream, source, &transit);
  for (int32_t s = 0; stream->next_source == 0 && s < stream->sink_count; ++s) {
    weft_sim_sink_t* sink = &sim->sink[stream->first_sink + s];
    sink->first_time = weft_sim_transit_arrival(sim, sink);
  }
  WEFT_RETURN_IF_ERROR(release_source(sim, source_index, transit.free));
  if (++stream->next_source == stream->source_count) WEFT_RETURN_IF_ERROR(complete_step(sim, stream, &transit));
  return weft_sim_stream_consider(sim, index);
}
