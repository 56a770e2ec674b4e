// A placement on its way: regions that move from frame to frame, as an SVG that a browser plays.
#pragma once
#include "base/allocator.h"

typedef struct weft_viz_box_t {
  int32_t x, y, width, height;
} weft_viz_box_t;
typedef struct weft_viz_animation_t {
  const char* title;
  const char* subtitle; // may be NULL
  int32_t width, height;
  const uint8_t* dead; // [height * width], may be NULL
  int32_t region_count;
  const char* const* name;   // [region_count]
  int32_t frame_count;       // >= 1
  const weft_viz_box_t* box; // [frame_count * region_count]
  const double* cost;        // [frame_count]
  const double* temperature; // [frame_count]
} weft_viz_animation_t;
// Plays in a loop of about `seconds`. Byte-identical for equal animations. INVALID_ARGUMENT: the path doesn't end in
// .svg.
weft_status_t weft_viz_write_animation(weft_allocator_t allocator, const weft_viz_animation_t* animation,
                                       double seconds, const char* path);
