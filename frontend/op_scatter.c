// Writing at indices, and reading at index tuples. Constant indices of a plain scatter are movement, of few pieces
// where they walk through a box; otherwise each position is compared with the indices, as Gather does it.
#include <string.h>

#include "base/checked.h"
#include "frontend/operators.h"

#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)

// --- Results at positions along one axis: where an index names the position, the updates, combined.

// x: index, position, updates, accumulator. The index was made positive.
static scalar_t hits(body_t* b, const scalar_t* x) {
  return s_compare(b, WEFT_ONNX_EQ, x[0], x[1]);
}
BODY(add_hits) {
  return s_add(b, x[3], s_select(b, hits(b, x), x[2], s_const(x[2], 0)));
}
BODY(multiply_hits) {
  return s_mul(b, x[3], s_select(b, hits(b, x), x[2], s_const(x[2], 1)));
}
BODY(largest_hit) {
  return s_max(b, x[3], s_select(b, hits(b, x), x[2], s_const(x[2], weft_onnx_lowest(x[2].dtype))));
}
BODY(smallest_hit) {
  return s_min(b, x[3], s_select(b, hits(b, x), x[2], s_const(x[2], weft_onnx_highest(x[2].dtype))));
}
// x: index, position, accumulator.
BODY(any_hit) {
  return s_max(b, x[2], s_select(b, hits(b, x), s_const(x[2], 1), s_const(x[2], 0)));
}
BODY(written_or_kept) {
  return s_select(b, s_compare(b, WEFT_ONNX_NE, x[0], s_const(x[0], 0)), x[1], x[2]);
}
BODY(smaller) {
  return s_min(b, x[0], x[1]);
}
BODY(larger) {
  return s_max(b, x[0], x[1]);
}

typedef struct reduction_t {
  const char* name;
  weft_onnx_body_fn combine, with_data; // with_data NULL: the data is overwritten
} reduction_t;
static const reduction_t reductions[] = {{"none", add_hits, NULL},
                                         {"add", add_hits, weft_onnx_body_add},
                                         {"mul", multiply_hits, weft_onnx_body_mul},
                                         {"max", largest_hit, larger},
                                         {"min", smallest_hit, smaller}};

static weft_status_t find_reduction(node_t* node, const reduction_t** out) {
  const char* name;
  TRY(weft_onnx_attribute_string(node, "reduction", "none", &name));
  for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); ++i)
    if (strcmp(name, reductions[i].name) == 0) {
      *out = &reductions[i];
      return weft_ok();
    }
  return NODE_ERROR(node, INVALID_INPUT, "reduction is '%s', expected none, add, mul, max or min", name);
}

static double neutral(const reduction_t* reduction, weft_dtype_e dtype) {
  if (reduction->combine == largest_hit) return weft_onnx_lowest(dtype);
  if (reduction->combine == smallest_hit) return weft_onnx_highest(dtype);
  return reduction->combine == multiply_hits ? 1 : 0;
}

// Updates of data's rank and, outside of the axis, of its extents. The index has the updates' axes in index_axes.
typedef struct scatter_t {
  int32_t axis;
  uint32_t index_axes;
  value_t *data, *index, *updates;
  const reduction_t* reduction;
} scatter_t;

