#include "passes/field.h"

#include <math.h>
#include <string.h>

weft_status_t weft_field_create(weft_arena_t* arena, const weft_shape_t* shape, weft_field_t* out) {
  out->shape = *shape;
  return WEFT_ARENA_NEW(arena, (size_t)weft_shape_elements(shape), &out->data);
}

weft_status_t weft_field_number(weft_arena_t* arena, int32_t rank, double number, weft_field_t* out) {
  weft_shape_t shape = {.rank = rank};
  for (int32_t d = 0; d < rank; ++d) shape.extent[d] = 1;
  WEFT_RETURN_IF_ERROR(weft_field_create(arena, &shape, out));
  out->data[0] = number;
  return weft_ok();
}

// Strides with which a field is read along the dimensions of a larger shape: 0 where it is broadcast.
static void broadcast_strides(const weft_shape_t* shape, int64_t* out_stride) {
  int64_t stride = 1;
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    out_stride[d] = shape->extent[d] == 1 ? 0 : stride;
    stride *= shape->extent[d];
  }
}

static int64_t at(const weft_shape_t* shape, int64_t flat, const int64_t* stride) {
  int64_t offset = 0;
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    offset += flat % shape->extent[d] * stride[d];
    flat /= shape->extent[d];
  }
  return offset;
}

static double calculate(weft_field_op_e op, double a, double b) {
  switch (op) {
  case WEFT_FIELD_ADD:
    return a + b;
  case WEFT_FIELD_SUB:
    return a - b;
  case WEFT_FIELD_MUL:
    return a * b;
  case WEFT_FIELD_DIV:
    return a / b;
  }
  return 0;
}

weft_status_t weft_field_combine(weft_arena_t* arena, weft_field_op_e op, const weft_field_t* a, const weft_field_t* b,
                                 bool is_f32, weft_field_t* out) {
  weft_shape_t shape = a->shape;
  int64_t a_stride[WEFT_MAX_RANK], b_stride[WEFT_MAX_RANK];
  for (int32_t d = 0; d < shape.rank; ++d)
    if (shape.extent[d] == 1) shape.extent[d] = b->shape.extent[d];
  broadcast_strides(&a->shape, a_stride);
  broadcast_strides(&b->shape, b_stride);
  weft_field_t result;
  WEFT_RETURN_IF_ERROR(weft_field_create(arena, &shape, &result));
  for (int64_t i = 0, count = weft_shape_elements(&shape); i < count; ++i) {
    double value = calculate(op, a->data[at(&shape, i, a_stride)], b->data[at(&shape, i, b_stride)]);
    result.data[i] = is_f32 ? (double)(float)value : value;
  }
  *out = result;
  return weft_ok();
}

static weft_dtype_e as_unsigned(weft_dtype_e dtype) {
  return dtype == WEFT_DTYPE_I8    ? WEFT_DTYPE_U8
         : dtype == WEFT_DTYPE_I16 ? WEFT_DTYPE_U16
         : dtype == WEFT_DTYPE_I32 ? WEFT_DTYPE_U32
                                   : dtype;
}

weft_status_t weft_field_operand(weft_arena_t* arena, const weft_generic_t* generic, int32_t operand, bool is_unsigned,
                                 weft_field_t* out, bool* out_is_known) {
  MlirValue value = mlirOperationGetOperand(generic->op, operand);
  MlirOperation op = weft_ir_producer(value);
  weft_shape_t shape;
  weft_dtype_e dtype;
  *out_is_known = false;
  if (!weft_ir_is(op, "arith.constant") || !weft_ir_shape(value, &shape, &dtype)) return weft_ok();
  weft_field_t plain;
  int32_t to[WEFT_MAX_RANK];
  for (int32_t r = 0; r < shape.rank; ++r) {
    to[r] = weft_generic_row_loop(generic, &generic->map[operand].row[r]);
    if (to[r] == -2 || (to[r] < 0 && shape.extent[r] != 1) || to[r] >= (int32_t)WEFT_MAX_RANK) return weft_ok();
  }
  void* bytes = NULL;
  size_t size;
  WEFT_RETURN_IF_ERROR(weft_tensor_constant_bytes(arena->allocator, weft_ir_attribute(op, "value"), &bytes, &size));
  weft_status_t status = weft_field_create(arena, &shape, &plain);
  if (is_unsigned) dtype = as_unsigned(dtype);
  size_t width = weft_dtype_size(dtype);
  for (size_t i = 0; i < size / width && !status; ++i)
    plain.data[i] = weft_dtype_load(dtype, (uint8_t*)bytes + i * width);
  weft_allocator_free(arena->allocator, bytes);
  if (!status) status = weft_field_move(arena, &plain, generic->loop_count, to, out);
  *out_is_known = !status;
  return status;
}

