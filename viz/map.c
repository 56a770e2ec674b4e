#include "viz/map.h"

#include <math.h>
#include <string.h>

bool weft_viz_metric_parse(const char* text, weft_viz_metric_e* out_metric) {
  static const char* const names[] = {
#define X(name, text, title, unit) text,
      WEFT_VIZ_METRICS(X)
#undef X
  };
  for (int32_t i = 0; i < WEFT_VIZ_METRIC_COUNT; ++i) {
    if (strcmp(text, names[i])) continue;
    *out_metric = (weft_viz_metric_e)i;
    return true;
  }
  return false;
}

weft_viz_range_t weft_viz_range(const weft_viz_map_t* map) {
  weft_viz_range_t range = {0};
  for (int64_t t = 0; t < (int64_t)map->width * map->height; ++t) {
    if (isnan(map->value[t])) continue;
    range.lowest = range.count ? fmin(range.lowest, map->value[t]) : map->value[t];
    range.highest = range.count ? fmax(range.highest, map->value[t]) : map->value[t];
    ++range.count;
  }
  return range;
}

double weft_viz_tick_step(double span, int32_t most) {
  double power = pow(10, floor(log10(span / most)));
  for (;; power *= 10) {
    if (span / power <= most) return power;
    if (span / (2 * power) <= most) return 2 * power;
    if (span / (5 * power) <= most) return 5 * power;
  }
}

weft_status_t weft_viz_region_of_tiles(weft_allocator_t allocator, const weft_viz_map_t* map, int32_t** out_region) {
  size_t tiles = (size_t)map->width * (size_t)map->height;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, tiles, sizeof **out_region, (void**)out_region));
  for (size_t t = 0; t < tiles; ++t) (*out_region)[t] = -1;
  for (int32_t r = 0; r < map->region_count; ++r) {
    for (int32_t i = 0; i < map->region[r].tile_count; ++i) (*out_region)[map->region[r].tiles[i]] = r;
  }
  return weft_ok();
}

weft_status_t weft_viz_write(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path) {
  const char* dot = strrchr(path, '.');
  if (dot && !strcmp(dot, ".csv")) return weft_viz_write_csv(allocator, map, path);
  if (dot && (!strcmp(dot, ".png") || !strcmp(dot, ".svg") || !strcmp(dot, ".pdf"))) {
    return weft_viz_write_picture(allocator, map, path, dot + 1);
  }
  return weft_error(INVALID_ARGUMENT, "%s: a map is written as .png, .svg, .pdf or .csv", path);
}
