// Values that are worked out behind the clocks: by one thread or two, late or at once, they are the same.
#include "tests/runtime-sim/wafer.h"

enum { TILES = 5, COUNT = 33, STEPS = 900 }; // enough jobs for a second thread

static weft_instruction_t repeated(weft_instruction_t i, const weft_image_io_t* io) {
  i.flags |= WEFT_ISA_FLAG_REPEAT;
  i.base[0] = (int32_t)io->address;
  i.step_stride = (int32_t)io->step_stride;
  return i;
}

// Host -> (0,0) -> (1,0) ... -> host: each tile adds 1 to half of what passes and multiplies the rest by 1.5.
static wafer_t* line_of_tiles(void) {
  wafer_t* w = wafer_create("mesh:5x1");
  uint32_t x = wafer_io(w, "x", false, WEFT_DTYPE_F32, COUNT), y = wafer_io(w, "y", true, WEFT_DTYPE_F32, COUNT);
  for (int32_t t = 0; t < TILES; ++t) {
    uint8_t in = (uint8_t)(t % 2), out = (uint8_t)(1 - t % 2);
    wafer_tile(w, t, 0, COUNT * 4);
    wafer_simple(w, WEFT_OPCODE_STEPS, 0);
    wafer_simple(w, WEFT_OPCODE_WAIT_SEND, out);
    wafer_recv(w, WEFT_DTYPE_F32, in, 0, COUNT, 0, COUNT);
    wafer_simple(w, WEFT_OPCODE_WAIT_RECV, in);
    wafer_op_immediate(w, WEFT_OP_ADD, 0, COUNT / 2, 1);
    wafer_op_immediate(w, WEFT_OP_MUL, COUNT / 2 * 4, COUNT - COUNT / 2, 1.5f);
    wafer_send(w, WEFT_DTYPE_F32, out, 0, COUNT);
    wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
    wafer_simple(w, WEFT_OPCODE_WAIT_SEND, out);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
    wafer_route(w, t, 0, in, "W", in ? "R1" : "R0");
    wafer_route(w, t, 0, out, "R", out ? "E1" : "E0");
  }
  int32_t from = wafer_host_colour(w, wafer_port_at(w, 0, 0, WEFT_DIRECTION_W), 0);
  int32_t to = wafer_host_colour(w, wafer_port_at(w, TILES - 1, 0, WEFT_DIRECTION_E), TILES % 2);
  wafer_host(w);
  weft_instruction_t recv = repeated(wafer_recv_of(WEFT_DTYPE_F32, to, 0, COUNT, 0, COUNT), &w->io.data[y]);
  weft_instruction_t send = {
      .opcode = WEFT_OPCODE_SEND, .colour = from, .loop_count = 1, .loop = {{.extent = COUNT, .stride = {4}}}};
  send = repeated(send, &w->io.data[x]);
  wafer_emit(w, &recv);
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, from);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  return w;
}

