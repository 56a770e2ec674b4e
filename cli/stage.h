// An image or a fabric stage from a file, with its machine and defects.
#pragma once
#include "backend/image.h"
#include "cli/cli.h"
#include "ir/fabric/fabric.h"

typedef struct weft_cli_stage_t {
  bool is_image;
  weft_image_t image;   // is_image
  weft_fabric_t fabric; // otherwise
  weft_machine_t machine;
  weft_defects_t defects;
} weft_cli_stage_t;

// A fabric file's machine and defects come from --machine and --defects and have to match its digests.
weft_status_t weft_cli_stage_open(weft_cli_t* cli, const char* path, weft_cli_stage_t* out_stage);
void weft_cli_stage_close(weft_cli_stage_t* stage);
// Whether the file is fabric text.
weft_status_t weft_cli_is_fabric(const char* path, bool* out_is_fabric);
