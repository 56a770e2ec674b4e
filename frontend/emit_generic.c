// Values, and the one place that makes a linalg.generic or computes it while importing.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/Linalg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/emit.h"
#include "frontend/mlir_build.h"
#include "ir/tensor/tensor.h"

// Folding stops where it would cost more than it saves: long loops, and results much larger than what they are made of.
static const int64_t max_folded_steps = (int64_t)1 << 26;
enum { MAX_FOLDED_GROWTH = 4, ALWAYS_FOLDED_BYTES = 1 << 16, MAX_INLINE_BYTES = 1024 };

static weft_status_t make_value(node_t* node, weft_dtype_e dtype, const shape_t* shape, value_t** out) {
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(shape, &count), INVALID_INPUT, "a tensor of shape %s is too large",
               weft_onnx_shape_format(shape).text);
  TRY(WEFT_ARENA_NEW(node->builder->arena, 1, out));
  (*out)->dtype = dtype;
  (*out)->shape = *shape;
  return weft_ok();
}

weft_status_t weft_onnx_known(node_t* node, weft_dtype_e dtype, const shape_t* shape, const void* data, value_t** out) {
  TRY(make_value(node, dtype, shape, out));
  (*out)->data = data;
  return weft_ok();
}

weft_status_t weft_onnx_known_list(node_t* node, int32_t count, const int64_t* values, value_t** out) {
  void* data;
  shape_t shape = {1, {count}};
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, sizeof(int64_t), &data));
  if (count) memcpy(data, values, (size_t)count * sizeof(int64_t));
  return weft_onnx_known(node, WEFT_DTYPE_I64, &shape, data, out);
}

weft_status_t weft_onnx_number(node_t* node, weft_dtype_e dtype, double number, value_t** out) {
  void* data;
  TRY(weft_arena_allocate(node->builder->arena, 1, 8, &data));
  weft_dtype_store(dtype, number, data);
  return weft_onnx_known(node, dtype, &(shape_t){0}, data, out);
}

static bool is_splat(const uint8_t* data, size_t width, size_t bytes) {
  return bytes > width && memcmp(data, data + width, bytes - width) == 0;
}

static weft_status_t constant_attribute(weft_onnx_builder_t* builder, const value_t* value, MlirType type,
                                        MlirAttribute* out) {
  size_t count = (size_t)weft_onnx_count(value), width = weft_dtype_size(value->dtype), bytes = count * width;
  if (count == 0) {
    *out = mlirDenseElementsAttrGet(type, 0, NULL);
  } else if (value->dtype == WEFT_DTYPE_BOOL) { // MLIR packs bools; its accessor takes ints
    int* bools;
    TRY(WEFT_ARENA_NEW(builder->arena, count, &bools));
    for (size_t i = 0; i < count; ++i) bools[i] = ((const uint8_t*)value->data)[i] != 0;
    *out = mlirDenseElementsAttrBoolGet(type, (intptr_t)count, bools);
  } else if (is_splat(value->data, width, bytes)) {
    *out = mlirDenseElementsAttrRawBufferGet(type, width, value->data);
  } else if (bytes <= MAX_INLINE_BYTES) {
    *out = mlirDenseElementsAttrRawBufferGet(type, bytes, value->data);
  } else {
    char name[32];
    snprintf(name, sizeof(name), "weft_%d", builder->resource_count++);
    // The blob is never written: it points into the arena, where protobuf-c or a fold put it.
    *out = mlirUnmanagedDenseResourceElementsAttrGet(type, mlirStringRefCreateFromCString(name), (void*)value->data,
                                                     bytes, width, false, NULL, NULL);
  }
  return weft_ok();
}

weft_status_t weft_onnx_materialize(weft_onnx_builder_t* builder, MlirLocation location, value_t* value,
                                    MlirValue* out) {
  if (value->kind != WEFT_ONNX_TENSOR)
    return weft_error(INVALID_INPUT, "'%s' is a sequence or an optional value where a tensor is expected",
                      value->name ? value->name : "");
  if (!value->mlir.ptr) {
    MlirType type = weft_onnx_tensor_type(builder->context, value->dtype, &value->shape);
    MlirAttribute attribute;
    TRY(constant_attribute(builder, value, type, &attribute));
    MlirOperation op = weft_onnx_create_op(location, "arith.constant", &type, 0, NULL, 1,
                                           &(weft_onnx_attribute_t){"value", attribute});
    mlirBlockAppendOwnedOperation(builder->block, op);
    value->mlir = mlirOperationGetResult(op, 0);
  }
  *out = value->mlir;
  return weft_ok();
}

