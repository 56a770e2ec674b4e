#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "machine/machine.h"

static weft_machine_t load(const char* spec) {
  weft_machine_t machine;
  weft_status_t status = weft_machine_load(weft_allocator_system(), spec, &machine);
  if (status) fail_msg("%s", weft_status_message(status));
  return machine;
}

static void test_presets(void** state) {
  (void)state;
  static const struct {
    const char* spec;
    int32_t width, height;
  } CASES[] = {
      {"wse1", 633, 633}, {"wse2", 757, 996}, {"wse3", 762, 1172}, {"mesh:7x3", 7, 3}, {"mesh:65535x1", 65535, 1}};
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    weft_machine_t machine = load(CASES[i].spec);
    assert_string_equal(machine.name, CASES[i].spec);
    assert_int_equal(machine.width, CASES[i].width);
    assert_int_equal(machine.height, CASES[i].height);
    assert_int_equal(machine.tile_memory, 49152);
    assert_int_equal(machine.colours, 24);
    assert_int_equal(machine.wavelet_bits, 32);
    assert_int_equal(machine.hop_cycles, 1);
    assert_int_equal(machine.ramp_cycles, 2);
    assert_false(machine.diagonal_links);
  }
}

// default.xml leaves nothing out: an omitted rate would divide by zero, and presets would lack it.
static void test_default_is_complete(void** state) {
  (void)state;
  weft_machine_t machine = load("wse2");
  for (int c = 0; c < WEFT_OP_CLASS_COUNT; ++c) {
    for (int d = 0; d < WEFT_DTYPE_COUNT; ++d) {
      assert_true(machine.rate[c][d] > 0);
      assert_true(machine.energy.op[c][d] > 0 || c == WEFT_OP_CLASS_MOVE);
    }
  }
  assert_true(machine.energy.sram_word > 0 && machine.energy.hop > 0 && machine.energy.instruction > 0);
  assert_true(machine.host_memory > 0 && machine.host_rate > 0 && machine.clock_ghz > 0 && machine.issue_cycles > 0);
}

static void test_bad_specs(void** state) {
  (void)state;
  static const char* const CASES[] = {
      "mesh:",        "mesh:0x5",         "mesh:5x0",   "mesh:5",    "mesh:-1x5", "mesh:5x5x5",     "mesh: 5x5",
      "mesh:65536x1", "mesh:65535x65535", "mesh:1e1x4", "mesh:4x4 ", "wse4",      "/no/such/place", ""};
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    weft_machine_t machine;
    weft_status_t status = weft_machine_load(weft_allocator_system(), CASES[i], &machine);
    if (!status) fail_msg("'%s' was taken", CASES[i]);
    assert_int_equal(weft_status_code_exit(weft_status_code(status)), 1);
    if (CASES[i][0]) assert_non_null(strstr(weft_status_message(status), CASES[i]));
    weft_status_free(status);
  }
}

static void test_directions_are_opposites(void** state) {
  (void)state;
  for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
    weft_direction_e opposite = weft_direction_opposite((weft_direction_e)d);
    assert_int_equal(weft_direction_opposite(opposite), d);
    assert_int_equal(weft_direction_dx[d] + weft_direction_dx[opposite], 0);
    assert_int_equal(weft_direction_dy[d] + weft_direction_dy[opposite], 0);
  }
  assert_string_equal(weft_direction_name(WEFT_DIRECTION_SE), "SE");
}

static void test_neighbours_are_mutual_and_stay_on_the_mesh(void** state) {
  (void)state;
  static const char* const SPECS[] = {"mesh:1x1", "mesh:1x5", "mesh:5x1", "mesh:7x3"};
  for (size_t s = 0; s < sizeof(SPECS) / sizeof(SPECS[0]); ++s) {
    weft_machine_t machine = load(SPECS[s]);
    for (int diagonals = 0; diagonals < 2; ++diagonals) {
      machine.diagonal_links = diagonals;
      int links = 0;
      for (int32_t tile = 0; tile < weft_machine_tiles(&machine); ++tile) {
        for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
          if (d == WEFT_DIRECTION_RAMP) continue;
          int32_t neighbour = weft_machine_neighbour(&machine, tile, (weft_direction_e)d);
          if (neighbour < 0) continue;
          ++links;
          assert_int_equal(neighbour % machine.width - tile % machine.width, weft_direction_dx[d]);
          assert_int_equal(neighbour / machine.width - tile / machine.width, weft_direction_dy[d]);
          assert_int_equal(weft_machine_neighbour(&machine, neighbour, weft_direction_opposite((weft_direction_e)d)),
                           tile);
        }
      }
      int w = machine.width, h = machine.height;
      assert_int_equal(links, 2 * ((w - 1) * h + w * (h - 1)) + diagonals * 4 * (w - 1) * (h - 1));
    }
  }
}

