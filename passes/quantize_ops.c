// Movements and reductions of integers on a scale.
#include <math.h>
#include <string.h>

#include "passes/quantize.h"

// --- Movement

static bool is_uniform(const weft_scaled_t* scaled, double* out_scale, double* out_shift) {
  return weft_field_is_number(&scaled->scale, out_scale) && weft_field_is_number(&scaled->shift, out_shift);
}

static bool shapes_of(MlirOperation op, weft_shape_t* out_from, weft_shape_t* out_to) {
  weft_dtype_e dtype;
  return weft_ir_shape(mlirOperationGetOperand(op, 0), out_from, &dtype) &&
         weft_ir_shape(mlirOperationGetResult(op, 0), out_to, &dtype) && weft_shape_elements(out_to) > 0;
}

// The dimensions of a transposing or broadcasting generic's input in its result.
static bool find_places(MlirOperation op, weft_generic_t* generic, int32_t* to) {
  if (!weft_status_consume(weft_generic_read(op, generic))) return false;
  for (int32_t r = 0; r < generic->map[0].rank; ++r) {
    int32_t loop = weft_generic_row_loop(generic, &generic->map[0].row[r]);
    to[r] = -1;
    for (int32_t o = 0; o < generic->map[1].rank && loop >= 0; ++o)
      if (weft_generic_row_loop(generic, &generic->map[1].row[o]) == loop) to[r] = o;
  }
  return true;
}

// The integer that stands for the padding. False: none does.
static bool find_fill(MlirOperation op, weft_scaled_t* scaled, double* out_fill) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  double scale, shift, value;
  if (!weft_ir_splat(mlirOperationGetOperand(mlirBlockGetTerminator(body), 0), &value)) return false;
  bool wide = scaled->dtype == WEFT_DTYPE_I32;
  double lowest = wide ? INT32_MIN : INT8_MIN, highest = wide ? INT32_MAX : INT8_MAX;
  if (value == -INFINITY) {
    scaled->is_floored = true;
    return *out_fill = lowest, true;
  }
  if (!is_uniform(scaled, &scale, &shift) || scaled->is_floored) return false;
  *out_fill = value / scale - shift;
  return *out_fill == nearbyint(*out_fill) && *out_fill >= lowest && *out_fill <= highest;
}

static weft_status_t move_fields(weft_quantize_t* self, MlirOperation op, weft_scaled_t* scaled, bool* out_done) {
  weft_shape_t from, to;
  *out_done = false;
  if (!shapes_of(op, &from, &to)) return weft_ok();
  weft_field_t* fields[] = {&scaled->scale, &scaled->shift};
  for (int32_t i = 0; i < 2; ++i) {
    weft_field_t* field = fields[i];
    if (weft_ir_is(op, "tensor.expand_shape") || weft_ir_is(op, "tensor.collapse_shape")) {
      WEFT_RETURN_IF_ERROR(weft_field_reshape(&self->arena, field, &from, &to, field));
    } else if (weft_ir_is(op, "linalg.generic")) {
      weft_generic_t generic;
      int32_t place[WEFT_MAX_RANK];
      if (!find_places(op, &generic, place)) return weft_ok();
      for (int32_t d = 0; d < from.rank; ++d)
        if (field->shape.extent[d] != 1 && place[d] < 0) return weft_ok();
      WEFT_RETURN_IF_ERROR(weft_field_move(&self->arena, field, to.rank, place, field));
    } else {
      if (from.rank != to.rank) return weft_ok();
      for (int32_t d = 0; d < from.rank; ++d)
        if (field->shape.extent[d] != 1 && from.extent[d] != to.extent[d]) return weft_ok();
    }
  }
  *out_done = true;
  return weft_ok();
}

