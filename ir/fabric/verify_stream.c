// Streams and their routes, as far as indices go.
#include <inttypes.h>

#include "base/checked.h"
#include "ir/fabric/verify.h"

static int64_t logical_tiles(const weft_fabric_t* fabric, int32_t kernel) {
  if (kernel == WEFT_HOST_KERNEL) return 1;
  const weft_alternative_t* chosen = &fabric->kernel[kernel].alternative[fabric->kernel[kernel].chosen];
  return (int64_t)chosen->gy * chosen->gx;
}

static weft_status_t verify_endpoints(const weft_fabric_t* fabric, const char* what, int32_t kernel, int32_t count,
                                      const weft_endpoint_t* endpoint, int64_t fewest) {
  WEFT_RETURN_IF_ERROR(weft_verify_array(what, count, endpoint));
  int64_t tiles = logical_tiles(fabric, kernel);
  if (count < 1) return weft_error(INVALID_INPUT, "it has no %s", what);
  for (int32_t i = 0; i < count; ++i) {
    WEFT_RETURN_IF_ERROR(
        weft_status_annotate(weft_verify_index("a logical tile", endpoint[i].logical, tiles), "%s", what));
    if (endpoint[i].elements < fewest || endpoint[i].elements > WEFT_VERIFY_MOST)
      return weft_error(INVALID_INPUT, "%" PRId64 " elements at logical tile %" PRId32 " of the %s",
                        endpoint[i].elements, endpoint[i].logical, what);
  }
  return weft_ok();
}

static weft_status_t verify_walk(const weft_walk_t* walk, const weft_shape_t* shape) {
  int64_t points = 1, reach[WEFT_MAX_RANK] = {0};
  if (walk->level_count < 0 || walk->level_count > WEFT_MAX_LEVELS || walk->source_levels < 0 ||
      walk->source_levels > walk->level_count)
    return weft_error(INVALID_INPUT, "a walk of %" PRId32 " levels, %" PRId32 " of them over sources",
                      walk->level_count, walk->source_levels);
  if (walk->box.rank != shape->rank)
    return weft_error(INVALID_INPUT, "the walk's box has rank %" PRId32 ", the tensor %" PRId32, walk->box.rank,
                      shape->rank);
  for (int32_t i = 0; i < walk->level_count; ++i) {
    const weft_walk_level_t* level = &walk->level[i];
    int64_t length;
    WEFT_RETURN_IF_ERROR(weft_verify_index("a level's dimension", level->dim, shape->rank));
    if (level->extent < 1 || level->step < 0 || !weft_verify_product(level->extent, &points) ||
        !weft_checked_mul(level->extent - 1, level->step, &length) || length > WEFT_VERIFY_MOST ||
        (reach[level->dim] += length) > WEFT_VERIFY_MOST)
      return weft_error(INVALID_INPUT, "level %" PRId32 " of the walk: %" PRId64 " steps of %" PRId64, i, level->extent,
                        level->step);
  }
  for (int32_t d = 0; d < shape->rank; ++d)
    if (walk->box.lo[d] < 0 || walk->box.lo[d] > walk->box.hi[d] || walk->box.hi[d] > shape->extent[d])
      return weft_error(INVALID_INPUT,
                        "the walk's box %" PRId64 "..%" PRId64 " is outside dimension %" PRId32 " of extent %" PRId64,
                        walk->box.lo[d], walk->box.hi[d], d, shape->extent[d]);
  return weft_ok();
}

static weft_status_t verify_data(const weft_fabric_t* fabric, const weft_stream_t* stream) {
  const weft_piece_t* piece;
  WEFT_RETURN_IF_ERROR(weft_verify_index("its tensor", stream->tensor, fabric->tensor_count));
  const weft_tensor_t* tensor = &fabric->tensor[stream->tensor];
  int32_t source = tensor->kind == WEFT_TENSOR_RESULT ? tensor->kernel : WEFT_HOST_KERNEL;
  if (tensor->kind == WEFT_TENSOR_CONSTANT || stream->source_kernel != source)
    return weft_error(INVALID_INPUT, "it doesn't start where tensor '%s' is made", tensor->name);
  if (stream->dtype != tensor->dtype)
    return weft_error(INVALID_INPUT, "it carries %s, tensor '%s' holds %s", weft_dtype_name(stream->dtype),
                      tensor->name, weft_dtype_name(tensor->dtype));
  if (stream->sink_kernel == WEFT_HOST_KERNEL) {
    WEFT_RETURN_IF_ERROR(weft_verify_index("its output", stream->sink_buffer, fabric->output_count));
    const weft_output_t* output = &fabric->output[stream->sink_buffer];
    WEFT_RETURN_IF_ERROR(weft_verify_index("its piece", stream->sink_piece, output->piece_count));
    piece = &output->piece[stream->sink_piece];
  } else {
    const weft_kernel_t* kernel = &fabric->kernel[stream->sink_kernel];
    WEFT_RETURN_IF_ERROR(weft_verify_index("its buffer", stream->sink_buffer, kernel->buffer_count));
    const weft_buffer_t* buffer = &kernel->buffer[stream->sink_buffer];
    if (buffer->kind != WEFT_BUFFER_OPERAND)
      return weft_error(INVALID_INPUT, "it ends in buffer '%s' of kernel '%s', which is no operand", buffer->name,
                        kernel->name);
    WEFT_RETURN_IF_ERROR(weft_verify_index("its piece", stream->sink_piece, buffer->piece_count));
    piece = &buffer->piece[stream->sink_piece];
  }
  if (piece->tensor != stream->tensor)
    return weft_error(INVALID_INPUT, "it carries tensor '%s' to a piece of another tensor", tensor->name);
  return verify_walk(&stream->walk, &tensor->shape);
}

