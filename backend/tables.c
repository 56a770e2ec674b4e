#include "backend/tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/checked.h"

typedef struct tables_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  const weft_endpoints_t* endpoints;
  weft_arena_t* arena;
  weft_image_t* image;
  WEFT_ARRAY(char) strings;
  uint32_t chain_name;
} tables_t;

static weft_status_t add_string(tables_t* t, const char* text, uint32_t* out_offset) {
  *out_offset = 0; // the empty string
  if (!text || !*text) return weft_ok();
  size_t length = strlen(text) + 1, first = t->strings.count;
  if (first + length > UINT32_MAX) return weft_error(UNSUPPORTED, "the image's names exceed 4 GiB");
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(t->arena->allocator, &t->strings, first + length));
  memcpy(t->strings.data + first, text, length);
  t->strings.count += length;
  *out_offset = (uint32_t)first;
  return weft_ok();
}

static weft_status_t make_kernels(tables_t* t) {
  const weft_fabric_t* fabric = t->fabric;
  weft_image_kernel_t* kernels;
  uint32_t *nodes, count = 0;
  size_t total = t->endpoints->slot_count - 1; // a slot for each logical tile, and one for the host
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, (size_t)fabric->kernel_count, &kernels));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, total, &nodes));
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &fabric->kernel[k];
    const weft_alternative_t* chosen = &kernel->alternative[kernel->chosen];
    weft_image_kernel_t* out = &kernels[k];
    *out = (weft_image_kernel_t){.x = kernel->region.x,
                                 .y = kernel->region.y,
                                 .width = kernel->region.width,
                                 .height = kernel->region.height,
                                 .gy = chosen->gy,
                                 .gx = chosen->gx,
                                 .tiles = count,
                                 .cycles = chosen->cycles,
                                 .stream_cycles = chosen->stream_cycles};
    WEFT_RETURN_IF_ERROR(add_string(t, kernel->name, &out->name));
    WEFT_RETURN_IF_ERROR(add_string(t, kernel->nodes, &out->nodes));
    for (int32_t l = 0; l < chosen->gy * chosen->gx; ++l) nodes[count++] = (uint32_t)kernel->tile[l];
  }
  t->image->kernels = kernels;
  t->image->kernels_count = (size_t)fabric->kernel_count;
  t->image->nodes = nodes;
  t->image->nodes_count = total;
  return weft_ok();
}

// One input or output behind the ones before it; *address grows.
static weft_status_t make_io(tables_t* t, const char* name, bool is_output, weft_dtype_e dtype,
                             const weft_shape_t* shape, uint64_t* address, weft_image_io_t* out) {
  *out = (weft_image_io_t){
      .is_output = is_output, .dtype = dtype, .rank = (uint32_t)shape->rank, .address = *address, .colour = UINT32_MAX};
  WEFT_RETURN_IF_ERROR(add_string(t, name, &out->name));
  uint64_t bytes = weft_dtype_size(dtype);
  for (int32_t d = 0; d < shape->rank; ++d) {
    out->extent[d] = shape->extent[d];
    if (!weft_checked_mul(bytes, (uint64_t)shape->extent[d], &bytes) || bytes > INT32_MAX) break;
  }
  out->step_stride = bytes > INT32_MAX ? INT32_MAX : (bytes + 7) / 8 * 8;
  *address += out->step_stride;
  int64_t limit = weft_min_i64(t->machine->host_memory, INT32_MAX);
  if (*address > (uint64_t)limit)
    return weft_error(DOES_NOT_FIT,
                      "inputs and outputs of one step need more than %" PRIu64
                      " bytes with '%s', the host can address %" PRId64 "; a smaller batch would fit",
                      *address, name, limit);
  return weft_ok();
}

