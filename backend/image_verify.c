#include <inttypes.h>

#include "backend/image_sections.h"
#include "base/checked.h"

typedef struct verifier_t {
  const weft_image_t* image;
  const weft_machine_t* machine;
  const weft_defects_t* defects;
} verifier_t;

#define FAULT(...) weft_error(INVALID_INPUT, __VA_ARGS__)

// [first, first + count) lies in [0, total)
static bool range(uint64_t first, uint64_t count, uint64_t total) {
  return first <= total && count <= total - first;
}

static weft_status_t verify_string(const verifier_t* v, const char* table, size_t index, uint32_t offset) {
  if (offset < v->image->strings_count) return weft_ok();
  return FAULT("%s %zu: string %" PRIu32 " of %zu bytes of strings", table, index, offset, v->image->strings_count);
}

static weft_status_t verify_tile_index(const verifier_t* v, const char* table, size_t index, int32_t tile) {
  if (tile < 0 || tile >= weft_machine_tiles(v->machine))
    return FAULT("%s %zu: tile %" PRId32 " is not on a mesh of %" PRId32 "x%" PRId32, table, index, tile,
                 v->machine->width, v->machine->height);
  if (!weft_defects_live(v->defects, tile))
    return FAULT("%s %zu: tile %" PRId32 ",%" PRId32 " is dead", table, index, tile % v->machine->width,
                 tile / v->machine->width);
  return weft_ok();
}

static weft_status_t verify_header(const verifier_t* v) {
  const weft_image_header_t* h = &v->image->header;
  if (h->width != v->machine->width || h->height != v->machine->height)
    return FAULT("header: the mesh is %" PRId32 "x%" PRId32 ", that of the machine %" PRId32 "x%" PRId32, h->width,
                 h->height, v->machine->width, v->machine->height);
  if (h->flags || h->reserved) return FAULT("header: reserved fields are set");
  return verify_string(v, "header", 0, h->model_name);
}

static weft_status_t verify_kernels(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->kernels_count; ++i) {
    const weft_image_kernel_t* k = &m->kernels[i];
    WEFT_RETURN_IF_ERROR(verify_string(v, "kernel", i, k->name));
    WEFT_RETURN_IF_ERROR(verify_string(v, "kernel", i, k->nodes));
    if (k->x < 0 || k->y < 0 || k->width < 1 || k->height < 1 ||
        !range((uint64_t)k->x, (uint64_t)k->width, (uint64_t)v->machine->width) ||
        !range((uint64_t)k->y, (uint64_t)k->height, (uint64_t)v->machine->height))
      return FAULT("kernel %zu: its region is not on the mesh", i);
    if (k->gy < 1 || k->gx < 1 || !range(k->tiles, (uint64_t)k->gy * (uint64_t)k->gx, m->nodes_count))
      return FAULT("kernel %zu: its tiles are not in the list of %zu", i, m->nodes_count);
    if (k->reserved) return FAULT("kernel %zu: reserved fields are set", i);
  }
  for (size_t n = 0; n < m->nodes_count; ++n)
    if (m->nodes[n] > INT32_MAX)
      return FAULT("node %zu: tile %" PRIu32, n, m->nodes[n]);
    else
      WEFT_RETURN_IF_ERROR(verify_tile_index(v, "node", n, (int32_t)m->nodes[n]));
  return weft_ok();
}

static weft_status_t verify_programs(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->programs_count; ++i) {
    const weft_image_program_t* p = &m->programs[i];
    if (!range(p->code, p->code_words, m->code_count)) return FAULT("program %zu: its code is not in .weft.code", i);
    if (!range(p->patches, p->patch_count, m->patches_count))
      return FAULT("program %zu: its patches are not in .weft.patches", i);
    for (uint32_t k = 0; k < p->patch_count; ++k) {
      uint32_t at = m->patches[p->patches + k];
      if (at >= p->code_words || (k && at <= m->patches[p->patches + k - 1]))
        return FAULT("program %zu: patch %" PRIu32 " at word %" PRIu32 " is out of order or of range", i, k, at);
    }
  }
  return weft_ok();
}

