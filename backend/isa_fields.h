// Private to the ISA: the one place that knows the word order of every instruction. Encoder, decoder, disassembler and
// assembler all walk this list.
#pragma once
#include "backend/isa.h"

enum {
  WEFT_ISA_HEADER_WORDS = 2,
  // RECV with everything at its maximum: the longest instruction.
  WEFT_ISA_MAX_WORDS = WEFT_ISA_HEADER_WORDS + 4 + 2 + 3 * WEFT_ISA_MAX_LEVELS + 3 * WEFT_ISA_MAX_RANK +
                       5 * WEFT_ISA_MAX_FACTORS + 4 * WEFT_ISA_MAX_RANK,
  WEFT_ISA_RECV_COUNTS_WORD =
      WEFT_ISA_HEADER_WORDS + 3 // levels | tensor rank << 8 | factors << 16 | operand rank << 24
};

// Pointers to the fields of the words after the header, in word order; NULL stands for RECV's counts word. Opcode,
// operation, flags, loop_count and RECV's counts must be set and in range. Returns how many.
int32_t weft_isa_fields(weft_instruction_t* instruction, int32_t* out_fields[WEFT_ISA_MAX_WORDS]);
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
