// weft run: an image on the mesh simulator.
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/tensor_io.h"
#include "ir/tensor/eval.h"
#include "runtime-sim/sim.h"

const weft_command_t weft_command_run = {
    .name = "run",
    .arguments = "IMAGE --input NAME=SOURCE [--output NAME=FILE] [--expect NAME=FILE]",
    .summary = "runs an image on the mesh simulator",
    .details = "SOURCE is FILE.npy, FILE.pb, random:SEED or a literal such as 2x2xf32=1 2 3 4. A file may hold several "
               "inputs,\n"
               "one after the other along the first dimension: they pass through the wafer as a stream.\n"
               "NAME is a tensor's name, or #0, #1, .. for the first, second, .. one.",
    .positional_min = 1,
    .positional_max = 1,
    .options = (const weft_option_t[]){
        {"input", "NAME=SOURCE", "an input of the network; repeatable"},
        {"output", "NAME=FILE", "writes an output to FILE.npy or FILE.pb; repeatable"},
        {"expect", "NAME=SOURCE", "compares an output (exit code 4 when it differs); repeatable"},
        {"compare", "MODEL.onnx", "compares all outputs with the reference (see weft eval)"},
        {"rtol", "R", "relative tolerance (default 1e-3)"},
        {"atol", "A", "absolute tolerance (default 1e-4)"},
        {"steps", "N", "how many inputs (default: what the files hold)"},
        {"defects", "SPEC", "the wafer it runs on; refused unless the image was compiled for it"},
        {"report", "FILE.json", "cycles, energy and so on"},
        WEFT_OPTIONS_MODEL,
        WEFT_OPTIONS_CONTROL,
        {NULL, NULL, NULL}}};

typedef struct run_t {
  weft_cli_t* cli;
  weft_image_t image;
  weft_sim_t* sim;
  int64_t steps;
  double rtol, atol;
  const void** data; // of each io, all steps
} run_t;

static weft_tensor_spec_t spec_of(const weft_image_t* image, size_t io) {
  const weft_image_io_t* entry = &image->io[io];
  weft_tensor_spec_t spec = {
      .name = weft_image_string(image, entry->name), .dtype = (weft_dtype_e)entry->dtype, .rank = (int32_t)entry->rank};
  memcpy(spec.extent, entry->extent, sizeof spec.extent);
  return spec;
}

// The io of this name, or of this number among its kind ("#0" is the first), or an error that lists what there is.
static weft_status_t find_io(const run_t* run, bool output, const char* name, size_t* out_io) {
  weft_text_t names;
  weft_text_initialize(run->cli->allocator, &names);
  weft_status_t status = weft_ok();
  long number = name[0] == '#' ? strtol(name + 1, NULL, 10) : -1;
  for (size_t i = 0; i < run->image.io_count && !status; ++i) {
    if ((run->image.io[i].is_output != 0) != output) continue;
    if (number-- == 0) {
      *out_io = i;
      weft_text_deinitialize(&names);
      return weft_ok();
    }
    weft_tensor_spec_t spec = spec_of(&run->image, i);
    if (!strcmp(spec.name, name)) {
      *out_io = i;
      weft_text_deinitialize(&names);
      return weft_ok();
    }
    status = weft_text_printf(&names, "%s%s", names.count ? ", " : "", spec.name);
  }
  if (!status) {
    status = weft_error(INVALID_ARGUMENT, "the image has no %s '%s'; it has %s", output ? "output" : "input", name,
                        names.count ? names.data : "none");
  }
  weft_text_deinitialize(&names);
  return status;
}

static weft_status_t check_wafer(run_t* run) {
  const char* spec = weft_options_get(&run->cli->options, "defects", NULL);
  if (!spec) return weft_ok();
  weft_machine_t machine;
  WEFT_RETURN_IF_ERROR(
      weft_machine_parse(run->image.machine_xml, run->image.machine_xml_size, "the image's machine", &machine));
  weft_defects_t defects;
  WEFT_RETURN_IF_ERROR(weft_defects_load(run->cli->allocator, spec, &machine, &defects));
  weft_digest_t digest = weft_defects_digest(&defects);
  int32_t dead = defects.dead_tile_count;
  weft_defects_deinitialize(&defects);
  if (!weft_digest_compare(&digest, &run->image.header.defects)) return weft_ok();
  char theirs[65], ours[65];
  weft_digest_format(&run->image.header.defects, theirs);
  weft_digest_format(&digest, ours);
  return weft_error(
      INVALID_INPUT,
      "the image was compiled for another wafer: defect map %.16s.., this one (%s, %d dead tiles) is %.16s..; "
      "compile again with --defects %s",
      theirs, spec, dead, ours, spec);
}

