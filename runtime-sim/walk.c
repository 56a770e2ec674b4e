#include "runtime-sim/walk.h"

#include "base/checked.h"

// Sums of products of 31-bit numbers stay far from overflow when each sum keeps below this.
static const int64_t SUM_LIMIT = INT64_MAX / 4;
enum { CHECK_INTERVAL = 1 << 14 };
static const int64_t WORK_LIMIT = INT64_C(1) << 28; // nodes of the walk that are looked at

typedef struct compiler_t {
  const weft_instruction_t* recv;
  weft_allocator_t allocator;
  const weft_control_t* control;
  weft_sim_walk_t* walk;
  int64_t limit, position, work;
  // Over levels l and further in: the largest contribution to a dimension's coordinate, and the number of index tuples.
  int64_t reach[WEFT_ISA_MAX_LEVELS + 1][WEFT_ISA_MAX_RANK];
  int64_t tuples[WEFT_ISA_MAX_LEVELS + 1][WEFT_ISA_MAX_RANK];
  int32_t next_level[WEFT_ISA_MAX_LEVELS + 1][WEFT_ISA_MAX_RANK];     // first level from l on that moves the dimension
  int64_t weight[WEFT_ISA_MAX_FACTORS], period[WEFT_ISA_MAX_FACTORS]; // of a digit; of its repetition
  int64_t first[WEFT_ISA_MAX_RANK], end[WEFT_ISA_MAX_RANK];           // nothing outside of these coordinates is taken
  // As reach, in flat elements, of the levels that don't turn the factor's digit a whole number of times.
  int64_t varying[WEFT_ISA_MAX_LEVELS + 1][WEFT_ISA_MAX_FACTORS][WEFT_ISA_MAX_RANK];
} compiler_t;

const char* weft_sim_walk_fault(const weft_instruction_t* recv) {
  int64_t flat = 0, elements = 1;
  for (int32_t d = 0; d < recv->tensor_rank; ++d) {
    flat += (int64_t)recv->tensor_dim[d].hi * recv->tensor_dim[d].stride / WEFT_ISA_MAX_RANK + 1;
    int64_t coordinate = 0;
    for (int32_t l = 0; l < recv->level_count; ++l) {
      if (recv->level[l].dim != d) continue;
      coordinate += (int64_t)recv->level[l].step * (recv->level[l].extent - 1) / WEFT_ISA_MAX_LEVELS + 1;
    }
    if (coordinate > SUM_LIMIT / WEFT_ISA_MAX_LEVELS) return "the coordinates of the walk don't fit";
  }
  if (flat > SUM_LIMIT / WEFT_ISA_MAX_RANK) return "the flat indices of the walk don't fit";
  for (int32_t l = 0; l < recv->level_count; ++l)
    if (!weft_checked_mul(elements, (int64_t)recv->level[l].extent, &elements)) return "the walk has too many elements";
  for (int32_t k = 0; k < recv->operand_rank; ++k) {
    int64_t coordinate = 0;
    for (int32_t j = 0; j < recv->factor_count; ++j) {
      if (recv->factor[j].dim != k) continue;
      int64_t step = recv->factor[j].step;
      coordinate += (step < 0 ? -step : step) * (recv->factor[j].extent - 1) / WEFT_ISA_MAX_FACTORS + 1;
    }
    if (coordinate > SUM_LIMIT / WEFT_ISA_MAX_FACTORS) return "the coordinates of the view don't fit";
  }
  return NULL;
}

bool weft_sim_walk_reach(const weft_instruction_t* recv, int64_t* out_lo, int64_t* out_hi) {
  int64_t lo = 0, hi = 0;
  *out_lo = *out_hi = 0;
  for (int32_t k = 0; k < recv->operand_rank; ++k) {
    int64_t size = (int64_t)recv->operand_dim[k].hi - recv->operand_dim[k].lo, reach;
    if (size <= 0) return true;
    if (!weft_checked_mul(size - 1, (int64_t)recv->operand_dim[k].stride, &reach)) return false;
    if (!weft_checked_add(reach < 0 ? lo : hi, reach, reach < 0 ? &lo : &hi)) return false;
  }
  *out_lo = lo;
  return weft_checked_add(hi, (int64_t)weft_dtype_size(recv->dtype), out_hi);
}

