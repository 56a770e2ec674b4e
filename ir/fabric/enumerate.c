// The splits worth considering. How a kernel's dimensions are cut decides its figures; how the cuts are laid on the two
// axes only its shape. So cuts are enumerated first, thinned to the Pareto front of (tiles, time), and then get a few
// shapes each.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ir/fabric/cost.h"

enum {
  MAX_VALUES = 16,       // numbers of parts tried along a dimension
  MAX_CUTS = 20000,      // combinations tried for a kernel: bounds the work for those with many dimensions
  MAX_ALTERNATIVES = 96, // of a kernel
  MAX_LEVELS = 32,       // of its Pareto front
  MAX_SHAPES = 6,        // of a level
  MAX_AXIS_PARALLEL = 2, // parallel dimensions along one axis: more would scatter neighbouring elements
  MAX_PARTS = 4096       // along one dimension; more than any wafer has tiles in a row
};

typedef struct cut_t {
  int32_t parts[WEFT_MAX_DIMS];
  int32_t factors; // dimensions with more than one part
  int64_t tiles;
  weft_alternative_t figures; // without split and grid
} cut_t;
typedef struct values_t {
  int32_t dim, count;
  int32_t parts[MAX_VALUES];
} values_t;
typedef WEFT_ARRAY(cut_t) cuts_t;

static bool fits(const weft_machine_t* machine, int64_t gy, int64_t gx) {
  return (gy <= machine->height && gx <= machine->width) || (gx <= machine->height && gy <= machine->width);
}

// Leaves at most `most` of the ascending values, first and last included, evenly spread in ratio: drops the one whose
// neighbours are closest. A value that divides `extent` wastes nothing and is worth more. extent 0: all are worth the
// same.
static int32_t thin(int32_t* values, int32_t count, int32_t most, int64_t extent) {
  while (count > most && count > 2) {
    int32_t drop = 1;
    double least = 0;
    for (int32_t i = 1; i < count - 1; ++i) {
      double ratio = (double)values[i + 1] / values[i - 1];
      if (extent > 0 && extent % values[i] == 0) ratio *= 1.5;
      if (i == 1 || ratio < least) {
        least = ratio;
        drop = i;
      }
    }
    --count;
    memmove(&values[drop], &values[drop + 1], (size_t)(count - drop) * sizeof(*values));
  }
  return count < most ? count : most;
}

static void part_values(int64_t extent, int32_t limit, values_t* out_values) {
  int32_t all[MAX_PARTS], count = 0;
  for (int32_t parts = 1; parts <= extent && parts <= limit && count < MAX_PARTS; ++parts)
    if (weft_ceil_div(extent, weft_ceil_div(extent, parts)) == parts) all[count++] = parts;
  out_values->count = thin(all, count, MAX_VALUES, extent);
  memcpy(out_values->parts, all, (size_t)out_values->count * sizeof(*all));
}

// Whether tiles may share out the dimension.
static bool may_split(const weft_kernel_t* kernel, int32_t dim) {
  if (kernel->dim[dim].extent <= 1) return false;
  if (kernel->dim[dim].kind == WEFT_DIM_REDUCTION)
    return kernel->reduce_operation >= 0 && weft_op_is_combiner(kernel->combiner);
  if (kernel->dim[dim].kind != WEFT_DIM_PARALLEL) return false;
  for (int32_t b = 0; b < kernel->buffer_count; ++b)
    if (kernel->buffer[b].kind == WEFT_BUFFER_RESULT && weft_split_result_row(kernel, &kernel->buffer[b], dim) < 0)
      return false;
  return true;
}

