// Internal consistency of the fabric IR. What passes here may be indexed, multiplied and walked without further checks:
// no index is outside its array, no size overflows. Whether it is legal on a machine is check/'s business.
#include "ir/fabric/verify.h"

#include <inttypes.h>

#include "base/checked.h"
#include "ir/fabric/split.h"
#include "machine/machine.h"

bool weft_verify_product(int64_t factor, int64_t* inout_product) {
  return factor >= 0 && weft_checked_mul(*inout_product, factor, inout_product) && *inout_product <= WEFT_VERIFY_MOST;
}

// What has no elements: no piece, kernel or stream may know it.
static bool is_empty(const weft_shape_t* shape) {
  bool is_empty = false;
  for (int32_t i = 0; i < shape->rank && i < WEFT_MAX_RANK; ++i) {
    if (shape->extent[i] < 0) return false;
    is_empty |= shape->extent[i] == 0;
  }
  return is_empty && shape->rank <= WEFT_MAX_RANK;
}

weft_status_t weft_verify_shape(const weft_shape_t* shape) {
  int64_t elements = 1;
  if (shape->rank < 0 || shape->rank > WEFT_MAX_RANK)
    return weft_error(INVALID_INPUT, "rank %" PRId32 " is outside 0..%d", shape->rank, WEFT_MAX_RANK);
  for (int32_t i = 0; i < shape->rank; ++i)
    if (shape->extent[i] < 1 || !weft_verify_product(shape->extent[i], &elements))
      return weft_error(INVALID_INPUT, "extent %" PRId64 " of dimension %" PRId32 " is less than 1 or makes %s",
                        shape->extent[i], i, "more elements than any memory holds");
  return weft_ok();
}

weft_status_t weft_verify_index(const char* what, int64_t index, int64_t count) {
  if (index >= 0 && index < count) return weft_ok();
  return weft_error(INVALID_INPUT, "%s %" PRId64 " is outside 0..%" PRId64, what, index, count - 1);
}

weft_status_t weft_verify_array(const char* what, int64_t count, const void* data) {
  if (count >= 0 && (count == 0 || data)) return weft_ok();
  return weft_error(INVALID_INPUT, "%" PRId64 " %s, but there is no array of them", count, what);
}

static weft_status_t verify_view(const weft_view_t* view, int64_t elements) {
  int64_t product = 1, reach[WEFT_MAX_RANK];
  if (view->factor_count < 0 || view->factor_count > WEFT_MAX_FACTORS || view->rank < 0 || view->rank > WEFT_MAX_RANK)
    return weft_error(INVALID_INPUT, "a view of %" PRId32 " factors and rank %" PRId32 " is beyond %d and %d",
                      view->factor_count, view->rank, WEFT_MAX_FACTORS, WEFT_MAX_RANK);
  for (int32_t d = 0; d < view->rank; ++d) {
    if (view->offset[d] > WEFT_VERIFY_MOST || view->offset[d] < -WEFT_VERIFY_MOST)
      return weft_error(INVALID_INPUT, "offset %" PRId64 " of the view is beyond any tensor", view->offset[d]);
    reach[d] = view->offset[d] < 0 ? -view->offset[d] : view->offset[d];
  }
  for (int32_t j = 0; j < view->factor_count; ++j) {
    const weft_view_factor_t* factor = &view->factor[j];
    if (factor->extent < 1 || factor->lo < 0 || factor->lo > factor->hi || factor->hi > factor->extent ||
        !weft_verify_product(factor->extent, &product))
      return weft_error(INVALID_INPUT, "factor %" PRId32 " of the view: %" PRId64 "..%" PRId64 " of extent %" PRId64, j,
                        factor->lo, factor->hi, factor->extent);
    if (factor->dim == -1) continue;
    WEFT_RETURN_IF_ERROR(weft_verify_index("a factor's dimension", factor->dim, view->rank));
    bool far = factor->step > WEFT_VERIFY_MOST || factor->step < -WEFT_VERIFY_MOST;
    int64_t step = far || factor->step >= 0 ? factor->step : -factor->step;
    if (far || !weft_checked_mul(step, factor->extent - 1, &step) || step > WEFT_VERIFY_MOST ||
        (reach[factor->dim] += step) > WEFT_VERIFY_MOST)
      return weft_error(INVALID_INPUT, "factor %" PRId32 " of the view reaches beyond any tensor", j);
  }
  if (product != elements)
    return weft_error(INVALID_INPUT, "the view's factors make %" PRId64 " elements, the tensor has %" PRId64, product,
                      elements);
  return weft_ok();
}

