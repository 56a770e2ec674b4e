// The schema decides whether a file is right; this walk takes the values and says, in words, what was expected instead.
#include "machine/read.h"

#include <stdio.h>
#include <string.h>

#include "machine/embedded.h"
#include "machine/fields.h"
#include "machine/number.h"
#include "machine/xml.h"

typedef struct reader_t {
  const char* origin;
  weft_machine_t* machine;
  uint64_t seen_fields;      // bit per weft_machine_fields
  uint32_t seen_elements;    // bit per weft_machine_elements
  long mesh_line, host_line; // 0: not given
} reader_t;
_Static_assert(WEFT_MACHINE_FIELD_COUNT <= 64, "one bit a field");

// A list of names for a message.
typedef struct names_t {
  char text[256];
} names_t;
static void names_add(names_t* names, const char* name) {
  size_t length = strlen(names->text);
  snprintf(names->text + length, sizeof(names->text) - length, "%s%s", length ? ", " : "", name);
}

static const char* node_name(const xmlNode* node) {
  return (const char*)node->name;
}
static bool is_named(const xmlNode* node, const char* name) {
  return !node->ns && strcmp(node_name(node), name) == 0;
}

static names_t attributes_of(const char* element) {
  names_t names = {""};
  for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
    if (strcmp(weft_machine_fields[i].element, element) == 0) names_add(&names, weft_machine_fields[i].attribute);
  }
  return names;
}

static weft_status_t unexpected_attribute(const reader_t* reader, const xmlAttr* attribute, const names_t* expected) {
  return weft_error(INVALID_INPUT, "%s:%ld: <%s> has no attribute '%s': expected %s%s", reader->origin,
                    xmlGetLineNo(attribute->parent), node_name(attribute->parent), (const char*)attribute->name,
                    expected->text[0] ? "one of " : "none", expected->text);
}

static weft_status_t unexpected_element(const reader_t* reader, const xmlNode* node, const names_t* expected) {
  return weft_error(INVALID_INPUT, "%s:%ld: unexpected element <%s> in <%s>: expected %s%s", reader->origin,
                    xmlGetLineNo(node), node_name(node), node_name(node->parent),
                    expected->text[0] ? "one of " : "none", expected->text);
}

// The value without the white space around it, as XML Schema types have it. Free *out_owned with xmlFree.
static size_t attribute_value(const xmlAttr* attribute, const char** out_text, xmlChar** out_owned) {
  *out_owned = xmlNodeListGetString(attribute->doc, attribute->children, 1);
  const char* text = *out_owned ? (const char*)*out_owned : "";
  text += strspn(text, " \t\r\n");
  size_t size = strlen(text);
  while (size > 0 && strchr(" \t\r\n", text[size - 1])) --size;
  *out_text = text;
  return size;
}

static bool store_number(weft_machine_kind_e kind, double least, double greatest, const char* text, size_t size,
                         void* target) {
  int64_t whole = 0;
  double real = 0;
  bool parsed = kind == WEFT_MACHINE_KIND_REAL ? weft_machine_number_real(text, size, &real)
                                               : weft_machine_number_integer(text, size, &whole);
  double value = kind == WEFT_MACHINE_KIND_REAL ? real : (double)whole;
  if (!parsed || value < least || value > greatest) return false;
  switch (kind) {
  case WEFT_MACHINE_KIND_INT32:
    *(int32_t*)target = (int32_t)whole;
    break;
  case WEFT_MACHINE_KIND_INT64:
    *(int64_t*)target = whole;
    break;
  case WEFT_MACHINE_KIND_BOOL:
    *(bool*)target = whole != 0;
    break;
  case WEFT_MACHINE_KIND_REAL:
    *(double*)target = real;
    break;
  }
  return true;
}

static weft_status_t read_value(const reader_t* reader, const xmlAttr* attribute, weft_machine_kind_e kind,
                                double least, double greatest, void* target) {
  const char* text;
  xmlChar* owned;
  size_t size = attribute_value(attribute, &text, &owned);
  weft_status_t status = weft_ok();
  const char* where = node_name(attribute->parent);
  if (kind == WEFT_MACHINE_KIND_BOOL) {
    bool yes = size == 4 && memcmp(text, "true", 4) == 0;
    if (!yes && !(size == 5 && memcmp(text, "false", 5) == 0)) {
      status = weft_error(INVALID_INPUT, "%s:%ld: <%s> %s=\"%.*s\": expected true or false", reader->origin,
                          xmlGetLineNo(attribute->parent), where, (const char*)attribute->name,
                          (int)(size < 60 ? size : 60), text);
    }
    *(bool*)target = yes;
  } else if (!store_number(kind, least, greatest, text, size, target)) {
    status =
        weft_error(INVALID_INPUT, "%s:%ld: <%s> %s=\"%.*s\": expected a %s from %.16g to %.16g", reader->origin,
                   xmlGetLineNo(attribute->parent), where, (const char*)attribute->name, (int)(size < 60 ? size : 60),
                   text, kind == WEFT_MACHINE_KIND_REAL ? "number" : "whole number", least, greatest);
  }
  xmlFree(owned);
  return status;
}

