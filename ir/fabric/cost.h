// The cost function with what doesn't depend on the split worked out before; private to ir/fabric.
#pragma once
#include "base/array.h"
#include "ir/fabric/split.h"

// What streams bring: an operand piece that is no constant, and the extents of where it lands.
typedef struct weft_cost_arrival_t {
  int32_t buffer;
  weft_shape_t landing;
} weft_cost_arrival_t;
typedef struct weft_cost_buffer_t {
  bool streamed;
  bool feedback;     // comes back from the kernel itself
  int32_t consumers; // operands and outputs that a result becomes: it leaves in a stream for each, at the least
} weft_cost_buffer_t;
typedef struct weft_cost_model_t {
  const weft_kernel_t* kernel;
  const weft_machine_t* machine;
  weft_allocator_t allocator;
  int64_t code_bytes;
  int32_t transfers; // receives and sends of a step, at the least
  weft_cost_buffer_t* buffer;
  WEFT_ARRAY(weft_cost_arrival_t) arrivals;
} weft_cost_model_t;

weft_status_t weft_cost_model_initialize(const weft_fabric_t* fabric, int32_t kernel, const weft_machine_t* machine,
                                         weft_cost_model_t* out_model);
void weft_cost_model_deinitialize(weft_cost_model_t* model);
// Sets all figures but the grid for blocks of these sizes along the dimensions.
void weft_cost_evaluate(const weft_cost_model_t* model, const int64_t* block, int32_t chain_length,
                        weft_alternative_t* inout_alternative);
