#include "runtime-sim/nest.h"

#include "runtime-sim/half.h"

enum { ROW_POINTS = 1 << 18, CONTROL_POINTS = 1 << 20 };

weft_dtype_e weft_sim_operand_dtype(weft_op_e op, weft_dtype_e dtype, weft_dtype_e destination_dtype, int32_t operand) {
  if (operand == 0) return destination_dtype;
  return op == WEFT_OP_SELECT && operand == 3 ? WEFT_DTYPE_BOOL : dtype;
}

const char* weft_sim_nest_fault(weft_op_e op, weft_dtype_e dtype, weft_dtype_e destination_dtype) {
  if (op >= WEFT_OP_AND && op <= WEFT_OP_SHR && weft_dtype_is_float(dtype)) return "bits of a float";
  if (op == WEFT_OP_MLA && weft_dtype_is_float(dtype) != weft_dtype_is_float(destination_dtype))
    return "accumulation of floats and integers in one another";
  return NULL;
}

void weft_sim_nest_remove_loop(weft_sim_nest_t* nest, int32_t at) {
  for (int32_t l = at; l + 1 < nest->loop_count; ++l) {
    nest->extent[l] = nest->extent[l + 1];
    for (int32_t o = 0; o < nest->operands; ++o) nest->stride[o][l] = nest->stride[o][l + 1];
  }
  --nest->loop_count;
}

static bool is_one_loop(const weft_sim_nest_t* nest, int32_t outer) {
  for (int32_t o = 0; o < nest->operands; ++o)
    if (nest->stride[o][outer] != nest->stride[o][outer + 1] * nest->extent[outer + 1]) return false;
  return true;
}

static void operand_hull(const weft_sim_nest_t* nest, int32_t operand, const uint8_t** out_lo, const uint8_t** out_hi) {
  int64_t lo = 0, hi = 0;
  for (int32_t l = 0; l < nest->loop_count; ++l) {
    int64_t reach = nest->stride[operand][l] * (nest->extent[l] - 1);
    if (reach < 0)
      lo += reach;
    else
      hi += reach;
  }
  weft_dtype_e dtype = weft_sim_operand_dtype(nest->op, nest->dtype, nest->destination_dtype, operand);
  *out_lo = nest->pointer[operand] + lo;
  *out_hi = nest->pointer[operand] + hi + weft_dtype_size(dtype);
}

static bool is_destination_itself(const weft_sim_nest_t* nest, int32_t operand) {
  if (nest->pointer[operand] != nest->pointer[0]) return false;
  if (weft_sim_operand_dtype(nest->op, nest->dtype, nest->destination_dtype, operand) != nest->destination_dtype)
    return false;
  for (int32_t l = 0; l < nest->loop_count; ++l)
    if (nest->stride[operand][l] != nest->stride[0][l]) return false;
  return true;
}

static int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

bool weft_sim_nest_is_injective(const weft_sim_nest_t* nest) {
  int64_t reach = (int64_t)weft_dtype_size(nest->destination_dtype);
  uint32_t left = 0;
  for (int32_t l = 0; l < nest->loop_count; ++l)
    if (nest->stride[0][l] != 0) left |= 1u << l;
  while (left) {
    int32_t smallest = -1;
    for (int32_t l = 0; l < nest->loop_count; ++l)
      if ((left >> l & 1) && (smallest < 0 || magnitude(nest->stride[0][l]) < magnitude(nest->stride[0][smallest])))
        smallest = l;
    if (magnitude(nest->stride[0][smallest]) < reach) return false;
    reach += magnitude(nest->stride[0][smallest]) * (nest->extent[smallest] - 1);
    left &= ~(1u << smallest);
  }
  return true;
}

// How fast a loop would be as the innermost one: neighbours in memory, or every other, go through the processor eight
// at a time.
static int64_t speed(const weft_sim_nest_t* nest, int32_t loop) {
  enum { MOST = 32 };
  int64_t size = (int64_t)weft_dtype_size(nest->destination_dtype);
  bool neighbours = true;
  for (int32_t o = 1; o < nest->operands; ++o) {
    int64_t stride = nest->stride[o][loop];
    neighbours = neighbours && (stride == 0 || stride == size || stride == 2 * size);
  }
  neighbours = neighbours && nest->stride[0][loop] == size;
  return (nest->extent[loop] < MOST ? nest->extent[loop] : MOST) * (neighbours ? 8 : 1);
}

