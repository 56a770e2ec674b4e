// What the importer refuses, and how it says so; and the models it takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "frontend/frontend.h"
#include "model.h"

enum { FLOAT = 1, INT64 = 7 };

typedef struct fixture_t {
  weft_tensor_context_t* context;
  weft_arena_t arena;
  weft_model_t model;
} fixture_t;

static weft_status_t import_with(fixture_t* f, weft_allocator_t allocator, const char* path,
                                 const weft_frontend_dim_t* dims, int32_t dim_count) {
  memset(f, 0, sizeof(*f));
  assert_null(weft_tensor_context_create(weft_allocator_system(), &f->context));
  weft_arena_initialize(allocator, &f->arena);
  return weft_frontend_import(f->context, &f->arena, path, dims, dim_count, &f->model);
}

static weft_status_t import(fixture_t* f, const char* path) {
  return import_with(f, weft_allocator_system(), path, NULL, 0);
}

static void release(fixture_t* f) {
  if (f->model.module.ptr) mlirModuleDestroy(f->model.module);
  weft_tensor_context_destroy(f->context);
  weft_arena_deinitialize(&f->arena);
}

static void assert_mentions(weft_status_t status, const char* text) {
  if (!strstr(weft_status_message(status), text)) print_error("'%s' lacks '%s'\n", weft_status_message(status), text);
  assert_non_null(strstr(weft_status_message(status), text));
}

// The import fails with a code, and the message has each of the texts.
static void assert_refused(builder_t* b, weft_status_code_e code, int count, const char* const* texts) {
  fixture_t f;
  weft_status_t status = import(&f, model_write(b));
  assert_int_equal(weft_status_code(status), code);
  for (int i = 0; i < count; ++i) assert_mentions(status, texts[i]);
  weft_status_free(status);
  release(&f);
  model_end(b);
}
#define ASSERT_REFUSED(b, code, ...)                                                                                   \
  assert_refused(b, WEFT_STATUS_##code, (int)(sizeof((const char*[]){__VA_ARGS__}) / sizeof(char*)),                   \
                 (const char*[]){__VA_ARGS__})

static void begin_vector(builder_t* b) { // x -> .. -> y
  model_begin(b, 13);
  add_input(b, "x", FLOAT, EXTENTS(5));
  add_output(b, "y", FLOAT, EXTENTS(5));
}

static void test_lists_all_unsupported_at_once(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_node(&b, "RandomUniformLike", "first", "x", "a");
  add_node(&b, "Relu", "fine", "a", "b");
  add_node(&b, "Mystery", "second", "b", "y");
  ASSERT_REFUSED(&b, UNSUPPORTED, "'first': RandomUniformLike", "'second': Mystery", "opset 13");
}

static void test_lists_unsupported_found_while_emitting(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_input(&b, "shape", INT64, EXTENTS(1));
  add_input(&b, "more", INT64, EXTENTS(1));
  add_node(&b, "Reshape", "one", "x shape", "a");
  add_node(&b, "Relu", "depends", "a", "y");
  add_node(&b, "Tile", "two", "x more", "c");
  ASSERT_REFUSED(&b, UNSUPPORTED, "'one': Reshape", "'two': Tile", "'shape'", "constant");
}

static void test_opset_range(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  b.opset.version = 9;
  add_node(&b, "Range", "r", "x x x", "y");
  ASSERT_REFUSED(&b, UNSUPPORTED, "opset 9", "11 to");
}

static void test_cycle_names_its_nodes(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_node(&b, "Add", "left", "x c", "a");
  add_node(&b, "Relu", "middle", "a", "b");
  add_node(&b, "Relu", "right", "b", "c");
  add_node(&b, "Relu", "outside", "x", "y");
  fixture_t f;
  weft_status_t status = import(&f, model_write(&b));
  assert_mentions(status, "cycle");
  assert_mentions(status, "'left'");
  assert_mentions(status, "'middle'");
  assert_mentions(status, "'right'");
  assert_null(strstr(weft_status_message(status), "'outside'"));
  weft_status_free(status);
  release(&f);
  model_end(&b);
}

static void test_value_that_nobody_makes(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_node(&b, "Add", "sum", "x ghost", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "'sum'", "'ghost'");
}

