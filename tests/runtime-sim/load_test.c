// Images that must not load: one case for each promise of the loader. And arbitrary bytes, and memory that runs out.
#include "base/rng.h"
#include "tests/runtime-sim/wafer.h"

// x -> (1,1) and (2,1), where it is added up in a chain towards (0,1) -> y. Row 0 has a dead tile.
static wafer_t* small_network(void) {
  wafer_t* w = wafer_create("mesh:3x2");
  wafer_kernel(w, "sum");
  weft_defects_kill_tile(&w->defects, wafer_index(w, 1, 0));
  weft_defects_kill_link(&w->machine, &w->defects, wafer_index(w, 0, 0), WEFT_DIRECTION_S);
  uint32_t in = wafer_io(w, "x", false, WEFT_DTYPE_F32, 4), out = wafer_io(w, "y", true, WEFT_DTYPE_F32, 4);
  float bias[4] = {1, 2, 3, 4};
  wafer_tile_of(w, wafer_index(w, 0, 1), 0, 16);
  wafer_load(w, 0, bias, sizeof(bias));
  weft_instruction_t chain = {.opcode = WEFT_OPCODE_CHAIN,
                              .op = WEFT_OP_ADD,
                              .colour = 1,
                              .out_colour = -1,
                              .loop_count = 1,
                              .loop = {{.extent = 4, .stride = {4}}}};
  wafer_emit(w, &chain);
  wafer_send(w, WEFT_DTYPE_F32, 2, 0, 4);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  for (int32_t x = 1; x < 3; ++x) {
    wafer_tile_of(w, wafer_index(w, x, 1), 0, 16);
    wafer_recv(w, WEFT_DTYPE_F32, 0, 0, 4, 0, 4);
    wafer_simple(w, WEFT_OPCODE_WAIT_RECV, 0);
    if (x == 2) {
      wafer_op_immediate(w, WEFT_OP_MUL, 0, 4, 10);
      wafer_send(w, WEFT_DTYPE_F32, 3, 0, 4);
    } else {
      chain.colour = 3;
      chain.out_colour = 1;
      wafer_emit(w, &chain);
    }
    wafer_simple(w, WEFT_OPCODE_HALT, 0);
  }
  wafer_route(w, 2, 1, 0, "E", "W0R0");
  wafer_route(w, 1, 1, 0, "E", "R0");
  wafer_route(w, 2, 1, 3, "R", "W3");
  wafer_route(w, 1, 1, 3, "E", "R3");
  wafer_route(w, 1, 1, 1, "R", "W1");
  wafer_route(w, 0, 1, 1, "E", "R1");
  wafer_route(w, 0, 1, 2, "R", "W0");
  int32_t from = wafer_host_colour(w, wafer_port_at(w, 2, 1, WEFT_DIRECTION_E), 0);
  int32_t to = wafer_host_colour(w, wafer_port_at(w, 0, 1, WEFT_DIRECTION_W), 0);
  wafer_host(w);
  weft_instruction_t recv = wafer_recv_of(WEFT_DTYPE_F32, to, (int32_t)w->io.data[out].address, 4, 0, 4);
  recv.flags = WEFT_ISA_FLAG_REPEAT;
  recv.step_stride = 16;
  wafer_emit(w, &recv);
  weft_instruction_t send = {.opcode = WEFT_OPCODE_SEND,
                             .flags = WEFT_ISA_FLAG_REPEAT,
                             .colour = from,
                             .base = {(int32_t)w->io.data[in].address},
                             .step_stride = 16,
                             .loop_count = 1,
                             .loop = {{.extent = 4, .stride = {4}}}};
  wafer_emit(w, &send);
  wafer_simple(w, WEFT_OPCODE_WAIT_SEND, from);
  wafer_simple(w, WEFT_OPCODE_WAIT_RECV, to);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
  return w;
}

