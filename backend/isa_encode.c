#include "backend/isa_fields.h"

void weft_isa_put(const weft_instruction_t* instruction, uint32_t* out_words) {
  weft_instruction_t copy = *instruction; // the list of fields is made of writable pointers
  int32_t* fields[WEFT_ISA_MAX_WORDS];
  int32_t count = weft_isa_fields(&copy, fields);
  *out_words++ =
      (uint32_t)copy.opcode | (uint32_t)copy.op << 8 | (uint32_t)copy.dtype << 16 | (uint32_t)copy.flags << 24;
  *out_words++ = (uint32_t)(WEFT_ISA_HEADER_WORDS + count) | (uint32_t)copy.loop_count << 16 |
                 (uint32_t)copy.destination_dtype << 24;
  uint32_t recv_counts = (uint32_t)copy.level_count | (uint32_t)copy.tensor_rank << 8 |
                         (uint32_t)copy.factor_count << 16 | (uint32_t)copy.operand_rank << 24;
  for (int32_t f = 0; f < count; ++f) *out_words++ = fields[f] ? (uint32_t)*fields[f] : recv_counts;
}

weft_status_t weft_isa_encode(const weft_instruction_t* instruction, uint32_t* words, size_t capacity, size_t* count) {
  const char* fault = weft_isa_shape_fault(instruction);
  if (!fault) fault = weft_isa_value_fault(instruction);
  const char* mnemonic = weft_opcode_mnemonic(instruction->opcode);
  if (fault) return weft_error(INVALID_ARGUMENT, "cannot encode %s: %s", mnemonic, fault);
  size_t length = (size_t)weft_isa_length(instruction), left = *count < capacity ? capacity - *count : 0;
  if (left < length)
    return weft_error(INVALID_ARGUMENT, "cannot encode %s: it takes %zu words, %zu are left", mnemonic, length, left);
  weft_isa_put(instruction, words + *count);
  *count += length;
  return weft_ok();
}
