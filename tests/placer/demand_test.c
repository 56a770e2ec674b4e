// Wire of lanes and overload of links: against sums by hand, kept edge by edge, and what they do to a placement.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "placer/demand.h"
#include "placer/wire.h"
#include "tests/placer/random_problem.h"

static const random_kind_t kind = {.width = 61, .height = 35, .blocks = 20, .largest = 9, .joints = true, .dead = 0.1};
static random_problem_t random;

static void draw_spots(weft_rng_t* rng, weft_placer_spot_t* spots) {
  const weft_placer_problem_t* p = &random.problem;
  for (int32_t b = 0; b < p->block_count; ++b) {
    weft_placer_spot_t* spot = &spots[b];
    spot->shape = draw_between(rng, 0, p->block[b].shape_count - 1);
    spot->transposed = draw_between(rng, 0, 1);
    const weft_placer_shape_t* shape = &p->block[b].shape[spot->shape];
    spot->width = (spot->transposed ? shape->height : shape->width) + draw_between(rng, 0, 2);
    spot->height = (spot->transposed ? shape->width : shape->height) + draw_between(rng, 0, 2);
    spot->x = draw_between(rng, 0, p->width - spot->width);
    spot->y = draw_between(rng, 0, p->height - spot->height);
  }
}

// Where lane t begins or ends: along the side that it is spread over, in the middle of the other.
static weft_placer_point_t lane_at(const weft_placer_spot_t* spot, int lanes, double t) {
  double x = 0.5, y = 0.5;
  if (lanes == WEFT_PLACER_LANES_WIDTH) *(spot->transposed ? &y : &x) = t;
  if (lanes == WEFT_PLACER_LANES_HEIGHT) *(spot->transposed ? &x : &y) = t;
  return (weft_placer_point_t){spot->x + x * spot->width, spot->y + y * spot->height};
}

static void wire_is_the_mean_way_of_the_lanes(void** state) {
  (void)state;
  enum { LANES = 4000 };
  weft_rng_t rng;
  weft_rng_seed(&rng, 8);
  random_problem(5, &kind, &random);
  int32_t longer = 0, checked = 0;
  for (int round = 0; round < 20; ++round) {
    weft_placer_spot_t spots[RANDOM_BLOCKS];
    draw_spots(&rng, spots);
    for (int32_t e = 0; e < random.problem.edge_count; ++e) {
      const weft_placer_edge_t* edge = &random.edge[e];
      if (!edge->joint) continue;
      const weft_placer_spot_t *from = &spots[edge->from], *to = &spots[edge->to];
      const weft_placer_joint_t* joint = &edge->joint[from->shape * random.block[edge->to].shape_count + to->shape];
      double sum = 0;
      for (int i = 0; i < LANES; ++i) {
        double t = (i + 0.5) / LANES;
        weft_placer_point_t a = lane_at(from, joint->lanes[0], t), b = lane_at(to, joint->lanes[1], t);
        sum += fabs(a.x - b.x) + fabs(a.y - b.y);
      }
      double expected = edge->weight * sum / LANES, wire = weft_placer_edge_wire(&random.problem, edge, from, to);
      assert_true(fabs(wire - expected) <= 1e-5 * edge->weight * 100);
      weft_placer_edge_t plain = *edge;
      plain.joint = NULL;
      double centres = weft_placer_edge_wire(&random.problem, &plain, from, to);
      assert_true(wire >= centres - 1e-9);
      longer += wire > centres + 1e-6;
      ++checked;
    }
  }
  assert_true(checked > 500 && longer > 50 && longer < checked);
}

static void demand_kept_edge_by_edge_is_that_of_all_edges(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  random_problem(9, &kind, &random);
  static weft_placer_demand_t kept, filled;
  weft_placer_spot_t spots[RANDOM_BLOCKS], moved[RANDOM_BLOCKS];
  draw_spots(&rng, spots);
  weft_placer_demand_initialize(&random.problem, &kept);
  weft_placer_demand_initialize(&random.problem, &filled);
  weft_placer_demand_fill(&kept, spots);
  for (int i = 0; i < 200; ++i) {
    draw_spots(&rng, moved);
    for (int32_t e = 0; e < random.problem.edge_count; ++e) {
      const weft_placer_edge_t* edge = &random.edge[e];
      for (int add = 0; add < 2; ++add) {
        const weft_placer_spot_t* at = add ? moved : spots;
        weft_placer_demand_add(&kept, edge, weft_placer_end_spot(at, edge->from), weft_placer_end_spot(at, edge->to),
                               add ? 1 : -1);
      }
    }
    memcpy(spots, moved, sizeof spots);
    weft_placer_demand_fill(&filled, spots);
    double total = 0;
    for (int32_t b = 0; b < kept.columns * kept.rows; ++b) {
      assert_true(fabs(kept.load[b] - filled.load[b]) < 1e-7);
      total += filled.load[b];
    }
    double expected = 0;
    for (int32_t e = 0; e < random.problem.edge_count; ++e) {
      weft_placer_edge_t edge = random.edge[e];
      const weft_placer_spot_t *from = weft_placer_end_spot(spots, edge.from), *to = &spots[edge.to];
      const weft_placer_joint_t* joint =
          edge.joint ? weft_placer_joint_of(&random.problem, &edge, from->shape, to->shape) : NULL;
      edge.joint = NULL;
      expected += weft_placer_edge_wire(&random.problem, &edge, from, to);
      if (joint) expected += edge.weight * (joint->hops[0] + joint->hops[1]);
    }
    // What reaches over the edge of the grid is cut off: lanes around a host port.
    assert_true(total <= expected * (1 + 1e-6) && total > 0.9 * expected);
  }
}

