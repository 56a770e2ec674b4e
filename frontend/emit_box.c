// Elements at known places that form a box, taken or put as one piece each, however many runs their list has.
#include "base/checked.h"
#include "frontend/emit.h"
#include "frontend/lattice.h"

// The part [offset, offset + size) of an axis.
static weft_status_t part_of(node_t* node, value_t* value, int32_t axis, int64_t offset, int64_t size, value_t** out) {
  int64_t offsets[WEFT_ONNX_MAX_RANK] = {0}, sizes[WEFT_ONNX_MAX_RANK], steps[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    sizes[i] = i == axis ? size : value->shape.extent[i];
    steps[i] = 1;
  }
  offsets[axis] = offset;
  return weft_onnx_slice(node, value, offsets, sizes, steps, out);
}

// --- Taking

// Digits by their steps, largest first: the axis as a number in mixed radix, of which each place gives a range.
typedef struct places_t {
  int32_t count;
  int32_t digit[WEFT_ONNX_MAX_RANK];
  int64_t radix[WEFT_ONNX_MAX_RANK + 1], first[WEFT_ONNX_MAX_RANK + 1]; // the last place is what is below all steps
  int64_t begin;                                                        // where the first place starts on the axis
} places_t;

static bool find_places(const weft_onnx_lattice_t* lattice, int64_t extent, int64_t base, places_t* places) {
  places->count = lattice->digit_count;
  for (int32_t d = 0; d < places->count; ++d) {
    int32_t at = d;
    if (lattice->digit[d].step[0] <= 0) return false;
    for (; at > 0 && lattice->digit[places->digit[at - 1]].step[0] < lattice->digit[d].step[0]; --at)
      places->digit[at] = places->digit[at - 1];
    places->digit[at] = d;
  }
  const weft_onnx_digit_t* top = &lattice->digit[places->digit[0]];
  int64_t above = 0, whole;
  if (!weft_checked_mul(top->extent, top->step[0], &whole)) return false;
  places->begin = weft_min_i64(base, extent - whole); // the last block of the list may be cut off by the axis' end
  if (places->begin < 0) return false;
  int64_t rest = base - places->begin;
  for (int32_t p = 0; p <= places->count; ++p) {
    const weft_onnx_digit_t* digit = p < places->count ? &lattice->digit[places->digit[p]] : NULL;
    int64_t step = digit ? digit->step[0] : 1, size = digit ? digit->extent : 1;
    if (p && above % step != 0) return false;
    places->radix[p] = p ? above / step : size;
    places->first[p] = rest / step;
    if (places->first[p] + size > places->radix[p]) return false; // it overlaps with the next block
    rest %= step;
    above = step;
  }
  return true;
}

weft_status_t weft_onnx_take_box(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                                 value_t** out, bool* out_done) {
  weft_onnx_lattice_t lattice;
  places_t places;
  shape_t result = value->shape, split = {.rank = 1, .extent = {1}};
  *out_done = count > 1 && weft_onnx_lattice_find(count, 1, index, &lattice) &&
              lattice.digit_count + 3 <= WEFT_ONNX_MAX_RANK &&
              find_places(&lattice, value->shape.extent[axis], index[0], &places);
  if (!*out_done) return weft_ok();
  result.extent[axis] = count;
  TRY(part_of(node, value, axis, places.begin, places.radix[0] * lattice.digit[places.digit[0]].step[0], &value));
  int64_t first[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK], inner = 1;
  int32_t order[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < axis; ++i) split.extent[0] *= value->shape.extent[i];
  for (int32_t i = axis + 1; i < value->shape.rank; ++i) inner *= value->shape.extent[i];
  for (int32_t p = 0; p <= places.count; ++p) split.extent[split.rank++] = places.radix[p];
  split.extent[split.rank++] = inner;
  for (int32_t i = 0; i < split.rank; ++i) {
    int32_t p = i - 1;
    bool is_place = p >= 0 && p <= places.count;
    first[i] = is_place ? places.first[p] : 0;
    size[i] = !is_place ? split.extent[i] : p < places.count ? lattice.digit[places.digit[p]].extent : 1;
    step[i] = 1;
    order[i] = i;
  }
  for (int32_t p = 0; p < places.count; ++p) order[1 + places.digit[p]] = 1 + p;
  TRY(weft_onnx_reshape(node, value, &split, &value));
  TRY(weft_onnx_slice(node, value, first, size, step, &value));
  TRY(weft_onnx_transpose(node, value, order, &value));
  return weft_onnx_reshape(node, value, &result, out);
}