static void prepare_levels(compiler_t* c) {
  const weft_instruction_t* recv = c->recv;
  for (int32_t d = 0; d < recv->tensor_rank; ++d) {
    c->tuples[recv->level_count][d] = 1;
    c->next_level[recv->level_count][d] = -1;
  }
  for (int32_t l = recv->level_count - 1; l >= 0; --l) {
    for (int32_t d = 0; d < recv->tensor_rank; ++d) {
      bool moves = recv->level[l].dim == d;
      int64_t extent = recv->level[l].extent;
      c->reach[l][d] = c->reach[l + 1][d] + (moves ? recv->level[l].step * (extent - 1) : 0);
      c->tuples[l][d] = c->tuples[l + 1][d] * (moves ? extent : 1);
      c->next_level[l][d] = moves ? l : c->next_level[l + 1][d];
    }
  }
}

static void prepare_factors(compiler_t* c) {
  const weft_instruction_t* recv = c->recv;
  int64_t weight = 1;
  for (int32_t j = recv->factor_count - 1; j >= 0; --j) {
    c->weight[j] = weight;
    if (!weft_checked_mul(weight, (int64_t)recv->factor[j].extent, &weight)) weight = INT64_MAX;
    c->period[j] = weight;
  }
  for (int32_t l = recv->level_count - 1; l >= 0; --l) {
    int32_t d = recv->level[l].dim;
    int64_t turn = (int64_t)recv->level[l].step * recv->tensor_dim[d].stride;
    int64_t reach = weft_min_i64((int64_t)recv->level[l].step * (recv->level[l].extent - 1), recv->tensor_dim[d].hi);
    for (int32_t j = 0; j < recv->factor_count; ++j) {
      for (int32_t e = 0; e < recv->tensor_rank; ++e) c->varying[l][j][e] = c->varying[l + 1][j][e];
      if (turn % c->period[j] == 0) continue;
      int64_t sum = c->varying[l][j][d] + reach * recv->tensor_dim[d].stride;
      c->varying[l][j][d] = weft_min_i64(sum, (int64_t)recv->tensor_dim[d].hi * recv->tensor_dim[d].stride);
    }
  }
}

static void narrow(int64_t at, int64_t step, int64_t lo, int64_t hi, int64_t* first, int64_t* last);

// Where the factors are the coordinates of the walk one by one, the filter is a box of the walk, too.
static void prepare_box(compiler_t* c) {
  const weft_instruction_t* recv = c->recv;
  bool same = recv->factor_count == recv->tensor_rank;
  for (int32_t d = 0; d < recv->tensor_rank; ++d) {
    c->first[d] = recv->tensor_dim[d].lo;
    c->end[d] = recv->tensor_dim[d].hi;
    same = same && c->weight[d] == recv->tensor_dim[d].stride && recv->tensor_dim[d].hi <= recv->factor[d].extent;
  }
  for (int32_t d = 0; same && d < recv->tensor_rank; ++d) {
    int64_t first = weft_max_i64(c->first[d], recv->factor[d].lo),
            last = weft_min_i64(c->end[d], recv->factor[d].hi) - 1;
    int32_t k = recv->factor[d].dim, sharing = 0;
    for (int32_t j = 0; j < recv->factor_count; ++j) sharing += recv->factor[j].dim == k;
    if (k >= 0 && sharing == 1)
      narrow(recv->operand_dim[k].offset, recv->factor[d].step, recv->operand_dim[k].lo, recv->operand_dim[k].hi,
             &first, &last);
    c->first[d] = first;
    c->end[d] = last + 1;
  }
}

static weft_status_t note_work(compiler_t* c) {
  ++c->work;
  if (c->work % CHECK_INTERVAL != 0) return weft_ok();
  if (c->work > WORK_LIMIT) return weft_error(INVALID_INPUT, "its walk can't be worked out in a sensible time");
  return weft_control_check(c->control, "simulate");
}

static weft_status_t count_dimension(compiler_t* c, int32_t l, int32_t d, int64_t at, int64_t* out_count);

