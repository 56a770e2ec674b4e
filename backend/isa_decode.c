#include "backend/isa_fields.h"

weft_status_t weft_isa_decode(const uint32_t* words, size_t count, weft_instruction_t* out_instruction) {
  weft_instruction_t* i = out_instruction;
  weft_isa_clear(i);
  if (count < WEFT_ISA_HEADER_WORDS)
    return weft_error(INVALID_INPUT, "malformed instruction: %zu words are left, its header takes %d", count,
                      WEFT_ISA_HEADER_WORDS);
  i->opcode = (weft_opcode_e)(words[0] & 0xff);
  i->op = (weft_op_e)(words[0] >> 8 & 0xff);
  i->dtype = (weft_dtype_e)(words[0] >> 16 & 0xff);
  i->flags = (uint8_t)(words[0] >> 24);
  i->length = (int32_t)(words[1] & 0xffff);
  i->loop_count = (int32_t)(words[1] >> 16 & 0xff);
  i->destination_dtype = (weft_dtype_e)(words[1] >> 24);
  if (i->opcode == WEFT_OPCODE_RECV) {
    if (count <= WEFT_ISA_RECV_COUNTS_WORD)
      return weft_error(INVALID_INPUT, "malformed recv: %zu words are left, it takes %d at the least", count,
                        WEFT_ISA_RECV_COUNTS_WORD + 1);
    uint32_t counts = words[WEFT_ISA_RECV_COUNTS_WORD];
    i->level_count = (int32_t)(counts & 0xff);
    i->tensor_rank = (int32_t)(counts >> 8 & 0xff);
    i->factor_count = (int32_t)(counts >> 16 & 0xff);
    i->operand_rank = (int32_t)(counts >> 24);
  }
  const char* fault = weft_isa_shape_fault(i);
  if (fault)
    return weft_error(INVALID_INPUT, "malformed instruction 0x%08x 0x%08x: %s", (unsigned)words[0], (unsigned)words[1],
                      fault);
  if (i->length != weft_isa_length(i))
    return weft_error(INVALID_INPUT, "malformed %s: its length is %d words, its fields take %d",
                      weft_opcode_mnemonic(i->opcode), i->length, weft_isa_length(i));
  if ((size_t)i->length > count)
    return weft_error(INVALID_INPUT, "malformed %s: it takes %d words, %zu are left", weft_opcode_mnemonic(i->opcode),
                      i->length, count);
  weft_isa_span_t spans[WEFT_ISA_MAX_SPANS];
  int32_t span_count = weft_isa_spans(i, spans);
  const uint32_t* in = words + WEFT_ISA_HEADER_WORDS;
  for (int32_t s = 0; s < span_count; in += spans[s++].count)
    if (spans[s].offset != WEFT_ISA_COUNTS) memcpy((uint8_t*)i + spans[s].offset, in, spans[s].count * sizeof(*in));
  fault = weft_isa_value_fault(i);
  if (fault) return weft_error(INVALID_INPUT, "malformed %s: %s", weft_opcode_mnemonic(i->opcode), fault);
  return weft_ok();
}
