// Keeps the frames of a placement for --placement-animation: the placer calls, the picture is written afterwards.
#pragma once
#include "ir/fabric/fabric.h"
#include "placer/place.h"
#include "viz/animation.h"

typedef struct weft_cli_animation_t {
  weft_arena_t arena;
  int32_t blocks, count;
  int64_t seen, stride; // every stride-th frame is kept
  weft_viz_box_t* box;
  double *cost, *temperature;
} weft_cli_animation_t;

weft_status_t weft_cli_animation_start(weft_allocator_t allocator, int32_t blocks, weft_cli_animation_t* out_animation);
void weft_cli_animation_end(weft_cli_animation_t* animation); // harmless when never started
// A frame callback of weft_placer_options_t.
void weft_cli_animation_frame(void* self, const weft_placer_spot_t* spots, double temperature, double cost);
// Adds the placement as it ended and writes the file.
weft_status_t weft_cli_animation_write(weft_cli_animation_t* animation, const weft_fabric_t* fabric,
                                       const weft_machine_t* machine, const weft_defects_t* defects, double cost,
                                       const char* path);
