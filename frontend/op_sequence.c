// Sequences and optional values: lists of values while importing, of which nothing is left at run time.
#include <string.h>

#include "frontend/emit_graph.h"
#include "frontend/operators.h"

static weft_status_t new_sequence(node_t* node, int32_t count, value_t** out) {
  TRY(WEFT_ARENA_NEW(node->builder->arena, 1, out));
  (*out)->kind = WEFT_ONNX_SEQUENCE;
  (*out)->item_count = count;
  return WEFT_ARENA_NEW(node->builder->arena, (size_t)count + 1, &(*out)->item);
}

static weft_status_t require_sequence(node_t* node, int32_t index) {
  value_t* value = weft_onnx_input(node, index);
  NODE_REQUIRE(node, value && value->kind == WEFT_ONNX_SEQUENCE, INVALID_INPUT, "input %d is no sequence", index);
  return weft_ok();
}

static weft_status_t require_tensor(node_t* node, int32_t index) {
  value_t* value = weft_onnx_input(node, index);
  NODE_REQUIRE(node, value && value->kind == WEFT_ONNX_TENSOR, INVALID_INPUT, "input %d is no tensor", index);
  return weft_ok();
}

static weft_status_t emit_construct(node_t* node) {
  TRY(new_sequence(node, node->input_count, &node->output[0]));
  for (int32_t i = 0; i < node->input_count; ++i) {
    TRY(require_tensor(node, i));
    node->output[0]->item[i] = node->input[i];
  }
  return weft_ok();
}

static weft_status_t emit_empty(node_t* node) {
  return new_sequence(node, 0, &node->output[0]);
}

// Input `index`, counted from the end if negative; one of `places`, or `otherwise` when it is left out.
static weft_status_t read_place(node_t* node, int32_t index, int32_t places, int32_t otherwise, int32_t* out) {
  double given;
  TRY(weft_onnx_known_number(node, index, "position", otherwise, &given));
  int32_t items = node->input[0]->item_count;
  NODE_REQUIRE(node, given >= -items && given < places, INVALID_INPUT, "position %g in a sequence of %d", given, items);
  *out = (int32_t)(given < 0 ? given + items : given);
  return weft_ok();
}

static weft_status_t emit_insert(node_t* node) {
  int32_t place;
  TRY(require_sequence(node, 0));
  TRY(require_tensor(node, 1));
  const value_t* from = node->input[0];
  TRY(read_place(node, 2, from->item_count + 1, from->item_count, &place));
  TRY(new_sequence(node, from->item_count + 1, &node->output[0]));
  for (int32_t i = 0; i <= from->item_count; ++i)
    node->output[0]->item[i] = i == place ? node->input[1] : from->item[i < place ? i : i - 1];
  return weft_ok();
}

static weft_status_t emit_erase(node_t* node) {
  int32_t place, kept = 0;
  TRY(require_sequence(node, 0));
  const value_t* from = node->input[0];
  TRY(read_place(node, 1, from->item_count, from->item_count - 1, &place));
  TRY(new_sequence(node, from->item_count - 1, &node->output[0]));
  for (int32_t i = 0; i < from->item_count; ++i)
    if (i != place) node->output[0]->item[kept++] = from->item[i];
  return weft_ok();
}

static weft_status_t emit_at(node_t* node) {
  int32_t place;
  TRY(require_sequence(node, 0));
  TRY(read_place(node, 1, node->input[0]->item_count, 0, &place));
  node->output[0] = node->input[0]->item[place];
  return weft_ok();
}

static weft_status_t emit_length(node_t* node) {
  TRY(require_sequence(node, 0));
  return weft_onnx_number(node, WEFT_DTYPE_I64, node->input[0]->item_count, &node->output[0]);
}

