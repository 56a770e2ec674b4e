// Adapter: the fabric's kernels on a machine. KERNELS -> PLACED: chooses alternatives, regions, tile lists; builds
// streams.
#pragma once
#include "ir/fabric/streams.h"
#include "placer/placer.h"
#include "placer/rules.h"

typedef struct weft_place_options_t {
  weft_placer_options_t engine;
  // Keeps kernels off ways that are one tile wide, if they fit without: what routing asks for where defects are many.
  bool leave_passages;
  const weft_placer_rules_t* rules; // that the user set; may be NULL
} weft_place_options_t;
typedef struct weft_place_report_t {
  double cost, wire, worst_seed_cost;
  double time;            // of the objective: the slowest kernel, or the busiest links as placement estimates them
  double overload;        // of links, estimated, in wavelets times tiles: beyond what they carry in that time
  int64_t slowest_cycles; // of a step of the slowest kernel alone
  uint64_t best_seed;
  int64_t tiles_used, tiles_live;
} weft_place_report_t;
// Searches the target time: the smallest shapes that meet it, packed, then annealed together. The fabric must be
// verified and its alternatives enumerated. DOES_NOT_FIT says how many tiles are needed at the least.
weft_status_t weft_place(weft_fabric_t* fabric, const weft_machine_t* machine, const weft_defects_t* defects,
                         const weft_place_options_t* options, weft_place_report_t* out_report);
