#include "viz/palette.h"

#include <math.h>

weft_viz_colour_t weft_viz_sequential(double t) {
  static const weft_viz_colour_t anchor[] = {{0.267, 0.005, 0.329}, {0.283, 0.141, 0.458}, {0.254, 0.265, 0.530},
                                             {0.207, 0.372, 0.553}, {0.164, 0.471, 0.558}, {0.128, 0.567, 0.551},
                                             {0.135, 0.659, 0.518}, {0.267, 0.749, 0.441}, {0.478, 0.821, 0.318},
                                             {0.741, 0.873, 0.150}, {0.993, 0.906, 0.144}};
  enum { LAST = sizeof anchor / sizeof *anchor - 1 };
  double at = fmin(1, fmax(0, t)) * LAST;
  int i = (int)fmin(at, LAST - 1);
  double f = at - i;
  return (weft_viz_colour_t){anchor[i].r + f * (anchor[i + 1].r - anchor[i].r),
                             anchor[i].g + f * (anchor[i + 1].g - anchor[i].g),
                             anchor[i].b + f * (anchor[i + 1].b - anchor[i].b)};
}

weft_viz_colour_t weft_viz_categorical(int32_t index) {
  double hue = fmod(0.57 + 0.618033988749895 * index, 1.0) * 6;
  double saturation = index % 2 ? 0.38 : 0.55, value = index % 3 == 2 ? 0.80 : 0.92;
  int sector = (int)hue;
  double f = hue - sector, p = value * (1 - saturation), q = value * (1 - saturation * f),
         s = value * (1 - saturation * (1 - f));
  switch (sector) {
  case 0:
    return (weft_viz_colour_t){value, s, p};
  case 1:
    return (weft_viz_colour_t){q, value, p};
  case 2:
    return (weft_viz_colour_t){p, value, s};
  case 3:
    return (weft_viz_colour_t){p, q, value};
  case 4:
    return (weft_viz_colour_t){s, p, value};
  default:
    return (weft_viz_colour_t){value, p, q};
  }
}
