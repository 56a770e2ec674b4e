// Values outside kernels: inputs, constants, results of kernels, and movement of those, which becomes views.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "passes/lowering.h"

weft_status_t weft_lower_remember(weft_lowering_t* lowering, MlirValue value, const weft_source_t* source) {
  return WEFT_ARRAY_PUSH(lowering->allocator, &lowering->known, (weft_known_t){value, *source});
}

weft_status_t weft_lower_whole(weft_lowering_t* lowering, int32_t tensor, weft_source_t* out_source) {
  const weft_tensor_t* of = &lowering->tensor.data[tensor];
  *out_source = (weft_source_t){.dtype = of->dtype, .shape = of->shape};
  if (weft_shape_elements(&of->shape) == 0) return weft_ok();
  out_source->piece_count = 1;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&lowering->fabric->arena, 1, &out_source->piece));
  out_source->piece[0] = (weft_piece_t){.tensor = tensor, .view = weft_view_identity(&of->shape)};
  return weft_ok();
}

weft_status_t weft_lower_constant(weft_lowering_t* lowering, const char* name, weft_dtype_e dtype,
                                  const weft_shape_t* shape, const void* data, weft_source_t* out_source) {
  weft_tensor_t tensor = {.kind = WEFT_TENSOR_CONSTANT, .dtype = dtype, .shape = *shape, .kernel = -1, .buffer = -1};
  int32_t index = (int32_t)lowering->tensor.count;
  void* copy;
  WEFT_RETURN_IF_ERROR(weft_arena_printf(&lowering->fabric->arena, &tensor.name, "%s#%" PRId32, name, index));
  WEFT_RETURN_IF_ERROR(weft_arena_copy(&lowering->fabric->arena, data,
                                       (size_t)weft_shape_elements(shape) * weft_dtype_size(dtype), &copy));
  tensor.data = copy;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(lowering->allocator, &lowering->tensor, tensor));
  return weft_lower_whole(lowering, index, out_source);
}

static weft_status_t lower_constant_op(weft_lowering_t* lowering, MlirOperation op, weft_source_t* out) {
  weft_text_t name;
  weft_text_initialize(lowering->allocator, &name);
  void* data = NULL;
  size_t size;
  weft_shape_t shape;
  weft_dtype_e dtype;
  if (!weft_ir_shape(mlirOperationGetResult(op, 0), &shape, &dtype))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "a constant of more than %d dimensions", (int)WEFT_MAX_RANK);
  weft_status_t status = weft_tensor_location_name(mlirOperationGetLocation(op), &name);
  if (!status) status = weft_tensor_constant_bytes(lowering->allocator, weft_ir_attribute(op, "value"), &data, &size);
  if (!status) status = weft_lower_constant(lowering, name.data, dtype, &shape, data, out);
  weft_allocator_free(lowering->allocator, data);
  weft_text_deinitialize(&name);
  return status;
}

// A splat that has to lie in memory because other elements come to stand beside it.
static weft_status_t spread_splat(weft_lowering_t* lowering, weft_source_t* source) {
  size_t width = weft_dtype_size(source->dtype), count = (size_t)weft_shape_elements(&source->shape);
  uint8_t* data = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(lowering->allocator, count + 1, width, (void**)&data));
  for (size_t i = 0; i < count; ++i) weft_dtype_store(source->dtype, source->value, data + i * width);
  weft_source_t whole;
  weft_status_t status = weft_lower_constant(lowering, "splat", source->dtype, &source->shape, data, &whole);
  weft_allocator_free(lowering->allocator, data);
  if (!status) *source = whole;
  return status;
}

// Makes the source a whole tensor of its own.
static weft_status_t materialise(weft_lowering_t* lowering, MlirOperation op, weft_source_t* source) {
  if (source->splat) return spread_splat(lowering, source);
  weft_index_row_t rows[WEFT_MAX_RANK] = {0};
  for (int32_t r = 0; r < source->shape.rank; ++r) rows[r].coefficient[r] = 1;
  weft_source_t copy;
  WEFT_RETURN_IF_ERROR(weft_lower_copy(lowering, op, source, rows, &source->shape, &copy));
  *source = copy;
  return weft_ok();
}

// --- One movement op on one source. *out_fits is false when the result is no view.

