// Films of placements: well-formed SVG, one rectangle a region, one caption a frame, escaped names.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "viz/animation.h"

static char folder[] = "/tmp/weft-film-XXXXXX";
static char path[64];

static int set_up(void** state) {
  (void)state;
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/film.svg", folder);
  return 0;
}
static int tear_down(void** state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static int count(xmlDocPtr document, const char* expression) {
  xmlXPathContextPtr context = xmlXPathNewContext(document);
  xmlXPathObjectPtr found = xmlXPathEvalExpression((const xmlChar*)expression, context);
  int nodes = found && found->nodesetval ? found->nodesetval->nodeNr : 0;
  xmlXPathFreeObject(found);
  xmlXPathFreeContext(context);
  return nodes;
}

static void a_film_has_its_regions_and_frames(void** state) {
  (void)state;
  static const char* const names[] = {"a", "<b> & \"c\"", "stays"};
  static const weft_viz_box_t boxes[] = {{0, 0, 2, 3}, {5, 1, 2, 2}, {9, 9, 1, 1}, {1, 0, 2, 3}, {5, 2, 3, 2},
                                         {9, 9, 1, 1}, {2, 0, 2, 3}, {4, 2, 3, 2}, {9, 9, 1, 1}};
  static const double cost[] = {30, 20, 12.5}, temperature[] = {10, 1, 0.1};
  uint8_t dead[13 * 11] = {0};
  dead[3] = dead[4] = dead[5] = dead[13 * 7 + 12] = 1;
  weft_viz_animation_t film = {.title = "t",
                               .width = 13,
                               .height = 11,
                               .dead = dead,
                               .region_count = 3,
                               .name = names,
                               .frame_count = 3,
                               .box = boxes,
                               .cost = cost,
                               .temperature = temperature};
  assert_null(weft_viz_write_animation(weft_allocator_system(), &film, 6, path));
  xmlDocPtr document = xmlReadFile(path, NULL, XML_PARSE_NONET);
  assert_non_null(document);
  assert_int_equal(count(document, "//*[local-name()='g']/*[local-name()='rect']"), 3);
  assert_int_equal(count(document, "//*[local-name()='text'][contains(., 'cost')]"), 3);
  assert_int_equal(count(document, "//*[local-name()='title'][. = '<b> & \"c\"']"), 1);
  // What never changes has no animation; the first one only moves along x.
  assert_int_equal(count(document, "(//*[local-name()='g']/*[local-name()='rect'])[3]/*[local-name()='animate']"), 0);
  assert_int_equal(count(document, "(//*[local-name()='g']/*[local-name()='rect'])[1]/*[local-name()='animate']"), 1);
  assert_int_equal(count(document, "(//*[local-name()='g']/*[local-name()='rect'])[2]/*[local-name()='animate']"), 3);
  xmlFreeDoc(document);
  // One frame is a still; no frame or another ending is refused.
  film.frame_count = 1;
  assert_null(weft_viz_write_animation(weft_allocator_system(), &film, 6, path));
  film.frame_count = 0;
  weft_status_t status = weft_viz_write_animation(weft_allocator_system(), &film, 6, path);
  assert_non_null(strstr(weft_status_message(status), "no frame"));
  weft_status_free(status);
  status = weft_viz_write_animation(weft_allocator_system(), &film, 6, "film.gif");
  assert_non_null(strstr(weft_status_message(status), ".svg"));
  weft_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_film_has_its_regions_and_frames)};
  int failed = cmocka_run_group_tests(tests, set_up, tear_down);
  xmlCleanupParser();
  return failed;
}
