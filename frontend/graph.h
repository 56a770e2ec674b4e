// The graph's names and the order of its nodes.
#pragma once
#include "frontend/node.h"

enum { WEFT_ONNX_FROM_INPUT = -1, WEFT_ONNX_FROM_INITIALIZER = -2 };
typedef struct weft_onnx_name_t {
  const char* name;
  int32_t producer; // a node's index, or one of the above
  value_t* value;   // NULL until it is made
} weft_onnx_name_t;

typedef struct weft_onnx_graph_t {
  const Onnx__GraphProto* proto;
  weft_onnx_name_t* names; // sorted
  size_t name_count;
  int32_t* order;     // nodes, producers first; the file's order where it is one
  const char** label; // of each node: "Conv 'conv1'"
} weft_onnx_graph_t;

// Errors: duplicate names, an input that nobody makes, a cycle (names the nodes on it).
weft_status_t weft_onnx_graph_build(weft_arena_t* arena, const Onnx__GraphProto* proto, weft_onnx_graph_t* out_graph);
weft_onnx_name_t* weft_onnx_graph_find(const weft_onnx_graph_t* graph, const char* name); // NULL: unknown
// A node's name; its first output's where it has none.
const char* weft_onnx_node_name(const Onnx__NodeProto* node);
static inline const char* weft_onnx_text(const char* text) {
  return text ? text : "";
} // protobuf leaves NULL
