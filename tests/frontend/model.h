// Builds small ONNX models in memory and writes them to a temporary file.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "onnx.pb-c.h"

enum { MAX_PARTS = 64 };
typedef struct builder_t {
  Onnx__ModelProto model;
  Onnx__GraphProto graph;
  Onnx__OperatorSetIdProto opset, *opsets[1];
  Onnx__NodeProto node[MAX_PARTS], *nodes[MAX_PARTS];
  char* input_names[MAX_PARTS][8];
  char* output_names[MAX_PARTS][4];
  Onnx__AttributeProto attribute[MAX_PARTS], *attributes[MAX_PARTS][8];
  size_t attribute_count;
  Onnx__TensorProto tensor[MAX_PARTS], *tensors[MAX_PARTS];
  Onnx__ValueInfoProto info[MAX_PARTS], *inputs[MAX_PARTS], *outputs[MAX_PARTS];
  Onnx__TypeProto type[MAX_PARTS];
  Onnx__TypeProto__Tensor tensor_type[MAX_PARTS];
  Onnx__TensorShapeProto shape[MAX_PARTS];
  Onnx__TensorShapeProto__Dimension dim[MAX_PARTS][8], *dims[MAX_PARTS][8];
  size_t info_count;
  char path[128];
} builder_t;

static inline void model_begin(builder_t* b, int64_t opset) {
  memset(b, 0, sizeof(*b));
  onnx__model_proto__init(&b->model);
  onnx__graph_proto__init(&b->graph);
  onnx__operator_set_id_proto__init(&b->opset);
  b->opset.has_version = 1;
  b->opset.version = opset;
  b->opsets[0] = &b->opset;
  b->model.has_ir_version = 1;
  b->model.ir_version = 8;
  b->model.n_opset_import = 1;
  b->model.opset_import = b->opsets;
  b->model.graph = &b->graph;
  b->graph.name = (char*)"test";
  b->graph.node = b->nodes;
  b->graph.initializer = b->tensors;
  b->graph.input = b->inputs;
  b->graph.output = b->outputs;
}

// "a b" -> two names; "-" is an empty one. The text is kept by strdup and freed by model_end.
static inline size_t split_names(const char* text, char** names) {
  size_t count = 0;
  char *copy = strdup(text), *state = NULL;
  for (char* at = strtok_r(copy, " ", &state); at; at = strtok_r(NULL, " ", &state))
    names[count++] = strdup(strcmp(at, "-") == 0 ? "" : at);
  free(copy);
  return count;
}

static inline Onnx__NodeProto* add_node(builder_t* b, const char* op, const char* name, const char* inputs,
                                        const char* outputs) {
  size_t i = b->graph.n_node++;
  Onnx__NodeProto* node = b->nodes[i] = &b->node[i];
  onnx__node_proto__init(node);
  node->op_type = (char*)op;
  node->name = (char*)name;
  node->input = b->input_names[i];
  node->output = b->output_names[i];
  node->n_input = split_names(inputs, node->input);
  node->n_output = split_names(outputs, node->output);
  node->attribute = b->attributes[i];
  return node;
}

static inline Onnx__AttributeProto* add_attribute(builder_t* b, Onnx__NodeProto* node, const char* name, int type) {
  Onnx__AttributeProto* attribute = &b->attribute[b->attribute_count++];
  onnx__attribute_proto__init(attribute);
  attribute->name = (char*)name;
  attribute->has_type = 1;
  attribute->type = (Onnx__AttributeProto__AttributeType)type;
  node->attribute[node->n_attribute++] = attribute;
  return attribute;
}

static inline void add_int(builder_t* b, Onnx__NodeProto* node, const char* name, int64_t value) {
  Onnx__AttributeProto* attribute = add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  attribute->has_i = 1;
  attribute->i = value;
}

static inline void add_ints(builder_t* b, Onnx__NodeProto* node, const char* name, size_t count, int64_t* values) {
  Onnx__AttributeProto* attribute = add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  attribute->n_ints = count;
  attribute->ints = values;
}

// An extent of -1 is the named dimension "N".
static inline Onnx__ValueInfoProto* add_info(builder_t* b, const char* name, int type, size_t rank,
                                             const int64_t* extents) {
  size_t i = b->info_count++;
  onnx__value_info_proto__init(&b->info[i]);
  onnx__type_proto__init(&b->type[i]);
  onnx__type_proto__tensor__init(&b->tensor_type[i]);
  onnx__tensor_shape_proto__init(&b->shape[i]);
  b->info[i].name = (char*)name;
  b->info[i].type = &b->type[i];
  b->type[i].value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  b->type[i].tensor_type = &b->tensor_type[i];
  b->tensor_type[i].has_elem_type = 1;
  b->tensor_type[i].elem_type = type;
  b->tensor_type[i].shape = &b->shape[i];
  b->shape[i].n_dim = rank;
  b->shape[i].dim = b->dims[i];
  for (size_t d = 0; d < rank; ++d) {
    Onnx__TensorShapeProto__Dimension* dim = b->dims[i][d] = &b->dim[i][d];
    onnx__tensor_shape_proto__dimension__init(dim);
    dim->value_case = extents[d] < 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                     : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (extents[d] < 0)
      dim->dim_param = (char*)"N";
    else
      dim->dim_value = extents[d];
  }
  return &b->info[i];
}

#define EXTENTS(...)                                                                                                   \
  (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                                                  \
    __VA_ARGS__                                                                                                        \
  }
static inline void add_input(builder_t* b, const char* name, int type, size_t rank, const int64_t* extents) {
  b->inputs[b->graph.n_input++] = add_info(b, name, type, rank, extents);
}
static inline void add_output(builder_t* b, const char* name, int type, size_t rank, const int64_t* extents) {
  b->outputs[b->graph.n_output++] = add_info(b, name, type, rank, extents);
}

static inline Onnx__TensorProto* add_tensor(builder_t* b, const char* name, int type, size_t rank, int64_t* dims,
                                            void* data, size_t bytes) {
  size_t i = b->graph.n_initializer++;
  Onnx__TensorProto* tensor = b->tensors[i] = &b->tensor[i];
  onnx__tensor_proto__init(tensor);
  tensor->name = (char*)name;
  tensor->n_dims = rank;
  tensor->dims = dims;
  tensor->has_data_type = 1;
  tensor->data_type = type;
  tensor->has_raw_data = data != NULL;
  tensor->raw_data = (ProtobufCBinaryData){bytes, data};
  return tensor;
}

static inline size_t model_pack(const builder_t* b, uint8_t** out_bytes) {
  size_t size = onnx__model_proto__get_packed_size(&b->model);
  *out_bytes = malloc(size);
  return onnx__model_proto__pack(&b->model, *out_bytes);
}

static inline void write_bytes(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
}

static inline const char* model_write(builder_t* b) {
  uint8_t* bytes;
  size_t size = model_pack(b, &bytes);
  snprintf(b->path, sizeof(b->path), "/tmp/weft_model_%d.onnx", (int)getpid());
  write_bytes(b->path, bytes, size);
  free(bytes);
  return b->path;
}

static inline void model_end(builder_t* b) {
  for (size_t i = 0; i < b->graph.n_node; ++i) {
    for (size_t j = 0; j < b->node[i].n_input; ++j) free(b->node[i].input[j]);
    for (size_t j = 0; j < b->node[i].n_output; ++j) free(b->node[i].output[j]);
  }
  if (b->path[0]) unlink(b->path);
}
