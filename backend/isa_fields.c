#include "backend/isa_fields.h"

const char* weft_opcode_mnemonic(weft_opcode_e opcode) {
  static const char* const mnemonics[WEFT_OPCODE_COUNT] = {
#define X(name, mnemonic, text) mnemonic,
      WEFT_OPCODES(X)
#undef X
  };
  return (uint32_t)opcode < WEFT_OPCODE_COUNT ? mnemonics[opcode] : "?";
}

static bool has_loops(weft_opcode_e opcode) {
  return opcode == WEFT_OPCODE_TENSOR || opcode == WEFT_OPCODE_SEND || opcode == WEFT_OPCODE_CHAIN;
}
static bool has_dtype(weft_opcode_e opcode) {
  return has_loops(opcode) || opcode == WEFT_OPCODE_RECV;
}

int32_t weft_isa_spans(const weft_instruction_t* i, weft_isa_span_t out_spans[WEFT_ISA_MAX_SPANS]) {
  int32_t count = 0, operands = weft_isa_operand_count(i);
#define SPAN(field, words)                                                                                             \
  out_spans[count++] = (weft_isa_span_t) {                                                                             \
    (uint16_t)((const uint8_t*)&i->field - (const uint8_t*)i), (uint16_t)(words)                                       \
  }
  switch (i->opcode) {
  case WEFT_OPCODE_TENSOR:
    SPAN(base, operands);
    break;
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_RECV:
    SPAN(colour, 1);
    SPAN(base, 1);
    SPAN(step_stride, 1);
    break;
  case WEFT_OPCODE_CHAIN:
    SPAN(colour, 2); // and out_colour
    SPAN(base, 1);
    break;
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
    SPAN(colour, 1);
    break;
  case WEFT_OPCODE_LOOP:
    SPAN(trips, 1);
    break;
  default:
    break;
  }
  if (i->opcode == WEFT_OPCODE_RECV) out_spans[count++] = (weft_isa_span_t){WEFT_ISA_COUNTS, 1};
  if (has_dtype(i->opcode) && i->flags & WEFT_ISA_FLAG_RING) SPAN(ring, 2 * operands);
  if (has_loops(i->opcode)) {
    if (i->flags & WEFT_ISA_FLAG_ADVANCE) SPAN(advance, operands);
    for (int32_t l = 0; l < i->loop_count; ++l) SPAN(loop[l], 1 + operands);
  }
  if (i->opcode == WEFT_OPCODE_RECV) {
    SPAN(level, 3 * i->level_count);
    SPAN(tensor_dim, 3 * i->tensor_rank);
    SPAN(factor, 5 * i->factor_count);
    SPAN(operand_dim, 4 * i->operand_rank);
  }
#undef SPAN
  return count;
}

int32_t weft_isa_word_offset(const weft_instruction_t* instruction, int32_t word) {
  weft_isa_span_t spans[WEFT_ISA_MAX_SPANS];
  int32_t count = weft_isa_spans(instruction, spans), first = WEFT_ISA_HEADER_WORDS;
  for (int32_t s = 0; s < count; first += spans[s++].count)
    if (word >= first && word < first + spans[s].count)
      return spans[s].offset == WEFT_ISA_COUNTS ? -1 : spans[s].offset + (word - first) * (int32_t)sizeof(int32_t);
  return -1;
}

int64_t weft_isa_address(const weft_instruction_t* i, int32_t operand, int64_t step) {
  int64_t base = i->base[operand];
  return i->flags & WEFT_ISA_FLAG_RING ? base + step % i->ring[operand].depth * i->ring[operand].stride : base;
}

int32_t weft_isa_length(const weft_instruction_t* i) {
  int32_t length = WEFT_ISA_HEADER_WORDS;
  if (i->flags & WEFT_ISA_FLAG_RING) length += 2 * weft_isa_operand_count(i);
  if (i->flags & WEFT_ISA_FLAG_ADVANCE) length += weft_isa_operand_count(i);
  switch (i->opcode) {
  case WEFT_OPCODE_TENSOR:
    return length + weft_isa_operand_count(i) + i->loop_count * (1 + weft_isa_operand_count(i));
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_CHAIN:
    return length + 3 + i->loop_count * 2;
  case WEFT_OPCODE_RECV:
    return length + 4 + 3 * i->level_count + 3 * i->tensor_rank + 5 * i->factor_count + 4 * i->operand_rank;
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
  case WEFT_OPCODE_LOOP:
    return length + 1;
  default:
    return length;
  }
}

static bool within(int32_t value, int32_t maximum) {
  return value >= 0 && value <= maximum;
}

