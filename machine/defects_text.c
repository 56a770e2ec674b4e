// Defect maps as text: the file's lines, the one-line spec, and the canonical print.
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "machine/defects.h"
#include "machine/number.h"

typedef struct word_t {
  const char* text;
  size_t size;
} word_t;
enum { MAX_WORDS = 7 }; // of the longest line: rate R seed S links L, and one to notice a surplus

typedef struct parser_t {
  const char* origin;
  int64_t line;
  const weft_machine_t* machine;
  weft_defects_t* defects;
  // Rectangles as marks at their corners; one prefix sum over the mesh then kills all their tiles, however many they
  // are.
  uint32_t* corners; // [(height + 1) * (width + 1)], NULL before the first rectangle
  bool drawn;
} parser_t;

static bool word_is(word_t word, const char* text) {
  return word.size == strlen(text) && memcmp(word.text, text, word.size) == 0;
}

// Splits a line up to its comment at white space. At most MAX_WORDS are kept.
static int split_line(const char* line, size_t size, word_t words[MAX_WORDS]) {
  int count = 0;
  for (size_t i = 0; i < size && line[i] != '#' && count < MAX_WORDS;) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    size_t start = i;
    while (i < size && line[i] != '#' && line[i] != ' ' && line[i] != '\t' && line[i] != '\r') ++i;
    words[count++] = (word_t){line + start, i - start};
  }
  return count;
}

// What independent faults with these rates kill. Each tile has a generator of its own, seeded by its coordinates, and
// draws in a fixed order: so a tile's fate depends on neither the mesh around it nor the other rates, and a higher rate
// with the same seed only adds faults.
static void draw(const weft_machine_t* machine, weft_defects_t* defects, double rate, double link_rate, uint64_t seed) {
  static const weft_direction_e LINKS[] = {WEFT_DIRECTION_E, WEFT_DIRECTION_S, WEFT_DIRECTION_SE, WEFT_DIRECTION_SW};
  uint64_t base = weft_rng_mix(seed);
  for (int32_t y = 0; y < machine->height; ++y) {
    for (int32_t x = 0; x < machine->width; ++x) {
      weft_rng_t rng;
      weft_rng_seed(&rng, weft_rng_mix(base + ((uint64_t)y << 32 | (uint64_t)x)));
      int32_t tile = y * machine->width + x;
      if (weft_rng_unit(&rng) < rate) weft_defects_kill_tile(defects, tile);
      if (link_rate <= 0) continue;
      for (size_t i = 0; i < sizeof(LINKS) / sizeof(LINKS[0]); ++i) {
        if (weft_rng_unit(&rng) < link_rate) weft_defects_kill_link(machine, defects, tile, LINKS[i]);
      }
    }
  }
}

static bool parse_rate(word_t word, double* out_rate) {
  return weft_machine_number_real(word.text, word.size, out_rate) && *out_rate >= 0 && *out_rate <= 1;
}

static weft_status_t malformed(const parser_t* parser, const char* expected) {
  return weft_error(INVALID_INPUT, "%s:%" PRId64 ": expected '%s'", parser->origin, parser->line, expected);
}

static weft_status_t parse_coordinates(const parser_t* parser, const word_t* words, int count, const char* expected,
                                       int64_t* out_values) {
  for (int i = 0; i < count; ++i) {
    if (!weft_machine_number_integer(words[i].text, words[i].size, &out_values[i])) return malformed(parser, expected);
  }
  return weft_ok();
}

static weft_status_t check_tile(const parser_t* parser, int64_t x, int64_t y) {
  const weft_machine_t* machine = parser->machine;
  if (x >= 0 && y >= 0 && x < machine->width && y < machine->height) return weft_ok();
  return weft_error(
      INVALID_INPUT,
      "%s:%" PRId64 ": tile (%" PRId64 ", %" PRId64 ") is outside the mesh of %dx%d: expected X from 0 to %d "
      "and Y from 0 to %d",
      parser->origin, parser->line, x, y, machine->width, machine->height, machine->width - 1, machine->height - 1);
}

