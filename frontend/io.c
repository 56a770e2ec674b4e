#include "frontend/io.h"

#include <string.h>

#include "frontend/emit.h"
#include "frontend/mlir_build.h"
#include "frontend/tensor_proto.h"

static weft_status_t tensor_type(const Onnx__ValueInfoProto* info, const char* kind,
                                 const Onnx__TypeProto__Tensor** out_type, weft_dtype_e* out_dtype) {
  const char* name = weft_onnx_text(info->name);
  if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !info->type->tensor_type)
    return weft_error(UNSUPPORTED, "%s '%s' is not a dense tensor", kind, name);
  *out_type = info->type->tensor_type;
  if (!weft_onnx_dtype((*out_type)->elem_type, out_dtype))
    return weft_error(UNSUPPORTED, "%s '%s' has elements of type %d (%s), which is not supported", kind, name,
                      (int)(*out_type)->elem_type, weft_onnx_dtype_text((*out_type)->elem_type));
  if ((*out_type)->shape && (*out_type)->shape->n_dim > WEFT_ONNX_MAX_RANK)
    return weft_error(UNSUPPORTED, "%s '%s' has %zu dimensions, at most %d are supported", kind, name,
                      (*out_type)->shape->n_dim, WEFT_ONNX_MAX_RANK);
  return weft_ok();
}

// A dimension without a name is called INPUT.AXIS.
static weft_status_t dimension_name(weft_arena_t* arena, const Onnx__ValueInfoProto* info, size_t axis,
                                    const char** out) {
  const Onnx__TensorShapeProto__Dimension* dim = info->type->tensor_type->shape->dim[axis];
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && weft_onnx_text(dim->dim_param)[0]) {
    *out = dim->dim_param;
    return weft_ok();
  }
  return weft_arena_printf(arena, out, "%s.%zu", weft_onnx_text(info->name), axis);
}

static const weft_frontend_dim_t* find_dim(const weft_frontend_dim_t* dims, int32_t count, const char* name) {
  for (int32_t i = 0; i < count; ++i)
    if (strcmp(dims[i].name, name) == 0) return &dims[i];
  return NULL;
}

// NULL: not given.
static const weft_frontend_dim_t* use_dim(const weft_onnx_builder_t* builder, const char* name) {
  const weft_frontend_dim_t* found = find_dim(builder->dims, builder->dim_count, name);
  if (found) builder->dim_used[found - builder->dims] = true;
  return found;
}

static weft_status_t input_shape(const weft_onnx_builder_t* builder, const Onnx__ValueInfoProto* info,
                                 weft_onnx_shape_t* shape, weft_text_t* unknown) {
  const Onnx__TensorShapeProto* declared = info->type->tensor_type->shape;
  if (!declared) return weft_error(UNSUPPORTED, "input '%s' has no shape, not even a rank", weft_onnx_text(info->name));
  shape->rank = (int32_t)declared->n_dim;
  for (size_t i = 0; i < declared->n_dim; ++i) {
    const Onnx__TensorShapeProto__Dimension* dim = declared->dim[i];
    bool is_given = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0;
    const char* name;
    WEFT_RETURN_IF_ERROR(dimension_name(builder->arena, info, i, &name));
    const weft_frontend_dim_t* chosen = is_given ? NULL : use_dim(builder, name);
    shape->extent[i] = is_given ? dim->dim_value : chosen ? chosen->value : 0;
    if (is_given || chosen) continue;
    WEFT_RETURN_IF_ERROR(
        weft_text_printf(unknown, "\n  dimension '%s', axis %zu of input '%s'", name, i, weft_onnx_text(info->name)));
  }
  int64_t count;
  if (!weft_onnx_shape_count(shape, &count))
    return weft_error(INVALID_INPUT, "input '%s': shape %s is negative or too large", weft_onnx_text(info->name),
                      weft_onnx_shape_format(shape).text);
  return weft_ok();
}

static void describe(const value_t* value, const char* name, weft_frontend_io_t* io) {
  *io = (weft_frontend_io_t){.name = name, .dtype = value->dtype, .rank = value->shape.rank};
  memcpy(io->extent, value->shape.extent, sizeof(io->extent));
}

