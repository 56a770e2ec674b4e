// Known indices that walk through a box: the values against plain loops, and that they become few pieces.
#include "text_model.h"

enum { MAX_ELEMENTS = 4096, MAX_RANK = 4 };

typedef struct walk_t { // a box of a tensor, its axes walked in some order
  int rank, width;
  int64_t extent[MAX_RANK], start[MAX_RANK], count[MAX_RANK], step[MAX_RANK];
  int order[MAX_RANK];
} walk_t;

static int64_t between(weft_rng_t* rng, int64_t low, int64_t high) {
  return low + (int64_t)weft_rng_below(rng, (uint64_t)(high - low + 1));
}

static walk_t random_walk(weft_rng_t* rng) {
  walk_t walk = {.rank = (int)between(rng, 1, MAX_RANK)};
  walk.width = (int)between(rng, 1, walk.rank);
  for (int i = 0; i < walk.rank; ++i) {
    walk.extent[i] = between(rng, 1, 7);
    walk.start[i] = between(rng, 0, walk.extent[i] - 1);
    walk.step[i] = between(rng, 1, 3);
    walk.count[i] = between(rng, 1, (walk.extent[i] - 1 - walk.start[i]) / walk.step[i] + 1);
    walk.order[i] = i;
  }
  for (int i = walk.width - 1; i > 0; --i) {
    int k = (int)between(rng, 0, i), other = walk.order[i];
    walk.order[i] = walk.order[k];
    walk.order[k] = other;
  }
  return walk;
}

// The tuples, and in out_shape the extents of the walk. Returns their number.
static int64_t tuples_of(const walk_t* walk, int64_t* out, int64_t* out_shape) {
  int64_t total = 1;
  for (int i = 0; i < walk->width; ++i) total *= out_shape[i] = walk->count[walk->order[i]];
  for (int64_t u = 0; u < total; ++u) {
    int64_t rest = u;
    for (int i = walk->width - 1; i >= 0; rest /= out_shape[i--]) {
      int axis = walk->order[i];
      out[u * walk->width + axis] = walk->start[axis] + rest % out_shape[i] * walk->step[axis];
    }
  }
  return total;
}

static int count_text(text_model_t* t, const char* word) {
  weft_text_t text;
  int count = 0;
  weft_text_initialize(weft_allocator_system(), &text);
  assert_null(weft_tensor_print(t->model.module, &text));
  for (const char* at = text.data; (at = strstr(at, word)); at += strlen(word)) ++count;
  weft_text_deinitialize(&text);
  return count;
}

static int64_t product(const int64_t* extent, int from, int to) {
  int64_t count = 1;
  for (int i = from; i < to; ++i) count *= extent[i];
  return count;
}

static void print_values(char* to, size_t size, const char* name, const int64_t* extent, int rank) {
  int at = snprintf(to, size, "%s:f32[", name);
  for (int i = 0; i < rank; ++i) at += snprintf(to + at, size - (size_t)at, i ? ",%lld" : "%lld", (long long)extent[i]);
  snprintf(to + at, size - (size_t)at, "] ");
}

static void test_scatter(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 31);
  static float data[MAX_ELEMENTS], updates[MAX_ELEMENTS], expected[MAX_ELEMENTS];
  static int64_t tuples[MAX_ELEMENTS * MAX_RANK];
  for (int round = 0; round < 60; ++round) {
    walk_t walk = random_walk(&rng);
    int64_t update_shape[MAX_RANK], index_shape[MAX_RANK + 1];
    int64_t points = tuples_of(&walk, tuples, update_shape), inner = product(walk.extent, walk.width, walk.rank);
    int64_t elements = product(walk.extent, 0, walk.rank);
    memcpy(index_shape, update_shape, sizeof(update_shape));
    index_shape[walk.width] = walk.width;
    for (int i = walk.width; i < walk.rank; ++i) update_shape[i] = walk.extent[i];
    for (int64_t i = 0; i < elements; ++i) expected[i] = data[i] = (float)i;
    for (int64_t i = 0; i < points * inner; ++i) updates[i] = (float)(-1 - i);
    for (int64_t u = 0; u < points; ++u) {
      int64_t row = 0;
      for (int i = 0; i < walk.width; ++i) row = row * walk.extent[i] + tuples[u * walk.width + i];
      memcpy(&expected[row * inner], &updates[u * inner], (size_t)inner * sizeof(float));
    }
    char inputs[200], more[100];
    text_model_t t;
    text_begin(&t, 18);
    print_values(inputs, sizeof(inputs), "d", walk.extent, walk.rank);
    print_values(more, sizeof(more), "u", update_shape, walk.rank);
    strcat(inputs, more);
    text_main(&t, inputs, "y = ScatterND(d, i, u)", "y:f32");
    text_tensor(&t, t.proto.graph, "i", 7, (size_t)walk.width + 1, index_shape, tuples,
                (size_t)(points * walk.width) * sizeof(int64_t));
    text_run(&t, (const void*[]){data, updates});
    for (int64_t i = 0; i < elements; ++i) assert_true(text_at(&t, 0, (size_t)i) == (double)expected[i]);
    text_end(&t);
  }
}

