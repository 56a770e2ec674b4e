// Operators that pick, place and order elements, against plain loops: with indices of run time, which compare, and with
// known ones, which move. Random indices on odd shapes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>

#include "base/rng.h"
#include "case.h"
#include "model.h"

enum { FLOAT = 1, INT64 = 7, MAX_ELEMENTS = 1024, MAX_IO = 4 };
typedef struct run_t { // one node: inputs named a, b, c, results r, s
  builder_t b;
  Onnx__NodeProto* node;
  int32_t input_count, output_count;
  weft_host_tensor_t input[MAX_IO], output[2];
  float out_floats[MAX_ELEMENTS];
  int64_t out_ints[MAX_ELEMENTS];
} run_t;

static const char* const input_names[] = {"a", "b", "c", "d"};

static run_t* begin(const char* op, const char* inputs, const char* outputs) {
  run_t* run = calloc(1, sizeof(*run));
  model_begin(&run->b, 20);
  run->node = add_node(&run->b, op, op, inputs, outputs);
  return run;
}

static void add_text(run_t* run, const char* name, const char* text) {
  Onnx__AttributeProto* attribute =
      add_attribute(&run->b, run->node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  attribute->has_s = 1;
  attribute->s = (ProtobufCBinaryData){strlen(text), (uint8_t*)text};
}

// Known: an initializer, no input.
static void give(run_t* run, bool known, int type, size_t rank, int64_t* dims, void* data) {
  const char* name = input_names[run->b.graph.n_initializer + run->b.graph.n_input];
  size_t size = type == INT64 ? 8 : 4;
  for (size_t i = 0; i < rank; ++i) size *= (size_t)dims[i];
  if (known) {
    add_tensor(&run->b, name, type, rank, dims, data, size);
    return;
  }
  add_input(&run->b, name, type, rank, dims);
  weft_host_tensor_t* tensor = &run->input[run->input_count++];
  *tensor = (weft_host_tensor_t){.name = name,
                                 .dtype = type == INT64 ? WEFT_DTYPE_I64 : WEFT_DTYPE_F32,
                                 .rank = (int32_t)rank,
                                 .data = data,
                                 .size = size};
  memcpy(tensor->extent, dims, rank * sizeof(*dims));
}

static void expect_output(run_t* run, const char* name, int type) {
  Onnx__ValueInfoProto* info = add_info(&run->b, name, type, 0, NULL);
  info->type->tensor_type->shape = NULL;
  run->b.outputs[run->b.graph.n_output++] = info;
}

// Frees the run; the results stay with the caller.
static void compute(run_t* run, float* out_floats, int64_t* out_ints) {
  case_t* test = calloc(1, sizeof(*test));
  weft_arena_initialize(weft_allocator_system(), &test->arena);
  assert_null(weft_tensor_context_create(weft_allocator_system(), &test->context));
  weft_status_t status = weft_frontend_import(test->context, &test->arena, model_write(&run->b), NULL, 0, &test->model);
  if (status) print_error("%s\n", weft_status_message(status));
  assert_null(status);
  for (int32_t i = 0; i < test->model.output_count; ++i) {
    const weft_frontend_io_t* io = &test->model.output[i];
    bool is_int = io->dtype == WEFT_DTYPE_I64;
    void* data = is_int ? (void*)out_ints : (void*)out_floats;
    run->output[i] = (weft_host_tensor_t){
        .name = io->name, .dtype = io->dtype, .rank = io->rank, .data = data, .size = is_int ? 8 : 4};
    memcpy(run->output[i].extent, io->extent, sizeof(io->extent));
    for (int32_t d = 0; d < io->rank; ++d) run->output[i].size *= (size_t)io->extent[d];
    assert_true(run->output[i].size <= MAX_ELEMENTS * (is_int ? 8 : 4));
  }
  weft_eval_t* eval;
  assert_null(weft_eval_create(test->context, test->model.module, weft_allocator_system(), &eval));
  assert_null(weft_eval_run(eval, run->input, run->input_count, run->output, test->model.output_count));
  weft_eval_destroy(eval);
  mlirModuleDestroy(test->model.module);
  weft_tensor_context_destroy(test->context);
  weft_arena_deinitialize(&test->arena);
  free(test);
  model_end(&run->b);
  free(run);
}

static void random_floats(weft_rng_t* rng, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = (float)(weft_rng_unit(rng) * 4 - 2);
}
// The first `count` of a random order of 0 .. range - 1, some counted from the end.
static void random_places(weft_rng_t* rng, int64_t range, int64_t count, int64_t* out) {
  int64_t all[MAX_ELEMENTS];
  for (int64_t i = 0; i < range; ++i) all[i] = i;
  for (int64_t i = 0; i < count; ++i) {
    int64_t k = i + (int64_t)weft_rng_below(rng, (uint64_t)(range - i)), other = all[i];
    out[i] = all[k];
    all[k] = other;
  }
}
static void assert_floats(const float* got, const float* expected, int64_t count, const char* what) {
  for (int64_t i = 0; i < count; ++i)
    if (!is_close((double)got[i], (double)expected[i], 1e-4, 1e-5)) {
      print_error("%s: element %lld is %g, expected %g\n", what, (long long)i, (double)got[i], (double)expected[i]);
      fail();
    }
}

static const char* const reductions[] = {"none", "add", "mul", "max", "min"};
static float combine(const char* how, float old, float update) {
  if (strcmp(how, "add") == 0) return old + update;
  if (strcmp(how, "mul") == 0) return old * update;
  if (strcmp(how, "max") == 0) return old > update ? old : update;
  if (strcmp(how, "min") == 0) return old < update ? old : update;
  return update;
}

static void test_scatter_nd(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  int64_t dims[] = {5, 3, 7}, index_dims[] = {4, 2}, update_dims[] = {4, 7};
  float data[105], updates[28], expected[105], got[MAX_ELEMENTS];
  for (int round = 0; round < 10; ++round) {
    const char* how = reductions[round % 5];
    int64_t rows[4], index[8];
    random_floats(&rng, 105, data);
    random_floats(&rng, 28, updates);
    random_places(&rng, 15, 4, rows);
    memcpy(expected, data, sizeof(data));
    for (int u = 0; u < 4; ++u) {
      index[2 * u] = rows[u] / 3 - (u == 1 ? 5 : 0);
      index[2 * u + 1] = rows[u] % 3 - (u == 2 ? 3 : 0);
      for (int k = 0; k < 7; ++k) {
        float* at = &expected[rows[u] * 7 + k];
        *at = combine(how, *at, updates[u * 7 + k]);
      }
    }
    run_t* run = begin("ScatterND", "a b c", "r");
    add_text(run, "reduction", how);
    give(run, false, FLOAT, 3, dims, data);
    give(run, round >= 5, INT64, 2, index_dims, index);
    give(run, false, FLOAT, 2, update_dims, updates);
    expect_output(run, "r", FLOAT);
    compute(run, got, NULL);
    assert_floats(got, expected, 105, how);
  }
}

static void test_scatter_elements(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 12);
  int64_t dims[] = {4, 6, 3}, update_dims[] = {2, 5, 3};
  float data[72], updates[30], expected[72], got[MAX_ELEMENTS];
  for (int round = 0; round < 10; ++round) {
    const char* how = reductions[round % 5];
    int64_t index[30];
    random_floats(&rng, 72, data);
    random_floats(&rng, 30, updates);
    memcpy(expected, data, sizeof(data));
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 3; ++k) {
        int64_t places[5];
        random_places(&rng, 6, 5, places);
        for (int j = 0; j < 5; ++j) {
          int at = (i * 5 + j) * 3 + k;
          float* target = &expected[(i * 6 + places[j]) * 3 + k];
          index[at] = places[j] - (j == 3 ? 6 : 0);
          *target = combine(how, *target, updates[at]);
        }
      }
    run_t* run = begin("ScatterElements", "a b c", "r");
    add_text(run, "reduction", how);
    add_int(&run->b, run->node, "axis", -2);
    give(run, false, FLOAT, 3, dims, data);
    give(run, round >= 5, INT64, 3, update_dims, index);
    give(run, false, FLOAT, 3, update_dims, updates);
    expect_output(run, "r", FLOAT);
    compute(run, got, NULL);
    assert_floats(got, expected, 72, how);
  }
}