static weft_status_t emit_concat_sequence(node_t* node) {
  int64_t given, is_new;
  int32_t axis;
  TRY(require_sequence(node, 0));
  const value_t* from = node->input[0];
  value_t** parts;
  NODE_REQUIRE(node, from->item_count > 0, INVALID_INPUT, "the sequence is empty");
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)from->item_count, &parts));
  TRY(weft_onnx_attribute_int(node, "axis", 0, &given));
  TRY(weft_onnx_attribute_int(node, "new_axis", 0, &is_new));
  TRY(weft_onnx_normalize_axis(node, given, from->item[0]->shape.rank + (is_new != 0), &axis));
  for (int32_t i = 0; i < from->item_count; ++i) {
    parts[i] = from->item[i];
    if (is_new) TRY(weft_onnx_unsqueeze(node, parts[i], axis, &parts[i]));
  }
  return weft_onnx_concat(node, axis, from->item_count, parts, &node->output[0]);
}

// Lengths of the parts along an axis: a list, one length for all but the last, or 1.
static weft_status_t split_lengths(node_t* node, int64_t extent, int64_t** out, int32_t* out_count) {
  value_t* split = weft_onnx_input(node, 1);
  bool is_list = split && split->shape.rank == 1;
  int64_t total = 0, *given;
  NODE_REQUIRE(node, extent < INT32_MAX && (!is_list || weft_onnx_count(split) < INT32_MAX), UNSUPPORTED,
               "it makes too many parts");
  int32_t most = is_list ? (int32_t)weft_onnx_count(split) : 1, count;
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)(most > extent ? most : extent) + 1, &given));
  TRY(weft_onnx_known_ints(node, 1, "split", most, given, &count));
  if (!is_list) {
    int64_t each = count < 0 ? 1 : given[0];
    NODE_REQUIRE(node, each > 0, INVALID_INPUT, "split is %lld", (long long)each);
    for (count = 0; total < extent; total += given[count++])
      given[count] = each < extent - total ? each : extent - total;
  } else {
    for (int32_t i = 0; i < count; ++i) {
      NODE_REQUIRE(node, given[i] >= 0 && given[i] <= extent - total, INVALID_INPUT,
                   "part %d of %lld elements does not fit: the axis has %lld", i, (long long)given[i],
                   (long long)extent);
      total += given[i];
    }
    NODE_REQUIRE(node, total == extent, INVALID_INPUT, "the parts have %lld elements, the axis has %lld",
                 (long long)total, (long long)extent);
  }
  *out = given;
  *out_count = count;
  return weft_ok();
}

static weft_status_t emit_split_to_sequence(node_t* node) {
  int64_t keeps, *length;
  int32_t axis, count;
  TRY(require_tensor(node, 0));
  value_t* value = node->input[0];
  TRY(weft_onnx_axis(node, 0, value->shape.rank, &axis));
  TRY(weft_onnx_attribute_int(node, "keepdims", 1, &keeps));
  TRY(split_lengths(node, value->shape.extent[axis], &length, &count));
  TRY(new_sequence(node, count, &node->output[0]));
  int64_t offset[WEFT_ONNX_MAX_RANK] = {0}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  shape_t squeezed = {.rank = 0};
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    size[i] = value->shape.extent[i];
    step[i] = 1;
    if (i != axis) squeezed.extent[squeezed.rank++] = size[i];
  }
  for (int32_t i = 0; i < count; offset[axis] += length[i++]) {
    value_t** item = &node->output[0]->item[i];
    size[axis] = length[i];
    TRY(weft_onnx_slice(node, value, offset, size, step, item));
    if (!keeps && !weft_onnx_input(node, 1)) TRY(weft_onnx_reshape(node, *item, &squeezed, item));
  }
  return weft_ok();
}

