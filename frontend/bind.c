#include "frontend/bind.h"

#include <string.h>

#include "base/text.h"
#include "frontend/tensor_proto.h"

static const Onnx__ValueInfoProto* find_input(const Onnx__GraphProto* graph, const char* name) {
  for (size_t i = 0; i < graph->n_input; ++i)
    if (strcmp(weft_onnx_text(graph->input[i]->name), name) == 0) return graph->input[i];
  return NULL;
}

static weft_status_t no_such_input(weft_arena_t* arena, const Onnx__GraphProto* graph, const char* name) {
  enum { SHOWN = 16 };
  weft_text_t list;
  weft_text_initialize(arena->allocator, &list);
  weft_status_t status = weft_ok();
  for (size_t i = 0; i < graph->n_input && i < SHOWN && !status; ++i)
    status = weft_text_printf(&list, "%s%s", i ? ", " : "", weft_onnx_text(graph->input[i]->name));
  if (!status && graph->n_input > SHOWN) status = weft_text_printf(&list, ", ..");
  if (!status)
    status = weft_error(INVALID_ARGUMENT, "--bind %s: the model has no input of this name; it has %s", name,
                        list.count ? list.data : "none");
  weft_text_deinitialize(&list);
  return status;
}

static bool fits(const Onnx__TensorShapeProto* declared, const weft_onnx_shape_t* shape,
                 const weft_frontend_dim_t* dims, int32_t dim_count) {
  if (!declared) return true;
  if (declared->n_dim != (size_t)shape->rank) return false;
  for (size_t i = 0; i < declared->n_dim; ++i) {
    const Onnx__TensorShapeProto__Dimension* dim = declared->dim[i];
    bool is_number = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0;
    bool is_named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    if (is_number && dim->dim_value != shape->extent[i]) return false;
    for (int32_t d = 0; d < dim_count && is_named; ++d)
      if (strcmp(dims[d].name, weft_onnx_text(dim->dim_param)) == 0 && dims[d].value != shape->extent[i]) return false;
  }
  return true;
}

static weft_status_t declared_text(weft_arena_t* arena, const Onnx__TensorShapeProto* declared,
                                   const weft_frontend_dim_t* dims, int32_t dim_count, const char** out) {
  *out = "";
  for (size_t i = 0; i < declared->n_dim; ++i) {
    const Onnx__TensorShapeProto__Dimension* dim = declared->dim[i];
    const char* comma = i ? ", " : "";
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
      WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, out, "%s%s%lld", *out, comma, (long long)dim->dim_value));
      continue;
    }
    bool is_named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    const char* name = is_named ? weft_onnx_text(dim->dim_param) : "?";
    WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, out, "%s%s%s", *out, comma, name));
    for (int32_t d = 0; d < dim_count; ++d)
      if (strcmp(dims[d].name, name) == 0)
        WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, out, "%s=%lld", *out, (long long)dims[d].value));
  }
  return weft_ok();
}

static weft_status_t bind_one(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph, const weft_host_tensor_t* tensor,
                              const weft_frontend_dim_t* dims, int32_t dim_count) {
  const Onnx__ValueInfoProto* info = find_input(graph->proto, tensor->name);
  if (!info) return no_such_input(builder->arena, graph->proto, tensor->name);
  if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !info->type->tensor_type)
    return weft_error(UNSUPPORTED, "--bind %s: this input is not a dense tensor", tensor->name);
  const Onnx__TypeProto__Tensor* type = info->type->tensor_type;
  weft_dtype_e dtype = WEFT_DTYPE_COUNT;
  if (!weft_onnx_dtype(type->elem_type, &dtype) || dtype != tensor->dtype)
    return weft_error(INVALID_ARGUMENT, "--bind %s: the value is %s, the model declares %s", tensor->name,
                      weft_dtype_name(tensor->dtype), weft_onnx_dtype_text(type->elem_type));
  weft_onnx_shape_t shape = weft_onnx_shape_make(tensor->rank, tensor->extent);
  if (!fits(type->shape, &shape, dims, dim_count)) {
    const char* declared;
    WEFT_RETURN_IF_ERROR(declared_text(builder->arena, type->shape, dims, dim_count, &declared));
    return weft_error(INVALID_ARGUMENT, "--bind %s: the value has shape %s, the model declares [%s]", tensor->name,
                      weft_onnx_shape_format(&shape).text, declared);
  }
  value_t* value;
  void* data;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(builder->arena, 1, &value));
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(builder->arena, tensor->size + 1, 1, &data));
  if (tensor->size) memcpy(data, tensor->data, tensor->size);
  *value = (value_t){.name = weft_onnx_text(info->name),
                     .dtype = dtype,
                     .bits = weft_onnx_bits(type->elem_type),
                     .minifloat = weft_onnx_minifloat(type->elem_type),
                     .shape = shape,
                     .data = data};
  weft_onnx_name_t* entry = weft_onnx_graph_find(graph, value->name);
  entry->producer = WEFT_ONNX_FROM_INITIALIZER;
  entry->value = value;
  return weft_ok();
}

