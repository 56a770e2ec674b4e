// Who sends and receives what, by tile: the streams' ends turned round, with the colour that each end has in its
// router.
#pragma once
#include "ir/fabric/split.h"

// An end of a stream at one tile. On the host the colour is the index of a host colour.
typedef struct weft_end_t {
  int32_t stream, index; // stream->sink[index] or stream->source[index]
  int32_t colour;
} weft_end_t;
typedef struct weft_end_list_t {
  const weft_end_t* end;
  size_t count;
} weft_end_list_t;

typedef struct weft_end_table_t {
  size_t* first; // [slots + 1]; slot 0 is the host, then the logical tiles of each kernel
  weft_end_t* end;
} weft_end_table_t;
typedef struct weft_endpoints_t {
  size_t* kernel_slot; // first slot of each kernel
  size_t slot_count;
  weft_end_table_t in, out; // sinks and sources, in the order of the streams
  struct {
    int32_t port;
    int32_t colour;
  } * host; // host colours
  size_t host_count;
} weft_endpoints_t;

// INVALID_INPUT naming stream and tile when an end has no router entry. Lives in `arena`.
weft_status_t weft_endpoints_create(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                    weft_endpoints_t* out_endpoints);
weft_end_list_t weft_endpoints_of(const weft_endpoints_t* endpoints, const weft_end_table_t* table, int32_t kernel,
                                  int32_t logical);

// The router tile of a stream's first source or sink: of the host, the tile at its port. -1: it has none.
int32_t weft_endpoints_tile(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_stream_t* stream,
                            bool sink);
// The stream's entry in the router of `tile` where it comes from (source) or goes to (sink) the core or the port. NULL:
// none.
const weft_router_entry_t* weft_endpoints_entry(const weft_stream_t* stream, int32_t tile, weft_direction_e direction,
                                                bool sink);
