// The text form. Its numbers stand in the order of the words, so that printing and assembling walk the same list of
// fields.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/isa_fields.h"

// What the words after the header are printed from: one word after the other.
typedef struct printer_t {
  weft_text_t* text;
  const uint32_t* words;
  const int32_t* parameter_at; // or NULL
  size_t at;
} printer_t;

static weft_status_t print_number(printer_t* p, weft_status_t (*format)(weft_text_t*, uint32_t)) {
  if (p->parameter_at && p->parameter_at[p->at] >= 0)
    WEFT_RETURN_IF_ERROR(weft_text_printf(p->text, "%%%" PRId32 "=", p->parameter_at[p->at]));
  return format(p->text, p->words[p->at++]);
}

static weft_status_t format_integer(weft_text_t* text, uint32_t word) {
  return weft_text_printf(text, "%" PRId32, (int32_t)word);
}

// The shortest of the usual forms that reads back to the same bits; a NaN's payload has none.
static weft_status_t format_f32(weft_text_t* text, uint32_t word) {
  float value;
  memcpy(&value, &word, sizeof(value));
  for (int digits = 6; digits <= 9; ++digits) {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "%.*g", digits, (double)value);
    float again = strtof(buffer, NULL); // keeps the sign of a zero
    if (again == value) return weft_text_printf(text, "%s", buffer);
  }
  return weft_text_printf(text, "0x%08" PRIx32, word);
}

static weft_status_t print_text(printer_t* p, const char* text) {
  return weft_text_append(p->text, text, strlen(text));
}

// "tag(a b c)" for each of `count` groups of `size` words, separated by spaces.
static weft_status_t print_groups(printer_t* p, const char* tag, int32_t count, int32_t size) {
  for (int32_t g = 0; g < count; ++g) {
    WEFT_RETURN_IF_ERROR(weft_text_printf(p->text, " %s(", tag));
    for (int32_t w = 0; w < size; ++w) {
      if (w) WEFT_RETURN_IF_ERROR(print_text(p, " "));
      WEFT_RETURN_IF_ERROR(print_number(p, format_integer));
    }
    WEFT_RETURN_IF_ERROR(print_text(p, ")"));
  }
  return weft_ok();
}

static weft_status_t print_rings(printer_t* p, const weft_instruction_t* i) {
  if (!(i->flags & WEFT_ISA_FLAG_RING)) return weft_ok();
  return print_groups(p, "ring", weft_isa_operand_count(i), 2);
}

static weft_status_t print_advances(printer_t* p, const weft_instruction_t* i) {
  if (!(i->flags & WEFT_ISA_FLAG_ADVANCE)) return weft_ok();
  return print_groups(p, "advance", 1, weft_isa_operand_count(i));
}

static weft_status_t print_address(printer_t* p) {
  WEFT_RETURN_IF_ERROR(print_text(p, "["));
  WEFT_RETURN_IF_ERROR(print_number(p, format_integer));
  return print_text(p, "]");
}

static weft_status_t print_colour(printer_t* p) {
  WEFT_RETURN_IF_ERROR(print_text(p, " c"));
  return print_number(p, format_integer);
}

static weft_status_t print_tensor(printer_t* p, const weft_instruction_t* i) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(p->text, "%s.%s.%s ", weft_op_mnemonic(i->op), weft_dtype_name(i->dtype),
                                        weft_dtype_name(i->destination_dtype)));
  WEFT_RETURN_IF_ERROR(print_address(p));
  for (int32_t s = 0; s < weft_op_source_count(i->op); ++s) {
    WEFT_RETURN_IF_ERROR(print_text(p, ", "));
    if (!(i->flags & 1 << s)) {
      WEFT_RETURN_IF_ERROR(print_address(p));
      continue;
    }
    WEFT_RETURN_IF_ERROR(print_text(p, "#"));
    WEFT_RETURN_IF_ERROR(print_number(p, weft_dtype_is_float(i->dtype) ? format_f32 : format_integer));
  }
  WEFT_RETURN_IF_ERROR(print_rings(p, i));
  WEFT_RETURN_IF_ERROR(print_advances(p, i));
  return print_groups(p, "loop", i->loop_count, 1 + weft_isa_operand_count(i));
}

