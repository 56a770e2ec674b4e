#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "machine/fields.h"
#include "machine/machine.h"

static weft_machine_t parse(const char* xml) {
  weft_machine_t machine;
  weft_status_t status = weft_machine_parse(xml, strlen(xml), "test.xml", &machine);
  if (status) fail_msg("%s\n%s", weft_status_message(status), xml);
  return machine;
}

static void print(const weft_machine_t* machine, weft_text_t* text) {
  weft_text_initialize(weft_allocator_system(), text);
  weft_status_t status = weft_machine_print(machine, text);
  if (status) fail_msg("%s", weft_status_message(status));
}

static void test_what_a_file_leaves_out_is_the_default(void** state) {
  (void)state;
  weft_machine_t machine = parse("<machine name='half-speed'>\n"
                                 "  <rates><muladd f16=' 2 '/></rates>\n"
                                 "  <mesh width='5' height='3' diagonals='true'/>\n"
                                 "</machine>\n");
  weft_machine_t expected;
  assert_true(weft_status_consume(weft_machine_load(weft_allocator_system(), "mesh:5x3", &expected)));
  memset(expected.name, 0, sizeof(expected.name));
  strcpy(expected.name, "half-speed");
  expected.diagonal_links = true;
  expected.rate[WEFT_OP_CLASS_MULADD][WEFT_DTYPE_F16] = 2;
  weft_text_t got, wanted;
  print(&machine, &got);
  print(&expected, &wanted);
  assert_string_equal(got.data, wanted.data);
  weft_text_deinitialize(&got);
  weft_text_deinitialize(&wanted);
}

// Draws a machine in which every number differs from the default, in its allowed range.
static weft_machine_t random_machine(weft_rng_t* rng) {
  weft_machine_t machine;
  assert_true(weft_status_consume(weft_machine_load(weft_allocator_system(), "mesh:9x9", &machine)));
  for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
    const weft_machine_field_t* field = &weft_machine_fields[i];
    double value = field->least + (field->greatest - field->least) * weft_rng_unit(rng);
    void* target = (char*)&machine + field->offset;
    if (field->kind == WEFT_MACHINE_KIND_INT32) *(int32_t*)target = (int32_t)value;
    if (field->kind == WEFT_MACHINE_KIND_INT64) *(int64_t*)target = (int64_t)value;
    if (field->kind == WEFT_MACHINE_KIND_REAL) *(double*)target = value;
    if (field->kind == WEFT_MACHINE_KIND_BOOL) *(bool*)target = weft_rng_below(rng, 2);
  }
  for (int t = 0; t < WEFT_MACHINE_TABLE_COUNT; ++t) {
    double* values = (double*)((char*)&machine + weft_machine_tables[t].offset);
    for (int i = 0; i < WEFT_OP_CLASS_COUNT * WEFT_DTYPE_COUNT; ++i) {
      values[i] = weft_machine_tables[t].least + weft_rng_unit(rng) * 100;
    }
  }
  machine.width = 1 + (int32_t)weft_rng_below(rng, 1000);
  machine.height = 1 + (int32_t)weft_rng_below(rng, 1000);
  for (int side = 0; side < 4; ++side) {
    machine.ports_per_side[side] =
        (int32_t)weft_rng_below(rng, (uint64_t)(side % 2 ? machine.height : machine.width)) + (side == 0);
  }
  snprintf(machine.name, sizeof(machine.name), "random:%d", machine.width);
  return machine;
}

static void test_printed_machine_parses_back(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 3);
  for (int round = 0; round < 30; ++round) {
    weft_machine_t machine = random_machine(&rng);
    weft_text_t first, second;
    print(&machine, &first);
    weft_machine_t again = parse(first.data);
    print(&again, &second);
    assert_string_equal(first.data, second.data);
    for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
      static const size_t SIZES[] = {sizeof(int32_t), sizeof(int64_t), sizeof(double), sizeof(bool)};
      size_t offset = weft_machine_fields[i].offset;
      assert_memory_equal((char*)&machine + offset, (char*)&again + offset, SIZES[weft_machine_fields[i].kind]);
    }
    assert_memory_equal(machine.rate, again.rate, sizeof(machine.rate));
    assert_memory_equal(machine.energy.op, again.energy.op, sizeof(machine.energy.op));
    weft_text_deinitialize(&first);
    weft_text_deinitialize(&second);
  }
}

