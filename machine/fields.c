#include "machine/fields.h"

#include <string.h>

const weft_machine_field_t weft_machine_fields[WEFT_MACHINE_FIELD_COUNT] = {
#define X(element, attribute, member, kind, least, greatest)                                                           \
  {element, attribute, offsetof(weft_machine_t, member), WEFT_MACHINE_KIND_##kind, least, greatest},
    WEFT_MACHINE_FIELDS(X)
#undef X
};

const weft_machine_table_t weft_machine_tables[WEFT_MACHINE_TABLE_COUNT] = {
    {"rates", offsetof(weft_machine_t, rate), 1e-6, 1e6},
    {"energy", offsetof(weft_machine_t, energy.op), 0, 1e9},
};

const char* const weft_machine_elements[WEFT_MACHINE_ELEMENT_COUNT] = {"mesh", "tile",  "router", "clock",
                                                                       "host", "rates", "energy"};

const char* const weft_machine_class_names[WEFT_OP_CLASS_COUNT] = {
    [WEFT_OP_CLASS_MOVE] = "move",
    [WEFT_OP_CLASS_SIMPLE] = "simple",
    [WEFT_OP_CLASS_MULADD] = "muladd",
    [WEFT_OP_CLASS_SPECIAL] = "special",
};

const weft_machine_table_t* weft_machine_table_of(const char* element) {
  for (int i = 0; i < WEFT_MACHINE_TABLE_COUNT; ++i) {
    if (strcmp(weft_machine_tables[i].element, element) == 0) return &weft_machine_tables[i];
  }
  return NULL;
}
