// Products in a narrower type: what contractions multiply is rounded to f16 or bf16 where it is made, weights at once,
// and travels and lies in memory like that; products are summed in f32, and what is not multiplied stays in f32.
// Whoever else reads a rounded tensor reads it rounded, so that it needs not be there twice.
#include "passes/narrow.h"

#include <math.h>

#include "base/array.h"
#include "passes/build.h"

typedef struct rounded_t {
  MlirValue wide, narrow;
} rounded_t;
typedef struct narrowing_t {
  weft_allocator_t allocator;
  weft_arena_t arena;
  weft_dtype_e dtype;
  WEFT_ARRAY(rounded_t) rounded; // in the order of their operations
} narrowing_t;

static bool is_wide(MlirValue value) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  return weft_ir_shape(value, &shape, &dtype) && dtype == WEFT_DTYPE_F32 && weft_shape_elements(&shape) > 0;
}

static const rounded_t* find(const narrowing_t* self, MlirValue wide) {
  for (size_t i = self->rounded.count; i-- > 0;)
    if (mlirValueEqual(self->rounded.data[i].wide, wide)) return &self->rounded.data[i];
  return NULL;
}

// --- Whether a value can be rounded: constants must stay finite.

static weft_status_t constant_fits(narrowing_t* self, MlirOperation op, bool* out_fits) {
  void* data = NULL;
  size_t size;
  WEFT_RETURN_IF_ERROR(weft_tensor_constant_bytes(self->allocator, weft_ir_attribute(op, "value"), &data, &size));
  for (size_t i = 0; i < size / sizeof(float) && *out_fits; ++i) {
    uint8_t stored[8];
    double value = (double)((const float*)data)[i];
    weft_dtype_store(self->dtype, value, stored);
    *out_fits = isfinite(weft_dtype_load(self->dtype, stored)) || !isfinite(value);
  }
  weft_allocator_free(self->allocator, data);
  return weft_ok();
}

// Whether it moves its operands' elements to places that are known: not a row of a loop's trip.
static bool is_movement(MlirOperation op) {
  if (mlirOperationIsNull(op) || weft_ir_role(op) != WEFT_ROLE_MOVEMENT) return false;
  intptr_t operands = mlirOperationGetNumOperands(op);
  return weft_ir_is(op, "tensor.concat") || operands == 1 || (operands == 2 && weft_ir_is(op, "linalg.generic"));
}

// Seen through movement, which has one kind of elements with its operands.
static weft_status_t fits(narrowing_t* self, MlirValue value, bool* out_fits) {
  MlirOperation op = weft_ir_producer(value);
  double splat;
  if (mlirOperationIsNull(op) || !*out_fits) return weft_ok();
  if (weft_ir_splat(value, &splat)) return *out_fits = fabs(splat) < 65504 || !isfinite(splat), weft_ok();
  if (weft_ir_is(op, "arith.constant")) return constant_fits(self, op, out_fits);
  if (!is_movement(op)) return weft_ok();
  int32_t count = weft_ir_is(op, "tensor.concat") ? (int32_t)mlirOperationGetNumOperands(op) : 1;
  for (int32_t i = 0; i < count; ++i) WEFT_RETURN_IF_ERROR(fits(self, mlirOperationGetOperand(op, i), out_fits));
  return weft_ok();
}

// --- Rounding

static weft_status_t narrow(narrowing_t* self, MlirValue value, MlirValue* out);

static weft_status_t narrow_constant(narrowing_t* self, MlirOperation op, MlirValue* out) {
  weft_build_t build = weft_build_before(op);
  weft_shape_t shape;
  weft_dtype_e dtype;
  void* data = NULL;
  uint8_t* bytes;
  size_t size, width = weft_dtype_size(self->dtype);
  weft_ir_shape(mlirOperationGetResult(op, 0), &shape, &dtype);
  WEFT_RETURN_IF_ERROR(weft_tensor_constant_bytes(self->allocator, weft_ir_attribute(op, "value"), &data, &size));
  size_t count = size / sizeof(float);
  weft_status_t status = weft_allocator_calloc(self->allocator, count + 1, width, (void**)&bytes);
  for (size_t i = 0; i < count && !status; ++i)
    weft_dtype_store(self->dtype, (double)((const float*)data)[i], bytes + i * width);
  if (!status) *out = weft_build_constant(&build, self->dtype, &shape, bytes);
  if (!status) weft_allocator_free(self->allocator, bytes);
  weft_allocator_free(self->allocator, data);
  return status;
}

