#include "placer/place.h"

#include "machine/parts.h"

#include <string.h>

#include "ir/fabric/depths.h"

// Kernels that stream into each other: wavelets, summed over the operands.
static weft_status_t collect_edges(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                   weft_placer_problem_t* problem, double* out_wavelets) {
  size_t most = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (int32_t b = 0; b < fabric->kernel[k].buffer_count; ++b)
      most += (size_t)fabric->kernel[k].buffer[b].piece_count;
  }
  weft_placer_edge_t* edges = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, most + 1, &edges));
  *out_wavelets = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (int32_t b = 0; b < fabric->kernel[k].buffer_count; ++b) {
      const weft_buffer_t* buffer = &fabric->kernel[k].buffer[b];
      for (int32_t p = 0; p < buffer->piece_count; ++p) {
        const weft_tensor_t* tensor = &fabric->tensor[buffer->piece[p].tensor];
        if (tensor->kind != WEFT_TENSOR_RESULT) continue;
        double weight = (double)weft_machine_wavelets(machine, tensor->dtype, weft_shape_elements(&tensor->shape));
        edges[problem->edge_count++] = (weft_placer_edge_t){tensor->kernel, k, weight};
        *out_wavelets += weight;
      }
    }
  }
  problem->edge = edges;
  return weft_ok();
}

// A block per kernel with one shape per alternative that the mesh can hold; `alternative` maps shapes back.
static weft_status_t collect_blocks(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                    weft_placer_problem_t* problem, int32_t** alternative) {
  weft_placer_block_t* blocks = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)fabric->kernel_count + 1, &blocks));
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    weft_placer_shape_t* shapes = NULL;
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)kernel->alternative_count + 1, &shapes));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)kernel->alternative_count + 1, &alternative[k]));
    int32_t count = 0;
    for (int32_t i = 0; i < kernel->alternative_count; ++i) {
      const weft_alternative_t* a = &kernel->alternative[i];
      bool upright = a->gx <= machine->width && a->gy <= machine->height;
      bool turned = a->gy <= machine->width && a->gx <= machine->height;
      if (!upright && !turned) continue;
      alternative[k][count] = i;
      shapes[count++] = (weft_placer_shape_t){.width = a->gx,
                                              .height = a->gy,
                                              .tiles = (int64_t)a->gx * a->gy,
                                              .lines = a->gy,
                                              .line_tiles = a->gx,
                                              .time = (double)a->step_cycles};
    }
    if (!count) {
      return weft_error(DOES_NOT_FIT, "%s has no split that fits on %dx%d tiles", kernel->name, machine->width,
                        machine->height);
    }
    blocks[k] = (weft_placer_block_t){
        .name = kernel->name, .shape_count = count, .shape = shapes, .fixed_x = -1, .fixed_y = -1};
  }
  problem->block = blocks;
  problem->block_count = fabric->kernel_count;
  return weft_ok();
}

static weft_status_t take_spot(weft_fabric_t* fabric, int32_t k, const weft_placer_spot_t* spot, int32_t alternative,
                               const weft_machine_t* machine, const weft_defects_t* defects) {
  weft_kernel_t* kernel = &fabric->kernel[k];
  const weft_alternative_t* a = &kernel->alternative[alternative];
  kernel->chosen = alternative;
  kernel->region = (weft_region_t){spot->x, spot->y, spot->width, spot->height, spot->transposed};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&fabric->arena, (size_t)a->gy * (size_t)a->gx, &kernel->tile));
  if (!weft_region_map(machine, defects, &kernel->region, a->gy, a->gx, kernel->tile)) {
    return weft_error(INTERNAL, "%s: its region %dx%d at (%d,%d) lacks live tiles for %dx%d", kernel->name, spot->width,
                      spot->height, spot->x, spot->y, a->gy, a->gx);
  }
  return weft_ok();
}

