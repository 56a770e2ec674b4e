#include "tests/conformance/wafer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "check/check.h"
#include "cli/tensor_io.h"
#include "ir/tensor/eval.h"
#include "passes/passes.h"
#include "placer/place.h"
#include "router/route.h"
#include "runtime-sim/sim.h"

typedef struct wafer_t {
  const wafer_options_t* options;
  weft_tensor_context_t* context;
  weft_allocator_t allocator;
  weft_arena_t arena;
  weft_control_t control;
  case_t test;
  weft_model_t model;
  record_t* record;
} wafer_t;

static weft_status_t scratch_file(wafer_t* w, const char* ending, const char** out_path) {
  return weft_arena_printf(&w->arena, out_path, "%s/weft-conformance-%d%s", w->options->scratch, (int)getpid(), ending);
}

static weft_status_t import(wafer_t* w, const data_set_t* set) {
  weft_frontend_dim_t* dims = NULL;
  int32_t count = 0;
  w->record->step = STEP_IMPORT;
  WEFT_RETURN_IF_ERROR(case_dims(&w->test, set, &dims, &count));
  WEFT_RETURN_IF_ERROR(weft_frontend_import_bound(w->context, &w->arena, w->test.path, dims, count, w->test.bound,
                                                  w->test.bound_count, &w->model));
  if (w->model.input_count != w->test.input_count || w->model.output_count != w->test.output_count) {
    return weft_error(INVALID_INPUT, "the model has %d inputs and %d outputs, the data %d and %d", w->model.input_count,
                      w->model.output_count, w->test.input_count, w->test.output_count);
  }
  return weft_ok();
}

// A model that needs its parameters at compile time gets those of the data; the first input only if the others won't
// do.
static weft_status_t import_or_bind(wafer_t* w, const data_set_t* set) {
  weft_status_t status = import(w, set);
  for (int with_first = 0; with_first < 2 && weft_status_code(status) == WEFT_STATUS_UNSUPPORTED; ++with_first) {
    bool is_bound = false;
    weft_status_t bound = case_bind(&w->test, with_first, &is_bound);
    if (bound) return weft_status_join(status, bound);
    if (!is_bound) continue;
    w->record->verdict = VERDICT_PASSED_BOUND;
    weft_status_free(status);
    status = import(w, set);
  }
  return status;
}

static weft_status_t lower(wafer_t* w, weft_fabric_t* fabric) {
  w->record->step = STEP_LOWER;
  const char** inputs = NULL;
  const char** outputs = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&w->arena, (size_t)w->model.input_count + 1, &inputs));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&w->arena, (size_t)w->model.output_count + 1, &outputs));
  weft_dtype_e* dtypes = NULL;
  WEFT_RETURN_IF_ERROR(
      WEFT_ARENA_NEW(&w->arena, (size_t)w->model.input_count + (size_t)w->model.output_count + 1, &dtypes));
  for (int32_t i = 0; i < w->model.input_count; ++i) {
    inputs[i] = w->model.input[i].name;
    dtypes[i] = w->model.input[i].dtype;
  }
  for (int32_t i = 0; i < w->model.output_count; ++i) {
    outputs[i] = w->model.output[i].name;
    dtypes[w->model.input_count + i] = w->model.output[i].dtype;
  }
  weft_passes_names_t names = {
      .input = inputs, .output = outputs, .input_dtype = dtypes, .output_dtype = dtypes + w->model.input_count};
  WEFT_RETURN_IF_ERROR(weft_passes_lower_to_fabric(w->context, w->model.module, &names, fabric));
  fabric->model_name = "case";
  fabric->model_digest = w->model.digest;
  w->record->kernels = fabric->kernel_count;
  w->record->is_constant = fabric->kernel_count == 0 || w->model.input_count == 0;
  return weft_fabric_verify(fabric);
}

