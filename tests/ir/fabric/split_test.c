// Splits: boxes, owners, chains and walks of random kernels, element by element.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/ir/fabric/random_fabric.h"

enum { CAPACITY = 10000 };

static int64_t points(const weft_kernel_t* kernel, const weft_iteration_box_t* box) {
  int64_t product = 1;
  for (int32_t d = 0; d < kernel->dim_count; ++d) product *= box->hi[d] - box->lo[d];
  return product;
}

static int32_t tiles_of(const weft_split_t* split) {
  return weft_split_grid(split->y, split->y_count) * weft_split_grid(split->x, split->x_count);
}

// Boxes are disjoint, not empty, and cover the iteration space; buffer boxes hold the image of every corner.
static void check_boxes(weft_rng_t* rng, const weft_kernel_t* kernel, const weft_split_t* split) {
  int64_t covered = 0, all = 1;
  int32_t tiles = tiles_of(split);
  for (int32_t d = 0; d < kernel->dim_count; ++d) all *= kernel->dim[d].extent;
  for (int32_t a = 0; a < tiles; ++a) {
    weft_iteration_box_t box = weft_split_box(kernel, split, a);
    assert_true(points(kernel, &box) > 0);
    covered += points(kernel, &box);
    int32_t b = (int32_t)draw(rng, 0, tiles - 1);
    weft_iteration_box_t other = weft_split_box(kernel, split, b);
    bool apart = false;
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      apart = apart || box.hi[d] <= other.lo[d] || other.hi[d] <= box.lo[d];
      assert_true(box.hi[d] - box.lo[d] <= weft_split_block(kernel, split, d));
    }
    assert_true(a == b || apart);
    for (int32_t i = 0; i < kernel->buffer_count; ++i) {
      const weft_buffer_t* buffer = &kernel->buffer[i];
      weft_box_t held = weft_split_buffer_box(kernel, buffer, &box);
      weft_shape_t extents = weft_split_buffer_extents(kernel, split, i);
      bool touches[WEFT_MAX_RANK][2] = {{false}};
      for (uint32_t corner = 0; corner < 1u << kernel->dim_count; ++corner) {
        for (int32_t r = 0; r < buffer->rank; ++r) {
          int64_t c = buffer->row[r].offset;
          for (int32_t d = 0; d < kernel->dim_count; ++d)
            c += buffer->row[r].coefficient[d] * (corner >> d & 1 ? box.hi[d] - 1 : box.lo[d]);
          assert_true(held.lo[r] <= c && c < held.hi[r]);
          touches[r][0] |= c == held.lo[r];
          touches[r][1] |= c == held.hi[r] - 1;
        }
      }
      for (int32_t r = 0; r < buffer->rank; ++r) {
        assert_true(touches[r][0] && touches[r][1]);
        assert_true(held.hi[r] - held.lo[r] <= extents.extent[r]);
        if (a == 0) assert_int_equal(held.hi[r] - held.lo[r], extents.extent[r]);
      }
    }
  }
  assert_int_equal(covered, all);
}

// From every tile the chain leads to an owner with the same parallel box; positions count up; all tiles are in one
// chain.
static void check_chains(const weft_kernel_t* kernel, const weft_split_t* split) {
  int32_t length = weft_split_chain_length(kernel, split), tiles = tiles_of(split), owners = 0;
  for (int32_t tile = 0; tile < tiles; ++tile) {
    int32_t next = weft_split_chain_next(kernel, split, tile),
            position = weft_split_chain_position(kernel, split, tile);
    owners += weft_split_is_owner(kernel, split, tile);
    assert_int_equal(next < 0, position == length - 1);
    assert_int_equal(weft_split_is_owner(kernel, split, tile), next < 0);
    assert_true(weft_split_needs_buffer(kernel, split, 3, tile));
    assert_true(weft_split_runs(kernel, split, 0, tile));
    bool alone = kernel->reduce_operation < 0 || next < 0;
    assert_int_equal(weft_split_runs(kernel, split, 1, tile), alone);
    assert_int_equal(weft_split_needs_buffer(kernel, split, 2, tile), alone);
    assert_int_equal(weft_split_needs_buffer(kernel, split, 4, tile), alone);
    if (next < 0) continue;
    assert_int_equal(weft_split_chain_position(kernel, split, next), position + 1);
    weft_iteration_box_t a = weft_split_box(kernel, split, tile), b = weft_split_box(kernel, split, next);
    bool moved = false;
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      if (kernel->dim[d].kind == WEFT_DIM_REDUCTION) {
        moved = moved || a.lo[d] != b.lo[d];
      } else {
        assert_int_equal(a.lo[d], b.lo[d]);
        assert_int_equal(a.hi[d], b.hi[d]);
      }
    }
    assert_true(moved);
  }
  assert_int_equal(owners, tiles / length);
}

