// What instructions do to memory. When something happens never depends on values, so the clocks run ahead and leave the
// values to be worked out behind them, by a second thread as well when a run is long enough to need one. Jobs are done
// in an order that nobody can tell from the one they were given in. Private to the simulator.
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "backend/image.h"
#include "runtime-sim/nest.h"
#include "runtime-sim/walk.h"

// Elements under way from tile to tile. They come in pieces, each from one job.
typedef struct weft_sim_buffer_t {
  _Atomic(int32_t) there; // pieces that have been written
  int32_t pieces;         // that jobs were given for
  size_t capacity;        // bytes
  uint8_t* data;          // right behind
} weft_sim_buffer_t;

typedef enum weft_sim_job_kind_e {
  WEFT_SIM_JOB_NEST,
  WEFT_SIM_JOB_COPY,
  WEFT_SIM_JOB_STORE,  // a receive: what its walk takes of a buffer
  WEFT_SIM_JOB_CLEAR,  // a tile's memory before anybody uses it
  WEFT_SIM_JOB_RELEASE // nothing but `release`
} weft_sim_job_kind_e;

typedef struct weft_sim_job_t {
  weft_sim_job_kind_e kind;
  int32_t slot;                   // whose memory it uses, or NONE: jobs of a tile keep their order
  uint32_t turn;                  // among the tile's
  const weft_sim_buffer_t* needs; // NULL, or with `pieces` pieces there
  int32_t pieces;
  weft_sim_buffer_t* writes; // NULL, or it adds a piece to this one
  void* release;             // freed when this job and all before it are done
  _Atomic(bool) done;
  weft_status_t status;
  uint8_t immediate[WEFT_SIM_OPERANDS][8]; // NEST: what its operands may point to
  weft_sim_nest_t nest;
  struct { // COPY, STORE
    const uint8_t* source;
    uint8_t* target;
    size_t bytes; // COPY: in all; STORE: of an element
    const weft_sim_walk_t* walk;
  } move;
  struct {
    uint8_t* memory;
    size_t bytes;
  } clear;
} weft_sim_job_t;

enum { WEFT_SIM_JOBS = 1024 }; // that may be open
typedef struct weft_sim_work_t {
  weft_sim_job_t* job;             // ring
  uint64_t tail;                   // the oldest that isn't known to be done
  _Atomic(uint64_t) head, claimed; // jobs given so far; jobs that somebody does or has done
  _Atomic(uint32_t)* turn;         // [slot] jobs done
  uint32_t* turns;                 // [slot] jobs given
  weft_status_t status;            // of the first that failed
  bool has_helper;
  _Atomic(bool) stops;
  pthread_t helper;
} weft_sim_work_t;

typedef struct weft_sim_t weft_sim_t;
weft_status_t weft_sim_work_build(weft_sim_t* sim);
// A new job to be filled in: kind and what belongs to it. It is given with weft_sim_work_submit, before the next one.
weft_status_t weft_sim_work_next(weft_sim_t* sim, weft_sim_job_kind_e kind, int32_t slot, weft_sim_job_t** out_job);
weft_status_t weft_sim_work_submit(weft_sim_t* sim);
// Frees memory once all jobs so far are done.
weft_status_t weft_sim_work_release(weft_sim_t* sim, void* pointer);
// Does whatever is left; the error of the first job that failed.
weft_status_t weft_sim_work_finish(weft_sim_t* sim);
weft_status_t weft_sim_buffer_new(weft_sim_t* sim, size_t capacity, weft_sim_buffer_t** out_buffer);
