// Attention as ONNX Runtime's own domain has it.
#include <math.h>
#include <string.h>

#include "frontend/attention.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

BODY(is_set) {
  return s_compare(b, WEFT_ONNX_NE, x[0], s_const(x[0], 0));
}

// --- Masks

// Integers of shape [batch] count keys; those of [batch, keys], [batch, queries, keys] and
// [batch, 1, queries, keys] are 0 for what does not count.
static weft_status_t apply_mask(node_t* node, value_t* mask, int64_t batch, weft_onnx_attention_t* attention) {
  if (!mask) return weft_ok();
  shape_t shape = mask->shape;
  NODE_REQUIRE(node, shape.rank >= 1 && shape.rank <= 4 && shape.extent[0] == batch, UNSUPPORTED,
               "a mask of shape %s is not supported for a batch of %lld", weft_onnx_shape_format(&shape).text,
               (long long)batch);
  if (shape.rank == 1) {
    attention->key_count = mask;
    return weft_ok();
  }
  int32_t missing = 4 - shape.rank; // after the batch
  for (int32_t i = 0; i < missing; ++i) TRY(weft_onnx_unsqueeze(node, mask, 1, &mask));
  return weft_onnx_pointwise(node, is_set, NULL, WEFT_DTYPE_BOOL, 1, &mask, &attention->bias);
}

static weft_status_t common_attributes(node_t* node, weft_onnx_attention_t* attention) {
  int64_t causal;
  double size = (double)attention->query.value->shape.extent[3];
  TRY(weft_onnx_attribute_int(node, "unidirectional", 0, &causal));
  TRY(weft_onnx_attribute_float(node, "mask_filter_value", -10000, &attention->masked));
  TRY(weft_onnx_attribute_float(node, "scale", 0, &attention->scale));
  if (attention->scale == 0) attention->scale = 1 / sqrt(size);
  attention->is_causal = causal != 0;
  return weft_ok();
}

static weft_status_t number_of_heads(node_t* node, int64_t* out) {
  TRY(weft_onnx_attribute_int(node, "num_heads", 0, out));
  NODE_REQUIRE(node, *out > 0, INVALID_INPUT, "num_heads is %lld", (long long)*out);
  return weft_ok();
}

// value[.., first .. first + count] of the last axis.
static weft_status_t last_axis(node_t* node, value_t* value, int64_t first, int64_t count, value_t** out) {
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  int32_t rank = value->shape.rank;
  for (int32_t i = 0; i < rank; ++i) {
    size[i] = value->shape.extent[i];
    step[i] = 1;
  }
  NODE_REQUIRE(node, rank > 0 && first + count <= size[rank - 1], INVALID_INPUT,
               "a bias or weights have shape %s, expected at least %lld along the last axis",
               weft_onnx_shape_format(&value->shape).text, (long long)(first + count));
  offset[rank - 1] = first;
  size[rank - 1] = count;
  return weft_onnx_slice(node, value, offset, size, step, out);
}

// --- Attention: one product for queries, keys and values

