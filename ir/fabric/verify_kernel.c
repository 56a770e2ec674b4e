// Kernels: index maps, operations, splits.
#include <inttypes.h>

#include "base/checked.h"
#include "ir/fabric/split.h"
#include "ir/fabric/verify.h"

static weft_status_t verify_dims(const weft_kernel_t* kernel) {
  int64_t points = 1;
  if (kernel->dim_count < 0 || kernel->dim_count > WEFT_MAX_DIMS)
    return weft_error(INVALID_INPUT, "%" PRId32 " dimensions, there can be %d", kernel->dim_count, WEFT_MAX_DIMS);
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    const weft_dim_t* dim = &kernel->dim[d];
    if ((unsigned)dim->kind > WEFT_DIM_SEQUENTIAL)
      return weft_error(INVALID_INPUT, "the kind of dimension d%" PRId32 " doesn't exist", d);
    if (dim->kind == WEFT_DIM_SEQUENTIAL && d > 0)
      return weft_error(INVALID_INPUT, "d%" PRId32 " is sequential, but not the outermost dimension", d);
    if (dim->extent < 1 || !weft_verify_product(dim->extent, &points))
      return weft_error(INVALID_INPUT, "extent %" PRId64 " of d%" PRId32 " is less than 1 or makes too many points",
                        dim->extent, d);
  }
  return weft_ok();
}

// The coordinates lo..hi (inclusive) that row `r` takes over the whole iteration space.
static weft_status_t row_image(const weft_kernel_t* kernel, const weft_index_row_t* row, int64_t* out_lo,
                               int64_t* out_hi) {
  int64_t lo = row->offset, hi = row->offset, reach;
  for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d) {
    int64_t coefficient = row->coefficient[d];
    if (coefficient && d >= kernel->dim_count)
      return weft_error(INVALID_INPUT, "it uses d%" PRId32 ", the kernel has %" PRId32 " dimensions", d,
                        kernel->dim_count);
    if (!coefficient) continue;
    if (!weft_checked_mul(coefficient, kernel->dim[d].extent - 1, &reach) ||
        !(coefficient < 0 ? weft_checked_add(lo, reach, &lo) : weft_checked_add(hi, reach, &hi)))
      return weft_error(INVALID_INPUT, "its coordinates are beyond any tensor");
  }
  if (lo < -WEFT_VERIFY_MOST || hi > WEFT_VERIFY_MOST)
    return weft_error(INVALID_INPUT, "its coordinates are beyond any tensor");
  *out_lo = lo;
  *out_hi = hi;
  return weft_ok();
}

// Owners hold boxes of a result that don't overlap and together cover it: each PARALLEL dimension stands alone in one
// row, REDUCTION ones in none.
static weft_status_t verify_result_rows(const weft_kernel_t* kernel, const weft_buffer_t* buffer,
                                        const weft_shape_t* shape) {
  int32_t in_row[WEFT_MAX_DIMS] = {0};
  for (int32_t r = 0; r < buffer->rank; ++r) {
    int32_t moving = 0, parallel = -1;
    int64_t lo, hi;
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      int64_t coefficient = buffer->row[r].coefficient[d];
      if (!coefficient) continue;
      moving += kernel->dim[d].extent > 1;
      if (kernel->dim[d].kind == WEFT_DIM_REDUCTION)
        return weft_error(INVALID_INPUT, "row %" PRId32 ": the reduction d%" PRId32 " can't be part of a result", r, d);
      if (kernel->dim[d].kind != WEFT_DIM_PARALLEL || kernel->dim[d].extent == 1) continue;
      in_row[d]++;
      parallel = d;
      if (coefficient != 1)
        return weft_error(INVALID_INPUT,
                          "row %" PRId32 ": the parallel d%" PRId32 " has coefficient %" PRId64 ", not 1", r, d,
                          coefficient);
    }
    if (parallel >= 0 && moving > 1)
      return weft_error(INVALID_INPUT, "row %" PRId32 ": the parallel d%" PRId32 " doesn't stand alone", r, parallel);
    WEFT_RETURN_IF_ERROR(row_image(kernel, &buffer->row[r], &lo, &hi));
    if (lo > 0 || hi < shape->extent[r] - 1)
      return weft_error(INVALID_INPUT, "row %" PRId32 " makes %" PRId64 "..%" PRId64 " of 0..%" PRId64, r, lo, hi,
                        shape->extent[r] - 1);
  }
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind == WEFT_DIM_PARALLEL && kernel->dim[d].extent > 1 && in_row[d] != 1)
      return weft_error(INVALID_INPUT, "the parallel d%" PRId32 " stands in %" PRId32 " rows of the result, not in one",
                        d, in_row[d]);
  return weft_ok();
}

