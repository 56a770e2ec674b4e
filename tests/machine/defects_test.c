#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "machine/defects.h"

static weft_machine_t load_machine(const char* spec, bool diagonals) {
  weft_machine_t machine;
  weft_status_t status = weft_machine_load(weft_allocator_system(), spec, &machine);
  if (status) fail_msg("%s", weft_status_message(status));
  machine.diagonal_links = diagonals;
  return machine;
}

static weft_defects_t load(const char* spec, const weft_machine_t* machine) {
  weft_defects_t defects;
  weft_status_t status = weft_defects_load(weft_allocator_system(), spec, machine, &defects);
  if (status) fail_msg("%s", weft_status_message(status));
  return defects;
}

static weft_defects_t parse(const char* text, const weft_machine_t* machine) {
  weft_defects_t defects;
  weft_status_t status = weft_defects_parse(weft_allocator_system(), text, strlen(text), "map", machine, &defects);
  if (status) fail_msg("%s\nfor:\n%s", weft_status_message(status), text);
  return defects;
}

// Both counts and the symmetry of the links, recounted from the bits alone.
static void check_consistent(const weft_machine_t* machine, const weft_defects_t* defects) {
  int32_t dead = 0, ends = 0;
  for (int32_t tile = 0; tile < weft_machine_tiles(machine); ++tile) {
    dead += defects->dead_tile[tile];
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
      weft_direction_e direction = (weft_direction_e)d, opposite = weft_direction_opposite(direction);
      int32_t neighbour = weft_machine_neighbour(machine, tile, direction);
      bool live = weft_defects_link_live(machine, defects, tile, direction);
      if (direction == WEFT_DIRECTION_RAMP) {
        assert_int_equal(live, weft_defects_live(defects, tile));
        continue;
      }
      bool marked = defects->dead_links[tile] >> d & 1;
      if (neighbour < 0) {
        assert_false(live || marked);
        continue;
      }
      bool ends_live = weft_defects_live(defects, tile) && weft_defects_live(defects, neighbour);
      assert_int_equal(marked, defects->dead_links[neighbour] >> opposite & 1);
      assert_int_equal(live, weft_defects_link_live(machine, defects, neighbour, opposite));
      assert_int_equal(live, ends_live && !marked);
      if (marked) assert_true(ends_live);
      ends += marked;
    }
  }
  assert_int_equal(dead, defects->dead_tile_count);
  assert_int_equal(ends, 2 * defects->dead_link_count);
}

static bool equal(const weft_defects_t* a, const weft_defects_t* b) {
  size_t tiles = (size_t)a->width * (size_t)a->height;
  bool same = a->width == b->width && a->height == b->height && !memcmp(a->dead_tile, b->dead_tile, tiles) &&
              !memcmp(a->dead_links, b->dead_links, tiles * sizeof(*a->dead_links)) &&
              a->dead_tile_count == b->dead_tile_count && a->dead_link_count == b->dead_link_count;
  weft_digest_t first = weft_defects_digest(a), second = weft_defects_digest(b);
  assert_int_equal(same, weft_digest_compare(&first, &second) == 0);
  return same;
}

static void test_no_defects(void** state) {
  (void)state;
  weft_machine_t machine = load_machine("mesh:7x3", false);
  static const char* const SPECS[] = {NULL, "", "none", "rate=0,seed=5", "rate=0,seed=1,links=0"};
  for (size_t i = 0; i < sizeof(SPECS) / sizeof(SPECS[0]); ++i) {
    weft_defects_t defects = load(SPECS[i], &machine);
    assert_int_equal(defects.dead_tile_count, 0);
    assert_int_equal(defects.dead_link_count, 0);
    check_consistent(&machine, &defects);
    weft_defects_deinitialize(&defects);
  }
}

