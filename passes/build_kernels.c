// From clusters to weft.kernel ops: the ops move into regions, and main's block is put into an order that fits.
#include <string.h>

#include "passes/form_kernels.h"

enum { FRESH, OPEN, DONE };
enum { MAX_MIXED_RESULTS = 8 }; // of the dialect's mixed_kernel

typedef struct clone_t { // what a value outside is called inside the kernel being built
  MlirValue outside, inside;
} clone_t;
typedef struct builder_t {
  weft_clusters_t* clusters;
  MlirOperation terminator;
  uint8_t* state;            // of units, then clusters
  const weft_space_t* space; // of the cluster whose needs are looked at; NULL: a unit's
  WEFT_ARRAY(int32_t) stack;
  WEFT_ARRAY(clone_t) clone;
} builder_t;

static MlirStringRef str(const char* text) {
  return mlirStringRefCreateFromCString(text);
}

static MlirNamedAttribute named(MlirContext context, const char* name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, str(name)), value);
}

static bool is_inside(MlirOperation op, MlirBlock block) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (mlirBlockEqual(mlirOperationGetBlock(op), block)) return true;
  return false;
}

// Copies the fills and movements behind an operand into the kernel's block. Other values are captured as they are.
static weft_status_t bring_in(builder_t* builder, weft_cluster_t* cluster, MlirBlock body, MlirValue value,
                              MlirValue* out_inside) {
  *out_inside = value;
  MlirOperation op = weft_ir_producer(value);
  if (mlirOperationIsNull(op) || is_inside(op, body)) return weft_ok();
  weft_ir_role_e role = weft_ir_role(op);
  int32_t dim[WEFT_MAX_RANK];
  const weft_space_value_t* found = role == WEFT_ROLE_MOVEMENT ? weft_space_find(&cluster->space, value, dim) : NULL;
  bool fill = role == WEFT_ROLE_FILL && weft_ir_is_tensor(value) && !weft_ir_is(op, "arith.constant");
  if (!fill && !(found && found->made)) return weft_ok();
  for (size_t i = 0; i < builder->clone.count; ++i)
    if (mlirValueEqual(builder->clone.data[i].outside, value)) {
      *out_inside = builder->clone.data[i].inside;
      return weft_ok();
    }
  MlirOperation copy = mlirOperationClone(op);
  weft_status_t status = weft_ok();
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !status; ++i) {
    MlirValue inside;
    status = bring_in(builder, cluster, body, mlirOperationGetOperand(op, i), &inside);
    if (!status) mlirOperationSetOperand(copy, i, inside);
  }
  mlirBlockAppendOwnedOperation(body, copy);
  *out_inside = mlirOperationGetResult(copy, 0);
  if (!status) status = WEFT_ARRAY_PUSH(builder->clusters->allocator, &builder->clone, (clone_t){value, *out_inside});
  return status;
}

// A movement that only the kernel used would keep its operand alive as a result.
static void erase_unused(builder_t* builder, MlirOperation op) {
  while (!mlirOperationIsNull(op) && weft_ir_role(op) == WEFT_ROLE_MOVEMENT &&
         mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0)))) {
    int32_t unit = weft_clusters_unit_of(builder->clusters, op);
    if (unit < 0 || builder->clusters->unit.data[unit].erased) return;
    MlirOperation before = weft_ir_producer(mlirOperationGetOperand(op, 0));
    // Stays in the block until the end, so that its address is not used again; without operands it uses nothing.
    builder->clusters->unit.data[unit].erased = true;
    mlirOperationRemoveFromParent(op);
    mlirOperationSetOperands(op, 0, NULL);
    op = before;
  }
}

static weft_status_t move_in(builder_t* builder, weft_cluster_t* cluster, MlirBlock body) {
  weft_unit_t* unit = builder->clusters->unit.data;
  builder->clone.count = 0;
  for (size_t m = 0; m < cluster->member.count; ++m) {
    MlirOperation op = unit[cluster->member.data[m]].op;
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
      MlirValue inside;
      WEFT_RETURN_IF_ERROR(bring_in(builder, cluster, body, mlirOperationGetOperand(op, i), &inside));
      mlirOperationSetOperand(op, i, inside);
    }
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(body, op);
  }
  for (size_t i = builder->clone.count; i-- > 0;)
    erase_unused(builder, weft_ir_producer(builder->clone.data[i].outside));
  return weft_ok();
}

