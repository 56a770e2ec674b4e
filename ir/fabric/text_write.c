// Writes the text form (text_form.h).
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "ir/fabric/text_form.h"

// The first failure sticks; what follows it does nothing.
typedef struct writer_t {
  weft_text_t* text;
  weft_status_t status;
} writer_t;

#define PRINT(w, ...)                                                                                                  \
  do {                                                                                                                 \
    if (!(w)->status) (w)->status = weft_text_printf((w)->text, __VA_ARGS__);                                          \
  } while (0)

static void put(writer_t* w, const char* data, size_t count) {
  if (!w->status) w->status = weft_text_append(w->text, data, count);
}

static void put_text(writer_t* w, const char* text) {
  put(w, text, strlen(text));
}

// Lists of tiles and router entries are most of a routed file: their numbers don't go through printf.
static void put_integer(writer_t* w, int64_t value) {
  char digits[24], *end = digits + sizeof(digits), *begin = end;
  uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
  do {
    *--begin = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) *--begin = '-';
  put(w, begin, (size_t)(end - begin));
}

// 17 significant digits read back to the same double.
static void put_real(writer_t* w, double value) {
  if (isnan(value))
    put_text(w, "nan");
  else
    PRINT(w, "%.17g", value);
}

static void put_quoted(writer_t* w, const char* text) {
  put_text(w, "\"");
  for (const char* c = text ? text : ""; *c; ++c) {
    if (*c == '"' || *c == '\\')
      PRINT(w, "\\%c", *c);
    else if ((unsigned char)*c < 0x20 || *c == 0x7f)
      PRINT(w, "\\x%02x", (unsigned)*c);
    else
      put(w, c, 1);
  }
  put_text(w, "\"");
}

static void put_digest(writer_t* w, const weft_digest_t* digest) {
  char hex[65];
  weft_digest_format(digest, hex);
  put_text(w, hex);
}

static void put_separator(writer_t* w, int32_t index) {
  if (index > 0) put_text(w, ", ");
}

static void put_integers(writer_t* w, int32_t count, const int64_t* values) {
  put_text(w, "[");
  for (int32_t i = 0; i < count; ++i) {
    put_separator(w, i);
    put_integer(w, values[i]);
  }
  put_text(w, "]");
}

static void put_index_or_none(writer_t* w, int32_t index, const char* none) {
  if (index < 0)
    put_text(w, none);
  else
    put_integer(w, index);
}

static void put_fill(writer_t* w, bool has_fill, double fill) {
  put_text(w, " fill ");
  if (has_fill)
    put_real(w, fill);
  else
    put_text(w, "none");
}

static void put_pieces(writer_t* w, int32_t count, const weft_piece_t* piece) {
  PRINT(w, " pieces %" PRId32 "\n", count);
  for (int32_t i = 0; i < count; ++i) {
    const weft_view_t* view = &piece[i].view;
    PRINT(w, "    piece %" PRId32 " view [", piece[i].tensor);
    for (int32_t j = 0; j < view->factor_count; ++j) {
      const weft_view_factor_t* factor = &view->factor[j];
      put_separator(w, j);
      PRINT(w, "%" PRId64 " in %" PRId64 "..%" PRId64 " to ", factor->extent, factor->lo, factor->hi);
      put_index_or_none(w, factor->dim, "none");
      PRINT(w, " by %" PRId64, factor->step);
    }
    put_text(w, "] at ");
    put_integers(w, view->rank, view->offset);
    put_text(w, "\n");
  }
}

// Where each constant lies in the file beside: in the order of the tensors, aligned.
static weft_status_t place_constant(const weft_tensor_t* tensor, size_t* inout_end, size_t* out_offset,
                                    size_t* out_bytes) {
  WEFT_RETURN_IF_ERROR(weft_text_form_tensor_bytes(tensor, out_bytes));
  *out_offset = *inout_end + -*inout_end % WEFT_TEXT_FORM_ALIGNMENT;
  if (*out_offset < *inout_end || !weft_checked_add(*out_offset, *out_bytes, inout_end))
    return weft_error(INVALID_INPUT, "tensor '%s': the constants are larger than any memory", tensor->name);
  return weft_ok();
}

