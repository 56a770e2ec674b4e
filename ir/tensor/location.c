// From a location to the ONNX node that it stands for.
#include "ir/tensor/tensor.h"

// The innermost name: passes wrap locations (fused, call site), and a name may wrap a file position.
static bool find_name(MlirLocation location, MlirLocation* out_named) {
  if (mlirLocationIsAName(location)) return *out_named = location, true;
  if (mlirLocationIsACallSite(location)) return find_name(mlirLocationCallSiteGetCallee(location), out_named);
  if (mlirLocationIsAFused(location)) {
    MlirLocation part[8];
    unsigned count = mlirLocationFusedGetNumLocations(location);
    if (count > sizeof(part) / sizeof(part[0])) return false;
    mlirLocationFusedGetLocations(location, part);
    for (unsigned i = 0; i < count; ++i)
      if (find_name(part[i], out_named)) return true;
  }
  return false;
}

static weft_status_t append(weft_text_t* text, MlirStringRef piece) {
  return weft_text_append(text, piece.data, piece.length);
}

weft_status_t weft_tensor_location_name(MlirLocation location, weft_text_t* text) {
  MlirLocation named;
  if (find_name(location, &named)) return append(text, mlirIdentifierStr(mlirLocationNameGetName(named)));
  if (mlirLocationIsAFileLineColRange(location)) {
    WEFT_RETURN_IF_ERROR(append(text, mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location))));
    return weft_text_printf(text, ":%d:%d", mlirLocationFileLineColRangeGetStartLine(location),
                            mlirLocationFileLineColRangeGetStartColumn(location));
  }
  return weft_text_printf(text, "unknown");
}
