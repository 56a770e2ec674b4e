// The placer's estimate of congestion for a placed fabric, and what routing made of it.
#pragma once
#include "ir/fabric/fabric.h"
#include "machine/defects.h"
#include "placer/congestion.h"

enum { WEFT_FORECAST_BIN = 8 }; // tiles along a bin's side, where nobody asks for another

typedef struct weft_place_forecast_t {
  weft_congestion_t estimated; // from regions, wavelets and numbers of streams
  weft_congestion_t routed;    // load NULL before routing
  double correlation;          // Spearman's, over the bins with a live tile; 0 before routing
} weft_place_forecast_t;

// Allocates in `arena`. The fabric must be placed. `bin`: tiles along a bin's side.
weft_status_t weft_place_forecast(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                  const weft_defects_t* defects, int32_t bin, weft_arena_t* arena,
                                  weft_place_forecast_t* out_forecast);
