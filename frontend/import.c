// The way of a model through the importer: unpack, refuse what is unsupported, order, emit, assemble main.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "frontend/graph.h"
#include "frontend/io.h"
#include "frontend/mlir_build.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static bool is_default_domain(const char* domain) {
  return weft_onnx_text(domain)[0] == 0 || strcmp(domain, "ai.onnx") == 0;
}

static weft_status_t find_opset(const Onnx__ModelProto* model, int64_t* out_opset) {
  *out_opset = 0;
  for (size_t i = 0; i < model->n_opset_import; ++i)
    if (is_default_domain(model->opset_import[i]->domain)) *out_opset = model->opset_import[i]->version;
  if (*out_opset >= 1 || model->graph->n_node == 0) return weft_ok();
  bool only_others = model->n_opset_import > 0 && *out_opset == 0;
  if (only_others) return weft_ok(); // its nodes are then all of other domains, and reported as such
  return weft_error(INVALID_INPUT, "the model does not say which opset it uses");
}

// Why a node cannot be imported, as far as its kind tells; NULL: it can.
static weft_status_t why_unsupported(weft_arena_t* arena, const Onnx__NodeProto* node, int64_t opset,
                                     const char** out_why) {
  *out_why = NULL;
  if (!is_default_domain(node->domain))
    return weft_arena_printf(arena, out_why, "domain '%s' is not supported", node->domain);
  const weft_onnx_operator_t* op = weft_onnx_operator_find(weft_onnx_text(node->op_type));
  if (!op) return weft_arena_printf(arena, out_why, "no such operator is supported");
  int32_t until = op->until ? op->until : WEFT_ONNX_NEWEST_OPSET;
  if (opset < op->since || opset > until)
    return weft_arena_printf(arena, out_why, "supported in opsets %d to %d", op->since, until);
  return weft_ok();
}

static weft_status_t add_unsupported(weft_text_t* list, const Onnx__NodeProto* node, int64_t opset, const char* why) {
  return weft_text_printf(list, "\n  node '%s': %s (opset %lld): %s", weft_onnx_node_name(node),
                          weft_onnx_text(node->op_type), (long long)opset, why);
}

static weft_status_t list_unsupported(weft_arena_t* arena, const Onnx__GraphProto* graph, int64_t opset,
                                      weft_text_t* list) {
  for (size_t i = 0; i < graph->n_node; ++i) {
    const char* why;
    TRY(why_unsupported(arena, graph->node[i], opset, &why));
    if (why) TRY(add_unsupported(list, graph->node[i], opset, why));
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; ++i)
    TRY(weft_text_printf(list, "\n  sparse initializer %zu: not supported", i));
  return list->count ? weft_error(UNSUPPORTED, "the model uses what is not supported:%s", list->data) : weft_ok();
}

static weft_status_t import_initializers(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph) {
  for (size_t i = 0; i < graph->proto->n_initializer; ++i) {
    const Onnx__TensorProto* proto = graph->proto->initializer[i];
    value_t* value;
    TRY(weft_onnx_read_tensor_proto(builder->arena, builder->folder, proto, &value));
    weft_onnx_graph_find(graph, weft_onnx_text(proto->name))->value = value;
  }
  return weft_ok();
}

static weft_status_t check_counts(const node_t* node) {
  const weft_onnx_operator_t* op = node->op;
  NODE_REQUIRE(node, node->input_count >= op->inputs_min && node->input_count <= op->inputs_max, INVALID_INPUT,
               "it has %d inputs, expected %d to %d", node->input_count, op->inputs_min, op->inputs_max);
  NODE_REQUIRE(node, node->output_count >= 1 && node->output_count <= op->outputs_max, INVALID_INPUT,
               "it has %d outputs, expected 1 to %d", node->output_count, op->outputs_max);
  int32_t required = op->inputs_max == WEFT_ONNX_ANY ? node->input_count : op->inputs_min;
  for (int32_t i = 0; i < required; ++i) NODE_REQUIRE(node, node->input[i], INVALID_INPUT, "input %d is missing", i);
  return weft_ok();
}

// Inputs and outputs at the end of a list may be left out by an empty name.
static int32_t used_count(size_t count, char* const* names) {
  while (count && !weft_onnx_text(names[count - 1])[0]) --count;
  return (int32_t)count;
}

