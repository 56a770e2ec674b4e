// The order in which a tensor travels, and what a sink takes of it.
#include <string.h>

#include "base/checked.h"
#include "ir/fabric/lattice.h"
#include "ir/fabric/streams.h"

int32_t weft_split_result_row(const weft_kernel_t* kernel, const weft_buffer_t* buffer, int32_t dim) {
  int32_t found = -1;
  for (int32_t r = 0; r < buffer->rank; ++r) {
    if (buffer->row[r].coefficient[dim] == 0) continue;
    if (found >= 0 || buffer->row[r].coefficient[dim] != 1 || buffer->row[r].offset != 0) return -1;
    for (int32_t other = 0; other < kernel->dim_count; ++other)
      if (other != dim && kernel->dim[other].extent > 1 && buffer->row[r].coefficient[other] != 0) return -1;
    found = r;
  }
  return found;
}

weft_status_t weft_split_walk(const weft_fabric_t* fabric, int32_t tensor, weft_walk_t* out_walk) {
  const weft_tensor_t* t = &fabric->tensor[tensor];
  weft_walk_t walk = {.box = weft_box_of_shape(&t->shape)};
  int64_t block[WEFT_MAX_RANK];
  memcpy(block, t->shape.extent, sizeof(block));
  if (t->kind == WEFT_TENSOR_RESULT) {
    const weft_kernel_t* kernel = &fabric->kernel[t->kernel];
    if (kernel->chosen < 0 || kernel->chosen >= kernel->alternative_count)
      return weft_error(INVALID_ARGUMENT, "kernel '%s' has no alternative chosen yet", kernel->name);
    const weft_split_t* split = &kernel->alternative[kernel->chosen].split;
    bool by_columns = weft_split_by_columns(split);
    const weft_axis_factor_t *outer = by_columns ? split->x : split->y, *inner = by_columns ? split->y : split->x;
    int32_t outer_count = by_columns ? split->x_count : split->y_count;
    for (int32_t i = 0; i < split->y_count + split->x_count; ++i) {
      const weft_axis_factor_t* factor = i < outer_count ? &outer[i] : &inner[i - outer_count];
      if (kernel->dim[factor->dim].kind == WEFT_DIM_REDUCTION || factor->parts == 1) continue; // the last tile owns
      int32_t r = weft_split_result_row(kernel, &kernel->buffer[t->buffer], factor->dim);
      if (r < 0)
        return weft_error(INVALID_INPUT,
                          "kernel '%s': dimension d%d is split, so it must be a coordinate of result '%s' by itself",
                          kernel->name, factor->dim, t->name);
      block[r] = weft_split_block(kernel, split, factor->dim);
      walk.level[walk.level_count++] = (weft_walk_level_t){factor->parts, r, block[r]};
    }
  }
  walk.source_levels = walk.level_count;
  for (int32_t r = 0; r < t->shape.rank; ++r) walk.level[walk.level_count++] = (weft_walk_level_t){block[r], r, 1};
  *out_walk = walk;
  return weft_ok();
}

// What the levels from `first` on add to coordinate `dim`.
static weft_lattice_t lattice_of_levels(const weft_walk_t* walk, int32_t first, int32_t dim) {
  weft_lattice_t lattice = {0};
  for (int32_t k = first; k < walk->level_count; ++k)
    if (walk->level[k].dim == dim) weft_lattice_insert(&lattice, 0, walk->level[k].extent, walk->level[k].step);
  return lattice;
}

static int64_t count_elements(const weft_walk_t* walk, int32_t first, const int64_t* base) {
  int64_t elements = 1;
  for (int32_t d = 0; d < walk->box.rank && elements > 0; ++d) {
    weft_lattice_t lattice = lattice_of_levels(walk, first, d);
    elements *= weft_lattice_count(&lattice, base[d], walk->box.lo[d], walk->box.hi[d]);
  }
  return elements;
}

int64_t weft_walk_elements(const weft_walk_t* walk) {
  int64_t base[WEFT_MAX_RANK] = {0};
  return count_elements(walk, 0, base);
}

int64_t weft_walk_segment_elements(const weft_walk_t* walk, int64_t source_index) {
  int64_t base[WEFT_MAX_RANK] = {0};
  for (int32_t k = walk->source_levels - 1; k >= 0; --k) {
    base[walk->level[k].dim] += source_index % walk->level[k].extent * walk->level[k].step;
    source_index /= walk->level[k].extent;
  }
  return count_elements(walk, walk->source_levels, base);
}

typedef struct run_t {
  int64_t position, count, target, step;
} run_t;

