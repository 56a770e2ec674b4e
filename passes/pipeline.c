#include "passes/form_kernels.h"
#include "passes/narrow.h"
#include "passes/passes.h"
#include "passes/quantize.h"

// name, function, description
#define WEFT_PASSES(X)                                                                                                 \
  X("weft-generalize", weft_pass_generalize, "turn named linalg ops into linalg.generic")                              \
  X("weft-quantize", weft_pass_quantize, "turn quantised real numbers into integers, with one scale behind each sum")  \
  X("weft-narrow-f16", weft_pass_narrow_f16, "multiply in f16, sum in f32")                                            \
  X("weft-narrow-bf16", weft_pass_narrow_bf16, "multiply in bf16, sum in f32")                                         \
  X("weft-form-kernels", weft_pass_form_kernels, "cluster the computation of main into weft.kernel ops")

static const weft_tensor_pass_t table[] = {
#define X(name, function, description) {name, description, function},
    WEFT_PASSES(X)
#undef X
};
enum { PASS_COUNT = sizeof(table) / sizeof(table[0]) };

weft_status_t weft_passes_register(weft_tensor_context_t* context) {
  weft_tensor_register_passes(context, table, PASS_COUNT);
  return weft_ok();
}

// No elementwise fusion from upstream: it would move a producer into a convolution's window and calculate it once for
// every position that looks at it. Kernels fuse by sharing tiles instead. Unit extents stay too: kernels skip them by
// themselves, and folding them would put reshapes between ops.
#define BEGINNING "builtin.module(canonicalize,cse,weft-generalize,canonicalize,cse,weft-quantize,canonicalize,cse,"
#define END "weft-form-kernels,canonicalize,cse)"
const char* weft_passes_default_pipeline(void) {
  return BEGINNING END;
}

const char* weft_passes_pipeline_for(weft_dtype_e products) {
  switch (products) {
  case WEFT_DTYPE_F32:
    return weft_passes_default_pipeline();
  case WEFT_DTYPE_F16:
    return BEGINNING "weft-narrow-f16,canonicalize,cse," END;
  case WEFT_DTYPE_BF16:
    return BEGINNING "weft-narrow-bf16,canonicalize,cse," END;
  default:
    return NULL;
  }
}

weft_status_t weft_passes_print(weft_text_t* text) {
  for (int32_t i = 0; i < PASS_COUNT; ++i)
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%-24s %s\n", table[i].name, table[i].description));
  return weft_ok();
}
