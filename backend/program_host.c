// The host's program: it posts what it receives and sends for all steps, and waits.
#include <inttypes.h>
#include <string.h>

#include "backend/nest.h"
#include "backend/program.h"
#include "backend/transfer.h"

typedef struct host_t {
  const weft_fabric_t* fabric;
  const weft_image_io_t* io;
  weft_writer_t* writer;
} host_t;

// A whole tensor, row-major, at the address of an input or output.
static weft_placement_t placement_of(const weft_image_io_t* io, const weft_shape_t* shape) {
  weft_placement_t placement = {.address = (int64_t)io->address, .rank = shape->rank};
  int64_t stride = (int64_t)weft_dtype_size((weft_dtype_e)io->dtype);
  for (int32_t d = shape->rank - 1; d >= 0; --d) {
    placement.stride[d] = stride;
    stride *= shape->extent[d];
  }
  return placement;
}

static weft_status_t write_receive(const host_t* h, const weft_end_t* end) {
  const weft_stream_t* stream = &h->fabric->stream[end->stream];
  const weft_output_t* output = &h->fabric->output[stream->sink_buffer];
  const weft_image_io_t* io = &h->io[h->fabric->input_count + stream->sink_buffer];
  weft_placement_t placement = placement_of(io, &output->shape);
  weft_box_t filter = weft_box_of_shape(&output->shape);
  weft_instruction_t i = {
      .opcode = WEFT_OPCODE_RECV, .dtype = stream->dtype, .flags = WEFT_ISA_FLAG_REPEAT, .colour = end->colour};
  WEFT_RETURN_IF_ERROR(weft_nest_narrow((int64_t)io->step_stride, "the step stride", &i.step_stride));
  weft_status_t status = weft_transfer_recv(&stream->walk, &h->fabric->tensor[stream->tensor].shape,
                                            &output->piece[stream->sink_piece].view, &filter, &placement, &i);
  if (!status) status = weft_writer_append(h->writer, &i);
  return weft_status_annotate(status, "host receiving output '%s'", output->name);
}

static weft_status_t write_send(const host_t* h, const weft_end_t* end) {
  const weft_stream_t* stream = &h->fabric->stream[end->stream];
  const weft_tensor_t* tensor = &h->fabric->tensor[stream->tensor];
  int32_t input = 0;
  while (input < h->fabric->input_count && h->fabric->input[input] != stream->tensor) ++input;
  if (input == h->fabric->input_count)
    return weft_error(INVALID_INPUT, "the host is to send '%s', which is no input", tensor->name);
  const weft_image_io_t* io = &h->io[input];
  weft_placement_t placement = placement_of(io, &tensor->shape);
  weft_box_t whole = weft_box_of_shape(&tensor->shape);
  weft_instruction_t i = {
      .opcode = WEFT_OPCODE_SEND, .dtype = stream->dtype, .flags = WEFT_ISA_FLAG_REPEAT, .colour = end->colour};
  int64_t points = 0;
  weft_status_t status = weft_nest_narrow((int64_t)io->step_stride, "the step stride", &i.step_stride);
  if (!status) status = weft_transfer_send(&stream->walk, &whole, &placement, &i, &points);
  if (!status && points != stream->source[end->index].elements)
    status = weft_error(INVALID_INPUT, "the stream has %" PRId64 " elements, not %" PRId64, points,
                        stream->source[end->index].elements);
  if (!status) status = weft_writer_append(h->writer, &i);
  return weft_status_annotate(status, "host sending input '%s'", tensor->name);
}

// Padding of outputs: inside the body, where an address lies in the area of the step.
static weft_status_t write_fills(const host_t* h) {
  bool any = false;
  for (int32_t o = 0; o < h->fabric->output_count; ++o) {
    const weft_output_t* output = &h->fabric->output[o];
    const weft_image_io_t* io = &h->io[h->fabric->input_count + o];
    uint8_t bytes[8] = {0}, zeros[8] = {0};
    if (output->has_fill) weft_dtype_store(output->dtype, output->fill, bytes);
    if (!memcmp(bytes, zeros, sizeof(bytes))) continue;
    weft_instruction_t i = {.opcode = WEFT_OPCODE_TENSOR,
                            .op = WEFT_OP_MOV,
                            .dtype = output->dtype,
                            .destination_dtype = output->dtype,
                            .flags = WEFT_ISA_FLAG_IMMEDIATE0};
    if (!weft_layout_immediate(&(weft_layout_t){0}, output->dtype, output->fill, &i.base[1], &(int64_t){0}))
      return weft_error(UNSUPPORTED, "output '%s': its padding %g fits no immediate", output->name, output->fill);
    weft_nest_t nest;
    weft_nest_initialize(2, &nest);
    int64_t strides[WEFT_NEST_OPERANDS] = {(int64_t)weft_dtype_size(output->dtype)};
    weft_nest_push(&nest, weft_shape_elements(&output->shape), strides);
    WEFT_RETURN_IF_ERROR(weft_nest_narrow((int64_t)io->address, "the address", &i.base[0]));
    WEFT_RETURN_IF_ERROR(weft_nest_store(&nest, &i));
    if (!any) WEFT_RETURN_IF_ERROR(weft_writer_append_simple(h->writer, WEFT_OPCODE_STEPS, 0));
    any = true;
    WEFT_RETURN_IF_ERROR(weft_writer_append(h->writer, &i));
  }
  return any ? weft_writer_append_simple(h->writer, WEFT_OPCODE_END_STEPS, 0) : weft_ok();
}

weft_status_t weft_program_host(const weft_fabric_t* fabric, const weft_endpoints_t* endpoints,
                                const weft_image_io_t* io, weft_writer_t* writer) {
  host_t host = {fabric, io, writer};
  weft_end_list_t in = weft_endpoints_of(endpoints, &endpoints->in, WEFT_HOST_KERNEL, 0);
  weft_end_list_t out = weft_endpoints_of(endpoints, &endpoints->out, WEFT_HOST_KERNEL, 0);
  WEFT_RETURN_IF_ERROR(write_fills(&host));
  for (size_t e = 0; e < in.count; ++e) WEFT_RETURN_IF_ERROR(write_receive(&host, &in.end[e]));
  for (size_t e = 0; e < out.count; ++e) WEFT_RETURN_IF_ERROR(write_send(&host, &out.end[e]));
  for (size_t e = 0; e < out.count; ++e)
    WEFT_RETURN_IF_ERROR(weft_writer_append_simple(writer, WEFT_OPCODE_WAIT_SEND, out.end[e].colour));
  for (size_t e = 0; e < in.count; ++e)
    WEFT_RETURN_IF_ERROR(weft_writer_append_simple(writer, WEFT_OPCODE_WAIT_RECV, in.end[e].colour));
  return weft_writer_append_simple(writer, WEFT_OPCODE_HALT, 0);
}
