// Views against a table that says for every operand element which tensor element it is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ir/fabric/view.h"

enum { MAX_ELEMENTS = 20000 };

typedef struct table_t {
  weft_shape_t tensor, shape;
  int32_t* of; // [elements of shape]: flat index in the tensor, or -1
} table_t;

static void next_coordinate(const weft_shape_t* shape, int64_t* coordinate) {
  for (int32_t d = shape->rank - 1; d >= 0 && ++coordinate[d] == shape->extent[d]; --d) coordinate[d] = 0;
}

static int64_t flat_index(const weft_shape_t* shape, const int64_t* coordinate) {
  int64_t flat = 0;
  for (int32_t d = 0; d < shape->rank; ++d) flat = flat * shape->extent[d] + coordinate[d];
  return flat;
}

static table_t table_of(const weft_shape_t* tensor) {
  table_t table = {*tensor, *tensor, malloc(MAX_ELEMENTS * sizeof(int32_t))};
  for (int32_t i = 0; i < weft_shape_elements(tensor); ++i) table.of[i] = i;
  return table;
}

// New element c is old element scale * c[source] + start along each old dimension; outside the old shape: none.
static void table_move(table_t* table, const weft_shape_t* to, const int32_t* source, const int64_t* start,
                       const int64_t* step) {
  int32_t* moved = malloc(MAX_ELEMENTS * sizeof(int32_t));
  int64_t c[WEFT_MAX_RANK] = {0};
  for (int64_t i = 0, n = weft_shape_elements(to); i < n; ++i, next_coordinate(to, c)) {
    int64_t old[WEFT_MAX_RANK] = {0};
    bool inside = true;
    for (int32_t d = 0; d < to->rank; ++d) {
      old[source[d]] = start[d] + step[d] * c[d];
      inside = inside && old[source[d]] >= 0 && old[source[d]] < table->shape.extent[source[d]];
    }
    moved[i] = inside ? table->of[flat_index(&table->shape, old)] : -1;
  }
  free(table->of);
  table->of = moved;
  table->shape = *to;
}

static void check_view(const table_t* table, const weft_view_t* view) {
  static int32_t got[MAX_ELEMENTS];
  int64_t elements = weft_shape_elements(&table->shape), coordinate[WEFT_MAX_RANK], landed = 0, expected = 0;
  assert_int_equal(view->rank, table->shape.rank);
  for (int64_t i = 0; i < elements; ++i) got[i] = -1;
  for (int32_t flat = 0; flat < weft_shape_elements(&table->tensor); ++flat) {
    if (!weft_view_apply(view, flat, coordinate)) continue;
    ++landed;
    for (int32_t d = 0; d < view->rank; ++d) {
      assert_true(coordinate[d] >= 0);
      assert_true(coordinate[d] < table->shape.extent[d]);
    }
    int64_t at = flat_index(&table->shape, coordinate);
    assert_int_equal(got[at], -1);
    got[at] = flat;
  }
  for (int64_t i = 0; i < elements; ++i) {
    assert_int_equal(got[i], table->of[i]);
    expected += table->of[i] >= 0;
  }
  assert_int_equal(landed, expected);
  int64_t product = 1;
  for (int32_t j = 0; j < view->factor_count; ++j) product *= view->factor[j].extent;
  assert_int_equal(product, weft_shape_elements(&table->tensor));
}

