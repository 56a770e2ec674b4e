// Quantised networks in integers. Ops are taken in order; of each real tensor that is known to be integers on a scale
// the integers are kept, and an op that they can go through is done on them. Whoever else reads the real tensor gets it
// calculated from the integers; where nobody does, that is dead code.
#include "passes/quantize.h"

#include <math.h>
#include <string.h>

weft_scaled_t* weft_quantize_find(weft_quantize_t* self, MlirValue real) {
  for (size_t i = self->scaled.count; i-- > 0;)
    if (mlirValueEqual(self->scaled.data[i].real, real)) return &self->scaled.data[i];
  return NULL;
}

bool weft_quantize_is_constant(MlirValue value) {
  return weft_ir_is(weft_ir_producer(value), "arith.constant");
}

// The op's result is these integers: all that reads it reads what they give. A constant's is only calculated at the
// end, if it is still wanted.
weft_status_t weft_quantize_settle(weft_quantize_t* self, MlirOperation op, weft_scaled_t* scaled) {
  weft_build_t build = weft_build_before(op);
  scaled->real = mlirOperationGetResult(op, 0);
  if (!weft_quantize_is_constant(scaled->q) && !scaled->is_floored) {
    WEFT_RETURN_IF_ERROR(weft_scaled_to_real(&build, &self->arena, scaled, &scaled->real));
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), scaled->real);
  }
  return WEFT_ARRAY_PUSH(self->allocator, &self->scaled, *scaled);
}

// --- Bytes

static weft_status_t flip(weft_quantize_t* self, const weft_build_t* build, MlirValue bytes, MlirValue* out) {
  weft_point_t point;
  weft_shape_t shape;
  weft_dtype_e dtype;
  weft_ir_shape(bytes, &shape, &dtype);
  weft_point_begin(build, &self->arena, &shape, &point);
  MlirValue element = weft_point_input(&point, bytes), top = weft_point_number(&point, WEFT_DTYPE_I8, -128);
  *out = weft_point_end(&point, weft_point_op(&point, "arith.xori", WEFT_DTYPE_I8, element, top), WEFT_DTYPE_I8);
  return weft_ok();
}

static weft_status_t flip_constant(weft_quantize_t* self, const weft_build_t* build, MlirValue bytes, MlirValue* out) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  void* data = NULL;
  size_t size;
  weft_ir_shape(bytes, &shape, &dtype);
  WEFT_RETURN_IF_ERROR(
      weft_tensor_constant_bytes(self->allocator, weft_ir_attribute(weft_ir_producer(bytes), "value"), &data, &size));
  for (size_t i = 0; i < size; ++i) ((uint8_t*)data)[i] ^= 0x80;
  *out = weft_build_constant(build, WEFT_DTYPE_I8, &shape, data);
  weft_allocator_free(self->allocator, data);
  return weft_ok();
}

// Unsigned bytes less 128, as signed ones: contractions have one type for both factors.
static weft_status_t signed_bytes(weft_quantize_t* self, const weft_build_t* build, MlirValue bytes, MlirValue* out) {
  for (size_t i = 0; i < self->twin.count; ++i)
    if (mlirValueEqual(self->twin.data[i].bytes, bytes)) return *out = self->twin.data[i].flipped, weft_ok();
  MlirOperation op = weft_ir_producer(bytes);
  if (weft_ir_is(op, "arith.constant"))
    WEFT_RETURN_IF_ERROR(flip_constant(self, build, bytes, out));
  else if (!mlirOperationIsNull(op) && weft_ir_role(op) == WEFT_ROLE_MOVEMENT && !weft_ir_is(op, "tensor.pad") &&
           !weft_ir_is(op, "tensor.concat")) {
    MlirValue before;
    WEFT_RETURN_IF_ERROR(signed_bytes(self, build, mlirOperationGetOperand(op, 0), &before));
    *out = weft_build_moved(build, op, 1, &before, WEFT_DTYPE_I8, 0);
  } else {
    WEFT_RETURN_IF_ERROR(flip(self, build, bytes, out));
  }
  return WEFT_ARRAY_PUSH(self->allocator, &self->twin, (weft_twin_t){bytes, *out});
}

