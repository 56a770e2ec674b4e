// stories IMAGE.wafer TOKENIZER.bin [MODEL.onnx]: writes a story greedily, every step on the mesh simulator.
//
// The image is a decoder compiled for a window of N positions and an empty cache (see tell). Attention is causal, so
// the logits at position t depend on the tokens up to t only, and what stands behind them does not matter: one image
// serves all steps. With MODEL.onnx every chosen token is compared with that of the reference (MLIR's JIT).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "ir/tensor/eval.h"
#include "runtime-sim/sim.h"

enum { BEGIN_OF_STORY = 1 };

// The tokenizer file of llama2.c: the longest token's length, then score, length and bytes of each token.
typedef struct vocabulary_t {
  weft_mapping_t file;
  const char** text;
  int32_t* length;
  int32_t count;
} vocabulary_t;

static weft_status_t read_vocabulary(weft_arena_t* arena, const char* path, vocabulary_t* out) {
  *out = (vocabulary_t){0};
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &out->file));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, out->file.size / 8 + 1, &out->text));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, out->file.size / 8 + 1, &out->length));
  for (size_t at = 4; at + 8 <= out->file.size;) {
    int32_t length = 0;
    memcpy(&length, out->file.data + at + 4, 4);
    if (length < 0 || (size_t)length > out->file.size - at - 8) break;
    out->text[out->count] = (const char*)out->file.data + at + 8;
    out->length[out->count++] = length;
    at += 8 + (size_t)length;
  }
  if (out->count < 3) return weft_error(INVALID_INPUT, "%s is no tokenizer file", path);
  return weft_ok();
}

static void print_token(const vocabulary_t* v, int64_t token) {
  int byte = 0, end = 0;
  char piece[8] = "";
  if (v->length[token] == 6) memcpy(piece, v->text[token], 6);
  if (sscanf(piece, "<0x%2x>%n", (unsigned*)&byte, &end) == 1 && end == 6) {
    putchar(byte);
  } else {
    fwrite(v->text[token], 1, (size_t)v->length[token], stdout);
  }
  fflush(stdout);
}

static int64_t best(const float* logits, int64_t count) {
  int64_t winner = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (logits[i] > logits[winner]) winner = i;
  }
  return winner;
}

typedef struct story_t {
  weft_arena_t arena;
  weft_image_t image;
  weft_sim_t* sim;
  uint32_t ids, logits; // their places in the image's table
  int64_t window, words;
  int64_t* token; // [window]
  float* value;   // [window * words]
  weft_tensor_context_t* context;
  weft_model_t model;
  weft_eval_t* eval; // NULL without a reference
  float* wanted;
  weft_host_tensor_t* tensors; // inputs, then outputs of the reference
} story_t;

static weft_status_t open_image(story_t* s, const char* path) {
  WEFT_RETURN_IF_ERROR(weft_image_map(s->arena.allocator, path, &s->image));
  s->ids = s->logits = UINT32_MAX;
  for (size_t i = 0; i < s->image.io_count; ++i) {
    const char* name = weft_image_string(&s->image, s->image.io[i].name);
    if (!strcmp(name, "input_ids")) s->ids = (uint32_t)i;
    if (!strcmp(name, "logits")) s->logits = (uint32_t)i;
  }
  if (s->ids == UINT32_MAX || s->logits == UINT32_MAX) {
    return weft_error(INVALID_INPUT, "%s: the network needs an input 'input_ids' and an output 'logits'", path);
  }
  s->window = s->image.io[s->ids].extent[1];
  s->words = s->image.io[s->logits].extent[2];
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&s->arena, (size_t)s->window, &s->token));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&s->arena, (size_t)(s->window * s->words), &s->value));
  return weft_sim_create(s->arena.allocator, &s->image, &s->sim);
}