static void test_gather_nd(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 13);
  int64_t dims[] = {3, 4, 5, 2}, index_dims[] = {3, 6, 2};
  float data[120], expected[36], got[MAX_ELEMENTS];
  for (int known = 0; known < 2; ++known) {
    int64_t index[36];
    random_floats(&rng, 120, data);
    for (int i = 0; i < 18; ++i) {
      int64_t y = (int64_t)weft_rng_below(&rng, 4), x = (int64_t)weft_rng_below(&rng, 5);
      index[2 * i] = i == 7 ? y - 4 : y;
      index[2 * i + 1] = i == 9 ? x - 5 : x;
      for (int k = 0; k < 2; ++k) expected[2 * i + k] = data[((i / 6 * 4 + y) * 5 + x) * 2 + k];
    }
    run_t* run = begin("GatherND", "a b", "r");
    add_int(&run->b, run->node, "batch_dims", 1);
    give(run, false, FLOAT, 4, dims, data);
    give(run, known, INT64, 3, index_dims, index);
    expect_output(run, "r", FLOAT);
    compute(run, got, NULL);
    assert_floats(got, expected, 36, known ? "known" : "run time");
  }
}

// The k first of an order in which equals keep theirs.
static void test_top_k(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 14);
  int64_t dims[] = {3, 9}, one[] = {1}, k = 4;
  float data[27], got[MAX_ELEMENTS];
  int64_t got_index[MAX_ELEMENTS];
  for (int largest = 0; largest < 2; ++largest) {
    for (int i = 0; i < 27; ++i) data[i] = (float)weft_rng_below(&rng, 5) - 2; // with equals
    run_t* run = begin("TopK", "a b", "r s");
    add_int(&run->b, run->node, "largest", largest);
    give(run, false, FLOAT, 2, dims, data);
    give(run, true, INT64, 1, one, &k);
    expect_output(run, "r", FLOAT);
    expect_output(run, "s", INT64);
    compute(run, got, got_index);
    for (int row = 0; row < 3; ++row) {
      bool used[9] = {0};
      for (int r = 0; r < 4; ++r) {
        int best = -1;
        for (int i = 0; i < 9; ++i) {
          float x = data[row * 9 + i];
          if (used[i]) continue;
          if (best < 0 || (largest ? x > data[row * 9 + best] : x < data[row * 9 + best])) best = i;
        }
        used[best] = true;
        assert_int_equal(got_index[row * 4 + r], best);
        assert_true(got[row * 4 + r] == data[row * 9 + best]);
      }
    }
  }
}