static weft_status_t verify_entry(const weft_router_entry_t* entry) {
  WEFT_RETURN_IF_ERROR(weft_verify_index("its tile", entry->tile, INT32_MAX));
  WEFT_RETURN_IF_ERROR(weft_verify_index("its colour", entry->colour, WEFT_MAX_COLOURS));
  if (entry->input_count > WEFT_DIRECTION_COUNT)
    return weft_error(INVALID_INPUT, "a switch of %d inputs", entry->input_count);
  for (int32_t i = 0; i < entry->input_count; ++i)
    WEFT_RETURN_IF_ERROR(weft_verify_index("an input", entry->input[i], WEFT_DIRECTION_COUNT));
  if (entry->outputs >> WEFT_DIRECTION_COUNT)
    return weft_error(INVALID_INPUT, "outputs 0x%x are no directions", entry->outputs);
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
    if (entry->outputs >> d & 1)
      WEFT_RETURN_IF_ERROR(weft_verify_index("an output's colour", entry->output_colour[d], WEFT_MAX_COLOURS));
  return weft_ok();
}

static weft_status_t verify_route(const weft_stream_t* stream) {
  WEFT_RETURN_IF_ERROR(weft_verify_array("router entries", stream->entry_count, stream->entry));
  for (int32_t i = 0; i < stream->entry_count; ++i) {
    weft_status_t status = verify_entry(&stream->entry[i]);
    if (status) return weft_status_annotate(status, "router entry %" PRId32, i);
  }
  if ((stream->source_port >= 0) != (stream->source_kernel == WEFT_HOST_KERNEL) ||
      (stream->sink_port >= 0) != (stream->sink_kernel == WEFT_HOST_KERNEL))
    return weft_error(INVALID_INPUT, "ports %" PRId32 " and %" PRId32 " don't belong to its ends", stream->source_port,
                      stream->sink_port);
  return weft_ok();
}

weft_status_t weft_verify_stream(const weft_fabric_t* fabric, const weft_stream_t* stream) {
  if ((unsigned)stream->kind > WEFT_STREAM_CHAIN || (unsigned)stream->dtype >= WEFT_DTYPE_COUNT)
    return weft_error(INVALID_INPUT, "its kind or element type doesn't exist");
  if (stream->source_kernel != WEFT_HOST_KERNEL)
    WEFT_RETURN_IF_ERROR(weft_verify_index("its source kernel", stream->source_kernel, fabric->kernel_count));
  if (stream->sink_kernel != WEFT_HOST_KERNEL)
    WEFT_RETURN_IF_ERROR(weft_verify_index("its sink kernel", stream->sink_kernel, fabric->kernel_count));
  if (stream->elements < 0 || stream->elements > WEFT_VERIFY_MOST || stream->wavelets < 0)
    return weft_error(INVALID_INPUT, "%" PRId64 " elements in %" PRId64 " wavelets", stream->elements,
                      stream->wavelets);
  if (stream->kind == WEFT_STREAM_DATA)
    WEFT_RETURN_IF_ERROR(verify_data(fabric, stream));
  else if (stream->source_kernel == WEFT_HOST_KERNEL || stream->sink_kernel != stream->source_kernel ||
           stream->source_count != 1 || stream->sink_count != 1)
    return weft_error(INVALID_INPUT, "a chain goes from one tile to another of the same kernel");
  WEFT_RETURN_IF_ERROR(
      verify_endpoints(fabric, "sources", stream->source_kernel, stream->source_count, stream->source, 1));
  WEFT_RETURN_IF_ERROR(verify_endpoints(fabric, "sinks", stream->sink_kernel, stream->sink_count, stream->sink, 0));
  return fabric->stage < WEFT_STAGE_ROUTED ? weft_ok() : verify_route(stream);
}
