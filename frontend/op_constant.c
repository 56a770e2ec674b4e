// Operators whose result is known while importing, because shapes are.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static weft_status_t constant_floats(node_t* node, const float* values, size_t count, shape_t shape) {
  void* data;
  TRY(weft_arena_copy(node->builder->arena, values, count * sizeof(float), &data));
  return weft_onnx_known(node, WEFT_DTYPE_F32, &shape, data, &node->output[0]);
}

static weft_status_t emit_constant(node_t* node) {
  static const char* const names[] = {"value", "value_float", "value_int", "value_floats", "value_ints"};
  const Onnx__AttributeProto* attribute = NULL;
  for (size_t i = 0; i < 5 && !attribute; ++i) TRY(weft_onnx_attribute_proto(node, names[i], &attribute));
  NODE_REQUIRE(node, attribute, UNSUPPORTED, "its value is not a dense tensor, float or int");
  const char* name = attribute->name;
  if (strcmp(name, "value_float") == 0) return constant_floats(node, &attribute->f, 1, (shape_t){0});
  if (strcmp(name, "value_floats") == 0)
    return constant_floats(node, attribute->floats, attribute->n_floats, (shape_t){1, {(int64_t)attribute->n_floats}});
  if (strcmp(name, "value_int") == 0 || strcmp(name, "value_ints") == 0) {
    bool single = strcmp(name, "value_int") == 0;
    NODE_REQUIRE(node, attribute->n_ints < INT32_MAX, INVALID_INPUT, "value_ints is too long");
    TRY(weft_onnx_known_list(node, single ? 1 : (int32_t)attribute->n_ints, single ? &attribute->i : attribute->ints,
                             &node->output[0]));
    if (single) node->output[0]->shape.rank = 0;
    return weft_ok();
  }
  NODE_REQUIRE(node, attribute->t, INVALID_INPUT, "attribute 'value' must be a tensor");
  return weft_onnx_read_tensor_proto(node->builder->arena, node->builder->folder, attribute->t, &node->output[0]);
}

static weft_status_t fill(node_t* node, const value_t* number, const shape_t* shape) {
  value_t* scalar;
  TRY(weft_onnx_known(node, number->dtype, &(shape_t){0}, number->data, &scalar));
  return weft_onnx_expand(node, scalar, shape, &node->output[0]);
}

static weft_status_t emit_constant_of_shape(node_t* node) {
  shape_t shape = {0};
  const Onnx__AttributeProto* attribute;
  value_t* number;
  TRY(weft_onnx_known_ints(node, 0, "shape", WEFT_ONNX_MAX_RANK, shape.extent, &shape.rank));
  TRY(weft_onnx_attribute_proto(node, "value", &attribute));
  NODE_REQUIRE(node, !attribute || attribute->t, INVALID_INPUT, "attribute 'value' must be a tensor");
  if (attribute)
    TRY(weft_onnx_read_tensor_proto(node->builder->arena, node->builder->folder, attribute->t, &number));
  else
    TRY(weft_onnx_number(node, WEFT_DTYPE_F32, 0, &number));
  NODE_REQUIRE(node, weft_onnx_count(number) == 1, INVALID_INPUT, "attribute 'value' must have one element");
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count), INVALID_INPUT, "shape %s is negative or too large",
               weft_onnx_shape_format(&shape).text);
  return fill(node, number, &shape);
}

static weft_status_t emit_shape(node_t* node) {
  const shape_t* shape = &node->input[0]->shape;
  int64_t start, end, rank = shape->rank;
  TRY(weft_onnx_attribute_int(node, "start", 0, &start));
  TRY(weft_onnx_attribute_int(node, "end", rank, &end));
  start = weft_max_i64(weft_min_i64(start < 0 ? start + rank : start, rank), 0);
  end = weft_max_i64(weft_min_i64(end < 0 ? end + rank : end, rank), start);
  return weft_onnx_known_list(node, (int32_t)(end - start), shape->extent + start, &node->output[0]);
}

static weft_status_t emit_size(node_t* node) {
  int64_t count = weft_onnx_count(node->input[0]);
  TRY(weft_onnx_known_list(node, 1, &count, &node->output[0]));
  node->output[0]->shape.rank = 0;
  return weft_ok();
}

static weft_status_t emit_range(node_t* node) {
  static const char* const names[] = {"start", "limit", "delta"};
  double bound[3];
  weft_dtype_e dtype = node->input[0]->dtype;
  for (int32_t i = 0; i < 3; ++i) TRY(weft_onnx_known_number(node, i, names[i], 0, &bound[i]));
  double steps = ceil((bound[1] - bound[0]) / bound[2]);
  NODE_REQUIRE(node, bound[2] != 0 && steps < (1 << 26), INVALID_INPUT, "start %g, limit %g, delta %g", bound[0],
               bound[1], bound[2]);
  int64_t count = steps > 0 ? (int64_t)steps : 0;
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i)
    weft_dtype_store(dtype, bound[0] + (double)i * bound[2], data + (size_t)i * width);
  return weft_onnx_known(node, dtype, &(shape_t){1, {count}}, data, &node->output[0]);
}

static weft_status_t emit_eye_like(node_t* node) {
  const shape_t* shape = &node->input[0]->shape;
  int64_t k, type;
  weft_dtype_e dtype = node->input[0]->dtype;
  TRY(weft_onnx_attribute_int(node, "k", 0, &k));
  TRY(weft_onnx_attribute_int(node, "dtype", 0, &type));
  NODE_REQUIRE(node, !type || weft_onnx_dtype(type, &dtype), UNSUPPORTED, "dtype is %s", weft_onnx_dtype_text(type));
  NODE_REQUIRE(node, shape->rank == 2, INVALID_INPUT, "input has shape %s, expected a matrix",
               weft_onnx_shape_format(shape).text);
  uint8_t* data;
  size_t width = weft_dtype_size(dtype);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)weft_onnx_count(node->input[0]) + 1, width, (void**)&data));
  for (int64_t i = 0; i < shape->extent[0]; ++i)
    if (i + k >= 0 && i + k < shape->extent[1])
      weft_dtype_store(dtype, 1, data + (size_t)(i * shape->extent[1] + i + k) * width);
  return weft_onnx_known(node, dtype, shape, data, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Constant", 1, 0, 0, 1, emit_constant, "tensors, floats and ints"),
    OPERATOR("ConstantOfShape", 9, 1, 1, 1, emit_constant_of_shape, "constant shape"),
    OPERATOR("EyeLike", 9, 1, 1, 1, emit_eye_like, ""),
    OPERATOR("Range", 11, 3, 3, 1, emit_range, "constant bounds"),
    OPERATOR("Shape", 1, 1, 1, 1, emit_shape, ""),
    OPERATOR("Size", 1, 1, 1, 1, emit_size, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_constant = {"Constants and shapes", operators};