typedef bool (*change_fn)(weft_view_t* view, weft_shape_t* shape, const void* how);
static weft_status_t change_pieces(weft_lowering_t* lowering, weft_source_t* source, change_fn change, const void* how,
                                   bool* out_fits) {
  weft_piece_t* piece = NULL;
  weft_shape_t shape = source->shape, after = source->shape;
  int32_t count = 0;
  *out_fits = true;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&lowering->fabric->arena, (size_t)source->piece_count + 1, &piece));
  for (int32_t i = 0; i < source->piece_count; ++i) {
    piece[count] = source->piece[i];
    after = shape;
    if (!change(&piece[count].view, &after, how)) {
      *out_fits = false;
      return weft_ok();
    }
    weft_box_t all = weft_box_of_shape(&after);
    weft_box_t seen = weft_view_preimage(&piece[count].view, &lowering->tensor.data[piece[count].tensor].shape, &all);
    if (!weft_box_is_empty(&seen)) ++count;
  }
  source->piece = piece;
  source->piece_count = count;
  return weft_ok();
}

static bool change_shape(weft_view_t* view, weft_shape_t* shape, const void* how) {
  return weft_view_reshape(view, shape, how);
}
static bool change_order(weft_view_t* view, weft_shape_t* shape, const void* how) {
  return weft_view_transpose(view, shape, how);
}
typedef struct window_t {
  int64_t start[WEFT_MAX_RANK], size[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
} window_t;
static bool change_window(weft_view_t* view, weft_shape_t* shape, const void* how) {
  const window_t* window = how;
  return weft_view_slice(view, shape, window->start, window->size, window->step);
}
typedef struct margin_t {
  int64_t low[WEFT_MAX_RANK], high[WEFT_MAX_RANK];
} margin_t;
static bool change_margin(weft_view_t* view, weft_shape_t* shape, const void* how) {
  const margin_t* margin = how;
  return weft_view_pad(view, shape, margin->low, margin->high);
}

static weft_status_t read_sizes(MlirOperation op, const char* name, int64_t* out, int32_t* inout_count) {
  MlirAttribute list = weft_ir_attribute(op, name);
  intptr_t count = mlirAttributeIsNull(list) ? 0 : mlirDenseArrayGetNumElements(list);
  if (count > WEFT_MAX_RANK)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "more than %d dimensions", (int)WEFT_MAX_RANK);
  for (intptr_t i = 0; i < count; ++i) {
    out[i] = mlirDenseI64ArrayGetElement(list, i);
    if (out[i] == mlirShapedTypeGetDynamicSize())
      return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "%s is not static", name);
  }
  *inout_count = (int32_t)count;
  return weft_ok();
}

static weft_status_t move_slice(weft_lowering_t* lowering, MlirOperation op, const weft_shape_t* to,
                                weft_source_t* source, bool* out_fits) {
  window_t window;
  int32_t count;
  WEFT_RETURN_IF_ERROR(read_sizes(op, "static_offsets", window.start, &count));
  WEFT_RETURN_IF_ERROR(read_sizes(op, "static_sizes", window.size, &count));
  WEFT_RETURN_IF_ERROR(read_sizes(op, "static_strides", window.step, &count));
  WEFT_RETURN_IF_ERROR(change_pieces(lowering, source, change_window, &window, out_fits));
  if (!*out_fits) return weft_ok();
  for (int32_t r = 0; r < count; ++r) source->shape.extent[r] = window.size[r];
  bool same = memcmp(&source->shape, to, sizeof(*to)) == 0;
  return same ? weft_ok() : change_pieces(lowering, source, change_shape, to, out_fits); // drops extents of 1
}

static bool same_value(double a, double b) {
  return memcmp(&a, &b, sizeof(a)) == 0;
}

static weft_status_t move_pad(weft_lowering_t* lowering, MlirOperation op, weft_source_t* source, bool* out_fits) {
  margin_t margin;
  int32_t count;
  double fill;
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  if (!weft_ir_splat(mlirOperationGetOperand(mlirBlockGetTerminator(body), 0), &fill))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "the padding is not constant");
  WEFT_RETURN_IF_ERROR(read_sizes(op, "static_low", margin.low, &count));
  WEFT_RETURN_IF_ERROR(read_sizes(op, "static_high", margin.high, &count));
  *out_fits = !source->has_fill || same_value(source->fill, fill);
  if (*out_fits) WEFT_RETURN_IF_ERROR(change_pieces(lowering, source, change_margin, &margin, out_fits));
  source->has_fill = true;
  source->fill = fill;
  return weft_ok();
}

