// Streams between hand-made programs: values, order, timing, steps, and what is reported when nothing can move.
#include "tests/runtime-sim/wafer.h"

static void run_and_read(wafer_t* w, int64_t steps, uint32_t io, void* out, size_t size,
                         weft_sim_report_t* out_report) {
  weft_sim_t* sim;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_run(sim, steps, NULL));
  assert_status_ok(weft_sim_get_output(sim, io, out, size));
  if (out_report) weft_sim_report(sim, out_report);
  weft_sim_destroy(sim);
}

// A tile's f32 row to the host: the tile at (x, y) is at the western edge with a port.
static int32_t to_host(wafer_t* w, int32_t y, uint8_t colour) {
  wafer_route(w, 0, y, colour, "R", "W0");
  return wafer_host_colour(w, wafer_port_at(w, 0, y, WEFT_DIRECTION_W), 0);
}

static void host_receives(wafer_t* w, int32_t host_colour, uint32_t io, int32_t count, bool repeat) {
  weft_instruction_t recv =
      wafer_recv_of((weft_dtype_e)w->io.data[io].dtype, host_colour, (int32_t)w->io.data[io].address, count, 0, count);
  if (repeat) {
    recv.flags = WEFT_ISA_FLAG_REPEAT;
    recv.step_stride = (int32_t)w->io.data[io].step_stride;
  }
  wafer_emit(w, &recv);
}

static void multicast_and_filter(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:3x2");
  float values[7] = {1, 2, 3, 4, 5, 6, 7};
  uint32_t out = wafer_io(w, "y", true, WEFT_DTYPE_F32, 5);
  // (2,0) multicasts to (0,0), (1,0) and (1,1); (0,0) keeps [1,6), and sends it to the host.
  wafer_tile(w, 0, 0, 64);
  wafer_recv(w, WEFT_DTYPE_F32, 5, 4, 7, 1, 6);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 5);
  wafer_send(w, WEFT_DTYPE_F32, 1, 4, 5);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  for (int32_t i = 0; i < 2; ++i) {
    if (i == 1) {
      wafer_tile(w, 2, 0, 28);
      wafer_load(w, 0, values, sizeof(values));
      wafer_send(w, WEFT_DTYPE_F32, 3, 0, 7);
      wafer_simple(w, WEFT_OPCODE_HALT, 0);
    }
    wafer_tile(w, 1, i, 64);
    wafer_recv(w, WEFT_DTYPE_F32, i ? 2 : 4, 0, 7, 6, 7);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  wafer_route(w, 2, 0, 3, "R", "W4");
  wafer_route(w, 1, 0, 4, "E", "W5R4S2");
  wafer_route(w, 0, 0, 5, "E", "R5");
  wafer_route(w, 1, 1, 2, "N", "R2");
  int32_t host = to_host(w, 0, 1);
  wafer_host(w);
  host_receives(w, host, out, 5, false);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, host);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  float got[5];
  weft_sim_report_t report;
  run_and_read(w, 1, out, got, sizeof(got), &report);
  for (int32_t i = 0; i < 5; ++i) assert_true(got[i] == (float)(i + 2));
  assert_int_equal(report.wavelets_sent, 7 + 5);
  assert_int_equal(report.wavelet_hops, 7 * 3 + 5);
  assert_int_equal(report.longest_route, 2);
  wafer_destroy(w);
}

// Three sources with segments of different length; the switch order, not the distance, is the order.
static void gather_in_switch_order(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:2x3");
  uint8_t bytes[3][3] = {{10, 11, 12}, {20, 21, 0}, {30, 0, 0}};
  uint32_t out = wafer_io(w, "y", true, WEFT_DTYPE_U8, 6);
  // Tiles (0,0), (1,0) and (0,2) send to (0,1): first its north, then itself (nothing), then south.
  int32_t at[3][2] = {{0, 0}, {1, 0}, {0, 2}};
  for (int32_t i = 0; i < 2; ++i) {
    wafer_tile(w, at[i][0], at[i][1], 8);
    wafer_load(w, 0, bytes[i], 3);
    wafer_send(w, WEFT_DTYPE_U8, 0, 0, 3 - i);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  wafer_tile(w, 0, 1, 8);
  wafer_recv(w, WEFT_DTYPE_U8, 0, 2, 6, 0, 6);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
  wafer_send(w, WEFT_DTYPE_U8, 1, 2, 6);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 0, 2, 8);
  wafer_load(w, 0, bytes[2], 3);
  wafer_send(w, WEFT_DTYPE_U8, 0, 0, 1);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 0, 0, 0, "ER", "S0"); // (1,0) before (0,0)
  wafer_route(w, 1, 0, 0, "R", "W0");
  wafer_route(w, 0, 1, 0, "SN", "R0"); // south before north
  wafer_route(w, 0, 2, 0, "R", "N0");
  int32_t host = to_host(w, 1, 1);
  wafer_host(w);
  host_receives(w, host, out, 6, false);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, host);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  uint8_t got[6], expected[6] = {30, 20, 21, 10, 11, 12};
  run_and_read(w, 1, out, got, sizeof(got), NULL);
  assert_memory_equal(got, expected, sizeof(got));
  wafer_destroy(w);
}

