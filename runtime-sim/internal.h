// The simulator's own state. Private to this folder.
#pragma once
#include "backend/image.h"
#include "base/arena.h"
#include "runtime-sim/nest.h"
#include "runtime-sim/sim.h"
#include "runtime-sim/walk.h"
#include "runtime-sim/work.h"

enum {
  WEFT_SIM_NONE = -1,
  WEFT_SIM_PAUSES = 4,     // of a shared link: more were never seen to matter
  WEFT_SIM_MAX_WORDS = 256 // longer than any instruction
};
// No instruction of a real program comes near: a tile's memory holds some ten thousand elements.
static const int64_t WEFT_SIM_MAX_POINTS = INT64_C(1) << 40;
static const int64_t WEFT_SIM_MAX_SEND_BYTES = INT64_C(1) << 32;
static const int64_t WEFT_SIM_MAX_CYCLES = INT64_C(1) << 60;

// One hop of a multicast tree, after its parent in the stream's list.
typedef struct weft_sim_hop_t {
  int32_t parent; // index within the stream's hops, or NONE: the root router
  int32_t link;
  bool leaves; // by a host port
} weft_sim_hop_t;

// A hop of the tree that a segment may have to wait for: its link is shared with other streams, or it leaves the mesh.
// Between two of them lie `gap` hops where the stream only meets itself, and so never waits.
typedef struct weft_sim_stop_t {
  int32_t parent; // index within the stream's stops, or NONE: the root router
  int32_t gap;    // hops from there to here
  int32_t link, pauses;
  bool leaves;
} weft_sim_stop_t;

// The same on the way from the sources to the root. Where ways have come together, they go on with the same stops.
typedef struct weft_sim_join_t {
  int32_t link, pauses;
  int32_t gap;  // hops from here to the next one, or to the root
  int32_t next; // index, or NONE
} weft_sim_join_t;

// Where a stream begins: the SENDs and CHAINs of one tile on one colour.
typedef struct weft_sim_source_t {
  int32_t slot; // of the tile, or NONE: no program runs there
  int32_t colour;
  int32_t stream;
  int32_t entry;    // route entry with the ramp (or host port) among its inputs
  int32_t in_link;  // ramp or port
  int32_t distance; // hops to the root
  int32_t join;     // the first stop on the way there, or NONE
  int32_t gap;      // hops to it, or to the root
  int64_t passed;   // wavelets so far
  // State. At most one segment is posted at a time; a repeating one posts itself again.
  bool pending, repeats, staged; // staged: the elements come from a chain instead of memory
  int64_t post_time;
  int64_t end_time; // staged: when its last wavelet can be there
  int64_t free_time;
  uint32_t pc; // of the instruction
  int64_t step;
  weft_sim_buffer_t* data; // staged elements
  int64_t data_elements;
} weft_sim_source_t;

// Where a stream ends at one tile.
typedef struct weft_sim_sink_t {
  int32_t slot;
  int32_t colour;
  int32_t stream;
  int32_t hop;       // index within the stream's hops after which the ramp follows, or NONE: the root router
  int32_t stop, gap; // the last of the stream's stops on the way, or NONE; hops after it
  int32_t depth;     // receives that may be outstanding: the longest ring of its RECVs
  int64_t* time;     // [depth], of receive n at n % depth: when it was posted; when it was complete
  // State. Receive n is the stream's step n.
  int64_t posts, done, waited; // receives posted so far, complete, waited for. A repeating one counts for each step
  bool repeats, chained;
  int64_t first_time; // first wavelet of this step at the core
  uint32_t pc;
  int64_t step; // of the tile; of a repeating receive: its own
  int64_t chain_elements;
  // The receive at walk_pc, worked out.
  uint32_t walk_pc; // UINT32_MAX: none yet
  int32_t base;
  weft_isa_ring_t ring;
  const weft_sim_walk_t* walk; // in the cache
} weft_sim_sink_t;