// The body, once for each item of input 0; further sequences go along with it, tensors are the same for all.
static weft_status_t emit_map(node_t* node) {
  weft_onnx_graph_t body;
  value_t **inside, **made;
  TRY(require_sequence(node, 0));
  TRY(weft_onnx_inner_body(node, "body", &body));
  int32_t count = node->input[0]->item_count;
  NODE_REQUIRE(node,
               body.proto->n_input == (size_t)node->input_count && body.proto->n_output == (size_t)node->output_count,
               INVALID_INPUT, "its body has %zu inputs and %zu outputs, expected %d and %d", body.proto->n_input,
               body.proto->n_output, node->input_count, node->output_count);
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)node->input_count + 1, &inside));
  TRY(WEFT_ARENA_NEW(node->builder->arena, (size_t)node->output_count + 1, &made));
  for (int32_t o = 0; o < node->output_count; ++o) TRY(new_sequence(node, count, &node->output[o]));
  for (int32_t i = 0; i < node->input_count; ++i)
    NODE_REQUIRE(node,
                 node->input[i] && (node->input[i]->kind != WEFT_ONNX_SEQUENCE || node->input[i]->item_count == count),
                 INVALID_INPUT, "input %d is missing, or no sequence of %d", i, count);
  for (int32_t at = 0; at < count; ++at) {
    for (int32_t i = 0; i < node->input_count; ++i)
      inside[i] = node->input[i]->kind == WEFT_ONNX_SEQUENCE ? node->input[i]->item[at] : node->input[i];
    TRY(weft_onnx_inner_prefix(node, at, &body.prefix));
    TRY(weft_onnx_inner_run(node, &body, inside, made));
    for (int32_t o = 0; o < node->output_count; ++o) node->output[o]->item[at] = made[o];
  }
  return weft_ok();
}

// --- Optional values: the value itself, or a mark that there is none.

static weft_status_t emit_optional(node_t* node) {
  node->output[0] = weft_onnx_input(node, 0);
  if (node->output[0]) return weft_ok();
  TRY(WEFT_ARENA_NEW(node->builder->arena, 1, &node->output[0]));
  node->output[0]->kind = WEFT_ONNX_NONE;
  return weft_ok();
}

static weft_status_t emit_has_element(node_t* node) {
  value_t* value = weft_onnx_input(node, 0);
  return weft_onnx_number(node, WEFT_DTYPE_BOOL, value && value->kind != WEFT_ONNX_NONE, &node->output[0]);
}

static weft_status_t emit_get_element(node_t* node) {
  NODE_REQUIRE(node, node->input[0]->kind != WEFT_ONNX_NONE, INVALID_INPUT, "the optional value has no element");
  node->output[0] = node->input[0];
  return weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("ConcatFromSequence", 11, 1, 1, 1, emit_concat_sequence, "", .takes_sequences = true),
    OPERATOR("Optional", 15, 0, 1, 1, emit_optional, "", .takes_sequences = true),
    OPERATOR("OptionalGetElement", 15, 1, 1, 1, emit_get_element, "", .takes_sequences = true),
    OPERATOR("OptionalHasElement", 15, 0, 1, 1, emit_has_element, "", .takes_sequences = true, .has_gaps = true),
    OPERATOR("SequenceAt", 11, 2, 2, 1, emit_at, "constant position", .takes_sequences = true),
    OPERATOR("SequenceConstruct", 11, 1, WEFT_ONNX_ANY, 1, emit_construct, ""),
    OPERATOR("SequenceEmpty", 11, 0, 0, 1, emit_empty, ""),
    OPERATOR("SequenceErase", 11, 1, 2, 1, emit_erase, "constant position", .takes_sequences = true),
    OPERATOR("SequenceInsert", 11, 2, 3, 1, emit_insert, "constant position", .takes_sequences = true),
    OPERATOR("SequenceLength", 11, 1, 1, 1, emit_length, "", .takes_sequences = true),
    OPERATOR("SequenceMap", 17, 1, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_map, "unrolled", .takes_sequences = true),
    OPERATOR("SplitToSequence", 11, 1, 2, 1, emit_split_to_sequence, "constant lengths"),
    {0}};

const weft_onnx_family_t weft_onnx_family_sequence = {"Sequences and optional values", operators};
