// Sums of bounded digits: sum of step_j * i_j with lo_j <= i_j < hi_j. What views and walks both are along one
// dimension; private to ir/fabric.
#pragma once
#include <stdint.h>

enum { WEFT_LATTICE_MAX_DIGITS = 16 };

typedef struct weft_lattice_digit_t {
  int64_t lo, hi, step;
} weft_lattice_digit_t;
typedef struct weft_lattice_t {
  int32_t count;
  weft_lattice_digit_t digit[WEFT_LATTICE_MAX_DIGITS]; // by descending |step|
} weft_lattice_t;

static inline int64_t weft_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// The i with from <= step * i < to: *out_lo <= i < *out_hi (empty when they cross).
void weft_lattice_solve(int64_t step, int64_t from, int64_t to, int64_t* out_lo, int64_t* out_hi);
// Keeps the order; equal steps stay in the order of their insertion.
void weft_lattice_insert(weft_lattice_t* lattice, int64_t lo, int64_t hi, int64_t step);
// The smallest and largest sums of the digits from `first` on, whose ranges must not be empty.
void weft_lattice_span(const weft_lattice_t* lattice, int32_t first, int64_t* out_min, int64_t* out_max);
// How many combinations of digits have from <= base + sum < to.
int64_t weft_lattice_count(const weft_lattice_t* lattice, int64_t base, int64_t from, int64_t to);
