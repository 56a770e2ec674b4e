#include "tests/conformance/case.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static bool ends_with(const char* text, const char* ending) {
  size_t a = strlen(text), b = strlen(ending);
  return a >= b && !strcmp(text + a - b, ending);
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

weft_status_t case_list(weft_arena_t* arena, const char* folder, case_names_t* out_names) {
  *out_names = (case_names_t){0};
  DIR* directory = opendir(folder);
  if (!directory) return weft_error(NOT_FOUND, "cannot read the folder %s", folder);
  WEFT_ARRAY(const char*) names = {0};
  weft_status_t status = weft_ok();
  for (struct dirent* entry; !status && (entry = readdir(directory));) {
    if (strncmp(entry->d_name, "test_", 5) && !ends_with(entry->d_name, ".onnx")) continue;
    const char* name = NULL;
    status = weft_arena_strdup(arena, entry->d_name, &name);
    if (!status) status = WEFT_ARRAY_PUSH(arena->allocator, &names, name);
  }
  closedir(directory);
  void* copy = NULL;
  if (!status && names.count) {
    qsort(names.data, names.count, sizeof *names.data, compare_names);
    status = weft_arena_copy(arena, names.data, names.count * sizeof *names.data, &copy);
  }
  *out_names = (case_names_t){(int32_t)names.count, copy};
  WEFT_ARRAY_FREE(arena->allocator, &names);
  return status;
}

static bool is_initializer(const Onnx__GraphProto* graph, const char* name) {
  for (size_t i = 0; i < graph->n_initializer; ++i)
    if (graph->initializer[i]->name && name && !strcmp(graph->initializer[i]->name, name)) return true;
  return false;
}

static bool is_bound(const case_t* test, const char* name) {
  for (int32_t i = 0; i < test->bound_count; ++i)
    if (!strcmp(test->bound[i].name, name)) return true;
  return false;
}

// The index-th input that is neither an initializer nor bound, or NULL.
static Onnx__ValueInfoProto* fed_input(const case_t* test, int32_t index) {
  const Onnx__GraphProto* graph = test->model->graph;
  for (size_t i = 0; i < graph->n_input; ++i) {
    if (is_initializer(graph, graph->input[i]->name) || is_bound(test, graph->input[i]->name)) continue;
    if (index-- == 0) return graph->input[i];
  }
  return NULL;
}

static void set_verdict(record_t* record, verdict_e verdict, const char* subject) {
  record->verdict = verdict;
  snprintf(record->subject, sizeof record->subject, "%s", subject);
}

enum { STRING = 8 };

static bool has_word(const char* list, const char* word) {
  size_t length = strlen(word);
  for (const char* at = list; (at = strstr(at, word)); at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

// False: the verdict is set.
static bool judge_type(const Onnx__ValueInfoProto* info, record_t* record) {
  const Onnx__TypeProto* type = info->type;
  if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || type->tensor_type->elem_type == STRING) {
    set_verdict(record, VERDICT_NOT_TENSORS, "");
    return false;
  }
  weft_dtype_e dtype;
  if (weft_onnx_dtype(type->tensor_type->elem_type, &dtype)) return true;
  set_verdict(record, VERDICT_UNSUPPORTED_TYPE, weft_onnx_dtype_text(type->tensor_type->elem_type));
  return true; // a later value may still be no tensor at all
}

static void judge_model(const Onnx__GraphProto* graph, record_t* record) {
  for (size_t i = 0; i < graph->n_input; ++i)
    if (!judge_type(graph->input[i], record)) return;
  for (size_t i = 0; i < graph->n_output; ++i)
    if (!judge_type(graph->output[i], record)) return;
  char list[sizeof record->subject] = "";
  for (size_t i = 0; i < graph->n_node; ++i) {
    const char* op = graph->node[i]->op_type ? graph->node[i]->op_type : "";
    const char* domain = graph->node[i]->domain ? graph->node[i]->domain : "";
    bool is_default = !domain[0] || !strcmp(domain, "ai.onnx");
    if (weft_onnx_operator_find_in(domain, op)) continue;
    char full[sizeof list];
    snprintf(full, sizeof full, "%s%s%s", is_default ? "" : domain, is_default ? "" : ".", op);
    if (has_word(list, full)) continue;
    size_t used = strlen(list);
    int length = snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "", full);
    if (length >= (int)(sizeof list - used)) break; // the first ones will do
  }
  if (list[0]) set_verdict(record, VERDICT_UNSUPPORTED_OPERATOR, list);
}