// The hull of what lands in a random box, by looking at every element. `exact`: how often it was met exactly.
static void check_preimage(const table_t* table, const weft_view_t* view, weft_rng_t* rng, int32_t* tried,
                           int32_t* exact) {
  weft_box_t box = {.rank = view->rank}, hull = {.rank = table->tensor.rank}, image = weft_view_image(view);
  for (int32_t d = 0; d < view->rank; ++d) {
    box.lo[d] = (int64_t)weft_rng_below(rng, (uint64_t)table->shape.extent[d] + 1);
    box.hi[d] = box.lo[d] + (int64_t)weft_rng_below(rng, (uint64_t)(table->shape.extent[d] - box.lo[d]) + 2);
  }
  int64_t c[WEFT_MAX_RANK] = {0}, k[WEFT_MAX_RANK], count = 0;
  for (int64_t flat = 0; flat < weft_shape_elements(&table->tensor); ++flat, next_coordinate(&table->tensor, c)) {
    if (!weft_view_apply(view, flat, k)) continue;
    bool inside = true;
    weft_box_t point = {.rank = table->tensor.rank};
    for (int32_t d = 0; d < view->rank; ++d) {
      inside = inside && box.lo[d] <= k[d] && k[d] < box.hi[d];
      assert_true(image.lo[d] <= k[d] && k[d] < image.hi[d]);
    }
    if (!inside) continue;
    for (int32_t d = 0; d < point.rank; ++d) point.hi[d] = (point.lo[d] = c[d]) + 1;
    hull = count++ ? weft_box_hull(&hull, &point) : point;
  }
  assert_int_equal(weft_view_count(view, &box), count);
  weft_box_t preimage = weft_view_preimage(view, &table->tensor, &box);
  if (count == 0 || table->tensor.rank == 0) return;
  weft_box_t common = weft_box_intersect(&preimage, &hull);
  assert_true(weft_box_equal(&common, &hull));
  weft_box_t all = weft_box_of_shape(&table->tensor);
  common = weft_box_intersect(&preimage, &all);
  assert_true(weft_box_equal(&common, &preimage));
  bool plain = true; // each dimension made of one factor
  for (int32_t j = 0; j < view->factor_count; ++j)
    for (int32_t other = 0; other < j; ++other)
      plain = plain && (view->factor[j].dim < 0 || view->factor[j].dim != view->factor[other].dim);
  if (plain && weft_shape_elements(&table->tensor) <= 250) assert_true(weft_box_equal(&preimage, &hull));
  ++*tried;
  *exact += weft_box_equal(&preimage, &hull);
}

static weft_shape_t random_shape(weft_rng_t* rng, int32_t max_rank, int64_t max_extent) {
  weft_shape_t shape = {.rank = (int32_t)weft_rng_below(rng, (uint64_t)max_rank + 1)};
  for (int32_t d = 0; d < shape.rank; ++d) shape.extent[d] = 1 + (int64_t)weft_rng_below(rng, (uint64_t)max_extent);
  return shape;
}

// A random shape with as many elements.
static weft_shape_t random_reshape(weft_rng_t* rng, const weft_shape_t* shape) {
  weft_shape_t to = {.rank = 1 + (int32_t)weft_rng_below(rng, 5)};
  int64_t rest = weft_shape_elements(shape);
  for (int32_t d = 0; d < to.rank; ++d) to.extent[d] = 1;
  for (int64_t p = 2; rest > 1; ++p)
    for (; rest % p == 0; rest /= p) to.extent[weft_rng_below(rng, (uint64_t)to.rank)] *= p;
  return to;
}

enum { RESHAPE, TRANSPOSE, SLICE, PAD, MOVEMENTS };

static bool random_movement(weft_rng_t* rng, int kind, table_t* table, weft_view_t* view, weft_shape_t* shape) {
  weft_shape_t to = *shape;
  int64_t start[WEFT_MAX_RANK] = {0}, step[WEFT_MAX_RANK], size[WEFT_MAX_RANK], high[WEFT_MAX_RANK];
  int32_t source[WEFT_MAX_RANK];
  bool done = false;
  for (int32_t d = 0; d < to.rank; ++d) {
    source[d] = d;
    step[d] = 1;
  }
  switch (kind) {
  case RESHAPE:
    to = random_reshape(rng, shape);
    done = weft_view_reshape(view, shape, &to);
    if (done) table->shape = to; // row-major order stays
    break;
  case TRANSPOSE:
    for (int32_t d = to.rank - 1; d > 0; --d) {
      int32_t other = (int32_t)weft_rng_below(rng, (uint64_t)d + 1), keep = source[d];
      source[d] = source[other];
      source[other] = keep;
    }
    for (int32_t d = 0; d < to.rank; ++d) to.extent[d] = shape->extent[source[d]];
    done = weft_view_transpose(view, shape, source);
    if (done) table_move(table, &to, source, start, step);
    break;
  case SLICE:
    for (int32_t d = 0; d < to.rank; ++d) {
      int64_t extent = to.extent[d];
      step[d] = weft_rng_below(rng, 3) ? 1 : 1 + (int64_t)weft_rng_below(rng, 3);
      if (weft_rng_below(rng, 4) == 0) step[d] = -step[d];
      start[d] =
          weft_rng_below(rng, 2) ? (step[d] > 0 ? 0 : extent - 1) : (int64_t)weft_rng_below(rng, (uint64_t)extent);
      int64_t most = step[d] > 0 ? (extent - 1 - start[d]) / step[d] + 1 : start[d] / -step[d] + 1;
      size[d] = weft_rng_below(rng, 2) ? most : 1 + (int64_t)weft_rng_below(rng, (uint64_t)most);
      to.extent[d] = size[d];
    }
    done = weft_view_slice(view, shape, start, size, step);
    if (done) table_move(table, &to, source, start, step);
    break;
  default:
    for (int32_t d = 0; d < to.rank; ++d) {
      start[d] = (int64_t)weft_rng_below(rng, 3);
      high[d] = (int64_t)weft_rng_below(rng, 3);
      if (to.extent[d] > 4 && weft_rng_below(rng, 8) == 0) high[d] = -1;
      to.extent[d] += start[d] + high[d];
      step[d] = start[d];
      start[d] = -start[d];
    }
    if (weft_shape_elements(&to) > MAX_ELEMENTS) return false;
    done = weft_view_pad(view, shape, step, high);
    for (int32_t d = 0; d < to.rank; ++d) step[d] = 1;
    if (done) table_move(table, &to, source, start, step);
    break;
  }
  if (done) {
    assert_int_equal(shape->rank, to.rank);
    for (int32_t d = 0; d < to.rank; ++d) assert_int_equal(shape->extent[d], to.extent[d]);
  }
  return done;
}

