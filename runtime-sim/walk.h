// What a receive takes of a stream: its walk, view and filter worked out once into runs. Private to the simulator.
#pragma once
#include "backend/isa.h"
#include "base/array.h"
#include "base/control.h"

// `count` elements of the stream from `position` on, stored at base + target, + target + stride, ... (bytes).
typedef struct weft_sim_span_t {
  int64_t position, count, target, stride;
} weft_sim_span_t;
typedef struct weft_sim_walk_t {
  int64_t elements; // of the whole stream
  int64_t taken;    // that pass the filter
  WEFT_ARRAY(weft_sim_span_t) spans;
} weft_sim_walk_t;

// NULL, or why the numbers of the receive don't fit in 64 bits.
const char* weft_sim_walk_fault(const weft_instruction_t* recv);
// Bytes below and above its base that the receive can write to, [lo, hi); false: more than 64 bits. Empty when nothing
// passes the filter.
bool weft_sim_walk_reach(const weft_instruction_t* recv, int64_t* out_lo, int64_t* out_hi);
// `limit`: more elements than this can't be meant (the memory that they go to has no room for them).
weft_status_t weft_sim_walk_compile(weft_allocator_t allocator, const weft_instruction_t* recv, int64_t limit,
                                    const weft_control_t* control, weft_sim_walk_t* out_walk);
void weft_sim_walk_deinitialize(weft_allocator_t allocator, weft_sim_walk_t* walk);

// Walks that several receives share.
typedef struct weft_sim_walk_entry_t {
  struct weft_sim_walk_entry_t* next;
  uint64_t hash;
  int64_t limit;
  weft_instruction_t key; // what the walk depends on
  weft_sim_walk_t walk;
} weft_sim_walk_entry_t;
typedef struct weft_sim_walk_cache_t {
  weft_allocator_t allocator;
  weft_sim_walk_entry_t** bucket;
  size_t bucket_count, count; // of buckets a power of two, or none
} weft_sim_walk_cache_t;
// The receive's walk, worked out unless it is known; valid while the cache lives.
weft_status_t weft_sim_walk_cache_get(weft_sim_walk_cache_t* cache, const weft_instruction_t* recv, int64_t limit,
                                      const weft_control_t* control, const weft_sim_walk_t** out_walk);
void weft_sim_walk_cache_deinitialize(weft_sim_walk_cache_t* cache);
