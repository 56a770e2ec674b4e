// Composition of views. Each movement works on a copy and commits it only when it succeeded.
#include <string.h>

#include "base/checked.h"
#include "ir/fabric/lattice.h"
#include "ir/fabric/view.h"

static int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static bool is_single(const weft_view_factor_t* factor) {
  return factor->hi - factor->lo == 1;
}

static void remove_factor(weft_view_t* view, int32_t at) {
  --view->factor_count;
  memmove(&view->factor[at], &view->factor[at + 1], (size_t)(view->factor_count - at) * sizeof(view->factor[0]));
}

// A view that has no elements, whatever the tensor.
static void make_empty(weft_view_t* view) {
  if (view->factor_count == 0) view->factor[view->factor_count++] = (weft_view_factor_t){.extent = 1, .dim = -1};
  for (int32_t j = 0; j < view->factor_count; ++j)
    view->factor[j] = (weft_view_factor_t){.extent = view->factor[j].extent, .dim = -1};
  memset(view->offset, 0, sizeof(view->offset));
}

static bool is_empty(const weft_view_t* view) {
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].lo >= view->factor[j].hi) return true;
  return false;
}

// Makes factor `inner` part of the one before it, where the two count as one digit. False: they don't.
static bool merge_into_previous(weft_view_t* view, int32_t inner) {
  weft_view_factor_t* a = &view->factor[inner - 1];
  const weft_view_factor_t* b = &view->factor[inner];
  bool b_is_whole = b->lo == 0 && b->hi == b->extent;
  if (a->dim >= 0 && a->dim == b->dim && a->step == b->step * b->extent && b_is_whole) {
    a->lo *= b->extent;
    a->hi *= b->extent;
  } else if (a->dim < 0 && is_single(a)) {
    int64_t start = a->lo * b->extent;
    if (b->dim >= 0) view->offset[b->dim] -= b->step * start;
    a->lo = start + b->lo;
    a->hi = start + b->hi;
  } else {
    return false;
  }
  a->extent *= b->extent;
  a->step = b->step;
  a->dim = b->dim;
  remove_factor(view, inner);
  return true;
}

// The same mapping with as few factors as possible: digits of one value become part of the offset.
static void simplify(weft_view_t* view) {
  if (is_empty(view)) {
    make_empty(view);
    return;
  }
  for (int32_t j = view->factor_count - 1; j >= 0; --j) {
    weft_view_factor_t* factor = &view->factor[j];
    if (factor->step == 0) factor->dim = -1;
    if (!is_single(factor)) continue;
    if (factor->dim >= 0) view->offset[factor->dim] += factor->step * factor->lo;
    factor->dim = -1;
    factor->step = 0;
    if (factor->extent == 1) remove_factor(view, j);
  }
  for (int32_t j = view->factor_count - 1; j > 0; --j)
    if (j < view->factor_count) merge_into_previous(view, j);
}

// Refines digit j into (extent / q, q). False: its bounds are no box of the two, or there is no room.
static bool split_factor(weft_view_t* view, int32_t j, int64_t q) {
  weft_view_factor_t outer = view->factor[j], inner = outer;
  if (outer.extent % q != 0 || view->factor_count == WEFT_MAX_FACTORS) return false;
  if (outer.lo / q == (outer.hi - 1) / q) {
    inner.lo = outer.lo % q;
    inner.hi = (outer.hi - 1) % q + 1;
    outer.lo /= q;
    outer.hi = outer.lo + 1;
  } else if (outer.lo % q == 0 && outer.hi % q == 0) {
    inner.lo = 0;
    inner.hi = q;
    outer.lo /= q;
    outer.hi /= q;
  } else {
    return false;
  }
  outer.extent /= q;
  outer.step *= q;
  inner.extent = q;
  memmove(&view->factor[j + 2], &view->factor[j + 1], (size_t)(view->factor_count - j - 1) * sizeof(view->factor[0]));
  view->factor[j] = outer;
  view->factor[j + 1] = inner;
  ++view->factor_count;
  return true;
}

// All dimensions become one: the row-major index of the operand's element.
static void flatten(weft_view_t* view, const weft_shape_t* shape) {
  int64_t stride[WEFT_MAX_RANK], flat_offset = 0, step = 1;
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    stride[d] = step;
    step *= shape->extent[d];
    flat_offset += view->offset[d] * stride[d];
  }
  for (int32_t j = 0; j < view->factor_count; ++j) {
    weft_view_factor_t* factor = &view->factor[j];
    if (factor->dim < 0) continue;
    factor->step *= stride[factor->dim];
    factor->dim = 0;
  }
  memset(view->offset, 0, sizeof(view->offset));
  view->offset[0] = flat_offset;
  view->rank = 1;
  simplify(view);
}

