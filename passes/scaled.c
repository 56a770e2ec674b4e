#include "passes/scaled.h"

#include <math.h>
#include <mlir-c/BuiltinAttributes.h>

typedef struct term_t { // a value of a body
  bool is_constant;
  weft_field_t constant;
  weft_linear_t linear;
} term_t;
typedef struct match_t {
  weft_arena_t* arena;
  const weft_generic_t* generic;
  int32_t x;
  bool is_integer, is_unsigned, is_signed;
  const weft_linear_t* before;
} match_t;

static MlirValue operand(MlirOperation op, intptr_t i) {
  return mlirOperationGetOperand(op, i);
}

static weft_status_t number(match_t* match, double value, weft_field_t* out) {
  return weft_field_number(match->arena, match->generic->loop_count, value, out);
}

static weft_status_t leaf(match_t* match, MlirValue value, bool is_unsigned, term_t* out, bool* out_matches) {
  if (!mlirBlockEqual(mlirBlockArgumentGetOwner(value), match->generic->body)) return weft_ok();
  int32_t argument = (int32_t)mlirBlockArgumentGetArgNumber(value);
  if (argument == match->x) {
    out->linear = *match->before;
    *out_matches = true;
    return weft_ok();
  }
  out->is_constant = true;
  return weft_field_operand(match->arena, match->generic, argument, is_unsigned, &out->constant, out_matches);
}

static weft_status_t evaluate(match_t* match, MlirValue value, term_t* out, bool* out_matches);

static weft_status_t combine(match_t* match, weft_field_op_e op, const term_t* a, const term_t* b, term_t* out,
                             bool* out_matches) {
  *out_matches = false;
  if (a->is_constant && b->is_constant) {
    out->is_constant = *out_matches = true;
    return weft_field_combine(match->arena, op, &a->constant, &b->constant, true, &out->constant);
  }
  if (!a->is_constant && !b->is_constant) return weft_ok();
  const term_t *linear = a->is_constant ? b : a, *constant = a->is_constant ? a : b;
  if (a->is_constant && op == WEFT_FIELD_DIV) return weft_ok();
  *out_matches = true;
  out->linear = linear->linear;
  if (op == WEFT_FIELD_MUL || op == WEFT_FIELD_DIV)
    return weft_field_combine(match->arena, op, &linear->linear.scale, &constant->constant, true, &out->linear.scale);
  weft_field_t steps, minus_one;
  if (a->is_constant && op == WEFT_FIELD_SUB) { // c - s (q + t) = -s (q + t - c / s)
    WEFT_RETURN_IF_ERROR(number(match, -1, &minus_one));
    WEFT_RETURN_IF_ERROR(
        weft_field_combine(match->arena, WEFT_FIELD_MUL, &linear->linear.scale, &minus_one, true, &out->linear.scale));
    op = WEFT_FIELD_ADD;
  }
  WEFT_RETURN_IF_ERROR(
      weft_field_combine(match->arena, WEFT_FIELD_DIV, &constant->constant, &out->linear.scale, false, &steps));
  return weft_field_combine(match->arena, op, &linear->linear.shift, &steps, false, &out->linear.shift);
}

static weft_status_t evaluate_op(match_t* match, MlirOperation op, term_t* out, bool* out_matches) {
  static const struct {
    const char* name;
    weft_field_op_e op;
  } known[] = {{"arith.addf", WEFT_FIELD_ADD},
               {"arith.subf", WEFT_FIELD_SUB},
               {"arith.mulf", WEFT_FIELD_MUL},
               {"arith.divf", WEFT_FIELD_DIV}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (!weft_ir_is(op, known[i].name)) continue;
    term_t side[2] = {0};
    for (int32_t s = 0; s < 2; ++s) {
      WEFT_RETURN_IF_ERROR(evaluate(match, operand(op, s), &side[s], out_matches));
      if (!*out_matches) return weft_ok();
    }
    return combine(match, known[i].op, &side[0], &side[1], out, out_matches);
  }
  bool is_signed = weft_ir_is(op, "arith.sitofp"), is_unsigned = weft_ir_is(op, "arith.uitofp");
  if ((!is_signed && !is_unsigned) || !mlirValueIsABlockArgument(operand(op, 0))) return weft_ok();
  if (match->is_integer && mlirBlockArgumentGetArgNumber(operand(op, 0)) == match->x) {
    match->is_signed |= is_signed;
    match->is_unsigned |= is_unsigned;
  }
  return leaf(match, operand(op, 0), is_unsigned, out, out_matches);
}

