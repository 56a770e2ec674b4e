// A small network for tests of emission, split at random, with streams but routes only in name: every end has a colour
// of its own in its router and nothing lies between. It computes, from X [M, K]:
//   C = max(X W + 2 bias, -2)     kernel 0: contraction with a reduce chain when k is split; temporaries that may share
//   memory Y = max of C over 3 rows      kernel 1: windows, padding -inf Z = concat(constant, Y) + 1/3 kernel 2: mixed
//   pieces, temporaries of another type, a scalar in memory
// and gives Z transposed, and C.
#pragma once
#include <math.h>

#include "base/checked.h"
#include "base/rng.h"
#include "ir/fabric/streams.h"
#include "tests/backend/mesh.h"

typedef struct network_t {
  int32_t m, k, n, top; // top: rows of the constant part of Z
  weft_machine_t machine;
  weft_defects_t defects;
  weft_fabric_t fabric;
  float *w, *bias, *head;
} network_t;

enum { NET_X, NET_W, NET_BIAS, NET_HEAD, NET_C, NET_Y, NET_Z, NET_TENSORS };

static inline void* network_new(network_t* net, size_t count, size_t size) {
  void* result;
  mesh_ok(weft_arena_allocate(&net->fabric.arena, count, size, &result));
  return result;
}

static inline float* network_constant(network_t* net, weft_rng_t* rng, int64_t count) {
  float* data = network_new(net, (size_t)count, sizeof(float));
  for (int64_t i = 0; i < count; ++i) data[i] = (float)((int64_t)weft_rng_below(rng, 9) - 4);
  return data;
}

static inline void network_tensor(network_t* net, int32_t index, const char* name, weft_tensor_kind_e kind, int64_t a,
                                  int64_t b, const void* data) {
  net->fabric.tensor[index] =
      (weft_tensor_t){.name = name, .kind = kind, .dtype = WEFT_DTYPE_F32, .shape = {b ? 2 : 1, {a, b}}, .data = data};
}

// A buffer of f32 whose row r is iteration dimension dims[r], minus one where `window` is a dimension that is added to
// it.
static inline weft_buffer_t* network_buffer(weft_kernel_t* kernel, const char* name, weft_buffer_kind_e kind,
                                            int32_t d0, int32_t d1) {
  weft_buffer_t* b = &kernel->buffer[kernel->buffer_count++];
  *b = (weft_buffer_t){.name = name, .kind = kind, .dtype = WEFT_DTYPE_F32, .rank = d1 < 0 ? 1 : 2, .tensor = -1};
  b->row[0].coefficient[d0] = 1;
  if (d1 >= 0) b->row[1].coefficient[d1] = 1;
  return b;
}

static inline void network_piece(network_t* net, weft_buffer_t* buffer, int32_t tensor, const int64_t* low) {
  buffer->piece = buffer->piece ? buffer->piece : network_new(net, 2, sizeof(weft_piece_t));
  weft_piece_t* piece = &buffer->piece[buffer->piece_count++];
  piece->tensor = tensor;
  piece->view = weft_view_identity(&net->fabric.tensor[tensor].shape);
  for (int32_t d = 0; low && d < buffer->rank; ++d) piece->view.offset[d] = low[d];
}

static inline void network_result(network_t* net, int32_t kernel, weft_buffer_t* buffer, int32_t tensor) {
  buffer->tensor = tensor;
  net->fabric.tensor[tensor].kernel = kernel;
  net->fabric.tensor[tensor].buffer = (int32_t)(buffer - net->fabric.kernel[kernel].buffer);
}

static inline weft_operation_t* network_operation(weft_kernel_t* kernel, weft_op_e op, uint32_t loops, int32_t to,
                                                  int32_t a, int32_t b) {
  weft_operation_t* o = &kernel->operation[kernel->operation_count++];
  *o = (weft_operation_t){.op = op, .dtype = WEFT_DTYPE_F32, .loops = loops, .destination = to, .source = {a, b, -1}};
  return o;
}

static inline weft_kernel_t* network_kernel(network_t* net, int32_t index, const char* name, int64_t d0, int64_t d1,
                                            int64_t d2, weft_dim_kind_e kind2) {
  weft_kernel_t* kernel = &net->fabric.kernel[index];
  *kernel = (weft_kernel_t){.name = name, .nodes = name, .dim_count = d2 ? 3 : 2, .reduce_operation = -1, .chosen = 0};
  kernel->dim[0] = (weft_dim_t){d0, WEFT_DIM_PARALLEL};
  kernel->dim[1] = (weft_dim_t){d1, WEFT_DIM_PARALLEL};
  if (d2) kernel->dim[2] = (weft_dim_t){d2, kind2};
  kernel->buffer = network_new(net, 9, sizeof(*kernel->buffer));
  kernel->operation = network_new(net, 8, sizeof(*kernel->operation));
  return kernel;
}

