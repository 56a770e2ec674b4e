// Classical learners. A tree ensemble becomes two products: which leaf a sample reaches is a matter of how many of the
// comparisons on the way there come out right, and that is a product of a matrix of all comparisons with one of signs.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

BODY(is_above) {
  return s_select(b, s_compare(b, WEFT_ONNX_GT, x[0], s_const(x[0], b->p[0])), s_const(x[0], 1), s_const(x[0], 0));
}

static weft_status_t emit_binarizer(node_t* node) {
  double p[1];
  TRY(weft_onnx_attribute_float(node, "threshold", 0, &p[0]));
  return weft_onnx_unary(node, is_above, p, node->input[0], &node->output[0]);
}

static weft_status_t emit_feature_extractor(node_t* node) {
  value_t *x = node->input[0], *index = node->input[1];
  int64_t count = weft_onnx_count(index);
  shape_t shape = x->shape;
  NODE_REQUIRE(node, shape.rank >= 1, INVALID_INPUT, "the input is a scalar");
  if (shape.rank == 1) shape = (shape_t){2, {1, shape.extent[0]}};
  TRY(weft_onnx_reshape(node, x, &shape, &x));
  TRY(weft_onnx_reshape(node, index, &(shape_t){1, {count}}, &index));
  return weft_onnx_gather(node, x, index, shape.rank - 1, &node->output[0]);
}

// --- TreeEnsemble

enum { LESS_OR_EQUAL, LESS, GREATER_OR_EQUAL, GREATER, EQUAL, NOT_EQUAL, MEMBER, MODE_COUNT };
typedef struct forest_t {
  int32_t nodes, leaves, roots;
  const int64_t *feature, *next[2], *is_leaf[2], *root, *target; // next: where it goes on false and on true
  const value_t *mode, *split, *weight, *member;
  int64_t targets;
} forest_t;

static weft_status_t read_ints(node_t* node, const char* name, int32_t* inout_count, const int64_t** out) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  NODE_REQUIRE(node, attribute && attribute->n_ints > 0 && attribute->n_ints < (1 << 24), INVALID_INPUT,
               "attribute '%s' is missing or empty", name);
  NODE_REQUIRE(node, *inout_count < 0 || attribute->n_ints == (size_t)*inout_count, INVALID_INPUT,
               "attribute '%s' has %zu entries, expected %d", name, attribute->n_ints, *inout_count);
  *inout_count = (int32_t)attribute->n_ints;
  *out = attribute->ints;
  return weft_ok();
}

static weft_status_t read_tensor(node_t* node, const char* name, int32_t count, const value_t** out) {
  const Onnx__AttributeProto* attribute;
  value_t* value;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  NODE_REQUIRE(node, attribute && attribute->t, INVALID_INPUT, "attribute '%s' must be a tensor", name);
  TRY(weft_onnx_read_tensor_proto(node->builder->arena, node->builder->folder, attribute->t, &value));
  NODE_REQUIRE(node, count < 0 || weft_onnx_count(value) == count, INVALID_INPUT,
               "attribute '%s' has %lld entries, expected %d", name, (long long)weft_onnx_count(value), count);
  *out = value;
  return weft_ok();
}

static double element(const value_t* value, int64_t index) {
  return weft_dtype_load(value->dtype, (const uint8_t*)value->data + (size_t)index * weft_dtype_size(value->dtype));
}