static weft_status_t evaluate(match_t* match, MlirValue value, term_t* out, bool* out_matches) {
  *out_matches = false;
  double constant;
  if (mlirValueIsABlockArgument(value)) {
    bool converts = match->is_integer && mlirBlockArgumentGetArgNumber(value) == match->x;
    return converts ? weft_ok() : leaf(match, value, false, out, out_matches);
  }
  if (weft_ir_splat(value, &constant)) {
    out->is_constant = *out_matches = true;
    return number(match, constant, &out->constant);
  }
  return evaluate_op(match, weft_ir_producer(value), out, out_matches);
}

// The other operand of a two-sided op with a constant.
static bool with_constant(MlirValue value, const char* name, MlirValue* out_other, double* out_constant) {
  MlirOperation op = mlirValueIsAOpResult(value) ? weft_ir_producer(value) : (MlirOperation){NULL};
  if (!weft_ir_is(op, name)) return false;
  for (intptr_t i = 0; i < 2; ++i) {
    if (!mlirValueIsAOpResult(operand(op, 1 - i)) || !weft_ir_splat(operand(op, 1 - i), out_constant)) continue;
    *out_other = operand(op, i);
    return true;
  }
  return false;
}

// Loops are the dimensions of the result and of input x.
static bool is_pointwise(const weft_generic_t* generic, int32_t x) {
  if (generic->operand_count != generic->input_count + 1 || weft_generic_reduces(generic) ||
      generic->loop_count > (int32_t)WEFT_MAX_RANK)
    return false;
  const int32_t both[] = {x, generic->input_count};
  for (int32_t i = 0; i < 2; ++i) {
    const weft_map_t* map = &generic->map[both[i]];
    if (map->rank != generic->loop_count) return false;
    for (int32_t r = 0; r < map->rank; ++r) {
      int32_t loop = weft_generic_row_loop(generic, &map->row[r]);
      if (loop != r && !(loop == -1 && generic->extent[r] == 1)) return false;
    }
  }
  return true;
}

static MlirValue yielded(const weft_generic_t* generic) {
  return operand(mlirBlockGetTerminator(generic->body), 0);
}

static weft_status_t finish(match_t* match, MlirValue value, weft_linear_t* out, bool* out_matches) {
  term_t term = {0};
  WEFT_RETURN_IF_ERROR(evaluate(match, value, &term, out_matches));
  *out_matches = *out_matches && !term.is_constant && !(match->is_signed && match->is_unsigned);
  double lo, hi;
  if (*out_matches) {
    *out = term.linear;
    weft_field_range(&out->scale, &lo, &hi);
    *out_matches = lo > 0 && isfinite(hi); // a zero or negative one would turn the order round
    weft_field_range(&out->shift, &lo, &hi);
    *out_matches = *out_matches && isfinite(lo) && isfinite(hi);
  }
  return weft_ok();
}

weft_status_t weft_linear_match(weft_arena_t* arena, const weft_generic_t* generic, int32_t x, bool is_integer,
                                const weft_linear_t* before, weft_linear_t* out, bool* out_is_unsigned,
                                bool* out_matches) {
  match_t match = {.arena = arena, .generic = generic, .x = x, .is_integer = is_integer, .before = before};
  *out_matches = false;
  if (!is_pointwise(generic, x)) return weft_ok();
  MlirValue value = yielded(generic), inner;
  double constant;
  bool clips = !is_integer && with_constant(value, "arith.maximumf", &inner, &constant) && constant == 0;
  WEFT_RETURN_IF_ERROR(finish(&match, clips ? inner : value, out, out_matches));
  out->is_clipped = clips;
  *out_is_unsigned = match.is_unsigned;
  return weft_ok();
}

