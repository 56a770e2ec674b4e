// Programs as untrusted input: everything that an instruction names is there before a cycle runs.
#include <inttypes.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

typedef struct verifier_t {
  weft_sim_t* sim;
  int32_t slot;
  bool in_body, had_body, halted;
  int64_t trips;     // of the loop that is open, or 0
  uint64_t receives; // bit per colour: a RECV that AGAIN may post again came before
} verifier_t;

static weft_status_t verify_range(const verifier_t* v, const char* what, int64_t base, int64_t lo, int64_t hi) {
  int64_t size;
  int32_t io;
  if (weft_sim_address_exists(v->sim, v->slot, base, lo, hi, &size, &io)) return weft_ok();
  if (!weft_sim_is_host(v->sim, v->slot))
    return weft_error(INVALID_INPUT, "%s: bytes %" PRId64 "..%" PRId64 ", the tile has %" PRId64, what, base + lo,
                      base + hi - 1, size);
  if (io < 0) return weft_error(INVALID_INPUT, "%s: address %" PRId64 " belongs to no input or output", what, base);
  return weft_error(INVALID_INPUT, "%s: bytes %" PRId64 "..%" PRId64 " from '%s' on, which has %" PRId64, what,
                    base + lo - (int64_t)v->sim->image->io[io].address,
                    base + hi - 1 - (int64_t)v->sim->image->io[io].address,
                    weft_image_string(v->sim->image, v->sim->image->io[io].name), size);
}

// The places of a ring lie between its first and its last.
static weft_status_t verify_operand(const verifier_t* v, const weft_instruction_t* i, int32_t operand, const char* what,
                                    int64_t lo, int64_t hi) {
  if (i->flags & WEFT_ISA_FLAG_ADVANCE) { // the first trip or the last is farthest
    int64_t last = (v->trips - 1) * i->advance[operand];
    if (last < -WEFT_SIM_MAX_POINTS || last > WEFT_SIM_MAX_POINTS)
      return weft_error(INVALID_INPUT, "%s: it advances beyond any memory", what);
    lo += last < 0 ? last : 0;
    hi += last > 0 ? last : 0;
  }
  WEFT_RETURN_IF_ERROR(verify_range(v, what, i->base[operand], lo, hi));
  int64_t first = i->base[operand], last = first;
  if (i->flags & WEFT_ISA_FLAG_RING) {
    last = weft_isa_address(i, operand, i->ring[operand].depth - 1);
    WEFT_RETURN_IF_ERROR(verify_range(v, what, last, lo, hi));
  }
  bool writes = operand == 0 && i->opcode != WEFT_OPCODE_SEND;
  weft_sim_memory_use(v->sim, v->slot, (first < last ? first : last) + lo, (first < last ? last : first) + hi, writes);
  return weft_ok();
}

static weft_status_t verify_loops(const verifier_t* v, const weft_instruction_t* i, int32_t operand, weft_dtype_e dtype,
                                  const char* what) {
  int64_t lo, hi;
  // Half of 64 bits leaves room for the base.
  if (!weft_sim_loop_reach(i, operand, (int64_t)weft_dtype_size(dtype), &lo, &hi) || lo < INT64_MIN / 2 ||
      hi > INT64_MAX / 2)
    return weft_error(INVALID_INPUT, "%s: its strides don't fit", what);
  return verify_operand(v, i, operand, what, lo, hi);
}

static weft_status_t verify_points(const weft_instruction_t* i, int64_t* out_points) {
  *out_points = weft_sim_loop_points(i);
  if (*out_points >= 0) return weft_ok();
  return weft_error(INVALID_INPUT, "more than %" PRId64 " points", WEFT_SIM_MAX_POINTS);
}

static weft_status_t verify_tensor(const verifier_t* v, const weft_instruction_t* i) {
  static const char* const OPERANDS[WEFT_SIM_OPERANDS] = {"destination", "source 0", "source 1", "source 2"};
  int64_t points;
  WEFT_RETURN_IF_ERROR(verify_points(i, &points));
  const char* fault = weft_sim_nest_fault(i->op, i->dtype, i->destination_dtype);
  if (fault) return weft_error(INVALID_INPUT, "%s: %s", weft_op_mnemonic(i->op), fault);
  for (int32_t o = 0; o <= weft_op_source_count(i->op); ++o) {
    if (o > 0 && (i->flags >> (o - 1) & 1)) continue;
    weft_dtype_e dtype = weft_sim_operand_dtype(i->op, i->dtype, i->destination_dtype, o);
    WEFT_RETURN_IF_ERROR(verify_loops(v, i, o, dtype, OPERANDS[o]));
  }
  return weft_ok();
}

