// An image becomes a simulator. Nothing of it is trusted: every index, range and digest is checked here or in what is
// called from here.
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

static bool range_within(uint64_t first, uint64_t count, uint64_t total) {
  return first <= total && count <= total - first;
}

static weft_status_t load_machine(weft_sim_t* sim) {
  const weft_image_t* image = sim->image;
  if (!image->machine_xml || !image->defects_text)
    return weft_error(INVALID_INPUT, "the image has no machine or no defect map");
  WEFT_RETURN_IF_ERROR(
      weft_machine_parse(image->machine_xml, image->machine_xml_size, "the image's machine", &sim->machine));
  WEFT_RETURN_IF_ERROR(weft_defects_parse(sim->allocator, image->defects_text, image->defects_text_size,
                                          "the image's defects", &sim->machine, &sim->defects));
  weft_digest_t machine, defects = weft_defects_digest(&sim->defects);
  WEFT_RETURN_IF_ERROR(weft_machine_digest(&sim->machine, &machine));
  bool same_machine = weft_digest_compare(&machine, &image->header.machine) == 0;
  if (!same_machine || weft_digest_compare(&defects, &image->header.defects) != 0) {
    char found[65], stated[65];
    weft_digest_format(same_machine ? &defects : &machine, found);
    weft_digest_format(same_machine ? &image->header.defects : &image->header.machine, stated);
    return weft_error(INVALID_INPUT, "the image's %s has digest %s, its header says %s",
                      same_machine ? "defect map" : "machine", found, stated);
  }
  if (image->header.width != sim->machine.width || image->header.height != sim->machine.height)
    return weft_error(INVALID_INPUT, "the image is for %dx%d tiles, its machine has %dx%d", image->header.width,
                      image->header.height, sim->machine.width, sim->machine.height);
  return weft_ok();
}

static weft_status_t load_io(weft_sim_t* sim) {
  const weft_image_t* image = sim->image;
  if (image->io_count > INT32_MAX) return weft_error(INVALID_INPUT, "too many inputs and outputs");
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, image->io_count, &sim->io));
  uint64_t end = 0;
  for (size_t i = 0; i < image->io_count; ++i) {
    const weft_image_io_t* io = &image->io[i];
    const char* name = weft_image_string(image, io->name);
    if (io->dtype >= WEFT_DTYPE_COUNT || io->rank > 8 || io->is_output > 1)
      return weft_error(INVALID_INPUT, "input or output %zu ('%s'): type %u, rank %u", i, name, io->dtype, io->rank);
    int64_t elements = 1, bytes;
    for (uint32_t d = 0; d < io->rank; ++d)
      if (io->extent[d] < 0 || !weft_checked_mul(elements, io->extent[d], &elements))
        return weft_error(INVALID_INPUT, "'%s': extent %" PRId64 " of dimension %u", name, io->extent[d], d);
    if (!weft_checked_mul(elements, (int64_t)weft_dtype_size((weft_dtype_e)io->dtype), &bytes) ||
        (uint64_t)bytes > io->step_stride)
      return weft_error(INVALID_INPUT, "'%s': a tensor has %" PRId64 " elements, %" PRIu64 " bytes are there for it",
                        name, elements, io->step_stride);
    if (io->address < end || !range_within(io->address, io->step_stride, (uint64_t)sim->machine.host_memory))
      return weft_error(INVALID_INPUT, "'%s': host address %" PRIu64 " isn't behind the one before, or beyond %" PRId64,
                        name, io->address, sim->machine.host_memory);
    end = io->address + io->step_stride;
    sim->io[i] = (weft_sim_io_t){.elements = elements, .bytes = bytes};
  }
  return weft_ok();
}

static weft_status_t load_programs(const weft_sim_t* sim) {
  const weft_image_t* image = sim->image;
  for (size_t p = 0; p < image->programs_count; ++p) {
    const weft_image_program_t* program = &image->programs[p];
    if (!range_within(program->code, program->code_words, image->code_count) ||
        !range_within(program->patches, program->patch_count, image->patches_count))
      return weft_error(INVALID_INPUT, "program %zu: its code or patches are out of range", p);
    const uint32_t* patches = image->patches + program->patches;
    for (uint32_t i = 0; i < program->patch_count; ++i)
      if (patches[i] >= program->code_words || (i > 0 && patches[i] <= patches[i - 1]))
        return weft_error(INVALID_INPUT, "program %zu: patch %u at word %u of %u", p, i, patches[i],
                          program->code_words);
  }
  return weft_ok();
}

static weft_status_t verify_tile_place(const weft_sim_t* sim, size_t index) {
  const weft_image_tile_t* tile = &sim->image->tiles[index];
  if (tile->tile == WEFT_HOST_TILE) {
    if (index + 1 != sim->image->tiles_count)
      return weft_error(INVALID_INPUT, "tile %zu: the host isn't the last", index);
    return weft_ok();
  }
  if (tile->tile < 0 || tile->tile >= weft_sim_tile_count(sim))
    return weft_error(INVALID_INPUT, "tile %zu: index %d is not on the %dx%d mesh", index, tile->tile,
                      sim->machine.width, sim->machine.height);
  if (index > 0 && tile->tile <= sim->image->tiles[index - 1].tile)
    return weft_error(INVALID_INPUT, "tile %zu: index %d isn't above the one before", index, tile->tile);
  if (!weft_defects_live(&sim->defects, tile->tile))
    return weft_error(INVALID_INPUT, "tile (%d,%d) is dead", tile->tile % sim->machine.width,
                      tile->tile / sim->machine.width);
  if (tile->memory_bytes > sim->machine.tile_memory)
    return weft_error(INVALID_INPUT, "tile (%d,%d) uses %u bytes, a tile has %" PRId64, tile->tile % sim->machine.width,
                      tile->tile / sim->machine.width, tile->memory_bytes, sim->machine.tile_memory);
  return weft_ok();
}

