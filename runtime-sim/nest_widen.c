// Products of half-width floats that are summed up in f32. A factor is in many products; it is widened once, and the
// rest is a contraction of f32 like any other: products and sums are the same.
#include "runtime-sim/half.h"
#include "runtime-sim/nest.h"

enum { SIZE = 2 }; // bytes of a narrow element

// The elements from the first to the last that an operand touches, in memory: [*out_lo, *out_lo + result). 0: they
// don't lie at whole elements.
static int64_t elements_of(const weft_sim_nest_t* nest, int32_t operand, const uint8_t** out_lo) {
  int64_t lo = 0, hi = SIZE;
  for (int32_t l = 0; l < nest->loop_count; ++l) {
    int64_t stride = nest->stride[operand][l], reach = stride * (nest->extent[l] - 1);
    if (stride % SIZE != 0) return 0;
    *(reach < 0 ? &lo : &hi) += reach;
  }
  *out_lo = nest->pointer[operand] + lo;
  return (hi - lo) / SIZE;
}

bool weft_sim_nest_widen(weft_sim_nest_t* nest, float* room) {
  if (nest->op != WEFT_OP_MLA || !weft_sim_is_half(nest->dtype)) return false;
  if (nest->destination_dtype != WEFT_DTYPE_F32 || nest->hazard || nest->in_place) return false;
  const uint8_t* lo[2];
  int64_t count[2], points = 1;
  for (int32_t l = 0; l < nest->loop_count; ++l) points *= nest->extent[l];
  for (int32_t f = 0; f < 2; ++f) {
    count[f] = elements_of(nest, 1 + f, &lo[f]);
    if (count[f] == 0 || count[f] > WEFT_SIM_WIDEN_ROOM / 2) return false;
  }
  if (count[0] + count[1] > points) return false; // there is more to widen than to multiply
  for (int32_t f = 0; f < 2; ++f, room += WEFT_SIM_WIDEN_ROOM / 2) {
    weft_sim_half_widen(nest->dtype, lo[f], count[f], room);
    nest->pointer[1 + f] = (uint8_t*)(room + (nest->pointer[1 + f] - lo[f]) / SIZE);
    for (int32_t l = 0; l < nest->loop_count; ++l) nest->stride[1 + f][l] *= (int64_t)(sizeof(float) / SIZE);
  }
  nest->dtype = WEFT_DTYPE_F32;
  return true;
}
