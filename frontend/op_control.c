// Control flow that is decided while importing: a branch is taken, a loop is unrolled.
#include <string.h>

#include "frontend/emit_graph.h"
#include "frontend/operators.h"
#include "frontend/tensor_proto.h"

static weft_status_t new_values(node_t* node, size_t count, value_t*** out) {
  return WEFT_ARENA_NEW(node->builder->arena, count + 1, out);
}

// --- If

static weft_status_t run_branch(node_t* node, bool condition, value_t** outputs) {
  weft_onnx_graph_t graph;
  TRY(weft_onnx_inner_body(node, condition ? "then_branch" : "else_branch", &graph));
  NODE_REQUIRE(node, graph.proto->n_output == (size_t)node->output_count && graph.proto->n_input == 0, INVALID_INPUT,
               "a branch has %zu inputs and %zu outputs, expected none and %d", graph.proto->n_input,
               graph.proto->n_output, node->output_count);
  return weft_onnx_inner_run(node, &graph, NULL, outputs);
}

static scalar_t choose(body_t* b, const scalar_t* x) {
  return s_select(b, x[0], x[1], x[2]);
}

// Both branches, then a choice for each element: they have no effects but their results.
static weft_status_t run_both(node_t* node, value_t* condition) {
  value_t** taken[2];
  for (int32_t i = 0; i < 2; ++i) {
    TRY(new_values(node, (size_t)node->output_count, &taken[i]));
    TRY(run_branch(node, i == 1, taken[i]));
  }
  TRY(weft_onnx_reshape(node, condition, &(shape_t){0}, &condition));
  for (int32_t i = 0; i < node->output_count; ++i) {
    value_t *no = taken[0][i], *yes = taken[1][i];
    NODE_REQUIRE(node, no->kind == WEFT_ONNX_TENSOR && yes->kind == WEFT_ONNX_TENSOR, UNSUPPORTED,
                 "input 0 (cond) is known at run time only, and the branches give sequences%s",
                 weft_onnx_bind_hint(node, condition));
    NODE_REQUIRE(node, no->dtype == yes->dtype && weft_onnx_shape_equal(&no->shape, &yes->shape), UNSUPPORTED,
                 "input 0 (cond) is known at run time only, and the branches give %s of %s and %s of %s%s",
                 weft_onnx_shape_format(&yes->shape).text, weft_dtype_name(yes->dtype),
                 weft_onnx_shape_format(&no->shape).text, weft_dtype_name(no->dtype),
                 weft_onnx_bind_hint(node, condition));
    TRY(weft_onnx_pointwise(node, choose, NULL, no->dtype, 3, (value_t*[]){condition, yes, no}, &node->output[i]));
  }
  return weft_ok();
}

static weft_status_t require_bool(node_t* node, const value_t* value) {
  NODE_REQUIRE(node, value->kind == WEFT_ONNX_TENSOR && value->dtype == WEFT_DTYPE_BOOL && weft_onnx_count(value) == 1,
               INVALID_INPUT, "the condition is %s of shape %s, expected one bool", weft_dtype_name(value->dtype),
               weft_onnx_shape_format(&value->shape).text);
  return weft_ok();
}

static weft_status_t emit_if(node_t* node) {
  value_t* condition = node->input[0];
  TRY(require_bool(node, condition));
  if (!condition->data) return run_both(node, condition);
  return run_branch(node, weft_onnx_load_int(condition, 0) != 0, node->output);
}

// --- What Loop and Scan collect: a row of each trip, along a new axis.

typedef struct rows_t {
  size_t count; // of outputs that are collected
  int64_t trips, room;
  value_t*** row; // [count][room]
} rows_t;

static weft_status_t add_rows(node_t* node, rows_t* rows, value_t* const* values) {
  if (!rows->row) TRY(WEFT_ARENA_NEW(node->builder->arena, rows->count + 1, &rows->row));
  for (size_t i = 0; i < rows->count; ++i) {
    if (rows->trips == rows->room) {
      value_t** grown;
      TRY(new_values(node, (size_t)rows->room * 2 + 16, &grown));
      if (rows->room) memcpy(grown, rows->row[i], (size_t)rows->room * sizeof(value_t*));
      rows->row[i] = grown;
    }
    NODE_REQUIRE(node, values[i]->kind == WEFT_ONNX_TENSOR, INVALID_INPUT, "a trip gives a sequence to collect");
    rows->row[i][rows->trips] = values[i];
  }
  if (rows->trips == rows->room) rows->room = rows->room * 2 + 16;
  rows->trips++;
  return weft_ok();
}

