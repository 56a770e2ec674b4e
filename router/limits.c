#include "router/limits.h"

#include <string.h>

enum { NAMES_SHOWN = 5 };

// Names of nets in a message: the first few, then how many more.
typedef struct names_t {
  weft_text_t text;
  int64_t count;
  const char* first;
} names_t;
static weft_status_t names_add(names_t* names, const char* name) {
  if (!names->count) names->first = name;
  if (++names->count > NAMES_SHOWN) return weft_ok();
  return weft_text_printf(&names->text, "%s%s", names->count > 1 ? ", " : "", name);
}
static weft_status_t names_end(names_t* names) {
  if (names->count <= NAMES_SHOWN) return weft_ok();
  return weft_text_printf(&names->text, " and %lld more", (long long)(names->count - NAMES_SHOWN));
}

static int32_t terminal_count(const weft_router_net_t* net) {
  return net->source_count + net->sink_count;
}
static const weft_router_terminal_t* terminal(const weft_router_net_t* net, int32_t i) {
  return i < net->source_count ? &net->source[i] : &net->sink[i - net->source_count];
}

static weft_status_t validate_net(const weft_machine_t* machine, const weft_router_net_t* net) {
  if (net->source_count < 1 || net->sink_count < 1 || net->wavelets < 0 ||
      net->source_count > INT32_MAX - net->sink_count)
    return weft_error(INVALID_ARGUMENT, "%s: a net of %d sources, %d sinks and %lld wavelets", net->name,
                      net->source_count, net->sink_count, (long long)net->wavelets);
  int64_t left = net->wavelets;
  for (int32_t k = 0; k < net->source_count; ++k) {
    if (net->segment[k] < 0 || net->segment[k] > left) left = -1;
    if (left >= 0) left -= net->segment[k];
  }
  if (left)
    return weft_error(INVALID_ARGUMENT, "%s: the segments of its %d sources don't make %lld wavelets", net->name,
                      net->source_count, (long long)net->wavelets);
  for (int32_t i = 0; i < terminal_count(net); ++i) {
    const weft_router_terminal_t* t = terminal(net, i);
    if (t->tile < 0 || t->tile >= weft_machine_tiles(machine))
      return weft_error(INVALID_ARGUMENT, "%s: tile %d is none of the machine's %d", net->name, t->tile,
                        weft_machine_tiles(machine));
    int32_t x = t->tile % machine->width, y = t->tile / machine->width;
    if ((int)t->direction < 0 || t->direction >= WEFT_DIRECTION_COUNT)
      return weft_error(INVALID_ARGUMENT, "%s: end at (%d, %d) has no direction", net->name, x, y);
    if (t->direction == WEFT_DIRECTION_RAMP) continue;
    int32_t nx = x + weft_direction_dx[t->direction], ny = y + weft_direction_dy[t->direction];
    bool inside = nx >= 0 && nx < machine->width && ny >= 0 && ny < machine->height;
    if (inside || t->direction > WEFT_DIRECTION_RAMP)
      return weft_error(INVALID_ARGUMENT, "%s: %s of (%d, %d) is no side where a host port can be", net->name,
                        weft_direction_name(t->direction), x, y);
  }
  return weft_ok();
}

weft_status_t weft_router_limits_validate(const weft_machine_t* machine, int32_t net_count,
                                          const weft_router_net_t* net) {
  if (machine->colours < 1 || machine->colours > WEFT_MAX_COLOURS)
    return weft_error(INVALID_ARGUMENT, "a router of %d colours; 1 to %d are possible", machine->colours,
                      WEFT_MAX_COLOURS);
  for (int32_t i = 0; i < net_count; ++i) WEFT_RETURN_IF_ERROR(validate_net(machine, &net[i]));
  return weft_ok();
}

// Reach
// ----------------------------------------------------------------------------------------------------------------

static weft_status_t split_error(const weft_router_mesh_t* mesh, const weft_parts_t* parts,
                                 const weft_router_net_t* net, int32_t root, int32_t i) {
  int32_t width = mesh->width, tile = terminal(net, i)->tile;
  weft_text_t text;
  weft_text_initialize(mesh->allocator, &text);
  weft_status_t status = weft_parts_describe(parts, &text);
  if (!status)
    status =
        weft_error(UNROUTABLE,
                   "%s: its %s at (%d, %d) and its last source at (%d, %d) are not connected: dead tiles and links "
                   "split the mesh into %s; these two are in parts of %d and %d tiles",
                   net->name, i < net->source_count ? "source" : "sink", tile % width, tile / width, root % width,
                   root / width, text.data, parts->size[parts->label[tile]], parts->size[parts->label[root]]);
  weft_text_deinitialize(&text);
  return status;
}