// Without the updates: whether any index names the position; extents are 1 where the index has no axis.
static weft_status_t hits_of(node_t* node, const scatter_t* scatter, bool with_updates, value_t** out) {
  int32_t rank = scatter->data->shape.rank, k = rank, axis = scatter->axis;
  const shape_t* from = &scatter->updates->shape;
  value_t* position;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, scatter->data->shape.extent[axis], &position));
  weft_dtype_e dtype = with_updates ? scatter->updates->dtype : WEFT_DTYPE_I32;
  weft_onnx_generic_t generic = {.rank = rank + 1,
                                 .reduction = 1u << k,
                                 .operand_count = with_updates ? 3 : 2,
                                 .operand = {{scatter->index, 0, {{0}}}, {position, 1, {weft_onnx_along(axis)}}},
                                 .dtype = dtype,
                                 .initial = with_updates ? neutral(scatter->reduction, dtype) : 0,
                                 .body = with_updates ? scatter->reduction->combine : any_hit};
  weft_onnx_operand_t *index = &generic.operand[0], *updates = &generic.operand[2];
  if (with_updates) *updates = (weft_onnx_operand_t){.value = scatter->updates, .rank = rank};
  for (int32_t i = 0; i < rank; ++i) {
    bool is_used = with_updates || i == axis || (scatter->index_axes >> i & 1);
    generic.extent[i] = i == axis ? scatter->data->shape.extent[i] : is_used ? from->extent[i] : 1;
    if (with_updates) updates->axis[i] = weft_onnx_along(i == axis ? k : i);
    if (scatter->index_axes >> i & 1) index->axis[index->rank++] = weft_onnx_along(i == axis ? k : i);
  }
  generic.extent[k] = from->extent[axis];
  return weft_onnx_generic(node, &generic, out);
}

// To data's extents along some axes, where the updates cover less.
static weft_status_t grow(node_t* node, const shape_t* shape, uint32_t axes, double fill, value_t** value) {
  int64_t low[WEFT_ONNX_MAX_RANK] = {0}, high[WEFT_ONNX_MAX_RANK] = {0};
  for (int32_t i = 0; i < shape->rank; ++i)
    if (axes >> i & 1) high[i] = shape->extent[i] - (*value)->shape.extent[i];
  return weft_onnx_pad(node, *value, low, high, fill, value);
}

static weft_status_t scatter_by_comparing(node_t* node, const scatter_t* scatter, value_t** out) {
  value_t *written, *is_written;
  weft_dtype_e dtype = scatter->data->dtype;
  if (weft_onnx_count(scatter->updates) == 0) {
    *out = scatter->data;
    return weft_ok();
  }
  TRY(hits_of(node, scatter, true, &written));
  TRY(grow(node, &scatter->data->shape, ~0u, neutral(scatter->reduction, dtype), &written));
  if (scatter->reduction->with_data)
    return weft_onnx_binary(node, scatter->reduction->with_data, scatter->data, written, out);
  TRY(hits_of(node, scatter, false, &is_written));
  TRY(grow(node, &scatter->data->shape, scatter->index_axes, 0, &is_written));
  return weft_onnx_pointwise(node, written_or_kept, NULL, dtype, 3, (value_t*[]){is_written, written, scatter->data},
                             out);
}

// p: the extent, of which negative indices count from the end.
BODY(from_start) {
  scalar_t index = s_cast(b, x[0], WEFT_DTYPE_I64);
  return s_select(b, s_compare(b, WEFT_ONNX_LT, index, s_const(index, 0)), s_add(b, index, s_const(index, b->p[0])),
                  index);
}

static weft_status_t positive_index(node_t* node, value_t* index, int64_t extent, value_t** out) {
  double p[] = {(double)extent};
  NODE_REQUIRE(node, index->dtype == WEFT_DTYPE_I64 || index->dtype == WEFT_DTYPE_I32, INVALID_INPUT,
               "indices are %s, expected i32 or i64", weft_dtype_name(index->dtype));
  TRY(weft_onnx_pointwise(node, from_start, p, WEFT_DTYPE_I64, 1, &index, out));
  for (int64_t i = 0; (*out)->data && i < weft_onnx_count(*out); ++i) {
    int64_t at = weft_onnx_load_int(*out, i);
    NODE_REQUIRE(node, at >= 0 && at < extent, INVALID_INPUT, "index %lld is outside of an axis with %lld elements",
                 (long long)(at < 0 ? at - extent : at), (long long)extent);
  }
  return weft_ok();
}

// --- Known indices: rows of the data and of the updates behind it, picked. row[u]: where update u goes.
enum { MAX_MOVED_RUNS = 512 };

