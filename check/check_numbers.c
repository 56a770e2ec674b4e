// The numbers of elements that arrive at every tile against what its box of the operand takes, in closed form: a view's
// dimensions are independent of each other.
#include <inttypes.h>

#include "base/checked.h"
#include "check/arrivals.h"

// How often each coordinate along one operand dimension is hit by the digits of the factors that lead there, summed up:
// below[i]: of the coordinates first .. first + i - 1.
typedef struct profile_t {
  int64_t first, length;
  int64_t* below; // [length + 1]
} profile_t;

enum { MOST_PROFILE = 1 << 22 }; // larger ones are left to the element by element count

static void count_digits(const weft_view_t* view, int32_t dim, int32_t factor, int64_t at, profile_t* profile) {
  while (factor < view->factor_count && view->factor[factor].dim != dim) ++factor;
  if (factor == view->factor_count) {
    profile->below[at - profile->first + 1]++;
    return;
  }
  const weft_view_factor_t* f = &view->factor[factor];
  for (int64_t i = f->lo; i < f->hi; ++i) count_digits(view, dim, factor + 1, at + i * f->step, profile);
}

// *out_profile.below is NULL when the dimension is too long for it.
static weft_status_t make_profile(const weft_check_arrivals_t* a, const weft_view_t* view, int32_t dim,
                                  profile_t* out_profile) {
  int64_t least = view->offset[dim], most = least, combinations = 1;
  *out_profile = (profile_t){0};
  for (int32_t j = 0; j < view->factor_count; ++j) {
    const weft_view_factor_t* f = &view->factor[j];
    if (f->dim != dim) continue;
    combinations *= f->hi - f->lo; // a part of the tensor's elements
    int64_t low = f->lo * f->step, high = (f->hi - 1) * f->step;
    least += weft_min_i64(low, high);
    most += weft_max_i64(low, high);
  }
  out_profile->first = least;
  out_profile->length = combinations ? most - least + 1 : 0;
  if (out_profile->length > MOST_PROFILE || combinations > MOST_PROFILE) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(a->check->allocator, (size_t)out_profile->length + 1, sizeof(int64_t),
                                             (void**)&out_profile->below));
  if (combinations) count_digits(view, dim, 0, view->offset[dim], out_profile);
  for (int64_t i = 0; i < out_profile->length; ++i) out_profile->below[i + 1] += out_profile->below[i];
  return weft_ok();
}

// Elements of the piece that land in `box`.
static int64_t count_in_box(const weft_view_t* view, const profile_t* profile, const weft_box_t* box) {
  int64_t elements = 1;
  for (int32_t j = 0; j < view->factor_count; ++j)
    if (view->factor[j].dim < 0) elements *= view->factor[j].hi - view->factor[j].lo;
  for (int32_t d = 0; d < view->rank; ++d) {
    int64_t lo = weft_min_i64(weft_max_i64(box->lo[d] - profile[d].first, 0), profile[d].length);
    int64_t hi = weft_min_i64(weft_max_i64(box->hi[d] - profile[d].first, lo), profile[d].length);
    elements *= profile[d].below[hi] - profile[d].below[lo];
  }
  return elements;
}

static void compare_numbers(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t piece,
                            const profile_t* profile, int64_t* arriving) {
  const weft_view_t* view = &o->piece[piece].view;
  const weft_stream_t* stream;
  for (size_t at = 0; (stream = weft_check_operand_stream(a, o, &at));)
    for (int32_t i = 0; stream->sink_piece == piece && i < stream->sink_count; ++i)
      arriving[stream->sink[i].logical] += stream->sink[i].elements;
  for (int32_t t = 0; t < o->tiles; ++t) {
    weft_box_t box = weft_check_operand_box(a, o, t);
    int64_t expected = weft_check_operand_needs(a, o, t) ? count_in_box(view, profile, &box) : 0;
    if (arriving[t] != expected)
      weft_faults_add(a->check->faults,
                      "%s, operand '%s': %" PRId64 " elements of '%s' arrive at %s, expected %" PRId64, o->kernel_name,
                      o->name, arriving[t], a->check->fabric->tensor[o->piece[piece].tensor].name,
                      weft_check_operand_place(a, o, t).text, expected);
  }
}

static weft_status_t check_numbers(const weft_check_arrivals_t* a, const weft_check_operand_t* o, int32_t piece) {
  const weft_view_t* view = &o->piece[piece].view;
  profile_t profile[WEFT_MAX_RANK] = {{0}};
  weft_status_t status = weft_ok();
  int64_t* arriving = NULL;
  bool countable = true;
  for (int32_t d = 0; !status && d < view->rank; ++d) {
    status = make_profile(a, view, d, &profile[d]);
    countable = countable && profile[d].below;
  }
  if (!status && countable) {
    status = weft_allocator_calloc(a->check->allocator, (size_t)o->tiles, sizeof(*arriving), (void**)&arriving);
    if (!status) compare_numbers(a, o, piece, profile, arriving);
  }
  weft_allocator_free(a->check->allocator, arriving);
  for (int32_t d = 0; d < view->rank; ++d) weft_allocator_free(a->check->allocator, profile[d].below);
  return status;
}

weft_status_t weft_check_arrival_numbers(const weft_check_arrivals_t* a, const weft_check_operand_t* o) {
  for (int32_t p = 0; p < o->piece_count; ++p)
    if (a->check->fabric->tensor[o->piece[p].tensor].kind != WEFT_TENSOR_CONSTANT)
      WEFT_RETURN_IF_ERROR(check_numbers(a, o, p));
  return weft_ok();
}