static bool escapes(MlirValue value, MlirBlock body) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (!is_inside(mlirOpOperandGetOwner(use), body)) return true;
  return false;
}

static weft_status_t replace_outside(builder_t* builder, MlirValue value, MlirValue result, MlirBlock body) {
  weft_allocator_t allocator = builder->clusters->allocator;
  WEFT_ARRAY(MlirOperation) owner = {0};
  weft_status_t status = weft_ok();
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use) && !status;
       use = mlirOpOperandGetNextUse(use))
    if (!is_inside(mlirOpOperandGetOwner(use), body))
      status = WEFT_ARRAY_PUSH(allocator, &owner, mlirOpOperandGetOwner(use));
  for (size_t i = 0; i < owner.count && !status; ++i) mlirOperationReplaceUsesOfWith(owner.data[i], value, result);
  WEFT_ARRAY_FREE(allocator, &owner);
  return status;
}

static weft_status_t build_kernel(builder_t* builder, weft_cluster_t* cluster) {
  weft_unit_t* unit = builder->clusters->unit.data;
  weft_allocator_t allocator = builder->clusters->allocator;
  MlirContext context = mlirOperationGetContext(builder->terminator);
  MlirLocation location = mlirOperationGetLocation(unit[cluster->anchor].op);
  MlirBlock body = mlirBlockCreate(0, NULL, NULL);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  WEFT_ARRAY(MlirValue) yielded = {0};
  WEFT_ARRAY(MlirType) type = {0};
  weft_text_t name;
  weft_text_initialize(allocator, &name);

  weft_status_t status = move_in(builder, cluster, body);
  for (size_t m = 0; m < cluster->member.count && !status; ++m) {
    MlirOperation op = unit[cluster->member.data[m]].op;
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op) && !status; ++i) {
      MlirValue value = mlirOperationGetResult(op, i);
      if (!escapes(value, body)) continue;
      status = WEFT_ARRAY_PUSH(allocator, &yielded, value);
      if (!status) status = WEFT_ARRAY_PUSH(allocator, &type, mlirValueGetType(value));
    }
  }
  if (!status) status = weft_tensor_location_name(location, &name);
  MlirOperationState yield = mlirOperationStateGet(str("vector.yield"), location);
  mlirOperationStateAddOperands(&yield, (intptr_t)yielded.count, yielded.data);
  mlirBlockAppendOwnedOperation(body, mlirOperationCreate(&yield));
  bool mixed = false;
  for (size_t i = 1; i < type.count; ++i) mixed |= !mlirTypeEqual(type.data[0], type.data[i]);
  if (!status && mixed && type.count > MAX_MIXED_RESULTS)
    status =
        weft_ir_error(WEFT_STATUS_UNSUPPORTED, unit[cluster->anchor].op,
                      "its kernel has %zu results of different types, at most %d work", type.count, MAX_MIXED_RESULTS);
  int32_t segment[MAX_MIXED_RESULTS];
  for (size_t i = 0; i < MAX_MIXED_RESULTS; ++i) segment[i] = i < type.count;
  MlirNamedAttribute attribute[] = {
      named(context, "name", mlirStringAttrGet(context, str(name.data ? name.data : "kernel"))),
      named(context, "resultSegmentSizes", mlirDenseI32ArrayGet(context, MAX_MIXED_RESULTS, segment))};
  MlirOperationState state = mlirOperationStateGet(str(mixed ? "weft.mixed_kernel" : "weft.kernel"), location);
  mlirOperationStateAddResults(&state, (intptr_t)type.count, type.data);
  mlirOperationStateAddAttributes(&state, mixed ? 2 : 1, attribute);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  MlirOperation kernel = mlirOperationCreate(&state);
  mlirBlockInsertOwnedOperationBefore(builder->clusters->block, builder->terminator, kernel);
  for (size_t i = 0; i < yielded.count && !status; ++i)
    status = replace_outside(builder, yielded.data[i], mlirOperationGetResult(kernel, (intptr_t)i), body);
  WEFT_ARRAY_FREE(allocator, &yielded);
  WEFT_ARRAY_FREE(allocator, &type);
  weft_text_deinitialize(&name);
  return status;
}