static int32_t list_values(const weft_kernel_t* kernel, const weft_machine_t* machine, values_t* out_values) {
  int32_t limit = machine->width > machine->height ? machine->width : machine->height, dims = 0;
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    if (!may_split(kernel, d)) continue;
    out_values[dims].dim = d;
    part_values(kernel->dim[d].extent, limit, &out_values[dims++]);
  }
  for (;;) { // the longest list gives way until the product is within bounds
    int64_t product = 1;
    int32_t longest = 0;
    for (int32_t i = 0; i < dims; ++i) {
      product *= out_values[i].count;
      if (out_values[i].count > out_values[longest].count) longest = i;
    }
    if (product <= MAX_CUTS || out_values[longest].count <= 2) return dims;
    values_t* list = &out_values[longest];
    list->count = thin(list->parts, list->count, list->count - 1, kernel->dim[list->dim].extent);
  }
}

// One way to lay a cut on the axes: bit i of x_mask: the i-th split parallel dimension lies along x, else along y.
static bool lay_out(const weft_kernel_t* kernel, const cut_t* cut, uint32_t x_mask, bool reduce_on_x,
                    weft_split_t* out_split) {
  weft_split_t split = {0};
  int32_t parallel = 0;
  for (int32_t pass = 0; pass < 2; ++pass) { // reductions last
    for (int32_t d = 0; d < kernel->dim_count; ++d) {
      bool reduction = kernel->dim[d].kind == WEFT_DIM_REDUCTION;
      if (cut->parts[d] == 1 || reduction != (pass == 1)) continue;
      bool on_x = reduction ? reduce_on_x : x_mask >> parallel++ & 1;
      int32_t* count = on_x ? &split.x_count : &split.y_count;
      if (*count == (reduction ? WEFT_MAX_AXIS_FACTORS : MAX_AXIS_PARALLEL)) return false;
      (on_x ? split.x : split.y)[(*count)++] = (weft_axis_factor_t){d, cut->parts[d]};
    }
  }
  *out_split = split;
  return true;
}

typedef struct shape_t {
  weft_split_t split;
  int32_t gy, gx;
} shape_t;

// The shapes a cut can have, those that only differ by a quarter turn counted once, the squarest first. Dimensions that
// come first lie along y by preference: then consumers and producers mostly agree on what a row is. Returns their
// number, at most `most`; 0: the cut doesn't fit the machine.
static int32_t list_shapes(const weft_kernel_t* kernel, const weft_machine_t* machine, const cut_t* cut, int32_t most,
                           shape_t* out_shapes) {
  int32_t parallel = 0, reductions = 0, count = 0;
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    if (cut->parts[d] == 1) continue;
    *(kernel->dim[d].kind == WEFT_DIM_REDUCTION ? &reductions : &parallel) += 1;
  }
  if (parallel > 2 * MAX_AXIS_PARALLEL || reductions > WEFT_MAX_AXIS_FACTORS) return 0;
  for (uint32_t choice = 0; choice < 2u << parallel && count < most; ++choice) {
    bool reduce_on_x = !(choice & 1);
    if (!reduce_on_x && reductions == 0) continue;
    uint32_t x_mask = 0; // the first dimension is the choice's highest bit
    for (int32_t i = 0; i < parallel; ++i) x_mask |= (choice >> (parallel - i) & 1) << i;
    shape_t shape;
    if (!lay_out(kernel, cut, x_mask, reduce_on_x, &shape.split)) continue;
    shape.gy = weft_split_grid(shape.split.y, shape.split.y_count);
    shape.gx = weft_split_grid(shape.split.x, shape.split.x_count);
    bool known = !fits(machine, shape.gy, shape.gx);
    for (int32_t i = 0; i < count; ++i)
      known =
          known || out_shapes[i].gy == shape.gy || out_shapes[i].gy == shape.gx; // the same area: the same rectangle
    if (known) continue;
    int32_t at = count++, longer = shape.gy > shape.gx ? shape.gy : shape.gx;
    for (; at > 0; --at) {
      const shape_t* other = &out_shapes[at - 1];
      if ((other->gy > other->gx ? other->gy : other->gx) <= longer) break;
      out_shapes[at] = *other;
    }
    out_shapes[at] = shape;
  }
  return count;
}

