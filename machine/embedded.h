// Files of this folder that are compiled in, so that a program finds them wherever it runs (cmake/embed.cmake).
#pragma once
#include <stddef.h>

extern const char weft_machine_schema[]; // machine.rng
extern const size_t weft_machine_schema_size;
extern const char weft_machine_default[]; // default.xml: every number that a machine file may leave out
extern const size_t weft_machine_default_size;
