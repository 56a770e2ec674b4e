// The fabric IR: where a network runs. Kernels (what each tile does), streams (what travels), regions (where each kernel
// sits), routes (how each stream gets there). Plain C; knows no MLIR. One arena owns everything.
//
// Stages: KERNELS  tensors, kernels with their alternatives
//         PLACED   + chosen alternative, region and tile list of every kernel; streams
//         ROUTED   + route (router entries with colours) of every stream
#pragma once
#include "base/arena.h"
#include "base/control.h"
#include "base/digest.h"
#include "ir/fabric/view.h"
#include "machine/defects.h"

enum {
  WEFT_MAX_DIMS = 12,       // iteration dimensions of a kernel
  WEFT_MAX_SOURCES = 3,     // operands of an operation
  WEFT_MAX_AXIS_FACTORS = 4, // dimensions split along one axis
  WEFT_MAX_SPARE = 62,       // places of an operand's ring beyond the first two
  WEFT_FABRIC_FORMAT = 1    // version of the text form
};
#define WEFT_HOST_KERNEL (-1) // stands for the host wherever a kernel index is asked for; it has one logical tile, 0

typedef enum weft_stage_e { WEFT_STAGE_KERNELS, WEFT_STAGE_PLACED, WEFT_STAGE_ROUTED, WEFT_STAGE_COUNT } weft_stage_e;

typedef enum weft_tensor_kind_e { WEFT_TENSOR_INPUT, WEFT_TENSOR_CONSTANT, WEFT_TENSOR_RESULT } weft_tensor_kind_e;
typedef struct weft_tensor_t {
  const char* name; // ONNX value name
  weft_tensor_kind_e kind;
  weft_dtype_e dtype;
  weft_shape_t shape;
  int32_t kernel;       // RESULT: which kernel makes it
  int32_t buffer;       // RESULT: in which of its buffers
  const uint8_t* data;  // CONSTANT: row-major, little-endian, weft_shape_elements * size bytes
} weft_tensor_t;

// PARALLEL  may be split; appears with coefficient 1 in every result's map.
// REDUCTION may be split: partial results along it are combined by a reduce chain.
// INTERNAL  stays whole inside a tile.
// SEQUENTIAL stays whole, too, and is the outermost: the operations that loop over it run, in their order, once for each of
//           its indices, one after the other; those before them once, before. See weft_split_is_feedback.
typedef enum weft_dim_kind_e {
  WEFT_DIM_PARALLEL,
  WEFT_DIM_REDUCTION,
  WEFT_DIM_INTERNAL,
  WEFT_DIM_SEQUENTIAL
} weft_dim_kind_e;
typedef struct weft_dim_t {
  int64_t extent;
  weft_dim_kind_e kind;
} weft_dim_t;

// Row r of an index map: coordinate r = offset + sum of coefficient[d] * iteration index d.
typedef struct weft_index_row_t {
  int32_t coefficient[WEFT_MAX_DIMS];
  int64_t offset;
} weft_index_row_t;

typedef enum weft_buffer_kind_e {
  WEFT_BUFFER_OPERAND, // assembled from pieces: each a tensor (input, constant or another kernel's result) through a view
  WEFT_BUFFER_TEMPORARY,
  WEFT_BUFFER_RESULT   // like TEMPORARY, and becomes `tensor` on the owner tiles
} weft_buffer_kind_e;
typedef struct weft_piece_t {
  int32_t tensor;
  weft_view_t view; // tensor -> buffer coordinates
} weft_piece_t;
typedef struct weft_buffer_t {
  const char* name;
  weft_buffer_kind_e kind;
  weft_dtype_e dtype;
  int32_t rank;
  weft_index_row_t row[WEFT_MAX_RANK]; // iteration point -> buffer coordinates (may lie outside the pieces: padding)
  bool has_fill; // OPERAND: elements that no piece covers hold `fill` (padding); without has_fill there are none
  double fill;
  int32_t spare; // OPERAND, PLACED and later: copies in a tile's memory beyond those that `doubled` says (depths.h)
  int32_t piece_count; // OPERAND
  weft_piece_t* piece;
  int32_t tensor; // RESULT
} weft_buffer_t;