// A reduction in the innermost loop is a chain of dependent additions; over distinct destinations they are independent.
static void move_parallel_loop_inwards(weft_sim_nest_t* nest) {
  int32_t last = nest->loop_count - 1, best = -1;
  if (last < 1 || nest->stride[0][last] != 0 || nest->hazard || !weft_sim_nest_is_injective(nest)) return;
  for (int32_t l = 0; l < last; ++l)
    if (nest->stride[0][l] != 0 && (best < 0 || speed(nest, l) >= speed(nest, best))) best = l;
  if (best < 0 || (nest->extent[best] < 4 && nest->extent[best] < nest->extent[last])) return;
  int64_t extent = nest->extent[best], stride[WEFT_SIM_OPERANDS];
  for (int32_t o = 0; o < nest->operands; ++o) stride[o] = nest->stride[o][best];
  weft_sim_nest_remove_loop(nest, best);
  nest->extent[last] = extent;
  for (int32_t o = 0; o < nest->operands; ++o) nest->stride[o][last] = stride[o];
  ++nest->loop_count;
}

// Drops loops of one turn, joins loops that are one in memory, and looks for operands that overlap.
static void simplify(weft_sim_nest_t* nest) {
  for (int32_t l = nest->loop_count - 1; l >= 0; --l)
    if (nest->extent[l] == 1) weft_sim_nest_remove_loop(nest, l);
  for (int32_t l = nest->loop_count - 2; l >= 0; --l) {
    if (!is_one_loop(nest, l)) continue;
    nest->extent[l + 1] *= nest->extent[l];
    weft_sim_nest_remove_loop(nest, l);
  }
  const uint8_t *lo, *hi;
  operand_hull(nest, 0, &lo, &hi);
  nest->hazard = nest->in_place = false;
  for (int32_t o = 1; o < nest->operands; ++o) {
    const uint8_t *source_lo, *source_hi;
    operand_hull(nest, o, &source_lo, &source_hi);
    if (source_lo >= hi || lo >= source_hi) continue;
    if (is_destination_itself(nest, o))
      nest->in_place = true;
    else
      nest->hazard = true;
  }
}

// A loop over distinct destinations goes inwards where that leaves the order of updates of every destination as it was.
static weft_status_t execute(weft_sim_nest_t* nest, const weft_control_t* control) {
  move_parallel_loop_inwards(nest);
  if (weft_sim_nest_is_contraction(nest)) return weft_sim_nest_contract(nest, control);
  weft_sim_row_fn run = weft_sim_row_f32(nest);
  if (!run) run = weft_sim_row_generic;
  int32_t outer = nest->loop_count - 1; // loops around the row
  int64_t row_count = outer < 0 ? 1 : nest->extent[outer], index[WEFT_ISA_MAX_LOOPS] = {0}, unchecked = 0;
  weft_sim_row_t row = {.count = row_count};
  uint8_t* at[WEFT_SIM_OPERANDS] = {0};
  for (int32_t o = 0; o < nest->operands; ++o) {
    at[o] = nest->pointer[o];
    row.stride[o] = outer < 0 ? 0 : nest->stride[o][outer];
  }
  while (true) {
    for (int64_t done = 0; done < row_count; done += row.count) {
      row.count = row_count - done < ROW_POINTS ? row_count - done : ROW_POINTS;
      for (int32_t o = 0; o < nest->operands; ++o) row.pointer[o] = at[o] + done * row.stride[o];
      run(nest, &row);
      unchecked += row.count;
      if (unchecked < CONTROL_POINTS) continue;
      unchecked = 0;
      WEFT_RETURN_IF_ERROR(weft_control_check(control, "simulate"));
    }
    int32_t l = outer - 1;
    for (; l >= 0; --l) {
      for (int32_t o = 0; o < nest->operands; ++o) at[o] += nest->stride[o][l];
      if (++index[l] < nest->extent[l]) break;
      for (int32_t o = 0; o < nest->operands; ++o) at[o] -= nest->stride[o][l] * nest->extent[l];
      index[l] = 0;
    }
    if (l < 0) return weft_ok();
  }
}

static __attribute__((noinline)) weft_status_t execute_narrow(weft_sim_nest_t* nest, const weft_control_t* control) {
  float room[WEFT_SIM_WIDEN_ROOM];
  (void)weft_sim_nest_widen(nest, room);
  return execute(nest, control);
}

weft_status_t weft_sim_nest_execute(weft_sim_nest_t* nest, const weft_control_t* control) {
  simplify(nest);
  return weft_sim_is_half(nest->dtype) ? execute_narrow(nest, control) : execute(nest, control);
}
