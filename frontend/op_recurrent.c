// LSTM, GRU and RNN: the inputs' share of all gates for the whole sequence at once, then a loop over the time steps.
#include <string.h>

#include "frontend/operators.h"

enum { RNN_GATES = 1, GRU_GATES = 3, LSTM_GATES = 4, MAX_GATES = 4, MAX_ACTIVATIONS = 3, NO_CLIP = 0 };

// What is applied to a sum: a line of the operator table, or one of the two activations that are no operators.
// Parameter p of its body; the bodies below find the rest behind it.
typedef struct activation_t {
  double p[WEFT_ONNX_MAX_PARAMETERS];
  weft_onnx_body_fn body;
  double clip; // bound of its argument; NO_CLIP: none
} activation_t;

// One direction of one node.
typedef struct cell_t {
  int64_t steps, batch, inputs, units;
  int32_t gates;
  weft_dtype_e dtype; // of the accumulators and the state
  bool after_reset;   // GRU: the reset gate acts on the product, not on the state
  bool coupled;       // LSTM: forget what isn't let in
  activation_t activation[MAX_ACTIVATIONS];
  value_t* projected[MAX_GATES]; // [steps, batch, units]: the inputs' share, biases included
  value_t* recurrent[MAX_GATES]; // [units, units]
  value_t* peephole[MAX_GATES];  // [units] or NULL
  value_t* reset_bias;           // [units] or NULL
  value_t* live;                 // [steps, batch] of bool: which sequences still run; NULL: all do
} cell_t;

// --- Bodies

static scalar_t activate(body_t* b, const activation_t* activation, scalar_t x) {
  if (activation->clip != NO_CLIP) x = s_clamp(b, x, -activation->clip, activation->clip);
  body_t inner = *b;
  inner.p = activation->p;
  return activation->body(&inner, &x);
}
static const activation_t* activation_of(const body_t* b) {
  return (const activation_t*)b->p; // its first member
}
#define BODY(name) static scalar_t name(body_t* b, const scalar_t* x)
BODY(affine) {
  return s_add(b, s_mul(b, x[0], s_const(x[0], b->p[0])), s_const(x[0], b->p[1]));
}
BODY(scaled_tanh) {
  return s_mul(b, s_tanh(b, s_mul(b, x[0], s_const(x[0], b->p[1]))), s_const(x[0], b->p[0]));
}
BODY(gate) { // product, projected
  return activate(b, activation_of(b), s_add(b, x[0], x[1]));
}
BODY(gate_with_peephole) { // product, projected, peephole, cell
  return activate(b, activation_of(b), s_add(b, s_add(b, x[0], x[1]), s_mul(b, x[2], x[3])));
}
BODY(gate_after_reset) { // product, projected, reset, and the product's bias
  return activate(b, activation_of(b), s_add(b, x[1], s_mul(b, x[2], s_add(b, x[0], x[3]))));
}
BODY(one_minus) {
  return s_sub(b, s_const(x[0], 1), x[0]);
}
BODY(next_cell) { // forget, cell, let in, candidate
  return s_add(b, s_mul(b, x[0], x[1]), s_mul(b, x[2], x[3]));
}
BODY(hidden_of_cell) { // output gate, cell
  return s_mul(b, x[0], activate(b, activation_of(b), x[1]));
}
BODY(next_hidden) { // update, candidate, hidden
  return s_add(b, s_mul(b, s_sub(b, s_const(x[0], 1), x[0]), x[1]), s_mul(b, x[0], x[2]));
}
BODY(keep_unless_live) { // live, new, old
  return s_select(b, x[0], x[1], x[2]);
}
BODY(zero_unless_live) { // live, new
  return s_select(b, x[0], x[1], s_const(x[1], 0));
}
BODY(is_before) { // step, length
  return s_compare(b, WEFT_ONNX_LT, x[0], x[1]);
}

// --- One time step

enum { BATCH, UNIT, SUMMED };

