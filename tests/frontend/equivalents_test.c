// Operators of com.microsoft, and some of ONNX, against the operators that they stand for, which the conformance cases
// check.
#include <math.h>

#include "text_model.h"

typedef struct case_t {
  const char *name, *inputs, *actual, *expected; // the two give outputs called a.. and e.., of f32, in pairs
  const char* outputs;
  double tolerance; // 0: 1e-5
} case_t;

static const case_t cases[] = {
    {"Gelu", "x:f32[3,7]", "a = com.microsoft:Gelu(x)", "e = Gelu(x)", "a:f32 e:f32", 0},
    {"BiasGelu", "x:f32[3,7] b:f32[7]", "a = com.microsoft:BiasGelu(x, b)", "s = Add(x, b) ; e = Gelu(s)",
     "a:f32 e:f32", 0},
    {"FastGelu", "x:f32[3,7] b:f32[7]", "a = com.microsoft:FastGelu(x, b)",
     "s = Add(x, b) ; e = Gelu(s) approximate:s=tanh", "a:f32 e:f32", 0},
    {"QuickGelu", "x:f32[3,7]", "a = com.microsoft:QuickGelu(x) alpha:f=1.5", "e = Swish(x) alpha:f=1.5", "a:f32 e:f32",
     0},
    {"SkipLayerNormalization", "x:f32[2,3,5] s:f32[2,3,5] g:f32[5] b:f32[5] c:f32[5]",
     "a, -, -, a2 = com.microsoft:SkipLayerNormalization(x, s, g, b, c) epsilon:f=0.01",
     "t = Add(x, s) ; e2 = Add(t, c) ; e = LayerNormalization(e2, g, b) epsilon:f=0.01", "a:f32 e:f32 a2:f32 e2:f32",
     0},
    {"SkipSimplifiedLayerNormalization", "x:f32[2,3,5] s:f32[2,3,5] g:f32[5] c:f32[5]",
     "a, -, -, a2 = com.microsoft:SkipSimplifiedLayerNormalization(x, s, g, c) epsilon:f=0.01",
     "t = Add(x, s) ; e2 = Add(t, c) ; e = RMSNormalization(e2, g) epsilon:f=0.01", "a:f32 e:f32 a2:f32 e2:f32", 0},
    {"SimplifiedLayerNormalization", "x:f32[2,3,5] g:f32[5]", "a = SimplifiedLayerNormalization(x, g)",
     "e = RMSNormalization(x, g)", "a:f32 e:f32", 0},
    {"EmbedLayerNormalization", "i:i32[2,3] s:i32[2,3] w:f32[4,5] p:f32[6,5] q:f32[4,5] g:f32[5] b:f32[5] m:i32[2,3]",
     "a, n = com.microsoft:EmbedLayerNormalization(i, s, w, p, q, g, b, m) epsilon:f=0.01",
     "t = Gather(w, i) ; u = Gather(q, s) ; z = Constant() value_ints:I=0,1,2 ; v = Gather(p, z) ; "
     "k = Add(t, u) ; l = Add(k, v) ; e = LayerNormalization(l, g, b) epsilon:f=0.01",
     "a:f32 e:f32", 0},
    {"FusedMatMul", "x:f32[2,5,3] y:f32[2,4,5]",
     "a = com.microsoft:FusedMatMul(x, y) transA:i=1 transB:i=1 alpha:f=0.5",
     "t = Transpose(x) perm:I=0,2,1 ; u = Transpose(y) perm:I=0,2,1 ; v = MatMul(t, u) ; "
     "h = Constant() value_float:f=0.5 ; e = Mul(v, h)",
     "a:f32 e:f32", 0},
    {"FusedConv", "x:f32[1,2,5,6] w:f32[3,2,3,3] b:f32[3] z:f32[1,3,3,4]",
     "a = com.microsoft:FusedConv(x, w, b, z) activation:s=LeakyRelu activation_params:F=0.3",
     "t = Conv(x, w, b) ; u = Add(t, z) ; e = LeakyRelu(u) alpha:f=0.3", "a:f32 e:f32", 0},
    {"MultiHeadAttention", "q:f32[2,3,6] k:f32[2,5,6] v:f32[2,5,8] b:f32[20] t:f32[1,2,3,5]",
     "a = com.microsoft:MultiHeadAttention(q, k, v, b, -, t) num_heads:i=2",
     "n = Constant() value_ints:I=6,6,8 ; b0, b1, b2 = Split(b, n) ; q1 = Add(q, b0) ; k1 = Add(k, b1) ; "
     "v1 = Add(v, b2) ; e = Attention(q1, k1, v1, t) q_num_heads:i=2 kv_num_heads:i=2",
     "a:f32 e:f32", 0},
    {"MultiHeadAttention with a cache and a mask",
     "q:f32[2,3,6] k:f32[2,4,6] v:f32[2,4,6] m:i32[2,7] pk:f32[2,2,3,3] pv:f32[2,2,3,3]",
     "a, a2, a3 = com.microsoft:MultiHeadAttention(q, k, v, -, m, -, pk, pv) num_heads:i=2 unidirectional:i=1 "
     "mask_filter_value:f=-100000",
     "z = Cast(m) to:i=9 ; d = Constant() value_ints:I=1,2 ; z4 = Unsqueeze(z, d) ; "
     "e, e2, e3 = Attention(q, k, v, z4, pk, pv) q_num_heads:i=2 kv_num_heads:i=2 is_causal:i=1",
     "a:f32 e:f32 a2:f32 e2:f32 a3:f32 e3:f32", 0},
    {"MultiHeadAttention, packed", "p:f32[2,3,2,3,4]", "a = com.microsoft:MultiHeadAttention(p) num_heads:i=2",
     "x = Transpose(p) perm:I=3,0,2,1,4 ; q, k, v = Split(x) axis:i=0 num_outputs:i=3 ; o = Constant() value_ints:I=0 "
     "; "
     "q1 = Squeeze(q, o) ; k1 = Squeeze(k, o) ; v1 = Squeeze(v, o) ; y = Attention(q1, k1, v1) ; "
     "t = Transpose(y) perm:I=0,2,1,3 ; s = Constant() value_ints:I=2,3,8 ; e = Reshape(t, s)",
     "a:f32 e:f32", 0},
    {"Attention", "x:f32[2,3,5] w:f32[5,16] b:f32[16] m:i32[2,3]",
     "a = com.microsoft:Attention(x, w, b, m) num_heads:i=2 qkv_hidden_sizes:I=4,4,8 mask_filter_value:f=-100000",
     "p = MatMul(x, w) ; y = Add(p, b) ; n = Constant() value_ints:I=4,4,8 ; q, k, v = Split(y, n) axis:i=2 ; "
     "z = Cast(m) to:i=9 ; d = Constant() value_ints:I=1,2 ; z4 = Unsqueeze(z, d) ; "
     "e = Attention(q, k, v, z4) q_num_heads:i=2 kv_num_heads:i=2",
     "a:f32 e:f32", 0},
    {"RotaryEmbedding", "x:f32[2,3,8] i:i64[2,3] c:f32[6,2] s:f32[6,2]",
     "a = com.microsoft:RotaryEmbedding(x, i, c, s) interleaved:i=1",
     "e = RotaryEmbedding(x, c, s, i) num_heads:i=2 interleaved:i=1", "a:f32 e:f32", 0},
    {"QLinearAdd", "x:u8[3,7] y:u8[3,7]",
     "aq = com.microsoft:QLinearAdd(x, sx, zx, y, sy, zy, so, zo) ; a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; q = DequantizeLinear(y, sy, zy) ; r = Add(p, q) ; "
     "eq = QuantizeLinear(r, so, zo) ; e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
    {"QLinearMul", "x:u8[3,7] y:u8[3,7]",
     "aq = com.microsoft:QLinearMul(x, sx, zx, y, sy, zy, so, zo) ; a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; q = DequantizeLinear(y, sy, zy) ; r = Mul(p, q) ; "
     "eq = QuantizeLinear(r, so, zo) ; e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
    {"QLinearSigmoid", "x:u8[3,7]",
     "aq = com.microsoft:QLinearSigmoid(x, sx, zx, so, zo) ; a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; r = Sigmoid(p) ; eq = QuantizeLinear(r, so, zo) ; "
     "e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
    {"QLinearAveragePool", "x:u8[1,2,5,5]",
     "aq = com.microsoft:QLinearAveragePool(x, sx, zx, so, zo) kernel_shape:I=3,2 strides:I=2,1 ; "
     "a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; r = AveragePool(p) kernel_shape:I=3,2 strides:I=2,1 ; "
     "eq = QuantizeLinear(r, so, zo) ; e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
    {"QLinearConcat", "x:u8[3,2] y:u8[3,4]",
     "aq = com.microsoft:QLinearConcat(so, zo, x, sx, zx, y, sy, zy) axis:i=1 ; a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; q = DequantizeLinear(y, sy, zy) ; r = Concat(p, q) axis:i=1 ; "
     "eq = QuantizeLinear(r, so, zo) ; e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
    {"MatMulIntegerToFloat", "x:u8[3,5] y:i8[5,4] b:f32[4]",
     "a = com.microsoft:MatMulIntegerToFloat(x, y, sx, sy, zx, -, b)",
     "p = DequantizeLinear(x, sx, zx) ; q = DequantizeLinear(y, sy) ; r = MatMul(p, q) ; e = Add(r, b)", "a:f32 e:f32",
     1e-4},
    {"DynamicQuantizeMatMul", "x:f32[3,5] y:i8[5,4] b:f32[4]",
     "a = com.microsoft:DynamicQuantizeMatMul(x, y, sy, -, b)",
     "d, s, z = DynamicQuantizeLinear(x) ; p = DequantizeLinear(d, s, z) ; q = DequantizeLinear(y, sy) ; "
     "r = MatMul(p, q) ; e = Add(r, b)",
     "a:f32 e:f32", 1e-4},
    {"CenterCropPad", "x:f32[5,4]", "k = Constant() value_ints:I=3,7 ; a = CenterCropPad(x, k)",
     "p = Constant() value_ints:I=-1,1,-1,2 ; e = Pad(x, p)", "a:f32 e:f32", 0},
    {"AffineGrid", "t:f32[2,2,3]", "k = Constant() value_ints:I=2,1,2,3 ; a = AffineGrid(t, k)",
     "f = Constant() "
     "value_floats:F=-0.6666667,-0.5,1,0,-0.5,1,0.6666667,-0.5,1,-0.6666667,0.5,1,0,0.5,1,0.6666667,0.5,1 ; "
     "s = Constant() value_ints:I=6,3 ; g = Reshape(f, s) ; u = Transpose(t) perm:I=0,2,1 ; h = MatMul(g, u) ; "
     "r = Constant() value_ints:I=2,2,3,2 ; e = Reshape(h, r)",
     "a:f32 e:f32", 0},
    {"Det", "x:f32[2,3,3]", "a = Det(x)",
     "d = Constant() value_ints:I=2 ; p, q, r = Split(x) axis:i=1 num_outputs:i=3 ; "
     "q0, q1, q2 = Split(q) axis:i=2 num_outputs:i=3 ; q3 = Concat(q1, q2, q0) axis:i=2 ; "
     "q4 = Concat(q2, q0, q1) axis:i=2 ; r0, r1, r2 = Split(r) axis:i=2 num_outputs:i=3 ; "
     "r3 = Concat(r2, r0, r1) axis:i=2 ; r4 = Concat(r1, r2, r0) axis:i=2 ; m = Mul(q3, r3) ; n = Mul(q4, r4) ; "
     "c = Sub(m, n) ; v = Mul(p, c) ; o = Constant() value_ints:I=1,2 ; e = ReduceSum(v, o) keepdims:i=0",
     "a:f32 e:f32", 0},
    {"Einsum of three", "x:f32[2,3] y:f32[4,3,5] z:f32[5]", "a = Einsum(x, y, z) equation:s=ij,kjl,l->ki",
     "o = Constant() value_ints:I=1 ; zc = Unsqueeze(z, o) ; t = MatMul(y, zc) ; s = Constant() value_ints:I=4,3 ; "
     "u = Reshape(t, s) ; v = Transpose(x) perm:I=1,0 ; e = MatMul(u, v)",
     "a:f32 e:f32", 0},
    // ONNX's own integer products, against the product of the numbers.
    {"QLinearConv", "x:u8[1,2,5,4]",
     "aq = QLinearConv(x, sx, zx, w, sw, zw, so, zo, wb) pads:I=1,0,2,1 ; a = DequantizeLinear(aq, so, zo)",
     "p = DequantizeLinear(x, sx, zx) ; q = DequantizeLinear(w, sw, zw) axis:i=0 ; "
     "sb = Mul(sw, sx) ; bf = DequantizeLinear(wb, sb) axis:i=0 ; r = Conv(p, q, bf) pads:I=1,0,2,1 ; "
     "eq = QuantizeLinear(r, so, zo) ; e = DequantizeLinear(eq, so, zo)",
     "a:f32 e:f32", 0},
};

static size_t count_of(const weft_frontend_io_t* io) {
  size_t count = 1;
  for (int32_t d = 0; d < io->rank; ++d) count *= (size_t)io->extent[d];
  return count;
}

// Scales and zero points; weights [3, 2, 3, 2] with a zero point for each filter.
static void add_parameters(text_model_t* t) {
  static const float sx = 0.03f, sy = 0.04f, so = 0.0613f, sw[] = {0.02f, 0.05f, 0.01f};
  static const uint8_t zx = 130, zy = 7, zo = 21;
  static const int8_t zw[] = {0, -3, 5};
  static const int32_t wb[] = {100, -50, 7};
  static int8_t w[36];
  static const int64_t three[] = {3}, shape[] = {3, 2, 3, 2};
  for (int i = 0; i < 36; ++i) w[i] = (int8_t)(i * 7 % 50 - 25);
  Onnx__GraphProto* graph = t->proto.graph;
  text_tensor(t, graph, "sx", 1, 0, NULL, &sx, sizeof(sx));
  text_tensor(t, graph, "sy", 1, 0, NULL, &sy, sizeof(sy));
  text_tensor(t, graph, "so", 1, 0, NULL, &so, sizeof(so));
  text_tensor(t, graph, "zx", 2, 0, NULL, &zx, 1);
  text_tensor(t, graph, "zy", 2, 0, NULL, &zy, 1);
  text_tensor(t, graph, "zo", 2, 0, NULL, &zo, 1);
  text_tensor(t, graph, "sw", 1, 1, three, sw, sizeof(sw));
  text_tensor(t, graph, "zw", 3, 1, three, zw, sizeof(zw));
  text_tensor(t, graph, "wb", 6, 1, three, wb, sizeof(wb));
  text_tensor(t, graph, "w", 3, 4, shape, w, sizeof(w));
}

static void* random_data(text_model_t* t, weft_rng_t* rng, const Onnx__ValueInfoProto* info) {
  weft_frontend_io_t io = {0};
  const Onnx__TypeProto__Tensor* type = info->type->tensor_type;
  assert_true(weft_onnx_dtype(type->elem_type, &io.dtype));
  for (size_t d = 0; d < type->shape->n_dim; ++d) io.extent[io.rank++] = type->shape->dim[d]->dim_value;
  size_t count = count_of(&io), width = weft_dtype_size(io.dtype);
  char* data = text_new(t, count, width);
  for (size_t i = 0; i < count; ++i) {
    double number = (double)weft_rng_below(rng, io.dtype == WEFT_DTYPE_U8 ? 256 : 4); // masks and indices: 0 to 3
    if (io.dtype == WEFT_DTYPE_I8) number = (double)weft_rng_below(rng, 256) - 128;
    if (weft_dtype_is_float(io.dtype)) number = 4 * weft_rng_unit(rng) - 2;
    weft_dtype_store(io.dtype, number, data + i * width);
  }
  return data;
}

static void run_case(const case_t* c, weft_rng_t* rng) {
  text_model_t t;
  const void* data[TEXT_MAX_IO];
  char nodes[2048];
  text_begin(&t, 24);
  snprintf(nodes, sizeof(nodes), "%s ; %s", c->actual, c->expected);
  text_main(&t, c->inputs, nodes, c->outputs);
  for (size_t i = 0; i < t.proto.graph->n_input; ++i) data[i] = random_data(&t, rng, t.proto.graph->input[i]);
  if (!strstr(c->inputs, "w:")) add_parameters(&t);
  text_run(&t, data);
  for (int32_t i = 0; i < t.model.output_count; i += 2) {
    const weft_host_tensor_t *a = &t.output[i], *e = &t.output[i + 1];
    assert_int_equal(a->rank, e->rank);
    assert_memory_equal(a->extent, e->extent, sizeof(a->extent));
    bool varies = false;
    for (size_t j = 0; j < count_of(&t.model.output[i]); ++j) {
      double got = text_at(&t, i, j), expected = text_at(&t, i + 1, j);
      varies |= expected != text_at(&t, i + 1, 0);
      if (fabs(got - expected) > (c->tolerance != 0 ? c->tolerance : 1e-5) * (1 + fabs(expected)))
        fail_msg("%s, output %d, element %zu: got %g, expected %g", c->name, (int)i, j, got, expected);
    }
    if (!varies) fail_msg("%s: the expected numbers are all %g", c->name, text_at(&t, i + 1, 0));
  }
  text_end(&t);
}

static void test_equivalents(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 24);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) run_case(&cases[i], &rng);
}

static void test_embedding_counts_words(void** state) {
  (void)state;
  text_model_t t;
  int32_t words[] = {0, 1, 2, 3, 0, 1}, mask[] = {1, 1, 0, 1, 0, 0};
  float table[4 * 5] = {1}, one[5] = {1, 1, 1, 1, 1};
  text_begin(&t, 20);
  text_main(&t, "i:i32[2,3] w:f32[4,5] g:f32[5] m:i32[2,3]",
            "y, n = com.microsoft:EmbedLayerNormalization(i, -, w, w, -, g, g, m)", "n:i32[2]");
  text_run(&t, (const void*[]){words, table, one, mask});
  assert_true(text_at(&t, 0, 0) == 2 && text_at(&t, 0, 1) == 1);
  text_end(&t);
}

static void test_other_domains_are_named(void** state) {
  (void)state;
  text_model_t t;
  text_begin(&t, 20);
  text_main(&t, "x:f32[3]", "y = com.example:Relu(x)", "y:f32[3]");
  weft_status_t status = text_import(&t);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNSUPPORTED);
  assert_non_null(strstr(weft_status_message(status), "com.example"));
  weft_status_free(status);
  text_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equivalents), cmocka_unit_test(test_embedding_counts_words),
                                     cmocka_unit_test(test_other_domains_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
