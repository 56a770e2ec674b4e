#include "check/derive.h"

#include "base/checked.h"

const weft_alternative_t* weft_check_chosen(const weft_kernel_t* kernel) {
  return &kernel->alternative[kernel->chosen];
}

int32_t weft_check_tile_count(const weft_kernel_t* kernel) {
  return weft_check_chosen(kernel)->gy * weft_check_chosen(kernel)->gx;
}

// Which of the parts of one factor a tile has.
typedef struct digit_t {
  int32_t dim, parts, value;
} digit_t;

static int32_t split_digits(const weft_kernel_t* kernel, int32_t logical,
                            digit_t out_digits[2 * WEFT_MAX_AXIS_FACTORS]) {
  const weft_alternative_t* chosen = weft_check_chosen(kernel);
  const weft_split_t* split = &chosen->split;
  int32_t count = 0, y = logical / chosen->gx, x = logical % chosen->gx;
  for (int32_t i = split->y_count; i-- > 0; y /= split->y[i].parts)
    out_digits[count++] = (digit_t){split->y[i].dim, split->y[i].parts, y % split->y[i].parts};
  for (int32_t i = split->x_count; i-- > 0; x /= split->x[i].parts)
    out_digits[count++] = (digit_t){split->x[i].dim, split->x[i].parts, x % split->x[i].parts};
  return count;
}

weft_box_t weft_check_buffer_box(const weft_kernel_t* kernel, int32_t buffer, int32_t logical) {
  digit_t digit[2 * WEFT_MAX_AXIS_FACTORS];
  int64_t first[WEFT_MAX_DIMS] = {0}, last[WEFT_MAX_DIMS] = {0};
  int32_t count = split_digits(kernel, logical, digit);
  for (int32_t d = 0; d < kernel->dim_count; ++d) last[d] = kernel->dim[d].extent - 1;
  for (int32_t i = 0; i < count; ++i) {
    int64_t extent = kernel->dim[digit[i].dim].extent, block = (extent + digit[i].parts - 1) / digit[i].parts;
    first[digit[i].dim] = digit[i].value * block;
    last[digit[i].dim] = weft_min_i64(extent, (digit[i].value + 1) * block) - 1;
  }
  const weft_buffer_t* b = &kernel->buffer[buffer];
  weft_box_t box = {.rank = b->rank};
  for (int32_t r = 0; r < b->rank; ++r) {
    int64_t least = b->row[r].offset, most = least;
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      int64_t coefficient = b->row[r].coefficient[d];
      if (coefficient == 0) continue; // of most dimensions
      least += coefficient * (coefficient < 0 ? last[d] : first[d]);
      most += coefficient * (coefficient < 0 ? first[d] : last[d]);
    }
    box.lo[r] = least;
    box.hi[r] = most + 1;
  }
  return box;
}

bool weft_check_is_owner(const weft_kernel_t* kernel, int32_t logical) {
  digit_t digit[2 * WEFT_MAX_AXIS_FACTORS];
  int32_t count = split_digits(kernel, logical, digit);
  for (int32_t i = 0; i < count; ++i)
    if (kernel->dim[digit[i].dim].kind == WEFT_DIM_REDUCTION && digit[i].value + 1 < digit[i].parts) return false;
  return true;
}

// Reductions come last on their axis, so the next tile of a chain is the next one along it.
int32_t weft_check_chain_next(const weft_kernel_t* kernel, int32_t logical) {
  const weft_alternative_t* chosen = weft_check_chosen(kernel);
  if (weft_check_is_owner(kernel, logical)) return -1;
  for (int32_t i = 0; i < chosen->split.x_count; ++i)
    if (kernel->dim[chosen->split.x[i].dim].kind == WEFT_DIM_REDUCTION && chosen->split.x[i].parts > 1)
      return logical + 1;
  return logical + chosen->gx;
}

bool weft_check_uses_buffer(const weft_kernel_t* kernel, int32_t buffer, int32_t logical) {
  int32_t last = kernel->operation_count - 1;
  if (kernel->reduce_operation >= 0 && !weft_check_is_owner(kernel, logical)) last = kernel->reduce_operation;
  for (int32_t i = 0; i <= last; ++i) {
    const weft_operation_t* operation = &kernel->operation[i];
    if (operation->destination == buffer) return true;
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s)
      if (operation->source[s] == buffer) return true;
  }
  return false;
}