weft_status_t weft_router_limits_reach(const weft_router_mesh_t* mesh, const weft_parts_t* parts, int32_t net_count,
                                       const weft_router_net_t* net) {
  for (int32_t n = 0; n < net_count; ++n) {
    int32_t root = net[n].source[net[n].source_count - 1].tile;
    for (int32_t i = 0; i < terminal_count(&net[n]); ++i) {
      int32_t tile = terminal(&net[n], i)->tile;
      if (parts->label[tile] < 0)
        return weft_error(UNROUTABLE, "%s: its %s at (%d, %d) is a dead tile", net[n].name,
                          i < net[n].source_count ? "source" : "sink", tile % mesh->width, tile / mesh->width);
      if (parts->label[root] >= 0 && parts->label[tile] != parts->label[root])
        return split_error(mesh, parts, &net[n], root, i);
    }
  }
  return weft_ok();
}

// Colours
// --------------------------------------------------------------------------------------------------------------

// Entries that the ends of nets need in each router. A sink at the root, or a second end in the same direction of flow,
// shares an entry; a sink where another source is doesn't.
typedef struct demand_t {
  uint32_t* entries;           // [tiles]
  int32_t *gather, *multicast; // [tiles] last net that has an entry there
  uint16_t* sources;           // [tiles] of that net: bit per direction that has a source
} demand_t;
static bool demands(demand_t* demand, int32_t n, const weft_router_net_t* net, int32_t i) {
  int32_t tile = terminal(net, i)->tile;
  int32_t* last = i < net->source_count ? &demand->gather[tile] : &demand->multicast[tile];
  bool at_root = tile == net->source[net->source_count - 1].tile;
  if (*last == n || (i >= net->source_count && at_root)) return false;
  *last = n;
  return true;
}

static void forget_nets(demand_t* demand, int32_t tiles) {
  memset(demand->gather, 0xFF, (size_t)tiles * sizeof(*demand->gather));
  memset(demand->multicast, 0xFF, (size_t)tiles * sizeof(*demand->multicast));
}

static weft_status_t ends_error(const weft_router_mesh_t* mesh, int32_t net_count, const weft_router_net_t* net,
                                int32_t tile, uint32_t needed) {
  names_t names = {0};
  weft_text_initialize(mesh->allocator, &names.text);
  weft_status_t status = weft_ok();
  for (int32_t n = 0; !status && n < net_count; ++n)
    for (int32_t i = 0; i < terminal_count(&net[n]); ++i)
      if (terminal(&net[n], i)->tile == tile) {
        status = names_add(&names, net[n].name);
        break;
      }
  if (!status) status = names_end(&names);
  if (!status)
    status =
        weft_error(UNROUTABLE,
                   "%s: router (%d, %d) needs %u colours for the streams that begin or end there and has %d: %s; a "
                   "machine of %u colours, or fewer streams at this tile, would do",
                   names.first, tile % mesh->width, tile / mesh->width, needed, mesh->colours, names.text.data, needed);
  weft_text_deinitialize(&names.text);
  return status;
}

// Each place can hold one segment of a stream.
static weft_status_t check_source(const weft_router_mesh_t* mesh, demand_t* demand, int32_t n,
                                  const weft_router_net_t* net, int32_t i) {
  int32_t tile = net->source[i].tile;
  if (demand->gather[tile] != n) demand->sources[tile] = 0;
  uint16_t bit = (uint16_t)(1u << net->source[i].direction);
  if (demand->sources[tile] & bit)
    return weft_error(INVALID_ARGUMENT, "%s: source %d at (%d, %d) is one of its earlier sources", net->name, i,
                      tile % mesh->width, tile / mesh->width);
  demand->sources[tile] |= bit;
  return weft_ok();
}

static weft_status_t check_ends(const weft_router_mesh_t* mesh, int32_t net_count, const weft_router_net_t* net,
                                demand_t* demand) {
  forget_nets(demand, mesh->tiles);
  for (int32_t n = 0; n < net_count; ++n)
    for (int32_t i = 0; i < terminal_count(&net[n]); ++i) {
      if (i < net[n].source_count) WEFT_RETURN_IF_ERROR(check_source(mesh, demand, n, &net[n], i));
      if (demands(demand, n, &net[n], i)) ++demand->entries[terminal(&net[n], i)->tile];
    }
  int32_t worst = 0;
  for (int32_t t = 1; t < mesh->tiles; ++t)
    if (demand->entries[t] > demand->entries[worst]) worst = t;
  if (demand->entries[worst] <= (uint32_t)mesh->colours) return weft_ok();
  return ends_error(mesh, net_count, net, worst, demand->entries[worst]);
}

