#include "router/route.h"

#include "tests/router/verify.h"

// Two kernels on hand-placed tiles: input -> first -> second -> output, and a reduce chain in the first.
typedef struct scene_t {
  bed_t bed;
  weft_fabric_t fabric;
} scene_t;

enum { FIRST, SECOND, GX = 3, GY = 2, GRID = GX * GY };

static void make_kernel(scene_t* s, int32_t kernel, const char* name, int32_t x, int32_t y) {
  weft_kernel_t* k = &s->fabric.kernel[kernel];
  k->name = name;
  assert_ok(WEFT_ARENA_NEW(&s->fabric.arena, GRID, &k->tile));
  for (int32_t i = 0; i < GRID; ++i) k->tile[i] = bed_tile(&s->bed, x + i % GX, y + i / GX);
}

static void make_stream(scene_t* s, int32_t source, int32_t sources, int32_t sink, int32_t sinks, int32_t tensor) {
  weft_stream_t* stream = &s->fabric.stream[s->fabric.stream_count++];
  *stream = (weft_stream_t){.kind = tensor < 0 ? WEFT_STREAM_CHAIN : WEFT_STREAM_DATA,
                            .tensor = tensor,
                            .source_kernel = source,
                            .sink_kernel = sink,
                            .source_count = sources,
                            .sink_count = sinks,
                            .elements = 60,
                            .wavelets = 60,
                            .source_port = -1,
                            .sink_port = -1};
  assert_ok(WEFT_ARENA_NEW(&s->fabric.arena, (size_t)sources, &stream->source));
  assert_ok(WEFT_ARENA_NEW(&s->fabric.arena, (size_t)sinks, &stream->sink));
  // Segments of different lengths, of 60 elements in all.
  for (int32_t i = 0; i < sources; ++i) stream->source[i] = (weft_endpoint_t){i, 60 / sources + 2 * i - sources + 1};
  for (int32_t i = 0; i < sinks; ++i) stream->sink[i].logical = tensor < 0 ? i + 1 : i;
}

static void open_scene(scene_t* s, int32_t inputs, int32_t outputs) {
  memset(s, 0, sizeof(*s));
  bed_open(&s->bed, 11, 9, 0, 0);
  weft_fabric_initialize(weft_allocator_system(), &s->fabric);
  weft_fabric_t* f = &s->fabric;
  f->stage = WEFT_STAGE_PLACED;
  f->kernel_count = 2;
  f->tensor_count = 3;
  assert_ok(WEFT_ARENA_NEW(&f->arena, 2, &f->kernel));
  assert_ok(WEFT_ARENA_NEW(&f->arena, 3, &f->tensor));
  static const char* const names[] = {"image", "features", "scores"};
  for (int i = 0; i < 3; ++i) f->tensor[i].name = names[i];
  make_kernel(s, FIRST, "conv1", 1, 1);
  make_kernel(s, SECOND, "fc", 6, 5);
  assert_ok(WEFT_ARENA_NEW(&f->arena, (size_t)(inputs + outputs + 2), &f->stream));
  for (int32_t i = 0; i < inputs; ++i) make_stream(s, WEFT_HOST_KERNEL, 1, FIRST, GRID, 0);
  make_stream(s, FIRST, GRID, SECOND, GRID, 1);
  make_stream(s, FIRST, 1, FIRST, 1, -1);
  for (int32_t i = 0; i < outputs; ++i) make_stream(s, SECOND, GRID, WEFT_HOST_KERNEL, 1, 2);
}
static void close_scene(scene_t* s) {
  weft_fabric_deinitialize(&s->fabric);
  bed_close(&s->bed);
}
static weft_status_t route_scene(scene_t* s) {
  return weft_route(&s->fabric, &s->bed.machine, &s->bed.defects, NULL, &s->bed.report);
}

