// TensorProto -> elements in memory.
#pragma once
#include "base/arena.h"
#include "frontend/value.h"
#include "onnx.pb-c.h"

// ONNX's numbering of element types, which is newer than what onnx.proto may name. False: no such dtype here.
bool weft_onnx_dtype(int64_t data_type, weft_dtype_e* out_dtype);
int32_t weft_onnx_bits(int64_t data_type); // of those narrower than their dtype; 0: of the others
weft_onnx_minifloat_e weft_onnx_minifloat(int64_t data_type);
// The lowest and highest integer of a type with so many bits (0: all); -inf and +inf for floats.
void weft_onnx_range(weft_dtype_e dtype, int32_t bits, double* out_lowest, double* out_highest);
const char* weft_onnx_dtype_text(int64_t data_type); // also of those that are not supported
int32_t weft_onnx_data_type(weft_dtype_e dtype);

// The value of a tensor. raw_data is not copied: the message has to outlive the value. `folder`: where external data is
// looked for. Errors name the tensor.
weft_status_t weft_onnx_read_tensor_proto(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                          weft_onnx_value_t** out);
// A file of external data, as the importer hands it out: `location` relative to `folder`, never outside of it.
weft_status_t weft_onnx_read_external(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                      size_t size, const void** out_data);
// protobuf-c's allocations from an arena: a message lives as long as it.
ProtobufCAllocator weft_onnx_proto_allocator(weft_arena_t* arena);
// Unpacks a message after a check of its nesting, so that no file can exhaust the stack. Errors: `what` says which
// message was expected in `path`.
weft_status_t weft_onnx_unpack(weft_arena_t* arena, const ProtobufCMessageDescriptor* descriptor, const char* path,
                               const char* what, const void* data, size_t size, ProtobufCMessage** out);