weft_status_t weft_field_move(weft_arena_t* arena, const weft_field_t* field, int32_t rank, const int32_t* to,
                              weft_field_t* out) {
  weft_shape_t shape = {.rank = rank};
  int64_t stride[WEFT_MAX_RANK], own[WEFT_MAX_RANK] = {0};
  broadcast_strides(&field->shape, stride);
  for (int32_t d = 0; d < rank; ++d) shape.extent[d] = 1;
  for (int32_t d = 0; d < field->shape.rank; ++d) {
    if (field->shape.extent[d] == 1) continue;
    shape.extent[to[d]] = field->shape.extent[d];
    own[to[d]] = stride[d];
  }
  weft_field_t result;
  WEFT_RETURN_IF_ERROR(weft_field_create(arena, &shape, &result));
  for (int64_t i = 0, count = weft_shape_elements(&shape); i < count; ++i)
    result.data[i] = field->data[at(&shape, i, own)];
  *out = result;
  return weft_ok();
}

weft_status_t weft_field_reshape(weft_arena_t* arena, const weft_field_t* field, const weft_shape_t* from,
                                 const weft_shape_t* to, weft_field_t* out) {
  // Runs of dimensions with the same product on both sides: within a run the field becomes full, or stays 1.
  weft_shape_t full = field->shape, shape = {.rank = to->rank};
  int32_t a = 0, b = 0;
  while (a < from->rank || b < to->rank) {
    int32_t first_a = a, first_b = b;
    int64_t left = a < from->rank ? from->extent[a++] : 1, right = b < to->rank ? to->extent[b++] : 1;
    while (left != right) {
      if (left < right)
        left *= from->extent[a++];
      else
        right *= to->extent[b++];
    }
    bool varies = false;
    for (int32_t d = first_a; d < a; ++d) varies |= field->shape.extent[d] != 1;
    for (int32_t d = first_a; d < a; ++d) full.extent[d] = varies ? from->extent[d] : 1;
    for (int32_t d = first_b; d < b; ++d) shape.extent[d] = varies ? to->extent[d] : 1;
  }
  weft_field_t zero, result;
  WEFT_RETURN_IF_ERROR(weft_field_create(arena, &full, &zero));
  WEFT_RETURN_IF_ERROR(weft_field_combine(arena, WEFT_FIELD_ADD, field, &zero, false, &result));
  result.shape = shape;
  *out = result;
  return weft_ok();
}

bool weft_field_is_number(const weft_field_t* field, double* out_number) {
  *out_number = field->data[0];
  return weft_field_is(field, *out_number);
}

bool weft_field_is(const weft_field_t* field, double number) {
  for (int64_t i = 0, count = weft_shape_elements(&field->shape); i < count; ++i)
    if (field->data[i] != number) return false;
  return true;
}

bool weft_field_equal(const weft_field_t* a, const weft_field_t* b) {
  return a->shape.rank == b->shape.rank &&
         memcmp(a->shape.extent, b->shape.extent, (size_t)a->shape.rank * sizeof(int64_t)) == 0 &&
         memcmp(a->data, b->data, (size_t)weft_shape_elements(&a->shape) * sizeof(double)) == 0;
}

void weft_field_range(const weft_field_t* field, double* out_lo, double* out_hi) {
  *out_lo = *out_hi = field->data[0];
  for (int64_t i = 1, count = weft_shape_elements(&field->shape); i < count; ++i) {
    *out_lo = fmin(*out_lo, field->data[i]);
    *out_hi = fmax(*out_hi, field->data[i]);
  }
}
