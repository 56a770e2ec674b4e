// A tile's core: runs its program on its own clock until something has to arrive or leave first.
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

enum { CONTROL_INSTRUCTIONS = 1024 };

weft_status_t weft_sim_core_wake(weft_sim_t* sim, int32_t slot, int64_t time) {
  sim->slot[slot].wait = WEFT_SIM_RUNS;
  return weft_sim_queue_push(sim, time, WEFT_SIM_EVENT_RESUME, slot);
}

void weft_sim_core_account(weft_sim_t* sim, int32_t slot, const weft_instruction_t* i, int64_t points) {
  weft_op_class_e op_class = weft_op_class(i->op);
  bool chain = i->opcode == WEFT_OPCODE_CHAIN;
  double bytes = (double)weft_dtype_size(chain ? i->dtype : i->destination_dtype);
  for (int32_t o = 1; !chain && o <= weft_op_source_count(i->op); ++o)
    if (!(i->flags >> (o - 1) & 1))
      bytes += (double)weft_dtype_size(weft_sim_operand_dtype(i->op, i->dtype, i->destination_dtype, o));
  if (i->op == WEFT_OP_MLA) bytes += (double)weft_dtype_size(i->destination_dtype); // it is read, too
  double point = sim->machine.energy.op[op_class][i->dtype] + bytes / 4 * sim->machine.energy.sram_word;
  sim->slot[slot].energy += (double)points * point;
  sim->report.operations[op_class] += points;
}

// The element that an immediate stands for.
static void store_immediate(int32_t word, weft_dtype_e dtype, weft_dtype_e operand, uint8_t out_element[8]) {
  if (operand == WEFT_DTYPE_BOOL) {
    out_element[0] = word != 0;
  } else if (weft_dtype_is_float(dtype)) {
    float value;
    memcpy(&value, &word, sizeof(value));
    if (dtype == WEFT_DTYPE_F32)
      memcpy(out_element, &value, sizeof(value));
    else
      weft_dtype_store(dtype, (double)value, out_element);
  } else {
    int64_t value = word;
    memcpy(out_element, &value, sizeof(value));
  }
}

static weft_status_t give_tensor(weft_sim_t* sim, int32_t slot, const weft_instruction_t* i, int64_t step,
                                 int64_t trip) {
  weft_sim_job_t* job;
  WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_NEST, slot, &job));
  weft_sim_nest_t* nest = &job->nest;
  nest->op = i->op;
  nest->dtype = i->dtype;
  nest->destination_dtype = i->destination_dtype;
  nest->loop_count = i->loop_count;
  nest->operands = 1 + weft_op_source_count(i->op);
  for (int32_t l = 0; l < i->loop_count; ++l) nest->extent[l] = i->loop[l].extent;
  for (int32_t o = 0; o < nest->operands; ++o) {
    bool immediate = o > 0 && (i->flags >> (o - 1) & 1);
    for (int32_t l = 0; l < i->loop_count; ++l) nest->stride[o][l] = immediate ? 0 : i->loop[l].stride[o];
    if (immediate) {
      weft_dtype_e operand = weft_sim_operand_dtype(i->op, i->dtype, i->destination_dtype, o);
      store_immediate(i->base[o], i->dtype, operand, job->immediate[o]);
      nest->pointer[o] = job->immediate[o];
      continue;
    }
    int64_t base = weft_isa_address(i, o, step) + trip * i->advance[o];
    nest->pointer[o] = weft_sim_address(sim, slot, base, 0, 0, step);
    if (!nest->pointer[o]) return weft_error(INTERNAL, "%s: no memory for an operand", weft_sim_place(sim, slot).text);
  }
  return weft_sim_work_submit(sim);
}

// Nothing but constants goes into memory that nobody has used yet: the tile waits with its memory for something that is
// worth it. Such fills are the first of its program, each once.
static bool may_defer(const weft_sim_t* sim, int32_t slot_index, const weft_instruction_t* i) {
  const weft_sim_slot_t* slot = &sim->slot[slot_index];
  return i->op == WEFT_OP_MOV && (i->flags & WEFT_ISA_FLAG_IMMEDIATE0) && !slot->memory && slot->step == 0 &&
         slot->trip == 0 && !weft_sim_is_host(sim, slot_index);
}

