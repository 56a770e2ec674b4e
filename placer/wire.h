// The wire of an edge: one definition for the objective and for all engines that keep it move by move.
#pragma once
#include <math.h>

#include "placer/placer.h"

// Along one axis an edge's lane t in [0, 1] has `off` + `shear` * (t - 1/2) to go: the mean over t of its length.
static inline double weft_placer_axis_wire(double off, double shear) {
  off = fabs(off);
  shear = fabs(shear);
  return shear <= 2 * off ? off : (off * off + shear * shear / 4) / shear;
}

// An end's lanes are as far apart along x or y as its rectangle is long: adds that to shear[2], times `sign`.
static inline void weft_placer_add_lanes(int lanes, bool transposed, int32_t width, int32_t height, double sign,
                                         double shear[2]) {
  if (lanes == WEFT_PLACER_LANES_NONE) return;
  bool along_y = (lanes == WEFT_PLACER_LANES_HEIGHT) != transposed;
  shear[along_y] += sign * (along_y ? height : width);
}

// Of an edge whose ends have these shapes; NULL: the edge has none.
static inline const weft_placer_joint_t* weft_placer_joint_of(const weft_placer_problem_t* problem,
                                                              const weft_placer_edge_t* edge, int32_t from_shape,
                                                              int32_t to_shape) {
  if (!edge->joint) return NULL;
  return &edge->joint[(size_t)from_shape * (size_t)problem->block[edge->to].shape_count + (size_t)to_shape];
}

static inline weft_placer_point_t weft_placer_end_centre(const weft_placer_problem_t* problem, int32_t end,
                                                         const weft_placer_spot_t* spot) {
  if (end < 0) return problem->anchor[-1 - end];
  return (weft_placer_point_t){spot->x + spot->width / 2.0, spot->y + spot->height / 2.0};
}

// With its ends at these spots, which aren't read where an end is an anchor.
static inline double weft_placer_edge_wire(const weft_placer_problem_t* problem, const weft_placer_edge_t* edge,
                                           const weft_placer_spot_t* from, const weft_placer_spot_t* to) {
  weft_placer_point_t a = weft_placer_end_centre(problem, edge->from, from),
                      b = weft_placer_end_centre(problem, edge->to, to);
  if (!edge->joint) return edge->weight * (fabs(a.x - b.x) + fabs(a.y - b.y));
  const weft_placer_joint_t* joint = weft_placer_joint_of(problem, edge, from->shape, to->shape);
  double shear[2] = {0, 0};
  weft_placer_add_lanes(joint->lanes[0], from->transposed, from->width, from->height, 1, shear);
  weft_placer_add_lanes(joint->lanes[1], to->transposed, to->width, to->height, -1, shear);
  return edge->weight * (weft_placer_axis_wire(a.x - b.x, shear[0]) + weft_placer_axis_wire(a.y - b.y, shear[1]));
}

static inline const weft_placer_spot_t* weft_placer_end_spot(const weft_placer_spot_t* spots, int32_t end) {
  return end < 0 ? NULL : &spots[end];
}
