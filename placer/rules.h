// What the user wants of a placement, as a text file: one rule a line, names with * and ?, # starts a comment.
//   fix KERNEL X,Y,WxH        KERNEL lies inside the region
//   keep-out X,Y,WxH [KERNEL] KERNEL, or every kernel, stays out of the region
//   adjacent KERNEL KERNEL    the two share a part of a side
#pragma once
#include "placer/placer.h"

typedef struct weft_placer_rule_t {
  weft_placer_constraint_e kind;
  int32_t line;
  const char* text; // as it was written
  const char *kernel, *other;
  int32_t x, y, width, height;
} weft_placer_rule_t;
typedef struct weft_placer_rules_t {
  const char* path;
  int32_t count;
  weft_placer_rule_t* rule;
} weft_placer_rules_t;

// Reads a file; errors name it, the line and what was expected.
weft_status_t weft_placer_rules_read(const char* path, weft_arena_t* arena, weft_placer_rules_t* out_rules);
// Adds the rules' constraints to a problem: one for each block, or pair, whose names match. NOT_FOUND: a name that
// matches no block, with near ones; DOES_NOT_FIT: a region that can't hold what is to lie in it, or leaves a block no
// room.
weft_status_t weft_placer_rules_bind(const weft_placer_rules_t* rules, weft_arena_t* arena,
                                     weft_placer_problem_t* problem);
// OK when the constraints hold; else DOES_NOT_FIT lists those that don't, by how much, and what would do.
weft_status_t weft_placer_rules_check(const weft_placer_rules_t* rules, const weft_placer_problem_t* problem,
                                      const weft_placer_spot_t* spots);
