// Private to passes: what the stages of lowering to the fabric share.
#pragma once
#include "passes/passes.h"
#include "passes/space.h"

// What the elements of a value are: all equal, or pieces of fabric tensors seen through views.
typedef struct weft_source_t {
  weft_dtype_e dtype;
  weft_shape_t shape;
  bool splat;
  double value; // of a splat
  bool has_fill;
  double fill;
  int32_t piece_count;
  weft_piece_t* piece; // fabric's arena
} weft_source_t;

typedef struct weft_known_t {
  MlirValue value;
  weft_source_t source;
} weft_known_t;
typedef struct weft_lowering_t {
  weft_allocator_t allocator;
  weft_fabric_t* fabric;
  WEFT_ARRAY(weft_tensor_t) tensor;
  WEFT_ARRAY(weft_kernel_t) kernel;
  WEFT_ARRAY(weft_known_t) known;
} weft_lowering_t;

// movement.c: values outside kernels. Movement becomes views; where it is none, a copy kernel is made.
weft_status_t weft_lower_source(weft_lowering_t* lowering, MlirValue value, weft_source_t* out_source);
weft_status_t weft_lower_remember(weft_lowering_t* lowering, MlirValue value, const weft_source_t* source);
// The source that is a whole tensor.
weft_status_t weft_lower_whole(weft_lowering_t* lowering, int32_t tensor, weft_source_t* out_source);
// A kernel that copies `source`, read at `rows` (of the result's dimensions), into a new tensor of shape `shape`; `op`
// names it.
weft_status_t weft_lower_copy(weft_lowering_t* lowering, MlirOperation op, const weft_source_t* source,
                              const weft_index_row_t* rows, const weft_shape_t* shape, weft_source_t* out_source);
weft_status_t weft_lower_copy_named(weft_lowering_t* lowering, const char* name, const weft_source_t* source,
                                    const weft_index_row_t* rows, const weft_shape_t* shape, weft_source_t* out_source);
weft_status_t weft_lower_constant(weft_lowering_t* lowering, const char* name, weft_dtype_e dtype,
                                  const weft_shape_t* shape, const void* data, weft_source_t* out_source);

// A kernel while it is being made. Buffers and operations grow; dims are those of the space.
typedef struct weft_scalar_t { // what a body's value is: an element of a buffer, or an immediate
  int32_t buffer;              // -1: immediate
  double immediate;
  weft_dtype_e dtype;
} weft_scalar_t;
typedef struct weft_made_t {
  MlirValue value;
  weft_scalar_t scalar;
} weft_made_t;
typedef struct weft_loop_t weft_loop_t; // lower_loop.c
typedef struct weft_draft_t {
  weft_lowering_t* lowering;
  weft_space_t space;
  weft_loop_t* loop;   // NULL: the kernel is no loop
  uint32_t sequential; // mask of the dimension that counts its trips
  WEFT_ARRAY(weft_buffer_t) buffer;
  WEFT_ARRAY(weft_operation_t) operation;
  WEFT_ARRAY(MlirValue) operand; // of each buffer: the value an OPERAND reads (null: none)
  WEFT_ARRAY(weft_made_t) made;  // tensors computed in the kernel
} weft_draft_t;

void weft_draft_deinitialize(weft_draft_t* draft);
uint32_t weft_buffer_dims(const weft_buffer_t* buffer); // mask of the dimensions that its rows depend on
// Whether the two lie in memory alike: the same rows, but for those that are always 0.
bool weft_buffer_same_layout(const weft_buffer_t* a, const weft_buffer_t* b);
weft_status_t weft_draft_add_buffer(weft_draft_t* draft, const weft_buffer_t* buffer, int32_t* out_index);
weft_status_t weft_draft_add_operation(weft_draft_t* draft, const weft_operation_t* operation);
// The operand buffer that reads `value` at `rows` (kernel dimensions); movement that only renames dimensions is peeled
// off. An immediate when the value is a splat.
weft_status_t weft_draft_operand(weft_draft_t* draft, MlirValue value, const weft_map_t* rows,
                                 weft_scalar_t* out_scalar);

// body.c: the operations of one linalg.generic, whose loop l is dimension loop[l]. result[i]: whether result i leaves
// the kernel.
weft_status_t weft_draft_generic(weft_draft_t* draft, const weft_generic_t* generic, const int32_t loop[WEFT_MAX_DIMS],
                                 const bool* leaves);
// storage.c: temporaries share memory where their lives allow it.
weft_status_t weft_draft_share_storage(weft_draft_t* draft);
// kinds.c: dimension kinds, the reducing operation and its combiner.
void weft_kernel_classify(weft_kernel_t* kernel);
// draft.c: names, kinds, arena copies; appends the kernel and the tensors of its results. out_tensor[b]: of buffer b or
// -1.
weft_status_t weft_draft_finish(weft_draft_t* draft, const char* name, const char* nodes);
// relay.c: copy kernels where more streams would begin or end at a kernel's tiles than a router has colours. After all
// else.
weft_status_t weft_lower_relays(weft_lowering_t* lowering);
// lower_kernel.c
weft_status_t weft_lower_kernel(weft_lowering_t* lowering, MlirOperation kernel, const bool* result_is_live);
// Adds the op's node to a list of names, once.
weft_status_t weft_lower_add_node(weft_text_t* nodes, MlirOperation op);
// lower_loop.c: an scf.for.
weft_status_t weft_lower_loop(weft_lowering_t* lowering, MlirOperation loop, const bool* result_is_live);
// What an op of the loop's body reads at `rows`.
weft_status_t weft_loop_operand(weft_loop_t* loop, MlirValue value, const weft_map_t* rows, weft_scalar_t* out_scalar);
