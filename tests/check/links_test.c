// Looking up ports and entries against going through all of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "check/links.h"

static void must(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

static void random_machine(weft_rng_t* rng, weft_machine_t* out_machine) {
  char spec[32];
  int32_t width = 1 + (int32_t)weft_rng_below(rng, 9), height = 1 + (int32_t)weft_rng_below(rng, 9);
  snprintf(spec, sizeof(spec), "mesh:%dx%d", width, height);
  must(weft_machine_load(weft_allocator_system(), spec, out_machine));
  for (int32_t side = 0; side < 4; ++side)
    out_machine->ports_per_side[side] = (int32_t)weft_rng_below(rng, (uint64_t)(side % 2 ? height : width) + 1);
}

static int32_t port_at(const weft_machine_t* machine, int32_t tile, int32_t direction) {
  for (int32_t i = 0; i < weft_machine_port_count(machine); ++i)
    if (weft_machine_port(machine, i).tile == tile && (int32_t)weft_machine_port(machine, i).direction == direction)
      return i;
  return -1;
}

static void test_ports(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  int32_t found = 0;
  for (int32_t n = 0; n < 300; ++n) {
    weft_machine_t machine;
    random_machine(&rng, &machine);
    for (int32_t tile = 0; tile < weft_machine_tiles(&machine); ++tile)
      for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
        int32_t expected = port_at(&machine, tile, d);
        assert_int_equal(weft_links_port(&machine, tile, d), expected);
        found += expected >= 0;
      }
  }
  assert_true(found > 1000);
}

// Few entries and many, in order and not, some of them twice: the first is found. The arrays are kept from one machine
// to the next.
static void test_entries(void** state) {
  (void)state;
  enum { MOST = 600, FEW_COLOURS = 12 };
  weft_rng_t rng;
  weft_rng_seed(&rng, 6);
  weft_links_t links = {.allocator = weft_allocator_system(), .name = "routes"};
  for (int32_t n = 0; n < 60; ++n) {
    weft_machine_t machine;
    weft_defects_t defects;
    weft_faults_t faults;
    random_machine(&rng, &machine);
    must(weft_defects_create(weft_allocator_system(), &machine, &defects));
    weft_faults_initialize(weft_allocator_system(), &faults);
    links.machine = &machine;
    links.defects = &defects;
    links.faults = &faults;
    weft_router_entry_t entry[MOST] = {{0}};
    int32_t tiles = weft_machine_tiles(&machine), count = 0, step = n % 3;
    int32_t colours = n % 4 ? FEW_COLOURS : WEFT_MAX_COLOURS;
    for (int32_t key = (int32_t)weft_rng_below(&rng, 9); key < tiles * colours && count < MOST;) {
      int32_t at = step == 1 ? tiles * colours - 1 - key : key;
      entry[count++] = (weft_router_entry_t){.tile = at / colours, .colour = (uint8_t)(at % colours)};
      key += (int32_t)weft_rng_below(&rng, 4) + (step < 2); // by nothing: the same once more
    }
    must(weft_links_join(&links, count, entry));
    for (int32_t tile = 0; tile < tiles; ++tile)
      for (int32_t colour = 0; colour < WEFT_MAX_COLOURS; ++colour) {
        int32_t first = 0;
        while (first < count && (entry[first].tile != tile || entry[first].colour != colour)) ++first;
        assert_int_equal(weft_links_find(&links, tile, colour), first < count ? first : WEFT_LINKS_NOWHERE);
      }
    assert_false(weft_status_consume(weft_faults_finish(&faults, "the routes"))); // none has inputs
    weft_defects_deinitialize(&defects);
  }
  weft_links_deinitialize(&links);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports), cmocka_unit_test(test_entries)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
