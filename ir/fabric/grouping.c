#include "ir/fabric/grouping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

void weft_segments_begin(const weft_walk_t* walk, const weft_box_t* box, weft_segment_t* out_segment) {
  *out_segment = (weft_segment_t){.walk = walk, .box = *box, .unsplit = 1, .done = weft_box_is_empty(box)};
  bool split[WEFT_MAX_RANK] = {false};
  for (int32_t k = 0; k < walk->source_levels; ++k) {
    const weft_walk_level_t* level = &walk->level[k];
    split[level->dim] = true;
    out_segment->first[k] = out_segment->digit[k] = box->lo[level->dim] / level->step;
    out_segment->last[k] = (box->hi[level->dim] - 1) / level->step;
  }
  for (int32_t d = 0; d < box->rank; ++d)
    if (!split[d]) out_segment->unsplit *= box->hi[d] - box->lo[d];
}

bool weft_segment_next(weft_segment_t* segment) {
  if (segment->done) return false;
  segment->source_index = 0;
  segment->elements = segment->unsplit;
  for (int32_t k = 0; k < segment->walk->source_levels; ++k) {
    const weft_walk_level_t* level = &segment->walk->level[k];
    int64_t lo = segment->digit[k] * level->step;
    segment->source_index = segment->source_index * level->extent + segment->digit[k];
    segment->elements *=
        weft_min_i64(segment->box.hi[level->dim], lo + level->step) - weft_max_i64(segment->box.lo[level->dim], lo);
  }
  int32_t k = segment->walk->source_levels - 1;
  for (; k >= 0 && segment->digit[k]++ == segment->last[k]; --k) segment->digit[k] = segment->first[k];
  segment->done = k < 0;
  return true;
}

int32_t weft_grouping_of(const weft_stream_edge_t* edge, const weft_grouping_t* grouping, int32_t cell) {
  return cell / edge->columns / grouping->row_block * grouping->column_groups +
         cell % edge->columns / grouping->column_block;
}

void weft_grouping_boxes(weft_stream_builder_t* b, const weft_stream_edge_t* edge, const weft_grouping_t* grouping) {
  memset(b->used, 0, WEFT_STREAMS_PER_EDGE_MOST * sizeof(*b->used));
  for (size_t i = 0; i < b->cells.count; ++i) {
    const weft_stream_cell_t* cell = &b->cells.data[i];
    if (cell->elements == 0) continue;
    int32_t group = weft_grouping_of(edge, grouping, (int32_t)i);
    b->box[group] = b->used[group] ? weft_box_hull(&b->box[group], &cell->need) : cell->need;
    b->used[group] = true;
  }
}

// How many of the groups' spans cover the place of a gy x gx grid that most do: second differences, summed up.
static int32_t most_cover(weft_stream_builder_t* b, int32_t groups, int32_t gy, int32_t gx) {
  int32_t pitch = gx + 1, *cover = b->cover.data, most = 0; // [gy + 1][pitch]
  memset(cover, 0, (size_t)(gy + 1) * (size_t)pitch * sizeof(*cover));
  for (int32_t g = 0; g < groups; ++g) {
    const weft_span_t* span = &b->span[g];
    if (!b->used[g]) continue;
    ++cover[span->y0 * pitch + span->x0];
    --cover[span->y0 * pitch + span->x1 + 1];
    --cover[(span->y1 + 1) * pitch + span->x0];
    ++cover[(span->y1 + 1) * pitch + span->x1 + 1];
  }
  for (int32_t y = 0; y < gy; ++y) {
    for (int32_t x = 0; x < gx; ++x) {
      int32_t* here = &cover[y * pitch + x];
      if (x) *here += here[-1];
      if (y) *here += here[-pitch];
      if (x && y) *here -= here[-pitch - 1];
      if (*here > most) most = *here;
    }
  }
  return most;
}

