// Machine XML -> machine.
#pragma once
#include "machine/machine.h"

// The built-in default.xml. Its mesh is a placeholder: set the name and the size, then call weft_machine_fit_ports.
weft_status_t weft_machine_read_default(weft_machine_t* out_machine);
// The default number of ports is for wafers: a side keeps at most one a tile.
void weft_machine_fit_ports(weft_machine_t* machine);