static weft_status_t unscaled(weft_quantize_t* self, int32_t rank, weft_linear_t* out) {
  WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, rank, 1, &out->scale));
  return weft_field_number(&self->arena, rank, 0, &out->shift);
}

static weft_status_t dequantize(weft_quantize_t* self, const weft_generic_t* generic) {
  MlirValue q = mlirOperationGetOperand(generic->op, 0);
  weft_linear_t before, linear;
  bool is_unsigned, matches;
  WEFT_RETURN_IF_ERROR(unscaled(self, generic->loop_count, &before));
  WEFT_RETURN_IF_ERROR(weft_linear_match(&self->arena, generic, 0, true, &before, &linear, &is_unsigned, &matches));
  if (!matches) return weft_ok();
  weft_scaled_t scaled = {.real = mlirOperationGetResult(generic->op, 0),
                          .q = q,
                          .dtype = WEFT_DTYPE_I8,
                          .scale = linear.scale,
                          .shift = linear.shift};
  bool known = false;
  if (is_unsigned) {
    weft_build_t build = weft_build_before(generic->op);
    weft_field_t half;
    size_t twins = self->twin.count;
    WEFT_RETURN_IF_ERROR(signed_bytes(self, &build, q, &scaled.q));
    known = twins == self->twin.count && !weft_quantize_is_constant(q);
    WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, generic->loop_count, 128, &half));
    WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_ADD, &scaled.shift, &half, false, &scaled.shift));
  }
  if (weft_quantize_is_constant(q))
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(self->allocator, &self->of_constant, generic->op));
  // Real numbers from the bytes as they came are as good as from flipped ones that nobody else may want.
  if (known) return weft_quantize_settle(self, generic->op, &scaled);
  return WEFT_ARRAY_PUSH(self->allocator, &self->scaled, scaled);
}

// Rounds what is no integer yet, to signed bytes: a copy of the op with another end.
static MlirValue quantize_real(MlirOperation op, const weft_quantizer_t* quantizer, const weft_build_t* build) {
  const char* const name[] = {"arith.addf", "arith.maximumf", "arith.minimumf"};
  const double number[] = {quantizer->zero, -128, 127};
  MlirValue constant[3], none = {NULL};
  for (int32_t i = 0; i < 3; ++i) constant[i] = weft_build_scalar(build, WEFT_DTYPE_F32, number[i]);
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, copy);
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(copy, 0));
  MlirOperation at = mlirBlockGetFirstOperation(mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)));
  MlirOperation same = mlirBlockGetFirstOperation(body), yield = mlirBlockGetTerminator(body);
  for (; at.ptr != weft_ir_producer(quantizer->rounded).ptr; at = mlirOperationGetNextInBlock(at))
    same = mlirOperationGetNextInBlock(same);
  mlirOperationRemoveFromParent(yield);
  MlirContext context = mlirOperationGetContext(op);
  MlirValue value = mlirOperationGetResult(same, 0);
  for (int32_t i = 0; i < 3; ++i)
    value = weft_build_scalar_op(build, body, name[i], weft_tensor_type(context, WEFT_DTYPE_F32), value, constant[i]);
  value = weft_build_scalar_op(build, body, "arith.fptosi", weft_tensor_type(context, WEFT_DTYPE_I8), value, none);
  mlirOperationSetOperand(yield, 0, value);
  mlirBlockAppendOwnedOperation(body, yield);
  return mlirOperationGetResult(copy, 0);
}

