#include "placer/rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "placer/grid.h"

enum { MOST_WORDS = 3, MOST_CONSTRAINTS = 100000, NAMES_SHOWN = 8 };

static const char expected[] = "expected 'fix KERNEL X,Y,WxH', 'keep-out X,Y,WxH [KERNEL]' or 'adjacent KERNEL KERNEL'";

// Splits a line at blanks in place, "..." keeping them together. -1: too many words.
static int split_words(char* line, const char* words[MOST_WORDS + 1]) {
  int count = 0;
  for (char* at = line;;) {
    at += strspn(at, " \t\r");
    if (!*at || *at == '#') return count;
    if (count > MOST_WORDS) return -1;
    bool quoted = *at == '"';
    words[count++] = at += quoted;
    at += strcspn(at, quoted ? "\"" : " \t\r");
    if (*at) *at++ = 0;
  }
}

static bool parse_region(const char* text, weft_placer_rule_t* rule) {
  int end = 0;
  int got = sscanf(text, "%d,%d,%dx%d%n", &rule->x, &rule->y, &rule->width, &rule->height, &end);
  return got == 4 && !text[end] && rule->x >= 0 && rule->y >= 0 && rule->width > 0 && rule->height > 0 &&
         rule->x < 1 << 20 && rule->y < 1 << 20 && rule->width < 1 << 20 && rule->height < 1 << 20;
}

// False: no rule of any kind.
static bool parse_rule(int count, const char* const* word, weft_placer_rule_t* rule) {
  if (!strcmp(word[0], "fix") && count == 3) {
    rule->kind = WEFT_PLACER_INSIDE;
    rule->kernel = word[1];
    return parse_region(word[2], rule);
  }
  if (!strcmp(word[0], "keep-out") && (count == 2 || count == 3)) {
    rule->kind = WEFT_PLACER_KEEP_OUT;
    rule->kernel = count == 3 ? word[2] : "*";
    return parse_region(word[1], rule);
  }
  if (!strcmp(word[0], "adjacent") && count == 3) {
    rule->kind = WEFT_PLACER_ADJACENT;
    rule->kernel = word[1];
    rule->other = word[2];
    return true;
  }
  return false;
}

weft_status_t weft_placer_rules_read(const char* path, weft_arena_t* arena, weft_placer_rules_t* out_rules) {
  weft_mapping_t mapping;
  *out_rules = (weft_placer_rules_t){.path = path};
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  char* text = NULL;
  weft_status_t status = weft_arena_allocate(arena, mapping.size + 1, 1, (void**)&text);
  if (!status) memcpy(text, mapping.data, mapping.size);
  weft_file_unmap(&mapping);
  WEFT_RETURN_IF_ERROR(status);
  size_t lines = 1;
  for (const char* at = text; *at; ++at) lines += *at == '\n';
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, lines, &out_rules->rule));
  int32_t number = 0;
  for (char* line = text; line;) {
    char* next = strchr(line, '\n');
    if (next) *next++ = 0;
    weft_placer_rule_t rule = {.line = ++number};
    WEFT_RETURN_IF_ERROR(weft_arena_strdup(arena, line + strspn(line, " \t"), &rule.text));
    const char* words[MOST_WORDS + 1] = {0};
    int count = split_words(line, words);
    if (count && (count < 0 || !parse_rule(count, words, &rule))) {
      return weft_error(INVALID_INPUT, "%s:%d: '%s': %s", path, number, rule.text, expected);
    }
    if (count) out_rules->rule[out_rules->count++] = rule;
    line = next;
  }
  return weft_ok();
}

// The name itself comes first: it may have characters that mean something in a pattern.
static bool matches(const char* pattern, const char* name) {
  return pattern && (!strcmp(pattern, name) || !fnmatch(pattern, name, 0));
}