static void test_duplicate_value(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_node(&b, "Relu", "one", "x", "y");
  add_node(&b, "Neg", "two", "x", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "'y' is made twice", "'one'", "'two'");
}

static void test_output_that_nobody_makes(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_node(&b, "Relu", "one", "x", "z");
  ASSERT_REFUSED(&b, INVALID_INPUT, "output 'y'");
}

static void test_initializer_of_wrong_size(void** state) {
  (void)state;
  builder_t b;
  float data[4] = {0};
  int64_t dims[] = {5};
  begin_vector(&b);
  add_tensor(&b, "w", FLOAT, 1, dims, data, sizeof(data));
  add_node(&b, "Add", "sum", "x w", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "'w'", "[5]", "20 bytes", "16");
}

static void test_initializer_shapes_are_checked(void** state) {
  (void)state;
  float data[1] = {0};
  int64_t negative[] = {-1}, huge[] = {INT64_MAX, 2}, many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  struct {
    int64_t* dims;
    size_t rank;
    weft_status_code_e code;
  } cases[] = {{negative, 1, WEFT_STATUS_INVALID_INPUT},
               {huge, 2, WEFT_STATUS_INVALID_INPUT},
               {many, 9, WEFT_STATUS_UNSUPPORTED}};
  for (size_t i = 0; i < 3; ++i) {
    builder_t b;
    begin_vector(&b);
    add_tensor(&b, "w", FLOAT, cases[i].rank, cases[i].dims, data, sizeof(data));
    add_node(&b, "Add", "sum", "x w", "y");
    assert_refused(&b, cases[i].code, 1, (const char*[]){"tensor 'w'"});
  }
}

static void test_shape_mismatch_names_the_node(void** state) {
  (void)state;
  builder_t b;
  begin_vector(&b);
  add_input(&b, "z", FLOAT, EXTENTS(4));
  add_node(&b, "Add", "sum", "x z", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "Add 'sum'", "[5]", "[4]");
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(5));
  add_output(&b, "y", FLOAT, EXTENTS(6));
  add_node(&b, "Relu", "act", "x", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "output 'y'", "expected shape [6]", "got [5]", "Relu 'act'");
}

static void test_attributes_are_checked(void** state) {
  (void)state;
  builder_t b;
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(2, 3));
  add_output(&b, "y", FLOAT, EXTENTS(2, 3));
  add_int(&b, add_node(&b, "Transpose", "t", "x", "y"), "perm", 1);
  ASSERT_REFUSED(&b, INVALID_INPUT, "Transpose 't'", "'perm'", "list of integers");
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(2, 3));
  add_output(&b, "y", FLOAT, EXTENTS(2, 3));
  add_int(&b, add_node(&b, "Softmax", "s", "x", "y"), "axis", 2);
  ASSERT_REFUSED(&b, INVALID_INPUT, "Softmax 's'", "axis 2");
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(2, 3));
  add_output(&b, "y", FLOAT, EXTENTS(2, 3));
  add_node(&b, "MaxPool", "p", "x", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "MaxPool 'p'");
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(2, 3));
  add_output(&b, "y", FLOAT, EXTENTS(2, 3));
  add_node(&b, "MatMul", "m", "x", "y");
  ASSERT_REFUSED(&b, INVALID_INPUT, "MatMul 'm'", "1 inputs, expected 2");
}

static void test_unknown_dimension_is_named(void** state) {
  (void)state;
  builder_t b;
  model_begin(&b, 13);
  add_input(&b, "x", FLOAT, EXTENTS(-1, 3));
  add_output(&b, "y", FLOAT, EXTENTS(-1, 3));
  add_node(&b, "Relu", "act", "x", "y");
  fixture_t f;
  weft_frontend_dim_t dims[] = {{"N", 4}, {"typo", 4}};
  weft_status_t status = import(&f, model_write(&b));
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
  assert_mentions(status, "'N'");
  assert_mentions(status, "--dim");
  weft_status_free(status);
  release(&f);
  assert_null(import_with(&f, weft_allocator_system(), b.path, dims, 1));
  assert_int_equal(f.model.input_count, 1);
  assert_int_equal(f.model.input[0].extent[0], 4);
  assert_int_equal(f.model.output[0].extent[0], 4);
  assert_string_equal(f.model.output[0].name, "y");
  release(&f);
  status = import_with(&f, weft_allocator_system(), b.path, dims, 2);
  assert_mentions(status, "typo");
  weft_status_free(status);
  release(&f);
  model_end(&b);
}

