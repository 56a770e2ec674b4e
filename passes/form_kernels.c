// Which ops share a kernel. Ops are taken in order; each joins the latest kernel that makes one of its operands, or
// starts one.
#include "passes/form_kernels.h"

#include <stdlib.h>

#include "ir/tensor/tensor.h"

enum {
  // A dimension that stays inside a tile has its row in memory, in a handful of buffers: an eighth of a tile's 48 KiB.
  MAX_INTERNAL_BYTES = 8192,
  // Behind a contraction an internal dimension is one that the contraction can't be split along: only for rows that are
  // no loss (the classes of a small classifier).
  MAX_INTERNAL_AFTER_CONTRACTION = 32,
  // Few rows keep only few tiles busy: a long one is better reduced by many, in kernels of its own.
  MIN_ROWS = 4,
  MAX_LONELY_ROW = 256
};

static int compare_ops(const void* a, const void* b, void* clusters) {
  const weft_unit_t* unit = ((const weft_clusters_t*)clusters)->unit.data;
  uintptr_t left = (uintptr_t)unit[*(const int32_t*)a].op.ptr, right = (uintptr_t)unit[*(const int32_t*)b].op.ptr;
  return (left > right) - (left < right);
}

int32_t weft_clusters_unit_of(const weft_clusters_t* clusters, MlirOperation op) {
  size_t lo = 0, hi = clusters->by_pointer.count;
  while (lo < hi) {
    size_t middle = (lo + hi) / 2;
    int32_t unit = clusters->by_pointer.data[middle];
    uintptr_t at = (uintptr_t)clusters->unit.data[unit].op.ptr;
    if (at == (uintptr_t)op.ptr) return unit;
    if (at < (uintptr_t)op.ptr)
      lo = middle + 1;
    else
      hi = middle;
  }
  return -1;
}

typedef struct dependency_walk_t {
  const weft_clusters_t* clusters;
  weft_dependency_fn call;
  void* self;
  weft_status_t status;
} dependency_walk_t;
static MlirWalkResult visit_operands(MlirOperation op, void* data) {
  dependency_walk_t* walk = data;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !walk->status; ++i) {
    MlirValue value = mlirOperationGetOperand(op, i);
    int32_t unit = weft_clusters_unit_of(walk->clusters, weft_ir_producer(value));
    if (unit >= 0) walk->status = walk->call(walk->self, unit, value);
  }
  return walk->status ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}
weft_status_t weft_clusters_dependencies(const weft_clusters_t* clusters, int32_t unit, weft_dependency_fn call,
                                         void* self) {
  dependency_walk_t walk = {.clusters = clusters, .call = call, .self = self};
  mlirOperationWalk(clusters->unit.data[unit].op, visit_operands, &walk, MlirWalkPreOrder);
  return walk.status;
}

// --- Would joining close a circle?

typedef struct search_t {
  weft_clusters_t* clusters;
  int32_t target; // cluster
  const weft_space_t* space;
  bool skip_linked; // operands that the joining op inherits from the target are no outside path
  uint8_t* seen_unit;
  uint8_t* seen_cluster;
  WEFT_ARRAY(int32_t) stack;
  bool found;
} search_t;
static weft_status_t reach(void* self, int32_t unit, MlirValue value) {
  search_t* search = self;
  int32_t dim[WEFT_MAX_RANK];
  if (search->skip_linked) {
    const weft_space_value_t* linked = weft_space_find(search->space, value, dim);
    if (linked && linked->made) return weft_ok();
  }
  if (search->seen_unit[unit]) return weft_ok();
  search->seen_unit[unit] = 1;
  if (search->clusters->unit.data[unit].cluster == search->target) search->found = true;
  return WEFT_ARRAY_PUSH(search->clusters->allocator, &search->stack, unit);
}

static weft_status_t search_paths(search_t* search, int32_t unit) {
  weft_clusters_t* clusters = search->clusters;
  search->skip_linked = true;
  WEFT_RETURN_IF_ERROR(weft_clusters_dependencies(clusters, unit, reach, search));
  search->skip_linked = false;
  while (search->stack.count > 0 && !search->found) {
    int32_t at = search->stack.data[--search->stack.count], cluster = clusters->unit.data[at].cluster;
    if (cluster < 0) {
      WEFT_RETURN_IF_ERROR(weft_clusters_dependencies(clusters, at, reach, search));
    } else if (!search->seen_cluster[cluster]) {
      search->seen_cluster[cluster] = 1; // a kernel waits for the operands of all its ops
      for (size_t i = 0; i < clusters->cluster.data[cluster].member.count; ++i)
        WEFT_RETURN_IF_ERROR(
            weft_clusters_dependencies(clusters, clusters->cluster.data[cluster].member.data[i], reach, search));
    }
  }
  return weft_ok();
}

