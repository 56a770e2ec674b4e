// weft heatmap: a picture of any stage.
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/stage.h"
#include "ir/fabric/load.h"
#include "ir/fabric/split.h"
#include "placer/forecast.h"
#include "runtime-sim/sim.h"
#include "viz/viz.h"

const weft_command_t weft_command_heatmap = {
    .name = "heatmap",
    .arguments = "IMAGE|STAGE --metric NAME [-o FILE.png|svg|pdf|csv]",
    .summary = "draws a map of the wafer",
    .details =
        "metrics: place, memory, cycles, utilisation, links, congestion, colours, energy, defects. Without -o it goes\n"
        "to the terminal. congestion is the placer's estimate of links, from a stage that is placed.\n"
        "Of an image, cycles, utilisation, links and energy come from simulating one input; of a stage they are the\n"
        "compiler's estimates, and energy is not known.",
    .positional_min = 1,
    .positional_max = 1,
    .options = (const weft_option_t[]){{"metric", "NAME", "what to draw (default place)"},
                                       {"o|output", "FILE", "its ending says the format"},
                                       {"columns", "N", "width in the terminal (default: the terminal's, or 100)"},
                                       {"colour", "WHEN", "always, never or auto (default)"},
                                       WEFT_OPTIONS_MACHINE,
                                       WEFT_OPTIONS_CONTROL,
                                       {NULL, NULL, NULL}}};

// What a map is drawn from, whether image or stage.
typedef struct source_t {
  weft_cli_t* cli;
  weft_cli_stage_t stage;
  weft_viz_map_t map;
  double* value;
  double* link;
  int32_t tiles;
} source_t;

static weft_status_t image_regions(source_t* s) {
  const weft_image_t* image = &s->stage.image;
  weft_viz_region_t* regions = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->cli->arena, image->kernels_count + 1, &regions));
  for (size_t i = 0; i < image->kernels_count; ++i) {
    const weft_image_kernel_t* k = &image->kernels[i];
    regions[i] = (weft_viz_region_t){.name = weft_image_string(image, k->name),
                                     .x = k->x,
                                     .y = k->y,
                                     .width = k->width,
                                     .height = k->height,
                                     .tiles = (const int32_t*)image->nodes + k->tiles,
                                     .tile_count = k->gy * k->gx};
  }
  s->map.region = regions;
  s->map.region_count = (int32_t)image->kernels_count;
  return weft_ok();
}

static weft_status_t fabric_regions(source_t* s) {
  const weft_fabric_t* fabric = &s->stage.fabric;
  if (fabric->stage < WEFT_STAGE_PLACED) {
    return weft_error(INVALID_ARGUMENT, "the stage has no places yet; compile further: --stop-after placed");
  }
  weft_viz_region_t* regions = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->cli->arena, (size_t)fabric->kernel_count + 1, &regions));
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const weft_kernel_t* k = &fabric->kernel[i];
    const weft_alternative_t* a = &k->alternative[k->chosen];
    regions[i] = (weft_viz_region_t){.name = k->name,
                                     .x = k->region.x,
                                     .y = k->region.y,
                                     .width = k->region.width,
                                     .height = k->region.height,
                                     .tiles = k->tile,
                                     .tile_count = a->gy * a->gx};
  }
  s->map.region = regions;
  s->map.region_count = fabric->kernel_count;
  return weft_ok();
}

static weft_status_t add_link_loads(source_t* s) {
  int64_t* wavelets = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->cli->arena, (size_t)s->tiles * WEFT_DIRECTION_COUNT, &wavelets));
  WEFT_RETURN_IF_ERROR(weft_load_links(&s->stage.fabric, &s->stage.machine, s->cli->allocator, wavelets));
  for (int32_t t = 0; t < s->tiles; ++t) {
    for (int32_t d = WEFT_DIRECTION_N; d <= WEFT_DIRECTION_W; ++d) {
      s->link[t * 4 + d] = (double)wavelets[(size_t)t * WEFT_DIRECTION_COUNT + (size_t)d];
      s->value[t] += s->link[t * 4 + d];
    }
  }
  return weft_ok();
}

static weft_status_t estimate_congestion(source_t* s) {
  weft_place_forecast_t forecast;
  WEFT_RETURN_IF_ERROR(weft_place_forecast(&s->stage.fabric, &s->stage.machine, &s->stage.defects, WEFT_FORECAST_BIN,
                                           s->cli->arena, &forecast));
  const weft_congestion_t* map = &forecast.estimated;
  for (int32_t t = 0; t < s->tiles; ++t) {
    int32_t x = t % s->map.width, y = t / s->map.width;
    s->value[t] = map->load[y / map->bin * map->columns + x / map->bin];
  }
  return weft_ok();
}