const char* weft_isa_shape_fault(const weft_instruction_t* i) {
  if ((uint32_t)i->opcode >= WEFT_OPCODE_COUNT) return "no such opcode";
  bool tensor = i->opcode == WEFT_OPCODE_TENSOR, chain = i->opcode == WEFT_OPCODE_CHAIN;
  if ((uint32_t)i->op >= WEFT_OP_COUNT) return "no such operation";
  if (!tensor && !chain && i->op) return "an operation where the opcode has none";
  if (chain && !weft_op_is_combiner(i->op)) return "the operation of a chain is no combiner";
  if ((uint32_t)i->dtype >= WEFT_DTYPE_COUNT) return "no such type";
  if (!has_dtype(i->opcode) && i->dtype) return "a type where the opcode has none";
  if ((uint32_t)i->destination_dtype >= WEFT_DTYPE_COUNT) return "no such destination type";
  if (!tensor && i->destination_dtype) return "a destination type where the opcode has none";
  uint8_t flags = 0;
  if (tensor) flags = (uint8_t)((1u << weft_op_source_count(i->op)) - 1); // the immediate flags of its sources
  if (tensor) flags |= WEFT_ISA_FLAG_ADVANCE;
  if (i->opcode == WEFT_OPCODE_SEND || i->opcode == WEFT_OPCODE_RECV) flags = WEFT_ISA_FLAG_REPEAT;
  if (has_dtype(i->opcode)) flags |= WEFT_ISA_FLAG_RING;
  if (i->flags & ~flags) return "a flag that the opcode doesn't have";
  if (i->flags & WEFT_ISA_FLAG_RING && i->flags & WEFT_ISA_FLAG_REPEAT && !tensor) return "it repeats and has a ring";
  if (!within(i->loop_count, has_loops(i->opcode) ? WEFT_ISA_MAX_LOOPS : 0)) return "too many loops";
  if (i->opcode == WEFT_OPCODE_RECV) {
    if (!within(i->level_count, WEFT_ISA_MAX_LEVELS)) return "too many levels";
    if (!within(i->tensor_rank, WEFT_ISA_MAX_RANK)) return "the tensor's rank is too large";
    if (!within(i->factor_count, WEFT_ISA_MAX_FACTORS)) return "too many factors";
    if (!within(i->operand_rank, WEFT_ISA_MAX_RANK)) return "the operand's rank is too large";
  }
  return NULL;
}

static const char* recv_fault(const weft_instruction_t* i) {
  for (int32_t l = 0; l < i->level_count; ++l) {
    if (i->level[l].extent < 1) return "the extent of a level is below 1";
    if (!within(i->level[l].dim, i->tensor_rank - 1)) return "a level's dimension is not one of the tensor";
    if (i->level[l].step < 0) return "the step of a level is negative";
  }
  for (int32_t d = 0; d < i->tensor_rank; ++d) {
    if (i->tensor_dim[d].lo < 0 || i->tensor_dim[d].lo > i->tensor_dim[d].hi)
      return "the bounds of the box are inverted";
    if (i->tensor_dim[d].stride < 0) return "a stride of the tensor is negative";
  }
  for (int32_t f = 0; f < i->factor_count; ++f) {
    int32_t lo = i->factor[f].lo, hi = i->factor[f].hi, extent = i->factor[f].extent;
    if (extent < 1) return "the extent of a factor is below 1";
    if (lo < 0 || lo > hi || hi > extent) return "the bounds of a factor are not within its extent";
    if (i->factor[f].dim != -1 && !within(i->factor[f].dim, i->operand_rank - 1))
      return "a factor's dimension is not one of the operand";
  }
  for (int32_t d = 0; d < i->operand_rank; ++d)
    if (i->operand_dim[d].lo > i->operand_dim[d].hi) return "the bounds of the filter are inverted";
  return NULL;
}

static const char* ring_fault(const weft_instruction_t* i) {
  for (int32_t o = 0; i->flags & WEFT_ISA_FLAG_RING && o < weft_isa_operand_count(i); ++o) {
    if (i->ring[o].depth < 1 || i->ring[o].depth > WEFT_ISA_MAX_DEPTH) return "the depth of a ring is not from 1 to 64";
    bool immediate = i->opcode == WEFT_OPCODE_TENSOR && o > 0 && i->flags >> (o - 1) & 1;
    if (immediate && (i->ring[o].depth != 1 || i->ring[o].stride)) return "an immediate has a ring";
  }
  return NULL;
}

const char* weft_isa_value_fault(const weft_instruction_t* i) {
  bool tensor = i->opcode == WEFT_OPCODE_TENSOR;
  const char* fault = ring_fault(i);
  if (fault) return fault;
  for (int32_t s = 1; tensor && i->flags & WEFT_ISA_FLAG_ADVANCE && s < weft_isa_operand_count(i); ++s)
    if (i->flags >> (s - 1) & 1 && i->advance[s]) return "an immediate advances";
  for (int32_t l = 0; l < i->loop_count; ++l) {
    if (i->loop[l].extent < 1) return "the extent of a loop is below 1";
    for (int32_t s = 1; tensor && s < weft_isa_operand_count(i); ++s)
      if ((i->flags & 1 << (s - 1)) && i->loop[l].stride[s]) return "an immediate has a stride";
  }
  switch (i->opcode) {
  case WEFT_OPCODE_CHAIN:
    if (i->out_colour < -1) return "the out colour is below -1";
    return i->colour < 0 ? "the colour is negative" : NULL;
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
    return i->colour < 0 ? "the colour is negative" : NULL;
  case WEFT_OPCODE_LOOP:
    return i->trips < 1 ? "it makes no trip" : NULL;
  case WEFT_OPCODE_RECV:
    return i->colour < 0 ? "the colour is negative" : recv_fault(i);
  default:
    return NULL;
  }
}
