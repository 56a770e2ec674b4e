// Pointwise operations with broadcasting, and reductions over whole axes.
#include <math.h>
#include <string.h>

#include "frontend/emit.h"

weft_status_t weft_onnx_broadcast_shape(const node_t* node, const shape_t* a, const shape_t* b, shape_t* out) {
  shape_t result = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int32_t i = 0; i < result.rank; ++i) { // i counts from the last axis
    int64_t x = i < a->rank ? a->extent[a->rank - 1 - i] : 1, y = i < b->rank ? b->extent[b->rank - 1 - i] : 1;
    NODE_REQUIRE(node, x == y || x == 1 || y == 1, INVALID_INPUT,
                 "shapes %s and %s do not broadcast: %lld against %lld, expected equal extents or 1",
                 weft_onnx_shape_format(a).text, weft_onnx_shape_format(b).text, (long long)x, (long long)y);
    result.extent[result.rank - 1 - i] = x == 1 ? y : x;
  }
  *out = result;
  return weft_ok();
}

// The operand for a value broadcast to `shape`: extents of 1 that are repeated are dropped, so that its map is a
// projected permutation.
static weft_status_t broadcast_operand(node_t* node, value_t* value, const shape_t* shape, weft_onnx_operand_t* out) {
  shape_t kept = {0};
  *out = (weft_onnx_operand_t){0};
  int32_t shift = shape->rank - value->shape.rank;
  for (int32_t a = 0; a < value->shape.rank; ++a) {
    if (value->shape.extent[a] == 1 && shape->extent[a + shift] != 1) continue;
    kept.extent[kept.rank++] = value->shape.extent[a];
    out->axis[out->rank++] = weft_onnx_along(a + shift);
  }
  return weft_onnx_reshape(node, value, &kept, &out->value);
}

static weft_status_t pointwise_over(node_t* node, weft_onnx_body_fn body, const double* p, weft_dtype_e dtype,
                                    int32_t count, value_t* const* inputs, const shape_t* shape, value_t** out) {
  weft_onnx_generic_t generic = {.rank = shape->rank, .operand_count = count, .dtype = dtype, .body = body, .p = p};
  memcpy(generic.extent, shape->extent, sizeof(shape->extent));
  for (int32_t i = 0; i < count; ++i) TRY(broadcast_operand(node, inputs[i], shape, &generic.operand[i]));
  return weft_onnx_generic(node, &generic, out);
}

weft_status_t weft_onnx_pointwise(node_t* node, weft_onnx_body_fn body, const double* p, weft_dtype_e dtype,
                                  int32_t count, value_t* const* inputs, value_t** out) {
  shape_t shape = inputs[0]->shape;
  for (int32_t i = 1; i < count; ++i) TRY(weft_onnx_broadcast_shape(node, &shape, &inputs[i]->shape, &shape));
  return pointwise_over(node, body, p, dtype, count, inputs, &shape, out);
}

static scalar_t body_cast(body_t* body, const scalar_t* argument) {
  (void)body;
  return argument[0]; // the generic converts what a body yields to the result's type
}

weft_status_t weft_onnx_cast(node_t* node, value_t* value, weft_dtype_e dtype, value_t** out) {
  if (value->dtype == dtype) {
    *out = value;
    return weft_ok();
  }
  return weft_onnx_pointwise(node, body_cast, NULL, dtype, 1, &value, out);
}

weft_status_t weft_onnx_expand(node_t* node, value_t* value, const shape_t* shape, value_t** out) {
  shape_t together;
  TRY(weft_onnx_broadcast_shape(node, &value->shape, shape, &together));
  if (weft_onnx_shape_equal(&together, &value->shape)) {
    *out = value;
    return weft_ok();
  }
  return pointwise_over(node, NULL, NULL, value->dtype, 1, &value, &together, out);
}

scalar_t weft_onnx_body_sum(body_t* body, const scalar_t* argument) {
  return s_add(body, argument[1], s_cast(body, argument[0], argument[1].dtype));
}
scalar_t weft_onnx_body_max(body_t* body, const scalar_t* argument) {
  return s_max(body, argument[1], argument[0]);
}
scalar_t weft_onnx_body_min(body_t* body, const scalar_t* argument) {
  return s_min(body, argument[1], argument[0]);
}
scalar_t weft_onnx_body_product(body_t* body, const scalar_t* argument) {
  return s_mul(body, argument[1], argument[0]);
}
scalar_t weft_onnx_body_mul_add(body_t* body, const scalar_t* argument) {
  weft_dtype_e dtype = argument[2].dtype;
  return s_add(body, argument[2], s_mul(body, s_cast(body, argument[0], dtype), s_cast(body, argument[1], dtype)));
}

weft_dtype_e weft_onnx_accumulator(weft_dtype_e dtype) {
  return weft_dtype_is_float(dtype) && weft_dtype_size(dtype) < 4 ? WEFT_DTYPE_F32 : dtype;
}

double weft_onnx_highest(weft_dtype_e dtype) {
  if (weft_dtype_is_float(dtype)) return (double)INFINITY;
  if (dtype == WEFT_DTYPE_BOOL) return 1;
  return ldexp(1, (int)weft_dtype_size(dtype) * 8 - (weft_dtype_is_signed(dtype) ? 1 : 0)) - 1; // stores saturate
}

double weft_onnx_lowest(weft_dtype_e dtype) {
  if (weft_dtype_is_float(dtype)) return -(double)INFINITY;
  return weft_dtype_is_signed(dtype) ? -ldexp(1, (int)weft_dtype_size(dtype) * 8 - 1) : 0;
}

weft_status_t weft_onnx_reduce(node_t* node, weft_onnx_body_fn body, double initial, value_t* value, uint32_t axes,
                               bool keep, value_t** out) {
  weft_onnx_generic_t generic = {.rank = value->shape.rank,
                                 .reduction = axes,
                                 .operand_count = 1,
                                 .dtype = value->dtype,
                                 .initial = initial,
                                 .body = body};
  shape_t kept = value->shape;
  generic.operand[0] = (weft_onnx_operand_t){.value = value, .rank = value->shape.rank};
  for (int32_t d = 0; d < value->shape.rank; ++d) {
    generic.extent[d] = value->shape.extent[d];
    generic.operand[0].axis[d] = weft_onnx_along(d);
    if (axes >> d & 1) kept.extent[d] = 1;
  }
  if (!axes) {
    *out = value;
    return weft_ok();
  }
  TRY(weft_onnx_generic(node, &generic, out));
  return keep ? weft_onnx_reshape(node, *out, &kept, out) : weft_ok();
}
