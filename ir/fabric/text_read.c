// Reads the text form (text_form.h): untrusted input. What is well-formed here goes through weft_fabric_verify.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "ir/fabric/text_form.h"
#include "ir/fabric/text_scan.h"

// Ranges stand for many items in few bytes, so the file's size doesn't bound them. These do.
enum { MOST_TILES = 1 << 24, MOST_RANGE_ITEMS = 1 << 26 };

typedef struct reader_t {
  weft_scan_t scan;
  weft_allocator_t allocator;
  weft_fabric_t* fabric;
  const uint8_t* constants; // in the fabric's arena
  size_t constants_size;
  size_t constants_end; // of the last constant read
  int64_t range_items;  // expanded so far
  WEFT_ARRAY(weft_endpoint_t) endpoints;
} reader_t;

// Typed by the pointer; NULL and a failed scan when there is no memory.
#define NEW(r, count, out_pointer)                                                                                     \
  do {                                                                                                                 \
    if (!(r)->scan.status)                                                                                             \
      weft_scan_keep(&(r)->scan, WEFT_ARENA_NEW(&(r)->fabric->arena, (size_t)(count), out_pointer));                   \
  } while (0)
// Items are numbered, so that a line can be found and a lost one is noticed. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define FOR_NUMBERED(r, i, count, word) for (int32_t i = 0; begin_numbered(r, i, count, word); ++i)

static bool begin_numbered(reader_t* r, int32_t index, int32_t count, const char* word) {
  if (r->scan.status || index == count) return false;
  weft_scan_expect(&r->scan, word);
  weft_scan_integer(&r->scan, word, index, index);
  return !r->scan.status;
}

static const char* read_string(reader_t* r, const char* what) {
  const char* text = weft_scan_string(&r->scan, what);
  const char* copy = "";
  if (!r->scan.status) weft_scan_keep(&r->scan, weft_arena_strdup(&r->fabric->arena, text, &copy));
  return copy;
}

static weft_digest_t read_digest(reader_t* r) {
  char word[80];
  weft_digest_t digest = {0};
  weft_scan_name(&r->scan, "a digest", word, sizeof(word));
  if (!r->scan.status && (strlen(word) != 64 || !weft_digest_parse(word, &digest)))
    weft_scan_fail(&r->scan, "expected a digest of 64 hex digits, found '%s'", word);
  return digest;
}

static weft_dtype_e read_dtype(reader_t* r) {
  char word[32];
  weft_dtype_e dtype = WEFT_DTYPE_F32;
  weft_scan_name(&r->scan, "an element type", word, sizeof(word));
  if (!r->scan.status && !weft_dtype_parse(word, &dtype))
    weft_scan_fail(&r->scan, "'%s' is no element type (f32, f16, ..)", word);
  return dtype;
}

static weft_op_e read_op(reader_t* r) {
  char word[32];
  weft_op_e op = WEFT_OP_MOV;
  weft_scan_name(&r->scan, "an operation", word, sizeof(word));
  if (!r->scan.status && !weft_op_parse(word, &op)) weft_scan_fail(&r->scan, "'%s' is no operation", word);
  return op;
}

static int64_t read_any(reader_t* r, const char* what) {
  return weft_scan_integer(&r->scan, what, INT64_MIN, INT64_MAX);
}

static int64_t read_size(reader_t* r, const char* what) {
  return weft_scan_integer(&r->scan, what, 0, INT64_MAX);
}

static weft_shape_t read_shape(reader_t* r) {
  weft_shape_t shape = {0};
  for (; weft_scan_item(&r->scan, shape.rank, WEFT_MAX_RANK, "dimensions"); ++shape.rank)
    shape.extent[shape.rank] = read_size(r, "an extent");
  return shape;
}

static void read_fill(reader_t* r, bool* out_has_fill, double* out_fill) {
  weft_scan_expect(&r->scan, "fill");
  *out_has_fill = !weft_scan_accept(&r->scan, "none");
  if (*out_has_fill) *out_fill = weft_scan_real(&r->scan, "a fill value or none");
}

