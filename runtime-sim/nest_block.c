// A block of a contraction: rows of neighbouring destinations stay in vector registers while every term is added to
// them. One factor lies along the lanes, the other is the same for all of them. Each sum is rounded as it would be by
// itself, term after term, so what comes out does not depend on the processor.
#include "runtime-sim/nest.h"

#ifdef __x86_64__
#include <immintrin.h>

#define VECTOR __attribute__((target("avx2")))
#define VECTOR_INLINE static inline VECTOR __attribute__((always_inline))

static const int64_t LANES = 8;

// How a factor differs between the rows of a block; what is the same for all of them is loaded once.
typedef enum sharing_e { SHARES_ALONG, SHARES_ACROSS, SHARES_NONE } sharing_e;

typedef struct cursor_t {
  const weft_sim_block_t* block;
  const weft_sim_term_t* term;
  int64_t count;
  float* d;
  const float *along, *across;
  __m256i mask, far_mask; // of the lanes; step 2: of the first and last 8 of 16 elements
} cursor_t;

// Bits for the first `count` lanes.
VECTOR_INLINE __m256i first_lanes(int64_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), index);
}

VECTOR_INLINE __m256 load(const float* p, const cursor_t* c, int64_t step, bool whole) {
  if (step == 1) return whole ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, c->mask);
  __m256 near = _mm256_maskload_ps(p, c->mask), far = _mm256_maskload_ps(p + LANES, c->far_mask);
  __m256 even = _mm256_shuffle_ps(near, far, 0x88); // 0 2 8 10 4 6 12 14
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8));
}

// `rows` and what follows are constants where this is used: everything is unrolled. Rows from `live` on repeat the last
// one and are not stored.
VECTOR_INLINE void add_terms(const cursor_t* c, int64_t live, int64_t rows, int64_t vectors, int64_t step, bool whole,
                             sharing_e sharing) {
  enum { MOST_ROWS = 8, MOST_VECTORS = 2 };
  const weft_sim_block_t* b = c->block;
  int64_t along[MOST_ROWS], across[MOST_ROWS];
  __m256 sum[MOST_ROWS][MOST_VECTORS];
  __m256i stored = first_lanes(b->lanes);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t row = r < live ? r : live - 1;
    along[r] = row * b->along_row;
    across[r] = row * b->across_row;
    for (int64_t v = 0; v < vectors; ++v) {
      const float* p = c->d + row * b->d_row + v * LANES;
      sum[r][v] = whole ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, stored);
    }
  }
  for (int64_t t = 0; t < c->count; ++t) {
    const float* x = c->along + (b->swapped ? c->term[t].second : c->term[t].first);
    const float* y = c->across + (b->swapped ? c->term[t].first : c->term[t].second);
    __m256 shared[MOST_VECTORS], factor = _mm256_broadcast_ss(y);
    for (int64_t v = 0; sharing == SHARES_ALONG && v < vectors; ++v)
      shared[v] = load(x + v * step * LANES, c, step, whole);
    for (int64_t r = 0; r < rows; ++r) {
      if (sharing != SHARES_ACROSS) factor = _mm256_broadcast_ss(y + across[r]);
      for (int64_t v = 0; v < vectors; ++v) {
        __m256 a = sharing == SHARES_ALONG ? shared[v] : load(x + along[r] + v * step * LANES, c, step, whole);
        sum[r][v] = _mm256_add_ps(sum[r][v], _mm256_mul_ps(a, factor));
      }
    }
  }
  for (int64_t r = 0; r < rows && r < live; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      float* p = c->d + r * b->d_row + v * LANES;
      if (whole)
        _mm256_storeu_ps(p, sum[r][v]);
      else
        _mm256_maskstore_ps(p, stored, sum[r][v]);
    }
  }
}

#define ADD_ROWS(ROWS, VECTORS, STEP, WHOLE)                                                                           \
  switch (sharing) {                                                                                                   \
  case SHARES_ALONG:                                                                                                   \
    add_terms(c, live, ROWS, VECTORS, STEP, WHOLE, SHARES_ALONG);                                                      \
    break;                                                                                                             \
  case SHARES_ACROSS:                                                                                                  \
    add_terms(c, live, ROWS, VECTORS, STEP, WHOLE, SHARES_ACROSS);                                                     \
    break;                                                                                                             \
  default:                                                                                                             \
    add_terms(c, live, ROWS, VECTORS, STEP, WHOLE, SHARES_NONE);                                                       \
  }