static void overload_is_what_exceeds_the_live_links(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 4);
  random_problem(2, &kind, &random);
  weft_placer_spot_t spots[RANDOM_BLOCKS];
  draw_spots(&rng, spots);
  static weft_placer_demand_t demand;
  weft_placer_demand_initialize(&random.problem, &demand);
  double total = 0, links = 0, live = 0;
  assert_true(weft_placer_demand_over(&demand, 0) == 0);
  weft_placer_demand_fill(&demand, spots);
  for (int32_t b = 0; b < demand.columns * demand.rows; ++b) total += demand.load[b], links += demand.links[b];
  for (int32_t t = 0; t < kind.width * kind.height; ++t) live += !random.blocked[t];
  assert_true(links == 4 * live);
  assert_true(fabs(weft_placer_demand_over(&demand, 0) - total) < 1e-9 * total);
  assert_true(weft_placer_demand_over(&demand, 1e9) == 0);
  double last = INFINITY;
  for (double time = 0; time < 10; time += 0.5) {
    double over = weft_placer_demand_over(&demand, time);
    assert_true(over <= last);
    last = over;
  }
  // The cost has it as its weight says; without edges there is none.
  weft_placer_parts_t parts;
  double cost = weft_placer_cost(&random.problem, spots, &parts);
  assert_true(fabs(parts.overload - weft_placer_demand_over(&demand, parts.time)) <= 1e-9 * parts.overload);
  random.problem.weight_overload = 0;
  assert_true(fabs(weft_placer_cost(&random.problem, spots, NULL) + 0.5 * parts.overload - cost) < 1e-9 * cost);
  random.problem.weight_overload = 0.5;
  random.problem.edge_count = 0;
  weft_placer_cost(&random.problem, spots, &parts);
  assert_true(parts.overload == 0);
}

// Two blocks far apart fill the links between them. A third, with much traffic inside, is drawn to the line between
// them by its own edges; only overload tells it to stay off.
static int32_t third_block_at(double weight_overload, double* out_overload) {
  enum { SIDE = 48, BLOCK = 8 };
  weft_placer_shape_t shape = {.width = BLOCK, .height = BLOCK, .tiles = BLOCK * BLOCK, .time = 100};
  weft_placer_block_t block[3];
  for (int b = 0; b < 3; ++b)
    block[b] = (weft_placer_block_t){.name = "block", .shape_count = 1, .shape = &shape, .fixed_x = -1, .fixed_y = -1};
  block[0].fixed_x = 0, block[0].fixed_y = 24;
  block[1].fixed_x = 40, block[1].fixed_y = 24;
  weft_placer_joint_t inside = {.hops = {10, 20}};
  weft_placer_edge_t edge[] = {{.from = 0, .to = 1, .weight = 2500},
                               {.from = 2, .to = 2, .weight = 600, .joint = &inside},
                               {.from = 0, .to = 2, .weight = 1},
                               {.from = 2, .to = 1, .weight = 1}};
  weft_placer_problem_t problem = {.width = SIDE,
                                   .height = SIDE,
                                   .block_count = 3,
                                   .edge_count = 4,
                                   .block = block,
                                   .edge = edge,
                                   .weight_time = 1,
                                   .weight_wire = 1,
                                   .weight_overload = weight_overload};
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  weft_placer_options_t options = {.seed = 3, .effort = 10, .seeds = 1};
  weft_placer_result_t result;
  assert_null(weft_placer_solve(&problem, &options, &arena, &result));
  int32_t y = result.spot[2].y;
  *out_overload = result.parts.overload;
  weft_arena_deinitialize(&arena);
  return y;
}

static void overload_moves_a_block_out_of_a_corridor(void** state) {
  (void)state;
  double over = 0;
  assert_int_equal(third_block_at(0, &over), 24);
  assert_true(over == 0); // not asked for
  int32_t y = third_block_at(1, &over);
  assert_true(y <= 20 || y >= 28);
  assert_true(over == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wire_is_the_mean_way_of_the_lanes),
      cmocka_unit_test(demand_kept_edge_by_edge_is_that_of_all_edges),
      cmocka_unit_test(overload_is_what_exceeds_the_live_links),
      cmocka_unit_test(overload_moves_a_block_out_of_a_corridor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
