// What an operator sees: its node, its inputs, its attributes, and where to put its outputs.
#pragma once
#include "base/status.h"
#include "frontend/frontend.h"
#include "frontend/scalar.h"
#include "frontend/value.h"
#include "onnx.pb-c.h"

#define TRY WEFT_RETURN_IF_ERROR

typedef weft_onnx_value_t value_t; // short in operator code
typedef weft_onnx_shape_t shape_t;

typedef struct weft_onnx_builder_t { // where values are made
  MlirContext context;
  MlirBlock block; // of main
  weft_arena_t* arena;
  const Onnx__ModelProto* model;
  const char* folder;     // of the model's file, for external data
  const struct weft_frontend_dim_t* dims; // that the user gives
  int32_t dim_count;
  bool* dim_used;
  int32_t resource_count; // resource blobs are numbered, so that names are unique in the module
  int32_t node_count;     // of the graph's nodes that were made
  weft_frontend_node_t* node;
  int64_t emitted_nodes; // loops are unrolled and functions inlined: the sum is limited
} weft_onnx_builder_t;

typedef struct weft_onnx_operator_t weft_onnx_operator_t;
typedef struct weft_onnx_graph_t weft_onnx_graph_t;
typedef struct weft_onnx_node_t {
  weft_onnx_builder_t* builder;
  const weft_onnx_graph_t* graph; // that it is a node of
  const Onnx__NodeProto* proto;
  int64_t opset;     // ONNX's own, whatever the node's domain
  const char* label; // "Conv 'conv1'", for messages
  MlirLocation location;
  int32_t input_count, output_count;
  value_t** input;                // NULL where an optional input is left out
  value_t** output;               // filled by the operator
  const weft_onnx_operator_t* op; // its line of the operator table; NULL: it calls a function of the model
} node_t;

#define NODE_ERROR(node, code, format, ...) weft_error(code, "%s: " format, (node)->label __VA_OPT__(, ) __VA_ARGS__)
// NODE_REQUIRE(node, condition, code, format, ...): an error unless the condition holds.
#define NODE_REQUIRE(node, condition, code, ...)                                                                       \
  do {                                                                                                                 \
    if (!(condition)) return NODE_ERROR(node, code, __VA_ARGS__);                                                      \
  } while (0)

// --- Attributes. A wrong type is an error; absent gives the default.
bool weft_onnx_has_attribute(const node_t* node, const char* name);
weft_status_t weft_onnx_attribute_int(const node_t* node, const char* name, int64_t otherwise, int64_t* out);
weft_status_t weft_onnx_attribute_float(const node_t* node, const char* name, double otherwise, double* out);
weft_status_t weft_onnx_attribute_string(const node_t* node, const char* name, const char* otherwise, const char** out);
// Exactly `count` integers; absent: all `otherwise`.
weft_status_t weft_onnx_attribute_ints(const node_t* node, const char* name, int32_t count, int64_t otherwise,
                                       int64_t* out);
// Up to `max` integers; *out_count is -1 when absent.
weft_status_t weft_onnx_attribute_list(const node_t* node, const char* name, int32_t max, int64_t* out,
                                       int32_t* out_count);
// NULL when absent.
weft_status_t weft_onnx_attribute_proto(const node_t* node, const char* name, const Onnx__AttributeProto** out);

// --- Inputs.
value_t* weft_onnx_input(const node_t* node, int32_t index); // NULL when left out
// For the end of a message about a value that has to be known: "; make it constant with --bind k=VALUE", of the graph
// inputs it is made from when they are few, else "". (bind.c)
const char* weft_onnx_bind_hint(const node_t* node, const value_t* value);
// Integers of a known input; *out_count is -1 when it is left out. Not known while importing: UNSUPPORTED, naming it.
weft_status_t weft_onnx_known_ints(const node_t* node, int32_t index, const char* what, int32_t max, int64_t* out,
                                   int32_t* out_count);
// The single element of a known input; `otherwise` when it is left out.
weft_status_t weft_onnx_known_number(const node_t* node, int32_t index, const char* what, double otherwise,
                                     double* out);
// Integers from input `index` in opsets >= `since`, else from the attribute.
weft_status_t weft_onnx_ints_since(const node_t* node, int64_t since, int32_t index, const char* name, int32_t max,
                                   int64_t* out, int32_t* out_count);
// Axis in [-rank, rank) -> [0, rank).
weft_status_t weft_onnx_normalize_axis(const node_t* node, int64_t axis, int32_t rank, int32_t* out);
weft_status_t weft_onnx_axis(const node_t* node, int64_t otherwise, int32_t rank, int32_t* out); // attribute "axis"
// A set of axes as a mask; duplicates are errors.
weft_status_t weft_onnx_axis_mask(const node_t* node, int32_t count, const int64_t* axes, int32_t rank,
                                  uint32_t* out_mask);
