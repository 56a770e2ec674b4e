// Kernels of the text form: what each tile does, the ways to split it, and where it was placed.
#include <inttypes.h>

#include "base/checked.h"
#include "ir/fabric/text_reader.h"

static int32_t read_dimension(weft_reader_t* r, int32_t dim_count) {
  if (!weft_scan_accept_letter(&r->scan, 'd')) weft_scan_fail(&r->scan, "expected an iteration dimension (d0, d1, ..)");
  return weft_scan_index(&r->scan, "an iteration dimension", dim_count);
}

// One term of an index map: `-3*d2`, `d0` or `17`; its sign was taken before.
static void read_term(weft_reader_t* r, bool negative, int32_t dim_count, weft_index_row_t* row) {
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

static void read_index_row(weft_reader_t* r, int32_t dim_count, weft_index_row_t* row) {
  bool negative = weft_scan_accept(&r->scan, "-");
  do {
    read_term(r, negative, dim_count, row);
    negative = weft_scan_accept(&r->scan, "-");
  } while (!r->scan.status && (negative || weft_scan_accept(&r->scan, "+")));
}

static void read_buffer(weft_reader_t* r, int32_t dim_count, weft_buffer_t* buffer) {
  weft_scan_t* scan = &r->scan;
  buffer->tensor = -1;
  buffer->kind = (weft_buffer_kind_e)weft_scan_word(scan, "a kind of buffer", weft_buffer_kind_names, 3);
  buffer->name = weft_reader_string(r, "a buffer's name");
  buffer->dtype = weft_reader_dtype(r);
  for (; weft_scan_item(scan, buffer->rank, WEFT_MAX_RANK, "rows"); ++buffer->rank)
    read_index_row(r, dim_count, &buffer->row[buffer->rank]);
  if (buffer->kind == WEFT_BUFFER_OPERAND) {
    weft_reader_fill(r, &buffer->has_fill, &buffer->fill);
    if (weft_scan_accept(scan, "spare"))
      buffer->spare = (int32_t)weft_scan_integer(scan, "a number of spare places", 1, WEFT_MAX_SPARE);
    weft_reader_pieces(r, &buffer->piece_count, &buffer->piece);
  } else if (buffer->kind == WEFT_BUFFER_RESULT) {
    weft_scan_expect(scan, "tensor");
    buffer->tensor = weft_scan_index(scan, "a tensor", r->fabric->tensor_count);
  }
}

static void read_operation(weft_reader_t* r, const weft_kernel_t* kernel, weft_operation_t* operation) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "operation");
  if (!weft_scan_accept_letter(scan, 'b')) weft_scan_fail(scan, "expected a buffer (b0, b1, ..)");
  operation->destination = weft_scan_index(scan, "a buffer", kernel->buffer_count);
  weft_scan_expect(scan, "=");
  operation->op = weft_reader_op(r);
  operation->dtype = weft_reader_dtype(r);
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

static int32_t read_axis(weft_reader_t* r, const char* axis, int32_t dim_count, weft_axis_factor_t* factor) {
  int32_t count = 0;
  weft_scan_expect(&r->scan, axis);
  for (; weft_scan_item(&r->scan, count, WEFT_MAX_AXIS_FACTORS, "factors on an axis"); ++count) {
    factor[count].dim = read_dimension(r, dim_count);
    weft_scan_expect(&r->scan, "/");
    factor[count].parts = (int32_t)weft_scan_integer(&r->scan, "a number of parts", 1, WEFT_READER_MOST_TILES);
  }
  return count;
}

static void read_alternative(weft_reader_t* r, const weft_kernel_t* kernel, weft_alternative_t* alternative) {
  weft_scan_t* scan = &r->scan;
  weft_scan_expect(scan, "alternative");
  alternative->split.y_count = read_axis(r, "y", kernel->dim_count, alternative->split.y);
  alternative->split.x_count = read_axis(r, "x", kernel->dim_count, alternative->split.x);
  weft_scan_expect(scan, "grid");
  alternative->gy = (int32_t)weft_scan_integer(scan, "a grid height", 1, WEFT_READER_MOST_TILES);
  alternative->gx = (int32_t)weft_scan_integer(scan, "a grid width", 1, WEFT_READER_MOST_TILES);
  if (!scan->status && (int64_t)alternative->gy * alternative->gx > WEFT_READER_MOST_TILES)
    weft_scan_fail(scan, "a grid of %" PRId32 " x %" PRId32 " tiles is larger than any wafer", alternative->gy,
                   alternative->gx);
  alternative->cycles = weft_reader_figure(r, "cycles");
  alternative->chain_cycles = weft_reader_figure(r, "chain");
  alternative->stream_cycles = weft_reader_figure(r, "stream");
  alternative->step_cycles = weft_reader_figure(r, "step");
  alternative->doubled = weft_scan_accept(scan, "doubled");
  if (!alternative->doubled) weft_scan_expect(scan, "single");
  alternative->bytes = weft_reader_figure(r, "bytes");
}

