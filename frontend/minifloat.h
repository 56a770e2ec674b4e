// Floats of few bits that no tile has: they are kept in a wider type that holds all of them, and only what makes them
// (a cast, a quantisation, a file) knows.
#pragma once
#include "frontend/emit.h"

// The element with these bits, of 8 or fewer.
double weft_onnx_minifloat_decode(weft_onnx_minifloat_e format, uint8_t bits);
int32_t weft_onnx_minifloat_bits(weft_onnx_minifloat_e format); // 4 or 8
double weft_onnx_minifloat_highest(weft_onnx_minifloat_e format);
// To the nearest number of the format, in the type that keeps it. Attributes `saturate` and `round_mode` of the node
// say what becomes of larger ones and, for powers of two, of those in between.
weft_status_t weft_onnx_minifloat_round(node_t* node, value_t* value, weft_onnx_minifloat_e format, value_t** out);
