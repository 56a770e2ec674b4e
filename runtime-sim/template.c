// Programs decoded once. A tile's instruction is that of its program with the tile's parameters in their places; only
// where a parameter shares its word with other fields are the words decoded again.
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

enum { PACKED = UINT16_MAX };

// The instruction at one word of a program, and the places of its parameters.
static weft_status_t decode_template(weft_sim_t* sim, const weft_image_program_t* program, uint32_t pc,
                                     uint32_t* inout_patch, weft_sim_template_t* out) {
  const weft_image_t* image = sim->image;
  const uint32_t* patches = image->patches + program->patches;
  uint32_t left = program->code_words - pc;
  out->is_known = weft_status_consume(
      weft_isa_decode(image->code + program->code + pc, left,
                      &out->instruction)); // else it may be right with parameters, and is decoded with them
  if (!out->is_known) return weft_ok();
  out->first_patch = *inout_patch;
  for (; *inout_patch < program->patch_count && patches[*inout_patch] < pc + (uint32_t)out->instruction.length;
       ++*inout_patch) {
    int32_t offset = weft_isa_word_offset(&out->instruction, (int32_t)(patches[*inout_patch] - pc));
    sim->patch_offset[program->patches + *inout_patch] = offset < 0 ? PACKED : (uint16_t)offset;
    out->is_packed = out->is_packed || offset < 0;
  }
  out->patch_count = *inout_patch - out->first_patch;
  return weft_ok();
}

static weft_status_t decode_program(weft_sim_t* sim, const weft_image_program_t* program) {
  uint32_t patch = 0;
  for (uint32_t pc = 0; pc < program->code_words;) {
    weft_sim_template_t template = {.is_packed = false};
    WEFT_RETURN_IF_ERROR(decode_template(sim, program, pc, &patch, &template));
    if (!template.is_known) return weft_ok(); // nothing behind it has a known place
    sim->template_at[program->code + pc] = (int32_t)sim->templates.count;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(sim->allocator, &sim->templates, template));
    pc += (uint32_t) template.instruction.length;
  }
  return weft_ok();
}

weft_status_t weft_sim_templates_build(weft_sim_t* sim) {
  const weft_image_t* image = sim->image;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, image->code_count, &sim->template_at));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, image->patches_count, &sim->patch_offset));
  for (size_t w = 0; w < image->code_count; ++w) sim->template_at[w] = WEFT_SIM_NONE;
  for (size_t p = 0; p < image->programs_count; ++p) WEFT_RETURN_IF_ERROR(decode_program(sim, &image->programs[p]));
  return weft_ok();
}

// Words [first, first + count) of the tile's program, parameters filled in.
static void copy_words(const weft_sim_t* sim, const weft_image_tile_t* tile, uint32_t first, uint32_t count,
                       uint32_t* out_words) {
  const weft_image_t* image = sim->image;
  const weft_image_program_t* program = &image->programs[tile->program];
  memcpy(out_words, image->code + program->code + first, count * sizeof(*out_words));
  const uint32_t* patches = image->patches + program->patches;
  uint32_t low = 0, high = program->patch_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (patches[middle] < first)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < program->patch_count && patches[low] < first + count; ++low)
    out_words[patches[low] - first] = image->params[tile->params + low];
}

static weft_status_t decode(const weft_sim_t* sim, const weft_image_tile_t* tile, uint32_t pc,
                            weft_instruction_t* out_instruction) {
  uint32_t left = sim->image->programs[tile->program].code_words - pc, count = left < 2 ? left : 2;
  uint32_t words[WEFT_SIM_MAX_WORDS];
  copy_words(sim, tile, pc, count, words);
  uint32_t length = count == 2 ? words[1] & 0xffff : count;
  if (length > count) {
    count = length < left ? length : left;
    if (count > WEFT_SIM_MAX_WORDS) count = WEFT_SIM_MAX_WORDS;
    copy_words(sim, tile, pc, count, words);
  }
  return weft_isa_decode(words, count, out_instruction);
}

static const weft_sim_template_t* template_of(const weft_sim_t* sim, const weft_image_tile_t* tile, uint32_t pc) {
  int32_t index = sim->template_at[sim->image->programs[tile->program].code + pc];
  return index < 0 || sim->templates.data[index].is_packed ? NULL : &sim->templates.data[index];
}

weft_status_t weft_sim_fetch_first(const weft_sim_t* sim, int32_t slot, uint32_t pc,
                                   weft_instruction_t* out_instruction) {
  const weft_image_tile_t* tile = sim->slot[slot].tile;
  const weft_sim_template_t* template = template_of(sim, tile, pc);
  if (!template || template->patch_count > 0) return decode(sim, tile, pc, out_instruction);
  *out_instruction = template->instruction;
  return weft_ok();
}

weft_status_t weft_sim_fetch(const weft_sim_t* sim, int32_t slot, uint32_t pc, weft_instruction_t* out_instruction) {
  const weft_image_tile_t* tile = sim->slot[slot].tile;
  const weft_sim_template_t* template = template_of(sim, tile, pc);
  if (!template) return decode(sim, tile, pc, out_instruction);
  bool receives = template->instruction.opcode == WEFT_OPCODE_RECV; // it has a walk and no loops
  size_t loops = (size_t) template->instruction.loop_count * sizeof(template->instruction.loop[0]);
  memcpy(out_instruction, &template->instruction,
         receives ? sizeof(*out_instruction) : offsetof(weft_instruction_t, loop) + loops);
  const uint16_t* offset = sim->patch_offset + sim->image->programs[tile->program].patches + template->first_patch;
  const uint32_t* value = sim->image->params + tile->params + template->first_patch;
  for (uint32_t p = 0; p < template->patch_count; ++p)
    memcpy((uint8_t*)out_instruction + offset[p], &value[p], sizeof(value[p]));
  return weft_ok();
}
