#include "bench/qaplib/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MOST_BLOCKS = 1000 };

// A file as a string in the arena.
static weft_status_t read_text(const char* path, weft_arena_t* arena, const char** out_text) {
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  char* text = NULL;
  weft_status_t status = weft_arena_allocate(arena, mapping.size + 1, 1, (void**)&text);
  if (!status) memcpy(text, mapping.data, mapping.size);
  weft_file_unmap(&mapping);
  *out_text = text;
  return status;
}

static weft_status_t read_numbers(const char* path, const char** at, int64_t count, int64_t* out_numbers) {
  for (int64_t i = 0; i < count; ++i) {
    char* end = NULL;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || errno || llabs(value) > INT32_MAX) {
      return weft_error(INVALID_INPUT, "%s: number %lld of %lld is missing or no 32-bit number", path, (long long)i,
                        (long long)count);
    }
    *at = end;
    out_numbers[i] = value;
  }
  return weft_ok();
}

// The width of the grid, in row-major order, that a matrix holds the L1 distances of; 0: of none.
static int32_t grid_columns(int32_t n, const int64_t* matrix) {
  for (int32_t columns = 1; columns <= n; ++columns) {
    bool same = true;
    for (int32_t i = 0; i < n && same; ++i) {
      for (int32_t j = 0; j < n && same; ++j) {
        int32_t across = i % columns - j % columns, down = i / columns - j / columns;
        same = matrix[(size_t)i * (size_t)n + (size_t)j] == abs(across) + abs(down);
      }
    }
    if (same) return columns;
  }
  return 0;
}

static weft_status_t find_grid(const char* path, qap_instance_t* q) {
  int32_t first = grid_columns(q->n, q->first), second = grid_columns(q->n, q->second);
  if (!first == !second) {
    return weft_error(INVALID_INPUT, "%s: %s of its matrices holds the distances of a grid; just one should", path,
                      first ? "each" : "none");
  }
  q->grid_is_first = first > 0;
  q->columns = first + second;
  q->rows = (q->n + q->columns - 1) / q->columns;
  return weft_ok();
}

// The row of the index: name, n, best known cost, "ROWSxCOLUMNS ...", which matrix.
static weft_status_t check_index(const char* data, weft_arena_t* arena, qap_instance_t* q) {
  const char *path = NULL, *text = NULL;
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s/INDEX.tsv", data));
  WEFT_RETURN_IF_ERROR(read_text(path, arena, &text));
  size_t length = strlen(q->name);
  for (const char* line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    if (strncmp(line, q->name, length) != 0 || line[length] != '\t') continue;
    int n = 0, rows = 0, columns = 0, matrix = 0;
    long long best = 0;
    if (sscanf(line + length, "\t%d\t%lld\t%dx%d%*[^\t]\t%d", &n, &best, &rows, &columns, &matrix) != 5 &&
        sscanf(line + length, "\t%d\t%lld\t%dx%d\t%d", &n, &best, &rows, &columns, &matrix) != 5) {
      return weft_error(INVALID_INPUT, "%s: the row of %s can't be read", path, q->name);
    }
    q->best_known = best;
    if (n == q->n && rows == q->rows && columns == q->columns && (matrix == 1) == q->grid_is_first) return weft_ok();
    return weft_error(INVALID_INPUT,
                      "%s: %s is said to be %d blocks on %dx%d, matrix %d; its matrices say %d on %dx%d, "
                      "matrix %d",
                      path, q->name, n, rows, columns, matrix, q->n, q->rows, q->columns, q->grid_is_first ? 1 : 2);
  }
  return weft_error(NOT_FOUND, "%s has no row for %s", path, q->name);
}

int64_t qap_cost(const qap_instance_t* q, const int32_t* p) {
  int64_t sum = 0;
  size_t n = (size_t)q->n;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) sum += q->first[i * n + j] * q->second[(size_t)p[i] * n + (size_t)p[j]];
  }
  return sum;
}

static weft_status_t read_solution(const char* path, const char* text, weft_arena_t* arena, qap_instance_t* q) {
  size_t n = (size_t)q->n;
  int64_t head[2] = {0}, *numbers = NULL;
  int32_t *p = NULL, *inverse = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, n, &numbers));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, n, &p));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, n, &inverse));
  WEFT_RETURN_IF_ERROR(read_numbers(path, &text, 2, head));
  WEFT_RETURN_IF_ERROR(read_numbers(path, &text, q->n, numbers));
  for (size_t i = 0; i < n; ++i) inverse[i] = -1;
  for (size_t i = 0; i < n; ++i) {
    if (numbers[i] < 1 || numbers[i] > q->n || inverse[numbers[i] - 1] >= 0) {
      return weft_error(INVALID_INPUT, "%s is no permutation of 1..%d", path, q->n);
    }
    p[i] = (int32_t)numbers[i] - 1;
    inverse[p[i]] = (int32_t)i;
  }
  int64_t cost = qap_cost(q, p), other = qap_cost(q, inverse);
  if (head[0] != q->n || (cost != head[1] && other != head[1])) {
    return weft_error(INVALID_INPUT, "%s: %lld blocks that cost %lld by the file; it is %lld, or %lld inverted", path,
                      (long long)head[0], (long long)head[1], (long long)cost, (long long)other);
  }
  if (head[1] != q->best_known) {
    return weft_error(INVALID_INPUT, "%s costs %lld, the index says %lld", path, (long long)head[1],
                      (long long)q->best_known);
  }
  q->solution = cost == head[1] ? p : inverse;
  return weft_ok();
}

weft_status_t qap_instance_read(const char* data, const char* name, weft_arena_t* arena, qap_instance_t* out_instance) {
  qap_instance_t* q = out_instance;
  *q = (qap_instance_t){.name = name};
  const char *path = NULL, *at = NULL;
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s/%s.dat", data, name));
  WEFT_RETURN_IF_ERROR(read_text(path, arena, &at));
  int64_t n = 0;
  WEFT_RETURN_IF_ERROR(read_numbers(path, &at, 1, &n));
  if (n < 2 || n > MOST_BLOCKS)
    return weft_error(INVALID_INPUT, "%s: %lld blocks; 2 to %d can be read", path, (long long)n, MOST_BLOCKS);
  q->n = (int32_t)n;
  int64_t* matrices = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)(2 * n * n), &matrices));
  WEFT_RETURN_IF_ERROR(read_numbers(path, &at, 2 * n * n, matrices));
  q->first = matrices;
  q->second = matrices + n * n;
  WEFT_RETURN_IF_ERROR(find_grid(path, q));
  WEFT_RETURN_IF_ERROR(check_index(data, arena, q));
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s/%s.sln", data, name));
  WEFT_RETURN_IF_ERROR(read_text(path, arena, &at));
  return read_solution(path, at, arena, q);
}