static void test_random_compositions(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  int32_t done[MOVEMENTS] = {0}, asked[MOVEMENTS] = {0}, tried = 0, exact = 0;
  for (int32_t round = 0; round < 3000; ++round) {
    weft_shape_t tensor = random_shape(&rng, 4, round % 2 ? 6 : 12);
    if (weft_shape_elements(&tensor) > 3000) continue;
    table_t table = table_of(&tensor);
    weft_shape_t shape = tensor;
    weft_view_t view = weft_view_identity(&tensor);
    check_view(&table, &view);
    for (int32_t k = 0, moves = 1 + (int32_t)weft_rng_below(&rng, 5); k < moves; ++k) {
      int kind = (int)weft_rng_below(&rng, MOVEMENTS);
      weft_view_t before = view;
      weft_shape_t shape_before = shape;
      ++asked[kind];
      if (random_movement(&rng, kind, &table, &view, &shape)) {
        ++done[kind];
      } else {
        assert_memory_equal(&before, &view, sizeof(view));
        assert_memory_equal(&shape_before, &shape, sizeof(shape));
      }
      check_view(&table, &view);
      check_preimage(&table, &view, &rng, &tried, &exact);
    }
    free(table.of);
  }
  assert_int_equal(done[TRANSPOSE], asked[TRANSPOSE]);
  assert_true(done[PAD] > asked[PAD] * 9 / 10);
  assert_true(done[SLICE] > asked[SLICE] / 2);
  assert_true(done[RESHAPE] > asked[RESHAPE] / 2);
  assert_true(exact > tried * 9 / 10);
}

static weft_shape_t shape_of(int32_t rank, const int64_t* extent) {
  weft_shape_t shape = {.rank = rank};
  memcpy(shape.extent, extent, (size_t)rank * sizeof(*extent));
  return shape;
}
#define SHAPE(...) shape_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

// What networks do: each of these must be a view.
static void test_attention_heads(void** state) {
  (void)state;
  weft_shape_t tensor = SHAPE(2, 16, 24), shape = tensor, heads = SHAPE(2, 16, 4, 6), back = SHAPE(2, 16, 24);
  weft_view_t view = weft_view_identity(&tensor);
  assert_true(weft_view_reshape(&view, &shape, &heads));
  assert_true(weft_view_transpose(&view, &shape, (int32_t[]){0, 2, 1, 3}));
  weft_box_t box = {.rank = 4, .lo = {1, 2, 0, 0}, .hi = {2, 3, 16, 6}};
  weft_box_t preimage = weft_view_preimage(&view, &tensor, &box);
  weft_box_t expected = {.rank = 3, .lo = {1, 0, 12}, .hi = {2, 16, 18}};
  assert_true(weft_box_equal(&preimage, &expected));
  assert_true(weft_view_transpose(&view, &shape, (int32_t[]){0, 2, 1, 3}));
  assert_true(weft_view_reshape(&view, &shape, &back));
  weft_view_t identity = weft_view_identity(&tensor);
  int64_t a[WEFT_MAX_RANK], b[WEFT_MAX_RANK];
  for (int64_t flat = 0; flat < weft_shape_elements(&tensor); ++flat) {
    assert_true(weft_view_apply(&view, flat, a) && weft_view_apply(&identity, flat, b));
    assert_memory_equal(a, b, 3 * sizeof(*a));
  }
}

