// From routed fabric IR to an image: the programs of all kernels, by several threads; what their tiles share, kernel by
// kernel, tile by tile; then the host, then the tables.
#include <inttypes.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/constants.h"
#include "backend/program.h"
#include "backend/tables.h"
#include "backend/template.h"

typedef struct emitter_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  const weft_defects_t* defects;
  const weft_control_t* control;
  weft_allocator_t allocator; // of what doesn't outlive the emitter
  weft_arena_t* arena;        // of the image
  weft_endpoints_t endpoints;
  weft_constants_t constants;
  weft_program_tables_t programs;
  WEFT_ARRAY(weft_image_tile_t) tiles;
  // While programs are written:
  _Atomic(uint64_t) written; // tiles
  _Atomic(int32_t) failed;   // the first kernel that has; those behind it aren't begun any more
} emitter_t;

enum { TILES_BETWEEN_CHECKS = 1024, TILES_A_THREAD = 512 }; // fewer tiles aren't worth another thread

// One kernel while its tiles are visited.
typedef struct kernel_emitter_t {
  weft_status_t status; // of its programs
  weft_arena_t scratch;
  weft_layout_t layout;
  weft_tile_plan_t plan;
  weft_kernel_constants_t constants;
  weft_template_set_t templates;
  weft_writer_t writer;
} kernel_emitter_t;

static weft_status_t at_tile(const emitter_t* e, const weft_kernel_t* kernel, int32_t logical, weft_status_t status) {
  int32_t tile = kernel->tile[logical];
  return weft_status_annotate(status, "kernel '%s', tile %" PRId32 ",%" PRId32 " (logical tile %" PRId32 ")",
                              kernel->name, tile % e->machine->width, tile / e->machine->width, logical);
}

static weft_status_t write_program(kernel_emitter_t* k, int32_t logical) {
  weft_tile_plan_set(&k->plan, logical);
  k->writer.words.count = 0;
  WEFT_RETURN_IF_ERROR(weft_program_tile(&k->plan, &k->writer));
  return weft_template_set_add(&k->templates, k->writer.words.data, k->writer.words.count);
}

static int32_t tile_count(const weft_kernel_t* kernel) {
  return kernel->alternative[kernel->chosen].gy * kernel->alternative[kernel->chosen].gx;
}

static weft_status_t write_programs(emitter_t* e, kernel_emitter_t* k, uint64_t total) {
  int32_t tiles = tile_count(k->plan.kernel);
  for (int32_t l = 0; l < tiles; ++l) {
    if (l % TILES_BETWEEN_CHECKS == 0) {
      int32_t left = tiles - l;
      WEFT_RETURN_IF_ERROR(weft_control_check(e->control, "emit"));
      uint64_t written =
          atomic_fetch_add(&e->written, (uint64_t)(left < TILES_BETWEEN_CHECKS ? left : TILES_BETWEEN_CHECKS));
      if (omp_get_thread_num() == 0) weft_control_progress(e->control, "emit", written, total);
    }
    weft_status_t status = write_program(k, l);
    if (status) return at_tile(e, k->plan.kernel, l, status);
  }
  return weft_ok();
}

static weft_status_t add_tile(emitter_t* e, kernel_emitter_t* k, int32_t logical) {
  weft_segment_list_t list;
  weft_tile_plan_set_loaded(&k->plan, logical);
  WEFT_RETURN_IF_ERROR(weft_kernel_constants_tile(&k->constants, k->plan.box, k->plan.needed, &list));
  weft_image_tile_t tile = {.tile = k->plan.kernel->tile[logical],
                            .kernel = k->plan.kernel_index,
                            .segments = list.first,
                            .segment_count = list.count,
                            .logical = (uint32_t)logical};
  return WEFT_ARRAY_PUSH(e->allocator, &e->tiles, tile);
}

// Code, then data: their sizes are known once all programs are.
static weft_status_t finish_programs(emitter_t* e, kernel_emitter_t* k, size_t first_tile) {
  int64_t code = (int64_t)(k->templates.most_words * sizeof(uint32_t));
  code = (code + WEFT_LAYOUT_ALIGNMENT - 1) / WEFT_LAYOUT_ALIGNMENT * WEFT_LAYOUT_ALIGNMENT;
  int64_t bytes = code + k->layout.bytes;
  if (bytes > e->machine->tile_memory)
    return at_tile(e, k->plan.kernel, (int32_t)k->templates.longest,
                   weft_error(DOES_NOT_FIT,
                              "a tile needs %" PRId64 " bytes (code %" PRId64 ", buffers and constants %" PRId64
                              "), it has %" PRId64 "; more tiles for this kernel would make its share smaller",
                              bytes, code, k->layout.bytes, e->machine->tile_memory));
  WEFT_RETURN_IF_ERROR(weft_template_set_finish(&k->templates, code, &e->programs, e->tiles.data + first_tile));
  weft_kernel_constants_relocate(&k->constants, code);
  for (size_t t = first_tile; t < e->tiles.count; ++t) e->tiles.data[t].memory_bytes = (uint32_t)bytes;
  return weft_ok();
}

