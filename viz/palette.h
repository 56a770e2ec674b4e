// Colours for maps.
#pragma once
#include <stdint.h>

typedef struct weft_viz_colour_t {
  double r, g, b; // 0 to 1
} weft_viz_colour_t;

// A sequential scale, dark to light, that reads the same in grey and for the colour-blind: anchors of matplotlib's
// viridis (van der Walt & Smith, 2015, CC0), linear in between. t in [0, 1].
weft_viz_colour_t weft_viz_sequential(double t);
// A distinct, light colour for the index-th of many things: hues by the golden ratio.
weft_viz_colour_t weft_viz_categorical(int32_t index);
