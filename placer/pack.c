#include "placer/pack.h"

#include "placer/wire.h"

weft_status_t weft_placer_incidence_create(const weft_placer_problem_t* problem, weft_arena_t* arena,
                                           weft_placer_incidence_t* out_incidence) {
  size_t blocks = (size_t)problem->block_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, blocks + 2, &out_incidence->start));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)problem->edge_count * 2 + 1, &out_incidence->index));
  int32_t* at = out_incidence->start + 1; // shifted by one while filling, so that no copy is needed
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t e = 0; e < problem->edge_count; ++e) {
      int32_t ends[2] = {problem->edge[e].from, problem->edge[e].to};
      for (int i = 0; i < 2; ++i) {
        if (ends[i] < 0 || (i == 1 && ends[0] == ends[1])) continue;
        if (pass == 0) {
          ++at[ends[i] + 1];
        } else {
          out_incidence->index[at[ends[i]]++] = e;
        }
      }
    }
    if (pass == 0) {
      for (size_t b = 0; b < blocks; ++b) at[b + 1] += at[b];
      // at[b] now starts row b; filling advances it to the start of row b + 1, which is what start[b + 1] has to be.
    }
  }
  out_incidence->start[0] = 0;
  return weft_ok();
}

typedef struct packer_t {
  const weft_placer_problem_t* problem;
  const weft_placer_grid_t* grid;
  const weft_placer_incidence_t* incidence;
  weft_placer_spot_t* spots;
  bool compact; // by corner instead of by wire
  int32_t* order;
  int32_t* placed; // whether block b is placed
} packer_t;

static bool overlaps_any(const packer_t* p, int32_t count, const weft_placer_spot_t* s) {
  for (int32_t i = 0; i < count; ++i) {
    const weft_placer_spot_t* t = &p->spots[p->order[i]];
    if (s->x < t->x + t->width && t->x < s->x + s->width && s->y < t->y + t->height && t->y < s->y + s->height)
      return true;
  }
  return false;
}

// Wire to the partners that are placed.
static double wire_of(const packer_t* p, int32_t block, const weft_placer_spot_t* s) {
  double wire = 0;
  for (int32_t i = p->incidence->start[block]; i < p->incidence->start[block + 1]; ++i) {
    const weft_placer_edge_t* edge = &p->problem->edge[p->incidence->index[i]];
    int32_t other = edge->from == block ? edge->to : edge->from;
    if (other == block || (other >= 0 && !p->placed[other])) continue;
    const weft_placer_spot_t* its = weft_placer_end_spot(p->spots, other);
    bool out = edge->from == block;
    wire += weft_placer_edge_wire(p->problem, edge, out ? s : its, out ? its : s);
  }
  return wire;
}

typedef struct candidate_t {
  weft_placer_spot_t spot;
  double score;
  bool found;
} candidate_t;

static void try_corner(const packer_t* p, int32_t block, int32_t shape, int32_t count, int32_t x, int32_t y,
                       candidate_t* best) {
  for (int transposed = 0; transposed < 2; ++transposed) {
    weft_placer_spot_t s = {.shape = shape, .transposed = transposed, .x = x, .y = y};
    const weft_placer_shape_t* geometry = &p->problem->block[block].shape[shape];
    if (transposed && geometry->width == geometry->height) continue;
    if (!weft_placer_grid_fit(p->grid, geometry, transposed, x, y, &s.width, &s.height)) continue;
    if (overlaps_any(p, count, &s)) continue;
    double wire = wire_of(p, block, &s);
    // The far corner's distance keeps the packing tight; as the main key it is bottom-left packing.
    double corner = (double)(s.y + s.height) * p->problem->width + s.x + s.width;
    double score = p->compact ? corner : wire + 1e-9 * corner;
    if (best->found && score >= best->score) continue;
    if (!weft_placer_may_lie(p->problem, block, &s)) continue;
    *best = (candidate_t){s, score, true};
  }
}

// Corners that regions make, by themselves and with the blocks placed before.
static void try_regions(const packer_t* p, int32_t block, int32_t shape, int32_t count, candidate_t* best) {
  for (int32_t i = 0; i < p->problem->constraint_count; ++i) {
    const weft_placer_constraint_t* c = &p->problem->constraint[i];
    if (c->block != block || c->kind == WEFT_PLACER_ADJACENT) continue;
    bool inside = c->kind == WEFT_PLACER_INSIDE;
    int32_t x = inside ? c->x : c->x + c->width, y = inside ? c->y : c->y + c->height;
    try_corner(p, block, shape, count, x, y, best);
    try_corner(p, block, shape, count, x, p->grid->top, best);
    try_corner(p, block, shape, count, p->grid->left, y, best);
    for (int32_t j = 0; j < count; ++j) {
      const weft_placer_spot_t* t = &p->spots[p->order[j]];
      try_corner(p, block, shape, count, x, t->y + t->height, best);
      try_corner(p, block, shape, count, t->x + t->width, y, best);
    }
  }
}

