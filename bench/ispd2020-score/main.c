// ispd2020-score PROBLEM.kgraph SOLUTION.paint: checks a solution of the ISPD 2020 contest and prints its score.
// Written from the contest's description alone; it shares no code with the placer that it scores. Exit code 0: legal;
// 1: not legal or not readable.
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 4096, MOST_EDGES = 16384, MOST_FORMAL = 8, MOST_EXECUTION = 10, MOST_NAME = 32 };

typedef enum { CONV, DBLOCK, CBLOCK, OUTSIDE } type_t;

typedef struct {
  type_t type;
  int id;
  long formal[MOST_FORMAL]; // as a solution repeats them: H W C K R S T T of a conv, H W F of a block
  bool assigned, placed;
  long execution[MOST_EXECUTION];
  long x, y, width, height; // as they lie
  double time, memory;
} kernel_t;

typedef struct {
  long width, height, memory;
  double weight_time, weight_wire, weight_adapter;
  int kernels, edges;
  kernel_t kernel[MOST_KERNELS];
  int edge[MOST_EDGES][2];
} problem_t;

static const char* const type_name[] = {"conv", "dblock", "cblock"};
static const int formal_count[] = {8, 3, 3}, execution_count[] = {4, 8, 10};

// Everything fails through here: one line that says what and where.
#define FAIL(...) return fprintf(stderr, "ispd2020-score: " __VA_ARGS__), fputc('\n', stderr), false

static char* read_whole(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  size_t size = 0, capacity = 1 << 16;
  char* text = malloc(capacity + 1);
  for (size_t got; text && (got = fread(text + size, 1, capacity - size, file)) > 0;) {
    size += got;
    if (size == capacity) text = realloc(text, (capacity *= 2) + 1);
  }
  fclose(file);
  if (text) text[size] = 0;
  return text;
}

static double setting(const char* text, const char* name, double otherwise) {
  size_t length = strlen(name);
  for (const char* at = strstr(text, name); at; at = strstr(at + 1, name)) {
    if ((at == text || isspace((unsigned char)at[-1])) && at[length] == '=') return strtod(at + length + 1, NULL);
  }
  return otherwise;
}

static long argument(const char* line, char lower) {
  for (const char* at = line; *at; ++at) {
    if (tolower((unsigned char)*at) == lower && at[1] == '=' && isspace((unsigned char)at[-1])) return atol(at + 2);
  }
  return 0;
}

static int find_kernel(const problem_t* problem, long id) {
  for (int i = 0; i < problem->kernels; ++i) {
    if (problem->kernel[i].id == id) return i;
  }
  return -1;
}

// `type[ id ]` at the start of a text; returns what follows, or NULL.
static const char* node_at(const char* text, char type[MOST_NAME], long* id) {
  int used = 0;
  if (sscanf(text, " %31[a-z] [ %ld ]%n", type, id, &used) < 2 || !used) return NULL;
  return text + used;
}

static bool add_node(problem_t* problem, const char* line, const char* type, long id) {
  if (problem->kernels == MOST_KERNELS) FAIL("more than %d kernels", MOST_KERNELS);
  kernel_t* kernel = &problem->kernel[problem->kernels++];
  *kernel = (kernel_t){.type = OUTSIDE, .id = (int)id};
  for (int t = 0; t < 3; ++t) {
    if (!strcmp(type, type_name[t])) kernel->type = (type_t)t;
  }
  const char* letters = kernel->type == CONV ? "hwckrstt" : kernel->type == OUTSIDE ? "" : "hwf";
  for (int i = 0; letters[i]; ++i) {
    kernel->formal[i] = argument(line, letters[i]);
    if (kernel->formal[i] < 1) FAIL("k%ld: the problem gives no %c", id, toupper((unsigned char)letters[i]));
  }
  return true;
}

static bool read_problem(const char* path, problem_t* problem) {
  char* text = read_whole(path);
  if (!text) FAIL("%s: can't be read", path);
  problem->width = (long)setting(text, "width", 633);
  problem->height = (long)setting(text, "height", 633);
  problem->memory = (long)setting(text, "memlimit", 24576);
  problem->weight_time = setting(text, "wdeltat", 1);
  problem->weight_wire = setting(text, "wlength", 1);
  problem->weight_adapter = setting(text, "wadapter", 0);
  bool good = true;
  for (char* open = strstr(text, "(*"); open; open = strstr(open, "(*")) { // comments away
    char* close = strstr(open, "*)");
    size_t length = close ? (size_t)(close + 2 - open) : strlen(open);
    for (size_t i = 0; i < length; ++i) open[i] = open[i] == '\n' ? '\n' : ' ';
  }
  char* rest = text;
  for (char* line; good && (line = strsep(&rest, "\n")) != NULL;) {
    char type[MOST_NAME], other[MOST_NAME];
    long id = 0, to = 0;
    const char* after = node_at(line, type, &id);
    if (!after) continue;
    const char* arrow = strstr(after, "->");
    if (!arrow) {
      good = add_node(problem, after, type, id);
      continue;
    }
    int ends[2] = {find_kernel(problem, id), node_at(arrow + 2, other, &to) ? find_kernel(problem, to) : -1};
    if (ends[0] < 0 || ends[1] < 0 || problem->edges == MOST_EDGES) {
      fprintf(stderr, "ispd2020-score: %s: bad connection: %s\n", path, line);
      good = false;
      continue;
    }
    if (problem->kernel[ends[0]].type == OUTSIDE || problem->kernel[ends[1]].type == OUTSIDE) continue;
    problem->edge[problem->edges][0] = ends[0];
    problem->edge[problem->edges++][1] = ends[1];
  }
  free(text);
  return good;
}