static weft_status_t scatter_known(node_t* node, value_t* data, value_t* updates, const int64_t* row, value_t** out,
                                   bool* out_done) {
  int64_t rows = data->shape.extent[0], count = updates->shape.extent[0], *source, runs = 1;
  value_t* both;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)rows + 1, &source));
  for (int64_t i = 0; i < rows; ++i) source[i] = i;
  for (int64_t i = 0; i < count; ++i) source[row[i]] = rows + i;
  for (int64_t i = 1; i < rows; ++i) runs += source[i] != source[i - 1] + 1;
  *out_done = runs <= MAX_MOVED_RUNS || (data->data && updates->data);
  if (!*out_done) return weft_ok();
  TRY(weft_onnx_concat(node, 0, 2, (value_t*[]){data, updates}, &both));
  return weft_onnx_take(node, both, 0, rows, source, out);
}

static weft_status_t row_list(node_t* node, const value_t* index, int64_t** out) {
  int64_t count = weft_onnx_count(index);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, out));
  for (int64_t i = 0; i < count; ++i) (*out)[i] = weft_onnx_load_int(index, i);
  return weft_ok();
}

// Along one axis of any rank; index and updates have one shape.
// The places in `data` that known indices name: all coordinates of each update.
static weft_status_t places_of_elements(node_t* node, const scatter_t* scatter, const int64_t* row, int64_t** out) {
  const shape_t* from = &scatter->updates->shape;
  int64_t count = weft_onnx_count(scatter->updates);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)(count * from->rank) + 1, out));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (int32_t d = from->rank - 1; d >= 0; rest /= from->extent[d--])
      (*out)[i * from->rank + d] = d == scatter->axis ? row[i] : rest % from->extent[d];
  }
  return weft_ok();
}

static weft_status_t emit_scatter_elements(node_t* node) {
  scatter_t scatter = {.data = node->input[0], .updates = node->input[2], .index_axes = ~0u};
  value_t* index = node->input[1];
  const shape_t *shape = &scatter.data->shape, *from = &scatter.updates->shape;
  TRY(find_reduction(node, &scatter.reduction));
  TRY(weft_onnx_axis(node, 0, shape->rank, &scatter.axis));
  NODE_REQUIRE(node, weft_onnx_shape_equal(&index->shape, from) && from->rank == shape->rank, INVALID_INPUT,
               "indices have shape %s and updates %s, expected one shape of rank %d",
               weft_onnx_shape_format(&index->shape).text, weft_onnx_shape_format(from).text, shape->rank);
  for (int32_t i = 0; i < shape->rank; ++i)
    NODE_REQUIRE(node, i == scatter.axis || from->extent[i] <= shape->extent[i], INVALID_INPUT,
                 "updates have shape %s, data has %s", weft_onnx_shape_format(from).text,
                 weft_onnx_shape_format(shape).text);
  NODE_REQUIRE(node, scatter.data->dtype == scatter.updates->dtype, INVALID_INPUT, "updates are %s, data is %s",
               weft_dtype_name(scatter.updates->dtype), weft_dtype_name(scatter.data->dtype));
  TRY(positive_index(node, index, shape->extent[scatter.axis], &scatter.index));
  if (scatter.index->data && !scatter.reduction->with_data && weft_onnx_count(index) > 0) {
    int64_t *row, *place, step[WEFT_ONNX_MAX_RANK], count = weft_onnx_count(index);
    value_t *data, *updates;
    bool is_done;
    weft_onnx_strides(shape, step);
    TRY(row_list(node, scatter.index, &row));
    TRY(places_of_elements(node, &scatter, row, &place));
    TRY(weft_onnx_reshape(node, scatter.updates, &(shape_t){1, {count}}, &updates));
    TRY(weft_onnx_put_box(node, scatter.data, shape->rank, count, place, updates, &node->output[0], &is_done));
    if (is_done) return weft_ok();
    for (int64_t i = 0; i < count; ++i) { // the flat position in data
      row[i] = 0;
      for (int32_t d = 0; d < shape->rank; ++d) row[i] += place[i * shape->rank + d] * step[d];
    }
    TRY(weft_onnx_reshape(node, scatter.data, &(shape_t){1, {weft_onnx_count(scatter.data)}}, &data));
    TRY(scatter_known(node, data, updates, row, &data, &is_done));
    if (is_done) return weft_onnx_reshape(node, data, shape, &node->output[0]);
  }
  return scatter_by_comparing(node, &scatter, &node->output[0]);
}