// kind_0.pb, kind_1.pb, .. of a prefix.
static weft_status_t read_tensors(weft_arena_t* arena, const char* prefix, const char* kind, int32_t* out_count,
                                  weft_host_tensor_t** out_tensors) {
  const char* path = NULL;
  for (*out_count = 0;; ++*out_count) {
    WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s%s_%d.pb", prefix, kind, *out_count));
    if (access(path, R_OK)) break;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)*out_count + 1, out_tensors));
  for (int32_t i = 0; i < *out_count; ++i) {
    WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s%s_%d.pb", prefix, kind, i));
    WEFT_RETURN_IF_ERROR(weft_frontend_read_tensor(arena, path, &(*out_tensors)[i]));
  }
  return weft_ok();
}

// The light models come with outputs only: their inputs are 0, 1/n, 2/n, .. as ONNX's own runner makes them.
static weft_status_t make_inputs(case_t* test, data_set_t* set) {
  while (fed_input(test, test->input_count)) ++test->input_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, (size_t)test->input_count + 1, &set->input));
  for (int32_t i = 0; i < test->input_count; ++i) {
    const Onnx__TypeProto__Tensor* type = fed_input(test, i)->type->tensor_type;
    weft_host_tensor_t* tensor = &set->input[i];
    *tensor = (weft_host_tensor_t){.name = fed_input(test, i)->name};
    if (!weft_onnx_dtype(type->elem_type, &tensor->dtype) || tensor->dtype != WEFT_DTYPE_F32 || !type->shape ||
        type->shape->n_dim > 8)
      return weft_error(UNSUPPORTED, "no data for input '%s'", tensor->name);
    int64_t count = 1;
    tensor->rank = (int32_t)type->shape->n_dim;
    for (int32_t d = 0; d < tensor->rank; ++d) {
      int64_t extent = type->shape->dim[d]->dim_value;
      tensor->extent[d] = extent > 0 ? extent : 1;
      count *= tensor->extent[d];
    }
    tensor->size = (size_t)count * sizeof(float);
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(test->arena, (size_t)count, sizeof(float), &tensor->data));
    for (int64_t e = 0; e < count; ++e) ((float*)tensor->data)[e] = (float)((double)e / (double)count);
  }
  return weft_ok();
}

static weft_status_t read_data(case_t* test, const char* folder, const char* name, bool is_file) {
  const char* prefix = NULL;
  const char* output = NULL;
  if (is_file) {
    test->data_set_count = 1;
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, 1, &test->data_set));
    WEFT_RETURN_IF_ERROR(weft_arena_printf(test->arena, &prefix, "%s/%.*s_", folder, (int)strlen(name) - 5, name));
    WEFT_RETURN_IF_ERROR(make_inputs(test, test->data_set));
    return read_tensors(test->arena, prefix, "output", &test->output_count, &test->data_set->output);
  }
  for (;; ++test->data_set_count) {
    WEFT_RETURN_IF_ERROR(weft_arena_printf(test->arena, &output, "%s/%s/test_data_set_%d/output_0.pb", folder, name,
                                           test->data_set_count));
    if (access(output, R_OK)) break;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, (size_t)test->data_set_count + 1, &test->data_set));
  for (int32_t i = 0; i < test->data_set_count; ++i) {
    int32_t inputs = 0, outputs = 0;
    WEFT_RETURN_IF_ERROR(weft_arena_printf(test->arena, &prefix, "%s/%s/test_data_set_%d/", folder, name, i));
    WEFT_RETURN_IF_ERROR(read_tensors(test->arena, prefix, "input", &inputs, &test->data_set[i].input));
    WEFT_RETURN_IF_ERROR(read_tensors(test->arena, prefix, "output", &outputs, &test->data_set[i].output));
    if (i && (inputs != test->input_count || outputs != test->output_count))
      return weft_error(INVALID_INPUT, "data sets with %d and %d inputs", test->input_count, inputs);
    test->input_count = inputs;
    test->output_count = outputs;
  }
  return weft_ok();
}

// Older data keeps bf16 as u16: the model knows better.
static void adopt_type(const Onnx__ValueInfoProto* info, weft_host_tensor_t* tensor) {
  weft_dtype_e dtype;
  if (info && weft_onnx_dtype(info->type->tensor_type->elem_type, &dtype) && dtype == WEFT_DTYPE_BF16 &&
      tensor->dtype == WEFT_DTYPE_U16)
    tensor->dtype = dtype;
}

