#include "frontend/attention.h"

#include <math.h>
#include <string.h>

#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

typedef struct extents_t {
  int64_t batch, heads, length, size;
} extents_t;

static extents_t extents_of(const weft_onnx_heads_t* heads) {
  const int64_t* e = heads->value->shape.extent;
  return heads->sequence_first ? (extents_t){e[0], e[2], e[1], e[3]} : (extents_t){e[0], e[1], e[2], e[3]};
}

weft_status_t weft_onnx_split_heads(node_t* node, value_t* value, int64_t heads, weft_onnx_heads_t* out) {
  const shape_t* shape = &value->shape;
  NODE_REQUIRE(node, shape->rank == 3 && heads > 0 && shape->extent[2] % heads == 0, INVALID_INPUT,
               "an input of shape %s does not split into %lld heads", weft_onnx_shape_format(shape).text,
               (long long)heads);
  shape_t split = {4, {shape->extent[0], shape->extent[1], heads, shape->extent[2] / heads}};
  out->sequence_first = true;
  return weft_onnx_reshape(node, value, &split, &out->value);
}

weft_status_t weft_onnx_heads_first(node_t* node, const weft_onnx_heads_t* heads, value_t** out) {
  *out = heads->value;
  return heads->sequence_first ? weft_onnx_transpose(node, heads->value, (int32_t[]){0, 2, 1, 3}, out) : weft_ok();
}

weft_status_t weft_onnx_append_heads(node_t* node, value_t* past, weft_onnx_heads_t* heads) {
  if (!past) return weft_ok();
  NODE_REQUIRE(node, past->shape.rank == 4, INVALID_INPUT, "past keys or values have shape %s, expected rank 4",
               weft_onnx_shape_format(&past->shape).text);
  TRY(weft_onnx_heads_first(node, heads, &heads->value));
  heads->sequence_first = false;
  return weft_onnx_concat(node, 2, 2, (value_t*[]){past, heads->value}, &heads->value);
}

// The operand over [batch, length, shared heads, group, size], where a dimension of each is given. shared: heads of the
// keys; a query's heads are split into shared and group.
static weft_status_t operand_of(node_t* node, const weft_onnx_heads_t* heads, int64_t shared, int32_t batch,
                                int32_t length, int32_t head, int32_t group, int32_t size, weft_onnx_operand_t* out) {
  extents_t e = extents_of(heads);
  bool is_split = e.heads != shared;
  shape_t shape = {.rank = 0};
  *out = (weft_onnx_operand_t){0};
  int32_t order[2][2] = {{head, length}, {length, head}}; // axis 1 and 2
  int32_t dims[4] = {batch, order[heads->sequence_first][0], order[heads->sequence_first][1], size};
  for (int32_t i = 0; i < 4; ++i) {
    bool splits = is_split && dims[i] == head;
    out->axis[shape.rank] = weft_onnx_along(dims[i]);
    shape.extent[shape.rank++] = splits ? shared : heads->value->shape.extent[i];
    if (!splits) continue;
    out->axis[shape.rank] = weft_onnx_along(group);
    shape.extent[shape.rank++] = e.heads / shared;
  }
  out->rank = shape.rank;
  return weft_onnx_reshape(node, heads->value, &shape, &out->value);
}

// [batch, heads, queries, keys] of the accumulator's type.
static weft_status_t score(node_t* node, const weft_onnx_attention_t* attention, value_t** out) {
  enum { BATCH, SHARED, GROUP, QUERY, KEY, SIZE };
  extents_t q = extents_of(&attention->query), k = extents_of(&attention->key);
  weft_onnx_generic_t generic = {.rank = 6,
                                 .extent = {q.batch, k.heads, q.heads / k.heads, q.length, k.length, q.size},
                                 .reduction = 1u << SIZE,
                                 .operand_count = 2,
                                 .dtype = weft_onnx_accumulator(attention->query.value->dtype),
                                 .body = weft_onnx_body_mul_add};
  bool is_grouped = q.heads != k.heads;
  int32_t group = is_grouped ? GROUP : -1, shift = !is_grouped;
  if (!is_grouped) // one dimension less
    memmove(generic.extent + GROUP, generic.extent + QUERY, 3 * sizeof(int64_t));
  generic.rank -= shift;
  generic.reduction >>= shift;
  TRY(operand_of(node, &attention->query, k.heads, BATCH, QUERY - shift, SHARED, group, SIZE - shift,
                 &generic.operand[0]));
  TRY(operand_of(node, &attention->key, k.heads, BATCH, KEY - shift, SHARED, group, SIZE - shift, &generic.operand[1]));
  TRY(weft_onnx_generic(node, &generic, out));
  return weft_onnx_reshape(node, *out, &(shape_t){4, {q.batch, q.heads, q.length, k.length}}, out);
}

