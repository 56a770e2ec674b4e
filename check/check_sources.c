// What a stream carries is what its sources hold: segment by segment, in closed form.
#include <inttypes.h>

#include "base/checked.h"
#include "check/check_parts.h"

// The part of the walk that one source sends: the digits of the source levels are fixed.
typedef struct segment_t {
  int64_t elements;
  weft_box_t hull; // when there are elements
} segment_t;

static bool measure_segment(const weft_walk_t* walk, int64_t source, segment_t* out_segment) {
  int64_t base[WEFT_MAX_RANK] = {0};
  segment_t segment = {.elements = 1, .hull = {.rank = walk->box.rank}};
  for (int32_t i = walk->source_levels; i-- > 0; source /= walk->level[i].extent)
    base[walk->level[i].dim] += source % walk->level[i].extent * walk->level[i].step;
  for (int32_t d = 0; d < walk->box.rank; ++d) {
    weft_check_term_t term[WEFT_MAX_LEVELS];
    weft_check_sums_t sums;
    int32_t count = 0;
    for (int32_t i = walk->source_levels; i < walk->level_count; ++i)
      if (walk->level[i].dim == d) term[count++] = (weft_check_term_t){walk->level[i].extent, walk->level[i].step};
    if (!weft_check_sums(term, count, base[d], walk->box.lo[d], walk->box.hi[d], &sums)) return false;
    if (!weft_checked_mul(segment.elements, sums.count, &segment.elements)) return false;
    segment.hull.lo[d] = sums.least;
    segment.hull.hi[d] = sums.most + 1;
  }
  *out_segment = segment;
  return true;
}

static bool box_inside(const weft_box_t* inner, const weft_box_t* outer) {
  for (int32_t d = 0; d < inner->rank; ++d)
    if (inner->lo[d] < outer->lo[d] || inner->hi[d] > outer->hi[d]) return false;
  return true;
}

static void check_segment(const weft_check_t* c, const weft_stream_t* stream, const weft_endpoint_t* source,
                          const segment_t* segment) {
  int32_t tile = weft_check_physical(c->fabric, stream->source_kernel, source->logical);
  if (source->elements != segment->elements)
    weft_faults_add(c->faults, "%s: %s sends %" PRId64 " elements, its segment has %" PRId64,
                    WEFT_CHECK_LABEL(c, stream), weft_check_place(c->machine, tile).text, source->elements,
                    segment->elements);
  weft_box_t held = weft_check_held_box(c->fabric, stream->tensor, source->logical);
  if (!box_inside(&segment->hull, &held))
    weft_faults_add(c->faults, "%s: %s sends elements from %s on, but holds those from %s on",
                    WEFT_CHECK_LABEL(c, stream), weft_check_place(c->machine, tile).text,
                    weft_check_point(segment->hull.lo, segment->hull.rank).text,
                    weft_check_point(held.lo, held.rank).text);
}

static void check_data(const weft_check_t* c, const weft_stream_t* stream) {
  const weft_walk_t* walk = &stream->walk;
  int64_t segments = 1, elements = 0, wavelets = 0;
  int32_t next = 0;
  for (int32_t i = 0; i < walk->source_levels; ++i) segments *= walk->level[i].extent;
  for (int64_t s = 0; s < segments; ++s) {
    segment_t segment;
    if (!measure_segment(walk, s, &segment)) {
      weft_faults_add(c->faults, "%s: its walk is too irregular to be counted", WEFT_CHECK_LABEL(c, stream));
      return;
    }
    if (segment.elements == 0) continue;
    if (next == stream->source_count) {
      weft_faults_add(c->faults, "%s: its walk has more segments than its %" PRId32 " sources",
                      WEFT_CHECK_LABEL(c, stream), next);
      return;
    }
    check_segment(c, stream, &stream->source[next++], &segment);
    elements += segment.elements;
    wavelets += weft_machine_wavelets(c->machine, stream->dtype, segment.elements);
  }
  if (next < stream->source_count)
    weft_faults_add(c->faults, "%s: its walk has %" PRId32 " segments for its %" PRId32 " sources",
                    WEFT_CHECK_LABEL(c, stream), next, stream->source_count);
  if (elements != stream->elements || wavelets != stream->wavelets)
    weft_faults_add(c->faults,
                    "%s: its segments make %" PRId64 " elements in %" PRId64 " wavelets, it says %" PRId64
                    " in %" PRId64,
                    WEFT_CHECK_LABEL(c, stream), elements, wavelets, stream->elements, stream->wavelets);
}

weft_status_t weft_check_sources(const weft_check_t* c) {
  for (int32_t i = 0; i < c->fabric->stream_count; ++i)
    if (c->fabric->stream[i].kind == WEFT_STREAM_DATA) check_data(c, &c->fabric->stream[i]);
  return weft_ok();
}