// A chain of P tiles in a row reduces B values in about B + 6 (P - 1) cycles.
static int64_t chain_cycles(int32_t tiles, int32_t count) {
  char machine[32];
  snprintf(machine, sizeof(machine), "mesh:%dx1", tiles);
  wafer_t* w = wafer_create(machine);
  w->machine.tile_memory = 1 << 20;
  w->machine.port_latency = 0;
  w->machine.issue_cycles = 0;
  float* values = calloc((size_t)count, sizeof(*values));
  uint32_t out = wafer_io(w, "y", true, WEFT_DTYPE_F32, count);
  int32_t size = count * (int32_t)sizeof(float);
  // From east to west; two colours alternate. Tile (0,0) owns the result.
  for (int32_t x = 0; x < tiles; ++x) {
    wafer_tile(w, x, 0, (uint32_t)size);
    for (int32_t i = 0; i < count; ++i) values[i] = (float)(x + 1) * (float)(i % 7);
    wafer_load(w, 0, values, (uint32_t)size);
    if (x == tiles - 1) {
      wafer_send(w, WEFT_DTYPE_F32, x % 2, 0, count);
      wafer_route(w, x, 0, (uint8_t)(x % 2), "R", x % 2 ? "W1" : "W0");
    } else {
      int32_t in = (x + 1) % 2;
      weft_instruction_t chain = {.opcode = WEFT_OPCODE_CHAIN,
                                  .op = WEFT_OP_ADD,
                                  .colour = in,
                                  .out_colour = x == 0 ? -1 : x % 2,
                                  .loop_count = 1,
                                  .loop = {{.extent = count, .stride = {4}}}};
      wafer_emit(w, &chain);
      wafer_route(w, x, 0, (uint8_t)in, "E", in ? "R1" : "R0");
      if (x > 0) wafer_route(w, x, 0, (uint8_t)(x % 2), "R", x % 2 ? "W1" : "W0");
    }
    if (x == 0) wafer_send(w, WEFT_DTYPE_F32, 2, 0, count);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  int32_t host = to_host(w, 0, 2);
  wafer_host(w);
  host_receives(w, host, out, count, false);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, host);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  float* got = calloc((size_t)count, sizeof(*got));
  weft_sim_report_t report;
  run_and_read(w, 1, out, got, (size_t)size, &report);
  for (int32_t i = 0; i < count; ++i) assert_true(got[i] == (float)(tiles * (tiles + 1) / 2) * (float)(i % 7));
  free(values);
  free(got);
  int64_t ramp = w->machine.ramp_cycles;
  wafer_destroy(w);
  return report.cycles - count - ramp; // without the way to the host: ramp, then one wavelet a cycle
}

static void chain_timing(void** state) {
  (void)state;
  const int32_t tiles[] = {4, 7, 16, 64, 256}, counts[] = {1, 5, 64, 256, 1024};
  for (size_t p = 0; p < 5; ++p) {
    for (size_t b = 0; b < 5; ++b) {
      double model = counts[b] + 6.0 * (tiles[p] - 1), cycles = (double)chain_cycles(tiles[p], counts[b]);
      if (cycles > model * 1.04 || cycles < model * 0.96)
        fail_msg("%d tiles, %d values: %g cycles, the model has %g", tiles[p], counts[b], cycles, model);
    }
  }
}