// Where the tiles of a group stand in the consumer's grid decides how much of it the group's tree takes: branches along
// its rows and a trunk across them, or the other way round. Trunks find their own ways, so the mean counts.
static double mean_trees(weft_stream_builder_t* b, const weft_stream_edge_t* edge, const weft_grouping_t* grouping) {
  if (edge->sink_kernel == WEFT_HOST_KERNEL) return 0;
  const weft_split_t* split = weft_chosen_split(&b->fabric->kernel[edge->sink_kernel]);
  int64_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count), taken = 0;
  weft_span_t* span = b->span;
  bool* known = b->known;
  int32_t groups = grouping->row_groups * grouping->column_groups;
  memset(known, 0, (size_t)groups * sizeof(*known));
  for (size_t i = 0; i < b->cells.count; ++i) {
    if (!b->cells.data[i].used) continue;
    int32_t group = weft_grouping_of(edge, grouping, (int32_t)i);
    if (known[group])
      weft_span_grow(&span[group], b->cells.data[i].span);
    else
      span[group] = b->cells.data[i].span;
    known[group] = true;
  }
  int64_t rows = grouping->row_block * (gy / edge->rows), columns = grouping->column_block * (gx / edge->columns);
  for (int32_t g = 0; g < groups; ++g) {
    if (!b->used[g] || !known[g]) continue;
    int64_t height = span[g].y1 - span[g].y0 + 1, width = span[g].x1 - span[g].x0 + 1;
    int64_t by_rows = weft_min_i64(rows, height) * width + height;
    int64_t by_columns = weft_min_i64(columns, width) * height + width;
    taken += weft_min_i64(by_rows, by_columns);
  }
  return (double)taken / (double)(gy * gx);
}

// Cycles that links are busy where `streams` streams of up to `longest` wavelets pass a place. Measured on
// cifar10_resnet_4b and digits (docs/decisions.md): among their sources streams get in each other's way somewhat less,
// as a link there carries only what has come together so far.
static int64_t crowd_cycles(int64_t longest, double streams, bool gather) {
  static const double GATHER = 0.7, SPREAD = 1;
  return (int64_t)((gather ? GATHER : SPREAD) * streams * (double)longest);
}

// Fills the grouping's figures. False: some source would have to send too often.
static bool evaluate(weft_stream_builder_t* b, const weft_stream_edge_t* edge, weft_grouping_t* grouping) {
  weft_span_t* span = b->span;
  const bool *used = b->used, host = edge->source_kernel == WEFT_HOST_KERNEL;
  const weft_kernel_t* kernel = host ? NULL : &b->fabric->kernel[edge->source_kernel];
  int32_t gx = host ? 1 : weft_split_grid(weft_chosen_split(kernel)->x, weft_chosen_split(kernel)->x_count);
  int32_t gy = host ? 1 : weft_split_grid(weft_chosen_split(kernel)->y, weft_chosen_split(kernel)->y_count);
  int32_t groups = grouping->row_groups * grouping->column_groups;
  weft_grouping_boxes(b, edge, grouping);
  grouping->sink_colours = mean_trees(b, edge, grouping);
  memset(b->loads.data, 0, b->loads.count * sizeof(weft_source_load_t));
  int64_t longest = 0;
  grouping->time = 0;
  for (int32_t group = 0; group < groups; ++group) {
    if (!used[group]) continue;
    int64_t stream = 0;
    weft_segment_t segment;
    span[group] = (weft_span_t){INT32_MAX, 0, INT32_MAX, 0};
    for (weft_segments_begin(&edge->walk, &b->box[group], &segment); weft_segment_next(&segment);) {
      weft_source_load_t* load = &b->loads.data[segment.source_index];
      int64_t wavelets = weft_machine_wavelets(b->machine, edge->tensor->dtype, segment.elements);
      stream += wavelets;
      if (host) continue; // which has a port, not a ramp, for each stream
      int32_t owner = weft_split_owner(kernel, weft_chosen_split(kernel), segment.source_index);
      weft_span_grow(&span[group], (weft_span_t){owner / gx, owner / gx, owner % gx, owner % gx});
      load->wavelets += wavelets;
      grouping->time = weft_max_i64(grouping->time, load->wavelets);
      if (++load->streams > WEFT_STREAMS_PER_TILE && groups > 1) return false;
    }
    longest = weft_max_i64(longest, stream);
  }
  grouping->source_colours = host ? 0 : most_cover(b, groups, gy, gx);
  grouping->time = weft_max_i64(grouping->time, longest);
  grouping->time = weft_max_i64(grouping->time, crowd_cycles(longest, grouping->source_colours, true));
  grouping->time = weft_max_i64(grouping->time, crowd_cycles(longest, grouping->sink_colours, false));
  return true;
}

// Lines of a kernel's grid, counted along the side that has more.
static int32_t long_side(const weft_stream_builder_t* b, int32_t kernel) {
  const weft_split_t* split = weft_chosen_split(&b->fabric->kernel[kernel]);
  int32_t gy = weft_split_grid(split->y, split->y_count), gx = weft_split_grid(split->x, split->x_count);
  return gy > gx ? gy : gx;
}

