#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/ir/fabric/random_fabric.h"

// A convolution: n oc oh ow | ic kh kw, with a constant weight, a bias after the reduction, and the host as consumer.
static void convolution(weft_fabric_t* fabric, int64_t n, int64_t oc, int64_t size, int64_t ic, int64_t k) {
  weft_fabric_initialize(weft_allocator_system(), fabric);
  fabric->tensor_count = 4;
  fabric->tensor = fabric_new(fabric, 4, sizeof(weft_tensor_t));
  static const uint8_t none[1];
  fabric->tensor[0] = (weft_tensor_t){"x", WEFT_TENSOR_INPUT, WEFT_DTYPE_F16, {4, {n, ic, size, size}}, 0, 0, NULL};
  fabric->tensor[1] = (weft_tensor_t){"w", WEFT_TENSOR_CONSTANT, WEFT_DTYPE_F16, {4, {oc, ic, k, k}}, 0, 0, none};
  fabric->tensor[2] = (weft_tensor_t){"b", WEFT_TENSOR_CONSTANT, WEFT_DTYPE_F16, {1, {oc}}, 0, 0, none};
  fabric->tensor[3] = (weft_tensor_t){"y", WEFT_TENSOR_RESULT, WEFT_DTYPE_F16, {4, {n, oc, size, size}}, 0, 4, NULL};
  fabric->input_count = 1;
  fabric->input = fabric_new(fabric, 1, sizeof(int32_t));
  fabric->kernel_count = 1;
  fabric->kernel = fabric_new(fabric, 1, sizeof(weft_kernel_t));
  weft_kernel_t* kernel = fabric->kernel;
  const int64_t extent[7] = {n, oc, size, size, ic, k, k};
  *kernel = (weft_kernel_t){.name = "conv", .nodes = "conv", .dim_count = 7, .combiner = WEFT_OP_ADD, .chosen = -1};
  for (int32_t d = 0; d < 7; ++d)
    kernel->dim[d] = (weft_dim_t){extent[d], d < 4 ? WEFT_DIM_PARALLEL : WEFT_DIM_REDUCTION};
  kernel->buffer_count = 5;
  kernel->buffer = fabric_new(fabric, 5, sizeof(weft_buffer_t));
  weft_buffer_t* b = kernel->buffer;
  for (int32_t i = 0; i < 3; ++i) {
    const weft_shape_t* shape = &fabric->tensor[i].shape;
    b[i] =
        (weft_buffer_t){.name = fabric->tensor[i].name, .dtype = WEFT_DTYPE_F16, .rank = shape->rank, .piece_count = 1};
    b[i].piece = fabric_new(fabric, 1, sizeof(weft_piece_t));
    b[i].piece[0] = (weft_piece_t){i, weft_view_identity(shape)};
  }
  const int32_t x_dims[4][2] = {{0, 0}, {4, 4}, {2, 5}, {3, 6}}, w_dims[4] = {1, 4, 5, 6};
  b[0].has_fill = true;
  for (int32_t r = 0; r < 4; ++r) {
    b[0].row[r].coefficient[x_dims[r][0]] = b[0].row[r].coefficient[x_dims[r][1]] = 1;
    if (r >= 2) b[0].row[r].offset = -(k / 2);
    b[1].row[r].coefficient[w_dims[r]] = 1;
  }
  b[2].row[0].coefficient[1] = 1;
  b[4] = (weft_buffer_t){.name = "y", .kind = WEFT_BUFFER_RESULT, .dtype = WEFT_DTYPE_F16, .rank = 4, .tensor = 3};
  for (int32_t r = 0; r < 4; ++r) b[4].row[r].coefficient[r] = 1;
  b[3] = b[4];
  b[3].name = "accumulator";
  b[3].kind = WEFT_BUFFER_TEMPORARY;
  b[3].dtype = WEFT_DTYPE_F32;
  kernel->operation_count = 2;
  kernel->operation = fabric_new(fabric, 2, sizeof(weft_operation_t));
  kernel->operation[0] = (weft_operation_t){WEFT_OP_MLA, WEFT_DTYPE_F16, 127, 3, {0, 1, -1}, {0}};
  kernel->operation[1] = (weft_operation_t){WEFT_OP_ADD, WEFT_DTYPE_F32, 15, 4, {3, 2, -1}, {0}};
  fabric->output_count = 1;
  fabric->output = fabric_new(fabric, 1, sizeof(weft_output_t));
  fabric->output[0] =
      (weft_output_t){.name = "y", .dtype = WEFT_DTYPE_F16, .shape = fabric->tensor[3].shape, .piece_count = 1};
  fabric->output[0].piece = fabric_new(fabric, 1, sizeof(weft_piece_t));
  fabric->output[0].piece[0] = (weft_piece_t){3, weft_view_identity(&fabric->tensor[3].shape)};
  fabric->model_name = "conv";
}

