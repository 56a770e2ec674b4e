// Runs a model on the inputs of its test_data_set_0 through the reference and compares with the outputs there.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "ir/tensor/eval.h"
#include "onnx.pb-c.h"

typedef enum case_result_e {
  CASE_MATCH,
  CASE_MISMATCH,
  CASE_UNSUPPORTED,
  CASE_IMPORT_ERROR,
  CASE_EVAL_ERROR
} case_result_e;
// What becomes constant before importing: nothing, parameters among the inputs, or all inputs.
typedef enum case_bind_e { BIND_NOTHING, BIND_PARAMETERS, BIND_ALL } case_bind_e;
typedef struct case_report_t {
  case_result_e result;
  char message[2000];
} case_report_t;

enum { MAX_CASE_TENSORS = 64, MAX_CASE_DIMS = 64 };
typedef struct case_t {
  weft_arena_t arena;
  weft_tensor_context_t* context;
  weft_host_tensor_t input[MAX_CASE_TENSORS], expected[MAX_CASE_TENSORS];
  int32_t input_count, expected_count, dim_count;
  weft_frontend_dim_t dim[MAX_CASE_DIMS];
  weft_host_tensor_t bound[MAX_CASE_TENSORS];
  int32_t bound_count;
  weft_model_t model;
} case_t;

static inline weft_status_t read_case_tensors(case_t* test, const char* folder, const char* kind,
                                              weft_host_tensor_t* tensors, int32_t* out_count) {
  for (*out_count = 0; *out_count < MAX_CASE_TENSORS; ++*out_count) {
    const char* path;
    WEFT_RETURN_IF_ERROR(
        weft_arena_printf(&test->arena, &path, "%s/test_data_set_0/%s_%d.pb", folder, kind, *out_count));
    if (access(path, R_OK) != 0) return weft_ok();
    WEFT_RETURN_IF_ERROR(weft_frontend_read_tensor(&test->arena, path, &tensors[*out_count]));
  }
  return weft_ok();
}

static inline bool is_initializer(const Onnx__GraphProto* graph, const char* name) {
  for (size_t i = 0; i < graph->n_initializer; ++i)
    if (graph->initializer[i]->name && strcmp(graph->initializer[i]->name, name) == 0) return true;
  return false;
}

static inline bool is_case_bound(const case_t* test, const char* name) {
  for (int32_t i = 0; i < test->bound_count; ++i)
    if (strcmp(test->bound[i].name, name) == 0) return true;
  return false;
}

// Parameters that a conformance model passes as graph inputs (axes, shapes, pads, scales) become constants: only lists
// and scalars; the first input stays.
static inline weft_status_t bind_case_inputs(case_t* test, case_bind_e bind, const char* path) {
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  Onnx__ModelProto* model = onnx__model_proto__unpack(NULL, mapping.size, mapping.data);
  weft_file_unmap(&mapping);
  if (!model || !model->graph) return weft_error(INVALID_INPUT, "%s: not a model", path);
  weft_status_t status = weft_ok();
  int32_t kept = 0;
  for (int32_t i = 0; i < test->input_count && (size_t)i < model->graph->n_input && !status; ++i) {
    bool is_constant = bind == BIND_ALL || (i > 0 && test->input[i].rank <= 1);
    if (!is_constant || model->graph->n_initializer) {
      test->input[kept++] = test->input[i];
      continue;
    }
    test->bound[test->bound_count] = test->input[i];
    status = weft_arena_strdup(&test->arena, model->graph->input[i]->name, &test->bound[test->bound_count++].name);
  }
  test->input_count = kept;
  onnx__model_proto__free_unpacked(model, NULL);
  return status;
}

// Named dimensions take their values from the data.
static inline weft_status_t bind_case_dims(case_t* test, const char* path) {
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  Onnx__ModelProto* model = onnx__model_proto__unpack(NULL, mapping.size, mapping.data);
  weft_file_unmap(&mapping);
  if (!model || !model->graph) return weft_error(INVALID_INPUT, "%s: not a model", path);
  weft_status_t status = weft_ok();
  int32_t at = 0;
  for (size_t i = 0; i < model->graph->n_input && at < test->input_count; ++i) {
    const Onnx__ValueInfoProto* info = model->graph->input[i];
    if (is_initializer(model->graph, info->name) || is_case_bound(test, info->name)) continue;
    const weft_host_tensor_t* tensor = &test->input[at++];
    if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) continue;
    const Onnx__TensorShapeProto* shape = info->type->tensor_type->shape;
    for (size_t d = 0; shape && d < shape->n_dim && d < (size_t)tensor->rank && !status; ++d) {
      const Onnx__TensorShapeProto__Dimension* dim = shape->dim[d];
      if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value > 0) continue;
      bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param &&
                   dim->dim_param[0];
      const char* name;
      status = named ? weft_arena_strdup(&test->arena, dim->dim_param, &name)
                     : weft_arena_printf(&test->arena, &name, "%s.%zu", info->name, d);
      if (!status && test->dim_count < MAX_CASE_DIMS)
        test->dim[test->dim_count++] = (weft_frontend_dim_t){name, tensor->extent[d]};
    }
  }
  onnx__model_proto__free_unpacked(model, NULL);
  return status;
}

