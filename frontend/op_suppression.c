// NonMaxSuppression: the best box is taken and what overlaps it is out, as often as boxes may be taken: unrolled. Each
// round is a reduction over the boxes of all batches and classes at once.
#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

enum { MAX_ROUNDS = 256 };

// p: whether a box is given by its centre and size. x: two numbers of one direction.
BODY(low_end) {
  return b->p[0] != 0 ? s_sub(b, x[0], s_mul(b, x[1], s_const(x[1], 0.5))) : s_min(b, x[0], x[1]);
}
BODY(high_end) {
  return b->p[0] != 0 ? s_add(b, x[0], s_mul(b, x[1], s_const(x[1], 0.5))) : s_max(b, x[0], x[1]);
}
static scalar_t overlap(body_t* b, const scalar_t* low, const scalar_t* high) {
  scalar_t length = s_sub(b, s_min(b, high[0], high[1]), s_max(b, low[0], low[1]));
  return s_max(b, length, s_const(length, 0));
}
// p: threshold. x: low y, high y, low x, high x of a box, and of another.
BODY(overlaps) {
  scalar_t common = s_mul(b, overlap(b, (scalar_t[]){x[0], x[4]}, (scalar_t[]){x[1], x[5]}),
                          overlap(b, (scalar_t[]){x[2], x[6]}, (scalar_t[]){x[3], x[7]}));
  scalar_t first = s_mul(b, s_sub(b, x[1], x[0]), s_sub(b, x[3], x[2]));
  scalar_t second = s_mul(b, s_sub(b, x[5], x[4]), s_sub(b, x[7], x[6]));
  scalar_t together = s_sub(b, s_add(b, first, second), common); // common / together > threshold, without dividing
  scalar_t is_large = s_compare(b, WEFT_ONNX_GT, common, s_mul(b, together, s_const(common, b->p[0])));
  return weft_onnx_scalar_binary(b, WEFT_ONNX_AND, is_large, s_compare(b, WEFT_ONNX_GT, common, s_const(common, 0)));
}
BODY(above_threshold) { // p: threshold
  return s_compare(b, WEFT_ONNX_GT, x[0], s_const(x[0], b->p[0]));
}
BODY(score_if_left) { // x: score, whether the box is left
  return s_select(b, x[1], x[0], s_const(x[0], -(double)INFINITY));
}
// p: number of boxes. x: score, whether the box is left, best score, position, accumulator: the first of the best.
BODY(first_of_best) {
  scalar_t is_best = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x[1], s_compare(b, WEFT_ONNX_EQ, x[0], x[2]));
  return s_min(b, x[4], s_select(b, is_best, x[3], s_const(x[3], b->p[0])));
}
// x: taken box, position, whether the one at it overlaps, accumulator.
BODY(overlaps_taken) {
  scalar_t is_out = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, s_compare(b, WEFT_ONNX_EQ, x[0], x[1]), x[2]);
  return s_max(b, x[3], s_select(b, is_out, s_const(x[3], 1), s_const(x[3], 0)));
}
// x: whether the box is left, taken box, position, whether it overlaps the taken one.
BODY(stays) {
  scalar_t is_other = s_compare(b, WEFT_ONNX_NE, x[1], x[2]),
           is_apart = s_compare(b, WEFT_ONNX_EQ, x[3], s_const(x[3], 0));
  return weft_onnx_scalar_binary(b, WEFT_ONNX_AND, x[0], weft_onnx_scalar_binary(b, WEFT_ONNX_AND, is_other, is_apart));
}

typedef struct suppression_t {
  int64_t batch, classes, boxes, rounds;
  value_t *scores, *left; // [batch, classes, boxes]; left: not yet taken, nor overlapping a taken one
  value_t* overlapping;   // [batch, boxes, boxes]
  value_t* position;      // 0, 1, ..
} suppression_t;

