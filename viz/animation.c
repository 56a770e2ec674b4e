// SMIL: one rectangle a region whose place and size are animated through all frames, a caption a frame, and the cost as
// a curve with a mark that runs along it.
#include "viz/animation.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "viz/palette.h"

enum { MARGIN = 16, TOP = 64, CURVE_TOP = 18, CURVE_HEIGHT = 72, LONGER_SIDE = 640, HOLD = 8 };

typedef struct svg_t {
  const weft_viz_animation_t* a;
  weft_text_t* text;
  double cell, seconds;
  double lowest, highest; // cost
} svg_t;

static weft_status_t escaped(weft_text_t* text, const char* words) {
  for (; *words; ++words) {
    const char* entity = *words == '&' ? "&amp;" : *words == '<' ? "&lt;" : *words == '>' ? "&gt;" : NULL;
    if (entity) {
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s", entity));
    } else {
      WEFT_RETURN_IF_ERROR(weft_text_append(text, words, 1));
    }
  }
  return weft_ok();
}

// The last frame stands still for a while before the loop begins again: as HOLD more frames.
static int32_t shown_frames(const svg_t* s) {
  return s->a->frame_count + HOLD;
}
static int32_t frame_at(const svg_t* s, int32_t shown) {
  return shown < s->a->frame_count ? shown : s->a->frame_count - 1;
}

static weft_status_t begin_animate(const svg_t* s, const char* attribute) {
  return weft_text_printf(s->text, "<animate attributeName=\"%s\" dur=\"%gs\" repeatCount=\"indefinite\" values=\"",
                          attribute, s->seconds);
}

// One attribute of a region through all frames; left out when it never changes.
static weft_status_t animate_box(const svg_t* s, const char* attribute, int32_t region, int which, double offset) {
  const weft_viz_animation_t* a = s->a;
  bool moves = false;
  for (int pass = 0; pass < 2; ++pass) {
    int32_t first = 0;
    for (int32_t i = 0; i < shown_frames(s); ++i) {
      const weft_viz_box_t* b = &a->box[(size_t)frame_at(s, i) * (size_t)a->region_count + (size_t)region];
      int32_t tiles[4] = {b->x, b->y, b->width, b->height};
      if (!i) first = tiles[which];
      moves |= tiles[which] != first;
      if (pass)
        WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "%s%.4g", i ? ";" : "", offset + tiles[which] * s->cell));
    }
    if (!moves) return weft_ok();
    if (!pass) WEFT_RETURN_IF_ERROR(begin_animate(s, attribute));
  }
  return weft_text_printf(s->text, "\"/>");
}

static weft_status_t draw_region(const svg_t* s, int32_t region) {
  const weft_viz_animation_t* a = s->a;
  const weft_viz_box_t* b = &a->box[(size_t)(a->frame_count - 1) * (size_t)a->region_count + (size_t)region];
  weft_viz_colour_t c = weft_viz_categorical(region);
  WEFT_RETURN_IF_ERROR(weft_text_printf(
      s->text, "<rect x=\"%.4g\" y=\"%.4g\" width=\"%.4g\" height=\"%.4g\" fill=\"#%02x%02x%02x\"><title>",
      MARGIN + b->x * s->cell, TOP + b->y * s->cell, b->width * s->cell, b->height * s->cell,
      (unsigned)lround(255 * c.r), (unsigned)lround(255 * c.g), (unsigned)lround(255 * c.b)));
  WEFT_RETURN_IF_ERROR(escaped(s->text, a->name[region]));
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "</title>"));
  WEFT_RETURN_IF_ERROR(animate_box(s, "x", region, 0, MARGIN));
  WEFT_RETURN_IF_ERROR(animate_box(s, "y", region, 1, TOP));
  WEFT_RETURN_IF_ERROR(animate_box(s, "width", region, 2, 0));
  WEFT_RETURN_IF_ERROR(animate_box(s, "height", region, 3, 0));
  return weft_text_printf(s->text, "</rect>\n");
}

// Runs of dead tiles of a row as one path.
static weft_status_t draw_dead(const svg_t* s) {
  const weft_viz_animation_t* a = s->a;
  if (!a->dead) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "<path fill=\"#333\" d=\""));
  for (int32_t y = 0; y < a->height; ++y) {
    const uint8_t* row = a->dead + (size_t)y * (size_t)a->width;
    for (int32_t x = 0; x < a->width; ++x) {
      int32_t run = 0;
      while (x + run < a->width && row[x + run]) ++run;
      if (!run) continue;
      WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "M%.4g %.4gh%.4gv%.4gh%.4gz", MARGIN + x * s->cell,
                                            TOP + y * s->cell, run * s->cell, s->cell, -run * s->cell));
      x += run;
    }
  }
  return weft_text_printf(s->text, "\"/>\n");
}