static void test_shapes_that_share_no_extent(void** state) {
  (void)state;
  weft_shape_t tensor = SHAPE(4, 9), shape = tensor, to = SHAPE(1, 6, 1, 6);
  weft_view_t view = weft_view_identity(&tensor);
  assert_true(weft_view_reshape(&view, &shape, &to)); // merges 4 x 9 and splits 36
  assert_true(weft_view_transpose(&view, &shape, (int32_t[]){3, 0, 2, 1}));
  to = SHAPE(36);
  assert_true(weft_view_reshape(&view, &shape, &to));
  to = SHAPE(4, 9);
  weft_view_t before = view;
  assert_false(weft_view_reshape(&view, &shape, &to)); // 6 x 6 transposed is no view of 4 x 9
  assert_memory_equal(&before, &view, sizeof(view));
}

static void test_space_to_depth_and_reverse(void** state) {
  (void)state;
  weft_shape_t tensor = SHAPE(3, 8, 10), shape = tensor;
  weft_view_t view = weft_view_identity(&tensor);
  assert_true(weft_view_slice(&view, &shape, (int64_t[]){0, 1, 0}, (int64_t[]){3, 4, 5}, (int64_t[]){1, 2, 2}));
  int64_t c[WEFT_MAX_RANK];
  assert_true(weft_view_apply(&view, 1 * 80 + 3 * 10 + 4, c));
  assert_int_equal(c[0], 1);
  assert_int_equal(c[1], 1);
  assert_int_equal(c[2], 2);
  assert_false(weft_view_apply(&view, 1 * 80 + 2 * 10 + 4, c));
  assert_true(weft_view_slice(&view, &shape, (int64_t[]){2, 3, 4}, (int64_t[]){3, 4, 5}, (int64_t[]){-1, -1, -1}));
  assert_true(weft_view_apply(&view, 1 * 80 + 3 * 10 + 4, c));
  assert_int_equal(c[0], 1);
  assert_int_equal(c[1], 2);
  assert_int_equal(c[2], 2);
  weft_view_t before = view;
  assert_false(weft_view_slice(&view, &shape, (int64_t[]){0, 0, 0}, (int64_t[]){4, 1, 1}, (int64_t[]){1, 1, 1}));
  assert_memory_equal(&before, &view, sizeof(view));
}

static void test_scalars_and_nothing(void** state) {
  (void)state;
  weft_shape_t scalar = {.rank = 0}, shape = scalar, to = SHAPE(1, 1);
  weft_view_t view = weft_view_identity(&scalar);
  assert_true(weft_view_reshape(&view, &shape, &to));
  int64_t c[WEFT_MAX_RANK] = {7, 7};
  assert_true(weft_view_apply(&view, 0, c));
  assert_int_equal(c[0], 0);
  assert_int_equal(c[1], 0);
  assert_true(weft_view_slice(&view, &shape, (int64_t[]){0, 0}, (int64_t[]){1, 0}, (int64_t[]){1, 1}));
  assert_false(weft_view_apply(&view, 0, c));
  assert_int_equal(weft_shape_elements(&shape), 0);
  weft_box_t image = weft_view_image(&view);
  assert_true(weft_box_is_empty(&image));
  assert_true(weft_view_pad(&view, &shape, (int64_t[]){0, 2}, (int64_t[]){0, 0}));
  assert_false(weft_view_apply(&view, 0, c));
  weft_shape_t huge = SHAPE(INT64_C(1) << 40, INT64_C(1) << 40);
  assert_int_equal(weft_shape_elements(&huge), INT64_MAX);
}

static void test_print(void** state) {
  (void)state;
  weft_shape_t tensor = SHAPE(6, 4), shape = tensor;
  weft_view_t view = weft_view_identity(&tensor);
  assert_true(weft_view_slice(&view, &shape, (int64_t[]){1, 3}, (int64_t[]){4, 4}, (int64_t[]){1, -1}));
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_true(weft_is_ok(weft_view_print(&view, &text)));
  assert_string_equal(text.data, "[6{1:5}*1->0 4*-1->1] + (-1, 3)");
  weft_text_deinitialize(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_compositions),         cmocka_unit_test(test_attention_heads),
      cmocka_unit_test(test_shapes_that_share_no_extent), cmocka_unit_test(test_space_to_depth_and_reverse),
      cmocka_unit_test(test_scalars_and_nothing),         cmocka_unit_test(test_print),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