// Host -> (1,0) adds 1 -> (0,0) doubles -> host, for several steps; the slow middle holds the fast source back.
static void pipeline(wafer_t* w, uint32_t* out_in, uint32_t* out_out, int32_t count) {
  uint32_t in = wafer_io(w, "x", false, WEFT_DTYPE_F32, count), out = wafer_io(w, "y", true, WEFT_DTYPE_F32, count);
  int32_t east = w->machine.width - 1;
  uint32_t bytes = (uint32_t)count * 8;
  for (int32_t x = 0; x < w->machine.width; x += east) {
    wafer_tile(w, x, 0, bytes);
    wafer_simple(w, WEFT_OPCODE_STEPS, 0);
    wafer_recv(w, WEFT_DTYPE_F32, 0, 0, count, 0, count);
    wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
    wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
    weft_instruction_t move = {.opcode = WEFT_OPCODE_TENSOR,
                               .op = x ? WEFT_OP_ADD : WEFT_OP_MUL,
                               .flags = WEFT_ISA_FLAG_IMMEDIATE1,
                               .base = {count * 4, 0},
                               .loop_count = 1,
                               .loop = {{.extent = count, .stride = {4, 4, 0}}}};
    float value = x ? 1 : 2;
    memcpy(&move.base[2], &value, sizeof(value));
    wafer_emit(w, &move);
    wafer_send(w, WEFT_DTYPE_F32, 1, count * 4, count);
    wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
    wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 1);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  wafer_route(w, east, 0, 0, "E", "R0");
  wafer_route(w, east, 0, 1, "R", "W0");
  for (int32_t x = 1; x < east; ++x) wafer_route(w, x, 0, 0, "E", "W0");
  wafer_route(w, 0, 0, 0, "E", "R0");
  int32_t from = wafer_host_colour(w, wafer_port_at(w, east, 0, WEFT_DIRECTION_E), 0), to = to_host(w, 0, 1);
  wafer_host(w);
  host_receives(w, to, out, count, true);
  weft_instruction_t send = {.opcode = WEFT_OPCODE_SEND,
                             .flags = WEFT_ISA_FLAG_REPEAT,
                             .colour = from,
                             .base = {(int32_t)w->io.data[in].address},
                             .step_stride = (int32_t)w->io.data[in].step_stride,
                             .loop_count = 1,
                             .loop = {{.extent = count, .stride = {4}}}};
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, from);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  *out_in = in;
  *out_out = out;
}

typedef struct progress_t {
  uint64_t done, total;
} progress_t;
static void note_progress(void* self, const char* stage, uint64_t done, uint64_t total) {
  progress_t* progress = self;
  assert_string_equal(stage, "simulate");
  assert_true(done >= progress->done);
  *progress = (progress_t){done, total};
}

