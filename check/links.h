// Router entries joined to each other: every output to the entry in the next router that expects it. Used on the
// entries of one stream, and on all routes of an image.
#pragma once
#include "check/faults.h"
#include "ir/fabric/fabric.h"

// Where the wavelets of a switch input come from: an entry, or
enum { WEFT_LINKS_NOWHERE = -1, WEFT_LINKS_RAMP = -2, WEFT_LINKS_PORT = -3 };

typedef struct weft_links_t {
  const weft_machine_t* machine;
  const weft_defects_t* defects;
  weft_allocator_t allocator;
  weft_faults_t* faults;
  const char* name; // for messages: whose entries they are
  int32_t count;
  const weft_router_entry_t* entry;
  int32_t tiles;                             // of the machine: room for
  int32_t* last;                             // of each tile, its last entry; what lies there of other entries is not
                                             // cleared away, but noticed
  int32_t* before;                           // of each entry, the one before it on its tile, or -1
  int32_t (*upstream)[WEFT_DIRECTION_COUNT]; // of each entry and switch input
  size_t capacity;                           // of the arrays; they are kept for the next entries
} weft_links_t;

// Joins the entries and adds faults: colours beyond the machine's, a (tile, colour) that stands twice, dead or missing
// links, outputs that nobody expects, inputs that nothing or more than one output feeds, entries without inputs or
// outputs. Whether a port or a ramp is the right one is the caller's to say. Entries must be well-formed (enums and
// counts in range).
weft_status_t weft_links_join(weft_links_t* links, int32_t count, const weft_router_entry_t* entry);
void weft_links_deinitialize(weft_links_t* links);
int32_t weft_links_find(const weft_links_t* links, int32_t tile, int32_t colour);        // index of the entry, or -1
int32_t weft_links_port(const weft_machine_t* machine, int32_t tile, int32_t direction); // the host port there, or -1
// The entry that output `direction` leads to, or one of the values above.
int32_t weft_links_target(const weft_links_t* links, const weft_router_entry_t* entry, int32_t direction);