static weft_status_t verify_buffer(const weft_fabric_t* fabric, int32_t kernel_index, int32_t index) {
  const weft_kernel_t* kernel = &fabric->kernel[kernel_index];
  const weft_buffer_t* buffer = &kernel->buffer[index];
  int64_t elements = 1;
  if (buffer->spare < 0 || buffer->spare > (buffer->kind == WEFT_BUFFER_OPERAND ? WEFT_MAX_SPARE : 0))
    return weft_error(INVALID_INPUT, "%" PRId32 " spare places", buffer->spare);
  if (!buffer->name) return weft_error(INVALID_INPUT, "it has no name");
  if ((unsigned)buffer->kind > WEFT_BUFFER_RESULT || (unsigned)buffer->dtype >= WEFT_DTYPE_COUNT)
    return weft_error(INVALID_INPUT, "its kind or element type doesn't exist");
  if (buffer->rank < 0 || buffer->rank > WEFT_MAX_RANK)
    return weft_error(INVALID_INPUT, "rank %" PRId32 " is outside 0..%d", buffer->rank, WEFT_MAX_RANK);
  for (int32_t r = 0; r < buffer->rank; ++r) {
    int64_t lo = 0, hi = 0;
    weft_status_t status = row_image(kernel, &buffer->row[r], &lo, &hi);
    if (!status && !weft_verify_product(hi - lo + 1, &elements))
      status = weft_error(INVALID_INPUT, "it makes more elements than any memory holds");
    if (status) return weft_status_annotate(status, "row %" PRId32, r);
  }
  if (buffer->kind == WEFT_BUFFER_OPERAND)
    return weft_verify_pieces(fabric, buffer->piece_count, buffer->piece, buffer->rank, buffer->dtype, kernel_index);
  if (buffer->kind == WEFT_BUFFER_TEMPORARY) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_verify_index("its tensor", buffer->tensor, fabric->tensor_count));
  const weft_tensor_t* tensor = &fabric->tensor[buffer->tensor];
  if (tensor->kind != WEFT_TENSOR_RESULT || tensor->kernel != kernel_index || tensor->buffer != index)
    return weft_error(INVALID_INPUT, "tensor '%s' is not made here", tensor->name);
  return verify_result_rows(kernel, buffer, &tensor->shape);
}

static weft_status_t verify_operation(const weft_fabric_t* fabric, int32_t kernel_index,
                                      const weft_operation_t* operation) {
  const weft_kernel_t* kernel = &fabric->kernel[kernel_index];
  if ((unsigned)operation->op >= WEFT_OP_COUNT || (unsigned)operation->dtype >= WEFT_DTYPE_COUNT)
    return weft_error(INVALID_INPUT, "no such operation or element type");
  if (operation->loops >> kernel->dim_count)
    return weft_error(INVALID_INPUT, "loops 0x%" PRIx32 " over more than the kernel's %" PRId32 " dimensions",
                      operation->loops, kernel->dim_count);
  WEFT_RETURN_IF_ERROR(weft_verify_index("the destination", operation->destination, kernel->buffer_count));
  if (kernel->buffer[operation->destination].kind == WEFT_BUFFER_OPERAND &&
      !weft_split_is_feedback(fabric, kernel_index, operation->destination))
    return weft_error(INVALID_INPUT, "it overwrites operand '%s'", kernel->buffer[operation->destination].name);
  for (int32_t i = 0; i < weft_op_source_count(operation->op); ++i)
    if (operation->source[i] != -1)
      WEFT_RETURN_IF_ERROR(weft_verify_index("a source", operation->source[i], kernel->buffer_count));
  return weft_ok();
}