static bool read_longs(const char* text, long* values, int count) {
  for (int i = 0; i < count; ++i) {
    char* end = NULL;
    values[i] = strtol(text, &end, 10);
    if (end == text) return false;
    text = end;
  }
  while (isspace((unsigned char)*text)) ++text;
  return *text == ')';
}

static bool read_assignment(kernel_t* kernel, const char* type, const char* arguments) {
  if (kernel->type == OUTSIDE || strcmp(type, type_name[kernel->type]) != 0)
    FAIL("k%d: the solution makes it a %s, which it isn't in the problem", kernel->id, type);
  int formals = formal_count[kernel->type], executions = execution_count[kernel->type];
  long values[MOST_FORMAL + MOST_EXECUTION];
  if (!read_longs(arguments, values, formals + executions))
    FAIL("k%d: expected %d whole numbers in brackets", kernel->id, formals + executions);
  for (int i = 0; i < formals; ++i) {
    if (values[i] != kernel->formal[i])
      FAIL("k%d: formal argument %d is %ld in the solution and %ld in the problem", kernel->id, i + 1, values[i],
           kernel->formal[i]);
  }
  if (kernel->assigned) FAIL("k%d: has its arguments twice", kernel->id);
  kernel->assigned = true;
  memcpy(kernel->execution, values + formals, sizeof *values * (size_t)executions);
  return true;
}

static bool read_solution(const char* path, problem_t* problem) {
  char* text = read_whole(path);
  if (!text) FAIL("%s: can't be read", path);
  bool good = true;
  char* rest = text;
  for (char* line; good && (line = strsep(&rest, "\n")) != NULL;) {
    long id = 0, x = 0, y = 0, angle = 0;
    char type[MOST_NAME];
    int used = 0;
    if (sscanf(line, " k%ld %n", &id, &used) < 1 || !used) continue;
    const char* after = line + used;
    int index = find_kernel(problem, id);
    if (index < 0) {
      fprintf(stderr, "ispd2020-score: %s: there is no kernel k%ld\n", path, id);
      good = false;
      break;
    }
    kernel_t* kernel = &problem->kernel[index];
    used = 0;
    if (sscanf(after, "= %31[a-z] (%n", type, &used) == 1 && used) {
      good = read_assignment(kernel, type, after + used);
    } else if (sscanf(after, ": place ( %ld %ld R%ld )%n", &x, &y, &angle, &used) == 3 && used) {
      if (kernel->placed || angle % 90 || angle < 0 || angle > 270) {
        fprintf(stderr, "ispd2020-score: k%ld: %s\n", id, kernel->placed ? "is placed twice" : "can't be turned so");
        good = false;
      }
      kernel->placed = true;
      kernel->x = x;
      kernel->y = y;
      kernel->width = angle % 180 ? 1 : 0; // turned; sizes come later
    }
  }
  free(text);
  return good;
}

static double ceil_div(long a, long b) {
  return (double)((a + b - 1) / b);
}

typedef struct {
  double height, width, time, memory;
} performance_t;

// The description's convperf.
static performance_t convolution(long h, long w, long r, long s, long c, long k, long t, long h1, long w1, long c1,
                                 long k1) {
  return (performance_t){.height = (double)(h1 * w1 * (c1 + 1)),
                         .width = 3.0 * (double)k1,
                         .time = ceil_div(h, h1) * ceil_div(w, w1) * ceil_div(c, c1) * ceil_div(k, k1) *
                                 (double)(r * s) / (double)t / (double)t,
                         .memory = (double)c / (double)c1 * ((double)k / (double)k1) * (double)(r * s) +
                                   (double)(w + s - 1) / (double)w1 * ((double)(h + r - 1) / (double)h1) *
                                       ((double)k / (double)k1)};
}