static weft_status_t emit_attention(node_t* node) {
  value_t *x = node->input[0], *weights = node->input[1], *bias = weft_onnx_input(node, 2), *all;
  int64_t heads, sizes[3], rotary;
  int32_t given;
  weft_onnx_attention_t attention = {0};
  weft_onnx_heads_t* parts[] = {&attention.query, &attention.key, &attention.value};
  TRY(number_of_heads(node, &heads));
  TRY(weft_onnx_attribute_int(node, "do_rotary", 0, &rotary));
  NODE_REQUIRE(node, !weft_onnx_input(node, 4) && !weft_onnx_input(node, 6) && !rotary && node->output_count == 1,
               UNSUPPORTED, "the cache ('past', 'present') and do_rotary are not supported");
  NODE_REQUIRE(node, x->shape.rank == 3 && weights->shape.rank == 2, INVALID_INPUT,
               "input and weights have shapes %s and %s, expected ranks 3 and 2",
               weft_onnx_shape_format(&x->shape).text, weft_onnx_shape_format(&weights->shape).text);
  TRY(weft_onnx_attribute_list(node, "qkv_hidden_sizes", 3, sizes, &given));
  for (int32_t i = 0; i < 3 && given <= 0; ++i) sizes[i] = weights->shape.extent[1] / 3;
  NODE_REQUIRE(node,
               (given <= 0 || given == 3) && sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0 &&
                   sizes[0] + sizes[1] + sizes[2] == weights->shape.extent[1],
               INVALID_INPUT, "weights have shape %s, which does not split into queries, keys and values",
               weft_onnx_shape_format(&weights->shape).text);
  TRY(weft_onnx_matmul(node, x, weights, &all));
  TRY(weft_onnx_cast(node, all, x->dtype, &all));
  if (bias) TRY(weft_onnx_binary(node, weft_onnx_body_add, all, bias, &all));
  int64_t first = 0;
  for (int32_t i = 0; i < 3; first += sizes[i++]) {
    value_t* part;
    TRY(last_axis(node, all, first, sizes[i], &part));
    TRY(weft_onnx_split_heads(node, part, heads, parts[i]));
  }
  TRY(common_attributes(node, &attention));
  TRY(apply_mask(node, weft_onnx_input(node, 3), x->shape.extent[0], &attention));
  attention.second_bias = weft_onnx_input(node, 5);
  return weft_onnx_attend(node, &attention, &node->output[0]);
}

// --- MultiHeadAttention: queries, keys and values apart, or packed along an axis of their own

// packed [batch, length, heads, count, size] at `index`
static weft_status_t unpacked(node_t* node, value_t* packed, int64_t index, weft_onnx_heads_t* out) {
  const int64_t* e = packed->shape.extent;
  shape_t shape = {4, {e[0], e[1], e[2], e[4]}};
  out->sequence_first = true;
  TRY(weft_onnx_take(node, packed, 3, 1, &index, &out->value));
  return weft_onnx_reshape(node, out->value, &shape, &out->value);
}

static weft_status_t read_operands(node_t* node, int64_t heads, weft_onnx_heads_t** parts) {
  value_t *bias = weft_onnx_input(node, 3), *given[3];
  int64_t first = 0;
  for (int32_t i = 0; i < 3; ++i) given[i] = weft_onnx_input(node, i);
  int32_t packed = given[0]->shape.rank == 5 ? 3 : given[1] && given[1]->shape.rank == 5 ? 2 : 0;
  value_t* source = packed == 3 ? given[0] : given[1];
  NODE_REQUIRE(node, !packed || (source->shape.extent[3] == packed && source->shape.extent[2] == heads && !bias),
               UNSUPPORTED, "packed operands of shape %s are not supported here",
               packed ? weft_onnx_shape_format(&source->shape).text : "");
  for (int32_t i = 0; i < 3; ++i) {
    if (packed && i >= 3 - packed) {
      TRY(unpacked(node, source, i - (3 - packed), parts[i]));
      continue;
    }
    value_t* value = given[i];
    NODE_REQUIRE(node, value && (value->shape.rank == 3 || value->shape.rank == 4), INVALID_INPUT,
                 "input %d is missing or not of rank 3 or 4", i);
    if (value->shape.rank == 4) { // keys and values of a cross-attention: heads first, and the bias is in them
      *parts[i] = (weft_onnx_heads_t){value, false};
      first += value->shape.extent[1] * value->shape.extent[3];
      continue;
    }
    int64_t size = value->shape.extent[2];
    if (bias) {
      value_t* part;
      TRY(last_axis(node, bias, first, size, &part));
      TRY(weft_onnx_binary(node, weft_onnx_body_add, value, part, &value));
    }
    first += size;
    TRY(weft_onnx_split_heads(node, value, heads, parts[i]));
  }
  return weft_ok();
}