static weft_status_t constants_size(const weft_fabric_t* fabric, size_t* out_size) {
  size_t end = 0, offset, bytes;
  for (int32_t i = 0; i < fabric->tensor_count; ++i)
    if (fabric->tensor[i].kind == WEFT_TENSOR_CONSTANT)
      WEFT_RETURN_IF_ERROR(place_constant(&fabric->tensor[i], &end, &offset, &bytes));
  *out_size = end;
  return weft_ok();
}

static void put_header(writer_t* w, const weft_fabric_t* fabric) {
  PRINT(w, WEFT_TEXT_FORM_MAGIC " %d\nstage %s\nseed %" PRIu64 "\nmodel ", WEFT_FABRIC_FORMAT,
        weft_stage_names[fabric->stage], fabric->seed);
  put_quoted(w, fabric->model_name);
  put_text(w, " ");
  put_digest(w, &fabric->model_digest);
  put_text(w, "\nmachine ");
  put_digest(w, &fabric->machine_digest);
  put_text(w, "\ndefects ");
  put_digest(w, &fabric->defects_digest);
  size_t bytes = 0;
  if (!w->status) w->status = constants_size(fabric, &bytes);
  PRINT(w, "\nconstants %zu\n", bytes);
}

static void put_tensors(writer_t* w, const weft_fabric_t* fabric) {
  size_t end = 0, offset = 0, bytes = 0;
  PRINT(w, "\ntensors %" PRId32 "\n", fabric->tensor_count);
  for (int32_t i = 0; i < fabric->tensor_count; ++i) {
    const weft_tensor_t* tensor = &fabric->tensor[i];
    PRINT(w, "tensor %" PRId32 " ", i);
    put_quoted(w, tensor->name);
    PRINT(w, " %s %s ", weft_tensor_kind_names[tensor->kind], weft_dtype_name(tensor->dtype));
    put_integers(w, tensor->shape.rank, tensor->shape.extent);
    if (tensor->kind == WEFT_TENSOR_RESULT) PRINT(w, " of %" PRId32 " %" PRId32, tensor->kernel, tensor->buffer);
    if (tensor->kind == WEFT_TENSOR_CONSTANT) {
      if (!w->status) w->status = place_constant(tensor, &end, &offset, &bytes);
      if (w->status) return;
      weft_digest_t digest = weft_digest_of(tensor->data, bytes);
      PRINT(w, " at %zu ", offset);
      put_digest(w, &digest);
    }
    put_text(w, "\n");
  }
  put_text(w, "inputs [");
  for (int32_t i = 0; i < fabric->input_count; ++i) {
    put_separator(w, i);
    put_integer(w, fabric->input[i]);
  }
  put_text(w, "]\n");
}

// As `2*d0 + d5 - 1`.
static void put_index_row(writer_t* w, const weft_index_row_t* row) {
  bool first = true;
  for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d) {
    int64_t coefficient = row->coefficient[d];
    if (!coefficient) continue;
    put_text(w, first ? (coefficient < 0 ? "-" : "") : coefficient < 0 ? " - " : " + ");
    if (coefficient != 1 && coefficient != -1) PRINT(w, "%" PRId64 "*", coefficient < 0 ? -coefficient : coefficient);
    PRINT(w, "d%" PRId32, d);
    first = false;
  }
  if (first) {
    put_integer(w, row->offset);
  } else if (row->offset) {
    uint64_t size = row->offset < 0 ? -(uint64_t)row->offset : (uint64_t)row->offset;
    PRINT(w, " %c %" PRIu64, row->offset < 0 ? '-' : '+', size);
  }
}

static void put_buffer(writer_t* w, int32_t index, const weft_buffer_t* buffer) {
  PRINT(w, "  buffer %" PRId32 " %s ", index, weft_buffer_kind_names[buffer->kind]);
  put_quoted(w, buffer->name);
  PRINT(w, " %s [", weft_dtype_name(buffer->dtype));
  for (int32_t r = 0; r < buffer->rank; ++r) {
    put_separator(w, r);
    put_index_row(w, &buffer->row[r]);
  }
  put_text(w, "]");
  if (buffer->kind == WEFT_BUFFER_OPERAND) {
    put_fill(w, buffer->has_fill, buffer->fill);
    if (buffer->spare) PRINT(w, " spare %" PRId32, buffer->spare);
    put_pieces(w, buffer->piece_count, buffer->piece);
    return;
  }
  if (buffer->kind == WEFT_BUFFER_RESULT) PRINT(w, " tensor %" PRId32, buffer->tensor);
  put_text(w, "\n");
}