static void test_unsorted_nodes_and_listed_initializers(void** state) {
  (void)state;
  builder_t b;
  float data[5] = {1, 2, 3, 4, 5};
  int64_t dims[] = {5};
  begin_vector(&b);
  b.model.ir_version = 3;
  add_input(&b, "w", FLOAT, EXTENTS(5));
  add_tensor(&b, "w", FLOAT, 1, dims, data, sizeof(data));
  add_node(&b, "Relu", "last", "a", "y");
  add_node(&b, "Add", "first", "x w", "a");
  fixture_t f;
  assert_null(import(&f, model_write(&b)));
  assert_int_equal(f.model.input_count, 1);
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_tensor_print(f.model.module, &text));
  assert_non_null(strstr(text.data, "weft.name = \"x\""));
  assert_non_null(strstr(text.data, "arith.addf"));
  assert_non_null(strstr(text.data, "arith.maximumf"));
  weft_text_deinitialize(&text);
  release(&f);
  model_end(&b);
}

static void test_files_that_are_no_models(void** state) {
  (void)state;
  builder_t b;
  uint8_t* bytes;
  begin_vector(&b);
  add_node(&b, "Relu", "act", "x", "y");
  size_t size = model_pack(&b, &bytes);
  model_write(&b);
  for (size_t length = 0; length < size; ++length) { // every truncation
    write_bytes(b.path, bytes, length);
    fixture_t f;
    weft_status_t status = import(&f, b.path);
    if (status) assert_int_equal(weft_status_code_exit(weft_status_code(status)), 1);
    weft_status_free(status);
    release(&f);
  }
  free(bytes);
  write_bytes(b.path, "this is not a model at all", 26);
  fixture_t f;
  weft_status_t status = import(&f, b.path);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_mentions(status, b.path);
  weft_status_free(status);
  release(&f);
  model_end(&b);
}

static void test_deep_nesting_is_refused(void** state) {
  (void)state;
  // graph { node { attribute { g { node { .. } } } } }: each level wraps the one before.
  enum { LEVELS = 3000 };
  static const uint8_t keys[] = {0x0a, 0x2a, 0x32}; // GraphProto.node, NodeProto.attribute, AttributeProto.g
  size_t capacity = LEVELS * 5 + 16, at = capacity;
  uint8_t* bytes = malloc(capacity);
  for (int i = 0; i < LEVELS; ++i) {
    uint64_t length = capacity - at;
    uint8_t varint[5];
    int count = 0;
    do varint[count++] = (uint8_t)((length & 127) | (length > 127 ? 128 : 0));
    while (length >>= 7);
    at -= (size_t)count;
    memcpy(bytes + at, varint, (size_t)count);
    int outside = LEVELS - 1 - i;
    bytes[--at] = outside == 0 ? 0x3a : keys[(outside - 1) % 3]; // 0x3a: ModelProto.graph
  }
  char path[64];
  snprintf(path, sizeof(path), "/tmp/weft_deep_%d.onnx", (int)getpid());
  write_bytes(path, bytes + at, capacity - at);
  free(bytes);
  fixture_t f;
  weft_status_t status = import(&f, path);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_mentions(status, "nested");
  weft_status_free(status);
  release(&f);
  unlink(path);
}

static void build_conv(builder_t* b, float* weights, int64_t* dims, int64_t* pads) {
  model_begin(b, 13);
  add_input(b, "x", FLOAT, EXTENTS(1, 4, 5, 7));
  add_output(b, "y", FLOAT, EXTENTS(1, 6, 5, 7));
  add_tensor(b, "w", FLOAT, 4, dims, weights, sizeof(float) * 6 * 2 * 3 * 3);
  Onnx__NodeProto* conv = add_node(b, "Conv", "conv", "x w", "a");
  add_int(b, conv, "group", 2);
  add_ints(b, conv, "pads", 4, pads);
  add_node(b, "Relu", "act", "a", "y");
}

