// The nodes of a graph, in order: of the model's, and of the graphs inside of nodes.
#pragma once
#include "base/text.h"
#include "frontend/graph.h"

// Lists what cannot be imported as far as the nodes' kinds tell. `list` is scratch for the message.
weft_status_t weft_onnx_refuse_unsupported(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                           weft_text_t* list);
weft_status_t weft_onnx_read_initializers(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph);
// What only shows when a node is emitted is collected too: nodes that do not depend on it are still tried.
weft_status_t weft_onnx_emit_nodes(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_text_t* list);

// --- Graphs inside of a node. A body sees the values around it; a function (graph->caller is set) sees none.
// "name[index]/" after the prefix of the node's graph; index < 0: "name/".
weft_status_t weft_onnx_inner_prefix(const node_t* node, int64_t index, const char** out_prefix);
// A body of the node's attribute `name`.
weft_status_t weft_onnx_inner_body(node_t* node, const char* name, weft_onnx_graph_t* out_graph);
// Checks, orders, reads the initializers. weft_onnx_inner_body does it.
weft_status_t weft_onnx_inner_open(node_t* node, weft_onnx_graph_t* graph);
// Emits the nodes with these inputs (NULL: left out); the outputs are those of the graph. May be called again, as a
// loop does: constants are made once.
weft_status_t weft_onnx_inner_run(node_t* node, weft_onnx_graph_t* graph, value_t* const* inputs, value_t** outputs);
