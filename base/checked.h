// Checked arithmetic: sizes are checked before they are multiplied. Each returns true when the result is exact.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define weft_checked_add(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define weft_checked_mul(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))

static inline int64_t weft_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } // a >= 0, b > 0
static inline int64_t weft_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t weft_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
