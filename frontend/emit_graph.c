#include "frontend/emit_graph.h"

#include <string.h>

#include "frontend/frontend.h"
#include "frontend/function.h"
#include "frontend/mlir_build.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

// Bodies nest and functions call; a function that calls itself would do so without end.
enum { MAX_DEPTH = 64 };
static const int64_t max_emitted_nodes = 1 << 20;

// --- What is supported

// Why a node cannot be imported, as far as its kind tells; NULL: it can.
static weft_status_t why_unsupported(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                     const Onnx__NodeProto* node, const char** out_why) {
  weft_arena_t* arena = builder->arena;
  const char *domain = weft_onnx_text(node->domain), *name = weft_onnx_text(node->op_type);
  *out_why = NULL;
  if (weft_onnx_function_find(builder, domain, name)) return weft_ok();
  const weft_onnx_operator_t* op = weft_onnx_operator_find_in(domain, name);
  if (!op) {
    const char* reason = weft_onnx_operator_reason(domain, name);
    return weft_arena_printf(arena, out_why, "%s%s%s", reason ? reason : "no such operator is supported",
                             weft_onnx_is_default_domain(domain) ? "" : " in the domain ",
                             weft_onnx_is_default_domain(domain) ? "" : domain);
  }
  int64_t opset = weft_onnx_graph_opset(graph, domain);
  if (opset == 0 && !weft_onnx_is_default_domain(domain)) opset = 1; // some writers do not declare the domain
  int32_t until = op->until ? op->until : WEFT_ONNX_NEWEST_OPSET;
  if (opset < op->since || opset > until)
    return weft_arena_printf(arena, out_why, "supported in opsets %d to %d", op->since, until);
  return weft_ok();
}

static weft_status_t add_unsupported(weft_text_t* list, const weft_onnx_graph_t* graph, const Onnx__NodeProto* node,
                                     const char* why) {
  return weft_text_printf(list, "\n  node '%s%s': %s (opset %lld): %s", weft_onnx_text(graph->prefix),
                          weft_onnx_node_name(node), weft_onnx_text(node->op_type),
                          (long long)weft_onnx_graph_opset(graph, node->domain), why);
}

static weft_status_t unsupported(const weft_text_t* list) {
  return list->count ? weft_error(UNSUPPORTED, "the model uses what is not supported:%s", list->data) : weft_ok();
}

weft_status_t weft_onnx_refuse_unsupported(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                           weft_text_t* list) {
  for (size_t i = 0; i < graph->proto->n_node; ++i) {
    const char* why;
    TRY(why_unsupported(builder, graph, graph->proto->node[i], &why));
    if (why) TRY(add_unsupported(list, graph, graph->proto->node[i], why));
  }
  for (size_t i = 0; i < graph->proto->n_sparse_initializer; ++i)
    TRY(weft_text_printf(list, "\n  sparse initializer %zu: not supported", i));
  return unsupported(list);
}

weft_status_t weft_onnx_read_initializers(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph) {
  for (size_t i = 0; i < graph->proto->n_initializer; ++i) {
    const Onnx__TensorProto* proto = graph->proto->initializer[i];
    value_t* value;
    TRY(weft_onnx_read_tensor_proto(builder->arena, builder->folder, proto, &value));
    weft_onnx_graph_find(graph, weft_onnx_text(proto->name))->value = value;
  }
  return weft_ok();
}

// --- Emission

static weft_status_t check_counts(const node_t* node) {
  const weft_onnx_operator_t* op = node->op;
  if (!op) return weft_ok();
  NODE_REQUIRE(node, node->input_count >= op->inputs_min && node->input_count <= op->inputs_max, INVALID_INPUT,
               "it has %d inputs, expected %d to %d", node->input_count, op->inputs_min, op->inputs_max);
  NODE_REQUIRE(node, node->output_count >= 1 && node->output_count <= op->outputs_max, INVALID_INPUT,
               "it has %d outputs, expected 1 to %d", node->output_count, op->outputs_max);
  int32_t required = op->inputs_max == WEFT_ONNX_ANY ? node->input_count : op->inputs_min;
  for (int32_t i = 0; i < required; ++i)
    NODE_REQUIRE(node, node->input[i] || op->has_gaps, INVALID_INPUT, "input %d is missing", i);
  return weft_ok();
}

// Inputs and outputs at the end of a list may be left out by an empty name.
static int32_t used_count(size_t count, char* const* names) {
  while (count && !weft_onnx_text(names[count - 1])[0]) --count;
  return (int32_t)count;
}

// What the node and its bodies need is there. Missing is what an unsupported node would have made, and what a
// function's call leaves out.
static bool is_ready(const weft_onnx_graph_t* graph, int32_t index) {
  const weft_onnx_uses_t* uses = &graph->uses[index];
  for (size_t i = 0; i < uses->count; ++i) {
    const weft_onnx_name_t* entry = weft_onnx_graph_resolve(graph, uses->name[i]);
    if (!entry->value && !entry->is_left_out) return false;
  }
  return true;
}

