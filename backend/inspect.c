// The readable form of an image. Everything but the instructions is a comment, so that the whole text assembles: of all
// programs, to the words of .weft.code.
#include <inttypes.h>
#include <string.h>

#include "backend/backend.h"

typedef struct inspector_t {
  const weft_image_t* image;
  const char *kernel, *stream; // NULL: all
  weft_text_t* text;
} inspector_t;

#define PRINT(...) WEFT_RETURN_IF_ERROR(weft_text_printf(n->text, __VA_ARGS__))

static const char* string_at(const inspector_t* n, uint32_t offset) {
  return weft_image_string(n->image, offset);
}

static const char* kernel_name(const inspector_t* n, int32_t kernel) {
  return kernel < 0 ? "host" : string_at(n, n->image->kernels[kernel].name);
}

static bool wants_kernel(const inspector_t* n, int32_t kernel) {
  return !n->kernel || !strcmp(n->kernel, kernel_name(n, kernel));
}

static bool wants_stream(const inspector_t* n, const weft_image_stream_t* stream) {
  if (n->stream && strcmp(n->stream, string_at(n, stream->name)) != 0) return false;
  return wants_kernel(n, stream->source_kernel) || wants_kernel(n, stream->sink_kernel);
}

static weft_status_t print_digest(const inspector_t* n, const char* what, const weft_digest_t* digest) {
  char text[65];
  weft_digest_format(digest, text);
  PRINT(";   %-8s %s\n", what, text);
  return weft_ok();
}

static weft_status_t print_header(const inspector_t* n) {
  const weft_image_t* m = n->image;
  PRINT("; image of '%s', version %" PRIu32 ", mesh %" PRId32 "x%" PRId32 ", seed %" PRIu64 "\n",
        string_at(n, m->header.model_name), m->header.version, m->header.width, m->header.height, m->header.seed);
  WEFT_RETURN_IF_ERROR(print_digest(n, "model", &m->header.model));
  WEFT_RETURN_IF_ERROR(print_digest(n, "machine", &m->header.machine));
  WEFT_RETURN_IF_ERROR(print_digest(n, "defects", &m->header.defects));
  PRINT(";   %zu tiles, %zu programs of %zu words, %zu parameters, %zu bytes of constants, %zu routes\n",
        m->tiles_count, m->programs_count, m->code_count, m->params_count, m->consts_count, m->routes_count);
  return weft_ok();
}

static weft_status_t print_kernels(const inspector_t* n) {
  for (size_t k = 0; k < n->image->kernels_count; ++k) {
    const weft_image_kernel_t* kernel = &n->image->kernels[k];
    if (!wants_kernel(n, (int32_t)k)) continue;
    PRINT("; kernel '%s': grid %" PRId32 "x%" PRId32 " in region %" PRId32 ",%" PRId32 " %" PRId32 "x%" PRId32
          ", %" PRId64 " cycles, %" PRId64 " of streams; nodes %s\n",
          string_at(n, kernel->name), kernel->gy, kernel->gx, kernel->x, kernel->y, kernel->width, kernel->height,
          kernel->cycles, kernel->stream_cycles, string_at(n, kernel->nodes));
  }
  return weft_ok();
}

static weft_status_t print_io(const inspector_t* n) {
  for (size_t i = 0; i < n->image->io_count; ++i) {
    const weft_image_io_t* io = &n->image->io[i];
    PRINT("; %s '%s': ", io->is_output ? "output" : "input", string_at(n, io->name));
    for (uint32_t d = 0; d < io->rank; ++d) PRINT("%" PRId64 "x", io->extent[d]);
    PRINT("%s, host address %" PRIu64 ", %" PRIu64 " bytes a step", weft_dtype_name((weft_dtype_e)io->dtype),
          io->address, io->step_stride);
    if (io->colour != UINT32_MAX) {
      const weft_image_host_colour_t* host = &n->image->host_colours[io->colour];
      PRINT(", port %" PRId32 " colour %" PRIu32, host->port, host->colour);
    }
    PRINT("\n");
  }
  return weft_ok();
}

static weft_status_t print_streams(const inspector_t* n) {
  int32_t width = n->image->header.width;
  for (size_t s = 0; s < n->image->streams_count; ++s) {
    const weft_image_stream_t* stream = &n->image->streams[s];
    if (!wants_stream(n, stream)) continue;
    PRINT("; stream '%s': %s (%" PRIu32 " tiles from %" PRId32 ",%" PRId32 ", colour %" PRIu32 ") -> %s (%" PRIu32
          " tiles from %" PRId32 ",%" PRId32 ")\n",
          string_at(n, stream->name), kernel_name(n, stream->source_kernel), stream->source_count,
          stream->source_tile % width, stream->source_tile / width, stream->source_colour,
          kernel_name(n, stream->sink_kernel), stream->sink_count, stream->sink_tile % width,
          stream->sink_tile / width);
  }
  return weft_ok();
}

static weft_status_t print_routes_of(const inspector_t* n, int32_t tile) {
  for (size_t r = 0; r < n->image->routes_count; ++r) {
    const weft_image_route_t* route = &n->image->routes[r];
    if (route->tile != tile) continue;
    PRINT(";   colour %d:", route->colour);
    for (int32_t i = 0; i < route->input_count; ++i)
      PRINT(" %s", weft_direction_name((weft_direction_e)route->input[i]));
    PRINT(" ->");
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (route->outputs >> d & 1)
        PRINT(" %s as %d", weft_direction_name((weft_direction_e)d), route->output_colour[d]);
    PRINT("\n");
  }
  return weft_ok();
}