// The mean of the values, weighted by the scores.
static weft_status_t weigh(node_t* node, const weft_onnx_attention_t* attention, value_t* scores, value_t** out) {
  extents_t q = extents_of(&attention->query), v = extents_of(&attention->value);
  bool is_grouped = q.heads != v.heads, sequence_first = attention->query.sequence_first;
  int32_t at = 1, head, group = -1, query = 0, size, key;
  if (sequence_first) query = at++;
  head = at++;
  if (is_grouped) group = at++;
  if (!sequence_first) query = at++;
  size = at++;
  key = at++;
  weft_onnx_generic_t generic = {
      .rank = at, .reduction = 1u << key, .operand_count = 2, .dtype = scores->dtype, .body = weft_onnx_body_mul_add};
  generic.extent[0] = q.batch;
  generic.extent[head] = v.heads;
  if (is_grouped) generic.extent[group] = q.heads / v.heads;
  generic.extent[query] = q.length;
  generic.extent[size] = v.size;
  generic.extent[key] = v.length;
  weft_onnx_heads_t weights = {scores, false}; // [batch, heads, queries, keys]
  TRY(operand_of(node, &weights, v.heads, 0, query, head, group, key, &generic.operand[0]));
  TRY(operand_of(node, &attention->value, v.heads, 0, key, head, group, size, &generic.operand[1]));
  TRY(weft_onnx_generic(node, &generic, out));
  shape_t shape = sequence_first ? (shape_t){3, {q.batch, q.length, q.heads * v.size}}
                                 : (shape_t){4, {q.batch, q.heads, q.length, v.size}};
  return weft_onnx_reshape(node, *out, &shape, out);
}

// --- Scores

// p: scale, softcap
BODY(scaled) {
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}
BODY(capped) {
  scalar_t cap = s_const(x[0], b->p[1]);
  return s_mul(b, s_tanh(b, s_div(b, x[0], cap)), cap);
}
// p: what does not count gets
BODY(biased) {
  return s_add(b, x[0], s_cast(b, x[1], x[0].dtype));
}
BODY(chosen) {
  return s_select(b, x[1], x[0], s_add(b, x[0], s_const(x[0], b->p[0])));
}
// x: score, query, key. p: masked, past
BODY(causal) {
  scalar_t last = s_add(b, x[1], s_const(x[1], b->p[1]));
  return s_select(b, s_compare(b, WEFT_ONNX_LE, x[2], last), x[0], s_const(x[0], b->p[0]));
}
// x: score, count, key
BODY(within) {
  scalar_t count = s_cast(b, x[1], x[2].dtype);
  return s_select(b, s_compare(b, WEFT_ONNX_LT, x[2], count), x[0], s_const(x[0], b->p[0]));
}

// x: score, start, key
BODY(from) {
  scalar_t start = s_cast(b, x[1], x[2].dtype);
  return s_select(b, s_compare(b, WEFT_ONNX_GE, x[2], start), x[0], s_const(x[0], b->p[0]));
}

static weft_status_t add_bias(node_t* node, value_t* bias, double masked, value_t** scores) {
  if (!bias) return weft_ok();
  shape_t shape = bias->shape, together;
  int64_t keys = (*scores)->shape.extent[3], given = shape.rank ? shape.extent[shape.rank - 1] : 1;
  bool is_bool = bias->dtype == WEFT_DTYPE_BOOL;
  if (given != 1 && given < keys) { // keys past the mask do not count
    int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
    high[shape.rank - 1] = keys - given;
    TRY(weft_onnx_pad(node, bias, low, high, is_bool ? 0 : masked, &bias));
  }
  TRY(weft_onnx_broadcast_shape(node, &bias->shape, &(*scores)->shape, &together));
  NODE_REQUIRE(node, weft_onnx_shape_equal(&together, &(*scores)->shape), INVALID_INPUT,
               "the mask has shape %s, the scores have %s", weft_onnx_shape_format(&shape).text,
               weft_onnx_shape_format(&(*scores)->shape).text);
  return weft_onnx_pointwise(node, is_bool ? chosen : biased, &masked, (*scores)->dtype, 2, (value_t*[]){*scores, bias},
                             scores);
}

