#!/usr/bin/env node
// Writes the cases of this folder: one node of com.microsoft each, random data, and what ONNX Runtime makes of it.
//   npm install --ignore-scripts onnxruntime-node@1.30.0    (ONNXRUNTIME_NODE_INSTALL=skip; in a folder outside)
//   NODE_PATH=that/folder/node_modules node generate.js [OUT]
// The tests need only what it wrote. A case that ONNX Runtime refuses is printed and left out.
'use strict';
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

// --- Protocol buffers

function varint(value) {
  let v = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  do {
    let low = Number(v & 127n);
    v >>= 7n;
    if (v) low |= 128;
    bytes.push(low);
  } while (v);
  return Buffer.from(bytes);
}
const int = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => {
  const data = Buffer.from(value);
  return Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
};
const message = (...parts) => Buffer.concat(parts.flat());
function float(field, value) {
  const data = Buffer.alloc(4);
  data.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), data]);
}

const types = {float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9};
const arrays = {float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array, int64: BigInt64Array,
                bool: Uint8Array};

const tensorProto = (name, tensor) => message(
    tensor.dims.map(d => int(1, d)), int(2, types[tensor.type]), bytes(8, name),
    bytes(9, Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength)));

const valueInfo = (name, tensor) => message(bytes(1, name), tensor ? bytes(2, bytes(1, message(
    int(1, types[tensor.type]), bytes(2, message(tensor.dims.map(d => bytes(1, int(1, d)))))))) : []);

function attribute(name, value) {
  const head = bytes(1, name);
  if (typeof value === 'string') return message(head, bytes(4, value), int(20, 3));
  if (value instanceof Float32Array) return message(head, [...value].map(v => float(7, v)), int(20, 6));
  if (Array.isArray(value)) return message(head, value.map(v => int(8, v)), int(20, 7));
  if (value instanceof Number) return message(head, float(2, value.valueOf()), int(20, 1)); // F(2)
  return message(head, int(3, value), int(20, 2));
}
const F = value => new Number(value);

// Inputs whose names end in '!' are initializers.
function model(op, inputs, outputs, attributes, results) {
  const constants = Object.entries(inputs).filter(([name, t]) => t && name.endsWith('!'));
  const fed = Object.entries(inputs).filter(([name, t]) => t && !name.endsWith('!'));
  const names = Object.entries(inputs).map(([name, t]) => t ? name : '');
  const [domain, type] = op.includes(':') ? op.split(':') : ['com.microsoft', op];
  const node = message(names.map(n => bytes(1, n)), outputs.map(n => bytes(2, n)), bytes(3, 'node'), bytes(4, type),
                       Object.entries(attributes).map(([n, v]) => bytes(5, attribute(n, v))), bytes(7, domain));
  const graph = message(bytes(1, node), bytes(2, 'case'), constants.map(([n, t]) => bytes(5, tensorProto(n, t))),
                        fed.map(([n, t]) => bytes(11, valueInfo(n, t))),
                        outputs.filter(n => n).map(n => bytes(12, valueInfo(n, results && results[n]))));
  const opset = (name, version) => bytes(8, message(bytes(1, name), int(2, version)));
  return message(int(1, 8), bytes(7, graph), opset('', 17), opset('com.microsoft', 1));
}

// --- Data