// All instructions of a stream agree on its type.
static weft_status_t verify_dtype(const verifier_t* v, int32_t stream, int32_t colour, weft_dtype_e dtype) {
  int32_t* known = &v->sim->stream[stream].dtype;
  if (*known == WEFT_SIM_NONE) *known = (int32_t)dtype;
  if (*known == (int32_t)dtype) return weft_ok();
  return weft_error(INVALID_INPUT, "colour %d: %s, another end of the stream has %s", colour, weft_dtype_name(dtype),
                    weft_dtype_name((weft_dtype_e)*known));
}

static weft_status_t verify_source(const verifier_t* v, int32_t colour, weft_dtype_e dtype) {
  int32_t source = weft_sim_find_source(v->sim, v->slot, colour);
  if (source < 0) return weft_error(INVALID_INPUT, "colour %d: no route begins here", colour);
  return verify_dtype(v, v->sim->source[source].stream, colour, dtype);
}

static weft_status_t verify_sink(const verifier_t* v, int32_t colour, weft_dtype_e dtype) {
  int32_t sink = weft_sim_find_sink(v->sim, v->slot, colour);
  if (sink < 0) return weft_error(INVALID_INPUT, "colour %d: no route ends here", colour);
  return verify_dtype(v, v->sim->sink[sink].stream, colour, dtype);
}

static weft_status_t verify_repeat(const verifier_t* v, const weft_instruction_t* i) {
  if (!(i->flags & WEFT_ISA_FLAG_REPEAT)) return weft_ok();
  if (v->in_body) return weft_error(INVALID_INPUT, "it repeats for every step and stands in the body of the steps");
  int64_t size, stride = 0;
  int32_t io;
  weft_sim_address_exists(v->sim, v->slot, i->base[0], 0, 0, &size, &io);
  if (io >= 0) stride = (int64_t)v->sim->image->io[io].step_stride;
  if (i->step_stride == stride) return weft_ok();
  return weft_error(INVALID_INPUT, "step stride %d, from one step to the next there are %" PRId64 " bytes",
                    i->step_stride, stride);
}

static weft_status_t verify_send(const verifier_t* v, const weft_instruction_t* i) {
  int64_t points;
  WEFT_RETURN_IF_ERROR(verify_points(i, &points));
  if (points > WEFT_SIM_MAX_SEND_BYTES / (int64_t)weft_dtype_size(i->dtype))
    return weft_error(INVALID_INPUT, "%" PRId64 " elements in one segment", points);
  WEFT_RETURN_IF_ERROR(verify_source(v, i->colour, i->dtype));
  WEFT_RETURN_IF_ERROR(verify_loops(v, i, 0, i->dtype, "memory"));
  return verify_repeat(v, i);
}

static weft_status_t verify_recv(verifier_t* v, const weft_instruction_t* i) {
  const char* fault = weft_sim_walk_fault(i);
  if (fault) return weft_error(INVALID_INPUT, "%s", fault);
  WEFT_RETURN_IF_ERROR(verify_sink(v, i->colour, i->dtype));
  int64_t lo, hi;
  if (!weft_sim_walk_reach(i, &lo, &hi) || lo < INT64_MIN / 2 || hi > INT64_MAX / 2)
    return weft_error(INVALID_INPUT, "its strides don't fit");
  WEFT_RETURN_IF_ERROR(verify_operand(v, i, 0, "memory", lo, hi));
  weft_sim_sink_t* sink = &v->sim->sink[weft_sim_find_sink(v->sim, v->slot, i->colour)];
  if (i->flags & WEFT_ISA_FLAG_RING && i->ring[0].depth > sink->depth) sink->depth = i->ring[0].depth;
  uint64_t bit = i->colour < WEFT_MAX_COLOURS ? UINT64_C(1) << i->colour : 0;
  v->receives = i->flags & WEFT_ISA_FLAG_REPEAT ? v->receives & ~bit : v->receives | bit;
  return verify_repeat(v, i);
}

static weft_status_t verify_again(const verifier_t* v, const weft_instruction_t* i) {
  if (weft_sim_is_host(v->sim, v->slot)) return weft_error(INVALID_INPUT, "the host posts a receive once");
  if (i->colour < WEFT_MAX_COLOURS && v->receives >> i->colour & 1) return weft_ok();
  return weft_error(INVALID_INPUT, "colour %d: no recv that doesn't repeat comes before", i->colour);
}

