#include "backend/constants.h"

#include <inttypes.h>
#include <string.h>

#include "ir/fabric/streams.h"

void weft_constants_initialize(weft_allocator_t allocator, weft_constants_t* out_constants) {
  memset(out_constants, 0, sizeof(*out_constants));
  out_constants->allocator = allocator;
  weft_intern_initialize(allocator, &out_constants->contents);
}

void weft_constants_deinitialize(weft_constants_t* constants) {
  WEFT_ARRAY_FREE(constants->allocator, &constants->bytes);
  WEFT_ARRAY_FREE(constants->allocator, &constants->segments);
  WEFT_ARRAY_FREE(constants->allocator, &constants->content);
  weft_intern_deinitialize(&constants->contents);
}

typedef struct content_key_t {
  const weft_constants_t* constants;
  const uint8_t* bytes;
  size_t size;
} content_key_t;

static bool content_equal(const void* self, uint32_t index) {
  const content_key_t* key = self;
  const weft_image_segment_t* content = &key->constants->content.data[index];
  return content->size == key->size && !memcmp(key->constants->bytes.data + content->offset, key->bytes, key->size);
}

static bool is_zero(const uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i]) return false;
  return true;
}

// *out_content: index of the content, or -1 for zeros.
static weft_status_t add_content(weft_constants_t* all, const uint8_t* bytes, size_t size, int64_t* out_content) {
  *out_content = -1;
  if (is_zero(bytes, size)) return weft_ok();
  content_key_t key = {all, bytes, size};
  uint64_t hash = weft_intern_hash(0, bytes, size);
  uint32_t index;
  if (!weft_intern_find(&all->contents, hash, content_equal, &key, &index)) {
    index = (uint32_t)all->content.count;
    size_t offset = (all->bytes.count + WEFT_LAYOUT_ALIGNMENT - 1) / WEFT_LAYOUT_ALIGNMENT * WEFT_LAYOUT_ALIGNMENT;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(all->allocator, &all->bytes, offset + size));
    memset(all->bytes.data + all->bytes.count, 0, offset - all->bytes.count);
    memcpy(all->bytes.data + offset, bytes, size);
    all->bytes.count = offset + size;
    weft_image_segment_t content = {.size = (uint32_t)size, .offset = offset};
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(all->allocator, &all->content, content));
    WEFT_RETURN_IF_ERROR(weft_intern_add(&all->contents, hash, index));
  }
  *out_content = index;
  return weft_ok();
}

weft_status_t weft_kernel_constants_create(weft_constants_t* all, const weft_fabric_t* fabric,
                                           const weft_kernel_t* kernel, const weft_layout_t* layout,
                                           weft_kernel_constants_t* out_constants) {
  weft_kernel_constants_t* c = out_constants;
  memset(c, 0, sizeof(*c));
  c->all = all;
  c->fabric = fabric;
  c->kernel = kernel;
  c->layout = layout;
  weft_intern_initialize(all->allocator, &c->boxes);
  weft_intern_initialize(all->allocator, &c->lists);
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(all->allocator, (size_t)kernel->buffer_count, sizeof(*c->loaded), (void**)&c->loaded));
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    for (int32_t p = 0; p < kernel->buffer[b].piece_count; ++p)
      c->loaded[b] |= fabric->tensor[kernel->buffer[b].piece[p].tensor].kind == WEFT_TENSOR_CONSTANT;
  return weft_ok();
}

void weft_kernel_constants_deinitialize(weft_kernel_constants_t* c) {
  weft_allocator_t allocator = c->all->allocator;
  weft_allocator_free(allocator, c->loaded);
  weft_intern_deinitialize(&c->boxes);
  weft_intern_deinitialize(&c->lists);
  WEFT_ARRAY_FREE(allocator, &c->box);
  WEFT_ARRAY_FREE(allocator, &c->list);
  WEFT_ARRAY_FREE(allocator, &c->scratch);
  WEFT_ARRAY_FREE(allocator, &c->pending);
}