static int64_t cut_time(const cut_t* cut) {
  return cut->figures.step_cycles;
}

// Fewest tiles, then fastest, then what keeps neighbouring elements together: few cuts, and through the outer
// dimensions.
static int compare_cuts(const void* a_pointer, const void* b_pointer) {
  const cut_t *a = a_pointer, *b = b_pointer;
  if (a->tiles != b->tiles) return a->tiles < b->tiles ? -1 : 1;
  if (cut_time(a) != cut_time(b)) return cut_time(a) < cut_time(b) ? -1 : 1;
  if (a->factors != b->factors) return a->factors < b->factors ? -1 : 1;
  for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d)
    if (a->parts[d] != b->parts[d]) return a->parts[d] > b->parts[d] ? -1 : 1;
  return 0;
}

typedef struct search_t {
  weft_cost_model_t model;
  cuts_t cuts;   // that fit machine and tile memory
  cut_t leanest; // of all that fit the machine
} search_t;

static weft_status_t try_cut(search_t* search, cut_t* cut) {
  const weft_kernel_t* kernel = search->model.kernel;
  const weft_machine_t* machine = search->model.machine;
  int32_t chain = 1;
  int64_t block[WEFT_MAX_DIMS] = {0};
  cut->tiles = 1;
  cut->factors = 0;
  for (int32_t d = 0; d < kernel->dim_count; ++d) {
    block[d] = weft_ceil_div(kernel->dim[d].extent, cut->parts[d]);
    cut->factors += cut->parts[d] > 1;
    cut->tiles *= cut->parts[d];
    if (cut->tiles > weft_machine_tiles(machine)) return weft_ok();
    if (kernel->dim[d].kind == WEFT_DIM_REDUCTION) chain *= cut->parts[d];
  }
  shape_t shape;
  if (list_shapes(kernel, machine, cut, 1, &shape) == 0) return weft_ok();
  weft_cost_evaluate(&search->model, block, chain, &cut->figures);
  if (search->leanest.tiles == 0 || cut->figures.bytes < search->leanest.figures.bytes) search->leanest = *cut;
  if (cut->figures.bytes > machine->tile_memory) return weft_ok();
  return WEFT_ARRAY_PUSH(search->model.allocator, &search->cuts, *cut);
}

static weft_status_t try_all_cuts(search_t* search) {
  const weft_kernel_t* kernel = search->model.kernel;
  values_t values[WEFT_MAX_DIMS];
  int32_t index[WEFT_MAX_DIMS] = {0}, dims = list_values(kernel, search->model.machine, values);
  for (;;) {
    cut_t cut = {0};
    for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d) cut.parts[d] = 1;
    for (int32_t i = 0; i < dims; ++i) cut.parts[values[i].dim] = values[i].parts[index[i]];
    WEFT_RETURN_IF_ERROR(try_cut(search, &cut));
    int32_t i = dims - 1;
    for (; i >= 0 && ++index[i] == values[i].count; --i) index[i] = 0;
    if (i < 0) return weft_ok();
  }
}

// Keeps the Pareto front, at most MAX_LEVELS of it, spread evenly in ratio of tiles.
static void keep_front(cuts_t* cuts) {
  qsort(cuts->data, cuts->count, sizeof(cut_t), compare_cuts);
  size_t kept = 0;
  for (size_t i = 0; i < cuts->count; ++i)
    if (kept == 0 || cut_time(&cuts->data[i]) < cut_time(&cuts->data[kept - 1])) cuts->data[kept++] = cuts->data[i];
  cuts->count = kept;
  while (cuts->count > MAX_LEVELS) {
    size_t drop = 1;
    double least = 0;
    for (size_t i = 1; i + 1 < cuts->count; ++i) {
      double ratio = (double)cuts->data[i + 1].tiles / (double)cuts->data[i - 1].tiles;
      if (i > 1 && ratio >= least) continue;
      least = ratio;
      drop = i;
    }
    --cuts->count;
    memmove(&cuts->data[drop], &cuts->data[drop + 1], (cuts->count - drop) * sizeof(cut_t));
  }
}

