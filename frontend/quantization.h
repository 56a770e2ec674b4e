// Between numbers and their quantised form, (number / scale) + zero point.
#pragma once
#include "frontend/emit.h"

// One element: rank 0. Others, and NULL, stay.
weft_status_t weft_onnx_as_scalar(node_t* node, value_t* value, value_t** out);
// Scale and zero point broadcast against the value; `zero` may be NULL. Numbers are f32.
weft_status_t weft_onnx_dequantize(node_t* node, value_t* value, value_t* scale, value_t* zero, value_t** out);
// In the zero point's type.
weft_status_t weft_onnx_quantize(node_t* node, value_t* value, value_t* scale, value_t* zero, value_t** out);
// To u8, with the scale and zero point that the values ask for.
weft_status_t weft_onnx_quantize_dynamically(node_t* node, value_t* value, value_t** out, value_t** out_scale,
                                             value_t** out_zero);
