// What the user wants of a placement: how far it is missed, the file that says it, and placements that hold it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "placer/rules.h"
#include "tests/placer/random_problem.h"

static weft_placer_spot_t random_spot(weft_rng_t* rng) {
  return (weft_placer_spot_t){.x = draw_between(rng, 0, 12),
                              .y = draw_between(rng, 0, 12),
                              .width = draw_between(rng, 1, 6),
                              .height = draw_between(rng, 1, 6)};
}

static bool has(const weft_placer_spot_t* s, int32_t x, int32_t y) {
  return x >= s->x && y >= s->y && x < s->x + s->width && y < s->y + s->height;
}

// By tiles: whether all lie in the region, how many pairs of sides two rectangles share, whether they overlap.
static bool all_in(const weft_placer_spot_t* s, const weft_placer_spot_t* region) {
  for (int32_t y = s->y; y < s->y + s->height; ++y) {
    for (int32_t x = s->x; x < s->x + s->width; ++x) {
      if (!has(region, x, y)) return false;
    }
  }
  return true;
}
static bool overlap(const weft_placer_spot_t* s, const weft_placer_spot_t* o) {
  for (int32_t y = s->y; y < s->y + s->height; ++y) {
    for (int32_t x = s->x; x < s->x + s->width; ++x) {
      if (has(o, x, y)) return true;
    }
  }
  return false;
}
static bool touch(const weft_placer_spot_t* s, const weft_placer_spot_t* o) {
  for (int32_t y = s->y; y < s->y + s->height; ++y) {
    for (int32_t x = s->x; x < s->x + s->width; ++x) {
      if (has(o, x + 1, y) || has(o, x - 1, y) || has(o, x, y + 1) || has(o, x, y - 1)) return true;
    }
  }
  return false;
}

static int32_t missed(weft_placer_constraint_e kind, const weft_placer_spot_t* spots) {
  const weft_placer_spot_t* r = &spots[1];
  weft_placer_constraint_t c = {kind, 0, 1, r->x, r->y, r->width, r->height, 0};
  return weft_placer_missed(&c, spots);
}

