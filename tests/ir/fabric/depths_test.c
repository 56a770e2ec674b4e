// Rings of operands: as deep as the longest way is long, and as memory allows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/fabric/depths.h"
#include "tests/ir/fabric/random_fabric.h"

enum { KERNELS = 5, ELEMENTS = 10, PLACE = 40, AGAIN = 12, USED = 1000 };

static void add_operand(weft_fabric_t* fabric, weft_kernel_t* kernel, int32_t tensor) {
  weft_buffer_t* buffer = &kernel->buffer[kernel->buffer_count++];
  *buffer = (weft_buffer_t){.name = "in", .dtype = WEFT_DTYPE_F32, .rank = 1, .piece_count = 1, .tensor = -1};
  buffer->row[0].coefficient[0] = 1;
  buffer->piece = fabric_new(fabric, 1, sizeof(weft_piece_t));
  buffer->piece[0] = (weft_piece_t){tensor, weft_view_identity(&fabric->tensor[tensor].shape)};
}

// Kernel k makes tensor k + 1 of tensor k. The third adds a constant, the fourth the first's result (over two kernels),
// the fifth the input and the second's result.
static void skips(weft_fabric_t* fabric) {
  weft_fabric_initialize(weft_allocator_system(), fabric);
  fabric->tensor_count = KERNELS + 2;
  fabric->tensor = fabric_new(fabric, KERNELS + 2, sizeof(weft_tensor_t));
  for (int32_t t = 0; t < KERNELS + 2; ++t)
    fabric->tensor[t] = (weft_tensor_t){.name = "t",
                                        .kind = t == 0             ? WEFT_TENSOR_INPUT
                                                : t == KERNELS + 1 ? WEFT_TENSOR_CONSTANT
                                                                   : WEFT_TENSOR_RESULT,
                                        .dtype = WEFT_DTYPE_F32,
                                        .shape = {1, {ELEMENTS}},
                                        .kernel = t - 1};
  fabric->kernel_count = KERNELS;
  fabric->kernel = fabric_new(fabric, KERNELS, sizeof(weft_kernel_t));
  for (int32_t k = 0; k < KERNELS; ++k) {
    weft_kernel_t* kernel = &fabric->kernel[k];
    *kernel = (weft_kernel_t){.name = "k", .dim_count = 1, .dim = {{ELEMENTS, WEFT_DIM_PARALLEL}}};
    kernel->buffer = fabric_new(fabric, 4, sizeof(weft_buffer_t));
    kernel->buffer[0] = (weft_buffer_t){.name = "out", .kind = WEFT_BUFFER_RESULT, .rank = 1, .tensor = k + 1};
    kernel->buffer_count = 1;
    add_operand(fabric, kernel, k);
    if (k == 2) add_operand(fabric, kernel, KERNELS + 1);
    if (k == 3) add_operand(fabric, kernel, 1);
    if (k == 4) add_operand(fabric, kernel, 0);
    if (k == 4) add_operand(fabric, kernel, 2);
    kernel->alternative_count = 1;
    kernel->alternative = fabric_new(fabric, 1, sizeof(weft_alternative_t));
    *kernel->alternative = (weft_alternative_t){.gy = 1, .gx = 1, .doubled = true, .bytes = USED};
  }
}

static void expect_spare(const weft_fabric_t* fabric, int32_t kernel, int32_t buffer, int32_t expected) {
  assert_int_equal(fabric->kernel[kernel].buffer[buffer].spare, expected);
}

static void test_longest_way(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(4, 4);
  weft_fabric_t fabric;
  skips(&fabric);
  for (int32_t time = 0; time < 2; ++time) { // the second time changes nothing
    assert_ok(weft_depths_choose(&fabric, &machine));
    for (int32_t k = 0; k < 4; ++k) {
      expect_spare(&fabric, k, 0, 0);
      expect_spare(&fabric, k, 1, k == 0); // from the host, which is farther away
    }
    expect_spare(&fabric, 2, 2, 0); // a constant
    expect_spare(&fabric, 3, 2, 4); // three kernels, two steps in each
    expect_spare(&fabric, 4, 1, 0);
    expect_spare(&fabric, 4, 2, 1); // from the host, too, however long the other way
    expect_spare(&fabric, 4, 3, 4);
    assert_int_equal(fabric.kernel[2].alternative->bytes, USED);
    assert_int_equal(fabric.kernel[3].alternative->bytes, USED + 4 * (PLACE + AGAIN));
  }
  weft_fabric_deinitialize(&fabric);
}

static void test_memory_bounds(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(4, 4);
  weft_fabric_t fabric;
  skips(&fabric);
  machine.tile_memory = USED + 3 * (PLACE + AGAIN) - 1;
  assert_ok(weft_depths_choose(&fabric, &machine));
  expect_spare(&fabric, 3, 2, 2);
  assert_int_equal(fabric.kernel[3].alternative->bytes, USED + 2 * (PLACE + AGAIN));
  // Not doubled: whoever has the smallest part of what it needs comes first.
  fabric.kernel[3].alternative->doubled = false;
  assert_ok(weft_depths_choose(&fabric, &machine));
  expect_spare(&fabric, 3, 1, 0); // 1 of 2
  expect_spare(&fabric, 3, 2, 2); // 3 of 6
  machine.tile_memory = USED - 1;
  assert_ok(weft_depths_choose(&fabric, &machine));
  expect_spare(&fabric, 3, 2, 0);
  assert_int_equal(fabric.kernel[3].alternative->bytes, USED);
  weft_fabric_deinitialize(&fabric);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_longest_way), cmocka_unit_test(test_memory_bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
