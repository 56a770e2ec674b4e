// A model for a command: an ONNX file, or tensor IR that an earlier compile stopped at.
#pragma once
#include "cli/cli.h"
#include "frontend/frontend.h"

#define WEFT_OPTIONS_MODEL                                                                                             \
  {"dim", "NAME=N", "fixes a dynamic dimension of the model; repeatable"}, {                                           \
    "bind", "NAME=SOURCE", "makes an input constant: FILE.npy, FILE.pb or '2xi64=1 2'; repeatable"                     \
  }

// Imports options.positional[index], with --dim and --bind. The context has Weft's passes registered and outlives the
// model.
weft_status_t weft_cli_import(weft_cli_t* cli, const char* path, weft_tensor_context_t* context,
                              weft_model_t* out_model);
weft_status_t weft_cli_context(weft_cli_t* cli, weft_tensor_context_t** out_context);