static int32_t most_streams(const weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  if (edge->source_kernel == WEFT_HOST_KERNEL || edge->sink_kernel == WEFT_HOST_KERNEL) {
    int32_t ports = weft_machine_port_count(b->machine);
    return ports > WEFT_STREAMS_PER_EDGE_MOST ? WEFT_STREAMS_PER_EDGE_MOST : ports;
  }
  int32_t source = long_side(b, edge->source_kernel), sink = long_side(b, edge->sink_kernel);
  int32_t lines = source < sink ? source : sink;
  if (lines > WEFT_STREAMS_PER_EDGE_MOST) return WEFT_STREAMS_PER_EDGE_MOST;
  return lines < WEFT_STREAMS_PER_EDGE ? WEFT_STREAMS_PER_EDGE : lines;
}

static int32_t stream_limit(const weft_stream_builder_t* b, const weft_stream_edge_t* edge) {
  int32_t limit = (int32_t)(b->share * most_streams(b, edge));
  return limit > 1 ? limit : 1;
}

// Numbers of lines that a block may have along an axis, the most first: whole units of a digit, so that no block
// reaches over the edge of a unit that is further out. Of the outermost digit any number is whole: its halvings, too.
enum { MOST_BLOCKS = 64 };
static int32_t list_blocks(const weft_digits_t* digits, int32_t* out_block) {
  int32_t count = 0, unit = 1;
  for (int32_t d = 0; d < digits->count; ++d) unit *= digits->parts[d];
  out_block[count++] = unit;
  for (int32_t d = 0; d < digits->count; ++d) {
    int32_t parts = digits->parts[d], before = 1; // groups that the larger block makes
    unit /= parts;
    for (int32_t lines = parts; lines-- > 1;) {
      int32_t groups = (parts + lines - 1) / lines;
      bool last = lines == 1 || (parts + lines - 2) / (lines - 1) > groups; // of those that make as many: the most even
      bool halving = d == 0 && last && (groups & (groups - 1)) == 0;
      if ((parts % lines != 0 && !halving) || groups == before || count == MOST_BLOCKS) continue;
      before = groups;
      out_block[count++] = lines * unit;
    }
  }
  return count;
}

// Streams as such cost something, too: each is routed by itself.
static double price(const weft_grouping_t* grouping) {
  return grouping->source_colours + grouping->sink_colours +
         0.1 * log2((double)grouping->row_groups * grouping->column_groups);
}

// The slowest first; of equally fast ones the cheapest, and with the fewest streams.
static int compare_options(const void* a_pointer, const void* b_pointer) {
  const weft_grouping_t *a = a_pointer, *b = b_pointer;
  if (a->time != b->time) return a->time > b->time ? -1 : 1;
  if (price(a) != price(b)) return price(a) < price(b) ? -1 : 1;
  int32_t streams = a->row_groups * a->column_groups, others = b->row_groups * b->column_groups;
  if (streams != others) return streams < others ? -1 : 1;
  return a->row_groups - b->row_groups;
}

weft_status_t weft_grouping_options(weft_stream_builder_t* b, weft_stream_edge_t* edge) {
  int32_t row_block[MOST_BLOCKS], column_block[MOST_BLOCKS], limit = stream_limit(b, edge);
  int32_t rows = list_blocks(&edge->row_digits, row_block), columns = list_blocks(&edge->column_digits, column_block);
  edge->first_option = (int32_t)b->options.count;
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      weft_grouping_t option = {.row_block = row_block[r], .column_block = column_block[c]};
      option.row_groups = (edge->rows + option.row_block - 1) / option.row_block;
      option.column_groups = (edge->columns + option.column_block - 1) / option.column_block;
      if (option.row_groups > limit || option.column_groups > limit / option.row_groups) break;
      bool allowed = evaluate(b, edge, &option);
      if (allowed) WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->options, option));
    }
  }
  weft_grouping_t* option = b->options.data + edge->first_option;
  int32_t count = (int32_t)b->options.count - edge->first_option;
  qsort(option, (size_t)count, sizeof(*option), compare_options);
  edge->option_count = 0;
  for (int32_t i = 0; i < count; ++i) { // what comes later is at least as fast: it displaces all that aren't cheaper
    while (edge->option_count && price(&option[edge->option_count - 1]) >= price(&option[i]) &&
           option[edge->option_count - 1].time > option[i].time)
      --edge->option_count;
    if (!edge->option_count || option[edge->option_count - 1].time > option[i].time)
      option[edge->option_count++] = option[i];
  }
  b->options.count = (size_t)(edge->first_option + edge->option_count);
  return weft_ok();
}
