// Element types: MLIR's integers are signless, so an unsigned dtype maps to the signless type of its width and an
// integer type comes back signed. Signedness lives in the arith ops.
#include <mlir-c/BuiltinTypes.h>

#include "ir/tensor/tensor.h"

bool weft_tensor_dtype(MlirType element_type, weft_dtype_e* out_dtype) {
  if (mlirTypeIsAF32(element_type)) return *out_dtype = WEFT_DTYPE_F32, true;
  if (mlirTypeIsAF16(element_type)) return *out_dtype = WEFT_DTYPE_F16, true;
  if (mlirTypeIsABF16(element_type)) return *out_dtype = WEFT_DTYPE_BF16, true;
  if (mlirTypeIsAF64(element_type)) return *out_dtype = WEFT_DTYPE_F64, true;
  if (mlirTypeIsAFloat8E4M3FN(element_type)) return *out_dtype = WEFT_DTYPE_F8E4M3FN, true;
  if (mlirTypeIsAFloat8E5M2(element_type)) return *out_dtype = WEFT_DTYPE_F8E5M2, true;
  if (!mlirTypeIsAInteger(element_type)) return false;
  switch (mlirIntegerTypeGetWidth(element_type)) {
  case 1:
    return *out_dtype = WEFT_DTYPE_BOOL, true;
  case 8:
    return *out_dtype = WEFT_DTYPE_I8, true;
  case 16:
    return *out_dtype = WEFT_DTYPE_I16, true;
  case 32:
    return *out_dtype = WEFT_DTYPE_I32, true;
  case 64:
    return *out_dtype = WEFT_DTYPE_I64, true;
  default:
    return false;
  }
}

MlirType weft_tensor_type(MlirContext context, weft_dtype_e dtype) {
  switch (dtype) {
  case WEFT_DTYPE_F32:
    return mlirF32TypeGet(context);
  case WEFT_DTYPE_F16:
    return mlirF16TypeGet(context);
  case WEFT_DTYPE_BF16:
    return mlirBF16TypeGet(context);
  case WEFT_DTYPE_F64:
    return mlirF64TypeGet(context);
  case WEFT_DTYPE_F8E4M3FN:
    return mlirFloat8E4M3FNTypeGet(context);
  case WEFT_DTYPE_F8E5M2:
    return mlirFloat8E5M2TypeGet(context);
  case WEFT_DTYPE_BOOL:
    return mlirIntegerTypeGet(context, 1);
  default:
    return mlirIntegerTypeGet(context, (unsigned)weft_dtype_size(dtype) * 8);
  }
}
