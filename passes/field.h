// Private to passes: a constant that varies along some dimensions of a tensor only, such as a scale per channel.
#pragma once
#include "base/arena.h"
#include "passes/generic.h"

typedef struct weft_field_t {
  weft_shape_t shape; // the tensor's rank; 1 along dimensions that the field doesn't depend on
  double* data;
} weft_field_t;

typedef enum weft_field_op_e { WEFT_FIELD_ADD, WEFT_FIELD_SUB, WEFT_FIELD_MUL, WEFT_FIELD_DIV } weft_field_op_e;

weft_status_t weft_field_number(weft_arena_t* arena, int32_t rank, double number, weft_field_t* out);
// A field of these extents, zeroed.
weft_status_t weft_field_create(weft_arena_t* arena, const weft_shape_t* shape, weft_field_t* out);
// a op b, each broadcast to the other. is_f32: rounded to f32, as a tile would calculate it.
weft_status_t weft_field_combine(weft_arena_t* arena, weft_field_op_e op, const weft_field_t* a, const weft_field_t* b,
                                 bool is_f32, weft_field_t* out);
// The elements of a constant, read through the map of an operand of a pointwise op whose loops are the tensor's
// dimensions. *out_is_known is false for anything else.
weft_status_t weft_field_operand(weft_arena_t* arena, const weft_generic_t* generic, int32_t operand, bool is_unsigned,
                                 weft_field_t* out, bool* out_is_known);
// Dimension d becomes dimension to[d] of the result, which has `rank` of them. An extent of 1 has no place to go.
weft_status_t weft_field_move(weft_arena_t* arena, const weft_field_t* field, int32_t rank, const int32_t* to,
                              weft_field_t* out);
// Of a tensor of shape `from` that is collapsed or expanded to `to`.
weft_status_t weft_field_reshape(weft_arena_t* arena, const weft_field_t* field, const weft_shape_t* from,
                                 const weft_shape_t* to, weft_field_t* out);

// The value everywhere. False: it varies.
bool weft_field_is_number(const weft_field_t* field, double* out_number);
// Whether it is the number everywhere.
bool weft_field_is(const weft_field_t* field, double number);
bool weft_field_equal(const weft_field_t* a, const weft_field_t* b);
void weft_field_range(const weft_field_t* field, double* out_lo, double* out_hi);
