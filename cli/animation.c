#include "cli/animation.h"

#include <string.h>

enum { MOST_FRAMES = 96 }; // every second one goes when they are full
static const double loop_seconds = 12;

weft_status_t weft_cli_animation_start(weft_allocator_t allocator, int32_t blocks,
                                       weft_cli_animation_t* out_animation) {
  weft_cli_animation_t* a = out_animation;
  *a = (weft_cli_animation_t){.blocks = blocks, .stride = 1};
  weft_arena_initialize(allocator, &a->arena);
  // One more for the placement as it ended.
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&a->arena, (size_t)(MOST_FRAMES + 1) * (size_t)blocks + 1, &a->box));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&a->arena, MOST_FRAMES + 1, &a->cost));
  return WEFT_ARENA_NEW(&a->arena, MOST_FRAMES + 1, &a->temperature);
}

void weft_cli_animation_end(weft_cli_animation_t* animation) {
  if (animation->stride) weft_arena_deinitialize(&animation->arena);
}

static void halve(weft_cli_animation_t* a) {
  size_t row = (size_t)a->blocks;
  for (int32_t i = 0; 2 * i < a->count; ++i) {
    memmove(a->box + (size_t)i * row, a->box + (size_t)(2 * i) * row, sizeof *a->box * row);
    a->cost[i] = a->cost[2 * i];
    a->temperature[i] = a->temperature[2 * i];
  }
  a->count = (a->count + 1) / 2;
  a->stride *= 2;
}

void weft_cli_animation_frame(void* self, const weft_placer_spot_t* spots, double temperature, double cost) {
  weft_cli_animation_t* a = self;
  if (a->seen++ % a->stride) return;
  if (a->count == MOST_FRAMES) {
    halve(a);
    if ((a->seen - 1) % a->stride) return;
  }
  weft_viz_box_t* row = a->box + (size_t)a->count * (size_t)a->blocks;
  for (int32_t b = 0; b < a->blocks; ++b) {
    row[b] = (weft_viz_box_t){spots[b].x, spots[b].y, spots[b].width, spots[b].height};
  }
  a->cost[a->count] = cost;
  a->temperature[a->count++] = temperature;
}

weft_status_t weft_cli_animation_write(weft_cli_animation_t* animation, const weft_fabric_t* fabric,
                                       const weft_machine_t* machine, const weft_defects_t* defects, double cost,
                                       const char* path) {
  weft_cli_animation_t* a = animation;
  const char **names = NULL, *title = NULL, *subtitle = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&a->arena, (size_t)a->blocks + 1, &names));
  weft_viz_box_t* row = a->box + (size_t)a->count * (size_t)a->blocks;
  for (int32_t b = 0; b < a->blocks; ++b) {
    const weft_region_t* r = &fabric->kernel[b].region;
    row[b] = (weft_viz_box_t){r->x, r->y, r->width, r->height};
    names[b] = fabric->kernel[b].name;
  }
  a->cost[a->count] = cost;
  a->temperature[a->count] = a->count ? a->temperature[a->count - 1] : 0;
  ++a->count;
  WEFT_RETURN_IF_ERROR(
      weft_arena_printf(&a->arena, &title, "%s: placement of %d kernels", fabric->model_name, a->blocks));
  WEFT_RETURN_IF_ERROR(weft_arena_printf(&a->arena, &subtitle, "%s, %d dead tiles, seed %llu; %lld temperatures",
                                         machine->name, defects->dead_tile_count, (unsigned long long)fabric->seed,
                                         (long long)a->seen));
  weft_viz_animation_t picture = {.title = title,
                                  .subtitle = subtitle,
                                  .width = machine->width,
                                  .height = machine->height,
                                  .dead = defects->dead_tile_count ? defects->dead_tile : NULL,
                                  .region_count = a->blocks,
                                  .name = names,
                                  .frame_count = a->count,
                                  .box = a->box,
                                  .cost = a->cost,
                                  .temperature = a->temperature};
  return weft_viz_write_animation(a->arena.allocator, &picture, loop_seconds, path);
}
