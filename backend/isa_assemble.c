// Text -> words: reads the punctuation of each form around its numbers, which fill the instruction's fields.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/isa_fields.h"
#include "base/array.h"
#include "base/checked.h"

typedef struct assembler_t {
  weft_allocator_t allocator;
  const char* at;
  int32_t line;
  weft_instruction_t instruction;
  // Parameter numbers of the words after the header of the instruction that is being read, or -1.
  int32_t parameter[WEFT_ISA_MAX_WORDS];
  int32_t number_count; // words read so far
  WEFT_ARRAY(uint32_t) words;
  WEFT_ARRAY(int32_t) parameter_at;
} assembler_t;

static void skip_blanks(assembler_t* a) {
  while (*a->at == ' ' || *a->at == '\t' || *a->at == '\r') ++a->at;
  if (*a->at == ';')
    while (*a->at && *a->at != '\n') ++a->at;
}

static int rest_of_line(const assembler_t* a) {
  return (int)weft_min_i64((int64_t)strcspn(a->at, "\n"), 40);
}

static weft_status_t expected(const assembler_t* a, const char* what) {
  return weft_error(INVALID_INPUT, "line %" PRId32 ": expected %s at '%.*s'", a->line, what, rest_of_line(a), a->at);
}

static bool accept(assembler_t* a, const char* token) {
  skip_blanks(a);
  size_t length = strlen(token);
  if (strncmp(a->at, token, length) != 0) return false;
  a->at += length;
  return true;
}

static weft_status_t expect(assembler_t* a, const char* token) {
  return accept(a, token) ? weft_ok() : expected(a, token);
}

// A decimal or hexadecimal number of 32 bits, signed or not.
static weft_status_t read_integer(assembler_t* a, int32_t* out) {
  char* end;
  errno = 0;
  long long value = strtoll(a->at, &end, 0);
  if (end == a->at || errno || value < INT32_MIN || value > UINT32_MAX) return expected(a, "a 32-bit number");
  a->at = end;
  *out = (int32_t)(uint32_t)value;
  return weft_ok();
}

// A float's value, or its bits in hexadecimal.
static weft_status_t read_f32(assembler_t* a, int32_t* out) {
  if (!strncmp(a->at, "0x", 2)) return read_integer(a, out);
  char* end;
  float value = strtof(a->at, &end);
  if (end == a->at || value != value) return expected(a, "a number");
  a->at = end;
  memcpy(out, &value, sizeof(value));
  return weft_ok();
}

// "12", "%3=12" or "%3" (0 until the parameter is filled in).
static weft_status_t read_number(assembler_t* a, weft_status_t (*read)(assembler_t*, int32_t*), int32_t* out) {
  skip_blanks(a);
  if (a->number_count >= WEFT_ISA_MAX_WORDS) return expected(a, "the end of an instruction that is too long");
  int32_t* parameter = &a->parameter[a->number_count++];
  *parameter = -1;
  if (*a->at == '%') {
    ++a->at;
    WEFT_RETURN_IF_ERROR(read_integer(a, parameter));
    if (*parameter < 0) return expected(a, "the number of a parameter before");
    *out = 0;
    if (*a->at != '=') return weft_ok();
    ++a->at;
  }
  return read(a, out);
}

static weft_status_t read_address(assembler_t* a, int32_t* out) {
  WEFT_RETURN_IF_ERROR(expect(a, "["));
  WEFT_RETURN_IF_ERROR(read_number(a, read_integer, out));
  return expect(a, "]");
}

static weft_status_t read_colour(assembler_t* a, int32_t* out) {
  WEFT_RETURN_IF_ERROR(expect(a, "c"));
  return read_number(a, read_integer, out);
}

// Groups "tag(a b c)" into consecutive records of `size` numbers, `pitch` bytes apart.
static weft_status_t read_groups(assembler_t* a, const char* tag, void* first, size_t pitch, int32_t size,
                                 int32_t maximum, int32_t* out_count) {
  *out_count = 0;
  for (uint8_t* record = first; accept(a, tag); record += pitch) {
    if (++*out_count > maximum)
      return weft_error(INVALID_INPUT, "line %" PRId32 ": more than %d times %s..)", a->line, maximum, tag);
    for (int32_t n = 0; n < size; ++n) WEFT_RETURN_IF_ERROR(read_number(a, read_integer, (int32_t*)(void*)record + n));
    WEFT_RETURN_IF_ERROR(expect(a, ")"));
  }
  return weft_ok();
}

