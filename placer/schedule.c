#include "placer/schedule.h"

#include <math.h>

enum {
  LIMIT_BITS = 10,
  FEWEST_BATCH = 16,        // moves between two looks at the clock: at least,
  MOST_BATCH = 1 << 16,     // and at most
  MOST_TEMPERATURES = 2000, // of a run that follows the acceptance rate
  FRAMES_OF_CLOCK = 100     // temperatures reported in a run that follows the clock
};
static const double batch_seconds = 2e-3; // the clock is looked at about as often

typedef struct run_t {
  const weft_placer_schedule_t* schedule;
  const weft_placer_moves_t* moves;
  weft_rng_t* rng;
  const weft_control_t* control;
  double started;
  double cost, best; // running costs
  double scale;      // largest cost recomputed so far: what drift is relative to, as costs can end at 0
  double temperature, range, least_range;
  double hot, cold;
  int64_t tried, taken; // at this temperature
  int64_t batch;
  double clock;                  // when the batch began
  double limit[1 << LIMIT_BITS]; // -ln of the middles of equal parts of (0, 1); of the first its upper end
  weft_placer_annealing_t* out;
} run_t;

// Metropolis: a move is taken with probability exp(-delta / T). Drawing the random number first turns it into a limit
// on delta, which lets the representation give up early. A logarithm would cost as much as the quickest of moves: it is
// looked up, but for the rarest limits, which are the widest.
static double draw_limit(run_t* r) {
  uint64_t index = weft_rng_next(r->rng) >> (64 - LIMIT_BITS);
  if (index) return r->temperature * r->limit[index];
  return r->temperature * (r->limit[0] - log(1 - weft_rng_unit(r->rng)));
}

static void fill_limits(run_t* r) {
  r->limit[0] = LIMIT_BITS * log(2);
  for (int i = 1; i < 1 << LIMIT_BITS; ++i) r->limit[i] = r->limit[0] - log(i + 0.5);
}

static void step(run_t* r) {
  double delta = 0, limit = draw_limit(r);
  ++r->tried;
  if (!r->moves->propose(r->moves->self, r->rng, r->range, limit, &delta)) return;
  if (delta > limit) {
    r->moves->undo(r->moves->self);
    return;
  }
  r->moves->keep(r->moves->self);
  ++r->taken;
  r->cost += delta;
  if (r->cost < r->best) {
    r->best = r->cost;
    r->moves->save_best(r->moves->self);
  }
}

// The spread of the cost over a random walk that takes every move. Leaves the present state changed.
static double spread(run_t* r, int64_t moves) {
  double mean = 0, squares = 0, cost = r->cost;
  int64_t count = 0;
  for (int64_t i = 0; i < moves && (i % FEWEST_BATCH || !weft_control_should_stop(r->control)); ++i) {
    double delta = 0;
    if (!r->moves->propose(r->moves->self, r->rng, 1, INFINITY, &delta)) continue;
    r->moves->keep(r->moves->self);
    cost += delta;
    double step = cost - mean; // Welford: costs are large and close to each other
    mean += step / (double)++count;
    squares += step * (cost - mean);
  }
  return count ? sqrt(fmax(0, squares / (double)count)) : 0;
}

static void take_cost(run_t* r) {
  double full = r->moves->recompute(r->moves->self);
  r->scale = fmax(r->scale, fabs(full));
  r->out->drift = fmax(r->out->drift, fabs(r->cost - full) / r->scale);
  r->cost = full;
}

static bool enough(const run_t* r) {
  return r->schedule->most_moves && r->out->moves + r->tried >= r->schedule->most_moves;
}

// Looked at after each move: a representation may stop its own run by it, and which moves come after mustn't depend on
// how long a batch is.
static bool cancelled(const run_t* r) {
  return r->control && r->control->cancelled && *r->control->cancelled;
}

// Moves until the next look at the clock; as many as take about batch_seconds, whatever a move costs. How many moves a
// batch has changes no result of a run without a clock.
static int64_t run_batch(run_t* r, int64_t most) {
  int64_t count = r->batch < most ? r->batch : most;
  for (int64_t i = 0; i < count && !enough(r) && !cancelled(r); ++i) step(r);
  double now = weft_control_now(), target = batch_seconds;
  if (r->schedule->seconds > 0) target = fmin(target, r->schedule->seconds * 2e-3);
  double took = now - r->clock;
  if (took < target / 2 && r->batch < MOST_BATCH) r->batch *= 2;
  if (took > target && r->batch > FEWEST_BATCH) r->batch /= 2;
  r->clock = now;
  return count;
}

// Share of the way from hot to cold that is behind us.
static double progress(const run_t* r) {
  if (r->schedule->seconds > 0) return (r->clock - r->started) / r->schedule->seconds;
  return log(r->hot / r->temperature) / log(r->hot / r->cold);
}

