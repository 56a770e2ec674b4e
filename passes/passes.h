// Tensor IR -> tensor IR passes, and tensor IR -> fabric IR. The only module that sees both.
#pragma once
#include "ir/fabric/fabric.h"
#include "ir/tensor/tensor.h"

// Makes Weft's own passes known to the pass pipeline parser under names weft-*: see passes/pipeline.c for the table.
weft_status_t weft_passes_register(weft_tensor_context_t* context);
// The default pipeline's text.
const char* weft_passes_default_pipeline(void);
// With products of f32 calculated in another type: f32 (the default pipeline), f16 or bf16; NULL for others.
const char* weft_passes_pipeline_for(weft_dtype_e products);
// Table of Weft's passes, "name  description" lines.
weft_status_t weft_passes_print(weft_text_t* text);

typedef struct weft_passes_names_t {
  const char* const* input;
  const char* const* output;
  // The model's types, or NULL: integers of the tensor IR have no sign.
  const weft_dtype_e* input_dtype;
  const weft_dtype_e* output_dtype;
} weft_passes_names_t;
// A module whose function main consists of weft.kernel ops and movements -> fabric IR, stage KERNELS, no alternatives
// yet. Constants are copied into the fabric's arena or refer to resource blobs (the module must outlive the fabric).
weft_status_t weft_passes_lower_to_fabric(weft_tensor_context_t* context, MlirModule module,
                                          const weft_passes_names_t* names, weft_fabric_t* fabric);
