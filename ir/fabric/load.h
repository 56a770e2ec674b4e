// What the links of a routed fabric carry in a step.
#pragma once
#include "ir/fabric/fabric.h"

// out_wavelets[tile * WEFT_DIRECTION_COUNT + direction]: wavelets that leave the tile's router by that side. A link
// where a stream still gathers carries the segments of the sources upstream of it; behind the last source each link
// carries all of them. RAMP: what the core takes in before its filter. The streams must be routed, and within the
// machine's tiles and directions. `allocator`: for what is needed on the way.
weft_status_t weft_load_links(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_allocator_t allocator,
                              int64_t* out_wavelets);
