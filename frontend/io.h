// The graph's inputs and outputs: static shapes from what the model declares and the dimensions the user gives.
#pragma once
#include "frontend/frontend.h"
#include "frontend/graph.h"

// The inputs that are no initializers, in the model's order; gives each its value in the graph and a block argument.
// Errors name every unknown dimension and the --dim option.
weft_status_t weft_onnx_import_inputs(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_model_t* model);
// An axis of a result whose extent depends on elements: what the model declares, or else --dim gives, by the
// dimension's name or as OUTPUT.AXIS. UNSUPPORTED, naming the option, without either.
weft_status_t weft_onnx_declared_extent(const node_t* node, int32_t rank, int32_t axis, int64_t* out);
// After all nodes: INVALID_ARGUMENT for a --dim that nothing asked for.
weft_status_t weft_onnx_check_dims_used(const weft_onnx_builder_t* builder);
// The outputs, checked against their declared types where those are static; values[i] is made in `builder`'s block.
weft_status_t weft_onnx_import_outputs(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                       weft_model_t* model, MlirValue** out_values);
