// Every rule of weft_fabric_verify, broken one at a time on a legal fabric; and weft_fabric_match.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/ir/fabric/sample.h"

static int setup(void** state) {
  weft_fabric_t* fabric = calloc(1, sizeof(*fabric));
  if (!fabric) return 1;
  sample_fabric(fabric);
  *state = fabric;
  return 0;
}

static int teardown(void** state) {
  weft_fabric_deinitialize(*state);
  free(*state);
  return 0;
}

static void expect_fault(weft_status_t status, const char* part) {
  if (!status) fail_msg("expected '%s', but it is accepted", part);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  if (!strstr(weft_status_message(status), part)) fail_msg("expected '%s' in: %s", part, weft_status_message(status));
  weft_status_free(status);
}

static void sample_is_accepted_at_every_stage(void** state) {
  weft_fabric_t* fabric = *state;
  assert_null(weft_fabric_verify(fabric));
  sample_stage(fabric, WEFT_STAGE_PLACED);
  assert_null(weft_fabric_verify(fabric));
  sample_stage(fabric, WEFT_STAGE_KERNELS);
  fabric->kernel[0].alternative_count = 0;
  assert_null(weft_fabric_verify(fabric));
}

// Sets `place` to `value`, expects the fault, sets it back.
#define BROKEN(place, value, part)                                                                                     \
  do {                                                                                                                 \
    __auto_type kept_ = (place);                                                                                       \
    (place) = (value);                                                                                                 \
    expect_fault(weft_fabric_verify(fabric), (part));                                                                  \
    (place) = kept_;                                                                                                   \
    assert_null(weft_fabric_verify(fabric));                                                                           \
  } while (0)

static void tensors_and_outputs(void** state) {
  weft_fabric_t* fabric = *state;
  weft_tensor_t* tensor = fabric->tensor;
  BROKEN(fabric->stage, 3, "no such stage");
  BROKEN(fabric->tensor_count, -1, "-1 tensors, but there is no array");
  BROKEN(fabric->kernel, NULL, "2 kernels, but there is no array");
  BROKEN(tensor[2].name, NULL, "tensor 2 ''");
  BROKEN(tensor[0].kind, 7, "kind or element type");
  BROKEN(tensor[0].dtype, WEFT_DTYPE_COUNT, "kind or element type");
  BROKEN(tensor[0].shape.rank, 9, "rank 9 is outside 0..8");
  BROKEN(tensor[0].shape.extent[1], -1, "extent -1 of dimension 1");
  BROKEN(tensor[0].shape.extent[1], 0, "it has no elements");
  BROKEN(tensor[0].shape.extent[1], (int64_t)1 << 60, "more elements than any memory");
  BROKEN(tensor[1].data, NULL, "tensor 1 'c'");
  BROKEN(tensor[2].kernel, 2, "its kernel 2 is outside 0..1");
  BROKEN(tensor[2].buffer, 3, "its buffer 3 is outside 0..2");
  BROKEN(tensor[2].buffer, 1, "is not its result buffer");
  BROKEN(tensor[2].shape.rank, 1, "of rank 1, its buffer f32 of rank 2");
  BROKEN(fabric->input_count, 0, "0 inputs are listed, but 1 tensors are inputs");
  BROKEN(fabric->input[0], 1, "'c' is listed as an input but is none");
  BROKEN(fabric->input[0], 4, "an input's tensor 4 is outside 0..3");
  BROKEN(fabric->output[0].dtype, WEFT_DTYPE_F16, "the tensor holds f32, what it assembles f16");
  BROKEN(fabric->output[0].shape.rank, 2, "output 0 'z'");
  BROKEN(fabric->output[0].piece[0].tensor, 4, "a piece's tensor 4 is outside 0..3");
}