// Values of shape [batch, units], [units] (kind UNIT) or [batch] (kind BATCH) -> [batch, units].
static weft_status_t elementwise(node_t* node, const cell_t* cell, weft_onnx_body_fn body, const activation_t* p,
                                 int32_t count, value_t* const* x, value_t** out) {
  weft_onnx_generic_t generic = {.rank = 2,
                                 .extent = {cell->batch, cell->units},
                                 .operand_count = count,
                                 .dtype = cell->dtype,
                                 .body = body,
                                 .p = p ? p->p : NULL};
  for (int32_t i = 0; i < count; ++i) {
    weft_onnx_operand_t* operand = &generic.operand[i];
    *operand = (weft_onnx_operand_t){.value = x[i], .rank = x[i]->shape.rank};
    operand->axis[0] = weft_onnx_along(operand->rank == 2 || x[i] == cell->live ? BATCH : UNIT);
    operand->axis[1] = weft_onnx_along(UNIT);
  }
  return weft_onnx_generic(node, &generic, out);
}

// state [batch, units] times the gate's matrix, transposed.
static weft_status_t product(node_t* node, const cell_t* cell, value_t* state, int32_t gate_index, value_t** out) {
  weft_onnx_generic_t generic = {.rank = 3,
                                 .extent = {cell->batch, cell->units, cell->units},
                                 .reduction = 1u << SUMMED,
                                 .operand_count = 2,
                                 .dtype = cell->dtype,
                                 .body = weft_onnx_body_mul_add};
  generic.operand[0] = (weft_onnx_operand_t){state, 2, {weft_onnx_along(BATCH), weft_onnx_along(SUMMED)}};
  generic.operand[1] =
      (weft_onnx_operand_t){cell->recurrent[gate_index], 2, {weft_onnx_along(UNIT), weft_onnx_along(SUMMED)}};
  return weft_onnx_generic(node, &generic, out);
}

// activation(state R^T + projected [+ peephole * memory])
static weft_status_t make_gate(node_t* node, const weft_onnx_loop_t* loop, int32_t gate_index, int32_t activation,
                               value_t* state, value_t* memory, value_t** out) {
  const cell_t* cell = loop->self;
  value_t* x[4] = {NULL, NULL, cell->peephole[gate_index], memory};
  TRY(product(node, cell, state, gate_index, &x[0]));
  TRY(weft_onnx_loop_row(node, loop, cell->projected[gate_index], &x[1]));
  bool peeps = x[2] && memory;
  return elementwise(node, cell, peeps ? gate_with_peephole : gate, &cell->activation[activation], peeps ? 4 : 2, x,
                     out);
}

// What a sequence that has ended keeps, and what it gives.
static weft_status_t mask(node_t* node, const weft_onnx_loop_t* loop, value_t* const* state, value_t** next,
                          value_t** out_row) {
  const cell_t* cell = loop->self;
  *out_row = next[0];
  if (!cell->live) return weft_ok();
  cell_t at_row = *cell;
  TRY(weft_onnx_loop_row(node, loop, cell->live, &at_row.live));
  TRY(elementwise(node, &at_row, zero_unless_live, NULL, 2, (value_t*[]){at_row.live, next[0]}, out_row));
  for (int32_t i = 0; i < loop->state_count; ++i)
    TRY(elementwise(node, &at_row, keep_unless_live, NULL, 3, (value_t*[]){at_row.live, next[i], state[i]}, &next[i]));
  return weft_ok();
}

static weft_status_t step_rnn(node_t* node, const weft_onnx_loop_t* loop, value_t* const* state, value_t** next,
                              value_t** out_row) {
  TRY(make_gate(node, loop, 0, 0, state[0], NULL, &next[0]));
  return mask(node, loop, state, next, out_row);
}

