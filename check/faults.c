#include "check/faults.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void weft_faults_initialize(weft_allocator_t allocator, weft_faults_t* out_faults) {
  *out_faults = (weft_faults_t){0};
  weft_text_initialize(allocator, &out_faults->text);
}

void weft_faults_add(weft_faults_t* faults, const char* format, ...) {
  if (faults->count++ >= WEFT_FAULTS_SHOWN || faults->status) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  faults->status = weft_text_printf(&faults->text, "%s\n", line);
}

weft_status_t weft_faults_finish(weft_faults_t* faults, const char* what) {
  weft_status_t status = faults->status;
  if (!status && faults->count)
    status = weft_error(INVALID_INPUT, "%s%" PRId64 " fault%s in %s%s", faults->text.data, faults->count,
                        faults->count == 1 ? "" : "s", what,
                        faults->count > WEFT_FAULTS_SHOWN ? "; the first 20 are shown" : "");
  weft_text_deinitialize(&faults->text);
  return status;
}

weft_check_place_t weft_check_place(const weft_machine_t* machine, int64_t tile) {
  weft_check_place_t place;
  if (tile < 0)
    snprintf(place.text, sizeof(place.text), "the host");
  else
    snprintf(place.text, sizeof(place.text), "tile (%" PRId64 ", %" PRId64 ")", tile % machine->width,
             tile / machine->width);
  return place;
}

weft_check_place_t weft_check_point(const int64_t* coordinate, int32_t rank) {
  weft_check_place_t place;
  size_t used = (size_t)snprintf(place.text, sizeof(place.text), "[");
  for (int32_t i = 0; i < rank && used < sizeof(place.text); ++i)
    used += (size_t)snprintf(place.text + used, sizeof(place.text) - used, "%s%" PRId64, i ? ", " : "", coordinate[i]);
  if (used < sizeof(place.text)) snprintf(place.text + used, sizeof(place.text) - used, "]");
  return place;
}
