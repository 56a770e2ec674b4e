// A case's whole way: import, passes, lowering, placement, routing, microcode, image file, simulation, comparison; with
// the checker after each stage that it knows.
#pragma once
#include "tests/conformance/case.h"

typedef struct wafer_options_t {
  int32_t mesh_count;
  const int32_t* mesh; // tiles a side; the next one is tried when a case does not fit
  const char* defects;
  int32_t repeat;      // how often the data sets pass through, one after the other
  double effort;       // of the placer
  const char* scratch; // folder for the image file
} wafer_options_t;

// Fills in the record. The context is used up: the caller forked.
void wafer_run_case(weft_tensor_context_t* context, const wafer_options_t* options, const char* folder,
                    const char* name, record_t* record);
// Removes what a killed process may have left in the scratch folder.
void wafer_clean(const wafer_options_t* options, int process);
