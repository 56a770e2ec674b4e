#include "check/links.h"

#include <inttypes.h>

#include "base/array.h"

// The last entry on a tile, or -1.
static int32_t last_on(const weft_links_t* links, int32_t tile) {
  if (tile < 0 || tile >= links->tiles) return WEFT_LINKS_NOWHERE;
  int32_t index = links->last[tile];
  return index < links->count && links->entry[index].tile == tile ? index : WEFT_LINKS_NOWHERE;
}

int32_t weft_links_find(const weft_links_t* links, int32_t tile, int32_t colour) {
  int32_t index = last_on(links, tile);
  while (index >= 0 && links->entry[index].colour != colour) index = links->before[index];
  return index;
}

// The ports of a side stand in the order of its tiles.
int32_t weft_links_port(const weft_machine_t* machine, int32_t tile, int32_t direction) {
  if (direction >= (int32_t)(sizeof(machine->ports_per_side) / sizeof(machine->ports_per_side[0]))) return -1;
  int32_t low = 0;
  for (int32_t side = 0; side < direction; ++side) low += machine->ports_per_side[side];
  int32_t end = low + machine->ports_per_side[direction], high = end;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (weft_machine_port(machine, middle).tile < tile)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && weft_machine_port(machine, low).tile == tile ? low : -1;
}

static bool is_port(const weft_machine_t* machine, int32_t tile, int32_t direction) {
  return weft_links_port(machine, tile, direction) >= 0;
}

int32_t weft_links_target(const weft_links_t* links, const weft_router_entry_t* entry, int32_t direction) {
  if (direction == WEFT_DIRECTION_RAMP) return WEFT_LINKS_RAMP;
  int32_t next = weft_machine_neighbour(links->machine, entry->tile, (weft_direction_e)direction);
  if (next < 0) return is_port(links->machine, entry->tile, direction) ? WEFT_LINKS_PORT : WEFT_LINKS_NOWHERE;
  return weft_links_find(links, next, entry->output_colour[direction]);
}

static const char* name_of(int32_t direction) {
  return weft_direction_name((weft_direction_e)direction);
}

static weft_check_place_t place_of(const weft_links_t* links, const weft_router_entry_t* entry) {
  return weft_check_place(links->machine, entry->tile);
}

// False: the others can't be joined to it.
static bool check_entry(const weft_links_t* l, const weft_router_entry_t* entry) {
  if (entry->tile < 0 || entry->tile >= weft_machine_tiles(l->machine)) {
    weft_faults_add(l->faults, "%s: a router entry on tile %" PRId32 " of %" PRId32, l->name, entry->tile,
                    weft_machine_tiles(l->machine));
    return false;
  }
  if (!weft_defects_live(l->defects, entry->tile))
    weft_faults_add(l->faults, "%s: passes %s, which is dead", l->name, place_of(l, entry).text);
  if (entry->colour >= l->machine->colours)
    weft_faults_add(l->faults, "%s: colour %d on %s, a router has %" PRId32, l->name, entry->colour,
                    place_of(l, entry).text, l->machine->colours);
  if (entry->input_count == 0 || entry->outputs == 0)
    weft_faults_add(l->faults, "%s: colour %d on %s has no %s", l->name, entry->colour, place_of(l, entry).text,
                    entry->outputs ? "inputs" : "outputs");
  for (int32_t i = 0; i < entry->input_count; ++i)
    for (int32_t j = 0; j < i; ++j)
      if (entry->input[i] == entry->input[j])
        weft_faults_add(l->faults, "%s: colour %d on %s has input %s twice", l->name, entry->colour,
                        place_of(l, entry).text, name_of(entry->input[i]));
  return true;
}

static void join_output(weft_links_t* l, int32_t index, int32_t direction) {
  const weft_router_entry_t* entry = &l->entry[index];
  int32_t next = weft_machine_neighbour(l->machine, entry->tile, (weft_direction_e)direction);
  int32_t target = weft_links_target(l, entry, direction);
  if (next >= 0 && !weft_defects_link_live(l->machine, l->defects, entry->tile, (weft_direction_e)direction)) {
    weft_faults_add(l->faults, "%s: leaves %s by its link %s, which is dead", l->name, place_of(l, entry).text,
                    name_of(direction));
    // It is joined all the same: what lies behind it isn't wrong too.
  }
  if (next < 0 && target == WEFT_LINKS_NOWHERE) {
    weft_faults_add(l->faults, "%s: leaves %s by %s, where there is neither a link nor a host port", l->name,
                    place_of(l, entry).text, name_of(direction));
    return;
  }
  if (next < 0) return;
  int32_t back = (int32_t)weft_direction_opposite((weft_direction_e)direction), slot = 0;
  while (target >= 0 && slot < l->entry[target].input_count && l->entry[target].input[slot] != back) ++slot;
  if (target < 0 || slot == l->entry[target].input_count) {
    weft_faults_add(l->faults,
                    "%s: output %s of colour %d on %s leads to colour %d on %s, which expects nothing from %s", l->name,
                    name_of(direction), entry->colour, place_of(l, entry).text, entry->output_colour[direction],
                    weft_check_place(l->machine, next).text, name_of(back));
    return;
  }
  if (l->upstream[target][slot] != WEFT_LINKS_NOWHERE) {
    weft_faults_add(l->faults, "%s: input %s of colour %d on %s is fed by two colours", l->name, name_of(back),
                    l->entry[target].colour, weft_check_place(l->machine, next).text);
    return;
  }
  l->upstream[target][slot] = index;
}

