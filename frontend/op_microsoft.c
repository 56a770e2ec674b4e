// Operators of ONNX Runtime's own domain that transformer exporters and its graph optimizer write: activations, fused
// products, normalisations.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// --- Activations

// p: alpha
BODY(quick_gelu) {
  scalar_t one = s_const(x[0], 1), minus = s_mul(b, x[0], s_const(x[0], -b->p[0]));
  return s_div(b, x[0], s_add(b, one, s_exp(b, minus)));
}

// Of the input, or of its sum with a bias.
static weft_status_t emit_activation(node_t* node) {
  double p[WEFT_ONNX_MAX_PARAMETERS];
  value_t *x = node->input[0], *bias = weft_onnx_input(node, 1);
  TRY(weft_onnx_parameters(node, p));
  if (bias) TRY(weft_onnx_binary(node, weft_onnx_body_add, x, bias, &x));
  return weft_onnx_unary(node, node->op->body, p, x, &node->output[0]);
}

// --- Products

BODY(scaled) { // p: factor
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}

static weft_status_t swap_last(node_t* node, const char* attribute, value_t** value) {
  int64_t is_wanted;
  int32_t permutation[WEFT_ONNX_MAX_RANK], rank = (*value)->shape.rank;
  TRY(weft_onnx_attribute_int(node, attribute, 0, &is_wanted));
  if (!is_wanted || rank < 2) return weft_ok();
  for (int32_t i = 0; i < rank; ++i) permutation[i] = i;
  permutation[rank - 1] = rank - 2;
  permutation[rank - 2] = rank - 1;
  return weft_onnx_transpose(node, *value, permutation, value);
}

// The first axis becomes the last but one.
static weft_status_t move_first(node_t* node, const char* attribute, value_t** value) {
  int64_t is_wanted;
  int32_t permutation[WEFT_ONNX_MAX_RANK], rank = (*value)->shape.rank;
  TRY(weft_onnx_attribute_int(node, attribute, 0, &is_wanted));
  if (!is_wanted) return weft_ok();
  NODE_REQUIRE(node, rank >= 3, INVALID_INPUT, "%s needs an operand of rank 3 at least, got %s", attribute,
               weft_onnx_shape_format(&(*value)->shape).text);
  for (int32_t i = 0; i < rank; ++i) permutation[i] = i < rank - 2 ? i + 1 : i == rank - 2 ? 0 : i;
  return weft_onnx_transpose(node, *value, permutation, value);
}

static weft_status_t emit_fused_matmul(node_t* node) {
  value_t *a = node->input[0], *b = node->input[1];
  double p[1];
  weft_dtype_e dtype = a->dtype;
  TRY(weft_onnx_attribute_float(node, "alpha", 1, &p[0]));
  TRY(move_first(node, "transBatchA", &a));
  TRY(move_first(node, "transBatchB", &b));
  TRY(swap_last(node, "transA", &a));
  TRY(swap_last(node, "transB", &b));
  TRY(weft_onnx_matmul(node, a, b, &node->output[0]));
  if (p[0] != 1) TRY(weft_onnx_unary(node, scaled, p, node->output[0], &node->output[0]));
  return weft_onnx_cast(node, node->output[0], dtype, &node->output[0]);
}

BODY(clipped) { // p: lowest, highest
  return s_clamp(b, x[0], b->p[0], b->p[1]);
}

// Attributes `activation` and `activation_params`, or `activation_alpha` and so on: the parameters of the operator of
// that name, in its order.
static weft_status_t fused_activation(node_t* node, value_t** value) {
  const char* name;
  const Onnx__AttributeProto* given;
  double p[WEFT_ONNX_MAX_PARAMETERS] = {0};
  TRY(weft_onnx_attribute_string(node, "activation", "", &name));
  TRY(weft_onnx_attribute_proto(node, "activation_params", &given));
  if (!name[0]) return weft_ok();
  bool clips = strcmp(name, "Clip") == 0;
  static const char* const known[] = {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu"};
  const weft_onnx_operator_t* op = NULL;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
    if (strcmp(name, known[i]) == 0) op = weft_onnx_operator_find(name);
  NODE_REQUIRE(node, op || clips, UNSUPPORTED, "the activation '%s' is not supported", name);
  NODE_REQUIRE(node, !clips || (given && given->n_floats >= 2), INVALID_INPUT,
               "activation_params need the lowest and the highest number");
  for (size_t i = 0; i < WEFT_ONNX_MAX_PARAMETERS; ++i) {
    if (op) p[i] = op->parameter[i].otherwise;
    if (given && i < given->n_floats) p[i] = (double)given->floats[i];
    static const char* const single[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    if (!given) TRY(weft_onnx_attribute_float(node, single[i], p[i], &p[i]));
  }
  return weft_onnx_unary(node, op ? op->body : clipped, p, *value, value);
}

// Conv, then the sum with a fourth input, then an activation.
static weft_status_t emit_fused_conv(node_t* node) {
  value_t* addend = weft_onnx_input(node, 3);
  node_t inner = *node;
  inner.op = weft_onnx_operator_find("Conv");
  if (inner.input_count > 3) inner.input_count = 3;
  TRY(inner.op->emit(&inner));
  if (addend) TRY(weft_onnx_binary(node, weft_onnx_body_add, node->output[0], addend, &node->output[0]));
  return fused_activation(node, &node->output[0]);
}

static weft_status_t emit_fused_gemm(node_t* node) {
  node_t inner = *node;
  inner.op = weft_onnx_operator_find("Gemm");
  TRY(inner.op->emit(&inner));
  return fused_activation(node, &node->output[0]);
}

// --- Normalisations

// The sum of input, skip and bias, normalised over the last axis.
static weft_status_t emit_skip_norm(node_t* node) {
  value_t *x = node->input[0], *scale = node->input[2], *mean, *factor, *sum;
  bool center = node->op->kind == 0;
  value_t* shift = center ? weft_onnx_input(node, 3) : NULL;
  value_t* bias = weft_onnx_input(node, center ? 4 : 3);
  double epsilon;
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-12, &epsilon));
  NODE_REQUIRE(node, x->shape.rank >= 1, INVALID_INPUT, "the input is a scalar");
  TRY(weft_onnx_binary(node, weft_onnx_body_add, x, node->input[1], &sum));
  if (bias) TRY(weft_onnx_binary(node, weft_onnx_body_add, sum, bias, &sum));
  TRY(weft_onnx_layer_norm(node, sum, 1u << (sum->shape.rank - 1), epsilon, center, scale, shift, &node->output[0],
                           &mean, &factor));
  if (node->output_count > 1) node->output[1] = mean;
  if (node->output_count > 2) node->output[2] = factor;
  if (node->output_count > 3) node->output[3] = sum;
  return weft_ok();
}