// Elements along the dimension that a level moves, for its indices [first, end).
static weft_status_t count_indices(compiler_t* c, int32_t level, int64_t at, int64_t first, int64_t end,
                                   int64_t* out_count) {
  const weft_instruction_t* recv = c->recv;
  int32_t d = recv->level[level].dim;
  int64_t lo = recv->tensor_dim[d].lo, hi = recv->tensor_dim[d].hi;
  int64_t step = recv->level[level].step, inner = c->reach[level + 1][d], count = 0;
  for (int64_t i = first; i < end && at + step * i < hi; ++i) {
    int64_t from = at + step * i, part;
    if (step > 0 && from >= lo && from + inner < hi) { // whole blocks, all at once
      int64_t whole = weft_min_i64(end - i, (hi - 1 - inner - from) / step + 1);
      count += whole * c->tuples[level + 1][d];
      i += whole - 1;
      continue;
    }
    WEFT_RETURN_IF_ERROR(note_work(c));
    WEFT_RETURN_IF_ERROR(count_dimension(c, level + 1, d, from, &part));
    if (step == 0) {
      count = part * (end - first);
      break;
    }
    count += part;
    if (part == 0 && from + inner < lo) i = weft_max_i64(i, (lo - inner - at + step - 1) / step - 1);
  }
  *out_count = count;
  return weft_ok();
}

// Elements along one dimension, from level l on, at coordinate `at` so far.
static weft_status_t count_dimension(compiler_t* c, int32_t l, int32_t d, int64_t at, int64_t* out_count) {
  const weft_instruction_t* recv = c->recv;
  int64_t lo = recv->tensor_dim[d].lo, hi = recv->tensor_dim[d].hi;
  *out_count = 0;
  if (at >= hi || at + c->reach[l][d] < lo) return weft_ok();
  *out_count = c->tuples[l][d];
  if (at >= lo && at + c->reach[l][d] < hi) return weft_ok();
  int32_t level = c->next_level[l][d];
  if (level < 0) { // outside, and nothing moves it
    *out_count = 0;
    return weft_ok();
  }
  return count_indices(c, level, at, 0, recv->level[level].extent, out_count);
}

static weft_status_t count_subtree(compiler_t* c, int32_t l, const int64_t* at, int64_t* out_count) {
  *out_count = 1;
  for (int32_t d = 0; d<c->recv->tensor_rank&& * out_count> 0; ++d) {
    int64_t count;
    WEFT_RETURN_IF_ERROR(count_dimension(c, l, d, at[d], &count));
    *out_count *= count;
  }
  return weft_ok();
}

// False only when no element of the subtree passes the filter.
static bool may_take(const compiler_t* c, int32_t l, const int64_t* at, int64_t flat) {
  const weft_instruction_t* recv = c->recv;
  int64_t smallest[WEFT_ISA_MAX_RANK], largest[WEFT_ISA_MAX_RANK];
  for (int32_t k = 0; k < recv->operand_rank; ++k) smallest[k] = largest[k] = recv->operand_dim[k].offset;
  for (int32_t j = 0; j < recv->factor_count; ++j) {
    int64_t varying = 0, extent = recv->factor[j].extent, base = flat % c->period[j];
    for (int32_t d = 0; d < recv->tensor_rank; ++d)
      varying += weft_min_i64(c->varying[l][j][d], (recv->tensor_dim[d].hi - 1 - at[d]) * recv->tensor_dim[d].stride);
    bool crosses = base + varying >= c->period[j];
    int64_t first = crosses ? 0 : base / c->weight[j], last = crosses ? extent - 1 : (base + varying) / c->weight[j];
    first = weft_max_i64(first, recv->factor[j].lo);
    last = weft_min_i64(last, recv->factor[j].hi - 1);
    if (first > last) return false;
    int32_t k = recv->factor[j].dim;
    if (k < 0) continue;
    int64_t a = recv->factor[j].step * first, b = recv->factor[j].step * last;
    smallest[k] += weft_min_i64(a, b);
    largest[k] += weft_max_i64(a, b);
  }
  for (int32_t k = 0; k < recv->operand_rank; ++k)
    if (largest[k] < recv->operand_dim[k].lo || smallest[k] >= recv->operand_dim[k].hi) return false;
  return true;
}

