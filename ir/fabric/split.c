#include "ir/fabric/split.h"

#include "base/checked.h"

int32_t weft_split_grid(const weft_axis_factor_t* factor, int32_t count) {
  int32_t product = 1;
  for (int32_t i = 0; i < count; ++i) product *= factor[i].parts;
  return product;
}

static const weft_axis_factor_t* find_factor(const weft_axis_factor_t* factor, int32_t count, int32_t dim) {
  for (int32_t i = 0; i < count; ++i)
    if (factor[i].dim == dim) return &factor[i];
  return NULL;
}

int64_t weft_split_block(const weft_kernel_t* kernel, const weft_split_t* split, int32_t dim) {
  const weft_axis_factor_t* factor = find_factor(split->y, split->y_count, dim);
  if (!factor) factor = find_factor(split->x, split->x_count, dim);
  return factor ? weft_ceil_div(kernel->dim[dim].extent, factor->parts) : kernel->dim[dim].extent;
}

static void axis_box(const weft_kernel_t* kernel, const weft_axis_factor_t* factor, int32_t count, int32_t index,
                     weft_iteration_box_t* box) {
  for (int32_t i = count - 1; i >= 0; --i) {
    int64_t extent = kernel->dim[factor[i].dim].extent, block = weft_ceil_div(extent, factor[i].parts);
    int64_t lo = weft_min_i64(extent, index % factor[i].parts * block);
    index /= factor[i].parts;
    box->lo[factor[i].dim] = lo;
    box->hi[factor[i].dim] = weft_min_i64(extent, lo + block);
  }
}

weft_iteration_box_t weft_split_box(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical) {
  weft_iteration_box_t box = {0};
  for (int32_t d = 0; d < kernel->dim_count; ++d) box.hi[d] = kernel->dim[d].extent;
  int32_t gx = weft_split_grid(split->x, split->x_count);
  axis_box(kernel, split->y, split->y_count, logical / gx, &box);
  axis_box(kernel, split->x, split->x_count, logical % gx, &box);
  return box;
}

weft_box_t weft_split_buffer_box(const weft_kernel_t* kernel, const weft_buffer_t* buffer,
                                 const weft_iteration_box_t* box) {
  weft_box_t image = {.rank = buffer->rank};
  for (int32_t r = 0; r < buffer->rank; ++r) {
    image.lo[r] = buffer->row[r].offset;
    image.hi[r] = buffer->row[r].offset + 1;
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      int64_t c = buffer->row[r].coefficient[d];
      if (c == 0) continue;
      image.lo[r] += c * (c > 0 ? box->lo[d] : box->hi[d] - 1);
      image.hi[r] += c * (c > 0 ? box->hi[d] - 1 : box->lo[d]);
    }
  }
  return image;
}

weft_shape_t weft_split_buffer_extents(const weft_kernel_t* kernel, const weft_split_t* split, int32_t buffer) {
  // The first tile's blocks are whole, and an image's extents depend on the lengths of the blocks only.
  weft_iteration_box_t box = weft_split_box(kernel, split, 0);
  weft_box_t image = weft_split_buffer_box(kernel, &kernel->buffer[buffer], &box);
  weft_shape_t shape = {.rank = image.rank};
  for (int32_t r = 0; r < image.rank; ++r) shape.extent[r] = image.hi[r] - image.lo[r];
  return shape;
}

// The reduction factors of an axis stand last: their digits are the axis index modulo this product.
static int32_t axis_reduction_parts(const weft_kernel_t* kernel, const weft_axis_factor_t* factor, int32_t count) {
  int32_t product = 1;
  for (int32_t i = 0; i < count; ++i)
    if (kernel->dim[factor[i].dim].kind == WEFT_DIM_REDUCTION) product *= factor[i].parts;
  return product;
}

int32_t weft_split_chain_length(const weft_kernel_t* kernel, const weft_split_t* split) {
  return axis_reduction_parts(kernel, split->y, split->y_count) *
         axis_reduction_parts(kernel, split->x, split->x_count);
}

int32_t weft_split_chain_position(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical) {
  int32_t gx = weft_split_grid(split->x, split->x_count);
  int32_t along_x = axis_reduction_parts(kernel, split->x, split->x_count);
  int32_t along_y = axis_reduction_parts(kernel, split->y, split->y_count);
  return logical / gx % along_y * along_x + logical % gx % along_x;
}

int32_t weft_split_chain_next(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical) {
  if (weft_split_is_owner(kernel, split, logical)) return -1;
  bool along_x = axis_reduction_parts(kernel, split->x, split->x_count) > 1;
  return logical + (along_x ? 1 : weft_split_grid(split->x, split->x_count));
}

bool weft_split_is_owner(const weft_kernel_t* kernel, const weft_split_t* split, int32_t logical) {
  return weft_split_chain_position(kernel, split, logical) == weft_split_chain_length(kernel, split) - 1;
}