typedef struct copy_t {
  const uint8_t* source;
  uint8_t* target;
  size_t element;
} copy_t;

// The walk is the whole tensor in row-major order, so that a stream position is a flat index.
static weft_status_t copy_run(void* self, int64_t position, int64_t count, int64_t target, int64_t target_step) {
  const copy_t* copy = self;
  const uint8_t* source = copy->source + (size_t)position * copy->element;
  if (target_step == 1) {
    memcpy(copy->target + (size_t)target * copy->element, source, (size_t)count * copy->element);
    return weft_ok();
  }
  for (int64_t i = 0; i < count; ++i)
    memcpy(copy->target + (size_t)(target + i * target_step) * copy->element, source + (size_t)i * copy->element,
           copy->element);
  return weft_ok();
}

static weft_status_t copy_piece(const weft_tensor_t* tensor, const weft_view_t* view, const weft_box_t* box,
                                const int64_t* strides, size_t element, uint8_t* target) {
  weft_walk_t walk = {.level_count = tensor->shape.rank, .box = weft_box_of_shape(&tensor->shape)};
  for (int32_t d = 0; d < tensor->shape.rank; ++d) walk.level[d] = (weft_walk_level_t){tensor->shape.extent[d], d, 1};
  copy_t copy = {tensor->data, target, element};
  return weft_walk_runs(&walk, &tensor->shape, view, box, strides, copy_run, &copy);
}

