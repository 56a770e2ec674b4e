// Many pieces into one kernel, or many readers of one result, would take more colours at its tiles than a router has.
// Copy kernels in between gather the pieces first, or hand the result on.
#include <inttypes.h>

#include "passes/lowering.h"

enum { GATHERED = 8 }; // pieces that a copy puts together

typedef struct gathered_t { // so that layers which read the same pieces share their copy (dense blocks)
  weft_piece_t piece[GATHERED];
  weft_source_t source;
} gathered_t;
typedef struct relay_t {
  weft_lowering_t* lowering;
  WEFT_ARRAY(weft_kernel_t) order;
  WEFT_ARRAY(gathered_t) gathered;
  WEFT_ARRAY(weft_piece_t*) reader; // of the tensor that is looked at
  int32_t copies;
} relay_t;

// Movement shares arrays of pieces; from here on each reader has its own.
static weft_status_t own_pieces(weft_arena_t* arena, int32_t count, weft_piece_t** inout_pieces) {
  void* copy = NULL;
  if (count == 0) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_arena_copy(arena, *inout_pieces, (size_t)count * sizeof(**inout_pieces), &copy));
  *inout_pieces = copy;
  return weft_ok();
}

// The kernel that was lowered last moves into the order.
static weft_status_t take_kernel(relay_t* r) {
  weft_kernel_t kernel = r->lowering->kernel.data[--r->lowering->kernel.count];
  return WEFT_ARRAY_PUSH(r->lowering->allocator, &r->order, kernel);
}

static weft_status_t copy(relay_t* r, const char* near, const weft_source_t* source, weft_source_t* out) {
  weft_index_row_t rows[WEFT_MAX_RANK] = {0};
  const char* name = NULL;
  WEFT_RETURN_IF_ERROR(weft_arena_printf(&r->lowering->fabric->arena, &name, "Relay:%s.%" PRId32, near, ++r->copies));
  for (int32_t d = 0; d < source->shape.rank; ++d) rows[d].coefficient[d] = 1;
  WEFT_RETURN_IF_ERROR(weft_lower_copy_named(r->lowering, name, source, rows, &source->shape, out));
  return take_kernel(r);
}

// --- Pieces

static bool arrives(const relay_t* r, const weft_piece_t* piece) {
  return r->lowering->tensor.data[piece->tensor].kind != WEFT_TENSOR_CONSTANT;
}

static int32_t inflow(const relay_t* r, const weft_kernel_t* kernel) {
  int32_t count = 0;
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    for (int32_t p = 0; kernel->buffer[b].kind == WEFT_BUFFER_OPERAND && p < kernel->buffer[b].piece_count; ++p)
      count += arrives(r, &kernel->buffer[b].piece[p]);
  return count;
}

static bool same_piece(const weft_piece_t* a, const weft_piece_t* b) {
  bool same = a->tensor == b->tensor && a->view.rank == b->view.rank && a->view.factor_count == b->view.factor_count;
  for (int32_t d = 0; d < a->view.rank && same; ++d) same = a->view.offset[d] == b->view.offset[d];
  for (int32_t j = 0; j < a->view.factor_count && same; ++j) {
    const weft_view_factor_t *x = &a->view.factor[j], *y = &b->view.factor[j];
    same = x->extent == y->extent && x->lo == y->lo && x->hi == y->hi && x->dim == y->dim && x->step == y->step;
  }
  return same;
}

// The box that pieces first..first + GATHERED - 1 fill. False: they leave gaps, or others lie among them.
static bool filled_box(const weft_buffer_t* buffer, int32_t first, weft_box_t* out_box) {
  *out_box = weft_view_image(&buffer->piece[first].view);
  for (int32_t p = first + 1; p < first + GATHERED; ++p) {
    weft_box_t image = weft_view_image(&buffer->piece[p].view);
    *out_box = weft_box_hull(out_box, &image);
  }
  int64_t count = 0;
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    int64_t inside = weft_view_count(&buffer->piece[p].view, out_box);
    bool is_other = p < first || p >= first + GATHERED;
    if (is_other && inside > 0) return false;
    count += inside;
  }
  return count == weft_box_elements(out_box);
}

