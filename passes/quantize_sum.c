// The sum of a factor that is no constant: what the other factor's zero point is multiplied with.
#include <mlir-c/AffineMap.h>

#include "passes/quantize.h"

typedef struct axes_t { // the loops that the factor depends on, renumbered
  const weft_generic_t* generic;
  MlirContext context;
  int32_t count;
  int32_t to[WEFT_MAX_DIMS]; // -1: not one of them
} axes_t;

static axes_t find_axes(const weft_generic_t* generic, int32_t operand) {
  axes_t axes = {.generic = generic, .context = mlirOperationGetContext(generic->op)};
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    bool reads = false;
    for (int32_t r = 0; r < generic->map[operand].rank; ++r) reads |= generic->map[operand].row[r].coefficient[l] != 0;
    axes.to[l] = reads && generic->extent[l] > 1 ? axes.count++ : -1;
  }
  return axes;
}

static MlirAttribute map_of(const axes_t* axes, intptr_t rank, MlirAffineExpr* expressions) {
  return mlirAffineMapAttrGet(mlirAffineMapGet(axes->context, axes->count, 0, rank, expressions));
}

static MlirAttribute operand_map(const axes_t* axes, const weft_map_t* map) {
  MlirAffineExpr expression[WEFT_MAX_RANK];
  for (int32_t r = 0; r < map->rank; ++r) {
    expression[r] = mlirAffineConstantExprGet(axes->context, map->row[r].offset);
    for (int32_t l = 0; l < axes->generic->loop_count; ++l) {
      if (axes->to[l] < 0 || !map->row[r].coefficient[l]) continue;
      MlirAffineExpr factor = mlirAffineConstantExprGet(axes->context, map->row[r].coefficient[l]);
      MlirAffineExpr term = mlirAffineMulExprGet(mlirAffineDimExprGet(axes->context, axes->to[l]), factor);
      expression[r] = mlirAffineAddExprGet(expression[r], term);
    }
  }
  return map_of(axes, map->rank, expression);
}

weft_status_t weft_quantize_add_sum(weft_quantize_t* self, const weft_generic_t* generic, int32_t operand, MlirValue q,
                                    const weft_field_t* shift, MlirValue* acc) {
  weft_build_t build = weft_build_before(generic->op);
  const weft_map_t* result = &generic->map[generic->input_count];
  axes_t axes = find_axes(generic, operand);
  MlirAttribute map[3], iterator[WEFT_MAX_DIMS];
  MlirAffineExpr expression[WEFT_MAX_DIMS];
  weft_shape_t window = {0}, sums = {0}, shape;
  weft_dtype_e dtype;
  double repeated = 1;
  map[0] = operand_map(&axes, &generic->map[operand]);
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    if (axes.to[l] < 0) {
      if (generic->reduction[l]) repeated *= (double)generic->extent[l];
      continue;
    }
    iterator[axes.to[l]] = mlirAttributeParseGet(
        axes.context, mlirStringRefCreateFromCString(generic->reduction[l] ? "#linalg.iterator_type<reduction>"
                                                                           : "#linalg.iterator_type<parallel>"));
    if (!generic->reduction[l]) continue;
    expression[window.rank] = mlirAffineDimExprGet(axes.context, axes.to[l]);
    window.extent[window.rank++] = generic->extent[l];
  }
  map[1] = map_of(&axes, window.rank, expression);
  uint32_t dims = 0;
  for (int32_t o = 0; o < result->rank; ++o) {
    int32_t loop = weft_generic_row_loop(generic, &result->row[o]);
    if (loop < 0 || axes.to[loop] < 0) continue;
    dims |= 1u << o;
    expression[sums.rank] = mlirAffineDimExprGet(axes.context, axes.to[loop]);
    sums.extent[sums.rank++] = generic->extent[loop];
  }
  map[2] = map_of(&axes, sums.rank, expression);
  MlirValue inputs[] = {q, weft_build_empty(&build, WEFT_DTYPE_I8, &window)};
  MlirValue sum = weft_build_reduction_over(
      &build, mlirArrayAttrGet(axes.context, 3, map), mlirArrayAttrGet(axes.context, axes.count, iterator), 2, inputs,
      weft_build_filled(&build, WEFT_DTYPE_I32, &sums, 0), weft_quantize_add_element);
  weft_field_t times;
  weft_point_t point;
  MlirValue factor;
  WEFT_RETURN_IF_ERROR(weft_field_number(&self->arena, shift->shape.rank, repeated, &times));
  WEFT_RETURN_IF_ERROR(weft_field_combine(&self->arena, WEFT_FIELD_MUL, shift, &times, false, &times));
  weft_ir_shape(*acc, &shape, &dtype);
  weft_point_begin(&build, &self->arena, &shape, &point);
  MlirValue value = weft_point_input(&point, *acc), addend = weft_point_part(&point, sum, dims);
  WEFT_RETURN_IF_ERROR(weft_point_field(&point, &times, WEFT_DTYPE_I32, &factor));
  addend = weft_point_op(&point, "arith.muli", WEFT_DTYPE_I32, addend, factor);
  *acc = weft_point_end(&point, weft_point_op(&point, "arith.addi", WEFT_DTYPE_I32, value, addend), WEFT_DTYPE_I32);
  return weft_ok();
}