// The defects as placement sees them: what the host can't reach, or only apart from the rest, is as good as dead.
// Borrows from `defects` and the arena.
static weft_status_t keep_main_part(const weft_machine_t* machine, const weft_defects_t* defects, weft_arena_t* arena,
                                    weft_defects_t* out_usable, const char** out_note) {
  weft_parts_t parts;
  *out_usable = *defects;
  *out_note = NULL;
  WEFT_RETURN_IF_ERROR(weft_parts_find(arena->allocator, machine, defects, &parts));
  int32_t chosen = weft_parts_main(&parts, machine), tiles = weft_machine_tiles(machine);
  weft_text_t text;
  weft_text_initialize(arena->allocator, &text);
  weft_status_t status = WEFT_ARENA_NEW(arena, (size_t)tiles, &out_usable->dead_tile);
  for (int32_t t = 0; t < tiles && !status; ++t) out_usable->dead_tile[t] = parts.label[t] != chosen || chosen < 0;
  if (!status && chosen < 0) {
    status =
        weft_error(DOES_NOT_FIT, "no host port can reach a live tile: all %d ports of the machine are at dead tiles",
                   weft_machine_port_count(machine));
  } else if (!status && parts.count > 1) {
    status = weft_parts_describe(&parts, &text);
    if (!status) {
      status = weft_arena_printf(arena, out_note,
                                 "dead tiles and links split the mesh into %s; the network has to lie in "
                                 "one, and the largest with a host port has %d",
                                 text.data, parts.size[chosen]);
    }
  }
  weft_text_deinitialize(&text);
  weft_parts_deinitialize(&parts);
  return status;
}

static weft_status_t place(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                           const weft_placer_options_t* options, weft_arena_t* arena, weft_place_report_t* out_report) {
  weft_defects_t usable;
  const char* note = NULL;
  WEFT_RETURN_IF_ERROR(keep_main_part(machine, defects, arena, &usable, &note));
  weft_placer_problem_t problem = {
      .width = machine->width, .height = machine->height, .blocked = usable.dead_tile, .weight_time = 1};
  int32_t** alternative = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)fabric->kernel_count + 1, &alternative));
  WEFT_RETURN_IF_ERROR(collect_blocks(fabric, machine, arena, &problem, alternative));
  double wavelets = 0;
  WEFT_RETURN_IF_ERROR(collect_edges(fabric, machine, arena, &problem, &wavelets));
  // A hop is a cycle: the mean way of a wavelet weighs as much as the same number of cycles of the slowest kernel.
  problem.weight_wire = wavelets > 0 ? machine->hop_cycles * (double)fabric->kernel_count / wavelets : 0;
  weft_placer_result_t result;
  weft_status_t status = weft_placer_solve(&problem, options, arena, &result);
  if (status) return note ? weft_status_annotate(status, "%s", note) : status;
  *out_report = (weft_place_report_t){.cost = result.cost,
                                      .time = result.time,
                                      .wire = result.wire,
                                      .worst_seed_cost = result.worst_seed_cost,
                                      .tiles_live = weft_machine_tiles(machine) - defects->dead_tile_count};
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_placer_spot_t* spot = &result.spot[k];
    WEFT_RETURN_IF_ERROR(take_spot(fabric, k, spot, alternative[k][spot->shape], machine, &usable));
    out_report->tiles_used += problem.block[k].shape[spot->shape].tiles;
  }
  return weft_ok();
}

weft_status_t weft_place(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_placer_options_t* options, weft_place_report_t* out_report) {
  weft_arena_t arena;
  weft_arena_initialize(fabric->arena.allocator, &arena);
  weft_status_t status = place(fabric, machine, defects, options, &arena, out_report);
  weft_arena_deinitialize(&arena);
  WEFT_RETURN_IF_ERROR(status);
  WEFT_RETURN_IF_ERROR(weft_machine_digest(machine, &fabric->machine_digest));
  fabric->defects_digest = weft_defects_digest(defects);
  fabric->seed = options->seed;
  fabric->stage = WEFT_STAGE_PLACED;
  WEFT_RETURN_IF_ERROR(weft_depths_choose(fabric, machine));
  return weft_streams_build(fabric, machine);
}
