// Adapter: the fabric's streams. PLACED -> ROUTED: host ports, routes, colours.
#pragma once
#include "router/router.h"

weft_status_t weft_route(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_control_t* control, weft_router_report_t* out_report);