typedef struct scan_t {
  const weft_view_t* view;
  const weft_box_t* filter;
  const int64_t* strides;
  weft_stream_run_fn run;
  void* self;
  weft_walk_t walk;                      // without levels that count nothing
  weft_box_t need;                       // what of the tensor can matter: walk.box and the filter's preimage
  int64_t tensor_stride[WEFT_MAX_RANK];  // row-major, elements
  weft_lattice_t below[WEFT_MAX_LEVELS]; // for level k: the levels of its dimension after it
  int64_t below_min[WEFT_MAX_LEVELS], below_max[WEFT_MAX_LEVELS];
  int64_t delta[WEFT_MAX_FACTORS], inner_delta; // the innermost level's step in the flat index, and its digits
  int64_t coordinate[WEFT_MAX_RANK];
  int64_t left[WEFT_MAX_RANK]; // along each dimension: elements in walk.box that the levels not yet fixed have
  run_t pending;
} scan_t;

static weft_status_t flush(scan_t* scan) {
  run_t run = scan->pending;
  scan->pending.count = 0;
  return run.count ? scan->run(scan->self, run.position, run.count, run.target, run.step) : weft_ok();
}

// Joins the run to the pending one where it continues it in the stream and in the buffer.
static weft_status_t emit(scan_t* scan, run_t run) {
  run_t* pending = &scan->pending;
  if (pending->count > 0 && pending->position + pending->count == run.position) {
    int64_t step = pending->count > 1 ? pending->step : run.target - pending->target;
    if (pending->target + step * pending->count == run.target && (run.count == 1 || run.step == step)) {
      pending->step = step;
      pending->count += run.count;
      return weft_ok();
    }
  }
  WEFT_RETURN_IF_ERROR(flush(scan));
  *pending = run;
  return weft_ok();
}

// Cuts [*from, *to) to the t for which lo <= value + step * t < hi.
static void cut(int64_t value, int64_t step, int64_t lo, int64_t hi, int64_t* from, int64_t* to) {
  int64_t first = value + step * *from, last = value + step * (*to - 1);
  if (lo <= weft_min_i64(first, last) && weft_max_i64(first, last) < hi) return; // mostly; spares the divisions
  int64_t a, b;
  weft_lattice_solve(step, lo - value, hi - value, &a, &b);
  *from = weft_max_i64(*from, a);
  *to = weft_min_i64(*to, b);
}

// Writes a flat index in the view's mixed radix.
static void digits_of(const weft_view_t* view, int64_t flat, int64_t* out_digit) {
  for (int32_t j = view->factor_count - 1; j >= 0; --j) {
    out_digit[j] = flat % view->factor[j].extent;
    flat /= view->factor[j].extent;
  }
}

// `count` elements of the innermost level, the first at stream position `position` and flat index `flat`. While no
// digit of the view carries, each of them and each operand coordinate grows by a constant.
static weft_status_t scan_line(scan_t* scan, int64_t position, int64_t flat, int64_t count) {
  const weft_view_t* view = scan->view;
  while (count > 0) {
    int64_t length = count, from = 0, digit[WEFT_MAX_FACTORS] = {0};
    int64_t coordinate[WEFT_MAX_RANK], growth[WEFT_MAX_RANK] = {0};
    memcpy(coordinate, view->offset, sizeof(coordinate));
    digits_of(view, flat, digit);
    for (int32_t j = 0; j < view->factor_count; ++j) {
      const weft_view_factor_t* factor = &view->factor[j];
      if (scan->delta[j] > 0) length = weft_min_i64(length, weft_ceil_div(factor->extent - digit[j], scan->delta[j]));
      if (factor->dim < 0) continue;
      coordinate[factor->dim] += factor->step * digit[j];
      growth[factor->dim] += factor->step * scan->delta[j];
    }
    int64_t to = length;
    for (int32_t j = 0; j < view->factor_count; ++j)
      cut(digit[j], scan->delta[j], view->factor[j].lo, view->factor[j].hi, &from, &to);
    for (int32_t d = 0; d < view->rank; ++d)
      cut(coordinate[d], growth[d], scan->filter->lo[d], scan->filter->hi[d], &from, &to);
    if (from < to) {
      run_t run = {position + from, to - from, 0, 0};
      for (int32_t d = 0; d < view->rank; ++d) {
        run.target += (coordinate[d] + growth[d] * from - scan->filter->lo[d]) * scan->strides[d];
        run.step += growth[d] * scan->strides[d];
      }
      WEFT_RETURN_IF_ERROR(emit(scan, run));
    }
    position += length;
    flat += length * scan->inner_delta;
    count -= length;
  }
  return weft_ok();
}

static int64_t flat_of(const scan_t* scan) {
  int64_t flat = 0;
  for (int32_t d = 0; d < scan->walk.box.rank; ++d) flat += scan->coordinate[d] * scan->tensor_stride[d];
  return flat;
}