// By a number of each batch; NULL: none.
static weft_status_t mask_keys(node_t* node, weft_onnx_body_fn body, const double* p, value_t* limit, value_t* key,
                               value_t** scores) {
  int64_t batch = (*scores)->shape.extent[0];
  if (!limit) return weft_ok();
  NODE_REQUIRE(node, weft_onnx_count(limit) == batch, INVALID_INPUT, "key counts have shape %s, expected [%lld]",
               weft_onnx_shape_format(&limit->shape).text, (long long)batch);
  TRY(weft_onnx_reshape(node, limit, &(shape_t){4, {batch, 1, 1, 1}}, &limit));
  return weft_onnx_pointwise(node, body, p, (*scores)->dtype, 3, (value_t*[]){*scores, limit, key}, scores);
}

static weft_status_t mask_scores(node_t* node, const weft_onnx_attention_t* attention, value_t** scores) {
  const int64_t* e = (*scores)->shape.extent;
  double p[] = {attention->masked, (double)attention->past};
  value_t *key, *query;
  TRY(add_bias(node, attention->bias, attention->masked, scores));
  TRY(add_bias(node, attention->second_bias, attention->masked, scores));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, e[3], &key));
  if (attention->is_causal) {
    TRY(weft_onnx_iota(node, WEFT_DTYPE_I32, e[2], &query));
    TRY(weft_onnx_unsqueeze(node, query, 1, &query));
    TRY(weft_onnx_pointwise(node, causal, p, (*scores)->dtype, 3, (value_t*[]){*scores, query, key}, scores));
  }
  TRY(mask_keys(node, within, p, attention->key_count, key, scores));
  return mask_keys(node, from, p, attention->key_start, key, scores);
}

static weft_status_t check_operands(node_t* node, const weft_onnx_attention_t* attention) {
  const weft_onnx_heads_t* all[] = {&attention->query, &attention->key, &attention->value};
  for (int32_t i = 0; i < 3; ++i)
    NODE_REQUIRE(node, all[i]->value->shape.rank == 4 && all[i]->value->dtype == all[0]->value->dtype, INVALID_INPUT,
                 "input %d is %s of shape %s, expected %s of rank 4", i, weft_dtype_name(all[i]->value->dtype),
                 weft_onnx_shape_format(&all[i]->value->shape).text, weft_dtype_name(all[0]->value->dtype));
  extents_t q = extents_of(all[0]), k = extents_of(all[1]), v = extents_of(all[2]);
  NODE_REQUIRE(node,
               q.batch == k.batch && q.batch == v.batch && q.size == k.size && k.length == v.length &&
                   k.heads == v.heads && k.heads > 0 && q.heads % k.heads == 0,
               INVALID_INPUT,
               "queries, keys and values do not fit: batches %lld, %lld, %lld; heads %lld, %lld, %lld; "
               "keys %lld, values %lld; sizes %lld, %lld",
               (long long)q.batch, (long long)k.batch, (long long)v.batch, (long long)q.heads, (long long)k.heads,
               (long long)v.heads, (long long)k.length, (long long)v.length, (long long)q.size, (long long)k.size);
  return weft_ok();
}

// The change sees scores of the queries' type.
static weft_status_t change(node_t* node, const weft_onnx_attention_t* attention, void* how, value_t** scores) {
  weft_dtype_e dtype = (*scores)->dtype;
  TRY(weft_onnx_cast(node, *scores, attention->query.value->dtype, scores));
  TRY(attention->change(node, how, scores));
  return weft_onnx_cast(node, *scores, dtype, scores);
}

