// Losses over classes: the class a target names is picked by comparing it with every class.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// p: whether a class is ignored, which.
static scalar_t counts(body_t* b, scalar_t target, scalar_t class) {
  target = s_cast(b, target, WEFT_DTYPE_I64);
  scalar_t hit = s_compare(b, WEFT_ONNX_EQ, target, class);
  if (b->p[0] == 0) return hit;
  scalar_t kept = s_compare(b, WEFT_ONNX_NE, target, s_const(target, b->p[1]));
  return weft_onnx_scalar_binary(b, WEFT_ONNX_AND, hit, kept);
}
// x: target, class, log-probability, weight of the class, accumulator.
BODY(weighted_loss) {
  scalar_t log = s_cast(b, x[2], x[4].dtype), weight = s_cast(b, x[3], x[4].dtype);
  return s_sub(b, x[4], s_select(b, counts(b, x[0], x[1]), s_mul(b, log, weight), s_const(x[4], 0)));
}
// x: target, class, weight of the class, accumulator.
BODY(weight_of_target) {
  return s_add(b, x[3], s_select(b, counts(b, x[0], x[1]), s_cast(b, x[2], x[3].dtype), s_const(x[3], 0)));
}

typedef struct loss_t {
  value_t *target, *class, *weight; // class: 0, 1, 2, ..; weight: one for each class
  double p[2];
  weft_dtype_e dtype; // of the accumulators
  bool is_plain;      // every target counts 1
} loss_t;

// Dimensions: those of the target, then the classes. log: [N, C, d..]; NULL: the weights alone.
static weft_status_t over_classes(node_t* node, const loss_t* loss, value_t* log, value_t** out) {
  int32_t rank = loss->target->shape.rank, at = 0;
  weft_onnx_generic_t generic = {.rank = rank + 1,
                                 .reduction = 1u << rank,
                                 .dtype = loss->dtype,
                                 .body = log ? weighted_loss : weight_of_target,
                                 .p = loss->p};
  weft_onnx_operand_t* target = &generic.operand[at++];
  *target = (weft_onnx_operand_t){.value = loss->target, .rank = rank};
  for (int32_t i = 0; i < rank; ++i) {
    generic.extent[i] = loss->target->shape.extent[i];
    target->axis[i] = weft_onnx_along(i);
  }
  generic.extent[rank] = loss->class->shape.extent[0];
  generic.operand[at++] = (weft_onnx_operand_t){loss->class, 1, {weft_onnx_along(rank)}};
  if (log) {
    weft_onnx_operand_t* scores = &generic.operand[at++];
    *scores = (weft_onnx_operand_t){.value = log, .rank = rank + 1};
    for (int32_t i = 0; i <= rank; ++i) scores->axis[i] = weft_onnx_along(i == 1 ? rank : i == 0 ? 0 : i - 1);
  }
  generic.operand[at++] = (weft_onnx_operand_t){loss->weight, 1, {weft_onnx_along(rank)}};
  generic.operand_count = at;
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t prepare_loss(node_t* node, loss_t* loss) {
  value_t *scores = node->input[0], *one;
  int64_t ignored;
  shape_t classes = {1, {scores->shape.extent[1]}};
  loss->target = node->input[1];
  loss->weight = weft_onnx_input(node, 2);
  loss->dtype = weft_onnx_accumulator(scores->dtype);
  loss->p[0] = weft_onnx_has_attribute(node, "ignore_index");
  loss->is_plain = !loss->weight && loss->p[0] == 0;
  TRY(weft_onnx_attribute_int(node, "ignore_index", 0, &ignored));
  loss->p[1] = (double)ignored;
  NODE_REQUIRE(node, weft_dtype_is_float(scores->dtype) && !weft_dtype_is_float(loss->target->dtype), INVALID_INPUT,
               "scores are %s and targets %s, expected floats and integers", weft_dtype_name(scores->dtype),
               weft_dtype_name(loss->target->dtype));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, classes.extent[0], &loss->class));
  if (!loss->weight) {
    TRY(weft_onnx_number(node, scores->dtype, 1, &one));
    return weft_onnx_expand(node, one, &classes, &loss->weight);
  }
  NODE_REQUIRE(node, weft_onnx_shape_equal(&loss->weight->shape, &classes), INVALID_INPUT,
               "weights have shape %s, expected one for each of %lld classes",
               weft_onnx_shape_format(&loss->weight->shape).text, (long long)classes.extent[0]);
  return weft_ok();
}

static weft_status_t check_target(node_t* node) {
  const shape_t *scores = &node->input[0]->shape, *target = &node->input[1]->shape;
  shape_t expected = {.rank = scores->rank - 1};
  NODE_REQUIRE(node, scores->rank >= 2, INVALID_INPUT, "input has shape %s, expected batch and classes",
               weft_onnx_shape_format(scores).text);
  for (int32_t i = 0; i < expected.rank; ++i) expected.extent[i] = scores->extent[i ? i + 1 : 0];
  NODE_REQUIRE(node, weft_onnx_shape_equal(&expected, target), INVALID_INPUT, "targets have shape %s, expected %s",
               weft_onnx_shape_format(target).text, weft_onnx_shape_format(&expected).text);
  return weft_ok();
}

// The sum, or divided by what the targets weigh together.
static weft_status_t reduce_loss(node_t* node, const loss_t* loss, value_t* each, value_t** out) {
  const char* reduction;
  value_t* weights;
  uint32_t all = (1u << each->shape.rank) - 1;
  TRY(weft_onnx_attribute_string(node, "reduction", "mean", &reduction));
  bool is_mean = strcmp(reduction, "mean") == 0, is_none = strcmp(reduction, "none") == 0;
  NODE_REQUIRE(node, is_mean || is_none || strcmp(reduction, "sum") == 0, INVALID_INPUT,
               "reduction is '%s', expected none, sum or mean", reduction);
  *out = each;
  if (is_none) return weft_ok();
  if (is_mean && loss->is_plain) return weft_onnx_mean(node, each, all, false, out);
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, each, all, false, out));
  if (!is_mean) return weft_ok();
  TRY(over_classes(node, loss, NULL, &weights));
  TRY(weft_onnx_reduce(node, weft_onnx_body_sum, 0, weights, all, false, &weights));
  return weft_onnx_binary(node, weft_onnx_body_div, *out, weights, out);
}

enum { OF_LOGARITHMS, OF_SCORES };

static weft_status_t emit_loss(node_t* node) {
  loss_t loss = {0};
  value_t *log = node->input[0], *each;
  weft_dtype_e dtype = log->dtype;
  TRY(check_target(node));
  TRY(prepare_loss(node, &loss));
  if (node->op->kind == OF_SCORES) {
    TRY(weft_onnx_log_softmax(node, log, 1u << 1, &log));
    if (node->output_count > 1) node->output[1] = log;
  }
  TRY(over_classes(node, &loss, log, &each));
  TRY(reduce_loss(node, &loss, each, &each));
  return weft_onnx_cast(node, each, dtype, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("NegativeLogLikelihoodLoss", 12, 2, 3, 1, emit_loss, "", .kind = OF_LOGARITHMS),
    OPERATOR("SoftmaxCrossEntropyLoss", 12, 2, 3, 2, emit_loss, "", .kind = OF_SCORES),
    {0}};

const weft_onnx_family_t weft_onnx_family_loss = {"Losses", operators};
