// Decodes every program with each tile's parameters. A template is decoded once; for a tile only the instructions that
// hold parameters are decoded again, so that a wafer of tiles costs little more than its parameters.
#include <inttypes.h>
#include <string.h>

#include "backend/image_sections.h"
#include "backend/isa_fields.h"
#include "base/array.h"

// An instruction of a template that holds parameters.
typedef struct patched_t {
  uint32_t word, length;       // within the program
  uint32_t patch, patch_count; // within the program's patches
} patched_t;

typedef struct decoder_t {
  const weft_image_t* image;
  weft_allocator_t allocator;
  int32_t colours;
  WEFT_ARRAY(patched_t) patched;
  WEFT_ARRAY(size_t) first; // of each program in `patched`, and the end
  uint8_t* checked;         // for each program: its colours were checked as a tile's (1), as the host's (2)
} decoder_t;

static weft_status_t check_colour(int32_t colour, int64_t limit) {
  if (colour < limit) return weft_ok();
  return weft_error(INVALID_INPUT, "colour %" PRId32 " of %" PRId64, colour, limit);
}

// Colours of the host are indices of host colours.
static weft_status_t check_colours(const decoder_t* d, const weft_instruction_t* i, bool host) {
  int64_t limit = host ? (int64_t)d->image->host_colours_count : d->colours;
  if (i->opcode == WEFT_OPCODE_TENSOR || weft_isa_length(i) == WEFT_ISA_HEADER_WORDS) return weft_ok();
  WEFT_RETURN_IF_ERROR(check_colour(i->colour, limit));
  return i->opcode == WEFT_OPCODE_CHAIN ? check_colour(i->out_colour, limit) : weft_ok();
}

static weft_status_t decode_template(decoder_t* d, const weft_image_program_t* program) {
  const uint32_t* code = d->image->code + program->code;
  const uint32_t* patches = d->image->patches + program->patches;
  uint32_t patch = 0;
  weft_instruction_t instruction;
  for (uint32_t at = 0; at < program->code_words; at += (uint32_t)instruction.length) {
    weft_status_t status = weft_isa_decode(code + at, program->code_words - at, &instruction);
    if (status) return weft_status_annotate(status, "at word %" PRIu32, at);
    uint32_t end = at + (uint32_t)instruction.length, first = patch;
    while (patch < program->patch_count && patches[patch] < end) ++patch;
    if (patch > first && patches[first] < at + WEFT_ISA_HEADER_WORDS)
      return weft_error(INVALID_INPUT, "the header of the instruction at word %" PRIu32 " is a parameter", at);
    if (patch > first)
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(d->allocator, &d->patched,
                                           (patched_t){at, (uint32_t)instruction.length, first, patch - first}));
  }
  return weft_ok();
}

static weft_status_t decode_patched(const decoder_t* d, const weft_image_tile_t* tile, const patched_t* patched) {
  const weft_image_t* m = d->image;
  const weft_image_program_t* program = &m->programs[tile->program];
  uint32_t words[WEFT_ISA_MAX_WORDS]; // no decoded instruction is longer
  memcpy(words, m->code + program->code + patched->word, patched->length * sizeof(uint32_t));
  for (uint32_t p = patched->patch; p < patched->patch + patched->patch_count; ++p)
    words[m->patches[program->patches + p] - patched->word] = m->params[tile->params + p];
  weft_instruction_t instruction;
  WEFT_RETURN_IF_ERROR(weft_isa_decode(words, patched->length, &instruction));
  if (instruction.length != (int32_t)patched->length)
    return weft_error(INVALID_INPUT, "a parameter changes the length of an instruction");
  return check_colours(d, &instruction, tile->tile == WEFT_HOST_TILE);
}

// Colours of the instructions without parameters, which differ in meaning between host and tiles.
static weft_status_t check_template_colours(const decoder_t* d, const weft_image_program_t* program, bool host) {
  weft_instruction_t instruction;
  for (uint32_t at = 0; at < program->code_words; at += (uint32_t)instruction.length) {
    WEFT_RETURN_IF_ERROR(weft_isa_decode(d->image->code + program->code + at, program->code_words - at, &instruction));
    WEFT_RETURN_IF_ERROR(check_colours(d, &instruction, host));
  }
  return weft_ok();
}

static weft_status_t decode_all(decoder_t* d) {
  const weft_image_t* m = d->image;
  for (size_t p = 0; p < m->programs_count; ++p) {
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(d->allocator, &d->first, d->patched.count));
    weft_status_t status = decode_template(d, &m->programs[p]);
    if (status) return weft_status_annotate(status, "program %zu", p);
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(d->allocator, &d->first, d->patched.count));
  for (size_t t = 0; t < m->tiles_count; ++t) {
    const weft_image_tile_t* tile = &m->tiles[t];
    uint8_t kind = tile->tile == WEFT_HOST_TILE ? 2 : 1;
    weft_status_t status = weft_ok();
    if (!(d->checked[tile->program] & kind)) status = check_template_colours(d, &m->programs[tile->program], kind == 2);
    d->checked[tile->program] |= kind;
    for (size_t k = d->first.data[tile->program]; !status && k < d->first.data[tile->program + 1]; ++k)
      status = decode_patched(d, tile, &d->patched.data[k]);
    if (status) return weft_status_annotate(status, "program %" PRIu32 " of tile record %zu", tile->program, t);
  }
  return weft_ok();
}

weft_status_t weft_image_verify_programs(weft_allocator_t allocator, const weft_image_t* image, int32_t colours) {
  decoder_t decoder = {.image = image, .allocator = allocator, .colours = colours};
  weft_status_t status = weft_allocator_calloc(allocator, image->programs_count, 1, (void**)&decoder.checked);
  if (!status) status = decode_all(&decoder);
  weft_allocator_free(allocator, decoder.checked);
  WEFT_ARRAY_FREE(allocator, &decoder.patched);
  WEFT_ARRAY_FREE(allocator, &decoder.first);
  return status;
}