// The inverse, for another shape: peels one dimension after the other off the flat index F, outermost first. With
// `unit` elements below it, F = unit * coordinate + rest must hold with one and the same carry for all digits.
static bool unflatten(weft_view_t* view, const weft_shape_t* to) {
  const int32_t rest = WEFT_MAX_RANK; // marks the digits that are still part of the flat index
  int64_t flat_offset = view->offset[0], unit = weft_shape_elements(to);
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].dim == 0) view->factor[j].dim = rest;
  memset(view->offset, 0, sizeof(view->offset));
  view->rank = to->rank;
  for (int32_t d = 0; d < to->rank; ++d) {
    unit /= to->extent[d];
    int64_t smallest = flat_offset, largest = flat_offset;
    for (int32_t j = 0; j < view->factor_count; ++j) {
      if (view->factor[j].dim != rest) continue;
      int64_t step = magnitude(view->factor[j].step);
      if (step < unit && view->factor[j].extent > unit / step && unit % step == 0) split_factor(view, j, unit / step);
      weft_view_factor_t* factor = &view->factor[j];
      if (factor->step % unit == 0) {
        factor->dim = d;
        factor->step /= unit;
        continue;
      }
      int64_t a = factor->step * factor->lo, b = factor->step * (factor->hi - 1);
      smallest += weft_min_i64(a, b);
      largest += weft_max_i64(a, b);
    }
    view->offset[d] = weft_floor_div(smallest, unit);
    if (weft_floor_div(largest, unit) != view->offset[d]) return false;
    flat_offset -= view->offset[d] * unit;
  }
  return true;
}

bool weft_view_reshape(weft_view_t* view, weft_shape_t* shape, const weft_shape_t* to) {
  int64_t elements = weft_shape_elements(shape);
  if (elements != weft_shape_elements(to) || elements == INT64_MAX) return false;
  weft_view_t result = *view;
  if (elements == 0 || is_empty(view)) {
    make_empty(&result);
    result.rank = to->rank;
  } else {
    flatten(&result, shape);
    if (!unflatten(&result, to)) return false;
    simplify(&result);
  }
  *view = result;
  *shape = *to;
  return true;
}

bool weft_view_transpose(weft_view_t* view, weft_shape_t* shape, const int32_t* permutation) {
  weft_view_t old_view = *view;
  weft_shape_t old_shape = *shape;
  int32_t inverse[WEFT_MAX_RANK];
  for (int32_t d = 0; d < shape->rank; ++d) inverse[d] = -1;
  for (int32_t d = 0; d < shape->rank; ++d) {
    if (permutation[d] < 0 || permutation[d] >= shape->rank || inverse[permutation[d]] >= 0) return false;
    inverse[permutation[d]] = d;
  }
  for (int32_t d = 0; d < shape->rank; ++d) {
    shape->extent[d] = old_shape.extent[permutation[d]];
    view->offset[d] = old_view.offset[permutation[d]];
  }
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].dim >= 0) view->factor[j].dim = inverse[view->factor[j].dim];
  return true;
}

// Keeps every `step`-th coordinate of dimension d from `start` on, and divides: coordinate = start + step * new
// coordinate. At most one digit may have to be refined for that.
static bool divide_dim(weft_view_t* view, int32_t d, int64_t start, int64_t step) {
  int32_t odd = -1; // the digit whose steps are no multiple of `step`
  for (int32_t j = 0; j < view->factor_count; ++j) {
    if (view->factor[j].dim != d || view->factor[j].step % step == 0) continue;
    if (odd >= 0) return false;
    odd = j;
  }
  view->offset[d] -= start;
  if (odd >= 0) {
    weft_view_factor_t* factor = &view->factor[odd];
    int64_t q = magnitude(step) / gcd(magnitude(factor->step), magnitude(step)), residue = 0;
    while (residue < q && (view->offset[d] + factor->step * residue) % step != 0) ++residue;
    int64_t lo = factor->lo + ((residue - factor->lo) % q + q) % q; // the first and last that are kept
    int64_t last = factor->hi - 1 - ((factor->hi - 1 - residue) % q + q) % q;
    if (residue == q || lo > last) {
      make_empty(view);
      return true;
    }
    if (lo == last) {
      factor->lo = lo;
      factor->hi = lo + 1;
      view->offset[d] += factor->step * lo;
      factor->dim = -1;
    } else {
      // Cut to whole groups first: the kept residue bounds what is inside them.
      factor->lo = lo / q * q;
      factor->hi = (last / q + 1) * q;
      if (factor->hi > factor->extent || !split_factor(view, odd, q)) return false;
      weft_view_factor_t* inner = &view->factor[odd + 1];
      view->offset[d] += inner->step * residue;
      inner->lo = residue;
      inner->hi = residue + 1;
      inner->dim = -1;
    }
  }
  if (view->offset[d] % step != 0) {
    make_empty(view);
    return true;
  }
  view->offset[d] /= step;
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].dim == d) view->factor[j].step /= step;
  return true;
}