static weft_status_t print_tile(const inspector_t* n, const weft_image_tile_t* tile) {
  const weft_image_t* m = n->image;
  const weft_image_program_t* program = &m->programs[tile->program];
  if (tile->tile == WEFT_HOST_TILE)
    PRINT("; host: program %" PRIu32 "\n", tile->program);
  else
    PRINT("; tile %" PRId32 ",%" PRId32 ": kernel '%s', logical tile %" PRIu32 ", program %" PRIu32 ", %" PRIu32
          " bytes\n",
          tile->tile % m->header.width, tile->tile / m->header.width, kernel_name(n, tile->kernel), tile->logical,
          tile->program, tile->memory_bytes);
  for (uint32_t s = 0; s < tile->segment_count; ++s) {
    const weft_image_segment_t* segment = &m->segments[tile->segments + s];
    PRINT(";   constants [%" PRIu32 "], %" PRIu32 " bytes from %" PRIu64 "\n", segment->address, segment->size,
          segment->offset);
  }
  WEFT_RETURN_IF_ERROR(print_routes_of(n, tile->tile));
  uint32_t* words;
  weft_allocator_t allocator = n->text->allocator;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, program->code_words, sizeof(*words), (void**)&words));
  weft_image_tile_program(m, tile, words);
  weft_status_t status = weft_isa_disassemble(words, program->code_words, NULL, n->text);
  weft_allocator_free(allocator, words);
  return status;
}

static weft_status_t print_template(const inspector_t* n, const weft_image_program_t* program) {
  int32_t* parameter_at;
  weft_allocator_t allocator = n->text->allocator;
  WEFT_RETURN_IF_ERROR(
      weft_allocator_calloc(allocator, program->code_words, sizeof(*parameter_at), (void**)&parameter_at));
  for (uint32_t w = 0; w < program->code_words; ++w) parameter_at[w] = -1;
  for (uint32_t p = 0; p < program->patch_count; ++p)
    parameter_at[n->image->patches[program->patches + p]] = (int32_t)p;
  weft_status_t status =
      weft_isa_disassemble(n->image->code + program->code, program->code_words, parameter_at, n->text);
  weft_allocator_free(allocator, parameter_at);
  return status;
}

// users: for each program, the tiles that run it, and a kernel of theirs.
typedef struct user_t {
  size_t tiles;
  int32_t kernel;
} user_t;

static weft_status_t print_templates(const inspector_t* n, const user_t* users) {
  for (size_t p = 0; p < n->image->programs_count; ++p) {
    const weft_image_program_t* program = &n->image->programs[p];
    if (!users[p].tiles || !wants_kernel(n, users[p].kernel)) continue;
    PRINT("; program %zu: %s, %zu tiles, %" PRIu32 " words, %" PRIu32 " parameters\n", p,
          kernel_name(n, users[p].kernel), users[p].tiles, program->code_words, program->patch_count);
    WEFT_RETURN_IF_ERROR(print_template(n, program));
  }
  return weft_ok();
}

static weft_status_t print_programs(const inspector_t* n) {
  user_t* users;
  weft_allocator_t allocator = n->text->allocator;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, n->image->programs_count, sizeof(*users), (void**)&users));
  for (size_t t = 0; t < n->image->tiles_count; ++t) {
    user_t* user = &users[n->image->tiles[t].program];
    if (!user->tiles++ || wants_kernel(n, n->image->tiles[t].kernel)) user->kernel = n->image->tiles[t].kernel;
  }
  weft_status_t status = print_templates(n, users);
  weft_allocator_free(allocator, users);
  return status;
}

static weft_status_t print_one_tile(const inspector_t* n, int32_t tile) {
  for (size_t t = 0; t < n->image->tiles_count; ++t)
    if (n->image->tiles[t].tile == tile) return print_tile(n, &n->image->tiles[t]);
  const weft_image_header_t* h = &n->image->header;
  if (tile < 0 || tile >= h->width * h->height)
    return weft_error(NOT_FOUND, "tile %" PRId32 " is not on the mesh of %" PRId32 "x%" PRId32, tile, h->width,
                      h->height);
  PRINT("; tile %" PRId32 ",%" PRId32 ": runs no program\n", tile % h->width, tile / h->width);
  return print_routes_of(n, tile);
}

// A name that is asked for and isn't there is a mistake, not an empty listing.
static weft_status_t check_names(const inspector_t* n) {
  bool kernel = !n->kernel || !strcmp(n->kernel, "host"), stream = !n->stream;
  for (size_t k = 0; k < n->image->kernels_count; ++k) kernel = kernel || wants_kernel(n, (int32_t)k);
  for (size_t s = 0; s < n->image->streams_count; ++s)
    stream = stream || !strcmp(n->stream, string_at(n, n->image->streams[s].name));
  if (!kernel) return weft_error(NOT_FOUND, "no kernel '%s' in the image", n->kernel);
  if (!stream) return weft_error(NOT_FOUND, "no stream '%s' in the image", n->stream);
  return weft_ok();
}

weft_status_t weft_backend_inspect(const weft_image_t* image, int32_t tile, const char* kernel, const char* stream,
                                   weft_text_t* text) {
  inspector_t inspector = {image, kernel, stream, text}, *n = &inspector;
  WEFT_RETURN_IF_ERROR(check_names(n));
  if (tile != INT32_MIN) return print_one_tile(n, tile);
  if (!kernel && !stream) WEFT_RETURN_IF_ERROR(print_header(n));
  if (!stream) WEFT_RETURN_IF_ERROR(print_kernels(n));
  if (!kernel && !stream) WEFT_RETURN_IF_ERROR(print_io(n));
  WEFT_RETURN_IF_ERROR(print_streams(n));
  return stream ? weft_ok() : print_programs(n);
}
