// libxml2, kept apart: text in, checked tree or a status out. Nothing is printed, nothing is fetched, no entity is
// expanded.
#pragma once
#include <libxml/tree.h>

#include "base/status.h"

// Parses and validates against the built-in schema. A document that is not well-formed fails here. One that the schema
// refuses is returned too, with the reason in out_invalid: the caller, who knows the fields, may say it better. Either
// way free the document with xmlFreeDoc.
weft_status_t weft_machine_xml_parse(const char* xml, size_t size, const char* origin, xmlDocPtr* out_document,
                                     weft_status_t* out_invalid);