weft_status_t weft_quantizer_match(weft_arena_t* arena, const weft_generic_t* generic, const weft_linear_t* before,
                                   weft_quantizer_t* out, bool* out_matches) {
  match_t match = {.arena = arena, .generic = generic, .before = before};
  *out = (weft_quantizer_t){0};
  *out_matches = false;
  if (!is_pointwise(generic, 0) || mlirValueIsABlockArgument(yielded(generic))) return weft_ok();
  MlirOperation cast = weft_ir_producer(yielded(generic));
  out->is_unsigned = weft_ir_is(cast, "arith.fptoui");
  if (!out->is_unsigned && !weft_ir_is(cast, "arith.fptosi")) return weft_ok();
  double lo, hi, zero = 0, first = out->is_unsigned ? 0 : -128;
  MlirValue value = operand(cast, 0), inner;
  if (!with_constant(value, "arith.minimumf", &value, &hi) || !with_constant(value, "arith.maximumf", &value, &lo) ||
      lo != first || hi != first + 255)
    return weft_ok();
  if (with_constant(value, "arith.addf", &inner, &zero)) value = inner;
  if (mlirValueIsABlockArgument(value) || !weft_ir_is(weft_ir_producer(value), "math.roundeven")) return weft_ok();
  out->rounded = value;
  out->zero = out->is_unsigned ? zero - 128 : zero;
  return finish(&match, operand(weft_ir_producer(value), 0), &out->steps, out_matches);
}

// --- Reductions

static MlirValue argument(const weft_generic_t* generic, int32_t i) {
  return mlirBlockGetArgument(generic->body, i);
}

// The yielded value is `name`(accumulator, other).
static bool accumulates(const weft_generic_t* generic, const char* name, double initial, MlirValue* out_other) {
  double from;
  if (generic->operand_count != generic->input_count + 1 || !weft_generic_reduces(generic) ||
      mlirValueIsABlockArgument(yielded(generic)) ||
      !weft_ir_splat(operand(generic->op, generic->input_count), &from) || from != initial)
    return false;
  MlirOperation op = weft_ir_producer(yielded(generic));
  if (!weft_ir_is(op, name)) return false;
  MlirValue accumulator = argument(generic, generic->input_count);
  bool left = mlirValueEqual(operand(op, 0), accumulator), right = mlirValueEqual(operand(op, 1), accumulator);
  *out_other = operand(op, left ? 1 : 0);
  return left != right;
}

bool weft_is_contraction(const weft_generic_t* generic) {
  MlirValue product;
  if (generic->input_count != 2 || !accumulates(generic, "arith.addf", 0, &product) ||
      mlirValueIsABlockArgument(product))
    return false;
  MlirOperation op = weft_ir_producer(product);
  if (!weft_ir_is(op, "arith.mulf")) return false;
  bool straight =
      mlirValueEqual(operand(op, 0), argument(generic, 0)) && mlirValueEqual(operand(op, 1), argument(generic, 1));
  return straight ||
         (mlirValueEqual(operand(op, 0), argument(generic, 1)) && mlirValueEqual(operand(op, 1), argument(generic, 0)));
}

static bool is_of_first(const weft_generic_t* generic, MlirValue value) {
  return generic->input_count > 0 && mlirValueEqual(value, argument(generic, 0));
}

bool weft_is_sum(const weft_generic_t* generic) {
  MlirValue value;
  return accumulates(generic, "arith.addf", 0, &value) && is_of_first(generic, value);
}

bool weft_is_maximum(const weft_generic_t* generic) {
  MlirValue value;
  return accumulates(generic, "arith.maximumf", -INFINITY, &value) && is_of_first(generic, value);
}
