// One line a tile that has something: x,y,value,region; links add the wavelets out of each side.
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "viz/map.h"

// RFC 4180: quoted when needed, quotes doubled.
static weft_status_t append_field(weft_text_t* text, const char* field) {
  if (!strpbrk(field, ",\"\n\r")) return weft_text_printf(text, "%s", field);
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\""));
  for (; *field; ++field) WEFT_RETURN_IF_ERROR(weft_text_printf(text, *field == '"' ? "\"\"" : "%c", *field));
  return weft_text_printf(text, "\"");
}

static weft_status_t append_rows(const weft_viz_map_t* map, const int32_t* region, weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "x,y,%s%s%s,kernel%s\n", map->title, map->unit[0] ? " " : "", map->unit,
                                        map->link ? ",north,east,south,west" : ""));
  for (int32_t y = 0; y < map->height; ++y) {
    for (int32_t x = 0; x < map->width; ++x) {
      size_t t = (size_t)y * (size_t)map->width + (size_t)x;
      bool dead = map->dead && map->dead[t];
      if (isnan(map->value[t]) && !dead) continue;
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%d,%d,", x, y));
      if (dead) {
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, "dead,"));
      } else {
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%.10g,", map->value[t]));
      }
      if (region[t] >= 0) WEFT_RETURN_IF_ERROR(append_field(text, map->region[region[t]].name));
      for (int32_t d = 0; map->link && d < 4; ++d) {
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, ",%.10g", map->link[t * 4 + (size_t)d]));
      }
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n"));
    }
  }
  return weft_ok();
}

weft_status_t weft_viz_write_csv(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path) {
  int32_t* region = NULL;
  WEFT_RETURN_IF_ERROR(weft_viz_region_of_tiles(allocator, map, &region));
  weft_text_t text;
  weft_text_initialize(allocator, &text);
  weft_status_t status = append_rows(map, region, &text);
  if (!status) status = weft_file_write(allocator, path, text.data, text.count);
  weft_text_deinitialize(&text);
  weft_allocator_free(allocator, region);
  return status;
}