static weft_status_t does_not_fit(const search_t* search) {
  const weft_kernel_t* kernel = search->model.kernel;
  const weft_machine_t* machine = search->model.machine;
  const cut_t* leanest = &search->leanest;
  int64_t largest_bytes = 0;
  const char* largest = "code";
  for (int32_t b = 0; b < kernel->buffer_count; ++b) {
    int64_t bytes = (int64_t)weft_dtype_size(kernel->buffer[b].dtype);
    for (int32_t r = 0; r < kernel->buffer[b].rank; ++r) {
      int64_t extent = 1;
      for (int32_t d = 0; d < kernel->dim_count; ++d)
        extent += labs(kernel->buffer[b].row[r].coefficient[d]) *
                  (weft_ceil_div(kernel->dim[d].extent, leanest->parts[d]) - 1);
      bytes *= extent;
    }
    if (bytes <= largest_bytes) continue;
    largest_bytes = bytes;
    largest = kernel->buffer[b].name;
  }
  return weft_error(DOES_NOT_FIT,
                    "kernel '%s' needs at least %" PRId64 " bytes a tile (spread over %" PRId64
                    " tiles; '%s' alone takes %" PRId64 "), but a tile of %s has %" PRId64,
                    kernel->name, leanest->figures.bytes, leanest->tiles, largest, largest_bytes, machine->name,
                    machine->tile_memory);
}

static weft_status_t make_alternatives(const search_t* search, weft_fabric_t* fabric, weft_kernel_t* kernel) {
  int32_t count = 0, levels = (int32_t)search->cuts.count;
  int32_t shapes_each = MAX_ALTERNATIVES / levels < MAX_SHAPES ? MAX_ALTERNATIVES / levels : MAX_SHAPES;
  weft_alternative_t* alternatives;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&fabric->arena, (size_t)levels * (size_t)shapes_each, &alternatives));
  for (int32_t level = 0; level < levels; ++level) {
    const cut_t* cut = &search->cuts.data[level];
    shape_t shapes[2 << (2 * MAX_AXIS_PARALLEL)];
    int32_t found =
        list_shapes(kernel, search->model.machine, cut, (int32_t)(sizeof(shapes) / sizeof(shapes[0])), shapes);
    int32_t take = found < shapes_each ? found : shapes_each;
    for (int32_t i = 0; i < take; ++i) { // from the squarest to the longest
      const shape_t* shape = &shapes[take == 1 ? 0 : i * (found - 1) / (take - 1)];
      alternatives[count] = cut->figures;
      alternatives[count].split = shape->split;
      alternatives[count].gy = shape->gy;
      alternatives[count++].gx = shape->gx;
    }
  }
  kernel->alternative = alternatives;
  kernel->alternative_count = count;
  kernel->chosen = -1;
  return weft_ok();
}

static weft_status_t enumerate_kernel(weft_fabric_t* fabric, int32_t index, search_t* search) {
  WEFT_RETURN_IF_ERROR(try_all_cuts(search));
  if (search->cuts.count == 0) return does_not_fit(search);
  keep_front(&search->cuts);
  return make_alternatives(search, fabric, &fabric->kernel[index]);
}

weft_status_t weft_cost_enumerate(weft_fabric_t* fabric, const weft_machine_t* machine) {
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (int32_t b = 0; b < fabric->kernel[k].buffer_count; ++b) fabric->kernel[k].buffer[b].spare = 0;
    search_t search = {0};
    WEFT_RETURN_IF_ERROR(weft_cost_model_initialize(fabric, k, machine, &search.model));
    weft_status_t status = enumerate_kernel(fabric, k, &search);
    WEFT_ARRAY_FREE(search.model.allocator, &search.cuts);
    weft_cost_model_deinitialize(&search.model);
    WEFT_RETURN_IF_ERROR(status);
  }
  return weft_ok();
}