// --- Index tuples, as the position in the axes they index, flattened.

// index: [.., T] into `extent`, from which the shape without T comes.
static weft_status_t flatten_tuples(node_t* node, value_t* index, const int64_t* extent, value_t** out) {
  int32_t last = index->shape.rank - 1;
  int64_t width = index->shape.extent[last], offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK],
          step[WEFT_ONNX_MAX_RANK];
  value_t* total = NULL;
  for (int32_t i = 0; i <= last; ++i) {
    size[i] = index->shape.extent[i];
    step[i] = 1;
  }
  size[last] = 1;
  for (int64_t t = 0; t < width; ++t) {
    value_t *part, *factor;
    offset[last] = t;
    TRY(weft_onnx_slice(node, index, offset, size, step, &part));
    TRY(weft_onnx_reshape(node, part, &(shape_t){1, {weft_onnx_count(part)}}, &part));
    TRY(positive_index(node, part, extent[t], &part));
    if (total) {
      TRY(weft_onnx_number(node, WEFT_DTYPE_I64, (double)extent[t], &factor));
      TRY(weft_onnx_binary(node, weft_onnx_body_mul, total, factor, &total));
      TRY(weft_onnx_binary(node, weft_onnx_body_add, total, part, &total));
    } else {
      total = part;
    }
  }
  *out = total;
  return weft_ok();
}

static int64_t product(const shape_t* shape, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; ++i) count *= shape->extent[i];
  return count;
}

// Flat positions back to the coordinates they come from.
static weft_status_t places_of_rows(node_t* node, int64_t count, const int64_t* row, int32_t width,
                                    const int64_t* extent, int64_t** out) {
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)(count * width) + 1, out));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = row[i];
    for (int32_t d = width - 1; d >= 0; rest /= extent[d--]) (*out)[i * width + d] = rest % extent[d];
  }
  return weft_ok();
}

static weft_status_t emit_scatter_nd(node_t* node) {
  value_t *data = node->input[0], *index = node->input[1], *updates = node->input[2];
  const shape_t *shape = &data->shape, *tuples = &index->shape;
  scatter_t scatter = {.index_axes = 1};
  TRY(find_reduction(node, &scatter.reduction));
  NODE_REQUIRE(node,
               tuples->rank >= 1 && tuples->extent[tuples->rank - 1] >= 1 &&
                   tuples->extent[tuples->rank - 1] <= shape->rank,
               INVALID_INPUT, "indices have shape %s, expected tuples of 1 to %d", weft_onnx_shape_format(tuples).text,
               shape->rank);
  int32_t width = (int32_t)tuples->extent[tuples->rank - 1];
  shape_t expected = {.rank = tuples->rank - 1};
  for (int32_t i = 0; i < expected.rank; ++i) expected.extent[i] = tuples->extent[i];
  for (int32_t i = width; i < shape->rank && expected.rank < WEFT_ONNX_MAX_RANK; ++i)
    expected.extent[expected.rank++] = shape->extent[i];
  NODE_REQUIRE(node, weft_onnx_shape_equal(&expected, &updates->shape) && data->dtype == updates->dtype, INVALID_INPUT,
               "updates are %s of shape %s, expected %s of shape %s", weft_dtype_name(updates->dtype),
               weft_onnx_shape_format(&updates->shape).text, weft_dtype_name(data->dtype),
               weft_onnx_shape_format(&expected).text);
  shape_t rows = {2, {product(shape, 0, width), product(shape, width, shape->rank)}};
  shape_t update_rows = {2, {product(tuples, 0, tuples->rank - 1), rows.extent[1]}};
  TRY(flatten_tuples(node, index, shape->extent, &scatter.index));
  TRY(weft_onnx_reshape(node, data, &rows, &scatter.data));
  TRY(weft_onnx_reshape(node, updates, &update_rows, &scatter.updates));
  value_t* result = NULL;
  bool is_done = false;
  if (scatter.index->data && !scatter.reduction->with_data && update_rows.extent[0] > 0) {
    int64_t *row, *place;
    TRY(row_list(node, scatter.index, &row));
    TRY(places_of_rows(node, update_rows.extent[0], row, width, shape->extent, &place));
    TRY(weft_onnx_put_box(node, data, width, update_rows.extent[0], place, scatter.updates, &result, &is_done));
    if (!is_done) TRY(scatter_known(node, scatter.data, scatter.updates, row, &result, &is_done));
  }
  if (!is_done) TRY(scatter_by_comparing(node, &scatter, &result));
  return weft_onnx_reshape(node, result, shape, &node->output[0]);
}

