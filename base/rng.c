#include "base/rng.h"

static const uint64_t SPLITMIX_INCREMENT = 0x9E3779B97F4A7C15;

uint64_t weft_rng_mix(uint64_t value) {
  value += SPLITMIX_INCREMENT;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

void weft_rng_seed(weft_rng_t* rng, uint64_t seed) {
  for (int i = 0; i < 4; ++i) rng->state[i] = weft_rng_mix(seed + (uint64_t)i * SPLITMIX_INCREMENT);
}

static uint64_t rotate_left(uint64_t value, int count) {
  return (value << count) | (value >> (64 - count));
}

uint64_t weft_rng_next(weft_rng_t* rng) {
  uint64_t* s = rng->state;
  uint64_t result = rotate_left(s[1] * 5, 7) * 9;
  uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotate_left(s[3], 45);
  return result;
}

uint64_t weft_rng_below(weft_rng_t* rng, uint64_t bound) {
  __extension__ typedef unsigned __int128 wide_t;
  wide_t product = (wide_t)weft_rng_next(rng) * bound;
  // Only the lowest 2^64 mod bound fractions are over-represented; the division is rarely needed.
  if ((uint64_t)product < bound) {
    uint64_t rejected = -bound % bound;
    while ((uint64_t)product < rejected) product = (wide_t)weft_rng_next(rng) * bound;
  }
  return (uint64_t)(product >> 64);
}

double weft_rng_unit(weft_rng_t* rng) {
  return (double)(weft_rng_next(rng) >> 11) * 0x1p-53;
}