static void test_reverse_sequence(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 15);
  int64_t dims[] = {7, 3, 2}, length_dims[] = {3};
  float data[42], expected[42], got[MAX_ELEMENTS];
  for (int known = 0; known < 2; ++known) {
    int64_t length[3];
    random_floats(&rng, 42, data);
    for (int n = 0; n < 3; ++n) length[n] = 1 + (int64_t)weft_rng_below(&rng, 7);
    for (int t = 0; t < 7; ++t)
      for (int n = 0; n < 3; ++n)
        for (int k = 0; k < 2; ++k) {
          int64_t from = t < length[n] ? length[n] - 1 - t : t;
          expected[(t * 3 + n) * 2 + k] = data[(from * 3 + n) * 2 + k];
        }
    run_t* run = begin("ReverseSequence", "a b", "r");
    give(run, false, FLOAT, 3, dims, data);
    give(run, known, INT64, 1, length_dims, length);
    expect_output(run, "r", FLOAT);
    compute(run, got, NULL);
    assert_floats(got, expected, 42, "ReverseSequence");
  }
}

// Pooled maxima go back to where they came from; what the windows left out is zero.
static void test_max_pool_and_unpool(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 16);
  int64_t dims[] = {2, 3, 6, 8}, pooled[] = {2, 3, 3, 4}, kernel[] = {2, 2};
  float data[288], maxima[MAX_ELEMENTS], got[MAX_ELEMENTS];
  int64_t index[MAX_ELEMENTS];
  random_floats(&rng, 288, data);
  run_t* run = begin("MaxPool", "a", "r s");
  add_ints(&run->b, run->node, "kernel_shape", 2, kernel);
  add_ints(&run->b, run->node, "strides", 2, kernel);
  give(run, false, FLOAT, 4, dims, data);
  expect_output(run, "r", FLOAT);
  expect_output(run, "s", INT64);
  compute(run, maxima, index);
  for (int i = 0; i < 72; ++i) assert_true(data[index[i]] == maxima[i]);
  run = begin("MaxUnpool", "a b", "r");
  add_ints(&run->b, run->node, "kernel_shape", 2, kernel);
  add_ints(&run->b, run->node, "strides", 2, kernel);
  give(run, false, FLOAT, 4, pooled, maxima);
  give(run, false, INT64, 4, pooled, index);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  int kept = 0;
  for (int i = 0; i < 288; ++i) {
    assert_true(got[i] == 0 || got[i] == data[i]);
    kept += got[i] != 0;
  }
  assert_int_equal(kept, 72);
}