weft_status_t weft_onnx_bind_inputs(weft_onnx_builder_t* builder, weft_onnx_graph_t* graph,
                                    const weft_host_tensor_t* bound, int32_t bound_count,
                                    const weft_frontend_dim_t* dims, int32_t dim_count) {
  for (int32_t i = 0; i < bound_count; ++i) {
    for (int32_t j = 0; j < i; ++j)
      if (strcmp(bound[i].name, bound[j].name) == 0)
        return weft_error(INVALID_ARGUMENT, "--bind %s is given twice", bound[i].name);
    WEFT_RETURN_IF_ERROR(bind_one(builder, graph, &bound[i], dims, dim_count));
  }
  return weft_ok();
}

// --- The hint

enum { MAX_VISITED = 256, MAX_NAMED = 3 };
typedef struct origin_t {
  MlirValue visited[MAX_VISITED];
  int32_t count, done;
  bool is_too_much; // a value that depends on much is not a parameter
} origin_t;

static void visit(origin_t* origin, MlirValue value) {
  for (int32_t i = 0; i < origin->count; ++i)
    if (mlirValueEqual(origin->visited[i], value)) return;
  origin->is_too_much |= origin->count == MAX_VISITED;
  if (!origin->is_too_much) origin->visited[origin->count++] = value;
}

static const char* input_name(const node_t* node, MlirValue argument) {
  const weft_onnx_graph_t* graph = node->graph;
  for (; graph; graph = graph->outer ? graph->outer : graph->caller ? graph->caller->graph : NULL)
    for (size_t i = 0; i < graph->name_count; ++i) {
      const weft_onnx_name_t* entry = &graph->names[i];
      bool is_input = entry->producer == WEFT_ONNX_FROM_INPUT && entry->value && entry->value->mlir.ptr;
      if (is_input && !graph->outer && !graph->caller && mlirValueEqual(entry->value->mlir, argument))
        return entry->name;
    }
  return NULL;
}

const char* weft_onnx_bind_hint(const node_t* node, const value_t* value) {
  const char* name[MAX_NAMED];
  int32_t names = 0;
  origin_t origin = {.count = 0};
  if (!value || !value->mlir.ptr) return "";
  visit(&origin, value->mlir);
  while (origin.done < origin.count && !origin.is_too_much) {
    MlirValue at = origin.visited[origin.done++];
    if (mlirValueIsABlockArgument(at)) {
      const char* found = input_name(node, at);
      if (!found) continue;
      if (names == MAX_NAMED) return "";
      name[names++] = found;
      continue;
    }
    MlirOperation op = mlirOpResultGetOwner(at);
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) visit(&origin, mlirOperationGetOperand(op, i));
  }
  const char* hint = "";
  if (origin.is_too_much || names == 0) return "";
  for (int32_t i = 0; i < names; ++i) {
    const char* longer = NULL;
    weft_status_t status = weft_arena_printf(node->builder->arena, &longer, "%s%s --bind %s=VALUE", hint,
                                             i ? " and" : "; make it constant with", name[i]);
    if (!weft_status_consume(status)) return "";
    hint = longer;
  }
  return hint;
}
