// Loops: two tiles hand their state to each other in every trip, over a stream of which both are sources and sinks.
#include "tests/runtime-sim/wafer.h"

enum { TRIPS = 12, OWN = 0, STATE = 8, HISTORY = 16, MEMORY = HISTORY + 4 * TRIPS };

static void simple_loop(wafer_t* w, weft_opcode_e opcode, int32_t trips) {
  weft_instruction_t i = {.opcode = opcode, .trips = trips};
  wafer_emit(w, &i);
}

static void move(wafer_t* w, int32_t to, int32_t from, int32_t advance) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_MOV, .base = {to, from}, .advance = {advance}};
  if (advance) i.flags = WEFT_ISA_FLAG_ADVANCE;
  wafer_emit(w, &i);
}

// Tile 0 has a, tile 1 has b: (a, b) becomes (a + b, a), so that a runs through Fibonacci's numbers. Tile 0 keeps them.
static void body(wafer_t* w, int32_t tile) {
  weft_instruction_t start = {.opcode = WEFT_OPCODE_TENSOR,
                              .op = WEFT_OP_MOV,
                              .flags = WEFT_ISA_FLAG_IMMEDIATE0,
                              .base = {STATE, 0x3f800000},
                              .loop_count = 1,
                              .loop = {{.extent = 2, .stride = {4, 0}}}};
  wafer_emit(w, &start);
  simple_loop(w, WEFT_OPCODE_LOOP, TRIPS);
  if (tile == 0) {
    weft_instruction_t add = {.opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_ADD, .base = {OWN, STATE, STATE + 4}};
    wafer_emit(w, &add);
    move(w, HISTORY, OWN, 4);
  } else {
    move(w, OWN, STATE, 0);
  }
  int32_t back = tile == 0; // colour of the way back
  wafer_recv(w, WEFT_DTYPE_F32, back, STATE, 2, 0, 2);
  wafer_send(w, WEFT_DTYPE_F32, 0, OWN, 1);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, back);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 0);
  simple_loop(w, WEFT_OPCODE_END_LOOP, 0);
}

static wafer_t* pair(void) {
  wafer_t* w = wafer_create("mesh:2x1");
  uint32_t out = wafer_io(w, "y", true, WEFT_DTYPE_F32, TRIPS);
  for (int32_t tile = 0; tile < 2; ++tile) {
    wafer_tile(w, tile, 0, MEMORY);
    wafer_simple(w, WEFT_OPCODE_STEPS, 0);
    body(w, tile);
    if (tile == 0) {
      wafer_send(w, WEFT_DTYPE_F32, 2, HISTORY, TRIPS);
      wafer_simple(w, WEFT_OPCODE_WAIT_SEND, 2);
    }
    wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  wafer_route(w, 0, 0, 0, "R", "E0");
  wafer_route(w, 1, 0, 0, "WR", "R0W1");
  wafer_route(w, 0, 0, 1, "E", "R1");
  wafer_route(w, 0, 0, 2, "R", "W0");
  int32_t to = wafer_host_colour(w, wafer_port_at(w, 0, 0, WEFT_DIRECTION_W), 0);
  wafer_host(w);
  weft_instruction_t recv = wafer_recv_of(WEFT_DTYPE_F32, to, (int32_t)w->io.data[out].address, TRIPS, 0, TRIPS);
  recv.flags = WEFT_ISA_FLAG_REPEAT;
  recv.step_stride = (int32_t)w->io.data[out].step_stride;
  wafer_emit(w, &recv);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  return w;
}

static void state_comes_back_every_trip(void** state) {
  (void)state;
  wafer_t* w = pair();
  weft_sim_t* sim;
  float y[2 * TRIPS], a = 1, b = 1;
  assert_status_ok(weft_sim_create(w->allocator, wafer_image(w), &sim));
  assert_status_ok(weft_sim_run(sim, 2, NULL));
  assert_status_ok(weft_sim_get_output(sim, 0, y, sizeof(y)));
  for (int32_t i = 0; i < 2 * TRIPS; ++i) {
    if (i == TRIPS) a = b = 1; // a step starts anew
    float next = a + b;
    b = a;
    a = next;
    assert_true(y[i] == a);
  }
  weft_sim_destroy(sim);
  wafer_destroy(w);
}

// One tile without streams, its program between steps and halt.
static void refuse(void (*program)(wafer_t* w), const char* text) {
  wafer_t* w = wafer_create("mesh:2x1");
  weft_sim_t* sim = NULL;
  wafer_tile(w, 0, 0, MEMORY);
  wafer_simple(w, WEFT_OPCODE_STEPS, 0);
  program(w);
  wafer_simple(w, WEFT_OPCODE_END_STEPS, 0);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  assert_status(weft_sim_create(w->allocator, wafer_image(w), &sim), INVALID_INPUT, text);
  weft_sim_destroy(sim);
  wafer_destroy(w);
}
static void not_closed(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_LOOP, 2);
}
static void not_open(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_END_LOOP, 0);
}
static void nested(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_LOOP, 2);
  simple_loop(w, WEFT_OPCODE_LOOP, 2);
}
static void advances_outside(wafer_t* w) {
  move(w, HISTORY, OWN, 4);
}
static void one_trip_too_many(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_LOOP, TRIPS + 1);
  move(w, HISTORY, OWN, 4);
  simple_loop(w, WEFT_OPCODE_END_LOOP, 0);
}
static void backwards_too_far(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_LOOP, 3);
  move(w, 4, OWN, -4);
  simple_loop(w, WEFT_OPCODE_END_LOOP, 0);
}
static void beyond_numbers(wafer_t* w) {
  simple_loop(w, WEFT_OPCODE_LOOP, INT32_MAX);
  move(w, HISTORY, OWN, INT32_MAX);
  simple_loop(w, WEFT_OPCODE_END_LOOP, 0);
}

static void loader_refuses(void** state) {
  (void)state;
  refuse(not_closed, "inside a loop");
  refuse(not_open, "no loop is open");
  refuse(nested, "inside a loop");
  refuse(advances_outside, "outside of a loop");
  refuse(one_trip_too_many, "destination: bytes");
  refuse(backwards_too_far, "destination: bytes");
  refuse(beyond_numbers, "beyond any memory");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(state_comes_back_every_trip), cmocka_unit_test(loader_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