static void test_drawn_tiles_follow_the_rate(void** state) {
  (void)state;
  static const double RATES[] = {0.005, 0.015, 0.07, 0.1, 0.3};
  weft_machine_t machine = load_machine("mesh:301x199", false);
  for (size_t i = 0; i < sizeof(RATES) / sizeof(RATES[0]); ++i) {
    char spec[64];
    snprintf(spec, sizeof(spec), "rate=%g,seed=7", RATES[i]);
    weft_defects_t defects = load(spec, &machine);
    double tiles = weft_machine_tiles(&machine), sigma = sqrt(tiles * RATES[i] * (1 - RATES[i]));
    assert_true(fabs(defects.dead_tile_count - tiles * RATES[i]) < 4 * sigma);
    weft_defects_deinitialize(&defects);
  }
  weft_defects_t all = load("rate=1,seed=3", &machine);
  assert_int_equal(all.dead_tile_count, weft_machine_tiles(&machine));
  weft_defects_deinitialize(&all);
}

// The numbers themselves: a change of the draw would silently unbind every stored image. The digest was computed by a
// program of its own from the description of the draw.
static void test_drawn_map_is_pinned(void** state) {
  (void)state;
  weft_machine_t machine = load_machine("mesh:8x8", true);
  weft_defects_t defects = load("rate=0.1,seed=7,links=0.05", &machine);
  weft_digest_t digest = weft_defects_digest(&defects);
  char text[65];
  weft_digest_format(&digest, text);
  assert_string_equal(text, "ac75b5181574a981045e1c10281cd1c1884b4f3dde1bbf449afff71d954792ea");
  weft_defects_deinitialize(&defects);
}

static void test_draws_are_reproducible_and_independent(void** state) {
  (void)state;
  weft_machine_t small = load_machine("mesh:41x23", true), large = load_machine("mesh:64x64", false);
  weft_defects_t low = load("rate=0.02,seed=9", &small), high = load("rate=0.2,seed=9", &small);
  weft_defects_t again = load("seed=9,rate=0.2", &small), other = load("rate=0.2,seed=10", &small);
  weft_defects_t linked = load("rate=0.2,seed=9,links=0.1", &small), wide = load("rate=0.2,seed=9", &large);
  assert_true(equal(&high, &again));
  assert_false(equal(&high, &other));
  assert_false(equal(&high, &linked));
  assert_true(linked.dead_link_count > 0);
  for (int32_t tile = 0; tile < weft_machine_tiles(&small); ++tile) {
    if (low.dead_tile[tile]) assert_true(high.dead_tile[tile]);
    assert_int_equal(high.dead_tile[tile], linked.dead_tile[tile]);
    assert_int_equal(high.dead_tile[tile], wide.dead_tile[tile / small.width * large.width + tile % small.width]);
  }
  weft_defects_t* const maps[] = {&low, &high, &again, &other, &linked};
  for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); ++i) {
    check_consistent(&small, maps[i]);
    weft_defects_deinitialize(maps[i]);
  }
  weft_defects_deinitialize(&wide);
}

static void test_file_lines(void** state) {
  (void)state;
  weft_machine_t machine = load_machine("mesh:7x5", true);
  weft_defects_t defects = parse("# a comment\r\n"
                                 "tile 0 0 # and another\n"
                                 "\n"
                                 "\trow 4\n"
                                 "row 2 1 2\r\n"
                                 "column 6 1 2\n"
                                 "rect 3 0 4 1\n"
                                 "rect 4 1 4 1\n"
                                 "link 5 3 NW\n"
                                 "link 1 1 S\n" // dies with tile (1, 2)
                                 "link 0 1 E",
                                 &machine);
  static const char WANTED[] = "X..XX.."
                               "...XX.X"
                               ".XX...X"
                               "......."
                               "XXXXXXX";
  for (int32_t tile = 0; tile < 35; ++tile) {
    if (defects.dead_tile[tile] != (WANTED[tile] == 'X')) fail_msg("tile (%d, %d)", tile % 7, tile / 7);
  }
  assert_int_equal(defects.dead_link_count, 2);
  assert_false(weft_defects_link_live(&machine, &defects, 2 * 7 + 4, WEFT_DIRECTION_SE));
  assert_false(weft_defects_link_live(&machine, &defects, 3 * 7 + 5, WEFT_DIRECTION_NW));
  assert_false(weft_defects_link_live(&machine, &defects, 1 * 7 + 1, WEFT_DIRECTION_W));
  check_consistent(&machine, &defects);
  weft_defects_deinitialize(&defects);
}

