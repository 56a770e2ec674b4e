// Two threads take jobs in the order in which they were given, and wait within a job for what it needs. That is always
// a job before it, done or in the other's hands, so one of the two can always go on.
#include "runtime-sim/work.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime-sim/internal.h"

enum { ALONE = 4096, SPINS = 256, YIELDS = 64 }; // ALONE: jobs before a second thread is worth it

weft_status_t weft_sim_work_build(weft_sim_t* sim) {
  weft_sim_work_t* work = &sim->work;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, WEFT_SIM_JOBS, &work->job));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(&sim->arena, (size_t)sim->slot_count, &work->turn));
  return WEFT_ARENA_NEW(&sim->arena, (size_t)sim->slot_count, &work->turns);
}

weft_status_t weft_sim_buffer_new(weft_sim_t* sim, size_t capacity, weft_sim_buffer_t** out_buffer) {
  enum { HEADER = (sizeof(weft_sim_buffer_t) + 15) / 16 * 16 };
  void* memory = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(sim->allocator, HEADER + capacity, 1, &memory));
  weft_sim_buffer_t* buffer = memory;
  atomic_init(&buffer->there, 0);
  buffer->pieces = 0;
  buffer->capacity = capacity;
  buffer->data = (uint8_t*)memory + HEADER;
  *out_buffer = buffer;
  return weft_ok();
}

// Waits a little, and more patiently each time.
static void relax(int32_t* count) {
  if (++*count < SPINS) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  } else if (*count < SPINS + YIELDS) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
}

static void store_span(const weft_sim_span_t* span, const uint8_t* data, size_t size, uint8_t* memory) {
  const uint8_t* source = data + (size_t)span->position * size;
  uint8_t* target = memory + span->target;
  if (span->stride == (int64_t)size || span->count == 1) {
    memcpy(target, source, (size_t)span->count * size);
    return;
  }
  for (int64_t i = 0; i < span->count; ++i, source += size, target += span->stride) memcpy(target, source, size);
}

static weft_status_t perform(weft_sim_t* sim, weft_sim_job_t* job) {
  switch (job->kind) {
  case WEFT_SIM_JOB_NEST:
    return weft_sim_nest_execute(&job->nest, sim->control);
  case WEFT_SIM_JOB_COPY:
    memcpy(job->move.target, job->move.source, job->move.bytes);
    break;
  case WEFT_SIM_JOB_STORE:
    for (size_t s = 0; s < job->move.walk->spans.count; ++s)
      store_span(&job->move.walk->spans.data[s], job->move.source, job->move.bytes, job->move.target);
    break;
  case WEFT_SIM_JOB_CLEAR:
    weft_sim_memory_clear(sim, job->slot, job->clear.memory, job->clear.bytes);
    break;
  case WEFT_SIM_JOB_RELEASE:
    break;
  }
  return weft_ok();
}

static void do_job(weft_sim_t* sim, weft_sim_job_t* job) {
  _Atomic(uint32_t)* turn = job->slot < 0 ? NULL : &sim->work.turn[job->slot];
  for (int32_t count = 0; turn && atomic_load_explicit(turn, memory_order_acquire) != job->turn;) relax(&count);
  for (int32_t count = 0; job->needs && atomic_load_explicit(&job->needs->there, memory_order_acquire) < job->pieces;)
    relax(&count);
  job->status = perform(sim, job);
  if (turn) atomic_store_explicit(turn, job->turn + 1, memory_order_release);
  if (job->writes) atomic_fetch_add_explicit(&job->writes->there, 1, memory_order_release);
  atomic_store_explicit(&job->done, true, memory_order_release);
}

static weft_sim_job_t* claim(weft_sim_work_t* work) {
  uint64_t at = atomic_load_explicit(&work->claimed, memory_order_relaxed);
  do {
    if (at >= atomic_load_explicit(&work->head, memory_order_acquire)) return NULL;
  } while (!atomic_compare_exchange_weak(&work->claimed, &at, at + 1));
  return &work->job[at % WEFT_SIM_JOBS];
}

static void* help(void* self) {
  weft_sim_t* sim = self;
  for (int32_t count = 0; !atomic_load_explicit(&sim->work.stops, memory_order_relaxed);) {
    weft_sim_job_t* job = claim(&sim->work);
    if (job) {
      do_job(sim, job);
      count = 0;
    } else {
      relax(&count);
    }
  }
  return NULL;
}

