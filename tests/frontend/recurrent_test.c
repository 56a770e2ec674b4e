// Recurrent operators against their definition, over all attributes and optional inputs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>

#include "frontend/frontend.h"
#include "ir/tensor/eval.h"
#include "tests/frontend/recurrent.h"

#ifdef __SANITIZE_ADDRESS__
enum { CASES = 15 };
#else
enum { CASES = 50 };
#endif

static weft_host_tensor_t tensor_of(weft_dtype_e dtype, int32_t rank, const int64_t* extents, void* data) {
  weft_host_tensor_t tensor = {.dtype = dtype, .rank = rank, .data = data, .size = 4};
  for (int32_t i = 0; i < rank; ++i) {
    tensor.extent[i] = extents[i];
    tensor.size *= (size_t)extents[i];
  }
  return tensor;
}

static int32_t collect_inputs(recurrent_t* r, weft_host_tensor_t out[8]) {
  int32_t count = 0;
  out[count++] = tensor_of(WEFT_DTYPE_F32, 3, r->shape_x, r->x);
  if (r->given_weights) {
    out[count++] = tensor_of(WEFT_DTYPE_F32, 3, r->shape_w, r->w);
    out[count++] = tensor_of(WEFT_DTYPE_F32, 3, r->shape_r, r->r);
    if (r->has_bias) out[count++] = tensor_of(WEFT_DTYPE_F32, 2, r->shape_b, r->b);
  }
  if (r->lengths == GIVEN_LENGTHS) out[count++] = tensor_of(WEFT_DTYPE_I32, 1, r->shape_length, r->length);
  if (r->has_hidden && r->given_state) out[count++] = tensor_of(WEFT_DTYPE_F32, 3, r->shape_h, r->h);
  if (r->has_memory && r->given_state) out[count++] = tensor_of(WEFT_DTYPE_F32, 3, r->shape_h, r->c);
  if (r->has_peephole && r->given_weights) out[count++] = tensor_of(WEFT_DTYPE_F32, 2, r->shape_p, r->p);
  return count;
}

static void assert_near(const recurrent_t* r, const char* name, const float* got, const double* expected,
                        size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (fabs((double)got[i] - expected[i]) < 1e-5) continue;
    print_error("%s[%zu] = %g, expected %g (kind %d, direction %d, %d steps, lengths %d)\n", name, i, (double)got[i],
                expected[i], r->kind, r->direction, (int)r->steps, r->lengths);
    fail();
  }
}

static void run_case(recurrent_t* r) {
  weft_tensor_context_t* context;
  weft_arena_t arena;
  weft_model_t model;
  weft_eval_t* eval;
  float y[512], yh[512], yc[512];
  double expected_y[512], expected_yh[512], expected_yc[512];
  weft_host_tensor_t inputs[8], outputs[3];
  assert_null(weft_tensor_context_create(weft_allocator_system(), &context));
  weft_arena_initialize(weft_allocator_system(), &arena);
  assert_null(weft_frontend_import(context, &arena, recurrent_write(r), NULL, 0, &model));
  assert_null(weft_eval_create(context, model.module, weft_allocator_system(), &eval));
  int32_t count = collect_inputs(r, inputs), results = r->kind == LSTM ? 3 : 2;
  assert_int_equal(model.input_count, count);
  void* data[] = {y, yh, yc};
  for (int32_t i = 0; i < results; ++i)
    outputs[i] = tensor_of(WEFT_DTYPE_F32, model.output[i].rank, model.output[i].extent, data[i]);
  assert_null(weft_eval_run(eval, inputs, count, outputs, results));
  recurrent_reference(r, expected_y, expected_yh, expected_yc);
  size_t state = (size_t)(r->directions * r->batch * r->units);
  assert_near(r, "y", y, expected_y, state * (size_t)r->steps);
  assert_near(r, "yh", yh, expected_yh, state);
  if (r->kind == LSTM) assert_near(r, "yc", yc, expected_yc, state);
  weft_eval_destroy(eval);
  mlirModuleDestroy(model.module);
  weft_arena_deinitialize(&arena);
  weft_tensor_context_destroy(context);
}

static void test_as_defined(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 20);
  for (int32_t i = 0; i < CASES; ++i) {
    recurrent_t recurrent;
    recurrent_draw(&rng, &recurrent);
    run_case(&recurrent);
    recurrent_free(&recurrent);
  }
}

static void assert_refused(recurrent_t* r, const char* text) {
  weft_tensor_context_t* context;
  weft_arena_t arena;
  weft_model_t model = {0};
  assert_null(weft_tensor_context_create(weft_allocator_system(), &context));
  weft_arena_initialize(weft_allocator_system(), &arena);
  weft_status_t status = weft_frontend_import(context, &arena, model_write(&r->model), NULL, 0, &model);
  if (!strstr(weft_status_message(status), text)) print_error("'%s' lacks '%s'\n", weft_status_message(status), text);
  assert_non_null(strstr(weft_status_message(status), text));
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  weft_tensor_context_destroy(context);
}

static Onnx__AttributeProto* find_attribute(recurrent_t* r, const char* name) {
  Onnx__NodeProto* node = &r->model.node[0];
  for (size_t i = 0; i < node->n_attribute; ++i)
    if (strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
  return NULL;
}

// Shapes, directions and activations that aren't.
static void test_refuses(void** state) {
  (void)state;
  weft_rng_t rng;
  recurrent_t r;
  weft_rng_seed(&rng, 3);
  for (;; recurrent_free(&r)) {
    recurrent_draw(&rng, &r);
    recurrent_write(&r);
    if (r.other_activations) break;
  }
  find_attribute(&r, "hidden_size")->i++;
  assert_refused(&r, "W has shape");
  find_attribute(&r, "hidden_size")->i--;
  Onnx__AttributeProto* activations = find_attribute(&r, "activations");
  ProtobufCBinaryData name = activations->strings[0];
  activations->strings[0] = (ProtobufCBinaryData){5, (uint8_t*)"Maybe"};
  assert_refused(&r, "activation 'Maybe'");
  activations->strings[0] = name;
  activations->n_strings--;
  assert_refused(&r, "activations are given, expected");
  activations->n_strings++;
  find_attribute(&r, "direction")->s = (ProtobufCBinaryData){7, (uint8_t*)"upwards"};
  assert_refused(&r, "direction 'upwards'");
  recurrent_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_defined), cmocka_unit_test(test_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
