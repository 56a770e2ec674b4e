// weft compile: model -> wafer image, or to any stage between, or on from one.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "base/file.h"
#include "check/check.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/stage.h"
#include "passes/passes.h"
#include "placer/place.h"
#include "router/route.h"

const weft_command_t weft_command_compile = {
    .name = "compile",
    .arguments = "MODEL.onnx|STAGE -o OUT",
    .summary = "compiles an ONNX model for a wafer",
    .details =
        "Stages: tensor (.mlir), kernels, placed, routed (fabric text), image. --stop-after writes that stage to OUT;\n"
        "a stage file in place of the model goes on from there.",
    .positional_min = 1,
    .positional_max = 1,
    .options = (const weft_option_t[]){{"o|output", "FILE", "the image, or the stage of --stop-after"},
                                       WEFT_OPTIONS_MACHINE,
                                       WEFT_OPTIONS_MODEL,
                                       {"seed", "S", "of the annealer (default 1)"},
                                       {"seeds", "N", "runs the annealer with N seeds and keeps the best (default 1)"},
                                       {"effort", "R", "annealing moves, relative (default 1)"},
                                       {"passes", "PIPELINE", "the tensor IR pass pipeline in place of the default"},
                                       {"stop-after", "STAGE", "tensor, kernels, placed or routed"},
                                       {"dump-dir", "DIR", "writes the IR after each pass and stage there"},
                                       {"report", "FILE.json", "what each stage took and made"},
                                       WEFT_OPTIONS_CONTROL,
                                       {NULL, NULL, NULL}}};

// X(name) in the order of the pipeline.
#define STAGES(X) X(tensor) X(kernels) X(placed) X(routed) X(image)
typedef enum compile_stage_e {
#define X(name) STAGE_##name,
  STAGES(X)
#undef X
      STAGE_COUNT
} compile_stage_e;
static const char* const stage_names[] = {
#define X(name) #name,
    STAGES(X)
#undef X
};

typedef struct compile_t {
  weft_cli_t* cli;
  const char* input;
  const char* output;
  const char* dump_dir;
  compile_stage_e last;
  weft_machine_t machine;
  weft_defects_t defects;
  weft_tensor_context_t* context;
  weft_model_t model;
  weft_fabric_t fabric;
  bool from_stage; // the input is fabric text
  weft_place_options_t placing;
  weft_place_report_t placed;
  weft_router_report_t routed;
  json_t* stages;
  double mark;
} compile_t;

// Ends a stage's clock: a line for the user and an entry of the report.
static void stage_done(compile_t* c, const char* name, const char* what) {
  double now = weft_control_now(), seconds = now - c->mark;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  c->mark = now;
  weft_cli_say(c->cli, "%-8s %7.2f s  %s", name, seconds, what);
  json_array_append_new(c->stages, json_pack("{s:s, s:f, s:I}", "stage", name, "seconds", seconds, "peak_bytes",
                                             (json_int_t)usage.ru_maxrss * 1024));
}

static weft_status_t dump_fabric(compile_t* c, const char* name) {
  if (!c->dump_dir) return weft_ok();
  const char* path = NULL;
  WEFT_RETURN_IF_ERROR(weft_arena_printf(c->cli->arena, &path, "%s/%s.fabric", c->dump_dir, name));
  return weft_fabric_write(&c->fabric, c->cli->allocator, path);
}

static weft_status_t make_tensor(compile_t* c) {
  weft_cli_t* cli = c->cli;
  WEFT_RETURN_IF_ERROR(weft_cli_context(cli, &c->context));
  WEFT_RETURN_IF_ERROR(weft_cli_import(cli, c->input, c->context, &c->model));
  stage_done(c, "import", c->input);
  const char* pipeline = weft_options_get(&cli->options, "passes", weft_passes_default_pipeline());
  WEFT_RETURN_IF_ERROR(weft_tensor_run_pipeline(c->context, c->model.module, pipeline, c->dump_dir));
  stage_done(c, "passes", "");
  return weft_ok();
}

