// Emitted images compute what the fabric says, whatever the split.
#include "ir/fabric/depths.h"
#include "tests/backend/network.h"

static void fill_input(weft_rng_t* rng, float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = (float)((int64_t)weft_rng_below(rng, 7) - 3);
}

static void check_floats(const float* found, const float* expected, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (found[i] != expected[i]) fail_msg("element %d is %g, not %g", (int)i, (double)found[i], (double)expected[i]);
}

static void run_network(const network_t* net, const weft_image_t* image, uint64_t seed, bool eager) {
  enum { STEPS = 7 };
  mesh_t mesh;
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  mesh_create(&net->fabric, &net->machine, image, STEPS, &mesh);
  mesh.eager = eager;
  int64_t in = (int64_t)net->m * net->k, raw = (int64_t)net->m * net->n, turned = (int64_t)(net->m + net->top) * net->n;
  float *x = test_calloc((size_t)in * STEPS, sizeof(float)),
        *expected = test_calloc((size_t)(raw + turned), sizeof(float));
  fill_input(&rng, x, in * STEPS);
  for (size_t step = 0; step < STEPS; ++step)
    memcpy(mesh.host + step * mesh.host_bytes + image->io[0].address, x + (size_t)in * step,
           (size_t)in * sizeof(float));
  mesh_run(&mesh);
  for (size_t step = 0; step < STEPS; ++step) {
    network_reference(net, x + (size_t)in * step, expected, expected + turned);
    const uint8_t* host = mesh.host + step * mesh.host_bytes;
    check_floats((const float*)(const void*)(host + image->io[1].address), expected, turned);
    check_floats((const float*)(const void*)(host + image->io[2].address), expected + turned, raw);
  }
  test_free(x);
  test_free(expected);
  mesh_destroy(&mesh);
}

static void test_random_splits_compute(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    network_t net;
    weft_arena_t arena;
    weft_image_t image;
    network_create(seed, &net);
    weft_arena_initialize(mesh_allocator(), &arena);
    mesh_ok(weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image));
    for (int32_t eager = 0; eager < 2; ++eager) run_network(&net, &image, seed, eager);
    weft_arena_deinitialize(&arena);
    network_destroy(&net);
  }
}

// What the cost function and the choice of depths say is what a tile takes, or more.
static void test_memory_is_within_the_estimate(void** state) {
  (void)state;
  int32_t doubled = 0, kernels = 0;
  for (uint64_t seed = 200; seed < 260; ++seed) {
    network_t net;
    weft_arena_t arena;
    weft_image_t image;
    network_create(seed, &net);
    net.machine.tile_memory = seed % 2 ? 3500 : 49152; // so small that some just fit
    mesh_ok(weft_machine_digest(&net.machine, &net.fabric.machine_digest));
    for (int32_t k = 0; k < net.fabric.kernel_count; ++k) {
      weft_kernel_t* kernel = &net.fabric.kernel[k];
      for (int32_t b = 0; b < kernel->buffer_count; ++b) kernel->buffer[b].spare = 0;
      mesh_ok(weft_cost_alternative(&net.fabric, k, &net.machine, kernel->alternative));
      doubled += kernel->alternative->doubled;
      ++kernels;
    }
    mesh_ok(weft_depths_choose(&net.fabric, &net.machine));
    weft_arena_initialize(mesh_allocator(), &arena);
    mesh_ok(weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image));
    for (size_t t = 0; t < image.tiles_count; ++t)
      if (image.tiles[t].kernel >= 0)
        assert_true(image.tiles[t].memory_bytes <= net.fabric.kernel[image.tiles[t].kernel].alternative->bytes);
    weft_arena_deinitialize(&arena);
    network_destroy(&net);
  }
  assert_in_range(doubled, kernels / 2, kernels - 1); // both kinds were seen
}

static void test_programs_are_shared(void** state) {
  (void)state;
  int64_t tiles = 0, programs = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    network_t net;
    weft_arena_t arena;
    weft_image_t image;
    network_create(seed, &net);
    weft_arena_initialize(mesh_allocator(), &arena);
    mesh_ok(weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image));
    tiles += (int64_t)image.tiles_count;
    programs += (int64_t)image.programs_count;
    // A patch is a word in which two tiles of the program differ.
    for (size_t p = 0; p < image.programs_count; ++p)
      for (uint32_t k = 0; k < image.programs[p].patch_count; ++k) {
        bool differs = false;
        const weft_image_tile_t* first = NULL;
        for (size_t t = 0; t < image.tiles_count; ++t) {
          if (image.tiles[t].program != p) continue;
          if (!first) first = &image.tiles[t];
          differs |= image.params[image.tiles[t].params + k] != image.params[first->params + k];
        }
        assert_true(differs);
      }
    weft_arena_deinitialize(&arena);
    network_destroy(&net);
  }
  assert_true(programs * 3 < tiles * 2);
}

