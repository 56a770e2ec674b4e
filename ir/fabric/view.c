#include "ir/fabric/view.h"

#include "base/checked.h"
#include "ir/fabric/lattice.h"

static int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product;
  return weft_checked_mul(a, b, &product) ? product : INT64_MAX;
}

int64_t weft_shape_elements(const weft_shape_t* shape) {
  int64_t elements = 1;
  for (int32_t d = 0; d < shape->rank; ++d) {
    if (shape->extent[d] <= 0) return 0;
    elements = saturating_product(elements, shape->extent[d]);
  }
  return elements;
}

int64_t weft_box_elements(const weft_box_t* box) {
  if (weft_box_is_empty(box)) return 0;
  int64_t elements = 1;
  for (int32_t d = 0; d < box->rank; ++d) elements = saturating_product(elements, box->hi[d] - box->lo[d]);
  return elements;
}

bool weft_box_is_empty(const weft_box_t* box) {
  for (int32_t d = 0; d < box->rank; ++d)
    if (box->hi[d] <= box->lo[d]) return true;
  return false;
}

weft_box_t weft_box_intersect(const weft_box_t* a, const weft_box_t* b) {
  weft_box_t box = {.rank = a->rank};
  for (int32_t d = 0; d < a->rank; ++d) {
    box.lo[d] = weft_max_i64(a->lo[d], b->lo[d]);
    box.hi[d] = weft_max_i64(box.lo[d], weft_min_i64(a->hi[d], b->hi[d]));
  }
  return box;
}

weft_box_t weft_box_hull(const weft_box_t* a, const weft_box_t* b) {
  if (weft_box_is_empty(a)) return *b;
  if (weft_box_is_empty(b)) return *a;
  weft_box_t box = {.rank = a->rank};
  for (int32_t d = 0; d < a->rank; ++d) {
    box.lo[d] = weft_min_i64(a->lo[d], b->lo[d]);
    box.hi[d] = weft_max_i64(a->hi[d], b->hi[d]);
  }
  return box;
}

weft_box_t weft_box_of_shape(const weft_shape_t* shape) {
  weft_box_t box = {.rank = shape->rank};
  for (int32_t d = 0; d < shape->rank; ++d) box.hi[d] = shape->extent[d];
  return box;
}

bool weft_box_equal(const weft_box_t* a, const weft_box_t* b) {
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; ++d)
    if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d]) return false;
  return true;
}

weft_view_t weft_view_identity(const weft_shape_t* shape) {
  weft_view_t view = {.rank = shape->rank};
  for (int32_t d = 0; d < shape->rank; ++d)
    if (shape->extent[d] != 1) // a digit that is always 0 says nothing
      view.factor[view.factor_count++] =
          (weft_view_factor_t){.extent = shape->extent[d], .hi = shape->extent[d], .dim = d, .step = 1};
  return view;
}

bool weft_view_apply(const weft_view_t* view, int64_t flat, int64_t out_coordinate[WEFT_MAX_RANK]) {
  bool inside = true;
  for (int32_t d = 0; d < view->rank; ++d) out_coordinate[d] = view->offset[d];
  for (int32_t j = view->factor_count - 1; j >= 0; --j) {
    const weft_view_factor_t* factor = &view->factor[j];
    if (factor->extent <= 0) return false;
    int64_t digit = flat % factor->extent;
    flat /= factor->extent;
    inside = inside && factor->lo <= digit && digit < factor->hi;
    if (factor->dim >= 0) out_coordinate[factor->dim] += factor->step * digit;
  }
  return inside && flat == 0;
}

static bool view_is_empty(const weft_view_t* view) {
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].lo >= view->factor[j].hi) return true;
  return false;
}

static weft_lattice_t lattice_of_dim(const weft_view_t* view, int32_t dim) {
  weft_lattice_t lattice = {0};
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].dim == dim)
      weft_lattice_insert(&lattice, view->factor[j].lo, view->factor[j].hi, view->factor[j].step);
  return lattice;
}

weft_box_t weft_view_image(const weft_view_t* view) {
  weft_box_t box = {.rank = view->rank};
  if (view_is_empty(view)) return box;
  for (int32_t d = 0; d < view->rank; ++d) {
    weft_lattice_t lattice = lattice_of_dim(view, d);
    weft_lattice_span(&lattice, 0, &box.lo[d], &box.hi[d]);
    box.lo[d] += view->offset[d];
    box.hi[d] += view->offset[d] + 1;
  }
  return box;
}

int64_t weft_view_count(const weft_view_t* view, const weft_box_t* box) {
  int64_t count = 1;
  for (int32_t j = 0; j < view->factor_count; ++j) {
    const weft_view_factor_t* factor = &view->factor[j];
    if (factor->lo >= factor->hi) return 0;
    if (factor->dim < 0) count *= factor->hi - factor->lo;
  }
  for (int32_t d = 0; d < view->rank && count > 0; ++d) {
    weft_lattice_t lattice = lattice_of_dim(view, d);
    count *= weft_lattice_count(&lattice, view->offset[d], box->lo[d], box->hi[d]);
  }
  return count;
}

