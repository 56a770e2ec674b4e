// Which tiles and links are dead. A map has a digest, and whatever was compiled for it carries that digest.
#pragma once
#include "machine/machine.h"

typedef struct weft_defects_t {
  int32_t width, height;
  uint8_t* dead_tile;   // [tiles] 0 or 1
  uint16_t* dead_links; // [tiles] bit d: the link in direction d is dead; symmetric; none at dead tiles
  int32_t dead_tile_count;
  int32_t dead_link_count; // undirected, not counting links of dead tiles
  weft_allocator_t allocator;
} weft_defects_t;

// spec: NULL or "" or "none" (no defects), "rate=0.05,seed=7[,links=0.001]" (independent dead tiles; exactly reproducible),
// or a path of a text file with lines `tile X Y`, `row Y [X0 X1]`, `column X [Y0 Y1]`, `rect X0 Y0 X1 Y1` (inclusive),
// `link X Y E`, `rate R seed S [links L]`, and # comments. A file's error names path and line.
weft_status_t weft_defects_load(weft_allocator_t allocator, const char* spec, const weft_machine_t* machine,
                                weft_defects_t* out_defects);
void weft_defects_deinitialize(weft_defects_t* defects);
weft_status_t weft_defects_create(weft_allocator_t allocator, const weft_machine_t* machine, weft_defects_t* out_defects);
void weft_defects_kill_tile(weft_defects_t* defects, int32_t tile);
void weft_defects_kill_link(const weft_machine_t* machine, weft_defects_t* defects, int32_t tile, weft_direction_e direction);

static inline bool weft_defects_live(const weft_defects_t* d, int32_t tile) { return !d->dead_tile[tile]; }
// True when both ends are live tiles and the link is not dead. RAMP: the tile is live.
bool weft_defects_link_live(const weft_machine_t* machine, const weft_defects_t* defects, int32_t tile,
                            weft_direction_e direction);
weft_digest_t weft_defects_digest(const weft_defects_t* defects);
// The canonical file text (tile and link lines in index order), which loads back to the same map.
weft_status_t weft_defects_print(const weft_defects_t* defects, weft_text_t* text);
weft_status_t weft_defects_parse(weft_allocator_t allocator, const char* text, size_t size, const char* origin,
                                 const weft_machine_t* machine, weft_defects_t* out_defects);