static weft_status_t quantize(weft_quantize_t* self, const weft_generic_t* generic) {
  weft_scaled_t* from = weft_quantize_find(self, mlirOperationGetOperand(generic->op, 0));
  if (from && from->is_floored) from = NULL;
  weft_build_t build = weft_build_before(generic->op);
  weft_linear_t before;
  weft_quantizer_t quantizer;
  bool matches;
  if (from)
    before = (weft_linear_t){.scale = from->scale, .shift = from->shift};
  else
    WEFT_RETURN_IF_ERROR(unscaled(self, generic->loop_count, &before));
  WEFT_RETURN_IF_ERROR(weft_quantizer_match(&self->arena, generic, &before, &quantizer, &matches));
  if (!matches || (!from && !quantizer.is_unsigned)) return weft_ok();
  MlirValue bytes, result = mlirOperationGetResult(generic->op, 0);
  if (from) {
    // A clipped value stays clipped: its scale is positive before and after.
    weft_scaled_t scaled = *from;
    scaled.scale = quantizer.steps.scale;
    if (scaled.is_clipped && !weft_field_equal(&scaled.shift, &quantizer.steps.shift)) return weft_ok();
    scaled.shift = quantizer.steps.shift;
    WEFT_RETURN_IF_ERROR(weft_scaled_to_bytes(&build, &self->arena, &scaled, quantizer.zero, &bytes));
  } else {
    bytes = quantize_real(generic->op, &quantizer, &build);
  }
  if (!quantizer.is_unsigned) return mlirValueReplaceAllUsesOfWith(result, bytes), weft_ok();
  MlirValue unsigned_bytes;
  WEFT_RETURN_IF_ERROR(flip(self, &build, bytes, &unsigned_bytes));
  mlirValueReplaceAllUsesOfWith(result, unsigned_bytes);
  return WEFT_ARRAY_PUSH(self->allocator, &self->twin, (weft_twin_t){unsigned_bytes, bytes});
}

// --- Real numbers

// Linear in one operand that is integers on a scale.
static weft_status_t pointwise(weft_quantize_t* self, const weft_generic_t* generic) {
  const weft_scaled_t* from = NULL;
  int32_t x = -1;
  for (int32_t i = 0; i < generic->input_count; ++i) {
    const weft_scaled_t* found = weft_quantize_find(self, mlirOperationGetOperand(generic->op, i));
    if (!found || weft_quantize_is_constant(found->q)) continue;
    if (from) return weft_ok();
    from = found;
    x = i;
  }
  if (!from || from->is_floored || from->is_clipped) return weft_ok();
  weft_linear_t before = {.scale = from->scale, .shift = from->shift}, linear;
  bool is_unsigned, matches;
  WEFT_RETURN_IF_ERROR(weft_linear_match(&self->arena, generic, x, false, &before, &linear, &is_unsigned, &matches));
  if (!matches) return weft_ok();
  weft_scaled_t scaled = *from;
  scaled.scale = linear.scale;
  scaled.shift = linear.shift;
  weft_build_t build = weft_build_before(generic->op);
  if (linear.is_clipped) WEFT_RETURN_IF_ERROR(weft_scaled_clip(&build, &self->arena, &scaled));
  return weft_quantize_settle(self, generic->op, &scaled);
}

static weft_status_t visit_generic(weft_quantize_t* self, MlirOperation op) {
  weft_generic_t generic;
  weft_shape_t shape, from;
  weft_dtype_e dtype, source;
  if (mlirOperationGetNumResults(op) != 1 || !weft_status_consume(weft_generic_read(op, &generic)) ||
      !weft_ir_shape(mlirOperationGetResult(op, 0), &shape, &dtype) || weft_shape_elements(&shape) == 0 ||
      generic.input_count < 1 || !weft_ir_shape(mlirOperationGetOperand(op, 0), &from, &source))
    return weft_ok();
  if (weft_generic_reduces(&generic)) return weft_quantize_reduction(self, &generic);
  if (dtype == WEFT_DTYPE_I8 && source == WEFT_DTYPE_F32) return quantize(self, &generic);
  if (dtype != WEFT_DTYPE_F32) return weft_ok();
  return source == WEFT_DTYPE_I8 ? dequantize(self, &generic) : pointwise(self, &generic);
}