weft_status_t weft_verify_pieces(const weft_fabric_t* fabric, int32_t count, const weft_piece_t* piece, int32_t rank,
                                 weft_dtype_e dtype, int32_t kernel) {
  WEFT_RETURN_IF_ERROR(weft_verify_array("pieces", count, piece));
  for (int32_t i = 0; i < count; ++i) {
    WEFT_RETURN_IF_ERROR(weft_verify_index("a piece's tensor", piece[i].tensor, fabric->tensor_count));
    const weft_tensor_t* tensor = &fabric->tensor[piece[i].tensor];
    weft_status_t status = is_empty(&tensor->shape) ? weft_error(INVALID_INPUT, "it has no elements")
                                                    : verify_view(&piece[i].view, weft_verify_elements(&tensor->shape));
    if (!status && piece[i].view.rank != rank)
      status = weft_error(INVALID_INPUT, "the view has rank %" PRId32 ", what it assembles has %" PRId32,
                          piece[i].view.rank, rank);
    if (!status && !weft_dtype_same_bits(tensor->dtype, dtype))
      status = weft_error(INVALID_INPUT, "the tensor holds %s, what it assembles %s", weft_dtype_name(tensor->dtype),
                          weft_dtype_name(dtype));
    if (!status && tensor->kind == WEFT_TENSOR_RESULT && tensor->kernel >= kernel &&
        !(kernel < fabric->kernel_count && tensor->kernel == kernel && count == 1 &&
          weft_split_sequential(&fabric->kernel[kernel])))
      status = weft_error(INVALID_INPUT, "the tensor is made by kernel %" PRId32 ", which doesn't come before",
                          tensor->kernel);
    if (!status && tensor->kind == WEFT_TENSOR_CONSTANT && kernel == fabric->kernel_count)
      status = weft_error(INVALID_INPUT, "a constant can't be part of an output");
    if (status) return weft_status_annotate(status, "piece %" PRId32 ", tensor '%s'", i, tensor->name);
  }
  return weft_ok();
}

int64_t weft_verify_elements(const weft_shape_t* shape) {
  int64_t elements = 1;
  for (int32_t i = 0; i < shape->rank; ++i) elements *= shape->extent[i];
  return elements;
}

static weft_status_t verify_tensor(const weft_fabric_t* fabric, int32_t index) {
  const weft_tensor_t* tensor = &fabric->tensor[index];
  if (!tensor->name) return weft_error(INVALID_INPUT, "it has no name");
  if ((unsigned)tensor->kind > WEFT_TENSOR_RESULT || (unsigned)tensor->dtype >= WEFT_DTYPE_COUNT)
    return weft_error(INVALID_INPUT, "its kind or element type doesn't exist");
  if (tensor->kind == WEFT_TENSOR_INPUT && is_empty(&tensor->shape)) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_verify_shape(&tensor->shape));
  if (tensor->kind == WEFT_TENSOR_CONSTANT && !tensor->data) return weft_error(INVALID_INPUT, "it has no data");
  if (tensor->kind != WEFT_TENSOR_RESULT) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_verify_index("its kernel", tensor->kernel, fabric->kernel_count));
  const weft_kernel_t* kernel = &fabric->kernel[tensor->kernel];
  WEFT_RETURN_IF_ERROR(weft_verify_array("buffers", kernel->buffer_count, kernel->buffer));
  WEFT_RETURN_IF_ERROR(weft_verify_index("its buffer", tensor->buffer, kernel->buffer_count));
  const weft_buffer_t* buffer = &kernel->buffer[tensor->buffer];
  if (buffer->kind != WEFT_BUFFER_RESULT || buffer->tensor != index)
    return weft_error(INVALID_INPUT, "buffer %" PRId32 " of kernel %" PRId32 " is not its result buffer",
                      tensor->buffer, tensor->kernel);
  if (buffer->dtype != tensor->dtype || buffer->rank != tensor->shape.rank)
    return weft_error(INVALID_INPUT, "it is %s of rank %" PRId32 ", its buffer %s of rank %" PRId32,
                      weft_dtype_name(tensor->dtype), tensor->shape.rank,
                      (unsigned)buffer->dtype < WEFT_DTYPE_COUNT ? weft_dtype_name(buffer->dtype) : "nothing",
                      buffer->rank);
  return weft_ok();
}

