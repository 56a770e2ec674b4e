// Which tiles of a region stand for a kernel's logical grid. Dead tiles are stepped over so that neighbours stay near
// each other and little of the region is lost: lines are taken whole where there are enough good ones; else the tiles
// along the grid's longer side are stacks from which each line across takes one of as many stacks as it needs.
#include <string.h>

#include "ir/fabric/streams.h"

enum { MOST_STACKS = 4096 }; // more than any wafer has tiles in a row

// A region seen from its logical grid: `line` along logical y, `place` along logical x.
typedef struct site_t {
  const weft_machine_t* machine;
  const weft_defects_t* defects;
  const weft_region_t* region;
  int32_t lines, places;
  int32_t gy, gx;
} site_t;

static int32_t tile_at(const site_t* s, int32_t line, int32_t place) {
  const weft_region_t* region = s->region;
  int32_t x = region->x + (region->transposed ? line : place), y = region->y + (region->transposed ? place : line);
  return y * s->machine->width + x;
}

static bool take_lines(const site_t* s, int32_t* out_tiles) {
  int32_t mapped = 0; // lines that have gx live tiles
  for (int32_t line = 0; line < s->lines && mapped < s->gy; ++line) {
    int32_t found = 0;
    for (int32_t place = 0; place < s->places && found < s->gx; ++place) {
      int32_t tile = tile_at(s, line, place);
      if (weft_defects_live(s->defects, tile)) out_tiles[(int64_t)mapped * s->gx + found++] = tile;
    }
    mapped += found == s->gx;
  }
  return mapped == s->gy;
}

// Stacks stand next to each other; each of `rounds` rounds takes the next live tile of `width` of them, those that have
// most left: then no stack runs out while the rounds can be filled at all (Gale and Ryser). `upright`: stacks run along
// logical y, and a round is a logical row; else along logical x, and a round is a column.
static bool take_stacks(const site_t* s, bool upright, int32_t* out_tiles) {
  int32_t stacks = upright ? s->places : s->lines, depth = upright ? s->lines : s->places;
  int32_t rounds = upright ? s->gy : s->gx, width = upright ? s->gx : s->gy;
  int32_t left[MOST_STACKS], next[MOST_STACKS];
  bool passed[MOST_STACKS];
  if (stacks > MOST_STACKS || stacks < width) return false;
  if ((int64_t)4 * depth < (int64_t)3 * rounds) return false; // neighbours would mostly stand in other stacks
  int64_t usable = 0;
  for (int32_t i = 0; i < stacks; ++i) {
    left[i] = next[i] = 0;
    for (int32_t at = 0; at < depth; ++at)
      left[i] += weft_defects_live(s->defects, upright ? tile_at(s, at, i) : tile_at(s, i, at));
    usable += left[i] < rounds ? left[i] : rounds;
  }
  if (usable < (int64_t)rounds * width) return false;
  for (int32_t round = 0; round < rounds; ++round) {
    memset(passed, 0, (size_t)stacks * sizeof(*passed));
    for (int32_t pass = 0; pass < stacks - width; ++pass) { // those with least left are passed over, the last of equals
      int32_t least = -1;
      for (int32_t i = 0; i < stacks; ++i)
        if (!passed[i] && (least < 0 || left[i] <= left[least])) least = i;
      passed[least] = true;
    }
    for (int32_t i = 0, taken = 0; i < stacks; ++i) {
      if (passed[i]) continue;
      int32_t tile;
      do {
        tile = upright ? tile_at(s, next[i], i) : tile_at(s, i, next[i]);
        ++next[i];
      } while (!weft_defects_live(s->defects, tile));
      --left[i];
      out_tiles[upright ? (int64_t)round * s->gx + taken : (int64_t)taken * s->gx + round] = tile;
      ++taken;
    }
  }
  return true;
}

static bool take_any(const site_t* s, int32_t* out_tiles) {
  int64_t needed = (int64_t)s->gy * s->gx, found = 0;
  for (int32_t line = 0; line < s->lines && found < needed; ++line) {
    for (int32_t i = 0; i < s->places && found < needed; ++i) {
      int32_t tile = tile_at(s, line, line % 2 ? s->places - 1 - i : i);
      if (weft_defects_live(s->defects, tile)) out_tiles[found++] = tile;
    }
  }
  return found == needed;
}

bool weft_region_map(const weft_machine_t* machine, const weft_defects_t* defects, const weft_region_t* region,
                     int32_t gy, int32_t gx, int32_t* out_tiles) {
  if (region->x < 0 || region->y < 0 || region->width < 0 || region->height < 0 ||
      region->width > machine->width - region->x || region->height > machine->height - region->y)
    return false;
  site_t site = {machine, defects, region, region->height, region->width, gy, gx};
  if (region->transposed) {
    site.lines = region->width;
    site.places = region->height;
  }
  // Long stacks lose least: what is dead in one of them weighs less the longer it is.
  bool upright = gy >= gx;
  return take_lines(&site, out_tiles) || take_stacks(&site, upright, out_tiles) ||
         take_stacks(&site, !upright, out_tiles) || take_any(&site, out_tiles);
}
