#include "runtime-sim/half.h"

#include <string.h>

enum { SIZE = 2 }; // bytes of a half-width element

#ifdef __x86_64__
#include <immintrin.h>

#define VECTOR __attribute__((target("avx,f16c")))

static const int64_t LANES = 8;

static bool has_f16c(void) {
  return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
}

// What the processor makes of a NaN is not what we do: it quiets it, and keeps its sign and payload.
VECTOR static inline bool any_nan(__m256 value) {
  return _mm256_movemask_ps(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)) != 0;
}

// The first elements, up to a NaN or to where fewer than a vector are left. Returns how many.
VECTOR static int64_t widen_vectors(const uint8_t* source, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)(source + i * SIZE)));
    if (any_nan(wide)) break;
    _mm256_storeu_ps(out + i, wide);
  }
  return i;
}

VECTOR static int64_t narrow_vectors(const float* source, int64_t count, uint8_t* out) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    __m256 wide = _mm256_loadu_ps(source + i);
    if (any_nan(wide)) break;
    _mm_storeu_si128((__m128i*)(void*)(out + i * SIZE), _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#else
static const int64_t LANES = 1;

static bool has_f16c(void) {
  return false;
}
static int64_t widen_vectors(const uint8_t* source, int64_t count, float* out) {
  (void)source, (void)count, (void)out;
  return 0;
}
static int64_t narrow_vectors(const float* source, int64_t count, uint8_t* out) {
  (void)source, (void)count, (void)out;
  return 0;
}
#endif

static void widen_f16(const uint8_t* source, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    memcpy(&bits, source + i * SIZE, SIZE);
    out[i] = weft_f16_to_f32(bits);
  }
}

static void narrow_f16(const float* source, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = weft_f32_to_f16(source[i]);
    memcpy(out + i * SIZE, &bits, SIZE);
  }
}

// By itself, a vector that holds a NaN, or what is left behind the last whole one.
static int64_t odd_ones(int64_t left) {
  return left < LANES ? left : LANES;
}

void weft_sim_half_widen(weft_dtype_e dtype, const uint8_t* source, int64_t count, float* out) {
  if (dtype == WEFT_DTYPE_BF16) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      memcpy(&bits, source + i * SIZE, SIZE);
      uint32_t wide = (uint32_t)bits << 16; // weft_bf16_to_f32, where the compiler sees it
      memcpy(&out[i], &wide, sizeof(wide));
    }
    return;
  }
  bool vectors = has_f16c();
  for (int64_t done = 0, some; done < count; done += some) {
    if (vectors) done += widen_vectors(source + done * SIZE, count - done, out + done);
    some = vectors ? odd_ones(count - done) : count;
    widen_f16(source + done * SIZE, some, out + done);
  }
}

void weft_sim_half_narrow(weft_dtype_e dtype, const float* source, int64_t count, uint8_t* out) {
  if (dtype == WEFT_DTYPE_BF16) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits = weft_f32_to_bf16(source[i]);
      memcpy(out + i * SIZE, &bits, SIZE);
    }
    return;
  }
  bool vectors = has_f16c();
  for (int64_t done = 0, some; done < count; done += some) {
    if (vectors) done += narrow_vectors(source + done, count - done, out + done * SIZE);
    some = vectors ? odd_ones(count - done) : count;
    narrow_f16(source + done, some, out + done * SIZE);
  }
}