static weft_status_t fabric_values(source_t* s) {
  const weft_fabric_t* fabric = &s->stage.fabric;
  if (s->map.metric == WEFT_VIZ_CONGESTION) return estimate_congestion(s);
  if (s->map.metric == WEFT_VIZ_ENERGY) {
    return weft_error(INVALID_ARGUMENT, "a stage has no energy yet; compile to an image");
  }
  if ((s->map.metric == WEFT_VIZ_LINKS || s->map.metric == WEFT_VIZ_COLOURS) && fabric->stage < WEFT_STAGE_ROUTED) {
    return weft_error(INVALID_ARGUMENT, "the stage has no routes yet; compile further: --stop-after routed");
  }
  double slowest = 1;
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const weft_alternative_t* a = &fabric->kernel[i].alternative[fabric->kernel[i].chosen];
    slowest = fmax(slowest, (double)(a->cycles + a->stream_cycles));
  }
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const weft_kernel_t* k = &fabric->kernel[i];
    const weft_alternative_t* a = &k->alternative[k->chosen];
    double value = 0;
    if (s->map.metric == WEFT_VIZ_MEMORY) value = (double)a->bytes;
    if (s->map.metric == WEFT_VIZ_CYCLES) value = (double)a->cycles;
    if (s->map.metric == WEFT_VIZ_UTILISATION) value = 100 * (double)a->cycles / slowest;
    if (value > 0) {
      for (int32_t t = 0; t < a->gy * a->gx; ++t) s->value[k->tile[t]] = value;
    }
  }
  if (s->map.metric == WEFT_VIZ_LINKS) return add_link_loads(s);
  for (int32_t i = 0; i < fabric->stream_count && s->map.metric == WEFT_VIZ_COLOURS; ++i) {
    const weft_stream_t* stream = &fabric->stream[i];
    for (int32_t e = 0; e < stream->entry_count; ++e) s->value[stream->entry[e].tile] += 1;
  }
  return weft_ok();
}

// Simulates one input of zeros (timing does not depend on values) and takes what the cores and links did.
static weft_status_t simulate(source_t* s, weft_sim_t* sim) {
  const weft_image_t* image = &s->stage.image;
  for (size_t i = 0; i < image->io_count; ++i) {
    const weft_image_io_t* io = &image->io[i];
    if (io->is_output) continue;
    size_t size = weft_dtype_size((weft_dtype_e)io->dtype);
    for (uint32_t d = 0; d < io->rank; ++d) size *= (size_t)io->extent[d];
    void* zeros = NULL;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(s->cli->arena, size, 1, &zeros));
    WEFT_RETURN_IF_ERROR(weft_sim_set_input(sim, (uint32_t)i, zeros, size));
  }
  WEFT_RETURN_IF_ERROR(weft_sim_run(sim, 1, &s->cli->control));
  if (s->map.metric == WEFT_VIZ_LINKS) {
    WEFT_RETURN_IF_ERROR(weft_sim_tile_metric(sim, WEFT_SIM_LINK_WAVELETS, s->link));
    for (int32_t t = 0; t < s->tiles; ++t) {
      s->value[t] = s->link[t * 4] + s->link[t * 4 + 1] + s->link[t * 4 + 2] + s->link[t * 4 + 3];
    }
    return weft_ok();
  }
  weft_sim_metric_e metric = s->map.metric == WEFT_VIZ_ENERGY ? WEFT_SIM_ENERGY : WEFT_SIM_BUSY_CYCLES;
  WEFT_RETURN_IF_ERROR(weft_sim_tile_metric(sim, metric, s->value));
  weft_sim_report_t report;
  weft_sim_report(sim, &report);
  for (int32_t t = 0; t < s->tiles; ++t) {
    if (s->map.metric == WEFT_VIZ_ENERGY) s->value[t] /= 1e3; // nJ
    if (s->map.metric == WEFT_VIZ_UTILISATION) s->value[t] *= 100.0 / (double)report.cycles;
  }
  return weft_ok();
}

static weft_status_t image_values(source_t* s) {
  const weft_image_t* image = &s->stage.image;
  if (s->map.metric == WEFT_VIZ_CONGESTION)
    return weft_error(INVALID_ARGUMENT,
                      "an image has its real load, --metric links; congestion is estimated for a stage");
  if (s->map.metric == WEFT_VIZ_MEMORY) {
    for (size_t i = 0; i < image->tiles_count; ++i) {
      if (image->tiles[i].tile != WEFT_HOST_TILE) s->value[image->tiles[i].tile] = image->tiles[i].memory_bytes;
    }
    return weft_ok();
  }
  if (s->map.metric == WEFT_VIZ_COLOURS) {
    for (size_t i = 0; i < image->routes_count; ++i) s->value[image->routes[i].tile] += 1;
    return weft_ok();
  }
  weft_sim_t* sim = NULL;
  WEFT_RETURN_IF_ERROR(weft_sim_create(s->cli->allocator, image, &sim));
  weft_status_t status = simulate(s, sim);
  weft_sim_destroy(sim);
  return status;
}