let state = 1;
function random() { // mulberry32
  state = (state + 0x6D2B79F5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const count = dims => dims.reduce((a, b) => a * b, 1);
const make = (type, dims, next) => {
  const data = Array.from({length: count(dims)}, (_, i) => next(i));
  return new ort.Tensor(type, arrays[type].from(type === 'int64' ? data.map(BigInt) : data), dims);
};
const f32 = (dims, low = -1, high = 1) => make('float32', dims, () => low + random() * (high - low));
const u8 = dims => make('uint8', dims, () => Math.floor(random() * 256));
const i8 = dims => make('int8', dims, () => Math.floor(random() * 256) - 128);
// Where u8 and i8 are multiplied, ONNX Runtime's kernels for older processors saturate sums of two products at 16 bits.
const narrow = {uint8: u8, int8: dims => make('int8', dims, () => Math.floor(random() * 127) - 63)};
const ints = (type, dims, high) => make(type, dims, () => Math.floor(random() * high));
const list = (type, values, dims = [values.length]) => make(type, dims, i => values[i]);
const number = (type, value) => list(type, [value], []);
const mask = dims => make('int32', dims, i => (i % dims[dims.length - 1] === 0 || random() < 0.7 ? 1 : 0));

// --- Cases

const cases = [];
const add = (name, op, inputs, attributes = {}, outputs = ['y']) =>
  cases.push({name, op, inputs, attributes, outputs});

for (const [i, dims] of [[3], [2, 3, 5], [1, 7, 4]].entries()) {
  add(`gelu_${i}`, 'Gelu', {x: f32(dims, -2.5, 2.5)});
  add(`quickgelu_${i}`, 'QuickGelu', {x: f32(dims, -2.5, 2.5)}, i ? {alpha: F(0.5 * i)} : {});
  add(`fastgelu_${i}`, 'FastGelu', {x: f32(dims, -2.5, 2.5)});
  add(`fastgelu_bias_${i}`, 'FastGelu', {x: f32(dims, -2.5, 2.5), 'b!': f32(dims.slice(-1))});
  add(`biasgelu_${i}`, 'BiasGelu', {x: f32(dims, -2.5, 2.5), 'b!': f32(dims.slice(-1))});
}

add('fusedmatmul', 'FusedMatMul', {a: f32([3, 4]), 'b!': f32([4, 5])});
add('fusedmatmul_alpha', 'FusedMatMul', {a: f32([2, 3, 4]), 'b!': f32([4, 5])}, {alpha: F(0.25)});
add('fusedmatmul_trans_a', 'FusedMatMul', {a: f32([2, 4, 3]), b: f32([2, 4, 5])}, {transA: 1});
add('fusedmatmul_trans_b', 'FusedMatMul', {a: f32([2, 3, 4]), b: f32([2, 5, 4])}, {transB: 1, alpha: F(2)});
add('fusedmatmul_trans_both', 'FusedMatMul', {a: f32([4, 3]), b: f32([5, 4])}, {transA: 1, transB: 1});
add('fusedmatmul_broadcast', 'FusedMatMul', {a: f32([2, 1, 3, 4]), b: f32([3, 5, 4])}, {transB: 1});
add('fusedmatmul_batch_a', 'FusedMatMul', {a: f32([3, 2, 4]), b: f32([2, 4, 5])}, {transBatchA: 1});
add('fusedmatmul_batch_b', 'FusedMatMul', {a: f32([2, 3, 4]), b: f32([4, 2, 5])}, {transBatchB: 1});
add('fusedmatmul_batch_both', 'FusedMatMul', {a: f32([4, 2, 3]), b: f32([5, 2, 4])},
    {transBatchA: 1, transA: 1, transBatchB: 1, transB: 1, alpha: F(0.5)});
add('fusedmatmul_batch_rank_4', 'FusedMatMul', {a: f32([2, 5, 3, 4]), b: f32([5, 3, 4, 6])}, {transBatchA: 1});
add('transposematmul', 'TransposeMatMul', {a: f32([4, 3]), b: f32([4, 5])}, {transA: 1, alpha: F(3)});

for (const [name, attributes] of Object.entries({
  relu: {activation: 'Relu'}, tanh: {activation: 'Tanh'}, sigmoid: {activation: 'Sigmoid'}, none: {},
  leaky: {activation: 'LeakyRelu', activation_params: Float32Array.of(0.2)},
  clip: {activation: 'Clip', activation_params: Float32Array.of(-0.5, 0.75)},
  hard: {activation: 'HardSigmoid', activation_params: Float32Array.of(0.3, 0.4)}}))
  add(`fusedconv_${name}`, 'FusedConv', {x: f32([1, 3, 5, 6]), 'w!': f32([4, 3, 3, 3]), 'b!': f32([4])},
      {pads: [1, 1, 1, 1], ...attributes});
add('fusedconv_sum', 'FusedConv', {x: f32([2, 4, 5, 6]), 'w!': f32([4, 2, 3, 2]), 'b!': f32([4]), z: f32([2, 4, 3, 3])},
    {group: 2, strides: [1, 2], activation: 'Relu'});
for (const [name, attributes] of Object.entries({
  relu: {activation: 'Relu', alpha: F(0.5), beta: F(2)}, trans: {transA: 1, transB: 1, activation: 'Tanh'},
  leaky: {activation: 'LeakyRelu', activation_alpha: F(0.1)}}))
  add(`fusedgemm_${name}`, 'FusedGemm', attributes.transA
    ? {a: f32([4, 3]), 'b!': f32([5, 4]), 'c!': f32([5])} : {a: f32([3, 4]), 'b!': f32([4, 5]), 'c!': f32([3, 1])},
      attributes);

add('skiplayernorm', 'SkipLayerNormalization', {x: f32([2, 3, 8]), s: f32([2, 3, 8]), 'g!': f32([8]), 'b!': f32([8])});
add('skiplayernorm_bias', 'SkipLayerNormalization',
    {x: f32([2, 3, 8]), s: f32([2, 3, 8]), 'g!': f32([8]), 'b!': f32([8]), 'c!': f32([8])}, {epsilon: F(0.1)},
    ['y', '', '', 'sum']);
add('skiplayernorm_no_beta', 'SkipLayerNormalization', {x: f32([1, 4, 6]), s: f32([1, 4, 6]), 'g!': f32([6])});
add('skiplayernorm_no_beta_bias', 'SkipLayerNormalization',
    {x: f32([1, 4, 6]), s: f32([1, 4, 6]), 'g!': f32([6]), 'b!': null, 'c!': f32([6])});
add('skiplayernorm_broadcast', 'SkipLayerNormalization', {x: f32([2, 3, 8]), s: f32([1, 3, 8]), 'g!': f32([8]), 'b!': f32([8])});
add('skiplayernorm_broadcast_2d', 'SkipLayerNormalization', {x: f32([2, 3, 8]), s: f32([3, 8]), 'g!': f32([8]), 'b!': f32([8])});
add('skiplayernorm_2d', 'SkipLayerNormalization', {x: f32([5, 8]), s: f32([5, 8]), 'g!': f32([8]), 'b!': f32([8])});
add('skiprmsnorm', 'SkipSimplifiedLayerNormalization', {x: f32([2, 3, 8]), s: f32([2, 3, 8]), 'g!': f32([8])},
    {epsilon: F(1e-5)}, ['y', '', '', 'sum']);
add('skiprmsnorm_bias', 'SkipSimplifiedLayerNormalization',
    {x: f32([2, 3, 8]), s: f32([2, 3, 8]), 'g!': f32([8]), 'c!': f32([8])}, {epsilon: F(1e-5)});

const tables = () => ({'w!': f32([20, 8]), 'p!': f32([9, 8]), 't!': f32([2, 8]), 'g!': f32([8]), 'b!': f32([8])});
add('embedlayernorm', 'EmbedLayerNormalization',
    {ids: ints('int32', [2, 5], 20), seg: ints('int32', [2, 5], 2), ...tables()}, {}, ['y', 'n']);
add('embedlayernorm_mask', 'EmbedLayerNormalization',
    {ids: ints('int32', [2, 5], 20), seg: ints('int32', [2, 5], 2), ...tables(),
     m: list('int32', [1, 1, 1, 0, 0, 1, 1, 1, 1, 0], [2, 5])}, {epsilon: F(0.01)}, ['y', 'n', 'sum']);
add('embedlayernorm_no_segments', 'EmbedLayerNormalization',
    {ids: ints('int32', [2, 5], 20), seg: null, 'w!': f32([20, 8]), 'p!': f32([9, 8]), 't!': null, 'g!': f32([8]),
     'b!': f32([8])}, {}, ['y', 'n']);
add('embedlayernorm_positions', 'EmbedLayerNormalization',
    {ids: ints('int32', [2, 5], 20), seg: ints('int32', [2, 5], 2), ...tables(), m: null,
     pos: ints('int32', [2, 5], 9)}, {}, ['y', 'n']);
add('embedlayernorm_positions_of_all', 'EmbedLayerNormalization',
    {ids: ints('int32', [2, 5], 20), seg: ints('int32', [2, 5], 2), ...tables(), m: null,
     pos: ints('int32', [1, 5], 9)}, {}, ['y', 'n']);

// Attention: hidden size 8, two heads.
const qkv = (b = 2, s = 3) => ({x: f32([b, s, 8]), 'w!': f32([8, 24]), 'b!': f32([24])});
add('attention', 'Attention', qkv(), {num_heads: 2});
add('attention_causal', 'Attention', qkv(1, 5), {num_heads: 2, unidirectional: 1});
add('attention_scale', 'Attention', qkv(), {num_heads: 4, scale: F(0.3)});
add('attention_sizes', 'Attention', {x: f32([2, 3, 6]), 'w!': f32([6, 20]), 'b!': f32([20])},
    {num_heads: 2, qkv_hidden_sizes: [8, 8, 4]});
add('attention_mask_counts', 'Attention', {...qkv(2, 4), m: list('int32', [2, 4])}, {num_heads: 2});
add('attention_mask_ends_starts', 'Attention', {...qkv(2, 4), m: list('int32', [3, 4, 1, 0])}, {num_heads: 2});
add('attention_mask_2d', 'Attention', {...qkv(2, 4), m: mask([2, 4])}, {num_heads: 2});
add('attention_mask_2d_value', 'Attention', {...qkv(2, 4), m: mask([2, 4])}, {num_heads: 2, mask_filter_value: F(-2)});
add('attention_mask_3d', 'Attention', {...qkv(2, 4), m: mask([2, 4, 4])}, {num_heads: 2});
add('attention_mask_2d_causal', 'Attention', {...qkv(2, 4), m: mask([2, 4])}, {num_heads: 2, unidirectional: 1});
add('attention_bias', 'Attention', {...qkv(2, 4), m: null, past: null, rel: f32([2, 2, 4, 4])}, {num_heads: 2});
add('attention_bias_broadcast', 'Attention', {...qkv(2, 4), m: null, past: null, rel: f32([1, 2, 4, 4])}, {num_heads: 2});
add('attention_past', 'Attention', {...qkv(2, 3), m: null, past: f32([2, 2, 2, 5, 4])}, {num_heads: 2, unidirectional: 1},
    ['y', 'present']);
add('attention_past_mask', 'Attention', {...qkv(2, 3), m: mask([2, 8]), past: f32([2, 2, 2, 5, 4])}, {num_heads: 2},
    ['y', 'present']);
add('attention_present', 'Attention', {...qkv(1, 3)}, {num_heads: 2}, ['y', 'present']);

const three = (b = 2, s = 3, t = 4) => ({q: f32([b, s, 8]), k: f32([b, t, 8]), v: f32([b, t, 8])});
add('mha', 'MultiHeadAttention', three(), {num_heads: 2});
add('mha_bias', 'MultiHeadAttention', {...three(), 'b!': f32([24])}, {num_heads: 2});
add('mha_value_size', 'MultiHeadAttention', {q: f32([2, 3, 8]), k: f32([2, 4, 8]), v: f32([2, 4, 6]), 'b!': f32([22])},
    {num_heads: 2});
add('mha_causal', 'MultiHeadAttention', three(1, 5, 5), {num_heads: 2, unidirectional: 1});
add('mha_mask_counts', 'MultiHeadAttention', {...three(), 'b!': null, m: list('int32', [2, 4])}, {num_heads: 2});
add('mha_mask_2d', 'MultiHeadAttention', {...three(), 'b!': null, m: mask([2, 4])}, {num_heads: 2});
add('mha_mask_3d', 'MultiHeadAttention', {...three(), 'b!': null, m: mask([2, 3, 4])}, {num_heads: 2});
add('mha_attention_bias', 'MultiHeadAttention', {...three(), 'b!': null, m: null, rel: f32([2, 2, 3, 4])}, {num_heads: 2});
add('mha_attention_bias_broadcast', 'MultiHeadAttention', {...three(), 'b!': null, m: null, rel: f32([1, 1, 3, 4])},
    {num_heads: 2, scale: F(0.7)});
add('mha_cross', 'MultiHeadAttention', {q: f32([2, 3, 8]), k: f32([2, 2, 5, 4]), v: f32([2, 2, 5, 4]), 'b!': f32([24])},
    {num_heads: 2});
add('mha_past', 'MultiHeadAttention',
    {...three(2, 3, 3), 'b!': null, m: null, rel: null, pk: f32([2, 2, 5, 4]), pv: f32([2, 2, 5, 4])}, {num_heads: 2},
    ['y', 'key', 'value']);
add('mha_past_causal', 'MultiHeadAttention',
    {...three(2, 3, 3), 'b!': f32([24]), m: null, rel: null, pk: f32([2, 2, 5, 4]), pv: f32([2, 2, 5, 4])},
    {num_heads: 2, unidirectional: 1}, ['y', 'key', 'value']);

// Two groups of two heads of queries that share keys and values; heads of 16.
const grouped = (s, total, extra = {}) => ({q: f32([2, s, 64]), k: f32([2, s, 32]), v: f32([2, s, 32]),
  pk: f32([2, 2, total - s, 16]), pv: f32([2, 2, total - s, 16]), 'n!': list('int32', [total - 1, total - 1]),
  'total!': list('int32', [total]), ...extra});
const gqa = ['y', 'key', 'value'], groups = {num_heads: 4, kv_num_heads: 2};
const first = s => ({...grouped(s, s), pk: null, pv: null});
add('gqa_prompt', 'GroupQueryAttention', first(5), groups, gqa);
add('gqa_prompt_scale', 'GroupQueryAttention', first(5), {...groups, scale: F(0.2)}, gqa);
add('gqa_prompt_window', 'GroupQueryAttention', first(6), {...groups, local_window_size: 3}, gqa);
add('gqa_prompt_softcap', 'GroupQueryAttention', first(5), {...groups, softcap: F(1.5)}, gqa);
add('gqa_token', 'GroupQueryAttention', grouped(1, 6), groups, gqa);
add('gqa_token_window', 'GroupQueryAttention', grouped(1, 6), {...groups, local_window_size: 3}, gqa);
const turns = {'cos!': f32([8, 8]), 'sin!': f32([8, 8])};
add('gqa_prompt_rotary', 'GroupQueryAttention', {...first(5), ...turns}, {...groups, do_rotary: 1}, gqa);
add('gqa_token_rotary', 'GroupQueryAttention', {...grouped(1, 6), ...turns}, {...groups, do_rotary: 1}, gqa);
add('gqa_token_rotary_interleaved', 'GroupQueryAttention', {...grouped(1, 6), ...turns},
    {...groups, do_rotary: 1, rotary_interleaved: 1}, gqa);
add('gqa_packed', 'GroupQueryAttention', {...first(5), q: f32([2, 5, 128]), k: null, v: null}, groups, gqa);

const angles = {'cos!': f32([9, 2]), 'sin!': f32([9, 2])};
add('rotary_3d', 'RotaryEmbedding', {x: f32([2, 3, 8]), pos: ints('int64', [2, 3], 9), ...angles});
add('rotary_3d_interleaved', 'RotaryEmbedding', {x: f32([2, 3, 8]), pos: ints('int64', [2, 3], 9), ...angles},
    {interleaved: 1});
add('rotary_4d', 'RotaryEmbedding', {x: f32([2, 2, 3, 4]), pos: ints('int64', [2, 3], 9), ...angles});
add('rotary_first', 'RotaryEmbedding', {x: f32([2, 3, 8]), pos: list('int64', [4]), ...angles});
add('rotary_part', 'RotaryEmbedding', {x: f32([2, 3, 12]), pos: ints('int64', [2, 3], 9), ...angles},
    {num_heads: 2, rotary_embedding_dim: 4});

// --- Quantised

const scale = (low = 0.01, high = 0.05) => list('float32', [low + random() * (high - low)], []);
const zero = type => list(type, [type === 'uint8' ? 100 + Math.floor(random() * 50) : Math.floor(random() * 30) - 15], []);
for (const [type, data] of [['uint8', u8], ['int8', i8]]) {
  const operand = (name, dims) => ({[name]: data(dims), [`${name}_s!`]: scale(), [`${name}_z!`]: zero(type)});
  const result = (low, high) => ({'y_s!': scale(low, high), 'y_z!': zero(type)});
  add(`qlinearadd_${type}`, 'QLinearAdd', {...operand('a', [2, 3, 4]), ...operand('b', [2, 3, 4]), ...result()});
  add(`qlinearadd_broadcast_${type}`, 'QLinearAdd', {...operand('a', [2, 1, 4]), ...operand('b', [3, 1]), ...result()});
  add(`qlinearmul_${type}`, 'QLinearMul', {...operand('a', [2, 3, 4]), ...operand('b', [4]), ...result()});
  add(`qlinearleakyrelu_${type}`, 'QLinearLeakyRelu', {...operand('x', [3, 7]), ...result()}, {alpha: F(0.2)});
  add(`qlinearsigmoid_${type}`, 'QLinearSigmoid', {...operand('x', [3, 7]), ...result(0.004, 0.005)});
  add(`qlinearsoftmax_${type}`, 'QLinearSoftmax',
      {...operand('x', [3, 7]), 'y_s!': number('float32', 1 / 256), 'y_z!': number(type, type === 'uint8' ? 0 : -128)},
      {axis: -1, opset: 13});
  add(`qlinearglobalaveragepool_${type}`, 'QLinearGlobalAveragePool', {...operand('x', [2, 3, 4, 5]), ...result()},
      {channels_last: 0});
  add(`qlinearglobalaveragepool_last_${type}`, 'QLinearGlobalAveragePool', {...operand('x', [2, 4, 5, 3]), ...result()},
      {channels_last: 1});
  add(`qlinearaveragepool_${type}`, 'QLinearAveragePool', {...operand('x', [1, 3, 5, 6]), ...result()},
      {kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1], count_include_pad: 0});
  add(`qlinearaveragepool_pads_${type}`, 'QLinearAveragePool', {...operand('x', [1, 3, 5, 6]), ...result()},
      {kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1], count_include_pad: 1});
  add(`qlinearconcat_${type}`, 'QLinearConcat', {...result(), ...operand('a', [2, 3, 2]), ...operand('b', [2, 1, 2])},
      {axis: 1});
  add(`dequantize_${type}`, 'DequantizeLinear', operand('x', [3, 4]));
  add(`quantize_${type}`, 'QuantizeLinear', {x: f32([3, 4], -2, 2), ...result()});
  add(`dequantize_axis_${type}`, 'DequantizeLinear', {x: data([3, 4]), 's!': f32([3], 0.01, 0.1), 'z!': data([3])}, {axis: 0});
  add(`quantize_axis_${type}`, 'QuantizeLinear', {x: f32([3, 4], -2, 2), 's!': f32([4], 0.01, 0.1), 'z!': data([4])}, {axis: 1});
  add(`dynamicquantizematmul_${type}`, 'DynamicQuantizeMatMul',
      {a: f32([3, 5]), 'b!': narrow[type]([5, 4]), 's!': f32([1], 0.01, 0.1), 'z!': narrow[type]([1])});
  add(`dynamicquantizematmul_columns_${type}`, 'DynamicQuantizeMatMul',
      {a: f32([2, 3, 5]), 'b!': narrow[type]([5, 4]), 's!': f32([4], 0.01, 0.1), 'z!': narrow[type]([4]), 'bias!': f32([4])});
  add(`matmulintegertofloat_${type}`, 'MatMulIntegerToFloat',
      {a: u8([3, 5]), 'b!': narrow[type]([5, 4]), 'as!': f32([1], 0.01, 0.1), 'bs!': f32([4], 0.01, 0.1), 'az!': u8([1]), 'bz!': narrow[type]([4]),
       'bias!': f32([4])});
  add(`qgemm_${type}`, 'QGemm', {a: u8([3, 4]), 'as!': scale(), 'az!': zero('uint8'), 'b!': narrow[type]([4, 5]), 'bs!': scale(),
      'bz!': zero(type), 'c!': ints('int32', [5], 200), 'ys!': scale(), 'yz!': zero('uint8')}, {alpha: F(0.5)});
  add(`qgemm_float_${type}`, 'QGemm', {a: u8([4, 3]), 'as!': scale(), 'az!': zero('uint8'), 'b!': narrow[type]([5, 4]), 'bs!': f32([5], 0.01, 0.1),
      'bz!': narrow[type]([5])}, {transA: 1, transB: 1});
}