static weft_status_t narrow_movement(narrowing_t* self, MlirOperation op, MlirValue* out) {
  weft_build_t build = weft_build_before(op);
  int32_t count = weft_ir_is(op, "tensor.concat") ? (int32_t)mlirOperationGetNumOperands(op) : 1;
  MlirValue* operand;
  double fill = 0;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&self->arena, (size_t)count, &operand));
  for (int32_t i = 0; i < count; ++i) WEFT_RETURN_IF_ERROR(narrow(self, mlirOperationGetOperand(op, i), &operand[i]));
  if (weft_ir_is(op, "tensor.pad")) {
    MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    if (!weft_ir_splat(mlirOperationGetOperand(mlirBlockGetTerminator(body), 0), &fill))
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "the padding is not constant");
  }
  *out = weft_build_moved(&build, op, count, operand, self->dtype, fill);
  return weft_ok();
}

// Right behind what makes it, so that it becomes part of that kernel; a graph input at the start.
static weft_status_t round_result(narrowing_t* self, MlirValue value, MlirValue* out) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  weft_point_t point;
  MlirOperation op = weft_ir_producer(value);
  MlirOperation next = mlirOperationIsNull(op) ? mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(value))
                                               : mlirOperationGetNextInBlock(op);
  weft_build_t build = {next, mlirOperationIsNull(op) ? mlirOperationGetLocation(next) : mlirOperationGetLocation(op)};
  weft_ir_shape(value, &shape, &dtype);
  weft_point_begin(&build, &self->arena, &shape, &point);
  MlirValue element = weft_point_input(&point, value);
  *out = weft_point_end(&point, weft_point_op(&point, "arith.truncf", self->dtype, element, (MlirValue){NULL}),
                        self->dtype);
  return weft_ok();
}

static weft_status_t narrow(narrowing_t* self, MlirValue value, MlirValue* out) {
  const rounded_t* known = find(self, value);
  if (known) return *out = known->narrow, weft_ok();
  MlirOperation op = weft_ir_producer(value);
  weft_shape_t shape;
  weft_dtype_e dtype;
  double splat;
  weft_ir_shape(value, &shape, &dtype);
  if (!mlirOperationIsNull(op) && weft_ir_splat(value, &splat)) {
    weft_build_t build = weft_build_before(op);
    *out = weft_build_filled(&build, self->dtype, &shape, splat);
  } else if (weft_ir_is(op, "arith.constant")) {
    WEFT_RETURN_IF_ERROR(narrow_constant(self, op, out));
  } else if (is_movement(op)) {
    WEFT_RETURN_IF_ERROR(narrow_movement(self, op, out));
  } else {
    WEFT_RETURN_IF_ERROR(round_result(self, value, out));
  }
  return WEFT_ARRAY_PUSH(self->allocator, &self->rounded, (rounded_t){value, *out});
}

// --- Readers

// The operation reads the rounded tensor as input `index`: an element is widened first in its body.
static void rewire(MlirOperation op, int32_t index, MlirValue to) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  MlirValue element = mlirBlockGetArgument(body, index);
  MlirType wide = mlirValueGetType(element);
  weft_build_t build = weft_build_before(op);
  MlirBlock scratch = mlirBlockCreate(0, NULL, NULL);
  mlirOperationSetOperand(op, index, to);
  mlirValueSetType(element, mlirShapedTypeGetElementType(mlirValueGetType(to)));
  MlirValue widened = weft_build_scalar_op(&build, scratch, "arith.extf", wide, element, (MlirValue){NULL});
  MlirOperation widening = mlirOpResultGetOwner(widened);
  mlirOperationRemoveFromParent(widening);
  mlirBlockInsertOwnedOperation(body, 0, widening);
  mlirBlockDestroy(scratch);
  mlirValueReplaceAllUsesExcept(element, widened, 1, &widening);
}

// The inputs that the operation multiplies and sums up. False: it is no such operation.
static bool factors_of(const weft_generic_t* generic, int32_t out_index[2]) {
  MlirOperation yield = mlirBlockGetTerminator(generic->body);
  if (!weft_generic_reduces(generic) || mlirOperationGetNumOperands(yield) != 1) return false;
  MlirOperation sum = weft_ir_producer(mlirOperationGetOperand(yield, 0));
  if (!weft_ir_is(sum, "arith.addf")) return false;
  for (int32_t side = 0; side < 2; ++side) {
    MlirOperation product = weft_ir_producer(mlirOperationGetOperand(sum, side));
    if (!weft_ir_is(product, "arith.mulf")) continue;
    for (int32_t i = 0; i < 2; ++i) {
      MlirValue factor = mlirOperationGetOperand(product, i);
      if (!mlirValueIsABlockArgument(factor)) return false;
      out_index[i] = (int32_t)mlirBlockArgumentGetArgNumber(factor);
      if (out_index[i] >= generic->input_count || !is_wide(mlirOperationGetOperand(generic->op, out_index[i])))
        return false;
    }
    return true;
  }
  return false;
}