static void adopt_types(case_t* test) {
  const Onnx__GraphProto* graph = test->model->graph;
  for (int32_t s = 0; s < test->data_set_count; ++s) {
    for (int32_t i = 0; i < test->input_count; ++i) adopt_type(fed_input(test, i), &test->data_set[s].input[i]);
    for (int32_t i = 0; i < test->output_count && (size_t)i < graph->n_output; ++i)
      adopt_type(graph->output[i], &test->data_set[s].output[i]);
  }
}

weft_status_t case_read(weft_arena_t* arena, const char* folder, const char* name, case_t* out_case, record_t* record) {
  bool is_file = ends_with(name, ".onnx");
  *out_case = (case_t){.arena = arena};
  WEFT_RETURN_IF_ERROR(
      weft_arena_printf(arena, &out_case->path, "%s/%s%s", folder, name, is_file ? "" : "/model.onnx"));
  if (access(out_case->path, R_OK)) {
    set_verdict(record, VERDICT_NO_MODEL, "");
    return weft_ok();
  }
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(out_case->path, &mapping));
  weft_status_t status = weft_onnx_unpack(arena, &onnx__model_proto__descriptor, out_case->path, "an ONNX model",
                                          mapping.data, mapping.size, (ProtobufCMessage**)&out_case->model);
  weft_file_unmap(&mapping);
  WEFT_RETURN_IF_ERROR(status);
  if (!out_case->model->graph) return weft_error(INVALID_INPUT, "%s has no graph", out_case->path);
  judge_model(out_case->model->graph, record);
  if (record->verdict != VERDICT_PASSED) return weft_ok();
  WEFT_RETURN_IF_ERROR(read_data(out_case, folder, name, is_file));
  adopt_types(out_case);
  if (!out_case->data_set_count || !out_case->output_count) set_verdict(record, VERDICT_NO_MODEL, "");
  return weft_ok();
}

weft_status_t case_dims(const case_t* test, const data_set_t* set, weft_frontend_dim_t** out_dims, int32_t* out_count) {
  *out_count = 0;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, (size_t)test->input_count * 8 + 1, out_dims));
  for (int32_t i = 0; i < test->input_count; ++i) {
    const Onnx__ValueInfoProto* info = fed_input(test, i);
    const Onnx__TensorShapeProto* shape = info ? info->type->tensor_type->shape : NULL;
    if (!shape || shape->n_dim != (size_t)set->input[i].rank) continue;
    for (size_t d = 0; d < shape->n_dim; ++d) {
      const Onnx__TensorShapeProto__Dimension* dim = shape->dim[d];
      if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0) continue;
      bool is_named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param[0];
      weft_frontend_dim_t* out = &(*out_dims)[(*out_count)++];
      out->name = dim->dim_param;
      out->value = set->input[i].extent[d];
      if (!is_named) WEFT_RETURN_IF_ERROR(weft_arena_printf(test->arena, &out->name, "%s.%zu", info->name, d));
    }
  }
  return weft_ok();
}

// The same in all data sets, and of the shape that parameters have.
static bool is_parameter(const case_t* test, int32_t input, bool with_first) {
  const weft_host_tensor_t* tensor = &test->data_set[0].input[input];
  if (input == 0 && !with_first) return false;
  if (tensor->rank > 1 || (input == 0 && tensor->rank == 1 && weft_dtype_is_float(tensor->dtype))) return false;
  for (int32_t s = 1; s < test->data_set_count; ++s) {
    const weft_host_tensor_t* other = &test->data_set[s].input[input];
    if (other->rank != tensor->rank || other->size != tensor->size || memcmp(other->data, tensor->data, tensor->size))
      return false;
  }
  return true;
}

weft_status_t case_bind(case_t* test, bool with_first, bool* out_bound) {
  int32_t kept = 0, already = test->bound_count, inputs = test->input_count;
  weft_host_tensor_t* bound = NULL;
  const char** name = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, (size_t)(already + inputs) + 1, &bound));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(test->arena, (size_t)inputs + 1, &name));
  if (already) memcpy(bound, test->bound, (size_t)already * sizeof *bound);
  for (int32_t i = 0; i < inputs; ++i) {
    const Onnx__ValueInfoProto* info = fed_input(test, i);
    name[i] = info && is_parameter(test, i, with_first) ? info->name : NULL;
  }
  test->bound = bound;
  for (int32_t i = 0; i < inputs; ++i) {
    if (name[i]) {
      bound[test->bound_count] = test->data_set[0].input[i];
      bound[test->bound_count++].name = name[i];
      continue;
    }
    for (int32_t s = 0; s < test->data_set_count; ++s) test->data_set[s].input[kept] = test->data_set[s].input[i];
    ++kept;
  }
  test->input_count = kept;
  *out_bound = test->bound_count > already;
  return weft_ok();
}