weft_status_t weft_onnx_attend(node_t* node, const weft_onnx_attention_t* attention, value_t** out) {
  double p[] = {attention->scale, attention->softcap};
  value_t *scores, *kept[4];
  weft_dtype_e dtype = attention->query.value->dtype;
  TRY(check_operands(node, attention));
  TRY(score(node, attention, &scores));
  if (p[0] != 1) TRY(weft_onnx_unary(node, scaled, p, scores, &scores));
  kept[WEFT_ONNX_SCORES_RAW] = scores;
  if (p[1] != 0) TRY(weft_onnx_unary(node, capped, p, scores, &scores));
  kept[WEFT_ONNX_SCORES_CAPPED] = scores;
  TRY(mask_scores(node, attention, &scores));
  kept[WEFT_ONNX_SCORES_BIASED] = scores;
  if (attention->change) TRY(change(node, attention, attention->change_scores, &scores));
  TRY(weft_onnx_softmax(node, scores, 1u << 3, &scores));
  kept[WEFT_ONNX_SCORES_SOFTMAX] = scores;
  if (attention->change) TRY(change(node, attention, attention->change_weights, &scores));
  TRY(weigh(node, attention, scores, out));
  if (attention->out_scores) TRY(weft_onnx_cast(node, kept[attention->scores_kind], dtype, attention->out_scores));
  return weft_onnx_cast(node, *out, dtype, out);
}

// --- Rotation

BODY(turned_first) {
  return s_sub(b, s_mul(b, x[0], x[2]), s_mul(b, x[1], x[3]));
}
BODY(turned_second) {
  return s_add(b, s_mul(b, x[0], x[3]), s_mul(b, x[1], x[2]));
}

// [.., first, first + step, ..] of the last axis.
static weft_status_t part(node_t* node, value_t* value, int64_t first, int64_t count, int64_t step, value_t** out) {
  int64_t offset[4] = {0, 0, 0, first}, steps[4] = {1, 1, 1, step}, size[4];
  memcpy(size, value->shape.extent, sizeof(size));
  size[3] = count;
  return weft_onnx_slice(node, value, offset, size, steps, out);
}

weft_status_t weft_onnx_rotate(node_t* node, weft_onnx_heads_t* heads, value_t* cosines, value_t* sines,
                               bool interleaved) {
  extents_t e = extents_of(heads);
  value_t *x = heads->value, *pair[2], *turned[2], *parts[2];
  NODE_REQUIRE(node, cosines->shape.rank == 3 && weft_onnx_shape_equal(&cosines->shape, &sines->shape), INVALID_INPUT,
               "cosines and sines have shapes %s and %s", weft_onnx_shape_format(&cosines->shape).text,
               weft_onnx_shape_format(&sines->shape).text);
  int64_t pairs = cosines->shape.extent[2], rest = e.size - 2 * pairs;
  int32_t axis = heads->sequence_first ? 2 : 1;
  NODE_REQUIRE(node, rest >= 0 && cosines->shape.extent[1] == e.length, INVALID_INPUT,
               "cosines have shape %s, for %lld positions of %lld elements",
               weft_onnx_shape_format(&cosines->shape).text, (long long)e.length, (long long)e.size);
  TRY(weft_onnx_unsqueeze(node, cosines, axis, &cosines));
  TRY(weft_onnx_unsqueeze(node, sines, axis, &sines));
  for (int32_t i = 0; i < 2; ++i) TRY(part(node, x, interleaved ? i : i * pairs, pairs, interleaved ? 2 : 1, &pair[i]));
  for (int32_t i = 0; i < 2; ++i)
    TRY(weft_onnx_pointwise(node, i ? turned_second : turned_first, NULL, x->dtype, 4,
                            (value_t*[]){pair[0], pair[1], cosines, sines}, &turned[i]));
  if (interleaved) {
    shape_t shape = x->shape;
    shape.extent[3] = 2 * pairs;
    for (int32_t i = 0; i < 2; ++i) TRY(weft_onnx_unsqueeze(node, turned[i], 4, &turned[i]));
    TRY(weft_onnx_concat(node, 4, 2, turned, &parts[0]));
    TRY(weft_onnx_reshape(node, parts[0], &shape, &parts[0]));
  } else {
    TRY(weft_onnx_concat(node, 3, 2, turned, &parts[0]));
  }
  heads->value = parts[0];
  if (rest == 0) return weft_ok();
  TRY(part(node, x, 2 * pairs, rest, 1, &parts[1]));
  return weft_onnx_concat(node, 3, 2, parts, &heads->value);
}
