// The schedule on a state whose costs are known: a row of numbers that want to be small.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "placer/schedule.h"

enum { LENGTH = 20 };

typedef struct row_t {
  int64_t value[LENGTH], best[LENGTH];
  int index;
  int64_t step, lie; // `lie` is added to every delta told
  double offer;      // > 0: each move costs as much, and nothing else happens
  double offered;
  int64_t proposed, saves, stop_after;
  sig_atomic_t cancelled;
  int frames;
  double last_temperature;
} row_t;

static bool propose(void* self, weft_rng_t* rng, double range, double limit, double* out_delta) {
  row_t* r = self;
  (void)limit;
  assert_true(range > 0 && range <= 1);
  if (++r->proposed == r->stop_after) r->cancelled = 1;
  if (r->offer > 0) {
    *out_delta = r->offer;
    return true;
  }
  r->index = (int)weft_rng_below(rng, LENGTH);
  r->step = (int64_t)weft_rng_below(rng, 21) - 10;
  if (!r->step) return false;
  int64_t v = r->value[r->index];
  r->value[r->index] += r->step;
  *out_delta = (double)((v + r->step) * (v + r->step) - v * v + r->lie);
  return true;
}
static void keep(void* self) {
  row_t* r = self;
  if (r->offer > 0) r->offered += r->offer;
}
static void undo(void* self) {
  row_t* r = self;
  if (r->offer <= 0) r->value[r->index] -= r->step;
}
static double recompute(void* self) {
  const row_t* r = self;
  double sum = r->offered;
  for (int i = 0; i < LENGTH; ++i) sum += (double)(r->value[i] * r->value[i]);
  return sum;
}
static void save_best(void* self) {
  row_t* r = self;
  memcpy(r->best, r->value, sizeof r->best);
  ++r->saves;
}
static void restore_best(void* self) {
  row_t* r = self;
  memcpy(r->value, r->best, sizeof r->best);
  r->offered = 0;
}
static void frame(void* self, double temperature) {
  row_t* r = self;
  if (r->frames++) assert_true(temperature < r->last_temperature);
  r->last_temperature = temperature;
}

static row_t row;
static const weft_placer_moves_t moves = {.self = &row,
                                          .propose = propose,
                                          .keep = keep,
                                          .undo = undo,
                                          .recompute = recompute,
                                          .save_best = save_best,
                                          .restore_best = restore_best,
                                          .frame = frame};

static weft_placer_annealing_t run(const weft_placer_schedule_t* schedule, uint64_t seed) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  weft_control_t control = {.cancelled = &row.cancelled};
  weft_placer_annealing_t annealing;
  assert_null(weft_placer_schedule_run(schedule, &moves, &rng, &control, &annealing));
  return annealing;
}

static void start(void) {
  row = (row_t){.lie = 0};
  for (int i = 0; i < LENGTH; ++i) row.value[i] = 100 + i;
}

static void it_finds_the_bottom_and_leaves_it(void** state) {
  (void)state;
  start();
  weft_placer_annealing_t a = run(&(weft_placer_schedule_t){.moves_per_temperature = 2000}, 1);
  assert_true(a.cost == 0 && recompute(&row) == 0);
  assert_true(a.drift < 1e-12);
  assert_int_equal(a.temperatures, row.frames);
  assert_true(a.moves <= row.proposed && a.taken < a.moves && row.saves > 1);
}

static void the_same_seed_gives_the_same_moves(void** state) {
  (void)state;
  weft_placer_schedule_t schedule = {.moves_per_temperature = 333, .most_moves = 20000};
  start();
  weft_placer_annealing_t a = run(&schedule, 7);
  int64_t proposed = row.proposed;
  start();
  weft_placer_annealing_t b = run(&schedule, 7);
  assert_int_equal(proposed, row.proposed);
  assert_int_equal(a.taken, b.taken);
  start();
  b = run(&schedule, 8);
  assert_int_not_equal(a.taken, b.taken);
}

// exp(-delta / T) of all moves are taken, also where that is rare.
static void acceptance_is_metropolis(void** state) {
  (void)state;
  static const double deltas[] = {0.05, 0.5, 1, 3, 6, 8};
  for (size_t i = 0; i < sizeof deltas / sizeof *deltas; ++i) {
    start();
    row.offer = deltas[i];
    int64_t count = 1000000;
    weft_placer_schedule_t one = {
        .moves_per_temperature = count, .hot = 1, .cold = 0.9, .cooling = 0.5, .most_moves = count};
    weft_placer_annealing_t a = run(&one, 3 + i);
    assert_int_equal(a.temperatures, 1);
    double p = exp(-deltas[i]), expected = p * (double)count, sigma = sqrt(expected * (1 - p));
    // The table of limits has 1024 steps: half of one is the systematic part.
    if (fabs((double)a.taken - expected) > 5 * sigma + (double)count / 2048) {
      print_error("delta %g: %lld taken of %g expected\n", deltas[i], (long long)a.taken, expected);
      fail();
    }
  }
}

static void a_wrong_delta_is_found(void** state) {
  (void)state;
  start();
  row.lie = 3;
  weft_rng_t rng;
  weft_rng_seed(&rng, 1);
  weft_placer_annealing_t annealing;
  weft_placer_schedule_t schedule = {.moves_per_temperature = 1000, .hot = 100};
  weft_status_t status = weft_placer_schedule_run(&schedule, &moves, &rng, NULL, &annealing);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INTERNAL);
  assert_non_null(strstr(weft_status_message(status), "drifted"));
  weft_status_free(status);
}

static void loops_are_bounded(void** state) {
  (void)state;
  start();
  weft_placer_schedule_t schedule = {.moves_per_temperature = 1 << 20, .hot = 50, .most_moves = 777};
  weft_placer_annealing_t a = run(&schedule, 1);
  assert_int_equal(a.moves, 777);
  // Without a limit, too, there is an end.
  start();
  row.offer = 1e9; // nothing is ever taken
  a = run(&(weft_placer_schedule_t){.moves_per_temperature = 3, .hot = 1e-3, .cold = 1e-300}, 1);
  assert_true(a.temperatures <= 2000);
}

static void cancelling_keeps_the_best_so_far(void** state) {
  (void)state;
  start();
  double before = recompute(&row);
  row.stop_after = 20000;
  weft_placer_annealing_t a = run(&(weft_placer_schedule_t){.moves_per_temperature = 1 << 30, .hot = 50}, 1);
  assert_true(a.moves == 20000); // whatever the length of a batch
  assert_true(a.cost < before && a.cost == recompute(&row));
}

static void the_clock_is_followed(void** state) {
  (void)state;
  start();
  weft_placer_schedule_t schedule = {.moves_per_temperature = 100, .hot = 1000, .cold = 0.1, .seconds = 0.5};
  double started = weft_control_now();
  weft_placer_annealing_t a = run(&schedule, 1);
  double took = weft_control_now() - started;
  assert_true(took >= 0.5 && took < 0.525 + 0.1); // 5 %, and a slice of the scheduler
  assert_true(a.cost == 0 && a.temperatures > 10 && a.temperatures <= 101);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_finds_the_bottom_and_leaves_it),
      cmocka_unit_test(the_same_seed_gives_the_same_moves),
      cmocka_unit_test(acceptance_is_metropolis),
      cmocka_unit_test(a_wrong_delta_is_found),
      cmocka_unit_test(loops_are_bounded),
      cmocka_unit_test(cancelling_keeps_the_best_so_far),
      cmocka_unit_test(the_clock_is_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
