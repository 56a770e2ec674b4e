// The operator table. A family's file defines its operators and one array of table lines; operators.c joins the arrays.
// So adding an operator touches one file, and support, checks, docs/operators.md and `weft ops` follow.
#pragma once
#include "base/text.h"
#include "frontend/emit.h"

enum { WEFT_ONNX_NEWEST_OPSET = 27, WEFT_ONNX_ANY = 1000000, WEFT_ONNX_MAX_PARAMETERS = 3 };

struct weft_onnx_operator_t {
  const char* name;
  int32_t since; // the first opset whose version of the operator is implemented; all later ones are too
  int32_t inputs_min, inputs_max; // WEFT_ONNX_ANY: no limit
  int32_t outputs_max;
  weft_status_t (*emit)(node_t* node);
  const char* notes;      // limits, for the docs
  weft_onnx_body_fn body; // of the operators that share an emit function
  struct {
    const char* attribute;
    double otherwise;
  } parameter[WEFT_ONNX_MAX_PARAMETERS]; // float attributes: the body's p, in this order
  int32_t kind;                          // whatever else tells the operators of an emit function apart
  int32_t until;                         // the last opset; 0: the newest
  bool has_gaps;                         // any input may be left out
  bool takes_sequences;                  // and optional values that are none; other operators see tensors only
};
// A line of the table; what else it needs (.body, .parameter, .kind, .until) comes after the notes.
#define OPERATOR(name_, since_, inputs_min_, inputs_max_, outputs_max_, emit_, notes_, ...)                            \
  {                                                                                                                    \
    .name = name_, .since = since_, .inputs_min = inputs_min_, .inputs_max = inputs_max_, .outputs_max = outputs_max_, \
    .emit = emit_, .notes = notes_ __VA_OPT__(, ) __VA_ARGS__                                                          \
  }
typedef struct weft_onnx_family_t {
  const char* title;
  const weft_onnx_operator_t* operators; // ends with a NULL name
} weft_onnx_family_t;

extern const weft_onnx_family_t weft_onnx_family_pointwise, weft_onnx_family_contraction, weft_onnx_family_window,
    weft_onnx_family_reduction, weft_onnx_family_normalization, weft_onnx_family_movement, weft_onnx_family_constant,
    weft_onnx_family_quantization, weft_onnx_family_selection, weft_onnx_family_resampling, weft_onnx_family_recurrent;

extern const weft_onnx_family_t weft_onnx_family_loss, weft_onnx_family_scatter, weft_onnx_family_sort,
    weft_onnx_family_signal, weft_onnx_family_sampling, weft_onnx_family_deform, weft_onnx_family_unpool,
    weft_onnx_family_sequence, weft_onnx_family_unique, weft_onnx_family_compact, weft_onnx_family_suppression,
    weft_onnx_family_ngram, weft_onnx_family_roi;
extern const weft_onnx_family_t weft_onnx_family_control, weft_onnx_family_attention, weft_onnx_family_integer,
    weft_onnx_family_einsum, weft_onnx_family_grid, weft_onnx_family_linear_attention;
extern const weft_onnx_family_t weft_onnx_family_microsoft, weft_onnx_family_microsoft_attention,
    weft_onnx_family_microsoft_integer, weft_onnx_family_microsoft_quantization,
    weft_onnx_family_microsoft_blocks; // of the domain com.microsoft
extern const weft_onnx_family_t weft_onnx_family_flex_attention, weft_onnx_family_training,
    weft_onnx_family_ml;                                               // of the domains of these names
const weft_onnx_operator_t* weft_onnx_operator_find(const char* name); // of ONNX's own domain; NULL: none
const weft_onnx_operator_t* weft_onnx_operator_find_in(const char* domain, const char* name);
// Why an operator is not supported, where there is more to say than that; else NULL.
const char* weft_onnx_operator_reason(const char* domain, const char* name);
// The body's parameters from the node's attributes.
weft_status_t weft_onnx_parameters(const node_t* node, double* out_p);

// Steps that several families share.
weft_status_t weft_onnx_matmul(node_t* node, value_t* a, value_t* b, value_t** out); // in the accumulator's type
// Of any two types, in `dtype`.
weft_status_t weft_onnx_matmul_in(node_t* node, value_t* a, value_t* b, weft_dtype_e dtype, value_t** out);
// Strides, pads, dilations and group as the node's attributes say; padded with `fill`; no bias.
weft_status_t weft_onnx_conv(node_t* node, value_t* x, value_t* w, weft_dtype_e dtype, double fill, value_t** out);
weft_status_t weft_onnx_mean(node_t* node, value_t* value, uint32_t axes, bool keep, value_t** out);
// Over the axes, with scale and bias or NULL. Mean (NULL unless `center`) and factor keep the axes with extent 1.
weft_status_t weft_onnx_layer_norm(node_t* node, value_t* x, uint32_t axes, double epsilon, bool center, value_t* scale,
                                   value_t* bias, value_t** out, value_t** out_mean, value_t** out_factor);
weft_status_t weft_onnx_softmax(node_t* node, value_t* value, uint32_t axes, value_t** out);
weft_status_t weft_onnx_log_softmax(node_t* node, value_t* value, uint32_t axes, value_t** out);
weft_status_t weft_onnx_binary(node_t* node, weft_onnx_body_fn body, value_t* a, value_t* b, value_t** out);
weft_status_t weft_onnx_unary(node_t* node, weft_onnx_body_fn body, const double* p, value_t* a, value_t** out);
scalar_t weft_onnx_body_add(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_sub(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_mul(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_div(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_exp(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_gelu(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_gelu_tanh(body_t* body, const scalar_t* argument);
scalar_t weft_onnx_body_sum_of_products(body_t* body, const scalar_t* argument); // p: how many operands
// ONNX Gather: the axis is replaced by the index' axes.
weft_status_t weft_onnx_gather(node_t* node, value_t* data, value_t* index, int32_t axis, value_t** out);
scalar_t weft_onnx_body_below(body_t* body, const scalar_t* argument); // p: the bound
// The elements of each column where a flag is set, as the rows (axis 0) or columns (axis 1) of a matrix. Of known flags
// as many as are set; else as many as the model says the node's result has, what is left of them -1.
weft_status_t weft_onnx_compact(node_t* node, value_t* flags, int32_t count, value_t* const* columns,
                                weft_dtype_e dtype, int32_t axis, value_t** out);
// value [outer, n, inner] -> [outer, length, inner]: element i goes to place[i] if flags[i]; two never go to one. 0
// where nothing goes.
weft_status_t weft_onnx_keep_flagged(node_t* node, value_t* flags, value_t* place, value_t* value, int64_t length,
                                     value_t** out);
// 0, 1, 2, .. as a known 1-D tensor.
weft_status_t weft_onnx_iota(node_t* node, weft_dtype_e dtype, int64_t count, value_t** out);
// out[.., o, ..] = sum over i of matrix[o, i] * value[.., i, ..]; in the accumulator's type.
weft_status_t weft_onnx_apply_matrix(node_t* node, value_t* matrix, value_t* value, int32_t axis, value_t** out);
