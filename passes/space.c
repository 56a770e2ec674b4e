#include "passes/space.h"

#include <string.h>

void weft_space_deinitialize(weft_space_t* space) {
  WEFT_ARRAY_FREE(space->allocator, &space->value);
}

bool weft_generic_uses(const weft_generic_t* generic, int32_t operand) {
  return !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirBlockGetArgument(generic->body, operand)));
}

bool weft_movement_is_unit_reshape(MlirOperation op, int32_t out_to[WEFT_MAX_RANK]) {
  if (!weft_ir_is(op, "tensor.expand_shape") && !weft_ir_is(op, "tensor.collapse_shape") &&
      !weft_ir_is(op, "tensor.cast"))
    return false;
  weft_shape_t from, to;
  weft_dtype_e dtype;
  if (!weft_ir_shape(mlirOperationGetOperand(op, 0), &from, &dtype) ||
      !weft_ir_shape(mlirOperationGetResult(op, 0), &to, &dtype))
    return false;
  int32_t next = 0;
  for (int32_t r = 0; r < from.rank; ++r) {
    out_to[r] = -1;
    if (from.extent[r] == 1) continue;
    while (next < to.rank && to.extent[next] == 1) ++next;
    if (next == to.rank || to.extent[next] != from.extent[r]) return false;
    out_to[r] = next++;
  }
  while (next < to.rank && to.extent[next] == 1) ++next;
  return next == to.rank;
}

// Carries the dimensions over a movement. False: the movement mixes them.
static bool carry(MlirOperation op, const int32_t* from, int32_t* to) {
  int32_t where[WEFT_MAX_RANK];
  for (int32_t r = 0; r < WEFT_MAX_RANK; ++r) to[r] = WEFT_NO_DIM;
  if (weft_movement_is_unit_reshape(op, where)) {
    weft_shape_t shape;
    weft_dtype_e dtype;
    weft_ir_shape(mlirOperationGetOperand(op, 0), &shape, &dtype);
    for (int32_t r = 0; r < shape.rank; ++r)
      if (where[r] >= 0) to[where[r]] = from[r];
    return true;
  }
  weft_generic_t generic;
  if (!weft_ir_is(op, "linalg.generic") || weft_ir_role(op) != WEFT_ROLE_MOVEMENT ||
      !weft_status_consume(weft_generic_read(op, &generic)))
    return false;
  int32_t of_loop[WEFT_MAX_DIMS];
  for (int32_t l = 0; l < generic.loop_count; ++l) of_loop[l] = WEFT_BROADCAST_DIM;
  weft_shape_t shape;
  weft_dtype_e dtype;
  if (!weft_ir_shape(mlirOperationGetOperand(op, 0), &shape, &dtype)) return false;
  for (int32_t r = 0; r < shape.rank; ++r) {
    int32_t loop = weft_generic_row_loop(&generic, &generic.map[0].row[r]);
    if (loop >= 0)
      of_loop[loop] = from[r];
    else if (shape.extent[r] != 1)
      return false; // picks one of several
  }
  for (int32_t r = 0; r < generic.map[1].rank; ++r) {
    int32_t loop = weft_generic_row_loop(&generic, &generic.map[1].row[r]);
    to[r] = loop >= 0 ? of_loop[loop] : WEFT_NO_DIM;
  }
  return true;
}

const weft_space_value_t* weft_space_find(const weft_space_t* space, MlirValue value, int32_t out_dim[WEFT_MAX_RANK]) {
  for (size_t i = 0; i < space->value.count; ++i) {
    if (!mlirValueEqual(space->value.data[i].value, value)) continue;
    memcpy(out_dim, space->value.data[i].dim, sizeof(space->value.data[i].dim));
    return &space->value.data[i];
  }
  MlirOperation op = weft_ir_producer(value);
  if (mlirOperationIsNull(op) || weft_ir_role(op) != WEFT_ROLE_MOVEMENT) return NULL;
  int32_t from[WEFT_MAX_RANK];
  const weft_space_value_t* found = weft_space_find(space, mlirOperationGetOperand(op, 0), from);
  return found && carry(op, from, out_dim) ? found : NULL;
}

