// Images on disk: what is written is what is mapped; bytes that were tampered with are refused or harmless.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/backend/network.h"

typedef struct fixture_t {
  network_t net;
  weft_arena_t arena;
  weft_image_t image;
  char folder[64], path[96], other[96];
} fixture_t;

static void fixture_create(uint64_t seed, fixture_t* f) {
  network_create(seed, &f->net);
  weft_arena_initialize(mesh_allocator(), &f->arena);
  mesh_ok(weft_backend_emit(&f->net.fabric, &f->net.machine, &f->net.defects, &f->arena, NULL, &f->image));
  snprintf(f->folder, sizeof(f->folder), "/tmp/weft-image-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof(f->path), "%s/a.wafer", f->folder);
  snprintf(f->other, sizeof(f->other), "%s/b.wafer", f->folder);
}

static void fixture_destroy(fixture_t* f) {
  unlink(f->path);
  unlink(f->other);
  rmdir(f->folder);
  weft_arena_deinitialize(&f->arena);
  network_destroy(&f->net);
}

static void check_same(const weft_image_t* a, const weft_image_t* b) {
  assert_memory_equal(&a->header, &b->header, sizeof(a->header));
  assert_int_equal(a->machine_xml_size, b->machine_xml_size);
  assert_memory_equal(a->machine_xml, b->machine_xml, a->machine_xml_size);
  assert_int_equal(a->defects_text_size, b->defects_text_size);
#define X(field, type, section)                                                                                        \
  assert_int_equal(a->field##_count, b->field##_count);                                                                \
  if (a->field##_count) assert_memory_equal(a->field, b->field, a->field##_count * sizeof(type));
  WEFT_IMAGE_TABLES(X)
#undef X
}

static void test_round_trip(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fixture_t f;
    weft_image_t mapped;
    fixture_create(seed, &f);
    mesh_ok(weft_image_write(mesh_allocator(), &f.image, f.path));
    mesh_ok(weft_image_map(mesh_allocator(), f.path, &mapped));
    check_same(&f.image, &mapped);
    for (size_t t = 0; t < mapped.tiles_count; ++t)
      assert_true(mapped.tiles[t].tile >= 0 || t + 1 == mapped.tiles_count);
    // Writing what was mapped gives the same file.
    weft_mapping_t a, b;
    mesh_ok(weft_image_write(mesh_allocator(), &mapped, f.other));
    mesh_ok(weft_file_map(f.path, &a));
    mesh_ok(weft_file_map(f.other, &b));
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    weft_file_unmap(&a);
    weft_file_unmap(&b);
    weft_image_unmap(&mapped);
    fixture_destroy(&f);
  }
}

// Maps changed bytes: an error of the input, or an image whose programs can be read.
static bool try_bytes(const fixture_t* f, const uint8_t* bytes, size_t size) {
  weft_image_t image;
  mesh_ok(weft_file_write(mesh_allocator(), f->other, bytes, size));
  weft_status_t status = weft_image_map(mesh_allocator(), f->other, &image);
  if (status) {
    assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
    assert_non_null(strstr(weft_status_message(status), "b.wafer"));
    weft_status_free(status);
    return false;
  }
  weft_text_t text;
  weft_text_initialize(mesh_allocator(), &text);
  mesh_ok(weft_backend_inspect(&image, INT32_MIN, NULL, NULL, &text));
  for (size_t t = 0; t < image.tiles_count; ++t)
    mesh_ok(weft_backend_inspect(&image, image.tiles[t].tile, NULL, NULL, &text));
  weft_text_deinitialize(&text);
  weft_image_unmap(&image);
  return true;
}

static void test_tampered_bytes(void** state) {
  (void)state;
  fixture_t f;
  weft_mapping_t original;
  weft_rng_t rng;
  weft_rng_seed(&rng, 1);
  fixture_create(0, &f);
  mesh_ok(weft_image_write(mesh_allocator(), &f.image, f.path));
  mesh_ok(weft_file_map(f.path, &original));
  uint8_t* bytes = test_malloc(original.size);
  memcpy(bytes, original.data, original.size);
  assert_true(try_bytes(&f, bytes, original.size));
  size_t refused = 0, tried = 0;
  // Every byte of the ELF header, one in three of the rest.
  for (size_t next = 0; next < original.size; next += next < 64 ? 1 : 3) {
    size_t at = next < 64 ? next : next + weft_rng_below(&rng, original.size - next < 3 ? original.size - next : 3);
    uint8_t before = bytes[at];
    ++tried;
    bytes[at] ^= (uint8_t)(1 + weft_rng_below(&rng, 255));
    refused += !try_bytes(&f, bytes, original.size);
    bytes[at] = before;
  }
  assert_in_range(refused, tried / 4, tried - 1);
  for (size_t size = 0; size < original.size; size += 1 + size / 16) assert_false(try_bytes(&f, bytes, size));
  // Whole words: counts and offsets become huge.
  for (size_t at = 0; at + 8 <= original.size; at += 24) {
    memset(bytes + at, weft_rng_below(&rng, 2) ? 0xff : 0x7f, 8);
    try_bytes(&f, bytes, original.size);
    memcpy(bytes + at, original.data + at, 8);
  }
  test_free(bytes);
  weft_file_unmap(&original);
  fixture_destroy(&f);
}

// One change to the tables, written and refused with a reason.
#define REFUSED(f, type, field, change, why)                                                                           \
  do {                                                                                                                 \
    weft_image_t changed = (f).image, mapped;                                                                          \
    size_t size = changed.field##_count * sizeof(*changed.field);                                                      \
    type* field = test_malloc(size);                                                                                   \
    memcpy(field, changed.field, size);                                                                                \
    change;                                                                                                            \
    changed.field = field;                                                                                             \
    mesh_ok(weft_image_write(mesh_allocator(), &changed, (f).path));                                                   \
    weft_status_t status = weft_image_map(mesh_allocator(), (f).path, &mapped);                                        \
    assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);                                             \
    if (!strstr(weft_status_message(status), why)) fail_msg("%s", weft_status_message(status));                        \
    weft_status_free(status);                                                                                          \
    test_free(field);                                                                                                  \
  } while (0)

static void test_refusals_say_why(void** state) {
  (void)state;
  fixture_t f;
  uint64_t seed = 0;
  for (fixture_create(seed, &f); f.image.params_count < 8; fixture_create(++seed, &f)) fixture_destroy(&f);
  size_t last = f.image.tiles_count - 1;
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].tile = 1000, "not on a mesh");
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].kernel = 9, "kernel 9 of 3");
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].program = 99, "program 99");
  REFUSED(f, weft_image_tile_t, tiles, tiles[1].tile = tiles[0].tile, "out of order");
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].memory_bytes = UINT32_MAX, "bytes of");
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].params = UINT32_MAX, "parameters");
  REFUSED(f, weft_image_tile_t, tiles, tiles[0].tile = WEFT_HOST_TILE, "host");
  REFUSED(f, weft_image_tile_t, tiles, tiles[last].segment_count = UINT32_MAX, "segments");
  REFUSED(f, weft_image_program_t, programs, programs[0].code_words = UINT32_MAX, "code");
  REFUSED(f, uint32_t, code, code[0] = 0xff, "opcode");
  REFUSED(f, uint32_t, code, code[1] = 0, "length");
  REFUSED(f, weft_image_segment_t, segments, segments[0].offset = UINT64_MAX, ".weft.consts");
  REFUSED(f, weft_image_segment_t, segments, segments[0].address = 1 << 30, "memory");
  REFUSED(f, weft_image_route_t, routes, routes[0].input[0] = 9, "direction");
  REFUSED(f, weft_image_route_t, routes, routes[0].colour = 64, "colour 64");
  REFUSED(f, weft_image_route_t, routes, routes[1].tile = 0, "out of order");
  REFUSED(f, weft_image_kernel_t, kernels, kernels[1].tiles = 100000, "tiles");
  REFUSED(f, weft_image_kernel_t, kernels, kernels[1].name = 100000, "string");
  REFUSED(f, weft_image_io_t, io, io[1].address = 0, "out of order");
  REFUSED(f, weft_image_io_t, io, io[0].extent[0] = INT64_MAX, "extent");
  REFUSED(f, weft_image_io_t, io, io[0].step_stride += 8, "stride");
  REFUSED(f, weft_image_host_colour_t, host_colours, host_colours[0].port = -1, "port");
  REFUSED(f, weft_image_stream_t, streams, streams[0].sink_tile = -2, "tile -2");
  REFUSED(f, uint32_t, nodes, nodes[0] = UINT32_MAX, "tile");
  REFUSED(f, char, strings, strings[f.image.strings_count - 1] = 'x', "end");
  REFUSED(f, uint32_t, params, for (size_t p = 0; p < f.image.params_count; ++p) params[p] = UINT32_MAX, "");
  f.image.header.version = 2;
  REFUSED(f, weft_image_tile_t, tiles, (void)tiles, "version 2");
  f.image.header.version = WEFT_IMAGE_VERSION;
  f.image.header.machine.bytes[0] ^= 1;
  REFUSED(f, weft_image_tile_t, tiles, (void)tiles, "machine's digest");
  f.image.header.machine.bytes[0] ^= 1;
  f.image.header.defects.bytes[0] ^= 1;
  REFUSED(f, weft_image_tile_t, tiles, (void)tiles, "defect map's digest");
  fixture_destroy(&f);
}

