#include <inttypes.h>
#include <string.h>

#include "machine/fields.h"
#include "machine/machine.h"
#include "machine/number.h"

static weft_status_t print_field(const weft_machine_t* machine, const weft_machine_field_t* field, weft_text_t* text) {
  const void* value = (const char*)machine + field->offset;
  char number[32];
  switch (field->kind) {
  case WEFT_MACHINE_KIND_INT32:
    return weft_text_printf(text, " %s=\"%" PRId32 "\"", field->attribute, *(const int32_t*)value);
  case WEFT_MACHINE_KIND_INT64:
    return weft_text_printf(text, " %s=\"%" PRId64 "\"", field->attribute, *(const int64_t*)value);
  case WEFT_MACHINE_KIND_BOOL:
    return weft_text_printf(text, " %s=\"%s\"", field->attribute, *(const bool*)value ? "true" : "false");
  case WEFT_MACHINE_KIND_REAL:
    break;
  }
  weft_machine_number_format(*(const double*)value, number);
  return weft_text_printf(text, " %s=\"%s\"", field->attribute, number);
}

static weft_status_t print_table(const weft_machine_t* machine, const weft_machine_table_t* table, weft_text_t* text) {
  const double* values = (const double*)((const char*)machine + table->offset);
  for (int c = 0; c < WEFT_OP_CLASS_COUNT; ++c) {
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "    <%s", weft_machine_class_names[c]));
    for (int d = 0; d < WEFT_DTYPE_COUNT; ++d) {
      char number[32];
      weft_machine_number_format(values[c * WEFT_DTYPE_COUNT + d], number);
      WEFT_RETURN_IF_ERROR(weft_text_printf(text, " %s=\"%s\"", weft_dtype_name((weft_dtype_e)d), number));
    }
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "/>\n"));
  }
  return weft_ok();
}

weft_status_t weft_machine_print(const weft_machine_t* machine, weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "<?xml version=\"1.0\"?>\n<machine name=\"%s\">\n", machine->name));
  for (int e = 0; e < WEFT_MACHINE_ELEMENT_COUNT; ++e) {
    const char* element = weft_machine_elements[e];
    const weft_machine_table_t* table = weft_machine_table_of(element);
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "  <%s", element));
    for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
      if (strcmp(weft_machine_fields[i].element, element) != 0) continue;
      WEFT_RETURN_IF_ERROR(print_field(machine, &weft_machine_fields[i], text));
    }
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, table ? ">\n" : "/>\n"));
    if (!table) continue;
    WEFT_RETURN_IF_ERROR(print_table(machine, table, text));
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "  </%s>\n", element));
  }
  return weft_text_printf(text, "</machine>\n");
}

weft_status_t weft_machine_digest(const weft_machine_t* machine, weft_digest_t* out_digest) {
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  weft_status_t status = weft_machine_print(machine, &text);
  if (!status) *out_digest = weft_digest_of(text.data, text.count);
  weft_text_deinitialize(&text);
  return status;
}
