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
#include "cli/animation.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/stage.h"
#include "passes/passes.h"
#include "placer/forecast.h"
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
                                       {"constraints", "FILE", "rules on where kernels lie: docs/placement.md"},
                                       {"placement-animation", "FILE.svg", "the annealing, as a film"},
                                       {"precision", "TYPE", "f16 or bf16: products of f32 in it, sums in f32"},
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
  weft_placer_rules_t rules;
  const char* animation_path; // or NULL
  weft_cli_animation_t animation;
  weft_place_report_t placed;
  weft_router_report_t routed;
  weft_place_forecast_t forecast; // of congestion, for the report
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

static weft_status_t choose_pipeline(weft_cli_t* cli, const char** out_pipeline) {
  const char* precision = weft_options_get(&cli->options, "precision", NULL);
  weft_dtype_e dtype = WEFT_DTYPE_F32;
  *out_pipeline = weft_options_get(&cli->options, "passes", NULL);
  if (precision && *out_pipeline)
    return weft_error(INVALID_ARGUMENT, "--precision and --passes both choose the passes: give one of them");
  if (*out_pipeline) return weft_ok();
  if (!precision || weft_dtype_parse(precision, &dtype)) *out_pipeline = weft_passes_pipeline_for(dtype);
  if (*out_pipeline) return weft_ok();
  return weft_error(INVALID_ARGUMENT, "--precision takes f32, f16 or bf16, got '%s'", precision);
}

