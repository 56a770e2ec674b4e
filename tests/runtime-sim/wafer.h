// Images made by hand for the tests of the simulator: tiles with their programs, routes, inputs and outputs.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "runtime-sim/sim.h"

typedef struct wafer_tile_t {
  weft_image_tile_t record;
  WEFT_ARRAY(uint32_t) code;
  WEFT_ARRAY(weft_image_segment_t) segments;
} wafer_tile_t;

typedef struct wafer_t {
  weft_allocator_t allocator;
  weft_machine_t machine;
  weft_defects_t defects;
  weft_text_t machine_xml, defects_text;
  WEFT_ARRAY(wafer_tile_t) tiles;
  WEFT_ARRAY(weft_image_tile_t) tile_records;
  WEFT_ARRAY(weft_image_program_t) programs;
  WEFT_ARRAY(uint32_t) code;
  WEFT_ARRAY(weft_image_segment_t) segments;
  WEFT_ARRAY(uint8_t) consts;
  WEFT_ARRAY(weft_image_route_t) routes;
  WEFT_ARRAY(weft_image_host_colour_t) host_colours;
  WEFT_ARRAY(weft_image_kernel_t) kernels;
  WEFT_ARRAY(weft_image_io_t) io;
  WEFT_ARRAY(char) strings;
  int32_t current; // tile that instructions go to
  weft_image_t image;
} wafer_t;

#define assert_status_ok(expression)                                                                                   \
  do {                                                                                                                 \
    weft_status_t status_ = (expression);                                                                              \
    if (status_) fail_msg("%s", weft_status_message(status_));                                                         \
  } while (0)
// The code, and that the message contains the text.
#define assert_status(expression, expected, text)                                                                      \
  do {                                                                                                                 \
    weft_status_t status_ = (expression);                                                                              \
    if (weft_status_code(status_) != WEFT_STATUS_##expected || !strstr(weft_status_message(status_), (text)))          \
      fail_msg("got %d: %s", (int)weft_status_code(status_), weft_status_message(status_));                            \
    weft_status_free(status_);                                                                                         \
  } while (0)

static inline uint32_t wafer_string(wafer_t* w, const char* text) {
  uint32_t offset = (uint32_t)w->strings.count;
  for (const char* c = text;; ++c) {
    assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->strings, *c));
    if (!*c) return offset;
  }
}

static inline wafer_t* wafer_create(const char* machine) {
  wafer_t* w = calloc(1, sizeof(*w));
  w->allocator = weft_allocator_system();
  assert_status_ok(weft_machine_load(w->allocator, machine, &w->machine));
  assert_status_ok(weft_defects_create(w->allocator, &w->machine, &w->defects));
  weft_text_initialize(w->allocator, &w->machine_xml);
  weft_text_initialize(w->allocator, &w->defects_text);
  wafer_string(w, "");
  return w;
}

static inline void wafer_destroy(wafer_t* w) {
  for (size_t t = 0; t < w->tiles.count; ++t) {
    WEFT_ARRAY_FREE(w->allocator, &w->tiles.data[t].code);
    WEFT_ARRAY_FREE(w->allocator, &w->tiles.data[t].segments);
  }
  WEFT_ARRAY_FREE(w->allocator, &w->tiles);
  WEFT_ARRAY_FREE(w->allocator, &w->tile_records);
  WEFT_ARRAY_FREE(w->allocator, &w->programs);
  WEFT_ARRAY_FREE(w->allocator, &w->code);
  WEFT_ARRAY_FREE(w->allocator, &w->segments);
  WEFT_ARRAY_FREE(w->allocator, &w->consts);
  WEFT_ARRAY_FREE(w->allocator, &w->routes);
  WEFT_ARRAY_FREE(w->allocator, &w->host_colours);
  WEFT_ARRAY_FREE(w->allocator, &w->kernels);
  WEFT_ARRAY_FREE(w->allocator, &w->io);
  WEFT_ARRAY_FREE(w->allocator, &w->strings);
  weft_text_deinitialize(&w->machine_xml);
  weft_text_deinitialize(&w->defects_text);
  weft_defects_deinitialize(&w->defects);
  free(w);
}

static inline int32_t wafer_index(const wafer_t* w, int32_t x, int32_t y) {
  return y * w->machine.width + x;
}

static inline int32_t wafer_kernel(wafer_t* w, const char* name) {
  weft_image_kernel_t kernel = {.name = wafer_string(w, name)};
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->kernels, kernel));
  return (int32_t)w->kernels.count - 1;
}