static weft_status_t run_image(weft_allocator_t allocator, const weft_image_t* image, const weft_control_t* control,
                               float* out) {
  weft_sim_t* sim;
  float x[4] = {1, 2, 3, 4};
  WEFT_RETURN_IF_ERROR(weft_sim_create(allocator, image, &sim));
  weft_status_t status = weft_sim_set_input(sim, 0, x, sizeof(x));
  if (!status) status = weft_sim_run(sim, 1, control);
  if (!status) status = weft_sim_get_output(sim, 1, out, sizeof(x));
  weft_sim_destroy(sim);
  return status;
}

static void check_values(const float* y) {
  for (int32_t i = 0; i < 4; ++i) assert_true(y[i] == (float)((i + 1) * 12)); // bias + x + 10 x
}

static void small_network_runs(void** state) {
  (void)state;
  wafer_t* w = small_network();
  float y[4];
  assert_status_ok(run_image(w->allocator, wafer_image(w), NULL, y));
  check_values(y);
  wafer_destroy(w);
}

static void fails_cleanly_without_memory(void** state) {
  (void)state;
  wafer_t* w = small_network();
  const weft_image_t* image = wafer_image(w);
  uint64_t n = 0;
  for (bool done = false; !done; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    float y[4];
    weft_status_t status = run_image(weft_allocator_failing(&failing), image, NULL, y);
    done = weft_is_ok(status);
    if (!done) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    assert_int_equal(failing.live, 0);
    if (done) check_values(y);
  }
  assert_true(n > 10);
  wafer_destroy(w);
}

// --- Cases: before the image is put together, the wafer; after it, the image. ---
typedef struct case_t {
  const char* text; // of the message
  void (*wafer)(wafer_t* w);
  void (*image)(weft_image_t* image);
} case_t;

static weft_image_route_t* route_at(wafer_t* w, int32_t x, int32_t y, uint8_t colour) {
  for (size_t r = 0; r < w->routes.count; ++r)
    if (w->routes.data[r].tile == wafer_index(w, x, y) && w->routes.data[r].colour == colour) return &w->routes.data[r];
  fail_msg("no such route");
  return NULL;
}
// Word `word` of instruction `index` of tile record `tile`.
static uint32_t* word_at(wafer_t* w, size_t tile, int32_t index, int32_t word) {
  uint32_t* at = w->tiles.data[tile].code.data;
  for (; index > 0; --index) at += at[1] & 0xffff;
  return at + word;
}
static void insert_before_halt(wafer_t* w, size_t tile, const weft_instruction_t* instruction) {
  w->tiles.data[tile].code.count -= 2;
  w->current = (int32_t)tile;
  wafer_emit(w, instruction);
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
}
static void insert_opcode(wafer_t* w, weft_opcode_e opcode) {
  weft_instruction_t i = {.opcode = opcode};
  insert_before_halt(w, 1, &i);
}

