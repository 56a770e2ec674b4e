#include "backend/template.h"

#include <string.h>

#include "backend/isa_fields.h"

void weft_program_tables_deinitialize(weft_program_tables_t* tables) {
  WEFT_ARRAY_FREE(tables->allocator, &tables->programs);
  WEFT_ARRAY_FREE(tables->allocator, &tables->code);
  WEFT_ARRAY_FREE(tables->allocator, &tables->patches);
  WEFT_ARRAY_FREE(tables->allocator, &tables->params);
}

void weft_template_set_initialize(weft_allocator_t allocator, weft_template_set_t* out_set) {
  memset(out_set, 0, sizeof(*out_set));
  out_set->allocator = allocator;
  weft_intern_initialize(allocator, &out_set->skeletons);
}

void weft_template_set_deinitialize(weft_template_set_t* set) {
  weft_intern_deinitialize(&set->skeletons);
  WEFT_ARRAY_FREE(set->allocator, &set->templates);
  WEFT_ARRAY_FREE(set->allocator, &set->words);
  WEFT_ARRAY_FREE(set->allocator, &set->parameter);
  WEFT_ARRAY_FREE(set->allocator, &set->instances);
  WEFT_ARRAY_FREE(set->allocator, &set->differences);
}

static size_t length_at(const uint32_t* words) {
  return words[1] & 0xffff;
}
static bool is_recv(const uint32_t* words) {
  return (words[0] & 0xff) == WEFT_OPCODE_RECV;
}

static uint64_t hash_skeleton(const uint32_t* words, size_t count) {
  uint64_t hash = count;
  for (size_t at = 0; at < count; at += length_at(words + at)) {
    hash = weft_intern_hash(hash, words + at, WEFT_ISA_HEADER_WORDS * sizeof(*words));
    if (is_recv(words + at)) hash = weft_intern_hash(hash, words + at + WEFT_ISA_RECV_COUNTS_WORD, sizeof(*words));
  }
  return hash;
}

typedef struct skeleton_key_t {
  const weft_template_set_t* set;
  const uint32_t* words;
  size_t count;
} skeleton_key_t;

static bool skeleton_equal(const void* self, uint32_t index) {
  const skeleton_key_t* key = self;
  const weft_template_t* template = &key->set->templates.data[index];
  const uint32_t *a = key->set->words.data + template->first, *b = key->words;
  if (template->count != key->count) return false;
  for (size_t at = 0; at < key->count; at += length_at(b + at)) {
    if (memcmp(a + at, b + at, WEFT_ISA_HEADER_WORDS * sizeof(*a)) != 0) return false;
    if (is_recv(b + at) && a[at + WEFT_ISA_RECV_COUNTS_WORD] != b[at + WEFT_ISA_RECV_COUNTS_WORD]) return false;
  }
  return true;
}

static weft_status_t add_template(weft_template_set_t* set, const uint32_t* words, size_t count) {
  size_t first = set->words.count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(set->allocator, &set->words, first + count));
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(set->allocator, &set->parameter, first + count));
  memcpy(set->words.data + first, words, count * sizeof(*words));
  memset(set->parameter.data + first, 0, count);
  set->words.count = set->parameter.count = first + count;
  return WEFT_ARRAY_PUSH(set->allocator, &set->templates, (weft_template_t){first, count, 0});
}

weft_status_t weft_template_set_add(weft_template_set_t* set, const uint32_t* words, size_t count) {
  skeleton_key_t key = {set, words, count};
  uint64_t hash = hash_skeleton(words, count);
  weft_instance_t instance = {.first = set->differences.count};
  if (!weft_intern_find(&set->skeletons, hash, skeleton_equal, &key, &instance.template_index)) {
    instance.template_index = (uint32_t)set->templates.count;
    WEFT_RETURN_IF_ERROR(add_template(set, words, count));
    WEFT_RETURN_IF_ERROR(weft_intern_add(&set->skeletons, hash, instance.template_index));
  }
  size_t first = set->templates.data[instance.template_index].first;
  for (size_t w = 0; w < count; ++w) {
    if (set->words.data[first + w] == words[w]) continue;
    set->parameter.data[first + w] = 1;
    WEFT_RETURN_IF_ERROR(
        WEFT_ARRAY_PUSH(set->allocator, &set->differences, (weft_difference_t){(uint32_t)w, words[w]}));
  }
  instance.count = set->differences.count - instance.first;
  if (count > set->most_words) {
    set->most_words = count;
    set->longest = set->instances.count;
  }
  return WEFT_ARRAY_PUSH(set->allocator, &set->instances, instance);
}

