// What a program sends and takes on each colour.
#include <inttypes.h>

#include "base/checked.h"
#include "check/derive.h"
#include "check/image_parts.h"

// The decoder's instruction with where it stands, for messages.
typedef struct site_t {
  weft_check_image_t* check;
  const weft_image_tile_t* tile;
  const weft_instruction_t* instruction;
  size_t word;
} site_t;

#define FAULT(site, format, ...)                                                                                       \
  weft_faults_add((site)->check->faults, "%s, word %zu: " format,                                                      \
                  weft_check_place(&(site)->check->machine, (site)->tile->tile).text, (site)->word, __VA_ARGS__)

static bool loop_elements(const weft_instruction_t* instruction, int64_t* out_elements) {
  *out_elements = 1;
  for (int32_t i = 0; i < instruction->loop_count; ++i)
    if (instruction->loop[i].extent < 0 || !weft_checked_mul(*out_elements, instruction->loop[i].extent, out_elements))
      return false;
  return true;
}

// Elements of a RECV's walk inside its box.
static bool walk_elements(const weft_instruction_t* instruction, int64_t* out_elements) {
  *out_elements = 1;
  for (int32_t i = 0; i < instruction->level_count; ++i)
    if (instruction->level[i].step < 0 || instruction->level[i].extent < 0 || instruction->level[i].dim < 0 ||
        instruction->level[i].dim >= instruction->tensor_rank)
      return false;
  for (int32_t d = 0; d < instruction->tensor_rank; ++d) {
    weft_check_term_t term[WEFT_ISA_MAX_LEVELS];
    weft_check_sums_t sums;
    int32_t count = 0;
    for (int32_t i = 0; i < instruction->level_count; ++i)
      if (instruction->level[i].dim == d)
        term[count++] = (weft_check_term_t){instruction->level[i].extent, instruction->level[i].step};
    if (!weft_check_sums(term, count, 0, instruction->tensor_dim[d].lo, instruction->tensor_dim[d].hi, &sums) ||
        !weft_checked_mul(*out_elements, sums.count, out_elements))
      return false;
  }
  return true;
}

static void add_flow(const site_t* site, weft_check_flow_t* flow, int64_t elements) {
  weft_dtype_e dtype = site->instruction->dtype;
  if (flow->instructions && flow->dtype != dtype)
    FAULT(site, "%s here, %s before on the same colour", weft_dtype_name(dtype), weft_dtype_name(flow->dtype));
  flow->dtype = dtype;
  flow->instructions++;
  if (!weft_checked_add(flow->elements, elements, &flow->elements))
    FAULT(site, "more elements than can be counted%s", "");
}

// The route of a tile's colour that has the ramp on this side; for the host, the colour is the index of a host colour.
static weft_check_flow_t* find_flow(const site_t* site, int32_t colour, bool sends) {
  weft_check_image_t* c = site->check;
  const char* what = sends ? "sends" : "takes";
  if (site->tile->tile == WEFT_HOST_TILE) {
    if (colour >= 0 && (size_t)colour < c->image->host_colours_count)
      return sends ? &c->host_sent[colour] : &c->host_taken[colour];
    FAULT(site, "%s on host colour %" PRId32 " of %zu", what, colour, c->image->host_colours_count);
    return NULL;
  }
  int32_t index = colour >= 0 && colour < WEFT_MAX_COLOURS ? weft_links_find(&c->links, site->tile->tile, colour) : -1;
  bool ramp = false;
  if (index >= 0 && !sends) ramp = c->entry[index].outputs >> WEFT_DIRECTION_RAMP & 1;
  for (int32_t i = 0; index >= 0 && sends && i < c->entry[index].input_count; ++i)
    ramp = ramp || c->entry[index].input[i] == WEFT_DIRECTION_RAMP;
  if (!ramp) {
    FAULT(site, "%s on colour %" PRId32 ", which has no route %s its core", what, colour, sends ? "from" : "to");
    return NULL;
  }
  return sends ? &c->sent[index] : &c->taken[index];
}

static void count_flow(const site_t* site, int32_t colour, bool sends, bool countable, int64_t elements) {
  weft_check_flow_t* flow = find_flow(site, colour, sends);
  if (!countable)
    FAULT(site, "its elements can't be counted%s", "");
  else if (flow)
    add_flow(site, flow, elements);
}

static void count_instruction(const site_t* site) {
  const weft_instruction_t* i = site->instruction;
  int64_t elements = 0;
  bool countable;
  switch (i->opcode) {
  case WEFT_OPCODE_SEND:
    countable = loop_elements(i, &elements);
    count_flow(site, i->colour, true, countable, elements);
    break;
  case WEFT_OPCODE_RECV:
    countable = walk_elements(i, &elements);
    count_flow(site, i->colour, false, countable, elements);
    break;
  case WEFT_OPCODE_CHAIN:
    countable = loop_elements(i, &elements);
    count_flow(site, i->colour, false, countable, elements);
    if (i->out_colour != -1) count_flow(site, i->out_colour, true, countable, elements);
    break;
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN: // of a receive that is counted already
    find_flow(site, i->colour, i->opcode == WEFT_OPCODE_WAIT_SEND);
    break;
  default:
    break;
  }
}

static bool program_inside(const weft_image_t* image, const weft_image_tile_t* tile) {
  const weft_image_program_t* program = &image->programs[tile->program];
  if ((uint64_t)program->code + program->code_words > image->code_count ||
      (uint64_t)program->patches + program->patch_count > image->patches_count ||
      (uint64_t)tile->params + program->patch_count > image->params_count)
    return false;
  for (uint32_t i = 0; i < program->patch_count; ++i)
    if (image->patches[program->patches + i] >= program->code_words) return false;
  return true;
}

void weft_check_image_program(weft_check_image_t* check, const weft_image_tile_t* tile, uint32_t* words) {
  weft_instruction_t instruction = {0};
  site_t site = {.check = check, .tile = tile, .instruction = &instruction};
  if (!program_inside(check->image, tile)) {
    FAULT(&site, "its program %" PRIu32 " reaches beyond the image's tables", tile->program);
    return;
  }
  weft_image_tile_program(check->image, tile, words);
  size_t count = check->image->programs[tile->program].code_words;
  while (site.word < count) {
    weft_status_t status = weft_isa_decode(words + site.word, count - site.word, &instruction);
    if (status) FAULT(&site, "%s", weft_status_message(status));
    if (!weft_status_consume(status)) return;
    count_instruction(&site);
    if (instruction.length <= 0) return;
    site.word += (size_t)instruction.length;
  }
}