// A tensor made of GATHERED pieces, by an earlier copy if there is one.
static weft_status_t gather(relay_t* r, const char* name, const weft_buffer_t* buffer, int32_t first,
                            const weft_box_t* box, weft_source_t* out) {
  gathered_t entry = {.source = {.dtype = buffer->dtype, .shape.rank = box->rank, .piece_count = GATHERED}};
  for (int32_t d = 0; d < box->rank; ++d) entry.source.shape.extent[d] = box->hi[d] - box->lo[d];
  for (int32_t p = 0; p < GATHERED; ++p) {
    entry.piece[p] = buffer->piece[first + p];
    for (int32_t d = 0; d < box->rank; ++d) entry.piece[p].view.offset[d] -= box->lo[d];
  }
  for (size_t i = 0; i < r->gathered.count; ++i) {
    bool same = true;
    for (int32_t p = 0; p < GATHERED && same; ++p) same = same_piece(&r->gathered.data[i].piece[p], &entry.piece[p]);
    if (!same) continue;
    *out = r->gathered.data[i].source;
    return weft_ok();
  }
  entry.source.piece = entry.piece;
  WEFT_RETURN_IF_ERROR(own_pieces(&r->lowering->fabric->arena, GATHERED, &entry.source.piece));
  WEFT_RETURN_IF_ERROR(copy(r, name, &entry.source, out));
  entry.source = *out;
  return WEFT_ARRAY_PUSH(r->lowering->allocator, &r->gathered, entry);
}

static weft_status_t gather_pieces(relay_t* r, int32_t kernel, weft_buffer_t* buffer, int32_t* inflow) {
  for (int32_t first = 0; first + GATHERED <= buffer->piece_count && *inflow > WEFT_MOST_INFLOW; ++first) {
    weft_box_t box;
    weft_source_t whole;
    bool all_arrive = true;
    for (int32_t p = first; p < first + GATHERED; ++p) {
      const weft_tensor_t* tensor = &r->lowering->tensor.data[buffer->piece[p].tensor];
      // What comes back to the kernel that makes it can't take a way through another.
      bool is_own = tensor->kind == WEFT_TENSOR_RESULT && tensor->kernel == kernel;
      all_arrive &= arrives(r, &buffer->piece[p]) && !is_own;
    }
    if (!all_arrive || !filled_box(buffer, first, &box)) continue;
    WEFT_RETURN_IF_ERROR(gather(r, r->lowering->kernel.data[kernel].name, buffer, first, &box, &whole));
    buffer->piece[first] = whole.piece[0];
    for (int32_t d = 0; d < box.rank; ++d) buffer->piece[first].view.offset[d] += box.lo[d];
    buffer->piece_count -= GATHERED - 1;
    for (int32_t p = first + 1; p < buffer->piece_count; ++p) buffer->piece[p] = buffer->piece[p + GATHERED - 1];
    *inflow -= GATHERED - 1;
  }
  return weft_ok();
}

static weft_status_t relay_inflow(relay_t* r) {
  weft_lowering_t* lowering = r->lowering;
  size_t count = lowering->kernel.count;
  for (size_t k = 0; k < count; ++k) {
    weft_kernel_t kernel = lowering->kernel.data[k];
    int32_t pieces = inflow(r, &kernel);
    for (int32_t b = 0; b < kernel.buffer_count; ++b) {
      weft_buffer_t* buffer = &kernel.buffer[b];
      if (buffer->kind != WEFT_BUFFER_OPERAND) continue;
      WEFT_RETURN_IF_ERROR(own_pieces(&lowering->fabric->arena, buffer->piece_count, &buffer->piece));
      WEFT_RETURN_IF_ERROR(gather_pieces(r, (int32_t)k, buffer, &pieces));
    }
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &r->order, kernel));
  }
  return weft_ok();
}

// --- Readers

