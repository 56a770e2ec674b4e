// The image of the sample passes; each rule, broken one at a time in its tables or programs, is named.
#include "backend/backend.h"
#include "tests/check/checking.h"

typedef struct emitted_t {
  checking_t* checking;
  weft_arena_t arena;
  weft_image_t image;
} emitted_t;

static int setup(void** state) {
  emitted_t* t = calloc(1, sizeof(*t));
  if (!t || checking_setup((void**)&t->checking)) return 1;
  checking_t* c = t->checking;
  sample_must(weft_machine_digest(&c->machine, &c->fabric.machine_digest));
  c->fabric.defects_digest = weft_defects_digest(&c->defects);
  weft_arena_initialize(weft_allocator_system(), &t->arena);
  weft_status_t status = weft_backend_emit(&c->fabric, &c->machine, &c->defects, &t->arena, NULL, &t->image);
  if (status) print_error("%s\n", weft_status_message(status));
  *state = t;
  return weft_status_consume(status) ? 0 : 1;
}

static int teardown(void** state) {
  emitted_t* t = *state;
  weft_arena_deinitialize(&t->arena);
  checking_teardown((void**)&t->checking);
  free(t);
  return 0;
}

static weft_status_t check(const emitted_t* t) {
  return weft_check_image(weft_allocator_system(), &t->image);
}

// The tables are the test's own: it may write to them.
#define MUTABLE(t, table, type) ((type*)(uintptr_t)(t)->image.table)
#define BROKEN_IMAGE(t, place, value, part)                                                                            \
  do {                                                                                                                 \
    __auto_type kept_ = (place);                                                                                       \
    (place) = (value);                                                                                                 \
    expect_fault(check(t), (part));                                                                                    \
    (place) = kept_;                                                                                                   \
    expect_legal(check(t));                                                                                            \
  } while (0)

static weft_image_route_t* route_of(emitted_t* t, int32_t x, int32_t y, int32_t colour) {
  for (size_t i = 0; i < t->image.routes_count; ++i)
    if (t->image.routes[i].tile == sample_tile(x, y) && t->image.routes[i].colour == colour)
      return MUTABLE(t, routes, weft_image_route_t) + i;
  fail_msg("no route on (%d, %d), colour %d", x, y, colour);
  return NULL;
}

static weft_image_tile_t* tile_of(emitted_t* t, int32_t tile) {
  for (size_t i = 0; i < t->image.tiles_count; ++i)
    if (t->image.tiles[i].tile == tile) return MUTABLE(t, tiles, weft_image_tile_t) + i;
  fail_msg("no tile %d", tile);
  return NULL;
}

// Gives a tile a program of its own, without parameters, and its words.
static uint32_t* own_program(emitted_t* t, weft_image_tile_t* tile, size_t* out_count) {
  const weft_image_program_t* old = &t->image.programs[tile->program];
  size_t words = old->code_words, code = t->image.code_count, programs = t->image.programs_count;
  uint32_t* new_code = NULL;
  weft_image_program_t* new_programs = NULL;
  sample_must(WEFT_ARENA_NEW(&t->arena, code + words, &new_code));
  sample_must(WEFT_ARENA_NEW(&t->arena, programs + 1, &new_programs));
  memcpy(new_code, t->image.code, code * sizeof(*new_code));
  memcpy(new_programs, t->image.programs, programs * sizeof(*new_programs));
  weft_image_tile_program(&t->image, tile, new_code + code);
  new_programs[programs] = (weft_image_program_t){.code = (uint32_t)code, .code_words = (uint32_t)words};
  t->image.code = new_code;
  t->image.code_count = code + words;
  t->image.programs = new_programs;
  t->image.programs_count = programs + 1;
  tile->program = (uint32_t)programs;
  tile->params = 0;
  *out_count = words;
  return new_code + code;
}

// The n-th instruction with this opcode of a program.
static uint32_t* find_instruction(uint32_t* words, size_t count, weft_opcode_e opcode, int32_t n,
                                  weft_instruction_t* out_instruction) {
  for (size_t at = 0; at < count; at += (size_t)out_instruction->length) {
    expect_legal(weft_isa_decode(words + at, count - at, out_instruction));
    if (out_instruction->opcode == opcode && n-- == 0) return words + at;
  }
  fail_msg("no such instruction");
  return NULL;
}

static void write_instruction(uint32_t* at, const weft_instruction_t* instruction) {
  size_t count = 0;
  expect_legal(weft_isa_encode(instruction, at, (size_t)instruction->length, &count));
  assert_int_equal(count, instruction->length);
}