static inline void network_contraction(network_t* net) {
  weft_kernel_t* kernel = network_kernel(net, 0, "contraction", net->m, net->n, net->k, WEFT_DIM_REDUCTION);
  network_piece(net, network_buffer(kernel, "x", WEFT_BUFFER_OPERAND, 0, 2), NET_X, NULL);
  network_piece(net, network_buffer(kernel, "w", WEFT_BUFFER_OPERAND, 2, 1), NET_W, NULL);
  network_piece(net, network_buffer(kernel, "bias", WEFT_BUFFER_OPERAND, 1, -1), NET_BIAS, NULL);
  enum { X_IN, W_IN, BIAS, DOUBLED, COPY, SUM, SHIFTED, DIFFERENCE, RESULT };
  network_buffer(kernel, "doubled", WEFT_BUFFER_TEMPORARY, 0, 2);
  network_buffer(kernel, "copy", WEFT_BUFFER_TEMPORARY, 0, 2);
  network_buffer(kernel, "sum", WEFT_BUFFER_TEMPORARY, 0, 1);
  network_buffer(kernel, "shifted", WEFT_BUFFER_TEMPORARY, 0, 1);
  network_buffer(kernel, "difference", WEFT_BUFFER_TEMPORARY, 0, 1);
  network_result(net, 0, network_buffer(kernel, "c", WEFT_BUFFER_RESULT, 0, 1), NET_C);
  const uint32_t mn = 3, mk = 5, mnk = 7;
  network_operation(kernel, WEFT_OP_ADD, mk, DOUBLED, X_IN, X_IN); // dead before the sum begins
  network_operation(kernel, WEFT_OP_MUL, mk, COPY, DOUBLED, -1)->immediate[1] = 0.5;
  network_operation(kernel, WEFT_OP_MOV, mn, SUM, -1, -1);
  network_operation(kernel, WEFT_OP_MLA, mnk, SUM, COPY, W_IN);
  kernel->reduce_operation = 3;
  kernel->combiner = WEFT_OP_ADD;
  network_operation(kernel, WEFT_OP_ADD, mn, SHIFTED, SUM, BIAS);
  network_operation(kernel, WEFT_OP_SUB, mn, DIFFERENCE, SUM, SHIFTED);
  network_operation(kernel, WEFT_OP_SUB, mn, RESULT, SHIFTED, DIFFERENCE);
  network_operation(kernel, WEFT_OP_MAX, mn, RESULT, RESULT, -1)->immediate[1] = -2;
}

static inline void network_window(network_t* net) {
  weft_kernel_t* kernel = network_kernel(net, 1, "window", net->m, net->n, 3, WEFT_DIM_INTERNAL);
  weft_buffer_t* c = network_buffer(kernel, "rows", WEFT_BUFFER_OPERAND, 0, 1);
  c->row[0].coefficient[2] = 1;
  c->row[0].offset = -1;
  c->has_fill = true;
  c->fill = -INFINITY;
  network_piece(net, c, NET_C, NULL);
  network_result(net, 1, network_buffer(kernel, "y", WEFT_BUFFER_RESULT, 0, 1), NET_Y);
  network_operation(kernel, WEFT_OP_MOV, 3, 1, -1, -1)->immediate[0] = -INFINITY;
  network_operation(kernel, WEFT_OP_MAX, 7, 1, 1, 0);
}

static inline void network_concat(network_t* net) {
  weft_kernel_t* kernel = network_kernel(net, 2, "concat", net->m + net->top, net->n, 0, 0);
  weft_buffer_t* rows = network_buffer(kernel, "rows", WEFT_BUFFER_OPERAND, 0, 1);
  network_piece(net, rows, NET_HEAD, NULL);
  network_piece(net, rows, NET_Y, (int64_t[]){net->top, 0});
  network_buffer(kernel, "wide", WEFT_BUFFER_TEMPORARY, 0, 1)->dtype = WEFT_DTYPE_F64;
  network_buffer(kernel, "more", WEFT_BUFFER_TEMPORARY, 0, 1)->dtype = WEFT_DTYPE_F64;
  network_result(net, 2, network_buffer(kernel, "z", WEFT_BUFFER_RESULT, 0, 1), NET_Z);
  network_operation(kernel, WEFT_OP_MOV, 3, 1, 0, -1);
  weft_operation_t* add = network_operation(kernel, WEFT_OP_ADD, 3, 2, 1, -1);
  add->dtype = WEFT_DTYPE_F64;
  add->immediate[1] = 1.0 / 3.0; // no f32 holds it
  network_operation(kernel, WEFT_OP_MOV, 3, 3, 2, -1)->dtype = WEFT_DTYPE_F64;
}

