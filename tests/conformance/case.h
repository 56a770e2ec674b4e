// A conformance case as it lies on disk: a model and data sets of inputs and expected outputs.
#pragma once
#include "base/arena.h"
#include "base/npy.h"
#include "frontend/frontend.h"
#include "onnx.pb-c.h"
#include "tests/conformance/verdict.h"

typedef struct case_names_t {
  int32_t count;
  const char** name; // sorted
} case_names_t;
// The cases of a folder: subfolders test_*, and files NAME.onnx (with NAME_output_M.pb beside them).
weft_status_t case_list(weft_arena_t* arena, const char* folder, case_names_t* out_names);

typedef struct data_set_t {
  weft_host_tensor_t* input; // of the case's input_count
  weft_host_tensor_t* output;
} data_set_t;
typedef struct case_t {
  weft_arena_t* arena;
  const char* path; // of the model
  Onnx__ModelProto* model;
  int32_t input_count, output_count, data_set_count;
  data_set_t* data_set;
  int32_t bound_count; // inputs that were made constant: weft_frontend_import_bound takes them
  weft_host_tensor_t* bound;
} case_t;
// Reads model and data. A case that can't be run from the outset has its verdict set, and is not read further: nothing
// to run, values that are no tensors, operators or types that are not supported.
weft_status_t case_read(weft_arena_t* arena, const char* folder, const char* name, case_t* out_case, record_t* record);
// Values for the model's open dimensions, from the shapes of a data set.
weft_status_t case_dims(const case_t* test, const data_set_t* set, weft_frontend_dim_t** out_dims, int32_t* out_count);
// Parameters that a model takes as inputs (axes, shapes, pads, scales) become constants with the values that they have
// in all data sets: moves them from the data sets' inputs to `bound`. Parameters are lists and numbers after the first
// input, or, with_first, the first input if it is a number or a list of integers. False: there are none (left).
weft_status_t case_bind(case_t* test, bool with_first, bool* out_bound);