static weft_status_t verify_chain(const verifier_t* v, const weft_instruction_t* i) {
  if (weft_sim_is_host(v->sim, v->slot)) return weft_error(INVALID_INPUT, "the host is no part of a chain");
  int64_t points;
  WEFT_RETURN_IF_ERROR(verify_points(i, &points));
  if (points > WEFT_SIM_MAX_SEND_BYTES / (int64_t)weft_dtype_size(i->dtype))
    return weft_error(INVALID_INPUT, "%" PRId64 " elements in one segment", points);
  WEFT_RETURN_IF_ERROR(verify_sink(v, i->colour, i->dtype));
  if (i->out_colour >= 0) WEFT_RETURN_IF_ERROR(verify_source(v, i->out_colour, i->dtype));
  return verify_loops(v, i, 0, i->dtype, "memory");
}

static weft_status_t verify_instruction(verifier_t* v, const weft_instruction_t* i) {
  if (i->flags & WEFT_ISA_FLAG_RING && weft_sim_is_host(v->sim, v->slot))
    return weft_error(INVALID_INPUT, "the host has an area for each step and no rings");
  switch (i->opcode) {
  case WEFT_OPCODE_HALT:
    if (v->in_body) return weft_error(INVALID_INPUT, "in the body of the steps");
    v->halted = true;
    return weft_ok();
  case WEFT_OPCODE_STEPS:
    if (v->had_body) return weft_error(INVALID_INPUT, "a second body of steps");
    v->in_body = v->had_body = true;
    return weft_ok();
  case WEFT_OPCODE_END_STEPS:
    if (!v->in_body) return weft_error(INVALID_INPUT, "no body of steps is open");
    if (v->trips) return weft_error(INVALID_INPUT, "inside a loop");
    v->in_body = false;
    return weft_ok();
  case WEFT_OPCODE_LOOP:
    if (!v->in_body || v->trips) return weft_error(INVALID_INPUT, "outside of the body of the steps, or inside a loop");
    v->trips = i->trips;
    return weft_ok();
  case WEFT_OPCODE_END_LOOP:
    if (!v->trips) return weft_error(INVALID_INPUT, "no loop is open");
    v->trips = 0;
    return weft_ok();
  case WEFT_OPCODE_TENSOR:
    if (i->flags & WEFT_ISA_FLAG_ADVANCE && !v->trips)
      return weft_error(INVALID_INPUT, "it advances outside of a loop");
    return verify_tensor(v, i);
  case WEFT_OPCODE_SEND:
    return verify_send(v, i);
  case WEFT_OPCODE_RECV:
    return verify_recv(v, i);
  case WEFT_OPCODE_CHAIN:
    return verify_chain(v, i);
  case WEFT_OPCODE_AGAIN:
    return verify_again(v, i);
  default:
    return weft_ok(); // a wait on a colour where nothing is ever posted passes
  }
}

static weft_status_t verify_program(weft_sim_t* sim, int32_t slot) {
  verifier_t verifier = {.sim = sim, .slot = slot};
  uint32_t words = sim->image->programs[sim->slot[slot].tile->program].code_words;
  int32_t index = 0;
  for (uint32_t pc = 0; pc < words; ++index) {
    weft_instruction_t instruction;
    weft_status_t status = weft_sim_fetch_first(sim, slot, pc, &instruction);
    const char* name = status ? "?" : weft_opcode_mnemonic(instruction.opcode);
    if (!status && verifier.halted) status = weft_error(INVALID_INPUT, "after the end of the program");
    if (!status) status = verify_instruction(&verifier, &instruction);
    if (status)
      return weft_status_annotate(status, "%s, instruction %d (%s) at word %u", weft_sim_place(sim, slot).text, index,
                                  name, pc);
    pc += (uint32_t)instruction.length;
  }
  if (verifier.halted) return weft_ok();
  return weft_error(INVALID_INPUT, "%s: its program of %d instructions doesn't end with halt",
                    weft_sim_place(sim, slot).text, index);
}

weft_status_t weft_sim_programs_verify(weft_sim_t* sim) {
  WEFT_RETURN_IF_ERROR(weft_sim_templates_build(sim));
  for (int32_t slot = 0; slot < sim->slot_count; ++slot) WEFT_RETURN_IF_ERROR(verify_program(sim, slot));
  for (int32_t s = 0; s < sim->sink_count; ++s)
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)sim->sink[s].depth, &sim->sink[s].time));
  return weft_ok();
}
