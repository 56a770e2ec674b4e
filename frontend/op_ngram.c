// TfIdfVectorizer of numbers: how often each n-gram of a pool occurs. Every place of the text is compared with every
// n-gram, so it is one reduction for each length and each skip.
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

enum { MAX_LENGTH = WEFT_ONNX_MAX_OPERANDS / 2 };
typedef struct ngrams_t {
  int64_t shortest, longest, most_skips;
  size_t pool_count, index_count, start_count;
  const int64_t *pool, *index, *start; // index: the result's column of each; start: in the pool, of each length
} ngrams_t;

// p: n. x: n tokens, n of the gram, accumulator.
static scalar_t count_equal(body_t* b, const scalar_t* x) {
  int32_t length = (int32_t)b->p[0];
  scalar_t hit = s_compare(b, WEFT_ONNX_EQ, x[0], x[length]);
  for (int32_t i = 1; i < length; ++i)
    hit = weft_onnx_scalar_binary(b, WEFT_ONNX_AND, hit, s_compare(b, WEFT_ONNX_EQ, x[i], x[length + i]));
  scalar_t count = x[2 * length];
  return s_add(b, count, s_select(b, hit, s_const(count, 1), s_const(count, 0)));
}
// x: count, weight.
static scalar_t weight_if_any(body_t* b, const scalar_t* x) {
  return s_select(b, s_compare(b, WEFT_ONNX_GT, x[0], s_const(x[0], 0)), x[1], s_const(x[1], 0));
}

static weft_status_t attribute_ints(node_t* node, const char* name, size_t* out_count, const int64_t** out) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  *out_count = attribute ? attribute->n_ints : 0;
  *out = attribute ? attribute->ints : NULL;
  return weft_ok();
}

static weft_status_t read_ngrams(node_t* node, ngrams_t* grams) {
  TRY(weft_onnx_attribute_int(node, "min_gram_length", 1, &grams->shortest));
  TRY(weft_onnx_attribute_int(node, "max_gram_length", 1, &grams->longest));
  TRY(weft_onnx_attribute_int(node, "max_skip_count", 0, &grams->most_skips));
  TRY(attribute_ints(node, "pool_int64s", &grams->pool_count, &grams->pool));
  TRY(attribute_ints(node, "ngram_indexes", &grams->index_count, &grams->index));
  TRY(attribute_ints(node, "ngram_counts", &grams->start_count, &grams->start));
  NODE_REQUIRE(node, grams->pool_count > 0, UNSUPPORTED, "its pool is not of integers");
  NODE_REQUIRE(node,
               grams->shortest >= 1 && grams->longest >= grams->shortest && grams->most_skips >= 0 &&
                   grams->most_skips < INT32_MAX && grams->start_count >= 1 && grams->index_count < INT32_MAX,
               INVALID_INPUT, "min_gram_length %lld, max_gram_length %lld, max_skip_count %lld",
               (long long)grams->shortest, (long long)grams->longest, (long long)grams->most_skips);
  NODE_REQUIRE(node, grams->start_count <= MAX_LENGTH, UNSUPPORTED, "n-grams of %zu are longer than %d",
               grams->start_count, MAX_LENGTH);
  for (size_t i = 0; i < grams->start_count; ++i) {
    int64_t end = i + 1 < grams->start_count ? grams->start[i + 1] : (int64_t)grams->pool_count;
    NODE_REQUIRE(node,
                 grams->start[i] >= 0 && end >= grams->start[i] && end <= (int64_t)grams->pool_count &&
                     (end - grams->start[i]) % (int64_t)(i + 1) == 0,
                 INVALID_INPUT, "ngram_counts does not divide the pool at %lld", (long long)grams->start[i]);
  }
  return weft_ok();
}

// The i-th token of each n-gram.
static weft_status_t pool_column(node_t* node, const int64_t* pool, int64_t count, int64_t length, int64_t i,
                                 weft_dtype_e dtype, value_t** out) {
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t g = 0; g < count; ++g)
    weft_onnx_scalar_store((scalar_t){.dtype = dtype, .is_known = true, .integer = pool[g * length + i]},
                           data + (size_t)g * width);
  return weft_onnx_known(node, dtype, &(shape_t){1, {count}}, data, out);
}

// text: [rows, tokens] -> [rows, count]: n-grams whose tokens are `gap` apart.
static weft_status_t count_ngrams(node_t* node, value_t* text, const int64_t* pool, int64_t count, int64_t length,
                                  int64_t gap, value_t** out) {
  int64_t rows = text->shape.extent[0], places = text->shape.extent[1] - (length - 1) * gap;
  double p[] = {(double)length};
  weft_onnx_generic_t generic = {.rank = 3,
                                 .extent = {rows, count, places},
                                 .reduction = 1u << 2,
                                 .operand_count = 2 * (int32_t)length,
                                 .dtype = WEFT_DTYPE_F32,
                                 .body = count_equal,
                                 .p = p};
  for (int64_t i = 0; i < length; ++i) {
    value_t *tokens, *column;
    TRY(weft_onnx_slice(node, text, (int64_t[]){0, i * gap}, (int64_t[]){rows, places}, (int64_t[]){1, 1}, &tokens));
    TRY(pool_column(node, pool, count, length, i, text->dtype, &column));
    generic.operand[i] = (weft_onnx_operand_t){tokens, 2, {weft_onnx_along(0), weft_onnx_along(2)}};
    generic.operand[length + i] = (weft_onnx_operand_t){column, 1, {weft_onnx_along(1)}};
  }
  return weft_onnx_generic(node, &generic, out);
}

