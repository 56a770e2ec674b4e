// TensorProto files: the inputs and outputs of a model.
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "frontend/tensor_proto.h"

weft_status_t weft_frontend_read_tensor(weft_arena_t* arena, const char* path, weft_host_tensor_t* out_tensor) {
  weft_mapping_t mapping;
  Onnx__TensorProto* proto;
  weft_onnx_value_t* value;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  weft_status_t status = weft_onnx_unpack(arena, &onnx__tensor_proto__descriptor, path, "an ONNX tensor", mapping.data,
                                          mapping.size, (ProtobufCMessage**)&proto);
  weft_file_unmap(&mapping);
  WEFT_RETURN_IF_ERROR(status);
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return weft_error(UNSUPPORTED, "%s: its elements are in another file", path);
  status = weft_onnx_read_tensor_proto(arena, ".", proto, &value);
  if (status) return weft_status_annotate(status, "in %s", path);
  *out_tensor = (weft_host_tensor_t){.name = proto->name ? proto->name : "",
                                     .dtype = value->dtype,
                                     .rank = value->shape.rank,
                                     .data = (void*)value->data, // the arena's, so it may be written to
                                     .size = (size_t)weft_onnx_count(value) * weft_dtype_size(value->dtype)};
  memcpy(out_tensor->extent, value->shape.extent, sizeof(out_tensor->extent));
  return weft_ok();
}

weft_status_t weft_frontend_write_tensor(weft_allocator_t allocator, const char* path,
                                         const weft_host_tensor_t* tensor) {
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  int64_t dims[WEFT_ONNX_MAX_RANK];
  memcpy(dims, tensor->extent, sizeof(dims));
  proto.n_dims = (size_t)tensor->rank;
  proto.dims = dims;
  proto.has_data_type = 1;
  proto.data_type = weft_onnx_data_type(tensor->dtype);
  proto.name = (char*)tensor->name;
  proto.has_raw_data = 1;
  proto.raw_data = (ProtobufCBinaryData){tensor->size, tensor->data};
  uint8_t* bytes;
  size_t size = onnx__tensor_proto__get_packed_size(&proto);
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, size + 1, 1, (void**)&bytes));
  onnx__tensor_proto__pack(&proto, bytes);
  weft_status_t status = weft_file_write(allocator, path, bytes, size);
  weft_allocator_free(allocator, bytes);
  return status;
}
