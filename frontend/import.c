// The way of a model through the importer: unpack, refuse what is unsupported, order, emit, assemble main.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "base/file.h"
#include "frontend/bind.h"
#include "frontend/emit_graph.h"
#include "frontend/frontend.h"
#include "frontend/io.h"
#include "frontend/mlir_build.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static weft_status_t check_opset(const weft_onnx_graph_t* graph) {
  bool only_others = graph->opset_count > 0 && weft_onnx_graph_opset(graph, "") == 0;
  if (only_others) return weft_ok(); // its nodes are then all of other domains
  if (weft_onnx_graph_opset(graph, "") >= 1 || graph->proto->n_node == 0) return weft_ok();
  return weft_error(INVALID_INPUT, "the model does not say which opset it uses");
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
                                  const weft_host_tensor_t* bound, int32_t bound_count, weft_text_t* list,
                                  weft_model_t* model) {
  weft_onnx_graph_t graph = {.proto = proto->graph, .opset_count = proto->n_opset_import, .opset = proto->opset_import};
  MlirValue* results;
  TRY(check_opset(&graph));
  TRY(weft_onnx_refuse_unsupported(builder, &graph, list));
  TRY(weft_onnx_graph_build(builder->arena, &graph));
  TRY(weft_onnx_read_initializers(builder, &graph));
  TRY(weft_onnx_bind_inputs(builder, &graph, bound, bound_count, dims, dim_count));
  TRY(weft_onnx_import_inputs(builder, &graph, model));
  TRY(weft_onnx_emit_nodes(builder, &graph, list));
  TRY(weft_onnx_check_dims_used(builder));
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
  return weft_frontend_import_bound(context, arena, path, dims, dim_count, NULL, 0, out_model);
}

weft_status_t weft_frontend_import_bound(weft_tensor_context_t* context, weft_arena_t* arena, const char* path,
                                         const weft_frontend_dim_t* dims, int32_t dim_count,
                                         const weft_host_tensor_t* bound, int32_t bound_count,
                                         weft_model_t* out_model) {
  Onnx__ModelProto* proto;
  weft_text_t list;
  *out_model = (weft_model_t){.arena = arena};
  TRY(unpack_model(arena, path, &out_model->digest, &proto));
  weft_onnx_builder_t builder = {.context = weft_tensor_context_mlir(context),
                                 .arena = arena,
                                 .model = proto,
                                 .dims = dims,
                                 .dim_count = dim_count};
  TRY(folder_of(arena, path, &builder.folder));
  out_model->name = weft_onnx_text(proto->graph->name);
  TRY(WEFT_ARENA_NEW(arena, proto->graph->n_node + 1, &builder.node));
  builder.block = mlirBlockCreate(0, NULL, NULL);
  weft_text_initialize(arena->allocator, &list);
  weft_status_t status = import_graph(context, &builder, proto, dims, dim_count, bound, bound_count, &list, out_model);
  weft_text_deinitialize(&list);
  if (builder.block.ptr) mlirBlockDestroy(builder.block);
  out_model->node = builder.node;
  out_model->node_count = builder.node_count;
  return status ? weft_status_annotate(status, "while importing %s", path) : weft_ok();
}