static void put_operation(writer_t* w, const weft_operation_t* operation) {
  PRINT(w, "  operation b%" PRId32 " = %s %s (", operation->destination, weft_op_mnemonic(operation->op),
        weft_dtype_name(operation->dtype));
  int32_t source_count = weft_op_source_count(operation->op);
  for (int32_t i = 0; i < source_count; ++i) {
    put_separator(w, i);
    if (operation->source[i] < 0)
      put_real(w, operation->immediate[i]);
    else
      PRINT(w, "b%" PRId32, operation->source[i]);
  }
  put_text(w, ") over [");
  int32_t count = 0;
  for (int32_t d = 0; d < 32; ++d) {
    if (!(operation->loops >> d & 1)) continue;
    put_separator(w, count++);
    PRINT(w, "d%" PRId32, d);
  }
  put_text(w, "]\n");
}

static void put_axis(writer_t* w, const char* axis, const weft_axis_factor_t* factor, int32_t count) {
  PRINT(w, " %s [", axis);
  for (int32_t i = 0; i < count; ++i) {
    put_separator(w, i);
    PRINT(w, "d%" PRId32 "/%" PRId32, factor[i].dim, factor[i].parts);
  }
  put_text(w, "]");
}

static void put_alternative(writer_t* w, const weft_alternative_t* alternative) {
  const weft_split_t* split = &alternative->split;
  put_text(w, "  alternative");
  put_axis(w, "y", split->y, split->y_count);
  put_axis(w, "x", split->x, split->x_count);
  PRINT(w,
        " grid %" PRId32 " %" PRId32 " cycles %" PRId64 " chain %" PRId64 " stream %" PRId64 " step %" PRId64
        " %s bytes %" PRId64 "\n",
        alternative->gy, alternative->gx, alternative->cycles, alternative->chain_cycles, alternative->stream_cycles,
        alternative->step_cycles, alternative->doubled ? "doubled" : "single", alternative->bytes);
}

static void put_range(writer_t* w, int32_t from, int32_t to) {
  put_integer(w, from);
  if (to == from) return;
  put_text(w, "..");
  put_integer(w, to);
}

// Runs of neighbours are written as one range, in either direction.
static void put_tiles(writer_t* w, const int32_t* tile, int64_t count) {
  put_text(w, "  tiles [");
  for (int64_t i = 0, end; i < count && !w->status; i = end) {
    end = i + 1;
    int64_t step = end < count ? (int64_t)tile[end] - tile[i] : 0;
    if (step == 1 || step == -1)
      while (end < count && (int64_t)tile[end] - tile[end - 1] == step) ++end;
    if (i > 0) put_text(w, ", ");
    put_range(w, tile[i], tile[end - 1]);
  }
  put_text(w, "]\n");
}

static void put_kernel(writer_t* w, const weft_fabric_t* fabric, int32_t index) {
  const weft_kernel_t* kernel = &fabric->kernel[index];
  PRINT(w, "kernel %" PRId32 " ", index);
  put_quoted(w, kernel->name);
  put_text(w, " nodes ");
  put_quoted(w, kernel->nodes);
  put_text(w, "\n  dims [");
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    put_separator(w, d);
    PRINT(w, "%s %" PRId64, weft_dim_kind_names[kernel->dim[d].kind], kernel->dim[d].extent);
  }
  PRINT(w, "]\n  buffers %" PRId32 "\n", kernel->buffer_count);
  for (int32_t i = 0; i < kernel->buffer_count; ++i) put_buffer(w, i, &kernel->buffer[i]);
  PRINT(w, "  operations %" PRId32 "\n", kernel->operation_count);
  for (int32_t i = 0; i < kernel->operation_count; ++i) put_operation(w, &kernel->operation[i]);
  if (kernel->reduce_operation < 0)
    put_text(w, "  reduce none\n");
  else
    PRINT(w, "  reduce %" PRId32 " %s\n", kernel->reduce_operation, weft_op_mnemonic(kernel->combiner));
  PRINT(w, "  alternatives %" PRId32 "\n", kernel->alternative_count);
  for (int32_t i = 0; i < kernel->alternative_count; ++i) put_alternative(w, &kernel->alternative[i]);
  if (fabric->stage < WEFT_STAGE_PLACED) return;
  const weft_region_t* region = &kernel->region;
  PRINT(w, "  chosen %" PRId32 " region %" PRId32 " %" PRId32 " %" PRId32 " %" PRId32 " %s\n", kernel->chosen,
        region->x, region->y, region->width, region->height, region->transposed ? "transposed" : "upright");
  const weft_alternative_t* alternative = &kernel->alternative[kernel->chosen];
  put_tiles(w, kernel->tile, (int64_t)alternative->gy * alternative->gx);
}

