// Private to passes: clusters the computation of main into weft.kernel ops.
#pragma once
#include "ir/tensor/tensor.h"
#include "passes/space.h"

typedef struct weft_unit_t { // an op of main's block
  MlirOperation op;
  weft_ir_role_e role;
  int32_t cluster; // -1: none
  bool erased;
} weft_unit_t;
typedef struct weft_cluster_t {
  weft_space_t space;
  WEFT_ARRAY(int32_t) member;                              // units, ascending
  int32_t reducers[WEFT_MAX_DIMS], walkers[WEFT_MAX_DIMS]; // ops that reduce over a dimension, that walk it in parallel
  int32_t anchor; // the unit that the kernel is named after: the one with most to calculate
  double anchor_work;
  int32_t inflow; // tensors that come from outside: as many streams end at a tile
} weft_cluster_t;
typedef struct weft_clusters_t {
  weft_allocator_t allocator;
  MlirBlock block;
  WEFT_ARRAY(weft_unit_t) unit;
  WEFT_ARRAY(int32_t) by_pointer; // units sorted by op, for look-ups only
  WEFT_ARRAY(weft_cluster_t) cluster;
} weft_clusters_t;

int32_t weft_clusters_unit_of(const weft_clusters_t* clusters, MlirOperation op); // -1: not in main's block
// Calls back for the unit behind every value that an op or its regions use.
typedef weft_status_t (*weft_dependency_fn)(void* self, int32_t unit, MlirValue value);
weft_status_t weft_clusters_dependencies(const weft_clusters_t* clusters, int32_t unit, weft_dependency_fn call,
                                         void* self);
// Rewrites the block: every cluster becomes a weft.kernel, everything in an order that fits.
weft_status_t weft_clusters_build(weft_clusters_t* clusters);

// The passes of the table in pipeline.c.
weft_status_t weft_pass_generalize(weft_tensor_context_t* context, MlirOperation module);
weft_status_t weft_pass_form_kernels(weft_tensor_context_t* context, MlirOperation module);