// *out_ready: false when an input is missing because its node was unsupported.
static weft_status_t prepare_node(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, int32_t index, int64_t opset,
                                  node_t* node, bool* out_ready) {
  const Onnx__NodeProto* proto = graph->proto->node[index];
  const char* location;
  *node = (node_t){.builder = builder, .proto = proto, .opset = opset, .label = graph->label[index]};
  TRY(weft_arena_printf(builder->arena, &location, "%s:%s", weft_onnx_text(proto->op_type),
                        weft_onnx_node_name(proto)));
  node->location = weft_onnx_location(builder->context, location);
  node->op = weft_onnx_operator_find(proto->op_type);
  node->input_count = used_count(proto->n_input, proto->input);
  node->output_count = used_count(proto->n_output, proto->output);
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)node->input_count + 1, &node->input));
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)node->output_count + 1, &node->output));
  *out_ready = true;
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (!weft_onnx_text(proto->input[i])[0]) continue;
    node->input[i] = weft_onnx_graph_find(graph, proto->input[i])->value;
    if (!node->input[i]) *out_ready = false;
  }
  return *out_ready ? check_counts(node) : weft_ok();
}

// The output keeps its own name even where it is the same value as another (Identity).
static weft_status_t keep_outputs(weft_onnx_graph_t* graph, const node_t* node) {
  for (int32_t i = 0; i < node->output_count; ++i) {
    const char* name = weft_onnx_text(node->proto->output[i]);
    if (!name[0]) continue;
    NODE_REQUIRE(node, node->output[i], UNSUPPORTED, "output %d ('%s') is not supported", i, name);
    if (!node->output[i]->name) node->output[i]->name = name;
    weft_onnx_graph_find(graph, name)->value = node->output[i];
  }
  return weft_ok();
}

// What only shows when a node is emitted is collected too: nodes that do not depend on it are still tried.
static weft_status_t emit_nodes(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, int64_t opset,
                                weft_text_t* list) {
  for (size_t i = 0; i < graph->proto->n_node; ++i) {
    node_t node;
    bool is_ready;
    TRY(prepare_node(builder, graph, graph->order[i], opset, &node, &is_ready));
    if (!is_ready) continue;
    weft_status_t status = node.op->emit(&node);
    if (!status) status = keep_outputs(graph, &node);
    if (weft_status_code(status) != WEFT_STATUS_UNSUPPORTED) {
      TRY(status);
      continue;
    }
    const char* why = weft_status_message(status); // starts with the node's label, which the list says already
    size_t label = strlen(node.label);
    if (strncmp(why, node.label, label) == 0 && why[label] == ':') why += label + 2;
    weft_status_t added = add_unsupported(list, node.proto, opset, why);
    weft_status_free(status);
    TRY(added);
  }
  return list->count ? weft_error(UNSUPPORTED, "the model uses what is not supported:%s", list->data) : weft_ok();
}

static MlirAttribute name_attributes(weft_onnx_builder_t* builder, int32_t count, const weft_frontend_io_t* io,
                                     MlirAttribute* scratch) {
  MlirContext context = builder->context;
  for (int32_t i = 0; i < count; ++i) {
    MlirAttribute name = mlirStringAttrGet(context, mlirStringRefCreateFromCString(io[i].name));
    MlirIdentifier key = mlirIdentifierGet(context, mlirStringRefCreateFromCString("weft.name"));
    MlirNamedAttribute named = mlirNamedAttributeGet(key, name);
    scratch[i] = mlirDictionaryAttrGet(context, 1, &named);
  }
  return mlirArrayAttrGet(context, count, scratch);
}

