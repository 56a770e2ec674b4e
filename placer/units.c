#include "placer/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/schedule.h"

enum {
  LANES = 8,
  MOST_FIELD = 1 << 24, // blocks times tiles
  MOST_FILL = 1 << 28,  // edges times tiles
  MOST_RUNS = 1000,
  SMALL_PAIRS = 15000 // blocks times tiles under which more than one run costs little
};
// Measured on grids of QAPLIB (docs/placement.md): first and last temperature as parts of the mean change of cost over
// random moves, and how long a run is worth while.
static const double hot = 0.25, cold = 0.015, seconds_per_pair = 3e-5;

// The field of a block says what it costs at each tile, everyone else staying where they are: the sum of weight times
// distance over its partners. From two fields a move's change of cost is read off, and a move that is taken adds to all
// fields the product of two vectors. Whole numbers when all weights are, which is exact and quicker; else reals.
typedef struct units_t {
  const weft_placer_problem_t* problem;
  const weft_placer_options_t* options;
  int32_t block_count, slot_count; // a slot is a live tile
  size_t stride;                   // slots in a row of a field, whole vectors
  int32_t *slot_x, *slot_y;        // [slot_count] half tiles, at the centre
  int32_t* occupant;               // [slot_count] block or -1
  int32_t *slot_of, *best_slot;    // [block_count] now, and at the best of this run
  int32_t* kept_slot;              // [block_count] at the best of all runs
  weft_placer_spot_t* shown;       // [block_count] for frames
  bool whole;
  int32_t *field, *weight, *shift;               // [blocks * stride], [(blocks + 1) * blocks], [stride]
  double *real_field, *real_weight, *real_shift; // the same
  double scale;                                  // cost of a unit of weight over half a tile
  double cost;
  // The proposed move.
  int32_t block, other, from, to;
} units_t;

bool weft_placer_units_apply(const weft_placer_problem_t* problem) {
  int64_t tiles = (int64_t)problem->width * problem->height, live = 0, blocks = problem->block_count;
  if (problem->constraint_count || problem->weight_overload > 0 || blocks < 1 || tiles > MOST_FIELD) return false;
  for (int32_t b = 0; b < problem->block_count; ++b) {
    const weft_placer_block_t* block = &problem->block[b];
    const weft_placer_shape_t* s = block->shape;
    if (block->shape_count != 1 || s->width != 1 || s->height != 1 || s->tiles != 1 || block->fixed_x >= 0)
      return false;
  }
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    if (problem->edge[e].joint) return false;
  }
  for (int64_t t = 0; t < tiles; ++t) live += !(problem->blocked && problem->blocked[t]);
  return live >= blocks && blocks * live <= MOST_FIELD && blocks * blocks <= MOST_FIELD &&
         problem->edge_count * live <= MOST_FILL;
}