static void read_view(reader_t* r, weft_view_t* out_view) {
  weft_scan_t* scan = &r->scan;
  weft_view_t view = {0};
  weft_scan_expect(scan, "view");
  for (; weft_scan_item(scan, view.factor_count, WEFT_MAX_FACTORS, "factors"); ++view.factor_count) {
    weft_view_factor_t* factor = &view.factor[view.factor_count];
    factor->extent = read_size(r, "an extent");
    weft_scan_expect(scan, "in");
    factor->lo = read_any(r, "a bound");
    weft_scan_expect(scan, "..");
    factor->hi = read_any(r, "a bound");
    weft_scan_expect(scan, "to");
    factor->dim = weft_scan_accept(scan, "none") ? -1 : weft_scan_index(scan, "an operand dimension", WEFT_MAX_RANK);
    weft_scan_expect(scan, "by");
    factor->step = read_any(r, "a step");
  }
  weft_scan_expect(scan, "at");
  for (; weft_scan_item(scan, view.rank, WEFT_MAX_RANK, "dimensions"); ++view.rank)
    view.offset[view.rank] = read_any(r, "an offset");
  *out_view = view;
}

static void read_pieces(reader_t* r, int32_t* out_count, weft_piece_t** out_pieces) {
  weft_piece_t* piece = NULL;
  weft_scan_expect(&r->scan, "pieces");
  int32_t count = weft_scan_count(&r->scan, "pieces", sizeof("piece 0 view [] at []"));
  NEW(r, count, &piece);
  for (int32_t i = 0; i < count && !r->scan.status; ++i) {
    weft_scan_expect(&r->scan, "piece");
    piece[i].tensor = weft_scan_index(&r->scan, "a tensor", r->fabric->tensor_count);
    read_view(r, &piece[i].view);
  }
  *out_count = count;
  *out_pieces = piece;
}

static weft_status_t load_constants(reader_t* r, int64_t size) {
  char* path = NULL;
  weft_mapping_t mapping = {0};
  void* copy = NULL;
  WEFT_RETURN_IF_ERROR(weft_text_form_constants_path(r->allocator, r->scan.path, &path));
  weft_status_t status = weft_file_map(path, &mapping);
  if (!status && mapping.size != (uint64_t)size)
    status = weft_error(INVALID_INPUT, "'%s' has %zu bytes, but %s was written beside %" PRId64, path, mapping.size,
                        r->scan.path, size);
  if (!status) status = weft_arena_copy(&r->fabric->arena, mapping.data, mapping.size, &copy);
  weft_file_unmap(&mapping);
  weft_allocator_free(r->allocator, path);
  r->constants = copy;
  r->constants_size = (size_t)size;
  return status;
}

static void read_header(reader_t* r) {
  weft_scan_t* scan = &r->scan;
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(scan, WEFT_TEXT_FORM_MAGIC);
  int64_t version = weft_scan_integer(scan, "a format version", 0, INT32_MAX);
  if (!scan->status && version != WEFT_FABRIC_FORMAT)
    weft_scan_fail(scan, "format version %" PRId64 ", but this weft reads version %d", version, WEFT_FABRIC_FORMAT);
  weft_scan_expect(scan, "stage");
  fabric->stage = (weft_stage_e)weft_scan_word(scan, "a stage", weft_stage_names, WEFT_STAGE_COUNT);
  weft_scan_expect(scan, "seed");
  fabric->seed = weft_scan_unsigned(scan, "a seed");
  weft_scan_expect(scan, "model");
  fabric->model_name = read_string(r, "a model's name");
  fabric->model_digest = read_digest(r);
  weft_scan_expect(scan, "machine");
  fabric->machine_digest = read_digest(r);
  weft_scan_expect(scan, "defects");
  fabric->defects_digest = read_digest(r);
  weft_scan_expect(scan, "constants");
  int64_t constants = read_size(r, "a number of bytes");
  if (constants && !scan->status) weft_scan_keep(scan, load_constants(r, constants));
}

