#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 256 };

// Levenshtein distance with one row.
static size_t edit_distance(const char* a, const char* b) {
  size_t row[LONGEST];
  size_t m = strlen(b);
  if (m >= LONGEST) return SIZE_MAX;
  for (size_t j = 0; j <= m; ++j) row[j] = j;
  for (size_t i = 1; a[i - 1]; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      size_t inserted = row[j - 1] + 1, deleted = row[j] + 1;
      row[j] = replaced < inserted ? replaced : inserted;
      if (deleted < row[j]) row[j] = deleted;
    }
  }
  return row[m];
}

const char* weft_nearest_word(const char* word, const char* const* words, size_t count) {
  const char* best = NULL;
  size_t third = strlen(word) / 3, best_distance = third > 3 ? third : 3;
  for (size_t i = 0; i < count; ++i) {
    size_t distance = edit_distance(word, words[i]);
    if (distance < best_distance) {
      best_distance = distance;
      best = words[i];
    }
  }
  return best;
}
