// What the parts of the text form's reader share: the state, and what occurs in several of them. Nothing is read once
// the scan has failed.
#pragma once
#include "ir/fabric/text_form.h"
#include "ir/fabric/text_scan.h"

// Ranges stand for many items in few bytes, so the file's size doesn't bound them. These do.
enum { WEFT_READER_MOST_TILES = 1 << 24, WEFT_READER_MOST_RANGE_ITEMS = 1 << 26 };

typedef struct weft_reader_t {
  weft_scan_t scan;
  weft_allocator_t allocator;
  weft_fabric_t* fabric;
  const uint8_t* constants; // in the fabric's arena
  size_t constants_size;
  size_t constants_end;                        // of the last constant read
  int64_t range_items;                         // expanded so far
  const char* direction[WEFT_DIRECTION_COUNT]; // names
  WEFT_ARRAY(weft_endpoint_t) endpoints;
} weft_reader_t;

// Typed by the pointer; NULL and a failed scan when there is no memory.
#define WEFT_READER_NEW(r, count, out_pointer)                                                                         \
  do {                                                                                                                 \
    if (!(r)->scan.status)                                                                                             \
      weft_scan_keep(&(r)->scan, WEFT_ARENA_NEW(&(r)->fabric->arena, (size_t)(count), out_pointer));                   \
  } while (0)
// Items are numbered, so that a line can be found and a lost one is noticed. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define WEFT_READER_NUMBERED(r, i, count, word) for (int32_t i = 0; weft_reader_begin_numbered(r, i, count, word); ++i)
bool weft_reader_begin_numbered(weft_reader_t* r, int32_t index, int32_t count, const char* word);

const char* weft_reader_string(weft_reader_t* r, const char* what); // in the fabric's arena
weft_dtype_e weft_reader_dtype(weft_reader_t* r);
weft_op_e weft_reader_op(weft_reader_t* r);
int64_t weft_reader_any(weft_reader_t* r, const char* what);    // of any sign
int64_t weft_reader_size(weft_reader_t* r, const char* what);   // not negative
int64_t weft_reader_figure(weft_reader_t* r, const char* name); // a size behind its name
weft_shape_t weft_reader_shape(weft_reader_t* r);
void weft_reader_fill(weft_reader_t* r, bool* out_has_fill, double* out_fill);
void weft_reader_pieces(weft_reader_t* r, int32_t* out_count, weft_piece_t** out_pieces);
// `from` or `from..to`; false when there are more items than any stage file needs.
bool weft_reader_range(weft_reader_t* r, int32_t* out_from, int32_t* out_to);

void weft_reader_kernels(weft_reader_t* r); // text_read_kernel.c
void weft_reader_streams(weft_reader_t* r); // text_read_stream.c; from PLACED on