static void put_output(writer_t* w, int32_t index, const weft_output_t* output) {
  PRINT(w, "output %" PRId32 " ", index);
  put_quoted(w, output->name);
  PRINT(w, " %s ", weft_dtype_name(output->dtype));
  put_integers(w, output->shape.rank, output->shape.extent);
  put_fill(w, output->has_fill, output->fill);
  put_pieces(w, output->piece_count, output->piece);
}

static void put_levels(writer_t* w, const weft_walk_level_t* level, int32_t count) {
  put_text(w, "[");
  for (int32_t i = 0; i < count; ++i) {
    put_separator(w, i);
    PRINT(w, "%" PRId64 " of %" PRId32 " by %" PRId64, level[i].extent, level[i].dim, level[i].step);
  }
  put_text(w, "]");
}

static void put_walk(writer_t* w, const weft_walk_t* walk) {
  put_text(w, "  walk ");
  put_levels(w, walk->level, walk->source_levels);
  put_text(w, " ");
  put_levels(w, walk->level + walk->source_levels, walk->level_count - walk->source_levels);
  put_text(w, " box [");
  for (int32_t i = 0; i < walk->box.rank; ++i) {
    put_separator(w, i);
    PRINT(w, "%" PRId64 "..%" PRId64, walk->box.lo[i], walk->box.hi[i]);
  }
  put_text(w, "]\n");
}

static void put_endpoints(writer_t* w, const char* what, const weft_endpoint_t* endpoint, int32_t count) {
  PRINT(w, "  %s [", what);
  for (int32_t i = 0, end; i < count && !w->status; i = end) {
    end = i + 1;
    while (end < count && endpoint[end].logical == endpoint[end - 1].logical + 1 &&
           endpoint[end].elements == endpoint[i].elements)
      ++end;
    put_separator(w, i);
    put_range(w, endpoint[i].logical, endpoint[end - 1].logical);
    put_text(w, ": ");
    put_integer(w, endpoint[i].elements);
  }
  put_text(w, "]\n");
}

static void put_entry(writer_t* w, const weft_router_entry_t* entry) {
  put_text(w, "  @");
  put_integer(w, entry->tile);
  put_text(w, ":");
  put_integer(w, entry->colour);
  put_text(w, " [");
  for (int32_t i = 0; i < entry->input_count; ++i) {
    put_separator(w, i);
    put_text(w, weft_direction_name((weft_direction_e)entry->input[i]));
  }
  put_text(w, "] -> [");
  int32_t count = 0;
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) {
    if (!(entry->outputs >> d & 1)) continue;
    put_separator(w, count++);
    put_text(w, weft_direction_name((weft_direction_e)d));
    put_text(w, " ");
    put_integer(w, entry->output_colour[d]);
  }
  put_text(w, "]\n");
}

