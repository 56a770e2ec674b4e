// A small legal fabric, made by hand, routed on a mesh of 6x5 tiles: the tests of text form, verifier and checker start
// from it.
//
//   y[i, j] = 2 * x[i, j] + c[j]   kernel "scale", 2x3 tiles at (0, 1)
//   z[i]    = sum over j of y      kernel "sum", 2x3 tiles at (3, 1), reduce chains along x
//
//   . . . . . .
//   A A A B B B   x enters at the west of row 1, z leaves at the east of row 2
//   A A A B B B
#pragma once
#include <stdlib.h>
#include <string.h>

#include "ir/fabric/fabric.h"

enum {
  SAMPLE_ROWS = 4,
  SAMPLE_COLUMNS = 6,
  SAMPLE_WIDTH = 6,
  SAMPLE_TILES = 6,
  SAMPLE_PORT_IN = 18,
  SAMPLE_PORT_OUT = 8
};
enum { SAMPLE_X_TO_SCALE, SAMPLE_Y_TO_SUM, SAMPLE_Z_TO_HOST, SAMPLE_CHAIN_0, SAMPLE_STREAMS = 7 };

static inline void sample_must(weft_status_t status) {
  if (!weft_status_consume(status)) abort();
}

static inline void* sample_new(weft_fabric_t* fabric, size_t count, size_t size) {
  void* pointer = NULL;
  sample_must(weft_arena_allocate(&fabric->arena, count, size, &pointer));
  return pointer;
}
#define SAMPLE_NEW(fabric, count, type) ((type*)sample_new((fabric), (count), sizeof(type)))

static inline int32_t sample_tile(int32_t x, int32_t y) {
  return y * SAMPLE_WIDTH + x;
}

// One router on the way of a stream: wavelets come from the one before; then, at a source, from the ramp.
typedef struct sample_step_t {
  int32_t x, y, colour;
  bool source, sink;
} sample_step_t;

static inline int32_t sample_direction(int32_t dx, int32_t dy) {
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
    if (d != WEFT_DIRECTION_RAMP && weft_direction_dx[d] == dx && weft_direction_dy[d] == dy) return d;
  abort();
}

// in, out: directions by which a host stream enters the first router and leaves the last one, or -1.
static inline void sample_route(weft_fabric_t* fabric, weft_stream_t* stream, const sample_step_t* step, int32_t count,
                                int32_t in, int32_t out) {
  stream->source_port = in >= 0 ? SAMPLE_PORT_IN : -1;
  stream->sink_port = out >= 0 ? SAMPLE_PORT_OUT : -1;
  stream->entry_count = count;
  stream->entry = SAMPLE_NEW(fabric, (size_t)count, weft_router_entry_t);
  for (int32_t i = 0; i < count; ++i) {
    weft_router_entry_t* entry = &stream->entry[i];
    entry->tile = sample_tile(step[i].x, step[i].y);
    entry->colour = (uint8_t)step[i].colour;
    int32_t from = i ? sample_direction(step[i - 1].x - step[i].x, step[i - 1].y - step[i].y) : in;
    int32_t to = i + 1 < count ? sample_direction(step[i + 1].x - step[i].x, step[i + 1].y - step[i].y) : out;
    if (from >= 0) entry->input[entry->input_count++] = (uint8_t)from;
    if (step[i].source) entry->input[entry->input_count++] = WEFT_DIRECTION_RAMP;
    if (to >= 0) {
      entry->outputs |= (uint16_t)(1u << to);
      entry->output_colour[to] = (uint8_t)step[i + (i + 1 < count)].colour;
    }
    if (step[i].sink) {
      entry->outputs |= 1u << WEFT_DIRECTION_RAMP;
      entry->output_colour[WEFT_DIRECTION_RAMP] = entry->colour;
    }
  }
}

static inline void sample_endpoints(weft_fabric_t* fabric, int32_t* out_count, weft_endpoint_t** out_endpoints,
                                    int32_t count, const int32_t* logical, int64_t elements) {
  *out_count = count;
  *out_endpoints = SAMPLE_NEW(fabric, (size_t)count, weft_endpoint_t);
  for (int32_t i = 0; i < count; ++i)
    (*out_endpoints)[i] = (weft_endpoint_t){.logical = logical ? logical[i] : i, .elements = elements};
}