static void sample_image_is_legal(void** state) {
  emitted_t* t = *state;
  expect_legal(check(t));
}

static void header_and_host_colours(void** state) {
  emitted_t* t = *state;
  BROKEN_IMAGE(t, t->image.header.machine.bytes[0], 0xee, "the image is for machine ee");
  BROKEN_IMAGE(t, t->image.header.defects.bytes[31], (uint8_t)(t->image.header.defects.bytes[31] ^ 1),
               "for defect map");
  BROKEN_IMAGE(t, t->image.header.width, 7, "the image is for a mesh of 7x5, its machine has 6x5");
  BROKEN_IMAGE(t, MUTABLE(t, host_colours, weft_image_host_colour_t)[0].port, 22,
               "host colour 0: port 22, the machine has 22");
  BROKEN_IMAGE(t, MUTABLE(t, host_colours, weft_image_host_colour_t)[1].colour, 24,
               "host colour 1: colour 24, a router has 24");
}

static void tiles(void** state) {
  emitted_t* t = *state;
  weft_image_tile_t* tile = tile_of(t, sample_tile(1, 1));
  BROKEN_IMAGE(t, tile->tile, 30, "tile 30 is not on the mesh");
  BROKEN_IMAGE(t, tile->tile, sample_tile(2, 1), "does not come after tile (2, 1)");
  BROKEN_IMAGE(t, tile->memory_bytes, 49153, "tile (1, 1) uses 49153 bytes of its 49152");
  BROKEN_IMAGE(t, tile->memory_bytes, 8, "bytes of code in 8 of memory");
  BROKEN_IMAGE(t, tile->program, 1000, "has a program or segments that the image doesn't hold");
  BROKEN_IMAGE(t, tile->params, UINT32_MAX, "reaches beyond the image's tables");
  BROKEN_IMAGE(t, tile->logical, 0, "tile (1, 1) is not logical tile 0 of kernel 0, as it says");
  assert_true(tile->segment_count > 0);
  BROKEN_IMAGE(t, MUTABLE(t, segments, weft_image_segment_t)[tile->segments].address, 49152,
               "bytes to 49152, beyond its");
  BROKEN_IMAGE(t, t->image.tiles_count, t->image.tiles_count - 1, "expects wavelets from the host, which sends none");
}

static void dead_tiles(void** state) {
  emitted_t* t = *state;
  weft_text_t text;
  weft_defects_kill_tile(&t->checking->defects, sample_tile(4, 2));
  weft_text_initialize(weft_allocator_system(), &text);
  expect_legal(weft_defects_print(&t->checking->defects, &text));
  t->image.header.defects = weft_defects_digest(&t->checking->defects);
  t->image.defects_text = text.data;
  t->image.defects_text_size = text.count;
  expect_fault(check(t), "tile (4, 2) has a program, but is dead");
  expect_fault(check(t), "routes: passes tile (4, 2), which is dead");
  weft_text_deinitialize(&text);
}

static void routes(void** state) {
  emitted_t* t = *state;
  const uint16_t ramp = 1u << WEFT_DIRECTION_RAMP;
  weft_image_route_t* route = route_of(t, 1, 1, 1); // y, [W, RAMP] -> E
  BROKEN_IMAGE(t, route->colour, 30, "routes: colour 30 on tile (1, 1), a router has 24");
  BROKEN_IMAGE(t, route->colour, 64, "has colours, inputs or outputs that don't exist");
  BROKEN_IMAGE(t, route->output_colour[WEFT_DIRECTION_E], 7,
               "leads to colour 7 on tile (2, 1), which expects nothing from W");
  BROKEN_IMAGE(t, route->input_count, 1, "sends on colour 1, which has no route from its core");
  BROKEN_IMAGE(t, route->outputs, route->outputs | ramp,
               "colour 1 on tile (1, 1) leads to its core, which takes nothing");
  BROKEN_IMAGE(t, route->tile, sample_tile(1, 3), "routes:");
  route = route_of(t, 4, 2, 1); // multicast of y: [W] -> E, RAMP
  BROKEN_IMAGE(t, route->outputs, route->outputs & ~ramp, "takes on colour 1, which has no route to its core");
  BROKEN_IMAGE(t, route->outputs, ramp, "expects wavelets from W, where none come from");
  route = route_of(t, 2, 2, 1); // passes it westwards
  BROKEN_IMAGE(t, route->outputs, route->outputs | 1u << WEFT_DIRECTION_S, "which expects nothing from N");
  route = route_of(t, 0, 1, 0); // x enters
  BROKEN_IMAGE(t, MUTABLE(t, host_colours, weft_image_host_colour_t)[0].colour, 9,
               "host colour 0, "); // whichever end it is
  BROKEN_IMAGE(t, route->input[0], WEFT_DIRECTION_N, "colour 0 on tile (0, 1) expects wavelets from N");
}