static int32_t distance(const units_t* u, int32_t s, int32_t t) {
  return abs(u->slot_x[s] - u->slot_x[t]) + abs(u->slot_y[s] - u->slot_y[t]);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and names
// field[b][s] += (mine[b] - theirs[b]) * shift[s]
#define DEFINE_ADD(name, type)                                                                                         \
  WIDE static void name(size_t blocks, size_t stride, const type* restrict mine, const type* restrict theirs,          \
                        const type* restrict shift, type* restrict field) {                                            \
    for (size_t b = 0; b < blocks; ++b) {                                                                              \
      type factor = mine[b] - theirs[b];                                                                               \
      type* row = field + b * stride;                                                                                  \
      for (size_t s = 0; s < stride && factor != 0; ++s) row[s] += factor * shift[s];                                  \
    }                                                                                                                  \
  }
DEFINE_ADD(add_whole, int32_t)
DEFINE_ADD(add_real, double)

// The functions on fields, for one type of number.
#define DEFINE_FIELD(suffix, type, field_, weight_, shift_)                                                            \
  /* The change of cost when the block moves from slot to slot and the other one, if any, the other way. */            \
  static double delta_##suffix(const units_t* u) {                                                                     \
    const type* mine = u->field_ + (size_t)u->block * u->stride;                                                       \
    type sum = mine[u->to] - mine[u->from];                                                                            \
    if (u->other >= 0) {                                                                                               \
      const type* theirs = u->field_ + (size_t)u->other * u->stride;                                                   \
      type between = u->weight_[(size_t)u->block * (size_t)u->block_count + (size_t)u->other];                         \
      /* Each field has the other one where it was; their distance stays. */                                           \
      sum += theirs[u->from] - theirs[u->to] + 2 * between * (type)distance(u, u->from, u->to);                        \
    }                                                                                                                  \
    return (double)sum;                                                                                                \
  }                                                                                                                    \
  /* Partners of the two see them move. */                                                                             \
  static void move_##suffix(units_t* u) {                                                                              \
    size_t blocks = (size_t)u->block_count;                                                                            \
    for (int32_t s = 0; s < u->slot_count; ++s) {                                                                      \
      u->shift_[s] = (type)(distance(u, s, u->to) - distance(u, s, u->from));                                          \
    }                                                                                                                  \
    /* The row after the last block's is of zeros: nobody's. */                                                        \
    const type* mine = u->weight_ + (size_t)u->block * blocks;                                                         \
    const type* theirs = u->weight_ + (u->other >= 0 ? (size_t)u->other : blocks) * blocks;                            \
    add_##suffix(blocks, u->stride, mine, theirs, u->shift_, u->field_);                                               \
  }                                                                                                                    \
  static void add_partner_##suffix(units_t* u, int32_t block, double weight, double x, double y) {                     \
    for (int32_t s = 0; s < u->slot_count; ++s)                                                                        \
      u->shift_[s] = (type)(fabs(u->slot_x[s] - x) + fabs(u->slot_y[s] - y));                                          \
    type nothing = 0, factor = (type)weight;                                                                           \
    add_##suffix(1, u->stride, &factor, &nothing, u->shift_, u->field_ + (size_t)block * u->stride);                   \
  }
DEFINE_FIELD(whole, int32_t, field, weight, shift)
DEFINE_FIELD(real, double, real_field, real_weight, real_shift)
// NOLINTEND(bugprone-macro-parentheses)

// Where an end of an edge is, in half tiles.
static void place_of(const units_t* u, int32_t end, double* out_x, double* out_y) {
  *out_x = end < 0 ? 2 * u->problem->anchor[-1 - end].x : u->slot_x[u->slot_of[end]];
  *out_y = end < 0 ? 2 * u->problem->anchor[-1 - end].y : u->slot_y[u->slot_of[end]];
}

static void fill_fields(units_t* u) {
  size_t entries = (size_t)u->block_count * u->stride;
  if (u->whole) memset(u->field, 0, sizeof *u->field * entries);
  if (!u->whole) memset(u->real_field, 0, sizeof *u->real_field * entries);
  for (int32_t e = 0; e < u->problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &u->problem->edge[e];
    for (int i = 0; i < 2; ++i) {
      int32_t block = i ? edge->to : edge->from, partner = i ? edge->from : edge->to;
      if (block < 0 || block == partner) continue;
      double x = 0, y = 0;
      place_of(u, partner, &x, &y);
      if (u->whole) {
        add_partner_whole(u, block, edge->weight, x, y);
      } else {
        add_partner_real(u, block, edge->weight, x, y);
      }
    }
  }
}

static bool propose(void* self, weft_rng_t* rng, double range, double limit, double* out_delta) {
  (void)range, (void)limit;
  units_t* u = self;
  // Both draws from one random number: this is short enough for it to matter.
  uint64_t random = weft_rng_next(rng);
  u->block = (int32_t)(((random >> 32) * (uint64_t)u->block_count) >> 32);
  u->to = (int32_t)(((random & UINT32_MAX) * (uint64_t)u->slot_count) >> 32);
  u->from = u->slot_of[u->block];
  if (u->to == u->from) return false;
  u->other = u->occupant[u->to];
  *out_delta = u->scale * (u->whole ? delta_whole(u) : delta_real(u));
  return true;
}

static void keep(void* self) {
  units_t* u = self;
  if (u->whole) {
    move_whole(u);
  } else {
    move_real(u);
  }
  u->occupant[u->from] = u->other;
  u->occupant[u->to] = u->block;
  u->slot_of[u->block] = u->to;
  if (u->other >= 0) u->slot_of[u->other] = u->from;
}

static void undo(void* self) {
  (void)self; // a proposal changes nothing
}

