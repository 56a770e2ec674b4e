// The text form of the fabric IR, shared by its writer and its reader. White space and `# comments` separate; nothing
// else depends on lines. By example, one line of each kind:
//
//   weft.fabric 1                                   format version
//   stage routed                                    kernels | placed | routed
//   seed 7
//   model "mlp" <64 hex digits>                     names are quoted: \" \\ \xNN
//   machine <64 hex digits>
//   defects <64 hex digits>
//   constants 401408                                bytes of PATH.bin; 0: there is none
//   tensors 3
//   tensor 0 "x" input f32 [1, 784]
//   tensor 1 "w" constant f32 [784, 128] at 0 <64 hex digits>      offset in PATH.bin, digest of the bytes
//   tensor 2 "y" result f32 [1, 128] of 0 2                        kernel, buffer
//   inputs [0]
//   kernels 1
//   kernel 0 "fc1" nodes "fc1 relu1"
//     dims [parallel 1, parallel 128, reduction 784]
//     buffers 3
//     buffer 0 operand "x" f32 [d0, 2*d2 - 1] fill 0 pieces 1      the index map; fill none: no padding
//       piece 0 view [784 in 0..784 to 1 by 1] at [0, 0]           tensor; factors (extent, lo..hi, dim or none, step);
//       offsets
//     buffer .. fill 0 spare 2 pieces 1                           placed and later; none: not written
//     buffer 1 temporary "t" f32 [d0, d1]
//     buffer 2 result "y" f32 [d0, d1] tensor 2
//     operations 1
//     operation b2 = mla f32 (b0, b1) over [d0, d1, d2]            a number in place of a buffer is an immediate
//     reduce 0 add                                                 operation and combiner; or `reduce none`
//     alternatives 1
//     alternative y [d1/14] x [d2/7] grid 14 7 cycles 812 chain 40 stream 128 step 790 doubled bytes 9000
//     chosen 0 region 0 0 7 14 upright                             placed and later; x y width height; or `transposed`
//     tiles [0..6, 13..7, 20]                                      placed and later; of the logical tiles in order
//   outputs 1
//   output 0 "y" f32 [1, 128] fill none pieces 1                   followed by its pieces
//   streams 2                                                      placed and later
//   stream 0 data f32 tensor 0 from host to 0 buffer 0 piece 0     kernels by index
//     walk [] [784 of 1 by 1] box [0..1, 0..784]                   levels over sources, levels in a segment: extent,
//     dim, step sources [0: 784]                                             logical tiles: elements of each sinks
//     [0..97: 112] elements 784 wavelets 784 ports 0 none                                                 routed
//     entries 2                                                    routed; tile, colour, switch, outputs with next
//     colour
//     @13:2 [W] -> [E 5, RAMP 2]
//   stream 1 chain f32 from 0 to 0                                 without a walk
//     ...
#pragma once
#include "ir/fabric/fabric.h"

#define WEFT_TEXT_FORM_MAGIC "weft.fabric"

// Words of the enums, in their order.
extern const char* const weft_stage_names[WEFT_STAGE_COUNT];
extern const char* const weft_tensor_kind_names[3];
extern const char* const weft_dim_kind_names[4];
extern const char* const weft_buffer_kind_names[3];
extern const char* const weft_stream_kind_names[2];

// The name of the constants' file beside `path`; freed by the caller.
weft_status_t weft_text_form_constants_path(weft_allocator_t allocator, const char* path, char** out_path);
// Bytes of a tensor; INVALID_INPUT when they are beyond any memory.
weft_status_t weft_text_form_tensor_bytes(const weft_tensor_t* tensor, size_t* out_bytes);
enum { WEFT_TEXT_FORM_ALIGNMENT = 8 }; // of constants in PATH.bin