static void steps_with_backpressure(void** state) {
  (void)state;
  enum { COUNT = 5, STEPS = 6 };
  wafer_t* w = wafer_create("mesh:4x1");
  uint32_t in, out;
  pipeline(w, &in, &out, COUNT);
  weft_sim_t* sim;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  float x[STEPS * COUNT], y[STEPS * COUNT], again[STEPS * COUNT];
  for (int32_t i = 0; i < STEPS * COUNT; ++i) x[i] = (float)i;
  assert_status(weft_sim_run(sim, STEPS, NULL), INVALID_ARGUMENT, "input 'x' is set for 0 steps");
  assert_status_ok(weft_sim_set_input(sim, in, x, sizeof(x)));
  progress_t progress = {0};
  weft_control_t control = {.self = &progress, .progress = note_progress};
  assert_status_ok(weft_sim_run(sim, STEPS, &control));
  assert_int_equal(progress.done, STEPS);
  assert_int_equal(progress.total, STEPS);
  assert_status_ok(weft_sim_get_output(sim, out, y, sizeof(y)));
  for (int32_t i = 0; i < STEPS * COUNT; ++i) assert_true(y[i] == (x[i] + 1) * 2);
  weft_sim_report_t first, second;
  weft_sim_report(sim, &first);
  assert_int_equal(first.steps, STEPS);
  assert_true(first.first_cycles < first.cycles);
  assert_true(first.cycles_per_step > 0 && first.cycles_per_step < (double)first.first_cycles);
  // A second run starts afresh.
  assert_status_ok(weft_sim_run(sim, STEPS, NULL));
  assert_status_ok(weft_sim_get_output(sim, out, again, sizeof(again)));
  weft_sim_report(sim, &second);
  assert_memory_equal(&first, &second, sizeof(first));
  assert_memory_equal(y, again, sizeof(y));
  // Metrics.
  double busy[4], energy[4], links[16], sum = 0;
  assert_status_ok(weft_sim_tile_metric(sim, WEFT_SIM_BUSY_CYCLES, busy));
  assert_status_ok(weft_sim_tile_metric(sim, WEFT_SIM_ENERGY, energy));
  assert_status_ok(weft_sim_tile_metric(sim, WEFT_SIM_LINK_WAVELETS, links));
  assert_true(busy[0] > 0 && busy[3] > 0 && busy[1] == 0);
  for (int32_t t = 0; t < 4; ++t) sum += energy[t];
  assert_true(sum > 0 && sum <= first.energy_pj);
  for (int32_t t = 0; t < 4; ++t) assert_true(links[t * 4 + WEFT_DIRECTION_W] == STEPS * COUNT);
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

static void input_and_output_sizes(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:3x1");
  uint32_t in, out;
  pipeline(w, &in, &out, 3);
  weft_sim_t* sim;
  float x[6] = {0};
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status(weft_sim_set_input(sim, in, x, 13), INVALID_ARGUMENT, "13 bytes; one tensor has 12");
  assert_status(weft_sim_set_input(sim, out, x, 12), INVALID_ARGUMENT, "'y' is an output");
  assert_status(weft_sim_set_input(sim, 9, x, 12), INVALID_ARGUMENT, "no input or output 9");
  assert_status(weft_sim_get_output(sim, out, x, 12), INVALID_ARGUMENT, "nothing has run");
  assert_status_ok(weft_sim_set_input(sim, in, x, 24));
  assert_status(weft_sim_run(sim, 1, NULL), INVALID_ARGUMENT, "set for 2 steps, the run has 1");
  assert_status(weft_sim_run(sim, 0, NULL), INVALID_ARGUMENT, "at least 1");
  assert_status_ok(weft_sim_run(sim, 2, NULL));
  assert_status(weft_sim_get_output(sim, out, x, 12), INVALID_ARGUMENT, "room for 12 bytes");
  assert_status(weft_sim_get_output(sim, in, x, 24), INVALID_ARGUMENT, "'x' is an input");
  volatile sig_atomic_t cancelled = 1;
  weft_control_t control = {.cancelled = &cancelled};
  assert_status(weft_sim_run(sim, 2, &control), INTERRUPTED, "simulate");
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

static void deadlock_is_grouped(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:6x5");
  int32_t producer = wafer_kernel(w, "conv1"), consumer = wafer_kernel(w, "conv2");
  // (0,1) is to multicast along row 1, and from there down rows 2 and 3 of columns 2..4; it waits for a send of its
  // own.
  for (int32_t y = 1; y < 4; ++y) {
    if (y == 1) {
      wafer_tile_of(w, wafer_index(w, 0, 1), producer, 16);
      wafer_recv(w, WEFT_DTYPE_F32, 7, 0, 1, 0, 1);
      wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 7);
      wafer_send(w, WEFT_DTYPE_F32, 0, 0, 1);
      wafer_simple(w, WEFT_OPCODE_HALT, 0);
    }
    for (int32_t x = 2; x < 5; ++x) {
      wafer_tile_of(w, wafer_index(w, x, y), consumer, 16);
      wafer_recv(w, WEFT_DTYPE_F32, 3, 0, 1, 0, 1);
      wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 3);
      wafer_simple(w, WEFT_OPCODE_HALT, 0);
      wafer_route(w, x, y, 3, y == 1 ? "W" : "N", y == 1 ? (x < 4 ? "E3S3R3" : "S3R3") : y == 2 ? "S3R3" : "R3");
    }
  }
  wafer_tile_of(w, wafer_index(w, 0, 4), producer, 16);
  wafer_simple(w, WEFT_OPCODE_HALT, 0); // and never sends
  wafer_route(w, 0, 1, 0, "R", "E3");
  wafer_route(w, 1, 1, 3, "W", "E3");
  wafer_route(w, 0, 1, 7, "S", "R7");
  wafer_route(w, 0, 2, 7, "S", "N7");
  wafer_route(w, 0, 3, 7, "S", "N7");
  wafer_route(w, 0, 4, 7, "R", "N7");
  weft_sim_t* sim;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  weft_status_t status = weft_sim_run(sim, 1, NULL);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DEADLOCK);
  const char* message = weft_status_message(status);
  if (!strstr(message, "conv2: 3x3 tiles at (2,1)..(4,3) wait to receive on colour 3 from conv1 since cycle 4") ||
      !strstr(message, "conv1: tile (0,1) waits to receive on colour 7 from conv1 since cycle 4"))
    fail_msg("%s", message);
  weft_status_free(status);
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

static void counts_must_match(void** state) {
  (void)state;
  wafer_t* w = wafer_create("mesh:2x1");
  wafer_tile(w, 0, 0, 64);
  wafer_recv(w, WEFT_DTYPE_F32, 2, 0, 5, 0, 5);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_tile(w, 1, 0, 64);
  wafer_send(w, WEFT_DTYPE_F32, 1, 0, 4);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  wafer_route(w, 1, 0, 1, "R", "W2");
  wafer_route(w, 0, 0, 2, "E", "R2");
  weft_sim_t* sim;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status(weft_sim_run(sim, 1, NULL), INVALID_INPUT, "tile (0,0) expects 5 elements on colour 2");
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(multicast_and_filter),   cmocka_unit_test(gather_in_switch_order),
      cmocka_unit_test(chain_timing),           cmocka_unit_test(steps_with_backpressure),
      cmocka_unit_test(input_and_output_sizes), cmocka_unit_test(deadlock_is_grouped),
      cmocka_unit_test(counts_must_match),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
