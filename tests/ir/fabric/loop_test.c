// A kernel with a sequential dimension: h = tanh(x[t] + W h), y[t] = h, over STEPS time steps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "ir/fabric/streams.h"
#include "tests/ir/fabric/sample.h"

enum { STEPS = 7, UNITS = 10 };
enum { TIME, UNIT, SUMMED };                     // dimensions
enum { X, W, WHOLE, SUM, HIDDEN, ROWS };         // buffers
enum { TENSOR_X, TENSOR_W, TENSOR_H, TENSOR_Y }; // tensors

static void make_tensors(weft_fabric_t* fabric) {
  static const float weights[UNITS * UNITS];
  weft_shape_t rows = {2, {STEPS, UNITS}}, square = {2, {UNITS, UNITS}}, state = {1, {UNITS}};
  fabric->tensor_count = 4;
  fabric->tensor = SAMPLE_NEW(fabric, 4, weft_tensor_t);
  fabric->tensor[TENSOR_X] = (weft_tensor_t){.name = "x", .shape = rows, .kernel = -1, .buffer = -1};
  fabric->tensor[TENSOR_W] = (weft_tensor_t){.name = "w",
                                             .kind = WEFT_TENSOR_CONSTANT,
                                             .shape = square,
                                             .kernel = -1,
                                             .buffer = -1,
                                             .data = (const uint8_t*)weights};
  fabric->tensor[TENSOR_H] = (weft_tensor_t){.name = "h", .kind = WEFT_TENSOR_RESULT, .shape = state, .buffer = HIDDEN};
  fabric->tensor[TENSOR_Y] = (weft_tensor_t){.name = "y", .kind = WEFT_TENSOR_RESULT, .shape = rows, .buffer = ROWS};
  fabric->input_count = 1;
  fabric->input = SAMPLE_NEW(fabric, 1, int32_t);
}

static void make_kernel(weft_fabric_t* fabric) {
  static const weft_operation_t operations[] = {
      {.op = WEFT_OP_MOV, .loops = 1 << SUMMED, .destination = WHOLE, .source = {-1, -1, -1}},
      {.op = WEFT_OP_MOV, .loops = 1 << TIME | 1 << UNIT, .destination = SUM, .source = {X, -1, -1}},
      {.op = WEFT_OP_MLA, .loops = 7, .destination = SUM, .source = {WHOLE, W, -1}},
      {.op = WEFT_OP_TANH, .loops = 1 << TIME | 1 << UNIT, .destination = HIDDEN, .source = {SUM, -1, -1}},
      {.op = WEFT_OP_MOV, .loops = 1 << TIME | 1 << UNIT, .destination = ROWS, .source = {HIDDEN, -1, -1}}};
  fabric->kernel_count = 1;
  weft_kernel_t* kernel = fabric->kernel = SAMPLE_NEW(fabric, 1, weft_kernel_t);
  *kernel = (weft_kernel_t){.name = "cell", .nodes = "cell", .dim_count = 3, .reduce_operation = -1, .chosen = -1};
  kernel->dim[TIME] = (weft_dim_t){STEPS, WEFT_DIM_SEQUENTIAL};
  kernel->dim[UNIT] = (weft_dim_t){UNITS, WEFT_DIM_PARALLEL};
  kernel->dim[SUMMED] = (weft_dim_t){UNITS, WEFT_DIM_INTERNAL};
  kernel->buffer_count = 6;
  kernel->buffer = SAMPLE_NEW(fabric, 6, weft_buffer_t);
  sample_rows(&kernel->buffer[X], 2, TIME, UNIT);
  sample_rows(&kernel->buffer[W], 2, UNIT, SUMMED);
  sample_rows(&kernel->buffer[WHOLE], 1, SUMMED, 0);
  sample_operand(fabric, &kernel->buffer[X], "x", TENSOR_X, sample_view(2, STEPS, UNITS));
  sample_operand(fabric, &kernel->buffer[W], "w", TENSOR_W, sample_view(2, UNITS, UNITS));
  sample_operand(fabric, &kernel->buffer[WHOLE], "whole", TENSOR_H, sample_view(1, UNITS, 0));
  kernel->buffer[SUM] = (weft_buffer_t){.name = "sum", .kind = WEFT_BUFFER_TEMPORARY, .tensor = -1};
  kernel->buffer[HIDDEN] = (weft_buffer_t){.name = "h", .kind = WEFT_BUFFER_RESULT, .tensor = TENSOR_H};
  kernel->buffer[ROWS] = (weft_buffer_t){.name = "y", .kind = WEFT_BUFFER_RESULT, .tensor = TENSOR_Y};
  sample_rows(&kernel->buffer[SUM], 1, UNIT, 0);
  sample_rows(&kernel->buffer[HIDDEN], 1, UNIT, 0);
  sample_rows(&kernel->buffer[ROWS], 2, TIME, UNIT);
  kernel->operation_count = (int32_t)(sizeof(operations) / sizeof(operations[0]));
  kernel->operation = SAMPLE_NEW(fabric, sizeof(operations) / sizeof(operations[0]), weft_operation_t);
  memcpy(kernel->operation, operations, sizeof(operations));
}

