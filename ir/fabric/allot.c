// Colours for the edges: which of their groupings each edge gets.
#include <math.h>

#include "base/checked.h"
#include "ir/fabric/grouping.h"

// Of a kernel's region.
typedef struct purse_t {
  int32_t edges_in, edges_out;
  double colours; // of the groupings chosen so far, in the mean router
} purse_t;
typedef struct allot_t {
  weft_stream_builder_t* builder;
  purse_t* purse; // [kernels]
  double room;    // colours of a router that data streams of its own kernel may have
} allot_t;

static weft_grouping_t* option_of(const allot_t* a, const weft_stream_edge_t* edge, int32_t option) {
  return &a->builder->options.data[edge->first_option + option];
}

// Cycles from one input to the next that a kernel takes when each of its edges takes so many. The edges that end at it
// share the ramps and links of its tiles, and so do those that begin there. Without second buffers nothing overlaps.
static double interval(const allot_t* a, int32_t kernel, double time) {
  if (kernel < 0) return time;
  const weft_kernel_t* k = &a->builder->fabric->kernel[kernel];
  const weft_alternative_t* chosen = &k->alternative[k->chosen];
  int32_t in = a->purse[kernel].edges_in, out = a->purse[kernel].edges_out;
  if (chosen->doubled) return time * (in > out ? in : out);
  return (double)chosen->cycles + time * (in + out);
}

// How long the edge makes the whole take for an input. What comes back to its own kernel does so once a trip.
static double urgency(const allot_t* a, const weft_stream_edge_t* edge, int32_t option) {
  double time = (double)option_of(a, edge, option)->time;
  if (edge->source_kernel >= 0 && edge->source_kernel == edge->sink_kernel) {
    const weft_kernel_t* kernel = &a->builder->fabric->kernel[edge->source_kernel];
    for (int32_t d = 0; d < kernel->dim_count; ++d)
      if (kernel->dim[d].kind == WEFT_DIM_SEQUENTIAL) time *= (double)kernel->dim[d].extent;
    return time;
  }
  return fmax(interval(a, edge->source_kernel, time), interval(a, edge->sink_kernel, time));
}

static void pay(allot_t* a, const weft_stream_edge_t* edge, int32_t option, double sign) {
  const weft_grouping_t* grouping = option_of(a, edge, option);
  if (edge->source_kernel >= 0) a->purse[edge->source_kernel].colours += sign * grouping->source_colours;
  if (edge->sink_kernel >= 0) a->purse[edge->sink_kernel].colours += sign * grouping->sink_colours;
}

// Where a kernel has too many edges even for the cheapest groupings, what asks for no more is still allowed.
static bool affordable(const allot_t* a, const weft_stream_edge_t* edge, int32_t option) {
  const weft_grouping_t *now = option_of(a, edge, edge->chosen), *then = option_of(a, edge, option);
  double source = then->source_colours - now->source_colours, sink = then->sink_colours - now->sink_colours;
  if (edge->source_kernel >= 0 && edge->source_kernel == edge->sink_kernel) source = sink = source + sink;
  return (edge->source_kernel < 0 || source <= 0 || a->purse[edge->source_kernel].colours + source <= a->room) &&
         (edge->sink_kernel < 0 || sink <= 0 || a->purse[edge->sink_kernel].colours + sink <= a->room);
}

static void improve(allot_t* a, weft_stream_edge_t* edge, double level) {
  if (urgency(a, edge, edge->chosen) <= level) return;
  for (int32_t option = edge->chosen + 1; option < edge->option_count; ++option) {
    if (urgency(a, edge, option) > level) continue;
    if (!affordable(a, edge, option)) continue;
    pay(a, edge, edge->chosen, -1);
    pay(a, edge, option, 1);
    edge->chosen = option;
    return;
  }
}

static void count_edges(allot_t* a) {
  for (size_t e = 0; e < a->builder->edges.count; ++e) {
    const weft_stream_edge_t* edge = &a->builder->edges.data[e];
    if (edge->source_kernel >= 0) ++a->purse[edge->source_kernel].edges_out;
    if (edge->sink_kernel >= 0) ++a->purse[edge->sink_kernel].edges_in;
  }
}

// A level sinks over the times of the streams, from the longest to the slowest kernel's; what is above it is made
// faster while both ends can pay.
static void sink_level(allot_t* a) {
  enum { STEP_PER_CENT = 90 };
  double level = 0, target = (double)a->builder->target;
  for (size_t e = 0; e < a->builder->edges.count; ++e) {
    weft_stream_edge_t* edge = &a->builder->edges.data[e];
    edge->chosen = 0;
    if (!edge->option_count) continue;
    pay(a, edge, 0, 1);
    double time = urgency(a, edge, 0);
    if (time > level) level = time;
  }
  while (level > target) {
    level = level * STEP_PER_CENT / 100 > target ? level * STEP_PER_CENT / 100 : target;
    for (size_t e = 0; e < a->builder->edges.count; ++e)
      if (a->builder->edges.data[e].option_count) improve(a, &a->builder->edges.data[e], level);
  }
}

weft_status_t weft_grouping_allot(weft_stream_builder_t* builder) {
  // Half of the colours are left to chains, to streams that pass by, and to what trees take beyond the mean.
  allot_t a = {.builder = builder, .room = builder->share * builder->machine->colours / 2};
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(builder->allocator, (size_t)builder->fabric->kernel_count + 1,
                                             sizeof(*a.purse), (void**)&a.purse));
  count_edges(&a);
  sink_level(&a);
  weft_allocator_free(builder->allocator, a.purse);
  return weft_ok();
}
