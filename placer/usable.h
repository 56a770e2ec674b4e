// Which of the live tiles placement may use. What the host can't reach, or only apart from the rest, is as good as
// dead; and so, while there is room without, are tiles whose streams would all pass through one router.
#pragma once
#include "base/arena.h"
#include "machine/parts.h"

typedef struct weft_usable_t {
  weft_parts_t parts;
  int32_t main;       // of the parts: the largest with a host port
  weft_defects_t map; // borrows the links from the defects it was made of; dead_tile is its own, 1 for what is left out
} weft_usable_t;

// The map's tiles lie in `arena` and are not chosen yet. DOES_NOT_FIT when no host port can reach a live tile. The
// parts are freed by weft_usable_deinitialize, on success only.
weft_status_t weft_usable_initialize(const weft_machine_t* machine, const weft_defects_t* defects, weft_arena_t* arena,
                                     weft_usable_t* out_usable);
void weft_usable_deinitialize(weft_usable_t* usable);

// Each of these chooses the map's tiles anew, from many to few.
// The whole main part.
void weft_usable_main_part(const weft_machine_t* machine, weft_usable_t* usable);
// Without what hangs on it by a single tile (weft_parts_core); *out_smaller: that leaves something out.
weft_status_t weft_usable_core(const weft_machine_t* machine, const weft_defects_t* defects, weft_usable_t* usable,
                               bool* out_smaller);
// Of the map as it is, only tiles of live squares of two by two, the most of them that hang together.
weft_status_t weft_usable_wide(const weft_machine_t* machine, weft_arena_t* arena, weft_usable_t* usable);

// Says in a DOES_NOT_FIT how the mesh is split, if it is; returns all others, and OK, as they are.
weft_status_t weft_usable_explain(weft_status_t status, const weft_usable_t* usable, weft_allocator_t allocator);
