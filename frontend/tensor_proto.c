#include "frontend/tensor_proto.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "frontend/minifloat.h"

// ONNX data_type, its name, ours (COUNT: none), bits where they are fewer than ours has, the format of numbers that
// ours only keeps.
#define DATA_TYPES(X)                                                                                                  \
  X(1, "float", F32, 0, NO_MINIFLOAT)                                                                                  \
  X(2, "uint8", U8, 0, NO_MINIFLOAT)                                                                                   \
  X(3, "int8", I8, 0, NO_MINIFLOAT)                                                                                    \
  X(4, "uint16", U16, 0, NO_MINIFLOAT)                                                                                 \
  X(5, "int16", I16, 0, NO_MINIFLOAT)                                                                                  \
  X(6, "int32", I32, 0, NO_MINIFLOAT)                                                                                  \
  X(7, "int64", I64, 0, NO_MINIFLOAT)                                                                                  \
  X(8, "string", COUNT, 0, NO_MINIFLOAT)                                                                               \
  X(9, "bool", BOOL, 0, NO_MINIFLOAT)                                                                                  \
  X(10, "float16", F16, 0, NO_MINIFLOAT)                                                                               \
  X(11, "double", F64, 0, NO_MINIFLOAT)                                                                                \
  X(12, "uint32", U32, 0, NO_MINIFLOAT)                                                                                \
  X(13, "uint64", U64, 0, NO_MINIFLOAT)                                                                                \
  X(14, "complex64", COUNT, 0, NO_MINIFLOAT)                                                                           \
  X(15, "complex128", COUNT, 0, NO_MINIFLOAT)                                                                          \
  X(16, "bfloat16", BF16, 0, NO_MINIFLOAT)                                                                             \
  X(17, "float8e4m3fn", F8E4M3FN, 0, NO_MINIFLOAT)                                                                     \
  X(18, "float8e4m3fnuz", F16, 0, F8E4M3FNUZ)                                                                          \
  X(19, "float8e5m2", F8E5M2, 0, NO_MINIFLOAT)                                                                         \
  X(20, "float8e5m2fnuz", F16, 0, F8E5M2FNUZ)                                                                          \
  X(21, "uint4", U8, 4, NO_MINIFLOAT)                                                                                  \
  X(22, "int4", I8, 4, NO_MINIFLOAT)                                                                                   \
  X(23, "float4e2m1", F16, 0, F4E2M1)                                                                                  \
  X(24, "float8e8m0", F32, 0, F8E8M0)                                                                                  \
  X(25, "uint2", U8, 2, NO_MINIFLOAT)                                                                                  \
  X(26, "int2", I8, 2, NO_MINIFLOAT)

static const struct {
  int32_t data_type;
  const char* text;
  weft_dtype_e dtype;
  int32_t bits;
  weft_onnx_minifloat_e minifloat;
} data_types[] = {
#define X(number, text, dtype, bits, format) {number, text, WEFT_DTYPE_##dtype, bits, WEFT_ONNX_##format},
    DATA_TYPES(X)
#undef X
};
enum { DATA_TYPE_COUNT = sizeof(data_types) / sizeof(data_types[0]) };

bool weft_onnx_dtype(int64_t data_type, weft_dtype_e* out_dtype) {
  if (data_type < 1 || data_type > DATA_TYPE_COUNT) return false;
  *out_dtype = data_types[data_type - 1].dtype;
  return *out_dtype != WEFT_DTYPE_COUNT;
}

int32_t weft_onnx_bits(int64_t data_type) {
  return data_type < 1 || data_type > DATA_TYPE_COUNT ? 0 : data_types[data_type - 1].bits;
}

weft_onnx_minifloat_e weft_onnx_minifloat(int64_t data_type) {
  return data_type < 1 || data_type > DATA_TYPE_COUNT ? WEFT_ONNX_NO_MINIFLOAT : data_types[data_type - 1].minifloat;
}

void weft_onnx_range(weft_dtype_e dtype, int32_t bits, double* out_lowest, double* out_highest) {
  if (weft_dtype_is_float(dtype)) {
    *out_lowest = -(double)INFINITY;
    *out_highest = (double)INFINITY;
    return;
  }
  bool is_signed = weft_dtype_is_signed(dtype);
  if (!bits) bits = dtype == WEFT_DTYPE_BOOL ? 1 : 8 * (int32_t)weft_dtype_size(dtype);
  *out_lowest = is_signed ? -ldexp(1, bits - 1) : 0;
  *out_highest = ldexp(1, bits - (is_signed ? 1 : 0)) - 1;
}

const char* weft_onnx_dtype_text(int64_t data_type) {
  return data_type < 1 || data_type > DATA_TYPE_COUNT ? "an undefined type" : data_types[data_type - 1].text;
}

int32_t weft_onnx_data_type(weft_dtype_e dtype) {
  for (int32_t i = 0; i < DATA_TYPE_COUNT; ++i)
    if (data_types[i].dtype == dtype) return data_types[i].data_type;
  return 0;
}

