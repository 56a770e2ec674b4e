// ispd2020 FILE.kgraph -o FILE.paint: solves a problem of the ISPD 2020 contest with Weft's placement engine, writes
// the contest's form of a solution, and prints its score beside what no solution can beat.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "kernels.h"
#include "placer/slicing.h"
#include "placer/slicing_targets.h"

static volatile sig_atomic_t cancelled;
static void cancel(int signal_number) {
  (void)signal_number;
  cancelled = 1;
}

typedef struct options_t {
  const char *problem, *solution;
  double seconds;
  uint64_t seed;
  int32_t threads;
  int64_t moves; // > 0: as many instead of a time limit
  bool verbose;
} options_t;

static weft_status_t read_options(int argc, char** argv, options_t* out_options) {
  *out_options = (options_t){.seconds = 60, .seed = 1, .threads = 2};
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--verbose")) {
      out_options->verbose = true;
    } else if (argv[i][0] != '-' && !out_options->problem) {
      out_options->problem = argv[i];
    } else if (i + 1 == argc) {
      return weft_error(INVALID_ARGUMENT, "%s: unknown, or its value is missing", argv[i]);
    } else if (!strcmp(argv[i], "-o")) {
      out_options->solution = argv[++i];
    } else if (!strcmp(argv[i], "--time")) {
      out_options->seconds = strtod(argv[++i], NULL);
    } else if (!strcmp(argv[i], "--seed")) {
      out_options->seed = strtoull(argv[++i], NULL, 10);
    } else if (!strcmp(argv[i], "--moves")) {
      out_options->moves = strtoll(argv[++i], NULL, 10);
    } else if (!strcmp(argv[i], "--threads")) {
      out_options->threads = (int32_t)strtol(argv[++i], NULL, 10);
    } else {
      return weft_error(INVALID_ARGUMENT, "%s: unknown", argv[i]);
    }
  }
  if (!out_options->problem || out_options->seconds < 0.1 || out_options->threads < 1 || out_options->threads > 256) {
    return weft_error(INVALID_ARGUMENT,
                      "usage: ispd2020 FILE.kgraph -o FILE.paint [--time SECONDS | --moves N] [--seed N] [--threads N] "
                      "[--verbose]");
  }
  return weft_ok();
}

typedef struct bench_t {
  weft_arena_t arena;
  ispd2020_graph_t graph;
  int32_t* node;                    // [block] its node
  ispd2020_execution_t** execution; // [block][shape]
  weft_placer_problem_t problem;
  double area_bound; // no solution is faster: its kernels would not fit
} bench_t;

static bool area_fits(const ispd2020_graph_t* graph, double time) {
  int64_t sum = 0;
  for (int32_t n = 0; n < graph->node_count; ++n) {
    if (graph->node[n].kind == ISPD2020_PORT) continue;
    int64_t area = ispd2020_least_area(graph, &graph->node[n], time);
    if (!area) return false;
    sum += area;
  }
  return sum <= (int64_t)graph->width * graph->height;
}

static weft_status_t find_area_bound(const ispd2020_graph_t* graph, double* out_bound) {
  int64_t unit = ispd2020_time_unit(graph), low = 0, high = 1;
  while (!area_fits(graph, (double)high / (double)unit)) {
    low = high;
    if (high > INT64_MAX / 4) return weft_error(DOES_NOT_FIT, "the kernels don't fit at any time");
    high *= 2;
  }
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (area_fits(graph, (double)middle / (double)unit))
      high = middle;
    else
      low = middle;
  }
  *out_bound = (double)high / (double)unit;
  return weft_ok();
}

// Shapes with times beyond the area bound by up to this part: more only where the wire outweighs the time.
static double longest_time(const bench_t* bench) {
  const ispd2020_graph_t* g = &bench->graph;
  // An arrangement that is a diagonal of the wafer long for each edge is surely beaten.
  double wire = g->weight_wire * (double)(g->width + g->height) / 4 * g->edge_count / fmax(1e-9, g->weight_time);
  return fmax(bench->area_bound * 1.08, fmin(bench->area_bound + wire, bench->area_bound * 16));
}

static bool same_kernel(const ispd2020_node_t* a, const ispd2020_node_t* b) {
  return a->kind == b->kind && a->h == b->h && a->w == b->w && a->r == b->r && a->s == b->s && a->c == b->c &&
         a->k == b->k && a->t == b->t && a->f == b->f;
}