static inline void network_factor(weft_rng_t* rng, const weft_kernel_t* kernel, int32_t dim, int32_t most,
                                  weft_axis_factor_t* axis, int32_t* count) {
  int64_t extent = kernel->dim[dim].extent, parts = 1 + (int64_t)weft_rng_below(rng, (uint64_t)most);
  int64_t block = weft_ceil_div(extent, parts < extent ? parts : extent);
  parts = weft_ceil_div(extent, block);
  if (parts > 1) axis[(*count)++] = (weft_axis_factor_t){dim, (int32_t)parts};
}

static inline void network_split(network_t* net, weft_rng_t* rng, weft_kernel_t* kernel, int32_t* next_tile) {
  weft_alternative_t* a = kernel->alternative = network_new(net, 1, sizeof(*a));
  kernel->alternative_count = 1;
  bool turned = weft_rng_below(rng, 2);
  network_factor(rng, kernel, turned, 4, a->split.y, &a->split.y_count);
  network_factor(rng, kernel, !turned, 3, a->split.x, &a->split.x_count);
  if (kernel->reduce_operation >= 0 && weft_rng_below(rng, 4))
    network_factor(rng, kernel, 2, 3, a->split.x, &a->split.x_count);
  a->gy = weft_split_grid(a->split.y, a->split.y_count);
  a->gx = weft_split_grid(a->split.x, a->split.x_count);
  a->cycles = net->fabric.seed % 3 ? 1 : 1000; // a target for the grouping of streams: fine or coarse
  a->doubled = weft_rng_below(rng, 3);
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (kernel->buffer[b].kind == WEFT_BUFFER_OPERAND) kernel->buffer[b].spare = (int32_t)weft_rng_below(rng, 3);
  kernel->tile = network_new(net, (size_t)a->gy * (size_t)a->gx, sizeof(*kernel->tile));
  for (int32_t l = 0; l < a->gy * a->gx; ++l) kernel->tile[l] = (*next_tile)++;
  assert_true(*next_tile <= weft_machine_tiles(&net->machine));
  kernel->region = (weft_region_t){.width = net->machine.width, .height = net->machine.height};
}

static inline void network_end(network_t* net, weft_stream_t* s, int32_t* next, int32_t kernel, int32_t logical,
                               int32_t port, bool sink) {
  weft_direction_e direction = WEFT_DIRECTION_RAMP, other = sink ? WEFT_DIRECTION_W : WEFT_DIRECTION_E;
  int32_t tile = port < 0 ? net->fabric.kernel[kernel].tile[logical] : weft_machine_port(&net->machine, port).tile;
  if (port >= 0) direction = weft_machine_port(&net->machine, port).direction;
  weft_router_entry_t* entry = &s->entry[s->entry_count++];
  uint8_t colour = (uint8_t)next[tile]++;
  assert_true(colour < net->machine.colours);
  *entry = (weft_router_entry_t){.tile = tile, .colour = colour, .input_count = 1};
  entry->input[0] = (uint8_t)(sink ? other : direction);
  entry->outputs = (uint16_t)(1u << (sink ? direction : other));
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) entry->output_colour[d] = colour;
}

static inline void network_route(network_t* net) {
  int32_t* next = network_new(net, (size_t)weft_machine_tiles(&net->machine), sizeof(*next));
  for (int32_t i = 0; i < net->fabric.stream_count; ++i) {
    weft_stream_t* s = &net->fabric.stream[i];
    s->entry = network_new(net, (size_t)s->source_count + (size_t)s->sink_count, sizeof(*s->entry));
    s->source_port = s->source_kernel == WEFT_HOST_KERNEL ? i % weft_machine_port_count(&net->machine) : -1;
    s->sink_port = s->sink_kernel == WEFT_HOST_KERNEL ? i % weft_machine_port_count(&net->machine) : -1;
    for (int32_t e = 0; e < s->source_count; ++e)
      network_end(net, s, next, s->source_kernel, s->source[e].logical, s->source_port, false);
    for (int32_t e = 0; e < s->sink_count; ++e)
      network_end(net, s, next, s->sink_kernel, s->sink[e].logical, s->sink_port, true);
  }
}