static weft_status_t verify_tensors(const weft_fabric_t* fabric) {
  int32_t inputs = 0;
  for (int32_t i = 0; i < fabric->tensor_count; ++i) {
    weft_status_t status = verify_tensor(fabric, i);
    if (status)
      return weft_status_annotate(status, "tensor %" PRId32 " '%s'", i,
                                  fabric->tensor[i].name ? fabric->tensor[i].name : "");
    inputs += fabric->tensor[i].kind == WEFT_TENSOR_INPUT;
  }
  if (fabric->input_count != inputs)
    return weft_error(INVALID_INPUT, "%" PRId32 " inputs are listed, but %" PRId32 " tensors are inputs",
                      fabric->input_count, inputs);
  for (int32_t i = 0; i < inputs; ++i) {
    WEFT_RETURN_IF_ERROR(weft_verify_index("an input's tensor", fabric->input[i], fabric->tensor_count));
    if (fabric->tensor[fabric->input[i]].kind != WEFT_TENSOR_INPUT)
      return weft_error(INVALID_INPUT, "'%s' is listed as an input but is none", fabric->tensor[fabric->input[i]].name);
    for (int32_t j = 0; j < i; ++j)
      if (fabric->input[j] == fabric->input[i])
        return weft_error(INVALID_INPUT, "input '%s' is listed twice", fabric->tensor[fabric->input[i]].name);
  }
  return weft_ok();
}

static weft_status_t verify_output(const weft_fabric_t* fabric, const weft_output_t* output) {
  if (!output->name) return weft_error(INVALID_INPUT, "it has no name");
  if ((unsigned)output->dtype >= WEFT_DTYPE_COUNT) return weft_error(INVALID_INPUT, "its element type doesn't exist");
  if (is_empty(&output->shape) && output->piece_count == 0) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_verify_shape(&output->shape));
  return weft_verify_pieces(fabric, output->piece_count, output->piece, output->shape.rank, output->dtype,
                            fabric->kernel_count);
}

weft_status_t weft_fabric_verify(const weft_fabric_t* fabric) {
  if ((unsigned)fabric->stage >= WEFT_STAGE_COUNT) return weft_error(INVALID_INPUT, "there is no such stage");
  WEFT_RETURN_IF_ERROR(weft_verify_array("tensors", fabric->tensor_count, fabric->tensor));
  WEFT_RETURN_IF_ERROR(weft_verify_array("kernels", fabric->kernel_count, fabric->kernel));
  WEFT_RETURN_IF_ERROR(weft_verify_array("streams", fabric->stream_count, fabric->stream));
  WEFT_RETURN_IF_ERROR(weft_verify_array("outputs", fabric->output_count, fabric->output));
  WEFT_RETURN_IF_ERROR(weft_verify_array("inputs", fabric->input_count, fabric->input));
  WEFT_RETURN_IF_ERROR(verify_tensors(fabric));
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const char* name = fabric->kernel[i].name ? fabric->kernel[i].name : "";
    weft_status_t status = weft_verify_kernel(fabric, i);
    if (status) return weft_status_annotate(status, "kernel %" PRId32 " '%s'", i, name);
  }
  for (int32_t i = 0; i < fabric->output_count; ++i) {
    const char* name = fabric->output[i].name ? fabric->output[i].name : "";
    weft_status_t status = verify_output(fabric, &fabric->output[i]);
    if (status) return weft_status_annotate(status, "output %" PRId32 " '%s'", i, name);
  }
  if (fabric->stage < WEFT_STAGE_PLACED && fabric->stream_count)
    return weft_error(INVALID_INPUT, "%" PRId32 " streams, but streams belong to placed kernels", fabric->stream_count);
  for (int32_t i = 0; i < fabric->stream_count; ++i) {
    weft_status_t status = weft_verify_stream(fabric, &fabric->stream[i]);
    if (status) return weft_status_annotate(status, "stream %" PRId32, i);
  }
  return weft_ok();
}

static weft_status_t match(const char* what, const weft_digest_t* ours, const weft_digest_t* theirs) {
  char ours_text[65], theirs_text[65];
  if (weft_digest_compare(ours, theirs) == 0) return weft_ok();
  weft_digest_format(ours, ours_text);
  weft_digest_format(theirs, theirs_text);
  return weft_error(INVALID_INPUT, "made for another %s\n  made for  %s\n  used with %s", what, ours_text, theirs_text);
}

weft_status_t weft_fabric_match(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                const weft_defects_t* defects) {
  weft_digest_t digest;
  if (fabric->stage < WEFT_STAGE_PLACED) return weft_ok(); // bound to no wafer yet
  if (machine) {
    WEFT_RETURN_IF_ERROR(weft_machine_digest(machine, &digest));
    WEFT_RETURN_IF_ERROR(match("machine", &fabric->machine_digest, &digest));
  }
  if (!defects) return weft_ok();
  digest = weft_defects_digest(defects);
  return match("defect map", &fabric->defects_digest, &digest);
}
