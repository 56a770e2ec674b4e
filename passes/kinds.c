// What may be split: the kind of every dimension follows from the operations that loop over it.
#include "passes/lowering.h"

// An operation reduces over the loops that its destination doesn't depend on.
static uint32_t reduced(const weft_kernel_t* kernel, const weft_operation_t* operation) {
  return operation->loops & ~weft_buffer_dims(&kernel->buffer[operation->destination]);
}

// The dimensions that operation `at` alone reduces, that no later one loops over and no result contains: partial
// results along them can be combined right after it.
static uint32_t splittable(const weft_kernel_t* kernel, int32_t at) {
  uint32_t mask = reduced(kernel, &kernel->operation[at]);
  for (int32_t i = 0; i < kernel->operation_count; ++i) {
    if (i > at)
      mask &= ~kernel->operation[i].loops;
    else if (i < at)
      mask &= ~reduced(kernel, &kernel->operation[i]);
  }
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (kernel->buffer[b].kind == WEFT_BUFFER_RESULT) mask &= ~weft_buffer_dims(&kernel->buffer[b]);
  return mask;
}

static bool find_combiner(const weft_operation_t* operation, weft_op_e* out_combiner) {
  if (operation->op == WEFT_OP_MLA) return *out_combiner = WEFT_OP_ADD, true;
  if (!weft_op_is_combiner(operation->op) || operation->source[0] != operation->destination) return false;
  *out_combiner = operation->op;
  return true;
}

// Whether the dimension stands alone, with coefficient 1, in exactly one row of every result.
static bool is_parallel(const weft_kernel_t* kernel, int32_t dim) {
  for (int32_t i = 0; i < kernel->operation_count; ++i)
    if (reduced(kernel, &kernel->operation[i]) >> dim & 1) return false;
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &kernel->buffer[b];
    if (buffer->kind != WEFT_BUFFER_RESULT) continue;
    int32_t rows = 0;
    for (int32_t r = 0; r < buffer->rank; ++r) {
      if (!buffer->row[r].coefficient[dim]) continue;
      if (buffer->row[r].coefficient[dim] != 1 || buffer->row[r].offset != 0) return false;
      for (int32_t d = 0; d < kernel->dim_count; ++d)
        if (d != dim && buffer->row[r].coefficient[d]) return false;
      ++rows;
    }
    if (rows != 1) return false;
  }
  return true;
}

// A sequential dimension is what it is. Sums inside of it stay whole: a chain would add its latency to every trip.
static bool is_loop(const weft_kernel_t* kernel) {
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) return true;
  return false;
}

void weft_kernel_classify(weft_kernel_t* kernel) {
  int64_t best = 0;
  uint32_t reduction = 0;
  kernel->reduce_operation = -1;
  for (int32_t i = 0; i < kernel->operation_count && !is_loop(kernel); ++i) {
    weft_op_e combiner;
    if (!find_combiner(&kernel->operation[i], &combiner)) continue;
    uint32_t mask = splittable(kernel, i);
    int64_t volume = 1;
    for (int32_t d = 0; d < kernel->dim_count; ++d)
      if (mask >> d & 1) volume *= kernel->dim[d].extent;
    if (!mask || volume <= best) continue;
    best = volume;
    reduction = mask;
    kernel->reduce_operation = i;
    kernel->combiner = combiner;
  }
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind != WEFT_DIM_SEQUENTIAL)
      kernel->dim[d].kind = reduction >> d & 1       ? WEFT_DIM_REDUCTION
                            : is_parallel(kernel, d) ? WEFT_DIM_PARALLEL
                                                     : WEFT_DIM_INTERNAL;
}
