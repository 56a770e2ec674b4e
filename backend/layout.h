// Where a kernel's buffers lie in tile memory: one layout for all of its tiles, so that their programs differ in
// extents and filters only. Code comes first, then the data; addresses here count from the start of the data.
#pragma once
#include "ir/fabric/split.h"

enum { WEFT_LAYOUT_ALIGNMENT = 8 };

// An immediate that no instruction word can hold lies in memory, once for each value and type.
typedef struct weft_layout_scalar_t {
  uint8_t bytes[8];
  weft_dtype_e dtype;
} weft_layout_scalar_t;

typedef struct weft_layout_t {
  int64_t* address;                 // of each buffer
  int64_t* place;                   // bytes of each buffer: from one place of its ring to the next
  int32_t* depth;                   // places of each buffer, which the steps take in turn
  int64_t (*stride)[WEFT_MAX_RANK]; // of each buffer, bytes
  int64_t scalars;                  // address of the scalars, 8 bytes each
  int32_t scalar_count;
  weft_layout_scalar_t* scalar;
  int64_t bytes; // all of it
} weft_layout_t;

// The layout of a kernel's chosen alternative. Lives in `arena`.
weft_status_t weft_layout_create(const weft_fabric_t* fabric, const weft_kernel_t* kernel, weft_arena_t* arena,
                                 weft_layout_t* out_layout);
// `value` as an immediate of an instruction of this type: true and its word, or false and the address of its scalar.
bool weft_layout_immediate(const weft_layout_t* layout, weft_dtype_e dtype, double value, int32_t* out_word,
                           int64_t* out_address);