static weft_status_t read_fields(reader_t* reader, const xmlNode* node) {
  for (const xmlAttr* attribute = node->properties; attribute; attribute = attribute->next) {
    int found = -1;
    for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
      const weft_machine_field_t* field = &weft_machine_fields[i];
      if (is_named(node, field->element) && !attribute->ns && !strcmp((const char*)attribute->name, field->attribute)) {
        found = i;
      }
    }
    if (found < 0) {
      names_t expected = attributes_of(node_name(node));
      return unexpected_attribute(reader, attribute, &expected);
    }
    const weft_machine_field_t* field = &weft_machine_fields[found];
    WEFT_RETURN_IF_ERROR(read_value(reader, attribute, field->kind, field->least, field->greatest,
                                    (char*)reader->machine + field->offset));
    reader->seen_fields |= UINT64_C(1) << found;
  }
  return weft_ok();
}

static weft_status_t read_class(reader_t* reader, const xmlNode* node, const weft_machine_table_t* table,
                                int op_class) {
  for (const xmlAttr* attribute = node->properties; attribute; attribute = attribute->next) {
    weft_dtype_e dtype;
    if (attribute->ns || !weft_dtype_parse((const char*)attribute->name, &dtype)) {
      names_t expected = {""};
      for (int i = 0; i < WEFT_DTYPE_COUNT; ++i) names_add(&expected, weft_dtype_name((weft_dtype_e)i));
      return unexpected_attribute(reader, attribute, &expected);
    }
    double* values = (double*)((char*)reader->machine + table->offset);
    WEFT_RETURN_IF_ERROR(read_value(reader, attribute, WEFT_MACHINE_KIND_REAL, table->least, table->greatest,
                                    &values[op_class * WEFT_DTYPE_COUNT + (int)dtype]));
  }
  return weft_ok();
}

// Index of the element's name, which must not have come before.
static weft_status_t find_name(const reader_t* reader, const xmlNode* node, const char* const* names, int count,
                               uint32_t* inout_seen, int* out_index) {
  names_t expected = {""};
  for (int i = 0; i < count; ++i) {
    if (is_named(node, names[i])) {
      if (*inout_seen >> i & 1) {
        return weft_error(INVALID_INPUT, "%s:%ld: a second <%s>: expected at most one", reader->origin,
                          xmlGetLineNo(node), names[i]);
      }
      *inout_seen |= UINT32_C(1) << i;
      *out_index = i;
      return weft_ok();
    }
    names_add(&expected, names[i]);
  }
  return unexpected_element(reader, node, &expected);
}

static weft_status_t read_element(reader_t* reader, const xmlNode* node) {
  int index = 0;
  WEFT_RETURN_IF_ERROR(
      find_name(reader, node, weft_machine_elements, WEFT_MACHINE_ELEMENT_COUNT, &reader->seen_elements, &index));
  if (is_named(node, "mesh")) reader->mesh_line = xmlGetLineNo(node);
  if (is_named(node, "host")) reader->host_line = xmlGetLineNo(node);
  WEFT_RETURN_IF_ERROR(read_fields(reader, node));
  const weft_machine_table_t* table = weft_machine_table_of(weft_machine_elements[index]);
  uint32_t seen = 0;
  for (const xmlNode* child = node->children; child; child = child->next) {
    if (child->type != XML_ELEMENT_NODE) continue; // stray text is the schema's to refuse
    int op_class = 0;
    WEFT_RETURN_IF_ERROR(
        find_name(reader, child, weft_machine_class_names, table ? WEFT_OP_CLASS_COUNT : 0, &seen, &op_class));
    WEFT_RETURN_IF_ERROR(read_class(reader, child, table, op_class));
  }
  return weft_ok();
}

static weft_status_t read_name(reader_t* reader, const xmlNode* root) {
  bool named = false;
  for (const xmlAttr* attribute = root->properties; attribute; attribute = attribute->next) {
    if (attribute->ns || strcmp((const char*)attribute->name, "name") != 0) {
      return unexpected_attribute(reader, attribute, &(names_t){"name"});
    }
    const char* text;
    xmlChar* owned;
    size_t size = attribute_value(attribute, &text, &owned);
    static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:+-";
    named = size > 0 && size < sizeof(reader->machine->name) && strspn(text, ALLOWED) >= size;
    if (named) snprintf(reader->machine->name, sizeof(reader->machine->name), "%.*s", (int)size, text);
    xmlFree(owned);
  }
  if (named) return weft_ok();
  return weft_error(INVALID_INPUT, "%s:%ld: <machine>: expected name=\"...\" of 1 to 63 letters, digits and _ . : + -",
                    reader->origin, xmlGetLineNo(root));
}

