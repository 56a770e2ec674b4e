// Private to ir/tensor: what a tensor context holds.
#pragma once
#include "ir/tensor/tensor.h"

struct weft_tensor_context_t {
  weft_allocator_t allocator;
  MlirContext mlir;
  MlirDiagnosticHandlerID handler;
  weft_text_t collecting; // diagnostics since the last take
  weft_text_t taken;      // what the last take handed out
  const weft_tensor_pass_t* pass;
  int32_t pass_count;
};

// Loads the weft dialect into the context.
weft_status_t weft_tensor_load_dialect(weft_tensor_context_t* context);
// A status with `code` made of `what` and the diagnostics collected so far.
weft_status_t weft_tensor_diagnosed(weft_tensor_context_t* context, weft_status_code_e code, const char* what);
// MlirStringCallback that appends to a weft_tensor_sink_t, keeping the first failure.
typedef struct weft_tensor_sink_t {
  weft_text_t* text;
  weft_status_t status;
} weft_tensor_sink_t;
void weft_tensor_sink(MlirStringRef piece, void* sink);
