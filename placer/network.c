#include "placer/network.h"

#include <math.h>

#include "placer/joints.h"
#include "placer/slicing_targets.h"

// Hops that a hop over a link which has no time left for it counts in addition. A high price makes kernels slower than
// their links are (docs/decisions.md).
static const double overload_price = 0.05;

typedef struct builder_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  weft_arena_t* arena;
  weft_network_t* network;
  weft_joints_piece_t* piece; // [edges]
  weft_placer_edge_t* edge;
  double* wavelets; // [kernels] in and out
  double time;      // that a step will take, about: the least at which the smallest shapes have room
} builder_t;

// Kernels that stream into each other, an edge for each piece of an operand.
static weft_status_t collect_edges(builder_t* b) {
  const weft_fabric_t* fabric = b->fabric;
  size_t most = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (int32_t i = 0; i < fabric->kernel[k].buffer_count; ++i)
      most += (size_t)fabric->kernel[k].buffer[i].piece_count;
  }
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, most + 1, &b->edge));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, most + 1, &b->piece));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, (size_t)fabric->kernel_count + 1, &b->wavelets));
  int32_t count = 0;
  for (int32_t k = 0; k < fabric->kernel_count; ++k) {
    for (int32_t i = 0; i < fabric->kernel[k].buffer_count; ++i) {
      const weft_buffer_t* buffer = &fabric->kernel[k].buffer[i];
      for (int32_t p = 0; p < buffer->piece_count; ++p) {
        const weft_tensor_t* tensor = &fabric->tensor[buffer->piece[p].tensor];
        if (tensor->kind != WEFT_TENSOR_RESULT) continue;
        double weight = (double)weft_machine_wavelets(b->machine, tensor->dtype, weft_shape_elements(&tensor->shape));
        b->piece[count] = (weft_joints_piece_t){.sink = k, .buffer = i, .piece = p};
        b->edge[count++] = (weft_placer_edge_t){.from = tensor->kernel, .to = k, .weight = weight};
        b->wavelets[tensor->kernel] += weight;
        b->wavelets[k] += weight;
      }
    }
  }
  b->network->problem.edge = b->edge;
  b->network->problem.edge_count = count;
  return weft_ok();
}

// Cycles that a kernel's streams keep the links in its region busy, estimated: they come and go along the lines of its
// grid, at both ends, and its narrower side has the fewer lines. (An 80x5 region with 2.6 M wavelets in and out had
// links with 344,064 after routing; this says 325,000.)
static double link_cycles(double wavelets, const weft_alternative_t* a) {
  enum { ENDS = 2 };
  return wavelets / (ENDS * (double)(a->gx < a->gy ? a->gx : a->gy));
}

// A block per kernel with one shape per alternative that the mesh can hold; `alternative` maps shapes back.
static weft_status_t collect_blocks(builder_t* b) {
  const weft_machine_t* machine = b->machine;
  size_t kernels = (size_t)b->fabric->kernel_count;
  weft_placer_block_t* blocks = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, kernels + 1, &blocks));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, kernels + 1, &b->network->alternative));
  for (int32_t k = 0; k < b->fabric->kernel_count; ++k) {
    const weft_kernel_t* kernel = &b->fabric->kernel[k];
    weft_placer_shape_t* shapes = NULL;
    int32_t* alternative = NULL;
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, (size_t)kernel->alternative_count + 1, &shapes));
    WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, (size_t)kernel->alternative_count + 1, &alternative));
    int32_t count = 0;
    for (int32_t i = 0; i < kernel->alternative_count; ++i) {
      const weft_alternative_t* a = &kernel->alternative[i];
      bool upright = a->gx <= machine->width && a->gy <= machine->height;
      bool turned = a->gy <= machine->width && a->gx <= machine->height;
      if (!upright && !turned) continue;
      alternative[count] = i;
      shapes[count++] = (weft_placer_shape_t){.width = a->gx,
                                              .height = a->gy,
                                              .tiles = (int64_t)a->gx * a->gy,
                                              .lines = a->gy,
                                              .line_tiles = a->gx,
                                              .time = fmax((double)a->step_cycles, link_cycles(b->wavelets[k], a))};
    }
    if (!count) {
      return weft_error(DOES_NOT_FIT, "%s has no split that fits on %dx%d tiles", kernel->name, machine->width,
                        machine->height);
    }
    b->network->alternative[k] = alternative;
    blocks[k] = (weft_placer_block_t){
        .name = kernel->name, .shape_count = count, .shape = shapes, .fixed_x = -1, .fixed_y = -1};
  }
  b->network->problem.block = blocks;
  b->network->problem.block_count = b->fabric->kernel_count;
  return weft_ok();
}

static weft_status_t expect_time(builder_t* b) {
  weft_slicing_target_t* target = NULL;
  int32_t count = 0;
  WEFT_RETURN_IF_ERROR(weft_slicing_targets(&b->network->problem, b->arena, &target, &count));
  b->time = count ? target[0].time : INFINITY;
  return weft_ok();
}

static weft_status_t collect_joints(builder_t* b) {
  const weft_placer_problem_t* problem = &b->network->problem;
  int32_t *in = NULL, *out = NULL;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, (size_t)problem->block_count + 1, &in));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(b->arena, (size_t)problem->block_count + 1, &out));
  for (int32_t e = 0; e < problem->edge_count; ++e) ++out[b->edge[e].from], ++in[b->edge[e].to];
  for (int32_t e = 0; e < problem->edge_count; ++e) {
    weft_placer_edge_t* edge = &b->edge[e];
    // The edges at an end share its time.
    int32_t sharing = out[edge->from] > in[edge->to] ? out[edge->from] : in[edge->to];
    double streams = ceil(edge->weight * sharing / fmax(1, b->time));
    WEFT_RETURN_IF_ERROR(weft_joints_of_piece(b->fabric, &b->piece[e], problem->block, b->network->alternative, streams,
                                              b->arena, &edge->joint));
  }
  return weft_ok();
}

weft_status_t weft_network_create(const weft_fabric_t* fabric, const weft_machine_t* machine, weft_arena_t* arena,
                                  weft_network_t* out_network) {
  *out_network = (weft_network_t){.problem = {.width = machine->width, .height = machine->height, .weight_time = 1}};
  builder_t b = {.fabric = fabric, .machine = machine, .arena = arena, .network = out_network};
  WEFT_RETURN_IF_ERROR(collect_edges(&b));
  WEFT_RETURN_IF_ERROR(collect_blocks(&b));
  WEFT_RETURN_IF_ERROR(expect_time(&b));
  WEFT_RETURN_IF_ERROR(collect_joints(&b));
  weft_placer_problem_t* problem = &out_network->problem;
  double wavelets = 0;
  for (int32_t e = 0; e < problem->edge_count; ++e) wavelets += problem->edge[e].weight;
  // A hop is a cycle: the mean way of a wavelet weighs as much as the same number of cycles of the slowest kernel.
  problem->weight_wire = wavelets > 0 ? machine->hop_cycles * (double)fabric->kernel_count / wavelets : 0;
  problem->weight_overload = overload_price * problem->weight_wire;
  return weft_ok();
}
