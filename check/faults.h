// What is wrong, collected: a checker goes on after a fault, so that one run shows them all.
#pragma once
#include "base/text.h"
#include "machine/machine.h"

enum { WEFT_FAULTS_SHOWN = 20 };

typedef struct weft_faults_t {
  int64_t count;
  weft_text_t text;     // of the first ones, a line each
  weft_status_t status; // out of memory, while collecting
} weft_faults_t;

void weft_faults_initialize(weft_allocator_t allocator, weft_faults_t* out_faults);
void weft_faults_add(weft_faults_t* faults, const char* format, ...) __attribute__((format(printf, 2, 3)));
// OK, or INVALID_INPUT with the faults and their number. Deinitializes.
weft_status_t weft_faults_finish(weft_faults_t* faults, const char* what);

// For messages: where a tile is.
typedef struct weft_check_place_t {
  char text[64];
} weft_check_place_t;
weft_check_place_t weft_check_place(const weft_machine_t* machine, int64_t tile); // "tile (3, 4)", "the host"
weft_check_place_t weft_check_point(const int64_t* coordinate, int32_t rank);     // "[3, 4]"