static weft_status_t import_input(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph,
                                  const Onnx__ValueInfoProto* info, weft_dtype_e dtype, const weft_onnx_shape_t* shape,
                                  weft_frontend_io_t* io) {
  value_t* value;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, 1, &value));
  *value = (value_t){.name = weft_onnx_text(info->name), .dtype = dtype, .shape = *shape};
  value->bits = weft_onnx_bits(info->type->tensor_type->elem_type);
  value->minifloat = weft_onnx_minifloat(info->type->tensor_type->elem_type);
  MlirType type = weft_onnx_tensor_type(builder->context, dtype, shape);
  MlirValue argument = mlirBlockAddArgument(builder->block, type, weft_onnx_location(builder->context, value->name));
  if (weft_onnx_count(value)) value->mlir = argument;
  // Without elements it is known, and everything made of it folds.
  else
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(builder->arena, 1, 8, (void**)&value->data));
  weft_onnx_graph_find(graph, value->name)->value = value;
  describe(value, value->name, io);
  return weft_ok();
}

// Before the inputs are looked at.
static weft_status_t check_dim_values(const weft_frontend_dim_t* dims, int32_t dim_count) {
  for (int32_t i = 0; i < dim_count; ++i) {
    if (dims[i].value < 0)
      return weft_error(INVALID_ARGUMENT, "--dim %s=%lld: a dimension cannot be negative", dims[i].name,
                        (long long)dims[i].value);
    const weft_frontend_dim_t* first = find_dim(dims, dim_count, dims[i].name);
    if (first->value != dims[i].value)
      return weft_error(INVALID_ARGUMENT, "--dim %s is given as %lld and as %lld", dims[i].name,
                        (long long)first->value, (long long)dims[i].value);
  }
  return weft_ok();
}

weft_status_t weft_onnx_check_dims_used(const weft_onnx_builder_t* builder) {
  const weft_frontend_dim_t* dims = builder->dims;
  for (int32_t i = 0; i < builder->dim_count; ++i)
    if (!builder->dim_used[find_dim(dims, builder->dim_count, dims[i].name) - dims])
      return weft_error(INVALID_ARGUMENT, "--dim %s: no input has an open dimension of this name", dims[i].name);
  return weft_ok();
}

static weft_status_t import_all(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_model_t* model,
                                weft_text_t* unknown) {
  const Onnx__GraphProto* proto = graph->proto;
  weft_onnx_shape_t* shapes;
  weft_dtype_e* dtypes;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, (size_t)builder->dim_count + 1, &builder->dim_used));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, proto->n_input + 1, &shapes));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, proto->n_input + 1, &dtypes));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, proto->n_input + 1, &model->input));
  WEFT_RETURN_IF_ERROR(check_dim_values(builder->dims, builder->dim_count));
  for (size_t i = 0; i < proto->n_input; ++i) { // all unknown dimensions at once
    const Onnx__TypeProto__Tensor* type;
    if (weft_onnx_graph_find(graph, weft_onnx_text(proto->input[i]->name))->producer != WEFT_ONNX_FROM_INPUT) continue;
    WEFT_RETURN_IF_ERROR(tensor_type(proto->input[i], "input", &type, &dtypes[i]));
    WEFT_RETURN_IF_ERROR(input_shape(builder, proto->input[i], &shapes[i], unknown));
  }
  if (unknown->count)
    return weft_error(INVALID_ARGUMENT, "shapes must be static; give each unknown dimension with --dim NAME=N:%s",
                      unknown->data);
  for (size_t i = 0; i < proto->n_input; ++i) {
    if (weft_onnx_graph_find(graph, weft_onnx_text(proto->input[i]->name))->producer != WEFT_ONNX_FROM_INPUT) continue;
    WEFT_RETURN_IF_ERROR(
        import_input(builder, graph, proto->input[i], dtypes[i], &shapes[i], &model->input[model->input_count++]));
  }
  return weft_ok();
}

weft_status_t weft_onnx_import_inputs(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, weft_model_t* model) {
  weft_text_t unknown;
  weft_text_initialize(builder->arena->allocator, &unknown);
  weft_status_t status = import_all(builder, graph, model, &unknown);
  weft_text_deinitialize(&unknown);
  return status;
}

// --- Outputs

static const Onnx__ValueInfoProto* find_info(size_t count, Onnx__ValueInfoProto* const* infos, const char* name) {
  for (size_t i = 0; i < count; ++i)
    if (strcmp(weft_onnx_text(infos[i]->name), name) == 0) return infos[i];
  return NULL;
}

