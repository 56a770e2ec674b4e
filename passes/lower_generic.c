// One linalg.generic of a kernel: its results, pointwise or accumulated.
#include <inttypes.h>
#include <string.h>

#include "passes/body.h"

static uint32_t loop_mask(const weft_body_t* body) {
  uint32_t mask = 0;
  for (int32_t l = 0; l < body->generic->loop_count; ++l)
    if (body->loop[l] >= 0) mask |= 1u << body->loop[l];
  return mask;
}

// The buffer of result i: its rows are the result's map.
static weft_buffer_t result_buffer(const weft_body_t* body, int32_t i, weft_dtype_e dtype, bool leaves) {
  const weft_generic_t* generic = body->generic;
  const weft_map_t* map = &generic->map[generic->input_count + i];
  weft_buffer_t buffer = {
      .kind = leaves ? WEFT_BUFFER_RESULT : WEFT_BUFFER_TEMPORARY, .dtype = dtype, .rank = map->rank, .tensor = -1};
  for (int32_t r = 0; r < map->rank; ++r) {
    buffer.row[r].offset = map->row[r].offset;
    for (int32_t l = 0; l < generic->loop_count; ++l)
      if (body->loop[l] >= 0) buffer.row[r].coefficient[body->loop[l]] += map->row[r].coefficient[l];
  }
  return buffer;
}

static weft_status_t append(weft_body_t* body, weft_op_e op, weft_dtype_e dtype, uint32_t loops, int32_t destination,
                            const weft_scalar_t* a, const weft_scalar_t* b) {
  weft_operation_t operation = {.op = op,
                                .dtype = dtype,
                                .loops = loops,
                                .destination = destination,
                                .source = {a->buffer, b ? b->buffer : -1, -1}};
  operation.immediate[0] = a->buffer < 0 ? a->immediate : 0;
  operation.immediate[1] = b && b->buffer < 0 ? b->immediate : 0;
  return weft_draft_add_operation(body->draft, &operation);
}

// --- Accumulation: yield combiner(acc, x)

typedef struct accumulation_t {
  weft_op_e combiner;
  weft_dtype_e dtype; // as the combiner reads it
  MlirValue x;
  bool is_subtracted; // acc - x: a sum of -x
} accumulation_t;

static bool find_difference(MlirOperation op, MlirValue accumulator, accumulation_t* out) {
  if (!weft_ir_is(op, "arith.subf") && !weft_ir_is(op, "arith.subi")) return false;
  out->x = mlirOperationGetOperand(op, 1);
  out->combiner = WEFT_OP_ADD;
  out->is_subtracted = true;
  return mlirValueEqual(mlirOperationGetOperand(op, 0), accumulator) && !mlirValueEqual(out->x, accumulator) &&
         weft_body_dtype(accumulator, false, &out->dtype);
}

static bool find_accumulation(MlirValue yielded, MlirValue accumulator, accumulation_t* out) {
  static const struct {
    const char* name;
    weft_op_e op;
    bool is_unsigned;
  } combiners[] = {
      {"arith.addf", WEFT_OP_ADD, false}, {"arith.addi", WEFT_OP_ADD, false},     {"arith.mulf", WEFT_OP_MUL, false},
      {"arith.muli", WEFT_OP_MUL, false}, {"arith.maximumf", WEFT_OP_MAX, false}, {"arith.maxsi", WEFT_OP_MAX, false},
      {"arith.maxui", WEFT_OP_MAX, true}, {"arith.minimumf", WEFT_OP_MIN, false}, {"arith.minsi", WEFT_OP_MIN, false},
      {"arith.minui", WEFT_OP_MIN, true}, {"arith.ori", WEFT_OP_MAX, false},      {"arith.andi", WEFT_OP_MIN, false}};
  MlirOperation op = weft_ir_producer(yielded);
  for (size_t i = 0; i < sizeof(combiners) / sizeof(combiners[0]); ++i) {
    if (!weft_ir_is(op, combiners[i].name)) continue;
    if (!weft_body_dtype(yielded, combiners[i].is_unsigned, &out->dtype)) return false;
    // On bools, or is the larger and and the smaller; on wider integers they have no combiner.
    bool bitwise = i >= 10;
    if (bitwise && out->dtype != WEFT_DTYPE_BOOL) return false;
    MlirValue left = mlirOperationGetOperand(op, 0), right = mlirOperationGetOperand(op, 1);
    bool is_left = mlirValueEqual(left, accumulator), is_right = mlirValueEqual(right, accumulator);
    if (is_left == is_right) return false;
    *out = (accumulation_t){combiners[i].op, out->dtype, is_left ? right : left, false};
    return true;
  }
  return find_difference(op, accumulator, out);
}

// acc += a * b in one operation. Factors that were widened to the accumulator's type are read as they are: their
// product is exact there.
static weft_status_t accumulate_products(weft_body_t* body, MlirOperation product, weft_dtype_e dtype, int32_t to,
                                         bool* out_done) {
  MlirValue factor[2] = {mlirOperationGetOperand(product, 0), mlirOperationGetOperand(product, 1)}, narrow[2];
  weft_dtype_e from[2];
  if (weft_body_before_widening(factor[0], &narrow[0], &from[0]) &&
      weft_body_before_widening(factor[1], &narrow[1], &from[1]) && from[0] == from[1]) {
    factor[0] = narrow[0];
    factor[1] = narrow[1];
    dtype = from[0];
  }
  weft_scalar_t a[2];
  for (int32_t i = 0; i < 2; ++i) WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, factor[i], &a[i]));
  *out_done = true;
  return append(body, WEFT_OP_MLA, dtype, loop_mask(body), to, &a[0], &a[1]);
}

