// What the parts of weft_check_image share.
#pragma once
#include "backend/image.h"
#include "backend/isa.h"
#include "check/links.h"

// What the instructions of a tile send or take on a colour, for one input of the run.
typedef struct weft_check_flow_t {
  int64_t elements;
  int32_t instructions; // 0: none
  weft_dtype_e dtype;
} weft_check_flow_t;

typedef struct weft_check_image_t {
  const weft_image_t* image;
  weft_allocator_t allocator;
  weft_faults_t* faults;
  weft_machine_t machine;
  weft_defects_t defects;
  weft_router_entry_t* entry;                // the routes
  weft_links_t links;                        // of them
  weft_check_flow_t *sent, *taken;           // of each route: by the tile's program
  weft_check_flow_t *host_sent, *host_taken; // of each host colour
} weft_check_image_t;

// Decodes a tile's program (into words, which has room for the longest one) and adds up what it sends and takes.
void weft_check_image_program(weft_check_image_t* check, const weft_image_tile_t* tile, uint32_t* words);
// Follows the routes from their sources: no loops; what arrives is what is taken; both ends have their instructions.
weft_status_t weft_check_image_flows(weft_check_image_t* check);
