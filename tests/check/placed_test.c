// Placement and arrivals: a legal fabric passes; each rule, broken one at a time, is named.
#include "check/check_parts.h"
#include "tests/check/checking.h"

static void sample_is_legal_at_every_stage(void** state) {
  checking_t* t = *state;
  expect_legal(CHECK(t));
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  expect_legal(CHECK(t));
  sample_stage(&t->fabric, WEFT_STAGE_KERNELS);
  expect_legal(CHECK(t));
}

static void unverified_fabrics_are_refused_first(void** state) {
  checking_t* t = *state;
  BROKEN(t, t->fabric.tensor[0].dtype, WEFT_DTYPE_COUNT, "tensor 0 'x'");
}

static void regions_and_tiles(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  weft_kernel_t* kernel = t->fabric.kernel;
  BROKEN(t, kernel[1].region.x, 4, "kernel 'sum': its region of 3x2 tiles at (4, 1) is not inside the mesh of 6x5");
  BROKEN(t, kernel[0].region.y, 4, "kernel 'scale': its region of 3x2 tiles at (0, 4) is not inside");
  BROKEN(t, kernel[1].region.width, INT32_MAX, "is not inside the mesh");
  BROKEN(t, kernel[0].region.width, 4, "kernels 'scale' and 'sum': their regions overlap at tile (3, 1)");
  BROKEN(t, kernel[0].region.x, 1, "logical tile 0 is on tile (0, 1), outside its region");
  BROKEN(t, kernel[0].tile[4], sample_tile(0, 3), "logical tile 4 is on tile (0, 3), outside its region");
  BROKEN(t, kernel[0].tile[4], INT32_MAX - 1, "outside its region");
  BROKEN(t, kernel[1].tile[4], sample_tile(3, 1), "on tile (3, 1), which kernel 'sum' uses already");
  weft_defects_kill_tile(&t->defects, sample_tile(2, 2));
  expect_fault(CHECK(t), "kernel 'scale': logical tile 5 is on tile (2, 2), which is dead");
}

static void memory(void** state) {
  checking_t* t = *state;
  weft_alternative_t* alternative = t->fabric.kernel[0].alternative;
  BROKEN(t, alternative->bytes, 50000, "kernel 'scale': a tile needs 50000 bytes of its 49152");
  // 2x2 of x, 2 of c, 2x2 of y.
  BROKEN(t, alternative->bytes, 39, "take 40 bytes on tile (0, 1), but the alternative says 39");
  alternative->bytes = 40;
  expect_legal(CHECK(t));
  BROKEN(t, t->machine.tile_memory, 39, "operands and results take 40 bytes of the 39 of tile (0, 1)");
  // x and y twice, and x once more.
  BROKEN(t, alternative->doubled, true, "take 72 bytes on tile (0, 1), but the alternative says 40");
  BROKEN(t, t->fabric.kernel[0].buffer[0].spare, 1, "take 56 bytes on tile (0, 1), but the alternative says 40");
}

static void sources(void** state) {
  checking_t* t = *state;
  weft_stream_t* y = &t->fabric.stream[SAMPLE_Y_TO_SUM];
  BROKEN(t, y->source[1].elements, 5,
         "stream 1 of 'y', 'scale' -> 'sum': tile (1, 1) sends 5 elements, its segment has 4");
  BROKEN(t, y->source_count, 5, "its walk has more segments than its 5 sources");
  BROKEN(t, y->source[0].logical, 1, "tile (1, 1) sends elements from [0, 0] on, but holds those from [0, 2] on");
  BROKEN(t, y->walk.box.hi[1], 3, "its segments make 12 elements in 12 wavelets, it says 24 in 24");
  BROKEN(t, y->walk.box.hi[0], 2, "its walk has 3 segments for its 6 sources");
  BROKEN(t, y->wavelets, 25, "its segments make 24 elements in 24 wavelets, it says 24 in 25");
  BROKEN(t, y->elements, 23, "it says 23 in 24");
  BROKEN(t, t->fabric.stream[SAMPLE_Z_TO_HOST].source[0].logical, 1, "tile (4, 1) sends elements from [0] on");
}

