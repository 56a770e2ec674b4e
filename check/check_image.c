// Legality of an image, from its tables and its programs alone.
#include <inttypes.h>
#include <string.h>

#include "check/check.h"
#include "check/image_parts.h"

static void check_digest(weft_check_image_t* c, const char* what, const weft_digest_t* named,
                         const weft_digest_t* actual) {
  char named_text[65], actual_text[65];
  if (weft_digest_compare(named, actual) == 0) return;
  weft_digest_format(named, named_text);
  weft_digest_format(actual, actual_text);
  weft_faults_add(c->faults, "the image is for %s %.16s.., but carries %.16s..", what, named_text, actual_text);
}

static void check_header(weft_check_image_t* c) {
  weft_digest_t machine, defects = weft_defects_digest(&c->defects);
  const weft_image_header_t* header = &c->image->header;
  if (weft_status_consume(weft_machine_digest(&c->machine, &machine)))
    check_digest(c, "machine", &header->machine, &machine);
  check_digest(c, "defect map", &header->defects, &defects);
  if (header->width != c->machine.width || header->height != c->machine.height)
    weft_faults_add(c->faults,
                    "the image is for a mesh of %" PRId32 "x%" PRId32 ", its machine has %" PRId32 "x%" PRId32,
                    header->width, header->height, c->machine.width, c->machine.height);
}

// False: the tile's program can't be looked at.
static bool check_tile(weft_check_image_t* c, const weft_image_tile_t* tile, const weft_image_tile_t* previous) {
  const weft_image_t* image = c->image;
  bool host = tile->tile == WEFT_HOST_TILE;
  if (!host && (tile->tile < 0 || tile->tile >= weft_machine_tiles(&c->machine))) {
    weft_faults_add(c->faults, "tile %" PRId32 " is not on the mesh", tile->tile);
    return false;
  }
  if (previous && (previous->tile == WEFT_HOST_TILE || (!host && previous->tile >= tile->tile)))
    weft_faults_add(c->faults, "%s does not come after %s in the table of tiles",
                    weft_check_place(&c->machine, tile->tile).text, weft_check_place(&c->machine, previous->tile).text);
  if (!host && !weft_defects_live(&c->defects, tile->tile))
    weft_faults_add(c->faults, "%s has a program, but is dead", weft_check_place(&c->machine, tile->tile).text);
  int64_t memory = host ? c->machine.host_memory : c->machine.tile_memory;
  if (tile->memory_bytes > memory)
    weft_faults_add(c->faults, "%s uses %" PRIu32 " bytes of its %" PRId64,
                    weft_check_place(&c->machine, tile->tile).text, tile->memory_bytes, memory);
  if (tile->program >= image->programs_count ||
      (uint64_t)tile->segments + tile->segment_count > image->segments_count) {
    weft_faults_add(c->faults, "%s has a program or segments that the image doesn't hold",
                    weft_check_place(&c->machine, tile->tile).text);
    return false;
  }
  const weft_image_program_t* program = &image->programs[tile->program];
  uint64_t bytes = 4 * (uint64_t)program->code_words;
  if (!host && bytes > tile->memory_bytes)
    weft_faults_add(c->faults, "%s has %" PRIu64 " bytes of code in %" PRIu32 " of memory",
                    weft_check_place(&c->machine, tile->tile).text, bytes, tile->memory_bytes);
  for (uint32_t i = 0; i < tile->segment_count; ++i) {
    const weft_image_segment_t* segment = &image->segments[tile->segments + i];
    if ((uint64_t)segment->address + segment->size > tile->memory_bytes)
      weft_faults_add(c->faults, "%s loads %" PRIu32 " bytes to %" PRIu32 ", beyond its %" PRIu32,
                      weft_check_place(&c->machine, tile->tile).text, segment->size, segment->address,
                      tile->memory_bytes);
  }
  return true;
}

static void check_kernel(weft_check_image_t* c, const weft_image_tile_t* tile) {
  const weft_image_t* image = c->image;
  if (tile->tile == WEFT_HOST_TILE) return;
  const weft_image_kernel_t* kernel =
      tile->kernel >= 0 && (size_t)tile->kernel < image->kernels_count ? &image->kernels[tile->kernel] : NULL;
  uint64_t node = kernel ? (uint64_t)kernel->tiles + tile->logical : 0;
  if (!kernel || tile->logical >= (uint64_t)kernel->gy * (uint64_t)kernel->gx || node >= image->nodes_count ||
      image->nodes[node] != (uint32_t)tile->tile)
    weft_faults_add(c->faults, "%s is not logical tile %" PRIu32 " of kernel %" PRId32 ", as it says",
                    weft_check_place(&c->machine, tile->tile).text, tile->logical, tile->kernel);
}