bool weft_split_depends_on(const weft_buffer_t* buffer, int32_t dim) {
  for (int32_t r = 0; r < buffer->rank; ++r)
    if (buffer->row[r].coefficient[dim] != 0) return true;
  return false;
}

bool weft_split_by_columns(const weft_split_t* split) {
  return weft_split_grid(split->y, split->y_count) >= weft_split_grid(split->x, split->x_count);
}

int32_t weft_split_owner(const weft_kernel_t* kernel, const weft_split_t* split, int64_t source_index) {
  int32_t gx = weft_split_grid(split->x, split->x_count);
  int32_t along_x = axis_reduction_parts(kernel, split->x, split->x_count);
  int32_t along_y = axis_reduction_parts(kernel, split->y, split->y_count);
  int64_t rows = weft_split_grid(split->y, split->y_count) / along_y, columns = gx / along_x;
  bool by_columns = weft_split_by_columns(split);
  int64_t row = by_columns ? source_index % rows : source_index / columns;
  int64_t column = by_columns ? source_index / rows : source_index % columns;
  return (int32_t)((row * along_y + along_y - 1) * gx + column * along_x + along_x - 1);
}

bool weft_split_runs(const weft_kernel_t* kernel, const weft_split_t* split, int32_t operation, int32_t logical) {
  return kernel->reduce_operation < 0 || operation <= kernel->reduce_operation ||
         weft_split_is_owner(kernel, split, logical);
}

bool weft_split_needs_buffer(const weft_kernel_t* kernel, const weft_split_t* split, int32_t buffer, int32_t logical) {
  for (int32_t i = 0; i < kernel->operation_count; ++i) {
    const weft_operation_t* operation = &kernel->operation[i];
    bool uses = operation->destination == buffer;
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s) uses = uses || operation->source[s] == buffer;
    if (uses && weft_split_runs(kernel, split, i, logical)) return true;
  }
  return false;
}

uint32_t weft_split_sequential(const weft_kernel_t* kernel) {
  for (int32_t d = 0; d < kernel->dim_count; ++d)
    if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) return 1u << d;
  return 0;
}

bool weft_split_is_carried(const weft_operation_t* operation, int32_t count, uint32_t sequential, int32_t buffer) {
  for (int32_t o = 0; o < count; ++o) {
    if (!(operation[o].loops & sequential)) continue;
    for (int32_t s = 0; s < weft_op_source_count(operation[o].op); ++s)
      if (operation[o].source[s] == buffer) return true;
    if (operation[o].destination == buffer) return operation[o].op == WEFT_OP_MLA;
  }
  return false;
}

bool weft_split_is_feedback(const weft_fabric_t* fabric, int32_t kernel, int32_t buffer) {
  const weft_buffer_t* operand = &fabric->kernel[kernel].buffer[buffer];
  if (operand->kind != WEFT_BUFFER_OPERAND || operand->piece_count != 1) return false;
  const weft_tensor_t* tensor = &fabric->tensor[operand->piece[0].tensor];
  return tensor->kind == WEFT_TENSOR_RESULT && tensor->kernel == kernel;
}

bool weft_split_is_streamed(const weft_fabric_t* fabric, const weft_buffer_t* buffer) {
  if (buffer->kind != WEFT_BUFFER_OPERAND) return buffer->kind == WEFT_BUFFER_RESULT;
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    const weft_tensor_t* tensor = &fabric->tensor[buffer->piece[p].tensor];
    if (tensor->kind == WEFT_TENSOR_CONSTANT) continue;
    if (tensor->kind == WEFT_TENSOR_INPUT) return true;
    const weft_kernel_t* kernel = &fabric->kernel[tensor->kernel]; // what comes back to it doesn't arrive ahead
    if (buffer < kernel->buffer || buffer >= kernel->buffer + kernel->buffer_count) return true;
  }
  return false;
}

int32_t weft_split_depth(const weft_fabric_t* fabric, const weft_alternative_t* alternative,
                         const weft_buffer_t* buffer) {
  if (!weft_split_is_streamed(fabric, buffer)) return 1;
  return (alternative->doubled ? 2 : 1) + buffer->spare;
}

weft_box_t weft_split_owned_box(const weft_fabric_t* fabric, int32_t tensor, int32_t logical) {
  const weft_tensor_t* t = &fabric->tensor[tensor];
  weft_box_t whole = weft_box_of_shape(&t->shape);
  if (t->kind != WEFT_TENSOR_RESULT) return whole;
  const weft_kernel_t* kernel = &fabric->kernel[t->kernel];
  const weft_split_t* split = &kernel->alternative[kernel->chosen].split;
  if (!weft_split_is_owner(kernel, split, logical)) return (weft_box_t){.rank = whole.rank};
  weft_iteration_box_t box = weft_split_box(kernel, split, logical);
  weft_box_t held = weft_split_buffer_box(kernel, &kernel->buffer[t->buffer], &box);
  return weft_box_intersect(&held, &whole);
}
