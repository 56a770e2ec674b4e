// A graph's names and the order of its nodes: of the model, of a body (of If, Loop, Scan) or of a function.
#pragma once
#include "frontend/node.h"

enum { WEFT_ONNX_FROM_INPUT = -1, WEFT_ONNX_FROM_INITIALIZER = -2 };
typedef struct weft_onnx_name_t {
  const char* name;
  int32_t producer; // a node's index, or one of the above
  value_t* value;   // NULL until it is made
  bool is_left_out; // an input of a function that its call does not give
} weft_onnx_name_t;

typedef struct weft_onnx_uses_t { // what a node needs: its inputs, and what its bodies take from around them
  size_t count;
  const char** name;
} weft_onnx_uses_t;

struct weft_onnx_graph_t {
  const Onnx__GraphProto* proto;
  const weft_onnx_graph_t* outer; // whose values a body sees too; NULL: a model's or a function's graph
  const node_t* caller;           // of a function, and of the bodies in it: attributes may refer to the call's
  size_t opset_count;
  Onnx__OperatorSetIdProto* const* opset;
  const char* prefix;      // of its nodes' names: "loop[2]/"
  int32_t depth;           // of calls and bodies
  weft_onnx_name_t* names; // sorted
  size_t name_count;
  weft_onnx_uses_t* uses; // of each node
  int32_t* order;         // nodes, producers first; the file's order where it is one
  const char** label;     // of each node: "Conv 'conv1'"
};

// The fields up to `depth` are set; makes the others. Errors: duplicate names, an input that nobody makes, a cycle
// (names the nodes on it).
weft_status_t weft_onnx_graph_build(weft_arena_t* arena, weft_onnx_graph_t* graph);
// The labels carry the prefix: again after it changed.
weft_status_t weft_onnx_graph_label(weft_arena_t* arena, weft_onnx_graph_t* graph);
weft_onnx_name_t* weft_onnx_graph_find(const weft_onnx_graph_t* graph, const char* name); // NULL: not of this graph
// Of this graph or one around it.
weft_onnx_name_t* weft_onnx_graph_resolve(const weft_onnx_graph_t* graph, const char* name);
// The version of a domain that the graph's nodes use; 0: it names none.
int64_t weft_onnx_graph_opset(const weft_onnx_graph_t* graph, const char* domain);
bool weft_onnx_is_default_domain(const char* domain);
// A node's name; its first output's where it has none.
const char* weft_onnx_node_name(const Onnx__NodeProto* node);
static inline const char* weft_onnx_text(const char* text) {
  return text ? text : "";
} // protobuf leaves NULL