static weft_status_t step_gru(node_t* node, const weft_onnx_loop_t* loop, value_t* const* state, value_t** next,
                              value_t** out_row) {
  enum { UPDATE, RESET, CANDIDATE };
  const cell_t* cell = loop->self;
  value_t *update, *reset, *candidate;
  TRY(make_gate(node, loop, UPDATE, 0, state[0], NULL, &update));
  TRY(make_gate(node, loop, RESET, 0, state[0], NULL, &reset));
  if (cell->after_reset) {
    value_t* x[4] = {NULL, NULL, reset, cell->reset_bias};
    TRY(product(node, cell, state[0], CANDIDATE, &x[0]));
    TRY(weft_onnx_loop_row(node, loop, cell->projected[CANDIDATE], &x[1]));
    TRY(elementwise(node, cell, gate_after_reset, &cell->activation[1], 4, x, &candidate));
  } else {
    value_t* kept;
    TRY(elementwise(node, cell, weft_onnx_body_mul, NULL, 2, (value_t*[]){reset, state[0]}, &kept));
    TRY(make_gate(node, loop, CANDIDATE, 1, kept, NULL, &candidate));
  }
  TRY(elementwise(node, cell, next_hidden, NULL, 3, (value_t*[]){update, candidate, state[0]}, &next[0]));
  return mask(node, loop, state, next, out_row);
}

static weft_status_t step_lstm(node_t* node, const weft_onnx_loop_t* loop, value_t* const* state, value_t** next,
                               value_t** out_row) {
  enum { INPUT, OUTPUT, FORGET, CANDIDATE };
  const cell_t* cell = loop->self;
  value_t *hidden = state[0], *memory = state[1], *input, *forget, *candidate, *output;
  TRY(make_gate(node, loop, INPUT, 0, hidden, memory, &input));
  if (cell->coupled)
    TRY(elementwise(node, cell, one_minus, NULL, 1, &input, &forget));
  else
    TRY(make_gate(node, loop, FORGET, 0, hidden, memory, &forget));
  TRY(make_gate(node, loop, CANDIDATE, 1, hidden, NULL, &candidate));
  TRY(elementwise(node, cell, next_cell, NULL, 4, (value_t*[]){forget, memory, input, candidate}, &next[1]));
  TRY(make_gate(node, loop, OUTPUT, 0, hidden, next[1], &output));
  TRY(elementwise(node, cell, hidden_of_cell, &cell->activation[2], 2, (value_t*[]){output, next[1]}, &next[0]));
  return mask(node, loop, state, next, out_row);
}

// --- Attributes

static weft_status_t read_list(node_t* node, const char* name, size_t most, size_t* out_count,
                               const Onnx__AttributeProto** out) {
  TRY(weft_onnx_attribute_proto(node, name, out));
  *out_count = !*out ? 0 : (*out)->n_strings ? (*out)->n_strings : (*out)->n_floats;
  NODE_REQUIRE(node, *out_count <= most, INVALID_INPUT, "attribute '%s' has %zu entries, at most %zu belong to it",
               name, *out_count, most);
  return weft_ok();
}

typedef struct defaults_t {
  const char* name;
  weft_onnx_body_fn body;
  int32_t parameters;
  double p[2];
} defaults_t;

static weft_status_t find_activation(node_t* node, const char* name, size_t length, defaults_t* out) {
  static const defaults_t own[] = {{"Affine", affine, 2, {1, 0}}, {"ScaledTanh", scaled_tanh, 2, {1, 1}}};
  static const char* const operators[] = {"Relu",     "Tanh",        "Sigmoid", "LeakyRelu", "ThresholdedRelu",
                                          "Softsign", "HardSigmoid", "Elu",     "Softplus"};
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); ++i)
    if (strlen(own[i].name) == length && memcmp(own[i].name, name, length) == 0) return *out = own[i], weft_ok();
  for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); ++i) {
    if (strlen(operators[i]) != length || memcmp(operators[i], name, length) != 0) continue;
    const weft_onnx_operator_t* op = weft_onnx_operator_find(operators[i]);
    *out = (defaults_t){.name = op->name, .body = op->body};
    for (; out->parameters < 2 && op->parameter[out->parameters].attribute; ++out->parameters)
      out->p[out->parameters] = op->parameter[out->parameters].otherwise;
    return weft_ok();
  }
  return NODE_ERROR(node, UNSUPPORTED, "activation '%.*s' is unknown", (int)length, name);
}

