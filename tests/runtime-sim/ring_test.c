// Rings of buffers: receives that are posted ahead, and what they do for the time from one step to the next.
#include "tests/runtime-sim/wafer.h"

enum { COUNT = 100 };

static weft_instruction_t repeated(weft_instruction_t i, const weft_image_io_t* io) {
  i.flags |= WEFT_ISA_FLAG_REPEAT;
  i.base[0] = (int32_t)io->address;
  i.step_stride = (int32_t)io->step_stride;
  return i;
}

static weft_instruction_t send_of(int32_t colour, int32_t base) {
  return (weft_instruction_t){.opcode = WEFT_OPCODE_SEND,
                              .colour = colour,
                              .base = {base},
                              .loop_count = 1,
                              .loop = {{.extent = COUNT, .stride = {4}}}};
}

// Host -> tile (0,0), which adds 1 -> host. Operand and result lie in rings of these depths, one behind the other.
typedef struct adder_t {
  wafer_t* wafer;
  int32_t in_depth, out_depth;
  int32_t passes; // over the operand; each takes COUNT / 2 cycles and some
} adder_t;

static void adder_tile(const adder_t* a) {
  wafer_t* w = a->wafer;
  weft_isa_ring_t in = {COUNT * 4, a->in_depth}, out = {COUNT * 4, a->out_depth};
  int32_t result = in.depth * in.stride;
  wafer_tile(w, 0, 0, (uint32_t)(result + out.depth * out.stride));
  weft_instruction_t recv = wafer_recv_of(WEFT_DTYPE_F32, 0, 0, COUNT, 0, COUNT), send = send_of(1, result);
  recv.flags = send.flags = WEFT_ISA_FLAG_RING;
  recv.ring[0] = in;
  send.ring[0] = out;
  wafer_emit(w, &recv);
  for (int32_t p = 1; p < in.depth; ++p) wafer_simple(w, WEFT_OPCODE_AGAIN, 0);
  wafer_simple(w, WEFT_OPCODE_STEPS, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  if (out.depth == 1) wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
  for (int32_t pass = 0; pass < a->passes; ++pass) {
    weft_instruction_t add = {.opcode = WEFT_OPCODE_TENSOR,
                              .op = WEFT_OP_ADD,
                              .flags = WEFT_ISA_FLAG_IMMEDIATE1 | WEFT_ISA_FLAG_RING,
                              .base = {result, 0, 0x3f800000},
                              .ring = {out, in, {0, 1}},
                              .loop_count = 1,
                              .loop = {{.extent = COUNT, .stride = {4, 4, 0}}}};
    wafer_emit(w, &add);
  }
  wafer_simple(w, WEFT_OPCODE_AGAIN, 0);
  if (out.depth > 1) wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
}

static void adder_host(const adder_t* a) {
  wafer_t* w = a->wafer;
  int32_t port = wafer_port_at(w, 0, 0, WEFT_DIRECTION_W);
  int32_t from = wafer_host_colour(w, port, 0), to = wafer_host_colour(w, port, 1);
  wafer_route(w, 0, 0, 0, "W", "R0");
  wafer_route(w, 0, 0, 1, "R", "W1");
  wafer_host(w);
  weft_instruction_t recv = repeated(wafer_recv_of(WEFT_DTYPE_F32, to, 0, COUNT, 0, COUNT), &w->io.data[1]);
  weft_instruction_t send = repeated(send_of(from, 0), &w->io.data[0]);
  wafer_emit(w, &recv);
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, from);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
}

// The time from one step to the next once the pipeline is full, and the values.
static double interval(adder_t a) {
  enum { STEPS = 9 };
  a.wafer = wafer_create("mesh:2x1");
  a.wafer->machine.port_latency = 0;
  wafer_io(a.wafer, "x", false, WEFT_DTYPE_F32, COUNT);
  wafer_io(a.wafer, "y", true, WEFT_DTYPE_F32, COUNT);
  adder_tile(&a);
  adder_host(&a);
  weft_sim_t* sim;
  float x[STEPS * COUNT], y[STEPS * COUNT];
  for (int32_t i = 0; i < STEPS * COUNT; ++i) x[i] = (float)i;
  assert_status_ok(weft_sim_create(a.wafer->allocator, wafer_image(a.wafer), &sim));
  int64_t cycles[2];
  for (int32_t run = 0; run < 2; ++run) {
    int64_t steps = run ? STEPS : STEPS - 4;
    assert_status_ok(weft_sim_set_input(sim, 0, x, (size_t)steps * COUNT * sizeof(float)));
    assert_status_ok(weft_sim_run(sim, steps, NULL));
    assert_status_ok(weft_sim_get_output(sim, 1, y, (size_t)steps * COUNT * sizeof(float)));
    for (int32_t i = 0; i < steps * COUNT; ++i) assert_true(y[i] == x[i] + 1);
    weft_sim_report_t report;
    weft_sim_report(sim, &report);
    cycles[run] = report.cycles;
  }
  weft_sim_destroy(sim);
  wafer_destroy(a.wafer);
  return (double)(cycles[1] - cycles[0]) / 4;
}