// Up to 4 rows of 16 lanes, or 8 of up to 8: as many sums as there are registers for.
VECTOR static void add_wide(const cursor_t* c, int64_t live, sharing_e sharing) {
  if (live == 1)
    add_terms(c, live, 1, 2, 1, true, SHARES_NONE);
  else
    ADD_ROWS(4, 2, 1, true)
}
VECTOR static void add_whole(const cursor_t* c, int64_t live, sharing_e sharing) {
  if (live == 1)
    add_terms(c, live, 1, 1, 1, true, SHARES_NONE);
  else if (live <= 4)
    ADD_ROWS(4, 1, 1, true)
  else
    ADD_ROWS(8, 1, 1, true)
}
VECTOR static void add_part(const cursor_t* c, int64_t live, sharing_e sharing) {
  if (live == 1)
    add_terms(c, live, 1, 1, 1, false, SHARES_NONE);
  else if (live <= 4)
    ADD_ROWS(4, 1, 1, false)
  else
    ADD_ROWS(8, 1, 1, false)
}
VECTOR static void add_spread(const cursor_t* c, int64_t live, sharing_e sharing) {
  if (live == 1)
    add_terms(c, live, 1, 1, 2, false, SHARES_NONE);
  else if (live <= 4)
    ADD_ROWS(4, 1, 2, false)
  else
    ADD_ROWS(8, 1, 2, false)
}

VECTOR static void add_blocks(const weft_sim_block_t* block, const weft_sim_term_t* term, int64_t count) {
  sharing_e sharing = block->along_row == 0 ? SHARES_ALONG : block->across_row == 0 ? SHARES_ACROSS : SHARES_NONE;
  for (int64_t lane = 0, lanes; lane < block->lanes; lane += lanes) {
    int64_t left = block->lanes - lane;
    bool wide = block->along_lane == 1 && left >= 2 * LANES;
    lanes = wide ? 2 * LANES : left < LANES ? left : LANES;
    int64_t most_rows = wide ? 4 : 8, spread = 2 * lanes - 1; // elements that step 2 reaches over
    weft_sim_block_t part = *block;
    part.lanes = lanes;
    for (int64_t row = 0; row < block->rows; row += most_rows) {
      int64_t live = block->rows - row < most_rows ? block->rows - row : most_rows;
      cursor_t cursor = {.block = &part,
                         .term = term,
                         .count = count,
                         .d = block->d + row * block->d_row + lane,
                         .along = block->along + row * block->along_row + lane * block->along_lane,
                         .across = block->across + row * block->across_row,
                         .mask = first_lanes(block->along_lane == 1 ? lanes : spread),
                         .far_mask = first_lanes(spread - LANES)};
      if (wide)
        add_wide(&cursor, live, sharing);
      else if (block->along_lane == 2)
        add_spread(&cursor, live, sharing);
      else if (lanes == LANES)
        add_whole(&cursor, live, sharing);
      else
        add_part(&cursor, live, sharing);
    }
  }
}

bool weft_sim_block_applies(int64_t d_lane, int64_t first_lane, int64_t second_lane) {
  int64_t along = first_lane ? first_lane : second_lane, across = first_lane ? second_lane : 0;
  return d_lane == 1 && across == 0 && (along == 1 || along == 2) && __builtin_cpu_supports("avx2");
}

void weft_sim_block_add(const weft_sim_block_t* block, const weft_sim_term_t* term, int64_t count) {
  add_blocks(block, term, count);
}
#else
bool weft_sim_block_applies(int64_t d_lane, int64_t first_lane, int64_t second_lane) {
  (void)d_lane, (void)first_lane, (void)second_lane;
  return false;
}
void weft_sim_block_add(const weft_sim_block_t* block, const weft_sim_term_t* term, int64_t count) {
  (void)block, (void)term, (void)count;
}
#endif
