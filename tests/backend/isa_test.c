// Instructions through words and text and back; malformed ones are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/isa.h"
#include "base/rng.h"

enum { MOST_WORDS = 256 };

static void ok(weft_status_t status) {
  if (status) print_error("%s\n", weft_status_message(status));
  assert_null(status);
}

static int32_t below(weft_rng_t* rng, int32_t bound) {
  return (int32_t)weft_rng_below(rng, (uint64_t)bound);
}
static int32_t any(weft_rng_t* rng) {
  return (int32_t)(uint32_t)weft_rng_next(rng);
}

static void random_rings(weft_rng_t* rng, weft_instruction_t* i, int32_t operands) {
  if (i->flags & WEFT_ISA_FLAG_REPEAT && i->opcode != WEFT_OPCODE_TENSOR) return;
  if (below(rng, 2)) return;
  i->flags |= WEFT_ISA_FLAG_RING;
  for (int32_t o = 0; o < operands; ++o) {
    bool immediate = i->opcode == WEFT_OPCODE_TENSOR && o && (i->flags >> (o - 1) & 1);
    i->ring[o] = immediate ? (weft_isa_ring_t){0, 1} : (weft_isa_ring_t){any(rng), 1 + below(rng, WEFT_ISA_MAX_DEPTH)};
  }
}

static void random_loops(weft_rng_t* rng, weft_instruction_t* i, int32_t operands) {
  i->loop_count = below(rng, WEFT_ISA_MAX_LOOPS + 1);
  for (int32_t l = 0; l < i->loop_count; ++l) {
    i->loop[l].extent = 1 + below(rng, INT32_MAX);
    for (int32_t o = 0; o < operands; ++o) i->loop[l].stride[o] = o && (i->flags >> (o - 1) & 1) ? 0 : any(rng);
  }
}

static void random_recv(weft_rng_t* rng, weft_instruction_t* i) {
  i->tensor_rank = below(rng, WEFT_ISA_MAX_RANK + 1);
  i->operand_rank = below(rng, WEFT_ISA_MAX_RANK + 1);
  i->level_count = i->tensor_rank ? below(rng, WEFT_ISA_MAX_LEVELS + 1) : 0;
  i->factor_count = below(rng, WEFT_ISA_MAX_FACTORS + 1);
  for (int32_t l = 0; l < i->level_count; ++l) {
    i->level[l].extent = 1 + below(rng, 1000);
    i->level[l].dim = below(rng, i->tensor_rank);
    i->level[l].step = below(rng, 1000);
  }
  for (int32_t d = 0; d < i->tensor_rank; ++d) {
    i->tensor_dim[d].lo = below(rng, 100);
    i->tensor_dim[d].hi = i->tensor_dim[d].lo + below(rng, 100);
    i->tensor_dim[d].stride = below(rng, 100000);
  }
  for (int32_t f = 0; f < i->factor_count; ++f) {
    i->factor[f].extent = 1 + below(rng, 100);
    i->factor[f].lo = below(rng, i->factor[f].extent);
    i->factor[f].hi = i->factor[f].lo + below(rng, i->factor[f].extent - i->factor[f].lo + 1);
    i->factor[f].dim = below(rng, i->operand_rank + 1) - 1;
    i->factor[f].step = any(rng);
  }
  for (int32_t d = 0; d < i->operand_rank; ++d) {
    i->operand_dim[d].offset = any(rng);
    i->operand_dim[d].lo = below(rng, 100) - 50;
    i->operand_dim[d].hi = i->operand_dim[d].lo + below(rng, 100);
    i->operand_dim[d].stride = any(rng);
  }
}