static weft_status_t read_forest(node_t* node, forest_t* forest) {
  static const char* const next[] = {"nodes_falsenodeids", "nodes_truenodeids"};
  static const char* const is_leaf[] = {"nodes_falseleafs", "nodes_trueleafs"};
  const Onnx__AttributeProto* missing;
  *forest = (forest_t){.nodes = -1, .leaves = -1, .roots = -1};
  TRY(read_ints(node, "nodes_featureids", &forest->nodes, &forest->feature));
  for (int32_t i = 0; i < 2; ++i) {
    TRY(read_ints(node, next[i], &forest->nodes, &forest->next[i]));
    TRY(read_ints(node, is_leaf[i], &forest->nodes, &forest->is_leaf[i]));
  }
  TRY(read_ints(node, "leaf_targetids", &forest->leaves, &forest->target));
  TRY(read_ints(node, "tree_roots", &forest->roots, &forest->root));
  TRY(read_tensor(node, "nodes_modes", forest->nodes, &forest->mode));
  TRY(read_tensor(node, "nodes_splits", forest->nodes, &forest->split));
  TRY(read_tensor(node, "leaf_weights", forest->leaves, &forest->weight));
  if (weft_onnx_has_attribute(node, "membership_values"))
    TRY(read_tensor(node, "membership_values", -1, &forest->member));
  TRY(weft_onnx_attribute_int(node, "n_targets", 0, &forest->targets));
  TRY(weft_onnx_attribute_proto(node, "nodes_missing_value_tracks_true", &missing));
  for (size_t i = 0; missing && i < missing->n_ints; ++i)
    NODE_REQUIRE(node, !missing->ints[i], UNSUPPORTED, "nodes_missing_value_tracks_true is not supported");
  NODE_REQUIRE(node, forest->targets > 0 && forest->targets < (1 << 20), INVALID_INPUT, "n_targets is %lld",
               (long long)forest->targets);
  for (int32_t i = 0; i < forest->nodes; ++i) {
    NODE_REQUIRE(node, forest->feature[i] >= 0 && forest->feature[i] < node->input[0]->shape.extent[1], INVALID_INPUT,
                 "node %d asks for feature %lld of %lld", i, (long long)forest->feature[i],
                 (long long)node->input[0]->shape.extent[1]);
    double mode = element(forest->mode, i);
    NODE_REQUIRE(node, mode >= 0 && mode < MODE_COUNT, INVALID_INPUT, "node %d has mode %g", i, mode);
    for (int32_t way = 0; way < 2; ++way)
      NODE_REQUIRE(node,
                   forest->next[way][i] >= 0 &&
                       forest->next[way][i] < (forest->is_leaf[way][i] ? forest->leaves : forest->nodes),
                   INVALID_INPUT, "node %d goes on to %lld, which is none", i, (long long)forest->next[way][i]);
  }
  for (int32_t i = 0; i < forest->leaves; ++i)
    NODE_REQUIRE(node, forest->target[i] >= 0 && forest->target[i] < forest->targets, INVALID_INPUT,
                 "leaf %d has target %lld of %lld", i, (long long)forest->target[i], (long long)forest->targets);
  return weft_ok();
}

// The comparisons, those of one mode together. A node with a set of members has one for each; one of them at most is
// true.
typedef struct comparison_t {
  int32_t node, mode;
  double split;
} comparison_t;
typedef struct comparisons_t {
  int32_t count;
  comparison_t* at;
} comparisons_t;

static weft_status_t list_comparisons(node_t* node, const forest_t* forest, comparisons_t* list) {
  int64_t members = forest->member ? weft_onnx_count(forest->member) : 0, next_member = 0;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)(forest->nodes + members) + 1, &list->at));
  for (int32_t mode = 0; mode < MODE_COUNT; ++mode)
    for (int32_t i = 0; i < forest->nodes; ++i) {
      if ((int32_t)element(forest->mode, i) != mode) continue;
      if (mode != MEMBER) {
        list->at[list->count++] = (comparison_t){i, mode, element(forest->split, i)};
        continue;
      }
      for (; next_member < members && !isnan(element(forest->member, next_member)); ++next_member)
        list->at[list->count++] = (comparison_t){i, EQUAL, element(forest->member, next_member)};
      ++next_member; // sets end with NaN
    }
  return weft_ok();
}

static const weft_onnx_comparison_e operation_of[] = {WEFT_ONNX_LE, WEFT_ONNX_LT, WEFT_ONNX_GE,
                                                      WEFT_ONNX_GT, WEFT_ONNX_EQ, WEFT_ONNX_NE};
BODY(comes_out) { // p: mode
  scalar_t is_true = s_compare(b, operation_of[(int)b->p[0]], x[0], x[1]);
  return s_select(b, is_true, s_const(x[0], 1), s_const(x[0], 0));
}

static weft_status_t new_matrix(node_t* node, weft_dtype_e dtype, int64_t rows, int64_t columns, uint8_t** out_data,
                                value_t** out) {
  shape_t shape = {2, {rows, columns}};
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count) && count < (1 << 28), UNSUPPORTED,
               "%lld comparisons for %lld leaves are too many", (long long)rows, (long long)columns);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, weft_dtype_size(dtype), (void**)out_data));
  return weft_onnx_known(node, dtype, &shape, *out_data, out);
}

