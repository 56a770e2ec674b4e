// Private to the ISA: the one place that knows the word order of every instruction. Encoder, decoder, disassembler and
// assembler all walk this list.
#pragma once
#include <string.h>

#include "backend/isa.h"

enum {
  WEFT_ISA_HEADER_WORDS = 2,
  // RECV with everything at its maximum: the longest instruction.
  WEFT_ISA_MAX_WORDS = WEFT_ISA_HEADER_WORDS + 4 + 2 + 3 * WEFT_ISA_MAX_LEVELS + 3 * WEFT_ISA_MAX_RANK +
                       5 * WEFT_ISA_MAX_FACTORS + 4 * WEFT_ISA_MAX_RANK,
  WEFT_ISA_RECV_COUNTS_WORD =
      WEFT_ISA_HEADER_WORDS + 3 // levels | tensor rank << 8 | factors << 16 | operand rank << 24
};

// Fields that follow each other in the words and in the instruction. RECV's counts word, which packs several fields,
// stands as a span of its own with `offset` WEFT_ISA_COUNTS.
typedef struct weft_isa_span_t {
  uint16_t offset; // bytes, within weft_instruction_t
  uint16_t count;  // fields: words
} weft_isa_span_t;
enum { WEFT_ISA_COUNTS = UINT16_MAX, WEFT_ISA_MAX_SPANS = 6 + WEFT_ISA_MAX_LOOPS };

// The words after the header. Opcode, operation, flags, loop_count and RECV's counts must be set and in range. Returns
// how many spans.
int32_t weft_isa_spans(const weft_instruction_t* instruction, weft_isa_span_t out_spans[WEFT_ISA_MAX_SPANS]);
// An instruction of no operation, without loops, levels and the like; what lies beyond those counts is left as it is:
// most of it is never used, and clearing it would take longer than the rest.
static inline void weft_isa_clear(weft_instruction_t* out_instruction) {
  memset(out_instruction, 0, offsetof(weft_instruction_t, loop));
  out_instruction->level_count = out_instruction->tensor_rank = 0;
  out_instruction->factor_count = out_instruction->operand_rank = 0;
}
// Writes the instruction's words, weft_isa_length of them, unchecked.
void weft_isa_put(const weft_instruction_t* instruction, uint32_t* out_words);

// What is wrong with the instruction's opcode, operation, counts, types and flags (so that its length is known), or
// with its values; NULL: nothing.
const char* weft_isa_shape_fault(const weft_instruction_t* instruction);
const char* weft_isa_value_fault(const weft_instruction_t* instruction);

// Memory operands: dst and sources of TENSOR, the one address of SEND, RECV and CHAIN.
static inline int32_t weft_isa_operand_count(const weft_instruction_t* i) {
  return i->opcode == WEFT_OPCODE_TENSOR ? 1 + weft_op_source_count(i->op) : 1;
}