static void dead_router(wafer_t* w) {
  wafer_route(w, 1, 0, 5, "R", "R5");
}
static void off_mesh_router(wafer_t* w) {
  route_at(w, 2, 1, 0)->tile = 6;
}
static void colour_too_large(wafer_t* w) {
  wafer_route(w, 2, 1, 24, "R", "R0");
}
static void route_twice(wafer_t* w) {
  wafer_route(w, 2, 1, 0, "R", "R0");
}
static void no_input(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "", "R9");
}
static void input_twice(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "RR", "R9");
}
static void no_output(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "R", "");
}
static void wrong_output(wafer_t* w) {
  route_at(w, 2, 1, 0)->outputs |= 1 << 12;
}
static void wrong_direction(wafer_t* w) {
  route_at(w, 2, 1, 0)->input[0] = 200;
}
static void dangling(wafer_t* w) {
  route_at(w, 2, 1, 3)->output_colour[WEFT_DIRECTION_W] = 7;
}
static void unexpected(wafer_t* w) {
  wafer_route(w, 2, 1, 7, "R", "W1");
} // (1,1) colour 1 listens to its ramp only
static void diagonal(wafer_t* w) {
  route_at(w, 1, 1, 1)->outputs |= 1 << WEFT_DIRECTION_NE;
}
static void dead_link(wafer_t* w) {
  wafer_route(w, 0, 0, 0, "R", "S9");
  wafer_route(w, 0, 1, 9, "N", "R9");
}
static void into_dead_tile(wafer_t* w) {
  wafer_route(w, 2, 0, 0, "R", "W0");
}
static void unfed(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "N", "R9");
}
static void unfed_port(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "E", "R9");
}
static void no_port(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "R", "E9");
}
static void reached_twice(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "R", "W3");
}
static void port_twice(wafer_t* w) {
  wafer_route(w, 0, 1, 9, "R", "W0");
}
static void fork_before_join(wafer_t* w) {
  wafer_route(w, 2, 1, 9, "R", "W9R9");
  wafer_route(w, 1, 1, 9, "ER", "R9");
}
static void join_after_fork(wafer_t* w) {
  wafer_route(w, 1, 1, 9, "R", "E9R9");
  wafer_route(w, 2, 1, 9, "WR", "R9");
}
static void loop(wafer_t* w) {
  wafer_route(w, 1, 1, 9, "E", "E9");
  wafer_route(w, 2, 1, 9, "W", "W9");
}
static void loop_from_source(wafer_t* w) {
  wafer_route(w, 1, 1, 9, "ER", "E9");
  wafer_route(w, 2, 1, 9, "W", "W9");
}
static void loop_with_way_out(wafer_t* w) {
  wafer_route(w, 1, 1, 9, "ER", "E9");
  wafer_route(w, 2, 1, 9, "W", "W9R9");
}
static void host_port(wafer_t* w) {
  w->host_colours.data[0].port = 1000;
}
static void host_colour(wafer_t* w) {
  w->host_colours.data[0].colour = 24;
}