// Without a trip only the body's declaration tells the row's type.
static weft_status_t no_rows(node_t* node, const Onnx__ValueInfoProto* info, value_t** out) {
  shape_t shape = {1, {0}};
  weft_dtype_e dtype;
  bool is_known = info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                  info->type->tensor_type->shape && info->type->tensor_type->shape->n_dim < WEFT_ONNX_MAX_RANK &&
                  weft_onnx_dtype(info->type->tensor_type->elem_type, &dtype);
  for (size_t i = 0; is_known && i < info->type->tensor_type->shape->n_dim; ++i) {
    const Onnx__TensorShapeProto__Dimension* dim = info->type->tensor_type->shape->dim[i];
    is_known = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0;
    shape.extent[shape.rank++] = is_known ? dim->dim_value : 0;
  }
  NODE_REQUIRE(node, is_known, UNSUPPORTED, "it makes no trip, and the shape of '%s' is not declared",
               weft_onnx_text(info->name));
  void* nothing;
  TRY(weft_arena_allocate(node->builder->arena, 1, 8, &nothing));
  return weft_onnx_known(node, dtype, &shape, nothing, out);
}

static weft_status_t join_rows(node_t* node, const rows_t* rows, size_t output, int64_t axis, bool reverse,
                               value_t** out) {
  value_t** parts;
  int32_t at;
  TRY(new_values(node, (size_t)rows->trips, &parts));
  TRY(weft_onnx_normalize_axis(node, axis, rows->row[output][0]->shape.rank + 1, &at));
  for (int64_t i = 0; i < rows->trips; ++i)
    TRY(weft_onnx_unsqueeze(node, rows->row[output][reverse ? rows->trips - 1 - i : i], at, &parts[i]));
  return weft_onnx_concat(node, at, (int32_t)rows->trips, parts, out);
}

// --- Loop

static weft_status_t condition_holds(node_t* node, const value_t* condition, const char* what, bool* out) {
  TRY(require_bool(node, condition));
  NODE_REQUIRE(node, condition->data, UNSUPPORTED,
               "%s is known at run time only; Weft unrolls loops, and needs to know it while importing%s", what,
               weft_onnx_bind_hint(node, condition));
  *out = weft_onnx_load_int(condition, 0) != 0;
  return weft_ok();
}

enum { MAX_TRIPS = 1 << 16 };

static weft_status_t loop_bounds(node_t* node, int64_t* out_trips, bool* out_enter) {
  value_t *limit = weft_onnx_input(node, 0), *condition = weft_onnx_input(node, 1);
  double trips;
  TRY(weft_onnx_known_number(node, 0, "M", MAX_TRIPS, &trips));
  NODE_REQUIRE(node, !limit || trips <= MAX_TRIPS, UNSUPPORTED, "it makes %g trips, at most %d are unrolled", trips,
               MAX_TRIPS);
  *out_trips = limit ? (int64_t)trips : MAX_TRIPS;
  *out_enter = true;
  if (condition) TRY(condition_holds(node, condition, "input 1 (cond)", out_enter));
  return weft_ok();
}

static weft_status_t emit_loop(node_t* node) {
  weft_onnx_graph_t graph;
  int64_t trips;
  bool goes_on;
  TRY(loop_bounds(node, &trips, &goes_on));
  TRY(weft_onnx_inner_body(node, "body", &graph));
  size_t states = graph.proto->n_input < 2 ? 0 : graph.proto->n_input - 2, outputs = graph.proto->n_output;
  NODE_REQUIRE(node,
               graph.proto->n_input >= 2 && outputs >= 1 + states && (size_t)node->output_count < outputs &&
                   (size_t)node->input_count <= 2 + states,
               INVALID_INPUT,
               "its body has %zu inputs and %zu outputs, which does not fit its %d inputs and %d outputs",
               graph.proto->n_input, outputs, node->input_count, node->output_count);
  rows_t rows = {.count = outputs - 1 - states};
  value_t **inside, **made;
  TRY(new_values(node, 2 + states, &inside));
  TRY(new_values(node, outputs, &made));
  for (size_t i = 0; i < states; ++i) {
    inside[2 + i] = weft_onnx_input(node, (int32_t)(2 + i));
    NODE_REQUIRE(node, inside[2 + i], INVALID_INPUT, "input %zu is missing", 2 + i);
  }
  TRY(weft_onnx_number(node, WEFT_DTYPE_BOOL, 1, &inside[1]));
  for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
    NODE_REQUIRE(node, weft_onnx_input(node, 0) || trip + 1 < trips, UNSUPPORTED,
                 "it has no trip count and goes on after %d trips", MAX_TRIPS);
    TRY(weft_onnx_inner_prefix(node, trip, &graph.prefix));
    TRY(weft_onnx_number(node, WEFT_DTYPE_I64, (double)trip, &inside[0]));
    TRY(weft_onnx_inner_run(node, &graph, inside, made));
    memcpy(inside + 1, made, (1 + states) * sizeof(value_t*));
    TRY(add_rows(node, &rows, made + 1 + states));
    if (trip + 1 < trips) TRY(condition_holds(node, made[0], "the condition that its body gives", &goes_on));
  }
  for (int32_t i = 0; i < node->output_count; ++i) {
    size_t row = (size_t)i - states;
    if ((size_t)i < states)
      node->output[i] = inside[2 + i];
    else if (rows.trips == 0)
      TRY(no_rows(node, graph.proto->output[1 + i], &node->output[i]));
    else
      TRY(join_rows(node, &rows, row, 0, false, &node->output[i]));
  }
  return weft_ok();
}

