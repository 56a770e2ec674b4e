// How far a placement misses what the user wants of it.
#include "placer/placer.h"

static int32_t largest(int32_t a, int32_t b) {
  return a > b ? a : b;
}

// Tiles between two intervals; negative: how far they overlap.
static int32_t gap(int32_t a, int32_t a_size, int32_t b, int32_t b_size) {
  return largest(b - (a + a_size), a - (b + b_size));
}

// The kinds that one block misses by itself.
static int32_t missed_alone(const weft_placer_constraint_t* c, const weft_placer_spot_t* s) {
  if (c->kind == WEFT_PLACER_INSIDE) {
    return largest(0, c->x - s->x) + largest(0, c->y - s->y) + largest(0, s->x + s->width - c->x - c->width) +
           largest(0, s->y + s->height - c->y - c->height);
  }
  if (c->kind == WEFT_PLACER_KEEP_OUT) { // the shortest way out
    int32_t across = gap(s->x, s->width, c->x, c->width), down = gap(s->y, s->height, c->y, c->height);
    return largest(0, -largest(across, down));
  }
  return 0;
}

int32_t weft_placer_missed(const weft_placer_constraint_t* c, const weft_placer_spot_t* spots) {
  const weft_placer_spot_t* s = &spots[c->block];
  if (c->kind != WEFT_PLACER_ADJACENT) return missed_alone(c, s);
  const weft_placer_spot_t* o = &spots[c->other];
  int32_t across = gap(s->x, s->width, o->x, o->width), down = gap(s->y, s->height, o->y, o->height);
  int32_t corner = across >= 0 && down >= 0; // a shared corner is no shared side
  return largest(0, across) + largest(0, down) + corner;
}

bool weft_placer_may_lie(const weft_placer_problem_t* problem, int32_t block, const weft_placer_spot_t* spot) {
  for (int32_t i = 0; i < problem->constraint_count; ++i) {
    const weft_placer_constraint_t* c = &problem->constraint[i];
    if (c->block == block && missed_alone(c, spot)) return false;
  }
  return true;
}

double weft_placer_violation(const weft_placer_problem_t* problem, const weft_placer_spot_t* spots) {
  int64_t missed = 0;
  for (int32_t i = 0; i < problem->constraint_count; ++i) missed += weft_placer_missed(&problem->constraint[i], spots);
  return (double)missed;
}