// The buffer's row r is dimension d.
static inline void sample_rows(weft_buffer_t* buffer, int32_t rank, int32_t d0, int32_t d1) {
  buffer->rank = rank;
  if (rank > 0) buffer->row[0].coefficient[d0] = 1;
  if (rank > 1) buffer->row[1].coefficient[d1] = 1;
}

static inline weft_view_t sample_view(int32_t rank, int64_t e0, int64_t e1) {
  weft_view_t view = {.factor_count = rank, .rank = rank};
  view.factor[0] = (weft_view_factor_t){.extent = e0, .hi = e0, .dim = 0, .step = 1};
  if (rank > 1) view.factor[1] = (weft_view_factor_t){.extent = e1, .hi = e1, .dim = 1, .step = 1};
  return view;
}

static inline void sample_operand(weft_fabric_t* fabric, weft_buffer_t* buffer, const char* name, int32_t tensor,
                                  weft_view_t view) {
  buffer->name = name;
  buffer->kind = WEFT_BUFFER_OPERAND;
  buffer->tensor = -1;
  buffer->piece_count = 1;
  buffer->piece = SAMPLE_NEW(fabric, 1, weft_piece_t);
  buffer->piece[0] = (weft_piece_t){.tensor = tensor, .view = view};
}

static inline void sample_place(weft_fabric_t* fabric, weft_kernel_t* kernel, int32_t x, int32_t y) {
  kernel->alternative_count = 1;
  kernel->alternative = SAMPLE_NEW(fabric, 1, weft_alternative_t);
  kernel->alternative[0] = (weft_alternative_t){.split = {.y_count = 1, .x_count = 1, .y = {{0, 2}}, .x = {{1, 3}}},
                                                .gy = 2,
                                                .gx = 3,
                                                .cycles = 20,
                                                .stream_cycles = 24,
                                                .doubled = x > 0,
                                                .step_cycles = 31,
                                                .bytes = 512};
  kernel->chosen = 0;
  kernel->region = (weft_region_t){.x = x, .y = y, .width = 3, .height = 2};
  kernel->tile = SAMPLE_NEW(fabric, SAMPLE_TILES, int32_t);
  for (int32_t i = 0; i < SAMPLE_TILES; ++i) kernel->tile[i] = sample_tile(x + i % 3, y + i / 3);
}

static inline weft_kernel_t* sample_kernel(weft_fabric_t* fabric, int32_t index, const char* name,
                                           weft_dim_kind_e second_kind, int32_t buffers, int32_t operations) {
  weft_kernel_t* kernel = &fabric->kernel[index];
  kernel->name = kernel->nodes = name;
  kernel->dim_count = 2;
  kernel->dim[0] = (weft_dim_t){SAMPLE_ROWS, WEFT_DIM_PARALLEL};
  kernel->dim[1] = (weft_dim_t){SAMPLE_COLUMNS, second_kind};
  kernel->buffer_count = buffers;
  kernel->buffer = SAMPLE_NEW(fabric, (size_t)buffers, weft_buffer_t);
  kernel->operation_count = operations;
  kernel->operation = SAMPLE_NEW(fabric, (size_t)operations, weft_operation_t);
  kernel->reduce_operation = -1;
  sample_place(fabric, kernel, 3 * index, 1);
  return kernel;
}

static inline void sample_tensors(weft_fabric_t* fabric) {
  static const float bias[SAMPLE_COLUMNS] = {0.5f, -1.f, 2.f, 3.25f, -0.f, 1e-3f};
  fabric->tensor_count = 4;
  fabric->tensor = SAMPLE_NEW(fabric, 4, weft_tensor_t);
  weft_shape_t matrix = {.rank = 2, .extent = {SAMPLE_ROWS, SAMPLE_COLUMNS}};
  fabric->tensor[0] =
      (weft_tensor_t){.name = "x", .kind = WEFT_TENSOR_INPUT, .shape = matrix, .kernel = -1, .buffer = -1};
  fabric->tensor[1] = (weft_tensor_t){.name = "c",
                                      .kind = WEFT_TENSOR_CONSTANT,
                                      .shape = {.rank = 1, .extent = {SAMPLE_COLUMNS}},
                                      .kernel = -1,
                                      .buffer = -1,
                                      .data = (const uint8_t*)bias};
  fabric->tensor[2] =
      (weft_tensor_t){.name = "y", .kind = WEFT_TENSOR_RESULT, .shape = matrix, .kernel = 0, .buffer = 2};
  fabric->tensor[3] = (weft_tensor_t){
      .name = "z", .kind = WEFT_TENSOR_RESULT, .shape = {.rank = 1, .extent = {SAMPLE_ROWS}}, .kernel = 1, .buffer = 1};
  fabric->input_count = 1;
  fabric->input = SAMPLE_NEW(fabric, 1, int32_t);
}

