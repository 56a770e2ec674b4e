// LinearAttention: a state [batch, heads, size, value size] that each position's key and value change and its query
// reads. Position by position, unrolled.
#include <math.h>
#include <string.h>

#include "frontend/attention.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
enum { BATCH, HEAD, SIZE, VALUE }; // axes of the state, and dimensions of what is computed with it
enum { MAX_POSITIONS = 1 << 16 };

typedef struct linear_t {
  bool decays, corrects; // by the update rule
  double scale;
  int64_t batch, length, heads, size, value_size;
  value_t *query, *key, *value, *decay, *strength; // [batch, length, heads, ..] in f32
} linear_t;

BODY(decayed) {
  return s_mul(b, x[0], s_exp(b, x[1]));
}
BODY(correction) { // value, what the state has under the key, strength
  return s_mul(b, x[2], s_sub(b, x[0], x[1]));
}
BODY(written) { // state, key, value
  return s_add(b, x[0], s_mul(b, x[1], x[2]));
}
BODY(scaled) {
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}

// [batch, length, ..] at a position, without that axis.
static weft_status_t at_position(node_t* node, value_t* value, int64_t position, value_t** out) {
  shape_t shape = {.rank = value->shape.rank - 1, .extent = {value->shape.extent[0]}};
  for (int32_t i = 1; i < shape.rank; ++i) shape.extent[i] = value->shape.extent[i + 1];
  TRY(weft_onnx_take(node, value, 1, 1, &position, &value));
  return weft_onnx_reshape(node, value, &shape, out);
}