// --- Folding

typedef struct cursor_t { // where an operand (or the result) is read, and how far a step along each dimension goes
  size_t width;
  const uint8_t* data;
  int64_t offset, step[WEFT_ONNX_MAX_NEST];
} cursor_t;

static cursor_t operand_cursor(const weft_onnx_operand_t* operand) {
  cursor_t cursor = {0};
  if (!operand->value) return cursor;
  int64_t strides[WEFT_ONNX_MAX_RANK];
  weft_onnx_strides(&operand->value->shape, strides);
  for (int32_t a = 0; a < operand->rank; ++a) {
    cursor.offset += strides[a] * operand->axis[a].offset;
    cursor.step[operand->axis[a].dim0] += strides[a] * operand->axis[a].stride0;
    if (operand->axis[a].dim1 >= 0) cursor.step[operand->axis[a].dim1] += strides[a] * operand->axis[a].stride1;
  }
  cursor.data = operand->value->data;
  cursor.width = weft_dtype_size(operand->value->dtype);
  return cursor;
}

static cursor_t result_cursor(const weft_onnx_generic_t* generic, const shape_t* shape) {
  cursor_t cursor = {.width = weft_dtype_size(generic->dtype)};
  int64_t strides[WEFT_ONNX_MAX_RANK];
  weft_onnx_strides(shape, strides);
  for (int32_t d = 0, axis = 0; d < generic->rank; ++d)
    if (!(generic->reduction >> d & 1)) cursor.step[d] = strides[axis++];
  return cursor;
}

// Steps the innermost dimension; carries outward. False at the end.
static bool advance(const weft_onnx_generic_t* generic, int64_t* index, cursor_t* cursors, int32_t cursor_count) {
  for (int32_t d = generic->rank - 1; d >= 0; --d) {
    bool wraps = ++index[d] == generic->extent[d];
    int64_t steps = wraps ? 1 - generic->extent[d] : 1;
    for (int32_t c = 0; c < cursor_count; ++c) cursors[c].offset += steps * cursors[c].step[d];
    if (!wraps) return true;
    index[d] = 0;
  }
  return false;
}

static weft_status_t fold(node_t* node, const weft_onnx_generic_t* generic, const shape_t* shape, int64_t steps,
                          value_t** out) {
  int64_t count;
  weft_onnx_shape_count(shape, &count);
  size_t width = weft_dtype_size(generic->dtype);
  uint8_t* target;
  TRY(weft_arena_allocate(node->builder->arena, (size_t)(count ? count : 1), width, (void**)&target));
  TRY(weft_onnx_known(node, generic->dtype, shape, target, out));
  for (int64_t i = 0; i < count && (generic->reduction || !steps); ++i)
    weft_dtype_store(generic->dtype, generic->initial, target + (size_t)i * width);
  if (steps == 0) return weft_ok();

  cursor_t cursors[WEFT_ONNX_MAX_OPERANDS + 1];
  int32_t operands = generic->operand_count;
  for (int32_t i = 0; i < operands; ++i) cursors[i] = operand_cursor(&generic->operand[i]);
  cursors[operands] = result_cursor(generic, shape);
  int64_t index[WEFT_ONNX_MAX_NEST] = {0};
  body_t body = {.context = node->builder->context, .location = node->location, .p = generic->p};
  do {
    uint8_t* result = target + (size_t)cursors[operands].offset * width;
    if (!generic->body) { // a movement: bits are copied
      memcpy(result, cursors[0].data + (size_t)cursors[0].offset * width, width);
      continue;
    }
    scalar_t argument[WEFT_ONNX_MAX_OPERANDS + 1] = {0};
    for (int32_t i = 0; i < operands; ++i)
      if (cursors[i].data)
        argument[i] = weft_onnx_scalar_load(generic->operand[i].value->dtype,
                                            cursors[i].data + (size_t)cursors[i].offset * cursors[i].width);
    argument[operands] = weft_onnx_scalar_load(generic->dtype, result);
    weft_onnx_scalar_store(s_cast(&body, generic->body(&body, argument), generic->dtype), result);
  } while (advance(generic, index, cursors, operands + 1));
  return weft_ok();
}

