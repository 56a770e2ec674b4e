// Contractions on f32, where networks spend their time: a multiply-accumulate whose loops are parallel ones, then all
// that reduce, then one parallel loop. A few destinations are kept in registers while everything is added to them, in
// loop order: the same sums, rounded in the same places, as one row after the other.
#include <stdint.h>

#include "base/checked.h"
#include "runtime-sim/nest.h"

enum {
  LANES = 32,  // destinations at a time
  TERMS = 512, // of the reduction, whose offsets are worked out together
  CONTROL_POINTS = 1 << 20
};

typedef weft_sim_term_t term_t;
typedef struct contraction_t {
  int32_t reduce_end;                                    // the loops before it that don't move the destination reduce
  int64_t stride[WEFT_SIM_OPERANDS][WEFT_ISA_MAX_LOOPS]; // elements
  bool in_blocks;
  weft_sim_block_t block; // a block's shape; what it works on changes
} contraction_t;

bool weft_sim_nest_is_contraction(const weft_sim_nest_t* nest) {
  int32_t last = nest->loop_count - 1;
  if (nest->op != WEFT_OP_MLA || nest->hazard || nest->in_place || last < 1) return false;
  if (nest->dtype != WEFT_DTYPE_F32 || nest->destination_dtype != WEFT_DTYPE_F32) return false;
  uintptr_t bits = 0;
  for (int32_t o = 0; o < nest->operands; ++o) {
    bits |= (uintptr_t)nest->pointer[o];
    for (int32_t l = 0; l < nest->loop_count; ++l) bits |= (uintptr_t)nest->stride[o][l];
  }
  return bits % sizeof(float) == 0 && nest->stride[0][last] != 0 && nest->stride[0][last - 1] == 0;
}

// Fixed numbers of lanes and unit strides let the compiler keep the sums in registers.
#define ADD_TERMS(N, A, B)                                                                                             \
  for (int64_t t = 0; t < count; ++t) {                                                                                \
    const float *x = a + term[t].first, *y = b + term[t].second;                                                       \
    for (int64_t i = 0; i < (N); ++i) sum[i] += x[i * (A)] * y[i * (B)];                                               \
  }
#define ADD_LANES(A, B)                                                                                                \
  switch (lanes) {                                                                                                     \
  case LANES:                                                                                                          \
    ADD_TERMS(LANES, A, B)                                                                                             \
    break;                                                                                                             \
  case 16:                                                                                                             \
    ADD_TERMS(16, A, B)                                                                                                \
    break;                                                                                                             \
  case 8:                                                                                                              \
    ADD_TERMS(8, A, B)                                                                                                 \
    break;                                                                                                             \
  case 4:                                                                                                              \
    ADD_TERMS(4, A, B)                                                                                                 \
    break;                                                                                                             \
  case 2:                                                                                                              \
    ADD_TERMS(2, A, B)                                                                                                 \
    break;                                                                                                             \
  default:                                                                                                             \
    ADD_TERMS(1, A, B)                                                                                                 \
  }

// Any strides: four sums at a time, which don't wait for each other.
static void add_strided(float* restrict sums, int64_t lanes, const float* a, int64_t a_stride, const float* b,
                        int64_t b_stride, const term_t* term, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= lanes; i += 4, a += 4 * a_stride, b += 4 * b_stride) {
    float sum0 = sums[i], sum1 = sums[i + 1], sum2 = sums[i + 2], sum3 = sums[i + 3];
    for (int64_t t = 0; t < count; ++t) {
      const float *x = a + term[t].first, *y = b + term[t].second;
      sum0 += x[0] * y[0];
      sum1 += x[a_stride] * y[b_stride];
      sum2 += x[2 * a_stride] * y[2 * b_stride];
      sum3 += x[3 * a_stride] * y[3 * b_stride];
    }
    sums[i] = sum0;
    sums[i + 1] = sum1;
    sums[i + 2] = sum2;
    sums[i + 3] = sum3;
  }
  for (; i < lanes; ++i, a += a_stride, b += b_stride)
    for (int64_t t = 0; t < count; ++t) sums[i] += a[term[t].first] * b[term[t].second];
}

static void add_terms(float* restrict sums, int64_t lanes, const float* a, int64_t a_stride, const float* b,
                      int64_t b_stride, const term_t* term, int64_t count) {
  bool first = a_stride == 1 && b_stride == 0, second = a_stride == 0 && b_stride == 1;
  if (!first && !second) {
    add_strided(sums, lanes, a, a_stride, b, b_stride, term, count);
    return;
  }
  float sum[LANES];
  for (int64_t i = 0; i < lanes; ++i) sum[i] = sums[i];
  if (first) {
    ADD_LANES(1, 0)
  } else {
    ADD_LANES(0, 1)
  }
  for (int64_t i = 0; i < lanes; ++i) sums[i] = sum[i];
}

static int64_t widest(int64_t left) {
  int64_t lanes = LANES;
  while (lanes > left) lanes /= 2;
  return lanes;
}

// Adds terms to all destinations of the innermost loop.
static void add_to_row(const contraction_t* c, int32_t inner, int64_t extent, float* d, const float* a, const float* b,
                       const term_t* term, int64_t count) {
  int64_t d_stride = c->stride[0][inner], a_stride = c->stride[1][inner], b_stride = c->stride[2][inner];
  for (int64_t j = 0; j < extent;) {
    int64_t lanes = widest(extent - j);
    float sum[LANES];
    for (int64_t i = 0; i < lanes; ++i) sum[i] = d[(j + i) * d_stride];
    add_terms(sum, lanes, a + j * a_stride, a_stride, b + j * b_stride, b_stride, term, count);
    for (int64_t i = 0; i < lanes; ++i) d[(j + i) * d_stride] = sum[i];
    j += lanes;
  }
}

