// Streams against a delivery element by element.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/checked.h"
#include "tests/ir/fabric/random_fabric.h"

enum { CAPACITY = 60000, BUFFER = 60000 };

typedef struct delivery_t {
  int64_t coordinates[CAPACITY * WEFT_MAX_RANK], segments[CAPACITY], count;
  int32_t by_runs[BUFFER]; // 1 + stream position of what the runs put at this buffer element
  int64_t runs, elements, last_position;
} delivery_t;

static int64_t flat_index(const weft_shape_t* shape, const int64_t* c) {
  int64_t flat = 0;
  for (int32_t d = 0; d < shape->rank; ++d) flat = flat * shape->extent[d] + c[d];
  return flat;
}

static weft_status_t record_run(void* self, int64_t position, int64_t count, int64_t target, int64_t step) {
  delivery_t* delivery = self;
  assert_true(count > 0);
  assert_true(position > delivery->last_position);
  assert_true(position + count <= delivery->count);
  delivery->last_position = position + count - 1;
  ++delivery->runs;
  delivery->elements += count;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = target + step * i;
    assert_true(at >= 0 && at < BUFFER);
    assert_int_equal(delivery->by_runs[at], 0);
    delivery->by_runs[at] = (int32_t)(position + i + 1);
  }
  return weft_ok();
}

static void row_major(const weft_box_t* box, int64_t* strides) {
  int64_t step = 1;
  for (int32_t d = box->rank - 1; d >= 0; --d) {
    strides[d] = step;
    step *= weft_max_i64(1, box->hi[d] - box->lo[d]);
  }
}

// Delivers one stream to one sink both ways; arrivals[buffer element] counts over all streams.
static void deliver(const weft_fabric_t* fabric, const weft_stream_t* stream, const weft_view_t* view,
                    const weft_box_t* filter, int64_t expected, delivery_t* delivery, int32_t* arrivals,
                    int64_t* flats) {
  const weft_shape_t* shape = &fabric->tensor[stream->tensor].shape;
  int64_t strides[WEFT_MAX_RANK], taken = 0, k[WEFT_MAX_RANK];
  row_major(filter, strides);
  memset(delivery->by_runs, 0, (size_t)weft_box_elements(filter) * sizeof(delivery->by_runs[0]));
  delivery->elements = 0;
  delivery->last_position = -1;
  assert_ok(weft_walk_runs(&stream->walk, shape, view, filter, strides, record_run, delivery));
  for (int64_t n = 0; n < delivery->count; ++n) {
    int64_t flat = flat_index(shape, &delivery->coordinates[n * WEFT_MAX_RANK]), at = 0;
    bool inside = weft_view_apply(view, flat, k);
    for (int32_t d = 0; inside && d < filter->rank; ++d) {
      inside = filter->lo[d] <= k[d] && k[d] < filter->hi[d];
      at += (k[d] - filter->lo[d]) * strides[d];
    }
    if (!inside) continue;
    assert_int_equal(delivery->by_runs[at], n + 1);
    ++arrivals[at];
    flats[at] = flat;
    ++taken;
  }
  assert_int_equal(taken, delivery->elements);
  assert_int_equal(taken, expected);
}

// Sources: in walk order, without empty ones, each owning what its segment holds.
static void check_sources(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_stream_t* stream,
                          delivery_t* delivery) {
  delivery->count = brute_walk(&stream->walk, CAPACITY, delivery->coordinates, delivery->segments);
  assert_int_equal(delivery->count, stream->elements);
  assert_int_equal(delivery->count, weft_walk_elements(&stream->walk));
  int64_t n = 0, wavelets = 0;
  for (int32_t s = 0; s < stream->source_count; ++s) {
    int64_t segment = delivery->segments[n], length = 0;
    weft_box_t owned = weft_split_owned_box(fabric, stream->tensor, stream->source[s].logical);
    for (; n < delivery->count && delivery->segments[n] == segment; ++n, ++length)
      for (int32_t d = 0; d < owned.rank; ++d) {
        int64_t c = delivery->coordinates[n * WEFT_MAX_RANK + d];
        assert_true(owned.lo[d] <= c && c < owned.hi[d]);
      }
    assert_int_equal(length, stream->source[s].elements);
    assert_true(length > 0);
    assert_int_equal(length, weft_walk_segment_elements(&stream->walk, segment));
    wavelets += weft_machine_wavelets(machine, stream->dtype, length);
  }
  assert_int_equal(n, delivery->count);
  assert_int_equal(wavelets, stream->wavelets);
}

