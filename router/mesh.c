#include "router/mesh.h"

#include <string.h>

weft_status_t weft_router_mesh_initialize(weft_allocator_t allocator, const weft_machine_t* machine,
                                          const weft_defects_t* defects, weft_router_mesh_t* out_mesh) {
  *out_mesh = (weft_router_mesh_t){.allocator = allocator,
                                   .width = machine->width,
                                   .height = machine->height,
                                   .tiles = weft_machine_tiles(machine),
                                   .colours = machine->colours,
                                   .diagonal = machine->diagonal_links,
                                   .crowded = 1};
  weft_router_mesh_t* mesh = out_mesh;
  size_t tiles = (size_t)mesh->tiles, links = tiles * WEFT_DIRECTION_COUNT;
  for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d)
    mesh->step[d] = weft_direction_dy[d] * mesh->width + weft_direction_dx[d];
  weft_status_t status = weft_allocator_calloc(allocator, tiles, sizeof(*mesh->tile), (void**)&mesh->tile);
  if (!status) status = weft_allocator_calloc(allocator, links, sizeof(*mesh->load), (void**)&mesh->load);
  if (status) {
    weft_router_mesh_deinitialize(mesh);
    return status;
  }
  for (int32_t tile = 0; tile < mesh->tiles; ++tile)
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (d != WEFT_DIRECTION_RAMP && weft_defects_link_live(machine, defects, tile, d))
        mesh->tile[tile].links |= (uint16_t)(1u << d);
  return weft_ok();
}

void weft_router_mesh_deinitialize(weft_router_mesh_t* mesh) {
  weft_allocator_free(mesh->allocator, mesh->tile);
  weft_allocator_free(mesh->allocator, mesh->load);
  memset(mesh, 0, sizeof(*mesh));
}

void weft_router_mesh_use(weft_router_mesh_t* mesh, int32_t tile, int32_t entries) {
  uint32_t* usage = &mesh->tile[tile].usage;
  mesh->overused -= *usage > (uint32_t)mesh->colours;
  *usage = (uint32_t)((int64_t)*usage + entries);
  mesh->overused += *usage > (uint32_t)mesh->colours;
}

void weft_router_mesh_load(weft_router_mesh_t* mesh, int32_t tile, weft_direction_e direction, int64_t wavelets) {
  int64_t* load = &mesh->load[(size_t)tile * WEFT_DIRECTION_COUNT + direction];
  *load += wavelets;
  mesh->tile[tile].level[direction] = (uint16_t)weft_router_mesh_level(mesh, *load);
}

void weft_router_mesh_crowd(weft_router_mesh_t* mesh, int64_t crowded) {
  int64_t largest = INT64_MAX / WEFT_ROUTER_CROWDED / 8; // so that levels can be worked out
  if (crowded > largest) crowded = largest;
  if (mesh->crowded == crowded) return;
  mesh->crowded = crowded;
  for (int32_t tile = 0; tile < mesh->tiles; ++tile)
    for (uint32_t links = mesh->tile[tile].links; links; links &= links - 1) {
      int d = __builtin_ctz(links);
      int64_t load = mesh->load[(size_t)tile * WEFT_DIRECTION_COUNT + (size_t)d];
      mesh->tile[tile].level[d] = load ? (uint16_t)weft_router_mesh_level(mesh, load) : 0;
    }
}

void weft_router_mesh_age(weft_router_mesh_t* mesh) {
  for (int32_t t = 0; t < mesh->tiles; ++t) {
    int64_t over = (int64_t)mesh->tile[t].usage - mesh->colours;
    if (over <= 0) continue;
    int64_t history = mesh->tile[t].history + over * WEFT_ROUTER_HOP;
    mesh->tile[t].history = (uint32_t)(history < WEFT_ROUTER_PENALTY_MAX ? history : WEFT_ROUTER_PENALTY_MAX);
  }
}

void weft_router_mesh_maxima(const weft_router_mesh_t* mesh, int32_t* out_colours, int64_t* out_load) {
  uint32_t colours = 0;
  int64_t load = 0;
  for (int32_t t = 0; t < mesh->tiles; ++t)
    if (mesh->tile[t].usage > colours) colours = mesh->tile[t].usage;
  for (size_t i = 0, n = (size_t)mesh->tiles * WEFT_DIRECTION_COUNT; i < n; ++i)
    if (mesh->load[i] > load) load = mesh->load[i];
  *out_colours = (int32_t)colours;
  *out_load = load;
}
