// Models written as text, for tests:
//   graph    "y = Op(a, b) ; p, q = domain:Op(y, -) axis:i=1 alpha:f=0.5 mode:s=mean axes:I=1,2 body:g=loop
//   beta:r=alpha" values   "x:f32[2,3] n:i64[]"; without a shape, "y:f32", any
// "-" leaves an input or output out. Attributes: integer, float, string, list of integers, graph (a body given by name
// before), a reference to an attribute of the function's call.
#pragma once
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "frontend/frontend.h"
#include "frontend/tensor_proto.h"
#include "ir/tensor/eval.h"
#include "onnx.pb-c.h"

enum { TEXT_MAX = 64, TEXT_MAX_IO = 16 };
typedef struct text_model_t {
  weft_arena_t arena;
  weft_tensor_context_t* context;
  Onnx__ModelProto proto;
  Onnx__GraphProto* body[TEXT_MAX];
  const char* body_name[TEXT_MAX];
  size_t body_count;
  const weft_frontend_dim_t* dims; // for the import
  int32_t dim_count;
  weft_model_t model;
  weft_host_tensor_t output[TEXT_MAX_IO];
  char path[64];
} text_model_t;

static inline void* text_new(text_model_t* t, size_t count, size_t size) {
  void* data;
  assert_null(weft_arena_allocate(&t->arena, count + 1, size, &data));
  return data;
}

static inline char* text_copy(text_model_t* t, const char* from, size_t length) {
  char* copy = text_new(t, length, 1);
  memcpy(copy, from, length);
  return copy;
}

static inline void text_begin(text_model_t* t, int64_t opset) {
  static const char* const domains[] = {"", "com.microsoft", "local"};
  memset(t, 0, sizeof(*t));
  weft_arena_initialize(weft_allocator_system(), &t->arena);
  onnx__model_proto__init(&t->proto);
  t->proto.has_ir_version = 1;
  t->proto.ir_version = 10;
  t->proto.opset_import = text_new(t, 3, sizeof(void*));
  for (size_t i = 0; i < 3; ++i) {
    Onnx__OperatorSetIdProto* set = t->proto.opset_import[t->proto.n_opset_import++] = text_new(t, 1, sizeof(*set));
    onnx__operator_set_id_proto__init(set);
    set->domain = (char*)domains[i];
    set->has_version = 1;
    set->version = i ? 1 : opset;
  }
}

static inline void text_end(text_model_t* t) {
  if (t->model.module.ptr) mlirModuleDestroy(t->model.module);
  if (t->context) weft_tensor_context_destroy(t->context);
  if (t->path[0]) unlink(t->path);
  weft_arena_deinitialize(&t->arena);
}

static inline const char* text_skip(const char* at, const char* characters) {
  return at + strspn(at, characters);
}

// A word of letters, digits and what names have; "-" is an empty one.
static inline char* text_word(text_model_t* t, const char** at) {
  const char* from = text_skip(*at, " ,");
  size_t length = strcspn(from, " ,()=:;[]");
  *at = from + length;
  return text_copy(t, from, length == 1 && *from == '-' ? 0 : length);
}

static inline void text_values(text_model_t* t, const char* text, size_t* out_count, Onnx__ValueInfoProto*** out) {
  *out = text_new(t, TEXT_MAX, sizeof(void*));
  for (const char* at = text_skip(text, " "); *at; at = text_skip(at, " ")) {
    Onnx__ValueInfoProto* info = (*out)[(*out_count)++] = text_new(t, 1, sizeof(*info));
    onnx__value_info_proto__init(info);
    info->name = text_word(t, &at);
    if (*at != ':') continue;
    ++at;
    weft_dtype_e dtype = WEFT_DTYPE_COUNT;
    assert_true(weft_dtype_parse(text_word(t, &at), &dtype));
    info->type = text_new(t, 1, sizeof(*info->type));
    onnx__type_proto__init(info->type);
    info->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    Onnx__TypeProto__Tensor* type = info->type->tensor_type = text_new(t, 1, sizeof(*type));
    onnx__type_proto__tensor__init(type);
    type->has_elem_type = 1;
    type->elem_type = weft_onnx_data_type(dtype);
    if (*at != '[') continue;
    Onnx__TensorShapeProto* shape = type->shape = text_new(t, 1, sizeof(*shape));
    onnx__tensor_shape_proto__init(shape);
    shape->dim = text_new(t, 8, sizeof(void*));
    for (++at; *at != ']'; at = text_skip(at, ",")) {
      char* end;
      Onnx__TensorShapeProto__Dimension* dim = shape->dim[shape->n_dim++] = text_new(t, 1, sizeof(*dim));
      onnx__tensor_shape_proto__dimension__init(dim);
      dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
      dim->dim_value = strtoll(at, &end, 10);
      at = end;
    }
    ++at;
  }
}