static weft_status_t no_such_block(const weft_placer_rules_t* rules, const weft_placer_rule_t* rule,
                                   const char* pattern, const weft_placer_problem_t* problem, weft_arena_t* arena) {
  const char** names = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)problem->block_count + 1, &names));
  for (int32_t b = 0; b < problem->block_count; ++b) names[b] = problem->block[b].name;
  const char* nearest = weft_nearest_word(pattern, names, (size_t)problem->block_count);
  if (nearest) {
    return weft_error(NOT_FOUND, "%s:%d: no kernel matches '%s'; did you mean '%s'?", rules->path, rule->line, pattern,
                      nearest);
  }
  // Names that have the word in them come first, then the network's first ones.
  char shown[512] = "";
  size_t length = 0;
  int32_t count = 0;
  for (int pass = 0; pass < 2 && !(pass && count); ++pass) {
    for (int32_t b = 0; b < problem->block_count && count < NAMES_SHOWN && length < sizeof shown; ++b) {
      if (!pass && !strstr(names[b], pattern)) continue;
      length += (size_t)snprintf(shown + length, sizeof shown - length, "%s%s", count++ ? ", " : "", names[b]);
    }
  }
  return weft_error(NOT_FOUND, "%s:%d: no kernel matches '%s'; of %d kernels there are %s%s", rules->path, rule->line,
                    pattern, problem->block_count, shown, count < problem->block_count ? ", ..." : "");
}

// Appends the constraints of one rule, or only counts them where `out` is NULL.
static int32_t expand(const weft_placer_problem_t* problem, const weft_placer_rule_t* rule, int32_t index,
                      weft_placer_constraint_t* out) {
  int32_t count = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    if (!matches(rule->kernel, problem->block[b].name)) continue;
    int32_t others = rule->other ? problem->block_count : 1;
    for (int32_t o = 0; o < others; ++o) {
      if (rule->other && (o == b || !matches(rule->other, problem->block[o].name))) continue;
      if (out) {
        out[count] = (weft_placer_constraint_t){rule->kind, b, o, rule->x, rule->y, rule->width, rule->height, index};
      }
      if (++count > MOST_CONSTRAINTS) return count;
    }
  }
  return count;
}

static bool matches_any(const weft_placer_problem_t* problem, const char* pattern) {
  for (int32_t b = 0; b < problem->block_count; ++b) {
    if (matches(pattern, problem->block[b].name)) return true;
  }
  return false;
}

typedef struct clip_t {
  int32_t x, y, width, height;
} clip_t;

// The part of a constraint's region that is on the mesh; empty: width and height 0.
static clip_t clip(const weft_placer_constraint_t* c, const weft_placer_problem_t* problem) {
  int32_t right = c->x + c->width < problem->width ? c->x + c->width : problem->width;
  int32_t bottom = c->y + c->height < problem->height ? c->y + c->height : problem->height;
  if (right <= c->x || bottom <= c->y) return (clip_t){0};
  return (clip_t){c->x, c->y, right - c->x, bottom - c->y};
}

static const weft_placer_shape_t* smallest_shape(const weft_placer_block_t* block) {
  const weft_placer_shape_t* least = &block->shape[0];
  for (int32_t s = 1; s < block->shape_count; ++s) {
    if (block->shape[s].tiles < least->tiles) least = &block->shape[s];
  }
  return least;
}

