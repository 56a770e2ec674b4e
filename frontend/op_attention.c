// Attention and what comes with it.
#include "frontend/attention.h"

#include <math.h>
#include <string.h>

#include "frontend/operators.h"

static weft_status_t heads_of(node_t* node, int32_t input, const char* attribute, weft_onnx_heads_t* out) {
  value_t* value = node->input[input];
  int64_t heads;
  TRY(weft_onnx_attribute_int(node, attribute, 0, &heads));
  *out = (weft_onnx_heads_t){value, false};
  return value->shape.rank == 4 ? weft_ok() : weft_onnx_split_heads(node, value, heads, out);
}

static weft_status_t want_scores(node_t* node, weft_onnx_attention_t* attention) {
  int64_t kind;
  TRY(weft_onnx_attribute_int(node, "qk_matmul_output_mode", 0, &kind));
  NODE_REQUIRE(node, kind >= WEFT_ONNX_SCORES_RAW && kind <= WEFT_ONNX_SCORES_SOFTMAX, INVALID_INPUT,
               "qk_matmul_output_mode is %lld, expected 0 to 3", (long long)kind);
  attention->scores_kind = (int32_t)kind;
  if (node->output_count > 3) attention->out_scores = &node->output[3];
  return weft_ok();
}

static weft_status_t emit_attention(node_t* node) {
  weft_onnx_attention_t attention = {
      .bias = weft_onnx_input(node, 3), .masked = -(double)INFINITY, .key_count = weft_onnx_input(node, 6)};
  value_t *past_key = weft_onnx_input(node, 4), *past_value = weft_onnx_input(node, 5);
  int64_t causal;
  TRY(heads_of(node, 0, "q_num_heads", &attention.query));
  TRY(heads_of(node, 1, "kv_num_heads", &attention.key));
  TRY(heads_of(node, 2, "kv_num_heads", &attention.value));
  TRY(weft_onnx_attribute_int(node, "is_causal", 0, &causal));
  TRY(weft_onnx_attribute_float(node, "softcap", 0, &attention.softcap));
  double size = (double)attention.query.value->shape.extent[3];
  TRY(weft_onnx_attribute_float(node, "scale", 1 / sqrt(size), &attention.scale));
  NODE_REQUIRE(node, !past_key == !past_value, INVALID_INPUT, "past_key and past_value come together");
  attention.is_causal = causal != 0;
  attention.past = past_key && past_key->shape.rank == 4 ? past_key->shape.extent[2] : 0;
  TRY(weft_onnx_append_heads(node, past_key, &attention.key));
  TRY(weft_onnx_append_heads(node, past_value, &attention.value));
  TRY(want_scores(node, &attention));
  if (node->output_count > 1) TRY(weft_onnx_heads_first(node, &attention.key, &node->output[1]));
  if (node->output_count > 2) TRY(weft_onnx_heads_first(node, &attention.value, &node->output[2]));
  return weft_onnx_attend(node, &attention, &node->output[0]);
}

// The cosines and sines of each position: given, or rows of a table.
static weft_status_t angles(node_t* node, value_t* table, value_t* positions, const value_t* x, int64_t length,
                            value_t** out) {
  if (positions) {
    NODE_REQUIRE(node, table->shape.rank == 2 && positions->shape.rank == 2, INVALID_INPUT,
                 "the table has shape %s and the positions %s, expected matrices",
                 weft_onnx_shape_format(&table->shape).text, weft_onnx_shape_format(&positions->shape).text);
    TRY(weft_onnx_gather(node, table, positions, 0, &table));
  }
  NODE_REQUIRE(node, table->shape.rank == 3 && table->dtype == x->dtype && table->shape.extent[1] == length,
               INVALID_INPUT, "cosines or sines are %s of shape %s, expected %s for %lld positions",
               weft_dtype_name(table->dtype), weft_onnx_shape_format(&table->shape).text, weft_dtype_name(x->dtype),
               (long long)length);
  *out = table;
  return weft_ok();
}

static weft_status_t emit_rotary(node_t* node) {
  weft_onnx_heads_t heads;
  value_t *positions = weft_onnx_input(node, 3), *cosines, *sines;
  int64_t interleaved, turned;
  TRY(heads_of(node, 0, "num_heads", &heads));
  TRY(weft_onnx_attribute_int(node, "interleaved", 0, &interleaved));
  TRY(weft_onnx_attribute_int(node, "rotary_embedding_dim", 0, &turned));
  NODE_REQUIRE(node, heads.value->shape.rank == 4, INVALID_INPUT, "input has shape %s, expected rank 3 or 4",
               weft_onnx_shape_format(&heads.value->shape).text);
  int64_t length = heads.value->shape.extent[heads.sequence_first ? 1 : 2];
  TRY(angles(node, node->input[1], positions, heads.value, length, &cosines));
  TRY(angles(node, node->input[2], positions, heads.value, length, &sines));
  NODE_REQUIRE(node, turned == 0 || cosines->shape.extent[2] * 2 == turned, INVALID_INPUT,
               "rotary_embedding_dim is %lld, but there are %lld angles", (long long)turned,
               (long long)cosines->shape.extent[2]);
  TRY(weft_onnx_rotate(node, &heads, cosines, sines, interleaved != 0));
  return weft_onnx_reshape(node, heads.value, &node->input[0]->shape, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Attention", 23, 3, 7, 4, emit_attention, "scores in f32 at least"),
    OPERATOR("RotaryEmbedding", 23, 3, 4, 1, emit_rotary, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_attention = {"Attention", operators};