static weft_status_t verify_tile(const verifier_t* v, size_t index) {
  const weft_image_t* m = v->image;
  const weft_image_tile_t* t = &m->tiles[index];
  bool host = t->tile == WEFT_HOST_TILE;
  if (host) {
    if (index + 1 != m->tiles_count) return FAULT("tile record %zu: the host is not the last", index);
    if (t->kernel != -1 || t->logical) return FAULT("tile record %zu: the host has a kernel", index);
    if (t->memory_bytes > v->machine->host_memory) return FAULT("the host's memory is too small for the image");
  } else {
    WEFT_RETURN_IF_ERROR(verify_tile_index(v, "tile record", index, t->tile));
    if (index && m->tiles[index - 1].tile >= t->tile) return FAULT("tile record %zu: out of order", index);
    if (t->kernel < 0 || (size_t)t->kernel >= m->kernels_count)
      return FAULT("tile record %zu: kernel %" PRId32 " of %zu", index, t->kernel, m->kernels_count);
    const weft_image_kernel_t* k = &m->kernels[t->kernel];
    if (t->logical >= (uint64_t)k->gy * (uint64_t)k->gx || m->nodes[k->tiles + t->logical] != (uint32_t)t->tile)
      return FAULT("tile record %zu: not logical tile %" PRIu32 " of kernel %" PRId32, index, t->logical, t->kernel);
    if (t->memory_bytes > v->machine->tile_memory)
      return FAULT("tile %" PRId32 ",%" PRId32 ": uses %" PRIu32 " bytes of %" PRId64, t->tile % v->machine->width,
                   t->tile / v->machine->width, t->memory_bytes, v->machine->tile_memory);
  }
  if (t->program >= m->programs_count)
    return FAULT("tile record %zu: program %" PRIu32 " of %zu", index, t->program, m->programs_count);
  const weft_image_program_t* p = &m->programs[t->program];
  if (!host && (uint64_t)p->code_words * sizeof(uint32_t) > t->memory_bytes)
    return FAULT("tile record %zu: its code exceeds its memory", index);
  if (!range(t->params, p->patch_count, m->params_count))
    return FAULT("tile record %zu: its parameters are not in .weft.params", index);
  if (!range(t->segments, t->segment_count, m->segments_count))
    return FAULT("tile record %zu: its segments are not in .weft.segments", index);
  for (uint32_t s = 0; s < t->segment_count; ++s)
    if (!range(m->segments[t->segments + s].address, m->segments[t->segments + s].size, t->memory_bytes))
      return FAULT("tile record %zu: segment %" PRIu32 " is not in its memory", index, s);
  return weft_ok();
}

static weft_status_t verify_tiles(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->segments_count; ++i)
    if (!range(m->segments[i].offset, m->segments[i].size, m->consts_count))
      return FAULT("segment %zu: its bytes are not in .weft.consts", i);
  for (size_t i = 0; i < m->tiles_count; ++i) WEFT_RETURN_IF_ERROR(verify_tile(v, i));
  return weft_ok();
}

static weft_status_t verify_routes(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->routes_count; ++i) {
    const weft_image_route_t* r = &m->routes[i];
    WEFT_RETURN_IF_ERROR(verify_tile_index(v, "route", i, r->tile));
    const weft_image_route_t* before = i ? r - 1 : NULL;
    if (before && (before->tile > r->tile || (before->tile == r->tile && before->colour >= r->colour)))
      return FAULT("route %zu: out of order", i);
    if (r->colour >= v->machine->colours)
      return FAULT("route %zu: colour %d of %" PRId32, i, r->colour, v->machine->colours);
    if (!r->input_count || r->input_count > WEFT_DIRECTION_COUNT)
      return FAULT("route %zu: %d inputs", i, r->input_count);
    for (int32_t d = 0; d < r->input_count; ++d)
      if (r->input[d] >= WEFT_DIRECTION_COUNT) return FAULT("route %zu: input direction %d", i, r->input[d]);
    if (!r->outputs || r->outputs >> WEFT_DIRECTION_COUNT) return FAULT("route %zu: outputs 0x%x", i, r->outputs);
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if ((r->outputs >> d & 1) && r->output_colour[d] >= v->machine->colours)
        return FAULT("route %zu: output colour %d of %" PRId32, i, r->output_colour[d], v->machine->colours);
    if (r->reserved[0] || r->reserved[1]) return FAULT("route %zu: reserved fields are set", i);
  }
  return weft_ok();
}

static weft_status_t verify_io(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->host_colours_count; ++i) {
    const weft_image_host_colour_t* h = &m->host_colours[i];
    if (h->port < 0 || h->port >= weft_machine_port_count(v->machine))
      return FAULT("host colour %zu: port %" PRId32 " of %" PRId32, i, h->port, weft_machine_port_count(v->machine));
    if (h->colour >= (uint32_t)v->machine->colours)
      return FAULT("host colour %zu: colour %" PRIu32 " of %" PRId32, i, h->colour, v->machine->colours);
  }
  uint64_t end = 0;
  for (size_t i = 0; i < m->io_count; ++i) {
    const weft_image_io_t* io = &m->io[i];
    WEFT_RETURN_IF_ERROR(verify_string(v, "input or output", i, io->name));
    if (io->is_output > 1 || io->dtype >= WEFT_DTYPE_COUNT || io->rank > 8 || io->reserved)
      return FAULT("input or output %zu: malformed", i);
    uint64_t bytes = weft_dtype_size((weft_dtype_e)io->dtype);
    for (uint32_t d = 0; d < io->rank; ++d)
      if (io->extent[d] < 0 || !weft_checked_mul(bytes, (uint64_t)io->extent[d], &bytes))
        return FAULT("input or output %zu: extent %" PRId64 " of dimension %" PRIu32, i, io->extent[d], d);
    if (bytes > UINT64_MAX - 7 || io->step_stride != (bytes + 7) / 8 * 8)
      return FAULT("input or output %zu: step stride %" PRIu64 " for %" PRIu64 " bytes", i, io->step_stride, bytes);
    if (io->address % 8 || io->address < end || !range(io->address, io->step_stride, (uint64_t)v->machine->host_memory))
      return FAULT("input or output %zu: address %" PRIu64 " is not aligned, out of order or beyond the host's memory",
                   i, io->address);
    end = io->address + io->step_stride;
    if (io->colour != UINT32_MAX && io->colour >= m->host_colours_count)
      return FAULT("input or output %zu: host colour %" PRIu32 " of %zu", i, io->colour, m->host_colours_count);
  }
  return weft_ok();
}

