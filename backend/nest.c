#include "backend/nest.h"

#include <inttypes.h>
#include <string.h>

void weft_nest_initialize(int32_t operand_count, weft_nest_t* out_nest) {
  out_nest->operand_count = operand_count;
  out_nest->loop_count = 0;
  out_nest->empty = false;
}

static bool continues(const weft_nest_t* nest, int64_t extent, const int64_t* strides) {
  if (!nest->loop_count) return false;
  const int64_t* outer = nest->stride[nest->loop_count - 1];
  for (int32_t o = 0; o < nest->operand_count; ++o)
    if (outer[o] != strides[o] * extent) return false;
  return true;
}

void weft_nest_push(weft_nest_t* nest, int64_t extent, const int64_t* strides) {
  if (extent < 1) nest->empty = true;
  if (extent <= 1 || nest->empty) return;
  int64_t before = 1;
  if (continues(nest, extent, strides)) before = nest->extent[--nest->loop_count];
  nest->extent[nest->loop_count] = before * extent;
  memcpy(nest->stride[nest->loop_count], strides, sizeof(*strides) * (size_t)nest->operand_count);
  ++nest->loop_count;
}

int64_t weft_nest_points(const weft_nest_t* nest) {
  if (nest->empty) return 0;
  int64_t points = 1;
  for (int32_t l = 0; l < nest->loop_count; ++l) points *= nest->extent[l];
  return points;
}

weft_status_t weft_nest_narrow(int64_t value, const char* what, int32_t* out) {
  if (value < INT32_MIN || value > INT32_MAX)
    return weft_error(UNSUPPORTED, "%s %" PRId64 " exceeds the 32 bits of an instruction word", what, value);
  *out = (int32_t)value;
  return weft_ok();
}

weft_status_t weft_nest_store(const weft_nest_t* nest, weft_instruction_t* inout_instruction) {
  weft_instruction_t* i = inout_instruction;
  if (nest->loop_count > WEFT_ISA_MAX_LOOPS)
    return weft_error(UNSUPPORTED, "a nest of %" PRId32 " loops, an instruction has at most %d", nest->loop_count,
                      WEFT_ISA_MAX_LOOPS);
  i->loop_count = nest->loop_count;
  for (int32_t l = 0; l < nest->loop_count; ++l) {
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(nest->extent[l], "the extent", &i->loop[l].extent));
    for (int32_t o = 0; o < nest->operand_count; ++o)
      WEFT_RETURN_IF_ERROR(weft_nest_narrow(nest->stride[l][o], "the stride", &i->loop[l].stride[o]));
  }
  return weft_ok();
}
