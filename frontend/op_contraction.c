// Products: MatMul, Gemm, and what is made of them.
#include <string.h>

#include "frontend/operators.h"

// The axis maps of a matrix product's operand: broadcast batch extents of 1 are dropped.
static weft_status_t batch_operand(node_t* node, value_t* value, const shape_t* batch, int32_t row, int32_t column,
                                   weft_onnx_operand_t* out) {
  *out = (weft_onnx_operand_t){0};
  shape_t kept = {0};
  int32_t own = value->shape.rank - 2, shift = batch->rank - own;
  for (int32_t a = 0; a < own; ++a) {
    if (value->shape.extent[a] == 1 && batch->extent[a + shift] != 1) continue;
    out->axis[kept.rank] = weft_onnx_along(a + shift);
    kept.extent[kept.rank++] = value->shape.extent[a];
  }
  for (int32_t a = 0; a < 2; ++a) {
    out->axis[kept.rank] = weft_onnx_along(a ? column : row);
    kept.extent[kept.rank++] = value->shape.extent[own + a];
  }
  out->rank = kept.rank;
  return weft_onnx_reshape(node, value, &kept, &out->value);
}

weft_status_t weft_onnx_matmul(node_t* node, value_t* a, value_t* b, value_t** out) {
  NODE_REQUIRE(node, a->dtype == b->dtype, INVALID_INPUT, "operands are %s and %s, expected one type",
               weft_dtype_name(a->dtype), weft_dtype_name(b->dtype));
  return weft_onnx_matmul_in(node, a, b, weft_onnx_accumulator(a->dtype), out);
}

weft_status_t weft_onnx_matmul_in(node_t* node, value_t* a, value_t* b, weft_dtype_e dtype, value_t** out) {
  NODE_REQUIRE(node, a->shape.rank > 0 && b->shape.rank > 0, INVALID_INPUT, "an operand is a scalar");
  bool a_is_vector = a->shape.rank == 1, b_is_vector = b->shape.rank == 1;
  if (a_is_vector) TRY(weft_onnx_unsqueeze(node, a, 0, &a));
  if (b_is_vector) TRY(weft_onnx_unsqueeze(node, b, 1, &b));
  const int64_t *x = a->shape.extent + a->shape.rank - 2, *y = b->shape.extent + b->shape.rank - 2;
  NODE_REQUIRE(node, x[1] == y[0], INVALID_INPUT,
               "shapes %s and %s do not multiply: expected %lld rows in the second operand, got %lld",
               weft_onnx_shape_format(&a->shape).text, weft_onnx_shape_format(&b->shape).text, (long long)x[1],
               (long long)y[0]);
  shape_t batch, a_batch = weft_onnx_shape_make(a->shape.rank - 2, a->shape.extent),
                 b_batch = weft_onnx_shape_make(b->shape.rank - 2, b->shape.extent);
  TRY(weft_onnx_broadcast_shape(node, &a_batch, &b_batch, &batch));
  int32_t m = batch.rank, n = m + 1, k = m + 2;
  weft_onnx_generic_t generic = {
      .rank = m + 3, .reduction = 1u << k, .operand_count = 2, .dtype = dtype, .body = weft_onnx_body_mul_add};
  memcpy(generic.extent, batch.extent, (size_t)m * sizeof(int64_t));
  generic.extent[m] = x[0];
  generic.extent[n] = y[1];
  generic.extent[k] = x[1];
  TRY(batch_operand(node, a, &batch, m, k, &generic.operand[0]));
  TRY(batch_operand(node, b, &batch, k, n, &generic.operand[1]));
  TRY(weft_onnx_generic(node, &generic, out));
  if (!a_is_vector && !b_is_vector) return weft_ok();
  shape_t shape = batch;
  if (!a_is_vector) shape.extent[shape.rank++] = x[0];
  if (!b_is_vector) shape.extent[shape.rank++] = y[1];
  return weft_onnx_reshape(node, *out, &shape, out);
}

static weft_status_t emit_matmul(node_t* node) {
  TRY(weft_onnx_matmul(node, node->input[0], node->input[1], &node->output[0]));
  return weft_onnx_cast(node, node->output[0], node->input[0]->dtype, &node->output[0]);
}