// All n-grams of one length, over all skips; zeros where the length is not asked for.
static weft_status_t count_length(node_t* node, const ngrams_t* grams, value_t* text, int64_t length, value_t** out) {
  int64_t first = grams->start[length - 1];
  int64_t end = (size_t)length < grams->start_count ? grams->start[length] : (int64_t)grams->pool_count;
  int64_t count = (end - first) / length, tokens = text->shape.extent[1];
  TRY(weft_onnx_number(node, WEFT_DTYPE_F32, 0, out));
  TRY(weft_onnx_expand(node, *out, &(shape_t){2, {text->shape.extent[0], count}}, out));
  if (length < grams->shortest || length > grams->longest || count == 0) return weft_ok();
  int64_t skips = length == 1 ? 0 : grams->most_skips;
  for (int64_t gap = 1; gap <= skips + 1 && (length - 1) * gap < tokens; ++gap) {
    value_t* found;
    TRY(count_ngrams(node, text, grams->pool + first, count, length, gap, &found));
    if (gap == 1)
      *out = found;
    else
      TRY(weft_onnx_binary(node, weft_onnx_body_add, *out, found, out));
  }
  return weft_ok();
}

// From the pool's order to the result's columns; a column that no n-gram has is zero.
static weft_status_t to_columns(node_t* node, const ngrams_t* grams, value_t* counts, value_t** out) {
  int64_t total = counts->shape.extent[1], columns = 0, *source;
  NODE_REQUIRE(node, total == (int64_t)grams->index_count, INVALID_INPUT,
               "ngram_indexes has %zu entries, the pool %lld", grams->index_count, (long long)total);
  for (int64_t i = 0; i < total; ++i) {
    NODE_REQUIRE(node, grams->index[i] >= 0 && grams->index[i] < INT32_MAX, INVALID_INPUT, "ngram_indexes has %lld",
                 (long long)grams->index[i]);
    columns = weft_max_i64(columns, grams->index[i] + 1);
  }
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)columns + 1, &source));
  for (int64_t i = 0; i < columns; ++i) source[i] = total;
  for (int64_t i = 0; i < total; ++i) {
    NODE_REQUIRE(node, source[grams->index[i]] == total, UNSUPPORTED, "two n-grams share column %lld",
                 (long long)grams->index[i]);
    source[grams->index[i]] = i;
  }
  TRY(weft_onnx_pad(node, counts, (int64_t[]){0, 0}, (int64_t[]){0, 1}, 0, &counts));
  return weft_onnx_take(node, counts, 1, columns, source, out);
}

static weft_status_t weigh(node_t* node, const ngrams_t* grams, const char* mode, value_t** counts) {
  const Onnx__AttributeProto* given;
  value_t* weights;
  void* data;
  bool times = strcmp(mode, "TFIDF") == 0;
  if (strcmp(mode, "TF") == 0) return weft_ok();
  NODE_REQUIRE(node, times || strcmp(mode, "IDF") == 0, INVALID_INPUT, "mode is '%s', expected TF, IDF or TFIDF", mode);
  TRY(weft_onnx_attribute_proto(node, "weights", &given));
  NODE_REQUIRE(node, !given || given->n_floats == grams->index_count, INVALID_INPUT,
               "there are %zu weights for %zu n-grams", given ? given->n_floats : 0, grams->index_count);
  TRY(weft_onnx_number(node, WEFT_DTYPE_F32, 1, &weights));
  if (given) {
    TRY(weft_arena_copy(node->builder->arena, given->floats, given->n_floats * sizeof(float), &data));
    TRY(weft_onnx_known(node, WEFT_DTYPE_F32, &(shape_t){1, {(int64_t)given->n_floats}}, data, &weights));
  }
  return weft_onnx_binary(node, times ? weft_onnx_body_mul : weight_if_any, *counts, weights, counts);
}

static weft_status_t emit_tfidf(node_t* node) {
  ngrams_t grams = {0};
  value_t *text = node->input[0], *part[MAX_LENGTH], *counts;
  const char* mode;
  int32_t rank = text->shape.rank;
  NODE_REQUIRE(node, (rank == 1 || rank == 2) && (text->dtype == WEFT_DTYPE_I32 || text->dtype == WEFT_DTYPE_I64),
               INVALID_INPUT, "input is %s of shape %s, expected integers of rank 1 or 2", weft_dtype_name(text->dtype),
               weft_onnx_shape_format(&text->shape).text);
  TRY(weft_onnx_attribute_string(node, "mode", "TF", &mode));
  TRY(read_ngrams(node, &grams));
  if (rank == 1) TRY(weft_onnx_unsqueeze(node, text, 0, &text));
  for (size_t i = 0; i < grams.start_count; ++i) TRY(count_length(node, &grams, text, (int64_t)i + 1, &part[i]));
  TRY(weft_onnx_concat(node, 1, (int32_t)grams.start_count, part, &counts));
  TRY(weigh(node, &grams, mode, &counts));
  TRY(to_columns(node, &grams, counts, &counts));
  shape_t shape = {.rank = 1, .extent = {counts->shape.extent[1]}};
  if (rank == 2) shape = counts->shape;
  return weft_onnx_reshape(node, counts, &shape, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("TfIdfVectorizer", 9, 1, 1, 1, emit_tfidf, "of integers, n-grams up to 4"), {0}};

const weft_onnx_family_t weft_onnx_family_ngram = {"Text", operators};
