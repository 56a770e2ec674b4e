// A tiny reference for kernels: one tile, no split, numbers as doubles rounded to the buffer's type. Header-only, for
// tests.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/fabric/fabric.h"

typedef struct interpreter_t {
  const weft_fabric_t* fabric;
  double** tensor; // [tensor_count] row-major
} interpreter_t;

static double rounded(weft_dtype_e dtype, double value) {
  uint64_t bits = 0;
  weft_dtype_store(dtype, value, &bits);
  return weft_dtype_load(dtype, &bits);
}

static double apply_op(weft_op_e op, const double* s, double dst) {
  double a = s[0], b = s[1];
  switch (op) {
  case WEFT_OP_MOV:
    return a;
  case WEFT_OP_ADD:
    return a + b;
  case WEFT_OP_SUB:
    return a - b;
  case WEFT_OP_MUL:
    return a * b;
  case WEFT_OP_DIV:
    return a / b;
  case WEFT_OP_REM:
    return fmod(a, b);
  case WEFT_OP_MAX:
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
  case WEFT_OP_MIN:
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
  case WEFT_OP_POW:
    return pow(a, b);
  case WEFT_OP_MLA:
    return dst + a * b;
  case WEFT_OP_NEG:
    return -a;
  case WEFT_OP_ABS:
    return fabs(a);
  case WEFT_OP_SQRT:
    return sqrt(a);
  case WEFT_OP_RSQRT:
    return 1 / sqrt(a);
  case WEFT_OP_EXP:
    return exp(a);
  case WEFT_OP_LOG:
    return log(a);
  case WEFT_OP_TANH:
    return tanh(a);
  case WEFT_OP_ERF:
    return erf(a);
  case WEFT_OP_FLOOR:
    return floor(a);
  case WEFT_OP_AND:
    return (double)((int64_t)a & (int64_t)b);
  case WEFT_OP_OR:
    return (double)((int64_t)a | (int64_t)b);
  case WEFT_OP_XOR:
    return (double)((int64_t)a ^ (int64_t)b);
  case WEFT_OP_SHL:
    return (double)(int32_t)((uint32_t)(int64_t)a << (int)b);
  case WEFT_OP_SHR:
    return (double)((int32_t)(int64_t)a >> (int)b);
  case WEFT_OP_EQ:
    return a == b;
  case WEFT_OP_NE:
    return a != b;
  case WEFT_OP_LT:
    return a < b;
  case WEFT_OP_LE:
    return a <= b;
  case WEFT_OP_GT:
    return a > b;
  case WEFT_OP_GE:
    return a >= b;
  case WEFT_OP_SELECT:
    return s[2] != 0 ? a : b;
  case WEFT_OP_RINT:
    return rint(a);
  case WEFT_OP_CEIL:
    return ceil(a);
  default:
    abort(); // a test that needs it adds it
  }
}

typedef struct plane_t { // a buffer's memory
  int64_t lo[WEFT_MAX_RANK], extent[WEFT_MAX_RANK];
  double* data;
} plane_t;

static int64_t plane_offset(const plane_t* plane, int32_t rank, const int64_t* coordinate) {
  int64_t offset = 0;
  for (int32_t r = 0; r < rank; ++r) {
    int64_t at = coordinate[r] - plane->lo[r];
    if (at < 0 || at >= plane->extent[r]) return -1;
    offset = offset * plane->extent[r] + at;
  }
  return offset;
}

static void fill_from_pieces(const interpreter_t* in, int32_t rank, int32_t count, const weft_piece_t* piece,
                             plane_t* plane) {
  for (int32_t p = 0; p < count; ++p) {
    int64_t elements = weft_shape_elements(&in->fabric->tensor[piece[p].tensor].shape);
    for (int64_t flat = 0; flat < elements; ++flat) {
      int64_t at[WEFT_MAX_RANK];
      if (!weft_view_apply(&piece[p].view, flat, at)) continue;
      int64_t offset = plane_offset(plane, rank, at);
      if (offset >= 0) plane->data[offset] = in->tensor[piece[p].tensor][flat];
    }
  }
}

