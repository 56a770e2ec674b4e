// What a machine file can say: one table for reading, printing and messages. machine.rng states the same for
// validators.
#pragma once
#include "machine/machine.h"

enum {
  WEFT_MACHINE_MAX_SIDE = 65535,
  WEFT_MACHINE_MAX_TILES = 1 << 26 // tile * direction and tile * colour still fit 32 bits
};

// Element under <machine>, attribute, member, kind, least and greatest value. Attributes of one element stand together.
#define WEFT_MACHINE_FIELDS(X)                                                                                         \
  X("mesh", "width", width, INT32, 1, WEFT_MACHINE_MAX_SIDE)                                                           \
  X("mesh", "height", height, INT32, 1, WEFT_MACHINE_MAX_SIDE)                                                         \
  X("mesh", "diagonals", diagonal_links, BOOL, 0, 1)                                                                   \
  X("tile", "memory", tile_memory, INT64, 64, 1073741824)                                                              \
  X("tile", "issue", issue_cycles, INT32, 0, 1000000)                                                                  \
  X("router", "wavelet", wavelet_bits, INT32, 32, 32)                                                                  \
  X("router", "colours", colours, INT32, 1, WEFT_MAX_COLOURS)                                                          \
  X("router", "hop", hop_cycles, INT32, 1, 1000000)                                                                    \
  X("router", "ramp", ramp_cycles, INT32, 1, 1000000)                                                                  \
  X("clock", "ghz", clock_ghz, REAL, 0.001, 1000)                                                                      \
  X("host", "memory", host_memory, INT64, 1024, 1125899906842624)                                                      \
  X("host", "rate", host_rate, INT32, 1, 1024)                                                                         \
  X("host", "latency", port_latency, INT32, 0, 1000000)                                                                \
  X("host", "north", ports_per_side[WEFT_DIRECTION_N], INT32, 0, WEFT_MACHINE_MAX_SIDE)                                \
  X("host", "east", ports_per_side[WEFT_DIRECTION_E], INT32, 0, WEFT_MACHINE_MAX_SIDE)                                 \
  X("host", "south", ports_per_side[WEFT_DIRECTION_S], INT32, 0, WEFT_MACHINE_MAX_SIDE)                                \
  X("host", "west", ports_per_side[WEFT_DIRECTION_W], INT32, 0, WEFT_MACHINE_MAX_SIDE)                                 \
  X("energy", "sram-word", energy.sram_word, REAL, 0, 1e9)                                                             \
  X("energy", "hop", energy.hop, REAL, 0, 1e9)                                                                         \
  X("energy", "instruction", energy.instruction, REAL, 0, 1e9)

typedef enum weft_machine_kind_e {
  WEFT_MACHINE_KIND_INT32,
  WEFT_MACHINE_KIND_INT64,
  WEFT_MACHINE_KIND_REAL,
  WEFT_MACHINE_KIND_BOOL
} weft_machine_kind_e;

typedef struct weft_machine_field_t {
  const char* element;
  const char* attribute;
  size_t offset; // of the member in weft_machine_t
  weft_machine_kind_e kind;
  double least, greatest;
} weft_machine_field_t;
enum {
#define X(element, attribute, member, kind, least, greatest) 0,
  WEFT_MACHINE_FIELD_COUNT = sizeof((const char[]){WEFT_MACHINE_FIELDS(X)})
#undef X
};
extern const weft_machine_field_t weft_machine_fields[WEFT_MACHINE_FIELD_COUNT];

// Elements under <machine> in canonical order; a table holds one child element a cost class, one attribute a type.
typedef struct weft_machine_table_t {
  const char* element;
  size_t offset; // of the double [WEFT_OP_CLASS_COUNT][WEFT_DTYPE_COUNT]
  double least, greatest;
} weft_machine_table_t;
enum { WEFT_MACHINE_TABLE_COUNT = 2, WEFT_MACHINE_ELEMENT_COUNT = 7 };
extern const weft_machine_table_t weft_machine_tables[WEFT_MACHINE_TABLE_COUNT];
extern const char* const weft_machine_elements[WEFT_MACHINE_ELEMENT_COUNT];
extern const char* const weft_machine_class_names[WEFT_OP_CLASS_COUNT];

// The table of this element, or NULL.
const weft_machine_table_t* weft_machine_table_of(const char* element);