static weft_status_t make_problem(bench_t* bench) {
  const ispd2020_graph_t* g = &bench->graph;
  size_t nodes = (size_t)g->node_count;
  weft_placer_block_t* block = NULL;
  weft_placer_edge_t* edge = NULL;
  int32_t* block_of = NULL;
  WEFT_RETURN_IF_ERROR(find_area_bound(g, &bench->area_bound));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&bench->arena, nodes + 1, &block));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&bench->arena, (size_t)g->edge_count + 1, &edge));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&bench->arena, nodes + 1, &block_of));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&bench->arena, nodes + 1, &bench->node));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&bench->arena, nodes + 1, &bench->execution));
  weft_placer_problem_t* p = &bench->problem;
  *p = (weft_placer_problem_t){.width = g->width,
                               .height = g->height,
                               .block = block,
                               .edge = edge,
                               .weight_time = g->weight_time,
                               .weight_wire = g->weight_wire};
  double longest = longest_time(bench);
  for (int32_t n = 0; n < g->node_count; ++n) {
    block_of[n] = -1;
    if (g->node[n].kind == ISPD2020_PORT) continue;
    int32_t b = block_of[n] = p->block_count++, twin = -1;
    bench->node[b] = n;
    for (int32_t o = 0; o < b && twin < 0; ++o) {
      if (same_kernel(&g->node[bench->node[o]], &g->node[n])) twin = o;
    }
    const char* name = NULL;
    WEFT_RETURN_IF_ERROR(weft_arena_printf(&bench->arena, &name, "k%d", g->node[n].id));
    if (twin >= 0) {
      block[b] = block[twin];
      bench->execution[b] = bench->execution[twin];
    } else {
      weft_placer_shape_t* shape = NULL;
      WEFT_RETURN_IF_ERROR(ispd2020_shapes(g, &g->node[n], bench->area_bound, longest, &bench->arena, &shape,
                                           &bench->execution[b], &block[b].shape_count));
      block[b].shape = shape;
      block[b].fixed_x = block[b].fixed_y = -1;
    }
    block[b].name = name;
  }
  for (int32_t e = 0; e < g->edge_count; ++e) {
    int32_t from = block_of[g->edge[e].from], to = block_of[g->edge[e].to];
    if (from >= 0 && to >= 0) edge[p->edge_count++] = (weft_placer_edge_t){.from = from, .to = to, .weight = 1};
  }
  return weft_ok();
}

// time + wire that no solution has less of: over all slowest times, that plus the least wire that shapes so fast allow.
static weft_status_t score_bound(bench_t* bench, double score, double* out_bound) {
  const weft_placer_problem_t* p = &bench->problem;
  weft_slicing_target_t* target = NULL;
  int32_t count = 0;
  WEFT_RETURN_IF_ERROR(weft_slicing_targets(p, &bench->arena, &target, &count));
  *out_bound =
      fmin(score, p->weight_time * longest_time(bench)); // what is slower than all shapes here costs that alone
  for (int32_t i = 0; i < count && p->weight_time * target[i].time < *out_bound; ++i) {
    double wire = weft_slicing_least_wire(p, target[i].time);
    *out_bound = fmin(*out_bound, p->weight_time * target[i].time + p->weight_wire * wire);
  }
  return weft_ok();
}

static weft_status_t write_formals(weft_text_t* text, const ispd2020_node_t* n) {
  long long h = n->h, w = n->w, f = n->f, c = n->c, k = n->k, r = n->r, s = n->s, t = n->t;
  if (n->kind == ISPD2020_CONV)
    return weft_text_printf(text, "conv( %lld %lld %lld %lld %lld %lld %lld %lld", h, w, c, k, r, s, t, t);
  return weft_text_printf(text, "%s( %lld %lld %lld", n->kind == ISPD2020_DBLOCK ? "dblock" : "cblock", h, w, f);
}