static void read_constant(reader_t* r, weft_tensor_t* tensor) {
  size_t bytes = 0, end;
  weft_scan_expect(&r->scan, "at");
  size_t offset = (size_t)read_size(r, "an offset");
  weft_digest_t expected = read_digest(r);
  if (!r->scan.status) weft_scan_keep(&r->scan, weft_text_form_tensor_bytes(tensor, &bytes));
  if (r->scan.status) return;
  if (offset % WEFT_TEXT_FORM_ALIGNMENT || offset < r->constants_end || !weft_checked_add(offset, bytes, &end) ||
      end > r->constants_size) {
    weft_scan_fail(&r->scan,
                   "constant '%s': %zu bytes at offset %zu are not an aligned part of the %zu bytes after %zu",
                   tensor->name, bytes, offset, r->constants_size, r->constants_end);
    return;
  }
  tensor->data = bytes ? r->constants + offset : (const uint8_t*)"";
  r->constants_end = end;
  weft_digest_t actual = weft_digest_of(tensor->data, bytes);
  if (weft_digest_compare(&actual, &expected) == 0) return;
  char expected_text[65], actual_text[65];
  weft_digest_format(&expected, expected_text);
  weft_digest_format(&actual, actual_text);
  weft_scan_fail(&r->scan, "constant '%s': the digest of its bytes in %s.bin is %.16s.., not %.16s..", tensor->name,
                 r->scan.path, actual_text, expected_text);
}

static void read_tensors(reader_t* r) {
  weft_scan_t* scan = &r->scan;
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(scan, "tensors");
  fabric->tensor_count = weft_scan_count(scan, "tensors", sizeof("tensor 0 \"\" input i8 []"));
  NEW(r, fabric->tensor_count, &fabric->tensor);
  FOR_NUMBERED(r, i, fabric->tensor_count, "tensor") {
    weft_tensor_t* tensor = &fabric->tensor[i];
    tensor->name = read_string(r, "a tensor's name");
    tensor->kind = (weft_tensor_kind_e)weft_scan_word(scan, "a kind of tensor", weft_tensor_kind_names, 3);
    tensor->dtype = read_dtype(r);
    tensor->shape = read_shape(r);
    tensor->kernel = tensor->buffer = -1;
    if (tensor->kind == WEFT_TENSOR_CONSTANT) read_constant(r, tensor);
    if (tensor->kind == WEFT_TENSOR_RESULT) {
      weft_scan_expect(scan, "of");
      tensor->kernel = weft_scan_index(scan, "a kernel", INT32_MAX);
      tensor->buffer = weft_scan_index(scan, "a buffer", INT32_MAX);
    }
  }
  weft_scan_expect(scan, "inputs");
  NEW(r, fabric->tensor_count, &fabric->input);
  for (; weft_scan_item(scan, fabric->input_count, fabric->tensor_count, "inputs"); ++fabric->input_count)
    fabric->input[fabric->input_count] = weft_scan_index(scan, "a tensor", fabric->tensor_count);
}

static int32_t read_dimension(reader_t* r, int32_t dim_count) {
  if (!weft_scan_accept_letter(&r->scan, 'd')) weft_scan_fail(&r->scan, "expected an iteration dimension (d0, d1, ..)");
  return weft_scan_index(&r->scan, "an iteration dimension", dim_count);
}

