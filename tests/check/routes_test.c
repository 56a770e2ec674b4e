// Routes: each rule, broken one at a time on the routed sample, is named.
#include "tests/check/checking.h"

static void ends(void** state) {
  checking_t* t = *state;
  weft_stream_t* x = &t->fabric.stream[SAMPLE_X_TO_SCALE];
  weft_stream_t* y = &t->fabric.stream[SAMPLE_Y_TO_SUM];
  weft_stream_t* z = &t->fabric.stream[SAMPLE_Z_TO_HOST];
  const uint16_t ramp = 1u << WEFT_DIRECTION_RAMP, east = 1u << WEFT_DIRECTION_E;
  BROKEN(t, x->entry[2].outputs, x->entry[2].outputs & ~ramp,
         "stream 0 of 'x', 'host' -> 'scale': does not reach tile (2, 1)");
  BROKEN(t, y->entry[3].outputs, y->entry[3].outputs | ramp, "leaves tile (2, 2) by RAMP, where it has no sink");
  BROKEN(t, y->entry[9].outputs, y->entry[9].outputs & ~ramp, "does not reach tile (4, 2)");
  BROKEN(t, z->entry[1].outputs, ramp, "leaves tile (5, 2) by RAMP, where it has no sink");
  BROKEN(t, z->entry[1].outputs, ramp, "does not reach tile (5, 2)");
  BROKEN(t, z->entry[1].outputs, z->entry[1].outputs | 1u << WEFT_DIRECTION_S, "which expects nothing from N");
  BROKEN(t, z->sink_port, SAMPLE_PORT_OUT + 1, "leaves tile (5, 2) by E, where it has no sink");
  BROKEN(t, z->sink_port, 22, "host port 22, the machine has 22");
  BROKEN(t, x->source_port, SAMPLE_PORT_IN + 1, "enters at tile (0, 1) from W, where it has no source");
  BROKEN(t, x->entry[0].input[0], WEFT_DIRECTION_RAMP, "enters at tile (0, 1) from RAMP, where it has no source");
  BROKEN(t, x->entry[0].input[0], WEFT_DIRECTION_N,
         "colour 0 on tile (0, 1) expects wavelets from N, where none come from");
  BROKEN(t, y->entry[7].input_count, 1, "reaches tile (3, 2) with the segments of 5 of its 6 sources");
  BROKEN(t, y->entry[5].outputs, y->entry[5].outputs & ~east, "colour 1 on tile (0, 2) has no outputs");
}

static void order(void** state) {
  checking_t* t = *state;
  weft_stream_t* y = &t->fabric.stream[SAMPLE_Y_TO_SUM];
  weft_router_entry_t* entry = &y->entry[1]; // [W, RAMP]
  entry->input[0] = WEFT_DIRECTION_RAMP;
  entry->input[1] = WEFT_DIRECTION_W;
  expect_fault(CHECK(t), "on tile (1, 1), segment 0 comes after segment 1: out of order");
  entry->input[0] = WEFT_DIRECTION_W;
  entry->input[1] = WEFT_DIRECTION_RAMP;
  BROKEN(t, entry->input[1], WEFT_DIRECTION_W, "colour 1 on tile (1, 1) has input W twice");
  weft_router_entry_t kept = *entry;
  BROKEN(t, y->entry[0], kept, "colour 1 on tile (1, 1) is used twice");
  y->entry[1] = y->entry[2];
  y->entry[2] = kept;
  expect_fault(CHECK(t), "colour 1 on tile (2, 1) is listed before the one that feeds it, or feeds itself");
}

// A ring that nothing enters: every output has its input.
static void loops(void** state) {
  checking_t* t = *state;
  weft_stream_t* z = &t->fabric.stream[SAMPLE_Z_TO_HOST];
  const sample_step_t ring[] = {
      {0, 3, 5, false, false}, {1, 3, 5, false, false}, {1, 4, 5, false, false}, {0, 4, 5, false, false}};
  weft_stream_t made = *z;
  sample_route(&t->fabric, &made, ring, 4, WEFT_DIRECTION_S, WEFT_DIRECTION_N);
  made.entry[3].output_colour[WEFT_DIRECTION_N] = 5;
  weft_router_entry_t* entry = SAMPLE_NEW(&t->fabric, 6, weft_router_entry_t);
  memcpy(entry, z->entry, 2 * sizeof(*entry));
  memcpy(entry + 2, made.entry, 4 * sizeof(*entry));
  z->entry = entry;
  z->entry_count = 6;
  expect_fault(CHECK(t), "colour 5 on tile (0, 3) is listed before the one that feeds it, or feeds itself");
}