static inline bool is_close(double got, double expected, double rtol, double atol) {
  if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected);
  if (got == expected) return true;
  return fabs(got - expected) <= atol + rtol * fabs(expected);
}

// Rank, extents and elements. Writes what differs to `message`.
static inline bool matches(const weft_host_tensor_t* got, const weft_host_tensor_t* expected, weft_dtype_e dtype,
                           double rtol, double atol, char message[2000]) {
  bool same_shape =
      got->rank == expected->rank && memcmp(got->extent, expected->extent, (size_t)got->rank * sizeof(int64_t)) == 0;
  if (!same_shape || dtype != expected->dtype || got->size != expected->size) {
    snprintf(message, 2000, "output '%s': %s rank %d of %zu bytes, expected %s rank %d of %zu bytes", got->name,
             weft_dtype_name(dtype), got->rank, got->size, weft_dtype_name(expected->dtype), expected->rank,
             expected->size);
    return false;
  }
  size_t width = weft_dtype_size(dtype);
  for (size_t i = 0; i < got->size / width; ++i) {
    double x = weft_dtype_load(dtype, (const char*)got->data + i * width);
    double y = weft_dtype_load(dtype, (const char*)expected->data + i * width);
    if (is_close(x, y, rtol, atol)) continue;
    snprintf(message, 2000, "output '%s', element %zu: got %g, expected %g", got->name, i, x, y);
    return false;
  }
  return true;
}

static inline weft_status_t evaluate_case(case_t* test, double rtol, double atol, case_report_t* report) {
  weft_eval_t* eval = NULL;
  weft_host_tensor_t output[MAX_CASE_TENSORS];
  if (test->model.input_count != test->input_count || test->model.output_count > MAX_CASE_TENSORS)
    return weft_error(INVALID_INPUT, "the model has %d inputs, the data %d", test->model.input_count,
                      test->input_count);
  for (int32_t i = 0; i < test->model.output_count; ++i) {
    const weft_frontend_io_t* io = &test->model.output[i];
    output[i] = (weft_host_tensor_t){.name = io->name, .dtype = io->dtype, .rank = io->rank};
    memcpy(output[i].extent, io->extent, sizeof(io->extent));
    output[i].size = weft_dtype_size(io->dtype);
    for (int32_t d = 0; d < io->rank; ++d) output[i].size *= (size_t)io->extent[d];
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(&test->arena, output[i].size + 1, 1, &output[i].data));
  }
  WEFT_RETURN_IF_ERROR(weft_eval_create(test->context, test->model.module, weft_allocator_system(), &eval));
  weft_status_t status = weft_eval_run(eval, test->input, test->input_count, output, test->model.output_count);
  weft_eval_destroy(eval);
  WEFT_RETURN_IF_ERROR(status);
  report->result = CASE_MATCH;
  for (int32_t i = 0; i < test->model.output_count && i < test->expected_count; ++i)
    if (!matches(&output[i], &test->expected[i], test->model.output[i].dtype, rtol, atol, report->message))
      report->result = CASE_MISMATCH;
  return weft_ok();
}

static inline void report_failure(case_report_t* report, case_result_e result, weft_status_t status) {
  report->result = result;
  snprintf(report->message, sizeof(report->message), "%s", weft_status_message(status));
  weft_status_free(status);
}

static inline case_report_t run_case(const char* folder, double rtol, double atol, case_bind_e bind) {
  case_t* test = calloc(1, sizeof(*test));
  case_report_t report = {CASE_IMPORT_ERROR, ""};
  const char* path;
  weft_arena_initialize(weft_allocator_system(), &test->arena);
  weft_status_t status = weft_arena_printf(&test->arena, &path, "%s/model.onnx", folder);
  if (!status) status = read_case_tensors(test, folder, "input", test->input, &test->input_count);
  if (!status) status = read_case_tensors(test, folder, "output", test->expected, &test->expected_count);
  if (!status && bind) status = bind_case_inputs(test, bind, path);
  if (!status) status = bind_case_dims(test, path);
  if (!status) status = weft_tensor_context_create(weft_allocator_system(), &test->context);
  if (!status)
    status = weft_frontend_import_bound(test->context, &test->arena, path, test->dim, test->dim_count, test->bound,
                                        test->bound_count, &test->model);
  if (status) {
    bool unsupported = weft_status_code(status) == WEFT_STATUS_UNSUPPORTED;
    report_failure(&report, unsupported ? CASE_UNSUPPORTED : CASE_IMPORT_ERROR, status);
  } else {
    status = evaluate_case(test, rtol, atol, &report);
    if (status) report_failure(&report, CASE_EVAL_ERROR, status);
  }
  if (test->model.module.ptr) mlirModuleDestroy(test->model.module);
  if (test->context) weft_tensor_context_destroy(test->context);
  weft_arena_deinitialize(&test->arena);
  free(test);
  return report;
}