static void test_digest_follows_every_number(void** state) {
  (void)state;
  weft_machine_t machine;
  assert_true(weft_status_consume(weft_machine_load(weft_allocator_system(), "mesh:9x9", &machine)));
  weft_digest_t base, other;
  assert_true(weft_status_consume(weft_machine_digest(&machine, &base)));
  for (int i = 0; i < WEFT_MACHINE_FIELD_COUNT; ++i) {
    weft_machine_t changed = machine;
    *((char*)&changed + weft_machine_fields[i].offset) ^= 1;
    assert_true(weft_status_consume(weft_machine_digest(&changed, &other)));
    assert_int_not_equal(weft_digest_compare(&base, &other), 0);
  }
  assert_true(weft_status_consume(weft_machine_digest(&machine, &other)));
  assert_int_equal(weft_digest_compare(&base, &other), 0);
}

// Every refusal names file and line, and says what was expected.
static void test_messages(void** state) {
  (void)state;
#define MACHINE(body) "<machine name='m'>\n<mesh width='4' height='4'/>\n" body "\n</machine>"
  static const struct {
    const char* xml;
    const char* where;
    const char* expected;
  } CASES[] = {
      {MACHINE("<tile memory='lots'/>"), "m.xml:3:", "whole number from 64"},
      {MACHINE("<tile memory='63'/>"), "m.xml:3:", "from 64 to 1073741824"},
      {MACHINE("\n\n<tile memory='99999999999999999999'/>"), "m.xml:5:", "from 64 to 1073741824"},
      {MACHINE("<tile memroy='64'/>"), "m.xml:3:", "one of memory, issue"},
      {MACHINE("<tyle memory='64'/>"), "m.xml:3:", "one of mesh, tile, router, clock, host, rates, energy"},
      {MACHINE("<tile/>\n<tile/>"), "m.xml:4:", "at most one"},
      {MACHINE("<mesh width='1' height='1'/>"), "m.xml:3:", "at most one"},
      {MACHINE("<tile><move/></tile>"), "m.xml:3:", "expected none"},
      {MACHINE("<router wavelet='64'/>"), "m.xml:3:", "from 32 to 32"},
      {MACHINE("<router colours='65'/>"), "m.xml:3:", "from 1 to 64"},
      {MACHINE("<rates f32='1'/>"), "m.xml:3:", "expected none"},
      {MACHINE("<rates>\n<fma f32='1'/></rates>"), "m.xml:4:", "one of move, simple, muladd, special"},
      {MACHINE("<rates>\n<move f23='1'/></rates>"), "m.xml:4:", "one of f32, f16"},
      {MACHINE("<rates>\n<move f32='0'/></rates>"), "m.xml:4:", "from 1e-06 to 1000000"},
      {MACHINE("<rates>\n<move f32='-1'/></rates>"), "m.xml:4:", "expected a number from"},
      {MACHINE("<rates>\n<move f32='inf'/></rates>"), "m.xml:4:", "expected a number from"},
      {MACHINE("<rates>\n<move f32='NaN'/></rates>"), "m.xml:4:", "expected a number from"},
      {MACHINE("<rates>\n<move f32='0x10'/></rates>"), "m.xml:4:", "expected a number from"},
      {MACHINE("<rates>\n<move f32=''/></rates>"), "m.xml:4:", "expected a number from"},
      {MACHINE("<energy hop='-0.5'/>"), "m.xml:3:", "from 0 to 1000000000"},
      {MACHINE("<host north='5'/>"), "m.xml:3:", "at most one a tile"},
      {MACHINE("<host north='0' east='0' south='0' west='0'/>"), "m.xml:3:", "at least one"},
      {MACHINE("<clock ghz='0'/>"), "m.xml:3:", "from 0.001 to 1000"},
      {MACHINE("some text"), "m.xml:", "text"},
      {"<machine name='m'>\n<mesh width='0' height='4'/>\n</machine>", "m.xml:2:", "from 1 to 65535"},
      {"<machine name='m'>\n<mesh width='65536' height='4'/>\n</machine>", "m.xml:2:", "from 1 to 65535"},
      {"<machine name='m'>\n<mesh width='65535' height='65535'/>\n</machine>", "m.xml:2:", "at most 67108864"},
      {"<machine name='m'>\n<mesh width='4'/>\n</machine>", "m.xml:2:", "height is missing"},
      {"<machine name='m'>\n<mesh width='4' height='4' diagonals='maybe'/>\n</machine>", "m.xml:2:", "true or false"},
      {"<machine name='m'/>", "m.xml:1:", "expected <mesh"},
      {"<machine>\n<mesh width='4' height='4'/></machine>", "m.xml:1:", "expected name"},
      {"<machine name='a b'>\n<mesh width='4' height='4'/></machine>", "m.xml:1:", "letters, digits"},
      {"<machine name='m' colour='red'>\n<mesh width='4' height='4'/></machine>", "m.xml:1:", "one of name"},
      {"<wafer/>", "m.xml:1:", "expected <machine>"},
      {"<machine xmlns='urn:x' name='m'><mesh width='4' height='4'/></machine>", "m.xml:1:", "without a namespace"},
      {"<machine name='m'>\n<mesh\n</machine>", "m.xml:3:", "not well-formed"},
      {"", "m.xml:1:", "not well-formed"},
      {"hello", "m.xml:1:", "not well-formed"},
      {"<?xml version='1.0'?>\n<!DOCTYPE machine [<!ENTITY a 'b'>]>\n<machine name='&a;'/>",
       "m.xml:2:", "document type declaration"},
      {"<!DOCTYPE machine SYSTEM 'http://127.0.0.1/m.dtd'>\n<machine/>", "m.xml:1:", "document type declaration"},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    weft_machine_t machine;
    weft_status_t status = weft_machine_parse(CASES[i].xml, strlen(CASES[i].xml), "m.xml", &machine);
    if (!status) fail_msg("accepted:\n%s", CASES[i].xml);
    const char* message = weft_status_message(status);
    if (strstr(message, CASES[i].where) != message || !strstr(message, CASES[i].expected)) {
      fail_msg("%s\nlacks '%s' or '%s', for:\n%s", message, CASES[i].where, CASES[i].expected, CASES[i].xml);
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
    weft_status_free(status);
  }
}

// Truncated and altered files never crash, and whatever is accepted is within its limits.
static void test_damaged_files(void** state) {
  (void)state;
  weft_machine_t machine;
  assert_true(weft_status_consume(weft_machine_load(weft_allocator_system(), "mesh:9x9", &machine)));
  weft_text_t text;
  print(&machine, &text);
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    size_t size = round % 3 == 0 ? weft_rng_below(&rng, text.count) : text.count;
    char* copy = test_malloc(size + 1); // no terminating zero within reach: the size alone counts
    memcpy(copy, text.data, size);
    if (size == text.count) copy[weft_rng_below(&rng, size)] = (char)(32 + weft_rng_below(&rng, 96));
    weft_machine_t damaged;
    weft_status_t status = weft_machine_parse(copy, size, "damaged.xml", &damaged);
    if (status) {
      ++refused;
      assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
      assert_true(strncmp(weft_status_message(status), "damaged.xml:", 12) == 0);
    } else {
      assert_true(damaged.width > 0 && damaged.height > 0 && damaged.colours > 0);
    }
    weft_status_free(status);
    test_free(copy);
  }
  assert_true(refused > 150);
  weft_text_deinitialize(&text);
}

// A file on disk goes the same way, and its messages carry its path.
static void test_load_from_file(void** state) {
  (void)state;
  weft_machine_t machine;
  weft_status_t status = weft_machine_load(weft_allocator_system(), WEFT_SOURCE_DIR "/machine/default.xml", &machine);
  if (status) assert_non_null(strstr(weft_status_message(status), "machine/default.xml:"));
  // One tile has room for one port a side; the file asks for more.
  assert_non_null(status);
  assert_non_null(strstr(weft_status_message(status), "at most one a tile"));
  weft_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_a_file_leaves_out_is_the_default),
      cmocka_unit_test(test_printed_machine_parses_back),
      cmocka_unit_test(test_digest_follows_every_number),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_damaged_files),
      cmocka_unit_test(test_load_from_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
