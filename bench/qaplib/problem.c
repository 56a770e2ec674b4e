#include "bench/qaplib/instance.h"

weft_status_t qap_problem(const qap_instance_t* q, weft_arena_t* arena, weft_placer_problem_t* out_problem) {
  static const weft_placer_shape_t tile = {.width = 1, .height = 1, .tiles = 1};
  size_t n = (size_t)q->n, tiles = (size_t)q->rows * (size_t)q->columns;
  weft_placer_block_t* blocks = NULL;
  weft_placer_edge_t* edges = NULL;
  uint8_t* blocked = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, n, &blocks));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, n * n, &edges));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &blocked));
  for (size_t t = n; t < tiles; ++t) blocked[t] = 1;
  const int64_t* flow = q->grid_is_first ? q->second : q->first;
  int32_t edge_count = 0;
  for (size_t i = 0; i < n; ++i) {
    const char* name = NULL;
    WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &name, "block %zu", i + 1));
    blocks[i] = (weft_placer_block_t){.name = name, .shape_count = 1, .shape = &tile, .fixed_x = -1, .fixed_y = -1};
    for (size_t j = 0; j < i; ++j) {
      int64_t weight = flow[i * n + j] + flow[j * n + i];
      if (weight)
        edges[edge_count++] = (weft_placer_edge_t){.from = (int32_t)i, .to = (int32_t)j, .weight = (double)weight};
    }
  }
  *out_problem = (weft_placer_problem_t){.width = q->columns,
                                         .height = q->rows,
                                         .blocked = blocked,
                                         .block_count = q->n,
                                         .edge_count = edge_count,
                                         .block = blocks,
                                         .edge = edges,
                                         .weight_wire = 1};
  return weft_ok();
}

weft_status_t qap_evaluate(const qap_instance_t* q, const weft_placer_result_t* result, weft_arena_t* arena,
                           int64_t* out_cost) {
  int32_t* p = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)q->n, &p));
  for (int32_t i = 0; i < q->n; ++i) p[i] = -1;
  for (int32_t b = 0; b < q->n; ++b) {
    int32_t place = result->spot[b].y * q->columns + result->spot[b].x;
    if (place >= q->n) return weft_error(INTERNAL, "%s: block %d lies where the grid has no place", q->name, b + 1);
    p[q->grid_is_first ? place : b] = q->grid_is_first ? b : place;
  }
  for (int32_t i = 0; i < q->n; ++i) {
    if (p[i] < 0) return weft_error(INTERNAL, "%s: place %d is taken twice or never", q->name, i + 1);
  }
  *out_cost = qap_cost(q, p);
  if ((double)*out_cost == result->cost) return weft_ok();
  return weft_error(INTERNAL, "%s: the matrices say %lld, the placer %.1f", q->name, (long long)*out_cost,
                    result->cost);
}