// [samples, comparisons] of 0 and 1.
static weft_status_t compare_all(node_t* node, const forest_t* forest, const comparisons_t* list, value_t** out) {
  enum { FEW = 16 };
  value_t *x = node->input[0], *matrix, *parts[MODE_COUNT];
  weft_dtype_e dtype = x->dtype;
  size_t width = weft_dtype_size(dtype);
  int64_t *feature, features = x->shape.extent[1];
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)list->count + 1, &feature));
  for (int32_t k = 0; k < list->count; ++k) feature[k] = forest->feature[list->at[k].node];
  if (list->count <= FEW) {
    TRY(weft_onnx_take(node, x, 1, list->count, feature, &x));
  } else { // a product with ones: many columns in any order would be many pieces
    uint8_t* data;
    TRY(new_matrix(node, dtype, features, list->count, &data, &matrix));
    for (int32_t k = 0; k < list->count; ++k)
      weft_dtype_store(dtype, 1, data + (size_t)(feature[k] * list->count + k) * width);
    TRY(weft_onnx_matmul(node, x, matrix, &x));
    TRY(weft_onnx_cast(node, x, dtype, &x));
  }
  int32_t groups = 0;
  for (int32_t first = 0, last; first < list->count; first = last) {
    double p[] = {list->at[first].mode};
    uint8_t* data;
    value_t *splits, *columns;
    for (last = first; last < list->count && list->at[last].mode == list->at[first].mode; ++last) {
    }
    TRY(new_matrix(node, dtype, 1, last - first, &data, &splits));
    for (int32_t k = first; k < last; ++k)
      weft_dtype_store(dtype, list->at[k].split, data + (size_t)(k - first) * width);
    TRY(weft_onnx_slice(node, x, (int64_t[]){0, first}, (int64_t[]){x->shape.extent[0], last - first},
                        (int64_t[]){1, 1}, &columns));
    NODE_REQUIRE(node, groups < MODE_COUNT, INTERNAL, "comparisons are not in the order of their modes");
    TRY(weft_onnx_pointwise(node, comes_out, p, dtype, 2, (value_t*[]){columns, splits}, &parts[groups++]));
  }
  return weft_onnx_concat(node, 1, groups, parts, out);
}

// Ways to leaves. A way of `turn` nodes has come out right when true ones less false ones are as many as its true
// turns.
typedef struct ways_t {
  int64_t count, room;
  int32_t *leaf, *right; // which leaf; true turns on the way there
  int8_t** sign;         // of each node: 1 it has to be true, -1 false, 0 it is not on the way
} ways_t;

static weft_status_t count_ways(node_t* node, const forest_t* forest, int32_t at, int32_t depth, int64_t* count) {
  enum { MAX_DEPTH = 512, MAX_WAYS = 1 << 20 };
  NODE_REQUIRE(node, depth < MAX_DEPTH && *count < MAX_WAYS, UNSUPPORTED,
               "a tree is deeper than %d, or has more than %d leaves, or a cycle", MAX_DEPTH, MAX_WAYS);
  for (int32_t way = 0; way < 2; ++way) {
    if (forest->is_leaf[way][at])
      ++*count;
    else
      TRY(count_ways(node, forest, (int32_t)forest->next[way][at], depth + 1, count));
  }
  return weft_ok();
}

// count_ways has seen that it ends. sign: of the way so far.
static void walk_ways(const forest_t* forest, int32_t at, int8_t* sign, ways_t* ways) {
  for (int32_t way = 0; way < 2; ++way) {
    int8_t before = sign[at];
    sign[at] = way ? 1 : -1;
    if (forest->is_leaf[way][at]) {
      int32_t right = 0;
      for (int32_t i = 0; i < forest->nodes; ++i) right += sign[i] == 1;
      ways->leaf[ways->count] = (int32_t)forest->next[way][at];
      ways->right[ways->count] = right;
      memcpy(ways->sign[ways->count++], sign, (size_t)forest->nodes);
    } else {
      walk_ways(forest, (int32_t)forest->next[way][at], sign, ways);
    }
    sign[at] = before;
  }
}

static weft_status_t find_ways(node_t* node, const forest_t* forest, ways_t* ways) {
  weft_arena_t* arena = node->builder->arena;
  int8_t* sign;
  for (int32_t r = 0; r < forest->roots; ++r) {
    NODE_REQUIRE(node, forest->root[r] >= 0 && forest->root[r] < forest->nodes, INVALID_INPUT, "root %lld is no node",
                 (long long)forest->root[r]);
    TRY(count_ways(node, forest, (int32_t)forest->root[r], 0, &ways->room));
  }
  NODE_REQUIRE(node, ways->room * forest->nodes < (1 << 28), UNSUPPORTED, "%d nodes and %lld leaves are too many",
               forest->nodes, (long long)ways->room);
  TRY(WEFT_ARENA_NEW(arena, (size_t)ways->room + 1, &ways->leaf));
  TRY(WEFT_ARENA_NEW(arena, (size_t)ways->room + 1, &ways->right));
  TRY(WEFT_ARENA_NEW(arena, (size_t)ways->room + 1, &ways->sign));
  for (int64_t i = 0; i < ways->room; ++i) TRY(WEFT_ARENA_NEW(arena, (size_t)forest->nodes + 1, &ways->sign[i]));
  TRY(WEFT_ARENA_NEW(arena, (size_t)forest->nodes + 1, &sign));
  for (int32_t r = 0; r < forest->roots; ++r) walk_ways(forest, (int32_t)forest->root[r], sign, ways);
  return weft_ok();
}