static void check_inputs(const weft_links_t* l, int32_t index) {
  const weft_router_entry_t* entry = &l->entry[index];
  for (int32_t i = 0; i < entry->input_count; ++i) {
    if (l->upstream[index][i] != WEFT_LINKS_NOWHERE) continue;
    weft_faults_add(l->faults, "%s: colour %d on %s expects wavelets from %s, where none come from", l->name,
                    entry->colour, place_of(l, entry).text, name_of(entry->input[i]));
  }
}

static weft_status_t reserve(weft_links_t* l, int32_t count) {
  size_t capacity = l->capacity, again = l->capacity;
  if (l->tiles != weft_machine_tiles(l->machine)) {
    weft_allocator_free(l->allocator, l->last);
    l->tiles = 0;
    size_t tiles = (size_t)weft_machine_tiles(l->machine);
    WEFT_RETURN_IF_ERROR(weft_allocator_calloc(l->allocator, tiles, sizeof(*l->last), (void**)&l->last));
    l->tiles = (int32_t)tiles;
  }
  WEFT_RETURN_IF_ERROR(
      weft_array_reserve(l->allocator, (void**)&l->before, &capacity, (size_t)count, sizeof(*l->before)));
  WEFT_RETURN_IF_ERROR(
      weft_array_reserve(l->allocator, (void**)&l->upstream, &again, (size_t)count, sizeof(*l->upstream)));
  l->capacity = capacity < again ? capacity : again;
  return weft_ok();
}

// Puts the entries on their tiles, each (tile, colour) once: a second one is not found again. l->count counts them.
static void place_entries(weft_links_t* l, int32_t count) {
  for (l->count = 0; l->count < count; ++l->count) {
    const weft_router_entry_t* entry = &l->entry[l->count];
    if (weft_links_find(l, entry->tile, entry->colour) >= 0) {
      weft_faults_add(l->faults, "%s: colour %d on %s is used twice", l->name, entry->colour, place_of(l, entry).text);
      continue;
    }
    l->before[l->count] = last_on(l, entry->tile);
    l->last[entry->tile] = l->count;
  }
}

weft_status_t weft_links_join(weft_links_t* l, int32_t count, const weft_router_entry_t* entry) {
  WEFT_RETURN_IF_ERROR(reserve(l, count));
  l->entry = entry;
  l->count = 0;
  bool joinable = true;
  for (int32_t i = 0; i < count; ++i) joinable = check_entry(l, &entry[i]) && joinable;
  if (!joinable) return weft_ok();
  place_entries(l, count);
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t s = 0; s < entry[i].input_count; ++s) {
      bool ramp = entry[i].input[s] == WEFT_DIRECTION_RAMP;
      bool edge = !ramp && weft_machine_neighbour(l->machine, entry[i].tile, (weft_direction_e)entry[i].input[s]) < 0 &&
                  is_port(l->machine, entry[i].tile, entry[i].input[s]);
      l->upstream[i][s] = ramp ? WEFT_LINKS_RAMP : edge ? WEFT_LINKS_PORT : WEFT_LINKS_NOWHERE;
    }
  }
  for (int32_t i = 0; i < count; ++i)
    for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (entry[i].outputs >> d & 1 && d != WEFT_DIRECTION_RAMP) join_output(l, i, d);
  for (int32_t i = 0; i < count; ++i) check_inputs(l, i);
  return weft_ok();
}

void weft_links_deinitialize(weft_links_t* links) {
  weft_allocator_free(links->allocator, links->last);
  weft_allocator_free(links->allocator, links->before);
  weft_allocator_free(links->allocator, links->upstream);
  links->last = links->before = NULL;
  links->upstream = NULL;
  links->tiles = links->count = 0;
  links->capacity = 0;
}