static void test_rectangles_as_kills_of_their_tiles(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 21);
  for (int round = 0; round < 100; ++round) {
    weft_machine_t machine = load_machine("mesh:1x1", false);
    machine.width = 1 + (int32_t)weft_rng_below(&rng, 13);
    machine.height = 1 + (int32_t)weft_rng_below(&rng, 13);
    weft_defects_t wanted;
    assert_true(weft_status_consume(weft_defects_create(weft_allocator_system(), &machine, &wanted)));
    weft_text_t text;
    weft_text_initialize(weft_allocator_system(), &text);
    for (uint64_t i = 1 + weft_rng_below(&rng, 6); i > 0; --i) {
      int32_t x0 = (int32_t)weft_rng_below(&rng, (uint64_t)machine.width);
      int32_t y0 = (int32_t)weft_rng_below(&rng, (uint64_t)machine.height);
      int32_t x1 = x0 + (int32_t)weft_rng_below(&rng, (uint64_t)(machine.width - x0));
      int32_t y1 = y0 + (int32_t)weft_rng_below(&rng, (uint64_t)(machine.height - y0));
      assert_true(weft_status_consume(weft_text_printf(&text, "rect %d %d %d %d\n", x0, y0, x1, y1)));
      for (int32_t y = y0; y <= y1; ++y) {
        for (int32_t x = x0; x <= x1; ++x) weft_defects_kill_tile(&wanted, y * machine.width + x);
      }
    }
    weft_defects_t got = parse(text.data, &machine);
    assert_true(equal(&got, &wanted));
    weft_defects_deinitialize(&got);
    weft_defects_deinitialize(&wanted);
    weft_text_deinitialize(&text);
  }
}

// Kills in any order give the same map, and the printed map loads back to it.
static void test_order_and_text_do_not_matter(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 33);
  for (int round = 0; round < 100; ++round) {
    weft_machine_t machine = load_machine(round % 2 ? "mesh:9x4" : "mesh:1x11", round % 3 == 0);
    enum { KILLS = 20 };
    int32_t tile[KILLS];
    weft_direction_e direction[KILLS];
    for (int i = 0; i < KILLS; ++i) {
      tile[i] = (int32_t)weft_rng_below(&rng, (uint64_t)weft_machine_tiles(&machine));
      direction[i] = (weft_direction_e)weft_rng_below(&rng, WEFT_DIRECTION_COUNT);
    }
    weft_defects_t map[2];
    for (int m = 0; m < 2; ++m) {
      assert_true(weft_status_consume(weft_defects_create(weft_allocator_system(), &machine, &map[m])));
      for (int i = 0; i < KILLS; ++i) {
        int kill = m ? KILLS - 1 - i : i;
        if (direction[kill] == WEFT_DIRECTION_RAMP) {
          weft_defects_kill_tile(&map[m], tile[kill]);
        } else {
          weft_defects_kill_link(&machine, &map[m], tile[kill], direction[kill]);
        }
      }
      check_consistent(&machine, &map[m]);
    }
    assert_true(equal(&map[0], &map[1]));
    weft_text_t text;
    weft_text_initialize(weft_allocator_system(), &text);
    assert_true(weft_status_consume(weft_defects_print(&map[0], &text)));
    weft_defects_t again = parse(text.data, &machine);
    assert_true(equal(&map[0], &again));
    weft_defects_deinitialize(&again);
    weft_text_deinitialize(&text);
    weft_defects_deinitialize(&map[0]);
    weft_defects_deinitialize(&map[1]);
  }
}