BODY(logistic) {
  scalar_t one = s_const(x[0], 1);
  return s_div(b, one, s_add(b, one, s_exp(b, weft_onnx_scalar_unary(b, WEFT_ONNX_NEG, x[0]))));
}
BODY(is_equal) {
  return s_select(b, s_compare(b, WEFT_ONNX_EQ, x[0], x[1]), s_const(x[0], 1), s_const(x[0], 0));
}

static weft_status_t sum_leaves(node_t* node, const forest_t* forest, const comparisons_t* list, const ways_t* ways,
                                value_t* outcomes, double factor, value_t** out) {
  weft_dtype_e dtype = node->input[0]->dtype;
  size_t width = weft_dtype_size(dtype);
  value_t *signs, *right, *weights;
  uint8_t *sign_data, *right_data, *weight_data;
  TRY(new_matrix(node, dtype, list->count, ways->count, &sign_data, &signs));
  TRY(new_matrix(node, dtype, 1, ways->count, &right_data, &right));
  TRY(new_matrix(node, dtype, ways->count, forest->targets, &weight_data, &weights));
  for (int64_t way = 0; way < ways->count; ++way) {
    int32_t leaf = ways->leaf[way];
    for (int32_t k = 0; k < list->count; ++k)
      weft_dtype_store(dtype, ways->sign[way][list->at[k].node], sign_data + (size_t)(k * ways->count + way) * width);
    weft_dtype_store(dtype, ways->right[way], right_data + (size_t)way * width);
    weft_dtype_store(dtype, element(forest->weight, leaf) * factor,
                     weight_data + (size_t)(way * forest->targets + forest->target[leaf]) * width);
  }
  TRY(weft_onnx_matmul(node, outcomes, signs, &outcomes));
  TRY(weft_onnx_cast(node, outcomes, dtype, &outcomes));
  TRY(weft_onnx_pointwise(node, is_equal, NULL, dtype, 2, (value_t*[]){outcomes, right}, &outcomes));
  TRY(weft_onnx_matmul(node, outcomes, weights, out));
  return weft_onnx_cast(node, *out, dtype, out);
}

static weft_status_t emit_tree_ensemble(node_t* node) {
  enum { AVERAGE, SUM, NONE = 0, SOFTMAX, LOGISTIC };
  forest_t forest;
  comparisons_t list = {0};
  ways_t ways = {0};
  value_t* outcomes;
  int64_t aggregate, transform;
  NODE_REQUIRE(node, node->input[0]->shape.rank == 2, INVALID_INPUT,
               "input has shape %s, expected samples and features",
               weft_onnx_shape_format(&node->input[0]->shape).text);
  TRY(weft_onnx_attribute_int(node, "aggregate_function", SUM, &aggregate));
  TRY(weft_onnx_attribute_int(node, "post_transform", NONE, &transform));
  NODE_REQUIRE(node, (aggregate == SUM || aggregate == AVERAGE) && transform >= NONE && transform <= LOGISTIC,
               UNSUPPORTED, "aggregate_function %lld and post_transform %lld are not supported", (long long)aggregate,
               (long long)transform);
  TRY(read_forest(node, &forest));
  TRY(list_comparisons(node, &forest, &list));
  TRY(find_ways(node, &forest, &ways));
  TRY(compare_all(node, &forest, &list, &outcomes));
  TRY(sum_leaves(node, &forest, &list, &ways, outcomes, aggregate == AVERAGE ? 1.0 / forest.roots : 1,
                 &node->output[0]));
  if (transform == SOFTMAX) return weft_onnx_softmax(node, node->output[0], 1u << 1, &node->output[0]);
  return transform == LOGISTIC ? weft_onnx_unary(node, logistic, NULL, node->output[0], &node->output[0]) : weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("ArrayFeatureExtractor", 1, 2, 2, 1, emit_feature_extractor, ""),
    OPERATOR("Binarizer", 1, 1, 1, 1, emit_binarizer, ""),
    OPERATOR("TreeEnsemble", 5, 1, 1, 1, emit_tree_ensemble,
             "sum or average; no missing values; finite features; softmax or logistic behind it"),
    {0}};

const weft_onnx_family_t weft_onnx_family_ml = {"ai.onnx.ml", operators};
