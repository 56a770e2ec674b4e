// The parts of weft_fabric_verify; private to the files verify*.c. Each says what is wrong, its caller adds where.
#pragma once
#include "ir/fabric/fabric.h"

// Sizes, coordinates and numbers of elements: small enough to be added and multiplied by an element's size in 64 bits.
#define WEFT_VERIFY_MOST ((int64_t)1 << 48)

bool weft_verify_product(int64_t factor, int64_t* inout_product); // false: negative, or beyond WEFT_VERIFY_MOST
weft_status_t weft_verify_shape(const weft_shape_t* shape);
int64_t weft_verify_elements(const weft_shape_t* shape); // of a verified shape
weft_status_t weft_verify_index(const char* what, int64_t index, int64_t count);
weft_status_t weft_verify_array(const char* what, int64_t count, const void* data);
// What assembles an operand of `kernel` (kernel_count: an output): tensors from before it, verified ones, or one that the
// kernel makes itself and gets back.
weft_status_t weft_verify_pieces(const weft_fabric_t* fabric, int32_t count, const weft_piece_t* piece, int32_t rank,
                                 weft_dtype_e dtype, int32_t kernel);
weft_status_t weft_verify_kernel(const weft_fabric_t* fabric, int32_t index);               // tensors are verified
weft_status_t weft_verify_stream(const weft_fabric_t* fabric, const weft_stream_t* stream); // all else is verified