static weft_status_t read_root(reader_t* reader, const xmlNode* root) {
  if (!is_named(root, "machine")) {
    return weft_error(INVALID_INPUT, "%s:%ld: the outermost element is <%s>: expected <machine> (without a namespace)",
                      reader->origin, xmlGetLineNo(root), node_name(root));
  }
  WEFT_RETURN_IF_ERROR(read_name(reader, root));
  for (const xmlNode* node = root->children; node; node = node->next) {
    if (node->type == XML_ELEMENT_NODE) WEFT_RETURN_IF_ERROR(read_element(reader, node));
  }
  for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
    const weft_machine_field_t* field = &weft_machine_fields[i];
    if (strcmp(field->element, "mesh") != 0 || field->kind == WEFT_MACHINE_KIND_BOOL || reader->seen_fields >> i & 1) {
      continue;
    }
    return weft_error(INVALID_INPUT, "%s:%ld: expected <mesh width=\"...\" height=\"...\"/>; %s is missing",
                      reader->origin, reader->mesh_line ? reader->mesh_line : xmlGetLineNo(root), field->attribute);
  }
  return weft_ok();
}

// Overwrites what the document gives in reader->machine.
static weft_status_t read_document(reader_t* reader, const char* xml, size_t size) {
  xmlDocPtr document;
  weft_status_t invalid;
  WEFT_RETURN_IF_ERROR(weft_machine_xml_parse(xml, size, reader->origin, &document, &invalid));
  weft_status_t status = read_root(reader, xmlDocGetRootElement(document));
  xmlFreeDoc(document);
  if (!status) return invalid;
  weft_status_free(invalid); // the same fault, in the schema's words
  return status;
}

// Limits that tie several numbers together, which the schema can't state.
static weft_status_t check_together(const reader_t* reader) {
  const weft_machine_t* machine = reader->machine;
  if ((int64_t)machine->width * machine->height > WEFT_MACHINE_MAX_TILES) {
    return weft_error(INVALID_INPUT, "%s:%ld: a mesh of %dx%d has %lld tiles: expected at most %d", reader->origin,
                      reader->mesh_line, machine->width, machine->height, (long long)machine->width * machine->height,
                      WEFT_MACHINE_MAX_TILES);
  }
  if (!reader->host_line) return weft_ok();
  for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
    size_t first = offsetof(weft_machine_t, ports_per_side);
    size_t offset = weft_machine_fields[i].offset;
    if (!(reader->seen_fields >> i & 1) || offset < first || offset >= first + sizeof(machine->ports_per_side))
      continue;
    int side = (int)((offset - first) / sizeof(int32_t));
    int32_t length = side % 2 ? machine->height : machine->width;
    if (machine->ports_per_side[side] <= length) continue;
    return weft_error(INVALID_INPUT, "%s:%ld: %d host ports on the %s side of %d tiles: expected at most one a tile",
                      reader->origin, reader->host_line, machine->ports_per_side[side],
                      weft_machine_fields[i].attribute, length);
  }
  if (weft_machine_port_count(machine) == 0) {
    return weft_error(INVALID_INPUT, "%s:%ld: no host port on any side: expected at least one", reader->origin,
                      reader->host_line);
  }
  return weft_ok();
}

void weft_machine_fit_ports(weft_machine_t* machine) {
  for (int side = 0; side < 4; ++side) {
    int32_t length = side % 2 ? machine->height : machine->width;
    if (machine->ports_per_side[side] > length) machine->ports_per_side[side] = length;
  }
}

weft_status_t weft_machine_read_default(weft_machine_t* out_machine) {
  memset(out_machine, 0, sizeof(*out_machine));
  reader_t reader = {.origin = "default.xml", .machine = out_machine};
  return read_document(&reader, weft_machine_default, weft_machine_default_size);
}

weft_status_t weft_machine_parse(const char* xml, size_t size, const char* origin, weft_machine_t* out_machine) {
  weft_machine_t machine;
  WEFT_RETURN_IF_ERROR(weft_machine_read_default(&machine));
  reader_t reader = {.origin = origin, .machine = &machine};
  WEFT_RETURN_IF_ERROR(read_document(&reader, xml, size));
  WEFT_RETURN_IF_ERROR(check_together(&reader));
  weft_machine_fit_ports(&machine);
  *out_machine = machine;
  return weft_ok();
}
