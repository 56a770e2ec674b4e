// The bytes behind a constant. MLIR's C API hands out the raw data of dense constants, but a resource blob only element
// by element, through accessors by element width.
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

#include "base/checked.h"
#include "ir/tensor/tensor.h"

static bool shape_of(MlirAttribute constant, weft_dtype_e* out_dtype, int64_t* out_elements) {
  MlirType type = mlirAttributeGetType(constant);
  if (!mlirTypeIsAShaped(type) || !mlirShapedTypeHasStaticShape(type)) return false;
  if (!weft_tensor_dtype(mlirShapedTypeGetElementType(type), out_dtype)) return false;
  int64_t elements = 1;
  for (int64_t d = 0; d < mlirShapedTypeGetRank(type); ++d)
    if (!weft_checked_mul(elements, mlirShapedTypeGetDimSize(type, d), &elements)) return false;
  *out_elements = elements;
  return true;
}

// One element, as bits. The accessors of unsigned integers read any element type of their width.
static uint64_t resource_bits(MlirAttribute constant, size_t width, intptr_t i) {
  switch (width) {
  case 1:
    return mlirDenseUInt8ResourceElementsAttrGetValue(constant, i);
  case 2:
    return mlirDenseUInt16ResourceElementsAttrGetValue(constant, i);
  case 4:
    return mlirDenseUInt32ResourceElementsAttrGetValue(constant, i);
  default:
    return mlirDenseUInt64ResourceElementsAttrGetValue(constant, i);
  }
}

static void copy_resource(MlirAttribute constant, size_t width, int64_t elements, uint8_t* target) {
  // Eight bytes at a time, whatever the element: a network's weights are read once, and this is 8 times fewer calls.
  size_t size = (size_t)elements * width, wide = size / 8;
  for (size_t i = 0; i < wide; ++i) {
    uint64_t bits = resource_bits(constant, 8, (intptr_t)i);
    memcpy(target + 8 * i, &bits, 8);
  }
  for (size_t i = 8 * wide / width; i < (size_t)elements; ++i) {
    uint64_t bits = resource_bits(constant, width, (intptr_t)i);
    memcpy(target + width * i, &bits, width);
  }
}

weft_status_t weft_tensor_constant_bytes(weft_allocator_t allocator, MlirAttribute constant, void** out_data,
                                         size_t* out_size) {
  weft_dtype_e dtype;
  int64_t elements;
  if (!shape_of(constant, &dtype, &elements))
    return weft_error(UNSUPPORTED, "a constant is not a static tensor of a known element type");
  size_t width = weft_dtype_size(dtype), size;
  if (!weft_checked_mul((size_t)elements, width, &size))
    return weft_error(INVALID_INPUT, "a constant of %lld elements is too large", (long long)elements);
  uint8_t* data = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, size ? size : 1, 1, (void**)&data));
  if (mlirAttributeIsADenseResourceElements(constant)) {
    copy_resource(constant, width, elements, data);
  } else if (mlirAttributeIsADenseElements(constant)) {
    bool splat = mlirDenseElementsAttrIsSplat(constant);
    if (dtype == WEFT_DTYPE_BOOL) { // stored packed
      for (int64_t i = 0; i < elements; ++i) data[i] = mlirDenseElementsAttrGetBoolValue(constant, i);
    } else {
      const uint8_t* raw = mlirDenseElementsAttrGetRawData(constant);
      if (!splat)
        memcpy(data, raw, size);
      else
        for (int64_t i = 0; i < elements; ++i) memcpy(data + width * (size_t)i, raw, width);
    }
  } else {
    weft_allocator_free(allocator, data);
    return weft_error(UNSUPPORTED, "a constant is neither dense nor a dense resource");
  }
  *out_data = data;
  *out_size = size;
  return weft_ok();
}

bool weft_tensor_constant_splat(MlirAttribute constant, double* out_value) {
  weft_dtype_e dtype;
  int64_t elements;
  if (mlirAttributeIsAFloat(constant)) return *out_value = mlirFloatAttrGetValueDouble(constant), true;
  if (mlirAttributeIsAInteger(constant)) {
    MlirType type = mlirAttributeGetType(constant);
    bool boolean = mlirTypeIsAInteger(type) && mlirIntegerTypeGetWidth(type) == 1;
    *out_value = boolean ? mlirIntegerAttrGetValueInt(constant) != 0 : (double)mlirIntegerAttrGetValueInt(constant);
    return true;
  }
  if (!shape_of(constant, &dtype, &elements) || elements < 1) return false;
  if (mlirAttributeIsADenseElements(constant)) {
    if (!mlirDenseElementsAttrIsSplat(constant)) return false;
    if (dtype == WEFT_DTYPE_BOOL)
      *out_value = mlirDenseElementsAttrGetBoolValue(constant, 0);
    else
      *out_value = weft_dtype_load(dtype, mlirDenseElementsAttrGetRawData(constant));
    return true;
  }
  if (mlirAttributeIsADenseResourceElements(constant) && elements == 1) {
    uint64_t bits = resource_bits(constant, weft_dtype_size(dtype), 0);
    *out_value = weft_dtype_load(dtype, &bits);
    return true;
  }
  return false;
}