static void kernels(void** state) {
  weft_fabric_t* fabric = *state;
  weft_kernel_t* scale = &fabric->kernel[0];
  weft_kernel_t* sum = &fabric->kernel[1];
  BROKEN(scale->dim_count, 13, "13 dimensions, there can be 12");
  BROKEN(scale->dim[0].extent, 0, "extent 0 of d0");
  BROKEN(scale->dim[0].kind, 5, "the kind of dimension d0");
  BROKEN(scale->buffer[0].rank, 9, "buffer 0 'x'");
  BROKEN(scale->buffer[0].row[1].coefficient[2], 1, "it uses d2, the kernel has 2 dimensions");
  BROKEN(scale->buffer[0].row[1].offset, INT64_MAX, "coordinates are beyond any tensor");
  BROKEN(scale->buffer[0].dtype, WEFT_DTYPE_I32, "the tensor holds f32, what it assembles i32");
  BROKEN(scale->buffer[0].piece[0].tensor, 2, "made by kernel 0, which doesn't come before");
  BROKEN(scale->buffer[2].tensor, 3, "is not its result buffer");
  BROKEN(scale->buffer[2].row[0].coefficient[0], 2, "the parallel d0 has coefficient 2, not 1");
  BROKEN(scale->buffer[2].row[0].coefficient[1], 1, "doesn't stand alone");
  BROKEN(scale->buffer[2].row[1].coefficient[1], 0, "row 1 makes 0..0 of 0..5");
  BROKEN(scale->buffer[2].row[0].offset, 1, "row 0 makes 1..4 of 0..3");
  BROKEN(sum->buffer[1].row[0].coefficient[1], 1, "the reduction d1 can't be part of a result");
  BROKEN(sum->dim[1].kind, WEFT_DIM_PARALLEL, "the parallel d1 stands in 0 rows of the result");
  BROKEN(scale->operation[0].op, WEFT_OP_COUNT, "no such operation");
  BROKEN(scale->operation[0].loops, 4, "loops 0x4 over more than the kernel's 2 dimensions");
  BROKEN(scale->operation[1].destination, 1, "operation 1");
  BROKEN(scale->operation[1].source[1], 3, "a source 3 is outside 0..2");
  BROKEN(sum->reduce_operation, -1, "d1 is a reduction, but no operation reduces");
  BROKEN(sum->reduce_operation, 1, "the reducing operation 1 is outside 0..0");
  BROKEN(sum->combiner, WEFT_OP_SUB, "the combiner is none of");
}

static void views(void** state) {
  weft_fabric_t* fabric = *state;
  weft_view_t* view = &fabric->kernel[1].buffer[0].piece[0].view;
  BROKEN(view->rank, 3, "the view has rank 3, what it assembles has 2");
  BROKEN(view->factor_count, 13, "13 factors");
  BROKEN(view->factor[0].extent, 5, "the view's factors make 30 elements, the tensor has 24");
  BROKEN(view->factor[0].hi, 5, "factor 0 of the view: 0..5 of extent 4");
  BROKEN(view->factor[0].lo, -1, "factor 0 of the view: -1..4");
  BROKEN(view->factor[1].dim, 2, "a factor's dimension 2 is outside 0..1");
  BROKEN(view->factor[1].step, INT64_MIN, "reaches beyond any tensor");
  BROKEN(view->offset[1], INT64_MIN, "beyond any tensor");
}

static void splits(void** state) {
  weft_fabric_t* fabric = *state;
  weft_alternative_t* alternative = fabric->kernel[1].alternative;
  weft_split_t* split = &alternative->split;
  BROKEN(split->y_count, 5, "5 factors on an axis");
  BROKEN(split->y[0].dim, 2, "a split dimension 2 is outside 0..1");
  BROKEN(split->y[0].parts, 0, "d0 of extent 4 can't have 0 parts");
  BROKEN(split->y[0].parts, 5, "d0 of extent 4 can't have 5 parts");
  BROKEN(split->y[0].parts, 3, "blocks of 2 make 2 parts, not 3");
  BROKEN(split->x[0].dim, 0, "d0 of extent 4: blocks of 2 make 2 parts, not 3");
  BROKEN(alternative->gy, 3, "make 2 tiles, the grid has 3");
  BROKEN(alternative->bytes, -1, "a figure is negative");
  BROKEN(alternative->step_cycles, -1, "a figure is negative");
  BROKEN(fabric->kernel[1].buffer[0].spare, WEFT_MAX_SPARE + 1, "63 spare places");
  BROKEN(fabric->kernel[1].buffer[0].spare, -1, "-1 spare places");
  BROKEN(fabric->kernel[1].buffer[1].spare, 1, "1 spare places");
  BROKEN(fabric->kernel[1].dim[0].kind, WEFT_DIM_INTERNAL, "d0 is internal and can't be split");
  weft_split_t legal = *split;
  *split = (weft_split_t){.y_count = 1, .x_count = 1, .y = {{0, 2}}, .x = {{0, 2}}};
  alternative->gx = 2;
  expect_fault(weft_fabric_verify(fabric), "d0 is split twice");
  *split = (weft_split_t){.y_count = 0, .x_count = 2, .x = {{1, 3}, {0, 2}}};
  alternative->gy = 1;
  alternative->gx = 6;
  expect_fault(weft_fabric_verify(fabric), "the parallel d0 comes after a reduction");
  fabric->kernel[1].dim[0].kind = WEFT_DIM_REDUCTION;
  fabric->kernel[1].buffer[1].row[0].coefficient[0] = 0;
  *split = legal;
  alternative->gy = 2;
  alternative->gx = 3;
  fabric->tensor[3].shape.extent[0] = fabric->output[0].shape.extent[0] = 1;
  fabric->output[0].piece[0].view = sample_view(1, 1, 0);
  expect_fault(weft_fabric_verify(fabric), "reductions are split on both axes");
}