static weft_status_t narrow_factors(narrowing_t* self, MlirOperation op) {
  weft_generic_t generic;
  int32_t index[2];
  bool can = true;
  if (!weft_ir_is(op, "linalg.generic") || weft_ir_role(op) != WEFT_ROLE_COMPUTE ||
      !weft_status_consume(weft_generic_read(op, &generic)) || !factors_of(&generic, index))
    return weft_ok();
  for (int32_t i = 0; i < 2; ++i) WEFT_RETURN_IF_ERROR(fits(self, mlirOperationGetOperand(op, index[i]), &can));
  for (int32_t i = 0; i < 2 && can; ++i) {
    MlirValue rounded;
    WEFT_RETURN_IF_ERROR(narrow(self, mlirOperationGetOperand(op, index[i]), &rounded));
  }
  return weft_ok();
}

// A constant in f32 costs other readers nothing: they keep it.
static bool is_constant(MlirValue value) {
  double splat;
  MlirOperation op = weft_ir_producer(value);
  while (is_movement(op) && !weft_ir_is(op, "tensor.concat"))
    op = weft_ir_producer(value = mlirOperationGetOperand(op, 0));
  return !mlirOperationIsNull(op) && (weft_ir_is(op, "arith.constant") || weft_ir_splat(value, &splat));
}

static weft_status_t read_rounded(narrowing_t* self, MlirOperation op) {
  weft_generic_t generic;
  int32_t factor[2] = {-1, -1};
  if (!weft_ir_is(op, "linalg.generic") || weft_ir_role(op) != WEFT_ROLE_COMPUTE ||
      !weft_status_consume(weft_generic_read(op, &generic)))
    return weft_ok();
  bool multiplies = factors_of(&generic, factor);
  bool both = multiplies && find(self, mlirOperationGetOperand(op, factor[0])) &&
              find(self, mlirOperationGetOperand(op, factor[1]));
  for (int32_t i = 0; i < generic.input_count; ++i) {
    MlirValue wide = mlirOperationGetOperand(op, i);
    const rounded_t* rounded = find(self, wide);
    bool is_factor = multiplies && (i == factor[0] || i == factor[1]);
    if (!rounded || mlirValueEqual(rounded->narrow, mlirOperationGetResult(op, 0))) continue;
    if (is_factor ? both : !is_constant(wide)) rewire(op, i, rounded->narrow);
  }
  return weft_ok();
}

// The operations of main, and of the loops in it.
static weft_status_t for_each(narrowing_t* self, MlirBlock block,
                              weft_status_t (*visit)(narrowing_t* self, MlirOperation op)) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    WEFT_RETURN_IF_ERROR(visit(self, op));
    if (weft_ir_is(op, "scf.for"))
      WEFT_RETURN_IF_ERROR(for_each(self, mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)), visit));
  }
  return weft_ok();
}

static weft_status_t run(weft_tensor_context_t* context, MlirOperation module, weft_dtype_e dtype) {
  MlirOperation main = weft_tensor_find_main(mlirModuleFromOperation(module));
  if (mlirOperationIsNull(main)) return weft_error(INVALID_INPUT, "the module has no function main");
  MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  narrowing_t self = {.allocator = weft_tensor_context_allocator(context), .dtype = dtype};
  weft_arena_initialize(self.allocator, &self.arena);
  weft_status_t status;
  status = for_each(&self, block, narrow_factors);
  if (!status) status = for_each(&self, block, read_rounded);
  WEFT_ARRAY_FREE(self.allocator, &self.rounded);
  weft_arena_deinitialize(&self.arena);
  return status;
}

weft_status_t weft_pass_narrow_f16(weft_tensor_context_t* context, MlirOperation module) {
  return run(context, module, WEFT_DTYPE_F16);
}

weft_status_t weft_pass_narrow_bf16(weft_tensor_context_t* context, MlirOperation module) {
  return run(context, module, WEFT_DTYPE_BF16);
}