static weft_status_t load_tile(weft_sim_t* sim, size_t index) {
  const weft_image_t* image = sim->image;
  const weft_image_tile_t* tile = &image->tiles[index];
  WEFT_RETURN_IF_ERROR(verify_tile_place(sim, index));
  if (tile->kernel < -1 || (tile->kernel >= 0 && (size_t)tile->kernel >= image->kernels_count))
    return weft_error(INVALID_INPUT, "tile %zu: kernel %d of %zu", index, tile->kernel, image->kernels_count);
  if (tile->program >= image->programs_count)
    return weft_error(INVALID_INPUT, "tile %zu: program %u of %zu", index, tile->program, image->programs_count);
  const weft_image_program_t* program = &image->programs[tile->program];
  if (!range_within(tile->params, program->patch_count, image->params_count) ||
      !range_within(tile->segments, tile->segment_count, image->segments_count))
    return weft_error(INVALID_INPUT, "tile %zu: its parameters or segments are out of range", index);
  for (uint32_t i = 0; i < tile->segment_count; ++i) {
    const weft_image_segment_t* segment = &image->segments[tile->segments + i];
    if (!range_within(segment->address, segment->size, tile->memory_bytes) ||
        !range_within(segment->offset, segment->size, image->consts_count))
      return weft_error(INVALID_INPUT, "tile %zu: segment %u: %u bytes at %u don't fit", index, i, segment->size,
                        segment->address);
  }
  weft_sim_slot_t* slot = &sim->slot[index];
  *slot = (weft_sim_slot_t){.tile = tile};
  weft_sim_memory_share(sim, (int32_t)index);
  if (tile->tile == WEFT_HOST_TILE) {
    if (tile->segment_count) return weft_error(INVALID_INPUT, "the host has segments to load");
    sim->host_slot = (int32_t)index;
    return weft_ok();
  }
  return weft_ok();
}

static weft_status_t load_tiles(weft_sim_t* sim) {
  if (sim->image->tiles_count > INT32_MAX) return weft_error(INVALID_INPUT, "too many tiles");
  sim->slot_count = (int32_t)sim->image->tiles_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, sim->image->tiles_count, &sim->slot));
  for (size_t i = 0; i < sim->image->tiles_count; ++i) WEFT_RETURN_IF_ERROR(load_tile(sim, i));
  return weft_ok();
}

weft_sim_place_t weft_sim_place(const weft_sim_t* sim, int32_t slot) {
  weft_sim_place_t place;
  if (slot < 0) {
    snprintf(place.text, sizeof(place.text), "a tile without a program");
  } else if (weft_sim_is_host(sim, slot)) {
    snprintf(place.text, sizeof(place.text), "the host");
  } else {
    const weft_image_tile_t* tile = sim->slot[slot].tile;
    const char* kernel = tile->kernel < 0 ? "" : weft_image_string(sim->image, sim->image->kernels[tile->kernel].name);
    snprintf(place.text, sizeof(place.text), "tile (%d,%d)%s%.48s", tile->tile % sim->machine.width,
             tile->tile / sim->machine.width, *kernel ? " of " : "", kernel);
  }
  return place;
}

static weft_status_t load(weft_sim_t* sim) {
  WEFT_RETURN_IF_ERROR(load_machine(sim));
  WEFT_RETURN_IF_ERROR(load_io(sim));
  WEFT_RETURN_IF_ERROR(load_programs(sim));
  WEFT_RETURN_IF_ERROR(load_tiles(sim));
  WEFT_RETURN_IF_ERROR(weft_sim_work_build(sim));
  WEFT_RETURN_IF_ERROR(weft_sim_routes_build(sim));
  return weft_sim_programs_verify(sim);
}

weft_status_t weft_sim_create(weft_allocator_t allocator, const weft_image_t* image, weft_sim_t** out_sim) {
  *out_sim = NULL;
  weft_sim_t* sim;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, 1, sizeof(*sim), (void**)&sim));
  sim->allocator = sim->walks.allocator = allocator;
  sim->image = image;
  sim->host_slot = WEFT_SIM_NONE;
  weft_arena_initialize(allocator, &sim->arena);
  weft_status_t status = load(sim);
  if (status) {
    weft_sim_destroy(sim);
    return weft_status_annotate(status, "loading the image into the simulator");
  }
  *out_sim = sim;
  return weft_ok();
}

void weft_sim_destroy(weft_sim_t* sim) {
  if (!sim) return;
  for (int32_t s = 0; s < sim->slot_count; ++s) weft_allocator_free(sim->allocator, sim->slot[s].memory);
  weft_sim_walk_cache_deinitialize(&sim->walks);
  for (int32_t s = 0; s < sim->source_count; ++s) weft_allocator_free(sim->allocator, sim->source[s].data);
  for (int32_t s = 0; s < sim->stream_count; ++s) weft_allocator_free(sim->allocator, sim->stream[s].data);
  for (size_t i = 0; sim->io && i < sim->image->io_count; ++i) weft_allocator_free(sim->allocator, sim->io[i].data);
  WEFT_ARRAY_FREE(sim->allocator, &sim->templates);
  WEFT_ARRAY_FREE(sim->allocator, &sim->queue);
  weft_defects_deinitialize(&sim->defects);
  weft_arena_deinitialize(&sim->arena);
  weft_allocator_free(sim->allocator, sim);
}
