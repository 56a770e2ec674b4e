// When nothing can move: who waits for whom, in as few lines as tell it.
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "runtime-sim/internal.h"

enum {
  MOST_LINES = 12,
  RECENT = 4096 // rectangles that a row may still continue: more only splits the report
};

// A tile that waits. Those that differ in place and time only are one group.
typedef struct waiter_t {
  int32_t kernel; // -1: the host, or none
  bool is_host, sends, halted;
  int32_t colour;
  int32_t peer, peer_kernel;   // receiving: slot whose turn it is to send, or NONE
  int32_t other, other_kernel; // slot that would have to act, or NONE; of both the kernel is what counts
  int32_t x, y;
  int64_t since;
} waiter_t;

typedef struct rectangle_t {
  waiter_t first;
  int32_t x0, y0, x1, y1; // inclusive
  int64_t since;
} rectangle_t;

typedef WEFT_ARRAY(waiter_t) waiters_t;
typedef WEFT_ARRAY(rectangle_t) rectangles_t;

static int compare_int(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_groups(const waiter_t* a, const waiter_t* b) {
  int order = compare_int(a->is_host, b->is_host);
  if (!order) order = compare_int(a->kernel, b->kernel);
  if (!order) order = compare_int(a->halted, b->halted);
  if (!order) order = compare_int(a->sends, b->sends);
  if (!order) order = compare_int(a->colour, b->colour);
  if (!order) order = compare_int(a->peer_kernel, b->peer_kernel);
  if (!order) order = compare_int(a->other_kernel, b->other_kernel);
  return order;
}

static int compare_waiters(const void* a, const void* b) {
  const waiter_t *p = a, *q = b;
  int order = compare_groups(p, q);
  if (!order) order = compare_int(p->y, q->y);
  if (!order) order = compare_int(p->x, q->x);
  return order;
}

static int32_t kernel_of(const weft_sim_t* sim, int32_t slot) {
  return slot < 0 ? -2 : sim->slot[slot].tile->kernel;
}

// A sink of the stream that hasn't posted, or else the source whose turn it is.
static int32_t culprit(const weft_sim_t* sim, const weft_sim_stream_t* stream) {
  for (int32_t s = 0; s < stream->sink_count && stream->posted_sinks < stream->sink_count; ++s)
    if (!weft_sim_is_posted(&sim->sink[stream->first_sink + s])) return sim->sink[stream->first_sink + s].slot;
  return sim->source[stream->first_source + stream->next_source].slot;
}

static waiter_t waiter_of(const weft_sim_t* sim, int32_t slot_index, bool sends, int32_t endpoint) {
  const weft_sim_slot_t* slot = &sim->slot[slot_index];
  int32_t stream = sends ? sim->source[endpoint].stream : sim->sink[endpoint].stream, tile = slot->tile->tile;
  const weft_sim_stream_t* s = &sim->stream[stream];
  waiter_t waiter = {.kernel = slot->tile->kernel,
                     .is_host = weft_sim_is_host(sim, slot_index),
                     .sends = sends,
                     .halted = slot->wait == WEFT_SIM_HALTED,
                     .colour = sends ? sim->source[endpoint].colour : sim->sink[endpoint].colour,
                     .peer = sim->source[s->first_source + s->next_source].slot,
                     .other = culprit(sim, s),
                     .since = slot->time};
  waiter.peer_kernel = kernel_of(sim, waiter.peer);
  waiter.other_kernel = kernel_of(sim, waiter.other);
  if (!waiter.is_host) {
    waiter.x = tile % sim->machine.width;
    waiter.y = tile / sim->machine.width;
  }
  return waiter;
}

static weft_status_t collect(const weft_sim_t* sim, waiters_t* waiters) {
  for (int32_t s = 0; s < sim->slot_count; ++s) {
    const weft_sim_slot_t* slot = &sim->slot[s];
    if (slot->wait != WEFT_SIM_HALTED)
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(sim->allocator, waiters,
                                           waiter_of(sim, s, slot->wait == WEFT_SIM_WAITS_SEND, slot->waits_for)));
    if (slot->wait != WEFT_SIM_HALTED) continue;
    // What a tile has posted and not waited for.
    for (int32_t i = 0; i < slot->source_count; ++i) {
      int32_t source = sim->slot_sources[slot->first_source + i];
      if (sim->source[source].pending)
        WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(sim->allocator, waiters, waiter_of(sim, s, true, source)));
    }
    for (int32_t i = 0; i < slot->sink_count; ++i) {
      int32_t sink = sim->slot_sinks[slot->first_sink + i];
      // A receive posted ahead for a step that never comes is nobody's fault.
      if (weft_sim_is_posted(&sim->sink[sink]) && sim->sink[sink].done < sim->steps)
        WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(sim->allocator, waiters, waiter_of(sim, s, false, sink)));
    }
  }
  return weft_ok();
}

