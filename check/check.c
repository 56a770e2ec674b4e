#include "check/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "check/check_parts.h"

weft_check_label_t weft_check_stream_label(const weft_fabric_t* fabric, const weft_stream_t* stream) {
  weft_check_label_t label;
  int32_t index = (int32_t)(stream - fabric->stream);
  const char* source = stream->source_kernel < 0 ? "host" : fabric->kernel[stream->source_kernel].name;
  const char* sink = stream->sink_kernel < 0 ? "host" : fabric->kernel[stream->sink_kernel].name;
  if (stream->kind == WEFT_STREAM_CHAIN)
    snprintf(label.text, sizeof(label.text), "stream %" PRId32 ", chain of '%s'", index, source);
  else
    snprintf(label.text, sizeof(label.text), "stream %" PRId32 " of '%s', '%s' -> '%s'", index,
             fabric->tensor[stream->tensor].name, source, sink);
  return label;
}

int32_t weft_check_physical(const weft_fabric_t* fabric, int32_t kernel, int32_t logical) {
  return kernel == WEFT_HOST_KERNEL ? -1 : fabric->kernel[kernel].tile[logical];
}

// The parts in order. What is off the mesh would be indexed by the later ones: they wait until that is mended.
static weft_status_t check_parts(const weft_check_t* check) {
  WEFT_RETURN_IF_ERROR(weft_check_placed(check));
  if (check->faults->count) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_check_sources(check));
  WEFT_RETURN_IF_ERROR(weft_check_arrivals(check));
  WEFT_RETURN_IF_ERROR(weft_check_chains(check));
  WEFT_RETURN_IF_ERROR(weft_check_waits(check));
  return check->fabric->stage < WEFT_STAGE_ROUTED ? weft_ok() : weft_check_routes(check);
}

weft_status_t weft_check_fabric(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                const weft_defects_t* defects) {
  WEFT_RETURN_IF_ERROR(weft_fabric_verify(fabric));
  if (fabric->stage < WEFT_STAGE_PLACED) return weft_ok();
  if (defects->width != machine->width || defects->height != machine->height)
    return weft_error(INVALID_ARGUMENT, "the defect map is %" PRId32 "x%" PRId32 ", the machine %" PRId32 "x%" PRId32,
                      defects->width, defects->height, machine->width, machine->height);
  weft_faults_t faults;
  weft_faults_initialize(fabric->arena.allocator, &faults);
  weft_check_t check = {fabric, machine, defects, fabric->arena.allocator, &faults};
  weft_status_t status = check_parts(&check);
  return weft_status_join(
      status,
      weft_faults_finish(&faults, fabric->stage < WEFT_STAGE_ROUTED ? "the placed network" : "the routed network"));
}