// Bytes changed at random: an error or a model, never a crash.
static void test_damaged_models(void** state) {
  (void)state;
  builder_t b;
  float weights[6 * 2 * 3 * 3] = {0};
  int64_t dims[] = {6, 2, 3, 3}, pads[] = {1, 1, 1, 1};
  build_conv(&b, weights, dims, pads);
  model_write(&b);
  uint8_t* bytes;
  size_t size = model_pack(&b, &bytes);
  weft_rng_t rng;
  weft_rng_seed(&rng, 4711);
  for (int round = 0; round < 150; ++round) {
    uint8_t* damaged = malloc(size);
    memcpy(damaged, bytes, size);
    for (uint64_t i = 0, n = 1 + weft_rng_below(&rng, 3); i < n; ++i)
      damaged[weft_rng_below(&rng, size)] = (uint8_t)weft_rng_below(&rng, 256);
    write_bytes(b.path, damaged, size);
    free(damaged);
    fixture_t f;
    weft_status_t status = import(&f, b.path);
    assert_int_not_equal(weft_status_code(status), WEFT_STATUS_INTERNAL);
    weft_status_free(status);
    release(&f);
  }
  free(bytes);
  model_end(&b);
}

// The n-th allocation fails, for all n: an out-of-memory error each time, until there is enough.
static void test_every_failing_allocation(void** state) {
  (void)state;
  builder_t b;
  float weights[6 * 2 * 3 * 3] = {0};
  int64_t dims[] = {6, 2, 3, 3}, pads[] = {1, 1, 1, 1};
  build_conv(&b, weights, dims, pads);
  model_write(&b);
  for (uint64_t n = 0;; ++n) {
    assert_true(n < 1000);
    weft_failing_allocator_t failing = {.countdown = n};
    fixture_t f;
    weft_status_t status = import_with(&f, weft_allocator_failing(&failing), b.path, NULL, 0);
    bool is_done = status == NULL;
    weft_status_free(status);
    release(&f);
    assert_int_equal(failing.live, 0);
    if (is_done) break;
  }
  model_end(&b);
}

static void add_external(Onnx__TensorProto* tensor, Onnx__StringStringEntryProto* entries,
                         Onnx__StringStringEntryProto** list, const char* location, const char* offset) {
  for (int i = 0; i < 2; ++i) {
    onnx__string_string_entry_proto__init(&entries[i]);
    list[i] = &entries[i];
  }
  entries[0].key = (char*)"location";
  entries[0].value = (char*)location;
  entries[1].key = (char*)"offset";
  entries[1].value = (char*)offset;
  tensor->has_data_location = 1;
  tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  tensor->n_external_data = 2;
  tensor->external_data = list;
}

static void test_external_data(void** state) {
  (void)state;
  char folder[64], path[128], data_path[128];
  snprintf(folder, sizeof(folder), "/tmp/weft_external_%d", (int)getpid());
  snprintf(path, sizeof(path), "%s/model.onnx", folder);
  snprintf(data_path, sizeof(data_path), "%s/weights.bin", folder);
  assert_int_equal(mkdir(folder, 0700), 0);
  float data[7] = {9, 9, 1, 2, 3, 4, 5};
  write_bytes(data_path, data, sizeof(data));
  struct {
    const char *location, *offset, *mentions; // NULL: imports
  } cases[] = {{"weights.bin", "8", NULL},           {"weights.bin", "12", "28"},     {"../passwd", "0", "outside"},
               {"/etc/passwd", "0", "outside"},      {"sub/../../x", "0", "outside"}, {"missing.bin", "0", "missing"},
               {"weights.bin", "-1", "not a number"}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    builder_t b;
    int64_t dims[] = {5};
    Onnx__StringStringEntryProto entries[2], *list[2];
    begin_vector(&b);
    add_external(add_tensor(&b, "w", FLOAT, 1, dims, NULL, 0), entries, list, cases[i].location, cases[i].offset);
    add_node(&b, "Add", "sum", "x w", "y");
    uint8_t* bytes;
    size_t size = model_pack(&b, &bytes);
    write_bytes(path, bytes, size);
    free(bytes);
    fixture_t f;
    weft_status_t status = import(&f, path);
    assert_true((status == NULL) == (cases[i].mentions == NULL));
    if (status) assert_mentions(status, cases[i].mentions);
    weft_status_free(status);
    release(&f);
    model_end(&b);
  }
  unlink(data_path);
  unlink(path);
  rmdir(folder);
}

