// A process for each case, several at once: a case that crashes, hangs or runs out of memory is a result like others.
#pragma once
#include "tests/conformance/wafer.h"

typedef struct pool_options_t {
  int32_t jobs;
  double seconds;  // of processor time a case may take
  int64_t bytes;   // of address space
  bool is_verbose; // children keep their standard error
  wafer_options_t wafer;
} pool_options_t;
// Called in the order of the names.
typedef void (*pool_done_fn)(void* self, const char* name, const record_t* record);

// Runs all cases. The context is made once: each child has a copy of it, so nothing of one case reaches the next.
weft_status_t pool_run(weft_tensor_context_t* context, const pool_options_t* options, const char* folder,
                       const case_names_t* names, pool_done_fn done, void* self);
