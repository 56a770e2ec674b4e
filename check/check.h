// Legality, derived again from the artefact and from nothing else: shares no code with placer, router and backend
// beyond the data structures. The first faults are listed (at most 20), then their number.
#pragma once
#include "backend/image.h"
#include "ir/fabric/fabric.h"

// PLACED: regions are inside, disjoint; every logical tile is a live tile of its region, used once; memory; each
// operand element of every tile arrives exactly once over its streams (counted), sources hold what they send. ROUTED:
// every stream connects all its sources in order to all its sinks over live links; no router has more than its colours,
// none twice; the wait graph is acyclic.
weft_status_t weft_check_fabric(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                const weft_defects_t* defects);
// From the image alone: tiles live, memory, routes as above, every send and receive has its route, counts of elements
// match at every sink.
weft_status_t weft_check_image(weft_allocator_t allocator, const weft_image_t* image);