static weft_status_t closes_circle(weft_clusters_t* clusters, int32_t unit, int32_t target, bool* out_found) {
  search_t search = {.clusters = clusters, .target = target, .space = &clusters->cluster.data[target].space};
  weft_status_t status = weft_allocator_calloc(clusters->allocator, clusters->unit.count, 1, (void**)&search.seen_unit);
  if (!status)
    status = weft_allocator_calloc(clusters->allocator, clusters->cluster.count, 1, (void**)&search.seen_cluster);
  if (!status) status = search_paths(&search, unit);
  *out_found = search.found;
  WEFT_ARRAY_FREE(clusters->allocator, &search.stack);
  weft_allocator_free(clusters->allocator, search.seen_unit);
  weft_allocator_free(clusters->allocator, search.seen_cluster);
  return status;
}

// --- Is the kernel still a good one with the op in it?

static size_t widest_element(const weft_generic_t* generic) {
  size_t widest = 1;
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    weft_shape_t shape;
    weft_dtype_e dtype;
    MlirValue value = mlirOperationGetOperand(generic->op, i);
    if (weft_ir_shape(value, &shape, &dtype) && weft_dtype_size(dtype) > widest) widest = weft_dtype_size(dtype);
  }
  return widest;
}

static bool is_internal(int32_t reducers, int32_t walkers) {
  return reducers > 1 || (reducers == 1 && walkers > 0);
}

static bool is_sensible(const weft_cluster_t* cluster, const weft_generic_t* generic, const int32_t* loop) {
  bool adds_internal = false, contracts = false;
  double row = 1, rows = 1;
  int32_t reducers[WEFT_MAX_DIMS], walkers[WEFT_MAX_DIMS];
  for (int32_t d = 0; d < cluster->space.dim_count; ++d) {
    reducers[d] = cluster->reducers[d];
    walkers[d] = cluster->walkers[d];
  }
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    if (loop[l] < 0) continue;
    if (generic->reduction[l])
      reducers[loop[l]]++;
    else
      walkers[loop[l]]++;
  }
  for (int32_t d = 0; d < cluster->space.dim_count; ++d) {
    if (is_internal(reducers[d], walkers[d])) {
      row *= (double)cluster->space.extent[d];
      adds_internal |= !is_internal(cluster->reducers[d], cluster->walkers[d]);
    } else if (reducers[d] > 0) {
      contracts = true;
    } else {
      rows *= (double)cluster->space.extent[d];
    }
  }
  if (!adds_internal) return true;
  if (contracts) return row <= MAX_INTERNAL_AFTER_CONTRACTION;
  if (rows < MIN_ROWS && row > MAX_LONELY_ROW) return false;
  return row * (double)widest_element(generic) <= MAX_INTERNAL_BYTES;
}

// How many tensors on the wafer a value is put together from; what is more than WEFT_MOST_INFLOW is not counted out.
static int32_t count_pieces(MlirValue value) {
  double splat;
  int32_t count = 0;
  MlirOperation op = weft_ir_producer(value);
  while (!mlirOperationIsNull(op) && weft_ir_role(op) == WEFT_ROLE_MOVEMENT) {
    if (weft_ir_is(op, "tensor.concat")) {
      for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && count <= WEFT_MOST_INFLOW; ++i)
        count += count_pieces(mlirOperationGetOperand(op, i));
      return count;
    }
    value = mlirOperationGetOperand(op, 0);
    op = weft_ir_producer(value);
  }
  if (mlirOperationIsNull(op)) return 1;
  return weft_ir_is(op, "arith.constant") || weft_ir_splat(value, &splat) ? 0 : 1;
}

// What the op adds to a cluster's inflow.
static int32_t inflow_of(const weft_space_t* space, const weft_generic_t* generic) {
  int32_t inflow = 0, dim[WEFT_MAX_RANK];
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    MlirValue value = mlirOperationGetOperand(generic->op, i);
    if (!weft_generic_uses(generic, i) || !weft_ir_is_tensor(value) || weft_space_find(space, value, dim)) continue;
    inflow += count_pieces(value);
  }
  return inflow;
}

// --- Clustering