static weft_status_t open_reference(story_t* s, const char* path) {
  WEFT_RETURN_IF_ERROR(weft_tensor_context_create(s->arena.allocator, &s->context));
  weft_frontend_dim_t dims[] = {{"batch", 1}, {"seq", s->window}, {"past", 0}};
  WEFT_RETURN_IF_ERROR(weft_frontend_import(s->context, &s->arena, path, dims, 3, &s->model));
  WEFT_RETURN_IF_ERROR(weft_eval_create(s->context, s->model.module, s->arena.allocator, &s->eval));
  int32_t count = s->model.input_count + s->model.output_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&s->arena, (size_t)count, &s->tensors));
  for (int32_t i = 0; i < count; ++i) {
    const weft_frontend_io_t* io =
        i < s->model.input_count ? &s->model.input[i] : &s->model.output[i - s->model.input_count];
    weft_host_tensor_t* t = &s->tensors[i];
    *t = (weft_host_tensor_t){
        .name = io->name, .dtype = io->dtype, .rank = io->rank, .size = weft_dtype_size(io->dtype)};
    for (int32_t d = 0; d < io->rank; ++d) t->size *= (size_t)(t->extent[d] = io->extent[d]);
    WEFT_RETURN_IF_ERROR(weft_arena_allocate(&s->arena, t->size + 1, 1, &t->data));
    if (!strcmp(io->name, "logits")) s->wanted = t->data;
  }
  return weft_ok();
}

// The token that the reference chooses after the first `count` tokens.
static weft_status_t ask_reference(story_t* s, int64_t count, int64_t* out_token) {
  memcpy(s->tensors[0].data, s->token, (size_t)s->window * sizeof *s->token);
  WEFT_RETURN_IF_ERROR(weft_eval_run(s->eval, s->tensors, s->model.input_count, s->tensors + s->model.input_count,
                                     s->model.output_count));
  *out_token = best(s->wanted + (count - 1) * s->words, s->words);
  return weft_ok();
}

static weft_status_t tell(story_t* s, const vocabulary_t* vocabulary, int64_t tokens) {
  int64_t cycles = 0, written = 0;
  s->token[0] = BEGIN_OF_STORY;
  for (; written < tokens; ++written) {
    WEFT_RETURN_IF_ERROR(weft_sim_set_input(s->sim, s->ids, s->token, (size_t)s->window * sizeof *s->token));
    WEFT_RETURN_IF_ERROR(weft_sim_run(s->sim, 1, NULL));
    size_t size = (size_t)(s->window * s->words) * sizeof *s->value;
    WEFT_RETURN_IF_ERROR(weft_sim_get_output(s->sim, s->logits, s->value, size));
    weft_sim_report_t report;
    weft_sim_report(s->sim, &report);
    cycles += report.cycles;
    int64_t next = best(s->value + written * s->words, s->words);
    if (s->eval) {
      int64_t wanted = 0;
      WEFT_RETURN_IF_ERROR(ask_reference(s, written + 1, &wanted));
      if (next != wanted) {
        return weft_error(MISMATCH, "token %lld: the mesh chose %lld, the reference %lld", (long long)written,
                          (long long)next, (long long)wanted);
      }
    }
    if (next >= vocabulary->count)
      return weft_error(INVALID_INPUT, "token %lld is not in the vocabulary", (long long)next);
    print_token(vocabulary, next);
    if (written + 1 < s->window) s->token[written + 1] = next;
  }
  printf("\n%lld tokens, %lld cycles each%s\n", (long long)written, (long long)(cycles / written),
         s->eval ? ", each the reference's choice" : "");
  return weft_ok();
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: stories IMAGE.wafer TOKENIZER.bin [MODEL.onnx]\n");
    return 1;
  }
  story_t story = {0};
  vocabulary_t vocabulary = {0};
  weft_arena_initialize(weft_allocator_system(), &story.arena);
  weft_status_t status = read_vocabulary(&story.arena, argv[2], &vocabulary);
  if (!status) status = open_image(&story, argv[1]);
  if (!status && argc > 3) status = open_reference(&story, argv[3]);
  if (!status) status = tell(&story, &vocabulary, story.window);
  int code = weft_status_code_exit(weft_status_code(status));
  if (status) fprintf(stderr, "stories: %s\n", weft_status_message(status));
  weft_status_free(status);
  weft_eval_destroy(story.eval);
  if (story.context) {
    if (!mlirModuleIsNull(story.model.module)) mlirModuleDestroy(story.model.module);
    weft_tensor_context_destroy(story.context);
  }
  weft_sim_destroy(story.sim);
  weft_image_unmap(&story.image);
  weft_file_unmap(&vocabulary.file);
  weft_arena_deinitialize(&story.arena);
  return code;
}