static void no_halt(wafer_t* w) {
  w->tiles.data[1].code.count -= 2;
}
static void after_halt(wafer_t* w) {
  w->current = 1;
  wafer_simple(w, WEFT_OPCODE_HALT, 0);
}
static void two_bodies(wafer_t* w) {
  insert_opcode(w, WEFT_OPCODE_STEPS);
  insert_opcode(w, WEFT_OPCODE_END_STEPS);
  insert_opcode(w, WEFT_OPCODE_STEPS);
}
static void halt_in_body(wafer_t* w) {
  insert_opcode(w, WEFT_OPCODE_STEPS);
}
static void end_without_steps(wafer_t* w) {
  insert_opcode(w, WEFT_OPCODE_END_STEPS);
}
static void bad_opcode(wafer_t* w) {
  *word_at(w, 1, 0, 0) = 0xff;
}
static void tensor_range(wafer_t* w) {
  *word_at(w, 2, 2, 2) = 4;
}
static void tensor_below(wafer_t* w) {
  *word_at(w, 2, 2, 6) = (uint32_t)-4;
} // the destination's stride
static void too_many_points(wafer_t* w) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_ADD, .loop_count = 2};
  i.loop[0].extent = i.loop[1].extent = INT32_MAX;
  insert_before_halt(w, 1, &i);
}
static void bits_of_floats(wafer_t* w) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_XOR};
  insert_before_halt(w, 1, &i);
}
static void send_range(wafer_t* w) {
  *word_at(w, 2, 3, 5) = 5;
} // extent
static void send_without_route(wafer_t* w) {
  *word_at(w, 2, 3, 2) = 9;
}
static void recv_range(wafer_t* w) {
  *word_at(w, 1, 0, 3) = 4;
}
static void recv_without_route(wafer_t* w) {
  *word_at(w, 1, 0, 2) = 1;
}
static void recv_type(wafer_t* w) {
  *word_at(w, 1, 0, 0) |= WEFT_DTYPE_I32 << 16;
}
static void recv_stride(wafer_t* w) {
  *word_at(w, 1, 0, 20) = 0x7fffffff;
}
static void chain_range(wafer_t* w) {
  *word_at(w, 1, 2, 4) = 8;
}
static void chain_without_route(wafer_t* w) {
  *word_at(w, 1, 2, 3) = 9;
}
static void repeat_in_tile(wafer_t* w) {
  *word_at(w, 1, 0, 0) |= (uint32_t)WEFT_ISA_FLAG_REPEAT << 24;
  *word_at(w, 1, 0, 4) = 4;
}
static void ring_range(wafer_t* w) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR,
                          .op = WEFT_OP_NEG,
                          .flags = WEFT_ISA_FLAG_RING,
                          .base = {0, 8},
                          .ring = {{4, 4}, {4, 3}}};
  insert_before_halt(w, 1, &i);
}
static void ring_below(wafer_t* w) {
  weft_instruction_t i = {
      .opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_NEG, .flags = WEFT_ISA_FLAG_RING, .ring = {{-4, 2}, {0, 1}}};
  insert_before_halt(w, 1, &i);
}
static void recv_ring_range(wafer_t* w) {
  weft_instruction_t i = wafer_recv_of(WEFT_DTYPE_F32, 0, 0, 4, 0, 4);
  i.flags = WEFT_ISA_FLAG_RING;
  i.ring[0] = (weft_isa_ring_t){4, 2};
  insert_before_halt(w, 1, &i);
}
static void host_ring(wafer_t* w) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR,
                          .op = WEFT_OP_NEG,
                          .flags = WEFT_ISA_FLAG_RING,
                          .base = {64, 64},
                          .ring = {{0, 1}, {0, 1}}};
  insert_before_halt(w, 3, &i);
}
static void again(wafer_t* w, size_t tile, int32_t colour) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_AGAIN, .colour = colour};
  insert_before_halt(w, tile, &i);
}
static void again_without_recv(wafer_t* w) {
  again(w, 1, 3);
}
static void again_in_host(wafer_t* w) {
  again(w, 3, 1);
}

static void host_address(wafer_t* w) {
  *word_at(w, 3, 0, 3) = 8;
}
static void host_range(wafer_t* w) {
  *word_at(w, 3, 1, 3) += 4;
}
static void host_step_stride(wafer_t* w) {
  *word_at(w, 3, 0, 4) = 8;
}
static void host_chain(wafer_t* w) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_CHAIN, .out_colour = -1, .op = WEFT_OP_ADD};
  insert_before_halt(w, 3, &i);
}

static void tile_dead(wafer_t* w) {
  w->tiles.data[0].record.tile = 1;
}
static void tile_off_mesh(wafer_t* w) {
  w->tiles.data[2].record.tile = 6;
}
static void tile_order(wafer_t* w) {
  w->tiles.data[1].record.tile = 3;
}
static void host_first(wafer_t* w) {
  w->tiles.data[2].record.tile = WEFT_HOST_TILE;
}
static void tile_memory(wafer_t* w) {
  w->tiles.data[1].record.memory_bytes = 49153;
}
static void tile_kernel(wafer_t* w) {
  w->tiles.data[1].record.kernel = 1;
}
static void segment_memory(wafer_t* w) {
  w->tiles.data[0].segments.data[0].address = 4;
}
static void segment_constants(wafer_t* w) {
  w->tiles.data[0].segments.data[0].offset = UINT64_MAX;
}
static void segment_size(wafer_t* w) {
  w->tiles.data[0].segments.data[0].size = UINT32_MAX;
}
static void io_type(wafer_t* w) {
  w->io.data[0].dtype = 99;
}
static void io_rank(wafer_t* w) {
  w->io.data[0].rank = 9;
}
static void io_extent(wafer_t* w) {
  w->io.data[0].extent[0] = -1;
}
static void io_size(wafer_t* w) {
  w->io.data[0].extent[0] = 5;
}
static void io_overlap(wafer_t* w) {
  w->io.data[1].address -= 8;
}
static void io_address(wafer_t* w) {
  w->io.data[1].address = UINT64_MAX - 4;
}