static weft_status_t make_all_io(tables_t* t, uint32_t* out_host_bytes) {
  const weft_fabric_t* fabric = t->fabric;
  size_t inputs = (size_t)fabric->input_count, count = inputs + (size_t)fabric->output_count;
  weft_image_io_t* io;
  weft_image_host_colour_t* colours;
  uint64_t address = 0;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, count, &io));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, t->endpoints->host_count, &colours));
  for (size_t i = 0; i < inputs; ++i) {
    const weft_tensor_t* tensor = &fabric->tensor[fabric->input[i]];
    WEFT_RETURN_IF_ERROR(make_io(t, tensor->name, false, tensor->dtype, &tensor->shape, &address, &io[i]));
  }
  for (int32_t o = 0; o < fabric->output_count; ++o) {
    const weft_output_t* output = &fabric->output[o];
    WEFT_RETURN_IF_ERROR(
        make_io(t, output->name, true, output->dtype, &output->shape, &address, &io[inputs + (size_t)o]));
  }
  for (size_t h = 0; h < t->endpoints->host_count; ++h)
    colours[h] = (weft_image_host_colour_t){t->endpoints->host[h].port, (uint32_t)t->endpoints->host[h].colour};
  weft_end_list_t in = weft_endpoints_of(t->endpoints, &t->endpoints->in, WEFT_HOST_KERNEL, 0);
  weft_end_list_t out = weft_endpoints_of(t->endpoints, &t->endpoints->out, WEFT_HOST_KERNEL, 0);
  for (size_t e = in.count; e-- > 0;) // backwards, so that the first stream's stays
    io[inputs + (size_t)fabric->stream[in.end[e].stream].sink_buffer].colour = (uint32_t)in.end[e].colour;
  for (size_t e = out.count; e-- > 0;)
    for (size_t i = 0; i < inputs; ++i)
      if (fabric->input[i] == fabric->stream[out.end[e].stream].tensor) io[i].colour = (uint32_t)out.end[e].colour;
  t->image->io = io;
  t->image->io_count = count;
  t->image->host_colours = colours;
  t->image->host_colours_count = t->endpoints->host_count;
  *out_host_bytes = (uint32_t)address;
  return weft_ok();
}

static weft_status_t make_stream(tables_t* t, const weft_stream_t* stream, const uint32_t* tensor_name,
                                 weft_image_stream_t* out) {
  weft_direction_e direction = WEFT_DIRECTION_RAMP;
  if (stream->source_kernel == WEFT_HOST_KERNEL)
    direction = weft_machine_port(t->machine, stream->source_port).direction;
  int32_t source = weft_endpoints_tile(t->fabric, t->machine, stream, false);
  const weft_router_entry_t* entry = weft_endpoints_entry(stream, source, direction, false);
  if (!entry) return weft_error(INVALID_INPUT, "a stream has no source");
  *out = (weft_image_stream_t){.source_kernel = stream->source_kernel,
                               .sink_kernel = stream->sink_kernel,
                               .source_tile = source,
                               .sink_tile = weft_endpoints_tile(t->fabric, t->machine, stream, true),
                               .name = stream->tensor < 0 ? t->chain_name : tensor_name[stream->tensor],
                               .source_colour = entry->colour,
                               .source_count = (uint32_t)stream->source_count,
                               .sink_count = (uint32_t)stream->sink_count};
  return weft_ok();
}

static weft_status_t make_streams(tables_t* t) {
  const weft_fabric_t* fabric = t->fabric;
  weft_image_stream_t* streams;
  uint32_t* tensor_name;
  size_t count = 0;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, (size_t)fabric->stream_count, &streams));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, (size_t)fabric->tensor_count, &tensor_name));
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    const weft_stream_t* stream = &fabric->stream[s];
    if (!stream->source_count || !stream->sink_count) continue; // carries nothing
    uint32_t* name = stream->tensor < 0 ? &t->chain_name : &tensor_name[stream->tensor];
    const char* text = stream->tensor < 0 ? "reduce chain" : fabric->tensor[stream->tensor].name;
    if (!*name) WEFT_RETURN_IF_ERROR(add_string(t, text, name));
    WEFT_RETURN_IF_ERROR(make_stream(t, stream, tensor_name, &streams[count++]));
  }
  t->image->streams = streams;
  t->image->streams_count = count;
  return weft_ok();
}