// Lines: a net whose ends lie on both sides of a row, or on it, has an entry in one of the row's routers. The routers
// that count are those of the net's own part of the mesh. Columns likewise.
static int32_t line_of(const weft_router_mesh_t* mesh, bool rows, int32_t tile) {
  return rows ? tile / mesh->width : tile % mesh->width;
}
static void span(const weft_router_mesh_t* mesh, bool rows, const weft_router_net_t* net, int32_t* out_lo,
                 int32_t* out_hi) {
  *out_lo = *out_hi = line_of(mesh, rows, net->source[0].tile);
  for (int32_t i = 1; i < terminal_count(net); ++i) {
    int32_t line = line_of(mesh, rows, terminal(net, i)->tile);
    if (line < *out_lo) *out_lo = line;
    if (line > *out_hi) *out_hi = line;
  }
}

static weft_status_t line_error(const weft_router_mesh_t* mesh, const weft_parts_t* parts, bool rows, int32_t line,
                                int32_t part, int64_t routers, int64_t crossing, int32_t net_count,
                                const weft_router_net_t* net) {
  names_t names = {0};
  weft_text_initialize(mesh->allocator, &names.text);
  weft_status_t status = weft_ok();
  for (int32_t n = 0; !status && n < net_count; ++n) {
    int32_t lo, hi;
    span(mesh, rows, &net[n], &lo, &hi);
    if (parts->label[net[n].source[0].tile] == part && lo <= line && line <= hi)
      status = names_add(&names, net[n].name);
  }
  if (!status) status = names_end(&names);
  int32_t first = -1, last = -1;
  for (int32_t t = 0; t < mesh->tiles; ++t)
    if (parts->label[t] == part && line_of(mesh, rows, t) == line) {
      if (first < 0) first = t;
      last = t;
    }
  if (!status)
    status = weft_error(
        UNROUTABLE,
        "%s: the cut along %s %d is full: its %lld live routers, from (%d, %d) to (%d, %d), have %lld colours for "
        "%lld streams that must pass: %s; a machine of %lld colours a router, or fewer streams across, would do",
        names.first, rows ? "row" : "column", line, (long long)routers, first % mesh->width, first / mesh->width,
        last % mesh->width, last / mesh->width, (long long)(routers * mesh->colours), (long long)crossing,
        names.text.data, (long long)((crossing + routers - 1) / routers));
  weft_text_deinitialize(&names.text);
  return status;
}

// `crossing` and `routers` have room for a line more than the mesh has.
static weft_status_t check_lines(const weft_router_mesh_t* mesh, const weft_parts_t* parts, bool rows, int32_t part,
                                 int32_t net_count, const weft_router_net_t* net, int64_t* crossing, int64_t* routers) {
  int32_t lines = rows ? mesh->height : mesh->width;
  memset(crossing, 0, ((size_t)lines + 1) * sizeof(*crossing));
  memset(routers, 0, ((size_t)lines + 1) * sizeof(*routers));
  for (int32_t n = 0; n < net_count; ++n) {
    if (parts->label[net[n].source[0].tile] != part) continue;
    int32_t lo, hi;
    span(mesh, rows, &net[n], &lo, &hi);
    ++crossing[lo];
    --crossing[hi + 1];
  }
  for (int32_t t = 0; t < mesh->tiles; ++t) routers[line_of(mesh, rows, t)] += parts->label[t] == part;
  int64_t now = 0;
  for (int32_t line = 0; line < lines; ++line) {
    now += crossing[line];
    if (now > routers[line] * mesh->colours)
      return line_error(mesh, parts, rows, line, part, routers[line], now, net_count, net);
  }
  return weft_ok();
}

static weft_status_t check_all_lines(const weft_router_mesh_t* mesh, const weft_parts_t* parts, int32_t net_count,
                                     const weft_router_net_t* net) {
  size_t room = (size_t)(mesh->width > mesh->height ? mesh->width : mesh->height) + 1;
  int64_t *crossing = NULL, *routers = NULL;
  weft_status_t status = weft_allocator_calloc(mesh->allocator, room, sizeof(*crossing), (void**)&crossing);
  if (!status) status = weft_allocator_calloc(mesh->allocator, room, sizeof(*routers), (void**)&routers);
  // Many defects leave hundreds of islands; a part of an eighth of the mesh or more is worth a look at all nets and
  // tiles.
  for (int32_t part = 0; !status && part < parts->count; ++part)
    for (int rows = 0; !status && rows < 2; ++rows)
      if (parts->size[part] >= mesh->tiles / 8)
        status = check_lines(mesh, parts, rows, part, net_count, net, crossing, routers);
  weft_allocator_free(mesh->allocator, crossing);
  weft_allocator_free(mesh->allocator, routers);
  return status;
}

