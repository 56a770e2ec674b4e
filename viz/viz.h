// Heat maps of any stage: a grid of values with regions on it, drawn as PNG, SVG, PDF (cairo), CSV or for the terminal.
#pragma once
#include "backend/image.h"
#include "ir/fabric/fabric.h"

// name, title, unit
#define WEFT_VIZ_METRICS(X)                                                                                            \
  X(PLACE, "place", "placement", "")                                                                                   \
  X(MEMORY, "memory", "memory used", "bytes")                                                                          \
  X(CYCLES, "cycles", "busy cycles", "cycles")                                                                         \
  X(UTILISATION, "utilisation", "utilisation", "%")                                                                    \
  X(LINKS, "links", "link load", "wavelets")                                                                           \
  X(CONGESTION, "congestion", "congestion, estimated before routing", "wavelets a link")                               \
  X(COLOURS, "colours", "colours used", "colours")                                                                     \
  X(ENERGY, "energy", "energy", "nJ")                                                                                  \
  X(DEFECTS, "defects", "defects", "")
typedef enum weft_viz_metric_e {
#define X(name, text, title, unit) WEFT_VIZ_##name,
  WEFT_VIZ_METRICS(X)
#undef X
      WEFT_VIZ_METRIC_COUNT
} weft_viz_metric_e;

typedef struct weft_viz_region_t {
  const char* name;
  int32_t x, y, width, height;
  const int32_t* tiles; // that it uses
  int32_t tile_count;
} weft_viz_region_t;
typedef struct weft_viz_map_t {
  const char* title;
  const char* subtitle; // model, machine, seed; may be NULL
  const char* unit;
  weft_viz_metric_e metric;
  int32_t width, height;
  const double* value; // [height * width]; NaN: nothing there. PLACE: region index
  const uint8_t* dead; // [height * width], may be NULL
  // LINKS: wavelets on the link out of tile in direction d: link[tile * 4 + d], N E S W; may be NULL
  const double* link;
  int32_t region_count;
  const weft_viz_region_t* region;
} weft_viz_map_t;
bool weft_viz_metric_parse(const char* text, weft_viz_metric_e* out_metric);
// By the path's ending: .png .svg .pdf .csv; anything else is INVALID_ARGUMENT that lists them. Byte-identical for
// equal maps.
weft_status_t weft_viz_write(weft_allocator_t allocator, const weft_viz_map_t* map, const char* path);
// ANSI text at most `columns` wide; colour: 24-bit colours, else letters and shades.
weft_status_t weft_viz_terminal(const weft_viz_map_t* map, int32_t columns, bool colour, weft_text_t* text);
