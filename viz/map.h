// What the forms of a map share.
#pragma once
#include "viz/viz.h"

typedef struct weft_viz_range_t {
  double lowest, highest; // of the values that are there; 0 and 0 when none is
  int64_t count;
} weft_viz_range_t;
weft_viz_range_t weft_viz_range(const weft_viz_map_t* map);
static inline bool weft_viz_is_categorical(const weft_viz_map_t* map) {
  return map->metric == WEFT_VIZ_PLACE;
}
// A step of 1, 2 or 5 times a power of ten that gives at most `most` ticks over `span` > 0.
double weft_viz_tick_step(double span, int32_t most);

// [height * width] the region of each tile, or -1. The caller frees it.
weft_status_t weft_viz_region_of_tiles(weft_allocator_t allocator, const weft_viz_map_t* map, int32_t** out_region);

weft_status_t weft_viz_write_csv(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path);
weft_status_t weft_viz_write_picture(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path,
                                     const char* format);
