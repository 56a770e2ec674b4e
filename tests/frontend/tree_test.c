// Tree ensembles as products of matrices, against going down the trees.
#include "text_model.h"

enum { MAX_NODES = 200, FEATURES = 5, SAMPLES = 40, TARGETS = 3 };
typedef struct forest_t {
  int64_t feature[MAX_NODES], next[2][MAX_NODES], is_leaf[2][MAX_NODES], target[2 * MAX_NODES], root[8];
  uint8_t mode[MAX_NODES];
  float split[MAX_NODES], weight[2 * MAX_NODES];
  int32_t nodes, leaves, roots;
} forest_t;

static int64_t grow(forest_t* f, weft_rng_t* rng, int depth) {
  int32_t at = f->nodes++;
  f->feature[at] = (int64_t)weft_rng_below(rng, FEATURES);
  f->mode[at] = (uint8_t)weft_rng_below(rng, 6);
  f->split[at] = (float)((int)weft_rng_below(rng, 7) - 3);
  for (int way = 0; way < 2; ++way) {
    f->is_leaf[way][at] = depth == 0 || weft_rng_below(rng, 4) == 0;
    if (!f->is_leaf[way][at]) {
      f->next[way][at] = grow(f, rng, depth - 1);
      continue;
    }
    f->next[way][at] = f->leaves;
    f->target[f->leaves] = (int64_t)weft_rng_below(rng, TARGETS);
    f->weight[f->leaves++] = (float)(weft_rng_unit(rng) * 4 - 2);
  }
  return at;
}

static bool holds(int mode, float x, float split) {
  return mode == 0   ? x <= split
         : mode == 1 ? x < split
         : mode == 2 ? x >= split
         : mode == 3 ? x > split
         : mode == 4 ? x == split
                     : x != split;
}

static Onnx__AttributeProto* attribute(text_model_t* t, const char* name) {
  Onnx__NodeProto* node = t->proto.graph->node[0];
  Onnx__AttributeProto** list = text_new(t, 16, sizeof(void*));
  if (node->n_attribute) memcpy(list, node->attribute, node->n_attribute * sizeof(void*));
  node->attribute = list;
  Onnx__AttributeProto* out = list[node->n_attribute++] = text_new(t, 1, sizeof(*out));
  onnx__attribute_proto__init(out);
  out->name = (char*)name;
  return out;
}

static void add_ints(text_model_t* t, const char* name, int64_t* values, int32_t count) {
  Onnx__AttributeProto* out = attribute(t, name);
  out->ints = values;
  out->n_ints = (size_t)count;
}

static void add_tensor(text_model_t* t, const char* name, int32_t type, void* values, int32_t count, size_t width) {
  Onnx__TensorProto* tensor = attribute(t, name)->t = text_new(t, 1, sizeof(*tensor));
  onnx__tensor_proto__init(tensor);
  int64_t* dims = text_new(t, 1, sizeof(*dims));
  dims[0] = count;
  tensor->dims = dims;
  tensor->n_dims = 1;
  tensor->has_data_type = tensor->has_raw_data = 1;
  tensor->data_type = type;
  tensor->raw_data = (ProtobufCBinaryData){(size_t)count * width, values};
}

static void describe(text_model_t* t, forest_t* f) {
  text_begin(t, 18);
  Onnx__OperatorSetIdProto* set = t->proto.opset_import[2]; // "local" gives way
  set->domain = (char*)"ai.onnx.ml";
  set->version = 5;
  text_main(t, "x:f32[40,5]", "y = ai.onnx.ml:TreeEnsemble(x) n_targets:i=3", "y:f32");
  add_ints(t, "nodes_featureids", f->feature, f->nodes);
  add_ints(t, "nodes_falsenodeids", f->next[0], f->nodes);
  add_ints(t, "nodes_truenodeids", f->next[1], f->nodes);
  add_ints(t, "nodes_falseleafs", f->is_leaf[0], f->nodes);
  add_ints(t, "nodes_trueleafs", f->is_leaf[1], f->nodes);
  add_ints(t, "leaf_targetids", f->target, f->leaves);
  add_ints(t, "tree_roots", f->root, f->roots);
  add_tensor(t, "nodes_modes", 2, f->mode, f->nodes, 1);
  add_tensor(t, "nodes_splits", 1, f->split, f->nodes, sizeof(float));
  add_tensor(t, "leaf_weights", 1, f->weight, f->leaves, sizeof(float));
}

static void test_forests(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 41);
  float x[SAMPLES * FEATURES];
  for (int i = 0; i < SAMPLES * FEATURES; ++i) x[i] = (float)((int)weft_rng_below(&rng, 9) - 4);
  for (int round = 0; round < 8; ++round) {
    static forest_t f;
    f = (forest_t){.roots = round % 4 + 1};
    for (int32_t r = 0; r < f.roots; ++r) f.root[r] = grow(&f, &rng, round % 5);
    text_model_t t;
    describe(&t, &f);
    text_run(&t, (const void*[]){x});
    for (int s = 0; s < SAMPLES; ++s) {
      double expected[TARGETS] = {0};
      for (int32_t r = 0; r < f.roots; ++r) {
        int64_t at = f.root[r];
        int way = 0;
        for (;;) {
          way = holds(f.mode[at], x[s * FEATURES + f.feature[at]], f.split[at]);
          if (f.is_leaf[way][at]) break;
          at = f.next[way][at];
        }
        expected[f.target[f.next[way][at]]] += (double)f.weight[f.next[way][at]];
      }
      for (int target = 0; target < TARGETS; ++target) {
        double difference = text_at(&t, 0, (size_t)(s * TARGETS + target)) - expected[target];
        assert_true(difference < 1e-5 && difference > -1e-5);
      }
    }
    text_end(&t);
  }
}

static void test_errors(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 42);
  static forest_t f;
  f = (forest_t){.roots = 1};
  grow(&f, &rng, 2);
  static const char* const words[] = {"cycle", "which is none", "feature 5 of 5"};
  for (int fault = 0; fault < 3; ++fault) {
    forest_t wrong = f;
    if (fault < 2) {
      wrong.is_leaf[0][0] = 0;
      wrong.next[0][0] = fault == 0 ? 0 : wrong.nodes;
    } else {
      wrong.feature[0] = FEATURES;
    }
    text_model_t t;
    describe(&t, &wrong);
    weft_status_t status = text_import(&t);
    assert_non_null(status);
    if (!strstr(weft_status_message(status), words[fault])) fail_msg("%s", weft_status_message(status));
    weft_status_free(status);
    text_end(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forests), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