static void streams_and_compute_overlap(void** state) {
  (void)state;
  const int32_t compute = 4 + COUNT / 2, issue = 4;
  // Bound by compute: a step takes its operations, two waits, one receive and one send.
  for (int32_t in = 2; in < 5; ++in)
    for (int32_t out = 2; out < 4; ++out)
      assert_int_equal(interval((adder_t){.in_depth = in, .out_depth = out, .passes = 6}), 6 * compute + 4 * issue);
  // Bound by the streams: one wavelet a cycle; between two sends of a colour they are waited for and posted.
  assert_int_equal(interval((adder_t){.in_depth = 2, .out_depth = 2, .passes = 1}), COUNT + 2 * issue);
  // Alone, operand and work come one after the other.
  double alone = interval((adder_t){.in_depth = 1, .out_depth = 1, .passes = 6});
  assert_true(alone >= 6 * compute + COUNT);
  assert_true(alone <= 6 * compute + COUNT + 10 * issue);
}

// One tile that posts `posts` receives, waits for `waits` of them, and halts; another that sends `sends` times.
static weft_status_t run_posts(int32_t depth, int32_t posts, int32_t waits, int32_t sends) {
  wafer_t* w = wafer_create("mesh:2x1");
  weft_instruction_t recv = wafer_recv_of(WEFT_DTYPE_F32, 0, 0, COUNT, 0, COUNT);
  recv.flags = WEFT_ISA_FLAG_RING;
  recv.ring[0] = (weft_isa_ring_t){COUNT * 4, depth};
  wafer_tile(w, 0, 0, (uint32_t)(depth * COUNT * 4));
  wafer_emit(w, &recv);
  for (int32_t p = 1; p < posts; ++p) wafer_simple(w, WEFT_OPCODE_AGAIN, 0);
  for (int32_t p = 0; p < waits; ++p) wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 1, 0, COUNT * 4);
  for (int32_t s = 0; s < sends; ++s) wafer_send(w, WEFT_DTYPE_F32, 0, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 1, 0, 0, "R", "W0");
  wafer_route(w, 0, 0, 0, "E", "R0");
  weft_sim_t* sim;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  weft_status_t status = weft_sim_run(sim, 1, NULL);
  weft_sim_destroy(sim);
  wafer_destroy(w);
  return status;
}

static void receives_are_posted_ahead(void** state) {
  (void)state;
  assert_status_ok(run_posts(3, 3, 1, 1)); // two were for steps that never come
  assert_status_ok(run_posts(3, 3, 0, 1));
  assert_status_ok(run_posts(2, 5, 5, 5)); // those beyond the ring wait until a place is free
  assert_status(run_posts(3, 3, 0, 0), DEADLOCK, "halted and still has a receive on colour 0");
  assert_status(run_posts(3, 3, 2, 1), DEADLOCK, "waits to receive on colour 0"); // for the second
  assert_status(run_posts(2, 3, 0, 0), DEADLOCK, "waits to receive on colour 0"); // for a place
  assert_status(run_posts(3, 1, 1, 2), DEADLOCK, "halted and still has a send on colour 0");
}