// A constant in its new order, if the movement is a reshape or a transpose.
static weft_status_t move_constant(weft_quantize_t* self, MlirOperation op, MlirValue q, MlirValue* out_moved) {
  weft_build_t build = weft_build_before(op);
  weft_shape_t from, to;
  void* bytes = NULL;
  size_t size;
  uint8_t* moved;
  *out_moved = (MlirValue){NULL};
  bool transposes = weft_ir_is(op, "linalg.generic");
  if (!shapes_of(op, &from, &to) || weft_shape_elements(&from) != weft_shape_elements(&to) ||
      weft_ir_is(op, "tensor.pad"))
    return weft_ok();
  int64_t stride[WEFT_MAX_RANK], own[WEFT_MAX_RANK] = {0}, step = 1;
  if (transposes) {
    weft_generic_t generic;
    int32_t place[WEFT_MAX_RANK];
    if (!find_places(op, &generic, place)) return weft_ok();
    for (int32_t d = from.rank - 1; d >= 0; --d) {
      stride[d] = step;
      step *= from.extent[d];
      if (place[d] >= 0) own[place[d]] = stride[d];
    }
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&self->arena, (size_t)weft_shape_elements(&to), &moved));
  WEFT_RETURN_IF_ERROR(
      weft_tensor_constant_bytes(self->allocator, weft_ir_attribute(weft_ir_producer(q), "value"), &bytes, &size));
  for (size_t i = 0; i < size; ++i) {
    int64_t flat = (int64_t)i, source = transposes ? 0 : flat;
    for (int32_t d = to.rank - 1; d >= 0 && transposes; --d) {
      source += flat % to.extent[d] * own[d];
      flat /= to.extent[d];
    }
    moved[i] = ((uint8_t*)bytes)[source];
  }
  weft_allocator_free(self->allocator, bytes);
  *out_moved = weft_build_constant(&build, WEFT_DTYPE_I8, &to, moved);
  return weft_ok();
}

static weft_status_t concatenate(weft_quantize_t* self, MlirOperation op) {
  enum { MAX_PARTS = 64 };
  MlirValue part[MAX_PARTS];
  weft_scaled_t scaled = {0};
  intptr_t count = mlirOperationGetNumOperands(op);
  if (count < 1 || count > MAX_PARTS) return weft_ok();
  for (intptr_t i = 0; i < count; ++i) {
    const weft_scaled_t* found = weft_quantize_find(self, mlirOperationGetOperand(op, i));
    double scale, shift;
    if (!found || found->is_floored || found->is_clipped || !is_uniform(found, &scale, &shift)) return weft_ok();
    if (i == 0)
      scaled = *found;
    else if (found->dtype != scaled.dtype || !weft_field_is(&scaled.scale, scale) ||
             !weft_field_is(&scaled.shift, shift))
      return weft_ok();
    part[i] = found->q;
  }
  weft_build_t build = weft_build_before(op);
  scaled.q = weft_build_moved(&build, op, (int32_t)count, part, scaled.dtype, 0);
  return weft_quantize_settle(self, op, &scaled);
}

weft_status_t weft_quantize_movement(weft_quantize_t* self, MlirOperation op) {
  static const char* const known[] = {"tensor.expand_shape", "tensor.collapse_shape", "tensor.pad",
                                      "tensor.extract_slice", "linalg.generic"};
  bool is_known = false, done;
  double fill = 0;
  if (weft_ir_is(op, "tensor.concat")) return concatenate(self, op);
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) is_known |= weft_ir_is(op, known[i]);
  const weft_scaled_t* from = is_known ? weft_quantize_find(self, mlirOperationGetOperand(op, 0)) : NULL;
  if (!from || from->is_floored) return weft_ok();
  weft_scaled_t scaled = *from;
  if (weft_ir_is(op, "tensor.pad") && !find_fill(op, &scaled, &fill)) return weft_ok();
  WEFT_RETURN_IF_ERROR(move_fields(self, op, &scaled, &done));
  if (!done) return weft_ok();
  weft_build_t build = weft_build_before(op);
  MlirValue moved = {NULL};
  if (weft_quantize_is_constant(from->q)) {
    WEFT_RETURN_IF_ERROR(move_constant(self, op, from->q, &moved));
    if (!moved.ptr) return weft_ok();
  }
  MlirValue q = scaled.q;
  scaled.q = moved.ptr ? moved : weft_build_moved(&build, op, 1, &q, scaled.dtype, fill);
  return weft_quantize_settle(self, op, &scaled);
}

// --- Reductions