static void test_ports_lie_on_distinct_edge_places(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  for (int round = 0; round < 200; ++round) {
    weft_machine_t machine = load("mesh:1x1");
    machine.width = 1 + (int32_t)weft_rng_below(&rng, 40);
    machine.height = 1 + (int32_t)weft_rng_below(&rng, 40);
    for (int side = 0; side < 4; ++side) {
      machine.ports_per_side[side] =
          (int32_t)weft_rng_below(&rng, (uint64_t)(side % 2 ? machine.height : machine.width) + 1);
    }
    int per_side[WEFT_DIRECTION_COUNT] = {0};
    weft_host_port_t previous = {-1, WEFT_DIRECTION_N};
    for (int32_t i = 0; i < weft_machine_port_count(&machine); ++i) {
      weft_host_port_t port = weft_machine_port(&machine, i);
      assert_in_range(port.tile, 0, weft_machine_tiles(&machine) - 1);
      assert_int_equal(weft_machine_neighbour(&machine, port.tile, port.direction), -1);
      assert_true(port.direction >= previous.direction);
      if (port.direction == previous.direction) assert_true(port.tile > previous.tile);
      ++per_side[port.direction];
      previous = port;
    }
    for (int side = 0; side < 4; ++side) assert_int_equal(per_side[side], machine.ports_per_side[side]);
  }
}

static void test_ports_are_spread_evenly(void** state) {
  (void)state;
  weft_machine_t machine = load("wse2");
  assert_int_equal(weft_machine_port_count(&machine), 44);
  int32_t first = weft_machine_port(&machine, 0).tile, last = weft_machine_port(&machine, 10).tile;
  // The gaps before the first and after the last port are half of one between ports: the same up to rounding.
  assert_true(abs(first - (machine.width - 1 - last)) <= 1);
  for (int i = 1; i < 11; ++i) {
    int32_t gap = weft_machine_port(&machine, i).tile - weft_machine_port(&machine, i - 1).tile;
    assert_in_range(gap, 757 / 11, 757 / 11 + 1);
  }
}

static void test_instruction_cycles(void** state) {
  (void)state;
  weft_machine_t machine = load("wse2");
  static const struct {
    weft_op_e op;
    weft_dtype_e dtype;
    int64_t points, cycles;
  } CASES[] = {
      {WEFT_OP_MLA, WEFT_DTYPE_F16, 16, 4 + 4},
      {WEFT_OP_MLA, WEFT_DTYPE_F16, 17, 4 + 5},
      {WEFT_OP_MLA, WEFT_DTYPE_F32, 100, 4 + 100},
      {WEFT_OP_MUL, WEFT_DTYPE_I8, 9, 4 + 2},
      {WEFT_OP_MLA, WEFT_DTYPE_F64, 3, 4 + 12},
      {WEFT_OP_ADD, WEFT_DTYPE_F32, 3, 4 + 2},
      {WEFT_OP_ADD, WEFT_DTYPE_F64, 3, 4 + 3},
      {WEFT_OP_MOV, WEFT_DTYPE_F16, 1, 4 + 1},
      {WEFT_OP_EXP, WEFT_DTYPE_F32, 5, 4 + 40},
      {WEFT_OP_TANH, WEFT_DTYPE_F16, 5, 4 + 20},
      {WEFT_OP_ADD, WEFT_DTYPE_F32, 0, 4},
      {WEFT_OP_ADD, WEFT_DTYPE_F32, -3, 4},
      {WEFT_OP_MLA, WEFT_DTYPE_F64, INT64_MAX, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    int64_t cycles = weft_machine_op_cycles(&machine, CASES[i].op, CASES[i].dtype, CASES[i].points);
    if (cycles != CASES[i].cycles) {
      fail_msg("%s.%s over %lld points: %lld cycles, not %lld", weft_op_mnemonic(CASES[i].op),
               weft_dtype_name(CASES[i].dtype), (long long)CASES[i].points, (long long)cycles,
               (long long)CASES[i].cycles);
    }
  }
}

static void test_wavelets(void** state) {
  (void)state;
  weft_machine_t machine = load("wse2");
  for (int d = 0; d < WEFT_DTYPE_COUNT; ++d) {
    weft_dtype_e dtype = (weft_dtype_e)d;
    for (int64_t n = 0; n < 20; ++n) {
      int64_t bytes = n * (int64_t)weft_dtype_size(dtype);
      assert_int_equal(weft_machine_wavelets(&machine, dtype, n), (bytes + 3) / 4);
    }
  }
  assert_true(weft_machine_wavelets(&machine, WEFT_DTYPE_F64, INT64_MAX / 2 + 1) == INT64_MAX);
  assert_true(weft_machine_wavelets(&machine, WEFT_DTYPE_I8, INT64_MAX) == INT64_MAX / 4 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_presets),
      cmocka_unit_test(test_default_is_complete),
      cmocka_unit_test(test_bad_specs),
      cmocka_unit_test(test_directions_are_opposites),
      cmocka_unit_test(test_neighbours_are_mutual_and_stay_on_the_mesh),
      cmocka_unit_test(test_ports_lie_on_distinct_edge_places),
      cmocka_unit_test(test_ports_are_spread_evenly),
      cmocka_unit_test(test_instruction_cycles),
      cmocka_unit_test(test_wavelets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