static void read_tiles(weft_reader_t* r, weft_kernel_t* kernel) {
  weft_scan_t* scan = &r->scan;
  if (scan->status) return;
  const weft_alternative_t* alternative = &kernel->alternative[kernel->chosen];
  int64_t count = (int64_t)alternative->gy * alternative->gx, filled = 0;
  // The kernels share one mesh: together they have no more tiles than the largest one.
  r->range_items += count;
  if (r->range_items > WEFT_READER_MOST_RANGE_ITEMS)
    weft_scan_fail(scan, "more than %d tiles in all kernels", WEFT_READER_MOST_RANGE_ITEMS);
  WEFT_READER_NEW(r, count, &kernel->tile);
  weft_scan_expect(scan, "tiles");
  int32_t from, to;
  for (int64_t n = 0; weft_scan_item(scan, n, count, "tiles"); ++n) {
    if (!weft_reader_range(r, &from, &to)) return;
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

static void read_placement(weft_reader_t* r, weft_kernel_t* kernel) {
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

static void read_kernel(weft_reader_t* r, weft_kernel_t* kernel) {
  weft_scan_t* scan = &r->scan;
  kernel->chosen = kernel->reduce_operation = -1;
  kernel->name = weft_reader_string(r, "a kernel's name");
  weft_scan_expect(scan, "nodes");
  kernel->nodes = weft_reader_string(r, "the names of nodes");
  weft_scan_expect(scan, "dims");
  for (; weft_scan_item(scan, kernel->dim_count, WEFT_MAX_DIMS, "dimensions"); ++kernel->dim_count) {
    weft_dim_t* dim = &kernel->dim[kernel->dim_count];
    dim->kind = (weft_dim_kind_e)weft_scan_word(scan, "a kind of dimension", weft_dim_kind_names, 4);
    dim->extent = weft_reader_size(r, "an extent");
  }
  weft_scan_expect(scan, "buffers");
  kernel->buffer_count = weft_scan_count(scan, "buffers", sizeof("buffer 0 temporary \"\" i8 []"));
  WEFT_READER_NEW(r, kernel->buffer_count, &kernel->buffer);
  WEFT_READER_NUMBERED(r, i, kernel->buffer_count, "buffer") read_buffer(r, kernel->dim_count, &kernel->buffer[i]);
  weft_scan_expect(scan, "operations");
  kernel->operation_count = weft_scan_count(scan, "operations", sizeof("operation b0=mov i8(0)over[]"));
  WEFT_READER_NEW(r, kernel->operation_count, &kernel->operation);
  for (int32_t i = 0; i < kernel->operation_count && !scan->status; ++i)
    read_operation(r, kernel, &kernel->operation[i]);
  weft_scan_expect(scan, "reduce");
  if (!weft_scan_accept(scan, "none")) {
    kernel->reduce_operation = weft_scan_index(scan, "an operation", kernel->operation_count);
    kernel->combiner = weft_reader_op(r);
  }
  weft_scan_expect(scan, "alternatives");
  kernel->alternative_count = weft_scan_count(scan, "alternatives", sizeof("alternative y[]x[]grid 1 1"));
  WEFT_READER_NEW(r, kernel->alternative_count, &kernel->alternative);
  for (int32_t i = 0; i < kernel->alternative_count && !scan->status; ++i)
    read_alternative(r, kernel, &kernel->alternative[i]);
  if (r->fabric->stage >= WEFT_STAGE_PLACED) read_placement(r, kernel);
}

void weft_reader_kernels(weft_reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(&r->scan, "kernels");
  fabric->kernel_count = weft_scan_count(&r->scan, "kernels", sizeof("kernel 0 \"\" nodes \"\" dims []"));
  WEFT_READER_NEW(r, fabric->kernel_count, &fabric->kernel);
  WEFT_READER_NUMBERED(r, i, fabric->kernel_count, "kernel") read_kernel(r, &fabric->kernel[i]);
}
