#include "frontend/node.h"

#include <string.h>

#include "frontend/function.h"
#include "frontend/graph.h"

// In a function an attribute may be that of the call, under a name of its own: the call's, or the function's default.
static weft_status_t referred_attribute(const node_t* node, const Onnx__AttributeProto* reference,
                                        const Onnx__AttributeProto** out) {
  *out = NULL;
  const node_t* caller = node->graph->caller;
  NODE_REQUIRE(node, caller, INVALID_INPUT, "attribute '%s' refers to a function's attribute '%s', outside of any",
               reference->name, reference->ref_attr_name);
  const Onnx__AttributeProto* actual;
  TRY(weft_onnx_attribute_proto(caller, reference->ref_attr_name, &actual));
  if (!actual) TRY(weft_onnx_function_default(caller, reference->ref_attr_name, &actual));
  if (!actual) return weft_ok();
  Onnx__AttributeProto* renamed;
  TRY(WEFT_ARENA_NEW(node->builder->arena, 1, &renamed));
  *renamed = *actual;
  renamed->name = reference->name;
  *out = renamed;
  return weft_ok();
}

weft_status_t weft_onnx_attribute_proto(const node_t* node, const char* name, const Onnx__AttributeProto** out) {
  const Onnx__AttributeProto* found = NULL;
  for (size_t i = 0; i < node->proto->n_attribute; ++i) {
    const Onnx__AttributeProto* attribute = node->proto->attribute[i];
    if (!attribute->name || strcmp(attribute->name, name) != 0) continue;
    NODE_REQUIRE(node, !found, INVALID_INPUT, "attribute '%s' is given twice", name);
    found = attribute;
  }
  *out = found;
  if (found && weft_onnx_text(found->ref_attr_name)[0]) return referred_attribute(node, found, out);
  return weft_ok();
}

bool weft_onnx_has_attribute(const node_t* node, const char* name) {
  const Onnx__AttributeProto* attribute = NULL;
  return weft_status_consume(weft_onnx_attribute_proto(node, name, &attribute)) && attribute;
}

// Models older than IR version 2 leave `type` out; what is set decides then.
static bool is_of_type(const Onnx__AttributeProto* attribute, int type, bool is_set) {
  return attribute->has_type && attribute->type ? (int)attribute->type == type : is_set;
}

weft_status_t weft_onnx_attribute_int(const node_t* node, const char* name, int64_t otherwise, int64_t* out) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  *out = otherwise;
  if (!attribute) return weft_ok();
  NODE_REQUIRE(node, is_of_type(attribute, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, attribute->has_i), INVALID_INPUT,
               "attribute '%s' must be an integer", name);
  *out = attribute->i;
  return weft_ok();
}

weft_status_t weft_onnx_attribute_float(const node_t* node, const char* name, double otherwise, double* out) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  *out = otherwise;
  if (!attribute) return weft_ok();
  NODE_REQUIRE(node, is_of_type(attribute, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, attribute->has_f),
               INVALID_INPUT, "attribute '%s' must be a float", name);
  *out = (double)attribute->f;
  return weft_ok();
}

weft_status_t weft_onnx_attribute_string(const node_t* node, const char* name, const char* otherwise,
                                         const char** out) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  *out = otherwise;
  if (!attribute) return weft_ok();
  NODE_REQUIRE(node, is_of_type(attribute, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, attribute->has_s),
               INVALID_INPUT, "attribute '%s' must be a string", name);
  NODE_REQUIRE(node, attribute->s.len < 256, INVALID_INPUT, "attribute '%s' has %zu characters", name,
               attribute->s.len);
  return weft_arena_printf(node->builder->arena, out, "%.*s", (int)attribute->s.len,
                           attribute->s.len ? (const char*)attribute->s.data : "");
}

weft_status_t weft_onnx_attribute_list(const node_t* node, const char* name, int32_t max, int64_t* out,
                                       int32_t* out_count) {
  const Onnx__AttributeProto* attribute;
  TRY(weft_onnx_attribute_proto(node, name, &attribute));
  *out_count = -1;
  if (!attribute) return weft_ok();
  NODE_REQUIRE(node, is_of_type(attribute, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, attribute->n_ints > 0),
               INVALID_INPUT, "attribute '%s' must be a list of integers", name);
  NODE_REQUIRE(node, attribute->n_ints <= (size_t)max, INVALID_INPUT, "attribute '%s' has %zu entries, at most %d fit",
               name, attribute->n_ints, max);
  for (size_t i = 0; i < attribute->n_ints; ++i) out[i] = attribute->ints[i];
  *out_count = (int32_t)attribute->n_ints;
  return weft_ok();
}