// --- Scan

typedef struct scan_t {
  weft_onnx_graph_t body;
  size_t states, inputs, outputs; // outputs: those that are collected
  int64_t* axis;                  // of the scanned inputs, then of the collected outputs
  int64_t* backwards;
} scan_t;

static weft_status_t scan_list(node_t* node, const char* name, size_t count, int64_t* out) {
  return weft_onnx_attribute_ints(node, name, (int32_t)count, 0, out);
}

static weft_status_t prepare_scan(node_t* node, int32_t value_count, scan_t* scan) {
  int64_t inputs;
  TRY(weft_onnx_inner_body(node, "body", &scan->body));
  TRY(weft_onnx_attribute_int(node, "num_scan_inputs", 0, &inputs));
  const Onnx__GraphProto* proto = scan->body.proto;
  NODE_REQUIRE(node, inputs > 0 && inputs <= value_count && proto->n_input == (size_t)value_count, INVALID_INPUT,
               "num_scan_inputs is %lld, of %d inputs; the body has %zu", (long long)inputs, value_count,
               proto->n_input);
  scan->inputs = (size_t)inputs;
  scan->states = (size_t)value_count - scan->inputs;
  NODE_REQUIRE(node, proto->n_output >= scan->states && (size_t)node->output_count <= proto->n_output, INVALID_INPUT,
               "its body has %zu outputs, expected at least %zu states and as many as its %d outputs", proto->n_output,
               scan->states, node->output_count);
  scan->outputs = proto->n_output - scan->states;
  size_t count = scan->inputs + scan->outputs;
  TRY(WEFT_ARENA_NEW(node->builder->arena, count + 1, &scan->axis));
  TRY(WEFT_ARENA_NEW(node->builder->arena, count + 1, &scan->backwards));
  if (node->opset < 9) return scan_list(node, "directions", scan->inputs, scan->backwards);
  TRY(scan_list(node, "scan_input_axes", scan->inputs, scan->axis));
  TRY(scan_list(node, "scan_output_axes", scan->outputs, scan->axis + scan->inputs));
  TRY(scan_list(node, "scan_input_directions", scan->inputs, scan->backwards));
  return scan_list(node, "scan_output_directions", scan->outputs, scan->backwards + scan->inputs);
}

// value[.., at, ..] without the axis.
static weft_status_t take_row(node_t* node, value_t* value, int32_t axis, int64_t at, value_t** out) {
  shape_t shape = {0};
  for (int32_t i = 0; i < value->shape.rank; ++i)
    if (i != axis) shape.extent[shape.rank++] = value->shape.extent[i];
  TRY(weft_onnx_take(node, value, axis, 1, &at, &value));
  return weft_onnx_reshape(node, value, &shape, out);
}