static void fill_box(const weft_box_t* box, const int64_t* strides, const uint8_t* value, size_t element,
                     uint8_t* target) {
  int64_t index[WEFT_MAX_RANK] = {0};
  for (;;) {
    int64_t at = 0;
    for (int32_t d = 0; d < box->rank; ++d) at += index[d] * strides[d];
    memcpy(target + (size_t)at * element, value, element);
    int32_t d = box->rank - 1;
    while (d >= 0 && ++index[d] == box->hi[d] - box->lo[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

// The bytes of a buffer's box as it lies in tile memory, from its first to its last element.
static weft_status_t evaluate(weft_kernel_constants_t* c, int32_t b, const weft_box_t* box, int64_t* out_content) {
  const weft_buffer_t* buffer = &c->kernel->buffer[b];
  *out_content = -1;
  if (weft_box_is_empty(box)) return weft_ok();
  size_t element = weft_dtype_size(buffer->dtype);
  int64_t strides[WEFT_MAX_RANK], last = 0; // elements
  for (int32_t r = 0; r < box->rank; ++r) {
    strides[r] = c->layout->stride[b][r] / (int64_t)element;
    last += (box->hi[r] - box->lo[r] - 1) * strides[r];
  }
  size_t size = ((size_t)last + 1) * element;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(c->all->allocator, &c->scratch, size));
  memset(c->scratch.data, 0, size);
  uint8_t fill[8] = {0};
  if (buffer->has_fill) weft_dtype_store(buffer->dtype, buffer->fill, fill);
  if (!is_zero(fill, sizeof(fill))) fill_box(box, strides, fill, element, c->scratch.data);
  for (int32_t p = 0; p < buffer->piece_count; ++p) {
    const weft_tensor_t* tensor = &c->fabric->tensor[buffer->piece[p].tensor];
    if (tensor->kind != WEFT_TENSOR_CONSTANT) continue;
    if (weft_dtype_size(tensor->dtype) != element)
      return weft_error(INVALID_INPUT, "constant '%s' is %s, buffer '%s' holds %s", tensor->name,
                        weft_dtype_name(tensor->dtype), buffer->name, weft_dtype_name(buffer->dtype));
    WEFT_RETURN_IF_ERROR(copy_piece(tensor, &buffer->piece[p].view, box, strides, element, c->scratch.data));
  }
  return add_content(c->all, c->scratch.data, size, out_content);
}

typedef struct box_key_t {
  const weft_kernel_constants_t* constants;
  int32_t buffer;
  const weft_box_t* box;
} box_key_t;

static bool box_equal(const void* self, uint32_t index) {
  const box_key_t* key = self;
  const weft_box_constant_t* found = &key->constants->box.data[index];
  return found->buffer == key->buffer && weft_box_equal(&found->box, key->box);
}

// The content of a buffer's box, evaluated when it is seen for the first time.
static weft_status_t find_content(weft_kernel_constants_t* c, int32_t b, const weft_box_t* box, int64_t* out_content) {
  box_key_t key = {c, b, box};
  size_t bounds = (size_t)box->rank * sizeof(box->lo[0]);
  uint64_t hash = weft_intern_hash(weft_intern_hash((uint64_t)b, box->lo, bounds), box->hi, bounds);
  uint32_t index;
  if (weft_intern_find(&c->boxes, hash, box_equal, &key, &index)) {
    *out_content = c->box.data[index].content;
    return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(evaluate(c, b, box, out_content));
  index = (uint32_t)c->box.count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(c->all->allocator, &c->box, (weft_box_constant_t){b, *box, *out_content}));
  return weft_intern_add(&c->boxes, hash, index);
}

static weft_status_t append_segment(weft_kernel_constants_t* c, int64_t address, int64_t content) {
  if (content < 0) return weft_ok();
  weft_image_segment_t segment = c->all->content.data[content];
  segment.address = (uint32_t)address;
  return WEFT_ARRAY_PUSH(c->all->allocator, &c->pending, segment);
}

static bool list_equal(const void* self, uint32_t index) {
  const weft_kernel_constants_t* c = self;
  weft_segment_list_t list = c->list.data[index];
  return list.count == c->pending.count &&
         !memcmp(c->all->segments.data + list.first, c->pending.data, list.count * sizeof(weft_image_segment_t));
}

static weft_status_t find_list(weft_kernel_constants_t* c, weft_segment_list_t* out_list) {
  weft_constants_t* all = c->all;
  *out_list = (weft_segment_list_t){0, 0};
  size_t count = c->pending.count, bytes = count * sizeof(weft_image_segment_t);
  if (!count) return weft_ok();
  uint64_t hash = weft_intern_hash(0, c->pending.data, bytes);
  uint32_t index;
  if (!weft_intern_find(&c->lists, hash, list_equal, c, &index)) {
    index = (uint32_t)c->list.count;
    weft_segment_list_t list = {(uint32_t)all->segments.count, (uint32_t)count};
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(all->allocator, &all->segments, all->segments.count + count));
    memcpy(all->segments.data + list.first, c->pending.data, bytes);
    all->segments.count += count;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(all->allocator, &c->list, list));
    WEFT_RETURN_IF_ERROR(weft_intern_add(&c->lists, hash, index));
  }
  *out_list = c->list.data[index];
  return weft_ok();
}

weft_status_t weft_kernel_constants_tile(weft_kernel_constants_t* c, const weft_box_t* boxes, const bool* needed,
                                         weft_segment_list_t* out_list) {
  int64_t content;
  c->pending.count = 0;
  for (int32_t b = 0; b < c->kernel->buffer_count; ++b) {
    if (!c->loaded[b] || !needed[b]) continue;
    WEFT_RETURN_IF_ERROR(find_content(c, b, &boxes[b], &content));
    for (int32_t place = 0; place < c->layout->depth[b]; ++place)
      WEFT_RETURN_IF_ERROR(append_segment(c, c->layout->address[b] + c->layout->place[b] * place, content));
  }
  for (int32_t s = 0; s < c->layout->scalar_count; ++s) {
    WEFT_RETURN_IF_ERROR(add_content(c->all, c->layout->scalar[s].bytes, 8, &content));
    WEFT_RETURN_IF_ERROR(append_segment(c, c->layout->scalars + (int64_t)s * 8, content));
  }
  return find_list(c, out_list);
}

void weft_kernel_constants_relocate(weft_kernel_constants_t* c, int64_t code_bytes) {
  for (size_t l = 0; l < c->list.count; ++l)
    for (uint32_t s = 0; s < c->list.data[l].count; ++s)
      c->all->segments.data[c->list.data[l].first + s].address += (uint32_t)code_bytes;
}
