// score PROBABILITIES.npy EXPECTED.npy LABELS.npy: accuracy, and whether every predicted class is the expected one.
#include <stdio.h>

#include "base/npy.h"

// The class with the largest probability in each row.
static int64_t predicted(const weft_host_tensor_t* tensor, int64_t row) {
  const float* p = (const float*)tensor->data + row * tensor->extent[1];
  int64_t best = 0;
  for (int64_t i = 1; i < tensor->extent[1]; ++i) {
    if (p[i] > p[best]) best = i;
  }
  return best;
}

static weft_status_t score(weft_arena_t* arena, char** paths, int64_t* out_different) {
  weft_host_tensor_t got, expected, labels;
  WEFT_RETURN_IF_ERROR(weft_npy_read(arena, paths[0], &got));
  WEFT_RETURN_IF_ERROR(weft_npy_read(arena, paths[1], &expected));
  WEFT_RETURN_IF_ERROR(weft_npy_read(arena, paths[2], &labels));
  if (got.dtype != WEFT_DTYPE_F32 || expected.dtype != WEFT_DTYPE_F32 || labels.dtype != WEFT_DTYPE_I64 ||
      got.rank != 2 || expected.rank != 2 || labels.rank != 1 || got.extent[0] != labels.extent[0] ||
      expected.extent[0] != labels.extent[0] || got.extent[1] != expected.extent[1]) {
    return weft_error(INVALID_INPUT, "the files don't belong together: N x C f32, N x C f32 and N i64 are needed");
  }
  int64_t images = labels.extent[0], right = 0;
  for (int64_t i = 0; i < images; ++i) {
    *out_different += predicted(&got, i) != predicted(&expected, i);
    right += predicted(&got, i) == ((const int64_t*)labels.data)[i];
  }
  printf("accuracy %.2f %% (%lld of %lld images); ", 100.0 * (double)right / (double)images, (long long)right,
         (long long)images);
  if (*out_different) {
    printf("%lld predicted classes differ from the training framework's\n", (long long)*out_different);
  } else {
    printf("every predicted class is the training framework's\n");
  }
  return weft_ok();
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: score PROBABILITIES.npy EXPECTED.npy LABELS.npy\n");
    return 1;
  }
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  int64_t different = 0;
  weft_status_t status = score(&arena, argv + 1, &different);
  if (status) fprintf(stderr, "score: %s\n", weft_status_message(status));
  int code = status ? weft_status_code_exit(weft_status_code(status)) : different ? 4 : 0;
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  return code;
}
