// The contest's problem file: settings in a comment at its head, kernels with their formal arguments, connections.
#pragma once
#include "base/arena.h"

typedef enum ispd2020_kind_e { ISPD2020_CONV, ISPD2020_DBLOCK, ISPD2020_CBLOCK, ISPD2020_PORT } ispd2020_kind_e;

// Formal arguments by the letters of the description; a conv has all but F, a block H, W and F. A PORT is the input or
// output node: it is no kernel and its edges don't count.
typedef struct ispd2020_node_t {
  ispd2020_kind_e kind;
  int32_t id; // the number in brackets
  int64_t h, w, r, s, c, k, t, f;
} ispd2020_node_t;
typedef struct ispd2020_edge_t {
  int32_t from, to; // indices of nodes
} ispd2020_edge_t;
typedef struct ispd2020_graph_t {
  int32_t width, height;
  double weight_time, weight_wire, weight_adapter;
  int64_t memory; // elements a tile can hold
  int32_t node_count, edge_count;
  ispd2020_node_t* node;
  ispd2020_edge_t* edge;
} ispd2020_graph_t;

// INVALID_INPUT names the line.
weft_status_t ispd2020_graph_read(const char* path, weft_arena_t* arena, ispd2020_graph_t* out_graph);
