// Reduce chains: every tile but the owner hands on to the next one, by exactly one stream. And the wait graph.
#include <inttypes.h>

#include "base/array.h"
#include "check/check_parts.h"

// Where each logical tile of each kernel has its place in one array.
static weft_status_t number_tiles(const weft_check_t* c, int32_t** out_first, int32_t* out_count) {
  int64_t count = 0;
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(c->allocator, (size_t)c->fabric->kernel_count, sizeof(**out_first), (void**)out_first));
  for (int32_t k = 0; k < c->fabric->kernel_count; ++k) {
    (*out_first)[k] = (int32_t)count;
    count += weft_check_tile_count(&c->fabric->kernel[k]); // no more than the mesh has: each is used once
  }
  *out_count = (int32_t)count;
  return weft_ok();
}

static void check_hop(const weft_check_t* c, const weft_stream_t* stream) {
  const weft_kernel_t* kernel = &c->fabric->kernel[stream->source_kernel];
  int32_t from = stream->source->logical, to = stream->sink->logical;
  if (kernel->reduce_operation < 0) {
    weft_faults_add(c->faults, "%s: the kernel has nothing to reduce", WEFT_CHECK_LABEL(c, stream));
    return;
  }
  int32_t next = weft_check_chain_next(kernel, from);
  if (to != next)
    weft_faults_add(c->faults, "%s: goes from %s to %s, not to the next tile of the chain", WEFT_CHECK_LABEL(c, stream),
                    weft_check_place(c->machine, kernel->tile[from]).text,
                    weft_check_place(c->machine, kernel->tile[to]).text);
  int32_t partial = kernel->operation[kernel->reduce_operation].destination;
  weft_box_t box = weft_check_buffer_box(kernel, partial, from);
  int64_t elements = weft_check_box_elements(&box);
  if (stream->elements != elements || stream->source->elements != elements || stream->sink->elements != elements)
    weft_faults_add(c->faults, "%s: carries %" PRId64 " elements, '%s' has %" PRId64 " on %s",
                    WEFT_CHECK_LABEL(c, stream), stream->elements, kernel->buffer[partial].name, elements,
                    weft_check_place(c->machine, kernel->tile[from]).text);
  if (stream->wavelets != weft_machine_wavelets(c->machine, stream->dtype, elements))
    weft_faults_add(c->faults, "%s: %" PRId64 " elements of %s are %" PRId64 " wavelets, it says %" PRId64,
                    WEFT_CHECK_LABEL(c, stream), elements, weft_dtype_name(stream->dtype),
                    weft_machine_wavelets(c->machine, stream->dtype, elements), stream->wavelets);
  if (stream->dtype != kernel->buffer[partial].dtype)
    weft_faults_add(c->faults, "%s: carries %s, '%s' holds %s", WEFT_CHECK_LABEL(c, stream),
                    weft_dtype_name(stream->dtype), kernel->buffer[partial].name,
                    weft_dtype_name(kernel->buffer[partial].dtype));
}

weft_status_t weft_check_chains(const weft_check_t* c) {
  int32_t *first = NULL, *hops = NULL, tiles = 0;
  weft_status_t status = number_tiles(c, &first, &tiles);
  if (!status) status = weft_allocator_calloc(c->allocator, (size_t)tiles, sizeof(*hops), (void**)&hops);
  for (int32_t i = 0; !status && i < c->fabric->stream_count; ++i) {
    const weft_stream_t* stream = &c->fabric->stream[i];
    if (stream->kind != WEFT_STREAM_CHAIN) continue;
    check_hop(c, stream);
    hops[first[stream->source_kernel] + stream->source->logical]++;
  }
  for (int32_t k = 0; !status && k < c->fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &c->fabric->kernel[k];
    int32_t count = weft_check_tile_count(kernel);
    for (int32_t i = 0; i < count; ++i) {
      int32_t expected = weft_check_is_owner(kernel, i) ? 0 : 1, actual = hops[first[k] + i];
      if (actual != expected)
        weft_faults_add(c->faults, "kernel '%s': %s hands on %" PRId32 " times in its reduce chain, expected %" PRId32,
                        kernel->name, weft_check_place(c->machine, kernel->tile[i]).text, actual, expected);
    }
  }
  weft_allocator_free(c->allocator, first);
  weft_allocator_free(c->allocator, hops);
  return status;
}

