// A fabric's kernels as a problem of the placement engine: what depends on splits and tensors, before there are places.
#pragma once
#include "ir/fabric/split.h"
#include "placer/placer.h"

typedef struct weft_network_t {
  weft_placer_problem_t problem; // `blocked` is left to the caller
  int32_t** alternative;         // [block][shape] of the kernel
} weft_network_t;

// The fabric's alternatives must be enumerated; everything else lies in `arena`. DOES_NOT_FIT: a kernel has no
// alternative that the machine's mesh could hold.
weft_status_t weft_network_create(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                  weft_network_t* out_network);