// Weights of 2, 4 and 8 bits in blocks along K; K not a multiple of the block too.
for (const bits of [2, 4, 8])
  for (const [K, N, block, zeros] of [[32, 5, 16, 0], [40, 3, 32, 1]]) {
    const blocks = Math.ceil(K / block);
    const inputs = {a: f32([2, 3, K]), 'b!': u8([N, blocks, block * bits / 8]), 's!': f32([N * blocks], 0.01, 0.1)};
    if (zeros) inputs['z!'] = u8([N * Math.ceil(blocks * bits / 8)]);
    add(`matmulnbits_${bits}_${K}`, 'MatMulNBits', inputs, {K, N, bits, block_size: block});
  }
add('matmulnbits_bias', 'MatMulNBits',
    {a: f32([3, 32]), 'b!': u8([4, 2, 8]), 's!': f32([4, 2], 0.01, 0.1), 'z!': null, 'g!': null, 'bias!': f32([4])},
    {K: 32, N: 4, bits: 4, block_size: 16});

// --- Running

async function write(folder, c) {
  const inputs = Object.fromEntries(Object.entries(c.inputs).filter(([n, t]) => t && !n.endsWith('!')));
  const options = {logSeverityLevel: 4, intraOpNumThreads: 1};
  const session = await ort.InferenceSession.create(model(c.op, c.inputs, c.outputs, c.attributes), options);
  const results = await session.run(inputs);
  const data = path.join(folder, 'test_' + c.name, 'test_data_set_0');
  fs.mkdirSync(data, {recursive: true});
  fs.writeFileSync(path.join(data, '../model.onnx'), model(c.op, c.inputs, c.outputs, c.attributes, results));
  Object.entries(inputs).forEach(([n, t], i) => fs.writeFileSync(path.join(data, `input_${i}.pb`), tensorProto(n, t)));
  c.outputs.filter(n => n).forEach((n, i) =>
    fs.writeFileSync(path.join(data, `output_${i}.pb`), tensorProto(n, results[n])));
}

(async () => {
  const folder = process.argv[2] || __dirname;
  for (const c of cases) {
    try {
      await write(folder, c);
    } catch (error) {
      console.log(`${c.name}: ${error.message.split('\n')[0].slice(0, 300)}`);
    }
  }
  console.log(`${cases.length} cases`);
})();
