// Movement of data without moving it: how the elements of a tensor, in row-major order, land in the coordinates of an
// operand. Reshape, transpose, slice, pad, concat and expand are all a view; the stream that carries the tensor does the rest.
#pragma once
#include "base/allocator.h"
#include "base/text.h"

enum {
  WEFT_MAX_RANK = 8,    // of tensors and buffers
  WEFT_MAX_FACTORS = 12 // of a view
};

typedef struct weft_shape_t {
  int32_t rank;
  int64_t extent[WEFT_MAX_RANK];
} weft_shape_t;
int64_t weft_shape_elements(const weft_shape_t* shape);

// A half-open box.
typedef struct weft_box_t {
  int32_t rank;
  int64_t lo[WEFT_MAX_RANK], hi[WEFT_MAX_RANK];
} weft_box_t;
int64_t weft_box_elements(const weft_box_t* box); // 0 when empty along any dimension
bool weft_box_is_empty(const weft_box_t* box);
weft_box_t weft_box_intersect(const weft_box_t* a, const weft_box_t* b);
weft_box_t weft_box_hull(const weft_box_t* a, const weft_box_t* b); // of two; an empty one doesn't count
weft_box_t weft_box_of_shape(const weft_shape_t* shape);
bool weft_box_equal(const weft_box_t* a, const weft_box_t* b);

// The flat row-major index L of an element is written in mixed radix: L = (..(i0 * e1 + i1) * e2 + ..) + ik, with ij in
// [0, ej). The element belongs to the operand iff lo_j <= i_j < hi_j for all j; its coordinate along operand dimension d is
// offset[d] + sum over the factors j with dim_j == d of step_j * i_j. A factor with dim -1 contributes to none.
typedef struct weft_view_factor_t {
  int64_t extent, lo, hi;
  int32_t dim;
  int64_t step; // may be negative
} weft_view_factor_t;
typedef struct weft_view_t {
  int32_t factor_count, rank;
  weft_view_factor_t factor[WEFT_MAX_FACTORS];
  int64_t offset[WEFT_MAX_RANK];
} weft_view_t;

weft_view_t weft_view_identity(const weft_shape_t* shape);
// The view's coordinates of flat index `flat`. False: the element isn't part of the operand.
bool weft_view_apply(const weft_view_t* view, int64_t flat, int64_t out_coordinate[WEFT_MAX_RANK]);
// Hull, in the tensor's own coordinates, of the elements that land in `box` (operand coordinates). Never too small; exact
// when every operand dimension is made of one factor or is cut at multiples of the inner ones.
weft_box_t weft_view_preimage(const weft_view_t* view, const weft_shape_t* tensor_shape, const weft_box_t* box);
// Hull, in operand coordinates, of where the view's elements land; empty when it has none.
weft_box_t weft_view_image(const weft_view_t* view);
// How many elements of the tensor land in `box` (operand coordinates). Closed form.
int64_t weft_view_count(const weft_view_t* view, const weft_box_t* box);

// Composition on the consumer's side: `view` maps tensor -> coordinates of shape `shape`; the calls apply one more movement
// and update both. They return false, leaving both unchanged, when the result is no view (then a copy has to be made).
bool weft_view_reshape(weft_view_t* view, weft_shape_t* shape, const weft_shape_t* to);
bool weft_view_transpose(weft_view_t* view, weft_shape_t* shape, const int32_t* permutation); // out dim i = in dim perm[i]
bool weft_view_slice(weft_view_t* view, weft_shape_t* shape, const int64_t* start, const int64_t* size, const int64_t* step);
// Places the operand at `low` inside a larger one (pad, concat): shape becomes low + shape + high.
bool weft_view_pad(weft_view_t* view, weft_shape_t* shape, const int64_t* low, const int64_t* high);

weft_status_t weft_view_print(const weft_view_t* view, weft_text_t* text);