static void test_digest_follows_every_bit_and_the_size(void** state) {
  (void)state;
  weft_machine_t wide = load_machine("mesh:60x40", false), tall = load_machine("mesh:40x60", false);
  weft_defects_t first = load("none", &wide), second = load("none", &tall);
  weft_digest_t base = weft_defects_digest(&first), other = weft_defects_digest(&second);
  assert_int_not_equal(weft_digest_compare(&base, &other), 0);
  static const int32_t TILES[] = {0, 1023, 1024, 2047, 2399}; // at the borders of the digest's pieces
  for (size_t i = 0; i < sizeof(TILES) / sizeof(TILES[0]); ++i) {
    first.dead_tile[TILES[i]] ^= 1;
    other = weft_defects_digest(&first);
    assert_int_not_equal(weft_digest_compare(&base, &other), 0);
    first.dead_tile[TILES[i]] ^= 1;
    first.dead_links[TILES[i]] ^= 1u << WEFT_DIRECTION_NW;
    other = weft_defects_digest(&first);
    assert_int_not_equal(weft_digest_compare(&base, &other), 0);
    first.dead_links[TILES[i]] ^= 1u << WEFT_DIRECTION_NW;
  }
  weft_defects_deinitialize(&first);
  weft_defects_deinitialize(&second);
}

static void test_messages(void** state) {
  (void)state;
  static const struct {
    const char* text;
    const char* where;
    const char* expected;
  } CASES[] = {
      {"\ntile 7 0", "map:2:", "X from 0 to 6 and Y from 0 to 4"},
      {"tile 0 5", "map:1:", "tile (0, 5) is outside the mesh of 7x5"},
      {"tile -1 0", "map:1:", "outside"},
      {"tile 99999999999999999999 0", "map:1:", "'tile X Y'"},
      {"tile 1", "map:1:", "'tile X Y'"},
      {"tile 1 2 3", "map:1:", "'tile X Y'"},
      {"tile 1 x", "map:1:", "'tile X Y'"},
      {"tile 1 1.5", "map:1:", "'tile X Y'"},
      {"row 5", "map:1:", "outside"},
      {"row 1 2", "map:1:", "'row Y X0 X1'"},
      {"row 1 2 7", "map:1:", "outside"},
      {"column 7", "map:1:", "outside"},
      {"column 1 3 2", "map:1:", "smaller coordinate first"},
      {"rect 0 0 6", "map:1:", "'rect X0 Y0 X1 Y1'"},
      {"rect 2 0 1 0", "map:1:", "smaller coordinate first"},
      {"rect 0 0 7 0", "map:1:", "outside"},
      {"link 0 0", "map:1:", "'link X Y DIRECTION'"},
      {"link 0 0 RAMP", "map:1:", "N E S W NE SE SW NW"},
      {"link 0 0 e", "map:1:", "N E S W NE SE SW NW"},
      {"link 0 0 N", "map:1:", "off the mesh"},
      {"link 0 0 SE", "map:1:", "no diagonal links"},
      {"rate 1.5 seed 1", "map:1:", "from 0 to 1"},
      {"rate 0.1", "map:1:", "rate R seed S"},
      {"rate 0.1 seed -1", "map:1:", "rate R seed S"},
      {"rate nan seed 1", "map:1:", "rate R seed S"},
      {"rate 0 seed 1\nrate 0 seed 2", "map:2:", "at most one"},
      {"core 1 2", "map:1:", "tile, row, column, rect, link or rate"},
      {"tile 1 1\n\n\nTile 1 2", "map:4:", "unknown word 'Tile'"},
  };
  weft_machine_t machine = load_machine("mesh:7x5", false);
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    weft_defects_t defects;
    weft_status_t status =
        weft_defects_parse(weft_allocator_system(), CASES[i].text, strlen(CASES[i].text), "map", &machine, &defects);
    if (!status) fail_msg("accepted: %s", CASES[i].text);
    const char* message = weft_status_message(status);
    if (strstr(message, CASES[i].where) != message || !strstr(message, CASES[i].expected)) {
      fail_msg("%s\nlacks '%s' or '%s', for: %s", message, CASES[i].where, CASES[i].expected, CASES[i].text);
    }
    assert_null(defects.dead_tile);
    weft_status_free(status);
  }
}