// The following instructions are this tile's. Tiles come in ascending order, the host last.
static inline void wafer_tile_of(wafer_t* w, int32_t tile, int32_t kernel, uint32_t memory) {
  wafer_tile_t record = {.record = {.tile = tile, .kernel = kernel, .memory_bytes = memory}};
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->tiles, record));
  w->current = (int32_t)w->tiles.count - 1;
}
static inline void wafer_tile(wafer_t* w, int32_t x, int32_t y, uint32_t memory) {
  wafer_tile_of(w, wafer_index(w, x, y), -1, memory);
}
static inline void wafer_host(wafer_t* w) {
  wafer_tile_of(w, WEFT_HOST_TILE, -1, 0);
}

static inline void wafer_emit(wafer_t* w, const weft_instruction_t* instruction) {
  wafer_tile_t* tile = &w->tiles.data[w->current];
  uint32_t words[256];
  size_t count = 0;
  assert_status_ok(weft_isa_encode(instruction, words, 256, &count));
  for (size_t i = 0; i < count; ++i) assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &tile->code, words[i]));
}
static inline void wafer_simple(wafer_t* w, weft_opcode_e opcode, int32_t colour) {
  weft_instruction_t i = {.opcode = opcode, .colour = colour};
  wafer_emit(w, &i);
}
// A send of `count` packed elements.
static inline void wafer_send(wafer_t* w, weft_dtype_e dtype, int32_t colour, int32_t base, int32_t count) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_SEND,
                          .dtype = dtype,
                          .colour = colour,
                          .base = {base},
                          .loop_count = 1,
                          .loop = {{.extent = count, .stride = {(int32_t)weft_dtype_size(dtype)}}}};
  wafer_emit(w, &i);
}
// A receive of a one-dimensional stream of `total` elements that takes [lo, hi).
static inline weft_instruction_t wafer_recv_of(weft_dtype_e dtype, int32_t colour, int32_t base, int32_t total,
                                               int32_t lo, int32_t hi) {
  int32_t size = (int32_t)weft_dtype_size(dtype);
  return (weft_instruction_t){.opcode = WEFT_OPCODE_RECV,
                              .dtype = dtype,
                              .colour = colour,
                              .base = {base},
                              .level_count = 1,
                              .tensor_rank = 1,
                              .factor_count = 1,
                              .operand_rank = 1,
                              .level = {{.extent = total, .dim = 0, .step = 1}},
                              .tensor_dim = {{.lo = 0, .hi = total, .stride = 1}},
                              .factor = {{.extent = total, .lo = 0, .hi = total, .dim = 0, .step = 1}},
                              .operand_dim = {{.offset = 0, .lo = lo, .hi = hi, .stride = size}}};
}
static inline void wafer_recv(wafer_t* w, weft_dtype_e dtype, int32_t colour, int32_t base, int32_t total, int32_t lo,
                              int32_t hi) {
  weft_instruction_t i = wafer_recv_of(dtype, colour, base, total, lo, hi);
  wafer_emit(w, &i);
}
// dst[i] = op(dst[i], source) with an f32 immediate, over `count` f32 elements.
static inline void wafer_op_immediate(wafer_t* w, weft_op_e op, int32_t base, int32_t count, float value) {
  weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR,
                          .op = op,
                          .flags = WEFT_ISA_FLAG_IMMEDIATE1,
                          .base = {base, base},
                          .loop_count = 1,
                          .loop = {{.extent = count, .stride = {4, 4, 0}}}};
  memcpy(&i.base[2], &value, sizeof(value));
  wafer_emit(w, &i);
}

// Loads bytes into the current tile's memory.
static inline void wafer_load(wafer_t* w, uint32_t address, const void* data, uint32_t size) {
  weft_image_segment_t segment = {.address = address, .size = size, .offset = w->consts.count};
  for (uint32_t i = 0; i < size; ++i)
    assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->consts, ((const uint8_t*)data)[i]));
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->tiles.data[w->current].segments, segment));
}

// inputs: directions in the switch's order ('N', 'E', 'S', 'W', 'R'); outputs: the same letters, each followed by the
// colour in the next router as one digit, for example "E3R0".
static inline weft_direction_e wafer_direction(char letter) {
  return letter == 'N'   ? WEFT_DIRECTION_N
         : letter == 'E' ? WEFT_DIRECTION_E
         : letter == 'S' ? WEFT_DIRECTION_S
         : letter == 'W' ? WEFT_DIRECTION_W
                         : WEFT_DIRECTION_RAMP;
}
static inline void wafer_route(wafer_t* w, int32_t x, int32_t y, uint8_t colour, const char* inputs,
                               const char* outputs) {
  weft_image_route_t route = {.tile = wafer_index(w, x, y), .colour = colour};
  for (; *inputs; ++inputs) route.input[route.input_count++] = (uint8_t)wafer_direction(*inputs);
  for (; *outputs; outputs += 2) {
    weft_direction_e direction = wafer_direction(*outputs);
    route.outputs |= (uint16_t)(1u << direction);
    route.output_colour[direction] = (uint8_t)(outputs[1] - '0');
  }
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->routes, route));
}