// Whether some shape of the block fits somewhere in the region, stepping over dead tiles as placement does.
static bool fits_inside(const weft_placer_grid_t* grid, const weft_placer_block_t* block, clip_t r) {
  for (int32_t s = 0; s < block->shape_count; ++s) {
    for (int t = 0; t < 2; ++t) {
      const weft_placer_shape_t* shape = &block->shape[s];
      int32_t w = t ? shape->height : shape->width, h = t ? shape->width : shape->height;
      for (int32_t y = r.y; y + h <= r.y + r.height; ++y) {
        for (int32_t x = r.x; x + w <= r.x + r.width; ++x) {
          int32_t width = 0, height = 0;
          if (weft_placer_grid_fit(grid, shape, t, x, y, &width, &height) && x + width <= r.x + r.width &&
              y + height <= r.y + r.height) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

static weft_status_t check_inside(const weft_placer_rules_t* rules, const weft_placer_problem_t* problem,
                                  const weft_placer_grid_t* grid, const weft_placer_constraint_t* c) {
  const weft_placer_rule_t* rule = &rules->rule[c->rule];
  const weft_placer_block_t* block = &problem->block[c->block];
  clip_t r = clip(c, problem);
  int32_t live = weft_placer_grid_live(grid, r.x, r.y, r.width, r.height);
  const weft_placer_shape_t* least = smallest_shape(block);
  if (!fits_inside(grid, block, r)) {
    return weft_error(
        DOES_NOT_FIT,
        "%s:%d: %s doesn't fit into %dx%d at (%d,%d), which has %d live tiles on the %dx%d mesh; it needs "
        "%lld at the least, as %dx%d or %dx%d: a region of that size without dead tiles would do",
        rules->path, rule->line, block->name, c->width, c->height, c->x, c->y, live, problem->width, problem->height,
        (long long)least->tiles, least->width, least->height, least->height, least->width);
  }
  // All that has to lie in here, also by other rules.
  int64_t needed = 0;
  int32_t count = 0;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    bool within = false;
    for (int32_t i = 0; i < problem->constraint_count && !within; ++i) {
      const weft_placer_constraint_t* d = &problem->constraint[i];
      within = d->kind == WEFT_PLACER_INSIDE && d->block == b && d->x >= c->x && d->y >= c->y &&
               d->x + d->width <= c->x + c->width && d->y + d->height <= c->y + c->height;
    }
    if (within) needed += smallest_shape(&problem->block[b])->tiles, ++count;
  }
  if (needed <= live) return weft_ok();
  int64_t rows = (needed * ((int64_t)problem->width * problem->height) /
                      grid->live[(size_t)(problem->width + 1) * (size_t)(problem->height + 1) - 1] +
                  c->width - 1) /
                 c->width;
  return weft_error(
      DOES_NOT_FIT,
      "%s:%d: %d kernels have to lie in %dx%d at (%d,%d) and need %lld tiles at the least; it has %d live "
      "ones; about %dx%lld would do",
      rules->path, rule->line, count, c->width, c->height, c->x, c->y, (long long)needed, live, c->width,
      (long long)rows);
}

// Live tiles that a block may use, each rule by itself: what one keep-out leaves.
static weft_status_t check_keep_out(const weft_placer_rules_t* rules, const weft_placer_problem_t* problem,
                                    const weft_placer_grid_t* grid, const weft_placer_constraint_t* c) {
  clip_t r = clip(c, problem);
  int32_t live = weft_placer_grid_live(grid, 0, 0, problem->width, problem->height) -
                 weft_placer_grid_live(grid, r.x, r.y, r.width, r.height);
  const weft_placer_shape_t* least = smallest_shape(&problem->block[c->block]);
  if (least->tiles <= live) return weft_ok();
  return weft_error(DOES_NOT_FIT,
                    "%s:%d: keeping %s out of %dx%d at (%d,%d) leaves it %d live tiles; it needs %lld at the least, as "
                    "%dx%d",
                    rules->path, rules->rule[c->rule].line, problem->block[c->block].name, c->width, c->height, c->x,
                    c->y, live, (long long)least->tiles, least->width, least->height);
}

weft_status_t weft_placer_rules_bind(const weft_placer_rules_t* rules, weft_arena_t* arena,
                                     weft_placer_problem_t* problem) {
  int64_t total = 0;
  for (int32_t i = 0; i < rules->count; ++i) {
    const weft_placer_rule_t* rule = &rules->rule[i];
    const char* names[2] = {rule->kernel, rule->other};
    for (int n = 0; n < 2; ++n) {
      if (names[n] && !matches_any(problem, names[n])) return no_such_block(rules, rule, names[n], problem, arena);
    }
    total += expand(problem, rule, i, NULL);
    if (total > MOST_CONSTRAINTS) {
      return weft_error(INVALID_INPUT, "%s:%d: the rules up to here come to more than %d constraints", rules->path,
                        rule->line, MOST_CONSTRAINTS);
    }
  }
  weft_placer_constraint_t* constraints = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)total + 1, &constraints));
  int32_t count = 0;
  for (int32_t i = 0; i < rules->count; ++i) count += expand(problem, &rules->rule[i], i, constraints + count);
  problem->constraint = constraints;
  problem->constraint_count = count;
  weft_placer_grid_t grid;
  WEFT_RETURN_IF_ERROR(weft_placer_grid_create(problem, arena, &grid));
  for (int32_t i = 0; i < count; ++i) {
    const weft_placer_constraint_t* c = &constraints[i];
    if (c->kind == WEFT_PLACER_INSIDE) WEFT_RETURN_IF_ERROR(check_inside(rules, problem, &grid, c));
    if (c->kind == WEFT_PLACER_KEEP_OUT) WEFT_RETURN_IF_ERROR(check_keep_out(rules, problem, &grid, c));
  }
  return weft_ok();
}

// A line on one constraint that is missed.
static weft_status_t describe_missed(const weft_placer_rules_t* rules, const weft_placer_problem_t* problem,
                                     const weft_placer_spot_t* spots, const weft_placer_constraint_t* c,
                                     weft_text_t* text) {
  const weft_placer_rule_t* rule = &rules->rule[c->rule];
  const weft_placer_spot_t* s = &spots[c->block];
  const char* name = problem->block[c->block].name;
  int32_t missed = weft_placer_missed(c, spots);
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n  line %d, %s: ", rule->line, rule->text));
  if (c->kind == WEFT_PLACER_ADJACENT) {
    return weft_text_printf(text, "%s and %s are %d tile%s from sharing a side", name, problem->block[c->other].name,
                            missed, missed == 1 ? "" : "s");
  }
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "%s came to lie at %d,%d,%dx%d, %d tile%s ", name, s->x, s->y, s->width,
                                        s->height, missed, missed == 1 ? "" : "s"));
  if (c->kind == WEFT_PLACER_KEEP_OUT) return weft_text_printf(text, "into it");
  // The region grown until it holds the block where it is.
  int32_t x = s->x < c->x ? s->x : c->x, y = s->y < c->y ? s->y : c->y;
  int32_t right = s->x + s->width > c->x + c->width ? s->x + s->width : c->x + c->width;
  int32_t bottom = s->y + s->height > c->y + c->height ? s->y + s->height : c->y + c->height;
  return weft_text_printf(text, "outside; %d,%d,%dx%d would hold it", x, y, right - x, bottom - y);
}

weft_status_t weft_placer_rules_check(const weft_placer_rules_t* rules, const weft_placer_problem_t* problem,
                                      const weft_placer_spot_t* spots) {
  if (weft_placer_violation(problem, spots) == 0) return weft_ok();
  char buffer[2048];
  weft_text_t text;
  weft_text_initialize(weft_allocator_system(), &text);
  weft_status_t status = weft_ok();
  int32_t missed = 0;
  for (int32_t i = 0; i < problem->constraint_count && !status; ++i) {
    if (!weft_placer_missed(&problem->constraint[i], spots)) continue;
    if (missed++ < NAMES_SHOWN) status = describe_missed(rules, problem, spots, &problem->constraint[i], &text);
  }
  snprintf(buffer, sizeof buffer, "%s", text.data ? text.data : "");
  weft_text_deinitialize(&text);
  WEFT_RETURN_IF_ERROR(status);
  return weft_error(
      DOES_NOT_FIT,
      "%s: %d of %d constraints don't hold in the best placement found; more --seeds or --effort may find "
      "one, or what each line says:%s",
      rules->path, missed, problem->constraint_count, buffer);
}