static weft_status_t compile_for(wafer_t* w, const weft_machine_t* machine, const weft_defects_t* defects,
                                 weft_fabric_t* fabric, const char* path) {
  WEFT_RETURN_IF_ERROR(lower(w, fabric));
  w->record->step = STEP_PLACE;
  weft_place_options_t placing = {
      .engine = {.seed = 1, .effort = w->options->effort, .seeds = 1, .control = &w->control}};
  weft_place_report_t placed;
  WEFT_RETURN_IF_ERROR(weft_cost_enumerate(fabric, machine));
  WEFT_RETURN_IF_ERROR(weft_place(fabric, machine, defects, &placing, &placed));
  w->record->step = STEP_CHECK_PLACED;
  WEFT_RETURN_IF_ERROR(weft_check_fabric(fabric, machine, defects));
  w->record->step = STEP_ROUTE;
  weft_router_report_t routed;
  WEFT_RETURN_IF_ERROR(weft_route(fabric, machine, defects, &w->control, &routed));
  w->record->step = STEP_CHECK_ROUTED;
  WEFT_RETURN_IF_ERROR(weft_check_fabric(fabric, machine, defects));
  w->record->step = STEP_EMIT;
  weft_image_t image;
  WEFT_RETURN_IF_ERROR(weft_backend_emit(fabric, machine, defects, &w->arena, &w->control, &image));
  WEFT_RETURN_IF_ERROR(weft_image_write(w->allocator, &image, path));
  return weft_ok();
}

static weft_status_t compile_on(wafer_t* w, int32_t side, const char* path) {
  char spec[32];
  snprintf(spec, sizeof spec, "mesh:%dx%d", side, side);
  w->record->step = STEP_PLACE;
  weft_machine_t machine;
  weft_defects_t defects;
  WEFT_RETURN_IF_ERROR(weft_machine_load(w->allocator, spec, &machine));
  WEFT_RETURN_IF_ERROR(weft_defects_load(w->allocator, w->options->defects, &machine, &defects));
  weft_fabric_t fabric;
  weft_fabric_initialize(w->allocator, &fabric);
  weft_status_t status = compile_for(w, &machine, &defects, &fabric, path);
  weft_fabric_deinitialize(&fabric);
  weft_defects_deinitialize(&defects);
  return status;
}

// On the smallest mesh of the list that will do.
static weft_status_t compile(wafer_t* w, const char* path) {
  w->record->step = STEP_PASSES;
  WEFT_RETURN_IF_ERROR(weft_tensor_run_pipeline(w->context, w->model.module, weft_passes_default_pipeline(), NULL));
  weft_status_t status = weft_ok();
  for (int32_t i = 0; i < w->options->mesh_count; ++i) {
    weft_status_free(status);
    w->record->mesh = w->options->mesh[i];
    status = compile_on(w, w->options->mesh[i], path);
    weft_status_code_e code = weft_status_code(status);
    if (code != WEFT_STATUS_DOES_NOT_FIT && code != WEFT_STATUS_UNROUTABLE) break;
  }
  return status;
}

static weft_tensor_spec_t spec_of(const weft_image_t* image, size_t io) {
  const weft_image_io_t* entry = &image->io[io];
  weft_tensor_spec_t spec = {
      .name = weft_image_string(image, entry->name), .dtype = (weft_dtype_e)entry->dtype, .rank = (int32_t)entry->rank};
  memcpy(spec.extent, entry->extent, sizeof spec.extent);
  return spec;
}

static weft_status_t same_type(const weft_tensor_spec_t* spec, const weft_host_tensor_t* tensor) {
  bool is_same = spec->dtype == tensor->dtype && spec->rank == tensor->rank;
  for (int32_t i = 0; i < spec->rank && is_same; ++i) is_same = spec->extent[i] == tensor->extent[i];
  if (is_same) return weft_ok();
  return weft_error(MISMATCH, "%s is %s of rank %d and %lld elements, the data %s of rank %d and %zu", spec->name,
                    weft_dtype_name(spec->dtype), spec->rank, (long long)weft_tensor_spec_elements(spec),
                    weft_dtype_name(tensor->dtype), tensor->rank, tensor->size / weft_dtype_size(tensor->dtype));
}