// Wait.recv tells the receives apart: after the first, only the first is there.
static void waits_are_in_order(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:2x1");
  wafer_io(w, "y", true, WEFT_DTYPE_F32, COUNT);
  weft_instruction_t recv = wafer_recv_of(WEFT_DTYPE_F32, 0, 0, COUNT, 0, COUNT);
  recv.flags = WEFT_ISA_FLAG_RING;
  recv.ring[0] = (weft_isa_ring_t){COUNT * 4, 2};
  wafer_tile(w, 0, 0, COUNT * 8);
  wafer_emit(w, &recv);
  wafer_simple(w, WEFT_OPCODE_AGAIN, 0);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_send(w, WEFT_DTYPE_F32, 1, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 1, 0, COUNT * 4);
  wafer_send(w, WEFT_DTYPE_F32, 0, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 0);
  for (int32_t i = 0; i < 40; ++i) wafer_op_immediate(w, WEFT_OP_ADD, 0, COUNT, 1);
  wafer_send(w, WEFT_DTYPE_F32, 0, 0, COUNT);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 1, 0, 0, "R", "W0");
  wafer_route(w, 0, 0, 0, "E", "R0");
  wafer_route(w, 0, 0, 1, "R", "W1");
  int32_t to = wafer_host_colour(w, wafer_port_at(w, 0, 0, WEFT_DIRECTION_W), 1);
  wafer_host(w);
  weft_instruction_t host = repeated(wafer_recv_of(WEFT_DTYPE_F32, to, 0, COUNT, 0, COUNT), &w->io.data[0]);
  wafer_emit(w, &host);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  weft_sim_t* sim;
  float y[COUNT];
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_run(sim, 1, NULL));
  assert_status_ok(weft_sim_get_output(sim, 0, y, sizeof(y)));
  for (int32_t i = 0; i < COUNT; ++i) assert_true(y[i] == 0);
  weft_sim_report_t report;
  weft_sim_report(sim, &report);
  assert_true(report.cycles < 40 * COUNT / 2); // long before the second was sent
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

// (1,0) sends to (0,0), which sends what it got to the host. Another stream of `far` elements, from the far end to
// (0,1), uses the link between them, too, and starts a little earlier.
static int64_t near_stream_cycles(int32_t far, int32_t near) {
  wafer_t* w = wafer_create("mesh:40x2");
  wafer_io(w, "y", true, WEFT_DTYPE_F32, near);
  wafer_tile(w, 0, 0, 400);
  wafer_recv(w, WEFT_DTYPE_F32, 0, 0, near, 0, near);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_send(w, WEFT_DTYPE_F32, 2, 0, near);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 1, 0, 400);
  wafer_op_immediate(w, WEFT_OP_ADD, 0, 20, 1); // 14 cycles
  wafer_send(w, WEFT_DTYPE_F32, 0, 0, near);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 1, 0, 0, "R", "W0");
  wafer_route(w, 0, 0, 0, "E", "R0");
  wafer_route(w, 0, 0, 2, "R", "W2");
  if (far) {
    wafer_tile(w, 39, 0, 400);
    wafer_send(w, WEFT_DTYPE_F32, 1, 0, far);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
    wafer_route(w, 39, 0, 1, "R", "W1");
    for (int32_t x = 1; x < 39; ++x) wafer_route(w, x, 0, 1, "E", "W1");
    wafer_tile(w, 0, 1, 400);
    wafer_recv(w, WEFT_DTYPE_F32, 1, 0, far, 0, far);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
    wafer_route(w, 0, 0, 1, "E", "S1");
    wafer_route(w, 0, 1, 1, "N", "R1");
  }
  int32_t to = wafer_host_colour(w, wafer_port_at(w, 0, 0, WEFT_DIRECTION_W), 2);
  wafer_host(w);
  weft_instruction_t recv = repeated(wafer_recv_of(WEFT_DTYPE_F32, to, 0, near, 0, near), &w->io.data[0]);
  wafer_emit(w, &recv);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  weft_sim_t* sim;
  weft_sim_report_t report;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_run(sim, 1, NULL));
  weft_sim_report(sim, &report);
  weft_sim_destroy(sim);
  wafer_destroy(w);
  return report.cycles;
}

static void links_serve_whom_comes_first(void** state) {
  (void)state;
  // The far one reaches the link in cycle 44, the near one in cycle 20.
  assert_int_equal(near_stream_cycles(30, 20), near_stream_cycles(0, 20));
  // There is no room for more before it, so it comes after it.
  assert_true(near_stream_cycles(30, 40) > near_stream_cycles(0, 40) + 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(streams_and_compute_overlap),
      cmocka_unit_test(receives_are_posted_ahead),
      cmocka_unit_test(waits_are_in_order),
      cmocka_unit_test(links_serve_whom_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