// One term of an index map: `-3*d2`, `d0` or `17`; its sign was taken before.
static void read_term(reader_t* r, bool negative, int32_t dim_count, weft_index_row_t* row) {
  weft_scan_t* scan = &r->scan;
  int64_t value = 1;
  bool is_dimension = weft_scan_accept_letter(scan, 'd');
  if (!is_dimension) {
    // One more than the positives, for the lowest value.
    uint64_t size = weft_scan_unsigned(scan, "a term (2*d0, d1, 17)");
    if (size > (uint64_t)INT64_MAX + negative) weft_scan_fail(scan, "the term %" PRIu64 " is too large", size);
    if (scan->status) return;
    value = negative ? (int64_t)-size : (int64_t)size;
    if (weft_scan_accept(scan, "*")) {
      is_dimension = weft_scan_accept_letter(scan, 'd');
      if (!is_dimension) weft_scan_fail(scan, "expected an iteration dimension after '*'");
    }
  } else if (negative) {
    value = -1;
  }
  if (!is_dimension) {
    if (!weft_checked_add(row->offset, value, &row->offset)) weft_scan_fail(scan, "the offset is too large");
    return;
  }
  int32_t dim = weft_scan_index(scan, "an iteration dimension", dim_count);
  if (scan->status) return;
  if (row->coefficient[dim]) weft_scan_fail(scan, "d%" PRId32 " stands twice in a row", dim);
  if (value != (int32_t)value) weft_scan_fail(scan, "the coefficient %" PRId64 " needs more than 32 bits", value);
  row->coefficient[dim] = (int32_t)value;
}

static void read_index_row(reader_t* r, int32_t dim_count, weft_index_row_t* row) {
  bool negative = weft_scan_accept(&r->scan, "-");
  do {
    read_term(r, negative, dim_count, row);
    negative = weft_scan_accept(&r->scan, "-");
  } while (!r->scan.status && (negative || weft_scan_accept(&r->scan, "+")));
}

static void read_buffer(reader_t* r, int32_t dim_count, weft_buffer_t* buffer) {
  weft_scan_t* scan = &r->scan;
  buffer->tensor = -1;
  buffer->kind = (weft_buffer_kind_e)weft_scan_word(scan, "a kind of buffer", weft_buffer_kind_names, 3);
  buffer->name = read_string(r, "a buffer's name");
  buffer->dtype = read_dtype(r);
  for (; weft_scan_item(scan, buffer->rank, WEFT_MAX_RANK, "rows"); ++buffer->rank)
    read_index_row(r, dim_count, &buffer->row[buffer->rank]);
  if (buffer->kind == WEFT_BUFFER_OPERAND) {
    read_fill(r, &buffer->has_fill, &buffer->fill);
    if (weft_scan_accept(scan, "spare"))
      buffer->spare = (int32_t)weft_scan_integer(scan, "a number of spare places", 1, WEFT_MAX_SPARE);
    read_pieces(r, &buffer->piece_count, &buffer->piece);
  } else if (buffer->kind == WEFT_BUFFER_RESULT) {
    weft_scan_expect(scan, "tensor");
    buffer->tensor = weft_scan_index(scan, "a tensor", r->fabric->tensor_count);
  }
}

static void read_operation(reader_t* r, const weft_kernel_t* kernel, weft_operation_t* operation) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "operation");
  if (!weft_scan_accept_letter(scan, 'b')) weft_scan_fail(scan, "expected a buffer (b0, b1, ..)");
  operation->destination = weft_scan_index(scan, "a buffer", kernel->buffer_count);
  weft_scan_expect(scan, "=");
  operation->op = read_op(r);
  operation->dtype = read_dtype(r);
  weft_scan_expect(scan, "(");
  for (int32_t i = 0; i < WEFT_MAX_SOURCES; ++i) {
    operation->source[i] = -1;
    if (i >= weft_op_source_count(operation->op)) continue;
    if (i > 0) weft_scan_expect(scan, ",");
    if (weft_scan_accept_letter(scan, 'b'))
      operation->source[i] = weft_scan_index(scan, "a buffer", kernel->buffer_count);
    else
      operation->immediate[i] = weft_scan_real(scan, "a buffer or a number");
  }
  weft_scan_expect(scan, ")");
  weft_scan_expect(scan, "over");
  for (int64_t n = 0; weft_scan_item(scan, n, WEFT_MAX_DIMS, "loops"); ++n)
    operation->loops |= 1u << read_dimension(r, kernel->dim_count);
}

