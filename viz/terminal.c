// A map in the terminal: one cell for one or several tiles.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "viz/map.h"
#include "viz/palette.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
static const char* const shades[] = {"\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93",
                                     "\xe2\x96\x88"}; // light to full block

typedef struct cell_t {
  double value; // NaN: nothing
  bool dead;
} cell_t;

// A cell of several tiles shows the largest value (a category: the first), and dead only when all of it is.
static cell_t cell_at(const weft_viz_map_t* map, int32_t cx, int32_t cy, int32_t scale) {
  cell_t cell = {NAN, true};
  for (int32_t y = cy * scale; y < (cy + 1) * scale && y < map->height; ++y) {
    for (int32_t x = cx * scale; x < (cx + 1) * scale && x < map->width; ++x) {
      size_t t = (size_t)y * (size_t)map->width + (size_t)x;
      if (!map->dead || !map->dead[t]) cell.dead = false;
      if (isnan(map->value[t])) continue;
      if (isnan(cell.value) || (!weft_viz_is_categorical(map) && map->value[t] > cell.value))
        cell.value = map->value[t];
    }
  }
  return cell;
}

static weft_status_t append_colour(weft_text_t* text, weft_viz_colour_t c) {
  return weft_text_printf(text, "\x1b[48;2;%d;%d;%dm", (int)(c.r * 255), (int)(c.g * 255), (int)(c.b * 255));
}

static weft_status_t append_cell(const weft_viz_map_t* map, const weft_viz_range_t* range, cell_t cell, bool colour,
                                 weft_text_t* text) {
  if (map->metric == WEFT_VIZ_DEFECTS) return weft_text_printf(text, cell.value > 0 ? "\xc3\x97 " : "\xc2\xb7 ");
  if (cell.dead) return weft_text_printf(text, "\xc3\x97 ");
  if (isnan(cell.value)) return weft_text_printf(text, "\xc2\xb7 ");
  double span = range->highest - range->lowest;
  double part = span > 0 ? (cell.value - range->lowest) / span : 1;
  if (weft_viz_is_categorical(map)) {
    char letter = letters[(int32_t)cell.value % (int32_t)(sizeof letters - 1)];
    if (!colour) return weft_text_printf(text, "%c ", letter);
    WEFT_RETURN_IF_ERROR(append_colour(text, weft_viz_categorical((int32_t)cell.value)));
    return weft_text_printf(text, "\x1b[30m%c \x1b[0m", letter);
  }
  if (!colour) return weft_text_printf(text, "%s%s", shades[(int)fmin(3, part * 4)], shades[(int)fmin(3, part * 4)]);
  WEFT_RETURN_IF_ERROR(append_colour(text, weft_viz_sequential(part)));
  return weft_text_printf(text, "  \x1b[0m");
}

static weft_status_t append_legend(const weft_viz_map_t* map, const weft_viz_range_t* range, bool colour,
                                   weft_text_t* text) {
  if (map->metric == WEFT_VIZ_DEFECTS) return weft_text_printf(text, "\xc3\x97 dead\n");
  for (int32_t r = 0; weft_viz_is_categorical(map) && r < map->region_count; ++r) {
    const weft_viz_region_t* region = &map->region[r];
    char letter = letters[r % (int32_t)(sizeof letters - 1)];
    if (colour) WEFT_RETURN_IF_ERROR(append_colour(text, weft_viz_categorical(r)));
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, colour ? "\x1b[30m%c\x1b[0m" : "%c", letter));
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, " %s  %dx%d at (%d,%d), %d tiles\n", region->name, region->width,
                                          region->height, region->x, region->y, region->tile_count));
  }
  if (!weft_viz_is_categorical(map)) {
    for (int32_t i = 0; i < (colour ? 16 : 4); ++i) {
      if (colour) {
        WEFT_RETURN_IF_ERROR(append_colour(text, weft_viz_sequential(i / 15.0)));
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, " \x1b[0m"));
      } else {
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s", shades[i]));
      }
    }
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, " %.4g to %.4g %s\n", range->lowest, range->highest, map->unit));
  }
  return weft_text_printf(text, "\xc3\x97 dead   \xc2\xb7 unused\n");
}

weft_status_t weft_viz_terminal(const weft_viz_map_t* map, int32_t columns, bool colour, weft_text_t* text) {
  weft_viz_range_t range = weft_viz_range(map);
  int32_t room = (columns - 6) / 2 > 1 ? (columns - 6) / 2 : 1; // two columns a cell, six for the axis
  int32_t scale = (int32_t)weft_ceil_div(map->width, room);
  int32_t wide = (int32_t)weft_ceil_div(map->width, scale), high = (int32_t)weft_ceil_div(map->height, scale);
  WEFT_RETURN_IF_ERROR(
      weft_text_printf(text, "%s%s%s\n", map->title, map->subtitle ? ": " : "", map->subtitle ? map->subtitle : ""));
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "      "));
  for (int32_t x = 0; x < wide; x += 5)
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, x + 5 < wide ? "%-10d" : "%d", x * scale));
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n"));
  for (int32_t y = 0; y < high; ++y) {
    if (y % 5) {
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "      "));
    } else {
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%5d ", y * scale));
    }
    for (int32_t x = 0; x < wide; ++x)
      WEFT_RETURN_IF_ERROR(append_cell(map, &range, cell_at(map, x, y, scale), colour, text));
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n"));
  }
  if (scale > 1) WEFT_RETURN_IF_ERROR(weft_text_printf(text, "a cell is %dx%d tiles\n", scale, scale));
  return append_legend(map, &range, colour, text);
}
