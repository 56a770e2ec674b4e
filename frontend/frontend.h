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
typedef struct weft_model_t {
  weft_arena_t* arena;   // owns the strings below
  const char* name;
  weft_digest_t digest;  // of the file's bytes
  MlirModule module;     // func.func @main; arguments and results in the model's order, named by arg/result attributes weft.name
  int32_t input_count, output_count;
  weft_frontend_io_t* input;
  weft_frontend_io_t* output;
} weft_model_t;

// Imports with static shapes. Weights become unmanaged resource blobs that point into the mapped file or the arena (so the arena has to
// outlive the module). Every op's location is its ONNX node's name (NameLoc "op_type:node_name"). Errors: not ONNX, truncated, a cycle or a
// value that nobody makes, a missing or malformed initializer, shapes that don't match (node, expected, got), an unknown dimension
// (names it and the --dim option), and ALL unsupported nodes at once: name, op, opset, why.
weft_status_t weft_frontend_import(weft_tensor_context_t* context, weft_arena_t* arena, const char* path,
                                   const weft_frontend_dim_t* dims, int32_t dim_count, weft_model_t* out_model);
// The operator table: a line each, operator, versions, notes. Markdown for docs/operators.md.
weft_status_t weft_frontend_print_operators(bool markdown, weft_text_t* text);
// Reads a TensorProto file (.pb).
weft_status_t weft_frontend_read_tensor(weft_arena_t* arena, const char* path, weft_host_tensor_t* out_tensor);
weft_status_t weft_frontend_write_tensor(weft_allocator_t allocator, const char* path, const weft_host_tensor_t* tensor);