// One for each operand, or none at all.
static weft_status_t read_rings(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  int32_t count, operands = weft_isa_operand_count(i);
  WEFT_RETURN_IF_ERROR(read_groups(a, "ring(", i->ring, sizeof(i->ring[0]), 2, operands, &count));
  if (count == 0) return weft_ok();
  i->flags |= WEFT_ISA_FLAG_RING;
  return count == operands ? weft_ok() : expected(a, "a ring for each address");
}

static weft_status_t read_advances(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  int32_t count;
  if (i->opcode != WEFT_OPCODE_TENSOR) return weft_ok();
  WEFT_RETURN_IF_ERROR(
      read_groups(a, "advance(", i->advance, sizeof(i->advance), weft_isa_operand_count(i), 1, &count));
  if (count) i->flags |= WEFT_ISA_FLAG_ADVANCE;
  return weft_ok();
}

static weft_status_t read_loops(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  WEFT_RETURN_IF_ERROR(read_rings(a));
  WEFT_RETURN_IF_ERROR(read_advances(a));
  return read_groups(a, "loop(", i->loop, sizeof(i->loop[0]), 1 + weft_isa_operand_count(i), WEFT_ISA_MAX_LOOPS,
                     &i->loop_count);
}

// The next part of a mnemonic, up to a dot.
static bool next_part(char** rest, char** out_part) {
  return (*out_part = strsep(rest, ".")) != NULL;
}

static bool parse_dtype(char** rest, weft_dtype_e* out) {
  char* part;
  return next_part(rest, &part) && weft_dtype_parse(part, out);
}

// Opcode, operation, types and flags from a mnemonic such as "mla.f16.f32" or "send.f32.repeat".
static bool parse_mnemonic(char* mnemonic, weft_instruction_t* out) {
  for (int32_t o = 0; o < WEFT_OPCODE_COUNT; ++o) {
    out->opcode = (weft_opcode_e)o;
    bool bare = o != WEFT_OPCODE_TENSOR && o != WEFT_OPCODE_SEND && o != WEFT_OPCODE_RECV && o != WEFT_OPCODE_CHAIN;
    if (bare && !strcmp(mnemonic, weft_opcode_mnemonic(out->opcode))) return true;
  }
  char *rest = mnemonic, *part;
  if (!next_part(&rest, &part)) return false;
  bool send = !strcmp(part, weft_opcode_mnemonic(WEFT_OPCODE_SEND));
  if (send || !strcmp(part, weft_opcode_mnemonic(WEFT_OPCODE_RECV))) {
    out->opcode = send ? WEFT_OPCODE_SEND : WEFT_OPCODE_RECV;
    if (!parse_dtype(&rest, &out->dtype)) return false;
    if (!rest) return true;
    out->flags = WEFT_ISA_FLAG_REPEAT;
    return !strcmp(rest, "repeat");
  }
  if (!strcmp(part, weft_opcode_mnemonic(WEFT_OPCODE_CHAIN))) {
    out->opcode = WEFT_OPCODE_CHAIN;
    return next_part(&rest, &part) && weft_op_parse(part, &out->op) && parse_dtype(&rest, &out->dtype) && !rest;
  }
  out->opcode = WEFT_OPCODE_TENSOR;
  return weft_op_parse(part, &out->op) && parse_dtype(&rest, &out->dtype) &&
         parse_dtype(&rest, &out->destination_dtype) && !rest;
}

static weft_status_t read_tensor(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  WEFT_RETURN_IF_ERROR(read_address(a, &i->base[0]));
  for (int32_t s = 0; s < weft_op_source_count(i->op); ++s) {
    WEFT_RETURN_IF_ERROR(expect(a, ","));
    if (accept(a, "#")) {
      i->flags |= (uint8_t)(1 << s);
      WEFT_RETURN_IF_ERROR(read_number(a, weft_dtype_is_float(i->dtype) ? read_f32 : read_integer, &i->base[1 + s]));
    } else {
      WEFT_RETURN_IF_ERROR(read_address(a, &i->base[1 + s]));
    }
  }
  return read_loops(a);
}