static bool place_block(const packer_t* p, int32_t block, int32_t shape, int32_t count) {
  candidate_t best = {.found = false};
  const weft_placer_block_t* b = &p->problem->block[block];
  if (b->fixed_x >= 0) {
    try_corner(p, block, shape, count, b->fixed_x, b->fixed_y, &best);
  } else {
    try_corner(p, block, shape, count, p->grid->left, p->grid->top, &best);
    try_regions(p, block, shape, count, &best);
    for (int32_t i = 0; i < count; ++i) {
      const weft_placer_spot_t* t = &p->spots[p->order[i]];
      try_corner(p, block, shape, count, t->x + t->width, t->y, &best);
      try_corner(p, block, shape, count, t->x, t->y + t->height, &best);
      try_corner(p, block, shape, count, t->x + t->width, p->grid->top, &best);
      try_corner(p, block, shape, count, p->grid->left, t->y + t->height, &best);
      // Corners that two blocks make together.
      for (int32_t j = 0; j < count && p->compact; ++j) {
        const weft_placer_spot_t* u = &p->spots[p->order[j]];
        try_corner(p, block, shape, count, t->x + t->width, u->y + u->height, &best);
      }
    }
  }
  if (best.found) p->spots[block] = best.spot;
  return best.found;
}

// The shape with time <= target and the smallest area; among those within a tenth of it, one drawn from rng (NULL: the
// smallest).
static int32_t choose_shape(const weft_placer_block_t* block, double target, weft_rng_t* rng) {
  int32_t best = -1;
  double smallest = INFINITY;
  for (int32_t s = 0; s < block->shape_count; ++s) {
    double area = (double)block->shape[s].width * block->shape[s].height;
    if (block->shape[s].time > target || area >= smallest) continue;
    smallest = area;
    best = s;
  }
  if (!rng || best < 0) return best;
  int32_t count = 0;
  for (int32_t s = 0; s < block->shape_count; ++s) {
    double area = (double)block->shape[s].width * block->shape[s].height;
    if (block->shape[s].time <= target && area <= smallest * 1.1 && weft_rng_below(rng, (uint64_t)++count) == 0)
      best = s;
  }
  return best;
}

bool weft_placer_pack(const weft_placer_problem_t* problem, const weft_placer_grid_t* grid,
                      const weft_placer_incidence_t* incidence, double target, int32_t tries, weft_rng_t* rng,
                      int32_t* scratch, weft_placer_spot_t* out_spots, int32_t* out_failed) {
  int32_t blocks = problem->block_count, most = -1;
  int32_t* shape = scratch + 2 * blocks;
  packer_t p = {problem, grid, incidence, out_spots, false, scratch, scratch + blocks};
  for (int32_t attempt = 0; attempt < tries; ++attempt) {
    // Dataflow order near partners first; then tight packing, large blocks first; then random variations of both.
    p.compact = attempt % 2 == 1;
    int64_t need = 0;
    for (int32_t b = 0; b < blocks; ++b) {
      p.order[b] = b;
      p.placed[b] = 0;
      shape[b] = choose_shape(&problem->block[b], target, attempt < 2 ? NULL : rng);
      if (shape[b] < 0) {
        *out_failed = b;
        return false;
      }
      need += problem->block[b].shape[shape[b]].tiles;
    }
    if (need > grid->live[(size_t)(grid->height + 1) * (size_t)(grid->width + 1) - 1]) {
      if (most < 0) *out_failed = blocks - 1;
      continue;
    }
    for (int32_t i = 1; i < blocks; ++i) { // insertion sort: fixed blocks first, then by falling area when compact
      for (int32_t j = i; j > 0; --j) {
        const weft_placer_block_t* a = &problem->block[p.order[j - 1]];
        const weft_placer_block_t* b = &problem->block[p.order[j]];
        bool later = b->fixed_x >= 0 && a->fixed_x < 0;
        if (p.compact && (a->fixed_x >= 0) == (b->fixed_x >= 0)) {
          later = b->shape[shape[p.order[j]]].tiles > a->shape[shape[p.order[j - 1]]].tiles;
        }
        if (!later) break;
        int32_t swap = p.order[j];
        p.order[j] = p.order[j - 1];
        p.order[j - 1] = swap;
      }
    }
    for (int32_t k = 0; attempt >= 2 && blocks > 1 && k < 1 + blocks / 4; ++k) {
      size_t i = weft_rng_below(rng, (uint64_t)blocks - 1);
      if (problem->block[p.order[i]].fixed_x >= 0) continue;
      int32_t swap = p.order[i];
      p.order[i] = p.order[i + 1];
      p.order[i + 1] = swap;
    }
    int32_t count = 0;
    for (; count < blocks && place_block(&p, p.order[count], shape[p.order[count]], count); ++count)
      p.placed[p.order[count]] = 1;
    if (count == blocks) return true;
    if (count > most) {
      most = count;
      *out_failed = p.order[count];
    }
  }
  return false;
}