// One sequence. values: states, then scanned inputs. out: states, then collected outputs.
static weft_status_t scan_sequence(node_t* node, scan_t* scan, value_t* const* values, value_t** out) {
  value_t **inside, **made;
  rows_t rows = {.count = scan->outputs};
  int64_t trips = -1;
  TRY(new_values(node, scan->states + scan->inputs, &inside));
  TRY(new_values(node, scan->states + scan->outputs, &made));
  memcpy(inside, values, scan->states * sizeof(value_t*));
  for (size_t i = 0; i < scan->inputs; ++i) {
    int32_t axis;
    const shape_t* shape = &values[scan->states + i]->shape;
    TRY(weft_onnx_normalize_axis(node, scan->axis[i], shape->rank, &axis));
    scan->axis[i] = axis;
    NODE_REQUIRE(node, trips < 0 || trips == shape->extent[axis], INVALID_INPUT,
                 "scanned inputs have %lld and %lld elements along their axes", (long long)trips,
                 (long long)shape->extent[axis]);
    trips = shape->extent[axis];
  }
  NODE_REQUIRE(node, trips > 0 && trips <= MAX_TRIPS, UNSUPPORTED, "it makes %lld trips, 1 to %d are unrolled",
               (long long)trips, MAX_TRIPS);
  for (int64_t trip = 0; trip < trips; ++trip) {
    TRY(weft_onnx_inner_prefix(node, trip, &scan->body.prefix));
    for (size_t i = 0; i < scan->inputs; ++i)
      TRY(take_row(node, values[scan->states + i], (int32_t)scan->axis[i], scan->backwards[i] ? trips - 1 - trip : trip,
                   &inside[scan->states + i]));
    TRY(weft_onnx_inner_run(node, &scan->body, inside, made));
    memcpy(inside, made, scan->states * sizeof(value_t*));
    TRY(add_rows(node, &rows, made + scan->states));
  }
  memcpy(out, inside, scan->states * sizeof(value_t*));
  for (size_t i = 0; i < scan->outputs; ++i)
    TRY(join_rows(node, &rows, i, scan->axis[scan->inputs + i], scan->backwards[scan->inputs + i] != 0,
                  &out[scan->states + i]));
  return weft_ok();
}

// Before opset 9 all had a batch axis in front, and each sequence of it was scanned for itself.
static weft_status_t scan_batch(node_t* node, scan_t* scan, value_t* const* values, value_t** out) {
  size_t count = scan->states + scan->inputs, made = scan->states + scan->outputs;
  value_t** one;
  rows_t rows = {.count = made};
  TRY(new_values(node, count, &one));
  NODE_REQUIRE(node, values[count - 1]->shape.rank > 0, INVALID_INPUT, "a scanned input is a scalar");
  int64_t batch = values[count - 1]->shape.extent[0];
  NODE_REQUIRE(node, batch > 0, UNSUPPORTED, "the batch is empty");
  for (int64_t b = 0; b < batch; ++b) {
    value_t** results;
    TRY(new_values(node, made, &results));
    for (size_t i = 0; i < count; ++i) {
      NODE_REQUIRE(node, values[i]->shape.rank > 0 && values[i]->shape.extent[0] == batch, INVALID_INPUT,
                   "input %zu has shape %s, expected a batch of %lld", i + 1,
                   weft_onnx_shape_format(&values[i]->shape).text, (long long)batch);
      TRY(take_row(node, values[i], 0, b, &one[i]));
    }
    TRY(scan_sequence(node, scan, one, results));
    TRY(add_rows(node, &rows, results));
  }
  for (size_t i = 0; i < made; ++i) TRY(join_rows(node, &rows, i, 0, false, &out[i]));
  return weft_ok();
}

static weft_status_t emit_scan(node_t* node) {
  scan_t scan = {0};
  bool is_old = node->opset < 9;
  value_t **values = node->input + is_old, **results;
  NODE_REQUIRE(node, !is_old || !node->input[0], UNSUPPORTED, "input 0 (sequence_lens) is not supported");
  TRY(prepare_scan(node, node->input_count - is_old, &scan));
  for (int32_t i = is_old; i < node->input_count; ++i)
    NODE_REQUIRE(node, node->input[i], INVALID_INPUT, "input %d is missing", i);
  TRY(new_values(node, scan.states + scan.outputs, &results));
  TRY(is_old ? scan_batch(node, &scan, values, results) : scan_sequence(node, &scan, values, results));
  memcpy(node->output, results, (size_t)node->output_count * sizeof(value_t*));
  return weft_ok();
}

static const weft_onnx_operator_t operators[] = {
    OPERATOR("If", 1, 1, 1, WEFT_ONNX_ANY, emit_if,
             "a condition of run time: both branches are computed, and must give the same shapes"),
    OPERATOR("Loop", 1, 2, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_loop, "unrolled: trip count and conditions are constant",
             .has_gaps = true, .takes_sequences = true),
    OPERATOR("Scan", 8, 1, WEFT_ONNX_ANY, WEFT_ONNX_ANY, emit_scan, "unrolled", .has_gaps = true),
    {0}};

const weft_onnx_family_t weft_onnx_family_control = {"Control flow", operators};
