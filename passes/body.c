// Scalar ops of a body -> operations over the loops that their operands depend on.
#include "passes/body.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "passes/scalar_ops.h"

enum { S = 0, U = 1 };
typedef struct simple_t {
  const char* name;
  weft_op_e op;
  bool is_unsigned;
} simple_t;
static const simple_t simple_ops[] = {
#define X(name, op, sign) {name, WEFT_OP_##op, sign},
    WEFT_SCALAR_OPS(X)
#undef X
};
typedef struct cast_t {
  const char* name;
  bool from_unsigned, to_unsigned;
} cast_t;
static const cast_t casts[] = {
#define X(name, from, to) {name, from, to},
    WEFT_SCALAR_CASTS(X)
#undef X
};

static weft_dtype_e as_unsigned(weft_dtype_e dtype) {
  switch (dtype) {
  case WEFT_DTYPE_I8:
    return WEFT_DTYPE_U8;
  case WEFT_DTYPE_I16:
    return WEFT_DTYPE_U16;
  case WEFT_DTYPE_I32:
    return WEFT_DTYPE_U32;
  case WEFT_DTYPE_I64:
    return WEFT_DTYPE_U64;
  default:
    return dtype;
  }
}

bool weft_body_dtype(MlirValue value, bool is_unsigned, weft_dtype_e* out_dtype) {
  MlirType type = mlirValueGetType(value);
  if (mlirTypeIsAIndex(type)) return *out_dtype = WEFT_DTYPE_I32, true;
  if (!weft_tensor_dtype(type, out_dtype)) return false;
  if (is_unsigned) *out_dtype = as_unsigned(*out_dtype);
  return true;
}

bool weft_body_before_widening(MlirValue value, MlirValue* out_narrow, weft_dtype_e* out_dtype) {
  MlirOperation op = weft_ir_producer(value);
  bool unsigned_source = weft_ir_is(op, "arith.extui");
  if (!unsigned_source && !weft_ir_is(op, "arith.extf") && !weft_ir_is(op, "arith.extsi")) return false;
  *out_narrow = mlirOperationGetOperand(op, 0);
  return weft_body_dtype(*out_narrow, unsigned_source, out_dtype);
}

// The temporary of an operation. Where all sources share their rows it has the same ones; else a row for each
// dimension.
static weft_status_t temporary_for(weft_body_t* body, weft_dtype_e dtype, int32_t count, const weft_scalar_t* source,
                                   weft_buffer_t* out) {
  const weft_buffer_t* like = NULL;
  bool alike = true;
  uint32_t dims = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (source[i].buffer < 0) continue;
    const weft_buffer_t* buffer = &body->draft->buffer.data[source[i].buffer];
    dims |= weft_buffer_dims(buffer);
    alike = alike && (!like || weft_buffer_same_layout(like, buffer));
    like = buffer;
  }
  *out = (weft_buffer_t){.kind = WEFT_BUFFER_TEMPORARY, .dtype = dtype, .tensor = -1};
  alike = alike && !(dims & body->draft->sequential); // a trip's value is gone in the next
  dims &= ~body->draft->sequential;
  if (like && alike) {
    out->rank = like->rank;
    memcpy(out->row, like->row, sizeof(out->row));
    return weft_ok();
  }
  if (__builtin_popcount(dims) > WEFT_MAX_RANK)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, body->generic->op,
                         "an intermediate value depends on %d loops, at most %d work", __builtin_popcount(dims),
                         (int)WEFT_MAX_RANK);
  for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d)
    if (dims >> d & 1) out->row[out->rank++].coefficient[d] = 1;
  return weft_ok();
}

