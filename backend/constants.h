// What is loaded into tile memory before anything runs: each distinct content once, however many tiles have it.
#pragma once
#include "backend/image.h"
#include "backend/intern.h"
#include "backend/layout.h"
#include "base/array.h"

// All constants of an image.
typedef struct weft_constants_t {
  weft_allocator_t allocator;
  WEFT_ARRAY(uint8_t) bytes; // .weft.consts
  WEFT_ARRAY(weft_image_segment_t) segments;
  weft_intern_t contents;                   // -> index of `content`
  WEFT_ARRAY(weft_image_segment_t) content; // address unused
} weft_constants_t;
void weft_constants_initialize(weft_allocator_t allocator, weft_constants_t* out_constants);
void weft_constants_deinitialize(weft_constants_t* constants);

// While one kernel's tiles are visited: which boxes of its buffers were evaluated, which lists of segments were made.
typedef struct weft_box_constant_t {
  int32_t buffer;
  weft_box_t box;
  int64_t content; // -1: nothing but zeros, which memory holds anyway
} weft_box_constant_t;
typedef struct weft_segment_list_t {
  uint32_t first, count;
} weft_segment_list_t;
typedef struct weft_kernel_constants_t {
  weft_constants_t* all;
  const weft_fabric_t* fabric;
  const weft_kernel_t* kernel;
  const weft_layout_t* layout;
  bool* loaded; // [buffers] has constant pieces, so that it is loaded as a whole, its fill included
  weft_intern_t boxes;
  WEFT_ARRAY(weft_box_constant_t) box;
  weft_intern_t lists;
  WEFT_ARRAY(weft_segment_list_t) list;
  WEFT_ARRAY(uint8_t) scratch;
  WEFT_ARRAY(weft_image_segment_t) pending; // the list that is being made
} weft_kernel_constants_t;
weft_status_t weft_kernel_constants_create(weft_constants_t* all, const weft_fabric_t* fabric,
                                           const weft_kernel_t* kernel, const weft_layout_t* layout,
                                           weft_kernel_constants_t* out_constants);
void weft_kernel_constants_deinitialize(weft_kernel_constants_t* constants);
// The segments of a tile: boxes[b] is its box of buffer b, needed[b] says whether it uses it. Their addresses count
// from the start of the data until weft_kernel_constants_relocate moves all of the kernel's segments behind its code.
weft_status_t weft_kernel_constants_tile(weft_kernel_constants_t* constants, const weft_box_t* boxes,
                                         const bool* needed, weft_segment_list_t* out_list);
void weft_kernel_constants_relocate(weft_kernel_constants_t* constants, int64_t code_bytes);
