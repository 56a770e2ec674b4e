// Inputs, the event loop, outputs.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

enum { CONTROL_EVENTS = 256 };
static const double PROGRESS_INTERVAL = 0.25; // seconds

static weft_status_t check_io(const weft_sim_t* sim, uint32_t io, bool is_output) {
  if (io >= sim->image->io_count)
    return weft_error(INVALID_ARGUMENT, "no input or output %u; the image has %zu", io, sim->image->io_count);
  if ((sim->image->io[io].is_output != 0) == is_output) return weft_ok();
  return weft_error(INVALID_ARGUMENT, "'%s' is an %s", weft_image_string(sim->image, sim->image->io[io].name),
                    is_output ? "input" : "output");
}

// Zeroed room for `steps` tensors.
static weft_status_t allocate_io(weft_sim_t* sim, size_t index, int64_t steps) {
  weft_sim_io_t* io = &sim->io[index];
  int64_t total;
  weft_allocator_free(sim->allocator, io->data);
  io->data = NULL;
  io->steps = 0;
  if (!weft_checked_mul((int64_t)sim->image->io[index].step_stride, steps, &total))
    return weft_error(INVALID_ARGUMENT, "'%s': %" PRId64 " steps of %" PRIu64 " bytes",
                      weft_image_string(sim->image, sim->image->io[index].name), steps,
                      sim->image->io[index].step_stride);
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(sim->allocator, (size_t)total, 1, (void**)&io->data));
  io->steps = steps;
  return weft_ok();
}

weft_status_t weft_sim_set_input(weft_sim_t* sim, uint32_t io, const void* data, size_t size) {
  WEFT_RETURN_IF_ERROR(check_io(sim, io, false));
  size_t bytes = (size_t)sim->io[io].bytes, stride = (size_t)sim->image->io[io].step_stride;
  if (bytes == 0 ? size != 0 : size == 0 || size % bytes != 0)
    return weft_error(INVALID_ARGUMENT, "input '%s': %zu bytes; one tensor has %zu",
                      weft_image_string(sim->image, sim->image->io[io].name), size, bytes);
  size_t steps = bytes ? size / bytes : 0;
  WEFT_RETURN_IF_ERROR(allocate_io(sim, io, (int64_t)steps));
  for (size_t k = 0; k < steps; ++k) memcpy(sim->io[io].data + k * stride, (const uint8_t*)data + k * bytes, bytes);
  return weft_ok();
}

weft_status_t weft_sim_get_output(const weft_sim_t* sim, uint32_t io, void* data, size_t size) {
  WEFT_RETURN_IF_ERROR(check_io(sim, io, true));
  const char* name = weft_image_string(sim->image, sim->image->io[io].name);
  if (!sim->finished) return weft_error(INVALID_ARGUMENT, "output '%s': nothing has run to its end", name);
  size_t bytes = (size_t)sim->io[io].bytes, stride = (size_t)sim->image->io[io].step_stride;
  if (bytes == 0 ? size != 0 : size % bytes != 0 || size / bytes != (size_t)sim->steps)
    return weft_error(INVALID_ARGUMENT, "output '%s': room for %zu bytes; %" PRId64 " tensors have %zu each", name,
                      size, sim->steps, bytes);
  for (int64_t k = 0; k < sim->steps && bytes > 0; ++k)
    memcpy((uint8_t*)data + (size_t)k * bytes, sim->io[io].data + (size_t)k * stride, bytes);
  return weft_ok();
}

static weft_status_t prepare_io(weft_sim_t* sim) {
  for (size_t i = 0; i < sim->image->io_count; ++i) {
    if (sim->image->io[i].is_output) {
      WEFT_RETURN_IF_ERROR(allocate_io(sim, i, sim->steps));
    } else if (sim->io[i].bytes > 0 && sim->io[i].steps != sim->steps) {
      return weft_error(INVALID_ARGUMENT, "input '%s' is set for %" PRId64 " steps, the run has %" PRId64,
                        weft_image_string(sim->image, sim->image->io[i].name), sim->io[i].steps, sim->steps);
    }
  }
  return weft_ok();
}