// The file's name without folder and ending: what the user calls the model, whatever its exporter wrote inside.
static weft_status_t model_name(compile_t* c) {
  const char* base = strrchr(c->input, '/');
  base = base ? base + 1 : c->input;
  const char* dot = strrchr(base, '.');
  int length = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  return weft_arena_printf(&c->fabric.arena, &c->fabric.model_name, "%.*s", length, base);
}

static weft_status_t make_kernels(compile_t* c) {
  weft_arena_t* arena = c->cli->arena;
  const char** inputs = NULL;
  const char** outputs = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)c->model.input_count + 1, &inputs));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)c->model.output_count + 1, &outputs));
  weft_dtype_e* dtypes = NULL;
  WEFT_RETURN_IF_ERROR(
      WEFT_ARENA_NEW(arena, (size_t)c->model.input_count + (size_t)c->model.output_count + 1, &dtypes));
  for (int32_t i = 0; i < c->model.input_count; ++i) {
    inputs[i] = c->model.input[i].name;
    dtypes[i] = c->model.input[i].dtype;
  }
  for (int32_t i = 0; i < c->model.output_count; ++i) {
    outputs[i] = c->model.output[i].name;
    dtypes[c->model.input_count + i] = c->model.output[i].dtype;
  }
  weft_passes_names_t names = {
      .input = inputs, .output = outputs, .input_dtype = dtypes, .output_dtype = dtypes + c->model.input_count};
  WEFT_RETURN_IF_ERROR(weft_passes_lower_to_fabric(c->context, c->model.module, &names, &c->fabric));
  WEFT_RETURN_IF_ERROR(model_name(c));
  c->fabric.model_digest = c->model.digest;
  WEFT_RETURN_IF_ERROR(weft_fabric_verify(&c->fabric));
  char what[64];
  snprintf(what, sizeof what, "%d kernels, %d tensors", c->fabric.kernel_count, c->fabric.tensor_count);
  stage_done(c, "kernels", what);
  return dump_fabric(c, "kernels");
}

static weft_status_t place(compile_t* c) {
  WEFT_RETURN_IF_ERROR(weft_cost_enumerate(&c->fabric, &c->machine));
  WEFT_RETURN_IF_ERROR(weft_place(&c->fabric, &c->machine, &c->defects, &c->placing, &c->placed));
  WEFT_RETURN_IF_ERROR(weft_check_fabric(&c->fabric, &c->machine, &c->defects));
  char what[128];
  snprintf(what, sizeof what, "%lld of %lld live tiles, slowest kernel %.0f cycles, %d streams",
           (long long)c->placed.tiles_used, (long long)c->placed.tiles_live, c->placed.time, c->fabric.stream_count);
  stage_done(c, "place", what);
  return dump_fabric(c, "placed");
}

static weft_status_t route(compile_t* c) {
  WEFT_RETURN_IF_ERROR(weft_route(&c->fabric, &c->machine, &c->defects, &c->cli->control, &c->routed));
  WEFT_RETURN_IF_ERROR(weft_check_fabric(&c->fabric, &c->machine, &c->defects));
  char what[160];
  snprintf(what, sizeof what,
           "%lld hops, longest %lld, at most %d of %d colours, busiest link %lld wavelets, %d rounds",
           (long long)c->routed.hops, (long long)c->routed.longest_hops, c->routed.colours_max, c->machine.colours,
           (long long)c->routed.link_wavelets_max, c->routed.iterations);
  stage_done(c, "route", what);
  return dump_fabric(c, "routed");
}

static weft_status_t emit(compile_t* c) {
  weft_image_t image;
  WEFT_RETURN_IF_ERROR(
      weft_backend_emit(&c->fabric, &c->machine, &c->defects, c->cli->arena, &c->cli->control, &image));
  WEFT_RETURN_IF_ERROR(weft_check_image(c->cli->allocator, &image));
  WEFT_RETURN_IF_ERROR(weft_image_write(c->cli->allocator, &image, c->output));
  struct stat file = {0};
  stat(c->output, &file);
  char what[128];
  snprintf(what, sizeof what, "%zu programs for %zu tiles, %.2f MB", image.programs_count, image.tiles_count,
           (double)file.st_size / 1e6);
  stage_done(c, "emit", what);
  return weft_ok();
}