weft_status_t weft_sim_core_fill(weft_sim_t* sim, int32_t slot, int64_t count) {
  for (uint32_t pc = 0; count > 0;) {
    weft_instruction_t instruction;
    WEFT_RETURN_IF_ERROR(weft_sim_fetch(sim, slot, pc, &instruction));
    pc += (uint32_t)instruction.length;
    if (instruction.opcode != WEFT_OPCODE_TENSOR) continue;
    WEFT_RETURN_IF_ERROR(give_tensor(sim, slot, &instruction, 0, 0));
    --count;
  }
  return weft_ok();
}

static weft_status_t run_tensor(weft_sim_t* sim, int32_t slot, const weft_instruction_t* i) {
  int64_t points = weft_sim_loop_points(i), cycles = weft_machine_op_cycles(&sim->machine, i->op, i->dtype, points);
  if (cycles > WEFT_SIM_MAX_CYCLES)
    return weft_error(INVALID_INPUT, "%s: %s takes more than 2^60 cycles", weft_sim_place(sim, slot).text,
                      weft_op_mnemonic(i->op));
  sim->slot[slot].time += cycles;
  sim->slot[slot].busy += cycles;
  weft_sim_core_account(sim, slot, i, points);
  if (may_defer(sim, slot, i)) {
    ++sim->slot[slot].fills;
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(weft_sim_memory_ready(sim, slot));
  return give_tensor(sim, slot, i, sim->slot[slot].step, sim->slot[slot].trip);
}

// True when the tile has to wait for a source (or sink) of its own; with `since`, moves its clock to when that was
// over.
static bool is_blocked(weft_sim_slot_t* slot, bool busy, weft_sim_wait_e wait, int32_t index, int64_t since) {
  if (busy) {
    slot->wait = wait;
    slot->waits_for = index;
  } else {
    slot->time = weft_max_i64(slot->time, since);
  }
  return busy;
}

static bool waits_for_source(weft_sim_t* sim, weft_sim_slot_t* slot, int32_t index) {
  if (index < 0) return false;
  const weft_sim_source_t* source = &sim->source[index];
  return is_blocked(slot, source->pending, WEFT_SIM_WAITS_SEND, index, source->free_time);
}

// Until so many of its receives are complete, all of the last `depth` or fewer.
static bool waits_for_sink(weft_sim_t* sim, weft_sim_slot_t* slot, int32_t index, int64_t until) {
  weft_sim_sink_t* sink = &sim->sink[index];
  slot->waits_until = until;
  int64_t since = until > 0 ? *weft_sim_receive_time(sink, until - 1) : 0;
  if (is_blocked(slot, sink->done < until, WEFT_SIM_WAITS_RECV, index, since)) return true;
  sink->waited = weft_max_i64(sink->waited, until);
  return false;
}

// WAIT_RECV: the oldest that is not waited for; a repeating one as a whole.
static bool waits_for_oldest(weft_sim_t* sim, weft_sim_slot_t* slot, int32_t index) {
  if (index < 0 || sim->sink[index].waited == sim->sink[index].posts) return false;
  const weft_sim_sink_t* sink = &sim->sink[index];
  return waits_for_sink(sim, slot, index, sink->repeats ? sink->posts : sink->waited + 1);
}

static weft_status_t begin_chain(weft_sim_t* sim, int32_t slot_index, const weft_instruction_t* i) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  int32_t sink = weft_sim_find_sink(sim, slot_index, i->colour);
  if (waits_for_sink(sim, slot, sink, sim->sink[sink].posts)) return weft_ok();
  if (i->out_colour >= 0 && waits_for_source(sim, slot, weft_sim_find_source(sim, slot_index, i->out_colour)))
    return weft_ok();
  slot->time += sim->machine.issue_cycles;
  slot->busy += sim->machine.issue_cycles;
  slot->in_chain = true;
  slot->wait = WEFT_SIM_WAITS_RECV;
  slot->waits_for = sink;
  slot->waits_until = sim->sink[sink].posts + 1;
  return weft_sim_post_recv(sim, sink, i, slot->pc);
}

static void end_chain(weft_sim_t* sim, int32_t slot_index, const weft_instruction_t* i) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  slot->in_chain = false;
  if (i->out_colour >= 0)
    (void)waits_for_source(sim, slot, weft_sim_find_source(sim, slot_index, i->out_colour));
  else
    (void)waits_for_oldest(sim, slot, weft_sim_find_sink(sim, slot_index, i->colour));
}