static weft_status_t prepare_kernel(emitter_t* e, kernel_emitter_t* k, int32_t index) {
  const weft_kernel_t* kernel = &e->fabric->kernel[index];
  const weft_split_t* split = &kernel->alternative[kernel->chosen].split;
  k->plan = (weft_tile_plan_t){.fabric = e->fabric,
                               .kernel = kernel,
                               .split = split,
                               .layout = &k->layout,
                               .endpoints = &e->endpoints,
                               .kernel_index = index};
  weft_status_t status = weft_layout_create(e->fabric, kernel, &k->scratch, &k->layout);
  if (status) return weft_status_annotate(status, "kernel '%s'", kernel->name);
  WEFT_RETURN_IF_ERROR(weft_tile_plan_prepare(&k->plan, &k->scratch));
  WEFT_RETURN_IF_ERROR(weft_kernel_constants_create(&e->constants, e->fabric, kernel, &k->layout, &k->constants));
  k->plan.loaded = k->constants.loaded;
  return weft_ok();
}

static void release_kernel(emitter_t* e, kernel_emitter_t* k) {
  weft_status_free(k->status);
  k->status = weft_ok();
  WEFT_ARRAY_FREE(e->allocator, &k->writer.words);
  weft_template_set_deinitialize(&k->templates);
  weft_kernel_constants_deinitialize(&k->constants);
  weft_arena_deinitialize(&k->scratch);
}

// What the tiles of all kernels share: constants and tables. In the order of the kernels.
static weft_status_t finish_kernel(emitter_t* e, kernel_emitter_t* k) {
  weft_status_t status = k->status;
  k->status = weft_ok();
  size_t first_tile = e->tiles.count;
  int32_t tiles = status ? 0 : tile_count(k->plan.kernel);
  for (int32_t l = 0; !status && l < tiles; ++l) {
    status = add_tile(e, k, l);
    if (status) status = at_tile(e, k->plan.kernel, l, status);
  }
  return status ? status : finish_programs(e, k, first_tile);
}

static int32_t thread_count(const emitter_t* e, uint64_t tiles) {
  if (e->control && e->control->threads > 0) return e->control->threads;
  uint64_t cores = (uint64_t)omp_get_num_procs(), most = tiles / TILES_A_THREAD;
  return most <= 1 ? 1 : (int32_t)(most < cores ? most : cores);
}

static weft_status_t emit_kernels(emitter_t* e) {
  uint64_t total = e->endpoints.slot_count - 1; // a slot for each logical tile, and one for the host
  int32_t count = e->fabric->kernel_count;
  kernel_emitter_t* kernels;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(e->allocator, (size_t)count, sizeof(*kernels), (void**)&kernels));
  int32_t threads = thread_count(e, total);
  for (int32_t i = 0; i < count; ++i) {
    kernels[i] = (kernel_emitter_t){.writer.allocator = e->allocator, .constants.all = &e->constants};
    weft_arena_initialize(e->allocator, &kernels[i].scratch);
    weft_template_set_initialize(e->allocator, &kernels[i].templates);
  }
  atomic_store(&e->failed, count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int32_t i = 0; i < count; ++i) {
    if (i > atomic_load(&e->failed)) continue;
    kernels[i].status = prepare_kernel(e, &kernels[i], i);
    if (!kernels[i].status) kernels[i].status = write_programs(e, &kernels[i], total);
    int32_t failed = atomic_load(&e->failed);
    while (kernels[i].status && i < failed && !atomic_compare_exchange_weak(&e->failed, &failed, i)) {
    }
  }
  weft_status_t status = weft_ok();
  for (int32_t i = 0; i < count; ++i) {
    if (!status) status = finish_kernel(e, &kernels[i]);
    release_kernel(e, &kernels[i]);
  }
  weft_allocator_free(e->allocator, kernels);
  if (!status) weft_control_progress(e->control, "emit", total, total);
  return status;
}