static weft_status_t accumulate(weft_body_t* body, const accumulation_t* accumulation, int32_t to) {
  MlirOperation op = weft_ir_producer(accumulation->x);
  weft_scalar_t x, self = {.buffer = to};
  if (accumulation->is_subtracted) {
    weft_scalar_t minus_one = {.buffer = -1, .immediate = -1, .dtype = accumulation->dtype};
    WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, accumulation->x, &x));
    return append(body, WEFT_OP_MLA, accumulation->dtype, loop_mask(body), to, &x, &minus_one);
  }
  if (accumulation->combiner == WEFT_OP_ADD) {
    MlirValue narrow;
    weft_dtype_e from;
    bool done = false;
    if (weft_ir_is(op, "arith.mulf") || weft_ir_is(op, "arith.muli"))
      WEFT_RETURN_IF_ERROR(accumulate_products(body, op, accumulation->dtype, to, &done));
    if (done) return weft_ok();
    if (weft_body_before_widening(accumulation->x, &narrow, &from)) { // one operation, not a conversion and a sum
      weft_scalar_t one = {.buffer = -1, .immediate = 1, .dtype = from};
      WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, narrow, &x));
      if (from != WEFT_DTYPE_BOOL) return append(body, WEFT_OP_MLA, from, loop_mask(body), to, &x, &one);
    }
  }
  WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, accumulation->x, &x));
  return append(body, accumulation->combiner, accumulation->dtype, loop_mask(body), to, &self, &x);
}

static bool is_neutral(weft_op_e combiner, weft_dtype_e dtype, double value) {
  return value == weft_op_neutral(combiner, dtype); // -0 and 0 are both neutral to a sum
}

static weft_status_t lower_accumulation(weft_body_t* body, int32_t i, MlirValue yielded, bool leaves,
                                        weft_scalar_t* out) {
  const weft_generic_t* generic = body->generic;
  int32_t operand = generic->input_count + i;
  MlirValue accumulator = mlirBlockGetArgument(generic->body, operand);
  accumulation_t accumulation;
  if (!find_accumulation(yielded, accumulator, &accumulation))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, generic->op,
                         "a reduction has to be a sum, product, maximum or minimum of its accumulator and one value");
  weft_buffer_t buffer = result_buffer(body, i, accumulation.dtype, leaves);
  uint32_t result_loops = weft_buffer_dims(&buffer);
  int32_t to;
  WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(body->draft, &buffer, &to));
  // What x needs comes first, so that filling, reducing and what follows stand together.
  weft_scalar_t initial,
      neutral = {.buffer = -1, .immediate = weft_op_neutral(accumulation.combiner, accumulation.dtype)};
  WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, accumulator, &initial));
  bool plain = initial.buffer < 0 && is_neutral(accumulation.combiner, accumulation.dtype, initial.immediate);
  WEFT_RETURN_IF_ERROR(append(body, WEFT_OP_MOV, accumulation.dtype, result_loops, to, &neutral, NULL));
  WEFT_RETURN_IF_ERROR(accumulate(body, &accumulation, to));
  *out = (weft_scalar_t){.buffer = to, .dtype = accumulation.dtype};
  if (plain) return weft_ok();
  // Partial results must not each contain the initial value: it joins after they are combined.
  return append(body, accumulation.combiner, accumulation.dtype, result_loops, to, out, &initial);
}

// --- Pointwise

static weft_status_t lower_pointwise(weft_body_t* body, int32_t i, MlirValue yielded, bool leaves, weft_scalar_t* out) {
  weft_draft_t* draft = body->draft;
  weft_scalar_t value;
  WEFT_RETURN_IF_ERROR(weft_body_evaluate(body, yielded, &value));
  *out = value;
  if (!leaves) return weft_ok();
  weft_buffer_t buffer = result_buffer(body, i, value.dtype, true);
  if (value.buffer >= body->first_buffer) {
    // A temporary of this body becomes the result itself, unless it is one already or holds fewer elements.
    weft_buffer_t* made = &draft->buffer.data[value.buffer];
    if (made->kind == WEFT_BUFFER_TEMPORARY && weft_buffer_dims(made) == weft_buffer_dims(&buffer)) {
      buffer.dtype = made->dtype;
      *made = buffer;
      return weft_ok();
    }
  }
  WEFT_RETURN_IF_ERROR(weft_draft_add_buffer(draft, &buffer, &out->buffer));
  return append(body, WEFT_OP_MOV, value.dtype, weft_buffer_dims(&buffer), out->buffer, &value, NULL);
}

weft_status_t weft_draft_generic(weft_draft_t* draft, const weft_generic_t* generic, const int32_t loop[WEFT_MAX_DIMS],
                                 const bool* leaves) {
  weft_body_t* body = NULL;
  weft_allocator_t allocator = draft->lowering->allocator;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, 1, sizeof(*body), (void**)&body));
  *body = (weft_body_t){.draft = draft, .generic = generic, .loop = loop, .first_buffer = (int32_t)draft->buffer.count};
  MlirOperation yield = mlirBlockGetTerminator(generic->body);
  bool reduces = weft_generic_reduces(generic);
  weft_status_t status = weft_ok();
  for (int32_t i = 0; i < generic->operand_count - generic->input_count && !status; ++i) {
    MlirValue yielded = mlirOperationGetOperand(yield, i);
    weft_scalar_t scalar;
    status = reduces ? lower_accumulation(body, i, yielded, leaves[i], &scalar)
                     : lower_pointwise(body, i, yielded, leaves[i], &scalar);
    MlirValue result = mlirOperationGetResult(generic->op, i);
    if (!status) status = WEFT_ARRAY_PUSH(allocator, &draft->made, (weft_made_t){result, scalar});
  }
  weft_allocator_free(allocator, body);
  return status;
}