weft_status_t weft_onnx_take_walk(node_t* node, value_t* value, int32_t axis, int64_t count, const int64_t* index,
                                  value_t** out, bool* out_done) {
  weft_onnx_lattice_t lattice;
  int32_t rank = value->shape.rank;
  shape_t result = value->shape;
  *out_done = count > 1 && weft_onnx_lattice_find(count, 1, index, &lattice) && lattice.digit_count <= 2 &&
              rank + (lattice.digit_count == 2) <= WEFT_ONNX_MAX_RANK;
  if (!*out_done) return weft_ok();
  result.extent[axis] = count;
  bool is_nested = lattice.digit_count == 2;
  weft_onnx_generic_t copy = {.rank = rank + is_nested, .operand_count = 1, .dtype = value->dtype};
  copy.operand[0] = (weft_onnx_operand_t){.value = value, .rank = rank};
  for (int32_t i = 0; i < rank; ++i) {
    int32_t dim = i + (i > axis && is_nested);
    copy.extent[dim] = value->shape.extent[i];
    copy.operand[0].axis[i] = weft_onnx_along(dim);
  }
  copy.extent[axis] = lattice.digit[0].extent;
  if (is_nested) copy.extent[axis + 1] = lattice.digit[1].extent;
  copy.operand[0].axis[axis] = (weft_onnx_axis_map_t){axis, is_nested ? axis + 1 : -1, lattice.digit[0].step[0],
                                                      is_nested ? lattice.digit[1].step[0] : 0, index[0]};
  TRY(weft_onnx_generic(node, &copy, &value));
  return weft_onnx_reshape(node, value, &result, out);
}

// --- Putting