static void test_tensor_files(void** state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof(path), "/tmp/weft_tensor_%d.pb", (int)getpid());
  for (weft_dtype_e dtype = 0; dtype < WEFT_DTYPE_COUNT; ++dtype) { // written and read again
    uint8_t data[6 * 8];
    for (size_t i = 0; i < sizeof(data); ++i) data[i] = (uint8_t)(dtype == WEFT_DTYPE_BOOL ? i & 1 : i * 37 + dtype);
    weft_host_tensor_t tensor = {"t", dtype, 2, {2, 3}, data, 6 * weft_dtype_size(dtype)}, read;
    assert_null(weft_frontend_write_tensor(weft_allocator_system(), path, &tensor));
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_system(), &arena);
    assert_null(weft_frontend_read_tensor(&arena, path, &read));
    assert_int_equal(read.dtype, dtype);
    assert_int_equal(read.rank, 2);
    assert_int_equal(read.extent[1], 3);
    assert_int_equal(read.size, tensor.size);
    assert_memory_equal(read.data, data, tensor.size);
    weft_arena_deinitialize(&arena);
  }
  // Halves in int32_data, one element a field entry.
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  int64_t dims[] = {3};
  int32_t halves[] = {0x3c00, 0xc000, 0x7bff};
  uint8_t bytes[128];
  proto.n_dims = 1;
  proto.dims = dims;
  proto.has_data_type = 1;
  proto.data_type = 10;
  proto.n_int32_data = 3;
  proto.int32_data = halves;
  write_bytes(path, bytes, onnx__tensor_proto__pack(&proto, bytes));
  weft_arena_t arena;
  weft_host_tensor_t read;
  weft_arena_initialize(weft_allocator_system(), &arena);
  assert_null(weft_frontend_read_tensor(&arena, path, &read));
  assert_true(weft_dtype_load(WEFT_DTYPE_F16, (char*)read.data + 2) == -2.0);
  weft_arena_deinitialize(&arena);
  unlink(path);
}

static void test_operator_table(void** state) {
  (void)state;
  weft_text_t plain, markdown;
  weft_text_initialize(weft_allocator_system(), &plain);
  weft_text_initialize(weft_allocator_system(), &markdown);
  assert_null(weft_frontend_print_operators(false, &plain));
  assert_null(weft_frontend_print_operators(true, &markdown));
  assert_non_null(strstr(plain.data, "Conv "));
  assert_non_null(strstr(markdown.data, "| Conv | 1-"));
  // The document is what the table prints.
  weft_mapping_t document;
  assert_null(weft_file_map(WEFT_SOURCE_DIR "/docs/operators.md", &document));
  assert_int_equal(document.size, markdown.count);
  assert_memory_equal(document.data, markdown.data, markdown.count);
  weft_file_unmap(&document);
  weft_text_deinitialize(&plain);
  weft_text_deinitialize(&markdown);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_all_unsupported_at_once),
      cmocka_unit_test(test_lists_unsupported_found_while_emitting),
      cmocka_unit_test(test_opset_range),
      cmocka_unit_test(test_cycle_names_its_nodes),
      cmocka_unit_test(test_value_that_nobody_makes),
      cmocka_unit_test(test_duplicate_value),
      cmocka_unit_test(test_output_that_nobody_makes),
      cmocka_unit_test(test_initializer_of_wrong_size),
      cmocka_unit_test(test_initializer_shapes_are_checked),
      cmocka_unit_test(test_shape_mismatch_names_the_node),
      cmocka_unit_test(test_attributes_are_checked),
      cmocka_unit_test(test_unknown_dimension_is_named),
      cmocka_unit_test(test_unsorted_nodes_and_listed_initializers),
      cmocka_unit_test(test_files_that_are_no_models),
      cmocka_unit_test(test_deep_nesting_is_refused),
      cmocka_unit_test(test_damaged_models),
      cmocka_unit_test(test_every_failing_allocation),
      cmocka_unit_test(test_external_data),
      cmocka_unit_test(test_tensor_files),
      cmocka_unit_test(test_operator_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