// The next index over loops [begin, end), and the operands' offsets with it. False: it was the last one.
static bool advance(const weft_sim_nest_t* nest, const contraction_t* c, int32_t begin, int32_t end, int64_t* index,
                    int64_t* offset) {
  for (int32_t l = end - 1; l >= begin; --l) {
    for (int32_t o = 0; o < nest->operands; ++o) offset[o] += c->stride[o][l];
    if (++index[l] < nest->extent[l]) return true;
    for (int32_t o = 0; o < nest->operands; ++o) offset[o] -= c->stride[o][l] * nest->extent[l];
    index[l] = 0;
  }
  return false;
}

// The offsets of the terms of loops [begin, reduce_end), at most TERMS of them: the others are these again, moved.
static int64_t list_terms(const weft_sim_nest_t* nest, const contraction_t* c, int32_t begin, term_t* out_terms) {
  int32_t last = c->reduce_end - 1;
  int64_t count = 0, index[WEFT_ISA_MAX_LOOPS] = {0}, at[WEFT_SIM_OPERANDS] = {0};
  do {
    for (int64_t i = 0; i < nest->extent[last] && count < TERMS; ++i)
      out_terms[count++] = (term_t){at[1] + i * c->stride[1][last], at[2] + i * c->stride[2][last]};
  } while (count < TERMS && advance(nest, c, begin, last, index, at));
  return count;
}

// A parallel loop over the rows of blocks: the longest along which one of the factors stays the same, else the longest.
static int32_t choose_rows(const weft_sim_nest_t* nest) {
  int32_t best = -1;
  int64_t best_score = 1;
  for (int32_t l = 0; l + 1 < nest->loop_count; ++l) {
    if (nest->stride[0][l] == 0) continue;
    bool shares = nest->stride[1][l] == 0 || nest->stride[2][l] == 0;
    int64_t score = weft_min_i64(nest->extent[l], 64) * (shares ? 64 : 1);
    if (score <= best_score) continue;
    best_score = score;
    best = l;
  }
  return best;
}

// Takes the rows' loop out of the nest, if blocks are a way to do it.
static void prepare_blocks(weft_sim_nest_t* nest, contraction_t* c) {
  int32_t inner = nest->loop_count - 1;
  int64_t size = (int64_t)sizeof(float), first = nest->stride[1][inner] / size, second = nest->stride[2][inner] / size;
  c->in_blocks = weft_sim_block_applies(nest->stride[0][inner] / size, first, second);
  if (!c->in_blocks) return;
  c->block = (weft_sim_block_t){
      .rows = 1, .lanes = nest->extent[inner], .swapped = first == 0, .along_lane = first ? first : second};
  int32_t rows = weft_sim_nest_is_injective(nest) ? choose_rows(nest) : -1;
  if (rows < 0) return;
  int32_t along = c->block.swapped ? 2 : 1;
  c->block.rows = nest->extent[rows];
  c->block.d_row = nest->stride[0][rows] / size;
  c->block.along_row = nest->stride[along][rows] / size;
  c->block.across_row = nest->stride[3 - along][rows] / size;
  weft_sim_nest_remove_loop(nest, rows);
}

static void add_to_block(contraction_t* c, float* d, const float* a, const float* b, const term_t* term,
                         int64_t count) {
  c->block.d = d;
  c->block.along = c->block.swapped ? b : a;
  c->block.across = c->block.swapped ? a : b;
  weft_sim_block_add(&c->block, term, count);
}

weft_status_t weft_sim_nest_contract(const weft_sim_nest_t* whole, const weft_control_t* control) {
  weft_sim_nest_t loops = *whole, *nest = &loops;
  contraction_t c = {.in_blocks = false};
  prepare_blocks(nest, &c);
  int32_t inner = nest->loop_count - 1, begin = inner - 1;
  c.reduce_end = inner;
  int64_t terms = nest->extent[begin]; // of the loops that are listed: as many whole ones as there is room for
  while (begin > 0 && nest->stride[0][begin - 1] == 0 && terms * nest->extent[begin - 1] <= TERMS)
    terms *= nest->extent[--begin];
  for (int32_t o = 0; o < nest->operands; ++o)
    for (int32_t l = 0; l < nest->loop_count; ++l) c.stride[o][l] = nest->stride[o][l] / (int64_t)sizeof(float);
  term_t term[TERMS];
  int64_t listed = list_terms(nest, &c, begin, term);
  float* d = (float*)(void*)nest->pointer[0];
  const float *a = (const float*)(const void*)nest->pointer[1], *b = (const float*)(const void*)nest->pointer[2];
  int64_t extent = nest->extent[inner], unchecked = 0, index[WEFT_ISA_MAX_LOOPS] = {0}, at[WEFT_SIM_OPERANDS] = {0};
  do {
    for (int64_t done = 0; done < terms; done += listed) { // in parts only along a single long loop
      const float *from_a = a + at[1] + done * c.stride[1][begin], *from_b = b + at[2] + done * c.stride[2][begin];
      int64_t count = weft_min_i64(listed, terms - done);
      if (c.in_blocks)
        add_to_block(&c, d + at[0], from_a, from_b, term, count);
      else
        add_to_row(&c, inner, extent, d + at[0], from_a, from_b, term, count);
    }
    unchecked += terms * extent * (c.in_blocks ? c.block.rows : 1);
    if (unchecked < CONTROL_POINTS) continue;
    unchecked = 0;
    WEFT_RETURN_IF_ERROR(weft_control_check(control, "simulate"));
  } while (advance(nest, &c, 0, begin, index, at));
  return weft_ok();
}