static void links(void** state) {
  checking_t* t = *state;
  weft_stream_t* y = &t->fabric.stream[SAMPLE_Y_TO_SUM];
  BROKEN(t, y->entry[0].output_colour[WEFT_DIRECTION_E], 9,
         "output E of colour 1 on tile (0, 1) leads to colour 9 on tile (1, 1), which expects nothing from W");
  BROKEN(t, y->entry[0].output_colour[WEFT_DIRECTION_E], 9,
         "colour 1 on tile (1, 1) expects wavelets from W, where none come from");
  BROKEN(t, y->entry[6].output_colour[WEFT_DIRECTION_E], 1, "colour 2 on tile (2, 2) expects wavelets from W");
  BROKEN(t, y->entry[13].outputs, 1u << WEFT_DIRECTION_NE,
         "leaves tile (3, 1) by NE, where there is neither a link nor a host port");
  BROKEN(t, y->entry[7].output_colour[WEFT_DIRECTION_E], 2, "leads to colour 2 on tile (3, 2)");
  BROKEN(t, y->entry[13].tile, 30, "a router entry on tile 30 of 30");
  // Two outputs into one input.
  weft_router_entry_t* entry = SAMPLE_NEW(&t->fabric, 15, weft_router_entry_t);
  memcpy(entry, y->entry, 14 * sizeof(*entry));
  entry[14] = (weft_router_entry_t){.tile = sample_tile(1, 1),
                                    .colour = 7,
                                    .input_count = 1,
                                    .input = {WEFT_DIRECTION_RAMP},
                                    .outputs = 1u << WEFT_DIRECTION_E};
  entry[14].output_colour[WEFT_DIRECTION_E] = 1;
  y->entry = entry;
  BROKEN(t, y->entry_count, 15, "input W of colour 1 on tile (2, 1) is fed by two colours");
  weft_defects_kill_link(&t->machine, &t->defects, sample_tile(2, 2), WEFT_DIRECTION_E);
  expect_fault(CHECK(t), "stream 1 of 'y', 'scale' -> 'sum': leaves tile (2, 2) by its link E, which is dead");
}

static void dead_tiles_on_the_way(void** state) {
  checking_t* t = *state;
  weft_stream_t* z = &t->fabric.stream[SAMPLE_Z_TO_HOST];
  const sample_step_t way[] = {{5, 1, 2, true, false}, {5, 2, 2, true, false}, {5, 3, 2, false, false}};
  sample_route(&t->fabric, z, way, 3, -1, WEFT_DIRECTION_E);
  z->sink_port = SAMPLE_PORT_OUT + 1;
  expect_legal(CHECK(t));
  weft_defects_kill_tile(&t->defects, sample_tile(5, 3));
  expect_fault(CHECK(t), "stream 2 of 'z', 'sum' -> 'host': passes tile (5, 3), which is dead");
}

static void colours(void** state) {
  checking_t* t = *state;
  weft_stream_t* z = &t->fabric.stream[SAMPLE_Z_TO_HOST];
  BROKEN(t, t->machine.colours, 4, "chain of 'sum': colour 4 on tile (4, 1), a router has 4");
  for (int32_t i = 0; i < 2; ++i) z->entry[i].colour = 1;
  z->entry[0].output_colour[WEFT_DIRECTION_S] = 1;
  expect_fault(CHECK(t), "stream 2 of 'z', 'sum' -> 'host': colour 1 on tile (5, 1) belongs to another stream already");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ends), TEST(order), TEST(loops), TEST(links), TEST(dead_tiles_on_the_way), TEST(colours),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