typedef struct weft_sim_stream_t {
  int32_t first_source, source_count, first_sink, sink_count, first_hop, hop_count;
  int32_t first_stop, stop_count;
  int32_t root;  // route entry where all sources have come together
  int32_t dtype; // of all its instructions; NONE before the first is seen
  // State
  bool launching; // an event is on its way
  int32_t next_source, posted_sinks;
  int64_t sinks_time; // when the last sink posted
  int64_t root_time;  // when the last segment has passed the root
  int64_t passed;     // wavelets so far
  int64_t held;       // thereof the last ones, which have not been given their links yet
  int64_t elements;   // of this step so far
  weft_sim_buffer_t* data;
} weft_sim_stream_t;

typedef enum weft_sim_wait_e {
  WEFT_SIM_RUNS,
  WEFT_SIM_WAITS_SEND, // a source of this tile has to leave
  WEFT_SIM_WAITS_RECV, // a sink of this tile has to complete
  WEFT_SIM_HALTED
} weft_sim_wait_e;

typedef struct weft_sim_slot_t {
  const weft_image_tile_t* tile;
  int32_t first_source, source_count, first_sink, sink_count; // in the by-slot lists, ascending colour
  int32_t router;                                             // or NONE
  uint8_t* memory;                                            // NULL while nobody has used it
  uint32_t shared; // bit per segment that nothing writes to: it is read where the image has it
  // State
  weft_sim_wait_e wait;
  int32_t waits_for;                     // source or sink
  int64_t waits_until;                   // of a sink: receives that have to be complete
  bool in_chain;                         // the instruction at pc is a CHAIN that has begun
  uint32_t pc, body, loop;               // loop: its body
  int64_t step, trip, trips, time, busy; // trips: of the loop that it is in
  int64_t fills;     // fills with constants that its memory still has to get: the first of its program
  int64_t ramp_time; // when its ramp inwards is free
  double energy;
} weft_sim_slot_t;

// An input or output in host memory: one area a step.
typedef struct weft_sim_io_t {
  int64_t elements, bytes; // of one step
  uint8_t* data;           // steps * step_stride
  int64_t steps;           // that data holds
} weft_sim_io_t;

// A link is idle in between, though it is reserved for later.
typedef struct weft_sim_pause_t {
  int64_t start, end;
} weft_sim_pause_t;

typedef struct weft_sim_link_t {
  int64_t free;   // from when on it isn't reserved
  int32_t pauses; // its first in `pause`, or NONE: no two streams share it
} weft_sim_link_t;

// An instruction of a program, decoded as if its parameters were zero or whatever the program has in their places.
typedef struct weft_sim_template_t {
  weft_instruction_t instruction;
  uint32_t first_patch, patch_count; // within the program's
  bool is_known, is_packed;          // packed: a parameter shares its word with other fields
} weft_sim_template_t;

typedef enum weft_sim_event_kind_e { WEFT_SIM_EVENT_RESUME, WEFT_SIM_EVENT_LAUNCH } weft_sim_event_kind_e;
typedef struct weft_sim_event_t {
  int64_t time;
  uint64_t sequence;
  int32_t kind, index;
} weft_sim_event_t;

