// ONNX Runtime beside Weft, for the other programs of this folder. onnxruntime-node comes from the folder in NODE_PATH.
//   node reference.js time MODEL DATA RUNS THREADS   milliseconds of each run, after one to warm up, on DATA/input_*.pb
//   node reference.js make MODEL OUT NAME=EXTENT...  inputs of these shapes and what comes of them, as OUT/{input,output}_N.npy
'use strict';
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

// ONNX element types that models have here: name, array, type of a .npy file.
const TYPES = {
  1: ['float32', Float32Array, '<f4'],
  2: ['uint8', Uint8Array, '|u1'],
  3: ['int8', Int8Array, '|i1'],
  6: ['int32', Int32Array, '<i4'],
  7: ['int64', BigInt64Array, '<i8'],
  9: ['bool', Uint8Array, '|b1'],
  10: ['float16', Uint16Array, '<f2'],
  11: ['float64', Float64Array, '<f8'],
};
const typeOf = (name) => Object.values(TYPES).find((type) => type[0] === name);

// Fields of a protocol buffer message: [number, value], values as BigInt or bytes.
function fieldsOf(bytes) {
  const fields = [];
  let at = 0;
  const varint = () => {
    let value = 0n, shift = 0n, byte;
    do {
      byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte & 128);
    return value;
  };
  const take = (count) => bytes.subarray(at, (at += count));
  while (at < bytes.length) {
    const tag = Number(varint()), wire = tag & 7;
    fields.push([tag >> 3, wire === 0 ? varint() : take(wire === 2 ? Number(varint()) : wire === 1 ? 8 : 4)]);
  }
  return fields;
}

function readTensor(file) {
  const dims = [], values = [];
  let type, raw;
  for (const [number, value] of fieldsOf(fs.readFileSync(file))) {
    if (number === 1 && typeof value === 'bigint') dims.push(Number(value));
    if (number === 2) type = TYPES[value];
    if (number === 9) raw = value;
    if (number === 4 || number === 5 || number === 7) values.push(value);
  }
  if (!type) throw Error(`${file}: a type that this program does not know`);
  if (!raw && values.length) throw Error(`${file}: its elements are not raw`);
  const bytes = Uint8Array.from(raw || []); // aligned
  return new ort.Tensor(type[0], new type[1](bytes.buffer), dims);
}

function writeNpy(file, tensor) {
  const shape = tensor.dims.map((extent) => `${extent},`).join(' ');
  const text = `{'descr': '${typeOf(tensor.type)[2]}', 'fortran_order': False, 'shape': (${shape}), }`;
  const header = Buffer.alloc(Math.ceil((text.length + 11) / 64) * 64, ' ');
  header.write('\x93NUMPY\x01\x00', 'latin1');
  header.writeUInt16LE(header.length - 10, 8);
  header.write(text, 10);
  header.write('\n', header.length - 1);
  const data = tensor.data;
  fs.writeFileSync(file, Buffer.concat([header, Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}

// A small generator with a fixed seed: the same inputs every time.
let state = 1;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

function randomTensor(metadata, extents) {
  const dims = metadata.shape.map((extent) => {
    if (typeof extent === 'number' && extent >= 0) return extent;
    if (!(extent in extents)) throw Error(`input ${metadata.name}: ${extent}=EXTENT is missing`);
    return extents[extent];
  });
  const [name, array] = typeOf(metadata.type);
  const data = new array(dims.reduce((product, extent) => product * extent, 1));
  for (let i = 0; i < data.length; ++i)
    data[i] = name === 'int64' ? BigInt(Math.floor(random() * 1000)) : name.startsWith('float') ? random() - 0.5 : random() * 2;
  return new ort.Tensor(name, data, dims);
}

async function main([command, model, folder, ...rest]) {
  const threads = command === 'time' ? Number(rest[1]) : 2;
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: threads, logSeverityLevel: 3 });
  const feeds = {};
  if (command === 'make') {
    const extents = Object.fromEntries(rest.map((pair) => [pair.split('=')[0], Number(pair.split('=')[1])]));
    fs.mkdirSync(folder, { recursive: true });
    for (const metadata of session.inputMetadata) feeds[metadata.name] = randomTensor(metadata, extents);
    const results = await session.run(feeds);
    session.inputNames.forEach((name, i) => writeNpy(path.join(folder, `input_${i}.npy`), feeds[name]));
    session.outputNames.forEach((name, i) => writeNpy(path.join(folder, `output_${i}.npy`), results[name]));
    return;
  }
  session.inputNames.forEach((name, i) => (feeds[name] = readTensor(path.join(folder, `input_${i}.pb`))));
  for (let run = 0; run <= Number(rest[0]); ++run) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    if (run > 0) console.log((Number(process.hrtime.bigint() - start) / 1e6).toFixed(2));
  }
}
main(process.argv.slice(2)).catch((error) => {
  console.error(`reference: ${error.message}`);
  process.exit(1);
});
