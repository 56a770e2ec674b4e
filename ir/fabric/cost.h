// The cost function with what doesn't depend on the split worked out before; private to ir/fabric.
#pragma once
#include "base/array.h"
#include "ir/fabric/split.h"

// What streams bring: an operand piece that is no constant, and the extents of where it lands.
typedef struct weft_cost_arrival_t {
  int32_t buffer;
  weft_shape_t landing;
} weft_cost_arrival_t;
typedef struct weft_cost_model_t {
  const weft_kernel_t* kernel;
  const weft_machine_t* machine;
  weft_allocator_t allocator;
  int64_t code_bytes;
  WEFT_ARRAY(weft_cost_arrival_t) arrivals;
} weft_cost_model_t;

weft_status_t weft_cost_model_initialize(const weft_fabric_t* fabric, int32_t kernel, const weft_machine_t* machine,
                                         weft_cost_model_t* out_model);
void weft_cost_model_deinitialize(weft_cost_model_t* model);
// Sets cycles, chain_cycles, stream_cycles and bytes for blocks of these sizes along the dimensions.
void weft_cost_evaluate(const weft_cost_model_t* model, const int64_t* block, int32_t chain_length,
                        weft_alternative_t* inout_alternative);