struct weft_sim_t {
  weft_allocator_t allocator;
  weft_arena_t arena;
  const weft_image_t* image;
  weft_machine_t machine;
  weft_defects_t defects;
  int32_t slot_count, host_slot; // host_slot: NONE without one
  weft_sim_slot_t* slot;
  weft_sim_io_t* io;
  WEFT_ARRAY(weft_sim_template_t) templates;
  int32_t* template_at;   // [word of code] or NONE: no instruction begins there
  uint16_t* patch_offset; // [patch] where the decoded instruction has it
  // Routes: one entry a record of the image. Routers are the tiles that have entries.
  int32_t router_count;
  int32_t* router_tile;
  int32_t* entry_router;
  int32_t* entry_next; // a gather entry's only way on, or NONE
  int32_t* entry_link; // and the link that it takes
  int32_t source_count, sink_count, stream_count, hop_count;
  weft_sim_source_t* source;
  weft_sim_sink_t* sink;
  weft_sim_stream_t* stream;
  weft_sim_hop_t* hop;
  weft_sim_stop_t* stop;              // of a stream from its first_stop on
  weft_sim_join_t* join;              // behind each other along a way
  int32_t *slot_sources, *slot_sinks; // indices by (slot, colour)
  int32_t* host_colour;               // [host colour] the first that is the same port and colour
  // Of the last transit: when its first wavelet came out of each stop, how much later than over idle links; at the
  // root.
  int64_t *head_time, *late_time;
  int64_t root_head;
  // Links: (router * DIRECTION_COUNT + direction) * 2 + (1: inwards, by a ramp or host port).
  int64_t link_count;
  weft_sim_link_t* link;
  int64_t* link_wavelets;
  int64_t pause_count;
  weft_sim_pause_t* pause;
  // Run
  weft_sim_walk_cache_t walks;
  weft_sim_work_t work;
  const weft_control_t* control;
  int64_t steps;
  WEFT_ARRAY(weft_sim_event_t) queue;
  uint64_t sequence;
  int64_t now;
  double next_progress;
  bool finished;
  weft_sim_report_t report;
};

// load.c: the tables that programs and routes refer to.
static inline int32_t weft_sim_tile_count(const weft_sim_t* sim) {
  return weft_machine_tiles(&sim->machine);
}
static inline bool weft_sim_is_host(const weft_sim_t* sim, int32_t slot) {
  return slot >= 0 && slot == sim->host_slot;
}
// "tile (3,2) of conv1" or "the host", cut to the buffer.
typedef struct weft_sim_place_t {
  char text[96];
} weft_sim_place_t;
weft_sim_place_t weft_sim_place(const weft_sim_t* sim, int32_t slot);

// routes.c: streams from the routes.
weft_status_t weft_sim_routes_build(weft_sim_t* sim);

// template.c
weft_status_t weft_sim_templates_build(weft_sim_t* sim);
// The instruction at `pc` with the tile's parameters, looked at as closely as weft_isa_decode does.
weft_status_t weft_sim_fetch_first(const weft_sim_t* sim, int32_t slot, uint32_t pc,
                                   weft_instruction_t* out_instruction);
// The same again, once the program was verified. The fields that only RECV has are set for RECV only.
weft_status_t weft_sim_fetch(const weft_sim_t* sim, int32_t slot, uint32_t pc, weft_instruction_t* out_instruction);

// program.c
weft_status_t weft_sim_programs_verify(weft_sim_t* sim);
// The tile's source or sink on a colour, or NONE.
int32_t weft_sim_find_source(const weft_sim_t* sim, int32_t slot, int32_t colour);
int32_t weft_sim_find_sink(const weft_sim_t* sim, int32_t slot, int32_t colour);
static inline bool weft_sim_is_posted(const weft_sim_sink_t* sink) {
  return sink->posts > sink->done;
}
// When receive `n`, one of the last `depth` posted, was posted or, once it is done, complete.
static inline int64_t* weft_sim_receive_time(const weft_sim_sink_t* sink, int64_t n) {
  return &sink->time[n % sink->depth];
}

// memory.c: a tile's memory is there from its first use, with what the image puts into it, until its program has ended
// and nothing is under way from it. What a receive that was posted ahead still brings, nobody can look at.
weft_status_t weft_sim_memory_ready(weft_sim_t* sim, int32_t slot);
// What a job does: zeros, and what the image puts there.
void weft_sim_memory_clear(const weft_sim_t* sim, int32_t slot, uint8_t* memory, size_t bytes);
// Before that, while the image is verified: an instruction of the tile uses addresses [lo, hi). Segments that something
// writes to, or uses together with what is beside them, become the tile's own.
void weft_sim_memory_use(weft_sim_t* sim, int32_t slot, int64_t lo, int64_t hi, bool writes);
// Which segments are worth sharing at all.
void weft_sim_memory_share(weft_sim_t* sim, int32_t slot);
weft_status_t weft_sim_memory_release(weft_sim_t* sim, int32_t slot);
bool weft_sim_memory_is_over(const weft_sim_t* sim, int32_t slot);
// Where an instruction's addresses are. On the host, `step` selects the area of an input or output.
// Checks [base + lo, base + hi) and returns the place of `base`; NULL: not all of it is memory.
uint8_t* weft_sim_address(const weft_sim_t* sim, int32_t slot, int64_t base, int64_t lo, int64_t hi, int64_t step);
// Without a run's buffers: whether it will be there, and how many bytes there are. On the host also which io.
bool weft_sim_address_exists(const weft_sim_t* sim, int32_t slot, int64_t base, int64_t lo, int64_t hi,
                             int64_t* out_size, int32_t* out_io);