static weft_status_t box_numbers(node_t* node, bool centre, value_t** out) {
  value_t *boxes = node->input[0], *number[4];
  shape_t flat = {2, {boxes->shape.extent[0], boxes->shape.extent[1]}};
  double p[] = {centre};
  for (int64_t i = 0; i < 4; ++i) {
    TRY(weft_onnx_take(node, boxes, 2, 1, &i, &number[i]));
    TRY(weft_onnx_reshape(node, number[i], &flat, &number[i]));
  }
  for (int32_t i = 0; i < 2; ++i) { // y, x; a corner is (y, x), a centre (x, y)
    value_t* pair[] = {number[centre ? 1 - i : i], number[centre ? 3 - i : 2 + i]};
    TRY(weft_onnx_pointwise(node, low_end, p, boxes->dtype, 2, pair, &out[2 * i]));
    TRY(weft_onnx_pointwise(node, high_end, p, boxes->dtype, 2, pair, &out[2 * i + 1]));
  }
  return weft_ok();
}

static weft_status_t find_overlaps(node_t* node, bool centre, double threshold, value_t** out) {
  value_t *number[4], *operand[8];
  TRY(box_numbers(node, centre, number));
  for (int32_t i = 0; i < 4; ++i) {
    TRY(weft_onnx_unsqueeze(node, number[i], 2, &operand[i]));
    TRY(weft_onnx_unsqueeze(node, number[i], 1, &operand[4 + i]));
  }
  return weft_onnx_pointwise(node, overlaps, &threshold, WEFT_DTYPE_BOOL, 8, operand, out);
}

// One round: taken [batch, classes], the number of boxes where none is left.
static weft_status_t take_best(node_t* node, suppression_t* s, value_t** out_taken) {
  value_t *masked, *best, *overlapped, *taken;
  double p[] = {(double)s->boxes};
  const weft_onnx_axis_map_t n = weft_onnx_along(0), c = weft_onnx_along(1), i = weft_onnx_along(2),
                             k = weft_onnx_along(3);
  TRY(weft_onnx_pointwise(node, score_if_left, NULL, s->scores->dtype, 2, (value_t*[]){s->scores, s->left}, &masked));
  TRY(weft_onnx_reduce(node, weft_onnx_body_max, -(double)INFINITY, masked, 1u << 2, false, &best));
  weft_onnx_generic_t find = {
      .rank = 3,
      .extent = {s->batch, s->classes, s->boxes},
      .reduction = 1u << 2,
      .operand_count = 4,
      .operand = {{s->scores, 3, {n, c, i}}, {s->left, 3, {n, c, i}}, {best, 2, {n, c}}, {s->position, 1, {i}}},
      .dtype = WEFT_DTYPE_I32,
      .initial = p[0],
      .body = first_of_best,
      .p = p};
  TRY(weft_onnx_generic(node, &find, &taken));
  *out_taken = taken;
  weft_onnx_generic_t compare = {.rank = 4,
                                 .extent = {s->batch, s->classes, s->boxes, s->boxes},
                                 .reduction = 1u << 3,
                                 .operand_count = 3,
                                 .operand = {{taken, 2, {n, c}}, {s->position, 1, {k}}, {s->overlapping, 3, {n, k, i}}},
                                 .dtype = WEFT_DTYPE_I32,
                                 .body = overlaps_taken};
  TRY(weft_onnx_generic(node, &compare, &overlapped));
  TRY(weft_onnx_unsqueeze(node, taken, 2, &taken));
  return weft_onnx_pointwise(node, stays, NULL, WEFT_DTYPE_BOOL, 4,
                             (value_t*[]){s->left, taken, s->position, overlapped}, &s->left);
}