void weft_space_start(weft_allocator_t allocator, const weft_generic_t* generic, weft_space_t* out_space,
                      int32_t out_loop[WEFT_MAX_DIMS]) {
  *out_space = (weft_space_t){.allocator = allocator};
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    out_loop[l] = WEFT_NO_DIM;
    if (generic->extent[l] == 1) continue;
    out_loop[l] = out_space->dim_count;
    out_space->extent[out_space->dim_count++] = generic->extent[l];
  }
}

// What one operand says about the loops. A contradiction (false) excludes the op when the value is made in the kernel;
// an outside value may be read in any way.
static bool learn(const weft_generic_t* generic, int32_t operand, const int32_t* dim, const weft_shape_t* shape,
                  int32_t* loops) {
  int32_t learnt[WEFT_MAX_DIMS];
  memcpy(learnt, loops, sizeof(learnt));
  for (int32_t r = 0; r < shape->rank; ++r) {
    int32_t loop = weft_generic_row_loop(generic, &generic->map[operand].row[r]);
    if (loop == -2 || (loop == -1 && shape->extent[r] != 1)) return false;
    if (loop < 0 || dim[r] < 0) continue;
    if (learnt[loop] >= 0 && learnt[loop] != dim[r]) return false;
    learnt[loop] = dim[r];
  }
  memcpy(loops, learnt, sizeof(learnt));
  return true;
}

bool weft_space_map(const weft_space_t* space, const weft_generic_t* generic, int32_t out_loop[WEFT_MAX_DIMS]) {
  bool linked = false;
  for (int32_t l = 0; l < WEFT_MAX_DIMS; ++l) out_loop[l] = WEFT_NO_DIM;
  for (int32_t pass = 0; pass < 2; ++pass) { // values of the kernel bind; those read from outside fill in
    for (int32_t i = 0; i < generic->operand_count; ++i) {
      MlirValue value = mlirOperationGetOperand(generic->op, i);
      weft_shape_t shape;
      weft_dtype_e dtype;
      int32_t dim[WEFT_MAX_RANK];
      if (!weft_generic_uses(generic, i) || !weft_ir_shape(value, &shape, &dtype)) continue;
      const weft_space_value_t* found = weft_space_find(space, value, dim);
      if (!found || found->made != (pass == 0)) continue;
      bool agrees = learn(generic, i, dim, &shape, out_loop);
      if (found->made && !agrees) return false;
      linked |= found->made;
    }
  }
  uint32_t used = 0;
  for (int32_t l = 0; l < generic->loop_count; ++l) {
    if (generic->extent[l] == 1) continue;
    if (out_loop[l] < 0 || used >> out_loop[l] & 1 || space->extent[out_loop[l]] != generic->extent[l]) return false;
    used |= 1u << out_loop[l];
  }
  return linked;
}

weft_status_t weft_space_add(weft_space_t* space, const weft_generic_t* generic, const int32_t loop[WEFT_MAX_DIMS]) {
  for (int32_t i = 0; i < generic->operand_count; ++i) {
    bool made = i >= generic->input_count;
    MlirValue value =
        made ? mlirOperationGetResult(generic->op, i - generic->input_count) : mlirOperationGetOperand(generic->op, i);
    int32_t known[WEFT_MAX_RANK];
    if (!weft_ir_is_tensor(value) || (!made && weft_space_find(space, value, known))) continue;
    weft_space_value_t entry = {.value = value, .made = made};
    bool plain = true;
    for (int32_t r = 0; r < generic->map[i].rank; ++r) {
      int32_t along = weft_generic_row_loop(generic, &generic->map[i].row[r]);
      plain = plain && along != -2;
      entry.dim[r] = along >= 0 ? loop[along] : WEFT_NO_DIM;
    }
    if (plain) WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(space->allocator, &space->value, entry));
  }
  return weft_ok();
}