static weft_status_t set_inputs(run_t* run) {
  const weft_options_t* options = &run->cli->options;
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "steps", 1, 1 << 30, 0, &run->steps));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(run->cli->arena, run->image.io_count + 1, &run->data));
  // Files first, random numbers after: those take their number from the files.
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t i = 0; weft_options_nth(options, "input", i); ++i) {
      const char* name = NULL;
      const char* source = NULL;
      WEFT_RETURN_IF_ERROR(
          weft_options_split(run->cli->arena, "input", weft_options_nth(options, "input", i), &name, &source));
      if ((strncmp(source, "random", 6) == 0) != (pass == 1)) continue;
      size_t io = 0;
      WEFT_RETURN_IF_ERROR(find_io(run, false, name, &io));
      weft_tensor_spec_t spec = spec_of(&run->image, io);
      weft_host_tensor_t tensor;
      WEFT_RETURN_IF_ERROR(weft_tensor_io_read(run->cli->arena, source, &spec, &run->steps, &tensor));
      run->data[io] = tensor.data;
      WEFT_RETURN_IF_ERROR(weft_sim_set_input(run->sim, (uint32_t)io, tensor.data, tensor.size));
    }
  }
  for (size_t i = 0; i < run->image.io_count; ++i) {
    if (run->image.io[i].is_output || run->data[i]) continue;
    weft_tensor_spec_t spec = spec_of(&run->image, i);
    return weft_error(INVALID_ARGUMENT, "input '%s' is missing: give --input %s=FILE.npy (or %s=random)", spec.name,
                      spec.name, spec.name);
  }
  if (!run->steps) run->steps = 1;
  return weft_ok();
}

static weft_status_t judge(run_t* run, const weft_tensor_spec_t* spec, const void* got, const void* wanted,
                           const char* reference) {
  weft_difference_t d;
  weft_tensor_io_compare(spec->dtype, got, wanted, weft_tensor_spec_elements(spec) * run->steps, run->rtol, run->atol,
                         &d);
  WEFT_RETURN_IF_ERROR(weft_tensor_io_verdict(spec->name, &d, reference, run->rtol, run->atol));
  weft_cli_say(run->cli, "%s matches %s: %lld elements, largest difference %.3g (rtol %g, atol %g)", spec->name,
               reference, (long long)d.elements, d.largest_absolute, run->rtol, run->atol);
  return weft_ok();
}

static weft_status_t get_outputs(run_t* run) {
  weft_arena_t* arena = run->cli->arena;
  for (size_t i = 0; i < run->image.io_count; ++i) {
    if (!run->image.io[i].is_output) continue;
    weft_tensor_spec_t spec = spec_of(&run->image, i);
    size_t size = (size_t)(weft_tensor_spec_elements(&spec) * run->steps) * weft_dtype_size(spec.dtype);
    void* data = NULL;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, size, 1, &data));
    WEFT_RETURN_IF_ERROR(weft_sim_get_output(run->sim, (uint32_t)i, data, size));
    run->data[i] = data;
  }
  const weft_options_t* options = &run->cli->options;
  for (int32_t i = 0; weft_options_nth(options, "output", i); ++i) {
    const char* name = NULL;
    const char* path = NULL;
    size_t io = 0;
    WEFT_RETURN_IF_ERROR(weft_options_split(arena, "output", weft_options_nth(options, "output", i), &name, &path));
    WEFT_RETURN_IF_ERROR(find_io(run, true, name, &io));
    weft_tensor_spec_t spec = spec_of(&run->image, io);
    WEFT_RETURN_IF_ERROR(weft_tensor_io_write(arena, path, &spec, run->steps, run->data[io]));
  }
  weft_status_t status = weft_ok();
  for (int32_t i = 0; weft_options_nth(options, "expect", i); ++i) {
    const char* name = NULL;
    const char* source = NULL;
    size_t io = 0;
    WEFT_RETURN_IF_ERROR(weft_status_join(
        status, weft_options_split(arena, "expect", weft_options_nth(options, "expect", i), &name, &source)));
    WEFT_RETURN_IF_ERROR(weft_status_join(status, find_io(run, true, name, &io)));
    weft_tensor_spec_t spec = spec_of(&run->image, io);
    weft_host_tensor_t wanted;
    int64_t steps = run->steps;
    WEFT_RETURN_IF_ERROR(weft_status_join(status, weft_tensor_io_read(arena, source, &spec, &steps, &wanted)));
    status = weft_status_join(status, judge(run, &spec, run->data[io], wanted.data, source));
  }
  return status;
}