// The activations of all directions, in order; alphas and betas are handed out to those that have such a parameter.
static weft_status_t read_activations(node_t* node, int32_t directions, int32_t count, activation_t* out) {
  const Onnx__AttributeProto *names, *alpha, *beta;
  size_t total = (size_t)(directions * count), given, alphas, betas, next_alpha = 0, next_beta = 0;
  double clip;
  TRY(read_list(node, "activations", total, &given, &names));
  TRY(read_list(node, "activation_alpha", total, &alphas, &alpha));
  TRY(read_list(node, "activation_beta", total, &betas, &beta));
  TRY(weft_onnx_attribute_float(node, "clip", NO_CLIP, &clip));
  NODE_REQUIRE(node, given == 0 || given == total, INVALID_INPUT, "%zu activations are given, expected %zu", given,
               total);
  for (size_t i = 0; i < total; ++i) {
    bool first = node->op->kind != RNN_GATES && i % (size_t)count == 0;
    const char* name = first ? "Sigmoid" : "Tanh";
    size_t length = strlen(name);
    if (given) {
      name = (const char*)names->strings[i].data;
      length = names->strings[i].len;
    }
    defaults_t found;
    TRY(find_activation(node, name, length, &found));
    out[i] = (activation_t){.p = {found.p[0], found.p[1]}, .body = found.body, .clip = clip};
    if (found.parameters > 0 && next_alpha < alphas) out[i].p[0] = (double)alpha->floats[next_alpha++];
    if (found.parameters > 1 && next_beta < betas) out[i].p[1] = (double)beta->floats[next_beta++];
  }
  return weft_ok();
}

// --- Inputs

enum { IN_X, IN_W, IN_R, IN_BIAS, IN_LENGTHS, IN_HIDDEN, IN_MEMORY, IN_PEEPHOLE };

// `count` rows of one direction from row `first` on, of an input [directions, ..]: [count, ..] or [count].
static weft_status_t rows_of(node_t* node, value_t* value, int32_t direction, int64_t first, int64_t count,
                             value_t** out) {
  int64_t offset[WEFT_ONNX_MAX_RANK] = {direction, first}, size[WEFT_ONNX_MAX_RANK], step[WEFT_ONNX_MAX_RANK];
  for (int32_t i = 0; i < value->shape.rank; ++i) {
    size[i] = value->shape.extent[i];
    step[i] = 1;
  }
  size[0] = 1;
  size[1] = count;
  TRY(weft_onnx_slice(node, value, offset, size, step, out));
  shape_t shape = weft_onnx_shape_make(value->shape.rank - 1, size + 1);
  return weft_onnx_reshape(node, *out, &shape, out);
}

static weft_status_t require_shape(node_t* node, int32_t index, const char* what, int32_t rank, const int64_t* extent) {
  const value_t* value = weft_onnx_input(node, index);
  shape_t expected = weft_onnx_shape_make(rank, extent);
  NODE_REQUIRE(node, !value || weft_onnx_shape_equal(&value->shape, &expected), INVALID_INPUT,
               "%s has shape %s, expected %s", what, weft_onnx_shape_format(&value->shape).text,
               weft_onnx_shape_format(&expected).text);
  return weft_ok();
}

static weft_status_t check_inputs(node_t* node, const cell_t* cell, int32_t directions, bool batch_first) {
  int64_t d = directions, gates = cell->gates * cell->units;
  int64_t state[] = {batch_first ? cell->batch : d, batch_first ? d : cell->batch, cell->units};
  TRY(require_shape(node, IN_W, "W", 3, (int64_t[]){d, gates, cell->inputs}));
  TRY(require_shape(node, IN_R, "R", 3, (int64_t[]){d, gates, cell->units}));
  TRY(require_shape(node, IN_BIAS, "B", 2, (int64_t[]){d, 2 * gates}));
  TRY(require_shape(node, IN_LENGTHS, "sequence_lens", 1, (int64_t[]){cell->batch}));
  TRY(require_shape(node, IN_HIDDEN, "initial_h", 3, state));
  TRY(require_shape(node, IN_MEMORY, "initial_c", 3, state));
  return require_shape(node, IN_PEEPHOLE, "P", 2, (int64_t[]){d, 3 * cell->units});
}

