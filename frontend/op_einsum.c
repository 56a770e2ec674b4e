// Einsum: a contraction for every two operands, its dimensions named by letters.
#include <string.h>

#include "frontend/operators.h"

// A label is a letter, or a place in the ellipsis counted from its end. A label of the result or of operands still to
// come is kept; the others are summed over.
enum { LETTERS = 52, LABELS = LETTERS + WEFT_ONNX_MAX_RANK, MAX_TERMS = 16 };
typedef struct term_t {
  int32_t rank;
  int32_t label[WEFT_ONNX_MAX_RANK];
} term_t;
typedef struct einsum_t {
  int32_t count;
  term_t term[MAX_TERMS], result;
  int32_t ellipsis; // its longest
  int64_t extent[LABELS];
} einsum_t;

static int32_t letter_of(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

// Up to a comma, an arrow or the end; rank < 0: the ellipsis is as long as the longest.
static weft_status_t parse_term(node_t* node, const char** at, int32_t rank, int32_t longest, term_t* out) {
  int32_t letters = 0;
  *out = (term_t){0};
  for (const char* c = *at; *c && *c != ',' && *c != '-'; ++c) letters += letter_of(*c) >= 0;
  int32_t dots = rank < 0 ? longest : rank - letters;
  bool has_dots = false;
  for (; **at && **at != ',' && **at != '-'; ++*at) {
    if (**at == ' ') continue;
    NODE_REQUIRE(node, out->rank < WEFT_ONNX_MAX_RANK, UNSUPPORTED, "a term has more than %d dimensions",
                 WEFT_ONNX_MAX_RANK);
    if (strncmp(*at, "...", 3) == 0 && !has_dots) {
      NODE_REQUIRE(node, dots >= 0 && out->rank + dots <= WEFT_ONNX_MAX_RANK, INVALID_INPUT,
                   "an operand of rank %d has %d labels", rank, letters);
      for (int32_t i = dots; i-- > 0;) out->label[out->rank++] = LETTERS + i;
      *at += 2;
      has_dots = true;
      continue;
    }
    int32_t label = letter_of(**at);
    NODE_REQUIRE(node, label >= 0, INVALID_INPUT, "the equation has '%c', which is no label", **at);
    out->label[out->rank++] = label;
  }
  NODE_REQUIRE(node, rank < 0 || out->rank == rank, INVALID_INPUT, "an operand of rank %d has %d labels", rank,
               out->rank);
  return weft_ok();
}

// Without an arrow: the ellipsis, then what occurs once, by the alphabet.
static void implicit_result(einsum_t* einsum) {
  int32_t uses[LABELS] = {0};
  for (int32_t t = 0; t < einsum->count; ++t)
    for (int32_t i = 0; i < einsum->term[t].rank; ++i) uses[einsum->term[t].label[i]]++;
  for (int32_t i = einsum->ellipsis; i-- > 0;) einsum->result.label[einsum->result.rank++] = LETTERS + i;
  for (int32_t l = 0; l < LETTERS; ++l)
    if (uses[l] == 1 && einsum->result.rank < WEFT_ONNX_MAX_RANK) einsum->result.label[einsum->result.rank++] = l;
}

static weft_status_t note_extents(node_t* node, einsum_t* einsum, const term_t* term, const shape_t* shape) {
  for (int32_t i = 0; i < term->rank; ++i) {
    int64_t *known = &einsum->extent[term->label[i]], extent = shape->extent[i];
    NODE_REQUIRE(node, *known < 0 || *known == extent || *known == 1 || extent == 1, INVALID_INPUT,
                 "a label stands for %lld and for %lld elements", (long long)*known, (long long)extent);
    if (*known < 0 || *known == 1) *known = extent;
  }
  return weft_ok();
}

static weft_status_t parse(node_t* node, einsum_t* einsum) {
  const char* at;
  TRY(weft_onnx_attribute_string(node, "equation", "", &at));
  einsum->count = node->input_count;
  NODE_REQUIRE(node, einsum->count <= MAX_TERMS, UNSUPPORTED, "it has %d operands, at most %d are supported",
               einsum->count, MAX_TERMS);
  for (int32_t l = 0; l < LABELS; ++l) einsum->extent[l] = -1;
  for (int32_t t = 0; t < einsum->count; ++t) {
    term_t* term = &einsum->term[t];
    TRY(parse_term(node, &at, node->input[t]->shape.rank, 0, term));
    NODE_REQUIRE(node, *at == (t + 1 < einsum->count ? ',' : *at) && (t + 1 < einsum->count || *at != ','),
                 INVALID_INPUT, "the equation does not have %d terms", einsum->count);
    if (*at == ',') ++at;
    TRY(note_extents(node, einsum, term, &node->input[t]->shape));
    int32_t dots = 0;
    for (int32_t i = 0; i < term->rank; ++i) dots += term->label[i] >= LETTERS;
    if (dots > einsum->ellipsis) einsum->ellipsis = dots;
  }
  if (*at == 0) {
    implicit_result(einsum);
    return weft_ok();
  }
  NODE_REQUIRE(node, strncmp(at, "->", 2) == 0, INVALID_INPUT, "the equation goes on with '%s'", at);
  at += 2;
  TRY(parse_term(node, &at, -1, einsum->ellipsis, &einsum->result));
  for (int32_t i = 0; i < einsum->result.rank; ++i)
    NODE_REQUIRE(node, einsum->extent[einsum->result.label[i]] >= 0 && *at == 0, INVALID_INPUT,
                 "the equation's result has a label that no operand has");
  return weft_ok();
}

static bool has_label(const term_t* term, int32_t label) {
  for (int32_t i = 0; i < term->rank; ++i)
    if (term->label[i] == label) return true;
  return false;
}

static scalar_t sum_body(body_t* b, const scalar_t* x) {
  return s_add(b, x[1], s_cast(b, x[0], x[1].dtype));
}

// The operand in an iteration space where label l is dimension dim[l]; repeated extents of 1 are dropped.
static weft_status_t operand_of(node_t* node, const einsum_t* einsum, value_t* value, const term_t* term,
                                const int32_t* dim, weft_onnx_operand_t* out) {
  shape_t kept = {0};
  for (int32_t i = 0; i < term->rank; ++i) {
    if (value->shape.extent[i] == 1 && einsum->extent[term->label[i]] != 1) continue;
    out->axis[kept.rank] = weft_onnx_along(dim[term->label[i]]);
    kept.extent[kept.rank++] = value->shape.extent[i];
  }
  out->rank = kept.rank;
  return weft_onnx_reshape(node, value, &kept, &out->value);
}

// One or two operands into one with the labels of `result`.
static weft_status_t contract(node_t* node, const einsum_t* einsum, int32_t count, value_t* const* values,
                              const term_t* terms, const term_t* result, value_t** out) {
  weft_dtype_e dtype = values[0]->dtype;
  weft_onnx_generic_t generic = {.operand_count = count};
  int32_t dim[LABELS];
  for (int32_t l = 0; l < LABELS; ++l) dim[l] = -1;
  for (int32_t i = 0; i < result->rank; ++i) {
    NODE_REQUIRE(node, dim[result->label[i]] < 0, INVALID_INPUT, "the result has a label twice");
    generic.extent[generic.rank] = einsum->extent[result->label[i]];
    dim[result->label[i]] = generic.rank++;
  }
  for (int32_t t = 0; t < count; ++t)
    for (int32_t i = 0; i < terms[t].rank; ++i) {
      int32_t label = terms[t].label[i];
      if (dim[label] >= 0) continue;
      NODE_REQUIRE(node, generic.rank < WEFT_ONNX_MAX_NEST, UNSUPPORTED, "it has more than %d labels",
                   WEFT_ONNX_MAX_NEST);
      generic.extent[generic.rank] = einsum->extent[label];
      generic.reduction |= 1u << generic.rank;
      dim[label] = generic.rank++;
    }
  for (int32_t t = 0; t < count; ++t) TRY(operand_of(node, einsum, values[t], &terms[t], dim, &generic.operand[t]));
  generic.dtype = generic.reduction ? weft_onnx_accumulator(dtype) : dtype;
  if (count == 2)
    generic.body = generic.reduction ? weft_onnx_body_mul_add : weft_onnx_body_mul;
  else
    generic.body = generic.reduction ? sum_body : NULL;
  TRY(weft_onnx_generic(node, &generic, out));
  return weft_onnx_cast(node, *out, dtype, out);
}

// What is left of the first operands' labels: those of the result and of operands from `next` on.
static void kept_labels(const einsum_t* einsum, const term_t* a, const term_t* b, int32_t next, term_t* out) {
  const term_t* both[] = {a, b};
  *out = (term_t){0};
  for (int32_t t = 0; t < 2; ++t)
    for (int32_t i = 0; i < both[t]->rank; ++i) {
      int32_t label = both[t]->label[i];
      bool is_needed = has_label(&einsum->result, label);
      for (int32_t later = next; later < einsum->count; ++later) is_needed |= has_label(&einsum->term[later], label);
      if (is_needed && !has_label(out, label) && out->rank < WEFT_ONNX_MAX_RANK) out->label[out->rank++] = label;
    }
}

static weft_status_t emit_einsum(node_t* node) {
  einsum_t einsum = {0};
  TRY(parse(node, &einsum));
  for (int32_t i = 1; i < node->input_count; ++i)
    NODE_REQUIRE(node, node->input[i]->dtype == node->input[0]->dtype, INVALID_INPUT,
                 "operands are %s and %s, expected one type", weft_dtype_name(node->input[0]->dtype),
                 weft_dtype_name(node->input[i]->dtype));
  if (einsum.count == 1) return contract(node, &einsum, 1, node->input, einsum.term, &einsum.result, &node->output[0]);
  value_t* value = node->input[0];
  term_t term = einsum.term[0];
  for (int32_t i = 1; i < einsum.count; ++i) {
    term_t terms[] = {term, einsum.term[i]};
    if (i + 1 < einsum.count)
      kept_labels(&einsum, &terms[0], &terms[1], i + 1, &term);
    else
      term = einsum.result;
    TRY(contract(node, &einsum, 2, (value_t*[]){value, node->input[i]}, terms, &term, &value));
  }
  node->output[0] = value;
  return weft_ok();
}

// --- Determinants, by minors: the determinant of the first k rows and a set of k columns, from those of k - 1. Without
// a division, so without a choice of pivots, which would depend on the data.

static scalar_t add_product(body_t* b, const scalar_t* x) { // p: sign
  scalar_t product = s_mul(b, x[1], x[2]);
  return b->p[0] > 0 ? s_add(b, x[0], product) : s_sub(b, x[0], product);
}

enum { MAX_DETERMINANT = 6 };

static weft_status_t element(node_t* node, value_t* matrix, int64_t row, int64_t column, value_t** out) {
  int32_t rank = matrix->shape.rank;
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    size[i] = i < rank - 2 ? matrix->shape.extent[i] : 1;
    step[i] = 1;
  }
  offset[rank - 2] = row;
  offset[rank - 1] = column;
  shape_t shape = weft_onnx_shape_make(rank - 2, matrix->shape.extent);
  TRY(weft_onnx_slice(node, matrix, offset, size, step, out));
  return weft_onnx_reshape(node, *out, &shape, out);
}