// Kahn's algorithm: whoever waits for nobody is done, and then nobody waits for him.
weft_status_t weft_check_stuck(weft_allocator_t allocator, int32_t node_count, size_t edge_count,
                               const weft_check_edge_t* edge, bool* out_stuck, bool* out_any) {
  // The edges of node n are in the slots begin[n]..begin[n + 1].
  size_t *begin = NULL, *waits = NULL, done = 0;
  int32_t *target = NULL, *queue = NULL;
  size_t nodes = (size_t)node_count;
  weft_status_t status = weft_allocator_calloc(allocator, nodes + 2, sizeof(*begin), (void**)&begin);
  if (!status) status = weft_allocator_calloc(allocator, nodes, sizeof(*waits), (void**)&waits);
  if (!status) status = weft_allocator_calloc(allocator, nodes, sizeof(*queue), (void**)&queue);
  if (!status) status = weft_allocator_calloc(allocator, edge_count, sizeof(*target), (void**)&target);
  if (!status) {
    for (size_t i = 0; i < edge_count; ++i) {
      begin[edge[i].from + 2]++;
      waits[edge[i].to]++;
    }
    for (size_t n = 0; n < nodes; ++n) begin[n + 2] += begin[n + 1];
    for (size_t i = 0; i < edge_count; ++i) target[begin[edge[i].from + 1]++] = edge[i].to;
    size_t queued = 0;
    for (size_t n = 0; n < nodes; ++n)
      if (waits[n] == 0) queue[queued++] = (int32_t)n;
    for (; done < queued; ++done)
      for (size_t i = begin[queue[done]]; i < begin[queue[done] + 1]; ++i)
        if (--waits[target[i]] == 0) queue[queued++] = target[i];
    for (size_t n = 0; n < nodes; ++n) out_stuck[n] = waits[n] > 0;
  }
  *out_any = done < nodes;
  weft_allocator_free(allocator, begin);
  weft_allocator_free(allocator, waits);
  weft_allocator_free(allocator, queue);
  weft_allocator_free(allocator, target);
  return status;
}

// Who waits, within a step, for whose data: all tiles of a kernel for all tiles of the kernels that feed it, and a tile
// for the one before it in its chain. What a kernel sends back to itself comes from the trip of its loop before: every
// tile posts its receive and its send before it waits for either, and all make equally many trips. That is enough:
// sends never hold up each other, every receive of a step is posted before it needs another, and a step begins when
// the one before it has ended on this tile; so if no step waits for itself, a later step waits for earlier ones only.
weft_status_t weft_check_waits(const weft_check_t* c) {
  const weft_fabric_t* fabric = c->fabric;
  int32_t *first = NULL, tiles = 0;
  bool *stuck = NULL, any = false;
  WEFT_ARRAY(weft_check_edge_t) data = {0}, chain = {0};
  weft_status_t status = number_tiles(c, &first, &tiles);
  for (int32_t i = 0; !status && i < fabric->stream_count; ++i) {
    const weft_stream_t* stream = &fabric->stream[i];
    weft_check_edge_t edge = {stream->source_kernel, stream->sink_kernel};
    if (stream->kind == WEFT_STREAM_CHAIN) {
      edge = (weft_check_edge_t){first[edge.from] + stream->source->logical, first[edge.to] + stream->sink->logical};
      status = WEFT_ARRAY_PUSH(c->allocator, &chain, edge);
    } else if (edge.from != WEFT_HOST_KERNEL && edge.to != WEFT_HOST_KERNEL && !weft_stream_is_feedback(stream)) {
      status = WEFT_ARRAY_PUSH(c->allocator, &data, edge);
    }
  }
  int32_t most = tiles > fabric->kernel_count ? tiles : fabric->kernel_count;
  if (!status) status = weft_allocator_calloc(c->allocator, (size_t)most, sizeof(*stuck), (void**)&stuck);
  if (!status) status = weft_check_stuck(c->allocator, fabric->kernel_count, data.count, data.data, stuck, &any);
  for (int32_t k = 0; !status && any && k < fabric->kernel_count; ++k)
    if (stuck[k]) weft_faults_add(c->faults, "kernel '%s' waits, through others, for itself", fabric->kernel[k].name);
  if (!status) status = weft_check_stuck(c->allocator, tiles, chain.count, chain.data, stuck, &any);
  for (int32_t k = 0; !status && any && k < fabric->kernel_count; ++k)
    for (int32_t i = 0; i < weft_check_tile_count(&fabric->kernel[k]); ++i)
      if (stuck[first[k] + i])
        weft_faults_add(c->faults, "kernel '%s': %s waits, along its reduce chain, for itself", fabric->kernel[k].name,
                        weft_check_place(c->machine, fabric->kernel[k].tile[i]).text);
  weft_allocator_free(c->allocator, first);
  weft_allocator_free(c->allocator, stuck);
  WEFT_ARRAY_FREE(c->allocator, &data);
  WEFT_ARRAY_FREE(c->allocator, &chain);
  return status;
}