// The walk goes through every element once, tile after tile; each segment is what its owner holds.
static void check_walk(weft_rng_t* rng, const weft_fabric_t* fabric, int32_t tensor) {
  static int64_t coordinates[CAPACITY * WEFT_MAX_RANK], segments[CAPACITY];
  static bool seen[CAPACITY];
  const weft_tensor_t* t = &fabric->tensor[tensor];
  weft_walk_t walk;
  assert_ok(weft_split_walk(fabric, tensor, &walk));
  int64_t count = brute_walk(&walk, CAPACITY, coordinates, segments);
  assert_int_equal(count, weft_shape_elements(&t->shape));
  assert_int_equal(count, weft_walk_elements(&walk));
  memset(seen, 0, sizeof(seen));
  for (int64_t n = 0; n < count; ++n) {
    int64_t flat = 0;
    int32_t logical = 0;
    if (t->kind == WEFT_TENSOR_RESULT) {
      const weft_kernel_t* kernel = &fabric->kernel[t->kernel];
      logical = weft_split_owner(kernel, &kernel->alternative[0].split, segments[n]);
      assert_true(weft_split_is_owner(kernel, &kernel->alternative[0].split, logical));
    }
    weft_box_t owned = weft_split_owned_box(fabric, tensor, logical);
    for (int32_t d = 0; d < t->shape.rank; ++d) {
      int64_t c = coordinates[n * WEFT_MAX_RANK + d];
      assert_true(owned.lo[d] <= c && c < owned.hi[d]);
      flat = flat * t->shape.extent[d] + c;
    }
    assert_false(seen[flat]);
    seen[flat] = true;
    if (n == 0 || segments[n] != segments[n - 1])
      assert_int_equal(weft_walk_segment_elements(&walk, segments[n]), weft_box_elements(&owned));
    if (n > 0) assert_true(segments[n] >= segments[n - 1]);
  }
  // Part of it.
  for (int32_t d = 0; d < t->shape.rank; ++d) {
    walk.box.lo[d] = draw(rng, 0, t->shape.extent[d] - 1);
    walk.box.hi[d] = draw(rng, walk.box.lo[d], t->shape.extent[d]);
  }
  count = brute_walk(&walk, CAPACITY, coordinates, segments);
  assert_int_equal(count, weft_walk_elements(&walk));
  for (int64_t n = 0; n < count;) {
    int64_t first = n;
    while (n < count && segments[n] == segments[first]) ++n;
    assert_int_equal(weft_walk_segment_elements(&walk, segments[first]), n - first);
  }
}

static void test_random_splits(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 2);
  int32_t chains = 0;
  for (int32_t round = 0; round < 500; ++round) {
    weft_fabric_t fabric;
    random_fabric(&rng, &fabric);
    for (int32_t k = 0; k < fabric.kernel_count; ++k) {
      const weft_kernel_t* kernel = &fabric.kernel[k];
      check_boxes(&rng, kernel, &kernel->alternative[0].split);
      check_chains(kernel, &kernel->alternative[0].split);
      chains += weft_split_chain_length(kernel, &kernel->alternative[0].split) > 1;
    }
    for (int32_t t = 0; t < fabric.tensor_count; ++t) check_walk(&rng, &fabric, t);
    weft_fabric_deinitialize(&fabric);
  }
  assert_true(chains > 100);
}

// A dimension that a result doesn't have by itself can't be shared out.
static void test_walk_refuses(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 4);
  weft_fabric_t fabric;
  do {
    random_fabric(&rng, &fabric);
    if (fabric.kernel[0].dim[0].extent > 1) break;
    weft_fabric_deinitialize(&fabric);
  } while (true);
  weft_kernel_t* kernel = &fabric.kernel[0];
  kernel->alternative[0].split = (weft_split_t){.y_count = 1, .y = {{0, (int32_t)kernel->dim[0].extent}}};
  weft_walk_t walk;
  int32_t tensor = kernel->buffer[4].tensor;
  assert_ok(weft_split_walk(&fabric, tensor, &walk));
  for (int32_t r = 0; r < kernel->buffer[4].rank; ++r) kernel->buffer[4].row[r].coefficient[0] *= 2;
  weft_status_t status = weft_split_walk(&fabric, tensor, &walk);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_non_null(strstr(weft_status_message(status), "d0"));
  weft_status_free(status);
  kernel->chosen = -1;
  status = weft_split_walk(&fabric, tensor, &walk);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
  weft_status_free(status);
  weft_fabric_deinitialize(&fabric);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_splits),
      cmocka_unit_test(test_walk_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