static void test_inspection_assembles(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fixture_t f;
    weft_text_t text;
    uint32_t* words;
    int32_t* parameter_at;
    size_t count;
    fixture_create(seed, &f);
    weft_text_initialize(mesh_allocator(), &text);
    mesh_ok(weft_backend_inspect(&f.image, INT32_MIN, NULL, NULL, &text));
    mesh_ok(weft_isa_assemble(mesh_allocator(), text.data, &words, &count, &parameter_at));
    assert_int_equal(count, f.image.code_count);
    assert_memory_equal(words, f.image.code, count * sizeof(*words));
    for (size_t p = 0; p < f.image.programs_count; ++p) {
      const weft_image_program_t* program = &f.image.programs[p];
      for (uint32_t k = 0; k < program->patch_count; ++k)
        assert_int_equal(parameter_at[program->code + f.image.patches[program->patches + k]], k);
    }
    weft_allocator_free(mesh_allocator(), words);
    weft_allocator_free(mesh_allocator(), parameter_at);
    weft_text_deinitialize(&text);
    fixture_destroy(&f);
  }
}

static void test_inspection_of_one(void** state) {
  (void)state;
  fixture_t f;
  weft_text_t text;
  fixture_create(3, &f);
  weft_text_initialize(mesh_allocator(), &text);
  mesh_ok(weft_backend_inspect(&f.image, f.image.tiles[0].tile, NULL, NULL, &text));
  assert_non_null(strstr(text.data, "kernel 'contraction', logical tile 0"));
  assert_non_null(strstr(text.data, "mla.f32.f32"));
  assert_null(strchr(text.data, '%'));
  text.count = 0;
  mesh_ok(weft_backend_inspect(&f.image, INT32_MIN, "window", NULL, &text));
  assert_non_null(strstr(text.data, "#-inf"));
  assert_null(strstr(text.data, "mla."));
  text.count = 0;
  mesh_ok(weft_backend_inspect(&f.image, INT32_MIN, NULL, "Y", &text));
  assert_non_null(strstr(text.data, "stream 'Y': window"));
  assert_null(strstr(text.data, "stream 'C'"));
  weft_status_t status = weft_backend_inspect(&f.image, INT32_MIN, "windov", NULL, &text);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_NOT_FOUND);
  weft_status_free(status);
  weft_text_deinitialize(&text);
  fixture_destroy(&f);
}

static void test_missing_file(void** state) {
  (void)state;
  weft_image_t image;
  weft_status_t status = weft_image_map(mesh_allocator(), "/nonexistent.wafer", &image);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_NOT_FOUND);
  weft_status_free(status);
  weft_image_unmap(&image); // harmless
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),        cmocka_unit_test(test_tampered_bytes),
      cmocka_unit_test(test_refusals_say_why),  cmocka_unit_test(test_inspection_assembles),
      cmocka_unit_test(test_inspection_of_one), cmocka_unit_test(test_missing_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