// Restricts dimension d to 0 <= coordinate < size by the bounds of its digits: the outermost one keeps whole groups of
// inner digits, or exactly one group in which the next one continues.
static bool restrict_dim(weft_view_t* view, int32_t d, int64_t size) {
  int32_t order[WEFT_MAX_FACTORS], count = 0;
  for (int32_t j = 0; j < view->factor_count; ++j) {
    if (view->factor[j].dim != d) continue;
    int32_t at = count++;
    for (; at > 0 && magnitude(view->factor[order[at - 1]].step) < magnitude(view->factor[j].step); --at)
      order[at] = order[at - 1];
    order[at] = j;
  }
  int64_t base = view->offset[d];
  for (int32_t k = 0; k < count; ++k) {
    int64_t inner_min = base, inner_max = base, touch_lo, touch_hi, whole_lo, whole_hi;
    for (int32_t inner = k + 1; inner < count; ++inner) {
      const weft_view_factor_t* factor = &view->factor[order[inner]];
      int64_t a = factor->step * factor->lo, b = factor->step * (factor->hi - 1);
      inner_min += weft_min_i64(a, b);
      inner_max += weft_max_i64(a, b);
    }
    weft_view_factor_t* factor = &view->factor[order[k]];
    weft_lattice_solve(factor->step, -inner_max, size - inner_min, &touch_lo, &touch_hi);
    weft_lattice_solve(factor->step, -inner_min, size - inner_max, &whole_lo, &whole_hi);
    touch_lo = weft_max_i64(touch_lo, factor->lo);
    touch_hi = weft_min_i64(touch_hi, factor->hi);
    if (touch_lo >= touch_hi) {
      make_empty(view);
      return true;
    }
    factor->lo = touch_lo;
    factor->hi = touch_hi;
    if (whole_lo <= touch_lo && touch_hi <= whole_hi) return true;
    if (touch_hi - touch_lo != 1) return false;
    base += factor->step * touch_lo;
  }
  if (base < 0 || base >= size) make_empty(view);
  return true;
}

bool weft_view_slice(weft_view_t* view, weft_shape_t* shape, const int64_t* start, const int64_t* size,
                     const int64_t* step) {
  weft_view_t result = *view;
  weft_shape_t result_shape = *shape;
  simplify(&result);
  for (int32_t d = 0; d < shape->rank; ++d) {
    int64_t stride = size[d] > 1 ? step[d] : 1, last = start[d] + (size[d] - 1) * stride;
    if (size[d] < 0 || stride == 0) return false;
    if (size[d] > 0 && (start[d] < 0 || start[d] >= shape->extent[d] || last < 0 || last >= shape->extent[d]))
      return false;
    result_shape.extent[d] = size[d];
    if (size[d] == 0) {
      make_empty(&result);
      continue;
    }
    if (!divide_dim(&result, d, start[d], stride) || is_empty(&result)) {
      if (!is_empty(&result)) return false;
      continue;
    }
    if (!restrict_dim(&result, d, size[d])) return false;
  }
  simplify(&result);
  *view = result;
  *shape = result_shape;
  return true;
}

bool weft_view_pad(weft_view_t* view, weft_shape_t* shape, const int64_t* low, const int64_t* high) {
  // A negative amount cuts off, as ONNX's Pad does.
  weft_view_t result = *view;
  weft_shape_t result_shape = *shape;
  int64_t start[WEFT_MAX_RANK] = {0}, size[WEFT_MAX_RANK] = {0}, step[WEFT_MAX_RANK] = {0};
  bool cuts = false;
  for (int32_t d = 0; d < shape->rank; ++d) {
    start[d] = weft_max_i64(0, -low[d]);
    size[d] = shape->extent[d] - start[d] - weft_max_i64(0, -high[d]);
    step[d] = 1;
    cuts = cuts || start[d] > 0 || high[d] < 0;
    if (size[d] < 0) return false;
  }
  if (cuts && !weft_view_slice(&result, &result_shape, start, size, step)) return false;
  bool empty = is_empty(&result);
  for (int32_t d = 0; d < shape->rank; ++d) {
    int64_t extent;
    if (!weft_checked_add(result_shape.extent[d], weft_max_i64(0, low[d]), &extent) ||
        !weft_checked_add(extent, weft_max_i64(0, high[d]), &result_shape.extent[d]))
      return false;
    if (!empty) result.offset[d] += weft_max_i64(0, low[d]);
  }
  *view = result;
  *shape = result_shape;
  return true;
}
