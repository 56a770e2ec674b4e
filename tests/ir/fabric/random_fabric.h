// Small random fabrics for property tests: chains of kernels with windows, reductions, padding, concatenation, and
// operands that are reshaped, transposed and sliced on the way.
#pragma once
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "ir/fabric/streams.h"

// With cmocka.h included before.
#define assert_ok(expr)                                                                                                \
  do {                                                                                                                 \
    weft_status_t status_ = (expr);                                                                                    \
    if (status_) fail_msg("%s", weft_status_message(status_));                                                         \
  } while (0)

static inline int64_t draw(weft_rng_t* rng, int64_t lo, int64_t hi) { // both included
  return lo + (int64_t)weft_rng_below(rng, (uint64_t)(hi - lo + 1));
}

// The defaults of the presets, as far as the fabric looks at them.
static inline weft_machine_t small_machine(int32_t width, int32_t height) {
  weft_machine_t machine = {.name = "small",
                            .width = width,
                            .height = height,
                            .tile_memory = 48 * 1024,
                            .issue_cycles = 4,
                            .wavelet_bits = 32,
                            .hop_cycles = 1,
                            .ramp_cycles = 2,
                            .colours = 24,
                            .ports_per_side = {2, 2, 2, 2},
                            .host_rate = 1};
  for (int32_t c = 0; c < WEFT_OP_CLASS_COUNT; ++c)
    for (int32_t t = 0; t < WEFT_DTYPE_COUNT; ++t) machine.rate[c][t] = 1;
  return machine;
}

static inline void* fabric_new(weft_fabric_t* fabric, size_t count, size_t size) {
  void* memory = NULL;
  weft_status_t status = weft_arena_allocate(&fabric->arena, count, size, &memory);
  assert(weft_is_ok(status));
  (void)status;
  return memory;
}

// A view of the tensor, moved about some times, of the given rank.
static inline weft_view_t random_view(weft_rng_t* rng, const weft_shape_t* tensor, int32_t rank,
                                      weft_shape_t* out_shape) {
  for (;;) {
    weft_view_t view = weft_view_identity(tensor);
    weft_shape_t shape = *tensor;
    for (int32_t k = 0, moves = (int32_t)draw(rng, 0, 3); k <= moves; ++k) {
      int64_t start[WEFT_MAX_RANK] = {0}, size[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
      int32_t permutation[WEFT_MAX_RANK];
      weft_shape_t to = {.rank = k == moves ? rank : (int32_t)draw(rng, 1, 4)};
      int64_t rest = weft_shape_elements(&shape);
      for (int32_t d = 0; d < to.rank; ++d) to.extent[d] = 1;
      for (int64_t p = 2; rest > 1; ++p)
        for (; rest % p == 0; rest /= p) to.extent[weft_rng_below(rng, (uint64_t)to.rank)] *= p;
      if (k == moves || draw(rng, 0, 1)) weft_view_reshape(&view, &shape, &to);
      for (int32_t d = 0; d < shape.rank; ++d) {
        permutation[d] = (d + 1) % shape.rank;
        step[d] = draw(rng, 0, 5) ? 1 : -1;
        size[d] = draw(rng, 0, 3) || shape.extent[d] < 3 ? shape.extent[d] : shape.extent[d] - 1;
        start[d] = step[d] > 0 ? shape.extent[d] - size[d] : shape.extent[d] - 1;
        if (size[d] > 3 && draw(rng, 0, 5) == 0 && step[d] > 0) {
          step[d] = 2;
          size[d] = (size[d] + 1) / 2;
        }
      }
      if (draw(rng, 0, 2) == 0) weft_view_slice(&view, &shape, start, size, step);
      if (draw(rng, 0, 2) == 0) weft_view_transpose(&view, &shape, permutation);
    }
    if (shape.rank != rank) continue;
    *out_shape = shape;
    return view;
  }
}

static inline int32_t random_parts(weft_rng_t* rng, int64_t extent) {
  int64_t block = draw(rng, 1, extent);
  return (int32_t)weft_ceil_div(extent, block);
}

static inline weft_split_t random_split(weft_rng_t* rng, const weft_kernel_t* kernel) {
  weft_split_t split = {0};
  bool reduce_on_x = draw(rng, 0, 1);
  for (int32_t pass = 0; pass < 2; ++pass) { // reductions last
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      bool reduction = kernel->dim[d].kind == WEFT_DIM_REDUCTION;
      if (kernel->dim[d].kind == WEFT_DIM_INTERNAL || reduction != (pass == 1) || draw(rng, 0, 3) == 0) continue;
      bool on_x = reduction ? reduce_on_x : draw(rng, 0, 1);
      int32_t* count = on_x ? &split.x_count : &split.y_count;
      if (*count == WEFT_MAX_AXIS_FACTORS) continue;
      (on_x ? split.x : split.y)[(*count)++] = (weft_axis_factor_t){d, random_parts(rng, kernel->dim[d].extent)};
    }
  }
  return split;
}

