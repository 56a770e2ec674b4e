// Which host port each host stream uses. Private to the router.
#pragma once
#include "ir/fabric/fabric.h"
#include "machine/parts.h"

// Sets source_port and sink_port of every stream: for those to or from the host, a live port in the streams' part of
// the mesh, near to the kernel's tiles and not busy; -1 for the others. UNROUTABLE when there is none.
weft_status_t weft_router_ports_choose(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_parts_t* parts);