// Forth and back is where one started, also with an odd length.
static void test_fourier_round_trip(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 17);
  int64_t dims[] = {2, 7, 2}, axis_dims[] = {1}, axis = 1;
  float data[28], spectrum[MAX_ELEMENTS], back[MAX_ELEMENTS];
  random_floats(&rng, 28, data);
  run_t* run = begin("DFT", "a - b", "r");
  give(run, false, FLOAT, 3, dims, data);
  give(run, true, INT64, 0, axis_dims, &axis);
  expect_output(run, "r", FLOAT);
  compute(run, spectrum, NULL);
  float sum = 0; // of the real parts: the first element's
  for (int i = 0; i < 7; ++i) sum += data[2 * i];
  assert_true(fabsf(sum - spectrum[0]) < 1e-4f);
  run = begin("DFT", "a - b", "r");
  add_int(&run->b, run->node, "inverse", 1);
  give(run, false, FLOAT, 3, dims, spectrum);
  give(run, true, INT64, 0, axis_dims, &axis);
  expect_output(run, "r", FLOAT);
  compute(run, back, NULL);
  assert_floats(back, data, 28, "DFT and back");
}

// Positions on the elements read the elements; in between, the mean of two.
static void test_grid_sample(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 18);
  int64_t dims[] = {1, 2, 1, 5}, grid_dims[] = {1, 1, 9, 2};
  float data[10], grid[18], expected[18], got[MAX_ELEMENTS];
  static const char* const modes[] = {"linear", "nearest"};
  random_floats(&rng, 10, data);
  for (int i = 0; i < 9; ++i) {
    grid[2 * i] = (float)i / 4 - 1;
    grid[2 * i + 1] = 0;
  }
  for (int mode = 0; mode < 2; ++mode) {
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 9; ++i) {
        const float* row = data + 5 * c;
        int even = (i / 2 + 1) / 2 * 2; // halves go to the even one
        expected[9 * c + i] = i % 2 == 0 ? row[i / 2] : mode ? row[even] : (row[i / 2] + row[i / 2 + 1]) / 2;
      }
    run_t* run = begin("GridSample", "a b", "r");
    add_text(run, "mode", modes[mode]);
    add_int(&run->b, run->node, "align_corners", 1);
    give(run, false, FLOAT, 4, dims, data);
    give(run, false, FLOAT, 4, grid_dims, grid);
    expect_output(run, "r", FLOAT);
    compute(run, got, NULL);
    assert_floats(got, expected, 18, modes[mode]);
  }
}

static void test_einsum(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 19);
  int64_t a_dims[] = {3, 2, 3}, b_dims[] = {2, 5};
  float a[18], c[10], expected[15], got[MAX_ELEMENTS];
  random_floats(&rng, 18, a);
  random_floats(&rng, 10, c);
  for (int k = 0; k < 5; ++k)
    for (int i = 0; i < 3; ++i) {
      expected[k * 3 + i] = 0;
      for (int j = 0; j < 2; ++j) expected[k * 3 + i] += a[(i * 2 + j) * 3 + i] * c[j * 5 + k];
    }
  run_t* run = begin("Einsum", "a b", "r");
  add_text(run, "equation", "iji, jk -> ki");
  give(run, false, FLOAT, 3, a_dims, a);
  give(run, false, FLOAT, 2, b_dims, c);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  assert_floats(got, expected, 15, "diagonal and product");
}

