// A step of training: parameters and their moments after a gradient.
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
static scalar_t scaled(body_t* b, scalar_t x, double factor) {
  return s_mul(b, x, s_const(x, factor));
}

// What the three have in common: rate, steps so far, then for each parameter itself, its gradient, and `moments` more.
enum { RATE, COUNT, FIRST, MAX_MOMENTS = 2 };
typedef struct step_t {
  int32_t moments;
  weft_onnx_body_fn rate;                // x: rate, count
  weft_onnx_body_fn regular;             // x: parameter, gradient
  weft_onnx_body_fn moment[MAX_MOMENTS]; // x: moment, regular gradient, count
  weft_onnx_body_fn parameter;           // x: parameter, rate, regular gradient, new moments
  double p[5];
} step_t;

static weft_status_t take_step(node_t* node, const step_t* step) {
  int32_t kinds = 2 + step->moments, count = (node->input_count - FIRST) / kinds;
  value_t *rate = node->input[RATE], *steps = node->input[COUNT];
  NODE_REQUIRE(node,
               count > 0 && count * kinds + FIRST == node->input_count && node->output_count <= count * (kinds - 1),
               INVALID_INPUT, "it has %d inputs and %d outputs, expected two and %d for each parameter",
               node->input_count, node->output_count, kinds);
  for (int32_t i = 0; i < node->input_count; ++i)
    NODE_REQUIRE(node, node->input[i], INVALID_INPUT, "input %d is missing", i);
  TRY(weft_onnx_reshape(node, rate, &(shape_t){0}, &rate));
  TRY(weft_onnx_reshape(node, steps, &(shape_t){0}, &steps));
  if (step->rate) TRY(weft_onnx_pointwise(node, step->rate, step->p, rate->dtype, 2, (value_t*[]){rate, steps}, &rate));
  for (int32_t i = 0; i < count; ++i) {
    value_t *x = node->input[FIRST + i], *gradient, *moment[MAX_MOMENTS] = {NULL};
    weft_dtype_e dtype = x->dtype;
    TRY(weft_onnx_pointwise(node, step->regular, step->p, dtype, 2, (value_t*[]){x, node->input[FIRST + count + i]},
                            &gradient));
    for (int32_t m = 0; m < step->moments; ++m) {
      value_t* old = node->input[FIRST + (2 + m) * count + i];
      TRY(weft_onnx_pointwise(node, step->moment[m], step->p, dtype, 3, (value_t*[]){old, gradient, steps},
                              &moment[m]));
      int32_t output = (1 + m) * count + i;
      if (output < node->output_count) node->output[output] = moment[m];
    }
    value_t* operands[] = {x, rate, gradient, moment[0], moment[1]};
    TRY(weft_onnx_pointwise(node, step->parameter, step->p, dtype, 3 + step->moments, operands, &node->output[i]));
  }
  return weft_ok();
}

static scalar_t regular(body_t* b, const scalar_t* x) { // p[0]: norm_coefficient
  return b->p[0] == 0 ? x[1] : s_add(b, scaled(b, x[0], b->p[0]), x[1]);
}

// --- Adagrad. p: norm_coefficient, epsilon, decay_factor

BODY(adagrad_rate) {
  scalar_t decay = scaled(b, s_cast(b, x[1], x[0].dtype), b->p[2]);
  return s_div(b, x[0], s_add(b, s_const(x[0], 1), decay));
}
BODY(adagrad_moment) {
  return s_add(b, x[0], s_mul(b, x[1], x[1]));
}
BODY(adagrad_parameter) {
  scalar_t size = s_add(b, s_sqrt(b, x[3]), s_const(x[0], b->p[1]));
  return s_sub(b, x[0], s_div(b, s_mul(b, s_cast(b, x[1], x[0].dtype), x[2]), size));
}

static weft_status_t emit_adagrad(node_t* node) {
  step_t step = {1, adagrad_rate, regular, {adagrad_moment}, adagrad_parameter, {0}};
  TRY(weft_onnx_attribute_float(node, "norm_coefficient", 0, &step.p[0]));
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-6, &step.p[1]));
  TRY(weft_onnx_attribute_float(node, "decay_factor", 0, &step.p[2]));
  return take_step(node, &step);
}

