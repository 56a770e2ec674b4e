#include "ir/fabric/text_form.h"

#include "base/checked.h"

const char* const weft_stage_names[WEFT_STAGE_COUNT] = {"kernels", "placed", "routed"};
const char* const weft_tensor_kind_names[3] = {"input", "constant", "result"};
const char* const weft_dim_kind_names[4] = {"parallel", "reduction", "internal", "sequential"};
const char* const weft_buffer_kind_names[3] = {"operand", "temporary", "result"};
const char* const weft_stream_kind_names[2] = {"data", "chain"};

weft_status_t weft_text_form_constants_path(weft_allocator_t allocator, const char* path, char** out_path) {
  weft_text_t text;
  weft_text_initialize(allocator, &text);
  weft_status_t status = weft_text_printf(&text, "%s.bin", path);
  if (status) weft_text_deinitialize(&text);
  *out_path = text.data;
  return status;
}

weft_status_t weft_text_form_tensor_bytes(const weft_tensor_t* tensor, size_t* out_bytes) {
  size_t bytes = weft_dtype_size(tensor->dtype);
  for (int32_t i = 0; i < tensor->shape.rank; ++i)
    if (tensor->shape.extent[i] < 0 || !weft_checked_mul(bytes, (size_t)tensor->shape.extent[i], &bytes) ||
        bytes > INT64_MAX / WEFT_TEXT_FORM_ALIGNMENT)
      return weft_error(INVALID_INPUT, "tensor '%s' has more elements than any memory", tensor->name);
  *out_bytes = bytes;
  return weft_ok();
}
