// The word that was probably meant.
#pragma once
#include <stddef.h>

// Of `count` words the first with the least edit distance to `word`, when that is under 3 or under a third of the
// word's length; else NULL.
const char* weft_nearest_word(const char* word, const char* const* words, size_t count);