// The operations of the sequential dimension stand together.
static weft_status_t verify_sequence(const weft_kernel_t* kernel) {
  uint32_t sequential = weft_split_sequential(kernel);
  int32_t runs = 0;
  bool inside = false;
  for (int32_t i = 0; i < kernel->operation_count; ++i) {
    bool loops = (kernel->operation[i].loops & sequential) != 0;
    runs += loops && !inside;
    inside = loops;
  }
  if (sequential && runs != 1)
    return weft_error(INVALID_INPUT, "the operations over the sequential dimension are %" PRId32 " groups, not one",
                      runs);
  return sequential && kernel->reduce_operation != -1
             ? weft_error(INVALID_INPUT, "a kernel with a sequential dimension can't split reductions")
             : weft_ok();
}

static weft_status_t verify_operations(const weft_fabric_t* fabric, int32_t index) {
  const weft_kernel_t* kernel = &fabric->kernel[index];
  WEFT_RETURN_IF_ERROR(weft_verify_array("operations", kernel->operation_count, kernel->operation));
  for (int32_t i = 0; i < kernel->operation_count; ++i) {
    weft_status_t status = verify_operation(fabric, index, &kernel->operation[i]);
    if (status) return weft_status_annotate(status, "operation %" PRId32, i);
  }
  WEFT_RETURN_IF_ERROR(verify_sequence(kernel));
  if (kernel->reduce_operation == -1) {
    for (int32_t d = 0; d < kernel->dim_count; ++d)
      if (kernel->dim[d].kind == WEFT_DIM_REDUCTION)
        return weft_error(INVALID_INPUT, "d%" PRId32 " is a reduction, but no operation reduces", d);
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(weft_verify_index("the reducing operation", kernel->reduce_operation, kernel->operation_count));
  if ((unsigned)kernel->combiner >= WEFT_OP_COUNT || !weft_op_is_combiner(kernel->combiner))
    return weft_error(INVALID_INPUT, "the combiner is none of add, mul, max, min");
  const weft_buffer_t* result = &kernel->buffer[kernel->operation[kernel->reduce_operation].destination];
  for (int32_t r = 0; r < result->rank; ++r)
    for (int32_t d = 0; d < kernel->dim_count; ++d)
      if (kernel->dim[d].kind == WEFT_DIM_REDUCTION && result->row[r].coefficient[d])
        return weft_error(INVALID_INPUT, "'%s' holds the reduction, but depends on d%" PRId32, result->name, d);
  return weft_ok();
}

// Marks the dimensions that it splits: none twice, on both axes together.
static weft_status_t verify_axis(const weft_kernel_t* kernel, const weft_axis_factor_t* factor, int32_t count,
                                 int32_t grid, uint32_t* inout_split, bool* out_reduces) {
  int64_t product = 1;
  *out_reduces = false;
  if (count < 0 || count > WEFT_MAX_AXIS_FACTORS)
    return weft_error(INVALID_INPUT, "%" PRId32 " factors on an axis, there can be %d", count, WEFT_MAX_AXIS_FACTORS);
  for (int32_t i = 0; i < count; ++i) {
    WEFT_RETURN_IF_ERROR(weft_verify_index("a split dimension", factor[i].dim, kernel->dim_count));
    const weft_dim_t* dim = &kernel->dim[factor[i].dim];
    int64_t parts = factor[i].parts;
    if (parts < 1 || parts > dim->extent)
      return weft_error(INVALID_INPUT, "d%" PRId32 " of extent %" PRId64 " can't have %" PRId64 " parts", factor[i].dim,
                        dim->extent, parts);
    int64_t block = weft_ceil_div(dim->extent, parts);
    if (weft_ceil_div(dim->extent, block) != parts)
      return weft_error(INVALID_INPUT,
                        "d%" PRId32 " of extent %" PRId64 ": blocks of %" PRId64 " make %" PRId64
                        " parts, not %" PRId64,
                        factor[i].dim, dim->extent, block, weft_ceil_div(dim->extent, block), parts);
    if (dim->kind == WEFT_DIM_INTERNAL || dim->kind == WEFT_DIM_SEQUENTIAL)
      return weft_error(INVALID_INPUT, "d%" PRId32 " is %s and can't be split", factor[i].dim,
                        dim->kind == WEFT_DIM_INTERNAL ? "internal" : "sequential");
    if (*inout_split >> factor[i].dim & 1)
      return weft_error(INVALID_INPUT, "d%" PRId32 " is split twice", factor[i].dim);
    *inout_split |= 1u << factor[i].dim;
    if (dim->kind == WEFT_DIM_PARALLEL && *out_reduces)
      return weft_error(INVALID_INPUT, "the parallel d%" PRId32 " comes after a reduction on its axis", factor[i].dim);
    *out_reduces |= dim->kind == WEFT_DIM_REDUCTION;
    if (!weft_verify_product(parts, &product)) return weft_error(INVALID_INPUT, "more parts than tiles on any wafer");
  }
  if (product != grid)
    return weft_error(INVALID_INPUT, "the parts of an axis make %" PRId64 " tiles, the grid has %" PRId32, product,
                      grid);
  return weft_ok();
}

static weft_status_t verify_alternative(const weft_kernel_t* kernel, const weft_alternative_t* alternative) {
  const weft_split_t* split = &alternative->split;
  uint32_t is_split = 0;
  bool y_reduces, x_reduces;
  WEFT_RETURN_IF_ERROR(verify_axis(kernel, split->y, split->y_count, alternative->gy, &is_split, &y_reduces));
  WEFT_RETURN_IF_ERROR(verify_axis(kernel, split->x, split->x_count, alternative->gx, &is_split, &x_reduces));
  if (y_reduces && x_reduces) return weft_error(INVALID_INPUT, "reductions are split on both axes");
  if ((int64_t)alternative->gy * alternative->gx > INT32_MAX)
    return weft_error(INVALID_INPUT, "a grid of %" PRId32 " x %" PRId32 " tiles is larger than any wafer",
                      alternative->gy, alternative->gx);
  if (alternative->cycles < 0 || alternative->chain_cycles < 0 || alternative->stream_cycles < 0 ||
      alternative->step_cycles < 0 || alternative->bytes < 0)
    return weft_error(INVALID_INPUT, "a figure is negative");
  return weft_ok();
}

static weft_status_t verify_placement(const weft_fabric_t* fabric, const weft_kernel_t* kernel) {
  if (fabric->stage < WEFT_STAGE_PLACED) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_verify_index("the chosen alternative", kernel->chosen, kernel->alternative_count));
  const weft_alternative_t* chosen = &kernel->alternative[kernel->chosen];
  const weft_region_t* region = &kernel->region;
  if (region->x < 0 || region->y < 0 || region->width < 1 || region->height < 1)
    return weft_error(INVALID_INPUT, "a region of %" PRId32 " x %" PRId32 " tiles at (%" PRId32 ", %" PRId32 ")",
                      region->width, region->height, region->x, region->y);
  int64_t count = (int64_t)chosen->gy * chosen->gx;
  WEFT_RETURN_IF_ERROR(weft_verify_array("tiles", count, kernel->tile));
  for (int64_t i = 0; i < count; ++i) WEFT_RETURN_IF_ERROR(weft_verify_index("a tile", kernel->tile[i], INT32_MAX));
  return weft_ok();
}