// dst[p] = op(src0[p], ..) for all p of the nest over `loops` (bit d: iteration dimension d), in dimension order.
typedef struct weft_operation_t {
  weft_op_e op;
  weft_dtype_e dtype; // of the computation (of the sources)
  uint32_t loops;
  int32_t destination;               // buffer
  int32_t source[WEFT_MAX_SOURCES];  // buffer, or -1: immediate
  double immediate[WEFT_MAX_SOURCES];
} weft_operation_t;

// One factor of a split: `parts` blocks of block = ceil(extent / parts) along dimension `dim`; ceil(extent / block) == parts.
typedef struct weft_axis_factor_t {
  int32_t dim;
  int32_t parts;
} weft_axis_factor_t;
// Logical tile (ly, lx), index ly * gx + lx. Along an axis the factors are mixed-radix digits, first outermost. REDUCTION
// factors come last on their axis and only on one of the two axes; the tile whose reduction digits are all the last ones
// owns the result, and the chain runs towards it.
typedef struct weft_split_t {
  int32_t y_count, x_count;
  weft_axis_factor_t y[WEFT_MAX_AXIS_FACTORS], x[WEFT_MAX_AXIS_FACTORS];
} weft_split_t;

typedef struct weft_alternative_t {
  weft_split_t split;
  int32_t gy, gx;          // logical grid
  int64_t cycles;          // compute and chain, of the busiest tile, for one input
  int64_t chain_cycles;    // thereof the reduce chain
  int64_t stream_cycles;   // elements through the busiest ramp, in or out
  bool doubled;            // operands that arrive in streams and results have two buffers, so that streams and compute overlap
  int64_t step_cycles;     // from one input to the next, when neither producers nor consumers nor the way there hold it up
  int64_t bytes;           // of the fullest tile: code (estimated), constants, buffers
} weft_alternative_t;

typedef struct weft_region_t {
  int32_t x, y, width, height; // tiles
  bool transposed;             // logical y runs along physical x
} weft_region_t;

typedef struct weft_kernel_t {
  const char* name; // of the anchor node
  const char* nodes; // all ONNX nodes in it, separated by spaces
  int32_t dim_count;
  weft_dim_t dim[WEFT_MAX_DIMS];
  int32_t buffer_count;
  weft_buffer_t* buffer;
  int32_t operation_count;
  weft_operation_t* operation;
  // The operation that reduces over the REDUCTION dimensions, or -1. Operations up to it run on every tile; when a
  // REDUCTION dimension is split, its destination is then combined along the chain with `combiner`, and the later ones run
  // on owner tiles only. Its destination starts from the combiner's neutral value.
  int32_t reduce_operation;
  weft_op_e combiner;
  int32_t alternative_count;
  weft_alternative_t* alternative;
  // PLACED and later
  int32_t chosen; // alternative, -1 before
  weft_region_t region;
  int32_t* tile; // [gy * gx] physical tile of each logical tile
} weft_kernel_t;

// The order in which the elements of a tensor travel. A level contributes step * index to one dimension of the tensor; the
// first level is outermost. The element at coordinates c exists in the stream iff box.lo <= c < box.hi. So uneven blocks and
// parts of a tensor need no other form.
enum { WEFT_MAX_LEVELS = 16 };
typedef struct weft_walk_level_t {
  int64_t extent;
  int32_t dim;
  int64_t step;
} weft_walk_level_t;
typedef struct weft_walk_t {
  int32_t level_count;
  int32_t source_levels; // the first ones, which count the sources: each combination is one source tile's segment
  weft_walk_level_t level[WEFT_MAX_LEVELS];
  weft_box_t box; // in tensor coordinates
} weft_walk_t;