static void image_machine(weft_image_t* image) {
  image->header.machine.bytes[3] ^= 1;
}
static void image_defects(weft_image_t* image) {
  image->header.defects.bytes[3] ^= 1;
}
static void image_size(weft_image_t* image) {
  ++image->header.height;
}
static void image_xml(weft_image_t* image) {
  image->machine_xml_size /= 2;
}
static void program_code(weft_image_t* image) {
  --image->code_count;
}
static void program_index(weft_image_t* image) {
  --image->programs_count;
}

static void malformed_images_are_refused(void** state) {
  (void)state;
  static const case_t CASES[] = {
      {"the tile is dead", dead_router, NULL},
      {"not on the 3x2 mesh", off_mesh_router, NULL},
      {"a router has 24 colours", colour_too_large, NULL},
      {"there twice", route_twice, NULL},
      {"0 inputs", no_input, NULL},
      {"input RAMP is there twice", input_twice, NULL},
      {"no output", no_output, NULL},
      {"a router doesn't have", wrong_output, NULL},
      {"no input direction 200", wrong_direction, NULL},
      {"tile (2,1) colour 3: output W dangles", dangling, NULL},
      {"tile (2,1) colour 7: output W dangles", unexpected, NULL},
      {"leaves the mesh", diagonal, NULL},
      {"dead link", dead_link, NULL},
      {"dead link", into_dead_tile, NULL},
      {"nobody feeds input N", unfed, NULL},
      {"nobody feeds input E", unfed_port, NULL},
      {"no host port takes it", no_port, NULL},
      {"reached twice", reached_twice, NULL},
      {"same port and colour", port_twice, NULL},
      {"forks before", fork_before_join, NULL},
      {"joins after", join_after_fork, NULL},
      {"loops", loop, NULL},
      {"loops", loop_from_source, NULL},
      {"forks before", loop_with_way_out, NULL},
      {"source 0: bytes 16..19, the tile has 16", ring_range, NULL},
      {"destination: bytes -4..-1", ring_below, NULL},
      {"memory: bytes 4..19, the tile has 16", recv_ring_range, NULL},
      {"no rings", host_ring, NULL},
      {"colour 3: no recv", again_without_recv, NULL},
      {"the host posts a receive once", again_in_host, NULL},
      {"port 1000", host_port, NULL},
      {"colour 24, a router has 24", host_colour, NULL},
      {"doesn't end with halt", no_halt, NULL},
      {"after the end", after_halt, NULL},
      {"a second body", two_bodies, NULL},
      {"in the body", halt_in_body, NULL},
      {"no body of steps is open", end_without_steps, NULL},
      {"tile (1,1) of sum, instruction 0 (?) at word 0", bad_opcode, NULL},
      {"destination: bytes 4..19, the tile has 16", tensor_range, NULL},
      {"destination: bytes -12..3", tensor_below, NULL},
      {"points", too_many_points, NULL},
      {"bits of a float", bits_of_floats, NULL},
      {"bytes 0..19, the tile has 16", send_range, NULL},
      {"colour 9: no route begins here", send_without_route, NULL},
      {"bytes 4..19", recv_range, NULL},
      {"colour 1: no route ends here", recv_without_route, NULL},
      {"another end of the stream has i32", recv_type, NULL},
      {"the tile has 16", recv_stride, NULL},
      {"bytes 8..23", chain_range, NULL},
      {"colour 9: no route begins here", chain_without_route, NULL},
      {"step stride 4", repeat_in_tile, NULL},
      {"belongs to no input or output", host_address, NULL},
      {"from 'x' on, which has 16", host_range, NULL},
      {"step stride 8", host_step_stride, NULL},
      {"no part of a chain", host_chain, NULL},
      {"is dead", tile_dead, NULL},
      {"index 6 is not on the 3x2 mesh", tile_off_mesh, NULL},
      {"isn't above the one before", tile_order, NULL},
      {"isn't the last", host_first, NULL},
      {"uses 49153 bytes", tile_memory, NULL},
      {"kernel 1 of 1", tile_kernel, NULL},
      {"don't fit", segment_memory, NULL},
      {"don't fit", segment_constants, NULL},
      {"don't fit", segment_size, NULL},
      {"type 99", io_type, NULL},
      {"rank 9", io_rank, NULL},
      {"extent -1", io_extent, NULL},
      {"5 elements, 16 bytes", io_size, NULL},
      {"isn't behind the one before", io_overlap, NULL},
      {"or beyond", io_address, NULL},
      {"the image's machine has digest", NULL, image_machine},
      {"the image's defect map has digest", NULL, image_defects},
      {"the image is for 3x3 tiles", NULL, image_size},
      {"the image's machine", NULL, image_xml},
      {"code or patches are out of range", NULL, program_code},
      {"program 3 of 3", NULL, program_index},
  };
  for (size_t c = 0; c < sizeof(CASES) / sizeof(CASES[0]); ++c) {
    wafer_t* w = small_network();
    if (CASES[c].wafer) CASES[c].wafer(w);
    wafer_image(w);
    if (CASES[c].image) CASES[c].image(&w->image);
    weft_sim_t* sim;
    assert_status(weft_sim_create(w->allocator, &w->image, &sim), INVALID_INPUT, CASES[c].text);
    assert_null(sim);
    wafer_destroy(w);
  }
}

