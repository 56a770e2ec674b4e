// The instruction set: tensor instructions over loop nests, asynchronous sends and receives, reduce chains. The host is
// one more tile with the same ISA. Shared by compiler, disassembler and simulator; docs/isa.md has the prose.
//
// A program is an array of 32-bit little-endian words. The first word of an instruction is
//   bits 0-7 opcode, 8-15 operation (weft_op_e, TENSOR and CHAIN), 16-23 dtype, 24-31 flags;
// the second its length in words and the number of loops: bits 0-15 length, 16-23 loops, 24-31 destination dtype
// (TENSOR). Addresses, strides in memory and step strides are bytes; extents, steps and bounds are elements. All words
// are signed.
#pragma once
#include "base/allocator.h"
#include "base/text.h"
#include "machine/op.h"

enum {
  WEFT_ISA_MAX_LOOPS = 12,
  WEFT_ISA_MAX_LEVELS = 16,
  WEFT_ISA_MAX_FACTORS = 12,
  WEFT_ISA_MAX_RANK = 8,
  WEFT_ISA_MAX_DEPTH = 64 // places of a ring
};

// name, mnemonic, what it does
#define WEFT_OPCODES(X)                                                                                                \
  X(HALT, "halt", "the tile is done")                                                                                  \
  X(TENSOR, "tensor", "dst = op(sources) over a loop nest; the mnemonic is the operation's")                           \
  X(SEND, "send", "posts an asynchronous send of a loop nest on a colour")                                             \
  X(RECV, "recv", "posts an asynchronous receive on a colour: walk, view, filter, store")                              \
  X(CHAIN, "chain", "out-stream <- op(in-stream, memory) over a loop nest; without an out colour memory <- the same")  \
  X(WAIT_SEND, "wait.send", "until the send posted on a colour has left memory")                                       \
  X(WAIT_RECV, "wait.recv", "until the oldest receive posted on a colour and not yet waited for is complete")          \
  X(STEPS, "steps", "starts the body that runs once for each input of the run")                                        \
  X(END_STEPS, "end.steps", "ends that body")                                                                          \
  X(AGAIN, "again.recv", "posts the last RECV of a colour again, into the next place of its ring")                     \
  X(LOOP, "loop", "starts a body that runs `trips` times in each step; inside STEPS, not nested")                      \
  X(END_LOOP, "end.loop", "ends that body")

typedef enum weft_opcode_e {
#define X(name, mnemonic, text) WEFT_OPCODE_##name,
  WEFT_OPCODES(X)
#undef X
      WEFT_OPCODE_COUNT
} weft_opcode_e;

enum {
  WEFT_ISA_FLAG_IMMEDIATE0 = 1, // TENSOR: source i is the immediate in its address word: the bit pattern of an f32 for
  WEFT_ISA_FLAG_IMMEDIATE1 = 2, //   float dtypes, a 32-bit integer for the others
  WEFT_ISA_FLAG_IMMEDIATE2 = 4,
  WEFT_ISA_FLAG_REPEAT = 8,  // SEND, RECV: once posted, repeats for every step of the run, the base advancing by
                             //   step_stride each time; complete after the last
  WEFT_ISA_FLAG_RING = 16,   // TENSOR, SEND, RECV, CHAIN: each base is the first place of a ring of buffers
  WEFT_ISA_FLAG_ADVANCE = 32 // TENSOR, inside LOOP: each base moves on by so many bytes from trip to trip
};

// In step k (counted from 0 inside STEPS; 0 outside) an operand with a ring is at base + k % depth * stride. A RECV
// counts the receives on its colour instead, so that those that are posted ahead know their places.
typedef struct weft_isa_ring_t {
  int32_t stride; // bytes
  int32_t depth;  // 1 .. WEFT_ISA_MAX_DEPTH; 1: no ring
} weft_isa_ring_t;

typedef struct weft_isa_loop_t {
  int32_t extent;
  int32_t stride[4]; // TENSOR: dst, sources; SEND and CHAIN: [0]
} weft_isa_loop_t;

