// The text form: what is written reads back and prints the same; what is broken is refused by path and line, never a
// crash.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "tests/ir/fabric/sample.h"

typedef struct test_t {
  weft_fabric_t fabric;
  char folder[64], path[96], constants[112];
} test_t;

static int setup(void** state) {
  test_t* t = calloc(1, sizeof(*t));
  if (!t) return 1;
  sample_fabric(&t->fabric);
  strcpy(t->folder, "/tmp/weft_text_XXXXXX");
  if (!mkdtemp(t->folder)) return 1;
  snprintf(t->path, sizeof(t->path), "%s/net.fabric", t->folder);
  snprintf(t->constants, sizeof(t->constants), "%s.bin", t->path);
  *state = t;
  return 0;
}

static int teardown(void** state) {
  test_t* t = *state;
  weft_fabric_deinitialize(&t->fabric);
  unlink(t->path);
  unlink(t->constants);
  int result = rmdir(t->folder); // fails when a temporary file was left behind
  free(t);
  return result;
}

static void expect_ok(weft_status_t status) {
  if (status) fail_msg("%s", weft_status_message(status));
}

static void expect_failure(weft_status_t status, const char* part) {
  assert_non_null(status);
  if (!strstr(weft_status_message(status), part)) fail_msg("expected '%s' in: %s", part, weft_status_message(status));
  weft_status_free(status);
}

static char* print(const weft_fabric_t* fabric) {
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  expect_ok(weft_fabric_print(fabric, &text));
  return text.data;
}

static void expect_round_trip(test_t* t) {
  weft_fabric_t back;
  char* before = print(&t->fabric);
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  weft_mapping_t file;
  expect_ok(weft_file_map(t->path, &file));
  assert_int_equal(file.size, strlen(before));
  assert_memory_equal(file.data, before, file.size);
  weft_file_unmap(&file);
  expect_ok(weft_fabric_read(weft_allocator_system(), t->path, &back));
  char* after = print(&back);
  assert_string_equal(before, after);
  for (int32_t i = 0; i < back.tensor_count; ++i)
    if (back.tensor[i].kind == WEFT_TENSOR_CONSTANT)
      assert_memory_equal(back.tensor[i].data, t->fabric.tensor[i].data,
                          (size_t)back.tensor[i].shape.extent[0] * weft_dtype_size(back.tensor[i].dtype));
  weft_fabric_deinitialize(&back);
  free(before);
  free(after);
}

static void every_stage_reads_back(void** state) {
  test_t* t = *state;
  expect_round_trip(t);
  sample_stage(&t->fabric, WEFT_STAGE_PLACED);
  expect_round_trip(t);
  sample_stage(&t->fabric, WEFT_STAGE_KERNELS);
  expect_round_trip(t);
}

static void empty_fabric_reads_back_without_constants(void** state) {
  test_t* t = *state;
  weft_fabric_deinitialize(&t->fabric);
  weft_fabric_initialize(weft_allocator_system(), &t->fabric);
  expect_round_trip(t);
  assert_int_not_equal(access(t->constants, F_OK), 0);
}

static void names_hold_anything(void** state) {
  test_t* t = *state;
  const char* name = "a \"quoted\" \\ name\n\t\x01\x7f # [b0] \xc3\xa9 \xff /conv1/Conv_output_0";
  t->fabric.model_name = t->fabric.tensor[2].name = t->fabric.kernel[1].name = t->fabric.kernel[1].nodes = name;
  t->fabric.kernel[0].buffer[0].name = t->fabric.output[0].name = "";
  expect_round_trip(t);
  weft_fabric_t back;
  expect_ok(weft_fabric_read(weft_allocator_system(), t->path, &back));
  assert_string_equal(back.kernel[1].nodes, name);
  assert_string_equal(back.tensor[2].name, name);
  weft_fabric_deinitialize(&back);
}

static void numbers_read_back_exactly(void** state) {
  test_t* t = *state;
  const double values[] = {0.1, -0.0, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, INFINITY, -INFINITY, NAN};
  t->fabric.seed = UINT64_MAX;
  weft_operation_t* operation = &t->fabric.kernel[0].operation[0];
  weft_buffer_t* buffer = &t->fabric.kernel[0].buffer[0];
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    operation->immediate[1] = values[i];
    buffer->has_fill = true;
    buffer->fill = values[i];
    expect_round_trip(t);
    weft_fabric_t back;
    expect_ok(weft_fabric_read(weft_allocator_system(), t->path, &back));
    double read = back.kernel[0].operation[0].immediate[1], fill = back.kernel[0].buffer[0].fill;
    if (isnan(values[i]))
      assert_true(isnan(read) && isnan(fill));
    else
      assert_true(memcmp(&read, &values[i], sizeof(read)) == 0 && memcmp(&fill, &values[i], sizeof(fill)) == 0);
    weft_fabric_deinitialize(&back);
  }
}