static double recompute(void* self) {
  units_t* u = self;
  if (!u->whole) fill_fields(u); // rounding builds up in them
  double sum = 0;
  for (int32_t e = 0; e < u->problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &u->problem->edge[e];
    double x[2], y[2];
    for (int i = 0; i < 2; ++i) place_of(u, i ? edge->to : edge->from, &x[i], &y[i]);
    sum += edge->weight * (fabs(x[0] - x[1]) + fabs(y[0] - y[1]));
  }
  u->cost = u->scale * sum;
  return u->cost;
}

static void save_best(void* self) {
  units_t* u = self;
  memcpy(u->best_slot, u->slot_of, sizeof *u->best_slot * (size_t)u->block_count);
}

static void restore_best(void* self) {
  units_t* u = self;
  for (int32_t b = 0; b < u->block_count; ++b) u->occupant[u->slot_of[b]] = -1;
  for (int32_t b = 0; b < u->block_count; ++b) {
    u->slot_of[b] = u->best_slot[b];
    u->occupant[u->best_slot[b]] = b;
  }
  fill_fields(u);
}

static void to_spots(const units_t* u, weft_placer_spot_t* spots) {
  for (int32_t b = 0; b < u->block_count; ++b) {
    int32_t s = u->slot_of[b];
    spots[b] = (weft_placer_spot_t){.x = u->slot_x[s] / 2, .y = u->slot_y[s] / 2, .width = 1, .height = 1};
  }
}

static void describe(void* self, char* text, int size) {
  const units_t* u = self;
  snprintf(text, (size_t)size, "wire %11.5g", u->cost / u->problem->weight_wire);
}

static void frame(void* self, double temperature) {
  units_t* u = self;
  to_spots(u, u->shown);
  u->options->frame(u->options->frame_self, u->shown, temperature, u->cost);
}

// Whether fields, and sums of four of their entries, are whole and within 32 bits.
static weft_status_t find_whole(const weft_placer_problem_t* p, weft_arena_t* arena, bool* out_whole) {
  double farthest = 0, most = 0, *sum = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)p->block_count, &sum));
  *out_whole = true;
  for (int32_t i = 0; i < p->anchor_count; ++i) {
    double x = 2 * p->anchor[i].x, y = 2 * p->anchor[i].y;
    *out_whole &= x == rint(x) && y == rint(y);
    farthest = fmax(farthest, fabs(x) + fabs(y));
  }
  farthest += 2.0 * (p->width + p->height);
  for (int32_t e = 0; e < p->edge_count; ++e) {
    const weft_placer_edge_t* edge = &p->edge[e];
    *out_whole &= edge->weight == rint(edge->weight);
    for (int i = 0; i < 2; ++i) {
      int32_t end = i ? edge->to : edge->from;
      if (end >= 0) most = fmax(most, sum[end] += fabs(edge->weight));
    }
  }
  *out_whole &= 8 * most * farthest <= INT32_MAX;
  return weft_ok();
}

// The live tiles, with the blocks dealt out to them at random.
static weft_status_t make_slots(units_t* u, weft_arena_t* arena, weft_rng_t* rng) {
  const weft_placer_problem_t* p = u->problem;
  size_t tiles = (size_t)p->width * (size_t)p->height, blocks = (size_t)p->block_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &u->slot_x));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &u->slot_y));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, tiles, &u->occupant));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &u->slot_of));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &u->best_slot));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &u->kept_slot));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks, &u->shown));
  for (size_t t = 0; t < tiles; ++t) {
    if (p->blocked && p->blocked[t]) continue;
    u->slot_x[u->slot_count] = 2 * (int32_t)(t % (size_t)p->width) + 1;
    u->slot_y[u->slot_count] = 2 * (int32_t)(t / (size_t)p->width) + 1;
    u->occupant[u->slot_count++] = -1;
  }
  for (int32_t b = 0; b < p->block_count; ++b) {
    int32_t slot = 0, skip = (int32_t)weft_rng_below(rng, (uint64_t)(u->slot_count - b));
    while (u->occupant[slot] >= 0 || skip--) ++slot;
    u->slot_of[b] = slot;
    u->occupant[slot] = b;
  }
  return weft_ok();
}

