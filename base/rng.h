// Seeded random numbers: xoshiro256** (Blackman & Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021),
// seeded through splitmix64. The same seed gives the same numbers on every platform.
#pragma once
#include <stdint.h>

typedef struct weft_rng_t {
  uint64_t state[4];
} weft_rng_t;

void weft_rng_seed(weft_rng_t* rng, uint64_t seed);
uint64_t weft_rng_next(weft_rng_t* rng);
// Uniform in [0, bound), without modulo bias (Lemire 2019); bound > 0.
uint64_t weft_rng_below(weft_rng_t* rng, uint64_t bound);
// Uniform in [0, 1), 53 bits.
double weft_rng_unit(weft_rng_t* rng);
// One splitmix64 step of a value: to derive independent seeds (seed, index) -> seed.
uint64_t weft_rng_mix(uint64_t value);
