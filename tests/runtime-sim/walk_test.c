// The runs of a receive against the definition, element by element.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "runtime-sim/walk.h"

enum { MOST = 20000 };

typedef struct taken_t {
  int64_t position, target;
} taken_t;
typedef struct expected_t {
  const weft_instruction_t* recv;
  int64_t elements, count;
  taken_t taken[MOST];
} expected_t;

static void element(expected_t* e, const int64_t* at) {
  const weft_instruction_t* r = e->recv;
  int64_t flat = 0, coordinate[WEFT_ISA_MAX_RANK] = {0}, target = 0;
  for (int32_t d = 0; d < r->tensor_rank; ++d) {
    if (at[d] < r->tensor_dim[d].lo || at[d] >= r->tensor_dim[d].hi) return;
    flat += at[d] * r->tensor_dim[d].stride;
  }
  int64_t position = e->elements++;
  for (int32_t k = 0; k < r->operand_rank; ++k) coordinate[k] = r->operand_dim[k].offset;
  for (int32_t j = r->factor_count - 1; j >= 0; --j) {
    int64_t digit = flat % r->factor[j].extent;
    flat /= r->factor[j].extent;
    if (digit < r->factor[j].lo || digit >= r->factor[j].hi) return;
    if (r->factor[j].dim >= 0) coordinate[r->factor[j].dim] += digit * r->factor[j].step;
  }
  if (flat) return;
  for (int32_t k = 0; k < r->operand_rank; ++k) {
    if (coordinate[k] < r->operand_dim[k].lo || coordinate[k] >= r->operand_dim[k].hi) return;
    target += (coordinate[k] - r->operand_dim[k].lo) * r->operand_dim[k].stride;
  }
  assert_true(e->count < MOST);
  e->taken[e->count++] = (taken_t){position, target};
}

static void enumerate(expected_t* e, int32_t level, int64_t* at) {
  if (level == e->recv->level_count) {
    element(e, at);
    return;
  }
  int32_t d = e->recv->level[level].dim;
  int64_t start = at[d];
  for (int32_t i = 0; i < e->recv->level[level].extent; ++i) {
    at[d] = start + (int64_t)i * e->recv->level[level].step;
    enumerate(e, level + 1, at);
  }
  at[d] = start;
}

static void check(const weft_instruction_t* recv) {
  static expected_t expected;
  expected.recv = recv;
  expected.elements = expected.count = 0;
  int64_t at[WEFT_ISA_MAX_RANK] = {0}, count = 0, lo, hi;
  enumerate(&expected, 0, at);
  weft_sim_walk_t walk;
  assert_null(weft_sim_walk_fault(recv));
  assert_true(weft_sim_walk_reach(recv, &lo, &hi));
  weft_status_t status = weft_sim_walk_compile(weft_allocator_system(), recv, MOST, NULL, &walk);
  if (status) fail_msg("%s", weft_status_message(status));
  assert_int_equal(walk.elements, expected.elements);
  assert_int_equal(walk.taken, expected.count);
  for (size_t s = 0; s < walk.spans.count; ++s) {
    const weft_sim_span_t* span = &walk.spans.data[s];
    for (int64_t i = 0; i < span->count; ++i, ++count) {
      assert_int_equal(span->position + i, expected.taken[count].position);
      int64_t target = span->target + i * span->stride;
      assert_int_equal(target, expected.taken[count].target);
      assert_true(target >= lo && target + (int64_t)weft_dtype_size(recv->dtype) <= hi);
    }
  }
  assert_int_equal(count, expected.count);
  weft_sim_walk_deinitialize(weft_allocator_system(), &walk);
}

static int32_t below(weft_rng_t* rng, int32_t bound) {
  return (int32_t)weft_rng_below(rng, (uint64_t)bound);
}

