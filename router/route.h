// Adapter: the fabric's streams. PLACED -> ROUTED: host ports, routes, colours.
#pragma once
#include "router/router.h"

// Where routers have too few colours for the streams, weft_streams_build makes fewer of them, each with more to carry:
// slower, but it runs. UNROUTABLE when one stream an edge is too much still.
weft_status_t weft_route(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_control_t* control, weft_router_report_t* out_report);