// Runs the reference on the same inputs, step by step, and judges all outputs.
static weft_status_t compare(run_t* run, const char* path) {
  weft_cli_t* cli = run->cli;
  weft_tensor_context_t* context = NULL;
  weft_model_t model = {0};
  weft_eval_t* eval = NULL;
  WEFT_RETURN_IF_ERROR(weft_cli_context(cli, &context));
  weft_status_t status = weft_cli_import(cli, path, context, &model);
  if (!status && weft_digest_compare(&model.digest, &run->image.header.model)) {
    status = weft_error(INVALID_ARGUMENT, "%s is not the model that the image was compiled from (%s)", path,
                        weft_image_string(&run->image, run->image.header.model_name));
  }
  if (!status) status = weft_eval_create(context, model.module, cli->allocator, &eval);
  size_t count = run->image.io_count;
  weft_host_tensor_t* tensors = NULL;
  uint8_t** wanted = NULL;
  if (!status) status = WEFT_ARENA_NEW(cli->arena, count + 1, &tensors);
  if (!status) status = WEFT_ARENA_NEW(cli->arena, count + 1, &wanted);
  for (size_t i = 0; i < count && !status; ++i) {
    weft_tensor_spec_t spec = spec_of(&run->image, i);
    tensors[i] = (weft_host_tensor_t){.name = spec.name, .dtype = spec.dtype, .rank = spec.rank};
    memcpy(tensors[i].extent, spec.extent, sizeof spec.extent);
    tensors[i].size = (size_t)weft_tensor_spec_elements(&spec) * weft_dtype_size(spec.dtype);
    if (run->image.io[i].is_output)
      status = weft_arena_allocate(cli->arena, tensors[i].size, (size_t)run->steps, (void**)&wanted[i]);
  }
  for (int64_t step = 0; step < run->steps && !status; ++step) {
    for (size_t i = 0; i < count; ++i) {
      tensors[i].data =
          (run->image.io[i].is_output ? wanted[i] : (uint8_t*)run->data[i]) + (size_t)step * tensors[i].size;
    }
    status = weft_eval_run(eval, tensors, model.input_count, tensors + model.input_count, model.output_count);
  }
  for (size_t i = 0; i < count && !status; ++i) {
    weft_tensor_spec_t spec = spec_of(&run->image, i);
    if (run->image.io[i].is_output) status = judge(run, &spec, run->data[i], wanted[i], "the reference");
  }
  weft_eval_destroy(eval);
  if (!mlirModuleIsNull(model.module)) mlirModuleDestroy(model.module);
  weft_tensor_context_destroy(context);
  return status;
}

static weft_status_t report(run_t* run, double seconds) {
  weft_sim_report_t r;
  weft_sim_report(run->sim, &r);
  weft_machine_t machine;
  WEFT_RETURN_IF_ERROR(
      weft_machine_parse(run->image.machine_xml, run->image.machine_xml_size, "the image's machine", &machine));
  int64_t tiles = 0;
  for (size_t i = 0; i < run->image.tiles_count; ++i) tiles += run->image.tiles[i].tile != WEFT_HOST_TILE;
  double nj = r.energy_pj / 1e3 / (double)r.steps;
  weft_cli_say(
      run->cli,
      "%lld inputs in %lld cycles: the first after %lld (%.1f us at %.2f GHz), then one every %.0f; %.1f nJ each "
      "(estimated); %lld tiles; simulated in %.2f s",
      (long long)r.steps, (long long)r.cycles, (long long)r.first_cycles,
      (double)r.first_cycles / machine.clock_ghz / 1e3, machine.clock_ghz, r.cycles_per_step, nj, (long long)tiles,
      seconds);
  const char* path = weft_options_get(&run->cli->options, "report", NULL);
  if (!path) return weft_ok();
  weft_text_t text;
  weft_text_initialize(run->cli->allocator, &text);
  weft_status_t status = weft_text_printf(
      &text,
      "{\n  \"steps\": %lld,\n  \"cycles\": %lld,\n  \"first_cycles\": %lld,\n  \"cycles_per_step\": %.17g,\n  "
      "\"tiles\": %lld,\n"
      "  \"instructions\": %lld,\n  \"wavelets_sent\": %lld,\n  \"wavelet_hops\": %lld,\n  \"longest_route\": %lld,\n"
      "  \"energy_pj_estimated\": %.17g\n}\n",
      (long long)r.steps, (long long)r.cycles, (long long)r.first_cycles, r.cycles_per_step, (long long)tiles,
      (long long)r.instructions, (long long)r.wavelets_sent, (long long)r.wavelet_hops, (long long)r.longest_route,
      r.energy_pj);
  if (!status) status = weft_cli_emit(run->cli, path, &text);
  weft_text_deinitialize(&text);
  return status;
}

static weft_status_t execute(run_t* run) {
  WEFT_RETURN_IF_ERROR(check_wafer(run));
  WEFT_RETURN_IF_ERROR(weft_sim_create(run->cli->allocator, &run->image, &run->sim));
  WEFT_RETURN_IF_ERROR(set_inputs(run));
  double start = weft_control_now();
  WEFT_RETURN_IF_ERROR(weft_sim_run(run->sim, run->steps, &run->cli->control));
  WEFT_RETURN_IF_ERROR(report(run, weft_control_now() - start));
  WEFT_RETURN_IF_ERROR(get_outputs(run));
  const char* model = weft_options_get(&run->cli->options, "compare", NULL);
  return model ? compare(run, model) : weft_ok();
}

weft_status_t weft_cli_run(weft_cli_t* cli) {
  run_t run = {.cli = cli};
  WEFT_RETURN_IF_ERROR(weft_options_real(&cli->options, "rtol", 1e-3, &run.rtol));
  WEFT_RETURN_IF_ERROR(weft_options_real(&cli->options, "atol", 1e-4, &run.atol));
  WEFT_RETURN_IF_ERROR(weft_image_map(cli->allocator, cli->options.positional[0], &run.image));
  weft_status_t status = execute(&run);
  weft_sim_destroy(run.sim);
  weft_image_unmap(&run.image);
  return status;
}