static void arrivals(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  weft_stream_t* x = &t->fabric.stream[SAMPLE_X_TO_SCALE];
  BROKEN(t, x->sink_count, 5, "scale, operand 'x': 0 elements of 'x' arrive at tile (2, 2), expected 4");
  BROKEN(t, x->sink_count, 5, "scale, operand 'x': element [2, 4] arrives 0 times at tile (2, 2), expected 1");
  BROKEN(t, x->sink[5].logical, 0, "operand 'x': element [0, 0] arrives 2 times at tile (0, 1), expected 1");
  BROKEN(t, x->sink[2].elements, 3, "3 elements of 'x' arrive at tile (2, 1), expected 4");
  BROKEN(t, x->sink[2].elements, 3, "'host' -> 'scale': tile (2, 1) takes 4 elements of 'x', it says 3");
  // Numbers alone don't show a walk that meets one element twice and its neighbour never.
  weft_walk_t walk = x->walk;
  walk.level_count = 3;
  walk.level[1] = (weft_walk_level_t){3, 1, 2};
  walk.level[2] = (weft_walk_level_t){2, 1, 0};
  BROKEN(t, x->walk, walk, "scale, operand 'x': element [0, 0] arrives 2 times at tile (0, 1), expected 1");
  BROKEN(t, t->fabric.stream[SAMPLE_Z_TO_HOST].sink[0].elements, 3,
         "output, operand 'z': 3 elements of 'z' arrive at the host");
  weft_stream_t twice[SAMPLE_STREAMS + 1];
  memcpy(twice, t->fabric.stream, SAMPLE_STREAMS * sizeof(*twice));
  twice[SAMPLE_STREAMS] = twice[SAMPLE_Y_TO_SUM];
  t->fabric.stream = twice;
  t->fabric.stream_count++;
  expect_fault(CHECK(t), "sum, operand 'y': element [0, 0] arrives 2 times at tile (3, 1), expected 1");
}

// Two streams for one operand, each with half of the rows: legal; both with the same half: not.
static void operand_in_two_streams(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  weft_stream_t* stream = SAMPLE_NEW(&t->fabric, SAMPLE_STREAMS + 1, weft_stream_t);
  memcpy(stream, t->fabric.stream, SAMPLE_STREAMS * sizeof(*stream));
  weft_stream_t *top = &stream[SAMPLE_Y_TO_SUM], *bottom = &stream[SAMPLE_STREAMS];
  *bottom = *top;
  top->walk.box.hi[0] = bottom->walk.box.lo[0] = 2;
  top->source_count = top->sink_count = bottom->source_count = bottom->sink_count = 3;
  bottom->source += 3;
  bottom->sink += 3;
  top->elements = top->wavelets = bottom->elements = bottom->wavelets = 12;
  t->fabric.stream = stream;
  t->fabric.stream_count = SAMPLE_STREAMS + 1;
  expect_legal(CHECK(t));
  BROKEN(t, bottom->sink, top->sink, "8 elements of 'y' arrive at tile (3, 1), expected 4");
  BROKEN(t, bottom->sink, top->sink, "element [2, 0] arrives 0 times at tile (3, 2), expected 1");
}

// Padding: the operand reaches beyond its piece.
static void fill_covers_what_no_piece_does(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  weft_buffer_t* x = &t->fabric.kernel[0].buffer[0];
  weft_stream_t* stream = &t->fabric.stream[SAMPLE_X_TO_SCALE];
  x->row[1].offset = -1; // column j reads x[i, j - 1]
  for (int32_t i = 0; i < SAMPLE_TILES; ++i) stream->sink[i].elements = i % 3 ? 4 : 2;
  expect_fault(CHECK(t), "no piece covers element [0, -1], which tile (0, 1) needs, and there is no fill");
  x->has_fill = true;
  expect_legal(CHECK(t));
  BROKEN(t, stream->sink[0].elements, 4, "4 elements of 'x' arrive at tile (0, 1), expected 2");
  // A second piece over the first one.
  weft_piece_t* piece = SAMPLE_NEW(&t->fabric, 2, weft_piece_t);
  piece[0] = piece[1] = x->piece[0];
  x->piece = piece;
  x->piece_count = 2;
  expect_fault(CHECK(t), "scale, operand 'x': more than one piece covers element [0, 0]");
}

// The operand is the transpose of the tensor, cut out of it with a stride: a view of several factors.
static void reshaped_operands(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  // y[2a + b, c] lands at row 3b + c % 3, column a * 2 + c / 3 of a 6 x 4 operand; the kernel reads it transposed.
  weft_buffer_t* buffer = &t->fabric.kernel[1].buffer[0];
  weft_view_t* view = &buffer->piece[0].view;
  *view = (weft_view_t){.factor_count = 4, .rank = 2};
  view->factor[0] = (weft_view_factor_t){.extent = 2, .hi = 2, .dim = 1, .step = 2};
  view->factor[1] = (weft_view_factor_t){.extent = 2, .hi = 2, .dim = 0, .step = 3};
  view->factor[2] = (weft_view_factor_t){.extent = 2, .hi = 2, .dim = 1, .step = 1};
  view->factor[3] = (weft_view_factor_t){.extent = 3, .hi = 3, .dim = 0, .step = 1};
  buffer->row[0] = (weft_index_row_t){.coefficient = {0, 1}};
  buffer->row[1] = (weft_index_row_t){.coefficient = {1, 0}};
  expect_legal(CHECK(t));
  BROKEN(t, view->factor[3].step, 2, "sum, operand 'y'");
  BROKEN(t, view->factor[3].hi, 2, "sum, operand 'y'");
  BROKEN(t, view->factor[2].dim, -1, "more than one piece covers");
  BROKEN(t, view->offset[1], 1, "no piece covers element [0, 0]");
}