static void test_figures(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(40, 30);
  weft_fabric_t fabric;
  convolution(&fabric, 1, 12, 10, 6, 3);
  weft_alternative_t a = {.split = {.y_count = 2, .x_count = 2, .y = {{1, 3}, {2, 5}}, .x = {{3, 4}, {4, 2}}}};
  assert_ok(weft_cost_alternative(&fabric, 0, &machine, &a));
  assert_int_equal(a.gy, 15);
  assert_int_equal(a.gx, 8);
  // Blocks 1 4 2 3 | 3 3 3; an accumulator of 1 x 4 x 2 x 3 f32, a chain of two tiles.
  assert_int_equal(a.chain_cycles, 24 + 6);
  assert_int_equal(a.cycles, (4 + 24 * 27) + (4 + 24) + 30);
  assert_int_equal(a.stream_cycles, 3 * 4 * 5 / 2); // x: 1 x 3 x 4 x 5 f16, two a wavelet; y would be 12
  // x and y, which streams bring and take, twice; from step to step a tile sees one hop of the chain.
  int64_t streamed = 3 * 4 * 5 * 2 + 24 * 2, buffers = 4 * 27 * 2 + 4 * 2 + 24 * 4 + 2 * streamed;
  assert_true(a.doubled);
  assert_true(a.bytes > buffers);
  assert_true(a.bytes < buffers + 4096); // code
  const int64_t transfers = 2 * 2 * 4, chain = 24 + 4 + 6;
  assert_int_equal(a.step_cycles, (4 + 24 * 27) + (4 + 24) + transfers + chain);
  // A byte less, and what was one after the other at the best is so again.
  weft_alternative_t single = {.split = a.split};
  machine.tile_memory = a.bytes - 1;
  assert_ok(weft_cost_alternative(&fabric, 0, &machine, &single));
  assert_false(single.doubled);
  assert_int_equal(single.bytes, a.bytes - streamed);
  assert_int_equal(single.cycles, a.cycles);
  assert_int_equal(single.step_cycles, a.step_cycles + a.stream_cycles);
  weft_fabric_deinitialize(&fabric);
}

static int64_t time_of(const weft_alternative_t* a) {
  return a->step_cycles;
}

// What holds for any enumeration.
static void check_alternatives(weft_fabric_t* fabric, const weft_machine_t* machine) {
  assert_ok(weft_fabric_verify(fabric));
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    assert_in_range(kernel->alternative_count, 1, 96);
    for (int32_t i = 0; i < kernel->alternative_count; ++i) {
      const weft_alternative_t* a = &kernel->alternative[i];
      weft_alternative_t again = {.split = a->split};
      assert_ok(weft_cost_alternative(fabric, k, machine, &again));
      assert_int_equal(again.gy, a->gy);
      assert_int_equal(again.gx, a->gx);
      assert_int_equal(again.cycles, a->cycles);
      assert_int_equal(again.chain_cycles, a->chain_cycles);
      assert_int_equal(again.stream_cycles, a->stream_cycles);
      assert_int_equal(again.bytes, a->bytes);
      assert_int_equal(again.doubled, a->doubled);
      assert_int_equal(again.step_cycles, a->step_cycles);
      assert_true(a->bytes <= machine->tile_memory);
      assert_true((a->gy <= machine->height && a->gx <= machine->width) ||
                  (a->gx <= machine->height && a->gy <= machine->width));
      if (i == 0) continue;
      const weft_alternative_t* b = &kernel->alternative[i - 1];
      int64_t tiles = (int64_t)a->gy * a->gx, before = (int64_t)b->gy * b->gx;
      assert_true(before < tiles || (before == tiles && b->gy != a->gy));
      if (before < tiles) assert_true(time_of(a) < time_of(b));
    }
  }
}

