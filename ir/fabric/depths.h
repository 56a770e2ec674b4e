// How many steps an operand may wait in a tile: decided once the alternatives are chosen, from the memory that is left.
#pragma once
#include "ir/fabric/fabric.h"

// Sets the spare places of all operands (replacing what was there), and adds them to the bytes of the chosen
// alternatives. The ring of an operand never stalls its producer when it has a place for each step that is on the way
// along the longest path from producer to consumer: at each kernel of the path at most one arrives and one is worked
// on; from the host one more is on the way. So a skip connection over one kernel gets four places. When they don't fit,
// the operand that lacks most gets the next one first.
weft_status_t weft_depths_choose(weft_fabric_t* fabric, const weft_machine_t* machine);