static weft_status_t verify_streams(const verifier_t* v) {
  const weft_image_t* m = v->image;
  for (size_t i = 0; i < m->streams_count; ++i) {
    const weft_image_stream_t* s = &m->streams[i];
    WEFT_RETURN_IF_ERROR(verify_string(v, "stream", i, s->name));
    WEFT_RETURN_IF_ERROR(verify_tile_index(v, "stream", i, s->source_tile));
    WEFT_RETURN_IF_ERROR(verify_tile_index(v, "stream", i, s->sink_tile));
    if (s->source_kernel < -1 || s->source_kernel >= (int64_t)m->kernels_count || s->sink_kernel < -1 ||
        s->sink_kernel >= (int64_t)m->kernels_count)
      return FAULT("stream %zu: no such kernel", i);
    if (s->source_colour >= (uint32_t)v->machine->colours)
      return FAULT("stream %zu: colour %" PRIu32 " of %" PRId32, i, s->source_colour, v->machine->colours);
  }
  return weft_ok();
}

static weft_status_t verify_tables(weft_allocator_t allocator, const verifier_t* v) {
  WEFT_RETURN_IF_ERROR(verify_header(v));
  WEFT_RETURN_IF_ERROR(verify_kernels(v));
  WEFT_RETURN_IF_ERROR(verify_programs(v));
  WEFT_RETURN_IF_ERROR(verify_tiles(v));
  WEFT_RETURN_IF_ERROR(verify_routes(v));
  WEFT_RETURN_IF_ERROR(verify_io(v));
  WEFT_RETURN_IF_ERROR(verify_streams(v));
  return weft_image_verify_programs(allocator, v->image, v->machine->colours);
}

// A digest that the header has and one that was computed: a text or a number that was changed.
static weft_status_t verify_digest(const char* what, const weft_digest_t* stored, const weft_digest_t* found) {
  if (!weft_digest_compare(stored, found)) return weft_ok();
  char stored_text[65], found_text[65];
  weft_digest_format(stored, stored_text);
  weft_digest_format(found, found_text);
  return FAULT("the %s's digest is %.16s.., the header says %.16s..", what, found_text, stored_text);
}

static weft_status_t verify_with_machine(weft_allocator_t allocator, const weft_image_t* image,
                                         const weft_machine_t* machine) {
  weft_defects_t defects;
  WEFT_RETURN_IF_ERROR(weft_defects_parse(allocator, image->defects_text, image->defects_text_size,
                                          WEFT_IMAGE_DEFECTS_SECTION, machine, &defects));
  weft_digest_t digest = weft_defects_digest(&defects);
  weft_status_t status = verify_digest("defect map", &image->header.defects, &digest);
  verifier_t verifier = {image, machine, &defects};
  if (!status) status = verify_tables(allocator, &verifier);
  weft_defects_deinitialize(&defects);
  return status;
}

weft_status_t weft_image_verify(weft_allocator_t allocator, const weft_image_t* image) {
  if (image->header.version != WEFT_IMAGE_VERSION)
    return FAULT("image version %" PRIu32 ", this weft reads version %d", image->header.version, WEFT_IMAGE_VERSION);
  if (image->strings_count && image->strings[image->strings_count - 1]) return FAULT("the last string has no end");
  // The text is the canonical one, whose digest is the machine's: nothing is parsed before this agrees.
  weft_digest_t digest = weft_digest_of(image->machine_xml, image->machine_xml_size);
  WEFT_RETURN_IF_ERROR(verify_digest("machine", &image->header.machine, &digest));
  weft_machine_t machine;
  WEFT_RETURN_IF_ERROR(
      weft_machine_parse(image->machine_xml, image->machine_xml_size, WEFT_IMAGE_MACHINE_SECTION, &machine));
  return verify_with_machine(allocator, image, &machine);
}