static weft_status_t enter(weft_clusters_t* clusters, int32_t target, int32_t unit, const weft_generic_t* generic,
                           const int32_t* loop) {
  weft_cluster_t* cluster = &clusters->cluster.data[target];
  double work = weft_generic_reduces(generic) ? 1 : 0;
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    if (work > 0) work *= (double)generic->extent[l];
    if (loop[l] < 0) continue;
    if (generic->reduction[l])
      cluster->reducers[loop[l]]++;
    else
      cluster->walkers[loop[l]]++;
  }
  if (cluster->member.count == 0 || work > cluster->anchor_work) {
    cluster->anchor = unit;
    cluster->anchor_work = work;
  }
  clusters->unit.data[unit].cluster = target;
  cluster->inflow += inflow_of(&cluster->space, generic);
  WEFT_RETURN_IF_ERROR(weft_space_add(&cluster->space, generic, loop));
  return WEFT_ARRAY_PUSH(clusters->allocator, &cluster->member, unit);
}

// The kernels that make an operand, seen through movement, latest first.
static int32_t candidates(const weft_clusters_t* clusters, const weft_generic_t* generic,
                          int32_t out[WEFT_MAX_OPERANDS]) {
  int32_t count = 0;
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    MlirOperation op = weft_ir_producer(mlirOperationGetOperand(generic->op, i));
    while (!mlirOperationIsNull(op) && weft_ir_role(op) == WEFT_ROLE_MOVEMENT)
      op = weft_ir_producer(mlirOperationGetOperand(op, 0));
    int32_t unit = weft_clusters_unit_of(clusters, op);
    int32_t cluster = unit < 0 ? -1 : clusters->unit.data[unit].cluster, at = 0;
    if (cluster < 0) continue;
    while (at < count && out[at] > cluster) ++at;
    if (at < count && out[at] == cluster) continue;
    for (int32_t j = count++; j > at; --j) out[j] = out[j - 1];
    out[at] = cluster;
  }
  return count;
}

static weft_status_t place(weft_clusters_t* clusters, int32_t unit) {
  weft_generic_t generic;
  WEFT_RETURN_IF_ERROR(weft_generic_read(clusters->unit.data[unit].op, &generic));
  int32_t candidate[WEFT_MAX_OPERANDS], loop[WEFT_MAX_DIMS];
  int32_t count = candidates(clusters, &generic, candidate);
  for (int32_t i = 0; i < count; ++i) {
    const weft_cluster_t* cluster = &clusters->cluster.data[candidate[i]];
    bool circle;
    if (!weft_space_map(&cluster->space, &generic, loop) || !is_sensible(cluster, &generic, loop)) continue;
    if (cluster->inflow + inflow_of(&cluster->space, &generic) > WEFT_MOST_INFLOW) continue;
    WEFT_RETURN_IF_ERROR(closes_circle(clusters, unit, candidate[i], &circle));
    if (!circle) return enter(clusters, candidate[i], unit, &generic, loop);
  }
  weft_cluster_t fresh = {0};
  weft_space_start(clusters->allocator, &generic, &fresh.space, loop);
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(clusters->allocator, &clusters->cluster, fresh));
  return enter(clusters, (int32_t)clusters->cluster.count - 1, unit, &generic, loop);
}

static weft_status_t form(weft_clusters_t* clusters) {
  MlirOperation op = mlirBlockGetFirstOperation(clusters->block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    weft_unit_t unit = {.op = op, .role = weft_ir_role(op), .cluster = -1};
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(clusters->allocator, &clusters->by_pointer, (int32_t)clusters->unit.count));
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(clusters->allocator, &clusters->unit, unit));
  }
  if (clusters->unit.count > 0)
    qsort_r(clusters->by_pointer.data, clusters->by_pointer.count, sizeof(int32_t), compare_ops, clusters);
  for (size_t i = 0; i < clusters->unit.count; ++i)
    if (clusters->unit.data[i].role == WEFT_ROLE_COMPUTE) WEFT_RETURN_IF_ERROR(place(clusters, (int32_t)i));
  return weft_clusters_build(clusters);
}

weft_status_t weft_pass_form_kernels(weft_tensor_context_t* context, MlirOperation module) {
  MlirOperation main = weft_tensor_find_main(mlirModuleFromOperation(module));
  if (mlirOperationIsNull(main)) return weft_error(INVALID_INPUT, "the module has no function main");
  weft_clusters_t clusters = {.allocator = weft_tensor_context_allocator(context)};
  clusters.block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
  weft_status_t status = form(&clusters);
  for (size_t i = 0; i < clusters.cluster.count; ++i) {
    weft_space_deinitialize(&clusters.cluster.data[i].space);
    WEFT_ARRAY_FREE(clusters.allocator, &clusters.cluster.data[i].member);
  }
  WEFT_ARRAY_FREE(clusters.allocator, &clusters.cluster);
  WEFT_ARRAY_FREE(clusters.allocator, &clusters.unit);
  WEFT_ARRAY_FREE(clusters.allocator, &clusters.by_pointer);
  return status;
}