static weft_status_t prepare(node_t* node, suppression_t* s) {
  const shape_t *boxes = &node->input[0]->shape, *scores = &node->input[1]->shape;
  double rounds, threshold, score_threshold;
  int64_t centre;
  NODE_REQUIRE(node,
               boxes->rank == 3 && boxes->extent[2] == 4 && scores->rank == 3 &&
                   scores->extent[0] == boxes->extent[0] && scores->extent[2] == boxes->extent[1],
               INVALID_INPUT, "boxes have shape %s and scores %s, expected [N, B, 4] and [N, C, B]",
               weft_onnx_shape_format(boxes).text, weft_onnx_shape_format(scores).text);
  TRY(weft_onnx_attribute_int(node, "center_point_box", 0, &centre));
  TRY(weft_onnx_known_number(node, 2, "max_output_boxes_per_class", 0, &rounds));
  TRY(weft_onnx_known_number(node, 3, "iou_threshold", 0, &threshold));
  TRY(weft_onnx_known_number(node, 4, "score_threshold", -(double)INFINITY, &score_threshold));
  *s = (suppression_t){
      .batch = scores->extent[0], .classes = scores->extent[1], .boxes = scores->extent[2], .scores = node->input[1]};
  s->rounds = rounds < (double)s->boxes ? (int64_t)fmax(rounds, 0) : s->boxes;
  NODE_REQUIRE(node, s->rounds <= MAX_ROUNDS && s->boxes < INT32_MAX, UNSUPPORTED,
               "it takes up to %lld boxes of a class, at most %d are supported", (long long)s->rounds, MAX_ROUNDS);
  TRY(find_overlaps(node, centre != 0, threshold, &s->overlapping));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, s->boxes, &s->position));
  return weft_onnx_pointwise(node, above_threshold, &score_threshold, WEFT_DTYPE_BOOL, 1, &s->scores, &s->left);
}

// [batch * classes * rounds], counted by the rounds last: batch, class.
static weft_status_t batch_and_class(node_t* node, const suppression_t* s, value_t** out_batch, value_t** out_class) {
  int64_t total = s->batch * s->classes * s->rounds, *batch, *class;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)total + 1, &batch));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)total + 1, &class));
  for (int64_t i = 0; i < total; ++i) {
    batch[i] = i / s->rounds / s->classes;
    class[i] = i / s->rounds % s->classes;
  }
  TRY(weft_onnx_known_list(node, (int32_t)total, batch, out_batch));
  return weft_onnx_known_list(node, (int32_t)total, class, out_class);
}

static weft_status_t emit_non_max_suppression(node_t* node) {
  suppression_t s;
  value_t **rounds, *taken, *flags, *column[3];
  TRY(prepare(node, &s));
  if (s.rounds == 0 || s.batch * s.classes == 0)
    return weft_onnx_known(node, WEFT_DTYPE_I64, &(shape_t){2, {0, 3}}, "", &node->output[0]);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)s.rounds, &rounds));
  for (int64_t i = 0; i < s.rounds; ++i) {
    TRY(take_best(node, &s, &rounds[i]));
    TRY(weft_onnx_unsqueeze(node, rounds[i], 2, &rounds[i]));
  }
  TRY(weft_onnx_concat(node, 2, (int32_t)s.rounds, rounds, &taken));
  TRY(weft_onnx_reshape(node, taken, &(shape_t){1, {s.batch * s.classes * s.rounds}}, &taken));
  double p[] = {(double)s.boxes};
  TRY(weft_onnx_pointwise(node, weft_onnx_body_below, p, WEFT_DTYPE_BOOL, 1, &taken, &flags));
  TRY(batch_and_class(node, &s, &column[0], &column[1]));
  column[2] = taken;
  return weft_onnx_compact(node, flags, 3, column, WEFT_DTYPE_I64, 1, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("NonMaxSuppression", 10, 2, 5, 1, emit_non_max_suppression,
             "constant limits; the model or --dim has to fix the result's length, filled with -1; a round for each box "
             "that may be taken"),
    {0}};

const weft_onnx_family_t weft_onnx_family_suppression = {"Detection", operators};