weft_box_t weft_check_held_box(const weft_fabric_t* fabric, int32_t tensor, int32_t logical) {
  const weft_tensor_t* t = &fabric->tensor[tensor];
  weft_box_t box = {.rank = t->shape.rank};
  if (t->kind == WEFT_TENSOR_RESULT) {
    const weft_kernel_t* kernel = &fabric->kernel[t->kernel];
    if (!weft_check_is_owner(kernel, logical)) return box;
    box = weft_check_buffer_box(kernel, t->buffer, logical);
  }
  for (int32_t d = 0; d < box.rank; ++d) {
    box.lo[d] = weft_max_i64(box.lo[d], 0);
    box.hi[d] = t->kind == WEFT_TENSOR_RESULT ? weft_min_i64(box.hi[d], t->shape.extent[d]) : t->shape.extent[d];
  }
  return box;
}

int64_t weft_check_box_elements(const weft_box_t* box) {
  int64_t elements = 1;
  for (int32_t d = 0; d < box->rank; ++d) elements *= weft_max_i64(0, box->hi[d] - box->lo[d]);
  return elements;
}

typedef struct summing_t {
  weft_check_term_t term[WEFT_MAX_LEVELS]; // largest step first
  int64_t reach[WEFT_MAX_LEVELS + 1];      // of this term and the ones behind it
  int64_t combinations[WEFT_MAX_LEVELS + 1];
  int32_t count;
  int64_t lo, hi;
  int64_t budget;
  weft_check_sums_t sums;
} summing_t;

static void count_sums(weft_check_sums_t* sums, int64_t least, int64_t most, int64_t count) {
  sums->least = sums->count ? weft_min_i64(sums->least, least) : least;
  sums->most = sums->count ? weft_max_i64(sums->most, most) : most;
  sums->count += count;
}

static void sum_term(summing_t* s, int32_t index, int64_t base) {
  if (--s->budget < 0 || base + s->reach[index] < s->lo || base >= s->hi) return;
  bool inside = base >= s->lo && base + s->reach[index] < s->hi;
  if (index == s->count || inside) {
    count_sums(&s->sums, base, base + s->reach[index], s->combinations[index]);
    return;
  }
  const weft_check_term_t* term = &s->term[index];
  // The first index whose reach gets to lo; then up to hi. Those in the middle are inside as a whole.
  int64_t first = 0;
  if (term->step > 0 && base + s->reach[index + 1] < s->lo)
    first = (s->lo - base - s->reach[index + 1] + term->step - 1) / term->step;
  for (int64_t i = first; i < term->extent && base + i * term->step < s->hi && s->budget >= 0; ++i) {
    int64_t at = base + i * term->step;
    if (term->step > 0 && at >= s->lo && at + s->reach[index + 1] < s->hi) {
      int64_t whole = weft_min_i64((s->hi - 1 - s->reach[index + 1] - at) / term->step + 1, term->extent - i);
      count_sums(&s->sums, at, at + (whole - 1) * term->step + s->reach[index + 1], whole * s->combinations[index + 1]);
      i += whole - 1;
      s->budget--;
    } else {
      sum_term(s, index + 1, at);
    }
  }
}

bool weft_check_sums(const weft_check_term_t* term, int32_t count, int64_t base, int64_t lo, int64_t hi,
                     weft_check_sums_t* out_sums) {
  summing_t s; // set as far as it is used: clearing all of it would take longer than most sums
  s.count = 0;
  s.lo = lo;
  s.hi = hi;
  s.budget = 1000000;
  s.sums = (weft_check_sums_t){0};
  for (int32_t i = 0; i < count; ++i) {
    if (term[i].extent <= 1) continue;
    int32_t at = s.count++;
    for (; at > 0 && s.term[at - 1].step < term[i].step; --at) s.term[at] = s.term[at - 1];
    s.term[at] = term[i];
  }
  s.combinations[s.count] = 1;
  s.reach[s.count] = 0;
  for (int32_t i = s.count - 1; i >= 0; --i) {
    int64_t reach;
    if (!weft_checked_mul(s.term[i].extent - 1, s.term[i].step, &reach) ||
        !weft_checked_add(reach, s.reach[i + 1], &s.reach[i]) || s.reach[i] > INT64_MAX / 4 ||
        !weft_checked_mul(s.term[i].extent, s.combinations[i + 1], &s.combinations[i]))
      return false;
  }
  for (int32_t i = 0; i < count; ++i)
    if (term[i].extent < 1) s.budget = -1; // no combination at all
  if (s.budget >= 0)
    sum_term(&s, 0, base);
  else
    s.budget = 0;
  *out_sums = s.sums;
  return s.budget >= 0;
}
