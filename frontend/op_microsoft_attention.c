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

// Integers of shape [batch] count keys, those of [2 * batch] say where they end and then where they begin; those of
// [batch, keys], [batch, queries, keys] and [batch, 1, queries, keys] are 0 for what does not count.
static weft_status_t apply_mask(node_t* node, value_t* mask, int64_t batch, weft_onnx_attention_t* attention) {
  if (!mask) return weft_ok();
  shape_t shape = mask->shape;
  bool has_starts = shape.rank == 1 && shape.extent[0] == 2 * batch && batch > 0;
  if (has_starts) {
    for (int64_t i = 0; i < 2; ++i)
      TRY(weft_onnx_slice(node, mask, (int64_t[]){i * batch}, (int64_t[]){batch}, (int64_t[]){1},
                          i ? &attention->key_start : &attention->key_count));
    return weft_ok();
  }
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

// past and present: [2, batch, heads, length, size], keys and values. `past` may be NULL.
static weft_status_t extend_cache(node_t* node, value_t* past, weft_onnx_attention_t* attention) {
  weft_onnx_heads_t* parts[] = {&attention->key, &attention->value};
  value_t* present[2];
  NODE_REQUIRE(node, !past || (past->shape.rank == 5 && past->shape.extent[0] == 2), INVALID_INPUT,
               "past has shape %s, expected [2, batch, heads, length, size]",
               past ? weft_onnx_shape_format(&past->shape).text : "");
  for (int32_t i = 0; i < 2; ++i) {
    value_t* one = NULL;
    int64_t index = i;
    if (past) {
      shape_t shape = {4, {past->shape.extent[1], past->shape.extent[2], past->shape.extent[3], past->shape.extent[4]}};
      TRY(weft_onnx_take(node, past, 0, 1, &index, &one));
      TRY(weft_onnx_reshape(node, one, &shape, &one));
      attention->past = shape.extent[2];
    }
    TRY(weft_onnx_append_heads(node, one, parts[i]));
    if (node->output_count < 2) continue;
    TRY(weft_onnx_heads_first(node, parts[i], &present[i]));
    TRY(weft_onnx_unsqueeze(node, present[i], 0, &present[i]));
  }
  return node->output_count < 2 ? weft_ok() : weft_onnx_concat(node, 0, 2, present, &node->output[1]);
}

static weft_status_t emit_attention(node_t* node) {
  value_t *x = node->input[0], *weights = node->input[1], *bias = weft_onnx_input(node, 2), *all;
  int64_t heads, sizes[3], rotary;
  int32_t given;
  weft_onnx_attention_t attention = {0};
  weft_onnx_heads_t* parts[] = {&attention.query, &attention.key, &attention.value};
  TRY(number_of_heads(node, &heads));
  TRY(weft_onnx_attribute_int(node, "do_rotary", 0, &rotary));
  NODE_REQUIRE(node, !weft_onnx_input(node, 6) && !rotary, UNSUPPORTED,
               "a shared cache ('past_sequence_length') and do_rotary are not supported");
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
  TRY(extend_cache(node, weft_onnx_input(node, 4), &attention));
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

// --- GroupQueryAttention: heads of queries share keys and values

// Which keys a query sees, as a constant: those up to its own position, `window` of them if it is not 0.
static weft_status_t visible_keys(node_t* node, int64_t queries, int64_t keys, int64_t window, value_t** out) {
  shape_t shape = {2, {queries, keys}};
  uint8_t* data;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)(queries * keys) + 1, &data));
  bool sees_all = true;
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = 0; k < keys; ++k) {
      int64_t at = keys - queries + q;
      data[q * keys + k] = k <= at && (window == 0 || k > at - window);
      sees_all &= data[q * keys + k];
    }
  *out = NULL;
  return sees_all ? weft_ok() : weft_onnx_known(node, WEFT_DTYPE_BOOL, &shape, data, out);
}

// The last keys are the new ones, in all batches: what seqlens_k has to say.
static weft_status_t require_full_cache(node_t* node, int64_t keys) {
  value_t* lengths = weft_onnx_input(node, 5);
  NODE_REQUIRE(node, lengths && lengths->data, UNSUPPORTED,
               "seqlens_k has to be known while importing, as what lies behind the keys depends on it%s",
               weft_onnx_bind_hint(node, lengths));
  for (int64_t i = 0; i < weft_onnx_count(lengths); ++i)
    NODE_REQUIRE(node, weft_onnx_load_int(lengths, i) == keys - 1, UNSUPPORTED,
                 "seqlens_k is %lld for batch %lld; only full caches are supported: past and new keys are %lld",
                 (long long)weft_onnx_load_int(lengths, i), (long long)i, (long long)keys);
  return weft_ok();
}