static weft_status_t prepare_node(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, int32_t index, node_t* node) {
  const Onnx__NodeProto* proto = graph->proto->node[index];
  const char* location;
  *node = (node_t){.builder = builder, .graph = graph, .proto = proto, .label = graph->label[index]};
  node->opset = weft_onnx_graph_opset(graph, "");
  TRY(weft_arena_printf(builder->arena, &location, "%s:%s%s", weft_onnx_text(proto->op_type),
                        weft_onnx_text(graph->prefix), weft_onnx_node_name(proto)));
  node->location = weft_onnx_location(builder->context, location);
  node->op = weft_onnx_operator_find_in(weft_onnx_text(proto->domain), weft_onnx_text(proto->op_type));
  node->input_count = used_count(proto->n_input, proto->input);
  node->output_count = used_count(proto->n_output, proto->output);
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)node->input_count + 1, &node->input));
  TRY(WEFT_ARENA_NEW(builder->arena, (size_t)node->output_count + 1, &node->output));
  for (int32_t i = 0; i < node->input_count; ++i)
    if (weft_onnx_text(proto->input[i])[0]) node->input[i] = weft_onnx_graph_resolve(graph, proto->input[i])->value;
  while (node->input_count && !node->input[node->input_count - 1]) --node->input_count;
  return weft_ok();
}

static weft_status_t emit_node(node_t* node) {
  const Onnx__FunctionProto* function =
      weft_onnx_function_find(node->builder, weft_onnx_text(node->proto->domain), weft_onnx_text(node->proto->op_type));
  NODE_REQUIRE(node, node->builder->emitted_nodes++ < max_emitted_nodes, UNSUPPORTED,
               "with loops unrolled and functions inlined, the model has more than %lld nodes",
               (long long)max_emitted_nodes);
  if (function) {
    node->op = NULL;
    return weft_onnx_function_call(node, function);
  }
  TRY(check_counts(node));
  for (int32_t i = 0; i < node->input_count && !node->op->takes_sequences; ++i)
    NODE_REQUIRE(node, !node->input[i] || node->input[i]->kind == WEFT_ONNX_TENSOR, INVALID_INPUT,
                 "input %d is %s, expected a tensor", i,
                 node->input[i]->kind == WEFT_ONNX_SEQUENCE ? "a sequence" : "an optional value that is none");
  return node->op->emit(node);
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

static bool is_made(const weft_onnx_graph_t* graph, const Onnx__NodeProto* node) {
  for (size_t i = 0; i < node->n_output; ++i) {
    const char* name = weft_onnx_text(node->output[i]);
    if (name[0] && !weft_onnx_graph_find(graph, name)->value) return false;
  }
  return node->n_output > 0;
}

// --- What became of the model's nodes

static bool moves_only(MlirOperation op) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (mlirStringRefEqual(name, mlirStringRefCreateFromCString("scf.for"))) return false;
  if (!mlirStringRefEqual(name, mlirStringRefCreateFromCString("linalg.generic"))) return true;
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  return mlirOperationEqual(mlirBlockGetFirstOperation(body), mlirBlockGetTerminator(body));
}

static weft_frontend_becomes_e what_became(const node_t* node, MlirOperation first) {
  weft_frontend_becomes_e becomes = WEFT_FRONTEND_CONSTANT;
  for (int32_t i = 0; i < node->output_count; ++i)
    if (node->output[i] && !node->output[i]->data) becomes = WEFT_FRONTEND_NOTHING;
  for (MlirOperation op = first; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    if (mlirStringRefEqual(name, mlirStringRefCreateFromCString("arith.constant"))) continue;
    if (!moves_only(op)) return WEFT_FRONTEND_COMPUTATION;
    becomes = WEFT_FRONTEND_MOVEMENT;
  }
  return becomes;
}

// The last operation so far; null: none.
static MlirOperation last_operation(MlirBlock block, MlirOperation from) {
  MlirOperation op = mlirOperationIsNull(from) ? mlirBlockGetFirstOperation(block) : from, last = op;
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) last = op;
  return last;
}

static weft_status_t note_node(const node_t* node, MlirOperation last_before) {
  weft_onnx_builder_t* builder = node->builder;
  if (node->graph->outer || node->graph->caller) return weft_ok();
  weft_frontend_node_t* out = &builder->node[builder->node_count++];
  MlirOperation first = mlirOperationIsNull(last_before) ? mlirBlockGetFirstOperation(builder->block)
                                                         : mlirOperationGetNextInBlock(last_before);
  out->op_type = weft_onnx_text(node->proto->op_type);
  out->becomes = what_became(node, first);
  return weft_arena_printf(builder->arena, &out->name, "%s:%s", out->op_type, weft_onnx_node_name(node->proto));
}

