// The parts of weft_check_fabric. Each adds its faults and fails only for lack of memory. The fabric is verified and
// placed.
#pragma once
#include "check/derive.h"
#include "check/faults.h"

typedef struct weft_check_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  const weft_defects_t* defects;
  weft_allocator_t allocator;
  weft_faults_t* faults;
} weft_check_t;

// For messages: "stream 3 of 'y', 'scale' -> 'sum'", "stream 4, chain of 'sum'".
typedef struct weft_check_label_t {
  char text[192];
} weft_check_label_t;
weft_check_label_t weft_check_stream_label(const weft_fabric_t* fabric, const weft_stream_t* stream);
#define WEFT_CHECK_LABEL(check, stream) (weft_check_stream_label((check)->fabric, (stream)).text)
// The physical tile of a logical one; -1: the host.
int32_t weft_check_physical(const weft_fabric_t* fabric, int32_t kernel, int32_t logical);

weft_status_t weft_check_placed(const weft_check_t* check);   // regions, tiles, memory
weft_status_t weft_check_sources(const weft_check_t* check);  // segments of streams are what their sources hold
weft_status_t weft_check_arrivals(const weft_check_t* check); // every operand element arrives once
weft_status_t weft_check_chains(const weft_check_t* check);   // every tile of a reduce chain has its hops
weft_status_t weft_check_waits(const weft_check_t* check);    // nobody waits for himself
weft_status_t weft_check_routes(const weft_check_t* check);   // ROUTED: links, colours, order, ends

// Nodes that lie on a cycle or behind one: out_stuck[node] is set; false when there are none.
typedef struct weft_check_edge_t {
  int32_t from, to;
} weft_check_edge_t;
weft_status_t weft_check_stuck(weft_allocator_t allocator, int32_t node_count, size_t edge_count,
                               const weft_check_edge_t* edge, bool* out_stuck, bool* out_any);