static void reset_slot(weft_sim_t* sim, weft_sim_slot_t* slot) {
  slot->wait = WEFT_SIM_RUNS;
  slot->in_chain = false;
  slot->pc = slot->body = slot->loop = 0;
  slot->step = slot->trip = slot->trips = slot->time = slot->busy = slot->ramp_time = slot->fills = 0;
  slot->energy = 0;
  weft_allocator_free(sim->allocator, slot->memory);
  slot->memory = NULL;
}

static void reset(weft_sim_t* sim) {
  for (int32_t s = 0; s < sim->slot_count; ++s) reset_slot(sim, &sim->slot[s]);
  for (int32_t s = 0; s < sim->source_count; ++s) {
    weft_sim_source_t* source = &sim->source[s];
    source->passed = 0;
    weft_allocator_free(sim->allocator, source->data);
    source->data = NULL;
    source->pending = source->repeats = source->staged = false;
    source->post_time = source->end_time = source->free_time = source->step = 0;
  }
  for (int32_t s = 0; s < sim->sink_count; ++s) {
    weft_sim_sink_t* sink = &sim->sink[s];
    sink->repeats = sink->chained = false;
    sink->first_time = sink->step = sink->posts = sink->done = sink->waited = 0;
  }
  for (int32_t s = 0; s < sim->stream_count; ++s) {
    weft_sim_stream_t* stream = &sim->stream[s];
    stream->launching = false;
    weft_allocator_free(sim->allocator, stream->data);
    stream->data = NULL;
    stream->passed = stream->held = 0;
    stream->next_source = stream->posted_sinks = 0;
    stream->sinks_time = stream->root_time = stream->elements = 0;
  }
  weft_sim_links_reset(sim);
  sim->queue.count = 0;
  sim->sequence = 0;
  sim->now = 0;
  sim->next_progress = 0;
  sim->report = (weft_sim_report_t){.steps = sim->steps};
}

void weft_sim_progress(weft_sim_t* sim) {
  if (!sim->control || !sim->control->progress || sim->host_slot < 0) return;
  double now = weft_control_now();
  if (now < sim->next_progress) return;
  sim->next_progress = now + PROGRESS_INTERVAL;
  const weft_sim_slot_t* host = &sim->slot[sim->host_slot];
  int64_t done = sim->steps;
  for (int32_t s = 0; s < host->sink_count; ++s)
    done = weft_min_i64(done, sim->sink[sim->slot_sinks[host->first_sink + s]].done);
  weft_control_progress(sim->control, "simulate", host->sink_count ? (uint64_t)done : 0, (uint64_t)sim->steps);
}

static weft_status_t run_events(weft_sim_t* sim) {
  for (int32_t s = 0; s < sim->slot_count; ++s)
    WEFT_RETURN_IF_ERROR(weft_sim_queue_push(sim, 0, WEFT_SIM_EVENT_RESUME, s));
  for (uint64_t count = 0; sim->queue.count > 0; ++count) {
    if (count % CONTROL_EVENTS == 0) WEFT_RETURN_IF_ERROR(weft_control_check(sim->control, "simulate"));
    weft_sim_event_t event = weft_sim_queue_pop(sim);
    sim->now = event.time;
    WEFT_RETURN_IF_ERROR(event.kind == WEFT_SIM_EVENT_RESUME ? weft_sim_core_run(sim, event.index)
                                                             : weft_sim_stream_launch(sim, event.index));
  }
  return weft_sim_stuck(sim);
}

weft_status_t weft_sim_run(weft_sim_t* sim, int64_t steps, const weft_control_t* control) {
  if (steps < 1) return weft_error(INVALID_ARGUMENT, "%" PRId64 " steps; a run has at least 1", steps);
  sim->finished = false;
  sim->steps = steps;
  WEFT_RETURN_IF_ERROR(prepare_io(sim));
  reset(sim);
  sim->control = control;
  weft_status_t status = run_events(sim);
  status = weft_status_join(status, weft_sim_work_finish(sim));
  sim->control = NULL;
  if (!status) status = weft_sim_links_settle(sim);
  if (status) return status;
  sim->finished = true;
  weft_control_progress(control, "simulate", (uint64_t)steps, (uint64_t)steps);
  return weft_ok();
}
