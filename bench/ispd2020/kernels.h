// The kernel library: what execution arguments a kernel can take, and what rectangle, time and memory come of them.
#pragma once
#include "kgraph.h"
#include "placer/placer.h"

enum { ISPD2020_PARTS = 4 }; // convolutions in a kernel, at most

typedef struct ispd2020_execution_t {
  int32_t h, w;
  int32_t c[ISPD2020_PARTS], k[ISPD2020_PARTS];
} ispd2020_execution_t;

// One convolution of a kernel.
typedef struct ispd2020_conv_t {
  int64_t h, w, r, s, c, k, t;
} ispd2020_conv_t;
int32_t ispd2020_parts(const ispd2020_node_t* node, ispd2020_conv_t out_parts[ISPD2020_PARTS]);

// The least area of a rectangle with both sides at most `side` that the kernel needs to take at most `time`; 0: it
// can't.
int64_t ispd2020_least_area(const ispd2020_graph_t* graph, const ispd2020_node_t* node, double time);

// Every Pareto point (width, height, time) of the kernel with a time up to `high`, up to turning; what is faster than
// `low` counts as `low`. And from each the next larger width and height of the other parity: a centre lies on half
// tiles or on whole ones. execution[i] belongs to shape[i].
weft_status_t ispd2020_shapes(const ispd2020_graph_t* graph, const ispd2020_node_t* node, double low, double high,
                              weft_arena_t* arena, weft_placer_shape_t** out_shape,
                              ispd2020_execution_t** out_execution, int32_t* out_count);

// All times are whole multiples of 1 / this.
int64_t ispd2020_time_unit(const ispd2020_graph_t* graph);