static void* arena_alloc(void* arena, size_t size) {
  void* pointer = NULL;
  return weft_status_consume(weft_arena_allocate(arena, size ? size : 1, 1, &pointer)) ? pointer : NULL;
}

static void arena_free(void* arena, void* pointer) {
  (void)arena;
  (void)pointer;
}

ProtobufCAllocator weft_onnx_proto_allocator(weft_arena_t* arena) {
  return (ProtobufCAllocator){arena_alloc, arena_free, arena};
}

// --- Nesting

enum { MAX_NESTING = 64 };
typedef struct wire_t {
  const uint8_t *at, *end;
} wire_t;

static bool read_varint(wire_t* wire, uint64_t* out) {
  *out = 0;
  for (int shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
    uint8_t byte = *wire->at++;
    *out |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

typedef enum nesting_e { NESTING_FINE, NESTING_TOO_DEEP, NESTING_BROKEN } nesting_e;

static nesting_e check_nesting(const ProtobufCMessageDescriptor* descriptor, wire_t wire, int32_t depth) {
  if (depth > MAX_NESTING) return NESTING_TOO_DEEP;
  while (wire.at < wire.end) {
    uint64_t key, length;
    if (!read_varint(&wire, &key)) return NESTING_BROKEN;
    uint64_t left;
    switch (key & 7) {
    case 0:
      if (!read_varint(&wire, &length)) return NESTING_BROKEN;
      continue;
    case 1:
      length = 8;
      break;
    case 5:
      length = 4;
      break;
    case 2:
      if (!read_varint(&wire, &length)) return NESTING_BROKEN;
      break;
    default:
      return NESTING_BROKEN;
    }
    left = (uint64_t)(wire.end - wire.at);
    if (length > left) return NESTING_BROKEN;
    const ProtobufCFieldDescriptor* field =
        (key >> 3) < UINT32_MAX ? protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(key >> 3)) : NULL;
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE && (key & 7) == 2) {
      nesting_e inner = check_nesting(field->descriptor, (wire_t){wire.at, wire.at + length}, depth + 1);
      if (inner != NESTING_FINE) return inner;
    }
    wire.at += length;
  }
  return NESTING_FINE;
}

weft_status_t weft_onnx_unpack(weft_arena_t* arena, const ProtobufCMessageDescriptor* descriptor, const char* path,
                               const char* what, const void* data, size_t size, ProtobufCMessage** out) {
  const uint8_t* bytes = data;
  if (size == 0) return weft_error(INVALID_INPUT, "%s: the file is empty, expected %s", path, what);
  switch (check_nesting(descriptor, (wire_t){bytes, bytes + size}, 0)) {
  case NESTING_BROKEN:
    return weft_error(INVALID_INPUT, "%s: not %s, or truncated: its %zu bytes end inside of a field", path, what, size);
  case NESTING_TOO_DEEP:
    return weft_error(INVALID_INPUT, "%s: messages are nested deeper than %d levels", path, MAX_NESTING);
  case NESTING_FINE:
    break;
  }
  ProtobufCAllocator allocator = weft_onnx_proto_allocator(arena);
  *out = protobuf_c_message_unpack(descriptor, &allocator, size, data);
  if (!*out) return weft_error(INVALID_INPUT, "%s: not %s: protobuf cannot decode it", path, what);
  return weft_ok();
}

// --- Elements

static const char* name_of(const Onnx__TensorProto* proto) {
  return proto->name ? proto->name : "";
}

#define TENSOR_ERROR(proto, code, format, ...)                                                                         \
  weft_error(code, "tensor '%s': " format, name_of(proto) __VA_OPT__(, ) __VA_ARGS__)

static weft_status_t shape_of(const Onnx__TensorProto* proto, weft_onnx_shape_t* shape, int64_t* out_count) {
  if (proto->n_dims > WEFT_ONNX_MAX_RANK)
    return TENSOR_ERROR(proto, UNSUPPORTED, "it has %zu dimensions, at most %d are supported", proto->n_dims,
                        WEFT_ONNX_MAX_RANK);
  *shape = weft_onnx_shape_make((int32_t)proto->n_dims, proto->dims);
  if (!weft_onnx_shape_count(shape, out_count))
    return TENSOR_ERROR(proto, INVALID_INPUT, "shape %s is negative or too large", weft_onnx_shape_format(shape).text);
  return weft_ok();
}

// Where a dtype's elements are when they are not raw: a repeated field of wider elements.
typedef struct typed_field_t {
  const void* data;
  size_t count, width;
} typed_field_t;

static typed_field_t typed_field(const Onnx__TensorProto* proto, weft_dtype_e dtype) {
  switch (dtype) {
  case WEFT_DTYPE_F32:
    return (typed_field_t){proto->float_data, proto->n_float_data, 4};
  case WEFT_DTYPE_F64:
    return (typed_field_t){proto->double_data, proto->n_double_data, 8};
  case WEFT_DTYPE_I64:
    return (typed_field_t){proto->int64_data, proto->n_int64_data, 8};
  case WEFT_DTYPE_U64:
  case WEFT_DTYPE_U32:
    return (typed_field_t){proto->uint64_data, proto->n_uint64_data, 8};
  default:
    return (typed_field_t){proto->int32_data, proto->n_int32_data, 4}; // narrow types: their bits
  }
}