static void run_line(int32_t threads, float* y, weft_sim_report_t* out_report) {
  wafer_t* w = line_of_tiles();
  weft_sim_t* sim;
  static float x[STEPS * COUNT];
  for (int32_t i = 0; i < STEPS * COUNT; ++i) x[i] = (float)(i % 1001) * 0.37f;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  weft_control_t control = {.threads = threads};
  for (int32_t run = 0; run < 2; ++run) { // the second finds nothing left of the first
    assert_status_ok(weft_sim_set_input(sim, 0, x, sizeof(x)));
    assert_status_ok(weft_sim_run(sim, STEPS, &control));
    assert_status_ok(weft_sim_get_output(sim, 1, y, sizeof(x)));
    for (int32_t i = 0; i < STEPS * COUNT; ++i) {
      float expected = x[i];
      for (int32_t t = 0; t < TILES; ++t) expected = i % COUNT < COUNT / 2 ? expected + 1 : expected * 1.5f;
      if (y[i] != expected) fail_msg("%d threads, element %d: %g instead of %g", threads, i, y[i], expected);
    }
  }
  weft_sim_report(sim, out_report);
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

static void one_thread_or_two(void** state) {
  (void)state;
  static float y[2][STEPS * COUNT];
  weft_sim_report_t report[2];
  for (int32_t threads = 1; threads <= 2; ++threads) run_line(threads, y[threads - 1], &report[threads - 1]);
  assert_memory_equal(y[0], y[1], sizeof(y[0]));
  assert_memory_equal(&report[0], &report[1], sizeof(report[0]));
}

static void a_run_can_be_stopped(void** state) {
  (void)state;
  wafer_t* w = line_of_tiles();
  weft_sim_t* sim;
  static float x[STEPS * COUNT];
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_set_input(sim, 0, x, sizeof(x)));
  weft_control_t control = {.threads = 2, .deadline = weft_control_now() + 0.002};
  weft_status_t status = weft_sim_run(sim, STEPS, &control);
  if (status) assert_int_equal(weft_status_code(status), WEFT_STATUS_TIME_LIMIT);
  weft_status_free(status);
  assert_status_ok(weft_sim_run(sim, STEPS, NULL));
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

// Memory is given for every request but the n-th.
static void it_survives_without_memory(void** state) {
  (void)state;
  wafer_t* w = line_of_tiles();
  const weft_image_t* image = wafer_image(w);
  static float x[STEPS * COUNT];
  weft_failing_allocator_t failing = {.countdown = UINT64_MAX};
  for (uint64_t n = 0; n < 100000; n = n * 5 / 4 + 1) {
    failing.countdown = n;
    weft_sim_t* sim = NULL;
    weft_status_t status = weft_sim_create(weft_allocator_failing(&failing), image, &sim);
    if (!status) status = weft_sim_set_input(sim, 0, x, sizeof(x));
    if (!status) status = weft_sim_run(sim, STEPS, NULL);
    if (status) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    weft_sim_destroy(sim);
    assert_int_equal(failing.live, 0);
  }
  wafer_destroy(w);
}

// A tile that fills the two places of a ring in two steps before anybody takes what it sends.
static void late_memory_gets_its_fills(void** state) {
  (void)state;
  enum { BUSY = 3000 };
  wafer_t* w = wafer_create("mesh:2x1");
  uint32_t y = wafer_io(w, "y", true, WEFT_DTYPE_F32, COUNT);
  weft_isa_ring_t ring = {COUNT * 4, 2};
  weft_instruction_t fill = {.opcode = WEFT_OPCODE_TENSOR,
                             .op = WEFT_OP_MOV,
                             .flags = WEFT_ISA_FLAG_IMMEDIATE0 | WEFT_ISA_FLAG_RING,
                             .base = {0, 0x40400000},
                             .ring = {ring, {0, 1}},
                             .loop_count = 1,
                             .loop = {{.extent = COUNT, .stride = {4, 0}}}};
  weft_instruction_t send = {.opcode = WEFT_OPCODE_SEND,
                             .flags = WEFT_ISA_FLAG_RING,
                             .ring = {ring},
                             .loop_count = 1,
                             .loop = {{.extent = COUNT, .stride = {4}}}};
  wafer_tile(w, 0, 0, 2 * COUNT * 4);
  wafer_simple(w, WEFT_OPCODE_STEPS, 0);
  wafer_emit(w, &fill);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 0);
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 0);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 1, 0, BUSY * 4 + COUNT * 4);
  wafer_simple(w, WEFT_OPCODE_STEPS, 0);
  wafer_op_immediate(w, WEFT_OP_ADD, COUNT * 4, BUSY, 1);
  wafer_recv(w, WEFT_DTYPE_F32, 0, 0, COUNT, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
  wafer_send(w, WEFT_DTYPE_F32, 1, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 0, 0, 0, "R", "E0");
  wafer_route(w, 1, 0, 0, "W", "R0");
  wafer_route(w, 1, 0, 1, "R", "E1");
  int32_t to = wafer_host_colour(w, wafer_port_at(w, 1, 0, WEFT_DIRECTION_E), 1);
  wafer_host(w);
  weft_instruction_t recv = repeated(wafer_recv_of(WEFT_DTYPE_F32, to, 0, COUNT, 0, COUNT), &w->io.data[y]);
  wafer_emit(w, &recv);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  weft_sim_t* sim;
  float out[3 * COUNT];
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_run(sim, 3, NULL));
  assert_status_ok(weft_sim_get_output(sim, y, out, sizeof(out)));
  for (int32_t i = 0; i < 3 * COUNT; ++i) assert_true(out[i] == 3);
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_thread_or_two),
      cmocka_unit_test(a_run_can_be_stopped),
      cmocka_unit_test(it_survives_without_memory),
      cmocka_unit_test(late_memory_gets_its_fills),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
