#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

static void test_allocations_are_zeroed_aligned_and_apart(void** state) {
  (void)state;
  enum { COUNT = 3000 };
  static uint8_t* blocks[COUNT];
  static size_t sizes[COUNT];
  weft_failing_allocator_t memory = {.countdown = UINT64_MAX};
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_failing(&memory), &arena);
  size_t bytes = 0;
  for (int i = 0; i < COUNT; ++i) {
    sizes[i] = i % 500 == 499 ? 3u << 20 : (size_t)i * 7 % 600; // some larger than any block, some empty
    assert_null(weft_arena_allocate(&arena, sizes[i], 1, (void**)&blocks[i]));
    assert_non_null(blocks[i]);
    assert_int_equal((uintptr_t)blocks[i] % 16, 0);
    for (size_t j = 0; j < sizes[i]; ++j)
      if (blocks[i][j] != 0) fail_msg("not cleared");
    memset(blocks[i], i % 255 + 1, sizes[i]);
    bytes += sizes[i];
    assert_int_equal(arena.bytes, bytes);
  }
  for (int i = 0; i < COUNT; ++i)
    for (size_t j = 0; j < sizes[i]; ++j)
      if (blocks[i][j] != i % 255 + 1) fail_msg("overwritten by another allocation");
  assert_true(memory.live < 40); // many allocations share a block
  weft_arena_deinitialize(&arena);
  assert_int_equal(memory.live, 0);
  assert_int_equal(arena.bytes, 0);
}

static void test_typed(void** state) {
  (void)state;
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  uint64_t* words = NULL;
  assert_null(WEFT_ARENA_NEW(&arena, 5, &words));
  assert_int_equal(arena.bytes, 40);
  words[4] = 1;
  weft_arena_deinitialize(&arena);
}

static void test_text_and_copy(void** state) {
  (void)state;
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  const char* text = NULL;
  char source[] = "kernel";
  assert_null(weft_arena_strdup(&arena, source, &text));
  source[0] = 'K';
  assert_string_equal(text, "kernel");
  assert_null(weft_arena_strdup(&arena, "", &text));
  assert_string_equal(text, "");
  assert_null(weft_arena_printf(&arena, &text, "%s_%d", "conv", 42));
  assert_string_equal(text, "conv_42");
  assert_null(weft_arena_printf(&arena, &text, "%05000d", 1)); // longer than the first block
  assert_int_equal(strlen(text), 5000);
  uint16_t data[3] = {1, 2, 3}, *copy = NULL;
  assert_null(weft_arena_copy(&arena, data, sizeof(data), (void**)&copy));
  assert_memory_equal(copy, data, sizeof(data));
  assert_ptr_not_equal(copy, data);
  assert_null(weft_arena_copy(&arena, NULL, 0, (void**)&copy));
  weft_arena_deinitialize(&arena);
}

static void test_sizes_are_checked(void** state) {
  (void)state;
  const size_t cases[][2] = {
      {SIZE_MAX, 2}, {SIZE_MAX, 1}, {SIZE_MAX - 20, 1}, {(size_t)1 << 32, (size_t)1 << 32}, {PTRDIFF_MAX, 1}};
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    void* pointer = &arena;
    weft_status_t status = weft_arena_allocate(&arena, cases[i][0], cases[i][1], &pointer);
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    assert_null(pointer);
    weft_status_free(status);
  }
  assert_int_equal(arena.bytes, 0);
  weft_arena_deinitialize(&arena);
}

static weft_status_t fill(weft_arena_t* arena) {
  const char* text;
  void* pointer;
  for (int i = 0; i < 50; ++i) {
    WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &text, "%0500d", i));
    WEFT_RETURN_IF_ERROR(weft_arena_strdup(arena, "text", &text));
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, 2000, 9, &pointer));
  }
  return weft_ok();
}

static void test_every_allocation_may_fail(void** state) {
  (void)state;
  uint64_t failures = 0;
  for (bool done = false; !done; ++failures) {
    weft_failing_allocator_t memory = {.countdown = failures};
    weft_arena_t arena;
    weft_arena_initialize(weft_allocator_failing(&memory), &arena);
    weft_status_t status = fill(&arena);
    done = weft_is_ok(status);
    if (!done) assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
    weft_arena_deinitialize(&arena);
    assert_int_equal(memory.live, 0);
  }
  assert_true(failures > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allocations_are_zeroed_aligned_and_apart),
      cmocka_unit_test(test_typed),
      cmocka_unit_test(test_text_and_copy),
      cmocka_unit_test(test_sizes_are_checked),
      cmocka_unit_test(test_every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
