// LSTM, GRU and RNN nodes drawn at random, each as a model and as what ONNX says that it computes.
#pragma once
#include <math.h>

#include "base/rng.h"
#include "tests/frontend/model.h"

typedef enum kind_e { RNN, GRU, LSTM } kind_e;
typedef enum direction_e { FORWARD, REVERSE, BIDIRECTIONAL } direction_e;
typedef enum lengths_e { NO_LENGTHS, EQUAL_LENGTHS, KNOWN_LENGTHS, GIVEN_LENGTHS } lengths_e;

typedef struct recurrent_t {
  kind_e kind;
  direction_e direction;
  lengths_e lengths;
  int64_t steps, batch, inputs, units, directions, gates;
  bool batch_first, after_reset, coupled, other_activations;
  bool has_bias, has_hidden, has_memory, has_peephole, given_weights, given_state;
  float clip; // 0: none
  float *x, *w, *r, *b, *h, *c, *p;
  int32_t* length;
  int64_t shape_x[3], shape_w[3], shape_r[3], shape_b[2], shape_h[3], shape_p[2], shape_length[1];
  char *activations[6], names[64];
  float alpha[6];
  builder_t model;
} recurrent_t;

static float* draw_floats(weft_rng_t* rng, int64_t count, double scale) {
  float* data = malloc((size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) data[i] = (float)(scale * (2 * weft_rng_unit(rng) - 1));
  return data;
}

static bool coin(weft_rng_t* rng) {
  return weft_rng_below(rng, 2) != 0;
}

static void recurrent_draw(weft_rng_t* rng, recurrent_t* r) {
  memset(r, 0, sizeof(*r));
  r->kind = (kind_e)weft_rng_below(rng, 3);
  r->direction = (direction_e)weft_rng_below(rng, 3);
  r->lengths = (lengths_e)weft_rng_below(rng, 4);
  r->steps = 1 + (int64_t)weft_rng_below(rng, 5);
  r->batch = 1 + (int64_t)weft_rng_below(rng, 4);
  r->inputs = 1 + (int64_t)weft_rng_below(rng, 5);
  r->units = 1 + (int64_t)weft_rng_below(rng, 7);
  r->directions = r->direction == BIDIRECTIONAL ? 2 : 1;
  r->gates = r->kind == RNN ? 1 : r->kind == GRU ? 3 : 4;
  r->batch_first = coin(rng);
  r->after_reset = r->kind == GRU && coin(rng);
  r->coupled = r->kind == LSTM && weft_rng_below(rng, 4) == 0;
  r->other_activations = weft_rng_below(rng, 3) == 0;
  r->has_bias = coin(rng);
  r->has_hidden = coin(rng);
  r->has_memory = r->kind == LSTM && coin(rng);
  r->has_peephole = r->kind == LSTM && coin(rng);
  r->given_weights = weft_rng_below(rng, 4) == 0;
  r->given_state = coin(rng);
  r->clip = weft_rng_below(rng, 3) == 0 ? 0.4f : 0;
  int64_t d = r->directions, g = r->gates, t = r->steps, n = r->batch, i = r->inputs, u = r->units;
  r->x = draw_floats(rng, t * n * i, 1);
  r->w = draw_floats(rng, d * g * u * i, 0.7);
  r->r = draw_floats(rng, d * g * u * u, 0.7);
  r->b = draw_floats(rng, d * g * u * 2, 0.5);
  r->h = draw_floats(rng, d * n * u, 1);
  r->c = draw_floats(rng, d * n * u, 1);
  r->p = draw_floats(rng, d * u * 3, 1);
  r->length = malloc((size_t)n * sizeof(int32_t));
  for (int64_t k = 0; k < n; ++k)
    r->length[k] = (int32_t)(r->lengths <= EQUAL_LENGTHS ? t : 1 + (int64_t)weft_rng_below(rng, (uint64_t)t));
}

static void recurrent_free(recurrent_t* r) {
  void* owned[] = {r->x, r->w, r->r, r->b, r->h, r->c, r->p, r->length};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) free(owned[i]);
  model_end(&r->model);
}

enum { RECURRENT_FLOAT = 1, RECURRENT_INT32 = 6 };

static void add_value(recurrent_t* r, const char* name, bool given, int type, size_t rank, int64_t* extents,
                      void* data) {
  size_t count = 4;
  for (size_t i = 0; i < rank; ++i) count *= (size_t)extents[i];
  if (given)
    add_input(&r->model, name, type, rank, extents);
  else
    add_tensor(&r->model, name, type, rank, extents, data, count);
}

static void copy_extents(int64_t* to, size_t count, const int64_t* from) {
  memcpy(to, from, count * sizeof(*to));
}