static void place_route(const weft_router_entry_t* entry, weft_image_route_t* out) {
  *out = (weft_image_route_t){
      .tile = entry->tile, .colour = entry->colour, .input_count = entry->input_count, .outputs = entry->outputs};
  memcpy(out->input, entry->input, entry->input_count);
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
    if (entry->outputs >> d & 1) out->output_colour[d] = entry->output_colour[d];
}

// Sorts by tile with one counting pass, by colour with insertion: a router has few.
static weft_status_t make_routes(tables_t* t) {
  const weft_fabric_t* fabric = t->fabric;
  size_t tiles = (size_t)weft_machine_tiles(t->machine), *first;
  weft_image_route_t* routes;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, tiles + 1, &first));
  for (int32_t s = 0; s < fabric->stream_count; ++s)
    for (int32_t e = 0; e < fabric->stream[s].entry_count; ++e) ++first[fabric->stream[s].entry[e].tile + 1];
  for (size_t i = 0; i < tiles; ++i) first[i + 1] += first[i];
  size_t total = first[tiles], *end;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(t->arena, total, &routes));
  WEFT_RETURN_IF_ERROR(weft_arena_copy(t->arena, first, tiles * sizeof(*first), (void**)&end));
  for (int32_t s = 0; s < fabric->stream_count; ++s) {
    for (int32_t e = 0; e < fabric->stream[s].entry_count; ++e) {
      const weft_router_entry_t* entry = &fabric->stream[s].entry[e];
      size_t at = end[entry->tile]++;
      for (; at > first[entry->tile] && routes[at - 1].colour >= entry->colour; --at) {
        if (routes[at - 1].colour == entry->colour)
          return weft_error(INVALID_INPUT, "colour %d of the router of tile %" PRId32 ",%" PRId32 " has two streams",
                            entry->colour, entry->tile % t->machine->width, entry->tile / t->machine->width);
        routes[at] = routes[at - 1];
      }
      place_route(entry, &routes[at]);
    }
  }
  t->image->routes = routes;
  t->image->routes_count = total;
  return weft_ok();
}

static weft_status_t make_tables(tables_t* t, uint32_t* out_host_bytes) {
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(t->arena->allocator, &t->strings, '\0'));
  weft_image_header_t* header = &t->image->header;
  *header = (weft_image_header_t){.version = WEFT_IMAGE_VERSION,
                                  .seed = t->fabric->seed,
                                  .model = t->fabric->model_digest,
                                  .width = t->machine->width,
                                  .height = t->machine->height};
  WEFT_RETURN_IF_ERROR(add_string(t, t->fabric->model_name, &header->model_name));
  WEFT_RETURN_IF_ERROR(make_kernels(t));
  WEFT_RETURN_IF_ERROR(make_all_io(t, out_host_bytes));
  WEFT_RETURN_IF_ERROR(make_streams(t));
  WEFT_RETURN_IF_ERROR(make_routes(t));
  t->image->strings_count = t->strings.count;
  return weft_arena_copy(t->arena, t->strings.data, t->strings.count, (void**)&t->image->strings);
}

weft_status_t weft_tables_create(const weft_fabric_t* fabric, const weft_machine_t* machine,
                                 const weft_endpoints_t* endpoints, weft_arena_t* arena, weft_image_t* inout_image,
                                 uint32_t* out_host_bytes) {
  tables_t tables = {
      .fabric = fabric, .machine = machine, .endpoints = endpoints, .arena = arena, .image = inout_image};
  weft_status_t status = make_tables(&tables, out_host_bytes);
  WEFT_ARRAY_FREE(arena->allocator, &tables.strings);
  return status;
}
