// Integers on a scale as ops: real numbers, bytes, rectified integers.
#include <math.h>

#include "passes/scaled.h"

static const MlirValue none = {NULL};

weft_status_t weft_scaled_whole_shift(weft_arena_t* arena, const weft_field_t* shift, weft_field_t* out,
                                      bool* out_is_whole) {
  weft_field_t whole;
  *out = *shift;
  *out_is_whole = false;
  WEFT_RETURN_IF_ERROR(weft_field_create(arena, &shift->shape, &whole));
  for (int64_t i = 0, count = weft_shape_elements(&shift->shape); i < count; ++i) {
    whole.data[i] = nearbyint(shift->data[i]);
    if (fabs(whole.data[i] - shift->data[i]) > 0x1p-20 * fabs(shift->data[i]) || fabs(whole.data[i]) > 0x1p30)
      return weft_ok();
  }
  *out = whole;
  *out_is_whole = true;
  return weft_ok();
}

// f32(scale * (q + shift)), in the order in which a requantisation does it: sums of integers first.
static weft_status_t real_element(weft_point_t* point, const weft_scaled_t* scaled, bool clips, MlirValue* out) {
  weft_field_t shift;
  bool whole;
  MlirValue value = weft_point_input(point, scaled->q), addend, factor;
  WEFT_RETURN_IF_ERROR(weft_scaled_whole_shift(point->arena, &scaled->shift, &shift, &whole));
  bool shifts = !weft_field_is(&shift, 0), scales = !weft_field_is(&scaled->scale, 1);
  if (whole && shifts && scaled->dtype == WEFT_DTYPE_I32) {
    WEFT_RETURN_IF_ERROR(weft_point_field(point, &shift, WEFT_DTYPE_I32, &addend));
    value = weft_point_op(point, "arith.addi", WEFT_DTYPE_I32, value, addend);
    shifts = false;
  }
  value = weft_point_op(point, "arith.sitofp", WEFT_DTYPE_F32, value, none);
  if (whole && shifts) {
    WEFT_RETURN_IF_ERROR(weft_point_field(point, &shift, WEFT_DTYPE_F32, &addend));
    value = weft_point_op(point, "arith.addf", WEFT_DTYPE_F32, value, addend);
    shifts = false;
  }
  if (scales) {
    WEFT_RETURN_IF_ERROR(weft_point_field(point, &scaled->scale, WEFT_DTYPE_F32, &factor));
    value = weft_point_op(point, "arith.mulf", WEFT_DTYPE_F32, value, factor);
  }
  if (shifts) {
    WEFT_RETURN_IF_ERROR(weft_field_combine(point->arena, WEFT_FIELD_MUL, &scaled->scale, &shift, false, &shift));
    WEFT_RETURN_IF_ERROR(weft_point_field(point, &shift, WEFT_DTYPE_F32, &addend));
    value = weft_point_op(point, "arith.addf", WEFT_DTYPE_F32, value, addend);
  }
  if (clips)
    value = weft_point_op(point, "arith.maximumf", WEFT_DTYPE_F32, value, weft_point_number(point, WEFT_DTYPE_F32, 0));
  *out = value;
  return weft_ok();
}

static void begin(const weft_build_t* build, weft_arena_t* arena, MlirValue like, weft_point_t* point) {
  weft_shape_t shape;
  weft_dtype_e dtype;
  weft_ir_shape(like, &shape, &dtype);
  weft_point_begin(build, arena, &shape, point);
}

weft_status_t weft_scaled_to_real(const weft_build_t* build, weft_arena_t* arena, const weft_scaled_t* scaled,
                                  MlirValue* out) {
  weft_point_t point;
  MlirValue value;
  begin(build, arena, scaled->q, &point);
  WEFT_RETURN_IF_ERROR(real_element(&point, scaled, scaled->is_clipped, &value));
  *out = weft_point_end(&point, value, WEFT_DTYPE_F32);
  return weft_ok();
}

weft_status_t weft_scaled_to_bytes(const weft_build_t* build, weft_arena_t* arena, const weft_scaled_t* scaled,
                                   double zero, MlirValue* out) {
  weft_point_t point;
  weft_field_t shift;
  bool whole;
  MlirValue value;
  WEFT_RETURN_IF_ERROR(weft_scaled_whole_shift(arena, &scaled->shift, &shift, &whole));
  bool exact = whole && weft_field_is(&scaled->scale, 1);
  if (exact && scaled->dtype == WEFT_DTYPE_I8 && weft_field_is(&shift, -zero) && !scaled->is_clipped)
    return *out = scaled->q, weft_ok();
  begin(build, arena, scaled->q, &point);
  // With 0 as the lowest byte, saturating clips.
  WEFT_RETURN_IF_ERROR(real_element(&point, scaled, scaled->is_clipped && zero != -128, &value));
  if (!exact) value = weft_point_op(&point, "math.roundeven", WEFT_DTYPE_F32, value, none);
  const struct {
    const char* name;
    double value;
  } steps[] = {{"arith.addf", zero}, {"arith.maximumf", -128}, {"arith.minimumf", 127}};
  for (size_t i = zero == 0; i < sizeof(steps) / sizeof(steps[0]); ++i)
    value = weft_point_op(&point, steps[i].name, WEFT_DTYPE_F32, value,
                          weft_point_number(&point, WEFT_DTYPE_F32, steps[i].value));
  value = weft_point_op(&point, "arith.fptosi", WEFT_DTYPE_I8, value, none);
  *out = weft_point_end(&point, value, WEFT_DTYPE_I8);
  return weft_ok();
}

weft_status_t weft_scaled_clip(const weft_build_t* build, weft_arena_t* arena, weft_scaled_t* scaled) {
  weft_field_t shift, floor;
  weft_point_t point;
  bool whole;
  double lo, hi;
  MlirValue value, bound;
  WEFT_RETURN_IF_ERROR(weft_scaled_whole_shift(arena, &scaled->shift, &shift, &whole));
  WEFT_RETURN_IF_ERROR(weft_field_number(arena, shift.shape.rank, 0, &floor));
  WEFT_RETURN_IF_ERROR(weft_field_combine(arena, WEFT_FIELD_SUB, &floor, &shift, false, &floor));
  weft_field_range(&floor, &lo, &hi);
  if (!whole || hi > 127 || scaled->dtype != WEFT_DTYPE_I8) {
    scaled->is_clipped = true;
    return weft_ok();
  }
  if (hi <= -128) return weft_ok(); // no byte is below zero
  begin(build, arena, scaled->q, &point);
  value = weft_point_input(&point, scaled->q);
  WEFT_RETURN_IF_ERROR(weft_point_field(&point, &floor, WEFT_DTYPE_I8, &bound)); // stores saturate
  value = weft_point_op(&point, "arith.maxsi", WEFT_DTYPE_I8, value, bound);
  scaled->q = weft_point_end(&point, value, WEFT_DTYPE_I8);
  return weft_ok();
}