// Every element that a piece has for a tile's box arrives once, and nothing else does.
static void check_piece(const weft_fabric_t* fabric, int32_t kernel, int32_t buffer, int32_t piece_index,
                        const weft_piece_t* piece, int32_t logical, bool needed, const weft_box_t* box,
                        delivery_t* delivery) {
  static int32_t arrivals[BUFFER];
  static int64_t flats[BUFFER];
  const weft_shape_t* shape = &fabric->tensor[piece->tensor].shape;
  int64_t size = weft_box_elements(box);
  assert_true(size <= BUFFER);
  memset(arrivals, 0, (size_t)size * sizeof(arrivals[0]));
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    const weft_stream_t* stream = &fabric->stream[s];
    if (stream->kind != WEFT_STREAM_DATA || stream->sink_kernel != kernel || stream->sink_buffer != buffer ||
        stream->sink_piece != piece_index)
      continue;
    for (int32_t i = 0; i < stream->sink_count; ++i) {
      if (stream->sink[i].logical != logical) continue;
      assert_true(needed);
      assert_true(stream->sink[i].elements > 0);
      delivery->count = brute_walk(&stream->walk, CAPACITY, delivery->coordinates, delivery->segments);
      deliver(fabric, stream, &piece->view, box, stream->sink[i].elements, delivery, arrivals, flats);
    }
  }
  int64_t strides[WEFT_MAX_RANK], k[WEFT_MAX_RANK], covered = 0, arrived = 0;
  row_major(box, strides);
  for (int64_t flat = 0; flat < weft_shape_elements(shape); ++flat) {
    if (!weft_view_apply(&piece->view, flat, k)) continue;
    bool inside = true;
    int64_t at = 0;
    for (int32_t d = 0; d < box->rank; ++d) {
      inside = inside && box->lo[d] <= k[d] && k[d] < box->hi[d];
      at += (k[d] - box->lo[d]) * strides[d];
    }
    if (!inside || !needed) continue;
    ++covered;
    assert_int_equal(arrivals[at], 1);
    assert_int_equal(flats[at], flat);
  }
  for (int64_t i = 0; i < size; ++i) arrived += arrivals[i];
  assert_int_equal(arrived, covered);
}

// Colours: a source is in few of the streams of an edge, a sink in one, if it isn't the host.
static void check_colours(const weft_fabric_t* fabric) {
  for (int32_t first = 0, end; first < fabric->stream_count; first = end) {
    const weft_stream_t* a = &fabric->stream[first];
    int32_t sends[1024] = {0}, receives[1024] = {0};
    for (end = first; end < fabric->stream_count; ++end) {
      const weft_stream_t* b = &fabric->stream[end];
      if (a->kind != b->kind || a->sink_kernel != b->sink_kernel || a->sink_buffer != b->sink_buffer ||
          a->sink_piece != b->sink_piece)
        break;
      for (int32_t i = 0; i < b->source_count; ++i) ++sends[b->source[i].logical];
      for (int32_t i = 0; i < b->sink_count && b->sink_kernel != WEFT_HOST_KERNEL; ++i)
        assert_int_equal(++receives[b->sink[i].logical], 1);
    }
    if (a->source_kernel != WEFT_HOST_KERNEL)
      for (int32_t i = 0; i < 1024; ++i) assert_true(sends[i] <= WEFT_STREAMS_PER_TILE);
    if (a->kind == WEFT_STREAM_DATA) assert_true(end - first <= WEFT_STREAMS_PER_EDGE_MOST);
  }
}

static void check_chain(const weft_fabric_t* fabric, int32_t k) {
  const weft_kernel_t* kernel = &fabric->kernel[k];
  const weft_split_t* split = &kernel->alternative[0].split;
  int32_t tiles = weft_split_grid(split->y, split->y_count) * weft_split_grid(split->x, split->x_count), hops = 0;
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    const weft_stream_t* stream = &fabric->stream[s];
    if (stream->kind != WEFT_STREAM_CHAIN || stream->sink_kernel != k) continue;
    ++hops;
    assert_int_equal(weft_split_chain_next(kernel, split, stream->source[0].logical), stream->sink[0].logical);
    assert_int_equal(stream->sink_buffer, 3);
  }
  int32_t length = weft_split_chain_length(kernel, split);
  assert_int_equal(hops, tiles / length * (length - 1));
}