// Random index maps, views and tile lists in the sample's frame.
static void random_fabrics_read_back(void** state) {
  test_t* t = *state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 11);
  for (int32_t round = 0; round < 40; ++round) {
    weft_kernel_t* kernel = &t->fabric.kernel[0];
    for (int32_t d = 0; d < 2; ++d) {
      kernel->buffer[0].row[0].coefficient[d] = (int32_t)weft_rng_below(&rng, 9) - 4;
      kernel->buffer[0].row[1].coefficient[d] = (int32_t)weft_rng_below(&rng, 3) - 1;
      kernel->buffer[0].row[d].offset = (int64_t)weft_rng_below(&rng, 7) - 3;
    }
    weft_view_t* view = &kernel->buffer[0].piece[0].view;
    for (int32_t j = 0; j < view->factor_count; ++j) {
      view->factor[j].dim = (int32_t)weft_rng_below(&rng, 3) - 1;
      view->factor[j].step = (int64_t)weft_rng_below(&rng, 11) - 5;
      view->factor[j].lo = (int64_t)weft_rng_below(&rng, (uint64_t)view->factor[j].extent);
      view->offset[j] = (int64_t)weft_rng_below(&rng, 11) - 5;
    }
    for (int32_t i = 0; i < SAMPLE_TILES; ++i)
      kernel->tile[i] = i && weft_rng_below(&rng, 2) ? kernel->tile[i - 1] + 1 : 10 + (int32_t)weft_rng_below(&rng, 20);
    if (weft_rng_below(&rng, 2)) kernel->tile[5] = kernel->tile[4] - 1;
    weft_stream_t* stream = &t->fabric.stream[SAMPLE_Y_TO_SUM];
    for (int32_t i = 0; i < stream->sink_count; ++i) stream->sink[i].elements = 3 + (int64_t)weft_rng_below(&rng, 2);
    weft_router_entry_t* entry = &stream->entry[weft_rng_below(&rng, (uint64_t)stream->entry_count)];
    entry->outputs = (uint16_t)weft_rng_below(&rng, 1u << WEFT_DIRECTION_COUNT);
    entry->output_colour[weft_rng_below(&rng, WEFT_DIRECTION_COUNT)] = (uint8_t)weft_rng_below(&rng, WEFT_MAX_COLOURS);
    expect_round_trip(t);
  }
}

// Not by weft_file_write, which waits for the disk each time.
static void put_file(const char* path, const char* text, size_t size) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void read_text(test_t* t, const char* text, const char* part) {
  weft_fabric_t back;
  put_file(t->path, text, strlen(text));
  expect_failure(weft_fabric_read(weft_allocator_system(), t->path, &back), part);
}

// Replaces the first `from` of the sample's text.
static void expect_refused(test_t* t, const char* from, const char* to, const char* part) {
  char* text = print(&t->fabric);
  char* at = strstr(text, from);
  if (!at) fail_msg("the text has no '%s'", from);
  char* changed = malloc(strlen(text) + strlen(to) + 1);
  sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  read_text(t, changed, part);
  free(changed);
  free(text);
}

static void errors_name_the_line_and_what_was_expected(void** state) {
  test_t* t = *state;
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  expect_refused(t, "weft.fabric 1", "ELF", "net.fabric:1: expected 'weft.fabric', found 'ELF'");
  expect_refused(t, "weft.fabric 1", "weft.fabric 2", "net.fabric:1: format version 2, but this weft reads version 1");
  expect_refused(t, "stage routed", "stage done", ":2: expected a stage (kernels, placed, routed), found 'done'");
  expect_refused(t, "seed 7", "seed -7", ":3: expected a seed, found '-7'");
  expect_refused(t, "seed 7", "seed 99999999999999999999", ":3: expected a seed");
  expect_refused(t, "machine 0", "machine g", ":5: expected a digest of 64 hex digits");
  expect_refused(t, "\"x\" input", "\"x", ":10: a tensor's name is not closed");
  expect_refused(t, "\"x\" input", "\"\\y\" input", ":10: expected \\\", \\\\ or \\xNN");
  expect_refused(t, "\"x\" input", "\"\\x00\" input", ":10: expected \\\", \\\\ or \\xNN");
  expect_refused(t, "f32 [4, 6]", "f31 [4, 6]", ":10: 'f31' is no element type");
  expect_refused(t, "[4, 6]", "[4, 6, 1, 1, 1, 1, 1, 1, 1]", "more than 8 dimensions");
  expect_refused(t, "tensors 4", "tensors 2000000000", ":9: 2000000000 tensors, but the rest of the file has room for");
  expect_refused(t, "tensor 1", "tensor 2", ":11: expected tensor in 1..1, found '2'");
  expect_refused(t, "= mul f32", "= mult f32", "'mult' is no operation");
  expect_refused(t, "(b0, 2)", "(b9, 2)", "expected a buffer in 0..2, found '9");
  expect_refused(t, "over [d0, d1]", "over [d0, d2]", "expected an iteration dimension in 0..1, found '2]'");
  expect_refused(t, "chosen 0", "chosen 1", "expected an alternative in 0..0, found '1'");
  expect_refused(t, "tiles [6..8", "tiles [6..2000000000", "ranges of more than");
  expect_refused(t, "tiles [6..8", "tiles [6..9", "more than the 6 tiles of the chosen alternative");
  expect_refused(t, "tiles [6..8", "tiles [6..7", "5 tiles, but the chosen alternative has 6");
  expect_refused(t, "sources [0..5: 4", "sources [0..5", "expected ':'");
  expect_refused(t, "[W] ->", "[X] ->", "expected a direction (N, E, S, W, RAMP");
  expect_refused(t, "-> [E 0", "-> [E 64", "expected a colour in 0..63, found '64");
  expect_refused(t, "grid 2 3", "grid 70000 70000", "a grid of 70000 x 70000 tiles is larger than any wafer");
  expect_refused(t, "grid 2 3", "grid 3 2", "the parts of an axis make 2 tiles, the grid has 3");
  char* text = print(&t->fabric);
  text = realloc(text, strlen(text) + 6);
  read_text(t, strcat(text, "more\n"), "expected the end of the file, found 'more'");
  free(text);
}

