// The wafer image: an ELF file (libelf) with everything a wafer needs to run, and nothing else. Untrusted when loaded.
//
// Sections (little-endian records, 8-byte aligned; indices and offsets are checked by the loader):
//   .weft.header     weft_image_header_t
//   .weft.machine    canonical machine XML         .weft.defects   canonical defect text
//   .weft.tiles      weft_image_tile_t[]           ascending tile index; live tiles that do something. The host is last
//   .weft.programs   weft_image_program_t[]        .weft.code      uint32_t[]: the programs' template words
//   .weft.patches    uint32_t[]: for each program, word offsets (within it) of its parameters, ascending
//   .weft.params     uint32_t[]: for each tile, the values of its program's parameters
//   .weft.segments   weft_image_segment_t[]: what is loaded where in a tile; shared: many tiles may refer to the same
//   bytes .weft.consts     the bytes .weft.routes     weft_image_route_t[]          sorted by tile, colour .weft.ports
//   weft_image_host_colour_t[]    host colour -> port and edge router colour .weft.kernels    weft_image_kernel_t[]
//   .weft.io        weft_image_io_t[] .weft.streams    weft_image_stream_t[]: names for reports; no part in execution
//   .weft.nodes      uint32_t[]: tile index lists of kernels       .weft.strings   zero-terminated strings
#pragma once
#include "base/digest.h"
#include "base/file.h"
#include "machine/defects.h"

enum { WEFT_IMAGE_VERSION = 1, WEFT_HOST_TILE = -1 };

typedef struct weft_image_header_t {
  uint32_t version, flags;
  uint64_t seed;
  weft_digest_t model, machine, defects;
  int32_t width, height;
  uint32_t model_name; // string offset
  uint32_t reserved;
} weft_image_header_t;

typedef struct weft_image_tile_t {
  int32_t tile;   // index, or WEFT_HOST_TILE
  int32_t kernel; // index, or -1 (host)
  uint32_t program;
  uint32_t params; // first word in .weft.params; their number is the program's
  uint32_t segments, segment_count;
  uint32_t memory_bytes; // that it uses, code included; memory starts zeroed
  uint32_t logical;      // logical tile of the kernel
} weft_image_tile_t;
typedef struct weft_image_program_t {
  uint32_t code, code_words;
  uint32_t patches, patch_count;
} weft_image_program_t;
typedef struct weft_image_segment_t {
  uint32_t address; // in tile memory
  uint32_t size;    // bytes
  uint64_t offset;  // in .weft.consts
} weft_image_segment_t;
typedef struct weft_image_route_t {
  int32_t tile;
  uint8_t colour, input_count;
  uint8_t input[WEFT_DIRECTION_COUNT];         // weft_direction_e, the switch's cyclic order
  uint8_t output_colour[WEFT_DIRECTION_COUNT]; // for each output
  uint16_t outputs;                            // bit per direction
  uint8_t reserved[2];
} weft_image_route_t;
// A host colour is a (port, colour) pair. From the host: wavelets enter the edge router of `port` on `colour`, coming
// from the port's direction. To the host: the edge router's output towards the port's direction, with output colour
// `colour`.
typedef struct weft_image_host_colour_t {
  int32_t port;
  uint32_t colour;
} weft_image_host_colour_t;
typedef struct weft_image_kernel_t {
  uint32_t name, nodes;        // strings
  int32_t x, y, width, height; // region
  int32_t gy, gx;
  uint32_t tiles; // first in .weft.nodes, gy * gx of them
  uint32_t reserved;
  int64_t cycles, stream_cycles; // estimates
} weft_image_kernel_t;
typedef struct weft_image_io_t {
  uint32_t name;
  uint32_t is_output;
  uint32_t dtype, rank;
  int64_t extent[8];
  uint64_t address;     // in host memory, for step 0
  uint64_t step_stride; // bytes from one step to the next = size of one tensor, rounded up to 8
  uint32_t colour;      // host colour of (the first of) its streams, or UINT32_MAX
  uint32_t reserved;
} weft_image_io_t;
typedef struct weft_image_stream_t {
  int32_t source_kernel, sink_kernel; // -1: host
  int32_t source_tile, sink_tile;     // first of each
  uint32_t name;                      // tensor name
  uint32_t source_colour;             // at source_tile: (tile, colour) identifies the stream
  uint32_t source_count, sink_count;
} weft_image_stream_t;

// An image in memory: mapped from a file, or about to be written. Arrays point into the mapping or into memory of the
// builder.
typedef struct weft_image_t {
  weft_image_header_t header;
  const char* machine_xml;
  size_t machine_xml_size;
  const char* defects_text;
  size_t defects_text_size;
#define WEFT_IMAGE_TABLES(X)                                                                                           \
  X(tiles, weft_image_tile_t, ".weft.tiles")                                                                           \
  X(programs, weft_image_program_t, ".weft.programs")                                                                  \
  X(code, uint32_t, ".weft.code")                                                                                      \
  X(patches, uint32_t, ".weft.patches")                                                                                \
  X(params, uint32_t, ".weft.params")                                                                                  \
  X(segments, weft_image_segment_t, ".weft.segments")                                                                  \
  X(consts, uint8_t, ".weft.consts")                                                                                   \
  X(routes, weft_image_route_t, ".weft.routes")                                                                        \
  X(host_colours, weft_image_host_colour_t, ".weft.ports")                                                             \
  X(kernels, weft_image_kernel_t, ".weft.kernels")                                                                     \
  X(io, weft_image_io_t, ".weft.io")                                                                                   \
  X(streams, weft_image_stream_t, ".weft.streams")                                                                     \
  X(nodes, uint32_t, ".weft.nodes")                                                                                    \
  X(strings, char, ".weft.strings")
#define X(field, type, section)                                                                                        \
  const type* field;                                                                                                   \
  size_t field##_count;
  WEFT_IMAGE_TABLES(X)
#undef X
  weft_mapping_t mapping;
} weft_image_t;

// Writes an ELF file, whole or not at all; byte-identical for equal content.
weft_status_t weft_image_write(weft_allocator_t allocator, const weft_image_t* image, const char* path);
// Maps and verifies structure: ELF, version, section sizes, every index, offset, count, string and enum of every table;
// that each tile's memory fits the machine; that every program decodes with each tile's parameters. Arbitrary bytes
// give INVALID_INPUT, never a crash. (Addresses and strides of instructions are checked by the simulator's loader.)
weft_status_t weft_image_map(weft_allocator_t allocator, const char* path, weft_image_t* out_image);
void weft_image_unmap(weft_image_t* image);
const char* weft_image_string(const weft_image_t* image, uint32_t offset); // "" when out of range
// Copies a tile's program with its parameters filled in. out_words holds programs[...].code_words words.
void weft_image_tile_program(const weft_image_t* image, const weft_image_tile_t* tile, uint32_t* out_words);
