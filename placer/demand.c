#include "placer/demand.h"

#include <string.h>

#include "placer/wire.h"

void weft_placer_demand_initialize(const weft_placer_problem_t* problem, weft_placer_demand_t* d) {
  int32_t longer = problem->width > problem->height ? problem->width : problem->height;
  d->problem = problem;
  d->bin = (longer + WEFT_PLACER_BINS - 1) / WEFT_PLACER_BINS;
  if (d->bin < WEFT_PLACER_BIN) d->bin = WEFT_PLACER_BIN;
  d->columns = (problem->width + d->bin - 1) / d->bin;
  d->rows = (problem->height + d->bin - 1) / d->bin;
  memset(d->load, 0, sizeof d->load);
  memset(d->links, 0, sizeof d->links);
  for (int32_t y = 0; y < problem->height; ++y) {
    double* row = d->links + (size_t)(y / d->bin) * (size_t)d->columns;
    const uint8_t* blocked = problem->blocked ? problem->blocked + (size_t)y * (size_t)problem->width : NULL;
    for (int32_t x = 0; x < problem->width; ++x) row[x / d->bin] += blocked && blocked[x] ? 0 : 4;
  }
}

static weft_congestion_box_t box_of(const weft_placer_problem_t* problem, int32_t end, const weft_placer_spot_t* spot) {
  if (end >= 0) return (weft_congestion_box_t){spot->x, spot->y, spot->x + spot->width, spot->y + spot->height};
  weft_placer_point_t at = problem->anchor[-1 - end];
  return (weft_congestion_box_t){at.x - 0.5, at.y - 0.5, at.x + 0.5, at.y + 0.5};
}

void weft_placer_demand_add(weft_placer_demand_t* d, const weft_placer_edge_t* edge, const weft_placer_spot_t* from,
                            const weft_placer_spot_t* to, double sign) {
  const weft_placer_problem_t* p = d->problem;
  weft_congestion_t map = {
      .width = p->width, .height = p->height, .bin = d->bin, .columns = d->columns, .rows = d->rows, .load = d->load};
  weft_congestion_flow_t flow = {
      .from = box_of(p, edge->from, from), .to = box_of(p, edge->to, to), .wavelets = sign * edge->weight};
  if (edge->from != edge->to) weft_congestion_add(&map, &flow);
  const weft_placer_joint_t* joint = edge->joint ? weft_placer_joint_of(p, edge, from->shape, to->shape) : NULL;
  if (!joint) return;
  weft_congestion_spread(&map, flow.from, flow.wavelets * joint->hops[0]);
  weft_congestion_spread(&map, flow.to, flow.wavelets * joint->hops[1]);
}

void weft_placer_demand_fill(weft_placer_demand_t* d, const weft_placer_spot_t* spots) {
  memset(d->load, 0, sizeof d->load);
  for (int32_t e = 0; e < d->problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &d->problem->edge[e];
    weft_placer_demand_add(d, edge, weft_placer_end_spot(spots, edge->from), weft_placer_end_spot(spots, edge->to), 1);
  }
}

double weft_placer_demand_over(const weft_placer_demand_t* d, double time) {
  double over = 0;
  for (int32_t b = 0; b < d->columns * d->rows; ++b) {
    double beyond = d->load[b] - d->links[b] * time;
    over += beyond > 0 ? beyond : 0;
  }
  return over;
}
