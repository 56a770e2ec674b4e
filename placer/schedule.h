// Simulated annealing as such: temperatures, acceptance, the best state, the table of what happens. It knows nothing of
// what is annealed; a representation (rectangles with coordinates, a slicing tree) brings its moves and its cost.
// The schedule is VPR's (Betz, Rose, Marquardt, "Architecture and CAD for Deep-Submicron FPGAs", 1999, section 3.2):
// start where nearly all moves are taken, cool by the acceptance rate, shrink the range of moves so that 44 % are
// accepted.
#pragma once
#include "base/control.h"
#include "base/rng.h"

// A state that can be changed move by move. `self` belongs to the representation.
typedef struct weft_placer_moves_t {
  void* self;
  // Makes a random legal move with reach `range` (1: everywhere, towards 0: to neighbours) and writes the change of
  // cost. False: the draw was no legal move and nothing changed. `limit`: a move whose delta is sure to exceed it may
  // be given up early (false). After true exactly one of keep and undo follows.
  bool (*propose)(void* self, weft_rng_t* rng, double range, double limit, double* out_delta);
  void (*keep)(void* self);
  void (*undo)(void* self);
  double (*recompute)(void* self);  // the cost from scratch; the running state takes it over
  void (*save_best)(void* self);    // the present state is the best so far
  void (*restore_best)(void* self); // back to the state last saved
  // What the cost is made of, for the table ("time 33712  wire 1190.5"); may be NULL.
  void (*describe)(void* self, char* text, int size);
  // The present state as a frame of an animation, once a temperature; may be NULL.
  void (*frame)(void* self, double temperature);
} weft_placer_moves_t;

typedef struct weft_placer_schedule_t {
  int64_t moves_per_temperature; // > 0
  double hot;                    // first temperature; <= 0: measured, from the spread of cost over random moves
  double cold;                   // last temperature; <= 0: where hardly any move is taken
  double seconds;     // > 0: temperatures follow the clock from hot to cold over this time; else the acceptance rate
  int64_t most_moves; // 0: no limit; else stops after as many (bounded loops)
  double cooling;     // > 0: each temperature is the last times this, whatever the acceptance rate
  double least_range; // where `range` stops shrinking; <= 0: a thousandth
  int32_t run, runs;  // this is run `run` of `runs`, for the progress shown; runs 0: the only one
} weft_placer_schedule_t;

typedef struct weft_placer_annealing_t {
  double cost; // of the best state, recomputed
  int64_t moves, taken;
  int32_t temperatures;
  double drift; // largest relative difference between the running cost and a full recomputation
} weft_placer_annealing_t;

// Anneals from the present state and leaves the best one found (restore_best). Stops early, with the best so far, when
// `control` says so; the deadline is looked at often enough to be kept within 1 %. INTERNAL when the running cost
// drifted by more than 1e-6 from the recomputed one.
weft_status_t weft_placer_schedule_run(const weft_placer_schedule_t* schedule, const weft_placer_moves_t* moves,
                                       weft_rng_t* rng, const weft_control_t* control,
                                       weft_placer_annealing_t* out_annealing);
