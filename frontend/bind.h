// Graph inputs that the user gives as constants.
#pragma once
#include "frontend/frontend.h"
#include "frontend/graph.h"

// Each tensor's value in the graph, which then is no input any more, and no initializer of that name. Errors: no input
// of the name (lists those there are), twice the same, another type, a shape that the declared one or `dims` exclude.
weft_status_t weft_onnx_bind_inputs(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph,
                                    const weft_host_tensor_t* bound, int32_t bound_count,
                                    const weft_frontend_dim_t* dims, int32_t dim_count);