static weft_instruction_t random_instruction(weft_rng_t* rng) {
  static const weft_op_e combiners[] = {WEFT_OP_ADD, WEFT_OP_MUL, WEFT_OP_MAX, WEFT_OP_MIN};
  weft_instruction_t i = {.opcode = (weft_opcode_e)below(rng, WEFT_OPCODE_COUNT)};
  int32_t sources;
  switch (i.opcode) {
  case WEFT_OPCODE_TENSOR:
    i.op = (weft_op_e)below(rng, WEFT_OP_COUNT);
    sources = weft_op_source_count(i.op);
    i.dtype = (weft_dtype_e)below(rng, WEFT_DTYPE_COUNT);
    i.destination_dtype = (weft_dtype_e)below(rng, WEFT_DTYPE_COUNT);
    i.flags = (uint8_t)below(rng, 1 << sources);
    for (int32_t o = 0; o <= sources; ++o) i.base[o] = any(rng);
    if (below(rng, 2)) {
      for (int32_t o = 0; o <= sources; ++o) i.advance[o] = o && i.flags >> (o - 1) & 1 ? 0 : any(rng);
      i.flags |= WEFT_ISA_FLAG_ADVANCE;
    }
    random_rings(rng, &i, 1 + sources);
    random_loops(rng, &i, 1 + sources);
    break;
  case WEFT_OPCODE_SEND:
  case WEFT_OPCODE_RECV:
    i.dtype = (weft_dtype_e)below(rng, WEFT_DTYPE_COUNT);
    i.flags = below(rng, 2) ? WEFT_ISA_FLAG_REPEAT : 0;
    i.colour = below(rng, 100);
    i.base[0] = any(rng);
    i.step_stride = any(rng);
    random_rings(rng, &i, 1);
    if (i.opcode == WEFT_OPCODE_SEND)
      random_loops(rng, &i, 1);
    else
      random_recv(rng, &i);
    break;
  case WEFT_OPCODE_CHAIN:
    i.op = combiners[below(rng, 4)];
    i.dtype = (weft_dtype_e)below(rng, WEFT_DTYPE_COUNT);
    i.colour = below(rng, 100);
    i.out_colour = below(rng, 100) - 1;
    i.base[0] = any(rng);
    random_rings(rng, &i, 1);
    random_loops(rng, &i, 1);
    break;
  case WEFT_OPCODE_WAIT_SEND:
  case WEFT_OPCODE_WAIT_RECV:
  case WEFT_OPCODE_AGAIN:
    i.colour = below(rng, 100);
    break;
  case WEFT_OPCODE_LOOP:
    i.trips = 1 + below(rng, INT32_MAX);
    break;
  default:
    break;
  }
  return i;
}

static void test_words_round_trip(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 1);
  for (int32_t n = 0; n < 5000; ++n) {
    weft_instruction_t i = random_instruction(&rng), decoded;
    uint32_t words[MOST_WORDS];
    size_t count = 0;
    ok(weft_isa_encode(&i, words, MOST_WORDS, &count));
    assert_int_equal(count, weft_isa_length(&i));
    memset(&decoded, 0, sizeof(decoded));
    ok(weft_isa_decode(words, count, &decoded));
    assert_int_equal(decoded.length, count);
    decoded.length = i.length;
    assert_memory_equal(&decoded, &i, sizeof(i));
    // One word less is refused, and so is too small an array.
    assert_false(weft_status_consume(weft_isa_decode(words, count - 1, &decoded)));
    size_t full = 1;
    assert_false(weft_status_consume(weft_isa_encode(&i, words, count, &full)));
    assert_int_equal(full, 1);
  }
}

// Each word behind the header, but for RECV's counts, is a field of its own, and is where it is said to be.
static void test_words_have_places(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 23);
  for (int32_t round = 0; round < 2000; ++round) {
    weft_instruction_t i = random_instruction(&rng);
    uint32_t words[MOST_WORDS];
    size_t count = 0;
    ok(weft_isa_encode(&i, words, MOST_WORDS, &count));
    for (int32_t w = 0; w < (int32_t)count; ++w) {
      int32_t offset = weft_isa_word_offset(&i, w), value;
      bool packed = w < 2 || (i.opcode == WEFT_OPCODE_RECV && w == 5);
      assert_int_equal(offset < 0, packed);
      if (packed) continue;
      memcpy(&value, (const uint8_t*)&i + offset, sizeof(value));
      assert_int_equal((uint32_t)value, words[w]);
    }
    assert_int_equal(weft_isa_word_offset(&i, (int32_t)count), -1);
    assert_int_equal(weft_isa_word_offset(&i, -1), -1);
  }
}