static weft_status_t turn_heads(node_t* node, int64_t first, weft_onnx_heads_t* heads) {
  value_t* table[2];
  int64_t interleaved, length = heads->value->shape.extent[1];
  TRY(weft_onnx_attribute_int(node, "rotary_interleaved", 0, &interleaved));
  for (int32_t i = 0; i < 2; ++i) {
    value_t* all = weft_onnx_input(node, 7 + i);
    NODE_REQUIRE(node, all && all->shape.rank == 2 && first + length <= all->shape.extent[0], INVALID_INPUT,
                 "do_rotary needs tables of cosines and sines for %lld positions", (long long)(first + length));
    TRY(weft_onnx_slice(node, all, (int64_t[]){first, 0}, (int64_t[]){length, all->shape.extent[1]}, (int64_t[]){1, 1},
                        &table[i]));
    TRY(weft_onnx_unsqueeze(node, table[i], 0, &table[i]));
  }
  return weft_onnx_rotate(node, heads, table[0], table[1], interleaved != 0);
}

static weft_status_t emit_grouped(node_t* node) {
  int64_t heads, shared, window, rotary, smooth;
  weft_onnx_attention_t attention = {.masked = -(double)INFINITY};
  weft_onnx_heads_t* parts[] = {&attention.query, &attention.key, &attention.value};
  value_t *query = weft_onnx_input(node, 0), *past[] = {weft_onnx_input(node, 3), weft_onnx_input(node, 4)};
  TRY(number_of_heads(node, &heads));
  TRY(weft_onnx_attribute_int(node, "kv_num_heads", 0, &shared));
  TRY(weft_onnx_attribute_int(node, "local_window_size", -1, &window));
  TRY(weft_onnx_attribute_int(node, "do_rotary", 0, &rotary));
  TRY(weft_onnx_attribute_int(node, "smooth_softmax", 0, &smooth));
  TRY(weft_onnx_attribute_float(node, "softcap", 0, &attention.softcap));
  NODE_REQUIRE(node, query && query->shape.rank == 3 && shared > 0 && heads % shared == 0, INVALID_INPUT,
               "queries are missing or not of rank 3, or %lld heads do not share %lld of keys", (long long)heads,
               (long long)shared);
  NODE_REQUIRE(node, smooth <= 0 && node->input_count <= 9, UNSUPPORTED,
               "smooth_softmax, position_ids, attention_bias and head_sink are not supported");
  NODE_REQUIRE(node, !past[0] == !past[1], INVALID_INPUT, "past_key and past_value come together");
  bool is_packed = !weft_onnx_input(node, 1);
  int64_t counts[] = {heads, shared, shared}, at = 0;
  int64_t size = is_packed ? query->shape.extent[2] / (heads + 2 * shared) : 0;
  for (int32_t i = 0; i < 3; at += counts[i++] * size) {
    value_t* part = weft_onnx_input(node, i);
    if (is_packed) TRY(last_axis(node, query, at, counts[i] * size, &part));
    NODE_REQUIRE(node, part, INVALID_INPUT, "input %d is missing", i);
    TRY(weft_onnx_split_heads(node, part, counts[i], parts[i]));
  }
  attention.past = past[0] && past[0]->shape.rank == 4 ? past[0]->shape.extent[2] : 0;
  for (int32_t i = 0; i < 2 && rotary; ++i) TRY(turn_heads(node, attention.past, parts[i]));
  for (int32_t i = 0; i < 2; ++i) {
    TRY(weft_onnx_append_heads(node, past[i], parts[1 + i]));
    if (node->output_count > 1 + i) TRY(weft_onnx_heads_first(node, parts[1 + i], &node->output[1 + i]));
  }
  TRY(weft_onnx_attribute_float(node, "scale", 0, &attention.scale));
  if (attention.scale == 0) attention.scale = 1 / sqrt((double)attention.query.value->shape.extent[3]);
  int64_t queries = query->shape.extent[1];
  TRY(require_full_cache(node, attention.past + queries));
  TRY(visible_keys(node, queries, attention.past + queries, window > 0 ? window : 0, &attention.bias));
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
    OPERATOR("Attention", 1, 2, 7, 2, emit_attention, "no shared cache; masks of rank 1 to 4"),
    OPERATOR("GroupQueryAttention", 1, 7, 11, 3, emit_grouped,
             "a cache that is full: seqlens_k known, and the same for all; no bias, positions or sinks",
             .has_gaps = true),
    OPERATOR("MultiHeadAttention", 1, 1, 10, 3, emit_multi_head, "no shared cache; masks of rank 1 to 4"),
    OPERATOR("RotaryEmbedding", 1, 4, 4, 1, emit_rotary, "no packed batching"),
    {0}};

const weft_onnx_family_t weft_onnx_family_microsoft_attention = {"com.microsoft: attention", operators};