weft_status_t weft_onnx_attribute_ints(const node_t* node, const char* name, int32_t count, int64_t otherwise,
                                       int64_t* out) {
  int32_t given;
  TRY(weft_onnx_attribute_list(node, name, count, out, &given));
  if (given < 0) {
    for (int32_t i = 0; i < count; ++i) out[i] = otherwise;
    return weft_ok();
  }
  NODE_REQUIRE(node, given == count, INVALID_INPUT, "attribute '%s' has %d entries, expected %d", name, given, count);
  return weft_ok();
}

value_t* weft_onnx_input(const node_t* node, int32_t index) {
  return index < node->input_count ? node->input[index] : NULL;
}

static weft_status_t require_known(const node_t* node, int32_t index, const char* what, const value_t* value) {
  NODE_REQUIRE(node, value->data, UNSUPPORTED,
               "input %d (%s, '%s') is known at run time only; Weft needs it to be constant while importing%s", index,
               what, value->name ? value->name : "", weft_onnx_bind_hint(node, value));
  return weft_ok();
}

weft_status_t weft_onnx_known_ints(const node_t* node, int32_t index, const char* what, int32_t max, int64_t* out,
                                   int32_t* out_count) {
  const value_t* value = weft_onnx_input(node, index);
  *out_count = -1;
  if (!value) return weft_ok();
  TRY(require_known(node, index, what, value));
  int64_t count = weft_onnx_count(value);
  NODE_REQUIRE(node, !weft_dtype_is_float(value->dtype), INVALID_INPUT, "input %d (%s) must be of integers, got %s",
               index, what, weft_dtype_name(value->dtype));
  NODE_REQUIRE(node, value->shape.rank <= 1 && count <= max, INVALID_INPUT,
               "input %d (%s) has shape %s, expected a list of at most %d", index, what,
               weft_onnx_shape_format(&value->shape).text, max);
  for (int64_t i = 0; i < count; ++i) out[i] = weft_onnx_load_int(value, i);
  *out_count = (int32_t)count;
  return weft_ok();
}

weft_status_t weft_onnx_known_number(const node_t* node, int32_t index, const char* what, double otherwise,
                                     double* out) {
  const value_t* value = weft_onnx_input(node, index);
  *out = otherwise;
  if (!value) return weft_ok();
  TRY(require_known(node, index, what, value));
  NODE_REQUIRE(node, weft_onnx_count(value) == 1, INVALID_INPUT, "input %d (%s) has shape %s, expected one element",
               index, what, weft_onnx_shape_format(&value->shape).text);
  *out = weft_dtype_load(value->dtype, value->data);
  return weft_ok();
}

weft_status_t weft_onnx_ints_since(const node_t* node, int64_t since, int32_t index, const char* name, int32_t max,
                                   int64_t* out, int32_t* out_count) {
  return node->opset >= since ? weft_onnx_known_ints(node, index, name, max, out, out_count)
                              : weft_onnx_attribute_list(node, name, max, out, out_count);
}

weft_status_t weft_onnx_normalize_axis(const node_t* node, int64_t axis, int32_t rank, int32_t* out) {
  NODE_REQUIRE(node, axis >= -(int64_t)rank && axis < rank, INVALID_INPUT,
               "axis %lld is outside of [%d, %d) for a tensor of rank %d", (long long)axis, -rank, rank, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return weft_ok();
}

weft_status_t weft_onnx_axis(const node_t* node, int64_t otherwise, int32_t rank, int32_t* out) {
  int64_t axis;
  TRY(weft_onnx_attribute_int(node, "axis", otherwise, &axis));
  return weft_onnx_normalize_axis(node, axis, rank, out);
}

weft_status_t weft_onnx_axis_mask(const node_t* node, int32_t count, const int64_t* axes, int32_t rank,
                                  uint32_t* out_mask) {
  *out_mask = 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t axis;
    TRY(weft_onnx_normalize_axis(node, axes[i], rank, &axis));
    NODE_REQUIRE(node, !(*out_mask >> axis & 1), INVALID_INPUT, "axis %lld is given twice", (long long)axes[i]);
    *out_mask |= 1u << axis;
  }
  return weft_ok();
}
