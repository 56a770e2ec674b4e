#include "ir/fabric/lattice.h"

#include "base/checked.h"

static int64_t ceil_div(int64_t a, int64_t b) {
  return weft_floor_div(a, b) + (a % b != 0);
}

void weft_lattice_solve(int64_t step, int64_t from, int64_t to, int64_t* out_lo, int64_t* out_hi) {
  if (step == 0) {
    *out_lo = from <= 0 && 0 < to ? INT64_MIN / 2 : 0;
    *out_hi = from <= 0 && 0 < to ? INT64_MAX / 2 : 0;
    return;
  }
  if (step < 0) { // from <= -s i < to is -to + 1 <= s i < -from + 1
    int64_t mirrored = 1 - to;
    to = 1 - from;
    from = mirrored;
    step = -step;
  }
  *out_lo = ceil_div(from, step);
  *out_hi = ceil_div(to, step);
}

static int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

void weft_lattice_insert(weft_lattice_t* lattice, int64_t lo, int64_t hi, int64_t step) {
  int32_t at = lattice->count++;
  for (; at > 0 && magnitude(lattice->digit[at - 1].step) < magnitude(step); --at)
    lattice->digit[at] = lattice->digit[at - 1];
  lattice->digit[at] = (weft_lattice_digit_t){lo, hi, step};
}

void weft_lattice_span(const weft_lattice_t* lattice, int32_t first, int64_t* out_min, int64_t* out_max) {
  *out_min = *out_max = 0;
  for (int32_t j = first; j < lattice->count; ++j) {
    const weft_lattice_digit_t* digit = &lattice->digit[j];
    int64_t a = digit->step * digit->lo, b = digit->step * (digit->hi - 1);
    *out_min += weft_min_i64(a, b);
    *out_max += weft_max_i64(a, b);
  }
}

static int64_t count_from(const weft_lattice_t* lattice, int32_t first, int64_t base, int64_t from, int64_t to) {
  if (first == lattice->count) return from <= base && base < to;
  const weft_lattice_digit_t* digit = &lattice->digit[first];
  int64_t inner_min, inner_max, inner_combinations = 1;
  weft_lattice_span(lattice, first + 1, &inner_min, &inner_max);
  for (int32_t j = first + 1; j < lattice->count; ++j)
    inner_combinations *= lattice->digit[j].hi - lattice->digit[j].lo;

  int64_t lo, hi, whole_lo, whole_hi; // digits with some, with all of their inner combinations inside
  weft_lattice_solve(digit->step, from - base - inner_max, to - base - inner_min, &lo, &hi);
  weft_lattice_solve(digit->step, from - base - inner_min, to - base - inner_max, &whole_lo, &whole_hi);
  lo = weft_max_i64(lo, digit->lo);
  hi = weft_min_i64(hi, digit->hi);
  whole_lo = weft_max_i64(whole_lo, lo);
  whole_hi = weft_min_i64(whole_hi, hi);
  if (lo >= hi) return 0;
  if (whole_lo >= whole_hi) whole_lo = whole_hi = lo;
  int64_t total = (whole_hi - whole_lo) * inner_combinations;
  for (int64_t i = lo; i < whole_lo; ++i) total += count_from(lattice, first + 1, base + digit->step * i, from, to);
  for (int64_t i = whole_hi; i < hi; ++i) total += count_from(lattice, first + 1, base + digit->step * i, from, to);
  return total;
}

int64_t weft_lattice_count(const weft_lattice_t* lattice, int64_t base, int64_t from, int64_t to) {
  for (int32_t j = 0; j < lattice->count; ++j)
    if (lattice->digit[j].lo >= lattice->digit[j].hi) return 0;
  return from < to ? count_from(lattice, 0, base, from, to) : 0;
}