static inline Onnx__GraphProto* text_find_body(text_model_t* t, const char* name) {
  for (size_t i = 0; i < t->body_count; ++i)
    if (strcmp(t->body_name[i], name) == 0) return t->body[i];
  fail_msg("no body '%s'", name);
  return NULL;
}

static inline Onnx__AttributeProto* text_attribute(text_model_t* t, const char** at) {
  Onnx__AttributeProto* attribute = text_new(t, 1, sizeof(*attribute));
  onnx__attribute_proto__init(attribute);
  attribute->name = text_word(t, at);
  char kind = (*at)[1], *end;
  *at += 3; // ":k="
  attribute->has_type = 1;
  switch (kind) {
  case 'i':
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    attribute->has_i = 1;
    attribute->i = strtoll(*at, &end, 10);
    *at = end;
    break;
  case 'f':
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    attribute->has_f = 1;
    attribute->f = strtof(*at, &end);
    *at = end;
    break;
  case 'F':
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    attribute->floats = text_new(t, 32, sizeof(float));
    for (end = (char*)*at - 1; attribute->n_floats == 0 || *end == ',';)
      attribute->floats[attribute->n_floats++] = strtof(end + 1, &end);
    *at = end;
    break;
  case 'I':
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    attribute->ints = text_new(t, 8, sizeof(int64_t));
    for (end = (char*)*at - 1; attribute->n_ints == 0 || *end == ',';)
      attribute->ints[attribute->n_ints++] = strtoll(end + 1, &end, 10);
    *at = end;
    break;
  case 's': {
    size_t length = strcspn(*at, " ;");
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    attribute->has_s = 1;
    attribute->s = (ProtobufCBinaryData){length, (uint8_t*)text_copy(t, *at, length)};
    *at += length;
    break;
  }
  case 'g':
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    attribute->g = text_find_body(t, text_word(t, at));
    break;
  default:
    attribute->has_type = 0;
    attribute->ref_attr_name = text_word(t, at);
  }
  return attribute;
}

static inline Onnx__NodeProto* text_node(text_model_t* t, const char** at) {
  Onnx__NodeProto* node = text_new(t, 1, sizeof(*node));
  onnx__node_proto__init(node);
  node->input = text_new(t, TEXT_MAX, sizeof(char*));
  node->output = text_new(t, TEXT_MAX, sizeof(char*));
  node->attribute = text_new(t, 8, sizeof(void*));
  while (*(*at = text_skip(*at, " ,")) != '=') node->output[node->n_output++] = text_word(t, at);
  ++*at;
  node->op_type = text_word(t, at);
  if (**at == ':') {
    ++*at;
    node->domain = node->op_type;
    node->op_type = text_word(t, at);
  }
  for (++*at; *(*at = text_skip(*at, " ,")) != ')';) node->input[node->n_input++] = text_word(t, at);
  ++*at;
  while (*(*at = text_skip(*at, " ")) && **at != ';') node->attribute[node->n_attribute++] = text_attribute(t, at);
  if (**at == ';') ++*at;
  return node;
}

static inline void text_nodes(text_model_t* t, const char* text, size_t* out_count, Onnx__NodeProto*** out) {
  *out = text_new(t, TEXT_MAX, sizeof(void*));
  for (const char* at = text_skip(text, " "); *at; at = text_skip(at, " ")) (*out)[(*out_count)++] = text_node(t, &at);
}

static inline Onnx__GraphProto* text_graph(text_model_t* t, const char* inputs, const char* nodes,
                                           const char* outputs) {
  Onnx__GraphProto* graph = text_new(t, 1, sizeof(*graph));
  onnx__graph_proto__init(graph);
  graph->name = (char*)"test";
  text_values(t, inputs, &graph->n_input, &graph->input);
  text_nodes(t, nodes, &graph->n_node, &graph->node);
  text_values(t, outputs, &graph->n_output, &graph->output);
  graph->initializer = text_new(t, TEXT_MAX, sizeof(void*));
  return graph;
}

static inline void text_main(text_model_t* t, const char* inputs, const char* nodes, const char* outputs) {
  t->proto.graph = text_graph(t, inputs, nodes, outputs);
}

static inline Onnx__GraphProto* text_body(text_model_t* t, const char* name, const char* inputs, const char* nodes,
                                          const char* outputs) {
  t->body_name[t->body_count] = name;
  return t->body[t->body_count++] = text_graph(t, inputs, nodes, outputs);
}