static void check_host_colours(weft_check_image_t* c) {
  int32_t ports = weft_machine_port_count(&c->machine);
  for (size_t i = 0; i < c->image->host_colours_count; ++i) {
    const weft_image_host_colour_t* colour = &c->image->host_colours[i];
    if (colour->port < 0 || colour->port >= ports)
      weft_faults_add(c->faults, "host colour %zu: port %" PRId32 ", the machine has %" PRId32, i, colour->port, ports);
    if (colour->colour >= (uint32_t)c->machine.colours)
      weft_faults_add(c->faults, "host colour %zu: colour %" PRIu32 ", a router has %" PRId32, i, colour->colour,
                      c->machine.colours);
  }
}

static weft_status_t check_programs(weft_check_image_t* c) {
  uint32_t* words = NULL;
  size_t capacity = 0;
  weft_status_t status = weft_ok();
  for (size_t i = 0; i < c->image->programs_count; ++i)
    if (c->image->programs[i].code_words > capacity) capacity = c->image->programs[i].code_words;
  status = weft_allocator_calloc(c->allocator, capacity, sizeof(*words), (void**)&words);
  for (size_t i = 0; !status && i < c->image->tiles_count; ++i) {
    const weft_image_tile_t* tile = &c->image->tiles[i];
    if (!check_tile(c, tile, i ? tile - 1 : NULL)) continue;
    check_kernel(c, tile);
    weft_check_image_program(c, tile, words);
  }
  weft_allocator_free(c->allocator, words);
  return status;
}

// Routes have the form of router entries. False: one that can't be.
static bool copy_routes(weft_check_image_t* c) {
  bool sound = true;
  for (size_t i = 0; i < c->image->routes_count; ++i) {
    const weft_image_route_t* route = &c->image->routes[i];
    weft_router_entry_t* entry = &c->entry[i];
    *entry = (weft_router_entry_t){
        .tile = route->tile, .colour = route->colour, .input_count = route->input_count, .outputs = route->outputs};
    memcpy(entry->input, route->input, sizeof(entry->input));
    memcpy(entry->output_colour, route->output_colour, sizeof(entry->output_colour));
    bool legal = route->colour < WEFT_MAX_COLOURS && route->input_count <= WEFT_DIRECTION_COUNT &&
                 route->outputs >> WEFT_DIRECTION_COUNT == 0;
    for (int32_t s = 0; legal && s < route->input_count; ++s) legal = route->input[s] < WEFT_DIRECTION_COUNT;
    for (int32_t d = 0; legal && d < WEFT_DIRECTION_COUNT; ++d)
      legal = !(route->outputs >> d & 1) || route->output_colour[d] < WEFT_MAX_COLOURS;
    if (!legal) weft_faults_add(c->faults, "route %zu has colours, inputs or outputs that don't exist", i);
    sound = sound && legal;
  }
  return sound;
}

static weft_status_t check_all(weft_check_image_t* c) {
  size_t routes = c->image->routes_count, colours = c->image->host_colours_count;
  if (routes > INT32_MAX / 2) return weft_error(UNSUPPORTED, "an image of %zu routes", routes);
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(c->allocator, routes, sizeof(*c->entry), (void**)&c->entry));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(c->allocator, routes, sizeof(*c->sent), (void**)&c->sent));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(c->allocator, routes, sizeof(*c->taken), (void**)&c->taken));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(c->allocator, colours, sizeof(*c->host_sent), (void**)&c->host_sent));
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(c->allocator, colours, sizeof(*c->host_taken), (void**)&c->host_taken));
  check_header(c);
  check_host_colours(c);
  if (!copy_routes(c)) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_links_join(&c->links, (int32_t)routes, c->entry));
  if (c->links.count != (int32_t)routes) return weft_ok(); // some are off the mesh
  WEFT_RETURN_IF_ERROR(check_programs(c));
  return weft_check_image_flows(c);
}

static weft_status_t check_image(weft_check_image_t* c) {
  const weft_image_t* image = c->image;
  WEFT_RETURN_IF_ERROR(weft_machine_parse(image->machine_xml, image->machine_xml_size, ".weft.machine", &c->machine));
  WEFT_RETURN_IF_ERROR(weft_defects_parse(c->allocator, image->defects_text, image->defects_text_size, ".weft.defects",
                                          &c->machine, &c->defects));
  weft_faults_t faults;
  weft_faults_initialize(c->allocator, &faults);
  c->faults = &faults;
  c->links = (weft_links_t){
      .machine = &c->machine, .defects = &c->defects, .allocator = c->allocator, .faults = &faults, .name = "routes"};
  weft_status_t status = check_all(c);
  void* owned[] = {c->entry, c->sent, c->taken, c->host_sent, c->host_taken};
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); ++i) weft_allocator_free(c->allocator, owned[i]);
  weft_links_deinitialize(&c->links);
  weft_defects_deinitialize(&c->defects);
  return weft_status_join(status, weft_faults_finish(&faults, "the image"));
}

weft_status_t weft_check_image(weft_allocator_t allocator, const weft_image_t* image) {
  weft_check_image_t check = {.image = image, .allocator = allocator};
  return check_image(&check);
}