weft_status_t weft_verify_kernel(const weft_fabric_t* fabric, int32_t index) {
  const weft_kernel_t* kernel = &fabric->kernel[index];
  if (!kernel->name || !kernel->nodes) return weft_error(INVALID_INPUT, "it has no name or no nodes");
  WEFT_RETURN_IF_ERROR(verify_dims(kernel));
  WEFT_RETURN_IF_ERROR(weft_verify_array("buffers", kernel->buffer_count, kernel->buffer));
  for (int32_t i = 0; i < kernel->buffer_count; ++i) {
    const char* name = kernel->buffer[i].name ? kernel->buffer[i].name : "";
    weft_status_t status = verify_buffer(fabric, index, i);
    if (status) return weft_status_annotate(status, "buffer %" PRId32 " '%s'", i, name);
  }
  WEFT_RETURN_IF_ERROR(verify_operations(fabric, index));
  WEFT_RETURN_IF_ERROR(weft_verify_array("alternatives", kernel->alternative_count, kernel->alternative));
  for (int32_t i = 0; i < kernel->alternative_count; ++i) {
    weft_status_t status = verify_alternative(kernel, &kernel->alternative[i]);
    if (status) return weft_status_annotate(status, "alternative %" PRId32, i);
  }
  return verify_placement(fabric, kernel);
}