// Of the domain "local". inputs, outputs: names.
static inline void text_function(text_model_t* t, const char* name, const char* inputs, const char* nodes,
                                 const char* outputs) {
  Onnx__FunctionProto* function = text_new(t, 1, sizeof(*function));
  onnx__function_proto__init(function);
  if (!t->proto.functions) t->proto.functions = text_new(t, TEXT_MAX, sizeof(void*));
  t->proto.functions[t->proto.n_functions++] = function;
  function->name = (char*)name;
  function->domain = (char*)"local";
  function->opset_import = t->proto.opset_import;
  function->n_opset_import = t->proto.n_opset_import;
  function->input = text_new(t, TEXT_MAX, sizeof(char*));
  function->output = text_new(t, TEXT_MAX, sizeof(char*));
  for (const char* at = text_skip(inputs, " "); *at; at = text_skip(at, " "))
    function->input[function->n_input++] = text_word(t, &at);
  for (const char* at = text_skip(outputs, " "); *at; at = text_skip(at, " "))
    function->output[function->n_output++] = text_word(t, &at);
  text_nodes(t, nodes, &function->n_node, &function->node);
}

static inline void text_tensor(text_model_t* t, Onnx__GraphProto* graph, const char* name, int32_t data_type,
                               size_t rank, const int64_t* dims, const void* data, size_t size) {
  Onnx__TensorProto* tensor = graph->initializer[graph->n_initializer++] = text_new(t, 1, sizeof(*tensor));
  onnx__tensor_proto__init(tensor);
  tensor->name = (char*)name;
  tensor->has_data_type = 1;
  tensor->data_type = data_type;
  tensor->n_dims = rank;
  tensor->dims = (int64_t*)dims;
  tensor->has_raw_data = 1;
  tensor->raw_data = (ProtobufCBinaryData){size, (uint8_t*)data};
}

// Writes the model to t->path, a temporary file.
static inline weft_status_t text_save(text_model_t* t) {
  size_t size = onnx__model_proto__get_packed_size(&t->proto);
  uint8_t* bytes = text_new(t, size, 1);
  onnx__model_proto__pack(&t->proto, bytes);
  snprintf(t->path, sizeof(t->path), "/tmp/weft_text_%d.onnx", (int)getpid());
  return weft_file_write(weft_allocator_system(), t->path, bytes, size);
}

static inline weft_status_t text_import(text_model_t* t) {
  WEFT_RETURN_IF_ERROR(text_save(t));
  WEFT_RETURN_IF_ERROR(weft_tensor_context_create(weft_allocator_system(), &t->context));
  return weft_frontend_import(t->context, &t->arena, t->path, t->dims, t->dim_count, &t->model);
}

static inline weft_host_tensor_t text_host(text_model_t* t, const weft_frontend_io_t* io) {
  weft_host_tensor_t tensor = {.name = io->name, .dtype = io->dtype, .rank = io->rank};
  memcpy(tensor.extent, io->extent, sizeof(io->extent));
  tensor.size = weft_dtype_size(io->dtype);
  for (int32_t d = 0; d < io->rank; ++d) tensor.size *= (size_t)io->extent[d];
  tensor.data = text_new(t, tensor.size, 1);
  return tensor;
}

// Imports and runs; the outputs are then in t->output. data: of each input.
static inline void text_run(text_model_t* t, const void* const* data) {
  weft_host_tensor_t input[TEXT_MAX_IO];
  weft_eval_t* eval;
  weft_status_t status = text_import(t);
  if (status) fail_msg("%s", weft_status_message(status));
  for (int32_t i = 0; i < t->model.input_count; ++i) {
    input[i] = text_host(t, &t->model.input[i]);
    memcpy(input[i].data, data[i], input[i].size);
  }
  for (int32_t i = 0; i < t->model.output_count; ++i) t->output[i] = text_host(t, &t->model.output[i]);
  status = weft_eval_create(t->context, t->model.module, weft_allocator_system(), &eval);
  if (!status) status = weft_eval_run(eval, input, t->model.input_count, t->output, t->model.output_count);
  if (status) fail_msg("%s", weft_status_message(status));
  weft_eval_destroy(eval);
}

static inline double text_at(const text_model_t* t, int32_t output, size_t element) {
  const weft_host_tensor_t* tensor = &t->output[output];
  return weft_dtype_load(tensor->dtype, (const char*)tensor->data + element * weft_dtype_size(tensor->dtype));
}
