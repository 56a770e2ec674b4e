// The wafer: geometry, rates, energy, host ports. Read from XML that a RELAX NG schema checks; every number is a preset's
// default, none is a constant in code.
#pragma once
#include "base/allocator.h"
#include "base/digest.h"
#include "base/text.h"
#include "machine/op.h"

// Directions out of a router. The diagonals exist only with machine.diagonal_links.
#define WEFT_DIRECTIONS(X)                                                                                             \
  X(N, 0, -1) X(E, 1, 0) X(S, 0, 1) X(W, -1, 0) X(RAMP, 0, 0) X(NE, 1, -1) X(SE, 1, 1) X(SW, -1, 1) X(NW, -1, -1)
typedef enum weft_direction_e {
#define X(name, dx, dy) WEFT_DIRECTION_##name,
  WEFT_DIRECTIONS(X)
#undef X
  WEFT_DIRECTION_COUNT
} weft_direction_e;
const char* weft_direction_name(weft_direction_e direction);
weft_direction_e weft_direction_opposite(weft_direction_e direction); // RAMP for RAMP
extern const int8_t weft_direction_dx[WEFT_DIRECTION_COUNT], weft_direction_dy[WEFT_DIRECTION_COUNT];

typedef struct weft_host_port_t {
  int32_t tile;               // the edge tile that it is attached to
  weft_direction_e direction; // the side of that tile: outward, off the mesh
} weft_host_port_t;

enum { WEFT_MAX_COLOURS = 64 };

typedef struct weft_machine_t {
  char name[64];
  int32_t width, height;      // tiles; tile index = y * width + x; y grows southwards
  int64_t tile_memory;        // bytes for code and data
  int64_t host_memory;        // bytes
  int32_t issue_cycles;       // of any instruction
  // Elements a cycle, by class and type: an element of `rate` 0.25 costs four cycles.
  double rate[WEFT_OP_CLASS_COUNT][WEFT_DTYPE_COUNT];
  int32_t wavelet_bits;       // 32
  int32_t hop_cycles;         // router to router: 1
  int32_t ramp_cycles;        // router <-> core: 2
  int32_t colours;            // a router: 24
  bool diagonal_links;
  double clock_ghz;
  int32_t ports_per_side[4];  // N E S W, spread evenly over the side
  int32_t port_latency;       // cycles between host and edge router
  int32_t host_rate;          // wavelets a cycle of a port: 1
  struct {                    // picojoules
    double op[WEFT_OP_CLASS_COUNT][WEFT_DTYPE_COUNT]; // an element
    double sram_word;   // 32 bits read or written
    double hop;         // a wavelet over a link
    double instruction; // fetched and decoded
  } energy;
} weft_machine_t;

// `spec`: a preset (wse1, wse2, wse3, mesh:WxH) or the path of an XML file. Errors of a file name file, line and what was
// expected.
weft_status_t weft_machine_load(weft_allocator_t allocator, const char* spec, weft_machine_t* out_machine);
weft_status_t weft_machine_parse(const char* xml, size_t size, const char* origin, weft_machine_t* out_machine);
// The canonical XML text, which parses back to the same machine; its digest identifies the machine.
weft_status_t weft_machine_print(const weft_machine_t* machine, weft_text_t* text);
weft_status_t weft_machine_digest(const weft_machine_t* machine, weft_digest_t* out_digest);

static inline int32_t weft_machine_tiles(const weft_machine_t* m) { return m->width * m->height; }
// The neighbour's tile index, or -1 off the mesh (or for a diagonal that the machine lacks).
int32_t weft_machine_neighbour(const weft_machine_t* machine, int32_t tile, weft_direction_e direction);
int32_t weft_machine_port_count(const weft_machine_t* machine);
weft_host_port_t weft_machine_port(const weft_machine_t* machine, int32_t index); // N side first, then E, S, W

// Cycles of one tensor instruction over `points` loop points: issue + points / rate, rounded up. The only place where an
// instruction gets its cost: fabric cost function and simulator both call it.
int64_t weft_machine_op_cycles(const weft_machine_t* machine, weft_op_e op, weft_dtype_e dtype, int64_t points);
// Wavelets that `elements` elements of a type take: as many whole elements as fit share a wavelet; wider ones take several.
int64_t weft_machine_wavelets(const weft_machine_t* machine, weft_dtype_e dtype, int64_t elements);