static weft_status_t emit_det(node_t* node) {
  value_t *matrix = node->input[0], *minor[1 << MAX_DETERMINANT] = {NULL}, *row[MAX_DETERMINANT];
  int32_t rank = matrix->shape.rank, n = rank < 2 ? 0 : (int32_t)matrix->shape.extent[rank - 1];
  NODE_REQUIRE(node, rank >= 2 && matrix->shape.extent[rank - 2] == matrix->shape.extent[rank - 1], INVALID_INPUT,
               "input has shape %s, expected square matrices", weft_onnx_shape_format(&matrix->shape).text);
  NODE_REQUIRE(node, matrix->shape.extent[rank - 1] <= MAX_DETERMINANT && n > 0, UNSUPPORTED,
               "matrices of %lld rows; those of 1 to %d are supported", (long long)matrix->shape.extent[rank - 1],
               MAX_DETERMINANT);
  for (int32_t size = 1; size <= n; ++size) {
    for (int32_t c = 0; c < n; ++c) TRY(element(node, matrix, size - 1, c, &row[c]));
    for (uint32_t set = 1; set < 1u << n; ++set) {
      if (__builtin_popcount(set) != size) continue;
      value_t* sum = NULL;
      for (int32_t c = 0; c < n; ++c) {
        if (!(set >> c & 1)) continue;
        value_t* rest = minor[set & ~(1u << c)];
        double sign[] = {__builtin_popcount(set >> c) % 2 == 1 ? 1 : -1}; // columns of the set to the right of c
        if (!rest) {                                                      // of no row
          sum = row[c];
          continue;
        }
        if (!sum) TRY(weft_onnx_number(node, matrix->dtype, 0, &sum));
        TRY(weft_onnx_pointwise(node, add_product, sign, matrix->dtype, 3, (value_t*[]){sum, rest, row[c]}, &sum));
      }
      minor[set] = sum;
    }
  }
  node->output[0] = minor[(1u << n) - 1];
  return weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Det", 11, 1, 1, 1, emit_det, "up to 6 rows"),
    OPERATOR("Einsum", 12, 1, 16, 1, emit_einsum, "types below 32 bits accumulate in f32"),
    {0}};

const weft_onnx_family_t weft_onnx_family_einsum = {"Einstein sums and determinants", operators};