// ONNX's own backend tests allow rtol 1e-3 and atol 1e-7. Types with fewer bits than that allow for are given some
// units in the last place (2^-10, 2^-7, 2^-3, 2^-2): their intermediate roundings are nowhere specified.
static void tolerance(weft_dtype_e dtype, double* out_rtol, double* out_atol) {
  static const struct {
    weft_dtype_e dtype;
    double rtol, atol;
  } narrow[] = {{WEFT_DTYPE_F16, 4e-3, 1e-5},
                {WEFT_DTYPE_BF16, 3e-2, 1e-4},
                {WEFT_DTYPE_F8E4M3FN, 0.125, 1e-3},
                {WEFT_DTYPE_F8E5M2, 0.25, 1e-3}};
  *out_rtol = weft_dtype_is_float(dtype) ? 1e-3 : 0;
  *out_atol = weft_dtype_is_float(dtype) ? 1e-7 : 0;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i) {
    if (narrow[i].dtype != dtype) continue;
    *out_rtol = narrow[i].rtol;
    *out_atol = narrow[i].atol;
  }
}

static weft_status_t judge(const char* name, const weft_host_tensor_t* wanted, const void* got) {
  double rtol, atol;
  tolerance(wanted->dtype, &rtol, &atol);
  weft_difference_t difference;
  size_t elements = wanted->size / weft_dtype_size(wanted->dtype);
  weft_tensor_io_compare(wanted->dtype, got, wanted->data, (int64_t)elements, rtol, atol, &difference);
  // Compared as doubles, which wide integers do not fit.
  bool is_wide = wanted->dtype == WEFT_DTYPE_I64 || wanted->dtype == WEFT_DTYPE_U64;
  if (!difference.wrong && is_wide && memcmp(got, wanted->data, wanted->size))
    return weft_error(MISMATCH, "%s differs beyond 2^53", name);
  return weft_tensor_io_verdict(name, &difference, "the data", rtol, atol);
}

// All data sets pass through the wafer as one stream of inputs, as often as asked for.
static weft_status_t feed(wafer_t* w, const weft_image_t* image, weft_sim_t* sim, const data_set_t* sets,
                          int32_t count) {
  int32_t input = 0, output = 0;
  void* buffer = NULL;
  size_t passes = (size_t)w->options->repeat;
  for (size_t io = 0; io < image->io_count; ++io) {
    weft_tensor_spec_t spec = spec_of(image, io);
    bool is_output = image->io[io].is_output;
    const weft_host_tensor_t* first = is_output ? &sets->output[output++] : &sets->input[input++];
    w->record->step = is_output ? STEP_COMPARE : STEP_DATA;
    WEFT_RETURN_IF_ERROR(same_type(&spec, first));
    if (is_output) continue;
    w->record->step = STEP_RUN;
    size_t steps = passes * (size_t)count;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(&w->arena, first->size, steps, &buffer));
    for (size_t s = 0; s < steps && first->size; ++s)
      memcpy((uint8_t*)buffer + s * first->size, sets[s % (size_t)count].input[input - 1].data, first->size);
    WEFT_RETURN_IF_ERROR(weft_sim_set_input(sim, (uint32_t)io, buffer, first->size * steps));
  }
  return weft_ok();
}