// The decoded form of any instruction. Word order after the two header words:
//   TENSOR  base of dst and each source; then per loop: extent, stride of dst and each source (immediates have none:
//           their stride word is 0)
//   SEND    colour, base, step_stride; per loop: extent, stride
//   RECV    colour, base, step_stride, counts (levels | tensor rank << 8 | factors << 16 | operand rank << 24);
//           per level: extent, dim, step; per tensor dim: box lo, box hi, row-major stride in elements;
//           per factor: extent, lo, hi, dim, step; per operand dim: offset, filter lo, filter hi, stride (bytes).
//           The element at walk coordinates c (inside the box) has flat index L = sum c * stride; the factors write L
//           in mixed radix (view.h); inside the factors' bounds its operand coordinate k must lie in the filter; it is
//           stored at base + sum (k - filter lo) * stride.
//   CHAIN   in colour, out colour or -1, base; per loop: extent, stride
//   WAIT_*, AGAIN  colour
//   LOOP    trips
// With RING, stride and depth of the ring of each base come right before the loops, or RECV's levels; 0 1 for an
// immediate or a buffer that is no ring. With ADVANCE, the bytes that each base moves on by come after that; 0 for an
// immediate.
// A wavelet that the filter does not take is dropped at the ramp and costs the core nothing.
typedef struct weft_instruction_t {
  weft_opcode_e opcode;
  weft_op_e op;
  weft_dtype_e dtype, destination_dtype;
  uint8_t flags;
  int32_t length; // words
  int32_t colour, out_colour;
  int32_t base[4];
  weft_isa_ring_t ring[4]; // RING
  int32_t advance[4];      // ADVANCE
  int32_t trips;           // LOOP
  int32_t step_stride;
  int32_t loop_count;
  weft_isa_loop_t loop[WEFT_ISA_MAX_LOOPS];
  int32_t level_count, tensor_rank, factor_count, operand_rank;
  struct {
    int32_t extent, dim, step;
  } level[WEFT_ISA_MAX_LEVELS];
  struct {
    int32_t lo, hi, stride;
  } tensor_dim[WEFT_ISA_MAX_RANK];
  struct {
    int32_t extent, lo, hi, dim, step;
  } factor[WEFT_ISA_MAX_FACTORS];
  struct {
    int32_t offset, lo, hi, stride;
  } operand_dim[WEFT_ISA_MAX_RANK];
} weft_instruction_t;

// Appends the instruction's words to an array of `capacity` words; *count grows by the instruction's length.
weft_status_t weft_isa_encode(const weft_instruction_t* instruction, uint32_t* words, size_t capacity, size_t* count);
// Decodes the instruction at words[0..count). INVALID_INPUT for anything malformed (opcode, dtype, counts, length):
// never reads past count, never trusts a field. Elements of arrays beyond the instruction's counts are left as they
// are.
weft_status_t weft_isa_decode(const uint32_t* words, size_t count, weft_instruction_t* out_instruction);
int32_t weft_isa_length(const weft_instruction_t* instruction); // words it will take
// Where a decoded instruction keeps its word `word`: byte offset of an int32_t, or -1 where a word holds several fields
// (the header, and RECV's counts).
int32_t weft_isa_word_offset(const weft_instruction_t* instruction, int32_t word);
// Where operand `operand` begins in step `step`, in the first trip of a loop.
int64_t weft_isa_address(const weft_instruction_t* instruction, int32_t operand, int64_t step);
const char* weft_opcode_mnemonic(weft_opcode_e opcode);

// Text, one instruction a line; assembling it gives the same words. A parameter (see image.h) is printed as %N.
weft_status_t weft_isa_disassemble(const uint32_t* words, size_t count, const int32_t* parameter_at, weft_text_t* text);
weft_status_t weft_isa_assemble(weft_allocator_t allocator, const char* text, uint32_t** out_words, size_t* out_count,
                                int32_t** out_parameter_at);
