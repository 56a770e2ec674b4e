// FlexAttention: scores and probabilities go through graphs of the model's own.
#include <math.h>

#include "frontend/attention.h"
#include "frontend/emit_graph.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

// The graph of attribute `name` on one value; without the attribute it stays as it is.
static weft_status_t through_graph(node_t* node, void* name, value_t** value) {
  weft_onnx_graph_t graph;
  value_t* result;
  if (!weft_onnx_has_attribute(node, name)) return weft_ok();
  TRY(weft_onnx_inner_body(node, name, &graph));
  NODE_REQUIRE(node, graph.proto->n_input == 1 && graph.proto->n_output == 1, INVALID_INPUT,
               "%s has %zu inputs and %zu outputs, expected one each", (const char*)name, graph.proto->n_input,
               graph.proto->n_output);
  TRY(weft_onnx_inner_run(node, &graph, value, &result));
  NODE_REQUIRE(node,
               result->kind == WEFT_ONNX_TENSOR && result->dtype == (*value)->dtype &&
                   weft_onnx_shape_equal(&result->shape, &(*value)->shape),
               INVALID_INPUT, "%s makes %s of shape %s, expected %s of shape %s", (const char*)name,
               weft_dtype_name(result->dtype), weft_onnx_shape_format(&result->shape).text,
               weft_dtype_name((*value)->dtype), weft_onnx_shape_format(&(*value)->shape).text);
  *value = result;
  return weft_ok();
}

static weft_status_t emit_flex_attention(node_t* node) {
  weft_onnx_attention_t attention = {.query = {node->input[0], false},
                                     .key = {node->input[1], false},
                                     .value = {node->input[2], false},
                                     .change = through_graph,
                                     .change_scores = (void*)"score_mod",
                                     .change_weights = (void*)"prob_mod"};
  int64_t precision;
  weft_dtype_e dtype;
  const shape_t* shape = &node->input[0]->shape;
  NODE_REQUIRE(node, shape->rank == 4, INVALID_INPUT, "queries have shape %s, expected rank 4",
               weft_onnx_shape_format(shape).text);
  TRY(weft_onnx_attribute_float(node, "scale", 1 / sqrt((double)shape->extent[3]), &attention.scale));
  TRY(weft_onnx_attribute_int(node, "softmax_precision", 0, &precision));
  NODE_REQUIRE(node, !precision || (weft_onnx_dtype(precision, &dtype) && weft_dtype_is_float(dtype)), INVALID_INPUT,
               "softmax_precision is %lld, expected a type of floats", (long long)precision);
  return weft_onnx_attend(node, &attention, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("FlexAttention", 1, 3, 3, 1, emit_flex_attention, "softmax in f32 at least"), {0}};

const weft_onnx_family_t weft_onnx_family_flex_attention = {"ai.onnx.preview", operators};
