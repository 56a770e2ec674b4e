// Private to ir/tensor: every loop nest of main becomes a function of its own, in place.
#pragma once
#include "ir/tensor/tensor.h"

// LLVM's passes take more than linear time in the size of a function, and a network is one function with thousands of
// loops: on an 80 layer detector this is the difference between a minute and seconds.
weft_status_t weft_tensor_outline_loops(weft_allocator_t allocator, MlirModule module, MlirOperation main);