// The nets that the streams stand for, written down again, and the fabric's routes.
static void verify_scene(scene_t* s) {
  bed_t* bed = &s->bed;
  weft_fabric_t* f = &s->fabric;
  bed->net_count = f->stream_count;
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)f->stream_count, &bed->net));
  assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)f->stream_count, &bed->route));
  for (int32_t i = 0; i < f->stream_count; ++i) {
    const weft_stream_t* st = &f->stream[i];
    weft_router_terminal_t *source = NULL, *sink = NULL;
    assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)st->source_count, &source));
    assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)st->sink_count, &sink));
    assert_int_equal(st->source_port >= 0, st->source_kernel == WEFT_HOST_KERNEL);
    assert_int_equal(st->sink_port >= 0, st->sink_kernel == WEFT_HOST_KERNEL);
    for (int32_t k = 0; k < st->source_count; ++k) {
      weft_host_port_t port = weft_machine_port(&bed->machine, st->source_port < 0 ? 0 : st->source_port);
      source[k] = (weft_router_terminal_t){port.tile, port.direction};
      if (st->source_port < 0)
        source[k] =
            (weft_router_terminal_t){f->kernel[st->source_kernel].tile[st->source[k].logical], WEFT_DIRECTION_RAMP};
    }
    for (int32_t k = 0; k < st->sink_count; ++k) {
      weft_host_port_t port = weft_machine_port(&bed->machine, st->sink_port < 0 ? 0 : st->sink_port);
      sink[k] = (weft_router_terminal_t){port.tile, port.direction};
      if (st->sink_port < 0)
        sink[k] = (weft_router_terminal_t){f->kernel[st->sink_kernel].tile[st->sink[k].logical], WEFT_DIRECTION_RAMP};
    }
    int64_t* segment = NULL;
    assert_ok(WEFT_ARENA_NEW(&bed->arena, (size_t)st->source_count, &segment));
    for (int32_t k = 0; k < st->source_count; ++k) segment[k] = st->source[k].elements; // a float takes a wavelet
    bed->net[i] = (weft_router_net_t){"stream", st->source_count, st->sink_count, source, sink, segment, st->wavelets};
    bed->route[i] = (weft_router_route_t){st->entry_count, st->entry};
  }
  bed_verify(bed);
}

static void test_streams_get_routes(void** state) {
  (void)state;
  scene_t s;
  open_scene(&s, 1, 1);
  assert_ok(route_scene(&s));
  assert_int_equal(s.fabric.stage, WEFT_STAGE_ROUTED);
  verify_scene(&s);
  const weft_stream_t* in = &s.fabric.stream[0];
  weft_host_port_t port = weft_machine_port(&s.bed.machine, in->source_port);
  assert_in_range(port.tile % 11, 0, 3); // next to the first kernel
  assert_in_range(port.tile / 11, 0, 3);
  // Routing twice would route over what is there.
  weft_status_t status = route_scene(&s);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INVALID_ARGUMENT);
  weft_status_free(status);
  close_scene(&s);
}

// (port, colour) names a stream to the host, another one from the host.
static void test_many_host_streams(void** state) {
  (void)state;
  scene_t s;
  open_scene(&s, 8, 14);
  assert_ok(route_scene(&s));
  verify_scene(&s);
  bool taken[64][64] = {{false}};
  int32_t ports = 0;
  for (int32_t i = 0; i < s.fabric.stream_count; ++i) {
    const weft_stream_t* st = &s.fabric.stream[i];
    if (st->sink_port < 0) continue;
    weft_host_port_t port = weft_machine_port(&s.bed.machine, st->sink_port);
    bool used = false;
    for (int c = 0; c < 64; ++c) used |= taken[st->sink_port][c];
    ports += !used;
    for (int32_t e = 0; e < st->entry_count; ++e) {
      if (st->entry[e].tile != port.tile || !(st->entry[e].outputs >> port.direction & 1)) continue;
      uint8_t colour = st->entry[e].output_colour[port.direction];
      assert_false(taken[st->sink_port][colour]);
      taken[st->sink_port][colour] = true;
    }
  }
  assert_in_range(ports, 4, 14); // the load is spread
  close_scene(&s);
}