static weft_status_t write_solution(bench_t* bench, const char* path, const weft_placer_spot_t* spots) {
  weft_text_t text;
  weft_text_initialize(bench->arena.allocator, &text);
  weft_status_t status = weft_text_printf(&text, "include \"common.paint\"\n");
  for (int32_t b = 0; b < bench->problem.block_count && !status; ++b) {
    const ispd2020_node_t* node = &bench->graph.node[bench->node[b]];
    const weft_placer_spot_t* spot = &spots[b];
    const ispd2020_execution_t* e = &bench->execution[b][spot->shape];
    ispd2020_conv_t part[ISPD2020_PARTS];
    int32_t parts = ispd2020_parts(node, part);
    status = weft_text_printf(&text, "k%d = ", node->id);
    if (!status) status = write_formals(&text, node);
    if (!status) status = weft_text_printf(&text, " %d %d", e->h, e->w);
    for (int32_t i = 0; i < parts && !status; ++i) status = weft_text_printf(&text, " %d", e->c[i]);
    for (int32_t i = 0; i < parts && !status; ++i) status = weft_text_printf(&text, " %d", e->k[i]);
    if (!status) {
      status = weft_text_printf(&text, " )\nk%d : name('k%d)\nk%d : place(%d %d %s)\n", node->id, node->id, node->id,
                                spot->x, spot->y, spot->transposed ? "R90" : "R0");
    }
  }
  if (!status) status = weft_text_printf(&text, "kmap = union(");
  for (int32_t b = 0; b < bench->problem.block_count && !status; ++b)
    status = weft_text_printf(&text, " k%d", bench->graph.node[bench->node[b]].id);
  if (!status) status = weft_text_printf(&text, " )\n");
  if (!status) status = weft_file_write(bench->arena.allocator, path, text.data, text.count);
  weft_text_deinitialize(&text);
  return status;
}

static void print_line(void* self, const char* stage, const char* line) {
  (void)self;
  fprintf(stderr, "%s: %s\n", stage, line);
}

static weft_status_t run(bench_t* bench, const options_t* options) {
  double began = weft_control_now();
  WEFT_RETURN_IF_ERROR(ispd2020_graph_read(options->problem, &bench->arena, &bench->graph));
  WEFT_RETURN_IF_ERROR(make_problem(bench));
  const weft_placer_problem_t* p = &bench->problem;
  weft_placer_grid_t grid;
  weft_placer_incidence_t incidence;
  WEFT_RETURN_IF_ERROR(weft_placer_grid_create(p, &bench->arena, &grid));
  WEFT_RETURN_IF_ERROR(weft_placer_incidence_create(p, &bench->arena, &incidence));
  weft_control_t control = {.cancelled = &cancelled,
                            .deadline = options->moves ? 0 : began + options->seconds,
                            .threads = options->threads,
                            .table = options->verbose ? print_line : NULL};
  weft_slicing_search_t search = {.seed = options->seed,
                                  .threads = options->threads,
                                  .moves = options->moves,
                                  .seconds = options->moves ? 0 : options->seconds - (weft_control_now() - began),
                                  .control = &control};
  weft_slicing_found_t found;
  WEFT_RETURN_IF_ERROR(weft_slicing_search(p, &grid, &incidence, &search, &bench->arena, &found));
  if (!found.found) return weft_error(DOES_NOT_FIT, "%s: no solution found in time", options->problem);
  WEFT_RETURN_IF_ERROR(weft_placer_legal(p, found.spot));
  if (options->solution) WEFT_RETURN_IF_ERROR(write_solution(bench, options->solution, found.spot));
  double seconds = weft_control_now() - began, bound = 0;
  WEFT_RETURN_IF_ERROR(score_bound(bench, found.cost, &bound));
  printf(
      "time %.10g  wire %.10g  score %.10g  area bound on time %.10g  lower bound on score %.1f  gap %.2f %%  seed %llu"
      "  moves %lld  seconds %.2f%s\n",
      found.parts.time, found.parts.wire, found.cost, bench->area_bound, bound, 100 * (found.cost - bound) / bound,
      (unsigned long long)options->seed, (long long)found.moves, seconds,
      bench->graph.weight_adapter > 0 ? "  without adapters" : "");
  return weft_ok();
}

int main(int argc, char** argv) {
  signal(SIGINT, cancel);
  options_t options;
  weft_status_t status = read_options(argc, argv, &options);
  if (!status) {
    bench_t bench = {.problem = {0}};
    weft_arena_initialize(weft_allocator_system(), &bench.arena);
    status = run(&bench, &options);
    weft_arena_deinitialize(&bench.arena);
  }
  int code = weft_status_code_exit(weft_status_code(status));
  if (status) fprintf(stderr, "ispd2020: %s\n", weft_status_message(status));
  weft_status_free(status);
  return code;
}
