#include "frontend/function.h"

#include <string.h>

#include "frontend/emit_graph.h"
#include "frontend/tensor_proto.h"

const Onnx__FunctionProto* weft_onnx_function_find(const weft_onnx_builder_t* builder, const char* domain,
                                                   const char* name) {
  const Onnx__ModelProto* model = builder->model;
  for (size_t i = 0; i < model->n_functions; ++i) {
    const Onnx__FunctionProto* function = model->functions[i];
    bool same_domain = weft_onnx_is_default_domain(domain) ? weft_onnx_is_default_domain(function->domain)
                                                           : strcmp(weft_onnx_text(function->domain), domain) == 0;
    if (same_domain && strcmp(weft_onnx_text(function->name), name) == 0) return function;
  }
  return NULL;
}

// FunctionProto.attribute_proto, newer than the schema that the reader was made from: kept as an unknown field.
enum { FIELD_ATTRIBUTE_PROTO = 11 };

// The field's bytes, which start with their length.
static bool skip_length(const ProtobufCMessageUnknownField* field, const uint8_t** out_data, size_t* out_size) {
  uint64_t length = 0;
  size_t at = 0;
  for (int shift = 0; shift < 63 && at < field->len; shift += 7) {
    uint8_t byte = field->data[at++];
    length |= (uint64_t)(byte & 127) << shift;
    if (byte >= 128) continue;
    *out_data = field->data + at;
    *out_size = field->len - at;
    return length == *out_size;
  }
  return false;
}

weft_status_t weft_onnx_function_default(const node_t* call, const char* name, const Onnx__AttributeProto** out) {
  const Onnx__FunctionProto* function =
      weft_onnx_function_find(call->builder, call->proto->domain, weft_onnx_text(call->proto->op_type));
  *out = NULL;
  for (unsigned i = 0; function && i < function->base.n_unknown_fields; ++i) {
    const ProtobufCMessageUnknownField* field = &function->base.unknown_fields[i];
    const uint8_t* data;
    size_t size;
    if (field->tag != FIELD_ATTRIBUTE_PROTO || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
        !skip_length(field, &data, &size))
      continue;
    Onnx__AttributeProto* attribute;
    TRY(weft_onnx_unpack(call->builder->arena, &onnx__attribute_proto__descriptor, call->label,
                         "a function's attribute", data, size, (ProtobufCMessage**)&attribute));
    if (strcmp(weft_onnx_text(attribute->name), name) == 0) *out = attribute;
  }
  return weft_ok();
}

// The function as a graph: its inputs and outputs have names only.
static weft_status_t name_values(weft_arena_t* arena, size_t count, char** names, Onnx__ValueInfoProto*** out) {
  TRY(WEFT_ARENA_NEW(arena, count + 1, out));
  for (size_t i = 0; i < count; ++i) {
    TRY(WEFT_ARENA_NEW(arena, 1, &(*out)[i]));
    onnx__value_info_proto__init((*out)[i]);
    (*out)[i]->name = names[i];
  }
  return weft_ok();
}

weft_status_t weft_onnx_function_call(node_t* node, const Onnx__FunctionProto* function) {
  weft_arena_t* arena = node->builder->arena;
  NODE_REQUIRE(node, (size_t)node->input_count <= function->n_input && (size_t)node->output_count <= function->n_output,
               INVALID_INPUT, "function '%s' has %zu inputs and %zu outputs, the call %d and %d", function->name,
               function->n_input, function->n_output, node->input_count, node->output_count);
  Onnx__GraphProto* proto;
  TRY(WEFT_ARENA_NEW(arena, 1, &proto));
  onnx__graph_proto__init(proto);
  proto->n_node = function->n_node;
  proto->node = function->node;
  proto->n_input = function->n_input;
  proto->n_output = (size_t)node->output_count;
  TRY(name_values(arena, proto->n_input, function->input, &proto->input));
  TRY(name_values(arena, proto->n_output, function->output, &proto->output));
  weft_onnx_graph_t graph = {.proto = proto,
                             .caller = node,
                             .opset_count = function->n_opset_import,
                             .opset = function->opset_import,
                             .depth = node->graph->depth + 1};
  if (!function->n_opset_import) { // an old writer: those of the model
    graph.opset_count = node->graph->opset_count;
    graph.opset = node->graph->opset;
  }
  TRY(weft_onnx_inner_prefix(node, -1, &graph.prefix));
  TRY(weft_onnx_inner_open(node, &graph));
  value_t** inputs; // those that the call leaves out stay NULL
  TRY(WEFT_ARENA_NEW(arena, proto->n_input + 1, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i) inputs[i] = node->input[i];
  return weft_onnx_inner_run(node, &graph, inputs, node->output);
}