static weft_status_t make_tensor(compile_t* c) {
  weft_cli_t* cli = c->cli;
  WEFT_RETURN_IF_ERROR(weft_cli_context(cli, &c->context));
  WEFT_RETURN_IF_ERROR(weft_cli_import(cli, c->input, c->context, &c->model));
  stage_done(c, "import", c->input);
  const char* pipeline = NULL;
  WEFT_RETURN_IF_ERROR(choose_pipeline(cli, &pipeline));
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

// By how much the worst seed is worse than the best, per cent.
static double spread_of(const weft_place_report_t* placed) {
  return placed->cost > 0 ? 100 * (placed->worst_seed_cost / placed->cost - 1) : 0;
}

static weft_status_t place(compile_t* c) {
  WEFT_RETURN_IF_ERROR(weft_cost_enumerate(&c->fabric, &c->machine));
  if (c->animation_path) {
    weft_cli_animation_end(&c->animation);
    WEFT_RETURN_IF_ERROR(weft_cli_animation_start(c->cli->allocator, c->fabric.kernel_count, &c->animation));
    c->placing.engine.frame = weft_cli_animation_frame;
    c->placing.engine.frame_self = &c->animation;
  }
  WEFT_RETURN_IF_ERROR(weft_control_check(&c->cli->control, "place"));
  WEFT_RETURN_IF_ERROR(weft_place(&c->fabric, &c->machine, &c->defects, &c->placing, &c->placed));
  if (weft_cli_take_interrupt(c->cli)) {
    weft_cli_say(c->cli, "place    interrupted: goes on with the best placement so far");
  }
  if (c->animation_path) {
    WEFT_RETURN_IF_ERROR(weft_cli_animation_write(&c->animation, &c->fabric, &c->machine, &c->defects, c->placed.cost,
                                                  c->animation_path));
  }
  WEFT_RETURN_IF_ERROR(weft_check_fabric(&c->fabric, &c->machine, &c->defects));
  char what[128];
  snprintf(what, sizeof what, "%lld of %lld live tiles, slowest kernel %lld cycles, %d streams",
           (long long)c->placed.tiles_used, (long long)c->placed.tiles_live, (long long)c->placed.slowest_cycles,
           c->fabric.stream_count);
  stage_done(c, "place", what);
  if (c->placing.engine.seeds > 1) {
    weft_cli_say(c->cli, "         best of %d seeds is %llu with cost %.6g; the worst has %.6g, %.2f %% more",
                 c->placing.engine.seeds, (unsigned long long)c->placed.best_seed, c->placed.cost,
                 c->placed.worst_seed_cost, spread_of(&c->placed));
  }
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
  if (c->fabric.stage >= WEFT_STAGE_ROUTED) {
    WEFT_RETURN_IF_ERROR(
        weft_place_forecast(&c->fabric, &c->machine, &c->defects, WEFT_FORECAST_BIN, c->cli->arena, &c->forecast));
  }
  json_t* root = json_object();
  json_object_set_new(root, "model", json_string(c->fabric.model_name ? c->fabric.model_name : c->input));
  json_object_set_new(
      root, "machine",
      json_pack("{s:s, s:i, s:i}", "name", c->machine.name, "width", c->machine.width, "height", c->machine.height));
  json_object_set_new(root, "dead_tiles", json_integer(c->defects.dead_tile_count));
  json_object_set_new(root, "seed", json_integer((json_int_t)c->placing.engine.seed));
  json_object_set(root, "stages", c->stages);
  json_object_set_new(root, "nodes", weft_cli_report_nodes(&c->fabric, &c->model));
  json_object_set_new(root, "kernels", weft_cli_report_kernels(&c->fabric));
  if (c->fabric.stage >= WEFT_STAGE_PLACED) {
    json_object_set_new(root, "placement",
                        json_pack("{s:f, s:f, s:I, s:f, s:f, s:I, s:I, s:i, s:I, s:f, s:f}", "cost", c->placed.cost,
                                  "time", c->placed.time, "slowest_kernel_cycles", (json_int_t)c->placed.slowest_cycles,
                                  "wire", c->placed.wire, "overload", c->placed.overload, "tiles_used",
                                  (json_int_t)c->placed.tiles_used, "tiles_live", (json_int_t)c->placed.tiles_live,
                                  "seeds", c->placing.engine.seeds, "best_seed", (json_int_t)c->placed.best_seed,
                                  "worst_seed_cost", c->placed.worst_seed_cost, "spread_per_cent",
                                  spread_of(&c->placed)));
  }
  if (c->fabric.stage >= WEFT_STAGE_ROUTED) {
    json_object_set_new(root, "routing",
                        json_pack("{s:i, s:I, s:I, s:i, s:I, s:f, s:i, s:f}", "iterations", c->routed.iterations,
                                  "hops", (json_int_t)c->routed.hops, "longest_hops",
                                  (json_int_t)c->routed.longest_hops, "colours_max", c->routed.colours_max,
                                  "link_wavelets_max", (json_int_t)c->routed.link_wavelets_max, "stretch",
                                  c->routed.stretch, "congestion_bin_tiles", c->forecast.estimated.bin,
                                  "congestion_rank_correlation", c->forecast.correlation));
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
  if ((is_placed || c->last <= STAGE_kernels) && (c->placing.rules || c->animation_path)) {
    return weft_error(INVALID_ARGUMENT, "--%s is for placement, which %s",
                      c->placing.rules ? "constraints" : "placement-animation",
                      is_placed ? "the input has behind it" : "doesn't take place before --stop-after");
  }
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
  c.animation_path = weft_options_get(options, "placement-animation", NULL);
  const char* rules = weft_options_get(options, "constraints", NULL);
  if (rules) {
    WEFT_RETURN_IF_ERROR(weft_placer_rules_read(rules, cli->arena, &c.rules));
    c.placing.rules = &c.rules;
  }
  WEFT_RETURN_IF_ERROR(
      weft_machine_load(cli->allocator, weft_options_get(options, "machine", "mesh:32x32"), &c.machine));
  WEFT_RETURN_IF_ERROR(
      weft_defects_load(cli->allocator, weft_options_get(options, "defects", NULL), &c.machine, &c.defects));
  c.stages = json_array();
  weft_status_t status = compile(&c);
  const char* report = weft_options_get(options, "report", NULL);
  if (!status && report) status = write_report(&c, report);
  json_decref(c.stages);
  weft_cli_animation_end(&c.animation);
  weft_fabric_deinitialize(&c.fabric);
  if (c.context) {
    if (!mlirModuleIsNull(c.model.module)) mlirModuleDestroy(c.model.module);
    weft_tensor_context_destroy(c.context);
  }
  weft_defects_deinitialize(&c.defects);
  return status;
}