static void test_text_round_trip(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  weft_rng_t rng;
  weft_rng_seed(&rng, 2);
  for (int32_t n = 0; n < 200; ++n) {
    static uint32_t words[20 * MOST_WORDS];
    static int32_t parameter_at[20 * MOST_WORDS];
    size_t count = 0;
    int32_t parameters = 0;
    for (int32_t k = below(&rng, 20); k >= 0; --k) {
      weft_instruction_t i = random_instruction(&rng);
      size_t first = count;
      ok(weft_isa_encode(&i, words, 20 * MOST_WORDS, &count));
      for (size_t w = first; w < count; ++w) {
        bool counts = i.opcode == WEFT_OPCODE_RECV && w == first + 5;
        parameter_at[w] = w >= first + 2 && !counts && below(&rng, 4) == 0 ? parameters++ : -1;
      }
    }
    weft_text_t text;
    weft_text_initialize(allocator, &text);
    ok(weft_isa_disassemble(words, count, parameter_at, &text));
    uint32_t* again = NULL;
    int32_t* parameters_again = NULL;
    size_t count_again = 0;
    ok(weft_isa_assemble(allocator, text.data, &again, &count_again, &parameters_again));
    assert_int_equal(count_again, count);
    assert_memory_equal(again, words, count * sizeof(*words));
    assert_memory_equal(parameters_again, parameter_at, count * sizeof(*parameter_at));
    weft_allocator_free(allocator, again);
    weft_allocator_free(allocator, parameters_again);
    weft_text_deinitialize(&text);
  }
}

static void test_random_words_never_crash(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  int32_t accepted = 0;
  for (int32_t n = 0; n < 20000; ++n) {
    weft_instruction_t i = random_instruction(&rng), decoded;
    uint32_t words[MOST_WORDS], again[MOST_WORDS];
    size_t count = 0, count_again = 0;
    ok(weft_isa_encode(&i, words, MOST_WORDS, &count));
    for (int32_t flips = 1 + below(&rng, 3); flips > 0; --flips)
      words[weft_rng_below(&rng, count)] ^= UINT32_C(1) << below(&rng, 32);
    // In memory of exactly this size, so that a read beyond it is found.
    uint32_t* exact = test_malloc(count * sizeof(*exact));
    memcpy(exact, words, count * sizeof(*exact));
    weft_status_t status = weft_isa_decode(exact, count, &decoded);
    if (!status) {
      // What is accepted says the same when it is encoded again.
      ok(weft_isa_encode(&decoded, again, MOST_WORDS, &count_again));
      assert_int_equal(count_again, decoded.length);
      assert_memory_equal(again, exact, count_again * sizeof(*again));
      ++accepted;
    } else {
      assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
      weft_status_free(status);
    }
    test_free(exact);
  }
  assert_in_range(accepted, 1, 19999);
}

static void refuse(weft_instruction_t instruction, const char* why) {
  uint32_t words[MOST_WORDS];
  size_t count = 0;
  weft_status_t status = weft_isa_encode(&instruction, words, MOST_WORDS, &count);
  assert_non_null(status);
  assert_non_null(strstr(weft_status_message(status), why));
  weft_status_free(status);
}

