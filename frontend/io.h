// The graph's inputs and outputs: static shapes from what the model declares and the dimensions the user gives.
#pragma once
#include "frontend/frontend.h"
#include "frontend/graph.h"

// The inputs that are no initializers, in the model's order; gives each its value in the graph and a block argument.
// Errors name every unknown dimension and the --dim option.
weft_status_t weft_onnx_import_inputs(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph,
                                      const weft_frontend_dim_t* dims, int32_t dim_count, weft_model_t* model);
// The outputs, checked against their declared types where those are static; values[i] is made in `builder`'s block.
weft_status_t weft_onnx_import_outputs(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                       weft_model_t* model, MlirValue** out_values);
