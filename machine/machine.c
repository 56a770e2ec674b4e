// Geometry and cost of a machine: everything that is computed from its numbers.
#include "machine/machine.h"

#include <math.h>

#include "base/checked.h"

static const char* const DIRECTION_NAMES[WEFT_DIRECTION_COUNT] = {
#define X(name, dx, dy) #name,
    WEFT_DIRECTIONS(X)
#undef X
};
const int8_t weft_direction_dx[WEFT_DIRECTION_COUNT] = {
#define X(name, dx, dy) dx,
    WEFT_DIRECTIONS(X)
#undef X
};
const int8_t weft_direction_dy[WEFT_DIRECTION_COUNT] = {
#define X(name, dx, dy) dy,
    WEFT_DIRECTIONS(X)
#undef X
};

const char* weft_direction_name(weft_direction_e direction) {
  return direction < WEFT_DIRECTION_COUNT ? DIRECTION_NAMES[direction] : "?";
}

weft_direction_e weft_direction_opposite(weft_direction_e direction) {
  static const weft_direction_e OPPOSITE[WEFT_DIRECTION_COUNT] = {
      [WEFT_DIRECTION_N] = WEFT_DIRECTION_S,       [WEFT_DIRECTION_E] = WEFT_DIRECTION_W,
      [WEFT_DIRECTION_S] = WEFT_DIRECTION_N,       [WEFT_DIRECTION_W] = WEFT_DIRECTION_E,
      [WEFT_DIRECTION_RAMP] = WEFT_DIRECTION_RAMP, [WEFT_DIRECTION_NE] = WEFT_DIRECTION_SW,
      [WEFT_DIRECTION_SE] = WEFT_DIRECTION_NW,     [WEFT_DIRECTION_SW] = WEFT_DIRECTION_NE,
      [WEFT_DIRECTION_NW] = WEFT_DIRECTION_SE};
  return OPPOSITE[direction];
}

int32_t weft_machine_neighbour(const weft_machine_t* machine, int32_t tile, weft_direction_e direction) {
  if (direction > WEFT_DIRECTION_RAMP && !machine->diagonal_links) return -1;
  int32_t x = tile % machine->width + weft_direction_dx[direction];
  int32_t y = tile / machine->width + weft_direction_dy[direction];
  if (x < 0 || y < 0 || x >= machine->width || y >= machine->height) return -1;
  return y * machine->width + x;
}

int32_t weft_machine_port_count(const weft_machine_t* machine) {
  int32_t count = 0;
  for (int side = 0; side < 4; ++side) count += machine->ports_per_side[side];
  return count;
}

weft_host_port_t weft_machine_port(const weft_machine_t* machine, int32_t index) {
  int side = WEFT_DIRECTION_N;
  for (; side < WEFT_DIRECTION_W && index >= machine->ports_per_side[side]; ++side) {
    index -= machine->ports_per_side[side];
  }
  bool horizontal = side == WEFT_DIRECTION_N || side == WEFT_DIRECTION_S;
  int64_t length = horizontal ? machine->width : machine->height;
  // The middle of the port's share of the side: distinct tiles as long as there are no more ports than tiles.
  int64_t along = (2 * (int64_t)index + 1) * length / (2 * (int64_t)machine->ports_per_side[side]);
  int64_t x = horizontal ? along : side == WEFT_DIRECTION_E ? machine->width - 1 : 0;
  int64_t y = !horizontal ? along : side == WEFT_DIRECTION_S ? machine->height - 1 : 0;
  return (weft_host_port_t){.tile = (int32_t)(y * machine->width + x), .direction = (weft_direction_e)side};
}

int64_t weft_machine_op_cycles(const weft_machine_t* machine, weft_op_e op, weft_dtype_e dtype, int64_t points) {
  if (points <= 0) return machine->issue_cycles;
  double cycles = ceil((double)points / machine->rate[weft_op_class(op)][dtype]);
  // Beyond this a double no longer counts single cycles; no run gets there.
  if (!(cycles < 0x1p62)) return INT64_MAX;
  return machine->issue_cycles + (int64_t)cycles;
}

int64_t weft_machine_wavelets(const weft_machine_t* machine, weft_dtype_e dtype, int64_t elements) {
  if (elements <= 0) return 0;
  int64_t bits = (int64_t)weft_dtype_size(dtype) * 8;
  int64_t per_wavelet = machine->wavelet_bits / bits;
  if (per_wavelet > 0) return weft_ceil_div(elements, per_wavelet);
  int64_t wavelets;
  return weft_checked_mul(elements, weft_ceil_div(bits, machine->wavelet_bits), &wavelets) ? wavelets : INT64_MAX;
}
