// The few shapes all operators are made of. Each emitter folds when its inputs are known, so that shape arithmetic and
// work on weights happens while importing; otherwise it appends operations to main.
#pragma once
#include "frontend/node.h"

// A known value over `data` (arena, row-major), or a run-time value of an operation's result.
weft_status_t weft_onnx_known(node_t* node, weft_dtype_e dtype, const shape_t* shape, const void* data, value_t** out);
weft_status_t weft_onnx_known_list(node_t* node, int32_t count, const int64_t* values, value_t** out); // 1-D i64
weft_status_t weft_onnx_number(node_t* node, weft_dtype_e dtype, double number, value_t** out);        // rank 0
// The value as an MLIR value: a constant is appended to main at its first use.
weft_status_t weft_onnx_materialize(weft_onnx_builder_t* builder, MlirLocation location, value_t* value,
                                    MlirValue* out);

// --- The general form: linalg.generic.
enum { WEFT_ONNX_MAX_NEST = 12, WEFT_ONNX_MAX_OPERANDS = 8 };
typedef struct weft_onnx_axis_map_t { // an operand's axis: offset + stride0 * dim0 + stride1 * dim1; dim1 -1: none
  int32_t dim0, dim1;
  int64_t stride0, stride1, offset;
} weft_onnx_axis_map_t;
static inline weft_onnx_axis_map_t weft_onnx_along(int32_t dim) {
  return (weft_onnx_axis_map_t){dim, -1, 1, 0, 0};
}
typedef struct weft_onnx_operand_t {
  value_t* value; // NULL: a window, only its shape counts; its extents are those of the axes' dimensions
  int32_t rank;
  weft_onnx_axis_map_t axis[WEFT_ONNX_MAX_RANK];
} weft_onnx_operand_t;
// argument[operands]: the accumulator, when reducing.
typedef scalar_t (*weft_onnx_body_fn)(body_t* body, const scalar_t* argument);
typedef struct weft_onnx_generic_t {
  int32_t rank; // of the iteration space
  int64_t extent[WEFT_ONNX_MAX_NEST];
  uint32_t reduction; // mask of reducing dimensions; the result has the others, in order
  int32_t operand_count;
  weft_onnx_operand_t operand[WEFT_ONNX_MAX_OPERANDS];
  weft_dtype_e dtype; // of the result
  double initial;     // of the accumulator
  weft_onnx_body_fn body;
  const double* p; // parameters of the body
} weft_onnx_generic_t;
weft_status_t weft_onnx_generic(node_t* node, const weft_onnx_generic_t* generic, value_t** out);

// --- Pointwise with numpy broadcasting. The body's result has dtype `dtype`.
weft_status_t weft_onnx_pointwise(node_t* node, weft_onnx_body_fn body, const double* p, weft_dtype_e dtype,
                                  int32_t count, value_t* const* inputs, value_t** out);
weft_status_t weft_onnx_broadcast_shape(const node_t* node, const shape_t* a, const shape_t* b, shape_t* out);
weft_status_t weft_onnx_cast(node_t* node, value_t* value, weft_dtype_e dtype, value_t** out);
// Broadcasts to a shape; a repetition of the elements.
weft_status_t weft_onnx_expand(node_t* node, value_t* value, const shape_t* shape, value_t** out);

// --- Reductions over a mask of axes. keep: reduced axes stay with extent 1.
weft_status_t weft_onnx_reduce(node_t* node, weft_onnx_body_fn body, double initial, value_t* value, uint32_t axes,
                               bool keep, value_t** out);
scalar_t weft_onnx_body_sum(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_max(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_min(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_product(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_mul_add(body_t* body, const scalar_t* argument); // acc + a * b in the accumulator's type
// f32 for narrower floats, else the type itself.
weft_dtype_e weft_onnx_accumulator(weft_dtype_e dtype);
// The type's lowest or highest value, -inf or +inf for floats.
double weft_onnx_lowest(weft_dtype_e dtype);
double weft_onnx_highest(weft_dtype_e dtype);

// --- Movement.
weft_status_t weft_onnx_reshape(node_t* node, value_t* value, const shape_t* shape, value_t** out);
weft_status_t weft_onnx_transpose(node_t* node, value_t* value, const int32_t* permutation, value_t** out);
weft_status_t weft_onnx_slice(node_t* node, value_t* value, const int64_t* offset, const int64_t* size,
                              const int64_t* step, value_t** out); // steps > 0
weft_status_t weft_onnx_pad(node_t* node, value_t* value, const int64_t* low, const int64_t* high, double fill,
                            value_t** out); // negative: crops
weft_status_t weft_onnx_concat(node_t* node, int32_t axis, int32_t count, value_t* const* inputs, value_t** out);
// out[.., i, ..] = value[.., index[i], ..]: one piece where the list walks through a box, else slices of its runs,
// concatenated; many of them become a copy where that is one piece.
weft_status_t weft_onnx_take(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                             value_t** out);
// The same when the list walks through a box: one piece. *out_done is false for other lists.
weft_status_t weft_onnx_take_box(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                                 value_t** out, bool* out_done);
// The same for any list that two nested ranges walk through, backwards, overlapping or on the spot as they like: a
// copy, not only movement.
weft_status_t weft_onnx_take_walk(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                                  value_t** out, bool* out_done);
// data with updates[u, ..] at point[u], which gives the first `width` coordinates, when the points walk through a box:
// what is around it and the updates are few pieces. *out_done is false for other points, and when two are equal.
weft_status_t weft_onnx_put_box(node_t* node, value_t* data, int32_t width, int64_t count, const int64_t* point,
                                value_t* updates, value_t** out, bool* out_done);
// Keeps, drops or inserts extents of 1 only.
weft_status_t weft_onnx_unsqueeze(node_t* node, value_t* value, int32_t axis, value_t** out);

// --- Loops: the trips of a recurrence, one after the other.
enum { WEFT_ONNX_MAX_STATES = 2 };
typedef struct weft_onnx_loop_t weft_onnx_loop_t;
// One trip: next[i] from state[i], of the same type. What is computed outside and used here has to be hoisted.
typedef weft_status_t (*weft_onnx_step_fn)(node_t* node, const weft_onnx_loop_t* loop, value_t* const* state,
                                           value_t** next, value_t** out_row);
struct weft_onnx_loop_t {
  int64_t trips;  // one trip makes no loop: its operations stand where the loop would
  bool backwards; // the last row first
  bool collects;  // the rows that the trips give, of the type of state 0
  int32_t state_count;
  value_t* state[WEFT_ONNX_MAX_STATES]; // before the first trip
  weft_onnx_step_fn step;
  void* self;
  MlirValue row; // while a trip is made: the index of its row; null when there is but one
};
// out_state[i]: after the last trip; out_rows, if it collects: [trips, ...].
weft_status_t weft_onnx_loop(node_t* node, weft_onnx_loop_t* loop, value_t** out_state, value_t** out_rows);
// This trip's row of a value [trips, ...], which is hoisted.
weft_status_t weft_onnx_loop_row(node_t* node, const weft_onnx_loop_t* loop, value_t* value, value_t** out);
// Makes a known value a constant before the loop.
weft_status_t weft_onnx_hoist(node_t* node, value_t* value);