// --- The order: what a node needs comes before it, otherwise as it was.

static int32_t node_of(const weft_clusters_t* clusters, int32_t unit) {
  int32_t cluster = clusters->unit.data[unit].cluster;
  return cluster < 0 ? unit : (int32_t)clusters->unit.count + cluster;
}

static weft_status_t need(void* self, int32_t unit, MlirValue value) {
  builder_t* builder = self;
  int32_t dim[WEFT_MAX_RANK], node = node_of(builder->clusters, unit);
  if (builder->space && builder->clusters->unit.data[unit].role == WEFT_ROLE_MOVEMENT) {
    // Movement of what the kernel makes is copied into it; the op itself comes after the kernel, if at all.
    const weft_space_value_t* found = weft_space_find(builder->space, value, dim);
    if (found && found->made) return weft_clusters_dependencies(builder->clusters, unit, need, builder);
  }
  if (builder->state[node] == FRESH) return WEFT_ARRAY_PUSH(builder->clusters->allocator, &builder->stack, node);
  return weft_ok();
}

static weft_status_t emit(builder_t* builder, int32_t node) {
  weft_clusters_t* clusters = builder->clusters;
  int32_t units = (int32_t)clusters->unit.count;
  builder->state[node] = DONE;
  if (node >= units) return build_kernel(builder, &clusters->cluster.data[node - units]);
  weft_unit_t* unit = &clusters->unit.data[node];
  if (!unit->erased && unit->op.ptr != builder->terminator.ptr) mlirOperationMoveBefore(unit->op, builder->terminator);
  return weft_ok();
}

static weft_status_t visit(builder_t* builder, int32_t root) {
  weft_clusters_t* clusters = builder->clusters;
  int32_t units = (int32_t)clusters->unit.count;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(clusters->allocator, &builder->stack, root));
  while (builder->stack.count > 0) {
    int32_t node = builder->stack.data[builder->stack.count - 1];
    if (builder->state[node] != FRESH) {
      builder->stack.count--;
      if (builder->state[node] == OPEN) WEFT_RETURN_IF_ERROR(emit(builder, node));
      continue;
    }
    builder->state[node] = OPEN;
    builder->space = node < units ? NULL : &clusters->cluster.data[node - units].space;
    if (node < units) {
      if (!clusters->unit.data[node].erased)
        WEFT_RETURN_IF_ERROR(weft_clusters_dependencies(clusters, node, need, builder));
    } else {
      const weft_cluster_t* cluster = &clusters->cluster.data[node - units];
      for (size_t m = 0; m < cluster->member.count; ++m)
        WEFT_RETURN_IF_ERROR(weft_clusters_dependencies(clusters, cluster->member.data[m], need, builder));
    }
  }
  return weft_ok();
}

weft_status_t weft_clusters_build(weft_clusters_t* clusters) {
  if (clusters->unit.count == 0) return weft_ok();
  size_t units = clusters->unit.count;
  builder_t builder = {.clusters = clusters, .terminator = clusters->unit.data[units - 1].op};
  weft_status_t status =
      weft_allocator_calloc(clusters->allocator, units + clusters->cluster.count, 1, (void**)&builder.state);
  for (size_t i = 0; i < units && !status; ++i) status = visit(&builder, node_of(clusters, (int32_t)i));
  for (size_t i = 0; i < units; ++i)
    if (clusters->unit.data[i].erased) mlirOperationDestroy(clusters->unit.data[i].op);
  WEFT_ARRAY_FREE(clusters->allocator, &builder.stack);
  WEFT_ARRAY_FREE(clusters->allocator, &builder.clone);
  weft_allocator_free(clusters->allocator, builder.state);
  return status;
}