static weft_status_t emit_multi_head(node_t* node) {
  int64_t heads;
  weft_onnx_attention_t attention = {0};
  weft_onnx_heads_t* parts[] = {&attention.query, &attention.key, &attention.value};
  value_t *past_key = weft_onnx_input(node, 6), *past_value = weft_onnx_input(node, 7);
  TRY(number_of_heads(node, &heads));
  NODE_REQUIRE(node, !past_key == !past_value, INVALID_INPUT, "past_key and past_value come together");
  NODE_REQUIRE(node, node->input_count <= 8, UNSUPPORTED, "a shared cache ('past_sequence_length') is not supported");
  TRY(read_operands(node, heads, parts));
  TRY(weft_onnx_append_heads(node, past_key, &attention.key));
  TRY(weft_onnx_append_heads(node, past_value, &attention.value));
  attention.past = past_key ? past_key->shape.extent[2] : 0;
  TRY(common_attributes(node, &attention));
  TRY(apply_mask(node, weft_onnx_input(node, 4), attention.query.value->shape.extent[0], &attention));
  attention.second_bias = weft_onnx_input(node, 5);
  if (node->output_count > 1) TRY(weft_onnx_heads_first(node, &attention.key, &node->output[1]));
  if (node->output_count > 2) TRY(weft_onnx_heads_first(node, &attention.value, &node->output[2]));
  return weft_onnx_attend(node, &attention, &node->output[0]);
}

// --- RotaryEmbedding: input, positions, cosines, sines

static weft_status_t emit_rotary(node_t* node) {
  value_t *x = node->input[0], *positions = node->input[1], *cosines = node->input[2], *sines = node->input[3], *step;
  int64_t heads, interleaved, turned, packed;
  double scale;
  TRY(weft_onnx_attribute_int(node, "num_heads", 0, &heads));
  TRY(weft_onnx_attribute_int(node, "interleaved", 0, &interleaved));
  TRY(weft_onnx_attribute_int(node, "rotary_embedding_dim", 0, &turned));
  TRY(weft_onnx_attribute_int(node, "is_packed_batching", 0, &packed));
  TRY(weft_onnx_attribute_float(node, "scale", 1, &scale));
  NODE_REQUIRE(node, !packed && scale == 1, UNSUPPORTED, "is_packed_batching and scale are not supported");
  NODE_REQUIRE(node, cosines->shape.rank == 2 && (x->shape.rank == 3 || x->shape.rank == 4), INVALID_INPUT,
               "input and cosines have shapes %s and %s, expected ranks 3 or 4, and 2",
               weft_onnx_shape_format(&x->shape).text, weft_onnx_shape_format(&cosines->shape).text);
  weft_onnx_heads_t all = {x, false};
  int64_t size = 2 * cosines->shape.extent[1]; // of a head, where nothing else tells it
  NODE_REQUIRE(node, turned == 0 || (turned == size && heads > 0), INVALID_INPUT,
               "rotary_embedding_dim is %lld, with %lld heads and %lld angles", (long long)turned, (long long)heads,
               (long long)cosines->shape.extent[1]);
  if (x->shape.rank == 3)
    TRY(weft_onnx_split_heads(node, x, heads ? heads : size ? x->shape.extent[2] / size : 0, &all));
  int64_t length = all.value->shape.extent[all.sequence_first ? 1 : 2];
  if (weft_onnx_count(positions) == 1 && positions->shape.rank == 1) { // where the first is
    TRY(weft_onnx_iota(node, positions->dtype, length, &step));
    TRY(weft_onnx_binary(node, weft_onnx_body_add, positions, step, &positions));
    TRY(weft_onnx_unsqueeze(node, positions, 0, &positions));
  }
  NODE_REQUIRE(node, positions->shape.rank == 2, INVALID_INPUT, "positions have shape %s, expected [1] or rank 2",
               weft_onnx_shape_format(&positions->shape).text);
  TRY(weft_onnx_gather(node, cosines, positions, 0, &cosines));
  TRY(weft_onnx_gather(node, sines, positions, 0, &sines));
  TRY(weft_onnx_rotate(node, &all, cosines, sines, interleaved != 0));
  return weft_onnx_reshape(node, all.value, &x->shape, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Attention", 1, 2, 7, 2, emit_attention, "no cache; masks of rank 1 to 4"),
    OPERATOR("MultiHeadAttention", 1, 1, 10, 3, emit_multi_head, "no shared cache; masks of rank 1 to 4"),
    OPERATOR("RotaryEmbedding", 1, 4, 4, 1, emit_rotary, "no packed batching"),
    {0}};

const weft_onnx_family_t weft_onnx_family_microsoft_attention = {"com.microsoft: attention", operators};