static int32_t read_axis(reader_t* r, const char* axis, int32_t dim_count, weft_axis_factor_t* factor) {
  int32_t count = 0;
  weft_scan_expect(&r->scan, axis);
  for (; weft_scan_item(&r->scan, count, WEFT_MAX_AXIS_FACTORS, "factors on an axis"); ++count) {
    factor[count].dim = read_dimension(r, dim_count);
    weft_scan_expect(&r->scan, "/");
    factor[count].parts = (int32_t)weft_scan_integer(&r->scan, "a number of parts", 1, MOST_TILES);
  }
  return count;
}

static int64_t read_figure(reader_t* r, const char* name) {
  weft_scan_expect(&r->scan, name);
  return read_size(r, name);
}

static void read_alternative(reader_t* r, const weft_kernel_t* kernel, weft_alternative_t* alternative) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "alternative");
  alternative->split.y_count = read_axis(r, "y", kernel->dim_count, alternative->split.y);
  alternative->split.x_count = read_axis(r, "x", kernel->dim_count, alternative->split.x);
  weft_scan_expect(scan, "grid");
  alternative->gy = (int32_t)weft_scan_integer(scan, "a grid height", 1, MOST_TILES);
  alternative->gx = (int32_t)weft_scan_integer(scan, "a grid width", 1, MOST_TILES);
  if (!scan->status && (int64_t)alternative->gy * alternative->gx > MOST_TILES)
    weft_scan_fail(scan, "a grid of %" PRId32 " x %" PRId32 " tiles is larger than any wafer", alternative->gy,
                   alternative->gx);
  alternative->cycles = read_figure(r, "cycles");
  alternative->chain_cycles = read_figure(r, "chain");
  alternative->stream_cycles = read_figure(r, "stream");
  alternative->step_cycles = read_figure(r, "step");
  alternative->doubled = weft_scan_accept(scan, "doubled");
  if (!alternative->doubled) weft_scan_expect(scan, "single");
  alternative->bytes = read_figure(r, "bytes");
}

// `from` or `from..to`; false when there are more items than any stage file needs.
static bool read_range(reader_t* r, int32_t* out_from, int32_t* out_to) {
  *out_from = *out_to = weft_scan_index(&r->scan, "a tile", INT32_MAX);
  if (weft_scan_accept(&r->scan, "..")) *out_to = weft_scan_index(&r->scan, "a tile", INT32_MAX);
  int64_t count = (int64_t)*out_to - *out_from;
  r->range_items += (count < 0 ? -count : count) + 1;
  if (r->range_items > MOST_RANGE_ITEMS) weft_scan_fail(&r->scan, "ranges of more than %d items", MOST_RANGE_ITEMS);
  return !r->scan.status;
}

static void read_tiles(reader_t* r, weft_kernel_t* kernel) {
  weft_scan_t* scan = &r->scan;
  if (scan->status) return;
  const weft_alternative_t* alternative = &kernel->alternative[kernel->chosen];
  int64_t count = (int64_t)alternative->gy * alternative->gx, filled = 0;
  // The kernels share one mesh: together they have no more tiles than the largest one.
  r->range_items += count;
  if (r->range_items > MOST_RANGE_ITEMS) weft_scan_fail(scan, "more than %d tiles in all kernels", MOST_RANGE_ITEMS);
  NEW(r, count, &kernel->tile);
  weft_scan_expect(scan, "tiles");
  int32_t from, to;
  for (int64_t n = 0; weft_scan_item(scan, n, count, "tiles"); ++n) {
    if (!read_range(r, &from, &to)) return;
    int32_t step = to < from ? -1 : 1;
    if (((int64_t)to - from) * step >= count - filled) {
      weft_scan_fail(scan, "more than the %" PRId64 " tiles of the chosen alternative", count);
      return;
    }
    for (int64_t tile = from; tile != (int64_t)to + step; tile += step) kernel->tile[filled++] = (int32_t)tile;
  }
  if (!scan->status && filled != count)
    weft_scan_fail(scan, "%" PRId64 " tiles, but the chosen alternative has %" PRId64, filled, count);
}

