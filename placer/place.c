#include "placer/place.h"

#include <math.h>
#include <string.h>

#include "ir/fabric/depths.h"
#include "placer/usable.h"

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

// Cycles that a kernel's streams keep the links in its region busy, estimated: they come and go along the lines of its
// grid, at both ends, and its narrower side has the fewer lines. (An 80x5 region with 2.6 M wavelets in and out had
// links with 344,064 after routing; this says 325,000.)
static double link_cycles(double wavelets, const weft_alternative_t* a) {
  enum { ENDS = 2 };
  return wavelets / (ENDS * (double)(a->gx < a->gy ? a->gx : a->gy));
}

// A block per kernel with one shape per alternative that the mesh can hold; `alternative` maps shapes back. After the
// edges.
static weft_status_t collect_blocks(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                    weft_placer_problem_t* problem, int32_t** alternative) {
  weft_placer_block_t* blocks = NULL;
  double* wavelets = NULL; // in and out of each kernel
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)fabric->kernel_count + 1, &wavelets));
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    wavelets[problem->edge[e].from] += problem->edge[e].weight;
    wavelets[problem->edge[e].to] += problem->edge[e].weight;
  }
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
                                              .time = fmax((double)a->step_cycles, link_cycles(wavelets[k], a))};
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

// What to leave out, the most first: placement takes the first that the network fits in.
typedef enum room_e { ROOM_WIDE, ROOM_CORE, ROOM_PART, ROOM_COUNT } room_e;

// Solves with what is left, and holds the placement against the user's rules.
static weft_status_t solve_room(const weft_placer_problem_t* problem, const weft_place_options_t* options,
                                weft_arena_t* arena, weft_placer_result_t* out_result) {
  if (!options->rules) return weft_placer_solve(problem, &options->engine, arena, out_result);
  weft_placer_problem_t bound = *problem;
  WEFT_RETURN_IF_ERROR(weft_placer_rules_bind(options->rules, arena, &bound));
  WEFT_RETURN_IF_ERROR(weft_placer_solve(&bound, &options->engine, arena, out_result));
  return weft_placer_rules_check(options->rules, &bound, out_result->spot);
}

static weft_status_t solve(const weft_machine_t* machine, const weft_defects_t* defects,
                           const weft_placer_problem_t* problem, const weft_place_options_t* options,
                           weft_arena_t* arena, weft_usable_t* usable, weft_placer_result_t* out_result) {
  weft_status_t status = weft_ok();
  for (room_e room = options->leave_passages ? ROOM_WIDE : ROOM_CORE; room < ROOM_COUNT; ++room) {
    bool smaller = true;
    if (room == ROOM_PART) {
      weft_usable_main_part(machine, usable);
    } else {
      WEFT_RETURN_IF_ERROR(weft_usable_core(machine, defects, usable, &smaller));
      if (room == ROOM_WIDE) WEFT_RETURN_IF_ERROR(weft_usable_wide(machine, arena, usable));
    }
    status = solve_room(problem, options, arena, out_result);
    if (weft_status_code(status) != WEFT_STATUS_DOES_NOT_FIT || room == ROOM_PART) break;
    if (room == ROOM_CORE && !smaller) break;
    weft_status_free(status);
  }
  return weft_usable_explain(status, usable, arena->allocator);
}

static weft_status_t place(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                           const weft_place_options_t* options, weft_arena_t* arena, weft_place_report_t* out_report) {
  weft_placer_problem_t problem = {.width = machine->width, .height = machine->height, .weight_time = 1};
  int32_t** alternative = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)fabric->kernel_count + 1, &alternative));
  double wavelets = 0;
  WEFT_RETURN_IF_ERROR(collect_edges(fabric, machine, arena, &problem, &wavelets));
  WEFT_RETURN_IF_ERROR(collect_blocks(fabric, machine, arena, &problem, alternative));
  // A hop is a cycle: the mean way of a wavelet weighs as much as the same number of cycles of the slowest kernel.
  problem.weight_wire = wavelets > 0 ? machine->hop_cycles * (double)fabric->kernel_count / wavelets : 0;
  weft_placer_result_t result;
  weft_usable_t usable;
  WEFT_RETURN_IF_ERROR(weft_usable_initialize(machine, defects, arena, &usable));
  problem.blocked = usable.map.dead_tile;
  weft_status_t status = solve(machine, defects, &problem, options, arena, &usable, &result);
  weft_usable_deinitialize(&usable);
  if (status) return status;
  *out_report = (weft_place_report_t){.cost = result.cost,
                                      .time = result.time,
                                      .wire = result.wire,
                                      .worst_seed_cost = result.worst_seed_cost,
                                      .best_seed = result.best_seed,
                                      .tiles_live = weft_machine_tiles(machine) - defects->dead_tile_count};
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_placer_spot_t* spot = &result.spot[k];
    WEFT_RETURN_IF_ERROR(take_spot(fabric, k, spot, alternative[k][spot->shape], machine, &usable.map));
    out_report->tiles_used += problem.block[k].shape[spot->shape].tiles;
    int64_t cycles = fabric->kernel[k].alternative[fabric->kernel[k].chosen].step_cycles;
    if (cycles > out_report->slowest_cycles) out_report->slowest_cycles = cycles;
  }
  return weft_ok();
}

weft_status_t weft_place(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_place_options_t* options, weft_place_report_t* out_report) {
  weft_arena_t arena;
  weft_arena_initialize(fabric->arena.allocator, &arena);
  weft_status_t status = place(fabric, machine, defects, options, &arena, out_report);
  weft_arena_deinitialize(&arena);
  WEFT_RETURN_IF_ERROR(status);
  WEFT_RETURN_IF_ERROR(weft_machine_digest(machine, &fabric->machine_digest));
  fabric->defects_digest = weft_defects_digest(defects);
  fabric->seed = options->engine.seed;
  fabric->stage = WEFT_STAGE_PLACED;
  WEFT_RETURN_IF_ERROR(weft_depths_choose(fabric, machine));
  return weft_streams_build(fabric, machine, 1);
}