static void test_random_fabrics(void** state) {
  (void)state;
  static delivery_t delivery;
  weft_machine_t machine = small_machine(9, 7);
  weft_rng_t rng;
  weft_rng_seed(&rng, 5);
  static const double shares[] = {1, 0.5, 0};
  int32_t split_edges[3] = {0}; // with more than one stream
  for (int32_t round = 0; round < 900; ++round) {
    weft_fabric_t fabric;
    random_fabric(&rng, &fabric);
    assert_ok(weft_streams_build(&fabric, &machine, shares[round % 3]));
    assert_ok(weft_fabric_verify(&fabric));
    check_colours(&fabric);
    for (int32_t s = 1; s < fabric.stream_count; ++s) {
      const weft_stream_t *a = &fabric.stream[s - 1], *b = &fabric.stream[s];
      split_edges[round % 3] += b->kind == WEFT_STREAM_DATA && a->kind == WEFT_STREAM_DATA && a->sink_kernel == b->sink_kernel &&
                     a->sink_buffer == b->sink_buffer && a->sink_piece == b->sink_piece;
    }
    for (int32_t s = 0; s < fabric.stream_count; ++s)
      if (fabric.stream[s].kind == WEFT_STREAM_DATA) check_sources(&fabric, &machine, &fabric.stream[s], &delivery);
    for (int32_t k = 0; k < fabric.kernel_count; ++k) {
      const weft_kernel_t* kernel = &fabric.kernel[k];
      const weft_split_t* split = &kernel->alternative[0].split;
      int32_t tiles = weft_split_grid(split->y, split->y_count) * weft_split_grid(split->x, split->x_count);
      check_chain(&fabric, k);
      for (int32_t b = 0; b < 3; ++b) {
        for (int32_t p = 0; p < kernel->buffer[b].piece_count; ++p) {
          for (int32_t logical = 0; logical < tiles; ++logical) {
            weft_iteration_box_t box = weft_split_box(kernel, split, logical);
            weft_box_t held = weft_split_buffer_box(kernel, &kernel->buffer[b], &box);
            bool needed = b < 2 || weft_split_is_owner(kernel, split, logical);
            check_piece(&fabric, k, b, p, &kernel->buffer[b].piece[p], logical, needed, &held, &delivery);
          }
        }
      }
    }
    weft_box_t whole = weft_box_of_shape(&fabric.output[0].shape);
    check_piece(&fabric, WEFT_HOST_KERNEL, 0, 0, &fabric.output[0].piece[0], 0, true, &whole, &delivery);
    weft_fabric_deinitialize(&fabric);
  }
  assert_true(split_edges[0] > 50);
  assert_in_range(split_edges[1], 1, split_edges[0] - 1);
  assert_int_equal(split_edges[2], 0);
}

// Streams come by consumer kernel, buffer, piece; chains after a kernel's data; outputs last.
static void test_order(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(9, 7);
  weft_rng_t rng;
  weft_rng_seed(&rng, 6);
  for (int32_t round = 0; round < 100; ++round) {
    weft_fabric_t fabric;
    random_fabric(&rng, &fabric);
    assert_ok(weft_streams_build(&fabric, &machine, 1));
    int64_t last = -1;
    for (int32_t s = 0; s < fabric.stream_count; ++s) {
      const weft_stream_t* stream = &fabric.stream[s];
      int64_t kernel = stream->sink_kernel == WEFT_HOST_KERNEL ? 1000 : stream->sink_kernel;
      int64_t key = ((kernel * 2 + (stream->kind == WEFT_STREAM_CHAIN)) * 100 + stream->sink_buffer) * 100 +
                    (stream->sink_piece < 0 ? 0 : stream->sink_piece);
      assert_true(key >= last);
      last = key;
    }
    weft_fabric_deinitialize(&fabric);
  }
}