// --- Adam. p: norm_coefficient, epsilon, alpha, beta, norm_coefficient_post

BODY(adam_rate) {
  scalar_t one = s_const(x[0], 1), steps = s_cast(b, x[1], x[0].dtype);
  scalar_t first = s_sub(b, one, weft_onnx_scalar_binary(b, WEFT_ONNX_POW, s_const(x[0], b->p[2]), steps));
  scalar_t second = s_sub(b, one, weft_onnx_scalar_binary(b, WEFT_ONNX_POW, s_const(x[0], b->p[3]), steps));
  scalar_t adjusted = s_div(b, s_mul(b, x[0], s_sqrt(b, second)), first);
  return s_select(b, s_compare(b, WEFT_ONNX_GT, x[1], s_const(x[1], 0)), adjusted, x[0]);
}
BODY(adam_first) {
  return s_add(b, scaled(b, x[0], b->p[2]), scaled(b, x[1], 1 - b->p[2]));
}
BODY(adam_second) {
  return s_add(b, scaled(b, x[0], b->p[3]), scaled(b, s_mul(b, x[1], x[1]), 1 - b->p[3]));
}
BODY(adam_parameter) {
  scalar_t size = s_add(b, s_sqrt(b, x[4]), s_const(x[0], b->p[1]));
  scalar_t result = s_sub(b, x[0], s_div(b, s_mul(b, s_cast(b, x[1], x[0].dtype), x[3]), size));
  return b->p[4] == 0 ? result : scaled(b, result, 1 - b->p[4]);
}

static weft_status_t emit_adam(node_t* node) {
  step_t step = {2, adam_rate, regular, {adam_first, adam_second}, adam_parameter, {0}};
  TRY(weft_onnx_attribute_float(node, "norm_coefficient", 0, &step.p[0]));
  TRY(weft_onnx_attribute_float(node, "epsilon", 1e-6, &step.p[1]));
  TRY(weft_onnx_attribute_float(node, "alpha", 0.9F, &step.p[2]));
  TRY(weft_onnx_attribute_float(node, "beta", 0.999F, &step.p[3]));
  TRY(weft_onnx_attribute_float(node, "norm_coefficient_post", 0, &step.p[4]));
  return take_step(node, &step);
}

// --- Momentum. p: norm_coefficient, alpha, beta, is nesterov

BODY(momentum) {
  scalar_t later = scaled(b, x[1], b->p[2]);
  scalar_t share = s_select(b, s_compare(b, WEFT_ONNX_GT, x[2], s_const(x[2], 0)), later, x[1]);
  return s_add(b, scaled(b, x[0], b->p[1]), share);
}
BODY(momentum_parameter) {
  scalar_t way = b->p[3] != 0 ? s_add(b, x[2], scaled(b, x[3], b->p[1])) : x[3];
  return s_sub(b, x[0], s_mul(b, s_cast(b, x[1], x[0].dtype), way));
}

static weft_status_t emit_momentum(node_t* node) {
  step_t step = {1, NULL, regular, {momentum}, momentum_parameter, {0}};
  const char* mode;
  TRY(weft_onnx_attribute_float(node, "norm_coefficient", 0, &step.p[0]));
  TRY(weft_onnx_attribute_float(node, "alpha", 0, &step.p[1]));
  TRY(weft_onnx_attribute_float(node, "beta", 0, &step.p[2]));
  TRY(weft_onnx_attribute_string(node, "mode", "", &mode));
  NODE_REQUIRE(node, strcmp(mode, "standard") == 0 || strcmp(mode, "nesterov") == 0, INVALID_INPUT,
               "mode is '%s', expected standard or nesterov", mode);
  step.p[3] = strcmp(mode, "nesterov") == 0;
  return take_step(node, &step);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Adagrad", 1, 5, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_adagrad, ""),
    OPERATOR("Adam", 1, 6, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_adam, ""),
    OPERATOR("Momentum", 1, 5, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_momentum, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_training = {"ai.onnx.preview.training", operators};