static weft_status_t read_typed(weft_arena_t* arena, const Onnx__TensorProto* proto, weft_onnx_value_t* value,
                                int64_t count) {
  typed_field_t field = typed_field(proto, value->dtype);
  size_t width = weft_dtype_size(value->dtype);
  if (field.count != (size_t)count)
    return TENSOR_ERROR(proto, INVALID_INPUT, "shape %s needs %lld elements, got %zu",
                        weft_onnx_shape_format(&value->shape).text, (long long)count, field.count);
  if (field.width == width && field.data) {
    value->data = field.data;
    return weft_ok();
  }
  uint8_t* data;
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, (size_t)count + 1, width, (void**)&data));
  for (size_t i = 0; i < field.count; ++i) // little-endian: the low bytes are the element
    memcpy(data + i * width, (const uint8_t*)field.data + i * field.width, width);
  value->data = data;
  return weft_ok();
}

// Bits that an element has in a file, where that are not those of its dtype.
static int32_t packed_bits(const weft_onnx_value_t* value) {
  return value->minifloat ? weft_onnx_minifloat_bits(value->minifloat) : value->bits;
}

// Elements of 2 and 4 bits share bytes, the first in the low bits.
static weft_status_t unpack(weft_arena_t* arena, weft_onnx_value_t* value, const uint8_t* packed, int64_t count) {
  uint8_t* data;
  int32_t bits = packed_bits(value), each = 8 / bits;
  size_t width = weft_dtype_size(value->dtype);
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, (size_t)count + 1, width, (void**)&data));
  for (int64_t i = 0; i < count; ++i) {
    uint32_t number = (uint32_t)packed[i / each] >> (i % each * bits) & ((1u << bits) - 1);
    if (value->minifloat) {
      weft_dtype_store(value->dtype, weft_onnx_minifloat_decode(value->minifloat, (uint8_t)number),
                       data + (size_t)i * width);
      continue;
    }
    bool is_negative = value->dtype == WEFT_DTYPE_I8 && number >> (bits - 1);
    data[i] = (uint8_t)(is_negative ? number | ~0u << bits : number);
  }
  value->data = data;
  return weft_ok();
}

static weft_status_t read_packed(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                 weft_onnx_value_t* value, int64_t count) {
  size_t needed = (size_t)weft_ceil_div(count * packed_bits(value), 8), given = proto->raw_data.len;
  const void* packed = proto->raw_data.data;
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    WEFT_RETURN_IF_ERROR(weft_onnx_read_external(arena, folder, proto, needed, &packed));
    given = needed;
  } else if (!proto->has_raw_data) { // a byte in each int32
    uint8_t* bytes;
    given = proto->n_int32_data;
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, given + 1, 1, (void**)&bytes));
    for (size_t i = 0; i < given; ++i) bytes[i] = (uint8_t)proto->int32_data[i];
    packed = bytes;
  }
  if (given != needed)
    return TENSOR_ERROR(proto, INVALID_INPUT, "shape %s of %d-bit elements needs %zu bytes, got %zu",
                        weft_onnx_shape_format(&value->shape).text, (int)packed_bits(value), needed, given);
  return unpack(arena, value, packed, count);
}

static weft_status_t read_bytes(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                weft_onnx_value_t* value, int64_t count) {
  size_t width = weft_dtype_size(value->dtype), needed = (size_t)count * width;
  if (packed_bits(value)) return read_packed(arena, folder, proto, value, count);
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return weft_onnx_read_external(arena, folder, proto, needed, &value->data);
  if (!proto->has_raw_data) return read_typed(arena, proto, value, count);
  if (proto->raw_data.len != needed)
    return TENSOR_ERROR(proto, INVALID_INPUT, "shape %s of %s needs %zu bytes, got %zu",
                        weft_onnx_shape_format(&value->shape).text, weft_dtype_name(value->dtype), needed,
                        proto->raw_data.len);
  value->data = proto->raw_data.data;
  if (needed == 0) return weft_arena_allocate(arena, 1, width, (void**)&value->data);
  return weft_ok();
}

weft_status_t weft_onnx_read_tensor_proto(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                          weft_onnx_value_t** out) {
  int64_t count;
  weft_onnx_value_t* value;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, 1, &value));
  if (!weft_onnx_dtype(proto->data_type, &value->dtype))
    return TENSOR_ERROR(proto, UNSUPPORTED, "element type %d (%s) is not supported", (int)proto->data_type,
                        weft_onnx_dtype_text(proto->data_type));
  value->bits = weft_onnx_bits(proto->data_type);
  value->minifloat = weft_onnx_minifloat(proto->data_type);
  if (proto->segment) return TENSOR_ERROR(proto, UNSUPPORTED, "it is stored in segments");
  WEFT_RETURN_IF_ERROR(shape_of(proto, &value->shape, &count));
  WEFT_RETURN_IF_ERROR(read_bytes(arena, folder, proto, value, count));
  value->name = proto->name;
  *out = value;
  return weft_ok();
}