weft_status_t weft_onnx_emit_nodes(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_text_t* list) {
  MlirOperation last = {NULL};
  for (size_t i = 0; i < graph->proto->n_node; ++i) {
    int32_t index = graph->order[i];
    if (is_made(graph, graph->proto->node[index]) || !is_ready(graph, index)) continue;
    node_t node;
    last = last_operation(builder->block, last);
    TRY(prepare_node(builder, graph, index, &node));
    weft_status_t status = emit_node(&node);
    if (!status) status = keep_outputs(graph, &node);
    if (!status) status = note_node(&node, last);
    if (weft_status_code(status) != WEFT_STATUS_UNSUPPORTED) {
      TRY(status);
      continue;
    }
    const char* why = weft_status_message(status); // starts with the node's label, which the list says already
    size_t label = strlen(node.label);
    if (strncmp(why, node.label, label) == 0 && why[label] == ':') why += label + 2;
    weft_status_t added = add_unsupported(list, graph, node.proto, why);
    weft_status_free(status);
    TRY(added);
  }
  return unsupported(list);
}

// --- Graphs inside of nodes

weft_status_t weft_onnx_inner_prefix(const node_t* node, int64_t index, const char** out_prefix) {
  const char *outer = weft_onnx_text(node->graph->prefix), *name = weft_onnx_node_name(node->proto);
  if (index < 0) return weft_arena_printf(node->builder->arena, out_prefix, "%s%s/", outer, name);
  return weft_arena_printf(node->builder->arena, out_prefix, "%s%s[%lld]/", outer, name, (long long)index);
}

static weft_status_t with_list(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph,
                               weft_status_t (*step)(weft_onnx_builder_t*, weft_onnx_graph_t*, weft_text_t*)) {
  weft_text_t list;
  weft_text_initialize(builder->arena->allocator, &list);
  weft_status_t status = step(builder, graph, &list);
  weft_text_deinitialize(&list);
  return status;
}

static weft_status_t open_graph(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_text_t* list) {
  TRY(weft_onnx_refuse_unsupported(builder, graph, list));
  TRY(weft_onnx_graph_build(builder->arena, graph));
  return weft_onnx_read_initializers(builder, graph);
}

weft_status_t weft_onnx_inner_open(node_t* node, weft_onnx_graph_t* graph) {
  NODE_REQUIRE(node, graph->depth <= MAX_DEPTH, INVALID_INPUT, "bodies and functions nest deeper than %d", MAX_DEPTH);
  return with_list(node->builder, graph, open_graph);
}

weft_status_t weft_onnx_inner_body(node_t* node, const char* name, weft_onnx_graph_t* out_graph) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  NODE_REQUIRE(node, attribute && attribute->g, INVALID_INPUT, "attribute '%s' must be a graph", name);
  const weft_onnx_graph_t* outer = node->graph;
  *out_graph = (weft_onnx_graph_t){.proto = attribute->g,
                                   .outer = outer,
                                   .caller = outer->caller,
                                   .opset_count = outer->opset_count,
                                   .opset = outer->opset,
                                   .depth = outer->depth + 1};
  TRY(weft_onnx_inner_prefix(node, -1, &out_graph->prefix));
  return weft_onnx_inner_open(node, out_graph);
}

weft_status_t weft_onnx_inner_run(node_t* node, weft_onnx_graph_t* graph, value_t* const* inputs, value_t** outputs) {
  const Onnx__GraphProto* proto = graph->proto;
  for (size_t i = 0; i < graph->name_count; ++i) { // of an earlier run
    int32_t producer = graph->names[i].producer;
    bool is_constant = producer == WEFT_ONNX_FROM_INITIALIZER || (producer >= 0 && graph->uses[producer].count == 0);
    if (!is_constant) graph->names[i].value = NULL;
  }
  for (size_t i = 0; i < proto->n_input; ++i) {
    weft_onnx_name_t* entry = weft_onnx_graph_find(graph, weft_onnx_text(proto->input[i]->name));
    if (entry->producer != WEFT_ONNX_FROM_INPUT) continue;
    entry->value = inputs[i];
    entry->is_left_out = !inputs[i];
  }
  TRY(weft_onnx_graph_label(node->builder->arena, graph));
  TRY(with_list(node->builder, graph, weft_onnx_emit_nodes));
  for (size_t i = 0; i < proto->n_output; ++i) {
    const char* name = weft_onnx_text(proto->output[i]->name);
    const weft_onnx_name_t* entry = weft_onnx_graph_resolve(graph, name);
    NODE_REQUIRE(node, entry && entry->value, INVALID_INPUT, "output '%s' is made by no node inside of it", name);
    outputs[i] = entry->value;
  }
  return weft_ok();
}