// Every allocation fails once: the error comes back, nothing leaks, and the fabric is as it was.
static void test_out_of_memory(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(9, 7);
  for (uint64_t successes = 0;; ++successes) {
    weft_failing_allocator_t failing = {.countdown = UINT64_MAX};
    weft_rng_t rng;
    weft_fabric_t fabric;
    weft_rng_seed(&rng, 9);
    random_fabric_in(weft_allocator_failing(&failing), &rng, &fabric);
    uint64_t before = failing.live;
    failing.countdown = successes;
    weft_status_t status = weft_streams_build(&fabric, &machine, 1);
    weft_status_code_e code = weft_status_code(status);
    weft_status_free(status);
    if (code != WEFT_STATUS_OK) {
      assert_int_equal(code, WEFT_STATUS_OUT_OF_MEMORY);
      assert_int_equal(fabric.stream_count, 0);
      assert_true(failing.live <= before + 1); // what the arena took stays in it
    }
    weft_fabric_deinitialize(&fabric);
    assert_int_equal(failing.live, 0);
    if (code == WEFT_STATUS_OK) {
      assert_true(successes > 4);
      return;
    }
  }
}

static void test_region_map(void** state) {
  (void)state;
  weft_machine_t machine = small_machine(6, 5);
  weft_defects_t defects;
  assert_ok(weft_defects_create(weft_allocator_system(), &machine, &defects));
  int32_t tiles[12];
  weft_region_t region = {.x = 1, .y = 1, .width = 4, .height = 4};
  weft_defects_kill_tile(&defects, 2 * 6 + 2); // (2, 2)
  assert_true(weft_region_map(&machine, &defects, &region, 3, 3, tiles));
  const int32_t stepped[9] = {7, 8, 9, 13, 15, 16, 19, 20, 21};
  assert_memory_equal(tiles, stepped, sizeof(stepped));
  assert_true(weft_region_map(&machine, &defects, &region, 3, 4, tiles)); // rows 1, 3, 4
  const int32_t skipped[12] = {7, 8, 9, 10, 19, 20, 21, 22, 25, 26, 27, 28};
  assert_memory_equal(tiles, skipped, sizeof(skipped));
  region.transposed = true;
  region.height = 2;
  assert_true(weft_region_map(&machine, &defects, &region, 3, 2, tiles)); // columns 1, 3, 4
  const int32_t columns[6] = {7, 13, 9, 15, 10, 16};
  assert_memory_equal(tiles, columns, sizeof(columns));
  region.transposed = false;
  assert_true(weft_region_map(&machine, &defects, &region, 1, 7, tiles));
  const int32_t snake[7] = {7, 8, 9, 10, 16, 15, 13};
  assert_memory_equal(tiles, snake, sizeof(snake));
  assert_false(weft_region_map(&machine, &defects, &region, 2, 4, tiles)); // 7 live tiles
  region.x = 3;
  assert_false(weft_region_map(&machine, &defects, &region, 1, 1, tiles)); // leaves the mesh
  weft_defects_deinitialize(&defects);
}

static weft_status_t stop_at_once(void* self, int64_t position, int64_t count, int64_t target, int64_t step) {
  (void)self, (void)position, (void)count, (void)target, (void)step;
  return weft_error(INTERRUPTED, "enough");
}

// A whole row-major tensor into a row-major buffer is one run; a tile's box of it one run a row.
static void test_runs_are_long(void** state) {
  (void)state;
  static delivery_t delivery;
  weft_shape_t shape = {.rank = 3, .extent = {4, 5, 6}};
  weft_walk_t walk = {.level_count = 3, .level = {{4, 0, 1}, {5, 1, 1}, {6, 2, 1}}, .box = weft_box_of_shape(&shape)};
  weft_view_t view = weft_view_identity(&shape);
  weft_box_t filter = walk.box;
  int64_t strides[WEFT_MAX_RANK];
  row_major(&filter, strides);
  delivery.count = 120;
  delivery.last_position = -1;
  assert_ok(weft_walk_runs(&walk, &shape, &view, &filter, strides, record_run, &delivery));
  assert_int_equal(delivery.runs, 1);
  assert_int_equal(delivery.elements, 120);
  filter.lo[1] = 1;
  filter.hi[1] = 4;
  filter.lo[2] = 2;
  row_major(&filter, strides);
  memset(&delivery, 0, sizeof(delivery));
  delivery.count = 120;
  delivery.last_position = -1;
  assert_ok(weft_walk_runs(&walk, &shape, &view, &filter, strides, record_run, &delivery));
  assert_int_equal(delivery.runs, 12);
  assert_int_equal(delivery.elements, 48);
  weft_status_t status = weft_walk_runs(&walk, &shape, &view, &filter, strides, stop_at_once, NULL);
  assert_int_equal(weft_status_code(status), WEFT_STATUS_INTERRUPTED);
  weft_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_fabrics), cmocka_unit_test(test_order),         cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_region_map),     cmocka_unit_test(test_runs_are_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