// Elements of walk.box among the values [lo, hi) of level k, along its dimension.
static int64_t count_along(const scan_t* scan, int32_t k, int64_t base, int64_t lo, int64_t hi) {
  const weft_walk_level_t* level = &scan->walk.level[k];
  weft_lattice_t lattice = scan->below[k];
  weft_lattice_insert(&lattice, lo, hi, level->step);
  return weft_lattice_count(&lattice, base, scan->walk.box.lo[level->dim], scan->walk.box.hi[level->dim]);
}

// Visits the subtree of level k, whose first element has stream position `position`.
static weft_status_t scan_level(scan_t* scan, int32_t k, int64_t position) {
  const weft_walk_level_t* level = &scan->walk.level[k];
  int32_t d = level->dim;
  int64_t base = scan->coordinate[d], left = scan->left[d], others = 1, lo, hi;
  for (int32_t other = 0; other < scan->walk.box.rank; ++other)
    if (other != d) others *= scan->left[other];
  if (others == 0 || left == 0) return weft_ok();
  weft_lattice_solve(level->step, scan->need.lo[d] - base - scan->below_max[k],
                     scan->need.hi[d] - base - scan->below_min[k], &lo, &hi);
  lo = weft_max_i64(lo, 0);
  hi = weft_min_i64(hi, level->extent);
  if (lo >= hi) return weft_ok();
  if (lo > 0) position += others * count_along(scan, k, base, 0, lo);

  if (k == scan->walk.level_count - 1) {
    scan->coordinate[d] = base + level->step * lo;
    weft_status_t status = scan_line(scan, position, flat_of(scan), hi - lo);
    scan->coordinate[d] = base;
    return status;
  }
  for (int64_t i = lo; i < hi; ++i) {
    scan->coordinate[d] = base + level->step * i;
    scan->left[d] =
        weft_lattice_count(&scan->below[k], scan->coordinate[d], scan->walk.box.lo[d], scan->walk.box.hi[d]);
    WEFT_RETURN_IF_ERROR(scan_level(scan, k + 1, position));
    position += others * scan->left[d];
  }
  scan->coordinate[d] = base;
  scan->left[d] = left;
  return weft_ok();
}

// Levels of extent 1 count nothing; two that count through one dimension without a gap are one.
static void simplify_levels(weft_walk_t* walk) {
  int32_t count = 0;
  for (int32_t k = 0; k < walk->level_count; ++k) {
    weft_walk_level_t level = walk->level[k];
    weft_walk_level_t* previous = count > 0 ? &walk->level[count - 1] : NULL;
    if (level.extent == 1) continue;
    if (previous && previous->dim == level.dim && previous->step == level.step * level.extent) {
      previous->extent *= level.extent;
      previous->step = level.step;
    } else {
      walk->level[count++] = level;
    }
  }
  walk->level_count = count;
}

weft_status_t weft_walk_runs(const weft_walk_t* walk, const weft_shape_t* tensor_shape, const weft_view_t* view,
                             const weft_box_t* filter, const int64_t* strides, weft_stream_run_fn run, void* self) {
  scan_t scan = {.view = view, .filter = filter, .strides = strides, .run = run, .self = self, .walk = *walk};
  weft_box_t preimage = weft_view_preimage(view, tensor_shape, filter);
  scan.need = weft_box_intersect(&walk->box, &preimage);
  if (weft_box_is_empty(&scan.need)) return weft_ok();
  simplify_levels(&scan.walk);

  int64_t weight = 1;
  for (int32_t d = tensor_shape->rank - 1; d >= 0; --d) {
    scan.tensor_stride[d] = weight;
    weight *= tensor_shape->extent[d];
  }
  for (int32_t d = 0; d < walk->box.rank; ++d) {
    weft_lattice_t lattice = lattice_of_levels(&scan.walk, 0, d);
    scan.left[d] = weft_lattice_count(&lattice, 0, walk->box.lo[d], walk->box.hi[d]);
    if (scan.left[d] == 0) return weft_ok();
  }
  int32_t levels = scan.walk.level_count;
  for (int32_t k = 0; k < levels; ++k) {
    scan.below[k] = lattice_of_levels(&scan.walk, k + 1, scan.walk.level[k].dim);
    weft_lattice_span(&scan.below[k], 0, &scan.below_min[k], &scan.below_max[k]);
  }
  if (levels == 0) { // one element
    WEFT_RETURN_IF_ERROR(scan_line(&scan, 0, 0, 1));
    return flush(&scan);
  }
  const weft_walk_level_t* inner = &scan.walk.level[levels - 1];
  scan.inner_delta = inner->step * scan.tensor_stride[inner->dim];
  digits_of(view, scan.inner_delta, scan.delta);
  WEFT_RETURN_IF_ERROR(scan_level(&scan, 0, 0));
  return flush(&scan);
}
