#include "machine/xml.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <libxml/xmlversion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "machine/embedded.h"

#if LIBXML_VERSION >= 21200
typedef const xmlError* xml_error_t;
#else
typedef xmlErrorPtr xml_error_t;
#endif

// The first error: the ones after it are consequences.
typedef struct capture_t {
  bool failed, has_doctype;
  int line;
  char text[400];
} capture_t;

static void capture_error(capture_t* capture, xml_error_t error) {
  if (capture->failed || error->level < XML_ERR_ERROR) return;
  capture->failed = true;
  capture->line = error->line;
  const xmlNode* node = error->node; // an attribute has no line of its own
  if (node && node->type == XML_ATTRIBUTE_NODE) capture->line = (int)xmlGetLineNo(node->parent);
  snprintf(capture->text, sizeof(capture->text), "%s", error->message ? error->message : "out of memory");
  size_t length = strlen(capture->text);
  while (length > 0 && capture->text[length - 1] == '\n') capture->text[--length] = 0;
}

static void on_schema_error(void* self, xml_error_t error) {
  capture_error(self, error);
}

// The parser passes its context, which SAX needs as user data; the capture hangs off that.
static void on_parser_error(void* self, xml_error_t error) {
  capture_error(((xmlParserCtxtPtr)self)->_private, error);
}

// Entities need a document type; a machine file needs neither.
static void on_doctype(void* self, const xmlChar* name, const xmlChar* external, const xmlChar* system) {
  (void)name, (void)external, (void)system;
  xmlParserCtxtPtr context = self;
  ((capture_t*)context->_private)->has_doctype = true;
  xmlStopParser(context);
}

static weft_status_t parse_document(const char* xml, size_t size, const char* origin, xmlDocPtr* out_document) {
  *out_document = NULL;
  if (size > INT_MAX) return weft_error(INVALID_INPUT, "%s: %zu bytes are no machine file", origin, size);
  xmlParserCtxtPtr context = xmlNewParserCtxt();
  if (!context) return weft_error(OUT_OF_MEMORY, "%s: out of memory", origin);
  capture_t capture = {0};
  context->_private = &capture;
  context->sax->serror = on_parser_error;
  context->sax->internalSubset = on_doctype;
  xmlDocPtr document = xmlCtxtReadMemory(context, xml, (int)size, NULL, NULL, XML_PARSE_NONET | XML_PARSE_BIG_LINES);
  int line = context->input ? context->input->line : 1;
  xmlFreeParserCtxt(context);
  if (document && !capture.failed && !capture.has_doctype) {
    *out_document = document;
    return weft_ok();
  }
  xmlFreeDoc(document);
  if (capture.has_doctype) {
    return weft_error(INVALID_INPUT, "%s:%d: a document type declaration; expected the element <machine>", origin,
                      line);
  }
  return weft_error(INVALID_INPUT, "%s:%d: not well-formed XML: %s", origin, capture.failed ? capture.line : 1,
                    capture.failed ? capture.text : "no content");
}

// Fails only when the schema can't be used. *out_invalid: why the document is not what the schema asks for.
static weft_status_t validate(xmlDocPtr document, const char* origin, weft_status_t* out_invalid) {
  weft_status_t status = weft_ok();
  capture_t capture = {0};
  xmlRelaxNGPtr schema = NULL;
  xmlRelaxNGValidCtxtPtr validator = NULL;
  xmlRelaxNGParserCtxtPtr parser = xmlRelaxNGNewMemParserCtxt(weft_machine_schema, (int)weft_machine_schema_size);
  if (parser) {
    xmlRelaxNGSetParserStructuredErrors(parser, on_schema_error, &capture);
    schema = xmlRelaxNGParse(parser);
  }
  if (schema) validator = xmlRelaxNGNewValidCtxt(schema);
  if (validator) {
    xmlRelaxNGSetValidStructuredErrors(validator, on_schema_error, &capture);
    if (xmlRelaxNGValidateDoc(validator, document) != 0) {
      *out_invalid = weft_error(INVALID_INPUT, "%s:%d: %s", origin, capture.line,
                                capture.failed ? capture.text : "does not match the machine schema");
    }
  } else {
    status = weft_error(INTERNAL, "%s: machine.rng: %s", origin, capture.failed ? capture.text : "out of memory");
  }
  xmlRelaxNGFreeValidCtxt(validator);
  xmlRelaxNGFree(schema);
  xmlRelaxNGFreeParserCtxt(parser);
  return status;
}

weft_status_t weft_machine_xml_parse(const char* xml, size_t size, const char* origin, xmlDocPtr* out_document,
                                     weft_status_t* out_invalid) {
  *out_invalid = weft_ok();
  WEFT_RETURN_IF_ERROR(parse_document(xml, size, origin, out_document));
  weft_status_t status = validate(*out_document, origin, out_invalid);
  if (status) {
    xmlFreeDoc(*out_document);
    *out_document = NULL;
  }
  return status;
}
