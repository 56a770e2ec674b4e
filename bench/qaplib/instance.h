// A QAPLIB instance whose one matrix holds the distances of a grid: read, recognised, checked.
#pragma once
#include "placer/placer.h"

typedef struct qap_instance_t {
  const char* name;
  int32_t n;
  const int64_t *first, *second; // [n * n] as in the file
  bool grid_is_first;
  int32_t columns, rows;   // place i of the grid is (i % columns, i / columns); the last places may be missing
  int64_t best_known;      // of INDEX.tsv
  const int32_t* solution; // [n] of the .sln file: cost is sum first[i][j] * second[p[i]][p[j]]; NULL: no such file
} qap_instance_t;

// Reads DATA/NAME.dat and NAME.sln and its row of DATA/INDEX.tsv. The grid is derived from the matrices and has to be
// the one that the index names; the solution has to cost what is said, in one of the two directions it may be written
// in.
weft_status_t qap_instance_read(const char* data, const char* name, weft_arena_t* arena, qap_instance_t* out_instance);
// sum first[i][j] * second[p[i]][p[j]], from the matrices as they are in the file.
int64_t qap_cost(const qap_instance_t* instance, const int32_t* p);
// The grid as blocks of one tile each; missing places are dead tiles.
weft_status_t qap_problem(const qap_instance_t* instance, weft_arena_t* arena, weft_placer_problem_t* out_problem);
// The cost of a placement by the raw matrices; INTERNAL when the placer says another, or a place is taken twice.
weft_status_t qap_evaluate(const qap_instance_t* instance, const weft_placer_result_t* result, weft_arena_t* arena,
                           int64_t* out_cost);