static void test_constants_are_stored_once(void** state) {
  (void)state;
  network_t net;
  weft_arena_t arena;
  weft_image_t image;
  network_create(5, &net);
  weft_alternative_t* a = net.fabric.kernel[0].alternative;
  weft_arena_initialize(mesh_allocator(), &arena);
  mesh_ok(weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image));
  // W and bias are split along n and k at the most: tiles that differ in m only load the same bytes.
  size_t segments = 0;
  for (size_t t = 0; t < image.tiles_count; ++t) segments += image.tiles[t].segment_count;
  assert_true(a->gy * a->gx > 1);
  assert_true(image.segments_count < segments);
  for (size_t s = 0; s < image.segments_count; ++s)
    for (size_t other = 0; other < s; ++other)
      if (image.segments[s].size == image.segments[other].size &&
          image.segments[s].offset != image.segments[other].offset)
        assert_memory_not_equal(image.consts + image.segments[s].offset, image.consts + image.segments[other].offset,
                                image.segments[s].size);
  weft_arena_deinitialize(&arena);
  network_destroy(&net);
}

static void emit_with_threads(const network_t* net, int32_t threads, weft_arena_t* arena, weft_image_t* image) {
  weft_control_t control = {.threads = threads};
  weft_arena_initialize(mesh_allocator(), arena);
  mesh_ok(weft_backend_emit(&net->fabric, &net->machine, &net->defects, arena, &control, image));
}

static void test_threads_change_nothing(void** state) {
  (void)state;
  for (uint64_t seed = 400; seed < 440; ++seed) {
    network_t net;
    weft_arena_t arena[2];
    weft_image_t image[2];
    network_create(seed, &net);
    emit_with_threads(&net, 1, &arena[0], &image[0]);
    emit_with_threads(&net, 2 + (int32_t)(seed % 3), &arena[1], &image[1]);
#define X(field, type, section)                                                                                        \
  assert_int_equal(image[0].field##_count, image[1].field##_count);                                                    \
  if (image[0].field##_count)                                                                                          \
    assert_memory_equal(image[0].field, image[1].field, image[0].field##_count * sizeof(*image[0].field));
    WEFT_IMAGE_TABLES(X)
#undef X
    for (int32_t i = 0; i < 2; ++i) weft_arena_deinitialize(&arena[i]);
    network_destroy(&net);
  }
}

static void test_too_little_memory_is_explained(void** state) {
  (void)state;
  network_t net;
  weft_arena_t arena;
  weft_image_t image;
  network_create(7, &net);
  net.machine.tile_memory = 512;
  mesh_ok(weft_machine_digest(&net.machine, &net.fabric.machine_digest));
  weft_arena_initialize(mesh_allocator(), &arena);
  weft_status_t status = weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_DOES_NOT_FIT);
  const char* message = weft_status_message(status);
  assert_non_null(strstr(message, "has 512"));
  assert_non_null(strstr(message, "kernel 'contraction', tile "));
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  network_destroy(&net);
}

static void test_missing_route_is_explained(void** state) {
  (void)state;
  network_t net;
  weft_arena_t arena;
  weft_image_t image;
  network_create(9, &net);
  net.fabric.stream[0].entry_count = 0;
  weft_arena_initialize(mesh_allocator(), &arena);
  weft_status_t status = weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_INPUT);
  assert_non_null(strstr(weft_status_message(status), "stream of 'X'"));
  weft_status_free(status);
  net.fabric.stage = WEFT_STAGE_PLACED;
  status = weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  network_destroy(&net);
}

static void test_out_of_memory(void** state) {
  (void)state;
  network_t net;
  network_create(11, &net);
  for (uint64_t n = 0;; n += 3) {
    weft_failing_allocator_t failing = {.countdown = n};
    weft_arena_t arena;
    weft_image_t image;
    weft_arena_initialize(weft_allocator_failing(&failing), &arena);
    weft_status_t status = weft_backend_emit(&net.fabric, &net.machine, &net.defects, &arena, NULL, &image);
    weft_arena_deinitialize(&arena);
    assert_int_equal(failing.live, 0);
    if (!status) {
      assert_true(n > 20);
      break;
    }
    assert_int_equal(weft_status_code(status), WEFT_STATUS_OUT_OF_MEMORY);
    weft_status_free(status);
  }
  network_destroy(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_splits_compute),      cmocka_unit_test(test_memory_is_within_the_estimate),
      cmocka_unit_test(test_programs_are_shared),        cmocka_unit_test(test_constants_are_stored_once),
      cmocka_unit_test(test_threads_change_nothing),     cmocka_unit_test(test_too_little_memory_is_explained),
      cmocka_unit_test(test_missing_route_is_explained), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