static inline void sample_kernels(weft_fabric_t* fabric) {
  fabric->kernel_count = 2;
  fabric->kernel = SAMPLE_NEW(fabric, 2, weft_kernel_t);
  weft_kernel_t* scale = sample_kernel(fabric, 0, "scale", WEFT_DIM_PARALLEL, 3, 2);
  sample_rows(&scale->buffer[0], 2, 0, 1);
  sample_operand(fabric, &scale->buffer[0], "x", 0, sample_view(2, SAMPLE_ROWS, SAMPLE_COLUMNS));
  sample_rows(&scale->buffer[1], 1, 1, 0);
  sample_operand(fabric, &scale->buffer[1], "c", 1, sample_view(1, SAMPLE_COLUMNS, 0));
  scale->buffer[2] = (weft_buffer_t){.name = "y", .kind = WEFT_BUFFER_RESULT, .tensor = 2};
  sample_rows(&scale->buffer[2], 2, 0, 1);
  scale->operation[0] = (weft_operation_t){
      .op = WEFT_OP_MUL, .loops = 3, .destination = 2, .source = {0, -1, -1}, .immediate = {0, 2.0, 0}};
  scale->operation[1] = (weft_operation_t){.op = WEFT_OP_ADD, .loops = 3, .destination = 2, .source = {2, 1, -1}};

  weft_kernel_t* sum = sample_kernel(fabric, 1, "sum", WEFT_DIM_REDUCTION, 2, 1);
  sample_rows(&sum->buffer[0], 2, 0, 1);
  sample_operand(fabric, &sum->buffer[0], "y", 2, sample_view(2, SAMPLE_ROWS, SAMPLE_COLUMNS));
  sum->buffer[0].spare = 3;
  sum->buffer[1] = (weft_buffer_t){.name = "z", .kind = WEFT_BUFFER_RESULT, .tensor = 3};
  sample_rows(&sum->buffer[1], 1, 0, 0);
  sum->operation[0] = (weft_operation_t){.op = WEFT_OP_ADD, .loops = 3, .destination = 1, .source = {1, 0, -1}};
  sum->reduce_operation = 0;
  sum->combiner = WEFT_OP_ADD;

  fabric->output_count = 1;
  fabric->output = SAMPLE_NEW(fabric, 1, weft_output_t);
  fabric->output[0] = (weft_output_t){.name = "z", .shape = fabric->tensor[3].shape, .piece_count = 1};
  fabric->output[0].piece = SAMPLE_NEW(fabric, 1, weft_piece_t);
  fabric->output[0].piece[0] = (weft_piece_t){.tensor = 3, .view = sample_view(1, SAMPLE_ROWS, 0)};
}

static inline void sample_data_stream(weft_stream_t* stream, int32_t tensor, int32_t source, int32_t sink) {
  stream->kind = WEFT_STREAM_DATA;
  stream->tensor = tensor;
  stream->source_kernel = source;
  stream->sink_kernel = sink;
}

static inline void sample_chain(weft_fabric_t* fabric, weft_stream_t* stream, int32_t y, int32_t hop) {
  int32_t from = y * 3 + hop, to = from + 1;
  stream->kind = WEFT_STREAM_CHAIN;
  stream->tensor = stream->sink_buffer = stream->sink_piece = -1;
  stream->source_kernel = stream->sink_kernel = 1;
  sample_endpoints(fabric, &stream->source_count, &stream->source, 1, &from, 2);
  sample_endpoints(fabric, &stream->sink_count, &stream->sink, 1, &to, 2);
  stream->elements = stream->wavelets = 2;
  sample_step_t step[2] = {{3 + hop, 1 + y, 3 + hop, true, false}, {4 + hop, 1 + y, 3 + hop, false, true}};
  sample_route(fabric, stream, step, 2, -1, -1);
}