static void test_dead_ports_are_skipped(void** state) {
  (void)state;
  scene_t s;
  open_scene(&s, 2, 2);
  for (int32_t x = 0; x < 11; ++x)
    for (int32_t y = 0; y < 9; ++y)
      if ((x == 0 || y == 0 || x == 10 || y == 8) && !(x == 10 && y == 3))
        weft_defects_kill_tile(&s.bed.defects, bed_tile(&s.bed, x, y));
  assert_ok(route_scene(&s));
  verify_scene(&s);
  close_scene(&s);

  open_scene(&s, 1, 1);
  for (int32_t x = 0; x < 11; ++x)
    for (int32_t y = 0; y < 9; ++y)
      if (x == 0 || y == 0 || x == 10 || y == 8) weft_defects_kill_tile(&s.bed.defects, bed_tile(&s.bed, x, y));
  weft_status_t status = route_scene(&s);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNROUTABLE);
  assert_non_null(strstr(weft_status_message(status), "40 ports 40 are at dead tiles"));
  assert_non_null(strstr(weft_status_message(status), "image"));
  weft_status_free(status);
  assert_int_equal(s.fabric.stage, WEFT_STAGE_PLACED);
  close_scene(&s);
}

// What comes in and goes out unchanged uses two ports.
static void test_host_to_host(void** state) {
  (void)state;
  scene_t s;
  open_scene(&s, 1, 0);
  weft_stream_t* st = &s.fabric.stream[0];
  st->sink_kernel = WEFT_HOST_KERNEL;
  st->sink_count = 1;
  assert_ok(route_scene(&s));
  verify_scene(&s);
  assert_int_not_equal(st->source_port, st->sink_port);
  close_scene(&s);
}

// What a kernel sends back to its own tiles: every tile appends to the stream, and every one takes all of it.
static void test_back_to_its_own_tiles(void** state) {
  (void)state;
  for (int dead = 0; dead < 3; ++dead) {
    scene_t s;
    open_scene(&s, 1, 1);
    s.fabric.stream[1].sink_kernel = FIRST;
    // Around the tiles, so that the ways have to share the inner links.
    for (int32_t i = 0; i < dead; ++i) weft_defects_kill_tile(&s.bed.defects, bed_tile(&s.bed, 1 + 2 * i, 0));
    for (int32_t i = 0; i < dead; ++i) weft_defects_kill_tile(&s.bed.defects, bed_tile(&s.bed, 1 + i, 3));
    assert_ok(route_scene(&s));
    verify_scene(&s);
    const weft_stream_t* back = &s.fabric.stream[1];
    int32_t from = 0, to = 0;
    for (int32_t e = 0; e < back->entry_count; ++e) {
      to += back->entry[e].outputs >> WEFT_DIRECTION_RAMP & 1;
      for (int32_t i = 0; i < back->entry[e].input_count; ++i) from += back->entry[e].input[i] == WEFT_DIRECTION_RAMP;
    }
    assert_int_equal(from, GRID);
    assert_int_equal(to, GRID);
    close_scene(&s);
  }
}

static void test_error_names_layers(void** state) {
  (void)state;
  scene_t s;
  open_scene(&s, 1, 1);
  for (int32_t x = 0; x < 11; ++x) weft_defects_kill_tile(&s.bed.defects, bed_tile(&s.bed, x, 4));
  weft_status_t status = route_scene(&s);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_UNROUTABLE);
  assert_non_null(strstr(weft_status_message(status), "conv1 -> fc (features)"));
  assert_non_null(strstr(weft_status_message(status), "2 parts of 44 and 44 tiles"));
  weft_status_free(status);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_streams_get_routes),     cmocka_unit_test(test_many_host_streams),
      cmocka_unit_test(test_dead_ports_are_skipped), cmocka_unit_test(test_host_to_host),
      cmocka_unit_test(test_back_to_its_own_tiles),  cmocka_unit_test(test_error_names_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