// p: alpha, beta
static scalar_t gemm_epilogue(body_t* b, const scalar_t* x) {
  scalar_t result = b->p[0] == 1 ? x[0] : s_mul(b, x[0], s_const(x[0], b->p[0]));
  scalar_t addend = s_cast(b, x[1], x[0].dtype);
  return s_add(b, result, b->p[1] == 1 ? addend : s_mul(b, addend, s_const(addend, b->p[1])));
}
static scalar_t gemm_scale(body_t* b, const scalar_t* x) {
  return s_mul(b, x[0], s_const(x[0], b->p[0]));
}

static weft_status_t emit_gemm(node_t* node) {
  value_t *a = node->input[0], *b = node->input[1], *c = weft_onnx_input(node, 2);
  double p[2];
  int64_t trans_a, trans_b;
  TRY(weft_onnx_attribute_float(node, "alpha", 1, &p[0]));
  TRY(weft_onnx_attribute_float(node, "beta", 1, &p[1]));
  TRY(weft_onnx_attribute_int(node, "transA", 0, &trans_a));
  TRY(weft_onnx_attribute_int(node, "transB", 0, &trans_b));
  NODE_REQUIRE(node, a->dtype == b->dtype && (!c || c->dtype == a->dtype), INVALID_INPUT,
               "operands differ in type, expected %s", weft_dtype_name(a->dtype));
  NODE_REQUIRE(node, a->shape.rank == 2 && b->shape.rank == 2, INVALID_INPUT,
               "operands have shapes %s and %s, expected matrices", weft_onnx_shape_format(&a->shape).text,
               weft_onnx_shape_format(&b->shape).text);
  int64_t m = a->shape.extent[trans_a ? 1 : 0], k = a->shape.extent[trans_a ? 0 : 1];
  int64_t rows = b->shape.extent[trans_b ? 1 : 0], n = b->shape.extent[trans_b ? 0 : 1];
  NODE_REQUIRE(node, rows == k, INVALID_INPUT, "shapes %s and %s do not multiply: expected %lld rows, got %lld",
               weft_onnx_shape_format(&a->shape).text, weft_onnx_shape_format(&b->shape).text, (long long)k,
               (long long)rows);
  weft_onnx_generic_t generic = {.rank = 3,
                                 .extent = {m, n, k},
                                 .reduction = 1u << 2,
                                 .operand_count = 2,
                                 .dtype = weft_onnx_accumulator(a->dtype),
                                 .body = weft_onnx_body_mul_add};
  generic.operand[0] =
      (weft_onnx_operand_t){a, 2, {weft_onnx_along(trans_a ? 2 : 0), weft_onnx_along(trans_a ? 0 : 2)}};
  generic.operand[1] =
      (weft_onnx_operand_t){b, 2, {weft_onnx_along(trans_b ? 1 : 2), weft_onnx_along(trans_b ? 2 : 1)}};
  value_t* product;
  TRY(weft_onnx_generic(node, &generic, &product));
  if (c) {
    shape_t together;
    TRY(weft_onnx_broadcast_shape(node, &product->shape, &c->shape, &together));
    NODE_REQUIRE(node, weft_onnx_shape_equal(&together, &product->shape), INVALID_INPUT,
                 "C has shape %s, expected one that broadcasts to %s", weft_onnx_shape_format(&c->shape).text,
                 weft_onnx_shape_format(&product->shape).text);
  }
  if (c && p[1] != 0)
    return weft_onnx_pointwise(node, gemm_epilogue, p, a->dtype, 2, (value_t*[]){product, c}, &node->output[0]);
  if (p[0] == 1) return weft_onnx_cast(node, product, a->dtype, &node->output[0]);
  return weft_onnx_pointwise(node, gemm_scale, p, a->dtype, 1, &product, &node->output[0]);
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("Gemm", 6, 2, 3, 1, emit_gemm, "types below 32 bits accumulate in f32"),
    OPERATOR("MatMul", 1, 2, 2, 1, emit_matmul, "types below 32 bits accumulate in f32"),
    {0}};

const weft_onnx_family_t weft_onnx_family_contraction = {"Products", operators};