// [steps, batch] of bool, or NULL when every sequence is known to be as long as the input.
static weft_status_t find_live(node_t* node, cell_t* cell) {
  value_t *lengths = weft_onnx_input(node, IN_LENGTHS), *steps;
  cell->live = NULL;
  if (!lengths) return weft_ok();
  bool whole = lengths->data != NULL;
  for (int64_t i = 0; i < cell->batch && whole; ++i) whole = weft_onnx_load_int(lengths, i) == cell->steps;
  if (whole) return weft_ok();
  TRY(weft_onnx_iota(node, lengths->dtype, cell->steps, &steps));
  weft_onnx_generic_t generic = {.rank = 2,
                                 .extent = {cell->steps, cell->batch},
                                 .operand_count = 2,
                                 .operand = {{steps, 1, {weft_onnx_along(0)}}, {lengths, 1, {weft_onnx_along(1)}}},
                                 .dtype = WEFT_DTYPE_BOOL,
                                 .body = is_before};
  return weft_onnx_generic(node, &generic, &cell->live);
}

// The sum of both biases for all gates, [gates * units]; a bias that the reset gate acts on stays apart.
static weft_status_t sum_biases(node_t* node, cell_t* cell, int32_t direction, value_t** out) {
  value_t *bias = node->input[IN_BIAS], *part[MAX_GATES];
  for (int32_t g = 0; g < cell->gates; ++g) {
    value_t *of_input, *of_state;
    TRY(rows_of(node, bias, direction, g * cell->units, cell->units, &of_input));
    TRY(rows_of(node, bias, direction, (cell->gates + g) * cell->units, cell->units, &of_state));
    part[g] = of_input;
    if (cell->after_reset && g == cell->gates - 1)
      TRY(weft_onnx_cast(node, of_state, cell->dtype, &cell->reset_bias));
    else
      TRY(weft_onnx_binary(node, weft_onnx_body_add, of_input, of_state, &part[g]));
  }
  return weft_onnx_concat(node, 0, cell->gates, part, out);
}

static weft_status_t project(node_t* node, cell_t* cell, int32_t direction, bool batch_first) {
  int64_t width = cell->gates * cell->units;
  value_t *weights, *all, *bias;
  TRY(rows_of(node, node->input[IN_W], direction, 0, width, &weights));
  weft_onnx_generic_t generic = {.rank = 4,
                                 .extent = {cell->steps, cell->batch, width, cell->inputs},
                                 .reduction = 1u << 3,
                                 .operand_count = 2,
                                 .dtype = cell->dtype,
                                 .body = weft_onnx_body_mul_add};
  generic.operand[0] = (weft_onnx_operand_t){
      node->input[IN_X], 3, {weft_onnx_along(batch_first), weft_onnx_along(!batch_first), weft_onnx_along(3)}};
  generic.operand[1] = (weft_onnx_operand_t){weights, 2, {weft_onnx_along(2), weft_onnx_along(3)}};
  TRY(weft_onnx_generic(node, &generic, &all));
  if (weft_onnx_input(node, IN_BIAS)) {
    TRY(sum_biases(node, cell, direction, &bias));
    TRY(weft_onnx_pointwise(node, weft_onnx_body_add, NULL, cell->dtype, 2, (value_t*[]){all, bias}, &all));
  }
  for (int32_t g = 0; g < cell->gates; ++g)
    TRY(weft_onnx_slice(node, all, (int64_t[]){0, 0, g * cell->units},
                        (int64_t[]){cell->steps, cell->batch, cell->units}, (int64_t[]){1, 1, 1}, &cell->projected[g]));
  return weft_ok();
}