// Anything that decodes.
static void random_receives(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  for (int32_t round = 0; round < 3000; ++round) {
    weft_instruction_t r = {.opcode = WEFT_OPCODE_RECV, .dtype = WEFT_DTYPE_I16};
    r.tensor_rank = below(&rng, 4);
    r.level_count = r.tensor_rank ? below(&rng, 6) : 0;
    r.factor_count = below(&rng, 5);
    r.operand_rank = below(&rng, 4);
    for (int32_t l = 0; l < r.level_count; ++l) {
      r.level[l].extent = 1 + below(&rng, 5);
      r.level[l].dim = below(&rng, r.tensor_rank);
      r.level[l].step = below(&rng, 6);
    }
    for (int32_t d = 0; d < r.tensor_rank; ++d) {
      r.tensor_dim[d].lo = below(&rng, 4);
      r.tensor_dim[d].hi = r.tensor_dim[d].lo + below(&rng, 20);
      r.tensor_dim[d].stride = below(&rng, 12);
    }
    for (int32_t f = 0; f < r.factor_count; ++f) {
      r.factor[f].extent = 1 + below(&rng, 7);
      r.factor[f].lo = below(&rng, 3) ? 0 : below(&rng, r.factor[f].extent + 1);
      r.factor[f].hi =
          below(&rng, 3) ? r.factor[f].extent : r.factor[f].lo + below(&rng, r.factor[f].extent - r.factor[f].lo + 1);
      r.factor[f].dim = r.operand_rank ? below(&rng, r.operand_rank + 1) - 1 : -1;
      r.factor[f].step = below(&rng, 9) - 4;
    }
    for (int32_t k = 0; k < r.operand_rank; ++k) {
      r.operand_dim[k].offset = below(&rng, 9) - 4;
      r.operand_dim[k].lo = below(&rng, 13) - 8;
      r.operand_dim[k].hi = r.operand_dim[k].lo + below(&rng, 12);
      r.operand_dim[k].stride = 2 * (below(&rng, 41) - 20);
    }
    check(&r);
  }
}

// The kind that a compiler makes: a tensor of channels, rows and columns in uneven blocks, a window of it taken.
static void blocked_window(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  for (int32_t round = 0; round < 300; ++round) {
    int32_t extent[3], block[3], parts[3], stride = 1;
    weft_instruction_t r = {.opcode = WEFT_OPCODE_RECV,
                            .dtype = WEFT_DTYPE_F32,
                            .level_count = 6,
                            .tensor_rank = 3,
                            .factor_count = 3,
                            .operand_rank = 3};
    for (int32_t d = 2; d >= 0; --d) {
      extent[d] = 3 + below(&rng, 14);
      block[d] = 1 + below(&rng, extent[d]);
      parts[d] = (extent[d] + block[d] - 1) / block[d];
      r.level[d].dim = r.level[d + 3].dim = d;
      r.level[d].extent = parts[d];
      r.level[d].step = block[d];
      r.level[d + 3].extent = block[d];
      r.level[d + 3].step = 1;
      r.tensor_dim[d].hi = extent[d];
      r.tensor_dim[d].stride = stride;
      r.factor[d].extent = r.factor[d].hi = extent[d];
      r.factor[d].dim = d;
      r.factor[d].step = 1;
      r.operand_dim[d].offset = 1; // padded by one
      r.operand_dim[d].lo = below(&rng, extent[d]);
      r.operand_dim[d].hi = r.operand_dim[d].lo + 1 + below(&rng, 5);
      r.operand_dim[d].stride = 4 * stride;
      stride *= extent[d];
    }
    check(&r);
  }
}

static void too_much_is_refused(void** state) {
  (void)state;
  weft_instruction_t r = {.opcode = WEFT_OPCODE_RECV, .level_count = 3, .tensor_rank = 1};
  for (int32_t l = 0; l < 3; ++l) r.level[l].extent = INT32_MAX;
  assert_non_null(weft_sim_walk_fault(&r));
  r.level_count = 2;
  r.tensor_dim[0].hi = 1;
  assert_null(weft_sim_walk_fault(&r)); // 2^62 times the same element
  weft_sim_walk_t walk;
  weft_status_t status = weft_sim_walk_compile(weft_allocator_system(), &r, 1000, NULL, &walk);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  weft_status_free(status);
  r.level[0].step = r.level[1].step = INT32_MAX;
  r.tensor_rank = 2;
  r.tensor_dim[0].hi = r.tensor_dim[1].hi = INT32_MAX;
  r.tensor_dim[0].stride = r.tensor_dim[1].stride = INT32_MAX;
  assert_non_null(weft_sim_walk_fault(&r));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_receives),
      cmocka_unit_test(blocked_window),
      cmocka_unit_test(too_much_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