static weft_status_t kill_rect(parser_t* parser, int64_t x0, int64_t y0, int64_t x1, int64_t y1) {
  WEFT_RETURN_IF_ERROR(check_tile(parser, x0, y0));
  WEFT_RETURN_IF_ERROR(check_tile(parser, x1, y1));
  if (x0 > x1 || y0 > y1) {
    return weft_error(INVALID_INPUT,
                      "%s:%" PRId64 ": from (%" PRId64 ", %" PRId64 ") to (%" PRId64 ", %" PRId64
                      ") is empty: expected the smaller coordinate first",
                      parser->origin, parser->line, x0, y0, x1, y1);
  }
  size_t pitch = (size_t)parser->machine->width + 1;
  if (!parser->corners) {
    WEFT_RETURN_IF_ERROR(weft_allocator_calloc(parser->defects->allocator, (size_t)parser->machine->height + 1,
                                               pitch * sizeof(*parser->corners), (void**)&parser->corners));
  }
  ++parser->corners[(size_t)y0 * pitch + (size_t)x0];
  --parser->corners[(size_t)y0 * pitch + (size_t)x1 + 1];
  --parser->corners[((size_t)y1 + 1) * pitch + (size_t)x0];
  ++parser->corners[((size_t)y1 + 1) * pitch + (size_t)x1 + 1];
  return weft_ok();
}

static void kill_marked(parser_t* parser) {
  if (!parser->corners) return;
  size_t pitch = (size_t)parser->machine->width + 1;
  for (int32_t y = 0; y < parser->machine->height; ++y) {
    uint32_t* row = parser->corners + (size_t)y * pitch;
    uint32_t along = 0;
    for (int32_t x = 0; x < parser->machine->width; ++x) {
      along += row[x];
      row[x] = along + (y > 0 ? row[x - (ptrdiff_t)pitch] : 0);
      if (row[x]) weft_defects_kill_tile(parser->defects, y * parser->machine->width + x);
    }
  }
}

static weft_status_t parse_tile(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "tile X Y";
  int64_t at[2];
  if (count != 3) return malformed(parser, EXPECTED);
  WEFT_RETURN_IF_ERROR(parse_coordinates(parser, words + 1, 2, EXPECTED, at));
  WEFT_RETURN_IF_ERROR(check_tile(parser, at[0], at[1]));
  weft_defects_kill_tile(parser->defects, (int32_t)(at[1] * parser->machine->width + at[0]));
  return weft_ok();
}

static weft_status_t parse_row(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "row Y' or 'row Y X0 X1";
  int64_t at[3] = {0, 0, parser->machine->width - 1};
  if (count != 2 && count != 4) return malformed(parser, EXPECTED);
  WEFT_RETURN_IF_ERROR(parse_coordinates(parser, words + 1, count - 1, EXPECTED, at));
  return kill_rect(parser, at[1], at[0], at[2], at[0]);
}

static weft_status_t parse_column(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "column X' or 'column X Y0 Y1";
  int64_t at[3] = {0, 0, parser->machine->height - 1};
  if (count != 2 && count != 4) return malformed(parser, EXPECTED);
  WEFT_RETURN_IF_ERROR(parse_coordinates(parser, words + 1, count - 1, EXPECTED, at));
  return kill_rect(parser, at[0], at[1], at[0], at[2]);
}

static weft_status_t parse_rect(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "rect X0 Y0 X1 Y1";
  int64_t at[4];
  if (count != 5) return malformed(parser, EXPECTED);
  WEFT_RETURN_IF_ERROR(parse_coordinates(parser, words + 1, 4, EXPECTED, at));
  return kill_rect(parser, at[0], at[1], at[2], at[3]);
}