static void loops(void** state) {
  emitted_t* t = *state;
  size_t count = t->image.routes_count;
  weft_image_route_t* routes = NULL;
  sample_must(WEFT_ARENA_NEW(&t->arena, count + 2, &routes));
  memcpy(routes, t->image.routes, count * sizeof(*routes));
  routes[count] = (weft_image_route_t){.tile = sample_tile(1, 4),
                                       .colour = 5,
                                       .input_count = 1,
                                       .input = {WEFT_DIRECTION_E},
                                       .outputs = 1u << WEFT_DIRECTION_E};
  routes[count + 1] = (weft_image_route_t){.tile = sample_tile(2, 4),
                                           .colour = 5,
                                           .input_count = 1,
                                           .input = {WEFT_DIRECTION_W},
                                           .outputs = 1u << WEFT_DIRECTION_W};
  routes[count].output_colour[WEFT_DIRECTION_E] = routes[count + 1].output_colour[WEFT_DIRECTION_W] = 5;
  t->image.routes = routes;
  t->image.routes_count += 2;
  expect_fault(check(t), "colour 5 on tile (2, 4) lies on a loop, or behind one");
}

static void sends_and_receives(void** state) {
  emitted_t* t = *state;
  weft_instruction_t instruction;
  size_t count;
  uint32_t* words = own_program(t, tile_of(t, sample_tile(1, 1)), &count);
  expect_legal(check(t));
  uint32_t* send = find_instruction(words, count, WEFT_OPCODE_SEND, 0, &instruction);
  weft_instruction_t changed = instruction;
  changed.loop[0].extent++;
  int64_t added = 1;
  for (int32_t i = 1; i < changed.loop_count; ++i) added *= changed.loop[i].extent;
  write_instruction(send, &changed);
  char expected[80];
  snprintf(expected, sizeof(expected), "brings %d elements to its core, which takes 24", (int)(24 + added));
  expect_fault(check(t), expected);
  changed = instruction;
  changed.dtype = WEFT_DTYPE_I32;
  write_instruction(send, &changed);
  expect_fault(check(t), "colour 1 on tile (1, 1) carries both");
  changed = instruction;
  changed.colour = 17;
  write_instruction(send, &changed);
  expect_fault(check(t), "sends on colour 17, which has no route from its core");
  expect_fault(check(t), "colour 1 on tile (1, 1) expects wavelets from its core, which sends none");
  write_instruction(send, &instruction);
  expect_legal(check(t));

  uint32_t* recv = find_instruction(words, count, WEFT_OPCODE_RECV, 0, &instruction);
  changed = instruction;
  changed.tensor_dim[0].hi = 3;
  write_instruction(recv, &changed);
  expect_fault(check(t), "colour 0 on tile (1, 1) brings 24 elements to its core, which takes 18");
  write_instruction(recv, &instruction);
  recv[0] |= 0xff;
  expect_fault(check(t), "tile (1, 1), word");
}

static void chains(void** state) {
  emitted_t* t = *state;
  weft_instruction_t instruction;
  size_t count;
  uint32_t* words = own_program(t, tile_of(t, sample_tile(4, 1)), &count);
  uint32_t* chain = find_instruction(words, count, WEFT_OPCODE_CHAIN, 0, &instruction);
  weft_instruction_t changed = instruction;
  changed.loop[0].extent = 1;
  write_instruction(chain, &changed);
  expect_fault(check(t), "colour 3 on tile (4, 1) brings 2 elements to its core, which takes 1");
  expect_fault(check(t), "colour 4 on tile (5, 1) brings 1 elements to its core, which takes 2");
  changed = instruction;
  changed.out_colour = -1;
  write_instruction(chain, &changed);
  expect_fault(check(t), "colour 4 on tile (4, 1) expects wavelets from its core, which sends none");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define IMAGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      IMAGE_TEST(sample_image_is_legal),
      IMAGE_TEST(header_and_host_colours),
      IMAGE_TEST(tiles),
      IMAGE_TEST(dead_tiles),
      IMAGE_TEST(routes),
      IMAGE_TEST(loops),
      IMAGE_TEST(sends_and_receives),
      IMAGE_TEST(chains),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