// A field of an operand as one of the result. False: it varies along a loop that is summed over or a window.
static weft_status_t carry(weft_quantize_t* self, const weft_generic_t* generic, int32_t operand, weft_field_t* field,
                           bool* out_done) {
  int32_t to[WEFT_MAX_RANK];
  const weft_map_t* result = &generic->map[generic->input_count];
  *out_done = false;
  for (int32_t r = 0; r < field->shape.rank; ++r) {
    to[r] = -1;
    if (field->shape.extent[r] == 1) continue;
    int32_t loop = weft_generic_row_loop(generic, &generic->map[operand].row[r]);
    for (int32_t o = 0; o < result->rank && loop >= 0; ++o)
      if (weft_generic_row_loop(generic, &result->row[o]) == loop) to[r] = o;
    if (to[r] < 0) return weft_ok();
  }
  *out_done = true;
  return weft_field_move(&self->arena, field, result->rank, to, field);
}

static MlirValue argument(MlirBlock body, intptr_t i) {
  return mlirBlockGetArgument(body, i);
}

static MlirValue widened(const weft_build_t* build, MlirBlock body, MlirValue value) {
  MlirType wide = weft_tensor_type(mlirLocationGetContext(build->location), WEFT_DTYPE_I32);
  return weft_build_scalar_op(build, body, "arith.extsi", wide, value, (MlirValue){NULL});
}

static MlirValue add_product(const weft_build_t* build, MlirBlock body) {
  MlirValue a = widened(build, body, argument(body, 0)), b = widened(build, body, argument(body, 1));
  MlirType type = mlirValueGetType(a);
  MlirValue product = weft_build_scalar_op(build, body, "arith.muli", type, a, b);
  return weft_build_scalar_op(build, body, "arith.addi", type, argument(body, 2), product);
}

MlirValue weft_quantize_add_element(const weft_build_t* build, MlirBlock body) {
  MlirValue element = widened(build, body, argument(body, 0));
  MlirValue sum = argument(body, mlirBlockGetNumArguments(body) - 1);
  return weft_build_scalar_op(build, body, "arith.addi", mlirValueGetType(sum), sum, element);
}

static MlirValue larger(const weft_build_t* build, MlirBlock body) {
  MlirValue highest = argument(body, mlirBlockGetNumArguments(body) - 1);
  return weft_build_scalar_op(build, body, "arith.maxsi", mlirValueGetType(highest), highest, argument(body, 0));
}

static MlirValue initial(const weft_build_t* build, const weft_generic_t* generic, weft_dtype_e dtype, double value) {
  weft_shape_t shape;
  weft_dtype_e real;
  weft_ir_shape(mlirOperationGetResult(generic->op, 0), &shape, &real);
  return weft_build_filled(build, dtype, &shape, value);
}

// A constant factor less its zero point, if that still fits a byte.
static weft_status_t absorb_zero(weft_quantize_t* self, MlirOperation op, weft_scaled_t* scaled, bool* out_done) {
  weft_build_t build = weft_build_before(op);
  weft_shape_t shape;
  weft_dtype_e dtype;
  weft_field_t q;
  void* bytes = NULL;
  size_t size;
  *out_done = weft_field_is(&scaled->shift, 0);
  if (*out_done || !weft_quantize_is_constant(scaled->q)) return weft_ok();
  weft_ir_shape(scaled->q, &shape, &dtype);
  WEFT_RETURN_IF_ERROR(weft_field_create(&self->arena, &shape, &q));
  WEFT_RETURN_IF_ERROR(weft_tensor_constant_bytes(
      self->allocator, weft_ir_attribute(weft_ir_producer(scaled->q), "value"), &bytes, &size));
  for (size_t i = 0; i < size; ++i) q.data[i] = ((int8_t*)bytes)[i];
  weft_status_t status = weft_field_combine(&self->arena, WEFT_FIELD_ADD, &q, &scaled->shift, false, &q);
  double lo = 0, hi = 0;
  if (!status) weft_field_range(&q, &lo, &hi);
  *out_done = !status && lo >= -128 && hi <= 127;
  for (size_t i = 0; i < size && *out_done; ++i) {
    ((int8_t*)bytes)[i] = (int8_t)q.data[i];
    *out_done = q.data[i] == nearbyint(q.data[i]);
  }
  if (*out_done) scaled->q = weft_build_constant(&build, WEFT_DTYPE_I8, &shape, bytes);
  weft_allocator_free(self->allocator, bytes);
  if (!status && *out_done) status = weft_field_number(&self->arena, shape.rank, 0, &scaled->shift);
  return status;
}