// Narrows the digits (lo, hi of each factor of `view`) to the hull of those that land in `box`. False: none does.
// Bounds propagation from the factor with the largest step down; a second round uses what the first one found.
static bool narrow_digits(weft_view_t* view, const weft_box_t* box) {
  for (int32_t d = 0; d < view->rank; ++d) {
    int32_t order[WEFT_MAX_FACTORS], count = 0;
    for (int32_t j = 0; j < view->factor_count; ++j) {
      if (view->factor[j].dim != d || view->factor[j].step == 0) continue;
      int32_t at = count++;
      int64_t step = view->factor[j].step < 0 ? -view->factor[j].step : view->factor[j].step;
      for (; at > 0; --at) {
        int64_t other = view->factor[order[at - 1]].step;
        if ((other < 0 ? -other : other) >= step) break;
        order[at] = order[at - 1];
      }
      order[at] = j;
    }
    if (count == 0 && (view->offset[d] < box->lo[d] || view->offset[d] >= box->hi[d])) return false;
    for (int32_t round = 0; round < (count > 1 ? 2 : 1); ++round) {
      for (int32_t k = 0; k < count; ++k) {
        int64_t others_min = view->offset[d], others_max = view->offset[d], lo, hi;
        for (int32_t other = 0; other < count; ++other) {
          if (other == k) continue;
          const weft_view_factor_t* factor = &view->factor[order[other]];
          int64_t a = factor->step * factor->lo, b = factor->step * (factor->hi - 1);
          others_min += weft_min_i64(a, b);
          others_max += weft_max_i64(a, b);
        }
        weft_view_factor_t* factor = &view->factor[order[k]];
        weft_lattice_solve(factor->step, box->lo[d] - others_max, box->hi[d] - others_min, &lo, &hi);
        factor->lo = weft_max_i64(factor->lo, lo);
        factor->hi = weft_min_i64(factor->hi, hi);
        if (factor->lo >= factor->hi) return false;
      }
    }
  }
  return true;
}

// Hull of floor(L / unit) mod extent for L = base + the digits from `first` on, where a digit j weighs weight[j]. Where
// the digits cross a multiple of unit * extent, the largest one is tried value by value while the budget lasts; past
// that the answer is everything, which is never too small.
typedef struct radix_hull_t {
  int32_t count;
  int64_t weight[WEFT_MAX_FACTORS], lo[WEFT_MAX_FACTORS], hi[WEFT_MAX_FACTORS];
  int64_t unit, extent;
  int32_t budget;
  int64_t out_lo, out_hi; // grows
} radix_hull_t;

static void radix_hull(radix_hull_t* hull, int32_t first, int64_t base) {
  if (hull->out_lo == 0 && hull->out_hi == hull->extent) return;
  int64_t smallest = base, largest = base;
  for (int32_t j = first; j < hull->count; ++j) {
    smallest += hull->weight[j] * hull->lo[j];
    largest += hull->weight[j] * (hull->hi[j] - 1);
  }
  int64_t period = hull->unit * hull->extent;
  if (smallest / period == largest / period) {
    hull->out_lo = weft_min_i64(hull->out_lo, smallest % period / hull->unit);
    hull->out_hi = weft_max_i64(hull->out_hi, largest % period / hull->unit + 1);
    return;
  }
  int64_t values = hull->hi[first] - hull->lo[first];
  if (values > hull->budget || (hull->weight[first] <= hull->unit && values * hull->weight[first] >= period)) {
    hull->out_lo = 0;
    hull->out_hi = hull->extent;
    return;
  }
  hull->budget -= (int32_t)values;
  for (int64_t i = hull->lo[first]; i < hull->hi[first]; ++i)
    radix_hull(hull, first + 1, base + hull->weight[first] * i);
}

weft_box_t weft_view_preimage(const weft_view_t* view, const weft_shape_t* tensor_shape, const weft_box_t* box) {
  weft_box_t result = {.rank = tensor_shape->rank};
  weft_view_t narrowed = *view;
  if (view_is_empty(view) || !narrow_digits(&narrowed, box)) return result;
  int64_t unit = 1;
  for (int32_t t = tensor_shape->rank - 1; t >= 0; --t) {
    int64_t extent = tensor_shape->extent[t];
    if (extent <= 0) return (weft_box_t){.rank = tensor_shape->rank};
    radix_hull_t hull = {.unit = unit, .extent = extent, .budget = 256, .out_lo = extent};
    int64_t weights[WEFT_MAX_FACTORS] = {0}, weight = 1;
    for (int32_t j = narrowed.factor_count - 1; j >= 0; --j) {
      weights[j] = weight;
      weight *= narrowed.factor[j].extent;
    }
    for (int32_t j = 0; j < narrowed.factor_count; ++j) {
      if (weights[j] % (unit * extent) == 0) continue; // a whole number of turns of this coordinate
      hull.weight[hull.count] = weights[j];
      hull.lo[hull.count] = narrowed.factor[j].lo;
      hull.hi[hull.count++] = narrowed.factor[j].hi;
    }
    radix_hull(&hull, 0, 0);
    result.lo[t] = hull.out_lo;
    result.hi[t] = hull.out_hi;
    unit *= extent;
  }
  return result;
}

weft_status_t weft_view_print(const weft_view_t* view, weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "["));
  for (int32_t j = 0; j < view->factor_count; ++j) {
    const weft_view_factor_t* factor = &view->factor[j];
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s%lld", j ? " " : "", (long long)factor->extent));
    if (factor->lo != 0 || factor->hi != factor->extent)
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "{%lld:%lld}", (long long)factor->lo, (long long)factor->hi));
    if (factor->dim >= 0)
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, "*%lld->%d", (long long)factor->step, factor->dim));
  }
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "] + ("));
  for (int32_t d = 0; d < view->rank; ++d)
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s%lld", d ? ", " : "", (long long)view->offset[d]));
  return weft_text_printf(text, ")");
}
