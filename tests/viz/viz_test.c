// Maps in all forms: valid files, equal for equal maps, with the values in them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "base/file.h"
#include "viz/map.h"

// A 7 x 5 mesh with two kernels and a dead tile.
static double value[35], link_load[35 * 4];
static uint8_t dead[35];
static const int32_t tiles_a[] = {0, 1, 7, 8}, tiles_b[] = {17, 18, 19};
static const weft_viz_region_t regions[] = {{"conv, \"first\"", 0, 0, 2, 2, tiles_a, 4},
                                            {"dense", 3, 2, 3, 1, tiles_b, 3}};

static weft_viz_map_t make(weft_viz_metric_e metric) {
  for (int i = 0; i < 35; ++i) value[i] = NAN;
  for (int i = 0; i < 4; ++i) value[tiles_a[i]] = metric == WEFT_VIZ_PLACE ? 0 : 10 + i;
  for (int i = 0; i < 3; ++i) value[tiles_b[i]] = metric == WEFT_VIZ_PLACE ? 1 : 40 + i;
  memset(dead, 0, sizeof dead);
  dead[34] = 1;
  for (int i = 0; i < 35 * 4; ++i) link_load[i] = metric == WEFT_VIZ_LINKS && i % 3 == 0 ? i : 0;
  return (weft_viz_map_t){.title = "placement",
                          .subtitle = "a model",
                          .unit = "",
                          .metric = metric,
                          .width = 7,
                          .height = 5,
                          .value = value,
                          .dead = dead,
                          .link = metric == WEFT_VIZ_LINKS ? link_load : NULL,
                          .region_count = 2,
                          .region = regions};
}

static weft_mapping_t write_and_map(const weft_viz_map_t* map, const char* path) {
  weft_mapping_t mapping;
  assert_null(weft_viz_write(weft_allocator_system(), map, path));
  assert_null(weft_file_map(path, &mapping));
  unlink(path);
  return mapping;
}

static void pictures_are_valid_and_reproducible(void** state) {
  (void)state;
  static const char* const endings[] = {"png", "svg", "pdf"};
  static const char* const magic[] = {"\x89PNG\r\n", "<?xml", "%PDF-"};
  for (int metric = 0; metric < WEFT_VIZ_METRIC_COUNT; ++metric) {
    weft_viz_map_t map = make((weft_viz_metric_e)metric);
    for (int f = 0; f < 3; ++f) {
      char path[64];
      snprintf(path, sizeof path, "/tmp/weft_viz_test_%d.%s", (int)getpid(), endings[f]);
      weft_mapping_t first = write_and_map(&map, path), second = write_and_map(&map, path);
      assert_true(first.size > 500);
      assert_memory_equal(first.data, magic[f], strlen(magic[f]));
      assert_int_equal(first.size, second.size);
      size_t different = 0;
      for (size_t i = 0; i < first.size; ++i) different += first.data[i] != second.data[i];
      assert_true(different <= (f == 1 ? 3 : 0)); // the digits of cairo's surface number
      weft_file_unmap(&first);
      weft_file_unmap(&second);
    }
  }
}

static void csv_has_every_tile_and_quotes_names(void** state) {
  (void)state;
  weft_viz_map_t map = make(WEFT_VIZ_MEMORY);
  char path[64];
  snprintf(path, sizeof path, "/tmp/weft_viz_test_%d.csv", (int)getpid());
  weft_mapping_t csv = write_and_map(&map, path);
  char text[2048] = "";
  assert_true(csv.size < sizeof text);
  memcpy(text, csv.data, csv.size);
  weft_file_unmap(&csv);
  assert_non_null(strstr(text, "1,1,13,\"conv, \"\"first\"\"\"\n"));
  assert_non_null(strstr(text, "5,2,42,dense\n"));
  assert_non_null(strstr(text, "6,4,dead,\n"));
  int lines = 0;
  for (const char* c = text; *c; ++c) lines += *c == '\n';
  assert_int_equal(lines, 1 + 4 + 3 + 1);
}

static void the_terminal_shows_letters_and_the_dead(void** state) {
  (void)state;
  weft_viz_map_t map = make(WEFT_VIZ_PLACE);
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_viz_terminal(&map, 80, false, &text));
  assert_non_null(strstr(text.data, "    0 A A "));
  assert_non_null(strstr(text.data, "B B B "));
  assert_non_null(strstr(text.data, "B dense  3x1 at (3,2), 3 tiles"));
  assert_null(strstr(text.data, "\x1b["));
  weft_text_deinitialize(&text);
  // Narrow: no line is wider than asked for (in cells; multi-byte characters count once).
  assert_null(weft_viz_terminal(&map, 20, false, &text));
  assert_non_null(strstr(text.data, "A"));
  weft_text_deinitialize(&text);
}

static void other_endings_are_refused_with_the_list(void** state) {
  (void)state;
  weft_viz_map_t map = make(WEFT_VIZ_PLACE);
  weft_status_t status = weft_viz_write(weft_allocator_system(), &map, "/tmp/map.jpeg");
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(weft_status_message(status), ".png, .svg, .pdf or .csv"));
  weft_status_free(status);
}

static void ticks_are_round_and_few(void** state) {
  (void)state;
  for (double span = 0.003; span < 1e9; span *= 1.7) {
    double step = weft_viz_tick_step(span, 6), mantissa = step / pow(10, floor(log10(step * 1.0000001)));
    assert_true(span / step <= 6 && span / step >= 1);
    assert_true(fabs(mantissa - 1) < 1e-6 || fabs(mantissa - 2) < 1e-6 || fabs(mantissa - 5) < 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pictures_are_valid_and_reproducible),
      cmocka_unit_test(csv_has_every_tile_and_quotes_names),
      cmocka_unit_test(the_terminal_shows_letters_and_the_dead),
      cmocka_unit_test(other_endings_are_refused_with_the_list),
      cmocka_unit_test(ticks_are_round_and_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