// Runs of neighbours in a row first; equal runs in consecutive rows become one rectangle.
static weft_status_t find_rectangles(const weft_sim_t* sim, const waiters_t* waiters, rectangles_t* rectangles) {
  size_t group = 0; // first rectangle of this group
  for (size_t i = 0; i < waiters->count;) {
    const waiter_t* first = &waiters->data[i];
    rectangle_t run = {.first = *first, .x0 = first->x, .x1 = first->x, .y0 = first->y, .y1 = first->y};
    if (i > 0 && compare_groups(first - 1, first) != 0) group = rectangles->count;
    run.since = first->since;
    for (++i; i < waiters->count; ++i) {
      const waiter_t* next = &waiters->data[i];
      if (compare_groups(first, next) != 0 || next->y != run.y0 || next->x != run.x1 + 1) break;
      run.x1 = next->x;
      run.since = weft_min_i64(run.since, next->since);
    }
    rectangle_t* above = NULL;
    size_t start = rectangles->count > group + RECENT ? rectangles->count - RECENT : group;
    for (size_t r = start; r < rectangles->count && !above; ++r) {
      rectangle_t* other = &rectangles->data[r];
      if (other->x0 == run.x0 && other->x1 == run.x1 && other->y1 + 1 == run.y0) above = other;
    }
    if (above) {
      above->y1 = run.y0;
      above->since = weft_min_i64(above->since, run.since);
    } else {
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(sim->allocator, rectangles, run));
    }
  }
  return weft_ok();
}

static const char* kernel_name(const weft_sim_t* sim, int32_t kernel) {
  return kernel < 0 ? "" : weft_image_string(sim->image, sim->image->kernels[kernel].name);
}

static const char* party_name(const weft_sim_t* sim, int32_t slot) {
  if (slot < 0) return "a tile without a program";
  if (weft_sim_is_host(sim, slot)) return "the host";
  const char* name = kernel_name(sim, sim->slot[slot].tile->kernel);
  return *name ? name : "a tile without a kernel";
}

static weft_status_t print_rectangle(const weft_sim_t* sim, const rectangle_t* r, weft_text_t* text) {
  const waiter_t* w = &r->first;
  if (w->is_host) {
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n  the host"));
  } else {
    const char* name = kernel_name(sim, w->kernel);
    bool one = r->x0 == r->x1 && r->y0 == r->y1;
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n  %.60s%s", name, *name ? ": " : ""));
    WEFT_RETURN_IF_ERROR(one ? weft_text_printf(text, "tile (%d,%d)", r->x0, r->y0)
                             : weft_text_printf(text, "%dx%d tiles at (%d,%d)..(%d,%d)", r->x1 - r->x0 + 1,
                                                r->y1 - r->y0 + 1, r->x0, r->y0, r->x1, r->y1));
  }
  bool several = !w->is_host && (r->x0 != r->x1 || r->y0 != r->y1);
  const char* verb = w->halted ? (several ? "halted and still have" : "halted and still has")
                     : several ? "wait"
                               : "waits";
  const char* what = w->halted ? (w->sends ? "a send" : "a receive") : (w->sends ? "to send" : "to receive");
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, " %s %s on colour %d", verb, what, w->colour));
  if (!w->sends) WEFT_RETURN_IF_ERROR(weft_text_printf(text, " from %.60s", party_name(sim, w->peer)));
  if (w->sends || w->other_kernel != w->peer_kernel)
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, ", held up by %.60s,", party_name(sim, w->other)));
  return weft_text_printf(text, " since cycle %" PRId64, r->since);
}

static weft_status_t print_all(const weft_sim_t* sim, const waiters_t* waiters, const rectangles_t* rectangles,
                               weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "nothing can move at cycle %" PRId64 ": %zu ends of streams wait",
                                        sim->now, waiters->count));
  for (size_t r = 0; r < rectangles->count; ++r) {
    if (r == MOST_LINES)
      return weft_text_printf(text, "\n  and %zu more groups of tiles", rectangles->count - MOST_LINES);
    WEFT_RETURN_IF_ERROR(print_rectangle(sim, &rectangles->data[r], text));
  }
  return weft_ok();
}

weft_status_t weft_sim_stuck(const weft_sim_t* sim) {
  waiters_t waiters = {0};
  rectangles_t rectangles = {0};
  weft_text_t text;
  weft_text_initialize(sim->allocator, &text);
  weft_status_t status = collect(sim, &waiters);
  if (!status && waiters.count > 0) {
    qsort(waiters.data, waiters.count, sizeof(*waiters.data), compare_waiters);
    status = find_rectangles(sim, &waiters, &rectangles);
    if (!status) status = print_all(sim, &waiters, &rectangles, &text);
    if (!status) status = weft_error(DEADLOCK, "%s", text.data);
  }
  weft_text_deinitialize(&text);
  WEFT_ARRAY_FREE(sim->allocator, &rectangles);
  WEFT_ARRAY_FREE(sim->allocator, &waiters);
  return status;
}