static bool is_worth_folding(const weft_onnx_generic_t* generic, const shape_t* shape, int64_t steps) {
  int64_t known_bytes = 0, count;
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    const value_t* value = generic->operand[i].value;
    if (!value) continue;
    if (!value->data) return false;
    known_bytes += weft_onnx_count(value) * (int64_t)weft_dtype_size(value->dtype);
  }
  weft_onnx_shape_count(shape, &count);
  int64_t bytes = count * (int64_t)weft_dtype_size(generic->dtype);
  return steps <= max_folded_steps && (bytes <= ALWAYS_FOLDED_BYTES || bytes / MAX_FOLDED_GROWTH <= known_bytes);
}

// --- Emission

static MlirAffineExpr axis_expression(MlirContext context, const weft_onnx_axis_map_t* axis) {
  MlirAffineExpr expression = mlirAffineDimExprGet(context, axis->dim0);
  if (axis->stride0 != 1)
    expression = mlirAffineMulExprGet(expression, mlirAffineConstantExprGet(context, axis->stride0));
  if (axis->dim1 >= 0) {
    MlirAffineExpr other = mlirAffineDimExprGet(context, axis->dim1);
    if (axis->stride1 != 1) other = mlirAffineMulExprGet(other, mlirAffineConstantExprGet(context, axis->stride1));
    expression = mlirAffineAddExprGet(expression, other);
  }
  if (axis->offset == 0) return expression;
  return mlirAffineAddExprGet(expression, mlirAffineConstantExprGet(context, axis->offset));
}

static MlirAttribute operand_map(MlirContext context, int32_t rank, const weft_onnx_operand_t* operand) {
  MlirAffineExpr expressions[WEFT_ONNX_MAX_RANK];
  for (int32_t a = 0; a < operand->rank; ++a) expressions[a] = axis_expression(context, &operand->axis[a]);
  return mlirAffineMapAttrGet(mlirAffineMapGet(context, rank, 0, operand->rank, expressions));
}

static MlirValue append(node_t* node, MlirOperation op) {
  mlirBlockAppendOwnedOperation(node->builder->block, op);
  return mlirOperationGetResult(op, 0);
}

static MlirValue empty_tensor(node_t* node, weft_dtype_e dtype, const shape_t* shape) {
  MlirType type = weft_onnx_tensor_type(node->builder->context, dtype, shape);
  return append(node, weft_onnx_create_op(node->location, "tensor.empty", &type, 0, NULL, 0, NULL));
}

static MlirAttribute segments(MlirContext context, int32_t inputs, int32_t outputs) {
  return weft_onnx_segments(context, 2, (int32_t[]){inputs, outputs});
}

static MlirValue filled_tensor(node_t* node, scalar_t scalar, const shape_t* shape) {
  MlirContext context = node->builder->context;
  body_t body = {.context = context, .location = node->location, .block = node->builder->block};
  MlirValue operands[] = {weft_onnx_scalar_materialize(&body, scalar), empty_tensor(node, scalar.dtype, shape)};
  MlirType type = mlirValueGetType(operands[1]);
  MlirOperation op = weft_onnx_create_op_with_region(
      node->location, "linalg.fill", &type, 2, operands, 1,
      &(weft_onnx_attribute_t){"operandSegmentSizes", segments(context, 1, 1)}, mlirRegionCreate());
  mlirLinalgFillBuiltinNamedOpRegion(op);
  return append(node, op);
}

static MlirAttribute iterator_types(MlirContext context, const weft_onnx_generic_t* generic) {
  MlirAttribute iterators[WEFT_ONNX_MAX_NEST];
  for (int32_t d = 0; d < generic->rank; ++d)
    iterators[d] = mlirAttributeParseGet(
        context, mlirStringRefCreateFromCString(generic->reduction >> d & 1 ? "#linalg.iterator_type<reduction>"
                                                                            : "#linalg.iterator_type<parallel>"));
  return mlirArrayAttrGet(context, generic->rank, iterators);
}

// Known single elements of a pointwise operation go into its body. A reduction keeps all operands: their shapes give
// the extents of its loops.
static bool is_inlined(const weft_onnx_generic_t* generic, const value_t* value) {
  return value && value->data && !generic->reduction && weft_onnx_count(value) == 1;
}