// Adds a host colour; returns its index.
static inline int32_t wafer_host_colour(wafer_t* w, int32_t port, uint32_t colour) {
  weft_image_host_colour_t host = {.port = port, .colour = colour};
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->host_colours, host));
  return (int32_t)w->host_colours.count - 1;
}

static inline uint32_t wafer_io(wafer_t* w, const char* name, bool is_output, weft_dtype_e dtype, int64_t elements) {
  uint64_t address = 64;
  if (w->io.count) address = w->io.data[w->io.count - 1].address + w->io.data[w->io.count - 1].step_stride;
  weft_image_io_t io = {.name = wafer_string(w, name),
                        .is_output = is_output,
                        .dtype = dtype,
                        .rank = 1,
                        .extent = {elements},
                        .address = address,
                        .step_stride = ((uint64_t)elements * weft_dtype_size(dtype) + 7) / 8 * 8,
                        .colour = UINT32_MAX};
  assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->io, io));
  return (uint32_t)w->io.count - 1;
}

static inline int wafer_compare_routes(const void* a, const void* b) {
  const weft_image_route_t *p = a, *q = b;
  return p->tile != q->tile ? (p->tile > q->tile) - (p->tile < q->tile) : p->colour - q->colour;
}

// Everything into one image, which lives as long as the wafer.
static inline const weft_image_t* wafer_image(wafer_t* w) {
  weft_image_t* image = &w->image;
  assert_status_ok(weft_machine_print(&w->machine, &w->machine_xml));
  assert_status_ok(weft_defects_print(&w->defects, &w->defects_text));
  image->machine_xml = w->machine_xml.data;
  image->machine_xml_size = w->machine_xml.count;
  image->defects_text = w->defects_text.data ? w->defects_text.data : "";
  image->defects_text_size = w->defects_text.count;
  image->header =
      (weft_image_header_t){.version = WEFT_IMAGE_VERSION, .width = w->machine.width, .height = w->machine.height};
  assert_status_ok(weft_machine_digest(&w->machine, &image->header.machine));
  image->header.defects = weft_defects_digest(&w->defects);
  if (w->routes.count) qsort(w->routes.data, w->routes.count, sizeof(*w->routes.data), wafer_compare_routes);
  for (size_t t = 0; t < w->tiles.count; ++t) {
    wafer_tile_t* tile = &w->tiles.data[t];
    tile->record.program = (uint32_t)t;
    tile->record.segments = (uint32_t)w->segments.count;
    tile->record.segment_count = (uint32_t)tile->segments.count;
    weft_image_program_t program = {.code = (uint32_t)w->code.count, .code_words = (uint32_t)tile->code.count};
    for (size_t s = 0; s < tile->segments.count; ++s)
      assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->segments, tile->segments.data[s]));
    for (size_t c = 0; c < tile->code.count; ++c)
      assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->code, tile->code.data[c]));
    assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->programs, program));
    assert_status_ok(WEFT_ARRAY_PUSH(w->allocator, &w->tile_records, tile->record));
  }
#define TABLE(name, from) image->name = w->from.data, image->name##_count = w->from.count
  TABLE(tiles, tile_records);
  TABLE(programs, programs);
  TABLE(code, code);
  TABLE(segments, segments);
  TABLE(consts, consts);
  TABLE(routes, routes);
  TABLE(host_colours, host_colours);
  TABLE(kernels, kernels);
  TABLE(io, io);
  TABLE(strings, strings);
#undef TABLE
  return image;
}

// Index of the first port on this side of a tile.
static inline int32_t wafer_port_at(const wafer_t* w, int32_t x, int32_t y, weft_direction_e side) {
  for (int32_t p = 0; p < weft_machine_port_count(&w->machine); ++p) {
    weft_host_port_t port = weft_machine_port(&w->machine, p);
    if (port.tile == wafer_index(w, x, y) && port.direction == side) return p;
  }
  fail_msg("no port at (%d,%d)", x, y);
  return -1;
}