static weft_status_t emit_host(emitter_t* e, const weft_image_io_t* io, uint32_t host_bytes) {
  weft_writer_t writer = {.allocator = e->allocator};
  weft_template_set_t templates;
  weft_template_set_initialize(e->allocator, &templates);
  weft_image_tile_t tile = {.tile = WEFT_HOST_TILE, .kernel = -1, .memory_bytes = host_bytes};
  weft_status_t status = weft_program_host(e->fabric, &e->endpoints, io, &writer);
  if (!status) status = weft_template_set_add(&templates, writer.words.data, writer.words.count);
  if (!status) status = weft_template_set_finish(&templates, 0, &e->programs, &tile);
  if (!status) status = WEFT_ARRAY_PUSH(e->allocator, &e->tiles, tile);
  WEFT_ARRAY_FREE(e->allocator, &writer.words);
  weft_template_set_deinitialize(&templates);
  return status;
}

// The host, whose index is the least, comes last.
static int compare_tiles(const void* a, const void* b) {
  uint32_t left = (uint32_t)((const weft_image_tile_t*)a)->tile, right = (uint32_t)((const weft_image_tile_t*)b)->tile;
  return (left > right) - (left < right);
}

static weft_status_t keep_text(weft_arena_t* arena, const weft_text_t* text, const char** out_text, size_t* out_size) {
  *out_size = text->count;
  return weft_arena_copy(arena, text->data, text->count, (void**)out_text);
}

static weft_status_t keep_machine(emitter_t* e, weft_image_t* image) {
  weft_text_t text;
  weft_text_initialize(e->allocator, &text);
  weft_status_t status = weft_machine_print(e->machine, &text);
  if (!status) status = keep_text(e->arena, &text, &image->machine_xml, &image->machine_xml_size);
  weft_text_deinitialize(&text);
  weft_text_initialize(e->allocator, &text);
  if (!status) status = weft_defects_print(e->defects, &text);
  if (!status) status = keep_text(e->arena, &text, &image->defects_text, &image->defects_text_size);
  weft_text_deinitialize(&text);
  image->header.defects = weft_defects_digest(e->defects);
  return status ? status : weft_machine_digest(e->machine, &image->header.machine);
}

// Moves the tables that grew into the image's arena.
#define KEEP(field, array)                                                                                             \
  do {                                                                                                                 \
    image->field##_count = (array).count;                                                                              \
    WEFT_RETURN_IF_ERROR(                                                                                              \
        weft_arena_copy(e->arena, (array).data, (array).count * sizeof(*(array).data), (void**)&image->field));        \
  } while (0)
static weft_status_t keep_tables(emitter_t* e, weft_image_t* image) {
  qsort(e->tiles.data, e->tiles.count, sizeof(*e->tiles.data), compare_tiles);
  KEEP(tiles, e->tiles);
  KEEP(programs, e->programs.programs);
  KEEP(code, e->programs.code);
  KEEP(patches, e->programs.patches);
  KEEP(params, e->programs.params);
  KEEP(segments, e->constants.segments);
  KEEP(consts, e->constants.bytes);
  return weft_ok();
}

static weft_status_t emit(emitter_t* e, weft_arena_t* scratch, weft_image_t* image) {
  uint32_t host_bytes = 0;
  WEFT_RETURN_IF_ERROR(weft_fabric_match(e->fabric, e->machine, e->defects));
  WEFT_RETURN_IF_ERROR(weft_endpoints_create(e->fabric, e->machine, scratch, &e->endpoints));
  WEFT_RETURN_IF_ERROR(emit_kernels(e));
  WEFT_RETURN_IF_ERROR(weft_tables_create(e->fabric, e->machine, &e->endpoints, e->arena, image, &host_bytes));
  WEFT_RETURN_IF_ERROR(emit_host(e, image->io, host_bytes));
  WEFT_RETURN_IF_ERROR(keep_machine(e, image));
  return keep_tables(e, image);
}

weft_status_t weft_backend_emit(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                const weft_defects_t* defects, weft_arena_t* arena, const weft_control_t* control,
                                weft_image_t* out_image) {
  memset(out_image, 0, sizeof(*out_image));
  if (fabric->stage != WEFT_STAGE_ROUTED)
    return weft_error(INVALID_ARGUMENT, "only a routed fabric can be turned into an image");
  emitter_t emitter = {.fabric = fabric,
                       .machine = machine,
                       .defects = defects,
                       .control = control,
                       .allocator = arena->allocator,
                       .arena = arena,
                       .programs.allocator = arena->allocator};
  weft_arena_t scratch;
  weft_arena_initialize(arena->allocator, &scratch);
  weft_constants_initialize(arena->allocator, &emitter.constants);
  weft_status_t status = emit(&emitter, &scratch, out_image);
  weft_constants_deinitialize(&emitter.constants);
  weft_program_tables_deinitialize(&emitter.programs);
  WEFT_ARRAY_FREE(emitter.allocator, &emitter.tiles);
  weft_arena_deinitialize(&scratch);
  return status;
}