static weft_status_t draw_captions(const svg_t* s) {
  for (int32_t f = 0; f < s->a->frame_count; ++f) {
    int32_t shown = shown_frames(s), end = f + 1 < s->a->frame_count ? f + 1 : shown;
    WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "<text x=\"%d\" y=\"54\" visibility=\"%s\">T %.3g, cost %.6g",
                                          MARGIN, f + 1 < s->a->frame_count ? "hidden" : "visible",
                                          s->a->temperature[f], s->a->cost[f]));
    if (s->a->frame_count > 1) {
      WEFT_RETURN_IF_ERROR(weft_text_printf(
          s->text,
          "<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"%gs\" repeatCount=\"indefinite\" "
          "values=\"%s;visible;hidden\" keyTimes=\"0;%.4f;%.4f\"/>",
          s->seconds, f ? "hidden" : "visible", (double)f / shown, (double)end / shown));
    }
    WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "</text>\n"));
  }
  return weft_ok();
}

static double curve_x(const svg_t* s, int32_t shown) {
  return MARGIN + s->cell * s->a->width * shown / (shown_frames(s) - 1);
}
static double curve_y(const svg_t* s, int32_t shown) {
  double span = s->highest - s->lowest;
  double part = span > 0 ? (s->a->cost[frame_at(s, shown)] - s->lowest) / span : 0;
  return TOP + s->cell * s->a->height + CURVE_TOP + CURVE_HEIGHT * (1 - part);
}

static weft_status_t draw_curve(const svg_t* s) {
  WEFT_RETURN_IF_ERROR(
      weft_text_printf(s->text, "<polyline fill=\"none\" stroke=\"#777\" stroke-width=\"1.5\" points=\""));
  for (int32_t i = 0; i < shown_frames(s); ++i) {
    WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "%s%.1f,%.1f", i ? " " : "", curve_x(s, i), curve_y(s, i)));
  }
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "\"/>\n<circle r=\"4\" fill=\"#c33\">"));
  for (int which = 0; which < 2; ++which) {
    WEFT_RETURN_IF_ERROR(begin_animate(s, which ? "cy" : "cx"));
    for (int32_t i = 0; i < shown_frames(s); ++i) {
      WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "%s%.1f", i ? ";" : "", which ? curve_y(s, i) : curve_x(s, i)));
    }
    WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "\"/>"));
  }
  return weft_text_printf(s->text, "</circle>\n");
}

static weft_status_t draw(const svg_t* s) {
  const weft_viz_animation_t* a = s->a;
  double width = a->width * s->cell, height = a->height * s->cell;
  WEFT_RETURN_IF_ERROR(weft_text_printf(
      s->text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.4g %.4g\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"20\" "
      "font-weight=\"bold\" font-size=\"15\">",
      width + 2 * MARGIN, height + TOP + CURVE_TOP + CURVE_HEIGHT + MARGIN, MARGIN));
  WEFT_RETURN_IF_ERROR(escaped(s->text, a->title));
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "</text>\n<text x=\"%d\" y=\"37\" fill=\"#555\">", MARGIN));
  WEFT_RETURN_IF_ERROR(escaped(s->text, a->subtitle ? a->subtitle : ""));
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text,
                                        "</text>\n<rect x=\"%d\" y=\"%d\" width=\"%.4g\" height=\"%.4g\" "
                                        "fill=\"#f3f3f3\" stroke=\"#999\"/>\n",
                                        MARGIN, TOP, width, height));
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "<g stroke=\"#444\" stroke-width=\"0.7\" fill-opacity=\"0.85\">\n"));
  for (int32_t r = 0; r < a->region_count; ++r) WEFT_RETURN_IF_ERROR(draw_region(s, r));
  WEFT_RETURN_IF_ERROR(weft_text_printf(s->text, "</g>\n"));
  WEFT_RETURN_IF_ERROR(draw_dead(s));
  WEFT_RETURN_IF_ERROR(draw_captions(s));
  WEFT_RETURN_IF_ERROR(draw_curve(s));
  return weft_text_printf(s->text, "</svg>\n");
}

weft_status_t weft_viz_write_animation(weft_allocator_t allocator, const weft_viz_animation_t* animation,
                                       double seconds, const char* path) {
  size_t length = strlen(path);
  if (length < 4 || strcmp(path + length - 4, ".svg") != 0) {
    return weft_error(INVALID_ARGUMENT, "%s: an animation is written as .svg", path);
  }
  if (animation->frame_count < 1) return weft_error(INVALID_ARGUMENT, "%s: no frame to show", path);
  int32_t longer = animation->width > animation->height ? animation->width : animation->height;
  weft_text_t text;
  weft_text_initialize(allocator, &text);
  svg_t s = {.a = animation, .text = &text, .cell = (double)LONGER_SIDE / longer, .seconds = seconds};
  s.lowest = s.highest = animation->cost[0];
  for (int32_t f = 1; f < animation->frame_count; ++f) {
    s.lowest = fmin(s.lowest, animation->cost[f]);
    s.highest = fmax(s.highest, animation->cost[f]);
  }
  weft_status_t status = draw(&s);
  if (!status) status = weft_file_write(allocator, path, text.data, text.count);
  weft_text_deinitialize(&text);
  return status;
}