static inline void network_create(uint64_t seed, network_t* net) {
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  *net = (network_t){.m = 1 + (int32_t)weft_rng_below(&rng, 11),
                     .k = 1 + (int32_t)weft_rng_below(&rng, 9),
                     .n = 1 + (int32_t)weft_rng_below(&rng, 7),
                     .top = 1 + (int32_t)weft_rng_below(&rng, 3)};
  mesh_ok(weft_machine_load(mesh_allocator(), "mesh:11x11", &net->machine));
  net->machine.colours = WEFT_MAX_COLOURS;
  mesh_ok(weft_defects_load(mesh_allocator(), NULL, &net->machine, &net->defects));
  weft_fabric_t* f = &net->fabric;
  weft_fabric_initialize(mesh_allocator(), f);
  f->model_name = "network";
  f->seed = seed;
  net->w = network_constant(net, &rng, (int64_t)net->k * net->n);
  net->bias = network_constant(net, &rng, net->n);
  net->head = network_constant(net, &rng, (int64_t)net->top * net->n);
  f->tensor_count = NET_TENSORS;
  f->tensor = network_new(net, NET_TENSORS, sizeof(*f->tensor));
  network_tensor(net, NET_X, "X", WEFT_TENSOR_INPUT, net->m, net->k, NULL);
  network_tensor(net, NET_W, "W", WEFT_TENSOR_CONSTANT, net->k, net->n, net->w);
  network_tensor(net, NET_BIAS, "bias", WEFT_TENSOR_CONSTANT, net->n, 0, net->bias);
  network_tensor(net, NET_HEAD, "head", WEFT_TENSOR_CONSTANT, net->top, net->n, net->head);
  network_tensor(net, NET_C, "C", WEFT_TENSOR_RESULT, net->m, net->n, NULL);
  network_tensor(net, NET_Y, "Y", WEFT_TENSOR_RESULT, net->m, net->n, NULL);
  network_tensor(net, NET_Z, "Z", WEFT_TENSOR_RESULT, net->m + net->top, net->n, NULL);
  f->kernel_count = 3;
  f->kernel = network_new(net, 3, sizeof(*f->kernel));
  network_contraction(net);
  network_window(net);
  network_concat(net);
  f->input_count = 1;
  f->input = network_new(net, 1, sizeof(*f->input));
  f->output_count = 2;
  f->output = network_new(net, 2, sizeof(*f->output));
  for (int32_t o = 0; o < 2; ++o) {
    weft_output_t* output = &f->output[o];
    int32_t tensor = o ? NET_C : NET_Z;
    output->name = o ? "raw" : "turned";
    output->shape = f->tensor[tensor].shape;
    output->piece_count = 1;
    output->piece = network_new(net, 1, sizeof(*output->piece));
    output->piece->tensor = tensor;
    output->piece->view = weft_view_identity(&output->shape);
  }
  assert_true(weft_view_transpose(&f->output[0].piece->view, &f->output[0].shape, (int32_t[]){1, 0}));
  int32_t next_tile = (int32_t)weft_rng_below(&rng, 20);
  for (int32_t k = 0; k < 3; ++k) network_split(net, &rng, &f->kernel[k], &next_tile);
  mesh_ok(weft_streams_build(f, &net->machine, 1));
  network_route(net);
  f->stage = WEFT_STAGE_ROUTED;
  mesh_ok(weft_machine_digest(&net->machine, &f->machine_digest));
  f->defects_digest = weft_defects_digest(&net->defects);
}

static inline void network_destroy(network_t* net) {
  weft_defects_deinitialize(&net->defects);
  weft_fabric_deinitialize(&net->fabric);
}

// What the outputs have to be for an input.
static inline void network_reference(const network_t* net, const float* x, float* turned, float* raw) {
  int32_t rows = net->m + net->top;
  for (int32_t i = 0; i < net->m; ++i)
    for (int32_t j = 0; j < net->n; ++j) {
      float sum = 0;
      for (int32_t k = 0; k < net->k; ++k) sum += x[i * net->k + k] * net->w[k * net->n + j];
      sum += 2 * net->bias[j];
      raw[i * net->n + j] = sum > -2 ? sum : -2;
    }
  for (int32_t i = 0; i < rows; ++i)
    for (int32_t j = 0; j < net->n; ++j) {
      float value = i < net->top ? net->head[i * net->n + j] : -INFINITY;
      for (int32_t r = -1; r <= 1 && i >= net->top; ++r) {
        int32_t row = i - net->top + r;
        if (row >= 0 && row < net->m && raw[row * net->n + j] > value) value = raw[row * net->n + j];
      }
      turned[j * rows + i] = (float)((double)value + 1.0 / 3.0);
    }
}