static int setup(void** state) {
  weft_fabric_t* fabric = calloc(1, sizeof(*fabric));
  if (!fabric) return 1;
  weft_fabric_initialize(weft_allocator_system(), fabric);
  fabric->model_name = "loop";
  make_tensors(fabric);
  make_kernel(fabric);
  fabric->output_count = 1;
  fabric->output = SAMPLE_NEW(fabric, 1, weft_output_t);
  fabric->output[0] = (weft_output_t){.name = "y", .shape = fabric->tensor[TENSOR_Y].shape, .piece_count = 1};
  fabric->output[0].piece = SAMPLE_NEW(fabric, 1, weft_piece_t);
  fabric->output[0].piece[0] = (weft_piece_t){.tensor = TENSOR_Y, .view = sample_view(2, STEPS, UNITS)};
  *state = fabric;
  return 0;
}

static int teardown(void** state) {
  weft_fabric_deinitialize(*state);
  free(*state);
  return 0;
}

static void expect_ok(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

#define BROKEN(field, value, part)                                                                                     \
  do {                                                                                                                 \
    __typeof__(field) kept = (field);                                                                                  \
    (field) = (value);                                                                                                 \
    weft_status_t status = weft_fabric_verify(fabric);                                                                 \
    assert_non_null(status);                                                                                           \
    if (!strstr(weft_status_message(status), part)) fail_msg("lacks '%s': %s", part, weft_status_message(status));     \
    weft_status_free(status);                                                                                          \
    (field) = kept;                                                                                                    \
  } while (0)

static void verifier(void** state) {
  weft_fabric_t* fabric = *state;
  weft_kernel_t* kernel = fabric->kernel;
  expect_ok(weft_fabric_verify(fabric));
  BROKEN(kernel->dim[UNIT].kind, WEFT_DIM_SEQUENTIAL, "d1 is sequential, but not the outermost");
  BROKEN(kernel->dim[TIME].kind, WEFT_DIM_INTERNAL, "made by kernel 0, which doesn't come before");
  BROKEN(kernel->operation[0].destination, X, "it overwrites operand 'x'");
  BROKEN(kernel->operation[2].loops, 6, "are 2 groups, not one");
  BROKEN(kernel->reduce_operation, 2, "can't split reductions");
  BROKEN(kernel->buffer[WHOLE].piece_count, 0, "it overwrites operand 'whole'");
  expect_ok(weft_fabric_verify(fabric));
}

static void text(void** state) {
  weft_fabric_t *fabric = *state, again;
  weft_text_t first, second;
  char path[] = "/tmp/weft_loop_XXXXXX/net.fabric", constants[sizeof(path) + 4];
  path[21] = 0;
  assert_non_null(mkdtemp(path));
  path[21] = '/';
  weft_text_initialize(weft_allocator_system(), &first);
  weft_text_initialize(weft_allocator_system(), &second);
  expect_ok(weft_fabric_write(fabric, weft_allocator_system(), path));
  expect_ok(weft_fabric_read(weft_allocator_system(), path, &again));
  expect_ok(weft_fabric_print(fabric, &first));
  expect_ok(weft_fabric_print(&again, &second));
  assert_string_equal(first.data, second.data);
  assert_non_null(strstr(first.data, "dims [sequential 7, parallel 10, internal 10]"));
  weft_text_deinitialize(&first);
  weft_text_deinitialize(&second);
  weft_fabric_deinitialize(&again);
  snprintf(constants, sizeof(constants), "%s.bin", path);
  unlink(constants);
  unlink(path);
  path[21] = 0;
  assert_int_equal(rmdir(path), 0);
}

// Every alternative keeps the steps whole; the state goes from all tiles to all tiles, once a trip.
static void streams(void** state) {
  weft_fabric_t* fabric = *state;
  weft_kernel_t* kernel = fabric->kernel;
  weft_machine_t machine;
  expect_ok(weft_machine_load(weft_allocator_system(), "mesh:9x9", &machine));
  expect_ok(weft_cost_enumerate(fabric, &machine));
  assert_true(kernel->alternative_count > 1);
  assert_true(weft_split_is_feedback(fabric, 0, WHOLE));
  assert_false(weft_split_is_feedback(fabric, 0, X));
  assert_false(weft_split_is_streamed(fabric, &kernel->buffer[WHOLE]));
  for (kernel->chosen = 0; kernel->chosen < kernel->alternative_count; ++kernel->chosen) {
    const weft_split_t* split = &kernel->alternative[kernel->chosen].split;
    assert_int_equal(weft_split_block(kernel, split, TIME), STEPS);
    expect_ok(weft_streams_build(fabric, &machine, 1));
    int32_t back = 0, tiles = kernel->alternative[kernel->chosen].gy * kernel->alternative[kernel->chosen].gx;
    for (int32_t s = 0; s < fabric->stream_count; ++s) {
      const weft_stream_t* stream = &fabric->stream[s];
      if (!weft_stream_is_feedback(stream)) continue;
      ++back;
      assert_int_equal(stream->source_count, tiles);
      assert_int_equal(stream->sink_count, tiles);
      assert_int_equal(stream->elements, UNITS);
    }
    assert_int_equal(back, 1);
  }
  kernel->chosen = -1;
}

static int64_t cycles_of(weft_fabric_t* fabric, const weft_machine_t* machine, int64_t steps) {
  weft_alternative_t alternative = {.split = {.x_count = 1, .x = {{UNIT, 5}}}};
  fabric->kernel[0].dim[TIME].extent = steps;
  expect_ok(weft_cost_alternative(fabric, 0, machine, &alternative));
  return alternative.cycles;
}

// A trip costs what it costs: its instructions, and the way back of the state.
static void cost(void** state) {
  weft_fabric_t* fabric = *state;
  weft_machine_t machine;
  expect_ok(weft_machine_load(weft_allocator_system(), "mesh:9x9", &machine));
  int64_t one = cycles_of(fabric, &machine, 1), two = cycles_of(fabric, &machine, 2);
  assert_int_equal(cycles_of(fabric, &machine, 11) - one, 10 * (two - one));
  int64_t product = weft_machine_op_cycles(&machine, WEFT_OP_MLA, WEFT_DTYPE_F32, UNITS * UNITS / 5);
  assert_true(two - one > product + UNITS);
  fabric->kernel[0].dim[TIME].extent = STEPS;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(verifier), cmocka_unit_test(text), cmocka_unit_test(streams),
                                     cmocka_unit_test(cost)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