// Takes the block.
static weft_status_t assemble(weft_tensor_context_t* tensor_context, weft_onnx_builder_t* builder,
                              const MlirValue* results, weft_model_t* model) {
  MlirContext context = builder->context;
  MlirType *inputs, *outputs;
  MlirAttribute* scratch;
  int32_t most = model->input_count > model->output_count ? model->input_count : model->output_count;
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)most + 1, &inputs));
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)most + 1, &outputs));
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)most + 1, &scratch));
  for (int32_t i = 0; i < model->input_count; ++i)
    inputs[i] = mlirValueGetType(mlirBlockGetArgument(builder->block, i));
  for (int32_t i = 0; i < model->output_count; ++i) outputs[i] = mlirValueGetType(results[i]);
  MlirLocation location = weft_onnx_location(context, model->name);
  mlirBlockAppendOwnedOperation(
      builder->block, weft_onnx_create_op(location, "func.return", NULL, model->output_count, results, 0, NULL));
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, builder->block);
  builder->block.ptr = NULL;
  MlirType type = mlirFunctionTypeGet(context, model->input_count, inputs, model->output_count, outputs);
  weft_onnx_attribute_t attributes[] = {
      {"sym_name", mlirStringAttrGet(context, mlirStringRefCreateFromCString("main"))},
      {"function_type", mlirTypeAttrGet(type)},
      {"arg_attrs", name_attributes(builder, model->input_count, model->input, scratch)},
      {"res_attrs", name_attributes(builder, model->output_count, model->output, scratch)}};
  MlirOperation function = weft_onnx_create_op_with_region(location, "func.func", NULL, 0, NULL, 4, attributes, region);
  model->module = mlirModuleCreateEmpty(location);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(model->module), function);
  if (mlirOperationVerify(mlirModuleGetOperation(model->module))) return weft_ok();
  mlirModuleDestroy(model->module);
  model->module.ptr = NULL;
  return weft_error(INTERNAL, "the imported module is not valid: %s", weft_tensor_take_diagnostics(tensor_context));
}

static weft_status_t import_graph(weft_tensor_context_t* context, weft_onnx_builder_t* builder,
                                  const Onnx__ModelProto* proto, const weft_frontend_dim_t* dims, int32_t dim_count,
                                  weft_text_t* list, weft_model_t* model) {
  weft_onnx_graph_t graph;
  MlirValue* results;
  int64_t opset;
  TRY(find_opset(proto, &opset));
  TRY(list_unsupported(builder->arena, proto->graph, opset, list));
  TRY(weft_onnx_graph_build(builder->arena, proto->graph, &graph));
  TRY(import_initializers(builder, &graph));
  TRY(weft_onnx_import_inputs(builder, &graph, dims, dim_count, model));
  TRY(emit_nodes(builder, &graph, opset, list));
  TRY(weft_onnx_import_outputs(builder, &graph, model, &results));
  return assemble(context, builder, results, model);
}

static weft_status_t folder_of(weft_arena_t* arena, const char* path, const char** out) {
  const char* slash = strrchr(path, '/');
  if (!slash) return weft_arena_strdup(arena, ".", out);
  return weft_arena_printf(arena, out, "%.*s", (int)(slash == path ? 1 : slash - path), path);
}

// The digest and the message; the mapping is only needed here, protobuf-c copies.
static weft_status_t unpack_model(weft_arena_t* arena, const char* path, weft_digest_t* out_digest,
                                  Onnx__ModelProto** out_proto) {
  weft_mapping_t mapping;
  TRY(weft_file_map(path, &mapping));
  *out_digest = weft_digest_of(mapping.data, mapping.size);
  weft_status_t status = weft_onnx_unpack(arena, &onnx__model_proto__descriptor, path, "an ONNX model", mapping.data,
                                          mapping.size, (ProtobufCMessage**)out_proto);
  weft_file_unmap(&mapping);
  TRY(status);
  if (!(*out_proto)->graph) return weft_error(INVALID_INPUT, "%s: not an ONNX model: it has no graph", path);
  return weft_ok();
}

weft_status_t weft_frontend_import(weft_tensor_context_t* context, weft_arena_t* arena, const char* path,
                                   const weft_frontend_dim_t* dims, int32_t dim_count, weft_model_t* out_model) {
  Onnx__ModelProto* proto;
  weft_text_t list;
  *out_model = (weft_model_t){.arena = arena};
  TRY(unpack_model(arena, path, &out_model->digest, &proto));
  weft_onnx_builder_t builder = {.context = weft_tensor_context_mlir(context), .arena = arena};
  TRY(folder_of(arena, path, &builder.folder));
  out_model->name = weft_onnx_text(proto->graph->name);
  builder.block = mlirBlockCreate(0, NULL, NULL);
  weft_text_initialize(arena->allocator, &list);
  weft_status_t status = import_graph(context, &builder, proto, dims, dim_count, &list, out_model);
  weft_text_deinitialize(&list);
  if (builder.block.ptr) mlirBlockDestroy(builder.block);
  return status ? weft_status_annotate(status, "while importing %s", path) : weft_ok();
}