// Every list of nested ranges, whichever of them is the faster one and however they overlap.
static void test_gather(void** state) {
  (void)state;
  weft_rng_t rng;
  weft_rng_seed(&rng, 32);
  static float data[MAX_ELEMENTS];
  int few = 0;
  for (int round = 0; round < 200; ++round) {
    int64_t extent[3] = {between(&rng, 1, 3), between(&rng, 12, 40), between(&rng, 1, 3)}, index[64];
    int64_t a = between(&rng, 1, 4), b = between(&rng, 1, 4), c = between(&rng, 1, 3);
    int64_t step_a = between(&rng, -3, 4), step_b = between(&rng, -2, 4), step_c = between(&rng, 1, 3), lowest = 0;
    int64_t highest = 0, count = a * b * c;
    for (int64_t i = 0; i < count; ++i) {
      index[i] = i / (b * c) * step_a + i / c % b * step_b + i % c * step_c;
      lowest = index[i] < lowest ? index[i] : lowest;
      highest = index[i] > highest ? index[i] : highest;
    }
    if (highest - lowest >= extent[1]) continue;
    int64_t base = between(&rng, 0, extent[1] - 1 - (highest - lowest)) - lowest;
    for (int64_t i = 0; i < count; ++i) index[i] += base;
    for (int64_t i = 0; i < product(extent, 0, 3); ++i) data[i] = (float)i;
    char inputs[100];
    text_model_t t;
    text_begin(&t, 18);
    print_values(inputs, sizeof(inputs), "d", extent, 3);
    text_main(&t, inputs, "y = Gather(d, i) axis:i=1", "y:f32");
    text_tensor(&t, t.proto.graph, "i", 7, 1, &count, index, (size_t)count * sizeof(int64_t));
    text_run(&t, (const void*[]){data});
    for (int64_t i = 0; i < extent[0] * count * extent[2]; ++i) {
      int64_t at = (i / (count * extent[2]) * extent[1] + index[i / extent[2] % count]) * extent[2] + i % extent[2];
      assert_true(text_at(&t, 0, (size_t)i) == (double)data[at]);
    }
    few += count_text(&t, "tensor.concat") == 0;
    text_end(&t);
  }
  assert_true(few > 25);
}

static void test_pieces(void** state) {
  (void)state;
  walk_t walk = {4, 4, {1, 16, 16, 33}, {0, 0, 2, 0}, {1, 16, 4, 33}, {1, 1, 1, 1}, {0, 1, 2, 3}};
  static int64_t tuples[16 * 4 * 33 * 4];
  int64_t shape[5], points = tuples_of(&walk, tuples, shape);
  shape[4] = 4;
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "d:f32[1,16,16,33] u:f32[1,16,4,33]", "y = ScatterND(d, i, u)", "y:f32");
  text_tensor(&t, t.proto.graph, "i", 7, 5, shape, tuples, (size_t)points * 4 * sizeof(int64_t));
  assert_null(text_import(&t));
  assert_int_equal(count_text(&t, "tensor.extract_slice"), 2);
  assert_int_equal(count_text(&t, "tensor.concat"), 1);
  text_end(&t);
  // 30 frames of 5, 8 apart, of one column
  int64_t index[150], count = 150;
  for (int i = 0; i < 150; ++i) index[i] = i / 5 * 8 + i % 5 + 2;
  text_begin(&t, 18);
  text_main(&t, "d:f32[2,300]", "y = Gather(d, i) axis:i=1", "y:f32");
  text_tensor(&t, t.proto.graph, "i", 7, 1, &count, index, sizeof(index));
  assert_null(text_import(&t));
  assert_int_equal(count_text(&t, "tensor.concat"), 0);
  text_end(&t);
}

static void test_walks(void** state) {
  (void)state;
  static const int64_t pads[] = {500, 512};
  text_model_t t;
  text_begin(&t, 18);
  text_main(&t, "x:f32[1000]", "y = Pad(x, p) mode:s=reflect", "y:f32");
  text_tensor(&t, t.proto.graph, "p", 7, 1, (int64_t[]){2}, pads, sizeof(pads));
  assert_null(text_import(&t));
  assert_int_equal(count_text(&t, "linalg.generic"), 2); // an end backwards each
  assert_true(count_text(&t, "tensor.extract_slice") <= 1);
  assert_int_equal(count_text(&t, "tensor.concat"), 1);
  text_end(&t);
  int64_t index[1200], count = 1200;
  for (int i = 0; i < 1200; ++i) index[i] = i / 20 * 4 + i % 20; // frames that overlap
  text_begin(&t, 18);
  text_main(&t, "x:f32[300]", "y = Gather(x, i)", "y:f32");
  text_tensor(&t, t.proto.graph, "i", 7, 1, &count, index, sizeof(index));
  assert_null(text_import(&t));
  assert_int_equal(count_text(&t, "linalg.generic"), 1);
  assert_int_equal(count_text(&t, "tensor.concat"), 0);
  text_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scatter), cmocka_unit_test(test_gather),
                                     cmocka_unit_test(test_pieces), cmocka_unit_test(test_walks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
