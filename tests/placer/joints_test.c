// Joints of an edge between two kernels made by hand: t[i, j] is cut by its producer along i and j, and read by
// z[i, k] = sum over j of t[i, j] * w[j, k].
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "placer/joints.h"

enum { I = 16, J = 12, K = 5, TERMS = 6 };
enum { LANES_NONE = WEFT_PLACER_LANES_NONE, WIDTH = WEFT_PLACER_LANES_WIDTH, HEIGHT = WEFT_PLACER_LANES_HEIGHT };

typedef struct pair_t {
  weft_split_t from; // dimensions 0: i, 1: j, 2: a reduction over TERMS
  weft_split_t to;   // dimensions 0: i, 1: k, 2: j, a reduction
  bool transposed;   // z is read as t[j, i] instead, with I and J exchanged
  double streams;
  int lanes[2];
  double hops[2];
} pair_t;

static const pair_t pairs[] = {
    // Both cut i along y: four of the producer's blocks to eight of the consumer's.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {1, 1, {{0, 8}}, {{1, 5}}}, false, 8, {HEIGHT, HEIGHT}, {1.5, 5}},
    // Fewer streams than lanes.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {1, 1, {{0, 8}}, {{1, 5}}}, false, 2, {HEIGHT, HEIGHT}, {3, 20}},
    // The consumer has i along x.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {1, 1, {{1, 5}}, {{0, 8}}}, false, 8, {HEIGHT, WIDTH}, {1.5, 5}},
    // It has i in each block of k again: everywhere.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {0, 2, {{0}}, {{1, 5}, {0, 8}}}, false, 8, {LANES_NONE}, {6, 5}},
    // It needs all of t in all of its tiles, however many streams are asked for.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {0, 1, {{0}}, {{1, 5}}}, false, 9, {LANES_NONE}, {6, 5}},
    // A reduction over j cuts t, too.
    {{1, 1, {{0, 2}}, {{1, 6}}}, {1, 1, {{0, 2}}, {{2, 4}}}, false, 4, {WIDTH, WIDTH}, {1.5, 2}},
    // The producer's own reduction doesn't: what stands along x is in one place.
    {{1, 1, {{0, 4}}, {{2, 3}}}, {1, 1, {{0, 4}}, {{2, 3}}}, false, 4, {HEIGHT, HEIGHT}, {1.5, 3}},
    {{0, 1, {{0}}, {{2, 3}}}, {1, 1, {{0, 4}}, {{2, 3}}}, false, 4, {LANES_NONE}, {1.5, 3}},
    // Read transposed, the consumer's first dimension cuts j.
    {{1, 1, {{0, 4}}, {{1, 3}}}, {1, 1, {{0, 6}}, {{1, 5}}}, true, 6, {WIDTH, HEIGHT}, {2, 5}},
};

static int32_t grid(const weft_axis_factor_t* factor, int32_t count) {
  return weft_split_grid(factor, count);
}

static void joints_follow_from_the_splits(void** state) {
  (void)state;
  for (size_t n = 0; n < sizeof pairs / sizeof *pairs; ++n) {
    const pair_t* pair = &pairs[n];
    weft_tensor_t tensor = {.kind = WEFT_TENSOR_RESULT, .shape = {.rank = 2, .extent = {I, J}}};
    weft_piece_t piece = {.view = weft_view_identity(&tensor.shape)};
    weft_shape_t shape = tensor.shape;
    int32_t exchange[] = {1, 0};
    if (pair->transposed) assert_true(weft_view_transpose(&piece.view, &shape, exchange));
    weft_buffer_t result = {.kind = WEFT_BUFFER_RESULT, .rank = 2};
    result.row[0].coefficient[0] = result.row[1].coefficient[1] = 1;
    weft_buffer_t operand = {.kind = WEFT_BUFFER_OPERAND, .rank = 2, .piece_count = 1, .piece = &piece};
    operand.row[0].coefficient[0] = operand.row[1].coefficient[2] = 1;
    weft_operation_t multiply = {.op = WEFT_OP_MLA, .loops = 7, .destination = 1, .source = {0, 0}};
    weft_alternative_t from = {.split = pair->from}, to = {.split = pair->to};
    weft_kernel_t kernel[2] = {
        {.dim_count = 3,
         .dim = {{I, WEFT_DIM_PARALLEL}, {J, WEFT_DIM_PARALLEL}, {TERMS, WEFT_DIM_REDUCTION}},
         .buffer_count = 1,
         .buffer = &result,
         .alternative_count = 1,
         .alternative = &from},
        {.dim_count = 3,
         .dim = {{shape.extent[0], WEFT_DIM_PARALLEL}, {K, WEFT_DIM_PARALLEL}, {shape.extent[1], WEFT_DIM_REDUCTION}},
         .buffer_count = 1,
         .buffer = &operand,
         .operation_count = 1,
         .operation = &multiply,
         .alternative_count = 1,
         .alternative = &to}};
    weft_fabric_t fabric = {.tensor_count = 1, .tensor = &tensor, .kernel_count = 2, .kernel = kernel};
    weft_placer_shape_t upright[2] = {
        {.width = grid(pair->from.x, pair->from.x_count), .height = grid(pair->from.y, pair->from.y_count)},
        {.width = grid(pair->to.x, pair->to.x_count), .height = grid(pair->to.y, pair->to.y_count)}};
    weft_placer_block_t block[2] = {{.shape_count = 1, .shape = &upright[0]}, {.shape_count = 1, .shape = &upright[1]}};
    int32_t first = 0, *alternative[2] = {&first, &first};
    weft_joints_piece_t its = {.sink = 1};
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    const weft_placer_joint_t* joint = NULL;
    assert_null(weft_joints_of_piece(&fabric, &its, block, alternative, pair->streams, &arena, &joint));
    bool same = true;
    for (int end = 0; end < 2; ++end)
      same &= joint->lanes[end] == pair->lanes[end] && fabs(joint->hops[end] - pair->hops[end]) < 1e-5;
    if (!same)
      fail_msg("pair %zu: lanes %d and %d, hops %g and %g", n, joint->lanes[0], joint->lanes[1], (double)joint->hops[0],
               (double)joint->hops[1]);
    weft_arena_deinitialize(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(joints_follow_from_the_splits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