// No split at all is better than what was found: fewer or as many tiles and less time.
static void test_front_is_complete(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(12, 7);
  weft_fabric_t fabric;
  convolution(&fabric, 2, 6, 5, 4, 2);
  assert_ok(weft_cost_enumerate(&fabric, &machine));
  check_alternatives(&fabric, &machine);
  const weft_kernel_t* kernel = fabric.kernel;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  int32_t compared = 0;
  for (int32_t round = 0; round < 20000; ++round) {
    weft_alternative_t a = {.split = random_split(&rng, kernel)};
    assert_ok(weft_cost_alternative(&fabric, 0, &machine, &a));
    int32_t parallel[2] = {0};
    for (int32_t i = 0; i < a.split.y_count; ++i) parallel[0] += a.split.y[i].parts > 1 && a.split.y[i].dim < 4;
    for (int32_t i = 0; i < a.split.x_count; ++i) parallel[1] += a.split.x[i].parts > 1 && a.split.x[i].dim < 4;
    bool fits = (a.gy <= 7 && a.gx <= 12) || (a.gx <= 7 && a.gy <= 12);
    if (!fits || parallel[0] > 2 || parallel[1] > 2 || a.bytes > machine.tile_memory) continue;
    int64_t best = INT64_MAX;
    for (int32_t i = 0; i < kernel->alternative_count; ++i) {
      const weft_alternative_t* b = &kernel->alternative[i];
      if ((int64_t)b->gy * b->gx <= (int64_t)a.gy * a.gx && time_of(b) < best) best = time_of(b);
    }
    assert_true(best <= time_of(&a));
    ++compared;
  }
  assert_true(compared > 1000);
  weft_fabric_deinitialize(&fabric);
}

static void test_large_layers(void** state) {
  (void)state;
  const int64_t layers[][4] = {
      {64, 112, 3, 7}, {256, 56, 64, 1}, {512, 7, 512, 3}, {2048, 7, 512, 1}, {1000, 1, 2048, 1}};
  weft_machine_t machine = small_machine(757, 996);
  for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); ++i) {
    weft_fabric_t fabric;
    convolution(&fabric, 1, layers[i][0], layers[i][1], layers[i][2], layers[i][3]);
    assert_ok(weft_cost_enumerate(&fabric, &machine));
    check_alternatives(&fabric, &machine);
    const weft_kernel_t* kernel = fabric.kernel;
    const weft_alternative_t* first = &kernel->alternative[0];
    const weft_alternative_t* last = &kernel->alternative[kernel->alternative_count - 1];
    assert_true(kernel->alternative_count > 20);
    assert_true(time_of(first) > 20 * time_of(last)); // a wide range to size from
    weft_fabric_deinitialize(&fabric);
  }
}

static void test_nothing_to_split(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(5, 4);
  weft_fabric_t fabric;
  convolution(&fabric, 1, 1, 1, 1, 1);
  assert_ok(weft_cost_enumerate(&fabric, &machine));
  check_alternatives(&fabric, &machine);
  assert_int_equal(fabric.kernel[0].alternative_count, 1);
  assert_int_equal(fabric.kernel[0].alternative[0].gy * fabric.kernel[0].alternative[0].gx, 1);
  weft_fabric_deinitialize(&fabric);
}

// Without a combiner a reduction stays inside its tile.
static void test_reduction_that_cannot_chain(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(16, 16);
  weft_fabric_t fabric;
  convolution(&fabric, 1, 4, 2, 64, 3);
  assert_ok(weft_cost_enumerate(&fabric, &machine));
  bool chained = false;
  for (int32_t i = 0; i < fabric.kernel[0].alternative_count; ++i)
    chained = chained || fabric.kernel[0].alternative[i].chain_cycles > 0;
  assert_true(chained);
  fabric.kernel[0].combiner = WEFT_OP_SUB;
  assert_ok(weft_cost_enumerate(&fabric, &machine));
  for (int32_t i = 0; i < fabric.kernel[0].alternative_count; ++i)
    assert_int_equal(fabric.kernel[0].alternative[i].chain_cycles, 0);
  weft_fabric_deinitialize(&fabric);
}

static void test_does_not_fit(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(3, 2);
  weft_fabric_t fabric;
  convolution(&fabric, 1, 512, 14, 512, 3);
  weft_status_t status = weft_cost_enumerate(&fabric, &machine);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DOES_NOT_FIT);
  assert_non_null(strstr(weft_status_message(status), "kernel 'conv' needs at least"));
  assert_non_null(strstr(weft_status_message(status), "'w' alone takes"));
  assert_non_null(strstr(weft_status_message(status), "a tile of small has 49152"));
  weft_status_free(status);
  weft_fabric_deinitialize(&fabric);
}

static void test_random_kernels(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(9, 7);
  weft_rng_t rng;
  weft_rng_seed(&rng, 21);
  for (int32_t round = 0; round < 60; ++round) {
    weft_fabric_t fabric;
    random_fabric(&rng, &fabric);
    fabric.stage = WEFT_STAGE_KERNELS;
    assert_ok(weft_cost_enumerate(&fabric, &machine));
    check_alternatives(&fabric, &machine);
    weft_fabric_deinitialize(&fabric);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_figures),
      cmocka_unit_test(test_front_is_complete),
      cmocka_unit_test(test_large_layers),
      cmocka_unit_test(test_nothing_to_split),
      cmocka_unit_test(test_reduction_that_cannot_chain),
      cmocka_unit_test(test_does_not_fit),
      cmocka_unit_test(test_random_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