static weft_status_t read_transfer(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  WEFT_RETURN_IF_ERROR(read_colour(a, &i->colour));
  WEFT_RETURN_IF_ERROR(expect(a, ","));
  WEFT_RETURN_IF_ERROR(read_address(a, &i->base[0]));
  WEFT_RETURN_IF_ERROR(expect(a, ","));
  WEFT_RETURN_IF_ERROR(read_number(a, read_integer, &i->step_stride));
  if (i->opcode == WEFT_OPCODE_SEND) return read_loops(a);
  a->parameter[a->number_count++] = -1; // the counts
  WEFT_RETURN_IF_ERROR(read_rings(a));
  WEFT_RETURN_IF_ERROR(read_groups(a, "walk(", i->level, sizeof(i->level[0]), 3, WEFT_ISA_MAX_LEVELS, &i->level_count));
  WEFT_RETURN_IF_ERROR(
      read_groups(a, "tensor(", i->tensor_dim, sizeof(i->tensor_dim[0]), 3, WEFT_ISA_MAX_RANK, &i->tensor_rank));
  WEFT_RETURN_IF_ERROR(
      read_groups(a, "factor(", i->factor, sizeof(i->factor[0]), 5, WEFT_ISA_MAX_FACTORS, &i->factor_count));
  return read_groups(a, "operand(", i->operand_dim, sizeof(i->operand_dim[0]), 4, WEFT_ISA_MAX_RANK, &i->operand_rank);
}

static weft_status_t read_chain(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  WEFT_RETURN_IF_ERROR(read_colour(a, &i->colour));
  WEFT_RETURN_IF_ERROR(expect(a, ","));
  WEFT_RETURN_IF_ERROR(read_colour(a, &i->out_colour));
  WEFT_RETURN_IF_ERROR(expect(a, ","));
  WEFT_RETURN_IF_ERROR(read_address(a, &i->base[0]));
  return read_loops(a);
}

static weft_status_t read_instruction(assembler_t* a) {
  weft_instruction_t* i = &a->instruction;
  memset(i, 0, sizeof(*i));
  a->number_count = 0;
  char mnemonic[64];
  size_t length = strcspn(a->at, " \t\r\n;");
  if (length >= sizeof(mnemonic)) return expected(a, "an instruction");
  memcpy(mnemonic, a->at, length);
  mnemonic[length] = '\0';
  if (!parse_mnemonic(mnemonic, i)) return expected(a, "an instruction");
  a->at += length;
  switch (i->opcode) {
  case WEFT_OPCODE_TENSOR:
    return read_tensor(a);
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_RECV:
    return read_transfer(a);
  case WEFT_OPCODE_CHAIN:
    return read_chain(a);
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
    return read_colour(a, &i->colour);
  case WEFT_OPCODE_LOOP:
    skip_blanks(a);
    return read_number(a, read_integer, &i->trips);
  default:
    return weft_ok();
  }
}

// Appends the words of the instruction. A bare "%N" may leave a value that only its parameter makes valid, so values
// are not checked here: the decoder does, once they are filled in.
static weft_status_t append_instruction(assembler_t* a) {
  const char* fault = weft_isa_shape_fault(&a->instruction);
  if (fault) return weft_error(INVALID_INPUT, "line %" PRId32 ": %s", a->line, fault);
  size_t length = (size_t)weft_isa_length(&a->instruction), first = a->words.count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(a->allocator, &a->words, first + length));
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(a->allocator, &a->parameter_at, first + length));
  weft_isa_put(&a->instruction, a->words.data + first);
  a->words.count = a->parameter_at.count = first + length;
  for (size_t w = 0; w < length; ++w)
    a->parameter_at.data[first + w] = w < WEFT_ISA_HEADER_WORDS ? -1 : a->parameter[w - WEFT_ISA_HEADER_WORDS];
  return weft_ok();
}

static weft_status_t assemble(assembler_t* a) {
  for (a->line = 1; *a->at; ++a->line) {
    skip_blanks(a);
    if (*a->at && *a->at != '\n') {
      WEFT_RETURN_IF_ERROR(read_instruction(a));
      WEFT_RETURN_IF_ERROR(append_instruction(a));
      skip_blanks(a);
    }
    if (!*a->at) break;
    if (*a->at != '\n') return expected(a, "the end of the line");
    ++a->at;
  }
  return weft_ok();
}

weft_status_t weft_isa_assemble(weft_allocator_t allocator, const char* text, uint32_t** out_words, size_t* out_count,
                                int32_t** out_parameter_at) {
  assembler_t a = {.allocator = allocator, .at = text};
  weft_status_t status = assemble(&a);
  if (status) {
    WEFT_ARRAY_FREE(allocator, &a.words);
    WEFT_ARRAY_FREE(allocator, &a.parameter_at);
  }
  *out_words = a.words.data;
  *out_count = a.words.count;
  *out_parameter_at = a.parameter_at.data;
  return status;
}