// sum over size of state[.., size, value] * key[.., (group), size]
static weft_status_t read_state(node_t* node, value_t* state, value_t* key, value_t** out) {
  const int64_t* e = state->shape.extent;
  bool is_grouped = key->shape.rank == 4;
  int32_t group = 2, value = 2 + is_grouped, size = 3 + is_grouped;
  weft_onnx_generic_t generic = {.rank = size + 1,
                                 .extent = {e[BATCH], e[HEAD], is_grouped ? key->shape.extent[2] : e[VALUE], e[VALUE]},
                                 .reduction = 1u << size,
                                 .operand_count = 2,
                                 .dtype = state->dtype,
                                 .body = weft_onnx_body_mul_add};
  generic.extent[size] = e[SIZE];
  generic.operand[0] = (weft_onnx_operand_t){
      state, 4, {weft_onnx_along(0), weft_onnx_along(1), weft_onnx_along(size), weft_onnx_along(value)}};
  generic.operand[1] = (weft_onnx_operand_t){key, key->shape.rank, {weft_onnx_along(0), weft_onnx_along(1)}};
  if (is_grouped) generic.operand[1].axis[2] = weft_onnx_along(group);
  generic.operand[1].axis[key->shape.rank - 1] = weft_onnx_along(size);
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t step(node_t* node, const linear_t* linear, int64_t position, value_t** state, value_t** out) {
  value_t *query, *key, *value, *decay, *strength, *stored;
  TRY(at_position(node, linear->query, position, &query));
  TRY(at_position(node, linear->key, position, &key));
  TRY(at_position(node, linear->value, position, &value));
  if (linear->decays) {
    TRY(at_position(node, linear->decay, position, &decay)); // [batch, heads, size or 1]
    TRY(weft_onnx_unsqueeze(node, decay, 3, &decay));
    TRY(weft_onnx_binary(node, decayed, *state, decay, state));
  }
  if (linear->corrects) {
    TRY(at_position(node, linear->strength, position, &strength)); // [batch, heads or 1, 1]
    TRY(read_state(node, *state, key, &stored));
    TRY(weft_onnx_pointwise(node, correction, NULL, WEFT_DTYPE_F32, 3, (value_t*[]){value, stored, strength}, &value));
  }
  TRY(weft_onnx_unsqueeze(node, key, 3, &key));
  TRY(weft_onnx_unsqueeze(node, value, 2, &value));
  TRY(weft_onnx_pointwise(node, written, NULL, WEFT_DTYPE_F32, 3, (value_t*[]){*state, key, value}, state));
  TRY(read_state(node, *state, query, out));
  TRY(weft_onnx_unary(node, scaled, &linear->scale, *out, out));
  shape_t shape = {3, {linear->batch, 1, weft_onnx_count(*out) / linear->batch}};
  return weft_onnx_reshape(node, *out, &shape, out);
}

// [batch, length, heads * n] -> [batch, length, heads, n] in f32.
static weft_status_t split(node_t* node, value_t* value, int64_t heads, value_t** out) {
  weft_onnx_heads_t split;
  TRY(weft_onnx_split_heads(node, value, heads, &split));
  return weft_onnx_cast(node, split.value, WEFT_DTYPE_F32, out);
}

static weft_status_t read_rule(node_t* node, linear_t* linear) {
  const char* rule;
  TRY(weft_onnx_attribute_string(node, "update_rule", "gated_delta", &rule));
  linear->decays = strncmp(rule, "gated", 5) == 0;
  linear->corrects = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  NODE_REQUIRE(node, linear->decays || linear->corrects || strcmp(rule, "linear") == 0, INVALID_INPUT,
               "update_rule is '%s', expected linear, gated, delta or gated_delta", rule);
  NODE_REQUIRE(node, !linear->decays || weft_onnx_input(node, 4), INVALID_INPUT, "input 4 (decay) is missing");
  NODE_REQUIRE(node, !linear->corrects || weft_onnx_input(node, 5), INVALID_INPUT, "input 5 (beta) is missing");
  return weft_ok();
}

static weft_status_t prepare(node_t* node, linear_t* linear) {
  int64_t heads;
  TRY(read_rule(node, linear));
  TRY(weft_onnx_attribute_int(node, "kv_num_heads", 0, &linear->heads));
  TRY(weft_onnx_attribute_int(node, "q_num_heads", 0, &heads));
  NODE_REQUIRE(node, linear->heads > 0 && heads > 0 && heads % linear->heads == 0, INVALID_INPUT,
               "%lld heads of queries for %lld of keys", (long long)heads, (long long)linear->heads);
  TRY(split(node, node->input[0], heads, &linear->query));
  TRY(split(node, node->input[1], linear->heads, &linear->key));
  TRY(split(node, node->input[2], linear->heads, &linear->value));
  if (linear->decays) TRY(split(node, node->input[4], linear->heads, &linear->decay));
  if (linear->corrects) { // a number for each head, or one for all
    const shape_t* shape = &node->input[5]->shape;
    TRY(split(node, node->input[5], shape->rank == 3 ? shape->extent[2] : 0, &linear->strength));
  }
  const int64_t *q = linear->query->shape.extent, *k = linear->key->shape.extent, *v = linear->value->shape.extent;
  linear->batch = k[0];
  linear->length = k[1];
  linear->size = k[3];
  linear->value_size = v[3];
  NODE_REQUIRE(node, q[0] == k[0] && v[0] == k[0] && q[1] == k[1] && v[1] == k[1] && q[3] == k[3], INVALID_INPUT,
               "queries, keys and values have shapes %s, %s and %s",
               weft_onnx_shape_format(&node->input[0]->shape).text, weft_onnx_shape_format(&node->input[1]->shape).text,
               weft_onnx_shape_format(&node->input[2]->shape).text);
  NODE_REQUIRE(node, linear->length > 0 && linear->length <= MAX_POSITIONS, UNSUPPORTED,
               "%lld positions, 1 to %d are unrolled", (long long)linear->length, MAX_POSITIONS);
  if (heads != linear->heads) {
    shape_t shape = {5, {q[0], q[1], linear->heads, heads / linear->heads, q[3]}};
    TRY(weft_onnx_reshape(node, linear->query, &shape, &linear->query));
  }
  TRY(weft_onnx_attribute_float(node, "scale", 0, &linear->scale));
  if (linear->scale == 0) linear->scale = 1 / sqrt((double)linear->size);
  return weft_ok();
}

static weft_status_t emit_linear_attention(node_t* node) {
  linear_t linear = {0};
  value_t *state = weft_onnx_input(node, 3), **rows;
  weft_dtype_e dtype = node->input[0]->dtype;
  TRY(prepare(node, &linear));
  shape_t shape = {4, {linear.batch, linear.heads, linear.size, linear.value_size}};
  if (state) {
    NODE_REQUIRE(node, weft_onnx_shape_equal(&state->shape, &shape), INVALID_INPUT,
                 "past_state has shape %s, expected %s", weft_onnx_shape_format(&state->shape).text,
                 weft_onnx_shape_format(&shape).text);
    TRY(weft_onnx_cast(node, state, WEFT_DTYPE_F32, &state));
  } else {
    TRY(weft_onnx_number(node, WEFT_DTYPE_F32, 0, &state));
    TRY(weft_onnx_expand(node, state, &shape, &state));
  }
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)linear.length, &rows));
  for (int64_t i = 0; i < linear.length; ++i) TRY(step(node, &linear, i, &state, &rows[i]));
  TRY(weft_onnx_concat(node, 1, (int32_t)linear.length, rows, &node->output[0]));
  TRY(weft_onnx_cast(node, node->output[0], dtype, &node->output[0]));
  return node->output_count > 1 ? weft_onnx_cast(node, state, dtype, &node->output[1]) : weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("LinearAttention", 27, 3, 6, 2, emit_linear_attention, "unrolled; the state is f32"), {0}};

const weft_onnx_family_t weft_onnx_family_linear_attention = {"Linear attention", operators};
