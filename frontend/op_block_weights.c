// Products with weights of few bits, in blocks along the reduction that have a scale each. The weights are constants,
// and become numbers while importing.
#include "base/checked.h"
#include "frontend/operators.h"

typedef struct blocks_t {
  int64_t rows, columns, block, bits, per_row; // columns: of the weights as they are stored, K
  const value_t *data, *scale, *zero;
} blocks_t;

static weft_status_t read_size(node_t* node, const char* name, int64_t* out) {
  TRY(weft_onnx_attribute_int(node, name, 0, out));
  NODE_REQUIRE(node, *out > 0 && *out < 1 << 28, INVALID_INPUT, "%s is %lld", name, (long long)*out);
  return weft_ok();
}

static weft_status_t require_constant(node_t* node, const value_t* value, const char* name, weft_dtype_e dtype,
                                      int64_t count) {
  NODE_REQUIRE(node, value->data, UNSUPPORTED, "%s is known at run time only; Weft needs it to be constant%s", name,
               weft_onnx_bind_hint(node, value));
  NODE_REQUIRE(node, value->dtype == dtype && weft_onnx_count(value) == count, INVALID_INPUT,
               "%s is %s of shape %s, expected %lld of %s", name, weft_dtype_name(value->dtype),
               weft_onnx_shape_format(&value->shape).text, (long long)count, weft_dtype_name(dtype));
  return weft_ok();
}

static weft_status_t read_blocks(node_t* node, blocks_t* blocks) {
  value_t* zero = weft_onnx_input(node, 3);
  *blocks = (blocks_t){.data = node->input[1], .scale = node->input[2], .zero = zero, .bits = 4};
  TRY(read_size(node, "N", &blocks->rows));
  TRY(read_size(node, "K", &blocks->columns));
  TRY(read_size(node, "block_size", &blocks->block));
  TRY(weft_onnx_attribute_int(node, "bits", 4, &blocks->bits));
  NODE_REQUIRE(node, blocks->bits == 2 || blocks->bits == 4 || blocks->bits == 8, UNSUPPORTED,
               "weights of %lld bits are not supported, 2, 4 and 8 are", (long long)blocks->bits);
  NODE_REQUIRE(node, blocks->block * blocks->bits % 8 == 0, INVALID_INPUT, "a block has %lld weights of %lld bits",
               (long long)blocks->block, (long long)blocks->bits);
  blocks->per_row = weft_ceil_div(blocks->columns, blocks->block);
  int64_t count = blocks->rows * blocks->per_row,
          zeros = blocks->rows * weft_ceil_div(blocks->per_row * blocks->bits, 8);
  TRY(require_constant(node, blocks->data, "B", WEFT_DTYPE_U8, count * (blocks->block * blocks->bits / 8)));
  TRY(require_constant(node, blocks->scale, "scales", node->input[0]->dtype, count));
  if (!zero) return weft_ok();
  bool is_packed = zero->dtype == WEFT_DTYPE_U8;
  return require_constant(node, zero, "zero_points", is_packed ? WEFT_DTYPE_U8 : blocks->scale->dtype,
                          is_packed ? zeros : count);
}

// The index-th number of `bits` bits in bytes, the low bits first.
static double unpack(const uint8_t* data, int64_t index, int64_t bits) {
  int64_t at = index * bits;
  return (double)(data[at / 8] >> at % 8 & ((1 << bits) - 1));
}

static double zero_of(const blocks_t* blocks, int64_t row, int64_t block) {
  if (!blocks->zero) return (double)(1 << (blocks->bits - 1));
  if (blocks->zero->dtype == WEFT_DTYPE_U8)
    return unpack((const uint8_t*)blocks->zero->data + row * weft_ceil_div(blocks->per_row * blocks->bits, 8), block,
                  blocks->bits);
  size_t size = weft_dtype_size(blocks->zero->dtype);
  return weft_dtype_load(blocks->zero->dtype,
                         (const uint8_t*)blocks->zero->data + (size_t)(row * blocks->per_row + block) * size);
}

// [columns, rows], as a product takes them.
static weft_status_t unpacked(node_t* node, const blocks_t* blocks, value_t** out) {
  weft_dtype_e dtype = blocks->scale->dtype;
  size_t size = weft_dtype_size(dtype);
  shape_t shape = {2, {blocks->columns, blocks->rows}};
  int64_t count, row_bytes = blocks->per_row * (blocks->block * blocks->bits / 8);
  uint8_t* data;
  NODE_REQUIRE(node, weft_onnx_shape_count(&shape, &count), INVALID_INPUT, "weights of shape %s are too large",
               weft_onnx_shape_format(&shape).text);
  TRY(weft_arena_allocate(node->builder->arena, (size_t)count + 1, size, (void**)&data));
  for (int64_t row = 0; row < blocks->rows; ++row)
    for (int64_t block = 0; block < blocks->per_row; ++block) {
      const uint8_t* from = (const uint8_t*)blocks->data->data + row * row_bytes;
      double zero = zero_of(blocks, row, block);
      double scale =
          weft_dtype_load(dtype, (const uint8_t*)blocks->scale->data + (size_t)(row * blocks->per_row + block) * size);
      int64_t first = block * blocks->block, last = weft_min_i64(first + blocks->block, blocks->columns);
      for (int64_t k = first; k < last; ++k)
        weft_dtype_store(dtype, (unpack(from, k, blocks->bits) - zero) * scale,
                         data + (size_t)(k * blocks->rows + row) * size);
    }
  return weft_onnx_known(node, dtype, &shape, data, out);
}

// A, B, scales, zero points, group indices, bias
static weft_status_t emit_matmul_nbits(node_t* node) {
  blocks_t blocks;
  value_t *weights, *bias = weft_onnx_input(node, 5), *a = node->input[0];
  NODE_REQUIRE(node, !weft_onnx_input(node, 4), UNSUPPORTED, "g_idx is not supported");
  NODE_REQUIRE(node, node->input[1] && node->input[2], INVALID_INPUT, "B and scales are missing");
  TRY(read_blocks(node, &blocks));
  TRY(unpacked(node, &blocks, &weights));
  TRY(weft_onnx_matmul(node, a, weights, &node->output[0]));
  TRY(weft_onnx_cast(node, node->output[0], a->dtype, &node->output[0]));
  return bias ? weft_onnx_binary(node, weft_onnx_body_add, node->output[0], bias, &node->output[0]) : weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("MatMulNBits", 1, 3, 6, 1, emit_matmul_nbits, "constant weights of 2, 4 or 8 bits; no g_idx"), {0}};

const weft_onnx_family_t weft_onnx_family_microsoft_blocks = {"com.microsoft: weights in blocks", operators};