static weft_status_t compare(wafer_t* w, const weft_image_t* image, weft_sim_t* sim, const data_set_t* sets,
                             int32_t count) {
  int32_t output = 0, steps = w->options->repeat * count;
  void* buffer = NULL;
  for (size_t io = 0; io < image->io_count; ++io) {
    if (!image->io[io].is_output) continue;
    size_t size = sets->output[output].size;
    w->record->step = STEP_RUN;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(&w->arena, size, (size_t)steps, &buffer));
    WEFT_RETURN_IF_ERROR(weft_sim_get_output(sim, (uint32_t)io, buffer, size * (size_t)steps));
    w->record->step = STEP_COMPARE;
    for (int32_t s = 0; s < steps; ++s) {
      const weft_host_tensor_t* wanted = &sets[s % count].output[output];
      weft_status_t status = judge(spec_of(image, io).name, wanted, (uint8_t*)buffer + (size_t)s * size);
      if (steps > 1) status = weft_status_annotate(status, "in step %d of %d", s, steps);
      WEFT_RETURN_IF_ERROR(status);
    }
    ++output;
  }
  return weft_ok();
}

static weft_status_t simulate(wafer_t* w, const weft_image_t* image, weft_sim_t* sim, const data_set_t* sets,
                              int32_t count) {
  WEFT_RETURN_IF_ERROR(feed(w, image, sim, sets, count));
  w->record->step = STEP_RUN;
  WEFT_RETURN_IF_ERROR(weft_sim_run(sim, (int64_t)w->options->repeat * count, &w->control));
  weft_sim_report_t report;
  weft_sim_report(sim, &report);
  w->record->cycles += report.cycles;
  w->record->steps += count;
  return compare(w, image, sim, sets, count);
}

static weft_status_t run_image(wafer_t* w, const char* path, const data_set_t* sets, int32_t count) {
  weft_image_t image;
  weft_sim_t* sim = NULL;
  w->record->step = STEP_LOAD;
  WEFT_RETURN_IF_ERROR(weft_image_map(w->allocator, path, &image));
  w->record->step = STEP_CHECK_IMAGE;
  weft_status_t status = weft_check_image(w->allocator, &image);
  if (!status) w->record->step = STEP_LOAD;
  if (!status) status = weft_sim_create(w->allocator, &image, &sim);
  if (!status) status = simulate(w, &image, sim, sets, count);
  weft_sim_destroy(sim);
  weft_image_unmap(&image);
  return status;
}

// Whether the tensor IR itself, run on the host, gives what the data says: then the fault is behind the importer.
static weft_status_t run_reference(wafer_t* w, const data_set_t* set) {
  weft_eval_t* eval = NULL;
  weft_host_tensor_t* outputs = NULL;
  WEFT_RETURN_IF_ERROR(import(w, set));
  w->record->step = STEP_REFERENCE;
  int32_t count = w->model.output_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&w->arena, (size_t)count + 1, &outputs));
  for (int32_t i = 0; i < count; ++i) {
    outputs[i] = set->output[i];
    outputs[i].name = w->model.output[i].name;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(&w->arena, outputs[i].size + 1, 1, &outputs[i].data));
  }
  WEFT_RETURN_IF_ERROR(weft_eval_create(w->context, w->model.module, w->allocator, &eval));
  weft_status_t status = weft_eval_run(eval, set->input, w->test.input_count, outputs, count);
  for (int32_t i = 0; i < count && !status; ++i) status = judge(outputs[i].name, &set->output[i], outputs[i].data);
  weft_eval_destroy(eval);
  return status;
}

static bool same_shapes(const case_t* test, const data_set_t* a, const data_set_t* b) {
  bool is_same = true;
  for (int32_t i = 0; i < test->input_count; ++i) {
    const weft_host_tensor_t *x = &a->input[i], *y = &b->input[i];
    is_same &= x->rank == y->rank && !memcmp(x->extent, y->extent, sizeof x->extent);
  }
  for (int32_t i = 0; i < test->output_count; ++i) is_same &= a->output[i].size == b->output[i].size;
  return is_same;
}