static weft_status_t add_span(compiler_t* c, weft_sim_span_t span) {
  weft_sim_walk_t* walk = c->walk;
  walk->taken += span.count;
  if (walk->taken > c->limit)
    return weft_error(INVALID_INPUT, "it takes more than the %lld elements that its memory has room for",
                      (long long)c->limit);
  if (walk->spans.count > 0) {
    weft_sim_span_t* last = &walk->spans.data[walk->spans.count - 1];
    int64_t gap = span.target - last->target;
    bool follows = span.position == last->position + last->count;
    if (follows && last->count == 1 && (span.count == 1 || span.stride == gap)) {
      last->stride = gap;
      last->count += span.count;
      return weft_ok();
    }
    if (follows && gap == last->stride * last->count && (span.count == 1 || span.stride == last->stride)) {
      last->count += span.count;
      return weft_ok();
    }
  }
  return WEFT_ARRAY_PUSH(c->allocator, &walk->spans, span);
}

// The digits of a flat index, and where it lands. False: it isn't of the operand, whatever the filter.
static bool place(const compiler_t* c, int64_t flat, int64_t* digit, int64_t* coordinate) {
  const weft_instruction_t* recv = c->recv;
  for (int32_t k = 0; k < recv->operand_rank; ++k) coordinate[k] = recv->operand_dim[k].offset;
  for (int32_t j = recv->factor_count - 1; j >= 0; --j) {
    digit[j] = flat % recv->factor[j].extent;
    flat /= recv->factor[j].extent;
    if (recv->factor[j].dim >= 0) coordinate[recv->factor[j].dim] += recv->factor[j].step * digit[j];
  }
  return flat == 0;
}

// Narrows [*first, *last] to the i with lo <= at + step * i < hi.
static void narrow(int64_t at, int64_t step, int64_t lo, int64_t hi, int64_t* first, int64_t* last) {
  if (step == 0) {
    if (at < lo || at >= hi) *last = *first - 1;
    return;
  }
  if (step < 0) { // mirrored: lo <= at - |step| i < hi  <=>  1 - hi <= -at + |step| i < 1 - lo
    narrow(-at, -step, 1 - hi, 1 - lo, first, last);
    return;
  }
  if (at < lo) *first = weft_max_i64(*first, weft_ceil_div(lo - at, step));
  *last = at >= hi ? -1 : weft_min_i64(*last, (hi - 1 - at) / step);
}

// `count` elements whose flat indices grow by `turn`. When only one digit moves, it is one span.
static weft_status_t take_row(compiler_t* c, int64_t flat, int64_t turn, int64_t count) {
  const weft_instruction_t* recv = c->recv;
  int64_t digit[WEFT_ISA_MAX_FACTORS], coordinate[WEFT_ISA_MAX_RANK];
  for (int64_t done = 0; done < count;) {
    WEFT_RETURN_IF_ERROR(note_work(c));
    bool inside = place(c, flat + turn * done, digit, coordinate);
    int64_t part = 1;
    int32_t moving = -1;
    for (int32_t j = 0; j < recv->factor_count; ++j)
      if (c->weight[j] == turn && recv->factor[j].extent > 1) moving = j;
    if (moving >= 0) part = weft_min_i64(count - done, recv->factor[moving].extent - digit[moving]);
    int64_t first = 0, last = part - 1, target = 0, stride = 0;
    for (int32_t j = 0; j < recv->factor_count; ++j)
      narrow(digit[j], j == moving, recv->factor[j].lo, recv->factor[j].hi, &first, &last);
    int32_t along = moving >= 0 ? recv->factor[moving].dim : -1;
    for (int32_t k = 0; k < recv->operand_rank; ++k)
      narrow(coordinate[k], k == along ? recv->factor[moving].step : 0, recv->operand_dim[k].lo,
             recv->operand_dim[k].hi, &first, &last);
    if (inside && first <= last) {
      for (int32_t k = 0; k < recv->operand_rank; ++k) {
        int64_t step = k == along ? recv->factor[moving].step : 0;
        target += (coordinate[k] + step * first - recv->operand_dim[k].lo) * recv->operand_dim[k].stride;
        stride += step * recv->operand_dim[k].stride;
      }
      WEFT_RETURN_IF_ERROR(add_span(c, (weft_sim_span_t){.position = c->position + done + first,
                                                         .count = last - first + 1,
                                                         .target = target,
                                                         .stride = stride}));
    }
    done += part;
  }
  c->position += count;
  return weft_ok();
}