// Of operand `operand` of the instruction's loops: least and greatest offset from its base, [lo, hi). False: overflow.
bool weft_sim_loop_reach(const weft_instruction_t* instruction, int32_t operand, int64_t size, int64_t* out_lo,
                         int64_t* out_hi);
int64_t weft_sim_loop_points(const weft_instruction_t* instruction); // -1: more than WEFT_SIM_MAX_POINTS

// queue.c: ordered by time, then by who came first.
weft_status_t weft_sim_queue_push(weft_sim_t* sim, int64_t time, weft_sim_event_kind_e kind, int32_t index);
weft_sim_event_t weft_sim_queue_pop(weft_sim_t* sim);

// link.c
weft_status_t weft_sim_links_build(weft_sim_t* sim);
void weft_sim_links_reset(weft_sim_t* sim);
// Once a run is over: what went over each link.
weft_status_t weft_sim_links_settle(weft_sim_t* sim);
// When a segment whose head arrives at `head` begins to pass; it takes `cycles` from then on.
int64_t weft_sim_link_reserve(weft_sim_t* sim, int32_t link, int64_t head, int64_t cycles);

// transit.c: when a segment gets where. Reserves the links.
typedef struct weft_sim_transit_t {
  int64_t start;    // in: injection of the first wavelet
  int64_t wavelets; // in
  int64_t tail;     // in: cycles by which its last wavelet comes later than at one a cycle
  int64_t free;     // out: when the last wavelet has left the source
} weft_sim_transit_t;
void weft_sim_transit(weft_sim_t* sim, weft_sim_stream_t* stream, weft_sim_source_t* source,
                      weft_sim_transit_t* transit);
// First wavelet of the last transit at the sink's core.
int64_t weft_sim_transit_arrival(const weft_sim_t* sim, const weft_sim_sink_t* sink);
// Earliest start of the stream's next segment, from `source`.
int64_t weft_sim_transit_earliest(const weft_sim_t* sim, const weft_sim_stream_t* stream,
                                  const weft_sim_source_t* source);

// stream.c
weft_status_t weft_sim_stream_consider(weft_sim_t* sim,
                                       int32_t stream); // schedules its next segment if nothing is missing
weft_status_t weft_sim_stream_launch(weft_sim_t* sim, int32_t stream);
weft_status_t weft_sim_post_send(weft_sim_t* sim, int32_t source, const weft_instruction_t* instruction, uint32_t pc);
weft_status_t weft_sim_post_recv(weft_sim_t* sim, int32_t sink, const weft_instruction_t* instruction, uint32_t pc);
weft_status_t weft_sim_post_again(weft_sim_t* sim, int32_t sink);

// run.c: tells how many steps are complete, some times a second.
void weft_sim_progress(weft_sim_t* sim);

// core.c
weft_status_t weft_sim_core_run(weft_sim_t* sim, int32_t slot); // from its own time until it blocks or halts
weft_status_t weft_sim_core_wake(weft_sim_t* sim, int32_t slot, int64_t time);
// The first `count` tensor instructions of the tile's program, in its memory.
weft_status_t weft_sim_core_fill(weft_sim_t* sim, int32_t slot, int64_t count);
// What the tensor engine does for `points` points, in a tile's books.
void weft_sim_core_account(weft_sim_t* sim, int32_t slot, const weft_instruction_t* instruction, int64_t points);

// deadlock.c: OK when everything is done.
weft_status_t weft_sim_stuck(const weft_sim_t* sim);