static weft_status_t visit(weft_quantize_t* self, MlirOperation op) {
  switch (weft_ir_role(op)) {
  case WEFT_ROLE_COMPUTE:
    return weft_ir_is(op, "linalg.generic") ? visit_generic(self, op) : weft_ok();
  case WEFT_ROLE_MOVEMENT:
    return weft_quantize_movement(self, op);
  default:
    return weft_ok();
  }
}

// --- What is left over

static bool is_unused(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    if (!mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, i)))) return false;
  return true;
}

// Removes what nobody reads any more, last op first.
static void sweep(weft_quantize_t* self) {
  for (size_t i = self->order.count; i-- > 0;) {
    MlirOperation op = self->order.data[i];
    bool kept = false;
    for (size_t j = 0; j < self->of_constant.count; ++j) kept |= self->of_constant.data[j].ptr == op.ptr;
    weft_ir_role_e role = weft_ir_role(op);
    kept |= weft_ir_is(op, "arith.constant"); // what is folded may need it
    if (!kept && role != WEFT_ROLE_OTHER && role != WEFT_ROLE_KERNEL && is_unused(op)) mlirOperationDestroy(op);
  }
}

// Dequantised constants that no contraction took are calculated now.
static weft_status_t fold(weft_quantize_t* self, MlirOperation op) {
  MlirValue real = mlirOperationGetResult(op, 0);
  const weft_scaled_t* scaled = weft_quantize_find(self, real);
  weft_build_t build = weft_build_before(op);
  weft_field_t all, sum;
  weft_shape_t shape;
  weft_dtype_e dtype;
  void* bytes = NULL;
  float* data;
  size_t size;
  if (is_unused(op)) return mlirOperationDestroy(op), weft_ok();
  weft_ir_shape(scaled->q, &shape, &dtype);
  WEFT_RETURN_IF_ERROR(weft_field_create(&self->arena, &shape, &all));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&self->arena, (size_t)weft_shape_elements(&shape), &data));
  WEFT_RETURN_IF_ERROR(weft_tensor_constant_bytes(
      self->allocator, weft_ir_attribute(weft_ir_producer(scaled->q), "value"), &bytes, &size));
  for (size_t i = 0; i < size; ++i) all.data[i] = ((int8_t*)bytes)[i];
  weft_allocator_free(self->allocator, bytes);
  WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_ADD, &all, &scaled->shift, true, &sum));
  WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, &sum, &scaled->scale, true, &sum));
  for (size_t i = 0; i < size; ++i) data[i] = (float)sum.data[i];
  mlirValueReplaceAllUsesOfWith(real, weft_build_constant(&build, WEFT_DTYPE_F32, &shape, data));
  mlirOperationDestroy(op);
  return weft_ok();
}

static weft_status_t run(weft_quantize_t* self) {
  MlirOperation op = mlirBlockGetFirstOperation(self->block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    WEFT_RETURN_IF_ERROR(visit(self, op));
    op = next;
  }
  for (op = mlirBlockGetFirstOperation(self->block); !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(self->allocator, &self->order, op));
  sweep(self);
  for (size_t i = 0; i < self->of_constant.count; ++i) WEFT_RETURN_IF_ERROR(fold(self, self->of_constant.data[i]));
  return weft_ok();
}

weft_status_t weft_pass_quantize(weft_tensor_context_t* context, MlirOperation module) {
  MlirOperation main = weft_tensor_find_main(mlirModuleFromOperation(module));
  if (mlirOperationIsNull(main)) return weft_error(INVALID_INPUT, "the module has no function main");
  weft_quantize_t self = {.allocator = weft_tensor_context_allocator(context),
                          .block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0))};
  weft_arena_initialize(self.allocator, &self.arena);
  weft_status_t status = run(&self);
  WEFT_ARRAY_FREE(self.allocator, &self.scaled);
  WEFT_ARRAY_FREE(self.allocator, &self.twin);
  WEFT_ARRAY_FREE(self.allocator, &self.of_constant);
  WEFT_ARRAY_FREE(self.allocator, &self.order);
  weft_arena_deinitialize(&self.arena);
  return status;
}