static weft_status_t emit(node_t* node, const weft_onnx_generic_t* generic, const shape_t* shape, value_t** out) {
  MlirContext context = node->builder->context;
  MlirValue values[WEFT_ONNX_MAX_OPERANDS + 1];
  MlirAttribute maps[WEFT_ONNX_MAX_OPERANDS + 1];
  scalar_t argument[WEFT_ONNX_MAX_OPERANDS + 1] = {0};
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  int32_t count = 0;
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    const weft_onnx_operand_t* operand = &generic->operand[i];
    if (is_inlined(generic, operand->value)) {
      argument[i] = weft_onnx_scalar_load(operand->value->dtype, operand->value->data);
      continue;
    }
    weft_dtype_e dtype = operand->value ? operand->value->dtype : generic->dtype;
    if (operand->value) {
      weft_status_t status = weft_onnx_materialize(node->builder, node->location, operand->value, &values[count]);
      if (status) {
        mlirBlockDestroy(block);
        return status;
      }
    } else {
      shape_t window = {.rank = operand->rank};
      for (int32_t a = 0; a < operand->rank; ++a) window.extent[a] = generic->extent[operand->axis[a].dim0];
      values[count] = empty_tensor(node, dtype, &window);
    }
    maps[count++] = operand_map(context, generic->rank, operand);
    MlirValue value = mlirBlockAddArgument(block, weft_tensor_type(context, dtype), node->location);
    argument[i] = (scalar_t){.dtype = dtype, .value = value};
  }

  weft_onnx_operand_t result = {.rank = shape->rank};
  for (int32_t d = 0, axis = 0; d < generic->rank; ++d)
    if (!(generic->reduction >> d & 1)) result.axis[axis++] = weft_onnx_along(d);
  maps[count] = operand_map(context, generic->rank, &result);
  MlirValue accumulator = mlirBlockAddArgument(block, weft_tensor_type(context, generic->dtype), node->location);
  argument[generic->operand_count] = (scalar_t){.dtype = generic->dtype, .value = accumulator};
  body_t body = {.context = context, .location = node->location, .block = block, .p = generic->p};
  scalar_t yielded = generic->body ? generic->body(&body, argument) : argument[0];
  yielded = s_cast(&body, yielded, generic->dtype);

  TRY(make_value(node, generic->dtype, shape, out));
  if (count == 0 && yielded.is_known) { // one number everywhere
    mlirBlockDestroy(block);
    (*out)->mlir = filled_tensor(node, yielded, shape);
    return weft_ok();
  }
  MlirValue yield_operand = weft_onnx_scalar_materialize(&body, yielded);
  mlirBlockAppendOwnedOperation(block,
                                weft_onnx_create_op(node->location, "linalg.yield", NULL, 1, &yield_operand, 0, NULL));
  values[count] = generic->reduction
                      ? filled_tensor(node, weft_onnx_scalar_constant(generic->dtype, generic->initial), shape)
                      : empty_tensor(node, generic->dtype, shape);
  MlirType type = mlirValueGetType(values[count]);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  weft_onnx_attribute_t attributes[] = {{"indexing_maps", mlirArrayAttrGet(context, count + 1, maps)},
                                        {"iterator_types", iterator_types(context, generic)},
                                        {"operandSegmentSizes", segments(context, count, 1)}};
  (*out)->mlir = append(node, weft_onnx_create_op_with_region(node->location, "linalg.generic", &type, count + 1,
                                                              values, 3, attributes, region));
  return weft_ok();
}

weft_status_t weft_onnx_generic(node_t* node, const weft_onnx_generic_t* generic, value_t** out) {
  shape_t shape = {0};
  int64_t steps = 1;
  bool is_empty = false;
  for (int32_t d = 0; d < generic->rank; ++d) {
    if (!(generic->reduction >> d & 1)) {
      NODE_REQUIRE(node, shape.rank < WEFT_ONNX_MAX_RANK, UNSUPPORTED, "the result has more than %d dimensions",
                   WEFT_ONNX_MAX_RANK);
      shape.extent[shape.rank++] = generic->extent[d];
    }
    is_empty |= generic->extent[d] == 0;
    if (!is_empty && !weft_checked_mul(steps, generic->extent[d], &steps))
      return NODE_ERROR(node, INVALID_INPUT, "its iteration space is too large");
  }
  int64_t count;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count), INVALID_INPUT, "a tensor of shape %s is too large",
               weft_onnx_shape_format(&shape).text);
  if (is_empty) return fold(node, generic, &shape, 0, out);
  if (is_worth_folding(generic, &shape, steps)) return fold(node, generic, &shape, steps, out);
  return emit(node, generic, &shape, out);
}