static inline void random_operand(weft_rng_t* rng, weft_fabric_t* fabric, const weft_kernel_t* kernel, uint32_t dims,
                                  weft_buffer_t* buffer) {
  *buffer = (weft_buffer_t){.name = "operand", .kind = WEFT_BUFFER_OPERAND, .has_fill = true};
  buffer->rank = (int32_t)draw(rng, 1, 4);
  for (int32_t r = 0; r < buffer->rank; ++r) {
    buffer->row[r].offset = draw(rng, -1, 1);
    for (int32_t terms = (int32_t)draw(rng, 0, 2); terms > 0; --terms) {
      int32_t d = (int32_t)draw(rng, 0, kernel->dim_count - 1);
      if (dims >> d & 1) buffer->row[r].coefficient[d] = (int32_t)(draw(rng, 0, 6) ? draw(rng, 1, 2) : -1);
    }
  }
  buffer->piece_count = draw(rng, 0, 3) ? 1 : 2;
  buffer->piece = fabric_new(fabric, 2, sizeof(weft_piece_t));
  int64_t next = -2;
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    int32_t tensor = fabric->tensor_count - 1 - (int32_t)draw(rng, 0, weft_min_i64(1, fabric->tensor_count - 1));
    weft_shape_t shape;
    if (p > 0 && fabric->tensor[tensor].dtype != buffer->dtype) tensor = buffer->piece[0].tensor;
    buffer->dtype = fabric->tensor[tensor].dtype;
    buffer->piece[p].tensor = tensor;
    weft_view_t* view = &buffer->piece[p].view;
    *view = random_view(rng, &fabric->tensor[tensor].shape, buffer->rank, &shape);
    for (int32_t r = 1; r < buffer->rank; ++r) view->offset[r] += draw(rng, -2, 2);
    view->offset[0] += next; // the second piece lies behind the first
    next += shape.extent[0] + draw(rng, 0, 2);
  }
}

// Adds a kernel that computes something from earlier tensors, with one alternative, chosen.
static inline void random_kernel(weft_rng_t* rng, weft_fabric_t* fabric) {
  weft_kernel_t* kernel = &fabric->kernel[fabric->kernel_count];
  *kernel = (weft_kernel_t){.name = "kernel", .nodes = "node", .reduce_operation = -1, .combiner = WEFT_OP_ADD};
  int32_t parallel = (int32_t)draw(rng, 1, 3), reductions = (int32_t)draw(rng, 0, 2),
          internal = (int32_t)draw(rng, 0, 1);
  uint32_t all, kept = 0;
  for (int32_t d = 0; d < parallel + reductions + internal; ++d) {
    weft_dim_kind_e kind = d < parallel                ? WEFT_DIM_PARALLEL
                           : d < parallel + reductions ? WEFT_DIM_REDUCTION
                                                       : WEFT_DIM_INTERNAL;
    kernel->dim[kernel->dim_count++] = (weft_dim_t){draw(rng, 1, kind == WEFT_DIM_PARALLEL ? 7 : 4), kind};
    if (kind != WEFT_DIM_REDUCTION) kept |= 1u << d;
  }
  all = (1u << kernel->dim_count) - 1;

  kernel->buffer_count = 5; // 0, 1: operands before the reduction; 2: after it; 3: accumulator; 4: result
  kernel->buffer = fabric_new(fabric, 5, sizeof(weft_buffer_t));
  random_operand(rng, fabric, kernel, all, &kernel->buffer[0]);
  random_operand(rng, fabric, kernel, all, &kernel->buffer[1]);
  random_operand(rng, fabric, kernel, kept, &kernel->buffer[2]);
  weft_buffer_t* result = &kernel->buffer[4];
  *result = (weft_buffer_t){.name = "result", .kind = WEFT_BUFFER_RESULT, .dtype = WEFT_DTYPE_F32};
  weft_tensor_t* tensor = &fabric->tensor[fabric->tensor_count];
  *tensor = (weft_tensor_t){
      .name = "t", .kind = WEFT_TENSOR_RESULT, .dtype = draw(rng, 0, 1) ? WEFT_DTYPE_F32 : WEFT_DTYPE_F16};
  int32_t shift = (int32_t)draw(rng, 0, kernel->dim_count - 1);
  for (int32_t i = 0; i < kernel->dim_count; ++i) {
    int32_t d = (i + shift) % kernel->dim_count;
    if (!(kept >> d & 1)) continue;
    result->row[result->rank].coefficient[d] = 1;
    tensor->shape.extent[result->rank++] = kernel->dim[d].extent;
  }
  tensor->shape.rank = result->rank;
  tensor->kernel = fabric->kernel_count;
  tensor->buffer = 4;
  result->dtype = tensor->dtype;
  result->tensor = fabric->tensor_count;
  kernel->buffer[3] = *result;
  kernel->buffer[3].name = "accumulator";
  kernel->buffer[3].kind = WEFT_BUFFER_TEMPORARY;

  kernel->operation_count = 2;
  kernel->operation = fabric_new(fabric, 2, sizeof(weft_operation_t));
  kernel->operation[0] = (weft_operation_t){
      .op = WEFT_OP_MLA, .dtype = WEFT_DTYPE_F32, .loops = all, .destination = 3, .source = {0, 1, -1}};
  kernel->operation[1] = (weft_operation_t){
      .op = WEFT_OP_ADD, .dtype = WEFT_DTYPE_F32, .loops = kept, .destination = 4, .source = {3, 2, -1}};
  if (reductions > 0) kernel->reduce_operation = 0;
  kernel->alternative_count = 1;
  kernel->alternative = fabric_new(fabric, 1, sizeof(weft_alternative_t));
  kernel->alternative[0].split = random_split(rng, kernel);
  weft_alternative_t* alternative = &kernel->alternative[0];
  alternative->gy = weft_split_grid(alternative->split.y, alternative->split.y_count);
  alternative->gx = weft_split_grid(alternative->split.x, alternative->split.x_count);
  alternative->cycles = draw(rng, 1, 10); // few, so that edges get several streams
  kernel->region = (weft_region_t){.width = alternative->gx, .height = alternative->gy};
  kernel->tile = fabric_new(fabric, (size_t)alternative->gy * (size_t)alternative->gx, sizeof(int32_t));
  ++fabric->tensor_count;
  ++fabric->kernel_count;
}

