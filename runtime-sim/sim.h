// The mesh simulator. Knows the image and the ISA, nothing of the compiler.
#pragma once
#include "backend/image.h"
#include "backend/isa.h"
#include "base/arena.h"
#include "base/control.h"

typedef struct weft_sim_t weft_sim_t;

// Loads an image as untrusted input: besides weft_image_map's checks, every address range of every instruction lies in
// its tile's memory; routes leave by live links to routers that expect them, form trees, and end at ramps or ports;
// every posted colour has a route; sizes multiply without overflow. INVALID_INPUT says what and where (tile,
// instruction). The image must outlive the simulator.
weft_status_t weft_sim_create(weft_allocator_t allocator, const weft_image_t* image, weft_sim_t** out_sim);
void weft_sim_destroy(weft_sim_t* sim);

// Sets input `io` (index into image->io) for all steps: steps * elements * size bytes, tightly packed; copied.
weft_status_t weft_sim_set_input(weft_sim_t* sim, uint32_t io, const void* data, size_t size);
// Runs `steps` inputs through the wafer; all of its inputs must be set for that many. Burst engine: discrete events,
// exact values, timing as docs/machine.md. DEADLOCK: nothing can move; the message groups who waits on which colour by
// rectangles of tiles with kernel names.
weft_status_t weft_sim_run(weft_sim_t* sim, int64_t steps, const weft_control_t* control);
// Copies output `io` of all steps.
weft_status_t weft_sim_get_output(const weft_sim_t* sim, uint32_t io, void* data, size_t size);

typedef struct weft_sim_report_t {
  int64_t steps;
  int64_t cycles;         // until the last output's last wavelet
  int64_t first_cycles;   // until the first step's outputs are complete (latency)
  double cycles_per_step; // (cycles - first_cycles) / (steps - 1); cycles for one step
  int64_t instructions, wavelet_hops, wavelets_sent;
  int64_t operations[WEFT_OP_CLASS_COUNT];
  double energy_pj;      // estimated from the machine's table
  int64_t longest_route; // hops, of any stream
} weft_sim_report_t;
void weft_sim_report(const weft_sim_t* sim, weft_sim_report_t* out_report);
// Per tile of the mesh, for heat maps: cycles the core was busy [tiles]; picojoules [tiles]; wavelets that left over
// each link, [tiles * 4] as N E S W of each tile.
typedef enum weft_sim_metric_e { WEFT_SIM_BUSY_CYCLES, WEFT_SIM_ENERGY, WEFT_SIM_LINK_WAVELETS } weft_sim_metric_e;
weft_status_t weft_sim_tile_metric(const weft_sim_t* sim, weft_sim_metric_e metric, double* out_values);
