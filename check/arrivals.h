// What the two counts of arrivals share: an operand, its tiles and its streams.
#pragma once
#include "base/array.h"
#include "check/check_parts.h"

// An operand buffer of a kernel, or an output of the network: what is assembled from pieces.
typedef struct weft_check_operand_t {
  int32_t kernel, buffer; // WEFT_HOST_KERNEL and the output's index
  const char *kernel_name, *name;
  int32_t rank, piece_count;
  const weft_piece_t* piece;
  bool has_fill;
  int32_t tiles; // logical
} weft_check_operand_t;

typedef struct weft_check_arrivals_t {
  const weft_check_t* check;
  WEFT_ARRAY(int32_t) data; // streams of kind DATA
  int64_t visits_left;      // of elements, over all operands: bounds the time of the second count
} weft_check_arrivals_t;

bool weft_check_operand_needs(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t logical);
weft_box_t weft_check_operand_box(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t logical);
weft_check_place_t weft_check_operand_place(const weft_check_arrivals_t* a, const weft_check_operand_t* o,
                                            int32_t logical);
// The next stream into this operand at or after *inout_at; NULL: no more.
const weft_stream_t* weft_check_operand_stream(const weft_check_arrivals_t* a, const weft_check_operand_t* o,
                                               size_t* inout_at);

// By numbers of elements, in closed form.
weft_status_t weft_check_arrival_numbers(const weft_check_arrivals_t* a, const weft_check_operand_t* o);
// Element by element: the walks are run through naively. Does nothing, and says nothing, when visits_left is too
// little.
weft_status_t weft_check_arrival_elements(weft_check_arrivals_t* a, const weft_check_operand_t* o);
