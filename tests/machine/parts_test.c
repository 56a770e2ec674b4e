#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "machine/parts.h"

enum { MOST_TILES = 400 };

typedef struct mesh_t {
  weft_machine_t machine;
  weft_defects_t defects;
  weft_parts_t parts;
  int32_t tiles;
} mesh_t;

static void expect_ok(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

static void open_mesh(mesh_t* mesh, const char* spec, const char* defects) {
  weft_allocator_t allocator = weft_allocator_system();
  expect_ok(weft_machine_load(allocator, spec, &mesh->machine));
  expect_ok(weft_defects_parse(allocator, defects, strlen(defects), "map", &mesh->machine, &mesh->defects));
  expect_ok(weft_parts_find(allocator, &mesh->machine, &mesh->defects, &mesh->parts));
  mesh->tiles = weft_machine_tiles(&mesh->machine);
}

static void close_mesh(mesh_t* mesh) {
  weft_parts_deinitialize(&mesh->parts);
  weft_defects_deinitialize(&mesh->defects);
}

// Tiles of `set` without `removed` that a walk from one of them reaches.
static int32_t reached(const mesh_t* mesh, const uint8_t* set, int32_t removed) {
  int32_t queue[MOST_TILES], head = 0, tail = 0;
  uint8_t seen[MOST_TILES] = {0};
  for (int32_t t = 0; t < mesh->tiles && !tail; ++t)
    if (set[t] && t != removed) seen[queue[tail++] = t] = 1;
  while (head < tail) {
    int32_t tile = queue[head++];
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
      if (d == WEFT_DIRECTION_RAMP || !weft_defects_link_live(&mesh->machine, &mesh->defects, tile, d)) continue;
      int32_t next = weft_machine_neighbour(&mesh->machine, tile, d);
      if (set[next] && next != removed && !seen[next]) seen[queue[tail++] = next] = 1;
    }
  }
  return tail;
}

static void known_pieces(void** state) {
  (void)state;
  static const struct {
    const char *mesh, *defects;
    int32_t tiles;
  } cases[] = {
      {"mesh:7x5", "", 35},
      {"mesh:7x5", "row 2\ncolumn 3\n", 6},    // four corners alike
      {"mesh:7x5", "row 2\ncolumn 4\n", 8},    // 4 x 2 on the left
      {"mesh:9x1", "", 2},                     // a line: any two neighbours
      {"mesh:1x1", "", 0},                     // no two tiles
      {"mesh:5x3", "tile 3 0\ntile 3 2\n", 9}, // the column behind hangs on (3, 1)
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    mesh_t mesh;
    open_mesh(&mesh, cases[i].mesh, cases[i].defects);
    uint8_t core[MOST_TILES];
    int32_t tiles = -1;
    expect_ok(weft_parts_core(&mesh.parts, &mesh.machine, &mesh.defects, core, &tiles));
    assert_int_equal(tiles, cases[i].tiles);
    close_mesh(&mesh);
  }
}

// By the definition: whichever tile is taken away, the others of the core still reach each other; and no tile outside
// could be added, unless all of them hang together by less.
static void no_single_tile_splits_the_core(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 17);
  int32_t smaller = 0;
  for (int32_t round = 0; round < 60; ++round) {
    char spec[32], defects[64];
    snprintf(spec, sizeof spec, "mesh:%dx%d", (int)(3 + weft_rng_below(&rng, 16)), (int)(3 + weft_rng_below(&rng, 16)));
    snprintf(defects, sizeof defects, "rate 0.%02d seed %d\n", (int)weft_rng_below(&rng, 36), (int)round);
    mesh_t mesh;
    open_mesh(&mesh, spec, defects);
    uint8_t core[MOST_TILES];
    int32_t tiles = 0;
    expect_ok(weft_parts_core(&mesh.parts, &mesh.machine, &mesh.defects, core, &tiles));
    int32_t main_part = weft_parts_main(&mesh.parts, &mesh.machine);
    if (main_part >= 0) {
      smaller += tiles < mesh.parts.size[main_part];
      assert_int_equal(reached(&mesh, core, -1), tiles);
    }
    for (int32_t t = 0; t < mesh.tiles && tiles > 2; ++t) {
      if (core[t]) {
        assert_int_equal(mesh.parts.label[t], main_part);
        assert_int_equal(reached(&mesh, core, t), tiles - 1);
      } else if (weft_defects_live(&mesh.defects, t)) {
        // A live tile with two neighbours in the core would belong to it.
        int32_t beside = 0;
        for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
          if (d == WEFT_DIRECTION_RAMP || !weft_defects_link_live(&mesh.machine, &mesh.defects, t, d)) continue;
          beside += core[weft_machine_neighbour(&mesh.machine, t, d)];
        }
        assert_true(beside < 2);
      }
    }
    close_mesh(&mesh);
  }
  assert_true(smaller > 10);
}

static void out_of_memory_leaves_nothing(void** state) {
  (void)state;
  mesh_t mesh;
  open_mesh(&mesh, "mesh:8x8", "rate 0.2 seed 3\n");
  for (uint64_t successes = 0;; ++successes) {
    weft_failing_allocator_t failing = {.countdown = successes};
    weft_parts_t parts = mesh.parts;
    parts.allocator = weft_allocator_failing(&failing);
    uint8_t core[MOST_TILES];
    int32_t tiles;
    weft_status_t status = weft_parts_core(&parts, &mesh.machine, &mesh.defects, core, &tiles);
    weft_status_code_e code = weft_status_code(status);
    weft_status_free(status);
    assert_int_equal(failing.live, 0);
    if (code == WEFT_STATUS_OK) break;
    assert_int_equal(code, WEFT_STATUS_OUT_OF_MEMORY);
  }
  close_mesh(&mesh);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_pieces),
      cmocka_unit_test(no_single_tile_splits_the_core),
      cmocka_unit_test(out_of_memory_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
