// weft eval: the reference, a model compiled for this computer by MLIR's JIT.
#include "ir/tensor/eval.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/model.h"
#include "cli/tensor_io.h"

const weft_command_t weft_command_eval = {
    .name = "eval",
    .arguments = "MODEL.onnx --input NAME=SOURCE [--output NAME=FILE] [--expect NAME=FILE]",
    .summary = "runs a model on this computer: the reference",
    .details = "The tensor IR is lowered by MLIR's own passes and JIT-compiled; it shares no code with the mesh.",
    .positional_min = 1,
    .positional_max = 1,
    .options = (const weft_option_t[]){
        {"input", "NAME=SOURCE", "an input of the network (see weft run); repeatable"},
        {"output", "NAME=FILE", "writes an output to FILE.npy or FILE.pb; repeatable"},
        {"expect", "NAME=SOURCE", "compares an output (exit code 4 when it differs); repeatable"},
        {"rtol", "R", "relative tolerance (default 1e-3)"},
        {"atol", "A", "absolute tolerance (default 1e-4)"},
        WEFT_OPTIONS_MODEL,
        WEFT_OPTIONS_CONTROL,
        {NULL, NULL, NULL}}};

static weft_tensor_spec_t spec_of(const weft_frontend_io_t* io) {
  weft_tensor_spec_t spec = {.name = io->name, .dtype = io->dtype, .rank = io->rank};
  memcpy(spec.extent, io->extent, sizeof spec.extent);
  return spec;
}

static weft_status_t find(const weft_frontend_io_t* ios, int32_t count, const char* kind, const char* name,
                          int32_t* out_index) {
  for (*out_index = 0; *out_index < count; ++*out_index) {
    if (!strcmp(ios[*out_index].name, name)) return weft_ok();
  }
  return weft_error(INVALID_ARGUMENT, "the model has no %s '%s'; its first is '%s'", kind, name,
                    count ? ios[0].name : "none");
}

static weft_status_t evaluate(weft_cli_t* cli, weft_tensor_context_t* context, const weft_model_t* model) {
  weft_arena_t* arena = cli->arena;
  const weft_options_t* options = &cli->options;
  double rtol = 0, atol = 0;
  WEFT_RETURN_IF_ERROR(weft_options_real(options, "rtol", 1e-3, &rtol));
  WEFT_RETURN_IF_ERROR(weft_options_real(options, "atol", 1e-4, &atol));
  weft_host_tensor_t* inputs = NULL;
  weft_host_tensor_t* outputs = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)model->input_count + 1, &inputs));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)model->output_count + 1, &outputs));
  const char* name = NULL;
  const char* rest = NULL;
  int32_t index = 0;
  int64_t steps = 0;
  for (int32_t i = 0; weft_options_nth(options, "input", i); ++i) {
    WEFT_RETURN_IF_ERROR(weft_options_split(arena, "input", weft_options_nth(options, "input", i), &name, &rest));
    WEFT_RETURN_IF_ERROR(find(model->input, model->input_count, "input", name, &index));
    weft_tensor_spec_t spec = spec_of(&model->input[index]);
    WEFT_RETURN_IF_ERROR(weft_tensor_io_read(arena, rest, &spec, &steps, &inputs[index]));
  }
  if (!steps) steps = 1;
  for (int32_t i = 0; i < model->input_count; ++i) {
    weft_tensor_spec_t spec = spec_of(&model->input[i]);
    if (!inputs[i].data)
      return weft_error(INVALID_ARGUMENT, "input '%s' is missing: give --input %s=FILE.npy", spec.name, spec.name);
    inputs[i].rank = spec.rank;
    memcpy(inputs[i].extent, spec.extent, sizeof spec.extent);
    inputs[i].size = (size_t)weft_tensor_spec_elements(&spec) * weft_dtype_size(spec.dtype);
  }
  uint8_t** results = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)model->output_count + 1, &results));
  for (int32_t i = 0; i < model->output_count; ++i) {
    weft_tensor_spec_t spec = spec_of(&model->output[i]);
    outputs[i] = (weft_host_tensor_t){.name = spec.name, .dtype = spec.dtype, .rank = spec.rank};
    memcpy(outputs[i].extent, spec.extent, sizeof spec.extent);
    outputs[i].size = (size_t)weft_tensor_spec_elements(&spec) * weft_dtype_size(spec.dtype);
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, outputs[i].size, (size_t)steps, (void**)&results[i]));
  }
  weft_eval_t* eval = NULL;
  WEFT_RETURN_IF_ERROR(weft_eval_create(context, model->module, cli->allocator, &eval));
  weft_status_t status = weft_ok();
  for (int64_t step = 0; step < steps && !status; ++step) {
    for (int32_t i = 0; i < model->output_count; ++i) outputs[i].data = results[i] + (size_t)step * outputs[i].size;
    status = weft_eval_run(eval, inputs, model->input_count, outputs, model->output_count);
    for (int32_t i = 0; i < model->input_count; ++i) inputs[i].data = (uint8_t*)inputs[i].data + inputs[i].size;
  }
  weft_eval_destroy(eval);
  WEFT_RETURN_IF_ERROR(status);
  for (int32_t i = 0; weft_options_nth(options, "output", i); ++i) {
    WEFT_RETURN_IF_ERROR(weft_options_split(arena, "output", weft_options_nth(options, "output", i), &name, &rest));
    WEFT_RETURN_IF_ERROR(find(model->output, model->output_count, "output", name, &index));
    weft_tensor_spec_t spec = spec_of(&model->output[index]);
    WEFT_RETURN_IF_ERROR(weft_tensor_io_write(arena, rest, &spec, steps, results[index]));
  }
  for (int32_t i = 0; weft_options_nth(options, "expect", i); ++i) {
    WEFT_RETURN_IF_ERROR(weft_options_split(arena, "expect", weft_options_nth(options, "expect", i), &name, &rest));
    WEFT_RETURN_IF_ERROR(find(model->output, model->output_count, "output", name, &index));
    weft_tensor_spec_t spec = spec_of(&model->output[index]);
    weft_host_tensor_t wanted;
    WEFT_RETURN_IF_ERROR(weft_tensor_io_read(arena, rest, &spec, &steps, &wanted));
    weft_difference_t d;
    weft_tensor_io_compare(spec.dtype, results[index], wanted.data, weft_tensor_spec_elements(&spec) * steps, rtol,
                           atol, &d);
    WEFT_RETURN_IF_ERROR(weft_tensor_io_verdict(spec.name, &d, rest, rtol, atol));
    weft_cli_say(cli, "%s matches %s: largest difference %.3g", spec.name, rest, d.largest_absolute);
  }
  return weft_ok();
}

weft_status_t weft_cli_eval(weft_cli_t* cli) {
  weft_tensor_context_t* context = NULL;
  weft_model_t model = {0};
  WEFT_RETURN_IF_ERROR(weft_cli_context(cli, &context));
  weft_status_t status = weft_cli_import(cli, cli->options.positional[0], context, &model);
  if (!status) status = evaluate(cli, context, &model);
  if (!mlirModuleIsNull(model.module)) mlirModuleDestroy(model.module);
  weft_tensor_context_destroy(context);
  return status;
}