weft_status_t weft_body_emit(weft_body_t* body, weft_op_e op, weft_dtype_e dtype, weft_dtype_e result, int32_t count,
                             const weft_scalar_t* source, weft_scalar_t* out_scalar) {
  weft_buffer_t buffer;
  weft_operation_t operation = {.op = op, .dtype = dtype, .source = {-1, -1, -1}};
  WEFT_RETURN_IF_ERROR(temporary_for(body, result, count, source, &buffer));
  WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(body->draft, &buffer, &operation.destination));
  operation.loops = weft_buffer_dims(&buffer);
  for (int32_t i = 0; i < count; ++i) {
    operation.source[i] = source[i].buffer;
    operation.immediate[i] = source[i].buffer < 0 ? source[i].immediate : 0;
  }
  *out_scalar = (weft_scalar_t){.buffer = operation.destination, .dtype = result};
  return weft_draft_add_operation(body->draft, &operation);
}

// linalg.index: an operand that counts.
static weft_status_t evaluate_index(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  int64_t loop = mlirIntegerAttrGetValueInt(weft_ir_attribute(op, "dim"));
  *out = (weft_scalar_t){.buffer = -1, .dtype = WEFT_DTYPE_I32};
  if (body->loop[loop] < 0) return weft_ok();
  int64_t extent = body->generic->extent[loop];
  weft_lowering_t* lowering = body->draft->lowering;
  int32_t* data = NULL;
  weft_source_t source;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(lowering->allocator, (size_t)extent, sizeof(*data), (void**)&data));
  for (int64_t i = 0; i < extent; ++i) data[i] = (int32_t)i;
  weft_status_t status = weft_lower_constant(lowering, "index", WEFT_DTYPE_I32,
                                             &(weft_shape_t){.rank = 1, .extent = {extent}}, data, &source);
  weft_allocator_free(lowering->allocator, data);
  if (status) return status;
  weft_buffer_t buffer = {.kind = WEFT_BUFFER_OPERAND,
                          .dtype = WEFT_DTYPE_I32,
                          .rank = 1,
                          .piece_count = 1,
                          .piece = source.piece,
                          .tensor = -1};
  buffer.row[0].coefficient[body->loop[loop]] = 1;
  return weft_draft_add_buffer(body->draft, &buffer, &out->buffer);
}

// A tile's conversion to integers saturates, NaN becomes 0: a clamp to the type's own range is no operation before it.
static MlirValue before_saturation(MlirValue value, weft_dtype_e to) {
  static const char* const names[] = {"arith.minimumf", "arith.maximumf"};
  size_t bits = 8 * weft_dtype_size(to);
  if (to == WEFT_DTYPE_BOOL || bits > 16) return value;
  bool is_signed = weft_dtype_is_signed(to);
  double first = is_signed ? -ldexp(1, (int)bits - 1) : 0, bound[] = {first + ldexp(1, (int)bits) - 1, first}, constant;
  MlirValue inner = value;
  for (int32_t i = 0; i < 2; ++i) {
    MlirOperation op = weft_ir_producer(inner);
    if (!weft_ir_is(op, names[i]) || !weft_ir_splat(mlirOperationGetOperand(op, 1), &constant) || constant != bound[i])
      return value;
    inner = mlirOperationGetOperand(op, 0);
  }
  return inner;
}

static weft_status_t evaluate_cast(weft_body_t* body, MlirOperation op, const cast_t* cast, weft_scalar_t* out) {
  weft_dtype_e from, to;
  weft_scalar_t source;
  if (!weft_body_dtype(mlirOperationGetOperand(op, 0), cast->from_unsigned, &from) ||
      !weft_body_dtype(mlirOperationGetResult(op, 0), cast->to_unsigned, &to))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  MlirValue operand = mlirOperationGetOperand(op, 0);
  if (weft_dtype_is_float(from) && !weft_dtype_is_float(to)) operand = before_saturation(operand, to);
  WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, operand, &source));
  if (from == to) return *out = source, weft_ok();
  return weft_body_emit(body, WEFT_OP_MOV, from, to, 1, &source, out);
}