// Ends a temperature: the cost from scratch, the table line, the frame, the range of moves.
static double end_temperature(run_t* r) {
  take_cost(r);
  r->out->moves += r->tried;
  r->out->taken += r->taken;
  ++r->out->temperatures;
  double rate = r->tried ? (double)r->taken / (double)r->tried : 0;
  char parts[128] = "";
  if (r->control && r->control->table) {
    if (r->moves->describe) r->moves->describe(r->moves->self, parts, sizeof parts);
    weft_control_table(r->control, "place",
                       "%7.2f s  T %10.4g  cost %12.7g  %s  accepted %5.1f %%  range %5.3f  moves %lld",
                       weft_control_now() - r->started, r->temperature, r->cost, parts, 100 * rate, r->range,
                       (long long)r->out->moves);
  }
  double done = fmin(1, fmax(0, progress(r)));
  if (r->schedule->runs > 1) done = (r->schedule->run + done) / r->schedule->runs;
  weft_control_progress(r->control, "place", (uint64_t)(1000 * done), 1000);
  if (r->moves->frame) r->moves->frame(r->moves->self, r->temperature);
  r->range = fmin(1, fmax(r->least_range, r->range * (1 - 0.44 + rate)));
  r->tried = r->taken = 0;
  return rate;
}

static void follow_clock(run_t* r) {
  double seconds = r->schedule->seconds, ratio = log(r->cold / r->hot), frame = r->started;
  while (!enough(r) && !weft_control_should_stop(r->control)) {
    double passed = (r->clock - r->started) / seconds;
    if (passed >= 1) break;
    r->temperature = r->hot * exp(ratio * passed);
    run_batch(r, r->batch);
    if (r->tried >= r->schedule->moves_per_temperature && r->clock - frame >= seconds / FRAMES_OF_CLOCK) {
      end_temperature(r);
      frame = r->clock;
    }
  }
  if (r->tried) end_temperature(r);
}

static void follow_acceptance(run_t* r) {
  r->temperature = r->hot;
  while (r->out->temperatures < MOST_TEMPERATURES && r->temperature > r->cold && !enough(r)) {
    bool stopped = false;
    while (r->tried < r->schedule->moves_per_temperature && !stopped && !enough(r)) {
      run_batch(r, r->schedule->moves_per_temperature - r->tried);
      stopped = weft_control_should_stop(r->control);
    }
    double rate = end_temperature(r);
    if (stopped) break;
    // Frozen: without a last temperature given, nothing being taken is the sign.
    if (r->schedule->cold <= 0 && rate == 0 && r->range <= r->least_range) break;
    bool settling = rate <= 0.15 && r->range <= r->least_range;
    double cooling = rate > 0.96 ? 0.5 : rate > 0.8 ? 0.9 : settling ? 0.8 : 0.95;
    r->temperature *= r->schedule->cooling > 0 ? r->schedule->cooling : cooling;
  }
}

weft_status_t weft_placer_schedule_run(const weft_placer_schedule_t* schedule, const weft_placer_moves_t* moves,
                                       weft_rng_t* rng, const weft_control_t* control,
                                       weft_placer_annealing_t* out_annealing) {
  *out_annealing = (weft_placer_annealing_t){0};
  run_t r = {.schedule = schedule,
             .moves = moves,
             .rng = rng,
             .control = control,
             .started = weft_control_now(),
             .range = 1,
             .least_range = schedule->least_range > 0 ? schedule->least_range : 1e-3,
             .batch = FEWEST_BATCH,
             .out = out_annealing};
  r.clock = r.started;
  fill_limits(&r);
  r.cost = r.best = moves->recompute(moves->self);
  r.scale = fmax(1e-12, fabs(r.cost));
  moves->save_best(moves->self);
  r.hot = schedule->hot;
  if (r.hot <= 0) {
    // 20 standard deviations take nearly every move; against the clock that is time lost.
    r.hot = (schedule->seconds > 0 ? 0.2 : 20) * spread(&r, schedule->moves_per_temperature);
    moves->restore_best(moves->self);
    r.cost = moves->recompute(moves->self);
  }
  r.cold = schedule->cold > 0 ? schedule->cold : r.hot * (schedule->seconds > 0 ? 1e-3 : 1e-7);
  r.cold = fmin(r.cold, r.hot / 2); // a state that hardly changes with the moves
  if (r.hot > 0) {
    if (schedule->seconds > 0) {
      follow_clock(&r);
    } else {
      follow_acceptance(&r);
    }
  }
  moves->restore_best(moves->self);
  r.cost = r.best;
  take_cost(&r);
  out_annealing->cost = r.cost;
  if (out_annealing->drift > 1e-6) {
    return weft_error(INTERNAL, "the annealer's running cost drifted by %.3g from the recomputed one",
                      out_annealing->drift);
  }
  return weft_ok();
}