// The sum of a constant factor over the loops that are reduced, along the result.
static weft_status_t sum_of_constant(weft_quantize_t* self, const weft_generic_t* generic, int32_t operand, MlirValue q,
                                     weft_field_t* out, bool* out_done) {
  const weft_map_t *map = &generic->map[operand], *result = &generic->map[generic->input_count];
  weft_shape_t shape, sums = {.rank = result->rank};
  weft_dtype_e dtype;
  int64_t step[WEFT_MAX_RANK] = {0}, place[WEFT_MAX_RANK], stride = 1, repeated = 1;
  uint32_t read = 0;
  void* bytes = NULL;
  size_t size;
  *out_done = false;
  weft_ir_shape(q, &shape, &dtype);
  for (int32_t o = 0; o < result->rank; ++o) sums.extent[o] = 1;
  for (int32_t r = 0; r < map->rank; ++r) {
    int32_t loop = weft_generic_row_loop(generic, &map->row[r]);
    place[r] = -1;
    if (loop == -2 || (loop < 0 && shape.extent[r] != 1)) return weft_ok();
    if (loop < 0) continue;
    read |= 1u << loop;
    for (int32_t o = 0; o < result->rank; ++o)
      if (weft_generic_row_loop(generic, &result->row[o]) == loop) place[r] = o;
    if (place[r] >= 0) sums.extent[place[r]] = shape.extent[r];
  }
  for (int32_t l = 0; l < generic->loop_count; ++l)
    if (generic->reduction[l] && !(read >> l & 1)) repeated *= generic->extent[l];
  for (int32_t o = sums.rank - 1; o >= 0; --o) {
    for (int32_t r = 0; r < map->rank; ++r)
      if (place[r] == o) step[r] = stride;
    stride *= sums.extent[o];
  }
  WEFT_RETURN_IF_ERROR(weft_field_create(&self->arena, &sums, out));
  WEFT_RETURN_IF_ERROR(
      weft_tensor_constant_bytes(self->allocator, weft_ir_attribute(weft_ir_producer(q), "value"), &bytes, &size));
  for (size_t i = 0; i < size; ++i) {
    int64_t flat = (int64_t)i, at = 0;
    for (int32_t r = map->rank - 1; r >= 0; --r) {
      at += flat % shape.extent[r] * step[r];
      flat /= shape.extent[r];
    }
    out->data[at] += (double)(((int8_t*)bytes)[i] * repeated);
  }
  weft_allocator_free(self->allocator, bytes);
  *out_done = true;
  return weft_ok();
}

// What both shifts add together: their product, once for each product that is summed.
static weft_status_t add_product_of_shifts(weft_quantize_t* self, const weft_generic_t* generic, const weft_field_t* a,
                                           const weft_field_t* b, weft_field_t* shift) {
  weft_field_t times, product;
  double count = 1;
  for (int32_t l = 0; l < generic->loop_count; ++l)
    if (generic->reduction[l]) count *= (double)generic->extent[l];
  WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, a->shape.rank, count, &times));
  WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, a, b, false, &product));
  WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, &product, &times, false, &product));
  return weft_field_combine(&self->arena, WEFT_FIELD_ADD, shift, &product, false, shift);
}

