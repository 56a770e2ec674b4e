// Every element that a tile needs of an operand arrives there exactly once; so does every element of an output at the
// host.
#include "check/arrivals.h"

enum { MOST_VISITS = 50000000 }; // some seconds

bool weft_check_operand_needs(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t logical) {
  return o->kernel == WEFT_HOST_KERNEL ||
         weft_check_uses_buffer(&a->check->fabric->kernel[o->kernel], o->buffer, logical);
}

weft_box_t weft_check_operand_box(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t logical) {
  const weft_fabric_t* fabric = a->check->fabric;
  if (o->kernel != WEFT_HOST_KERNEL) return weft_check_buffer_box(&fabric->kernel[o->kernel], o->buffer, logical);
  const weft_shape_t* shape = &fabric->output[o->buffer].shape;
  weft_box_t box = {.rank = shape->rank};
  for (int32_t d = 0; d < shape->rank; ++d) box.hi[d] = shape->extent[d];
  return box;
}

weft_check_place_t weft_check_operand_place(const weft_check_arrivals_t* a, const weft_check_operand_t* o,
                                            int32_t logical) {
  return weft_check_place(a->check->machine, weft_check_physical(a->check->fabric, o->kernel, logical));
}

const weft_stream_t* weft_check_operand_stream(const weft_check_arrivals_t* a, const weft_check_operand_t* o,
                                               size_t* inout_at) {
  while (*inout_at < a->data.count) {
    const weft_stream_t* stream = &a->check->fabric->stream[a->data.data[(*inout_at)++]];
    if (stream->sink_kernel == o->kernel && stream->sink_buffer == o->buffer) return stream;
  }
  return NULL;
}

static weft_status_t check_operand(weft_check_arrivals_t* a, const weft_check_operand_t* o) {
  WEFT_RETURN_IF_ERROR(weft_check_arrival_numbers(a, o));
  return weft_check_arrival_elements(a, o);
}

static weft_status_t check_kernel(weft_check_arrivals_t* a, int32_t index) {
  const weft_kernel_t* kernel = &a->check->fabric->kernel[index];
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    const weft_buffer_t* buffer = &kernel->buffer[b];
    if (buffer->kind != WEFT_BUFFER_OPERAND) continue;
    weft_check_operand_t operand = {.kernel = index,
                                    .buffer = b,
                                    .kernel_name = kernel->name,
                                    .name = buffer->name,
                                    .rank = buffer->rank,
                                    .piece_count = buffer->piece_count,
                                    .piece = buffer->piece,
                                    .has_fill = buffer->has_fill,
                                    .tiles = weft_check_tile_count(kernel)};
    WEFT_RETURN_IF_ERROR(check_operand(a, &operand));
  }
  return weft_ok();
}

static weft_status_t check_output(weft_check_arrivals_t* a, int32_t index) {
  const weft_output_t* output = &a->check->fabric->output[index];
  for (int32_t d = 0; d < output->shape.rank; ++d)
    if (output->shape.extent[d] == 0) return weft_ok(); // nothing to arrive
  weft_check_operand_t operand = {.kernel = WEFT_HOST_KERNEL,
                                  .buffer = index,
                                  .kernel_name = "output",
                                  .name = output->name,
                                  .rank = output->shape.rank,
                                  .piece_count = output->piece_count,
                                  .piece = output->piece,
                                  .has_fill = output->has_fill,
                                  .tiles = 1};
  return check_operand(a, &operand);
}

weft_status_t weft_check_arrivals(const weft_check_t* check) {
  weft_check_arrivals_t arrivals = {.check = check, .visits_left = MOST_VISITS};
  weft_status_t status = weft_ok();
  for (int32_t i = 0; !status && i < check->fabric->stream_count; ++i)
    if (check->fabric->stream[i].kind == WEFT_STREAM_DATA)
      status = WEFT_ARRAY_PUSH(check->allocator, &arrivals.data, i);
  for (int32_t k = 0; !status && k < check->fabric->kernel_count; ++k) status = check_kernel(&arrivals, k);
  for (int32_t i = 0; !status && i < check->fabric->output_count; ++i) status = check_output(&arrivals, i);
  WEFT_ARRAY_FREE(check->allocator, &arrivals.data);
  return status;
}