static void test_invalid_instructions(void** state) {
  (void)state;
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_COUNT}, "opcode");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_SEND, .colour = -1}, "negative");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_CHAIN, .op = WEFT_OP_SUB}, "combiner");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_HALT, .dtype = WEFT_DTYPE_F16}, "type");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR, .op = WEFT_OP_NEG, .flags = 2}, "flag");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR, .loop_count = 13}, "loops");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_SEND, .loop_count = 1}, "extent");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_SEND, .flags = WEFT_ISA_FLAG_ADVANCE}, "flag");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_LOOP}, "trip");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR,
                              .op = WEFT_OP_NEG,
                              .flags = WEFT_ISA_FLAG_ADVANCE | WEFT_ISA_FLAG_IMMEDIATE0,
                              .advance = {0, 4}},
         "immediate");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_AGAIN, .colour = -1}, "negative");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_AGAIN, .flags = WEFT_ISA_FLAG_RING}, "flag");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_RECV, .flags = WEFT_ISA_FLAG_RING}, "depth");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_CHAIN,
                              .op = WEFT_OP_ADD,
                              .flags = WEFT_ISA_FLAG_RING,
                              .ring[0] = {8, WEFT_ISA_MAX_DEPTH + 1}},
         "depth");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_SEND,
                              .flags = WEFT_ISA_FLAG_RING | WEFT_ISA_FLAG_REPEAT,
                              .ring[0] = {8, 2}},
         "repeats");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR,
                              .op = WEFT_OP_NEG,
                              .flags = WEFT_ISA_FLAG_RING | WEFT_ISA_FLAG_IMMEDIATE0,
                              .ring = {{8, 2}, {8, 2}}},
         "immediate");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_RECV, .level_count = 1, .level[0] = {2, 0, 1}}, "dimension");
  refuse((weft_instruction_t){.opcode = WEFT_OPCODE_RECV, .factor_count = 1, .factor[0] = {4, 0, 5, -1, 0}}, "factor");
}

static void check_text(const weft_instruction_t* instruction, const char* expected) {
  uint32_t words[MOST_WORDS];
  size_t count = 0;
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  ok(weft_isa_encode(instruction, words, MOST_WORDS, &count));
  ok(weft_isa_disassemble(words, count, NULL, &text));
  assert_string_equal(text.data, expected);
  weft_text_deinitialize(&text);
}

static void test_text_forms(void** state) {
  (void)state;
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR,
                                   .op = WEFT_OP_MLA,
                                   .dtype = WEFT_DTYPE_F16,
                                   .base = {64, 128, 0x3fc00000},
                                   .flags = WEFT_ISA_FLAG_IMMEDIATE1,
                                   .loop_count = 1,
                                   .loop[0] = {56, {4, 2, 0}}},
             "mla.f16.f32 [64], [128], #1.5 loop(56 4 2 0)\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_CHAIN,
                                   .op = WEFT_OP_ADD,
                                   .colour = 3,
                                   .out_colour = -1,
                                   .base = {16},
                                   .loop_count = 1,
                                   .loop[0] = {8, {4}}},
             "chain.add.f32 c3, c-1, [16] loop(8 4)\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_RECV,
                                   .dtype = WEFT_DTYPE_I8,
                                   .colour = 2,
                                   .base = {40},
                                   .level_count = 1,
                                   .tensor_rank = 1,
                                   .factor_count = 1,
                                   .operand_rank = 1,
                                   .level[0] = {16, 0, 1},
                                   .tensor_dim[0] = {0, 16, 1},
                                   .factor[0] = {16, 0, 16, 0, 1},
                                   .operand_dim[0] = {1, 4, 9, 1}},
             "recv.i8 c2, [40], 0 walk(16 0 1) tensor(0 16 1) factor(16 0 16 0 1) operand(1 4 9 1)\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_WAIT_RECV, .colour = 7}, "wait.recv c7\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_AGAIN, .colour = 7}, "again.recv c7\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR,
                                   .op = WEFT_OP_ADD,
                                   .base = {64, 128, 256},
                                   .flags = WEFT_ISA_FLAG_RING,
                                   .ring = {{32, 2}, {0, 1}, {-64, 3}},
                                   .loop_count = 1,
                                   .loop[0] = {8, {4, 4, 4}}},
             "add.f32.f32 [64], [128], [256] ring(32 2) ring(0 1) ring(-64 3) loop(8 4 4 4)\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_SEND,
                                   .colour = 1,
                                   .base = {64},
                                   .flags = WEFT_ISA_FLAG_RING,
                                   .ring = {{32, 2}},
                                   .loop_count = 1,
                                   .loop[0] = {8, {4}}},
             "send.f32 c1, [64], 0 ring(32 2) loop(8 4)\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_LOOP, .trips = 20}, "loop 20\n");
  check_text(&(weft_instruction_t){.opcode = WEFT_OPCODE_TENSOR,
                                   .op = WEFT_OP_NEG,
                                   .base = {64, 128},
                                   .flags = WEFT_ISA_FLAG_ADVANCE,
                                   .advance = {-8, 0},
                                   .loop_count = 1,
                                   .loop[0] = {2, {4, 4}}},
             "neg.f32.f32 [64], [128] advance(-8 0) loop(2 4 4)\n");
}

