// ONNX file -> tensor IR.
#pragma once
#include "base/arena.h"
#include "base/digest.h"
#include "ir/tensor/tensor.h"

typedef struct weft_frontend_dim_t { const char* name; int64_t value; } weft_frontend_dim_t; // --dim NAME=N
typedef struct weft_frontend_io_t {
  const char* name;
  weft_dtype_e dtype;
  int32_t rank;
  int64_t extent[8];
} weft_frontend_io_t;
// What importing made of a node of the model's graph. X(name, text)
#define WEFT_FRONTEND_BECOMES(X)                                                                                       \
  X(CONSTANT, "constant")       /* known while importing */                                                            \
  X(NOTHING, "nothing")         /* its output is its input */                                                          \
  X(MOVEMENT, "movement")       /* elements take other places: streams do that on their way */                         \
  X(COMPUTATION, "computation")
typedef enum weft_frontend_becomes_e {
#define X(name, text) WEFT_FRONTEND_##name,
  WEFT_FRONTEND_BECOMES(X)
#undef X
} weft_frontend_becomes_e;
typedef struct weft_frontend_node_t {
  const char* name; // as in the locations of what was made of it: "op_type:node_name"
  const char* op_type;
  weft_frontend_becomes_e becomes;
} weft_frontend_node_t;
typedef struct weft_model_t {
  weft_arena_t* arena;   // owns the strings below
  const char* name;
  weft_digest_t digest;  // of the file's bytes
  MlirModule module;     // func.func @main; arguments and results in the model's order, named by arg/result attributes weft.name
  int32_t input_count, output_count;
  weft_frontend_io_t* input;
  weft_frontend_io_t* output;
  int32_t node_count; // of the graph, without those inside of functions and bodies, producers first
  weft_frontend_node_t* node;
} weft_model_t;

// Imports with static shapes. Weights become unmanaged resource blobs that point into the mapped file or the arena (so the arena has to
// outlive the module). Every op's location is its ONNX node's name (NameLoc "op_type:node_name"). Errors: not ONNX, truncated, a cycle or a
// value that nobody makes, a missing or malformed initializer, shapes that don't match (node, expected, got), an unknown dimension
// (names it and the --dim option), and ALL unsupported nodes at once: name, op, opset, why.
weft_status_t weft_frontend_import(weft_tensor_context_t* context, weft_arena_t* arena, const char* path,
                                   const weft_frontend_dim_t* dims, int32_t dim_count, weft_model_t* out_model);
// As weft_frontend_import, with graph inputs given as constants, so that shapes, axes, pads and the like may come from
// them: bound[i].name names the input, which is then none of the model's inputs. Errors: no input of this name (lists
// those there are), another type or shape than the model declares.
weft_status_t weft_frontend_import_bound(weft_tensor_context_t* context, weft_arena_t* arena, const char* path,
                                         const weft_frontend_dim_t* dims, int32_t dim_count,
                                         const weft_host_tensor_t* bound, int32_t bound_count,
                                         weft_model_t* out_model);
// The operator table: a line each, operator, versions, notes. Markdown for docs/operators.md.
weft_status_t weft_frontend_print_operators(bool markdown, weft_text_t* text);
// Reads a TensorProto file (.pb).
weft_status_t weft_frontend_read_tensor(weft_arena_t* arena, const char* path, weft_host_tensor_t* out_tensor);
weft_status_t weft_frontend_write_tensor(weft_allocator_t allocator, const char* path, const weft_host_tensor_t* tensor);