// Any code, and any routes: a status, no crash, in bounded time.
static void arbitrary_words(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 77);
  int32_t loaded = 0, finished = 0;
  for (int32_t round = 0; round < 500; ++round) {
    wafer_t* w = small_network();
    wafer_image(w);
    int32_t changes = 1 + (int32_t)weft_rng_below(&rng, 3);
    for (int32_t i = 0; i < changes; ++i) {
      uint64_t where = weft_rng_below(&rng, 10);
      static const uint32_t VALUES[] = {0, 1, 2, 3, 4, 7, 16, 0x7fffffff, 0x80000000, 0xffffffff};
      uint32_t value = weft_rng_below(&rng, 3) ? VALUES[weft_rng_below(&rng, 10)] : (uint32_t)weft_rng_next(&rng);
      if (where < 6)
        w->code.data[weft_rng_below(&rng, w->code.count)] = value;
      else if (where < 8)
        ((uint8_t*)w->routes.data)[weft_rng_below(&rng, w->routes.count * sizeof(*w->routes.data))] = (uint8_t)value;
      else if (where < 9)
        ((uint32_t*)w->io.data)[weft_rng_below(&rng, w->io.count * sizeof(*w->io.data) / 4)] = value;
      else
        ((uint32_t*)
             w->tile_records.data)[weft_rng_below(&rng, w->tile_records.count * sizeof(*w->tile_records.data) / 4)] =
            value;
    }
    weft_control_t control = {.deadline = weft_control_now() + 0.5};
    float y[4];
    weft_sim_t* sim;
    double start = weft_control_now();
    if (weft_status_consume(weft_sim_create(w->allocator, &w->image, &sim))) {
      ++loaded;
      weft_sim_destroy(sim);
      finished += weft_status_consume(run_image(w->allocator, &w->image, &control, y));
    }
    assert_true(weft_control_now() - start < 10);
    wafer_destroy(w);
  }
  print_message("%d loaded, %d ran to the end\n", loaded, finished);
  assert_true(loaded > 50 && finished > 10 && loaded < 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_network_runs),
      cmocka_unit_test(fails_cleanly_without_memory),
      cmocka_unit_test(malformed_images_are_refused),
      cmocka_unit_test(arbitrary_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