// Marks the words that hold addresses.
static void find_addresses(const uint32_t* words, size_t count, uint8_t* is_address) {
  memset(is_address, 0, count);
  for (size_t at = 0; at < count; at += length_at(words + at)) {
    uint8_t* first = is_address + at + WEFT_ISA_HEADER_WORDS;
    switch (words[at] & 0xff) {
    case WEFT_OPCODE_TENSOR:
      first[0] = 1;
      for (int32_t s = 0; s < weft_op_source_count((weft_op_e)(words[at] >> 8 & 0xff)); ++s)
        first[1 + s] = !(words[at] >> 24 & 1u << s);
      break;
    case WEFT_OPCODE_SEND:
    case WEFT_OPCODE_RECV:
      first[1] = 1;
      break;
    case WEFT_OPCODE_CHAIN:
      first[2] = 1;
      break;
    default:
      break;
    }
  }
}

// Moves the addresses and appends the template to the tables.
static weft_status_t write_template(weft_template_set_t* set, weft_template_t* template, int64_t offset,
                                    uint8_t* is_address, weft_program_tables_t* tables) {
  uint32_t* words = set->words.data + template->first;
  find_addresses(words, template->count, is_address);
  for (size_t w = 0; w < template->count; ++w)
    if (is_address[w]) words[w] += (uint32_t)offset;
  weft_image_program_t program = {.code = (uint32_t)tables->code.count,
                                  .code_words = (uint32_t) template->count,
                                  .patches = (uint32_t)tables->patches.count};
  template->program = (uint32_t)tables->programs.count;
  size_t end = tables->code.count + template->count;
  if (end > UINT32_MAX) return weft_error(UNSUPPORTED, "the image's code exceeds %u words", UINT32_MAX);
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(tables->allocator, &tables->code, end));
  memcpy(tables->code.data + tables->code.count, words, template->count * sizeof(*words));
  tables->code.count = end;
  for (size_t w = 0; w < template->count; ++w)
    if (set->parameter.data[template->first + w])
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(tables->allocator, &tables->patches, (uint32_t)w));
  program.patch_count = (uint32_t)tables->patches.count - program.patches;
  return WEFT_ARRAY_PUSH(tables->allocator, &tables->programs, program);
}

// The instance's value of every parameter: the template's, unless it differs.
static weft_status_t write_params(const weft_template_set_t* set, const weft_instance_t* instance, int64_t offset,
                                  const uint8_t* is_address, weft_program_tables_t* tables, weft_image_tile_t* tile) {
  const weft_template_t* template = &set->templates.data[instance->template_index];
  const weft_image_program_t* program = &tables->programs.data[template->program];
  const weft_difference_t* difference = set->differences.data + instance->first;
  const weft_difference_t* end = difference + instance->count;
  size_t first = tables->params.count;
  if (first + program->patch_count > UINT32_MAX)
    return weft_error(UNSUPPORTED, "the image's parameters exceed %u words", UINT32_MAX);
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(tables->allocator, &tables->params, first + program->patch_count));
  for (uint32_t p = 0; p < program->patch_count; ++p) {
    uint32_t word = tables->patches.data[program->patches + p], value = set->words.data[template->first + word];
    if (difference < end && difference->word == word)
      value = difference++->value + (is_address[template->first + word] ? (uint32_t)offset : 0);
    tables->params.data[tables->params.count++] = value;
  }
  tile->program = template->program;
  tile->params = (uint32_t)first;
  return weft_ok();
}

weft_status_t weft_template_set_finish(weft_template_set_t* set, int64_t offset, weft_program_tables_t* tables,
                                       weft_image_tile_t* out_tiles) {
  uint8_t* is_address;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(set->allocator, set->words.count, 1, (void**)&is_address));
  weft_status_t status = weft_ok();
  for (size_t t = 0; !status && t < set->templates.count; ++t) {
    weft_template_t* template = &set->templates.data[t];
    status = write_template(set, template, offset, is_address + template->first, tables);
  }
  for (size_t i = 0; !status && i < set->instances.count; ++i)
    status = write_params(set, &set->instances.data[i], offset, is_address, tables, &out_tiles[i]);
  weft_allocator_free(set->allocator, is_address);
  return status;
}