static void read_placement(reader_t* r, weft_kernel_t* kernel) {
  weft_scan_t* scan = &r->scan;
  weft_region_t* region = &kernel->region;
  weft_scan_expect(scan, "chosen");
  kernel->chosen = weft_scan_index(scan, "an alternative", kernel->alternative_count);
  weft_scan_expect(scan, "region");
  region->x = weft_scan_index(scan, "a column", INT32_MAX);
  region->y = weft_scan_index(scan, "a row", INT32_MAX);
  region->width = weft_scan_index(scan, "a width", INT32_MAX);
  region->height = weft_scan_index(scan, "a height", INT32_MAX);
  region->transposed = !weft_scan_accept(scan, "upright");
  if (region->transposed) weft_scan_expect(scan, "transposed");
  read_tiles(r, kernel);
}

static void read_kernel(reader_t* r, weft_kernel_t* kernel) {
  weft_scan_t* scan = &r->scan;
  kernel->chosen = kernel->reduce_operation = -1;
  kernel->name = read_string(r, "a kernel's name");
  weft_scan_expect(scan, "nodes");
  kernel->nodes = read_string(r, "the names of nodes");
  weft_scan_expect(scan, "dims");
  for (; weft_scan_item(scan, kernel->dim_count, WEFT_MAX_DIMS, "dimensions"); ++kernel->dim_count) {
    weft_dim_t* dim = &kernel->dim[kernel->dim_count];
    dim->kind = (weft_dim_kind_e)weft_scan_word(scan, "a kind of dimension", weft_dim_kind_names, 4);
    dim->extent = read_size(r, "an extent");
  }
  weft_scan_expect(scan, "buffers");
  kernel->buffer_count = weft_scan_count(scan, "buffers", sizeof("buffer 0 temporary \"\" i8 []"));
  NEW(r, kernel->buffer_count, &kernel->buffer);
  FOR_NUMBERED(r, i, kernel->buffer_count, "buffer") read_buffer(r, kernel->dim_count, &kernel->buffer[i]);
  weft_scan_expect(scan, "operations");
  kernel->operation_count = weft_scan_count(scan, "operations", sizeof("operation b0=mov i8(0)over[]"));
  NEW(r, kernel->operation_count, &kernel->operation);
  for (int32_t i = 0; i < kernel->operation_count && !scan->status; ++i)
    read_operation(r, kernel, &kernel->operation[i]);
  weft_scan_expect(scan, "reduce");
  if (!weft_scan_accept(scan, "none")) {
    kernel->reduce_operation = weft_scan_index(scan, "an operation", kernel->operation_count);
    kernel->combiner = read_op(r);
  }
  weft_scan_expect(scan, "alternatives");
  kernel->alternative_count = weft_scan_count(scan, "alternatives", sizeof("alternative y[]x[]grid 1 1"));
  NEW(r, kernel->alternative_count, &kernel->alternative);
  for (int32_t i = 0; i < kernel->alternative_count && !scan->status; ++i)
    read_alternative(r, kernel, &kernel->alternative[i]);
  if (r->fabric->stage >= WEFT_STAGE_PLACED) read_placement(r, kernel);
}

static void read_kernels(reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(&r->scan, "kernels");
  fabric->kernel_count = weft_scan_count(&r->scan, "kernels", sizeof("kernel 0 \"\" nodes \"\" dims []"));
  NEW(r, fabric->kernel_count, &fabric->kernel);
  FOR_NUMBERED(r, i, fabric->kernel_count, "kernel") read_kernel(r, &fabric->kernel[i]);
}

static void read_outputs(reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(&r->scan, "outputs");
  fabric->output_count = weft_scan_count(&r->scan, "outputs", sizeof("output 0 \"\" i8 [] fill 0 pieces 0"));
  NEW(r, fabric->output_count, &fabric->output);
  FOR_NUMBERED(r, i, fabric->output_count, "output") {
    weft_output_t* output = &fabric->output[i];
    output->name = read_string(r, "an output's name");
    output->dtype = read_dtype(r);
    output->shape = read_shape(r);
    read_fill(r, &output->has_fill, &output->fill);
    read_pieces(r, &output->piece_count, &output->piece);
  }
}

