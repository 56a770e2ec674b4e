// Link loads of a routed fabric against loads worked out by hand.
#include "ir/fabric/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum {
  WIDTH = 5,
  HEIGHT = 3,
  LINKS = WIDTH * HEIGHT * WEFT_DIRECTION_COUNT,
  N = WEFT_DIRECTION_N,
  E = WEFT_DIRECTION_E,
  S = WEFT_DIRECTION_S,
  W = WEFT_DIRECTION_W,
  RAMP = WEFT_DIRECTION_RAMP
};
#define TILE(x, y) ((y)*WIDTH + (x))
#define BIT(d) (1u << (d))

static weft_router_entry_t entry(int32_t tile, uint8_t colour, uint8_t first, int second, uint32_t outputs,
                                 uint8_t next_colour) {
  weft_router_entry_t e = {.tile = tile, .colour = colour, .input_count = (uint8_t)(second < 0 ? 1 : 2)};
  e.input[0] = first;
  e.input[1] = (uint8_t)(second < 0 ? 0 : second);
  e.outputs = (uint16_t)outputs;
  for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) e.output_colour[d] = next_colour;
  return e;
}

typedef struct scene_t {
  weft_machine_t machine;
  weft_fabric_t fabric;
  weft_kernel_t kernel[2];
  weft_stream_t stream[2];
  int64_t expected[LINKS];
} scene_t;

static int32_t source_tiles[] = {TILE(0, 1), TILE(1, 1), TILE(2, 1), TILE(3, 1)};
static int32_t sink_tiles[] = {TILE(1, 2), TILE(4, 1)};
static weft_endpoint_t sources[] = {{3, 8}, {1, 3}, {0, 5}}, sinks[] = {{0, 16}, {1, 16}};

static void expect(scene_t* s, int32_t tile, int direction, int64_t wavelets) {
  s->expected[tile * WEFT_DIRECTION_COUNT + direction] += wavelets;
}

// Half floats travel in pairs: the segments of (3, 1), (1, 1) and (0, 1) are 4, 2 and 3 wavelets. The first goes west
// and joins the second ahead of it; both turn round at (0, 1), by way of row 0 out again and along row 1 a second time.
static void make_gather(scene_t* s) {
  static weft_router_entry_t entries[10];
  weft_router_entry_t* e = entries;
  *e++ = entry(TILE(3, 1), 7, RAMP, -1, BIT(W), 6);
  *e++ = entry(TILE(2, 1), 6, E, -1, BIT(W), 5);
  *e++ = entry(TILE(1, 1), 5, E, RAMP, BIT(W), 4);
  *e++ = entry(TILE(0, 1), 4, E, RAMP, BIT(E) | BIT(S), 3);
  *e++ = entry(TILE(0, 2), 3, N, -1, BIT(E), 3);
  *e++ = entry(TILE(1, 2), 3, W, -1, BIT(RAMP), 3);
  *e++ = entry(TILE(1, 1), 3, W, -1, BIT(E), 2);
  *e++ = entry(TILE(2, 1), 2, W, -1, BIT(E), 2);
  *e++ = entry(TILE(3, 1), 2, W, -1, BIT(E), 1);
  *e++ = entry(TILE(4, 1), 1, W, -1, BIT(RAMP), 1);
  s->stream[0] = (weft_stream_t){.dtype = WEFT_DTYPE_F16,
                                 .source_kernel = 0,
                                 .sink_kernel = 1,
                                 .source_count = 3,
                                 .sink_count = 2,
                                 .source = sources,
                                 .sink = sinks,
                                 .elements = 16,
                                 .wavelets = 9,
                                 .source_port = -1,
                                 .sink_port = -1,
                                 .entry_count = 10,
                                 .entry = entries};
  expect(s, TILE(3, 1), W, 4);
  expect(s, TILE(2, 1), W, 4);
  expect(s, TILE(1, 1), W, 6);
  expect(s, TILE(0, 1), E, 9);
  expect(s, TILE(0, 1), S, 9);
  expect(s, TILE(0, 2), E, 9);
  expect(s, TILE(1, 2), RAMP, 9);
  expect(s, TILE(1, 1), E, 9);
  expect(s, TILE(2, 1), E, 9);
  expect(s, TILE(3, 1), E, 9);
  expect(s, TILE(4, 1), RAMP, 9);
}