static weft_status_t find_readers(relay_t* r, const weft_kernel_t* kernels, size_t count, int32_t tensor) {
  weft_fabric_t* fabric = r->lowering->fabric;
  r->reader.count = 0;
  for (size_t k = 0; k < count; ++k)
    for (int32_t b = 0; b < kernels[k].buffer_count; ++b)
      for (int32_t p = 0; p < kernels[k].buffer[b].piece_count; ++p)
        if (kernels[k].buffer[b].kind == WEFT_BUFFER_OPERAND && kernels[k].buffer[b].piece[p].tensor == tensor)
          WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(r->lowering->allocator, &r->reader, &kernels[k].buffer[b].piece[p]));
  for (int32_t o = 0; o < fabric->output_count; ++o)
    for (int32_t p = 0; p < fabric->output[o].piece_count; ++p)
      if (fabric->output[o].piece[p].tensor == tensor)
        WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(r->lowering->allocator, &r->reader, &fabric->output[o].piece[p]));
  return weft_ok();
}

// The first readers are served by the result itself, the next ones by its copy, and so on.
static weft_status_t hand_on(relay_t* r, const char* name, int32_t tensor, size_t most) {
  weft_source_t source, moved;
  WEFT_RETURN_IF_ERROR(weft_lower_whole(r->lowering, tensor, &source));
  for (size_t served = most - 1;; served += most - 1) {
    WEFT_RETURN_IF_ERROR(copy(r, name, &source, &moved));
    for (size_t i = served; i < r->reader.count; ++i) r->reader.data[i]->tensor = moved.piece[0].tensor;
    source = moved;
    if (r->reader.count - served <= most) return weft_ok();
  }
}

static int32_t result_count(const weft_kernel_t* kernel) {
  int32_t count = 0;
  for (int32_t b = 0; b < kernel->buffer_count; ++b) count += kernel->buffer[b].kind == WEFT_BUFFER_RESULT;
  return count;
}

static weft_status_t relay_outflow(relay_t* r) {
  weft_lowering_t* lowering = r->lowering;
  size_t count = lowering->kernel.count;
  for (size_t k = 0; k < count; ++k) {
    const weft_kernel_t kernel = lowering->kernel.data[k];
    int32_t results = result_count(&kernel), most = WEFT_MOST_OUTFLOW / (results > 0 ? results : 1);
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &r->order, kernel));
    for (int32_t b = 0; b < kernel.buffer_count; ++b) {
      if (kernel.buffer[b].kind != WEFT_BUFFER_RESULT) continue;
      WEFT_RETURN_IF_ERROR(find_readers(r, lowering->kernel.data + k + 1, count - k - 1, kernel.buffer[b].tensor));
      if (most < 2) most = 2;
      if (r->reader.count > (size_t)most)
        WEFT_RETURN_IF_ERROR(hand_on(r, kernel.name, kernel.buffer[b].tensor, (size_t)most));
    }
  }
  return weft_ok();
}

// --- Both

// The kernels in their new order; tensors follow.
static weft_status_t adopt_order(relay_t* r) {
  weft_lowering_t* lowering = r->lowering;
  lowering->kernel.count = 0;
  for (size_t k = 0; k < r->order.count; ++k) {
    const weft_kernel_t* kernel = &r->order.data[k];
    for (int32_t b = 0; b < kernel->buffer_count; ++b)
      if (kernel->buffer[b].kind == WEFT_BUFFER_RESULT)
        lowering->tensor.data[kernel->buffer[b].tensor].kernel = (int32_t)k;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &lowering->kernel, *kernel));
  }
  r->order.count = 0;
  return weft_ok();
}

weft_status_t weft_lower_relays(weft_lowering_t* lowering) {
  relay_t relay = {.lowering = lowering};
  weft_fabric_t* fabric = lowering->fabric;
  weft_status_t status = weft_ok();
  for (int32_t o = 0; o < fabric->output_count && !status; ++o)
    status = own_pieces(&fabric->arena, fabric->output[o].piece_count, &fabric->output[o].piece);
  if (!status) status = relay_inflow(&relay);
  if (!status) status = adopt_order(&relay);
  if (!status) status = relay_outflow(&relay);
  if (!status) status = adopt_order(&relay);
  WEFT_ARRAY_FREE(lowering->allocator, &relay.order);
  WEFT_ARRAY_FREE(lowering->allocator, &relay.gathered);
  WEFT_ARRAY_FREE(lowering->allocator, &relay.reader);
  return status;
}
