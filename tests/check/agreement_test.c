// The streams that are built for random kernels (windows, padding, reshapes, transposes, uneven splits, reductions) are
// legal by the checker's own derivation; and no longer when one of them is tampered with.
#include "tests/check/checking.h"
#include "tests/ir/fabric/random_fabric.h"

enum { MOST_TILES = 100000, ROUNDS = 250 };

// One kernel below the other, on a mesh that is just large enough.
static bool place(weft_fabric_t* fabric, weft_machine_t* machine) {
  int64_t width = 1, height = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_alternative_t* alternative = fabric->kernel[k].alternative;
    width = weft_max_i64(width, alternative->gx);
    fabric->kernel[k].region =
        (weft_region_t){.y = (int32_t)height, .width = alternative->gx, .height = alternative->gy};
    height += alternative->gy;
  }
  if (width * height > MOST_TILES) return false;
  *machine = small_machine((int32_t)width, (int32_t)height);
  machine->tile_memory = 1 << 20;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    weft_kernel_t* kernel = &fabric->kernel[k];
    weft_alternative_t* alternative = kernel->alternative;
    int64_t cycles = alternative->cycles; // few, which gives many streams
    expect_legal(weft_cost_alternative(fabric, k, machine, alternative));
    alternative->cycles = cycles;
    for (int32_t i = 0; i < alternative->gy * alternative->gx; ++i)
      kernel->tile[i] = (kernel->region.y + i / alternative->gx) * machine->width + i % alternative->gx;
  }
  return true;
}

// Something that is always wrong. Its own state is put back by the caller.
static void tamper(weft_rng_t* rng, weft_stream_t* stream) {
  weft_endpoint_t* sink = &stream->sink[draw(rng, 0, stream->sink_count - 1)];
  int32_t d = stream->walk.box.rank ? (int32_t)draw(rng, 0, stream->walk.box.rank - 1) : -1;
  switch (draw(rng, 0, stream->kind == WEFT_STREAM_DATA && d >= 0 ? 4 : 2)) {
  case 0:
    sink->elements++;
    break;
  case 1:
    stream->elements++;
    break;
  case 2:
    stream->wavelets++;
    break;
  case 3:
    stream->walk.box.hi[d]--;
    break;
  default:
    stream->sink_count > 1 ? stream->sink_count-- : sink->elements++;
    break;
  }
}

static void built_streams_are_legal_and_tampered_ones_are_not(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  int32_t checked = 0, refused = 0;
  for (int32_t round = 0; round < ROUNDS; ++round) {
    weft_fabric_t fabric;
    weft_machine_t machine;
    weft_defects_t defects;
    random_fabric(&rng, &fabric);
    if (place(&fabric, &machine)) {
      expect_legal(weft_streams_build(&fabric, &machine, 1));
      expect_legal(weft_defects_create(weft_allocator_system(), &machine, &defects));
      weft_status_t status = weft_check_fabric(&fabric, &machine, &defects);
      if (status) fail_msg("round %d:\n%s", round, weft_status_message(status));
      ++checked;
      if (fabric.stream_count) {
        weft_stream_t* stream = &fabric.stream[draw(&rng, 0, fabric.stream_count - 1)];
        tamper(&rng, stream);
        status = weft_check_fabric(&fabric, &machine, &defects);
        if (!status) fail_msg("round %d: a tampered stream is accepted", round);
        weft_status_free(status);
        ++refused;
      }
      weft_defects_deinitialize(&defects);
    }
    weft_fabric_deinitialize(&fabric);
  }
  assert_true(checked > ROUNDS / 2);
  assert_true(refused > ROUNDS / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(built_streams_are_legal_and_tampered_ones_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
