#include "backend/isa_fields.h"

void weft_isa_put(const weft_instruction_t* i, uint32_t* out_words) {
  weft_isa_span_t spans[WEFT_ISA_MAX_SPANS];
  int32_t count = weft_isa_spans(i, spans);
  uint32_t* out = out_words + WEFT_ISA_HEADER_WORDS;
  for (int32_t s = 0; s < count; out += spans[s++].count) {
    if (spans[s].offset == WEFT_ISA_COUNTS)
      *out = (uint32_t)i->level_count | (uint32_t)i->tensor_rank << 8 | (uint32_t)i->factor_count << 16 |
             (uint32_t)i->operand_rank << 24;
    else
      memcpy(out, (const uint8_t*)i + spans[s].offset, spans[s].count * sizeof(*out));
  }
  out_words[0] = (uint32_t)i->opcode | (uint32_t)i->op << 8 | (uint32_t)i->dtype << 16 | (uint32_t)i->flags << 24;
  out_words[1] = (uint32_t)(out - out_words) | (uint32_t)i->loop_count << 16 | (uint32_t)i->destination_dtype << 24;
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
