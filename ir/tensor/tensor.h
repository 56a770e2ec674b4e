// The tensor IR: MLIR linalg on tensors plus the small `weft` dialect (dialect.c), through MLIR's C API.
#pragma once
#include <mlir-c/Diagnostics.h>
#include <mlir-c/IR.h>

#include "base/allocator.h"
#include "base/control.h"
#include "base/dtype.h"
#include "base/npy.h"
#include "base/text.h"

typedef struct weft_tensor_context_t weft_tensor_context_t;
// An MLIR context with all upstream dialects and passes, the weft dialect loaded, and a diagnostic handler that
// collects messages.
weft_status_t weft_tensor_context_create(weft_allocator_t allocator, weft_tensor_context_t** out_context);
void weft_tensor_context_destroy(weft_tensor_context_t* context);
MlirContext weft_tensor_context_mlir(weft_tensor_context_t* context);
weft_allocator_t weft_tensor_context_allocator(const weft_tensor_context_t* context);
// Diagnostics collected since the last call, as "location: message" lines; empties the collection. Valid until the next
// call.
const char* weft_tensor_take_diagnostics(weft_tensor_context_t* context);

weft_status_t weft_tensor_parse(weft_tensor_context_t* context, const char* path, MlirModule* out_module); // .mlir file
weft_status_t weft_tensor_print(MlirModule module, weft_text_t* text);
// Runs a textual pass pipeline, "builtin.module(canonicalize,cse,..)". dump_dir (or NULL) gets a file after each pass.
weft_status_t weft_tensor_run_pipeline(weft_tensor_context_t* context, MlirModule module, const char* pipeline,
                                       const char* dump_dir);

// Weft's own passes: MLIR's pass registry is closed to C, so the pipeline runner resolves their names from a table that
// lives as long as the context. They run on the module and take no options.
typedef struct weft_tensor_pass_t {
  const char* name;
  const char* description;
  weft_status_t (*run)(weft_tensor_context_t* context, MlirOperation module);
} weft_tensor_pass_t;
void weft_tensor_register_passes(weft_tensor_context_t* context, const weft_tensor_pass_t* table, int32_t count);

// The bytes of a dense or dense_resource constant, row-major, in weft_dtype_size bytes an element (bool: one byte).
// Freed by the caller.
weft_status_t weft_tensor_constant_bytes(weft_allocator_t allocator, MlirAttribute constant, void** out_data,
                                         size_t* out_size);
// The value of a constant whose elements are all equal. False: not a splat (or not known to be one).
bool weft_tensor_constant_splat(MlirAttribute constant, double* out_value);
// "op_type:node_name" of the innermost name in a location, file:line:column without one, "unknown" without either.
weft_status_t weft_tensor_location_name(MlirLocation location, weft_text_t* text);

// The function `main` of a module, or a null operation.
MlirOperation weft_tensor_find_main(MlirModule module);

bool weft_tensor_dtype(MlirType element_type, weft_dtype_e* out_dtype);
MlirType weft_tensor_type(MlirContext context, weft_dtype_e dtype); // signless integers