// x: row, index, position, accumulator.
BODY(pick_row) {
  return s_add(b, x[3], s_select(b, s_compare(b, WEFT_ONNX_EQ, x[1], x[2]), x[0], s_const(x[0], 0)));
}

// data: [batch, rows, inner], index: [batch, count] -> [batch, count, inner].
static weft_status_t gather_rows(node_t* node, value_t* data, value_t* index, value_t** out) {
  int64_t batch = data->shape.extent[0], rows = data->shape.extent[1], inner = data->shape.extent[2],
          count = index->shape.extent[1];
  if (index->data) { // rows of all batches, one after the other
    int64_t* row;
    TRY(row_list(node, index, &row));
    for (int64_t i = 0; i < batch * count; ++i) row[i] += i / count * rows;
    TRY(weft_onnx_reshape(node, data, &(shape_t){2, {batch * rows, inner}}, &data));
    return weft_onnx_take(node, data, 0, batch * count, row, out);
  }
  value_t* position;
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, rows, &position));
  weft_onnx_generic_t generic = {.rank = 4,
                                 .extent = {batch, count, inner, rows},
                                 .reduction = 1u << 3,
                                 .operand_count = 3,
                                 .operand = {{data, 3, {weft_onnx_along(0), weft_onnx_along(3), weft_onnx_along(2)}},
                                             {index, 2, {weft_onnx_along(0), weft_onnx_along(1)}},
                                             {position, 1, {weft_onnx_along(3)}}},
                                 .dtype = data->dtype,
                                 .body = pick_row};
  return weft_onnx_generic(node, &generic, out);
}

static weft_status_t emit_gather_nd(node_t* node) {
  value_t *data = node->input[0], *index = node->input[1];
  const shape_t *shape = &data->shape, *tuples = &index->shape;
  int64_t given;
  TRY(weft_onnx_attribute_int(node, "batch_dims", 0, &given));
  int32_t last = tuples->rank - 1;
  NODE_REQUIRE(node, last >= 0 && given >= 0 && given <= last && given < shape->rank, INVALID_INPUT,
               "batch_dims is %lld for indices of shape %s and data of shape %s", (long long)given,
               weft_onnx_shape_format(tuples).text, weft_onnx_shape_format(shape).text);
  int32_t batch = (int32_t)given;
  int64_t width = tuples->extent[last];
  NODE_REQUIRE(node, width >= 1 && width <= shape->rank - batch, INVALID_INPUT,
               "indices have shape %s, expected tuples of 1 to %d", weft_onnx_shape_format(tuples).text,
               shape->rank - batch);
  shape_t result = {.rank = last};
  for (int32_t i = 0; i < last; ++i) result.extent[i] = tuples->extent[i];
  for (int32_t i = 0; i < batch; ++i)
    NODE_REQUIRE(node, tuples->extent[i] == shape->extent[i], INVALID_INPUT,
                 "indices have %lld on batch axis %d, data has %lld", (long long)tuples->extent[i], i,
                 (long long)shape->extent[i]);
  int32_t inner = batch + (int32_t)width;
  NODE_REQUIRE(node, last + shape->rank - inner <= WEFT_ONNX_MAX_RANK, UNSUPPORTED,
               "the result has more than %d dimensions", WEFT_ONNX_MAX_RANK);
  for (int32_t i = inner; i < shape->rank; ++i) result.extent[result.rank++] = shape->extent[i];
  shape_t rows = {3, {product(shape, 0, batch), product(shape, batch, inner), product(shape, inner, shape->rank)}};
  TRY(flatten_tuples(node, index, shape->extent + batch, &index));
  TRY(weft_onnx_reshape(node, index, &(shape_t){2, {rows.extent[0], product(tuples, batch, last)}}, &index));
  TRY(weft_onnx_reshape(node, data, &rows, &data));
  TRY(gather_rows(node, data, index, &data));
  return weft_onnx_reshape(node, data, &result, &node->output[0]);
}