static weft_status_t parse_link(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "link X Y DIRECTION', direction one of 'N E S W NE SE SW NW";
  int64_t at[2];
  if (count != 4) return malformed(parser, EXPECTED);
  WEFT_RETURN_IF_ERROR(parse_coordinates(parser, words + 1, 2, EXPECTED, at));
  WEFT_RETURN_IF_ERROR(check_tile(parser, at[0], at[1]));
  int direction = 0;
  while (direction < WEFT_DIRECTION_COUNT && !word_is(words[3], weft_direction_name((weft_direction_e)direction))) {
    ++direction;
  }
  if (direction == WEFT_DIRECTION_COUNT || direction == WEFT_DIRECTION_RAMP) return malformed(parser, EXPECTED);
  int32_t tile = (int32_t)(at[1] * parser->machine->width + at[0]);
  if (weft_machine_neighbour(parser->machine, tile, (weft_direction_e)direction) < 0) {
    bool diagonal = direction > WEFT_DIRECTION_RAMP && !parser->machine->diagonal_links;
    return weft_error(INVALID_INPUT, "%s:%" PRId64 ": tile (%" PRId64 ", %" PRId64 ") has no link %s: %s",
                      parser->origin, parser->line, at[0], at[1], weft_direction_name((weft_direction_e)direction),
                      diagonal ? "the machine has no diagonal links" : "it leads off the mesh");
  }
  weft_defects_kill_link(parser->machine, parser->defects, tile, (weft_direction_e)direction);
  return weft_ok();
}

static weft_status_t parse_draw(parser_t* parser, const word_t* words, int count) {
  static const char EXPECTED[] = "rate R seed S' or 'rate R seed S links L', rates from 0 to 1";
  double rate, link_rate = 0;
  uint64_t seed;
  if ((count != 4 && count != 6) || !word_is(words[2], "seed") || !parse_rate(words[1], &rate) ||
      !weft_machine_number_unsigned(words[3].text, words[3].size, &seed) ||
      (count == 6 && (!word_is(words[4], "links") || !parse_rate(words[5], &link_rate)))) {
    return malformed(parser, EXPECTED);
  }
  if (parser->drawn) {
    return weft_error(INVALID_INPUT, "%s:%" PRId64 ": a second 'rate' line: expected at most one", parser->origin,
                      parser->line);
  }
  parser->drawn = true;
  draw(parser->machine, parser->defects, rate, link_rate, seed);
  return weft_ok();
}

static weft_status_t parse_line(parser_t* parser, const char* line, size_t size) {
  static const struct {
    const char* keyword;
    weft_status_t (*parse)(parser_t* parser, const word_t* words, int count);
  } LINES[] = {{"tile", parse_tile}, {"row", parse_row},   {"column", parse_column},
               {"rect", parse_rect}, {"link", parse_link}, {"rate", parse_draw}};
  word_t words[MAX_WORDS];
  int count = split_line(line, size, words);
  if (count == 0) return weft_ok();
  for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); ++i) {
    if (word_is(words[0], LINES[i].keyword)) return LINES[i].parse(parser, words, count);
  }
  int shown = (int)(words[0].size < 40 ? words[0].size : 40);
  return weft_error(INVALID_INPUT,
                    "%s:%" PRId64 ": unknown word '%.*s': expected tile, row, column, rect, link or rate",
                    parser->origin, parser->line, shown, words[0].text);
}

weft_status_t weft_defects_parse(weft_allocator_t allocator, const char* text, size_t size, const char* origin,
                                 const weft_machine_t* machine, weft_defects_t* out_defects) {
  WEFT_RETURN_IF_ERROR(weft_defects_create(allocator, machine, out_defects));
  parser_t parser = {.origin = origin, .machine = machine, .defects = out_defects};
  weft_status_t status = weft_ok();
  for (size_t start = 0; start < size && !status;) {
    const char* newline = memchr(text + start, '\n', size - start);
    size_t length = newline ? (size_t)(newline - (text + start)) : size - start;
    ++parser.line;
    status = parse_line(&parser, text + start, length);
    start += length + 1;
  }
  if (!status) kill_marked(&parser);
  weft_allocator_free(allocator, parser.corners);
  if (status) weft_defects_deinitialize(out_defects);
  return status;
}

