// What a stream carries is what its sources hold: segment by segment, in closed form.
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"
#include "check/check_parts.h"

// Along one tensor dimension: for each combination of the digits of its source levels, the coordinates that the
// other levels reach inside the walk's box. A segment is a combination for every dimension.
typedef struct line_t {
  int64_t combinations;
  weft_check_sums_t* sums; // [combinations]
} line_t;

typedef struct segment_t {
  int64_t elements;
  weft_box_t hull;
} segment_t;

typedef struct sources_t {
  const weft_check_t* check;
  const weft_stream_t* stream; // the current one
  line_t line[WEFT_MAX_RANK];
  bool last[WEFT_MAX_LEVELS];         // whether this source level is the last one of its dimension
  int64_t at[WEFT_MAX_RANK];          // combination
  int32_t next;                       // source
  int64_t elements, wavelets;         // so far
  bool excess;                        // more segments than sources
  WEFT_ARRAY(weft_check_sums_t) sums; // of all lines
} sources_t;

enum { MOST_COMBINATIONS = 1 << 24 };

// False: more combinations than anyone would count, or one that can't be counted.
static bool measure_line(const weft_walk_t* walk, int32_t dim, line_t* line) {
  weft_check_term_t term[WEFT_MAX_LEVELS];
  int32_t count = 0;
  for (int32_t i = walk->source_levels; i < walk->level_count; ++i)
    if (walk->level[i].dim == dim) term[count++] = (weft_check_term_t){walk->level[i].extent, walk->level[i].step};
  for (int64_t c = 0; c < line->combinations; ++c) {
    int64_t base = 0, rest = c;
    for (int32_t i = walk->source_levels; i-- > 0;) {
      if (walk->level[i].dim != dim) continue;
      base += rest % walk->level[i].extent * walk->level[i].step;
      rest /= walk->level[i].extent;
    }
    if (!weft_check_sums(term, count, base, walk->box.lo[dim], walk->box.hi[dim], &line->sums[c])) return false;
  }
  return true;
}

static weft_status_t measure_lines(sources_t* s, bool* out_countable) {
  const weft_walk_t* walk = &s->stream->walk;
  int64_t total = 0;
  *out_countable = false;
  for (int32_t d = 0; d < walk->box.rank; ++d) {
    s->line[d].combinations = 1;
    for (int32_t i = 0; i < walk->source_levels; ++i)
      if (walk->level[i].dim == d &&
          !weft_checked_mul(s->line[d].combinations, walk->level[i].extent, &s->line[d].combinations))
        return weft_ok();
    if (!weft_checked_add(total, s->line[d].combinations, &total) || total > MOST_COMBINATIONS) return weft_ok();
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(s->check->allocator, &s->sums, (size_t)total));
  weft_check_sums_t* sums = s->sums.data;
  *out_countable = true;
  for (int32_t d = 0; d < walk->box.rank; ++d) {
    s->line[d].sums = sums;
    sums += s->line[d].combinations;
    *out_countable = *out_countable && measure_line(walk, d, &s->line[d]);
  }
  return weft_ok();
}

// Of the combinations at hand. False: the elements are more than can be counted.
static bool measure_segment(const sources_t* s, segment_t* out_segment) {
  out_segment->elements = 1;
  out_segment->hull.rank = s->stream->walk.box.rank;
  for (int32_t d = 0; d < out_segment->hull.rank; ++d) {
    const weft_check_sums_t* sums = &s->line[d].sums[s->at[d]];
    if (!weft_checked_mul(out_segment->elements, sums->count, &out_segment->elements)) return false;
    out_segment->hull.lo[d] = sums->least;
    out_segment->hull.hi[d] = sums->most + 1;
  }
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

// The segments in the order of the walk, from this source level on. Once all digits of a dimension are fixed and leave
// none of its coordinates, all the segments behind them are empty. False: stops.
static bool visit_segments(sources_t* s, int32_t level) {
  const weft_walk_t* walk = &s->stream->walk;
  if (level < walk->source_levels) {
    int32_t d = walk->level[level].dim;
    int64_t outer = s->at[d] * walk->level[level].extent;
    bool goes_on = true;
    for (int64_t digit = 0; goes_on && digit < walk->level[level].extent; ++digit) {
      s->at[d] = outer + digit;
      if (!s->last[level] || s->line[d].sums[s->at[d]].count) goes_on = visit_segments(s, level + 1);
    }
    s->at[d] = outer / walk->level[level].extent;
    return goes_on;
  }
  segment_t segment;
  if (!measure_segment(s, &segment)) return false;
  if (segment.elements == 0) return true;
  s->excess = s->next == s->stream->source_count;
  if (s->excess) return false;
  check_segment(s->check, s->stream, &s->stream->source[s->next++], &segment);
  s->elements += segment.elements;
  s->wavelets += weft_machine_wavelets(s->check->machine, s->stream->dtype, segment.elements);
  return true;
}

static weft_status_t check_data(sources_t* s) {
  const weft_check_t* c = s->check;
  const weft_stream_t* stream = s->stream;
  bool countable = false;
  WEFT_RETURN_IF_ERROR(measure_lines(s, &countable));
  for (int32_t i = 0; i < stream->walk.source_levels; ++i) {
    s->last[i] = true;
    for (int32_t j = i + 1; j < stream->walk.source_levels; ++j)
      s->last[i] = s->last[i] && stream->walk.level[j].dim != stream->walk.level[i].dim;
  }
  s->next = 0;
  s->elements = s->wavelets = 0;
  s->excess = false;
  memset(s->at, 0, sizeof(s->at));
  bool complete = countable && visit_segments(s, 0);
  if (!complete) {
    if (s->excess)
      weft_faults_add(c->faults, "%s: its walk has more segments than its %" PRId32 " sources",
                      WEFT_CHECK_LABEL(c, stream), s->next);
    else
      weft_faults_add(c->faults, "%s: its walk is too irregular to be counted", WEFT_CHECK_LABEL(c, stream));
    return weft_ok();
  }
  if (s->next < stream->source_count)
    weft_faults_add(c->faults, "%s: its walk has %" PRId32 " segments for its %" PRId32 " sources",
                    WEFT_CHECK_LABEL(c, stream), s->next, stream->source_count);
  if (s->elements != stream->elements || s->wavelets != stream->wavelets)
    weft_faults_add(c->faults,
                    "%s: its segments make %" PRId64 " elements in %" PRId64 " wavelets, it says %" PRId64
                    " in %" PRId64,
                    WEFT_CHECK_LABEL(c, stream), s->elements, s->wavelets, stream->elements, stream->wavelets);
  return weft_ok();
}

weft_status_t weft_check_sources(const weft_check_t* c) {
  sources_t sources = {.check = c};
  weft_status_t status = weft_ok();
  for (int32_t i = 0; !status && i < c->fabric->stream_count; ++i) {
    sources.stream = &c->fabric->stream[i];
    if (sources.stream->kind == WEFT_STREAM_DATA) status = check_data(&sources);
  }
  WEFT_ARRAY_FREE(c->allocator, &sources.sums);
  return status;
}
