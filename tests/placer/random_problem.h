// Random problems of the placer: rectangles with several shapes or single tiles, whole or real weights, host ports,
// dead tiles; and the same problem mirrored, or moved into a larger grid.
#pragma once
#include <stdio.h>
#include <string.h>

#include "placer/placer.h"

enum { RANDOM_BLOCKS = 40, RANDOM_SHAPES = 3, RANDOM_EDGES = 120, RANDOM_TILES = 64 * 64, RANDOM_ANCHORS = 3 };

typedef struct random_problem_t {
  weft_placer_problem_t problem;
  weft_placer_block_t block[RANDOM_BLOCKS];
  weft_placer_shape_t shape[RANDOM_BLOCKS][RANDOM_SHAPES];
  weft_placer_edge_t edge[RANDOM_EDGES];
  weft_placer_point_t anchor[RANDOM_ANCHORS];
  uint8_t blocked[RANDOM_TILES];
  char name[RANDOM_BLOCKS][24];
  weft_placer_joint_t joint[RANDOM_EDGES][RANDOM_SHAPES * RANDOM_SHAPES];
} random_problem_t;

typedef struct random_kind_t {
  int32_t width, height, blocks;
  int32_t largest; // side of a shape; 1: blocks of one tile
  bool whole;      // weights and anchors
  bool joints;     // edges between blocks have lanes and hops, and overload has a weight
  double dead;
} random_kind_t;

static int32_t draw_between(weft_rng_t* rng, int32_t low, int32_t high) {
  return low + (int32_t)weft_rng_below(rng, (uint64_t)(high - low + 1));
}

static void random_problem(uint64_t seed, const random_kind_t* kind, random_problem_t* out) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  memset(out, 0, sizeof *out);
  for (int32_t b = 0; b < kind->blocks; ++b) {
    snprintf(out->name[b], sizeof out->name[b], "layer%d/op", b);
    int32_t shapes = kind->largest > 1 ? RANDOM_SHAPES : 1;
    for (int32_t s = 0; s < shapes; ++s) {
      int32_t w = draw_between(&rng, 1, kind->largest), h = draw_between(&rng, 1, kind->largest);
      out->shape[b][s] =
          (weft_placer_shape_t){.width = w, .height = h, .tiles = (int64_t)w * h, .time = 500.0 / (w * h)};
    }
    out->block[b] = (weft_placer_block_t){
        .name = out->name[b], .shape_count = shapes, .shape = out->shape[b], .fixed_x = -1, .fixed_y = -1};
  }
  for (int32_t i = 0; i < RANDOM_ANCHORS; ++i) {
    double part = kind->whole ? 0.5 : weft_rng_unit(&rng);
    out->anchor[i] = (weft_placer_point_t){0, draw_between(&rng, 0, kind->height - 1) + part};
  }
  int32_t edges = 3 * kind->blocks < RANDOM_EDGES ? 3 * kind->blocks : RANDOM_EDGES;
  for (int32_t e = 0; e < edges; ++e) {
    int32_t from = draw_between(&rng, -RANDOM_ANCHORS, kind->blocks - 1);
    double weight = kind->whole ? draw_between(&rng, 1, 20) : 0.1 + 20 * weft_rng_unit(&rng);
    out->edge[e] = (weft_placer_edge_t){.from = from, .to = draw_between(&rng, 0, kind->blocks - 1), .weight = weight};
  }
  for (int32_t e = 0; e < edges && kind->joints; ++e) {
    for (int32_t i = 0; i < RANDOM_SHAPES * RANDOM_SHAPES; ++i) {
      weft_placer_joint_t* joint = &out->joint[e][i];
      for (int end = 0; end < 2; ++end) {
        joint->lanes[end] = (uint8_t)draw_between(&rng, 0, WEFT_PLACER_LANES_COUNT - 1);
        joint->hops[end] = (float)(3 * weft_rng_unit(&rng));
      }
    }
    if (out->edge[e].from >= 0 && out->edge[e].from != out->edge[e].to) out->edge[e].joint = out->joint[e];
  }
  for (int32_t t = 0; t < kind->width * kind->height; ++t) out->blocked[t] = weft_rng_unit(&rng) < kind->dead;
  out->problem = (weft_placer_problem_t){.width = kind->width,
                                         .height = kind->height,
                                         .blocked = out->blocked,
                                         .block_count = kind->blocks,
                                         .edge_count = edges,
                                         .anchor_count = RANDOM_ANCHORS,
                                         .block = out->block,
                                         .edge = out->edge,
                                         .anchor = out->anchor,
                                         .weight_time = 1,
                                         .weight_wire = 0.25,
                                         .weight_overload = kind->joints ? 0.5 : 0};
}