static inline void sample_streams(weft_fabric_t* fabric) {
  fabric->stream_count = SAMPLE_STREAMS;
  fabric->stream = SAMPLE_NEW(fabric, SAMPLE_STREAMS, weft_stream_t);
  weft_stream_t* x = &fabric->stream[SAMPLE_X_TO_SCALE];
  sample_data_stream(x, 0, WEFT_HOST_KERNEL, 0);
  x->walk = (weft_walk_t){.level_count = 2,
                          .level = {{SAMPLE_ROWS, 0, 1}, {SAMPLE_COLUMNS, 1, 1}},
                          .box = {.rank = 2, .hi = {SAMPLE_ROWS, SAMPLE_COLUMNS}}};
  sample_endpoints(fabric, &x->source_count, &x->source, 1, NULL, 24);
  sample_endpoints(fabric, &x->sink_count, &x->sink, SAMPLE_TILES, NULL, 4);
  x->elements = x->wavelets = 24;
  sample_step_t in[] = {{0, 1, 0, false, true}, {1, 1, 0, false, true}, {2, 1, 0, false, true},
                        {2, 2, 0, false, true}, {1, 2, 0, false, true}, {0, 2, 0, false, true}};
  sample_route(fabric, x, in, 6, WEFT_DIRECTION_W, -1);

  weft_stream_t* y = &fabric->stream[SAMPLE_Y_TO_SUM];
  sample_data_stream(y, 2, 0, 1);
  y->walk = (weft_walk_t){.level_count = 4,
                          .source_levels = 2,
                          .level = {{2, 0, 2}, {3, 1, 2}, {2, 0, 1}, {2, 1, 1}},
                          .box = {.rank = 2, .hi = {SAMPLE_ROWS, SAMPLE_COLUMNS}}};
  sample_endpoints(fabric, &y->source_count, &y->source, SAMPLE_TILES, NULL, 4);
  sample_endpoints(fabric, &y->sink_count, &y->sink, SAMPLE_TILES, NULL, 4);
  y->elements = y->wavelets = 24;
  // Row 2 is passed westwards first, so that its tiles append in order on the way back.
  sample_step_t gather[] = {{0, 1, 1, true, false},  {1, 1, 1, true, false},  {2, 1, 1, true, false},
                            {2, 2, 1, false, false}, {1, 2, 1, false, false}, {0, 2, 1, true, false},
                            {1, 2, 2, true, false},  {2, 2, 2, true, false},  {3, 2, 1, false, true},
                            {4, 2, 1, false, true},  {5, 2, 1, false, true},  {5, 1, 1, false, true},
                            {4, 1, 1, false, true},  {3, 1, 1, false, true}};
  sample_route(fabric, y, gather, 14, -1, -1);

  weft_stream_t* z = &fabric->stream[SAMPLE_Z_TO_HOST];
  int32_t owners[] = {2, 5};
  sample_data_stream(z, 3, 1, WEFT_HOST_KERNEL);
  z->walk = (weft_walk_t){
      .level_count = 2, .source_levels = 1, .level = {{2, 0, 2}, {2, 0, 1}}, .box = {.rank = 1, .hi = {SAMPLE_ROWS}}};
  sample_endpoints(fabric, &z->source_count, &z->source, 2, owners, 2);
  sample_endpoints(fabric, &z->sink_count, &z->sink, 1, NULL, 4);
  z->elements = z->wavelets = 4;
  sample_step_t out[] = {{5, 1, 2, true, false}, {5, 2, 2, true, false}};
  sample_route(fabric, z, out, 2, -1, WEFT_DIRECTION_E);

  for (int32_t i = 0; i < 4; ++i) sample_chain(fabric, &fabric->stream[SAMPLE_CHAIN_0 + i], i / 2, i % 2);
}

// ROUTED; earlier stages are the same with another `stage`, see sample_stage.
static inline void sample_fabric(weft_fabric_t* out_fabric) {
  weft_fabric_initialize(weft_allocator_system(), out_fabric);
  out_fabric->stage = WEFT_STAGE_ROUTED;
  out_fabric->model_name = "sample";
  out_fabric->seed = 7;
  sample_tensors(out_fabric);
  sample_kernels(out_fabric);
  sample_streams(out_fabric);
}

// Goes back to an earlier stage.
static inline void sample_stage(weft_fabric_t* fabric, weft_stage_e stage) {
  fabric->stage = stage;
  if (stage == WEFT_STAGE_KERNELS) fabric->stream_count = 0;
}
