// qaplib DATA_DIR [--time SECONDS] [--seed S] [--seeds N] [INSTANCE...]: the placer on grids of QAPLIB, one instance
// after the other, each on one core.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/qaplib/instance.h"
#include "placer/placer.h"

enum { MOST_INSTANCES = 64 };

typedef struct bench_t {
  const char* data;
  double seconds;
  int64_t seed, seeds;
  int count;
  const char* instance[MOST_INSTANCES];
} bench_t;

// One instance with all seeds; *out_gaps has room for each.
static weft_status_t run_instance(const bench_t* bench, const char* name, weft_arena_t* arena, double* out_gaps) {
  qap_instance_t q;
  weft_placer_problem_t problem;
  WEFT_RETURN_IF_ERROR(qap_instance_read(bench->data, name, arena, &q));
  WEFT_RETURN_IF_ERROR(qap_problem(&q, arena, &problem));
  weft_control_t control = {.threads = 1};
  for (int64_t s = 0; s < bench->seeds; ++s) {
    weft_placer_options_t options = {
        .seed = (uint64_t)(bench->seed + s), .effort = 1, .seeds = 1, .control = &control, .seconds = bench->seconds};
    weft_placer_result_t result;
    double started = weft_control_now();
    WEFT_RETURN_IF_ERROR(weft_placer_solve(&problem, &options, arena, &result));
    double took = weft_control_now() - started;
    int64_t cost = 0;
    WEFT_RETURN_IF_ERROR(qap_evaluate(&q, &result, arena, &cost));
    out_gaps[s] = 100.0 * (double)(cost - q.best_known) / (double)q.best_known;
    printf("%-8s %2dx%-2d  seed %-3lld  cost %9lld  best known %9lld  gap %6.3f %%  %7.2f s  %.1f M moves\n", name,
           q.rows, q.columns, (long long)options.seed, (long long)cost, (long long)q.best_known, out_gaps[s], took,
           (double)result.moves / 1e6);
    fflush(stdout);
  }
  return weft_ok();
}

static weft_status_t run(const bench_t* bench) {
  if (bench->count < 1 || bench->seeds < 1) return weft_error(INVALID_ARGUMENT, "nothing to do");
  double* gaps = calloc((size_t)bench->count * (size_t)bench->seeds, sizeof *gaps);
  if (!gaps) return weft_error(OUT_OF_MEMORY, "no memory for %d gaps", bench->count);
  weft_status_t status = weft_ok();
  for (int i = 0; i < bench->count && !status; ++i) {
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    status = run_instance(bench, bench->instance[i], &arena, gaps + (size_t)i * (size_t)bench->seeds);
    weft_arena_deinitialize(&arena);
  }
  double total = 0;
  for (int64_t s = 0; s < bench->seeds && !status; ++s) {
    double sum = 0, worst = 0;
    for (int i = 0; i < bench->count; ++i) {
      double gap = gaps[(int64_t)i * bench->seeds + s];
      sum += gap;
      worst = fmax(worst, gap);
    }
    printf("seed %-3lld %d instances, %g s each: mean gap %.4f %%, worst %.4f %%\n", (long long)bench->seed + s,
           bench->count, bench->seconds, sum / bench->count, worst);
    total += sum / bench->count;
  }
  if (!status) printf("mean over %lld seeds: %.4f %%\n", (long long)bench->seeds, total / (double)bench->seeds);
  free(gaps);
  return status;
}

static weft_status_t parse(int argc, char** argv, bench_t* out_bench) {
  // The grids on which annealing has something to do.
  static const char* const usual[] = {"nug30", "tho30", "tho40", "sko42", "sko49",   "wil50",  "sko56",
                                      "sko64", "sko72", "sko81", "sko90", "sko100a", "wil100", "tho150"};
  *out_bench = (bench_t){.seconds = 10, .seed = 1, .seeds = 1};
  for (int i = 1; i < argc; ++i) {
    bool time = !strcmp(argv[i], "--time"), seed = !strcmp(argv[i], "--seed"), seeds = !strcmp(argv[i], "--seeds");
    if (time || seed || seeds) {
      char* end = NULL;
      double value = i + 1 < argc ? strtod(argv[i + 1], &end) : -1;
      if (!end || end == argv[i + 1] || *end || !(value >= (seed ? 0 : time ? 1e-3 : 1)) || value > 1e6) {
        return weft_error(INVALID_ARGUMENT, "%s needs a number", argv[i]);
      }
      ++i;
      if (time) out_bench->seconds = value;
      if (seed) out_bench->seed = (int64_t)value;
      if (seeds) out_bench->seeds = (int64_t)value;
    } else if (argv[i][0] == '-') {
      return weft_error(INVALID_ARGUMENT, "no option %s; there are --time, --seed and --seeds", argv[i]);
    } else if (!out_bench->data) {
      out_bench->data = argv[i];
    } else if (out_bench->count == MOST_INSTANCES) {
      return weft_error(INVALID_ARGUMENT, "more than %d instances", MOST_INSTANCES);
    } else {
      out_bench->instance[out_bench->count++] = argv[i];
    }
  }
  if (!out_bench->data) {
    return weft_error(INVALID_ARGUMENT, "usage: qaplib DATA_DIR [--time SECONDS] [--seed S] [--seeds N] [INSTANCE...]");
  }
  if (!out_bench->count) {
    memcpy(out_bench->instance, usual, sizeof usual);
    out_bench->count = (int)(sizeof usual / sizeof *usual);
  }
  return weft_ok();
}

int main(int argc, char** argv) {
  bench_t bench;
  weft_status_t status = parse(argc, argv, &bench);
  if (!status) status = run(&bench);
  int code = weft_status_code_exit(weft_status_code(status));
  if (status) fprintf(stderr, "qaplib: %s\n", weft_status_message(status));
  weft_status_free(status);
  return code;
}