static weft_status_t take_weights(node_t* node, cell_t* cell, int32_t direction, bool batch_first) {
  static const int32_t gate_of_peephole[] = {0, 1, 2}; // input, output, forget
  cell->reset_bias = NULL;
  TRY(project(node, cell, direction, batch_first));
  if (cell->after_reset && !cell->reset_bias) { // no bias is a bias of 0
    void* zeros;
    TRY(weft_arena_allocate(node->builder->arena, (size_t)cell->units, 8, &zeros));
    TRY(weft_onnx_known(node, cell->dtype, &(shape_t){1, {cell->units}}, zeros, &cell->reset_bias));
  }
  TRY(weft_onnx_hoist(node, cell->reset_bias));
  TRY(weft_onnx_hoist(node, cell->live));
  for (int32_t g = 0; g < cell->gates; ++g) {
    TRY(rows_of(node, node->input[IN_R], direction, g * cell->units, cell->units, &cell->recurrent[g]));
    TRY(weft_onnx_hoist(node, cell->recurrent[g]));
    TRY(weft_onnx_hoist(node, cell->projected[g]));
  }
  value_t* peepholes = weft_onnx_input(node, IN_PEEPHOLE);
  for (int32_t i = 0; i < 3 && peepholes; ++i) {
    value_t** to = &cell->peephole[gate_of_peephole[i]];
    TRY(rows_of(node, peepholes, direction, i * cell->units, cell->units, to));
    TRY(weft_onnx_cast(node, *to, cell->dtype, to));
    TRY(weft_onnx_hoist(node, *to));
  }
  return weft_ok();
}

// [batch, units], in the accumulators' type; zeros when it is left out.
static weft_status_t initial_state(node_t* node, const cell_t* cell, int32_t index, int32_t direction, bool batch_first,
                                   value_t** out) {
  value_t* given = weft_onnx_input(node, index);
  shape_t shape = {2, {cell->batch, cell->units}};
  if (!given) {
    void* zeros;
    TRY(weft_arena_allocate(node->builder->arena, (size_t)(cell->batch * cell->units), 8, &zeros));
    return weft_onnx_known(node, cell->dtype, &shape, zeros, out);
  }
  int64_t offset[3] = {0}, size[3] = {cell->batch, cell->batch, cell->units};
  offset[batch_first] = direction;
  size[batch_first] = 1;
  TRY(weft_onnx_slice(node, given, offset, size, (int64_t[]){1, 1, 1}, out));
  TRY(weft_onnx_reshape(node, *out, &shape, out));
  return weft_onnx_cast(node, *out, cell->dtype, out);
}

// --- Outputs

// The directions' values beside each other along a new axis; then in the order that the node wants.
static weft_status_t join(node_t* node, int32_t directions, value_t** value, int32_t axis, const int32_t* permutation,
                          value_t** out) {
  for (int32_t d = 0; d < directions; ++d) TRY(weft_onnx_unsqueeze(node, value[d], axis, &value[d]));
  *out = value[0];
  if (directions > 1) TRY(weft_onnx_concat(node, axis, directions, value, out));
  if (permutation) TRY(weft_onnx_transpose(node, *out, permutation, out));
  return weft_onnx_cast(node, *out, node->input[IN_X]->dtype, out);
}

static bool is_wanted(const node_t* node, int32_t output) {
  return output < node->output_count && node->proto->output[output] && node->proto->output[output][0];
}