static weft_status_t write_tensor(compile_t* c) {
  weft_text_t text;
  weft_text_initialize(c->cli->allocator, &text);
  weft_status_t status = weft_tensor_print(c->model.module, &text);
  if (!status) status = weft_cli_emit(c->cli, c->output, &text);
  weft_text_deinitialize(&text);
  return status;
}

static weft_status_t write_report(compile_t* c, const char* path) {
  json_t* root = json_object();
  json_object_set_new(root, "model", json_string(c->fabric.model_name ? c->fabric.model_name : c->input));
  json_object_set_new(
      root, "machine",
      json_pack("{s:s, s:i, s:i}", "name", c->machine.name, "width", c->machine.width, "height", c->machine.height));
  json_object_set_new(root, "dead_tiles", json_integer(c->defects.dead_tile_count));
  json_object_set_new(root, "seed", json_integer((json_int_t)c->placing.engine.seed));
  json_object_set(root, "stages", c->stages);
  json_t* kernels = json_array();
  for (int32_t i = 0; i < c->fabric.kernel_count; ++i) {
    const weft_kernel_t* kernel = &c->fabric.kernel[i];
    json_t* entry = json_pack("{s:s, s:s}", "name", kernel->name, "nodes", kernel->nodes ? kernel->nodes : "");
    if (c->fabric.stage >= WEFT_STAGE_PLACED) {
      const weft_alternative_t* a = &kernel->alternative[kernel->chosen];
      // What bounds it: arithmetic, or getting operands in and results out of its busiest tile.
      const char* bound = a->stream_cycles > a->cycles ? "link" : "compute";
      json_object_update_new(entry, json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:s, s:[i,i,i,i]}", "grid_height", a->gy,
                                              "grid_width", a->gx, "compute_cycles", (json_int_t)a->cycles,
                                              "chain_cycles", (json_int_t)a->chain_cycles, "stream_cycles",
                                              (json_int_t)a->stream_cycles, "bytes_per_tile", (json_int_t)a->bytes,
                                              "bound_by", bound, "region", kernel->region.x, kernel->region.y,
                                              kernel->region.width, kernel->region.height));
    }
    json_array_append_new(kernels, entry);
  }
  json_object_set_new(root, "kernels", kernels);
  if (c->fabric.stage >= WEFT_STAGE_PLACED) {
    json_object_set_new(root, "placement",
                        json_pack("{s:f, s:f, s:f, s:I, s:I}", "cost", c->placed.cost, "slowest_kernel_cycles",
                                  c->placed.time, "wire", c->placed.wire, "tiles_used",
                                  (json_int_t)c->placed.tiles_used, "tiles_live", (json_int_t)c->placed.tiles_live));
  }
  if (c->fabric.stage >= WEFT_STAGE_ROUTED) {
    json_object_set_new(root, "routing",
                        json_pack("{s:i, s:I, s:I, s:i, s:I, s:f}", "iterations", c->routed.iterations, "hops",
                                  (json_int_t)c->routed.hops, "longest_hops", (json_int_t)c->routed.longest_hops,
                                  "colours_max", c->routed.colours_max, "link_wavelets_max",
                                  (json_int_t)c->routed.link_wavelets_max, "stretch", c->routed.stretch));
  }
  char* text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  json_decref(root);
  if (!text) return weft_error(OUT_OF_MEMORY, "no memory for the report");
  weft_status_t status = weft_file_write(c->cli->allocator, path, text, strlen(text));
  free(text);
  return status;
}