static int32_t read_levels(reader_t* r, weft_walk_t* walk) {
  weft_scan_t* scan = &r->scan;
  int32_t count = 0, room = WEFT_MAX_LEVELS - walk->level_count;
  for (; weft_scan_item(scan, count, room, "levels"); ++count) {
    weft_walk_level_t* level = &walk->level[walk->level_count + count];
    level->extent = read_size(r, "an extent");
    weft_scan_expect(scan, "of");
    level->dim = weft_scan_index(scan, "a tensor dimension", WEFT_MAX_RANK);
    weft_scan_expect(scan, "by");
    level->step = read_size(r, "a step");
  }
  walk->level_count += count;
  return count;
}

static void read_walk(reader_t* r, weft_walk_t* walk) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "walk");
  walk->source_levels = read_levels(r, walk);
  read_levels(r, walk);
  weft_scan_expect(scan, "box");
  for (; weft_scan_item(scan, walk->box.rank, WEFT_MAX_RANK, "dimensions"); ++walk->box.rank) {
    walk->box.lo[walk->box.rank] = read_size(r, "a bound");
    weft_scan_expect(scan, "..");
    walk->box.hi[walk->box.rank] = read_size(r, "a bound");
  }
}

static void read_endpoints(reader_t* r, const char* what, int32_t* out_count, weft_endpoint_t** out_endpoints) {
  weft_scan_t* scan = &r->scan;
  int32_t from, to;
  r->endpoints.count = 0;
  weft_scan_expect(scan, what);
  for (int64_t n = 0; weft_scan_item(scan, n, MOST_RANGE_ITEMS, what) && read_range(r, &from, &to); ++n) {
    weft_scan_expect(scan, ":");
    int64_t elements = read_size(r, "a number of elements");
    if (to < from) weft_scan_fail(scan, "expected an ascending range, found %" PRId32 "..%" PRId32, from, to);
    for (int64_t tile = from; tile <= to && !scan->status; ++tile) {
      weft_endpoint_t endpoint = {.logical = (int32_t)tile, .elements = elements};
      weft_scan_keep(scan, WEFT_ARRAY_PUSH(r->allocator, &r->endpoints, endpoint));
    }
  }
  if (scan->status) return;
  void* copy = NULL;
  size_t bytes = r->endpoints.count * sizeof(weft_endpoint_t);
  weft_scan_keep(scan, weft_arena_copy(&r->fabric->arena, r->endpoints.data, bytes, &copy));
  *out_count = (int32_t)r->endpoints.count;
  *out_endpoints = copy;
}

static int32_t read_direction(reader_t* r) {
  const char* names[WEFT_DIRECTION_COUNT];
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) names[d] = weft_direction_name((weft_direction_e)d);
  return weft_scan_word(&r->scan, "a direction", names, WEFT_DIRECTION_COUNT);
}

static uint8_t read_colour(reader_t* r) {
  return (uint8_t)weft_scan_index(&r->scan, "a colour", WEFT_MAX_COLOURS);
}

static void read_entry(reader_t* r, weft_router_entry_t* entry) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "@");
  entry->tile = weft_scan_index(scan, "a tile", INT32_MAX);
  weft_scan_expect(scan, ":");
  entry->colour = read_colour(r);
  for (; weft_scan_item(scan, entry->input_count, WEFT_DIRECTION_COUNT, "inputs"); ++entry->input_count)
    entry->input[entry->input_count] = (uint8_t)read_direction(r);
  weft_scan_expect(scan, "->");
  for (int64_t n = 0; weft_scan_item(scan, n, WEFT_DIRECTION_COUNT, "outputs"); ++n) {
    int32_t direction = read_direction(r);
    if (entry->outputs >> direction & 1) weft_scan_fail(scan, "an output stands twice");
    entry->outputs |= (uint16_t)(1u << direction);
    entry->output_colour[direction] = read_colour(r);
  }
}

static int32_t read_kernel_or_host(reader_t* r) {
  if (weft_scan_accept(&r->scan, "host")) return WEFT_HOST_KERNEL;
  return weft_scan_index(&r->scan, "a kernel or host", r->fabric->kernel_count);
}