static weft_status_t run_sets(wafer_t* w, const data_set_t* sets, int32_t count) {
  const char* path = NULL;
  WEFT_RETURN_IF_ERROR(scratch_file(w, ".wafer", &path));
  WEFT_RETURN_IF_ERROR(import_or_bind(w, sets));
  weft_status_t status = compile(w, path);
  if (!status) status = run_image(w, path, sets, count);
  unlink(path);
  if (!status || w->record->step != STEP_COMPARE || weft_status_code(status) != WEFT_STATUS_MISMATCH) return status;
  weft_status_t reference = run_reference(w, sets);
  if (weft_status_code(reference) == WEFT_STATUS_MISMATCH) w->record->verdict = VERDICT_MISMATCH_REFERENCE;
  status = weft_status_annotate(status, "the reference %s%s", reference ? "fails, too: " : "agrees with the data",
                                reference ? weft_status_message(reference) : "");
  weft_status_free(reference);
  w->record->step = STEP_COMPARE;
  return status;
}

static weft_status_t run_case(wafer_t* w, const char* folder, const char* name) {
  record_t* record = w->record;
  record->step = STEP_DATA;
  WEFT_RETURN_IF_ERROR(case_read(&w->arena, folder, name, &w->test, record));
  if (record->verdict != VERDICT_PASSED) return weft_ok();
  for (int32_t first = 0, count = 0; first < w->test.data_set_count; first += count) {
    const data_set_t* sets = &w->test.data_set[first];
    for (count = 1; first + count < w->test.data_set_count; ++count)
      if (!same_shapes(&w->test, sets, &sets[count])) break;
    WEFT_RETURN_IF_ERROR(run_sets(w, sets, count));
  }
  return weft_ok();
}

// "node 'x': Resize (opset 13): why": the operator and why, of the first such line.
static void describe_form(const char* message, record_t* record) {
  const char* line = strstr(message, "node '");
  const char* name = line ? strstr(line, "': ") : NULL;
  if (name) snprintf(record->subject, sizeof record->subject, "%.*s", (int)strcspn(name + 3, " :("), name + 3);
}

static void take_failure(record_t* record, weft_status_t status) {
  weft_status_code_e code = weft_status_code(status);
  const char* message = weft_status_message(status);
  bool is_decided = record->verdict == VERDICT_MISMATCH_REFERENCE;
  if (!is_decided) record->verdict = step_verdict[record->step];
  if (code == WEFT_STATUS_UNSUPPORTED && (record->step == STEP_DATA || strstr(message, "lements of type")))
    record->verdict = VERDICT_UNSUPPORTED_TYPE;
  else if (code == WEFT_STATUS_UNSUPPORTED && record->step == STEP_IMPORT)
    record->verdict = VERDICT_UNSUPPORTED_FORM;
  else if (code == WEFT_STATUS_DOES_NOT_FIT)
    record->verdict = VERDICT_FIT;
  else if (code == WEFT_STATUS_UNROUTABLE)
    record->verdict = VERDICT_ROUTING;
  else if (code == WEFT_STATUS_TIME_LIMIT)
    record->verdict = VERDICT_TIME_LIMIT;
  else if (code == WEFT_STATUS_DEADLOCK)
    record->verdict = VERDICT_DEADLOCK;
  if (record->verdict == VERDICT_UNSUPPORTED_FORM) describe_form(message, record);
  snprintf(record->detail, sizeof record->detail, "%s", message);
  for (char* at = record->detail; *at; ++at)
    if (*at == '\n' || *at == '\t') *at = ' ';
  weft_status_free(status);
}

void wafer_run_case(weft_tensor_context_t* context, const wafer_options_t* options, const char* folder,
                    const char* name, record_t* record) {
  wafer_t w = {.options = options,
               .context = context,
               .allocator = weft_allocator_system(),
               .control = {.threads = 1},
               .record = record};
  weft_arena_initialize(w.allocator, &w.arena);
  weft_status_t status = run_case(&w, folder, name);
  if (status) take_failure(record, status);
  weft_arena_deinitialize(&w.arena);
}

void wafer_clean(const wafer_options_t* options, int process) {
  char path[4096];
  snprintf(path, sizeof path, "%s/weft-conformance-%d.wafer", options->scratch, process);
  unlink(path);
}