static weft_status_t move_transpose(weft_lowering_t* lowering, const weft_generic_t* generic, weft_source_t* source,
                                    bool* out_fits) {
  int32_t permutation[WEFT_MAX_RANK];
  uint32_t used = 0;
  *out_fits = generic->map[0].rank == generic->map[1].rank;
  for (int32_t o = 0; o < generic->map[1].rank && *out_fits; ++o) {
    int32_t loop = weft_generic_row_loop(generic, &generic->map[1].row[o]), from = -1;
    for (int32_t i = 0; i < generic->map[0].rank; ++i)
      if (!(used >> i & 1) && from < 0 && weft_generic_row_loop(generic, &generic->map[0].row[i]) == loop &&
          (loop >= 0 || source->shape.extent[i] == 1))
        from = i;
    *out_fits = from >= 0;
    permutation[o] = from;
    used |= from >= 0 ? 1u << from : 0;
  }
  return *out_fits ? change_pieces(lowering, source, change_order, permutation, out_fits) : weft_ok();
}

static weft_status_t move_once(weft_lowering_t* lowering, MlirOperation op, const weft_shape_t* to,
                               weft_source_t* source, bool* out_fits) {
  if (source->splat && !weft_ir_is(op, "tensor.pad")) {
    *out_fits = true;
  } else if (weft_ir_is(op, "tensor.extract_slice")) {
    WEFT_RETURN_IF_ERROR(move_slice(lowering, op, to, source, out_fits));
  } else if (weft_ir_is(op, "tensor.pad")) {
    if (source->splat) WEFT_RETURN_IF_ERROR(spread_splat(lowering, source));
    WEFT_RETURN_IF_ERROR(move_pad(lowering, op, source, out_fits));
  } else if (weft_ir_is(op, "linalg.generic")) {
    weft_generic_t generic;
    WEFT_RETURN_IF_ERROR(weft_generic_read(op, &generic));
    WEFT_RETURN_IF_ERROR(move_transpose(lowering, &generic, source, out_fits));
  } else {
    WEFT_RETURN_IF_ERROR(change_pieces(lowering, source, change_shape, to, out_fits));
  }
  source->shape = *to;
  return weft_ok();
}

// A broadcast in the midst of movement is no view: its elements have several places.
static weft_status_t copy_broadcast(weft_lowering_t* lowering, MlirOperation op, const weft_shape_t* to,
                                    weft_source_t* source) {
  weft_generic_t generic;
  WEFT_RETURN_IF_ERROR(weft_generic_read(op, &generic));
  weft_index_row_t rows[WEFT_MAX_RANK] = {0};
  for (int32_t r = 0; r < generic.map[0].rank; ++r) {
    int32_t loop = weft_generic_row_loop(&generic, &generic.map[0].row[r]);
    for (int32_t o = 0; o < generic.map[1].rank && loop >= 0; ++o)
      if (weft_generic_row_loop(&generic, &generic.map[1].row[o]) == loop) rows[r].coefficient[o] = 1;
  }
  weft_source_t copy;
  WEFT_RETURN_IF_ERROR(weft_lower_copy(lowering, op, source, rows, to, &copy));
  *source = copy;
  return weft_ok();
}