static weft_status_t emit_simplified_norm(node_t* node) {
  node_t inner = *node;
  inner.op = weft_onnx_operator_find("SimplifiedLayerNormalization");
  return inner.op->emit(&inner);
}

BODY(is_set) {
  return s_compare(b, WEFT_ONNX_NE, x[0], s_const(x[0], 0));
}

// How many words each row has, from a mask of them; without one 0.
static weft_status_t count_words(node_t* node, value_t* mask, int64_t batch, value_t** out) {
  if (!mask) {
    TRY(weft_onnx_number(node, WEFT_DTYPE_I32, 0, out));
    return weft_onnx_expand(node, *out, &(shape_t){1, {batch}}, out);
  }
  TRY(weft_onnx_pointwise(node, is_set, NULL, WEFT_DTYPE_I32, 1, &mask, &mask));
  return weft_onnx_reduce(node, weft_onnx_body_sum, 0, mask, 1u << 1, false, out);
}

// Words, segments, word table, position table, segment table, scale, bias, mask, positions.
static weft_status_t emit_embedding(node_t* node) {
  value_t *words = node->input[0], *segments = weft_onnx_input(node, 1), *positions = weft_onnx_input(node, 8);
  value_t *sum, *part, *mean, *factor;
  double epsilon;
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-12, &epsilon));
  NODE_REQUIRE(node, words->shape.rank == 2 && node->input[2] && node->input[3], INVALID_INPUT,
               "input_ids have shape %s, expected [batch, length], and tables for words and positions",
               weft_onnx_shape_format(&words->shape).text);
  NODE_REQUIRE(node, node->input_count > 6, INVALID_INPUT, "it has %d inputs, expected at least 7", node->input_count);
  if (!positions) TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, words->shape.extent[1], &positions));
  TRY(weft_onnx_gather(node, node->input[2], words, 0, &sum));
  TRY(weft_onnx_gather(node, node->input[3], positions, 0, &part));
  TRY(weft_onnx_binary(node, weft_onnx_body_add, sum, part, &sum));
  if (segments && node->input[4]) {
    TRY(weft_onnx_gather(node, node->input[4], segments, 0, &part));
    TRY(weft_onnx_binary(node, weft_onnx_body_add, sum, part, &sum));
  }
  TRY(weft_onnx_layer_norm(node, sum, 1u << 2, epsilon, true, node->input[5], node->input[6], &node->output[0], &mean,
                           &factor));
  if (node->output_count > 1)
    TRY(count_words(node, weft_onnx_input(node, 7), words->shape.extent[0], &node->output[1]));
  if (node->output_count > 2) node->output[2] = sum;
  return weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("BiasGelu", 1, 2, 2, 1, emit_activation, "", .body = weft_onnx_body_gelu),
    OPERATOR("EmbedLayerNormalization", 1, 7, 9, 3, emit_embedding, "", .has_gaps = true),
    OPERATOR("FastGelu", 1, 1, 2, 1, emit_activation, "", .body = weft_onnx_body_gelu_tanh),
    OPERATOR("FusedConv", 1, 2, 4, 1, emit_fused_conv, "1 to 3 spatial axes"),
    OPERATOR("FusedMatMul", 1, 2, 2, 1, emit_fused_matmul, ""),
    OPERATOR("FusedGemm", 1, 2, 3, 1, emit_fused_gemm, ""),
    OPERATOR("Gelu", 1, 1, 1, 1, emit_activation, "", .body = weft_onnx_body_gelu),
    OPERATOR("QuickGelu", 1, 1, 1, 1, emit_activation, "", .body = quick_gelu, .parameter = {{"alpha", 1.702}}),
    OPERATOR("SimplifiedLayerNormalization", 1, 2, 2, 2, emit_simplified_norm, ""),
    OPERATOR("SkipLayerNormalization", 1, 3, 5, 4, emit_skip_norm, ""),
    OPERATOR("SkipSimplifiedLayerNormalization", 1, 3, 4, 4, emit_skip_norm, "", .kind = 1),
    OPERATOR("TransposeMatMul", 1, 2, 2, 1, emit_fused_matmul, "as FusedMatMul"),
    {0}};

const weft_onnx_family_t weft_onnx_family_microsoft = {"com.microsoft", operators};
