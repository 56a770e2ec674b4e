// Strict reading of numbers from a piece of text: the whole piece is the number, in decimal, or it is refused.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool weft_machine_number_integer(const char* text, size_t size, int64_t* out_value);   // -?[0-9]+
bool weft_machine_number_unsigned(const char* text, size_t size, uint64_t* out_value); // [0-9]+
bool weft_machine_number_real(const char* text, size_t size, double* out_value);       // finite, decimal notation
// The shortest decimal text that reads back to exactly `value`.
void weft_machine_number_format(double value, char out_text[32]);