static void refuse_text(const char* text, const char* why) {
  uint32_t* words;
  int32_t* parameter_at;
  size_t count;
  weft_status_t status = weft_isa_assemble(weft_allocator_system(), text, &words, &count, &parameter_at);
  assert_non_null(status);
  if (!strstr(weft_status_message(status), why)) print_error("%s\n", weft_status_message(status));
  assert_non_null(strstr(weft_status_message(status), why));
  assert_null(words);
  weft_status_free(status);
}

static void test_text_errors(void** state) {
  (void)state;
  refuse_text("halt\nfrobnicate.f32.f32 [0]\n", "line 2: expected an instruction");
  refuse_text("wait.send 3\n", "expected c at '3'");
  refuse_text("send.f32 c1, [99999999999], 0\n", "32-bit number");
  refuse_text("halt halt\n", "end of the line");
  refuse_text("neg.f32.f32 [0], [4] loop(1 2 3 4)\n", "expected )");
  refuse_text("chain.sub.f32 c0, c1, [0]\n", "combiner");
  refuse_text("add.f32.f32 [0], [4], [8] ring(8 2)\n", "a ring for each address");
  refuse_text("send.f32 c0, [0], 0 ring(8 2) ring(8 2)\n", "more than 1 times ring(");
  refuse_text("send.f32 c1, [%-1=0], 0\n", "parameter");
}

static void test_comments_and_bare_parameters(void** state) {
  (void)state;
  weft_allocator_t allocator = weft_allocator_system();
  uint32_t* words;
  int32_t* parameter_at;
  size_t count;
  ok(weft_isa_assemble(allocator, "; nothing\n\n  wait.send c%4 ; here\nhalt", &words, &count, &parameter_at));
  assert_int_equal(count, 5);
  assert_int_equal(parameter_at[2], 4);
  assert_int_equal(words[2], 0);
  assert_int_equal(parameter_at[0], -1);
  weft_allocator_free(allocator, words);
  weft_allocator_free(allocator, parameter_at);
}

static void test_out_of_memory(void** state) {
  (void)state;
  weft_status_t status = weft_ok();
  for (uint64_t n = 0; n < 100; ++n) {
    weft_failing_allocator_t failing = {.countdown = n};
    weft_allocator_t allocator = weft_allocator_failing(&failing);
    uint32_t* words;
    int32_t* parameter_at;
    size_t count;
    status = weft_isa_assemble(allocator, "wait.send c1\nsend.f32 c1, [0], 0 loop(4 4)\nhalt\n", &words, &count,
                               &parameter_at);
    weft_allocator_free(allocator, words);
    weft_allocator_free(allocator, parameter_at);
    assert_int_equal(failing.live, 0);
    if (!status) {
      assert_true(n > 0);
      return;
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
  }
  fail();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words_round_trip),     cmocka_unit_test(test_words_have_places),
      cmocka_unit_test(test_text_round_trip),      cmocka_unit_test(test_random_words_never_crash),
      cmocka_unit_test(test_invalid_instructions), cmocka_unit_test(test_text_forms),
      cmocka_unit_test(test_text_errors),          cmocka_unit_test(test_comments_and_bare_parameters),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