weft_status_t weft_router_limits_colours(const weft_router_mesh_t* mesh, const weft_parts_t* parts, int32_t net_count,
                                         const weft_router_net_t* net) {
  demand_t demand = {0};
  size_t tiles = (size_t)mesh->tiles;
  weft_allocator_t allocator = mesh->allocator;
  weft_status_t status = weft_allocator_calloc(allocator, tiles, sizeof(*demand.entries), (void**)&demand.entries);
  if (!status) status = weft_allocator_calloc(allocator, tiles, sizeof(*demand.gather), (void**)&demand.gather);
  if (!status) status = weft_allocator_calloc(allocator, tiles, sizeof(*demand.multicast), (void**)&demand.multicast);
  if (!status) status = weft_allocator_calloc(allocator, tiles, sizeof(*demand.sources), (void**)&demand.sources);
  if (!status) status = check_ends(mesh, net_count, net, &demand);
  if (!status) status = check_all_lines(mesh, parts, net_count, net);
  weft_allocator_free(allocator, demand.entries);
  weft_allocator_free(allocator, demand.gather);
  weft_allocator_free(allocator, demand.multicast);
  weft_allocator_free(allocator, demand.sources);
  return status;
}

// After the last iteration
// ---------------------------------------------------------------------------------------------

static bool passes(const weft_router_tree_t* tree, int32_t tile) {
  for (int32_t i = 0; i < tree->count; ++i)
    if (tree->node[i].tile == tile) return true;
  return false;
}

// Nets that need a router that is overused now, wherever they go: an end lies in one, or they part its ends.
static weft_status_t count_bound_nets(const weft_router_mesh_t* mesh, const weft_machine_t* machine,
                                      const weft_defects_t* defects, int32_t net_count, const weft_router_net_t* net,
                                      int32_t* out_count) {
  weft_defects_t without;
  weft_parts_t parts = {0};
  WEFT_RETURN_IF_ERROR(weft_defects_create(mesh->allocator, machine, &without));
  size_t tiles = (size_t)mesh->tiles;
  memcpy(without.dead_tile, defects->dead_tile, tiles);
  memcpy(without.dead_links, defects->dead_links, tiles);
  for (int32_t t = 0; t < mesh->tiles; ++t)
    if (mesh->tile[t].usage > (uint32_t)mesh->colours) weft_defects_kill_tile(&without, t);
  weft_status_t status = weft_parts_find(mesh->allocator, machine, &without, &parts);
  *out_count = 0;
  for (int32_t n = 0; !status && n < net_count; ++n) {
    int32_t part = parts.label[net[n].source[0].tile];
    bool bound = part < 0;
    for (int32_t i = 1; i < terminal_count(&net[n]); ++i) bound |= parts.label[terminal(&net[n], i)->tile] != part;
    *out_count += bound;
  }
  if (!status) weft_parts_deinitialize(&parts);
  weft_defects_deinitialize(&without);
  return status;
}

weft_status_t weft_router_limits_overused(const weft_router_mesh_t* mesh, const weft_machine_t* machine,
                                          const weft_defects_t* defects, int32_t net_count,
                                          const weft_router_net_t* net, const weft_router_tree_t* tree,
                                          int32_t iterations) {
  int32_t worst = 0, x0 = mesh->width, y0 = mesh->height, x1 = -1, y1 = -1, width = mesh->width;
  for (int32_t t = 0; t < mesh->tiles; ++t) {
    if (mesh->tile[t].usage > mesh->tile[worst].usage) worst = t;
    if (mesh->tile[t].usage <= (uint32_t)mesh->colours) continue;
    int32_t x = t % width, y = t / width;
    if (x < x0) x0 = x;
    if (x > x1) x1 = x;
    if (y < y0) y0 = y;
    if (y > y1) y1 = y;
  }
  int32_t bound = 0;
  WEFT_RETURN_IF_ERROR(count_bound_nets(mesh, machine, defects, net_count, net, &bound));
  names_t names = {0};
  weft_text_initialize(mesh->allocator, &names.text);
  weft_status_t status = weft_ok();
  for (int32_t n = 0; !status && n < net_count; ++n)
    if (passes(&tree[n], worst)) status = names_add(&names, net[n].name);
  if (!status) status = names_end(&names);
  if (!status)
    status = weft_error(UNROUTABLE,
                        "%s: router (%d, %d) is full: %u entries for its %d colours after %d iterations, held by %s; "
                        "routers over the limit: %d, "
                        "from (%d, %d) to (%d, %d), with %lld colours in all, which %d streams cannot avoid; fewer "
                        "streams there, or a machine "
                        "of %u colours, would do",
                        names.first, worst % width, worst / width, mesh->tile[worst].usage, mesh->colours, iterations,
                        names.text.data, mesh->overused, x0, y0, x1, y1, (long long)mesh->overused * mesh->colours,
                        bound, mesh->tile[worst].usage);
  weft_text_deinitialize(&names.text);
  return status;
}