// Runs one instruction and moves pc on, or leaves the slot waiting with pc where it was.
static weft_status_t run_instruction(weft_sim_t* sim, int32_t slot_index, const weft_instruction_t* i) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  int32_t issue = sim->machine.issue_cycles, source, sink;
  switch (i->opcode) {
  case WEFT_OPCODE_HALT:
    slot->wait = WEFT_SIM_HALTED;
    return weft_sim_memory_release(sim, slot_index);
  case WEFT_OPCODE_STEPS:
    slot->step = 0;
    slot->body = slot->pc + (uint32_t)i->length;
    break;
  case WEFT_OPCODE_END_STEPS:
    if (++slot->step < sim->steps) {
      slot->pc = slot->body;
      return weft_ok();
    }
    slot->step = 0;
    break;
  case WEFT_OPCODE_LOOP:
    slot->trip = 0;
    slot->trips = i->trips;
    slot->loop = slot->pc + (uint32_t)i->length;
    break;
  case WEFT_OPCODE_END_LOOP:
    if (++slot->trip < slot->trips) {
      slot->pc = slot->loop;
      return weft_ok();
    }
    slot->trip = 0;
    break;
  case WEFT_OPCODE_TENSOR:
    WEFT_RETURN_IF_ERROR(run_tensor(sim, slot_index, i));
    break;
  case WEFT_OPCODE_SEND:
    source = weft_sim_find_source(sim, slot_index, i->colour);
    if (sim->source[source].pending) {
      (void)waits_for_source(sim, slot, source);
      return weft_ok();
    }
    slot->time += issue;
    WEFT_RETURN_IF_ERROR(weft_sim_post_send(sim, source, i, slot->pc));
    break;
  case WEFT_OPCODE_RECV:
    sink = weft_sim_find_sink(sim, slot_index, i->colour);
    if (waits_for_sink(sim, slot, sink, sim->sink[sink].posts)) return weft_ok();
    slot->time += issue;
    WEFT_RETURN_IF_ERROR(weft_sim_post_recv(sim, sink, i, slot->pc));
    break;
  case WEFT_OPCODE_AGAIN:
    sink = weft_sim_find_sink(sim, slot_index, i->colour);
    if (waits_for_sink(sim, slot, sink, sim->sink[sink].posts - sim->sink[sink].depth + 1)) return weft_ok();
    slot->time += issue;
    WEFT_RETURN_IF_ERROR(weft_sim_post_again(sim, sink));
    break;
  case WEFT_OPCODE_CHAIN:
    if (!slot->in_chain) return begin_chain(sim, slot_index, i);
    end_chain(sim, slot_index, i);
    break;
  case WEFT_OPCODE_WAIT_SEND:
    if (waits_for_source(sim, slot, weft_sim_find_source(sim, slot_index, i->colour))) return weft_ok();
    slot->time += issue;
    break;
  case WEFT_OPCODE_WAIT_RECV:
    if (waits_for_oldest(sim, slot, weft_sim_find_sink(sim, slot_index, i->colour))) return weft_ok();
    slot->time += issue;
    break;
  case WEFT_OPCODE_COUNT:
    break;
  }
  bool transfers = i->opcode >= WEFT_OPCODE_SEND && i->opcode <= WEFT_OPCODE_WAIT_RECV;
  if ((transfers && i->opcode != WEFT_OPCODE_CHAIN) || i->opcode == WEFT_OPCODE_AGAIN) slot->busy += issue;
  slot->pc += (uint32_t)i->length;
  ++sim->report.instructions;
  slot->energy += sim->machine.energy.instruction;
  return weft_ok();
}

weft_status_t weft_sim_core_run(weft_sim_t* sim, int32_t slot_index) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  for (int64_t count = 1; slot->wait == WEFT_SIM_RUNS; ++count) {
    weft_instruction_t instruction;
    if (count % CONTROL_INSTRUCTIONS == 0) WEFT_RETURN_IF_ERROR(weft_control_check(sim->control, "simulate"));
    WEFT_RETURN_IF_ERROR(weft_sim_fetch(sim, slot_index, slot->pc, &instruction));
    WEFT_RETURN_IF_ERROR(run_instruction(sim, slot_index, &instruction));
    if (slot->time > WEFT_SIM_MAX_CYCLES)
      return weft_error(INVALID_INPUT, "%s runs for more than 2^60 cycles", weft_sim_place(sim, slot_index).text);
  }
  return weft_ok();
}