// A constraint is missed by 0 just when the tiles say so, and else by as many tiles as the block has to go, at the
// least.
static void missed_is_how_far_the_block_has_to_go(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  for (int trial = 0; trial < 4000; ++trial) {
    weft_placer_spot_t spots[2] = {random_spot(&rng), random_spot(&rng)};
    int32_t inside = missed(WEFT_PLACER_INSIDE, spots), out = missed(WEFT_PLACER_KEEP_OUT, spots),
            beside = missed(WEFT_PLACER_ADJACENT, spots);
    assert_int_equal(inside == 0, all_in(&spots[0], &spots[1]));
    assert_int_equal(out == 0, !overlap(&spots[0], &spots[1]));
    if (!overlap(&spots[0], &spots[1])) assert_int_equal(beside == 0, touch(&spots[0], &spots[1]));
    // One step changes it by one at the most: the annealer has a slope to follow.
    weft_placer_spot_t moved[2] = {spots[0], spots[1]};
    if (trial % 2) ++moved[0].x;
    if (!(trial % 2)) ++moved[0].y;
    assert_true(abs(missed(WEFT_PLACER_INSIDE, moved) - inside) <= 1);
    assert_true(abs(missed(WEFT_PLACER_KEEP_OUT, moved) - out) <= 1);
    assert_true(abs(missed(WEFT_PLACER_ADJACENT, moved) - beside) <= 1);
    // And as many steps along one way lead out.
    bool leads_out = false;
    static const int32_t ways[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    for (int w = 0; w < 4; ++w) {
      weft_placer_spot_t far = spots[0];
      far.x += out * ways[w][0];
      far.y += out * ways[w][1];
      leads_out |= !overlap(&far, &spots[1]);
    }
    assert_true(leads_out);
  }
}

static random_problem_t drawn;
static weft_arena_t arena;
static char path[] = "/tmp/weft-rules-XXXXXX";

static int set_up(void** state) {
  (void)state;
  int file = mkstemp(path);
  if (file >= 0) close(file);
  weft_arena_initialize(weft_allocator_system(), &arena);
  return file < 0;
}
static int tear_down(void** state) {
  (void)state;
  weft_arena_deinitialize(&arena);
  return unlink(path);
}

static void write_rules(const char* text) {
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

// Reads and binds to 12 blocks "layer0/op" ... of up to 5x5 tiles on 30x21.
static weft_status_t bind(const char* text, weft_placer_rules_t* rules) {
  static const random_kind_t kind = {
      .width = 30, .height = 21, .blocks = 12, .largest = 5, .whole = true, .dead = 0.02};
  write_rules(text);
  random_problem(3, &kind, &drawn);
  WEFT_RETURN_IF_ERROR(weft_placer_rules_read(path, &arena, rules));
  return weft_placer_rules_bind(rules, &arena, &drawn.problem);
}

static void rules_become_constraints(void** state) {
  (void)state;
  weft_placer_rules_t rules;
  assert_null(
      bind("# nothing\n\n  fix layer3/op 1,2,9x8 # a comment\r\nkeep-out 0,0,4x3\nkeep-out 5,5,2x2 \"layer1*\"\n"
           "adjacent layer1?/op layer2/op",
           &rules));
  assert_int_equal(rules.count, 4);
  assert_int_equal(rules.rule[0].line, 3);
  assert_int_equal(drawn.problem.constraint_count, 1 + 12 + 3 + 2);
  const weft_placer_constraint_t* c = drawn.problem.constraint;
  assert_true(c[0].kind == WEFT_PLACER_INSIDE && c[0].block == 3 && c[0].x == 1 && c[0].y == 2 && c[0].width == 9 &&
              c[0].height == 8);
  assert_true(c[12].kind == WEFT_PLACER_KEEP_OUT && c[12].block == 11 && c[12].rule == 1);
  assert_true(c[13].block == 1 && c[14].block == 10 && c[15].block == 11);
  assert_true(c[16].kind == WEFT_PLACER_ADJACENT && c[16].block == 10 && c[16].other == 2 && c[17].block == 11);
}

static void faults_name_file_line_and_what_would_do(void** state) {
  (void)state;
  static const struct {
    const char* text;
    weft_status_code_e code;
    const char* words[3];
  } cases[] = {
      {"fix layer1/op 1,2,3\n", WEFT_STATUS_INVALID_INPUT, {":1: ", "expected 'fix KERNEL X,Y,WxH'", "1,2,3"}},
      {"\nfix layer1/op 1,2,0x4\n", WEFT_STATUS_INVALID_INPUT, {":2: ", "expected", "0x4"}},
      {"fix layer1/op 1,2,3x4 now\n", WEFT_STATUS_INVALID_INPUT, {":1: ", "expected", "now"}},
      {"adjacent layer1/op\n", WEFT_STATUS_INVALID_INPUT, {":1: ", "adjacent KERNEL KERNEL", ""}},
      {"keepout 1,1,2x2\n", WEFT_STATUS_INVALID_INPUT, {":1: ", "keep-out", ""}},
      {"fix layr1/op 0,0,9x9\n", WEFT_STATUS_NOT_FOUND, {":1: ", "did you mean 'layer1/op'", ""}},
      {"fix *relu* 0,0,9x9\n", WEFT_STATUS_NOT_FOUND, {"no kernel matches '*relu*'", "layer0/op", "..."}},
      {"fix /op 0,0,9x9\n", WEFT_STATUS_NOT_FOUND, {"no kernel matches '/op'", "layer0/op", "of 12 kernels"}},
      {"keep-out 9,9,2x2\nfix * 0,0,2x1\n", WEFT_STATUS_DOES_NOT_FIT, {":2: ", "needs", "would do"}},
      {"fix layer1/op 40,2,9x9\n",
       WEFT_STATUS_DOES_NOT_FIT,
       {":1: ", "has 0 live tiles on the 30x21 mesh", "would do"}},
      {"fix * 0,0,7x5\n", WEFT_STATUS_DOES_NOT_FIT, {"12 kernels have to lie in 7x5", "need", "would do"}},
      {"keep-out 0,0,30x21\n", WEFT_STATUS_DOES_NOT_FIT, {":1: ", "leaves it 0 live tiles", "needs"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    weft_placer_rules_t rules;
    weft_status_t status = bind(cases[i].text, &rules);
    const char* message = weft_status_message(status);
    bool right = weft_status_code(status) == cases[i].code;
    for (int w = 0; w < 3 && cases[i].words[w]; ++w) right &= strstr(message, cases[i].words[w]) != NULL;
    if (!right) print_error("%s -> %s\n", cases[i].text, message);
    assert_true(right);
    weft_status_free(status);
  }
}

static void placements_hold_what_can_be_held(void** state) {
  (void)state;
  static const char* const texts[] = {
      "fix layer3/op 22,13,8x8\n",
      "keep-out 0,0,15x21\n",
      "adjacent layer0/op layer11/op\nadjacent layer0/op layer5/op\n",
      "fix layer1*/op 0,0,14x14\nkeep-out 6,0,3x21\nadjacent layer2/op layer3/op\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      weft_placer_rules_t rules;
      assert_null(bind(texts[i], &rules));
      weft_placer_options_t options = {.seed = seed, .effort = 0.1, .seeds = 2};
      weft_placer_result_t result;
      assert_null(weft_placer_solve(&drawn.problem, &options, &arena, &result));
      assert_null(weft_placer_legal(&drawn.problem, result.spot));
      weft_status_t status = weft_placer_rules_check(&rules, &drawn.problem, result.spot);
      if (status) print_error("%s: %s\n", texts[i], weft_status_message(status));
      assert_null(status);
    }
  }
}

static void what_is_missed_is_listed(void** state) {
  (void)state;
  weft_placer_rules_t rules;
  assert_null(bind("fix layer0/op 2,2,10x10\nadjacent layer0/op layer1/op\nkeep-out 0,0,3x3 layer0/op\n", &rules));
  weft_placer_spot_t spots[12] = {{.x = 1, .y = 1, .width = 3, .height = 3}, {.x = 9, .y = 1, .width = 2, .height = 2}};
  weft_status_t status = weft_placer_rules_check(&rules, &drawn.problem, spots);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DOES_NOT_FIT);
  static const char* const words[] = {"3 of 3 constraints",          "line 1, fix layer0/op 2,2,10x10",
                                      "1,1,11x11 would hold it",     "2 tiles outside",
                                      "5 tiles from sharing a side", "2 tiles into it"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    if (!strstr(weft_status_message(status), words[i]))
      print_error("no '%s' in %s\n", words[i], weft_status_message(status));
    assert_non_null(strstr(weft_status_message(status), words[i]));
  }
  weft_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missed_is_how_far_the_block_has_to_go),
      cmocka_unit_test(rules_become_constraints),
      cmocka_unit_test(faults_name_file_line_and_what_would_do),
      cmocka_unit_test(placements_hold_what_can_be_held),
      cmocka_unit_test(what_is_missed_is_listed),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