// One source at a port of the north side, down to the first stream's sink.
static void make_input(scene_t* s) {
  static weft_router_entry_t entries[3];
  static weft_endpoint_t source = {0, 7}, sink = {0, 7};
  int32_t tile = weft_machine_port(&s->machine, 1).tile;
  entries[0] = entry(tile, 0, N, -1, BIT(S), 0);
  entries[1] = entry(tile + WIDTH, 0, N, -1, BIT(S), 0);
  entries[2] = entry(tile + 2 * WIDTH, 0, N, -1, BIT(RAMP), 0);
  s->stream[1] = (weft_stream_t){.dtype = WEFT_DTYPE_F32,
                                 .source_kernel = WEFT_HOST_KERNEL,
                                 .sink_kernel = 1,
                                 .source_count = 1,
                                 .sink_count = 1,
                                 .source = &source,
                                 .sink = &sink,
                                 .elements = 7,
                                 .wavelets = 7,
                                 .source_port = 1,
                                 .sink_port = -1,
                                 .entry_count = 3,
                                 .entry = entries};
  expect(s, tile, S, 7);
  expect(s, tile + WIDTH, S, 7);
  expect(s, tile + 2 * WIDTH, RAMP, 7);
}

static void make_scene(scene_t* s) {
  *s = (scene_t){.machine = {.name = "test",
                             .width = WIDTH,
                             .height = HEIGHT,
                             .wavelet_bits = 32,
                             .colours = 8,
                             .ports_per_side = {WIDTH, 0, 0, 0}},
                 .kernel = {{.tile = source_tiles}, {.tile = sink_tiles}}};
  s->fabric = (weft_fabric_t){
      .stage = WEFT_STAGE_ROUTED, .kernel_count = 2, .kernel = s->kernel, .stream_count = 2, .stream = s->stream};
  make_gather(s);
  make_input(s);
}

static void test_by_hand(void** state) {
  (void)state;
  scene_t s;
  make_scene(&s);
  int64_t wavelets[LINKS];
  assert_null(weft_load_links(&s.fabric, &s.machine, weft_allocator_system(), wavelets));
  for (int32_t i = 0; i < LINKS; ++i) assert_int_equal(wavelets[i], s.expected[i]);
}

// A wavelet of 16 bits holds one half float, so that segments are as many wavelets as elements.
static void test_narrow_wavelets(void** state) {
  (void)state;
  scene_t s;
  make_scene(&s);
  s.machine.wavelet_bits = 16;
  s.fabric.stream_count = 1;
  int64_t wavelets[LINKS];
  assert_null(weft_load_links(&s.fabric, &s.machine, weft_allocator_system(), wavelets));
  assert_int_equal(wavelets[TILE(2, 1) * WEFT_DIRECTION_COUNT + W], 8);
  assert_int_equal(wavelets[TILE(1, 1) * WEFT_DIRECTION_COUNT + W], 11);
  assert_int_equal(wavelets[TILE(2, 1) * WEFT_DIRECTION_COUNT + E], 16);
}

static void expect_refused(const scene_t* s, const char* part) {
  int64_t wavelets[LINKS];
  weft_status_t status = weft_load_links(&s->fabric, &s->machine, weft_allocator_system(), wavelets);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_non_null(strstr(weft_status_message(status), part));
  weft_status_free(status);
}

static void test_another_machine(void** state) {
  (void)state;
  scene_t s;
  make_scene(&s);
  s.machine.height = 2;
  expect_refused(&s, "tile 11 of the machine's 10");
  s.machine.height = HEIGHT;
  s.machine.ports_per_side[0] = 1;
  expect_refused(&s, "host port 1 of the machine's 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_hand),
      cmocka_unit_test(test_narrow_wavelets),
      cmocka_unit_test(test_another_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