static weft_status_t move_concat(weft_lowering_t* lowering, MlirOperation op, const weft_shape_t* to,
                                 weft_source_t* out) {
  int64_t axis = mlirIntegerAttrGetValueInt(weft_ir_attribute(op, "dim")), at = 0;
  WEFT_ARRAY(weft_piece_t) piece = {0};
  weft_status_t status = weft_ok();
  bool has_fill = false;
  double fill = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !status; ++i) {
    weft_source_t part;
    status = weft_lower_source(lowering, mlirOperationGetOperand(op, i), &part);
    if (status) break;
    margin_t margin = {0};
    int64_t extent = part.shape.extent[axis];
    margin.low[axis] = at;
    margin.high[axis] = to->extent[axis] - at - extent;
    at += extent;
    // What no piece covers is the fill, so a splat costs nothing; two different ones do.
    bool fills = part.splat || part.has_fill;
    double value = part.splat ? part.value : part.fill;
    if (fills && has_fill && !same_value(value, fill)) {
      status = materialise(lowering, op, &part);
      fills = false;
    }
    if (fills) {
      has_fill = true;
      fill = value;
    }
    bool fits = part.splat;
    if (!status && !part.splat) status = change_pieces(lowering, &part, change_margin, &margin, &fits);
    if (!status && !fits) {
      status = materialise(lowering, op, &part);
      if (!status) status = change_pieces(lowering, &part, change_margin, &margin, &fits);
    }
    if (!status && !fits)
      status = weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "operand %" PRIdPTR " can't be placed", i);
    for (int32_t p = 0; p < part.piece_count && !status && !part.splat; ++p)
      status = WEFT_ARRAY_PUSH(lowering->allocator, &piece, part.piece[p]);
  }
  if (!status) {
    out->has_fill = has_fill;
    out->fill = fill;
    out->splat = piece.count == 0;
    out->value = fill;
    out->piece_count = (int32_t)piece.count;
    void* copy = NULL;
    if (piece.count)
      status = weft_arena_copy(&lowering->fabric->arena, piece.data, piece.count * sizeof(*piece.data), &copy);
    out->piece = copy;
  }
  WEFT_ARRAY_FREE(lowering->allocator, &piece);
  return status;
}

static weft_status_t move(weft_lowering_t* lowering, MlirOperation op, weft_source_t* out) {
  weft_shape_t to = out->shape;
  if (weft_ir_is(op, "tensor.concat")) return move_concat(lowering, op, &to, out);
  weft_source_t source, moved;
  WEFT_RETURN_IF_ERROR(weft_lower_source(lowering, mlirOperationGetOperand(op, 0), &source));
  bool fits;
  moved = source;
  WEFT_RETURN_IF_ERROR(move_once(lowering, op, &to, &moved, &fits));
  if (!fits && weft_ir_is(op, "linalg.generic")) {
    moved = source;
    WEFT_RETURN_IF_ERROR(copy_broadcast(lowering, op, &to, &moved));
    fits = true;
  }
  if (!fits) {
    WEFT_RETURN_IF_ERROR(materialise(lowering, op, &source));
    moved = source;
    WEFT_RETURN_IF_ERROR(move_once(lowering, op, &to, &moved, &fits));
  }
  if (!fits) return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "this movement has no view, even of a whole tensor");
  if (!moved.splat && moved.piece_count == 0) { // only padding is left
    moved.splat = true;
    moved.value = moved.fill;
  }
  *out = moved;
  return weft_ok();
}

weft_status_t weft_lower_source(weft_lowering_t* lowering, MlirValue value, weft_source_t* out_source) {
  for (size_t i = 0; i < lowering->known.count; ++i)
    if (mlirValueEqual(lowering->known.data[i].value, value)) {
      *out_source = lowering->known.data[i].source;
      return weft_ok();
    }
  MlirOperation op = weft_ir_producer(value);
  *out_source = (weft_source_t){0};
  if (mlirOperationIsNull(op)) return weft_error(INTERNAL, "a value that neither an op nor main's arguments define");
  if (!weft_ir_shape(value, &out_source->shape, &out_source->dtype))
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "its result is no static tensor of at most %d dimensions",
                         (int)WEFT_MAX_RANK);
  if (weft_shape_elements(&out_source->shape) == 0) return weft_ok(); // nothing to bring, from nowhere
  weft_ir_role_e role = weft_ir_role(op);
  if (weft_ir_splat(value, &out_source->value))
    out_source->splat = true;
  else if (weft_ir_is(op, "arith.constant"))
    WEFT_RETURN_IF_ERROR(lower_constant_op(lowering, op, out_source));
  else if (role == WEFT_ROLE_MOVEMENT)
    WEFT_RETURN_IF_ERROR(move(lowering, op, out_source));
  else if (role == WEFT_ROLE_COMPUTE)
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "it is outside of a kernel: run weft-form-kernels first");
  else
    return weft_ir_error(WEFT_STATUS_UNSUPPORTED, op, "it has no place on the wafer");
  return weft_lower_remember(lowering, value, out_source);
}