static weft_status_t evaluate_simple(weft_body_t* body, MlirOperation op, const simple_t* simple, weft_scalar_t* out) {
  weft_scalar_t source[WEFT_MAX_SOURCES];
  weft_dtype_e dtype, result;
  int32_t count = weft_op_source_count(simple->op);
  if (!weft_body_dtype(mlirOperationGetOperand(op, 0), simple->is_unsigned, &dtype) ||
      !weft_body_dtype(mlirOperationGetResult(op, 0), simple->is_unsigned, &result))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  for (int32_t i = 0; i < count; ++i)
    WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, mlirOperationGetOperand(op, i), &source[i]));
  return weft_body_emit(body, simple->op, dtype, result, count, source, out);
}

static weft_status_t evaluate_op(weft_body_t* body, MlirOperation op, weft_scalar_t* out) {
  for (size_t i = 0; i < sizeof(simple_ops) / sizeof(simple_ops[0]); ++i)
    if (weft_ir_is(op, simple_ops[i].name)) return evaluate_simple(body, op, &simple_ops[i], out);
  for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); ++i)
    if (weft_ir_is(op, casts[i].name)) return evaluate_cast(body, op, &casts[i], out);
  if (weft_ir_is(op, "linalg.index")) return evaluate_index(body, op, out);
  bool known;
  WEFT_RETURN_IF_ERROR(weft_body_composite(body, op, out, &known));
  return known ? weft_ok() : weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "a tile has no instruction for it");
}

// An operand of the generic: a tensor of the kernel, one from outside, or a scalar.
static weft_status_t evaluate_argument(weft_body_t* body, int32_t operand, weft_scalar_t* out) {
  const weft_generic_t* generic = body->generic;
  MlirValue value = mlirOperationGetOperand(generic->op, operand);
  if (!weft_ir_is_tensor(value)) return weft_body_evaluate(body, value, out);
  weft_map_t rows = {.rank = generic->map[operand].rank};
  for (int32_t r = 0; r < rows.rank; ++r) {
    rows.row[r].offset = generic->map[operand].row[r].offset;
    for (int32_t l = 0; l < generic->loop_count; ++l)
      if (body->loop[l] >= 0) rows.row[r].coefficient[body->loop[l]] += generic->map[operand].row[r].coefficient[l];
  }
  if (body->draft->loop) return weft_loop_operand(body->draft->loop, value, &rows, out);
  int32_t dim[WEFT_MAX_RANK];
  const weft_space_value_t* found = weft_space_find(&body->draft->space, value, dim);
  for (size_t i = 0; found && found->made && i < body->draft->made.count; ++i)
    if (mlirValueEqual(body->draft->made.data[i].value, found->value)) {
      *out = body->draft->made.data[i].scalar;
      return weft_ok();
    }
  return weft_draft_operand(body->draft, value, &rows, out);
}

weft_status_t weft_body_evaluate(weft_body_t* body, MlirValue value, weft_scalar_t* out) {
  for (int32_t i = 0; i < body->value_count; ++i)
    if (mlirValueEqual(body->value[i].value, value)) {
      *out = body->value[i].scalar;
      return weft_ok();
    }
  MlirOperation op = weft_ir_producer(value);
  *out = (weft_scalar_t){.buffer = -1};
  if (mlirOperationIsNull(op)) {
    if (!mlirBlockEqual(mlirBlockArgumentGetOwner(value), body->generic->body))
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, body->generic->op, "it uses a scalar that is no constant");
    WEFT_RETURN_IF_ERROR(evaluate_argument(body, (int32_t)mlirBlockArgumentGetArgNumber(value), out));
  } else if (weft_ir_splat(value, &out->immediate)) {
    if (!weft_body_dtype(value, false, &out->dtype))
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "no such element type on a tile");
  } else {
    WEFT_RETURN_IF_ERROR(evaluate_op(body, op, out));
  }
  if (body->value_count == WEFT_MAX_BODY)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, body->generic->op, "its body has more than %d values",
                         (int)WEFT_MAX_BODY);
  body->value[body->value_count++] = (weft_made_t){value, *out};
  return weft_ok();
}