// Without a second thread everything is done at once, as it is given.
static void consider_helper(weft_sim_t* sim) {
  weft_sim_work_t* work = &sim->work;
  int32_t threads = sim->control ? sim->control->threads : 0;
  if (work->has_helper || atomic_load_explicit(&work->head, memory_order_relaxed) != ALONE) return;
  if (threads == 1 || (threads == 0 && sysconf(_SC_NPROCESSORS_ONLN) < 2)) return;
  work->has_helper = pthread_create(&work->helper, NULL, help, sim) == 0;
}

// Frees what the jobs at the tail were the last to use.
static void retire(weft_sim_t* sim) {
  weft_sim_work_t* work = &sim->work;
  uint64_t head = atomic_load_explicit(&work->head, memory_order_relaxed);
  for (; work->tail < head; ++work->tail) {
    weft_sim_job_t* job = &work->job[work->tail % WEFT_SIM_JOBS];
    if (!atomic_load_explicit(&job->done, memory_order_acquire)) return;
    weft_allocator_free(sim->allocator, job->release);
    job->release = NULL;
    work->status = weft_status_join(work->status, job->status);
    job->status = weft_ok();
  }
}

static void take_part(weft_sim_t* sim, int32_t* count) {
  weft_sim_job_t* job = claim(&sim->work);
  if (job) {
    do_job(sim, job);
    *count = 0;
  } else {
    relax(count);
  }
  retire(sim);
}

weft_status_t weft_sim_work_next(weft_sim_t* sim, weft_sim_job_kind_e kind, int32_t slot, weft_sim_job_t** out_job) {
  weft_sim_work_t* work = &sim->work;
  uint64_t head = atomic_load_explicit(&work->head, memory_order_relaxed);
  retire(sim);
  for (int32_t count = 0; head - work->tail >= WEFT_SIM_JOBS;) take_part(sim, &count);
  if (work->status) return weft_sim_work_finish(sim);
  weft_sim_job_t* job = &work->job[head % WEFT_SIM_JOBS];
  job->kind = kind;
  job->slot = slot;
  job->needs = NULL;
  job->writes = NULL;
  atomic_store_explicit(&job->done, false, memory_order_relaxed);
  *out_job = job;
  return weft_ok();
}

weft_status_t weft_sim_work_submit(weft_sim_t* sim) {
  weft_sim_work_t* work = &sim->work;
  uint64_t head = atomic_load_explicit(&work->head, memory_order_relaxed);
  weft_sim_job_t* job = &work->job[head % WEFT_SIM_JOBS];
  if (job->slot >= 0) job->turn = work->turns[job->slot]++;
  if (job->needs) job->pieces = job->needs->pieces;
  if (job->writes) ++job->writes->pieces;
  atomic_store_explicit(&work->head, head + 1, memory_order_release);
  consider_helper(sim);
  if (work->has_helper) return weft_ok();
  int32_t count = 0;
  take_part(sim, &count);
  return work->status ? weft_sim_work_finish(sim) : weft_ok();
}

weft_status_t weft_sim_work_release(weft_sim_t* sim, void* pointer) {
  if (!pointer) return weft_ok();
  weft_sim_job_t* job;
  weft_status_t status = weft_sim_work_next(sim, WEFT_SIM_JOB_RELEASE, WEFT_SIM_NONE, &job);
  if (status) { // nothing is left to do
    weft_allocator_free(sim->allocator, pointer);
    return status;
  }
  job->release = pointer;
  return weft_sim_work_submit(sim);
}

weft_status_t weft_sim_work_finish(weft_sim_t* sim) {
  weft_sim_work_t* work = &sim->work;
  retire(sim);
  for (int32_t count = 0; work->tail < atomic_load_explicit(&work->head, memory_order_relaxed);) take_part(sim, &count);
  if (work->has_helper) {
    atomic_store(&work->stops, true);
    pthread_join(work->helper, NULL);
  }
  atomic_store(&work->stops, false);
  atomic_store(&work->head, 0);
  atomic_store(&work->claimed, 0);
  work->has_helper = false;
  work->tail = 0;
  for (int32_t s = 0; s < sim->slot_count; ++s) {
    atomic_store_explicit(&work->turn[s], 0, memory_order_relaxed);
    work->turns[s] = 0;
  }
  weft_status_t status = work->status;
  work->status = weft_ok();
  return status;
}
