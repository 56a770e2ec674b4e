#include "machine/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

bool weft_machine_number_unsigned(const char* text, size_t size, uint64_t* out_value) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    if (!weft_checked_mul(value, 10u, &value) || !weft_checked_add(value, (unsigned)(text[i] - '0'), &value))
      return false;
  }
  *out_value = value;
  return size > 0;
}

bool weft_machine_number_integer(const char* text, size_t size, int64_t* out_value) {
  bool negative = size > 0 && text[0] == '-';
  uint64_t magnitude;
  if (!weft_machine_number_unsigned(text + negative, size - negative, &magnitude) || magnitude > INT64_MAX)
    return false;
  *out_value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
  return true;
}

bool weft_machine_number_real(const char* text, size_t size, double* out_value) {
  // strtod would also take spaces, hexadecimal, infinities and NaN.
  char copy[64];
  if (size == 0 || size >= sizeof(copy)) return false;
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == 0 || !strchr("0123456789+-.eE", text[i])) return false;
    copy[i] = text[i];
  }
  copy[size] = 0;
  char* end;
  double value = strtod(copy, &end);
  if (end != copy + size || !isfinite(value)) return false;
  *out_value = value;
  return true;
}

void weft_machine_number_format(double value, char out_text[32]) {
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(out_text, 32, "%.*g", digits, value);
    if (strtod(out_text, NULL) == value) return;
  }
}