static int32_t read_port(reader_t* r) {
  return weft_scan_accept(&r->scan, "none") ? -1 : weft_scan_index(&r->scan, "a host port or none", INT32_MAX);
}

static void read_stream(reader_t* r, weft_stream_t* stream) {
  weft_scan_t* scan = &r->scan;
  stream->tensor = stream->sink_buffer = stream->sink_piece = -1;
  stream->source_port = stream->sink_port = -1;
  stream->kind = (weft_stream_kind_e)weft_scan_word(scan, "a kind of stream", weft_stream_kind_names, 2);
  stream->dtype = read_dtype(r);
  bool is_data = stream->kind == WEFT_STREAM_DATA;
  if (is_data) {
    weft_scan_expect(scan, "tensor");
    stream->tensor = weft_scan_index(scan, "a tensor", r->fabric->tensor_count);
  }
  weft_scan_expect(scan, "from");
  stream->source_kernel = read_kernel_or_host(r);
  weft_scan_expect(scan, "to");
  stream->sink_kernel = read_kernel_or_host(r);
  if (is_data) {
    weft_scan_expect(scan, "buffer");
    stream->sink_buffer = weft_scan_index(scan, "a buffer", INT32_MAX);
    weft_scan_expect(scan, "piece");
    stream->sink_piece = weft_scan_index(scan, "a piece", INT32_MAX);
    read_walk(r, &stream->walk);
  }
  read_endpoints(r, "sources", &stream->source_count, &stream->source);
  read_endpoints(r, "sinks", &stream->sink_count, &stream->sink);
  stream->elements = read_figure(r, "elements");
  stream->wavelets = read_figure(r, "wavelets");
  if (r->fabric->stage < WEFT_STAGE_ROUTED) return;
  weft_scan_expect(scan, "ports");
  stream->source_port = read_port(r);
  stream->sink_port = read_port(r);
  weft_scan_expect(scan, "entries");
  stream->entry_count = weft_scan_count(scan, "entries", sizeof("@0:0[W]->[E 0]") - 1);
  NEW(r, stream->entry_count, &stream->entry);
  for (int32_t i = 0; i < stream->entry_count && !scan->status; ++i) read_entry(r, &stream->entry[i]);
}

static void read_streams(reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  if (fabric->stage < WEFT_STAGE_PLACED) return;
  weft_scan_expect(&r->scan, "streams");
  fabric->stream_count = weft_scan_count(&r->scan, "streams", sizeof("stream 0 data i8 sources [] sinks []"));
  NEW(r, fabric->stream_count, &fabric->stream);
  FOR_NUMBERED(r, i, fabric->stream_count, "stream") read_stream(r, &fabric->stream[i]);
}

static weft_status_t read_text(weft_allocator_t allocator, const char* path, const weft_mapping_t* mapping,
                               weft_fabric_t* fabric) {
  reader_t reader = {.allocator = allocator, .fabric = fabric}, *r = &reader;
  weft_scan_initialize(allocator, path, (const char*)mapping->data, mapping->size, &r->scan);
  read_header(r);
  read_tensors(r);
  read_kernels(r);
  read_outputs(r);
  read_streams(r);
  weft_scan_end(&r->scan);
  weft_status_t status = r->scan.status;
  r->scan.status = NULL;
  weft_scan_deinitialize(&r->scan);
  WEFT_ARRAY_FREE(allocator, &r->endpoints);
  if (!status) status = weft_status_annotate(weft_fabric_verify(fabric), "in '%s'", path);
  return status;
}

weft_status_t weft_fabric_read(weft_allocator_t allocator, const char* path, weft_fabric_t* out_fabric) {
  weft_mapping_t mapping;
  weft_fabric_initialize(allocator, out_fabric);
  weft_status_t status = weft_file_map(path, &mapping);
  if (!status) status = read_text(allocator, path, &mapping, out_fabric);
  weft_file_unmap(&mapping);
  if (status) weft_fabric_deinitialize(out_fabric);
  return status;
}