static void constants_are_bound_by_digest(void** state) {
  test_t* t = *state;
  weft_fabric_t back;
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  expect_refused(t, "at 0", "at 8", "24 bytes at offset 8 are not an aligned part of the 24 bytes");
  expect_refused(t, "at 0", "at 3", "are not an aligned part");
  expect_refused(t, "constants 24", "constants 25", "net.fabric.bin' has 24 bytes");
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  uint8_t bytes[24];
  memcpy(bytes, t->fabric.tensor[1].data, sizeof(bytes));
  bytes[5] ^= 1;
  expect_ok(weft_file_write(weft_allocator_system(), t->constants, bytes, sizeof(bytes)));
  expect_failure(weft_fabric_read(weft_allocator_system(), t->path, &back), "constant 'c': the digest of its bytes in");
  unlink(t->constants);
  expect_failure(weft_fabric_read(weft_allocator_system(), t->path, &back), "net.fabric.bin'");
}

static void constants_of_any_size_are_aligned(void** state) {
  test_t* t = *state;
  static const uint8_t bytes[5] = {1, 2, 3, 4, 5};
  weft_tensor_t* tensor = SAMPLE_NEW(&t->fabric, 6, weft_tensor_t);
  memcpy(tensor, t->fabric.tensor, 4 * sizeof(*tensor));
  tensor[4] = (weft_tensor_t){.name = "odd",
                              .kind = WEFT_TENSOR_CONSTANT,
                              .dtype = WEFT_DTYPE_U8,
                              .shape = {.rank = 1, .extent = {5}},
                              .data = bytes};
  tensor[5] = tensor[1];
  t->fabric.tensor = tensor;
  t->fabric.tensor_count = 6;
  expect_round_trip(t);
  weft_mapping_t file;
  expect_ok(weft_file_map(t->constants, &file));
  assert_int_equal(file.size, 24 + 8 + 24);
  assert_memory_equal(file.data + 24, bytes, 5);
  assert_memory_equal(file.data + 32, tensor[5].data, 24);
  weft_file_unmap(&file);
}

// Truncated and mutated texts: refused, or read as another valid fabric; never a crash (the sanitizers watch).
static void broken_texts_never_crash(void** state) {
  test_t* t = *state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  char* text = print(&t->fabric);
  size_t size = strlen(text), refused = 0;
  char* changed = malloc(size);
  static const char marks[] = "0123456789 []\"\\-.:@#\nabdx,*";
  for (int32_t round = 0; round < 3000; ++round) {
    memcpy(changed, text, size);
    size_t length = round % 3 ? size : (size_t)weft_rng_below(&rng, size);
    for (uint64_t n = weft_rng_below(&rng, 4); n > 0 && length; --n) {
      char* at = &changed[weft_rng_below(&rng, length)];
      *at = weft_rng_below(&rng, 8) ? marks[weft_rng_below(&rng, sizeof(marks) - 1)] : (char)weft_rng_next(&rng);
    }
    put_file(t->path, changed, length);
    weft_fabric_t back;
    if (weft_status_consume(weft_fabric_read(weft_allocator_system(), t->path, &back))) {
      free(print(&back));
      weft_fabric_deinitialize(&back);
    } else {
      ++refused;
    }
  }
  assert_true(refused > 1500);
  free(changed);
  free(text);
}

static void memory_may_run_out_anywhere(void** state) {
  test_t* t = *state;
  expect_ok(weft_fabric_write(&t->fabric, weft_allocator_system(), t->path));
  for (uint64_t n = 0;; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    weft_fabric_t back;
    weft_status_t status = weft_fabric_read(weft_allocator_failing(&failing), t->path, &back);
    if (!status) {
      weft_fabric_deinitialize(&back);
      assert_int_equal(failing.live, 0);
      assert_true(n > 3);
      return;
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    assert_int_equal(failing.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      TEST(every_stage_reads_back),        TEST(empty_fabric_reads_back_without_constants),
      TEST(names_hold_anything),           TEST(numbers_read_back_exactly),
      TEST(random_fabrics_read_back),      TEST(errors_name_the_line_and_what_was_expected),
      TEST(constants_are_bound_by_digest), TEST(constants_of_any_size_are_aligned),
      TEST(broken_texts_never_crash),      TEST(memory_may_run_out_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