static weft_status_t open_input(compile_t* c) {
  WEFT_RETURN_IF_ERROR(weft_cli_is_fabric(c->input, &c->from_stage));
  if (!c->from_stage) {
    weft_fabric_initialize(c->cli->allocator, &c->fabric);
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(weft_fabric_read(c->cli->allocator, c->input, &c->fabric));
  if (c->fabric.stage >= WEFT_STAGE_PLACED) {
    WEFT_RETURN_IF_ERROR(weft_fabric_match(&c->fabric, &c->machine, &c->defects));
    WEFT_RETURN_IF_ERROR(weft_check_fabric(&c->fabric, &c->machine, &c->defects));
  }
  stage_done(c, "read", c->input);
  return weft_ok();
}

static weft_status_t compile(compile_t* c) {
  WEFT_RETURN_IF_ERROR(open_input(c));
  if (!c->from_stage) {
    WEFT_RETURN_IF_ERROR(make_tensor(c));
    if (c->last == STAGE_tensor) return write_tensor(c);
    WEFT_RETURN_IF_ERROR(make_kernels(c));
  }
  bool is_placed = c->fabric.stage >= WEFT_STAGE_PLACED;
  if (c->last > STAGE_kernels && !is_placed) WEFT_RETURN_IF_ERROR(place(c));
  if (c->last > STAGE_placed && c->fabric.stage < WEFT_STAGE_ROUTED) {
    weft_status_t status = route(c);
    // A placement of our own is given up for one that leaves routes more room.
    if (weft_status_code(status) == WEFT_STATUS_UNROUTABLE && !is_placed && c->defects.dead_tile_count) {
      weft_cli_say(c->cli, "route    finds no way; placing again, off ways one tile wide");
      weft_status_free(status);
      c->placing.leave_passages = true;
      WEFT_RETURN_IF_ERROR(place(c));
      status = route(c);
    }
    WEFT_RETURN_IF_ERROR(status);
  }
  if (c->last == STAGE_image) return emit(c);
  return weft_fabric_write(&c->fabric, c->cli->allocator, c->output);
}

weft_status_t weft_cli_compile(weft_cli_t* cli) {
  const weft_options_t* options = &cli->options;
  compile_t c = {.cli = cli, .input = options->positional[0], .mark = weft_control_now(), .last = STAGE_image};
  c.output = weft_options_get(options, "output", NULL);
  c.dump_dir = weft_options_get(options, "dump-dir", NULL);
  if (!c.output) return weft_error(INVALID_ARGUMENT, "where to? give -o OUT.wafer");
  const char* stop = weft_options_get(options, "stop-after", "image");
  for (c.last = 0; c.last < STAGE_COUNT && strcmp(stop, stage_names[c.last]); ++c.last) {
  }
  if (c.last == STAGE_COUNT) {
    return weft_error(INVALID_ARGUMENT, "--stop-after takes tensor, kernels, placed, routed or image, got '%s'", stop);
  }
  if (c.dump_dir && mkdir(c.dump_dir, 0777) && errno != EEXIST) {
    return weft_error(IO, "cannot make the folder %s: %s", c.dump_dir, strerror(errno));
  }
  int64_t seed = 1, seeds = 1;
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "seed", 0, INT64_MAX, 1, &seed));
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "seeds", 1, 1000, 1, &seeds));
  c.placing.engine = (weft_placer_options_t){.seed = (uint64_t)seed, .seeds = (int32_t)seeds, .control = &cli->control};
  WEFT_RETURN_IF_ERROR(weft_options_real(options, "effort", 1, &c.placing.engine.effort));
  WEFT_RETURN_IF_ERROR(
      weft_machine_load(cli->allocator, weft_options_get(options, "machine", "mesh:32x32"), &c.machine));
  WEFT_RETURN_IF_ERROR(
      weft_defects_load(cli->allocator, weft_options_get(options, "defects", NULL), &c.machine, &c.defects));
  c.stages = json_array();
  weft_status_t status = compile(&c);
  const char* report = weft_options_get(options, "report", NULL);
  if (!status && report) status = write_report(&c, report);
  json_decref(c.stages);
  weft_fabric_deinitialize(&c.fabric);
  if (c.context) {
    if (!mlirModuleIsNull(c.model.module)) mlirModuleDestroy(c.model.module);
    weft_tensor_context_destroy(c.context);
  }
  weft_defects_deinitialize(&c.defects);
  return status;
}