// The number that an operation of type `dtype` finds in a buffer of type `stored`: signedness is a matter of
// operations.
static double read_as(weft_dtype_e dtype, weft_dtype_e stored, double value) {
  if (dtype == stored || dtype == WEFT_DTYPE_BOOL || stored == WEFT_DTYPE_BOOL || !weft_dtype_same_bits(dtype, stored))
    return value;
  uint64_t bits = 0;
  weft_dtype_store(stored, value, &bits);
  return weft_dtype_load(dtype, &bits);
}

// `trip` is the index of dimension d0 when that is sequential.
static void run_operation(const weft_kernel_t* kernel, const weft_operation_t* operation, plane_t* plane,
                          int64_t trip) {
  int64_t index[WEFT_MAX_DIMS] = {trip};
  for (;;) {
    double s[3] = {0};
    int64_t where[4];
    for (int32_t i = 0; i < 4; ++i) {
      int32_t b = i == 3 ? operation->destination : operation->source[i];
      if (b < 0) continue;
      const weft_buffer_t* buffer = &kernel->buffer[b];
      int64_t at[WEFT_MAX_RANK];
      for (int32_t r = 0; r < buffer->rank; ++r) {
        at[r] = buffer->row[r].offset;
        for (int32_t d = 0; d < kernel->dim_count; ++d) at[r] += buffer->row[r].coefficient[d] * index[d];
      }
      where[i] = plane_offset(&plane[b], buffer->rank, at);
      if (where[i] < 0) abort();
    }
    for (int32_t i = 0; i < weft_op_source_count(operation->op); ++i)
      s[i] = operation->source[i] < 0 ? operation->immediate[i]
                                      : read_as(operation->dtype, kernel->buffer[operation->source[i]].dtype,
                                                plane[operation->source[i]].data[where[i]]);
    double* to = &plane[operation->destination].data[where[3]];
    *to = rounded(kernel->buffer[operation->destination].dtype, apply_op(operation->op, s, *to));
    int32_t d = kernel->dim_count - 1;
    for (; d >= 0; --d) {
      if (!(operation->loops >> d & 1) || kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) continue;
      if (++index[d] < kernel->dim[d].extent) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// What comes back to the kernel's own operands once operation `at`, the last of a trip to write it, is done.
static void feed_back(interpreter_t* in, const weft_kernel_t* kernel, int32_t at, plane_t* plane) {
  int32_t result = kernel->operation[at].destination;
  for (int32_t o = at + 1; o < kernel->operation_count; ++o)
    if (kernel->operation[o].loops & 1 && kernel->operation[o].destination == result) return;
  const weft_buffer_t* buffer = &kernel->buffer[result];
  if (buffer->kind != WEFT_BUFFER_RESULT) return;
  memcpy(in->tensor[buffer->tensor], plane[result].data,
         (size_t)weft_shape_elements(&in->fabric->tensor[buffer->tensor].shape) * sizeof(double));
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (kernel->buffer[b].kind == WEFT_BUFFER_OPERAND && kernel->buffer[b].piece_count == 1 &&
        kernel->buffer[b].piece[0].tensor == buffer->tensor)
      fill_from_pieces(in, kernel->buffer[b].rank, 1, kernel->buffer[b].piece, &plane[b]);
}

static void run_operations(interpreter_t* in, const weft_kernel_t* kernel, plane_t* plane) {
  bool loops = kernel->dim_count > 0 && kernel->dim[0].kind == WEFT_DIM_SEQUENTIAL;
  for (int32_t i = 0; i < kernel->operation_count;) {
    int32_t end = i + 1;
    if (!loops || !(kernel->operation[i].loops & 1)) {
      run_operation(kernel, &kernel->operation[i++], plane, 0);
      continue;
    }
    while (end < kernel->operation_count && kernel->operation[end].loops & 1) ++end;
    for (int64_t trip = 0; trip < kernel->dim[0].extent; ++trip)
      for (int32_t o = i; o < end; ++o) {
        run_operation(kernel, &kernel->operation[o], plane, trip);
        feed_back(in, kernel, o, plane);
      }
    i = end;
  }
}

static void run_kernel(interpreter_t* in, const weft_kernel_t* kernel) {
  plane_t* plane = calloc((size_t)kernel->buffer_count, sizeof(*plane));
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &kernel->buffer[b];
    int64_t elements = 1;
    for (int32_t r = 0; r < buffer->rank; ++r) {
      int64_t lo = buffer->row[r].offset, hi = lo;
      for (int32_t d = 0; d < kernel->dim_count; ++d) {
        int64_t reach = buffer->row[r].coefficient[d] * (kernel->dim[d].extent - 1);
        *(reach < 0 ? &lo : &hi) += reach;
      }
      plane[b].lo[r] = lo;
      plane[b].extent[r] = hi - lo + 1;
      elements *= hi - lo + 1;
    }
    plane[b].data = calloc((size_t)elements, sizeof(double));
    // What nothing writes is poison: a hole in an operand or a temporary read too early shows in the result.
    for (int64_t i = 0; i < elements; ++i) plane[b].data[i] = buffer->has_fill ? buffer->fill : NAN;
    if (buffer->kind == WEFT_BUFFER_OPERAND)
      fill_from_pieces(in, buffer->rank, buffer->piece_count, buffer->piece, &plane[b]);
  }
  run_operations(in, kernel, plane);
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &kernel->buffer[b];
    if (buffer->kind == WEFT_BUFFER_RESULT)
      memcpy(in->tensor[buffer->tensor], plane[b].data,
             (size_t)weft_shape_elements(&in->fabric->tensor[buffer->tensor].shape) * sizeof(double));
    free(plane[b].data);
  }
  free(plane);
}

// inputs and outputs: host memory of the tensors' types.
static void interpret(const weft_fabric_t* fabric, void* const* inputs, void* const* outputs) {
  interpreter_t in = {.fabric = fabric, .tensor = calloc((size_t)fabric->tensor_count + 1, sizeof(double*))};
  for (int32_t t = 0; t < fabric->tensor_count; ++t) {
    const weft_tensor_t* tensor = &fabric->tensor[t];
    int64_t elements = weft_shape_elements(&tensor->shape);
    in.tensor[t] = calloc((size_t)elements, sizeof(double));
    const uint8_t* data = tensor->data;
    for (int32_t i = 0; i < fabric->input_count; ++i)
      if (fabric->input[i] == t) data = inputs[i];
    for (int64_t i = 0; i < elements && data; ++i)
      in.tensor[t][i] = weft_dtype_load(tensor->dtype, data + (size_t)i * weft_dtype_size(tensor->dtype));
  }
  for (int32_t k = 0; k < fabric->kernel_count; ++k) run_kernel(&in, &fabric->kernel[k]);
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    const weft_output_t* output = &fabric->output[o];
    int64_t elements = weft_shape_elements(&output->shape);
    plane_t plane = {.data = calloc((size_t)elements, sizeof(double))};
    memcpy(plane.extent, output->shape.extent, sizeof(plane.extent));
    for (int64_t i = 0; i < elements; ++i) plane.data[i] = output->has_fill ? output->fill : NAN;
    fill_from_pieces(&in, output->shape.rank, output->piece_count, output->piece, &plane);
    for (int64_t i = 0; i < elements; ++i)
      weft_dtype_store(output->dtype, plane.data[i], (uint8_t*)outputs[o] + (size_t)i * weft_dtype_size(output->dtype));
    free(plane.data);
  }
  for (int32_t t = 0; t < fabric->tensor_count; ++t) free(in.tensor[t]);
  free(in.tensor);
}