static weft_status_t load_drawn(weft_allocator_t allocator, const char* spec, const weft_machine_t* machine,
                                weft_defects_t* out_defects) {
  double rate = 0, link_rate = 0;
  uint64_t seed = 0;
  bool has_rate = false, has_links = false, has_seed = false, valid = true;
  for (const char* at = spec; valid;) {
    size_t size = strcspn(at, ",");
    size_t key = strcspn(at, "=,");
    word_t value = {at + key + (key < size), size - key - (key < size)};
    if (word_is((word_t){at, key}, "rate") && !has_rate) {
      has_rate = valid = parse_rate(value, &rate);
    } else if (word_is((word_t){at, key}, "links") && !has_links) {
      has_links = valid = parse_rate(value, &link_rate);
    } else if (word_is((word_t){at, key}, "seed") && !has_seed) {
      has_seed = valid = weft_machine_number_unsigned(value.text, value.size, &seed);
    } else {
      valid = false;
    }
    if (at[size] == 0) break;
    at += size + 1;
  }
  if (!valid || !(has_rate || has_links)) {
    return weft_error(
        INVALID_ARGUMENT,
        "defects '%s': expected rate=R,seed=S or rate=R,seed=S,links=L with rates from 0 to 1 and a whole "
        "seed, such as rate=0.01,seed=7",
        spec);
  }
  WEFT_RETURN_IF_ERROR(weft_defects_create(allocator, machine, out_defects));
  draw(machine, out_defects, rate, link_rate, seed);
  return weft_ok();
}

weft_status_t weft_defects_load(weft_allocator_t allocator, const char* spec, const weft_machine_t* machine,
                                weft_defects_t* out_defects) {
  if (!spec || !*spec || strcmp(spec, "none") == 0) return weft_defects_create(allocator, machine, out_defects);
  static const char* const KEYS[] = {"rate=", "links=", "seed="};
  for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); ++i) {
    if (strncmp(spec, KEYS[i], strlen(KEYS[i])) == 0) return load_drawn(allocator, spec, machine, out_defects);
  }
  weft_mapping_t mapping;
  weft_status_t status = weft_file_map(spec, &mapping);
  if (status) {
    return weft_status_annotate(status, "defects '%s' is neither none nor rate=R,seed=S, so it was taken for a file",
                                spec);
  }
  status = weft_defects_parse(allocator, (const char*)mapping.data, mapping.size, spec, machine, out_defects);
  weft_file_unmap(&mapping);
  return status;
}

weft_status_t weft_defects_print(const weft_defects_t* defects, weft_text_t* text) {
  // Of the two ends of a link, the one with the lower index names it.
  static const weft_direction_e LINKS[] = {WEFT_DIRECTION_E, WEFT_DIRECTION_S, WEFT_DIRECTION_SE, WEFT_DIRECTION_SW};
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "# defects of a mesh of %dx%d\n", defects->width, defects->height));
  for (int32_t y = 0, tile = 0; y < defects->height; ++y) {
    for (int32_t x = 0; x < defects->width; ++x, ++tile) {
      if (defects->dead_tile[tile]) WEFT_RETURN_IF_ERROR(weft_text_printf(text, "tile %d %d\n", x, y));
      for (size_t i = 0; defects->dead_links[tile] && i < sizeof(LINKS) / sizeof(LINKS[0]); ++i) {
        if (!(defects->dead_links[tile] >> LINKS[i] & 1)) continue;
        WEFT_RETURN_IF_ERROR(weft_text_printf(text, "link %d %d %s\n", x, y, weft_direction_name(LINKS[i])));
      }
    }
  }
  return weft_ok();
}
