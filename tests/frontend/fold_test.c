// An operator has one definition for run time and for folding: both give the same result, whatever the operator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>

#include "base/rng.h"
#include "case.h"
#include "model.h"

// Of one input [2, 4, 3, 5] with elements in (0.05, 0.95).
static const char* const operators[] = {"Abs",
                                        "Acos",
                                        "Asin",
                                        "Asinh",
                                        "Atan",
                                        "Atanh",
                                        "Ceil",
                                        "Cos",
                                        "Cosh",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "Floor",
                                        "Gelu",
                                        "HardSigmoid",
                                        "HardSwish",
                                        "LeakyRelu",
                                        "Log",
                                        "LogSoftmax",
                                        "Mish",
                                        "Neg",
                                        "Reciprocal",
                                        "Relu",
                                        "Round",
                                        "Selu",
                                        "Sigmoid",
                                        "Sign",
                                        "Sin",
                                        "Sinh",
                                        "Softmax",
                                        "Softplus",
                                        "Softsign",
                                        "Sqrt",
                                        "Tan",
                                        "Tanh",
                                        "ReduceL1",
                                        "ReduceL2",
                                        "ReduceLogSum",
                                        "ReduceLogSumExp",
                                        "ReduceMax",
                                        "ReduceMean",
                                        "ReduceMin",
                                        "ReduceProd",
                                        "ReduceSum",
                                        "ReduceSumSquare",
                                        "GlobalAveragePool",
                                        "GlobalMaxPool",
                                        "Flatten",
                                        "Transpose",
                                        "LpNormalization",
                                        "MeanVarianceNormalization",
                                        "Hardmax"};
enum { OPERATOR_COUNT = sizeof(operators) / sizeof(operators[0]), ELEMENTS = 2 * 4 * 3 * 5 };

static void build(builder_t* b, bool known, float* data, int64_t* dims, const char (*names)[32]) {
  model_begin(b, 20);
  if (known)
    add_tensor(b, "x", 1, 4, dims, data, ELEMENTS * sizeof(float));
  else
    add_input(b, "x", 1, 4, dims);
  for (int i = 0; i < OPERATOR_COUNT; ++i) {
    add_node(b, operators[i], operators[i], "x", names[i]);
    Onnx__ValueInfoProto* info = add_info(b, names[i], 1, 0, NULL);
    info->type->tensor_type->shape = NULL; // of any shape
    b->outputs[b->graph.n_output++] = info;
  }
}

// Imports and evaluates; the outputs live in the case's arena.
static void evaluate(case_t* test, const char* path, const weft_host_tensor_t* input, weft_host_tensor_t* output) {
  weft_arena_initialize(weft_allocator_system(), &test->arena);
  assert_null(weft_tensor_context_create(weft_allocator_system(), &test->context));
  assert_null(weft_frontend_import(test->context, &test->arena, path, NULL, 0, &test->model));
  assert_int_equal(test->model.output_count, OPERATOR_COUNT);
  for (int i = 0; i < OPERATOR_COUNT; ++i) {
    const weft_frontend_io_t* io = &test->model.output[i];
    output[i] = (weft_host_tensor_t){.name = io->name, .dtype = io->dtype, .rank = io->rank, .size = 4};
    memcpy(output[i].extent, io->extent, sizeof(io->extent));
    for (int32_t d = 0; d < io->rank; ++d) output[i].size *= (size_t)io->extent[d];
    assert_null(weft_arena_allocate(&test->arena, output[i].size, 1, &output[i].data));
  }
  weft_eval_t* eval;
  assert_null(weft_eval_create(test->context, test->model.module, weft_allocator_system(), &eval));
  assert_null(weft_eval_run(eval, input, test->model.input_count, output, OPERATOR_COUNT));
  weft_eval_destroy(eval);
}

static void finish(case_t* test) {
  mlirModuleDestroy(test->model.module);
  weft_tensor_context_destroy(test->context);
  weft_arena_deinitialize(&test->arena);
  free(test);
}

static void test_folding_agrees_with_run_time(void** state) {
  (void)state;
  float data[ELEMENTS];
  char names[OPERATOR_COUNT][32];
  int64_t dims[] = {2, 4, 3, 5};
  weft_rng_t rng;
  weft_rng_seed(&rng, 20);
  for (int i = 0; i < ELEMENTS; ++i) data[i] = (float)(0.05 + 0.9 * weft_rng_unit(&rng));
  for (int i = 0; i < OPERATOR_COUNT; ++i) snprintf(names[i], sizeof(names[i]), "out_%d", i);
  weft_host_tensor_t input = {"x", WEFT_DTYPE_F32, 4, {2, 4, 3, 5}, data, sizeof(data)};
  weft_host_tensor_t computed[OPERATOR_COUNT], folded[OPERATOR_COUNT];
  case_t *first = calloc(1, sizeof(*first)), *second = calloc(1, sizeof(*second));
  builder_t* b = calloc(1, sizeof(*b));
  build(b, false, data, dims, names);
  evaluate(first, model_write(b), &input, computed);
  model_end(b);
  build(b, true, data, dims, names);
  evaluate(second, model_write(b), NULL, folded);
  model_end(b);
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_tensor_print(second->model.module, &text));
  assert_null(strstr(text.data, "linalg.generic")); // all of it folded
  weft_text_deinitialize(&text);
  for (int i = 0; i < OPERATOR_COUNT; ++i) {
    char message[2000];
    if (matches(&computed[i], &folded[i], WEFT_DTYPE_F32, 1e-5, 1e-6, message)) continue;
    print_error("%s: %s\n", operators[i], message);
    fail();
  }
  finish(first);
  finish(second);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_folding_agrees_with_run_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