static void placement_and_streams(void** state) {
  weft_fabric_t* fabric = *state;
  weft_kernel_t* kernel = &fabric->kernel[0];
  weft_stream_t* stream = fabric->stream;
  BROKEN(kernel->chosen, 1, "the chosen alternative 1 is outside 0..0");
  BROKEN(kernel->region.width, 0, "a region of 0 x 2 tiles");
  BROKEN(kernel->tile, NULL, "6 tiles, but there is no array");
  BROKEN(kernel->tile[3], -1, "a tile -1");
  BROKEN(stream[0].kind, 2, "stream 0");
  BROKEN(stream[0].tensor, 1, "it doesn't start where tensor 'c' is made");
  BROKEN(stream[0].source_kernel, 1, "it doesn't start where tensor 'x' is made");
  BROKEN(stream[0].dtype, WEFT_DTYPE_I32, "it carries i32, tensor 'x' holds f32");
  BROKEN(stream[0].sink_kernel, 2, "its sink kernel 2");
  BROKEN(stream[0].sink_buffer, 2, "which is no operand");
  BROKEN(stream[0].sink_buffer, 1, "to a piece of another tensor");
  BROKEN(stream[0].sink_piece, 1, "its piece 1 is outside 0..0");
  BROKEN(stream[2].sink_buffer, 1, "its output 1 is outside 0..0");
  BROKEN(stream[0].source[0].logical, 1, "a logical tile 1 is outside 0..0");
  BROKEN(stream[1].sink[2].logical, 6, "a logical tile 6 is outside 0..5");
  BROKEN(stream[1].source[2].elements, 0, "0 elements at logical tile 2");
  BROKEN(stream[1].sink_count, 0, "it has no sinks");
  BROKEN(stream[1].walk.level_count, 17, "a walk of 17 levels");
  BROKEN(stream[1].walk.source_levels, 5, "5 of them over sources");
  BROKEN(stream[1].walk.level[0].dim, 2, "a level's dimension 2");
  BROKEN(stream[1].walk.level[0].extent, 0, "level 0 of the walk");
  BROKEN(stream[1].walk.level[0].step, -1, "level 0 of the walk");
  BROKEN(stream[1].walk.level[0].step, INT64_MAX, "level 0 of the walk");
  BROKEN(stream[1].walk.box.hi[0], 5, "the walk's box 0..5 is outside dimension 0 of extent 4");
  BROKEN(stream[1].walk.box.rank, 1, "the walk's box has rank 1");
  BROKEN(stream[3].sink_kernel, 0, "a chain goes from one tile to another of the same kernel");
  BROKEN(stream[1].entry, NULL, "14 router entries, but there is no array");
  BROKEN(stream[1].entry[0].tile, -1, "router entry 0");
  BROKEN(stream[1].entry[0].colour, 64, "its colour 64");
  BROKEN(stream[1].entry[0].input_count, 10, "a switch of 10 inputs");
  BROKEN(stream[1].entry[0].input[0], 9, "an input 9");
  BROKEN(stream[1].entry[0].outputs, 1u << 9, "are no directions");
  BROKEN(stream[0].source_port, -1, "don't belong to its ends");
  BROKEN(stream[1].sink_port, 0, "don't belong to its ends");
  BROKEN(fabric->stage, WEFT_STAGE_KERNELS, "7 streams, but streams belong to placed kernels");
}

static void match_compares_machine_and_defects(void** state) {
  weft_fabric_t* fabric = *state;
  weft_machine_t machine;
  weft_defects_t defects;
  weft_allocator_t allocator = weft_allocator_system();
  assert_null(weft_machine_load(allocator, "mesh:6x5", &machine));
  assert_null(weft_defects_create(allocator, &machine, &defects));
  assert_null(weft_machine_digest(&machine, &fabric->machine_digest));
  fabric->defects_digest = weft_defects_digest(&defects);
  assert_null(weft_fabric_match(fabric, &machine, &defects));
  char theirs[65], ours[65];
  weft_digest_format(&fabric->defects_digest, ours);
  weft_defects_kill_tile(&defects, 3);
  weft_digest_t digest = weft_defects_digest(&defects);
  weft_digest_format(&digest, theirs);
  weft_status_t status = weft_fabric_match(fabric, &machine, &defects);
  assert_non_null(status);
  assert_non_null(strstr(weft_status_message(status), ours));
  expect_fault(status, theirs);
  assert_null(weft_fabric_match(fabric, &machine, NULL));
  machine.tile_memory++;
  expect_fault(weft_fabric_match(fabric, &machine, NULL), "made for another machine");
  assert_null(weft_fabric_match(fabric, NULL, NULL));
  sample_stage(fabric, WEFT_STAGE_KERNELS);
  assert_null(weft_fabric_match(fabric, &machine, &defects));
  weft_defects_deinitialize(&defects);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      TEST(sample_is_accepted_at_every_stage),
      TEST(tensors_and_outputs),
      TEST(kernels),
      TEST(views),
      TEST(splits),
      TEST(placement_and_streams),
      TEST(match_compares_machine_and_defects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