static weft_status_t make_fields(units_t* u, weft_arena_t* arena) {
  size_t blocks = (size_t)u->block_count;
  u->stride = ((size_t)u->slot_count + LANES - 1) / LANES * LANES;
  WEFT_RETURN_IF_ERROR(find_whole(u->problem, arena, &u->whole));
  if (u->whole) {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks * u->stride, &u->field));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (blocks + 1) * blocks, &u->weight));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, u->stride, &u->shift));
  } else {
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks * u->stride, &u->real_field));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (blocks + 1) * blocks, &u->real_weight));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, u->stride, &u->real_shift));
  }
  for (int32_t e = 0; e < u->problem->edge_count; ++e) {
    const weft_placer_edge_t* edge = &u->problem->edge[e];
    if (edge->from < 0 || edge->to < 0 || edge->from == edge->to) continue;
    for (int i = 0; i < 2; ++i) {
      size_t at = (size_t)(i ? edge->to : edge->from) * blocks + (size_t)(i ? edge->from : edge->to);
      if (u->whole) {
        u->weight[at] += (int32_t)edge->weight;
      } else {
        u->real_weight[at] += edge->weight;
      }
    }
  }
  fill_fields(u);
  return weft_ok();
}

// The mean change of cost over random moves between random states, without its
// sign.
static double mean_change(units_t* u, weft_rng_t* rng) {
  double sum = 0;
  int32_t count = 0;
  for (int32_t i = 0; i < 20 * u->block_count; ++i) {
    double change = 0;
    if (!propose(u, rng, 1, INFINITY, &change)) continue;
    keep(u);
    sum += fabs(change);
    ++count;
  }
  return count ? sum / count : 0;
}

// Several runs from random states while there is time, as a few short ones find better than a long one: their results
// spread more than a slower cooling gains. Leaves the best.
static weft_status_t anneal_runs(units_t* u, const weft_placer_moves_t* moves, weft_rng_t* rng,
                                 const weft_control_t* control, weft_placer_annealed_t* out_annealed) {
  double pairs = (double)u->block_count * u->slot_count, end = weft_control_now() + u->options->seconds;
  double wanted = u->options->seconds > 0 ? u->options->seconds / (seconds_per_pair * pairs)
                                          : u->options->effort * SMALL_PAIRS / pairs;
  int32_t runs = (int32_t)fmin(MOST_RUNS, fmax(1, round(wanted)));
  size_t blocks = (size_t)u->block_count;
  double best = INFINITY;
  for (int32_t i = 0; i < runs && (!i || !weft_control_should_stop(control)); ++i) {
    double change = mean_change(u, rng);
    weft_placer_schedule_t schedule = {.moves_per_temperature = (int64_t)(u->options->effort * 10.0 * pairs) + 1,
                                       .hot = hot * change,
                                       .cold = cold * change,
                                       .cooling = 0.95,
                                       .run = i,
                                       .runs = runs};
    if (u->options->seconds > 0) schedule.seconds = fmax(1e-6, (end - weft_control_now()) / (runs - i));
    weft_placer_annealing_t annealing;
    WEFT_RETURN_IF_ERROR(weft_placer_schedule_run(&schedule, moves, rng, control, &annealing));
    out_annealed->moves += annealing.moves;
    out_annealed->drift = fmax(out_annealed->drift, annealing.drift);
    if (annealing.cost >= best) continue;
    best = annealing.cost;
    memcpy(u->kept_slot, u->best_slot, sizeof *u->kept_slot * blocks);
  }
  memcpy(u->best_slot, u->kept_slot, sizeof *u->best_slot * blocks);
  restore_best(u);
  return weft_ok();
}

weft_status_t weft_placer_units_anneal(const weft_placer_problem_t* problem, const weft_placer_options_t* options,
                                       weft_rng_t* rng, const weft_control_t* control, weft_arena_t* arena,
                                       weft_placer_spot_t* spots, weft_placer_annealed_t* out_annealed) {
  *out_annealed = (weft_placer_annealed_t){0};
  units_t u = {
      .problem = problem, .options = options, .block_count = problem->block_count, .scale = problem->weight_wire / 2};
  WEFT_RETURN_IF_ERROR(make_slots(&u, arena, rng));
  WEFT_RETURN_IF_ERROR(make_fields(&u, arena));
  weft_placer_moves_t moves = {.self = &u,
                               .propose = propose,
                               .keep = keep,
                               .undo = undo,
                               .recompute = recompute,
                               .save_best = save_best,
                               .restore_best = restore_best,
                               .describe = describe,
                               .frame = options->frame ? frame : NULL};
  WEFT_RETURN_IF_ERROR(anneal_runs(&u, &moves, rng, control, out_annealed));
  to_spots(&u, spots);
  out_annealed->cost = weft_placer_cost(problem, spots, &out_annealed->parts);
  return weft_ok();
}
