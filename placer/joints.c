#include "placer/joints.h"

#include <math.h>

#include "base/checked.h"

// What a split does to a tensor along the two sides of its grid (x, y): its outermost digit cuts it into `parts` blocks
// along dimension `dim`; -1: along none. Inner digits come again in each block of the outermost one, so their parts are
// everywhere along the side.
typedef struct spread_t {
  int32_t dim[2], parts[2];
  double tiles; // at the source: of the grid; at the sink: that take something
  double needs; // at the sink: how many of them differ
} spread_t;

// The two ends of a piece.
typedef struct ends_t {
  const weft_tensor_t* tensor;
  const weft_kernel_t *producer, *consumer;
  const weft_buffer_t *result, *operand;
  const weft_piece_t* piece;
} ends_t;

static ends_t ends_of(const weft_fabric_t* fabric, const weft_joints_piece_t* piece) {
  ends_t ends = {.consumer = &fabric->kernel[piece->sink]};
  ends.operand = &ends.consumer->buffer[piece->buffer];
  ends.piece = &ends.operand->piece[piece->piece];
  ends.tensor = &fabric->tensor[ends.piece->tensor];
  ends.producer = &fabric->kernel[ends.tensor->kernel];
  ends.result = &ends.producer->buffer[ends.tensor->buffer];
  return ends;
}

// The outermost digit of an axis; NULL: it isn't split.
static const weft_axis_factor_t* outermost(const weft_axis_factor_t* factor, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (factor[i].parts > 1) return &factor[i];
  return NULL;
}

// The first or the last block of a dimension, everything else whole, as the part of the tensor that is needed there.
static weft_box_t need_of_block(const ends_t* ends, const weft_axis_factor_t* factor, bool last) {
  weft_iteration_box_t box = {0};
  for (int32_t d = 0; d < ends->consumer->dim_count; ++d) box.hi[d] = ends->consumer->dim[d].extent;
  int64_t block = weft_ceil_div(box.hi[factor->dim], factor->parts);
  if (last)
    box.lo[factor->dim] = (factor->parts - 1) * block;
  else
    box.hi[factor->dim] = block;
  weft_box_t filter = weft_split_buffer_box(ends->consumer, ends->operand, &box);
  return weft_view_preimage(&ends->piece->view, &ends->tensor->shape, &filter);
}

// The dimension of the tensor along which what is needed moves most from the first block to the last, as a part of its
// extent; -1: it moves by less than a quarter along all of them.
static int32_t needed_dim(const ends_t* ends, const weft_axis_factor_t* factor) {
  weft_box_t first = need_of_block(ends, factor, false), last = need_of_block(ends, factor, true);
  int32_t best = -1;
  double most = 0.25;
  if (weft_box_is_empty(&first) || weft_box_is_empty(&last)) return best;
  for (int32_t d = 0; d < ends->tensor->shape.rank; ++d) {
    double moved = (double)(last.lo[d] - first.lo[d] + last.hi[d] - first.hi[d]) / 2;
    if (moved <= most * (double)ends->tensor->shape.extent[d]) continue;
    most = moved / (double)ends->tensor->shape.extent[d];
    best = d;
  }
  return best;
}

static spread_t spread_at(const ends_t* ends, const weft_split_t* split, bool source) {
  const weft_axis_factor_t* factor[2] = {outermost(split->x, split->x_count), outermost(split->y, split->y_count)};
  spread_t spread = {.dim = {-1, -1}, .parts = {1, 1}};
  spread.tiles = (double)weft_split_grid(split->y, split->y_count) * (double)weft_split_grid(split->x, split->x_count);
  for (int axis = 0; axis < 2; ++axis) {
    if (!factor[axis]) continue;
    spread.parts[axis] = factor[axis]->parts;
    if (!source)
      spread.dim[axis] = needed_dim(ends, factor[axis]);
    else if (ends->producer->dim[factor[axis]->dim].kind != WEFT_DIM_REDUCTION)
      spread.dim[axis] = weft_split_result_row(ends->producer, ends->result, factor[axis]->dim);
  }
  return spread;
}

static void count_needs(const ends_t* ends, const weft_split_t* split, spread_t* spread) {
  int32_t buffer = (int32_t)(ends->operand - ends->consumer->buffer);
  if (!weft_split_needs_buffer(ends->consumer, split, buffer, 0))
    spread->tiles /= weft_split_chain_length(ends->consumer, split);
  spread->needs = 1;
  for (int32_t i = 0; i < split->y_count + split->x_count; ++i) {
    const weft_axis_factor_t* factor = i < split->y_count ? &split->y[i] : &split->x[i - split->y_count];
    if (weft_split_depends_on(ends->operand, factor->dim)) spread->needs *= factor->parts;
  }
}

// Lanes along the sides that cut the same dimension of the tensor, those that share most parts. A stream passes all
// tiles of its lane, with half of its wavelets on the average as it gathers them, and then all that take it.
static weft_placer_joint_t join(const spread_t* from, const spread_t* to, double streams) {
  static const weft_placer_lanes_e side[2] = {WEFT_PLACER_LANES_WIDTH, WEFT_PLACER_LANES_HEIGHT};
  weft_placer_joint_t joint = {0};
  int32_t shared = 1;
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      int32_t parts = from->parts[a] < to->parts[b] ? from->parts[a] : to->parts[b];
      if (from->dim[a] < 0 || from->dim[a] != to->dim[b] || parts <= shared) continue;
      shared = parts;
      joint.lanes[0] = (uint8_t)side[a];
      joint.lanes[1] = (uint8_t)side[b];
    }
  }
  streams = fmax(1, fmin(streams, to->needs));
  joint.hops[0] = (float)(from->tiles / fmin(streams, shared) / 2);
  joint.hops[1] = (float)(to->tiles / streams);
  return joint;
}

weft_status_t weft_joints_of_piece(const weft_fabric_t* fabric, const weft_joints_piece_t* piece,
                                   const weft_placer_block_t* block, int32_t* const* alternative, double streams,
                                   weft_arena_t* arena, const weft_placer_joint_t** out_joint) {
  ends_t ends = ends_of(fabric, piece);
  int32_t source = ends.tensor->kernel;
  size_t sources = (size_t)block[source].shape_count, sinks = (size_t)block[piece->sink].shape_count;
  spread_t *from = NULL, *to = NULL;
  weft_placer_joint_t* joint = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, sources, &from));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, sinks, &to));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, sources * sinks, &joint));
  for (size_t s = 0; s < sources; ++s)
    from[s] = spread_at(&ends, &ends.producer->alternative[alternative[source][s]].split, true);
  for (size_t s = 0; s < sinks; ++s) {
    const weft_split_t* split = &ends.consumer->alternative[alternative[piece->sink][s]].split;
    to[s] = spread_at(&ends, split, false);
    count_needs(&ends, split, &to[s]);
  }
  for (size_t i = 0; i < sources * sinks; ++i) {
    joint[i] = join(&from[i / sinks], &to[i % sinks], streams);
    if (source == piece->sink) joint[i].lanes[0] = joint[i].lanes[1] = WEFT_PLACER_LANES_NONE; // it goes nowhere
  }
  *out_joint = joint;
  return weft_ok();
}