// The largest of each cell, whose bounds are rounded outward; a cell without elements is 0.
static void test_max_roi_pool(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 20);
  int64_t dims[] = {2, 3, 7, 9}, roi_dims[] = {4, 5}, cells[] = {2, 3};
  float data[378], rois[20] = {0, 0, 0, 8, 6, 1, 2.4f, 1.2f, 7.6f, 4.4f, 1, 5, 5, 5, 5, 0, 7, 5, 30, 30};
  float expected[72], got[MAX_ELEMENTS];
  random_floats(&rng, 378, data);
  for (int i = 0; i < 72; ++i) {
    const float* roi = rois + i / 18 * 5;
    int c = i / 6 % 3, cell[] = {i / 3 % 2, i % 3}, first[2], last[2];
    static const int extent[] = {7, 9};
    for (int axis = 0; axis < 2; ++axis) {
      int low = (int)roundf(roi[2 - axis]), high = (int)roundf(roi[4 - axis]);
      float size = (float)(high - low + 1) / (float)cells[axis];
      first[axis] = (int)floorf((float)cell[axis] * size) + low;
      last[axis] = (int)ceilf((float)(cell[axis] + 1) * size) + low;
      if (last[axis] > extent[axis]) last[axis] = extent[axis];
    }
    bool any = false;
    expected[i] = 0;
    for (int y = first[0]; y < last[0]; ++y)
      for (int x = first[1]; x < last[1]; ++x) {
        float element = data[(((int)roi[0] * 3 + c) * 7 + y) * 9 + x];
        if (!any || element > expected[i]) expected[i] = element;
        any = true;
      }
  }
  run_t* run = begin("MaxRoiPool", "a b", "r");
  add_ints(&run->b, run->node, "pooled_shape", 2, cells);
  give(run, false, FLOAT, 4, dims, data);
  give(run, false, FLOAT, 2, roi_dims, rois);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  assert_floats(got, expected, 72, "MaxRoiPool");
}

// With a declared length the result of run time is filled with -1; known elements decide it themselves.
static void test_non_zero(void** state) {
  (void)state;
  int64_t dims[] = {2, 3}, result[] = {2, 5}, got[MAX_ELEMENTS];
  float data[] = {0, 3, 0, -1, 0, 2};
  static const int64_t known[] = {0, 1, 1, 1, 0, 2}, filled[] = {0, 1, 1, -1, -1, 1, 0, 2, -1, -1};
  run_t* run = begin("NonZero", "a", "r");
  give(run, false, FLOAT, 2, dims, data);
  add_output(&run->b, "r", INT64, 2, result);
  compute(run, NULL, got);
  assert_memory_equal(got, filled, sizeof(filled));
  run = begin("NonZero", "a", "r");
  give(run, true, FLOAT, 2, dims, data);
  expect_output(run, "r", INT64);
  compute(run, NULL, got);
  assert_memory_equal(got, known, sizeof(known));
}

// Nothing to place leaves the data, nothing to pick leaves nothing.
static void test_no_elements(void** state) {
  (void)state;
  int64_t dims[] = {3, 2}, index_dims[] = {0, 1}, update_dims[] = {0, 2}, zero[] = {1}, k = 0, ints[MAX_ELEMENTS];
  float data[] = {1, 2, 3, 4, 5, 6}, got[MAX_ELEMENTS];
  run_t* run = begin("ScatterND", "a b c", "r");
  give(run, false, FLOAT, 2, dims, data);
  give(run, true, INT64, 2, index_dims, ints);
  give(run, true, FLOAT, 2, update_dims, got);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  assert_memory_equal(got, data, sizeof(data));
  run = begin("TopK", "a b", "r s");
  give(run, false, FLOAT, 2, dims, data);
  give(run, true, INT64, 1, zero, &k);
  expect_output(run, "r", FLOAT);
  expect_output(run, "s", INT64);
  compute(run, got, ints);
}

// A rank of 0 in and out.
static void test_single_elements(void** state) {
  (void)state;
  int64_t one[] = {1}, index = -1;
  float data = 7, got[MAX_ELEMENTS];
  run_t* run = begin("Einsum", "a b", "r");
  add_text(run, "equation", ",->");
  give(run, false, FLOAT, 0, one, &data);
  give(run, false, FLOAT, 0, one, &data);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  assert_true(got[0] == 49);
  run = begin("GatherND", "a b", "r"); // an index of rank 1 picks one element
  give(run, false, FLOAT, 1, one, &data);
  give(run, false, INT64, 1, one, &index);
  expect_output(run, "r", FLOAT);
  compute(run, got, NULL);
  assert_true(got[0] == 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scatter_nd),
      cmocka_unit_test(test_scatter_elements),
      cmocka_unit_test(test_gather_nd),
      cmocka_unit_test(test_top_k),
      cmocka_unit_test(test_reverse_sequence),
      cmocka_unit_test(test_max_pool_and_unpool),
      cmocka_unit_test(test_fourier_round_trip),
      cmocka_unit_test(test_grid_sample),
      cmocka_unit_test(test_einsum),
      cmocka_unit_test(test_max_roi_pool),
      cmocka_unit_test(test_non_zero),
      cmocka_unit_test(test_no_elements),
      cmocka_unit_test(test_single_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
