// A map as a picture: cells, outlines of kernels, axes, legend (cairo).
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "viz/map.h"
#include "viz/palette.h"

enum { MARGIN_LEFT = 64, MARGIN_TOP = 72, MARGIN_BOTTOM = 56, LEGEND_WIDTH = 330, MAP_SIZE = 720, LEGEND_ROW = 20 };

typedef struct picture_t {
  const weft_viz_map_t* map;
  cairo_t* cairo;
  weft_viz_range_t range;
  double cell; // points a tile
  double width, height;
  const int32_t* region; // of each tile, -1: none
} picture_t;

static void set(picture_t* p, weft_viz_colour_t c) {
  cairo_set_source_rgb(p->cairo, c.r, c.g, c.b);
}

static void label(picture_t* p, double x, double y, double size, double align, bool bold, const char* text) {
  cairo_select_font_face(p->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(p->cairo, size);
  cairo_text_extents_t extents;
  cairo_text_extents(p->cairo, text, &extents);
  cairo_move_to(p->cairo, x - align * extents.x_advance, y);
  cairo_show_text(p->cairo, text);
}

// Text that is cut with an ellipsis to fit `room`.
static void label_within(picture_t* p, double x, double y, double size, double room, const char* text) {
  char shown[128];
  snprintf(shown, sizeof shown, "%s", text);
  cairo_select_font_face(p->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(p->cairo, size);
  cairo_text_extents_t extents;
  cairo_text_extents(p->cairo, shown, &extents);
  for (size_t length = strlen(shown); extents.x_advance > room && length > 4; --length) {
    snprintf(shown + length - 4, 4, "...");
    cairo_text_extents(p->cairo, shown, &extents);
  }
  cairo_move_to(p->cairo, x, y);
  cairo_show_text(p->cairo, shown);
}

static double part_of(const picture_t* p, double value) {
  double span = p->range.highest - p->range.lowest;
  return span > 0 ? (value - p->range.lowest) / span : 1;
}

static void draw_cells(picture_t* p) {
  const weft_viz_map_t* map = p->map;
  bool lines = map->link && p->cell >= 6; // links are drawn as lines where there is room
  for (int32_t y = 0; y < map->height; ++y) {
    for (int32_t x = 0; x < map->width; ++x) {
      size_t t = (size_t)y * (size_t)map->width + (size_t)x;
      double value = map->value[t];
      if (map->dead && map->dead[t]) {
        cairo_set_source_rgb(p->cairo, 0.13, 0.13, 0.13);
      } else if (isnan(value) || map->metric == WEFT_VIZ_DEFECTS || lines) {
        cairo_set_source_rgb(p->cairo, 0.955, 0.955, 0.955);
      } else {
        set(p, weft_viz_is_categorical(map) ? weft_viz_categorical((int32_t)value)
                                            : weft_viz_sequential(part_of(p, value)));
      }
      double gap = p->cell >= 6 ? 0.5 : 0;
      cairo_rectangle(p->cairo, MARGIN_LEFT + x * p->cell + gap, MARGIN_TOP + y * p->cell + gap, p->cell - 2 * gap,
                      p->cell - 2 * gap);
      cairo_fill(p->cairo);
    }
  }
}

// Each direction of a link has its own side of the line between the tiles' centres (right-hand traffic).
static void draw_links(picture_t* p, double busiest) {
  const weft_viz_map_t* map = p->map;
  cairo_set_line_cap(p->cairo, CAIRO_LINE_CAP_BUTT);
  for (int32_t y = 0; y < map->height; ++y) {
    for (int32_t x = 0; x < map->width; ++x) {
      for (int32_t d = 0; d < 4; ++d) {
        double load = map->link[((size_t)y * (size_t)map->width + (size_t)x) * 4 + (size_t)d];
        if (!(load > 0)) continue;
        double part = load / busiest, dx = weft_direction_dx[d], dy = weft_direction_dy[d];
        double cx = MARGIN_LEFT + (x + 0.5) * p->cell - dy * p->cell * 0.17,
               cy = MARGIN_TOP + (y + 0.5) * p->cell + dx * p->cell * 0.17;
        set(p, weft_viz_sequential(1 - part));
        cairo_set_line_width(p->cairo, p->cell * (0.08 + 0.26 * part));
        cairo_move_to(p->cairo, cx, cy);
        cairo_line_to(p->cairo, cx + dx * p->cell, cy + dy * p->cell);
        cairo_stroke(p->cairo);
      }
    }
  }
}

static int32_t region_at(const picture_t* p, int32_t x, int32_t y) {
  if (x < 0 || y < 0 || x >= p->map->width || y >= p->map->height) return -1;
  return p->region[(size_t)y * (size_t)p->map->width + (size_t)x];
}

static void draw_outlines(picture_t* p) {
  cairo_set_source_rgb(p->cairo, 0.1, 0.1, 0.1);
  cairo_set_line_width(p->cairo, p->cell >= 6 ? 1.6 : 0.6);
  cairo_set_line_cap(p->cairo, CAIRO_LINE_CAP_SQUARE);
  for (int32_t y = 0; y <= p->map->height; ++y) {
    for (int32_t x = 0; x <= p->map->width; ++x) {
      double left = MARGIN_LEFT + x * p->cell, top = MARGIN_TOP + y * p->cell;
      int32_t here = region_at(p, x, y);
      if (here != region_at(p, x - 1, y)) {
        cairo_move_to(p->cairo, left, top);
        cairo_line_to(p->cairo, left, top + p->cell);
      }
      if (here != region_at(p, x, y - 1)) {
        cairo_move_to(p->cairo, left, top);
        cairo_line_to(p->cairo, left + p->cell, top);
      }
    }
  }
  cairo_stroke(p->cairo);
}

// A kernel's number (as in the legend) at the middle of its tiles, on a white disc.
static void draw_numbers(picture_t* p) {
  for (int32_t r = 0; r < p->map->region_count; ++r) {
    const weft_viz_region_t* region = &p->map->region[r];
    double sx = 0, sy = 0, size = fmin(13, fmax(7, p->cell * 0.62));
    if (!region->tile_count) continue;
    for (int32_t i = 0; i < region->tile_count; ++i) {
      sx += region->tiles[i] % p->map->width + 0.5;
      sy += (int32_t)(region->tiles[i] / p->map->width) + 0.5;
    }
    double x = MARGIN_LEFT + sx / region->tile_count * p->cell, y = MARGIN_TOP + sy / region->tile_count * p->cell;
    char text[16];
    snprintf(text, sizeof text, "%d", r + 1);
    cairo_set_source_rgba(p->cairo, 1, 1, 1, 0.88);
    cairo_arc(p->cairo, x, y, size * 0.85, 0, 6.283185307179586);
    cairo_fill(p->cairo);
    cairo_set_source_rgb(p->cairo, 0.1, 0.1, 0.1);
    label(p, x, y + size * 0.36, size, 0.5, true, text);
  }
}

static void draw_axes(picture_t* p) {
  const weft_viz_map_t* map = p->map;
  double right = MARGIN_LEFT + map->width * p->cell, bottom = MARGIN_TOP + map->height * p->cell;
  cairo_set_source_rgb(p->cairo, 0.2, 0.2, 0.2);
  cairo_set_line_width(p->cairo, 1);
  cairo_rectangle(p->cairo, MARGIN_LEFT, MARGIN_TOP, map->width * p->cell, map->height * p->cell);
  cairo_stroke(p->cairo);
  char text[32];
  int32_t step_x = (int32_t)fmax(1, weft_viz_tick_step(map->width, 12)),
          step_y = (int32_t)fmax(1, weft_viz_tick_step(map->height, 12));
  for (int32_t x = 0; x < map->width; x += step_x) {
    double at = MARGIN_LEFT + (x + 0.5) * p->cell;
    cairo_move_to(p->cairo, at, bottom);
    cairo_line_to(p->cairo, at, bottom + 4);
    cairo_stroke(p->cairo);
    snprintf(text, sizeof text, "%d", x);
    label(p, at, bottom + 17, 11, 0.5, false, text);
  }
  for (int32_t y = 0; y < map->height; y += step_y) {
    double at = MARGIN_TOP + (y + 0.5) * p->cell;
    cairo_move_to(p->cairo, MARGIN_LEFT - 4, at);
    cairo_line_to(p->cairo, MARGIN_LEFT, at);
    cairo_stroke(p->cairo);
    snprintf(text, sizeof text, "%d", y);
    label(p, MARGIN_LEFT - 8, at + 4, 11, 1, false, text);
  }
  label(p, (MARGIN_LEFT + right) / 2, bottom + 38, 12, 0.5, false, "tile x");
  cairo_save(p->cairo);
  cairo_translate(p->cairo, 18, (MARGIN_TOP + bottom) / 2);
  cairo_rotate(p->cairo, -1.5707963267948966);
  label(p, 0, 0, 12, 0.5, false, "tile y");
  cairo_restore(p->cairo);
  label(p, MARGIN_LEFT, 30, 18, 0, true, map->title);
  if (map->subtitle) {
    cairo_set_source_rgb(p->cairo, 0.35, 0.35, 0.35);
    label_within(p, MARGIN_LEFT, 52, 12, p->width - MARGIN_LEFT - 12, map->subtitle);
  }
}

static void swatch(picture_t* p, double x, double y) {
  cairo_rectangle(p->cairo, x, y - 11, 14, 14);
  cairo_fill(p->cairo);
}

static void draw_colour_bar(picture_t* p, double x, double y, double lowest, double highest, bool reversed) {
  enum { LENGTH = 220, STEPS = 110 };
  for (int i = 0; i < STEPS; ++i) {
    double part = (i + 0.5) / STEPS;
    set(p, weft_viz_sequential(reversed ? 1 - part : part));
    cairo_rectangle(p->cairo, x, y + LENGTH * (1 - (i + 1.0) / STEPS), 18, LENGTH / (double)STEPS + 0.5);
    cairo_fill(p->cairo);
  }
  cairo_set_source_rgb(p->cairo, 0.2, 0.2, 0.2);
  char text[48];
  double span = highest - lowest, step = span > 0 ? weft_viz_tick_step(span, 6) : 1;
  for (double tick = ceil(lowest / step) * step; tick <= highest + step * 1e-9; tick += step) {
    double at = y + LENGTH * (1 - (span > 0 ? (tick - lowest) / span : 1));
    cairo_move_to(p->cairo, x + 18, at);
    cairo_line_to(p->cairo, x + 23, at);
    cairo_stroke(p->cairo);
    snprintf(text, sizeof text, "%.6g", tick);
    label(p, x + 28, at + 4, 11, 0, false, text);
  }
  label(p, x, y - 12, 12, 0, false, p->map->unit);
  snprintf(text, sizeof text, "lowest %.6g, highest %.6g", lowest, highest);
  label(p, x, y + LENGTH + 22, 11, 0, false, text);
}

static void draw_legend(picture_t* p, double busiest) {
  const weft_viz_map_t* map = p->map;
  double x = MARGIN_LEFT + map->width * p->cell + 24, y = MARGIN_TOP + 12;
  if (!weft_viz_is_categorical(map) && map->metric != WEFT_VIZ_DEFECTS && p->range.count) {
    if (map->link && p->cell >= 6) {
      draw_colour_bar(p, x, y + 12, 0, busiest, true);
    } else {
      draw_colour_bar(p, x, y + 12, p->range.lowest, p->range.highest, false);
    }
    y += 290;
  }
  for (int32_t r = 0; r < map->region_count && map->metric != WEFT_VIZ_DEFECTS; ++r, y += LEGEND_ROW) {
    if (y + 3 * LEGEND_ROW > p->height && r + 1 < map->region_count) {
      char more[48];
      snprintf(more, sizeof more, "... and %d more", map->region_count - r);
      cairo_set_source_rgb(p->cairo, 0.2, 0.2, 0.2);
      label(p, x, y, 11, 0, false, more);
      y += LEGEND_ROW;
      break;
    }
    char number[16], size[48];
    snprintf(number, sizeof number, "%d", r + 1);
    snprintf(size, sizeof size, "%d", map->region[r].tile_count);
    if (weft_viz_is_categorical(map)) {
      set(p, weft_viz_categorical(r));
      swatch(p, x, y);
    }
    cairo_set_source_rgb(p->cairo, 0.1, 0.1, 0.1);
    label(p, x + 38, y, 11, 1, true, number);
    label_within(p, x + 46, y, 11, LEGEND_WIDTH - 46 - 24 - 60, map->region[r].name);
    cairo_set_source_rgb(p->cairo, 0.4, 0.4, 0.4);
    label(p, x + LEGEND_WIDTH - 40, y, 11, 1, false, size);
  }
  if (map->dead) {
    cairo_set_source_rgb(p->cairo, 0.13, 0.13, 0.13);
    swatch(p, x, y + 4);
    label(p, x + 22, y + 4, 11, 0, false, "dead tile");
  }
}

static void draw(picture_t* p) {
  const weft_viz_map_t* map = p->map;
  cairo_set_source_rgb(p->cairo, 1, 1, 1);
  cairo_paint(p->cairo);
  double busiest = 0;
  for (int64_t i = 0; map->link && i < (int64_t)map->width * map->height * 4; ++i)
    busiest = fmax(busiest, map->link[i]);
  draw_cells(p);
  if (map->link && p->cell >= 6 && busiest > 0) draw_links(p, busiest);
  if (map->metric != WEFT_VIZ_DEFECTS) {
    draw_outlines(p);
    if (p->cell >= 3) draw_numbers(p);
  }
  draw_axes(p);
  draw_legend(p, busiest);
}

static cairo_status_t write_bytes(void* self, const unsigned char* data, unsigned int length) {
  return fwrite(data, 1, length, (FILE*)self) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static weft_status_t render(picture_t* p, const char* format, FILE* stream) {
  cairo_surface_t* surface = NULL;
  bool png = !strcmp(format, "png");
  if (png) {
    surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(p->width), (int)ceil(p->height));
  } else if (!strcmp(format, "svg")) {
    surface = cairo_svg_surface_create_for_stream(write_bytes, stream, p->width, p->height);
  } else {
    surface = cairo_pdf_surface_create_for_stream(write_bytes, stream, p->width, p->height);
    // A fixed date: equal maps give equal files.
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
  }
  p->cairo = cairo_create(surface);
  draw(p);
  cairo_status_t status = cairo_status(p->cairo);
  cairo_destroy(p->cairo);
  if (!status && png) status = cairo_surface_write_to_png_stream(surface, write_bytes, stream);
  cairo_surface_finish(surface);
  if (!status) status = cairo_surface_status(surface);
  cairo_surface_destroy(surface);
  return status ? weft_error(IO, "cannot draw the map: %s", cairo_status_to_string(status)) : weft_ok();
}

weft_status_t weft_viz_write_picture(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path,
                                     const char* format) {
  int32_t* region = NULL;
  WEFT_RETURN_IF_ERROR(weft_viz_region_of_tiles(allocator, map, &region));
  double longer = map->width > map->height ? map->width : map->height;
  picture_t p = {.map = map, .range = weft_viz_range(map), .region = region};
  p.cell = fmax(1, fmin(28, floor(MAP_SIZE / longer)));
  p.width = MARGIN_LEFT + map->width * p.cell + LEGEND_WIDTH;
  double rows = (map->metric == WEFT_VIZ_DEFECTS ? 2 : map->region_count + 3) * LEGEND_ROW +
                (weft_viz_is_categorical(map) ? 0 : 290);
  p.height = MARGIN_TOP + fmax(map->height * p.cell, fmin(rows, 1400)) + MARGIN_BOTTOM;
  weft_file_writer_t writer;
  weft_status_t status = weft_file_writer_open(allocator, path, &writer);
  if (!status) {
    status = render(&p, format, writer.stream);
    if (!status) status = weft_file_writer_commit(&writer);
    weft_file_writer_abandon(&writer);
  }
  weft_allocator_free(allocator, region);
  return status;
}
