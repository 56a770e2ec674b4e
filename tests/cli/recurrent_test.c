// Recurrent networks drawn at random, through the whole path: what the mesh computes is what the reference does, over
// several inputs, on meshes with dead tiles.
#include "tests/cli/command.h"

#include "tests/frontend/recurrent.h"

#ifdef __SANITIZE_ADDRESS__
enum { CASES = 6 };
#else
enum { CASES = 24 };
#endif

static void add_source(char* text, size_t size, const char* name, int seed) {
  size_t at = strlen(text);
  snprintf(text + at, size - at, " --input %s=random:%d", name, seed);
}

static void run_case(weft_rng_t* rng, int seed) {
  recurrent_t r;
  char sources[1024] = "";
  recurrent_draw(rng, &r);
  if (r.lengths == GIVEN_LENGTHS) r.lengths = KNOWN_LENGTHS; // random lengths are none
  const char* path = recurrent_write(&r);
  const char* given[] = {"w", "r", r.has_bias ? "b" : NULL, r.has_peephole ? "p" : NULL};
  add_source(sources, sizeof sources, "x", seed);
  for (size_t i = 0; i < 4 && r.given_weights; ++i)
    if (given[i]) add_source(sources, sizeof sources, given[i], seed + 1 + (int)i);
  if (r.has_hidden && r.given_state) add_source(sources, sizeof sources, "h", seed + 8);
  if (r.has_memory && r.given_state) add_source(sources, sizeof sources, "c", seed + 9);
  assert_weft(0, "compile -q %s -o r.wafer --machine mesh:%dx%d --defects rate=0.03,seed=%d --seed %d", path,
              11 + seed % 5, 12 + seed % 3, seed, seed);
  assert_weft(0, "check r.wafer");
  assert_weft(0, "run r.wafer %s --steps 3 --compare %s --defects rate=0.03,seed=%d", sources, path, seed);
  assert_prints("matches");
  recurrent_free(&r);
}

static void as_the_reference(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  for (int i = 0; i < CASES; ++i) run_case(&rng, i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_reference)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