// Moves the position over the indices [first, end) of a level.
static weft_status_t pass_over(compiler_t* c, int32_t l, const int64_t* at, int64_t first, int64_t end) {
  int32_t moving = c->recv->level[l].dim;
  if (first >= end) return weft_ok();
  int64_t elements, count;
  WEFT_RETURN_IF_ERROR(count_indices(c, l, at[moving], first, end, &elements));
  for (int32_t d = 0; d < c->recv->tensor_rank && elements > 0; ++d) {
    if (d == moving) continue;
    WEFT_RETURN_IF_ERROR(count_dimension(c, l + 1, d, at[d], &count));
    elements *= count;
  }
  if (!weft_checked_add(c->position, elements, &c->position)) return weft_error(INVALID_INPUT, "its walk is too long");
  return weft_ok();
}

static weft_status_t visit(compiler_t* c, int32_t l, int64_t* at, int64_t flat) {
  const weft_instruction_t* recv = c->recv;
  WEFT_RETURN_IF_ERROR(note_work(c));
  for (int32_t d = 0; d < recv->tensor_rank; ++d)
    if (at[d] >= recv->tensor_dim[d].hi || at[d] + c->reach[l][d] < recv->tensor_dim[d].lo) return weft_ok();
  if (!may_take(c, l, at, flat)) {
    int64_t count;
    WEFT_RETURN_IF_ERROR(count_subtree(c, l, at, &count));
    if (!weft_checked_add(c->position, count, &c->position)) return weft_error(INVALID_INPUT, "its walk is too long");
    return weft_ok();
  }
  if (l == recv->level_count) return take_row(c, flat, 0, 1);
  int32_t d = recv->level[l].dim;
  int64_t step = recv->level[l].step, turn = step * recv->tensor_dim[d].stride, start = at[d];
  int64_t first = 0, last = recv->level[l].extent - 1;
  narrow(start, step, recv->tensor_dim[d].lo - c->reach[l + 1][d], recv->tensor_dim[d].hi, &first, &last);
  if (first > last) return weft_ok();
  if (l == recv->level_count - 1) return take_row(c, flat + turn * first, turn, last - first + 1);
  int64_t from = first, to = last; // of these nothing is taken outside
  narrow(start, step, c->first[d] - c->reach[l + 1][d], c->end[d], &from, &to);
  if (from > to) from = to = last + 1;
  weft_status_t status = pass_over(c, l, at, first, from);
  for (int64_t i = from; i <= to && i <= last && weft_is_ok(status); ++i) {
    at[d] = start + step * i;
    status = visit(c, l + 1, at, flat + turn * i);
  }
  at[d] = start;
  return status ? status : pass_over(c, l, at, to + 1, last + 1);
}

weft_status_t weft_sim_walk_compile(weft_allocator_t allocator, const weft_instruction_t* recv, int64_t limit,
                                    const weft_control_t* control, weft_sim_walk_t* out_walk) {
  *out_walk = (weft_sim_walk_t){0};
  compiler_t compiler = {.recv = recv, .allocator = allocator, .control = control, .walk = out_walk, .limit = limit};
  prepare_levels(&compiler);
  prepare_factors(&compiler);
  prepare_box(&compiler);
  int64_t at[WEFT_ISA_MAX_RANK] = {0};
  weft_status_t status = visit(&compiler, 0, at, 0);
  if (status) {
    weft_sim_walk_deinitialize(allocator, out_walk);
    return status;
  }
  out_walk->elements = compiler.position;
  return weft_ok();
}

void weft_sim_walk_deinitialize(weft_allocator_t allocator, weft_sim_walk_t* walk) {
  WEFT_ARRAY_FREE(allocator, &walk->spans);
}
