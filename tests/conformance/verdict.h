// What became of a case, and where on its way it was.
#pragma once
#include <stdbool.h>
#include <stdint.h>

// name, text, kind: P passed, F failed, S skipped. Tables and lists of expected failures use the text.
#define VERDICTS(X)                                                                                                    \
  X(PASSED, "passed", P)                                                                                               \
  X(PASSED_BOUND, "passed, parameters bound", P)                                                                       \
  X(UNSUPPORTED_OPERATOR, "unsupported operator", F)                                                                   \
  X(UNSUPPORTED_TYPE, "unsupported type", F)                                                                           \
  X(UNSUPPORTED_FORM, "unsupported form", F)                                                                           \
  X(IMPORT, "import", F)                                                                                               \
  X(PASSES, "passes", F)                                                                                               \
  X(LOWERING, "lowering", F)                                                                                           \
  X(FIT, "does not fit", F)                                                                                            \
  X(PLACEMENT, "placement", F)                                                                                         \
  X(ROUTING, "routing", F)                                                                                             \
  X(EMISSION, "emission", F)                                                                                           \
  X(CHECK, "check", F)                                                                                                 \
  X(LOADING, "loading", F)                                                                                             \
  X(DEADLOCK, "deadlock", F)                                                                                           \
  X(RUN, "run", F)                                                                                                     \
  X(MISMATCH, "mismatch on the mesh", F)                                                                               \
  X(MISMATCH_REFERENCE, "mismatch also in the reference", F)                                                           \
  X(CRASH, "crash", F)                                                                                                 \
  X(TIME_LIMIT, "time limit", F)                                                                                       \
  X(DATA, "unreadable case", F)                                                                                        \
  X(NO_MODEL, "no model or no data", S)                                                                                \
  X(NOT_TENSORS, "sequences, optionals or strings", S)

typedef enum verdict_e {
#define X(name, text, kind) VERDICT_##name,
  VERDICTS(X)
#undef X
      VERDICT_COUNT
} verdict_e;

// The steps of the way, and what a failure there is called unless its status says more.
#define STEPS(X)                                                                                                       \
  X(DATA, DATA)                                                                                                        \
  X(IMPORT, IMPORT)                                                                                                    \
  X(PASSES, PASSES)                                                                                                    \
  X(LOWER, LOWERING)                                                                                                   \
  X(PLACE, PLACEMENT)                                                                                                  \
  X(CHECK_PLACED, CHECK)                                                                                               \
  X(ROUTE, ROUTING)                                                                                                    \
  X(CHECK_ROUTED, CHECK)                                                                                               \
  X(EMIT, EMISSION)                                                                                                    \
  X(CHECK_IMAGE, CHECK)                                                                                                \
  X(LOAD, LOADING)                                                                                                     \
  X(RUN, RUN)                                                                                                          \
  X(COMPARE, MISMATCH)                                                                                                 \
  X(REFERENCE, MISMATCH)

typedef enum step_e {
#define X(name, verdict) STEP_##name,
  STEPS(X)
#undef X
      STEP_COUNT
} step_e;

// Lies in memory that the child shares with its parent, so that the step is known even of a child that crashed.
typedef struct record_t {
  verdict_e verdict;
  step_e step;
  int32_t mesh; // tiles a side that it took
  int32_t kernels;
  bool is_constant; // no input takes part: the importer calculated everything
  int32_t steps;    // data sets
  int64_t cycles;
  double seconds;   // of processor time
  char subject[96]; // what is unsupported: operators or a type
  char detail[800]; // one line
} record_t;

extern const char* const verdict_text[VERDICT_COUNT];
extern const char verdict_kind[VERDICT_COUNT]; // 'P', 'F' or 'S'
extern const char* const step_text[STEP_COUNT];
extern const verdict_e step_verdict[STEP_COUNT];