static void chains(void** state) {
  checking_t* t = *state;
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  weft_stream_t* chain = &t->fabric.stream[SAMPLE_CHAIN_0];
  BROKEN(t, chain->sink[0].logical, 2, "chain of 'sum': goes from tile (3, 1) to tile (5, 1), not to the next tile");
  BROKEN(t, chain->source[0].logical, 3, "tile (3, 1) hands on 0 times in its reduce chain, expected 1");
  BROKEN(t, chain->source[0].logical, 3, "tile (3, 2) hands on 2 times in its reduce chain, expected 1");
  BROKEN(t, chain->source[0].logical, 2, "tile (5, 1) hands on 1 times in its reduce chain, expected 0");
  BROKEN(t, chain->elements, 3, "carries 3 elements, 'z' has 2 on tile (3, 1)");
  BROKEN(t, chain->wavelets, 3, "2 elements of f32 are 2 wavelets, it says 3");
  BROKEN(t, chain->dtype, WEFT_DTYPE_F16, "carries f16, 'z' holds f32");
  chain[1].sink[0].logical = 0; // 0 -> 1 -> 0
  expect_fault(CHECK(t), "kernel 'sum': tile (3, 1) waits, along its reduce chain, for itself");
}

static void wait_cycles_are_found(void** state) {
  (void)state;
  enum { NODES = 6 };
  bool stuck[NODES], any;
  const weft_check_edge_t edge[] = {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {5, 0}, {5, 4}};
  expect_legal(weft_check_stuck(weft_allocator_system(), NODES, 7, edge, stuck, &any));
  assert_true(any);
  const bool expected[NODES] = {false, true, true, true, true, false};
  assert_memory_equal(stuck, expected, sizeof(expected));
  expect_legal(weft_check_stuck(weft_allocator_system(), NODES, 3, edge, stuck, &any));
  assert_false(any);
  expect_legal(weft_check_stuck(weft_allocator_system(), 0, 0, NULL, stuck, &any));
  assert_false(any);
}

static void many_faults_are_counted_but_not_all_shown(void** state) {
  checking_t* t = *state;
  for (int32_t i = 0; i < weft_machine_tiles(&t->machine); ++i) weft_defects_kill_tile(&t->defects, i);
  for (int32_t k = 0; k < 2; ++k) t->fabric.kernel[k].alternative->bytes = 50000;
  for (int32_t i = 0; i < SAMPLE_TILES; ++i) t->fabric.kernel[1].tile[i] = sample_tile(3, 1);
  expect_fault(CHECK(t), "19 faults in the routed network");
  t->machine.tile_memory = 20; // two more
  expect_fault(CHECK(t), "21 faults in the routed network; the first 20 are shown");
  weft_status_t status = CHECK(t);
  int lines = 0;
  for (const char* c = weft_status_message(status); *c; ++c) lines += *c == '\n';
  assert_int_equal(lines, 20);
  weft_status_free(status);
}

static void memory_may_run_out_anywhere(void** state) {
  checking_t* t = *state;
  weft_allocator_t system = t->fabric.arena.allocator;
  for (uint64_t n = 0;; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    t->fabric.arena.allocator = weft_allocator_failing(&failing);
    weft_status_t status = CHECK(t);
    t->fabric.arena.allocator = system;
    assert_int_equal(failing.live, 0);
    if (!status) {
      assert_true(n > 10);
      return;
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(sample_is_legal_at_every_stage),
      TEST(unverified_fabrics_are_refused_first),
      TEST(regions_and_tiles),
      TEST(memory),
      TEST(sources),
      TEST(arrivals),
      TEST(operand_in_two_streams),
      TEST(fill_covers_what_no_piece_does),
      TEST(reshaped_operands),
      TEST(chains),
      TEST(wait_cycles_are_found),
      TEST(many_faults_are_counted_but_not_all_shown),
      TEST(memory_may_run_out_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
