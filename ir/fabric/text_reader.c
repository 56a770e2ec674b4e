#include "ir/fabric/text_reader.h"

bool weft_reader_begin_numbered(weft_reader_t* r, int32_t index, int32_t count, const char* word) {
  if (r->scan.status || index == count) return false;
  weft_scan_expect(&r->scan, word);
  weft_scan_integer(&r->scan, word, index, index);
  return !r->scan.status;
}

const char* weft_reader_string(weft_reader_t* r, const char* what) {
  const char* text = weft_scan_string(&r->scan, what);
  const char* copy = "";
  if (!r->scan.status) weft_scan_keep(&r->scan, weft_arena_strdup(&r->fabric->arena, text, &copy));
  return copy;
}

weft_dtype_e weft_reader_dtype(weft_reader_t* r) {
  char word[32];
  weft_dtype_e dtype = WEFT_DTYPE_F32;
  weft_scan_name(&r->scan, "an element type", word, sizeof(word));
  if (!r->scan.status && !weft_dtype_parse(word, &dtype))
    weft_scan_fail(&r->scan, "'%s' is no element type (f32, f16, ..)", word);
  return dtype;
}

weft_op_e weft_reader_op(weft_reader_t* r) {
  char word[32];
  weft_op_e op = WEFT_OP_MOV;
  weft_scan_name(&r->scan, "an operation", word, sizeof(word));
  if (!r->scan.status && !weft_op_parse(word, &op)) weft_scan_fail(&r->scan, "'%s' is no operation", word);
  return op;
}

int64_t weft_reader_any(weft_reader_t* r, const char* what) {
  return weft_scan_integer(&r->scan, what, INT64_MIN, INT64_MAX);
}

int64_t weft_reader_size(weft_reader_t* r, const char* what) {
  return weft_scan_integer(&r->scan, what, 0, INT64_MAX);
}

weft_shape_t weft_reader_shape(weft_reader_t* r) {
  weft_shape_t shape = {0};
  for (; weft_scan_item(&r->scan, shape.rank, WEFT_MAX_RANK, "dimensions"); ++shape.rank)
    shape.extent[shape.rank] = weft_reader_size(r, "an extent");
  return shape;
}

void weft_reader_fill(weft_reader_t* r, bool* out_has_fill, double* out_fill) {
  weft_scan_expect(&r->scan, "fill");
  *out_has_fill = !weft_scan_accept(&r->scan, "none");
  if (*out_has_fill) *out_fill = weft_scan_real(&r->scan, "a fill value or none");
}

static void read_view(weft_reader_t* r, weft_view_t* out_view) {
  weft_scan_t* scan = &r->scan;
  weft_view_t view = {0};
  weft_scan_expect(scan, "view");
  for (; weft_scan_item(scan, view.factor_count, WEFT_MAX_FACTORS, "factors"); ++view.factor_count) {
    weft_view_factor_t* factor = &view.factor[view.factor_count];
    factor->extent = weft_reader_size(r, "an extent");
    weft_scan_expect(scan, "in");
    factor->lo = weft_reader_any(r, "a bound");
    weft_scan_expect(scan, "..");
    factor->hi = weft_reader_any(r, "a bound");
    weft_scan_expect(scan, "to");
    factor->dim = weft_scan_accept(scan, "none") ? -1 : weft_scan_index(scan, "an operand dimension", WEFT_MAX_RANK);
    weft_scan_expect(scan, "by");
    factor->step = weft_reader_any(r, "a step");
  }
  weft_scan_expect(scan, "at");
  for (; weft_scan_item(scan, view.rank, WEFT_MAX_RANK, "dimensions"); ++view.rank)
    view.offset[view.rank] = weft_reader_any(r, "an offset");
  *out_view = view;
}

void weft_reader_pieces(weft_reader_t* r, int32_t* out_count, weft_piece_t** out_pieces) {
  weft_piece_t* piece = NULL;
  weft_scan_expect(&r->scan, "pieces");
  int32_t count = weft_scan_count(&r->scan, "pieces", sizeof("piece 0 view [] at []"));
  WEFT_READER_NEW(r, count, &piece);
  for (int32_t i = 0; i < count && !r->scan.status; ++i) {
    weft_scan_expect(&r->scan, "piece");
    piece[i].tensor = weft_scan_index(&r->scan, "a tensor", r->fabric->tensor_count);
    read_view(r, &piece[i].view);
  }
  *out_count = count;
  *out_pieces = piece;
}

int64_t weft_reader_figure(weft_reader_t* r, const char* name) {
  weft_scan_expect(&r->scan, name);
  return weft_reader_size(r, name);
}

bool weft_reader_range(weft_reader_t* r, int32_t* out_from, int32_t* out_to) {
  *out_from = *out_to = weft_scan_index(&r->scan, "a tile", INT32_MAX);
  if (weft_scan_accept(&r->scan, "..")) *out_to = weft_scan_index(&r->scan, "a tile", INT32_MAX);
  int64_t count = (int64_t)*out_to - *out_from;
  r->range_items += (count < 0 ? -count : count) + 1;
  if (r->range_items > WEFT_READER_MOST_RANGE_ITEMS)
    weft_scan_fail(&r->scan, "ranges of more than %d items", WEFT_READER_MOST_RANGE_ITEMS);
  return !r->scan.status;
}