static void test_bad_specs(void** state) {
  (void)state;
  static const char* const CASES[] = {"rate=",           "rate=2,seed=1",
                                      "rate=0.1,",       "rate=0.1,seed=",
                                      "seed=3",          "rate=0.1,rate=0.1",
                                      "rate=0.1,sed=1",  "rate=0.1,seed=1.5",
                                      "rate=0.1;seed=1", "rate=0.1,seed=1,links=-1",
                                      "links=x",         "/no/such/map"};
  weft_machine_t machine = load_machine("mesh:7x5", false);
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    weft_defects_t defects;
    weft_status_t status = weft_defects_load(weft_allocator_system(), CASES[i], &machine, &defects);
    if (!status) fail_msg("'%s' was taken", CASES[i]);
    assert_non_null(strstr(weft_status_message(status), CASES[i]));
    assert_int_equal(weft_status_code_exit(weft_status_code(status)), 1);
    weft_status_free(status);
  }
}

// For every n: when the n-th allocation fails, the load says so and leaves nothing behind.
static void test_out_of_memory(void** state) {
  (void)state;
  weft_machine_t machine = load_machine("mesh:7x5", false);
  static const char TEXT[] = "rect 0 0 3 3\nlink 5 4 E\nrate 0.5 seed 1 links 0.5\n";
  for (uint64_t n = 0;; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    weft_defects_t defects;
    weft_status_t status =
        weft_defects_parse(weft_allocator_failing(&failing), TEXT, strlen(TEXT), "map", &machine, &defects);
    if (!status) {
      assert_true(n >= 3);
      weft_defects_deinitialize(&defects);
      assert_int_equal(failing.live, 0);
      break;
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    assert_int_equal(failing.live, 0);
    weft_status_free(status);
  }
}

static void test_load_from_file(void** state) {
  (void)state;
  weft_machine_t machine = load_machine("mesh:7x5", false);
  static const char PATH[] = "weft_defects_test.txt";
  static const char TEXT[] = "row 0\ntile 3 9\n";
  assert_true(weft_status_consume(weft_file_write(weft_allocator_system(), PATH, TEXT, 6)));
  weft_defects_t defects = load(PATH, &machine);
  assert_int_equal(defects.dead_tile_count, 7);
  weft_defects_deinitialize(&defects);
  assert_true(weft_status_consume(weft_file_write(weft_allocator_system(), PATH, TEXT, strlen(TEXT))));
  weft_status_t status = weft_defects_load(weft_allocator_system(), PATH, &machine, &defects);
  assert_non_null(status);
  assert_non_null(strstr(weft_status_message(status), "weft_defects_test.txt:2:"));
  weft_status_free(status);
  remove(PATH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_defects),
      cmocka_unit_test(test_drawn_tiles_follow_the_rate),
      cmocka_unit_test(test_drawn_map_is_pinned),
      cmocka_unit_test(test_draws_are_reproducible_and_independent),
      cmocka_unit_test(test_file_lines),
      cmocka_unit_test(test_rectangles_as_kills_of_their_tiles),
      cmocka_unit_test(test_order_and_text_do_not_matter),
      cmocka_unit_test(test_digest_follows_every_bit_and_the_size),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_bad_specs),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_load_from_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