// SEND and RECV: colour, address, step stride.
static weft_status_t print_transfer(printer_t* p, const weft_instruction_t* i) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(p->text, "%s.%s%s", weft_opcode_mnemonic(i->opcode), weft_dtype_name(i->dtype),
                                        i->flags & WEFT_ISA_FLAG_REPEAT ? ".repeat" : ""));
  WEFT_RETURN_IF_ERROR(print_colour(p));
  WEFT_RETURN_IF_ERROR(print_text(p, ", "));
  WEFT_RETURN_IF_ERROR(print_address(p));
  WEFT_RETURN_IF_ERROR(print_text(p, ", "));
  WEFT_RETURN_IF_ERROR(print_number(p, format_integer));
  if (i->opcode == WEFT_OPCODE_RECV) ++p->at; // the counts follow from the groups
  WEFT_RETURN_IF_ERROR(print_rings(p, i));
  if (i->opcode == WEFT_OPCODE_SEND) return print_groups(p, "loop", i->loop_count, 2);
  WEFT_RETURN_IF_ERROR(print_groups(p, "walk", i->level_count, 3));
  WEFT_RETURN_IF_ERROR(print_groups(p, "tensor", i->tensor_rank, 3));
  WEFT_RETURN_IF_ERROR(print_groups(p, "factor", i->factor_count, 5));
  return print_groups(p, "operand", i->operand_rank, 4);
}

static weft_status_t print_chain(printer_t* p, const weft_instruction_t* i) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(p->text, "%s.%s.%s", weft_opcode_mnemonic(i->opcode), weft_op_mnemonic(i->op),
                                        weft_dtype_name(i->dtype)));
  WEFT_RETURN_IF_ERROR(print_colour(p));
  WEFT_RETURN_IF_ERROR(print_text(p, ","));
  WEFT_RETURN_IF_ERROR(print_colour(p));
  WEFT_RETURN_IF_ERROR(print_text(p, ", "));
  WEFT_RETURN_IF_ERROR(print_address(p));
  WEFT_RETURN_IF_ERROR(print_rings(p, i));
  return print_groups(p, "loop", i->loop_count, 2);
}

static weft_status_t print_instruction(printer_t* p, const weft_instruction_t* i) {
  switch (i->opcode) {
  case WEFT_OPCODE_TENSOR:
    return print_tensor(p, i);
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_RECV:
    return print_transfer(p, i);
  case WEFT_OPCODE_CHAIN:
    return print_chain(p, i);
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
    WEFT_RETURN_IF_ERROR(print_text(p, weft_opcode_mnemonic(i->opcode)));
    return print_colour(p);
  case WEFT_OPCODE_LOOP:
    WEFT_RETURN_IF_ERROR(print_text(p, weft_opcode_mnemonic(i->opcode)));
    WEFT_RETURN_IF_ERROR(print_text(p, " "));
    return print_number(p, format_integer);
  default:
    return print_text(p, weft_opcode_mnemonic(i->opcode));
  }
}

weft_status_t weft_isa_disassemble(const uint32_t* words, size_t count, const int32_t* parameter_at,
                                   weft_text_t* text) {
  weft_instruction_t instruction;
  for (size_t at = 0; at < count; at += (size_t)instruction.length) {
    weft_status_t status = weft_isa_decode(words + at, count - at, &instruction);
    if (status) return weft_status_annotate(status, "at word %zu", at);
    printer_t printer = {text, words, parameter_at, at + WEFT_ISA_HEADER_WORDS};
    WEFT_RETURN_IF_ERROR(print_instruction(&printer, &instruction));
    WEFT_RETURN_IF_ERROR(weft_text_append(text, "\n", 1));
  }
  return weft_ok();
}
