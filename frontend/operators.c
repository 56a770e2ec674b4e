#include "frontend/operators.h"

#include <string.h>

#include "frontend/frontend.h"
#include "frontend/graph.h"

static const weft_onnx_family_t* const families[] = {&weft_onnx_family_contraction, &weft_onnx_family_window,
                                                     &weft_onnx_family_recurrent,   &weft_onnx_family_pointwise,
                                                     &weft_onnx_family_reduction,   &weft_onnx_family_normalization,
                                                     &weft_onnx_family_movement,    &weft_onnx_family_selection,
                                                     &weft_onnx_family_resampling,  &weft_onnx_family_quantization,
                                                     &weft_onnx_family_constant,    &weft_onnx_family_control,
                                                     &weft_onnx_family_attention,   &weft_onnx_family_integer,
                                                     &weft_onnx_family_loss,        &weft_onnx_family_scatter,
                                                     &weft_onnx_family_sort,        &weft_onnx_family_signal,
                                                     &weft_onnx_family_einsum,      &weft_onnx_family_linear_attention,
                                                     &weft_onnx_family_sampling,    &weft_onnx_family_deform,
                                                     &weft_onnx_family_unpool,      &weft_onnx_family_compact,
                                                     &weft_onnx_family_suppression, &weft_onnx_family_ngram,
                                                     &weft_onnx_family_roi,         &weft_onnx_family_grid,
                                                     &weft_onnx_family_sequence,    &weft_onnx_family_unique};
static const weft_onnx_family_t* const microsoft[] = {
    &weft_onnx_family_microsoft, &weft_onnx_family_microsoft_attention, &weft_onnx_family_microsoft_integer,
    &weft_onnx_family_microsoft_quantization, &weft_onnx_family_microsoft_blocks};
static const weft_onnx_family_t* const preview[] = {&weft_onnx_family_flex_attention};
static const weft_onnx_family_t* const training[] = {&weft_onnx_family_training};
static const weft_onnx_family_t* const ml[] = {&weft_onnx_family_ml};

#define DOMAIN(name, list)                                                                                             \
  { name, sizeof(list) / sizeof(list[0]), list }
static const struct {
  const char* name;
  size_t count;
  const weft_onnx_family_t* const* family;
} domains[] = {DOMAIN("", families), DOMAIN("com.microsoft", microsoft), DOMAIN("ai.onnx.ml", ml),
               DOMAIN("ai.onnx.preview", preview), DOMAIN("ai.onnx.preview.training", training)};
#undef DOMAIN
enum { DOMAIN_COUNT = sizeof(domains) / sizeof(domains[0]) };

static const weft_onnx_family_t* family_of(size_t index, const char* domain) {
  const char* name = weft_onnx_is_default_domain(domain) ? "" : domain;
  for (size_t d = 0; d < DOMAIN_COUNT; ++d)
    if (strcmp(domains[d].name, name) == 0) return index < domains[d].count ? domains[d].family[index] : NULL;
  return NULL;
}

const weft_onnx_operator_t* weft_onnx_operator_find_in(const char* domain, const char* name) {
  const weft_onnx_family_t* family;
  for (size_t f = 0; (family = family_of(f, domain)); ++f)
    for (const weft_onnx_operator_t* op = family->operators; op->name; ++op)
      if (strcmp(op->name, name) == 0) return op;
  return NULL;
}

const weft_onnx_operator_t* weft_onnx_operator_find(const char* name) {
  return weft_onnx_operator_find_in("", name);
}

// Operators that the machine has no form for.
static const struct {
  const char *name, *reason;
} reasons[] = {{"Bernoulli", "it draws random numbers"},         {"ImageDecoder", "it decodes files"},
               {"Multinomial", "it draws random numbers"},       {"RandomNormal", "it draws random numbers"},
               {"RandomNormalLike", "it draws random numbers"},  {"RandomUniform", "it draws random numbers"},
               {"RandomUniformLike", "it draws random numbers"}, {"RegexFullMatch", "strings are not supported"},
               {"StringConcat", "strings are not supported"},    {"StringNormalizer", "strings are not supported"},
               {"StringSplit", "strings are not supported"}};

const char* weft_onnx_operator_reason(const char* domain, const char* name) {
  for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]) && weft_onnx_is_default_domain(domain); ++i)
    if (strcmp(reasons[i].name, name) == 0) return reasons[i].reason;
  return NULL;
}

weft_status_t weft_onnx_parameters(const node_t* node, double* out_p) {
  for (int32_t i = 0; i < WEFT_ONNX_MAX_PARAMETERS; ++i) {
    const char* attribute = node->op->parameter[i].attribute;
    out_p[i] = 0;
    if (attribute) TRY(weft_onnx_attribute_float(node, attribute, node->op->parameter[i].otherwise, &out_p[i]));
  }
  return weft_ok();
}

static int32_t last_opset(const weft_onnx_operator_t* op) {
  return op->until ? op->until : WEFT_ONNX_NEWEST_OPSET;
}

static weft_status_t print_markdown_of(const weft_onnx_family_t* family, weft_text_t* text) {
  TRY(weft_text_printf(text, "\n## %s\n\n| operator | opsets | notes |\n|---|---|---|\n", family->title));
  for (const weft_onnx_operator_t* op = family->operators; op->name; ++op)
    TRY(weft_text_printf(text, "| %s | %d-%d | %s |\n", op->name, op->since, last_opset(op), op->notes));
  return weft_ok();
}

static weft_status_t print_markdown(weft_text_t* text) {
  const weft_onnx_family_t* family;
  TRY(weft_text_printf(text, "# ONNX operators\n\nGenerated by `weft ops --markdown`. An operator works in the opsets "
                             "given, unless a note says less; what else is in a model is reported, all at once.\n"));
  for (size_t d = 0; d < DOMAIN_COUNT; ++d)
    for (size_t f = 0; (family = family_of(f, domains[d].name)); ++f) TRY(print_markdown_of(family, text));
  return weft_ok();
}

weft_status_t weft_frontend_print_operators(bool markdown, weft_text_t* text) {
  if (markdown) return print_markdown(text);
  const weft_onnx_family_t* family;
  for (size_t d = 0; d < DOMAIN_COUNT; ++d)
    for (size_t f = 0; (family = family_of(f, domains[d].name)); ++f)
      for (const weft_onnx_operator_t* op = family->operators; op->name; ++op)
        TRY(weft_text_printf(text, "%-26s %2d-%d%s%s\n", op->name, op->since, last_opset(op), op->notes[0] ? "  " : "",
                             op->notes));
  return weft_ok();
}