static weft_status_t emit_recurrent(node_t* node) {
  static const int32_t rows_first[] = {2, 0, 1, 3}, states_first[] = {1, 0, 2};
  static const weft_onnx_step_fn step[] = {[RNN_GATES] = step_rnn, [GRU_GATES] = step_gru, [LSTM_GATES] = step_lstm};
  int32_t kind = node->op->kind, activations = kind == LSTM_GATES ? 3 : kind == GRU_GATES ? 2 : 1;
  value_t* x = node->input[IN_X];
  int64_t units, batch_first, after_reset = 0, coupled = 0;
  const char* direction;
  TRY(weft_onnx_attribute_string(node, "direction", "forward", &direction));
  TRY(weft_onnx_attribute_int(node, "layout", 0, &batch_first));
  if (kind == GRU_GATES) TRY(weft_onnx_attribute_int(node, "linear_before_reset", 0, &after_reset));
  if (kind == LSTM_GATES) TRY(weft_onnx_attribute_int(node, "input_forget", 0, &coupled));
  bool both = strcmp(direction, "bidirectional") == 0, backwards = strcmp(direction, "reverse") == 0;
  NODE_REQUIRE(node, both || backwards || strcmp(direction, "forward") == 0, INVALID_INPUT,
               "direction '%s' is neither forward, reverse nor bidirectional", direction);
  NODE_REQUIRE(node, x->shape.rank == 3 && node->input[IN_W]->shape.rank == 3 && node->input[IN_R]->shape.rank == 3,
               INVALID_INPUT, "X, W and R must have three dimensions");
  NODE_REQUIRE(node, weft_dtype_is_float(x->dtype), UNSUPPORTED, "X is %s, only floats work",
               weft_dtype_name(x->dtype));
  TRY(weft_onnx_attribute_int(node, "hidden_size", node->input[IN_R]->shape.extent[2], &units));
  cell_t cell = {.steps = x->shape.extent[batch_first ? 1 : 0],
                 .batch = x->shape.extent[batch_first ? 0 : 1],
                 .inputs = x->shape.extent[2],
                 .units = units,
                 .gates = kind,
                 .dtype = weft_onnx_accumulator(x->dtype),
                 .after_reset = after_reset != 0,
                 .coupled = coupled != 0};
  NODE_REQUIRE(node, cell.steps > 0 && cell.batch > 0 && cell.inputs > 0 && cell.units > 0, UNSUPPORTED,
               "X has no elements");
  int32_t directions = both ? 2 : 1, states = kind == LSTM_GATES ? 2 : 1;
  activation_t activation[2 * MAX_ACTIVATIONS];
  value_t *rows[2] = {NULL}, *state[WEFT_ONNX_MAX_STATES][2];
  TRY(check_inputs(node, &cell, directions, batch_first != 0));
  TRY(read_activations(node, directions, activations, activation));
  TRY(find_live(node, &cell));
  for (int32_t d = 0; d < directions; ++d) {
    value_t* last[WEFT_ONNX_MAX_STATES];
    weft_onnx_loop_t loop = {.trips = cell.steps,
                             .backwards = backwards || d == 1,
                             .collects = is_wanted(node, 0),
                             .state_count = states,
                             .step = step[kind],
                             .self = &cell};
    memcpy(cell.activation, activation + d * activations, (size_t)activations * sizeof(*activation));
    TRY(take_weights(node, &cell, d, batch_first != 0));
    for (int32_t s = 0; s < states; ++s)
      TRY(initial_state(node, &cell, IN_HIDDEN + s, d, batch_first != 0, &loop.state[s]));
    TRY(weft_onnx_loop(node, &loop, last, &rows[d]));
    for (int32_t s = 0; s < states; ++s) state[s][d] = last[s];
  }
  if (is_wanted(node, 0)) TRY(join(node, directions, rows, 1, batch_first ? rows_first : NULL, &node->output[0]));
  for (int32_t s = 0; s < states; ++s)
    if (is_wanted(node, 1 + s))
      TRY(join(node, directions, state[s], 0, batch_first ? states_first : NULL, &node->output[1 + s]));
  return weft_ok();
}

#define RECURRENT(name, inputs, outputs, gates)                                                                        \
  OPERATOR(name, 7, 3, inputs, outputs, emit_recurrent, "types below 32 bits keep their state in f32", .kind = gates)
static const weft_onnx_operator_t operators[] = {
    RECURRENT("GRU", 6, 2, GRU_GATES), RECURRENT("LSTM", 8, 3, LSTM_GATES), RECURRENT("RNN", 6, 2, RNN_GATES), {0}};
const weft_onnx_family_t weft_onnx_family_recurrent = {"Recurrence", operators};