typedef struct box_t {
  int64_t start[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
} box_t;

static weft_status_t put_from(node_t* node, value_t* data, int32_t axis, const box_t* box, value_t* updates,
                              value_t** out);

// What lies before and behind [begin, begin + size) of the axis stays; `middle` comes between.
static weft_status_t put_between(node_t* node, value_t* data, int32_t axis, int64_t begin, int64_t size,
                                 value_t* middle, value_t** out) {
  value_t* part[3];
  TRY(part_of(node, data, axis, 0, begin, &part[0]));
  part[1] = middle;
  TRY(part_of(node, data, axis, begin + size, data->shape.extent[axis] - begin - size, &part[2]));
  return weft_onnx_concat(node, axis, 3, part, out);
}

// Every step-th element: the axis becomes (count, step), and they are one column of it.
static weft_status_t put_apart(node_t* node, value_t* data, int32_t axis, const box_t* box, value_t* updates,
                               value_t** out) {
  int64_t count = updates->shape.extent[axis], extent = data->shape.extent[axis], step = box->step[axis];
  int64_t begin = weft_min_i64(box->start[axis], extent - count * step);
  if (begin < 0) { // there is no room for a last gap: the last element goes by itself
    int64_t split = box->start[axis] + (count - 1) * step;
    value_t *part[2], *update;
    box_t last = *box;
    last.start[axis] = 0;
    last.step[axis] = 1;
    TRY(part_of(node, data, axis, 0, split, &part[0]));
    TRY(part_of(node, updates, axis, 0, count - 1, &update));
    TRY(put_from(node, part[0], axis, box, update, &part[0]));
    TRY(part_of(node, data, axis, split, extent - split, &part[1]));
    TRY(part_of(node, updates, axis, count - 1, 1, &update));
    TRY(put_from(node, part[1], axis, &last, update, &part[1]));
    return weft_onnx_concat(node, axis, 2, part, out);
  }
  value_t* middle;
  box_t inner = {{0}, {0}};
  TRY(part_of(node, data, axis, begin, count * step, &middle));
  shape_t whole = middle->shape, split = {.rank = whole.rank + 1};
  for (int32_t i = 0; i < split.rank; ++i) {
    split.extent[i] = i == axis ? count : i == axis + 1 ? step : whole.extent[i < axis ? i : i - 1];
    inner.start[i] = i <= axis ? 0 : i == axis + 1 ? box->start[axis] - begin : box->start[i - 1];
    inner.step[i] = i <= axis + 1 ? 1 : box->step[i - 1];
  }
  TRY(weft_onnx_reshape(node, middle, &split, &middle));
  TRY(weft_onnx_unsqueeze(node, updates, axis + 1, &updates));
  TRY(put_from(node, middle, axis + 1, &inner, updates, &middle));
  TRY(weft_onnx_reshape(node, middle, &whole, &middle));
  return put_between(node, data, axis, begin, count * step, middle, out);
}

// The first axis from `axis` on that the updates do not cover.
static int32_t partial_axis(const value_t* data, int32_t axis, const value_t* updates) {
  while (axis < data->shape.rank && updates->shape.extent[axis] == data->shape.extent[axis]) ++axis;
  return axis;
}

// Axes before `axis` are covered.
static weft_status_t put_from(node_t* node, value_t* data, int32_t axis, const box_t* box, value_t* updates,
                              value_t** out) {
  axis = partial_axis(data, axis, updates);
  *out = updates;
  if (axis == data->shape.rank) return weft_ok();
  int64_t begin = box->start[axis], size = updates->shape.extent[axis];
  if (box->step[axis] > 1 && size > 1) return put_apart(node, data, axis, box, updates, out);
  value_t* middle = updates;
  if (partial_axis(data, axis + 1, updates) < data->shape.rank) {
    TRY(part_of(node, data, axis, begin, size, &middle));
    TRY(put_from(node, middle, axis + 1, box, updates, &middle));
  }
  return put_between(node, data, axis, begin, size, middle, out);
}

weft_status_t weft_onnx_put_box(node_t* node, value_t* data, int32_t width, int64_t count, const int64_t* point,
                                value_t* updates, value_t** out, bool* out_done) {
  weft_onnx_lattice_t lattice;
  int32_t rank = data->shape.rank, inner = rank - width, strided = 0, order[WEFT_ONNX_MAX_RANK], at = 0;
  shape_t shape = data->shape, walked = {.rank = 0};
  int32_t digit_of[WEFT_ONNX_MAX_RANK];
  box_t box = {{0}, {0}};
  *out_done = false;
  if (count == 0 || !weft_onnx_lattice_find(count, width, point, &lattice)) return weft_ok();
  for (int32_t i = 0; i < rank; ++i) {
    box.start[i] = i < width ? point[i] : 0;
    box.step[i] = 1;
    digit_of[i] = -1;
    if (i < width) shape.extent[i] = 1;
  }
  for (int32_t d = 0; d < lattice.digit_count; ++d) {
    int32_t axis = -1;
    for (int32_t i = 0; i < width; ++i) {
      if (lattice.digit[d].step[i] == 0) continue;
      if (axis >= 0 || digit_of[i] >= 0 || lattice.digit[d].step[i] < 0) return weft_ok();
      axis = i;
    }
    if (axis < 0) return weft_ok(); // the same place several times
    digit_of[axis] = d;
    box.step[axis] = lattice.digit[d].step[axis];
    shape.extent[axis] = walked.extent[walked.rank++] = lattice.digit[d].extent;
    strided += box.step[axis] > 1;
  }
  *out_done = rank + strided <= WEFT_ONNX_MAX_RANK;
  if (!*out_done) return weft_ok();
  for (int32_t i = 0; i < width; ++i)
    if (digit_of[i] >= 0) order[at++] = digit_of[i];
  for (int32_t i = 0; i < inner; ++i) {
    order[at++] = walked.rank;
    walked.extent[walked.rank++] = data->shape.extent[width + i];
  }
  TRY(weft_onnx_reshape(node, updates, &walked, &updates));
  TRY(weft_onnx_transpose(node, updates, order, &updates));
  TRY(weft_onnx_reshape(node, updates, &shape, &updates));
  return put_from(node, data, 0, &box, updates, out);
}
