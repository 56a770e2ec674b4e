// Sharing of programs. Tiles whose programs have the same skeleton (instructions, types, numbers of loops) share one
// template; the words in which they differ become parameters. What a tile has of its own is kept as differences only.
#pragma once
#include "backend/image.h"
#include "backend/intern.h"
#include "base/array.h"

// The tables that programs end up in.
typedef struct weft_program_tables_t {
  weft_allocator_t allocator;
  WEFT_ARRAY(weft_image_program_t) programs;
  WEFT_ARRAY(uint32_t) code;
  WEFT_ARRAY(uint32_t) patches;
  WEFT_ARRAY(uint32_t) params;
} weft_program_tables_t;
void weft_program_tables_deinitialize(weft_program_tables_t* tables);

typedef struct weft_template_t {
  size_t first, count; // words
  uint32_t program;    // once finished
} weft_template_t;
typedef struct weft_difference_t {
  uint32_t word, value;
} weft_difference_t;
typedef struct weft_instance_t {
  uint32_t template_index;
  size_t first, count; // differences
} weft_instance_t;

// The programs of one kernel's tiles, in the order in which they are added.
typedef struct weft_template_set_t {
  weft_allocator_t allocator;
  weft_intern_t skeletons; // -> templates
  WEFT_ARRAY(weft_template_t) templates;
  WEFT_ARRAY(uint32_t) words;    // of all templates
  WEFT_ARRAY(uint8_t) parameter; // parallel to words: 1 where some tile differs
  WEFT_ARRAY(weft_instance_t) instances;
  WEFT_ARRAY(weft_difference_t) differences;
  size_t most_words; // of the longest program
  size_t longest;    // its instance
} weft_template_set_t;
void weft_template_set_initialize(weft_allocator_t allocator, weft_template_set_t* out_set);
void weft_template_set_deinitialize(weft_template_set_t* set);
// Adds the next tile's program: well-formed words.
weft_status_t weft_template_set_add(weft_template_set_t* set, const uint32_t* words, size_t count);
// Adds `offset` to every address in the programs and writes templates, patches and parameters to the tables. out_tiles:
// program and params of each instance are set.
weft_status_t weft_template_set_finish(weft_template_set_t* set, int64_t offset, weft_program_tables_t* tables,
                                       weft_image_tile_t* out_tiles);
