#include "backend/transfer.h"

// The walk without unit levels, adjacent levels of one dimension joined.
static int32_t shorten_levels(const weft_walk_t* walk, weft_walk_level_t* out) {
  int32_t count = 0;
  for (int32_t l = 0; l < walk->level_count; ++l) {
    weft_walk_level_t level = walk->level[l];
    if (level.extent == 1) continue;
    weft_walk_level_t* before = count ? &out[count - 1] : NULL;
    if (before && before->dim == level.dim && before->step == level.step * level.extent) {
      before->extent *= level.extent;
      before->step = level.step;
    } else {
      out[count++] = level;
    }
  }
  return count;
}

static bool is_whole(const weft_view_factor_t* f) {
  return f->lo == 0 && f->hi == f->extent;
}

// The view's factors without unit ones; adjacent whole factors that are one joined.
static int32_t shorten_factors(const weft_view_t* view, weft_view_factor_t* out) {
  int32_t count = 0;
  for (int32_t f = 0; f < view->factor_count; ++f) {
    weft_view_factor_t factor = view->factor[f];
    if (factor.extent == 1 && is_whole(&factor)) continue;
    weft_view_factor_t* before = count ? &out[count - 1] : NULL;
    bool joins = before && is_whole(before) && is_whole(&factor) && before->dim == factor.dim;
    if (joins && (factor.dim < 0 || before->step == factor.step * factor.extent)) {
      before->extent = before->hi = before->extent * factor.extent;
      before->step = factor.step;
    } else {
      out[count++] = factor;
    }
  }
  return count;
}

// Tensor dimensions that some level walks along, or whose box is not [0, 1); the others contribute nothing.
static weft_status_t store_tensor(const weft_walk_t* walk, const weft_shape_t* shape, const weft_walk_level_t* levels,
                                  int32_t level_count, weft_instruction_t* i) {
  int32_t new_dim[WEFT_MAX_RANK];
  int64_t stride = 1, strides[WEFT_MAX_RANK];
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape->extent[d];
  }
  for (int32_t d = 0; d < shape->rank; ++d) {
    bool walked = walk->box.lo[d] != 0 || walk->box.hi[d] != 1;
    for (int32_t l = 0; l < level_count; ++l) walked |= levels[l].dim == d;
    if (!walked) continue;
    int32_t n = new_dim[d] = i->tensor_rank++;
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(walk->box.lo[d], "the box of the walk at", &i->tensor_dim[n].lo));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(walk->box.hi[d], "the box of the walk at", &i->tensor_dim[n].hi));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(strides[d], "the tensor's stride", &i->tensor_dim[n].stride));
  }
  i->level_count = level_count;
  for (int32_t l = 0; l < level_count; ++l) {
    i->level[l].dim = new_dim[levels[l].dim];
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(levels[l].extent, "the extent", &i->level[l].extent));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(levels[l].step, "the step", &i->level[l].step));
  }
  return weft_ok();
}

// Operand dimensions that no factor writes have one coordinate; inside the filter it is part of the address.
static weft_status_t store_operand(const weft_view_t* view, const weft_view_factor_t* factors, int32_t factor_count,
                                   const weft_box_t* filter, const weft_placement_t* memory, weft_instruction_t* i) {
  int32_t new_dim[WEFT_MAX_RANK];
  int64_t address = memory->address;
  for (int32_t d = 0; d < view->rank; ++d) {
    bool written = view->offset[d] < filter->lo[d] || view->offset[d] >= filter->hi[d];
    for (int32_t f = 0; f < factor_count; ++f) written |= factors[f].dim == d;
    int64_t origin = written ? filter->lo[d] : view->offset[d];
    address += (origin - memory->lo[d]) * memory->stride[d];
    if (!written) continue;
    int32_t n = new_dim[d] = i->operand_rank++;
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(view->offset[d], "the view's offset", &i->operand_dim[n].offset));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(filter->lo[d], "the filter's bound", &i->operand_dim[n].lo));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(filter->hi[d], "the filter's bound", &i->operand_dim[n].hi));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(memory->stride[d], "the stride", &i->operand_dim[n].stride));
  }
  i->factor_count = factor_count;
  for (int32_t f = 0; f < factor_count; ++f) {
    i->factor[f].dim = factors[f].dim < 0 ? -1 : new_dim[factors[f].dim];
    int64_t step = factors[f].dim < 0 ? 0 : factors[f].step;
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(factors[f].extent, "the extent", &i->factor[f].extent));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(factors[f].lo, "the factor's bound", &i->factor[f].lo));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(factors[f].hi, "the factor's bound", &i->factor[f].hi));
    WEFT_RETURN_IF_ERROR(weft_nest_narrow(step, "the step", &i->factor[f].step));
  }
  return weft_nest_narrow(address, "the address", &i->base[0]);
}

weft_status_t weft_transfer_recv(const weft_walk_t* walk, const weft_shape_t* tensor_shape, const weft_view_t* view,
                                 const weft_box_t* filter, const weft_placement_t* memory,
                                 weft_instruction_t* inout_instruction) {
  weft_walk_level_t levels[WEFT_MAX_LEVELS];
  weft_view_factor_t factors[WEFT_MAX_FACTORS];
  int32_t level_count = shorten_levels(walk, levels), factor_count = shorten_factors(view, factors);
  inout_instruction->tensor_rank = inout_instruction->operand_rank = 0;
  WEFT_RETURN_IF_ERROR(store_tensor(walk, tensor_shape, levels, level_count, inout_instruction));
  return store_operand(view, factors, factor_count, filter, memory, inout_instruction);
}