weft_status_t weft_onnx_declared_extent(const node_t* node, int32_t rank, int32_t axis, int64_t* out) {
  const char *output = weft_onnx_text(node->proto->output[0]), *name = "";
  const Onnx__GraphProto* graph = node->graph ? node->graph->proto : NULL;
  const Onnx__ValueInfoProto* info = graph ? find_info(graph->n_output, graph->output, output) : NULL;
  if (graph && !info) info = find_info(graph->n_value_info, graph->value_info, output);
  bool has_shape = info && info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                   info->type->tensor_type->shape && info->type->tensor_type->shape->n_dim == (size_t)rank;
  const Onnx__TensorShapeProto__Dimension* dim = has_shape ? info->type->tensor_type->shape->dim[axis] : NULL;
  const weft_frontend_dim_t* given = NULL;
  if (dim && dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0 &&
      dim->dim_value < INT32_MAX) {
    *out = dim->dim_value;
    return weft_ok();
  }
  if (dim && dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) {
    name = weft_onnx_text(dim->dim_param);
    given = use_dim(node->builder, name);
  }
  if (!given) {
    const char* place;
    WEFT_RETURN_IF_ERROR(weft_arena_printf(node->builder->arena, &place, "%s.%d", output, axis));
    given = use_dim(node->builder, place);
    if (!name[0]) name = place;
  }
  NODE_REQUIRE(
      node, given, UNSUPPORTED,
      "how long its result is depends on elements that are known at run time only; say how much to keep at most "
      "with --dim %s=N, or by a fixed shape of '%s' in the model",
      name, output);
  NODE_REQUIRE(node, given->value < INT32_MAX, INVALID_ARGUMENT, "--dim %s=%lld is too large", given->name,
               (long long)given->value);
  *out = given->value;
  return weft_ok();
}

// Declared extents that are numbers must agree; names and missing ones say nothing.
static weft_status_t check_output(const Onnx__ValueInfoProto* info, const value_t* value) {
  const Onnx__TypeProto__Tensor* type;
  weft_dtype_e dtype;
  WEFT_RETURN_IF_ERROR(tensor_type(info, "output", &type, &dtype));
  if (dtype != value->dtype)
    return weft_error(INVALID_INPUT, "output '%s': expected %s, got %s", info->name, weft_dtype_name(dtype),
                      weft_dtype_name(value->dtype));
  if (!type->shape) return weft_ok();
  bool agrees = type->shape->n_dim == (size_t)value->shape.rank;
  weft_onnx_shape_t expected = {.rank = (int32_t)type->shape->n_dim};
  for (size_t i = 0; i < type->shape->n_dim; ++i) {
    const Onnx__TensorShapeProto__Dimension* dim = type->shape->dim[i];
    bool is_given = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0;
    expected.extent[i] = is_given ? dim->dim_value : agrees ? value->shape.extent[i] : 0;
    if (agrees && expected.extent[i] != value->shape.extent[i]) agrees = false;
  }
  if (agrees) return weft_ok();
  return weft_error(INVALID_INPUT, "output '%s': expected shape %s, got %s", info->name,
                    weft_onnx_shape_format(&expected).text, weft_onnx_shape_format(&value->shape).text);
}

weft_status_t weft_onnx_import_outputs(weft_onnx_builder_t* builder, const weft_onnx_graph_t* graph,
                                       weft_model_t* model, MlirValue** out_values) {
  const Onnx__GraphProto* proto = graph->proto;
  if (proto->n_output == 0) return weft_error(INVALID_INPUT, "the graph has no output");
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, proto->n_output, &model->output));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, proto->n_output, out_values));
  model->output_count = (int32_t)proto->n_output;
  for (size_t i = 0; i < proto->n_output; ++i) {
    const char* name = weft_onnx_text(proto->output[i]->name);
    const weft_onnx_name_t* entry = weft_onnx_graph_find(graph, name);
    if (!entry)
      return weft_error(INVALID_INPUT, "output '%s' is made by no node and is neither an input nor an initializer",
                        name);
    weft_status_t status = check_output(proto->output[i], entry->value);
    if (status && entry->producer >= 0)
      return weft_status_annotate(status, "made by node %s", graph->label[entry->producer]);
    WEFT_RETURN_IF_ERROR(status);
    MlirLocation location = weft_onnx_location(builder->context, name);
    WEFT_RETURN_IF_ERROR(weft_onnx_materialize(builder, location, entry->value, &(*out_values)[i]));
    describe(entry->value, name, &model->output[i]);
  }
  return weft_ok();
}