// --- TensorScatter: updates that follow each other from one index of each batch on.

// p: extent to wrap around at, 0: none. x: first index, offset.
BODY(position_of_update) {
  scalar_t at = s_add(b, s_cast(b, x[0], WEFT_DTYPE_I64), x[1]);
  return b->p[0] == 0 ? at : weft_onnx_scalar_binary(b, WEFT_ONNX_REM, at, s_const(at, b->p[0]));
}

static weft_status_t emit_tensor_scatter(node_t* node) {
  scatter_t scatter = {.data = node->input[0], .updates = node->input[1], .reduction = &reductions[0]};
  const shape_t *shape = &scatter.data->shape, *from = &scatter.updates->shape;
  int64_t axis;
  const char* mode;
  value_t *first = weft_onnx_input(node, 2), *offset;
  TRY(weft_onnx_attribute_int(node, "axis", -2, &axis));
  TRY(weft_onnx_normalize_axis(node, axis, shape->rank, &scatter.axis));
  TRY(weft_onnx_attribute_string(node, "mode", "linear", &mode));
  bool is_circular = strcmp(mode, "circular") == 0;
  NODE_REQUIRE(node, is_circular || strcmp(mode, "linear") == 0, INVALID_INPUT,
               "mode is '%s', expected linear or circular", mode);
  shape_t expected = *shape;
  if (from->rank == shape->rank) expected.extent[scatter.axis] = from->extent[scatter.axis];
  NODE_REQUIRE(node, scatter.axis > 0 && weft_onnx_shape_equal(&expected, from), INVALID_INPUT,
               "update has shape %s, cache has %s and axis is %d", weft_onnx_shape_format(from).text,
               weft_onnx_shape_format(shape).text, scatter.axis);
  shape_t batch = {1, {shape->extent[0]}};
  if (!first) {
    TRY(weft_onnx_number(node, WEFT_DTYPE_I64, 0, &first));
    TRY(weft_onnx_expand(node, first, &batch, &first));
  }
  NODE_REQUIRE(node, weft_onnx_shape_equal(&first->shape, &batch), INVALID_INPUT,
               "write_indices have shape %s, expected %s", weft_onnx_shape_format(&first->shape).text,
               weft_onnx_shape_format(&batch).text);
  double p[] = {is_circular ? (double)shape->extent[scatter.axis] : 0};
  TRY(weft_onnx_unsqueeze(node, first, 1, &first));
  TRY(weft_onnx_iota(node, WEFT_DTYPE_I64, from->extent[scatter.axis], &offset));
  TRY(weft_onnx_pointwise(node, position_of_update, p, WEFT_DTYPE_I64, 2, (value_t*[]){first, offset}, &scatter.index));
  scatter.index_axes = 1u | 1u << scatter.axis;
  return scatter_by_comparing(node, &scatter, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("GatherND", 11, 2, 2, 1, emit_gather_nd, "indices of run time cost a pass over the data each"),
    OPERATOR("Scatter", 9, 3, 3, 1, emit_scatter_elements, "as ScatterElements", .until = 10),
    OPERATOR("ScatterElements", 11, 3, 3, 1, emit_scatter_elements,
             "indices of run time and reductions cost a pass over the axis each"),
    OPERATOR("ScatterND", 11, 3, 3, 1, emit_scatter_nd,
             "indices of run time and reductions cost a pass over the data each"),
    OPERATOR("TensorScatter", 24, 2, 3, 1, emit_tensor_scatter, ""),
    {0}};

const weft_onnx_family_t weft_onnx_family_scatter = {"Scatter and gather", operators};