static weft_status_t gather(source_t* s) {
  const weft_cli_stage_t* stage = &s->stage;
  s->tiles = weft_machine_tiles(&stage->machine);
  s->map.width = stage->machine.width;
  s->map.height = stage->machine.height;
  s->map.dead = stage->defects.dead_tile;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->cli->arena, (size_t)s->tiles, &s->value));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(s->cli->arena, (size_t)s->tiles * 4, &s->link));
  s->map.value = s->value;
  if (s->map.metric == WEFT_VIZ_LINKS) s->map.link = s->link;
  WEFT_RETURN_IF_ERROR(stage->is_image ? image_regions(s) : fabric_regions(s));
  if (s->map.metric == WEFT_VIZ_PLACE || s->map.metric == WEFT_VIZ_DEFECTS) {
    for (int32_t t = 0; t < s->tiles; ++t)
      s->value[t] = s->map.metric == WEFT_VIZ_DEFECTS ? stage->defects.dead_tile[t] : NAN;
    if (s->map.metric == WEFT_VIZ_DEFECTS) return weft_ok();
    for (int32_t r = 0; r < s->map.region_count; ++r) {
      for (int32_t t = 0; t < s->map.region[r].tile_count; ++t) s->value[s->map.region[r].tiles[t]] = r;
    }
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(stage->is_image ? image_values(s) : fabric_values(s));
  // Nothing there is drawn as nothing, not as a zero.
  for (int32_t t = 0; t < s->tiles; ++t) {
    if (s->value[t] == 0) s->value[t] = NAN;
  }
  return weft_ok();
}

static weft_status_t show(source_t* s) {
  const weft_options_t* options = &s->cli->options;
  const char* path = weft_options_get(options, "output", NULL);
  if (path) return weft_viz_write(s->cli->allocator, &s->map, path);
  struct winsize window = {0};
  int64_t columns = 100;
  if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) && window.ws_col) columns = window.ws_col;
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "columns", 20, 1000, columns, &columns));
  const char* when = weft_options_get(options, "colour", "auto");
  if (strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never")) {
    return weft_error(INVALID_ARGUMENT, "--colour takes always, never or auto, got '%s'", when);
  }
  bool colour = !strcmp(when, "always") || (!strcmp(when, "auto") && isatty(STDOUT_FILENO));
  weft_text_t text;
  weft_text_initialize(s->cli->allocator, &text);
  weft_status_t status = weft_viz_terminal(&s->map, (int32_t)columns, colour, &text);
  if (!status) status = weft_cli_emit(s->cli, NULL, &text);
  weft_text_deinitialize(&text);
  return status;
}

weft_status_t weft_cli_heatmap(weft_cli_t* cli) {
  static const char* const titles[] = {
#define X(name, text, title, unit) title,
      WEFT_VIZ_METRICS(X)
#undef X
  };
  static const char* const units[] = {
#define X(name, text, title, unit) unit,
      WEFT_VIZ_METRICS(X)
#undef X
  };
  source_t s = {.cli = cli};
  const char* metric = weft_options_get(&cli->options, "metric", "place");
  if (!weft_viz_metric_parse(metric, &s.map.metric)) {
    return weft_error(
        INVALID_ARGUMENT,
        "no metric '%s'; there are place, memory, cycles, utilisation, links, congestion, colours, energy, defects",
        metric);
  }
  WEFT_RETURN_IF_ERROR(weft_cli_stage_open(cli, cli->options.positional[0], &s.stage));
  const char* model =
      s.stage.is_image ? weft_image_string(&s.stage.image, s.stage.image.header.model_name) : s.stage.fabric.model_name;
  uint64_t seed = s.stage.is_image ? s.stage.image.header.seed : s.stage.fabric.seed;
  s.map.title = titles[s.map.metric];
  s.map.unit = units[s.map.metric];
  weft_status_t status =
      weft_arena_printf(cli->arena, &s.map.subtitle, "%s on %s (%d x %d tiles, %d dead), seed %llu", model ? model : "",
                        s.stage.machine.name, s.stage.machine.width, s.stage.machine.height,
                        s.stage.defects.dead_tile_count, (unsigned long long)seed);
  if (!status) status = gather(&s);
  if (!status) status = show(&s);
  weft_cli_stage_close(&s.stage);
  return status;
}
