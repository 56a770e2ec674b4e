#include "placer/place.h"

#include "ir/fabric/depths.h"
#include "placer/network.h"
#include "placer/usable.h"

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
  weft_network_t network;
  WEFT_RETURN_IF_ERROR(weft_network_create(fabric, machine, arena, &network));
  weft_placer_problem_t* problem = &network.problem;
  weft_placer_result_t result;
  weft_usable_t usable;
  WEFT_RETURN_IF_ERROR(weft_usable_initialize(machine, defects, arena, &usable));
  problem->blocked = usable.map.dead_tile;
  weft_status_t status = solve(machine, defects, problem, options, arena, &usable, &result);
  weft_usable_deinitialize(&usable);
  if (status) return status;
  *out_report = (weft_place_report_t){.cost = result.cost,
                                      .time = result.parts.time,
                                      .wire = result.parts.wire,
                                      .overload = result.parts.overload,
                                      .worst_seed_cost = result.worst_seed_cost,
                                      .best_seed = result.best_seed,
                                      .tiles_live = weft_machine_tiles(machine) - defects->dead_tile_count};
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_placer_spot_t* spot = &result.spot[k];
    WEFT_RETURN_IF_ERROR(take_spot(fabric, k, spot, network.alternative[k][spot->shape], machine, &usable.map));
    out_report->tiles_used += problem->block[k].shape[spot->shape].tiles;
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