static inline void random_fabric_in(weft_allocator_t allocator, weft_rng_t* rng, weft_fabric_t* fabric) {
  weft_fabric_initialize(allocator, fabric);
  fabric->tensor = fabric_new(fabric, 8, sizeof(weft_tensor_t));
  fabric->kernel = fabric_new(fabric, 8, sizeof(weft_kernel_t));
  weft_tensor_t* input = &fabric->tensor[fabric->tensor_count++];
  *input = (weft_tensor_t){.name = "x", .kind = WEFT_TENSOR_INPUT, .dtype = WEFT_DTYPE_F32};
  input->shape.rank = (int32_t)draw(rng, 0, 4);
  for (int32_t d = 0; d < input->shape.rank; ++d) input->shape.extent[d] = draw(rng, 1, 6);
  fabric->model_name = "random";
  fabric->stage = WEFT_STAGE_PLACED;
  fabric->input_count = 1;
  fabric->input = fabric_new(fabric, 1, sizeof(int32_t));
  for (int32_t k = (int32_t)draw(rng, 1, 3); k > 0; --k) random_kernel(rng, fabric);
  fabric->output_count = 1;
  fabric->output = fabric_new(fabric, 1, sizeof(weft_output_t));
  weft_output_t* output = fabric->output;
  *output = (weft_output_t){.name = "y", .piece_count = 1, .piece = fabric_new(fabric, 1, sizeof(weft_piece_t))};
  output->piece[0].tensor = fabric->tensor_count - 1;
  output->piece[0].view = random_view(rng, &fabric->tensor[fabric->tensor_count - 1].shape, 2, &output->shape);
  output->dtype = fabric->tensor[fabric->tensor_count - 1].dtype;
}

static inline void random_fabric(weft_rng_t* rng, weft_fabric_t* fabric) {
  random_fabric_in(weft_allocator_system(), rng, fabric);
}

// All elements of a walk, one by one: coordinates[n * WEFT_MAX_RANK], and the segment that each is in. Returns their
// number.
static inline int64_t brute_walk(const weft_walk_t* walk, int64_t capacity, int64_t* coordinates, int64_t* segments) {
  int64_t index[WEFT_MAX_LEVELS] = {0}, count = 0;
  for (;;) {
    int64_t c[WEFT_MAX_RANK] = {0}, segment = 0;
    bool inside = true;
    for (int32_t k = 0; k < walk->level_count; ++k) {
      c[walk->level[k].dim] += walk->level[k].step * index[k];
      if (k < walk->source_levels) segment = segment * walk->level[k].extent + index[k];
    }
    for (int32_t d = 0; d < walk->box.rank; ++d) inside = inside && walk->box.lo[d] <= c[d] && c[d] < walk->box.hi[d];
    if (inside) {
      assert(count < capacity);
      memcpy(&coordinates[count * WEFT_MAX_RANK], c, sizeof(c));
      segments[count++] = segment;
    }
    int32_t k = walk->level_count - 1;
    for (; k >= 0 && ++index[k] == walk->level[k].extent; --k) index[k] = 0;
    if (k < 0) return count;
  }
}