static bool measure(const problem_t* problem, kernel_t* kernel) {
  const long *f = kernel->formal, *e = kernel->execution;
  int parts = kernel->type == CONV ? 1 : kernel->type == DBLOCK ? 3 : 4;
  // h w r s c k t of every convolution
  long part[4][7] = {{0}};
  if (kernel->type == CONV) {
    memcpy(part[0], (long[7]){f[0], f[1], f[4], f[5], f[2], f[3], f[6]}, sizeof part[0]);
  } else {
    long h = f[0], w = f[1], n = f[2];
    bool d = kernel->type == DBLOCK;
    memcpy(part[0], (long[7]){h, w, 1, 1, d ? n : n / 2, n / 4, 1}, sizeof part[0]);
    memcpy(part[1], (long[7]){h, w, 3, 3, n / 4, n / 4, d ? 1 : 2}, sizeof part[1]);
    memcpy(part[2], (long[7]){d ? h : h / 2, d ? w : w / 2, 1, 1, n / 4, n, 1}, sizeof part[2]);
    memcpy(part[3], (long[7]){h, w, 1, 1, n / 2, n, 2}, sizeof part[3]);
  }
  if (e[0] < 1 || e[0] > f[0] || e[1] < 1 || e[1] > f[1])
    FAIL("k%d: h' = %ld, w' = %ld with H = %ld, W = %ld", kernel->id, e[0], e[1], f[0], f[1]);
  double width = 0, height = 0;
  for (int p = 0; p < parts; ++p) {
    const long* a = part[p];
    long c = e[2 + p], k = e[2 + parts + p];
    if (c < 1 || c > a[4]) FAIL("k%d: c' = %ld of convolution %d is not in 1 .. %ld", kernel->id, c, p + 1, a[4]);
    if (k < 1 || k > a[5]) FAIL("k%d: k' = %ld of convolution %d is not in 1 .. %ld", kernel->id, k, p + 1, a[5]);
    performance_t made = convolution(a[0], a[1], a[2], a[3], a[4], a[5], a[6], e[0], e[1], c, k);
    width += made.width;
    height = fmax(height, made.height);
    kernel->time = fmax(kernel->time, made.time);
    kernel->memory = fmax(kernel->memory, made.memory);
  }
  if (kernel->memory > (double)problem->memory)
    FAIL("k%d: needs %.1f of memory, a tile has %ld", kernel->id, kernel->memory, problem->memory);
  bool turned = kernel->width;
  kernel->width = (long)(turned ? height : width);
  kernel->height = (long)(turned ? width : height);
  if (kernel->x < 0 || kernel->y < 0 || kernel->x + kernel->width > problem->width ||
      kernel->y + kernel->height > problem->height)
    FAIL("k%d: %ldx%ld at (%ld,%ld) is not inside %ldx%ld", kernel->id, kernel->width, kernel->height, kernel->x,
         kernel->y, problem->width, problem->height);
  return true;
}

static bool check(problem_t* problem) {
  for (int i = 0; i < problem->kernels; ++i) {
    kernel_t* kernel = &problem->kernel[i];
    if (kernel->type == OUTSIDE) continue;
    if (!kernel->assigned || !kernel->placed)
      FAIL("k%d: the solution doesn't %s it", kernel->id, kernel->assigned ? "place" : "size");
    if (!measure(problem, kernel)) return false;
    for (int j = 0; j < i; ++j) {
      const kernel_t* other = &problem->kernel[j];
      if (other->type == OUTSIDE || kernel->x >= other->x + other->width || other->x >= kernel->x + kernel->width ||
          kernel->y >= other->y + other->height || other->y >= kernel->y + kernel->height)
        continue;
      FAIL("k%d and k%d overlap: %ldx%ld at (%ld,%ld) and %ldx%ld at (%ld,%ld)", other->id, kernel->id, other->width,
           other->height, other->x, other->y, kernel->width, kernel->height, kernel->x, kernel->y);
    }
  }
  return true;
}

static void print_score(const problem_t* problem) {
  double time = 0, wire = 0, area = 0;
  for (int i = 0; i < problem->kernels; ++i) {
    const kernel_t* kernel = &problem->kernel[i];
    if (kernel->type == OUTSIDE) continue;
    time = fmax(time, kernel->time);
    area += (double)(kernel->width * kernel->height);
  }
  for (int i = 0; i < problem->edges; ++i) {
    const kernel_t *a = &problem->kernel[problem->edge[i][0]], *b = &problem->kernel[problem->edge[i][1]];
    wire += fabs((double)(2 * a->x + a->width - 2 * b->x - b->width)) / 2 +
            fabs((double)(2 * a->y + a->height - 2 * b->y - b->height)) / 2;
  }
  printf("time %.10g  wire %.10g  score %.10g  fill %.2f %%%s\n", time, wire,
         problem->weight_time * time + problem->weight_wire * wire,
         100 * area / (double)(problem->width * problem->height),
         problem->weight_adapter > 0 ? "  without adapters" : "");
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: ispd2020-score PROBLEM.kgraph SOLUTION.paint\n");
    return 1;
  }
  problem_t* problem = calloc(1, sizeof *problem);
  bool legal = problem && read_problem(argv[1], problem) && read_solution(argv[2], problem) && check(problem);
  if (legal) print_score(problem);
  free(problem);
  return legal ? 0 : 1;
}
