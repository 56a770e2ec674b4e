// A binary heap of events. Two at one time come out in the order they went in, so that a run never depends on the heap.
#include "base/array.h"
#include "runtime-sim/internal.h"

static bool is_before(const weft_sim_event_t* a, const weft_sim_event_t* b) {
  return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

weft_status_t weft_sim_queue_push(weft_sim_t* sim, int64_t time, weft_sim_event_kind_e kind, int32_t index) {
  if (time < sim->now) time = sim->now;
  if (time > WEFT_SIM_MAX_CYCLES) return weft_error(INVALID_INPUT, "the run takes more than 2^60 cycles");
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(sim->allocator, &sim->queue, sim->queue.count + 1));
  weft_sim_event_t event = {time, sim->sequence++, (int32_t)kind, index};
  weft_sim_event_t* heap = sim->queue.data;
  size_t at = sim->queue.count++;
  for (; at > 0 && is_before(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = event;
  return weft_ok();
}

weft_sim_event_t weft_sim_queue_pop(weft_sim_t* sim) {
  weft_sim_event_t* heap = sim->queue.data;
  weft_sim_event_t first = heap[0], last = heap[--sim->queue.count];
  size_t count = sim->queue.count, at = 0;
  while (2 * at + 1 < count) {
    size_t child = 2 * at + 1;
    if (child + 1 < count && is_before(&heap[child + 1], &heap[child])) ++child;
    if (!is_before(&heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  if (count > 0) heap[at] = last;
  return first;
}