typedef enum weft_stream_kind_e {
  WEFT_STREAM_DATA,  // tensor -> operand buffers of one kernel (or the host)
  WEFT_STREAM_CHAIN  // one hop of a reduce chain
} weft_stream_kind_e;
typedef struct weft_endpoint_t {
  int32_t logical; // logical tile of the kernel
  int64_t elements; // source: of its segment; sink: that its filter takes
} weft_endpoint_t;
typedef struct weft_router_entry_t {
  int32_t tile;
  uint8_t colour;       // of this stream in this router
  uint8_t input_count;
  uint8_t input[WEFT_DIRECTION_COUNT]; // the switch: cyclic list of directions where wavelets come from
  uint16_t outputs;     // bit per direction
  uint8_t output_colour[WEFT_DIRECTION_COUNT]; // colour in the next router, for each output (RAMP: own colour)
} weft_router_entry_t;
typedef struct weft_stream_t {
  weft_stream_kind_e kind;
  int32_t tensor;        // DATA; -1 for chains
  int32_t source_kernel; // or WEFT_HOST_KERNEL
  int32_t sink_kernel;   // or WEFT_HOST_KERNEL
  int32_t sink_buffer, sink_piece; // DATA: buffer of the sink kernel (host: index of the output), and its piece
  weft_dtype_e dtype;
  weft_walk_t walk;      // DATA
  int32_t source_count, sink_count;
  weft_endpoint_t* source; // in the order of their segments; empty segments are left out
  weft_endpoint_t* sink;
  int64_t elements, wavelets; // of the whole stream
  // ROUTED
  int32_t source_port, sink_port; // host ports, or -1
  int32_t entry_count;
  weft_router_entry_t* entry; // upstream before downstream; one per (tile, colour)
} weft_stream_t;

// Whether a stream carries a result back to its own kernel.
static inline bool weft_stream_is_feedback(const weft_stream_t* stream) {
  return stream->kind == WEFT_STREAM_DATA && stream->source_kernel >= 0 && stream->source_kernel == stream->sink_kernel;
}

// What the host receives: assembled from pieces as an operand is; row-major in host memory.
typedef struct weft_output_t {
  const char* name;
  weft_dtype_e dtype;
  weft_shape_t shape;
  bool has_fill;
  double fill;
  int32_t piece_count;
  weft_piece_t* piece; // of INPUT or RESULT tensors; constant parts are folded into kernels by the passes
} weft_output_t;

typedef struct weft_fabric_t {
  weft_arena_t arena;
  weft_stage_e stage;
  const char* model_name;
  weft_digest_t model_digest, machine_digest, defects_digest; // the last two from PLACED on
  uint64_t seed;
  int32_t tensor_count, kernel_count, stream_count, output_count;
  weft_tensor_t* tensor;
  weft_kernel_t* kernel; // topological order
  weft_stream_t* stream;
  weft_output_t* output;
  int32_t input_count;
  int32_t* input; // tensors of kind INPUT in the model's order
} weft_fabric_t;

void weft_fabric_initialize(weft_allocator_t allocator, weft_fabric_t* out_fabric);
void weft_fabric_deinitialize(weft_fabric_t* fabric);

// The readable text form of any stage: `path` and, for constants, `path`.bin beside it (referred to by offset, bound by
// digest). Reading back gives the same text.
weft_status_t weft_fabric_write(const weft_fabric_t* fabric, weft_allocator_t allocator, const char* path);
weft_status_t weft_fabric_read(weft_allocator_t allocator, const char* path, weft_fabric_t* out_fabric);
weft_status_t weft_fabric_print(const weft_fabric_t* fabric, weft_text_t* text); // without the constants' bytes
// INVALID_INPUT, showing both, unless the fabric's digests are those of what it is used with. NULL: don't compare.
weft_status_t weft_fabric_match(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects);
// Internal consistency (indices, ranks, kinds, split rules): on what passes made and on what was read from a file.
weft_status_t weft_fabric_verify(const weft_fabric_t* fabric);