static void put_stream(writer_t* w, const weft_fabric_t* fabric, int32_t index) {
  const weft_stream_t* stream = &fabric->stream[index];
  PRINT(w, "stream %" PRId32 " %s %s", index, weft_stream_kind_names[stream->kind], weft_dtype_name(stream->dtype));
  if (stream->kind == WEFT_STREAM_DATA) PRINT(w, " tensor %" PRId32, stream->tensor);
  put_text(w, " from ");
  put_index_or_none(w, stream->source_kernel, "host");
  put_text(w, " to ");
  put_index_or_none(w, stream->sink_kernel, "host");
  if (stream->kind == WEFT_STREAM_DATA) {
    PRINT(w, " buffer %" PRId32 " piece %" PRId32 "\n", stream->sink_buffer, stream->sink_piece);
    put_walk(w, &stream->walk);
  } else {
    put_text(w, "\n");
  }
  put_endpoints(w, "sources", stream->source, stream->source_count);
  put_endpoints(w, "sinks", stream->sink, stream->sink_count);
  PRINT(w, "  elements %" PRId64 " wavelets %" PRId64 "\n", stream->elements, stream->wavelets);
  if (fabric->stage < WEFT_STAGE_ROUTED) return;
  put_text(w, "  ports ");
  put_index_or_none(w, stream->source_port, "none");
  put_text(w, " ");
  put_index_or_none(w, stream->sink_port, "none");
  PRINT(w, "\n  entries %" PRId32 "\n", stream->entry_count);
  for (int32_t i = 0; i < stream->entry_count && !w->status; ++i) put_entry(w, &stream->entry[i]);
}

weft_status_t weft_fabric_print(const weft_fabric_t* fabric, weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_fabric_verify(fabric));
  writer_t writer = {.text = text}, *w = &writer;
  put_header(w, fabric);
  put_tensors(w, fabric);
  PRINT(w, "\nkernels %" PRId32 "\n", fabric->kernel_count);
  for (int32_t i = 0; i < fabric->kernel_count && !w->status; ++i) put_kernel(w, fabric, i);
  PRINT(w, "\noutputs %" PRId32 "\n", fabric->output_count);
  for (int32_t i = 0; i < fabric->output_count && !w->status; ++i) put_output(w, i, &fabric->output[i]);
  if (fabric->stage >= WEFT_STAGE_PLACED) {
    PRINT(w, "\nstreams %" PRId32 "\n", fabric->stream_count);
    for (int32_t i = 0; i < fabric->stream_count && !w->status; ++i) put_stream(w, fabric, i);
  }
  return writer.status;
}

static weft_status_t write_all(const char* path, weft_file_writer_t* file, const void* data, size_t bytes) {
  if (bytes && fwrite(data, 1, bytes, file->stream) != bytes) return weft_error(IO, "cannot write '%s'", path);
  return weft_ok();
}

static weft_status_t write_constants(const weft_fabric_t* fabric, const char* path, weft_file_writer_t* file) {
  static const uint8_t padding[WEFT_TEXT_FORM_ALIGNMENT] = {0};
  size_t end = 0, offset = 0, bytes = 0;
  for (int32_t i = 0; i < fabric->tensor_count; ++i) {
    const weft_tensor_t* tensor = &fabric->tensor[i];
    if (tensor->kind != WEFT_TENSOR_CONSTANT) continue;
    size_t begin = end;
    WEFT_RETURN_IF_ERROR(place_constant(tensor, &end, &offset, &bytes));
    WEFT_RETURN_IF_ERROR(write_all(path, file, padding, offset - begin));
    WEFT_RETURN_IF_ERROR(write_all(path, file, tensor->data, bytes));
  }
  return weft_ok();
}

static weft_status_t write_constants_file(const weft_fabric_t* fabric, weft_allocator_t allocator, const char* path) {
  char* constants_path = NULL;
  weft_file_writer_t file;
  WEFT_RETURN_IF_ERROR(weft_text_form_constants_path(allocator, path, &constants_path));
  weft_status_t status = weft_file_writer_open(allocator, constants_path, &file);
  if (!status) {
    status = write_constants(fabric, constants_path, &file);
    if (!status)
      status = weft_file_writer_commit(&file);
    else
      weft_file_writer_abandon(&file);
  }
  weft_allocator_free(allocator, constants_path);
  return status;
}

weft_status_t weft_fabric_write(const weft_fabric_t* fabric, weft_allocator_t allocator, const char* path) {
  weft_text_t text;
  size_t constants = 0;
  weft_text_initialize(allocator, &text);
  weft_status_t status = weft_fabric_print(fabric, &text);
  if (!status) status = constants_size(fabric, &constants);
  // The constants first: stopped between the two, an old text stands beside new bytes, and its digests say so.
  if (!status && constants) status = write_constants_file(fabric, allocator, path);
  if (!status) status = weft_file_write(allocator, path, text.data, text.count);
  weft_text_deinitialize(&text);
  return status;
}