// Writes the model; inputs that are given: x, then, if they are, w r b length h c p.
static const char* recurrent_write(recurrent_t* r) {
  static const char* const kinds[] = {"RNN", "GRU", "LSTM"};
  static const char* const directions[] = {"forward", "reverse", "bidirectional"};
  static const char* const others[] = {"HardSigmoid", "LeakyRelu", "ScaledTanh"};
  int64_t d = r->directions, g = r->gates, t = r->steps, n = r->batch, u = r->units;
  copy_extents(r->shape_x, 3, (int64_t[]){r->batch_first ? n : t, r->batch_first ? t : n, r->inputs});
  copy_extents(r->shape_w, 3, (int64_t[]){d, g * u, r->inputs});
  copy_extents(r->shape_r, 3, (int64_t[]){d, g * u, u});
  copy_extents(r->shape_b, 2, (int64_t[]){d, 2 * g * u});
  copy_extents(r->shape_h, 3, (int64_t[]){r->batch_first ? n : d, r->batch_first ? d : n, u});
  copy_extents(r->shape_p, 2, (int64_t[]){d, 3 * u});
  r->shape_length[0] = n;
  builder_t* b = &r->model;
  model_begin(b, 14);
  add_value(r, "x", true, RECURRENT_FLOAT, 3, r->shape_x, r->x);
  add_value(r, "w", r->given_weights, RECURRENT_FLOAT, 3, r->shape_w, r->w);
  add_value(r, "r", r->given_weights, RECURRENT_FLOAT, 3, r->shape_r, r->r);
  if (r->has_bias) add_value(r, "b", r->given_weights, RECURRENT_FLOAT, 2, r->shape_b, r->b);
  if (r->lengths) add_value(r, "l", r->lengths == GIVEN_LENGTHS, RECURRENT_INT32, 1, r->shape_length, r->length);
  if (r->has_hidden) add_value(r, "h", r->given_state, RECURRENT_FLOAT, 3, r->shape_h, r->h);
  if (r->has_memory) add_value(r, "c", r->given_state, RECURRENT_FLOAT, 3, r->shape_h, r->c);
  if (r->has_peephole) add_value(r, "p", r->given_weights, RECURRENT_FLOAT, 2, r->shape_p, r->p);
  snprintf(r->names, sizeof(r->names), "x w r %s %s %s", r->has_bias ? "b" : "-", r->lengths ? "l" : "-",
           r->has_hidden ? "h" : "-");
  if (r->kind == LSTM) strcat(strcat(r->names, r->has_memory ? " c" : " -"), r->has_peephole ? " p" : " -");
  Onnx__NodeProto* node = add_node(b, kinds[r->kind], "cell", r->names, r->kind == LSTM ? "y yh yc" : "y yh");
  add_output(b, "y", RECURRENT_FLOAT, 4,
             (int64_t[]){r->batch_first ? n : t, r->batch_first ? t : d, r->batch_first ? d : n, u});
  add_output(b, "yh", RECURRENT_FLOAT, 3, r->shape_h);
  if (r->kind == LSTM) add_output(b, "yc", RECURRENT_FLOAT, 3, r->shape_h);
  add_int(b, node, "hidden_size", u);
  if (r->batch_first) add_int(b, node, "layout", 1);
  if (r->after_reset) add_int(b, node, "linear_before_reset", 1);
  if (r->coupled) add_int(b, node, "input_forget", 1);
  Onnx__AttributeProto* a = add_attribute(b, node, "direction", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  a->has_s = 1;
  a->s = (ProtobufCBinaryData){strlen(directions[r->direction]), (uint8_t*)directions[r->direction]};
  if (r->clip > 0) {
    a = add_attribute(b, node, "clip", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = r->clip;
  }
  if (r->other_activations) {
    static ProtobufCBinaryData name[6];
    size_t each = (size_t)r->kind + 1, count = each * (size_t)d;
    for (size_t i = 0; i < count; ++i)
      name[i] = (ProtobufCBinaryData){strlen(others[i % each]), (uint8_t*)others[i % each]};
    a = add_attribute(b, node, "activations", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->n_strings = count;
    a->strings = name;
    a = add_attribute(b, node, "activation_alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    for (size_t i = 0; i < count; ++i) r->alpha[i] = 0.3f + 0.1f * (float)i;
    a->n_floats = count;
    a->floats = r->alpha;
  }
  return model_write(b);
}

// --- What ONNX says

static double activation_of(const recurrent_t* r, int64_t direction, int32_t index, double x) {
  if (r->clip > 0) x = fmax(-(double)r->clip, fmin((double)r->clip, x));
  if (!r->other_activations) return r->kind != RNN && index == 0 ? 1 / (1 + exp(-x)) : tanh(x);
  double alpha = (double)(0.3f + 0.1f * (float)(direction * ((int64_t)r->kind + 1) + index));
  if (index == 0) return fmax(0, fmin(1, alpha * x + 0.5));
  if (index == 1) return x >= 0 ? x : alpha * x;
  return alpha * tanh(x); // beta is 1
}

// The gate's input share, biases left out.
static double dot(const float* a, const float* b, int64_t count, const double* c) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (a ? (double)a[i] : c[i]) * (double)b[i];
  return sum;
}

typedef struct gate_t {
  double from_input, from_state, input_bias, state_bias;
} gate_t;

static gate_t gate_of(const recurrent_t* r, int64_t d, int64_t gate, int64_t u, const float* x, const double* h) {
  int64_t row = (d * r->gates + gate) * r->units + u;
  const float* b = r->b + d * 2 * r->gates * r->units;
  gate_t out = {.from_input = dot(x, r->w + row * r->inputs, r->inputs, NULL),
                .from_state = dot(NULL, r->r + row * r->units, r->units, h)};
  if (r->has_bias) out.input_bias = (double)b[gate * r->units + u];
  if (r->has_bias) out.state_bias = (double)b[(r->gates + gate) * r->units + u];
  return out;
}
static double total(gate_t g) {
  return g.from_input + g.from_state + g.input_bias + g.state_bias;
}

static void reference_step(const recurrent_t* r, int64_t d, const float* x, double* h, double* c) {
  double next[16], gated[16];
  int64_t units = r->units;
  for (int64_t u = 0; u < units && r->kind == GRU; ++u)
    gated[u] = activation_of(r, d, 0, total(gate_of(r, d, 1, u, x, h))) * h[u];
  for (int64_t u = 0; u < units; ++u) {
    if (r->kind == RNN) {
      next[u] = activation_of(r, d, 0, total(gate_of(r, d, 0, u, x, h)));
    } else if (r->kind == GRU) {
      double z = activation_of(r, d, 0, total(gate_of(r, d, 0, u, x, h)));
      double reset = activation_of(r, d, 0, total(gate_of(r, d, 1, u, x, h)));
      gate_t g = gate_of(r, d, 2, u, x, r->after_reset ? h : gated);
      double sum = r->after_reset ? g.from_input + g.input_bias + reset * (g.from_state + g.state_bias) : total(g);
      next[u] = (1 - z) * activation_of(r, d, 1, sum) + z * h[u];
    } else {
      const float* p = r->p + d * 3 * units;
      double peep = r->has_peephole ? 1 : 0, *memory = &c[u];
      double i = activation_of(r, d, 0, total(gate_of(r, d, 0, u, x, h)) + peep * (double)p[u] * *memory);
      double f = activation_of(r, d, 0, total(gate_of(r, d, 2, u, x, h)) + peep * (double)p[2 * units + u] * *memory);
      if (r->coupled) f = 1 - i;
      *memory = f * *memory + i * activation_of(r, d, 1, total(gate_of(r, d, 3, u, x, h)));
      double o = activation_of(r, d, 0, total(gate_of(r, d, 1, u, x, h)) + peep * (double)p[units + u] * *memory);
      next[u] = o * activation_of(r, d, 2, *memory);
    }
  }
  memcpy(h, next, (size_t)units * sizeof(*h));
}

// y, yh and yc in the order of the outputs' elements.
static inline void recurrent_reference(const recurrent_t* r, double* y, double* yh, double* yc) {
  int64_t units = r->units, directions = r->directions;
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t n = 0; n < r->batch; ++n) {
      double h[16] = {0}, c[16] = {0};
      int64_t at = r->batch_first ? n * directions + d : d * r->batch + n;
      for (int64_t u = 0; u < units; ++u) {
        if (r->has_hidden) h[u] = (double)r->h[at * units + u];
        if (r->has_memory) c[u] = (double)r->c[at * units + u];
      }
      bool backwards = r->direction == REVERSE || d == 1;
      for (int64_t k = 0; k < r->steps; ++k) {
        int64_t t = backwards ? r->steps - 1 - k : k;
        const float* x = r->x + (r->batch_first ? n * r->steps + t : t * r->batch + n) * r->inputs;
        if (t < r->length[n]) reference_step(r, d, x, h, c);
        int64_t row = r->batch_first ? (n * r->steps + t) * directions + d : (t * directions + d) * r->batch + n;
        for (int64_t u = 0; u < units; ++u) y[row * units + u] = t < r->length[n] ? h[u] : 0;
      }
      for (int64_t u = 0; u < units; ++u) {
        yh[at * units + u] = h[u];
        yc[at * units + u] = c[u];
      }
    }
}