// sum sx (x + tx) sw (w + tw): what a shift adds is constant when the other factor is.
static weft_status_t contract(weft_quantize_t* self, const weft_generic_t* generic) {
  weft_scaled_t factor[2], scaled = {.dtype = WEFT_DTYPE_I32};
  weft_build_t build = weft_build_before(generic->op);
  bool done;
  WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, generic->map[generic->input_count].rank, 0, &scaled.shift));
  for (int32_t i = 0; i < 2; ++i) {
    const weft_scaled_t* found = weft_quantize_find(self, mlirOperationGetOperand(generic->op, i));
    if (!found || found->dtype != WEFT_DTYPE_I8 || found->is_clipped || found->is_floored) return weft_ok();
    factor[i] = *found;
  }
  if (weft_quantize_is_constant(factor[0].q) && weft_quantize_is_constant(factor[1].q)) return weft_ok();
  for (int32_t i = 0; i < 2; ++i) {
    weft_field_t shift = factor[i].shift, whole;
    WEFT_RETURN_IF_ERROR(weft_scaled_whole_shift(&self->arena, &shift, &whole, &done));
    if (done) factor[i].shift = whole;
    if (!done) return weft_ok();
    WEFT_RETURN_IF_ERROR(absorb_zero(self, generic->op, &factor[i], &done));
  }
  weft_field_t shift[2];
  bool adds_sum[2] = {false, false};
  for (int32_t i = 0; i < 2; ++i) {
    weft_field_t sum, scale = factor[i].scale;
    bool is_whole_zero = weft_field_is(&factor[i].shift, 0);
    shift[i] = factor[i].shift;
    WEFT_RETURN_IF_ERROR(carry(self, generic, i, &scale, &done));
    if (done) WEFT_RETURN_IF_ERROR(carry(self, generic, i, &shift[i], &done));
    if (!done) return weft_ok();
    if (i == 0)
      scaled.scale = scale;
    else
      WEFT_RETURN_IF_ERROR(
          weft_field_combine(&self->arena, WEFT_FIELD_MUL, &scaled.scale, &scale, true, &scaled.scale));
    if (is_whole_zero) continue;
    adds_sum[i] = !weft_quantize_is_constant(factor[1 - i].q);
    if (adds_sum[i]) continue;
    WEFT_RETURN_IF_ERROR(sum_of_constant(self, generic, 1 - i, factor[1 - i].q, &sum, &done));
    if (!done) return weft_ok();
    WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, &sum, &shift[i], false, &sum));
    WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_ADD, &scaled.shift, &sum, false, &scaled.shift));
  }
  WEFT_RETURN_IF_ERROR(add_product_of_shifts(self, generic, &shift[0], &shift[1], &scaled.shift));
  scaled.q = weft_build_reduction(&build, generic->op, 2, (MlirValue[]){factor[0].q, factor[1].q},
                                  initial(&build, generic, WEFT_DTYPE_I32, 0), add_product);
  for (int32_t i = 0; i < 2; ++i)
    if (adds_sum[i])
      WEFT_RETURN_IF_ERROR(weft_quantize_add_sum(self, generic, 1 - i, factor[1 - i].q, &shift[i], &scaled.q));
  return weft_quantize_settle(self, generic->op, &scaled);
}

// The sum or maximum of one operand; the others are windows.
static weft_status_t pool(weft_quantize_t* self, const weft_generic_t* generic, bool sums) {
  const weft_scaled_t* from = weft_quantize_find(self, mlirOperationGetOperand(generic->op, 0));
  if (!from || weft_quantize_is_constant(from->q)) return weft_ok();
  if (sums && (from->dtype != WEFT_DTYPE_I8 || from->is_clipped || from->is_floored)) return weft_ok();
  weft_scaled_t scaled = *from;
  bool done;
  WEFT_RETURN_IF_ERROR(carry(self, generic, 0, &scaled.scale, &done));
  if (done) WEFT_RETURN_IF_ERROR(carry(self, generic, 0, &scaled.shift, &done));
  if (!done) return weft_ok();
  weft_build_t build = weft_build_before(generic->op);
  MlirValue inputs[WEFT_MAX_OPERANDS];
  for (int32_t i = 0; i < generic->input_count; ++i) inputs[i] = mlirOperationGetOperand(generic->op, i);
  inputs[0] = from->q;
  scaled.is_floored = false;
  if (sums) {
    double count = 1;
    weft_field_t times;
    for (int32_t l = 0; l < generic->loop_count; ++l)
      if (generic->reduction[l]) count *= (double)generic->extent[l];
    if (count > 0x1p22) return weft_ok(); // of bytes: more could overflow
    WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, scaled.shift.shape.rank, count, &times));
    WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, &scaled.shift, &times, false, &scaled.shift));
    scaled.dtype = WEFT_DTYPE_I32;
  }
  double from_value = sums ? 0 : scaled.dtype == WEFT_DTYPE_I32 ? INT32_MIN : INT8_MIN;
  scaled.q = weft_build_reduction(&build, generic->op, generic->input_count, inputs,
                                  initial(&build, generic, scaled.dtype, from_value),
                                  sums ? weft_quantize_add_element : larger);
  return weft_quantize_settle(self, generic->op, &scaled);
}

weft_status_t weft_quantize_reduction(weft_quantize_t* self, const weft_generic_t* generic) {
  if (weft_is_contraction(generic)) return contract(self, generic);
  if (weft_is_sum(generic)) return pool(self, generic, true);
  return weft_is_maximum(generic) ? pool(self, generic, false) : weft_ok();
}
